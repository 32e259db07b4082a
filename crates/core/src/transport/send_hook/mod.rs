//! The send hook for transports that cannot call it before every packet: [`AckSendHook`] calls
//! [`Coupled::on_send`] of a controller with a send hook when an acknowledgement arrives, and turns
//! the answers into a window.
//!
//! It tracks the packets in flight as if the answers had taken effect at once. An acknowledgement
//! removes what it delivers. Then the hook is called for one packet after the other until the window
//! is full or the hook holds a packet. The transport gets a window that admits exactly the packets
//! that passed.
//!
//! A sender that applies the window at once sends the same packets as a sender that calls the hook
//! itself. A sender that applies it later, such as the kernel, or that reports several
//! acknowledgements at once, has sent packets without a call. For these the hook is called late. A
//! late answer cannot hold the packet, but a change that the controller makes to its window counts.
use crate::control::{
    Ack, Control, Coupled, FlowInfo, Loss, LossKind, Recovery, Send, SendAction, SubflowId,
};
use crate::units::{Bytes, Time};

/// Maximum number of calls for one record. It bounds the processor time of a record.
const CALLS_MAX: u64 = 256;
/// A receiver acknowledges at least every second full packet (RFC 5681 section 4.2): a record that
/// delivers more stands for several acknowledgements, each of which may hold a packet.
const PACKETS_PER_ACK: u64 = 2;

/// Calls a controller's send hook once per acknowledgement instead of once per packet. The transport
/// sees a controller without a send hook.
pub struct AckSendHook {
    inner: Box<dyn Coupled>,
    /// Maximum number of packets that leave for one acknowledged packet.
    burst: u64,
    flights: Vec<Option<Flight>>,
}

/// Whether a controller of `governor` has a send hook. Adds a subflow, because only then is it known.
pub fn has_send_hook(mut governor: Box<dyn Coupled>) -> bool {
    let any_flow = FlowInfo {
        mss: Bytes(1500),
        initial_cwnd: Bytes(15_000),
        initial_ssthresh: Bytes(u64::MAX),
        recovery: Recovery::Sack,
        paces: false,
        start: Time(0),
        seed: 0,
    };
    governor.subflow_added(SubflowId(0), &any_flow);
    governor.has_send_hook()
}

/// What one subflow would have in flight if every answer had taken effect at once.
#[derive(Clone, Copy, Debug)]
struct Flight {
    packet: u64,
    inflight: u64,
    /// Declared lost and not known to be retransmitted.
    unrepaired: u64,
    /// While packets are held, all that may be in flight; else `u64::MAX`.
    admitted: u64,
    /// When the hook was last called.
    called_at: Time,
    calls: u64,
    calls_late: u64,
}

/// The calls that one record causes.
struct Round {
    now: Time,
    /// Packets that left before the hook was called for them.
    late: u64,
    /// Bytes actually in flight: the sender has not sent more than this.
    actual: u64,
    /// Number of acknowledgements in the record.
    acks: u64,
    /// Maximum number of packets that may leave now if the window admits them.
    fresh: u64,
}

impl AckSendHook {
    /// Wraps `inner`. A controller without a send hook is forwarded unchanged.
    pub fn new(inner: Box<dyn Coupled>) -> Self {
        Self { inner, burst: u64::MAX, flights: Vec::new() }
    }

    /// For a sender that sends at most `burst` packets per acknowledged packet, whatever its window:
    /// the hook is called for no more than these.
    pub fn with_burst(self, burst: u64) -> Self {
        Self { burst, ..self }
    }

    fn flight(&mut self, id: SubflowId) -> Option<&mut Flight> {
        self.flights.get_mut(id.0 as usize).and_then(Option::as_mut)
    }

    /// Calls the hook for what has left, then for what the window admits, until it holds a packet.
    fn ask(&mut self, id: SubflowId, round: &Round) {
        let inner = self.inner.as_mut();
        let Some(Some(flight)) = self.flights.get_mut(id.0 as usize) else { return };
        let mut held = false;
        let mut holds_left = round.acks;
        for number in round.late.saturating_sub(CALLS_MAX)..round.late {
            if holds_left == 0 || !flight.has_room(inner, id) {
                break;
            }
            held =
                flight.ask(inner, id, round.time_of(number, flight.called_at)) == SendAction::Hold;
            flight.calls_late += 1;
            holds_left -= u64::from(held);
            flight.inflight = flight.inflight.min(round.actual);
        }
        // There is no recovery, so everything lost has been retransmitted, even where loss and
        // retransmission cancelled out in the bytes in flight.
        flight.unrepaired = 0;
        for _ in 0..round.fresh.min(CALLS_MAX) {
            if held || !flight.has_room(inner, id) {
                break;
            }
            held = flight.ask(inner, id, round.now) == SendAction::Hold;
        }
        flight.called_at = round.now;
        flight.admitted = if held { flight.inflight.max(flight.packet) } else { u64::MAX };
    }

    /// In loss recovery the sender decides what leaves: the hook is called, and its answer is ignored.
    fn tell(&mut self, id: SubflowId, round: &Round) {
        let inner = self.inner.as_mut();
        let Some(Some(flight)) = self.flights.get_mut(id.0 as usize) else { return };
        for number in round.late.saturating_sub(CALLS_MAX)..round.late {
            flight.ask(inner, id, round.time_of(number, flight.called_at));
            flight.calls_late += 1;
        }
        flight.inflight = round.actual;
        flight.called_at = round.now;
        flight.admitted = u64::MAX;
    }
}

impl Round {
    /// Estimated departure of packet `number` of those that left before the call: evenly spread over
    /// the time since the last record if this one has several acknowledgements.
    fn time_of(&self, number: u64, before: Time) -> Time {
        if self.acks == 1 {
            return self.now;
        }
        before + self.now.since(before) * (number + 1) / self.late
    }
}

impl Flight {
    fn has_room(&self, inner: &dyn Coupled, id: SubflowId) -> bool {
        self.inflight + self.packet <= inner.control(id).cwnd.0
    }

    /// One call of the hook; a packet that passes is in flight.
    fn ask(&mut self, inner: &mut dyn Coupled, id: SubflowId, now: Time) -> SendAction {
        let send = Send {
            now,
            size: Bytes(self.packet),
            inflight: Bytes(self.inflight),
            retransmission: u64::from(self.unrepaired >= self.packet),
            order: self.inflight / self.packet + 1,
        };
        let action = inner.on_send(id, &send);
        self.calls += 1;
        if action == SendAction::Send {
            self.unrepaired = self.unrepaired.saturating_sub(self.packet);
            self.inflight += self.packet;
        }
        action
    }
}

impl Coupled for AckSendHook {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
        if !self.inner.has_send_hook() {
            return;
        }
        if self.flights.len() <= id.0 as usize {
            self.flights.resize(id.0 as usize + 1, None);
        }
        self.flights[id.0 as usize] = Some(Flight {
            packet: flow.mss.0.max(1),
            inflight: 0,
            unrepaired: 0,
            admitted: u64::MAX,
            called_at: flow.start,
            calls: 0,
            calls_late: 0,
        });
        let first_window = Round { now: flow.start, late: 0, actual: 0, acks: 1, fresh: u64::MAX };
        self.ask(id, &first_window);
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
        if let Some(flight) = self.flights.get_mut(id.0 as usize) {
            *flight = None;
        }
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.inner.on_ack(id, ack);
        let burst = self.burst;
        let Some(flight) = self.flight(id) else { return };
        let unasked = (ack.inflight.0 + ack.acked.0).saturating_sub(flight.inflight);
        flight.inflight = flight.inflight.saturating_sub(ack.acked.0).min(ack.inflight.0);
        let round = Round {
            now: ack.now,
            late: unasked / flight.packet,
            actual: ack.inflight.0,
            acks: ack.acked.0.div_ceil(PACKETS_PER_ACK * flight.packet).max(1),
            // What a window that was not full admits leaves when the application writes.
            fresh: burst.saturating_mul(ack.acked.0.div_ceil(flight.packet)) * ack.cwnd_limited,
        };
        if ack.recovering == 1 {
            self.tell(id, &round);
        } else {
            self.ask(id, &round);
        }
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.inner.on_loss(id, loss);
        let Some(flight) = self.flight(id) else { return };
        flight.admitted = u64::MAX;
        match loss.kind {
            LossKind::Gap | LossKind::More => flight.unrepaired += loss.lost.0,
            LossKind::Timeout | LossKind::TimeoutAgain => {
                flight.unrepaired += loss.lost.0;
                flight.inflight = 0;
            }
            LossKind::Spurious => flight.unrepaired = 0,
            LossKind::Deflate | LossKind::Idle => {}
        }
    }
    fn on_timer(&mut self, id: SubflowId, now: Time) {
        self.inner.on_timer(id, now);
        let Some(flight) = self.flight(id) else { return };
        if flight.admitted < u64::MAX {
            let actual = flight.inflight;
            let retry = Round { now, late: 0, actual, acks: 1, fresh: u64::MAX };
            self.ask(id, &retry);
        }
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(&*self.inner)
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(&mut *self.inner)
    }
    /// This wrapper calls the controller's hook; the transport does not.
    fn has_send_hook(&self) -> bool {
        false
    }
    fn control(&self, id: SubflowId) -> Control {
        let control = self.inner.control(id);
        match self.flights.get(id.0 as usize) {
            Some(Some(flight)) => {
                Control { cwnd: control.cwnd.min(Bytes(flight.admitted)), ..control }
            }
            _ => control,
        }
    }
    /// The controller's own, and the number of calls of its hook, in all and late.
    fn counters(&self, id: SubflowId) -> Vec<(&'static str, f64)> {
        let mut counters = self.inner.counters(id);
        if let Some(Some(flight)) = self.flights.get(id.0 as usize) {
            counters.push(("send_hook_calls", flight.calls as f64));
            counters.push(("send_hook_calls_late", flight.calls_late as f64));
        }
        counters
    }
}

#[cfg(test)]
mod tests;
