//! Connections of several subflows: what happens at both ends of their data level.
use super::ends::governor_of;
use super::{Connection, Event, Flow, Hosts, Sim};
use crate::control::{Ack, Control, Coupled, FlowInfo, Loss, SubflowId};
use crate::decision::AgentState;
use crate::sim::plan::MptcpPlan;
use crate::transport::config::SenderConfig;
use crate::transport::multipath::{
    DataConfig, DataSender, Mapping, Offer, Reassembly, SUBFLOWS_MAX,
};
use crate::transport::packet::Packet;
use crate::transport::receiver::Arrival;
use crate::transport::schedulers::Candidate;
use crate::transport::sender::{Governor, Sender};
use crate::units::{Bytes, Span, Time};
use std::sync::Arc;

/// The data level of a connection, at both ends, and what its subflows open with.
pub(super) struct Multipath {
    pub(super) sender: DataSender,
    pub(super) receiver: Reassembly,
    pub(super) scheduler: &'static str,
    /// When the connection begins.
    pub(super) start: Time,
    config: Arc<SenderConfig>,
    receive_buffer: u64,
    subflows: Vec<Subflow>,
    /// What a subflow is offered while it acts, and what the application has handed over meanwhile.
    offer: Option<Offer>,
    unsent: u64,
}

/// A subflow over the run.
struct Subflow {
    opening: Opening,
    opens: Time,
    closes: Time,
    /// The counters of its controller when it closed.
    counters: Vec<(&'static str, f64)>,
    /// What its agent outside last read, when it closed.
    agent: Option<AgentState>,
}

/// What a subflow opens with.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    pub(super) info: FlowInfo,
    /// How long the handshake takes, if there is one.
    pub(super) handshake: Option<Span>,
    /// What else data wait for, if there is a handshake: of a subflow that joins a connection (RFC 8684
    /// section 3.2), until the peer has confirmed it, and before that until there is a connection to join.
    pub(super) joining: Span,
    /// The number of its connection.
    pub(super) connection: u32,
}

impl Opening {
    /// The subflow joins its governor; returns its sender.
    pub(super) fn join(&self, governor: &mut Governor, config: &Arc<SenderConfig>) -> Sender {
        governor.coupled.subflow_added(governor.id, &self.info);
        governor.coupled.subflow_of(governor.id, self.connection);
        let mut sender = Sender::sharing(config, governor);
        if let Some(rtt) = self.handshake {
            sender.wait_for_handshake(self.info.start + self.joining, rtt);
        }
        sender
    }
}

/// Governs subflows before they open.
struct Nothing;

impl Coupled for Nothing {
    fn subflow_added(&mut self, _: SubflowId, _: &FlowInfo) {}
    fn subflow_removed(&mut self, _: SubflowId) {}
    fn on_ack(&mut self, _: SubflowId, _: &Ack) {}
    fn on_loss(&mut self, _: SubflowId, _: &Loss) {}
    fn control(&self, _: SubflowId) -> Control {
        Control::window(Bytes(0))
    }
}

/// The sender of a subflow that is not open.
pub(super) fn unopened(config: &Arc<SenderConfig>) -> Sender {
    Sender::sharing(config, &Governor { coupled: &mut Nothing, id: SubflowId(0) })
}

impl MptcpPlan {
    /// When a subflow of a connection that begins at `start` opens and closes; `Time::NEVER` for not at all.
    pub(super) fn times(&self, index: usize, start: Time) -> (Time, Time) {
        let (opens, closes) = self.times[index];
        let opens = opens.max(start);
        if opens < closes { (opens, closes) } else { (Time::NEVER, Time::NEVER) }
    }
}

impl Multipath {
    /// Nothing is sent; subflows that open with the connection, at `start`, are open.
    pub(super) fn new(
        plan: &MptcpPlan,
        config: &Arc<SenderConfig>,
        start: Time,
        openings: Vec<Opening>,
    ) -> Self {
        let count = openings.len();
        let data = DataConfig {
            receive_buffer: plan.receive_buffer.0,
            send_buffer: plan.send_buffer.0,
            opportunistic: plan.opportunistic,
            payload: config.packet.0 - config.header.0,
        };
        let mut sender = DataSender::new(data, plan.scheduler, count);
        let subflow = |(index, opening)| {
            let (opens, closes) = plan.times(index, start);
            if opens == start {
                sender.open(index);
            }
            Subflow { opening, opens, closes, counters: Vec::new(), agent: None }
        };
        Self {
            subflows: openings.into_iter().enumerate().map(subflow).collect(),
            sender,
            receiver: Reassembly::new(count),
            config: Arc::clone(config),
            scheduler: plan.scheduler.name,
            start,
            receive_buffer: plan.receive_buffer.0,
            offer: None,
            unsent: 0,
        }
    }

    /// When a subflow opens or closes, if it is still to.
    pub(super) fn next_change(&self, index: usize) -> Time {
        let Subflow { opens, closes, .. } = self.subflows[index];
        if self.sender.is_open(index) {
            closes
        } else if self.sender.is_closed(index) {
            Time::NEVER
        } else {
            opens
        }
    }

    /// Whether everything handed over is received, on its way, or to be sent, and nothing was received
    /// beyond the window.
    pub(super) fn conserves_data(&self) -> bool {
        let Self { sender, receiver, .. } = self;
        let in_order = sender.una() <= receiver.next() && receiver.next() <= sender.next();
        in_order && receiver.held_max() <= self.receive_buffer && sender.loses_nothing(receiver)
    }
}

impl Connection {
    /// The number of a flow among this connection's subflows.
    fn subflow(&self, flow: u32) -> usize {
        (flow - self.first_flow) as usize
    }

    /// A segment of a subflow arrived: its data is put in order; an acknowledgement says how far.
    #[inline(never)]
    pub(super) fn hand_up(&mut self, packet: &Packet, arrival: &Arrival, ack: &mut Packet) {
        let subflow = self.subflow(packet.flow);
        let Some(data) = &mut self.data else { return };
        if !arrival.duplicate {
            let (seq, mapping) = (packet.seq, packet.mapping());
            data.receiver.on_segment(subflow, seq, mapping, arrival.delivered);
        }
        ack.transmission = data.receiver.data_ack();
    }

    /// The data level learns what an acknowledgement of a subflow says; whether the subflow is open, so that
    /// `sender` takes it, too.
    #[inline(never)]
    pub(super) fn is_acknowledged(&mut self, ack: &Packet, sender: &Sender) -> bool {
        let subflow = self.subflow(ack.flow);
        let Some(data) = &mut self.data else { return false };
        data.sender.on_data_ack(ack.transmission);
        let is_open = data.sender.is_open(subflow);
        // It may make ns-2's sender send new data at once.
        if is_open && matches!(sender, Sender::Ns2(_)) {
            self.lend(ack.flow);
        }
        is_open
    }

    /// Whether a subflow with room may have been left without data. If none was, its own window stops each,
    /// and only one whose window has grown can send more.
    fn is_starved(&self) -> bool {
        self.data.as_ref().is_some_and(|data| data.sender.is_starved())
    }

    /// Lets a subflow see, in place of what the application has handed over, the data of its next segment.
    #[inline]
    pub(super) fn lend(&mut self, flow: u32) {
        let subflow = self.subflow(flow);
        let Some(data) = &mut self.data else { return };
        let supply = &mut self.app.supply;
        data.unsent = supply.unsent;
        data.offer = data.sender.offer(subflow, supply.unsent);
        supply.unsent = data.offer.map_or(0, |offer| offer.len);
        supply.receiver_full = data.unsent > 0 && data.sender.is_receiver_full();
    }

    /// Books what a subflow took of its offer, and returns it.
    #[inline]
    pub(super) fn book_taken(&mut self, flow: u32) -> Mapping {
        let left = self.app.supply.unsent;
        let Some(data) = &mut self.data else { return Mapping::default() };
        self.app.supply.unsent = data.unsent;
        match data.offer {
            Some(offer) if offer.len > left => self.book(flow, &offer, offer.len - left),
            _ => Mapping::default(),
        }
    }

    fn book(&mut self, flow: u32, offer: &Offer, taken: u64) -> Mapping {
        let subflow = self.subflow(flow);
        if let Some(data) = &mut self.data {
            data.sender.take(subflow, offer, taken);
        }
        if offer.is_new {
            self.app.supply.take(taken);
        }
        Mapping { start: offer.start, len: taken as u32 }
    }

    /// What the segment of a subflow carries that has just left: what was taken for it, or what it carried
    /// before.
    #[inline]
    pub(super) fn mapping_of(&mut self, flow: u32, seq: u64, taken: Mapping) -> Mapping {
        let subflow = self.subflow(flow);
        match &mut self.data {
            Some(data) if taken.len == 0 => {
                data.sender.on_sent(subflow, seq);
                data.sender.mapping(subflow, seq)
            }
            _ => taken,
        }
    }
}

impl Hosts {
    /// Whether a controller governs this flow: not of a subflow that is not open.
    pub(super) fn is_governed(&self, flow: &Flow) -> bool {
        let connection = &self.connections[flow.connection as usize];
        let Some(data) = &connection.data else { return true };
        let subflow = self.subflow_of(flow, connection);
        data.sender.is_open(subflow)
    }

    /// The counters of a flow's controller.
    pub(super) fn counters_of(&self, flow: &Flow) -> Vec<(&'static str, f64)> {
        if self.is_governed(flow) {
            return self.governors[flow.governor as usize].counters(flow.id);
        }
        let connection = &self.connections[flow.connection as usize];
        let data = connection.data.as_ref();
        let subflow = self.subflow_of(flow, connection);
        data.map_or_else(Vec::new, |data| data.subflows[subflow].counters.clone())
    }

    /// What the agent of a subflow last read before it closed.
    pub(super) fn last_agent_state(&mut self, flow: u32) -> Option<&mut AgentState> {
        let connection = &mut self.connections[self.flows[flow as usize].connection as usize];
        let subflow = connection.subflow(flow);
        connection.data.as_mut()?.subflows[subflow].agent.as_mut()
    }

    fn subflow_of(&self, flow: &Flow, connection: &Connection) -> usize {
        let first = self.flows[connection.first_flow as usize].id.0;
        (flow.id.0 - first) as usize
    }
}

impl Sim {
    /// An acknowledgement comes back to a subflow that is not open any more.
    #[inline(never)]
    pub(super) fn acknowledge_closed(&mut self, ack: &Packet) {
        let index = self.hosts.flows[ack.flow as usize].connection;
        if self.hosts.connections[index as usize].app.may_finish() {
            self.finish_transfer(index);
        }
        self.pump_subflows(index, ack.early);
    }

    /// The sender of a subflow has taken its acknowledgement.
    #[inline(never)]
    pub(super) fn acknowledge_subflow(&mut self, ack: &Packet) {
        let flow = &self.hosts.flows[ack.flow as usize];
        let index = flow.connection;
        let connection = &mut self.hosts.connections[index as usize];
        if matches!(flow.sender, Sender::Ns2(_)) {
            connection.book_taken(ack.flow);
        }
        let subflow = connection.subflow(ack.flow);
        if let Some(data) = &mut connection.data {
            data.sender.on_acknowledged(subflow, flow.sender.first_unacknowledged());
        }
        if connection.app.may_finish() {
            self.finish_transfer(index);
        }
        self.pump_subflow(ack.flow, ack.early);
    }

    /// Offers data to the subflows of a connection in the scheduler's order until none sends any more.
    #[inline(never)]
    pub(super) fn pump_subflows(&mut self, index: u32, early: u16) {
        let connection = &mut self.hosts.connections[index as usize];
        let (first, count) = (connection.first_flow, connection.flow_count as usize);
        let Some(data) = &mut connection.data else { return };
        data.sender.start_round();
        let is_open = |&subflow: &usize| data.sender.is_open(subflow);
        let asked = (0..count).filter(is_open).fold(0_u32, |asked, subflow| asked | 1 << subflow);
        let mut left = asked;
        while left != 0 {
            let subflow = self.choose(index, left);
            if !self.send_of_subflow(first + subflow as u32, early) {
                left &= !(1 << subflow);
            }
        }
        for subflow in (0..count).filter(|subflow| asked & 1 << subflow != 0) {
            self.set_wake(first + subflow as u32);
        }
    }

    /// A subflow, or all of its connection, send what they may: only it, if no other was left without data,
    /// for then its own window stops each of them.
    pub(super) fn pump_subflow(&mut self, index: u32, early: u16) {
        let connection = self.hosts.flows[index as usize].connection;
        if self.hosts.connections[connection as usize].is_starved() {
            return self.pump_subflows(connection, early);
        }
        while self.send_of_subflow(index, early) {}
        self.set_wake(index);
    }

    /// As [`send_packet`](Self::send_packet), of a subflow.
    fn send_of_subflow(&mut self, index: u32, early: u16) -> bool {
        self.send_packet::<true>(index, early)
    }

    /// The scheduler's choice among the subflows whose bits are set.
    fn choose(&self, index: u32, left: u32) -> usize {
        if left.is_power_of_two() {
            return left.trailing_zeros() as usize;
        }
        let connection = &self.hosts.connections[index as usize];
        let data = connection.data.as_ref().expect("several subflows");
        let mut candidates = [Candidate { subflow: 0, srtt: Span::ZERO }; SUBFLOWS_MAX];
        let mut count = 0;
        for subflow in
            (0..connection.flow_count as usize).filter(|subflow| left & 1 << subflow != 0)
        {
            let srtt = self.hosts.flows[connection.first_flow as usize + subflow].sender.srtt();
            candidates[count] = Candidate { subflow, srtt };
            count += 1;
        }
        data.sender.choose(&candidates[..count])
    }

    /// A timer of a subflow, or of its receiver, is due.
    #[inline(never)]
    pub(super) fn wake_subflow(&mut self, index: u32) {
        let now = self.net.now();
        let flow = &mut self.hosts.flows[index as usize];
        let connection_index = flow.connection;
        let connection = &mut self.hosts.connections[connection_index as usize];
        let subflow = connection.subflow(index);
        let data = connection.data.as_mut().expect("the flow is one of several subflows");
        let ack = (flow.receiver.deadline() <= now).then(|| {
            let ack = flow.receiver.on_deadline(index);
            Packet { transmission: data.receiver.data_ack(), ..ack }
        });
        let due = flow.sender.deadline() <= now;
        if due {
            let timeouts = flow.sender.stats().timeouts;
            connection.lend(index);
            let mut governor = governor_of(&mut self.hosts.governors, flow);
            flow.sender.on_deadline(now, &mut governor, &mut connection.app.supply);
            let expired = flow.sender.stats().timeouts > timeouts;
            connection.book_taken(index);
            if expired && let Some(data) = &mut connection.data {
                data.sender.on_timeout(subflow);
            }
        }
        if let Some(ack) = ack {
            self.send(ack);
        }
        if due {
            self.pump_subflow(index, 0);
        } else {
            self.set_wake(index);
        }
    }

    /// A subflow opens or closes, if it is time.
    #[inline(never)]
    pub(super) fn open_or_close(&mut self, index: u32) {
        let now = self.net.now();
        let connection_index = self.hosts.flows[index as usize].connection;
        let connection = &self.hosts.connections[connection_index as usize];
        let subflow = connection.subflow(index);
        let Some(data) = &connection.data else { return };
        if data.sender.is_open(subflow) {
            self.close_subflow(index, subflow);
        } else {
            self.open_subflow(index, subflow);
        }
        let connection = &self.hosts.connections[connection_index as usize];
        let next = connection.data.as_ref().map_or(Time::NEVER, |data| data.next_change(subflow));
        if now < next && next < Time::NEVER {
            self.net.schedule(next, Event::Subflow(index));
        }
        self.pump_subflows(connection_index, 0);
    }

    fn open_subflow(&mut self, index: u32, subflow: usize) {
        let now = self.net.now();
        let flow = &mut self.hosts.flows[index as usize];
        let connection = &mut self.hosts.connections[flow.connection as usize];
        let Some(data) = &mut connection.data else { return };
        let mut governor = governor_of(&mut self.hosts.governors, flow);
        flow.sender = data.subflows[subflow].opening.join(&mut governor, &data.config);
        flow.has_agent = governor.coupled.agent_state(flow.id).is_some();
        flow.latest_rtt = flow.sender.latest_rtt();
        flow.arrived.progress = now;
        data.sender.open(subflow);
    }

    /// What it has in flight still arrives, but its sender is gone: others send it again.
    fn close_subflow(&mut self, index: u32, subflow: usize) {
        let now = self.net.now();
        self.tell_end_of(index as usize);
        let flow = &mut self.hosts.flows[index as usize];
        let connection = &mut self.hosts.connections[flow.connection as usize];
        let Some(data) = &mut connection.data else { return };
        let governor = self.hosts.governors[flow.governor as usize].as_mut();
        let own = &mut data.subflows[subflow];
        own.counters = governor.counters(flow.id);
        if flow.has_agent {
            own.agent = governor.agent_state(flow.id).map(|state| state.last());
        }
        governor.subflow_removed(flow.id);
        if connection.app.is_active() {
            let stall = now.since(flow.arrived.progress);
            flow.arrived.stall_max = flow.arrived.stall_max.max(stall);
        }
        flow.sender.close();
        flow.sender_due = Time::NEVER;
        flow.has_agent = false;
        data.sender.close(subflow);
    }
}
