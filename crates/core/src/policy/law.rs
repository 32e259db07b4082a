//! Control laws under an agent: an action corrects what a law does at the end of each interval, and an action of zeros is
//! the law alone. An action map over another law is another implementation of [`Corrected`].
use super::spec::{ActionSpec, MapSpec, WhenSpec};
use crate::control::{Ack, Control, FlowInfo, Loss};
use crate::law::own_queue::{Law, Settings, Turned, is_misled_by_jitter};
use crate::sensing::signals::Interval;
use crate::units::{Bytes, Rate};

/// Why an answer of the agent does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declined {
    /// No other flow wants the link, and answers apply only where one does.
    Uncontended,
    /// Jitter hides what the agent would see.
    Jitter,
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

/// The law that this action map corrects, if it is one over a law.
pub fn under(action: &ActionSpec, flow: &FlowInfo) -> Option<Box<dyn Corrected>> {
    match action.map {
        MapSpec::OwnQueue => Some(Box::new(OwnQueue::new(flow, action))),
        MapSpec::OwnQueuePaced => Some(Box::new(Paced(OwnQueue::new(flow, action)))),
        MapSpec::CwndSteps | MapSpec::CwndFactor | MapSpec::RateChange | MapSpec::RateAndCwnd => {
            None
        }
    }
}

/// The action map `own_queue`.
#[derive(Clone, Debug)]
struct OwnQueue {
    law: Law,
    packet: f64,
}

impl OwnQueue {
    /// Begins with the flow's initial window, with the numbers of the controller but for those of the table.
    fn new(flow: &FlowInfo, action: &ActionSpec) -> Self {
        let usual = Settings::default();
        let settings = Settings {
            exponent: action.exponent.unwrap_or(usual.exponent),
            target_packets: action.target_packets.unwrap_or(usual.target_packets),
            ..usual
        };
        let law = Law::new(flow, &settings);
        Self { law, packet: flow.mss.0.max(1) as f64 }
    }
}

impl Corrected for OwnQueue {
    fn on_ack(&mut self, ack: &Ack) {
        self.law.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.law.on_loss(loss);
    }

    fn applies(
        &mut self,
        interval: &Interval,
        action: [f64; 2],
        when: WhenSpec,
        is_guarded: bool,
    ) -> Result<(), Declined> {
        if when == WhenSpec::Contention && !self.law.update_contention(interval) {
            return Err(Declined::Uncontended);
        }
        if is_guarded && is_misled_by_jitter(interval, action) {
            return Err(Declined::Jitter);
        }
        Ok(())
    }

    fn act(&mut self, interval: &Interval, action: [f64; 2]) {
        self.law.on_interval(interval, action);
    }

    fn cwnd(&self) -> f64 {
        self.law.cwnd_packets()
    }

    fn control(&self) -> Control {
        Control {
            pacing_rate: self.law.pacing().unwrap_or(Rate::UNLIMITED),
            ..Control::window(Bytes((self.cwnd() * self.packet) as u64))
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.law.counters()
    }
}

/// The action map `own_queue_paced`: the law holds a rate, and actions apply at all times.
#[derive(Clone, Debug)]
struct Paced(OwnQueue);

impl Corrected for Paced {
    fn on_ack(&mut self, ack: &Ack) {
        self.0.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.0.on_loss(loss);
    }

    fn applies(
        &mut self,
        interval: &Interval,
        action: [f64; 2],
        _when: WhenSpec,
        is_guarded: bool,
    ) -> Result<(), Declined> {
        self.0.law.update_contention(interval);
        if is_guarded && is_misled_by_jitter(interval, [action[0], 0.0]) {
            return Err(Declined::Jitter);
        }
        Ok(())
    }

    fn act(&mut self, interval: &Interval, action: [f64; 2]) {
        let turned = Turned::of(action);
        self.0.law.turn_to(&turned);
        self.0.law.on_interval(interval, [turned.target, 0.0]);
    }

    fn cwnd(&self) -> f64 {
        self.0.cwnd()
    }

    fn control(&self) -> Control {
        self.0.control()
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.0.counters()
    }
}

#[cfg(test)]
#[path = "tests/law.rs"]
mod tests;
