//! Controllers that want to know of each packet: before it leaves, or what becomes of it.
use super::SackSender;
use crate::hint::unlikely;
use crate::transport::sender::{Departure, Governor};
use crate::units::Time;

/// What a controller is asked and told besides acknowledgements and losses; one byte, looked at for every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hooks(u8);

impl Hooks {
    pub(super) const NONE: Self = Self(0);
    const SEND: u8 = 1;
    pub(super) const PACKETS: u8 = 2;

    pub(super) fn of(governor: &Governor) -> Self {
        let send = if governor.coupled.has_send_hook() { Self::SEND } else { 0 };
        let packets = if governor.coupled.wants_packets() { Self::PACKETS } else { 0 };
        Self(send | packets)
    }

    pub(super) fn has(self, hook: u8) -> bool {
        self.0 & hook != 0
    }
}

impl SackSender {
    /// Whether a packet may leave; if it may, it does.
    #[inline(never)]
    pub(super) fn permits(&mut self, packet: &Departure, governor: &mut Governor) -> bool {
        if self.hooks.has(Hooks::SEND) && !governor.permits(packet, &mut self.allowed) {
            return false;
        }
        if self.hooks.has(Hooks::PACKETS) {
            let seq = self.board.una() + packet.order - 1;
            self.board.note_sent(seq, packet.now, packet.size as u32);
            self.tell_packets(packet.now, governor);
        }
        true
    }

    /// Tells what became of packets, if the controller wants to know.
    #[inline]
    pub(super) fn tell_packets(&mut self, now: Time, governor: &mut Governor) {
        if unlikely(self.hooks.has(Hooks::PACKETS)) {
            self.tell_all_packets(now, governor);
        }
    }

    #[inline(never)]
    fn tell_all_packets(&mut self, now: Time, governor: &mut Governor) {
        for mut event in self.board.take_events() {
            event.now = now;
            governor.coupled.on_packet(governor.id, &event);
        }
    }
}
