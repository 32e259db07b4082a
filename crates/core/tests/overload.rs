//! Loss without end has an end: on a path that drops what exceeds its rate without a queue that would show it, no
//! controller's sending rate grows without bound (RFC 9743 section 5.1.1).
use ackademy::controllers::ALL;
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim;

use crate::support::files::files;

/// 40 ms: ten round trips.
const START_S: f64 = 0.4;
const END_S: f64 = 8.0;
const POLICER: &str = "rate_mbps = 100\nqueue = { kind = \"drop_tail\", packets = 333 }\n\
                       policer = { rate_mbps = 10, burst_bytes = 30000 }";
const TINY: [&str; 2] = [
    "rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 1 }",
    "rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 2 }",
];

/// Packets sent and received until `end_s`.
fn counts(bottleneck: &str, flow: &str, end_s: f64) -> (u64, u64) {
    let text = format!(
        "duration_s = {end_s}\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\n{bottleneck}\n[[flow]]\n{flow}\n"
    );
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data");
    let mut load =
        |name: &str, _| std::fs::read(format!("{root}/{name}")).map_err(|error| error.to_string());
    let scenario = Scenario::parse_with(&text, "overload", &[], &mut load).expect("a scenario");
    let outcome = sim::run(&scenario.network, Seed(1)).expect("built-in controllers");
    (outcome.flows[0].sent_packets, outcome.flows[0].received_packets)
}

fn assert_bounded(flow: &str) {
    for bottleneck in [POLICER, TINY[0], TINY[1]] {
        let (start, end) = (counts(bottleneck, flow, START_S), counts(bottleneck, flow, END_S));
        let (sent, received) = (end.0 - start.0, end.1 - start.1);
        assert!(sent <= 3 * received, "{flow}: {sent} sent, {received} received\n{bottleneck}");
    }
}

#[test]
fn after_ten_round_trips_no_controller_sends_three_times_what_arrives() {
    for spec in ALL.iter().filter(|spec| files(spec).is_empty()) {
        assert_bounded(&format!("controller = \"{}\"", spec.name));
    }
}

#[test]
fn a_policy_that_sets_rates_sends_less_than_three_times_what_arrives() {
    assert_bounded("controller = \"policy\"\nparams = { policy = \"policies/aurora_mixed\" }");
}
