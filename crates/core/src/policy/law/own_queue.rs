//! The action map `own_queue`: over the law of the controller `own_queue`.
use super::{Corrected, Declined, Law, no_guards, only};
use crate::control::{Ack, Control, FlowInfo, Loss};
use crate::law::own_queue::{Law as OwnLaw, Settings, is_misled_by_jitter};
use crate::policy::spec::{BoundsSpec, ClockSpec, DecisionSpec, PolicySpec, SpecError, WhenSpec};
use crate::sensing::signals::Interval;
use crate::units::{Bytes, Rate};

/// Its name.
const MAP: &str = "own_queue";
/// Shortest interval of the law, ms.
const MIN_MS: f64 = 10.0;

/// The map.
pub const LAW: Law = Law {
    values: 2,
    check,
    begin: |flow, spec| Box::new(OwnQueue::new(flow, spec.action.exponent)),
};

/// The law decides at its own times, and has a start, bounds and reactions to losses of its own.
fn check(spec: &PolicySpec) -> Result<(), SpecError> {
    let DecisionSpec { every, times, min_ms } = &spec.decision;
    let BoundsSpec { cwnd_min_packets: least, cwnd_max_packets: most } = &spec.bounds;
    let usual = BoundsSpec::default();
    let every_name = format!("{every:?}").to_lowercase();
    let is = |value: f64, wanted: f64| value.to_bits() == wanted.to_bits();
    only(MAP, *every == ClockSpec::Srtt, "decision.every", &every_name, "srtt")?;
    only(MAP, is(*times, 1.0), "decision.times", times, "1")?;
    only(MAP, is(*min_ms, MIN_MS), "decision.min_ms", min_ms, "10")?;
    only(MAP, is(*least, usual.cwnd_min_packets), "bounds.cwnd_min_packets", least, "2")?;
    let allowed = "nothing: it has its own";
    only(MAP, is(*most, usual.cwnd_max_packets), "bounds.cwnd_max_packets", most, allowed)?;
    no_guards(MAP, spec)
}

/// The action map `own_queue`.
#[derive(Clone, Debug)]
struct OwnQueue {
    law: OwnLaw,
    packet: f64,
}

impl OwnQueue {
    /// Begins with the flow's initial window, with the numbers of the controller but for an exponent.
    fn new(flow: &FlowInfo, exponent: Option<f64>) -> Self {
        let usual = Settings::default();
        let law =
            OwnLaw::new(flow, &Settings { exponent: exponent.unwrap_or(usual.exponent), ..usual });
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

#[cfg(test)]
#[path = "../tests/law.rs"]
mod tests;
