//! The largest of recent samples in constant space (Linux `lib/win_minmax.c`, after K. Nichols): three
//! candidates, each the largest since the one before it.
//!
//! The result is exact while samples fall, and at most a window old; between, a candidate may be passed
//! over that a full list would keep.

/// A value and when it was measured, in the unit of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Candidate {
    at: u64,
    value: f64,
}

/// The largest sample of the last `window` units of a clock that callers choose: rounds, or time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowedMax {
    window: u64,
    /// Largest first, oldest first.
    candidates: [Candidate; 3],
}

impl WindowedMax {
    /// Without samples its value is 0.
    pub fn new(window: u64) -> Self {
        Self { window, candidates: [Candidate::default(); 3] }
    }

    /// From the next sample on, the window is so long.
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// The largest value of the window.
    pub fn value(&self) -> f64 {
        self.candidates[0].value
    }

    /// Takes a sample at `at`; a clock that runs back stands still.
    pub fn sample(&mut self, at: u64, value: f64) {
        let [first, second, third] = &mut self.candidates;
        let at = at.max(third.at);
        let new = Candidate { at, value };
        if value >= first.value || at - third.at > self.window {
            self.candidates = [new; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (new, new);
        } else if value >= third.value {
            *third = new;
        }
        self.age(new);
    }

    /// Candidates beyond the window make room; after a quarter and a half of it without a new second or
    /// third, the newest sample becomes one.
    fn age(&mut self, new: Candidate) {
        let [first, second, third] = self.candidates;
        let since_first = new.at - first.at;
        if since_first > self.window {
            self.candidates = [second, third, new];
            if new.at - second.at > self.window {
                self.candidates = [third, new, new];
            }
        } else if second.at == first.at && since_first > self.window / 4 {
            self.candidates = [first, new, new];
        } else if third.at == second.at && since_first > self.window / 2 {
            self.candidates = [first, second, new];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_largest_stays_for_a_window_and_no_longer() {
        let mut filter = WindowedMax::new(10);
        filter.sample(0, 9.0);
        for at in 1..=10 {
            filter.sample(at, 5.0);
            assert!(filter.value() > 8.0, "{at}");
        }
        filter.sample(11, 5.0);
        assert!((filter.value() - 5.0).abs() < 1e-12);
    }

    #[test]
    fn a_larger_sample_counts_at_once() {
        let mut filter = WindowedMax::new(10);
        filter.sample(0, 3.0);
        filter.sample(0, 4.0);
        assert!((filter.value() - 4.0).abs() < 1e-12);
    }

    #[test]
    fn after_a_gap_longer_than_the_window_only_the_new_sample_counts() {
        let mut filter = WindowedMax::new(10);
        (0..5).for_each(|at| filter.sample(at, 9.0 - at as f64));
        filter.sample(40, 1.0);
        assert!((filter.value() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn it_is_a_sample_of_the_window_and_at_least_the_newest() {
        let mut rng = Rng::new(7);
        let mut filter = WindowedMax::new(10);
        let mut samples: Vec<(u64, f64)> = Vec::new();
        let mut at = 0;
        for _ in 0..10_000 {
            at += rng.below(4);
            let value = rng.uniform();
            filter.sample(at, value);
            samples.push((at, value));
            let found = filter.value();
            let known = samples.iter().rev().take_while(|sample| at - sample.0 <= 10);
            assert!(known.clone().any(|sample| (sample.1 - found).abs() < 1e-15), "{at}");
            assert!(found >= value);
        }
    }
}
