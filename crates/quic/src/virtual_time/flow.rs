//! A connection: its ends, its application and what it has received.
use super::host::Host;
use super::watched::Seen;
use super::wire::Side;
use crate::Factory;
use crate::factory::locked;
use ackademy::rng::Rng;
use ackademy::sim::plan::{ConnectionPlan, TrafficSpec};
use ackademy::sim::traffic::App;
use ackademy::transport::packet::Ect;
use ackademy::units::{Bytes, Rate, Span, Time};
use noq_proto::{ClientConfig, EndpointConfig, PathStats, ServerConfig};
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub(crate) struct Flow {
    /// Of the connection's first path, in the tables; the others follow.
    pub(crate) first_row: u32,
    pub(crate) name: String,
    pub(crate) controller: String,
    pub(crate) start: Time,
    pub(crate) packet_bytes: u64,
    pub(crate) paths: Vec<PathOf>,
    pub(crate) is_ecn_capable: bool,
    pub(crate) app: App,
    /// Of constant-rate traffic, which is no connection.
    pub(crate) datagrams: Option<Datagrams>,
    pub(crate) factory: Option<Arc<Factory>>,
    /// Until the connection begins.
    pub(crate) configs: Option<Configs>,
    /// Of a connection that has begun and is not over.
    pub(crate) ends: Option<Box<[Host; 2]>>,
    /// A transfer is written to its end, and not acknowledged.
    is_ended: bool,
    pub(crate) written: u64,
    pub(crate) delivered: u64,
    pub(crate) progress: Time,
    pub(crate) stall_max: Span,
    /// When and why noq closed the connection.
    pub(crate) lost: Option<String>,
}

/// A path of a connection.
pub(crate) struct PathOf {
    pub(crate) base_rtt: Span,
    pub(crate) seen: Arc<Mutex<Seen>>,
    pub(crate) stats: PathStats,
    /// Sum and number of the latest samples at deliveries.
    pub(crate) rtt_at_delivery: (u128, u64),
}

/// Datagrams at a constant rate, as the simulator has them.
#[derive(Clone, Copy)]
pub(crate) struct Datagrams {
    pub(crate) every: Span,
    pub(crate) size: u32,
    pub(crate) ect: Ect,
    pub(crate) sent: u64,
}

impl Datagrams {
    pub(crate) fn of(plan: &ConnectionPlan) -> Option<Self> {
        let TrafficSpec::Cbr { rate_mbps, packet_bytes: size } = plan.traffic else { return None };
        let every = Rate::from_mbps(rate_mbps).time_for(Bytes(u64::from(size))).max(Span(1));
        Some(Self { every, size, ect: plan.sender.ecn.ect(), sent: 0 })
    }
}

/// What a connection is made of when it begins.
pub(crate) struct Configs {
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: ClientConfig,
}

impl Flow {
    /// As tables call it, or one of its paths.
    pub(crate) fn name_of(&self, path: usize) -> String {
        if self.paths.len() > 1 { format!("{}.{path}", self.name) } else { self.name.clone() }
    }

    pub(crate) fn app_of(plan: &ConnectionPlan, start: Time, rng: Rng) -> App {
        App::new(plan.traffic.clone(), start, plan.stop, rng)
    }

    /// A flow whose connection has not begun; `parts` are what its run needs.
    pub(crate) fn new(
        plan: &ConnectionPlan,
        (name, start): (String, Time),
        (first_row, paths): (u32, Vec<PathOf>),
        (app, configs, factory): (App, Option<Configs>, Option<Arc<Factory>>),
    ) -> Self {
        Self {
            name,
            controller: match &configs {
                Some(_) => plan.controller.clone(),
                None => "none".to_owned(),
            },
            start,
            packet_bytes: plan.sender.packet.0,
            paths,
            first_row,
            is_ecn_capable: super::plan::is_ecn_capable(plan.sender.ecn),
            app,
            datagrams: Datagrams::of(plan),
            factory,
            configs,
            ends: None,
            is_ended: false,
            written: 0,
            delivered: 0,
            progress: start,
            stall_max: Span::ZERO,
            lost: None,
        }
    }

    /// The client connects.
    pub(crate) fn begin(&mut self, at: Instant) {
        let Some(Configs { endpoint, server, client }) = self.configs.take() else { return };
        let paths = self.paths.len();
        let mut ends =
            [Host::new(&endpoint, None, paths), Host::new(&endpoint, Some(server), paths)];
        ends[0].connect(at, client).expect("the address and the name are valid");
        self.ends = Some(Box::new(ends));
    }

    pub(crate) fn end(&mut self, side: Side) -> Option<&mut Host> {
        self.ends.as_mut().map(|ends| &mut ends[side as usize])
    }

    /// An end handles what has happened to it. The receiver's application reads; the sender's writes, and says
    /// whether a transfer is over.
    pub(crate) fn advance(&mut self, (now, at): (Time, Instant), side: Side) -> bool {
        let Some(end) = self.end(side) else { return false };
        let found = end.progress(at);
        if let Some(reason) = found.lost {
            let after = now.since(self.start).as_secs_f64();
            self.lost.get_or_insert(format!(
                "flow {:?}: noq closed the connection after {after:.3} s: {reason}",
                self.name
            ));
        }
        if side == Side::Server {
            if found.read > 0 {
                self.deliver(now, found.read);
            }
            return false;
        }
        self.write();
        let is_over = self.is_ended && self.end(side).is_some_and(|end| end.is_acknowledged());
        if is_over {
            self.is_ended = false;
            self.app.on_all_acknowledged(now);
        }
        is_over
    }

    pub(crate) fn deliver(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        self.stall_max = self.stall_max.max(now.since(self.progress));
        self.progress = now;
        for path in &mut self.paths {
            let latest = locked(&path.seen).latest;
            if latest > Span::ZERO {
                path.rtt_at_delivery.0 += u128::from(latest.0);
                path.rtt_at_delivery.1 += 1;
            }
        }
    }

    /// The application hands over what it has, up to what may leave soon, and says where a transfer ends.
    fn write(&mut self) {
        let is_last = self.is_last_write();
        let Some(ends) = &mut self.ends else { return };
        let client = &mut ends[0];
        let unsent = self.app.supply.unsent;
        if unsent > 0 {
            client.set_send_window();
            let written = client.write(unsent);
            self.written += written;
            if unsent < u64::MAX {
                self.app.supply.unsent -= written;
            }
        }
        if is_last && self.app.may_finish() && !self.is_ended {
            client.finish();
            self.is_ended = true;
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
        let Self { ends, paths, .. } = self;
        let Some(client) = ends.as_mut().map(|ends| &mut ends[0]) else { return };
        for (number, path) in paths.iter_mut().enumerate() {
            path.stats = client.stats(number);
        }
    }
}
