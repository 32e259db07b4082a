//! Control laws under an agent: an action corrects what a law does at the end of each interval, and an action of zeros is
//! the law alone. An action map over another law is another file, its line in [`begin`], and what `spec` allows beside it.
use super::spec::{MapSpec, PolicySpec, WhenSpec};
use crate::control::{Ack, Control, FlowInfo, Loss};
use crate::sensing::signals::Interval;

pub mod cubic_factor;
pub mod own_queue;

/// The law of a flow that this policy's action map corrects, if it is a map over one.
pub fn begin(spec: &PolicySpec, flow: &FlowInfo) -> Option<Box<dyn Corrected>> {
    match spec.action.map {
        MapSpec::OwnQueue | MapSpec::OwnQueuePaced => {
            Some(Box::new(own_queue::OwnQueue::new(flow, &spec.action)))
        }
        MapSpec::CubicFactor => Some(Box::new(cubic_factor::CubicFactor::new(flow, spec))),
        MapSpec::CwndSteps | MapSpec::CwndFactor | MapSpec::RateChange | MapSpec::RateAndCwnd => {
            None
        }
    }
}

/// Why an answer of the agent does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declined {
    /// No other flow wants the link, and answers apply only where one does.
    Uncontended,
    /// Jitter hides what the agent would see.
    Jitter,
    /// The law is in its first slow start.
    Starting,
}

/// A law of one flow whose intervals an agent corrects.
pub trait Corrected: Send {
    /// Something was delivered.
    fn on_ack(&mut self, ack: &Ack);
    /// Something was lost, or a time-out has happened.
    fn on_loss(&mut self, loss: &Loss);
    /// Whether an answer to this interval applies, where answers do so `when`; `is_guarded` as in
    /// [`Agent::is_guarded`](super::Agent::is_guarded). Once for each interval, before [`Corrected::act`].
    ///
    /// # Errors
    ///
    /// Why it does not.
    fn applies(
        &mut self,
        interval: &Interval,
        action: [f64; 2],
        when: WhenSpec,
        is_guarded: bool,
    ) -> Result<(), Declined>;
    /// The agent has answered to an interval.
    fn act(&mut self, interval: &Interval, action: [f64; 2]);
    /// The window in force, packets.
    fn cwnd(&self) -> f64;
    /// The settings for the transport, as the law's controller has them.
    fn control(&self) -> Control;
    /// What the law counts.
    fn counters(&self) -> Vec<(&'static str, f64)>;
}
