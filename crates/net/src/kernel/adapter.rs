//! From what the kernel tells of a flow to what its controller is told, and back.
use super::record::{Flow, PACING_NONE, Record, SSTHRESH_INFINITE, flag, kind};
use ackademy::control::{Ack, Control, Coupled, FlowInfo, Loss, LossKind, Recovery, SubflowId};
use ackademy::units::{Bytes, Rate, Span, Time};

/// Largest window that a sender obeys, as the simulator's, in bytes.
const CWND_MAX: Bytes = Bytes(1 << 40);
/// A flow is its governor's only subflow.
const SUBFLOW: SubflowId = SubflowId(0);

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

/// One flow and what governs it.
pub struct Adapter {
    governor: Box<dyn Coupled>,
    /// A full packet on the wire.
    packet: u64,
    /// Its payload.
    payload: u64,
    seen: Counts,
    /// Since the controller came.
    delivered: Bytes,
    delivery_rate: Rate,
    sent_at: Time,
    growing: bool,
    /// Time does not run back, though a timer may overtake a record.
    now: Time,
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
        start: Time(flow.opened_at),
        seed: flow.opened_at ^ u64::from(flow.generation),
    }
}

impl Adapter {
    /// Puts the flow under `governor`, which hears of what comes after the record `first`.
    pub fn new(flow: &Flow, first: &Record, mut governor: Box<dyn Coupled>) -> Self {
        let info = flow_info(flow);
        governor.subflow_added(SUBFLOW, &info);
        Self {
            governor,
            packet: info.mss.0,
            payload: u64::from(flow.mss),
            seen: Counts::of(first),
            delivered: Bytes::ZERO,
            delivery_rate: Rate(0),
            sent_at: info.start,
            growing: false,
            now: info.start,
        }
    }

    /// What governs the flow, back.
    pub fn into_governor(self) -> Box<dyn Coupled> {
        self.governor
    }

    /// Tells the controller what a record tells.
    pub fn on_record(&mut self, record: &Record) {
        self.now = self.now.max(Time(record.now));
        self.sent_at = self.sent_at.max(Time(record.sent_at)).min(self.now);
        let counts = Counts::of(record);
        let delivered = counts.delivered.wrapping_sub(self.seen.delivered);
        let held = counts.held.wrapping_sub(self.seen.held).min(delivered);
        let lost = counts.lost.wrapping_sub(self.seen.lost);
        self.seen = counts;
        self.take_rate(record);
        let before = self.governor.control(SUBFLOW).cwnd;
        // Duplicate acknowledgements come before a gap is known, and the end of a recovery after
        // what was delivered in it.
        let parts = [(held, 1), (delivered - held, 0)];
        let (first, last) =
            if record.kind == kind::GAP { (parts[1], parts[0]) } else { (parts[0], parts[1]) };
        if first.0 > 0 {
            let earlier = Record {
                rtt_us: if last.0 > 0 { 0 } else { record.rtt_us },
                rtt_max_us: if last.0 > 0 { 0 } else { record.rtt_max_us },
                inflight: record.inflight.saturating_add(last.0),
                ..*record
            };
            self.tell_ack(&earlier, first.0, first.1);
        }
        if last.0 > 0 {
            self.tell_ack(record, last.0, last.1);
        }
        let grew = self.governor.control(SUBFLOW).cwnd.saturating_sub(before);
        let fed = u64::from(delivered - held) * self.packet;
        if fed > 0 {
            self.growing = grew.0.abs_diff(fed) * 10 <= fed;
        }
        match record.kind {
            kind::GAP => self.tell_loss(record, lost, LossKind::Gap),
            kind::TIMEOUT => self.tell_loss(record, lost, LossKind::Timeout),
            kind::IDLE => self.tell_loss(record, lost, LossKind::Idle),
            _ if lost > 0 => self.tell_loss(record, lost, LossKind::More),
            _ => {}
        }
    }

    fn take_rate(&mut self, record: &Record) {
        if record.rate_interval_us > 0 {
            let bytes = Bytes(u64::from(record.rate_delivered) * self.packet);
            let interval = Span::from_micros(u64::from(record.rate_interval_us));
            self.delivery_rate = Rate::of(bytes, interval);
        }
    }

    fn tell_ack(&mut self, record: &Record, packets: u32, recovering: u64) {
        let micros = |us: u32| Span::from_micros(u64::from(us));
        let acked = Bytes(u64::from(packets) * self.packet);
        self.delivered = Bytes(self.delivered.0 + acked.0);
        let ack = Ack {
            now: self.now,
            sent_at: self.sent_at,
            rtt: micros(record.rtt_us),
            srtt: micros(record.srtt_us),
            min_rtt: micros(record.min_rtt_us),
            rtt_max: micros(record.rtt_max_us),
            acked,
            ce_marked: Bytes::ZERO,
            inflight: Bytes(u64::from(record.inflight) * self.packet),
            delivered: self.delivered,
            delivery_rate: self.delivery_rate,
            app_limited: u64::from(record.flags & flag::APP_LIMITED != 0),
            recovering,
            cwnd_limited: u64::from(record.flags & flag::CWND_LIMITED != 0),
        };
        self.governor.on_ack(SUBFLOW, &ack);
    }

    fn tell_loss(&mut self, record: &Record, lost: u32, kind: LossKind) {
        self.growing = false;
        let outstanding = u64::from(record.flight) * self.packet;
        let loss = Loss {
            now: self.now,
            sent_at: self.sent_at,
            lost: Bytes(u64::from(lost) * self.packet),
            inflight: Bytes(outstanding).min(self.governor.control(SUBFLOW).cwnd),
            kind,
        };
        self.governor.on_loss(SUBFLOW, &loss);
    }

    /// The time has come that the controller asked for.
    pub fn on_timer(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.governor.on_timer(SUBFLOW, self.now);
    }

    /// When the controller wants [`Self::on_timer`] next.
    pub fn next_timer(&self) -> Option<Time> {
        self.governor.next_timer(SUBFLOW)
    }

    /// What the controller allows now; `None` if no sender can obey it.
    pub fn allowed(&self) -> Option<Allowed> {
        let Control { cwnd, pacing_rate, ssthresh } = self.governor.control(SUBFLOW);
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
