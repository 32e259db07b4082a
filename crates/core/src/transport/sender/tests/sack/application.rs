//! What the application, the receiver and the controller withhold, and ACKs that lie.
use super::*;
use crate::control::{CWND_MAX, SendAction};

// Application

#[test]
fn samples_are_marked_while_the_application_is_slow() {
    let mut bench = Bench::new("", 10);
    bench.supply.unsent = 2 * MSS;
    bench.send(0);
    bench.supply.unsent = u64::MAX;
    bench.send(50); // sent while what was limited is in flight
    bench.ack(100, 2, &[]);
    bench.ack(150, 10, &[]);
    let end = bench.sender.board.nxt();
    bench.ack(250, end, &[]);
    let limited: Vec<u64> = bench.script.acks.iter().map(|ack| ack.app_limited).collect();
    assert_eq!(limited, [0, 1, 0]);
}

#[test]
fn a_window_that_was_not_filled_is_reported() {
    let mut bench = Bench::new("", 10);
    bench.script.control.ssthresh = Bytes(0);
    bench.send(0);
    bench.ack(100, 4, &[]);
    bench.supply.unsent = 0;
    bench.ack(150, 10, &[]);
    bench.supply.unsent = MSS;
    bench.ack(200, bench.sender.board.nxt(), &[]);
    bench.ack(300, bench.sender.board.nxt(), &[]);
    let limited: Vec<u64> = bench.script.acks.iter().map(|ack| ack.cwnd_limited).collect();
    assert_eq!(limited, [1, 1, 1, 0]);
}

#[test]
fn a_flow_that_idled_longer_than_its_timer_is_told_so_once() {
    for (fields, kinds) in [("idle_restart = true", vec![LossKind::Idle]), ("", vec![])] {
        let mut bench = Bench::warm(fields);
        bench.supply.unsent = 0;
        bench.ack(200, 11, &[]);
        bench.supply.unsent = 20 * MSS;
        bench.send(5000);
        assert_eq!(bench.script.kinds(), kinds);
        assert_eq!(bench.sender.stats.declared_lost_bytes, 0);
    }
    let mut bench = Bench::warm("idle_restart = true");
    bench.supply.unsent = 0;
    bench.ack(200, 11, &[]);
    bench.supply.unsent = MSS;
    bench.send(250);
    assert!(bench.script.losses.is_empty(), "a pause below the time-out is no idling");
}

#[test]
fn the_receivers_window_bounds_what_is_out() {
    let mut bench = Bench::new("receiver_window_packets = 3", 10);
    assert_eq!(bench.send(0), [Ok(0), Ok(1), Ok(2)]);
    assert_eq!(bench.ack(100, 1, &[]), [Ok(3)]);
}

#[test]
fn the_largest_window_puts_out_two_million_segments() {
    let mut bench = Bench::new("", CWND_MAX.0 / MSS);
    assert_eq!(bench.send(0).len(), 1 << 21, "each takes some 70 bytes");
}

#[test]
fn the_last_packet_of_a_transfer_is_as_small_as_what_is_left() {
    let mut bench = Bench::new("", 10);
    bench.supply.unsent = MSS + 1;
    bench.send(0);
    assert_eq!(bench.sender.stats.sent_bytes, MSS + 1);
}

// Untrusted ACKs

#[test]
fn acks_of_what_was_never_sent_change_nothing() {
    let mut bench = Bench::warm("");
    let before = (bench.sender.board.una(), bench.pipe());
    bench.ack(200, 1000, &[]);
    bench.ack(201, 1, &[(500, 600)]);
    bench.ack(202, 0, &[(0, 1)]);
    assert_eq!((bench.sender.board.una(), bench.pipe()), before);
    assert!(bench.script.acks.is_empty() && bench.script.losses.is_empty());
}

#[test]
fn a_held_packet_waits_for_the_next_ack_and_not_for_pacing() {
    let mut script = Script::new(10);
    script.send_action = Some(SendAction::Send);
    script.control.pacing_rate = Rate(8_000_000);
    let fields = "ack_every = 1\ntlp = false";
    let sender = SackSender::new(&config(fields), &script.governor());
    let mut bench =
        Bench { sender, script, supply: Supply { unsent: u64::MAX, ..Supply::default() }, now: 0 };
    assert_eq!(bench.send(0), [Ok(0)]);
    bench.script.send_action = Some(SendAction::Hold);
    assert_eq!(bench.send(1), []);
    assert!(bench.sender.deadline() > at(100), "asked again at {}", bench.sender.deadline());
    bench.script.send_action = Some(SendAction::Send);
    assert_eq!(bench.ack(50, 1, &[]), [Ok(1)]);
    assert_eq!(
        bench.script.acks[0].cwnd_limited, 1,
        "the controller, not the application, held back"
    );
}

/// Whether the samples of the packets after `before` were application-limited.
fn is_limited_after(bench: &mut Bench, before: &str) -> bool {
    bench.script.acks.clear();
    bench.ack(200, 11, &[]);
    bench.supply = Supply { unsent: u64::MAX, ..Supply::default() };
    bench.send(210);
    bench.ack(310, 12, &[]);
    let last = bench.script.acks.last().unwrap_or_else(|| panic!("{before}: nothing acknowledged"));
    last.app_limited == 1
}

#[test]
fn the_application_alone_makes_samples_application_limited() {
    // Linux: tcp_rate_check_app_limited; draft-ietf-ccwg-bbr: a receive window is a bottleneck.
    let mut idle = Bench::warm("");
    idle.supply.unsent = 0;
    assert!(is_limited_after(&mut idle, "no data"));
    let mut shared = Bench::warm("");
    shared.supply = Supply { unsent: 0, receiver_full: true };
    assert!(!is_limited_after(&mut shared, "the window that subflows share"));
    let mut full = Bench::new("ack_every = 1\nreceiver_window_packets = 5", 1);
    full.send(0);
    full.script.control.cwnd = Bytes(10 * MSS);
    assert_eq!(full.ack(100, 1, &[]).len(), 5);
    full.ack(200, 6, &[]);
    full.ack(300, 11, &[]);
    assert!(full.script.acks.iter().all(|ack| ack.app_limited == 0));
    // A full receiver is no use of the window; with both full the window counts.
    assert!(full.script.acks.iter().skip(1).all(|ack| ack.cwnd_limited == 0));
    full.script.control.cwnd = Bytes(5 * MSS);
    full.ack(400, 16, &[]);
    full.ack(500, 17, &[]);
    assert_eq!(full.script.acks.last().unwrap().cwnd_limited, 1);
}
