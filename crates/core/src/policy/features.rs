//! Features of a monitor interval: named numbers, each with a fixed scaling and range. This table is
//! the reference; the documentation is tested against it.
use super::Metrics;

/// What a feature is computed from, at the end of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Metrics of what arrived in the interval.
    pub metrics: Metrics,
    /// Window now minus the window at the end of the previous interval, packets.
    pub cwnd_change: f64,
    /// Sent in the interval, retransmissions included, packets.
    pub sent_packets: f64,
    /// Latest delivery-rate sample, Mb/s; 0 if there is none.
    pub delivery_rate_mbps: f64,
}

impl Moment {
    /// Mean round trip of the interval, ms; the smoothed one if nothing was sampled in it.
    fn rtt_ms(&self) -> f64 {
        let mean = self.metrics.rtt_mean_ms;
        if mean > 0.0 { mean } else { self.metrics.srtt_ms }
    }
}

/// A number that an observation can hold.
#[derive(Debug)]
pub struct Feature {
    /// Name in `observation.features`.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// How it is scaled and cut.
    pub scale: &'static str,
    of: fn(&Moment) -> f64,
    low: f64,
    high: f64,
}

impl Feature {
    /// Its value, scaled and cut to its range.
    pub fn value(&self, moment: &Moment) -> f32 {
        (self.of)(moment).clamp(self.low, self.high) as f32
    }

    /// Smallest and largest value.
    pub fn range(&self) -> (f32, f32) {
        (self.low as f32, self.high as f32)
    }
}

/// The feature called `name`.
pub fn find(name: &str) -> Option<&'static Feature> {
    FEATURES.iter().find(|feature| feature.name == name)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Every feature. The first five are TCP-Drinc's, the next three Aurora's (Jay et al., ICML 2019,
/// section 4.1); every scaling is proposed.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "cwnd_change",
        about: "window now minus the window at the end of the previous interval, packets",
        scale: "/ 10, in [-3, 3]",
        of: |moment| moment.cwnd_change / 10.0,
        low: -3.0,
        high: 3.0,
    },
    Feature {
        name: "rtt_mean",
        about: "mean round trip of the interval, s; the smoothed one where there is no sample",
        scale: "/ 0.1, in [0, 10]",
        of: |moment| moment.rtt_ms() / 100.0,
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "rtt_ratio",
        about: "smallest round trip over the interval's mean",
        scale: "as it is, in [0, 1]",
        of: |moment| ratio(moment.metrics.flow_min_rtt_ms, moment.rtt_ms()),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "rtt_excess",
        about: "the interval's mean round trip minus the smallest, s",
        scale: "/ 0.1, in [0, 10]",
        of: |moment| (moment.rtt_ms() - moment.metrics.flow_min_rtt_ms) / 100.0,
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "ack_gap",
        about: "mean time between acknowledged packets, s",
        scale: "/ 0.01, in [0, 10]",
        of: |moment| moment.metrics.ack_gap_ms / 10.0,
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "latency_gradient",
        about: "least-squares slope of the round trips over time, s/s",
        scale: "as it is, in [-10, 10]",
        of: |moment| moment.metrics.rtt_slope,
        low: -10.0,
        high: 10.0,
    },
    Feature {
        name: "latency_ratio",
        about: "the interval's mean round trip over the smallest round trip",
        scale: "as it is, in [0, 10]",
        of: |moment| ratio(moment.rtt_ms(), moment.metrics.flow_min_rtt_ms),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "send_ratio",
        about: "packets sent over packets acknowledged; 1 if neither, 10 if none is acknowledged",
        scale: "as it is, in [0, 10]",
        of: |moment| {
            let acked = moment.metrics.acked_packets;
            let sent = moment.sent_packets;
            match (sent > 0.0, acked > 0.0) {
                (_, true) => sent / acked,
                (true, false) => 10.0,
                (false, false) => 1.0,
            }
        },
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "loss_ratio",
        about: "packets declared lost, of those and the acknowledged",
        scale: "as it is, in [0, 1]",
        of: |moment| moment.metrics.loss_ratio,
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "throughput",
        about: "newly delivered, Mb/s",
        scale: "ln(1 + x) / 10, in [0, 2]",
        of: |moment| libm::log1p(moment.metrics.throughput_mbps) / 10.0,
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "delivery_rate",
        about: "latest delivery-rate sample, Mb/s; 0 under ns-2's sender, which has none",
        scale: "ln(1 + x) / 10, in [0, 2]",
        of: |moment| libm::log1p(moment.delivery_rate_mbps) / 10.0,
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "inflight_ratio",
        about: "in flight over the window",
        scale: "as it is, in [0, 2]",
        of: |moment| ratio(moment.metrics.inflight_packets, moment.metrics.cwnd_packets),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "srtt",
        about: "smoothed round trip, s",
        scale: "/ 0.1, in [0, 10]",
        of: |moment| moment.metrics.srtt_ms / 100.0,
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "cwnd",
        about: "window, packets",
        scale: "ln(x) / 10, in [0, 2]",
        of: |moment| libm::log(moment.metrics.cwnd_packets.max(1.0)) / 10.0,
        low: 0.0,
        high: 2.0,
    },
];

/// The latest vectors, oldest first; zeros before the first one.
#[derive(Clone, Debug)]
pub struct History {
    /// Twice as long as the history: the history slides along it and is copied back at the end.
    rows: Vec<f32>,
    size: usize,
    width: usize,
    start: usize,
}

impl History {
    /// Of `length` vectors of `width` numbers.
    pub fn new(length: usize, width: usize) -> Self {
        let size = length * width;
        Self { rows: vec![0.0; 2 * size], size, width, start: 0 }
    }

    /// Adds a vector and drops the oldest.
    pub fn push(&mut self, vector: impl Iterator<Item = f32>) {
        self.start += self.width;
        if self.start + self.size > self.rows.len() {
            self.rows.copy_within(self.start.., 0);
            self.start = 0;
        }
        let end = self.start + self.size;
        for (place, value) in self.rows[end - self.width..end].iter_mut().zip(vector) {
            *place = value;
        }
    }

    /// All vectors, row by row.
    pub fn rows(&self) -> &[f32] {
        &self.rows[self.start..self.start + self.size]
    }
}

#[cfg(test)]
#[path = "tests/features.rs"]
mod tests;
