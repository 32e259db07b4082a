//! What the controller is told of a loss.
use super::{Episode, Lost, SackSender};
use crate::control::{Loss, LossKind};
use crate::transport::sender::{Allowed, Governor};
use crate::units::{Bytes, Time};

impl SackSender {
    /// Tells what loss detection found: what opens an episode, or more of one. Of what was sent during an episode and
    /// lost in it, one packet waits for the end: the episode that begins there if something is still missing is told
    /// with it, for a `Gap` of no bytes is a mark. Nothing is told twice.
    #[inline(never)]
    pub(super) fn report_losses(
        &mut self,
        now: Time,
        found: Lost,
        opened: bool,
        governor: &mut Governor,
    ) {
        self.tell_packets(now, governor);
        let lost = match self.episode {
            Episode::Fast(end) | Episode::Timeout(end) if !opened && found.last >= end => {
                self.board.keep_one(found, self.packet)
            }
            Episode::Fast(_) | Episode::Timeout(_) if !opened => found,
            _ => found.and(self.board.take_kept()),
        };
        if lost.bytes > 0 {
            let kind = if opened { LossKind::Gap } else { LossKind::More };
            self.tell_loss(now, kind, lost, governor);
        }
    }

    #[inline(never)]
    pub(super) fn tell_loss(
        &mut self,
        now: Time,
        kind: LossKind,
        lost: Lost,
        governor: &mut Governor,
    ) {
        let flight = self.flight_size(kind);
        if matches!(kind, LossKind::Gap | LossKind::Timeout) {
            self.flight = flight;
        }
        self.tell_loss_in_flight(now, (kind, flight), lost, governor);
    }

    /// As [`tell_loss`](Self::tell_loss), out of this flight.
    pub(super) fn tell_loss_in_flight(
        &mut self,
        now: Time,
        (kind, flight): (LossKind, u64),
        lost: Lost,
        governor: &mut Governor,
    ) {
        self.tell_packets(now, governor);
        let loss = Loss {
            now,
            sent_at: lost.newest,
            lost: Bytes(lost.bytes),
            inflight: Bytes(flight),
            tx_inflight: lost.sent.inflight(),
            lost_since: lost.sent.lost_since(self.stats.declared_lost_bytes),
            app_limited: u64::from(lost.sent.app_limited()),
            kind,
        };
        governor.coupled.on_loss(governor.id, &loss);
        self.allowed = Allowed::read(governor, self.packet);
    }

    /// `FlightSize` (RFC 5681 section 2), without what recovery sent beyond the window: holes that
    /// await repair would count as in flight. A time-out of what was answered before does not change the
    /// threshold, so its flight stays that of the first answer.
    fn flight_size(&self, kind: LossKind) -> u64 {
        if kind == LossKind::TimeoutAgain {
            return self.flight;
        }
        self.board.outstanding().min(self.allowed.cwnd)
    }
}
