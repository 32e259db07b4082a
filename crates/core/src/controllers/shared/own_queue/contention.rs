//! Contention: a sign that others want the link, which flows of this kind seldom leave among themselves: a queue that
//! stays longer than theirs. A policy may be told to correct the law only there.
use crate::units::{Span, Time};

/// A queue of more than so many times what the target makes at the best rate of a minute is long.
const LONG: f64 = 3.0;
/// Intervals with a long queue, of at least this number and over at least this time, are a sign. What joining flows
/// and the start leave is shorter by then, as is a long queue among flows that drain.
const STAYS_INTERVALS: u32 = 10;
const STAYS: Span = Span::from_millis(1000);
/// A sign holds for so long, or for so many intervals, whichever is longer: short buffers empty when a loss-based
/// flow reduces its window, and fill again.
const HOLDS: Span = Span::from_millis(10_000);
const HOLDS_INTERVALS: u32 = 100;

/// How long the queue has been long, and when there was the latest sign.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contention {
    /// Of the latest intervals, those in a row with a long queue: the end of the first, and their number.
    long: Option<(Time, u32)>,
    /// The latest sign, and the number of intervals since.
    sign: Option<(Time, u32)>,
}

/// Whether this smallest queueing delay of an interval is a long one where the target makes the `usual` one.
pub fn is_long(queue: Span, usual: Span) -> bool {
    queue.0 as f64 > LONG * usual.0 as f64
}

impl Contention {
    /// Whether a sign holds at the end of an interval, whose queue was long or not.
    pub fn on_interval(&mut self, now: Time, is_long: bool) -> bool {
        if self.stays_long(now, is_long) {
            self.sign = Some((now, 0));
            return true;
        }
        let Some((at, intervals)) = &mut self.sign else { return false };
        *intervals = intervals.saturating_add(1);
        now.since(*at) <= HOLDS || *intervals <= HOLDS_INTERVALS
    }

    /// Whether the queue has been long for long enough.
    fn stays_long(&mut self, now: Time, is_long: bool) -> bool {
        let (since, intervals) = self.long.unwrap_or((now, 0));
        self.long = is_long.then_some((since, intervals.saturating_add(1)));
        self.long.is_some_and(|(since, intervals)| {
            intervals >= STAYS_INTERVALS && now.since(since) >= STAYS
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether there is contention after intervals of `step_ms` with these queues in ms, where 2 ms are usual.
    fn after(step_ms: u64, queues_ms: &[u64]) -> bool {
        let mut contention = Contention::default();
        let mut found = false;
        for (index, queue_ms) in (1..).zip(queues_ms) {
            let now = Time(0) + Span::from_millis(step_ms) * index;
            let [queue, usual] = [*queue_ms, 2].map(Span::from_millis);
            found = contention.on_interval(now, is_long(queue, usual));
        }
        found
    }

    #[test]
    fn there_is_none_before_a_sign() {
        assert!(!after(40, &[]));
        assert!(!after(40, &[6; 1000]), "three times the usual queue is no long one");
    }

    #[test]
    fn a_long_queue_is_a_sign_after_a_second_and_ten_intervals() {
        assert!(!after(40, &[7; 25]), "the first of them ended 0.96 s ago");
        assert!(after(40, &[7; 26]));
        assert!(!after(500, &[7; 9]));
        assert!(after(500, &[7; 10]));
    }

    #[test]
    fn a_queue_that_empties_once_begins_anew() {
        let mut queues = vec![7; 20];
        queues.push(6);
        queues.extend([7; 25]);
        assert!(!after(40, &queues));
        queues.push(7);
        assert!(after(40, &queues));
    }

    #[test]
    fn a_sign_holds_for_ten_seconds_or_a_hundred_intervals() {
        let calm = |intervals: usize| {
            let mut told = vec![7; 26];
            told.resize(26 + intervals, 0);
            told
        };
        assert!(after(40, &calm(250)), "10 s");
        assert!(!after(40, &calm(251)));
        assert!(after(500, &calm(100)), "a hundred intervals are 50 s");
        assert!(!after(500, &calm(101)));
    }
}
