//! One test per rule of RFC 6675, RFC 8985, RFC 6937, RFC 6298 and their neighbours, on a sender
//! whose ACKs are written by hand.
use super::super::tests::{MSS, Script, ack, at, config, numbers};
use super::*;
use crate::control::Verdict;

/// A sender with its controller and clock.
struct Bench {
    sender: SackSender,
    script: Script,
    supply: Supply,
    now: u64,
}

impl Bench {
    /// With a window of `packets` and no end of data.
    fn new(fields: &str, packets: u64) -> Self {
        let mut script = Script::new(packets);
        let sender = SackSender::new(&config(fields), &script.governor());
        Self { sender, script, supply: Supply { unsent: u64::MAX }, now: 0 }
    }

    /// Everything that may leave at `millis`.
    fn send(&mut self, millis: u64) -> Vec<Result<u64, u64>> {
        self.now = millis;
        let mut sent = Vec::new();
        while let Some(out) =
            self.sender.transmit(at(millis), &mut self.script.governor(), &mut self.supply)
        {
            sent.push(out);
        }
        numbers(&sent)
    }

    /// An ACK arrives; then everything that it lets out.
    fn ack(&mut self, millis: u64, seq: u64, blocks: &[(u64, u64)]) -> Vec<Result<u64, u64>> {
        self.hear(millis, &ack(seq, blocks))
    }

    fn hear(&mut self, millis: u64, packet: &Packet) -> Vec<Result<u64, u64>> {
        let mut governor = self.script.governor();
        self.sender.on_ack(at(millis), packet, &mut governor, &mut self.supply);
        self.send(millis)
    }

    /// What is due at `millis` happens; then everything that it lets out.
    fn expire(&mut self, millis: u64) -> Vec<Result<u64, u64>> {
        assert!(self.sender.deadline() <= at(millis), "nothing is due: {}", self.sender.deadline());
        let mut governor = self.script.governor();
        self.sender.on_deadline(at(millis), &mut governor, &mut self.supply);
        self.send(millis)
    }

    /// One round trip of 100 ms: a first sample, ten packets in flight at 100 ms.
    fn warm(fields: &str) -> Self {
        let mut bench = Self::new(&format!("ack_every = 1\n{fields}"), 1);
        assert_eq!(bench.send(0), [Ok(0)]);
        bench.script.control.cwnd = Bytes(10 * MSS);
        assert_eq!(bench.ack(100, 1, &[]).len(), 10);
        bench.script.acks.clear();
        bench
    }

    fn pipe(&self) -> u64 {
        self.sender.board.inflight() / MSS
    }
}

const COUNTING: &str = "rack = false\ntlp = false\nprr = false";

// RFC 6675

#[test]
fn two_packets_beyond_a_gap_are_no_loss_and_three_are() {
    let mut bench = Bench::warm(COUNTING);
    bench.ack(200, 1, &[(2, 4)]);
    assert!(bench.script.losses.is_empty());
    let sent = bench.ack(201, 1, &[(2, 5)]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    assert_eq!(bench.script.losses[0].lost, Bytes(MSS));
    assert_eq!(sent[0], Err(1));
}

#[test]
fn packets_sacked_in_several_blocks_count_together() {
    let mut bench = Bench::warm(COUNTING);
    bench.ack(200, 1, &[(7, 8), (5, 6), (3, 4)]);
    // Three are delivered above 1 and 2, two above 4, one above 6.
    assert_eq!(bench.script.losses[0].lost, Bytes(2 * MSS));
}

#[test]
fn the_pipe_leaves_out_what_is_sacked_or_lost_and_counts_what_is_sent_again() {
    let mut bench = Bench::warm(COUNTING);
    assert_eq!(bench.pipe(), 10);
    bench.script.control.cwnd = Bytes(2 * MSS); // halved to one packet
    assert_eq!(bench.ack(200, 1, &[(4, 8)]), [Err(1)]);
    // Of 1 to 10, 4 are sacked and 3 lost, of which one is out again.
    assert_eq!(bench.pipe(), 3 + 1);
    bench.script.control.cwnd = Bytes(4 * MSS);
    assert_eq!(bench.ack(201, 1, &[(4, 9)]), [Err(2)]);
    assert_eq!(bench.pipe(), 4);
}

#[test]
fn in_recovery_without_new_data_what_is_not_lost_leaves_again_only_on_request() {
    let recover = |fields: &str| {
        let mut bench = Bench::warm(&format!("{COUNTING}\n{fields}"));
        bench.supply.unsent = 0;
        bench.script.control.cwnd = Bytes(20 * MSS); // halved by the loss
        let sent = bench.ack(200, 1, &[(2, 5)]);
        (sent, bench.pipe())
    };
    // 1 is lost and leaves again; 5 to 10 are in flight.
    assert_eq!(recover(""), (vec![Err(1)], 1 + 6));
    // A window of 10 has room for 3 more, and both copies count.
    assert_eq!(recover("rescue = true"), (vec![Err(1), Err(5), Err(6), Err(7)], 10));
}

#[test]
fn a_second_copy_counts_in_the_pipe_until_it_is_cumulatively_acknowledged() {
    let mut bench = Bench::warm(&format!("{COUNTING}\nrescue = true"));
    bench.supply.unsent = 0;
    bench.script.control.cwnd = Bytes(20 * MSS); // halved by the loss
    bench.ack(200, 1, &[(2, 5)]);
    bench.script.control.cwnd = Bytes(MSS);
    bench.ack(201, 1, &[(2, 8)]); // first copies of 5 to 7
    assert_eq!(bench.pipe(), 10 - 3);
    bench.ack(202, 8, &[]); // 1 and everything up to 7
    assert_eq!(bench.pipe(), 3);
}

#[test]
fn with_rescue_prr_exceeds_what_was_delivered_only_when_a_repair_is_acknowledged() {
    let budget = |rescue: bool, repaired: bool| {
        let mut bench = Bench::warm(&format!("rack = false\ntlp = false\nrescue = {rescue}"));
        bench.sender.allowed.cwnd = 20 * MSS; // ssthresh, above the pipe of 10
        let delivered = Delivered { bytes: MSS, repaired, ..Delivered::default() };
        bench.sender.reduce_proportionally(&delivered, false);
        bench.sender.prr.budget / MSS
    };
    assert_eq!((budget(false, false), budget(false, true)), (2, 2));
    assert_eq!((budget(true, false), budget(true, true)), (1, 2));
}

#[test]
fn losses_of_one_episode_are_answered_once() {
    let mut bench = Bench::warm(COUNTING);
    bench.ack(200, 1, &[(2, 5)]);
    bench.ack(201, 1, &[(6, 9), (2, 5)]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::More]);
    assert_eq!(bench.sender.stats.recoveries, 1);
    // All that was out is acknowledged: the next loss is a new episode.
    let end = bench.sender.board.nxt();
    bench.script.control.cwnd = Bytes(10 * MSS);
    bench.ack(300, end, &[]);
    assert_eq!(bench.sender.episode, Episode::None);
    let next = bench.sender.board.nxt();
    bench.ack(400, end, &[(end + 1, next)]);
    assert_eq!(bench.script.kinds().last(), Some(&LossKind::Gap));
}

#[test]
fn counting_does_not_find_a_lost_retransmission() {
    let mut bench = Bench::warm(COUNTING);
    assert_eq!(bench.ack(200, 1, &[(2, 5)])[0], Err(1));
    let sent = bench.ack(400, 1, &[(2, 11)]);
    assert!(sent.iter().all(|packet| *packet != Err(1)), "{sent:?}");
}

#[test]
fn repaired_packets_leave_no_trace_without_rack() {
    let mut bench = Bench::warm(COUNTING);
    for round in 0..50 {
        let first = bench.sender.board.una();
        let millis = 200 + 100 * round;
        let next = bench.sender.board.nxt();
        bench.script.control.cwnd = Bytes(20 * MSS);
        bench.ack(millis, first, &[(first + 1, next)]);
        bench.ack(millis + 90, bench.sender.board.nxt(), &[]);
        bench.ack(millis + 95, bench.sender.board.nxt(), &[]);
    }
    assert!(bench.sender.stats.retransmitted_packets >= 50);
    assert!(!bench.sender.board.has_gaps(), "retransmissions pile up");
}

// RFC 3042, RFC 5681

#[test]
fn each_of_the_first_two_duplicate_acks_lets_a_new_packet_out() {
    let mut bench = Bench::warm(COUNTING);
    assert_eq!(bench.ack(200, 1, &[(2, 3)]), [Ok(11)]);
    assert_eq!(bench.ack(201, 1, &[(2, 4)]), [Ok(12)]);
}

#[test]
fn a_window_does_not_grow_on_a_duplicate_ack() {
    let mut bench = Bench::warm(COUNTING);
    bench.ack(200, 1, &[(2, 3)]);
    bench.ack(201, 3, &[]);
    let recovering: Vec<u64> = bench.script.acks.iter().map(|ack| ack.recovering).collect();
    assert_eq!(recovering, [1, 0]);
}

#[test]
fn a_delayed_ack_counts_all_its_packets_and_its_range_of_round_trips() {
    let mut bench = Bench::new("", 4);
    assert_eq!(bench.send(0), [Ok(0), Ok(1), Ok(2), Ok(3)]);
    bench.ack(100, 1, &[]); // sends 4
    bench.ack(130, 5, &[]); // 1, 2, 3 sent at 0 and 4 sent at 100
    let ack = bench.script.acks[1];
    assert_eq!(ack.acked, Bytes(4 * MSS));
    assert_eq!((ack.rtt, ack.rtt_max), (Span::from_millis(30), Span::from_millis(130)));
    assert_eq!(ack.delivered, Bytes(5 * MSS));
}

// RFC 8985, RACK

#[test]
fn what_was_sent_a_round_trip_and_more_before_a_delivered_packet_is_lost() {
    let mut bench = Bench::warm("tlp = false");
    // 1 to 10 left at 100 ms; 11 leaves at 150 ms and arrives.
    bench.script.control.cwnd = Bytes(11 * MSS);
    assert_eq!(bench.send(150), []); // the sender has not been told yet
    assert_eq!(bench.ack(200, 2, &[]), [Ok(11), Ok(12)]);
    // Delivered out of order, one packet only: RACK waits a quarter of the smallest round trip.
    bench.ack(310, 2, &[(11, 12)]);
    assert!(bench.script.losses.is_empty() || bench.script.kinds() == [LossKind::Gap]);
    assert_eq!(bench.sender.rack.rtt, Span::from_millis(110));
    // Packets 2 to 10, sent at 100 ms, are due at 100 + 110 + 25 ms: long past.
    assert_eq!(bench.script.losses[0].lost, Bytes(9 * MSS));
}

#[test]
fn a_packet_that_may_only_be_late_is_given_a_quarter_of_the_round_trip() {
    let mut bench = Bench::warm("tlp = false");
    // 1 is missing; 2 has come after 100 ms.
    bench.ack(200, 1, &[(2, 3)]);
    assert!(bench.script.losses.is_empty());
    assert_eq!(bench.sender.deadline(), at(225));
    assert_eq!(bench.expire(225)[0], Err(1));
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
}

#[test]
fn a_late_packet_that_comes_in_time_is_no_loss() {
    let mut bench = Bench::warm("tlp = false");
    bench.ack(200, 1, &[(2, 3)]);
    bench.ack(210, 3, &[]);
    assert!(bench.sender.reordering_seen && bench.script.losses.is_empty());
    assert_eq!(bench.sender.reorder_deadline, Time::NEVER);
}

#[test]
fn without_reordering_three_sacked_packets_end_the_wait() {
    let mut bench = Bench::warm("tlp = false");
    bench.ack(200, 1, &[(2, 5)]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    assert_eq!(bench.sender.rack.window, Span::ZERO);
}

#[test]
fn with_reordering_three_sacked_packets_do_not() {
    let mut bench = Bench::warm("tlp = false");
    bench.sender.reordering_seen = true;
    bench.ack(200, 1, &[(2, 5)]);
    assert!(bench.script.losses.is_empty());
    assert_eq!(bench.sender.deadline(), at(225));
}

#[test]
fn duplicates_widen_the_window_up_to_srtt_and_sixteen_recoveries_narrow_it() {
    let mut bench = Bench::warm("tlp = false");
    bench.sender.reordering_seen = true;
    for _ in 0..2 {
        bench.hear(190, &Packet { again: true, ..ack(1, &[]) });
    }
    bench.ack(200, 1, &[(2, 3)]);
    assert_eq!(bench.sender.rack.window, Span::from_millis(75));
    for _ in 0..20 {
        bench.sender.note_duplicate(true);
    }
    bench.ack(201, 1, &[(2, 4)]);
    assert_eq!(bench.sender.rack.window, bench.sender.rtt.srtt());
    for _ in 0..RACK_PERSISTENCE {
        bench.sender.episode = Episode::Fast(0);
        bench.sender.close_episode();
    }
    assert_eq!(bench.sender.rack_multiplier, 1);
}

#[test]
fn rack_finds_a_lost_retransmission() {
    let mut bench = Bench::warm("tlp = false\nprr = false");
    let sent = bench.ack(200, 1, &[(2, 5)]);
    assert_eq!(sent[0], Err(1));
    bench.script.control.cwnd = Bytes(20 * MSS);
    bench.ack(201, 1, &[(2, 6)]); // new packets leave after the retransmission
    let next = bench.sender.board.nxt();
    let sent = bench.ack(302, 1, &[(next - 1, next), (2, 6)]);
    assert!(sent.contains(&Err(1)), "{sent:?}");
    assert_eq!(bench.script.kinds()[0], LossKind::Gap);
    assert!(bench.script.kinds()[1..].iter().all(|kind| *kind == LossKind::More));
}

// RFC 8985, tail loss probes

#[test]
fn after_two_round_trips_of_silence_new_data_probes() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    assert_eq!(bench.sender.deadline(), at(300));
    assert_eq!(bench.expire(300), [Ok(11)]);
    // One probe per silence: what follows is the time-out, which starts anew.
    assert_eq!(bench.sender.deadline(), at(300) + bench.sender.rtt.rto());
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
    bench.ack(700, 11, &[]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    assert_eq!(bench.sender.stats.recoveries, 1);
}

#[test]
fn a_probe_of_what_had_arrived_is_not() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    bench.supply.unsent = 0;
    bench.ack(200, 10, &[]);
    assert_eq!(bench.expire(600), [Err(10)]);
    bench.ack(610, 11, &[]); // the first copy, late
    bench.script.losses.clear();
    bench.hear(700, &Packet { again: true, ..ack(11, &[]) });
    assert!(bench.script.losses.is_empty());
    assert!(bench.sender.probe.is_none());
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
    assert_eq!(due, at(200) + bench.sender.rtt.rto()); // rule 5.3
    bench.ack(210, 5, &[(6, 7)]);
    assert_eq!(bench.sender.rto_deadline, due);
}

#[test]
fn the_repair_of_the_first_hole_starts_the_timer_anew_and_of_another_does_not() {
    let mut bench = Bench::warm(&format!("{COUNTING}\nrto_min_ms = 1000"));
    let sent = bench.ack(203, 1, &[(2, 5)]);
    assert_eq!(sent[0], Err(1));
    let due = bench.sender.rto_deadline;
    assert_eq!(due, at(203) + bench.sender.rtt.rto()); // Linux's rule
    let sent = bench.ack(210, 1, &[(2, 5), (6, 11)]); // now 5 is missing too
    assert!(sent.contains(&Err(5)), "{sent:?}");
    assert_eq!(bench.sender.rto_deadline, due);
}

#[test]
fn a_time_out_sends_the_first_packet_doubles_the_timer_and_starts_it() {
    let mut bench = Bench::warm(TIMER);
    let rto = bench.sender.rtt.rto();
    let due = bench.sender.deadline().0 / 1_000_000;
    assert_eq!(bench.expire(due), [Err(1)]); // rule 5.4
    assert_eq!(bench.sender.rtt.rto(), rto * 2); // rule 5.5
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

// RFC 6937

/// Ten in flight, 1 lost, window 5, no more than the first retransmission out yet.
fn reducing() -> (Bench, Vec<Result<u64, u64>>) {
    let mut bench = Bench::warm("tlp = false");
    let sent = bench.ack(200, 1, &[(2, 5)]);
    (bench, sent)
}

#[test]
fn a_reduction_begins_with_the_retransmission() {
    let (bench, sent) = reducing();
    // 3 delivered of 10, half of it: one packet and a half.
    assert_eq!(sent, [Err(1)]);
    assert_eq!((bench.sender.prr.recover_fs, bench.sender.allowed.cwnd), (10 * MSS, 5 * MSS));
}

#[test]
fn while_the_pipe_is_above_the_window_what_is_sent_is_in_proportion_to_what_is_delivered() {
    let (mut bench, first) = reducing();
    let mut out = first.len() as u64;
    for end in 6..10 {
        out += bench.ack(200 + end, 1, &[(2, end)]).len() as u64;
        let delivered = end - 2;
        if bench.pipe() > 5 {
            assert_eq!(out, delivered * 5 / 10, "{delivered} delivered");
        }
    }
    assert_eq!(bench.pipe(), 5);
}

#[test]
fn once_below_the_window_no_ack_lets_out_more_than_it_delivered_and_one() {
    let mut bench = Bench::warm("tlp = false");
    bench.script.control.cwnd = Bytes(20 * MSS);
    bench.ack(200, 2, &[]); // 20 in flight: 2 to 21
    assert_eq!(bench.pipe(), 20);
    // Only 3 of them survive; the window is 10, the pipe is nearly empty.
    let sent = bench.ack(300, 2, &[(19, 22)]);
    assert!((1..=4).contains(&sent.len()), "{sent:?}");
    assert!(bench.pipe() < 10);
    let before = bench.pipe();
    let una = bench.sender.board.una();
    let sent = bench.ack(400, una + 1, &[(19, 22)]);
    assert!(sent.len() <= 2, "{sent:?} after one delivery with {before} in the pipe");
}

#[test]
fn without_prr_the_window_alone_decides() {
    let mut bench = Bench::warm("tlp = false\nprr = false");
    // Pipe 6 is above the window of 5: the first retransmission leaves, then nothing.
    assert_eq!(bench.ack(200, 1, &[(2, 5)]), [Err(1)]);
    assert_eq!(bench.ack(201, 1, &[(2, 7)]), []);
    assert_eq!(bench.ack(202, 1, &[(2, 8)]), [Ok(11)]);
}

#[test]
fn a_reduction_over_a_terabyte_in_flight_does_not_overflow() {
    let (mut bench, _) = reducing();
    bench.sender.prr.delivered = 1 << 39;
    bench.sender.prr.recover_fs = 1 << 40;
    bench.sender.allowed.cwnd = 1000;
    bench.sender.reduce_proportionally(&Delivered { bytes: 1000, ..Delivered::default() }, false);
    bench.sender.allowed.cwnd = 1 << 40;
    bench
        .sender
        .reduce_proportionally(&Delivered { bytes: 1 << 40, ..Delivered::default() }, false);
}

// Pacing

#[test]
fn paced_packets_leave_one_transmission_time_apart() {
    let mut bench = Bench::new("tlp = false", 10);
    bench.script.control.pacing_rate = Rate(8 * MSS * 100); // 100 packets per second
    bench.sender.allowed.pacing_rate = bench.script.control.pacing_rate;
    assert_eq!(bench.send(0), [Ok(0)]);
    assert_eq!(bench.sender.deadline(), at(10));
    assert_eq!(bench.send(9), []);
    assert_eq!(bench.expire(10), [Ok(1)]);
    // A late wake-up is not made up for by a burst.
    assert_eq!(bench.expire(50), [Ok(2)]);
    assert_eq!(bench.sender.deadline(), at(60));
}

#[test]
fn a_window_is_paced_at_twice_then_a_fifth_above_its_rate() {
    let mut bench = Bench::warm("tlp = false");
    bench.sender.config.pacing = true;
    bench.sender.allowed.ssthresh = u64::MAX;
    assert_eq!(bench.sender.pacing_rate(), Rate(2 * 10 * MSS * 8 * 10));
    bench.sender.allowed.ssthresh = 5 * MSS;
    assert_eq!(bench.sender.pacing_rate(), Rate(12 * MSS * 8 * 10));
}

#[test]
fn a_full_window_needs_no_pacing_timer() {
    let mut bench = Bench::new("tlp = false\nrto_initial_ms = 1000", 2);
    bench.sender.allowed.pacing_rate = Rate(8 * MSS * 100);
    bench.send(0);
    bench.expire(10);
    bench.expire(20);
    assert_eq!(bench.sender.deadline(), at(1000));
}

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
fn the_last_packet_of_a_transfer_is_as_small_as_what_is_left() {
    let mut bench = Bench::new("", 10);
    bench.supply.unsent = MSS + 1;
    bench.send(0);
    assert_eq!(bench.sender.stats.sent_bytes, MSS + 1);
}

// RFC 3168

#[test]
fn marks_are_answered_once_per_round_trip() {
    let mut bench = Bench::warm("ecn = \"classic\"");
    let marked = |seq| Packet { ce_bytes: 1000, ..ack(seq, &[]) };
    bench.hear(200, &marked(2));
    bench.hear(201, &marked(3));
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    assert_eq!(bench.script.losses[0].lost, Bytes::ZERO);
    let end = bench.sender.board.nxt();
    bench.hear(300, &marked(end));
    assert_eq!(bench.script.kinds(), [LossKind::Gap], "sent before the answer");
    bench.hear(400, &marked(end + 1));
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::Gap]);
    assert!(bench.script.acks.iter().all(|ack| ack.ce_marked == Bytes::ZERO));
    assert_eq!(bench.sender.stats.ce_marked_bytes, 4000);
}

#[test]
fn marks_of_a_window_that_a_loss_has_cut_do_not_cut_it_again() {
    let mut bench = Bench::warm("ecn = \"classic\"\ntlp = false");
    bench.ack(200, 1, &[(2, 5)]);
    let end = match bench.sender.episode {
        Episode::Fast(end) => end,
        other => panic!("{other:?}"),
    };
    // Recovery ends with an ACK that still reports a mark of that window.
    bench.hear(300, &Packet { ce_bytes: 1000, ..ack(end, &[]) });
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
}

#[test]
fn accurate_marks_go_to_the_controller_and_mean_nothing_else() {
    let mut bench = Bench::warm("ecn = \"accurate\"");
    bench.hear(200, &Packet { ce_bytes: 1000, ..ack(3, &[]) });
    assert!(bench.script.losses.is_empty());
    assert_eq!(bench.script.acks[0].ce_marked, Bytes(1000));
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
    script.verdict = Some(Verdict::Send);
    script.control.pacing_rate = Rate(8_000_000);
    let fields = "ack_every = 1\ntlp = false";
    let sender = SackSender::new(&config(fields), &script.governor());
    let mut bench = Bench { sender, script, supply: Supply { unsent: u64::MAX }, now: 0 };
    assert_eq!(bench.send(0), [Ok(0)]);
    bench.script.verdict = Some(Verdict::Hold);
    assert_eq!(bench.send(1), []);
    assert!(bench.sender.deadline() > at(100), "asked again at {}", bench.sender.deadline());
    bench.script.verdict = Some(Verdict::Send);
    assert_eq!(bench.ack(50, 1, &[]), [Ok(1)]);
    assert_eq!(
        bench.script.acks[0].cwnd_limited, 1,
        "the controller, not the application, held back"
    );
}
