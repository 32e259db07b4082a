use super::*;
use crate::controllers::test_support::{MSS, close, flow, simulated};
use crate::params::ParamValue;

const BASE_MS: f64 = 100.0;

fn copa(switching: &str) -> Copa {
    let given = [("mode_switching".to_owned(), ParamValue::Word(switching.to_owned()))];
    Copa::new(&flow(), &Params::resolve(SPEC.params, &given).unwrap())
}

/// A path whose queueing delay is set by hand.
struct Path {
    now_ms: f64,
    queue_ms: f64,
}

impl Path {
    fn ack(&self, packets: u64) -> Ack {
        let rtt_ms = BASE_MS + self.queue_ms;
        let rtt = Span((rtt_ms * 1e6) as u64);
        let at = |ms: f64| Time((ms.max(0.0) * 1e6) as u64);
        Ack {
            now: at(self.now_ms),
            sent_at: at(self.now_ms - rtt_ms),
            rtt,
            srtt: rtt,
            min_rtt: Span((BASE_MS * 1e6) as u64),
            rtt_max: rtt,
            acked: Bytes(packets * MSS),
            cwnd_limited: 1,
            ..Ack::default()
        }
    }

    /// The acknowledgements of a whole window over a round trip, and of the packet that ends it.
    fn round(&mut self, copa: &mut Copa) {
        let window = copa.cwnd as u64;
        let rounds = copa.rounds;
        for _ in 0..window {
            self.now_ms += (BASE_MS + self.queue_ms) / window as f64;
            copa.on_ack(&self.ack(1));
        }
        while copa.rounds == rounds {
            self.now_ms += 1.0;
            copa.on_ack(&self.ack(0));
        }
    }
}

/// Out of slow start with a window of 50 packets and an empty queue.
fn steady(switching: &str) -> (Copa, Path) {
    let (mut copa, mut path) = (copa(switching), Path { now_ms: 0.0, queue_ms: 0.0 });
    path.round(&mut copa);
    (copa.slow_start, copa.cwnd, copa.cwnd_before) = (false, 50.0, 50.0);
    (copa, path)
}

#[test]
fn slow_start_doubles_until_the_rate_exceeds_the_target() {
    let (mut copa, mut path) = (copa("on"), Path { now_ms: 0.0, queue_ms: 0.0 });
    path.round(&mut copa);
    close(copa.cwnd, 20.0);
    path.queue_ms = 5.0; // 20 · 5 < 2 · 105
    copa.on_ack(&path.ack(1));
    close(copa.cwnd, 21.0);
    path.now_ms += 100.0;
    path.queue_ms = 15.0; // 21 · 15 > 2 · 115
    copa.on_ack(&path.ack(1));
    close(copa.cwnd, 21.0);
    assert!(!copa.slow_start);
}

#[test]
fn an_acknowledgement_without_a_round_trip_does_not_end_slow_start() {
    let (mut copa, path) = (copa("on"), Path { now_ms: 0.0, queue_ms: 0.0 });
    copa.on_ack(&Ack { rtt: Span::ZERO, ..path.ack(1) });
    assert!(copa.slow_start);
    close(copa.cwnd, 11.0);
}

#[test]
fn below_the_target_the_window_grows_by_one_over_delta_per_round_trip() {
    let (mut copa, path) = steady("on");
    copa.on_ack(&path.ack(1));
    close(copa.cwnd, 50.0 + 1.0 / (0.5 * 50.0));
    copa.on_ack(&path.ack(2));
    close(copa.cwnd, 50.04 + 2.0 / (0.5 * 50.04));
}

#[test]
fn above_the_target_it_shrinks_by_as_much_but_not_below_two_packets() {
    let (mut copa, mut path) = steady("on");
    (path.queue_ms, path.now_ms) = (10.0, path.now_ms + 200.0); // 50 · 10 > 2 · 110
    copa.on_ack(&path.ack(1));
    close(copa.cwnd, 50.0 - 1.0 / (0.5 * 50.0));
    (copa.cwnd, copa.velocity, path.queue_ms) = (3.0, 3.0, 500.0);
    path.now_ms += 400.0;
    copa.on_ack(&path.ack(3));
    close(copa.cwnd, 2.0);
}

#[test]
fn the_target_is_a_rate_of_one_over_delta_times_the_queueing_delay() {
    let (mut copa, mut path) = steady("on");
    path.now_ms += 200.0;
    for (queue_ms, below) in [(4.1, true), (4.3, false)] {
        // 50/(100 + d) packets per ms against 2/d: equal at d = 100/24 ms.
        path.queue_ms = queue_ms;
        path.now_ms += 100.0;
        copa.sample(&path.ack(1));
        assert_eq!(copa.cwnd <= copa.target(), below, "{queue_ms}");
    }
}

#[test]
fn velocity_doubles_from_the_third_round_trip_that_keeps_the_direction_until_a_turn() {
    let (mut copa, mut path) = steady("on");
    copa.direction = Direction::Down;
    let mut seen = Vec::new();
    for _ in 0..5 {
        path.round(&mut copa);
        seen.push(copa.velocity);
    }
    // A turn, and three that keep the direction.
    assert_eq!(seen, [1.0, 1.0, 1.0, 2.0, 4.0]);
    path.queue_ms = 50.0;
    path.round(&mut copa);
    path.round(&mut copa);
    close(copa.velocity, 1.0);
    assert_eq!(copa.direction, Direction::Down);
}

#[test]
fn a_window_that_fell_within_a_round_trip_rises_to_three_times_the_flight_at_most() {
    let (mut copa, path) = steady("off");
    (copa.velocity, copa.cwnd, copa.round_from) = (5000.0, 2.0, Time::NEVER);
    copa.on_ack(&Ack { prior_inflight: Bytes(30 * MSS), ..path.ack(2) });
    close(copa.cwnd, 90.0);
}

#[test]
fn velocity_is_at_most_the_window() {
    let (mut copa, mut path) = steady("on");
    for _ in 0..30 {
        path.round(&mut copa);
        assert!(copa.velocity <= copa.cwnd, "{} > {}", copa.velocity, copa.cwnd);
        copa.cwnd = copa.cwnd.min(60.0);
        copa.cwnd_before = 50.0;
    }
    assert!(copa.velocity >= 50.0, "{}", copa.velocity);
}

#[test]
fn the_recent_round_trip_is_the_smallest_of_half_a_smoothed_one() {
    let (mut copa, mut path) = steady("on");
    path.now_ms += 200.0;
    copa.sample(&path.ack(1));
    (path.queue_ms, path.now_ms) = (80.0, path.now_ms + 40.0);
    copa.sample(&path.ack(1));
    assert_eq!(copa.recent.value(), Some(Span::from_millis(100)), "jitter");
    path.now_ms += 60.0;
    copa.sample(&path.ack(1));
    assert_eq!(copa.recent.value(), Some(Span::from_millis(180)), "a queue that stands");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let (mut copa, path) = steady("on");
    copa.on_ack(&Ack { cwnd_limited: 0, ..path.ack(1) });
    close(copa.cwnd, 50.0);
    copa.slow_start = true;
    copa.on_ack(&Ack { cwnd_limited: 0, ..path.ack(1) });
    close(copa.cwnd, 50.0);
}

/// Rounds over a queue that stands at 60 ms, with a window that stays.
fn full_queue(copa: &mut Copa, path: &mut Path, rounds: usize) -> Vec<Option<f64>> {
    path.queue_ms = 60.0;
    let modes = (0..rounds).map(|_| {
        copa.cwnd = 50.0;
        path.round(copa);
        copa.competitive
    });
    modes.collect()
}

#[test]
fn five_round_trips_without_a_nearly_empty_queue_mean_competition() {
    let (mut copa, mut path) = steady("on");
    let modes = full_queue(&mut copa, &mut path, 8);
    let first = modes.iter().position(Option::is_some);
    assert!(matches!(first, Some(4 | 5)), "{modes:?}");
    path.queue_ms = 4.0; // less than a tenth of 60 ms
    path.round(&mut copa);
    assert_eq!(copa.competitive, None);
}

#[test]
fn competing_one_over_delta_grows_by_one_per_round_trip_and_halves_on_a_loss() {
    let (mut copa, mut path) = steady("on");
    let modes = full_queue(&mut copa, &mut path, 20);
    let grown: Vec<f64> = modes.into_iter().flatten().collect();
    let expected: Vec<f64> = (2..).map(f64::from).take(grown.len()).collect();
    assert_eq!(grown, expected);
    let before = *grown.last().unwrap();
    copa.on_loss(&Loss { kind: LossKind::Gap, ..Loss::default() });
    assert_eq!(full_queue(&mut copa, &mut path, 1), [Some(before / 2.0)]);
    for _ in 0..9 {
        copa.on_loss(&Loss { kind: LossKind::Gap, ..Loss::default() });
        full_queue(&mut copa, &mut path, 1);
    }
    assert_eq!(copa.competitive, Some(2.0), "never more patient than the default mode");
}

#[test]
fn without_switching_it_never_competes() {
    let (mut copa, mut path) = steady("off");
    assert!(full_queue(&mut copa, &mut path, 20).iter().all(Option::is_none));
    assert_eq!(copa.counters(), [("competitive_rounds", 0.0)]);
}

#[test]
fn it_paces_at_two_windows_per_recent_round_trip() {
    let (copa, _) = steady("on");
    close(copa.control().pacing_rate.0 as f64, 2.0 * 50.0 * 8000.0 / 0.1);
}

#[test]
fn a_time_out_starts_over_and_other_losses_leave_the_window() {
    let (mut copa, _) = steady("on");
    copa.on_loss(&Loss { kind: LossKind::Gap, ..Loss::default() });
    close(copa.cwnd, 50.0);
    copa.on_loss(&Loss { kind: LossKind::Timeout, ..Loss::default() });
    close(copa.cwnd, 2.0);
    assert!(copa.slow_start);
}

/// Goodputs in Mb/s and mean round trips in ms of 60 s on a link of 20 Mb/s and 40 ms with a deep buffer.
fn shared(flows: &str) -> Vec<(f64, f64)> {
    let text = format!(
        "duration_s = 60\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 20\n\
         queue = {{ kind = \"drop_tail\", packets = 300 }}\n{flows}"
    );
    simulated(&text)
}

#[test]
fn alone_it_uses_a_deep_buffer_s_link_with_a_few_packets_queued() {
    let flows = shared("[[flow]]\ncontroller = \"copa\"\n");
    let (mbps, rtt_ms) = flows[0];
    assert!(mbps > 18.5 && rtt_ms < 45.0, "{mbps} Mb/s, {rtt_ms} ms");
}

#[test]
fn four_flows_share_a_link_and_keep_the_delay_low() {
    let flows = shared("[[flow]]\ncontroller = \"copa\"\ncount = 4\nstart_spread_s = 4\n");
    let rates: Vec<f64> = flows.iter().map(|flow| flow.0).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least > 3.5 && flows.iter().all(|flow| flow.1 < 60.0), "{flows:?}");
}

#[test]
fn beside_cubic_the_competitive_mode_keeps_a_share_more_than_twice_as_large() {
    let beside = |switching: &str| {
        let flows = format!(
            "[[flow]]\ncontroller = \"copa\"\nparams = {{ mode_switching = \"{switching}\" }}\n\
             [[flow]]\ncontroller = \"cubic\"\n"
        );
        shared(&flows)[0].0
    };
    let (on, off) = (beside("on"), beside("off"));
    assert!(on > 2.0 * off, "{on}, without the mode {off} of 20 Mb/s");
}

#[test]
fn a_batch_of_acknowledgements_ends_at_the_target_as_single_ones_do() {
    for (queue_ms, target) in [(3.0, 103.0 / 1.5), (4.0, 52.0)] {
        for batch in [1, 2, 10, 25] {
            let (mut copa, mut path) = steady("off");
            (path.queue_ms, path.now_ms) = (queue_ms, 1000.0);
            (copa.velocity, copa.cwnd, copa.round_from) = (32.0, 60.0, Time::NEVER);
            for _ in 0..100 / batch {
                let ack = path.ack(batch);
                let (inflight, prior_inflight) = (Bytes(59 * MSS), Bytes(60 * MSS));
                copa.on_ack(&Ack { inflight, prior_inflight, ..ack });
            }
            // The step of a packet is 32 · 2 / 60.
            assert!((copa.cwnd - target).abs() < 1.5, "{queue_ms} ms, {batch}: {}", copa.cwnd);
        }
    }
}

#[test]
fn the_smallest_round_trip_of_a_batch_counts() {
    let (mut copa, mut path) = steady("off");
    (path.queue_ms, path.now_ms) = (40.0, 1000.0);
    let smallest = Span::from_millis(110);
    copa.on_ack(&Ack { batch_rtt_min: smallest, ..path.ack(25) });
    assert_eq!(copa.recent.value(), Some(smallest));
}
