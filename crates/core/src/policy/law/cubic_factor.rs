//! The action map `cubic_factor`: the window of the controller `cubic` times 2^(scale a) at each decision, and CUBIC
//! beneath, which reacts to losses and time-outs and continues from that window between decisions. With a scale of 2
//! the factor is 4^a, as in Orca (Abbasloo, Yen and Chao, SIGCOMM 2020). As there, the agent acts from the end of the
//! first slow start on, and the stage of the cubic stays when the window is set. Proposed: a window that was not used
//! does not grow (RFC 9438 section 5.8); the bounds hold for what an action sets, not for CUBIC; after a round trip
//! that loses more than it delivers no action raises the window, which is halved if one has (RFC 9743 section 5.1.1).
use super::{Corrected, Declined};
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind};
use crate::law::cubic::{Cubic, PARAMS};
use crate::params::Params;
use crate::policy::spec::{BoundsSpec, PolicySpec, WhenSpec};
use crate::sensing::overload::Overload;
use crate::sensing::signals::Interval;

/// CUBIC of one flow, with its defaults.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
#[derive(Clone, Debug)]
pub(super) struct CubicFactor {
    cubic: Cubic,
    scale: f64,
    bounds: BoundsSpec,
    /// The first slow start is over.
    started: bool,
    /// The window was full since the decision before.
    used: bool,
    /// An action has raised the window since it was last halved for overload.
    raised: bool,
    /// The latest round trip lost more than it delivered.
    overloaded: bool,
    overload: Overload,
    halvings: u64,
    /// Actions of the first slow start, which do not apply.
    early: u64,
}

impl CubicFactor {
    pub(super) fn new(flow: &FlowInfo, spec: &PolicySpec) -> Self {
        Self {
            cubic: Cubic::new(flow, &Params::defaults(PARAMS)),
            scale: spec.action.scale,
            bounds: spec.bounds.clone(),
            started: false,
            used: true,
            raised: false,
            overloaded: false,
            overload: Overload::new(flow.start),
            halvings: 0,
            early: 0,
        }
    }
}

impl Corrected for CubicFactor {
    fn on_ack(&mut self, ack: &Ack) {
        self.cubic.on_ack(ack);
        self.started |= !self.cubic.in_slow_start();
        self.used |= ack.cwnd_limited == 1;
        let Some(round) = self.overload.on_ack(ack) else { return };
        self.overloaded = round.is_overload();
        if self.overloaded && self.raised {
            self.raised = false;
            self.halvings += 1;
            self.cubic.set_cwnd_packets(self.cubic.cwnd_packets() / 2.0);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.cubic.on_loss(loss);
        match loss.kind {
            LossKind::Timeout | LossKind::TimeoutAgain | LossKind::Spurious => {
                self.overload.forgive();
            }
            LossKind::Gap | LossKind::More => self.overload.on_loss(loss),
            LossKind::Deflate | LossKind::Idle => {}
        }
    }

    fn applies(&mut self, _: &Interval, _: [f64; 2], _: WhenSpec, _: bool) -> Result<(), Declined> {
        if !self.started {
            self.early += 1;
            return Err(Declined::Starting);
        }
        Ok(())
    }

    fn act(&mut self, _: &Interval, [value, _]: [f64; 2]) {
        let (cwnd, factor) = (self.cubic.cwnd_packets(), libm::exp2(self.scale * value));
        let used = std::mem::replace(&mut self.used, false);
        let BoundsSpec { cwnd_min_packets: least, cwnd_max_packets: most } = self.bounds;
        // No action moves the window against its sign.
        if factor > 1.0 && used && !self.overloaded {
            self.raised = true;
            self.cubic.set_cwnd_packets((cwnd * factor).min(most).max(cwnd));
        } else if factor < 1.0 {
            self.cubic.set_cwnd_packets((cwnd * factor).max(least).min(cwnd));
        }
    }

    fn cwnd(&self) -> f64 {
        self.cubic.cwnd_packets()
    }

    fn control(&self) -> Control {
        self.cubic.control()
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("decisions_in_slow_start", self.early as f64),
            ("halved_for_overload", self.halvings as f64),
        ]
    }
}

#[cfg(test)]
#[path = "../tests/cubic_factor.rs"]
mod tests;
