//! The emulated network, without I/O and without a clock: the simulator's links and event loop
//! ([`Network`]), with the bytes of real packets, and who gets them when.
//!
//! Everything happens at the time it is due, however late [`Fabric::advance`] is called: packets
//! that enter at the same times meet the same fate as in the simulator.
use super::packet::{self, CE};
use crate::error::Error;
use ackademy::rng::Seed;
use ackademy::sim::link::LinkStats;
use ackademy::sim::network::{Ends, Network, Next, Path};
use ackademy::sim::pipe::Pipe;
use ackademy::sim::plan::LinkPlan;
use ackademy::sim::plan::Route;
use ackademy::sim::record::{LinkRow, LinkSeries};
use ackademy::transport::packet::Packet;
use ackademy::units::{Bytes, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of packets inside the network; what comes on top is refused and counted. A scenario
/// may have queues without a limit, a machine has not.
pub const BYTES_MAX: Bytes = Bytes(512 << 20);

/// Two hosts that speak to each other, and the links between them.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Port and address of the sender of data, then of the receiver.
    pub hosts: [(usize, IpAddr); 2],
    /// Links from the first to the second, and back.
    pub route: Route,
}

/// What became of the data packets of a flow: TCP segments with payload and UDP datagrams, from its
/// first host to its second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Packets that entered the network.
    pub sent_packets: u64,
    /// Their bytes, IP header included.
    pub sent_bytes: u64,
    /// Dropped by queues.
    pub queue_drops: u64,
    /// Lost on the wire.
    pub random_losses: u64,
    /// Copies that links made.
    pub copies: u64,
    /// Of these, dropped or lost; the two counts above do not contain them.
    pub copies_lost: u64,
    /// Packets that arrived, copies included.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Sum of the times between entering and arriving, in nanoseconds, as the links decided them:
    /// the emulator's lateness comes on top.
    pub owd_sum: u128,
}

/// Data packets of a flow that were dropped or lost so far, for who watches a network that runs in
/// another thread.
#[derive(Clone, Debug, Default)]
pub struct Losses(Arc<AtomicU64>);

impl Losses {
    /// How many.
    pub fn packets(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A packet that is due at a port.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// When it should leave.
    pub due: Time,
    /// Where.
    pub port: usize,
    /// The whole IP packet.
    pub bytes: &'a [u8],
}

/// What a run leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// One row per link.
    pub links: Vec<LinkRow>,
    /// Samples of links.
    pub link_series: LinkSeries,
    /// One per flow, in the order they were added.
    pub flows: Vec<FlowCounts>,
    /// Packets that no flow's addresses fit.
    pub strays: u64,
    /// Packets refused because the network held [`BYTES_MAX`].
    pub refused: u64,
}

/// One direction of a flow.
#[derive(Debug)]
struct Way {
    flow: u32,
    /// Whether data packets on it are counted.
    forward: bool,
    path: Path,
    port: usize,
}

/// The bytes of a packet; `seq` of the packet that links see is its slot.
#[derive(Debug)]
struct Slot {
    bytes: Vec<u8>,
    way: u32,
    counted: bool,
}

/// What is at the ends of the links: the flows, and the bytes of all packets inside.
struct Hosts {
    ways: Vec<Way>,
    flows: Vec<FlowCounts>,
    losses: Vec<Losses>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    inside: Bytes,
}

/// Links, and the packets on them.
pub struct Fabric {
    net: Network<Infallible>,
    hosts: Hosts,
    by_addresses: BTreeMap<(IpAddr, IpAddr), u32>,
    by_port: BTreeMap<usize, u32>,
    /// Packets to be delivered, in order of time.
    ready: VecDeque<(Time, u32)>,
    strays: u64,
    refused: u64,
}

impl Fabric {
    /// The links of a scenario at time 0, with the random streams that they have in a simulation of
    /// this seed; a sample of each queue every `sample_interval`, none for zero.
    pub fn new(plans: &[LinkPlan], seed: Seed, sample_interval: Span) -> Self {
        Self {
            net: Network::new(plans, seed, sample_interval),
            hosts: Hosts {
                ways: Vec::new(),
                flows: Vec::new(),
                losses: Vec::new(),
                slots: Vec::new(),
                free: Vec::new(),
                inside: Bytes::ZERO,
            },
            by_addresses: BTreeMap::new(),
            by_port: BTreeMap::new(),
            ready: VecDeque::new(),
            strays: 0,
            refused: 0,
        }
    }

    /// Carries packets between the addresses of two hosts. Returns the flow's index, which is also
    /// what FQ-CoDel hashes, as in the simulator.
    ///
    /// # Errors
    ///
    /// If another flow has the same pair of addresses.
    pub fn add_flow(&mut self, flow: &Flow) -> Result<usize, Error> {
        let [(near_port, near), (far_port, far)] = flow.hosts;
        if near == far || self.by_addresses.contains_key(&(near, far)) {
            return Err(Error::Input(format!(
                "a flow from {near} to {far}: allowed are two addresses that no other flow has"
            )));
        }
        let [forward, back] = self.add_ways(&flow.route, [near_port, far_port]);
        self.by_addresses.insert((near, far), forward);
        self.by_addresses.insert((far, near), back);
        Ok(self.hosts.flows.len() - 1)
    }

    /// Carries what no flow's addresses fit from port 0 to port 1 and back; FQ-CoDel hashes
    /// protocol, addresses and ports. Returns the index of its counts.
    pub fn add_default(&mut self, route: &Route) -> usize {
        let [forward, back] = self.add_ways(route, [0, 1]);
        self.by_port = BTreeMap::from([(0, forward), (1, back)]);
        self.hosts.flows.len() - 1
    }

    fn add_ways(&mut self, route: &Route, [near, far]: [usize; 2]) -> [u32; 2] {
        let hosts = &mut self.hosts;
        let flow = hosts.flows.len() as u32;
        hosts.flows.push(FlowCounts::default());
        hosts.losses.push(Losses::default());
        let first = hosts.ways.len() as u32;
        let path = self.net.add_path(&route.forward);
        hosts.ways.push(Way { flow, forward: true, path, port: far });
        let path = self.net.add_path(&route.reverse);
        hosts.ways.push(Way { flow, forward: false, path, port: near });
        [first, first + 1]
    }

    /// A packet enters at a port. Times must not go back.
    pub fn inject(&mut self, now: Time, port: usize, bytes: &[u8]) {
        self.advance(now);
        let header = packet::parse(bytes);
        let known = header.and_then(|header| {
            let way = self.by_addresses.get(&(header.source, header.destination));
            match way {
                Some(&way) => Some((header, way, self.hosts.ways[way as usize].flow)),
                None if header.destination.is_multicast() => None,
                None => self.by_port.get(&port).map(|&way| (header, way, header.flow_hash)),
            }
        });
        let Some((header, way, queue)) = known else {
            self.strays += 1;
            return;
        };
        if self.hosts.inside + Bytes(bytes.len() as u64) > BYTES_MAX {
            self.refused += 1;
            return;
        }
        let mut packet = Packet {
            flow: queue,
            size: bytes.len() as u32,
            ect: packet::ect(header.ecn),
            ce: header.ecn == CE,
            sent_at: self.net.now(),
            ..Packet::default()
        };
        packet.seq = u64::from(self.hosts.enter(bytes, way, header.is_data));
        self.net.forward(&mut packet, self.net.now(), &mut self.hosts);
    }

    /// When [`Self::advance`] has something to do, or [`Self::pop_due`] a packet.
    pub fn next_due(&mut self) -> Option<Time> {
        let ready = self.ready.front().map(|&(due, _)| due);
        ready.or_else(|| self.net.next_due())
    }

    /// The next packet to leave by `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<Delivery<'_>> {
        self.advance(now);
        let (due, index) = self.ready.pop_front()?;
        self.hosts.release(index);
        let slot = &self.hosts.slots[index as usize];
        let port = self.hosts.ways[slot.way as usize].port;
        Some(Delivery { due, port, bytes: &slot.bytes })
    }

    /// Moves packets from link to link up to and including `now`.
    pub fn advance(&mut self, now: Time) {
        let mut packet = Packet::default();
        while let Some(next) = self.net.next(now, &mut packet, &mut self.hosts) {
            match next {
                Next::Packet => {
                    self.hosts.arrive(self.net.now(), &packet);
                    self.ready.push_back((self.net.now(), packet.seq as u32));
                }
                Next::Event(never) => match never {},
            }
        }
    }

    /// A link's counters, and the packets and bytes in its queue.
    pub fn link(&mut self, index: usize) -> (LinkStats, (u64, u64)) {
        let now = self.net.now();
        let link = self.net.link(index);
        (link.stats, link.backlog(now))
    }

    /// Bytes of packets inside the network.
    pub fn inside(&self) -> Bytes {
        self.hosts.inside
    }

    /// What each flow has lost, in the order they were added: it counts on while the network runs.
    pub fn losses(&self) -> Vec<Losses> {
        self.hosts.losses.clone()
    }

    /// Ends the run at `end` and hands over what was counted.
    pub fn finish(mut self, end: Time) -> Totals {
        self.advance(end);
        let (links, link_series) = self.net.finish(end);
        let (flows, strays, refused) = (self.hosts.flows, self.strays, self.refused);
        Totals { links, link_series, flows, strays, refused }
    }
}

impl Hosts {
    /// Keeps the bytes of a packet that enters on this way; returns their slot.
    fn enter(&mut self, bytes: &[u8], way: u32, is_data: bool) -> u32 {
        let &Way { flow, forward, .. } = &self.ways[way as usize];
        let counted = forward && is_data;
        if counted {
            let counts = &mut self.flows[flow as usize];
            counts.sent_packets += 1;
            counts.sent_bytes += bytes.len() as u64;
        }
        self.store(bytes, way, counted)
    }

    /// A packet has passed its last link.
    fn arrive(&mut self, at: Time, packet: &Packet) {
        let slot = &mut self.slots[packet.seq as usize];
        packet::set_ecn(&mut slot.bytes, packet::ecn_bits(packet.ect, packet.ce));
        let (owd, bytes) = (at.since(packet.sent_at), slot.bytes.len() as u64);
        self.count(packet, |counts| {
            counts.received_packets += 1;
            counts.received_bytes += bytes;
            counts.owd_sum += u128::from(owd.0);
        });
    }

    /// Ends a packet that will not arrive.
    fn lose(&mut self, packet: &Packet, add: impl FnOnce(&mut FlowCounts)) {
        let index = packet.seq as u32;
        if packet.copy {
            self.count(packet, |counts| counts.copies_lost += 1);
        } else {
            let slot = &self.slots[index as usize];
            if slot.counted {
                let flow = self.ways[slot.way as usize].flow;
                self.losses[flow as usize].0.fetch_add(1, Ordering::Relaxed);
            }
            self.count(packet, add);
        }
        self.release(index);
    }

    fn count(&mut self, packet: &Packet, add: impl FnOnce(&mut FlowCounts)) {
        let slot = &self.slots[packet.seq as usize];
        if slot.counted {
            add(&mut self.flows[self.ways[slot.way as usize].flow as usize]);
        }
    }

    fn store(&mut self, bytes: &[u8], way: u32, counted: bool) -> u32 {
        self.inside += Bytes(bytes.len() as u64);
        let index = self.free.pop().unwrap_or(self.slots.len() as u32);
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.bytes.clear();
            slot.bytes.extend_from_slice(bytes);
            (slot.way, slot.counted) = (way, counted);
        } else {
            self.slots.push(Slot { bytes: bytes.to_vec(), way, counted });
        }
        index
    }

    fn release(&mut self, index: u32) {
        self.inside -= Bytes(self.slots[index as usize].bytes.len() as u64);
        self.free.push(index);
    }
}

impl Ends for Hosts {
    type Event = Infallible;

    fn path(&self, packet: &Packet) -> Path {
        self.ways[self.slots[packet.seq as usize].way as usize].path
    }

    fn dropped(&mut self, packet: &Packet) {
        self.lose(packet, |counts| counts.queue_drops += 1);
    }

    fn lost(&mut self, packet: &Packet) {
        self.lose(packet, |counts| counts.random_losses += 1);
    }

    fn copied(&mut self, copy: &mut Packet) {
        self.count(copy, |counts| counts.copies += 1);
        let slot = &mut self.slots[copy.seq as usize];
        let (way, counted) = (slot.way, slot.counted);
        let bytes = std::mem::take(&mut slot.bytes);
        let index = self.store(&bytes, way, counted);
        self.slots[copy.seq as usize].bytes = bytes;
        copy.seq = u64::from(index);
    }

    fn fetch_for_packets(&self, _: &Pipe) {}

    fn fetch_for_event(&self, event: Infallible) {
        match event {}
    }
}
