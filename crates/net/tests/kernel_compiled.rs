//! Policies in fixed point: what the kernel computes, against what the engine in floating point does.
use crate::common::machine::governs_flows;
use crate::recorded::{Event, FLAGSHIP, Observer, Told, flows, observations, policy};
use crate::seeds::{first_seed, fixed_seed};
use ackademy::control::{Ack, FlowInfo, Loss, LossKind};
use ackademy::law::own_queue::{Law, Settings, is_misled_by_jitter};
use ackademy::policy::{Policy, WhenSpec};
use ackademy::rng::Rng;
use ackademy::sensing::signals::Signals;
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy_net::kernel::compiled::Compiled;
use ackademy_net::kernel::compiled::ask::{Asked, Functions, Room};
use ackademy_net::kernel::compiled::layout::Delivery;
use std::collections::BTreeMap;

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
pub fn in_kernels_units(ack: &Ack, packet: u64) -> (Ack, Delivery) {
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
        inflight: Bytes(u64::from(found.saturating_sub(acked)) * packet),
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
                if loss.kind == LossKind::Deflate {
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

/// A policy of `data/` or `research/`, or its network acting at all times.
fn policy_of(place: &str, name: &str, when: WhenSpec) -> Policy {
    let folder = format!("{}/../../{place}/policies/{name}/", env!("CARGO_MANIFEST_DIR"));
    let tables = std::fs::read_to_string(format!("{folder}policy.toml"));
    let mut spec = tables.expect("a policy's description");
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

/// What a flow is told whose path, application and losses are drawn: up to twelve phases of a round trip, a delivery
/// rate, jitter, a loss ratio, and now and then a silence or a time-out.
fn drawn(flow: FlowInfo, seed: u64) -> Told {
    let (mut rng, packet) = (Rng::new(seed), flow.mss.0);
    let scale =
        |rng: &mut Rng, low: f64, high: f64| low * (high / low).powf(rng.uniform_in(0.0, 1.0));
    let base_ms = scale(&mut rng, 2.0, 200.0);
    let (mut at_s, mut min_rtt, mut events) = (0.0, Span::MAX, Vec::new());
    for _ in 0..2 + rng.below(11) {
        let until_s = at_s + scale(&mut rng, 20.0, 400.0) * base_ms / 1e3;
        let queue_ms = if rng.chance(0.5) { 0.0 } else { scale(&mut rng, 0.5, 4.0 * base_ms) };
        let jitter_ms = if rng.chance(0.7) { 0.1 } else { scale(&mut rng, 0.1, base_ms) };
        let rate_pps = scale(&mut rng, 2.0, 100.0) * 1e3 / base_ms;
        let lost = if rng.chance(0.6) { 0.0 } else { scale(&mut rng, 1e-3, 0.3) };
        let app_limited = u64::from(rng.chance(0.15));
        let (most, cwnd_limited) = (1 + rng.below(6), u64::from(rng.chance(0.8)));
        while at_s < until_s {
            let now = flow.start + Span::from_secs_f64(at_s);
            let rtt_ms = base_ms + queue_ms + rng.uniform_in(0.0, jitter_ms);
            let rtt = Span::from_secs_f64(rtt_ms / 1e3);
            min_rtt = min_rtt.min(rtt);
            let acked = 1 + rng.below(most);
            let flight = (rate_pps * rtt_ms / 1e3) as u64 + acked + rng.below(4);
            let missing = rng.uniform_in(0.0, 1.0) < lost * acked as f64;
            events.push(Event::Ack(Ack {
                now,
                sent_at: Time(now.0.saturating_sub(rtt.0)),
                rtt,
                min_rtt,
                acked: Bytes(acked * packet),
                inflight: Bytes(flight * packet),
                delivery_rate: Rate((rate_pps * packet as f64 * 8.0) as u64),
                app_limited,
                cwnd_limited,
                ..Ack::default()
            }));
            if missing {
                let kind = if rng.chance(0.8) { LossKind::Gap } else { LossKind::More };
                let lost = Bytes(packet * (1 + rng.below(3)));
                events.push(Event::Loss(Loss { now, lost, kind, ..Loss::default() }));
            }
            at_s += acked as f64 / rate_pps * rng.uniform_in(0.5, 1.5);
        }
        let kind = [LossKind::Timeout, LossKind::TimeoutAgain, LossKind::Spurious, LossKind::Idle];
        if rng.chance(0.2) {
            at_s += scale(&mut rng, 0.2, 5.0);
            let (now, kind) = (flow.start + Span::from_secs_f64(at_s), kind[rng.below(4) as usize]);
            let lost = Bytes(packet * rng.below(20));
            events.push(Event::Loss(Loss { now, lost, kind, ..Loss::default() }));
        }
    }
    Told { flow, events }
}

/// Of every day other flows, and the same ones each day.
#[test]
fn a_decision_after_drawn_records_is_that_in_floating_point() {
    if !governs_flows() {
        return;
    }
    let policy = policy(1, &FLAGSHIP, false, 0.0, None);
    let flow = flows(&policy, 0).first().expect("a flow").flow;
    let mut room = Room::new();
    let compiled = Compiled::law(&Settings::default());
    let mut asked = Asked::load(&mut room, &compiled).expect("the verifier accepts it");
    for first in [fixed_seed(), first_seed()] {
        println!("drawn records: ACKADEMY_SEED={first}");
        let mut found = Differences::default();
        for seed in first.. {
            replay(&drawn(flow, seed), &policy, &mut asked, &mut found);
            if found.windows.len() >= DECISIONS / 2 {
                break;
            }
        }
        // A rare flow has an error whose sign differs within rounding while its correction is fast: 8 windows of one of 90
        // flows, the largest seen. A rule that one of the two lacks shows in far more.
        report("drawn", &mut found, 50);
        let most = found.windows[(found.windows.len() - 1) * 99 / 100];
        assert!(most < 1e-3, "{most}");
    }
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
        compare_flows("flagship", &policy_of("data", "flagship", WhenSpec::Contention), true, 0);
        // Few of these flows are contended, so the networks' own decisions are compared, too. Three of the
        // 14 022 of the first stage differ, where the error changes its sign within rounding.
        compare_flows(
            "flagship_ppo always",
            &policy_of("research", "flagship_ppo", WhenSpec::Always),
            true,
            3,
        );
        // One of these, traced, is 0.001 octaves from where jitter makes it count as zeros, and does so in the kernel
        // alone. From then on the two see other last answers, and 8 of the 13 windows beyond 1 % of these 13 960 are that
        // flow's. Five are single ones of four flows, which were not traced.
        compare_flows(
            "flagship always",
            &policy_of("data", "flagship", WhenSpec::Always),
            true,
            10,
        );
    }
}
