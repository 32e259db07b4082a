//! Monitor intervals: stretches of sending at one rate, each judged when the fate of its packets is
//! known (Dong et al., NSDI 2015, section 2.2; NSDI 2018, section 3).
//!
//! No transport tells a controller of every packet that leaves, so what was delivered and what was
//! lost is booked to the interval in which it was *sent* (`Ack::sent_at`, `Loss::sent_at`), and what
//! was sent is the sum of both. Exact where every record is about one packet. Approximate:
//!
//! - a record of several packets tells the sending time of the newest only; the others count as
//!   evenly spread since the newest packet of the record before;
//! - a record of several losses is booked to the newest one's interval;
//! - a loss found later than an interval is closed (reordering by more than a quarter of a round
//!   trip) is not booked at all.
use crate::control::{Ack, Loss};
use crate::units::{Bytes, Span, Time};
use std::collections::VecDeque;

/// Most intervals whose fate is open; beyond, the oldest is given up as unusable.
const OPEN_MAX: usize = 256;
/// A gap is certain after this many later packets (RFC 6675's `DupThresh`).
const LATER_PACKETS: f64 = 3.0;
/// Pieces into which the packets of one record are spread at most.
const PIECES_MAX: u64 = 64;

/// What became of the packets sent in one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The interval's sending rate, bits per second.
    pub rate_bps: f64,
    /// How long it was sent at, seconds.
    pub duration_s: f64,
    /// Delivered, bytes.
    pub acked: f64,
    /// Lost, bytes.
    pub lost: f64,
    /// Slope of the least-squares line through the round-trip samples over their packets' sending
    /// times, seconds per second; 0 below two samples.
    pub rtt_slope: f64,
    /// Smoothed round-trip time at the first and at the last acknowledgement, seconds.
    pub srtt_s: (f64, f64),
    /// False where the interval says nothing about its rate: nothing came back, the application had
    /// too little to send, or less than half of what the rate allows was sent although nothing was
    /// lost.
    pub usable: bool,
}

impl Report {
    /// Lost of lost and delivered; 0 if neither.
    pub fn loss_ratio(&self) -> f64 {
        let sent = self.acked + self.lost;
        if sent > 0.0 { self.lost / sent } else { 0.0 }
    }
}

/// Sums for a least-squares line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    fn slope(&self) -> f64 {
        let spread = self.xx * self.count - self.x * self.x;
        // Equal abscissae leave a rounding error here, not zero.
        if self.count < 2.0 || spread <= 1e-9 * self.xx * self.count {
            return 0.0;
        }
        (self.xy * self.count - self.x * self.y) / spread
    }
}

/// One interval. `P` is what its owner wants to know it by.
#[derive(Clone, Debug)]
struct Interval<P> {
    purpose: Option<P>,
    rate_bps: f64,
    start: Time,
    end: Time,
    acked: f64,
    app_limited: f64,
    lost: f64,
    /// Delivered of what was sent after its end.
    later: f64,
    /// Its losses are known once the records of this moment are told.
    complete: bool,
    rtt: Line,
    /// First round-trip sample: sums are of differences to it, which keeps them exact enough.
    first_rtt_s: Option<f64>,
    srtt_s: (f64, f64),
}

impl<P> Interval<P> {
    fn report(&self) -> Report {
        let duration_s = self.end.since(self.start).as_secs_f64();
        let sent = self.acked + self.lost;
        let starved = self.lost == 0.0 && sent * 16.0 < self.rate_bps * duration_s;
        Report {
            rate_bps: self.rate_bps,
            duration_s,
            acked: self.acked,
            lost: self.lost,
            rtt_slope: self.rtt.slope(),
            srtt_s: self.srtt_s,
            usable: sent > 0.0 && self.app_limited * 2.0 <= self.acked && !starved,
        }
    }
}

/// The intervals of one flow whose fate is open, the oldest first. They leave no gap.
#[derive(Clone, Debug)]
pub struct Monitor<P> {
    open: VecDeque<Interval<P>>,
    mss: Bytes,
    /// When the newest packet delivered so far was sent.
    newest: Time,
}

impl<P: Copy> Monitor<P> {
    /// No interval yet; `mss` is the size of a full packet.
    pub fn new(mss: Bytes, start: Time) -> Self {
        Self { open: VecDeque::new(), mss: Bytes(mss.0.max(1)), newest: start }
    }

    /// Ends the present interval and begins the next. One without a purpose is never reported.
    pub fn begin(&mut self, now: Time, rate_bps: f64, duration: Span, purpose: Option<P>) {
        if let Some(last) = self.open.back_mut() {
            // Cut short by a decision, or drawn out by a late timer.
            last.end = now.max(last.start);
        }
        self.open.push_back(Interval {
            purpose,
            rate_bps,
            start: now,
            end: now + duration,
            acked: 0.0,
            app_limited: 0.0,
            lost: 0.0,
            later: 0.0,
            complete: false,
            rtt: Line::default(),
            first_rtt_s: None,
            srtt_s: (0.0, 0.0),
        });
        if self.open.len() > OPEN_MAX {
            self.open[0].complete = true;
        }
    }

    /// When the present interval ends; [`Time::NEVER`] if there is none.
    pub fn end(&self) -> Time {
        self.open.back().map_or(Time::NEVER, |last| last.end)
    }

    /// The present interval's rate, bits per second.
    pub fn rate_bps(&self) -> Option<f64> {
        self.open.back().map(|last| last.rate_bps)
    }

    /// Smoothed round-trip time when the present interval's first packet was acknowledged, seconds;
    /// 0 before.
    pub fn srtt_at_start_s(&self) -> f64 {
        self.open.back().map_or(0.0, |last| last.srtt_s.0)
    }

    /// Drops the open intervals.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    /// Lost of lost and delivered of the open intervals, as far as their fate is known; 0 if neither.
    pub fn open_loss_ratio(&self) -> f64 {
        let (acked, lost) = self.open.iter().fold((0.0, 0.0), |(acked, lost), interval| {
            (acked + interval.acked, lost + interval.lost)
        });
        if lost > 0.0 { lost / (acked + lost) } else { 0.0 }
    }

    /// The reports of the open intervals are no longer awaited.
    pub fn forget(&mut self) {
        for interval in &mut self.open {
            interval.purpose = None;
        }
    }

    /// Books a delivery.
    pub fn on_ack(&mut self, ack: &Ack) {
        let span = ack.sent_at.since(self.newest);
        let pieces = (ack.acked.0 / self.mss.0).clamp(1, PIECES_MAX);
        let bytes = ack.acked.0 as f64 / pieces as f64;
        for piece in 0..pieces {
            let back = span.mul_f64(piece as f64 / pieces as f64);
            self.book(Time(ack.sent_at.0.saturating_sub(back.0)), bytes, ack.app_limited == 1);
        }
        self.newest = self.newest.max(ack.sent_at);
        if ack.rtt > Span::ZERO {
            self.sample(ack);
        }
        let patience = ack.min_rtt / 4;
        for interval in &mut self.open {
            interval.complete |= interval.later > LATER_PACKETS * self.mss.0 as f64
                || (ack.sent_at >= interval.end + patience && interval.later > 0.0);
        }
    }

    fn book(&mut self, sent_at: Time, bytes: f64, app_limited: bool) {
        for interval in self.open.iter_mut().rev() {
            if sent_at >= interval.end {
                interval.later += bytes;
            } else if sent_at >= interval.start {
                interval.acked += bytes;
                interval.app_limited += if app_limited { bytes } else { 0.0 };
            }
        }
    }

    fn sample(&mut self, ack: &Ack) {
        let Some(interval) = self.containing(ack.sent_at) else { return };
        let (rtt_s, srtt_s) = (ack.rtt.as_secs_f64(), ack.srtt.as_secs_f64());
        let first_s = *interval.first_rtt_s.get_or_insert(rtt_s);
        interval.rtt.add(ack.sent_at.since(interval.start).as_secs_f64(), rtt_s - first_s);
        if interval.srtt_s.0 == 0.0 {
            interval.srtt_s.0 = srtt_s;
        }
        interval.srtt_s.1 = srtt_s;
    }

    /// Books a loss.
    pub fn on_loss(&mut self, loss: &Loss) {
        let lost = loss.lost.0 as f64;
        if let Some(interval) = self.containing(loss.sent_at) {
            interval.lost += lost;
        }
    }

    fn containing(&mut self, sent_at: Time) -> Option<&mut Interval<P>> {
        let index = self.open.partition_point(|interval| interval.start <= sent_at);
        let interval = self.open.get_mut(index.checked_sub(1)?)?;
        (sent_at < interval.end).then_some(interval)
    }

    /// The oldest interval with a purpose, once it is complete. To be asked *before* a delivery and
    /// *after* a loss is booked: a sender tells of what a packet's arrival delivered before it tells
    /// of the losses that the same arrival reveals.
    pub fn take(&mut self) -> Option<(P, Report)> {
        while self.open.len() > 1 && self.open[0].complete {
            let interval = self.open.pop_front()?;
            if let Some(purpose) = interval.purpose {
                return Some((purpose, interval.report()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::LossKind;

    const MSS: u64 = 1000;
    const RTT_MS: u64 = 40;
    /// One packet per millisecond.
    const RATE_BPS: f64 = 8e6;

    fn at(millis: u64) -> Time {
        Time(0) + Span::from_millis(millis)
    }

    /// The acknowledgement of `packets`, the newest sent at `sent_ms`.
    fn ack(sent_ms: u64, packets: u64) -> Ack {
        let rtt = Span::from_millis(RTT_MS);
        Ack {
            now: at(sent_ms) + rtt,
            sent_at: at(sent_ms),
            rtt,
            srtt: rtt,
            min_rtt: rtt,
            acked: Bytes(packets * MSS),
            ..Ack::default()
        }
    }

    fn loss(sent_ms: u64, packets: u64) -> Loss {
        let kind = LossKind::Gap;
        Loss { sent_at: at(sent_ms), lost: Bytes(packets * MSS), kind, ..Loss::default() }
    }

    /// Intervals of 20 ms for purposes 0, 1, ...
    fn monitor(intervals: u64) -> Monitor<u64> {
        let mut monitor = Monitor::new(Bytes(MSS), Time(0));
        for index in 0..intervals {
            monitor.begin(at(20 * index), RATE_BPS, Span::from_millis(20), Some(index));
        }
        monitor
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }

    /// Acknowledges a packet per millisecond and returns the reports.
    fn deliver(monitor: &mut Monitor<u64>, sent_ms: std::ops::Range<u64>) -> Vec<(u64, Report)> {
        let mut reports = Vec::new();
        for sent_ms in sent_ms {
            reports.extend(monitor.take());
            monitor.on_ack(&ack(sent_ms, 1));
        }
        reports.extend(monitor.take());
        reports
    }

    #[test]
    fn deliveries_and_losses_are_booked_to_the_interval_of_their_sending() {
        let mut monitor = monitor(3);
        deliver(&mut monitor, 0..15);
        monitor.on_loss(&loss(10, 2));
        monitor.on_loss(&loss(25, 1));
        let reports = deliver(&mut monitor, 15..60);
        assert_eq!(reports.iter().map(|(purpose, _)| *purpose).collect::<Vec<_>>(), [0, 1]);
        close(reports[0].1.acked, 20.0 * MSS as f64);
        close(reports[0].1.lost, 2.0 * MSS as f64);
        close(reports[0].1.loss_ratio(), 2.0 / 22.0);
        close(reports[1].1.lost, MSS as f64);
        close(reports[1].1.duration_s, 0.02);
    }

    #[test]
    fn an_interval_is_judged_only_after_the_losses_that_later_packets_reveal() {
        // The packets from 16 to 19 ms are lost, which the third later delivery tells.
        let mut monitor = monitor(2);
        deliver(&mut monitor, 0..16);
        assert!(deliver(&mut monitor, 20..23).is_empty(), "three later packets are not enough");
        assert_eq!(monitor.take(), None);
        monitor.on_ack(&ack(23, 1));
        monitor.on_loss(&loss(19, 4));
        let (_, report) = monitor.take().expect("complete");
        close(report.loss_ratio(), 0.2);
    }

    #[test]
    fn a_sparse_flow_is_judged_after_a_quarter_of_a_round_trip() {
        let mut monitor = Monitor::new(Bytes(MSS), Time(0));
        for index in 0..2 {
            monitor.begin(at(100 * index), 8e4, Span::from_millis(100), Some(index));
        }
        monitor.on_ack(&ack(0, 1));
        monitor.on_ack(&ack(105, 1));
        assert_eq!(monitor.take(), None);
        monitor.on_ack(&ack(111, 1));
        assert_eq!(monitor.take().map(|(purpose, _)| purpose), Some(0));
    }

    #[test]
    fn a_batch_is_spread_over_the_time_since_the_one_before() {
        let (mut single, mut batched) = (monitor(3), monitor(3));
        let one: Vec<_> = deliver(&mut single, 0..60).into_iter().map(|(_, r)| r.acked).collect();
        let mut many = Vec::new();
        for last in (4..60).step_by(5) {
            many.extend(batched.take().map(|(_, report)| report.acked));
            batched.on_ack(&ack(last, 5));
        }
        many.extend(batched.take().map(|(_, report)| report.acked));
        assert_eq!(one, many);
    }

    #[test]
    fn the_slope_is_the_queues_growth_per_second() {
        // Five milliseconds of queue in 20 ms: the link is a quarter too slow.
        let mut monitor = monitor(2);
        for sent_ms in 0..25 {
            let rtt = Span::from_micros(40_000 + 250 * sent_ms);
            monitor.on_ack(&Ack { rtt, ..ack(sent_ms, 1) });
        }
        close(monitor.take().expect("complete").1.rtt_slope, 0.25);
    }

    #[test]
    fn one_sample_or_samples_of_one_moment_have_no_slope() {
        let mut line = Line::default();
        line.add(3.0, 1.0);
        close(line.slope(), 0.0);
        line.add(3.0, 2.0);
        close(line.slope(), 0.0);
    }

    #[test]
    fn an_interval_cut_short_ends_where_the_next_begins() {
        let mut monitor = monitor(1);
        monitor.begin(at(10), RATE_BPS, Span::from_millis(20), Some(1));
        let reports = deliver(&mut monitor, 0..20);
        close(reports[0].1.duration_s, 0.01);
        close(reports[0].1.acked, 10.0 * MSS as f64);
    }

    #[test]
    fn forgotten_intervals_are_not_reported() {
        let mut monitor = monitor(2);
        monitor.forget();
        monitor.begin(at(40), RATE_BPS, Span::from_millis(20), Some(9));
        monitor.begin(at(60), RATE_BPS, Span::from_millis(20), Some(10));
        let reports = deliver(&mut monitor, 0..70);
        assert_eq!(reports.iter().map(|(purpose, _)| *purpose).collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn what_the_application_limits_says_nothing_of_the_rate() {
        let usable = |app_limited, every_ms| {
            let mut monitor = monitor(2);
            for sent_ms in (0..40).step_by(every_ms) {
                monitor.on_ack(&Ack { app_limited, ..ack(sent_ms, 1) });
            }
            monitor.take().expect("complete").1.usable
        };
        assert!(usable(0, 1));
        assert!(!usable(1, 1), "flagged");
        assert!(!usable(0, 3), "a third of what the rate allows, and no loss");
    }
}
