//! BBR, version 3 (draft-ietf-ccwg-bbr, repository head of August 2026): paces at the largest recent delivery
//! rate, keeps about two bandwidth-delay products in flight, and answers loss by bounds on both.
//!
//! Rounds are told by the time at which a packet was sent, which is what the draft's count of delivered
//! data at that time stands for. A record may stand for several packets: one of lost packets counts as
//! one of the draft's packets, which may be "an offload burst". A mark counts as a loss.
use crate::control::{
    Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, LossKind, Recovery, Spec,
};
use crate::controllers::shared::bbr::{
    Bounds, Doubling, EXTRA_TIME_S, Extra, FullPipe, LossRound, MinRtt, Sample, Seen, Settings,
};
use crate::controllers::shared::own_limit::OwnLimit;
use crate::params::Params;
use crate::rng::Rng;
use crate::units::{Bytes, Rate, Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "bbr3",
    about: "BBR that also answers loss: bounds on rate and flight, of this cycle and of the long term",
    source: "draft-ietf-ccwg-bbr (August 2026)",
    params: Settings::PARAMS,
    build: |flow, params| Box::new(Bbr3::new(flow, params)),
};

/// Pacing gain of start-up, 4 ln 2 (source).
const STARTUP_GAIN: f64 = 2.77;
/// Pacing gain that drains what start-up has queued (source).
const DRAIN_GAIN: f64 = 0.5;
/// Gain of the window, and that of a bandwidth probe (source).
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
/// Gain of the window while the smallest round trip is looked for, and for how long (source).
const PROBE_RTT_GAIN: f64 = 0.5;
const PROBE_RTT_TIME: Span = Span::from_millis(200);
/// Losses in a round that end start-up: ranges in the source, here records with a loss.
const FULL_LOSSES: u32 = 6;
/// Rounds after which draining ends whatever is in flight (source).
const DRAIN_ROUNDS: u64 = 3;
/// The pacing rate is so much of the bandwidth (source: 1 % less).
const MARGIN: f64 = 0.99;
/// Smallest window, packets (source).
const CWND_MIN: f64 = 4.0;
/// Rounds between two bandwidth probes at most, to be no less often than Reno (source).
const RENO_ROUNDS: f64 = 63.0;
/// Round trip that is assumed before the first sample (source).
const NOMINAL_RTT: Span = Span::from_millis(1);
/// What a host sends as one unit: what leaves in this time, at most so many bytes (source); hosts hold three.
const QUANTUM_S: f64 = 0.001;
const QUANTUM_BYTES_MAX: f64 = 65_536.0;
const QUANTA: f64 = 3.0;

/// The state of the source's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// What the transport repairs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repair {
    None,
    Fast,
    /// After a time-out, until so many packets are delivered.
    Timeout(f64),
}

/// What a loss changes, to be taken back.
#[derive(Clone, Copy, Debug)]
struct Undo {
    state: Option<State>,
    short: Bounds,
    longterm: f64,
}

/// The latest bandwidth probe.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a flag of the source
struct Probe {
    /// Samples are of a probe that has not been answered.
    samples: bool,
    too_high: bool,
    /// It ended where the one before lost too much.
    cautious: bool,
    /// It is over, and the first round since is not.
    stopping: bool,
    rounds_since: u64,
    wait: Span,
    cycle_from: Time,
}

/// BBR version 3. Amounts are packets, rates packets per second.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    set: Settings,
    packet: f64,
    initial_cwnd: f64,
    has_sack: bool,
    rng: Rng,
    state: State,
    cwnd: f64,
    prior_cwnd: f64,
    pacing: f64,
    delivered: f64,
    /// The bandwidth in use: the smaller of `max_bw` and the short-term bound.
    bw: f64,
    /// Largest rate of the previous and of this cycle.
    max_bw: [f64; 2],
    short: Bounds,
    /// The long-term flight: more has cost too much loss.
    longterm: f64,
    rounds: u64,
    round_from: Time,
    round_started: bool,
    full: FullPipe,
    drain_from: u64,
    loss: LossRound,
    /// Largest rate, and amount delivered over a sample, of the round.
    latest: Bounds,
    probe: Probe,
    growth: Doubling,
    rtt: MinRtt,
    /// When the look for the smallest round trip may end, once little is in flight, and whether a round
    /// has passed since.
    rtt_done: Option<(Time, bool)>,
    /// The window of that look.
    rtt_cwnd: f64,
    extra: Extra,
    limit: OwnLimit,
    repair: Repair,
    newest: Sample,
    undo: Undo,
    /// Nothing came back for long: the next acknowledgement begins no search for the smallest round trip.
    idle_restart: bool,
    seen: Seen,
}

impl Bbr3 {
    /// Starts in start-up, paced as if the round trip were 1 ms.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let packet = flow.mss.0.max(1) as f64;
        let initial_cwnd = (flow.initial_cwnd.0.min(CWND_MAX.0) as f64 / packet).max(1.0);
        let start = flow.start;
        Self {
            set: Settings::of(params),
            packet,
            initial_cwnd,
            has_sack: flow.recovery == Recovery::Sack,
            rng: Rng::new(flow.seed),
            state: State::Startup,
            cwnd: initial_cwnd,
            prior_cwnd: 0.0,
            pacing: STARTUP_GAIN * initial_cwnd / NOMINAL_RTT.as_secs_f64(),
            delivered: 0.0,
            bw: 0.0,
            max_bw: [0.0; 2],
            short: Bounds::NONE,
            longterm: f64::INFINITY,
            rounds: 0,
            round_from: start,
            round_started: false,
            full: FullPipe::default(),
            drain_from: 0,
            loss: LossRound::new(start),
            latest: Bounds::ZERO,
            probe: Probe { cycle_from: start, ..Probe::default() },
            growth: Doubling::default(),
            rtt: MinRtt::new(start),
            rtt_done: None,
            rtt_cwnd: 0.0,
            extra: Extra::new(start),
            limit: OwnLimit::default(),
            repair: Repair::None,
            newest: Sample::default(),
            undo: Undo { state: None, short: Bounds::NONE, longterm: f64::INFINITY },
            idle_restart: false,
            seen: Seen::default(),
        }
    }

    fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// Pacing gain and window gain.
    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (STARTUP_GAIN, CWND_GAIN),
            State::Drain => (DRAIN_GAIN, CWND_GAIN),
            State::Down => (self.set.down_gain, CWND_GAIN),
            State::Cruise | State::Refill => (1.0, CWND_GAIN),
            State::Up => (self.set.up_gain, UP_CWND_GAIN),
            State::ProbeRtt => (1.0, PROBE_RTT_GAIN),
        }
    }

    fn cycles(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    fn bdp(&self, rate: f64, gain: f64) -> f64 {
        if self.rtt.value == Span::MAX {
            return self.initial_cwnd;
        }
        gain * rate * self.rtt.value.as_secs_f64()
    }

    /// At least what end hosts hold and what keeps acknowledgements coming.
    fn with_budget(&self, packets: f64) -> f64 {
        let bytes = (self.pacing * self.packet * QUANTUM_S).min(QUANTUM_BYTES_MAX);
        let quantum = (bytes / self.packet).max(2.0);
        let probes = if self.state == State::Up { 2.0 } else { 0.0 };
        packets.max(QUANTA * quantum).max(CWND_MIN) + probes
    }

    fn inflight_for(&self, rate: f64) -> f64 {
        self.with_budget(self.bdp(rate, 1.0))
    }

    fn with_headroom(&self) -> f64 {
        if self.longterm == f64::INFINITY {
            return f64::INFINITY;
        }
        (self.longterm - (self.set.headroom * self.longterm).max(1.0)).max(CWND_MIN)
    }

    fn target(&self) -> f64 {
        self.bdp(self.bw, 1.0).min(self.cwnd)
    }

    fn sample(&mut self, ack: &Ack) -> Sample {
        let mut sample = Sample::of(ack, self.packet, self.loss.take());
        self.delivered += sample.acked;
        // What leaves after this acknowledgement is not limited any more.
        self.limit.on_delivered(Time(ack.now.0.saturating_sub(1)), self.delivered);
        sample.app_limited |= self.limit.covers(ack.sent_at);
        // Nothing was in flight, and the application had nothing to send, before this packet.
        let idled = self.newest.inflight <= 0.0 && ack.sent_at > self.newest.now;
        if idled && self.rounds > 0 && ack.app_limited == 1 {
            self.restart(ack.now);
        }
        sample
    }

    fn update_bandwidth(&mut self, ack: &Ack, sample: &Sample) {
        self.round_started = ack.sent_at >= self.round_from;
        if self.round_started {
            self.round_from = sample.now;
            self.rounds += 1;
            self.probe.rounds_since += 1;
        }
        if sample.rate > 0.0 && (sample.rate >= self.max_bw() || !sample.app_limited) {
            self.max_bw[1] = self.max_bw[1].max(sample.rate);
        }
    }

    /// Once per round with a loss, outside of probes: bounds follow what was delivered, by at most 30 %.
    fn update_bounds(&mut self) {
        if !self.loss.ended {
            return;
        }
        let probing = matches!(self.state, State::Startup | State::Refill | State::Up);
        if self.loss.in_round && !probing {
            let first = Bounds { rate: self.max_bw(), inflight: self.cwnd };
            self.short = self.short.after_loss(self.latest, first, self.set.beta);
        }
        self.loss.in_round = false;
    }

    fn check_startup(&mut self, sample: &Sample) {
        if self.state == State::Startup && self.loss.ended {
            let (losses, marked) = self.loss.of_ended();
            let lossy = self.repair != Repair::None
                && (losses >= FULL_LOSSES || !self.has_sack)
                && self.is_too_high(sample);
            if lossy || marked {
                self.undo.state = Some(State::Startup);
                self.full.fill();
                self.longterm = self.bdp(self.bw, 1.0).max(self.latest.inflight);
            }
        }
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain;
            self.drain_from = self.rounds;
        }
    }

    fn check_drain(&mut self, sample: &Sample) {
        let late = self.rounds > self.drain_from + DRAIN_ROUNDS;
        if self.state == State::Drain && (sample.inflight <= self.inflight_for(self.bw) || late) {
            self.start_down(sample.now);
        }
    }

    fn start_down(&mut self, now: Time) {
        self.loss.in_round = false;
        self.latest = Bounds::ZERO;
        self.probe.rounds_since = self.rng.below(2);
        let wait = self.set.probe_wait + self.rng.uniform();
        self.probe.wait = Span::from_secs_f64(wait);
        self.probe.cycle_from = now;
        self.probe.stopping = true;
        self.round_from = now;
        self.state = State::Down;
    }

    fn start_refill(&mut self, now: Time) {
        self.short = Bounds::NONE;
        self.growth = Doubling::default();
        self.probe.cautious = false;
        self.probe.stopping = false;
        self.round_from = now;
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &Sample) {
        self.seen.probes += 1;
        self.probe.samples = true;
        self.round_from = sample.now;
        self.full.search(sample.rate);
        self.state = State::Up;
        self.growth.next_round(self.cwnd);
    }

    fn update_cycle(&mut self, sample: &Sample) {
        if !self.full.reached || self.adapt_longterm(sample) || !self.cycles() {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(sample.now) => {
                self.start_refill(sample.now);
            }
            State::Down if self.is_time_to_cruise(sample) => self.state = State::Cruise,
            State::Refill if self.round_started => self.start_up(sample),
            State::Up => self.end_up(sample),
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let rounds = self.target().min(RENO_ROUNDS);
        now > self.probe.cycle_from + self.probe.wait || self.probe.rounds_since as f64 >= rounds
    }

    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        sample.inflight <= self.with_headroom().min(self.inflight_for(self.max_bw()))
    }

    fn end_up(&mut self, sample: &Sample) {
        if self.probe.too_high && sample.inflight >= self.longterm {
            self.probe.cautious = true;
        } else if sample.cwnd_limited && self.cwnd >= self.longterm {
            self.full.search(sample.rate); // It is this bound that limits the rate.
            return;
        } else if !self.full.now {
            return;
        }
        self.probe.too_high = false;
        self.start_down(sample.now);
    }

    fn grow_longterm(&mut self, sample: &Sample) {
        if !sample.cwnd_limited || self.cwnd < self.longterm {
            return;
        }
        self.longterm += self.growth.grow(sample.acked);
        if self.round_started {
            self.growth.next_round(self.cwnd);
        }
    }

    /// Whether it decided a change of the state.
    fn adapt_longterm(&mut self, sample: &Sample) -> bool {
        if self.probe.stopping && self.round_started {
            self.probe.samples = false;
            self.probe.stopping = false;
            if self.cycles() && !sample.app_limited {
                self.end_bandwidth_cycle();
            }
            if self.cycles() && self.probe.cautious && !self.probe.too_high {
                self.start_refill(sample.now);
                return true;
            }
        }
        if !self.is_too_high(sample) && self.longterm < f64::INFINITY {
            self.longterm = self.longterm.max(sample.tx_inflight);
            if self.state == State::Up {
                self.grow_longterm(sample);
            }
        }
        false
    }

    /// Rates of the cycle before the one that ends do not count any more.
    fn end_bandwidth_cycle(&mut self) {
        if self.max_bw[1] > 0.0 {
            self.max_bw = [self.max_bw[1], 0.0];
        }
    }

    fn is_too_high(&self, sample: &Sample) -> bool {
        let allowed = if self.has_sack { sample.tx_inflight * self.set.loss_thresh } else { 0.0 };
        sample.lost > allowed
    }

    fn answer_too_high(&mut self, now: Time, tx_inflight: f64, app_limited: bool) {
        self.seen.too_high += 1;
        self.probe.too_high = true;
        self.probe.samples = false;
        if !app_limited {
            self.longterm = tx_inflight.max(self.target() * self.set.beta);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    fn check_probe_rtt(&mut self, sample: &Sample) {
        if self.state != State::ProbeRtt && self.rtt.expired && !self.idle_restart {
            self.start_probe_rtt(sample);
        }
        if self.state == State::ProbeRtt {
            self.limit.extend(self.delivered + sample.inflight);
            self.bound_probe_rtt_cwnd(sample);
            self.probe_rtt(sample);
        }
        if sample.acked > 0.0 {
            self.idle_restart = false;
        }
    }

    /// A bandwidth probe that this interrupts ends its cycle, as it would by itself: behind a deep queue a probe takes
    /// longer than the time to the next search, and the round after a search is limited by the search.
    fn start_probe_rtt(&mut self, sample: &Sample) {
        let probing = matches!(self.state, State::Refill | State::Up) || self.probe.stopping;
        if probing && self.cycles() && !sample.app_limited {
            self.end_bandwidth_cycle();
        }
        self.remember_cwnd();
        self.seen.rtt_probes += 1;
        self.state = State::ProbeRtt;
        self.rtt_done = None;
        self.rtt_cwnd = self.bdp(self.bw, PROBE_RTT_GAIN);
        self.probe.stopping = true;
        self.round_from = sample.now;
        self.limit.begin(sample.now);
    }

    /// Until little is in flight, what is delivered bounds the window: after a fall of the link's rate to less than half,
    /// the estimate alone would leave a queue, and the search would measure it.
    fn bound_probe_rtt_cwnd(&mut self, sample: &Sample) {
        if self.rtt_done.is_none() && sample.rate > 0.0 {
            self.rtt_cwnd = self.rtt_cwnd.min(self.bdp(sample.rate, 1.0));
        }
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.rtt_cwnd.max(CWND_MIN)
    }

    fn probe_rtt(&mut self, sample: &Sample) {
        if let Some((_, round_passed)) = &mut self.rtt_done {
            *round_passed |= self.round_started;
            if *round_passed {
                self.end_probe_rtt(sample.now);
            }
        } else if sample.inflight <= self.probe_rtt_cwnd() {
            self.rtt_done = Some((sample.now + PROBE_RTT_TIME, false));
            self.round_from = sample.now;
        }
    }

    fn end_probe_rtt(&mut self, now: Time) {
        if self.rtt_done.is_none_or(|(done, _)| now <= done) {
            return;
        }
        self.rtt.searched(now);
        self.restore_cwnd();
        self.short = Bounds::NONE;
        if self.full.reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    fn remember_cwnd(&mut self) {
        let is_good = self.repair == Repair::None && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_good { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    fn set_pacing(&mut self, gain: f64) {
        let rate = gain * self.bw * MARGIN;
        if (self.full.reached && rate > 0.0) || rate > self.pacing {
            self.pacing = rate;
        }
    }

    fn end_repair(&mut self, ack: &Ack) {
        let over = match self.repair {
            Repair::None => false,
            Repair::Fast => ack.recovering == 0,
            Repair::Timeout(until) => ack.recovering == 0 && self.delivered >= until,
        };
        if over {
            self.repair = Repair::None;
            self.restore_cwnd();
        }
    }

    fn set_cwnd(&mut self, sample: &Sample) {
        let (_, gain) = self.gains();
        let extra = self.extra.value().min(self.bw * EXTRA_TIME_S);
        let most = self.with_budget(self.bdp(self.bw, gain) + extra);
        if self.full.reached {
            self.cwnd = (self.cwnd + sample.acked).min(most);
        } else if self.cwnd < most || self.delivered < self.initial_cwnd {
            self.cwnd += sample.acked;
        }
        self.cwnd = self.cwnd.max(CWND_MIN);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let longterm = match self.state {
            State::Down | State::Refill | State::Up => self.longterm,
            State::Cruise | State::ProbeRtt => self.with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        self.cwnd = self.cwnd.min(longterm.min(self.short.inflight).max(CWND_MIN));
        self.cwnd = self.cwnd.min(CWND_MAX.0 as f64 / self.packet);
    }

    /// At the first loss of an episode.
    fn remember_state(&mut self) {
        self.remember_cwnd();
        self.undo = Undo { state: None, short: self.short, longterm: self.longterm };
    }

    fn take_loss(&mut self, loss: &Loss) {
        let packets = |bytes: Bytes| bytes.0 as f64 / self.packet;
        let lost = packets(loss.lost);
        self.loss.add(loss.now, lost);
        if !self.probe.samples {
            return;
        }
        let told = loss.tx_inflight > Bytes::ZERO;
        let tx_inflight = if told { packets(loss.tx_inflight) } else { self.newest.tx_inflight };
        let since = packets(loss.lost_since).max(lost);
        let sample = Sample { tx_inflight, lost: since, ..self.newest };
        if self.is_too_high(&sample) {
            // Of the packets lost now, so many were not too many.
            let (flight, before) = (tx_inflight - lost, since - lost);
            let thresh = self.set.loss_thresh.min(0.99);
            let fit = (thresh * flight - before) / (1.0 - thresh);
            let limited = if told { loss.app_limited == 1 } else { self.newest.app_limited };
            self.answer_too_high(loss.now, flight + fit, limited);
        }
    }

    /// A mark counts as a loss that shows at once that too much is in flight.
    fn take_mark(&mut self, now: Time) {
        self.loss.mark(now);
        if self.probe.samples {
            let Sample { tx_inflight, app_limited, .. } = self.newest;
            self.answer_too_high(now, tx_inflight, app_limited);
        }
    }

    fn undo_reduction(&mut self, now: Time) {
        self.seen.undone += 1;
        self.repair = Repair::None;
        self.restore_cwnd();
        self.loss.in_round = false;
        self.full.search(0.0);
        self.short = self.short.max(self.undo.short);
        self.longterm = self.longterm.max(self.undo.longterm);
        match self.undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill(now);
            }
            _ => {}
        }
        self.undo.state = None;
    }

    fn restart(&mut self, now: Time) {
        self.idle_restart = true;
        self.extra.restart(now);
        if self.cycles() {
            self.set_pacing(1.0);
        } else if self.state == State::ProbeRtt {
            self.end_probe_rtt(now);
        }
    }
}

impl Controller for Bbr3 {
    fn on_ack(&mut self, ack: &Ack) {
        let sample = self.sample(ack);
        self.newest = sample;
        self.latest = self.latest.max(sample.bounds());
        self.loss.on_ack(ack.now, ack.sent_at);
        self.update_bandwidth(ack, &sample);
        self.update_bounds();
        let extra = self.extra.add(ack.now, sample.acked, self.bw, self.cwnd);
        self.extra.remember(self.rounds, extra, self.full.reached);
        if self.round_started && !sample.app_limited {
            self.full.end_round(sample.rate);
        }
        self.check_startup(&sample);
        self.check_drain(&sample);
        self.update_cycle(&sample);
        let first = self.rtt.value == Span::MAX;
        self.rtt.update(ack, self.set.probe_rtt_interval, self.packet);
        self.check_probe_rtt(&sample);
        if self.loss.ended {
            self.latest = sample.bounds();
        }
        if ack.ce_marked > Bytes::ZERO {
            self.take_mark(ack.now);
        }
        self.bw = self.max_bw().min(self.short.rate);
        if first && self.rtt.value < Span::MAX && ack.srtt > Span::ZERO {
            self.pacing = STARTUP_GAIN * self.initial_cwnd / ack.srtt.as_secs_f64();
        }
        self.set_pacing(self.gains().0);
        self.end_repair(ack);
        self.set_cwnd(&sample);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let lost = loss.lost.0 as f64 / self.packet;
        match loss.kind {
            LossKind::Gap if lost > 0.0 => {
                self.remember_state();
                self.repair = Repair::Fast;
                self.take_loss(loss);
            }
            LossKind::Gap => self.take_mark(loss.now),
            LossKind::More => {
                if let Repair::Timeout(until) = &mut self.repair {
                    *until += lost;
                }
                self.take_loss(loss);
            }
            LossKind::Timeout | LossKind::TimeoutAgain => {
                if self.repair == Repair::None {
                    self.remember_state();
                }
                // Another time-out of the same packet adds no loss; what the first one lost is still to come.
                let until = if let Repair::Timeout(until) = self.repair { until } else { 0.0 };
                self.repair = Repair::Timeout(until.max(self.delivered + lost));
                self.take_loss(loss);
                self.cwnd = 1.0;
                self.idle_restart = true;
            }
            LossKind::Spurious => self.undo_reduction(loss.now),
            LossKind::Idle => self.restart(loss.now),
            LossKind::Deflate => {}
        }
    }

    fn control(&self) -> Control {
        let bits = self.pacing * self.packet * 8.0;
        // Without start-up there is no slow start, in which less than a full window counts as one.
        let ssthresh = if self.full.reached { (CWND_MIN * self.packet) as u64 } else { u64::MAX };
        Control {
            cwnd: Bytes((self.cwnd * self.packet) as u64),
            pacing_rate: Rate((bits as u64).clamp(1, Rate::UNLIMITED.0 - 1)),
            ssthresh: Bytes(ssthresh),
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.seen.counters()
    }
}

#[cfg(test)]
#[path = "tests/bbr3.rs"]
mod tests;
