//! Rules of `DualPI2`, and its decisions beside those of RFC 9332's pseudo-code.
use super::*;
use std::collections::VecDeque;

const MS: fn(u64) -> Span = Span::from_millis;

fn at(millis: u64) -> Time {
    Time(0) + MS(millis)
}

fn packet(seq: u64, ect: Ect) -> Packet {
    Packet { seq, size: 1500, ect, ..Packet::default() }
}

/// A queue whose controller has come to this base probability.
fn steady(base: f64) -> Dualpi2 {
    let config = Config { alpha: 0.0, beta: 0.0, ..Config::default() };
    Dualpi2 { base, ..Dualpi2::new(config) }
}

/// Sends `count` packets of a kind through a queue that nothing waits in for long.
fn through(queue: &mut Dualpi2, ect: Ect, count: u64) -> (u64, u64) {
    let (mut marked, mut dropped) = (0, Vec::new());
    for seq in 0..count {
        queue.enqueue(Time(seq), packet(seq, ect), &mut Rng::new(0), &mut dropped);
        let sent = queue.dequeue(Time(seq), &mut dropped);
        marked += u64::from(sent.is_some_and(|packet| packet.ce));
    }
    (marked, dropped.len() as u64)
}

// Probabilities

#[test]
fn classic_packets_are_hit_with_the_square_and_low_latency_packets_with_twice_the_base() {
    for (ect, marks, drops) in [(Ect::Not, 0, 100), (Ect::Zero, 100, 0), (Ect::One, 2000, 0)] {
        let (marked, dropped) = through(&mut steady(0.1), ect, 10_000);
        let near = marked.abs_diff(marks) <= 1 && dropped.abs_diff(drops) <= 1;
        assert!(near, "{ect:?}: {marked} marked, {dropped} dropped");
    }
}

#[test]
fn the_controller_raises_the_base_above_the_target_and_lowers_it_below() {
    let mut queue = Dualpi2::new(Config::default());
    queue.update(MS(25));
    // 0.16 · 10 ms + 3.2 · 25 ms
    assert!((queue.base - 0.0816).abs() < 1e-12, "{}", queue.base);
    queue.update(MS(25));
    assert!((queue.base - 0.0832).abs() < 1e-12, "{}", queue.base);
    queue.update(MS(5));
    assert!((queue.base - 0.0176).abs() < 1e-12, "{}", queue.base);
    (0..100).for_each(|_| queue.update(Span::ZERO));
    assert!(queue.base.abs() < f64::EPSILON, "{}", queue.base);
    queue.update(MS(60_000));
    assert!((queue.base - 1.0).abs() < f64::EPSILON, "{}", queue.base);
}

#[test]
fn the_controller_reads_the_longer_of_the_delays_every_sixteen_milliseconds() {
    for ect in [Ect::Not, Ect::One] {
        let mut queue = Dualpi2::new(Config::default());
        let mut dropped = Vec::new();
        queue.enqueue(at(6), packet(0, ect), &mut Rng::new(0), &mut dropped);
        queue.enqueue(at(15), packet(1, ect), &mut Rng::new(0), &mut dropped);
        assert_eq!(queue.delay, Span::ZERO);
        queue.enqueue(at(16), packet(2, ect), &mut Rng::new(0), &mut dropped);
        assert_eq!(queue.delay, MS(10));
        queue.enqueue(at(100), packet(3, ect), &mut Rng::new(0), &mut dropped);
        assert_eq!((queue.delay, queue.next_update), (MS(90), at(112)));
    }
}

#[test]
fn an_idle_hour_is_passed_over_and_leaves_no_probability() {
    let mut queue = Dualpi2 { base: 0.5, ..Dualpi2::new(Config::default()) };
    queue.enqueue(at(3_600_000), packet(0, Ect::Not), &mut Rng::new(0), &mut Vec::new());
    assert!(queue.base.abs() < f64::EPSILON);
    assert!(queue.next_update > at(3_600_000) && queue.next_update <= at(3_600_016));
}

// Step

#[test]
fn low_latency_packets_that_waited_a_millisecond_are_marked_unless_alone() {
    let marks = |waited_us: u64, count: u64, ect: Ect| {
        let mut queue = steady(0.0);
        let mut dropped = Vec::new();
        (0..count).for_each(|seq| {
            queue.enqueue(Time(0), packet(seq, ect), &mut Rng::new(0), &mut dropped);
        });
        let now = Time(0) + Span::from_micros(waited_us);
        let sent: Vec<Packet> = std::iter::from_fn(|| queue.dequeue(now, &mut dropped)).collect();
        sent.iter().filter(|packet| packet.ce).count()
    };
    assert_eq!(marks(999, 100, Ect::One), 0);
    // The spacing of hits lets the very first of them pass; the last is alone.
    assert_eq!(marks(1000, 100, Ect::One), 98);
    assert_eq!(marks(1000, 1, Ect::One), 0);
    assert_eq!(marks(1000, 100, Ect::Zero), 0);
}

// Classifier

#[test]
fn marked_and_ect_1_packets_go_first_and_the_echo_of_an_ack_is_no_mark() {
    let mut queue = steady(0.0);
    let mut dropped = Vec::new();
    let marked = Packet { ce: true, ..packet(3, Ect::Zero) };
    let ack = Packet { ce: true, kind: Kind::Ack, ..packet(4, Ect::Not) };
    for packet in [packet(0, Ect::Not), packet(1, Ect::Zero), packet(2, Ect::One), marked, ack] {
        queue.enqueue(Time(0), packet, &mut Rng::new(0), &mut dropped);
    }
    // Without a share of the link, classic packets wait for the others.
    queue.classic_weight = 0;
    let sent = std::iter::from_fn(|| queue.dequeue(Time(0), &mut dropped).map(|sent| sent.seq));
    assert_eq!(sent.collect::<Vec<_>>(), [2, 3, 0, 1, 4]);
}

// Scheduler

#[test]
fn while_both_kinds_wait_classic_packets_get_their_share_of_the_bytes() {
    for share in [0.1, 0.25] {
        let mut queue = steady(0.0);
        queue.classic_weight = (share * WEIGHTS as f64) as i64;
        let mut dropped = Vec::new();
        for seq in 0..4000 {
            let low = Packet { size: 500, ..packet(seq, Ect::One) };
            queue.enqueue(Time(0), low, &mut Rng::new(0), &mut dropped);
            queue.enqueue(Time(0), packet(seq, Ect::Not), &mut Rng::new(0), &mut dropped);
        }
        let sent: Vec<Packet> =
            (0..2000).filter_map(|_| queue.dequeue(Time(0), &mut dropped)).collect();
        let bytes = |low: bool| -> u32 {
            let of = |packet: &&Packet| (packet.ect == Ect::One) == low;
            sent.iter().filter(of).map(|packet| packet.size).sum()
        };
        let found = f64::from(bytes(false)) / f64::from(bytes(false) + bytes(true));
        assert!((found - share).abs() < 0.005, "{found} of {share}");
    }
}

#[test]
fn a_queue_that_was_alone_is_owed_nothing() {
    let mut queue = steady(0.0);
    let mut dropped = Vec::new();
    for seq in 0..1000 {
        queue.enqueue(Time(0), packet(seq, Ect::One), &mut Rng::new(0), &mut dropped);
        queue.dequeue(Time(0), &mut dropped);
    }
    queue.enqueue(Time(0), packet(0, Ect::Not), &mut Rng::new(0), &mut dropped);
    queue.enqueue(Time(0), packet(1, Ect::One), &mut Rng::new(0), &mut dropped);
    assert_eq!(queue.dequeue(Time(0), &mut dropped).map(|sent| sent.seq), Some(1));
}

// Overload

#[test]
fn when_every_low_latency_packet_would_be_marked_both_kinds_are_dropped_with_the_square() {
    for (base, drops) in [(0.499, false), (0.5, true), (0.8, true)] {
        let expected = (base * base * 10_000.0) as u64;
        for ect in [Ect::One, Ect::Zero] {
            let (marked, dropped) = through(&mut steady(base), ect, 10_000);
            let wanted = if drops { expected } else { 0 };
            assert!(dropped.abs_diff(wanted) <= 1, "{base} {ect:?}: {dropped}");
            let rest = match (ect, drops) {
                (Ect::One, false) => (2.0 * base * 10_000.0) as u64,
                (Ect::One, true) => 10_000 - dropped,
                (_, false) => expected,
                (_, true) => 0,
            };
            assert!(marked.abs_diff(rest) <= 2, "{base} {ect:?}: {marked}");
        }
        assert!(through(&mut steady(base), Ect::Not, 10_000).1.abs_diff(expected) <= 1);
    }
}

#[test]
fn what_does_not_fit_is_dropped_at_the_tail() {
    let limit = DropTail { packets: 2, bytes: u64::MAX };
    let mut queue = Dualpi2::new(Config { limit, ..Config::default() });
    let mut dropped = Vec::new();
    for (seq, ect) in [(0, Ect::One), (1, Ect::Not), (2, Ect::One)] {
        queue.enqueue(Time(0), packet(seq, ect), &mut Rng::new(0), &mut dropped);
    }
    assert_eq!(dropped, [packet(2, Ect::One)]);
    assert_eq!((queue.packets(), queue.bytes()), (2, 3000));
}

// Beside the RFC

/// RFC 9332's pseudo-code, figure by figure: its timer is an event of its own, and nothing is shared with the
/// queue above but the scheduler's rule, which the RFC leaves open.
struct Figures {
    config: Config,
    lq: VecDeque<(Time, Packet)>,
    cq: VecDeque<(Time, Packet)>,
    p: f64,
    p_cl: f64,
    p_c: f64,
    prevq: f64,
    lq_count: f64,
    cq_count: f64,
    credit: i128,
}

impl Figures {
    fn new(config: Config) -> Self {
        let (lq, cq) = (VecDeque::new(), VecDeque::new());
        let (p, p_cl, p_c, prevq) = (0.0, 0.0, 0.0, 0.0);
        Self { config, lq, cq, p, p_cl, p_c, prevq, lq_count: 0.0, cq_count: 0.0, credit: 0 }
    }

    fn dualpi2_enqueue(&mut self, now: Time, packet: Packet) -> bool {
        if (self.lq.len() + self.cq.len()) as u64 >= self.config.limit.packets {
            return false;
        }
        let ecn = match (packet.ce, packet.ect) {
            (true, _) => 3,
            (false, Ect::Zero) => 2,
            (false, Ect::One) => 1,
            (false, Ect::Not) => 0,
        };
        if ecn % 2 == 1 { &mut self.lq } else { &mut self.cq }.push_back((now, packet));
        true
    }

    fn recur(count: &mut f64, likelihood: f64) -> bool {
        *count += likelihood;
        if *count > 1.0 {
            *count -= 1.0;
            return true;
        }
        false
    }

    fn scheduler_takes_lq(&mut self) -> bool {
        match (self.lq.len(), self.cq.len()) {
            (0, _) | (_, 0) => {
                self.credit = 0;
                !self.lq.is_empty()
            }
            _ => self.credit <= 0,
        }
    }

    fn dualpi2_dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let weight = i128::from((self.config.classic_share * 65_536.0) as i64);
        while self.lq.len() + self.cq.len() > 0 {
            if self.scheduler_takes_lq() {
                let more = self.lq.len() > 1;
                let (stamp, mut packet) = self.lq.pop_front()?;
                if self.p_cl < 1.0 {
                    let native =
                        if now - stamp >= self.config.step && more { 1.0 } else { 0.0_f64 };
                    if Self::recur(&mut self.lq_count, native.max(self.p_cl)) {
                        packet.ce = true;
                    }
                } else {
                    if Self::recur(&mut self.lq_count, self.p_c) {
                        dropped.push(packet);
                        continue;
                    }
                    if Self::recur(&mut self.lq_count, self.p_cl) {
                        packet.ce = true;
                    }
                }
                self.credit += weight * i128::from(packet.size) * i128::from(!self.cq.is_empty());
                return Some(packet);
            }
            let (_, mut packet) = self.cq.pop_front()?;
            if Self::recur(&mut self.cq_count, self.p_c) {
                let p_cmax = (1.0 / (self.config.coupling * self.config.coupling)).min(1.0);
                if packet.ect == Ect::Not || self.p_c >= p_cmax {
                    dropped.push(packet);
                    continue;
                }
                packet.ce = true;
            }
            let cost = (65_536 - weight) * i128::from(packet.size);
            self.credit -= cost * i128::from(!self.lq.is_empty());
            return Some(packet);
        }
        None
    }

    fn dualpi2_update(&mut self, now: Time) {
        let time = |queue: &VecDeque<(Time, Packet)>| {
            queue.front().map_or(0.0, |(stamp, _)| (now - *stamp).as_secs_f64())
        };
        let curq = f64::max(time(&self.cq), time(&self.lq));
        let target = self.config.target.as_secs_f64();
        self.p =
            self.p + self.config.alpha * (curq - target) + self.config.beta * (curq - self.prevq);
        self.p = self.p.clamp(0.0, 1.0);
        self.p_cl = f64::min(self.p * self.config.coupling, 1.0);
        self.p_c = self.p * self.p;
        self.prevq = curq;
    }
}

/// Settings drawn around the defaults.
fn drawn_config(rng: &mut Rng) -> Config {
    let mut scale = |low: f64, high: f64| rng.uniform_in(low.ln(), high.ln()).exp();
    Config {
        target: Span::from_secs_f64(scale(0.001, 0.05)),
        t_update: Span::from_secs_f64(scale(0.001, 0.05)),
        alpha: scale(0.01, 2.0),
        beta: scale(0.1, 20.0),
        coupling: scale(0.5, 4.0),
        step: Span::from_secs_f64(scale(0.0001, 0.01)),
        classic_share: scale(0.01, 0.9),
        limit: DropTail { packets: scale(2.0, 1000.0) as u64, bytes: u64::MAX },
    }
}

/// Runs both side by side over arrivals and departures drawn from a seed; returns what was sent, marked,
/// dropped.
fn side_by_side(seed: u64) -> [u64; 3] {
    let mut rng = Rng::new(seed);
    let config = drawn_config(&mut rng);
    let (mut ours, mut figures) = (Dualpi2::new(config), Figures::new(config));
    let load = rng.uniform_in(0.5, 3.0);
    let (mut now, mut timer) = (Time(0), Time(0) + config.t_update);
    let mut counts = [0; 3];
    for seq in 0..3000 {
        // Now and then a pause, in which queues stand still and many updates fall due.
        let pause = if rng.chance(0.002) { 1000 } else { 1 };
        now += Span(rng.below(2_000_000) * pause);
        while timer <= now {
            figures.dualpi2_update(timer);
            timer += config.t_update;
        }
        let (mut dropped, mut theirs) = (Vec::new(), Vec::new());
        if rng.chance(load / (1.0 + load)) {
            let ect = [Ect::Not, Ect::Zero, Ect::One][rng.below(3) as usize];
            let ce = ect != Ect::Not && rng.chance(0.1);
            let packet = Packet { ce, size: 40 + rng.below(1461) as u32, ..packet(seq, ect) };
            ours.enqueue(now, packet, &mut Rng::new(0), &mut dropped);
            if !figures.dualpi2_enqueue(now, packet) {
                theirs.push(packet);
            }
        } else {
            let sent = ours.dequeue(now, &mut dropped);
            assert_eq!(sent, figures.dualpi2_dequeue(now, &mut theirs), "seed {seed}, step {seq}");
            counts[0] += u64::from(sent.is_some());
            counts[1] += u64::from(sent.is_some_and(|packet| packet.ce));
        }
        assert_eq!(dropped, theirs, "seed {seed}, step {seq}");
        counts[2] += dropped.len() as u64;
    }
    counts
}

/// `ACKADEMY_SEED` repeats one.
#[test]
fn every_decision_is_that_of_the_pseudo_code_of_rfc_9332() {
    let first = std::env::var("ACKADEMY_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let (first, count): (u64, u64) = first.map_or((0, 400), |seed| (seed, 1));
    println!("dualpi2: {count} sets of settings from ACKADEMY_SEED={first} on");
    let mut total = [0; 3];
    for seed in first..first + count {
        let counts = side_by_side(seed);
        total.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    // The draws reach every branch.
    assert!(count == 1 || total.iter().all(|&sum| sum > 10_000), "{total:?}");
}
