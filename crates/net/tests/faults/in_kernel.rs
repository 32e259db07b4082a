//! Decisions in the kernel, which need no process.
use crate::bed::{Bed, SOON, wait_for};
use crate::traffic::{STEADY, Traffic};
use std::process::Output;
use std::thread::sleep;
use std::time::Duration;

const LAW: [&str; 3] = ["--in-kernel", "--cc", "own-queue"];

/// Fails unless it ended with status 2 and this error in one line.
fn refused(output: &Output, wanted: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(wanted) && said.lines().count() == 1, "{said}");
}

#[test]
fn a_law_in_the_kernel_decides_after_the_process_that_registered_it_has_ended() {
    let Some(bed) = Bed::new() else { return };
    assert!(bed.output(&LAW).status.success());
    assert!(bed.registered(), "the name stays");
    let traffic = Traffic::start(&bed, 3, STEADY);
    wait_for("decisions are made", SOON, || {
        bed.status().flows.iter().filter(|flow| flow.decisions > 5).count() == 3
    });
    let before = bed.status();
    assert!(before.in_kernel && before.daemon.is_none(), "{before}");
    // Longer than a flow under a daemon waits for an answer.
    sleep(Duration::from_millis(500));
    let after = bed.status();
    assert!(after.counts.decisions > before.counts.decisions, "{after}");
    assert_eq!((after.counts.fallbacks, after.counts.policy_fallbacks), (0, 0), "{after}");
    assert!(after.flows.iter().all(|flow| flow.state == "agent" && flow.pacing_mbps.is_some()));
    let text = String::from_utf8(bed.output(&["status"]).stdout).unwrap();
    assert!(text.contains("decides in the kernel, without a daemon"), "{text}");
    traffic.finish();
    wait_for("closed flows leave the table", SOON, || bed.status().flows.is_empty());
    bed.finish();
}

#[test]
fn what_decides_in_the_kernel_is_not_taken_over() {
    let Some(bed) = Bed::new() else { return };
    assert!(bed.output(&LAW).status.success());
    refused(&bed.output(&[]), "serves flows in the kernel already");
    refused(&bed.output(&LAW), "serves flows in the kernel already");
    bed.finish();
}

#[test]
fn what_the_kernel_cannot_evaluate_is_refused_before_anything_is_registered() {
    let Some(bed) = Bed::new() else { return };
    let policies = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/policies");
    let policy = format!("policy={policies}/aurora_mixed");
    refused(&bed.output(&["--in-kernel", "--cc", "cubic"]), "--in-kernel: --cc cubic");
    let words = ["--in-kernel", "--cc", "policy", "--param", &policy];
    refused(&bed.output(&words), "action.map = \"rate_change\"");
    assert!(!bed.registered());
    bed.finish();
}
