//! Any bytes are a recording in one of the formats or one short line of complaint; what was read survives its own text.
//! Run with `cargo +nightly fuzz run trace`.
#![no_main]
use ackademy::sim::series::{Layout, Recorded, Times, parse};
use ackademy::sim::steps::Steps;
use ackademy::sim::trace::{Trace, TraceError};
use ackademy::units::{Rate, Span, Time};
use libfuzzer_sys::fuzz_target;

/// Largest rate in Mb/s, and largest delay in milliseconds.
const MAX: f64 = 1e6;
/// Up to this time a number of seconds with nine decimals is exact enough to be read again.
const EXACT: Time = Time(1_000_000 * 1_000_000_000);

/// Value per line, columns by number and by name, times in a column.
const LAYOUTS: [(Times, Option<&str>, f64); 7] = [
    (Times::Every(Span(10_000_000)), None, 1.0),
    (Times::Every(Span(1_000)), None, 1e-12),
    (Times::Every(Span(1_000_000_000)), Some("2"), 8e-6),
    (Times::Every(Span(1_000_000_000)), Some("DL_bitrate"), 1e-3),
    (Times::Column("1"), Some("2"), 1.0),
    (Times::Column("time"), Some("rate"), 1e12),
    (Times::Column("2"), Some("1"), 1.0),
];

fuzz_target!(|bytes: &[u8]| {
    match Trace::parse(bytes, "fuzz") {
        Ok(trace) => {
            assert!(trace.millis().is_sorted() && trace.period() > Span::ZERO);
            assert_eq!(Trace::parse(trace.to_text().as_bytes(), "again"), Ok(trace));
        }
        Err(error) => check(&error),
    }
    for (times, column, scale) in LAYOUTS {
        let layout = Layout { times, column, scale, max: MAX };
        survives(bytes, &layout, Rate, Recorded::Rates);
        survives(bytes, &layout, Span, Recorded::Delays);
    }
});

fn check(error: &TraceError) {
    let message = error.to_string();
    assert!(message.len() < 300 && !message.contains(|char: char| char.is_control()));
}

/// What a text holds begins at zero, and is the same once written and read again.
fn survives<T: Copy + PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    layout: &Layout,
    make: impl Fn(u64) -> T,
    recorded: impl Fn(Steps<T>) -> Recorded,
) {
    let steps = match parse(bytes, "fuzz", layout, &make) {
        Ok(steps) => steps,
        Err(error) => return check(&error),
    };
    let begins = steps.steps().to_vec();
    assert!(begins[0].0 == Time(0) && begins.is_sorted_by(|one, next| one.0 < next.0));
    if begins[begins.len() - 1].0 > EXACT {
        return;
    }
    let text = recorded(steps).to_text();
    let again = Layout { times: Times::Column("1"), column: Some("2"), scale: 1.0, max: MAX };
    let read = parse(text.as_bytes(), "again", &again, &make).expect("its own text");
    assert_eq!(read.steps(), begins);
}
