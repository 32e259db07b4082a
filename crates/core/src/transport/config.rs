//! Settings of a sender and its receiver.
use crate::control::Recovery;
use crate::transport::misbehaviour::Misbehaviour;
use crate::transport::packet::Ect;
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// Sender and receiver with every default filled in.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // each is one documented switch of the scenario format
pub struct SenderConfig {
    /// How losses are found and repaired.
    pub recovery: Recovery,
    /// Full packet on the wire.
    pub packet: Bytes,
    /// Headers within it.
    pub header: Bytes,
    /// Acknowledgement on the wire.
    pub ack: Bytes,
    /// Full packets per acknowledgement.
    pub ack_every: u32,
    /// Longest delay of an acknowledgement.
    pub ack_delay: Span,
    /// Initial window.
    pub initial_cwnd: Bytes,
    /// Initial slow-start threshold.
    pub initial_ssthresh: Bytes,
    /// Receiver window, in packets.
    pub receiver_window_packets: u64,
    /// Bounds of the retransmission time-out.
    pub rto_min: Span,
    /// Largest.
    pub rto_max: Span,
    /// Before the first sample.
    pub rto_initial: Span,
    /// Clock granularity.
    pub rto_tick: Span,
    /// RFC 8985 loss detection.
    pub rack: bool,
    /// RFC 8985 tail loss probes.
    pub tlp: bool,
    /// RFC 9937.
    pub prr: bool,
    /// RFC 6675 `NextSeg` rule 3.
    pub rescue: bool,
    /// Reaction to marks.
    pub ecn: Ecn,
    /// Pace a window-based controller.
    pub pacing: bool,
    /// RFC 5681 section 4.1.
    pub idle_restart: bool,
    /// When a controller's send hook is called.
    pub send_hook: SendHook,
    /// RFC 7323.
    pub timestamps: bool,
    /// ns-2: `partial_window_deflation_`.
    pub deflation: bool,
    /// ns-2: `newreno_changes1_`.
    pub impatient: bool,
    /// ns-2: the first segment is a SYN.
    pub handshake: bool,
    /// Segments that Linux's receiver acknowledges at once.
    pub quick_acks: u32,
    /// Segments with which the receiver's window opens, each acknowledged at once.
    pub opening_acks: u32,
    /// Part of the records that a controller gets with impossible values, in [0, 1]: the simulator's.
    pub fuzz_records: f64,
    /// What the receiver does that it should not.
    pub misbehaviour: Misbehaviour,
}

/// What a sender does with congestion marks.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ecn {
    /// Not ECN-capable.
    Off,
    /// One reduction per round trip with marks (RFC 3168).
    Classic,
    /// Marks are passed to the controller in `Ack::ce_marked` and mean nothing else.
    Accurate,
    /// The same, and packets carry ECT(1), which `dualpi2` serves apart (RFC 9331).
    L4s,
}

impl Ecn {
    /// What a packet that is sent for the first time announces.
    pub fn ect(self) -> Ect {
        match self {
            Self::Off => Ect::Not,
            Self::Classic | Self::Accurate => Ect::Zero,
            Self::L4s => Ect::One,
        }
    }

    /// Whether the controller gets every mark.
    pub fn is_accurate(self) -> bool {
        matches!(self, Self::Accurate | Self::L4s)
    }
}

/// When a controller's send hook is called.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SendHook {
    /// Before each packet.
    Packet,
    /// For all that an acknowledgement lets out at once, as on the kernel
    /// ([`crate::transport::send_hook::AckSendHook`]).
    Ack,
}
