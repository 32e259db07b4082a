//! Propagation delay: fixed, scheduled, redrawn at a frequency, or different for every packet.
//!
//! A packet's delay depends on when it leaves the queue. Delays that fall let a later packet overtake
//! an earlier one; whether it may is the link's decision, not the delay's.
use super::steps::{Redraws, Steps, StepsError};
use crate::rng::{Rng, Seed};
use crate::units::{Span, Time};

/// A link's propagation delay.
#[derive(Clone, Debug)]
pub enum Delay {
    /// Always the same.
    Constant(Span),
    /// Changing at known times.
    Schedule(Steps<Span>),
    /// Drawn uniformly at a frequency.
    Random(Random),
    /// Drawn for each packet.
    Jitter(Jitter),
}

/// Draws, and the one that holds now: packets by the thousand meet the same.
#[derive(Clone, Debug)]
pub struct Random {
    draws: Redraws,
    span: Span,
    from: Time,
    until: Time,
}

/// A normally distributed delay per packet, cut to `min..=2 * mean - min`: symmetric, so that
/// the cut keeps the mean.
#[derive(Clone, Debug)]
pub struct Jitter {
    /// Mean.
    pub mean: Span,
    /// Standard deviation before the cut.
    pub sd: Span,
    /// Shortest delay, at most the mean.
    pub min: Span,
    /// Its own stream.
    pub rng: Rng,
}

impl Delay {
    /// Drawn from `low..=high` every `every`.
    ///
    /// # Errors
    ///
    /// If `low > high` or `every` is zero.
    pub fn random(low: Span, high: Span, every: Span, seed: Seed) -> Result<Self, StepsError> {
        Ok(Self::drawn(Redraws::new(low.0, high.0, every, seed)?))
    }

    /// Drawn so, in nanoseconds.
    pub fn drawn(draws: Redraws) -> Self {
        let (span, until) = draws.at(Time(0));
        Self::Random(Random { draws, span: Span(span), from: Time(0), until })
    }

    /// The delay of a packet whose last bit leaves at `departed`.
    pub fn delay(&mut self, departed: Time) -> Span {
        match self {
            Self::Constant(span) => *span,
            Self::Schedule(steps) => steps.at(departed).0,
            Self::Random(random) => random.at(departed),
            Self::Jitter(jitter) => jitter.draw(),
        }
    }

    /// The delay at a time; the mean where every packet's differs.
    pub fn usual(&self, at: Time) -> Span {
        match self {
            Self::Constant(span) => *span,
            Self::Schedule(steps) => steps.at(at).0,
            Self::Random(random) => Span(random.draws.at(at).0),
            Self::Jitter(jitter) => jitter.mean,
        }
    }

    /// The shortest delay that a packet can meet.
    pub fn minimum(&self) -> Span {
        match self {
            Self::Constant(span) => *span,
            Self::Schedule(steps) => steps.values().min().unwrap_or_default(),
            Self::Random(random) => Span(random.draws.low()),
            Self::Jitter(jitter) => jitter.min.min(jitter.mean),
        }
    }
}

impl Random {
    fn at(&mut self, time: Time) -> Span {
        if time < self.from || time >= self.until {
            let (span, until) = self.draws.at(time);
            (self.span, self.from, self.until) = (Span(span), time, until);
        }
        self.span
    }
}

impl Jitter {
    fn draw(&mut self) -> Span {
        let reach = self.mean.0.saturating_sub(self.min.0);
        let offset = self.sd.0 as f64 * self.rng.normal();
        let size = (offset.abs() as u64).min(reach);
        let mean = self.mean;
        if offset < 0.0 { Span(mean.0 - size) } else { mean + Span(size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    #[test]
    fn a_schedule_gives_the_delay_at_departure() {
        let steps = Steps::new(vec![(Time(0), MS(10)), (Time(MS(500).0), MS(30))]).unwrap();
        let mut delay = Delay::Schedule(steps);
        assert_eq!(delay.delay(Time(MS(499).0)), MS(10));
        assert_eq!(delay.delay(Time(MS(500).0)), MS(30));
        assert_eq!(delay.minimum(), MS(10));
    }

    #[test]
    fn a_random_delay_holds_between_redraws_and_stays_in_its_range() {
        let mut delay = Delay::random(MS(10), MS(50), MS(100), Seed(4)).unwrap();
        let mut seen = Vec::new();
        for draw in 0..200 {
            let first = delay.delay(Time(MS(100 * draw).0));
            assert_eq!(first, delay.delay(Time(MS(100 * draw + 99).0)));
            assert!((MS(10)..=MS(50)).contains(&first));
            seen.push(first);
        }
        assert!(seen.iter().max() > Some(&MS(45)) && seen.iter().min() < Some(&MS(15)));
        assert_eq!(delay.minimum(), MS(10));
    }

    #[test]
    fn jitter_keeps_its_mean_and_never_undercuts_its_minimum() {
        let rng = Rng::new(8);
        let mut delay = Delay::Jitter(Jitter { mean: MS(20), sd: MS(5), min: MS(12), rng });
        let drawn: Vec<Span> = (0..50_000).map(|_| delay.delay(Time(0))).collect();
        let mean = drawn.iter().copied().sum::<Span>().0 / 50_000;
        assert!(mean.abs_diff(MS(20).0) < 100_000, "mean {mean} ns");
        assert_eq!(drawn.iter().min(), Some(&MS(12)));
        assert_eq!(drawn.iter().max(), Some(&MS(28)));
    }

    #[test]
    fn jitter_without_deviation_is_constant() {
        let rng = Rng::new(8);
        let mut delay = Delay::Jitter(Jitter { mean: MS(20), sd: MS(0), min: MS(0), rng });
        assert!((0..100).all(|_| delay.delay(Time(0)) == MS(20)));
    }

    #[test]
    fn jitter_around_no_delay_is_none() {
        let rng = Rng::new(8);
        let mut delay = Delay::Jitter(Jitter { mean: MS(0), sd: MS(5), min: MS(0), rng });
        assert!((0..100).all(|_| delay.delay(Time(0)) == MS(0)));
    }
}
