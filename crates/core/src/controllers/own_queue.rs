//! The law of `shared/own_queue` without learning: each flow steers its own packets in the bottleneck's queue
//! to a target. A learned controller with the action map `own_queue` and zero actions does the same if it acts
//! under contention only; one that acts at all times holds no rate.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, Spec};
use crate::law::own_queue::{EXPONENT, EXPONENT_MAX, Law, Settings, TARGET_PACKETS};
use crate::params::{Param, ParamKind, Params};
use crate::sensing::signals::Signals;
use crate::units::{Bytes, Rate, Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "own_queue",
    about: "steers its own packets in the queue to a target; equal shares whatever the round trips",
    source: "this project; after Vegas, FAST and Copa",
    params: &[
        Param {
            name: "target_packets",
            about: "own packets in the queue at 10 Mb/s (proposed: 3.5)",
            kind: ParamKind::Number { default: 3.5, min: TARGET_PACKETS.0, max: TARGET_PACKETS.1 },
        },
        Param {
            name: "exponent",
            about: "the target grows with this power of the rate (proposed: its root)",
            kind: ParamKind::Number { default: EXPONENT, min: 0.0, max: EXPONENT_MAX },
        },
    ],
    build: |flow, params| Box::new(OwnQueue::new(flow, params)),
};

/// The numbers of the law.
pub fn settings(params: &Params) -> Settings {
    Settings {
        target_packets: params.number("target_packets"),
        exponent: params.number("exponent"),
        ..Settings::default()
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct OwnQueue {
    law: Law,
    signals: Signals,
    packet: f64,
    /// The interval ends with the first acknowledgement from then on.
    end: Time,
    /// An interval has ended, and the law decides when the timer fires: at the same instant, as a learned
    /// controller does.
    due: Option<Time>,
}

impl OwnQueue {
    /// Begins with the flow's initial window.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        Self {
            law: Law::new(flow, &settings(params)),
            signals: Signals::new(flow.mss, flow.start),
            packet: flow.mss.0.max(1) as f64,
            end: Time(0),
            due: None,
        }
    }
}

impl Controller for OwnQueue {
    fn on_ack(&mut self, ack: &Ack) {
        self.signals.on_ack(ack);
        self.law.on_ack(ack);
        if self.due.is_some() || ack.now < self.end || ack.srtt == Span::ZERO {
            return;
        }
        self.signals.end(ack.now);
        self.end = Law::interval_end(ack);
        self.due = Some(ack.now);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.signals.on_loss(loss);
        self.law.on_loss(loss);
    }

    fn on_timer(&mut self, _now: Time) {
        if self.due.take().is_some() {
            self.law.update_contention(self.signals.last());
            self.law.on_interval(self.signals.last(), [0.0; 2]);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.due
    }

    fn control(&self) -> Control {
        Control {
            pacing_rate: self.law.pacing().unwrap_or(Rate::UNLIMITED),
            ..Control::window(Bytes((self.law.cwnd_packets() * self.packet) as u64))
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.law.counters()
    }
}

#[cfg(test)]
#[path = "tests/own_queue.rs"]
mod tests;
