//! A histogram of delays, such as how late packets were delivered. Its bins grow with the value, after `HdrHistogram`.
use ackademy::units::Span;

/// Bins per doubling: quantiles are right to 1/32, about 3 %.
const BINS: u64 = 32;

/// Counts of spans of time, to within 3 %.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    counts: Vec<u64>,
    total: u64,
    max: Span,
}

impl Delays {
    /// Adds one.
    pub fn record(&mut self, delay: Span) {
        let bin = bin(delay.0);
        if bin >= self.counts.len() {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
        self.total += 1;
        self.max = self.max.max(delay);
    }

    /// How many were added.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The longest.
    pub fn max(&self) -> Span {
        self.max
    }

    /// The span that a part `ratio` of all does not exceed; zero of none.
    pub fn quantile(&self, ratio: f64) -> Span {
        let rank = ((ratio * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bin, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Span(highest(bin as u64)).min(self.max);
            }
        }
        self.max
    }
}

/// The bin of a value: the first `BINS` values have one each, then every doubling has `BINS`.
fn bin(value: u64) -> usize {
    let doublings = value.max(BINS).ilog2() - BINS.ilog2();
    (u64::from(doublings) * BINS + (value >> doublings)) as usize
}

/// The highest value of a bin.
fn highest(bin: u64) -> u64 {
    let doublings = (bin / BINS).saturating_sub(1);
    let first = bin - doublings * BINS;
    ((first + 1) << doublings) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_ends_within_a_thirty_second_of_each_of_its_values() {
        for value in (0..5000).chain((0..50).map(|shift| (1 << shift) + 12_345)) {
            let end = highest(bin(value) as u64);
            assert!(value <= end && end - value <= value / BINS, "{value} in a bin to {end}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values_to_three_percent() {
        let mut delays = Delays::default();
        (1..=100_000).for_each(|value| delays.record(Span(value)));
        for (ratio, exact) in [(0.5, 50_000.0), (0.99, 99_000.0), (0.999, 99_900.0)] {
            let measured = delays.quantile(ratio).0 as f64;
            assert!((1.0..1.0 + 1.0 / 32.0).contains(&(measured / exact)), "{ratio}: {measured}");
        }
        assert_eq!(delays.quantile(1.0), Span(100_000));
        assert_eq!((delays.total(), delays.max()), (100_000, Span(100_000)));
    }

    #[test]
    fn nothing_was_late_where_nothing_was_delivered() {
        assert_eq!(Delays::default().quantile(0.99), Span::ZERO);
    }
}
