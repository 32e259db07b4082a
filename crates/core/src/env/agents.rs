//! The agent of a flow whose actions come from a learner outside of the simulation.
use crate::policy::{Action, Agent, AgentState, InvalidAction, Report};

/// Publishes observations, and returns the actions that were set meanwhile.
#[derive(Debug)]
pub(super) struct ExternalAgent {
    state: AgentState,
    wants_credit: bool,
}

impl ExternalAgent {
    /// With observations of `size` numbers.
    pub(super) fn new(size: usize, wants_credit: bool) -> Self {
        Self { state: AgentState::new(size), wants_credit }
    }
}

impl Agent for ExternalAgent {
    fn act(&mut self, _observation: &[f32]) -> Result<Action, InvalidAction> {
        // No action was set, although the episode was continued: fall back.
        self.state.take_action().ok_or(InvalidAction::OutOfRange)
    }

    fn wants_reports(&self) -> bool {
        true
    }

    fn wants_credit(&self) -> bool {
        self.wants_credit
    }

    fn observe(&mut self, report: &Report) {
        let state = &mut self.state;
        state.observation.copy_from_slice(report.observation);
        state.arrived = report.arrived;
        state.credit = report.credit;
        state.decision = report.decision;
        state.fresh = true;
        state.due |= report.due;
    }

    fn end(&mut self) {
        self.state.ended = true;
    }

    fn state(&mut self) -> Option<&mut AgentState> {
        Some(&mut self.state)
    }
}
