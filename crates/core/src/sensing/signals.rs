//! What a flow can tell of its bottleneck at the end of a monitor interval: the interval's round trips,
//! losses and marks, and how they compare with those of the last ten seconds. One code for the law
//! `own_queue`, for training and for deployment.
use super::jitter::Jitter;
use crate::control::{Ack, Loss, LossKind};
use crate::sensing::windowed_max::WindowedMax;
use crate::sensing::windowed_min::WindowedMin;
use crate::units::{Bytes, Span, Time};

/// Over how long the smallest round trip and the largest delivery rate are taken.
pub const WINDOW: Span = Span::from_millis(10_000);
/// A sample so close to the base, as a factor, confirms it.
pub const NEAR_BASE: f64 = 1.02;
/// Weight of an interval in the delivery rate.
const DELIVERY_GAIN: f64 = 0.25;
/// Weight of an interval in the spread of the delivery rate.
const SPREAD_GAIN: f64 = 1.0 / 16.0;
/// Intervals that the drain looks at.
const DRAIN_INTERVALS: usize = 4;
/// Below so much queue the drain is 0: there is none to speak of.
const DRAIN_MIN: Span = Span::from_millis(1);

/// One monitor interval and what is known at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// When it ended.
    pub now: Time,
    /// How long it was.
    pub duration: Span,
    /// Smallest round trip of the interval. This, the mean and the spread are those of the latest interval
    /// with a sample where this one has none, and zero before the first sample.
    pub rtt_min: Span,
    /// Mean round trip, weighted by packets.
    pub rtt_mean: Span,
    /// Standard deviation of the round trips, weighted by packets.
    pub rtt_sd: Span,
    /// Smoothed round trip (RFC 6298) of the latest record.
    pub srtt: Span,
    /// Smallest round trip of the last 10 s, to within 1/64 of that time.
    pub base: Span,
    /// Since a sample of at most 1.02 times `base` arrived.
    pub base_age: Span,
    /// By so much jitter alone keeps the smallest round trips of intervals above `base`.
    pub jitter: Span,
    /// Newly delivered.
    pub acked_packets: f64,
    /// Declared lost.
    pub lost_packets: f64,
    /// Delivered with a congestion mark. Where the sender answers marks itself, which it tells by a
    /// [`LossKind::Gap`] of no bytes once per round trip (RFC 3168), each of those counts as one packet.
    pub marked_packets: f64,
    /// Lost of the lost and the delivered, in [0, 1].
    pub loss_ratio: f64,
    /// Marked of the delivered, in [0, 1].
    pub ce_ratio: f64,
    /// Part of the delivered whose samples the application limited, in [0, 1].
    pub app_limited_share: f64,
    /// Mean of what acknowledgements found in flight, weighted by packets; that of the latest interval with
    /// a delivery where this one has none.
    pub inflight_mean_packets: f64,
    /// Delivered per second: average over the intervals with weight 1/4 for the newest.
    pub delivery_pps: f64,
    /// Largest `delivery_pps` of the last 10 s.
    pub delivery_max_pps: f64,
    /// Difference between what successive intervals delivered per second, beyond one packet, over the larger of the two:
    /// average with weight 1/16 for the newest, in [0, 1].
    pub delivery_spread: f64,
    /// Whether the queue ever drains: (smallest R - base) / (largest R - base), where R are the smallest
    /// round trips of the last four intervals, in [0, 1]; 0 where the largest is below 1 ms over the base.
    pub drain: f64,
    /// `rtt_min` minus that of the interval before, over the duration: seconds per second.
    pub rtt_change_per_s: f64,
    /// Whole intervals since the last one with a loss: 0 in that one, [`u32::MAX`] before the first loss.
    pub intervals_since_loss: u32,
    /// Whether the retransmission timer expired in it.
    pub timeout: bool,
}

/// Sums over the interval that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    acked: f64,
    lost: f64,
    /// Part of `lost` from before the latest episode.
    lost_before: f64,
    marked: f64,
    app_limited: f64,
    inflight: f64,
    timeout: bool,
    rtt: Samples,
}

/// Round-trip samples. Sums are of differences to the first sample, for precision.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    weight: f64,
    first: Span,
    min: Span,
    min_at: Time,
    sum_s: f64,
    square_s2: f64,
}

impl Samples {
    fn add(&mut self, now: Time, rtt: Span, weight: f64) {
        if self.weight == 0.0 {
            *self = Self { first: rtt, min: rtt, min_at: now, ..Self::default() };
        }
        if rtt <= self.min {
            (self.min, self.min_at) = (rtt, now);
        }
        let difference_s = (rtt.0 as f64 - self.first.0 as f64) / 1e9;
        self.weight += weight;
        self.sum_s += weight * difference_s;
        self.square_s2 += weight * difference_s * difference_s;
    }

    /// Mean and standard deviation.
    fn spread(&self) -> (Span, Span) {
        let mean_s = self.sum_s / self.weight;
        let variance = self.square_s2 / self.weight - mean_s * mean_s;
        let sd_s = libm::sqrt(variance.max(0.0));
        (Span::from_secs_f64(self.first.as_secs_f64() + mean_s), Span::from_secs_f64(sd_s))
    }
}

/// Measures the monitor intervals of one flow.
#[derive(Clone, Debug)]
pub struct Signals {
    mss: f64,
    sums: Sums,
    base: WindowedMin,
    /// When a sample near the base last arrived.
    near_base: Time,
    jitter: Jitter,
    delivery_max: WindowedMax,
    /// Smallest round trips of the latest intervals; zeros before there are as many.
    recent: [Span; DRAIN_INTERVALS],
    /// Until the first delivery its rate is no average.
    delivered: bool,
    /// Delivered per second in the latest interval with a delivery.
    rate_pps: f64,
    last: Interval,
}

impl Signals {
    /// The first interval begins at `start`; `mss` is the size of a full packet.
    pub fn new(mss: Bytes, start: Time) -> Self {
        let last = Interval { now: start, intervals_since_loss: u32::MAX, ..Interval::default() };
        Self {
            mss: mss.0.max(1) as f64,
            sums: Sums::default(),
            base: WindowedMin::default(),
            near_base: start,
            jitter: Jitter::default(),
            delivery_max: WindowedMax::new(WINDOW.0),
            recent: [Span::ZERO; DRAIN_INTERVALS],
            delivered: false,
            rate_pps: 0.0,
            last,
        }
    }

    /// Something was delivered.
    pub fn on_ack(&mut self, ack: &Ack) {
        let packets = ack.acked.0 as f64 / self.mss;
        let found = ack.prior_inflight.max(ack.inflight).0 as f64 / self.mss;
        self.sums.acked += packets;
        self.sums.marked += (ack.ce_marked.0 as f64 / self.mss).min(packets);
        self.sums.app_limited += if ack.app_limited == 1 { packets } else { 0.0 };
        self.sums.inflight += packets * found;
        if ack.rtt > Span::ZERO {
            self.sample(ack, packets.max(1.0));
        }
        self.last.srtt = ack.srtt;
    }

    /// Of a batch the newest sample, the smallest and the largest are known: each of the two ends counts as
    /// one packet, the others as the newest.
    fn sample(&mut self, ack: &Ack, packets: f64) {
        let rtt = &mut self.sums.rtt;
        let known = ack.batch_rtt_min > Span::ZERO;
        let smallest = if known { ack.batch_rtt_min.min(ack.rtt) } else { ack.rtt };
        let largest = ack.rtt_max.max(ack.rtt);
        if packets < 2.0 || smallest == largest {
            return rtt.add(ack.now, ack.rtt, packets);
        }
        rtt.add(ack.now, smallest, 1.0);
        rtt.add(ack.now, largest, 1.0);
        if packets > 2.0 {
            rtt.add(ack.now, ack.rtt, packets - 2.0);
        }
    }

    /// Something was lost.
    pub fn on_loss(&mut self, loss: &Loss) {
        let sums = &mut self.sums;
        match loss.kind {
            LossKind::Gap | LossKind::Timeout => sums.lost_before = sums.lost,
            LossKind::Spurious => {
                // Nothing of the episode was lost.
                (sums.lost, sums.timeout) = (sums.lost_before, false);
                return;
            }
            LossKind::More | LossKind::TimeoutAgain => {}
            LossKind::Deflate | LossKind::Idle => return,
        }
        let nothing = loss.lost == Bytes::ZERO;
        sums.lost += loss.lost.0 as f64 / self.mss;
        sums.marked += f64::from(nothing && loss.kind == LossKind::Gap);
        sums.timeout |= matches!(loss.kind, LossKind::Timeout | LossKind::TimeoutAgain);
    }

    /// The latest interval that has ended.
    pub fn last(&self) -> &Interval {
        &self.last
    }

    /// Ends the interval and begins the next.
    pub fn end(&mut self, now: Time) -> Interval {
        let sums = std::mem::take(&mut self.sums);
        let before = self.last;
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        self.last = Interval {
            now,
            duration: now.since(before.now),
            acked_packets: sums.acked,
            lost_packets: sums.lost,
            marked_packets: sums.marked,
            loss_ratio: ratio(sums.lost, sums.lost + sums.acked),
            ce_ratio: ratio(sums.marked, sums.acked.max(sums.marked)),
            app_limited_share: ratio(sums.app_limited, sums.acked),
            rtt_change_per_s: 0.0,
            intervals_since_loss: if sums.lost > 0.0 {
                0
            } else {
                before.intervals_since_loss.saturating_add(1)
            },
            timeout: sums.timeout,
            ..before
        };
        if sums.acked > 0.0 {
            self.last.inflight_mean_packets = sums.inflight / sums.acked;
        }
        self.round_trips(&sums.rtt, before.rtt_min);
        self.delivery(sums.acked);
        self.last.base_age = now.since(self.near_base);
        self.last
    }

    fn round_trips(&mut self, samples: &Samples, before: Span) {
        if samples.weight == 0.0 {
            return;
        }
        let interval = &mut self.last;
        interval.rtt_min = samples.min;
        (interval.rtt_mean, interval.rtt_sd) = samples.spread();
        let seconds = interval.duration.as_secs_f64();
        if before > Span::ZERO && seconds > 0.0 {
            let change = samples.min.0 as f64 - before.0 as f64;
            interval.rtt_change_per_s = change / 1e9 / seconds;
        }
        self.base.sample(samples.min_at, samples.min, WINDOW);
        interval.base = self.base.value().unwrap_or(samples.min);
        self.jitter.add(samples.min);
        interval.jitter = self.jitter.above_base();
        let near = interval.base.mul_f64(NEAR_BASE);
        // A base that rose may have been confirmed by samples that were not near the one before.
        let known = self.base.last_within(near).unwrap_or(samples.min_at);
        let newest = if samples.min <= near { samples.min_at } else { known };
        self.near_base = self.near_base.max(newest);
        self.recent.rotate_left(1);
        self.recent[DRAIN_INTERVALS - 1] = samples.min;
        interval.drain = drain(&self.recent, interval.base);
    }

    fn delivery(&mut self, acked: f64) {
        let interval = &mut self.last;
        let seconds = interval.duration.as_secs_f64();
        if seconds <= 0.0 || !(self.delivered || acked > 0.0) {
            return;
        }
        let gain = if self.delivered { DELIVERY_GAIN } else { 1.0 };
        self.delivered = true;
        let rate_pps = acked / seconds;
        interval.delivery_pps += gain * (rate_pps - interval.delivery_pps);
        let apart = (rate_pps - self.rate_pps).abs() - 1.0 / seconds;
        let spread = apart.max(0.0) / rate_pps.max(self.rate_pps).max(1.0);
        interval.delivery_spread += SPREAD_GAIN * (spread - interval.delivery_spread);
        self.rate_pps = rate_pps;
        self.delivery_max.sample(interval.now.0, interval.delivery_pps);
        interval.delivery_max_pps = self.delivery_max.value();
    }
}

/// See [`Interval::drain`].
fn drain(recent: &[Span], base: Span) -> f64 {
    let known = || recent.iter().filter(|rtt| **rtt > Span::ZERO);
    let above = |rtt: Option<&Span>| rtt.map_or(0, |rtt| rtt.0.saturating_sub(base.0));
    let (least, most) = (above(known().min()), above(known().max()));
    if most < DRAIN_MIN.0 { 0.0 } else { least as f64 / most as f64 }
}

#[cfg(test)]
#[path = "tests/signals.rs"]
mod tests;
