//! What is lost during an episode, and sent during it.
use super::*;

/// Ten in flight, 1 to 10. 1 is lost, and its repair leaves with 11 and 12, of which 11 is lost, too: that shows
/// before the repair arrives.
fn loses_two_in_a_row() -> Bench {
    let mut bench = Bench::warm(COUNTING);
    bench.script.control.cwnd = Bytes(20 * MSS); // halved by the loss
    let sent = bench.ack(200, 1, &[(2, 6)]);
    assert_eq!(sent, [Err(1), Ok(11), Ok(12), Ok(13), Ok(14)]);
    bench.script.control.cwnd = Bytes(2 * MSS);
    assert_eq!(bench.ack(290, 1, &[(2, 11), (12, 15)]), [Err(11)]);
    assert_eq!(bench.script.kinds(), [LossKind::Gap]);
    bench
}

fn told_bytes(bench: &Bench) -> u64 {
    bench.script.losses.iter().map(|loss| loss.lost.0).sum()
}

#[test]
fn what_is_still_missing_when_an_episode_ends_begins_the_next() {
    let mut bench = loses_two_in_a_row();
    bench.ack(300, 11, &[(12, 15)]); // 1 came: all that was out before it is acknowledged
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::Gap]);
    assert_eq!(bench.sender.episode, Episode::Fast(15));
    assert_eq!(bench.script.losses[1].lost, Bytes(MSS), "a gap of no bytes would be a mark");
    assert_eq!(bench.sender.stats.recoveries, 2);
    assert_eq!(told_bytes(&bench), bench.sender.stats.declared_lost_bytes);
}

#[test]
fn what_was_repaired_before_an_episode_ends_begins_no_other() {
    let mut bench = loses_two_in_a_row();
    bench.ack(300, 15, &[]); // 1 and 11 came
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::More]);
    assert_eq!(bench.sender.episode, Episode::None);
    assert_eq!(told_bytes(&bench), bench.sender.stats.declared_lost_bytes);
}

#[test]
fn of_many_lost_during_an_episode_one_waits_for_its_end() {
    let mut bench = Bench::warm(COUNTING);
    bench.script.control.cwnd = Bytes(30 * MSS); // halved by the loss
    bench.ack(200, 1, &[(2, 6)]);
    assert_eq!(bench.sender.board.nxt(), 20);
    bench.ack(290, 1, &[(2, 11), (15, 20)]); // 11 to 14 are lost
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::More]);
    assert_eq!(bench.script.losses[1].lost, Bytes(3 * MSS));
    bench.ack(300, 11, &[(15, 20)]);
    assert_eq!(bench.script.kinds()[2..], [LossKind::Gap]);
    assert_eq!(told_bytes(&bench), bench.sender.stats.declared_lost_bytes);
}

#[test]
fn a_time_out_tells_what_waited() {
    let mut bench = loses_two_in_a_row();
    let due = bench.sender.deadline();
    let mut governor = bench.script.governor();
    bench.sender.on_deadline(due, &mut governor, &mut bench.supply);
    assert_eq!(bench.script.kinds(), [LossKind::Gap, LossKind::TimeoutAgain]);
    assert_eq!(told_bytes(&bench), bench.sender.stats.declared_lost_bytes);
}

#[test]
fn the_repairs_of_the_episode_before_count_when_the_next_is_taken_back() {
    let mut bench = loses_two_in_a_row();
    bench.ack(300, 11, &[(12, 15)]);
    // 11 was sent again before the second episode began: that it came twice takes back that episode.
    assert!(bench.sender.undo.is_armed() && !bench.sender.undo.is_all_duplicates());
    bench.receive(390, &spurious::duplicate(15, 11));
    assert_eq!(bench.script.kinds().last(), Some(&LossKind::Spurious));
}

/// Linux: `tcp_enter_loss`.
#[test]
fn a_time_out_of_what_a_recovery_answers_for_tells_the_flight_of_the_recovery() {
    let mut bench = Bench::warm("tlp = false");
    bench.ack(200, 1, &[(2, 6)]);
    bench.ack(210, 1, &[(2, 11)]);
    let flight = bench.script.losses[0].inflight;
    assert_eq!(flight, Bytes(10 * MSS));
    let due = bench.sender.deadline();
    let mut governor = bench.script.governor();
    bench.sender.on_deadline(due, &mut governor, &mut bench.supply);
    let last = bench.script.losses.last().expect("a time-out");
    assert_eq!((last.kind, last.inflight), (LossKind::TimeoutAgain, flight));
}

/// Of ten in flight, 1 times out and is repaired, and 2 to 5 leave again. That 5 came says that the repair of 2 is lost.
fn loses_a_repair_after_a_time_out(fields: &str) -> (Bench, Vec<Result<u64, u64>>) {
    let mut bench = Bench::warm(&format!("tlp = false\nrto_min_ms = 200\n{fields}"));
    bench.expire(401);
    bench.script.control.cwnd = Bytes(4 * MSS);
    bench.ack(501, 2, &[]);
    let sent = bench.ack(606, 2, &[(3, 6)]);
    (bench, sent)
}

/// RFC 5681 section 4.3: two indications of congestion. Linux: `tcp_fastretrans_alert`, from `TCP_CA_Loss` with
/// `FLAG_LOST_RETRANS` to recovery.
#[test]
fn a_repair_lost_after_a_time_out_reduces_again() {
    for fields in ["", "prr = false"] {
        let (bench, sent) = loses_a_repair_after_a_time_out(fields);
        assert_eq!(sent[0], Err(2), "{fields}");
        assert_eq!(bench.script.kinds(), [LossKind::Timeout, LossKind::Gap], "{fields}");
        assert_eq!(bench.script.losses[1].inflight, Bytes(4 * MSS), "{fields}");
        assert_eq!(bench.script.control.cwnd, Bytes(2 * MSS), "{fields}");
        assert_eq!(bench.script.acks.last().expect("an ACK").recovering, 1, "{fields}");
        assert_eq!(told_bytes(&bench), bench.sender.stats.declared_lost_bytes, "{fields}");
    }
}

#[test]
fn a_repair_lost_once_more_in_the_recovery_after_a_time_out_does_not() {
    let (mut bench, _) = loses_a_repair_after_a_time_out("");
    bench.ack(650, 2, &[(3, 7)]);
    bench.ack(720, 2, &[(3, 9)]);
    assert!(bench.sender.stats.retransmitted_packets > 6, "2 left a third time and more");
    bench.ack(830, 2, &[(3, 11)]);
    let gaps = bench.script.kinds().iter().filter(|kind| **kind == LossKind::Gap).count();
    assert_eq!(gaps, 1, "{:?}", bench.script.kinds());
}

/// The time-out answers for what was in flight; only what was sent again and lost is new.
#[test]
fn a_first_copy_lost_before_a_time_out_and_found_after_it_does_not_reduce_again() {
    let mut bench = Bench::warm("tlp = false");
    bench.ack(280, 6, &[]); // 11 to 15 leave at 280 ms; 6 to 10 left at 100 ms
    bench.sender.rto_deadline = at(379);
    bench.expire(379); // 11 to 15 are younger than RACK's round trip: not declared lost
    bench.script.control.cwnd = Bytes(8 * MSS);
    let echo = |seq, millis| Packet { sent_at: at(millis), ..ack(seq, &[]) };
    bench.receive(480, &echo(7, 379));
    bench.receive(590, &echo(11, 480)); // 7 to 10 came, all sent after 11 to 15
    assert_eq!(bench.script.kinds(), [LossKind::Timeout, LossKind::More]);
    assert!(matches!(bench.sender.episode, Episode::Timeout(_)));
}
