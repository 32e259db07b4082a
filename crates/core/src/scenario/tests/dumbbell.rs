//! Both directions of a dumbbell, and flows against the others.
use super::*;
use crate::sim::plan::{DelayPlan, LossSpec, QueueSpec, RatePlan};

/// [`DUMBBELL`] with a table of the reverse direction.
fn with_reverse(fields: &str) -> String {
    DUMBBELL.replace("[[flow]]", &format!("[dumbbell.reverse]\n{fields}\n[[flow]]"))
}

fn links(text: &str) -> Vec<crate::sim::plan::LinkPlan> {
    Scenario::parse(text, "s.toml").unwrap_or_else(|error| panic!("{error}")).network.links
}

#[test]
fn the_reverse_direction_has_fields_of_its_own_and_else_what_it_had_without() {
    let lossy = "loss = { kind = \"bernoulli\", ratio = 1, from_s = 2, until_s = 3 }";
    let links = links(&with_reverse(lossy));
    let back = &links[1];
    assert_eq!(back.name, "reverse");
    assert!(matches!(back.rate, RatePlan::Constant(rate) if rate == Rate::from_mbps(10.0)));
    assert!(matches!(back.delay, DelayPlan::Constant(span) if span == Span::from_millis(50)));
    assert_eq!(back.queue, QueueSpec::default());
    let all = LossSpec::Bernoulli { ratio: 1.0, from_s: 2.0, until_s: Some(3.0) };
    assert_eq!(back.loss, Some(all));
    assert_eq!(links[0].loss, None);
}

#[test]
fn the_reverse_direction_may_be_narrower_and_its_buffer_is_of_its_own_rate() {
    let fields = "rate_mbps = 0.2\nqueue = { kind = \"drop_tail\", bdp = 2 }\noutages = [[1, 2]]";
    let back = &links(&with_reverse(fields))[1];
    assert!(matches!(back.rate, RatePlan::Constant(rate) if rate == Rate::from_mbps(0.2)));
    let QueueSpec::DropTail { bytes, .. } = back.queue else { panic!("{:?}", back.queue) };
    assert_eq!(bytes, Some(5000)); // 0.2 Mb/s for 100 ms, twice
    assert_eq!(back.outages.len(), 1);
}

#[test]
fn a_reverse_delay_is_given_once() {
    assert_eq!(
        error(&with_reverse("delay_ms = 5")),
        "s.toml:8: dumbbell.reverse.delay_ms = 5: allowed is 0 beside dumbbell.rtt_ms"
    );
    let twice = with_reverse("delay_ms = 5").replace("rtt_ms = 100", "reverse_delay_ms = 20");
    assert_eq!(
        error(&twice),
        "s.toml:3: dumbbell.reverse_delay_ms = 20: allowed is 0 beside a delay in dumbbell.reverse"
    );
    let own = links(&with_reverse("delay_ms = 5").replace("rtt_ms = 100", ""));
    assert!(matches!(own[1].delay, DelayPlan::Constant(span) if span == Span::from_millis(5)));
    let varies = with_reverse("delay_ms = 5").replace("rtt_ms = 100", "reverse_varies = true");
    assert_eq!(
        error(&varies),
        "s.toml:3: dumbbell.reverse_varies = true: allowed is false beside a delay in \
         dumbbell.reverse"
    );
}

#[test]
fn a_buffer_of_the_reverse_direction_in_multiples_needs_a_rate() {
    let varying = with_reverse("queue = { kind = \"drop_tail\", bdp = 1 }")
        .replace("rate_mbps = 10", "rate_schedule = [[0, 10]]");
    assert_eq!(
        error(&varying),
        "s.toml:8: dumbbell.reverse.queue.bdp = 1: allowed is absent without rate_mbps"
    );
}

#[test]
fn a_delay_of_access_links_is_refused_without_access_links() {
    let alone = DUMBBELL.replace("rtt_ms = 100", "rtt_ms = 100\naccess_delay_ms = 5");
    assert_eq!(
        error(&alone),
        "s.toml:4: dumbbell.access_delay_ms = 5: allowed is absent without access_mbps"
    );
    links(&alone.replace("access_delay_ms = 5", "access_delay_ms = 0"));
    links(&alone.replace("rtt_ms = 100", "rtt_ms = 100\naccess_mbps = 20"));
}

#[test]
fn a_loss_ends_after_it_begins() {
    let loss = "loss = { kind = \"bernoulli\", ratio = 1, from_s = 2, until_s = 1 }";
    assert_eq!(
        error(&with_reverse(loss)),
        "s.toml:8: dumbbell.reverse.loss.until_s = 1: allowed is a number in [2, 100000000]"
    );
}

#[test]
fn a_backward_flow_swaps_the_directions_of_any_preset() {
    let flow = "[[flow]]\nbackward = true\n";
    let routes = |text: &str| {
        let network = Scenario::parse(text, "s.toml").unwrap().network;
        let route = network.connections[0].subflows[0].clone();
        let name = |link: &u32| network.links[*link as usize].name.clone();
        let names = |links: &[u32]| links.iter().map(name).collect::<Vec<_>>();
        (names(&route.forward), names(&route.reverse))
    };
    let there = routes(&DUMBBELL.replace("[[flow]]\n", flow));
    assert_eq!(there, (vec!["reverse".to_owned()], vec!["bottleneck".to_owned()]));
    let lot = "duration_s = 1\n[parking_lot]\nhops = 2\n[parking_lot.bottleneck]\nrate_mbps = 1\n";
    let (forward, back) = routes(&format!("{lot}{flow}"));
    assert_eq!(forward, ["hop1_reverse", "hop0_reverse"]);
    assert_eq!(back, ["hop0", "hop1"]);
    let two = "duration_s = 1\n[two_path.first]\nrate_mbps = 1\n[two_path.second]\nrate_mbps = 1\n";
    let (forward, _) = routes(&format!("{two}{flow}route = [1]\n"));
    assert_eq!(forward, ["path1_reverse"]);
}

#[test]
fn a_backward_flow_needs_a_preset() {
    assert_eq!(
        refused_free("path =", "backward = true\npath ="),
        "s.toml:9: flow[0].backward = true: allowed is only with a preset; with [[link]], path and \
         reverse name the links"
    );
}

#[test]
fn what_is_not_said_of_the_reverse_direction_is_not_written() {
    let text = Scenario::parse(DUMBBELL, "s.toml").unwrap().resolved();
    assert!(!text.contains("reverse]") && !text.contains("backward"), "{text}");
    let said = Scenario::parse(&with_reverse("rate_mbps = 2"), "s.toml").unwrap();
    let again = Scenario::parse(&said.resolved(), "again").unwrap();
    assert_eq!(again.resolved(), said.resolved());
}
