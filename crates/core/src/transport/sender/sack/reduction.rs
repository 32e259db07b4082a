//! What a recovery lets out: proportional rate reduction (RFC 9937).
use super::{Delivered, Episode, SackSender};
use crate::units::Rate;

/// RFC 9937's state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    pub(super) recover_fs: u64,
    pub(super) delivered: u64,
    pub(super) out: u64,
    /// `sndcnt`: may still be sent for this acknowledgement.
    pub(super) budget: u64,
}

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

    /// RFC 9937 section 6, as in Linux (`tcp_cwnd_reduction`): below the window as much leaves as is delivered, and a packet
    /// more where the acknowledgement is `safe`: what it repairs is acknowledged in order, and it tells of no further loss.
    /// So a window that is too large is not refilled faster than the path delivers. With `rescue`, as in ns-3, an
    /// acknowledgement of nothing that was sent again is answered by as much as it delivers and no more (RFC 6937).
    pub(super) fn reduce_proportionally(&mut self, delivered: &Delivered, safe: bool) {
        let prr = &mut self.prr;
        prr.delivered += delivered.bytes;
        let pipe = self.board.inflight();
        let ssthresh = self.allowed.cwnd;
        prr.budget = if pipe > ssthresh {
            let share = u128::from(prr.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(prr.recover_fs)) as u64).saturating_sub(prr.out)
        } else {
            let conserving = prr.delivered.saturating_sub(prr.out).max(delivered.bytes);
            let limit = match self.config.rescue {
                true if !delivered.repaired => delivered.bytes,
                true => conserving + self.packet,
                false => conserving + if safe { self.packet } else { 0 },
            };
            (ssthresh - pipe).min(limit)
        };
    }

    /// Widens the window for one packet, until the controller is next asked.
    pub(super) fn allow_one(&mut self) {
        self.allowed.cwnd = self.allowed.cwnd.max(self.board.inflight() + self.packet);
    }
}
