//! The exchange between a simulation and the learner outside. The agent of each learning flow
//! publishes an observation; the simulation stops until the learner has set an action.
use crate::policy::{Action, Agent, Credit, InvalidAction, Metrics, Report};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the learner sees of one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentState {
    /// Vectors of features, oldest first, row by row.
    pub observation: Vec<f32>,
    /// Metrics of what arrived since the previous decision.
    pub arrived: Metrics,
    /// Metrics of the packets sent in a monitor interval, if one was closed since the last report.
    pub credit: Option<Credit>,
    /// Number of the decision, from 0.
    pub decision: u64,
    /// Whether a decision of this agent is due now.
    pub due: bool,
    /// Whether the flow or the run has ended: no further decision will be due.
    pub ended: bool,
    /// Whether this state changed since the learner last read it.
    pub fresh: bool,
    action: Option<Action>,
}

/// The agents of one simulation.
#[derive(Debug)]
pub(super) struct Agents {
    states: Vec<Mutex<AgentState>>,
    assigned: AtomicU32,
    /// Agents whose action is awaited. Only the simulation's thread changes it.
    waiting: AtomicU32,
}

impl Agents {
    /// `count` agents with observations of `size` numbers.
    pub(super) fn new(count: usize, size: usize) -> Self {
        let state = || AgentState { observation: vec![0.0; size], ..AgentState::default() };
        Self {
            states: (0..count).map(|_| Mutex::new(state())).collect(),
            assigned: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
        }
    }

    /// Whether the action of at least one agent is awaited.
    pub(super) fn any_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// How many agents have a flow.
    pub(super) fn assigned(&self) -> usize {
        self.assigned.load(Ordering::Relaxed) as usize
    }

    pub(super) fn state(&self, agent: usize) -> MutexGuard<'_, AgentState> {
        self.states[agent].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets an agent's action; false if none is awaited.
    pub(super) fn act(&self, agent: usize, action: Action) -> bool {
        let mut state = self.state(agent);
        if !state.due {
            return false;
        }
        state.due = false;
        state.action = Some(action);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        true
    }
}

/// The agent of a flow whose actions come from the learner outside.
#[derive(Debug)]
pub(super) struct ExternalAgent {
    agents: Arc<Agents>,
    index: usize,
}

impl ExternalAgent {
    /// The next agent without a flow; the caller has made sure that there is one.
    pub(super) fn new(agents: &Arc<Agents>) -> Self {
        let index = agents.assigned.fetch_add(1, Ordering::Relaxed) as usize;
        Self { agents: Arc::clone(agents), index }
    }
}

impl Agent for ExternalAgent {
    fn act(&mut self, _observation: &[f32]) -> Result<Action, InvalidAction> {
        // No action was set, although the episode was continued: fall back.
        self.agents.state(self.index).action.take().ok_or(InvalidAction::OutOfRange)
    }

    fn wants_reports(&self) -> bool {
        true
    }

    fn observe(&mut self, report: &Report) {
        let mut state = self.agents.state(self.index);
        state.observation.copy_from_slice(report.observation);
        state.arrived = report.arrived;
        state.credit = report.credit;
        state.decision = report.decision;
        state.fresh = true;
        if report.due && !state.due {
            state.due = true;
            self.agents.waiting.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn end(&mut self) {
        self.agents.state(self.index).ended = true;
    }
}
