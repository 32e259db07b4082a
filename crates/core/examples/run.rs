//! Runs a scenario file: `cargo run --release --example run -- FILE [CONTROLLER] [SEED]`.
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;

fn main() {
    let mut args = std::env::args().skip(1);
    let file = args.next().expect("a scenario file");
    let text = std::fs::read_to_string(&file).expect("readable");
    let folder = std::path::Path::new(&file).parent().map(std::path::PathBuf::from);
    let mut load = |name: &str, _| {
        std::fs::read(folder.clone().unwrap_or_default().join(name)).map_err(|e| e.to_string())
    };
    let mut scenario = Scenario::parse_with(&text, &file, &[], &mut load).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    });
    if let Some(controller) = args.next() {
        scenario = scenario.with_controller(&controller, &[]).unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(2);
        });
    }
    let seed = args.next().map_or(1, |text| text.parse().expect("a seed"));
    let outcome = ackademy::sim::run(&scenario.network, Seed(seed)).expect("built-in controllers");
    for flow in &outcome.flows {
        println!("{flow:#?}");
        println!(
            "{} {:.4} Mb/s d {:.3} p {:.4e}",
            flow.flow,
            flow.delivered_bytes as f64 * 8e-6 / flow.active_s,
            flow.rtt_at_delivery_ms - flow.base_rtt_ms,
            flow.dropped_packets as f64 / flow.sent_packets as f64
        );
    }
    for link in &outcome.links {
        println!("{link:?}");
    }
    println!("events {}", outcome.events);
}
