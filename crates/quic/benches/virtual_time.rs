//! Data packets per second and core of QUIC in virtual time: `make bench-quic`. Arguments: scenario files,
//! `cc=NAME,NAME...`, `seconds=S`, `seeds=N`.
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::units::Time;
use ackademy_quic::virtual_time::Quic;
use std::path::PathBuf;
use std::time::Instant;

fn main() {
    let (mut files, mut names, mut seconds, mut seeds) = (Vec::new(), Vec::new(), f64::INFINITY, 1);
    for word in std::env::args().skip(1).filter(|word| word != "--bench") {
        match word.split_once('=') {
            Some(("cc", given)) => names = given.split(',').map(str::to_owned).collect(),
            Some(("seconds", given)) => seconds = given.parse().expect("a number"),
            Some(("seeds", given)) => seeds = given.parse().expect("a number"),
            _ => files.push(PathBuf::from(word)),
        }
    }
    if files.is_empty() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/scenarios");
        files.extend(["deep_buffer", "random_loss"].map(|name| root.join(format!("{name}.toml"))));
    }
    if names.is_empty() {
        names.extend(["cubic", "noq:cubic"].map(str::to_owned));
    }
    println!(
        "scenario controller goodput_mbps rtt_ms dropped recoveries timeouts kpackets_per_s digest"
    );
    for file in &files {
        for name in &names {
            (1..=seeds).for_each(|seed| run(file, name, seconds, seed));
        }
    }
}

fn run(file: &PathBuf, name: &str, seconds: f64, seed: u64) {
    let text = std::fs::read_to_string(file).expect("a scenario file");
    let mut scenario = Scenario::parse(&text, "bench").expect("a scenario");
    let network = &mut scenario.network;
    network.duration = network.duration.min(Time::from_secs_f64(seconds.min(1e6)));
    for plan in &mut network.connections {
        name.clone_into(&mut plan.controller);
        plan.params.clear();
    }
    let end = network.duration;
    let mut quic = Quic::new(network, Seed(seed)).expect("QUIC can do it");
    #[expect(clippy::disallowed_methods, reason = "a benchmark")]
    let began = Instant::now();
    quic.run_until(end).expect("connections stay");
    let (took, packets, digest) = (began.elapsed(), quic.data_datagrams(), quic.digest());
    let outcome = quic.finish();
    let goodput: u64 = outcome.flows.iter().map(|flow| flow.goodput_bytes).sum();
    let flow = &outcome.flows[0];
    println!(
        "{} {name} {:.3} {:.1} {} {} {} {:.1} {digest:016x}",
        file.file_stem().unwrap_or_default().to_string_lossy(),
        goodput as f64 * 8e-6 / end.as_secs_f64(),
        flow.rtt_mean_ms,
        flow.dropped_packets,
        flow.recoveries,
        flow.timeouts,
        packets as f64 / took.as_secs_f64() / 1e3,
    );
}
