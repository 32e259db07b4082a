//! Environments for learners: an episode is a simulation that runs until a decision is due, and
//! continues when the learner has acted. Training and deployment use the same
//! [`LearnedController`], so that both make the same observations at the same moments.
use crate::control::{FlowInfo, PerFlow};
use crate::controllers;
use crate::params::ParamError;
use crate::policy::{Action, AgentState, LearnedController, PolicySpec};
use crate::rng::Seed;
use crate::scenario::{Scenario, ScenarioError, fits};
use crate::sim::plan::{ConnectionPlan, NetworkPlan, TrafficSpec};
use crate::sim::record::Outcome;
use crate::sim::{self, Sim};
use crate::units::Time;
use agents::ExternalAgent;
use std::fmt;
use std::sync::Arc;

pub mod account;
mod agents;
mod host;
pub mod reward;
pub mod rollout;
mod source;

pub use host::{HostEnvironment, HostEpisode, LastAsked};
pub use source::{EpisodeSource, Source, episode_seed};

/// Name of a learning flow's controller in records.
pub const AGENT: &str = "agent";
/// Maximum number of learning flows of a simulation.
pub const AGENTS_MAX: usize = 10_000;

/// Why a scenario cannot be used for training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvError(String);

impl fmt::Display for EnvError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for EnvError {}

impl From<ScenarioError> for EnvError {
    fn from(error: ScenarioError) -> Self {
        Self(error.to_string())
    }
}

impl From<ParamError> for EnvError {
    fn from(error: ParamError) -> Self {
        Self(error.to_string())
    }
}

/// A scenario in which some of the flows learn.
#[derive(Clone, Debug)]
pub struct Environment {
    network: NetworkPlan,
    spec: Arc<PolicySpec>,
    agents: usize,
    /// Whether what is sent is accounted.
    credit: bool,
    /// The class of the scenario, if truth is collected.
    truth: Option<usize>,
}

impl Environment {
    /// The flows of the entries whose names match one of `learners` (`*` stands for any text, `?`
    /// for any one character) learn; at most `agents` of them.
    ///
    /// # Errors
    ///
    /// If no flow learns, too many do, or one sends without a congestion controller.
    pub fn new(
        scenario: &Scenario,
        spec: &Arc<PolicySpec>,
        learners: &[String],
        agents: usize,
    ) -> Result<Self, EnvError> {
        let mut network = scenario.network.clone();
        let learning = learning(scenario, &mut network, learners, AGENT)?;
        let found = learning.into_iter().sum();
        if found > agents {
            return Err(too_many(agents, found));
        }
        Ok(Self { network, spec: Arc::clone(spec), agents, credit: true, truth: None })
    }

    /// Collects [`Truth`](crate::decision::Truth) for every agent from now on; `class` is that of the scenario
    /// among those of its distribution.
    #[must_use]
    pub fn collect_truth(self, class: usize) -> Self {
        Self { truth: Some(class), ..self }
    }

    /// An episode at time 0.
    ///
    /// # Errors
    ///
    /// If more flows learn than there are agents, because a Poisson source has that many arrivals.
    pub fn begin(&self, seed: Seed) -> Result<Episode, EnvError> {
        let mut left = self.agents;
        let mut build = |plan: &ConnectionPlan| {
            if plan.controller != AGENT {
                return sim::builtin(plan).map_err(EnvError::from);
            }
            let more = left.checked_sub(plan.subflows.len());
            left = more.ok_or_else(|| too_many(self.agents, self.agents + 1))?;
            let (spec, credit) = (Arc::clone(&self.spec), self.credit);
            let controller = move |flow: &FlowInfo| -> Box<dyn crate::control::Controller> {
                let (length, width) = spec.shape();
                let agent = Box::new(ExternalAgent::new(length * width, credit));
                Box::new(LearnedController::new(flow, &spec, agent, controllers::fallback))
            };
            Ok(Box::new(PerFlow::new(controller)) as Box<dyn crate::control::Coupled>)
        };
        let mut sim = Sim::new(&self.network, seed, &mut build)?;
        if let Some(class) = self.truth {
            sim.collect_truth(&self.network, AGENT, class);
        }
        let flows = sim.flows_of(AGENT).collect();
        Ok(Run::new(sim, self.network.duration, AgentFlows(flows)))
    }

    /// The network as it is simulated, with [`AGENT`] as the controller of the learning flows.
    pub fn network(&self) -> &NetworkPlan {
        &self.network
    }

    /// The tables of the learned controllers.
    pub fn spec(&self) -> &Arc<PolicySpec> {
        &self.spec
    }
}

/// Gives the connections of the entries that match one of `learners` another controller; returns how many
/// subflows each of them has.
fn learning(
    scenario: &Scenario,
    network: &mut NetworkPlan,
    learners: &[String],
    controller: &str,
) -> Result<Vec<usize>, EnvError> {
    let entries = scenario.entry_names();
    let learns = |name: &String| learners.iter().any(|pattern| fits(pattern, name));
    let learning: Vec<bool> = entries.iter().map(learns).collect();
    let mut found = Vec::new();
    for plan in network.connections.iter_mut().filter(|plan| learning[plan.entry]) {
        if matches!(plan.traffic, TrafficSpec::Cbr { .. }) {
            let about = "its traffic is cbr, which no congestion controller governs";
            let name = &entries[plan.entry];
            return Err(EnvError(format!("flow {name} cannot learn: {about}")));
        }
        controller.clone_into(&mut plan.controller);
        plan.params.clear();
        found.push(plan.subflows.len());
    }
    if found.is_empty() {
        return Err(EnvError(format!(
            "learners = {learners:?}: allowed are patterns that match a flow of the scenario: {}",
            entries.join(", ")
        )));
    }
    Ok(found)
}

fn too_many(agents: usize, found: usize) -> EnvError {
    EnvError(format!("agents = {agents}: allowed is at least {found}, so many flows learn"))
}

/// A simulation that stops when a decision is due; `A` says which flows have an agent.
pub struct Run<A> {
    sim: Sim,
    end: Time,
    /// The flow whose agent is awaited.
    asking: Option<u32>,
    over: bool,
    agents: A,
}

/// The flow of each agent.
pub struct AgentFlows(Vec<u32>);

/// An episode of agents that have a flow each.
pub type Episode = Run<AgentFlows>;

impl<A> Run<A> {
    fn new(sim: Sim, end: Time, agents: A) -> Self {
        Self { sim, end, asking: None, over: false, agents }
    }

    /// Goes on to the next flow whose agent is asked, or to `until`, unless an action is awaited; whether the
    /// episode has ended by that.
    fn ends(&mut self, until: Time) -> bool {
        if self.asking.is_some() || self.over {
            return false;
        }
        self.asking = self.sim.run_until_decision(until);
        self.over = self.asking.is_none() && until >= self.end;
        self.over
    }

    /// Whether the episode has ended.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Simulated time at which the episode ends.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Present simulated time.
    pub fn now(&self) -> Time {
        self.sim.now()
    }

    /// Data packets sent so far, by every flow.
    pub fn packets(&self) -> u64 {
        self.sim.packets()
    }

    /// Events handled so far: how much work the episode was.
    pub fn events(&self) -> u64 {
        self.sim.events()
    }

    /// Ends the run at the present time and returns its results.
    pub fn finish(self) -> Outcome {
        self.sim.finish()
    }
}

impl Episode {
    /// Runs until an action is awaited, or to the end. Returns true if an action is awaited. Does
    /// nothing while one is.
    pub fn advance(&mut self) -> bool {
        self.advance_to(self.end);
        !self.over
    }

    /// As [`advance`](Self::advance), but no further than `until`. Returns true if an action is awaited or the
    /// episode is over: then there is nothing left to advance.
    pub fn advance_to(&mut self, until: Time) -> bool {
        if self.ends(until) {
            self.sim.tell_end();
        }
        self.over || self.asking.is_some()
    }

    /// Sets an agent's action. Returns false, and does nothing, if no action of it is awaited.
    pub fn act(&mut self, agent: usize, action: Action) -> bool {
        let acted = self.agent(agent).is_some_and(|state| state.act(action));
        if acted && self.asking == self.agents.0.get(agent).copied() {
            self.asking = None;
        }
        acted
    }

    /// The state of an agent; `None` if it has no flow, or its subflow is not open yet. Agents have the order
    /// of the scenario's flows and of their subflows.
    pub fn agent(&mut self, agent: usize) -> Option<&mut AgentState> {
        self.sim.agent_state_with_truth(*self.agents.0.get(agent)?)
    }

    /// How many agents have a flow.
    pub fn flows(&self) -> usize {
        self.agents.0.len()
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod truth_tests;
