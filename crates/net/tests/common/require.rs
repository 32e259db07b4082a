//! `ACKADEMY_REQUIRE`, a comma list of what the machine is said to have: a test that lacks one of them
//! fails there, and is skipped elsewhere. The names are those of `tests/capabilities.txt`.
use std::io::Write;

/// The variable.
pub const VARIABLE: &str = "ACKADEMY_REQUIRE";

const LIST: &str = include_str!("../../../../tests/capabilities.txt");

/// `value`'s names.
///
/// # Errors
///
/// If one of them is unknown: a line with those that are allowed.
pub fn names(value: &str) -> Result<Vec<&str>, String> {
    let allowed: Vec<&str> =
        LIST.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    let names: Vec<&str> =
        value.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    match names.iter().find(|name| !allowed.contains(name)) {
        Some(name) => Err(format!("{VARIABLE}: {name}: allowed: {}", allowed.join(", "))),
        None => Ok(names),
    }
}

/// Whether there is nothing in `lacking`, which says what of `capability` this machine lacks. Says it
/// past the test harness, which keeps what a passing test prints.
///
/// # Panics
///
/// If something is lacking and the variable has `capability`, or a name in it is unknown.
pub fn has(capability: &str, lacking: &[String]) -> bool {
    let value = std::env::var(VARIABLE).unwrap_or_default();
    let required = names(&value).unwrap_or_else(|error| panic!("{error}"));
    if lacking.is_empty() {
        return true;
    }
    let (file, lacking) = (env!("CARGO_CRATE_NAME"), lacking.join("; "));
    let is_required = required.contains(&capability);
    assert!(!is_required, "{VARIABLE} has {capability}, so this test must run, but: {lacking}");
    let _ = writeln!(std::io::stderr(), "skipped: tests of {file}: needs {capability}: {lacking}");
    false
}
