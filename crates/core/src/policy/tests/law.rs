use crate::env::Environment;
use crate::policy::{Action, PolicySpec};
use crate::rng::Seed;
use crate::scenario::Scenario;
use crate::sim::record::Outcome;
use crate::sim::{self, Sim};
use std::sync::Arc;

const TABLES: &str = "[observation]\nfeatures = [\"queue\", \"drain\", \"action_0\", \"action_1\"]\nhistory = 2\n\
                      [decision]\nevery = \"srtt\"\n[action]\nmap = \"own_queue\"\n\
                      [start]\nslow_start = false\nloss_guard = false\n";

/// A link, its queue and its loss, then what is beside a flow of the law.
const NETWORKS: [(&str, &str); 6] = [
    ("rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 60 }", ""),
    (
        "rate_mbps = 40\nqueue = { kind = \"drop_tail\", packets = 30 }\n\
         loss = { kind = \"bernoulli\", ratio = 0.03 }",
        "count = 3\nstart_spread_s = 2\n",
    ),
    (
        "rate_mbps = 20\nqueue = { kind = \"drop_tail\", packets = 200 }",
        "[[flow]]\nname = \"rival\"\ncontroller = \"cubic\"\nstart_s = 3\nstop_s = 8\n",
    ),
    ("rate_mbps = 2\nqueue = { kind = \"drop_tail\", packets = 2 }\njitter_ms = 12", "count = 2\n"),
    ("rate_mbps = 12\nqueue = { kind = \"codel\", packets = 200, ecn = true }", "count = 2\n"),
    (
        "rate_mbps = 8\nqueue = { kind = \"drop_tail\", packets = 30 }\n\
         loss = { kind = \"gilbert_elliott\", good_to_bad = 0.02, bad_to_good = 0.2, bad_loss = 1.0 }",
        "",
    ),
];

fn scenario(link: &str, flows: &str) -> Scenario {
    let text = format!(
        "duration_s = 12\n[sender]\necn = \"accurate\"\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\n\
         {link}\n[[flow]]\nname = \"learner\"\ncontroller = \"own_queue\"\n{flows}"
    );
    Scenario::parse(&text, "law").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An environment's run of the scenario with these answers.
fn learned(scenario: &Scenario, answer: impl Fn(u64) -> [f32; 2]) -> Outcome {
    answered(scenario, TABLES, answer)
}

/// The same with other tables.
fn answered(scenario: &Scenario, tables: &str, answer: impl Fn(u64) -> [f32; 2]) -> Outcome {
    let spec = Arc::new(PolicySpec::parse(tables).unwrap());
    let environment = Environment::new(scenario, &spec, &["learner".to_owned()], 8).unwrap();
    let mut episode = environment.begin(Seed(5)).unwrap();
    while episode.advance() {
        for agent in 0..episode.flows() {
            if let Some(number) = episode.agent(agent).filter(|s| s.due).map(|s| s.decision) {
                assert!(episode.act(agent, Action::Values(answer(number))));
            }
        }
    }
    episode.finish()
}

/// All there is of a run but the names and counters of controllers.
fn text(mut outcome: Outcome) -> String {
    for flow in &mut outcome.flows {
        flow.counters.clear();
        flow.controller = "any".into();
    }
    for connection in &mut outcome.connections {
        connection.controller = "any".into();
    }
    format!("{outcome:?}")
}

/// Shows where two long texts part.
#[track_caller]
fn assert_same(found: &str, wanted: &str, about: &str) {
    let at = found.bytes().zip(wanted.bytes()).position(|(one, other)| one != other);
    let from = at.unwrap_or(found.len().min(wanted.len())).saturating_sub(200);
    let part = |text: &str| text.chars().skip(from).take(300).collect::<String>();
    assert!(found == wanted, "{about}\n{}\n{}", part(found), part(wanted));
}

fn alone(scenario: &Scenario) -> Outcome {
    let mut sim = Sim::new(&scenario.network, Seed(5), &mut sim::builtin).unwrap();
    sim.run_until(scenario.network.duration);
    sim.finish()
}

#[test]
fn zeros_under_contention_are_the_controller_own_queue_to_the_last_packet() {
    for (link, flows) in NETWORKS {
        let scenario = scenario(link, flows);
        let found = answered(&scenario, &contended(), |_| [0.0; 2]);
        let decisions = found.flows[0].counters[0];
        assert!(decisions.0 == "decisions" && decisions.1 > 50.0, "{decisions:?}");
        assert_same(&text(found), &text(alone(&scenario)), link);
    }
}

/// [`TABLES`] with the other map over the law.
fn paced() -> String {
    TABLES.replace("\"own_queue\"", "\"own_queue_paced\"")
}

#[test]
fn zeros_of_the_paced_map_are_the_controller_own_queue_to_the_last_packet() {
    for (link, flows) in NETWORKS {
        let scenario = scenario(link, flows);
        let found = answered(&scenario, &paced(), |_| [0.0; 2]);
        assert_same(&text(found), &text(alone(&scenario)), link);
    }
}

#[test]
fn a_paced_action_changes_what_the_law_does() {
    let (link, flows) = NETWORKS[2];
    let scenario = scenario(link, flows);
    let law = text(alone(&scenario));
    let found = |answer: [f32; 2]| text(answered(&scenario, &paced(), move |_| answer));
    assert!(found([0.5, 0.0]) != law);
    assert_same(&found([0.5, 1.0]), &found([0.5, 1.0]), "the same answers");
}

#[test]
fn the_target_of_a_paced_policy_is_that_of_the_controller() {
    let (link, _) = NETWORKS[0];
    let larger = scenario(link, "params = { target_packets = 7.0 }\n");
    let spec = paced().replace("_paced\"", "_paced\"\ntarget_packets = 7.0");
    let found = text(answered(&scenario(link, ""), &spec, |_| [0.0; 2]));
    assert_same(&found, &text(alone(&larger)), "target_packets = 7");
    for (tables, allowed) in [
        (spec.replace("_paced", ""), "allowed is nothing, unless map = \"own_queue_paced\""),
        (spec.replace("7.0", "0.01"), "allowed is a number in [0.1, 1000]"),
        (spec.replace("target_packets", "exponent"), "unless map = \"own_queue\""),
    ] {
        let told = PolicySpec::parse(&tables).unwrap_err().to_string();
        assert!(told.contains("action.") && told.contains(allowed), "{told}");
    }
}

#[test]
fn each_value_changes_what_the_law_does() {
    let (link, flows) = NETWORKS[0];
    let scenario = scenario(link, flows);
    let as_text = |answer: fn(u64) -> [f32; 2]| text(learned(&scenario, answer));
    let law = as_text(|_| [0.0; 2]);
    assert!(as_text(|_| [0.5, 0.0]) != law);
    assert!(as_text(|n| [0.0, if n % 2 == 0 { 0.3 } else { -0.3 }]) != law);
}

#[test]
fn the_counters_of_the_law_are_those_of_the_controller() {
    let scenario = scenario(NETWORKS[0].0, "");
    let learned = learned(&scenario, |_| [0.0; 2]).flows[0].counters.clone();
    let alone = alone(&scenario).flows[0].counters.clone();
    assert!(!alone.is_empty());
    assert!(learned.ends_with(&alone), "{learned:?} {alone:?}");
}

#[test]
fn tables_that_the_law_has_a_say_in_are_refused() {
    for (from, to, path) in [
        ("every = \"srtt\"", "every = \"min_rtt\"", "decision.every"),
        ("every = \"srtt\"", "every = \"srtt\"\ntimes = 2.0", "decision.times"),
        ("every = \"srtt\"", "every = \"srtt\"\nmin_ms = 5.0", "decision.min_ms"),
        ("slow_start = false", "slow_start = true", "start.slow_start"),
        ("loss_guard = false", "loss_guard = true", "start.loss_guard"),
        ("loss_guard = false", "loss_guard = false\ntimeout_guard = true", "start.timeout_guard"),
        ("[start]", "[bounds]\ncwnd_min_packets = 4\n[start]", "bounds.cwnd_min_packets"),
        ("[start]", "[bounds]\ncwnd_max_packets = 400\n[start]", "bounds.cwnd_max_packets"),
    ] {
        let text = TABLES.replace(from, to);
        let told = PolicySpec::parse(&text).unwrap_err().to_string();
        assert!(told.contains(path) && told.contains("with map = \"own_queue\""), "{told}");
    }
}

#[test]
fn the_exponent_of_a_policy_is_that_of_the_controller() {
    let (link, _) = NETWORKS[0];
    let plain = scenario(link, "");
    let constant = scenario(link, "params = { exponent = 0.0 }\n");
    let spec = TABLES.replace("\"own_queue\"", "\"own_queue\"\nexponent = 0.0");
    let found = text(answered(&plain, &spec, |_| [0.0; 2]));
    assert_same(&found, &text(alone(&constant)), "exponent = 0");
    assert!(found != text(alone(&plain)));
}

/// [`TABLES`] with actions under contention alone.
fn contended() -> String {
    TABLES.replace("\"own_queue\"", "\"own_queue\"\nwhen = \"contention\"")
}

/// A counter of the first flow.
fn counted(outcome: &Outcome, name: &str) -> f64 {
    let counters = &outcome.flows[0].counters;
    counters.iter().find(|counter| counter.0 == name).expect("counted").1
}

#[test]
fn without_contention_no_action_changes_what_the_law_does() {
    let scenario = scenario(NETWORKS[0].0, "");
    let found = answered(&scenario, &contended(), |_| [0.7, -0.5]);
    let decisions = counted(&found, "decisions");
    assert!(
        decisions > 100.0 && counted(&found, "decisions_uncontended").total_cmp(&decisions).is_eq()
    );
    assert_same(&text(found), &text(alone(&scenario)), "alone");
}

#[test]
fn losses_are_no_contention() {
    let (link, flows) = NETWORKS[1];
    let scenario = scenario(link, flows);
    let found = answered(&scenario, &contended(), |_| [0.7, 0.0]);
    let decisions = counted(&found, "decisions");
    assert!(found.flows[0].random_losses > 0 && decisions > 100.0);
    assert!(counted(&found, "decisions_uncontended").total_cmp(&decisions).is_eq());
    assert_same(&text(found), &text(alone(&scenario)), "random loss");
}

#[test]
fn actions_count_while_a_rival_is_there() {
    let (link, flows) = NETWORKS[2];
    let scenario = scenario(link, flows);
    let answer = |_| [0.7, 0.0];
    let found = answered(&scenario, &contended(), answer);
    let (decisions, calm) =
        (counted(&found, "decisions"), counted(&found, "decisions_uncontended"));
    assert!(calm > 0.2 * decisions && calm < 0.7 * decisions, "{calm} of {decisions}");
    let found = text(found);
    assert!(found != text(alone(&scenario)), "they do");
    assert!(found != text(learned(&scenario, answer)), "not at all times");
}

#[test]
fn contention_is_of_the_law_alone() {
    let text = contended().replace("\"own_queue\"", "\"cwnd_factor\"");
    let told = PolicySpec::parse(&text).unwrap_err().to_string();
    assert!(told.contains("action.when") && told.contains("unless map = \"own_queue\""), "{told}");
}

#[test]
fn an_exponent_that_the_law_has_not_is_refused() {
    for (from, to, allowed) in [
        ("\"own_queue\"", "\"own_queue\"\nexponent = 1.0", "= 1: allowed is a number in [0, 0.9]"),
        ("\"own_queue\"", "\"cwnd_factor\"\nexponent = 0.5", "unless map = \"own_queue\""),
    ] {
        let told = PolicySpec::parse(&TABLES.replace(from, to)).unwrap_err().to_string();
        assert!(told.contains("action.exponent = ") && told.contains(allowed), "{told}");
    }
}
