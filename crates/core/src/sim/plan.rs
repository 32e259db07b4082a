//! What is to be simulated: links and connections with every value filled in. A scenario resolves to
//! these types; [`Sim::new`](super::Sim::new) reads them. What has no default to resolve (queue, loss,
//! reordering, traffic) is read from files as it stands here.
use super::steps::{Finer, Steps};
use super::trace::Trace;
use crate::params::ParamValue;
use crate::toml_error::kinds;
use crate::transport::config::SenderConfig;
use crate::transport::schedulers;
use crate::units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Links, and the connections over them.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// End of the run.
    pub duration: Time,
    /// Distance of samples; zero for none.
    pub sample_interval: Span,
    /// Every link, one direction each.
    pub links: Vec<LinkPlan>,
    /// Every connection that a scenario names; a Poisson source stands for many.
    pub connections: Vec<ConnectionPlan>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Unique.
    pub name: String,
    /// Whether time series are kept for it.
    pub sampled: bool,
    /// How fast it serves.
    pub rate: RatePlan,
    /// When it serves nothing.
    pub outages: Vec<(Time, Time)>,
    /// Propagation.
    pub delay: DelayPlan,
    /// The link, by its place among all, whose draws of the delay this one repeats.
    pub delay_of: Option<u64>,
    /// Standard deviation of a constant delay.
    pub jitter: Span,
    /// Whether packets may not overtake each other.
    pub keep_order: bool,
    /// Discipline; `bdp` is resolved to `bytes`.
    pub queue: QueueSpec,
    /// Random loss.
    pub loss: Option<LossSpec>,
    /// The same, piecewise constant, in place of `loss`; empty for none.
    pub loss_schedule: Vec<(Time, f64)>,
    /// Part of packets delivered twice.
    pub duplicate_ratio: f64,
    /// Part of packets held back.
    pub reorder: Option<ReorderSpec>,
    /// What few links have.
    pub extras: ExtrasPlan,
}

/// What few links do to packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtrasPlan {
    /// Drops what exceeds a rate.
    pub policer: Option<PolicerSpec>,
    /// Releases packets in lumps.
    pub aggregation: Option<AggregationSpec>,
    /// Repairs its own losses.
    pub retransmit: Option<RetransmitSpec>,
    /// Clears the ECN field.
    pub bleach: bool,
    /// Part of ECN-capable packets marked for nothing.
    pub forge_ce: f64,
}

/// How fast a link serves.
#[derive(Clone, Debug)]
pub enum RatePlan {
    /// Always the same.
    Constant(Rate),
    /// Piecewise constant.
    Schedule(Steps<Rate>),
    /// Uniform redraw.
    Random {
        /// Smallest.
        low: Rate,
        /// Largest.
        high: Rate,
        /// Distance of draws.
        every: Span,
        /// Changes of a draw.
        finer: Option<Finer>,
    },
    /// Recorded delivery opportunities.
    Trace(Arc<Trace>),
}

/// Propagation of a link.
#[derive(Clone, Debug)]
pub enum DelayPlan {
    /// Always the same.
    Constant(Span),
    /// Piecewise constant.
    Schedule(Steps<Span>),
    /// Uniform redraw.
    Random {
        /// Smallest.
        low: Span,
        /// Largest.
        high: Span,
        /// Distance of draws.
        every: Span,
        /// Changes of a draw.
        finer: Option<Finer>,
    },
}

impl DelayPlan {
    /// The smallest value it takes.
    pub fn minimum(&self) -> Span {
        match self {
            Self::Constant(span) => *span,
            Self::Schedule(steps) => steps.values().min().unwrap_or_default(),
            Self::Random { low, finer, .. } => {
                let spread = finer.map_or(0, |finer| u64::from(finer.spread));
                Span(low.0 - low.0 / 1_000_000 * spread)
            }
        }
    }
}

/// One connection.
#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    /// Unique.
    pub name: String,
    /// The scenario's `[[flow]]` that it comes from; several may come from one.
    pub entry: usize,
    /// Name in the controller table, or of a controller that the caller supplies.
    pub controller: String,
    /// Its settings, as given.
    pub params: Vec<(String, ParamValue)>,
    /// The route of each subflow.
    pub subflows: Vec<Route>,
    /// How several subflows share the connection's data; `None` with one.
    pub mptcp: Option<MptcpPlan>,
    /// Earliest start.
    pub start: Time,
    /// Later by a uniform draw from [0, this].
    pub start_spread: Span,
    /// No new data from here on.
    pub stop: Time,
    /// What it sends.
    pub traffic: TrafficSpec,
    /// How it sends.
    pub sender: SenderConfig,
}

/// The data level of a connection with several subflows.
#[derive(Clone, Debug)]
pub struct MptcpPlan {
    /// Who sends what.
    pub scheduler: &'static schedulers::Spec,
    /// Most bytes beyond the data acknowledgement that the receiver takes.
    pub receive_buffer: Bytes,
    /// Most bytes that the sender keeps until they are acknowledged.
    pub send_buffer: Bytes,
    /// Whether a subflow that the receive window blocks sends what the window waits for.
    pub opportunistic: bool,
    /// When each subflow opens, but not before its connection begins, and closes.
    pub times: Vec<(Time, Time)>,
}

/// Indices of links, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Data direction.
    pub forward: Vec<u32>,
    /// Acknowledgements.
    pub reverse: Vec<u32>,
}

kinds! {
    /// Queue discipline of a link. Limits count the packet in transmission (ns-2's `limit_`), except
    /// those of `codel`, `fq_codel` and `dualpi2`, which count what waits.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum QueueSpec as QueueFields, "QueueSpec" {
        /// Keeps packets that fit; without a limit, all of them.
        DropTail {
            /// Most packets in the system.
            #[serde(default)]
            packets: Option<u64>,
            /// Most bytes in the system.
            #[serde(default)]
            bytes: Option<u64>,
            /// Most bytes, as a multiple of `rate_mbps` times `rtt_ms`.
            #[serde(default)]
            bdp: Option<f64>,
            /// What `bdp` comes to is at least so many bytes: where the product is small, a share of it
            /// would hold no packet.
            #[serde(default)]
            min_bytes: Option<u64>,
        },
        /// Random early detection (Floyd and Jacobson 1993), gentle.
        Red {
            /// Average queue below which nothing is dropped.
            min_packets: u64,
            /// Average queue at which `max_ratio` is dropped.
            max_packets: u64,
            /// Drop ratio at `max_packets`.
            #[serde(default = "tenth")]
            max_ratio: f64,
            /// Weight of the moving average.
            #[serde(default = "red_weight")]
            weight: f64,
            /// Hard limit.
            packets: u64,
            /// Mark instead of dropping where possible.
            #[serde(default)]
            ecn: bool,
        },
        /// Controlled delay (RFC 8289).
        Codel {
            /// Acceptable standing queue delay.
            #[serde(default = "five")]
            target_ms: f64,
            /// Worst-case round-trip time.
            #[serde(default = "hundred")]
            interval_ms: f64,
            /// Hard limit.
            packets: u64,
            /// Mark instead of dropping where possible.
            #[serde(default)]
            ecn: bool,
        },
        /// Flow queues with CoDel (RFC 8290).
        FqCodel {
            /// Acceptable standing queue delay.
            #[serde(default = "five")]
            target_ms: f64,
            /// Worst-case round-trip time.
            #[serde(default = "hundred")]
            interval_ms: f64,
            /// Hard limit over all queues.
            packets: u64,
            /// Number of queues.
            #[serde(default = "queues")]
            queues: u32,
            /// Bytes a queue may send per turn.
            #[serde(default = "quantum")]
            quantum_bytes: u32,
            /// CoDel's control law as Linux and ns-3 compute it, by one step of Newton's method per drop.
            #[serde(default)]
            newton: bool,
            /// What a device below it takes in advance: these packets wait in order, out of reach of
            /// the discipline. Default 0.
            #[serde(default)]
            device_packets: u64,
            /// Mark instead of dropping where possible.
            #[serde(default)]
            ecn: bool,
        },
        /// Proportional integral controller enhanced (RFC 8033).
        Pie {
            /// Reference queue delay.
            #[serde(default = "fifteen")]
            target_ms: f64,
            /// Update interval.
            #[serde(default = "fifteen")]
            update_ms: f64,
            /// Hard limit.
            packets: u64,
            /// Mark instead of dropping where possible.
            #[serde(default)]
            ecn: bool,
        },
        /// Two coupled queues, of which that of ECT(1) packets is short (RFC 9332).
        Dualpi2(Dualpi2Spec),
        /// Drop-tail that marks beyond a threshold (RFC 8257 section 4.1).
        Step {
            /// Packets in the system, the one in transmission included, that an arrival may find unmarked.
            mark_packets: u64,
            /// Hard limit.
            packets: u64,
        },
    }
}

/// Settings of the queue discipline `dualpi2`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dualpi2Spec {
    /// Queue delay to hold.
    #[serde(default = "fifteen")]
    pub target_ms: f64,
    /// Update interval.
    #[serde(default = "sixteen")]
    pub update_ms: f64,
    /// Weight of the delay's distance from the target, per second.
    #[serde(default = "dualpi2_alpha")]
    pub alpha: f64,
    /// Weight of the delay's change, per second.
    #[serde(default = "dualpi2_beta")]
    pub beta: f64,
    /// Low-latency marks per square root of classic drops.
    #[serde(default = "two")]
    pub coupling: f64,
    /// Low-latency packets that waited so long are marked.
    #[serde(default = "one")]
    pub step_ms: f64,
    /// Part of the link for classic packets while both kinds wait.
    #[serde(default = "tenth")]
    pub classic_share: f64,
    /// Hard limit over both queues.
    pub packets: u64,
}

impl QueueSpec {
    /// The most that it holds, in bytes, of packets of this size; infinite without a limit.
    pub fn limit_bytes(&self, packet_bytes: f64) -> f64 {
        match *self {
            Self::DropTail { packets, bytes, .. } => {
                let of_packets = packets.map_or(f64::INFINITY, |packets| packets as f64);
                let of_bytes = bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
                of_bytes.min(of_packets * packet_bytes)
            }
            Self::Red { packets, .. }
            | Self::Codel { packets, .. }
            | Self::FqCodel { packets, .. }
            | Self::Pie { packets, .. }
            | Self::Dualpi2(Dualpi2Spec { packets, .. })
            | Self::Step { packets, .. } => packets as f64 * packet_bytes,
        }
    }
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::DropTail { packets: None, bytes: None, bdp: None, min_bytes: None }
    }
}

kinds! {
    /// Random loss.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum LossSpec as LossFields, "LossSpec" {
        /// Each packet independently.
        Bernoulli {
            /// [0, 1].
            ratio: f64,
            /// Nothing is lost before.
            #[serde(default)]
            from_s: f64,
            /// Nothing is lost from here on. Absent: no end.
            #[serde(default)]
            until_s: Option<f64>,
        },
        /// Two states, good and bad, changing per packet (Gilbert 1960, Elliott 1963).
        GilbertElliott {
            /// Good to bad, per packet; [0, 1].
            good_to_bad: f64,
            /// Bad to good, per packet; [0, 1].
            bad_to_good: f64,
            /// Loss ratio in the good state.
            #[serde(default)]
            good_loss: f64,
            /// Loss ratio in the bad state.
            #[serde(default = "one")]
            bad_loss: f64,
            /// Nothing is lost before.
            #[serde(default)]
            from_s: f64,
            /// Nothing is lost from here on. Absent: no end.
            #[serde(default)]
            until_s: Option<f64>,
        },
    }
}

/// Packets that exceed `rate_mbps` by more than `burst_bytes` are dropped on arrival.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicerSpec {
    /// What passes in the long run.
    pub rate_mbps: f64,
    /// What passes at once after a pause.
    pub burst_bytes: u64,
}

/// Packets leave together at times that are `low_ms` to `high_ms` apart, drawn uniformly.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AggregationSpec {
    /// Shortest time between releases.
    pub low_ms: f64,
    /// Longest.
    pub high_ms: f64,
}

/// Each attempt at a packet fails with `ratio`, and each retransmission takes `delay_ms`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RetransmitSpec {
    /// [0, 1].
    pub ratio: f64,
    /// Of each retransmission.
    pub delay_ms: f64,
    /// Retransmissions after which a packet is lost. Default 7.
    #[serde(default = "seven")]
    pub most: u32,
}

/// Part `ratio` of packets takes between `low_ms` and `high_ms` longer.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// [0, 1].
    pub ratio: f64,
    /// Least extra delay.
    pub low_ms: f64,
    /// Most extra delay.
    pub high_ms: f64,
}

kinds! {
    /// What the application sends.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum TrafficSpec as TrafficFields, "TrafficSpec" {
        /// Always more.
        Bulk {},
        /// Exponential amounts, then, when all is acknowledged, exponential pauses.
        OnOff {
            /// Mean amount.
            mean_bytes: f64,
            /// Mean pause.
            mean_off_s: f64,
        },
        /// One transfer.
        Fixed {
            /// Its size.
            bytes: u64,
        },
        /// Data appears at a constant rate; what the window refuses waits.
        AppLimited {
            /// Rate of the application.
            rate_mbps: f64,
            /// Written at a time.
            write_bytes: u32,
        },
        /// A number of writes at a constant rate into a send buffer of a socket; one that does not fit
        /// is refused whole and never offered again.
        Writes {
            /// How many.
            count: u64,
            /// Size of each.
            write_bytes: u32,
            /// From one to the next.
            interval_ms: f64,
            /// Most that the socket holds of what is unsent or not cumulatively acknowledged.
            send_buffer_bytes: u64,
        },
        /// New connections arrive as a Poisson process, each with an exponential transfer.
        Poisson {
            /// Arrivals per second.
            per_s: f64,
            /// Mean transfer.
            mean_bytes: f64,
        },
        /// Transfers of a fixed size with an exponential pause after each.
        RequestResponse {
            /// Size of a response.
            response_bytes: u64,
            /// Mean pause.
            mean_think_s: f64,
        },
        /// Datagrams at a constant rate, unresponsive.
        Cbr {
            /// Rate on the wire.
            rate_mbps: f64,
            /// Size on the wire.
            packet_bytes: u32,
        },
    }
}

impl Default for TrafficSpec {
    fn default() -> Self {
        Self::Bulk {}
    }
}

fn one() -> f64 {
    1.0
}
fn tenth() -> f64 {
    0.1
}
fn red_weight() -> f64 {
    0.002
}
fn five() -> f64 {
    5.0
}
fn fifteen() -> f64 {
    15.0
}
fn seven() -> u32 {
    7
}
fn two() -> f64 {
    2.0
}
fn sixteen() -> f64 {
    16.0
}
fn dualpi2_alpha() -> f64 {
    0.16
}
fn dualpi2_beta() -> f64 {
    3.2
}
fn hundred() -> f64 {
    100.0
}
fn queues() -> u32 {
    1024
}
fn quantum() -> u32 {
    1514
}
