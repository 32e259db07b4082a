//! What an episode leaves behind that is lost and not yet repaired.
use super::{IN_PIPE, LOST, Lost, RETRANSMITTED, SACKED, Scoreboard, Segment, TWICE};

impl Lost {
    /// All but one packet of what was found, which is left here.
    fn split_one(&mut self, packet: u64) -> Self {
        let rest = Self { bytes: self.bytes.saturating_sub(packet), ..*self };
        self.bytes -= rest.bytes;
        rest
    }

    /// Both together, told as the newer.
    pub fn and(self, other: Self) -> Self {
        let (newer, older) = if other.newest > self.newest { (other, self) } else { (self, other) };
        let (bytes, last) = (newer.bytes + older.bytes, newer.last.max(older.last));
        Self { bytes, last, again: newer.again || older.again, ..newer }
    }
}

/// Whether something was declared lost and did not arrive since.
fn is_missing(segment: &Segment) -> bool {
    let repair = segment.flags & (RETRANSMITTED | IN_PIPE | TWICE) == RETRANSMITTED | IN_PIPE;
    segment.flags & SACKED == 0 && (segment.flags & LOST != 0 || repair)
}

impl Scoreboard {
    /// How many segments were declared lost and did not arrive since, and of how many of them a repair is on
    /// its way.
    #[inline(never)]
    pub fn missing(&self) -> (u32, u32) {
        if self.open_gaps().is_none() {
            return (0, 0);
        }
        self.segments.iter().filter(|segment| is_missing(segment)).fold(
            (0, 0),
            |(missing, repairs), segment| {
                (missing + 1, repairs + u32::from(segment.flags & LOST == 0))
            },
        )
    }

    /// Keeps one packet of what is `found`, the newest, and returns the others, with what was kept before.
    pub fn keep_one(&mut self, mut found: Lost, packet: u64) -> Lost {
        let rest = found.split_one(packet);
        let kept = &mut self.gaps_mut().kept;
        rest.and(std::mem::replace(kept, found))
    }

    /// What was kept.
    pub fn take_kept(&mut self) -> Lost {
        self.gaps.as_mut().map_or_else(Lost::default, |gaps| std::mem::take(&mut gaps.kept))
    }
}
