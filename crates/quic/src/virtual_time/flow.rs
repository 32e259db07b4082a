//! A connection: its ends, its application and what it has received.
use super::end::{Connect, End, Lost};
use super::watched::Seen;
use super::wire::Side;
use crate::Factory;
use crate::factory::locked;
use ackademy::rng::Rng;
use ackademy::sim::plan::{ConnectionPlan, TrafficSpec};
use ackademy::sim::traffic::App;
use ackademy::transport::packet::Ect;
use ackademy::units::{Bytes, Rate, Span, Time};
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
    pub(crate) connect: Option<Connect>,
    /// Of a connection that has begun and is not over.
    pub(crate) ends: Option<[Box<dyn End>; 2]>,
    /// The earliest wake-up of each end that is scheduled.
    pub(crate) wakes: [Time; 2],
    /// A transfer is written to its end, and not acknowledged.
    is_ended: bool,
    pub(crate) written: u64,
    pub(crate) delivered: u64,
    pub(crate) progress: Time,
    pub(crate) stall_max: Span,
    /// When and why its stack closed the connection.
    pub(crate) lost: Option<String>,
}

/// A path of a connection.
pub(crate) struct PathOf {
    pub(crate) base_rtt: Span,
    pub(crate) seen: Arc<Mutex<Seen>>,
    /// Declared lost.
    pub(crate) lost: Lost,
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
        (app, connect, factory): (App, Option<Connect>, Option<Arc<Factory>>),
    ) -> Self {
        Self {
            name,
            controller: match &connect {
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
            connect,
            ends: None,
            wakes: [Time::NEVER; 2],
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
        if let Some(connect) = self.connect.take() {
            self.ends = Some(connect(at));
        }
    }

    pub(crate) fn end(&mut self, side: Side) -> Option<&mut dyn End> {
        self.ends.as_mut().map(|ends| &mut *ends[side as usize] as _)
    }

    /// An end handles what has happened to it. The receiver's application reads; the sender's writes, and says
    /// whether a transfer is over.
    pub(crate) fn advance(&mut self, (now, at): (Time, Instant), side: Side) -> bool {
        let Some(end) = self.end(side) else { return false };
        let found = end.progress(at);
        if let Some((stack, reason)) = found.lost {
            let after = now.since(self.start).as_secs_f64();
            self.lost.get_or_insert(format!(
                "flow {:?}: {stack} closed the connection after {after:.3} s: {reason}",
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

    /// Keeps what the sender counted, and drops the connection if the application is over.
    pub(crate) fn retire(&mut self) {
        if self.app.is_over() {
            self.keep_stats();
            self.ends = None;
        }
    }

    pub(crate) fn keep_stats(&mut self) {
        let Self { ends: Some([client, _]), paths, .. } = self else { return };
        for (number, path) in paths.iter_mut().enumerate() {
            path.lost = client.path(number).map_or_else(Lost::default, |state| state.lost);
        }
    }
}
