//! What travels over links: a small `Copy` record, moved by value through pipes and queues.
use crate::transport::multipath::Mapping;
use crate::units::Time;

/// SACK blocks an acknowledgement carries at most (RFC 2018 with timestamps).
pub const SACK_BLOCKS: usize = 3;

/// [`Packet::hop`] of a packet on the last link of its path, or behind it.
pub const HOP_END: u8 = u8::MAX;
/// As [`HOP_END`], of a packet whose arrival is told to who watches.
pub const HOP_END_WATCHED: u8 = HOP_END - 1;

/// Data, acknowledgement or datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A segment of a flow.
    #[default]
    Data,
    /// An acknowledgement.
    Ack,
    /// A datagram of an unresponsive source.
    Datagram,
}

/// What a packet announces of explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ect {
    /// Not ECN-capable: it is dropped where others are marked.
    #[default]
    Not,
    /// ECT(0): a mark means as much as a loss (RFC 3168).
    Zero,
    /// ECT(1): a mark is one of many, for low latency (L4S, RFC 9331).
    One,
}

impl Ect {
    /// Whether the packet may be marked.
    #[inline]
    pub fn is_capable(self) -> bool {
        self != Self::Not
    }
}

/// One packet.
#[allow(clippy::struct_excessive_bools)] // each is a flag of a header
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Index of its flow (subflow) in the simulation.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// What it is.
    pub kind: Kind,
    /// Index of the next link on its path, or [`HOP_END`].
    pub hop: u8,
    /// ECN-capable transport.
    pub ect: Ect,
    /// Congestion experienced.
    pub ce: bool,
    /// Data: a retransmission. ACK: a report of a duplicate (RFC 2883).
    pub repeat: bool,
    /// A copy that a link made: its fate is not that of what was sent.
    pub copy: bool,
    /// What rounding to whole nanoseconds added to its present time, in 2⁻¹⁶ ns
    /// (`sim::exact`).
    pub early: u16,
    /// Segment number (data), or the next segment expected (ACK).
    pub seq: u64,
    /// Data: which of its flow's transmissions this is, from 0, retransmissions included. ACK of a
    /// subflow: the data acknowledgement, the low 32 bits of the connection's next byte expected.
    pub transmission: u32,
    /// When the data packet left the sender; an ACK echoes it.
    pub sent_at: Time,
    /// ACK: received beyond `seq`, as (offset from `seq`, length) in segments; newest first, unused
    /// blocks have length zero. The first is [`Packet::duplicate`] if `repeat`. Data of a subflow: the
    /// [`Packet::mapping`]. ACK of a part of a packet:
    /// [`Packet::left`].
    pub sack: [(u32, u32); SACK_BLOCKS],
    /// ACK: congestion-marked bytes received so far, modulo 2³² (RFC 9768): an ACK that is lost takes no
    /// mark with it.
    pub ce_bytes: u32,
}

impl Packet {
    /// The segment of which an acknowledgement reports a duplicate: its first block, whose offset may
    /// be below zero (RFC 2883). None if it reports none, or not which.
    pub fn duplicate(&self) -> Option<u64> {
        let (offset, length) = self.sack[0];
        let seq = self.seq.checked_add_signed(i64::from(offset as i32))?;
        (self.repeat && length > 0).then_some(seq)
    }

    /// The range of its connection's data that a segment of a subflow carries.
    pub fn mapping(&self) -> Mapping {
        let [(high, low), (len, _), _] = self.sack;
        Mapping { start: (u64::from(high) << 32) | u64::from(low), len }
    }

    /// Of an ACK: bytes of the segment `seq` that are still to be acknowledged, where others of it are; 0 if
    /// none of it is. It takes the place of a block without length.
    pub fn left(&self) -> u32 {
        let (left, length) = self.sack[SACK_BLOCKS - 1];
        if length == 0 { left } else { 0 }
    }

    /// Sets [`Self::left`].
    pub fn set_left(&mut self, left: u32) {
        self.sack[SACK_BLOCKS - 1] = (left, 0);
    }

    /// Sets [`Self::mapping`].
    pub fn set_mapping(&mut self, mapping: Mapping) {
        self.sack[0] = ((mapping.start >> 32) as u32, mapping.start as u32);
        self.sack[1].0 = mapping.len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_comes_back_as_it_was_set() {
        for mapping in [
            Mapping::default(),
            Mapping { start: u64::MAX - 7, len: u32::MAX },
            Mapping { start: 1 << 33, len: 1448 },
        ] {
            let mut packet = Packet::default();
            packet.set_mapping(mapping);
            assert_eq!(packet.mapping(), mapping);
        }
    }
}
