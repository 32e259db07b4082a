//! Jitter of the round trips, told from a queue: a queue rises and falls over intervals, jitter differs from one
//! interval to the next.
use crate::units::Span;

/// The smallest round trips of intervals lie above the smallest of 10 s by about so many times the estimate,
/// where jitter is normally distributed and nothing waits (proposed).
const ABOVE_BASE: f64 = 4.0;
/// Weight of an interval in the estimate, once there were as many as its inverse.
const GAIN: f64 = 1.0 / 16.0;

/// Measures jitter from the smallest round trips of successive intervals: the mean of the least of three
/// successive second differences. A trend has none, and a step only two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    /// The latest round trips, ns.
    last: [f64; 2],
    /// The latest second differences, ns.
    differences: [f64; 2],
    mean_ns: f64,
    count: u32,
}

impl Jitter {
    /// Takes the smallest round trip of the next interval.
    pub fn add(&mut self, rtt_min: Span) {
        let rtt = rtt_min.0 as f64;
        let difference = (rtt - 2.0 * self.last[0] + self.last[1]).abs();
        let least = difference.min(self.differences[0]).min(self.differences[1]);
        self.last = [rtt, self.last[0]];
        self.differences = [difference, self.differences[0]];
        self.count = self.count.saturating_add(1);
        // Three differences need five round trips.
        let Some(estimates @ 1..) = self.count.checked_sub(4) else { return };
        self.mean_ns += GAIN.max(1.0 / f64::from(estimates)) * (least - self.mean_ns);
    }

    /// By so much jitter alone keeps the smallest round trips of intervals above the base.
    pub fn above_base(&self) -> Span {
        Span((ABOVE_BASE * self.mean_ns) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The last estimate, and the mean of all but the first 16, ms.
    fn of(rtts_us: impl Iterator<Item = f64>) -> (f64, f64) {
        let mut jitter = Jitter::default();
        let estimates: Vec<f64> = rtts_us
            .map(|rtt_us| {
                jitter.add(Span((rtt_us * 1e3) as u64));
                jitter.above_base().as_millis_f64()
            })
            .collect();
        let late = estimates.iter().skip(16);
        (*estimates.last().expect("one"), late.clone().sum::<f64>() / late.count().max(1) as f64)
    }

    #[test]
    fn a_queue_that_rises_or_jumps_is_no_jitter() {
        let (_, rising) = of((0..200).map(|i| 20_000.0 + 50.0 * f64::from(i)));
        let (_, jumping) = of((0..200).map(|i| if i % 20 < 10 { 20_000.0 } else { 30_000.0 }));
        assert!(rising < 0.001 && jumping < 0.001, "{rising} {jumping}");
    }

    #[test]
    fn it_is_three_to_four_deviations_of_normal_jitter() {
        let mut rng = Rng::new(5);
        for sd_us in [100.0, 1000.0] {
            let mut normal = || (0..12).map(|_| rng.uniform_in(-0.5, 0.5)).sum::<f64>();
            let (_, mean_ms) = of((0..4000).map(|_| 20_000.0 + sd_us * normal()));
            let deviations = mean_ms * 1e3 / sd_us;
            assert!((3.0..4.2).contains(&deviations), "{deviations}");
        }
    }

    #[test]
    fn four_intervals_tell_nothing() {
        let rtts = [20e3, 25e3, 21e3, 27e3, 20e3];
        assert!(of(rtts[..4].iter().copied()).0 <= 0.0);
        assert!(of(rtts.into_iter()).0 > 1.0);
    }
}
