use super::*;
use crate::controllers::test_support::{MSS, close, flow, simulated};

/// A window of 100 packets in congestion avoidance, that has seen marks.
fn prague(alpha: f64) -> Prague {
    let mut prague = Prague::new(&flow(), &Params::defaults(SPEC.params));
    (prague.window.cwnd, prague.window.ssthresh, prague.allowed) = (100.0, 50.0, 100.0);
    (prague.alpha, prague.seen_mark, prague.round_from) = (alpha, true, at(1000));
    prague
}

fn at(ms: u64) -> Time {
    Time(0) + Span::from_millis(ms)
}

/// An acknowledgement at `now_ms` of packets that left `rtt_ms` ago.
fn ack(now_ms: u64, rtt_ms: u64, packets: u64, marked: u64) -> Ack {
    Ack {
        now: at(now_ms),
        sent_at: at(now_ms - rtt_ms),
        rtt: Span::from_millis(rtt_ms),
        srtt: Span::from_millis(rtt_ms),
        acked: Bytes(packets * MSS),
        ce_marked: Bytes(marked * MSS),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

fn loss(kind: LossKind) -> Loss {
    Loss { now: at(1050), inflight: Bytes(100 * MSS), kind, ..Loss::default() }
}

#[test]
fn until_the_path_marks_alpha_stays_at_one() {
    let mut prague = prague(1.0);
    prague.seen_mark = false;
    prague.on_ack(&ack(1100, 100, 50, 0));
    close(prague.alpha, 1.0);
    prague.on_ack(&ack(1150, 100, 50, 1));
    close(prague.window.cwnd, 100.5 / 2.0 + 49.0 / 50.25);
}

#[test]
fn alpha_follows_the_share_of_marks_of_each_round_trip_with_a_sixteenth() {
    let mut prague = prague(0.0);
    prague.on_ack(&ack(1050, 100, 60, 0));
    prague.on_ack(&ack(1090, 100, 10, 10));
    close(prague.alpha, 0.0);
    prague.on_ack(&ack(1100, 100, 10, 10)); // ends the round trip: 20 of 80
    close(prague.alpha, 0.25 / 16.0);
}

#[test]
fn a_mark_takes_half_of_alpha_off_once_per_round_trip() {
    let mut prague = prague(0.5);
    prague.on_ack(&ack(1010, 100, 1, 1));
    close(prague.window.cwnd, 75.0);
    prague.on_ack(&ack(1109, 100, 1, 1));
    close(prague.window.cwnd, 75.0);
    let alpha = prague.alpha;
    prague.on_ack(&ack(1110, 100, 1, 1));
    close(prague.window.cwnd, 75.0 * (1.0 - alpha / 2.0));
    assert_eq!(prague.counters()[0], ("reductions_by_marks", 2.0));
}

#[test]
fn what_comes_unmarked_grows_the_window_in_the_round_trip_of_a_reduction_too() {
    let mut prague = prague(0.5);
    prague.on_ack(&ack(1010, 100, 1, 1));
    prague.on_ack(&ack(1020, 100, 4, 1));
    close(prague.window.cwnd, 75.0 + 3.0 / 75.0);
}

#[test]
fn what_is_allowed_follows_a_reduction_by_what_is_acknowledged() {
    let mut prague = prague(0.5);
    prague.on_ack(&ack(1010, 100, 1, 1));
    assert_eq!(prague.control().cwnd, Bytes(99 * MSS));
    prague.on_ack(&ack(1020, 100, 10, 1));
    assert_eq!(prague.control().cwnd, Bytes(89 * MSS));
}

#[test]
fn a_mark_ends_slow_start() {
    let mut prague = prague(1.0);
    prague.window.ssthresh = f64::INFINITY;
    prague.on_ack(&ack(1010, 100, 1, 1));
    assert!(!prague.window.in_slow_start());
}

/// After 500 rounds of 10 ms.
fn independent(alpha: f64) -> Prague {
    let mut prague = prague(alpha);
    (prague.rounds, prague.alpha_at, prague.srtt) = (500.0, at(990), Span::from_millis(10));
    prague
}

#[test]
fn a_short_round_trip_grows_with_the_square_of_its_share_of_25_ms() {
    let mut prague = independent(0.0);
    prague.on_ack(&ack(1001, 10, 100, 0));
    close(prague.window.cwnd, 100.0 + 0.4 * 0.4);
}

#[test]
fn before_500_round_trips_it_grows_as_reno() {
    let mut prague = independent(0.0);
    prague.rounds = 499.0;
    prague.on_ack(&ack(1001, 10, 100, 0));
    close(prague.window.cwnd, 101.0);
}

#[test]
fn a_round_trip_beyond_25_ms_grows_as_reno() {
    let mut prague = independent(0.0);
    prague.on_ack(&ack(1001, 26, 100, 0));
    close(prague.window.cwnd, 101.0);
}

#[test]
fn a_short_round_trip_answers_and_measures_once_per_25_ms() {
    let mut prague = independent(0.5);
    prague.on_ack(&ack(1001, 10, 1, 1));
    close(prague.window.cwnd, 75.0);
    prague.on_ack(&ack(1013, 10, 1, 1)); // 23 ms after alpha was updated, 12 ms after the answer
    close(prague.window.cwnd, 75.0);
    close(prague.alpha, 0.5);
    prague.on_ack(&ack(1016, 10, 1, 1));
    close(prague.alpha, 0.5 + 0.5 / 16.0);
    prague.on_ack(&ack(1026, 10, 1, 1));
    close(prague.window.cwnd, 75.0 * (1.0 - prague.alpha / 2.0));
}

#[test]
fn a_loss_halves_whatever_alpha_is() {
    let mut prague = prague(0.0);
    prague.on_loss(&loss(LossKind::Gap));
    assert_eq!(prague.control().cwnd, Bytes(50 * MSS));
    prague.on_loss(&loss(LossKind::More));
    assert_eq!(prague.control().cwnd, Bytes(50 * MSS));
}

#[test]
fn marks_during_a_recovery_are_not_answered_again() {
    let mut prague = prague(1.0);
    prague.on_loss(&loss(LossKind::Gap));
    prague.on_ack(&Ack { recovering: 1, ..ack(1200, 100, 1, 1) });
    close(prague.window.cwnd, 50.0);
}

#[test]
fn after_a_time_out_one_packet_leaves_and_the_half_comes_back_with_acknowledgements() {
    let mut prague = prague(0.0);
    prague.on_loss(&loss(LossKind::Timeout));
    assert_eq!(prague.control().cwnd, Bytes(MSS));
    prague.on_ack(&Ack { recovering: 1, ..ack(1300, 100, 10, 0) });
    assert_eq!(prague.control().cwnd, Bytes(11 * MSS));
}

#[test]
fn a_spurious_loss_gives_the_window_back() {
    let mut prague = prague(0.0);
    prague.on_loss(&loss(LossKind::Gap));
    prague.on_loss(&loss(LossKind::Spurious));
    assert_eq!(prague.control().cwnd, Bytes(100 * MSS));
}

#[test]
fn it_paces_a_window_per_round_trip_and_twice_that_far_below_the_threshold() {
    let mut prague = prague(0.0);
    prague.srtt = Span::from_millis(100);
    assert_eq!(prague.control().pacing_rate, Rate(8 * MSS * 1000));
    prague.window.ssthresh = 201.0;
    assert_eq!(prague.control().pacing_rate, Rate(2 * 8 * MSS * 1000));
    let fresh = Prague::new(&flow(), &Params::defaults(SPEC.params));
    assert!(fresh.control().pacing_rate < Rate::UNLIMITED);
}

/// Goodput in Mb/s and mean round trip in ms of each flow behind the dual queue, 40 Mb/s, for a minute.
fn behind_dualpi2(flows: &str) -> Vec<(f64, f64)> {
    simulated(&format!(
        "duration_s = 60\n[dumbbell]\nrtt_ms = 20\n[dumbbell.bottleneck]\nrate_mbps = 40\nqueue = {{ kind = \"dualpi2\", packets = 1000 }}\n{flows}"
    ))
}

#[test]
fn behind_the_dual_queue_it_fills_the_link_with_a_millisecond_or_two_of_queue() {
    let found = behind_dualpi2("[[flow]]\ncontroller = \"prague\"\nsender = { ecn = \"l4s\" }\n");
    assert!(found[0].0 > 0.9 * 40.0 * 0.965, "{found:?}");
    assert!(found[0].1 < 22.5, "{found:?}");
}

#[test]
fn beside_cubic_the_dual_queue_gives_each_about_half() {
    let found = behind_dualpi2(
        "[[flow]]\ncontroller = \"prague\"\nsender = { ecn = \"l4s\" }\n[[flow]]\ncontroller = \"cubic\"\n",
    );
    let share = found[0].0 / (found[0].0 + found[1].0);
    assert!((0.3..0.7).contains(&share), "{found:?}");
    assert!(found[0].1 < found[1].1, "the low-latency flow waits less: {found:?}");
}
