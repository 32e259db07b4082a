//! What noq has of its own: paths, calls by packet number, a pacing rate.
use super::end::{self, Lost, PathState};
use super::watched::{Watched, WatchedFactory};
use ackademy::control::Control;
use ackademy::units::{Bytes, Rate, Span};
use bytes::BytesMut;
pub(super) use noq_proto as proto;
use noq_proto::congestion::{
    Bbr3Config, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};
use noq_proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, FourTuple, PathId,
    PathStatus, RttEstimator, SendStream, ServerConfig, TransportConfig,
};
use std::any::Any;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[expect(clippy::duplicate_mod, reason = "it is for two stacks")]
#[path = "host.rs"]
pub(crate) mod host;

pub(super) const NAME: &str = "noq";
/// noq's own controllers.
pub const NAMES: [&str; 3] = ["noq:bbr3", "noq:cubic", "noq:new_reno"];

/// What makes controllers.
pub(crate) type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Its own controller of this name.
pub(super) fn builtin(name: &str, cwnd: u64) -> Option<Factory> {
    Some(match name {
        "noq:bbr3" => Arc::new(Bbr3Config::default().initial_window(cwnd).clone()),
        "noq:cubic" => Arc::new(CubicConfig::default().initial_window(cwnd).clone()),
        "noq:new_reno" => Arc::new(NewRenoConfig::default().initial_window(cwnd).clone()),
        _ => return None,
    })
}

pub(super) fn allow_paths(transport: &mut TransportConfig, paths: usize) {
    if paths > 1 {
        transport.max_concurrent_multipath_paths(paths as u32 + 1);
    }
}

pub(super) fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, false)
}

pub(super) fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    (from, to): (SocketAddr, SocketAddr),
    (bytes, ecn): (BytesMut, Option<EcnCodepoint>),
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::new(from, Some(to.ip())), ecn, bytes, answer)
}

/// One datagram per call.
pub(super) const ONE: NonZeroUsize = NonZeroUsize::MIN;

pub(super) fn write(mut stream: SendStream<'_>, chunk: &'static [u8]) -> u64 {
    let mut chunks = [bytes::Bytes::from_static(chunk)];
    stream.write_chunks(&mut &mut chunks[..]).unwrap_or(0) as u64
}

pub(super) fn ecn(ecn: Option<EcnCodepoint>) -> Option<EcnCodepoint> {
    ecn
}

/// Of each path, what noq calls it, as far as it is open.
pub(super) struct Paths(Vec<PathId>);

impl end::Paths<Connection> for Paths {
    fn new() -> Self {
        Self(vec![PathId::ZERO])
    }

    fn open(
        &mut self,
        connection: &mut Connection,
        (now, count): (Instant, usize),
        ends: fn(usize) -> (SocketAddr, SocketAddr),
    ) {
        while self.0.len() < count && !connection.is_handshaking() {
            let (own, peer) = ends(self.0.len());
            let tuple = FourTuple::new(peer, Some(own.ip()));
            match connection.open_path(tuple, PathStatus::Available, now) {
                Ok(id) => self.0.push(id),
                Err(_) => return,
            }
        }
    }

    fn window(&self, connection: &Connection) -> u64 {
        let windows = self.0.iter().filter_map(|&id| connection.congestion_state(id));
        windows.map(Controller::window).sum()
    }

    fn state(&self, connection: &mut Connection, path: usize) -> Option<PathState> {
        let id = *self.0.get(path)?;
        let stats = connection.path_stats(id)?;
        Some(PathState {
            control: control(&connection.congestion_state(id)?.metrics()),
            srtt: Span(stats.rtt.as_nanos() as u64),
            lost: Lost { packets: stats.lost_packets, bytes: stats.lost_bytes },
        })
    }
}

/// What a controller of noq's allows.
fn control(metrics: &ControllerMetrics) -> Control {
    Control {
        cwnd: Bytes(metrics.congestion_window),
        pacing_rate: metrics.pacing_rate.map_or(Rate::UNLIMITED, |rate| Rate(8 * rate)),
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
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.inner.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.own.sent(now, u64::from(bytes), Some(pn));
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.own.acked(sent, Some(pn), (rtt.get(), rtt.min()));
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
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
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.own.congested(now, sent, is_persistent_congestion, lost_bytes);
        self.inner.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
        self.own.reduced(now, || control(&self.inner.metrics()));
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.own.lost(now, pn);
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(
        &mut self,
        ack_eliciting_threshold: u64,
        requested_max_ack_delay: Duration,
    ) {
        self.inner.on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
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
