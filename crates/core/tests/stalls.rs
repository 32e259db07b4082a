//! What utilisation hides: time without delivery in order, and what arrived in order at all.
use ackademy::rng::Seed;
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
