//! How fast: rate reduction, pacing, marks.
use super::*;
use crate::transport::packet::Ect;

// RFC 9937

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
fn below_the_window_only_a_safe_ack_lets_out_a_packet_more_than_it_delivered() {
    let budget = |advanced, lost| {
        let (mut bench, _) = reducing();
        bench.sender.allowed.cwnd = 9 * MSS;
        assert!(bench.pipe() < 9);
        (bench.sender.prr.delivered, bench.sender.prr.out) = (4 * MSS, 4 * MSS);
        let delivered = Delivered { bytes: MSS, advanced, ..Delivered::default() };
        bench.sender.reduce(&delivered, lost, false);
        bench.sender.prr.budget / MSS
    };
    assert_eq!((budget(true, false), budget(true, true), budget(false, false)), (2, 1, 1));
}

#[test]
fn a_controller_with_a_rate_of_its_own_is_not_subject_to_the_reduction() {
    let mut bench = Bench::warm("tlp = false");
    bench.script.control.pacing_rate = Rate(1_000_000_000_000);
    // Pipe 6 is above the window of 5: the first retransmission leaves, then nothing.
    assert_eq!(bench.ack(200, 1, &[(2, 5)]), [Err(1)]);
    assert_eq!(bench.ack(201, 1, &[(2, 7)]), []);
    // Below the window at once, whatever was delivered.
    bench.script.control.cwnd = Bytes(20 * MSS);
    bench.ack(202, 1, &[(2, 8)]);
    let room = 20 - bench.pipe();
    assert!(
        bench.sender.window_allows(room * MSS) && !bench.sender.window_allows((room + 1) * MSS)
    );
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
    bench.sender.reduce_proportionally(&Delivered { bytes: 1000, ..Delivered::default() }, true);
    bench.sender.allowed.cwnd = 1 << 40;
    bench.sender.reduce_proportionally(&Delivered { bytes: 1 << 40, ..Delivered::default() }, true);
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
fn a_window_below_half_of_ssthresh_is_paced_at_twice_its_rate_and_then_a_fifth_above() {
    let mut bench = Bench::warm("tlp = false");
    Arc::make_mut(&mut bench.sender.config).pacing = true;
    bench.sender.allowed.ssthresh = u64::MAX;
    assert_eq!(bench.sender.pacing_rate(), Rate(2 * 10 * MSS * 8 * 10));
    bench.sender.allowed.ssthresh = 22 * MSS;
    assert_eq!(bench.sender.pacing_rate(), Rate(2 * 10 * MSS * 8 * 10));
    for packets in [20, 5] {
        bench.sender.allowed.ssthresh = packets * MSS;
        assert_eq!(bench.sender.pacing_rate(), Rate(12 * MSS * 8 * 10));
    }
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

// RFC 3168

#[test]
fn marks_are_answered_once_per_round_trip() {
    let mut bench = Bench::warm("ecn = \"classic\"");
    let marked = |seq, ce_bytes| Packet { ce_bytes, ..ack(seq, &[]) };
    let end = bench.sender.board.nxt();
    bench.receive(200, &marked(2, 1000));
    bench.receive(201, &marked(3, 2000));
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    assert_eq!(bench.script.losses[0].lost, Bytes::ZERO);
    assert_eq!(bench.script.losses[0].sent_at, at(100), "of the newest packet delivered");
    bench.receive(300, &marked(end, 3000));
    assert_eq!(bench.script.kinds(), [LossKind::Gap], "sent before the answer");
    bench.receive(400, &marked(end + 1, 4000));
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
    bench.receive(300, &Packet { ce_bytes: 1000, ..ack(end, &[]) });
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
}

#[test]
fn the_answer_to_a_mark_is_spread_over_the_round_trip() {
    let mut bench = Bench::warm("ecn = \"classic\"");
    let marked = |seq| Packet { ce_bytes: 1000, ..ack(seq, &[]) };
    // Ten in flight, and the window halves: of the nine that are still to be acknowledged every
    // second lets one out, from the first on. A cut at once would let out none for five.
    assert_eq!(bench.receive(200, &marked(2)), [Ok(11)]);
    let later: Vec<usize> = (3..=11).map(|seq| bench.ack(200 + seq, seq, &[]).len()).collect();
    assert!(later[..4].contains(&1), "{later:?}");
    assert!(later.iter().all(|sent| *sent <= 1), "{later:?}");
    assert_eq!(bench.pipe(), 5);
}

#[test]
fn while_a_mark_is_answered_nothing_grows_and_after_it_everything_does() {
    let mut bench = Bench::warm("ecn = \"classic\"");
    let marked = |seq| Packet { ce_bytes: 1000, ..ack(seq, &[]) };
    bench.receive(200, &marked(2));
    bench.ack(210, 11, &[]);
    bench.ack(310, 12, &[]);
    let told: Vec<u64> = bench.script.acks.iter().map(|ack| ack.recovering).collect();
    assert_eq!(told, [1, 1, 0]);
}

#[test]
fn a_loss_in_the_round_trip_of_a_mark_is_repaired_and_not_answered_again() {
    let mut bench = Bench::warm("ecn = \"classic\"\ntlp = false");
    bench.receive(200, &Packet { ce_bytes: 1000, ..ack(2, &[]) });
    let mut sent = Vec::new();
    for end in 4..=11 {
        sent.extend(bench.ack(200 + end, 2, &[(3, end)]));
    }
    assert!(sent.contains(&Err(2)), "{sent:?}");
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::More]);
    assert_eq!(bench.sender.stats.recoveries, 1);
}

#[test]
fn accurate_marks_go_to_the_controller_and_mean_nothing_else() {
    for ecn in ["accurate", "l4s"] {
        let mut bench = Bench::warm(&format!("ecn = \"{ecn}\""));
        bench.receive(200, &Packet { ce_bytes: 1000, ..ack(3, &[]) });
        assert!(bench.script.losses.is_empty());
        assert_eq!(bench.script.acks[0].ce_marked, Bytes(1000));
    }
}

/// RFC 9331 section 4.1: ECT(1) tells low-latency traffic from classic traffic.
#[test]
fn packets_announce_what_the_reaction_to_marks_is() {
    let ect = |ecn: &str| Bench::warm(&format!("ecn = \"{ecn}\"")).sender.ect(false);
    let found = ["off", "classic", "accurate", "l4s"].map(ect);
    assert_eq!(found, [Ect::Not, Ect::Zero, Ect::Zero, Ect::One]);
}

#[test]
fn the_loss_of_an_acknowledgement_takes_no_mark_with_it() {
    let mut bench = Bench::warm("ecn = \"accurate\"");
    bench.receive(200, &Packet { ce_bytes: 1000, ..ack(2, &[]) });
    // Those of segments 3 and 4, of which one was marked, never came.
    bench.receive(210, &Packet { ce_bytes: 2000, ..ack(5, &[]) });
    bench.receive(220, &Packet { ce_bytes: 2000, ..ack(6, &[]) });
    let told: Vec<u64> = bench.script.acks.iter().map(|ack| ack.ce_marked.0).collect();
    assert_eq!(told, [1000, 1000, 0]);
}

#[test]
fn an_acknowledgement_that_was_overtaken_reports_no_marks() {
    let mut bench = Bench::warm("ecn = \"classic\"");
    let end = bench.sender.board.nxt();
    bench.receive(200, &Packet { ce_bytes: 2000, ..ack(3, &[]) });
    bench.receive(300, &Packet { ce_bytes: 2000, ..ack(end, &[]) });
    bench.receive(400, &Packet { ce_bytes: 2000, ..ack(end + 1, &[]) });
    bench.receive(401, &Packet { ce_bytes: 1000, ..ack(end + 1, &[(end + 2, end + 3)]) });
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
}

#[test]
fn the_count_of_marked_bytes_may_wrap() {
    let mut bench = Bench::warm("ecn = \"accurate\"");
    bench.sender.ce_known = u32::MAX - 499;
    bench.receive(200, &Packet { ce_bytes: 500, ..ack(3, &[]) });
    assert_eq!(bench.script.acks[0].ce_marked, Bytes(1000));
}

#[test]
fn without_accurate_feedback_no_retransmission_is_ecn_capable() {
    // RFC 3168 section 6.1.5; RFC 9331 section 4.2 and RFC 9768 allow it.
    let again = |ecn: &str| Bench::warm(&format!("ecn = \"{ecn}\"")).sender.ect(true);
    let expected = [Ect::Not, Ect::Not, Ect::Zero, Ect::One];
    assert_eq!(["off", "classic", "accurate", "l4s"].map(again), expected);
}
