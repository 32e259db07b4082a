//! Speed of the simulator in data packets per core-second, and its memory.
//!
//! `cargo bench --bench sim -- [list | CASE ...]` prints one JSON row per case: `case`, `packets` delivered,
//! `cpu_s` of this process, `packets_per_s`, `events_per_packet`, medians over the runs. CUBIC, SACK,
//! RACK-TLP, PRR, delayed acknowledgements and delivery-rate samples are on. `LP-TCP` asks a forest of
//! 100 trees of 2001 nodes about every packet instead; `forest` times one answer of that forest.
#![allow(missing_docs, reason = "a program, not an interface")]
use ackademy::controllers::lp_tcp::Policy;
use ackademy::controllers::shared::sensing::sends::FEATURES;
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::sim::record::Outcome;
use std::fs;

#[path = "../tests/support/forest.rs"]
mod forest;

/// Runs per case; the median counts.
const RUNS: usize = 5;

struct Case {
    name: String,
    /// Lines of the `[[flow]]`.
    flow: &'static str,
    flows: u32,
    rate_mbps: f64,
    rtt_ms: f64,
    /// Drop-tail limit in packets.
    packets: u64,
    duration_s: f64,
}

/// Without HyStart, as ns-2's, whose speed is measured beside it.
const CUBIC: &str = "controller = \"cubic_rfc9438\"";
const LP_TCP: &str = "controller = \"lp_tcp\"\n\
    params = { policy = \"forest\", threshold = 0.9 }\n\
    sender = { recovery = \"ns2\" }";

/// 100 trees of 2001 nodes.
fn policy() -> Vec<u8> {
    let mut rng = Rng::new(1);
    let arrays = forest::Arrays::grow(100, 2001, FEATURES, &mut || rng.uniform());
    arrays.to_bytes(&[("features", "kong2018-55")])
}

/// Time of one answer from all trees.
fn forest() {
    const ROWS: usize = 10_000;
    let policy = Policy::read(&policy()).expect("a valid forest");
    let mut rng = Rng::new(2);
    let rows: Vec<[f32; FEATURES]> =
        (0..ROWS).map(|_| std::array::from_fn(|_| rng.uniform() as f32)).collect();
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let before = cpu_s();
            let sum: f64 = rows.iter().map(|row| policy.loss_probability(row)).sum();
            std::hint::black_box(sum);
            cpu_s() - before
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    println!("{{\"case\": \"forest\", \"answer_us\": {:.2}}}", runs[RUNS / 2] / ROWS as f64 * 1e6);
}

fn cases() -> Vec<Case> {
    let case = |name: &str, flows, rate_mbps: f64, rtt_ms: f64, packets, duration_s| Case {
        name: name.to_owned(),
        flow: CUBIC,
        flows,
        rate_mbps,
        rtt_ms,
        packets,
        duration_s,
    };
    let mut all = vec![
        case("S1", 1, 10.0, 150.0, 50, 400.0),
        case("S2", 1, 1000.0, 20.0, 2000, 20.0),
        case("S3", 100, 1000.0, 40.0, 4000, 20.0),
        case("S4/1", 1, 100.0, 40.0, 400, 60.0),
        case("S4/10", 10, 100.0, 40.0, 400, 60.0),
    ];
    for flows in [1, 10, 100, 1000, 10_000] {
        all.push(case(&format!("S5/{flows}"), flows, 1000.0, 40.0, 4000, 20.0));
    }
    all.push(Case { flow: LP_TCP, ..case("LP-TCP", 1, 10.0, 150.0, 50, 400.0) });
    all
}

fn scenario(case: &Case) -> Scenario {
    let Case { flow, flows, rate_mbps, rtt_ms, packets, duration_s, .. } = case;
    let text = format!(
        "duration_s = {duration_s}\n\
         [dumbbell]\n\
         rtt_ms = {rtt_ms}\n\
         bottleneck = {{ rate_mbps = {rate_mbps}, \
           queue = {{ kind = \"drop_tail\", packets = {packets} }} }}\n\
         [sender]\n\
         packet_bytes = 1250\n\
         [[flow]]\n\
         {flow}\n\
         count = {flows}\n\
         start_spread_s = {}\n",
        if *flows > 1 { 1.0 } else { 0.0 }
    );
    Scenario::parse_with(&text, "bench", &[], &mut |_, _| Ok(policy()))
        .expect("the cases are valid")
}

/// CPU time of this process in seconds (Linux: /proc/self/schedstat, nanoseconds).
fn cpu_s() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").expect("Linux's schedstat");
    let nanos = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    nanos.expect("schedstat begins with a number") / 1e9
}

/// A line of /proc/self/status in KiB.
fn status_kib(key: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").expect("Linux's status");
    let line = text.lines().find(|line| line.starts_with(key)).expect("a known key");
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number of KiB")
}

fn delivered(outcome: &Outcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.received_packets).sum()
}

fn measure(case: &Case) {
    let scenario = scenario(case);
    let mut runs: Vec<(f64, u64, u64)> = (0..RUNS)
        .map(|_| {
            let before = cpu_s();
            let outcome = ackademy::sim::run(&scenario.network, Seed(1))
                .expect("the controllers are built in");
            (cpu_s() - before, delivered(&outcome), outcome.events)
        })
        .collect();
    runs.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (cpu, packets, events) = runs[RUNS / 2];
    println!(
        "{{\"case\": \"{}\", \"packets\": {packets}, \"cpu_s\": {cpu:.4}, \
         \"packets_per_s\": {:.0}, \"events_per_packet\": {:.2}, \"peak_mib\": {:.1}}}",
        case.name,
        packets as f64 / cpu,
        events as f64 / packets as f64,
        status_kib("VmHWM") / 1024.0
    );
}

/// Bytes per flow that has not started, beyond what the scenario itself takes.
fn idle_flow_bytes() {
    let flows = 50_000;
    let idle = Case {
        name: "idle".to_owned(),
        flow: CUBIC,
        flows,
        rate_mbps: 10.0,
        rtt_ms: 10.0,
        packets: 100,
        duration_s: 0.001,
    };
    let scenario = scenario(&idle);
    let before = status_kib("VmRSS");
    let sim = ackademy::sim::Sim::new(&scenario.network, Seed(1), &mut ackademy::sim::builtin);
    let after = status_kib("VmRSS");
    let bytes = (after - before) * 1024.0 / f64::from(flows);
    drop(sim);
    println!("{{\"case\": \"idle flow\", \"bytes\": {bytes:.0}}}");
}

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if wanted.iter().any(|name| name == "list") {
        for case in cases() {
            println!("{}", case.name);
        }
        println!("idle");
        println!("forest");
        return;
    }
    for case in cases() {
        if wanted.is_empty() || wanted.contains(&case.name) {
            measure(&case);
        }
    }
    if wanted.is_empty() || wanted.iter().any(|name| name == "idle") {
        idle_flow_bytes();
    }
    if wanted.is_empty() || wanted.iter().any(|name| name == "forest") {
        forest();
    }
}
