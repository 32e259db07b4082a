//! Translates the kernel's records of a flow into calls of its controller, and its settings back.
//!
//! A packet counts as payload plus headers, as in a scenario. A record makes up to two [`Ack`]s, of what
//! was delivered while the window may grow and while it may not, and one [`Loss`]. Approximate are:
//!
//! - `Ack::now`: the record's, after the acknowledgements of its batch;
//! - `Ack::rtt`, `Ack::rtt_max`, `Ack::batch_rtt_min`: of the last packet that each acknowledgement covers;
//! - `Ack::srtt`: of these samples, as in the simulator; the kernel's own is of the first packet that
//!   each acknowledgement covers, and so longer by what a delayed one waits for the second;
//! - `Ack::ce_marked`: zero, the kernel answers marks itself and that is a `Gap` of no bytes;
//! - `Ack::delivery_rate`: the newest valid sample of the batch, else the last one before it;
//! - `Ack::tx_inflight`: what was delivered and lost since then, as on a path that keeps the order; the
//!   kernel does not keep what was in flight when a packet left;
//! - `Ack::lost_since`: of the losses that records told since that packet left;
//! - `Loss::lost`: of what is lost during a repair one packet is told later (`tell_losses`);
//! - `Loss::sent_at`, `tx_inflight`, `app_limited`: the newest delivered packet's, since the kernel keeps
//!   no list of what it lost;
//! - `on_send`: asked with each record, for what the window admits then
//!   ([`AckSendHook`](ackademy::transport::send_hook::AckSendHook)).
//!
//! `docs/reference/kernel-records.md` goes through every field.
use super::governor::Governor;
use super::record::{Flow, PACING_NONE, Record, SSTHRESH_INFINITE, flag, kind};
use ackademy::control::{Ack, CWND_MAX, Control, FlowInfo, Loss, LossKind, Recovery, SubflowId};
use ackademy::transport::rtt::{RtoLimits, RttEstimator};
use ackademy::units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// Records with losses that are remembered at most.
const LOSSES_MAX: usize = 256;
/// For an estimator whose time-out is not used.
const NO_TIMEOUT: RtoLimits =
    RtoLimits { min: Span::ZERO, max: Span::MAX, initial: Span::MAX, tick: Span::ZERO };
/// After so many equal samples the smoothed round trip is that sample, to 0.02 %.
const SAMPLES_MAX: u32 = 64;

/// What a flow may do, in the kernel's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// In packets.
    pub cwnd: u32,
    /// In packets, or [`SSTHRESH_INFINITE`].
    pub ssthresh: u32,
    /// Payload bytes per second, or [`PACING_NONE`].
    pub pacing: u64,
    /// The window grew by what was delivered: slow start, which the kernel continues by itself
    /// until the next decision.
    pub growing: bool,
    /// Packets delivered for growth when this was decided.
    pub base: u32,
}

/// Counts of the newest record: the next one's differences are what happened since.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    delivered: u32,
    held: u32,
    lost: u32,
}

impl Counts {
    fn of(record: &Record) -> Self {
        Self { delivered: record.delivered, held: record.held, lost: record.lost }
    }
}

/// When packets were declared lost, for what was lost since a packet left.
#[derive(Debug, Default)]
struct Losses {
    /// Time, and packets in all before.
    seen: VecDeque<(Time, u32)>,
}

impl Losses {
    /// A record of `now` tells of a loss, `before` which so many were lost.
    fn add(&mut self, now: Time, before: u32) {
        if self.seen.len() == LOSSES_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back((now, before));
    }

    /// Lost since `sent_at`, of `lost` in all. Packets are told in the order of sending, nearly: what
    /// was lost before is forgotten.
    fn since(&mut self, sent_at: Time, lost: u32) -> u32 {
        while self.seen.front().is_some_and(|&(at, _)| at < sent_at) {
            self.seen.pop_front();
        }
        self.seen.front().map_or(0, |&(_, before)| lost.wrapping_sub(before))
    }
}

/// What was sent with the newest delivered packet.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    /// Delivered since it was sent; zero before the first sample.
    delivered: Bytes,
    /// Lost since it was sent.
    lost: Bytes,
    app_limited: u64,
}

impl Newest {
    fn tx_inflight(&self) -> Bytes {
        if self.delivered == Bytes::ZERO { Bytes::ZERO } else { self.delivered + self.lost }
    }
}

/// One flow: what has been told of it to its governor. One that governs several flows is told of each by
/// that flow's adapter.
pub struct Adapter {
    /// The flow's name within its governor.
    id: SubflowId,
    /// A full packet on the wire.
    packet: u64,
    /// Its payload.
    payload: u64,
    seen: Counts,
    /// Since the controller came.
    delivered: Bytes,
    delivery_rate: Rate,
    sent_at: Time,
    rtt: RttEstimator,
    losses: Losses,
    newest: Newest,
    /// Packets lost during a repair that have not been told: at most one.
    kept: u32,
    /// The newest record told that a loss was spurious.
    taken_back: bool,
    growing: bool,
}

/// What the controller of the flow in `flow` is told first.
pub fn flow_info(flow: &Flow) -> FlowInfo {
    let packet = u64::from(flow.mss + u32::from(flow.header));
    FlowInfo {
        mss: Bytes(packet),
        initial_cwnd: Bytes(u64::from(flow.initial_cwnd) * packet),
        initial_ssthresh: match flow.initial_ssthresh {
            SSTHRESH_INFINITE.. => Bytes(u64::MAX),
            packets => Bytes(u64::from(packets) * packet),
        },
        recovery: Recovery::Sack,
        paces: flow.pacing != PACING_NONE,
        start: Time(flow.opened_at),
        seed: flow.opened_at ^ u64::from(flow.generation),
    }
}

impl Adapter {
    /// Puts the flow in `slot` under `governor`, which gets what comes after the record `first`. `info`:
    /// what it is told of the flow, usually [`flow_info`].
    pub fn new(flow: &Flow, first: &Record, info: &FlowInfo, governor: &mut Governor) -> Self {
        Self {
            id: governor.join(first.slot, info, flow.token),
            packet: flow_info(flow).mss.0,
            payload: u64::from(flow.mss),
            seen: Counts::of(first),
            delivered: Bytes::ZERO,
            delivery_rate: Rate(0),
            sent_at: info.start,
            rtt: RttEstimator::default(),
            losses: Losses::default(),
            newest: Newest::default(),
            kept: 0,
            taken_back: false,
            growing: false,
        }
    }

    /// The flow's name within its governor.
    pub fn id(&self) -> SubflowId {
        self.id
    }

    /// Tells the controller what a record tells.
    pub fn on_record(&mut self, governor: &mut Governor, record: &Record) {
        governor.now = governor.now.max(Time(record.now));
        self.sent_at = self.sent_at.max(Time(record.sent_at)).min(governor.now);
        let counts = Counts::of(record);
        let delivered = counts.delivered.wrapping_sub(self.seen.delivered);
        let held = counts.held.wrapping_sub(self.seen.held).min(delivered);
        let lost = counts.lost.wrapping_sub(self.seen.lost);
        if lost > 0 {
            self.losses.add(governor.now, self.seen.lost);
        }
        self.seen = counts;
        self.take_rate(record);
        self.take_rtt(record, delivered);
        let before = governor.coupled.control(self.id).cwnd;
        // Duplicate acknowledgements come before a gap is known, and the end of a recovery after
        // what was delivered in it.
        let parts = [(held, 1), (delivered - held, 0)];
        let begins = matches!(record.kind, kind::GAP | kind::MARK);
        let (first, last) = if begins { (parts[1], parts[0]) } else { (parts[0], parts[1]) };
        if first.0 > 0 {
            let earlier = Record {
                rtt_us: if last.0 > 0 { 0 } else { record.rtt_us },
                rtt_max_us: if last.0 > 0 { 0 } else { record.rtt_max_us },
                rtt_min_us: if last.0 > 0 { 0 } else { record.rtt_min_us },
                inflight: record.inflight.saturating_add(last.0),
                ..*record
            };
            self.tell_ack(governor, &earlier, first.0, first.1);
        }
        if last.0 > 0 {
            self.tell_ack(governor, record, last.0, last.1);
        }
        let grew = governor.coupled.control(self.id).cwnd.saturating_sub(before);
        let fed = u64::from(delivered - held) * self.packet;
        if fed > 0 {
            self.growing = grew.0.abs_diff(fed) * 10 <= fed;
        }
        self.tell_losses(governor, record, lost);
    }

    /// A `Gap` tells the first loss of an episode; one of no bytes is a mark. Behind a repair the kernel begins the
    /// next episode with packets that were lost during it and are still missing, so one of those is told only with
    /// that episode, or when the repair has ended without one. Nothing is told twice, but one packet of an episode that
    /// the kernel begins again with the very acknowledgement that took it back.
    fn tell_losses(&mut self, governor: &mut Governor, record: &Record, lost: u32) {
        let untold = lost.saturating_add(std::mem::take(&mut self.kept));
        let taken_back = std::mem::replace(&mut self.taken_back, record.kind == kind::SPURIOUS);
        let event = match record.kind {
            kind::GAP if untold > 0 || taken_back => Some((untold.max(1), LossKind::Gap)),
            kind::TIMEOUT if record.flags & flag::ANSWERED != 0 => {
                Some((untold, LossKind::TimeoutAgain))
            }
            kind::TIMEOUT => Some((untold, LossKind::Timeout)),
            kind::MARK => Some((0, LossKind::Gap)),
            kind::IDLE => Some((0, LossKind::Idle)),
            kind::GAP => {
                self.growing = false;
                None
            }
            _ => {
                self.kept = u32::from(untold > 0 && record.flags & flag::REPAIRING != 0);
                (record.kind == kind::SPURIOUS).then_some((0, LossKind::Spurious))
            }
        };
        let more = untold.saturating_sub(self.kept + event.map_or(0, |(told, _)| told));
        if more > 0 {
            self.tell_loss(governor, record, more, LossKind::More);
        }
        if let Some((told, kind)) = event {
            self.tell_loss(governor, record, told, kind);
        }
    }

    fn take_rate(&mut self, record: &Record) {
        if record.rate_interval_us > 0 {
            let bytes = Bytes(u64::from(record.rate_delivered) * self.packet);
            let interval = Span::from_micros(u64::from(record.rate_interval_us));
            self.delivery_rate = Rate::of(bytes, interval);
            self.newest.delivered = bytes;
        }
        let lost = self.losses.since(self.sent_at, self.seen.lost);
        self.newest.lost = Bytes(u64::from(lost) * self.packet);
        self.newest.app_limited = u64::from(record.flags & flag::APP_LIMITED != 0);
    }

    /// A record stands for an acknowledgement of each two packets: the newest sample counts for all.
    fn take_rtt(&mut self, record: &Record, delivered: u32) {
        if record.rtt_us > 0 {
            let sample = Span::from_micros(u64::from(record.rtt_us));
            (0..(delivered / 2).clamp(1, SAMPLES_MAX))
                .for_each(|_| self.rtt.sample(sample, false, &NO_TIMEOUT));
        }
    }

    /// The kernel's own value before the first sample.
    fn srtt(&self, record: &Record) -> Span {
        match self.rtt.srtt() {
            Span::ZERO => Span::from_micros(u64::from(record.srtt_us)),
            srtt => srtt,
        }
    }

    fn tell_ack(
        &mut self,
        governor: &mut Governor,
        record: &Record,
        packets: u32,
        recovering: u64,
    ) {
        let micros = |us: u32| Span::from_micros(u64::from(us));
        let acked = Bytes(u64::from(packets) * self.packet);
        let found = record.inflight.saturating_add(record.newest.min(packets));
        self.delivered = Bytes(self.delivered.0 + acked.0);
        let ack = Ack {
            now: governor.now,
            sent_at: self.sent_at,
            rtt: micros(record.rtt_us),
            srtt: self.srtt(record),
            min_rtt: micros(record.min_rtt_us),
            rtt_max: micros(record.rtt_max_us),
            batch_rtt_min: micros(record.rtt_min_us),
            acked,
            ce_marked: Bytes::ZERO,
            inflight: Bytes(u64::from(record.inflight) * self.packet),
            prior_inflight: Bytes(u64::from(found) * self.packet),
            delivered: self.delivered,
            delivery_rate: self.delivery_rate,
            tx_inflight: self.newest.tx_inflight(),
            delivered_since: self.newest.delivered,
            lost_since: self.newest.lost,
            app_limited: self.newest.app_limited,
            recovering,
            cwnd_limited: u64::from(record.flags & flag::CWND_LIMITED != 0),
        };
        governor.coupled.on_ack(self.id, &ack);
    }

    fn tell_loss(&mut self, governor: &mut Governor, record: &Record, lost: u32, kind: LossKind) {
        self.growing = false;
        let outstanding = u64::from(record.flight) * self.packet;
        let loss = Loss {
            now: governor.now,
            sent_at: self.sent_at,
            lost: Bytes(u64::from(lost) * self.packet),
            inflight: Bytes(outstanding).min(governor.coupled.control(self.id).cwnd),
            tx_inflight: self.newest.tx_inflight(),
            lost_since: self.newest.lost,
            app_limited: self.newest.app_limited,
            kind,
        };
        governor.coupled.on_loss(self.id, &loss);
    }

    /// The time has come that the controller asked for.
    pub fn on_timer(&self, governor: &mut Governor, now: Time) {
        governor.now = governor.now.max(now);
        governor.coupled.on_timer(self.id, governor.now);
    }

    /// Whether a decision fell due with the newest record: a controller that asks for a timer at the
    /// very moment of an acknowledgement wants it before anything else happens.
    pub fn is_due(&self, governor: &Governor) -> bool {
        self.next_timer(governor).is_some_and(|at| at <= governor.now)
    }

    /// Makes the decision that is due.
    pub fn decide(&self, governor: &mut Governor) {
        self.on_timer(governor, governor.now);
    }

    /// Whether the controller fell back after an invalid action.
    pub fn fell_back(&self, governor: &Governor) -> bool {
        governor.coupled.fell_back(self.id)
    }

    /// When the controller wants [`Self::on_timer`] next.
    pub fn next_timer(&self, governor: &Governor) -> Option<Time> {
        governor.coupled.next_timer(self.id)
    }

    /// What the controller allows now; `None` if no sender can obey it.
    pub fn allowed(&self, governor: &Governor) -> Option<Allowed> {
        let Control { cwnd, pacing_rate, ssthresh } = governor.coupled.control(self.id);
        if cwnd == Bytes::ZERO || cwnd > CWND_MAX || pacing_rate == Rate(0) {
            return None;
        }
        let packets =
            |bytes: Bytes| (bytes.0 / self.packet).clamp(1, u64::from(SSTHRESH_INFINITE)) as u32;
        let pacing = if pacing_rate == Rate::UNLIMITED {
            PACING_NONE
        } else {
            let wire = u128::from(pacing_rate.0) * u128::from(self.payload);
            (wire / u128::from(8 * self.packet)).max(1) as u64
        };
        Some(Allowed {
            cwnd: packets(cwnd),
            ssthresh: packets(ssthresh),
            pacing,
            growing: self.growing,
            base: self.seen.delivered.wrapping_sub(self.seen.held),
        })
    }
}

#[cfg(test)]
#[path = "tests/adapter.rs"]
mod tests;
