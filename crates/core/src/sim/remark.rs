//! Links that do not leave ECN alone: bleaching, which makes packets not ECN-capable and removes their marks, and
//! forged marks.
use crate::rng::Rng;
use crate::transport::packet::{Ect, Kind, Packet};

/// Changes the ECN field of packets that leave.
#[derive(Clone, Debug)]
pub struct Remark {
    /// Whether the field is cleared.
    pub bleach: bool,
    /// Part of the ECN-capable packets that get a mark for nothing, in [0, 1].
    pub forge: f64,
    /// Its own stream.
    pub rng: Rng,
}

impl Remark {
    /// A packet leaves. The echo of an acknowledgement, which is in its TCP header, is not touched.
    pub fn apply(&mut self, packet: &mut Packet) {
        if packet.kind == Kind::Ack {
            return;
        }
        if self.bleach {
            packet.ect = Ect::Not;
            packet.ce = false;
        } else if packet.ect.is_capable() && self.forge > 0.0 {
            packet.ce |= self.rng.chance(self.forge);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(bleach: bool, forge: f64, packet: Packet) -> Packet {
        let mut packet = packet;
        Remark { bleach, forge, rng: Rng::new(1) }.apply(&mut packet);
        packet
    }

    #[test]
    fn bleaching_clears_marks_and_capability_but_not_an_echo() {
        for ect in [Ect::Zero, Ect::One] {
            let data = Packet { ect, ce: true, ..Packet::default() };
            assert_eq!(applied(true, 0.0, data), Packet::default());
        }
        let ack = Packet { kind: Kind::Ack, ce: true, ..Packet::default() };
        assert_eq!(applied(true, 0.0, ack), ack);
    }

    #[test]
    fn marks_are_forged_on_their_part_of_the_ecn_capable_packets_only() {
        let mut remark = Remark { bleach: false, forge: 0.1, rng: Rng::new(2) };
        let mut forged = |ect| {
            let marked = (0..10_000).filter(|_| {
                let mut packet = Packet { ect, ..Packet::default() };
                remark.apply(&mut packet);
                packet.ce
            });
            marked.count()
        };
        assert!((900..1100).contains(&forged(Ect::One)));
        assert_eq!(forged(Ect::Not), 0);
    }
}
