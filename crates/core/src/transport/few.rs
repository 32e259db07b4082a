//! A queue whose elements lie in place while they are few.
//!
//! What is lost or out of order is a handful of ranges, in each of thousands of flows: in a buffer of their own they
//! would be one more place in memory to wait for. Only a long queue has one.
use std::collections::VecDeque;

/// How many elements are looked at from the end before the rest is halved.
const NEAR: usize = 4;

/// A queue of up to `N` elements in place, of more in a buffer.
#[derive(Clone, Debug)]
pub struct Few<T, const N: usize> {
    /// The first `len`, unless all are in `many`.
    here: [T; N],
    len: u8,
    /// All are in `many`, until there are none.
    spilled: bool,
    /// Kept when it is empty: what had many once may have many again.
    #[allow(clippy::box_collection, reason = "most have none, which takes a quarter of the room")]
    many: Option<Box<VecDeque<T>>>,
}

impl<T: Copy + Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self { here: [T::default(); N], len: 0, spilled: false, many: None }
    }
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    /// The buffer, if the elements are there.
    #[inline]
    fn spilled(&self) -> Option<&VecDeque<T>> {
        if self.spilled { self.many.as_deref() } else { None }
    }

    /// As [`spilled`](Self::spilled), to change it.
    #[inline]
    fn spilled_mut(&mut self) -> Option<&mut VecDeque<T>> {
        if self.spilled { self.many.as_deref_mut() } else { None }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.spilled().map_or(self.len.into(), VecDeque::len)
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element in this place.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        match self.spilled() {
            Some(many) => many.get(index),
            None => self.here[..self.len.into()].get(index),
        }
    }

    /// The element in this place, to change it.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if self.spilled {
            return self.spilled_mut()?.get_mut(index);
        }
        self.here[..self.len.into()].get_mut(index)
    }

    /// The first.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The last, to change it.
    #[inline]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        self.get_mut(self.len().wrapping_sub(1))
    }

    /// All, in order; one of the two parts may be empty.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let here = (&self.here[..self.len.into()], &[][..]);
        let (first, second) = self.spilled().map_or(here, VecDeque::as_slices);
        first.iter().chain(second)
    }

    /// Puts an element before `index`.
    #[inline]
    pub fn insert(&mut self, index: usize, value: T) {
        let len = usize::from(self.len);
        if !self.spilled && len < N {
            self.here.copy_within(index..len, index + 1);
            self.here[index] = value;
            self.len += 1;
        } else {
            self.insert_into_many(index, value);
        }
    }

    #[inline(never)]
    fn insert_into_many(&mut self, index: usize, value: T) {
        let many = self.many.get_or_insert_default();
        many.extend(&self.here[..self.len.into()]);
        many.insert(index, value);
        (self.len, self.spilled) = (0, true);
    }

    /// Takes out the element in this place.
    #[inline]
    pub fn remove(&mut self, index: usize) -> Option<T> {
        if self.spilled {
            return self.remove_from_many(index);
        }
        let len = usize::from(self.len);
        let value = *self.here[..len].get(index)?;
        self.here.copy_within(index + 1..len, index);
        self.len -= 1;
        Some(value)
    }

    #[inline(never)]
    fn remove_from_many(&mut self, index: usize) -> Option<T> {
        let many = self.spilled_mut()?;
        let value = many.remove(index);
        self.spilled = !many.is_empty();
        value
    }

    /// Adds one at the end.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        self.insert(self.len(), value);
    }

    /// Takes the first.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        self.remove(0)
    }

    /// Takes out the elements from `start` up to `end`.
    pub fn remove_range(&mut self, start: usize, end: usize) {
        if let Some(many) = self.spilled_mut() {
            many.drain(start..end);
            self.spilled = !many.is_empty();
        } else {
            self.here.copy_within(end..self.len.into(), start);
            self.len -= (end - start) as u8;
        }
    }

    /// Takes out all.
    pub fn clear(&mut self) {
        self.remove_range(0, self.len());
    }

    /// The index of the first element that is not `before`, or how many there are; those that are come first. Most of
    /// what is looked for is near the end: what arrives and what is reported belongs there, unless a hole far
    /// back is repaired.
    #[inline]
    pub fn first_after(&self, before: impl Fn(&T) -> bool) -> usize {
        for index in (0..self.len()).rev().take(NEAR) {
            if self.get(index).is_some_and(&before) {
                return index + 1;
            }
        }
        match self.spilled() {
            Some(many) if many.len() > NEAR => many.partition_point(before),
            _ if N > NEAR => self.here[..self.len.into()].partition_point(before),
            _ => 0,
        }
    }
}

impl<T: Copy + Default, const N: usize> FromIterator<T> for Few<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut few = Self::default();
        values.into_iter().for_each(|value| few.push_back(value));
        few
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn whatever_is_done_to_it_it_holds_what_a_plain_queue_holds() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let (mut few, mut plain) = (Few::<u64, 3>::default(), VecDeque::new());
            for step in 0..2000 {
                let place = rng.below(plain.len() as u64 + 1) as usize;
                // The queue is short at times and long at others.
                match rng.below(if step / 200 % 2 == 0 { 6 } else { 9 }) {
                    0 => {
                        few.insert(place, step);
                        plain.insert(place, step);
                    }
                    1 | 6 => {
                        few.push_back(step);
                        plain.push_back(step);
                    }
                    2 | 7 => {
                        few.insert(0, step);
                        plain.push_front(step);
                    }
                    3 => assert_eq!(few.remove(place), plain.remove(place)),
                    4 => {
                        let end = place + rng.below((plain.len() - place) as u64 + 1) as usize;
                        few.remove_range(place, end);
                        plain.drain(place..end);
                    }
                    _ => assert_eq!(few.pop_front(), plain.pop_front()),
                }
                assert!(few.iter().eq(&plain), "seed {seed}, step {step}");
                assert_eq!((few.len(), few.front()), (plain.len(), plain.front()));
                assert_eq!(few.back_mut(), plain.back_mut());
            }
        }
    }

    #[test]
    fn what_is_found_is_where_a_binary_search_finds_it() {
        let mut rng = Rng::new(3);
        for count in (0..12).chain([40]) {
            let mut next = 0;
            let ranges: Few<(u64, u64), 2> = (0..count)
                .map(|_| {
                    let start = next + 1 + rng.below(4);
                    next = start + 1 + rng.below(4);
                    (start, next)
                })
                .collect();
            let all: Vec<_> = ranges.iter().copied().collect();
            for seq in 0..next + 3 {
                let before = |range: &(u64, u64)| range.1 <= seq;
                assert_eq!(ranges.first_after(before), all.partition_point(before), "{seq}");
            }
        }
    }
}
