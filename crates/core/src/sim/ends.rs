//! What happens at the ends of a path: receivers, senders and applications.
use super::network::NewPacket;
use super::{Event, Flow, Sim};
use crate::control::Coupled;
use crate::hint::{likely, seldom, unlikely};
use crate::transport::misbehaviour;
use crate::transport::multipath::Mapping;
use crate::transport::packet::{Kind, Packet};
use crate::transport::sender::Governor;
use crate::units::{Span, Time};

/// What governs a flow, as its sender takes it.
#[inline]
pub(super) fn governor_of<'a>(governors: &'a mut [Box<dyn Coupled>], flow: &Flow) -> Governor<'a> {
    Governor { coupled: governors[flow.governor as usize].as_mut(), id: flow.id }
}

impl Flow {
    /// Which of its transmissions comes next.
    #[inline]
    fn number_transmission(&mut self) -> u32 {
        let transmission = self.transmissions;
        self.transmissions = transmission.wrapping_add(1);
        transmission
    }
}

impl Sim {
    /// A data packet reaches its receiver.
    pub(super) fn receive(&mut self, packet: &Packet) {
        let flow = &mut self.hosts.flows[packet.flow as usize];
        let mut ack = Packet::default();
        let path = flow.reverse;
        let arrival = flow.receiver.on_data(self.net.now(), packet, &mut ack);
        let counts = &mut flow.arrived;
        let size = u64::from(packet.size);
        counts.packets += 1;
        counts.owd_sum += u128::from(self.net.now().since(packet.sent_at).0);
        if likely(arrival.delivered > 0) {
            // What waited behind a gap is counted in full packets, except when nothing waits on.
            let waited = if unlikely(arrival.delivered > 1) && flow.receiver.holds_nothing() {
                counts.buffered_bytes
            } else {
                counts.buffered_bytes.min((arrival.delivered - 1) * flow.packet_bytes)
            };
            counts.buffered_bytes -= waited;
            counts.segments += arrival.delivered;
            counts.deliver(self.net.now(), size + waited);
            if likely(flow.latest_rtt > Span::ZERO) {
                counts.rtt_at_delivery_sum += u128::from(flow.latest_rtt.0);
                counts.rtt_at_delivery_count += 1;
            }
        } else if !arrival.duplicate {
            counts.buffered_bytes += size;
        }
        if unlikely(flow.multipath) {
            let connection = &mut self.hosts.connections[flow.connection as usize];
            connection.hand_up(packet, &arrival, &mut ack);
        }
        if arrival.ack_now {
            let early = packet.early;
            ack.early = early;
            if unlikely(arrival.parts > 1) {
                self.send_parts(&ack, packet.size, arrival.parts);
            }
            self.net.send(NewPacket { size: ack.size, early, path }, || ack, &mut self.hosts);
        } else {
            // The sender's wake-up is set; it need not be looked at.
            let due = flow.receiver.deadline().max(self.net.now());
            self.wake_by(due, packet.flow);
        }
    }

    /// What a receiver that divides acknowledgements sends before the last of a packet's.
    #[cold]
    fn send_parts(&mut self, whole: &Packet, size: u32, count: u32) {
        for part in misbehaviour::parts(whole, size, count) {
            self.send(part);
        }
    }

    /// An acknowledgement reaches its sender. Flows and subflows share one call of the sender, since the
    /// compiler does not inline what has two.
    pub(super) fn acknowledge(&mut self, ack: &Packet) {
        let now = self.net.now();
        let flow = &mut self.hosts.flows[ack.flow as usize];
        let connection = &mut self.hosts.connections[flow.connection as usize];
        if unlikely(flow.multipath) && !connection.is_acknowledged(ack, &flow.sender) {
            return self.acknowledge_closed(ack);
        }
        let mut governor = governor_of(&mut self.hosts.governors, flow);
        flow.sender.on_ack(now, ack, &mut governor, &mut connection.app.supply);
        flow.latest_rtt = flow.sender.latest_rtt();
        if unlikely(flow.multipath) {
            return self.acknowledge_subflow(ack);
        }
        if unlikely(connection.app.may_finish()) {
            self.finish_transfer(self.hosts.flows[ack.flow as usize].connection);
        }
        self.pump(ack.flow, ack.early);
    }

    #[inline(never)]
    pub(super) fn finish_transfer(&mut self, index: u32) {
        let connection = &mut self.hosts.connections[index as usize];
        let first = connection.first_flow as usize;
        let flows = &self.hosts.flows[first..first + connection.flow_count as usize];
        let done = match &connection.data {
            Some(data) => data.sender.all_acknowledged(),
            None => flows.iter().all(|flow| flow.sender.all_acknowledged()),
        };
        if done {
            let before = connection.app.next;
            connection.app.on_all_acknowledged(self.net.now());
            if connection.app.next != before
                && let Some(next) = connection.app.to_schedule()
            {
                self.net.schedule(next, Event::App(index));
            }
            self.note_activity(index);
            self.tell_if_over(index);
        }
    }

    /// Tells the controllers of a connection that it has nothing to send any more.
    fn tell_if_over(&mut self, index: u32) {
        let connection = &self.hosts.connections[index as usize];
        if connection.app.is_over() {
            let first = connection.first_flow as usize;
            for flow in first..first + connection.flow_count as usize {
                self.tell_end_of(flow);
            }
        }
    }

    /// Tells the controller of a flow that it has nothing to send any more.
    pub(super) fn tell_end_of(&mut self, index: usize) {
        self.hosts.tell_taps_end(self.net.now(), index as u32);
        let flow = &self.hosts.flows[index];
        if self.hosts.is_governed(flow) {
            self.hosts.governors[flow.governor as usize].on_end(flow.id, self.net.now());
        }
    }

    /// Sends what may be sent, and sets the flow's next wake-up. What an ACK lets out leaves as much
    /// before this nanosecond as the ACK came.
    fn pump(&mut self, index: u32, early: u16) {
        let now = self.net.now();
        // A paced sender need not be asked until it lets the next packet out.
        while self.hosts.flows[index as usize].sender.release() <= now
            && self.send_packet::<false>(index, early)
        {}
        let flow = &mut self.hosts.flows[index as usize];
        if flow.sender.release() > now {
            let supply = self.hosts.connections[flow.connection as usize].app.supply;
            flow.sender.hold_while_full(supply);
        }
        self.set_wake(index);
    }

    /// Sends a packet of a flow, or of a subflow, if it may: a repair or what its connection has for it.
    #[expect(
        clippy::inline_always,
        reason = "the state of both loops over it must stay in registers"
    )]
    #[inline(always)]
    pub(super) fn send_packet<const MULTIPATH: bool>(&mut self, index: u32, early: u16) -> bool {
        let now = self.net.now();
        let flow = &mut self.hosts.flows[index as usize];
        let connection = &mut self.hosts.connections[flow.connection as usize];
        if MULTIPATH {
            connection.lend(index);
        }
        let mut governor = governor_of(&mut self.hosts.governors, flow);
        let out = flow.sender.transmit(now, &mut governor, &mut connection.app.supply);
        let taken = if MULTIPATH { connection.book_taken(index) } else { Mapping::default() };
        let Some(out) = out else { return false };
        let new = NewPacket { size: out.size, early, path: flow.forward };
        let (transmission, ect) = (flow.number_transmission(), flow.sender.ect(out.retransmission));
        let mapping = if MULTIPATH {
            connection.mapping_of(index, out.seq, taken)
        } else {
            Mapping::default()
        };
        let packet = || {
            let mut packet = Packet {
                flow: index,
                size: out.size,
                kind: Kind::Data,
                ect,
                repeat: out.retransmission,
                early,
                seq: out.seq,
                transmission,
                sent_at: now,
                ..Packet::default()
            };
            if MULTIPATH {
                packet.set_mapping(mapping);
            }
            packet
        };
        self.net.send(new, packet, &mut self.hosts);
        true
    }

    /// A timer that moves later keeps its old wake-up, which then finds nothing due: this is cheaper
    /// than moving it with every acknowledgement. A wake-up later than the earliest is remembered, so
    /// that a timer that comes and goes before it does not schedule another.
    #[allow(clippy::inline_always, reason = "called for every acknowledgement")]
    #[inline(always)]
    pub(super) fn set_wake(&mut self, index: u32) {
        let flow = &mut self.hosts.flows[index as usize];
        flow.sender_due = flow.sender.deadline();
        let due = flow.sender_due.min(flow.receiver.deadline()).max(self.net.now());
        // A decision that became due asks for a timer at once.
        if unlikely(flow.has_agent) && flow.sender_due <= self.net.now() {
            self.ask(index);
        }
        self.wake_by(due, index);
    }

    /// Notes that the agent of a flow is to be asked, once and in the order of the flows, if it is.
    fn ask(&mut self, index: u32) {
        if self.agent_state(index).is_some_and(|state| state.due) {
            let place = self.asking.partition_point(|&other| other < index);
            if self.asking.get(place) != Some(&index) {
                self.asking.insert(place, index);
            }
        }
    }

    pub(super) fn wake(&mut self, index: u32) {
        let now = self.net.now();
        let flow = &mut self.hosts.flows[index as usize];
        let receiver_due = flow.receiver.deadline();
        if unlikely(flow.sender_due > now && receiver_due > now) {
            let due = flow.sender_due.min(receiver_due);
            self.wake_by(due, index);
            if due == Time::NEVER {
                self.send_datagram(index);
            }
            return;
        }
        if unlikely(flow.multipath) {
            return self.wake_subflow(index);
        }
        let ack = unlikely(receiver_due <= now).then(|| flow.receiver.on_deadline(index));
        let due = flow.sender.deadline() <= now;
        if likely(due) {
            let connection = &mut self.hosts.connections[flow.connection as usize];
            let mut governor = governor_of(&mut self.hosts.governors, flow);
            flow.sender.on_deadline(now, &mut governor, &mut connection.app.supply);
        }
        if let Some(ack) = ack {
            seldom();
            self.send(ack);
        }
        if likely(due) {
            self.pump(index, 0);
        } else {
            self.set_wake(index);
        }
    }

    #[inline(never)]
    fn send_datagram(&mut self, index: u32) {
        let connection = self.hosts.flows[index as usize].connection as usize;
        let Some(source) = &mut self.hosts.plans[index as usize].datagrams else { return };
        if self.net.now() >= self.hosts.connections[connection].app.stop() {
            return;
        }
        source.sent += 1;
        source.sent_bytes += u64::from(source.size);
        let every = Span(source.every_ns.get());
        let packet = Packet {
            flow: index,
            size: source.size,
            kind: Kind::Datagram,
            ect: source.ect,
            seq: source.sent,
            sent_at: self.net.now(),
            ..Packet::default()
        };
        self.send(packet);
        self.wake_by(self.net.now() + every, index);
    }

    /// The application of a connection acts.
    #[inline(never)]
    pub(super) fn act(&mut self, index: u32) {
        let connection = &mut self.hosts.connections[index as usize];
        if connection.app.next != self.net.now() {
            return;
        }
        let (first, count) = (connection.first_flow, connection.flow_count);
        let flows = &self.hosts.flows[first as usize..(first + count) as usize];
        let was_active = connection.app.is_active();
        let unacknowledged = match &connection.data {
            Some(data) => data.sender.next() - data.sender.una(),
            None => flows.iter().map(|flow| flow.sender.unacknowledged_payload()).sum(),
        };
        connection.app.on_time(self.net.now(), unacknowledged);
        let next = connection.app.to_schedule();
        self.note_activity(index);
        if let Some(next) = next {
            self.net.schedule(next, Event::App(index));
        }
        for flow in first..first + count {
            if !was_active {
                self.hosts.flows[flow as usize].arrived.progress = self.net.now();
            }
            if let Some(source) = &self.hosts.plans[flow as usize].datagrams {
                if source.sent == 0 {
                    self.send_datagram(flow);
                }
            } else {
                self.hosts.flows[flow as usize].sender.on_supply();
                if !self.hosts.flows[flow as usize].multipath {
                    self.pump(flow, 0);
                }
            }
        }
        if self.hosts.connections[index as usize].data.is_some() {
            self.pump_subflows(index, 0);
        }
        if self.hosts.connections[index as usize].app.may_finish() {
            self.finish_transfer(index);
        } else {
            self.tell_if_over(index);
        }
    }
}
