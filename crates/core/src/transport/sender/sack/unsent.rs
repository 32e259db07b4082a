//! Acknowledgements of what was never sent.
use super::SackSender;
use crate::transport::packet::Packet;

impl SackSender {
    /// Whether an acknowledgement covers what was never sent, by a receiver that guesses: it is ignored, and counted
    /// (RFC 9293 section 3.10.7.4).
    pub(in crate::transport::sender) fn ignores(&mut self, ack: &Packet) -> bool {
        let is_unsent = ack.seq > self.board.nxt();
        if is_unsent {
            self.board.note_unsent();
        }
        is_unsent
    }

    /// How many were ignored.
    pub(in crate::transport::sender) fn unsent_acks(&self) -> u64 {
        self.board.unsent_acks()
    }
}
