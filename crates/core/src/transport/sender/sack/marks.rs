//! Congestion marks, counted by the receiver.
use super::{Episode, SackSender, Undo};
use crate::transport::config::Ecn;
use crate::transport::packet::{Ect, Packet};

impl SackSender {
    /// What packets announce. Without accurate feedback no retransmission is ECN-capable (RFC 3168 section 6.1.5).
    pub(in crate::transport::sender) fn ect(&self, retransmission: bool) -> Ect {
        match self.config.ecn {
            Ecn::Classic if retransmission => Ect::Not,
            ecn => ecn.ect(),
        }
    }

    /// RFC 3168 section 6.1.2: one reduction per round trip with marks. It is spread over the round
    /// trip like that of a loss: a window cut at once would stop the sender for half of it, and a
    /// burst at once after that meets an AQM that is still marking.
    pub(super) fn open_marked(&mut self, ack: &Packet) -> bool {
        let marked = self.config.ecn == Ecn::Classic && self.new_marks(ack) > 0;
        let opens = marked && self.episode == Episode::None && self.board.una() > self.marked_until;
        if opens {
            self.episode = Episode::Marked(self.board.nxt());
            self.undo = Undo::NONE;
            self.start_reduction(self.board.outstanding());
        }
        opens
    }

    /// Marked bytes that the receiver has counted and the controller does not know of. The count survives the
    /// loss of acknowledgements, as that of RFC 9768 does and as a latched echo (RFC 3168 section 6.1.3) would;
    /// an acknowledgement that was overtaken counts fewer.
    pub(super) fn new_marks(&self, ack: &Packet) -> u32 {
        let more = ack.ce_bytes.wrapping_sub(self.ce_known);
        if more > u32::MAX / 2 { 0 } else { more }
    }
}
