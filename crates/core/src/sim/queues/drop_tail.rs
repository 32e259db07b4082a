//! Drop-tail: keep what fits, drop the rest.
use super::{Admission, Backlog, Fate};
use crate::rng::Rng;
use crate::transport::packet::Packet;
use crate::units::Time;

/// Bounded in packets, in bytes, or both; the other disciplines bound their queues with it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTail {
    /// Most packets in the system, the one in transmission included (ns-2's `limit_`).
    pub packets: u64,
    /// Most bytes in the system, the one in transmission included.
    pub bytes: u64,
}

impl DropTail {
    /// Whether a packet of `size` bytes still fits beside `packets` packets of `bytes` bytes.
    pub fn fits(&self, packets: u64, bytes: u64, size: u32) -> bool {
        packets < self.packets && bytes + u64::from(size) <= self.bytes
    }
}

impl Default for DropTail {
    /// A thousand packets of any size (the default of Linux's network interfaces and AQMs).
    fn default() -> Self {
        Self { packets: 1000, bytes: u64::MAX }
    }
}

impl Admission for DropTail {
    #[inline]
    fn admit(&mut self, _now: Time, packet: &Packet, backlog: &Backlog, _rng: &mut Rng) -> Fate {
        let fits = self.fits(backlog.packets, backlog.bytes, packet.size);
        if fits { Fate::Keep } else { Fate::Drop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(queue: &mut DropTail, packets: u64, bytes: u64) -> Fate {
        let packet = Packet { size: 1500, ..Packet::default() };
        let backlog = Backlog { packets, bytes, ..Backlog::default() };
        queue.admit(Time(0), &packet, &backlog, &mut Rng::new(0))
    }

    #[test]
    fn the_packet_that_reaches_the_limit_is_kept_and_the_next_dropped() {
        let mut queue = DropTail { packets: 3, bytes: u64::MAX };
        assert_eq!(fate(&mut queue, 2, 3000), Fate::Keep);
        assert_eq!(fate(&mut queue, 3, 4500), Fate::Drop);
    }

    #[test]
    fn a_packet_that_would_pass_the_byte_limit_is_dropped() {
        let mut queue = DropTail { packets: u64::MAX, bytes: 4500 };
        assert_eq!(fate(&mut queue, 50, 3000), Fate::Keep);
        assert_eq!(fate(&mut queue, 1, 3001), Fate::Drop);
    }

    #[test]
    fn a_queue_without_room_drops_everything() {
        assert_eq!(fate(&mut DropTail { packets: 0, bytes: u64::MAX }, 0, 0), Fate::Drop);
    }
}
