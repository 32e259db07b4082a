//! Answers to loss that were for nothing, and how they are taken back.
use super::*;

/// An acknowledgement that echoes the timestamp of `echo` milliseconds.
fn echoing(echo: u64, seq: u64, blocks: &[(u64, u64)]) -> Packet {
    Packet { sent_at: at(echo), ..ack(seq, blocks) }
}

/// Reports `dup` as a duplicate.
pub(super) fn duplicate(seq: u64, dup: u64) -> Packet {
    let mut packet = Packet { repeat: true, ..ack(seq, &[]) };
    packet.sack[0] = (dup.wrapping_sub(seq) as u32, 1);
    packet
}

/// Ten packets sent at 100 ms time out at 500 ms.
fn timed_out() -> Bench {
    let mut bench = Bench::warm("tlp = false\nrto_min_ms = 300");
    assert_eq!(bench.expire(500), [Err(1)]);
    assert_eq!((bench.script.kinds(), bench.pipe()), (vec![LossKind::Timeout], 1));
    bench
}

#[test]
fn an_original_that_comes_after_a_time_out_takes_it_back() {
    let mut bench = timed_out();
    bench.script.control.cwnd = Bytes(10 * MSS);
    // 2 to 10 are in flight again, beside the first packet's second copy, and none is sent again.
    assert_eq!(bench.receive(510, &echoing(100, 2, &[])), [Ok(11)]);
    assert_eq!(bench.script.kinds(), [LossKind::Timeout, LossKind::Spurious]);
    assert_eq!((bench.sender.episode, bench.pipe()), (Episode::None, 10));
    assert_eq!(bench.sender.stats.retransmitted_packets, 1);
    // The next original takes nothing back any more.
    bench.receive(511, &echoing(100, 3, &[]));
    assert_eq!(bench.script.kinds().len(), 2);
}

#[test]
fn a_retransmission_that_repairs_a_time_out_does_not() {
    let mut bench = timed_out();
    bench.receive(600, &echoing(500, 2, &[]));
    assert_eq!(bench.script.kinds(), [LossKind::Timeout]);
    assert_eq!(bench.sender.episode, Episode::Timeout(11));
}

#[test]
fn of_a_packet_sent_twice_the_echo_tells_the_round_trip_and_ends_the_back_off() {
    let mut bench = timed_out();
    assert!(bench.sender.rtt.is_backed_off());
    bench.receive(650, &echoing(500, 2, &[]));
    assert_eq!(bench.sender.rtt.latest(), Span::from_millis(150));
    assert!(!bench.sender.rtt.is_backed_off());
    assert_eq!(bench.script.acks[0].rtt, Span::ZERO, "controllers are not told");
}

#[test]
fn an_original_that_comes_after_its_fast_retransmission_takes_the_recovery_back() {
    let mut bench = Bench::warm("tlp = false");
    assert_eq!(bench.ack(200, 1, &[(2, 5)])[0], Err(1));
    let end = bench.sender.board.nxt();
    bench.receive(210, &echoing(100, end, &[]));
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::Spurious]);
}

#[test]
fn a_reduced_window_that_was_full_does_not_count_once_the_recovery_is_taken_back() {
    let mut bench = Bench::warm("tlp = false");
    bench.ack(200, 1, &[(2, 5)]);
    let end = bench.sender.board.nxt();
    bench.script.control.cwnd = Bytes(40 * MSS);
    bench.receive(210, &echoing(100, end, &[]));
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::Spurious]);
    assert_eq!(bench.script.acks.last().expect("one").cwnd_limited, 0);
}

#[test]
fn a_recovery_that_its_retransmission_ends_is_kept() {
    let mut bench = Bench::warm("tlp = false");
    bench.ack(200, 1, &[(2, 5)]);
    let end = bench.sender.board.nxt();
    bench.receive(300, &echoing(200, end, &[]));
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    assert_eq!(bench.sender.episode, Episode::None);
}

#[test]
fn while_a_repair_is_out_an_original_does_not_take_the_recovery_back() {
    let mut bench = Bench::warm("tlp = false");
    bench.script.control.cwnd = Bytes(40 * MSS);
    // 1 and 3 are missing, and sent again.
    let sent = bench.ack(200, 1, &[(4, 8), (2, 3)]);
    assert_eq!(&sent[..2], [Err(1), Err(3)]);
    bench.receive(210, &echoing(100, 3, &[(4, 8)]));
    assert_eq!(bench.script.kinds(), [LossKind::Gap], "3 may be lost");
    bench.receive(300, &echoing(200, 8, &[]));
    assert!(!bench.script.kinds().contains(&LossKind::Spurious), "the repair of 3 ended it");
}

/// 1 to 3 are missing and sent again, what that lets out leaves, and all of it arrives.
fn repaired() -> (Bench, Vec<u64>) {
    let mut bench = Bench::warm("tlp = false");
    let sent = bench.ack(200, 1, &[(4, 8)]);
    let retransmitted = sent.into_iter().filter_map(Result::err).collect();
    bench.ack(205, 8, &[]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    (bench, retransmitted)
}

#[test]
fn a_recovery_of_which_every_retransmission_came_twice_is_taken_back() {
    let (mut bench, retransmitted) = repaired();
    for (reported, &seq) in (0..).zip(&retransmitted) {
        assert_eq!(bench.script.kinds(), [LossKind::Gap], "{reported}");
        bench.receive(206 + reported, &duplicate(8, seq));
    }
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::Spurious]);
}

#[test]
fn duplicates_of_what_was_never_retransmitted_do_not_take_a_recovery_back() {
    let (mut bench, retransmitted) = repaired();
    for report in 0..retransmitted.len() as u64 {
        bench.receive(206 + report, &duplicate(8, 4 + report));
    }
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
}

#[test]
fn on_a_network_that_duplicates_no_later_report_takes_a_recovery_back() {
    let (mut bench, retransmitted) = repaired();
    bench.receive(206, &duplicate(8, 5));
    for (reported, &seq) in (0..).zip(&retransmitted) {
        bench.receive(207 + reported, &duplicate(8, seq));
    }
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
}

#[test]
fn an_answer_to_a_mark_is_never_taken_back() {
    let mut bench = Bench::warm("ecn = \"classic\"\ntlp = false");
    bench.receive(200, &Packet { ce_bytes: 1000, ..echoing(100, 2, &[]) });
    let mut sent = Vec::new();
    for end in 4..=11 {
        sent.extend(bench.receive(200 + end, &echoing(100, 2, &[(3, end)])));
    }
    assert!(sent.contains(&Err(2)), "{sent:?}");
    bench.receive(220, &echoing(100, 11, &[]));
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::More]);
}

#[test]
fn without_timestamps_nothing_is_known_of_an_original() {
    let mut bench = Bench::warm("tlp = false\nrto_min_ms = 300\ntimestamps = false");
    bench.expire(500);
    bench.receive(510, &echoing(100, 2, &[]));
    assert_eq!(bench.script.kinds(), [LossKind::Timeout]);
}

/// The last of ten packets leaves again as a probe at 300 ms, for nothing; 3 is truly lost, and sent again.
fn probed(fields: &str) -> Bench {
    let mut bench = Bench::warm(&format!("rto_min_ms = 1000\n{fields}"));
    bench.supply.unsent = 0;
    assert_eq!(bench.expire(300), [Err(10)]);
    bench.ack(310, 3, &[]);
    assert_eq!(bench.ack(311, 3, &[(4, 9)]), [Err(3)]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    bench
}

#[test]
fn the_duplicate_of_a_probe_does_not_take_the_answer_to_another_loss_back() {
    // Linux: tcp_init_undo counts the probe among the retransmissions.
    let mut bench = probed("");
    bench.ack(312, 3, &[(4, 11)]);
    bench.receive(400, &duplicate(3, 10));
    bench.ack(411, 11, &[]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    // With that of the repair, all came twice.
    let mut bench = probed("");
    bench.ack(312, 11, &[]);
    bench.receive(400, &duplicate(11, 10));
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    bench.receive(411, &duplicate(11, 3));
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::Spurious]);
}

#[test]
fn the_duplicate_of_a_probe_does_not_take_a_time_out_back() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    bench.supply.unsent = 0;
    assert_eq!(bench.expire(300), [Err(10)]);
    let due = bench.sender.rto_deadline.0.div_ceil(1_000_000);
    bench.expire(due);
    bench.receive(due + 1, &duplicate(1, 10));
    assert_eq!(bench.script.kinds(), [LossKind::Timeout]);
}

#[test]
fn a_probe_of_new_data_is_no_retransmission() {
    let mut bench = Bench::warm("rto_min_ms = 1000");
    assert_eq!(bench.expire(300), [Ok(11)]);
    bench.supply.unsent = 0;
    bench.ack(310, 3, &[]);
    bench.ack(311, 3, &[(4, 9)]);
    bench.ack(312, 11, &[]);
    bench.receive(411, &duplicate(11, 3));
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::Spurious]);
}
