//! Where episodes come from: the same scenario each time, or one drawn from a distribution.
use super::{EnvError, Environment, Episode};
use crate::policy::PolicySpec;
use crate::rng::Seed;
use crate::scenario::{Distribution, Scenario};
use std::sync::Arc;

/// What the episodes simulate.
#[derive(Clone, Debug)]
pub enum Source {
    /// The same scenario each time.
    Scenario(Box<Scenario>),
    /// A scenario drawn for each episode.
    Distribution(Box<Distribution>),
}

/// Makes episodes, one after the other.
#[derive(Clone, Debug)]
pub struct EpisodeSource {
    environments: Environments,
    spec: Arc<PolicySpec>,
    learners: Vec<String>,
    agents: usize,
}

#[derive(Clone, Debug)]
enum Environments {
    Same(Environment),
    Drawn(Box<Distribution>),
}

impl EpisodeSource {
    /// See [`Environment::new`].
    ///
    /// # Errors
    ///
    /// As there. A distribution's first scenario is checked now, the others when they are drawn.
    pub fn new(
        source: Source,
        spec: &Arc<PolicySpec>,
        learners: Vec<String>,
        agents: usize,
    ) -> Result<Self, EnvError> {
        let environments = match source {
            Source::Scenario(scenario) => {
                Environments::Same(Environment::new(&scenario, spec, &learners, agents)?)
            }
            Source::Distribution(distribution) => {
                Environment::new(&distribution.draw(Seed(0), 0.0)?, spec, &learners, agents)?;
                Environments::Drawn(distribution)
            }
        };
        Ok(Self { environments, spec: Arc::clone(spec), learners, agents })
    }

    /// The episode of this seed. A distribution draws its scenario from the same seed and from the
    /// training progress, in [0, 1].
    ///
    /// # Errors
    ///
    /// See [`Environment::new`] and [`Environment::begin`].
    pub fn begin(&self, seed: Seed, progress: f64) -> Result<Episode, EnvError> {
        match &self.environments {
            Environments::Same(environment) => environment.begin(seed),
            Environments::Drawn(distribution) => {
                let scenario = distribution.draw(seed, progress)?;
                Environment::new(&scenario, &self.spec, &self.learners, self.agents)?.begin(seed)
            }
        }
    }

    /// The tables of the learned controllers.
    pub fn spec(&self) -> &PolicySpec {
        &self.spec
    }

    /// Agents of every episode.
    pub fn agents(&self) -> usize {
        self.agents
    }
}
