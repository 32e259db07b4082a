//! A connection: its ends, its application and what it has received.
use super::host::Host;
use super::watched::Seen;
use super::wire::Side;
use crate::Factory;
use crate::factory::locked;
use ackademy::rng::Rng;
use ackademy::sim::plan::{ConnectionPlan, TrafficSpec};
use ackademy::sim::traffic::App;
use ackademy::units::{Span, Time};
use noq_proto::congestion::Controller;
use noq_proto::{ClientConfig, EndpointConfig, PathId, PathStats, ServerConfig, StreamId};
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) controller: String,
    pub(crate) start: Time,
    pub(crate) packet_bytes: u64,
    pub(crate) base_rtt: Span,
    pub(crate) is_ecn_capable: bool,
    pub(crate) app: App,
    pub(crate) factory: Option<Arc<Factory>>,
    pub(crate) seen: Arc<Mutex<Seen>>,
    /// Until the connection begins.
    pub(crate) configs: Option<Configs>,
    /// Of a connection that has begun and is not over.
    pub(crate) ends: Option<Box<[Host; 2]>>,
    pub(crate) stats: PathStats,
    stream: Option<StreamId>,
    pub(crate) written: u64,
    pub(crate) delivered: u64,
    pub(crate) progress: Time,
    pub(crate) stall_max: Span,
    pub(crate) rtt_at_delivery: (u128, u64),
}

/// What a connection is made of when it begins.
pub(crate) struct Configs {
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: ClientConfig,
}

impl Flow {
    pub(crate) fn app_of(plan: &ConnectionPlan, start: Time, rng: Rng) -> App {
        App::new(plan.traffic.clone(), start, plan.stop, rng)
    }

    /// A flow whose connection has not begun; `parts` are what its run needs.
    pub(crate) fn new(
        plan: &ConnectionPlan,
        (name, start, base_rtt): (String, Time, Span),
        app: App,
        configs: Configs,
        (factory, seen): (Option<Arc<Factory>>, Arc<Mutex<Seen>>),
    ) -> Self {
        Self {
            name,
            controller: plan.controller.clone(),
            start,
            packet_bytes: plan.sender.packet.0,
            base_rtt,
            is_ecn_capable: super::plan::is_ecn_capable(plan.sender.ecn),
            app,
            factory,
            seen,
            configs: Some(configs),
            ends: None,
            stats: PathStats::default(),
            stream: None,
            written: 0,
            delivered: 0,
            progress: start,
            stall_max: Span::ZERO,
            rtt_at_delivery: (0, 0),
        }
    }

    /// The client connects.
    pub(crate) fn begin(&mut self, at: Instant) {
        let Some(Configs { endpoint, server, client }) = self.configs.take() else { return };
        let mut ends = [Host::new(&endpoint, None), Host::new(&endpoint, Some(server))];
        ends[0].connect(at, client).expect("the address and the name are valid");
        self.ends = Some(Box::new(ends));
    }

    pub(crate) fn end(&mut self, side: Side) -> Option<&mut Host> {
        self.ends.as_mut().map(|ends| &mut ends[side as usize])
    }

    /// An end handles what has happened to it. The receiver's application reads; the sender's writes, and says
    /// whether a transfer is over.
    pub(crate) fn advance(&mut self, now: Time, side: Side) -> bool {
        let Some(end) = self.end(side) else { return false };
        let found = end.progress();
        if side == Side::Server {
            if found.read > 0 {
                self.deliver(now, found.read);
            }
            return false;
        }
        if found.finished > 0 {
            self.app.on_all_acknowledged(now);
        }
        self.write();
        found.finished > 0
    }

    fn deliver(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        self.stall_max = self.stall_max.max(now.since(self.progress));
        self.progress = now;
        let latest = locked(&self.seen).latest;
        if latest > Span::ZERO {
            self.rtt_at_delivery.0 += u128::from(latest.0);
            self.rtt_at_delivery.1 += 1;
        }
    }

    /// The application hands over what it has, up to what may leave soon; the end of a transfer ends its stream.
    fn write(&mut self) {
        let is_last = self.is_last_write();
        let Some(ends) = &mut self.ends else { return };
        let client = &mut ends[0];
        let unsent = self.app.supply.unsent;
        if unsent > 0 {
            if let Some(connection) = client.connection() {
                let window =
                    connection.congestion_state(PathId::ZERO).map_or(0, Controller::window);
                connection.set_send_window(2 * window + AHEAD_BYTES);
            }
            let written = client.write(&mut self.stream, unsent);
            self.written += written;
            if unsent < u64::MAX {
                self.app.supply.unsent -= written;
            }
        }
        if is_last
            && self.app.may_finish()
            && let Some(stream) = self.stream.take()
        {
            client.finish(stream);
        }
    }

    /// Whether nothing follows what was handed over, before it is acknowledged.
    fn is_last_write(&self) -> bool {
        let continues = matches!(
            self.app.traffic().as_ref(),
            TrafficSpec::AppLimited { .. } | TrafficSpec::Writes { .. }
        );
        !continues || self.app.next == Time::NEVER
    }

    /// Keeps what noq counted, and drops the connection if the application is over.
    pub(crate) fn retire(&mut self) {
        if self.app.is_over() {
            self.keep_stats();
            self.ends = None;
        }
    }

    pub(crate) fn keep_stats(&mut self) {
        if let Some(connection) = self.end(Side::Client).and_then(Host::connection)
            && let Some(stats) = connection.path_stats(PathId::ZERO)
        {
            self.stats = stats;
        }
    }
}

/// How much more than two windows is handed over in advance.
const AHEAD_BYTES: u64 = 1 << 14;
