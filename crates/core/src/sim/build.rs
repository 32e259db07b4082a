//! From a network to a simulation at time 0.
use super::false_records::FalseRecords;
use super::multipath::{Multipath, Opening, unopened};
use super::network::Network;
use super::{Arrived, Builder, Connection, Datagrams, Event, Flow, FlowPlan, Hosts, Sim, fetch};
use crate::checked::Checked;
use crate::control::{Coupled, SubflowId};
use crate::coupled::{self, Scope};
use crate::rng::{Rng, Seed};
use crate::sim::plan::TrafficSpec;
use crate::sim::plan::{ConnectionPlan, NetworkPlan, RatePlan, Route};
use crate::sim::record::FlowSeries;
use crate::sim::traffic::App;
use crate::transport::config::{SendHook, SenderConfig};
use crate::transport::receiver::Receiver;
use crate::transport::send_hook::AckSendHook;
use crate::transport::sender::{Governor, Sender};
use crate::units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;

impl Sim {
    /// A simulation at time 0.
    ///
    /// # Errors
    ///
    /// Whatever `build` returns.
    pub fn new<E>(network: &NetworkPlan, seed: Seed, build: &mut Builder<E>) -> Result<Self, E> {
        let every = network.sample_interval;
        let flows = network.connections.iter().map(|plan| plan.subflows.len()).sum();
        let mut sim = Self {
            end: network.duration,
            net: Network::new(&network.links, seed, every),
            hosts: Hosts {
                flows: Vec::with_capacity(flows),
                plans: Vec::with_capacity(flows),
                connections: Vec::with_capacity(network.connections.len()),
                governors: Vec::with_capacity(network.connections.len()),
                drop_log: None,
                truth: None,
                taps: Vec::new(),
            },
            config: None,
            sample_interval: every,
            flow_series: FlowSeries::default(),
            asking: VecDeque::new(),
        };
        let mut hosts = HostGovernors::default();
        for (index, plan) in network.connections.iter().enumerate() {
            for arrival in arrivals(plan, index as u64, seed, network.duration) {
                let governor = hosts.governor(plan, &mut sim.hosts.governors, build, seed)?;
                sim.add_connection(&Start { network, plan, seed, arrival }, governor);
            }
        }
        let paths = sim.hosts.flows.iter().flat_map(|flow| [flow.forward, flow.reverse]);
        sim.net.pass_links(paths, network.duration);
        if sim.hosts.flows.len() > fetch::MANY {
            sim.net.fetch_ahead();
        }
        if every > Span::ZERO {
            sim.net.schedule(Time(0), Event::Sample);
        }
        Ok(sim)
    }

    fn add_connection(&mut self, start: &Start, governor: Governing) {
        let Start { plan, seed, arrival, .. } = start;
        let index = self.hosts.connections.len() as u32;
        let first_flow = self.hosts.flows.len() as u32;
        let config = shared(self.config.as_ref(), &plan.sender, || Arc::new(plan.sender));
        let subflows = 0..plan.subflows.len();
        let openings: Vec<Opening> =
            subflows.map(|subflow| self.add_flow(start, subflow, governor, &config)).collect();
        let data = plan.mptcp.as_ref().map(|mptcp| {
            let data = Multipath::new(mptcp, &config, arrival.at, openings);
            for subflow in 0..plan.subflows.len() {
                let change = data.next_change(subflow);
                if change < Time::NEVER {
                    self.net.schedule(change, Event::Subflow(first_flow + subflow as u32));
                }
            }
            Box::new(data)
        });
        self.config = Some(config);
        let app = self.app(plan, arrival.at, seed.stream("traffic", arrival.stream));
        let before = self.hosts.connections.last().map(|before| &before.controller);
        let name = shared(before, &*plan.controller, || plan.controller.as_str().into());
        self.net.schedule(arrival.at, Event::App(index));
        self.hosts.connections.push(Connection {
            app,
            first_flow,
            flow_count: plan.subflows.len() as u32,
            controller: name,
            data,
        });
    }

    /// The subflow of this index of a connection; returns what it opens with.
    fn add_flow(
        &mut self,
        start: &Start,
        index: usize,
        governing: Governing,
        config: &Arc<SenderConfig>,
    ) -> Opening {
        let Start { network, plan, seed, arrival, .. } = start;
        let route = &plan.subflows[index];
        let id = SubflowId(governing.first_id + index as u32);
        let own_seed = seed.derive("controller", (arrival.stream << 8) | index as u64);
        let shake = || handshake(network, route, plan.sender.ack);
        let opens = start.opens(index);
        let opening = Opening {
            info: Sender::flow_info(&plan.sender, opens, own_seed),
            handshake: plan.sender.handshake.then(shake),
            joining: start.joining(index, &shake),
            connection: self.hosts.connections.len() as u32,
        };
        let coupled = self.hosts.governors[governing.index as usize].as_mut();
        let is_open = opens == arrival.at;
        let sender = if is_open {
            opening.join(&mut Governor { coupled, id }, config)
        } else {
            unopened(config)
        };
        let has_agent = is_open && coupled.agent_state(id).is_some();
        self.hosts.plans.push(start.flow_plan(index));
        self.hosts.flows.push(Flow {
            latest_rtt: sender.latest_rtt(),
            sender,
            receiver: receiver(network, plan, route),
            arrived: Arrived::default(),
            forward: self.net.add_path(&route.forward),
            reverse: self.net.add_path(&route.reverse),
            wake: Time::NEVER,
            sender_due: Time::NEVER,
            packet_bytes: plan.sender.packet.0,
            connection: opening.connection,
            governor: governing.index,
            id,
            transmissions: 0,
            has_agent,
            multipath: plan.mptcp.is_some(),
        });
        opening
    }

    fn app(&self, plan: &ConnectionPlan, start: Time, rng: Rng) -> App {
        let before = self.hosts.connections.last().map(|before| before.app.traffic());
        let traffic = shared(before, &plan.traffic, || Arc::new(plan.traffic.clone()));
        App::new(traffic, start, plan.stop, rng)
    }
}

/// What governs a connection.
#[derive(Clone, Copy)]
struct Governing {
    /// Among [`Hosts::governors`].
    index: u32,
    /// What it calls the connection's first subflow; the others follow.
    first_id: u32,
}

/// The governors that connections share, and whose they are.
#[derive(Default)]
struct HostGovernors<'a>(Vec<(&'a ConnectionPlan, Governing)>);

impl<'a> HostGovernors<'a> {
    /// What governs a connection: one of its own, or, for a controller of all connections of a host, the
    /// one of the earlier connections with equal settings.
    fn governor<E>(
        &mut self,
        plan: &'a ConnectionPlan,
        governors: &mut Vec<Box<dyn Coupled>>,
        build: &mut Builder<E>,
        seed: Seed,
    ) -> Result<Governing, E> {
        let entry = coupled::find(&plan.controller);
        let of_host = entry.is_some_and(|entry| entry.scope == Scope::Host);
        let same = |(first, _): &&mut (&ConnectionPlan, _)| {
            (&first.controller, &first.params, first.sender.send_hook)
                == (&plan.controller, &plan.params, plan.sender.send_hook)
        };
        if of_host && let Some((_, shared)) = self.0.iter_mut().find(same) {
            let governing = *shared;
            shared.first_id += plan.subflows.len() as u32;
            return Ok(governing);
        }
        let mut governor = build(plan)?;
        if plan.sender.fuzz_records > 0.0 {
            let rng = seed.stream("false_records", governors.len() as u64);
            let checked = Box::new(Checked::new(governor));
            governor = Box::new(FalseRecords::new(checked, plan.sender.fuzz_records, rng));
        }
        if plan.sender.send_hook == SendHook::Ack {
            governor = Box::new(AckSendHook::new(governor));
        }
        let index = governors.len() as u32;
        governors.push(governor);
        if of_host {
            self.0.push((plan, Governing { index, first_id: plan.subflows.len() as u32 }));
        }
        Ok(Governing { index, first_id: 0 })
    }
}

/// A value as the connection before has it, if it is the same; else one of its own.
fn shared<T: ?Sized + PartialEq>(
    before: Option<&Arc<T>>,
    value: &T,
    make: impl FnOnce() -> Arc<T>,
) -> Arc<T> {
    before.filter(|before| ***before == *value).map_or_else(make, Arc::clone)
}

/// A connection begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// Number of its random streams, its own in the network.
    pub stream: u64,
    /// Unique.
    pub name: String,
}

/// When the connections of the plan at `index` begin: one, or all of a Poisson source until `end`.
pub fn arrivals(
    plan: &ConnectionPlan,
    index: u64,
    seed: Seed,
    end: Time,
) -> impl Iterator<Item = Arrival> {
    let mut rng = seed.stream("start", index);
    let is_poisson = matches!(plan.traffic, TrafficSpec::Poisson { .. });
    let mut at = plan.start;
    if is_poisson || plan.start_spread > Span::ZERO {
        at += Span::from_secs_f64(rng.uniform() * plan.start_spread.as_secs_f64());
    }
    let end = plan.stop.min(end);
    (0..).map_while(move |number| {
        let TrafficSpec::Poisson { per_s, .. } = plan.traffic else {
            return (number == 0).then(|| Arrival { at, stream: index, name: plan.name.clone() });
        };
        at += Span::from_secs_f64(rng.exponential(1.0 / per_s));
        let stream = (index << 32) | (1 + number);
        (at < end).then(|| Arrival { at, stream, name: format!("{}_{number}", plan.name) })
    })
}

/// Time for an empty packet of `size` and its answer over idle links; where a rate varies, their
/// transmission takes none.
fn handshake(network: &NetworkPlan, route: &Route, size: Bytes) -> Span {
    let time_on = |&link: &u32| {
        let plan = &network.links[link as usize];
        let transmission = match plan.rate {
            RatePlan::Constant(rate) => rate.time_for(size),
            _ => Span::ZERO,
        };
        plan.delay.minimum() + transmission
    };
    route.forward.iter().chain(&route.reverse).map(time_on).sum()
}

/// A connection that begins.
struct Start<'a> {
    network: &'a NetworkPlan,
    plan: &'a ConnectionPlan,
    seed: Seed,
    arrival: Arrival,
}

impl Start<'_> {
    /// How long after its handshake a subflow may send, which takes a round trip `shake`. The first of a
    /// connection at once. Another waits for a confirmation; it begins its handshake, if it is there
    /// from the start, when the first has had data acknowledged.
    fn joining(&self, index: usize, shake: &dyn Fn() -> Span) -> Span {
        let opening = (0..self.plan.subflows.len()).min_by_key(|&other| self.opens(other));
        let Some(first) = opening.filter(|&first| first != index) else { return Span::ZERO };
        let from_the_start = self.opens(index) == self.opens(first);
        let route = &self.plan.subflows[first];
        let established = || handshake(self.network, route, self.plan.sender.ack) * 2;
        shake() + if from_the_start { established() } else { Span::ZERO }
    }

    /// When the subflow of this index opens; `Time::NEVER` for not at all.
    fn opens(&self, index: usize) -> Time {
        let start = self.arrival.at;
        self.plan.mptcp.as_ref().map_or(start, |mptcp| mptcp.times(index, start).0)
    }

    /// What is known of the subflow of this index beforehand.
    fn flow_plan(&self, index: usize) -> FlowPlan {
        let Self { network, plan, arrival, .. } = self;
        let route = &plan.subflows[index];
        let own = &arrival.name;
        let many = plan.subflows.len() > 1;
        let hops = route.forward.iter().chain(&route.reverse);
        let datagrams = match plan.traffic {
            TrafficSpec::Cbr { rate_mbps, packet_bytes } => {
                let every = Rate::from_mbps(rate_mbps).time_for(Bytes(u64::from(packet_bytes)));
                Some(Box::new(Datagrams {
                    every_ns: NonZero::new(every.0).unwrap_or(NonZero::<u64>::MIN),
                    size: packet_bytes,
                    ect: plan.sender.ecn.ect(),
                    sent: 0,
                    sent_bytes: 0,
                }))
            }
            _ => None,
        };
        FlowPlan {
            name: if many { format!("{own}.{index}") } else { own.clone() }.into(),
            start: if self.opens(index) < Time::NEVER { self.opens(index) } else { arrival.at },
            header_bytes: plan.sender.header.0,
            datagrams,
            base_rtt: hops.map(|&link| network.links[link as usize].delay.minimum()).sum(),
            copies: None,
        }
    }
}

fn receiver(network: &NetworkPlan, plan: &ConnectionPlan, route: &Route) -> Receiver {
    let config = &plan.sender;
    let selective = config.recovery == crate::control::Recovery::Sack;
    let receiver =
        Receiver::new(config.ack_every, config.ack_delay, config.ack.0 as u32, selective);
    let receiver = if config.handshake { receiver.acknowledge_first() } else { receiver };
    // The receiver's time-out is what the handshake has left it (RFC 6298 equation 2.2).
    let rtt = handshake(network, route, config.ack);
    let idle = rtt + (rtt * 2).max(config.rto_min);
    if selective {
        receiver
            .quick(config.quick_acks, idle)
            .opening(config.opening_acks)
            .misbehaving(config.misbehaviour)
    } else {
        receiver
    }
}
