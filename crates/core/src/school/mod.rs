//! Simulations whose flows are governed from outside: one runs until a decision falls due, and goes
//! on once it is answered. What a learner meets here is what a policy meets in a flow: the same
//! [`Pilot`] asks at the same moments.
use crate::control::{FlowInfo, PerFlow};
use crate::params::ParamError;
use crate::pilot::{Action, Pilot, PilotSpec};
use crate::record::Outcome;
use crate::rng::Seed;
use crate::scenario::{ConnectionPlan, Network, Scenario, ScenarioError, TrafficSpec, fits};
use crate::sim::{self, Sim};
use crate::units::Time;
use desk::{Desk, Student};
use std::fmt;
use std::sync::{Arc, MutexGuard};

mod course;
mod desk;

pub use course::{Course, Source};
pub use desk::Seat;

/// What stands for the controller of a learning flow in records.
pub const AGENT: &str = "agent";
/// Most learning flows of a simulation.
pub const AGENTS_MAX: usize = 10_000;

/// Why a scenario is none to learn on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchoolError(String);

impl fmt::Display for SchoolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for SchoolError {}

impl From<ScenarioError> for SchoolError {
    fn from(error: ScenarioError) -> Self {
        Self(error.to_string())
    }
}

impl From<ParamError> for SchoolError {
    fn from(error: ParamError) -> Self {
        Self(error.to_string())
    }
}

/// A scenario some of whose flows learn.
#[derive(Clone, Debug)]
pub struct Lesson {
    network: Network,
    spec: Arc<PilotSpec>,
    agents: usize,
}

impl Lesson {
    /// The flows of the entries whose names match one of `learners` (`*` stands for any text, `?`
    /// for any one character) learn; at most `agents` of them.
    ///
    /// # Errors
    ///
    /// If no flow learns, too many do, or one sends without a congestion controller.
    pub fn new(
        scenario: &Scenario,
        spec: &Arc<PilotSpec>,
        learners: &[String],
        agents: usize,
    ) -> Result<Self, SchoolError> {
        let mut network = scenario.network.clone();
        let entries = scenario.entry_names();
        let mut plans = network.connections.iter_mut();
        let mut found = 0;
        for (flow, name) in scenario.spec.flow.iter().zip(&entries) {
            let learns = learners.iter().any(|pattern| fits(pattern, name));
            for plan in plans.by_ref().take(flow.count as usize).filter(|_| learns) {
                if matches!(plan.traffic, TrafficSpec::Cbr { .. }) {
                    let about = "its traffic is cbr, which no congestion controller governs";
                    return Err(SchoolError(format!("flow {name} cannot learn: {about}")));
                }
                AGENT.clone_into(&mut plan.controller);
                plan.params.clear();
                found += plan.subflows.len();
            }
        }
        if found == 0 {
            return Err(SchoolError(format!(
                "learners = {learners:?}: allowed are patterns that match a flow of the scenario: {}",
                entries.join(", ")
            )));
        }
        if found > agents {
            return Err(too_many(agents, found));
        }
        Ok(Self { network, spec: Arc::clone(spec), agents })
    }

    /// An episode at time 0.
    ///
    /// # Errors
    ///
    /// If more flows learn than there are agents, because a Poisson source has so many arrivals.
    pub fn begin(&self, seed: Seed) -> Result<Episode, SchoolError> {
        let (length, width) = self.spec.shape();
        let desk = Arc::new(Desk::new(self.agents, length * width));
        let mut left = self.agents;
        let mut build = |plan: &ConnectionPlan| {
            if plan.controller != AGENT {
                return sim::builtin(plan).map_err(SchoolError::from);
            }
            let more = left.checked_sub(plan.subflows.len());
            left = more.ok_or_else(|| too_many(self.agents, self.agents + 1))?;
            let (spec, desk) = (Arc::clone(&self.spec), Arc::clone(&desk));
            let pilot = move |flow: &FlowInfo| -> Box<dyn crate::control::Controller> {
                Box::new(Pilot::new(flow, &spec, Box::new(Student::enrol(&desk))))
            };
            Ok(Box::new(PerFlow::new(pilot)) as Box<dyn crate::control::Coupled>)
        };
        let sim = Sim::new(&self.network, seed, &mut build)?;
        Ok(Episode { sim, end: self.network.duration, desk, over: false })
    }

    /// The scenario as it is run, its learning flows under [`AGENT`].
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What the flows see and do.
    pub fn spec(&self) -> &Arc<PilotSpec> {
        &self.spec
    }
}

fn too_many(agents: usize, found: usize) -> SchoolError {
    SchoolError(format!("agents = {agents}: allowed is at least {found}, so many flows learn"))
}

/// A simulation that stops for decisions.
pub struct Episode {
    sim: Sim,
    end: Time,
    desk: Arc<Desk>,
    over: bool,
}

impl Episode {
    /// Goes on until an answer is awaited, or to the end; true if an answer is awaited. Does nothing
    /// while one is.
    pub fn advance(&mut self) -> bool {
        let desk = &self.desk;
        let ended = self.sim.run_while(self.end, || !desk.someone_waits());
        if ended && !self.over {
            self.over = true;
            self.sim.tell_end();
        }
        !self.over
    }

    /// Answers for an agent; false, and nothing happens, if its answer is not awaited.
    pub fn answer(&mut self, agent: usize, action: Action) -> bool {
        self.desk.answer(agent, action)
    }

    /// What lies at an agent's seat. Agents have the order of the scenario's flows.
    pub fn seat(&self, agent: usize) -> MutexGuard<'_, Seat> {
        self.desk.seat(agent)
    }

    /// How many of the agents have a flow.
    pub fn flows(&self) -> usize {
        self.desk.taken()
    }

    /// Whether the end is reached.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The time reached.
    pub fn now(&self) -> Time {
        self.sim.now()
    }

    /// Data packets sent so far, by every flow.
    pub fn packets(&self) -> u64 {
        self.sim.packets()
    }

    /// Ends the run where it is and hands over what it measured.
    pub fn finish(self) -> Outcome {
        self.sim.finish()
    }
}

#[cfg(test)]
mod tests;
