//! Learned controllers: features computed from acknowledgements, a decision clock, an agent that maps
//! observations to actions, an action map to windows and rates, and guards. The agent is a policy's
//! network or the learner of an environment; everything else is the same code for both, so that a
//! policy acts in deployment as it did in training.
//!
//! A decision becomes due while an acknowledgement is handled, and its observation is made then. The
//! controller asks for a timer at the same instant, and acts when the timer fires. Between the two, a
//! simulation can be stopped to obtain the action from outside.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind};
use crate::sensing::overload::{Overload, Round};
use crate::sensing::signals::{Interval, Signals};
use crate::units::{Bytes, Rate, Span, Time};
use action::{ActionMap, Hold};
use clock::{Clock, MinRtt};
use features::{History, Moment};
use law::{Corrected, Declined};
use metrics::{Arrived, Entries, IntervalAccounts, State};
use std::sync::Arc;

mod action;
mod clock;
mod features;
mod files;
mod folder;
pub mod forest;
mod guard;
pub mod joint;
mod law;
mod metrics;
pub mod nn;
pub mod safetensors;
mod spec;

pub use crate::decision::{
    ACTION_MAX, Action, AgentState, Credit, InvalidAction, METRIC_NAMES, METRICS, Metrics, TRUTH,
    TRUTH_NAMES, Truth,
};
pub use features::{FEATURES, Feature};
pub use files::{ERROR_MAX, FILES};
pub use folder::{NetworkAgent, Policy};

/// `policy.toml` of a policy of single flows, or of one of a host.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
pub enum DescriptionSpec {
    /// Of single flows.
    Flow(folder::Description),
    /// Of all connections of a host.
    Host(joint::Description),
}
pub use spec::{
    ActionSpec, BoundsSpec, ClockSpec, DecisionSpec, HISTORY_MAX, MapSpec, ObservationSpec,
    PolicySpec, RttMinSpec, SpecError, StartSpec, Step, WhenSpec,
};

/// Slow start ends when a round trip exceeds the smallest one by this factor.
const EXIT_RATIO: f64 = 1.25;

/// Maps observations to actions.
pub trait Agent: Send {
    /// The action for an observation: vectors of features, oldest first, row by row.
    ///
    /// # Errors
    ///
    /// If there is no valid action; the flow falls back for the rest of its life.
    fn act(&mut self, observation: &[f32]) -> Result<Action, InvalidAction>;

    /// Whether its flow is left to the law where jitter misleads it: a network in use, not one in training. Constant.
    fn is_guarded(&self) -> bool {
        false
    }

    /// Whether [`Agent::observe`] is called. Constant.
    fn wants_reports(&self) -> bool {
        false
    }

    /// Whether reports have [`Report::credit`], for which what is sent must be accounted interval by interval. Constant.
    fn wants_credit(&self) -> bool {
        self.wants_reports()
    }

    /// A decision is due, or the run ends and no further decision will be.
    fn observe(&mut self, _report: &Report) {}

    /// The flow or the run has ended. A decision that is due is the last one.
    fn end(&mut self) {}

    /// What it counts, by name.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// The decision that an agent outside of the simulation reads, and its action; `None` for others.
    fn state(&mut self) -> Option<&mut AgentState> {
        None
    }
}

/// What an agent that wants reports gets when a decision is due, and at the end of the run.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// As in [`Agent::act`].
    pub observation: &'a [f32],
    /// Metrics of what arrived since the previous interval ended.
    pub arrived: Metrics,
    /// Metrics of the packets sent in the earliest closed interval that was not reported yet; none unless the
    /// agent wants them.
    pub credit: Option<Credit>,
    /// Number of the decision, from 0: how many were made before.
    pub decision: u64,
    /// False at the end of the run: no decision follows.
    pub due: bool,
}

/// What controls the flow at present.
enum Phase {
    /// The first slow start, or the slow start after a time-out.
    SlowStart {
        first: bool,
    },
    Agent,
    Fallback(Box<dyn Controller>),
}

/// Makes the controller that takes over after an invalid action.
pub type MakeFallback = fn(&FlowInfo) -> Box<dyn Controller>;

/// A flow's learned controller.
pub struct LearnedController {
    flow: FlowInfo,
    spec: Arc<PolicySpec>,
    agent: Box<dyn Agent>,
    is_guarded: bool,
    fallback: MakeFallback,
    features: Vec<&'static Feature>,
    history: History,
    clock: Clock,
    map: ActionMap,
    hold: Hold,
    overload: Overload,
    /// Only with an action map over a law: in place of `hold`.
    law: Option<Box<dyn Corrected>>,
    phase: Phase,
    rtt_min: MinRtt,
    entries: Entries,
    arrived: Arrived,
    /// Only for features that need them.
    signals: Option<Box<Signals>>,
    /// Only for an agent that wants credit.
    accounts: Option<IntervalAccounts>,
    wants_reports: bool,
    latest: Latest,
    /// Window at the end of the previous interval, packets.
    cwnd_before: f64,
    /// Throughput of the previous interval, and the largest so far, Mb/s.
    throughput_before_mbps: f64,
    throughput_max_mbps: f64,
    /// Values of the latest action, in [-1, 1].
    action: [f64; ACTION_MAX],
    /// When the decision that is still to be made became due.
    due: Option<Time>,
    /// The flow sends nothing more.
    ended: bool,
    counts: Counts,
}

/// Of the latest acknowledgement, what an interval that ends with it reports.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    inflight: Bytes,
    srtt: Span,
    delivery_rate: Rate,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    decisions: u64,
    not_finite: u64,
    out_of_range: u64,
    /// Answers that did not apply ([`Declined`]).
    guarded_jitter: u64,
    uncontended: u64,
}

impl LearnedController {
    /// A controller as `spec` describes it, with the actions of `agent`; after an invalid action, the
    /// controller that `fallback` makes.
    ///
    /// # Panics
    ///
    /// If `spec` is invalid and was not checked ([`PolicySpec::check`]).
    pub fn new(
        flow: &FlowInfo,
        spec: &Arc<PolicySpec>,
        agent: Box<dyn Agent>,
        fallback: MakeFallback,
    ) -> Self {
        let map = ActionMap::new(&spec.action).expect("a checked table has steps");
        let hold = Hold::new(flow, &spec.bounds, &map);
        let (length, width) = spec.shape();
        let mss = flow.mss.0.max(1) as f64;
        let features = spec.features().expect("a checked table names features");
        let law = law::begin(spec, flow);
        let signals = law.is_some() || features.iter().any(|feature| feature.uses_signals());
        Self {
            flow: *flow,
            features,
            history: History::new(length, width),
            clock: Clock::new(&spec.decision),
            phase: if spec.start.slow_start && hold.window.in_slow_start() {
                Phase::SlowStart { first: true }
            } else {
                Phase::Agent
            },
            overload: Overload::new(flow.start),
            rtt_min: MinRtt::new(spec.observation.rtt_min == RttMinSpec::Window),
            entries: Entries::new(mss),
            arrived: Arrived::new(mss, flow.start),
            signals: signals.then(|| Box::new(Signals::new(flow.mss, flow.start))),
            accounts: agent.wants_credit().then(|| IntervalAccounts::new(mss)),
            wants_reports: agent.wants_reports(),
            latest: Latest::default(),
            cwnd_before: law.as_ref().map_or_else(|| hold.cwnd(), |law| law.cwnd()),
            throughput_before_mbps: 0.0,
            throughput_max_mbps: 0.0,
            law,
            action: [0.0; ACTION_MAX],
            due: None,
            ended: false,
            counts: Counts::default(),
            spec: Arc::clone(spec),
            is_guarded: agent.is_guarded(),
            agent,
            fallback,
            map,
            hold,
        }
    }

    /// Slow start, if the flow is in it.
    fn start(&mut self, ack: &Ack) {
        let Phase::SlowStart { first } = self.phase else { return };
        let rtt_min = self.rtt_min.get();
        let queued = first && rtt_min > Span::ZERO && ack.rtt > rtt_min.mul_f64(EXIT_RATIO);
        if !queued && ack.recovering == 0 && ack.cwnd_limited == 1 {
            let acked = self.hold.window.packets(ack.acked);
            self.hold.window.slow_start(acked);
            self.hold.set_cwnd(self.hold.window.cwnd);
        }
        if queued || !self.hold.window.in_slow_start() {
            self.take_over();
        }
    }

    /// From now on the agent decides; its first decision is due with the next acknowledgement.
    fn take_over(&mut self) {
        self.phase = Phase::Agent;
        self.hold.window.ssthresh = self.hold.window.cwnd;
        self.clock.expire();
    }

    fn state(&self) -> State {
        let (cwnd_packets, control) = match &self.law {
            Some(law) => (law.cwnd(), law.control()),
            None => (self.hold.cwnd(), self.hold.control(false)),
        };
        State {
            cwnd_packets,
            inflight: self.latest.inflight,
            pacing: control.pacing_rate,
            rtt_min: self.rtt_min.get(),
            srtt: self.latest.srtt,
        }
    }

    /// Ends the interval and adds its vector to the history.
    fn end_interval(&mut self, now: Time) -> Metrics {
        let state = self.state();
        let metrics = self.arrived.metrics(now, &state);
        self.throughput_max_mbps = self.throughput_max_mbps.max(metrics.throughput_mbps);
        let moment = Moment {
            metrics,
            throughput_max_mbps: self.throughput_max_mbps,
            throughput_before_mbps: self.throughput_before_mbps,
            packet_mb: self.flow.mss.0.max(1) as f64 * 8e-6,
            cwnd_change: state.cwnd_packets - self.cwnd_before,
            sent_packets: self.arrived.sent_packets(),
            delivery_rate_mbps: match self.latest.delivery_rate {
                Rate::UNLIMITED => 0.0,
                rate => rate.as_mbps(),
            },
            signals: self
                .signals
                .as_mut()
                .map_or_else(Interval::default, |signals| signals.end(now)),
            action: self.action,
        };
        self.cwnd_before = state.cwnd_packets;
        self.throughput_before_mbps = metrics.throughput_mbps;
        self.history.push(self.features.iter().map(|feature| feature.value(&moment)));
        self.arrived.restart(now);
        metrics
    }

    fn report(&mut self, arrived: Metrics, due: bool) {
        if self.wants_reports {
            self.agent.observe(&Report {
                observation: self.history.rows(),
                arrived,
                credit: self.accounts.as_mut().and_then(IntervalAccounts::take),
                decision: self.counts.decisions,
                due,
            });
        }
    }

    fn decide(&mut self, now: Time) {
        let observation = self.history.rows();
        let action = if observation.iter().all(|value| value.is_finite()) {
            self.agent.act(observation)
        } else {
            Err(InvalidAction::NotFinite)
        };
        match action.and_then(|action| self.map.apply(action, &mut self.hold)) {
            Ok(values) => {
                self.hold.decided();
                self.action = self.guarded(values);
                if let (Some(law), Some(signals)) = (&mut self.law, &self.signals) {
                    law.act(signals.last(), self.action);
                }
                let state = self.state();
                if let Some(accounts) = &mut self.accounts {
                    accounts.begin(now, Some(self.counts.decisions), self.arrived.sent(), state);
                }
                self.counts.decisions += 1;
            }
            Err(reason) => self.fall_back(reason),
        }
    }

    /// The values of the agent, or those that leave the flow to the law.
    fn guarded(&mut self, values: [f64; ACTION_MAX]) -> [f64; ACTION_MAX] {
        let (Some(law), Some(signals)) = (&mut self.law, &self.signals) else { return values };
        match law.applies(signals.last(), values, self.spec.action.when, self.is_guarded) {
            Ok(()) => return values,
            Err(Declined::Uncontended) => self.counts.uncontended += 1,
            Err(Declined::Jitter) => self.counts.guarded_jitter += 1,
            Err(Declined::Starting) => {} // which the law counts
        }
        [0.0; ACTION_MAX]
    }

    /// The fallback takes over, starting from the present window.
    fn fall_back(&mut self, reason: InvalidAction) {
        match reason {
            InvalidAction::NotFinite => self.counts.not_finite += 1,
            InvalidAction::OutOfRange => self.counts.out_of_range += 1,
        }
        let pipe = self.law.as_ref().map_or_else(|| self.hold.pipe(), |law| law.cwnd());
        let cwnd = self.hold.window.bytes(pipe);
        let flow = FlowInfo { initial_cwnd: cwnd, initial_ssthresh: cwnd, ..self.flow };
        self.phase = Phase::Fallback((self.fallback)(&flow));
    }

    fn on_timeout(&mut self, now: Time, kind: LossKind) {
        self.due = None;
        if !self.spec.start.guards_timeouts() {
            if matches!(self.phase, Phase::SlowStart { .. }) {
                self.take_over();
            }
            return;
        }
        self.hold.after_timeout(kind);
        self.phase = Phase::SlowStart { first: false };
        // Packets sent from now on belong to no decision.
        let state = self.state();
        if let Some(accounts) = &mut self.accounts {
            accounts.begin(now, None, self.arrived.sent(), state);
        }
    }
}

impl Controller for LearnedController {
    fn on_ack(&mut self, ack: &Ack) {
        if let Phase::Fallback(fallback) = &mut self.phase {
            return fallback.on_ack(ack);
        }
        self.latest =
            Latest { inflight: ack.inflight, srtt: ack.srtt, delivery_rate: ack.delivery_rate };
        self.hold.on_ack(ack);
        self.rtt_min.on_ack(ack);
        let entry = self.entries.next(ack);
        self.arrived.on_ack(ack, &entry);
        if let Some(signals) = &mut self.signals {
            signals.on_ack(ack);
        }
        if let Some(law) = &mut self.law {
            law.on_ack(ack);
        }
        if let Some(accounts) = &mut self.accounts {
            accounts.on_ack(ack, &entry);
        }
        if self.overload.on_ack(ack).is_some_and(Round::is_overload) {
            self.hold.halve();
        }
        self.start(ack);
        if self.due.is_some() || !self.clock.ends(ack) {
            return;
        }
        let decides = matches!(self.phase, Phase::Agent);
        if decides && self.map.paces() {
            self.hold.pace();
        }
        let arrived = self.end_interval(ack.now);
        self.clock.restart(ack, self.rtt_min.get());
        if decides {
            self.due = Some(ack.now);
            self.report(arrived, true);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if let Phase::Fallback(fallback) = &mut self.phase {
            return fallback.on_loss(loss);
        }
        self.arrived.on_loss(loss);
        if let Some(signals) = &mut self.signals {
            signals.on_loss(loss);
        }
        if let Some(accounts) = &mut self.accounts {
            accounts.on_loss(loss);
        }
        if let Some(law) = &mut self.law {
            return law.on_loss(loss); // which answers time-outs, too
        }
        let timeout = matches!(loss.kind, LossKind::Timeout | LossKind::TimeoutAgain);
        if timeout || loss.kind == LossKind::Spurious {
            self.overload.forgive();
        } else {
            self.overload.on_loss(loss);
        }
        if timeout {
            return self.on_timeout(loss.now, loss.kind);
        }
        if self.spec.start.loss_guard {
            self.hold.guard(loss);
        }
        if loss.kind == LossKind::Gap && matches!(self.phase, Phase::SlowStart { .. }) {
            self.take_over();
        }
    }

    fn on_timer(&mut self, now: Time) {
        if let Phase::Fallback(fallback) = &mut self.phase {
            return fallback.on_timer(now);
        }
        if self.due.take().is_some() {
            self.decide(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        if let Phase::Fallback(fallback) = &self.phase {
            return fallback.next_timer();
        }
        self.due
    }

    fn control(&self) -> Control {
        match (&self.phase, &self.law) {
            (Phase::Fallback(fallback), _) => fallback.control(),
            (Phase::Agent, Some(law)) => law.control(),
            (phase, _) => self.hold.control(matches!(phase, Phase::SlowStart { .. })),
        }
    }

    fn on_end(&mut self, now: Time) {
        if self.ended || now < self.flow.start {
            return;
        }
        self.ended = true;
        if !matches!(self.phase, Phase::Fallback(_)) && self.due.is_none() {
            let arrived = self.end_interval(now);
            self.report(arrived, false);
        }
        self.agent.end();
    }

    fn agent_state(&mut self) -> Option<&mut AgentState> {
        self.agent.state()
    }

    fn fell_back(&self) -> bool {
        matches!(self.phase, Phase::Fallback(_))
    }

    /// The number of decisions, of fallbacks, and of their reasons; then what agent and law count.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        let Counts { decisions, not_finite, out_of_range, guarded_jitter, uncontended } =
            self.counts;
        let mut counters = vec![
            ("decisions", decisions as f64),
            ("fallbacks", (not_finite + out_of_range) as f64),
            ("not_finite", not_finite as f64),
            ("out_of_range", out_of_range as f64),
        ];
        counters.extend(self.agent.counters());
        let jitter = ("decisions_guarded_jitter", guarded_jitter as f64);
        counters.extend(self.is_guarded.then_some(jitter));
        let is_limited = self.spec.action.when == WhenSpec::Contention;
        counters.extend(is_limited.then_some(("decisions_uncontended", uncontended as f64)));
        counters.extend(self.law.iter().flat_map(|law| law.counters()));
        counters
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
#[path = "../../tests/support/forest.rs"]
pub(crate) mod grown;

#[cfg(test)]
#[path = "../../tests/support/network.rs"]
pub(crate) mod written;
