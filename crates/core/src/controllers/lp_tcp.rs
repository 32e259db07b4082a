//! LP-TCP: Kong, Zang and Ma, "Improving TCP Congestion Control with Machine Intelligence", `NetAI`
//! 2018, section 3.1. NewReno that asks a random forest, packet by packet, whether the next one would
//! be lost, and then keeps it back and takes one packet off its window.
//!
//! What the paper leaves open is proposed in `docs/reference/controllers/lp_tcp.md`.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, Send, SendAction, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::policy::forest::{Bar, Forest};
use crate::policy::safetensors::Tensors;
use crate::sensing::sends::{FEATURES, SendState};
use std::sync::Arc;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "lp_tcp",
    about: "NewReno that keeps back packets which a random forest expects to be lost",
    source: "Kong, Zang and Ma, NetAI 2018, section 3.1",
    params: &[
        Param {
            name: "policy",
            about: "the forest, fitted for the path at hand (paper: one for each setup)",
            kind: ParamKind::File {
                holds: "a file with a forest over LP-TCP's 55 numbers, such as the one in policies/lp_tcp/L50_K1",
                read: |bytes| Ok(Arc::new(Policy::read(bytes)?)),
            },
        },
        Param {
            name: "threshold",
            about: "a packet whose probability of loss is at least this is kept back; 0 takes the \
                    policy's own, and 0.5 where it has none (paper: chosen by simulation)",
            kind: ParamKind::Number { default: 0.0, min: 0.0, max: 1.0 },
        },
        Param {
            name: "below_ssthresh",
            about: "a held packet can take the window below `ssthresh`: `stay` lowers `ssthresh` with it \
                    (derived: so the published 8.91 Mb/s at L = 50 come out); `slow_start` brings \
                    the window back, as ns-2's test does",
            kind: ParamKind::Choice(&["stay", "slow_start"]),
        },
        Param {
            name: "cwnd_floor",
            about: "smallest window after a held packet (proposed)",
            kind: ParamKind::Number { default: 2.0, min: 1.0, max: 1000.0 },
        },
    ],
    build: |flow, params| Box::new(LpTcp::new(flow, params)),
};

/// What a policy's metadata must say of its features.
const LAYOUT: &str = "kong2018-55";

/// A loss predictor.
#[derive(Debug)]
pub struct Policy {
    forest: Forest,
    threshold: f64,
}

impl Policy {
    /// Reads a policy's file.
    ///
    /// # Errors
    ///
    /// If it is not a forest over LP-TCP's features.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let tensors = Tensors::read(bytes)?;
        let layout = tensors.metadata("features").unwrap_or_default();
        if layout != LAYOUT {
            let given: String = layout.chars().take(80).collect();
            return Err(format!("features = {given:?}: allowed is {LAYOUT:?}"));
        }
        let threshold = match tensors.metadata("threshold") {
            None => 0.5,
            Some(text) => threshold(text)?,
        };
        Ok(Self { forest: Forest::read(&tensors, FEATURES)?, threshold })
    }

    /// Probability that a packet with these features is lost: mean output of the trees.
    ///
    /// # Panics
    ///
    /// If there are fewer than [`FEATURES`] numbers.
    pub fn loss_probability(&self, features: &[f32]) -> f64 {
        self.forest.mean(features)
    }
}

fn threshold(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0 && *number <= 1.0);
    number.ok_or_else(|| {
        let given: String = text.chars().take(80).collect();
        format!("threshold = {given:?}: allowed is a number in (0, 1]")
    })
}

/// NewReno with a send hook in congestion avoidance.
#[derive(Clone, Debug)]
pub struct LpTcp {
    window: Window,
    state: SendState,
    policy: Arc<Policy>,
    bar: Bar,
    /// Smallest window after a held packet: two keep the ACK clock alive.
    cwnd_floor: f64,
    /// Whether a held packet keeps the flow in congestion avoidance.
    stays: bool,
    asked: u64,
    held: u64,
}

impl LpTcp {
    /// Starts in slow start, where nothing is kept back.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let policy: Arc<Policy> = params.file("policy");
        let given = params.number("threshold");
        let threshold = if given > 0.0 { given } else { policy.threshold };
        Self {
            window: Window::new(flow),
            state: SendState::new(flow.mss),
            bar: policy.forest.bar(threshold),
            policy,
            cwnd_floor: params.number("cwnd_floor"),
            stays: params.choice("below_ssthresh") == "stay",
            asked: 0,
            held: 0,
        }
    }

    /// Whether the packet is expected to be lost. Retransmissions, and a packet without which nothing
    /// would be in flight, are not asked about.
    fn refuses(&mut self, send: &Send) -> bool {
        let control = self.window.control();
        if send.retransmission == 1 || send.inflight.0 == 0 || !self.state.in_avoidance(&control) {
            return false;
        }
        self.asked += 1;
        self.policy.forest.reaches(self.state.features(&control, send), self.bar)
    }
}

impl Controller for LpTcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.state.on_ack(ack);
        self.window.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.state.on_loss(loss);
        self.window.reduce(loss);
    }

    fn on_send(&mut self, send: &Send) -> SendAction {
        if self.refuses(send) {
            self.held += 1;
            if self.window.cwnd > self.cwnd_floor {
                self.window.cwnd = (self.window.cwnd - 1.0).max(self.cwnd_floor);
            }
            if self.stays {
                self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd);
            }
            return SendAction::Hold;
        }
        self.state.on_sent(send);
        SendAction::Send
    }

    fn has_send_hook(&self) -> bool {
        true
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("asked", self.asked as f64), ("held", self.held as f64)]
    }
}

#[cfg(test)]
#[path = "tests/lp_tcp.rs"]
mod tests;
