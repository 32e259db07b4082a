//! The emulated network, without I/O and without a clock: the simulator's links, the packets on and
//! between them, and who gets them when.
//!
//! Everything happens at the time it is due, however late [`Fabric::advance`] is called: packets
//! that enter at the same times meet the same fate as in the simulator.
use super::packet::{self, CE, NOT_ECT};
use crate::error::Error;
use ackademy::rng::Seed;
use ackademy::sim::link::{Link, LinkStats, Offer};
use ackademy::sim::plan::LinkPlan;
use ackademy::sim::plan::Route;
use ackademy::sim::record::{LinkRow, LinkSeries};
use ackademy::transport::packet::Packet;
use ackademy::units::{Bytes, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
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
    links: Vec<u32>,
    port: usize,
}

/// A packet and where it is on its way; `packet.seq` is its slot.
#[derive(Debug)]
struct Slot {
    bytes: Vec<u8>,
    packet: Packet,
    way: u32,
    counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The packet in this slot reaches the end of a link.
    Arrive(u32),
    /// This link's transmitter is free.
    Free(u32),
}

/// Links, and the packets on them.
pub struct Fabric {
    now: Time,
    links: Vec<Link>,
    names: Vec<String>,
    sample_interval: Span,
    ways: Vec<Way>,
    by_addresses: BTreeMap<(IpAddr, IpAddr), u32>,
    by_port: BTreeMap<usize, u32>,
    flows: Vec<FlowCounts>,
    losses: Vec<Losses>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Time, then order of scheduling, as in the simulator.
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    order: u64,
    /// Packets to be delivered, in order of time.
    ready: VecDeque<(Time, u32)>,
    dropped: Vec<Packet>,
    inside: Bytes,
    strays: u64,
    refused: u64,
}

impl Fabric {
    /// The links of a scenario at time 0, with the random streams that they have in a simulation of
    /// this seed; a sample of each queue every `sample_interval`, none for zero.
    pub fn new(plans: &[LinkPlan], seed: Seed, sample_interval: Span) -> Self {
        let link = |(index, plan)| Link::new(plan, index as u64, seed, sample_interval);
        Self {
            now: Time(0),
            links: plans.iter().enumerate().map(link).collect(),
            names: plans.iter().map(|plan| plan.name.clone()).collect(),
            sample_interval,
            ways: Vec::new(),
            by_addresses: BTreeMap::new(),
            by_port: BTreeMap::new(),
            flows: Vec::new(),
            losses: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            events: BinaryHeap::new(),
            order: 0,
            ready: VecDeque::new(),
            dropped: Vec::new(),
            inside: Bytes::ZERO,
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
        Ok(self.flows.len() - 1)
    }

    /// Carries what no flow's addresses fit from port 0 to port 1 and back; FQ-CoDel hashes
    /// protocol, addresses and ports. Returns the index of its counts.
    pub fn add_default(&mut self, route: &Route) -> usize {
        let [forward, back] = self.add_ways(route, [0, 1]);
        self.by_port = BTreeMap::from([(0, forward), (1, back)]);
        self.flows.len() - 1
    }

    fn add_ways(&mut self, route: &Route, [near, far]: [usize; 2]) -> [u32; 2] {
        let flow = self.flows.len() as u32;
        self.flows.push(FlowCounts::default());
        self.losses.push(Losses::default());
        let first = self.ways.len() as u32;
        self.ways.push(Way { flow, forward: true, links: route.forward.clone(), port: far });
        self.ways.push(Way { flow, forward: false, links: route.reverse.clone(), port: near });
        [first, first + 1]
    }

    /// A packet enters at a port. Times must not go back.
    pub fn inject(&mut self, now: Time, port: usize, bytes: &[u8]) {
        self.advance(now);
        let header = packet::parse(bytes);
        let known = header.and_then(|header| {
            let way = self.by_addresses.get(&(header.source, header.destination));
            match way {
                Some(&way) => Some((header, way, self.ways[way as usize].flow)),
                None if header.destination.is_multicast() => None,
                None => self.by_port.get(&port).map(|&way| (header, way, header.flow_hash)),
            }
        });
        let Some((header, way, queue)) = known else {
            self.strays += 1;
            return;
        };
        if self.inside + Bytes(bytes.len() as u64) > BYTES_MAX {
            self.refused += 1;
            return;
        }
        let packet = Packet {
            flow: queue,
            size: bytes.len() as u32,
            ect: header.ecn != NOT_ECT,
            ce: header.ecn == CE,
            sent_at: self.now,
            ..Packet::default()
        };
        let &Way { flow, forward, .. } = &self.ways[way as usize];
        let counted = forward && header.is_data;
        if counted {
            let counts = &mut self.flows[flow as usize];
            counts.sent_packets += 1;
            counts.sent_bytes += bytes.len() as u64;
        }
        let slot = self.store(bytes, packet, way, counted);
        self.forward(self.now, slot);
    }

    /// When [`Self::advance`] has something to do, or [`Self::pop_due`] a packet.
    pub fn next_due(&self) -> Option<Time> {
        let ready = self.ready.front().map(|&(due, _)| due);
        let event = self.events.peek().map(|&Reverse((at, ..))| at);
        ready.or(event).filter(|&due| due < Time::NEVER)
    }

    /// The next packet to leave by `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<Delivery<'_>> {
        self.advance(now);
        let (due, index) = self.ready.pop_front()?;
        self.release(index);
        let slot = &mut self.slots[index as usize];
        if slot.packet.ce {
            packet::mark(&mut slot.bytes);
        }
        Some(Delivery { due, port: self.ways[slot.way as usize].port, bytes: &slot.bytes })
    }

    /// Moves packets from link to link up to and including `now`.
    pub fn advance(&mut self, now: Time) {
        while let Some(&Reverse((at, _, event))) = self.events.peek()
            && at <= now
        {
            self.events.pop();
            match event {
                Event::Arrive(slot) => self.forward(at, slot),
                Event::Free(link) => self.transmit(at, link),
            }
        }
        self.now = self.now.max(now);
    }

    /// A link's counters, and the packets and bytes in its queue.
    pub fn link(&mut self, index: usize) -> (LinkStats, (u64, u64)) {
        let link = &mut self.links[index];
        (link.stats, link.backlog(self.now))
    }

    /// Bytes of packets inside the network.
    pub fn inside(&self) -> Bytes {
        self.inside
    }

    /// What each flow has lost, in the order they were added: it counts on while the network runs.
    pub fn losses(&self) -> Vec<Losses> {
        self.losses.clone()
    }

    /// Ends the run at `end` and hands over what was counted.
    pub fn finish(mut self, end: Time) -> Totals {
        self.advance(end);
        let mut totals = Totals {
            flows: self.flows,
            strays: self.strays,
            refused: self.refused,
            ..Totals::default()
        };
        for (index, (link, name)) in self.links.iter_mut().zip(self.names).enumerate() {
            totals.links.push(link.finish(name, end));
            totals.link_series.append(index as u32, self.sample_interval, &link.samples);
        }
        totals
    }

    /// Offers a packet to the next link on its way, or has it delivered.
    fn forward(&mut self, at: Time, index: u32) {
        let slot = &mut self.slots[index as usize];
        let way = &self.ways[slot.way as usize];
        let Some(&link) = way.links.get(usize::from(slot.packet.hop)) else {
            if slot.counted {
                let counts = &mut self.flows[way.flow as usize];
                counts.received_packets += 1;
                counts.received_bytes += slot.bytes.len() as u64;
                counts.owd_sum += u128::from(at.since(slot.packet.sent_at).0);
            }
            self.ready.push_back((at, index));
            return;
        };
        let offer = self.links[link as usize].offer(at, &mut slot.packet, &mut self.dropped);
        if let Offer::Held { idle } = offer {
            self.release_dropped();
            if idle {
                self.transmit(at, link);
            }
        } else {
            self.settle(offer, index);
        }
    }

    /// A scheduler's link starts its next transmission.
    fn transmit(&mut self, now: Time, link: u32) {
        let next = self.links[link as usize].transmit(now, &mut self.dropped);
        self.release_dropped();
        let Some((offer, packet, free_at)) = next else { return };
        if free_at < Time::NEVER {
            self.schedule(free_at, Event::Free(link));
        }
        let index = packet.seq as u32;
        self.slots[index as usize].packet = packet;
        self.settle(offer, index);
    }

    /// What a link decided.
    fn settle(&mut self, offer: Offer, index: u32) {
        match offer {
            Offer::Held { .. } => {}
            Offer::Dropped => self.lose(index, |counts| counts.queue_drops += 1),
            Offer::Lost => self.lose(index, |counts| counts.random_losses += 1),
            Offer::Arrives { at, twice, .. } => {
                self.slots[index as usize].packet.hop += 1;
                self.schedule(at, Event::Arrive(index));
                if twice {
                    self.count(index, |counts| counts.copies += 1);
                    let copy = self.copy(index);
                    self.schedule(at, Event::Arrive(copy));
                }
            }
        }
    }

    /// Ends a packet that will not arrive.
    fn lose(&mut self, index: u32, add: impl FnOnce(&mut FlowCounts)) {
        let slot = &self.slots[index as usize];
        if slot.packet.copy {
            self.count(index, |counts| counts.copies_lost += 1);
        } else {
            if slot.counted {
                let flow = self.ways[slot.way as usize].flow;
                self.losses[flow as usize].0.fetch_add(1, Ordering::Relaxed);
            }
            self.count(index, add);
        }
        self.release(index);
    }

    fn count(&mut self, index: u32, add: impl FnOnce(&mut FlowCounts)) {
        let slot = &self.slots[index as usize];
        if slot.counted {
            add(&mut self.flows[self.ways[slot.way as usize].flow as usize]);
        }
    }

    fn release_dropped(&mut self) {
        while let Some(packet) = self.dropped.pop() {
            self.settle(Offer::Dropped, packet.seq as u32);
        }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn store(&mut self, bytes: &[u8], packet: Packet, way: u32, counted: bool) -> u32 {
        self.inside += Bytes(bytes.len() as u64);
        let index = self.free.pop().unwrap_or(self.slots.len() as u32);
        let packet = Packet { seq: u64::from(index), ..packet };
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.bytes.clear();
            slot.bytes.extend_from_slice(bytes);
            (slot.packet, slot.way, slot.counted) = (packet, way, counted);
        } else {
            self.slots.push(Slot { bytes: bytes.to_vec(), packet, way, counted });
        }
        index
    }

    fn copy(&mut self, index: u32) -> u32 {
        let slot = &mut self.slots[index as usize];
        let (packet, way, counted) = (Packet { copy: true, ..slot.packet }, slot.way, slot.counted);
        let bytes = std::mem::take(&mut slot.bytes);
        let copy = self.store(&bytes, packet, way, counted);
        self.slots[index as usize].bytes = bytes;
        copy
    }

    fn release(&mut self, index: u32) {
        self.inside -= Bytes(self.slots[index as usize].bytes.len() as u64);
        self.free.push(index);
    }
}
