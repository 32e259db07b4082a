//! Whether an answer to loss was for nothing: by timestamps (Eifel, RFC 3522) or by reports of
//! duplicates (RFC 3708), with Linux's rules for when to take it back.
use crate::units::Time;
use std::collections::VecDeque;

/// Most ranges of retransmitted segments that [`Retransmitted`] keeps.
const RANGES_MAX: usize = 32;

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
    /// Disjoint, sorted, non-touching [start, end).
    ranges: VecDeque<(u64, u64)>,
    /// Nothing is known of the segments before.
    known_from: u64,
}

impl Retransmitted {
    /// Segment `seq`, above all earlier ones, is acknowledged and was retransmitted.
    pub fn push(&mut self, seq: u64) {
        match self.ranges.back_mut() {
            Some(last) if last.1 == seq => last.1 += 1,
            _ => self.ranges.push_back((seq, seq + 1)),
        }
        if self.ranges.len() > RANGES_MAX
            && let Some((_, end)) = self.ranges.pop_front()
        {
            self.known_from = end;
        }
    }

    /// Whether the acknowledged segment `seq` was retransmitted; `None` if that is forgotten.
    pub fn get(&self, seq: u64) -> Option<bool> {
        let next = self.ranges.partition_point(|&(_, end)| end <= seq);
        let within = self.ranges.get(next).is_some_and(|&(start, _)| start <= seq);
        (seq >= self.known_from).then_some(within)
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
