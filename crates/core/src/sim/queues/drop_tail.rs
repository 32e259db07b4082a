//! Drop-tail: keep what fits, drop the rest.
use super::{Admission, Backlog, Fate};
use crate::rng::Rng;
use crate::sim::packet::Packet;
use crate::units::Time;

/// Bounded in packets, in bytes, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTail {
    /// Most packets in the system, the one in transmission included (ns-2's `limit_`).
    pub packets: u64,
    /// Most bytes in the system, the one in transmission included.
    pub bytes: u64,
}

impl Admission for DropTail {
    fn admit(&mut self, _now: Time, packet: &Packet, backlog: &Backlog, _rng: &mut Rng) -> Fate {
        let fits =
            backlog.packets < self.packets && backlog.bytes + u64::from(packet.size) <= self.bytes;
        if fits { Fate::Keep } else { Fate::Drop }
    }
}
