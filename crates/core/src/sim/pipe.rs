//! The packets on a wire, in order of arrival.
use crate::transport::packet::Packet;
use crate::units::Time;
use ackademy_prefetch::prefetch;

/// Places that a pipe has at first.
const PLACES: usize = 16;
/// How many places ahead of those that are read and written next memory is asked for.
const AHEAD: usize = 16;

/// A packet on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct InPipe {
    /// When it arrives at the other end.
    pub at: Time,
    /// Breaks ties between events of one instant.
    pub order: u64,
    /// Its [`Packet::early`] and [`Packet::hop`] there. They are not written to the packet before it is copied to
    /// this place: a wide load waits for the narrow stores that come right before it.
    pub early: u16,
    /// See `early`.
    pub hop: u8,
    /// The packet.
    pub packet: Packet,
}

/// A queue of packets in a ring whose size is a power of two.
#[derive(Debug, Default)]
pub struct Pipe {
    places: Vec<InPipe>,
    /// Where the first is.
    head: usize,
    len: usize,
}

impl Pipe {
    /// How many packets are on the wire.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The packet that arrives after `ahead` others.
    #[inline]
    pub fn get(&self, ahead: usize) -> Option<&InPipe> {
        if ahead < self.len { Some(self.place(ahead)) } else { None }
    }

    /// The packet that arrives next.
    #[inline]
    pub fn front(&self) -> Option<&InPipe> {
        self.get(0)
    }

    /// The packet that arrives last.
    #[inline]
    pub fn back(&self) -> Option<&InPipe> {
        self.get(self.len.wrapping_sub(1))
    }

    /// All packets, the next first.
    pub fn iter(&self) -> impl Iterator<Item = &InPipe> {
        (0..self.len).map(|ahead| self.place(ahead))
    }

    /// The place of the packet behind `ahead` others; there is one place at least.
    #[inline]
    fn place(&self, ahead: usize) -> &InPipe {
        &self.places[(self.head + ahead) & (self.places.len() - 1)]
    }

    /// Takes the next packet off the wire: it was at the front.
    #[inline]
    pub fn drop_front(&mut self) {
        debug_assert!(self.len > 0, "nothing is on the wire");
        self.head = (self.head + 1) & (self.places.len() - 1);
        self.len -= 1;
    }

    /// Puts a packet on the wire, behind all others.
    #[allow(clippy::inline_always, reason = "the packet must not be copied for the call")]
    #[inline(always)]
    pub fn push_back(&mut self, packet: InPipe) {
        if self.len == self.places.len() {
            self.grow();
        }
        let place = (self.head + self.len) & (self.places.len() - 1);
        self.places[place] = packet;
        self.len += 1;
    }

    /// Asks for places that are read and written soon.
    #[inline]
    pub fn fetch(&self, ahead: usize) {
        if !self.is_empty() {
            prefetch(self.place(ahead + AHEAD));
            prefetch(self.place(self.len + AHEAD));
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let wider = (2 * self.places.len()).max(PLACES);
        self.places.rotate_left(self.head);
        self.head = 0;
        self.places.resize(wider, InPipe::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::VecDeque;

    #[test]
    fn packets_leave_in_the_order_in_which_they_came() {
        let mut rng = Rng::new(5);
        let (mut pipe, mut plain) = (Pipe::default(), VecDeque::new());
        for order in 0..5000 {
            pipe.fetch(2);
            if rng.below(if order / 500 % 2 == 0 { 3 } else { 2 }) > 0 {
                pipe.push_back(InPipe { order, ..InPipe::default() });
                plain.push_back(order);
            } else if !plain.is_empty() {
                pipe.drop_front();
                plain.pop_front();
            }
            let orders = |one: Option<&InPipe>| one.map(|one| one.order);
            assert_eq!(orders(pipe.front()), plain.front().copied());
            assert_eq!(orders(pipe.back()), plain.back().copied());
            assert_eq!(orders(pipe.get(7)), plain.get(7).copied());
            assert!(pipe.iter().map(|one| one.order).eq(plain.iter().copied()));
            assert_eq!(pipe.len(), plain.len());
        }
    }
}
