//! The simulator: one value, no globals, integer nanoseconds. Same network, controllers and seed:
//! same bytes.
//!
//! [`network`] moves packets over links and keeps the order of events, here and in the emulator.
//! [`Sim`] adds what is at the ends of paths: senders, receivers and applications.
//!
//! With thousands of flows a packet's time is spent on its flow's state coming from memory. State that
//! every packet touches lies together in `Flow`; the pipes tell which flows are next, whose state is
//! fetched before it is needed (`fetch`).
use crate::control::{CWND_MAX, Coupled, SubflowId};
use crate::decision::AgentState;
use crate::hint::likely;
use crate::params::ParamError;
use crate::rng::Seed;
use crate::scheme::Scheme;
use crate::sim::plan::{ConnectionPlan, NetworkPlan};
use crate::sim::record::{FlowSeries, Outcome};
use crate::transport::config::SenderConfig;
use crate::transport::packet::{Ect, Kind, Packet};
use crate::transport::receiver::Receiver;
use crate::transport::sender::Sender;
use crate::units::{Bytes, Rate, Span, Time};
pub use build::{Arrival, arrivals};
use multipath::Multipath;
use network::{Ends, Network, Next, Path};
use pipe::Pipe;
use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use traffic::App;

pub mod aggregation;
mod build;
pub mod delay;
mod ends;
pub mod exact;
pub mod false_records;
mod fetch;
pub mod grants;
mod heads;
pub mod link;
mod live;
pub mod loss;
mod multipath;
pub mod network;
mod outcome;
pub mod pipe;
pub mod plan;
pub mod policer;
pub mod queues;
pub mod record;
pub mod remark;
pub mod retransmit;
pub mod sends;
pub mod series;
pub mod service;
pub mod steps;
pub mod tap;
mod timers;
pub mod trace;
pub mod traffic;
mod truth;

/// What flows and applications wait for.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A timer of this flow may be due; its next later wake-up is at `later`.
    Flow { index: u32, later: Time },
    /// This connection's application acts.
    App(u32),
    /// This flow, one of several subflows, opens or closes.
    Subflow(u32),
    /// Time for a row of every flow's series.
    Sample,
}

struct Connection {
    app: App,
    first_flow: u32,
    flow_count: u32,
    controller: Arc<str>,
    /// Of a connection with several subflows.
    data: Option<Box<Multipath>>,
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
}

impl Arrived {
    /// Something was delivered in order, which ends a stall.
    fn deliver(&mut self, now: Time, bytes: u64) {
        self.delivered_bytes += bytes;
        self.stall_max = self.stall_max.max(now.since(self.progress));
        self.progress = now;
    }
}

/// What packets of a flow touch.
#[repr(align(64))]
struct Flow {
    sender: Sender,
    receiver: Receiver,
    arrived: Arrived,
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
    /// Index of what governs it, among [`Hosts::governors`], and its name there.
    governor: u32,
    id: SubflowId,
    /// Data packets put on the wire so far, the number of the next.
    transmissions: u32,
    /// Whether its decisions are made outside of the simulation.
    has_agent: bool,
    /// Whether it is one of several subflows.
    multipath: bool,
}

/// The rest of a flow.
struct FlowPlan {
    name: Box<str>,
    start: Time,
    header_bytes: u64,
    base_rtt: Span,
    /// State of a constant-rate source; boxed, as `copies`, because few flows have one.
    datagrams: Option<Box<Datagrams>>,
    copies: Option<Box<Copies>>,
}

impl FlowPlan {
    /// What was put on the wire without a sender: datagrams and their bytes.
    fn datagrams_sent(&self) -> (u64, u64) {
        self.datagrams.as_ref().map_or((0, 0), |source| (source.sent, source.sent_bytes))
    }
}

/// Copies that links made of a flow's packets.
#[derive(Default)]
struct Copies {
    made: u64,
    /// Of these, dropped by queues or lost on the wire.
    lost: u64,
}

/// What a constant-rate source sends.
struct Datagrams {
    /// From one to the next.
    every_ns: NonZero<u64>,
    size: u32,
    ect: Ect,
    sent: u64,
    sent_bytes: u64,
}

/// Senders, receivers and applications.
struct Hosts {
    flows: Vec<Flow>,
    plans: Vec<FlowPlan>,
    connections: Vec<Connection>,
    /// One per connection, or one for several connections of a host ([`Scope::Host`](coupled::Scope)).
    governors: Vec<Box<dyn Coupled>>,
    /// Flow and transmission of every data packet that a queue drops, if anyone wants to know.
    drop_log: Option<Vec<(u32, u32)>>,
    /// What only the simulator knows, if anyone wants to know.
    truth: Option<Box<truth::Collector>>,
    /// Who sees every packet; mostly none.
    taps: Vec<Box<dyn tap::Tap>>,
}

/// A simulation.
pub struct Sim {
    end: Time,
    net: Network<Event>,
    hosts: Hosts,
    /// The sender's configuration of the connection added last.
    config: Option<Arc<SenderConfig>>,
    sample_interval: Span,
    flow_series: FlowSeries,
    /// The flows whose agents are to be asked for an action, in this order.
    asking: VecDeque<u32>,
}

/// Makes the controller of a connection, or of all connections that share it: then it is called for the
/// first of them only.
pub type Builder<'a, E> = dyn FnMut(&ConnectionPlan) -> Result<Box<dyn Coupled>, E> + 'a;

/// The controllers of this crate, by name.
///
/// # Errors
///
/// If there is none of that name, or a setting is out of range; a checked scenario has no such
/// fault.
pub fn builtin(plan: &ConnectionPlan) -> Result<Box<dyn Coupled>, ParamError> {
    Ok(Scheme::resolve(&plan.controller, &plan.params)?.build())
}

/// Runs a network with this crate's controllers.
///
/// # Errors
///
/// See [`builtin`].
pub fn run(network: &NetworkPlan, seed: Seed) -> Result<Outcome, ParamError> {
    let mut sim = Sim::new(network, seed, &mut builtin)?;
    sim.run_until(network.duration);
    Ok(sim.finish())
}

impl Sim {
    /// The time reached.
    pub fn now(&self) -> Time {
        self.net.now()
    }

    /// Handles every event up to and including `until`, which is cut at the network's duration. A
    /// decision that is awaited from outside is not: the flow falls back.
    pub fn run_until(&mut self, until: Time) {
        while self.run_until_decision(until).is_some() {}
    }

    /// As [`run_until`](Self::run_until), but stops after the event that makes a decision due, which is
    /// to be made outside ([`agent_state`](Self::agent_state)): returns its flow, `None` at `until`. Of
    /// several decisions due after one event each call returns one, in the order of the flows.
    pub fn run_until_decision(&mut self, until: Time) -> Option<u32> {
        let until = until.min(self.end);
        let mut packet = Packet::default();
        if let Some(flow) = self.next_asked() {
            return Some(flow);
        }
        while let Some(next) = self.net.next(until, &mut packet, &mut self.hosts) {
            match next {
                Next::Packet => self.arrive(&packet),
                Next::Event(Event::Flow { index, later }) => {
                    self.hosts.flows[index as usize].wake = later;
                    self.wake(index);
                }
                Next::Event(Event::App(connection)) => self.act(connection),
                Next::Event(Event::Subflow(index)) => self.open_or_close(index),
                Next::Event(Event::Sample) => self.sample(),
            }
            if let Some(flow) = self.next_asked() {
                return Some(flow);
            }
        }
        None
    }

    /// The next flow whose agent is to be asked.
    #[inline]
    fn next_asked(&mut self) -> Option<u32> {
        if likely(self.asking.is_empty()) { None } else { self.next_due() }
    }

    /// Of the flows whose agents are to be asked the first that has no action yet.
    #[cold]
    fn next_due(&mut self) -> Option<u32> {
        while let Some(flow) = self.asking.pop_front() {
            if self.agent_state(flow).is_some_and(|state| state.due) {
                return Some(flow);
            }
        }
        None
    }

    /// What the agent of a flow reads and answers; `None` for a flow without an agent outside, and for a
    /// subflow that is not open yet. Of one that has closed it is the last state.
    pub fn agent_state(&mut self, flow: u32) -> Option<&mut AgentState> {
        let Flow { governor, id, has_agent, .. } = *self.hosts.flows.get(flow as usize)?;
        if has_agent {
            return self.hosts.governors[governor as usize].agent_state(id);
        }
        self.hosts.last_agent_state(flow)
    }

    /// The flows that the controller of this name governs, subflows that open late included.
    pub fn flows_of(&self, controller: &str) -> impl Iterator<Item = u32> {
        let governed = |one: &&Connection| *one.controller == *controller;
        let connections = self.hosts.connections.iter().filter(governed);
        connections.flat_map(|one| one.first_flow..one.first_flow + one.flow_count)
    }

    /// Tells every controller that the run is over ([`Coupled::on_end`]).
    pub fn tell_end(&mut self) {
        for index in 0..self.hosts.flows.len() {
            self.tell_end_of(index);
        }
    }

    /// Data packets sent so far, by every flow.
    pub fn packets(&self) -> u64 {
        self.hosts
            .flows
            .iter()
            .zip(&self.hosts.plans)
            .map(|(flow, plan)| flow.sender.stats().sent_packets + plan.datagrams_sent().0)
            .sum()
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.net.events()
    }

    /// Wakes a flow at a time, unless it is woken earlier: what it then finds due later is scheduled then.
    #[inline]
    fn wake_by(&mut self, at: Time, index: u32) {
        let wake = &mut self.hosts.flows[index as usize].wake;
        if at >= *wake {
            return;
        }
        let later = std::mem::replace(wake, at);
        self.net.schedule(at, Event::Flow { index, later });
    }

    /// A packet reaches the end of its path.
    #[inline]
    fn arrive(&mut self, packet: &Packet) {
        match packet.kind {
            Kind::Data => self.receive(packet),
            Kind::Ack => self.acknowledge(packet),
            Kind::Datagram => {
                let now = self.net.now();
                let arrived = &mut self.hosts.flows[packet.flow as usize].arrived;
                arrived.packets += 1;
                if !packet.copy {
                    arrived.deliver(now, u64::from(packet.size));
                }
                arrived.owd_sum += u128::from(now.since(packet.sent_at).0);
            }
        }
    }

    /// A packet enters its path.
    #[inline]
    fn send(&mut self, packet: Packet) {
        self.net.enter(packet, &mut self.hosts);
    }

    #[inline(never)]
    fn sample(&mut self) {
        let series = &mut self.flow_series;
        let none = |value: f64| if value > 0.0 { value } else { f64::NAN };
        for (index, (flow, plan)) in self.hosts.flows.iter().zip(&self.hosts.plans).enumerate() {
            if plan.start > self.net.now() || !self.hosts.is_governed(flow) {
                continue;
            }
            let control = self.hosts.governors[flow.governor as usize].control(flow.id);
            let packets = |bytes: Bytes| bytes.0 as f64 / flow.packet_bytes as f64;
            series.time_s.push(self.net.now().as_secs_f64());
            series.flow.push(index as u32);
            series.cwnd_packets.push(packets(control.cwnd));
            let unset = control.ssthresh > CWND_MAX;
            let ssthresh = if unset { f64::NAN } else { packets(control.ssthresh) };
            series.ssthresh_packets.push(ssthresh);
            series.inflight_bytes.push(flow.sender.inflight().0);
            series.srtt_ms.push(none(flow.sender.srtt().as_millis_f64()));
            series.rtt_ms.push(none(flow.sender.latest_rtt().as_millis_f64()));
            let Arrived { delivered_bytes, buffered_bytes, .. } = flow.arrived;
            series.delivered_bytes.push(delivered_bytes);
            series.arrived_bytes.push(delivered_bytes + buffered_bytes);
            series.delivery_rate_mbps.push(none(flow.sender.delivery_rate().as_mbps()));
            let unpaced = control.pacing_rate == Rate::UNLIMITED;
            let pacing = if unpaced { f64::NAN } else { control.pacing_rate.as_mbps() };
            series.pacing_mbps.push(pacing);
            series.lost_packets.push(flow.arrived.queue_drops + flow.arrived.random_losses);
        }
        let next = self.net.now() + self.sample_interval;
        self.net.schedule(next, Event::Sample);
    }
}

impl Hosts {
    /// Books the loss of a packet in this count; the loss of a copy is not a loss of what was sent.
    fn book_loss(&mut self, packet: &Packet, count: fn(&mut Arrived) -> &mut u64) {
        let is_data = u64::from(packet.kind != Kind::Ack);
        let index = packet.flow as usize;
        if packet.copy {
            self.plans[index].copies.get_or_insert_default().lost += is_data;
        } else {
            *count(&mut self.flows[index].arrived) += is_data;
        }
    }
}

impl Ends for Hosts {
    type Event = Event;

    #[inline]
    fn path(&self, packet: &Packet) -> Path {
        let flow = &self.flows[packet.flow as usize];
        if packet.kind == Kind::Ack { flow.reverse } else { flow.forward }
    }

    fn dropped(&mut self, packet: &Packet) {
        self.book_loss(packet, |arrived| &mut arrived.queue_drops);
        if let Some(truth) = &mut self.truth
            && packet.kind == Kind::Data
            && !packet.copy
        {
            truth.dropped(packet);
        }
        if let Some(log) = &mut self.drop_log
            && packet.kind == Kind::Data
            && !packet.copy
        {
            log.push((packet.flow, packet.transmission));
        }
    }

    #[inline(never)]
    fn waited(&mut self, packet: &Packet, wait: Span) {
        if let Some(truth) = &mut self.truth
            && packet.kind == Kind::Data
            && !packet.copy
        {
            truth.waited(packet, wait);
        }
    }

    fn seen(&mut self, at: Time, point: tap::Point, packet: &Packet) {
        for tap in &mut self.taps {
            tap.packet(at, point, packet);
        }
    }

    fn lost(&mut self, packet: &Packet) {
        self.book_loss(packet, |arrived| &mut arrived.random_losses);
    }

    fn copied(&mut self, copy: &mut Packet) {
        let copies = self.plans[copy.flow as usize].copies.get_or_insert_default();
        copies.made += u64::from(copy.kind != Kind::Ack);
    }

    #[inline]
    fn fetch_for_packets(&self, pipe: &Pipe) {
        self.fetch_ahead(pipe);
    }

    #[inline]
    fn fetch_for_event(&self, event: Event) {
        if let Event::Flow { index, .. } = event {
            fetch::for_timer(&self.flows[index as usize]);
        }
    }
}

#[cfg(test)]
mod tests;
