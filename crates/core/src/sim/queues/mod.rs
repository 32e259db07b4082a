//! Queue disciplines, one file each.
//!
//! A discipline that decides when a packet *arrives* is an [`Admission`]: the link then knows the
//! packet's departure at once and needs no event for it. One that decides when a packet *leaves*, or
//! that keeps several queues, is a [`Scheduler`] and costs an event per packet.
use crate::rng::Rng;
use crate::transport::packet::Packet;
use crate::units::{Span, Time};

pub mod codel;
pub mod device;
pub mod drop_tail;
pub mod dualpi2;
pub mod fq_codel;
pub mod pie;
pub mod red;
pub mod step;

/// What an [`Admission`] sees of the queue that a packet is about to join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets in the system, the one in transmission included.
    pub packets: u64,
    /// Bytes in the system; the one in transmission counts in full.
    pub bytes: u64,
    /// How long the packet would wait before its own transmission starts.
    pub wait: Span,
}

impl Backlog {
    /// Packets behind the one in transmission.
    pub fn waiting(&self) -> u64 {
        self.packets.saturating_sub(1)
    }
}

/// The fate of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It joins the queue.
    Keep,
    /// It joins the queue with a congestion mark.
    Mark,
    /// It is dropped.
    Drop,
}

/// Decides on arrival.
pub trait Admission: std::marker::Send {
    /// The fate of `packet`, which finds `backlog` at time `now`. `Mark` only if `packet.ect` is capable.
    fn admit(&mut self, now: Time, packet: &Packet, backlog: &Backlog, rng: &mut Rng) -> Fate;
}

/// Holds packets and decides on departure.
pub trait Scheduler: std::marker::Send {
    /// Takes `packet`; pushes every packet it drops (this one or others) to `dropped`.
    fn enqueue(&mut self, now: Time, packet: Packet, rng: &mut Rng, dropped: &mut Vec<Packet>);
    /// The next packet to transmit, marked if need be; pushes what it drops to `dropped`.
    fn dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet>;
    /// When the packet came that [`dequeue`](Self::dequeue) returned last.
    fn came(&self) -> Time;
    /// Packets held.
    fn packets(&self) -> u64;
    /// Bytes held.
    fn bytes(&self) -> u64;
    /// Shows every packet held, of each of its queues the next first.
    fn show(&self, each: &mut dyn FnMut(&Packet));
}
