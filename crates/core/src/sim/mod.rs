//! The simulator: one value, no globals, integer nanoseconds. Same network, controllers and seed:
//! same bytes.
//!
//! A link's arrivals are in order, so only the next one needs a place in the event heap; the heap
//! holds one entry per busy link, not one per packet. What flows and applications wait for lies beside
//! it, where what is far away costs nothing (`timers`).
//!
//! With thousands of flows a packet's time is spent on its flow's state coming from memory. State that
//! every packet touches lies together in `Flow`; the pipes tell which flows are next, whose state is
//! fetched before it is needed (`fetch`).
use crate::control::{Coupled, SubflowId};
use crate::controllers;
use crate::coupled;
use crate::decision::AgentState;
use crate::params::{ParamError, Params};
use crate::rng::Seed;
use crate::sim::plan::{ConnectionPlan, Network};
use crate::sim::record::{FlowSeries, Outcome};
use crate::transport::config::SenderConfig;
use crate::transport::packet::{Kind, Packet};
use crate::transport::receiver::Receiver;
use crate::transport::sender::Sender;
use crate::units::{Bytes, Rate, Span, Time};
pub use build::{Arrival, arrivals};
use link::{InPipe, Link, Offer};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::num::NonZero;
use std::sync::Arc;
use timers::{Due, Timer, Timers};
use traffic::App;

mod build;
pub mod delay;
mod ends;
pub mod exact;
mod fetch;
pub mod link;
pub mod loss;
mod outcome;
pub mod plan;

pub mod queues;
pub mod record;
pub mod sends;
pub mod service;
pub mod steps;
mod timers;
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

struct Connection {
    governor: Box<dyn Coupled>,
    app: App,
    first_flow: u32,
    flow_count: u32,
    controller: Arc<str>,
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
    /// When something was last delivered in order, or the application began to send.
    progress: Time,
    /// Longest time without.
    stall_max: Span,
    /// Sent by a source without a sender.
    datagrams: u64,
    datagram_bytes: u64,
    /// Copies that links made of its packets.
    copies: u64,
    /// Of these, dropped by queues or lost on the wire.
    copies_lost: u64,
}

impl Arrived {
    /// Something was delivered in order, which ends a stall.
    fn deliver(&mut self, now: Time, bytes: u64) {
        self.delivered_bytes += bytes;
        self.stall_max = self.stall_max.max(now.since(self.progress));
        self.progress = now;
    }

    /// Books a drop by a queue; the loss of a copy is not a loss of what was sent.
    fn drop_in_queue(&mut self, packet: &Packet) {
        let is_data = u64::from(packet.kind != Kind::Ack);
        if packet.copy {
            self.copies_lost += is_data;
        } else {
            self.queue_drops += is_data;
        }
    }
}

/// A path's place in the list of all paths' links.
#[derive(Clone, Copy, Debug)]
struct Path {
    start: u32,
    hops: u32,
}

/// What packets of a flow touch.
#[repr(align(64))]
struct Flow {
    sender: Sender,
    receiver: Receiver,
    arrived: Arrived,
    /// Where its two paths lie in `Sim::paths`.
    forward: Path,
    reverse: Path,
    /// Its earliest wake-up that is scheduled. Each knows the next later one: what comes up is always the
    /// earliest, since a later one is scheduled only when none is.
    wake: Time,
    /// The sender has nothing due before.
    sender_due: Time,
    /// The sender's latest sample.
    latest_rtt: Span,
    packet_bytes: u64,
    connection: u32,
    id: SubflowId,
    /// Data packets put on the wire so far, the number of the next.
    transmissions: u32,
    /// Whether its decisions are made outside of the simulation.
    has_agent: bool,
}

/// The rest of a flow.
struct FlowPlan {
    name: Box<str>,
    start: Time,
    header_bytes: u64,
    /// Those of a constant-rate source.
    datagrams: Option<Datagrams>,
    base_rtt: Span,
}

/// What a constant-rate source sends.
#[derive(Clone, Copy)]
struct Datagrams {
    /// From one to the next.
    every_ns: NonZero<u64>,
    size: u32,
}

/// A simulation.
pub struct Sim {
    now: Time,
    end: Time,
    /// First arrivals of pipes, ends of transmissions, samples.
    heap: BinaryHeap<Reverse<(Due, Event)>>,
    timers: Timers,
    order: u64,
    links: Vec<Link>,
    /// The links of all paths; flows with equal paths share them.
    paths: Vec<u32>,
    link_names: Vec<String>,
    /// Whether a packet that leaves for this link may be handed on without an event.
    passes: Vec<bool>,
    flows: Vec<Flow>,
    /// Whether the flows' state is more than a core's own cache holds.
    many: bool,
    plans: Vec<FlowPlan>,
    /// The sender's configuration of the connection added last.
    config: Option<Arc<SenderConfig>>,
    connections: Vec<Connection>,
    loose: Vec<Option<Packet>>,
    loose_free: Vec<u32>,
    dropped: Vec<Packet>,
    /// Flow and transmission of every data packet that a queue drops, if anyone wants to know.
    drop_log: Option<Vec<(u32, u32)>>,
    sample_interval: Span,
    flow_series: FlowSeries,
    events: u64,
    /// The flow whose agent is asked for an action.
    asking: Option<u32>,
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
    /// The time reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Handles every event up to and including `until`, which is cut at the network's duration. A
    /// decision that is awaited from outside is not: the flow falls back.
    pub fn run_until(&mut self, until: Time) {
        while self.run_until_decision(until).is_some() {}
    }

    /// As [`run_until`](Self::run_until), but stops after the event that makes a decision due, which is
    /// to be made outside ([`agent_state`](Self::agent_state)): returns its flow, `None` at `until`.
    pub fn run_until_decision(&mut self, until: Time) -> Option<u32> {
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
            if self.asking.is_some() {
                return self.asking.take();
            }
        }
        self.now = self.now.max(until);
        None
    }

    /// What the agent of a flow reads and answers; `None` for a flow without an agent outside.
    pub fn agent_state(&mut self, flow: u32) -> Option<&mut AgentState> {
        let Flow { connection, id, .. } = *self.flows.get(flow as usize)?;
        self.connections[connection as usize].governor.agent_state(id)
    }

    /// The flows whose agents are outside.
    pub fn flows_with_agents(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.flows).filter(|(_, flow)| flow.has_agent).map(|(index, _)| index)
    }

    /// Tells every controller that the run is over ([`Coupled::on_end`]).
    pub fn tell_end(&mut self) {
        for flow in &self.flows {
            self.connections[flow.connection as usize].governor.on_end(flow.id, self.now);
        }
    }

    /// Data packets sent so far, by every flow.
    pub fn packets(&self) -> u64 {
        self.flows
            .iter()
            .map(|flow| flow.sender.stats().sent_packets + flow.arrived.datagrams)
            .sum()
    }

    /// Takes the next event up to `until` and moves the clock to it; an arrival's packet
    /// goes to `packet`. (Packets are handed on by reference: moved through enums, their small fields
    /// stall on store forwarding, which cost a third of the run.)
    #[inline]
    fn next_event(&mut self, until: Time, packet: &mut Packet) -> Option<Event> {
        let first = self.heap.peek().map_or(Due::NEVER, |&Reverse((due, _))| due);
        if first.at() >= self.timers.soonest()
            && let Some(event) = self.next_timer(first, until)
        {
            return Some(event);
        }
        if first.at() > until {
            return None;
        }
        let mut top = self.heap.peek_mut()?;
        let Reverse((_, event)) = *top;
        debug_assert!(first.at() >= self.now, "the clock ran back from {} to {first:?}", self.now);
        self.now = first.at();
        self.events += 1;
        let Event::Pipe(index) = event else {
            PeekMut::pop(top);
            return Some(event);
        };
        let pipe = &mut self.links[index as usize].pipe;
        *packet = pipe.pop_front().expect("a scheduled pipe is not empty").packet;
        // The next arrival takes this one's place in the heap: one sift instead of two.
        if let Some(next) = pipe.front() {
            *top = Reverse((Due::new(next.at, next.order), event));
            drop(top);
        } else {
            PeekMut::pop(top);
        }
        if self.many {
            self.fetch_ahead(index);
        }
        Some(event)
    }

    /// The next timer, if it is due up to `until` and before `first`.
    #[inline(never)]
    fn next_timer(&mut self, first: Due, until: Time) -> Option<Event> {
        let (flows, many) = (&self.flows, self.many);
        let due = self.timers.first(first.at().min(until), |event| {
            if many && let Event::Flow(flow) = event {
                fetch::for_timer(&flows[flow as usize]);
            }
        });
        if due >= first || due.at() > until {
            return None;
        }
        let Timer { event, later, .. } = self.timers.pop()?;
        debug_assert!(due.at() >= self.now, "the clock ran back from {} to {due:?}", self.now);
        self.now = due.at();
        self.events += 1;
        if let Event::Flow(flow) = event {
            self.flows[flow as usize].wake = later;
        }
        Some(event)
    }

    /// Puts an event other than a pipe's or a flow's among those to come.
    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        let due = Due::new(at, self.order);
        if matches!(event, Event::Free(_) | Event::Sample) {
            self.heap.push(Reverse((due, event)));
        } else {
            self.timers.push(Timer { due, event, later: Time::NEVER });
        }
    }

    /// Wakes a flow at a time, unless it is woken earlier: what it then finds due later is scheduled then.
    #[inline]
    fn wake_by(&mut self, at: Time, index: u32) {
        let wake = &mut self.flows[index as usize].wake;
        if at >= *wake {
            return;
        }
        let later = std::mem::replace(wake, at);
        self.order += 1;
        let due = Due::new(at, self.order);
        self.timers.push(Timer { due, event: Event::Flow(index), later });
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
                        arrived.deliver(self.now, u64::from(packet.size));
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
    #[cold]
    fn settle(&mut self, link: u32, offer: Offer, packet: &mut Packet) {
        let arrived = &mut self.flows[packet.flow as usize].arrived;
        let is_data = u64::from(packet.kind != Kind::Ack);
        match offer {
            Offer::Dropped => {
                arrived.drop_in_queue(packet);
                log_drop(&mut self.drop_log, packet);
            }
            Offer::Lost if packet.copy => arrived.copies_lost += is_data,
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
                    packet.copy = true;
                }
            }
        }
    }

    #[allow(
        clippy::inline_always,
        reason = "called for every hop of every packet, which must not be copied for the call"
    )]
    #[inline(always)]
    fn put_in_pipe(&mut self, link: u32, at: Time, packet: &Packet) {
        self.order += 1;
        let order = self.order;
        let pipe = &mut self.links[link as usize].pipe;
        debug_assert!(pipe.back().is_none_or(|last| last.at <= at), "FIFO broken");
        pipe.push_back(InPipe { at, order, packet: *packet });
        if pipe.len() == 1 {
            self.heap.push(Reverse((Due::new(at, order), Event::Pipe(link))));
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
            self.flows[packet.flow as usize].arrived.drop_in_queue(&packet);
            log_drop(&mut self.drop_log, &packet);
        }
    }

    fn sample(&mut self) {
        let series = &mut self.flow_series;
        let none = |value: f64| if value > 0.0 { value } else { f64::NAN };
        for (index, (flow, plan)) in self.flows.iter().zip(&self.plans).enumerate() {
            if plan.start > self.now {
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

fn log_drop(log: &mut Option<Vec<(u32, u32)>>, packet: &Packet) {
    if let Some(log) = log
        && packet.kind == Kind::Data
        && !packet.copy
    {
        log.push((packet.flow, packet.transmission));
    }
}

#[cfg(test)]
mod tests;
