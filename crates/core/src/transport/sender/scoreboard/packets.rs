//! What becomes of each packet, for controllers that want to know ([`PacketEvent`]).
use super::{SACKED, Scoreboard};
use crate::control::{PacketEvent, PacketEventKind};
use crate::units::{Bytes, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// The latest packet of a segment.
#[derive(Clone, Copy, Debug)]
struct Latest {
    number: u64,
    sent_at: Time,
    /// Not acknowledged.
    size: u32,
    /// Neither lost nor discarded.
    open: bool,
}

/// The packets of all segments that are not cumulatively acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    latest: VecDeque<Latest>,
    /// The segment of the first of them.
    una: u64,
    /// How many were sent so far.
    sent: u64,
    /// The packet that the latest probe sent again.
    probed: Option<Latest>,
    /// Not told yet.
    events: Vec<PacketEvent>,
}

impl Packets {
    fn get(&mut self, seq: u64) -> Option<&mut Latest> {
        self.latest.get_mut(seq.checked_sub(self.una)? as usize)
    }

    fn send(&mut self, seq: u64, now: Time, size: u32) {
        let packet = Latest { number: self.sent, sent_at: now, size, open: true };
        self.sent += 1;
        if let Some(place) = self.get(seq) {
            let before = std::mem::replace(place, packet);
            if before.open {
                self.add(before, before.size, PacketEventKind::Discarded);
            }
        } else {
            self.latest.push_back(packet);
        }
        self.add(packet, size, PacketEventKind::Sent);
    }

    /// So many bytes of a segment are acknowledged.
    pub(super) fn ack(&mut self, seq: u64, size: u32) {
        if let Some(packet) = self.get(seq) {
            packet.size -= size;
            let packet = *packet;
            self.add(packet, size, PacketEventKind::Acked);
        }
    }

    /// Everything before `una` is acknowledged.
    pub(super) fn ack_all(&mut self, una: u64) {
        while self.una < una
            && let Some(packet) = self.latest.pop_front()
        {
            self.una += 1;
            if packet.size > 0 {
                self.add(packet, packet.size, PacketEventKind::Acked);
            }
        }
    }

    /// A segment is declared lost.
    pub(super) fn lose(&mut self, seq: u64) {
        if let Some(packet) = self.get(seq) {
            packet.open = false;
            let packet = *packet;
            self.add(packet, packet.size, PacketEventKind::Lost);
        }
    }

    /// A probe will send a segment again.
    pub(super) fn probe(&mut self, seq: u64) {
        if let Some(packet) = self.get(seq) {
            let is_open = std::mem::take(&mut packet.open);
            let packet = *packet;
            self.probed = Some(packet);
            if is_open {
                self.add(packet, packet.size, PacketEventKind::Discarded);
            }
        }
    }

    fn add(&mut self, packet: Latest, size: u32, kind: PacketEventKind) {
        let Latest { number, sent_at, .. } = packet;
        let size = Bytes(u64::from(size));
        self.events.push(PacketEvent { number, sent_at, size, kind, ..PacketEvent::default() });
    }
}

impl Scoreboard {
    /// Keeps what becomes of each packet. To be called before the first is sent.
    pub fn keep_packets(&mut self) {
        self.gaps_mut().packets = Some(Box::default());
    }

    /// Whether loss detection or anybody else has anything to look at.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// A packet of a new segment, or of one that is sent again, is about to leave.
    pub fn note_sent(&mut self, seq: u64, now: Time, size: u32) {
        if let Some(packets) = self.packets() {
            packets.send(seq, now, size);
        }
    }

    /// The packet that the latest probe sent again was lost; `size` is what it counts.
    pub fn note_probed_lost(&mut self, size: u32) {
        if let Some(packets) = self.packets()
            && let Some(packet) = packets.probed.take()
        {
            packets.add(packet, size, PacketEventKind::Lost);
        }
    }

    /// What became of packets since the last call.
    pub fn take_events(&mut self) -> Vec<PacketEvent> {
        self.packets().map_or_else(Vec::new, |packets| std::mem::take(&mut packets.events))
    }

    /// These segments are selectively acknowledged, if they were not before.
    #[inline(never)]
    pub(super) fn note_sacked(&self, range: Range<u64>, packets: &mut Option<Box<Packets>>) {
        for seq in range {
            if let Some(segment) = self.get(seq)
                && segment.flags & SACKED == 0
                && let Some(packets) = packets
            {
                packets.ack(seq, segment.size);
            }
        }
    }

    pub(super) fn packets(&mut self) -> Option<&mut Packets> {
        self.gaps.as_mut()?.packets.as_deref_mut()
    }
}
