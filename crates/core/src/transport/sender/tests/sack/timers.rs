//! Probes and time-outs.
use super::*;

// RFC 8985, tail loss probes

#[test]
fn after_two_round_trips_of_silence_new_data_probes() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    assert_eq!(bench.sender.deadline(), at(300));
    assert_eq!(bench.expire(300), [Ok(11)]);
    // One probe per silence: what follows is the time-out, which starts anew.
    assert_eq!(bench.sender.deadline(), at(300) + bench.sender.rto());
    assert!(bench.script.losses.is_empty());
}

#[test]
fn without_new_data_the_last_packet_probes() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    bench.supply.unsent = 0;
    assert_eq!(bench.expire(300), [Err(10)]);
    assert_eq!(bench.pipe(), 10);
    assert!(bench.script.losses.is_empty());
}

#[test]
fn a_single_packet_waits_for_a_delayed_ack_before_it_probes() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    bench.supply.unsent = 0;
    bench.ack(200, 10, &[]);
    assert_eq!(bench.sender.deadline(), at(200 + 200 + 200));
}

#[test]
fn a_probe_takes_the_place_of_a_time_out_that_would_come_first() {
    let mut bench = Bench::warm("rto_min_ms = 200");
    bench.supply.unsent = 0;
    bench.ack(200, 10, &[]);
    let rto = at(200) + bench.sender.rto();
    assert!(rto < at(600) && bench.sender.deadline() == rto);
    let sent = bench.expire(rto.0.div_ceil(1_000_000));
    assert_eq!(sent, [Err(10)]);
    assert!(bench.script.losses.is_empty(), "no time-out, but a probe");
    let again = at(bench.now) + bench.sender.rto();
    assert_eq!(bench.sender.deadline(), again, "the time-out comes after it");
    bench.expire(again.0.div_ceil(1_000_000));
    assert_eq!(bench.script.kinds(), [LossKind::Timeout]);
}

#[test]
fn before_the_first_sample_a_probe_waits_a_second() {
    let mut bench = Bench::new("rto_initial_ms = 3000", 4);
    bench.send(0);
    assert_eq!(bench.sender.deadline(), at(1000));
}

#[test]
fn a_loss_that_the_probe_repaired_is_congestion() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    bench.supply.unsent = 0;
    bench.ack(200, 10, &[]);
    assert_eq!(bench.expire(600), [Err(10)]);
    bench.supply.unsent = u64::MAX;
    assert_eq!(bench.ack(700, 11, &[]).len(), 10);
    assert!(bench.script.losses.is_empty(), "the first copy may have come, late");
    bench.ack(800, 12, &[]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    assert_eq!(
        bench.script.losses[0].inflight,
        Bytes(10 * MSS),
        "what was in flight is the window"
    );
    assert_eq!(bench.sender.stats.recoveries, 1);
}

#[test]
fn a_probe_of_what_had_arrived_is_not() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    bench.supply.unsent = 0;
    bench.ack(200, 10, &[]);
    assert_eq!(bench.expire(600), [Err(10)]);
    bench.supply.unsent = u64::MAX;
    bench.ack(610, 11, &[]); // the first copy, late
    bench.receive(700, &Packet { repeat: true, ..ack(11, &[]) });
    assert!(bench.sender.probe.is_none());
    bench.ack(710, 12, &[]);
    assert!(bench.script.losses.is_empty());
}

#[test]
fn a_recovery_answers_for_what_a_probe_repaired_too() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    bench.supply.unsent = 0;
    bench.ack(200, 9, &[]);
    // The last two were lost; the probe repairs one, and its acknowledgement tells of the other.
    assert_eq!(bench.expire(400), [Err(10)]);
    assert_eq!(bench.ack(500, 9, &[(10, 11)]), [Err(9)]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    bench.supply.unsent = u64::MAX;
    bench.ack(700, 11, &[]);
    bench.ack(800, 12, &[]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
}

#[test]
fn nothing_probes_during_recovery_or_with_a_gap() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    bench.ack(200, 1, &[(2, 3)]);
    assert_eq!(bench.sender.probe_deadline, Time::NEVER);
    bench.ack(201, 1, &[(2, 5)]);
    assert_eq!(bench.sender.probe_deadline, Time::NEVER);
}

// RFC 6298

const TIMER: &str = "tlp = false\nrto_min_ms = 1000\nrto_initial_ms = 1000";

#[test]
fn the_timer_starts_with_the_first_packet_and_not_with_the_next() {
    let mut bench = Bench::new(TIMER, 1);
    bench.send(0);
    bench.sender.allowed.cwnd = 2 * MSS;
    bench.send(300);
    assert_eq!(bench.sender.deadline(), at(1000)); // rule 5.1
}

#[test]
fn the_timer_stops_when_all_is_acknowledged() {
    let mut bench = Bench::warm(TIMER);
    bench.supply.unsent = 0;
    bench.ack(200, 11, &[]);
    assert_eq!(bench.sender.deadline(), Time::NEVER); // rule 5.2
}

#[test]
fn an_ack_of_new_data_starts_the_timer_anew_and_a_duplicate_does_not() {
    let mut bench = Bench::warm(TIMER);
    bench.ack(200, 5, &[]);
    let due = bench.sender.rto_deadline;
    assert_eq!(due, at(200) + bench.sender.rto()); // rule 5.3
    bench.ack(210, 5, &[(6, 7)]);
    assert_eq!(bench.sender.rto_deadline, due);
}

#[test]
fn the_repair_of_the_first_hole_starts_the_timer_anew_and_of_another_does_not() {
    let mut bench = Bench::warm(&format!("{COUNTING}\nrto_min_ms = 1000"));
    let sent = bench.ack(203, 1, &[(2, 5)]);
    assert_eq!(sent[0], Err(1));
    let due = bench.sender.rto_deadline;
    assert_eq!(due, at(203) + bench.sender.rto()); // Linux's rule
    let sent = bench.ack(210, 1, &[(2, 5), (6, 11)]); // now 5 is missing too
    assert!(sent.contains(&Err(5)), "{sent:?}");
    assert_eq!(bench.sender.rto_deadline, due);
}

#[test]
fn a_time_out_sends_the_first_packet_doubles_the_timer_and_starts_it() {
    let mut bench = Bench::warm(TIMER);
    let rto = bench.sender.rto();
    let due = bench.sender.deadline().0 / 1_000_000;
    assert_eq!(bench.expire(due), [Err(1)]); // rule 5.4
    assert_eq!(bench.sender.rto(), rto * 2); // rule 5.5
    assert_eq!(bench.sender.deadline(), at(due) + rto * 2); // rule 5.6
    assert_eq!(bench.script.kinds(), [LossKind::Timeout]);
    assert_eq!(bench.sender.stats.timeouts, 1);
}

#[test]
fn the_first_packet_leaves_even_where_rack_keeps_a_window_in_flight() {
    let mut bench = Bench::warm("tlp = false");
    // 1 is the only one old enough to be lost.
    bench.sender.rack.rtt = Span::from_millis(1);
    bench.script.control.cwnd = Bytes(19 * MSS);
    bench.ack(300, 2, &[]);
    let due = bench.sender.deadline().0.div_ceil(1_000_000);
    bench.sender.allowed.cwnd = 30 * MSS;
    assert!(!bench.send(due).is_empty());
    assert_eq!(bench.expire(due), [Err(2)]);
    assert!(bench.pipe() > 1);
}

#[test]
fn a_time_out_spares_what_was_sent_within_a_round_trip() {
    let mut bench = Bench::warm("tlp = false");
    bench.ack(280, 6, &[]); // five new packets at 280 ms; 6 to 10 left at 100 ms
    let due = at(379);
    bench.sender.rto_deadline = due;
    bench.expire(379);
    assert_eq!(bench.script.losses[0].lost, Bytes(5 * MSS));
    // RACK's round trip is 180 ms: 11 to 15 are younger than that.
    assert_eq!(bench.sender.rack.rtt, Span::from_millis(180));
}

#[test]
fn without_rack_a_time_out_declares_everything_lost() {
    let mut bench = Bench::warm(COUNTING);
    bench.ack(200, 1, &[(3, 5)]);
    let due = bench.sender.deadline().0.div_ceil(1_000_000);
    bench.expire(due);
    // 12 in flight and 2 of them sacked.
    assert_eq!(bench.script.losses[0].lost, Bytes(10 * MSS));
    assert_eq!(bench.pipe(), 1);
}

#[test]
fn no_sample_is_taken_of_a_packet_sent_twice() {
    let mut bench = Bench::warm(TIMER);
    let (srtt, samples) = (bench.sender.rtt.srtt(), bench.sender.stats.rtt_samples);
    let due = bench.sender.deadline().0 / 1_000_000;
    bench.expire(due);
    bench.ack(due + 10, 2, &[]);
    assert_eq!(bench.sender.rtt.srtt(), srtt);
    assert_eq!(bench.sender.stats.rtt_samples, samples);
    assert_eq!(bench.script.acks[0].rtt, Span::ZERO);
}

#[test]
fn a_second_time_out_of_one_packet_reports_the_first_ones_flight() {
    let mut bench = Bench::warm(TIMER);
    for _ in 0..3 {
        let due = bench.sender.deadline().0 / 1_000_000;
        bench.expire(due);
    }
    let flights: Vec<u64> = bench.script.losses.iter().map(|loss| loss.inflight.0 / MSS).collect();
    assert_eq!(flights, [10, 10, 10]);
}

#[test]
fn a_time_out_of_what_was_answered_says_so() {
    // RFC 5681 section 3.1: of one packet the first lowers the threshold; the next packet's is a first one again.
    let (first, again) = (LossKind::Timeout, LossKind::TimeoutAgain);
    let mut bench = Bench::warm(&format!("{TIMER}\ntimestamps = false"));
    for _ in 0..3 {
        let due = bench.sender.rto_deadline.0.div_ceil(1_000_000);
        bench.expire(due);
    }
    assert_eq!(bench.script.kinds(), [first, again, again]);
    let now = bench.now;
    bench.ack(now + 100, 2, &[]);
    let due = bench.sender.rto_deadline.0.div_ceil(1_000_000);
    bench.expire(due);
    assert_eq!(bench.script.kinds(), [first, again, again, first]);
    // Linux: tcp_enter_loss, within a fast recovery.
    let mut bench = Bench::warm(&format!("{COUNTING}\nrto_min_ms = 1000"));
    bench.ack(203, 1, &[(2, 5)]);
    let due = bench.sender.rto_deadline.0.div_ceil(1_000_000);
    bench.expire(due);
    assert_eq!(bench.script.kinds(), [LossKind::Gap, again]);
}
