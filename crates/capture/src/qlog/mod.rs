//! qlog: what a sender does and decides, for qvis.
//!
//! Packets are seen by a tap, decisions by a wrapper around each controller. Packets are numbered as they leave, each
//! transmission anew, as in QUIC.
use self::board::Board;
use self::records::{Event, Head, Metrics, PacketLost, PacketReceived, PacketSent, StateUpdated};
use crate::failure::Output;
use crate::flows::Flow;
use crate::positions::Positions;
use ackademy::control::{Ack, Control, Coupled, FlowInfo, Loss, LossKind, SubflowId};
use ackademy::sim::tap::{Point, Tap};
use ackademy::transport::packet::{Kind, Packet};
use ackademy::units::{Bytes, Rate, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod board;
mod numbered;
mod records;

pub use numbered::{Numbered, Sender};

/// Writes what the senders of a simulation do.
#[derive(Clone)]
pub struct Qlog(Arc<Mutex<Log>>);

struct Log {
    out: Output,
    flows: Vec<Trace>,
    /// Flows by what governs them, and what it calls them.
    governed: BTreeMap<(u32, SubflowId), usize>,
    /// Controllers wrapped.
    governors: u32,
}

/// What is known of a flow.
struct Trace {
    flow: Flow,
    positions: Positions,
    board: Board,
    acks: u64,
    metrics: Metrics,
    state: &'static str,
    /// Whether its events name it.
    is_named: bool,
}

impl Qlog {
    /// Writes to `out`.
    pub fn new(out: Output) -> Self {
        let governed = BTreeMap::new();
        let log = Log { out, flows: Vec::new(), governed, governors: 0 };
        Self(Arc::new(Mutex::new(log)))
    }

    /// A controller whose decisions are written. To be called in the order in which the simulation builds them.
    pub fn wrap(&self, inner: Box<dyn Coupled>) -> Box<dyn Coupled> {
        let mut log = self.lock();
        let governor = log.governors;
        log.governors += 1;
        drop(log);
        Box::new(Logged { inner, governor, log: self.clone() })
    }

    /// Begins a file about these flows of a simulation; `about` says what it is.
    pub fn begin(&self, about: &str, flows: Vec<Flow>) {
        let log = &mut *self.lock();
        let logged = flows.iter().filter(|flow| !flow.plan.is_datagrams);
        let is_named = logged.clone().nth(1).is_some();
        let only = logged.clone().next().filter(|_| !is_named).map(|flow| &*flow.id.name);
        log.out.write(|out| records::write(out, &Head::new(about, "TCP", only)));
        let ids = flows.iter().enumerate();
        log.governed = ids.map(|(index, flow)| ((flow.id.governor, flow.id.id), index)).collect();
        log.flows = flows.into_iter().map(|flow| Trace::new(flow, is_named)).collect();
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Qlog {
    fn packet(&mut self, at: Time, point: Point, packet: &Packet) {
        match (packet.kind, point) {
            (Kind::Data, Point::Sent) => self.lock().sent(at, packet),
            (Kind::Ack, Point::Received) => self.lock().received(at, packet),
            _ => {}
        }
    }

    fn finished(&mut self, _at: Time) {
        self.lock().out.flush();
    }
}

impl Log {
    fn write<D: records::Data>(&mut self, at: Time, flow: usize, data: D) {
        let group = self.flows[flow].group();
        self.out.write(|out| records::write(out, &Event::new(at, group, data)));
    }

    fn sent(&mut self, at: Time, packet: &Packet) {
        let index = packet.flow as usize;
        let trace = &mut self.flows[index];
        let payload = trace.flow.payload_of(packet.size);
        trace.positions.sent(packet.seq, payload);
        trace.board.sent(at, packet);
        let offset = if trace.flow.is_subflow() {
            packet.mapping().start
        } else {
            trace.positions.of(packet.seq)
        };
        let number = u64::from(packet.transmission);
        self.write(at, index, PacketSent::new(number, packet.size, (offset, payload)));
    }

    fn received(&mut self, at: Time, packet: &Packet) {
        let index = packet.flow as usize;
        let trace = &mut self.flows[index];
        let (number, ranges) = (trace.acks, trace.board.acked(packet));
        trace.acks += 1;
        self.write(at, index, PacketReceived::new(number, packet.size, &ranges));
    }

    fn flow_of(&self, governor: u32, id: SubflowId) -> Option<usize> {
        self.governed.get(&(governor, id)).copied()
    }

    fn update(&mut self, at: Time, flow: usize, metrics: Metrics) {
        if let Some(news) = metrics.news(&mut self.flows[flow].metrics) {
            self.write(at, flow, news);
        }
    }

    fn lost(&mut self, flow: usize, loss: &Loss) {
        let by_time = self.flows[flow].flow.plan.sender.rack;
        for number in self.flows[flow].board.lost(loss) {
            self.write(loss.now, flow, PacketLost::new(number, loss.kind, by_time));
        }
    }

    fn enter(&mut self, at: Time, flow: usize, state: Option<&'static str>) {
        if let Some(new) = state.filter(|&new| new != self.flows[flow].state) {
            self.flows[flow].state = new;
            self.write(at, flow, StateUpdated { new });
        }
    }
}

impl Trace {
    fn new(flow: Flow, is_named: bool) -> Self {
        Self {
            positions: Positions::new(flow.payload()),
            board: Board::new(flow.plan.sender.recovery),
            flow,
            acks: 0,
            metrics: Metrics::default(),
            state: "",
            is_named,
        }
    }

    fn group(&self) -> Option<&str> {
        self.is_named.then_some(&*self.flow.id.name)
    }
}

/// The state of a window-based sender; a controller that sets a rate, and no threshold, has others, which qlog does not
/// know.
fn state_of(control: &Control, recovers: bool) -> Option<&'static str> {
    let has_threshold = control.ssthresh < Bytes(u64::MAX);
    if recovers {
        Some("recovery")
    } else if !has_threshold && control.pacing_rate != Rate::UNLIMITED {
        None
    } else if control.cwnd < control.ssthresh {
        Some("slow_start")
    } else {
        Some("congestion_avoidance")
    }
}

/// Writes what a controller is told and answers.
struct Logged {
    inner: Box<dyn Coupled>,
    governor: u32,
    log: Qlog,
}

impl Coupled for Logged {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
    }

    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
    }

    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.inner.on_ack(id, ack);
        let control = self.inner.control(id);
        let mut log = self.log.lock();
        if let Some(flow) = log.flow_of(self.governor, id) {
            log.update(ack.now, flow, Metrics::of_control(&control).with_ack(ack));
            log.enter(ack.now, flow, state_of(&control, ack.recovering != 0));
        }
    }

    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.inner.on_loss(id, loss);
        let control = self.inner.control(id);
        let mut log = self.log.lock();
        if let Some(flow) = log.flow_of(self.governor, id) {
            log.lost(flow, loss);
            log.update(loss.now, flow, Metrics::of_control(&control));
            let recovers = !matches!(loss.kind, LossKind::Idle | LossKind::Spurious);
            log.enter(loss.now, flow, state_of(&control, recovers));
        }
    }

    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }

    fn on_timer(&mut self, id: SubflowId, now: Time) {
        self.inner.on_timer(id, now);
        let control = self.inner.control(id);
        let mut log = self.log.lock();
        if let Some(flow) = log.flow_of(self.governor, id) {
            log.update(now, flow, Metrics::of_control(&control));
        }
    }

    fn inner(&self) -> Option<&dyn Coupled> {
        Some(self.inner.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(self.inner.as_mut())
    }
}
