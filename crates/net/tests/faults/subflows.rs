//! What may go wrong under connections of MPTCP whose subflows one controller governs.
use crate::bed::{Bed, SECOND, SOON, bounded, inside, must, wait_for};
use crate::traffic::{Pattern, Traffic};
use ackademy::units::Span;
use ackademy_net::clock;
use std::time::Duration;

const CONNECTIONS: usize = 3;
const SUBFLOWS: usize = 2 * CONNECTIONS;
const BULK: Pattern = Pattern { chunk: 1 << 16, pause: Duration::ZERO };
/// The watchdog's 200 ms, an acknowledgement that finds it over, and this test's own look.
const FALLBACK: Span = Span(300_000_000);

/// Kills the daemon under traffic and starts it again; the median time until all subflows were CUBIC's.
fn kill(times: usize) -> Option<Span> {
    let bed = Bed::new()?;
    if !bed.second_address() {
        return None;
    }
    let lia = ["--cc", "lia"];
    let mut daemon = bed.daemon(&lia);
    bed.bottleneck("100mbit", "1mb");
    let traffic = Traffic::start_mptcp(&bed, CONNECTIONS, BULK);
    let mut waited = Vec::new();
    for _ in 0..times {
        bed.wait_until_all(SUBFLOWS, "agent");
        let connections = bed.status().connections;
        assert_eq!(connections.len(), CONNECTIONS, "{connections:?}");
        assert!(connections.iter().all(|one| one.flows.len() == 2), "{connections:?}");
        daemon.kill();
        let killed = clock::now();
        bed.wait_until_all(SUBFLOWS, "cubic");
        waited.push(clock::now().since(killed));
        daemon = bed.daemon(&lia);
    }
    bed.wait_until_all(SUBFLOWS, "agent");
    let before = traffic.received();
    wait_for("the connections go on", SOON, || traffic.received() > before + 1_000_000);
    let gap = traffic.finish();
    assert!(gap < SECOND, "a connection stalled for {gap}");
    daemon.stop();
    bed.finish();
    waited.sort();
    let (median, longest) = (waited[times / 2], waited[times - 1]);
    println!("{times} kills: fallback after {median}, at most {longest}; longest gap {gap}");
    Some(median)
}

#[test]
fn kills_under_mptcp_leave_connections_alive_whole_and_under_cubic_soon() {
    if let Some(median) = kill(5) {
        assert!(median < FALLBACK, "{median}");
    }
}

#[test]
#[ignore = "a minute"]
fn a_hundred_kills_under_mptcp_lose_no_byte_and_no_connection() {
    if let Some(median) = kill(100) {
        assert!(median < FALLBACK, "{median}");
    }
}

#[test]
fn with_mptcp_off_a_coupled_controller_is_refused_in_one_line() {
    let Some(bed) = Bed::new() else { return };
    let end = bed.namespace('a');
    must("ip", &["netns", "exec", &end, "sysctl", "-q", "-w", "net.mptcp.enabled=0"]);
    let refused = |words: &[&str]| {
        let command = bed.ackademyd(words);
        inside(&end, move || bounded(command)).join().unwrap()
    };
    let output = refused(&["--cc", "lia"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.trim_end().lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("net.mptcp.enabled=1") && said.contains("new_reno"), "{said}");
    bed.finish();
}
