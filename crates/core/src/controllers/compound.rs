//! Compound TCP (draft-sridharan-tcpm-ctcp): `NewReno`'s window and beside it one that follows the delay.
use crate::control::{Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::units::{Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "compound",
    about: "adds a window that grows fast while little is queued to NewReno's",
    source: "draft-sridharan-tcpm-ctcp-02; Tan et al., INFOCOM 2006; Andrew's Linux tcp_compound.c",
    params: &[
        Param {
            name: "alpha",
            about: "growth of the delay window per round trip is alpha times window to the power k",
            kind: ParamKind::Number { default: 0.125, min: 0.0, max: 10.0 },
        },
        Param {
            name: "k",
            about: "exponent of that growth",
            kind: ParamKind::Number { default: 0.75, min: 0.0, max: 1.0 },
        },
        Param {
            name: "beta",
            about: "part of the whole window that a loss takes away",
            kind: ParamKind::Number { default: 0.5, min: 0.0, max: 1.0 },
        },
        Param {
            name: "zeta",
            about: "how far the delay window shrinks per packet that is queued",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 100.0 },
        },
        Param {
            name: "gamma",
            about: "packets in the queue from which the delay window shrinks, at first and at most",
            kind: ParamKind::Number { default: 30.0, min: 1.0, max: 1e6 },
        },
        Param {
            name: "gamma_min",
            about: "the least that losses lower gamma to; as gamma, no adaptation",
            kind: ParamKind::Number { default: 5.0, min: 1.0, max: 1e6 },
        },
    ],
    build: |flow, params| Box::new(Compound::new(flow, params)),
};

/// Fewer samples than this in a round trip may all be of delayed acknowledgements (source).
const SAMPLES_MIN: u32 = 3;
/// What gamma becomes of the queue of `NewReno`'s window at a loss, and the weight of a loss (source).
const GAMMA_OF_QUEUE: f64 = 0.75;
const GAMMA_WEIGHT: f64 = 0.5;

/// The controller.
#[derive(Clone, Debug)]
pub struct Compound {
    /// `NewReno`'s part.
    window: Window,
    /// The delay's part, packets.
    dwnd: f64,
    /// That part before the latest reduction.
    dwnd_before: f64,
    alpha: f64,
    k: f64,
    beta: f64,
    zeta: f64,
    gamma: f64,
    /// Least and most of `gamma`.
    gamma_range: (f64, f64),
    round: Round,
    /// Packets of `NewReno`'s window in the queue, as of the latest round trip; none is left after a loss used it.
    reno_queue: Option<f64>,
}

/// A round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// A packet sent now or later ends it.
    from: Time,
    /// `NewReno`'s window when it began, packets.
    reno: f64,
    /// Packets acknowledged in it.
    acked: f64,
    /// Its samples, and the smallest of them.
    samples: u32,
    rtt: Span,
}

impl Round {
    fn starting(from: Time, reno: f64) -> Self {
        Self { from, reno, acked: 0.0, samples: 0, rtt: Span(u64::MAX) }
    }

    fn observe(&mut self, ack: &Ack, acked: f64) {
        self.acked += acked;
        if ack.rtt > Span::ZERO {
            self.samples = self.samples.saturating_add(1);
            self.rtt = self.rtt.min(ack.rtt);
        }
    }
}

impl Compound {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let window = Window::new(flow);
        let gamma = params.number("gamma");
        Self {
            round: Round::starting(flow.start, window.cwnd),
            window,
            dwnd: 0.0,
            dwnd_before: 0.0,
            alpha: params.number("alpha"),
            k: params.number("k"),
            beta: params.number("beta"),
            zeta: params.number("zeta"),
            gamma,
            gamma_range: (params.number("gamma_min").min(gamma), gamma),
            reno_queue: None,
        }
    }

    fn whole(&self) -> f64 {
        self.window.cwnd + self.dwnd
    }

    /// The delay window, once per round trip in congestion avoidance (draft section 3).
    fn follow_delay(&mut self, ack: &Ack) {
        let Round { reno, acked, samples, rtt, .. } = self.round;
        if samples < SAMPLES_MIN || self.window.in_slow_start() {
            return;
        }
        let base = ack.min_rtt.min(rtt).as_secs_f64();
        let queued_share = 1.0 - base / rtt.as_secs_f64();
        let queued = acked * queued_share;
        self.reno_queue = Some(reno * queued_share);
        let dwnd = if queued < self.gamma {
            self.dwnd + (self.alpha * libm::pow(acked, self.k) - 1.0).max(0.0)
        } else {
            (self.dwnd - self.zeta * queued).max(0.0)
        };
        self.dwnd = dwnd.min(self.window.cwnd_max() - self.window.cwnd);
    }

    /// With less of a queue than gamma before a loss, delay would never speak first: gamma follows what
    /// `NewReno` alone would have queued.
    fn tune_gamma(&mut self) {
        if let Some(queue) = self.reno_queue.take() {
            self.gamma += GAMMA_WEIGHT * (GAMMA_OF_QUEUE * queue - self.gamma);
            self.gamma = self.gamma.clamp(self.gamma_range.0, self.gamma_range.1);
        }
    }

    fn on_gap(&mut self) {
        self.tune_gamma();
        self.window.remember();
        self.dwnd_before = self.dwnd;
        let left = self.whole() * (1.0 - self.beta);
        self.window.cwnd = (self.window.cwnd / 2.0).max(1.0);
        self.window.ssthresh = self.window.cwnd.max(2.0);
        self.dwnd = (left - self.window.cwnd).max(0.0);
    }
}

impl Controller for Compound {
    fn on_ack(&mut self, ack: &Ack) {
        let acked = self.window.packets(ack.acked);
        self.round.observe(ack, acked);
        if ack.recovering == 0 && ack.cwnd_limited == 1 {
            let rest = self.window.slow_start(acked);
            self.window.grow(rest / self.whole());
        }
        if ack.sent_at >= self.round.from && self.round.acked > 0.0 {
            if ack.recovering == 0 && ack.cwnd_limited == 1 {
                self.follow_delay(ack);
            }
            self.round = Round::starting(ack.now, self.window.cwnd);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap => self.on_gap(),
            LossKind::Timeout | LossKind::TimeoutAgain => {
                self.dwnd_before = self.dwnd_before.max(self.dwnd);
                self.dwnd = 0.0;
                self.window.reduce(loss);
            }
            LossKind::Spurious => {
                self.window.reduce(loss);
                self.dwnd = self.dwnd.max(std::mem::take(&mut self.dwnd_before));
            }
            LossKind::Idle => {
                self.dwnd = 0.0;
                self.window.reduce(loss);
            }
            LossKind::More | LossKind::Deflate => self.window.reduce(loss),
        }
        self.round = Round::starting(loss.now, self.window.cwnd);
    }

    fn control(&self) -> Control {
        Control { cwnd: self.window.bytes(self.whole()).min(CWND_MAX), ..self.window.control() }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("delay_window_packets", self.dwnd), ("gamma_packets", self.gamma)]
    }
}

#[cfg(test)]
#[path = "tests/compound.rs"]
mod tests;
