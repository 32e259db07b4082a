//! The window that an overload leaves. It rises again soon, unless the overload is known: without a queue, and with a
//! window much larger than what was delivered, as the one before. So it is behind a policer, which lets more through
//! only until its bucket is empty.
use super::CWND_MIN;
use crate::sensing::signals::Interval;
use crate::units::Span;

/// Window after an overload, as a part of what a round trip delivered before.
const AFTER_OVERLOAD: f64 = 0.92;
/// Intervals below the window that lost before the ceiling rises, and by what factor its steps grow.
const CALM: u32 = 24;
const FASTER: f64 = 1.25;
/// It rises where so much of it is used.
const USED: f64 = 0.95;
/// A queue of less than this part of the base does not count.
const QUEUE_LITTLE: f64 = 0.05;
/// What a round trip delivers is the same as before within these parts ...
const SAME: (f64, f64) = (0.8, 1.15);
/// ... and an overload is known that delivers the same from a window of at least so many times that.
const EXCESS: f64 = 1.25;
/// With less, down to this, one that is known stays so.
const EXCESS_LEAST: f64 = 1.05;
/// The ceiling rests for so many times as long as a known overload took to come again, at most this long.
const LONGER: u64 = 2;
const REST_MAX: Span = Span::from_millis(10_000);
/// Meanwhile it rises by a packet every so many intervals where less than this part of the overload is delivered: a small
/// window delivers less than its packets in a round trip, since acknowledgements are delayed.
const CREEP: (u32, f64) = (4, 0.85);
/// Then it rises to so many times what the known overload delivered.
const BEYOND_MAX: f64 = 2.0;

/// An overload that came again.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// What a round trip delivered, packets.
    delivered: f64,
    /// How long the ceiling rests.
    rest: Span,
    /// Intervals with a ceiling well above it.
    beyond: u32,
    /// Whether it has just come again, and what is delivered is still to be compared.
    fresh: bool,
}

/// Keeps the window below what was too much.
#[derive(Clone, Debug)]
pub struct Ceiling {
    /// Packets.
    window: f64,
    step: f64,
    /// Intervals without an answer since it was set, and the time since then.
    calm: u32,
    since: Span,
    /// What a round trip delivered at the latest overload, packets.
    overload: f64,
    known: Option<Known>,
}

impl Default for Ceiling {
    fn default() -> Self {
        let (calm, since, overload, known) = (0, Span::ZERO, 0.0, None);
        Self { window: f64::INFINITY, step: 1.0, calm, since, overload, known }
    }
}

impl Ceiling {
    /// Another interval has passed.
    pub fn pass(&mut self, interval: &Interval) {
        self.since += interval.duration;
    }

    /// After an overload at which a round trip `delivered` so much from a window of `cwnd` with a `queue` on the mean: the window
    /// that is left.
    pub fn set(&mut self, delivered: f64, cwnd: f64, queue: Span, interval: &Interval) -> f64 {
        let before = self.overload.max(1.0);
        let same = is_same(delivered, before) && is_little(queue, interval);
        self.known = if same && cwnd >= EXCESS * before {
            Some(Known { delivered, rest: self.longer(), beyond: 0, fresh: false })
        } else {
            self.known.filter(|_| same && cwnd > EXCESS_LEAST * before)
        };
        self.stay_below(delivered, cwnd)
    }

    /// The window that is left if losses with this window and queue are those of the known overload, come again.
    pub fn come_back(&mut self, cwnd: f64, queue: Span, interval: &Interval) -> Option<f64> {
        let rest = self.longer();
        let known = self.known.as_mut()?;
        let delivered = known.delivered;
        if cwnd < EXCESS * delivered || !is_little(queue, interval) {
            return None;
        }
        (known.rest, known.beyond, known.fresh) = (rest, 0, true);
        Some(self.stay_below(delivered, f64::INFINITY))
    }

    /// The interval after that has `delivered` so much in a round trip, from a window that lost: if it is more than what is
    /// known, the path is another, and so is the window that is left.
    pub fn compare(&mut self, delivered: f64) -> Option<f64> {
        let known = self.known.as_mut()?;
        if !std::mem::take(&mut known.fresh) || delivered <= SAME.1 * known.delivered {
            return None;
        }
        self.known = None;
        Some(self.stay_below(delivered, f64::INFINITY))
    }

    /// An interval without an answer has ended, in which a window of `cwnd` was used and a round trip `delivered` so much
    /// on the mean of the latest: what the window may be.
    pub fn raise(&mut self, cwnd: f64, delivered: f64) -> f64 {
        self.calm += 1;
        if self.calm <= CALM || cwnd < USED * self.window {
            return self.window;
        }
        if let Some(known) = self.known.filter(|known| self.since < known.rest) {
            let (every, least) = CREEP;
            let more =
                delivered < least * known.delivered && self.window < SAME.1 * known.delivered;
            if more && self.calm.is_multiple_of(every) {
                self.window += 1.0;
            }
            return self.window;
        }
        self.window += self.step;
        self.step *= FASTER;
        if let Some(known) = &mut self.known {
            self.window = self.window.min(BEYOND_MAX * known.delivered);
            known.beyond += u32::from(self.window > SAME.1 * known.delivered);
            if known.beyond > CALM {
                self.known = None;
            }
        }
        self.window
    }

    /// How long the ceiling is to rest after an overload that is known.
    fn longer(&self) -> Span {
        let rest = self.known.map_or(Span::ZERO, |known| known.rest);
        (self.since.max(rest) * LONGER).min(REST_MAX)
    }

    fn stay_below(&mut self, delivered: f64, cwnd: f64) -> f64 {
        self.window = (AFTER_OVERLOAD * delivered).min(cwnd).max(CWND_MIN);
        (self.step, self.calm, self.since) = (1.0, 0, Span::ZERO);
        self.overload = delivered;
        self.window
    }
}

fn is_same(delivered: f64, before: f64) -> bool {
    (SAME.0 * before..=SAME.1 * before).contains(&delivered)
}

fn is_little(queue: Span, interval: &Interval) -> bool {
    queue.0 as f64 <= QUEUE_LITTLE * interval.base.0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.1 s with a base of 40 ms.
    fn interval() -> Interval {
        let (duration, base) = (Span::from_millis(100), Span::from_millis(40));
        Interval { duration, base, ..Interval::default() }
    }

    /// Twice the same overload: a round trip delivered 100 packets from a window of 150, and the second came a second
    /// after the first.
    fn known() -> Ceiling {
        let mut ceiling = Ceiling::default();
        ceiling.set(100.0, 150.0, Span::ZERO, &interval());
        (0..10).for_each(|_| ceiling.pass(&interval()));
        ceiling.set(100.0, 150.0, Span::ZERO, &interval());
        ceiling
    }

    /// The ceiling after each of so many intervals, in which all of it was used and delivered.
    fn after(ceiling: &mut Ceiling, intervals: u32, delivered: f64) -> Vec<f64> {
        let mut next = || {
            ceiling.pass(&interval());
            ceiling.raise(ceiling.window, delivered)
        };
        (0..intervals).map(|_| next()).collect()
    }

    #[test]
    fn below_another_overload_the_window_grows_after_24_intervals_by_ever_larger_steps() {
        let mut ceiling = Ceiling::default();
        assert!((ceiling.set(100.0, 150.0, Span::ZERO, &interval()) - 92.0).abs() < 1e-9);
        let windows = after(&mut ceiling, 27, 92.0);
        assert!((windows[23] - 92.0).abs() < 1e-9, "{windows:?}");
        assert!((windows[26] - (92.0 + 1.0 + 1.25 + 1.5625)).abs() < 1e-9, "{windows:?}");
    }

    #[test]
    fn below_a_known_overload_it_rests_for_twice_as_long_as_that_took_to_come_up_to_10_s() {
        let rest = |ceiling: &mut Ceiling| {
            let windows = after(ceiling, 200, 92.0);
            windows.iter().position(|window| *window > 92.5)
        };
        let mut ceiling = known();
        // 24 intervals in any case, which are longer than the 2 s.
        assert_eq!(rest(&mut ceiling), Some(24));
        let mut ceiling = known();
        for expected in [39, 79, 99, 99] {
            (0..20).for_each(|_| ceiling.pass(&interval()));
            assert!(ceiling.come_back(150.0, Span::ZERO, &interval()).is_some());
            assert_eq!(rest(&mut ceiling.clone()), Some(expected));
        }
    }

    #[test]
    fn while_it_rests_it_rises_only_where_less_is_delivered_than_the_overload_did() {
        let mut ceiling = known();
        ceiling.known.as_mut().expect("known").rest = Span::from_millis(60_000);
        let enough = after(&mut ceiling.clone(), 100, 90.0);
        assert!((enough[99] - 92.0).abs() < 1e-9, "{enough:?}");
        let less = after(&mut ceiling, 300, 80.0);
        assert!(less[100] > 100.0 && less[299] < 116.0 + 1e-9, "{less:?}");
    }

    #[test]
    fn a_known_overload_bounds_the_window_at_twice_what_it_delivered_and_is_forgotten_without_losses()
     {
        let mut ceiling = known();
        let windows = after(&mut ceiling, 60, 92.0);
        let bounded = windows.iter().filter(|window| (**window - 200.0).abs() < 1e-9).count();
        assert!(bounded > 5, "{windows:?}");
        assert!(ceiling.known.is_none() && windows[59] > 200.0, "{windows:?}");
    }

    #[test]
    fn more_delivered_while_packets_are_lost_tells_another_path() {
        let mut ceiling = known();
        ceiling.come_back(150.0, Span::ZERO, &interval()).expect("known");
        assert_eq!(ceiling.clone().compare(110.0), None);
        let mut another = ceiling.clone();
        let window = another.compare(150.0).expect("another");
        assert!((window - 0.92 * 150.0).abs() < 1e-9 && another.known.is_none());
        // Only the first interval after tells it.
        ceiling.compare(100.0);
        assert_eq!(ceiling.compare(150.0), None);
    }
}
