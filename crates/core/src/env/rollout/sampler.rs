//! Actions drawn from what a network says: a choice by its probability, or values around its outputs.
use crate::decision::{ACTION_MAX, Action};
use crate::policy::Policy;
use crate::policy::nn::{Network, Scratch};
use crate::rng::Rng;
use std::sync::Arc;

/// Half the logarithm of 2 pi.
const LOG_ROOT: f64 = 0.918_938_533_204_672_7;

/// A policy that explores.
#[derive(Clone, Debug)]
pub struct Sampler {
    network: Arc<Network>,
    /// Values of an action; 0 if it is a choice.
    values: usize,
    log_std: [f64; ACTION_MAX],
    std: [f64; ACTION_MAX],
}

/// What was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// As it is learnt from: values may be outside of [-1, 1].
    pub action: Action,
    /// Its logarithm, a density's for values.
    pub log_probability: f32,
}

impl Drawn {
    /// As the flow gets it: values within [-1, 1].
    pub fn taken(&self) -> Action {
        match self.action {
            Action::Values(values) => Action::Values(values.map(|value| value.clamp(-1.0, 1.0))),
            choice @ Action::Choice(_) => choice,
        }
    }
}

impl Sampler {
    /// Choices by the exponentials of the outputs; values by normal distributions around the first outputs,
    /// with these logarithms of the standard deviations, one for each value of an action.
    pub fn new(policy: &Policy, log_std: &[f32]) -> Self {
        let mut logs = [0.0; ACTION_MAX];
        logs.iter_mut().zip(log_std).for_each(|(log, &own)| *log = f64::from(own));
        Self {
            network: policy.shared_network(),
            values: policy.spec().action_size(),
            log_std: logs,
            std: logs.map(libm::exp),
        }
    }

    /// Room for draws, one after the other.
    pub fn scratch(&self) -> Scratch {
        self.network.scratch()
    }

    /// An action for an observation.
    pub fn draw(&self, observation: &[f32], rng: &mut Rng, scratch: &mut Scratch) -> Drawn {
        let outputs = self.network.evaluate(observation, scratch);
        if self.values == 0 { choice(outputs, rng) } else { self.around(outputs, rng) }
    }

    fn around(&self, outputs: &[f32], rng: &mut Rng) -> Drawn {
        let mut values = [0.0; ACTION_MAX];
        let mut log_probability = 0.0;
        for index in 0..self.values {
            let noise = rng.normal();
            values[index] = (f64::from(outputs[index]) + self.std[index] * noise) as f32;
            log_probability -= 0.5 * noise * noise + self.log_std[index] + LOG_ROOT;
        }
        Drawn { action: Action::Values(values), log_probability: log_probability as f32 }
    }
}

/// The first choice at which the probabilities so far exceed a uniform number.
fn choice(outputs: &[f32], rng: &mut Rng) -> Drawn {
    let most = f64::from(outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let weight = |&output: &f32| libm::exp(f64::from(output) - most);
    let sum: f64 = outputs.iter().map(weight).sum();
    let mut left = rng.uniform() * sum;
    let last = outputs.len() - 1;
    let chosen = outputs.iter().position(|output| {
        left -= weight(output);
        left < 0.0
    });
    // Rounding may leave a little of the last weight.
    let chosen = chosen.unwrap_or(last);
    let log_probability = f64::from(outputs[chosen]) - most - libm::log(sum);
    Drawn { action: Action::Choice(chosen), log_probability: log_probability as f32 }
}
