//! A token-bucket policer: what exceeds a rate by more than a burst is dropped on arrival, and nothing waits.
use super::plan::PolicerSpec;
use crate::units::{Rate, Time};

/// A bucket that fills at a rate, and empties with each packet that passes.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    rate: Rate,
    /// Most that the bucket holds, in bits times nanoseconds per second.
    full: u128,
    /// What it holds at `at`.
    tokens: u128,
    at: Time,
}

impl Policer {
    /// Starts with a full bucket.
    pub fn new(spec: &PolicerSpec) -> Self {
        let full = u128::from(spec.burst_bytes) * NANO_BITS;
        Self { rate: Rate::from_mbps(spec.rate_mbps), full, tokens: full, at: Time(0) }
    }

    /// Whether a packet of `size` bytes passes at `now`. A packet that does not costs nothing.
    pub fn passes(&mut self, now: Time, size: u32) -> bool {
        let earned = u128::from(self.rate.0) * u128::from(now.since(self.at).0);
        self.tokens = (self.tokens + earned).min(self.full);
        self.at = now;
        let cost = u128::from(size) * NANO_BITS;
        let passes = cost <= self.tokens;
        if passes {
            self.tokens -= cost;
        }
        passes
    }
}

/// Bits in a byte times nanoseconds in a second.
const NANO_BITS: u128 = 8_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    fn policer(rate_mbps: f64, burst_bytes: u64) -> Policer {
        Policer::new(&PolicerSpec { rate_mbps, burst_bytes })
    }

    #[test]
    fn a_burst_passes_whole_and_the_packet_after_it_does_not() {
        let mut policer = policer(1.0, 15_000);
        let passed = (0..20).filter(|_| policer.passes(Time(0), 1500)).count();
        assert_eq!(passed, 10);
    }

    #[test]
    fn in_the_long_run_the_rate_passes_exactly() {
        // 1500 bytes each millisecond are 12 Mb/s, of which 5 Mb/s and the burst pass.
        let mut policer = policer(5.0, 30_000);
        let sent = (0..10_000).map(|millis| Time(0) + Span::from_millis(millis));
        let passed = sent.filter(|&at| policer.passes(at, 1500)).count() as u64;
        let allowed = 5_000_000 / 8 * 9999 / 1000 + 30_000;
        assert_eq!(passed, allowed / 1500);
    }

    #[test]
    fn a_pause_fills_the_bucket_and_no_more() {
        let mut policer = policer(1000.0, 3000);
        assert!(policer.passes(Time(0), 3000));
        let later = Time(u64::MAX / 2);
        assert!(policer.passes(later, 3000) && !policer.passes(later, 1));
    }

    #[test]
    fn a_packet_that_is_dropped_costs_nothing() {
        let mut policer = policer(1.0, 3000);
        assert!(policer.passes(Time(0), 2000));
        assert!(!policer.passes(Time(0), 1500));
        assert!(policer.passes(Time(0), 1000));
    }
}
