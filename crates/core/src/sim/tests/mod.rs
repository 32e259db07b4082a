//! What the simulator keeps and counts, where an outcome alone does not show it.
use super::link::{Link, Offer};
use super::*;
use crate::scenario::Scenario;
use crate::sim::record::Outcome;

mod cellular;
mod extras;
mod feedback;
mod low_latency;
mod misbehaviour;
mod multipath;
mod waits;
mod writes;

fn network(text: &str) -> NetworkPlan {
    Scenario::parse(text, "test").unwrap_or_else(|error| panic!("{error}\n{text}")).network
}

fn outcome(text: &str) -> Outcome {
    run(&network(text), Seed(1)).expect("built-in controllers")
}

/// The most events that ever waited, looked at every 10 ms.
fn largest_heap(text: &str) -> usize {
    let network = network(text);
    let mut sim = Sim::new(&network, Seed(1), &mut builtin).expect("built-in controllers");
    let mut largest = 0;
    while sim.now() < network.duration {
        sim.run_until(sim.now() + Span::from_millis(10));
        largest = largest.max(sim.net.pending());
    }
    largest
}

fn dumbbell(bottleneck: &str, flow: &str) -> String {
    format!(
        "duration_s = 20\n[dumbbell]\nrtt_ms = 20\n[dumbbell.bottleneck]\n{bottleneck}\n[[flow]]\n{flow}\n"
    )
}

#[test]
fn timers_that_come_and_go_do_not_fill_the_heap() {
    let sender =
        "sender = { pacing = true, rto_min_ms = 10000, rto_max_ms = 100000, ack_every = 3 }";
    let paced = dumbbell("rate_mbps = 20\nqueue = { kind = \"drop_tail\", packets = 20 }", sender);
    assert!(largest_heap(&paced) < 12, "{}", largest_heap(&paced));
}

#[test]
fn transfers_before_a_stop_do_not_fill_the_heap() {
    let traffic = "stop_s = 19\n\
                   traffic = { kind = \"request_response\", response_bytes = 100, mean_think_s = 0 }";
    let text = dumbbell("rate_mbps = 20", traffic);
    let outcome = outcome(&text);
    assert!(outcome.flows[0].transfers > 300, "{:?}", outcome.flows[0]);
    assert!(largest_heap(&text) < 12, "{}", largest_heap(&text));
}

#[test]
fn an_overloaded_link_delivers_its_capacity_and_keeps_the_rest() {
    let cbr = "traffic = { kind = \"cbr\", rate_mbps = 20, packet_bytes = 1000 }";
    for extra in [
        "",
        "queue = { kind = \"drop_tail\", packets = 100000 }",
        "queue = { kind = \"codel\", packets = 100000 }",
        "loss = { kind = \"bernoulli\", ratio = 0.5 }",
    ] {
        let link = &outcome(&dumbbell(&format!("rate_mbps = 10\n{extra}"), cbr)).links[0];
        assert!(link.queued_packets > 9000, "{extra}: {link:?}");
        assert!(link.delivered_bytes <= link.capacity_bytes, "{extra}: {link:?}");
        let carried = if extra.contains("loss") { 0.5 } else { 1.0 };
        let part = link.delivered_bytes as f64 / link.capacity_bytes as f64;
        assert!((part / carried - 1.0).abs() < 0.02, "{extra}: {link:?}");
    }
}

#[test]
fn a_scheduler_reports_its_marks_and_waits() {
    for queue in ["codel", "fq_codel"] {
        let bottleneck =
            format!("rate_mbps = 5\nqueue = {{ kind = \"{queue}\", packets = 1000, ecn = true }}");
        let outcome = outcome(&dumbbell(&bottleneck, "sender = { ecn = \"classic\" }"));
        let (link, flow) = (&outcome.links[0], &outcome.flows[0]);
        assert!(link.marked_packets > 10, "{queue}: {link:?}");
        assert!((1.0..20.0).contains(&link.wait_mean_ms), "{queue}: {link:?}");
        assert!(flow.ce_marked_bytes >= link.marked_packets * 1000, "{queue}: {flow:?}");
    }
}

#[test]
fn a_free_link_begins_one_transmission_at_a_time() {
    let text = dumbbell("rate_mbps = 12\nqueue = { kind = \"codel\", packets = 100 }", "");
    let network = network(&text);
    let mut link = Link::new(&network.links[0], 0, Seed(1), Span::ZERO);
    let mut dropped = Vec::new();
    let packet = || Packet { size: 1500, ..Packet::default() };
    let millisecond = Span::from_millis(1);
    let now = Time(0);
    assert_eq!(link.offer(now, &mut packet(), &mut dropped), Offer::HeldIdle);
    let (_, _, free_at) = link.transmit(now, &mut dropped).expect("a packet");
    assert_eq!(free_at, now + millisecond);
    for _ in 0..2 {
        // In the instant that the link is free, two events may ask for the next transmission.
        link.offer(free_at, &mut packet(), &mut dropped);
    }
    assert!(link.transmit(free_at, &mut dropped).is_some());
    assert!(link.transmit(free_at, &mut dropped).is_none());
    assert_eq!(link.held(), 1);
}

#[test]
fn a_constant_rate_source_is_active_until_it_stops() {
    let cbr =
        "start_s = 1\nstop_s = 11\ntraffic = { kind = \"cbr\", rate_mbps = 1, packet_bytes = 500 }";
    let flow = &outcome(&dumbbell("rate_mbps = 10", cbr)).flows[0];
    assert!((flow.active_s - 10.0).abs() < 1e-9, "{flow:?}");
    assert_eq!((flow.sent_packets, flow.received_packets), (2500, 2500));
    assert_eq!((flow.delivered_bytes, flow.transfers), (2500 * 500, 1));
}

#[test]
fn copies_of_datagrams_are_received_and_not_delivered() {
    let cbr = "stop_s = 10\ntraffic = { kind = \"cbr\", rate_mbps = 1, packet_bytes = 500 }";
    let flow = &outcome(&dumbbell("rate_mbps = 10\nduplicate_ratio = 1", cbr)).flows[0];
    assert_eq!((flow.received_packets, flow.delivered_bytes), (5000, 2500 * 500));
}

#[test]
fn a_loss_is_not_taken_back_because_the_link_duplicates() {
    for ratio in ["0.02", "0.3", "1"] {
        let link = format!(
            "rate_mbps = 10\nduplicate_ratio = {ratio}\nloss = {{ kind = \"bernoulli\", ratio = 0.01 }}\n\
             queue = {{ kind = \"drop_tail\", packets = 20 }}"
        );
        let network = network(&dumbbell(&link, "controller = \"new_reno\""));
        let mut sim = Sim::new(&network, Seed(1), &mut builtin).expect("built-in controllers");
        sim.run_until(network.duration);
        let stats = sim.hosts.flows[0].sender.stats();
        assert!(stats.recoveries > 50, "{ratio}: {stats:?}");
        assert_eq!(stats.spurious, 0, "{ratio}: {} recoveries", stats.recoveries);
    }
}

#[test]
fn small_packets_behind_a_gap_are_counted_at_their_size() {
    let small =
        "stop_s = 15\ntraffic = { kind = \"app_limited\", rate_mbps = 0.5, write_bytes = 100 }";
    let loss = "rate_mbps = 10\nloss = { kind = \"bernoulli\", ratio = 0.1 }";
    let flow = &outcome(&dumbbell(loss, small)).flows[0];
    // Everything written has arrived in order, each byte once, but for what waited for the window at the end.
    let written = (15.0 * 0.5e6 / 8.0 / 100.0) as u64 * 100;
    assert!((written - 1000..=written + 100).contains(&flow.goodput_bytes), "{written} {flow:?}");
    assert_eq!(flow.goodput_bytes % 100, 0);
}

#[test]
fn a_link_that_dies_reports_the_waits_of_what_it_served() {
    let cbr = "traffic = { kind = \"cbr\", rate_mbps = 5, packet_bytes = 1000 }";
    let link = &outcome(&dumbbell("rate_schedule = [[0, 10], [5, 0]]", cbr)).links[0];
    assert!(link.wait_mean_ms < 1.0, "{link:?}");
    assert!((3120..=3126).contains(&link.delivered_packets), "{link:?}");
}

#[test]
fn a_poisson_source_has_all_its_arrivals() {
    let poisson = "traffic = { kind = \"poisson\", per_s = 200, mean_bytes = 1000 }";
    let flows = outcome(&dumbbell("rate_mbps = 10", poisson)).flows.len() as f64;
    assert!((flows / 4000.0 - 1.0).abs() < 0.06, "{flows}"); // four standard deviations
}

#[test]
fn delays_of_days_do_not_overflow_any_sum() {
    let links: Vec<String> = (0..20)
        .map(|link| format!("[[link]]\nname = \"l{link}\"\nrate_mbps = 1000\ndelay_ms = 1e7\n"))
        .collect();
    let links = links.concat();
    let path: Vec<String> = (0..20).map(|link| format!("\"l{link}\"")).collect();
    let outcome = outcome(&format!(
        "duration_s = 2e6\n{links}[[flow]]\npath = [{}]\n\
         traffic = {{ kind = \"cbr\", rate_mbps = 1e-3, packet_bytes = 1000 }}\n",
        path.join(", ")
    ));
    let flow = &outcome.flows[0];
    assert!(flow.received_packets > 200_000, "{flow:?}");
    assert!((flow.owd_mean_ms / 2e8 - 1.0).abs() < 1e-6, "{flow:?}");
}

/// With thousands of flows each packet brings its flow's state from memory, line by line: what only some
/// flows need (what is out of order, what was lost) and what many share (limits, settings) lies outside.
#[test]
fn the_state_that_packets_of_a_flow_touch_takes_at_most_fifteen_lines() {
    assert!(size_of::<Flow>() <= 15 * 64, "{} bytes", size_of::<Flow>());
}
