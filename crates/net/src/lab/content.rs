//! What flows carry: bytes that the receiver can check without having seen them.
use ackademy::rng::Rng;

/// Length of the repeated text: a prime, so that it is out of step with segments and buffers.
const PERIOD: usize = 262_139;

/// One long random text; each flow reads it, round and round, from a place of its own. Bytes lost,
/// repeated, swapped or of another flow do not match.
#[derive(Debug)]
pub struct Content {
    /// Twice the period, so that any part of it up to a period long lies in one piece.
    text: Vec<u8>,
}

impl Content {
    /// The same for sender and receiver of a run.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut text: Vec<u8> =
            std::iter::repeat_with(|| rng.next_u64() as u8).take(PERIOD).collect();
        text.extend_from_within(..);
        Self { text }
    }

    /// At most `most` bytes of flow `flow`, from `offset` on; at least one if `most` is not zero.
    pub fn part(&self, flow: usize, offset: u64, max: usize) -> &[u8] {
        let start = (offset + flow as u64 * 7919) % PERIOD as u64;
        &self.text[start as usize..][..max.min(PERIOD)]
    }

    /// Whether `bytes` are what flow `flow` carries from `offset` on.
    pub fn matches(&self, flow: usize, offset: u64, bytes: &[u8]) -> bool {
        let mut at = offset;
        bytes.chunks(PERIOD).all(|chunk| {
            let same = self.part(flow, at, chunk.len()) == chunk;
            at += chunk.len() as u64;
            same
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_s_bytes_match_at_their_place_and_nowhere_else() {
        let content = Content::new(1);
        let offset = PERIOD as u64 * 3 - 10;
        let bytes = content.part(4, offset, 100).to_vec();
        assert!(content.matches(4, offset, &bytes));
        assert!(!content.matches(4, offset + 1, &bytes), "shifted");
        assert!(!content.matches(5, offset, &bytes), "another flow's");
        let mut flipped = bytes;
        flipped[50] ^= 1;
        assert!(!content.matches(4, offset, &flipped), "flipped");
    }

    #[test]
    fn content_longer_than_the_period_goes_on_where_it_ended() {
        let content = Content::new(1);
        let mut bytes = content.part(0, 0, PERIOD).to_vec();
        bytes.extend_from_slice(content.part(0, PERIOD as u64, 99));
        assert!(content.matches(0, 0, &bytes));
    }
}
