//! Illinois (Liu, Basar and Srikant 2008): loss decides when to reduce, the queueing delay how fast
//! to grow and how much to give up.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::law::reno_window::{RECORD_PACKETS_MAX, Window};
use crate::params::{Param, ParamKind, Params};
use crate::units::{Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "illinois",
    about: "grows fast while the queue is short, and gives up less then",
    source: "Liu, Basar and Srikant 2008; Linux tcp_illinois.c; ns-3 tcp-illinois.cc",
    params: &[
        Param {
            name: "variant",
            about: "whose rules: `linux`, or `ns3` with smoothed round trips in whole ms and growth \
                    in whole packets, as 3.37 has them",
            kind: ParamKind::Choice(&["linux", "ns3"]),
        },
        Param {
            name: "alpha_min",
            about: "packets per round trip when the queue is full (source: Linux and ns-3)",
            kind: ParamKind::Number { default: 0.3, min: 0.01, max: 1.0 },
        },
        Param {
            name: "alpha_max",
            about: "packets per round trip when the queue is empty (source: Linux and ns-3)",
            kind: ParamKind::Number { default: 10.0, min: 1.01, max: 100.0 },
        },
        Param {
            name: "beta_min",
            about: "share that a loss takes when the queue is empty (source: Linux and ns-3)",
            kind: ParamKind::Number { default: 0.125, min: 0.01, max: 0.5 },
        },
        Param {
            name: "beta_max",
            about: "share that a loss takes when the queue is full (source: Linux and ns-3)",
            kind: ParamKind::Number { default: 0.5, min: 0.5, max: 0.9 },
        },
        Param {
            name: "threshold_packets",
            about: "windows below this grow and shrink as Reno's (source: Linux win_thresh; ns-3 \
                    compares it with bytes)",
            kind: ParamKind::Number { default: 15.0, min: 0.0, max: 1000.0 },
        },
        Param {
            name: "theta_rounds",
            about: "rounds with a short queue before growth is fastest again (source: Linux and \
                    ns-3)",
            kind: ParamKind::Number { default: 5.0, min: 1.0, max: 100.0 },
        },
    ],
    build: |flow, params| Box::new(Illinois::new(flow, params)),
};

/// AIMD whose two numbers follow the mean queueing delay of each round trip.
#[derive(Clone, Debug)]
pub struct Illinois {
    window: Window,
    ns3: bool,
    limits: Limits,
    /// Packets per round trip.
    alpha: f64,
    /// Share that a loss takes.
    beta: f64,
    /// Whether the queue has been long since growth was last fastest.
    above: bool,
    /// Rounds with a short queue.
    low: u32,
    /// Smallest and largest round trip of the flow; the largest is zero before the first.
    base: Span,
    max: Span,
    round: Round,
    credit: Credit,
}

/// The settings.
#[derive(Clone, Copy, Debug)]
struct Limits {
    alpha: [f64; 2],
    beta: [f64; 2],
    threshold: f64,
    theta: u32,
}

/// Round trips of the present round.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The ACK of a packet sent at or after this ends the round.
    start: Time,
    /// Summed over packets, ns.
    sum: f64,
    /// Packets acknowledged with a sample.
    samples: f64,
}

/// ns-3's count of acknowledged segments, weighed with alpha.
#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    /// Acknowledged packets; the fraction waits for the next record.
    uncounted: f64,
    weighed: u64,
}

impl Round {
    fn new(start: Time) -> Self {
        Self { start, sum: 0.0, samples: 0.0 }
    }
}

impl Illinois {
    /// Starts in slow start, with the fastest growth and Reno's reduction.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let limits = Limits {
            alpha: [params.number("alpha_min"), params.number("alpha_max")],
            beta: [params.number("beta_min"), params.number("beta_max")],
            threshold: params.number("threshold_packets"),
            theta: params.number("theta_rounds") as u32,
        };
        Self {
            window: Window::new(flow),
            ns3: params.choice("variant") == "ns3",
            limits,
            alpha: limits.alpha[1],
            beta: BETA_BASE,
            above: false,
            low: 0,
            base: Span::MAX,
            max: Span::ZERO,
            round: Round::new(flow.start),
            credit: Credit::default(),
        }
    }

    fn sample(&mut self, ack: &Ack) {
        let (rtt, longest) =
            if self.ns3 { (ack.srtt, ack.srtt) } else { (ack.rtt, ack.rtt.max(ack.rtt_max)) };
        if rtt == Span::ZERO {
            return;
        }
        self.base = self.base.min(rtt);
        if !self.ns3 && ack.min_rtt > Span::ZERO {
            self.base = self.base.min(ack.min_rtt);
        }
        self.max = self.max.max(longest);
        let packets = self.window.packets(ack.acked);
        self.round.sum += rtt.0 as f64 * packets;
        self.round.samples += packets;
    }

    /// A time-out: Reno's factors, and a new round.
    fn start_over(&mut self, now: Time) {
        (self.alpha, self.beta, self.low, self.above) = (ALPHA_BASE, BETA_BASE, 0, false);
        self.round = Round::new(now);
    }

    /// Ends the round if this packet was sent in the next one.
    fn end_round(&mut self, now: Time, sent_at: Time) {
        if sent_at >= self.round.start {
            self.adapt();
            self.round = Round::new(now);
        }
    }

    /// New `alpha` and `beta` at the end of a round.
    fn adapt(&mut self) {
        if self.window.cwnd < self.limits.threshold {
            (self.alpha, self.beta) = (ALPHA_BASE, BETA_BASE);
        } else if self.round.samples > 0.0 {
            let base = self.base.0 as f64;
            let mean = self.round.sum / self.round.samples;
            let delays = [self.max.0 as f64 - base, (mean - base).max(0.0)];
            // ns-3 computes in whole milliseconds.
            let [max, mean] = if self.ns3 { delays.map(|ns| (ns / 1e6).floor()) } else { delays };
            self.adapt_alpha(mean, max);
            self.beta = self.beta_for(mean, max);
        }
    }

    /// Growth for a mean queueing delay of `mean` out of at most `max`.
    fn adapt_alpha(&mut self, mean: f64, max: f64) {
        let [low, high] = self.limits.alpha;
        let short = max / 100.0;
        if mean > short {
            self.above = true;
            let (max, mean) = (max - short, mean - short);
            self.alpha = max * high / (max + mean * (high - low) / low);
            return;
        }
        if !self.above {
            self.alpha = high;
        }
        // Only ns-3 counts these rounds before the queue was ever long.
        self.low += u32::from(self.above || self.ns3);
        if self.low >= self.limits.theta {
            (self.low, self.above, self.alpha) = (0, false, high);
        }
    }

    /// The share that a loss is to take.
    fn beta_for(&self, mean: f64, max: f64) -> f64 {
        let [low, high] = self.limits.beta;
        let (short, long) = (max / 10.0, 0.8 * max);
        if mean <= short {
            low
        } else if mean >= long {
            high
        } else {
            low + (high - low) * (mean - short) / (long - short)
        }
    }

    /// ns-3's congestion avoidance: `alpha` for each segment of an ACK, cut to a whole number, and a
    /// segment more for each window of these. Up to two segments come with an ACK.
    fn avoid_in_whole_packets(&mut self, acked: f64) {
        self.credit.uncounted += acked.min(RECORD_PACKETS_MAX as f64);
        while self.credit.uncounted >= 1.0 {
            let step = self.credit.uncounted.min(2.0).floor();
            self.credit.uncounted -= step;
            self.credit.weighed += (step * self.alpha) as u64;
            while self.credit.weighed >= self.window.cwnd as u64 {
                self.credit.weighed -= self.window.cwnd as u64;
                self.window.cwnd = self.window.cwnd.floor();
                self.window.grow(1.0);
            }
        }
    }
}

impl Controller for Illinois {
    fn on_ack(&mut self, ack: &Ack) {
        self.sample(ack);
        if ack.recovering == 1 {
            return;
        }
        self.end_round(ack.now, ack.sent_at);
        if ack.cwnd_limited == 0 {
            return;
        }
        let rest = self.window.slow_start(self.window.packets(ack.acked));
        if self.ns3 {
            self.avoid_in_whole_packets(rest);
        } else {
            self.window.avoid_singly(rest, self.alpha);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.kind == LossKind::TimeoutAgain {
            self.start_over(loss.now);
        }
        if !matches!(loss.kind, LossKind::Gap | LossKind::Timeout) {
            return self.window.reduce(loss);
        }
        // One loss may follow the repair of another without an ACK between them that is part of
        // neither; what was measured during the repair counts for it.
        self.end_round(loss.now, loss.sent_at);
        self.window.remember();
        let left = if self.ns3 {
            ((1.0 - self.beta) * self.window.packets(loss.inflight).floor()).floor()
        } else {
            (1.0 - self.beta) * self.window.cwnd
        };
        self.window.ssthresh = left.max(2.0);
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        if loss.kind == LossKind::Timeout {
            self.window.cwnd = 1.0;
            self.start_over(loss.now);
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }
}

// Reno's.
const ALPHA_BASE: f64 = 1.0;
const BETA_BASE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::params::ParamValue;
    use crate::units::Bytes;

    /// A flow of 100 packets in congestion avoidance whose round trip was 100 to 200 ms.
    fn illinois(variant: &str) -> Illinois {
        let flow = FlowInfo {
            mss: Bytes(1000),
            initial_cwnd: Bytes(100_000),
            initial_ssthresh: Bytes(50_000),
            recovery: Recovery::Sack,
            paces: false,
            start: Time(0),
            seed: 1,
        };
        let given = [("variant".to_owned(), ParamValue::Word(variant.to_owned()))];
        let mut illinois = Illinois::new(&flow, &Params::resolve(SPEC.params, &given).unwrap());
        (illinois.base, illinois.max) = (Span::from_millis(100), Span::from_millis(200));
        illinois
    }

    /// An ACK that ends a round.
    fn ack(rtt_us: u64) -> Ack {
        Ack {
            now: Time(1),
            sent_at: Time(u64::MAX),
            rtt: Span::from_micros(rtt_us),
            srtt: Span::from_micros(rtt_us),
            acked: Bytes(1000),
            cwnd_limited: 1,
            ..Ack::default()
        }
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }

    #[test]
    fn growth_is_fastest_until_the_queue_is_first_long() {
        for variant in ["linux", "ns3"] {
            let mut illinois = illinois(variant);
            close(illinois.alpha, 10.0);
            close(illinois.beta, 0.5);
            illinois.on_ack(&ack(101_000));
            close(illinois.alpha, 10.0);
        }
    }

    #[test]
    fn growth_falls_with_the_mean_delay_to_its_minimum() {
        let mut illinois = illinois("linux");
        illinois.on_ack(&ack(150_000));
        // d1 = 1 ms; (99·10)/(99 + 49·9.7/0.3)
        close(illinois.alpha, 990.0 / (99.0 + 49.0 * 9.7 / 0.3));
        illinois.on_ack(&ack(200_000));
        close(illinois.alpha, 0.3);
    }

    #[test]
    fn after_a_long_queue_five_short_rounds_bring_back_the_fastest_growth() {
        let mut illinois = illinois("linux");
        illinois.on_ack(&ack(200_000));
        (0..4).for_each(|_| illinois.on_ack(&ack(100_500)));
        close(illinois.alpha, 0.3);
        illinois.on_ack(&ack(100_500));
        close(illinois.alpha, 10.0);
        assert!(!illinois.above);
    }

    #[test]
    fn only_ns3_counts_short_rounds_before_a_long_one() {
        for (variant, rounds) in [("linux", 5), ("ns3", 2)] {
            let mut illinois = illinois(variant);
            (0..3).for_each(|_| illinois.on_ack(&ack(100_500)));
            illinois.on_ack(&ack(200_000));
            (1..rounds).for_each(|_| illinois.on_ack(&ack(100_500)));
            close(illinois.alpha, 0.3);
            illinois.on_ack(&ack(100_500));
            close(illinois.alpha, 10.0);
        }
    }

    #[test]
    fn the_share_given_up_rises_from_a_tenth_to_eight_tenths_of_the_delay() {
        for (rtt_us, beta) in [
            (110_000, 0.125),
            (145_000, 0.125 + 0.375 * 35.0 / 70.0),
            (180_000, 0.5),
            (195_000, 0.5),
        ] {
            let mut illinois = illinois("linux");
            illinois.on_ack(&ack(rtt_us));
            close(illinois.beta, beta);
        }
    }

    #[test]
    fn a_small_window_is_renos() {
        let mut illinois = illinois("linux");
        (illinois.window.cwnd, illinois.window.ssthresh) = (14.0, 2.0);
        illinois.on_ack(&ack(101_000));
        close(illinois.alpha, 1.0);
        close(illinois.beta, 0.5);
        close(illinois.window.cwnd, 14.0 + 1.0 / 14.0);
    }

    #[test]
    fn the_mean_of_a_round_weighs_packets() {
        let mut illinois = illinois("linux");
        illinois.round.start = Time(10);
        illinois.on_ack(&Ack { sent_at: Time(5), acked: Bytes(3000), ..ack(120_000) });
        illinois.on_ack(&Ack { sent_at: Time(10), ..ack(200_000) });
        close(illinois.beta, 0.125 + 0.375 * (40.0 - 10.0) / 70.0); // (3·120 + 200)/4 = 140
        close(illinois.round.samples, 0.0);
    }

    #[test]
    fn alpha_packets_are_added_for_each_window() {
        let mut illinois = illinois("linux");
        illinois.on_ack(&ack(100_000));
        close(illinois.window.cwnd, 100.1);
    }

    #[test]
    fn ns3_cuts_alpha_to_a_whole_number_for_each_ack() {
        let mut illinois = illinois("ns3");
        illinois.limits.theta = 1000;
        illinois.round.start = Time(u64::MAX);
        illinois.alpha = 2.7;
        let within = Ack { sent_at: Time(0), ..ack(150_000) };
        (0..50).for_each(|_| illinois.on_ack(&within));
        close(illinois.window.cwnd, 101.0); // 50 · 2
        illinois.alpha = 0.7;
        (0..500).for_each(|_| illinois.on_ack(&within));
        close(illinois.window.cwnd, 101.0); // 500 · 0
        (0..101).for_each(|_| illinois.on_ack(&Ack { acked: Bytes(2000), ..within }));
        close(illinois.window.cwnd, 102.0); // 101 · ⌊1.4⌋
    }

    #[test]
    fn ns3_measures_in_whole_milliseconds() {
        let mut illinois = illinois("ns3");
        illinois.on_ack(&ack(101_900)); // 1.9 ms are 1 ms, which is not more than 1 % of 100 ms
        close(illinois.alpha, 10.0);
        let mut illinois = self::illinois("linux");
        illinois.on_ack(&ack(101_900));
        assert!(illinois.alpha < 10.0);
    }

    #[test]
    fn a_loss_takes_its_share_of_the_window_or_in_ns3_of_the_flight() {
        let loss = Loss { inflight: Bytes(90_500), ..Loss::default() };
        for (variant, left) in [("linux", 87.5), ("ns3", 78.0)] {
            let mut illinois = illinois(variant);
            illinois.beta = 0.125;
            illinois.on_loss(&loss);
            close(illinois.window.cwnd, left);
            close(illinois.window.ssthresh, left);
        }
    }

    #[test]
    fn a_loss_behind_a_repair_is_answered_by_the_delay_during_it() {
        let mut illinois = illinois("linux");
        illinois.on_ack(&ack(105_000));
        close(illinois.beta, 0.125);
        illinois.on_ack(&Ack { recovering: 1, ..ack(195_000) });
        illinois.on_loss(&Loss { sent_at: Time(1), ..Loss::default() });
        close(illinois.beta, 0.5);
    }

    #[test]
    fn a_time_out_forgets_what_was_learned() {
        let mut illinois = illinois("linux");
        illinois.on_ack(&ack(200_000));
        illinois.on_loss(&Loss { kind: LossKind::Timeout, ..Loss::default() });
        close(illinois.window.cwnd, 1.0);
        close(illinois.alpha, 1.0);
        close(illinois.beta, 0.5);
        assert!(!illinois.above);
    }

    #[test]
    fn nothing_grows_in_recovery_or_while_the_window_is_not_used() {
        let mut illinois = illinois("linux");
        illinois.on_ack(&Ack { recovering: 1, ..ack(100_000) });
        illinois.on_ack(&Ack { cwnd_limited: 0, ..ack(100_000) });
        close(illinois.window.cwnd, 100.0);
    }
}
