//! The daemon dies, stands still, or loses the network.
use crate::bed::{Bed, Daemon, SECOND, SOON, must, wait_for};
use crate::traffic::{Pattern, STEADY, Traffic};
use ackademy::units::Span;
use nix::sys::signal::Signal;
use std::thread::sleep;
use std::time::Duration;

/// As fast as the window lets them.
const BULK: Pattern = Pattern { chunk: 1 << 16, pause: Duration::ZERO };

#[test]
fn a_hundred_kills_under_twenty_flows_reset_none_and_lose_no_byte() {
    const KILLS: u64 = 100;
    const FLOWS: usize = 20;
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.daemon(&[]);
    // A queue that holds all that 20 senders hand to the device: what stalls is not TCP's own
    // time-out after a loss.
    bed.bottleneck("100mbit", "1mb");
    let traffic = Traffic::start(&bed, FLOWS, BULK);
    for kill in 0..KILLS {
        bed.wait_until_all(FLOWS, "agent");
        daemon.kill();
        bed.wait_until_all(FLOWS, "cubic");
        for flow in bed.status().flows {
            assert!(flow.fallbacks > kill, "a fallback of {} was not counted", flow.local);
        }
        assert_eq!(bed.status().daemon, None);
        daemon = bed.daemon(&[]);
    }
    bed.wait_until_all(FLOWS, "agent");
    let gap = traffic.finish();
    println!("{KILLS} kills, {FLOWS} flows: longest gap {} ms", gap.as_millis_f64());
    assert!(gap < SECOND, "a flow stalled for {gap}");
    daemon.stop();
    bed.finish();
}

#[test]
fn a_flow_is_taken_over_with_the_window_it_has() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    bed.bottleneck("100mbit", "1mb");
    let traffic = Traffic::start(&bed, 1, BULK);
    wait_for("the window has grown", SOON, || bed.status().flows[0].cwnd_pkts > 100);
    daemon.kill();
    bed.wait_until_all(1, "cubic");
    let before = bed.status().flows[0].cwnd_pkts;
    let daemon = bed.daemon(&[]);
    bed.wait_until_all(1, "agent");
    let after = bed.status().flows[0].cwnd_pkts;
    assert!(after >= before / 2, "{before} packets under CUBIC, {after} after");
    traffic.finish();
    daemon.stop();
    bed.finish();
}

#[test]
fn without_pins_a_kill_takes_the_name_and_leaves_the_flow() {
    let Some(bed) = Bed::new() else { return };
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ackademyd"));
    command.args(["kernel", "--ephemeral", "--name", &bed.name]);
    let daemon = Daemon::start(command);
    let traffic = Traffic::start(&bed, 2, STEADY);
    sleep(Duration::from_millis(300));
    daemon.kill();
    wait_for("the name is gone", SOON, || !bed.registered());
    let before = traffic.received();
    wait_for("the flows go on", SOON, || traffic.received() > before + 1_000_000);
    assert!(traffic.finish() < SECOND);
    bed.finish();
}

#[test]
fn a_full_ring_refuses_samples_and_flows_go_on_under_cubic() {
    const FLOWS: usize = 20;
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&["--interval", "0us"]);
    let busy = Pattern { chunk: 3_000, pause: Duration::from_micros(500) };
    let traffic = Traffic::start(&bed, FLOWS, busy);
    bed.wait_until_all(FLOWS, "agent");
    daemon.signal(Signal::SIGSTOP);
    wait_for("the ring overflows", Span(30 * SECOND.0), || bed.status().counts.refused > 0);
    bed.wait_until_all(FLOWS, "cubic");
    wait_for("the table goes on", SOON, || bed.status().flows.iter().all(|flow| flow.refused > 0));
    daemon.signal(Signal::SIGCONT);
    bed.wait_until_all(FLOWS, "agent");
    assert!(traffic.finish() < SECOND);
    daemon.stop();
    bed.finish();
}

#[test]
fn a_link_that_is_away_for_five_seconds_delays_and_loses_nothing() {
    const FLOWS: usize = 5;
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    let traffic = Traffic::start(&bed, FLOWS, STEADY);
    bed.wait_until_all(FLOWS, "agent");
    let end = bed.namespace('b');
    must("ip", &["-n", &end, "link", "set", &end, "down"]);
    sleep(Duration::from_secs(5));
    must("ip", &["-n", &end, "link", "set", &end, "up"]);
    let before = traffic.received();
    // The time-out has doubled to at most 6.4 s meanwhile (RFC 6298 section 5.5).
    wait_for("data arrive again", Span(15 * SECOND.0), || traffic.received() > before + 10_000_000);
    bed.wait_until_all(FLOWS, "agent");
    traffic.finish();
    daemon.stop();
    bed.finish();
}
