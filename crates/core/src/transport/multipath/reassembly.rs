//! The receiving end of a connection's data level.
use super::Mapping;
use std::collections::VecDeque;

/// Puts the data of all subflows in order. A subflow hands data up in the order of its own segments, as
/// Linux does: one behind a gap of its subflow waits there.
#[derive(Debug)]
pub struct Reassembly {
    /// The next byte that the application reads.
    next: u64,
    /// Beyond it, as disjoint, sorted, non-touching [start, end).
    beyond: VecDeque<(u64, u64)>,
    /// Bytes in `beyond`.
    held: u64,
    held_max: u64,
    duplicate_bytes: u64,
    /// Of each subflow, segments that wait for an earlier one, and their data, in order.
    waiting: Vec<VecDeque<(u64, Mapping)>>,
}

impl Reassembly {
    /// Nothing received.
    pub fn new(subflows: usize) -> Self {
        Self {
            next: 0,
            beyond: VecDeque::new(),
            held: 0,
            held_max: 0,
            duplicate_bytes: 0,
            waiting: (0..subflows).map(|_| VecDeque::new()).collect(),
        }
    }

    /// Bytes that the application has read, all in order.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The data acknowledgement: the low 32 bits of the next byte expected.
    pub fn data_ack(&self) -> u32 {
        self.next as u32
    }

    /// Bytes that wait for an earlier one of another subflow.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The most that waited at a time.
    pub fn held_max(&self) -> u64 {
        self.held_max
    }

    /// Bytes that came again.
    pub fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }

    /// What came at the data level, read or held.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        std::iter::once((0, self.next)).chain(self.beyond.iter().copied())
    }

    /// A segment arrived for the first time, with which its subflow has `delivered` in order, itself
    /// included; 0 if it waits for an earlier one.
    pub fn on_segment(&mut self, subflow: usize, seq: u64, mapping: Mapping, delivered: u64) {
        if delivered == 0 {
            let waiting = &mut self.waiting[subflow];
            let after = |&(other, _): &(u64, Mapping)| other < seq;
            if waiting.back().is_none_or(after) {
                waiting.push_back((seq, mapping));
            } else {
                waiting.insert(waiting.partition_point(after), (seq, mapping));
            }
            return;
        }
        self.insert(mapping.start, mapping.end());
        while delivered > 1
            && let Some(&(later, mapping)) = self.waiting[subflow].front()
            && later < seq + delivered
        {
            self.insert(mapping.start, mapping.end());
            self.waiting[subflow].pop_front();
        }
    }

    fn insert(&mut self, start: u64, end: u64) {
        let from = start.max(self.next).min(end);
        self.duplicate_bytes += from - start;
        if from == end {
            return;
        }
        if from == self.next {
            self.next = end;
            self.read_on();
        } else {
            self.hold(from, end);
        }
        self.held_max = self.held_max.max(self.held);
    }

    /// Reads what waited for the data before `next`.
    fn read_on(&mut self) {
        while let Some(&(start, end)) = self.beyond.front()
            && start <= self.next
        {
            self.duplicate_bytes += end.min(self.next) - start;
            self.held -= end - start;
            self.next = self.next.max(end);
            self.beyond.pop_front();
        }
    }

    /// Keeps data beyond a gap.
    fn hold(&mut self, start: u64, end: u64) {
        match self.beyond.back_mut() {
            Some(last) if last.1 > start => {}
            Some(last) if last.1 == start => {
                last.1 = end;
                self.held += end - start;
                return;
            }
            _ => {
                self.beyond.push_back((start, end));
                self.held += end - start;
                return;
            }
        }
        let first = self.beyond.partition_point(|range| range.1 < start);
        let mut merged = (start, end);
        let mut overlap = 0;
        while let Some(&(low, high)) = self.beyond.get(first)
            && low <= merged.1
        {
            overlap += high.min(end).saturating_sub(low.max(start));
            merged = (merged.0.min(low), merged.1.max(high));
            self.beyond.remove(first);
        }
        self.beyond.insert(first, merged);
        self.duplicate_bytes += overlap;
        self.held += end - start - overlap;
    }
}
