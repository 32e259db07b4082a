//! `LearningCC`: a bandit chooses how fast the window grows (Zhang, "`LearningCC`: An online learning
//! approach for congestion control").
//!
//! `mode = code` is what the author ran, `DrainQueueCongestion`'s `tcp_learning_sender_bytes`;
//! `mode = paper` is what its text says. `docs/reference/controllers/learningcc.md` lists the differences.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::controllers::shared::bandit::Bandit;
use crate::controllers::shared::quic::{
    MSS, ON_TIMEOUT, RoundMax, Rounds, Window, pacing_rate, restarts_on_timeout,
};
use crate::params::{Param, ParamKind, Params};
use crate::rng::Rng;
use crate::units::{Bytes, Rate, Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "learningcc",
    about: "AIMD whose growth a bandit chooses; a congestion event resets the window to 0.9 BDP",
    source: "Zhang, LearningCC; code in SoonyangZhang/DrainQueueCongestion",
    params: &[
        Param {
            name: "mode",
            about: "`code` follows the published code, `paper` the text where they differ",
            kind: ParamKind::Choice(&["code", "paper"]),
        },
        Param {
            name: "epsilon",
            about: "chance that a choice is uniform (paper: section II)",
            kind: ParamKind::Number { default: 0.3, min: 0.0, max: 1.0 },
        },
        Param {
            name: "delta",
            about: "weight of a new reward (paper: equation 5)",
            kind: ParamKind::Number { default: 0.85, min: 0.01, max: 1.0 },
        },
        Param {
            name: "theta",
            about: "where between smallest and largest round trip congestion begins (paper: \
                    equation 6)",
            kind: ParamKind::Number { default: 0.8, min: 0.0, max: 1.0 },
        },
        Param {
            name: "beta",
            about: "part of the bandwidth-delay product that a backoff goes to (paper: algorithm 1)",
            kind: ParamKind::Number { default: 0.9, min: 0.1, max: 1.0 },
        },
        MSS,
        ON_TIMEOUT,
    ],
    build: |flow, params| Box::new(LearningCc::new(flow, params)),
};

/// Grows by one of five slopes until delay or loss calls for a backoff, then chooses anew.
#[derive(Clone, Debug)]
pub struct LearningCc {
    by_code: bool,
    theta: f64,
    beta: f64,
    restarts: bool,
    phase: Phase,
    window: Window,
    srtt: Span,
    rounds: Rounds,
    /// Delivery rate, bit/s.
    bandwidth: RoundMax<10>,
    /// Nanoseconds.
    srtt_max: RoundMax<20>,
    min_rtt: MinRtt,
    startup: Startup,
    bandit: Bandit<5>,
    step: Step,
    stats: Stats,
}

/// What the window follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Twice the bandwidth-delay product (`code`).
    Startup,
    /// Half the bandwidth, until the queue of start-up has gone (`code`).
    Drain,
    /// One packet per acknowledged packet, until the first congestion (`paper`).
    SlowStart,
    /// The bandit's slope.
    Aimd,
}

/// The action in use and what is needed to credit it.
#[derive(Clone, Debug)]
struct Step {
    /// Whether an action was chosen since the last backoff.
    chosen: bool,
    chosen_at: Time,
    /// Acknowledgements of packets sent since then count; `None` before the first round trip.
    counts_from: Option<Time>,
    /// Smallest sample since the choice; `Span::MAX` before the first.
    rtt_base: Span,
    /// Smoothed over the samples since the choice; zero before the first.
    srtt: Span,
}

/// Start-up's memory.
#[derive(Clone, Debug)]
struct Startup {
    initial_cwnd: Bytes,
    /// `None` before the first sample; never lowered.
    pacing_rate: Option<Rate>,
    /// Bandwidth at the last growth by half, bit/s.
    grown_to: u64,
    rounds_without_growth: u32,
}

/// Counters for the end of a run.
#[derive(Clone, Debug, Default)]
struct Stats {
    backoffs: [u64; 3],
    /// Choices of each slope.
    choices: [u64; 5],
}

/// Why a backoff came.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Delay,
    Expiry,
    Loss,
}

impl LearningCc {
    /// Starts in start-up.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let by_code = params.choice("mode") == "code";
        let window = Window::new(flow, params, PACKETS_MIN);
        let (epsilon, delta) = (params.number("epsilon"), params.number("delta"));
        Self {
            by_code,
            theta: params.number("theta"),
            beta: params.number("beta"),
            restarts: restarts_on_timeout(params),
            phase: if by_code { Phase::Startup } else { Phase::SlowStart },
            srtt: Span::ZERO,
            rounds: Rounds::default(),
            bandwidth: RoundMax::default(),
            srtt_max: RoundMax::default(),
            min_rtt: MinRtt::default(),
            startup: Startup {
                initial_cwnd: window.cwnd(),
                pacing_rate: None,
                grown_to: 0,
                rounds_without_growth: 0,
            },
            window,
            bandit: Bandit::new(epsilon, delta, Rng::new(flow.seed)),
            step: Step::begin(Time(0)),
            stats: Stats::default(),
        }
    }

    /// The bandwidth-delay product; `None` before both are known.
    fn bdp(&self) -> Option<Bytes> {
        let bdp = Rate(self.bandwidth.max()).bytes_in(self.min_rtt.value);
        (bdp > Bytes::ZERO).then_some(bdp)
    }

    /// Twice the bandwidth-delay product, or twice the initial window before there is one.
    fn startup_window(&self) -> u64 {
        (self.bdp().unwrap_or(self.startup.initial_cwnd) * STARTUP_GAIN).0
    }

    /// As in the code, samples that the application limited count like any other.
    fn start_up(&mut self, ack: &Ack, round_began: bool) {
        let bandwidth = self.bandwidth.max();
        self.startup.pacing_rate = match self.startup.pacing_rate {
            Some(rate) => Some(rate.max(Rate(bandwidth) * STARTUP_GAIN)),
            None if ack.rtt > Span::ZERO => Some(Rate::of(self.startup.initial_cwnd, ack.rtt)),
            None => None,
        };
        if round_began && self.startup.is_over(bandwidth) {
            self.phase = Phase::Drain;
        }
        self.window.set(self.startup_window());
    }

    fn drain(&mut self, ack: &Ack) {
        let empty = self.bdp().unwrap_or(self.startup.initial_cwnd);
        if ack.inflight.0 > empty.0.max(PACKETS_MIN * self.window.mss()) {
            return self.window.set(self.startup_window());
        }
        self.phase = Phase::Aimd;
        self.window.set(empty.0);
        self.window.leave_slow_start();
        self.bandit.explore();
        self.begin_step(ack.now);
    }

    /// Algorithms 1 and 2, without losses.
    fn adapt(&mut self, ack: &Ack, min_rtt_expired: bool) {
        if ack.rtt > Span::ZERO {
            self.step.sample(ack.rtt);
        }
        self.credit(ack);
        if ack.rtt > Span::ZERO && self.is_congested(ack.rtt) {
            self.back_off(ack.now, ack.sent_at, Cause::Delay);
        }
        if min_rtt_expired {
            self.back_off(ack.now, ack.sent_at, Cause::Expiry);
        }
        if self.window.in_recovery() {
            return;
        }
        if self.phase == Phase::SlowStart {
            return self.window.grow_exponentially(ack.acked);
        }
        if !self.step.chosen {
            self.bandit.choose();
            self.begin_step(ack.now);
        }
        self.window.grow_additively(ack.acked, ALPHAS[self.bandit.current()], self.by_code);
    }

    /// Equations 3 and 5. The code waits for a packet sent after the choice to be acknowledged, and
    /// then for one sent after that: two round trips; the text says one.
    fn credit(&mut self, ack: &Ack) {
        let step = &mut self.step;
        let smoothed = if self.by_code { step.srtt } else { self.srtt };
        if step.counts_from.is_some_and(|from| ack.sent_at >= from) && smoothed > Span::ZERO {
            let kbps = ack.delivery_rate.0 as f64 / 1e3;
            self.bandit.reward(kbps / smoothed.as_millis_f64());
        } else if step.counts_from.is_none() && ack.sent_at >= step.chosen_at {
            step.counts_from = Some(ack.now);
        }
    }

    /// Equation 6. The code takes a round trip at the threshold for congestion, and any round trip if
    /// the smallest and the largest are equal.
    fn is_congested(&self, rtt: Span) -> bool {
        let (base, max) = (self.step.rtt_base.0 as f64, self.srtt_max.max() as f64);
        let threshold = base + self.theta * (max - base);
        if self.by_code {
            max <= base || rtt.0 as f64 >= threshold
        } else {
            rtt.0 as f64 > threshold
        }
    }

    /// Algorithm 1, for a packet sent at `sent_at`.
    fn back_off(&mut self, now: Time, sent_at: Time, cause: Cause) {
        if !self.window.answers(sent_at) {
            return;
        }
        let cwnd = match self.bdp() {
            Some(bdp) => bdp.0 as f64 * self.beta,
            None => self.window.cwnd().0 as f64 / 2.0,
        };
        self.window.cut_to(now, cwnd as u64);
        self.phase = Phase::Aimd;
        self.step.chosen = false;
        self.stats.backoffs[cause as usize] += 1;
    }

    fn begin_step(&mut self, now: Time) {
        self.step = Step::begin(now);
        if !self.by_code {
            self.step.counts_from = Some(now);
        }
        self.stats.choices[self.bandit.current()] += 1;
    }
}

impl Controller for LearningCc {
    fn on_ack(&mut self, ack: &Ack) {
        self.window.note(ack);
        self.srtt = ack.srtt;
        let round_began = self.rounds.on_ack(ack.now, ack.sent_at);
        let round = self.rounds.count();
        self.bandwidth.update(round, ack.delivery_rate.0);
        self.srtt_max.update(round, ack.srtt.0);
        let expired = ack.rtt > Span::ZERO && self.min_rtt.update(ack.now, ack.rtt);
        match self.phase {
            Phase::Startup => self.start_up(ack, round_began),
            Phase::Drain => self.drain(ack),
            Phase::SlowStart | Phase::Aimd => self.adapt(ack, expired),
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let adapts = matches!(self.phase, Phase::SlowStart | Phase::Aimd);
        match loss.kind {
            LossKind::Gap | LossKind::More if adapts && self.window.answers_loss(loss) => {
                self.back_off(loss.now, loss.now, Cause::Loss);
            }
            LossKind::Timeout | LossKind::TimeoutAgain if adapts && self.restarts => {
                self.window.restart(loss);
            }
            _ => {}
        }
    }

    fn control(&self) -> Control {
        let cwnd = self.window.cwnd();
        let pacing_rate = match self.phase {
            Phase::Startup => self
                .startup
                .pacing_rate
                .unwrap_or_else(|| pacing_rate(self.startup.initial_cwnd, 200, Span::ZERO)),
            Phase::Drain => Rate(self.bandwidth.max()) / STARTUP_GAIN,
            Phase::SlowStart => pacing_rate(cwnd, 200, self.srtt),
            Phase::Aimd => pacing_rate(cwnd, 125, self.srtt),
        };
        Control {
            cwnd: self.window.allowed(),
            pacing_rate: pacing_rate.max(Rate(1)),
            ssthresh: self.window.ssthresh(),
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        let choices: u64 = self.stats.choices.iter().sum();
        let slopes: u64 = self.stats.choices.iter().zip(ALPHAS).map(|(n, alpha)| n * alpha).sum();
        let [delay, expiry, loss] = self.stats.backoffs.map(|count| count as f64);
        vec![
            ("backoffs_delay", delay),
            ("backoffs_expiry", expiry),
            ("backoffs_loss", loss),
            ("choices", choices as f64),
            ("alpha_mean", slopes as f64 / choices.max(1) as f64),
        ]
    }
}

impl Step {
    fn begin(now: Time) -> Self {
        Self {
            chosen: true,
            chosen_at: now,
            counts_from: None,
            rtt_base: Span::MAX,
            srtt: Span::ZERO,
        }
    }

    /// Equation 4.
    fn sample(&mut self, rtt: Span) {
        self.rtt_base = self.rtt_base.min(rtt);
        self.srtt = if self.srtt == Span::ZERO { rtt } else { (self.srtt * 7 + rtt) / 8 };
    }
}

impl Startup {
    /// At the start of a round: whether the bandwidth has stopped growing by half a round.
    fn is_over(&mut self, bandwidth: u64) -> bool {
        if bandwidth.saturating_mul(2) >= self.grown_to.saturating_mul(3) && bandwidth > 0 {
            self.grown_to = bandwidth;
            self.rounds_without_growth = 0;
        } else {
            self.rounds_without_growth += 1;
        }
        self.rounds_without_growth >= STALE_ROUNDS
    }
}

/// The smallest round trip of the last ten seconds.
#[derive(Clone, Debug, Default)]
struct MinRtt {
    /// Zero before the first sample.
    value: Span,
    seen: Time,
    /// The code lets the sample after an expiry overwrite the minimum once more.
    overwrite: bool,
}

impl MinRtt {
    /// Adds a sample; returns whether the minimum had expired.
    fn update(&mut self, now: Time, sample: Span) -> bool {
        let known = self.value > Span::ZERO;
        let expired = known && now.since(self.seen) > MIN_RTT_LIFE;
        if !known || expired || self.overwrite || sample < self.value {
            self.value = sample;
            self.seen = now;
        }
        self.overwrite = expired;
        expired
    }
}

/// Packets per round trip that each action adds.
const ALPHAS: [u64; 5] = [1, 2, 3, 4, 5];
/// Smallest window, in packets.
const PACKETS_MIN: u64 = 4;
/// Of rate and window in start-up; its inverse drains.
const STARTUP_GAIN: u64 = 2;
/// Rounds without growth by half that end start-up.
const STALE_ROUNDS: u32 = 3;
const MIN_RTT_LIFE: Span = Span::from_millis(10_000);

#[cfg(test)]
#[path = "tests/learningcc.rs"]
mod tests;
