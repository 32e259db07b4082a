//! What an interval achieved, in two accounts: what *arrived* since the last decision, and what
//! became of the packets *sent* in one slot, to whose decision the credit is due.
use crate::control::{Ack, Loss, LossKind};
use crate::units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// How many numbers an interval has.
pub const MEASURES: usize = 17;

/// Their names, in order.
pub const NAMES: [&str; MEASURES] = [
    "time_s",
    "duration_s",
    "acked_packets",
    "lost_packets",
    "throughput_mbps",
    "loss_ratio",
    "rtt_mean_ms",
    "rtt_min_ms",
    "rtt_first_ms",
    "rtt_last_ms",
    "rtt_slope",
    "flow_min_rtt_ms",
    "srtt_ms",
    "ack_gap_ms",
    "cwnd_packets",
    "inflight_packets",
    "pacing_mbps",
];

/// Most slots whose packets are followed at once; of more, the oldest is closed early (proposed).
const SLOTS_MAX: usize = 4096;

/// What an interval achieved; 0 where there is no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measures {
    /// End of the interval, s since the run began.
    pub time_s: f64,
    /// Its length, s.
    pub duration_s: f64,
    /// Newly delivered, packets.
    pub acked_packets: f64,
    /// Declared lost, packets.
    pub lost_packets: f64,
    /// Newly delivered, Mb/s, headers included where the scenario counts them.
    pub throughput_mbps: f64,
    /// Lost of lost and delivered, in [0, 1].
    pub loss_ratio: f64,
    /// Mean of the round-trip samples, weighted by the packets they stand for, ms.
    pub rtt_mean_ms: f64,
    /// Smallest sample, ms.
    pub rtt_min_ms: f64,
    /// First sample, ms.
    pub rtt_first_ms: f64,
    /// Last sample, ms.
    pub rtt_last_ms: f64,
    /// Least-squares slope of the samples over the time of their arrival, s/s.
    pub rtt_slope: f64,
    /// Smallest round trip of the flow, or of the last 10 s, ms.
    pub flow_min_rtt_ms: f64,
    /// Smoothed round trip at the end, ms.
    pub srtt_ms: f64,
    /// Mean time between acknowledged packets, ms.
    pub ack_gap_ms: f64,
    /// Window: *arrived* at the end, before the decision; *credit* after the decision, packets.
    pub cwnd_packets: f64,
    /// In flight at the same time, packets.
    pub inflight_packets: f64,
    /// Pacing rate at the same time, Mb/s; 0 without pacing.
    pub pacing_mbps: f64,
}

impl Measures {
    /// In the order of [`NAMES`].
    pub fn row(&self) -> [f64; MEASURES] {
        [
            self.time_s,
            self.duration_s,
            self.acked_packets,
            self.lost_packets,
            self.throughput_mbps,
            self.loss_ratio,
            self.rtt_mean_ms,
            self.rtt_min_ms,
            self.rtt_first_ms,
            self.rtt_last_ms,
            self.rtt_slope,
            self.flow_min_rtt_ms,
            self.srtt_ms,
            self.ack_gap_ms,
            self.cwnd_packets,
            self.inflight_packets,
            self.pacing_mbps,
        ]
    }
}

/// What the flow is at when an interval ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// Window, packets.
    pub cwnd_packets: f64,
    /// In flight.
    pub inflight: Bytes,
    /// Pacing rate.
    pub pacing: Rate,
    /// Smallest round trip.
    pub rtt_min: Span,
    /// Smoothed round trip.
    pub srtt: Span,
}

/// Adds up what is heard of an interval's packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Bytes, which may be parts of packets where a batch is split.
    acked: f64,
    lost: f64,
    rtt: Samples,
    /// Time between acknowledgements, and the packets it is shared by.
    gap_s: f64,
    gaps: f64,
}

/// Round-trip samples.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    weight: f64,
    sum_s: f64,
    least: Span,
    first: Span,
    last: Span,
    /// Sums for the slope, of differences to the first sample, which keeps them exact enough.
    origin: Time,
    x: f64,
    xx: f64,
    y: f64,
    xy: f64,
}

impl Samples {
    fn add(&mut self, now: Time, rtt: Span, weight: f64) {
        if self.weight == 0.0 {
            *self = Self { least: rtt, first: rtt, origin: now, ..Self::default() };
        }
        self.least = self.least.min(rtt);
        self.last = rtt;
        self.weight += weight;
        self.sum_s += weight * rtt.as_secs_f64();
        let x = now.since(self.origin).as_secs_f64();
        let y = (rtt.0 as f64 - self.first.0 as f64) / 1e9;
        self.x += weight * x;
        self.xx += weight * x * x;
        self.y += weight * y;
        self.xy += weight * x * y;
    }

    fn slope(&self) -> f64 {
        let spread = self.xx * self.weight - self.x * self.x;
        // Samples of one moment leave a rounding error here, not zero.
        if spread <= 1e-9 * self.xx * self.weight {
            return 0.0;
        }
        (self.xy * self.weight - self.x * self.y) / spread
    }

    fn mean_s(&self) -> f64 {
        if self.weight > 0.0 { self.sum_s / self.weight } else { 0.0 }
    }
}

impl Account {
    /// Books `share` of a record's packets; `gap` is the time since the record before.
    fn add(&mut self, ack: &Ack, share: f64, gap: Option<Span>, mss: f64) {
        let bytes = share * ack.acked.0 as f64;
        let packets = bytes / mss;
        self.acked += bytes;
        if ack.rtt > Span::ZERO && packets > 0.0 {
            self.rtt.add(ack.now, ack.rtt, packets);
        }
        if let Some(gap) = gap {
            self.gap_s += share * gap.as_secs_f64();
            self.gaps += packets;
        }
    }

    /// Sum up over an interval that ends at `now`.
    pub fn measures(&self, now: Time, duration: Span, state: &State, mss: f64) -> Measures {
        let duration_s = duration.as_secs_f64();
        let all = self.acked + self.lost;
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let unpaced = state.pacing == Rate::UNLIMITED;
        Measures {
            time_s: now.as_secs_f64(),
            duration_s,
            acked_packets: self.acked / mss,
            lost_packets: self.lost / mss,
            throughput_mbps: ratio(self.acked * 8e-6, duration_s),
            loss_ratio: ratio(self.lost, all),
            rtt_mean_ms: self.rtt.mean_s() * 1e3,
            rtt_min_ms: self.rtt.least.as_millis_f64(),
            rtt_first_ms: self.rtt.first.as_millis_f64(),
            rtt_last_ms: self.rtt.last.as_millis_f64(),
            rtt_slope: self.rtt.slope(),
            flow_min_rtt_ms: state.rtt_min.as_millis_f64(),
            srtt_ms: state.srtt.as_millis_f64(),
            ack_gap_ms: ratio(self.gap_s * 1e3, self.gaps),
            cwnd_packets: state.cwnd_packets,
            inflight_packets: state.inflight.0 as f64 / mss,
            pacing_mbps: if unpaced { 0.0 } else { state.pacing.as_mbps() },
        }
    }
}

/// What arrived since the last slot ended.
#[derive(Clone, Debug)]
pub struct Arrived {
    mss: f64,
    account: Account,
    since: Time,
    last_ack: Option<Time>,
    /// Bytes sent by the latest record, and by the end of the last slot.
    sent: u64,
    sent_before: u64,
    lost: u64,
}

impl Arrived {
    /// Nothing yet; `mss` is the size of a full packet, in bytes.
    pub fn new(mss: f64, start: Time) -> Self {
        Self {
            mss,
            account: Account::default(),
            since: start,
            last_ack: None,
            sent: 0,
            sent_before: 0,
            lost: 0,
        }
    }

    /// Something was delivered.
    pub fn on_ack(&mut self, ack: &Ack) {
        let gap = self.last_ack.map(|last| ack.now.since(last));
        self.account.add(ack, 1.0, gap, self.mss);
        self.last_ack = Some(ack.now);
        // What was sent is delivered, lost or on its way.
        let sent = ack.delivered.0.saturating_add(ack.inflight.0).saturating_add(self.lost);
        self.sent = self.sent.max(sent);
    }

    /// Something was lost.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.account.lost += lost_bytes(loss);
        self.lost = self.lost.saturating_add(lost_bytes(loss) as u64);
    }

    /// Bytes sent so far, as far as the records tell, retransmissions included.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Packets sent since the last slot ended.
    pub fn sent_packets(&self) -> f64 {
        (self.sent - self.sent_before) as f64 / self.mss
    }

    /// The slot so far.
    pub fn measures(&self, now: Time, state: &State) -> Measures {
        self.account.measures(now, now.since(self.since), state, self.mss)
    }

    /// Begins the next slot.
    pub fn restart(&mut self, now: Time) {
        self.account = Account::default();
        self.since = now;
        self.sent_before = self.sent;
    }
}

fn lost_bytes(loss: &Loss) -> f64 {
    match loss.kind {
        LossKind::Gap | LossKind::More | LossKind::Timeout => loss.lost.0 as f64,
        LossKind::Deflate | LossKind::Idle | LossKind::Spurious => 0.0,
    }
}

/// A slot, from its decision until what became of its packets is known.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// `None` for what was sent without a decision.
    decision: Option<u64>,
    start: Time,
    /// Bytes sent before it, as the records tell.
    sent_before: u64,
    /// Whether anything of it was delivered, and when first.
    first_ack: Option<Time>,
    account: Account,
    state: State,
}

/// A slot whose account is closed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Credit {
    /// The decision that began it.
    pub decision: u64,
    /// What became of its packets.
    pub measures: Measures,
}

/// Books deliveries and losses to the slot in which their packets were sent.
///
/// A slot is closed by the first acknowledgement of a packet of a later slot, or two smoothed round
/// trips after it ended; then what is still missing of it counts as lost. A record of several
/// packets stands for packets sent evenly between the newest of the record before and its own.
#[derive(Clone, Debug)]
pub struct Ledger {
    mss: f64,
    /// In order of their start; the last one is being sent in.
    open: VecDeque<Slot>,
    /// Closed and not taken, with when their packets began and ended.
    closed: VecDeque<(u64, Slot, Time, Span)>,
    last_ack: Option<Time>,
    last_sent_at: Time,
    srtt: Span,
}

impl Ledger {
    /// No slot yet.
    pub fn new(mss: f64) -> Self {
        let (open, closed) = (VecDeque::new(), VecDeque::new());
        Self { mss, open, closed, last_ack: None, last_sent_at: Time(0), srtt: Span::ZERO }
    }

    /// A decision, or none, begins a slot: what is sent from now on is of it. `sent` are the bytes
    /// sent so far.
    pub fn begin(&mut self, now: Time, decision: Option<u64>, sent: u64, state: State) {
        if self.open.len() == SLOTS_MAX {
            self.close_first(now, false);
        }
        self.open.push_back(Slot {
            decision,
            start: now,
            sent_before: sent,
            first_ack: None,
            account: Account::default(),
            state,
        });
    }

    /// Something was delivered.
    pub fn on_ack(&mut self, ack: &Ack) {
        let gap = self.last_ack.map(|last| ack.now.since(last));
        self.last_ack = Some(ack.now);
        self.srtt = ack.srtt;
        let from = self.last_sent_at.min(ack.sent_at);
        self.last_sent_at = self.last_sent_at.max(ack.sent_at);
        let packets = ack.acked.0 as f64 / self.mss;
        // One packet, or a late repair: no stretch of time to share by.
        let point = packets <= 1.0 || from == ack.sent_at;
        let from = if point { ack.sent_at } else { from };
        let newest = self.index_of(ack.sent_at);
        let oldest = self.index_of(from);
        for index in oldest.unwrap_or(0)..newest.map_or(0, |newest| newest + 1) {
            let begin = self.open[index].start.max(from);
            let end = self.open.get(index + 1).map_or(ack.sent_at, |next| next.start);
            let share = if point {
                1.0
            } else {
                let part = end.min(ack.sent_at).since(begin).0 as f64;
                part / ack.sent_at.since(from).0 as f64
            };
            if share <= 0.0 && Some(index) != newest {
                continue;
            }
            let slot = &mut self.open[index];
            slot.first_ack.get_or_insert(ack.now);
            slot.account.add(ack, share, gap, self.mss);
        }
        for _ in 0..newest.unwrap_or(0) {
            self.close_first(ack.now, false);
        }
        while self.open.get(1).is_some_and(|next| ack.now.since(next.start) > ack.srtt * 2) {
            self.close_first(ack.now, true);
        }
    }

    /// Something was lost. A slot that is closed but not taken still hears of it: the losses at its
    /// end are known a few packets later.
    pub fn on_loss(&mut self, loss: &Loss) {
        let lost = lost_bytes(loss);
        if let Some(index) = self.index_of(loss.sent_at) {
            self.open[index].account.lost += lost;
        } else if let Some((_, slot, ..)) =
            self.closed.iter_mut().rev().find(|(_, slot, ..)| slot.start <= loss.sent_at)
        {
            slot.account.lost += lost;
        }
    }

    /// The earliest slot that is closed.
    pub fn take(&mut self) -> Option<Credit> {
        let (decision, slot, end, duration) = self.closed.pop_front()?;
        let state = State { srtt: self.srtt, ..slot.state };
        let measures = slot.account.measures(end, duration, &state, self.mss);
        Some(Credit { decision, measures })
    }

    /// Sent before the first slot: nobody's.
    fn index_of(&self, sent_at: Time) -> Option<usize> {
        self.open.partition_point(|slot| slot.start <= sent_at).checked_sub(1)
    }

    fn close_first(&mut self, now: Time, missing_is_lost: bool) {
        let Some(mut slot) = self.open.pop_front() else { return };
        if missing_is_lost && let Some(next) = self.open.front() {
            let sent = next.sent_before.saturating_sub(slot.sent_before) as f64;
            let known = slot.account.acked + slot.account.lost;
            slot.account.lost += (sent - known).max(0.0);
        }
        let duration = now.since(slot.first_ack.unwrap_or(slot.start));
        let Some(decision) = slot.decision else { return };
        self.closed.push_back((decision, slot, now, duration));
        if self.closed.len() > SLOTS_MAX {
            self.closed.pop_front();
        }
    }
}

#[cfg(test)]
#[path = "tests/measures.rs"]
mod tests;
