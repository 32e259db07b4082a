//! Metrics of monitor intervals, in two accounts: what *arrived* since the previous decision, and what
//! became of the packets *sent* in one interval, which is the credit of the decision that began it.
use crate::control::{Ack, Loss, LossKind};
use crate::decision::{Credit, Metrics};
use crate::units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// Maximum number of open intervals; one more closes the oldest early (proposed).
const INTERVALS_MAX: usize = 4096;

/// The flow's state when an interval ends.
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

/// Sums over the acknowledged and lost packets of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Bytes; a share of a packet where a batch is split between intervals.
    acked: f64,
    lost: f64,
    rtt: Samples,
    /// Time between acknowledgements, and the packets acknowledged after it.
    gap_s: f64,
    gaps: f64,
}

/// Round-trip samples.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    weight: f64,
    sum_s: f64,
    min: Span,
    first: Span,
    last: Span,
    /// Sums for the slope, of differences to the first sample, for precision.
    origin: Time,
    x: f64,
    xx: f64,
    y: f64,
    xy: f64,
}

impl Samples {
    #[inline]
    fn add(&mut self, now: Time, rtt: Span, rtt_s: f64, weight: f64) {
        if self.weight == 0.0 {
            *self = Self { min: rtt, first: rtt, origin: now, ..Self::default() };
        }
        self.min = self.min.min(rtt);
        self.last = rtt;
        self.weight += weight;
        self.sum_s += weight * rtt_s;
        let x = now.since(self.origin).as_secs_f64();
        let y = rtt.0.wrapping_sub(self.first.0) as i64 as f64 / 1e9;
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

/// What a record of deliveries, or a share of one, adds to an account.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    now: Time,
    bytes: f64,
    packets: f64,
    /// Zero without a sample.
    rtt: Span,
    rtt_s: f64,
    /// Time since the record before, if there was one.
    gap_s: Option<f64>,
}

impl Entry {
    /// Of a part of the record's packets.
    fn share(&self, part: f64, mss: f64) -> Self {
        let bytes = part * self.bytes;
        let gap_s = self.gap_s.map(|gap_s| part * gap_s);
        Self { bytes, packets: bytes / mss, gap_s, ..*self }
    }
}

/// Makes the entries of a flow's records, one after the other.
#[derive(Clone, Debug)]
pub struct Entries {
    mss: f64,
    last: Option<Time>,
}

impl Entries {
    /// `mss` is the size of a full packet, in bytes.
    pub fn new(mss: f64) -> Self {
        Self { mss, last: None }
    }

    /// The entry of the next record.
    #[inline]
    pub fn next(&mut self, ack: &Ack) -> Entry {
        let bytes = ack.acked.0 as f64;
        let gap_s = self.last.replace(ack.now).map(|last| ack.now.since(last).as_secs_f64());
        let (rtt, rtt_s) = (ack.rtt, ack.rtt.as_secs_f64());
        Entry { now: ack.now, bytes, packets: bytes / self.mss, rtt, rtt_s, gap_s }
    }
}

impl Account {
    #[inline]
    fn add(&mut self, entry: &Entry) {
        self.acked += entry.bytes;
        if entry.rtt > Span::ZERO && entry.packets > 0.0 {
            self.rtt.add(entry.now, entry.rtt, entry.rtt_s, entry.packets);
        }
        if let Some(gap_s) = entry.gap_s {
            self.gap_s += gap_s;
            self.gaps += entry.packets;
        }
    }

    /// The metrics of an interval that ends at `now`.
    pub fn metrics(&self, now: Time, duration: Span, state: &State, mss: f64) -> Metrics {
        let duration_s = duration.as_secs_f64();
        let all = self.acked + self.lost;
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let unpaced = state.pacing == Rate::UNLIMITED;
        Metrics {
            time_s: now.as_secs_f64(),
            duration_s,
            acked_packets: self.acked / mss,
            lost_packets: self.lost / mss,
            throughput_mbps: ratio(self.acked * 8e-6, duration_s),
            loss_ratio: ratio(self.lost, all),
            rtt_mean_ms: self.rtt.mean_s() * 1e3,
            rtt_min_ms: self.rtt.min.as_millis_f64(),
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

/// The account of what arrived since the previous interval ended.
#[derive(Clone, Debug)]
pub struct Arrived {
    mss: f64,
    account: Account,
    since: Time,
    /// Bytes sent by the latest record, and by the end of the last interval.
    sent: u64,
    sent_before: u64,
    lost: u64,
}

impl Arrived {
    /// An empty account; `mss` is the size of a full packet, in bytes.
    pub fn new(mss: f64, start: Time) -> Self {
        Self { mss, account: Account::default(), since: start, sent: 0, sent_before: 0, lost: 0 }
    }

    /// Something was delivered.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack, entry: &Entry) {
        self.account.add(entry);
        // What was sent is delivered, lost or on its way.
        let sent = ack.delivered.0.saturating_add(ack.inflight.0).saturating_add(self.lost);
        self.sent = self.sent.max(sent);
    }

    /// Something was lost.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.account.lost += lost_bytes(loss);
        self.lost = self.lost.saturating_add(lost_bytes(loss) as u64);
    }

    /// Bytes sent so far according to the records, retransmissions included.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Packets sent since the last interval ended.
    pub fn sent_packets(&self) -> f64 {
        (self.sent - self.sent_before) as f64 / self.mss
    }

    /// Metrics of the interval so far.
    pub fn metrics(&self, now: Time, state: &State) -> Metrics {
        self.account.metrics(now, now.since(self.since), state, self.mss)
    }

    /// Begins the next interval.
    pub fn restart(&mut self, now: Time) {
        self.account = Account::default();
        self.since = now;
        self.sent_before = self.sent;
    }
}

fn lost_bytes(loss: &Loss) -> f64 {
    match loss.kind {
        LossKind::Gap | LossKind::More | LossKind::Timeout | LossKind::TimeoutAgain => {
            loss.lost.0 as f64
        }
        LossKind::Deflate | LossKind::Idle | LossKind::Spurious => 0.0,
    }
}

/// An interval, from its decision until the fate of its packets is known.
#[derive(Clone, Copy, Debug)]
struct Interval {
    /// `None` for packets sent without a decision.
    decision: Option<u64>,
    start: Time,
    /// When the next one began.
    until: Time,
    /// Bytes sent before it, according to the records.
    sent_before: u64,
    /// When the first of its packets was acknowledged, if any was.
    first_ack: Option<Time>,
    account: Account,
    state: State,
}

impl Interval {
    #[inline]
    fn add(&mut self, entry: &Entry) {
        self.first_ack.get_or_insert(entry.now);
        self.account.add(entry);
    }
}

/// Assigns deliveries and losses to the interval in which their packets were sent.
///
/// An interval is closed by the first acknowledgement of a packet of a later interval, or two smoothed round
/// trips after it ended; then its packets that are neither acknowledged nor lost count as lost. A record of several
/// packets stands for packets sent evenly between the newest of the record before and its own.
#[derive(Clone, Debug)]
pub struct IntervalAccounts {
    mss: f64,
    /// In order of their start; the last one is the present interval.
    open: VecDeque<Interval>,
    /// Closed and not taken yet, with the end and the duration.
    closed: VecDeque<(u64, Interval, Time, Span)>,
    last_sent_at: Time,
    srtt: Span,
}

impl IntervalAccounts {
    /// Accounts without an interval.
    pub fn new(mss: f64) -> Self {
        let (open, closed) = (VecDeque::new(), VecDeque::new());
        Self { mss, open, closed, last_sent_at: Time(0), srtt: Span::ZERO }
    }

    /// Begins an interval, with a decision or without: packets sent from now on belong to it. `sent`
    /// are the bytes sent so far.
    pub fn begin(&mut self, now: Time, decision: Option<u64>, sent: u64, state: State) {
        if self.open.len() == INTERVALS_MAX {
            self.close_first(now, false);
        }
        self.open.push_back(Interval {
            decision,
            start: now,
            until: Time::NEVER,
            sent_before: sent,
            first_ack: None,
            account: Account::default(),
            state,
        });
    }

    /// Something was delivered.
    pub fn on_ack(&mut self, ack: &Ack, entry: &Entry) {
        self.srtt = ack.srtt;
        let from = self.last_sent_at.min(ack.sent_at);
        self.last_sent_at = self.last_sent_at.max(ack.sent_at);
        let newest = self.index_of(ack.sent_at);
        // One packet or a late retransmission: there is no span to share by.
        if entry.packets <= 1.0 || from == ack.sent_at {
            if let Some(newest) = newest {
                self.open[newest].add(entry);
            }
        } else {
            self.spread(ack.sent_at, from, newest, entry);
        }
        for _ in 0..newest.unwrap_or(0) {
            self.close_first(ack.now, false);
        }
        while self.open.get(1).is_some_and(|next| ack.now.since(next.start) > ack.srtt * 2) {
            self.close_first(ack.now, true);
        }
    }

    /// Shares what was sent from `from` to `sent_at` among the intervals up to `newest`.
    fn spread(&mut self, sent_at: Time, from: Time, newest: Option<usize>, entry: &Entry) {
        let oldest = self.index_of(from);
        for index in oldest.unwrap_or(0)..newest.map_or(0, |newest| newest + 1) {
            let begin = self.open[index].start.max(from);
            let end = self.open.get(index + 1).map_or(sent_at, |next| next.start);
            let part = end.min(sent_at).since(begin).0 as f64 / sent_at.since(from).0 as f64;
            if part > 0.0 || Some(index) == newest {
                self.open[index].add(&entry.share(part, self.mss));
            }
        }
    }

    /// Something was lost. A closed interval that was not taken yet still counts it: losses at its end
    /// are detected a few packets later.
    pub fn on_loss(&mut self, loss: &Loss) {
        let lost = lost_bytes(loss);
        if let Some(index) = self.index_of(loss.sent_at) {
            self.open[index].account.lost += lost;
        } else if let Some((_, interval, ..)) =
            self.closed.iter_mut().rev().find(|(_, interval, ..)| interval.start <= loss.sent_at)
        {
            interval.account.lost += lost;
        }
    }

    /// Removes the earliest closed interval.
    pub fn take(&mut self) -> Option<Credit> {
        let (decision, interval, end, duration) = self.closed.pop_front()?;
        let state = State { srtt: self.srtt, ..interval.state };
        let metrics = interval.account.metrics(end, duration, &state, self.mss);
        Some(Credit { decision, metrics, sent_from: interval.start, sent_until: interval.until })
    }

    /// The interval in which a packet was sent; `None` if that was before the first interval.
    fn index_of(&self, sent_at: Time) -> Option<usize> {
        // Most packets are of the earliest open interval: those before it are closed.
        if self.open.get(1).is_none_or(|second| second.start > sent_at) {
            return self.open.front().filter(|first| first.start <= sent_at).map(|_| 0);
        }
        self.open.partition_point(|interval| interval.start <= sent_at).checked_sub(1)
    }

    fn close_first(&mut self, now: Time, missing_is_lost: bool) {
        let Some(mut interval) = self.open.pop_front() else { return };
        interval.until = self.open.front().map_or(now, |next| next.start);
        if missing_is_lost && let Some(next) = self.open.front() {
            let sent = next.sent_before.saturating_sub(interval.sent_before) as f64;
            let known = interval.account.acked + interval.account.lost;
            interval.account.lost += (sent - known).max(0.0);
        }
        let duration = now.since(interval.first_ack.unwrap_or(interval.start));
        let Some(decision) = interval.decision else { return };
        self.closed.push_back((decision, interval, now, duration));
        if self.closed.len() > INTERVALS_MAX {
            self.closed.pop_front();
        }
    }
}

#[cfg(test)]
#[path = "tests/metrics.rs"]
mod tests;
