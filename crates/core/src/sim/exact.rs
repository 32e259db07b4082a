//! Times finer than the clock. A transmission seldom takes whole nanoseconds, and events happen at
//! whole ones, rounded up. Whether a packet finds the one before it gone must not depend on that
//! rounding, so what it added travels with the packet.
use crate::units::Time;

/// A point in time: a whole nanosecond, less what rounding up added to reach it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exact {
    /// The nanosecond at which the event happens.
    pub at: Time,
    /// What rounding added, in units of 2⁻¹⁶ ns.
    pub early: u16,
}

impl Exact {
    /// A whole nanosecond.
    pub const fn whole(at: Time) -> Self {
        Self { at, early: 0 }
    }

    /// The later of two.
    #[inline]
    pub fn max(self, other: Self) -> Self {
        let self_is_later = (self.at, other.early) > (other.at, self.early);
        if self_is_later { self } else { other }
    }

    /// Whether what ends at this time has ended at `other`. A tie counts as ended, and so does an
    /// end that lies after `other` by no more than the fractions' own rounding.
    #[inline]
    pub fn is_over_at(self, other: Self) -> bool {
        if self.at < other.at {
            return true;
        }
        let after = self.at.0 - other.at.0;
        after <= 1 && after * UNITS + u64::from(other.early) <= u64::from(self.early) + SLACK
    }
}

/// Units of [`Exact::early`] in a nanosecond.
pub const UNITS: u64 = 1 << 16;

/// Each hop rounds by less than one unit; a packet and the one it ties with part a few hops before.
const SLACK: u64 = 1 << 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(at: u64, early: u16) -> Exact {
        Exact { at: Time(at), early }
    }

    #[test]
    fn the_later_of_two_is_told_by_the_fraction_within_a_nanosecond() {
        assert_eq!(exact(5, 0).max(exact(5, 9)), exact(5, 0));
        assert_eq!(exact(5, 9).max(exact(5, 0)), exact(5, 0));
        assert_eq!(exact(4, 0).max(exact(5, 65_535)), exact(5, 65_535));
    }

    #[test]
    fn an_end_that_rounding_put_a_nanosecond_late_still_precedes_what_it_ties_with() {
        // Ends at 9.25 ns, told at 10; the other arrives at 9.25 ns, told at 10 or, if its own path
        // rounded to just above 9, by a unit less than a whole nanosecond early.
        assert!(exact(10, 49_152).is_over_at(exact(10, 49_152)));
        assert!(exact(11, 65_535).is_over_at(exact(10, 0)));
        assert!(!exact(10, 40_000).is_over_at(exact(10, 49_152)));
        assert!(!exact(11, 0).is_over_at(exact(10, 0)));
        assert!(exact(9, 0).is_over_at(exact(10, 49_152)));
        assert!(!Exact::whole(Time::NEVER).is_over_at(exact(10, 0)));
    }
}
