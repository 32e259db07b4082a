//! What a scenario promises once it is accepted.
use super::*;
use crate::controllers::lp_tcp::Policy;
use crate::coupled;
use crate::params::{FILE_BYTES_MAX, Params};
use crate::policy::grown::Arrays;
use std::sync::Arc;

/// Every kind of thing that a file can say.
const RICH: &str = r#"
name = "rich"
duration_s = 3
sample_interval_ms = 100
[[link]]
name = "a"
rate_random = { low_mbps = 1, high_mbps = 20, hz = 10 }
delay_random = { low_ms = 5, high_ms = 10, hz = 5 }
queue = { kind = "fq_codel", packets = 100, ecn = true }
[[link]]
name = "b"
rate_schedule = [[0, 5], [1.5, 0.25]]
delay_schedule = [[0, 5], [1, 10]]
queue = { kind = "red", min_packets = 5, max_packets = 15, packets = 60 }
loss = { kind = "gilbert_elliott", good_to_bad = 0.01, bad_to_good = 0.3 }
reorder = { ratio = 0.01, low_ms = 1, high_ms = 5 }
duplicate_ratio = 0.01
outages = [[0.5, 0.6]]
keep_order = false
[[link]]
name = "c"
trace = "lte \"1\".down"
delay_ms = 10
jitter_ms = 0.5
loss_schedule = [[0, 0], [1, 0.02]]
queue = { kind = "pie", packets = 100 }
[sender]
ecn = "classic"
pacing = true
[[flow]]
count = 2
start_step_s = 0.1
path = ["a", "b"]
reverse = ["c"]
traffic = { kind = "on_off", mean_bytes = 1e5, mean_off_s = 0.1 }
params = { beta = 0.5 }
controller = "cubic"
[[flow]]
path = ["c"]
sender = { recovery = "ns2" }
traffic = { kind = "request_response", response_bytes = 20000, mean_think_s = 0.01 }
stop_s = 2.5
"#;

fn rich() -> Scenario {
    parse_rich(RICH)
}

fn parse_rich(text: &str) -> Scenario {
    Scenario::parse_with(text, "dir/rich.toml", &[], &mut |_, _| Ok(b"1\n2\n7\n".to_vec())).unwrap()
}

#[test]
fn the_canonical_text_is_a_scenario_of_the_same_meaning() {
    let scenario = rich();
    let canonical = scenario.canonical();
    let reread = parse_rich(&canonical);
    assert_eq!(reread.spec, scenario.spec);
    assert_eq!(reread.canonical(), canonical);
}

#[test]
fn equal_canonical_texts_give_equal_outcomes() {
    let scenario = rich();
    // Another order, other spacing, other comments: the same scenario.
    let moved = RICH.replace("name = \"rich\"\n", "").replace("duration_s = 3", "duration_s=3.0");
    let other = parse_rich(&format!("name = 'rich' # moved\n{moved}"));
    assert_eq!(other.canonical(), scenario.canonical());
    let run = |scenario: &Scenario| crate::sim::run(&scenario.network, Seed(5)).unwrap();
    let (first, second) = (run(&scenario), run(&other));
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
    assert!(first.flows.iter().all(|flow| flow.received_packets > 0));
}

#[test]
fn the_canonical_text_tells_traces_apart_by_content() {
    let other =
        Scenario::parse_with(RICH, "r", &[], &mut |_, _| Ok(b"1\n2\n8\n".to_vec())).unwrap();
    assert_ne!(other.canonical(), rich().canonical());
}

#[test]
fn with_controller_changes_every_flow_and_nothing_else() {
    let scenario = rich();
    let other = scenario.with_controller("new_reno", &[]).unwrap();
    assert!(other.network.connections.iter().all(|plan| plan.controller == "new_reno"));
    assert!(other.network.connections.iter().all(|plan| plan.params.is_empty()));
    assert_ne!(other.canonical(), scenario.canonical());
    let mut spec = other.spec.clone();
    for (flow, old) in spec.flow.iter_mut().zip(&scenario.spec.flow) {
        flow.controller.clone_from(&old.controller);
        flow.params.clone_from(&old.params);
    }
    assert_eq!(spec, scenario.spec);
    let error = scenario.with_controller("vega", &[]).unwrap_err();
    assert!(error.to_string().starts_with("dir/rich.toml:37: flow[0].controller = \"vega\": "));
    let beta = [("beta".to_owned(), ParamValue::Number(7.0))];
    assert!(scenario.with_controller("cubic", &beta).is_err());
    let own = scenario.with_controller("mine.py:Mine", &beta).unwrap();
    assert_eq!(own.network.connections[0].params, beta);
}

#[test]
fn a_controller_may_go_to_some_entries_only() {
    let text = DUMBBELL.replace("[[flow]]", "[[flow]]\nname = \"three\"\ncount = 3");
    let text = format!("{text}\n[[flow]]\nname = \"other\"\ncontroller = \"cubic\"\n");
    let scenario = Scenario::parse(&text, "mixed.toml").unwrap();
    let names = scenario.entry_names();
    assert_eq!(names, ["three", "other"]);
    let mixed = scenario.with_controller_for("rl_tcp", &[], &|name| name == "other").unwrap();
    for (flow, old) in mixed.spec.flow.iter().zip(&scenario.spec.flow) {
        let chosen = flow.name.as_deref() == Some("other");
        assert_eq!(flow.controller, if chosen { "rl_tcp" } else { old.controller.as_str() });
    }
    let governed = |scenario: &Scenario| -> Vec<String> {
        let plans = scenario.network.connections.iter();
        plans.map(|plan| format!("{} {}", plan.name, plan.controller)).collect()
    };
    assert_eq!(
        governed(&mixed),
        ["three_0 cubic", "three_1 cubic", "three_2 cubic", "other rl_tcp"]
    );
    let mixed = scenario.with_controller_for("rl_tcp", &[], &|name| name == "three").unwrap();
    let expected = ["three_0 rl_tcp", "three_1 rl_tcp", "three_2 rl_tcp", "other cubic"];
    assert_eq!(governed(&mixed), expected);
}

#[test]
fn a_scenario_without_a_name_has_its_files() {
    assert_eq!(rich().name(), "rich");
    assert_eq!(Scenario::parse(DUMBBELL, "dir/two words.toml").unwrap().name(), "two words");
}

#[test]
fn a_dumbbell_splits_its_round_trip_and_limits_one_direction() {
    let network = Scenario::parse(DUMBBELL, "s").unwrap().network;
    assert_eq!(network.links.len(), 2);
    let delays: Vec<Span> = network.links.iter().map(|link| link.delay.minimum()).collect();
    assert_eq!(delays, [Span::from_millis(50); 2]);
    assert_eq!(network.links[1].queue, crate::sim::plan::QueueSpec::default());
    assert_eq!(network.connections[0].subflows[0].reverse, [1]);
    assert_eq!(network.duration, Time(0) + Span::from_millis(10_000));
}

#[test]
fn a_reverse_direction_that_varies_has_the_bottleneck_s_draws_and_order_and_no_others() {
    for keep_order in [true, false] {
        let text = format!(
            "duration_s = 10\n[dumbbell]\nreverse_varies = true\naccess_mbps = 100\n\
             [dumbbell.bottleneck]\nrate_mbps = 10\nkeep_order = {keep_order}\n\
             delay_random = {{ low_ms = 60, high_ms = 160, hz = 10 }}\n[[flow]]\n"
        );
        let network = Scenario::parse(&text, "s").unwrap().network;
        let [forward, reverse] = [&network.links[0], &network.links[1]];
        assert_eq!((forward.delay_of, reverse.delay_of), (None, Some(0)));
        let delay = format!("{:?}", forward.delay);
        assert_eq!(format!("{:?}", reverse.delay), delay);
        assert_eq!(reverse.delay.minimum(), Span::from_millis(60));
        assert_eq!((forward.keep_order, reverse.keep_order), (keep_order, keep_order));
        assert!(network.links[2..].iter().all(|link| link.delay_of.is_none()));
        let apart = text.replace("reverse_varies = true\n", "");
        let reverse = &Scenario::parse(&apart, "s").unwrap().network.links[1];
        assert_eq!((reverse.delay_of, reverse.delay.minimum()), (None, Span::ZERO));
    }
}

#[test]
fn defaults_follow_the_recovery_and_the_flow_goes_before_the_scenario() {
    let text = DUMBBELL.replace("[[flow]]", "[sender]\npacket_bytes = 1000\n[[flow]]");
    let text = text + "[[flow]]\nsender = { recovery = \"ns2\", packet_bytes = 1250 }\n";
    let network = Scenario::parse(&text, "s").unwrap().network;
    let [sack, ns2] = [0, 1].map(|index| network.connections[index].sender);
    assert_eq!((sack.packet, sack.initial_cwnd, sack.ack_every), (Bytes(1000), Bytes(10_000), 2));
    assert_eq!((ns2.packet, ns2.initial_cwnd, ns2.ack_every), (Bytes(1250), Bytes(2500), 1));
    assert!(sack.rack && !ns2.rack && ns2.handshake && !sack.handshake);
}

/// A flow under LP-TCP, whose policy `load` gives.
fn with_policy(load: &mut Loader) -> Result<Scenario, ScenarioError> {
    let text = DUMBBELL.replace(
        "controller = \"cubic\"",
        "controller = \"lp_tcp\"\nparams = { policy = \"dir/forest\" }",
    );
    assert_ne!(text, DUMBBELL);
    Scenario::parse_with(&text, "s.toml", &[], load)
}

/// A forest of one leaf.
fn leaf(value: f32) -> Vec<u8> {
    let leaf = Arrays {
        root: vec![0],
        feature: vec![255],
        threshold: vec![0.0],
        child: vec![0],
        value: vec![value],
    };
    leaf.to_bytes(&[("features", "kong2018-55")])
}

#[test]
fn a_file_of_a_controller_is_read_by_its_name_and_told_apart_by_its_content() {
    let canonical = |value: f32| {
        let mut names = Vec::new();
        let scenario = with_policy(&mut |name, _| {
            names.push(name.to_owned());
            Ok(leaf(value))
        });
        assert_eq!(names, ["dir/forest"]);
        scenario.unwrap().canonical()
    };
    assert_eq!(canonical(0.25), canonical(0.25));
    assert_ne!(canonical(0.25), canonical(0.5));
    assert!(!canonical(0.25).contains("dir/forest"), "a moved file gives the same run");
}

#[test]
fn entries_that_name_one_file_share_what_it_holds() {
    let flow = |name: &str| {
        format!("[[flow]]\ncontroller = \"lp_tcp\"\nparams = {{ policy = \"{name}\" }}\n")
    };
    let text = format!("{}{}{}{}", DUMBBELL, flow("a").repeat(3), flow("b"), flow("a"));
    let mut names = Vec::new();
    let mut load = |name: &str, bytes_max| {
        names.push((name.to_owned(), bytes_max));
        Ok(leaf(0.5))
    };
    let network = Scenario::parse_with(&text, "s.toml", &[], &mut load).unwrap().network;
    assert_eq!(names, [("a".to_owned(), FILE_BYTES_MAX), ("b".to_owned(), FILE_BYTES_MAX)]);
    let list = coupled::settings("lp_tcp").unwrap();
    let policy = |index: usize| {
        let params = Params::resolve(list, &network.connections[index].params).unwrap();
        params.file::<Policy>("policy")
    };
    let first = policy(1);
    assert!([2, 3, 5].into_iter().all(|index| Arc::ptr_eq(&first, &policy(index))));
    assert!(!Arc::ptr_eq(&first, &policy(4)));
}

#[test]
fn a_file_of_a_controller_that_is_wrong_is_refused_with_its_line_and_field() {
    let refused = |content: Result<Vec<u8>, String>| {
        with_policy(&mut move |_, _| content.clone()).unwrap_err().to_string()
    };
    let unread = refused(Err("a file that can be read (it is gone)".to_owned()));
    let (place, rest) = unread.split_once(": ").unwrap();
    assert!(place.starts_with("s.toml:"), "{unread}");
    assert_eq!(
        rest,
        "flow[0].params.policy = \"dir/forest\": allowed is a file that can be read (it is gone)"
    );
    let wrong = refused(Ok(leaf(2.0)));
    assert!(wrong.ends_with(" (value[0] = 2: allowed is a number in [0, 1])"), "{wrong}");
}

#[test]
fn a_controller_that_needs_a_file_is_refused_without_one() {
    let text = DUMBBELL.replace("cubic", "lp_tcp");
    let error = Scenario::parse(&text, "s.toml").unwrap_err().to_string();
    assert!(error.contains("flow[0].params.policy = absent: allowed is a file with"), "{error}");
}
