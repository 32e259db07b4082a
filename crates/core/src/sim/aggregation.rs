//! Packets that leave a link in lumps, as a medium gives them on which a station sends only now and then, and
//! then all that it has gathered (frame aggregation of Wi-Fi, grants of cable and cellular links).
use super::plan::AggregationSpec;
use crate::rng::Rng;
use crate::units::{Span, Time};

/// Times of release, at distances drawn uniformly.
#[derive(Clone, Debug)]
pub struct Aggregation {
    low: u64,
    high: u64,
    next: Time,
    rng: Rng,
}

impl Aggregation {
    /// The first release comes after the first draw.
    pub fn new(spec: &AggregationSpec, rng: Rng) -> Self {
        let nanos = |ms: f64| Span::from_secs_f64(ms / 1e3).0.max(1);
        let (low, high) = (nanos(spec.low_ms), nanos(spec.high_ms));
        let mut aggregation = Self { low, high: high.max(low), next: Time(0), rng };
        aggregation.draw();
        aggregation
    }

    /// When a packet that is ready at `ready` leaves: with all others since the last release.
    pub fn release(&mut self, ready: Time) -> Time {
        if ready == Time::NEVER {
            return ready;
        }
        if self.low == self.high && self.next < ready {
            let missed = ready.since(self.next).0.div_ceil(self.low);
            self.next += Span(self.low) * missed;
        }
        while self.next < ready {
            self.draw();
        }
        self.next
    }

    fn draw(&mut self) {
        let width = self.high - self.low;
        self.next += Span(self.low + self.rng.below(width + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time(0) + Span::from_micros(micros)
    }

    fn aggregation(low_ms: f64, high_ms: f64) -> Aggregation {
        Aggregation::new(&AggregationSpec { low_ms, high_ms }, Rng::new(3))
    }

    #[test]
    fn packets_leave_together_at_multiples_of_a_fixed_distance() {
        let mut fixed = aggregation(5.0, 5.0);
        let released = [1, 4999, 5000, 5001, 99_999].map(|micros| fixed.release(at(micros)));
        assert_eq!(released, [5000, 5000, 5000, 10_000, 100_000].map(at));
    }

    #[test]
    fn drawn_distances_fill_their_range() {
        let mut drawn = aggregation(2.0, 8.0);
        let mut before = at(0);
        let mut gaps = Vec::new();
        for _ in 0..5000 {
            let next = drawn.release(before + Span(1));
            gaps.push(next.since(before).0);
            before = next;
        }
        assert!(gaps.iter().all(|gap| (2_000_000..=8_000_000).contains(gap)));
        let mean = gaps.iter().sum::<u64>() / 5000;
        assert!(mean.abs_diff(5_000_000) < 100_000, "{mean} ns");
    }

    #[test]
    fn nothing_leaves_before_it_is_ready_and_order_holds() {
        let mut drawn = aggregation(0.5, 20.0);
        let mut rng = Rng::new(1);
        let (mut ready, mut before) = (at(0), at(0));
        for _ in 0..5000 {
            ready += Span(rng.below(4_000_000));
            let released = drawn.release(ready);
            assert!(released >= ready && released >= before);
            before = released;
        }
        assert_eq!(drawn.release(Time::NEVER), Time::NEVER);
    }
}
