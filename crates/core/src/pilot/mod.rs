//! A learned controller: an observer that makes features of acknowledgements, a clock that says when
//! to decide, a mind that answers, a map from answers to windows and rates, and guards around it.
//! The mind is a policy's network, or an environment's learner; all else is the same for both, so
//! that a policy does in a flow what it did in training.
//!
//! A decision falls due while an acknowledgement is handled, and its observation is taken then. The
//! pilot asks for a timer at that very moment, and decides when it is called. Between the two a
//! simulation can be stopped for an answer from outside.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind};
use crate::controllers::cubic::{self, Cubic};
use crate::params::Params;
use crate::units::{Rate, Span, Time};
use act::{ActionMap, Hold};
use clock::{Clock, LeastRtt};
use features::{History, Moment};
use measures::{Arrived, Ledger, State};
use std::sync::Arc;

mod act;
mod clock;
mod features;
mod measures;
mod spec;

pub use features::{FEATURES, Feature};
pub use measures::{Credit, MEASURES, Measures, NAMES};
pub use spec::{
    ActionSpec, BoundsSpec, ClockSpec, DecisionSpec, HISTORY_MAX, MapSpec, ObservationSpec,
    PilotSpec, RttMinSpec, SpecError, StartSpec, Step,
};

/// Most values of an answer.
pub const ACTION_MAX: usize = 2;
/// Slow start ends at this many smallest round trips.
const EXIT_RATIO: f64 = 1.25;

/// What a mind answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// One of the steps, from 0.
    Choice(usize),
    /// Values, of which the map uses the first or both.
    Values([f32; ACTION_MAX]),
}

/// Why an answer is none. The flow then goes on under CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A number of the observation or of the answer is not finite.
    NotFinite,
    /// No such choice, a value beyond the limit, or an answer of the wrong kind.
    OutOfRange,
}

/// Answers observations.
pub trait Mind: Send {
    /// The answer to an observation: vectors of features, oldest first, row by row.
    ///
    /// # Errors
    ///
    /// If there is none; the flow falls back for good.
    fn decide(&mut self, observation: &[f32]) -> Result<Action, Refusal>;

    /// Whether [`Mind::hear`] is to be called, which costs the keeping of accounts. Constant.
    fn watches(&self) -> bool {
        false
    }

    /// A decision has fallen due, or none will any more.
    fn hear(&mut self, _report: &Report) {}

    /// The flow has ended, or the run; a decision that is due is the last.
    fn leave(&mut self) {}
}

/// What a mind that watches is told when a decision falls due, and at the end.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// As in [`Mind::decide`].
    pub observation: &'a [f32],
    /// What arrived since the slot before ended.
    pub arrived: Measures,
    /// What became of the packets of the earliest slot that is closed and was not told.
    pub credit: Option<Credit>,
    /// Number of the decision, from 0: how many were made before.
    pub decision: u64,
    /// False at the end of the run: no decision follows.
    pub due: bool,
}

/// Who governs.
#[derive(Clone, Debug)]
enum Phase {
    /// The first slow start, or the one after a time-out.
    SlowStart {
        first: bool,
    },
    Mind,
    Fallback(Box<Cubic>),
}

/// A flow's learned controller.
pub struct Pilot {
    flow: FlowInfo,
    spec: Arc<PilotSpec>,
    mind: Box<dyn Mind>,
    features: Vec<&'static Feature>,
    history: History,
    clock: Clock,
    map: ActionMap,
    hold: Hold,
    phase: Phase,
    rtt_min: LeastRtt,
    arrived: Arrived,
    /// Kept for a mind that watches.
    ledger: Option<Ledger>,
    latest: Ack,
    /// Window at the end of the slot before, packets.
    cwnd_before: f64,
    /// When the decision fell due that is not made yet.
    due: Option<Time>,
    /// Nothing more will be sent.
    ended: bool,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    decisions: u64,
    not_finite: u64,
    out_of_range: u64,
}

impl Pilot {
    /// Governs a flow as `spec` says and `mind` decides.
    ///
    /// # Panics
    ///
    /// If `spec` was not checked and is not in order ([`PilotSpec::check`]).
    pub fn new(flow: &FlowInfo, spec: &Arc<PilotSpec>, mind: Box<dyn Mind>) -> Self {
        let map = ActionMap::new(&spec.action).expect("a checked table has steps");
        let hold = Hold::new(flow, &spec.bounds, &map);
        let (length, width) = spec.shape();
        let mss = flow.mss.0.max(1) as f64;
        Self {
            flow: *flow,
            features: spec.features().expect("a checked table names features"),
            history: History::new(length, width),
            clock: Clock::new(&spec.decision),
            phase: match spec.start.slow_start && hold.window.in_slow_start() {
                true => Phase::SlowStart { first: true },
                false => Phase::Mind,
            },
            rtt_min: LeastRtt::new(spec.observation.rtt_min == RttMinSpec::Window),
            arrived: Arrived::new(mss, flow.start),
            ledger: mind.watches().then(|| Ledger::new(mss)),
            latest: Ack::default(),
            cwnd_before: hold.cwnd(),
            due: None,
            ended: false,
            counts: Counts::default(),
            spec: Arc::clone(spec),
            mind,
            map,
            hold,
        }
    }

    /// Slow start, while it lasts.
    fn start(&mut self, ack: &Ack) {
        let Phase::SlowStart { first } = self.phase else { return };
        let least = self.rtt_min.get();
        let queued = first && least > Span::ZERO && ack.rtt > least.mul_f64(EXIT_RATIO);
        if !queued && ack.recovering == 0 && ack.cwnd_limited == 1 {
            let acked = self.hold.window.packets(ack.acked);
            self.hold.window.slow_start(acked);
            self.hold.set_cwnd(self.hold.window.cwnd);
        }
        if queued || !self.hold.window.in_slow_start() {
            self.take_over();
        }
    }

    /// From now on the mind decides, first with the next acknowledgement.
    fn take_over(&mut self) {
        self.phase = Phase::Mind;
        self.hold.window.ssthresh = self.hold.window.cwnd;
        self.clock.expire();
    }

    fn state(&self) -> State {
        State {
            cwnd_packets: self.hold.cwnd(),
            inflight: self.latest.inflight,
            pacing: self.hold.control(false).pacing_rate,
            rtt_min: self.rtt_min.get(),
            srtt: self.latest.srtt,
        }
    }

    /// A slot ends: its vector joins the history.
    fn end_slot(&mut self, now: Time) -> Measures {
        let state = self.state();
        let measures = self.arrived.measures(now, &state);
        let moment = Moment {
            measures,
            cwnd_change: state.cwnd_packets - self.cwnd_before,
            sent_packets: self.arrived.sent_packets(),
            delivery_rate_mbps: match self.latest.delivery_rate {
                Rate::UNLIMITED => 0.0,
                rate => rate.as_mbps(),
            },
        };
        self.cwnd_before = state.cwnd_packets;
        self.history.push(self.features.iter().map(|feature| feature.value(&moment)));
        self.arrived.restart(now);
        measures
    }

    fn tell(&mut self, arrived: Measures, due: bool) {
        if let Some(ledger) = &mut self.ledger {
            self.mind.hear(&Report {
                observation: self.history.rows(),
                arrived,
                credit: ledger.take(),
                decision: self.counts.decisions,
                due,
            });
        }
    }

    fn decide(&mut self, now: Time) {
        let observation = self.history.rows();
        let answer = if observation.iter().all(|value| value.is_finite()) {
            self.mind.decide(observation)
        } else {
            Err(Refusal::NotFinite)
        };
        match answer.and_then(|action| self.map.apply(action, &mut self.hold)) {
            Ok(()) => {
                let state = self.state();
                if let Some(ledger) = &mut self.ledger {
                    ledger.begin(now, Some(self.counts.decisions), self.arrived.sent(), state);
                }
                self.counts.decisions += 1;
            }
            Err(refusal) => self.fall_back(refusal),
        }
    }

    /// CUBIC takes over from the present window.
    fn fall_back(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::NotFinite => self.counts.not_finite += 1,
            Refusal::OutOfRange => self.counts.out_of_range += 1,
        }
        let cwnd = self.hold.window.bytes(self.hold.pipe());
        let flow = FlowInfo { initial_cwnd: cwnd, initial_ssthresh: cwnd, ..self.flow };
        let cubic = Cubic::new(&flow, &Params::defaults(cubic::SPEC.params));
        self.phase = Phase::Fallback(Box::new(cubic));
    }

    fn on_timeout(&mut self, now: Time) {
        self.due = None;
        if !self.spec.start.guards_timeouts() {
            if matches!(self.phase, Phase::SlowStart { .. }) {
                self.take_over();
            }
            return;
        }
        self.hold.after_timeout();
        self.phase = Phase::SlowStart { first: false };
        // What is sent now is no decision's doing.
        let state = self.state();
        if let Some(ledger) = &mut self.ledger {
            ledger.begin(now, None, self.arrived.sent(), state);
        }
    }
}

impl Controller for Pilot {
    fn on_ack(&mut self, ack: &Ack) {
        if let Phase::Fallback(cubic) = &mut self.phase {
            return cubic.on_ack(ack);
        }
        self.latest = *ack;
        self.hold.srtt_s = ack.srtt.as_secs_f64();
        self.rtt_min.on_ack(ack);
        self.arrived.on_ack(ack);
        if let Some(ledger) = &mut self.ledger {
            ledger.on_ack(ack);
        }
        self.start(ack);
        if self.due.is_some() || !self.clock.ends(ack) {
            return;
        }
        let decides = matches!(self.phase, Phase::Mind);
        if decides && self.map.paces() {
            self.hold.pace();
        }
        let arrived = self.end_slot(ack.now);
        self.clock.restart(ack, self.rtt_min.get());
        if decides {
            self.due = Some(ack.now);
            self.tell(arrived, true);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if let Phase::Fallback(cubic) = &mut self.phase {
            return cubic.on_loss(loss);
        }
        self.arrived.on_loss(loss);
        if let Some(ledger) = &mut self.ledger {
            ledger.on_loss(loss);
        }
        if loss.kind == LossKind::Timeout {
            return self.on_timeout(loss.now);
        }
        if self.spec.start.loss_guard {
            self.hold.guard(loss);
        }
        if loss.kind == LossKind::Gap && matches!(self.phase, Phase::SlowStart { .. }) {
            self.take_over();
        }
    }

    fn on_timer(&mut self, now: Time) {
        if self.due.take().is_some() {
            self.decide(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.due
    }

    fn control(&self) -> Control {
        match &self.phase {
            Phase::Fallback(cubic) => cubic.control(),
            phase => self.hold.control(matches!(phase, Phase::SlowStart { .. })),
        }
    }

    fn on_end(&mut self, now: Time) {
        if self.ended || now < self.flow.start {
            return;
        }
        self.ended = true;
        if !matches!(self.phase, Phase::Fallback(_)) && self.due.is_none() {
            let arrived = self.end_slot(now);
            self.tell(arrived, false);
        }
        self.mind.leave();
    }

    /// Decisions made, and why the flow fell back, if it did.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        let Counts { decisions, not_finite, out_of_range } = self.counts;
        vec![
            ("decisions", decisions as f64),
            ("fallbacks", (not_finite + out_of_range) as f64),
            ("not_finite", not_finite as f64),
            ("out_of_range", out_of_range as f64),
        ]
    }
}

#[cfg(test)]
mod tests;
