//! What a recovery lets out: proportional rate reduction (RFC 9937).
use super::{Delivered, Episode, SackSender};
use crate::units::Rate;

impl SackSender {
    /// What fast recovery lets out, besides the window: by PRR, or the first retransmission
    /// (RFC 6675 section 5 step 4.3).
    #[inline(never)]
    pub(super) fn reduce(&mut self, delivered: &Delivered, lost: bool, opened: bool) {
        if self.is_proportional() {
            self.reduce_proportionally(delivered, delivered.advanced && !lost);
            if opened {
                // The first retransmission is not subject to the bound (RFC 9937 section 6).
                self.prr.budget = self.prr.budget.max(self.packet);
            }
        } else if opened && matches!(self.episode, Episode::Fast(_)) {
            self.allow_one();
        }
    }

    /// Whether PRR decides, and not the window alone: as in Linux, a controller with a rate of its own (`cong_control`)
    /// is not subject to it.
    #[inline]
    pub(super) fn is_proportional(&self) -> bool {
        self.config.prr && self.allowed.pacing_rate == Rate::UNLIMITED
    }

    /// As in Linux (`tcp_cwnd_reduction`), an acknowledgement is `safe` if what it repairs is acknowledged in order, and
    /// it tells of no further loss. With `rescue`, as in ns-3, one of nothing that was sent again is answered by as much
    /// as it delivers and no more (RFC 6937).
    pub(super) fn reduce_proportionally(&mut self, delivered: &Delivered, safe: bool) {
        let (pipe, ssthresh) = (self.board.inflight(), self.allowed.cwnd);
        let extra = if safe || self.config.rescue { self.packet } else { 0 };
        self.prr.acked(delivered.bytes, pipe, ssthresh, extra);
        if self.config.rescue && !delivered.repaired && pipe <= ssthresh {
            self.prr.budget = self.prr.budget.min(delivered.bytes);
        }
    }

    /// Widens the window for one packet, until the controller is next asked.
    pub(super) fn allow_one(&mut self) {
        self.allowed.cwnd = self.allowed.cwnd.max(self.board.inflight() + self.packet);
    }
}
