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
    credit: bool,
    truth: bool,
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
        let spec = Arc::clone(spec);
        Ok(Self { environments, spec, learners, agents, credit: true, truth: false })
    }

    /// Whether agents are told the fate of the packets sent in each interval
    /// ([`AgentState::credit`](crate::decision::AgentState::credit)); they are by default, which takes a thirtieth of the time.
    #[must_use]
    pub fn give_credit(self, credit: bool) -> Self {
        Self { credit, ..self }.with_options()
    }

    /// Whether episodes collect [`Truth`](crate::decision::Truth) for every agent; they do not by default.
    #[must_use]
    pub fn collect_truth(self, truth: bool) -> Self {
        Self { truth, ..self }.with_options()
    }

    /// Tells the one environment, if all episodes are of it, what is asked for.
    fn with_options(mut self) -> Self {
        if let Environments::Same(environment) = &mut self.environments {
            environment.credit = self.credit;
            environment.truth = self.truth.then_some(0);
        }
        self
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
                let (scenario, class) = distribution.draw_of_class(seed, progress)?;
                let new = Environment::new(&scenario, &self.spec, &self.learners, self.agents)?;
                let truth = self.truth.then_some(class);
                Environment { credit: self.credit, truth, ..new }.begin(seed)
            }
        }
    }

    /// Place among [`classes`](Self::classes) of the scenario that [`begin`](Self::begin) takes.
    pub fn class(&self, seed: Seed, progress: f64) -> usize {
        match &self.environments {
            Environments::Same(_) => 0,
            Environments::Drawn(distribution) => distribution.class(seed, progress),
        }
    }

    /// Names of the classes that [`Truth::class`](crate::decision::Truth::class) is a place among; one,
    /// without a name, of a single scenario.
    pub fn classes(&self) -> Vec<String> {
        match &self.environments {
            Environments::Same(_) => vec![String::new()],
            Environments::Drawn(distribution) => distribution.classes().to_vec(),
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

/// The seed of an episode: of all simulations by `seed`, of one by its number, and of its episodes by theirs.
pub fn episode_seed(seed: u64, simulation: u64, episode: u64) -> Seed {
    let own = Seed(Seed(seed).derive("simulation", simulation));
    Seed(own.derive("episode", episode))
}
