//! Quantities that change at known instants: a list of steps, or a uniform redraw at a fixed
//! frequency. Both are pure functions of time, so queries in any order agree.
use std::fmt;
use std::sync::Arc;

use crate::rng::Seed;
use crate::units::{Span, Time};

/// A piecewise constant function of time, repeated with a period if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps<T> {
    /// When each value begins; the first at zero, strictly increasing.
    begins: Arc<[(Time, T)]>,
    period: Option<Span>,
    /// Of the steps, what lies before time zero; only with a period.
    skipped: Span,
}

/// A uniform integer redrawn every `every`; draw `i` depends on the seed and on `i` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redraws {
    low: u64,
    high: u64,
    every: Span,
    finer: Option<Finer>,
    seed: Seed,
}

/// Changes of a draw while it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finer {
    /// Time from one to the next, counted from the start of the draw; above zero.
    pub every: Span,
    /// Each multiplies the draw by a factor up to so many millionths away from one; at most a million.
    pub spread: u32,
}

/// Why a list of steps or a range of draws describes no function of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepsError {
    /// No step at all.
    Empty,
    /// The first step begins later than zero.
    LateStart(Time),
    /// The step of this index (from zero) does not begin after the one before it.
    NotIncreasing(usize),
    /// The period ends before the last step begins.
    ShortPeriod(Span),
    /// The range's low end lies above its high end.
    EmptyRange(u64, u64),
    /// Redrawn every zero nanoseconds.
    ZeroInterval,
}

impl<T: Copy> Steps<T> {
    /// Steps of which the last one lasts for ever.
    ///
    /// # Errors
    ///
    /// If there is no step, the first is not at zero, or their times do not strictly increase.
    pub fn new(steps: Vec<(Time, T)>) -> Result<Self, StepsError> {
        let &(first, _) = steps.first().ok_or(StepsError::Empty)?;
        if first > Time(0) {
            return Err(StepsError::LateStart(first));
        }
        if let Some(index) = steps.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
            return Err(StepsError::NotIncreasing(index + 1));
        }
        Ok(Self { begins: steps.into(), period: None, skipped: Span::ZERO })
    }

    /// Steps that begin again every `period`.
    ///
    /// # Errors
    ///
    /// As [`Steps::new`], and if the period ends before the last step begins.
    pub fn repeating(steps: Vec<(Time, T)>, period: Span) -> Result<Self, StepsError> {
        let steps = Self::new(steps)?;
        if steps.begins.last().is_some_and(|&(last, _)| last.0 >= period.0) {
            return Err(StepsError::ShortPeriod(period));
        }
        Ok(Self { period: Some(period), ..steps })
    }

    /// The same, begun at this place in its period; without one, the same.
    #[must_use]
    pub fn begun_at(self, place: Span) -> Self {
        let skipped = self.period.map_or(Span::ZERO, |period| Span(place.0 % period.0));
        Self { skipped, ..self }
    }

    /// The value at `time`, and when the next step begins (`Time::NEVER` if there is none).
    pub fn at(&self, time: Time) -> (T, Time) {
        let (base, next) = self.place(time);
        let until = match (self.begins.get(next), self.period) {
            (Some(&(begin, _)), _) => base + Span(begin.0),
            (None, Some(period)) => base + period,
            (None, None) => return (self.begins[next - 1].1, Time::NEVER),
        };
        (self.begins[next - 1].1, Time(until.0 - self.skipped.0))
    }

    /// When the value at `time` began; time zero if it was there from the start.
    pub fn began(&self, time: Time) -> Time {
        let (base, next) = self.place(time);
        Time((base.0 + self.begins[next - 1].0.0).saturating_sub(self.skipped.0))
    }

    /// Where the round of `time` begins, counted from the steps' own start, and the step after the one that holds.
    fn place(&self, time: Time) -> (Time, usize) {
        let time = time + self.skipped;
        let within = self.period.map_or(time.0, |period| time.0 % period.0);
        let next = self.begins.partition_point(|&(begin, _)| begin.0 <= within);
        (Time(time.0 - within), next)
    }

    /// What the steps repeat with.
    pub fn period(&self) -> Option<Span> {
        self.period
    }

    /// Every step of a period, from the steps' own start.
    pub fn steps(&self) -> &[(Time, T)] {
        &self.begins
    }

    /// Every value, in order.
    pub fn values(&self) -> impl Iterator<Item = T> {
        self.begins.iter().map(|&(_, value)| value)
    }
}

impl Redraws {
    /// Draws from `low..=high`, the first at zero.
    ///
    /// # Errors
    ///
    /// If `low > high` or `every` is zero.
    pub fn new(low: u64, high: u64, every: Span, seed: Seed) -> Result<Self, StepsError> {
        if low > high {
            return Err(StepsError::EmptyRange(low, high));
        }
        if every == Span::ZERO {
            return Err(StepsError::ZeroInterval);
        }
        Ok(Self { low, high, every, finer: None, seed })
    }

    /// The value at `time`, and when the next draw replaces it.
    pub fn at(&self, time: Time) -> (u64, Time) {
        let draw = time.0 / self.every.0;
        let mut rng = self.seed.stream("redraw", draw);
        let value = match (self.high - self.low).checked_add(1) {
            Some(width) => self.low + rng.below(width),
            None => rng.next_u64(),
        };
        let begin = draw * self.every.0;
        let until = Time(begin) + self.every;
        let Some(Finer { every, spread }) = self.finer else { return (value, until) };
        let step = (time.0 - begin) / every.0;
        let mut rng = Seed(self.seed.derive("redraw", draw)).stream("step", step);
        let factor = MILLION - u64::from(spread) + rng.below(2 * u64::from(spread) + 1);
        let value = u128::from(value) * u128::from(factor) / u128::from(MILLION);
        (value as u64, until.min(Time(begin) + every * (step + 1)))
    }

    /// The same, with every draw changed while it holds.
    #[must_use]
    pub fn with_steps(self, finer: Option<Finer>) -> Self {
        Self { finer, ..self }
    }

    /// The smallest value a draw can take.
    pub fn low(&self) -> u64 {
        let spread = self.finer.map_or(0, |finer| u64::from(finer.spread));
        (u128::from(self.low) * u128::from(MILLION - spread) / u128::from(MILLION)) as u64
    }
}

impl fmt::Display for StepsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(out, "no steps; at least one is needed, beginning at 0 s"),
            Self::LateStart(first) => {
                write!(out, "the first step begins at {first}; it must begin at 0 s")
            }
            Self::NotIncreasing(index) => write!(
                out,
                "step {} does not begin after the one before it; times must increase",
                index + 1
            ),
            Self::ShortPeriod(period) => {
                write!(
                    out,
                    "a period of {period} is too short; it must end after the last step begins"
                )
            }
            Self::EmptyRange(low, high) => {
                write!(out, "the range {low} to {high} is empty; its low end must come first")
            }
            Self::ZeroInterval => write!(out, "redrawn every 0 s; the interval must be longer"),
        }
    }
}

impl std::error::Error for StepsError {}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time(secs * 1_000_000_000)
    }

    #[test]
    fn a_step_holds_until_the_next_and_the_last_for_ever() {
        let steps = Steps::new(vec![(at(0), 'a'), (at(2), 'b')]).unwrap();
        assert_eq!(steps.at(at(1)), ('a', at(2)));
        assert_eq!(steps.at(at(2)), ('b', Time::NEVER));
        assert_eq!(steps.at(Time::NEVER), ('b', Time::NEVER));
    }

    #[test]
    fn repeating_steps_begin_again_after_their_period() {
        let steps = Steps::repeating(vec![(at(0), 'a'), (at(2), 'b')], Span(at(3).0)).unwrap();
        assert_eq!(steps.at(at(5)), ('b', at(6)));
        assert_eq!(steps.at(at(6)), ('a', at(8)));
    }

    #[test]
    fn steps_begun_later_are_the_same_steps_earlier() {
        let steps = Steps::repeating(vec![(at(0), 'a'), (at(2), 'b')], Span(at(3).0)).unwrap();
        for place in 0..7 {
            let begun = steps.clone().begun_at(Span(at(place).0));
            for second in 0..9 {
                let (value, until) = steps.at(at(second + place));
                assert_eq!(begun.at(at(second)), (value, Time(until.0 - at(place).0)));
                let began = steps.began(at(second + place)).0.saturating_sub(at(place).0);
                assert_eq!(begun.began(at(second)), Time(began));
            }
        }
    }

    #[test]
    fn steps_that_are_no_function_of_time_are_refused() {
        assert_eq!(Steps::<u8>::new(vec![]), Err(StepsError::Empty));
        assert_eq!(Steps::new(vec![(at(1), 0)]), Err(StepsError::LateStart(at(1))));
        let twice = vec![(at(0), 0), (at(1), 1), (at(1), 2)];
        assert_eq!(Steps::new(twice), Err(StepsError::NotIncreasing(2)));
        let late = vec![(at(0), 0), (at(1), 1)];
        let period = Span(at(1).0);
        assert_eq!(Steps::repeating(late, period), Err(StepsError::ShortPeriod(period)));
    }

    #[test]
    fn draws_stay_in_their_range_and_agree_in_any_order() {
        let draws = Redraws::new(5, 15, Span::from_millis(100), Seed(3)).unwrap();
        let forward: Vec<u64> = (0..100).map(|i| draws.at(Time(i * 50_000_000)).0).collect();
        let backward: Vec<u64> = (0..100).rev().map(|i| draws.at(Time(i * 50_000_000)).0).collect();
        assert!(forward.iter().eq(backward.iter().rev()));
        assert!(forward.iter().all(|value| (5..=15).contains(value)));
        assert!(forward.chunks(2).all(|pair| pair[0] == pair[1]));
        assert!((5..=15).all(|value| forward.contains(&value)));
    }

    #[test]
    fn a_draw_changes_in_steps_within_its_spread_and_begins_anew_with_the_next() {
        let (every, low) = (Span::from_millis(100), 1_000_000);
        let draws = Redraws::new(low, low, every, Seed(3)).unwrap();
        let finer = Finer { every: Span::from_millis(40), spread: 250_000 };
        let draws = draws.with_steps(Some(finer));
        let mut values = Vec::new();
        let mut time = Time(0);
        for end in [40, 80, 100, 140, 180, 200, 240] {
            let (value, until) = draws.at(time);
            assert_eq!(until, Time(end * 1_000_000));
            assert_eq!(draws.at(Time(until.0 - 1)), (value, until));
            values.push(value);
            time = until;
        }
        assert!(values.iter().all(|value| (750_000..=1_250_000).contains(value)), "{values:?}");
        assert!(values.windows(2).all(|pair| pair[0] != pair[1]), "{values:?}");
        assert_eq!(draws.low(), 750_000);
    }

    #[test]
    fn the_full_range_and_a_single_value_can_be_drawn() {
        let every = Span(1);
        assert_eq!(Redraws::new(7, 7, every, Seed(0)).unwrap().at(Time(9)), (7, Time(10)));
        Redraws::new(0, u64::MAX, every, Seed(0)).unwrap().at(Time::NEVER);
        assert_eq!(Redraws::new(2, 1, every, Seed(0)), Err(StepsError::EmptyRange(2, 1)));
        assert_eq!(Redraws::new(1, 2, Span::ZERO, Seed(0)), Err(StepsError::ZeroInterval));
    }
}
