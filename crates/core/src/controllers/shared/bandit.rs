//! An epsilon-greedy bandit with exponentially weighted values (Sutton and Barto 2018, sections 2.2
//! and 2.5).
use crate::rng::Rng;

/// A bandit with `N` arms that keeps a value per arm.
#[derive(Clone, Debug)]
pub struct Bandit<const N: usize> {
    /// `None` for an arm without a reward; it counts as zero.
    values: [Option<f64>; N],
    current: usize,
    /// Chance of a uniform choice.
    epsilon: f64,
    /// Weight of a new reward in an arm's value.
    step: f64,
    rng: Rng,
}

impl<const N: usize> Bandit<N> {
    /// Without values; starts on an arm drawn uniformly.
    pub fn new(epsilon: f64, step: f64, mut rng: Rng) -> Self {
        let current = rng.below(N as u64) as usize;
        Self { values: [None; N], current, epsilon, step, rng }
    }

    /// The arm in use.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Goes to an arm drawn uniformly.
    pub fn explore(&mut self) {
        self.current = self.rng.below(N as u64) as usize;
    }

    /// Goes to the best arm, or with probability epsilon to any. The arm in use wins ties.
    pub fn choose(&mut self) {
        if self.rng.chance(self.epsilon) {
            return self.explore();
        }
        let value = |arm: usize| self.values[arm].unwrap_or(0.0);
        let better = |best: usize, arm: usize| if value(arm) > value(best) { arm } else { best };
        self.current = (0..N).fold(self.current, better);
    }

    /// Rewards the arm in use; its first reward becomes its value.
    pub fn reward(&mut self, reward: f64) {
        let value = &mut self.values[self.current];
        *value = Some(value.map_or(reward, |old| old + self.step * (reward - old)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bandit(epsilon: f64) -> Bandit<5> {
        Bandit::new(epsilon, 0.85, Rng::new(1))
    }

    #[test]
    fn a_value_is_mostly_the_latest_reward() {
        let mut bandit = bandit(0.0);
        bandit.reward(10.0);
        bandit.reward(20.0);
        let value = bandit.values[bandit.current].unwrap();
        assert!((value - (0.15 * 10.0 + 0.85 * 20.0)).abs() < 1e-12);
    }

    #[test]
    fn without_exploration_the_best_arm_is_chosen_and_the_present_one_wins_ties() {
        let mut bandit = bandit(0.0);
        bandit.current = 3;
        bandit.choose();
        assert_eq!(bandit.current(), 3);
        bandit.values = [Some(1.0), Some(7.0), None, Some(2.0), Some(7.0)];
        bandit.choose();
        assert_eq!(bandit.current(), 1);
    }

    #[test]
    fn an_arm_without_a_reward_is_reached_by_exploration_only() {
        let mut greedy = bandit(0.0);
        greedy.current = 0;
        greedy.reward(1.0);
        (0..100).for_each(|_| greedy.choose());
        assert_eq!(greedy.current(), 0);
    }

    #[test]
    fn epsilon_is_the_chance_of_a_uniform_choice() {
        let mut bandit = bandit(0.3);
        bandit.values = [Some(9.0), Some(1.0), Some(1.0), Some(1.0), Some(1.0)];
        let others = (0..20_000).filter(|_| {
            bandit.choose();
            bandit.current() != 0
        });
        let share = others.count() as f64 / 20_000.0; // 0.3 * 4 / 5
        assert!((share - 0.24).abs() < 0.01, "{share}");
    }
}
