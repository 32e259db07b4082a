//! TCP Prague: DCTCP for the Internet, for low-latency queues that mark early (RFC 9330, RFC 9331).
use crate::control::{Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::units::{Bytes, Rate, Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "prague",
    about: "DCTCP's answer to marks, paced, with the growth of a longer round trip; needs `ecn = \"l4s\"`",
    source: "draft-briscoe-iccrg-prague-congestion-control; L4STeam's Linux tcp_prague.c",
    params: &[
        Param {
            name: "gain",
            about: "weight of a round trip in the running share of marks",
            kind: ParamKind::Number { default: 0.0625, min: 1e-6, max: 1.0 },
        },
        Param {
            name: "rtt_virtual_ms",
            about: "a shorter round trip grows and answers as one of this length; 0 for its own",
            kind: ParamKind::Number { default: 25.0, min: 0.0, max: 1000.0 },
        },
        Param {
            name: "transition_rounds",
            about: "round trips after slow start before that begins",
            kind: ParamKind::Number { default: 500.0, min: 0.0, max: 1e9 },
        },
    ],
    build: |flow, params| Box::new(Prague::new(flow, params)),
};

/// Smallest window that a mark leaves, packets (source).
const CWND_MIN: f64 = 2.0;
/// The round trip assumed for pacing before the first sample, as in `bbr1`.
const NOMINAL_RTT: Span = Span::from_millis(1);

/// The controller.
#[derive(Clone, Debug)]
pub struct Prague {
    /// What marks, losses and growth make of the window, a fraction.
    window: Window,
    /// What is allowed, packets: follows the window by one packet per packet acknowledged.
    allowed: f64,
    packet: f64,
    gain: f64,
    rtt_virtual: Span,
    transition_rounds: f64,
    /// Running share of marks, 0 to 1.
    alpha: f64,
    /// Whether the path has marked: until then alpha stays at 1.
    seen_mark: bool,
    /// Packets acknowledged since alpha was updated, and of them marked.
    acked: f64,
    marked: f64,
    /// A packet sent now or later ends the round trip.
    round_from: Time,
    /// When alpha was updated last.
    alpha_at: Time,
    /// Rounds since slow start.
    rounds: f64,
    reduced_at: Option<Time>,
    srtt: Span,
    reductions: u64,
}

impl Prague {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let window = Window::new(flow);
        Self {
            allowed: window.cwnd,
            window,
            packet: flow.mss.0.max(1) as f64,
            gain: params.number("gain"),
            rtt_virtual: Span::from_secs_f64(params.number("rtt_virtual_ms") / 1000.0),
            transition_rounds: params.number("transition_rounds"),
            alpha: 1.0,
            seen_mark: false,
            acked: 0.0,
            marked: 0.0,
            round_from: flow.start,
            alpha_at: flow.start,
            rounds: 0.0,
            reduced_at: None,
            srtt: Span::ZERO,
            reductions: 0,
        }
    }

    /// Whether the flow behaves as one with the virtual round trip.
    fn is_rtt_independent(&self) -> bool {
        !self.window.in_slow_start() && self.rounds >= self.transition_rounds
    }

    /// Whether less than the virtual round trip has passed since `then`, and that counts.
    fn is_early(&self, now: Time, then: Time) -> bool {
        self.is_rtt_independent() && now.since(then) < self.rtt_virtual
    }

    /// Packets that a round trip without marks adds: with the virtual round trip, one packet per such time at
    /// the rate that its window would have.
    fn per_round(&self) -> f64 {
        let short = self.srtt > Span::ZERO && self.srtt < self.rtt_virtual;
        if !short || !self.is_rtt_independent() {
            return 1.0;
        }
        let ratio = self.srtt.as_secs_f64() / self.rtt_virtual.as_secs_f64();
        ratio * ratio
    }

    /// The first mark of a round trip takes half of alpha.
    fn answer_mark(&mut self, ack: &Ack) {
        let answered =
            self.reduced_at.is_some_and(|at| ack.sent_at < at || self.is_early(ack.now, at));
        if answered || ack.recovering == 1 {
            return;
        }
        let cwnd = self.window.cwnd;
        self.window.cwnd = (cwnd * (1.0 - self.alpha / 2.0)).max(CWND_MIN.min(cwnd));
        self.window.ssthresh = self.window.cwnd.max(CWND_MIN);
        self.reduced_at = Some(ack.now);
        self.reductions += 1;
    }

    /// Growth by what came without a mark, also in the round trip of a reduction.
    fn grow(&mut self, ack: &Ack, unmarked: f64) {
        if ack.recovering == 1 || ack.cwnd_limited == 0 || unmarked <= 0.0 {
            return;
        }
        let rest = self.window.slow_start(unmarked);
        if rest > 0.0 {
            self.window.avoid(rest, self.per_round());
        }
    }

    /// Once per round trip, and per virtual one.
    fn update_alpha(&mut self, ack: &Ack) {
        let round_over = ack.sent_at >= self.round_from && self.acked > 0.0;
        if !round_over || self.is_early(ack.now, self.alpha_at) {
            return;
        }
        if self.seen_mark {
            let share = (self.marked / self.acked).min(1.0);
            self.alpha += self.gain * (share - self.alpha);
        }
        (self.acked, self.marked) = (0.0, 0.0);
        (self.alpha_at, self.round_from) = (ack.now, ack.now);
        if !self.window.in_slow_start() {
            self.rounds += 1.0;
        }
    }

    /// What is allowed comes closer to the window, by no more than what was acknowledged.
    fn follow(&mut self, packets: f64) {
        let step = packets.max(0.0);
        self.allowed = self.window.cwnd.clamp((self.allowed - step).max(1.0), self.allowed + step);
    }

    /// Twice the rate far below the threshold, else a window per round trip.
    fn pacing_rate(&self) -> Rate {
        let rtt = if self.srtt > Span::ZERO { self.srtt } else { NOMINAL_RTT };
        let gain = if self.allowed < self.window.ssthresh / 2.0 { 2.0 } else { 1.0 };
        let bits = gain * self.window.cwnd * self.packet * 8.0 / rtt.as_secs_f64();
        Rate((bits as u64).clamp(1, Rate::UNLIMITED.0 - 1))
    }
}

impl Controller for Prague {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.srtt > Span::ZERO {
            self.srtt = ack.srtt;
        }
        let packets = self.window.packets(ack.acked);
        let marked = self.window.packets(ack.ce_marked.min(ack.acked));
        self.acked += packets;
        self.marked += marked;
        if marked > 0.0 {
            self.seen_mark = true;
            self.answer_mark(ack);
        }
        self.grow(ack, packets - marked);
        self.update_alpha(ack);
        self.follow(packets);
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap | LossKind::Timeout => {
                self.window.remember();
                self.window.cwnd = (self.window.cwnd / 2.0).max(1.0);
                self.window.ssthresh = self.window.cwnd.max(CWND_MIN);
                self.reduced_at = Some(loss.now);
                // After a time-out nothing is in flight: the window comes back with what is acknowledged.
                self.allowed = if loss.kind == LossKind::Timeout { 1.0 } else { self.window.cwnd };
            }
            LossKind::Spurious | LossKind::Idle | LossKind::Deflate => {
                self.window.reduce(loss);
                self.allowed = self.window.cwnd;
            }
            LossKind::TimeoutAgain => self.allowed = 1.0,
            LossKind::More => {}
        }
    }

    fn control(&self) -> Control {
        Control {
            cwnd: Bytes((libm::ceil(self.allowed) * self.packet) as u64).min(CWND_MAX),
            pacing_rate: self.pacing_rate(),
            ..self.window.control()
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("reductions_by_marks", self.reductions as f64), ("alpha", self.alpha)]
    }
}

#[cfg(test)]
#[path = "tests/prague.rs"]
mod tests;
