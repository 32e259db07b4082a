//! Slow start that ends when round trips grow: Google QUIC's `HybridSlowStart`, which kept of
//! `HyStart` (Ha and Rhee 2011) the delay and left the ACK train out.
use super::Rounds;
use crate::control::Ack;
use crate::law::hystart::{SAMPLES_MIN, WINDOW_MIN, delay_threshold};
use crate::units::Span;

/// Looks at the first packets of each round.
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    rounds: Rounds,
    /// Bytes acknowledged in this round.
    acked: u64,
    /// Smallest sample among them; zero for none.
    round_min: Span,
    judged: bool,
    found: bool,
}

impl HyStart {
    /// Whether slow start is over, with a window of `packets`, each of `packet` bytes.
    pub fn on_ack(&mut self, ack: &Ack, packets: u64, packet: u64) -> bool {
        if self.rounds.on_ack(ack.now, ack.sent_at) {
            self.acked = 0;
            self.round_min = Span::ZERO;
            self.judged = false;
        }
        if !self.judged && ack.rtt > Span::ZERO {
            self.acked = self.acked.saturating_add(ack.acked.0);
            let smaller = self.round_min == Span::ZERO || ack.rtt < self.round_min;
            self.round_min = if smaller { ack.rtt } else { self.round_min };
            if self.acked >= SAMPLES_MIN * packet {
                self.judged = true;
                self.found |= self.round_min > ack.min_rtt + delay_threshold(ack.min_rtt);
            }
        }
        self.found && packets >= WINDOW_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Time};

    /// The first `packets` packets of a round with round trips of `rtt_ms` over a minimum of 40 ms.
    fn exits(hystart: &mut HyStart, rtt_ms: u64, packets: u64, window: u64) -> bool {
        (0..packets).fold(false, |_, _| hystart.on_ack(&ack(rtt_ms), window, 1000))
    }

    fn ack(rtt_ms: u64) -> Ack {
        Ack {
            now: Time(100),
            rtt: Span::from_millis(rtt_ms),
            min_rtt: Span::from_millis(40),
            acked: Bytes(1000),
            ..Ack::default()
        }
    }

    #[test]
    fn eight_samples_an_eighth_above_the_minimum_end_slow_start() {
        assert!(!exits(&mut HyStart::default(), 45, 8, 20));
        assert!(!exits(&mut HyStart::default(), 46, 7, 20));
        assert!(exits(&mut HyStart::default(), 46, 8, 20));
    }

    #[test]
    fn one_short_round_trip_among_the_eight_keeps_slow_start() {
        let mut hystart = HyStart::default();
        assert!(!exits(&mut hystart, 80, 7, 20));
        assert!(!exits(&mut hystart, 41, 1, 20));
        assert!(!exits(&mut hystart, 80, 12, 20), "the round was judged");
    }

    #[test]
    fn below_sixteen_packets_the_end_waits() {
        let mut hystart = HyStart::default();
        assert!(!exits(&mut hystart, 80, 8, 15));
        assert!(exits(&mut hystart, 80, 1, 16));
    }
}
