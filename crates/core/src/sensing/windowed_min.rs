//! The smallest of recent round-trip samples, over a window that may change with each sample.
use crate::units::{Span, Time};
use std::collections::VecDeque;

/// A sample is left out if a smaller one came within so small a part of the window: it could only become
/// the smallest for that time. So at most so many and one samples are kept.
const RESOLUTION: u64 = 64;

/// The smallest sample of the last window, to within 1/64 of its length.
#[derive(Clone, Debug, Default)]
pub struct WindowedMin {
    /// By time and by value, both rising.
    kept: VecDeque<(Time, Span)>,
}

impl WindowedMin {
    /// The smallest sample; `None` before the first.
    pub fn value(&self) -> Option<Span> {
        self.kept.front().map(|&(_, value)| value)
    }

    /// When a sample of at most `value` came last, as far as the kept samples tell: up to 1/64 of the window
    /// too early.
    pub fn last_within(&self, value: Span) -> Option<Time> {
        let (at, _) = self.kept.iter().rev().find(|&&(_, kept)| kept <= value)?;
        Some(*at)
    }

    /// Takes a sample at `now`, which does not run back, and forgets those of before `now - window`.
    pub fn sample(&mut self, now: Time, value: Span, window: Span) {
        while self.kept.back().is_some_and(|&(_, last)| last >= value) {
            self.kept.pop_back();
        }
        let near = |&(at, _): &(Time, Span)| now.since(at).0 < window.0 / RESOLUTION;
        if !self.kept.back().is_some_and(near) {
            self.kept.push_back((now, value));
        }
        while self.kept.len() > 1
            && self.kept.front().is_some_and(|&(at, _)| now.since(at) > window)
        {
            self.kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const WINDOW: Span = Span(6400);

    #[test]
    fn it_is_the_smallest_of_the_window_to_a_sixty_fourth_of_its_length() {
        let mut rng = Rng::new(3);
        let mut filter = WindowedMin::default();
        let mut samples: Vec<(u64, u64)> = Vec::new();
        let mut at = 0;
        for _ in 0..10_000 {
            at += rng.below(200);
            let value = 1000 + rng.below(1000);
            filter.sample(Time(at), Span(value), WINDOW);
            samples.push((at, value));
            let smallest = |window: u64| {
                let recent = samples.iter().rev().take_while(|sample| at - sample.0 <= window);
                recent.map(|sample| sample.1).min().expect("the newest")
            };
            let found = filter.value().expect("a sample").0;
            assert!(found >= smallest(WINDOW.0) && found <= smallest(WINDOW.0 - 100), "{at}");
        }
    }

    #[test]
    fn rising_samples_do_not_fill_the_memory() {
        let mut filter = WindowedMin::default();
        (0..100_000).for_each(|at| filter.sample(Time(at), Span(at + 1), WINDOW));
        assert!(filter.kept.len() <= 66, "{}", filter.kept.len());
    }

    #[test]
    fn the_last_sample_stays_however_old() {
        let mut filter = WindowedMin::default();
        filter.sample(Time(0), Span(5), WINDOW);
        filter.sample(Time(1_000_000), Span(9), WINDOW);
        assert_eq!(filter.value(), Some(Span(9)));
    }
}
