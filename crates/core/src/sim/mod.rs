//! The simulator: one value, no globals, integer nanoseconds. Same network, controllers and seed:
//! same bytes.
//!
//! A link's arrivals are in order, so only the next one needs a place in the event heap; the heap
//! holds one entry per busy link and one per flow with a timer, not one per packet.
use crate::control::{Coupled, SubflowId};
use crate::controllers;
use crate::coupled;
use crate::params::{ParamError, Params};
use crate::receiver::Receiver;
use crate::record::{FlowSeries, Outcome};
use crate::rng::Seed;
use crate::scenario::TrafficSpec;
use crate::scenario::network::{ConnectionPlan, Network, Route};
use crate::sender::{Governor, Sender};
use crate::units::{Bytes, Rate, Span, Time};
use link::{InPipe, Link, Offer};
use packet::{Kind, Packet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use traffic::App;

pub mod delay;
pub mod link;
pub mod loss;
mod outcome;
pub mod packet;
pub mod queues;
pub mod service;
pub mod steps;
pub mod trace;
pub mod traffic;

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The first packet of this link's pipe arrives.
    Pipe(u32),
    /// This link's transmitter is free.
    Free(u32),
    /// The packet in this slot arrives.
    Loose(u32),
    /// A timer of this flow may be due.
    Flow(u32),
    /// This connection's application acts.
    App(u32),
    /// Time for a row of every flow's series.
    Sample,
}

/// Time, then order of scheduling.
type Entry = Reverse<(Time, u64, Event)>;

struct Connection {
    governor: Box<dyn Coupled>,
    app: App,
    first_flow: u32,
    flow_count: u32,
    controller: String,
}

/// Counters at the receiving end, and drops on the way to it.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    packets: u64,
    segments: u64,
    delivered_bytes: u64,
    buffered_bytes: u64,
    owd_sum: u128,
    rtt_at_delivery_sum: u128,
    rtt_at_delivery_count: u64,
    queue_drops: u64,
    random_losses: u64,
    /// Sent by a source without a sender.
    datagrams: u64,
    datagram_bytes: u64,
    /// Copies that links made of its packets.
    copies: u64,
}

/// A path's place in the list of all paths' links.
#[derive(Clone, Copy, Debug)]
struct Path {
    start: u32,
    hops: u32,
}

struct Flow {
    connection: u32,
    id: SubflowId,
    /// Where its two paths lie in `Sim::paths`.
    forward: Path,
    reverse: Path,
    sender: Sender,
    receiver: Receiver,
    /// Its wake-ups in the heap that something may be due at, the earliest last.
    wakes: Vec<Time>,
    arrived: Arrived,
    name: String,
    start: Time,
    packet_bytes: u64,
    header_bytes: u64,
    /// Interval and size of a constant-rate source's datagrams.
    datagrams: Option<(Span, u32)>,
    base_rtt: Span,
}

/// A simulation.
pub struct Sim {
    now: Time,
    end: Time,
    heap: BinaryHeap<Entry>,
    order: u64,
    links: Vec<Link>,
    /// The links of all paths; flows with equal paths share them.
    paths: Vec<u32>,
    link_names: Vec<String>,
    /// Whether a packet that leaves for this link may be handed on without an event.
    passes: Vec<bool>,
    flows: Vec<Flow>,
    connections: Vec<Connection>,
    loose: Vec<Option<Packet>>,
    loose_free: Vec<u32>,
    dropped: Vec<Packet>,
    sample_interval: Span,
    flow_series: FlowSeries,
    events: u64,
}

/// Makes the controller of a connection.
pub type Builder<'a, E> = dyn FnMut(&ConnectionPlan) -> Result<Box<dyn Coupled>, E> + 'a;

/// The controllers of this crate, by name.
///
/// # Errors
///
/// If there is none of that name, or a setting is out of range; a checked scenario has no such
/// fault.
pub fn builtin(plan: &ConnectionPlan) -> Result<Box<dyn Coupled>, ParamError> {
    if let Some(spec) = controllers::find(&plan.controller) {
        let params = Params::resolve(spec.params, &plan.params)?;
        return Ok(Box::new(controllers::per_flow(spec, params)));
    }
    if let Some(spec) = coupled::find(&plan.controller) {
        let params = Params::resolve(spec.params, &plan.params)?;
        return Ok((spec.build)(&params));
    }
    Err(ParamError {
        name: "controller".to_owned(),
        value: format!("{:?}", plan.controller),
        allowed: controllers::names(),
    })
}

/// Runs a network with this crate's controllers.
///
/// # Errors
///
/// See [`builtin`].
pub fn run(network: &Network, seed: Seed) -> Result<Outcome, ParamError> {
    let mut sim = Sim::new(network, seed, &mut builtin)?;
    sim.run_until(network.duration);
    Ok(sim.finish())
}

impl Sim {
    /// A simulation at time 0.
    ///
    /// # Errors
    ///
    /// Whatever `build` returns.
    pub fn new<E>(network: &Network, seed: Seed, build: &mut Builder<E>) -> Result<Self, E> {
        let every = network.sample_interval;
        let plans = network.links.iter().enumerate();
        let mut sim = Self {
            now: Time(0),
            end: network.duration,
            heap: BinaryHeap::new(),
            order: 0,
            links: plans.map(|(index, plan)| Link::new(plan, index as u64, seed, every)).collect(),
            paths: Vec::new(),
            link_names: network.links.iter().map(|plan| plan.name.clone()).collect(),
            passes: Vec::new(),
            flows: Vec::new(),
            connections: Vec::new(),
            loose: Vec::new(),
            loose_free: Vec::new(),
            dropped: Vec::new(),
            sample_interval: every,
            flow_series: FlowSeries::default(),
            events: 0,
        };
        for (index, plan) in network.connections.iter().enumerate() {
            sim.add_plan(network, plan, (index as u64, seed), build)?;
        }
        sim.passes = sim.passes();
        if every > Span::ZERO {
            sim.schedule(Time(0), Event::Sample);
        }
        Ok(sim)
    }

    /// A planned connection, or all arrivals of a Poisson source.
    fn add_plan<E>(
        &mut self,
        network: &Network,
        plan: &ConnectionPlan,
        (index, seed): (u64, Seed),
        build: &mut Builder<E>,
    ) -> Result<(), E> {
        let mut rng = seed.stream("start", index);
        let spread = plan.start_spread.as_secs_f64();
        let start = plan.start + Span::from_secs_f64(rng.uniform() * spread);
        let TrafficSpec::Poisson { per_s, .. } = plan.traffic else {
            return self.add_connection(network, plan, (start, index, seed), build);
        };
        let mut at = start;
        let mut arrival = 0;
        loop {
            at += Span::from_secs_f64(rng.exponential(1.0 / per_s));
            if at >= plan.stop.min(network.duration) {
                return Ok(());
            }
            let one = ConnectionPlan { name: format!("{}_{arrival}", plan.name), ..plan.clone() };
            let stream = (index << 32) | (1 + arrival);
            self.add_connection(network, &one, (at, stream, seed), build)?;
            arrival += 1;
        }
    }

    fn add_connection<E>(
        &mut self,
        network: &Network,
        plan: &ConnectionPlan,
        (start, stream, seed): (Time, u64, Seed),
        build: &mut Builder<E>,
    ) -> Result<(), E> {
        let connection = self.connections.len() as u32;
        let first_flow = self.flows.len() as u32;
        let mut governor = build(plan)?;
        for (index, route) in plan.subflows.iter().enumerate() {
            let id = SubflowId(index as u32);
            let own_seed = seed.derive("controller", (stream << 8) | index as u64);
            governor.subflow_added(id, &Sender::flow_info(&plan.sender, start, own_seed));
            let sender = Sender::new(&plan.sender, &Governor { coupled: governor.as_mut(), id });
            let many = plan.subflows.len() > 1;
            let name = if many { format!("{}.{index}", plan.name) } else { plan.name.clone() };
            let paths = (self.add_path(&route.forward), self.add_path(&route.reverse));
            let flow = flow(network, plan, route, (connection, id, start, name, sender), paths);
            self.flows.push(flow);
        }
        let rng = seed.stream("traffic", stream);
        let app = App::new(plan.traffic.clone(), start, plan.stop, rng);
        self.schedule(start, Event::App(connection));
        self.connections.push(Connection {
            governor,
            app,
            first_flow,
            flow_count: plan.subflows.len() as u32,
            controller: plan.controller.clone(),
        });
        Ok(())
    }

    /// The place of a path, which is that of the flow before if they are equal.
    fn add_path(&mut self, links: &[u32]) -> Path {
        let hops = links.len() as u32;
        let before = self.flows.last().into_iter().flat_map(|flow| [flow.forward, flow.reverse]);
        for path in before {
            let start = path.start as usize;
            if path.hops == hops && self.paths[start..start + links.len()] == *links {
                return path;
            }
        }
        let start = self.paths.len() as u32;
        self.paths.extend_from_slice(links);
        Path { start, hops }
    }

    /// A link may be passed without an event if everything that enters it comes from one other link,
    /// in order, and its fate is known on arrival: then arrivals at it are as ordered as at that link.
    fn passes(&self) -> Vec<bool> {
        const NOBODY: u32 = u32::MAX;
        const SENDERS: u32 = u32::MAX - 1;
        const SEVERAL: u32 = u32::MAX - 2;
        let mut feeder = vec![NOBODY; self.links.len()];
        for path in self.flows.iter().flat_map(|flow| [flow.forward, flow.reverse]) {
            let mut before = SENDERS;
            for &link in &self.paths[path.start as usize..(path.start + path.hops) as usize] {
                let known = &mut feeder[link as usize];
                *known = if *known == NOBODY || *known == before { before } else { SEVERAL };
                before = link;
            }
        }
        let passed = |(&feeder, link): (&u32, &Link)| {
            feeder < SEVERAL
                && link.decides_on_arrival()
                && self.links[feeder as usize].keeps_order()
        };
        feeder.iter().zip(&self.links).map(passed).collect()
    }

    /// The time reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Handles every event up to and including `until`, which is cut at the network's duration.
    pub fn run_until(&mut self, until: Time) {
        let until = until.min(self.end);
        let mut packet = Packet::default();
        while let Some(event) = self.next_event(until, &mut packet) {
            match event {
                Event::Pipe(_) => self.arrive(&mut packet),
                Event::Free(link) => self.transmit(link),
                Event::Loose(slot) => {
                    packet = self.loose[slot as usize].take().expect("a filled slot");
                    self.loose_free.push(slot);
                    self.arrive(&mut packet);
                }
                Event::Flow(flow) => self.wake(flow),
                Event::App(connection) => self.act(connection),
                Event::Sample => self.sample(),
            }
        }
        self.now = self.now.max(until);
    }

    /// Takes the next event up to `until` off the heap and moves the clock to it; an arrival's packet
    /// goes to `packet`. (Packets are handed on by reference: moved through enums, their small fields
    /// stall on store forwarding, which cost a third of the run.)
    #[inline]
    fn next_event(&mut self, until: Time, packet: &mut Packet) -> Option<Event> {
        let mut top = self.heap.peek_mut()?;
        let Reverse((at, _, event)) = *top;
        if at > until {
            return None;
        }
        debug_assert!(at >= self.now, "the clock ran back from {} to {at}", self.now);
        self.now = at;
        self.events += 1;
        let Event::Pipe(index) = event else {
            PeekMut::pop(top);
            return Some(event);
        };
        let pipe = &mut self.links[index as usize].pipe;
        *packet = pipe.pop_front().expect("a scheduled pipe is not empty").packet;
        // The next arrival takes this one's place in the heap: one sift instead of two.
        if let Some(next) = pipe.front() {
            *top = Reverse((next.at, next.order, event));
        } else {
            PeekMut::pop(top);
        }
        Some(event)
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, event)));
    }

    /// A packet reaches the end of a link: the next link, or its receiver or sender.
    #[inline]
    fn arrive(&mut self, packet: &mut Packet) {
        if u32::from(packet.hop) < self.path(packet).hops {
            self.forward(packet, self.now);
        } else {
            match packet.kind {
                Kind::Data => self.receive(packet),
                Kind::Ack => self.acknowledge(packet),
                Kind::Datagram => {
                    let arrived = &mut self.flows[packet.flow as usize].arrived;
                    arrived.packets += 1;
                    if !packet.again {
                        arrived.delivered_bytes += u64::from(packet.size);
                    }
                    arrived.owd_sum += u128::from(self.now.since(packet.sent_at).0);
                }
            }
        }
    }

    #[inline]
    fn path(&self, packet: &Packet) -> Path {
        let flow = &self.flows[packet.flow as usize];
        if packet.kind == Kind::Ack { flow.reverse } else { flow.forward }
    }

    /// Takes a packet over its next link, and over those behind it that need no event.
    fn forward(&mut self, packet: &mut Packet, mut at: Time) {
        loop {
            let path = self.path(packet);
            let hop = u32::from(packet.hop);
            if hop >= path.hops {
                // A path without links: the packet is there.
                self.put_loose(at, *packet);
                return;
            }
            let index = self.paths[(path.start + hop) as usize];
            let last = hop + 1 == path.hops;
            let next = (!last).then(|| self.paths[(path.start + hop + 1) as usize]);
            let link = &mut self.links[index as usize];
            let offer = link.offer(at, packet, &mut self.dropped);
            match offer {
                Offer::Arrives { at: there, loose: false, twice: false } => {
                    packet.hop += 1;
                    if let Some(next) = next
                        && self.passes[next as usize]
                        && there <= self.end
                    {
                        at = there;
                        continue;
                    }
                    self.put_in_pipe(index, there, packet);
                }
                Offer::Held { idle } => {
                    self.account_drops();
                    if idle {
                        self.transmit(index);
                    }
                }
                other => self.settle(index, other, packet),
            }
            return;
        }
    }

    /// The less common ends of an offer.
    fn settle(&mut self, link: u32, offer: Offer, packet: &mut Packet) {
        let arrived = &mut self.flows[packet.flow as usize].arrived;
        let is_data = u64::from(packet.kind != Kind::Ack);
        match offer {
            Offer::Dropped => arrived.queue_drops += is_data,
            Offer::Lost => arrived.random_losses += is_data,
            Offer::Held { .. } => {}
            Offer::Arrives { at, loose, twice } => {
                packet.hop += 1;
                arrived.copies += is_data * u64::from(twice);
                for _ in 0..=u8::from(twice) {
                    if loose {
                        self.put_loose(at, *packet);
                    } else {
                        self.put_in_pipe(link, at, packet);
                    }
                    // A receiver knows segments again by their numbers, datagrams by this.
                    packet.again |= packet.kind == Kind::Datagram;
                }
            }
        }
    }

    #[inline]
    fn put_in_pipe(&mut self, link: u32, at: Time, packet: &Packet) {
        self.order += 1;
        let order = self.order;
        let pipe = &mut self.links[link as usize].pipe;
        debug_assert!(pipe.back().is_none_or(|last| last.at <= at), "FIFO broken");
        pipe.push_back(InPipe { at, order, packet: *packet });
        if pipe.len() == 1 {
            self.heap.push(Reverse((at, order, Event::Pipe(link))));
        }
    }

    fn put_loose(&mut self, at: Time, packet: Packet) {
        let slot = self.loose_free.pop().unwrap_or_else(|| {
            self.loose.push(None);
            self.loose.len() as u32 - 1
        });
        self.loose[slot as usize] = Some(packet);
        self.schedule(at, Event::Loose(slot));
    }

    /// A scheduler's link starts its next transmission.
    fn transmit(&mut self, index: u32) {
        let next = self.links[index as usize].transmit(self.now, &mut self.dropped);
        self.account_drops();
        let Some((offer, mut packet, free_at)) = next else { return };
        if free_at < Time::NEVER {
            self.schedule(free_at, Event::Free(index));
        }
        self.settle(index, offer, &mut packet);
    }

    fn account_drops(&mut self) {
        for packet in self.dropped.drain(..) {
            if packet.kind != Kind::Ack {
                self.flows[packet.flow as usize].arrived.queue_drops += 1;
            }
        }
    }

    /// A data packet reaches its receiver.
    fn receive(&mut self, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let mut ack = Packet::default();
        let arrival = flow.receiver.on_data(self.now, packet, &mut ack);
        let counts = &mut flow.arrived;
        let size = u64::from(packet.size);
        counts.packets += 1;
        counts.owd_sum += u128::from(self.now.since(packet.sent_at).0);
        if arrival.delivered > 0 {
            // What waited behind a gap is counted in full packets, except when nothing waits on.
            let waited = if arrival.delivered > 1 && flow.receiver.holds_nothing() {
                counts.buffered_bytes
            } else {
                counts.buffered_bytes.min((arrival.delivered - 1) * flow.packet_bytes)
            };
            counts.buffered_bytes -= waited;
            counts.segments += arrival.delivered;
            counts.delivered_bytes += size + waited;
            let latest = flow.sender.latest_rtt();
            if latest > Span::ZERO {
                counts.rtt_at_delivery_sum += u128::from(latest.0);
                counts.rtt_at_delivery_count += 1;
            }
        } else if !arrival.duplicate {
            counts.buffered_bytes += size;
        }
        if arrival.ack_now {
            self.forward(&mut ack, self.now);
        } else {
            self.set_wake(packet.flow);
        }
    }

    /// An acknowledgement reaches its sender.
    fn acknowledge(&mut self, ack: &Packet) {
        let flow = &mut self.flows[ack.flow as usize];
        let connection = &mut self.connections[flow.connection as usize];
        let mut governor = Governor { coupled: connection.governor.as_mut(), id: flow.id };
        flow.sender.on_ack(self.now, ack, &mut governor, &mut connection.app.supply);
        if connection.app.may_finish() {
            self.finish_transfer(self.flows[ack.flow as usize].connection);
        }
        self.pump(ack.flow);
    }

    fn finish_transfer(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let first = connection.first_flow as usize;
        let flows = &self.flows[first..first + connection.flow_count as usize];
        if flows.iter().all(|flow| flow.sender.all_acknowledged()) {
            let before = connection.app.next;
            connection.app.on_all_acknowledged(self.now);
            if connection.app.next != before
                && let Some(next) = connection.app.to_schedule()
            {
                self.schedule(next, Event::App(index));
            }
        }
    }

    /// Sends what may be sent, and sets the flow's next wake-up.
    fn pump(&mut self, index: u32) {
        loop {
            let flow = &mut self.flows[index as usize];
            let connection = &mut self.connections[flow.connection as usize];
            let mut governor = Governor { coupled: connection.governor.as_mut(), id: flow.id };
            let supply = &mut connection.app.supply;
            let Some(out) = flow.sender.transmit(self.now, &mut governor, supply) else { break };
            let mut packet = Packet {
                flow: index,
                size: out.size,
                kind: Kind::Data,
                ect: flow.sender.ecn_capable(),
                again: out.again,
                seq: out.seq,
                sent_at: self.now,
                ..Packet::default()
            };
            self.forward(&mut packet, self.now);
        }
        self.set_wake(index);
    }

    /// A timer that moves later leaves its old wake-up in the heap, which then finds nothing due:
    /// cheaper than moving it with every acknowledgement. A later wake-up than the earliest is kept
    /// in mind, so that a timer that comes and goes before it does not fill the heap.
    #[inline]
    fn set_wake(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let due = flow.sender.deadline().min(flow.receiver.deadline()).max(self.now);
        if flow.wakes.last().is_none_or(|&earliest| due < earliest) && due < Time::NEVER {
            flow.wakes.push(due);
            self.schedule(due, Event::Flow(index));
        }
    }

    fn wake(&mut self, index: u32) {
        let now = self.now;
        let flow = &mut self.flows[index as usize];
        debug_assert_eq!(flow.wakes.last(), Some(&now), "a wake-up that nobody asked for");
        flow.wakes.pop();
        if let Some((every, size)) = flow.datagrams {
            return self.send_datagram(index, every, size);
        }
        let ack = (flow.receiver.deadline() <= now).then(|| flow.receiver.on_deadline(index));
        let due = flow.sender.deadline() <= now;
        if due {
            let connection = &mut self.connections[flow.connection as usize];
            let mut governor = Governor { coupled: connection.governor.as_mut(), id: flow.id };
            flow.sender.on_deadline(now, &mut governor, &mut connection.app.supply);
        }
        if let Some(mut ack) = ack {
            self.forward(&mut ack, now);
        }
        if due {
            self.pump(index);
        } else {
            self.set_wake(index);
        }
    }

    fn send_datagram(&mut self, index: u32, every: Span, size: u32) {
        let connection = self.flows[index as usize].connection as usize;
        if self.now >= self.connections[connection].app.stop() {
            return;
        }
        let counts = &mut self.flows[index as usize].arrived;
        counts.datagrams += 1;
        counts.datagram_bytes += u64::from(size);
        let mut packet = Packet {
            flow: index,
            size,
            kind: Kind::Datagram,
            seq: counts.datagrams,
            sent_at: self.now,
            ..Packet::default()
        };
        self.forward(&mut packet, self.now);
        let next = self.now + every;
        self.flows[index as usize].wakes.push(next);
        self.schedule(next, Event::Flow(index));
    }

    /// The application of a connection acts.
    fn act(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if connection.app.next != self.now {
            return;
        }
        connection.app.on_time(self.now);
        let next = connection.app.to_schedule();
        let (first, count) = (connection.first_flow, connection.flow_count);
        if let Some(next) = next {
            self.schedule(next, Event::App(index));
        }
        for flow in first..first + count {
            if self.flows[flow as usize].datagrams.is_some() {
                if self.flows[flow as usize].arrived.datagrams == 0 {
                    self.flows[flow as usize].wakes.push(self.now);
                    self.wake(flow);
                }
            } else {
                self.flows[flow as usize].sender.on_supply();
                self.pump(flow);
            }
        }
        if self.connections[index as usize].app.may_finish() {
            self.finish_transfer(index);
        }
    }

    fn sample(&mut self) {
        let series = &mut self.flow_series;
        let none = |value: f64| if value > 0.0 { value } else { f64::NAN };
        for (index, flow) in self.flows.iter().enumerate() {
            if flow.start > self.now {
                continue;
            }
            let connection = &self.connections[flow.connection as usize];
            let control = connection.governor.control(flow.id);
            let packets = |bytes: Bytes| bytes.0 as f64 / flow.packet_bytes as f64;
            series.time_s.push(self.now.as_secs_f64());
            series.flow.push(index as u32);
            series.cwnd_packets.push(packets(control.cwnd));
            let unset = control.ssthresh.0 > 1 << 40;
            let ssthresh = if unset { f64::NAN } else { packets(control.ssthresh) };
            series.ssthresh_packets.push(ssthresh);
            series.inflight_bytes.push(flow.sender.inflight().0);
            series.srtt_ms.push(none(flow.sender.srtt().as_millis_f64()));
            series.rtt_ms.push(none(flow.sender.latest_rtt().as_millis_f64()));
            series.delivered_bytes.push(flow.arrived.delivered_bytes);
            series.delivery_rate_mbps.push(none(flow.sender.delivery_rate().as_mbps()));
            let unpaced = control.pacing_rate == Rate::UNLIMITED;
            let pacing = if unpaced { f64::NAN } else { control.pacing_rate.as_mbps() };
            series.pacing_mbps.push(pacing);
            series.lost_packets.push(flow.arrived.queue_drops + flow.arrived.random_losses);
        }
        let next = self.now + self.sample_interval;
        self.schedule(next, Event::Sample);
    }
}

fn flow(
    network: &Network,
    plan: &ConnectionPlan,
    route: &Route,
    (connection, id, start, name, sender): (u32, SubflowId, Time, String, Sender),
    (forward, reverse): (Path, Path),
) -> Flow {
    let config = &plan.sender;
    let hops = route.forward.iter().chain(&route.reverse);
    let datagrams = match plan.traffic {
        TrafficSpec::Cbr { rate_mbps, packet_bytes } => {
            let every = Rate::from_mbps(rate_mbps).time_for(Bytes(u64::from(packet_bytes)));
            Some((every.max(Span(1)), packet_bytes))
        }
        _ => None,
    };
    let selective = config.recovery == crate::control::Recovery::Sack;
    let receiver =
        Receiver::new(config.ack_every, config.ack_delay, config.ack.0 as u32, selective);
    Flow {
        connection,
        id,
        forward,
        reverse,
        sender,
        receiver,
        wakes: Vec::new(),
        arrived: Arrived::default(),
        name,
        start,
        packet_bytes: config.packet.0,
        header_bytes: config.header.0,
        datagrams,
        base_rtt: hops.map(|&link| network.links[link as usize].delay.least()).sum(),
    }
}

#[cfg(test)]
mod tests;
