//! Proportional rate reduction (RFC 9937), for any sender: how much may leave while a loss is answered.

/// The state of one reduction, by the names of RFC 9937 section 5. Every bit pattern of it is a number.
///
/// The sender calls [`enter`](Self::enter) when the answer to a loss begins, then [`acked`](Self::acked) for each
/// acknowledgement and [`sent`](Self::sent) for each packet that leaves. Until recovery ends, a packet may leave if
/// it fits into `budget`; for a sender that knows only windows, the window is what is in flight and `budget`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Prr {
    /// `RecoverFS`: what was in flight when the reduction began.
    pub recover_fs: u64,
    /// `prr_delivered`: delivered since then.
    pub delivered: u64,
    /// `prr_out`: sent since then.
    pub out: u64,
    /// `SndCnt`: what may leave now. A sender may raise or lower it: the first retransmission is not subject to the
    /// bound (section 6).
    pub budget: u64,
}

impl Prr {
    /// A reduction begins, from `flight` bytes.
    #[must_use]
    pub fn enter(flight: u64) -> Self {
        Self { recover_fs: flight.max(1), ..Self::default() }
    }

    /// An acknowledgement delivered so many bytes and leaves `inflight`; `ssthresh` is the window that the reduction
    /// ends at. Above it, less leaves than is delivered, in proportion. Below it, as much as is delivered, and `extra`:
    /// one packet if the acknowledgement is safe (`SafeACK`: it is cumulative and tells of no further loss), else 0.
    /// So a window that is too large is not refilled faster than the path delivers.
    pub fn acked(&mut self, delivered: u64, inflight: u64, ssthresh: u64, extra: u64) {
        self.delivered = self.delivered.saturating_add(delivered);
        self.budget = if inflight > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            let due = share.div_ceil(u128::from(self.recover_fs.max(1)));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            let conserving = self.delivered.saturating_sub(self.out).max(delivered);
            (ssthresh - inflight).min(conserving.saturating_add(extra))
        };
    }

    /// A packet of this size leaves.
    pub fn sent(&mut self, size: u64) {
        self.out = self.out.saturating_add(size);
        self.budget = self.budget.saturating_sub(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, Seed};

    const PACKET: u64 = 1000;

    /// A flight of `flight` packets, of which the first is lost: what is in flight at the end of a round trip in which
    /// the others are acknowledged one by one and all that may leave does.
    fn after_a_round_trip(flight: u64, ssthresh: u64) -> u64 {
        let mut prr = Prr::enter(flight * PACKET);
        let mut inflight = (flight - 1) * PACKET;
        for number in 1..flight {
            inflight -= PACKET;
            prr.acked(PACKET, inflight, ssthresh * PACKET, 0);
            if number == 1 {
                prr.budget = prr.budget.max(PACKET);
            }
            while prr.budget >= PACKET {
                prr.sent(PACKET);
                inflight += PACKET;
            }
        }
        inflight
    }

    #[test]
    fn a_round_trip_ends_within_a_packet_of_the_target() {
        for flight in 4..60 {
            for ssthresh in flight / 2..flight {
                let left = after_a_round_trip(flight, ssthresh) / PACKET;
                assert!(left <= ssthresh && left + 2 >= ssthresh, "{flight}, {ssthresh}: {left}");
            }
        }
    }

    #[test]
    fn below_the_target_as_much_leaves_as_is_delivered_and_a_packet_if_it_is_safe() {
        let mut prr = Prr::enter(20 * PACKET);
        prr.acked(PACKET, 2 * PACKET, 10 * PACKET, 0);
        assert_eq!(prr.budget, PACKET);
        prr.sent(PACKET);
        prr.acked(PACKET, 2 * PACKET, 10 * PACKET, PACKET);
        assert_eq!(prr.budget, 2 * PACKET);
        prr.acked(8 * PACKET, 9 * PACKET, 10 * PACKET, PACKET);
        assert_eq!(prr.budget, PACKET, "no more than is missing");
    }

    #[test]
    fn any_numbers_give_a_budget_within_what_is_missing_below_the_target() {
        let mut rng: Rng = Seed(3).stream("prr", 0);
        let mut prr = Prr::default();
        for _ in 0..10_000 {
            let [flight, size, delivered, inflight, ssthresh, extra] =
                std::array::from_fn(|_| rng.next_u64() >> rng.below(64));
            if rng.chance(0.1) {
                prr = Prr::enter(flight);
            }
            prr.sent(size);
            prr.acked(delivered, inflight, ssthresh, extra);
            assert!(inflight > ssthresh || prr.budget <= ssthresh - inflight, "{prr:?}");
        }
    }
}
