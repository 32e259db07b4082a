//! How long a flow's packets waited in queues, by when they were sent.
use crate::units::{Span, Time};
use std::collections::VecDeque;

/// Most instants of sending that are kept, of a flow that is never asked.
const INSTANTS_MAX: usize = 1 << 16;

/// What became of some packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// Those that came to the first link.
    pub(super) packets: u64,
    /// Of these, dropped by queues.
    pub(super) dropped: u64,
    /// Waits of all, at all links, in nanoseconds.
    pub(super) waited_ns: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.dropped += other.dropped;
        self.waited_ns += other.waited_ns;
    }

    /// Mean wait of a packet that was not dropped, ms; 0 without one.
    pub(super) fn mean_ms(&self) -> f64 {
        let kept = self.packets.saturating_sub(self.dropped);
        if kept > 0 { self.waited_ns / 1e6 / kept as f64 } else { 0.0 }
    }

    /// Part of the packets that were dropped.
    pub(super) fn dropped_ratio(&self) -> f64 {
        if self.packets > 0 { (self.dropped as f64 / self.packets as f64).min(1.0) } else { 0.0 }
    }
}

/// The waits of a flow's packets.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// In order of when packets were sent.
    sent: VecDeque<(Time, Sums)>,
    /// Since it was last asked, whenever packets were sent.
    recent: Sums,
}

impl Waits {
    /// A packet leaves a queue; `first` says whether it is that of its first link.
    pub(super) fn waited(&mut self, sent_at: Time, wait: Span, first: bool) {
        let packets = u64::from(first);
        self.book(sent_at, &Sums { packets, dropped: 0, waited_ns: wait.0 as f64 });
    }

    /// A queue drops a packet.
    pub(super) fn dropped(&mut self, sent_at: Time, first: bool) {
        let packets = u64::from(first);
        self.book(sent_at, &Sums { packets, dropped: 1, waited_ns: 0.0 });
    }

    fn book(&mut self, sent_at: Time, sums: &Sums) {
        self.recent.add(sums);
        let place = match self.sent.back() {
            Some((last, _)) if *last >= sent_at => {
                self.sent.partition_point(|(at, _)| *at < sent_at)
            }
            _ => self.sent.len(),
        };
        match self.sent.get_mut(place) {
            Some((at, known)) if *at == sent_at => known.add(sums),
            _ => self.sent.insert(place, (sent_at, *sums)),
        }
        if self.sent.len() > INSTANTS_MAX {
            self.sent.pop_front();
        }
    }

    /// What became known since this was last asked.
    pub(super) fn take_recent(&mut self) -> Sums {
        std::mem::take(&mut self.recent)
    }

    /// What became of the packets sent from `from` and before `until`; they and earlier ones are forgotten.
    pub(super) fn take(&mut self, from: Time, until: Time) -> Sums {
        let mut sums = Sums::default();
        while let Some((at, found)) = self.sent.front()
            && *at < until
        {
            if *at >= from {
                sums.add(found);
            }
            self.sent.pop_front();
        }
        sums
    }
}
