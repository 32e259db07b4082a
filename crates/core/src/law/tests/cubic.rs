use super::*;
use crate::params::ParamValue;
use crate::units::Bytes;

const MSS: u64 = 1000;

fn flow(recovery: Recovery) -> FlowInfo {
    FlowInfo {
        mss: Bytes(MSS),
        initial_cwnd: Bytes(10 * MSS),
        initial_ssthresh: Bytes(u64::MAX),
        recovery,
        paces: false,
        start: Time(0),
        seed: 1,
    }
}

fn cubic(settings: &[(&str, &str)]) -> Cubic {
    let given: Vec<_> = settings
        .iter()
        .map(|(name, word)| ((*name).to_owned(), ParamValue::Word((*word).to_owned())))
        .collect();
    Cubic::new(&flow(Recovery::Sack), &Params::resolve(PARAMS, &given).unwrap())
}

/// Linux's own CUBIC, which paces there, leaves slow start at 2116 of 4167 packets on 1 Gb/s and 50 ms.
#[test]
fn a_paced_slow_start_reaches_half_of_the_product() {
    for (rate_mbps, rtt_ms) in [(100.0, 100.0), (1000.0, 50.0)] {
        let text = format!(
            "duration_s = 3\nsample_interval_ms = 5\n[dumbbell]\nrtt_ms = {rtt_ms}\n[dumbbell.bottleneck]\n\
             rate_mbps = {rate_mbps}\nqueue = {{ kind = \"drop_tail\", bdp = 2 }}\n[sender]\npacing = true\n\
             [[flow]]\ncontroller = \"cubic\"\n"
        );
        let (outcome, _) = crate::controllers::test_support::run(&text, 1);
        let ends = outcome.flow_series.ssthresh_packets.iter().copied().find(|end| end.is_finite());
        let product = rate_mbps * rtt_ms / 12.0;
        let share = ends.expect("slow start ends") / product;
        assert!(share >= 0.5, "{share} of {product} packets");
    }
}

/// A flow of 100 packets that has just lost one; by the rules of RFC 9438.
fn after_loss_at_100() -> Cubic {
    let mut cubic = cubic(&[("rules", "rfc9438")]);
    cubic.window.cwnd = 100.0;
    cubic.on_loss(&loss(100, LossKind::Gap));
    cubic
}

fn loss(packets: u64, kind: LossKind) -> Loss {
    Loss { inflight: Bytes(packets * MSS), kind, ..Loss::default() }
}

fn ack_at(secs: f64, rtt_ms: u64) -> Ack {
    Ack {
        now: Time::from_secs_f64(secs),
        sent_at: Time::from_secs_f64(secs - rtt_ms as f64 / 1e3),
        rtt: Span::from_millis(rtt_ms),
        srtt: Span::from_millis(rtt_ms),
        acked: Bytes(MSS),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

/// Windows of ACKs, one window a round trip, from `start` to `end` seconds.
fn run(cubic: &mut Cubic, rtt_ms: u64, (start, end): (f64, f64)) {
    let mut now = start;
    while now < end {
        cubic.on_ack(&ack_at(now, rtt_ms));
        now += rtt_ms as f64 / 1e3 / cubic.window.cwnd;
    }
}

fn close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

#[test]
fn a_loss_leaves_seven_tenths_of_the_flight() {
    let cubic = after_loss_at_100();
    close(cubic.window.cwnd, 70.0, 1e-9);
    close(cubic.window.ssthresh, 70.0, 1e-9);
    close(cubic.w_max, 100.0, 1e-9);
}

#[test]
fn under_ns2_recovery_the_window_is_reduced_and_flight_size_is_ignored() {
    let mut cubic = Cubic::new(&flow(Recovery::Ns2), &Params::defaults(PARAMS));
    cubic.window.cwnd = 100.0;
    cubic.on_loss(&loss(10, LossKind::Gap));
    close(cubic.window.cwnd, 70.0, 1e-9);
}

#[test]
fn the_plateau_comes_after_k_seconds() {
    let mut cubic = after_loss_at_100();
    let k = libm::cbrt(30.0 / 0.4); // equation 2: 4.217 s
    run(&mut cubic, 100, (1.0, 1.0 + k));
    close(cubic.window.cwnd, 100.0, 0.5);
    run(&mut cubic, 100, (1.0 + k, 1.0 + 2.0 * k));
    close(cubic.window.cwnd, 130.0, 2.0);
}

#[test]
fn fast_convergence_gives_up_some_of_a_window_that_did_not_come_back() {
    let mut cubic = after_loss_at_100();
    cubic.window.cwnd = 80.0;
    cubic.on_loss(&loss(80, LossKind::Gap));
    close(cubic.w_max, 68.0, 1e-9); // 80 * (1 + 0.7) / 2
    let mut without = self::cubic(&[("fast_convergence", "off")]);
    without.w_max = 100.0;
    without.window.cwnd = 80.0;
    without.on_loss(&loss(80, LossKind::Gap));
    close(without.w_max, 80.0, 1e-9);
}

#[test]
fn on_short_round_trips_it_is_no_slower_than_reno() {
    // 10 ms: the cubic needs 4.2 s for 30 packets, Reno at alpha 0.53 only 0.57 s.
    let mut cubic = after_loss_at_100();
    run(&mut cubic, 10, (1.0, 1.3));
    close(cubic.window.cwnd, 70.0 + 30.0 * 0.5294, 1.0);
}

#[test]
fn where_reno_is_faster_the_window_is_its_estimate_even_if_that_is_less() {
    let mut cubic = after_loss_at_100();
    run(&mut cubic, 1, (1.0, 1.02));
    let estimate = |cubic: &Cubic| cubic.epoch.as_ref().unwrap().w_est;
    cubic.window.cwnd = estimate(&cubic) + 5.0;
    cubic.on_ack(&ack_at(1.02, 1));
    close(cubic.window.cwnd, estimate(&cubic), 1e-9);
}

#[test]
fn past_the_prior_window_the_reno_estimate_grows_by_one_per_round_trip() {
    let mut cubic = after_loss_at_100();
    run(&mut cubic, 1, (1.0, 1.08));
    let before = cubic.window.cwnd;
    assert!(before > 100.0, "{before}");
    run(&mut cubic, 1, (1.08, 1.09));
    close(cubic.window.cwnd, before + 10.0, 1.0);
}

#[test]
fn as_in_linux_a_reduction_counts_whole_packets() {
    let left = |rules| {
        let mut cubic = cubic(&[("rules", rules), ("reduce_from", "window")]);
        (cubic.window.cwnd, cubic.w_max) = (9.9, 12.0);
        cubic.on_loss(&loss(9, LossKind::Gap));
        (cubic.window.cwnd, cubic.w_max)
    };
    assert_eq!(left("linux"), (6.0, 7.0)); // 9 · 717/1024, 9 · 1741/2048
    close(left("rfc9438").0, 6.93, 1e-9);
    close(left("rfc9438").1, 8.415, 1e-9);
    let mut cubic = cubic(&[("reduce_from", "window")]);
    cubic.window.cwnd = 90.0;
    cubic.on_loss(&loss(90, LossKind::Gap));
    close(cubic.window.cwnd, 63.0, 1e-9); // 0.7 · 90 is a little less in binary
}

#[test]
fn the_target_is_at_most_half_a_window_away() {
    let mut cubic = after_loss_at_100();
    cubic.window.cwnd = 10.0;
    cubic.window.ssthresh = 10.0;
    cubic.w_max = 1e6;
    cubic.on_ack(&ack_at(1.0, 100));
    cubic.epoch.as_mut().unwrap().k = 0.0; // the cubic is far above
    cubic.on_ack(&ack_at(1.1, 100));
    close(cubic.window.cwnd, 10.5, 1e-9);
}

#[test]
fn time_in_which_the_window_was_not_used_does_not_count() {
    let mut busy = after_loss_at_100();
    run(&mut busy, 100, (1.0, 3.0));
    let mut paused = after_loss_at_100();
    run(&mut paused, 100, (1.0, 2.0));
    for now in [2.0, 2.04, 2.08] {
        paused.on_ack(&Ack { cwnd_limited: 0, ..ack_at(now, 100) });
    }
    run(&mut paused, 100, (3600.0, 3601.0));
    close(paused.window.cwnd, busy.window.cwnd, 1.0);
}

#[test]
fn after_a_timeout_the_first_stage_starts_on_its_plateau() {
    let mut cubic = after_loss_at_100();
    cubic.on_loss(&loss(70, LossKind::Timeout));
    close(cubic.window.cwnd, 1.0, 1e-9);
    close(cubic.window.ssthresh, 49.0, 1e-9);
    run(&mut cubic, 100, (2.0, 3.0));
    let epoch = cubic.epoch.as_ref().unwrap();
    close(epoch.k, 0.0, 1e-9);
    close(cubic.w_max, 49.0, 1.0);
}

#[test]
fn marks_of_one_window_reduce_once() {
    let mut cubic = cubic(&[]);
    cubic.window.cwnd = 100.0;
    let mark = Ack { ce_marked: Bytes(MSS), prior_inflight: Bytes(100 * MSS), ..ack_at(1.0, 100) };
    cubic.on_ack(&mark);
    close(cubic.window.cwnd, 70.0, 1e-9);
    cubic.on_ack(&Ack { now: Time::from_secs_f64(1.05), ..mark });
    assert!(cubic.window.cwnd >= 70.0);
    assert!(cubic.window.cwnd < 71.0);
}

#[test]
fn nothing_grows_in_recovery() {
    let mut cubic = after_loss_at_100();
    cubic.on_ack(&Ack { recovering: 1, ..ack_at(1.0, 100) });
    close(cubic.window.cwnd, 70.0, 1e-9);
}

/// The windows after slow-start rounds with these round trips.
fn slow_start_rounds(cubic: &mut Cubic, rtts_ms: &[u64]) -> Vec<f64> {
    let mut now = Time(0);
    let mut round = |&rtt_ms: &u64| {
        let sent_at = now;
        now += Span::from_millis(rtt_ms);
        for _ in 0..cubic.window.cwnd as u64 {
            cubic.on_ack(&Ack { now, sent_at, ..ack_at(0.0, rtt_ms) });
        }
        cubic.window.cwnd
    };
    rtts_ms.iter().map(&mut round).collect()
}

#[test]
fn hystart_slows_down_when_the_round_trip_grows_and_leaves_five_rounds_later() {
    let mut cubic = cubic(&[("hystart", "plus")]);
    // Threshold 40/8 = 5 ms: the fifth round is the first to exceed it. A round then adds a
    // quarter of the window, and the fifth round after that ends slow start.
    let windows = slow_start_rounds(&mut cubic, &[40, 40, 40, 40, 46, 50, 60, 70, 80]);
    close(windows[3], 160.0, 1e-9);
    close(windows[4], 200.0, 7.0);
    close(windows[5] / windows[4], 1.25, 0.01);
    assert!(cubic.window.in_slow_start());
    let mut cubic = self::cubic(&[("hystart", "plus")]);
    slow_start_rounds(&mut cubic, &[40, 40, 40, 40, 46, 50, 60, 70, 80, 90]);
    assert!(!cubic.window.in_slow_start());
}

#[test]
fn hystart_resumes_when_the_round_trip_falls_again() {
    let mut cubic = cubic(&[("hystart", "plus")]);
    let windows = slow_start_rounds(&mut cubic, &[40, 40, 46, 40, 40]);
    close(windows[4] / windows[3], 2.0, 0.01);
}

#[test]
fn without_hystart_slow_start_ignores_the_round_trip() {
    let mut cubic = cubic(&[("hystart", "off")]);
    close(slow_start_rounds(&mut cubic, &[40, 80, 160])[2], 80.0, 1e-9);
}

/// A window of `cwnd` packets in slow start; the round's ACKs come 1 ms apart.
fn acks_a_millisecond_apart(cubic: &mut Cubic, start: f64, acks: u32) {
    for index in 0..acks {
        let now = Time::from_secs_f64(start + f64::from(index) / 1e3);
        let sent_at = Time::from_secs_f64(start - 0.1);
        cubic.on_ack(&Ack { now, sent_at, ..ack_at(start, 100) });
    }
}

#[test]
fn by_default_slow_start_ends_with_an_ack_train_of_half_a_round_trip() {
    let mut cubic = cubic(&[]);
    cubic.window.cwnd = 30.0;
    acks_a_millisecond_apart(&mut cubic, 1.0, 50);
    assert!(cubic.window.in_slow_start());
    acks_a_millisecond_apart(&mut cubic, 1.05, 2);
    assert!(!cubic.window.in_slow_start(), "{:?}", cubic.exit);
    close(cubic.window.ssthresh, 81.0, 1e-9);
    assert!(cubic.window.cwnd < 82.5);
}

#[test]
fn by_default_slow_start_ends_with_a_delay() {
    let mut cubic = cubic(&[]);
    // The threshold is 40 + 5 ms; the fourth round is the first above it.
    let windows = slow_start_rounds(&mut cubic, &[40, 40, 45, 46]);
    assert!(windows[2] >= 80.0 && !cubic.window.in_slow_start(), "{windows:?}");
    close(cubic.window.ssthresh, 88.0, 1.0);
}

#[test]
fn before_the_first_loss_the_default_grows_by_a_twentieth_per_round_trip_at_least() {
    let after_one_round_trip = |hystart| {
        let mut cubic = cubic(&[("hystart", hystart)]);
        cubic.window.cwnd = 100.0;
        cubic.window.ssthresh = 100.0;
        run(&mut cubic, 100, (1.0, 1.1));
        cubic.window.cwnd
    };
    close(after_one_round_trip("linux"), 105.0, 0.2);
    assert!(after_one_round_trip("off") < 101.0);
    let mut lost = after_loss_at_100();
    let plateau = 1.0 + libm::cbrt(75.0);
    run(&mut lost, 100, (1.0, plateau));
    let before = lost.window.cwnd;
    run(&mut lost, 100, (plateau, plateau + 0.1));
    close(lost.window.cwnd, before, 0.5);
}

#[test]
fn a_time_out_lets_hystart_look_again() {
    let mut cubic = cubic(&[]);
    cubic.window.cwnd = 30.0;
    acks_a_millisecond_apart(&mut cubic, 1.0, 60);
    cubic.on_loss(&loss(80, LossKind::Timeout));
    cubic.window.cwnd = 20.0;
    assert!(cubic.window.in_slow_start());
    cubic.window.ssthresh = 1000.0;
    acks_a_millisecond_apart(&mut cubic, 3.0, 60);
    close(cubic.window.ssthresh, 71.0, 1.0);
}

#[test]
fn a_spurious_loss_gives_the_window_and_the_cubic_back() {
    for kind in [LossKind::Gap, LossKind::Timeout] {
        let mut cubic = after_loss_at_100();
        run(&mut cubic, 100, (1.0, 3.0));
        let mut reduced = cubic.clone();
        reduced.on_loss(&loss(80, kind));
        assert!(reduced.window.cwnd < cubic.window.cwnd);
        reduced.on_loss(&loss(0, LossKind::Spurious));
        close(reduced.w_max, cubic.w_max, 1e-9);
        run(&mut cubic, 100, (3.0, 5.0));
        run(&mut reduced, 100, (3.0, 5.0));
        close(reduced.window.cwnd, cubic.window.cwnd, 1e-9);
    }
}

#[test]
fn by_default_a_spurious_loss_gives_the_window_back_and_the_cubic_starts_anew() {
    let mut cubic = cubic(&[]);
    cubic.window.cwnd = 100.0;
    cubic.on_loss(&loss(100, LossKind::Gap));
    run(&mut cubic, 100, (1.0, 3.0));
    let before = cubic.window.cwnd;
    cubic.on_loss(&loss(80, LossKind::Timeout));
    cubic.on_loss(&loss(0, LossKind::Spurious));
    close(cubic.window.cwnd, before, 1e-9);
    assert!(cubic.epoch.is_none());
    run(&mut cubic, 100, (3.0, 3.2));
    close(cubic.w_max, before, 1e-9);
}
