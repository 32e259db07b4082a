//! FQ-CoDel (RFC 8290): a queue per hash of the flow, served in turn by bytes, new flows first, each
//! kept short by CoDel.
use std::collections::VecDeque;

use super::Scheduler;
use super::codel::{self, Fifo, State};
use super::drop_tail::DropTail;
use crate::rng::Rng;
use crate::transport::packet::Packet;
use crate::units::Time;

/// Settings of [`FqCodel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Queues that flows are hashed to, above zero (RFC 8290 section 5.2).
    pub queues: u32,
    /// Bytes that a queue may send in its turn (RFC 8290 section 5.2).
    pub quantum_bytes: u32,
    /// Changes which flows share a queue (RFC 8290 section 4.1).
    pub perturbation: u64,
    /// CoDel's settings in each queue; its `limit` bounds all of them together.
    pub codel: codel::Config,
}

/// Isolates flows from each other and keeps each of their queues short.
#[derive(Clone, Debug)]
pub struct FqCodel {
    config: Config,
    queues: Vec<Queue>,
    /// Indices of queues that became busy lately, and of those that stayed so; no queue is in both.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u64,
    bytes: u64,
    /// When the packet came that was sent last.
    came: Time,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    fifo: Fifo,
    codel: State,
    /// Bytes it may still send in this turn.
    credit: i64,
    /// In `new` or in `old`.
    listed: bool,
}

impl FqCodel {
    /// Starts with empty queues.
    pub fn new(config: Config) -> Self {
        debug_assert!(config.queues > 0 && config.quantum_bytes > 0, "{config:?}");
        Self {
            config,
            queues: vec![Queue::default(); config.queues as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            came: Time(0),
        }
    }

    /// The queue of a flow: its number, perturbed and mixed by `SplitMix64`'s finalizer.
    fn queue_of(&self, flow: u32) -> u32 {
        let mut hash =
            u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.config.perturbation;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        ((u128::from(hash) * u128::from(self.config.queues)) >> 64) as u32
    }

    fn overfull(&self) -> bool {
        let limit = &self.config.codel.limit;
        self.packets > limit.packets || self.bytes > limit.bytes
    }

    /// Drops half of the longest queue, at most 64 packets, from its head: finding it is dear, so
    /// it is made worth while (RFC 8290 section 4.1).
    fn shorten_longest(&mut self, dropped: &mut Vec<Packet>) {
        let longest = self.queues.iter_mut().max_by_key(|queue| queue.fifo.bytes());
        let Some(queue) = longest else { return };
        let enough = queue.fifo.bytes() / 2;
        for _ in 0..BATCH {
            let Some((_, packet)) = queue.fifo.pop() else { return };
            self.packets -= 1;
            self.bytes -= u64::from(packet.size);
            dropped.push(packet);
            if queue.fifo.bytes() <= enough {
                return;
            }
        }
    }
}

impl Default for Config {
    /// The values of RFC 8290 section 5.2.
    fn default() -> Self {
        Self {
            queues: 1024,
            quantum_bytes: 1514,
            perturbation: 0,
            codel: codel::Config {
                limit: DropTail { packets: 10_240, bytes: 32 << 20 },
                ecn: true,
                ..codel::Config::default()
            },
        }
    }
}

impl Scheduler for FqCodel {
    fn enqueue(&mut self, now: Time, packet: Packet, _rng: &mut Rng, dropped: &mut Vec<Packet>) {
        let index = self.queue_of(packet.flow);
        let queue = &mut self.queues[index as usize];
        queue.fifo.push(now, packet);
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        if !queue.listed {
            queue.listed = true;
            queue.credit = i64::from(self.config.quantum_bytes);
            self.new.push_back(index);
        }
        while self.overfull() {
            self.shorten_longest(dropped);
        }
    }

    /// RFC 8290 section 4.2.
    fn dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = &mut self.queues[index as usize];
            if queue.credit <= 0 {
                queue.credit += i64::from(self.config.quantum_bytes);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (queue.fifo.packets(), queue.fifo.bytes());
            let next = queue.codel.dequeue(now, &self.config.codel, &mut queue.fifo, dropped);
            self.packets -= packets - queue.fifo.packets();
            self.bytes -= bytes - queue.fifo.bytes();
            if let Some(packet) = next {
                queue.credit -= i64::from(packet.size);
                self.came = queue.fifo.came();
                return Some(packet);
            }
            list.pop_front();
            if from_new {
                // Else a flow that sends now and then would always be new and starve the others.
                self.old.push_back(index);
            } else {
                queue.listed = false;
            }
        }
    }

    fn came(&self) -> Time {
        self.came
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn show(&self, each: &mut dyn FnMut(&Packet)) {
        self.queues.iter().for_each(|queue| queue.fifo.show(each));
    }
}

/// Most packets dropped at once when the queues overflow.
const BATCH: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(flow: u32, seq: u64) -> Packet {
        Packet { flow, seq, size: 1500, ..Packet::default() }
    }

    fn with_limit(packets: u64) -> FqCodel {
        let mut config = Config::default();
        config.codel.limit.packets = packets;
        FqCodel::new(config)
    }

    fn fill(queue: &mut FqCodel, flow: u32, count: u64) -> Vec<Packet> {
        let mut dropped = Vec::new();
        for seq in 0..count {
            queue.enqueue(Time(0), packet(flow, seq), &mut Rng::new(0), &mut dropped);
        }
        dropped
    }

    fn drain(queue: &mut FqCodel) -> Vec<Packet> {
        std::iter::from_fn(|| queue.dequeue(Time(0), &mut Vec::new())).collect()
    }

    #[test]
    fn busy_flows_take_turns_by_the_quantum() {
        let mut queue = FqCodel::new(Config::default());
        for flow in 0..3 {
            fill(&mut queue, flow, 40);
        }
        let flows: Vec<u32> = drain(&mut queue).iter().map(|packet| packet.flow).collect();
        for flow in 0..3 {
            let early = flows[..60].iter().filter(|&&other| other == flow).count();
            assert!((18..=22).contains(&early), "flow {flow} sent {early} of 60");
        }
    }

    #[test]
    fn small_and_large_packets_get_the_same_bytes() {
        let mut queue = FqCodel::new(Config::default());
        let mut rng = Rng::new(0);
        for seq in 0..1000 {
            let size = 150;
            let small = Packet { size, ..packet(1, seq) };
            queue.enqueue(Time(0), small, &mut rng, &mut Vec::new());
        }
        fill(&mut queue, 2, 100);
        let early: Vec<Packet> =
            std::iter::from_fn(|| queue.dequeue(Time(0), &mut Vec::new())).take(550).collect();
        let bytes = |flow| -> u32 {
            early.iter().filter(|packet| packet.flow == flow).map(|packet| packet.size).sum()
        };
        assert!(bytes(1).abs_diff(bytes(2)) <= 3100, "{} and {}", bytes(1), bytes(2));
    }

    #[test]
    fn a_new_flow_goes_first() {
        let mut queue = FqCodel::new(Config::default());
        fill(&mut queue, 1, 10);
        assert_eq!(queue.dequeue(Time(0), &mut Vec::new()), Some(packet(1, 0)));
        assert_eq!(queue.dequeue(Time(0), &mut Vec::new()), Some(packet(1, 1)));
        fill(&mut queue, 2, 1);
        assert_eq!(queue.dequeue(Time(0), &mut Vec::new()), Some(packet(2, 0)));
    }

    #[test]
    fn a_flow_that_comes_back_at_once_is_not_new_again() {
        let mut queue = FqCodel::new(Config::default());
        fill(&mut queue, 1, 10);
        queue.dequeue(Time(0), &mut Vec::new());
        queue.dequeue(Time(0), &mut Vec::new());
        let mut in_a_row = 0;
        while in_a_row < 10 {
            fill(&mut queue, 2, 1);
            match queue.dequeue(Time(0), &mut Vec::new()) {
                Some(packet) if packet.flow == 2 => in_a_row += 1,
                _ => break,
            }
        }
        assert!(in_a_row <= 2, "{in_a_row} packets in a row");
    }

    #[test]
    fn a_flow_of_single_packets_that_wait_long_behind_another_is_not_dropped() {
        let mut queue = FqCodel::new(Config::default());
        let (mut dropped, mut seen) = (Vec::new(), 0);
        for millis in 0..20_000 {
            let now = Time(millis * 1_000_000);
            // A packet of the sparse flow each 150 ms, above an interval apart, waits 20 ms for its turn.
            if millis % 150 == 0 {
                queue.enqueue(now, packet(1, millis), &mut Rng::new(0), &mut dropped);
            }
            if millis % 20 == 0 {
                queue.enqueue(now, packet(2, millis), &mut Rng::new(0), &mut Vec::new());
                let sent = queue.dequeue(now, &mut dropped);
                seen += u64::from(sent.is_some_and(|packet| packet.flow == 1));
            }
            assert!(dropped.iter().all(|packet| packet.flow != 1), "dropped at {millis} ms");
        }
        assert!(seen > 100, "{seen} of the sparse flow's packets left");
    }

    #[test]
    fn an_overflow_shortens_the_longest_queue_by_half_and_spares_the_others() {
        let mut queue = with_limit(100);
        fill(&mut queue, 1, 10);
        fill(&mut queue, 2, 90);
        let dropped = fill(&mut queue, 1, 1);
        assert_eq!(dropped.len(), 45);
        assert!(dropped.iter().all(|packet| packet.flow == 2));
        assert_eq!(dropped[0], packet(2, 0)); // from the head
        assert_eq!((queue.packets(), queue.bytes()), (56, 56 * 1500));
    }

    #[test]
    fn an_overflow_drops_64_packets_at_most() {
        let mut queue = with_limit(1000);
        let dropped = fill(&mut queue, 1, 1001);
        assert_eq!(dropped.len(), 64);
    }

    #[test]
    fn a_byte_limit_holds_too() {
        let mut config = Config::default();
        config.codel.limit = DropTail { packets: 1000, bytes: 15_000 };
        let mut queue = FqCodel::new(config);
        for flow in 0..20 {
            fill(&mut queue, flow, 1);
            assert!(queue.bytes() <= 15_000);
        }
    }

    #[test]
    fn the_perturbation_changes_which_flows_collide() {
        let places = |perturbation| -> Vec<u32> {
            let queue = FqCodel::new(Config { perturbation, queues: 16, ..Config::default() });
            (0..256).map(|flow| queue.queue_of(flow)).collect()
        };
        assert_ne!(places(1), places(2));
        assert!(places(1).iter().all(|&place| place < 16));
        assert!((0..16).all(|place| places(1).contains(&place)));
    }

    #[test]
    fn what_goes_in_comes_out_or_is_dropped() {
        let mut queue = with_limit(50);
        let (mut dropped, mut rng) = (Vec::new(), Rng::new(3));
        let (mut entered, mut left) = (0, 0);
        for step in 0..20_000 {
            let now = Time(step * 1_000_000);
            if rng.chance(0.55) {
                let flow = rng.below(5) as u32;
                queue.enqueue(now, packet(flow, step), &mut rng, &mut dropped);
                entered += 1;
            } else {
                left += queue.dequeue(now, &mut dropped).iter().len() as u64;
            }
            assert_eq!(queue.bytes(), queue.packets() * 1500);
        }
        assert!(!dropped.is_empty());
        assert_eq!(entered, left + dropped.len() as u64 + queue.packets());
    }
}
