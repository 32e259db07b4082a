//! Ours beside the CUBIC of Linux 6.18, whose figures stand here as data: `kernel:cubic` over the
//! lab's emulator, 15 s, means of two or three runs (docs/results/sim-to-real.md).
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim;
use ackademy::sim::record::Outcome;

fn run(text: &str, controller: &str) -> Outcome {
    let overrides = [("duration_s", "15"), ("flow.0.controller", controller)]
        .map(|(path, value)| (path.to_owned(), value.to_owned()));
    let mut none = |name: &str, _| Err(format!("no file is needed, not {name}"));
    let scenario = Scenario::parse_with(text, "gap", &overrides, &mut none).expect("a scenario");
    sim::run(&scenario.network, Seed(1)).expect("built-in controllers")
}

fn throughput_mbps(outcome: &Outcome) -> f64 {
    let flow = &outcome.flows[0];
    flow.delivered_bytes as f64 * 8e-6 / flow.active_s
}

fn loss_ratio(outcome: &Outcome) -> f64 {
    let flow = &outcome.flows[0];
    flow.dropped_packets as f64 / flow.sent_packets as f64
}

macro_rules! gap {
    ($name:literal) => {
        include_str!(concat!("../../../data/scenarios/gap/", $name, ".toml"))
    };
}

/// Scenario, throughput in Mb/s, packets lost of those sent.
const KERNEL: [(&str, f64, f64); 8] = [
    (gap!("slow_far"), 7.603, 1.00e-3),
    (gap!("short_path"), 32.899, 3.40e-4),
    (gap!("wide"), 59.246, 4.31e-4),
    (gap!("one_bdp"), 19.865, 4.63e-4),
    (gap!("deep_buffer"), 19.633, 1.01e-3),
    (gap!("fast"), 99.469, 1.57e-4),
    (gap!("long_path"), 9.481, 2.70e-3),
    (gap!("short_buffer"), 18.299, 1.45e-3),
];

#[test]
fn cubic_has_the_kernels_throughput_on_ordinary_links() {
    for (text, mbps, _) in KERNEL {
        let ours = throughput_mbps(&run(text, "\"cubic\""));
        assert!((ours / mbps - 1.0).abs() <= 0.03, "{ours} Mb/s, the kernel {mbps}\n{text}");
    }
}

#[test]
fn cubic_loses_what_the_kernels_loses_and_the_rfcs_five_times_as_much() {
    // An ACK per packet: Linux's receiver delays none at first, and trains have gaps of 2 ms at most.
    for (text, _, kernel) in &KERNEL[..6] {
        let text = format!("{text}\n[sender]\nack_every = 1\n");
        let ours = loss_ratio(&run(&text, "\"cubic\""));
        assert!((0.5..=1.5).contains(&(ours / kernel)), "{ours}, the kernel {kernel}\n{text}");
        let rfc = loss_ratio(&run(&text, "\"cubic_rfc9438\""));
        assert!(rfc > 5.0 * kernel, "{rfc}, the kernel {kernel}\n{text}");
    }
}

#[test]
fn under_codel_that_marks_cubic_waits_as_the_kernels_does() {
    let ours = run(gap!("ecn_codel"), "\"cubic\"");
    let (mbps, wait_ms) = (throughput_mbps(&ours), ours.links[0].wait_mean_ms);
    // The kernel: 15.77 and 16.08 Mb/s, 2.7 ms, 9 and 10 marks.
    assert!((mbps / 15.93 - 1.0).abs() <= 0.03, "{mbps}");
    assert!((1.3..=4.0).contains(&wait_ms), "{wait_ms}");
    assert!((5..=14).contains(&ours.links[0].marked_packets), "{:?}", ours.links[0]);
}
