//! What a daemon with a coupled controller meets where there is no MPTCP.
use crate::bed::{Bed, bounded, inside, must};

#[test]
fn with_mptcp_off_a_coupled_controller_is_refused_in_one_line() {
    let Some(bed) = Bed::new() else { return };
    let end = bed.namespace('a');
    must("ip", &["netns", "exec", &end, "sysctl", "-q", "-w", "net.mptcp.enabled=0"]);
    let command = bed.ackademyd(&["--cc", "lia"]);
    let output = inside(&end, move || bounded(command)).join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.trim_end().lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("net.mptcp.enabled=1") && said.contains("new_reno"), "{said}");
    bed.finish();
}
