//! TCP that learns its congestion avoidance from a table: Table 1 of Kong, Zang and Ma, "Improving
//! TCP Congestion Control with Machine Intelligence", `NetAI` 2018. Six controllers differ in actions,
//! state, utility, reward and update only; those stand in their own files.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind};
use crate::controllers::shared::tabular::{
    Axis, Grid, LearningRate, Settings, Tabular, Ties, Update,
};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::sensing::{Counted, Gaps, Outcome, StepMeter};
use crate::units::{Bytes, Rate, Span, Time};

/// Utility and reward of the learner.
pub trait Objective: Send + 'static {
    /// Utility of a step.
    fn utility(&self, step: &Outcome, min_rtt: Span) -> f64;
    /// Reward of a change of utility from one step to the next.
    fn reward(&self, change: f64) -> f64;
}

/// Definition of a member of the family.
pub struct Member<O> {
    /// Packets that `cwnd` may gain in a step.
    pub actions: &'static [f64],
    /// How the state is discretised. Features in order: ACK gap (s), sending gap (s), round trip over
    /// smallest round trip, `ssthresh` (packets), `cwnd` (packets).
    pub grid: Grid,
    /// Utility and reward.
    pub objective: O,
    /// Learning rule.
    pub update: Update,
}

/// `NewReno` whose congestion avoidance is learned.
pub struct Kong<O> {
    window: Window,
    actions: &'static [f64],
    grid: Grid,
    objective: O,
    learner: Tabular,
    learning_rate: LearningRate,
    rules: Rules,
    gaps: Gaps,
    /// The latest round-trip sample.
    rtt: Span,
    /// The present time step, if there is one.
    meter: StepMeter,
    in_step: bool,
    /// `u_1`: utility of the step before.
    utility: Option<f64>,
    /// In slow start since the flow or a timeout began.
    starting: bool,
    flow_start: Time,
}

/// Settings for the choices that the paper leaves open.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is one open choice of the paper
struct Rules {
    step: StepLength,
    spread: bool,
    learn_below_ssthresh: bool,
    recovery: InRecovery,
    restart_after_timeout: bool,
    exact_clock: bool,
    cwnd_floor: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepLength {
    Latest,
    Smoothed,
    Smallest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InRecovery {
    Extend,
    Restart,
    Act,
}

/// The path that the grid and the utility are scaled to, and the ranges given in its place. Known
/// to the paper's authors; a scenario with another path sets it.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// B.
    pub bandwidth: Rate,
    rtt_min_s: f64,
    /// L, packets.
    buffer: f64,
    /// K, or 1 if one grid serves every K.
    flows: f64,
    /// S / B.
    packet_s: f64,
    /// End of the gaps' ranges for one sender, if it is given.
    gap_s: Option<f64>,
    /// End of the range of `ssthresh` for one sender, if it is given.
    ssthresh: Option<f64>,
}

impl Path {
    /// For packets of the flow's own size.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let bandwidth = Rate::from_mbps(params.number("bandwidth_mbps"));
        let scaled = params.choice("grid_scale") == "flows";
        Self {
            bandwidth,
            rtt_min_s: params.number("rtt_min_ms") / 1e3,
            buffer: params.number("buffer_packets"),
            flows: if scaled { params.number("flows") } else { 1.0 },
            packet_s: flow.mss.0.max(1) as f64 * 8.0 / bandwidth.0 as f64,
            gap_s: range_end(params, "gap_max_ms").map(|millis| millis / 1e3),
            ssthresh: range_end(params, "ssthresh_max_packets"),
        }
    }

    /// Four times the gap between a flow's packets when the link is full, or K times the range
    /// given.
    pub fn gap_max_s(&self) -> f64 {
        self.gap_given_s().unwrap_or(4.0 * self.flows * self.packet_s)
    }

    /// K times the range given, if one is.
    pub fn gap_given_s(&self) -> Option<f64> {
        self.gap_s.map(|gap_s| gap_s * self.flows)
    }

    /// Round trip over smallest round trip when the buffer is full.
    pub fn rtt_ratio_max(&self) -> f64 {
        1.0 + (self.buffer + 1.0) * self.packet_s / self.rtt_min_s
    }

    /// End of the range of `ssthresh`, packets.
    pub fn ssthresh_max(&self) -> f64 {
        self.window_max(self.ssthresh)
    }

    /// The window given, or else the one that fills link and buffer, packets; twice a flow's share
    /// of it if there are several.
    pub fn window_max(&self, given: Option<f64>) -> f64 {
        let all = given.unwrap_or(self.rtt_min_s / self.packet_s + self.buffer);
        if self.flows > 1.0 { 2.0 * all / self.flows } else { all }
    }
}

/// The end of a feature's range that a parameter gives; its 0 stands for none.
pub fn range_end(params: &Params, name: &str) -> Option<f64> {
    Some(params.number(name)).filter(|&end| end > 0.0)
}

/// An axis from `low` to `high` with as many levels as the parameter `levels` says.
pub fn axis(low: f64, high: f64, params: &Params, levels: &str) -> Axis {
    Axis { low, high, levels: params.number(levels) as u32 }
}

impl<O: Objective> Kong<O> {
    /// Starts in slow start, knowing nothing.
    pub fn new(flow: &FlowInfo, params: &Params, member: Member<O>) -> Self {
        let settings = Settings {
            update: member.update,
            gamma: params.number("gamma"),
            epsilon: params.number("epsilon"),
            initial: params.number("q_init"),
            ties: if params.choice("ties") == "first" { Ties::First } else { Ties::Random },
        };
        let mut kong = Self {
            window: Window::new(flow),
            learner: Tabular::new(member.actions.len(), settings, flow.seed),
            actions: member.actions,
            grid: member.grid,
            objective: member.objective,
            learning_rate: LearningRate {
                start: params.number("alpha0"),
                decay: params.number("alpha_decay"),
                period_s: params.number("alpha_period_s"),
            },
            rules: Rules::new(params),
            gaps: Gaps::new(params.number("ewma_gain")),
            rtt: Span::ZERO,
            meter: StepMeter::new(flow.mss, flow.start, Bytes(0)).counting(counted(params)),
            in_step: false,
            utility: None,
            starting: true,
            flow_start: flow.start,
        };
        if params.choice("skip_first") == "no" {
            kong.fill_with_zeros();
        }
        kong
    }

    /// S1 of Table 1: all memory zero, the first step begins with the flow.
    fn fill_with_zeros(&mut self) {
        let hold = self.actions.iter().position(|&packets| packets == 0.0).unwrap_or(0);
        self.learner.prefill(0, hold);
        self.utility = Some(0.0);
        self.in_step = true;
    }

    fn sense(&mut self, ack: &Ack, acked: f64) {
        self.gaps.on_ack(ack, acked);
        self.meter.on_ack(ack);
        if ack.rtt > Span::ZERO {
            self.rtt = ack.rtt;
        }
    }

    /// S4: whether this acknowledgement belongs to slow start.
    fn in_slow_start(&mut self) -> bool {
        self.starting &= self.window.in_slow_start();
        if self.rules.learn_below_ssthresh { self.starting } else { self.window.in_slow_start() }
    }

    /// Whether the learner ignores this acknowledgement of a recovery.
    fn sits_out(&mut self, ack: &Ack) -> bool {
        if ack.recovering == 0 || self.rules.recovery == InRecovery::Act {
            return false;
        }
        if self.rules.recovery == InRecovery::Restart {
            self.forget_step();
        }
        true
    }

    /// The next step begins with the next acknowledgement of congestion avoidance, without a
    /// utility to compare it with. What is known of states and actions stays.
    fn forget_step(&mut self) {
        self.in_step = false;
        self.utility = None;
    }

    /// S6: whether a round trip has passed since the step began.
    fn step_is_over(&mut self, ack: &Ack) -> bool {
        if !self.in_step {
            self.in_step = true;
            self.meter.restart(ack.now, ack.delivered);
            return false;
        }
        let length = match self.rules.step {
            StepLength::Latest => self.rtt,
            StepLength::Smoothed => ack.srtt,
            StepLength::Smallest => ack.min_rtt,
        };
        length > Span::ZERO && ack.now.since(self.meter.started) >= length
    }

    /// S7 to S10: judges the step that ends, learns from it, begins the next.
    fn next_step(&mut self, ack: &Ack) {
        let outcome = if self.rules.exact_clock {
            self.meter.outcome(ack.now, ack.delivered)
        } else {
            self.meter.outcome_in_seconds(ack.now, ack.delivered)
        };
        let utility = self.objective.utility(&outcome, ack.min_rtt);
        let reward = self.utility.map(|before| self.objective.reward(utility - before));
        let alpha = self.learning_rate.at(ack.now.since(self.flow_start).as_secs_f64());
        let state = self.grid.number(&self.features(ack));
        let action = self.learner.step(state, reward, alpha);
        if !self.rules.spread {
            self.window.grow(self.actions[action]);
        }
        self.utility = Some(utility);
        self.meter.restart(ack.now, ack.delivered);
    }

    fn features(&self, ack: &Ack) -> [f64; 5] {
        let min_rtt_s = ack.min_rtt.as_secs_f64();
        [
            self.gaps.ack.value(),
            self.gaps.send.value(),
            if min_rtt_s > 0.0 { self.rtt.as_secs_f64() / min_rtt_s } else { 1.0 },
            self.window.ssthresh,
            self.window.cwnd,
        ]
    }
}

impl<O: Objective> Controller for Kong<O> {
    /// S2 to S12.
    fn on_ack(&mut self, ack: &Ack) {
        let acked = self.window.packets(ack.acked);
        self.sense(ack, acked);
        if self.sits_out(ack) || ack.cwnd_limited == 0 || acked == 0.0 {
            return;
        }
        let acked = if self.in_slow_start() { self.window.slow_start(acked) } else { acked };
        if acked == 0.0 {
            return;
        }
        if self.step_is_over(ack) {
            self.next_step(ack);
        }
        if let Some(action) = self.learner.action().filter(|_| self.rules.spread) {
            // A record of more than a window is one round trip's worth.
            self.window.avoid(acked.min(self.window.cwnd), self.actions[action]);
        }
        self.window.cwnd = self.window.cwnd.max(self.rules.cwnd_floor);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if !matches!(loss.kind, LossKind::Deflate | LossKind::Idle | LossKind::Spurious) {
            self.meter.on_loss(loss);
        }
        self.window.reduce(loss);
        if matches!(loss.kind, LossKind::Timeout | LossKind::TimeoutAgain | LossKind::Idle) {
            self.starting = true;
            if self.rules.restart_after_timeout {
                self.forget_step();
            }
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        let counts = self.learner.counts;
        vec![
            ("learning_steps", counts.steps as f64),
            ("explored_steps", counts.explored as f64),
            ("table_cells", counts.cells as f64),
            ("total_reward", counts.reward),
        ]
    }
}

fn counted(params: &Params) -> Counted {
    if params.choice("tp_from") == "acks" { Counted::Acks } else { Counted::Bytes }
}

impl Rules {
    fn new(params: &Params) -> Self {
        Self {
            step: match params.choice("step") {
                "srtt" => StepLength::Smoothed,
                "min_rtt" => StepLength::Smallest,
                _ => StepLength::Latest,
            },
            spread: params.choice("apply") == "spread",
            learn_below_ssthresh: params.choice("below_ssthresh") == "learn",
            recovery: match params.choice("in_recovery") {
                "restart" => InRecovery::Restart,
                "act" => InRecovery::Act,
                _ => InRecovery::Extend,
            },
            restart_after_timeout: params.choice("after_timeout") == "restart",
            exact_clock: params.choice("clock") == "exact",
            cwnd_floor: params.number("cwnd_floor_packets"),
        }
    }
}

/// A numeric setting.
pub const fn number(
    name: &'static str,
    about: &'static str,
    default: f64,
    min: f64,
    max: f64,
) -> Param {
    Param { name, about, kind: ParamKind::Number { default, min, max } }
}

/// A setting that is one of a few words.
pub const fn choice(
    name: &'static str,
    about: &'static str,
    words: &'static [&'static str],
) -> Param {
    Param { name, about, kind: ParamKind::Choice(words) }
}

/// A member's own settings followed by the family's.
///
/// # Panics
///
/// If `N` is not the sum of both lengths; the compiler says so.
pub const fn with_family<const N: usize>(own: &[Param]) -> [Param; N] {
    assert!(own.len() + PARAMS.len() == N, "N counts the member's settings and the family's");
    let mut all = [PARAMS[0]; N];
    let mut index = 0;
    while index < N {
        all[index] = if index < own.len() { own[index] } else { PARAMS[index - own.len()] };
        index += 1;
    }
    all
}

/// How many settings all members have.
pub const FAMILY: usize = PARAMS.len();

const PARAMS: &[Param] = &[
    number("epsilon", "share of steps with a random action (paper: section 3.2.2)", 0.1, 0.0, 1.0),
    number("alpha0", "learning rate at the start (paper: section 4)", 0.3, 0.0, 1.0),
    number("alpha_decay", "what each period leaves of it (paper: section 4)", 0.995, 0.0, 1.0),
    number(
        "alpha_period_s",
        "that period, counted from the start of the flow (paper: section 4; the start is proposed)",
        10.0,
        0.001,
        1e9,
    ),
    number(
        "levels",
        "intervals of each feature but `cwnd` (paper: 10 to 20; source: ten for Q-TCP)",
        10.0,
        1.0,
        1000.0,
    ),
    number("q_init", "value of what was never tried (proposed)", 0.0, -1000.0, 1000.0),
    choice(
        "ties",
        "which of several equal values is chosen (proposed: they are all equal at first)",
        &["random", "first"],
    ),
    choice(
        "skip_first",
        "`yes`: the first step begins with congestion avoidance and nothing is learned before two \
         utilities are known (proposed); `no`: all memory zero and t0 = 0 (paper: Table 1, S1)",
        &["yes", "no"],
    ),
    choice(
        "below_ssthresh",
        "a learned decrease can take `cwnd` below `ssthresh`: `slow_start` brings it back, as ns-2's \
         test does (paper: Table 1, S4); with `learn`, slow start does not return once it has ended",
        &["slow_start", "learn"],
    ),
    choice(
        "in_recovery",
        "`extend`: the learner makes no decision, and its step lasts until the recovery ends, so that \
         its reward has the recovery's losses (proposed); `restart`: a new step begins afterwards; \
         `act`: it decides as always (paper: Table 1 read to the letter)",
        &["extend", "restart", "act"],
    ),
    choice(
        "after_timeout",
        "`restart`: a new step begins when slow start ends, without a utility to compare it with \
         (proposed); `keep`: the step of before continues (paper: Table 1 read to the letter)",
        &["restart", "keep"],
    ),
    choice(
        "step",
        "length of a time step (paper: one RTT; the latest sample is proposed)",
        &["rtt", "srtt", "min_rtt"],
    ),
    choice(
        "clock",
        "equation 4 rewards by the sign of a difference of utilities. `double`: time in 64-bit floating \
         seconds, as ns-2's clock gives it (the authors worked in ns-2; source: ns-2.35 scheduler.h), \
         so that equal steps earn +2 or -2 by rounding; `exact`: equal steps are equal and earn +2",
        &["double", "exact"],
    ),
    choice(
        "apply",
        "`spread`: x/cwnd for each packet acknowledged (paper: section 3.2; proposed for Q-TCP); \
         `step`: x at once when it is chosen",
        &["spread", "step"],
    ),
    choice(
        "tp_from",
        "throughput of a step. `bytes`: the bytes newly delivered (proposed); `acks`: the new ACKs, \
         one packet each, so that the ACK that ends a recovery does not count as a window (proposed, \
         chosen by the published numbers; the paper says only \"throughput\")",
        &["bytes", "acks"],
    ),
    number(
        "ewma_gain",
        "weight of a new gap in its average (proposed; 0.02 is near the mean of the last 100 that \
         is reported for Q-TCP)",
        0.125,
        0.0001,
        1.0,
    ),
    number("cwnd_floor_packets", "smallest window when learning (proposed)", 1.0, 1.0, 1e6),
    number("bandwidth_mbps", "B of the grid and the utility (paper: section 4)", 10.0, 1e-3, 1e6),
    number("rtt_min_ms", "RTT_min of the grid (paper: section 4)", 150.0, 1e-3, 1e6),
    number("buffer_packets", "L of the grid (paper: 5, 50, 150)", 50.0, 0.0, 1e7),
    number("flows", "K of the grid (paper: 1 or 4)", 1.0, 1.0, 1e6),
    choice(
        "grid_scale",
        "`flows`: for K > 1 the gaps' ranges are K times and the windows' 2/K times those of one \
         sender (proposed); `one`: one grid for every K (proposed, chosen by the published numbers)",
        &["flows", "one"],
    ),
    number(
        "gap_max_ms",
        "end of the ranges of both gaps for one sender; 0: 4 S/B, or 10 ms for Q-TCP with \
         `ranges = orig` (proposed; paper: \"where most of its values lie\")",
        0.0,
        0.0,
        1e6,
    ),
    number(
        "ssthresh_max_packets",
        "end of the range of `ssthresh` for one sender; 0: BDP + L (proposed)",
        0.0,
        0.0,
        1e9,
    ),
];

#[cfg(test)]
#[path = "tests/kong.rs"]
mod tests;
