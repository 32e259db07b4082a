//! Records that are C's own. `Ack` and `Send` are the core's: every bit pattern of their fields is a number.
use ackademy::control::{
    Control, FlowInfo, Loss, LossKind, PacketEvent, PacketEventKind, Recovery,
};
use ackademy::params::ParamError;
use ackademy::units::{Bytes, Time};

/// What is known of a flow before its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// Size of a full packet, bytes.
    pub mss: u64,
    /// Window to start with, bytes.
    pub initial_cwnd: u64,
    /// Slow-start threshold to start with, bytes; `u64::MAX` for none.
    pub initial_ssthresh: u64,
    /// 1 if the sender paces by itself where the controller sets no rate, else 0.
    pub paces: u64,
    /// When the flow starts, ns.
    pub start: u64,
    /// Seed of the controller's own randomness.
    pub seed: u64,
}

impl Flow {
    pub(crate) fn checked(&self) -> Result<FlowInfo, ParamError> {
        let flow = FlowInfo {
            mss: Bytes(self.mss),
            initial_cwnd: Bytes(self.initial_cwnd),
            initial_ssthresh: Bytes(self.initial_ssthresh),
            recovery: Recovery::Sack,
            paces: self.paces != 0,
            start: Time(self.start),
            seed: self.seed,
        };
        flow.checked()
    }
}

/// [`Loss`] with a number for its kind: C may pass any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LossRecord {
    /// See [`Loss`].
    pub now: u64,
    /// See [`Loss`].
    pub sent_at: u64,
    /// See [`Loss`].
    pub lost: u64,
    /// See [`Loss`].
    pub inflight: u64,
    /// See [`Loss`].
    pub tx_inflight: u64,
    /// See [`Loss`].
    pub lost_since: u64,
    /// See [`Loss`].
    pub app_limited: u64,
    /// A number of [`LossKind`].
    pub kind: u64,
}

/// In the order of their numbers.
pub(crate) const KINDS: [LossKind; 7] = [
    LossKind::Gap,
    LossKind::More,
    LossKind::Timeout,
    LossKind::Deflate,
    LossKind::Idle,
    LossKind::Spurious,
    LossKind::TimeoutAgain,
];

impl LossRecord {
    /// The core's record; `None` for a kind that there is not.
    pub(crate) fn checked(&self) -> Option<Loss> {
        let kind = *KINDS.get(usize::try_from(self.kind).ok()?)?;
        Some(Loss {
            now: Time(self.now),
            sent_at: Time(self.sent_at),
            lost: Bytes(self.lost),
            inflight: Bytes(self.inflight),
            tx_inflight: Bytes(self.tx_inflight),
            lost_since: Bytes(self.lost_since),
            app_limited: self.app_limited,
            kind,
        })
    }
}

/// [`PacketEvent`] with a number for its kind: C may pass any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PacketRecord {
    /// See [`PacketEvent`].
    pub now: u64,
    /// See [`PacketEvent`].
    pub number: u64,
    /// See [`PacketEvent`].
    pub sent_at: u64,
    /// See [`PacketEvent`].
    pub size: u64,
    /// A number of [`PacketEventKind`].
    pub kind: u64,
}

/// In the order of their numbers.
const PACKET_KINDS: [PacketEventKind; 4] = [
    PacketEventKind::Sent,
    PacketEventKind::Acked,
    PacketEventKind::Lost,
    PacketEventKind::Discarded,
];

impl PacketRecord {
    /// The core's record; `None` for a kind that there is not.
    pub(crate) fn checked(&self) -> Option<PacketEvent> {
        let kind = *PACKET_KINDS.get(usize::try_from(self.kind).ok()?)?;
        let (now, sent_at) = (Time(self.now), Time(self.sent_at));
        Some(PacketEvent { now, number: self.number, sent_at, size: Bytes(self.size), kind })
    }
}

/// What is allowed, and when to call again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Answer {
    /// Most bytes in flight.
    pub cwnd: u64,
    /// Fastest sending rate, bit/s; `u64::MAX` leaves pacing off.
    pub pacing_rate: u64,
    /// Slow-start threshold, bytes; `u64::MAX` for none.
    pub ssthresh: u64,
    /// When to call `ackademy_on_timer`, ns; `u64::MAX` for never.
    pub timer: u64,
}

impl Answer {
    pub(crate) fn new(control: Control, timer: Option<Time>) -> Self {
        Self {
            cwnd: control.cwnd.0,
            pacing_rate: control.pacing_rate.0,
            ssthresh: control.ssthresh.0,
            timer: timer.unwrap_or(Time::NEVER).0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_number_of_the_core_s() {
        for (number, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            let record = LossRecord { kind: number as u64, lost: 7, ..LossRecord::default() };
            assert_eq!(record.checked(), Some(Loss { kind, lost: Bytes(7), ..Loss::default() }));
        }
        for (number, kind) in PACKET_KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            let record = PacketRecord { kind: number as u64, size: 7, ..PacketRecord::default() };
            let size = Bytes(7);
            assert_eq!(
                record.checked(),
                Some(PacketEvent { kind, size, ..PacketEvent::default() })
            );
        }
        for kind in [KINDS.len() as u64, 1 << 32, u64::MAX] {
            assert_eq!(PacketRecord { kind, ..PacketRecord::default() }.checked(), None);
            assert_eq!(LossRecord { kind, ..LossRecord::default() }.checked(), None);
        }
    }
}
