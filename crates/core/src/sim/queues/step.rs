//! Marks whatever finds more than a fixed number of packets (RFC 8257 section 4.1: the threshold K of
//! switches for DCTCP), and drops what does not fit. Packets that are not ECN-capable are not touched by the
//! threshold.
use super::drop_tail::DropTail;
use super::{Admission, Backlog, Fate};
use crate::rng::Rng;
use crate::transport::packet::Packet;
use crate::units::Time;

/// Drop-tail with a marking threshold.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Most packets in the system, the one in transmission included, that an arrival finds without being
    /// marked.
    pub mark_packets: u64,
    /// Hard bound of the queue.
    pub limit: DropTail,
}

impl Admission for Step {
    fn admit(&mut self, now: Time, packet: &Packet, backlog: &Backlog, rng: &mut Rng) -> Fate {
        match self.limit.admit(now, packet, backlog, rng) {
            Fate::Keep if packet.ect.is_capable() && backlog.packets > self.mark_packets => {
                Fate::Mark
            }
            fate => fate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::packet::Ect;

    fn fate(packets: u64, ect: Ect) -> Fate {
        let limit = DropTail { packets: 5, bytes: u64::MAX };
        let packet = Packet { size: 1500, ect, ..Packet::default() };
        let backlog = Backlog { packets, bytes: packets * 1500, ..Backlog::default() };
        Step { mark_packets: 2, limit }.admit(Time(0), &packet, &backlog, &mut Rng::new(0))
    }

    #[test]
    fn only_what_finds_more_than_the_threshold_is_marked() {
        assert_eq!([fate(2, Ect::Zero), fate(3, Ect::Zero)], [Fate::Keep, Fate::Mark]);
    }

    #[test]
    fn packets_that_are_not_ecn_capable_pass_the_threshold_unmarked() {
        assert_eq!(fate(4, Ect::Not), Fate::Keep);
    }

    #[test]
    fn a_full_queue_drops_both_kinds() {
        assert_eq!([fate(5, Ect::Zero), fate(5, Ect::Not)], [Fate::Drop, Fate::Drop]);
    }
}
