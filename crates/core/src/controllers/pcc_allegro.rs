//! PCC Allegro: Dong et al., "PCC: Re-architecting Congestion Control for Consistent High
//! Performance", NSDI 2015. Tries a slightly higher and a slightly lower rate and moves towards the
//! larger utility of throughput and loss.
use crate::control::Spec;
use crate::controllers::shared::pcc::{
    Doubled, Doubling, Pairs, Path, Pcc, Plan, Rounds, Rule, Schedule, Way,
};
use crate::params::{Param, ParamKind, Params};
use crate::rng::Rng;
use crate::sensing::monitor_interval::Report;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "pcc_allegro",
    about: "PCC Allegro: compares rates by a utility of throughput and loss; paces",
    source: "Dong et al., PCC, NSDI 2015, sections 2.2 and 3",
    params: PARAMS,
    build: |flow, params| Box::new(Pcc::new(flow, Allegro::new(params))),
};

const PARAMS: &[Param] = &[
    Param {
        name: "loss_tolerance",
        about: "loss at which the utility breaks off (paper: 0.05)",
        kind: ParamKind::Number { default: 0.05, min: 0.0, max: 1.0 },
    },
    Param {
        name: "epsilon_min",
        about: "first difference of the probes, and the grain of all changes, as a part of the rate \
                (paper: 0.01)",
        kind: ParamKind::Number { default: 0.01, min: 1e-3, max: 0.1 },
    },
    Param {
        name: "epsilon_max",
        about: "largest difference of the probes (paper: 0.05)",
        kind: ParamKind::Number { default: 0.05, min: 1e-3, max: 0.5 },
    },
];

/// Steepness alpha of the sigmoid.
const STEEPNESS: f64 = 100.0;
/// Rate to start with, packets per round trip; also the slowest (proposed).
const START_PACKETS: f64 = 2.0;
/// An interval lasts this many round trips, drawn anew each time, so that competing flows do not
/// keep in step ...
const INTERVAL_RTTS: (f64, f64) = (1.7, 2.2);
/// ... and at least the time of this many packets.
const INTERVAL_PACKETS: f64 = 10.0;

/// Section 2.2's utility, with the rate in Mb/s: throughput while loss is tolerable, less what is
/// lost.
fn utility(rate_bps: f64, loss_ratio: f64, loss_tolerance: f64) -> f64 {
    let mbps = rate_bps / 1e6;
    let sigmoid = 1.0 / (1.0 + libm::exp(STEEPNESS * (loss_ratio - loss_tolerance)));
    mbps * (1.0 - loss_ratio) * sigmoid - mbps * loss_ratio
}

#[derive(Clone, Debug)]
enum State {
    /// Doubles the rate.
    Start(Doubling),
    /// Compares rates around the present one; `None` before the order is drawn.
    Decide(Option<Pairs>),
    /// Moves on in the direction `way`, with growing steps; `before` is the last good rate, bits
    /// per second, and its utility.
    Adjust { planned: bool, way: Way, step: f64, before: (f64, f64) },
}

/// What an interval of Allegro is for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Start,
    Decide,
    Adjust,
}

/// Allegro's rule.
#[derive(Clone, Debug)]
struct Allegro {
    loss_tolerance: f64,
    epsilon_min: f64,
    epsilon_max: f64,
    epsilon: f64,
    rate_bps: f64,
    state: State,
    rounds: Rounds,
}

impl Allegro {
    fn new(params: &Params) -> Self {
        let epsilon_min = params.number("epsilon_min");
        Self {
            loss_tolerance: params.number("loss_tolerance"),
            epsilon_min,
            epsilon_max: params.number("epsilon_max").max(epsilon_min),
            epsilon: epsilon_min,
            rate_bps: 1e6,
            state: State::Start(Doubling::default()),
            rounds: Rounds::default(),
        }
    }

    fn set_rate(&mut self, rate_bps: f64, path: &Path) {
        self.rate_bps = path.bounded_bps(rate_bps, START_PACKETS);
    }

    fn utility(&self, report: &Report) -> f64 {
        utility(report.rate_bps, report.loss_ratio(), self.loss_tolerance)
    }

    fn decide(&mut self) {
        self.epsilon = self.epsilon_min;
        self.state = State::Decide(None);
    }

    fn judge_start(&mut self, path: &Path, report: &Report) -> Schedule {
        let utility = self.utility(report);
        let State::Start(doubling) = &mut self.state else { return Schedule::Keep };
        match doubling.judge(report, utility) {
            Doubled::Better => return Schedule::Keep,
            Doubled::Repeat(rate_bps) => self.set_rate(rate_bps, path),
            Doubled::Over(rate_bps) => {
                self.set_rate(rate_bps, path);
                self.decide();
            }
        }
        Schedule::Change
    }

    fn judge_decide(&mut self, path: &Path, report: &Report) -> Schedule {
        let utility = self.utility(report);
        let State::Decide(Some(pairs)) = &mut self.state else { return Schedule::Keep };
        if !report.usable {
            self.state = State::Decide(None);
            return Schedule::Change;
        }
        if !pairs.record(utility) {
            return Schedule::Keep;
        }
        if let Some(way) = pairs.agreed() {
            let utility = pairs.mean_of(way);
            self.rounds.decided += 1;
            self.set_rate(self.rate_bps * (1.0 + way.sign() * self.epsilon), path);
            self.adjust(way, 1.0, utility, path);
        } else {
            self.rounds.undecided += 1;
            self.epsilon = (self.epsilon + self.epsilon_min).min(self.epsilon_max);
            self.state = State::Decide(None);
        }
        Schedule::Change
    }

    fn judge_adjust(&mut self, path: &Path, report: &Report) -> Schedule {
        let utility = self.utility(report);
        let State::Adjust { way, step, before, .. } = self.state else {
            return Schedule::Keep;
        };
        if report.usable && utility > before.1 && (self.rate_bps - before.0).abs() > 0.0 {
            self.adjust(way, step + 1.0, utility, path);
        } else {
            self.set_rate(before.0, path);
            self.decide();
        }
        Schedule::Change
    }

    /// Step number `step` from the present rate, whose utility is `utility`.
    fn adjust(&mut self, way: Way, step: f64, utility: f64, path: &Path) {
        let before = (self.rate_bps, utility);
        // A hundred steps down would reach zero.
        let factor = (1.0 + step * self.epsilon_min * way.sign()).max(0.5);
        self.set_rate(self.rate_bps * factor, path);
        self.state = State::Adjust { planned: false, way, step, before };
    }
}

impl Rule for Allegro {
    type Purpose = Purpose;

    fn begin(&mut self, path: &Path) {
        self.set_rate(path.packets_per_rtt_bps(START_PACKETS), path);
        self.state = State::Start(Doubling::default());
    }

    fn plan(&mut self, path: &Path, rng: &mut Rng) -> Plan<Purpose> {
        let mut rate_bps = self.rate_bps;
        let purpose = match &mut self.state {
            State::Start(doubling) => doubling.factor().map(|factor| {
                self.rate_bps = path.bounded_bps(self.rate_bps * factor, START_PACKETS);
                rate_bps = self.rate_bps;
                Purpose::Start
            }),
            State::Decide(pairs) => pairs.get_or_insert_with(|| Pairs::new(rng)).way().map(|way| {
                rate_bps *= 1.0 + way.sign() * self.epsilon;
                Purpose::Decide
            }),
            State::Adjust { planned: planned @ false, .. } => {
                *planned = true;
                Some(Purpose::Adjust)
            }
            State::Adjust { .. } => None,
        };
        let rtts_s = path.srtt_s * rng.uniform_in(INTERVAL_RTTS.0, INTERVAL_RTTS.1);
        let packets_s = INTERVAL_PACKETS * path.packet_bits / rate_bps;
        Plan { rate_bps, duration_s: rtts_s.max(packets_s), purpose }
    }

    fn judge(&mut self, path: &Path, purpose: Purpose, report: &Report) -> Schedule {
        match purpose {
            Purpose::Start => self.judge_start(path, report),
            Purpose::Decide => self.judge_decide(path, report),
            Purpose::Adjust => self.judge_adjust(path, report),
        }
    }

    fn restart(&mut self) {
        match &mut self.state {
            State::Start(doubling) => return doubling.restart(),
            State::Adjust { before, .. } => self.rate_bps = before.0,
            State::Decide(_) => {}
        }
        self.decide();
    }

    /// Half the rate, and a new start (proposed).
    fn on_timeout(&mut self, path: &Path) -> Schedule {
        self.halve(path);
        self.state = State::Start(Doubling::held());
        Schedule::Change
    }

    fn halve(&mut self, path: &Path) {
        self.set_rate(self.rate_bps / 2.0, path);
        self.decide();
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
        srtt_s: 0.04,
        min_rtt_s: 0.04,
        packet_bits: 12_000.0,
        initial_packets: 10.0,
        delivered_bps: 1e9,
    };

    fn report(rate_bps: f64, loss_ratio: f64) -> Report {
        Report {
            rate_bps,
            duration_s: 0.08,
            acked: 1e6 * (1.0 - loss_ratio),
            lost: 1e6 * loss_ratio,
            rtt_slope: 0.0,
            srtt_s: (0.04, 0.04),
            usable: true,
        }
    }

    fn allegro() -> Allegro {
        let mut allegro = Allegro::new(&Params::defaults(PARAMS));
        allegro.begin(&PATH);
        allegro
    }

    /// One that decides at this rate.
    fn deciding(rate_bps: f64) -> Allegro {
        Allegro { rate_bps, state: State::Decide(None), ..allegro() }
    }

    /// Plans and judges one interval on a path where `loss` is lost at a rate; the planned rate.
    fn interval(allegro: &mut Allegro, rng: &mut Rng, loss: impl Fn(f64) -> f64) -> f64 {
        let plan = allegro.plan(&PATH, rng);
        if let Some(purpose) = plan.purpose {
            allegro.judge(&PATH, purpose, &report(plan.rate_bps, loss(plan.rate_bps)));
        }
        plan.rate_bps
    }

    fn close(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-9, "{value} instead of {expected}");
    }

    /// No loss up to 10 Mb/s.
    fn link(rate_bps: f64) -> f64 {
        (1.0 - 1e7 / rate_bps).max(0.0)
    }

    #[test]
    fn the_utility_is_throughput_less_loss_and_breaks_off_at_5_percent() {
        close(utility(1e7, 0.0, 0.05), 10.0 / (1.0 + libm::exp(-5.0)));
        close(utility(1e7, 0.05, 0.05), 10.0 * 0.95 * 0.5 - 10.0 * 0.05);
        assert!(utility(1e7, 0.1, 0.05) < 0.0);
        // Beyond the link's rate it falls.
        assert!(utility(1.01e7, link(1.01e7), 0.05) < utility(1e7, 0.0, 0.05));
    }

    #[test]
    fn it_starts_at_two_packets_in_a_round_trip_doubles_and_returns() {
        let (mut allegro, mut rng) = (allegro(), Rng::new(1));
        for rate_bps in [0.6e6, 1.2e6, 2.4e6, 4.8e6, 9.6e6, 19.2e6] {
            close(interval(&mut allegro, &mut rng, link), rate_bps);
        }
        close(allegro.rate_bps(), 9.6e6);
        assert!(matches!(allegro.state, State::Decide(None)));
    }

    #[test]
    fn probes_differ_by_one_percent_and_by_one_more_after_each_round_without_decision() {
        let (mut allegro, mut rng) = (deciding(5e6), Rng::new(1));
        for percent in [1.0, 2.0, 3.0, 4.0, 5.0, 5.0] {
            for index in 0..4 {
                // What is lost favours the slower interval in the second pair.
                let torn = |rate_bps: f64| if index >= 2 && rate_bps > 5e6 { 0.2 } else { 0.0 };
                let rate_bps = interval(&mut allegro, &mut rng, torn);
                close((rate_bps / 5e6 - 1.0).abs(), percent / 100.0);
            }
        }
        close(allegro.rate_bps(), 5e6);
    }

    #[test]
    fn a_decision_adopts_the_better_probe_and_steps_on_by_one_percent_more_each_time() {
        let (mut allegro, mut rng) = (deciding(5e6), Rng::new(1));
        for _ in 0..4 {
            interval(&mut allegro, &mut rng, link);
        }
        let mut expected = 5e6 * 1.01;
        for step in [0.01, 0.02, 0.03] {
            expected *= 1.0 + step;
            close(interval(&mut allegro, &mut rng, link), expected);
        }
    }

    #[test]
    fn a_worse_step_is_taken_back_and_the_probes_are_small_again() {
        let (mut allegro, mut rng) = (deciding(5e6), Rng::new(1));
        allegro.epsilon = 0.03;
        allegro.adjust(Way::Up, 1.0, 4.9, &PATH);
        let lossy = |_| 0.1;
        close(interval(&mut allegro, &mut rng, lossy), 5.05e6);
        close(allegro.rate_bps(), 5e6);
        close(allegro.epsilon, 0.01);
        assert!(matches!(allegro.state, State::Decide(None)));
    }

    #[test]
    fn while_it_waits_for_outcomes_it_keeps_the_rate() {
        let (mut allegro, mut rng) = (deciding(5e6), Rng::new(1));
        (0..4).for_each(|_| {
            allegro.plan(&PATH, &mut rng);
        });
        let waiting = allegro.plan(&PATH, &mut rng);
        assert!(waiting.purpose.is_none());
        close(waiting.rate_bps, 5e6);
    }

    #[test]
    fn an_interval_is_1_7_to_2_2_round_trips_and_at_least_ten_packets() {
        let (mut allegro, mut rng) = (deciding(5e6), Rng::new(1));
        for _ in 0..100 {
            let rtts = allegro.plan(&PATH, &mut rng).duration_s / PATH.srtt_s;
            assert!((1.7..2.2).contains(&rtts), "{rtts}");
        }
        let slow = deciding(0.6e6).plan(&PATH, &mut rng);
        close(slow.duration_s, 120_000.0 / slow.rate_bps);
    }

    #[test]
    fn a_time_out_halves_the_rate_and_starts_over() {
        let mut allegro = deciding(5e6);
        allegro.on_timeout(&PATH);
        close(allegro.rate_bps(), 2.5e6);
        assert!(matches!(allegro.state, State::Start(_)));
    }
}
