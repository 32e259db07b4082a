//! Speed of the simulator in data packets per core-second, and its memory.
//!
//! `cargo bench --bench sim -- [list | CASE ...]` prints one JSON row per case: `case`, `packets` delivered,
//! `cpu_s` of this process, `packets_per_s`, `events_per_packet`, medians over the runs. CUBIC, SACK,
//! RACK-TLP, PRR, delayed acknowledgements and delivery-rate samples are on. `LP-TCP` asks a forest of
//! 100 trees of 2001 nodes about every packet instead; `forest` times one answer of that forest. `C/NAME` is S4 with one
//! flow of that controller. `P1` is S3 with paced flows, `P1/bbr1` and `P1/bbr3` with BBR's. `M1` and `M2` are
//! connections of two subflows, with a second row for two plain flows in place of each connection. `once/CASE` runs a
//! case once, as do `M1/subflows` and `M1/flows`, for a counter of instructions.
#![allow(missing_docs, reason = "a program, not an interface")]
use ackademy::controllers::lp_tcp::Policy;
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::sensing::sends::FEATURES;
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
const PACED: &str = "controller = \"cubic_rfc9438\"\nsender = { pacing = true }";
const BBR1: &str = "controller = \"bbr1\"";
const BBR3: &str = "controller = \"bbr3\"";
/// Controllers whose cost is put beside CUBIC's, and their flows.
const CONTROLLERS: &[(&str, &str)] = &[
    ("cubic_rfc9438", CUBIC),
    ("new_reno", "controller = \"new_reno\""),
    ("vegas", "controller = \"vegas\""),
    ("ledbat_plus_plus", "controller = \"ledbat_plus_plus\""),
    ("copa", "controller = \"copa\""),
    ("bbr1", BBR1),
    ("bbr3", BBR3),
    ("vivace", "controller = \"vivace\""),
];
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
    for (name, flow) in CONTROLLERS {
        all.push(Case { flow, ..case(&format!("C/{name}"), 1, 100.0, 40.0, 400, 60.0) });
    }
    all.push(Case { flow: PACED, ..case("P1", 100, 1000.0, 40.0, 4000, 20.0) });
    for (name, flow) in [("P1/bbr1", BBR1), ("P1/bbr3", BBR3)] {
        all.push(Case { flow, ..case(name, 100, 1000.0, 40.0, 4000, 20.0) });
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

/// Connections of two subflows, and two plain flows for each: what a packet of the former costs beside one of
/// the latter. Every link carries a flow of each connection.
struct Paired {
    name: &'static str,
    connections: u32,
    /// Of each of the two links.
    rate_mbps: f64,
    loss: f64,
    packets: u64,
    duration_s: f64,
}

const PAIRED: &[Paired] = &[
    Paired {
        name: "M1",
        connections: 5,
        rate_mbps: 8.0,
        loss: 0.01,
        packets: 100,
        duration_s: 4000.0,
    },
    Paired {
        name: "M2",
        connections: 100,
        rate_mbps: 1000.0,
        loss: 0.0,
        packets: 4000,
        duration_s: 20.0,
    },
];

/// The network of a pair with these flows.
fn paired_scenario(pair: &Paired, flows: &str) -> Scenario {
    let Paired { rate_mbps, loss, packets, duration_s, .. } = pair;
    let link = format!(
        "{{ rate_mbps = {rate_mbps}, delay_ms = 50, \
           queue = {{ kind = \"drop_tail\", packets = {packets} }}, \
           loss = {{ kind = \"bernoulli\", ratio = {loss} }} }}"
    );
    let text =
        format!("duration_s = {duration_s}\n[two_path]\nfirst = {link}\nsecond = {link}\n{flows}");
    Scenario::parse(&text, "bench").expect("the cases are valid")
}

/// The connections of a pair, and its plain flows.
fn paired_scenarios(pair: &Paired) -> [Scenario; 2] {
    let flow = |more: &str| {
        let count = pair.connections;
        format!("[[flow]]\n{CUBIC}\ncount = {count}\nstart_spread_s = 1.0\n{more}\n")
    };
    let plain = flow("name = \"a\"\nroute = [0]") + &flow("name = \"b\"\nroute = [1]");
    [flow("multipath = true"), plain].map(|flows| paired_scenario(pair, &flows))
}

/// Runs one scenario of a pair once and prints its row, for a counter of instructions.
fn run_once(pair: &Paired, index: usize, name: &str) {
    let row = timed(&paired_scenarios(pair)[index]);
    print_row(name, row, "");
}

/// Prints a row for the connections, and one for the plain flows beside them; the runs take turns.
fn measure_pair(pair: &Paired) {
    let scenarios = paired_scenarios(pair);
    let mut runs: [Vec<(f64, u64, u64)>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for (scenario, runs) in scenarios.iter().zip(&mut runs) {
            runs.push(timed(scenario));
        }
    }
    for own in &mut runs {
        own.sort_by(|left, right| left.0.total_cmp(&right.0));
    }
    let [of_subflows, of_flows] = runs.map(|own| own[RUNS / 2]);
    let cost = |(cpu, packets, _): (f64, u64, u64)| cpu / packets as f64;
    let more = format!(", \"cost_over_two_flows\": {:.3}", cost(of_subflows) / cost(of_flows));
    print_row(pair.name, of_subflows, &more);
    print_row(&format!("{} as two flows", pair.name), of_flows, "");
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

/// CPU time, packets delivered and events of one run.
fn timed(scenario: &Scenario) -> (f64, u64, u64) {
    let before = cpu_s();
    let outcome =
        ackademy::sim::run(&scenario.network, Seed(1)).expect("the controllers are built in");
    (cpu_s() - before, delivered(&outcome), outcome.events)
}

fn measure(case: &Case) {
    let scenario = scenario(case);
    let mut runs: Vec<(f64, u64, u64)> = (0..RUNS).map(|_| timed(&scenario)).collect();
    runs.sort_by(|left, right| left.0.total_cmp(&right.0));
    print_row(&case.name, runs[RUNS / 2], "");
}

fn print_row(name: &str, (cpu, packets, events): (f64, u64, u64), more: &str) {
    println!(
        "{{\"case\": \"{name}\", \"packets\": {packets}, \"cpu_s\": {cpu:.4}, \
         \"packets_per_s\": {:.0}, \"events_per_packet\": {:.2}, \"peak_mib\": {:.1}{more}}}",
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
        for pair in PAIRED {
            println!("{}", pair.name);
        }
        println!("idle");
        println!("forest");
        return;
    }
    for case in cases() {
        if wanted.is_empty() || wanted.contains(&case.name) {
            measure(&case);
        }
        let name = format!("once/{}", case.name);
        if wanted.contains(&name) {
            print_row(&name, timed(&scenario(&case)), "");
        }
    }
    for pair in PAIRED {
        if wanted.is_empty() || wanted.iter().any(|name| name == pair.name) {
            measure_pair(pair);
        }
    }
    for pair in PAIRED {
        for (index, part) in ["subflows", "flows"].into_iter().enumerate() {
            let name = format!("{}/{part}", pair.name);
            if wanted.contains(&name) {
                run_once(pair, index, &name);
            }
        }
    }
    if wanted.is_empty() || wanted.iter().any(|name| name == "idle") {
        idle_flow_bytes();
    }
    if wanted.is_empty() || wanted.iter().any(|name| name == "forest") {
        forest();
    }
}
