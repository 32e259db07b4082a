//! Which of ns-2's rules decides how a NewReno flow starts into a buffer of 50 packets: each switch
//! of `[sender]` is changed alone, and the table of docs/reference/ns2.md is printed.
//! `cargo run --release --example startup`.
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim;
use ackademy::sim::record::Outcome;

/// A 10 Mb/s path of 150 ms (docs/results/peers.md).
fn scenario(access_mbps: u32, sender: &str) -> String {
    format!(
        "duration_s = 400
sample_interval_ms = 100
[dumbbell]
rtt_ms = 150
access_mbps = {access_mbps}
[dumbbell.bottleneck]
rate_mbps = 10
queue = {{ kind = \"drop_tail\", packets = 50 }}
[sender]
{sender}
[[flow]]
controller = \"new_reno\"
"
    )
}

/// A field of `[sender]` and its value.
type Setting = (&'static str, &'static str);

/// Remy's settings, which are the defaults of our `ns2` sender, and ns-2's own.
const BASES: [(&str, u32, &[Setting]); 2] = [
    (
        "Remy's settings",
        100,
        &[("recovery", "\"ns2\""), ("timestamps", "true"), ("rto_tick_ms", "0.1")],
    ),
    (
        "ns-2's defaults",
        1000,
        &[
            ("recovery", "\"ns2\""),
            ("packet_bytes", "1250"),
            ("header_bytes", "40"),
            ("timestamps", "false"),
            ("rto_tick_ms", "10"),
        ],
    ),
];

const CHANGES: &[Setting] = &[
    ("recovery", "\"ns2\""),
    ("impatient", "false"),
    ("deflation", "false"),
    ("timestamps", "true"),
    ("timestamps", "false"),
    ("rto_tick_ms", "0.1"),
    ("rto_tick_ms", "1"),
    ("rto_tick_ms", "10"),
    ("rto_min_ms", "150"),
    ("rto_min_ms", "500"),
    ("rto_min_ms", "1000"),
    ("initial_cwnd_packets", "1"),
    ("initial_cwnd_packets", "4"),
    ("initial_cwnd_packets", "10"),
    ("initial_ssthresh_packets", "400"),
    ("handshake", "false"),
    ("ack_every", "2"),
];

fn run(access_mbps: u32, base: &[Setting], change: Setting) -> Outcome {
    let kept = base.iter().filter(|setting| setting.0 != change.0).chain([&change]);
    let sender: Vec<String> = kept.map(|(name, value)| format!("{name} = {value}")).collect();
    let text = scenario(access_mbps, &sender.join("\n"));
    let scenario = Scenario::parse(&text, "startup").expect("a scenario");
    sim::run(&scenario.network, Seed(1)).expect("built-in controllers")
}

fn main() {
    for (name, access_mbps, base) in BASES {
        println!("## {name}\n");
        println!(
            "| {name}, changed | Mb/s | time-outs | fast recoveries | window at 5 s | drops |"
        );
        println!("|---|---|---|---|---|---|");
        for &change in CHANGES.iter().filter(|change| !base[1..].contains(change)) {
            let outcome = run(access_mbps, base, change);
            let flow = &outcome.flows[0];
            let early = outcome.flow_series.cwnd_packets[50];
            let label = match change {
                ("recovery", _) => "nothing".to_owned(),
                (name, value) => format!("`{name} = {value}`"),
            };
            println!(
                "| {label} | {:.3} | {} | {} | {early:.1} | {} |",
                flow.delivered_bytes as f64 * 8e-6 / flow.active_s,
                flow.timeouts,
                flow.recoveries,
                flow.queue_drops,
            );
        }
        println!();
    }
}
