//! What a recovery lets out: proportional rate reduction (RFC 6937).
use super::{Delivered, Episode, SackSender};

/// RFC 6937's state.
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
    pub(super) fn reduce(&mut self, delivered: &Delivered, opened: bool) {
        if self.config.prr {
            self.reduce_proportionally(delivered, opened);
        } else if opened && matches!(self.episode, Episode::Fast(_)) {
            self.allow_one();
        }
    }

    /// RFC 6937 section 3.1, slow start reduction bound. With `rescue`, as in ns-3, an acknowledgement
    /// of nothing that was sent again is answered by as much as it delivers and no more.
    pub(super) fn reduce_proportionally(&mut self, delivered: &Delivered, opened: bool) {
        let prr = &mut self.prr;
        prr.delivered += delivered.bytes;
        let pipe = self.board.inflight();
        let ssthresh = self.allowed.cwnd;
        let sndcnt = if pipe > ssthresh {
            let share = u128::from(prr.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(prr.recover_fs)) as u64).saturating_sub(prr.out)
        } else {
            let limit = if self.config.rescue && !delivered.repaired {
                delivered.bytes
            } else {
                prr.delivered.saturating_sub(prr.out).max(delivered.bytes) + self.packet
            };
            (ssthresh - pipe).min(limit)
        };
        // The first retransmission is not subject to the bound (RFC 6937 section 3).
        prr.budget = if opened { sndcnt.max(self.packet) } else { sndcnt };
    }

    /// Widens the window for one packet, until the controller is next asked.
    pub(super) fn allow_one(&mut self) {
        self.allowed.cwnd = self.allowed.cwnd.max(self.board.inflight() + self.packet);
    }
}
