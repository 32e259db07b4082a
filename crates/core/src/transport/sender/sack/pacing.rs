//! When pacing lets the next packet out.
use super::SackSender;
use crate::transport::sender::PACING_MIN;
use crate::units::{Bytes, Rate, Span};

impl SackSender {
    /// The controller's rate; for a window-based one, if asked for, what Linux paces at.
    pub(super) fn pacing_rate(&self) -> Rate {
        let srtt = self.rtt.srtt();
        if self.allowed.pacing_rate != Rate::UNLIMITED || !self.config.pacing || srtt == Span::ZERO
        {
            return self.allowed.pacing_rate;
        }
        let percent = if self.allowed.cwnd < self.allowed.ssthresh { 200 } else { 120 };
        Rate::of(Bytes(self.allowed.cwnd * percent / 100), srtt).max(PACING_MIN)
    }
}
