//! Both ends of noq, or of quinn, over the links of a scenario, in virtual time: TLS, loss recovery, pacer and
//! acknowledgements are those of real connections, and equal seeds give the same datagrams at the same times, except
//! under noq's own `bbr3`, whose random numbers take no seed.
use crate::Refused;
use crate::factory::locked;
use crate::tls::Keys;
use ackademy::rng::Seed;
use ackademy::sim::arrivals;
use ackademy::sim::network::{Network, Next};
use ackademy::sim::plan::{ConnectionPlan, NetworkPlan};
use ackademy::sim::record::{FlowSeries, Outcome};
use ackademy::transport::packet::{Ect, Packet};
use ackademy::units::{Span, Time};
use ackademy_capture::Output;
use ackademy_capture::qlog::Numbered;
use bytes::BytesMut;
use end::Departure;
use flow::{Flow, PathOf};
pub use noq::NAMES as NOQ_NAMES;
use noq_proto::EcnCodepoint;
pub use plan::{Governor, builtin, check};
pub use real_time::Datagram;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub(crate) use watched::{PathLog, Seen, WatchedFactory};
use wire::{Event, Payload, Side, Wire};

mod end;
mod flow;
pub(crate) mod noq;
mod plan;
mod quinn;
mod real_time;
mod rows;
mod watched;
mod wire;

/// Makes what governs a connection.
pub type Builder<'a> = dyn FnMut(&ConnectionPlan) -> Result<Governor, Refused> + 'a;

/// A run.
pub struct Quic {
    net: Network<Event>,
    /// In real time, the time of the caller's clock.
    reached: Time,
    /// In real time, what the caller is to send.
    outgoing: Option<Vec<Packet>>,
    wire: Wire,
    flows: Vec<Flow>,
    end: Time,
    /// The stacks' clock at time 0.
    origin: Instant,
    sample_interval: Span,
    series: FlowSeries,
    buffer: Vec<u8>,
    /// Why a stack has just closed a connection.
    lost: Option<String>,
    qlog: Option<Numbered>,
    /// The first flow over quinn.
    over_quinn: Option<String>,
}

/// Runs a network to its end.
///
/// # Errors
///
/// See [`Quic::new`] and [`Quic::run_until`].
pub fn run(network: &NetworkPlan, seed: Seed) -> Result<Outcome, Refused> {
    let mut quic = Quic::new(network, seed)?;
    quic.run_until(network.duration)?;
    Ok(quic.finish())
}

impl Quic {
    /// A run at time 0 with this project's controllers, noq's own and quinn's own.
    ///
    /// # Errors
    ///
    /// See [`check`] and [`builtin`].
    pub fn new(network: &NetworkPlan, seed: Seed) -> Result<Self, Refused> {
        Self::governed(network, seed, &mut builtin)
    }

    /// A run at time 0 with what `build` returns, which is called for each connection.
    ///
    /// # Errors
    ///
    /// If the network asks for what QUIC cannot do; whatever `build` returns.
    pub fn governed(
        network: &NetworkPlan,
        seed: Seed,
        build: &mut Builder<'_>,
    ) -> Result<Self, Refused> {
        network.connections.iter().try_for_each(plan::check_connection)?;
        let keys = Keys::new(key(seed, u64::MAX)).map_err(|error| Refused(error.to_string()))?;
        #[expect(clippy::disallowed_methods, reason = "an origin: only distances from it are used")]
        let origin = Instant::now();
        let mut quic = Self {
            net: Network::new(&network.links, seed, network.sample_interval),
            reached: Time(0),
            outgoing: None,
            wire: Wire::new(),
            flows: Vec::new(),
            end: network.duration,
            origin,
            sample_interval: network.sample_interval,
            series: FlowSeries::default(),
            buffer: Vec::new(),
            lost: None,
            qlog: None,
            over_quinn: None,
        };
        for (index, plan) in network.connections.iter().enumerate() {
            for arrival in arrivals(plan, index as u64, seed, network.duration) {
                let governor = if plan::is_datagrams(plan) { None } else { Some(build(plan)?) };
                governor.iter().try_for_each(|governor| plan::check_governor(plan, governor))?;
                if matches!(governor, Some(Governor::Quinn(_))) {
                    quic.over_quinn.get_or_insert_with(|| plan.name.clone());
                }
                quic.add_flow(network, plan, (arrival, seed), (&keys, governor));
            }
        }
        if network.sample_interval > Span::ZERO {
            quic.net.schedule(Time(0), Event::Sample);
        }
        Ok(quic)
    }

    fn add_flow(
        &mut self,
        network: &NetworkPlan,
        plan: &ConnectionPlan,
        (arrival, seed): (ackademy::sim::Arrival, Seed),
        (keys, governor): (&Keys, Option<Governor>),
    ) {
        let index = self.flows.len() as u32;
        let own_seed = seed.derive("controller", arrival.stream << 8);
        let keys = (keys, key(seed, u64::from(index)));
        let config = governor
            .map(|governor| plan::flow_config(plan, governor, keys, (own_seed, self.origin)));
        let seen =
            config.as_ref().map_or_else(|| vec![Arc::default()], |config| config.seen.clone());
        let first_row = self.wire.owners.len() as u32;
        let mut paths = Vec::new();
        for (path, (route, seen)) in plan.subflows.iter().zip(seen).enumerate() {
            let forward = self.net.add_path(&route.forward);
            self.wire.add_row((forward, self.net.add_path(&route.reverse)), (index, path));
            let hops = route.forward.iter().chain(&route.reverse);
            let base_rtt = hops.map(|&link| network.links[link as usize].delay.minimum()).sum();
            let (lost, rtt_at_delivery) = (end::Lost::default(), (0, 0));
            paths.push(PathOf { base_rtt, seen, lost, rtt_at_delivery });
        }
        let app = Flow::app_of(plan, arrival.at, seed.stream("traffic", arrival.stream));
        let (connect, factory) =
            config.map_or((None, None), |config| (Some(config.connect), config.factory));
        let named = (arrival.name, arrival.at);
        let parts = (app, connect, factory);
        self.flows.push(Flow::new(plan, named, (first_row, paths), parts));
        self.net.schedule(arrival.at, Event::App(index));
    }

    /// Writes what its senders do, from the beginning; `about` says what the file is of.
    ///
    /// # Errors
    ///
    /// If a flow is over quinn, which tells a controller of no packet by its number.
    pub fn log(&mut self, out: Output, about: &str) -> Result<(), Refused> {
        if let Some(name) = &self.over_quinn {
            return Err(Refused(format!(
                "flow {name:?}: a qlog of quinn, which names no packets to its controller: allowed is a flow over noq"
            )));
        }
        let only = (self.wire.owners.len() == 1).then(|| self.flows[0].name.clone());
        let log = Numbered::new(out, about, only.as_deref());
        for flow in &mut self.flows {
            for path in 0..flow.paths.len() {
                let sender = log.flow(&flow.name_of(path));
                let seen = &flow.paths[path].seen;
                locked(seen).log = Some(PathLog { sender, origin: self.origin });
            }
        }
        self.qlog = Some(log);
        Ok(())
    }

    /// The time reached.
    pub fn now(&self) -> Time {
        self.net.now().max(self.reached)
    }

    /// Datagrams sent so far, those of receivers included.
    pub fn datagrams(&self) -> u64 {
        self.wire.datagrams
    }

    /// Datagrams that senders of data sent so far.
    pub fn data_datagrams(&self) -> u64 {
        self.wire.counts.iter().map(|counts| counts.sent).sum()
    }

    /// Digest of time, size, flow and direction of every datagram sent so far.
    pub fn digest(&self) -> u64 {
        self.wire.digest
    }

    /// Handles every event up to and including `until`, which is cut at the network's duration.
    ///
    /// # Errors
    ///
    /// If a stack closes a connection.
    pub fn run_until(&mut self, until: Time) -> Result<(), Refused> {
        let until = until.min(self.end);
        let mut packet = Packet::default();
        while let Some(next) = self.net.next(until, &mut packet, &mut self.wire) {
            match next {
                Next::Packet => self.receive(&packet),
                Next::Event(Event::App(index)) => self.act(index),
                Next::Event(Event::Datagram(index)) => self.send_datagram(index),
                Next::Event(Event::End(index, side, at)) => self.wake(index, side, at),
                Next::Event(Event::Sample) => self.sample(),
            }
            if let Some(reason) = self.lost.take() {
                return Err(Refused(reason));
            }
        }
        Ok(())
    }

    fn at(&self, time: Time) -> Instant {
        self.origin + Duration::from_nanos(time.0)
    }

    /// The application of a flow acts, the first time by connecting.
    fn act(&mut self, index: u32) {
        let now = self.net.now();
        let at = self.at(self.now());
        let flow = &mut self.flows[index as usize];
        if flow.app.next != now {
            return;
        }
        flow.begin(at);
        if !flow.app.is_active() {
            flow.progress = now;
        }
        flow.app.on_time(now, flow.written.saturating_sub(flow.delivered));
        if flow.datagrams.is_some() {
            flow.app.on_all_acknowledged(now);
            self.send_datagram(index);
        }
        self.advance(index, Side::Client);
    }

    fn send_datagram(&mut self, index: u32) {
        let now = self.net.now();
        let flow = &mut self.flows[index as usize];
        let Some(datagrams) = flow.datagrams.as_mut().filter(|_| now < flow.app.stop()) else {
            return;
        };
        datagrams.sent += 1;
        // The simulator's network needs no content.
        let content = u64::from(datagrams.size).saturating_sub(plan::HEADER_BYTES) as usize;
        let payload = Payload {
            bytes: BytesMut::zeroed(if self.outgoing.is_some() { content } else { 0 }),
            ecn: match datagrams.ect {
                Ect::Not => None,
                Ect::Zero => Some(EcnCodepoint::Ect0),
                Ect::One => Some(EcnCodepoint::Ect1),
            },
        };
        let packet = Packet {
            flow: flow.first_row,
            size: datagrams.size,
            kind: Side::Client.sends(),
            ect: datagrams.ect,
            seq: self.wire.put(payload),
            sent_at: now,
            ..Packet::default()
        };
        self.net.schedule(now + datagrams.every, Event::Datagram(index));
        self.wire.book_sent(now, &packet);
        match &mut self.outgoing {
            Some(outgoing) => outgoing.push(packet),
            None => self.net.enter(packet, &mut self.wire),
        }
    }

    fn receive(&mut self, packet: &Packet) {
        let (now, side) = (self.now(), Side::receiving(packet));
        let at = self.at(now);
        let Some(mut payload) = self.wire.take(packet) else { return };
        if side == Side::Server {
            self.wire.book_received(now, packet);
        }
        payload.ecn = match packet.ect {
            Ect::Not => None,
            _ if packet.ce => Some(EcnCodepoint::Ce),
            _ => payload.ecn,
        };
        let (index, path) = self.wire.owners[packet.flow as usize];
        let flow = &mut self.flows[index as usize];
        if flow.datagrams.is_some() && !packet.copy {
            flow.deliver(now, u64::from(packet.size));
        }
        if let Some(end) = self.flows[index as usize].end(side) {
            end.receive(at, (payload, path), &mut self.buffer);
            self.advance(index, side);
        }
    }

    /// A timer that was set for `due` comes up: the stack's, or that of the controller.
    fn wake(&mut self, index: u32, side: Side, due: Time) {
        let at = self.at(self.now());
        let flow = &mut self.flows[index as usize];
        let factory = flow.factory.clone().filter(|_| side == Side::Client);
        if flow.wakes[side as usize] != due {
            return;
        }
        let Some(end) = flow.end(side) else { return };
        end.on_timer(at);
        if let Some(factory) = factory {
            factory.on_timer(at);
        }
        self.flows[index as usize].wakes[side as usize] = Time::NEVER;
        self.advance(index, side);
    }

    /// An end handles what happened, sends what it may, and is woken when its next timer is due.
    fn advance(&mut self, index: u32, side: Side) {
        let (now, at) = (self.now(), self.at(self.now()));
        let flow = &mut self.flows[index as usize];
        let is_over = flow.advance((now, at), side);
        self.lost = flow.lost.take();
        if let Some(next) = flow.app.to_schedule().filter(|_| side == Side::Client) {
            self.net.schedule(next, Event::App(index));
        }
        self.transmit(index, side);
        if is_over {
            self.flows[index as usize].retire();
        }
        self.set_wake(index, side);
    }

    fn transmit(&mut self, index: u32, side: Side) {
        let (now, at) = (self.now(), self.at(self.now()));
        let Self { flows, net, wire, buffer, outgoing, .. } = self;
        let flow = &mut flows[index as usize];
        let (is_ecn_capable, first_row) = (flow.is_ecn_capable, flow.first_row);
        let Some(end) = flow.end(side) else { return };
        while let Some(Departure { size, ecn, path }) = end.transmit(at, buffer) {
            let bytes = BytesMut::from(&buffer[..size]);
            let ecn = ecn.filter(|_| is_ecn_capable);
            let packet = Packet {
                flow: first_row + path as u32,
                size: (size as u64 + plan::HEADER_BYTES) as u32,
                kind: side.sends(),
                ect: match ecn {
                    None => Ect::Not,
                    Some(EcnCodepoint::Ect1) => Ect::One,
                    Some(_) => Ect::Zero,
                },
                seq: wire.put(Payload { bytes, ecn }),
                sent_at: now,
                ..Packet::default()
            };
            wire.book_sent(now, &packet);
            match outgoing {
                Some(outgoing) => outgoing.push(packet),
                None => net.enter(packet, wire),
            }
        }
    }

    fn set_wake(&mut self, index: u32, side: Side) {
        let (now, origin) = (self.now(), self.origin);
        let flow = &mut self.flows[index as usize];
        let controller = flow.factory.as_ref().filter(|_| side == Side::Client);
        let own = controller.and_then(|factory| factory.next_timer());
        let Some(end) = flow.end(side) else { return };
        let due = end.next_timer().into_iter().chain(own).min();
        let Some(due) = due.map(|due| Time(crate::factory::nanos(due, origin)).max(now)) else {
            return;
        };
        if due < flow.wakes[side as usize] {
            flow.wakes[side as usize] = due;
            self.net.schedule(due, Event::End(index, side, due));
        }
    }
}

/// 32 random bytes of a seed.
fn key(seed: Seed, index: u64) -> [u8; 32] {
    let mut rng = seed.stream("quic", index);
    let mut key = [0; 32];
    for part in key.chunks_exact_mut(8) {
        part.copy_from_slice(&rng.next_u64().to_le_bytes());
    }
    key
}
