//! Where segments lie in the bytes of their flow. The simulator numbers segments; all are full but those that end
//! what an application has written.
use std::collections::VecDeque;

/// Most short segments that are remembered.
const SHORT_MAX: usize = 1 << 21;

/// The first byte of every segment that was sent.
#[derive(Clone, Debug)]
pub struct Positions {
    /// Bytes of a full segment.
    full: u64,
    /// Segments and their first bytes, ascending: from each to the next all are full but the last.
    known: VecDeque<(u64, u64)>,
    /// The next new segment.
    next: (u64, u64),
}

impl Positions {
    /// Nothing sent.
    pub fn new(full: u64) -> Self {
        Self { full, known: VecDeque::from([(0, 0)]), next: (0, 0) }
    }

    /// A segment leaves, for the first time or again.
    pub fn sent(&mut self, seq: u64, bytes: u64) {
        if seq != self.next.0 {
            return;
        }
        self.next = (seq + 1, self.next.1 + bytes);
        if bytes != self.full {
            if self.known.len() == SHORT_MAX {
                self.known.pop_front();
            }
            self.known.push_back(self.next);
        }
    }

    /// The first byte of a segment. One that was not sent is taken to follow full ones.
    pub fn of(&self, seq: u64) -> u64 {
        if seq >= self.next.0 {
            return self.next.1 + (seq - self.next.0) * self.full;
        }
        let after = self.known.partition_point(|one| one.0 <= seq);
        let (first, byte) = self.known[after.saturating_sub(1)];
        (byte + seq * self.full).saturating_sub(first * self.full)
    }

    /// Bytes of a segment.
    pub fn len_of(&self, seq: u64) -> u64 {
        self.of(seq + 1) - self.of(seq)
    }

    /// The next new segment and its first byte.
    pub fn next(&self) -> (u64, u64) {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackademy::rng::Rng;

    #[test]
    fn every_segment_begins_where_the_one_before_ended() {
        let mut rng = Rng::new(5);
        let mut positions = Positions::new(1448);
        let mut starts = vec![0];
        for seq in 0..2000_u64 {
            let bytes = if rng.below(3) == 0 { rng.below(1448) } else { 1448 };
            positions.sent(seq, bytes);
            positions.sent(seq.saturating_sub(rng.below(5)), 7); // again
            starts.push(starts[seq as usize] + bytes);
        }
        for (seq, &start) in starts.iter().enumerate() {
            assert_eq!(positions.of(seq as u64), start);
        }
        assert_eq!(positions.next(), (2000, starts[2000]));
        assert_eq!(positions.len_of(77), starts[78] - starts[77]);
        assert_eq!(positions.of(2003), starts[2000] + 3 * 1448);
    }
}
