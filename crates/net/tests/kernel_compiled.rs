//! Policies in fixed point: what the kernel computes, against what the engine in floating point does.
use crate::common::bench::Bench;
use crate::common::kernel::TcpInfo;
use crate::common::machine::{best_of, governs_flows, kept};
use crate::recorded::{Event, FLAGSHIP, Observer, Told, flows, observations, policy};
use ackademy::control::{Ack, FlowInfo, Loss, LossKind, Recovery};
use ackademy::controllers::shared::own_queue::{Law, Settings, is_misled_by_jitter};
use ackademy::controllers::shared::sensing::signals::Signals;
use ackademy::policy::{Policy, WhenSpec};
use ackademy::rng::Rng;
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy_net::kernel::compiled::Compiled;
use ackademy_net::kernel::compiled::ask::{Asked, Functions, Room};
use ackademy_net::kernel::compiled::layout::Delivery;
use ackademy_net::kernel::{Options, Registered};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Recorded observations of the comparison.
const OBSERVATIONS: usize = 100_000;

#[test]
fn a_network_in_the_kernel_answers_as_the_engine_does_to_recorded_observations() {
    if !governs_flows() {
        return;
    }
    let policy = policy(1, &FLAGSHIP, true, 1.0, None);
    let compiled = Compiled::network_of(&policy).expect("dense layers");
    let mut room = Room::new();
    let mut asked = Asked::load(&mut room, &compiled).expect("the verifier accepts it");
    let rows = observations(&policy, OBSERVATIONS, 1);
    let mut agent = policy.agent();
    let (mut largest, mut sum) = (0.0_f64, 0.0);
    for row in rows.chunks(compiled.inputs) {
        let own = asked.outputs(row).expect("an answer");
        for (own, exact) in own.iter().zip(agent.outputs(row)) {
            let difference = (own - f64::from(*exact)).abs();
            largest = largest.max(difference);
            sum += difference;
        }
    }
    let mean = sum / (rows.len() / compiled.inputs * 2) as f64;
    println!("outputs differ by {largest:.6} at most, {mean:.6} on average");
    assert!(largest < 2e-3, "{largest}");
}

#[test]
fn functions_in_fixed_point_are_those_of_the_library() {
    if !governs_flows() {
        return;
    }
    let policy = policy(1, &FLAGSHIP, true, 1.0, None);
    let compiled = Compiled::network_of(&policy).expect("dense layers");
    let mut room = Room::new();
    let mut asked = Asked::load(&mut room, &compiled).expect("the verifier accepts it");
    let mut rng = Rng::new(3);
    for _ in 0..20_000 {
        let number = rng.next_u64() >> rng.below(64);
        let Functions { log2, root, .. } = asked.functions(number).expect("an answer");
        let exact = (number.max(1) as f64).log2();
        assert!((log2 as f64 / f64::from(1 << 24) - exact).abs() < 4e-6, "log2 {number}");
        let root = root as u128;
        assert!(root * root <= u128::from(number), "root of {number}");
        assert!((root + 1) * (root + 1) > u128::from(number), "root of {number}");
        let x = rng.uniform_in(-12.0, 12.0);
        let exponent = (x * f64::from(1 << 24)) as i64;
        let exp2 = asked.functions(exponent as u64).expect("an answer").exp2 as f64 / 65536.0;
        assert!((exp2 - x.exp2()).abs() < 1e-5 * x.exp2() + 1e-5, "2^{x} is {exp2}");
        let number = (x * f64::from(1 << 14)) as i64;
        let tanh = asked.functions(number as u64).expect("an answer").tanh as f64 / 16384.0;
        let exact = (number as f64 / 16384.0).tanh();
        assert!((tanh - exact).abs() < 6e-5, "tanh {x} is {tanh}");
    }
}

/// How far a flow's decisions in the kernel were from those in floating point.
#[derive(Debug, Default)]
struct Differences {
    /// Whether the network acts on the law.
    acts: bool,
    /// Decisions that the guard left to the law.
    zeros: usize,
    /// Decisions that jitter would have misled.
    misled: usize,
    /// Decisions without contention.
    calm: usize,
    /// Of each feature that the policy sees, the largest.
    features: Vec<f64>,
    /// Of the windows, as a part, one for each decision.
    windows: Vec<f64>,
    /// How often the rules of the law held that are seldom needed, by [`Law::counters`].
    rules: BTreeMap<&'static str, f64>,
}

/// An acknowledgement as the kernel would tell of it: whole packets and microseconds.
fn in_kernels_units(ack: &Ack, packet: u64) -> (Ack, Delivery) {
    let micros = |span: Span| Span(span.0 / 1000 * 1000);
    let acked = (ack.acked.0 / packet) as u32;
    let found = (ack.inflight.max(ack.prior_inflight).0 / packet) as u32;
    let (rtt, min_rtt) = (micros(ack.rtt), micros(ack.min_rtt));
    let known = if ack.delivery_rate == Rate::UNLIMITED { Rate(0) } else { ack.delivery_rate };
    let rate_pps = known.0 as f64 / 8.0 / packet as f64;
    let own = Ack {
        rtt,
        min_rtt,
        rtt_max: Span::ZERO,
        batch_rtt_min: Span::ZERO,
        acked: Bytes(u64::from(acked) * packet),
        prior_inflight: Bytes(u64::from(found) * packet),
        inflight: Bytes::ZERO,
        ce_marked: Bytes::ZERO,
        ..*ack
    };
    let delivery = Delivery {
        now: ack.now.0,
        sent_at: ack.sent_at.0,
        rtt: rtt.0,
        min_rtt: min_rtt.0,
        rate: (rate_pps * 65536.0) as u64,
        acked,
        found,
        app_limited: u32::from(ack.app_limited == 1),
        growing: u32::from(ack.recovering == 0 && ack.cwnd_limited == 1),
        ..Delivery::default()
    };
    (own, delivery)
}

/// Tells both of the same flow. After each decision the kernel's window is set to the other's, so that what is
/// compared is one decision.
fn replay(
    told: &Told,
    policy: &ackademy::policy::Policy,
    asked: &mut Asked<'_>,
    found: &mut Differences,
) {
    let flow = told.flow;
    let packet = flow.mss.0;
    let mut law = Law::new(&flow, &Settings::default());
    let mut signals = Signals::new(flow.mss, flow.start);
    let mut observer = Observer::new(policy, &flow);
    let packets = |bytes: Bytes| (bytes.0 / packet).min(0x7fff_ffff) as u32;
    let (cwnd, ssthresh) = (packets(flow.initial_cwnd), packets(flow.initial_ssthresh));
    asked.start(flow.start, cwnd, ssthresh, flow.seed).expect("started");
    for event in &told.events {
        match event {
            Event::Ack(ack) if ack.acked.0 >= packet => {
                let (ack, delivery) = in_kernels_units(ack, packet);
                let decided = asked.on_delivery(delivery).expect("an answer");
                let ack = Ack { srtt: asked.srtt(), ..ack };
                signals.on_ack(&ack);
                law.on_ack(&ack);
                let noted = observer.on_ack(&ack);
                assert_eq!(
                    noted.is_some(),
                    decided,
                    "a decision falls due for both at {}",
                    ack.now.0
                );
                let Some(noted) = noted else { continue };
                signals.end(ack.now);
                let guarded = policy.guarded_ranges().is_some();
                let misled = guarded && is_misled_by_jitter(signals.last(), noted.action);
                found.misled += usize::from(misled);
                let when = policy.spec().action.when;
                // A law without a policy asks, too: it holds a rate under contention.
                let asks = when == WhenSpec::Contention || !found.acts;
                let calm = asks && !law.update_contention(signals.last());
                found.calm += usize::from(calm);
                found.zeros += usize::from(noted.action.iter().all(|value| value.abs() < 1e-12));
                let acts = found.acts && !misled && !calm;
                let action = if acts { noted.action } else { [0.0; 2] };
                law.on_interval(signals.last(), action);
                let seen = policy.spec().observation.features.len();
                let newest = asked.newest(seen, 8);
                let exact = &noted.observation[noted.observation.len() - seen..];
                for ((largest, own), exact) in found.features.iter_mut().zip(newest).zip(exact) {
                    *largest = largest.max((own - f64::from(*exact)).abs());
                }
                let (own, exact) = (asked.allowed().0, law.cwnd_packets());
                found.windows.push((own / exact - 1.0).abs());
                asked.follow(exact);
            }
            Event::Ack(_) => {}
            Event::Loss(loss) => {
                let lost = (loss.lost.0 / packet) as u32;
                let loss = Loss { lost: Bytes(u64::from(lost) * packet), ..*loss };
                if matches!(loss.kind, LossKind::Deflate | LossKind::Spurious) {
                    continue;
                }
                signals.on_loss(&loss);
                law.on_loss(&loss);
                observer.on_loss(&loss);
                asked.on_loss(loss.now, lost, loss.kind).expect("an answer");
            }
        }
    }
    for (name, times) in law.counters() {
        *found.rules.entry(name).or_default() += times;
    }
}

/// Decisions of each comparison; each takes about a hundred acknowledgements, a system call each. One error whose
/// sign differs within rounding shows in up to eight of them: of few decisions they would be too large a part.
const DECISIONS: usize = 12_000;

/// Compares the decisions of a policy with drawn weights, or those of the law alone, and prints how far they differ. Of
/// ten thousand windows `beyond` may differ by more than 1 %.
fn compare(label: &str, last: Option<f64>, seen: Option<f64>, beyond: usize) {
    let policy = policy(1, &FLAGSHIP, false, last.unwrap_or(0.0), seen);
    let found = compare_flows(label, &policy, last.is_some(), beyond);
    let zeros = found.zeros;
    // However fast an error is corrected: without one whose sign differs, windows are the same within rounding.
    let most = found.windows[(found.windows.len() - 1) * 99 / 100];
    assert!(most < 1e-3, "{label}: {most}");
    if seen.is_some() {
        let Differences { misled, calm, .. } = found;
        println!(
            "{label}: the law had {zeros} unlike training, {misled} by jitter, {calm} calm ones"
        );
        assert!(calm > 100 && calm + 100 < found.windows.len(), "{calm}");
        assert!(found.misled > 100, "{}", found.misled);
        assert!(zeros > 100 && zeros + 100 < found.windows.len(), "{zeros}");
    }
}

/// The policy that is shipped, or its network acting at all times.
fn shipped(when: WhenSpec) -> Policy {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/flagship/");
    let tables = std::fs::read_to_string(format!("{folder}policy.toml"));
    let mut spec = tables.expect("a shipped policy");
    if when == WhenSpec::Always {
        assert!(spec.contains("when = \"contention\"\n"), "{spec}");
        spec = spec.replace("when = \"contention\"\n", "");
    }
    let weights = std::fs::read(format!("{folder}weights.safetensors")).expect("its weights");
    Policy::read(&[spec.into_bytes(), weights]).expect("a policy")
}

/// Compares decisions in flows that the policy governs: its own if it `acts`, those of the law alone otherwise. Of ten
/// thousand windows `beyond` may differ by more than 1 %.
fn compare_flows(label: &str, policy: &Policy, acts: bool, beyond: usize) -> Differences {
    let compiled = if acts {
        Compiled::policy(policy).expect("a policy over the law")
    } else {
        Compiled::law(&Settings::default())
    };
    let mut room = Room::new();
    let mut asked = Asked::load(&mut room, &compiled).expect("the verifier accepts it");
    let names = &policy.spec().observation.features;
    let mut found =
        Differences { acts, features: vec![0.0; names.len()], ..Differences::default() };
    for seed in 0.. {
        for told in flows(policy, seed) {
            replay(&told, policy, &mut asked, &mut found);
        }
        if found.windows.len() >= DECISIONS {
            break;
        }
    }
    if found.acts {
        for (name, largest) in names.iter().zip(&found.features) {
            println!("{label}: {name} differs by {largest:.6} at most");
            // What follows from the window of the flow differs as the windows do, by `report`.
            assert!(name.starts_with("action") || *largest < 1e-3, "{label}: {name}: {largest}");
        }
    }
    report(label, &mut found, beyond);
    found
}

/// Prints how far the windows differ; of ten thousand `most` may by more than 1 %.
fn report(label: &str, found: &mut Differences, most: usize) {
    found.windows.sort_by(f64::total_cmp);
    let count = found.windows.len();
    let at = |part: f64| 100.0 * found.windows[((count - 1) as f64 * part) as usize];
    let beyond = found.windows.iter().filter(|window| **window > 0.01).count();
    println!(
        "{label}: windows of {count} decisions differ by {:.4} % (median), {:.4} % (99), {:.3} % at \
         most; {beyond} by more than 1 %",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    println!("{label}: {:?}", found.rules);
    // Where the error changes its sign within rounding, the speed of its correction differs for some intervals.
    assert!(beyond * 10_000 <= most * count, "{beyond} of {count}");
}

/// What a flow is told that meets what few flows do, from the second `from` on to that of the next: a round trip
/// in ms, packets per second, and how many of 1000 packets are lost.
const HARDSHIPS: [(f64, f64, f64, u64); 16] = [
    (0.0, 41.0, 1000.0, 0),
    (2.0, 55.0, 1000.0, 0),
    // A competitor fills the buffer; the flow follows it, and loses a little later.
    (5.0, 340.0, 60.0, 0),
    (25.0, 360.0, 90.0, 5),
    // The queue empties once, and comes back.
    (45.0, 42.0, 400.0, 0),
    (48.0, 250.0, 400.0, 0),
    // The path loses packets without a queue.
    (62.0, 41.0, 600.0, 60),
    // The queue is the flow's own.
    (75.0, 450.0, 150.0, 0),
    (90.0, 43.0, 500.0, 30),
    // A policer's bucket is empty again and again.
    (100.0, 41.0, 600.0, 0),
    (106.0, 41.0, 600.0, 250),
    (106.2, 41.0, 600.0, 0),
    (110.0, 41.0, 600.0, 250),
    (110.2, 41.0, 600.0, 0),
    (120.0, 41.0, 600.0, 250),
    (120.2, 41.0, 600.0, 0),
];

fn hardships(flow: FlowInfo, seed: u64) -> Told {
    let (mut rng, mut at_s, packet) = (Rng::new(seed), 0.0, flow.mss.0);
    let (mut min_rtt, mut events) = (Span::MAX, Vec::new());
    while at_s < 135.0 {
        let now = flow.start + Span::from_secs_f64(at_s);
        let phase = HARDSHIPS.iter().rev().find(|phase| phase.0 <= at_s);
        let &(_, rtt_ms, rate_pps, lost) = phase.expect("the first begins at once");
        let rtt = Span::from_secs_f64((rtt_ms + rng.uniform_in(-0.5, 0.5)) / 1e3);
        min_rtt = min_rtt.min(rtt);
        let acked = Bytes(packet * (1 + rng.below(3)));
        events.push(Event::Ack(Ack {
            now,
            sent_at: Time(now.0.saturating_sub(rtt.0)),
            rtt,
            min_rtt,
            acked,
            inflight: Bytes(packet * (500 + rng.below(100))),
            delivery_rate: Rate((rate_pps * packet as f64 * 8.0) as u64),
            cwnd_limited: 1,
            ..Ack::default()
        }));
        if rng.below(1000) < 2 * lost {
            let (lost, kind) = (Bytes(packet), LossKind::Gap);
            events.push(Event::Loss(Loss { now, lost, kind, ..Loss::default() }));
        }
        at_s += 2.0 / rate_pps * rng.uniform_in(0.8, 1.2);
    }
    Told { flow, events }
}

#[test]
fn a_decision_of_the_law_in_the_kernel_is_that_in_floating_point() {
    if governs_flows() {
        compare("law", None, None, 10);
    }
}

#[test]
fn a_decision_under_rules_that_few_flows_need_is_that_in_floating_point() {
    if !governs_flows() {
        return;
    }
    let policy = policy(1, &FLAGSHIP, false, 0.0, None);
    let mut room = Room::new();
    let compiled = Compiled::law(&Settings::default());
    let mut asked = Asked::load(&mut room, &compiled).expect("the verifier accepts it");
    let mut found = Differences::default();
    let flow = flows(&policy, 0).first().expect("a flow").flow;
    for seed in 0..8 {
        replay(&hardships(flow, seed), &policy, &mut asked, &mut found);
    }
    report("hardships", &mut found, 10);
    let missing: Vec<_> = found.rules.iter().filter(|(_, times)| **times == 0.0).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_decision_of_a_policy_in_the_kernel_is_that_in_floating_point() {
    if governs_flows() {
        compare("drawn weights", Some(1.0), None, 10);
        // Its actions hardly change, so the queue settles at the target, where errors are near zero. Actions differ by
        // 0.0001, and so targets by up to 0.002 packets: an error smaller than that has either sign. One sign then keeps
        // the speed of the correction, the other takes it back, until the error changes its sign for both. No precision
        // that 14 bits of an action could have excludes this. Five such errors, of 0.0001 to 0.0014 packets, precede all
        // 18 windows beyond 1 % of these 13 848; none of these flows had lost packets of late.
        compare("small last layer", Some(0.1), None, 20);
        compare("guarded", Some(1.0), Some(0.1), 10);
    }
}

#[test]
fn a_decision_of_the_shipped_policy_in_the_kernel_is_that_in_floating_point() {
    if governs_flows() {
        compare_flows("flagship", &shipped(WhenSpec::Contention), true, 0);
        // Few of these flows are contended, so the network's own decisions are compared, too. One of them differs where the
        // error changes its sign within rounding.
        compare_flows("flagship at all times", &shipped(WhenSpec::Always), true, 1);
    }
}

/// A flow under the law alone, in the kernel and in floating point, compared after each acknowledgement and loss; as in
/// [`replay`] a decision begins with the same window for both.
struct Both<'asked, 'room> {
    asked: &'asked mut Asked<'room>,
    law: Law,
    signals: Signals,
    flow: FlowInfo,
    /// Decisions so far.
    decided: u32,
    /// Largest difference of the windows so far, as a part.
    differs: f64,
}

/// Of [`Both`]: a path of 40 ms.
const PATH: Span = Span::from_millis(40);

impl<'asked, 'room> Both<'asked, 'room> {
    fn open(asked: &'asked mut Asked<'room>) -> Self {
        let mss = Bytes(1500);
        let flow = FlowInfo {
            mss,
            initial_cwnd: Bytes(15_000),
            initial_ssthresh: Bytes(u64::MAX),
            recovery: Recovery::Sack,
            start: Time::from_secs_f64(1.0),
            seed: 1,
        };
        asked.start(flow.start, 10, u32::MAX, flow.seed).expect("started");
        let (law, signals) = (Law::new(&flow, &Settings::default()), Signals::new(mss, flow.start));
        Self { asked, law, signals, flow, decided: 0, differs: 0.0 }
    }

    /// After so many seconds a packet is acknowledged that took so many ms and found so many in flight; the
    /// delivery rate is in packets per second. Gives the window.
    fn ack(&mut self, after_s: f64, rtt_ms: f64, found: u64, rate_pps: u64) -> f64 {
        let now = self.flow.start + Span::from_secs_f64(after_s);
        let rtt = Span::from_secs_f64(rtt_ms / 1e3);
        let packet = self.flow.mss.0;
        let ack = Ack {
            now,
            sent_at: Time(now.0.saturating_sub(rtt.0)),
            rtt,
            min_rtt: PATH,
            acked: self.flow.mss,
            inflight: Bytes(found * packet),
            delivery_rate: Rate(rate_pps * packet * 8),
            cwnd_limited: 1,
            ..Ack::default()
        };
        let (ack, delivery) = in_kernels_units(&ack, packet);
        let decided = self.asked.on_delivery(delivery).expect("an answer");
        let ack = Ack { srtt: self.asked.srtt(), ..ack };
        self.signals.on_ack(&ack);
        self.law.on_ack(&ack);
        if decided {
            self.decided += 1;
            self.signals.end(now);
            self.law.update_contention(self.signals.last());
            self.law.on_interval(self.signals.last(), [0.0; 2]);
        }
        let exact = self.compare();
        if decided {
            self.asked.follow(exact);
        }
        exact
    }

    fn lose(&mut self, after_s: f64, packets: u32) -> f64 {
        let (now, lost) =
            (self.flow.start + Span::from_secs_f64(after_s), u64::from(packets) * self.flow.mss.0);
        let loss = Loss { now, lost: Bytes(lost), kind: LossKind::More, ..Loss::default() };
        self.signals.on_loss(&loss);
        self.law.on_loss(&loss);
        self.asked.on_loss(now, packets, loss.kind).expect("an answer");
        self.compare()
    }

    fn compare(&mut self) -> f64 {
        let (own, exact) = (self.asked.allowed().0, self.law.cwnd_packets());
        let differs = (own / exact - 1.0).abs();
        assert!(differs < 2e-3, "{own} packets, not {exact}");
        self.differs = self.differs.max(differs);
        exact
    }

    fn counted(&self, name: &str) -> f64 {
        self.law.counters().iter().find(|one| one.0 == name).expect("a counter").1
    }

    /// 88 packets of the start, one a millisecond, without a queue: the window is then 98 packets.
    fn start(&mut self) {
        for packet in 1..=88_u64 {
            self.ack(packet as f64 / 1e3, 40.0, 10 + packet, 1000);
        }
    }
}

/// Runs what is told to both, and prints how far the windows differ.
fn both(label: &str, told: impl FnOnce(&mut Both<'_, '_>)) {
    let mut room = Room::new();
    let compiled = Compiled::law(&Settings::default());
    let mut asked = Asked::load(&mut room, &compiled).expect("the verifier accepts it");
    let mut both = Both::open(&mut asked);
    told(&mut both);
    let (decided, differs) = (both.decided, 100.0 * both.differs);
    println!("{label}: windows differ by {differs:.4} % at most, {decided} decisions");
}

#[test]
fn the_last_packets_of_a_start_raise_the_window_in_the_kernel_up_to_its_peak() {
    if !governs_flows() {
        return;
    }
    both("end of the start", |both| {
        both.start();
        // A queue of 20 ms in eight packets, delivered at half of the path's rate.
        let window = |both: &mut Both<'_, '_>, part: u64, rtt_ms, rate_pps| {
            both.ack(0.088 + part as f64 / 1e4, rtt_ms, 100, rate_pps)
        };
        let ended = (1..=8).map(|part| window(both, part, 60.0, 1000)).last().expect("eight");
        assert!(!both.law.is_starting() && (40.0..50.0).contains(&ended), "{ended}");
        let decided = both.decided;
        let raised = window(both, 9, 60.0, 2000);
        assert!((80.0..90.0).contains(&raised), "{raised}");
        assert!(window(both, 10, 60.0, 1500) >= raised, "a smaller rate takes nothing");
        let peak = window(both, 11, 60.0, 9000);
        assert!((105.0..110.0).contains(&peak), "{peak}");
        assert_eq!(both.decided, decided, "between decisions");
        // Later packets tell nothing of this: no rate raises the window between decisions.
        let mut last = (both.decided, peak);
        for part in 12..4000 {
            let now = window(both, part, if part < 650 { 60.0 } else { 45.0 }, 9000);
            assert!(part < 800 || both.decided > last.0 || now <= last.1, "{now} at {part}");
            last = (both.decided, now);
        }
    });
}

#[test]
fn losses_of_a_start_are_answered_once_in_the_kernel() {
    if !governs_flows() {
        return;
    }
    both("losses of the start", |both| {
        both.start();
        let peak = both.law.cwnd_packets();
        let halved = both.lose(0.0881, 30);
        assert!(!both.law.is_starting() && (halved - peak / 2.0).abs() < 1.0, "{halved}");
        let first = both.decided;
        let mut cuts = Vec::new();
        for packet in 1..400_u64 {
            let at_s = 0.088 + packet as f64 / 1e3;
            both.ack(at_s, 41.0, 40, 1000);
            if packet % 4 == 0 {
                both.lose(at_s, 1);
            }
            cuts.resize((both.decided - first + 1) as usize, 0.0);
            *cuts.last_mut().expect("not empty") = both.counted("cuts");
        }
        assert_eq!(cuts[..4], [0.0, 0.0, 0.0, 1.0], "two intervals are not judged");
    });
}

#[test]
fn what_the_path_delivered_before_several_cuts_bounds_the_window_in_the_kernel() {
    if !governs_flows() {
        return;
    }
    both("several cuts", |both| {
        both.start();
        both.lose(0.0881, 30);
        let mut at_s = 0.09;
        // An eighth is lost in a queue of 20 ms, which stays after a cut though half as much is delivered.
        for (spacing_s, cuts) in [(0.001, 1.0), (0.002, 2.0)] {
            let lossy = (0..2000).find(|packet| {
                at_s += spacing_s;
                both.ack(at_s, 60.0, 200, 1000);
                if packet % 8 == 0 {
                    both.lose(at_s, 1);
                }
                both.counted("cuts") >= cuts
            });
            assert!(lossy.is_some(), "{cuts} cuts");
        }
        let cut = both.law.cwnd_packets();
        // A round trip delivered 60 packets before the cuts, and 30 between them.
        let windows = (0..500).map(|_| {
            at_s += 0.002;
            both.ack(at_s, 41.0, 200, 1000)
        });
        let widest = windows.fold(0.0, f64::max);
        assert!(widest > 1.5 * cut && (31.0..0.92 * 60.0).contains(&widest), "{cut}, {widest}");
    });
}

#[test]
fn a_drain_ends_in_the_kernel_when_its_window_is_reached() {
    if !governs_flows() {
        return;
    }
    both("drain", |both| {
        both.start();
        let mut packet = 88_u64;
        let mut next = |both: &mut Both<'_, '_>, rtt_ms: f64, found: f64| {
            packet += 1;
            let before = both.counted("drains");
            let window = both.ack(packet as f64 / 1e3, rtt_ms, found as u64, 1000);
            (both.counted("drains") > before, window)
        };
        // A queue of 6 to 10 ms stays, whatever the window: after 1.25 s it is drained. A longer one would be a sign of
        // contention, under which there are no drains.
        let mut before = both.law.cwnd_packets();
        let begun = (0..20_000_u64).find_map(|packets| {
            let (begins, window) = next(both, 46.0 + (packets / 100 % 5) as f64, 200.0);
            if !begins {
                before = window;
            }
            begins.then_some(window)
        });
        let drained = begun.expect("a drain");
        assert!(drained < 0.8 * before, "{before} and then {drained}");
        // More than that is in flight for a while, and then no more.
        for _ in 0..50 {
            assert!(next(both, 60.0, drained + 2.0).1 < 0.8 * before);
        }
        let reached = next(both, 60.0, drained).1;
        assert!(reached > drained / 0.8, "the window is as before: {reached}");
        // It rests until a packet sent from then on has come back, and an interval more: not from the beginning on.
        let rests = (0..74).all(|_| next(both, 75.0, reached).1.total_cmp(&reached).is_eq());
        assert!(rests, "a packet sent in the drain has not come back");
        (0..200).for_each(|_| assert!(next(both, 75.0, reached).1 <= reached));
        let later = (0..400).map(|_| next(both, 41.0, 200.0).1).last().expect("some");
        assert!(later > 2.0 * reached, "{later} is steered again");
        assert!((both.counted("drains") - 1.0).abs() < 0.5);
    });
}

#[test]
fn own_queue_in_the_kernel_fills_a_link_and_keeps_the_queue_short() {
    if !governs_flows() {
        return;
    }
    // 83 packets in flight fill it; the buffer holds as many four times.
    let bench = Bench::new(
        "inside",
        "rate_mbps = 50\ndelay_ms = 15\nqueue = { kind = \"drop_tail\", packets = 333 }",
    );
    best_of(|| {
        let name = format!("aklaw{}", std::process::id());
        let compiled = Arc::new(Compiled::law(&Settings::default()));
        let options = Options {
            name: name.clone(),
            pins: None,
            slots: 16,
            in_kernel: Some(compiled),
            ..Options::default()
        };
        let registered = Registered::start(&options).expect("a congestion control");
        let mut seen = Vec::new();
        let look = |at: Duration, info: &TcpInfo| seen.push((at.as_secs_f64(), *info));
        bench.transfer(&name, Duration::from_secs(4), look).check();
        let totals = registered.totals().counts;
        assert_eq!((totals.opened, totals.fallbacks, totals.without_slot), (1, 0, 0), "{totals:?}");
        assert!(totals.decisions > 50, "{totals:?}");
        let late: Vec<_> = seen.iter().filter(|(at_s, _)| (1.5..3.9).contains(at_s)).collect();
        let ((from_s, from), (to_s, to)) = (late[0], late[late.len() - 1]);
        let mbps = (to.acked - from.acked) as f64 * 8e-6 / (to_s - from_s) * 1500.0 / 1448.0;
        let widest = late.iter().map(|(_, info)| info.cwnd).max().expect("some");
        kept(mbps > 42.0 && widest < 160, || format!("{mbps} Mb/s, up to {widest} packets"))
    });
}
