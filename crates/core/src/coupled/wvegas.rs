//! Weighted Vegas (Cao, Xu, Fu 2012): every subflow keeps packets in its queue, in proportion to its share of
//! the connection's rate, judged once per round trip.
use super::shared::{self, ABC, Counting, Group, HALF_OF, KERNEL, Rule, Subflow};
use crate::control::{Ack, Loss, LossKind};
use crate::coupled::{Scope, Spec};
use crate::params::{Param, ParamKind};
use crate::units::{Span, Time};

/// Entry of the table of coupled controllers.
pub const SPEC: Spec = Spec {
    name: "wvegas",
    about: "delay-based: ten packets in the queues of all subflows together, by their rates",
    source: "Cao et al. 2012; multipath-tcp v0.92 mptcp_wvegas.c",
    params: &[
        KERNEL,
        ABC,
        HALF_OF,
        Param {
            name: "initial_alpha_packets",
            about: "packets that a subflow keeps in its queue before its first weight, and at least (source: \
                    initial_alpha)",
            kind: ParamKind::Number { default: 2.0, min: 0.0, max: 1000.0 },
        },
        Param {
            name: "total_alpha_packets",
            about: "packets that all subflows keep in their queues together (source: total_alpha)",
            kind: ParamKind::Number { default: 10.0, min: 0.0, max: 1000.0 },
        },
        Param {
            name: "drain",
            about: "`on` halves a window whose queueing delay is twice its smallest, so that the queue runs \
                    empty (source: multipath-tcp v0.92); `off` never does (proposed)",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Param {
            name: "gamma_packets",
            about: "more packets than this in the queue end slow start (source: gamma)",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 1000.0 },
        },
    ],
    scope: Scope::Connection,
    single: "vegas",
    build: |params| {
        let counting = Counting::new(params);
        let number = |name| params.number(name);
        let rule = Wvegas {
            counting,
            initial_alpha: number("initial_alpha_packets"),
            total_alpha: number("total_alpha_packets"),
            gamma: number("gamma_packets"),
            drains: params.choice("drain") == "on",
        };
        Box::new(Group::new(rule, counting))
    },
};

/// The rule. With one subflow its weight is one: Vegas with a target of `total_alpha`.
#[derive(Clone, Debug)]
pub struct Wvegas {
    counting: Counting,
    initial_alpha: f64,
    total_alpha: f64,
    gamma: f64,
    drains: bool,
}

/// What is kept of a subflow's delays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    /// Smallest round trip, s; zero before the first.
    base: f64,
    /// Sum and number of the round trips of this round, s and packets.
    sum: f64,
    samples: f64,
    /// Smallest queueing delay since the queue was drained, s; zero before the first.
    queued_min: f64,
    /// Packets to keep in the queue; zero before the first round.
    alpha: f64,
    /// Share of the connection's rate when it was last weighed.
    weight: f64,
    /// Packets per second when it was last weighed; zero since a time-out or a repair.
    rate: f64,
    /// The acknowledgement of a packet sent at or after this ends the round.
    round: Time,
    /// Whether the rules hold: not from a loss to the first acknowledgement after the repair.
    open: bool,
}

type Path = Subflow<Delays>;

impl Delays {
    /// The rules hold from here on, with nothing known of the queue.
    fn open(&mut self, initial_alpha: f64, now: Time) {
        let base = self.base;
        *self = Self { base, alpha: initial_alpha, weight: 1.0, round: now, open: true, ..*self };
        (self.queued_min, self.rate) = (0.0, 0.0);
        self.next_round(now);
    }

    fn next_round(&mut self, now: Time) {
        (self.sum, self.samples, self.round) = (0.0, 0.0, now);
    }

    fn sample(&mut self, rtt: Span, packets: f64) {
        if rtt == Span::ZERO {
            return;
        }
        let rtt = rtt.as_secs_f64();
        self.base = if self.base > 0.0 { self.base.min(rtt) } else { rtt };
        self.sum += rtt * packets;
        self.samples += packets;
    }
}

/// A threshold that leaves slow start where the window is.
fn below_window(path: &Path) -> f64 {
    path.window.ssthresh.min(path.window.cwnd - 1.0).max(CWND_MIN)
}

impl Wvegas {
    fn slow_start(&self, path: &mut Path, ack: &Ack) {
        if ack.cwnd_limited == 1 {
            path.slow_start(self.counting.packets(path, ack), self.counting);
        }
    }

    fn in_slow_start(&self, path: &Path) -> bool {
        path.window.in_slow_start()
            || self.counting.kernel && path.window.cwnd <= path.window.ssthresh
    }

    /// The decision at the end of a round with enough samples.
    fn judge(&self, set: &mut [Path], at: usize, ack: &Ack) {
        let path = &mut set[at];
        let Delays { base, sum, samples, .. } = path.memory;
        let rtt = sum / samples;
        let queued = self.whole(path.window.cwnd * (rtt - base) / rtt);
        if self.in_slow_start(path) {
            if queued > self.gamma {
                let target = (path.window.cwnd * base / rtt).floor() + 1.0;
                path.window.cwnd = path.window.cwnd.min(target);
                path.window.ssthresh = below_window(path);
            } else {
                self.slow_start(path, ack);
            }
        } else {
            if queued >= path.memory.alpha {
                self.weigh(set, at, rtt);
            }
            let path = &mut set[at];
            if queued > path.memory.alpha {
                path.window.grow(-1.0);
                path.window.ssthresh = below_window(path);
            } else if queued < path.memory.alpha && ack.cwnd_limited == 1 {
                path.window.grow(1.0);
            }
            if self.drains {
                drain(path, rtt);
            }
        }
        let window = &mut set[at].window;
        window.cwnd = window.cwnd.max(CWND_MIN);
        window.ssthresh = window.ssthresh.max(0.75 * window.cwnd);
    }

    fn whole(&self, packets: f64) -> f64 {
        if self.counting.kernel { packets.floor() } else { packets }
    }

    /// Weighs a subflow by its share of the rates that the others had when they were weighed.
    fn weigh(&self, set: &mut [Path], at: usize, rtt: f64) {
        set[at].memory.rate = set[at].window.cwnd / rtt;
        // The Linux code leaves out subflows without a sample in their round, which depends on how the
        // rounds happen to meet.
        let counts = |path: &&Path| !self.counting.kernel || path.memory.samples > 0.0;
        let total: f64 = set.iter().filter(counts).map(|path| path.memory.rate).sum();
        let memory = &mut set[at].memory;
        if total > 0.0 && memory.rate > 0.0 {
            memory.weight = memory.rate / total;
        }
        memory.alpha = (memory.weight * self.total_alpha).floor().max(self.initial_alpha);
    }
}

/// Lets the queue run empty when it is twice what it was at its smallest, so that the smallest round trip
/// is seen again. An empty queue has nothing to drain: the Linux code's clock never shows one.
fn drain(path: &mut Path, rtt: f64) {
    let memory = &mut path.memory;
    let queued = rtt - memory.base;
    if memory.queued_min <= 0.0 || queued < memory.queued_min {
        memory.queued_min = queued;
    }
    if queued > 0.0 && queued >= 2.0 * memory.queued_min {
        memory.queued_min = 0.0;
        path.window.cwnd = (path.window.cwnd * memory.base / (2.0 * rtt)).floor().max(CWND_MIN);
    }
}

impl Rule for Wvegas {
    type Memory = Delays;
    const JUDGES_ROUNDS: bool = true;

    fn on_ack(&mut self, set: &mut [Path], at: usize, ack: &Ack) {
        let path = &mut set[at];
        let packets = self.counting.packets(path, ack);
        if ack.recovering == 1 {
            path.memory.open = false;
            return path.memory.sample(ack.rtt, packets);
        }
        if !path.memory.open {
            path.memory.open(self.initial_alpha, ack.now);
        }
        path.memory.sample(ack.rtt, packets);
        if ack.sent_at < path.memory.round {
            return self.slow_start(path, ack);
        }
        if path.memory.samples > FEW_SAMPLES {
            self.judge(set, at, ack);
        } else {
            let counting = self.counting;
            shared::grow(set, at, ack, counting, |set, packets| {
                set[at].avoid_alone(packets, counting);
            });
        }
        set[at].memory.next_round(ack.now);
    }

    fn on_loss(&mut self, set: &mut [Path], at: usize, loss: &Loss) {
        let path = &mut set[at];
        path.reduce(loss, self.counting);
        match loss.kind {
            LossKind::Gap | LossKind::Timeout | LossKind::TimeoutAgain => path.memory.open = false,
            // The path may have changed meanwhile.
            LossKind::Idle => path.memory = Delays::default(),
            LossKind::More | LossKind::Deflate | LossKind::Spurious => {}
        }
        if matches!(loss.kind, LossKind::Timeout | LossKind::TimeoutAgain) {
            path.memory.rate = 0.0;
        }
    }
}

/// Smallest window that a decision leaves, packets.
const CWND_MIN: f64 = 2.0;
/// So many samples could all be of delayed acknowledgements.
const FEW_SAMPLES: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::super::shared::tests::Bench;
    use super::*;

    /// A path of 100 ms whose round of samples shows `queued` packets of a window of `cwnd` in the queue.
    fn path(cwnd: f64, queued: f64) -> Path {
        let mut path = Bench::new(&SPEC, &[], &[(cwnd, 0.1)]).subflows::<Delays>().remove(0);
        let rtt = 0.1 / (1.0 - queued / cwnd);
        path.memory = Delays {
            base: 0.1,
            sum: 10.0 * rtt,
            samples: 10.0,
            alpha: 2.0,
            weight: 1.0,
            queued_min: (rtt - 0.1) / 1.5,
            open: true,
            ..Delays::default()
        };
        path
    }

    fn rule() -> Wvegas {
        Wvegas {
            counting: Bench::counting(&SPEC, &[]),
            initial_alpha: 2.0,
            total_alpha: 10.0,
            gamma: 1.0,
            drains: true,
        }
    }

    fn judged(mut set: Vec<Path>, at: usize) -> Path {
        rule().judge(&mut set, at, &Bench::ack_of(0.1, 1, 0));
        set.swap_remove(at)
    }

    #[test]
    fn one_packet_more_below_the_target_and_one_less_above() {
        assert!((judged(vec![path(20.0, 1.0)], 0).window.cwnd - 21.0).abs() < 1e-9);
        assert!((judged(vec![path(40.0, 12.0)], 0).window.cwnd - 39.0).abs() < 1e-9);
    }

    #[test]
    fn alone_a_subflow_has_the_whole_target() {
        let path = judged(vec![path(40.0, 5.0)], 0);
        assert!((path.memory.alpha - 10.0).abs() < 1e-9);
        assert!((path.window.cwnd - 41.0).abs() < 1e-9, "5 of 10 packets: it grows");
    }

    #[test]
    fn the_target_is_shared_by_rate_in_whole_packets_of_at_least_two() {
        let mut other = path(60.0, 2.0);
        other.memory.rate = 1050.0;
        // 40 packets in 100 ms / (1 - 5 / 40): 350 a second, a quarter.
        assert!((judged(vec![path(40.0, 5.0), other.clone()], 0).memory.alpha - 2.0).abs() < 1e-9);
        other.memory.rate = 340.0;
        assert!((judged(vec![path(40.0, 5.0), other.clone()], 0).memory.alpha - 5.0).abs() < 1e-9);
        other.memory.rate = 35e6;
        assert!((judged(vec![path(40.0, 5.0), other], 0).memory.alpha - 2.0).abs() < 1e-9);
    }

    #[test]
    fn integers_leave_out_a_subflow_without_a_sample_in_its_round() {
        let mut other = path(60.0, 2.0);
        (other.memory.rate, other.memory.samples) = (340.0, 0.0);
        for (kernel, alpha) in [("off", 5.0), ("on", 10.0)] {
            let mut set = vec![path(40.0, 5.0), other.clone()];
            let counting = Bench::counting(&SPEC, &[("kernel", kernel)]);
            let rule = Wvegas { counting, ..rule() };
            rule.judge(&mut set, 0, &Bench::ack_of(0.1, 1, 0));
            assert!((set[0].memory.alpha - alpha).abs() < 1e-9, "kernel = {kernel}");
        }
    }

    #[test]
    fn the_target_stays_while_the_queue_is_below_it() {
        assert!((judged(vec![path(40.0, 1.5)], 0).memory.alpha - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_queue_twice_its_smallest_is_drained_once() {
        let mut full = path(40.0, 5.0);
        let rtt: f64 = 0.1 / (1.0 - 5.0 / 40.0);
        full.memory.queued_min = (rtt - 0.1) / 2.1;
        let path = judged(vec![full], 0);
        // 41 packets by the target, then half of what the path alone holds.
        assert!((path.window.cwnd - (41.0 * 0.1 / (2.0 * rtt)).floor()).abs() < 1e-9);
        assert!(path.memory.queued_min.abs() < 1e-12);
    }

    #[test]
    fn no_queue_is_drained_where_draining_is_off() {
        let mut set = vec![path(40.0, 5.0)];
        set[0].memory.queued_min = 1e-6;
        Wvegas { drains: false, ..rule() }.judge(&mut set, 0, &Bench::ack_of(0.1, 1, 0));
        assert!((set[0].window.cwnd - 41.0).abs() < 1e-9);
    }

    #[test]
    fn an_empty_queue_is_not_drained() {
        let mut empty = path(40.0, 0.0);
        empty.memory.queued_min = 0.0;
        assert!((judged(vec![empty], 0).window.cwnd - 41.0).abs() < 1e-9);
    }

    #[test]
    fn more_than_gamma_in_the_queue_ends_slow_start() {
        let mut path = path(40.0, 2.5);
        path.window.ssthresh = 1000.0;
        let path = judged(vec![path], 0);
        assert!((path.window.cwnd - 38.0).abs() < 1e-9, "{}", path.window.cwnd);
        assert!(!path.window.in_slow_start());
    }

    #[test]
    fn two_samples_are_too_few_and_grow_as_reno_does() {
        let mut bench = Bench::new(&SPEC, &[], &[(20.0, 0.1)]);
        bench.ack(0, 1);
        assert!((bench.window(0) - 20.05).abs() < 2e-3, "{}", bench.window(0));
    }

    #[test]
    fn after_a_repair_the_target_and_the_queue_are_learnt_anew_and_the_base_stays() {
        let mut set = vec![path(40.0, 5.0)];
        set[0].memory.alpha = 10.0;
        let mut rule = rule();
        rule.on_loss(&mut set, 0, &Bench::loss_of(40, LossKind::Gap));
        assert!((set[0].window.cwnd - 20.0).abs() < 1e-9);
        rule.on_ack(&mut set, 0, &Ack { recovering: 1, ..Bench::ack_of(0.12, 1, 0) });
        rule.on_ack(&mut set, 0, &Bench::ack_of(0.12, 1, 0));
        let memory = set[0].memory;
        assert!((memory.alpha - 2.0).abs() < 1e-9);
        assert!(memory.queued_min.abs() < 1e-12 && (memory.base - 0.1).abs() < 1e-9);
    }

    #[test]
    fn idling_forgets_the_smallest_round_trip() {
        let mut set = vec![path(40.0, 5.0)];
        let mut rule = rule();
        rule.on_loss(&mut set, 0, &Bench::loss_of(0, LossKind::Idle));
        rule.on_ack(&mut set, 0, &Bench::ack_of(0.3, 1, 0));
        assert!((set[0].memory.base - 0.3).abs() < 1e-9);
    }

    #[test]
    fn integers_leave_a_target_of_whole_packets_in_the_queue_as_it_is() {
        let mut rule = rule();
        rule.counting = Bench::counting(&SPEC, &[("kernel", "on")]);
        let mut set = vec![path(40.0, 10.5)];
        rule.judge(&mut set, 0, &Bench::ack_of(0.1, 1, 0));
        assert!((set[0].window.cwnd - 40.0).abs() < 1e-9);
    }
}
