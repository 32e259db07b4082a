//! Timestamps (RFC 7323): a tick is a millisecond, as in Linux.
use ackademy::units::Time;
use std::collections::VecDeque;

/// What a clock shows when the simulation begins.
const START: u64 = 1000;
const TICK_NS: u64 = 1_000_000;
/// Most changes that are remembered: more than a minute of them.
const CHANGES_MAX: usize = 1 << 16;

/// What both ends' clocks show.
pub fn ticks(at: Time) -> u32 {
    (START + at.0 / TICK_NS) as u32
}

/// What a sender of data echoes: the latest value that an acknowledgement brought it.
#[derive(Clone, Debug, Default)]
pub struct Echo {
    /// From when on which value, ascending.
    changes: VecDeque<(Time, u32)>,
}

impl Echo {
    /// A value arrives.
    pub fn arrived(&mut self, at: Time, value: u32) {
        let latest = self.changes.back().map(|change| change.1);
        if latest.is_some_and(|latest| value.wrapping_sub(latest) as i32 <= 0) {
            return;
        }
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back((at, value));
    }

    /// What is echoed by a packet that leaves at this time.
    pub fn at(&self, at: Time) -> Option<u32> {
        let after = self.changes.partition_point(|change| change.0 <= at);
        let known = after.checked_sub(1).and_then(|before| self.changes.get(before));
        known.or(self.changes.front()).map(|change| change.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_echoed_is_the_latest_value_and_never_an_older_one() {
        let mut echo = Echo::default();
        for (at, value) in [(10, 5), (20, 7), (25, 6), (30, 9)] {
            echo.arrived(Time(at), value);
        }
        let found = [9, 10, 20, 29, 30].map(|at| echo.at(Time(at)));
        assert_eq!(found, [Some(5), Some(5), Some(7), Some(7), Some(9)]);
    }
}
