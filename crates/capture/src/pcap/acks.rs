//! Acknowledgements on their way. What a real one carries and a simulated one does not (the receiver's clock, the bits of
//! ECN) is kept until it has arrived.
use ackademy::transport::packet::Packet;
use ackademy::units::Time;
use std::collections::VecDeque;

/// Most that are kept behind the latest that was seen: what is overtaken by more is taken for lost.
const OVERTAKEN_MAX: u64 = 256;

/// An acknowledgement that a receiver sent.
#[derive(Clone, Copy, Debug)]
pub struct SentAck {
    packet: Packet,
    /// When it left.
    pub at: Time,
    /// AE, CWR and ECE.
    pub echo: u8,
    /// How many left before.
    pub number: u64,
}

/// Where acknowledgements are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a link.
    Link,
    /// At the sender of data.
    Sender,
}

/// The acknowledgements of a flow that have not arrived, in the order in which they left.
#[derive(Clone, Debug, Default)]
pub struct Acks {
    sent: VecDeque<SentAck>,
    /// The number of the first of them.
    first: u64,
    /// Of each place: the number behind the latest that was seen there.
    seen: [u64; 2],
    last: Option<SentAck>,
}

impl Acks {
    /// One leaves.
    pub fn sent(&mut self, at: Time, packet: &Packet, echo: u8) -> SentAck {
        let number = self.first + self.sent.len() as u64;
        let sent = SentAck { packet: *packet, at, echo, number };
        self.sent.push_back(sent);
        self.last = Some(sent);
        sent
    }

    /// The one that is seen at a place; of one that is not known any more, the latest that left.
    pub fn seen(&mut self, place: Place, packet: &Packet) -> Option<SentAck> {
        let from =
            (self.seen[place as usize].saturating_sub(self.first) as usize).min(self.sent.len());
        let is_it = |one: &&SentAck| is_same(&one.packet, packet);
        let later = self.sent.range(from..).find(is_it);
        let Some(&found) = later.or_else(|| self.sent.range(..from).rev().find(is_it)) else {
            return self.last;
        };
        let seen = &mut self.seen[place as usize];
        *seen = (*seen).max(found.number + 1);
        if place == Place::Sender {
            while self.first + OVERTAKEN_MAX < self.seen[place as usize] {
                self.sent.pop_front();
                self.first += 1;
            }
        }
        Some(found)
    }
}

/// Whether two packets are the same acknowledgement, whatever links did to it.
fn is_same(left: &Packet, right: &Packet) -> bool {
    (left.seq, left.sent_at, left.sack, left.ce_bytes, left.repeat, left.transmission)
        == (right.seq, right.sent_at, right.sack, right.ce_bytes, right.repeat, right.transmission)
}
