//! The law of the controller `own_queue`: a flow steers the number of its own packets in the bottleneck's
//! queue to a target that grows with the root of its rate. Flows that do so share a link in equal parts,
//! whatever their round trips. The controller runs it as it is; a learned controller may turn two knobs.
mod ceiling;
mod contention;
mod drain;
mod hold;
mod losses;
mod samples;

use crate::control::{Ack, CWND_MAX, FlowInfo, Loss, LossKind};
use crate::law::hystart::delay_threshold;
use crate::sensing::signals::{Interval, WINDOW};
use crate::sensing::windowed_max::WindowedMax;
use crate::sensing::windowed_min::WindowedMin;
use crate::units::{Rate, Span, Time};
use contention::{Contention, Seen};
use drain::Drains;
use hold::{Hold, Scene};
use losses::{Answer, Losses};
use samples::{Group, Parts, rate_pps};

/// Shortest monitor interval; otherwise it is a smoothed round trip.
pub const INTERVAL_MIN: Span = Span::from_millis(10);
/// Smallest window, and that after a time-out, packets.
const CWND_MIN: f64 = 2.0;
/// The rate at which the target is [`Settings::target_packets`]: 10 Mb/s of 1500-byte packets.
const TARGET_PPS: f64 = 833.0;
/// The power of the rate that the target grows with: its root.
pub const EXPONENT: f64 = 0.5;
/// Largest power: with 1 any split of a link would hold.
pub const EXPONENT_MAX: f64 = 0.9;
/// Part of the error that an interval corrects.
const GAIN: f64 = 0.5;
/// An error of one sign for so many intervals ...
const STEADY_INTERVALS: u32 = 3;
/// ... is corrected faster by this factor with each further one ...
const FASTER: f64 = 1.5;
/// ... up to this.
const VELOCITY_MAX: f64 = 32.0;
/// Bounds of what the law makes of a window in an interval.
const STEP: (f64, f64) = (0.8, 1.25);
/// Bounds of what an interval makes of a window, actions included.
const STEP_IN_ALL: (f64, f64) = (0.5, 2.0);
/// The first value of an action changes the target by up to so many powers of two.
const TARGET_OCTAVES: f64 = 6.0;
/// With the map `own_queue_paced` the first value changes the target by up to so many powers of two, and, above 0, the
/// rate of pacing by up to so many: what comes in lumps must not be sent more slowly than it may come.
const PACED_OCTAVES: (f64, f64) = (1.0, 4.0);
/// The second value's effect h(u) = a·u + b·u³: fine near zero.
const FACTOR_TERMS: (f64, f64) = (0.15, 0.85);
/// Pacing, in windows per round trip; in the start, that doubles the window in one, more.
const PACING_GAIN: f64 = 1.02;
const START_PACING_GAIN: f64 = 2.0;
/// Round trip that is assumed before the first sample, as in `bbr1`.
const NOMINAL_RTT: Span = Span::from_millis(1);
/// The window is at most so many times what was acknowledged in flight, and so many packets more.
const UNUSED: (f64, f64) = (2.0, 10.0);
/// Without an acknowledgement for so many round trips the window does not grow.
const SILENT_RTTS: u64 = 2;
/// Time over which others are seen by what was before.
const MINUTE: Span = Span::from_millis(60_000);
/// A queue that makes the round trip so many times the base, of which own packets are more than half of the
/// window, for so many intervals, takes the second value of an action to at most this and the first to 0.
const BLOAT: (f64, f64, u32, f64) = (8.0, 0.5, 20, -0.5);
/// So much of the jitter is taken off the round trip, as far as it exceeds the time in which the flow sends so many
/// packets at best. Packets of other flows in the queue let round trips differ, too, but by less.
const JITTER_PART: f64 = 0.75;
const JITTER_PACKETS: f64 = 4.0;
/// Beyond the time of so many packets jitter hides what a policy was trained to see.
const JITTER_HIDES: f64 = 2.0;
/// A window that every interval multiplies by 2^(h/2) is taken to settle as if its target were 2^(20·h) times as large.
const FACTOR_OCTAVES: f64 = 20.0;
/// A congestion mark takes so much of the window (RFC 8511), once per interval.
const AFTER_MARK: f64 = 0.85;

/// Range of [`Settings::target_packets`].
pub const TARGET_PACKETS: (f64, f64) = (0.1, 1000.0);

/// What the values of an action of the map `own_queue_paced` ask for; zeros leave the law as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turned {
    /// The first value of [`Law::on_interval`]'s action.
    pub target: f64,
    /// Factor of the rate of pacing outside of the start, 1 or more.
    pub pacing: f64,
    /// How readily a held rate grows, or below 0 how far it falls, in [-1, 1].
    pub growth: f64,
}

impl Turned {
    /// Of two values in [-1, 1].
    pub fn of(action: [f64; 2]) -> Self {
        Self {
            target: action[0] * PACED_OCTAVES.0 / TARGET_OCTAVES,
            pacing: libm::exp2(PACED_OCTAVES.1 * action[0].max(0.0)),
            growth: action[1],
        }
    }
}

/// The numbers of the law that a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Own packets in the queue at 10 Mb/s.
    pub target_packets: f64,
    /// The target grows with this power of the rate, in [0, 1).
    pub exponent: f64,
    /// Loss beyond that of the path itself that is answered.
    pub loss_limit: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { target_packets: 3.5, exponent: EXPONENT, loss_limit: 0.02 }
    }
}

/// Where it is in the flow's life.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Doubles per round trip until a queue or a loss shows, or this window is reached.
    Start { until: f64 },
    /// Steers to the target.
    Steady,
}

/// What happened, by name for [`Law::counters`].
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cuts: u64,
    silent: u64,
    held: u64,
    bloated: u64,
    unused: u64,
}

/// The law of one flow.
#[derive(Clone, Debug)]
pub struct Law {
    settings: Settings,
    packet: f64,
    initial: f64,
    cwnd: f64,
    phase: Phase,
    /// Round trip of the latest interval: the mean of its parts' smallest.
    rtt: Span,
    parts: Parts,
    /// How much faster than [`GAIN`] the error is corrected.
    velocity: f64,
    /// Whether the queue was below the target, and for how many intervals.
    below: bool,
    steady: u32,
    /// Most that acknowledgements found in flight, packets: in this interval, and in 10 s.
    found: f64,
    found_max: WindowedMax,
    /// Largest delivery rate of a minute, packets/s.
    rate_max: WindowedMax,
    /// Smallest round trip of a minute.
    base: WindowedMin,
    losses: Losses,
    drains: Drains,
    contention: Contention,
    hold: Hold,
    /// Intervals in a row with far too long a queue.
    bloated: u32,
    /// Smallest of the latest samples of the start, and how many packets they acknowledged.
    group: Group,
    /// Window before the latest reduction that may prove spurious.
    before: f64,
    /// When that reduction was undone: what was sent before waited while the path stood still.
    undone: Time,
    /// Window of the interval before the present one, whose effect the present one's round trips show.
    earlier: f64,
    /// When the start ended, until a packet sent later has come back.
    left: Option<Time>,
    /// Factor of the rate of pacing outside of the start.
    pacing: f64,
    counts: Counts,
}

impl Law {
    /// Begins with the flow's initial window, in the start.
    pub fn new(flow: &FlowInfo, settings: &Settings) -> Self {
        let packet = flow.mss.0.max(1) as f64;
        let packets = |bytes: u64| bytes.min(CWND_MAX.0) as f64 / packet;
        let initial = packets(flow.initial_cwnd.0).max(CWND_MIN);
        let until = match flow.initial_ssthresh.0 {
            u64::MAX => f64::INFINITY,
            bytes => packets(bytes),
        };
        Self {
            settings: *settings,
            packet,
            initial,
            cwnd: initial,
            phase: Phase::Start { until },
            rtt: Span::ZERO,
            parts: Parts::default(),
            velocity: 1.0,
            below: true,
            steady: 0,
            found: 0.0,
            found_max: WindowedMax::new(WINDOW.0),
            rate_max: WindowedMax::new(MINUTE.0),
            base: WindowedMin::default(),
            losses: Losses::default(),
            drains: Drains::new(flow),
            contention: Contention::default(),
            hold: Hold::default(),
            bloated: 0,
            group: Group::default(),
            before: 0.0,
            undone: Time(0),
            earlier: initial,
            left: None,
            pacing: 1.0,
            counts: Counts::default(),
        }
    }

    /// When the interval that begins with this acknowledgement ends: with the first one from then on.
    pub fn interval_end(ack: &Ack) -> Time {
        ack.now + ack.srtt.max(INTERVAL_MIN)
    }

    /// What may be in flight, packets.
    pub fn cwnd_packets(&self) -> f64 {
        match self.drains.window() {
            Some(window) => window.clamp(CWND_MIN, self.cwnd),
            None => self.cwnd,
        }
    }

    /// The rate of sending.
    pub fn pacing(&self) -> Option<Rate> {
        let rtt = if self.rtt > Span::ZERO { self.rtt } else { NOMINAL_RTT };
        let gain = if self.is_starting() { START_PACING_GAIN } else { PACING_GAIN * self.pacing };
        let bits_per_s = gain * self.cwnd_packets() * self.packet * 8.0 / rtt.as_secs_f64();
        Some(Rate((bits_per_s as u64).clamp(1, Rate::UNLIMITED.0 - 1)))
    }

    /// Whether the flow is in its start, or in that after a time-out.
    pub fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Start { .. })
    }

    /// Events worth counting.
    pub fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("drains", self.drains.count() as f64),
            ("intervals_held", self.counts.held as f64),
            ("path_loss_percent", 100.0 * self.losses.own()),
            ("cuts", self.counts.cuts as f64),
            ("known_overloads", self.losses.known() as f64),
            ("intervals_silent", self.counts.silent as f64),
            ("intervals_bloated", self.counts.bloated as f64),
            ("intervals_unused", self.counts.unused as f64),
        ]
    }

    /// Something was delivered.
    pub fn on_ack(&mut self, ack: &Ack) {
        let found = ack.prior_inflight.max(ack.inflight).0 as f64 / self.packet;
        self.found = self.found.max(found);
        self.drains.on_ack(ack, found);
        let is_of_pause = ack.sent_at < self.undone;
        if !is_of_pause {
            self.parts.add(ack, self.packet);
        }
        if self.rtt == Span::ZERO {
            self.rtt = ack.rtt;
        }
        let Phase::Start { until } = self.phase else {
            self.follow_start(ack);
            return;
        };
        if !is_of_pause && self.look_for_a_queue(ack) {
            return;
        }
        if ack.recovering == 0 && ack.cwnd_limited == 1 {
            let grown = self.cwnd + ack.acked.0 as f64 / self.packet;
            self.set(grown.min(until.max(self.cwnd)));
        }
        if self.cwnd >= until {
            self.phase = Phase::Steady;
        }
    }

    /// Something was lost, or the sender has taken a step that the window must follow.
    pub fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap | LossKind::More => {
                self.losses.on_loss(loss.lost.0 as f64 / self.packet);
                if self.is_starting() && self.losses.is_flood(self.cwnd) {
                    self.before = self.cwnd;
                    self.leave_start(loss.now);
                    self.set(self.cwnd / 2.0);
                }
            }
            LossKind::Timeout => {
                self.before = 0.0;
                self.on_timeout();
            }
            LossKind::TimeoutAgain => {
                // Within a repair it is the first that is answered here.
                if self.cwnd > CWND_MIN {
                    self.on_timeout();
                }
            }
            LossKind::Idle => {
                self.restart(self.cwnd);
                self.set(self.cwnd.min(self.initial));
            }
            LossKind::Spurious => {
                self.undone = loss.now;
                let before = std::mem::take(&mut self.before);
                self.set(self.cwnd.max(before));
            }
            LossKind::Deflate => {}
        }
    }

    /// The retransmission timer expired: two packets, and the start again up to half of the window.
    pub fn on_timeout(&mut self) {
        self.before = self.before.max(self.cwnd);
        self.restart((self.cwnd / 2.0).max(CWND_MIN));
        self.set(CWND_MIN);
    }

    fn restart(&mut self, until: f64) {
        self.phase = Phase::Start { until };
        self.drains.cancel();
        self.group = Group::default();
        self.left = None;
        self.losses.forget();
        self.turn(true);
    }

    /// The start has ended; what comes for a round trip are the effects of its last window.
    fn leave_start(&mut self, now: Time) {
        self.phase = Phase::Steady;
        (self.earlier, self.left) = (self.cwnd, Some(now));
        self.losses.answered();
    }

    /// What the last packets of the start tell: only they are delivered at the rate of the path, since a
    /// sample covers a round trip, and the start sends twice as much in each.
    fn follow_start(&mut self, ack: &Ack) {
        let Some(left) = self.left else { return };
        if ack.sent_at > left {
            self.left = None;
            return;
        }
        let filled = self.filled(ack, rate_pps(ack, self.packet)).min(self.earlier);
        self.set(self.cwnd.max(filled));
    }

    /// A window that fills the path at this rate, and the target.
    fn filled(&self, ack: &Ack, rate_pps: f64) -> f64 {
        rate_pps * ack.min_rtt.as_secs_f64() + self.target(rate_pps, 0.0)
    }

    fn turn(&mut self, below: bool) {
        (self.below, self.steady, self.velocity) = (below, 1, 1.0);
    }

    fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(CWND_MIN, (CWND_MAX.0 as f64 / self.packet).max(CWND_MIN));
    }

    /// Sets how far it paces and how a held rate grows, until this is told anew.
    pub fn turn_to(&mut self, turned: &Turned) {
        self.pacing = turned.pacing;
        self.hold.growth = turned.growth;
    }

    /// A monitor interval has ended. `action` has two values in [-1, 1]: the first sets the target, the second
    /// a factor of the window; zeros leave the law as it is.
    pub fn on_interval(&mut self, interval: &Interval, action: [f64; 2]) {
        if let Some(rtt) = self.parts.take(interval.base) {
            self.rtt = rtt;
        }
        self.found_max.sample(interval.now.0, self.found);
        let found = std::mem::take(&mut self.found);
        let before = self.cwnd;
        match self.phase {
            Phase::Start { .. } => {}
            Phase::Steady => self.steer(interval, action, found),
        }
        self.set(self.cwnd.clamp(before * STEP_IN_ALL.0, before * STEP_IN_ALL.1));
        self.limit_unused();
        if self.left.is_none() {
            self.earlier = before;
        }
    }

    /// Own packets in the queue.
    fn own_queue(&self, interval: &Interval) -> f64 {
        if self.rtt == Span::ZERO {
            return 0.0;
        }
        let above = self.rtt.0.saturating_sub(interval.base.0) as f64;
        let waiting = above - JITTER_PART * jitter_beyond(JITTER_PACKETS, interval).min(above);
        let waiting = waiting / self.rtt.0 as f64;
        self.cwnd.min(interval.inflight_mean_packets) * waiting
    }

    /// Own packets in the queue once the latest change of the window shows in it. A larger window adds to
    /// a queue that is there, and else fills the path.
    fn queue_to_come(&self, queue: f64, target: f64) -> f64 {
        let change = self.cwnd - self.earlier;
        if change < 0.0 || queue > target / 2.0 { (queue + change).max(0.0) } else { queue }
    }

    /// How many there should be without actions.
    fn plain_target(&self, rate_pps: f64) -> f64 {
        let rate = rate_pps.max(0.0) / TARGET_PPS;
        let exponent = self.settings.exponent;
        let grown = if exponent.total_cmp(&EXPONENT).is_eq() {
            libm::sqrt(rate)
        } else {
            libm::pow(rate, exponent)
        };
        (self.settings.target_packets * grown).max(1.0)
    }

    /// How many there should be.
    fn target(&self, rate_pps: f64, action: f64) -> f64 {
        let changed = self.plain_target(rate_pps) * libm::exp2(TARGET_OCTAVES * action);
        changed.clamp(1.0, self.cwnd.max(1.0))
    }

    /// The start ends with a group of samples whose smallest shows a queue.
    fn look_for_a_queue(&mut self, ack: &Ack) -> bool {
        let Some((rtt, rate_pps)) = self.group.add(ack, self.packet) else { return false };
        if rtt <= ack.min_rtt + delay_threshold(ack.min_rtt) {
            return false;
        }
        self.leave_start(ack.now);
        self.set(self.filled(ack, rate_pps).clamp(self.cwnd / 4.0, self.cwnd));
        self.turn(false);
        true
    }

    fn steer(&mut self, interval: &Interval, action: [f64; 2], found: f64) {
        let queue = self.own_queue(interval);
        let action = self.limit_bloat(interval, queue, action);
        let answer = self.losses.judge(interval, self.cwnd, self.settings.loss_limit);
        let target = self.target(interval.delivery_pps, action[0]);
        let target = target * self.losses.restraint(self.settings.loss_limit);
        if self.drains.on_interval(interval, queue < target / 4.0) {
            return;
        }
        self.rate_max.sample(interval.now.0, interval.delivery_pps);
        self.base.sample(interval.now, interval.base, MINUTE);
        let error = target - self.queue_to_come(queue, target);
        let cwnd = match answer {
            Answer::Cut(cwnd) => {
                self.before = self.cwnd;
                self.counts.cuts += 1;
                self.turn(false);
                cwnd
            }
            Answer::Restore(cwnd) => {
                self.turn(true);
                cwnd
            }
            Answer::Hold => (self.cwnd + self.step(error)).min(self.cwnd),
            Answer::Go { ceiling } => {
                let next = self.cwnd + self.step(error);
                next.min(ceiling.max(self.cwnd))
            }
        };
        let cwnd = self.answer_marks(interval, cwnd);
        let factor = libm::exp2(effect(action[1]) / 2.0);
        // It is being judged what stays of a loss after a cut: what a larger window loses would count as the path's own.
        let judged = matches!(answer, Answer::Cut(_) | Answer::Hold);
        let factor = if judged { factor.min(1.0) } else { factor };
        let next = cwnd * factor;
        let held = self.hold.window(interval);
        let next = held.map_or(next, |held| self.hold_window(next, held));
        if next > self.cwnd && is_silent(interval) {
            self.counts.silent += 1;
            return;
        }
        self.set(next);
        if held.is_none() && self.drains.is_due(interval) {
            // An interval may know no round trip though an acknowledgement told one.
            let full = match interval.rtt_min {
                Span::ZERO => 1.0,
                rtt => interval.base.as_secs_f64() / rtt.as_secs_f64(),
            };
            self.drains.begin(interval, self.cwnd.min(found) * full);
        }
    }

    /// Whether others want the link, as a queue that stays long tells. To be asked at the end of each interval, before
    /// [`Law::on_interval`]. The law holds a rate only if this is asked.
    pub fn update_contention(&mut self, interval: &Interval) -> bool {
        let base = self.base.value().map_or(interval.base, |base| base.min(interval.base));
        let best_pps = self.rate_max.value().max(interval.delivery_pps).max(1.0);
        let queue = Span(interval.rtt_min.0.saturating_sub(base.0));
        let usual = self.usual(best_pps);
        let is_long = contention::is_long(queue, usual);
        let (cwnd, earlier) = (self.cwnd, self.earlier);
        let is_reduced = interval.lost_packets > 0.0 || interval.ce_ratio > 0.0;
        let seen = Seen { now: interval.now, queue, is_long, is_reduced, cwnd };
        let contention = self.contention.on_interval(&seen);
        self.hold.on_interval(interval, &Scene { queue, is_long, contention, cwnd, earlier });
        contention
    }

    /// Queueing delay that the target makes at a rate.
    fn usual(&self, rate_pps: f64) -> Span {
        Span::from_secs_f64(self.plain_target(rate_pps) / rate_pps)
    }

    /// The window that is not below what the held rate asks for.
    fn hold_window(&mut self, next: f64, held: f64) -> f64 {
        let held = held.min(STEP.1 * self.cwnd);
        self.counts.held += u64::from(held > next);
        next.max(held)
    }

    /// What an interval adds to the window for an error in packets.
    fn step(&mut self, error: f64) -> f64 {
        let below = error > 0.0;
        if below == self.below {
            self.steady += 1;
            if self.steady >= STEADY_INTERVALS {
                self.velocity = (self.velocity * FASTER).min(VELOCITY_MAX);
            }
        } else {
            self.turn(below);
        }
        let step = GAIN * self.velocity * error;
        step.clamp(self.cwnd * (STEP.0 - 1.0), self.cwnd * (STEP.1 - 1.0))
    }

    fn answer_marks(&mut self, interval: &Interval, cwnd: f64) -> f64 {
        if interval.marked_packets <= 0.0 {
            return cwnd;
        }
        self.turn(false);
        cwnd.min(AFTER_MARK * self.cwnd)
    }

    /// The action, or less where the flow's own queue has been far too long.
    fn limit_bloat(&mut self, interval: &Interval, queue: f64, action: [f64; 2]) -> [f64; 2] {
        let (ratio, part, intervals, most) = BLOAT;
        let long = interval.rtt_min.0 as f64 > ratio * interval.base.0 as f64;
        self.bloated = if long && queue > part * self.cwnd { self.bloated + 1 } else { 0 };
        if self.bloated < intervals {
            return action;
        }
        self.counts.bloated += 1;
        [action[0].min(0.0), action[1].min(most)]
    }

    /// A window that is not used must not grow.
    fn limit_unused(&mut self) {
        let limit = UNUSED.0 * self.found_max.value() + UNUSED.1;
        if self.cwnd > limit {
            self.counts.unused += 1;
            self.set(limit);
        }
    }
}

/// The power of two, halved, that the second value of an action applies.
fn effect(value: f64) -> f64 {
    FACTOR_TERMS.0 * value + FACTOR_TERMS.1 * value * value * value
}

/// Jitter beyond the time in which the flow sends so many packets at best, ns; 0 without.
fn jitter_beyond(packets: f64, interval: &Interval) -> f64 {
    (interval.jitter.0 as f64 - packets * 1e9 / interval.delivery_max_pps.max(1.0)).max(0.0)
}

/// Whether jitter hides the queue from a policy whose action would leave a shorter one than the law does.
pub fn is_misled_by_jitter(interval: &Interval, action: [f64; 2]) -> bool {
    let octaves = TARGET_OCTAVES * action[0] + FACTOR_OCTAVES * effect(action[1]);
    octaves < 0.0 && jitter_beyond(JITTER_HIDES, interval) > 0.0
}

/// Whether acknowledgements stayed away for round trips.
fn is_silent(interval: &Interval) -> bool {
    let expected = interval.srtt.max(INTERVAL_MIN) + interval.srtt * SILENT_RTTS;
    interval.duration > expected
}

#[cfg(test)]
#[path = "tests/law.rs"]
mod tests;
