//! What the controller is told of a loss.
use super::{Lost, SackSender};
use crate::control::{Loss, LossKind};
use crate::transport::sender::{Allowed, Governor};
use crate::units::{Bytes, Time};

impl SackSender {
    #[inline(never)]
    pub(super) fn tell_loss(
        &mut self,
        now: Time,
        kind: LossKind,
        lost: Lost,
        governor: &mut Governor,
    ) {
        self.flight = self.flight_size(kind);
        self.tell_loss_in_flight(now, kind, lost, governor);
    }

    /// As [`tell_loss`](Self::tell_loss), out of the flight that is set.
    pub(super) fn tell_loss_in_flight(
        &mut self,
        now: Time,
        kind: LossKind,
        lost: Lost,
        governor: &mut Governor,
    ) {
        let loss = Loss {
            now,
            sent_at: lost.newest,
            lost: Bytes(lost.bytes),
            inflight: Bytes(self.flight),
            tx_inflight: lost.sent.inflight(),
            lost_since: lost.sent.lost_since(self.stats.declared_lost_bytes),
            app_limited: u64::from(lost.sent.app_limited()),
            kind,
        };
        governor.coupled.on_loss(governor.id, &loss);
        self.allowed = Allowed::read(governor, self.packet);
    }

    /// `FlightSize` (RFC 5681 section 2), without what recovery sent beyond the window: holes that
    /// await repair would count as in flight. A packet that times out again does not change the
    /// threshold (RFC 5681 equation 4), so its flight stays the first time-out's.
    fn flight_size(&self, kind: LossKind) -> u64 {
        if kind == LossKind::Timeout && self.rtt.backed_off_repeatedly() {
            return self.flight;
        }
        self.board.outstanding().min(self.allowed.cwnd)
    }
}
