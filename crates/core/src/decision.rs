//! What a learned controller and an agent outside of it exchange: observations and metrics one way,
//! actions the other. A simulation stops while a decision is due ([`AgentState::due`]).
use crate::units::Time;

/// Most values of an action.
pub const ACTION_MAX: usize = 2;
/// Number of metrics.
pub const METRICS: usize = 17;

/// Their names, in order.
pub const METRIC_NAMES: [&str; METRICS] = [
    "time_s",
    "duration_s",
    "acked_packets",
    "lost_packets",
    "throughput_mbps",
    "loss_ratio",
    "rtt_mean_ms",
    "rtt_min_ms",
    "rtt_first_ms",
    "rtt_last_ms",
    "rtt_slope",
    "flow_min_rtt_ms",
    "srtt_ms",
    "ack_gap_ms",
    "cwnd_packets",
    "inflight_packets",
    "pacing_mbps",
];

/// The place of the metric of this name; a name that is none does not compile where a constant is made of it.
pub const fn metric_place(name: &str) -> usize {
    let mut place = 0;
    while !equal(METRIC_NAMES[place].as_bytes(), name.as_bytes()) {
        place += 1;
    }
    place
}

const fn equal(left: &[u8], right: &[u8]) -> bool {
    let mut place = 0;
    while place < left.len() && place < right.len() && left[place] == right[place] {
        place += 1;
    }
    place == left.len() && place == right.len()
}

/// Number of columns of truth.
pub const TRUTH: usize = 16;

/// Their names, in order. No observation may have one: they are for rewards and critics.
pub const TRUTH_NAMES: [&str; TRUTH] = [
    "interval",
    "fair_mbps",
    "queue_ms",
    "congestion_loss",
    "own_queue_packets",
    "own_queue_ms",
    "capacity_mbps",
    "base_rtt_ms",
    "buffer_bdp",
    "utilisation",
    "own_kind_flows",
    "loss_based_flows",
    "bbr_flows",
    "random_loss",
    "class",
    "intervals_since_event",
];

/// What an agent decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Index of one of the steps, from 0.
    Choice(usize),
    /// Values; the action map uses the first one or both.
    Values([f32; ACTION_MAX]),
}

/// Why an action was rejected. The flow's fallback then takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidAction {
    /// A number of the observation or of the action is not finite.
    NotFinite,
    /// The choice does not exist, a value is beyond the limit, or the action is of the wrong kind.
    OutOfRange,
}

/// Metrics of an interval; 0 where there is no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// End of the interval, s since the run began.
    pub time_s: f64,
    /// Its length, s.
    pub duration_s: f64,
    /// Newly delivered, packets.
    pub acked_packets: f64,
    /// Declared lost, packets.
    pub lost_packets: f64,
    /// Newly delivered, Mb/s, headers included where the scenario counts them.
    pub throughput_mbps: f64,
    /// Lost of lost and delivered, in [0, 1].
    pub loss_ratio: f64,
    /// Mean of the round-trip samples, weighted by the packets they stand for, ms.
    pub rtt_mean_ms: f64,
    /// Smallest sample, ms.
    pub rtt_min_ms: f64,
    /// First sample, ms.
    pub rtt_first_ms: f64,
    /// Last sample, ms.
    pub rtt_last_ms: f64,
    /// Least-squares slope of the samples over the time of their arrival, s/s.
    pub rtt_slope: f64,
    /// Smallest round trip of the flow, or of the last 10 s, ms.
    pub flow_min_rtt_ms: f64,
    /// Smoothed round trip at the end, ms.
    pub srtt_ms: f64,
    /// Mean time between acknowledged packets, ms.
    pub ack_gap_ms: f64,
    /// Window: *arrived* at the end, before the decision; *credit* after the decision, packets.
    pub cwnd_packets: f64,
    /// In flight at the same time, packets.
    pub inflight_packets: f64,
    /// Pacing rate at the same time, Mb/s; 0 without pacing.
    pub pacing_mbps: f64,
}

impl Metrics {
    /// Mean round trip of the interval, ms; the smoothed one if nothing was sampled in it.
    pub fn rtt_ms(&self) -> f64 {
        if self.rtt_mean_ms > 0.0 { self.rtt_mean_ms } else { self.srtt_ms }
    }

    /// In the order of [`METRIC_NAMES`].
    pub fn row(&self) -> [f64; METRICS] {
        [
            self.time_s,
            self.duration_s,
            self.acked_packets,
            self.lost_packets,
            self.throughput_mbps,
            self.loss_ratio,
            self.rtt_mean_ms,
            self.rtt_min_ms,
            self.rtt_first_ms,
            self.rtt_last_ms,
            self.rtt_slope,
            self.flow_min_rtt_ms,
            self.srtt_ms,
            self.ack_gap_ms,
            self.cwnd_packets,
            self.inflight_packets,
            self.pacing_mbps,
        ]
    }

    /// From a [`row`](Self::row).
    pub fn from_row(row: &[f64; METRICS]) -> Self {
        let &[
            time_s,
            duration_s,
            acked_packets,
            lost_packets,
            throughput_mbps,
            loss_ratio,
            rtt_mean_ms,
            rtt_min_ms,
            rtt_first_ms,
            rtt_last_ms,
            rtt_slope,
            flow_min_rtt_ms,
            srtt_ms,
            ack_gap_ms,
            cwnd_packets,
            inflight_packets,
            pacing_mbps,
        ] = row;
        Self {
            time_s,
            duration_s,
            acked_packets,
            lost_packets,
            throughput_mbps,
            loss_ratio,
            rtt_mean_ms,
            rtt_min_ms,
            rtt_first_ms,
            rtt_last_ms,
            rtt_slope,
            flow_min_rtt_ms,
            srtt_ms,
            ack_gap_ms,
            cwnd_packets,
            inflight_packets,
            pacing_mbps,
        }
    }
}

/// What only the simulator knows about a flow's interval: for rewards and for critics in training, never
/// for an observation. The *bottleneck* is the link that bounds the flow's fair share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Truth {
    /// Number of the decision that began the interval; -1 before the first.
    pub interval: f64,
    /// Max-min fair share of the flow among all that were active, Mb/s.
    pub fair_mbps: f64,
    /// Mean time that the flow's packets waited in queues, all links of their path together, ms.
    pub queue_ms: f64,
    /// Part of the flow's packets that queues and policers dropped, in [0, 1]; random loss is not in it.
    pub congestion_loss: f64,
    /// Packets that the flow had waiting in queues, mean over the interval.
    pub own_queue_packets: f64,
    /// Time that the bottleneck takes for them, ms.
    pub own_queue_ms: f64,
    /// What the bottleneck could carry, Mb/s.
    pub capacity_mbps: f64,
    /// Propagation there and back at the end of the interval, ms.
    pub base_rtt_ms: f64,
    /// What the bottleneck's queue holds, in products of `capacity_mbps` and `base_rtt_ms`; at most 1000.
    pub buffer_bdp: f64,
    /// Part of the bottleneck's capacity that all flows together used.
    pub utilisation: f64,
    /// Flows of the same controller, this one included, that were active on a link of its path.
    pub own_kind_flows: f64,
    /// Flows of a controller that fills buffers until they overflow, active on a link of its path.
    pub loss_based_flows: f64,
    /// Flows of a version of BBR, active on a link of its path.
    pub bbr_flows: f64,
    /// Part of the flow's packets that the links of its path lose at random, expected.
    pub random_loss: f64,
    /// Place of the scenario's class among those of its distribution.
    pub class: f64,
    /// How many intervals ago a flow came or went on a link of its path or the rate of one changed; 0 for
    /// the interval in which it did, at most 64.
    pub intervals_since_event: f64,
}

impl Truth {
    /// In the order of [`TRUTH_NAMES`].
    pub fn row(&self) -> [f64; TRUTH] {
        [
            self.interval,
            self.fair_mbps,
            self.queue_ms,
            self.congestion_loss,
            self.own_queue_packets,
            self.own_queue_ms,
            self.capacity_mbps,
            self.base_rtt_ms,
            self.buffer_bdp,
            self.utilisation,
            self.own_kind_flows,
            self.loss_based_flows,
            self.bbr_flows,
            self.random_loss,
            self.class,
            self.intervals_since_event,
        ]
    }

    /// From the columns of [`TRUTH_NAMES`].
    pub fn from_row(row: &[f64; TRUTH]) -> Self {
        Self {
            interval: row[0],
            fair_mbps: row[1],
            queue_ms: row[2],
            congestion_loss: row[3],
            own_queue_packets: row[4],
            own_queue_ms: row[5],
            capacity_mbps: row[6],
            base_rtt_ms: row[7],
            buffer_bdp: row[8],
            utilisation: row[9],
            own_kind_flows: row[10],
            loss_based_flows: row[11],
            bbr_flows: row[12],
            random_loss: row[13],
            class: row[14],
            intervals_since_event: row[15],
        }
    }
}

/// An interval whose account is closed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Credit {
    /// The decision that began it.
    pub decision: u64,
    /// Metrics of the packets sent in it.
    pub metrics: Metrics,
    /// They were sent from here on,
    pub sent_from: Time,
    /// and before this.
    pub sent_until: Time,
}

/// What the learner sees of one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentState {
    /// Vectors of features, oldest first, row by row.
    pub observation: Vec<f32>,
    /// Metrics of what arrived since the previous decision.
    pub arrived: Metrics,
    /// Metrics of the packets sent in a monitor interval, if one was closed since the last report.
    pub credit: Option<Credit>,
    /// [`Truth`] of the interval that `arrived` is of, as [`Truth::row`] has it. All zero unless the run
    /// collects it ([`crate::env::EpisodeSource::collect_truth`]).
    pub truth: [f64; TRUTH],
    /// The same of the packets that `credit` is of.
    pub credit_truth: [f64; TRUTH],
    /// Number of the decision, from 0.
    pub decision: u64,
    /// Whether a decision of this agent is due now.
    pub due: bool,
    /// Whether the flow or the run has ended: no further decision will be due.
    pub ended: bool,
    /// Whether this state changed since the learner last read it.
    pub fresh: bool,
    /// Set by [`act`](Self::act), until the controller takes it.
    action: Option<Action>,
}

impl AgentState {
    /// State before the first decision, with an observation of `size` numbers.
    pub fn new(size: usize) -> Self {
        Self { observation: vec![0.0; size], ..Self::default() }
    }

    /// Sets the action; false, and nothing changes, if none is awaited.
    pub fn act(&mut self, action: Action) -> bool {
        let due = std::mem::take(&mut self.due);
        if due {
            self.action = Some(action);
        }
        due
    }

    /// The state of an agent whose flow has closed: no action is awaited any more.
    pub fn last(&self) -> Self {
        Self { due: false, action: None, ..self.clone() }
    }

    /// The action, once.
    pub fn take_action(&mut self) -> Option<Action> {
        self.due = false;
        self.action.take()
    }
}
