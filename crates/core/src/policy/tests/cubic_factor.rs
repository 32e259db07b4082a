use super::*;
use crate::controllers::test_support::flow;
use crate::env::Environment;
use crate::policy::Action;
use crate::rng::{Rng, Seed};
use crate::scenario::Scenario;
use crate::sim::record::Outcome;
use crate::sim::{self, Sim};
use crate::units::Bytes;
use std::sync::Arc;

const TABLES: &str = "[observation]\nfeatures = [\"latency_ratio\"]\nhistory = 1\n\
                      [decision]\nevery = \"time\"\nmin_ms = 20\n\
                      [action]\nmap = \"cubic_factor\"\nscale = 2.0\n\
                      [start]\nslow_start = false\nloss_guard = false\n";

/// A link, its queue and its loss, then what is beside a flow of CUBIC.
const NETWORKS: [(&str, &str); 4] = [
    ("rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 60 }", ""),
    (
        "rate_mbps = 40\nqueue = { kind = \"drop_tail\", packets = 30 }\n\
         loss = { kind = \"bernoulli\", ratio = 0.03 }",
        "count = 3\nstart_spread_s = 2\n",
    ),
    ("rate_mbps = 2\nqueue = { kind = \"drop_tail\", packets = 2 }\njitter_ms = 12", "count = 2\n"),
    ("rate_mbps = 12\nqueue = { kind = \"codel\", packets = 200, ecn = true }", "count = 2\n"),
];

fn scenario(link: &str, flows: &str) -> Scenario {
    let text = format!(
        "duration_s = 12\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\n\
         {link}\n[[flow]]\nname = \"learner\"\ncontroller = \"cubic\"\n{flows}"
    );
    Scenario::parse(&text, "law").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What the simulation makes of answers to a flow's decisions, by their number and the window, packets.
fn learned(
    scenario: &Scenario,
    tables: &str,
    mut answer: impl FnMut(u64, f64) -> f32,
) -> (Outcome, Vec<f64>) {
    let spec = Arc::new(PolicySpec::parse(tables).unwrap());
    let environment = Environment::new(scenario, &spec, &["learner".to_owned()], 8).unwrap();
    let mut episode = environment.begin(Seed(5)).unwrap();
    let mut windows = Vec::new();
    while episode.advance() {
        for agent in 0..episode.flows() {
            let due = episode.agent(agent).filter(|state| state.due);
            if let Some((number, cwnd)) = due.map(|s| (s.decision, s.arrived.cwnd_packets)) {
                windows.push(cwnd);
                assert!(episode.act(agent, Action::Values([answer(number, cwnd), 0.0])));
            }
        }
    }
    (episode.finish(), windows)
}

/// All there is of a run but the names and counters of controllers.
fn text(mut outcome: Outcome) -> String {
    outcome.events = 0; // with the timers of decisions
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

fn counted(outcome: &Outcome, name: &str) -> f64 {
    let counters = &outcome.flows[0].counters;
    counters.iter().find(|counter| counter.0 == name).expect("counted").1
}

#[test]
fn zeros_are_the_controller_cubic_to_the_last_packet() {
    for (link, flows) in NETWORKS {
        let scenario = scenario(link, flows);
        let (found, windows) = learned(&scenario, TABLES, |_, _| 0.0);
        let mut sim = Sim::new(&scenario.network, Seed(5), &mut sim::builtin).unwrap();
        sim.run_until(scenario.network.duration);
        assert!(windows.len() > 50, "{link}");
        assert_same(&text(found), &text(sim.finish()), link);
    }
}

#[test]
fn an_action_multiplies_the_window_by_four_to_its_power_within_the_bounds() {
    let tables = TABLES.replace("[start]", "[bounds]\ncwnd_min_packets = 4\n[start]");
    let spec = PolicySpec::parse(&tables).unwrap();
    let seed = 11;
    let mut rng = Rng::new(seed);
    for _ in 0..1000 {
        let mut law = CubicFactor::new(&flow(), &spec);
        let cwnd = libm::exp2(rng.uniform_in(0.0, 13.0));
        let value = rng.uniform_in(-1.0, 1.0);
        law.used = rng.uniform() < 0.8;
        law.cubic.set_cwnd_packets(cwnd);
        let wanted = match (value > 0.0, law.used) {
            (true, false) => cwnd,
            (true, true) => (cwnd * 4_f64.powf(value)).min(2000.0).max(cwnd),
            (false, _) => (cwnd * 4_f64.powf(value)).max(4.0).min(cwnd),
        };
        law.act(&Interval::default(), [value, 0.0]);
        assert!((law.cwnd() / wanted - 1.0).abs() < 1e-12, "seed {seed}: {cwnd} {value}");
    }
}

#[test]
fn cubic_goes_on_from_the_window_that_an_action_sets() {
    let (link, flows) = NETWORKS[0];
    let scenario = scenario(link, flows);
    let mut asked = None;
    let (_, windows) = learned(&scenario, TABLES, |number, cwnd| {
        if number > 300 && cwnd > 30.0 && asked.is_none() {
            asked = Some(number as usize);
            return -1.0;
        }
        0.0
    });
    let at = asked.expect("a wide window");
    let (cut, later) = (windows[at + 1], windows[at + 100]);
    assert!(cut < windows[at] / 2.0 && later > 1.5 * cut, "{} {cut} {later}", windows[at]);
}

#[test]
fn the_agent_acts_from_the_end_of_the_first_slow_start_on() {
    let (link, flows) = NETWORKS[0];
    let scenario = scenario(link, flows);
    let (found, _) = learned(&scenario, TABLES, |_, _| 0.0);
    let (early, all) = (counted(&found, "decisions_in_slow_start"), counted(&found, "decisions"));
    assert!(early > 0.0 && early < 0.2 * all, "{early} of {all}");
}

#[test]
fn after_a_round_trip_of_more_loss_than_delivery_no_action_raises_the_window() {
    let mut law = CubicFactor::new(&flow(), &PolicySpec::parse(TABLES).unwrap());
    law.cubic.set_cwnd_packets(40.0);
    law.act(&Interval::default(), [0.5, 0.0]);
    assert!((law.cwnd() - 80.0).abs() < 1e-9);
    law.on_loss(&Loss { lost: Bytes(1 << 20), kind: LossKind::More, ..Loss::default() });
    let ack = Ack { acked: flow().mss, recovering: 1, cwnd_limited: 1, ..Ack::default() };
    law.on_ack(&ack);
    assert!((law.cwnd() - 40.0).abs() < 1e-9, "halved");
    law.act(&Interval::default(), [1.0, 0.0]);
    assert!((law.cwnd() - 40.0).abs() < 1e-9, "not raised");
    law.on_ack(&ack);
    law.act(&Interval::default(), [1.0, 0.0]);
    assert!((law.cwnd() - 160.0).abs() < 1e-9, "{}", law.cwnd());
}

#[test]
fn tables_that_cubic_has_a_say_in_are_refused() {
    for (from, to, path) in [
        ("slow_start = false", "slow_start = true", "start.slow_start"),
        ("loss_guard = false", "loss_guard = true", "start.loss_guard"),
        ("loss_guard = false", "loss_guard = false\ntimeout_guard = true", "start.timeout_guard"),
    ] {
        let told = PolicySpec::parse(&TABLES.replace(from, to)).unwrap_err().to_string();
        assert!(told.contains(path) && told.contains("with map = \"cubic_factor\""), "{told}");
    }
}
