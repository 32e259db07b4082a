//! The fields of a scenario file, with their units in their names. `docs/reference/scenarios.md` shows them by
//! example; `ackademy schema` prints them as JSON Schema.
use super::pairs;
use super::recorded::{RecordedSpec, TraceSpec};
use crate::params::ParamValue;
use crate::sim::plan::{
    AggregationSpec, LossSpec, PolicerSpec, QueueSpec, ReorderSpec, RetransmitSpec, TrafficSpec,
};
use crate::transport::config::{Ecn, SendHook};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A scenario file.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScenarioSpec {
    /// Name in tables and plots; the file's name if absent.
    #[serde(default)]
    pub name: Option<String>,
    /// How long to simulate, in seconds of simulated time; (0, 10^8].
    pub duration_s: f64,
    /// Time series: one row per flow and link each so many milliseconds; 0 for none.
    #[serde(default)]
    pub sample_interval_ms: f64,
    /// Preset: one shared bottleneck.
    #[serde(default)]
    pub dumbbell: Option<DumbbellSpec>,
    /// Preset: several bottlenecks in a row.
    #[serde(default)]
    pub parking_lot: Option<ParkingLotSpec>,
    /// Preset: two disjoint paths between two hosts.
    #[serde(default)]
    pub two_path: Option<TwoPathSpec>,
    /// Links of a free topology; flows then name their `path` and `reverse`.
    #[serde(default)]
    pub link: Vec<LinkSpec>,
    /// Defaults of every flow's sender and receiver.
    #[serde(default)]
    pub sender: SenderSpec,
    /// The flows; at least one.
    #[serde(default)]
    pub flow: Vec<FlowSpec>,
}

impl ScenarioSpec {
    /// See [`super::Scenario::entry_names`].
    pub fn entry_names(&self) -> Vec<String> {
        let own = self.flow.iter().enumerate();
        own.map(|(index, flow)| flow.name.clone().unwrap_or_else(|| format!("flow{index}")))
            .collect()
    }
}

/// One bottleneck, with an access link per flow on both sides if asked for.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DumbbellSpec {
    /// Propagation there and back, split evenly over the bottleneck's two directions. Absent: the
    /// bottleneck's own `delay` counts for the data direction and `reverse_delay_ms` back.
    #[serde(default)]
    pub rtt_ms: Option<f64>,
    /// The data direction.
    pub bottleneck: LinkSpec,
    /// The reverse direction. What it says nothing of is as without it: the bottleneck's rate (ACKs never
    /// queue if that varies), no limit of the queue, no loss.
    #[serde(default)]
    pub reverse: Option<LinkSpec>,
    /// Propagation of the reverse direction when `rtt_ms` is absent.
    #[serde(default)]
    pub reverse_delay_ms: f64,
    /// The reverse direction repeats the bottleneck's `delay_random`, draw by draw, or `delay_trace`, and its
    /// `keep_order`, as a wire does that is the same both ways.
    #[serde(default)]
    pub reverse_varies: bool,
    /// Rate of each flow's access links (both sides, both directions); absent: no access links.
    #[serde(default)]
    pub access_mbps: Option<f64>,
    /// Propagation of each access link, one way.
    #[serde(default)]
    pub access_delay_ms: f64,
}

/// `hops` equal bottlenecks in a row; a flow takes `route = [first, last]`, by default all.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ParkingLotSpec {
    /// Number of bottlenecks; 1 to 100.
    pub hops: u32,
    /// Each of them, in the data direction.
    pub bottleneck: LinkSpec,
    /// Propagation of each hop back; absent: `bottleneck.delay_ms`.
    #[serde(default)]
    pub reverse_delay_ms: Option<f64>,
}

/// Two disjoint paths; a flow takes `route = [index]`, or one subflow on each.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TwoPathSpec {
    /// Path 0, in the data direction.
    pub first: LinkSpec,
    /// Path 1, in the data direction.
    pub second: LinkSpec,
}

/// One direction of a link. Exactly one of the four rates must be given.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Unique; presets name their own.
    #[serde(default)]
    pub name: Option<String>,
    /// Constant rate; (0, 10^6].
    #[serde(default)]
    pub rate_mbps: Option<f64>,
    /// Pairs (from second, Mb/s), the first from 0; a rate of 0 is an outage.
    #[serde(default, deserialize_with = "pairs::optional_list")]
    pub rate_schedule: Option<Vec<(f64, f64)>>,
    /// Uniform redraw at a frequency.
    #[serde(default)]
    pub rate_random: Option<RateRandomSpec>,
    /// A recorded rate: the name of a mahimahi trace, relative to the scenario, or a table.
    #[serde(default)]
    pub trace: Option<TraceSpec>,
    /// Constant propagation delay, one way.
    #[serde(default)]
    pub delay_ms: f64,
    /// Pairs (from second, ms), instead of `delay_ms`.
    #[serde(default, deserialize_with = "pairs::optional_list")]
    pub delay_schedule: Option<Vec<(f64, f64)>>,
    /// Uniform redraw at a frequency, instead of `delay_ms`.
    #[serde(default)]
    pub delay_random: Option<DelayRandomSpec>,
    /// Recorded propagation delays, one way, instead of `delay_ms`.
    #[serde(default)]
    pub delay_trace: Option<RecordedSpec>,
    /// Standard deviation of a normal delay per packet around `delay_ms`, cut to 0 and twice that.
    #[serde(default)]
    pub jitter_ms: f64,
    /// Whether a falling delay may not let a packet overtake an earlier one.
    #[serde(default = "yes")]
    pub keep_order: bool,
    /// Queue discipline; absent: drop-tail without a limit.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Random loss after transmission.
    #[serde(default)]
    pub loss: Option<LossSpec>,
    /// Pairs (from second, part of packets lost), the first from 0, instead of `loss`.
    #[serde(default, deserialize_with = "pairs::optional_list")]
    pub loss_schedule: Option<Vec<(f64, f64)>>,
    /// Part of packets delivered twice; [0, 1].
    #[serde(default)]
    pub duplicate_ratio: f64,
    /// Some packets take longer and are overtaken.
    #[serde(default)]
    pub reorder: Option<ReorderSpec>,
    /// Pairs (from second, to second) during which the link serves nothing.
    #[serde(default, deserialize_with = "pairs::list")]
    pub outages: Vec<(f64, f64)>,
    /// Drops on arrival what exceeds a rate, before the queue.
    #[serde(default)]
    pub policer: Option<PolicerSpec>,
    /// Releases packets in lumps.
    #[serde(default)]
    pub aggregation: Option<AggregationSpec>,
    /// Repairs its own losses, which takes time.
    #[serde(default)]
    pub retransmit: Option<RetransmitSpec>,
    /// `bleach`: packets leave without marks, and not ECN-capable.
    #[serde(default)]
    pub ecn: Option<LinkEcn>,
    /// Part of ECN-capable packets that get a mark for nothing; [0, 1].
    #[serde(default)]
    pub forge_ce: Option<f64>,
    /// Rate and delay change together at regular times, with a short outage each.
    #[serde(default)]
    pub handover: Option<HandoverSpec>,
}

impl LinkSpec {
    /// Whether it says how long propagation takes.
    pub(super) fn has_delay(&self) -> bool {
        self.delay_ms != 0.0
            || self.delay_schedule.is_some()
            || self.delay_random.is_some()
            || self.delay_trace.is_some()
    }
}

/// What a link does to the ECN field.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkEcn {
    /// Clears it.
    Bleach,
}

/// Every `every_s` a new rate and delay, uniform in their ranges, after an outage.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HandoverSpec {
    /// From one to the next. Default 15.
    #[serde(default = "fifteen")]
    pub every_s: f64,
    /// Smallest rate.
    pub low_mbps: f64,
    /// Largest rate.
    pub high_mbps: f64,
    /// Shortest delay, one way.
    pub low_ms: f64,
    /// Longest delay.
    pub high_ms: f64,
    /// How long nothing is served at each. Default 0.
    #[serde(default)]
    pub outage_ms: f64,
    /// Part of packets lost at each, until `loss_ms` after the outage; [0, 1]. Default 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss: f64,
    /// How long after the outage. Default 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss_ms: f64,
    /// Between handovers rate and delay change together every so many milliseconds. Absent: they hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_ms: Option<f64>,
    /// Each such change multiplies the rate by a factor in [1 - this, 1 + this]; [0, 0.99]. Default 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rate_spread: f64,
    /// The same of the delay.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_spread: f64,
}

/// Rate uniform in [low, high], redrawn `hz` times a second.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RateRandomSpec {
    /// Smallest, at least 0.01.
    pub low_mbps: f64,
    /// Largest.
    pub high_mbps: f64,
    /// Draws per second; (0, 1000].
    pub hz: f64,
}

/// Delay uniform in [low, high], redrawn `hz` times a second.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DelayRandomSpec {
    /// Smallest.
    pub low_ms: f64,
    /// Largest.
    pub high_ms: f64,
    /// Draws per second; (0, 1000].
    pub hz: f64,
}

/// One flow, or `count` equal ones.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name in tables; numbered if `count` > 1.
    #[serde(default)]
    pub name: Option<String>,
    /// How many; all flows of a scenario together at most 100 000.
    #[serde(default = "one_flow")]
    pub count: u64,
    /// A name from `ackademy list`, or `file.py:Class`.
    #[serde(default = "default_controller")]
    pub controller: String,
    /// Settings of the controller; `ackademy list NAME` shows them.
    #[serde(default)]
    pub params: BTreeMap<String, ParamSpec>,
    /// Links of the data direction, in order (free topology).
    #[serde(default)]
    pub path: Option<Vec<String>>,
    /// Links of the reverse direction, in order; absent: no link, ACKs arrive at once.
    #[serde(default)]
    pub reverse: Option<Vec<String>>,
    /// Preset topologies: `[first, last]` hop of a parking lot, `[index]` of a two-path net.
    #[serde(default)]
    pub route: Option<Vec<u32>>,
    /// Two-path preset: one subflow on each path instead of one route.
    #[serde(default)]
    pub multipath: bool,
    /// Preset topologies: data takes the reverse direction, and ACKs the direction of the others' data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backward: bool,
    /// Start of the first flow.
    #[serde(default)]
    pub start_s: f64,
    /// Each flow starts later by a uniform draw from [0, this].
    #[serde(default)]
    pub start_spread_s: f64,
    /// Each flow of `count` starts this much after the one before.
    #[serde(default)]
    pub start_step_s: f64,
    /// No new data after this; absent: never.
    #[serde(default)]
    pub stop_s: Option<f64>,
    /// What the application sends.
    #[serde(default)]
    pub traffic: TrafficSpec,
    /// Overrides of the scenario's `[sender]`.
    #[serde(default)]
    pub sender: SenderSpec,
    /// Several subflows: where they run, and how they share the data.
    #[serde(default)]
    pub mptcp: Option<MptcpSpec>,
}

/// A connection of several subflows: `multipath = true`, or a list of subflows here.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MptcpSpec {
    /// `min_rtt` (default), `round_robin` or `redundant`.
    #[serde(default = "default_scheduler")]
    pub scheduler: String,
    /// Most bytes that the receiver takes beyond what the application has read. Default 64 MiB.
    #[serde(default = "default_buffer")]
    pub receive_buffer_bytes: u64,
    /// Most bytes that the sender keeps until the receiver has acknowledged them in order. Default
    /// 64 MiB.
    #[serde(default = "default_buffer")]
    pub send_buffer_bytes: u64,
    /// A subflow that the receive window blocks sends what the window waits for, if another subflow has
    /// sent that (MPTCP v0.92). Default false, as Linux.
    #[serde(default)]
    pub opportunistic: bool,
    /// The subflows, 2 to 8. Absent: with `multipath = true`, one on each path.
    #[serde(default)]
    pub subflow: Vec<SubflowSpec>,
}

/// One subflow of a connection.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SubflowSpec {
    /// As a flow's `path`.
    #[serde(default)]
    pub path: Option<Vec<String>>,
    /// As a flow's `reverse`.
    #[serde(default)]
    pub reverse: Option<Vec<String>>,
    /// As a flow's `route`.
    #[serde(default)]
    pub route: Option<Vec<u32>>,
    /// When it opens, but not before its connection begins. Default 0.
    #[serde(default)]
    pub start_s: f64,
    /// When it closes; what it has in flight is sent on the others. Absent: never.
    #[serde(default)]
    pub stop_s: Option<f64>,
}

/// A setting in a scenario file.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ParamSpec {
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A switch: true is 1.
    Switch(bool),
    /// One of a few words, or the name of a file relative to the scenario.
    Word(String),
}

impl Default for MptcpSpec {
    fn default() -> Self {
        Self {
            scheduler: default_scheduler(),
            receive_buffer_bytes: default_buffer(),
            send_buffer_bytes: default_buffer(),
            opportunistic: false,
            subflow: Vec::new(),
        }
    }
}

impl<'de> Deserialize<'de> for ParamSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ParamVisitor)
    }
}

struct ParamVisitor;

impl Visitor<'_> for ParamVisitor {
    type Value = ParamSpec;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number, true, false or a word")
    }

    fn visit_i64<E: Error>(self, integer: i64) -> Result<ParamSpec, E> {
        Ok(ParamSpec::Integer(integer))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<ParamSpec, E> {
        Ok(ParamSpec::Number(number))
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<ParamSpec, E> {
        Ok(ParamSpec::Switch(on))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<ParamSpec, E> {
        Ok(ParamSpec::Word(word.to_owned()))
    }
}

impl From<&ParamSpec> for ParamValue {
    fn from(spec: &ParamSpec) -> Self {
        match spec {
            ParamSpec::Integer(integer) => Self::Number(*integer as f64),
            ParamSpec::Number(number) => Self::Number(*number),
            ParamSpec::Switch(on) => Self::Number(f64::from(u8::from(*on))),
            ParamSpec::Word(word) => Self::Word(word.clone()),
        }
    }
}

impl From<&ParamValue> for ParamSpec {
    fn from(value: &ParamValue) -> Self {
        match value {
            ParamValue::Number(number) => Self::Number(*number),
            ParamValue::Word(word) => Self::Word(word.clone()),
            ParamValue::File(content) => Self::Word(content.path.clone()),
        }
    }
}

/// Sender and receiver. What is absent comes from the scenario's `[sender]`, then from the
/// defaults of the `recovery` chosen.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SenderSpec {
    /// `sack` (default) or `ns2`.
    #[serde(default)]
    pub recovery: Option<RecoverySpec>,
    /// Full packet on the wire; the unit of `cwnd`. Default 1500 (`ns2`: 1260).
    #[serde(default)]
    pub packet_bytes: Option<u32>,
    /// Headers within `packet_bytes`. Default 52 (`ns2`: 50).
    #[serde(default)]
    pub header_bytes: Option<u32>,
    /// Acknowledgement on the wire. Default 52 (`ns2`: 40).
    #[serde(default)]
    pub ack_bytes: Option<u32>,
    /// Full packets per acknowledgement. Default 2 (`ns2`: 1).
    #[serde(default)]
    pub ack_every: Option<u32>,
    /// Longest wait for the next packet before acknowledging. Default 40 (`ns2`: 100).
    #[serde(default)]
    pub ack_delay_ms: Option<f64>,
    /// Initial window. Default 10 (RFC 6928; `ns2`: 2).
    #[serde(default)]
    pub initial_cwnd_packets: Option<f64>,
    /// Initial slow-start threshold. Default none (`ns2`: 100 000, its `window_`).
    #[serde(default)]
    pub initial_ssthresh_packets: Option<f64>,
    /// Receiver window. Default none (`ns2`: 100 000).
    #[serde(default)]
    pub receiver_window_packets: Option<u64>,
    /// Smallest retransmission time-out. Default 200.
    #[serde(default)]
    pub rto_min_ms: Option<f64>,
    /// Largest. Default 60 000.
    #[serde(default)]
    pub rto_max_ms: Option<f64>,
    /// Before the first sample. Default 1000 (RFC 6298; `ns2`: 3000).
    #[serde(default)]
    pub rto_initial_ms: Option<f64>,
    /// Clock granularity G of RFC 6298. Default 1 (`ns2`: 0.1, Remy's `tcpTick_`).
    #[serde(default)]
    pub rto_tick_ms: Option<f64>,
    /// `sack`: RACK loss detection (RFC 8985); off: RFC 6675's counting rule. Default true.
    #[serde(default)]
    pub rack: Option<bool>,
    /// `sack`: tail loss probes (RFC 8985). Default true.
    #[serde(default)]
    pub tlp: Option<bool>,
    /// `sack`: proportional rate reduction (RFC 9937). Default true.
    #[serde(default)]
    pub prr: Option<bool>,
    /// `sack`: in recovery, with nothing new to send, segments that nothing says are lost are sent
    /// again (RFC 6675 `NextSeg` rule 3), with ns-3's pipe and its bound of PRR. Default false.
    #[serde(default)]
    pub rescue: Option<bool>,
    /// `sack`: the reaction to congestion marks, and what packets announce; datagrams (`cbr`) announce
    /// the same. Default `off`.
    #[serde(default)]
    pub ecn: Option<Ecn>,
    /// `sack`: a window-based controller is paced at 2 (slow start) or 1.2 times cwnd/srtt. Default false.
    #[serde(default)]
    pub pacing: Option<bool>,
    /// `sack`: the initial window again after idling longer than the RTO (RFC 5681 section 4.1).
    /// Default false.
    #[serde(default)]
    pub idle_restart: Option<bool>,
    /// When a controller's send hook is called. Default `packet`.
    #[serde(default)]
    pub send_hook: Option<SendHook>,
    /// RFC 7323 timestamps. `ns2`: every ACK gives a sample (Remy's setting). `sack`: what a
    /// retransmission's ACK echoes decides whether it counts, and whether it was needed. Default true.
    #[serde(default)]
    pub timestamps: Option<bool>,
    /// `ns2`: `partial_window_deflation_`. Default true (ns-2.35's).
    #[serde(default)]
    pub deflation: Option<bool>,
    /// `ns2`: `newreno_changes1_`: the first partial ACK alone restarts the timer. Default true.
    #[serde(default)]
    pub impatient: Option<bool>,
    /// `ns2`: the first segment is a 40-byte SYN; default true. `sack`: data waits for one round trip
    /// of two empty packets over the idle path; default false.
    #[serde(default)]
    pub handshake: Option<bool>,
    /// `sack`: so many segments are acknowledged at once when the connection begins, after an idle time
    /// and after a duplicate (Linux: 16). Default 0.
    #[serde(default)]
    pub quick_acks: Option<u32>,
    /// `sack`: the receiver's window opens with each of the first so many segments, and while it opens
    /// each is acknowledged at once (Linux). Default 0.
    #[serde(default)]
    pub opening_acks: Option<u32>,
    /// Part of the records that the controller gets with impossible values, in [0, 1]. Default 0.
    #[serde(default)]
    pub fuzz_records: Option<f64>,
    /// `sack`: the receiver echoes no congestion mark. Default false.
    #[serde(default)]
    pub hide_marks: Option<bool>,
    /// `sack`: the receiver acknowledges what is missing, cumulatively, as soon as something behind it
    /// comes. Default false.
    #[serde(default)]
    pub hide_losses: Option<bool>,
    /// `sack`: so many acknowledgements per packet, each of a part of its bytes. Default 1.
    #[serde(default)]
    pub divide_acks: Option<u32>,
    /// `sack`: most packets that the receiver acknowledges before they come, and what is missing with them.
    /// Default 0.
    #[serde(default)]
    pub optimistic_acks: Option<u32>,
}

/// See [`crate::control::Recovery`].
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RecoverySpec {
    /// RFC 6675, RFC 8985, RFC 9937.
    Sack,
    /// NewReno without SACK by ns-2.35's rules.
    Ns2,
}

fn fifteen() -> f64 {
    15.0
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
fn yes() -> bool {
    true
}
fn one_flow() -> u64 {
    1
}
fn default_scheduler() -> String {
    crate::transport::schedulers::DEFAULT.to_owned()
}
fn default_buffer() -> u64 {
    64 << 20
}
fn default_controller() -> String {
    "new_reno".to_owned()
}

/// What a flow, or one of its subflows, says of where it runs.
#[derive(Clone, Copy, Default)]
pub(super) struct Place<'a> {
    pub(super) path: Option<&'a [String]>,
    pub(super) reverse: Option<&'a [String]>,
    pub(super) route: Option<&'a [u32]>,
    /// Data takes the reverse direction of a preset.
    pub(super) backward: bool,
}

impl<'a> Place<'a> {
    pub(super) fn of(flow: &'a FlowSpec) -> Self {
        Self {
            path: flow.path.as_deref(),
            reverse: flow.reverse.as_deref(),
            route: flow.route.as_deref(),
            backward: flow.backward,
        }
    }
}
