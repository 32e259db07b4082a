//! Temporal-difference learning on a table (Sutton and Barto 2018, chapter 6), with the shifted
//! credit assignment of Kong et al. 2018, equation 3.
use crate::rng::Rng;
use std::collections::BTreeMap;

/// One feature of the state, cut into equal intervals.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Start of the first interval.
    pub low: f64,
    /// End of the last one.
    pub high: f64,
    /// How many there are.
    pub levels: u32,
}

impl Axis {
    /// The interval of `value`; what lies outside belongs to the first or the last, NaN to the
    /// first.
    pub fn level(&self, value: f64) -> u32 {
        let share = (value - self.low) / (self.high - self.low);
        ((share * f64::from(self.levels)) as u32).min(self.levels - 1)
    }
}

/// A box of states.
#[derive(Clone, Debug)]
pub struct Grid {
    axes: Vec<Axis>,
}

impl Grid {
    /// The product of the axes.
    pub fn new(axes: Vec<Axis>) -> Self {
        Self { axes }
    }

    /// Number of the box that `features` fall into. Features beyond the last axis are not looked at.
    pub fn number(&self, features: &[f64]) -> u64 {
        debug_assert!(features.len() >= self.axes.len(), "every axis needs a feature");
        let levels = self.axes.iter().zip(features);
        levels.fold(0, |number, (axis, &feature)| {
            number * u64::from(axis.levels) + u64::from(axis.level(feature))
        })
    }
}

/// Which pair learns from a reward, and from which value it bootstraps. Numbers as at the beginning
/// of time step n+1, when `r_{n+1}` has just been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// `Q(s_n, a_n) <- r_{n+1} + gamma Q(s_{n+1}, a_{n+1})` (Kong et al. 2018, equation 2).
    Sarsa,
    /// `Q(s_{n-1}, a_{n-1}) <- r_{n+1} + gamma Q(s_n, a_n)` (equation 3): what a window does shows
    /// one round trip later.
    ShiftedSarsa,
    /// `Q(s_n, a_n) <- r_{n+1} + gamma max Q(s_{n+1}, .)` (Watkins 1989).
    QLearning,
    /// `Q(s_{n-1}, a_{n-1}) <- r_{n+1} + gamma max Q(s_n, .)`: Q-learning with the credit of
    /// equation 3.
    ShiftedQLearning,
}

/// `alpha_0 decay^floor(t / period)`.
#[derive(Clone, Copy, Debug)]
pub struct LearningRate {
    /// At the start.
    pub start: f64,
    /// What each period leaves of it.
    pub decay: f64,
    /// Seconds.
    pub period_s: f64,
}

impl LearningRate {
    /// `elapsed_s` seconds after the start.
    pub fn at(&self, elapsed_s: f64) -> f64 {
        self.start * libm::pow(self.decay, libm::floor(elapsed_s / self.period_s))
    }
}

/// How a learner learns and explores.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// See there.
    pub update: Update,
    /// Discount per step.
    pub gamma: f64,
    /// Share of steps whose action is drawn at random from all actions.
    pub epsilon: f64,
    /// Value of what was never tried.
    pub initial: f64,
    /// Which of several equal values is chosen.
    pub ties: Ties,
}

/// Which of several equal values is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// Each with the same probability.
    Random,
    /// The first of the action list.
    First,
}

/// A state that was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    row: Row,
    action: usize,
}

/// Learns online, from nothing, which action is worth most in which state.
#[derive(Clone, Debug)]
pub struct Tabular {
    settings: Settings,
    actions: usize,
    /// Where the values of a state are. A run visits some hundred of the states of a grid, so that
    /// a whole table would cost more memory and no less time.
    rows: BTreeMap<u64, Row>,
    values: Vec<f64>,
    tried: Vec<bool>,
    /// `(s_{n-1}, a_{n-1})`.
    older: Option<Pair>,
    /// `(s_n, a_n)`, the present one.
    newer: Option<Pair>,
    rng: Rng,
    /// What was counted.
    pub counts: Counts,
}

/// What a learner did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Actions chosen.
    pub steps: u64,
    /// Of these, drawn at random.
    pub explored: u64,
    /// Pairs of state and action chosen at least once.
    pub cells: u64,
    /// Sum of the rewards.
    pub reward: f64,
}

impl Tabular {
    /// An empty table for so many actions.
    ///
    /// # Panics
    ///
    /// If there is no action.
    pub fn new(actions: usize, settings: Settings, seed: u64) -> Self {
        assert!(actions > 0, "a learner needs something to choose from");
        Self {
            settings,
            actions,
            rows: BTreeMap::new(),
            values: Vec::new(),
            tried: Vec::new(),
            older: None,
            newer: None,
            rng: Rng::new(seed),
            counts: Counts::default(),
        }
    }

    /// Pretends that `action` was chosen twice in `state`.
    pub fn prefill(&mut self, state: u64, action: usize) {
        let pair = Pair { row: self.row(state), action };
        self.older = Some(pair);
        self.newer = Some(pair);
    }

    /// The action chosen last.
    pub fn action(&self) -> Option<usize> {
        self.newer.map(|pair| pair.action)
    }

    /// Beginning of a time step: learns from `reward` at rate `alpha` and chooses the action for
    /// `state`. Without a reward it only chooses.
    pub fn step(&mut self, state: u64, reward: Option<f64>, alpha: f64) -> usize {
        let row = self.row(state);
        // Equation 2 needs the new action for its update; in Table 1 and in Q-learning the update
        // comes first.
        let early = (self.settings.update == Update::Sarsa).then(|| self.choose(row));
        if let Some(reward) = reward {
            self.counts.reward += reward;
            self.learn(row, early, reward, alpha);
        }
        let action = early.unwrap_or_else(|| self.choose(row));
        self.older = self.newer;
        self.newer = Some(Pair { row, action });
        action
    }

    /// The value of `action` in `state`.
    pub fn value(&self, state: u64, action: usize) -> f64 {
        let row = self.rows.get(&state);
        row.map_or(self.settings.initial, |row| self.values[row.0 * self.actions + action])
    }

    fn learn(&mut self, row: Row, chosen: Option<usize>, reward: f64, alpha: f64) {
        let of = |pair: Pair| self.values[self.cell(pair)];
        let (credited, next_value) = match (self.settings.update, self.newer) {
            (_, None) => return,
            (Update::Sarsa, newer) => {
                (newer, chosen.map_or(0.0, |action| of(Pair { row, action })))
            }
            (Update::ShiftedSarsa, Some(newer)) => (self.older, of(newer)),
            (Update::QLearning, newer) => (newer, self.best(row)),
            (Update::ShiftedQLearning, Some(newer)) => (self.older, self.best(newer.row)),
        };
        let Some(credited) = credited else { return };
        let cell = self.cell(credited);
        let target = reward + self.settings.gamma * next_value;
        self.values[cell] += alpha * (target - self.values[cell]);
    }

    /// Greedy with probability 1 - epsilon, else any action.
    fn choose(&mut self, row: Row) -> usize {
        self.counts.steps += 1;
        let action = if self.rng.chance(self.settings.epsilon) {
            self.counts.explored += 1;
            self.rng.below(self.actions as u64) as usize
        } else {
            self.greedy(row)
        };
        let cell = self.cell(Pair { row, action });
        self.counts.cells += u64::from(!self.tried[cell]);
        self.tried[cell] = true;
        action
    }

    fn greedy(&mut self, row: Row) -> usize {
        let best = self.best(row);
        let is_best =
            |values: &[f64], action: &usize| values[row.0 * self.actions + action] >= best;
        let ties = (0..self.actions).filter(|action| is_best(&self.values, action)).count();
        let pick = match self.settings.ties {
            Ties::Random if ties > 1 => self.rng.below(ties as u64) as usize,
            _ => 0,
        };
        (0..self.actions)
            .filter(|action| is_best(&self.values, action))
            .nth(pick)
            .expect("the best value is some action's")
    }

    fn best(&self, row: Row) -> f64 {
        let values = &self.values[row.0 * self.actions..][..self.actions];
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    fn cell(&self, pair: Pair) -> usize {
        pair.row.0 * self.actions + pair.action
    }

    /// Where `state` is kept; made on the first visit.
    fn row(&mut self, state: u64) -> Row {
        let next = Row(self.rows.len());
        let row = *self.rows.entry(state).or_insert(next);
        if row == next {
            let len = self.values.len() + self.actions;
            self.values.resize(len, self.settings.initial);
            self.tried.resize(len, false);
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learner(update: Update) -> Tabular {
        let settings =
            Settings { update, gamma: 0.5, epsilon: 0.0, initial: 0.0, ties: Ties::First };
        Tabular::new(2, settings, 1)
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-12, "{value} instead of {expected}");
    }

    #[test]
    fn levels_are_equal_intervals_and_the_outer_ones_take_what_is_beyond() {
        let axis = Axis { low: 1.0, high: 2.0, levels: 10 };
        let levels = [0.0, 1.0, 1.05, 1.11, 1.99, 2.0, 1e300, f64::NAN].map(|x| axis.level(x));
        assert_eq!(levels, [0, 0, 0, 1, 9, 9, 9, 0]);
    }

    #[test]
    fn every_box_of_a_grid_has_its_own_number() {
        let axis = Axis { low: 0.0, high: 3.0, levels: 3 };
        let grid = Grid::new(vec![axis, axis]);
        let mut numbers: Vec<u64> = Vec::new();
        for first in [0.5, 1.5, 2.5] {
            numbers.extend([0.5, 1.5, 2.5].map(|second| grid.number(&[first, second])));
        }
        assert_eq!(numbers, (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn the_learning_rate_falls_once_each_ten_seconds() {
        let rate = LearningRate { start: 0.3, decay: 0.995, period_s: 10.0 };
        close(rate.at(9.9), 0.3);
        close(rate.at(10.0), 0.3 * 0.995);
        close(rate.at(399.0), 0.3 * libm::pow(0.995, 39.0));
    }

    #[test]
    fn plain_sarsa_credits_the_last_pair_with_the_value_of_the_pair_just_chosen() {
        let mut learner = learner(Update::Sarsa);
        learner.step(7, None, 0.5);
        learner.step(8, Some(4.0), 0.5);
        close(learner.value(7, 0), 2.0); // 0.5 * 4
        learner.step(7, Some(4.0), 0.5);
        close(learner.value(8, 0), 2.5); // 0.5 * (4 + 0.5 * Q(7, 0))
    }

    #[test]
    fn shifted_sarsa_credits_the_pair_before_the_last() {
        let mut learner = learner(Update::ShiftedSarsa);
        learner.step(7, None, 0.5);
        learner.step(8, Some(4.0), 0.5);
        close(learner.value(7, 0), 0.0); // nothing is two steps old
        learner.step(9, Some(4.0), 0.5);
        close(learner.value(7, 0), 2.0);
        learner.step(7, Some(4.0), 0.5);
        close(learner.value(8, 0), 2.0); // bootstraps from Q(9, 0) = 0, not from state 7
    }

    #[test]
    fn q_learning_bootstraps_from_the_best_action_and_sarsa_from_the_chosen() {
        for (update, expected) in [(Update::QLearning, 1.0), (Update::ShiftedQLearning, 0.0)] {
            let mut learner = learner(update);
            learner.prefill(9, 1);
            learner.values[1] = 4.0; // Q(9, 1), while Q(9, 0) = 0
            learner.step(7, None, 0.5);
            learner.step(9, Some(0.0), 0.5);
            close(learner.value(7, 0), expected); // 0.5 * 0.5 * max Q(9, .)
        }
    }

    #[test]
    fn shifted_q_learning_credits_the_pair_before_the_last() {
        let mut learner = learner(Update::ShiftedQLearning);
        for state in [7, 8] {
            learner.step(state, None, 0.5);
        }
        let row = learner.rows[&8].0;
        learner.values[row * 2 + 1] = 6.0;
        learner.step(9, Some(1.0), 0.5);
        close(learner.value(7, 0), 2.0); // 0.5 * (1 + 0.5 * 6)
    }

    #[test]
    fn without_exploration_the_better_action_is_taken() {
        let mut learner = learner(Update::Sarsa);
        learner.step(7, None, 0.5);
        learner.step(7, Some(-2.0), 0.5);
        assert_eq!(learner.step(7, Some(-2.0), 0.5), 1);
    }

    #[test]
    fn equal_values_are_drawn_evenly() {
        let settings = Settings {
            update: Update::Sarsa,
            gamma: 0.5,
            epsilon: 0.0,
            initial: 0.0,
            ties: Ties::Random,
        };
        let mut learner = Tabular::new(4, settings, 3);
        let mut counts = [0; 4];
        for _ in 0..4000 {
            counts[learner.step(1, None, 0.1)] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn one_step_in_ten_explores_and_explores_all_actions() {
        let settings = Settings {
            update: Update::ShiftedSarsa,
            gamma: 0.5,
            epsilon: 0.1,
            initial: 0.0,
            ties: Ties::First,
        };
        let mut learner = Tabular::new(4, settings, 3);
        let mut counts = [0; 4];
        for _ in 0..40_000 {
            counts[learner.step(1, None, 0.1)] += 1;
        }
        assert!((3800..4200).contains(&learner.counts.explored), "{:?}", learner.counts);
        assert!(counts[1..].iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        assert_eq!(learner.counts.cells, 4);
    }
}
