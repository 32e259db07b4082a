//! Round trips counted by packets, and maxima over the last few of them.
use crate::units::Time;

/// Counts round trips: one begins with the acknowledgement of a packet sent after the last began.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    count: usize,
    began: Time,
}

impl Rounds {
    /// Rounds that have begun.
    pub fn count(&self) -> usize {
        self.count
    }

    /// A packet sent at `sent_at` was acknowledged at `now`: whether that begins a round.
    pub fn on_ack(&mut self, now: Time, sent_at: Time) -> bool {
        if self.count > 0 && sent_at < self.began {
            return false;
        }
        self.count += 1;
        self.began = now;
        true
    }
}

/// The maximum over the last `N` rounds.
#[derive(Clone, Debug)]
pub struct RoundMax<const N: usize> {
    /// Maximum of round r in place r mod N.
    rounds: [u64; N],
    current: usize,
}

impl<const N: usize> Default for RoundMax<N> {
    fn default() -> Self {
        Self { rounds: [0; N], current: 0 }
    }
}

impl<const N: usize> RoundMax<N> {
    /// Takes in `value`, seen in round number `round`; rounds do not go back.
    pub fn update(&mut self, round: usize, value: u64) {
        for fresh in self.current + 1..=round.min(self.current + N) {
            self.rounds[fresh % N] = 0;
        }
        if round > self.current + N {
            self.rounds = [0; N];
        }
        self.current = round;
        let here = &mut self.rounds[round % N];
        *here = value.max(*here);
    }

    /// The maximum; zero before the first value.
    pub fn max(&self) -> u64 {
        self.rounds.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_lasts_until_a_packet_sent_in_it_is_acknowledged() {
        let mut rounds = Rounds::default();
        assert!(rounds.on_ack(Time(100), Time(0)));
        assert!(!rounds.on_ack(Time(150), Time(99)));
        assert!(rounds.on_ack(Time(200), Time(100)));
        assert_eq!(rounds.count(), 2);
    }

    #[test]
    fn a_maximum_leaves_with_its_round() {
        let mut filter = RoundMax::<3>::default();
        for (round, value, expected) in [(1, 9, 9), (2, 5, 9), (3, 4, 9), (4, 1, 5), (5, 1, 4)] {
            filter.update(round, value);
            assert_eq!(filter.max(), expected, "round {round}");
        }
        filter.update(50, 2);
        assert_eq!(filter.max(), 2);
    }
}
