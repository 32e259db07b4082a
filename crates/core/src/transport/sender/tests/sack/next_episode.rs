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
