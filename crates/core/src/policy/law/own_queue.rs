//! The action maps `own_queue` and `own_queue_paced`: over the law of the controller `own_queue`.
use super::{Corrected, Declined};
use crate::control::{Ack, Control, FlowInfo, Loss};
use crate::law::own_queue::{Law as OwnLaw, Settings, Turned, is_misled_by_jitter};
use crate::policy::spec::{ActionSpec, MapSpec, WhenSpec};
use crate::sensing::signals::Interval;
use crate::units::{Bytes, Rate};

/// The law of one flow.
#[derive(Clone, Debug)]
pub(super) struct OwnQueue {
    law: OwnLaw,
    is_paced: bool,
    packet: f64,
}

impl OwnQueue {
    /// Begins with the flow's initial window, with the numbers of the controller but for those of the table.
    pub(super) fn new(flow: &FlowInfo, action: &ActionSpec) -> Self {
        let usual = Settings::default();
        let settings = Settings {
            exponent: action.exponent.unwrap_or(usual.exponent),
            target_packets: action.target_packets.unwrap_or(usual.target_packets),
            ..usual
        };
        Self {
            law: OwnLaw::new(flow, &settings),
            is_paced: action.map == MapSpec::OwnQueuePaced,
            packet: flow.mss.0.max(1) as f64,
        }
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
        let asks = self.is_paced || when == WhenSpec::Contention;
        if asks && !self.law.update_contention(interval) && !self.is_paced {
            return Err(Declined::Uncontended);
        }
        let window = if self.is_paced { 0.0 } else { action[1] };
        if is_guarded && is_misled_by_jitter(interval, [action[0], window]) {
            return Err(Declined::Jitter);
        }
        Ok(())
    }

    fn act(&mut self, interval: &Interval, action: [f64; 2]) {
        if !self.is_paced {
            return self.law.on_interval(interval, action);
        }
        let turned = Turned::of(action);
        self.law.turn_to(&turned);
        self.law.on_interval(interval, [turned.target, 0.0]);
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

#[cfg(test)]
#[path = "../tests/law.rs"]
mod tests;
