//! The records of a qlog file, version 0.3 (draft-ietf-quic-qlog-main-schema-02 and
//! draft-ietf-quic-qlog-quic-events-01), as a JSON text sequence (RFC 7464).
use ackademy::control::{Ack, Control, LossKind};
use ackademy::units::{Bytes, Rate, Span, Time};
use serde::Serialize;
use std::io::{self, Write};

/// What precedes every record of a JSON text sequence.
const RECORD_SEPARATOR: u8 = 0x1e;
/// The type of most packets: past the handshake.
const PACKET_TYPE: &str = "1RTT";

/// Writes one record.
pub fn write(out: &mut impl Write, record: &impl Serialize) -> io::Result<()> {
    out.write_all(&[RECORD_SEPARATOR])?;
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

/// The head of a file.
#[derive(Serialize)]
pub struct Head<'a> {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: &'static str,
    description: &'a str,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    vantage_point: VantagePoint,
    common_fields: CommonFields<'a>,
}

#[derive(Serialize)]
struct VantagePoint {
    name: &'static str,
    r#type: &'static str,
}

#[derive(Serialize)]
struct CommonFields<'a> {
    time_format: &'static str,
    reference_time: u32,
    protocol_type: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<&'a str>,
}

impl<'a> Head<'a> {
    /// Of a file about one flow, if `group` names it; else each event names its own.
    pub fn new(description: &'a str, protocol: &'static str, group: Option<&'a str>) -> Self {
        let title = concat!("ackademy ", env!("CARGO_PKG_VERSION"));
        let vantage_point = VantagePoint { name: "sender", r#type: "client" };
        let common_fields = CommonFields {
            time_format: "relative",
            reference_time: 0,
            protocol_type: [protocol],
            group_id: group,
        };
        Self {
            qlog_version: "0.3",
            qlog_format: "JSON-SEQ",
            title,
            description,
            trace: Trace { vantage_point, common_fields },
        }
    }
}

/// An event.
#[derive(Serialize)]
pub struct Event<'a, D> {
    /// Milliseconds since the simulation began.
    time: f64,
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<&'a str>,
    data: D,
}

impl<'a, D: Data> Event<'a, D> {
    /// At this time, of the flow that `group` names if there are several.
    pub fn new(at: Time, group: Option<&'a str>, data: D) -> Self {
        Self { time: Span(at.0).as_millis_f64(), name: D::NAME, group_id: group, data }
    }
}

/// What an event is about.
pub trait Data: Serialize {
    /// Its name.
    const NAME: &'static str;
}

#[derive(Serialize)]
struct Header {
    packet_type: &'static str,
    packet_number: u64,
}

impl Header {
    fn new(packet_number: u64) -> Self {
        Self { packet_type: PACKET_TYPE, packet_number }
    }
}

#[derive(Serialize)]
struct Raw {
    length: u64,
    payload_length: u64,
}

#[derive(Serialize)]
struct StreamFrame {
    frame_type: &'static str,
    stream_id: u32,
    offset: u64,
    length: u64,
}

#[derive(Serialize)]
struct AckFrame<'a> {
    frame_type: &'static str,
    acked_ranges: &'a [[u64; 2]],
}

/// A data packet left.
#[derive(Serialize)]
pub struct PacketSent {
    header: Header,
    raw: Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<[StreamFrame; 1]>,
}

impl PacketSent {
    /// The packet of this number and size, which carries `length` bytes from `offset` on.
    pub fn new(number: u64, size: u32, (offset, length): (u64, u64)) -> Self {
        let frame = StreamFrame { frame_type: "stream", stream_id: 0, offset, length };
        Self {
            header: Header::new(number),
            raw: Raw { length: u64::from(size), payload_length: length },
            frames: Some([frame]),
        }
    }

    /// The packet of this number and size, of QUIC, of which only the controller's side is known.
    pub fn of_space(packet_type: &'static str, packet_number: u64, size: u32) -> Self {
        let length = u64::from(size);
        Self {
            header: Header { packet_type, packet_number },
            raw: Raw { length, payload_length: length },
            frames: None,
        }
    }
}

impl Data for PacketSent {
    const NAME: &'static str = "transport:packet_sent";
}

/// An acknowledgement arrived.
#[derive(Serialize)]
pub struct PacketReceived<'a> {
    header: Header,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<Raw>,
    frames: [AckFrame<'a>; 1],
}

impl<'a> PacketReceived<'a> {
    /// The acknowledgement of this number and size, which newly acknowledges these packets.
    pub fn new(number: u64, size: u32, acked_ranges: &'a [[u64; 2]]) -> Self {
        let raw = Some(Raw { length: u64::from(size), payload_length: 0 });
        Self { raw, ..Self::of_ranges(number, acked_ranges) }
    }

    /// An acknowledgement of unknown size.
    pub fn of_ranges(number: u64, acked_ranges: &'a [[u64; 2]]) -> Self {
        Self {
            header: Header::new(number),
            raw: None,
            frames: [AckFrame { frame_type: "ack", acked_ranges }],
        }
    }
}

impl Data for PacketReceived<'_> {
    const NAME: &'static str = "transport:packet_received";
}

/// A packet was declared lost.
#[derive(Serialize)]
pub struct PacketLost {
    header: Header,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<&'static str>,
}

impl PacketLost {
    /// The packet of this number, by a sender that judges by time or by counting.
    pub fn new(number: u64, kind: LossKind, by_time: bool) -> Self {
        let trigger = match kind {
            LossKind::Timeout | LossKind::TimeoutAgain => "pto_expired",
            _ if by_time => "time_threshold",
            _ => "reordering_threshold",
        };
        Self { header: Header::new(number), trigger: Some(trigger) }
    }

    /// The packet of this number, for a reason that is not known.
    pub fn of_number(number: u64) -> Self {
        Self { header: Header::new(number), trigger: None }
    }
}

impl Data for PacketLost {
    const NAME: &'static str = "recovery:packet_lost";
}

/// What the sender measures and the controller allows, in bytes, milliseconds and bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
}

impl Metrics {
    /// What a controller allows.
    pub fn of_control(control: &Control) -> Self {
        let Control { cwnd, pacing_rate, ssthresh } = *control;
        Self {
            congestion_window: Some(cwnd.0),
            ssthresh: (ssthresh < Bytes(1 << 40)).then_some(ssthresh.0),
            pacing_rate: (pacing_rate != Rate::UNLIMITED).then_some(pacing_rate.0),
            ..Self::default()
        }
    }

    /// With what an acknowledgement says.
    pub fn with_ack(self, ack: &Ack) -> Self {
        let millis = |span: Span| (span > Span::ZERO).then(|| span.as_millis_f64());
        Self {
            min_rtt: millis(ack.min_rtt),
            smoothed_rtt: millis(ack.srtt),
            latest_rtt: millis(ack.rtt),
            bytes_in_flight: Some(ack.inflight.0),
            ..self
        }
    }

    /// What is new beside `known`, which becomes it; none if nothing is.
    pub fn news(self, known: &mut Self) -> Option<Self> {
        fn news<T: PartialEq + Copy>(new: Option<T>, known: &mut Option<T>) -> Option<T> {
            if new.is_none() || new == *known {
                return None;
            }
            *known = new;
            new
        }
        let found = Self {
            min_rtt: news(self.min_rtt, &mut known.min_rtt),
            smoothed_rtt: news(self.smoothed_rtt, &mut known.smoothed_rtt),
            latest_rtt: news(self.latest_rtt, &mut known.latest_rtt),
            congestion_window: news(self.congestion_window, &mut known.congestion_window),
            bytes_in_flight: news(self.bytes_in_flight, &mut known.bytes_in_flight),
            ssthresh: news(self.ssthresh, &mut known.ssthresh),
            pacing_rate: news(self.pacing_rate, &mut known.pacing_rate),
        };
        (found != Self::default()).then_some(found)
    }
}

impl Data for Metrics {
    const NAME: &'static str = "recovery:metrics_updated";
}

/// The sender's state changed.
#[derive(Serialize)]
pub struct StateUpdated {
    /// What it is now.
    pub new: &'static str,
}

impl Data for StateUpdated {
    const NAME: &'static str = "recovery:congestion_state_updated";
}
