//! Control laws under an agent: an action corrects what a law does at the end of each interval, and an action of zeros is
//! the law alone. An action map over another law is another file with a [`Law`], and its line in [`MapSpec::law`].
use super::spec::{PolicySpec, SpecError, StartSpec, WhenSpec, fault};
use crate::control::{Ack, Control, FlowInfo, Loss};
use crate::sensing::signals::Interval;
use std::fmt;

pub mod cubic_factor;
pub mod own_queue;

#[cfg(doc)]
use super::spec::MapSpec;

/// What an action map over a law is, before a flow begins.
pub struct Law {
    /// Values of an action.
    pub values: usize,
    /// Whether the tables beside `action` leave to the law what it does itself.
    pub check: fn(&PolicySpec) -> Result<(), SpecError>,
    /// The law of one flow.
    pub begin: fn(&FlowInfo, &PolicySpec) -> Box<dyn Corrected>,
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

/// Whether a field has the only value that a map over a law takes.
fn only(
    map: &str,
    is_so: bool,
    path: &str,
    value: &dyn fmt::Display,
    allowed: &str,
) -> Result<(), SpecError> {
    let allowed = format!("with map = \"{map}\", {allowed}");
    if is_so { Ok(()) } else { Err(fault(path, value, &allowed)) }
}

/// Whether slow start and the reactions to losses are left to the law.
fn no_guards(map: &str, spec: &PolicySpec) -> Result<(), SpecError> {
    let StartSpec { slow_start, loss_guard, timeout_guard } = &spec.start;
    only(map, !slow_start, "start.slow_start", slow_start, "false")?;
    only(map, !loss_guard, "start.loss_guard", loss_guard, "false")?;
    let timeout_guard = timeout_guard.unwrap_or(false);
    only(map, !timeout_guard, "start.timeout_guard", &timeout_guard, "false")
}
