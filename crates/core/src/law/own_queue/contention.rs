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
/// It lapses without a loss or mark for so long, and for so many times what CUBIC takes from one reduction to the next:
/// flows that fill a buffer until they lose would have filled it, so that those that keep the queue long are of this kind.
const QUIET: Span = Span::from_millis(20_000);
const QUIET_PERIODS: f64 = 4.0;
/// CUBIC's period with a window of w packets is (w · (1 - beta) / C)^(1/3) seconds (RFC 9438 section 4.2).
const CUBIC_PER_PACKET: f64 = 0.3 / 0.4;
/// A loss or mark, or a queue of so many times the one at which it lapsed, lets there be signs again.
const GROWN: f64 = 1.5;

/// What an interval says of others.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub now: Time,
    /// Smallest queueing delay, and whether [`is_long`] says that it is a long one.
    pub queue: Span,
    pub is_long: bool,
    /// Whether packets were lost or marked.
    pub is_reduced: bool,
    /// The window, packets.
    pub cwnd: f64,
}

/// How long the queue has been long, and when there was the latest sign.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contention {
    /// Of the latest intervals, those in a row with a long queue: the end of the first, and their number.
    long: Option<(Time, u32)>,
    /// The latest sign, and the number of intervals since.
    sign: Option<(Time, u32)>,
    /// The latest loss or mark since signs began, or when they began.
    quiet_since: Option<Time>,
    /// The queue at which signs lapsed.
    lapsed: Option<Span>,
}

/// Whether this smallest queueing delay of an interval is a long one where the target makes the `usual` one.
pub fn is_long(queue: Span, usual: Span) -> bool {
    queue.0 as f64 > LONG * usual.0 as f64
}

impl Contention {
    /// Whether a sign holds at the end of an interval.
    pub fn on_interval(&mut self, seen: &Seen) -> bool {
        let is_grown = |lapsed: Span| seen.queue.0 as f64 > GROWN * lapsed.0 as f64;
        if self.lapsed.is_some_and(|lapsed| !seen.is_reduced && !is_grown(lapsed)) {
            return false;
        }
        self.lapsed = None;
        if !self.has_sign(seen.now, seen.is_long) {
            self.quiet_since = None;
            return false;
        }
        let since = self.quiet_since.filter(|_| !seen.is_reduced).unwrap_or(seen.now);
        self.quiet_since = Some(since);
        let periods = QUIET_PERIODS * libm::cbrt(CUBIC_PER_PACKET * seen.cwnd);
        if seen.now.since(since) > QUIET.max(Span::from_secs_f64(periods)) {
            *self = Self { lapsed: Some(seen.queue), ..Self::default() };
            return false;
        }
        true
    }

    /// Whether there is one, whatever flows made the queue.
    fn has_sign(&mut self, now: Time, is_long: bool) -> bool {
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

    /// Intervals of a flow for which a queue of 2 ms is usual.
    #[derive(Default)]
    struct Told {
        contention: Contention,
        now_ms: u64,
    }

    impl Told {
        /// Whether there is contention after an interval.
        fn interval(&mut self, step_ms: u64, queue_ms: u64, is_reduced: bool, cwnd: f64) -> bool {
            self.now_ms += step_ms;
            let now = Time(0) + Span::from_millis(self.now_ms);
            let [queue, usual] = [queue_ms, 2].map(Span::from_millis);
            let is_long = is_long(queue, usual);
            self.contention.on_interval(&Seen { now, queue, is_long, is_reduced, cwnd })
        }

        /// When contention has ended while the queue stays 10 ms, with a loss in each so many intervals of 100 ms.
        fn ends_ms(&mut self, losing: usize, cwnd: f64) -> Option<u64> {
            let is_reduced = |index: usize| losing > 0 && index.is_multiple_of(losing);
            let mut had = false;
            (1..2000).find(|&index| {
                let has = self.interval(100, 10, is_reduced(index), cwnd);
                let ended = had && !has;
                had |= has;
                ended
            })?;
            Some(self.now_ms)
        }
    }

    /// Whether there is contention after intervals of `step_ms` with these queues in ms, and a window that no queue outlasts.
    fn after(step_ms: u64, queues_ms: &[u64]) -> bool {
        let mut told = Told::default();
        queues_ms.iter().fold(false, |_, &queue_ms| told.interval(step_ms, queue_ms, false, 1e6))
    }

    #[test]
    fn a_sign_lapses_where_nothing_is_lost_for_four_periods_of_cubic() {
        // It begins after 1.1 s. CUBIC's period is 4.2 s with 100 packets, and 9.1 s with 1000.
        assert_eq!(Told::default().ends_ms(0, 100.0), Some(1100 + 20_100));
        assert_eq!(Told::default().ends_ms(0, 1000.0), Some(1100 + 36_400));
        assert_eq!(Told::default().ends_ms(300, 100.0), Some(1100 + 20_100));
        assert_eq!(Told::default().ends_ms(150, 100.0), None);
    }

    #[test]
    fn a_sign_that_lapsed_returns_with_a_loss_or_a_longer_queue() {
        for (queue_ms, is_reduced, returns) in
            [(10, false, false), (15, false, false), (16, false, true), (10, true, true)]
        {
            let mut told = Told::default();
            told.ends_ms(0, 10.0);
            told.interval(100, queue_ms, is_reduced, 10.0);
            let has = (0..10).fold(false, |_, _| told.interval(100, queue_ms, false, 10.0));
            assert_eq!(has, returns, "{queue_ms} {is_reduced}");
        }
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
