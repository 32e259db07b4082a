//! PCC Vivace: Dong et al., "PCC Vivace: Online-Learning Congestion Control", NSDI 2018. Ascends the
//! gradient of a utility of rate, latency growth and loss. Where the paper's text is not at hand, the
//! step rules follow the implementation in `WebRTC` (`modules/congestion_controller/pcc`, 2018), which
//! has the paper's numbers.
use crate::control::Spec;
use crate::controllers::shared::pcc::{
    Doubled, Doubling, Pairs, Path, Pcc, Plan, Rounds, Rule, Schedule, Way,
};
use crate::params::{Param, ParamKind, Params};
use crate::rng::Rng;
use crate::sensing::monitor_interval::Report;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "vivace",
    about: "PCC Vivace: gradient ascent on a utility of rate, latency growth and loss; paces",
    source: "Dong et al., PCC Vivace, NSDI 2018, sections 3 and 4",
    params: PARAMS,
    build: |flow, params| Box::new(Pcc::new(flow, Vivace::new(params))),
};

const PARAMS: &[Param] = &[
    Param {
        name: "utility",
        about: "`latency` counts the growth of the round trip and loss, `loss` only loss (paper)",
        kind: ParamKind::Choice(&["latency", "loss"]),
    },
    Param {
        name: "latency_weight",
        about: "b: what the slope of the round-trip time costs (paper: 900)",
        kind: ParamKind::Number { default: 900.0, min: 0.0, max: 1e6 },
    },
    Param {
        name: "loss_weight",
        about: "c: what loss costs (paper: 11.35)",
        kind: ParamKind::Number { default: 11.35, min: 0.0, max: 1e6 },
    },
    Param {
        name: "theta0_mbps",
        about: "theta 0: change of the rate for a gradient of 1, Mb/s (source: WebRTC, 1)",
        kind: ParamKind::Number { default: 1.0, min: 1e-3, max: 1e3 },
    },
    Param {
        name: "after_step",
        about: "what follows a step that lowered the utility: `return` to the rate before and probe \
                there, or `stay` and probe; `probe` compares rates after every step, better or not \
                (proposed: the sources differ)",
        kind: ParamKind::Choice(&["return", "stay", "probe"]),
    },
    Param {
        name: "interval_packets",
        about: "a monitor interval is one round trip (paper), but at least this many packets \
                (source: WebRTC, 10)",
        kind: ParamKind::Number { default: 10.0, min: 2.0, max: 1000.0 },
    },
];

/// Exponent t of the rate's worth.
const EXPONENT: f64 = 0.9;
/// Probes differ by this part of the rate.
const EPSILON: f64 = 0.05;
/// A smaller slope of the round-trip time is noise.
const SLOPE_MIN: f64 = 0.01;
/// First bound of a change, as a part of the rate, and what each further one adds.
const BOUND: (f64, f64) = (0.05, 0.1);
/// Slowest rate, packets per round trip [proposed: Allegro's starting rate].
const FLOOR_PACKETS: f64 = 2.0;

/// What the utility weighs.
#[derive(Clone, Copy, Debug)]
struct Utility {
    latency_weight: f64,
    loss_weight: f64,
}

impl Utility {
    /// Section 3.1, with the rate in Mb/s.
    fn of(&self, report: &Report) -> f64 {
        let mbps = report.rate_bps / 1e6;
        let slope = if report.rtt_slope.abs() < SLOPE_MIN { 0.0 } else { report.rtt_slope };
        libm::pow(mbps, EXPONENT)
            - self.latency_weight * mbps * slope
            - self.loss_weight * mbps * report.loss_ratio()
    }
}

/// Turns a gradient into a change of the rate (section 3.3).
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    theta0_mbps: f64,
    /// Changes in a row in one direction.
    streak: f64,
    way: Option<Way>,
    /// k: bounds in a row that were hit.
    wider: f64,
}

impl Step {
    /// The streak is over.
    fn turn(&mut self) {
        (self.way, self.streak, self.wider) = (None, 0.0, 0.0);
    }

    /// Change of the rate, Mb/s, where the gradient is per Mb/s.
    fn change_mbps(&mut self, gradient: f64, rate_mbps: f64) -> f64 {
        let way = if gradient < 0.0 { Way::Down } else { Way::Up };
        if self.way != Some(way) {
            self.turn();
            self.way = Some(way);
        }
        self.streak += 1.0;
        let wanted = (self.theta0_mbps * amplifier(self.streak) * gradient).abs();
        let bound = |wider: f64| (BOUND.0 + BOUND.1 * wider) * rate_mbps;
        if wanted > bound(self.wider) {
            let change = bound(self.wider);
            self.wider += 1.0;
            return way.sign() * change;
        }
        self.wider = ((wanted / rate_mbps - BOUND.0) / BOUND.1).ceil().clamp(0.0, self.wider);
        way.sign() * wanted
    }
}

/// The confidence amplifier m.
fn amplifier(streak: f64) -> f64 {
    if streak <= 3.0 { streak } else { 2.0 * streak - 3.0 }
}

#[derive(Clone, Debug)]
enum State {
    /// Doubles the rate.
    Start(Doubling),
    /// Compares rates around the present one; `None` before the order is drawn.
    Probe(Option<Pairs>),
    /// Tries the changed rate: `before` is the rate it was, Mb/s, and its utility.
    Move { planned: bool, before: (f64, f64) },
}

/// What follows a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterStep {
    Return,
    Stay,
    Probe,
}

/// What an interval of Vivace is for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Start,
    Probe,
    Move,
}

/// Vivace's rule.
#[derive(Clone, Debug)]
struct Vivace {
    utility: Utility,
    interval_packets: f64,
    after_step: AfterStep,
    step: Step,
    rate_mbps: f64,
    state: State,
    rounds: Rounds,
}

impl Vivace {
    fn new(params: &Params) -> Self {
        let latency = params.choice("utility") == "latency";
        Self {
            utility: Utility {
                latency_weight: if latency { params.number("latency_weight") } else { 0.0 },
                loss_weight: params.number("loss_weight"),
            },
            interval_packets: params.number("interval_packets"),
            after_step: match params.choice("after_step") {
                "return" => AfterStep::Return,
                "stay" => AfterStep::Stay,
                _ => AfterStep::Probe,
            },
            step: Step { theta0_mbps: params.number("theta0_mbps"), ..Step::default() },
            rate_mbps: 1.0,
            state: State::Start(Doubling::default()),
            rounds: Rounds::default(),
        }
    }

    fn set_rate(&mut self, rate_mbps: f64, path: &Path) {
        self.rate_mbps = path.bounded_bps(rate_mbps * 1e6, FLOOR_PACKETS) / 1e6;
    }

    fn judge_start(&mut self, path: &Path, report: &Report) -> Schedule {
        let utility = self.utility.of(report);
        let State::Start(doubling) = &mut self.state else { return Schedule::Keep };
        match doubling.judge(report, utility) {
            Doubled::Better => return Schedule::Keep,
            Doubled::Repeat(rate_bps) => self.set_rate(rate_bps / 1e6, path),
            Doubled::Over(rate_bps) => {
                self.set_rate(rate_bps / 1e6, path);
                self.state = State::Probe(None);
            }
        }
        Schedule::Change
    }

    fn judge_probe(&mut self, path: &Path, report: &Report) -> Schedule {
        let utility = self.utility.of(report);
        let State::Probe(Some(pairs)) = &mut self.state else { return Schedule::Keep };
        if report.usable && !pairs.record(utility) {
            return Schedule::Keep;
        }
        if !report.usable || pairs.agreed().is_none() {
            self.rounds.undecided += 1;
            self.state = State::Probe(None);
            return Schedule::Change;
        }
        self.rounds.decided += 1;
        let advantage = f64::midpoint(pairs.advantage(0), pairs.advantage(1));
        let gradient = advantage / (2.0 * EPSILON * self.rate_mbps);
        let utility = f64::midpoint(pairs.mean_of(Way::Up), pairs.mean_of(Way::Down));
        self.change(gradient, utility, path);
        Schedule::Change
    }

    fn judge_move(&mut self, path: &Path, report: &Report) -> Schedule {
        let utility = self.utility.of(report);
        let State::Move { before: (before_mbps, before), .. } = self.state else {
            return Schedule::Keep;
        };
        let moved = self.rate_mbps - before_mbps;
        if report.usable && utility > before && moved.abs() > 0.0 {
            self.change((utility - before) / moved, utility, path);
        } else {
            if report.usable && self.after_step == AfterStep::Return {
                self.set_rate(before_mbps, path);
                // Going back is a change of direction. Else the next step the same way would be
                // longer still.
                self.step.turn();
            }
            self.state = State::Probe(None);
        }
        Schedule::Change
    }

    /// Moves along the gradient; `utility` is the present rate's.
    fn change(&mut self, gradient: f64, utility: f64, path: &Path) {
        let before = (self.rate_mbps, utility);
        let change_mbps = self.step.change_mbps(gradient, self.rate_mbps);
        self.set_rate(self.rate_mbps + change_mbps, path);
        self.state = if self.after_step == AfterStep::Probe {
            State::Probe(None)
        } else {
            State::Move { planned: false, before }
        };
    }
}

impl Rule for Vivace {
    type Purpose = Purpose;

    fn begin(&mut self, path: &Path) {
        self.set_rate(path.packets_per_rtt_bps(path.initial_packets) / 1e6, path);
        self.state = State::Start(Doubling::default());
    }

    fn plan(&mut self, path: &Path, rng: &mut Rng) -> Plan<Purpose> {
        let mut rate_mbps = self.rate_mbps;
        let purpose = match &mut self.state {
            State::Start(doubling) => doubling.factor().map(|factor| {
                self.rate_mbps =
                    path.bounded_bps(self.rate_mbps * factor * 1e6, FLOOR_PACKETS) / 1e6;
                rate_mbps = self.rate_mbps;
                Purpose::Start
            }),
            State::Probe(pairs) => pairs.get_or_insert_with(|| Pairs::new(rng)).way().map(|way| {
                rate_mbps *= 1.0 + way.sign() * EPSILON;
                Purpose::Probe
            }),
            State::Move { planned: planned @ false, .. } => {
                *planned = true;
                Some(Purpose::Move)
            }
            State::Move { .. } => None,
        };
        let rate_bps = rate_mbps * 1e6;
        let packets_s = self.interval_packets * path.packet_bits / rate_bps;
        Plan { rate_bps, duration_s: path.srtt_s.max(packets_s), purpose }
    }

    fn judge(&mut self, path: &Path, purpose: Purpose, report: &Report) -> Schedule {
        match purpose {
            Purpose::Start => self.judge_start(path, report),
            Purpose::Probe => self.judge_probe(path, report),
            Purpose::Move => self.judge_move(path, report),
        }
    }

    fn restart(&mut self) {
        match &mut self.state {
            State::Start(doubling) => doubling.restart(),
            _ => self.state = State::Probe(None),
        }
    }

    /// Half the rate, and a new start (proposed).
    fn on_timeout(&mut self, path: &Path) -> Schedule {
        self.halve(path);
        self.state = State::Start(Doubling::held());
        Schedule::Change
    }

    fn halve(&mut self, path: &Path) {
        self.set_rate(self.rate_mbps / 2.0, path);
        self.state = State::Probe(None);
        self.step.turn();
    }

    fn rate_bps(&self) -> f64 {
        self.rate_mbps * 1e6
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.rounds.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParamValue;

    const PATH: Path = Path {
        srtt_s: 0.04,
        min_rtt_s: 0.04,
        packet_bits: 12_000.0,
        initial_packets: 10.0,
        delivered_bps: 1e9,
    };

    fn report(rate_mbps: f64, rtt_slope: f64, loss_ratio: f64) -> Report {
        let acked = rate_mbps * 1e6 * 0.04 / 8.0 * (1.0 - loss_ratio);
        Report {
            rate_bps: rate_mbps * 1e6,
            duration_s: 0.04,
            acked,
            lost: acked * loss_ratio / (1.0 - loss_ratio),
            rtt_slope,
            srtt_s: (0.04, 0.04),
            usable: true,
        }
    }

    fn vivace(settings: &[(&str, &str)]) -> Vivace {
        let given: Vec<_> = settings
            .iter()
            .map(|(name, word)| ((*name).to_owned(), ParamValue::Word((*word).to_owned())))
            .collect();
        let mut vivace = Vivace::new(&Params::resolve(PARAMS, &given).expect("known settings"));
        vivace.begin(&PATH);
        vivace
    }

    /// One in probing at this rate.
    fn probing(settings: &[(&str, &str)], rate_mbps: f64) -> Vivace {
        Vivace { rate_mbps, state: State::Probe(None), ..vivace(settings) }
    }

    /// Plans and judges one interval on a link of 10 Mb/s with an endless queue; the planned rate.
    fn interval(vivace: &mut Vivace, rng: &mut Rng) -> f64 {
        let plan = vivace.plan(&PATH, rng);
        let rate_mbps = plan.rate_bps / 1e6;
        if let Some(purpose) = plan.purpose {
            let slope = (rate_mbps / 10.0 - 1.0).max(0.0);
            vivace.judge(&PATH, purpose, &report(rate_mbps, slope, 0.0));
        }
        rate_mbps
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }

    #[test]
    fn the_utility_is_the_papers() {
        let utility = vivace(&[]).utility;
        let worth = libm::pow(20.0, 0.9);
        close(utility.of(&report(20.0, 0.0, 0.0)), worth);
        close(utility.of(&report(20.0, 0.02, 0.0)), worth - 900.0 * 20.0 * 0.02);
        close(utility.of(&report(20.0, -0.02, 0.0)), worth + 900.0 * 20.0 * 0.02);
        close(utility.of(&report(20.0, 0.0, 0.03)), worth - 11.35 * 20.0 * 0.03);
    }

    #[test]
    fn a_slope_below_a_hundredth_is_noise() {
        let utility = vivace(&[]).utility;
        for slope in [0.009, -0.009] {
            close(utility.of(&report(20.0, slope, 0.0)), utility.of(&report(20.0, 0.0, 0.0)));
        }
        assert!(utility.of(&report(20.0, 0.011, 0.0)) < utility.of(&report(20.0, 0.0, 0.0)));
    }

    #[test]
    fn the_loss_only_utility_does_not_see_the_queue() {
        let utility = vivace(&[("utility", "loss")]).utility;
        close(utility.of(&report(20.0, 0.5, 0.0)), libm::pow(20.0, 0.9));
    }

    #[test]
    fn the_amplifier_is_the_streak_and_from_four_on_twice_the_streak_less_three() {
        for (streak, expected) in [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 5.0), (5.0, 7.0)] {
            close(amplifier(streak), expected);
        }
    }

    #[test]
    fn changes_grow_with_the_streak_and_begin_anew_the_other_way() {
        let mut step = Step { theta0_mbps: 1.0, ..Step::default() };
        for change in [0.5, 1.0, 1.5, 2.5] {
            close(step.change_mbps(0.5, 100.0), change);
        }
        close(step.change_mbps(-0.5, 100.0), -0.5);
    }

    #[test]
    fn a_change_is_bounded_by_5_percent_and_10_more_for_each_bound_hit_in_a_row() {
        let mut step = Step { theta0_mbps: 1.0, ..Step::default() };
        for change in [0.5, 1.5, 2.5] {
            close(step.change_mbps(100.0, 10.0), change);
        }
        close(step.change_mbps(-100.0, 10.0), -0.5);
    }

    #[test]
    fn the_bound_narrows_to_what_a_smaller_change_needs() {
        let mut step = Step { theta0_mbps: 1.0, ..Step::default() };
        (0..3).for_each(|_| {
            step.change_mbps(100.0, 10.0);
        });
        // The fourth in a row is amplified by five: 1 Mb/s, within 5 + 10 percent.
        close(step.change_mbps(0.2, 10.0), 1.0);
        close(step.change_mbps(100.0, 10.0), 1.5);
    }

    #[test]
    fn it_starts_at_the_initial_window_in_a_round_trip_and_doubles() {
        let (mut vivace, mut rng) = (vivace(&[]), Rng::new(1));
        for rate_mbps in [3.0, 6.0, 12.0] {
            close(interval(&mut vivace, &mut rng), rate_mbps);
        }
        // At 12 Mb/s the queue grew: back to 6.
        close(vivace.rate_bps(), 6e6);
        assert!(matches!(vivace.state, State::Probe(_)));
    }

    #[test]
    fn probes_are_5_percent_up_and_down_and_waiting_is_at_the_rate_itself() {
        let (mut vivace, mut rng) = (probing(&[], 8.0), Rng::new(1));
        let mut planned: Vec<f64> =
            (0..4).map(|_| vivace.plan(&PATH, &mut rng).rate_bps / 8e6).collect();
        planned.sort_by(f64::total_cmp);
        assert!(planned.iter().zip([0.95, 0.95, 1.05, 1.05]).all(|(a, b)| (a - b).abs() < 1e-9));
        let waiting = vivace.plan(&PATH, &mut rng);
        assert!(waiting.purpose.is_none());
        close(waiting.rate_bps, 8e6);
    }

    #[test]
    fn the_gradient_of_agreeing_pairs_moves_the_rate() {
        let (mut vivace, mut rng) = (probing(&[], 50.0), Rng::new(1));
        (0..4).for_each(|_| {
            let plan = vivace.plan(&PATH, &mut rng);
            let report = report(plan.rate_bps / 1e6, 0.0, 0.0);
            vivace.judge(&PATH, plan.purpose.expect("a probe"), &report);
        });
        let gradient = (libm::pow(52.5, 0.9) - libm::pow(47.5, 0.9)) / 5.0;
        close(vivace.rate_bps() / 1e6, 50.0 + gradient);
    }

    #[test]
    fn pairs_that_disagree_leave_the_rate() {
        let (mut vivace, mut rng) = (probing(&[], 8.0), Rng::new(1));
        for index in 0..4 {
            let plan = vivace.plan(&PATH, &mut rng);
            let rate_mbps = plan.rate_bps / 1e6;
            // In the second pair only the faster interval loses.
            let loss_ratio = if index >= 2 && rate_mbps > 8.0 { 0.1 } else { 0.0 };
            let report = report(rate_mbps, 0.0, loss_ratio);
            vivace.judge(&PATH, plan.purpose.expect("a probe"), &report);
        }
        close(vivace.rate_bps(), 8e6);
        assert!(matches!(vivace.state, State::Probe(None)));
    }

    #[test]
    fn after_a_step_that_was_worse_it_returns_stays_or_has_not_looked() {
        for (after_step, rate_mbps) in [("return", 9.8), ("stay", 10.29)] {
            let mut vivace = probing(&[("after_step", after_step)], 9.8);
            vivace.change(100.0, libm::pow(9.8, 0.9), &PATH);
            interval(&mut vivace, &mut Rng::new(1));
            close(vivace.rate_bps() / 1e6, rate_mbps);
        }
        let mut vivace = probing(&[("after_step", "probe")], 9.8);
        vivace.change(100.0, 1.0, &PATH);
        assert!(matches!(vivace.state, State::Probe(None)));
    }

    #[test]
    fn a_step_taken_back_does_not_lengthen_the_next_one() {
        let mut vivace = probing(&[], 9.8);
        for _ in 0..5 {
            vivace.change(100.0, libm::pow(9.8, 0.9), &PATH);
            close(interval(&mut vivace, &mut Rng::new(1)), 9.8 * 1.05);
        }
    }

    #[test]
    fn an_interval_is_a_round_trip_and_at_least_ten_packets() {
        let mut rng = Rng::new(1);
        close(probing(&[], 8.0).plan(&PATH, &mut rng).duration_s, 0.04);
        let slow = probing(&[], 1.0).plan(&PATH, &mut rng);
        close(slow.duration_s, 120_000.0 / slow.rate_bps);
    }

    #[test]
    fn a_time_out_halves_the_rate_down_to_two_packets_in_a_round_trip_and_starts_over() {
        let mut vivace = probing(&[], 8.0);
        vivace.on_timeout(&PATH);
        close(vivace.rate_bps(), 4e6);
        assert!(matches!(vivace.state, State::Start(_)));
        (0..10).for_each(|_| {
            vivace.on_timeout(&PATH);
        });
        close(vivace.rate_bps(), 0.6e6);
    }
}
