//! A gate for transports that cannot ask before every packet: [`AckGate`] puts the sender's
//! questions to a controller that gates ([`Coupled::on_send`]) when an acknowledgement arrives, and
//! turns the answers into a window.
//!
//! It keeps the flight that the controller's answers would have made. Each acknowledgement takes
//! what it delivers out of that flight; then the controller is asked for one packet after the other
//! until its window is full or it holds one, and the window that is let through admits what passed.
//! A sender that obeys at once sends the packets that a sender with a gate of its own sends. One
//! that obeys later, as the kernel, or that reports only once in several acknowledgements, has
//! sent packets without asking: these are asked about late. Such an answer cannot keep
//! the packet back; what the controller does to its window still counts.
use crate::control::{
    Ack, Control, Coupled, FlowInfo, Loss, LossKind, Recovery, Send, SubflowId, Verdict,
};
use crate::units::{Bytes, Time};

/// Most questions for one record: what a gate may cost.
const QUESTIONS_MAX: u64 = 256;
/// A receiver acknowledges at least every second full packet (RFC 5681 section 4.2): a record that
/// delivers more stands for several acknowledgements, each of which may hold a packet.
const PACKETS_PER_ACK: u64 = 2;

/// Asks the controller once per acknowledgement instead of once per packet. For transports, it is
/// a controller that does not gate.
pub struct AckGate {
    inner: Box<dyn Coupled>,
    /// Most packets that leave for one acknowledged.
    burst: u64,
    flights: Vec<Option<Flight>>,
}

/// Whether `governor` wants to be asked before packets leave, which it knows once it has a flow.
pub fn gates(mut governor: Box<dyn Coupled>) -> bool {
    let any_flow = FlowInfo {
        mss: Bytes(1500),
        initial_cwnd: Bytes(15_000),
        initial_ssthresh: Bytes(u64::MAX),
        recovery: Recovery::Sack,
        start: Time(0),
        seed: 0,
    };
    governor.subflow_added(SubflowId(0), &any_flow);
    governor.gates()
}

/// What one subflow would have in flight, had every answer been obeyed at once.
#[derive(Clone, Copy, Debug)]
struct Flight {
    packet: u64,
    inflight: u64,
    /// Declared lost and not known to be sent again.
    unrepaired: u64,
    /// While packets are held, all that may be in flight; else `u64::MAX`.
    admitted: u64,
    /// When the last questions were asked.
    asked_at: Time,
    asked: u64,
    asked_late: u64,
}

/// What one record gives cause to ask.
struct Round {
    now: Time,
    /// Packets that have left without a question.
    late: u64,
    /// In flight in truth: more than this has not left.
    actual: u64,
    /// Acknowledgements that the record stands for.
    acks: u64,
    /// Most packets that may leave now, if the window admits them.
    fresh: u64,
}

impl AckGate {
    /// Puts `inner` behind a gate; one that does not gate is passed through untouched.
    pub fn new(inner: Box<dyn Coupled>) -> Self {
        Self { inner, burst: u64::MAX, flights: Vec::new() }
    }

    /// For a sender that lets out at most `burst` packets for each one acknowledged, however wide
    /// its window: more are not asked about at once.
    pub fn with_burst(self, burst: u64) -> Self {
        Self { burst, ..self }
    }

    fn flight(&mut self, id: SubflowId) -> Option<&mut Flight> {
        self.flights.get_mut(id.0 as usize).and_then(Option::as_mut)
    }

    /// Plays the sender's part: what left, then what the window admits, until a packet is held.
    fn ask(&mut self, id: SubflowId, round: &Round) {
        let inner = self.inner.as_mut();
        let Some(Some(flight)) = self.flights.get_mut(id.0 as usize) else { return };
        let mut held = false;
        let mut holds_left = round.acks;
        for number in round.late.saturating_sub(QUESTIONS_MAX)..round.late {
            if holds_left == 0 || !flight.has_room(inner, id) {
                break;
            }
            held = flight.ask(inner, id, round.time_of(number, flight.asked_at)) == Verdict::Hold;
            flight.asked_late += 1;
            holds_left -= u64::from(held);
            flight.inflight = flight.inflight.min(round.actual);
        }
        // No recovery goes on: what was lost has been sent again, also where loss and repair cancelled
        // out in what is in flight.
        flight.unrepaired = 0;
        for _ in 0..round.fresh.min(QUESTIONS_MAX) {
            if held || !flight.has_room(inner, id) {
                break;
            }
            held = flight.ask(inner, id, round.now) == Verdict::Hold;
        }
        flight.asked_at = round.now;
        flight.admitted = if held { flight.inflight.max(flight.packet) } else { u64::MAX };
    }

    /// In loss recovery the sender decides what leaves: the controller is told, and cannot hold it.
    fn tell(&mut self, id: SubflowId, round: &Round) {
        let inner = self.inner.as_mut();
        let Some(Some(flight)) = self.flights.get_mut(id.0 as usize) else { return };
        for number in round.late.saturating_sub(QUESTIONS_MAX)..round.late {
            flight.ask(inner, id, round.time_of(number, flight.asked_at));
            flight.asked_late += 1;
        }
        flight.inflight = round.actual;
        flight.asked_at = round.now;
        flight.admitted = u64::MAX;
    }
}

impl Round {
    /// When the packet `number` of those that left without a question did so, as near as can be
    /// known: all along, if the record stands for many acknowledgements.
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

    /// One question; a packet that passes is in flight.
    fn ask(&mut self, inner: &mut dyn Coupled, id: SubflowId, now: Time) -> Verdict {
        let send = Send {
            now,
            size: Bytes(self.packet),
            inflight: Bytes(self.inflight),
            retransmission: u64::from(self.unrepaired >= self.packet),
            order: self.inflight / self.packet + 1,
        };
        let verdict = inner.on_send(id, &send);
        self.asked += 1;
        if verdict == Verdict::Send {
            self.unrepaired = self.unrepaired.saturating_sub(self.packet);
            self.inflight += self.packet;
        }
        verdict
    }
}

impl Coupled for AckGate {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
        if !self.inner.gates() {
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
            asked_at: flow.start,
            asked: 0,
            asked_late: 0,
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
            LossKind::Timeout => {
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
            let again = Round { now, late: 0, actual, acks: 1, fresh: u64::MAX };
            self.ask(id, &again);
        }
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(&*self.inner)
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(&mut *self.inner)
    }
    /// The gate itself asks the controller; the transport does not.
    fn gates(&self) -> bool {
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
    /// The controller's own, and how many questions the gate put, in all and late.
    fn counters(&self, id: SubflowId) -> Vec<(&'static str, f64)> {
        let mut counters = self.inner.counters(id);
        if let Some(Some(flight)) = self.flights.get(id.0 as usize) {
            counters.push(("gate_questions", flight.asked as f64));
            counters.push(("gate_questions_late", flight.asked_late as f64));
        }
        counters
    }
}

#[cfg(test)]
mod tests;
