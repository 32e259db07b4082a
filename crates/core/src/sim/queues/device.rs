//! A device's own queue below a discipline: what it has taken waits in order, out of the discipline's
//! reach, as under a network interface that accepts packets in advance (Linux's driver ring; ns-3's
//! `NetDevice` queue below its traffic control).
use super::Scheduler;
use crate::rng::Rng;
use crate::transport::packet::Packet;
use crate::units::Time;
use std::collections::VecDeque;

/// `above`, whose packets move to the device as soon as it has room.
pub struct BelowDiscipline<S> {
    above: S,
    /// With when they came.
    taken: VecDeque<(Time, Packet)>,
    taken_bytes: u64,
    came: Time,
    limit: u64,
}

impl<S: Scheduler> BelowDiscipline<S> {
    /// A device that holds up to `limit` packets besides the one in transmission.
    pub fn new(above: S, limit: u64) -> Self {
        Self { above, taken: VecDeque::new(), taken_bytes: 0, came: Time(0), limit }
    }

    fn take(&mut self, now: Time, dropped: &mut Vec<Packet>) {
        while (self.taken.len() as u64) < self.limit {
            let Some(packet) = self.above.dequeue(now, dropped) else { return };
            self.taken_bytes += u64::from(packet.size);
            self.taken.push_back((self.above.came(), packet));
        }
    }
}

impl<S: Scheduler> Scheduler for BelowDiscipline<S> {
    fn enqueue(&mut self, now: Time, packet: Packet, rng: &mut Rng, dropped: &mut Vec<Packet>) {
        self.above.enqueue(now, packet, rng, dropped);
        self.take(now, dropped);
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let (came, packet) = self.taken.pop_front()?;
        self.came = came;
        self.taken_bytes -= u64::from(packet.size);
        self.take(now, dropped);
        Some(packet)
    }

    fn came(&self) -> Time {
        self.came
    }

    fn packets(&self) -> u64 {
        self.above.packets() + self.taken.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.above.bytes() + self.taken_bytes
    }

    fn show(&self, each: &mut dyn FnMut(&Packet)) {
        self.taken.iter().for_each(|(_, packet)| each(packet));
        self.above.show(each);
    }
}

#[cfg(test)]
mod tests {
    use super::super::codel::{Codel, Config};
    use super::*;

    fn at(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }

    fn filled(limit: u64, packets: u64) -> BelowDiscipline<Codel> {
        let mut queue = BelowDiscipline::new(Codel::new(Config::default()), limit);
        for seq in 0..packets {
            let packet = Packet { seq, size: 1500, ..Packet::default() };
            queue.enqueue(at(0), packet, &mut Rng::new(0), &mut Vec::new());
        }
        queue
    }

    /// Serves one packet a millisecond; returns how many were dropped.
    fn drain(queue: &mut BelowDiscipline<Codel>) -> usize {
        let mut dropped = Vec::new();
        let served = (1..).take_while(|&millis| queue.dequeue(at(millis), &mut dropped).is_some());
        let served = served.count();
        assert!(served > 0);
        dropped.len()
    }

    #[test]
    fn what_the_device_has_taken_is_out_of_the_disciplines_reach() {
        assert_eq!(drain(&mut filled(300, 300)), 0);
        assert!(drain(&mut filled(10, 300)) > 0);
    }

    #[test]
    fn packets_leave_in_order_through_the_device() {
        let mut queue = filled(5, 20);
        assert_eq!((queue.packets(), queue.bytes()), (20, 20 * 1500));
        let seqs: Vec<u64> = std::iter::from_fn(|| queue.dequeue(at(1), &mut Vec::new()))
            .map(|packet| packet.seq)
            .collect();
        assert_eq!(seqs, (0..20).collect::<Vec<u64>>());
        assert_eq!((queue.packets(), queue.bytes()), (0, 0));
    }
}
