//! When which flow's controller wants to be called.
use ackademy::units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// After a call, how long a timer waits that the call left where it was, in the past.
const RETRY: Span = Span::from_millis(1);

/// A timer for every slot.
pub(super) struct Timers {
    /// Time and slot. Entries outlive their flows, and times that were replaced by earlier ones.
    entries: BinaryHeap<Reverse<(Time, u32)>>,
    /// By slot: the earliest entry that counts.
    armed: Vec<Time>,
    /// By slot: the time for which its controller was called last.
    called: Vec<Time>,
    /// Of the latest `expire`.
    now: Time,
}

impl Timers {
    /// None is armed.
    pub fn new(slots: u32) -> Self {
        let slots = slots as usize;
        Self {
            entries: BinaryHeap::new(),
            armed: vec![Time::NEVER; slots],
            called: vec![Time(0); slots],
            now: Time(0),
        }
    }

    /// The flow in `slot` is looked at by `at`. A time that is past already is not due in the same
    /// `expire` again, so that none goes on for ever: one that the last call moved, but not far enough,
    /// is due in the next, one that it left where it was after [`RETRY`].
    pub fn arm(&mut self, slot: u32, at: Time) {
        let at = match at {
            at if at > self.now => at,
            at if at > self.called[slot as usize] => self.now + Span(1),
            _ => self.now + RETRY,
        };
        let armed = &mut self.armed[slot as usize];
        if at < *armed {
            *armed = at;
            self.entries.push(Reverse((at, slot)));
        }
    }

    /// The flow in `slot` has ended.
    pub fn disarm(&mut self, slot: u32) {
        self.armed[slot as usize] = Time::NEVER;
    }

    /// When to look next.
    pub fn next(&self) -> Option<Time> {
        self.entries.peek().map(|Reverse((at, _))| *at)
    }

    /// A slot whose controller is due by `now`, and is no longer armed. `wanted`: when the controller
    /// of a slot wants to be called. One that has moved its timer later is armed anew.
    pub fn expire(&mut self, now: Time, wanted: impl Fn(u32) -> Option<Time>) -> Option<u32> {
        self.now = self.now.max(now);
        while let Some(&Reverse((at, slot))) = self.entries.peek().filter(|next| next.0.0 <= now) {
            self.entries.pop();
            if self.armed[slot as usize] != at {
                continue;
            }
            self.disarm(slot);
            match wanted(slot) {
                Some(wanted) if wanted <= now => {
                    self.called[slot as usize] = wanted;
                    return Some(slot);
                }
                Some(later) => self.arm(slot, later),
                None => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_was_moved_later_fires_at_its_new_time() {
        let mut timers = Timers::new(4);
        timers.arm(2, Time(10));
        // The controller has moved its timer since, to 30.
        timers.arm(2, Time(30));
        let wanted = |_| Some(Time(30));
        assert_eq!(timers.expire(Time(20), wanted), None);
        assert_eq!(timers.next(), Some(Time(30)), "the wake-up is not lost");
        assert_eq!(timers.expire(Time(30), wanted), Some(2));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_timer_that_was_moved_earlier_fires_once() {
        let mut timers = Timers::new(1);
        timers.arm(0, Time(30));
        timers.arm(0, Time(10));
        assert_eq!(timers.expire(Time(10), |_| Some(Time(10))), Some(0));
        assert_eq!(timers.expire(Time(40), |_| Some(Time(10))), None);
    }

    /// How often the controller of slot 0 is called by `now`; each call moves its timer by `step`.
    fn calls(timers: &mut Timers, wanted: &mut Time, step: Span, now: Time) -> usize {
        let mut calls = 0;
        while calls < 100 && timers.expire(now, |_| Some(*wanted)).is_some() {
            calls += 1;
            *wanted += step;
            timers.arm(0, *wanted);
        }
        calls
    }

    #[test]
    fn a_timer_that_stays_in_the_past_is_called_once_a_millisecond() {
        let (mut timers, mut wanted) = (Timers::new(1), Time(10));
        timers.arm(0, wanted);
        let mut called = |now| calls(&mut timers, &mut wanted, Span::ZERO, Time(now));
        assert_eq!([20, 21, 1_000_019, 1_000_020].map(&mut called), [1, 0, 0, 1]);
        assert_eq!(timers.next(), Some(Time(2_000_020)));
    }

    #[test]
    fn a_controller_that_is_behind_catches_up_by_one_call_each_time() {
        let (mut timers, mut wanted) = (Timers::new(1), Time(10));
        timers.arm(0, wanted);
        let mut called = |now| calls(&mut timers, &mut wanted, Span(10), Time(now));
        assert_eq!([25, 26, 27, 30, 31].map(&mut called), [1, 1, 0, 1, 0]);
        assert_eq!(timers.next(), Some(Time(40)));
    }

    #[test]
    fn a_flow_that_ended_leaves_its_slot_without_a_timer() {
        let mut timers = Timers::new(1);
        timers.arm(0, Time(10));
        timers.disarm(0);
        assert_eq!(timers.expire(Time(10), |_| Some(Time(5))), None);
        timers.arm(0, Time(20));
        assert_eq!(timers.expire(Time(20), |_| Some(Time(20))), Some(0), "the next flow has one");
    }

    #[test]
    fn of_several_due_the_earliest_comes_first() {
        let mut timers = Timers::new(3);
        for (slot, at) in [(0, 30), (1, 10), (2, 20)] {
            timers.arm(slot, Time(at));
        }
        let wanted = |slot: u32| Some(Time([30, 10, 20][slot as usize]));
        let due: Vec<u32> = std::iter::from_fn(|| timers.expire(Time(25), wanted)).collect();
        assert_eq!(due, [1, 2]);
    }
}
