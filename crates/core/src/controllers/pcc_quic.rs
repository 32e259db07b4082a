//! PCC as in Google QUIC's sender of 2018, which the authors of `LearningCC` ran under the name
//! "Vivace" (GitHub `SoonyangZhang/DrainQueueCongestion`, `pcc_sender.cc`,
//! `pcc_monitor_interval_queue.cc`, `pcc_utility_manager.cc`): Allegro's kind of utility, with a
//! penalty on growing round trips, and other steps.
use crate::control::{Ack, Spec};
use crate::controllers::shared::pcc::{Pairs, Path, Pcc, Plan, Rounds, Rule, Schedule, Way};
use crate::params::{Param, Params};
use crate::rng::Rng;
use crate::sensing::monitor_interval::Report;
use crate::units::Span;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "pcc_quic",
    about: "PCC as in Google QUIC, utility of throughput, loss and round trip; paces",
    source: "SoonyangZhang/DrainQueueCongestion, pcc_sender.cc: what LearningCC's \"Vivace\" was",
    params: PARAMS,
    build: |flow, _: &Params| Box::new(Pcc::new(flow, Quic::new())),
};

const PARAMS: &[Param] = &[];

/// Difference of the probes, as a part of the rate.
const PROBE: f64 = 0.05;
/// First step after a decision, what each further one adds, and the largest.
const STEP: (f64, f64) = (0.02, 0.10);
/// An interval, in smallest round-trip times.
const INTERVAL_MIN_RTTS: f64 = 1.5;
/// Loss at which the utility breaks off.
const LOSS_TOLERANCE: f64 = 0.05;
/// Steepness of the penalties on loss and on the round trip.
const STEEPNESS: (f64, f64) = (1000.0, 200.0);
/// Growth of the round trip that counts as none: in the start, while probing, after a decision.
const RTT_TOLERANCE: (f64, f64, f64) = (0.30, 0.0, 0.05);
/// Slowest rate, packets per round trip.
const FLOOR_PACKETS: f64 = 4.0;

/// Utility, in bytes per millisecond; round trips within `tolerance` of each other count as equal.
fn utility(report: &Report, tolerance: f64) -> f64 {
    let (first_s, last_s) = report.srtt_s;
    let ratio = if last_s > 0.0 { first_s / last_s } else { 1.0 };
    let ratio = if (ratio - 1.0).abs() < tolerance { 1.0 } else { ratio };
    let keep = |excess: f64| 1.0 - 1.0 / (1.0 + libm::exp(-excess));
    let loss_penalty = keep(STEEPNESS.0 * (report.loss_ratio() - LOSS_TOLERANCE));
    let latency_penalty = keep(STEEPNESS.1 * (1.0 - ratio));
    (report.acked * loss_penalty * latency_penalty - report.lost) / (report.duration_s * 1e3)
}

#[derive(Clone, Debug)]
enum State {
    /// Doubles the rate after each interval that was better.
    Start { planned: bool, best: f64 },
    /// Compares rates around the present one; `None` before the order is drawn.
    Probe(Option<Pairs>),
    /// Goes on the same `way`; `before_bps` is the last good rate, `best` its utility.
    Decided { planned: bool, way: Way, step: f64, before_bps: f64, best: f64 },
}

/// What an interval is for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Start,
    Probe,
    Decided,
}

/// The rule of QUIC's sender.
#[derive(Clone, Debug)]
struct Quic {
    rate_bps: f64,
    state: State,
    rounds: Rounds,
}

impl Quic {
    fn new() -> Self {
        Self {
            rate_bps: 1e6,
            state: State::Start { planned: false, best: 0.0 },
            rounds: Rounds::default(),
        }
    }

    fn set_rate(&mut self, rate_bps: f64, path: &Path) {
        self.rate_bps = path.bounded_bps(rate_bps, FLOOR_PACKETS);
    }

    fn leave_start(&mut self) -> Schedule {
        self.rate_bps *= 0.5;
        self.state = State::Probe(None);
        Schedule::Change
    }

    fn judge_start(&mut self, path: &Path, report: &Report) -> Schedule {
        let State::Start { planned, best } = &mut self.state else { return Schedule::Keep };
        *planned = false;
        if !report.usable {
            return Schedule::Change;
        }
        let utility = utility(report, RTT_TOLERANCE.0);
        if utility <= *best {
            return self.leave_start();
        }
        *best = utility;
        self.set_rate(self.rate_bps * 2.0, path);
        Schedule::Change
    }

    fn judge_probe(&mut self, path: &Path, report: &Report) -> Schedule {
        let State::Probe(Some(pairs)) = &mut self.state else { return Schedule::Keep };
        if report.usable && !pairs.record(utility(report, RTT_TOLERANCE.1)) {
            return Schedule::Keep;
        }
        let Some(way) = pairs.agreed().filter(|_| report.usable) else {
            self.rounds.undecided += 1;
            self.state = State::Probe(None);
            return Schedule::Change;
        };
        self.rounds.decided += 1;
        let best = pairs.last_best();
        let before_bps = self.rate_bps * (1.0 + way.sign() * PROBE);
        self.set_rate(before_bps * (1.0 + way.sign() * STEP.0), path);
        self.state = State::Decided { planned: false, way, step: STEP.0, before_bps, best };
        Schedule::Change
    }

    fn judge_decided(&mut self, path: &Path, report: &Report) -> Schedule {
        let State::Decided { way, step, before_bps, best, .. } = self.state else {
            return Schedule::Keep;
        };
        let utility = utility(report, RTT_TOLERANCE.2);
        if !report.usable || utility <= best {
            self.set_rate(before_bps, path);
            self.state = State::Probe(None);
            return Schedule::Change;
        }
        let before_bps = self.rate_bps;
        let step = (step + STEP.0).min(STEP.1);
        self.set_rate(before_bps * (1.0 + way.sign() * step), path);
        self.state = State::Decided { planned: false, way, step, before_bps, best: utility };
        Schedule::Change
    }
}

impl Rule for Quic {
    type Purpose = Purpose;

    fn begin(&mut self, path: &Path) {
        self.rate_bps = path.packets_per_rtt_bps(path.initial_packets);
        self.state = State::Start { planned: false, best: 0.0 };
    }

    fn plan(&mut self, path: &Path, rng: &mut Rng) -> Plan<Purpose> {
        let mut rate_bps = self.rate_bps;
        let purpose = match &mut self.state {
            State::Start { planned: planned @ false, .. } => {
                *planned = true;
                Some(Purpose::Start)
            }
            State::Start { .. } => {
                rate_bps *= 0.5;
                None
            }
            State::Probe(pairs) => {
                let way = pairs.get_or_insert_with(|| Pairs::new(rng)).way();
                rate_bps *= 1.0 + way.unwrap_or(Way::Down).sign() * PROBE;
                way.map(|_| Purpose::Probe)
            }
            State::Decided { planned: planned @ false, .. } => {
                *planned = true;
                Some(Purpose::Decided)
            }
            State::Decided { before_bps, .. } => {
                rate_bps = rate_bps.min(*before_bps);
                None
            }
        };
        Plan { rate_bps, duration_s: INTERVAL_MIN_RTTS * path.min_rtt_s, purpose }
    }

    fn judge(&mut self, path: &Path, purpose: Purpose, report: &Report) -> Schedule {
        match purpose {
            Purpose::Start => self.judge_start(path, report),
            Purpose::Probe => self.judge_probe(path, report),
            Purpose::Decided => self.judge_decided(path, report),
        }
    }

    fn restart(&mut self) {
        match &mut self.state {
            State::Start { planned, .. } => *planned = false,
            _ => self.state = State::Probe(None),
        }
    }

    /// The source does nothing: what was lost lowers the utility.
    fn on_timeout(&mut self, _path: &Path) -> Schedule {
        Schedule::Keep
    }

    /// The start ends early once the smoothed round trip has grown by more than the tolerance within
    /// an interval, and still grows.
    fn watch(&mut self, ack: &Ack, srtt_at_start_s: f64) -> Schedule {
        let grows = ack.rtt > Span::ZERO && ack.rtt > ack.srtt && srtt_at_start_s > 0.0;
        let inflated = ack.srtt.as_secs_f64() > (1.0 + RTT_TOLERANCE.0) * srtt_at_start_s;
        if matches!(self.state, State::Start { .. }) && grows && inflated {
            return self.leave_start();
        }
        Schedule::Keep
    }

    fn halve(&mut self, path: &Path) {
        self.set_rate(self.rate_bps / 2.0, path);
        self.state = State::Probe(None);
    }

    fn rate_bps(&self) -> f64 {
        self.rate_bps
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.rounds.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path {
        srtt_s: 0.06,
        min_rtt_s: 0.04,
        packet_bits: 12_000.0,
        initial_packets: 10.0,
        delivered_bps: 1e9,
    };

    fn report(rate_bps: f64, loss_ratio: f64, srtt_s: (f64, f64)) -> Report {
        let sent = rate_bps * 0.06 / 8.0;
        Report {
            rate_bps,
            duration_s: 0.06,
            acked: sent * (1.0 - loss_ratio),
            lost: sent * loss_ratio,
            rtt_slope: 0.0,
            srtt_s,
            usable: true,
        }
    }

    const FLAT: (f64, f64) = (0.06, 0.06);

    fn quic() -> Quic {
        let mut quic = Quic::new();
        quic.begin(&PATH);
        quic
    }

    fn probing(rate_bps: f64) -> Quic {
        Quic { rate_bps, state: State::Probe(None), ..quic() }
    }

    /// Plans and judges one interval without loss; the planned rate.
    fn interval(quic: &mut Quic, rng: &mut Rng, srtt_s: (f64, f64)) -> f64 {
        let plan = quic.plan(&PATH, rng);
        if let Some(purpose) = plan.purpose {
            quic.judge(&PATH, purpose, &report(plan.rate_bps, 0.0, srtt_s));
        }
        plan.rate_bps
    }

    fn close(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-9, "{value} instead of {expected}");
    }

    #[test]
    fn the_utility_is_half_the_throughput_on_a_flat_path() {
        // 8 Mb/s are 1000 bytes per millisecond, and the latency penalty of no change is a half.
        let penalty = 1.0 - 1.0 / (1.0 + libm::exp(50.0));
        close(utility(&report(8e6, 0.0, FLAT), 0.0), 1000.0 * 0.5 * penalty);
    }

    #[test]
    fn loss_above_5_percent_and_growing_round_trips_take_all() {
        assert!(utility(&report(8e6, 0.06, FLAT), 0.0) < 0.0);
        assert!(utility(&report(8e6, 0.04, FLAT), 0.0) > 400.0);
        assert!(utility(&report(8e6, 0.0, (0.057, 0.06)), 0.0) < 0.1);
        // A queue that drains counts in full.
        assert!(utility(&report(8e6, 0.0, (0.063, 0.06)), 0.0) > 999.0);
    }

    #[test]
    fn a_change_of_the_round_trip_within_the_tolerance_is_none() {
        let flat = utility(&report(8e6, 0.0, FLAT), 0.05);
        close(utility(&report(8e6, 0.0, (0.0575, 0.06)), 0.05), flat);
        assert!(utility(&report(8e6, 0.0, (0.0565, 0.06)), 0.05) < flat);
    }

    #[test]
    fn the_start_doubles_after_each_better_interval_and_waits_at_half() {
        let (mut quic, mut rng) = (quic(), Rng::new(1));
        let first = quic.plan(&PATH, &mut rng);
        close(first.rate_bps, 2e6);
        close(quic.plan(&PATH, &mut rng).rate_bps, 1e6);
        quic.judge(&PATH, Purpose::Start, &report(2e6, 0.0, FLAT));
        close(interval(&mut quic, &mut rng, FLAT), 4e6);
        close(interval(&mut quic, &mut rng, (0.04, 0.06)), 8e6);
        close(quic.rate_bps(), 4e6);
        assert!(matches!(quic.state, State::Probe(None)));
    }

    #[test]
    fn the_start_ends_early_when_the_round_trip_grew_by_30_percent_and_still_grows() {
        let ack = |rtt_ms, srtt_ms| Ack {
            rtt: Span::from_millis(rtt_ms),
            srtt: Span::from_millis(srtt_ms),
            ..Ack::default()
        };
        for (ack, start_s, schedule) in [
            (ack(90, 80), 0.06, Schedule::Change),
            (ack(90, 77), 0.06, Schedule::Keep),
            (ack(79, 80), 0.06, Schedule::Keep),
            (ack(90, 80), 0.0, Schedule::Keep),
        ] {
            let mut quic = quic();
            assert_eq!(quic.watch(&ack, start_s), schedule, "{ack:?}");
            close(quic.rate_bps(), if schedule == Schedule::Change { 1e6 } else { 2e6 });
        }
    }

    #[test]
    fn probes_are_5_percent_up_and_down_and_waiting_is_5_percent_down() {
        let (mut quic, mut rng) = (probing(8e6), Rng::new(1));
        let mut planned: Vec<f64> =
            (0..4).map(|_| quic.plan(&PATH, &mut rng).rate_bps / 8e6).collect();
        planned.sort_by(f64::total_cmp);
        assert!(planned.iter().zip([0.95, 0.95, 1.05, 1.05]).all(|(a, b)| (a - b).abs() < 1e-9));
        let waiting = quic.plan(&PATH, &mut rng);
        assert!(waiting.purpose.is_none());
        close(waiting.rate_bps, 0.95 * 8e6);
    }

    #[test]
    fn a_decision_steps_by_2_percent_and_2_more_each_time_up_to_10() {
        let (mut quic, mut rng) = (probing(8e6), Rng::new(1));
        (0..4).for_each(|_| {
            interval(&mut quic, &mut rng, FLAT);
        });
        let mut expected = 8e6 * 1.05;
        for step in [0.02, 0.04, 0.06, 0.08, 0.10, 0.10] {
            expected *= 1.0 + step;
            close(interval(&mut quic, &mut rng, FLAT), expected);
        }
    }

    #[test]
    fn a_worse_step_is_taken_back_and_meanwhile_the_slower_of_both_rates_is_sent() {
        for (way, waiting_bps) in [(Way::Up, 8e6), (Way::Down, 7.84e6)] {
            let (mut quic, mut rng) = (probing(8e6), Rng::new(1));
            quic.rate_bps = 8e6 * (1.0 + way.sign() * 0.02);
            quic.state =
                State::Decided { planned: false, way, step: 0.02, before_bps: 8e6, best: 1e9 };
            let plan = quic.plan(&PATH, &mut rng);
            close(quic.plan(&PATH, &mut rng).rate_bps, waiting_bps);
            quic.judge(&PATH, plan.purpose.expect("a step"), &report(plan.rate_bps, 0.0, FLAT));
            close(quic.rate_bps(), 8e6);
        }
    }

    #[test]
    fn an_interval_is_one_and_a_half_of_the_smallest_round_trip() {
        close(probing(8e6).plan(&PATH, &mut Rng::new(1)).duration_s, 0.06);
    }

    #[test]
    fn the_rate_stays_above_four_packets_in_a_round_trip() {
        let mut quic = quic();
        quic.set_rate(1.0, &PATH);
        close(quic.rate_bps(), 48_000.0 / 0.06);
    }
}
