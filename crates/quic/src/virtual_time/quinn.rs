//! What quinn has of its own: one path, calls by time, no pacing rate.
use super::end::{self, Lost, PathState};
use super::watched::{Watched, WatchedFactory};
use ackademy::control::Control;
use ackademy::units::{Bytes, Rate, Span};
use bytes::BytesMut;
pub(super) use quinn_proto as proto;
use quinn_proto::congestion::{
    BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};
use quinn_proto::{
    Connection, DatagramEvent, Endpoint, EndpointConfig, RttEstimator, SendStream, ServerConfig,
    TransportConfig,
};
use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

#[expect(clippy::duplicate_mod, reason = "it is for two stacks")]
#[path = "host.rs"]
pub(crate) mod host;

pub(super) const NAME: &str = "quinn";
/// quinn's own controllers.
pub const NAMES: [&str; 3] = ["quinn:bbr", "quinn:cubic", "quinn:new_reno"];

/// What makes controllers.
pub(crate) type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Its own controller of this name.
pub(super) fn builtin(name: &str, cwnd: u64) -> Option<Factory> {
    Some(match name {
        "quinn:bbr" => Arc::new(BbrConfig::default().initial_window(cwnd).clone()),
        "quinn:cubic" => Arc::new(CubicConfig::default().initial_window(cwnd).clone()),
        "quinn:new_reno" => Arc::new(NewRenoConfig::default().initial_window(cwnd).clone()),
        _ => return None,
    })
}

pub(super) fn allow_paths(_transport: &mut TransportConfig, _paths: usize) {}

pub(super) fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, false, None)
}

pub(super) fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    (from, to): (SocketAddr, SocketAddr),
    (bytes, ecn): (BytesMut, Option<noq_proto::EcnCodepoint>),
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    let ecn = ecn.and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
    endpoint.handle(now, from, Some(to.ip()), ecn, bytes, answer)
}

/// One datagram per call.
pub(super) const ONE: usize = 1;

pub(super) fn write(mut stream: SendStream<'_>, chunk: &'static [u8]) -> u64 {
    let mut chunks = [bytes::Bytes::from_static(chunk)];
    stream.write_chunks(&mut chunks).map_or(0, |written| written.bytes as u64)
}

pub(super) fn ecn(ecn: Option<quinn_proto::EcnCodepoint>) -> Option<noq_proto::EcnCodepoint> {
    ecn.and_then(|ecn| noq_proto::EcnCodepoint::from_bits(ecn as u8))
}

/// There is one.
pub(super) struct Paths;

impl end::Paths<Connection> for Paths {
    fn new() -> Self {
        Self
    }

    fn open(
        &mut self,
        _connection: &mut Connection,
        _at: (Instant, usize),
        _ends: fn(usize) -> (SocketAddr, SocketAddr),
    ) {
    }

    fn window(&self, connection: &Connection) -> u64 {
        connection.congestion_state().window()
    }

    fn state(&self, connection: &mut Connection, _path: usize) -> Option<PathState> {
        let stats = connection.stats().path;
        Some(PathState {
            control: control(&connection.congestion_state().metrics()),
            srtt: Span(stats.rtt.as_nanos() as u64),
            lost: Lost { packets: stats.lost_packets, bytes: stats.lost_bytes },
        })
    }
}

/// What a controller allows: quinn's pacer does not read its rate.
fn control(metrics: &ControllerMetrics) -> Control {
    Control {
        cwnd: Bytes(metrics.congestion_window),
        pacing_rate: Rate::UNLIMITED,
        ssthresh: Bytes(metrics.ssthresh.unwrap_or(u64::MAX)),
    }
}

impl ControllerFactory for WatchedFactory<dyn ControllerFactory + Send + Sync> {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, current_mtu);
        Box::new(Watched { inner, own: self.next() })
    }
}

impl Controller for Watched<dyn Controller> {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.own.sent(now, bytes, None);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.own.acked(sent, None, (rtt.get(), rtt.min()));
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let newest = self.own.ended(now, in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.own.told(now, (newest, in_flight), || control(&self.inner.metrics()));
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.own.congested(now, sent, is_persistent_congestion, lost_bytes);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        self.own.reduced(now, || control(&self.inner.metrics()));
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), own: self.own.again() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
