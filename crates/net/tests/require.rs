//! `ACKADEMY_REQUIRE` turns what would be skipped into a failure.
use crate::common::machine::has_iperf3;
use crate::common::require::{VARIABLE, names};
use std::process::{Command, Output};

#[test]
fn known_names_are_taken_with_spaces_and_empty_parts() {
    assert_eq!(names(""), Ok(vec![]));
    assert_eq!(names("kernel, iperf3,,links"), Ok(vec!["kernel", "iperf3", "links"]));
}

#[test]
fn an_unknown_name_is_an_error_that_tells_the_allowed_ones() {
    let error = names("kernel,kernal").expect_err("kernal is none");
    assert!(
        error.starts_with("ACKADEMY_REQUIRE: kernal: allowed: kernel, links, iperf3"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn the_environment_names_known_capabilities() {
    let value = std::env::var(VARIABLE).unwrap_or_default();
    assert!(names(&value).is_ok(), "{:?}", names(&value));
}

/// What the tests below run in a process of its own.
#[test]
#[ignore = "a part of the tests below"]
fn needs_iperf3() {
    has_iperf3();
}

/// The test above on a machine without it, where `required` is required.
fn without_iperf3(required: &str) -> Output {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", "require::needs_iperf3", "--nocapture"])
        .env("PATH", "/nonexistent")
        .env(VARIABLE, required)
        .output()
        .expect("this program runs")
}

#[test]
fn what_is_lacking_fails_the_test_where_it_is_required() {
    let output = without_iperf3("links,iperf3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("ACKADEMY_REQUIRE has iperf3, so this test must run, but: iperf3: "),
        "{said}"
    );
}

#[test]
fn what_is_lacking_is_said_where_it_is_not_required() {
    let output = without_iperf3("links");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("skipped: tests of no_network: needs iperf3: iperf3: "), "{said}");
}
