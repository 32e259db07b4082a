//! How long something took, such as how late packets were delivered: quantiles, and the longest.
use ackademy::histogram::SpanHistogram;
use ackademy::units::Span;

/// Counts of spans of time, to within 0.8 %, and the longest of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    histogram: SpanHistogram,
    max: Span,
}

impl Delays {
    /// Adds one.
    pub fn record(&mut self, delay: Span) {
        self.histogram.add(delay, 1);
        self.max = self.max.max(delay);
    }

    /// How many were added.
    pub fn total(&self) -> u64 {
        self.histogram.total()
    }

    /// The longest.
    pub fn max(&self) -> Span {
        self.max
    }

    /// The span that a part `ratio` of all, in thousandths, does not exceed; zero of none.
    pub fn quantile(&self, ratio: f64) -> Span {
        let permille = (ratio * 1e3).round() as u64;
        self.histogram.quantile(permille).unwrap_or_default().min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_values_to_one_percent() {
        let mut delays = Delays::default();
        (1..=100_000).for_each(|value| delays.record(Span(value)));
        for (ratio, exact) in [(0.5, 50_000.0), (0.99, 99_000.0), (0.999, 99_900.0)] {
            let measured = delays.quantile(ratio).0 as f64;
            assert!((measured / exact - 1.0).abs() < 0.01, "{ratio}: {measured}");
        }
        assert_eq!((delays.total(), delays.max()), (100_000, Span(100_000)));
    }

    #[test]
    fn nothing_was_late_where_nothing_was_delivered() {
        assert_eq!(Delays::default().quantile(0.99), Span::ZERO);
    }
}
