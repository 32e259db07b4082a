use super::*;
use crate::controllers::test_support::{MSS, close, flow, simulated};
use crate::units::Bytes;

fn fresh() -> LedbatPlusPlus {
    LedbatPlusPlus::new(&flow(), &Params::defaults(SPEC.params))
}

fn at(ms: u64) -> Time {
    Time(0) + Span::from_millis(ms)
}

/// An acknowledgement of one packet at `now_ms` after `rtt_ms`.
fn ack(now_ms: u64, rtt_ms: u64) -> Ack {
    let rtt = Span::from_millis(rtt_ms);
    Ack {
        now: at(now_ms),
        sent_at: at(now_ms.saturating_sub(rtt_ms)),
        rtt,
        srtt: rtt,
        acked: Bytes(MSS),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

/// In its steady state at 1 s, on a path of `base_ms`, with a window of 40 packets and the next slowdown
/// far away.
fn steady(base_ms: u64) -> LedbatPlusPlus {
    let mut ledbat = fresh();
    ledbat.sample(&ack(500, base_ms));
    (ledbat.window.cwnd, ledbat.window.ssthresh) = (40.0, 20.0);
    ledbat.phase = Phase::Steady { next: at(1_000_000) };
    ledbat.round_from = at(1_000_000);
    ledbat
}

/// The last four samples are of so much queueing delay.
fn queued(ledbat: &mut LedbatPlusPlus, base_ms: u64, delay_ms: u64) {
    (0..4).for_each(|_| ledbat.sample(&ack(1000, base_ms + delay_ms)));
}

#[test]
fn gain_is_one_over_twice_the_target_in_base_round_trips_between_a_sixteenth_and_one() {
    for (base_ms, divisor) in [(1, 16.0), (8, 15.0), (20, 6.0), (60, 2.0), (120, 1.0), (300, 1.0)] {
        close(steady(base_ms).gain(), 1.0 / divisor);
    }
}

#[test]
fn up_to_the_target_the_window_grows_by_the_gain_per_round_trip_whatever_the_delay() {
    for delay_ms in [0, 30, 60] {
        let mut ledbat = steady(60);
        queued(&mut ledbat, 60, delay_ms);
        close(ledbat.step(), 0.5);
        ledbat.on_ack(&ack(1010, 60 + delay_ms));
        close(ledbat.window.cwnd, 40.0 + 0.5 / 40.0);
    }
}

#[test]
fn beyond_it_the_window_loses_in_proportion_to_the_excess_and_at_most_half() {
    let mut ledbat = steady(60);
    queued(&mut ledbat, 60, 63);
    close(ledbat.step(), 0.5 - 40.0 * 0.05);
    queued(&mut ledbat, 60, 300);
    close(ledbat.step(), -20.0);
}

#[test]
fn the_smallest_of_four_samples_is_the_present_delay() {
    let mut ledbat = steady(60);
    queued(&mut ledbat, 60, 80);
    ledbat.sample(&ack(1000, 75));
    close(ledbat.delay(), 0.015);
    queued(&mut ledbat, 60, 80);
    close(ledbat.delay(), 0.08);
}

#[test]
fn the_base_is_the_smallest_round_trip_of_ten_minutes() {
    let mut ledbat = steady(60);
    for minute in 1..=9 {
        ledbat.sample(&ack(minute * 60_000 + 1000, 90));
        assert_eq!(ledbat.base.value(), Span::from_millis(60), "{minute}");
    }
    ledbat.sample(&ack(10 * 60_000 + 1000, 90));
    assert_eq!(ledbat.base.value(), Span::from_millis(90));
}

#[test]
fn slow_start_begins_with_two_packets_and_grows_by_the_gain_per_packet() {
    let mut ledbat = fresh();
    close(ledbat.window.cwnd, 2.0);
    ledbat.on_ack(&ack(60, 60));
    close(ledbat.window.cwnd, 2.5);
}

#[test]
fn three_quarters_of_the_target_end_slow_start() {
    for (delay_ms, ends) in [(45, false), (46, true)] {
        let mut ledbat = fresh();
        ledbat.sample(&ack(60, 60));
        queued(&mut ledbat, 60, delay_ms);
        ledbat.on_ack(&ack(1000, 60 + delay_ms));
        assert_eq!(ledbat.phase != Phase::SlowStart, ends, "{delay_ms}");
    }
}

#[test]
fn two_round_trips_after_slow_start_the_first_slowdown_lasts_two_with_two_packets() {
    let mut ledbat = steady(100);
    ledbat.leave_slow_start();
    ledbat.round_from = at(900);
    let mut windows = Vec::new();
    for round in 1..=4 {
        ledbat.on_ack(&ack(900 + 100 * round, 100));
        windows.push(ledbat.window.cwnd < 3.0);
    }
    assert_eq!(windows, [false, true, true, true]);
    assert!(matches!(ledbat.phase, Phase::Recovering { .. }), "{:?}", ledbat.phase);
    assert!(ledbat.window.ssthresh >= 40.0, "the window to come back to");
}

#[test]
fn the_next_slowdown_comes_after_nine_times_as_long_as_the_last_took() {
    let mut ledbat = steady(120);
    ledbat.phase = Phase::Recovering { since: at(500) };
    (ledbat.window.cwnd, ledbat.window.ssthresh) = (39.5, 40.0);
    ledbat.on_ack(&ack(1300, 120));
    assert_eq!(ledbat.phase, Phase::Steady { next: at(1300 + 9 * 800) });
    close(ledbat.window.cwnd, 40.0);
    (ledbat.round_from, ledbat.slowdowns) = (at(0), 0);
    ledbat.on_ack(&ack(1300 + 9 * 800 - 1, 120));
    assert_eq!(ledbat.slowdowns, 0);
    ledbat.on_ack(&ack(1300 + 9 * 800 + 200, 120));
    assert_eq!(ledbat.slowdowns, 1);
}

#[test]
fn a_loss_halves_and_a_time_out_starts_over() {
    let mut ledbat = steady(60);
    let loss = |kind| Loss { now: at(1000), inflight: Bytes(40 * MSS), kind, ..Loss::default() };
    ledbat.on_loss(&loss(LossKind::Gap));
    close(ledbat.window.cwnd, 20.0);
    ledbat.on_loss(&loss(LossKind::Timeout));
    close(ledbat.window.cwnd, 2.0);
    assert_eq!(ledbat.phase, Phase::Recovering { since: at(1000) });
}

/// Goodputs in Mb/s and mean round trips in ms of 120 s on a link of 10 Mb/s and 40 ms with a buffer of
/// 250 ms.
fn shared(flows: &str) -> Vec<(f64, f64)> {
    let text = format!(
        "duration_s = 120\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 10\n\
         queue = {{ kind = \"drop_tail\", packets = 208 }}\n{flows}"
    );
    simulated(&text)
}

#[test]
fn alone_it_uses_the_link_and_keeps_the_delay_near_the_target() {
    let flows = shared("[[flow]]\ncontroller = \"ledbat_plus_plus\"\n");
    let (mbps, rtt_ms) = flows[0];
    assert!(mbps > 8.0 && rtt_ms < 110.0, "{mbps} Mb/s, {rtt_ms} ms");
}

#[test]
fn beside_a_flow_that_fills_the_buffer_it_gives_way() {
    for other in ["cubic", "new_reno"] {
        let flows = shared(&format!(
            "[[flow]]\ncontroller = \"ledbat_plus_plus\"\n[[flow]]\ncontroller = \"{other}\"\n"
        ));
        assert!(flows[0].0 < 1.0 && flows[1].0 > 8.0, "{other}: {flows:?}");
    }
}

#[test]
fn a_late_one_gets_its_share_of_an_early_one() {
    let flows = shared(
        "[[flow]]\ncontroller = \"ledbat_plus_plus\"\n\
         [[flow]]\ncontroller = \"ledbat_plus_plus\"\nstart_s = 20\n",
    );
    let (early, late) = (flows[0].0, flows[1].0);
    assert!(late > 0.5 * early, "{early} and {late} Mb/s");
}

#[test]
fn a_batch_fills_the_filter_as_its_single_acknowledgements_do() {
    let mut ledbat = steady(100);
    queued(&mut ledbat, 100, 10);
    let batch = Ack { acked: Bytes(4 * MSS), prior_inflight: Bytes(MSS), ..ack(1100, 150) };
    ledbat.sample(&Ack { batch_rtt_min: Span::from_millis(95), ..batch });
    close(ledbat.delay(), 0.055);
}
