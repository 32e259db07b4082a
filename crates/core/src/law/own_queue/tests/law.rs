use std::fmt::Write as _;

use super::*;
use crate::controllers::test_support::{MSS, close, flow};
use crate::units::Bytes;

const BASE: Span = Span::from_millis(100);

fn law() -> Law {
    Law::new(&flow(), &Settings::default())
}

/// Out of the start with a window of 100 packets.
fn steady() -> Law {
    let mut law = law();
    (law.phase, law.cwnd, law.earlier) = (Phase::Steady, 100.0, 100.0);
    law
}

/// An interval of a tenth of a second that ended at `now_s` and found a queue of `queue_ms`.
fn interval(now_s: f64, queue_ms: f64) -> Interval {
    let rtt = BASE + Span((queue_ms * 1e6) as u64);
    Interval {
        now: Time::from_secs_f64(now_s),
        duration: rtt,
        rtt_min: rtt,
        rtt_mean: rtt,
        srtt: rtt,
        base: BASE,
        acked_packets: 100.0,
        inflight_mean_packets: 1000.0,
        delivery_pps: 833.0,
        delivery_max_pps: 833.0,
        ..Interval::default()
    }
}

/// The law with all of its window in flight and all of the interval's samples at its smallest.
fn decide(law: &mut Law, interval: &Interval, action: [f64; 2]) -> f64 {
    (law.found, law.rtt) = (law.cwnd, interval.rtt_min);
    law.on_interval(interval, action);
    law.cwnd_packets()
}

#[test]
fn the_first_value_of_a_paced_action_sets_target_and_pacing_together() {
    let told = |value: f64| {
        let mut law = steady();
        let turned = Turned::of([value, 0.0]);
        law.turn_to(&turned);
        let cwnd = decide(&mut law, &interval(1.0, 0.0), [turned.target, 0.0]);
        (cwnd, law.pacing().expect("paced").0 as f64 / law.cwnd_packets())
    };
    let (_, plain) = told(0.0);
    for (value, target, pacing) in
        [(-1.0, 0.5, 1.0), (0.0, 1.0, 1.0), (0.5, 2f64.sqrt(), 4.0), (1.0, 2.0, 16.0)]
    {
        let (cwnd, rate) = told(value);
        close(cwnd, 100.0 + 0.5 * 3.5 * target);
        assert!((rate / plain / pacing - 1.0).abs() < 1e-6, "{value}: {rate} {plain}");
    }
}

#[test]
fn the_second_value_of_a_paced_action_is_what_a_held_rate_may_grow() {
    let mut law = law();
    law.turn_to(&Turned::of([0.5, -0.25]));
    close(law.hold.growth, -0.25);
}

#[test]
fn an_interval_corrects_half_of_the_error() {
    let mut law = steady();
    close(decide(&mut law, &interval(1.0, 0.0), [0.0; 2]), 100.0 + 0.5 * 3.5);
    let (mut law, queue) = (steady(), 100.0 * (1.0 - 100.0 / 110.0));
    close(decide(&mut law, &interval(1.0, 10.0), [0.0; 2]), 100.0 + 0.5 * (3.5 - queue));
}

#[test]
fn an_interval_does_not_correct_a_queue_that_the_last_step_has_already_taken_away() {
    let (mut law, queue) = (steady(), 100.0 * (1.0 - 100.0 / 110.0));
    law.earlier = 100.0 + (queue - 3.5);
    close(decide(&mut law, &interval(1.0, 10.0), [0.0; 2]), 100.0);
    // The next interval still shows half of it.
    let mut law = steady();
    law.earlier = 100.0 + (queue - 3.5) / 2.0;
    close(decide(&mut law, &interval(1.0, 10.0), [0.0; 2]), 100.0 - 0.5 * (queue - 3.5) / 2.0);
    // More than the queue cannot be taken away.
    law = steady();
    law.earlier = 150.0;
    close(decide(&mut law, &interval(1.0, 10.0), [0.0; 2]), 100.0 + 0.5 * 3.5);
}

#[test]
fn what_the_last_step_added_is_in_the_queue_only_where_there_is_one() {
    let after = |queue_ms: f64| {
        let mut law = steady();
        law.earlier = 96.0;
        decide(&mut law, &interval(1.0, queue_ms), [0.0; 2])
    };
    // Less than half of the target: the path was not full.
    close(after(0.0), 100.0 + 0.5 * 3.5);
    let queue = 100.0 * (1.0 - 100.0 / 102.0);
    close(after(2.0), 100.0 + 0.5 * (3.5 - (queue + 4.0)));
}

#[test]
fn the_step_that_an_interval_makes_is_foreseen_in_the_next() {
    let mut law = steady();
    let first = decide(&mut law, &interval(1.0, 10.0), [0.0; 2]);
    close(law.earlier, 100.0);
    let queue = first * (1.0 - 100.0 / 110.0);
    let error = 3.5 - (queue + first - 100.0);
    close(decide(&mut law, &interval(1.1, 10.0), [0.0; 2]), first + 0.5 * error);
    close(law.earlier, first);
}

#[test]
fn the_target_grows_with_the_root_of_the_rate() {
    let law = steady();
    close(law.target(833.0, 0.0), 3.5);
    close(law.target(83_300.0, 0.0), 35.0);
    close(law.target(0.0, 0.0), 1.0);
}

#[test]
fn the_target_may_grow_with_another_power_of_the_rate() {
    let of = |exponent| {
        let settings = Settings { exponent, ..Settings::default() };
        let law = Law { cwnd: 1000.0, ..Law::new(&flow(), &settings) };
        [833.0, 83_300.0].map(|pps| law.target(pps, 0.0))
    };
    for (exponent, wanted) in [(0.0, 3.5), (0.25, 3.5 * 10.0_f64.sqrt()), (0.5, 35.0)] {
        close(of(exponent)[0], 3.5);
        close(of(exponent)[1], wanted);
    }
}

#[test]
fn the_first_action_scales_the_target_up_to_the_window_and_down_to_a_packet() {
    let law = steady();
    close(law.target(833.0, 0.5), 28.0);
    close(law.target(833.0, 1.0), 100.0);
    close(law.target(833.0, -1.0), 1.0);
}

#[test]
fn the_second_action_scales_the_window_finely_near_zero() {
    close(effect(1.0), 1.0);
    close(effect(-1.0), -1.0);
    assert!(libm::exp2(effect(0.1) / 2.0) < 1.006);
    let mut law = steady();
    close(decide(&mut law, &interval(1.0, 0.0), [0.0, 1.0]), 101.75 * libm::sqrt(2.0));
}

#[test]
fn an_error_that_keeps_its_sign_is_corrected_ever_faster() {
    let mut law = steady();
    law.cwnd = 1000.0;
    let mut steps = Vec::new();
    for round in 0..6 {
        let before = law.cwnd;
        let after = decide(&mut law, &interval(f64::from(round) / 10.0, 0.0), [0.0; 2]);
        steps.push(after - before);
    }
    close(steps[0], 1.75);
    close(steps[1], 1.75);
    close(steps[2], 1.75 * 1.5);
    close(steps[4] / steps[3], 1.5);
    let queue = 20.0;
    let before = law.cwnd;
    let after = decide(&mut law, &interval(0.7, queue), [0.0; 2]);
    assert!(after < before);
    close(law.velocity, 1.0);
}

#[test]
fn no_step_leaves_its_bounds() {
    let mut law = steady();
    law.velocity = 32.0;
    close(decide(&mut law, &interval(1.0, 0.0), [0.0; 2]), 125.0);
    let mut law = steady();
    close(decide(&mut law, &interval(1.0, 900.0), [0.0; 2]), 80.0);
    let mut law = steady();
    law.velocity = 32.0;
    assert!(decide(&mut law, &interval(1.0, 0.0), [1.0, 1.0]) <= 200.0);
}

#[test]
fn the_start_doubles_and_ends_with_a_queue_in_eight_packets() {
    let mut law = law();
    let mut at = 0.0;
    let mut ack = |law: &mut Law, queue_ms: f64| {
        at += 0.01;
        let rtt = BASE + Span((queue_ms * 1e6) as u64);
        law.on_ack(&Ack {
            now: Time::from_secs_f64(at),
            rtt,
            srtt: rtt,
            min_rtt: BASE,
            acked: Bytes(MSS),
            inflight: Bytes(10 * MSS),
            delivery_rate: Rate::from_mbps(0.5 * 8.0),
            cwnd_limited: 1,
            ..Ack::default()
        });
    };
    (0..16).for_each(|_| ack(&mut law, 5.0));
    close(law.cwnd_packets(), 26.0);
    (0..7).for_each(|_| ack(&mut law, 100.0));
    ack(&mut law, 5.0);
    assert!(law.is_starting(), "seven late packets of eight are no queue");
    law.cwnd = 100.0;
    (0..8).for_each(|_| ack(&mut law, 13.0));
    assert!(!law.is_starting());
    // 500 packets/s for 100 ms, and the target.
    close(law.cwnd_packets(), 50.0 + 3.5 * libm::sqrt(500.0 / 833.0));
}

/// A law that a queue has taken out of the start at 1 s, with a window of 100 packets before.
fn ended_by_a_queue() -> Law {
    let mut law = law();
    // The first seven of eight packets still add one each.
    law.cwnd = 93.0;
    (0..8).for_each(|_| law.on_ack(&told(1.0, 0.9, 500.0)));
    assert!(!law.is_starting());
    law
}

/// An acknowledgement of a packet sent at `sent_s`, delivered at so many packets per second.
fn told(now_s: f64, sent_s: f64, rate_pps: f64) -> Ack {
    let rtt = BASE + Span::from_millis(13);
    Ack {
        now: Time::from_secs_f64(now_s),
        sent_at: Time::from_secs_f64(sent_s),
        rtt,
        srtt: rtt,
        min_rtt: BASE,
        acked: Bytes(MSS),
        inflight: Bytes(10 * MSS),
        delivery_rate: Rate((rate_pps * 8.0 * MSS as f64) as u64),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

fn filled(rate_pps: f64) -> f64 {
    rate_pps * 0.1 + 3.5 * libm::sqrt(rate_pps / 833.0)
}

#[test]
fn after_a_queue_ended_the_start_its_last_packets_raise_the_window_to_what_the_path_holds() {
    let mut law = ended_by_a_queue();
    close(law.cwnd_packets(), filled(500.0));
    law.on_ack(&told(1.01, 0.9, 800.0));
    close(law.cwnd_packets(), filled(800.0));
    law.on_ack(&told(1.02, 0.91, 600.0));
    close(law.cwnd_packets(), filled(800.0));
    // At most the window that the start had reached.
    law.on_ack(&told(1.03, 0.92, 5000.0));
    close(law.cwnd_packets(), 100.0);
}

#[test]
fn a_packet_sent_after_the_start_ends_what_the_start_can_tell() {
    let mut law = ended_by_a_queue();
    law.on_ack(&told(1.12, 1.01, 800.0));
    close(law.cwnd_packets(), filled(500.0));
    law.on_ack(&told(1.13, 0.99, 800.0));
    close(law.cwnd_packets(), filled(500.0));
}

#[test]
fn losses_of_the_start_are_answered_once() {
    let mut law = law();
    law.cwnd = 100.0;
    law.on_loss(&Loss { kind: LossKind::Gap, lost: Bytes(30 * MSS), ..Loss::default() });
    assert!(!law.is_starting());
    close(law.cwnd_packets(), 50.0);
    let lossy = |round: u32| Interval {
        lost_packets: 30.0,
        acked_packets: 70.0,
        loss_ratio: 0.3,
        ..interval(f64::from(round) / 10.0, 0.5)
    };
    for round in 1..=2 {
        close(decide(&mut law, &lossy(round), [0.0; 2]), 50.0);
    }
    assert_eq!(law.counts.cuts, 0);
    // Later ones are those of the halved window.
    close(decide(&mut law, &lossy(3), [0.0; 2]), 25.0);
    assert_eq!(law.counts.cuts, 1);
}

#[test]
fn a_time_out_leaves_two_packets_and_starts_again_up_to_half_of_the_window() {
    let mut law = steady();
    law.on_loss(&Loss { kind: LossKind::Timeout, ..Loss::default() });
    close(law.cwnd_packets(), 2.0);
    assert_eq!(law.phase, Phase::Start { until: 50.0 });
    law.on_loss(&Loss { kind: LossKind::Spurious, ..Loss::default() });
    close(law.cwnd_packets(), 100.0);
}

/// What waited while the path stood still says nothing of the path; nor is a loss of before taken back twice.
#[test]
fn a_spurious_time_out_leaves_window_and_rate_of_before() {
    let mut law = steady();
    law.on_ack(&told(0.9, 0.85, 1000.0));
    let before = (law.cwnd_packets(), law.pacing());
    law.on_loss(&Loss {
        kind: LossKind::Timeout,
        now: Time::from_secs_f64(1.2),
        ..Loss::default()
    });
    law.on_loss(&Loss {
        kind: LossKind::Spurious,
        now: Time::from_secs_f64(2.5),
        ..Loss::default()
    });
    for packet in 0..40 {
        law.on_ack(&told(2.5 + f64::from(packet) / 1e3, 0.9, 1000.0));
    }
    assert_eq!((law.cwnd_packets(), law.pacing()), before);
    assert!(!law.is_starting());
    law.cwnd = 30.0;
    law.on_loss(&Loss {
        kind: LossKind::Spurious,
        now: Time::from_secs_f64(9.0),
        ..Loss::default()
    });
    close(law.cwnd_packets(), 30.0);
}

#[test]
fn a_restart_after_idling_returns_to_the_initial_window_and_knows_the_one_before() {
    let mut law = steady();
    law.on_loss(&Loss { kind: LossKind::Idle, ..Loss::default() });
    close(law.cwnd_packets(), 10.0);
    assert_eq!(law.phase, Phase::Start { until: 100.0 });
}

#[test]
fn an_unused_window_does_not_grow_beyond_twice_what_was_in_flight() {
    let mut law = steady();
    for round in 0..50 {
        law.found = 20.0;
        law.on_interval(&interval(f64::from(round) / 10.0, 0.0), [0.0; 2]);
    }
    close(law.cwnd_packets(), 50.0);
}

#[test]
fn after_round_trips_without_an_acknowledgement_the_window_does_not_grow() {
    let mut law = steady();
    let silent = Interval { duration: BASE * 4, ..interval(1.0, 0.0) };
    close(decide(&mut law, &silent, [0.0; 2]), 100.0);
}

#[test]
fn a_congestion_mark_takes_its_part_of_the_window() {
    let mut law = steady();
    let marked = Interval { marked_packets: 1.0, ..interval(1.0, 0.0) };
    close(decide(&mut law, &marked, [0.0; 2]), 85.0);
}

/// Decides over `rounds` intervals; each loses this part of what it sends while the window exceeds `over`.
fn lossy(law: &mut Law, rounds: u32, ratio: f64, over: f64) -> Vec<f64> {
    let mut windows = Vec::new();
    for round in 1..=rounds {
        let lost = if law.cwnd > over { ratio * law.cwnd } else { 0.0 };
        let acked = law.cwnd - lost;
        let lossy = Interval {
            lost_packets: lost,
            acked_packets: acked,
            loss_ratio: ratio,
            ..interval(f64::from(round) / 10.0, if law.cwnd > 95.0 { 0.5 } else { 0.1 })
        };
        windows.push(decide(law, &lossy, [0.0; 2]));
    }
    windows
}

#[test]
fn a_loss_that_stays_with_a_smaller_window_is_the_paths_own() {
    let mut law = steady();
    // Its first drain is over: the next is not due within these intervals.
    law.drains.begin(&interval(0.0, 0.5), 1.0);
    law.drains.cancel();
    let windows = lossy(&mut law, 30, 0.05, 0.0);
    assert!(windows.iter().any(|window| *window < 72.0), "{windows:?}");
    assert_eq!(law.counts.cuts, 1);
    // The verdict returns the window; the target, which the loss restrains, then takes some of it for a time.
    close(windows[4], 100.0);
    assert!(windows[4..].iter().all(|window| *window > 84.0), "{windows:?}");
    // Above 95 packets there is a queue, of more than that target.
    assert!(windows[20..].iter().all(|window| *window > 94.0), "{windows:?}");
}

#[test]
fn a_loss_that_goes_with_a_smaller_window_keeps_it_smaller() {
    let mut law = steady();
    let windows = lossy(&mut law, 20, 0.05, 95.0);
    assert!(windows[15..].iter().all(|window| *window < 90.0), "{windows:?}");
}

/// Eight of a hundred packets were lost.
fn eight_lost(at_s: f64) -> Interval {
    Interval { lost_packets: 8.0, acked_packets: 92.0, loss_ratio: 0.08, ..interval(at_s, 0.5) }
}

#[test]
fn an_action_does_not_change_which_losses_are_answered() {
    for action in [[0.0, 0.0], [0.05, 0.0], [0.5, 0.0], [0.0, 0.5], [0.0, 1.0]] {
        close(decide(&mut steady(), &eight_lost(1.0), action), 70.0);
    }
}

#[test]
fn an_action_does_not_return_the_window_while_it_is_judged_what_stays_of_a_loss() {
    let mut law = steady();
    close(decide(&mut law, &eight_lost(1.0), [0.0, 1.0]), 70.0);
    for at_s in [1.1, 1.2, 1.3] {
        assert!(decide(&mut law, &eight_lost(at_s), [0.0, 1.0]) <= 70.0);
    }
    // A smaller window than the law's is allowed.
    assert!(decide(&mut steady(), &eight_lost(1.0), [0.0, -1.0]) < 70.0);
}

/// 25 packets of a round trip pass, with no queue.
#[test]
fn what_a_policer_drops_is_not_taken_for_the_paths_own_however_large_the_window() {
    for cwnd in [100.0, 400.0] {
        let mut law = steady();
        law.cwnd = cwnd;
        let mut windows = Vec::new();
        for round in 1..=40 {
            let acked = law.cwnd.min(25.0);
            let policed = Interval {
                lost_packets: law.cwnd - acked,
                acked_packets: acked,
                loss_ratio: 1.0 - acked / law.cwnd,
                ..interval(f64::from(round) / 10.0, 0.0)
            };
            windows.push(decide(&mut law, &policed, [0.0; 2]));
        }
        assert!(windows[25..].iter().all(|window| *window < 27.0), "{windows:?}");
    }
}

#[test]
fn a_drain_comes_when_the_queue_was_long_not_empty_and_ends_when_its_window_is_reached() {
    let mut law = steady();
    let mut at = 0.0;
    while law.drains.window().is_none() {
        at += 0.1;
        assert!(at < 1.5, "1.25 s and a tenth");
        decide(&mut law, &interval(at, 3.8), [0.0; 2]);
    }
    assert!(at > 1.1, "{at}");
    let (window, before) = (law.cwnd_packets(), law.cwnd);
    close(window, 0.5 * before * 100.0 / 103.8);
    let ack = |sent_s: f64, found: f64| Ack {
        now: Time::from_secs_f64(sent_s + 0.1),
        sent_at: Time::from_secs_f64(sent_s),
        inflight: Bytes((found * MSS as f64) as u64),
        rtt: BASE,
        srtt: BASE,
        ..Ack::default()
    };
    law.on_ack(&ack(at - 0.05, window + 1.0));
    close(law.cwnd_packets(), window);
    law.on_ack(&ack(at - 0.04, window - 0.5));
    close(law.cwnd_packets(), before);
    // The law rests until a packet sent from then on has told of the drained queue.
    let error = interval(at + 0.1, 3.8);
    close(decide(&mut law, &error, [0.0; 2]), before);
    assert_eq!(law.counters()[0], ("drains", 1.0));
}

#[test]
fn a_far_too_long_queue_of_the_flows_own_is_pushed_down_whatever_the_action() {
    let mut law = steady();
    law.rate_max.sample(0, 1.0);
    for round in 0..25 {
        law.cwnd = 100.0;
        law.losses.forget();
        decide(&mut law, &interval(f64::from(round) / 10.0, 800.0), [1.0, 1.0]);
    }
    assert!(law.cwnd < 100.0 && law.counts.bloated > 3, "{}", law.cwnd);
}

#[test]
fn a_drain_in_an_interval_that_knows_no_round_trip_keeps_a_window() {
    let mut law = steady();
    for second in 1..60 {
        (law.found, law.rtt) = (law.cwnd, BASE);
        let now = Time::from_secs_f64(f64::from(second));
        let blind = Interval { now, inflight_mean_packets: 1000.0, ..Interval::default() };
        law.on_interval(&blind, [0.0; 2]);
        let cwnd = law.cwnd_packets();
        assert!(cwnd >= CWND_MIN, "{cwnd} packets after {second} s");
    }
    assert!(law.drains.window().is_some() || law.drains.count() > 0, "no drain began");
}

/// One step of the law at its smallest velocity, without losses, as ln of the window after over that before. The row is the
/// window, that of the interval before, packets in flight, packets per second, the round trip over the base, and the action.
fn step_of(row: [f64; 7]) -> f64 {
    let [cwnd, earlier, inflight, pps, ratio, first, second] = row;
    let mut law = Law { cwnd, earlier, phase: Phase::Steady, ..law() };
    let rtt = BASE.mul_f64(ratio);
    let interval = Interval {
        duration: rtt,
        rtt_min: rtt,
        rtt_mean: rtt,
        srtt: rtt,
        inflight_mean_packets: inflight,
        delivery_pps: pps,
        ..interval(1.0, 0.0)
    };
    libm::log(decide(&mut law, &interval, [first, second]) / cwnd)
}

/// `certificates.change` of the Python package repeats the law's step; its tests read the same file.
#[test]
fn the_stored_steps_are_those_of_the_law() {
    let mut rng = crate::rng::Rng::new(7);
    let mut table = String::from("cwnd earlier inflight pps ratio first second change\n");
    for _ in 0..300 {
        let cwnd = libm::exp(rng.uniform_in(2.5, 7.5));
        let [earlier, inflight] =
            [(0.7, 1.5), (0.5, 1.1)].map(|(low, high)| cwnd * rng.uniform_in(low, high));
        let queue = libm::exp(rng.uniform_in(-5.0, 1.0));
        let actions = if rng.chance(0.5) { 0.0 } else { 1.0 };
        let [first, second] = [(); 2].map(|()| actions * rng.uniform_in(-1.0, 1.0));
        let drawn = [cwnd, earlier, inflight, cwnd / 0.1, 1.0 + queue, first, second];
        let row = drawn.map(|value| (value * 1e6).round() / 1e6);
        for value in row.iter().chain(&[step_of(row)]) {
            let _ = write!(table, "{value:.6} ");
        }
        table.truncate(table.len() - 1);
        table.push('\n');
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/own_queue_steps.txt");
    if std::env::var_os("ACKADEMY_BLESS").is_some() {
        std::fs::write(path, &table).expect("a writable folder");
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(stored == table, "{path} differs; ACKADEMY_BLESS=1 writes it anew");
}

#[test]
fn jitter_hides_the_queue_from_actions_that_ask_for_less_than_the_law() {
    let of = |jitter_us: u64| Interval {
        jitter: Span(jitter_us * 1000),
        delivery_max_pps: 10_000.0, // two packets in 0.2 ms
        ..Interval::default()
    };
    assert!(is_misled_by_jitter(&of(300), [-0.1, 0.0]));
    assert!(is_misled_by_jitter(&of(300), [0.1, -0.5]), "the factor outweighs the target");
    assert!(!is_misled_by_jitter(&of(300), [0.1, 0.0]));
    assert!(!is_misled_by_jitter(&of(300), [0.0, 0.0]));
    assert!(!is_misled_by_jitter(&of(100), [-0.1, 0.0]), "the queue is seen");
}

#[test]
fn jitter_beyond_four_packets_is_no_queue_but_for_a_quarter() {
    let mut law = steady();
    (law.cwnd, law.rtt) = (108.0, Span::from_millis(108));
    for (jitter_ms, queue) in [(0, 8.0), (2, 8.0), (4, 6.5), (100, 2.0)] {
        let interval = Interval {
            jitter: Span::from_millis(jitter_ms),
            delivery_max_pps: 2000.0, // four packets in 2 ms
            ..interval(1.0, 8.0)
        };
        close(law.own_queue(&interval), queue);
    }
}

#[test]
fn jitter_lets_a_window_grow_that_falls_without() {
    // Half of the window is in the queue, 28 packets are wanted. Four packets take 4.8 ms.
    for (jitter_ms, change) in [(0, -11.0), (4, -11.0), (105, 7.75)] {
        let interval = Interval { jitter: Span::from_millis(jitter_ms), ..interval(1.0, 100.0) };
        let grown = decide(&mut steady(), &interval, [0.5, 0.0]) - 100.0;
        assert!((grown - change).abs() < 0.01, "{grown} with {jitter_ms} ms");
    }
}
