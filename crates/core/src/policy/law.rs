//! The action map `own_queue`: an action corrects what the law of the controller `own_queue` does at the end of
//! each of its intervals. An action of zeros is that controller.
use crate::control::{Ack, Control, FlowInfo, Loss};
use crate::law::own_queue::{Law, Settings};
use crate::sensing::signals::Interval;
use crate::units::{Bytes, Rate};

/// The law of one flow under an agent.
#[derive(Clone, Debug)]
pub struct Governed {
    law: Law,
    packet: f64,
}

impl Governed {
    /// Begins with the flow's initial window, with the numbers of the controller but for an exponent.
    pub fn new(flow: &FlowInfo, exponent: Option<f64>) -> Self {
        let usual = Settings::default();
        let law =
            Law::new(flow, &Settings { exponent: exponent.unwrap_or(usual.exponent), ..usual });
        Self { law, packet: flow.mss.0.max(1) as f64 }
    }

    /// Something was delivered.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.law.on_ack(ack);
    }

    /// Something was lost.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.law.on_loss(loss);
    }

    /// Whether others want the link at the end of an interval ([`Law::update_contention`]); before [`Governed::act`].
    pub fn update_contention(&mut self, interval: &Interval) -> bool {
        self.law.update_contention(interval)
    }

    /// The agent has answered to an interval.
    pub fn act(&mut self, interval: &Interval, action: [f64; 2]) {
        self.law.on_interval(interval, action);
    }

    /// The window in force, packets.
    pub fn cwnd(&self) -> f64 {
        self.law.cwnd_packets()
    }

    /// The settings for the transport, as the controller has them.
    pub fn control(&self) -> Control {
        Control {
            pacing_rate: self.law.pacing().unwrap_or(Rate::UNLIMITED),
            ..Control::window(Bytes((self.cwnd() * self.packet) as u64))
        }
    }

    /// What the law counts.
    pub fn counters(&self) -> Vec<(&'static str, f64)> {
        self.law.counters()
    }
}

#[cfg(test)]
#[path = "tests/law.rs"]
mod tests;
