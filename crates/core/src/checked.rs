//! Records of a host that may be wrong: what a record says is held against what earlier ones said, and against what
//! was delivered, which a host counts itself. A record that is right passes as it is.
//!
//! A host whose records come from elsewhere wraps its governors in [`Checked`]; the simulator does so where a scenario
//! falsifies records (`fuzz_records`). The kernel's records are its own counts and pass unchecked.
use crate::control::{Ack, Control, Coupled, FlowInfo, Loss, SubflowId};
use crate::units::{Bytes, Rate, Span, Time};

/// A round trip is no shorter than this part of what packets were under way for.
const SHORTEST: u64 = 64;
/// Round trips of a handshake before the flow's start.
const BEFORE_START: Span = Span::from_millis(1000);
/// In a round trip arrives at most so many times what arrived in one before, and so many bytes.
const MOST: (u64, u64) = (4, 65_536);
/// In flight is at most so many times what arrived in a round trip: a start that quadruples its window shows it late.
const FLIGHT: u64 = 64;
/// The count of what is delivered grows by at most so many times what a record delivers, and so many bytes.
const COUNT: (u64, u64) = (4, 1_000_000);

/// A connection that is older than its governor has delivered at most a petabyte.
const FIRST: Bytes = Bytes(1 << 50);

/// What is known of a subflow.
#[derive(Clone, Copy, Debug)]
struct Known {
    start: Time,
    /// Of the latest record.
    told: Time,
    srtt: Span,
    min_rtt: Span,
    delivered: Option<Bytes>,
    /// Time for which the newest packets were under way, an average with a weight of 1/8 for each.
    elapsed: Span,
    /// The longest of these times.
    longest: Span,
    /// Deliveries since a time, and the most in `elapsed`, bytes per second.
    since: Time,
    arrived: u64,
    fastest: u64,
    /// Declared lost.
    lost: Bytes,
    /// The most in flight.
    flight: Bytes,
}

impl Known {
    fn new(flow: &FlowInfo) -> Self {
        Self {
            start: flow.start,
            told: flow.start,
            srtt: Span::ZERO,
            min_rtt: Span::ZERO,
            delivered: None,
            elapsed: Span::ZERO,
            longest: Span::ZERO,
            since: flow.start,
            arrived: 0,
            fastest: 0,
            lost: Bytes::ZERO,
            flight: flow.initial_cwnd + Bytes(MOST.1),
        }
    }

    fn ack(&mut self, ack: &Ack) -> Ack {
        let mut ack = *ack;
        self.times(&mut ack.now, &mut ack.sent_at);
        self.round_trips(&mut ack);
        self.deliveries(&mut ack);
        let flight = self.flight;
        ack.inflight = ack.inflight.min(flight);
        ack.prior_inflight = ack.prior_inflight.min(flight);
        ack.tx_inflight = ack.tx_inflight.min(flight);
        ack.lost_since = ack.lost_since.min(self.lost + flight);
        ack
    }

    fn loss(&mut self, loss: &Loss) -> Loss {
        let mut loss = *loss;
        self.times(&mut loss.now, &mut loss.sent_at);
        let flight = self.flight.max(loss.lost);
        loss.inflight = loss.inflight.min(flight);
        loss.tx_inflight = loss.tx_inflight.min(flight);
        self.lost += loss.lost;
        loss.lost_since = loss.lost_since.min(self.lost + flight);
        loss
    }

    /// Time does not go back, and nothing was sent later than now.
    fn times(&mut self, now: &mut Time, sent_at: &mut Time) {
        *now = self.told.max(*now);
        self.told = *now;
        if *sent_at > *now {
            *sent_at = Time(now.0.saturating_sub(self.elapsed.0));
        }
    }

    /// No round trip is longer than the flow is old, or a small part of what packets were under way for.
    fn round_trips(&mut self, ack: &mut Ack) {
        let elapsed = ack.now.since(ack.sent_at);
        let longest = ack.now.since(self.start) + BEFORE_START;
        let shortest = self.elapsed.min(elapsed).0 / SHORTEST;
        let is_right = |rtt: Span| rtt <= longest && rtt.0 >= shortest;
        let samples = [ack.rtt, ack.rtt_max, ack.batch_rtt_min];
        if !samples.iter().all(|rtt| *rtt == Span::ZERO || is_right(*rtt)) {
            (ack.rtt, ack.rtt_max, ack.batch_rtt_min) = (Span::ZERO, Span::ZERO, Span::ZERO);
        }
        for (told, known) in
            [(&mut ack.srtt, &mut self.srtt), (&mut ack.min_rtt, &mut self.min_rtt)]
        {
            let is_told = *told > Span::ZERO || *known == Span::ZERO;
            if is_told && (*told == Span::ZERO || is_right(*told)) {
                *known = *told;
            } else {
                *told = *known;
            }
        }
        if elapsed > Span::ZERO && elapsed <= longest {
            let before = if self.elapsed == Span::ZERO { elapsed } else { self.elapsed };
            self.longest = self.longest.max(elapsed);
            self.elapsed = Span(before.0 - before.0 / 8 + elapsed.0 / 8);
        }
    }

    fn deliveries(&mut self, ack: &mut Ack) {
        let known = self.delivered.unwrap_or(ack.delivered.min(FIRST));
        let most = Bytes(known.0 + COUNT.0 * ack.acked.0 + COUNT.1);
        if ack.delivered < known || ack.delivered > most {
            ack.delivered = known + ack.acked;
        }
        self.delivered = Some(ack.delivered);
        if ack.delivered_since > ack.delivered {
            ack.delivered_since = Bytes::ZERO;
        }
        self.arrived = self.arrived.saturating_add(ack.acked.0);
        let round = self.elapsed.max(Span(1));
        let lasted = ack.now.since(self.since);
        let per_s = |bytes: u64, span: Span| {
            (u128::from(bytes) * 1_000_000_000 / u128::from(span.0)).min(u128::from(u64::MAX))
                as u64
        };
        self.fastest = self.fastest.max(per_s(self.arrived, lasted.max(round)));
        if lasted >= round {
            (self.since, self.arrived) = (ack.now, 0);
        }
        let most = self.fastest.saturating_mul(MOST.0).saturating_add(per_s(MOST.1, round));
        ack.delivery_rate = ack.delivery_rate.min(Rate(most.saturating_mul(8)));
        let pipe = u128::from(self.fastest) * u128::from(self.longest.0) / 1_000_000_000;
        let flight = pipe * u128::from(FLIGHT);
        let flight = flight.saturating_add(u128::from(MOST.1)).min(u128::from(u64::MAX));
        self.flight = self.flight.max(Bytes(flight as u64));
    }
}

/// A governor whose records are checked.
pub struct Checked {
    inner: Box<dyn Coupled>,
    subflows: Vec<Option<Known>>,
}

impl Checked {
    /// Checks what `inner` is told.
    pub fn new(inner: Box<dyn Coupled>) -> Self {
        Self { inner, subflows: Vec::new() }
    }

    fn known(&mut self, id: SubflowId) -> &mut Known {
        self.subflows[id.0 as usize].as_mut().expect("the subflow was added")
    }
}

impl Coupled for Checked {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        let index = id.0 as usize;
        self.subflows.resize(self.subflows.len().max(index + 1), None);
        self.subflows[index] = Some(Known::new(flow));
        self.inner.subflow_added(id, flow);
    }

    fn subflow_removed(&mut self, id: SubflowId) {
        self.subflows[id.0 as usize] = None;
        self.inner.subflow_removed(id);
    }

    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let ack = self.known(id).ack(ack);
        self.inner.on_ack(id, &ack);
    }

    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        let loss = self.known(id).loss(loss);
        self.inner.on_loss(id, &loss);
    }

    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }

    fn inner(&self) -> Option<&dyn Coupled> {
        Some(&*self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(&mut *self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::test_support::flow;

    const RTT: Span = Span::from_millis(50);

    /// The acknowledgement of ten packets that were sent after so many round trips.
    fn ack(round: u64) -> Ack {
        let sent_at = Time(0) + RTT * round;
        Ack {
            now: sent_at + RTT,
            sent_at,
            rtt: RTT,
            srtt: RTT,
            min_rtt: RTT,
            acked: Bytes(15_000),
            delivered: Bytes(15_000 * (round + 1)),
            delivered_since: Bytes(15_000),
            delivery_rate: Rate(2_400_000),
            inflight: Bytes(15_000),
            prior_inflight: Bytes(30_000),
            tx_inflight: Bytes(30_000),
            ..Ack::default()
        }
    }

    /// What is known after ten round trips.
    fn known() -> Known {
        let mut known = Known::new(&flow());
        for round in 0..10 {
            assert_eq!(known.ack(&ack(round)), ack(round));
        }
        known
    }

    #[test]
    fn no_round_trip_is_longer_than_the_flow_is_old_or_a_64th_of_the_time_under_way() {
        for false_rtt in [Span(1 << 60), Span(1)] {
            let right = ack(10);
            let told = Ack { rtt: false_rtt, srtt: false_rtt, min_rtt: false_rtt, ..right };
            let checked = known().ack(&told);
            assert_eq!(checked, Ack { rtt: Span::ZERO, ..right }, "{false_rtt:?}");
        }
    }

    #[test]
    fn a_rate_and_a_flight_are_bounded_by_what_arrived() {
        let endless = Bytes(1 << 60);
        let told = Ack { delivery_rate: Rate(1 << 60), inflight: endless, ..ack(10) };
        let checked = known().ack(&told);
        // Four times 2.4 Mb/s, and 65 536 bytes in 50 ms; 64 times 15 000 bytes, and as many.
        assert_eq!(checked.delivery_rate.0 / 1_000, (4 * 2_400_000 + 65_536 * 8 * 20) / 1_000);
        assert_eq!(checked.inflight, Bytes(64 * 15_000 + 65_536));
        let told = Ack { delivered: endless, delivered_since: endless, ..ack(10) };
        let checked = known().ack(&told);
        assert_eq!((checked.delivered, checked.delivered_since), (Bytes(165_000), Bytes::ZERO));
    }

    #[test]
    fn time_does_not_go_back_and_nothing_was_sent_later() {
        let told = Ack { now: Time(0), sent_at: Time(1 << 60), ..ack(10) };
        let checked = known().ack(&told);
        assert_eq!((checked.now, checked.sent_at), (ack(9).now, ack(9).sent_at));
    }
}
