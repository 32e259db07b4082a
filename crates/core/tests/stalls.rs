//! What utilisation hides: time without delivery in order, and what arrived in order at all.
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::sim;
use ackademy::sim::record::Outcome;

fn run(link: &str, flow: &str) -> Outcome {
    let text = format!(
        "duration_s = 30\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 5\n{link}\n\
         [[flow]]\ncontroller = \"new_reno\"\n{flow}\n"
    );
    let scenario = Scenario::parse(&text, "stalls").expect("a scenario");
    sim::run(&scenario.network, Seed(1)).expect("built-in controllers")
}

#[test]
fn an_outage_is_a_stall_of_its_length_and_a_round_trip() {
    let outcome = run("outages = [[10, 15]]", "");
    let stall_ms = outcome.flows[0].stall_max_ms;
    assert!((5000.0..6500.0).contains(&stall_ms), "{stall_ms} ms");
    assert!(run("", "").flows[0].stall_max_ms < 1000.0);
}

#[test]
fn a_stall_that_lasts_to_the_end_counts_and_a_pause_of_the_application_does_not() {
    let stall_ms = run("outages = [[20, 31]]", "").flows[0].stall_max_ms;
    assert!((9900.0..=10_000.0).contains(&stall_ms), "{stall_ms} ms");
    let pauses =
        "traffic = { kind = \"request_response\", response_bytes = 20000, mean_think_s = 5 }";
    let flow = &run("", pauses).flows[0];
    assert!(flow.transfers >= 2 && flow.stall_max_ms < 100.0, "{flow:?}");
}

#[test]
fn goodput_over_a_link_is_that_of_its_flows_and_less_than_it_delivered() {
    let loss = "loss = { kind = \"bernoulli\", ratio = 0.02 }";
    let outcome = run(loss, "count = 3");
    let goodput: u64 = outcome.flows.iter().map(|flow| flow.goodput_bytes).sum();
    let link = &outcome.links[0];
    assert_eq!(link.goodput_bytes, goodput);
    assert!(link.goodput_bytes < link.delivered_bytes && goodput > 0, "{link:?}");
}

/// Behind a full queue a recovery ends only if the first hole's repair leaves first, or no more leaves than is delivered.
#[test]
fn no_recovery_goes_on_for_seconds_behind_small_buffers_drawn_at_random() {
    const SEED: u64 = 20_261_126;
    const DRAWN: usize = 300;
    let mut rng = Rng::new(SEED);
    let mut between = |low: f64, high: f64| low * (high / low).powf(rng.uniform());
    let mut stalled = Vec::new();
    for index in 0..DRAWN {
        let (rate_mbps, rtt_ms) = (between(0.5, 30.0), between(2.0, 150.0));
        let bdp = rate_mbps * rtt_ms / 12.0;
        let packets = (bdp * between(0.2, 3.0)).max(2.0) as u64;
        let packets = [packets, packets, 2, 3, 4, 6, 10][index % 7];
        let controller = ["new_reno", "cubic", "cubic_rfc9438", "illinois"][index % 4];
        let text = format!(
            "duration_s = 20\n[dumbbell]\nrtt_ms = {rtt_ms}\n[dumbbell.bottleneck]\nrate_mbps = {rate_mbps}\n\
             queue = {{ kind = \"drop_tail\", packets = {packets} }}\n[sender]\nack_every = {}\n\
             [[flow]]\ncontroller = \"{controller}\"\n",
            1 + index % 2
        );
        let scenario = Scenario::parse(&text, "stalls").expect("a scenario");
        let outcome = sim::run(&scenario.network, Seed(1)).expect("built-in controllers");
        if outcome.flows[0].stall_max_ms > 5000.0 {
            stalled.push(text);
        }
    }
    // With the repairs of one loss in reverse order and RFC 6937's reduction 12 of these stalled; either change mends them.
    assert!(stalled.is_empty(), "seed {SEED}, {} of {DRAWN}: {stalled:#?}", stalled.len());
}
