//! When pacing lets the next packet out, and when it need not be waited for.
use super::SackSender;
use crate::transport::sender::{PACING_MIN, Supply};
use crate::units::{Bytes, Rate, Span, Time};

impl SackSender {
    /// The controller's rate; for a window-based one, if asked for, what Linux paces at.
    pub(super) fn pacing_rate(&self) -> Rate {
        let srtt = self.rtt.srtt();
        if self.allowed.pacing_rate != Rate::UNLIMITED || !self.config.pacing || srtt == Span::ZERO
        {
            return self.allowed.pacing_rate;
        }
        let percent = if self.allowed.cwnd < self.allowed.ssthresh / 2 { 200 } else { 120 };
        Rate::of(Bytes(self.allowed.cwnd * percent / 100), srtt).max(PACING_MIN)
    }

    /// After all that may leave has left: whether the window will hold back the next packet when pacing lets it go.
    /// `supply` is this sender's alone.
    #[inline]
    pub(in crate::transport::sender) fn hold_while_full(&mut self, supply: Supply) {
        let size = match self.board.peek_lost() {
            Some(size) => Some(u64::from(size)),
            None if supply.unsent == 0 || self.receiver_full() => None,
            None => Some(self.next_size(supply)),
        };
        self.held = size.is_some_and(|size| !self.window_allows(size));
    }

    /// What a wake-up at `release` would have found, had there been one.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Time) {
        if std::mem::take(&mut self.held) && self.release <= now {
            self.blocked_at = self.board.nxt();
            self.release = Time(0);
        }
    }
}
