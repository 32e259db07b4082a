//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): a flow for data that can wait. It grows no faster than
//! NewReno, gives way once packets wait for more than 60 ms, and lets the queue drain at regular times to
//! measure the path without it.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::units::{Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "ledbat_plus_plus",
    about: "gives way to other flows: at most 60 ms of queueing delay, with regular slowdowns",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01, section 4; RFC 6817",
    params: &[Param {
        name: "target_ms",
        about: "queueing delay beyond which the window shrinks (source: 60)",
        kind: ParamKind::Number { default: 60.0, min: 1.0, max: 1000.0 },
    }],
    build: |flow, params| Box::new(LedbatPlusPlus::new(flow, params)),
};

/// First and smallest window, packets (source).
const CWND_MIN: f64 = 2.0;
/// The gain is at least one over this (source).
const DIVISOR_MAX: f64 = 16.0;
/// The smallest of so many samples is the present round trip (RFC 6817, `CURRENT_FILTER`).
const CURRENT_FILTER: usize = 4;
/// The smallest round trip is that of so many minutes (RFC 6817, `BASE_HISTORY`).
const BASE_HISTORY: usize = 10;
const MINUTE: Span = Span::from_millis(60_000);
/// Slow start ends beyond this part of the target (source).
const SLOW_START_PART: f64 = 0.75;
/// Round trips from the end of slow start to the first slowdown, and of a slowdown (source).
const SLOWDOWN_ROUNDS: u32 = 2;
/// The time to the next slowdown is so many times what the last one took (source).
const SLOWDOWN_EVERY: u64 = 9;

/// The smallest round trip of each of the last minutes.
#[derive(Clone, Copy, Debug)]
struct Base {
    minutes: [Span; BASE_HISTORY],
    /// When the present minute, the first of them, began.
    since: Time,
}

impl Base {
    fn sample(&mut self, now: Time, rtt: Span) {
        if now.since(self.since) >= MINUTE {
            self.minutes.rotate_right(1);
            self.minutes[0] = Span::MAX;
            self.since = now;
        }
        self.minutes[0] = self.minutes[0].min(rtt);
    }

    fn value(&self) -> Span {
        self.minutes.into_iter().min().unwrap_or(Span::MAX)
    }
}

/// How many samples a record stands for, as far as the filter remembers them: as many as its newest acknowledgement
/// goes into it. They are taken to be like the newest.
fn acks_of(ack: &Ack) -> u64 {
    let newest = ack.prior_inflight.saturating_sub(ack.inflight).0;
    ack.acked.0.checked_div(newest).unwrap_or(1).clamp(1, CURRENT_FILTER as u64)
}

/// Where it is between two slowdowns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first slow start.
    SlowStart,
    /// Until the first slowdown, in round trips.
    Settling { rounds: u32 },
    /// Two packets per round trip, for so many more round trips.
    Slowdown { rounds: u32, since: Time },
    /// Slow start to the window from before.
    Recovering { since: Time },
    /// By the delay, until the next slowdown.
    Steady { next: Time },
}

/// The controller.
#[derive(Clone, Debug)]
pub struct LedbatPlusPlus {
    window: Window,
    /// Of queueing delay, seconds.
    target: f64,
    base: Base,
    /// The latest samples, in no order.
    current: [Span; CURRENT_FILTER],
    samples: usize,
    phase: Phase,
    /// A packet sent now or later ends the round trip.
    round_from: Time,
    slowdowns: u64,
}

impl LedbatPlusPlus {
    /// Starts in slow start with two packets.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let mut window = Window::new(flow);
        window.cwnd = CWND_MIN;
        Self {
            window,
            target: params.number("target_ms") / 1e3,
            base: Base { minutes: [Span::MAX; BASE_HISTORY], since: flow.start },
            current: [Span::MAX; CURRENT_FILTER],
            samples: 0,
            phase: Phase::SlowStart,
            round_from: flow.start,
            slowdowns: 0,
        }
    }

    fn sample(&mut self, ack: &Ack) {
        if ack.rtt == Span::ZERO {
            return;
        }
        self.base.sample(ack.now, ack.smallest_rtt());
        for _ in 0..acks_of(ack) {
            self.current[self.samples % CURRENT_FILTER] = ack.rtt;
            self.samples += 1;
        }
    }

    /// Queueing delay, seconds; 0 before the first sample.
    fn delay(&self) -> f64 {
        if self.samples == 0 {
            return 0.0;
        }
        let current = self.current.into_iter().min().unwrap_or(Span::MAX);
        Span(current.0.saturating_sub(self.base.value().0)).as_secs_f64()
    }

    /// Packets per round trip, at most 1: less on short paths, so that it does not outgrow flows that
    /// share the target's delay (source).
    fn gain(&self) -> f64 {
        if self.samples == 0 {
            return 1.0;
        }
        let base = self.base.value().as_secs_f64();
        1.0 / libm::ceil(2.0 * self.target / base).clamp(1.0, DIVISOR_MAX)
    }

    /// What a round trip adds to the window; at least minus half of it.
    fn step(&self) -> f64 {
        let (excess, cwnd) = (self.delay() / self.target - 1.0, self.window.cwnd);
        if excess <= 0.0 {
            return self.gain();
        }
        (self.gain() - cwnd * excess).max(-cwnd / 2.0)
    }

    fn end_round(&mut self, now: Time) {
        self.round_from = now;
        self.phase = match self.phase {
            Phase::Settling { rounds: 1 } => return self.slow_down(now),
            Phase::Settling { rounds } => Phase::Settling { rounds: rounds - 1 },
            Phase::Slowdown { rounds: 1, since } => Phase::Recovering { since },
            Phase::Slowdown { rounds, since } => Phase::Slowdown { rounds: rounds - 1, since },
            Phase::Steady { next } if now >= next => return self.slow_down(now),
            phase => phase,
        };
    }

    fn slow_down(&mut self, now: Time) {
        self.slowdowns += 1;
        self.window.ssthresh = self.window.cwnd;
        self.window.cwnd = CWND_MIN;
        self.phase = Phase::Slowdown { rounds: SLOWDOWN_ROUNDS, since: now };
    }

    /// The window from before is there again, or as much as a loss has left.
    fn recover(&mut self, now: Time, since: Time) {
        let took = now.since(since);
        self.phase = Phase::Steady { next: now + Span(took.0.saturating_mul(SLOWDOWN_EVERY)) };
    }

    fn grow(&mut self, ack: &Ack) {
        let acked = self.window.packets(ack.acked);
        let used = ack.cwnd_limited == 1;
        match self.phase {
            Phase::SlowStart if self.delay() > SLOW_START_PART * self.target => {
                self.leave_slow_start();
            }
            Phase::SlowStart if used => self.window.grow(self.gain() * acked),
            Phase::Recovering { since } => {
                let missing = self.window.ssthresh - self.window.cwnd;
                if used {
                    self.window.grow((self.gain() * acked).min(missing).max(0.0));
                }
                if self.window.cwnd >= self.window.ssthresh {
                    self.recover(ack.now, since);
                }
            }
            Phase::Settling { .. } | Phase::Steady { .. } => {
                let step = self.step();
                if step < 0.0 || used {
                    self.window.avoid(acked, step);
                }
            }
            Phase::SlowStart | Phase::Slowdown { .. } => {}
        }
    }

    fn leave_slow_start(&mut self) {
        self.window.ssthresh = self.window.cwnd;
        self.phase = Phase::Settling { rounds: SLOWDOWN_ROUNDS };
    }
}

impl Controller for LedbatPlusPlus {
    fn on_ack(&mut self, ack: &Ack) {
        self.sample(ack);
        if ack.sent_at >= self.round_from {
            self.end_round(ack.now);
        }
        if ack.recovering == 0 {
            self.grow(ack);
        }
        self.window.cwnd = self.window.cwnd.max(CWND_MIN);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let reduces = matches!(loss.kind, LossKind::Gap | LossKind::Timeout);
        if reduces && self.phase == Phase::SlowStart {
            self.leave_slow_start();
        }
        self.window.reduce(loss);
        self.window.cwnd = self.window.cwnd.max(CWND_MIN);
        if let (
            Phase::Settling { .. } | Phase::Steady { .. },
            LossKind::Timeout | LossKind::TimeoutAgain,
        ) = (self.phase, loss.kind)
        {
            self.phase = Phase::Recovering { since: loss.now };
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("slowdowns", self.slowdowns as f64)]
    }
}

#[cfg(test)]
#[path = "tests/ledbat_plus_plus.rs"]
mod tests;
