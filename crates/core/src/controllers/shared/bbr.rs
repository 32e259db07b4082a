//! Parts of BBR's model of a path (draft-ietf-ccwg-bbr). Amounts are packets, rates packets per second.
use crate::control::Ack;
use crate::params::{Param, ParamKind, Params};
use crate::sensing::windowed_max::WindowedMax;
use crate::units::{Bytes, Span, Time};

/// Growth that shows that the pipe is not full, and rounds without it that show that it is (source).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Time for which the smallest round trip counts (source).
const MIN_RTT_WINDOW: Span = Span::from_millis(10_000);
/// Rounds for which aggregation counts, in start-up and after (source).
const EXTRA_ROUNDS: (u64, u64) = (1, 10);
/// Acknowledgements beyond the rate count up to what the bandwidth carries in this time (source: Linux, `tcp_bbr.c`, version
/// 1, and Google's version 3). A source whose mean is a little above its delivery rate would else add to them for ever.
pub const EXTRA_TIME_S: f64 = 0.1;
/// Doublings of a growth at most (source).
const DOUBLINGS_MAX: u32 = 30;

/// What a scenario may set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Share of a round's packets that are lost when more is in flight than the path takes.
    pub loss_thresh: f64,
    /// A round with loss leaves at least so much of a bound.
    pub beta: f64,
    /// Part of the long-term flight that is left to others.
    pub headroom: f64,
    /// Pacing gain of a bandwidth probe.
    pub up_gain: f64,
    /// Pacing gain after one.
    pub down_gain: f64,
    /// Least time between two, in seconds.
    pub probe_wait: f64,
    /// Time without a smaller round trip before one is looked for.
    pub probe_rtt_interval: Span,
}

const fn number(name: &'static str, about: &'static str, [default, min, max]: [f64; 3]) -> Param {
    Param { name, about, kind: ParamKind::Number { default, min, max } }
}

impl Settings {
    /// Names, defaults and ranges; the defaults are the draft's.
    pub const PARAMS: &[Param] = &[
        number("loss_thresh", "share of a round lost that ends a probe (source)", [0.02, 0.0, 1.0]),
        number("beta", "part of a bound that a round with loss leaves (source)", [0.7, 0.1, 1.0]),
        number("headroom", "part of the flight left to others (source)", [0.15, 0.0, 0.9]),
        number("up_gain", "pacing gain of a bandwidth probe (source)", [1.25, 1.01, 3.0]),
        number("down_gain", "pacing gain after a bandwidth probe (source)", [0.9, 0.1, 1.0]),
        number("probe_wait_s", "bandwidth probes: time between two (source)", [2.0, 0.0, 60.0]),
        number(
            "probe_rtt_interval_s",
            "round-trip probes: time between (source)",
            [5.0, 0.1, 600.0],
        ),
    ];

    /// From complete parameters.
    pub fn of(params: &Params) -> Self {
        let number = |name| params.number(name);
        Self {
            loss_thresh: number("loss_thresh"),
            beta: number("beta"),
            headroom: number("headroom"),
            up_gain: number("up_gain"),
            down_gain: number("down_gain"),
            probe_wait: number("probe_wait_s"),
            probe_rtt_interval: Span::from_secs_f64(number("probe_rtt_interval_s")),
        }
    }
}

/// What an acknowledgement tells, in packets and packets per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// When it came.
    pub now: Time,
    /// Newly delivered.
    pub acked: f64,
    /// In flight after it.
    pub inflight: f64,
    /// Delivery rate; 0 for none.
    pub rate: f64,
    /// Delivered since the newest packet that it delivers was sent.
    pub delivered: f64,
    /// Lost since then.
    pub lost: f64,
    /// In flight then, with that packet.
    pub tx_inflight: f64,
    /// The application limited the sample.
    pub app_limited: bool,
    /// The window was full in the last round trip.
    pub cwnd_limited: bool,
}

impl Sample {
    /// Of an acknowledgement. A sender that does not tell what it needs is taken to send over a path that
    /// keeps the order: all that was in flight with a packet has been delivered or lost when that packet
    /// is delivered. `newly_lost`: since the acknowledgement before.
    pub fn of(ack: &Ack, packet: f64, newly_lost: f64) -> Self {
        let packets = |bytes: Bytes| bytes.0 as f64 / packet;
        let (delivered, lost) = match ack.delivered_since {
            Bytes::ZERO => (packets(ack.prior_inflight), newly_lost),
            since => (packets(since), packets(ack.lost_since)),
        };
        let tx_inflight = match ack.tx_inflight {
            Bytes::ZERO => delivered + lost,
            inflight => packets(inflight),
        };
        Self {
            now: ack.now,
            acked: packets(ack.acked),
            inflight: packets(ack.inflight),
            rate: ack.delivery_rate.0 as f64 / (8.0 * packet),
            delivered,
            lost,
            tx_inflight,
            app_limited: ack.app_limited == 1,
            cwnd_limited: ack.cwnd_limited == 1,
        }
    }

    /// What was measured, as bounds.
    pub fn bounds(&self) -> Bounds {
        Bounds { rate: self.rate, inflight: self.delivered }
    }
}

/// The losses of a round, which the first of them begins.
#[derive(Clone, Copy, Debug)]
pub struct LossRound {
    from: Time,
    /// The newest acknowledgement ended the round.
    pub ended: bool,
    /// Something was lost or marked in the present round.
    pub in_round: bool,
    /// Calls with a loss in this round and, once it has ended, in the one before; and marks.
    losses: [u32; 2],
    marks: [bool; 2],
    /// Packets since the last acknowledgement.
    new: f64,
}

impl LossRound {
    /// Without a loss.
    pub fn new(start: Time) -> Self {
        let (losses, marks) = ([0; 2], [false; 2]);
        Self { from: start, ended: false, in_round: false, losses, marks, new: 0.0 }
    }

    /// A packet sent then was delivered.
    pub fn on_ack(&mut self, now: Time, sent_at: Time) {
        self.ended = sent_at >= self.from;
        if self.ended {
            self.from = now;
            self.losses = [0, self.losses[0]];
            self.marks = [false, self.marks[0]];
        }
    }

    /// Losses of the round that has just ended, in calls, and whether it had a mark.
    pub fn of_ended(&self) -> (u32, bool) {
        (self.losses[1], self.marks[1])
    }

    fn note(&mut self, now: Time) {
        if !self.in_round {
            self.from = now;
        }
        self.in_round = true;
    }

    /// So many packets were lost.
    pub fn add(&mut self, now: Time, packets: f64) {
        self.note(now);
        self.losses[0] = self.losses[0].saturating_add(1);
        self.new += packets;
    }

    /// Something was marked.
    pub fn mark(&mut self, now: Time) {
        self.note(now);
        self.marks[0] = true;
    }

    /// Packets lost since this was last asked.
    pub fn take(&mut self) -> f64 {
        std::mem::take(&mut self.new)
    }
}

/// Whether more is sent than comes through.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    /// Rate of the last round that grew.
    pub rate: f64,
    /// Rounds since.
    pub count: u32,
    /// Since the search began anew.
    pub now: bool,
    /// Ever.
    pub reached: bool,
}

impl FullPipe {
    /// Searches again, for growth beyond `rate`.
    pub fn search(&mut self, rate: f64) {
        *self = Self { rate, reached: self.reached, ..Self::default() };
    }

    /// A round ends in which `rate` was delivered.
    pub fn end_round(&mut self, rate: f64) {
        if self.now {
            return;
        }
        if rate >= self.rate * FULL_GROWTH {
            self.search(rate);
            return;
        }
        self.count += 1;
        if self.count >= FULL_ROUNDS {
            self.fill();
        }
    }

    /// It is full, whatever shows it.
    pub fn fill(&mut self) {
        self.now = true;
        self.reached = true;
    }
}

/// Bounds on what the path takes, infinite without recent loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Packets per second.
    pub rate: f64,
    /// Packets in flight.
    pub inflight: f64,
}

impl Bounds {
    /// No bound.
    pub const NONE: Self = Self { rate: f64::INFINITY, inflight: f64::INFINITY };
    /// Nothing measured.
    pub const ZERO: Self = Self { rate: 0.0, inflight: 0.0 };

    /// The larger of each.
    pub fn max(self, other: Self) -> Self {
        Self { rate: self.rate.max(other.rate), inflight: self.inflight.max(other.inflight) }
    }

    /// After a round with loss: what was delivered in it, or `beta` of the bound, whichever is more. The
    /// first of a series goes out from `first`.
    pub fn after_loss(self, latest: Self, first: Self, beta: f64) -> Self {
        let or = |bound: f64, first: f64| if bound == f64::INFINITY { first } else { bound };
        let (rate, inflight) = (or(self.rate, first.rate), or(self.inflight, first.inflight));
        latest.max(Self { rate: beta * rate, inflight: beta * inflight })
    }
}

/// Acknowledgements beyond what the bandwidth explains.
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    since: Time,
    acked: f64,
    max: WindowedMax,
}

impl Extra {
    /// Nothing yet.
    pub fn new(start: Time) -> Self {
        Self { since: start, acked: 0.0, max: WindowedMax::new(EXTRA_ROUNDS.0) }
    }

    /// Counts from now on: the amount and its time begin together, as in Linux's BBR version 1 and Google's version 3.
    pub fn restart(&mut self, now: Time) {
        (self.since, self.acked) = (now, 0.0);
    }

    /// `acked` came at `now` in round `round`, of a path of `rate`; up to `cwnd` it is told from chance.
    pub fn add(&mut self, now: Time, acked: f64, rate: f64, cwnd: f64) -> f64 {
        let mut expected = rate * now.since(self.since).as_secs_f64();
        if self.acked <= expected {
            self.acked = 0.0;
            self.since = now;
            expected = 0.0;
        }
        self.acked += acked;
        (self.acked - expected).min(cwnd)
    }

    /// Remembers what `add` found in a round, for one round or, once the pipe is full, for ten.
    pub fn remember(&mut self, round: u64, extra: f64, full: bool) {
        self.max.set_window(if full { EXTRA_ROUNDS.1 } else { EXTRA_ROUNDS.0 });
        self.max.sample(round, extra);
    }

    /// The most of the recent rounds.
    pub fn value(&self) -> f64 {
        self.max.value()
    }
}

/// Whether the receiver may have delayed the acknowledgement: less than a `packet` was in flight, which waits for no
/// second one (source: Linux, `FLAG_ACK_MAYBE_DELAYED`).
pub fn may_be_delayed(ack: &Ack, packet: f64) -> bool {
    let flight = if ack.tx_inflight > Bytes::ZERO { ack.tx_inflight } else { ack.prior_inflight };
    flight > Bytes::ZERO && (flight.0 as f64) < packet
}

/// The smallest round trip of ten seconds, and that since it was last looked for.
#[derive(Clone, Copy, Debug)]
pub struct MinRtt {
    /// Of ten seconds.
    pub value: Span,
    at: Time,
    /// Since the last search.
    pub recent: Span,
    recent_at: Time,
    /// It was long not seen.
    pub expired: bool,
}

impl MinRtt {
    /// None yet.
    pub fn new(start: Time) -> Self {
        Self { value: Span::MAX, at: start, recent: Span::MAX, recent_at: start, expired: false }
    }

    /// Takes the round trip of an acknowledgement, if it has one. After `interval` without a smaller one a
    /// search is due. `packet` is the size of a full one.
    pub fn update(&mut self, ack: &Ack, interval: Span, packet: f64) {
        self.expired = ack.now > self.recent_at + interval;
        let replaces = self.expired && !may_be_delayed(ack, packet);
        let rtt = ack.smallest_rtt();
        if rtt > Span::ZERO && (rtt < self.recent || replaces) {
            self.recent = rtt;
            self.recent_at = ack.now;
        }
        if self.recent < self.value || ack.now > self.at + MIN_RTT_WINDOW {
            self.value = self.recent;
            self.at = self.recent_at;
        }
    }

    /// Since when `recent` has not become smaller, or when a search was over.
    pub fn recent_since(&self) -> Time {
        self.recent_at
    }

    /// A search is over.
    pub fn searched(&mut self, now: Time) {
        self.recent_at = now;
    }
}

/// A growth by 1, 2, 4, ... packets per round, spread over the round.
#[derive(Clone, Copy, Debug)]
pub struct Doubling {
    rounds: u32,
    acked: f64,
    /// Packets to be acknowledged for one more.
    per_packet: f64,
}

impl Default for Doubling {
    fn default() -> Self {
        Self { rounds: 0, acked: 0.0, per_packet: f64::INFINITY }
    }
}

impl Doubling {
    /// The next round grows twice as fast as the one before.
    pub fn next_round(&mut self, cwnd: f64) {
        let growth = (1_u64 << self.rounds) as f64;
        self.rounds = (self.rounds + 1).min(DOUBLINGS_MAX);
        self.per_packet = (cwnd / growth).max(1.0);
    }

    /// Packets more for so many acknowledged.
    pub fn grow(&mut self, acked: f64) -> f64 {
        self.acked += acked;
        if self.acked < self.per_packet {
            return 0.0;
        }
        let more = libm::floor(self.acked / self.per_packet);
        self.acked -= more * self.per_packet;
        more
    }
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Bandwidth probes.
    pub probes: u32,
    /// Probes with too much loss.
    pub too_high: u32,
    /// Searches for the smallest round trip.
    pub rtt_probes: u32,
    /// Losses that were spurious.
    pub undone: u32,
}

impl Seen {
    /// See [`crate::control::Controller::counters`].
    pub fn counters(self) -> Vec<(&'static str, f64)> {
        let Self { probes, too_high, rtt_probes, undone } = self;
        let counts = [probes, too_high, rtt_probes, undone].map(f64::from);
        ["probes", "too_high", "rtt_probes", "undone"].into_iter().zip(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_that_grow_by_less_than_a_quarter_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        for rate in [100.0, 125.0, 150.0, 155.0] {
            pipe.end_round(rate);
            assert!(!pipe.now, "{rate}");
        }
        pipe.end_round(156.0);
        assert!(pipe.now && pipe.reached);
        pipe.search(160.0);
        assert!(!pipe.now && pipe.reached);
    }

    #[test]
    fn a_round_with_loss_leaves_seven_tenths_or_what_was_delivered() {
        let first = Bounds { rate: 100.0, inflight: 50.0 };
        let latest = Bounds { rate: 80.0, inflight: 20.0 };
        let bounds = Bounds::NONE.after_loss(latest, first, 0.7);
        assert_eq!(bounds, Bounds { rate: 80.0, inflight: 35.0 });
        let bounds = bounds.after_loss(Bounds::ZERO, first, 0.5);
        assert_eq!(bounds, Bounds { rate: 40.0, inflight: 17.5 });
    }

    #[test]
    fn what_comes_beyond_the_rate_counts_until_the_rate_catches_up() {
        let mut extra = Extra::new(Time(0));
        let at = |ms: u64| Time(0) + Span::from_millis(ms);
        assert!((extra.add(at(10), 5.0, 1000.0, 99.0) - 5.0).abs() < 1e-9);
        assert!((extra.add(at(12), 5.0, 1000.0, 99.0) - 8.0).abs() < 1e-9);
        assert!((extra.add(at(12), 200.0, 1000.0, 99.0) - 99.0).abs() < 1e-9, "the window");
        assert!((extra.add(at(900), 3.0, 1000.0, 99.0) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_came_before_a_restart_does_not_count_after_it() {
        let mut extra = Extra::new(Time(0));
        let at = |ms: u64| Time(0) + Span::from_millis(ms);
        for burst in 1..100 {
            extra.restart(at(100 * burst));
            // Ten packets at once and ten at half the rate, of a path of a packet per millisecond.
            assert!((extra.add(at(100 * burst), 10.0, 1000.0, 1e6) - 10.0).abs() < 1e-9, "{burst}");
            assert!(
                (extra.add(at(100 * burst + 5), 10.0, 1000.0, 1e6) - 15.0).abs() < 1e-9,
                "{burst}"
            );
        }
    }

    #[test]
    fn the_growth_doubles_with_each_round() {
        let mut growth = Doubling::default();
        let mut grown = Vec::new();
        for _ in 0..4 {
            growth.next_round(64.0);
            grown.push((0..64).map(|_| growth.grow(1.0)).sum::<f64>());
        }
        assert_eq!(grown, [1.0, 2.0, 4.0, 8.0]);
    }
}
