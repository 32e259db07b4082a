//! DCTCP (RFC 8257): shrinks the window by the share of bytes that were marked, once per round trip.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::units::Time;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "dctcp",
    about: "shrinks the window by the share of marked bytes; needs `ecn = \"accurate\"`",
    source: "RFC 8257 section 3; Alizadeh et al., SIGCOMM 2010; Linux tcp_dctcp.c",
    params: &[
        Param {
            name: "gain",
            about: "weight of a round trip in the running share of marks (RFC 8257: 1/16)",
            kind: ParamKind::Number { default: 0.0625, min: 1e-6, max: 1.0 },
        },
        Param {
            name: "alpha",
            about: "share of marks that is assumed at first (RFC 8257: 1)",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 1.0 },
        },
    ],
    build: |flow, params| Box::new(Dctcp::new(flow, params)),
};

/// Smallest window that a mark leaves, packets (Linux).
const CWND_MIN: f64 = 2.0;

/// The controller.
#[derive(Clone, Debug)]
pub struct Dctcp {
    window: Window,
    gain: f64,
    /// Running share of marked bytes, 0 to 1.
    alpha: f64,
    /// Bytes acknowledged in the round trip, and of them marked.
    acked: f64,
    marked: f64,
    /// A packet sent now or later ends the round trip.
    round_from: Time,
    /// A packet sent before was under way at the latest reduction: its marks are answered.
    reduced_at: Option<Time>,
    reductions: u64,
}

impl Dctcp {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        Self {
            window: Window::new(flow),
            gain: params.number("gain"),
            alpha: params.number("alpha"),
            acked: 0.0,
            marked: 0.0,
            round_from: flow.start,
            reduced_at: None,
            reductions: 0,
        }
    }

    /// RFC 8257 section 3.3, steps 1 to 8.
    fn observe(&mut self, ack: &Ack) {
        self.acked += ack.acked.0 as f64;
        self.marked += ack.ce_marked.0 as f64;
        if ack.sent_at < self.round_from || self.acked <= 0.0 {
            return;
        }
        let share = (self.marked / self.acked).min(1.0);
        self.alpha += self.gain * (share - self.alpha);
        (self.acked, self.marked, self.round_from) = (0.0, 0.0, ack.now);
    }

    /// Whether a reduction of less than a round trip ago holds.
    fn reduced(&self, ack: &Ack) -> bool {
        self.reduced_at.is_some_and(|at| ack.sent_at < at)
    }

    /// RFC 8257 section 3.3, step 9.
    fn reduce(&mut self, now: Time) {
        self.window.remember();
        let cwnd = self.window.cwnd;
        self.window.cwnd = (cwnd * (1.0 - self.alpha / 2.0)).max(CWND_MIN.min(cwnd));
        self.window.ssthresh = self.window.cwnd.max(CWND_MIN);
        self.reduced_at = Some(now);
        self.reductions += 1;
    }
}

impl Controller for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.observe(ack);
        if self.reduced(ack) {
            return;
        }
        if ack.ce_marked.0 > 0 && ack.recovering == 0 {
            self.reduce(ack.now);
        } else {
            self.window.on_ack(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss);
        if matches!(loss.kind, LossKind::Gap | LossKind::Timeout) {
            self.reduced_at = Some(loss.now);
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("reductions_by_marks", self.reductions as f64)]
    }
}

#[cfg(test)]
#[path = "tests/dctcp.rs"]
mod tests;
