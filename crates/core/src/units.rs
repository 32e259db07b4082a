//! Quantities that cross borders: nanoseconds, bytes, bits per second. Newtypes over `u64` with the
//! arithmetic that makes sense and no other.
use crate::hint::{likely, unlikely};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// Bits in a byte times nanoseconds in a second: converts bytes at bits/s to nanoseconds.
const NANO_BITS: u128 = 8 * 1_000_000_000;

/// A point in time, in nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Time(pub u64);

/// A length of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Span(pub u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Bytes(pub u64);

/// A rate, in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Rate(pub u64);

impl Time {
    /// Later than every event of a run; stands for "no timer".
    pub const NEVER: Self = Self(u64::MAX);

    /// From seconds; negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(Span::from_secs_f64(secs).0)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        Span(self.0).as_secs_f64()
    }

    /// The time since `earlier`, zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than every run.
    pub const MAX: Self = Self(u64::MAX);

    /// From whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// From whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// From seconds, rounded to the nearest nanosecond; negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9 + 0.5) as u64)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.as_f64() / 1e9
    }

    /// In milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.as_f64() / 1e6
    }

    /// In nanoseconds, at most those of 292 years: processors convert signed numbers in one instruction.
    fn as_f64(self) -> f64 {
        self.0.min(i64::MAX as u64) as i64 as f64
    }

    /// This many times the span, rounded down; negative and NaN factors give zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The difference, zero where it would be negative.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Rate {
    /// Faster than every link: pacing is off.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// From megabits per second (10^6 bit/s), rounded to the nearest bit per second.
    pub fn from_mbps(mbps: f64) -> Self {
        Self((mbps * 1e6 + 0.5) as u64)
    }

    /// In megabits per second (10^6 bit/s).
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// How long `bytes` take at this rate, rounded up so that a link never runs fast; `Span::MAX`
    /// for a rate of zero.
    pub fn time_for(self, bytes: Bytes) -> Span {
        if unlikely(self.0 == 0) {
            return Span::MAX;
        }
        if likely(bytes.0 < u64::MAX / 8_000_000_000) {
            return Span((bytes.0 * 8_000_000_000).div_ceil(self.0));
        }
        let nanos = (u128::from(bytes.0) * NANO_BITS).div_ceil(u128::from(self.0));
        Span(nanos.min(u128::from(u64::MAX)) as u64)
    }

    /// The bandwidth-delay product: what this rate carries in `span`, rounded down.
    ///
    /// ```
    /// # use ackademy::units::{Bytes, Rate, Span};
    /// assert_eq!(Rate::from_mbps(12.0).bytes_in(Span::from_millis(40)), Bytes(60_000));
    /// ```
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.0) / NANO_BITS;
        Bytes(bytes.min(u128::from(u64::MAX)) as u64)
    }

    /// The rate that carries `bytes` in `span`; `UNLIMITED` for an empty span.
    pub fn of(bytes: Bytes, span: Span) -> Self {
        if unlikely(span.0 == 0) {
            return Self::UNLIMITED;
        }
        let scaled = if likely(bytes.0 < u64::MAX / 8_000_000_000) {
            bytes.0 * 8_000_000_000 / span.0
        } else {
            (u128::from(bytes.0) * NANO_BITS / u128::from(span.0)).min(u128::from(u64::MAX)) as u64
        };
        Self(scaled)
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        debug_assert!(self >= earlier, "time ran back: {self:?} - {earlier:?}");
        self.since(earlier)
    }
}

macro_rules! additive {
    ($($unit:ident),*) => {$(
        impl Add for $unit {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl Sub for $unit {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                debug_assert!(self.0 >= other.0, "negative: {self:?} - {other:?}");
                Self(self.0.saturating_sub(other.0))
            }
        }
        impl SubAssign for $unit {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
        impl Mul<u64> for $unit {
            type Output = Self;
            fn mul(self, factor: u64) -> Self {
                Self(self.0.saturating_mul(factor))
            }
        }
        impl Div<u64> for $unit {
            type Output = Self;
            fn div(self, divisor: u64) -> Self {
                Self(self.0 / divisor)
            }
        }
        impl Sum for $unit {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self(0), Add::add)
            }
        }
    )*};
}
additive!(Span, Bytes, Rate);

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.6} s", self.as_secs_f64())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.3} ms", self.as_millis_f64())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} Mb/s", self.as_mbps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_1250_byte_packet_takes_one_millisecond_at_10_mbps() {
        assert_eq!(Rate::from_mbps(10.0).time_for(Bytes(1250)), Span::from_millis(1));
    }

    #[test]
    fn transmission_times_round_up_so_a_link_never_runs_fast() {
        assert_eq!(Rate(3_000_000_000).time_for(Bytes(1)), Span(3));
    }

    #[test]
    fn a_zero_rate_never_finishes() {
        assert_eq!(Rate(0).time_for(Bytes(1)), Span::MAX);
        assert_eq!(Time(5) + Span::MAX, Time::NEVER);
    }

    #[test]
    fn rate_of_and_bytes_in_are_inverse() {
        let rate = Rate::of(Bytes(1_250_000), Span::from_millis(1000));
        assert_eq!(rate, Rate::from_mbps(10.0));
        assert_eq!(rate.bytes_in(Span::from_millis(1000)), Bytes(1_250_000));
    }

    #[test]
    fn nan_and_negative_seconds_become_zero() {
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
    }
}
