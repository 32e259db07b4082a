//! Copa (Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI
//! 2018): steers towards the rate 1/(δ·d), where d is the queueing delay, so that the queue empties every
//! few round trips. Where it does not empty, a flow that fills buffers is present, and δ follows losses.
use crate::control::{Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::params::{Param, ParamKind, Params};
use crate::sensing::overload::Overload;
use crate::sensing::windowed_min::WindowedMin;
use crate::units::{Bytes, Rate, Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "copa",
    about: "steers towards the rate 1/(δ·queueing delay); competes where the queue never empties",
    source: "Arun and Balakrishnan, NSDI 2018, sections 2 and 3; github.com/venkatarun95/genericCC",
    params: &[
        Param {
            name: "delta",
            about: "delay against throughput: a flow alone keeps about 1/δ packets queued (paper: 0.5)",
            kind: ParamKind::Number { default: 0.5, min: 0.001, max: 10.0 },
        },
        Param {
            name: "mode_switching",
            about: "`on`: where the queue has not been nearly empty for five round trips, 1/δ grows by \
                    one per round trip and halves on a loss (paper, section 2.2)",
            kind: ParamKind::Choice(&["on", "off"]),
        },
    ],
    build: |flow, params| Box::new(Copa::new(flow, params)),
};

/// Smallest window, packets (source).
const CWND_MIN: f64 = 2.0;
/// Time for which the smallest round trip counts (paper).
const MIN_RTT_WINDOW: Span = Span::from_millis(10_000);
/// The direction must have stayed for so many round trips before the velocity doubles (paper).
const STEADY_ROUNDS: u32 = 3;
/// The queue is nearly empty below this part of its recent range (paper).
const NEARLY_EMPTY: f64 = 0.1;
/// A receiver that delays acknowledgements answers the second packet of two, which has waited for the
/// first: less than the time between two acknowledgements counts as nearly empty, too (proposed).
const PACKETS_PER_ACK: f64 = 2.0;
/// The recent range is that of so many round trips (paper).
const RANGE_ROUNDS: usize = 4;
/// So many round trips without a nearly empty queue mean competition (paper).
const COMPETE_ROUNDS: u64 = 5;
/// The pacing rate is so many windows per round trip (paper).
const PACING_GAIN: f64 = 2.0;
/// Round trip that is assumed before the first sample (proposed): the kernel paces only flows that begin
/// with a rate.
const NOMINAL_RTT: Span = Span::from_millis(1);

/// Where the window went over a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Copa {
    /// Bytes of a packet.
    packet: f64,
    /// Of the default mode.
    delta: f64,
    switching: bool,
    cwnd: f64,
    slow_start: bool,
    /// 1/δ of the competitive mode; `None` in the default mode.
    competitive: Option<f64>,
    velocity: f64,
    direction: Direction,
    /// Round trips for which the direction has stayed.
    steady: u32,
    /// Of a packet's sending that ends the round trip.
    round_from: Time,
    rounds: u64,
    /// Round trips in the competitive mode.
    competitive_rounds: u64,
    /// Window at the start of the round trip.
    cwnd_before: f64,
    lost_in_round: bool,
    overload: Overload,
    /// Smallest round trip of 10 s.
    min_rtt: WindowedMin,
    /// Smallest round trip of half a smoothed one: the `RTTstanding` of the paper.
    recent: WindowedMin,
    /// When the latest sample came.
    sampled: Time,
    /// Largest round trip of each of the last rounds.
    largest: [Span; RANGE_ROUNDS],
    /// The last round in which the queue was nearly empty.
    empty_at: u64,
}

impl Copa {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let packet = flow.mss.0.max(1) as f64;
        let cwnd = (flow.initial_cwnd.0.min(CWND_MAX.0) as f64 / packet).max(CWND_MIN);
        Self {
            packet,
            delta: params.number("delta"),
            switching: params.choice("mode_switching") == "on",
            cwnd,
            slow_start: true,
            competitive: None,
            velocity: 1.0,
            direction: Direction::Up,
            steady: 0,
            round_from: flow.start,
            rounds: 0,
            competitive_rounds: 0,
            cwnd_before: cwnd,
            lost_in_round: false,
            overload: Overload::new(flow.start),
            min_rtt: WindowedMin::default(),
            recent: WindowedMin::default(),
            sampled: flow.start,
            largest: [Span::ZERO; RANGE_ROUNDS],
            empty_at: 0,
        }
    }

    fn inverse_delta(&self) -> f64 {
        self.competitive.unwrap_or(1.0 / self.delta)
    }

    fn sample(&mut self, ack: &Ack) {
        if ack.rtt == Span::ZERO {
            self.sample_repair(ack);
            return;
        }
        let smallest = ack.smallest_rtt();
        self.sampled = ack.now;
        self.min_rtt.sample(ack.now, smallest, MIN_RTT_WINDOW);
        self.recent.sample(ack.now, smallest, Span(ack.srtt.0 / 2));
        let now = &mut self.largest[self.rounds as usize % RANGE_ROUNDS];
        *now = (*now).max(ack.rtt_max).max(ack.rtt);
        let range = self.largest.iter().max().map_or(0, |max| max.0.saturating_sub(self.floor().0));
        let queueing = smallest.0.saturating_sub(self.floor().0) as f64;
        let between_acks = PACKETS_PER_ACK * smallest.0 as f64 / self.cwnd;
        if queueing <= between_acks.max(NEARLY_EMPTY * range as f64) {
            self.empty_at = self.rounds;
        }
    }

    /// While all that arrives was sent again there are no samples, and those of before an outage, in which nothing
    /// arrived, would set the pacing. Half a smoothed round trip after the last one, the time since the newest packet
    /// left takes their place.
    fn sample_repair(&mut self, ack: &Ack) {
        let (rtt, half) = (ack.now.since(ack.sent_at).max(self.floor()), Span(ack.srtt.0 / 2));
        if rtt > Span::ZERO && ack.now.since(self.sampled) > half {
            self.recent.sample(ack.now, rtt, half);
        }
    }

    fn floor(&self) -> Span {
        self.min_rtt.value().unwrap_or(Span::ZERO)
    }

    /// The window at which the rate is 1/(δ·d); infinite without queueing delay.
    fn target(&self) -> f64 {
        let Some(recent) = self.recent.value() else { return f64::INFINITY };
        let queueing = recent.0.saturating_sub(self.floor().0) as f64;
        self.inverse_delta() * recent.0 as f64 / queueing
    }

    fn end_round(&mut self, ack: &Ack) {
        self.round_from = ack.now;
        self.rounds += 1;
        self.largest[self.rounds as usize % RANGE_ROUNDS] = Span::ZERO;
        let direction = if self.cwnd > self.cwnd_before { Direction::Up } else { Direction::Down };
        self.cwnd_before = self.cwnd;
        if direction == self.direction {
            self.steady += 1;
            if self.steady >= STEADY_ROUNDS {
                self.velocity = (self.velocity * 2.0).min(self.cwnd);
            }
        } else {
            self.direction = direction;
            self.steady = 0;
            self.velocity = 1.0;
        }
        self.choose_mode();
        self.lost_in_round = false;
    }

    /// A round trip that lost more than it delivered leaves a window of what it delivered (proposed).
    fn answer_overload(&mut self, delivered: Bytes) {
        self.cwnd = self.cwnd.min(delivered.0 as f64 / self.packet).max(CWND_MIN);
        (self.cwnd_before, self.velocity, self.steady) = (self.cwnd, 1.0, 0);
        self.slow_start = false;
    }

    fn choose_mode(&mut self) {
        let competes = self.switching && self.rounds >= self.empty_at + COMPETE_ROUNDS;
        self.competitive = match self.competitive {
            _ if !competes => None,
            None => Some(1.0 / self.delta),
            Some(inverse) if self.lost_in_round => Some((inverse / 2.0).max(1.0 / self.delta)),
            Some(inverse) => Some(inverse + 1.0),
        };
        self.competitive_rounds += u64::from(self.competitive.is_some());
    }

    /// Moves the window towards the target for `acked` packets, of which the newest acknowledgement delivered
    /// `newest`. Alone, the acknowledgements of a batch would be answered in turn, and the first beyond the target
    /// would be the last of its direction: a batch ends within the step of its newest beyond the target. A window that
    /// fell within a round trip rises to `most`: its velocity is that of the larger window.
    fn step(&mut self, acked: f64, newest: f64, cwnd_limited: bool, most: f64) {
        let target = self.target();
        let below = self.cwnd <= target;
        if self.slow_start {
            self.slow_start = below;
            if below && cwnd_limited {
                self.cwnd = (self.cwnd + acked).min(target + newest);
            }
            return;
        }
        let per_packet = self.velocity * self.inverse_delta() / self.cwnd;
        let (step, beyond) = (per_packet * acked, per_packet * newest);
        if !below {
            self.cwnd = (self.cwnd - step).max(target - beyond).max(CWND_MIN);
        } else if cwnd_limited {
            self.cwnd = (self.cwnd + step).min(target + beyond).min(most.max(self.cwnd));
        }
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, ack: &Ack) {
        self.sample(ack);
        if ack.sent_at >= self.round_from {
            self.end_round(ack);
        }
        let acked = ack.acked.0 as f64 / self.packet;
        let newest = match ack.prior_inflight.saturating_sub(ack.inflight) {
            Bytes::ZERO => acked,
            newest => (newest.0 as f64 / self.packet).min(acked),
        };
        let most = match ack.prior_inflight {
            Bytes::ZERO => f64::INFINITY,
            flight => (1.0 + self.inverse_delta()) * flight.0 as f64 / self.packet,
        };
        self.step(acked, newest, ack.cwnd_limited == 1, most);
        if let Some(round) = self.overload.on_ack(ack).filter(|round| round.is_overload()) {
            self.answer_overload(round.acked);
        }
        self.cwnd = self.cwnd.clamp(CWND_MIN, CWND_MAX.0 as f64 / self.packet);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.overload.on_loss(loss);
        match loss.kind {
            LossKind::Gap | LossKind::More => self.lost_in_round = true,
            LossKind::Timeout | LossKind::TimeoutAgain => {
                self.lost_in_round = true;
                self.cwnd = CWND_MIN;
                self.slow_start = true;
                self.velocity = 1.0;
                self.overload.forgive();
            }
            LossKind::Spurious => self.overload.forgive(),
            LossKind::Deflate | LossKind::Idle => {}
        }
    }

    fn control(&self) -> Control {
        let recent = self.recent.value().unwrap_or(NOMINAL_RTT).max(Span(1)).as_secs_f64();
        let rate = PACING_GAIN * self.cwnd * self.packet * 8.0 / recent;
        Control {
            pacing_rate: Rate((rate as u64).clamp(1, Rate::UNLIMITED.0 - 1)),
            ..Control::window(Bytes((self.cwnd * self.packet) as u64))
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("competitive_rounds", self.competitive_rounds as f64)]
    }
}

#[cfg(test)]
#[path = "tests/copa.rs"]
mod tests;
