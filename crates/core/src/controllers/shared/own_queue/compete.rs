//! Competition: where the queue stays far longer than flows of this kind keep it and never drains, a flow that
//! fills buffers is present, and a target of a few packets would starve. The window then follows CUBIC's
//! curve (RFC 9438) until the queue is nearly empty once.
use crate::controllers::shared::sensing::signals::Interval;
use crate::units::{Span, Time};

/// A starved flow sees competition in a queue of so many times what its target makes at the best rate of a
/// minute, for so many intervals; ...
const LONG: (f64, u32) = (24.0, 20);
/// ... for so long after it has ended, in a shorter queue, and sooner.
const LONG_AGAIN: (f64, u32) = (4.0, 4);
const AGAIN: Span = Span::from_millis(10_000);
/// It must not lose more than this.
const LOSS_MAX: f64 = 0.01;
/// It ends when the queue falls below this part of the longest of its time.
const EMPTY: f64 = 0.1;
/// CUBIC's constants (RFC 9438): packets per cubic second, and what a loss leaves.
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
/// Growth per round trip that gives a flow of this reduction the share of Reno's (RFC 9438 section 4.3).
const RENO_GROWTH: f64 = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);
/// Losses of so many intervals are one event.
const EVENT: u32 = 2;

/// A window on CUBIC's curve.
#[derive(Clone, Copy, Debug)]
struct Curve {
    since: Time,
    before: f64,
    /// What Reno would have.
    reno: f64,
    /// Intervals since a reduction.
    calm: u32,
    /// Longest of the intervals' smallest queueing delays.
    longest: Span,
}

/// What an interval says beside its own numbers.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Smallest round trip of a minute: that of 10 s may never have met an empty queue.
    pub base: Span,
    /// Queueing delay that the target makes at the best rate of a minute.
    pub usual: Span,
    /// Whether the rate is far below that.
    pub starved: bool,
    /// Whether packets were lost.
    pub lost: bool,
}

/// Whether the flow competes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Competition {
    suspicious: u32,
    curve: Option<Curve>,
    /// When the queue last ended it.
    ended: Option<Time>,
    /// Intervals spent in it.
    pub intervals: u64,
}

impl Competition {
    /// It is over.
    pub fn end(&mut self) {
        (self.curve, self.suspicious) = (None, 0);
    }

    /// A drain took the round trip from `before` to `least`.
    pub fn on_drain(&mut self, base: Span, before: Span, least: Span) {
        let queue = |rtt: Span| rtt.0.saturating_sub(base.0) as f64;
        if queue(least) <= 2.0 * EMPTY * queue(before) {
            self.end();
        }
    }

    /// The window that an interval asks for; `None` without competition.
    pub fn on_interval(&mut self, interval: &Interval, cwnd: f64, scene: &Scene) -> Option<f64> {
        let queue = Span(interval.rtt_min.0.saturating_sub(scene.base.0));
        let Some(mut curve) = self.curve else {
            // A competitor that was here a moment ago is believed sooner to be here again.
            let again = self.ended.is_some_and(|at| interval.now.since(at) < AGAIN);
            let (factor, intervals) = if again { LONG_AGAIN } else { LONG };
            let long = queue.0 as f64 > factor * scene.usual.0 as f64;
            let clean = interval.loss_ratio < LOSS_MAX;
            self.suspicious =
                if long && clean && (again || scene.starved) { self.suspicious + 1 } else { 0 };
            if self.suspicious >= intervals {
                self.suspicious = 0;
                self.curve = Some(Curve {
                    since: interval.now,
                    before: cwnd,
                    reno: cwnd,
                    calm: EVENT,
                    longest: queue,
                });
            }
            return None;
        };
        curve.longest = curve.longest.max(queue);
        if queue.0 as f64 <= EMPTY * curve.longest.0 as f64 {
            self.ended = Some(interval.now);
            self.end();
            return None;
        }
        self.intervals += 1;
        curve.calm += 1;
        let next = if scene.lost && curve.calm > EVENT {
            curve = Curve { since: interval.now, before: cwnd, calm: 0, ..curve };
            curve.reno = CUBIC_BETA * cwnd;
            curve.reno
        } else {
            curve.reno += RENO_GROWTH;
            let k = libm::cbrt(curve.before * (1.0 - CUBIC_BETA) / CUBIC_C);
            let at = interval.now.since(curve.since) + interval.srtt;
            let distance = at.as_secs_f64() - k;
            let cubic = curve.before + CUBIC_C * distance * distance * distance;
            cubic.max(curve.reno).clamp(cwnd, 1.5 * cwnd)
        };
        self.curve = Some(curve);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Span = Span::from_millis(40);
    const USUAL: Span = Span::from_millis(2);

    /// The windows that intervals of 0.1 s with these queues ask for, from the second `from` on.
    fn windows(
        competition: &mut Competition,
        from: f64,
        queues_ms: &[u64],
        starved: bool,
        lost: bool,
    ) -> Vec<Option<f64>> {
        let mut cwnd = 5.0;
        let window = |(index, queue_ms): (usize, &u64)| {
            let rtt_min = BASE + Span::from_millis(*queue_ms);
            let now = Time::from_secs_f64(from + 0.1 * index as f64);
            let interval =
                Interval { now, rtt_min, srtt: rtt_min, base: BASE, ..Interval::default() };
            let scene = Scene { base: BASE, usual: USUAL, starved, lost };
            let next = competition.on_interval(&interval, cwnd, &scene);
            cwnd = next.unwrap_or(cwnd);
            next
        };
        queues_ms.iter().enumerate().map(window).collect()
    }

    #[test]
    fn a_starved_flow_competes_after_a_long_queue_has_stayed() {
        let mut competition = Competition::default();
        let asked = windows(&mut competition, 0.0, &[60; 200], true, false);
        assert!(asked[..20].iter().all(Option::is_none) && asked[20].is_some());
        assert!(asked[199] > Some(100.0), "{:?}", asked[199]);
    }

    #[test]
    fn neither_a_long_queue_alone_nor_a_short_one_of_a_starved_flow_is_competition() {
        for (queue_ms, starved) in [(60, false), (40, true)] {
            let asked = windows(&mut Competition::default(), 0.0, &[queue_ms; 200], starved, false);
            assert!(asked.iter().all(Option::is_none));
        }
    }

    #[test]
    fn a_queue_that_is_nearly_empty_once_ends_it() {
        let mut competition = Competition::default();
        windows(&mut competition, 0.0, &[60; 30], true, false);
        assert_eq!(windows(&mut competition, 3.0, &[5], true, false), [None]);
        let after = windows(&mut competition, 3.1, &[10; 10], false, false);
        assert!(after.iter().any(Option::is_some), "it is believed sooner to be here again");
    }

    #[test]
    fn a_drain_that_empties_the_queue_ends_it_and_one_that_does_not_leaves_it() {
        for (least_ms, ends) in [(44, true), (70, false)] {
            let mut competition = Competition::default();
            windows(&mut competition, 0.0, &[60; 30], true, false);
            let [before, least] = [100, least_ms].map(Span::from_millis);
            competition.on_drain(BASE, before, least);
            assert_eq!(competition.curve.is_none(), ends);
        }
    }

    #[test]
    fn losses_of_one_event_take_three_tenths_once() {
        let mut competition = Competition::default();
        let before = windows(&mut competition, 0.0, &[60; 100], true, false)[99].unwrap();
        competition.curve.as_mut().unwrap().reno = before;
        let lost = windows(&mut competition, 10.0, &[60; 3], true, true);
        let first = lost[0].unwrap();
        assert!((first - 0.7 * 5.0).abs() < 1e-9, "{first}");
        assert!(lost[1].unwrap() >= first && lost[2].unwrap() >= first);
    }
}
