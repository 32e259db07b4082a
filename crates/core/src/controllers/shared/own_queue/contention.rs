//! Contention: signs that others want the link, which flows of this kind do not leave among themselves: a queue
//! longer than theirs, and losses. A policy may be told to correct the law only there.
use crate::controllers::shared::sensing::signals::Interval;
use crate::units::{Span, Time};

/// A queue of more than so many times what the target makes at the best rate of a minute is a sign, ...
const LONG: f64 = 3.0;
/// ... and so are losses of more than this part.
const LOSS: f64 = 0.001;
/// A sign holds for so long, or for so many intervals, whichever is longer.
const HOLDS: Span = Span::from_millis(2000);
const HOLDS_INTERVALS: u32 = 20;

/// When there was the latest sign.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contention {
    seen: Option<Time>,
    /// Intervals since.
    since: u32,
}

impl Contention {
    /// Whether a sign holds at the end of an interval with this smallest queueing delay, where the target makes
    /// the `usual` one.
    pub fn on_interval(&mut self, interval: &Interval, queue: Span, usual: Span) -> bool {
        if queue.0 as f64 > LONG * usual.0 as f64 || interval.loss_ratio > LOSS {
            (self.seen, self.since) = (Some(interval.now), 0);
            return true;
        }
        self.since = self.since.saturating_add(1);
        let recent = |seen: Time| interval.now.since(seen) <= HOLDS;
        self.seen.is_some_and(|seen| recent(seen) || self.since <= HOLDS_INTERVALS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether there is contention after intervals of `step_ms` with these queues in ms and loss ratios.
    fn after(step_ms: u64, intervals: &[(u64, f64)]) -> bool {
        let mut contention = Contention::default();
        let mut found = false;
        for (index, (queue_ms, loss_ratio)) in (1..).zip(intervals) {
            let now = Time(0) + Span::from_millis(step_ms) * index;
            let interval = Interval { now, loss_ratio: *loss_ratio, ..Interval::default() };
            let queue = Span::from_millis(*queue_ms);
            found = contention.on_interval(&interval, queue, Span::from_millis(2));
        }
        found
    }

    #[test]
    fn there_is_none_before_a_sign() {
        assert!(!after(40, &[]));
        assert!(!after(40, &[(6, 0.0), (0, 0.001)]));
    }

    #[test]
    fn a_queue_beyond_three_usual_ones_and_a_thousandth_lost_are_signs() {
        assert!(after(40, &[(7, 0.0)]));
        assert!(after(40, &[(0, 0.0011)]));
    }

    #[test]
    fn a_sign_holds_for_two_seconds_or_twenty_intervals() {
        let calm = |intervals: usize| {
            let mut told = vec![(7, 0.0)];
            told.resize(1 + intervals, (0, 0.0));
            told
        };
        assert!(after(40, &calm(50)), "2 s");
        assert!(!after(40, &calm(51)));
        assert!(after(500, &calm(20)), "twenty intervals are 10 s");
        assert!(!after(500, &calm(21)));
    }
}
