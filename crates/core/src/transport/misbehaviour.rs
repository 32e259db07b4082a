//! Receivers that misbehave, which RFC 9743 section 7.6 asks to evaluate: they hide congestion, or make a sender
//! believe that data arrives sooner or in more pieces than it does (Savage, Cardwell, Wetherall and Anderson,
//! "TCP Congestion Control with a Misbehaving Receiver", 1999).
use crate::transport::packet::{Packet, SACK_BLOCKS};

/// What a receiver does that it should not; the default is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misbehaviour {
    /// Congestion marks are not echoed.
    pub hide_marks: bool,
    /// What is missing is acknowledged as if it had come.
    pub hide_losses: bool,
    /// Acknowledgements per packet, each of a part of its bytes; 1 for no division.
    pub divide_acks: u32,
    /// Most packets that are acknowledged before they come.
    pub optimistic_acks: u32,
}

impl Default for Misbehaviour {
    fn default() -> Self {
        Self { hide_marks: false, hide_losses: false, divide_acks: 1, optimistic_acks: 0 }
    }
}

impl Misbehaviour {
    /// The names of what is done.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let done = [
            ("hide_marks", self.hide_marks),
            ("hide_losses", self.hide_losses),
            ("divide_acks", self.divide_acks > 1),
            ("optimistic_acks", self.optimistic_acks > 0),
        ];
        done.into_iter().filter(|(_, is_done)| *is_done).map(|(name, _)| name)
    }

    /// A loss is not told: an acknowledgement of what has not come covers what is missing before it.
    pub(super) fn hides_losses(&self) -> bool {
        self.hide_losses || self.optimistic_acks > 0
    }
}

/// How far a receiver acknowledges ahead of what came.
///
/// A sender ignores the acknowledgement of what it has not sent. So the receiver begins carefully: it is ahead
/// by half of the packets that have come, about as many as are on their way when the window doubles
/// every round trip. A packet that comes again shows that the sender has ignored it; it begins anew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    most: u64,
    /// Packets since it began.
    come: u64,
}

impl Ahead {
    pub(super) fn at_most(packets: u32) -> Self {
        Self { most: u64::from(packets), come: 0 }
    }

    pub(super) fn on_data(&mut self, duplicate: bool) {
        self.come = if duplicate { 0 } else { self.come + 1 };
    }

    /// Moves an acknowledgement ahead; the duplicate that it may report stays the same segment.
    pub(super) fn apply(&self, ack: &mut Packet) {
        let packets = self.most.min(self.come / 2);
        ack.seq += packets;
        if ack.repeat {
            ack.sack[0].0 = ack.sack[0].0.wrapping_sub(packets as u32);
        }
    }
}

/// The acknowledgements that come before `whole`, which acknowledges a packet of `size` bytes last: each leaves
/// a smaller part of the packet to be acknowledged.
pub fn parts(whole: &Packet, size: u32, count: u32) -> impl Iterator<Item = Packet> {
    let part = Packet { seq: whole.seq - 1, repeat: false, ..*whole };
    (1..count).map(move |index| {
        let left = u64::from(size) * u64::from(count - index) / u64::from(count);
        let mut part = part;
        part.sack = [(0, 0); SACK_BLOCKS];
        part.set_left((left as u32).max(1));
        part
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::receiver::{Arrival, Receiver};
    use crate::units::{Span, Time};

    fn receiver(rules: Misbehaviour) -> Receiver {
        Receiver::new(1, Span::from_millis(40), 52, true).misbehaving(rules)
    }

    fn arrive(receiver: &mut Receiver, seq: u64, ce: bool) -> (Arrival, Packet) {
        let mut ack = Packet::default();
        let packet = Packet { seq, ce, size: 1500, ..Packet::default() };
        (receiver.on_data(Time(0), &packet, &mut ack), ack)
    }

    #[test]
    fn hidden_marks_are_not_counted() {
        let mut receiver = receiver(Misbehaviour { hide_marks: true, ..Misbehaviour::default() });
        assert_eq!(arrive(&mut receiver, 0, true).1.ce_bytes, 0);
    }

    #[test]
    fn hidden_losses_are_acknowledged_and_never_delivered() {
        let mut receiver = receiver(Misbehaviour { hide_losses: true, ..Misbehaviour::default() });
        arrive(&mut receiver, 0, false);
        let (arrival, ack) = arrive(&mut receiver, 5, false);
        assert_eq!((arrival.delivered, ack.seq, ack.sack), (1, 6, [(0, 0); SACK_BLOCKS]));
        let (late, ack) = arrive(&mut receiver, 3, false);
        assert_eq!((late.delivered, late.duplicate, ack.duplicate()), (0, true, Some(3)));
    }

    #[test]
    fn a_divided_acknowledgement_leaves_ever_less_of_its_packet() {
        let mut receiver = receiver(Misbehaviour { divide_acks: 4, ..Misbehaviour::default() });
        let (arrival, whole) = arrive(&mut receiver, 0, false);
        let parts: Vec<Packet> = parts(&whole, 1500, arrival.parts).collect();
        assert!(arrival.ack_now && whole.seq == 1 && whole.left() == 0);
        assert!(parts.iter().all(|part| part.seq == 0));
        assert_eq!(parts.iter().map(Packet::left).collect::<Vec<_>>(), [1125, 750, 375]);
        let (gap, ack) = arrive(&mut receiver, 2, false);
        assert_eq!((gap.parts, ack.seq, ack.sack[0]), (1, 1, (1, 1)), "out of order, as others");
    }

    #[test]
    fn who_acknowledges_ahead_begins_carefully_and_begins_anew_when_it_was_ignored() {
        let most = Misbehaviour { optimistic_acks: 3, ..Misbehaviour::default() };
        let mut receiver = receiver(most);
        let mut seqs: Vec<u64> =
            (0..8).map(|seq| arrive(&mut receiver, seq, false).1.seq - seq - 1).collect();
        assert_eq!(seqs, [0, 1, 1, 2, 2, 3, 3, 3]);
        let (_, ack) = arrive(&mut receiver, 7, false);
        assert_eq!((ack.seq, ack.duplicate()), (8, Some(7)));
        seqs = (8..11).map(|seq| arrive(&mut receiver, seq, false).1.seq - seq - 1).collect();
        assert_eq!(seqs, [0, 1, 1]);
    }
}
