//! Records with impossible values, for a controller that must neither fail nor grow without bounds by them
//! (RFC 9743 section 8).
use crate::control::{Ack, Control, Coupled, FlowInfo, Loss, SubflowId};
use crate::rng::Rng;
use crate::units::{Bytes, Rate, Span, Time};

/// Years, for a round trip.
const ENDLESS: Span = Span(1 << 60);
/// More than any connection delivers.
const ENORMOUS: Bytes = Bytes(1 << 60);

/// Hands records on to a controller, a part of them falsified. What they say of packets delivered and lost
/// stays true: a sender counts these itself.
pub struct FalseRecords {
    inner: Box<dyn Coupled>,
    /// Part of the records, in [0, 1].
    ratio: f64,
    rng: Rng,
    /// The time of the record before.
    told: Time,
}

impl FalseRecords {
    /// Falsifies a part `ratio` of the records that `inner` gets.
    pub fn new(inner: Box<dyn Coupled>, ratio: f64, rng: Rng) -> Self {
        Self { inner, ratio, rng, told: Time(0) }
    }

    fn falsified_ack(&mut self, ack: &Ack) -> Ack {
        let mut ack = *ack;
        let all_rtts = |ack: &mut Ack, rtt: Span| {
            (ack.rtt, ack.rtt_max, ack.batch_rtt_min) = (rtt, rtt, rtt);
            (ack.srtt, ack.min_rtt) = (rtt, rtt);
        };
        match self.rng.below(12) {
            0 => all_rtts(&mut ack, Span::ZERO),
            1 => all_rtts(&mut ack, Span(1)),
            2 => all_rtts(&mut ack, ENDLESS),
            3 => (ack.rtt, ack.rtt_max, ack.batch_rtt_min) = (ENDLESS, Span::ZERO, ENDLESS),
            4 => ack.now = self.told,
            5 => (ack.now, ack.sent_at) = (Time(0), self.told + ENDLESS),
            6 => (ack.delivered, ack.delivered_since) = (ENORMOUS, ENORMOUS),
            7 => (ack.delivered, ack.delivered_since) = (Bytes(0), Bytes(0)),
            8 => ack.delivery_rate = Rate(u64::MAX >> 1),
            9 => ack.delivery_rate = Rate(0),
            10 => (ack.inflight, ack.prior_inflight, ack.tx_inflight) = Default::default(),
            _ => {
                (ack.inflight, ack.prior_inflight, ack.lost_since) = (ENORMOUS, Bytes(0), ENORMOUS);
            }
        }
        ack
    }

    fn falsified_loss(&mut self, loss: &Loss) -> Loss {
        let mut loss = *loss;
        match self.rng.below(4) {
            0 => (loss.inflight, loss.tx_inflight) = (Bytes(0), Bytes(0)),
            1 => (loss.inflight, loss.tx_inflight) = (ENORMOUS, ENORMOUS),
            2 => (loss.now, loss.sent_at) = (self.told, self.told + ENDLESS),
            _ => (loss.lost_since, loss.sent_at) = (ENORMOUS, Time(0)),
        }
        loss
    }
}

impl Coupled for FalseRecords {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
    }

    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
    }

    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let told = if self.rng.chance(self.ratio) { self.falsified_ack(ack) } else { *ack };
        self.told = ack.now;
        self.inner.on_ack(id, &told);
    }

    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        let told = if self.rng.chance(self.ratio) { self.falsified_loss(loss) } else { *loss };
        self.told = loss.now;
        self.inner.on_loss(id, &told);
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
