//! The common part of the PCC family (Dong et al., NSDI 2015 and NSDI 2018): a sender that paces at the rate
//! of the present monitor interval, hands each interval's outcome to a [`Rule`], and asks it for the
//! next. A rule turns outcomes into utilities and utilities into rates.
//!
//! Decided here, because no paper of the family says it (proposed):
//!
//! - the window does not limit: twice what the rule's rate fills in a round trip and ten packets, so
//!   that a flow that loses its ACK clock stays bounded;
//! - an idle restart and a long silence void the open intervals, whose packets' fate says nothing
//!   about their rates; a retransmission time-out does so only if the rule answers it with
//!   [`Schedule::Change`], else the open intervals take it in as losses;
//! - no rate exceeds twice the largest rate at which the flow was delivered in ten seconds, and a burst: an outcome
//!   speaks of what was sent, and a source that pauses sends less than the interval's rate;
//! - a round trip that loses more than it delivers halves the rate: in a buffer of a few packets the slope of the
//!   round trip is noise that can hide from a utility what is lost.
use crate::control::{Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, LossKind};
use crate::rng::{Rng, Seed};
use crate::sensing::delivered::{Count, most_bps};
use crate::sensing::monitor_interval::{Monitor, Report};
use crate::sensing::overload::Overload;
use crate::units::{Bytes, Rate, Span, Time};

/// Round-trip time assumed before the first sample (source: the QUIC stack of Zhang, learningcc).
const INITIAL_RTT_S: f64 = 0.1;
/// Silence after which a flow counts as idle, besides two round trips: the longest delay of an
/// acknowledgement (RFC 5681 section 4.2).
const SILENCE: Span = Span::from_millis(500);
/// No rate is higher: a terabit per second.
const RATE_MAX_BPS: f64 = 1e12;
/// No rate is lower, whatever a rule's own floor: a kilobit per second.
const RATE_MIN_BPS: f64 = 1e3;
/// Part of a burst that may be lost before the next burst starts at half the rate: a burst that ends before its rates
/// are compared never lowers a rate that is too high (proposed; twice what Allegro's utility tolerates).
const BURST_LOSS: f64 = 0.1;
/// Intervals of the start whose outcome may be open: beyond, the rate is not doubled (proposed).
const OPEN_INTERVALS: u32 = 2;

/// What a rule may know of the path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Smoothed round-trip time, seconds; `INITIAL_RTT_S` before the first sample.
    pub srtt_s: f64,
    /// Smallest round-trip time, seconds; likewise.
    pub min_rtt_s: f64,
    /// A full packet, bits.
    pub packet_bits: f64,
    /// Window to start with (RFC 6928), packets.
    pub initial_packets: f64,
    /// Largest rate of delivery of ten seconds, bits per second.
    pub delivered_bps: f64,
}

impl Path {
    /// The rate of `packets` in a smoothed round trip, bits per second.
    pub fn packets_per_rtt_bps(&self, packets: f64) -> f64 {
        packets * self.packet_bits / self.srtt_s
    }

    /// The rate, but not below `floor` packets in a round trip and not above twice the largest rate of delivery and a
    /// burst, at most a terabit per second.
    pub fn bounded_bps(&self, rate_bps: f64, floor: f64) -> f64 {
        let most_bps =
            most_bps(self.delivered_bps, self.initial_packets, self.packet_bits, self.srtt_s)
                .clamp(RATE_MIN_BPS, RATE_MAX_BPS);
        rate_bps.max(self.packets_per_rtt_bps(floor)).clamp(RATE_MIN_BPS, most_bps)
    }
}

/// The next interval.
#[derive(Clone, Copy, Debug)]
pub struct Plan<P> {
    /// Sending rate, bits per second.
    pub rate_bps: f64,
    /// How long, seconds.
    pub duration_s: f64,
    /// What its report is for; `None` while the rule only waits for reports.
    pub purpose: Option<P>,
}

/// Whether a rule goes on with what it planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// The present interval runs to its end.
    Keep,
    /// The rule changed its rate: the present interval ends, and no open one is reported.
    Change,
}

/// How a member of the family chooses rates.
pub trait Rule: Send {
    /// What a report is for.
    type Purpose: Copy + Send;

    /// The first round-trip sample came: the rate to start with can be told.
    fn begin(&mut self, path: &Path);
    /// The next interval.
    fn plan(&mut self, path: &Path, rng: &mut Rng) -> Plan<Self::Purpose>;
    /// An interval's fate is known. Reports come in the order of the plans.
    fn judge(&mut self, path: &Path, purpose: Self::Purpose, report: &Report) -> Schedule;
    /// The open intervals are void: what is under way starts over at the same rate.
    fn restart(&mut self);
    /// The retransmission timer expired: with [`Schedule::Change`] the open intervals are void, else
    /// they go on.
    fn on_timeout(&mut self, path: &Path) -> Schedule;
    /// Halves the rate, and compares rates from there.
    fn halve(&mut self, path: &Path);
    /// The rate around which intervals differ, bits per second.
    fn rate_bps(&self) -> f64;
    /// A look at each acknowledgement; `srtt_at_start_s` is the smoothed round-trip time when the
    /// present interval's first packet was acknowledged, seconds, 0 before.
    fn watch(&mut self, _ack: &Ack, _srtt_at_start_s: f64) -> Schedule {
        Schedule::Keep
    }
    /// See [`Controller::counters`].
    fn counters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// A flow that sends in monitor intervals.
pub struct Pcc<R: Rule> {
    rule: R,
    monitor: Monitor<R::Purpose>,
    path: Path,
    count: Count,
    overload: Overload,
    /// The round trip in which losses of the rate before the latest half are found.
    halved: bool,
    sampled: bool,
    rng: Rng,
    /// When the last acknowledgement came.
    last_ack: Time,
    /// Nothing comes back: no interval is planned before the next acknowledgement.
    asleep: bool,
}

impl<R: Rule> Pcc<R> {
    /// Begins to send when the flow does.
    pub fn new(flow: &FlowInfo, mut rule: R) -> Self {
        let mss = flow.mss.0.max(1) as f64;
        let path = Path {
            srtt_s: INITIAL_RTT_S,
            min_rtt_s: INITIAL_RTT_S,
            packet_bits: mss * 8.0,
            initial_packets: (flow.initial_cwnd.0 as f64 / mss).clamp(1.0, 1e6),
            delivered_bps: 0.0,
        };
        rule.begin(&path);
        let mut pcc = Self {
            rule,
            monitor: Monitor::new(flow.mss, flow.start),
            path,
            count: Count::new(flow.start),
            overload: Overload::new(flow.start),
            halved: false,
            sampled: false,
            rng: Seed(flow.seed).stream("pcc", 0),
            last_ack: flow.start,
            asleep: false,
        };
        pcc.next_interval(flow.start);
        pcc
    }

    fn next_interval(&mut self, now: Time) {
        let plan = self.rule.plan(&self.path, &mut self.rng);
        let rate_bps = self.path.bounded_bps(plan.rate_bps, 0.0);
        let duration = Span::from_secs_f64(plan.duration_s.max(1e-6));
        self.monitor.begin(now, rate_bps, duration, plan.purpose);
    }

    fn follow(&mut self, schedule: Schedule, now: Time) {
        if schedule == Schedule::Change {
            self.monitor.forget();
            self.next_interval(now);
        }
    }

    fn start_over(&mut self, now: Time) {
        self.asleep = false;
        self.monitor.clear();
        self.rule.restart();
        self.next_interval(now);
    }

    /// All that was sent is delivered or lost by now, although the intervals say nothing about their rates.
    fn start_after_silence(&mut self, now: Time) {
        if self.monitor.open_loss_ratio() > BURST_LOSS {
            self.rule.halve(&self.path);
        }
        self.start_over(now);
    }

    fn take_samples(&mut self, ack: &Ack) {
        self.path.delivered_bps = self.count.add(ack, self.path.srtt_s);
        if ack.srtt == Span::ZERO {
            return;
        }
        self.path.srtt_s = ack.srtt.as_secs_f64();
        let min_rtt = if ack.min_rtt == Span::ZERO { ack.srtt } else { ack.min_rtt };
        self.path.min_rtt_s = min_rtt.as_secs_f64();
        if !self.sampled {
            self.sampled = true;
            self.rule.begin(&self.path);
            self.monitor.forget();
            self.next_interval(ack.now);
        }
    }

    fn answer_overload(&mut self, ack: &Ack) {
        let Some(round) = self.overload.on_ack(ack) else { return };
        self.halved = round.is_overload() && !self.halved;
        if self.halved {
            self.rule.halve(&self.path);
            self.follow(Schedule::Change, ack.now);
        }
    }

    fn judge_complete(&mut self, now: Time) {
        while let Some((purpose, report)) = self.monitor.take() {
            let schedule = self.rule.judge(&self.path, purpose, &report);
            self.follow(schedule, now);
        }
    }

    fn end_interval(&mut self, now: Time) {
        if self.asleep || now < self.monitor.end() {
            return;
        }
        let patience = SILENCE + Span::from_secs_f64(2.0 * self.path.srtt_s);
        if now.since(self.last_ack) > patience {
            self.asleep = true;
        } else {
            self.next_interval(now);
        }
    }
}

impl<R: Rule> Controller for Pcc<R> {
    fn on_ack(&mut self, ack: &Ack) {
        self.last_ack = ack.now;
        if self.asleep {
            self.start_after_silence(ack.now);
        }
        self.take_samples(ack);
        self.judge_complete(ack.now);
        self.monitor.on_ack(ack);
        let schedule = self.rule.watch(ack, self.monitor.srtt_at_start_s());
        self.follow(schedule, ack.now);
        self.answer_overload(ack);
        self.end_interval(ack.now);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.overload.on_loss(loss);
        match loss.kind {
            LossKind::Gap | LossKind::More => self.monitor.on_loss(loss),
            LossKind::Timeout | LossKind::TimeoutAgain => {
                self.monitor.on_loss(loss);
                self.overload.forgive();
                if self.rule.on_timeout(&self.path) == Schedule::Change {
                    self.start_over(loss.now);
                }
            }
            LossKind::Idle => self.start_after_silence(loss.now),
            LossKind::Spurious => self.overload.forgive(),
            LossKind::Deflate => {}
        }
        self.judge_complete(loss.now);
    }

    fn on_timer(&mut self, now: Time) {
        self.judge_complete(now);
        self.end_interval(now);
    }

    fn next_timer(&self) -> Option<Time> {
        (!self.asleep).then(|| self.monitor.end())
    }

    fn control(&self) -> Control {
        let pipe_bits = self.rule.rate_bps() * self.path.srtt_s;
        let cwnd = (2.0 * pipe_bits + 10.0 * self.path.packet_bits) / 8.0;
        Control {
            cwnd: Bytes(cwnd.min(CWND_MAX.0 as f64) as u64),
            pacing_rate: Rate(self.monitor.rate_bps().unwrap_or(RATE_MIN_BPS) as u64),
            ssthresh: Bytes(u64::MAX),
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.rule.counters()
    }
}

/// How often rates around the present one were compared, of a rule's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// Rounds whose pairs agreed on a way.
    pub decided: u64,
    /// Rounds whose pairs did not, or that the sender could not fill.
    pub undecided: u64,
}

impl Rounds {
    /// See [`Controller::counters`].
    pub fn counters(self) -> Vec<(&'static str, f64)> {
        vec![("decisions", self.decided as f64), ("undecided_rounds", self.undecided as f64)]
    }
}

/// Faster or slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Faster.
    Up,
    /// Slower.
    Down,
}

impl Way {
    /// 1 or -1.
    pub fn sign(self) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::Down => -1.0,
        }
    }
}

/// The start of Allegro and Vivace: every interval is twice as fast as the one before, until one is
/// worse. Its outcome is known about a round trip after it ends, so one more is under way by then.
#[derive(Clone, Debug, Default)]
pub struct Doubling {
    begun: bool,
    /// Intervals that are not judged.
    open: u32,
    /// The last interval said nothing: the rate stays until one does.
    held: bool,
    /// The last judged interval's rate, bits per second, and utility.
    best: Option<(f64, f64)>,
}

/// What an interval of the start leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubled {
    /// It was better.
    Better,
    /// It said nothing: go on at this rate, bits per second.
    Repeat(f64),
    /// It was worse: the start is over, and this rate was better, bits per second.
    Over(f64),
}

impl Doubling {
    /// Begins at a rate that an interval must show to be good before it doubles.
    pub fn held() -> Self {
        Self { held: true, ..Self::default() }
    }

    /// The open intervals are void: the rate stays until an interval is judged, and the best one counts on.
    pub fn restart(&mut self) {
        (self.open, self.held) = (0, true);
    }

    /// By what the rate is to be multiplied for the next interval; `None` while as many as may be
    /// `OPEN_INTERVALS` are not judged.
    pub fn factor(&mut self) -> Option<f64> {
        if self.open >= OPEN_INTERVALS {
            return None;
        }
        let factor = if self.begun && !self.held { 2.0 } else { 1.0 };
        self.begun = true;
        self.open += 1;
        Some(factor)
    }

    /// Takes the outcome of the oldest open interval.
    pub fn judge(&mut self, report: &Report, utility: f64) -> Doubled {
        if !report.usable {
            self.restart();
            return Doubled::Repeat(report.rate_bps);
        }
        self.open = self.open.saturating_sub(1);
        self.held = false;
        match self.best {
            Some((before_bps, before)) if utility <= before => Doubled::Over(before_bps),
            _ => {
                self.best = Some((report.rate_bps, utility));
                Doubled::Better
            }
        }
    }
}

/// Four intervals in two pairs, each pair at a higher and a lower rate in random order: a comparison
/// that noise decides comes out differently in the two.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// Whether each pair's first interval is the faster one.
    up_first: [bool; 2],
    planned: usize,
    utilities: [f64; 4],
    judged: usize,
}

impl Pairs {
    /// Draws the order.
    pub fn new(rng: &mut Rng) -> Self {
        let up_first = [rng.chance(0.5), rng.chance(0.5)];
        Self { up_first, planned: 0, utilities: [0.0; 4], judged: 0 }
    }

    /// Which way the next interval's rate differs; `None` once all four are sent.
    pub fn way(&mut self) -> Option<Way> {
        let way = (self.planned < 4).then(|| self.way_of(self.planned))?;
        self.planned += 1;
        Some(way)
    }

    fn way_of(&self, index: usize) -> Way {
        if self.up_first[index / 2] == index.is_multiple_of(2) { Way::Up } else { Way::Down }
    }

    /// Takes the next interval's utility; whether all four are in.
    pub fn record(&mut self, utility: f64) -> bool {
        self.utilities[self.judged.min(3)] = utility;
        self.judged += 1;
        self.judged >= 4
    }

    /// By how much the faster interval of a pair was better than the slower one.
    pub fn advantage(&self, pair: usize) -> f64 {
        let [first, second] = [self.utilities[2 * pair], self.utilities[2 * pair + 1]];
        self.way_of(2 * pair).sign() * (first - second)
    }

    /// The way that was better in both pairs.
    pub fn agreed(&self) -> Option<Way> {
        match (self.advantage(0), self.advantage(1)) {
            (first, second) if first > 0.0 && second > 0.0 => Some(Way::Up),
            (first, second) if first < 0.0 && second < 0.0 => Some(Way::Down),
            _ => None,
        }
    }

    /// Mean utility of the two intervals on one side.
    pub fn mean_of(&self, way: Way) -> f64 {
        let side = (0..4).filter(|index| self.way_of(*index) == way);
        side.map(|index| self.utilities[index]).sum::<f64>() / 2.0
    }

    /// The better utility of the last pair.
    pub fn last_best(&self) -> f64 {
        self.utilities[2].max(self.utilities[3])
    }
}

#[cfg(test)]
#[path = "tests/pcc.rs"]
mod tests;
