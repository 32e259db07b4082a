//! The agent of a flow whose actions come from a learner outside of the simulation.
use crate::policy::{Action, Agent, AgentState, InvalidAction, Report};

/// Publishes observations, and returns the actions that were set meanwhile.
#[derive(Debug)]
pub(super) struct ExternalAgent(AgentState);

impl ExternalAgent {
    /// With observations of `size` numbers.
    pub(super) fn new(size: usize) -> Self {
        Self(AgentState::new(size))
    }
}

impl Agent for ExternalAgent {
    fn act(&mut self, _observation: &[f32]) -> Result<Action, InvalidAction> {
        // No action was set, although the episode was continued: fall back.
        self.0.take_action().ok_or(InvalidAction::OutOfRange)
    }

    fn wants_reports(&self) -> bool {
        true
    }

    fn observe(&mut self, report: &Report) {
        let state = &mut self.0;
        state.observation.copy_from_slice(report.observation);
        state.arrived = report.arrived;
        state.credit = report.credit;
        state.decision = report.decision;
        state.fresh = true;
        state.due |= report.due;
    }

    fn end(&mut self) {
        self.0.ended = true;
    }

    fn state(&mut self) -> Option<&mut AgentState> {
        Some(&mut self.0)
    }
}
