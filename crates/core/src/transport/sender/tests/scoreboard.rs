//! The scoreboard by itself: random ACKs against a list that is searched from end to end.
use super::super::tests::ack;
use super::*;
use crate::rng::Rng;
use crate::transport::packet::Packet;

fn board(count: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for seq in 0..count {
        assert_eq!(board.send_new(Time(seq), 100, SentState::default()), seq);
    }
    board
}

/// Every retransmission may be what arrived.
fn deliver(board: &mut Scoreboard, ack: &Packet) -> Delivered {
    board.on_ack(ack, Time::NEVER)
}

#[test]
fn a_packet_is_delivered_once_however_often_it_is_reported() {
    let mut board = board(10);
    assert_eq!(deliver(&mut board, &ack(0, &[(2, 5)])).bytes, 300);
    assert_eq!(deliver(&mut board, &ack(0, &[(2, 5), (1, 6)])).bytes, 200);
    assert_eq!(deliver(&mut board, &ack(4, &[(4, 6)])).bytes, 100);
    assert_eq!(deliver(&mut board, &ack(10, &[])).bytes, 400);
    assert_eq!((board.inflight(), board.outstanding(), board.sacked_count()), (0, 0, 0));
}

#[test]
fn a_block_that_reaches_beyond_what_was_sent_delivers_nothing() {
    let mut board = board(10);
    assert_eq!(deliver(&mut board, &ack(0, &[(5, 11)])).bytes, 0);
    assert_eq!(deliver(&mut board, &ack(0, &[(20, 30), (2, 4)])).bytes, 200, "others count");
    assert_eq!(deliver(&mut board, &ack(0, &[(5, 10)])).bytes, 500);
    assert_eq!(deliver(&mut board, &ack(10, &[(11, 12)])).bytes, 300);
    assert_eq!((board.inflight(), board.outstanding(), board.sacked_count()), (0, 0, 0));
}

#[test]
fn parts_of_a_packet_are_delivered_one_by_one_and_the_rest_leaves_again() {
    let mut board = board(2);
    let mut part = |seq, left| {
        let mut ack = ack(seq, &[]);
        ack.set_left(left);
        let delivered = deliver(&mut board, &ack);
        (delivered.bytes, delivered.advanced, board.inflight(), board.outstanding())
    };
    assert_eq!(part(0, 70), (30, true, 170, 170));
    assert_eq!(part(0, 80), (0, false, 170, 170), "overtaken");
    assert_eq!(part(0, 100), (0, false, 170, 170));
    assert_eq!(part(1, 40), (130, true, 40, 40), "of the second, with all of the first");
    board.declare_after_timeout(Time(10));
    assert_eq!((board.peek_lost(), board.inflight()), (Some(40), 0));
    board.send_lost(Time(50), SentState::default());
    assert_eq!((board.inflight(), deliver(&mut board, &ack(2, &[])).bytes), (40, 40));
    assert_eq!((board.inflight(), board.outstanding()), (0, 0));
}

#[test]
fn the_newest_delivered_packet_is_the_one_sent_last_by_time_then_number() {
    let mut board = board(3);
    let delivered = deliver(&mut board, &ack(0, &[(1, 3)]));
    assert_eq!(delivered.newest, (Time(2), 2));
    assert_eq!((delivered.timed, delivered.timed_first), (Time(2), Time(1)));
    board.declare_after_timeout(Time(10));
    board.peek_lost();
    board.send_lost(Time(50), SentState::default());
    let delivered = deliver(&mut board, &ack(3, &[]));
    assert_eq!((delivered.newest, delivered.timed), ((Time(50), 0), Time::NEVER));
}

#[test]
fn a_retransmission_that_left_too_late_to_be_what_arrived_is_not_certain() {
    let mut board = board(4);
    board.declare_after_timeout(Time(10));
    for time in [50, 60] {
        board.peek_lost();
        board.send_lost(Time(time), SentState::default());
    }
    let delivered = board.on_ack(&ack(2, &[]), Time(55));
    assert_eq!((delivered.newest, delivered.certain), ((Time(60), 1), Some((Time(50), 0))));
    let delivered = board.on_ack(&ack(4, &[]), Time(55));
    assert_eq!(delivered.certain, Some((Time(3), 3)), "sent once");
}

#[test]
fn a_first_copy_after_a_later_one_is_reordering_and_a_second_copy_is_not() {
    let mut board = board(6);
    assert!(!deliver(&mut board, &ack(0, &[(3, 4)])).reordered);
    assert!(deliver(&mut board, &ack(0, &[(2, 4)])).reordered);
    // The order of an ACK's blocks is not that of arrival.
    assert!(!deliver(&mut board, &ack(0, &[(5, 6), (4, 5)])).reordered);
    board.declare_after_timeout(Time(100));
    board.peek_lost();
    board.send_lost(Time(200), SentState::default());
    assert!(!deliver(&mut board, &ack(1, &[(2, 4)])).reordered);
}

#[test]
fn losses_that_are_withdrawn_are_in_flight_and_judged_anew() {
    let mut board = board(10);
    deliver(&mut board, &ack(0, &[(5, 6)]));
    board.declare_after_timeout(Time(100));
    board.peek_lost();
    board.send_lost(Time(200), SentState::default());
    assert_eq!((board.inflight(), board.awaits_repairs()), (100, true));
    board.withdraw_losses();
    assert_eq!((board.inflight(), board.peek_lost()), (900, None));
    let rack = Rack { newest: (Time(5), 5), rtt: Span(100), window: Span(10) };
    let (lost, _) = board.detect_by_time(Time(1000), &rack);
    assert_eq!(lost.bytes, 400, "1 to 4; 0 left again later");
    let rack = Rack { newest: (Time(300), 12), ..rack };
    let (lost, _) = board.detect_by_time(Time(1000), &rack);
    assert_eq!(lost.bytes, 500, "0 and 6 to 9");
}

#[test]
fn nothing_is_lost_by_time_before_something_sent_later_is_delivered() {
    let mut board = board(10);
    let rack = Rack { newest: (Time(4), 4), rtt: Span(100), window: Span(10) };
    deliver(&mut board, &ack(0, &[(4, 5)]));
    // Due at 0 + 110, 1 + 110, ...; packets 5 to 9 are newer than what was delivered.
    let (lost, next) = board.detect_by_time(Time(111), &rack);
    assert_eq!((lost.bytes, next), (200, Time(112)));
    let (lost, next) = board.detect_by_time(Time(1000), &rack);
    assert_eq!((lost.bytes, lost.newest, next), (200, Time(3), Time::NEVER));
}

#[test]
fn a_probe_takes_the_last_packet_and_changes_places_with_it() {
    let mut board = board(3);
    board.declare_last_for_probe();
    assert_eq!((board.inflight(), board.peek_lost()), (200, Some(100)));
    assert_eq!(board.send_lost(Time(9), SentState::default()), Some((2, 100)));
    assert_eq!((board.inflight(), board.peek_lost()), (300, None));
}

#[test]
fn what_arrives_after_it_was_declared_lost_is_not_sent_again() {
    let mut board = board(6);
    deliver(&mut board, &ack(0, &[(3, 6)]));
    assert_eq!(board.detect_by_count().bytes, 300);
    deliver(&mut board, &ack(2, &[(3, 6)]));
    assert_eq!(board.send_lost(Time(9), SentState::default()), None);
    deliver(&mut board, &ack(2, &[(2, 6)]));
    assert_eq!(board.peek_lost(), None);
}

/// Any ACKs and losses: the counters are those of a naive list.
#[test]
fn counters_are_those_of_a_list() {
    #[derive(Clone, Copy, PartialEq)]
    enum Fate {
        Out,
        Lost,
        Delivered,
    }
    let mut rng = Rng::new(1);
    for _ in 0..300 {
        let mut board = board(60);
        let mut list = [Fate::Out; 60];
        let mut una = 0;
        for step in 0..60 {
            let first = rng.below(60);
            let blocks: Vec<(u64, u64)> = (0..rng.below(4))
                .map(|_| {
                    let start = una.max(first) + rng.below(10);
                    (start, start + 1 + rng.below(5))
                })
                .collect();
            if rng.chance(0.3) {
                una = (una + rng.below(4)).min(60);
            }
            let before = list.iter().filter(|fate| **fate == Fate::Delivered).count();
            list[..una as usize].fill(Fate::Delivered);
            // A block that reaches beyond what was sent is ignored.
            for &(start, end) in blocks.iter().filter(|block| block.0 >= una && block.1 <= 60) {
                list[start as usize..end as usize].fill(Fate::Delivered);
            }
            let kept: Vec<_> = blocks.into_iter().filter(|block| block.0 >= una).collect();
            let delivered = deliver(&mut board, &ack(una, &kept));
            let after = list.iter().filter(|fate| **fate == Fate::Delivered).count();
            assert_eq!(delivered.bytes, 100 * (after - before) as u64);
            if rng.chance(0.3) {
                board.detect_by_count();
                for seq in 0..60 {
                    let above = list[seq + 1..].iter().filter(|fate| **fate == Fate::Delivered);
                    if list[seq] == Fate::Out && above.count() as u64 >= DUP_THRESH {
                        list[seq] = Fate::Lost;
                    }
                }
            }
            if board.peek_lost().is_some() {
                let (seq, _) = board.send_lost(Time(1000 + step), SentState::default()).unwrap();
                assert!(list[seq as usize] == Fate::Lost, "only what is lost is sent again");
                // It arrives: counting judges a packet once, which the list does not know.
                deliver(&mut board, &ack(una, &[(seq, seq + 1)]));
                list[seq as usize] = Fate::Delivered;
            }
            let out = list.iter().filter(|fate| **fate == Fate::Out).count() as u64;
            assert_eq!(board.inflight(), 100 * out);
            let sacked =
                list[una as usize..].iter().filter(|fate| **fate == Fate::Delivered).count();
            assert_eq!(board.sacked_count(), sacked as u64);
        }
    }
}

#[test]
fn after_a_timeout_no_second_copy_of_a_delivered_packet_is_in_flight() {
    let mut board = board(3);
    for _ in 0..2 {
        board.peek_rescue();
        board.send_rescue(Time(10), SentState::default());
    }
    deliver(&mut board, &ack(0, &[(1, 2)]));
    assert_eq!(board.inflight(), 400, "packet 0 twice, the second copy of packet 1, packet 2");
    board.declare_after_timeout(Time(100));
    assert_eq!(board.inflight(), 0);
}

#[test]
fn what_was_lost_again_leaves_before_what_follows_it_lowest_first() {
    let mut board = board(12);
    let rack = |newest: u64| Rack { newest: (Time(newest), 99), ..Rack::default() };
    assert_eq!(board.detect_by_time(Time(20), &rack(7)).0.bytes, 800);
    let leave = |board: &mut Scoreboard, time| {
        board.peek_lost()?;
        board.send_lost(Time(time), SentState::default()).map(|(seq, _)| seq)
    };
    let first: Vec<_> = (30..36).map_while(|time| leave(&mut board, time)).collect();
    assert_eq!(first, [0, 1, 2, 3, 4, 5]);
    // All six are lost again, while 6 and 7 still wait.
    assert_eq!(board.detect_by_time(Time(60), &rack(50)).0.bytes, 600 + 400);
    let second: Vec<_> = (70..90).map_while(|time| leave(&mut board, time)).collect();
    assert_eq!(second, (0..12).collect::<Vec<_>>());
}
