//! DRL-CC: Xu, Tang, Yin, Wang and Xue, "Experience-Driven Congestion Control: When Multi-Path TCP Meets
//! Deep Reinforcement Learning", IEEE JSAC 37(6), 2019. One agent governs every connection of a host:
//! once per epoch it changes the windows of one connection's subflows, by what it measured of all flows.
//!
//! What the paper leaves open is proposed in `docs/reference/controllers/drl_cc.md`.
use super::{Scope, Spec};
use crate::control::{
    Ack, CWND_MAX, Control, Controller, Coupled, FlowInfo, Loss, LossKind, SubflowId,
};
use crate::controllers;
use crate::decision::{AgentState, InvalidAction};
use crate::params::{Param, ParamKind, Params};
use crate::policy::FILES;
use crate::policy::joint::{
    Between, JointAgent, JointObservation, JointPolicy, JointSpec, SUBFLOW_NUMBERS, WINDOW_MIN,
};
use crate::units::{Bytes, Span, Time};
use ackademy_prefetch::prefetch;
use std::sync::Arc;

/// Entry of the table of coupled controllers.
pub const SPEC: Spec = Spec {
    name: "drl_cc",
    about: "One agent for all connections of a host: an LSTM over their flows, an actor per connection",
    source: "Xu et al., IEEE JSAC 37(6), 2019, section III; what it leaves open is proposed",
    params: &[
        Param {
            name: "policy",
            about: "the trained agent's folder; no weights were published",
            kind: ParamKind::Files {
                holds: "a folder with a policy of a host, such as policies/drl_cc/all",
                names: FILES,
                read: |files| Ok(Arc::new(JointPolicy::read(files)?)),
            },
        },
        Param {
            name: "tcp",
            about: "what governs connections of one subflow, which the agent only observes",
            kind: ParamKind::Choice(TCP),
        },
    ],
    scope: Scope::Host,
    single: "new_reno",
    build: |params| {
        let policy: Arc<JointPolicy> = params.file("policy");
        let tcp = params.choice("tcp");
        Box::new(DrlCc::new(policy.spec(), Box::new(policy.agent()), tcp))
    },
};

/// Controllers of connections of one subflow, by name.
const TCP: &[&str] = &["new_reno", "cubic"];
/// An action of 1 changes the window by this share of it (proposed) ...
const CHANGE: f64 = 0.25;
/// ... and by at least so many packets (proposed).
const CHANGE_MIN: f64 = 4.0;

/// Governs every connection of a host.
pub struct DrlCc {
    spec: JointSpec,
    tcp: &'static str,
    agent: Box<dyn JointAgent>,
    subflows: Vec<Option<Subflow>>,
    /// By number.
    connections: Vec<Connection>,
    epoch: Option<Epoch>,
    /// The subflow whose acknowledgement ended the epoch, and when, until the decision is made.
    asked: Option<(SubflowId, Time)>,
    /// Number of the connection that the decision is about.
    target: u32,
    observation: Vec<f32>,
    decisions: u64,
}

/// What is measured now.
#[derive(Clone, Copy)]
struct Epoch {
    start: Time,
    /// Earliest end.
    end: Time,
}

struct Connection {
    number: u32,
    /// In the order in which they joined.
    subflows: Vec<SubflowId>,
    decisions: u64,
    /// Why a fallback governs it, if one does.
    fell_back: Option<InvalidAction>,
}

struct Subflow {
    flow: FlowInfo,
    connection: u32,
    window: Window,
    /// Governs it instead of the agent.
    plain: Option<Box<dyn Controller>>,
    measured: Measured,
    ended: bool,
}

/// Windows in packets.
#[derive(Clone, Copy)]
struct Window {
    cwnd: f64,
    /// The agent's; none in the first slow start. `cwnd` is below while a slow start leads back to it.
    set: Option<f64>,
}

/// What happened to a subflow in the epoch.
#[derive(Clone, Copy, Default)]
struct Measured {
    acked: u64,
    lost: u64,
    inflight: u64,
    inflight_before: u64,
    rtt_sum: f64,
    deviation_sum: f64,
    samples: u32,
    srtt: Span,
    /// Of the latest epoch with a sample, s.
    rtt: f64,
    deviation: f64,
}

impl DrlCc {
    /// Governs by the decisions of `agent`; connections of one subflow by the plain controller `tcp`.
    ///
    /// # Panics
    ///
    /// If there is no plain controller of that name.
    pub fn new(spec: &JointSpec, agent: Box<dyn JointAgent>, tcp: &str) -> Self {
        let tcp = controllers::find(tcp).expect("a controller of the table").name;
        Self {
            spec: *spec,
            tcp,
            agent,
            subflows: Vec::new(),
            connections: Vec::new(),
            epoch: None,
            asked: None,
            target: u32::MAX,
            observation: Vec::new(),
            decisions: 0,
        }
    }

    fn get(&self, id: SubflowId) -> &Subflow {
        self.subflows[id.0 as usize].as_ref().expect("the subflow was added and not removed")
    }

    fn get_mut(&mut self, id: SubflowId) -> &mut Subflow {
        self.subflows[id.0 as usize].as_mut().expect("the subflow was added and not removed")
    }

    fn connection(&self, number: u32) -> Option<&Connection> {
        let index = self.connections.binary_search_by_key(&number, |own| own.number).ok()?;
        self.connections.get(index)
    }

    fn is_active(&self, id: SubflowId, now: Time) -> bool {
        let subflow = self.subflows[id.0 as usize].as_ref();
        subflow.is_some_and(|subflow| !subflow.ended && subflow.flow.start <= now)
    }

    /// Whether the agent may change the windows of a connection.
    fn is_governed(&self, connection: &Connection, now: Time) -> bool {
        let is_active = |&id: &SubflowId| self.is_active(id, now) && self.get(id).plain.is_none();
        connection.fell_back.is_none() && connection.subflows.iter().any(is_active)
    }

    /// The connection whose turn it is: the next one by number that the agent governs.
    fn next_target(&self, now: Time) -> Option<u32> {
        let governed = |own: &&Connection| self.is_governed(own, now);
        let after = self.connections.iter().filter(|own| own.number > self.target).find(governed);
        let next = after.or_else(|| self.connections.iter().find(governed));
        next.map(|own| own.number)
    }

    /// Ends the epoch if its time is over, and asks the agent.
    fn end_epoch(&mut self, id: SubflowId, now: Time) {
        let Some(epoch) = self.epoch else {
            let connection = self.get(id).connection;
            self.begin_epoch(now, connection);
            self.restart(now);
            return;
        };
        if self.asked.is_some() || now < epoch.end {
            return;
        }
        let Some(target) = self.next_target(now) else { return };
        self.target = target;
        let duration_s = now.since(epoch.start).as_secs_f64();
        self.observe(now, duration_s);
        self.asked = Some((id, now));
        self.agent.observe(&JointObservation {
            numbers: &self.observation,
            decision: self.decisions,
            time_s: now.as_secs_f64(),
            duration_s,
        });
        self.restart(now);
    }

    /// By default one round trip of the slowest subflow of a connection.
    fn begin_epoch(&mut self, now: Time, connection: u32) {
        let subflows = self.connection(connection).map_or(&[][..], |own| &own.subflows);
        let active = subflows.iter().filter(|&&id| self.is_active(id, now));
        let slowest = active.map(|&id| self.get(id).measured.srtt).max().unwrap_or_default();
        let usual = Span::from_secs_f64(self.spec.rtt_ms / 1e3);
        let length = if slowest == Span::ZERO { usual } else { slowest };
        self.epoch = Some(Epoch { start: now, end: now + self.spec.epoch(length) });
    }

    fn restart(&mut self, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = now;
        }
        self.subflows.iter_mut().flatten().for_each(|subflow| subflow.measured.restart());
    }

    /// Writes the target's numbers and those of every active flow.
    fn observe(&mut self, now: Time, duration_s: f64) {
        let mut numbers = std::mem::take(&mut self.observation);
        let width = self.spec.target_width();
        numbers.clear();
        numbers.resize(width, 0.0);
        for connection in &self.connections {
            if !connection.subflows.iter().any(|&id| self.is_active(id, now)) {
                continue;
            }
            let begin = numbers.len();
            numbers.resize(begin + self.spec.row_width(), 0.0);
            let row = numbers[begin..begin + width].chunks_exact_mut(SUBFLOW_NUMBERS);
            for (out, &id) in row.zip(&connection.subflows) {
                if self.is_active(id, now) {
                    out.copy_from_slice(&self.get(id).numbers(&self.spec, duration_s));
                }
            }
            numbers[begin + width] = f32::from(u8::from(connection.subflows.len() == 1));
            if connection.number == self.target {
                numbers.copy_within(begin..begin + width, 0);
            }
        }
        self.observation = numbers;
    }

    fn decide(&mut self, now: Time) {
        let finite = self.observation.iter().all(|value| value.is_finite());
        let action =
            if finite { self.agent.act(&self.observation) } else { Err(InvalidAction::NotFinite) };
        let target = self.target;
        let found = self.connections.binary_search_by_key(&target, |own| own.number);
        if let Ok(index) = found {
            let used = |action: &[f32]| valid(&action[..self.spec.paths.min(action.len())]);
            let checked = action.and_then(|action| used(&action).map(|()| action));
            let connection = &mut self.connections[index];
            self.decisions += 1;
            let subflows = connection.subflows.clone();
            match checked {
                Ok(action) => {
                    connection.decisions += 1;
                    for (&id, change) in subflows.iter().zip(action) {
                        self.change(id, f64::from(change));
                    }
                }
                Err(reason) => {
                    connection.fell_back = Some(reason);
                    for &id in &subflows {
                        self.fall_back(id);
                    }
                }
            }
        }
        self.begin_epoch(now, target);
    }

    fn change(&mut self, id: SubflowId, change: f64) {
        let max = self.spec.window_max();
        if let Some(Some(subflow)) = self.subflows.get_mut(id.0 as usize)
            && subflow.plain.is_none()
        {
            subflow.window.change(change, max);
        }
    }

    /// CUBIC takes over, starting from the present window.
    fn fall_back(&mut self, id: SubflowId) {
        if let Some(Some(subflow)) = self.subflows.get_mut(id.0 as usize)
            && subflow.plain.is_none()
        {
            let cwnd = subflow.cwnd();
            let flow = FlowInfo { initial_cwnd: cwnd, initial_ssthresh: cwnd, ..subflow.flow };
            subflow.plain = Some(controllers::fallback(&flow));
        }
    }
}

/// Whether values are an action.
fn valid(values: &[f32]) -> Result<(), InvalidAction> {
    if values.iter().any(|value| !value.is_finite()) {
        return Err(InvalidAction::NotFinite);
    }
    if values.iter().any(|value| value.abs() > 1.0) {
        return Err(InvalidAction::OutOfRange);
    }
    Ok(())
}

impl Window {
    /// `change` is in [-1, 1].
    fn change(&mut self, change: f64, max: f64) {
        let Some(before) = self.set else { return };
        let step = change * (CHANGE * before).max(CHANGE_MIN);
        let set = (before + step).clamp(WINDOW_MIN, max);
        self.set = Some(set);
        self.cwnd = if self.cwnd < before { self.cwnd.min(set) } else { set };
    }

    /// Slow start, the first one or the one back to the agent's window; then what `spec` says.
    fn grow(&mut self, acked: f64, spec: &JointSpec) {
        match self.set {
            None => self.cwnd += acked,
            Some(set) if self.cwnd < set => self.cwnd = (self.cwnd + acked).min(set),
            Some(set) if spec.between() == Between::NewReno => {
                let grown = (set + acked / set).min(spec.window_max().max(set));
                (self.set, self.cwnd) = (Some(grown), grown);
            }
            Some(_) => {}
        }
    }

    fn on_loss(&mut self, kind: LossKind, initial: f64, between: Between) {
        match kind {
            LossKind::Gap if between == Between::Constant => _ = self.set.get_or_insert(self.cwnd),
            LossKind::Gap => {
                let halved = (self.cwnd / 2.0).max(WINDOW_MIN);
                (self.set, self.cwnd) = (Some(halved), halved);
            }
            LossKind::Timeout | LossKind::TimeoutAgain => {
                self.set.get_or_insert(self.cwnd.max(WINDOW_MIN));
                self.cwnd = 1.0;
            }
            LossKind::Idle => self.cwnd = self.cwnd.min(initial),
            LossKind::Spurious => self.cwnd = self.set.unwrap_or(self.cwnd),
            LossKind::More | LossKind::Deflate => {}
        }
    }
}

impl Measured {
    fn on_ack(&mut self, ack: &Ack) {
        self.acked = self.acked.saturating_add(ack.acked.0);
        self.inflight = ack.inflight.0;
        self.srtt = ack.srtt;
        if ack.rtt > Span::ZERO {
            let (rtt, srtt) = (ack.rtt.as_secs_f64(), ack.srtt.as_secs_f64());
            self.rtt_sum += rtt;
            self.deviation_sum += (rtt - srtt).abs();
            self.samples += 1;
        }
    }

    fn restart(&mut self) {
        let (rtt, deviation) = self.round_trip();
        let inflight = self.inflight;
        let kept = Self { inflight, inflight_before: inflight, srtt: self.srtt, ..Self::default() };
        *self = Self { rtt, deviation, ..kept };
    }

    /// Mean and mean deviation from the smoothed one, s; without a sample those of the epoch before.
    fn round_trip(&self) -> (f64, f64) {
        if self.samples == 0 {
            return (self.rtt, self.deviation);
        }
        let samples = f64::from(self.samples);
        (self.rtt_sum / samples, self.deviation_sum / samples)
    }

    /// What left and what arrived, bytes. What left arrived, was lost, or is in flight.
    fn sent_and_acked(&self) -> (u64, u64) {
        let gone = self.acked.saturating_add(self.lost).saturating_add(self.inflight);
        (gone.saturating_sub(self.inflight_before), self.acked)
    }
}

impl Subflow {
    fn mss(&self) -> f64 {
        self.flow.mss.0.max(1) as f64
    }

    fn cwnd(&self) -> Bytes {
        let cwnd = (self.window.cwnd * self.mss()) as u64;
        Bytes(cwnd).max(self.flow.mss).min(CWND_MAX)
    }

    fn initial_window(&self) -> Window {
        Window { cwnd: self.flow.initial_cwnd.0 as f64 / self.mss(), set: None }
    }

    fn on_ack(&mut self, ack: &Ack, spec: &JointSpec) {
        if ack.recovering == 0 && ack.cwnd_limited == 1 {
            self.window.grow(ack.acked.0 as f64 / self.mss(), spec);
            if self.window.set.is_none() && self.cwnd() >= self.flow.initial_ssthresh {
                self.window.set = Some(self.window.cwnd);
            }
        }
    }

    /// Sending rate, goodput, round trip, its mean deviation and window, scaled.
    fn numbers(&self, spec: &JointSpec, duration_s: f64) -> [f32; SUBFLOW_NUMBERS] {
        let (sent, acked) = self.measured.sent_and_acked();
        let rate = |bytes: u64| {
            if duration_s > 0.0 { bytes as f64 * 8e-6 / duration_s / spec.rate_mbps } else { 0.0 }
        };
        let (rtt, deviation) = self.measured.round_trip();
        let span = 2.0 * spec.rtt_ms / 1e3;
        let cwnd = match &self.plain {
            Some(plain) => plain.control().cwnd.0 as f64 / self.mss(),
            None => self.window.cwnd,
        };
        let window = cwnd / (1.5 * spec.bdp_packets);
        [rate(sent), rate(acked), rtt / span, deviation / span, window].map(|value| value as f32)
    }
}

impl Coupled for DrlCc {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        let index = id.0 as usize;
        if self.subflows.len() <= index {
            self.subflows.resize_with(index + 1, || None);
        }
        let mut subflow = Subflow {
            flow: *flow,
            connection: u32::MAX,
            window: Window { cwnd: 0.0, set: None },
            plain: Some(plain(self.tcp, flow)),
            measured: Measured::default(),
            ended: false,
        };
        subflow.window = subflow.initial_window();
        self.subflows[index] = Some(subflow);
    }

    /// A connection's second subflow makes it one that the agent governs; subflows beyond the policy's number
    /// get CUBIC.
    fn subflow_of(&mut self, id: SubflowId, connection: u32) {
        let found = self.connections.binary_search_by_key(&connection, |own| own.number);
        let index = found.unwrap_or_else(|index| {
            let subflows = Vec::new();
            let new = Connection { number: connection, subflows, decisions: 0, fell_back: None };
            self.connections.insert(index, new);
            index
        });
        let own = &mut self.connections[index];
        own.subflows.push(id);
        let (count, fell_back) = (own.subflows.len(), own.fell_back.is_some());
        let first = own.subflows[0];
        self.get_mut(id).connection = connection;
        if fell_back || count > self.spec.paths {
            let flow = self.get(id).flow;
            self.get_mut(id).plain = Some(controllers::fallback(&flow));
        } else if count > 1 {
            self.get_mut(id).plain = None;
            if count == 2 && self.subflows[first.0 as usize].is_some() {
                self.get_mut(first).hand_over();
            }
        }
    }

    fn subflow_removed(&mut self, id: SubflowId) {
        let Some(subflow) = self.subflows[id.0 as usize].take() else { return };
        if self.asked.is_some_and(|(asked, _)| asked == id) {
            self.asked = None;
        }
        let number = subflow.connection;
        let gone = |own: &SubflowId| self.subflows[own.0 as usize].is_none();
        if self.connection(number).is_some_and(|own| own.subflows.iter().all(gone)) {
            self.connections.retain(|own| own.number != number);
        }
    }

    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let spec = self.spec;
        let subflow = self.get_mut(id);
        subflow.measured.on_ack(ack);
        if let Some(plain) = &mut subflow.plain {
            return plain.on_ack(ack);
        }
        subflow.on_ack(ack, &spec);
        self.end_epoch(id, ack.now);
    }

    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        let between = self.spec.between();
        let subflow = self.get_mut(id);
        let lost = &mut subflow.measured.lost;
        *lost = lost.saturating_add(loss.lost.0);
        let initial = subflow.initial_window().cwnd;
        match &mut subflow.plain {
            Some(plain) => plain.on_loss(loss),
            None => subflow.window.on_loss(loss.kind, initial, between),
        }
    }

    fn control(&self, id: SubflowId) -> Control {
        let subflow = self.get(id);
        match &subflow.plain {
            Some(plain) => plain.control(),
            None => Control::window(subflow.cwnd()),
        }
    }

    fn on_timer(&mut self, id: SubflowId, now: Time) {
        if let Some((asked, due)) = self.asked
            && asked == id
            && due <= now
        {
            self.asked = None;
            return self.decide(now);
        }
        if let Some(plain) = &mut self.get_mut(id).plain {
            plain.on_timer(now);
        }
    }

    fn next_timer(&self, id: SubflowId) -> Option<Time> {
        let asked = self.asked.filter(|(asked, _)| *asked == id).map(|(_, due)| due);
        asked.or_else(|| self.get(id).plain.as_deref().and_then(Controller::next_timer))
    }

    fn on_end(&mut self, id: SubflowId, now: Time) {
        let subflow = self.get_mut(id);
        if now >= subflow.flow.start {
            subflow.ended = true;
        }
    }

    fn agent_state(&mut self, _: SubflowId) -> Option<&mut AgentState> {
        self.agent.state()
    }

    fn fell_back(&self, id: SubflowId) -> bool {
        let number = self.get(id).connection;
        self.connection(number).is_some_and(|own| own.fell_back.is_some())
    }

    fn fetch(&self, id: SubflowId) {
        prefetch(&self.subflows[id.0 as usize]);
    }

    fn paths(&self) -> Option<usize> {
        Some(self.spec.paths)
    }

    /// Of a connection's first subflow the decisions and fallbacks of the connection; none of the others.
    fn counters(&self, id: SubflowId) -> Vec<(&'static str, f64)> {
        let own = self.connection(self.get(id).connection);
        let own = own.filter(|own| own.subflows.first() == Some(&id));
        let reason = own.and_then(|own| own.fell_back);
        let count = |counted: bool| f64::from(u8::from(counted));
        vec![
            ("decisions", own.map_or(0.0, |own| own.decisions as f64)),
            ("fallbacks", count(reason.is_some())),
            ("not_finite", count(reason == Some(InvalidAction::NotFinite))),
            ("out_of_range", count(reason == Some(InvalidAction::OutOfRange))),
        ]
    }
}

impl Subflow {
    /// From the plain controller of a connection with one subflow to the agent.
    fn hand_over(&mut self) {
        let Some(plain) = self.plain.take() else { return };
        let Control { cwnd, ssthresh, .. } = plain.control();
        let cwnd = cwnd.0 as f64 / self.mss();
        let in_slow_start = Bytes((cwnd * self.mss()) as u64) < ssthresh;
        self.window = Window { cwnd, set: (!in_slow_start).then_some(cwnd) };
    }
}

/// The plain controller of this name, with default settings.
fn plain(name: &str, flow: &FlowInfo) -> Box<dyn Controller> {
    let spec = controllers::find(name).expect("a controller of the table");
    (spec.build)(flow, &Params::defaults(spec.params))
}

#[cfg(test)]
#[path = "tests/drl_cc.rs"]
mod tests;
