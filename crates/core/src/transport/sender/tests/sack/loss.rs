//! What is lost, and what leaves for it.
use super::*;

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

/// Why the rescue retransmission of RFC 6675 is not needed with RACK: what a repair sent later proves lost is
/// found by time, and after one round trip.
#[test]
fn rack_finds_the_lost_tail_of_a_window_when_the_first_repair_arrives() {
    let mut bench = Bench::warm("prr = false");
    bench.supply.unsent = 0;
    bench.script.control.cwnd = Bytes(20 * MSS);
    assert_eq!(bench.ack(200, 1, &[(2, 5)]), [Err(1)]);
    // 1 arrives; 5 to 10, sent before it, never did.
    let sent = bench.ack(300, 5, &[]);
    assert_eq!(sent, (5..=10).map(Err).collect::<Vec<_>>());
    assert!(!bench.script.kinds().contains(&LossKind::Timeout));
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
        bench.sender.reduce_proportionally(&delivered, true);
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
    assert!(bench.sender.reordering.is_seen() && bench.script.losses.is_empty());
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
    bench.sender.reordering.on_reordering();
    bench.ack(200, 1, &[(2, 5)]);
    assert!(bench.script.losses.is_empty());
    assert_eq!(bench.sender.deadline(), at(225));
}

#[test]
fn a_duplicate_of_what_was_sent_again_widens_the_window_and_another_does_not() {
    let window = |repeat: bool| {
        let mut bench = Bench::warm("tlp = false");
        bench.sender.reordering.on_reordering();
        bench.sender.stats.retransmitted_packets = u64::from(repeat);
        bench.receive(190, &Packet { repeat: true, ..ack(1, &[]) });
        bench.ack(200, 1, &[(2, 3)]);
        bench.sender.rack.window
    };
    assert_eq!((window(true), window(false)), (Span::from_millis(50), Span::from_millis(25)));
}

#[test]
fn an_original_that_comes_after_its_repair_left_is_reordering() {
    let mut bench = Bench::warm("tlp = false");
    assert_eq!(bench.ack(200, 1, &[(2, 5)])[0], Err(1));
    assert!(!bench.sender.reordering.is_seen());
    bench.receive(210, &Packet { sent_at: at(100), ..ack(5, &[]) });
    assert!(bench.sender.reordering.is_seen());
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

/// Ten in flight time out and leave again, 2 to 4 at 510 ms and 5 at 650 ms. What arrives then says
/// only that 5 has come.
fn five_arrives_after_a_time_out(echo: u64) -> (Bench, Vec<Result<u64, u64>>) {
    let mut bench = Bench::warm("tlp = false\nrto_min_ms = 300");
    assert_eq!(bench.sender.deadline(), at(500));
    assert_eq!(bench.expire(500), [Err(1)]);
    bench.script.control.cwnd = Bytes(3 * MSS);
    let repaired = |seq, echo| Packet { sent_at: at(echo), ..ack(seq, &[]) };
    assert_eq!(bench.receive(510, &repaired(2, 500)), [Err(2), Err(3), Err(4)]);
    assert_eq!(bench.receive(650, &repaired(3, 510)), [Err(5)]);
    bench.script.control.cwnd = Bytes(MSS);
    let sent = bench.receive(800, &Packet { sent_at: at(echo), ..ack(3, &[(5, 6)]) });
    (bench, sent)
}

#[test]
fn a_late_original_does_not_make_lost_what_was_sent_again_before_its_own_repair() {
    let (bench, sent) = five_arrives_after_a_time_out(510);
    assert_eq!(bench.script.kinds(), [LossKind::Timeout]);
    assert_eq!((sent, bench.pipe()), (vec![], 2));
}

#[test]
fn a_repair_that_its_echo_confirms_makes_lost_what_was_sent_again_before_it() {
    let (bench, _) = five_arrives_after_a_time_out(650);
    assert_eq!(bench.script.kinds(), [LossKind::Timeout, LossKind::Gap]);
    assert_eq!(bench.script.losses[1].lost, Bytes(2 * MSS), "3 and 4");
}
