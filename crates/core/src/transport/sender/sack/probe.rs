//! Tail loss probes (RFC 8985 section 7).
use super::{Episode, Lost, SackSender};
use crate::control::LossKind;
use crate::hint::{seldom, unlikely};
use crate::transport::packet::Packet;
use crate::transport::sender::{Governor, Supply};
use crate::units::{Span, Time};

/// Worst delayed acknowledgement a probe waits for (RFC 8985 section 7.2).
const ACK_DELAY_MAX: Span = Span::from_millis(200);
/// Probe time-out before the first sample (RFC 8985 section 7.2).
const PROBE_INITIAL: Span = Span::from_millis(1000);

/// A probe on its way (RFC 8985 section 7.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    end: u64,
    retransmission: bool,
    sent_at: Time,
}

impl SackSender {
    /// RFC 8985 section 7.2.
    pub(super) fn arm_probe(&mut self, now: Time) {
        self.probe_deadline = Time::NEVER;
        let calm = matches!(self.episode, Episode::None | Episode::Marked(_));
        let quiet = calm && self.board.sacked_count() == 0;
        let idle = self.board.inflight() == 0;
        if unlikely(!self.config.tlp || !quiet || self.probe.is_some() || idle) {
            return;
        }
        let srtt = self.rtt.srtt();
        let mut wait = if unlikely(srtt == Span::ZERO) { PROBE_INITIAL } else { srtt * 2 };
        if unlikely(self.board.inflight() <= self.packet) {
            wait += ACK_DELAY_MAX;
        }
        // Where the time-out would come first, a probe leaves in its place (`TLP_calc_PTO`).
        self.probe_deadline = (now + wait).min(self.rto_deadline);
    }

    /// RFC 8985 section 7.4: a loss that the probe repaired still counts as congestion. That it did shows when something
    /// after it is acknowledged, and no duplicate was reported: with all that was sent before, the original may have come.
    #[inline]
    pub(super) fn finish_probe(&mut self, now: Time, ack: &Packet, governor: &mut Governor) {
        if let Some(probe) = self.probe {
            seldom();
            self.finish_probe_of(probe, now, ack, governor);
        }
    }

    #[inline(never)]
    fn finish_probe_of(&mut self, probe: Probe, now: Time, ack: &Packet, governor: &mut Governor) {
        let twice = ack.repeat && ack.duplicate().is_none_or(|seq| seq + 1 == probe.end);
        let both_came = probe.retransmission && twice;
        // New data tells with its own acknowledgement, a repair with one of something later.
        let until = probe.end + u64::from(probe.retransmission);
        if !both_came && self.board.una() < until {
            return;
        }
        self.probe = None;
        if probe.retransmission && !both_came && self.episode == Episode::None {
            self.stats.recoveries += 1;
            self.stats.declared_lost_bytes += self.packet;
            self.board.note_probed_lost(self.packet as u32);
            let lost = Lost { bytes: self.packet, newest: self.last_sent, ..Lost::default() };
            // What was in flight with it has been acknowledged: Linux reduces from the window (`tcp_process_tlp_ack`).
            self.flight = self.allowed.cwnd;
            self.tell_loss_in_flight(now, (LossKind::Gap, self.flight), lost, governor);
        }
    }

    /// An answer to loss begins. A probe that sent a packet again is among the retransmissions that must all have come twice
    /// for it to be taken back (Linux: `tcp_init_undo`).
    pub(super) fn count_probe(&mut self) {
        if let Some(probe) = self.probe
            && probe.retransmission
            && self.undo.is_armed()
        {
            self.undo.on_retransmission(probe.sent_at);
        }
    }

    /// RFC 8985 section 7.3. The packet leaves through the queue of lost ones, or as new data with
    /// the window widened by one packet; both are seen by the next `transmit`.
    pub(super) fn probe(&mut self, now: Time, supply: &mut Supply) {
        self.probe_deadline = Time::NEVER;
        let fresh = supply.unsent > 0 && !self.receiver_full();
        self.probe = Some(Probe {
            end: self.board.nxt() + u64::from(fresh),
            retransmission: !fresh,
            sent_at: now,
        });
        if fresh {
            self.allow_one();
        } else {
            self.board.declare_last_for_probe();
        }
        self.release = Time(0);
        self.rto_deadline = now + self.rto();
    }
}
