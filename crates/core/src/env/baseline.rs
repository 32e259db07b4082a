//! What an interval is compared with when it is rewarded.
use crate::decision::{METRICS, metric_place};

const THROUGHPUT: usize = metric_place("throughput_mbps");

/// The latest rewarded interval of a flow, which the next one is compared with; at first the one that ended with the
/// flow's first decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Baseline {
    /// Its metrics.
    pub row: [f64; METRICS],
    /// Highest throughput of an interval of the flow in its episode, this one included, Mb/s.
    pub best: f64,
}

impl Baseline {
    /// Of a flow's first interval.
    pub fn new(row: [f64; METRICS]) -> Self {
        Self { row, best: row[THROUGHPUT] }
    }

    /// Takes in the next rewarded interval, and returns what that is compared with.
    pub fn replace(&mut self, row: [f64; METRICS]) -> Self {
        let before = *self;
        *self = Self { row, best: before.best.max(row[THROUGHPUT]) };
        before
    }

    /// Throughput of the interval, Mb/s.
    pub fn throughput_mbps(&self) -> f64 {
        self.row[THROUGHPUT]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Metrics;

    fn row(throughput_mbps: f64) -> [f64; METRICS] {
        Metrics { throughput_mbps, ..Metrics::default() }.row()
    }

    #[test]
    fn an_interval_is_compared_with_the_one_before_and_the_best_so_far() {
        let mut baseline = Baseline::new(row(5.0));
        assert_eq!(baseline.replace(row(4.0)), Baseline::new(row(5.0)));
        assert_eq!(baseline.replace(row(8.0)), Baseline { row: row(4.0), best: 5.0 });
        assert_eq!(baseline, Baseline { row: row(8.0), best: 8.0 });
    }
}
