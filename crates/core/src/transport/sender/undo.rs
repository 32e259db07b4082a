//! Whether an answer to loss was for nothing: by timestamps (Eifel, RFC 3522) or by reports of
//! duplicates (RFC 3708), with Linux's rules for when to take it back.
use crate::transport::few::Few;
use crate::units::Time;
use std::collections::VecDeque;

/// Most ranges of retransmitted segments that [`Retransmitted`] keeps.
const RANGES_MAX: usize = 32;
/// Ranges that wait to be moved to the others.
const LATEST: usize = 4;

/// The latest answer to loss, and what is known of its retransmissions.
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    /// Retransmissions of segments from here on count; `u64::MAX` if no answer can be taken back.
    from: u64,
    /// When the first retransmission left.
    first: Time,
    retransmitted: u32,
    /// Of them, reported to have come twice.
    duplicates: u32,
}

impl Undo {
    /// Nothing to take back.
    pub const NONE: Self =
        Self { from: u64::MAX, first: Time::NEVER, retransmitted: 0, duplicates: 0 };

    /// The controller was told of a loss while `una` was the first segment not acknowledged.
    pub fn arm(una: u64) -> Self {
        Self { from: una, ..Self::NONE }
    }

    /// As [`arm`](Self::arm), while `repairs` of an episode before are on their way: they count, too, and the
    /// first of them left no earlier than that episode's.
    pub fn arm_again(self, una: u64, repairs: u32) -> Self {
        let first = if repairs > 0 { self.first } else { Time::NEVER };
        Self { first, retransmitted: repairs, ..Self::arm(una) }
    }

    /// Whether there is an answer that can still be taken back.
    pub fn is_armed(&self) -> bool {
        self.from < u64::MAX
    }

    /// Something leaves again.
    pub fn on_retransmission(&mut self, now: Time) {
        self.first = self.first.min(now);
        self.retransmitted = self.retransmitted.saturating_add(1);
    }

    /// Segment `seq` was received twice.
    pub fn on_duplicate(&mut self, seq: u64) {
        if self.is_armed() && seq >= self.from {
            self.duplicates = self.duplicates.saturating_add(1);
        }
    }

    /// An acknowledgement advanced that echoes `echo`: whether what it acknowledges left before the
    /// first retransmission.
    pub fn is_outrun(&self, echo: Time) -> bool {
        self.is_armed() && echo < self.first
    }

    /// Whether everything sent again came twice.
    pub fn is_all_duplicates(&self) -> bool {
        self.is_armed() && self.retransmitted > 0 && self.duplicates >= self.retransmitted
    }
}

/// Which of the segments acknowledged last were retransmitted.
#[derive(Clone, Debug, Default)]
pub struct Retransmitted {
    /// The ranges before `latest`; of all, only the last [`RANGES_MAX`] count.
    earlier: VecDeque<(u64, u64)>,
    /// The newest ranges wait here, to be moved together: the others are far away in memory.
    latest: Few<(u64, u64), LATEST>,
    /// Nothing is known of the segments before.
    known_from: u64,
}

impl Retransmitted {
    /// Segment `seq`, above all earlier ones, is acknowledged and was retransmitted.
    pub fn push(&mut self, seq: u64) {
        match self.latest.back_mut() {
            Some(last) if last.1 == seq => last.1 += 1,
            _ => {
                if self.latest.len() == LATEST {
                    self.move_waiting();
                }
                self.latest.push_back((seq, seq + 1));
            }
        }
    }

    /// Moves what waits, but for the newest, which may grow yet, and forgets what counts no more.
    fn move_waiting(&mut self) {
        while self.latest.len() > 1 {
            self.earlier.extend(self.latest.pop_front());
        }
        let forgotten = self.forgotten();
        if let Some((_, end)) = self.earlier.drain(..forgotten).next_back() {
            self.known_from = end;
        }
    }

    /// How many of the earlier ranges count no more.
    fn forgotten(&self) -> usize {
        (self.earlier.len() + self.latest.len()).saturating_sub(RANGES_MAX)
    }

    /// Whether the acknowledged segment `seq` was retransmitted; `None` if that is forgotten.
    pub fn get(&self, seq: u64) -> Option<bool> {
        let last_forgotten = self.forgotten().checked_sub(1);
        let end = last_forgotten.map_or(self.known_from, |last| self.earlier[last].1);
        let next = self.earlier.partition_point(|&(_, end)| end <= seq);
        let ranges = self.earlier.get(next).into_iter().chain(self.latest.iter());
        let within = ranges.into_iter().any(|&(start, end)| start <= seq && seq < end);
        (seq >= end).then_some(within)
    }
}

/// Reports of duplicates, and whether the network makes duplicates of its own (RFC 3708 section 3).
#[derive(Clone, Copy, Debug, Default)]
pub struct Duplicates {
    reported: u32,
    /// Duplicates arrived that no retransmission explains.
    network: bool,
}

impl Duplicates {
    /// A duplicate was reported after `retransmissions` in all; whether the segment was `retransmitted`,
    /// if that is known. Returns whether a retransmission may be the cause: of more duplicates than
    /// retransmissions it is not (as in Linux's `tcp_dsack_seen`), and not of a segment sent once.
    pub fn on_report(&mut self, retransmitted: Option<bool>, retransmissions: u64) -> bool {
        self.reported = self.reported.saturating_add(1);
        let explained = retransmitted != Some(false) && u64::from(self.reported) <= retransmissions;
        self.network |= !explained;
        explained
    }

    /// Whether the network was seen to duplicate: then reports tell nothing of retransmissions any more.
    pub fn by_network(self) -> bool {
        self.network
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmitted_segments_are_known_up_to_a_number_of_ranges() {
        let mut segments = Retransmitted::default();
        for seq in (0..2 * RANGES_MAX as u64).step_by(2).chain([100, 101, 102]) {
            segments.push(seq);
        }
        let known = [0, 1, 2, 3, 62, 99, 100, 102, 103].map(|seq| segments.get(seq));
        let (no, yes) = (Some(false), Some(true));
        assert_eq!(known, [None, no, yes, no, yes, no, yes, yes, no]);
    }

    #[test]
    fn more_duplicates_than_retransmissions_are_the_networks() {
        let mut duplicates = Duplicates::default();
        assert!(duplicates.on_report(None, 1) && !duplicates.by_network());
        assert!(!duplicates.on_report(None, 1) && duplicates.by_network());
        assert!(duplicates.on_report(Some(true), 3) && duplicates.by_network());
        assert!(!duplicates.on_report(Some(false), 9));
    }
}
