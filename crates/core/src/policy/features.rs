//! Features of a monitor interval: named numbers, each with a fixed scaling and range. This table is
//! the reference; the documentation is tested against it.
use super::{ACTION_MAX, Metrics};
use crate::sensing::signals::Interval;
use crate::units::Span;

/// What a feature is computed from, at the end of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Metrics of what arrived in the interval.
    pub metrics: Metrics,
    /// Window now minus the window at the end of the previous interval, packets.
    pub cwnd_change: f64,
    /// Largest throughput of an interval of the flow so far, this one included, Mb/s.
    pub throughput_max_mbps: f64,
    /// Throughput of the interval before, Mb/s.
    pub throughput_before_mbps: f64,
    /// Size of a full packet, Mb.
    pub packet_mb: f64,
    /// Sent in the interval, retransmissions included, packets.
    pub sent_packets: f64,
    /// Latest delivery-rate sample, Mb/s; 0 if there is none.
    pub delivery_rate_mbps: f64,
    /// Signals of the interval; only filled in for features that use them ([`Feature::uses_signals`]).
    pub signals: Interval,
    /// The values of the latest action, in [-1, 1].
    pub action: [f64; ACTION_MAX],
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
    of: Source,
    low: f64,
    high: f64,
}

/// What a feature is computed from.
#[derive(Clone, Copy, Debug)]
enum Source {
    Moment(fn(&Moment) -> f64),
    Signals(fn(&Interval) -> f64),
}

impl Feature {
    /// Its value, scaled and cut to its range.
    pub fn value(&self, moment: &Moment) -> f32 {
        let value = match self.of {
            Source::Moment(of) => of(moment),
            Source::Signals(of) => of(&moment.signals),
        };
        value.clamp(self.low, self.high) as f32
    }

    /// Whether it needs the signals of the interval (`Moment::signals`).
    pub fn uses_signals(&self) -> bool {
        matches!(self.of, Source::Signals(_))
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

impl Moment {
    /// What the largest throughput so far carries in the smallest round trip, Mb.
    fn bdp_mb(&self) -> f64 {
        self.throughput_max_mbps * self.metrics.flow_min_rtt_ms / 1e3
    }

    /// A rate over the largest throughput so far.
    fn of_best(&self, mbps: f64) -> f64 {
        ratio(mbps, self.throughput_max_mbps)
    }

    /// Declared lost per second, Mb/s.
    fn lost_mbps(&self) -> f64 {
        ratio(self.metrics.lost_packets * self.packet_mb, self.metrics.duration_s)
    }

    /// Pacing rate, or the window per smoothed round trip of a flow that does not pace, Mb/s.
    fn pacing_mbps(&self) -> f64 {
        let Metrics { pacing_mbps, cwnd_packets, srtt_ms, .. } = self.metrics;
        if pacing_mbps > 0.0 {
            return pacing_mbps;
        }
        ratio(cwnd_packets * self.packet_mb, srtt_ms / 1e3)
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// ln(part / whole); 0 without either.
fn log_ratio(part: Span, whole: Span) -> f64 {
    if part == Span::ZERO || whole == Span::ZERO {
        return 0.0;
    }
    libm::log(part.as_secs_f64() / whole.as_secs_f64())
}

/// Every feature. The first five are TCP-Drinc's, the next three Aurora's (Jay et al., ICML 2019,
/// section 4.1), those from `queue` on the project's own; every scaling is proposed. Those from `throughput_ratio` on
/// are of Orca, Astraea and Sage, with the scalings of their published code (docs/reference/learned-controllers.md).
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "cwnd_change",
        about: "window now minus the window at the end of the previous interval, packets",
        scale: "/ 10, in [-3, 3]",
        of: Source::Moment(|moment| moment.cwnd_change / 10.0),
        low: -3.0,
        high: 3.0,
    },
    Feature {
        name: "rtt_mean",
        about: "mean round trip of the interval, s; the smoothed one where there is no sample",
        scale: "/ 0.1, in [0, 10]",
        of: Source::Moment(|moment| moment.metrics.rtt_ms() / 100.0),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "rtt_ratio",
        about: "smallest round trip over the interval's mean",
        scale: "as it is, in [0, 1]",
        of: Source::Moment(|moment| ratio(moment.metrics.flow_min_rtt_ms, moment.metrics.rtt_ms())),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "rtt_excess",
        about: "the interval's mean round trip minus the smallest, s",
        scale: "/ 0.1, in [0, 10]",
        of: Source::Moment(|moment| {
            (moment.metrics.rtt_ms() - moment.metrics.flow_min_rtt_ms) / 100.0
        }),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "ack_gap",
        about: "mean time between acknowledged packets, s",
        scale: "/ 0.01, in [0, 10]",
        of: Source::Moment(|moment| moment.metrics.ack_gap_ms / 10.0),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "latency_gradient",
        about: "least-squares slope of the round trips over time, s/s",
        scale: "as it is, in [-10, 10]",
        of: Source::Moment(|moment| moment.metrics.rtt_slope),
        low: -10.0,
        high: 10.0,
    },
    Feature {
        name: "latency_ratio",
        about: "the interval's mean round trip over the smallest round trip",
        scale: "as it is, in [0, 10]",
        of: Source::Moment(|moment| ratio(moment.metrics.rtt_ms(), moment.metrics.flow_min_rtt_ms)),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "send_ratio",
        about: "packets sent over packets acknowledged; 1 if neither, 10 if none is acknowledged",
        scale: "as it is, in [0, 10]",
        of: Source::Moment(|moment| {
            let acked = moment.metrics.acked_packets;
            let sent = moment.sent_packets;
            match (sent > 0.0, acked > 0.0) {
                (_, true) => sent / acked,
                (true, false) => 10.0,
                (false, false) => 1.0,
            }
        }),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "loss_ratio",
        about: "packets declared lost, of those and the acknowledged",
        scale: "as it is, in [0, 1]",
        of: Source::Moment(|moment| moment.metrics.loss_ratio),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "throughput",
        about: "newly delivered, Mb/s",
        scale: "ln(1 + x) / 10, in [0, 2]",
        of: Source::Moment(|moment| libm::log1p(moment.metrics.throughput_mbps) / 10.0),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "delivery_rate",
        about: "latest delivery-rate sample, Mb/s; 0 under ns-2's sender, which has none",
        scale: "ln(1 + x) / 10, in [0, 2]",
        of: Source::Moment(|moment| libm::log1p(moment.delivery_rate_mbps) / 10.0),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "inflight_ratio",
        about: "in flight over the window",
        scale: "as it is, in [0, 2]",
        of: Source::Moment(|moment| {
            ratio(moment.metrics.inflight_packets, moment.metrics.cwnd_packets)
        }),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "srtt",
        about: "smoothed round trip, s",
        scale: "/ 0.1, in [0, 10]",
        of: Source::Moment(|moment| moment.metrics.srtt_ms / 100.0),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "cwnd",
        about: "window, packets",
        scale: "ln(x) / 10, in [0, 2]",
        of: Source::Moment(|moment| libm::log(moment.metrics.cwnd_packets.max(1.0)) / 10.0),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "queue",
        about: "smallest round trip R of the interval over the base, the smallest of 10 s",
        scale: "ln(x), in [0, 3]",
        of: Source::Signals(|signals| log_ratio(signals.rtt_min, signals.base)),
        low: 0.0,
        high: 3.0,
    },
    Feature {
        name: "rtt_rise",
        about: "mean round trip of the interval over its smallest",
        scale: "ln(x), in [0, 2]",
        of: Source::Signals(|signals| log_ratio(signals.rtt_mean, signals.rtt_min)),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "rtt_spread",
        about: "standard deviation of the interval's round trips over the base",
        scale: "as it is, in [0, 2]",
        of: Source::Signals(|signals| {
            ratio(signals.rtt_sd.as_secs_f64(), signals.base.as_secs_f64())
        }),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "loss_log",
        about: "packets declared lost, of those and the acknowledged",
        scale: "ln(1 + 100 x) / 5, in [0, 1]",
        of: Source::Signals(|signals| libm::log1p(100.0 * signals.loss_ratio) / 5.0),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "ce_ratio",
        about: "packets with a congestion mark, of the acknowledged; one a round trip where the sender answers marks",
        scale: "as it is, in [0, 1]",
        of: Source::Signals(|signals| signals.ce_ratio),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "drain",
        about: "(smallest R - base) / (largest R - base) over four intervals; 0 if the largest is below 1 ms",
        scale: "as it is, in [0, 1]",
        of: Source::Signals(|signals| signals.drain),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "rtt_change",
        about: "R minus that of the previous interval, over the interval, s/s",
        scale: "as it is, in [-1, 1]",
        of: Source::Signals(|signals| signals.rtt_change_per_s),
        low: -1.0,
        high: 1.0,
    },
    Feature {
        name: "base_rtt",
        about: "the base over 50 ms",
        scale: "ln(x) / 3, in [-3, 3]",
        of: Source::Signals(|signals| log_ratio(signals.base, Span::from_millis(50)) / 3.0),
        low: -3.0,
        high: 3.0,
    },
    Feature {
        name: "base_age",
        about: "time since a sample within 2 % of the base, over the smoothed round trip",
        scale: "ln(1 + x) / 8, in [0, 2]",
        of: Source::Signals(|signals| {
            let ages = ratio(signals.base_age.as_secs_f64(), signals.srtt.as_secs_f64());
            libm::log1p(ages) / 8.0
        }),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "own_best",
        about: "delivery rate, averaged over intervals, over its largest of 10 s",
        scale: "as it is, in [0, 1.5]",
        of: Source::Signals(|signals| ratio(signals.delivery_pps, signals.delivery_max_pps)),
        low: 0.0,
        high: 1.5,
    },
    Feature {
        name: "rate_spread",
        about: "difference between the delivery rates of successive intervals, beyond one packet, over the larger one: average with weight 1/16",
        scale: "as it is, in [0, 1]",
        of: Source::Signals(|signals| signals.delivery_spread),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "app_limited",
        about: "packets whose samples the application limited, of the acknowledged",
        scale: "as it is, in [0, 1]",
        of: Source::Signals(|signals| signals.app_limited_share),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "since_loss",
        about: "intervals since one with a loss; the largest value before the first loss",
        scale: "ln(1 + x) / 6, in [0, 1]",
        of: Source::Signals(|signals| libm::log1p(f64::from(signals.intervals_since_loss)) / 6.0),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "action_0",
        about: "first value of the latest action; of choice i of n, 2 i / (n - 1) - 1; 0 before the first",
        scale: "as it is, in [-1, 1]",
        of: Source::Moment(|moment| moment.action[0]),
        low: -1.0,
        high: 1.0,
    },
    Feature {
        name: "action_1",
        about: "second value of the latest action; 0 if the map has one, and before the first",
        scale: "as it is, in [-1, 1]",
        of: Source::Moment(|moment| moment.action[1]),
        low: -1.0,
        high: 1.0,
    },
    Feature {
        name: "throughput_ratio",
        about: "throughput over the largest of an interval so far",
        scale: "as it is, in [0, 1]",
        of: Source::Moment(|moment| moment.of_best(moment.metrics.throughput_mbps)),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "throughput_max",
        about: "largest throughput of an interval so far, Mb/s",
        scale: "/ 80, in [0, 100]",
        of: Source::Moment(|moment| moment.throughput_max_mbps / 80.0),
        low: 0.0,
        high: 100.0,
    },
    Feature {
        name: "throughput_change",
        about: "throughput over that of the interval before; 0 if there is none",
        scale: "as it is, in [0, 10]",
        of: Source::Moment(|moment| {
            ratio(moment.metrics.throughput_mbps, moment.throughput_before_mbps)
        }),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "pacing_ratio",
        about: "pacing rate, without one window over smoothed round trip, over the largest throughput so far",
        scale: "as it is, in [0, 10]",
        of: Source::Moment(|moment| moment.of_best(moment.pacing_mbps())),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "pacing_ratio_2",
        about: "the same",
        scale: "as it is, in [0, 2]",
        of: Source::Moment(|moment| moment.of_best(moment.pacing_mbps())),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "lost_rate",
        about: "declared lost per second over the largest throughput so far",
        scale: "as it is, in [0, 10]",
        of: Source::Moment(|moment| moment.of_best(moment.lost_mbps())),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "lost_rate_5",
        about: "the same",
        scale: "* 5, in [0, 50]",
        of: Source::Moment(|moment| 5.0 * moment.of_best(moment.lost_mbps())),
        low: 0.0,
        high: 50.0,
    },
    Feature {
        name: "acked_ratio",
        about: "packets acknowledged over the window",
        scale: "as it is, in [0, 10]",
        of: Source::Moment(|moment| {
            ratio(moment.metrics.acked_packets, moment.metrics.cwnd_packets)
        }),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "interval_s",
        about: "length of the interval, s",
        scale: "as it is, in [0, 10]",
        of: Source::Moment(|moment| moment.metrics.duration_s),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "interval_ratio",
        about: "length of the interval over the smallest round trip",
        scale: "/ 10, in [0, 10]",
        of: Source::Moment(|moment| {
            ratio(moment.metrics.duration_s * 100.0, moment.metrics.flow_min_rtt_ms)
        }),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "srtt_ratio",
        about: "smallest round trip over the smoothed one",
        scale: "as it is, in [0, 1]",
        of: Source::Moment(|moment| ratio(moment.metrics.flow_min_rtt_ms, moment.metrics.srtt_ms)),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "delay_metric",
        about: "1.25 times the smallest round trip over the smoothed one",
        scale: "as it is, in [0, 1]",
        of: Source::Moment(|moment| {
            ratio(1.25 * moment.metrics.flow_min_rtt_ms, moment.metrics.srtt_ms)
        }),
        low: 0.0,
        high: 1.0,
    },
    Feature {
        name: "rtt_over_min",
        about: "the interval's mean round trip over the smallest round trip",
        scale: "as it is, in [0, 2]",
        of: Source::Moment(|moment| ratio(moment.metrics.rtt_ms(), moment.metrics.flow_min_rtt_ms)),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "srtt_over_min",
        about: "smoothed round trip over the smallest",
        scale: "as it is, in [0, 2]",
        of: Source::Moment(|moment| ratio(moment.metrics.srtt_ms, moment.metrics.flow_min_rtt_ms)),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "rtt_smallest",
        about: "smallest round trip, s",
        scale: "/ 0.5, in [0, 20]",
        of: Source::Moment(|moment| moment.metrics.flow_min_rtt_ms / 500.0),
        low: 0.0,
        high: 20.0,
    },
    Feature {
        name: "cwnd_ratio",
        about: "window over what the largest throughput so far carries in the smallest round trip",
        scale: "* 0.8, in [0, 2]",
        of: Source::Moment(|moment| {
            0.8 * ratio(moment.metrics.cwnd_packets * moment.packet_mb, moment.bdp_mb())
        }),
        low: 0.0,
        high: 2.0,
    },
    Feature {
        name: "bdp_ratio",
        about: "what the largest throughput so far carries in the smallest round trip, over the window",
        scale: "as it is, in [0, 10]",
        of: Source::Moment(|moment| {
            ratio(moment.bdp_mb(), moment.metrics.cwnd_packets * moment.packet_mb)
        }),
        low: 0.0,
        high: 10.0,
    },
    Feature {
        name: "zero",
        about: "0, in the place of what a sender does not know",
        scale: "as it is, in [0, 1]",
        of: Source::Moment(|_| 0.0),
        low: 0.0,
        high: 1.0,
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
