//! BBR, version 1, as Linux has it (`net/ipv4/tcp_bbr.c`; Cardwell et al., "BBR: Congestion-Based
//! Congestion Control", ACM Queue 2016): paces at the largest recent delivery rate and keeps about twice
//! the bandwidth-delay product in flight. It does not answer loss, but for a policer.
//!
//! Rounds are told by the time at which a packet was sent, which is what Linux's count of delivered
//! packets at that time stands for. Linux knows of packets that wait in the host for their departure
//! time; here none do.
use crate::control::{Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::controllers::shared::bbr::{EXTRA_TIME_S, may_be_delayed};
use crate::controllers::shared::own_limit::OwnLimit;
use crate::params::{Param, ParamKind, Params};
use crate::rng::Rng;
use crate::sensing::windowed_max::WindowedMax;
use crate::units::{Bytes, Rate, Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "bbr1",
    about: "paces at the largest recent delivery rate, with two bandwidth-delay products in flight",
    source: "Linux tcp_bbr.c; Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
    params: &[Param {
        name: "policer",
        about: "`on`: after two intervals of the same rate with more than 20 % loss, that rate is kept \
                for 48 rounds (source: Linux)",
        kind: ParamKind::Choice(&["on", "off"]),
    }],
    build: |flow, params| Box::new(Bbr1::new(flow, params)),
};

/// Gain of start-up, 2/ln 2 (source, as its 739/256).
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// Its inverse drains in a round what start-up has queued (source, 88/256).
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// Gain of the window in steady state (source).
const CWND_GAIN: f64 = 2.0;
/// Pacing gains of a cycle: probe, drain, cruise (source).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Rounds for which a bandwidth sample counts (source).
const BANDWIDTH_ROUNDS: u64 = 10;
/// Time for which a round-trip sample counts (source).
const MIN_RTT_WINDOW: Span = Span::from_millis(10_000);
/// Time at the smallest window (source).
const PROBE_RTT_TIME: Span = Span::from_millis(200);
/// Smallest window, packets (source).
const CWND_MIN: f64 = 4.0;
/// Growth that shows that the pipe is not full, and rounds without it that show that it is (source).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The pacing rate is so much of the bandwidth (source).
const MARGIN: f64 = 0.99;
/// Round trip that is assumed before the first sample (source).
const NOMINAL_RTT: Span = Span::from_millis(1);
/// Rounds for which excess acknowledgements count, twice (source).
const EXTRA_ROUNDS: u32 = 5;

/// What it does at present.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth { phase: usize, since: Time },
    ProbeRtt { done: Option<Time>, round_passed: bool },
}

/// Congestion state of the transport, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repair {
    None,
    /// Fast recovery; in its first round what leaves is what was delivered.
    Fast {
        conserving: bool,
    },
    /// After a time-out, until so many packets are delivered: then what was lost has been repaired.
    Timeout(f64),
}

/// Whether start-up has filled the pipe.
#[derive(Clone, Copy, Debug, Default)]
struct PipeSearch {
    /// Bandwidth of the last round that grew, packets per second.
    bandwidth: f64,
    /// Rounds since.
    count: u32,
    full: bool,
}

/// Acknowledgements beyond what the bandwidth explains.
#[derive(Clone, Copy, Debug, Default)]
struct Extra {
    epoch: Time,
    acked: f64,
    /// Largest of the present and of the previous rounds, packets.
    max: [f64; 2],
    index: usize,
    rounds: u32,
}

/// Looks for a token-bucket policer: intervals of loss in which the same rate was delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Policer {
    /// The rate to keep, packets per second, while a policer is assumed.
    rate: Option<f64>,
    /// Of the previous interval; 0 before.
    previous: f64,
    /// An interval is open, since the first loss.
    sampling: bool,
    since: Time,
    delivered_before: f64,
    /// Lost in the interval, packets.
    lost: f64,
    rounds: u32,
    detections: u32,
}

impl Policer {
    /// Rounds of an interval at least, and at most four times as many (source).
    const ROUNDS_MIN: u32 = 4;
    /// Of what is delivered, so much is lost in an interval of a policer (source, 50/256).
    const LOSS_MIN: f64 = 50.0 / 256.0;
    /// Two rates are the same up to an eighth, or to 4 kb/s (source).
    const SAME_RATIO: f64 = 1.0 / 8.0;
    const SAME_BITS_PER_S: f64 = 4000.0;
    /// Rounds for which the rate is kept (source).
    const KEEP_ROUNDS: u32 = 48;

    fn restarted(&self, now: Time, delivered: f64) -> Self {
        let fresh = Self { detections: self.detections, ..Self::default() };
        fresh.at(now, delivered)
    }

    /// With a new interval that begins now.
    fn at(self, now: Time, delivered: f64) -> Self {
        Self { since: now, delivered_before: delivered, lost: 0.0, rounds: 0, ..self }
    }

    /// A round passed under the rate that is kept; whether it was the last.
    fn keep_is_over(&mut self) -> bool {
        self.rounds += 1;
        self.rounds >= Self::KEEP_ROUNDS
    }

    /// An interval begins with a loss, and ends with one after four rounds of more than a fifth of loss.
    fn measure(&mut self, sample: &Sample, round_started: bool, delivered: f64, packet: f64) {
        let now = sample.now;
        if !self.sampling {
            if sample.lost > 0.0 {
                *self = Self { sampling: true, ..self.at(now, delivered) };
            } else {
                return;
            }
        }
        if sample.app_limited {
            *self = self.restarted(now, delivered);
            return;
        }
        self.rounds += u32::from(round_started);
        if self.rounds < Self::ROUNDS_MIN {
            return;
        }
        if self.rounds > 4 * Self::ROUNDS_MIN {
            *self = self.restarted(now, delivered);
            return;
        }
        let carried = delivered - self.delivered_before;
        let lossy = carried > 0.0 && self.lost >= Self::LOSS_MIN * carried;
        let elapsed = now.since(self.since);
        if sample.lost > 0.0 && lossy && elapsed >= Span::from_millis(1) {
            let rate = carried / elapsed.as_secs_f64();
            self.close(rate, now, delivered, packet);
        }
    }

    fn close(&mut self, rate: f64, now: Time, delivered: f64, packet: f64) {
        let apart = (rate - self.previous).abs();
        let same = apart <= Self::SAME_RATIO * self.previous
            || apart * packet * 8.0 <= Self::SAME_BITS_PER_S;
        if self.previous > 0.0 && same {
            self.previous = rate.midpoint(self.previous);
            self.rate = Some(self.previous);
            self.rounds = 0;
            self.detections += 1;
            return;
        }
        *self = Self { previous: rate, ..self.at(now, delivered) };
    }
}

/// One acknowledgement, in packets.
#[derive(Clone, Copy, Debug)]
struct Sample {
    now: Time,
    acked: f64,
    lost: f64,
    inflight: f64,
    prior_inflight: f64,
    /// Packets per second; `None` without a valid sample.
    rate: Option<f64>,
    app_limited: bool,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Bbr1 {
    /// Bytes of a packet.
    packet: f64,
    initial_cwnd: f64,
    rng: Rng,
    mode: Mode,
    cwnd: f64,
    /// Packets per second.
    pacing: f64,
    ssthresh: f64,
    bandwidth: WindowedMax,
    rounds: u64,
    /// A packet sent now or later ends the round.
    round_from: Time,
    round_started: bool,
    min_rtt: Span,
    min_rtt_at: Time,
    seen_rtt: bool,
    pipe: PipeSearch,
    repair: Repair,
    cwnd_before: f64,
    /// Declared lost since the last acknowledgement, packets.
    lost: f64,
    /// What the last acknowledgement found in flight, without what it showed to be lost, packets.
    found: f64,
    delivered: f64,
    /// After idling, until something is delivered.
    restarting: bool,
    /// Packets sent in a round-trip probe do not measure the path.
    limit: OwnLimit,
    extra: Extra,
    policer: Option<Policer>,
}

impl Bbr1 {
    /// Starts in start-up, paced as if the round trip were 1 ms.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let packet = flow.mss.0.max(1) as f64;
        let initial_cwnd = (flow.initial_cwnd.0.min(CWND_MAX.0) as f64 / packet).max(1.0);
        let on = params.choice("policer") == "on";
        Self {
            packet,
            initial_cwnd,
            rng: Rng::new(flow.seed),
            mode: Mode::Startup,
            cwnd: initial_cwnd,
            pacing: HIGH_GAIN * MARGIN * initial_cwnd / NOMINAL_RTT.as_secs_f64(),
            ssthresh: f64::INFINITY,
            bandwidth: WindowedMax::new(BANDWIDTH_ROUNDS),
            rounds: 0,
            round_from: flow.start,
            round_started: false,
            min_rtt: Span::MAX,
            min_rtt_at: flow.start,
            seen_rtt: false,
            pipe: PipeSearch::default(),
            repair: Repair::None,
            cwnd_before: 0.0,
            lost: 0.0,
            found: 0.0,
            delivered: 0.0,
            restarting: false,
            limit: OwnLimit::default(),
            extra: Extra { epoch: flow.start, ..Extra::default() },
            policer: on.then(Policer::default),
        }
    }

    /// The estimate in use, packets per second.
    fn rate(&self) -> f64 {
        let policed = self.policer.as_ref().and_then(|policer| policer.rate);
        policed.unwrap_or_else(|| self.bandwidth.value())
    }

    fn gains(&self) -> (f64, f64) {
        let policed = self.policer.as_ref().is_some_and(|policer| policer.rate.is_some());
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth { .. } if policed => (1.0, CWND_GAIN),
            Mode::ProbeBandwidth { phase, .. } => (CYCLE[phase], CWND_GAIN),
            Mode::ProbeRtt { .. } => (1.0, 1.0),
        }
    }

    fn bdp(&self, rate: f64, gain: f64) -> f64 {
        if self.min_rtt == Span::MAX {
            return self.initial_cwnd;
        }
        libm::ceil(rate * self.min_rtt.as_secs_f64() * gain)
    }

    /// What a host sends as one unit: a millisecond at the pacing rate, at least one or two packets.
    fn burst(&self) -> f64 {
        let slow = self.pacing * self.packet * 8.0 < 1.2e6;
        libm::floor(self.pacing / 1024.0).clamp(if slow { 1.0 } else { 2.0 }, 127.0)
    }

    /// Adds what end hosts hold, to an even number.
    fn with_budget(&self, packets: f64) -> f64 {
        let even = 2.0 * libm::ceil(packets.midpoint(3.0 * self.burst()));
        let probes = matches!(self.mode, Mode::ProbeBandwidth { phase: 0, .. });
        if probes { even + 2.0 } else { even }
    }

    fn inflight_for(&self, rate: f64, gain: f64) -> f64 {
        self.with_budget(self.bdp(rate, gain))
    }

    fn sample(&mut self, ack: &Ack) -> Sample {
        let packets = |bytes: Bytes| bytes.0 as f64 / self.packet;
        let rate = ack.delivery_rate.0 as f64 / (8.0 * self.packet);
        let sample = Sample {
            now: ack.now,
            acked: packets(ack.acked),
            lost: self.lost,
            inflight: packets(ack.inflight),
            prior_inflight: packets(ack.prior_inflight),
            rate: (rate > 0.0).then_some(rate),
            app_limited: ack.app_limited == 1 || self.limit.covers(ack.sent_at),
        };
        self.lost = 0.0;
        self.found = sample.prior_inflight;
        self.delivered += sample.acked;
        self.limit.on_delivered(ack.now, self.delivered);
        sample
    }

    fn update_bandwidth(&mut self, ack: &Ack, sample: &Sample) {
        self.round_started = false;
        let Some(rate) = sample.rate else { return };
        if ack.sent_at >= self.round_from {
            self.round_from = sample.now;
            self.rounds += 1;
            self.round_started = true;
            if let Repair::Fast { conserving } = &mut self.repair {
                *conserving = false;
            }
        }
        self.update_policer(sample);
        if !sample.app_limited || rate >= self.bandwidth.value() {
            self.bandwidth.sample(self.rounds, rate);
        }
    }

    fn update_policer(&mut self, sample: &Sample) {
        let cycling = matches!(self.mode, Mode::ProbeBandwidth { .. });
        let Some(policer) = &mut self.policer else { return };
        policer.lost += sample.lost;
        if policer.rate.is_some() {
            if cycling && self.round_started && policer.keep_is_over() {
                *policer = policer.restarted(sample.now, self.delivered);
                self.enter_probe_bandwidth(sample.now);
            }
            return;
        }
        policer.measure(sample, self.round_started, self.delivered, self.packet);
    }

    /// The largest number of packets delivered beyond what the bandwidth explains, over five to ten
    /// rounds.
    fn update_extra(&mut self, sample: &Sample) {
        if sample.rate.is_none() || sample.acked <= 0.0 {
            return;
        }
        let rate = self.rate();
        let extra = &mut self.extra;
        if self.round_started {
            extra.rounds += 1;
            if extra.rounds >= EXTRA_ROUNDS {
                extra.rounds = 0;
                extra.index = 1 - extra.index;
                extra.max[extra.index] = 0.0;
            }
        }
        let mut expected = rate * sample.now.since(extra.epoch).as_secs_f64();
        if extra.acked <= expected || extra.acked + sample.acked >= f64::from(1 << 20) {
            extra.acked = 0.0;
            extra.epoch = sample.now;
            expected = 0.0;
        }
        extra.acked += sample.acked;
        let excess = (extra.acked - libm::floor(expected)).min(self.cwnd);
        extra.max[extra.index] = extra.max[extra.index].max(excess);
    }

    fn extra_cwnd(&self) -> f64 {
        if !self.pipe.full {
            return 0.0;
        }
        let [first, second] = self.extra.max;
        libm::floor(first.max(second).min(self.rate() * EXTRA_TIME_S))
    }

    /// Probing lasts until the queue shows it or packets are lost; draining ends as soon as the queue is
    /// gone; the others last a round trip.
    fn update_cycle(&mut self, sample: &Sample) {
        let Mode::ProbeBandwidth { phase, since } = self.mode else { return };
        let full_length = sample.now.since(since) > self.min_rtt;
        let (gain, _) = self.gains();
        let rate = self.bandwidth.value();
        let over = if gain > 1.0 {
            let found = sample.prior_inflight + self.burst();
            full_length && (sample.lost > 0.0 || found >= self.inflight_for(rate, gain))
        } else if gain < 1.0 {
            full_length || sample.prior_inflight <= self.inflight_for(rate, 1.0)
        } else {
            full_length
        };
        if over {
            let phase = (phase + 1) % CYCLE.len();
            self.mode = Mode::ProbeBandwidth { phase, since: sample.now };
        }
    }

    fn check_full(&mut self, sample: &Sample) {
        if self.pipe.full || !self.round_started || sample.app_limited {
            return;
        }
        let rate = self.bandwidth.value();
        if rate >= self.pipe.bandwidth * FULL_GROWTH {
            self.pipe.bandwidth = rate;
            self.pipe.count = 0;
            return;
        }
        self.pipe.count += 1;
        self.pipe.full = self.pipe.count >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, sample: &Sample) {
        let target = self.inflight_for(self.bandwidth.value(), 1.0);
        if self.mode == Mode::Startup && self.pipe.full {
            self.mode = Mode::Drain;
            self.ssthresh = target;
        }
        if self.mode == Mode::Drain && sample.inflight <= target {
            self.enter_probe_bandwidth(sample.now);
        }
    }

    /// In a phase by chance, not the one that drains.
    fn enter_probe_bandwidth(&mut self, now: Time) {
        let last = CYCLE.len() as u64 - 1;
        let phase = (last - self.rng.below(last) + 1) as usize % CYCLE.len();
        self.mode = Mode::ProbeBandwidth { phase, since: now };
    }

    fn update_min_rtt(&mut self, ack: &Ack, sample: &Sample) {
        let expired = sample.now.since(self.min_rtt_at) > MIN_RTT_WINDOW;
        let replaces = expired && !may_be_delayed(ack, self.packet);
        // As large a sample postpones no probe (source, since version 5.10).
        let rtt = ack.smallest_rtt();
        if rtt > Span::ZERO && (rtt < self.min_rtt || replaces) {
            self.min_rtt = rtt;
            self.min_rtt_at = sample.now;
        }
        if expired && !self.restarting && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.remember_cwnd();
            self.mode = Mode::ProbeRtt { done: None, round_passed: false };
            self.limit.begin(sample.now);
        }
        if let Mode::ProbeRtt { done, round_passed } = self.mode {
            self.limit.extend(self.delivered + sample.inflight);
            self.probe_rtt(sample, done, round_passed);
        }
        if sample.acked > 0.0 {
            self.restarting = false;
        }
    }

    fn probe_rtt(&mut self, sample: &Sample, done: Option<Time>, round_passed: bool) {
        let Some(at) = done else {
            if sample.inflight <= CWND_MIN {
                let done = Some(sample.now + PROBE_RTT_TIME);
                self.mode = Mode::ProbeRtt { done, round_passed: false };
                self.round_from = sample.now;
            }
            return;
        };
        let round_passed = round_passed || self.round_started;
        self.mode = Mode::ProbeRtt { done, round_passed };
        if round_passed {
            self.end_probe_rtt(sample.now, at);
        }
    }

    fn end_probe_rtt(&mut self, now: Time, done: Time) {
        if now <= done {
            return;
        }
        self.min_rtt_at = now;
        self.cwnd = self.cwnd.max(self.cwnd_before);
        if self.pipe.full {
            self.enter_probe_bandwidth(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn remember_cwnd(&mut self) {
        let is_good = self.repair == Repair::None && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.cwnd_before = if is_good { self.cwnd } else { self.cwnd_before.max(self.cwnd) };
    }

    fn set_pacing(&mut self, ack: &Ack, gain: f64) {
        if !self.seen_rtt && ack.srtt > Span::ZERO {
            self.seen_rtt = true;
            self.pacing = HIGH_GAIN * MARGIN * self.cwnd / ack.srtt.as_secs_f64();
        }
        let rate = self.rate() * gain * MARGIN;
        if (self.pipe.full && rate > 0.0) || rate > self.pacing {
            self.pacing = rate;
        }
    }

    /// Whether this is the first round of a recovery, in which only losses change the window.
    fn conserves(&mut self, ack: &Ack) -> bool {
        match self.repair {
            Repair::Fast { .. } if ack.recovering == 0 => self.end_repair(),
            Repair::Timeout(until) if ack.recovering == 0 && self.delivered >= until => {
                self.end_repair();
            }
            _ => {}
        }
        self.repair == Repair::Fast { conserving: true }
    }

    /// A recovery begins with what is in flight, and takes each later loss off at once: the
    /// retransmission is all that leaves for it.
    fn enter_recovery(&mut self, now: Time) {
        self.remember_cwnd();
        self.repair = Repair::Fast { conserving: true };
        self.round_from = now;
        self.cwnd = self.found;
    }

    fn end_repair(&mut self) {
        self.repair = Repair::None;
        self.cwnd = self.cwnd.max(self.cwnd_before);
    }

    fn set_cwnd(&mut self, ack: &Ack, sample: &Sample, gain: f64) {
        if sample.acked > 0.0 && !self.conserves(ack) {
            let target = self.with_budget(self.bdp(self.rate(), gain) + self.extra_cwnd());
            if self.pipe.full {
                self.cwnd = (self.cwnd + sample.acked).min(target);
            } else if self.cwnd < target || self.delivered < self.initial_cwnd {
                self.cwnd += sample.acked;
            }
            self.cwnd = self.cwnd.max(CWND_MIN);
        }
        self.bound_cwnd();
    }

    fn bound_cwnd(&mut self) {
        self.cwnd = self.cwnd.clamp(1.0, CWND_MAX.0 as f64 / self.packet);
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(CWND_MIN);
        }
    }
}

impl Controller for Bbr1 {
    fn on_ack(&mut self, ack: &Ack) {
        let sample = self.sample(ack);
        self.update_bandwidth(ack, &sample);
        self.update_extra(&sample);
        self.update_cycle(&sample);
        self.check_full(&sample);
        self.check_drain(&sample);
        self.update_min_rtt(ack, &sample);
        let (pacing_gain, cwnd_gain) = self.gains();
        self.set_pacing(ack, pacing_gain);
        self.set_cwnd(ack, &sample, cwnd_gain);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let lost = loss.lost.0 as f64 / self.packet;
        self.lost += lost;
        match loss.kind {
            LossKind::Gap => self.enter_recovery(loss.now),
            LossKind::Timeout | LossKind::TimeoutAgain => {
                self.remember_cwnd();
                // Another time-out of the same packet adds no loss; what the first one lost is still to come.
                let until = if let Repair::Timeout(until) = self.repair { until } else { 0.0 };
                self.repair = Repair::Timeout(until.max(self.delivered + lost));
                self.pipe.bandwidth = 0.0;
                self.cwnd = 1.0;
                self.restarting = true;
            }
            LossKind::Spurious => {
                // Linux is in its open state then, and the next acknowledgement gives the window back.
                self.lost = 0.0;
                self.end_repair();
                self.pipe.bandwidth = 0.0;
                self.pipe.count = 0;
                if let Some(policer) = &mut self.policer {
                    *policer = policer.restarted(loss.now, self.delivered);
                }
            }
            LossKind::Idle => {
                self.restarting = true;
                self.extra = Extra { epoch: loss.now, acked: 0.0, ..self.extra };
                if let Mode::ProbeRtt { done: Some(done), .. } = self.mode {
                    self.end_probe_rtt(loss.now, done);
                }
            }
            LossKind::More => {
                self.cwnd -= lost;
                if let Repair::Timeout(until) = &mut self.repair {
                    *until += lost;
                }
            }
            LossKind::Deflate => {}
        }
        self.bound_cwnd();
    }

    fn control(&self) -> Control {
        let bits = self.pacing * self.packet * 8.0;
        let ssthresh = self.ssthresh * self.packet;
        Control {
            cwnd: Bytes((self.cwnd * self.packet) as u64),
            pacing_rate: Rate((bits as u64).clamp(1, Rate::UNLIMITED.0 - 1)),
            ssthresh: Bytes(ssthresh as u64),
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        let policed = self.policer.as_ref().map_or(0, |policer| policer.detections);
        vec![("policed", f64::from(policed))]
    }
}

#[cfg(test)]
#[path = "tests/bbr1.rs"]
mod tests;
