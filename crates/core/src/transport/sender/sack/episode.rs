//! Which losses are answered together.
use super::{Lost, SackSender};
use crate::transport::prr::Prr;

/// From the declaration of a loss until everything sent before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Episode {
    None,
    /// Fast recovery, up to this segment.
    Fast(u64),
    /// After a time-out, up to this segment.
    Timeout(u64),
    /// The answer to a mark, until a segment after this one is acknowledged (RFC 3168; Linux: CWR).
    Marked(u64),
}

impl Episode {
    /// Whether the window is being reduced: nothing grows, and PRR decides what may leave.
    pub(super) fn reduces(self) -> bool {
        matches!(self, Self::Fast(_) | Self::Marked(_))
    }
}

impl SackSender {
    /// A loss was `found`, or an episode `ended`: whether something is lost that has not been answered for. What was
    /// sent during an episode and is still missing after it was not (RFC 6675 section 5; Linux: `tcp_time_to_recover`).
    /// After a mark in the same flight, it was: the reduction goes on, with repairs (as in Linux). After a time-out the
    /// loss of what was sent again is a second sign of congestion (RFC 5681 section 4.3; Linux: `FLAG_LOST_RETRANS` in
    /// `tcp_fastretrans_alert`); within fast recovery Linux does not reduce for it again.
    #[inline(never)]
    pub(super) fn open_episode(&mut self, found: Lost, ended: bool) -> bool {
        match self.episode {
            Episode::None => {
                let (missing, repairs) = if ended { self.board.missing() } else { (0, 0) };
                if found.bytes == 0 && missing == 0 {
                    return false;
                }
                self.open_fast(self.board.outstanding(), repairs);
                true
            }
            Episode::Marked(_) => {
                self.episode = Episode::Fast(self.board.nxt());
                self.stats.recoveries += 1;
                false
            }
            Episode::Timeout(_) if found.again => {
                // Most of what is outstanding was lost before: the window is what is reduced, as in Linux.
                let flight = self.board.outstanding().min(self.allowed.cwnd);
                let (_, repairs) = self.board.missing();
                self.open_fast(flight, repairs);
                true
            }
            Episode::Fast(_) | Episode::Timeout(_) => false,
        }
    }

    /// Fast recovery begins, with a reduction from `flight`, while `repairs` are on their way.
    fn open_fast(&mut self, flight: u64, repairs: u32) {
        self.episode = Episode::Fast(self.board.nxt());
        self.stats.recoveries += 1;
        self.undo = self.undo.arm_again(self.board.una(), repairs);
        self.count_probe();
        self.start_reduction(flight);
    }

    /// PRR begins to reduce from `flight`.
    pub(super) fn start_reduction(&mut self, flight: u64) {
        // It answers for what a probe may have repaired, too.
        self.probe = None;
        self.marked_until = self.board.nxt();
        self.prr = Prr::enter(flight);
    }

    /// Whether an answer to loss ends here.
    pub(super) fn close_episode(&mut self) -> bool {
        if let Episode::Marked(end) = self.episode
            && self.board.una() > end
        {
            self.episode = Episode::None;
        }
        if let Episode::Fast(end) | Episode::Timeout(end) = self.episode
            && self.board.una() >= end
        {
            self.episode = Episode::None;
            self.reordering.on_recovery_end();
            return true;
        }
        false
    }
}
