//! What links do next: the first arrival over each busy one, and the ends of transmissions.
//!
//! Few links are busy at once in most networks: the next events of these lie in a sorted list, in which an
//! event takes the place of the one before it with a comparison or two. More wait in a heap.
use super::timers::{Due, Timer, settle_last};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events in the list.
const FEW: usize = 8;

/// Events to come, of which no two are due at once.
#[derive(Debug)]
pub(super) struct Heads<T> {
    /// When the first of all is due.
    first: Due,
    /// The first one last.
    few: Vec<Timer<T>>,
    many: BinaryHeap<Reverse<Timer<T>>>,
}

impl<T: Copy> Heads<T> {
    pub(super) fn new() -> Self {
        Self { first: Due::NEVER, few: Vec::with_capacity(FEW), many: BinaryHeap::new() }
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    /// When the first is due; [`Due::NEVER`] if there is none.
    #[inline]
    pub(super) fn first_due(&self) -> Due {
        self.first
    }

    /// The first, if there is one.
    #[inline]
    pub(super) fn first(&self) -> Option<T> {
        match self.few.last() {
            Some(last) if last.due == self.first => Some(last.event),
            _ => self.many.peek().map(|Reverse(head)| head.event),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, due: Due, event: T) {
        let head = Timer { due, event };
        self.first = self.first.min(due);
        if self.few.len() < FEW {
            self.few.push(head);
            settle_last(&mut self.few, head);
        } else {
            self.many.push(Reverse(head));
        }
    }

    /// Takes the first away.
    #[inline]
    pub(super) fn drop_first(&mut self) {
        if self.few.last().is_some_and(|last| last.due == self.first) {
            self.few.pop();
        } else {
            self.many.pop();
        }
        self.find_first();
    }

    /// The first is due again, at this time.
    #[inline]
    pub(super) fn delay_first(&mut self, due: Due) {
        match self.few.last_mut() {
            Some(last) if last.due == self.first => {
                let event = last.event;
                settle_last(&mut self.few, Timer { due, event });
                self.find_first();
            }
            _ => self.delay_first_of_many(due),
        }
    }

    #[inline(never)]
    fn delay_first_of_many(&mut self, due: Due) {
        if let Some(mut top) = self.many.peek_mut() {
            top.0.due = due;
        }
        self.find_first();
    }

    #[inline]
    fn find_first(&mut self) {
        self.first = self.few.last().map_or(Due::NEVER, |head| head.due);
        if let Some(Reverse(head)) = self.many.peek() {
            self.first = self.first.min(head.due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::units::Time;

    #[test]
    fn events_come_in_the_order_of_a_sorted_list_whether_few_or_many_links_are_busy() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let (mut heads, mut list) = (Heads::new(), Vec::new());
            let most = 1 + rng.below(4 * FEW as u64) as usize;
            for order in 0..3000 {
                let now = list.last().map_or(0, |&(due, _): &(Due, u64)| due.at().0);
                let due = Due::new(Time(now + rng.below(100)), order);
                match rng.below(4) {
                    0 | 1 if list.len() < most => {
                        heads.push(due, order);
                        list.push((due, order));
                    }
                    0 => {
                        heads.drop_first();
                        list.pop();
                    }
                    _ => {
                        heads.delay_first(due);
                        if let Some(last) = list.last_mut() {
                            last.0 = due;
                        }
                    }
                }
                list.sort_unstable_by(|left, right| right.cmp(left));
                assert_eq!(heads.first_due(), list.last().map_or(Due::NEVER, |one| one.0));
                assert_eq!(heads.first(), list.last().map(|one| one.1), "seed {seed}");
                assert_eq!(heads.len(), list.len());
            }
        }
    }
}
