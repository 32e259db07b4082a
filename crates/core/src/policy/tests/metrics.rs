use super::*;
use crate::decision::METRIC_NAMES;

const MSS: f64 = 1000.0;
const RTT_MS: u64 = 40;

fn at(millis: u64) -> Time {
    Time(0) + Span::from_millis(millis)
}

/// The acknowledgement of `packets`, the newest sent at `sent_ms`.
fn ack(sent_ms: u64, packets: u64) -> Ack {
    let rtt = Span::from_millis(RTT_MS);
    Ack {
        now: at(sent_ms) + rtt,
        sent_at: at(sent_ms),
        rtt,
        srtt: rtt,
        min_rtt: rtt,
        acked: Bytes(packets * 1000),
        ..Ack::default()
    }
}

fn loss(sent_ms: u64, packets: u64, kind: LossKind) -> Loss {
    Loss { sent_at: at(sent_ms), lost: Bytes(packets * 1000), kind, ..Loss::default() }
}

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
}

/// Monitor intervals of 20 ms, of decisions 0, 1, ...; a packet is sent per millisecond.
fn accounts(intervals: u64) -> IntervalAccounts {
    let mut accounts = IntervalAccounts::new(MSS);
    for number in 0..intervals {
        let state = State { cwnd_packets: 10.0 + number as f64, ..State::default() };
        accounts.begin(at(20 * number), Some(number), 20_000 * number, state);
    }
    accounts
}

fn book(accounts: &mut IntervalAccounts, ack: &Ack) {
    book_all(accounts, [*ack]);
}

fn book_all(accounts: &mut IntervalAccounts, acks: impl IntoIterator<Item = Ack>) {
    let mut entries = Entries::new(MSS);
    acks.into_iter().for_each(|ack| accounts.on_ack(&ack, &entries.next(&ack)));
}

fn taken(accounts: &mut IntervalAccounts) -> Vec<Credit> {
    std::iter::from_fn(|| accounts.take()).collect()
}

#[test]
fn what_is_sent_in_a_interval_is_its_own_whenever_it_arrives() {
    let mut accounts = accounts(3);
    for sent_ms in (0..60).filter(|&sent_ms| sent_ms != 7 && sent_ms != 25) {
        book(&mut accounts, &ack(sent_ms, 1));
        if sent_ms == 10 {
            accounts.on_loss(&loss(7, 1, LossKind::Gap));
        }
    }
    let credits = taken(&mut accounts);
    assert_eq!(credits.iter().map(|credit| credit.decision).collect::<Vec<_>>(), [0, 1]);
    let first = credits[0].metrics;
    close(first.acked_packets, 19.0);
    close(first.lost_packets, 1.0);
    close(first.loss_ratio, 0.05);
    // From the first acknowledgement of the interval to that of the next.
    close(first.duration_s, 0.02);
    close(first.time_s, 0.06);
    close(first.throughput_mbps, 19.0 * 8e-3 / 0.02);
    close(first.rtt_mean_ms, 40.0);
    close(first.cwnd_packets, 10.0);
    close(credits[1].metrics.acked_packets, 19.0);
    close(credits[1].metrics.cwnd_packets, 11.0);
}

#[test]
fn a_interval_closes_with_the_first_acknowledgement_of_a_later_one() {
    let mut accounts = accounts(2);
    for sent_ms in 0..20 {
        book(&mut accounts, &ack(sent_ms, 1));
        assert_eq!(accounts.take(), None, "at {sent_ms} ms");
    }
    book(&mut accounts, &ack(20, 1));
    assert_eq!(accounts.take().map(|credit| credit.decision), Some(0));
}

#[test]
fn a_loss_that_later_packets_reveal_still_counts_until_the_interval_is_told() {
    let mut accounts = accounts(2);
    (0..19).chain(20..23).for_each(|sent_ms| book(&mut accounts, &ack(sent_ms, 1)));
    accounts.on_loss(&loss(19, 1, LossKind::Gap));
    let credit = accounts.take().expect("closed by the packet of 20 ms");
    close(credit.metrics.lost_packets, 1.0);
    close(credit.metrics.acked_packets, 19.0);
    // Taken: a later loss of it is not counted.
    accounts.on_loss(&loss(18, 1, LossKind::More));
    (23..60).for_each(|sent_ms| book(&mut accounts, &ack(sent_ms, 1)));
    assert!(taken(&mut accounts).iter().all(|credit| credit.metrics.lost_packets == 0.0));
}

#[test]
fn a_interval_of_which_nothing_returns_closes_after_two_round_trips_and_its_packets_are_lost() {
    let mut accounts = accounts(2);
    // Only a late repair of a packet from before the first interval is acknowledged.
    for now in [99, 100, 101] {
        book(&mut accounts, &Ack { now: at(now), sent_at: Time(0), ..ack(0, 1) });
    }
    let credit = accounts.take().expect("20 ms and two round trips are over");
    close(credit.metrics.time_s, 0.101);
    close(credit.metrics.acked_packets, 3.0);
    close(credit.metrics.lost_packets, 17.0);
}

#[test]
fn a_batch_is_booked_to_the_intervals_as_its_packets_would_be() {
    let (mut singly, mut batched) = (accounts(4), accounts(4));
    book_all(&mut singly, (0..80).map(|sent_ms| ack(sent_ms, 1)));
    let batches = (8..80).step_by(8).map(|sent_ms| ack(sent_ms, 8));
    book_all(&mut batched, std::iter::once(ack(0, 1)).chain(batches));
    let (singly, batched) = (taken(&mut singly), taken(&mut batched));
    assert_eq!(singly.len(), batched.len());
    for (one, many) in singly.iter().zip(&batched) {
        let (one, many) = (one.metrics, many.metrics);
        assert!((one.acked_packets - many.acked_packets).abs() <= 1.0, "{one:?} {many:?}");
        close(one.rtt_mean_ms, many.rtt_mean_ms);
        assert!((one.ack_gap_ms - many.ack_gap_ms).abs() < 0.1);
    }
}

#[test]
fn an_interval_without_a_decision_is_not_reported() {
    let mut accounts = accounts(2);
    accounts.begin(at(40), None, 40_000, State::default());
    accounts.begin(at(60), Some(2), 60_000, State::default());
    (0..100).for_each(|sent_ms| book(&mut accounts, &ack(sent_ms, 1)));
    let told: Vec<_> = taken(&mut accounts).iter().map(|credit| credit.decision).collect();
    assert_eq!(told, [0, 1]);
}

#[test]
fn packets_sent_before_the_first_interval_are_not_counted() {
    let mut accounts = IntervalAccounts::new(MSS);
    accounts.begin(at(50), Some(0), 50_000, State::default());
    accounts.begin(at(70), Some(1), 70_000, State::default());
    (0..71).for_each(|sent_ms| book(&mut accounts, &ack(sent_ms, 1)));
    close(accounts.take().expect("closed").metrics.acked_packets, 20.0);
}

#[test]
fn a_flow_that_decides_faster_than_it_gets_acknowledgements_keeps_a_bounded_account() {
    let mut accounts = IntervalAccounts::new(MSS);
    for number in 0..3 * INTERVALS_MAX as u64 {
        accounts.begin(Time(number), Some(number), number, State::default());
    }
    assert_eq!(accounts.open.len(), INTERVALS_MAX);
    assert_eq!(accounts.closed.len(), INTERVALS_MAX);
}

#[test]
fn what_arrives_is_summed_up_from_decision_to_decision() {
    let mut arrived = Arrived::new(MSS, Time(0));
    let sent =
        |delivered: u64| Ack { delivered: Bytes(delivered), inflight: Bytes(5000), ..ack(0, 1) };
    let mut entries = Entries::new(MSS);
    let mut book = |arrived: &mut Arrived, ack: Ack| arrived.on_ack(&ack, &entries.next(&ack));
    book(&mut arrived, Ack { now: at(40), ..sent(1000) });
    arrived.restart(at(40));
    for (millis, rtt_ms, packets) in [(50, 40, 1), (60, 50, 1), (80, 70, 2)] {
        let rtt = Span::from_millis(rtt_ms);
        let acked = Bytes(packets * 1000);
        let sent = sent(1000 * (millis / 10 - 3));
        book(&mut arrived, Ack { now: at(millis), rtt, acked, ..sent });
    }
    arrived.on_loss(&loss(50, 1, LossKind::Gap));
    arrived.on_loss(&loss(50, 1, LossKind::Deflate));
    let state = State { cwnd_packets: 8.0, pacing: Rate::UNLIMITED, ..State::default() };
    let metrics = arrived.metrics(at(80), &state);
    close(metrics.duration_s, 0.04);
    close(metrics.acked_packets, 4.0);
    close(metrics.lost_packets, 1.0);
    close(metrics.loss_ratio, 0.2);
    close(metrics.throughput_mbps, 0.8);
    close(metrics.rtt_mean_ms, 57.5);
    assert_eq!((metrics.rtt_first_ms, metrics.rtt_last_ms), (40.0, 70.0));
    close(metrics.rtt_min_ms, 40.0);
    close(metrics.rtt_slope, 1.0);
    close(metrics.ack_gap_ms, 10.0);
    assert_eq!((metrics.cwnd_packets, metrics.pacing_mbps), (8.0, 0.0));
    // Four packets were delivered and as many are in flight as before.
    close(arrived.sent_packets(), 4.0);
}

#[test]
fn no_record_is_all_zeros() {
    let arrived = Arrived::new(MSS, Time(0));
    let state = State { pacing: Rate::UNLIMITED, ..State::default() };
    assert_eq!(arrived.metrics(Time(0), &state), Metrics::default());
}

#[test]
fn samples_of_one_moment_have_no_slope() {
    let mut samples = Samples::default();
    for rtt in [40, 50, 60] {
        samples.add(at(100_000), Span::from_millis(rtt), rtt as f64 / 1e3, 1.0);
    }
    close(samples.slope(), 0.0);
}

#[test]
fn names_and_numbers_have_one_order() {
    let metrics = Metrics { time_s: 1.0, rtt_slope: 2.0, pacing_mbps: 3.0, ..Metrics::default() };
    let named = |name| metrics.row()[METRIC_NAMES.iter().position(|own| *own == name).unwrap()];
    assert_eq!((named("time_s"), named("rtt_slope"), named("pacing_mbps")), (1.0, 2.0, 3.0));
}
