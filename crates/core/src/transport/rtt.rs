//! Round-trip time and the retransmission time-out.
use crate::hint::unlikely;
use crate::units::Span;

/// Bounds and granularity of a retransmission time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoLimits {
    /// Smallest.
    pub min: Span,
    /// Largest.
    pub max: Span,
    /// Before the first sample.
    pub initial: Span,
    /// Clock granularity G.
    pub tick: Span,
}

/// RFC 6298 in nanoseconds, with Linux's two departures (source: Linux 6, `tcp_rtt_estimator`). The
/// floor bounds the variance term: the time-out stays at least `min` above the smoothed round trip, so
/// that a floor below the path's round trip does not fire on every queue that builds. And the term is
/// the largest mean deviation of a round trip, which fades by a quarter in each: with many samples per
/// round trip RFC 6298's own forgets what it saw within one (RFC 7323 appendix G).
///
/// The limits, which many flows share, come with the calls that need them: always the same.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    srtt: u64,
    /// Four mean deviations.
    deviation: u64,
    /// The largest `deviation` of this round trip.
    deviation_max: u64,
    /// What is added to `srtt`.
    margin: u64,
    min_rtt: u64,
    latest: u64,
    backoff: u32,
}

impl RtoLimits {
    /// The least that a time-out is above the smoothed round trip.
    fn floor(&self) -> u64 {
        self.tick.0.max(self.min.0)
    }
}

impl Default for RttEstimator {
    /// Without samples.
    fn default() -> Self {
        Self {
            srtt: 0,
            deviation: 0,
            deviation_max: 0,
            margin: 0,
            min_rtt: u64::MAX,
            latest: 0,
            backoff: 0,
        }
    }
}

impl RttEstimator {
    /// Takes a sample (RFC 6298 equations 2.2 and 2.3); ends the back-off. `round` if it is the first of
    /// a round trip.
    pub fn sample(&mut self, rtt: Span, round: bool, limits: &RtoLimits) {
        let rtt = rtt.0.max(1);
        self.latest = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        self.backoff = 0;
        if unlikely(self.srtt == 0) {
            self.srtt = rtt;
            self.deviation = 2 * rtt;
            self.margin = self.deviation.max(limits.floor());
            self.deviation_max = self.margin;
        } else {
            self.deviate(rtt);
            self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
            if round {
                let fall = self.margin.saturating_sub(self.deviation_max);
                self.margin -= fall.div_ceil(4);
                self.deviation_max = limits.floor();
            }
        }
    }

    /// A round trip that shrinks moves the deviation by an eighth of what one that grows does.
    fn deviate(&mut self, rtt: u64) {
        let (error, mean) = (self.srtt.abs_diff(rtt), self.deviation / 4);
        let rise = error.saturating_sub(mean);
        let rise = if rtt < self.srtt { rise / 8 } else { rise };
        self.deviation = self.deviation + rise - mean.saturating_sub(error);
        self.deviation_max = self.deviation_max.max(self.deviation);
        self.margin = self.margin.max(self.deviation_max);
    }

    /// Smoothed round trip; zero before the first sample.
    pub fn srtt(&self) -> Span {
        Span(self.srtt)
    }

    /// Smallest sample; zero before the first.
    pub fn min_rtt(&self) -> Span {
        Span(if self.min_rtt == u64::MAX { 0 } else { self.min_rtt })
    }

    /// Latest sample; zero before the first.
    pub fn latest(&self) -> Span {
        Span(self.latest)
    }

    /// The time-out with its back-off (RFC 6298 equations 2.3 and 5.5).
    pub fn rto(&self, limits: &RtoLimits) -> Span {
        let base = if self.srtt == 0 { limits.initial.0 } else { self.srtt + self.margin };
        Span(base.saturating_mul(1 << self.backoff.min(63)).min(limits.max.0))
    }

    /// Whether the time-out was doubled since the last sample.
    pub fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// Doubles the time-out (RFC 6298 section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }
}

/// ns-2.35's estimator: integer ticks, srtt kept times eight, rttvar times four (source: ns-2.35
/// tcp.cc, `rtt_update`, `rtt_timeout`, `rtt_backoff`).
#[derive(Clone, Copy, Debug)]
pub struct TickRtt {
    limits: RtoLimits,
    timestamps: bool,
    latest: i64,
    srtt8: i64,
    rttvar4: i64,
    rto: u64,
    backoff: u64,
}

impl TickRtt {
    /// Without samples; `rttvar_init_` is 12 s.
    pub fn new(limits: RtoLimits, timestamps: bool) -> Self {
        let rttvar4 = (12_000_000_000 / limits.tick.0.max(1) * 4) as i64;
        Self { limits, timestamps, latest: 0, srtt8: 0, rttvar4, rto: limits.initial.0, backoff: 1 }
    }

    /// Takes a sample of a packet sent at `sent` ns: rounded to ticks with timestamps, else counted
    /// in clock edges passed.
    pub fn sample(&mut self, rtt: Span, sent: u64) {
        let tick = self.limits.tick.0;
        let ticks =
            if self.timestamps { (rtt.0 + tick / 2) / tick } else { (rtt.0 + sent % tick) / tick };
        self.latest = (ticks as i64).max(1);
        if self.srtt8 == 0 {
            self.srtt8 = self.latest << 3;
            self.rttvar4 = self.latest << 1;
        } else {
            let error = self.latest - (self.srtt8 >> 3);
            self.srtt8 = (self.srtt8 + error).max(1);
            let change = error.abs() - (self.rttvar4 >> 2);
            self.rttvar4 = (self.rttvar4 + change).max(1);
        }
        self.rto = (((self.rttvar4 << 3) + self.srtt8) >> 3) as u64 * tick;
    }

    /// A valid sample ends the back-off; which one is valid is the sender's rule.
    pub fn end_back_off(&mut self) {
        self.backoff = 1;
    }

    /// Doubles the time-out; far backed off, srtt moves into the variance.
    pub fn back_off(&mut self) {
        if self.backoff < 64 || self.rto() < self.limits.max {
            self.backoff <<= 1;
        }
        if self.backoff > 8 {
            self.rttvar4 += self.srtt8 >> 3;
            self.srtt8 = 0;
        }
    }

    /// The time-out with its back-off.
    pub fn rto(&self) -> Span {
        let base = self.rto.max(self.limits.min.0).saturating_mul(self.backoff);
        Span(base.min(self.limits.max.0).max(2 * self.limits.tick.0))
    }

    /// Smoothed round trip, in whole ticks; zero before the first sample.
    pub fn srtt(&self) -> Span {
        Span((self.srtt8 >> 3) as u64 * self.limits.tick.0)
    }

    /// Latest sample, in whole ticks.
    pub fn latest(&self) -> Span {
        Span(self.latest as u64 * self.limits.tick.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RtoLimits = RtoLimits {
        min: Span::from_millis(200),
        max: Span::from_millis(60_000),
        initial: Span::from_millis(1000),
        tick: Span::from_millis(10),
    };

    #[test]
    fn the_first_sample_sets_srtt_and_half_of_it_the_variance() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(&LIMITS), Span::from_millis(1000));
        rtt.sample(Span::from_millis(400), true, &LIMITS);
        assert_eq!(rtt.srtt(), Span::from_millis(400));
        assert_eq!(rtt.rto(&LIMITS), Span::from_millis(400 + 4 * 200));
    }

    #[test]
    fn the_second_sample_moves_srtt_by_an_eighth() {
        let mut rtt = RttEstimator::default();
        rtt.sample(Span::from_millis(400), true, &LIMITS);
        rtt.sample(Span::from_millis(480), true, &LIMITS);
        assert_eq!(rtt.srtt(), Span::from_millis(410));
        assert_eq!(rtt.rto(&LIMITS), Span::from_millis(410 + 4 * 200), "as large as at first");
    }

    #[test]
    fn the_largest_deviation_of_a_round_trip_counts_and_fades_by_a_quarter_in_each() {
        let mut rtt = RttEstimator::default();
        rtt.sample(Span::from_millis(400), true, &LIMITS);
        rtt.sample(Span::from_millis(400), true, &LIMITS); // mean deviation 150 ms
        assert_eq!(rtt.rto(&LIMITS), Span::from_millis(400 + 800));
        for _ in 0..50 {
            rtt.sample(Span::from_millis(400), false, &LIMITS);
        }
        assert_eq!(rtt.rto(&LIMITS), Span::from_millis(400 + 800), "in the same round trip");
        rtt.sample(Span::from_millis(400), true, &LIMITS);
        // The largest of that round trip was 450 ms; a quarter of the rest goes.
        assert_eq!(rtt.rto(&LIMITS), Span(1_112_500_000));
        rtt.sample(Span::from_millis(1200), false, &LIMITS);
        let rto = rtt.rto(&LIMITS).as_millis_f64();
        assert!((rto - 1300.0).abs() < 0.01, "grows at once: {rto}");
    }

    #[test]
    fn a_shorter_round_trip_widens_the_margin_less_than_a_longer_one() {
        let after = |millis| {
            let mut rtt = RttEstimator::default();
            (0..200).for_each(|_| rtt.sample(Span::from_millis(1000), true, &LIMITS));
            rtt.sample(Span::from_millis(millis), true, &LIMITS);
            (rtt.rto(&LIMITS) - rtt.srtt()).as_millis_f64().round()
        };
        assert_eq!((after(200), after(1800)), (200.0, 800.0));
    }

    #[test]
    fn a_steady_path_keeps_the_floor_above_srtt() {
        let mut rtt = RttEstimator::default();
        for _ in 0..100 {
            rtt.sample(Span::from_millis(400), true, &LIMITS);
        }
        assert_eq!(rtt.rto(&LIMITS), Span::from_millis(600));
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut rtt = RttEstimator::default();
        rtt.back_off();
        assert_eq!(rtt.rto(&LIMITS), Span::from_millis(2000));
        for _ in 0..30 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(&LIMITS), Span::from_millis(60_000));
        rtt.sample(Span::from_millis(100), true, &LIMITS);
        assert_eq!(rtt.rto(&LIMITS), Span::from_millis(300));
    }

    #[test]
    fn the_smallest_time_out_backs_off_up_to_the_maximum_too() {
        let limits = RtoLimits { initial: Span(1000), ..LIMITS };
        let mut rtt = RttEstimator::default();
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(&limits), LIMITS.max);
    }

    #[test]
    fn ns2_counts_ticks_and_floors_at_minrto() {
        let mut rtt = TickRtt::new(LIMITS, false);
        rtt.sample(Span::from_millis(151), 5_000_000);
        assert_eq!(rtt.latest(), Span::from_millis(150));
        assert_eq!(rtt.rto(), Span::from_millis(450));
        for _ in 0..200 {
            rtt.sample(Span::from_millis(151), 5_000_000);
        }
        assert_eq!(rtt.rto(), Span::from_millis(200));
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_millis(400));
    }
}
