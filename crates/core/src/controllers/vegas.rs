//! Vegas (Brakmo and Peterson 1995): keeps a few packets in the queue, judged once per round trip.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::units::{Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "vegas",
    about: "keeps two to four packets in the queue, judged by the round trip",
    source: "Brakmo and Peterson 1995; Linux tcp_vegas.c; ns-3 tcp-vegas.cc",
    params: &[
        Param {
            name: "variant",
            about: "whose rules: `linux` halves on a loss and judges by round-trip samples, `ns3` takes \
                    one packet off on a loss and judges by the smoothed round trip, as 3.37 does",
            kind: ParamKind::Choice(&["linux", "ns3"]),
        },
        Param {
            name: "alpha_packets",
            about: "fewer of its packets in the queue: grow (source: Linux and ns-3, alpha)",
            kind: ParamKind::Number { default: 2.0, min: 0.0, max: 1000.0 },
        },
        Param {
            name: "beta_packets",
            about: "more of its packets in the queue: shrink (source: Linux and ns-3, beta)",
            kind: ParamKind::Number { default: 4.0, min: 0.0, max: 1000.0 },
        },
        Param {
            name: "gamma_packets",
            about: "more of its packets in the queue end slow start (source: Linux and ns-3, gamma)",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 1000.0 },
        },
    ],
    build: |flow, params| Box::new(Vegas::new(flow, params)),
};

/// Steps by one packet per round trip, up or down, in whole packets.
#[derive(Clone, Debug)]
pub struct Vegas {
    window: Window,
    ns3: bool,
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// Smallest round trip of the flow; `Span::MAX` before the first.
    base: Span,
    /// ns-3's smoothed round trip, which stands still during a repair; zero before the first sample.
    smoothed: Span,
    round: Round,
    /// Whether its rules hold; after a loss they begin anew with the first ACK that is not part of
    /// the repair.
    open: bool,
}

/// What is known of the present round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The ACK of a packet sent at or after this ends the round (`linux`).
    start: Time,
    /// What has been delivered when everything has that was in flight at its beginning; this ends
    /// the round, one ACK earlier (`ns3`).
    end: u64,
    /// Smallest round trip in it; `Span::MAX` before the first.
    min: Span,
    /// Packets acknowledged with a sample.
    samples: f64,
}

impl Round {
    fn new(start: Time, end: u64) -> Self {
        Self { start, end, min: Span::MAX, samples: 0.0 }
    }

    /// Begins with an ACK.
    fn after(ack: &Ack) -> Self {
        Self::new(ack.now, ack.delivered.0.saturating_add(ack.inflight.0))
    }
}

impl Vegas {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        Self {
            window: Window::new(flow),
            ns3: params.choice("variant") == "ns3",
            alpha: params.number("alpha_packets"),
            beta: params.number("beta_packets"),
            gamma: params.number("gamma_packets"),
            base: Span::MAX,
            smoothed: Span::ZERO,
            round: Round::new(flow.start, 0),
            open: true,
        }
    }

    /// ns-3 samples the oldest packet in flight unless it was sent again, so not during a repair, nor at
    /// its end. Its first estimate holds the handshake's sample, which only the sender knows.
    fn smooth(&mut self, ack: &Ack) -> Span {
        if self.smoothed == Span::ZERO {
            self.smoothed = ack.srtt;
        } else if self.open && ack.rtt > Span::ZERO {
            self.smoothed = Span((7 * self.smoothed.0 + ack.rtt.0) / 8);
        }
        self.smoothed
    }

    fn sample(&mut self, ack: &Ack) {
        let rtt = if self.ns3 { self.smooth(ack) } else { ack.rtt };
        if rtt == Span::ZERO {
            return;
        }
        self.base = self.base.min(rtt);
        if !self.ns3 && ack.min_rtt > Span::ZERO {
            self.base = self.base.min(ack.min_rtt);
        }
        self.round.min = self.round.min.min(rtt);
        self.round.samples += self.window.packets(ack.acked);
    }

    /// The decision at the end of a round with enough samples.
    fn judge(&mut self, ack: &Ack) {
        let cwnd = self.window.cwnd.floor();
        let (base, rtt) = (self.base.0 as f64, self.round.min.0 as f64);
        let target = (cwnd * base / rtt).floor();
        let queued = if self.ns3 { cwnd - target } else { (cwnd * (rtt - base) / base).floor() };
        let grow = ack.cwnd_limited == 1;
        if self.window.in_slow_start() {
            if queued > self.gamma {
                self.window.cwnd = self.window.cwnd.min(target + 1.0);
                self.window.ssthresh = self.below_window();
            } else if grow {
                self.window.slow_start(self.window.packets(ack.acked));
            }
        } else if queued > self.beta {
            self.window.cwnd = cwnd - 1.0;
            self.window.ssthresh = self.below_window();
        } else if queued < self.alpha && grow {
            self.window.cwnd = cwnd;
            self.window.grow(1.0);
        }
        self.window.cwnd = self.window.cwnd.max(CWND_MIN);
        self.window.ssthresh = self.window.ssthresh.max(0.75 * self.window.cwnd);
    }

    fn ends_round(&self, ack: &Ack) -> bool {
        if self.ns3 { ack.delivered.0 >= self.round.end } else { ack.sent_at >= self.round.start }
    }

    fn slow_start(&mut self, ack: &Ack) {
        if ack.cwnd_limited == 1 {
            self.window.slow_start(self.window.packets(ack.acked));
        }
    }

    /// A threshold that leaves slow start where the window is.
    fn below_window(&self) -> f64 {
        self.window.ssthresh.min(self.window.cwnd - 1.0).max(CWND_MIN)
    }
}

impl Controller for Vegas {
    fn judges_rounds(&self) -> bool {
        true
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.recovering == 1 {
            self.open = false;
            return self.sample(ack);
        }
        if !self.open {
            self.open = true;
            self.round = Round::after(ack);
            if self.ns3 {
                // It counts the ACK that ends a repair as one of the repair.
                return self.slow_start(ack);
            }
        }
        self.sample(ack);
        if self.ends_round(ack) {
            if self.round.samples > FEW_SAMPLES {
                self.judge(ack);
            } else {
                self.window.on_ack(ack);
            }
            self.round = Round::after(ack);
        } else {
            self.slow_start(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let reduces = matches!(loss.kind, LossKind::Gap | LossKind::Timeout);
        self.open &= !reduces && !matches!(loss.kind, LossKind::Idle | LossKind::TimeoutAgain);
        if !reduces || !self.ns3 {
            return self.window.reduce(loss);
        }
        self.window.remember();
        self.window.ssthresh = self.below_window();
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        if loss.kind == LossKind::Timeout {
            self.window.cwnd = 1.0;
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }
}

/// Smallest window that a decision leaves, packets.
const CWND_MIN: f64 = 2.0;
/// So many samples could all be of delayed acknowledgements.
const FEW_SAMPLES: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::params::ParamValue;
    use crate::units::Bytes;

    /// A flow of `cwnd` packets with a base of 100 ms, its first round over at 1 s.
    fn vegas(variant: &str, cwnd: f64, ssthresh: f64) -> Vegas {
        let flow = FlowInfo {
            mss: Bytes(1000),
            initial_cwnd: Bytes(10_000),
            initial_ssthresh: Bytes(u64::MAX),
            recovery: Recovery::Sack,
            paces: false,
            start: Time(0),
            seed: 1,
        };
        let given = [("variant".to_owned(), ParamValue::Word(variant.to_owned()))];
        let mut vegas = Vegas::new(&flow, &Params::resolve(SPEC.params, &given).unwrap());
        vegas.base = Span::from_millis(100);
        vegas.round = Round::new(Time::from_secs_f64(1.0), 1);
        (vegas.window.cwnd, vegas.window.ssthresh) = (cwnd, ssthresh);
        vegas
    }

    fn ack(sent_s: f64, now_s: f64, rtt_ms: u64) -> Ack {
        Ack {
            now: Time::from_secs_f64(now_s),
            sent_at: Time::from_secs_f64(sent_s),
            rtt: Span::from_millis(rtt_ms),
            srtt: Span::from_millis(rtt_ms),
            acked: Bytes(1000),
            // What was in flight at 1 s has arrived when a packet sent later does.
            delivered: Bytes(u64::from(sent_s >= 1.0)),
            cwnd_limited: 1,
            ..Ack::default()
        }
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }

    /// Three samples of a round, then the ACK that ends it at 1.2 s.
    fn round(vegas: &mut Vegas, rtt_ms: u64) {
        (0..3).for_each(|_| vegas.on_ack(&ack(0.95, 1.1, rtt_ms)));
        vegas.on_ack(&ack(1.0, 1.2, rtt_ms));
    }

    fn after_round(variant: &str, (cwnd, ssthresh): (f64, f64), rtt_ms: u64) -> (f64, f64) {
        let mut vegas = vegas(variant, cwnd, ssthresh);
        round(&mut vegas, rtt_ms);
        (vegas.window.cwnd, vegas.window.ssthresh)
    }

    #[test]
    fn fewer_than_alpha_in_the_queue_add_one_packet() {
        assert_eq!(after_round("linux", (50.0, 40.0), 102), (51.0, 40.0)); // 1 queued
    }

    #[test]
    fn alpha_to_beta_in_the_queue_change_nothing() {
        assert_eq!(after_round("linux", (50.0, 40.0), 104), (50.0, 40.0)); // 2
        assert_eq!(after_round("linux", (50.0, 40.0), 108), (50.0, 40.0)); // 4
    }

    #[test]
    fn more_than_beta_in_the_queue_take_one_packet_off() {
        assert_eq!(after_round("linux", (50.0, 48.0), 110), (49.0, 48.0)); // 5
        assert_eq!(after_round("linux", (50.0, 50.0), 110), (49.0, 48.0)); // threshold below it
    }

    #[test]
    fn the_threshold_follows_at_three_quarters_of_the_window() {
        assert_eq!(after_round("linux", (51.0, 10.0), 102), (52.0, 39.0));
    }

    #[test]
    fn more_than_gamma_in_the_queue_end_slow_start_at_the_rate_that_came_through() {
        // Three packets on, ⌊53·100/125⌋ + 1, and a threshold just below: slow start is over.
        assert_eq!(after_round("linux", (50.0, 1000.0), 125), (43.0, 42.0));
        let slow = after_round("linux", (50.0, 1000.0), 102); // 1 is not more than 1
        assert_eq!(slow, (54.0, 1000.0));
    }

    #[test]
    fn ns3_rounds_the_queue_up_where_linux_rounds_it_down() {
        assert_eq!(after_round("ns3", (50.0, 40.0), 109), (49.0, 40.0)); // 50 - ⌊45.9⌋ = 5
        assert_eq!(after_round("linux", (50.0, 40.0), 109), (50.0, 40.0)); // ⌊4.5⌋ = 4
    }

    #[test]
    fn the_smallest_round_trip_of_a_round_counts() {
        let mut vegas = vegas("linux", 50.0, 40.0);
        vegas.on_ack(&ack(0.95, 1.1, 101));
        round(&mut vegas, 120);
        close(vegas.window.cwnd, 51.0);
        assert_eq!(vegas.round.min, Span::MAX);
        assert_eq!(vegas.round.start, Time::from_secs_f64(1.2));
    }

    #[test]
    fn ns3_judges_by_the_smoothed_round_trip() {
        for (variant, cwnd) in [("linux", 49.0), ("ns3", 51.0)] {
            let mut vegas = vegas(variant, 50.0, 40.0);
            let smooth = |ack: Ack| Ack { srtt: Span::from_millis(100), ..ack };
            (0..3).for_each(|_| vegas.on_ack(&smooth(ack(0.95, 1.1, 112))));
            vegas.on_ack(&smooth(ack(1.0, 1.2, 112)));
            close(vegas.window.cwnd, cwnd);
        }
    }

    #[test]
    fn an_ns3_round_ends_with_what_was_in_flight_at_its_beginning() {
        for (variant, ends) in [("linux", false), ("ns3", true)] {
            let mut vegas = vegas(variant, 50.0, 40.0);
            let begins =
                Ack { delivered: Bytes(10_000), inflight: Bytes(4000), ..ack(1.0, 1.2, 100) };
            vegas.on_ack(&begins);
            for packet in 1..=4 {
                // Sent before the round began.
                vegas.on_ack(&Ack {
                    delivered: Bytes(10_000 + 1000 * packet),
                    ..ack(1.1, 1.25 + 0.01 * packet as f64, 100)
                });
            }
            assert_eq!(vegas.window.cwnd > 50.5, ends, "{variant}: {}", vegas.window.cwnd);
        }
    }

    #[test]
    fn ns3_takes_no_round_trip_during_a_repair_nor_at_its_end() {
        let mut vegas = vegas("ns3", 50.0, 40.0);
        vegas.on_ack(&ack(0.95, 1.1, 120));
        vegas.on_loss(&Loss { inflight: Bytes(50_000), ..Loss::default() });
        vegas.on_ack(&Ack { recovering: 1, ..ack(0.95, 1.2, 100) });
        vegas.on_ack(&ack(1.1, 1.3, 100));
        assert_eq!(vegas.smoothed, Span::from_millis(120));
        vegas.on_ack(&ack(1.1, 1.3, 112));
        assert_eq!(vegas.smoothed, Span::from_millis(119));
    }

    #[test]
    fn two_samples_are_too_few_and_reno_grows() {
        let mut vegas = vegas("linux", 50.0, 40.0);
        vegas.on_ack(&ack(0.95, 1.1, 120));
        vegas.on_ack(&ack(1.0, 1.2, 120));
        close(vegas.window.cwnd, 50.0 + 1.0 / 50.0);
    }

    #[test]
    fn between_round_ends_only_slow_start_grows() {
        let mut vegas = vegas("linux", 50.0, 40.0);
        vegas.on_ack(&ack(0.95, 1.1, 100));
        close(vegas.window.cwnd, 50.0);
        vegas.window.ssthresh = 60.0;
        vegas.on_ack(&ack(0.95, 1.1, 100));
        close(vegas.window.cwnd, 51.0);
    }

    #[test]
    fn a_loss_halves_in_linux_and_takes_one_packet_off_in_ns3() {
        let loss = Loss { inflight: Bytes(50_000), ..Loss::default() };
        for (variant, ssthresh, left) in
            [("linux", 60.0, 25.0), ("ns3", 60.0, 49.0), ("ns3", 40.0, 40.0)]
        {
            let mut vegas = vegas(variant, 50.0, ssthresh);
            vegas.on_loss(&loss);
            assert_eq!((vegas.window.cwnd, vegas.window.ssthresh), (left, left), "{variant}");
        }
    }

    #[test]
    fn the_floor_is_two_packets() {
        let mut vegas = vegas("ns3", 2.0, 1.0);
        vegas.on_loss(&Loss::default());
        close(vegas.window.cwnd, 2.0);
        assert_eq!(after_round("linux", (2.0, 1.0), 400), (2.0, 2.0));
    }

    #[test]
    fn it_begins_a_fresh_round_after_a_repair() {
        let mut vegas = vegas("linux", 50.0, 40.0);
        (0..3).for_each(|_| vegas.on_ack(&ack(0.95, 1.1, 120)));
        vegas.on_loss(&Loss { inflight: Bytes(50_000), ..Loss::default() });
        vegas.on_ack(&Ack { recovering: 1, ..ack(1.0, 1.2, 120) });
        vegas.on_ack(&ack(1.1, 1.3, 120));
        close(vegas.window.cwnd, 25.0);
        assert_eq!(vegas.round.start, Time::from_secs_f64(1.3));
        assert!((vegas.round.samples - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut vegas = vegas("linux", 50.0, 40.0);
        (0..3).for_each(|_| vegas.on_ack(&ack(0.95, 1.1, 100)));
        vegas.on_ack(&Ack { cwnd_limited: 0, ..ack(1.0, 1.2, 100) });
        close(vegas.window.cwnd, 50.0);
    }
}
