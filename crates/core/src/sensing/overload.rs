//! Loss without end: a round trip in which more is lost than delivered. A controller that does not answer loss by
//! its own rules answers this, so that its rate does not grow on a path that drops what it sends (RFC 9743 section
//! 5.1.1). A time-out shows persistent congestion (RFC 9002 section 7.6) only where nothing is delivered at all.
use crate::control::{Ack, Loss};
use crate::units::{Bytes, Time};

/// A round trip that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Delivered in it.
    pub acked: Bytes,
    lost: Bytes,
}

impl Round {
    /// Whether it lost more than it delivered.
    pub fn is_overload(self) -> bool {
        self.lost > self.acked
    }
}

/// Deliveries and losses of the present round trip.
#[derive(Clone, Copy, Debug)]
pub struct Overload {
    /// An acknowledgement of a packet sent at this time or later ends the round trip.
    round_from: Time,
    round: Round,
}

impl Overload {
    /// The first round trip begins with the flow.
    pub fn new(start: Time) -> Self {
        Self { round_from: start, round: Round { acked: Bytes(0), lost: Bytes(0) } }
    }

    /// Takes in a delivery; the round trip that it ends.
    pub fn on_ack(&mut self, ack: &Ack) -> Option<Round> {
        self.round.acked = Bytes(self.round.acked.0.saturating_add(ack.acked.0));
        if ack.sent_at < self.round_from {
            return None;
        }
        Some(std::mem::replace(self, Self::new(ack.now)).round)
    }

    /// Takes in a loss.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.round.lost = Bytes(self.round.lost.0.saturating_add(loss.lost.0));
    }

    /// What was declared lost arrived, or the window starts over: the round trip says nothing.
    pub fn forgive(&mut self) {
        self.round.lost = Bytes(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip that delivers and loses so many bytes; what the last acknowledgement says.
    fn round(overload: &mut Overload, at: u64, acked: u64, lost: u64) -> Option<Bytes> {
        overload.on_loss(&Loss { lost: Bytes(lost), ..Loss::default() });
        let ack = |sent_at| Ack {
            now: Time(at + 1),
            sent_at: Time(sent_at),
            acked: Bytes(acked / 2),
            ..Ack::default()
        };
        assert_eq!(overload.on_ack(&ack(0)), None);
        overload.on_ack(&ack(at)).filter(|round| round.is_overload()).map(|round| round.acked)
    }

    #[test]
    fn a_round_trip_with_more_loss_than_delivery_is_an_overload() {
        let mut overload = Overload::new(Time(1));
        assert_eq!(round(&mut overload, 10, 1000, 1000), None);
        assert_eq!(round(&mut overload, 20, 1000, 1001), Some(Bytes(1000)));
        assert_eq!(round(&mut overload, 30, 1000, 0), None);
        overload.on_loss(&Loss { lost: Bytes(5000), ..Loss::default() });
        overload.forgive();
        assert_eq!(round(&mut overload, 40, 1000, 1000), None);
    }
}
