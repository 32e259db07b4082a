use super::*;

const MSS: u64 = 1000;

fn at(millis: u64) -> Time {
    Time(0) + Span::from_millis(millis)
}

fn millis(rtt_ms: f64) -> Span {
    Span::from_secs_f64(rtt_ms / 1e3)
}

/// The acknowledgement of one packet.
fn ack(now_ms: u64, rtt_ms: f64) -> Ack {
    let rtt = millis(rtt_ms);
    let (inflight, prior_inflight) = (Bytes(9 * MSS), Bytes(10 * MSS));
    let acked = Bytes(MSS);
    Ack {
        now: at(now_ms),
        rtt,
        rtt_max: rtt,
        srtt: rtt,
        acked,
        inflight,
        prior_inflight,
        ..Ack::default()
    }
}

fn signals() -> Signals {
    Signals::new(Bytes(MSS), Time(0))
}

/// Ends an interval of 10 ms for each of these smallest round trips; the last one.
fn intervals(signals: &mut Signals, from_ms: u64, rtts_ms: &[f64]) -> Interval {
    let mut last = Interval::default();
    for (now, &rtt_ms) in (from_ms..).step_by(10).zip(rtts_ms) {
        signals.on_ack(&ack(now, rtt_ms));
        last = signals.end(at(now));
    }
    last
}

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
}

#[test]
fn an_interval_has_the_smallest_mean_and_spread_of_its_round_trips() {
    let mut signals = signals();
    for (now, rtt_ms) in [(1, 50.0), (2, 40.0), (3, 60.0), (4, 50.0)] {
        signals.on_ack(&ack(now, rtt_ms));
    }
    let interval = signals.end(at(10));
    assert_eq!(interval.duration, Span::from_millis(10));
    assert_eq!(interval.rtt_min, millis(40.0));
    assert_eq!(interval.rtt_mean, millis(50.0));
    close(interval.rtt_sd.as_millis_f64(), 7.071_068); // sqrt(50), to the nanosecond
}

#[test]
fn an_interval_without_a_sample_keeps_the_round_trips_of_the_one_before() {
    let mut signals = signals();
    let before = intervals(&mut signals, 10, &[40.0, 50.0]);
    let interval = signals.end(at(30));
    assert_eq!((interval.rtt_min, interval.rtt_mean), (before.rtt_min, before.rtt_mean));
    assert_eq!((interval.base, interval.acked_packets), (millis(40.0), 0.0));
    close(interval.rtt_change_per_s, 0.0);
    assert_eq!(interval.base_age, Span::from_millis(20));
}

#[test]
fn packets_weigh_the_mean_and_a_batch_counts_its_largest_sample_once() {
    let mut signals = signals();
    signals.on_ack(&Ack { acked: Bytes(3 * MSS), ..ack(1, 40.0) });
    signals.on_ack(&ack(2, 80.0));
    assert_eq!(signals.end(at(10)).rtt_mean, millis(50.0));
    signals.on_ack(&Ack { acked: Bytes(4 * MSS), rtt_max: millis(60.0), ..ack(11, 40.0) });
    assert_eq!(signals.end(at(20)).rtt_mean, millis(45.0));
}

#[test]
fn the_smallest_of_a_batch_is_seen_though_another_came_last() {
    let mut signals = signals();
    let batch = Ack { rtt_max: millis(60.0), batch_rtt_min: millis(40.0), ..ack(1, 50.0) };
    signals.on_ack(&Ack { acked: Bytes(3 * MSS), ..batch });
    let interval = signals.end(at(10));
    assert_eq!((interval.rtt_min, interval.base), (millis(40.0), millis(40.0)));
    assert_eq!(interval.rtt_mean, millis(50.0));
    close(interval.rtt_sd.as_millis_f64(), 8.164_966); // of 40, 50 and 60, to the nanosecond
}

#[test]
fn a_mark_that_the_sender_answered_itself_is_one_marked_packet_and_no_loss() {
    let mut signals = signals();
    (1..=4).for_each(|now| signals.on_ack(&ack(now, 40.0)));
    signals.on_loss(&Loss { kind: LossKind::Gap, ..Loss::default() });
    let interval = signals.end(at(10));
    close(interval.ce_ratio, 0.25);
    close(interval.loss_ratio, 0.0);
    assert_eq!(interval.intervals_since_loss, u32::MAX);
}

#[test]
fn the_base_is_the_smallest_round_trip_of_ten_seconds() {
    let mut signals = signals();
    intervals(&mut signals, 10, &[40.0]);
    intervals(&mut signals, 200, &[50.0]);
    signals.on_ack(&ack(9_900, 60.0));
    assert_eq!(signals.end(at(9_900)).base, millis(40.0));
    signals.on_ack(&ack(10_011, 60.0));
    assert_eq!(signals.end(at(10_011)).base, millis(50.0), "the sample at 10 ms is too old");
}

#[test]
fn the_age_of_the_base_runs_from_the_latest_sample_within_two_percent() {
    let mut signals = signals();
    let age = |signals: &mut Signals, now_ms, rtt_ms| {
        signals.on_ack(&ack(now_ms, rtt_ms));
        signals.end(at(now_ms + 5)).base_age
    };
    assert_eq!(age(&mut signals, 10, 40.0), Span::from_millis(5));
    assert_eq!(age(&mut signals, 100, 41.0), Span::from_millis(95), "2.5 % above");
    assert_eq!(age(&mut signals, 200, 40.7), Span::from_millis(5), "1.75 % above");
    assert_eq!(age(&mut signals, 300, 30.0), Span::from_millis(5), "a new base");
    assert_eq!(age(&mut signals, 400, 40.0), Span::from_millis(105));
}

#[test]
fn a_base_that_rose_is_as_old_as_its_own_latest_sample() {
    let mut signals = signals();
    intervals(&mut signals, 10, &[40.0]);
    intervals(&mut signals, 5_000, &[50.0]);
    signals.on_ack(&ack(10_100, 60.0));
    let interval = signals.end(at(10_100));
    assert_eq!((interval.base, interval.base_age), (millis(50.0), Span::from_millis(5_100)));
}

#[test]
fn the_drain_is_0_where_the_queue_empties_and_near_1_where_it_stands() {
    let drain = |rtts_ms: &[f64]| intervals(&mut signals(), 10, rtts_ms).drain;
    close(drain(&[40.0, 60.0, 60.0, 60.0]), 0.0);
    close(drain(&[40.0, 50.0, 60.0, 60.0, 60.0]), 0.5); // (50 - 40) / (60 - 40)
    close(drain(&[40.0, 60.0, 60.0, 60.0, 60.0]), 1.0);
    close(drain(&[40.0, 40.99, 40.99, 40.99, 40.99]), 0.0); // no queue to speak of
}

#[test]
fn the_delivery_rate_is_an_average_that_gives_the_newest_interval_a_quarter() {
    let mut signals = signals();
    intervals(&mut signals, 10, &[40.0]); // 100 packets per second
    for _ in 0..5 {
        signals.on_ack(&ack(15, 40.0));
    }
    let interval = signals.end(at(20)); // 500
    close(interval.delivery_pps, 200.0);
    let interval = signals.end(at(30)); // none
    close(interval.delivery_pps, 150.0);
    close(interval.delivery_max_pps, 200.0);
    for second in 1..12 {
        signals.end(at(1000 * second));
    }
    assert!(signals.last().delivery_max_pps < 150.0, "200 is older than ten seconds");
}

#[test]
fn the_spread_of_the_rate_counts_changes_of_more_than_a_packet() {
    let spread = |rates: &[u64]| {
        let mut signals = signals();
        for (index, &packets) in rates.iter().cycle().take(400).enumerate() {
            let now_ms = 100 * (index as u64 + 1);
            for _ in 0..packets {
                signals.on_ack(&ack(now_ms, 40.0));
            }
            signals.end(at(now_ms));
        }
        signals.last().delivery_spread
    };
    assert!(spread(&[10]) < 1e-6);
    assert!(spread(&[10, 11]) < 1e-6, "one packet is no change");
    // From 5 to 20 packets and back: 14 of 20.
    close(spread(&[5, 20]), 0.7);
    assert!(spread(&[0, 20]) > 0.9);
}

#[test]
fn before_the_first_delivery_there_is_no_rate() {
    let mut signals = signals();
    close(signals.end(at(10)).delivery_pps, 0.0);
    close(intervals(&mut signals, 20, &[40.0]).delivery_pps, 100.0);
}

#[test]
fn losses_marks_and_what_the_application_limits_are_shares() {
    let mut signals = signals();
    let marked = Ack { ce_marked: Bytes(MSS), app_limited: 1, ..ack(1, 40.0) };
    signals.on_ack(&Ack { acked: Bytes(2 * MSS), ..marked });
    signals.on_ack(&Ack { acked: Bytes(2 * MSS), ..ack(2, 40.0) });
    let loss = |kind, lost| Loss { lost: Bytes(lost * MSS), kind, ..Loss::default() };
    signals.on_loss(&loss(LossKind::Gap, 1));
    for kind in [LossKind::Deflate, LossKind::Idle] {
        signals.on_loss(&loss(kind, 7));
    }
    let interval = signals.end(at(10));
    close(interval.loss_ratio, 0.2);
    close(interval.ce_ratio, 0.25);
    close(interval.app_limited_share, 0.5);
    close(interval.inflight_mean_packets, 10.0);
    assert!(!interval.timeout);
    signals.on_loss(&loss(LossKind::Timeout, 3));
    let interval = signals.end(at(20));
    close(interval.loss_ratio, 1.0);
    assert!(interval.timeout);
    assert!(!signals.end(at(30)).timeout);
}

#[test]
fn what_was_no_loss_is_not_counted_as_one() {
    let mut signals = signals();
    signals.on_ack(&Ack { acked: Bytes(4 * MSS), ..ack(1, 40.0) });
    let loss = |kind, lost| Loss { lost: Bytes(lost * MSS), kind, ..Loss::default() };
    for (kind, lost) in [
        (LossKind::Gap, 1),
        (LossKind::Timeout, 7),
        (LossKind::TimeoutAgain, 0),
        (LossKind::More, 2),
    ] {
        signals.on_loss(&loss(kind, lost));
    }
    signals.on_loss(&loss(LossKind::Spurious, 0));
    let interval = signals.end(at(10));
    close(interval.lost_packets, 1.0);
    assert!(!interval.timeout);
}

#[test]
fn intervals_are_counted_from_the_latest_loss() {
    let mut signals = signals();
    assert_eq!(signals.end(at(10)).intervals_since_loss, u32::MAX);
    signals.on_loss(&Loss { lost: Bytes(MSS), ..Loss::default() });
    let counts = [20, 30, 40].map(|now| signals.end(at(now)).intervals_since_loss);
    assert_eq!(counts, [0, 1, 2]);
}

#[test]
fn the_change_of_the_round_trip_is_per_second_of_the_interval() {
    close(intervals(&mut signals(), 10, &[40.0, 45.0]).rtt_change_per_s, 0.5);
    close(intervals(&mut signals(), 10, &[40.0, 38.0]).rtt_change_per_s, -0.2);
    close(intervals(&mut signals(), 10, &[40.0]).rtt_change_per_s, 0.0);
}

#[test]
fn extreme_records_give_finite_numbers() {
    let mut signals = Signals::new(Bytes(0), Time(5));
    let most = u64::MAX;
    for now in [0, 0, 7, most] {
        let (rtt, all) = (Span(most), Bytes(most));
        signals.on_ack(&Ack {
            now: Time(now),
            rtt,
            srtt: rtt,
            acked: all,
            inflight: all,
            ..Ack::default()
        });
        signals.on_ack(&Ack {
            now: Time(now),
            rtt: Span(1),
            rtt_max: rtt,
            acked: all,
            ..Ack::default()
        });
        signals.on_loss(&Loss { lost: all, ..Loss::default() });
        let interval = signals.end(Time(now));
        let shares =
            [interval.loss_ratio, interval.ce_ratio, interval.app_limited_share, interval.drain];
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        let rates =
            [interval.delivery_pps, interval.rtt_change_per_s, interval.inflight_mean_packets];
        assert!(rates.iter().all(|rate| rate.is_finite()), "{rates:?}");
    }
}
