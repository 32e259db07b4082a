//! Events to come that are not arrivals over a pipe: what ends wait for, packets on their own.
//!
//! A radix heap of 64-fold buckets: an event waits in a bucket by how far away it is, moves at most once
//! per level as time comes near, and is sorted only among those of its own 131 µs. A pending event costs
//! nothing while others come and go, however many there are. Few events lie in one sorted
//! list instead, which takes less memory than the buckets do.
use crate::hint::unlikely;
use crate::units::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Nanoseconds of the finest bucket, as a power of two.
const GRAIN: u32 = 17;
/// Buckets of a level, as a power of two.
const DIGIT: u32 = 6;
const WIDTH: usize = 1 << DIGIT;
/// Pending events for which a sorted list takes no longer than buckets; *measured with a binary heap*.
const FEW: usize = 32;

/// When an event is due; events of one instant happen in the order in which they were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due(u128);

impl Due {
    /// Later than every event.
    pub(super) const NEVER: Self = Self(u128::MAX);

    pub(super) fn new(at: Time, order: u64) -> Self {
        Self((u128::from(at.0) << 64) | u128::from(order))
    }

    pub(super) fn at(self) -> Time {
        Time((self.0 >> 64) as u64)
    }
}

/// An event that waits for its time; no two are due at once, so that alone orders them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer<E> {
    pub(super) due: Due,
    pub(super) event: E,
}

impl<E> PartialEq for Timer<E> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl<E> Eq for Timer<E> {}

impl<E> PartialOrd for Timer<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Timer<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due.cmp(&other.due)
    }
}

/// Puts an event into its place among the others of a list, in place of the last one; the first due is to be the last.
/// It is given, not read from there: a load waits for the narrower stores that come right before it.
#[inline]
pub(super) fn settle_last<E: Copy>(list: &mut [Timer<E>], timer: Timer<E>) {
    let Some(mut place) = list.len().checked_sub(1) else { return };
    while place > 0 && list[place - 1].due < timer.due {
        list[place] = list[place - 1];
        place -= 1;
    }
    list[place] = timer;
}

/// Buckets whose times agree with the present in all digits above theirs.
#[derive(Debug)]
struct Level<E> {
    /// One bit per bucket that holds anything.
    occupied: u64,
    buckets: [Vec<Timer<E>>; WIDTH],
}

/// Pending events by time.
#[derive(Debug)]
pub(super) struct Timers<E> {
    /// Those up to the end of grain `base`, the first one last. Most come a bucket at a time, or are due
    /// before the others, so a sorted list takes less than a heap.
    near: Vec<Timer<E>>,
    /// As `near`, of what was added while that was long.
    overflow: BinaryHeap<Reverse<Timer<E>>>,
    /// The last grain while all lie in `near` and `overflow`.
    base: u64,
    levels: Vec<Level<E>>,
    /// No event outside `near` and `overflow` is due before.
    bound: Time,
    /// No event at all is due before.
    soonest: Time,
    spare: Vec<Timer<E>>,
}

impl<E: Copy> Timers<E> {
    pub(super) fn new() -> Self {
        Self {
            near: Vec::new(),
            overflow: BinaryHeap::new(),
            base: u64::MAX,
            levels: Vec::new(),
            bound: Time::NEVER,
            soonest: Time::NEVER,
            spare: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, timer: Timer<E>) {
        if timer.due.at().0 >> GRAIN <= self.base {
            self.soonest = self.soonest.min(timer.due.at());
            self.push_near(timer);
        } else {
            self.keep(timer);
        }
    }

    /// Adds an event to those that are near.
    #[inline]
    fn push_near(&mut self, timer: Timer<E>) {
        if self.near.len() < FEW {
            self.near.push(timer);
            settle_last(&mut self.near, timer);
        } else {
            self.overflow.push(Reverse(timer));
            if self.base == u64::MAX {
                self.spread();
            }
        }
    }

    /// There are more than a few: all but those of the first grain go into buckets.
    #[cold]
    fn spread(&mut self) {
        self.base = self.soonest.0 >> GRAIN;
        let overflow = std::mem::take(&mut self.overflow).into_iter().map(|Reverse(timer)| timer);
        for timer in std::mem::take(&mut self.near).into_iter().chain(overflow) {
            self.push(timer);
        }
    }

    /// Puts an event of a later grain into its bucket.
    #[allow(
        clippy::inline_always,
        reason = "in a call the event waits for the stores that wrote it"
    )]
    #[inline(always)]
    fn keep(&mut self, timer: Timer<E>) {
        let grain = timer.due.at().0 >> GRAIN;
        let level = (grain ^ self.base).ilog2() / DIGIT;
        let shift = level * DIGIT;
        let bucket = (grain >> shift) as usize & (WIDTH - 1);
        if unlikely(self.levels.len() <= level as usize) {
            self.add_levels(level as usize);
        }
        let level = &mut self.levels[level as usize];
        level.occupied |= 1 << bucket;
        level.buckets[bucket].push(timer);
        self.bound = self.bound.min(Time((grain >> shift) << shift << GRAIN));
        self.soonest = self.soonest.min(self.bound);
    }

    #[cold]
    #[inline(never)]
    fn add_levels(&mut self, last: usize) {
        self.levels.resize_with(last + 1, || Level {
            occupied: 0,
            buckets: [const { Vec::new() }; WIDTH],
        });
    }

    /// A time before which nothing is due, cheap to ask for.
    #[inline]
    pub(super) fn soonest(&self) -> Time {
        self.soonest
    }

    /// When the first event is due; [`Due::NEVER`] if there is none, or none up to `limit` that is near.
    /// `see` is shown every event whose time comes near.
    #[inline]
    pub(super) fn first(&mut self, limit: Time, see: impl FnMut(E)) -> Due {
        let first = self.first_near();
        if first < Due::NEVER || self.bound > limit {
            return first;
        }
        self.approach(limit, see);
        self.soonest = self.earliest();
        self.first_near()
    }

    /// When the first of those that are near is due.
    #[inline]
    fn first_near(&self) -> Due {
        let near = self.near.last().map_or(Due::NEVER, |timer| timer.due);
        self.overflow.peek().map_or(near, |Reverse(timer)| timer.due.min(near))
    }

    #[inline]
    fn earliest(&self) -> Time {
        let first = self.first_near();
        if first < Due::NEVER { first.at() } else { self.bound }
    }

    /// Takes the first event, if it is due up to `limit` and before `before`. `see` as in [`first`](Self::first).
    #[inline]
    pub(super) fn take(
        &mut self,
        limit: Time,
        before: Due,
        see: impl FnMut(E),
    ) -> Option<Timer<E>> {
        if !self.overflow.is_empty() || self.near.is_empty() {
            let due = self.first(limit, see);
            return if due < before && due.at() <= limit { self.pop() } else { None };
        }
        let timer = *self.near.last()?;
        if timer.due >= before || timer.due.at() > limit {
            return None;
        }
        self.near.pop();
        self.soonest = self.near.last().map_or(self.bound, |next| next.due.at());
        Some(timer)
    }

    /// Takes the event that [`first`](Self::first) announced.
    #[inline]
    fn pop(&mut self) -> Option<Timer<E>> {
        let timer = match (self.near.last(), self.overflow.peek()) {
            (near, Some(Reverse(first))) if near.is_none_or(|near| first.due < near.due) => {
                self.overflow.pop().map(|Reverse(timer)| timer)
            }
            _ => self.near.pop(),
        };
        self.soonest = self.earliest();
        timer
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let buckets = self.levels.iter().flat_map(|level| &level.buckets);
        self.near.len() + self.overflow.len() + buckets.map(Vec::len).sum::<usize>()
    }

    /// Moves on to the next bucket that holds anything, until an event is near.
    fn approach(&mut self, limit: Time, mut see: impl FnMut(E)) {
        while self.near.is_empty() && self.bound <= limit {
            let found = (0..).zip(&mut self.levels).find(|(_, level)| level.occupied != 0);
            let Some((number, level)) = found else { break };
            let bucket = level.occupied.trailing_zeros();
            level.occupied &= level.occupied - 1;
            let empty = if number == 0 { &mut self.near } else { &mut self.spare };
            let place = &mut level.buckets[bucket as usize];
            let mut timers = std::mem::replace(place, std::mem::take(empty));
            self.base = Self::start(self.base, number, bucket);
            if number == 0 {
                // A bucket of this level is one grain.
                timers.sort_unstable_by(|left, right| right.cmp(left));
                for timer in &timers {
                    see(timer.event);
                }
                self.near = timers;
            } else {
                for timer in timers.drain(..) {
                    if timer.due.at().0 >> GRAIN == self.base {
                        see(timer.event);
                        self.near.push(timer);
                    } else {
                        self.keep(timer);
                    }
                }
                self.near.sort_unstable_by(|left, right| right.cmp(left));
                self.spare = timers;
            }
            self.bound = self.next_start();
        }
    }

    /// When the first bucket that holds anything begins.
    fn next_start(&self) -> Time {
        let found = (0..).zip(&self.levels).find(|(_, level)| level.occupied != 0);
        found.map_or(Time::NEVER, |(number, level)| {
            Time(Self::start(self.base, number, level.occupied.trailing_zeros()) << GRAIN)
        })
    }

    /// The first grain of a bucket.
    fn start(base: u64, level: u32, bucket: u32) -> u64 {
        let shift = level * DIGIT;
        let above = base.checked_shr(shift + DIGIT).unwrap_or(0);
        let above = above.checked_shl(shift + DIGIT).unwrap_or(0);
        above | (u64::from(bucket) << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Spans from nanoseconds to hours, many of them equal.
    fn span(rng: &mut Rng) -> u64 {
        let size = rng.below(45);
        rng.below(1 << size) >> (size / 3) << (size / 3)
    }

    #[test]
    fn events_come_in_the_order_of_a_sorted_list_whatever_is_added_on_the_way() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let (mut timers, mut list) = (Timers::new(), Vec::new());
            let (mut now, mut order) = (0, 0);
            for step in 0..5000 {
                let adds = if step < 2500 { rng.below(4) } else { rng.below(2) };
                for _ in 0..adds {
                    order += 1;
                    let due = Due::new(Time(now + span(&mut rng)), order);
                    let timer = Timer { due, event: order };
                    timers.push(timer);
                    list.push(timer);
                }
                list.sort_unstable_by(|left, right| right.cmp(left));
                let limit = Time(now + span(&mut rng));
                let first = timers.first(limit, |_| ());
                let expected = list.last().map_or(Due::NEVER, |timer| timer.due);
                assert!(timers.soonest() <= expected.at(), "seed {seed}, step {step}");
                if first.at() <= limit || expected.at() <= limit {
                    assert_eq!(first, expected, "seed {seed}, step {step}");
                    assert_eq!(timers.take(limit, first, |_| ()), None, "none before itself");
                    assert_eq!(timers.take(limit, Due::NEVER, |_| ()), list.pop());
                    now = first.at().0;
                }
            }
        }
    }

    #[test]
    fn the_last_instant_of_the_clock_has_a_bucket() {
        let mut timers = Timers::new();
        let due = Due::new(Time(u64::MAX - 1), 1);
        timers.push(Timer { due, event: () });
        for order in 2..2 + FEW as u64 {
            timers.push(Timer { due: Due::new(Time(1), order), event: () });
        }
        assert_ne!(timers.base, u64::MAX, "not all are near");
        while timers.first(Time(1 << 40), |()| ()) < Due::NEVER {
            timers.pop();
        }
        assert_eq!(timers.len(), 1);
        assert_eq!(timers.first(Time::NEVER, |()| ()), due);
    }
}
