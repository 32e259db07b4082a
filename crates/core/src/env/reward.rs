//! Rewards that are computed here: Aurora's, which environments are most often stepped with, and that of the
//! flagship. Those of other schemes are Python functions.
use crate::decision::{Metrics, Truth};

/// A reward of intervals that is computed here, from the truth.
pub trait Reward: Send + Sync {
    /// A flow's own reward for an interval; `before_mbps` is its throughput in the interval before. `None`: the interval
    /// is not rewarded.
    fn own(&self, interval: &Metrics, truth: &Truth, before_mbps: f64) -> Option<f64>;

    /// What a flow gets, of its own reward and the least one among the flows of its kind ([`Team`]).
    fn shared(&self, own: f64, _least: f64) -> f64 {
        own
    }
}

/// Name of each reward that is computed here.
pub const REWARDS: &[(&str, &dyn Reward)] = &[("flagship", &Flagship::DEFAULT)];

/// Bits of a packet in the reward `aurora`, as in its published training environment.
const PACKET_BITS: f64 = 12_000.0;

/// The reward `aurora` of an interval: (10·throughput − 1000·latency − 2000·loss)·scale.
///
/// Throughput in packets of 1500 bytes per second, latency the mean round trip in seconds, loss a ratio.
///
/// Source: Jay et al., "A Deep Reinforcement Learning Perspective on Internet Congestion Control", ICML 2019.
pub fn aurora(interval: &Metrics, scale: f64) -> f64 {
    let packets_s = interval.throughput_mbps * (1e6 / PACKET_BITS);
    let latency_s = interval.rtt_ms() * 1e-3;
    (10.0 * packets_s - 1e3 * latency_s - 2e3 * interval.loss_ratio) * scale
}

/// The reward `flagship`, with its weights: that of a general-purpose policy, computed from what the simulator
/// knows (all numbers are proposed). It rewards a share of the network that is fair, and charges queueing delay,
/// packets that queues drop, and a rate that wavers although nothing changed.
///
/// With s = throughput / fair share, q the queueing delay, p the ratio of packets dropped by queues, x the
/// throughput and x₀ that of the interval before, the reward of an interval is
///
/// U(s) − w·ln(1 + q / max(τ, 10 ms)) − 5·min(p, 0.2) − 0.05·min(|ln x/x₀|, 1), cut to [−1, 1].
///
/// - U(s) = ½·s + ½·(1 + ln max(s, 0.02) / 3.91) up to s = 1, and 2 − s above.
/// - w is 0.25. Beside a loss-based flow it is 0.1, and q is the time that the bottleneck takes for the flow's
///   own packets in queues: the others' queue is not its fault, and giving up must not be worth it.
/// - The last term counts from 10 intervals after an event on ([`Truth::intervals_since_event`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flagship {
    /// w, alone and among flows of its own kind.
    pub delay: f64,
    /// w beside a loss-based flow.
    pub delay_beside_loss_based: f64,
    /// Shortest base round trip that a delay is compared with, ms.
    pub base_rtt_min_ms: f64,
    /// Of p.
    pub loss: f64,
    /// Largest p that counts.
    pub loss_max: f64,
    /// Of |ln x/x₀|.
    pub waver: f64,
    /// Largest |ln x/x₀| that counts.
    pub waver_max: f64,
    /// Intervals after an event in which the rate may change freely.
    pub settling: f64,
    /// Smallest share under the logarithm.
    pub share_min: f64,
    /// Part of the least reward among the flows of its kind in a flow's reward ([`Team`]).
    pub team: f64,
}

impl Default for Flagship {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Flagship {
    /// The proposed weights.
    pub const DEFAULT: Self = Self {
        delay: 0.25,
        delay_beside_loss_based: 0.1,
        base_rtt_min_ms: 10.0,
        loss: 5.0,
        loss_max: 0.2,
        waver: 0.05,
        waver_max: 1.0,
        settling: 10.0,
        share_min: 0.02,
        team: 0.2,
    };
}

impl Reward for Flagship {
    /// In [−1, 1]. `None` for the first interval of a flow and what came before it: it is unrewarded, since its queue and
    /// its losses are those of slow start.
    fn own(&self, interval: &Metrics, truth: &Truth, before_mbps: f64) -> Option<f64> {
        if truth.interval < 1.0 {
            return None;
        }
        let cost = self.delay_cost(truth) + self.loss_cost(truth);
        let waver = self.waver_cost(truth, interval.throughput_mbps, before_mbps);
        let value = self.value(share(interval.throughput_mbps, truth.fair_mbps));
        Some((value - cost - waver).clamp(-1.0, 1.0))
    }

    /// 0.8 of its own and 0.2 of the least one.
    fn shared(&self, own: f64, least: f64) -> f64 {
        (1.0 - self.team) * own + self.team * least
    }
}

impl Flagship {
    /// U(s).
    pub fn value(&self, share: f64) -> f64 {
        if share > 1.0 {
            return 2.0 - share;
        }
        let log = libm::log(share.max(self.share_min)) / -libm::log(self.share_min);
        0.5 * share + 0.5 * (1.0 + log)
    }

    /// w·ln(1 + q / max(τ, 10 ms)).
    pub fn delay_cost(&self, truth: &Truth) -> f64 {
        let (weight, queue_ms) = if truth.loss_based_flows > 0.0 {
            (self.delay_beside_loss_based, truth.own_queue_ms)
        } else {
            (self.delay, truth.queue_ms)
        };
        weight * libm::log(1.0 + queue_ms / truth.base_rtt_ms.max(self.base_rtt_min_ms))
    }

    /// 5·min(p, 0.2).
    pub fn loss_cost(&self, truth: &Truth) -> f64 {
        self.loss * truth.congestion_loss.min(self.loss_max)
    }

    /// 0.05·min(|ln x/x₀|, 1), once nothing has changed for 10 intervals.
    pub fn waver_cost(&self, truth: &Truth, now_mbps: f64, before_mbps: f64) -> f64 {
        if truth.intervals_since_event < self.settling {
            return 0.0;
        }
        // From or to nothing is as much as counts.
        let change = match (now_mbps > 0.0, before_mbps > 0.0) {
            (true, true) => libm::log(now_mbps / before_mbps).abs(),
            (false, false) => 0.0,
            _ => self.waver_max,
        };
        self.waver * change.min(self.waver_max)
    }
}

/// Part of the fair share that a flow got; 1 where there was nothing to share.
fn share(throughput_mbps: f64, fair_mbps: f64) -> f64 {
    if fair_mbps > 0.0 { throughput_mbps / fair_mbps } else { 1.0 }
}

/// The latest own rewards of the flows of a kind, of which each gets a part of the least. Of several flows
/// that are rewarded at the same time each [`set`](Self::set)s its own reward before any is read.
#[derive(Clone, Debug)]
pub struct Team(Vec<Option<f64>>);

impl Team {
    /// Of so many flows, without a reward yet.
    pub fn new(flows: usize) -> Self {
        Self(vec![None; flows])
    }

    /// A flow's latest own reward.
    pub fn set(&mut self, flow: usize, own: f64) {
        self.0[flow] = Some(own);
    }

    /// A flow has ended: its reward counts no more.
    pub fn leave(&mut self, flow: usize) {
        self.0[flow] = None;
    }

    /// The least of the latest own rewards; none if no flow has one.
    pub fn least(&self) -> Option<f64> {
        self.0.iter().flatten().copied().reduce(f64::min)
    }
}

#[cfg(test)]
#[path = "reward_tests.rs"]
mod tests;
