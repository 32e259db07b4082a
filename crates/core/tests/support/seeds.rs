//! Seeds of random tests: fixed ones, and ones that change every day. A failure prints what was drawn and the
//! command that repeats it.
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Names the first seed, in place of the fixed one or the day's.
pub const VARIABLE: &str = "ACKADEMY_SEED";
/// Seeds of one day: more than any test draws.
const SEEDS_PER_DAY: u64 = 1_000_000;

/// The first of a day's seeds, in seconds since 1970.
fn seed_of(unix_s: u64) -> u64 {
    unix_s / 86_400 * SEEDS_PER_DAY
}

/// `ACKADEMY_SEED`, else the day's.
pub fn first_seed() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the test harness's clock, not the simulator's")]
    let now = std::time::SystemTime::now();
    let day =
        || now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| seed_of(since.as_secs()));
    std::env::var(VARIABLE).map_or_else(
        |_| day(),
        |seed| {
            seed.parse().unwrap_or_else(|_| panic!("{VARIABLE} = {seed}: allowed: a whole number"))
        },
    )
}

/// `ACKADEMY_SEED`, so that a failure can be repeated alone, else 0.
pub fn fixed_seed() -> u64 {
    if std::env::var_os(VARIABLE).is_some() { first_seed() } else { 0 }
}

/// Runs `claims` for what `draw` makes of each of `count` seeds from `first` on; where they fail, prints it and the
/// command that repeats it. `test`: path of the test.
pub fn for_any(
    test: &str,
    first: u64,
    count: u64,
    draw: impl Fn(u64) -> String,
    claims: impl Fn(&str, u64),
) {
    for seed in first..first + count {
        let text = draw(seed);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| claims(&text, seed))) {
            println!("--- seed {seed}\n{text}---");
            println!(
                "repeat: {VARIABLE}={seed} cargo test -p ackademy --test core_tests -- --exact {test} --include-ignored"
            );
            resume_unwind(panic);
        }
    }
}

/// As [`for_any`] from the day's seed on, which it prints past the test harness.
pub fn for_todays(
    test: &str,
    count: u64,
    draw: impl Fn(u64) -> String,
    claims: impl Fn(&str, u64),
) {
    let first = first_seed();
    let _ = writeln!(std::io::stderr(), "{test}: {count} scenarios from {VARIABLE}={first} on");
    for_any(test, first, count, draw, claims);
}

#[test]
fn a_day_has_seeds_of_its_own() {
    assert_eq!(seed_of(0), 0);
    assert_eq!(seed_of(20_000 * 86_400), seed_of(20_001 * 86_400 - 1));
    assert_eq!(seed_of(20_001 * 86_400), seed_of(20_000 * 86_400) + SEEDS_PER_DAY);
}
