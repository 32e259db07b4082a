//! What a learned controller and an agent outside of it exchange: observations and metrics one way,
//! actions the other. A simulation stops while a decision is due ([`AgentState::due`]).
use crate::units::Time;

/// Most values of an action.
pub const ACTION_MAX: usize = 2;

/// A record of numbers that is also a row of columns: the struct, the number of its columns, and their names.
macro_rules! columns {
    (
        $(#[doc = $about:literal])*
        $record:ident, $count:ident, $names:ident { $($(#[doc = $meaning:literal])* $column:ident,)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $record {
            $($(#[doc = $meaning])* pub $column: f64,)*
        }

        #[doc = concat!("Names of the columns of [`", stringify!($record), "`], in order.")]
        pub const $names: [&str; $count] = [$(stringify!($column)),*];

        #[doc = concat!("Number of columns of [`", stringify!($record), "`].")]
        pub const $count: usize = [$(stringify!($column)),*].len();

        impl $record {
            /// The numbers, in order.
            pub fn row(&self) -> [f64; $count] {
                [$(self.$column),*]
            }

            /// From a [`row`](Self::row).
            pub fn from_row(row: &[f64; $count]) -> Self {
                let &[$($column),*] = row;
                Self { $($column),* }
            }
        }
    };
}

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

columns! {
    /// Metrics of an interval; 0 where there is no sample.
    Metrics, METRICS, METRIC_NAMES {
        /// End of the interval, s since the run began.
        time_s,
        /// Its length, s.
        duration_s,
        /// Newly delivered, packets.
        acked_packets,
        /// Declared lost, packets.
        lost_packets,
        /// Newly delivered, Mb/s, headers included where the scenario counts them.
        throughput_mbps,
        /// Lost of lost and delivered, in [0, 1].
        loss_ratio,
        /// Mean of the round-trip samples, weighted by the packets they stand for, ms.
        rtt_mean_ms,
        /// Smallest sample, ms.
        rtt_min_ms,
        /// First sample, ms.
        rtt_first_ms,
        /// Last sample, ms.
        rtt_last_ms,
        /// Least-squares slope of the samples over the time of their arrival, s/s.
        rtt_slope,
        /// Smallest round trip of the flow, or of the last 10 s, ms.
        flow_min_rtt_ms,
        /// Smoothed round trip at the end, ms.
        srtt_ms,
        /// Mean time between acknowledged packets, ms.
        ack_gap_ms,
        /// Window: *arrived* at the end, before the decision; *credit* after the decision, packets.
        cwnd_packets,
        /// In flight at the same time, packets.
        inflight_packets,
        /// Pacing rate at the same time, Mb/s; 0 without pacing.
        pacing_mbps,
    }
}

impl Metrics {
    /// Mean round trip of the interval, ms; the smoothed one if nothing was sampled in it.
    pub fn rtt_ms(&self) -> f64 {
        if self.rtt_mean_ms > 0.0 { self.rtt_mean_ms } else { self.srtt_ms }
    }
}

columns! {
    /// What only the simulator knows about a flow's interval: for rewards and for critics in training, never
    /// for an observation. The *bottleneck* is the link that bounds the flow's fair share.
    Truth, TRUTH, TRUTH_NAMES {
        /// Number of the decision that began the interval; -1 before the first.
        interval,
        /// Max-min fair share of the flow among all that were active, Mb/s.
        fair_mbps,
        /// Mean time that the flow's packets waited in queues, all links of their path together, ms.
        queue_ms,
        /// Part of the flow's packets that queues and policers dropped, in [0, 1]; random loss is not in it.
        congestion_loss,
        /// Packets that the flow had waiting in queues, mean over the interval.
        own_queue_packets,
        /// Time that the bottleneck takes for them, ms.
        own_queue_ms,
        /// What the bottleneck could carry, Mb/s.
        capacity_mbps,
        /// Propagation there and back at the end of the interval, ms.
        base_rtt_ms,
        /// What the bottleneck's queue holds, in products of `capacity_mbps` and `base_rtt_ms`; at most 1000.
        buffer_bdp,
        /// Part of the bottleneck's capacity that all flows together used.
        utilisation,
        /// Flows of the same controller, this one included, that were active on a link of its path.
        own_kind_flows,
        /// Flows of a controller that fills buffers until they overflow, active on a link of its path.
        loss_based_flows,
        /// Flows of a version of BBR, active on a link of its path.
        bbr_flows,
        /// Part of the flow's packets that the links of its path lose at random, expected.
        random_loss,
        /// Place of the scenario's class among those of its distribution.
        class,
        /// How many intervals ago a flow came or went on a link of its path or the rate of one changed; 0 for
        /// the interval in which it did, at most 64.
        intervals_since_event,
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
