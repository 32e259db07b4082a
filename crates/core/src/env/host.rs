//! Environments for the agent of a host: one decision at a time, each about one of its connections.
use super::{EnvError, learning};
use crate::coupled::drl_cc::{DrlCc, SPEC};
use crate::decision::{ACTION_MAX, Action, AgentState, InvalidAction};
use crate::policy::joint::{JointAgent, JointObservation, JointSpec, PATHS_MAX};
use crate::rng::Seed;
use crate::scenario::Scenario;
use crate::sim::plan::{ConnectionPlan, NetworkPlan};
use crate::sim::record::Outcome;
use crate::sim::{self, Sim};
use crate::units::Time;

/// Connections of one subflow under an agent that learns.
const TCP: &str = "new_reno";

/// A scenario in which a host's agent learns.
#[derive(Clone, Debug)]
pub struct HostEnvironment {
    network: NetworkPlan,
    spec: JointSpec,
}

impl HostEnvironment {
    /// The connections of the entries whose names match one of `learners` (`*` stands for any text, `?`
    /// for any one character) are those of the host.
    ///
    /// # Errors
    ///
    /// If no connection of the host has several subflows, one has another number of them than `spec` says,
    /// or one sends without a congestion controller.
    pub fn new(
        scenario: &Scenario,
        spec: &JointSpec,
        learners: &[String],
    ) -> Result<Self, EnvError> {
        let mut network = scenario.network.clone();
        let subflows = learning(scenario, &mut network, learners, SPEC.name)?;
        let several = |count: &&usize| **count > 1;
        match subflows.iter().find(|count| several(count) && **count != spec.paths) {
            Some(count) => {
                let about = "allowed is the number of subflows of every connection with several";
                Err(EnvError(format!("paths = {}: {about}; one has {count}", spec.paths)))
            }
            None if !subflows.iter().any(|count| *count > 1) => {
                let allowed = "patterns that match a flow with `multipath`";
                Err(EnvError(format!("learners = {learners:?}: allowed are {allowed}")))
            }
            None => Ok(Self { network, spec: *spec }),
        }
    }

    /// An episode at time 0.
    ///
    /// # Errors
    ///
    /// If another flow's controller cannot be made; a checked scenario has no such fault.
    pub fn begin(&self, seed: Seed) -> Result<HostEpisode, EnvError> {
        let mut build = |plan: &ConnectionPlan| {
            if plan.controller != SPEC.name || !plan.params.is_empty() {
                return sim::builtin(plan).map_err(EnvError::from);
            }
            let agent = Box::new(ExternalAgent::default());
            Ok(Box::new(DrlCc::new(&self.spec, agent, TCP)) as Box<dyn crate::control::Coupled>)
        };
        let sim = Sim::new(&self.network, seed, &mut build)?;
        let flow = sim.flows_with_agents().next().expect("a connection of the host");
        let end = self.network.duration;
        Ok(HostEpisode { sim, end, flow, asking: false, over: false })
    }

    /// What the numbers of the observation are.
    pub fn spec(&self) -> &JointSpec {
        &self.spec
    }
}

/// A simulation that stops when the host's agent is asked.
pub struct HostEpisode {
    sim: Sim,
    end: Time,
    /// Any of the host's.
    flow: u32,
    asking: bool,
    over: bool,
}

impl HostEpisode {
    /// Runs until an action is awaited, or to the end. Returns true if an action is awaited. Does
    /// nothing while one is.
    pub fn advance(&mut self) -> bool {
        if !self.asking && !self.over {
            self.asking = self.sim.run_until_decision(self.end).is_some();
            self.over = !self.asking;
        }
        !self.over
    }

    /// Sets the changes of the target's windows. Returns false, and does nothing, if none are awaited.
    pub fn act(&mut self, changes: [f32; ACTION_MAX]) -> bool {
        let acted = self.state().is_some_and(|state| state.act(Action::Values(changes)));
        self.asking &= !acted;
        acted
    }

    /// What the agent observes: `observation` as in [`JointObservation::numbers`]; of the metrics, the time
    /// and the length of the epoch.
    pub fn state(&mut self) -> Option<&mut AgentState> {
        self.sim.agent_state(self.flow)
    }

    /// Whether the episode has ended.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Present simulated time.
    pub fn now(&self) -> Time {
        self.sim.now()
    }

    /// Data packets sent so far, by every flow.
    pub fn packets(&self) -> u64 {
        self.sim.packets()
    }

    /// Ends the run at the present time and returns its results.
    pub fn finish(self) -> Outcome {
        self.sim.finish()
    }
}

/// Publishes observations, and returns the actions that were set meanwhile.
#[derive(Default)]
struct ExternalAgent(AgentState);

impl JointAgent for ExternalAgent {
    fn act(&mut self, _: &[f32]) -> Result<[f32; PATHS_MAX], InvalidAction> {
        match self.0.take_action() {
            Some(Action::Values(values)) => Ok(values),
            // No action was set, although the episode was continued: fall back.
            _ => Err(InvalidAction::OutOfRange),
        }
    }

    fn observe(&mut self, observation: &JointObservation) {
        let state = &mut self.0;
        state.observation.clear();
        state.observation.extend_from_slice(observation.numbers);
        state.arrived.time_s = observation.time_s;
        state.arrived.duration_s = observation.duration_s;
        state.decision = observation.decision;
        state.fresh = true;
        state.due = true;
    }

    fn state(&mut self) -> Option<&mut AgentState> {
        Some(&mut self.0)
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
