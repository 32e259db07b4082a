use super::*;
use crate::policy::joint::{JointNetworkAgent, JointPolicy};
use crate::rng::Seed;
use crate::sim::record::Outcome;

const FLOWS: &str = "[[flow]]\nname = \"many\"\ncontroller = \"cubic\"\nmultipath = true\ncount = 3\n\
                     start_spread_s = 0.1\n[[flow]]\nname = \"one\"\ncontroller = \"cubic\"\n";

fn scenario(flows: &str) -> Scenario {
    let path = "rate_mbps = 8, delay_ms = 50, queue = { kind = \"drop_tail\", packets = 300 }, \
                loss = { kind = \"bernoulli\", ratio = 0.01 }";
    let text = format!(
        "duration_s = 20\n[two_path]\nfirst = {{ {path} }}\nsecond = {{ {path} }}\n{flows}"
    );
    let files = format!("{}/tests/files/drl_cc", env!("CARGO_MANIFEST_DIR"));
    let mut load =
        |name: &str, _| std::fs::read(format!("{files}/{name}")).map_err(|error| error.to_string());
    Scenario::parse_with(&text, "host", &[], &mut load).unwrap_or_else(|error| panic!("{error}"))
}

fn policy() -> JointPolicy {
    let file = |name| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/drl_cc/policy");
        std::fs::read(format!("{folder}/{name}")).unwrap()
    };
    JointPolicy::read(&[file("policy.toml"), file("weights.safetensors")]).unwrap()
}

fn environment(flows: &str) -> HostEnvironment {
    HostEnvironment::new(&scenario(flows), policy().spec(), &["*".to_owned()]).unwrap()
}

/// An episode whose actions are the policy's, made outside.
fn outside(flows: &str, agent: &mut JointNetworkAgent) -> (Outcome, u64) {
    let mut episode = environment(flows).begin(Seed(1)).unwrap();
    let mut asked = 0;
    while episode.advance() {
        asked += 1;
        let numbers = episode.state().unwrap().observation.clone();
        let changes = agent.act(&numbers).unwrap();
        assert!(episode.act(changes));
        assert!(!episode.act(changes), "one action per decision");
    }
    (episode.finish(), asked)
}

#[test]
fn a_policy_governs_a_host_as_it_does_when_its_decisions_are_made_outside() {
    let (found, asked) = outside(FLOWS, &mut policy().agent());
    let own = FLOWS.replace(
        "controller = \"cubic\"",
        "controller = \"drl_cc\"\nparams = { policy = \"policy\" }",
    );
    let expected = sim::run(&scenario(&own).network, Seed(1)).unwrap();
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    assert!(asked > 50, "{asked} decisions");
}

#[test]
fn a_host_is_asked_on_after_a_subflow_of_its_first_connection_has_closed() {
    let closing = "[[flow]]\ncontroller = \"cubic\"\n\
                   mptcp = { subflow = [{ route = [0], stop_s = 5 }, { route = [1] }] }\n";
    let mut episode = environment(closing).begin(Seed(1)).unwrap();
    let mut last = 0.0;
    while episode.advance() {
        let state = episode.state().unwrap();
        last = state.arrived.time_s;
        let closed = state.observation[10..15].iter().all(|value| *value == 0.0);
        assert_eq!(closed, last > 5.0, "at {last} s: {:?}", state.observation);
        episode.act([0.0, 0.0]);
    }
    assert!(last > 19.0, "{last}");
}

#[test]
fn a_host_without_a_connection_of_several_subflows_is_refused() {
    let refuse = |flows: &str, learners: &str| {
        let learners = [learners.to_owned()];
        HostEnvironment::new(&scenario(flows), policy().spec(), &learners).unwrap_err().to_string()
    };
    let expected = "learners = [\"one\"]: allowed are patterns that match a flow with `multipath`";
    assert_eq!(refuse(FLOWS, "one"), expected);
    let three = "[[flow]]\ncontroller = \"cubic\"\n\
                 mptcp = { subflow = [{ route = [0] }, { route = [1] }, { route = [1] }] }\n";
    assert_eq!(
        refuse(three, "*"),
        "paths = 2: allowed is the number of subflows of every connection with several; one has 3"
    );
}

#[test]
fn a_policy_for_another_number_of_paths_is_refused_in_one_line() {
    let three = "[[flow]]\ncontroller = \"cubic\"\n\
                 mptcp = { subflow = [{ route = [0] }, { route = [1] }, { route = [1] }] }\n";
    let two =
        "[[flow]]\ncontroller = \"drl_cc\"\nparams = { policy = \"policy\" }\nmultipath = true\n";
    let governed = scenario(two);
    let params = &governed.network.connections[0].params;
    let refused = scenario(three).with_controller("drl_cc", params).unwrap_err().to_string();
    let expected = "flow[0].controller = \"drl_cc\" for connections of 2 subflows: allowed is a policy \
                    for 3, as many as this flow has";
    assert!(refused.ends_with(expected), "{refused}");
    assert!(scenario(FLOWS).with_controller("drl_cc", params).is_ok());
}

#[test]
fn the_scales_of_a_scenario_are_those_of_its_links() {
    let spec = HostEnvironment::scales(&scenario(FLOWS), &["*".to_owned()]).unwrap();
    assert_eq!((spec.paths, spec.rate_mbps, spec.rtt_ms), (2, 16.0, 100.0));
    assert!((spec.bdp_packets - 100_000.0 / 1500.0).abs() < 1e-9, "{}", spec.bdp_packets);
    assert!((spec.window_max() - 100.0).abs() < 1e-9, "1.5 products");
    let many = FLOWS.replace("count = 3", "count = 10");
    let spec = HostEnvironment::scales(&scenario(&many), &["*".to_owned()]).unwrap();
    assert!((spec.window_max() - 36.666_666).abs() < 1e-4, "{}: a share", spec.window_max());
    let own = "[[flow]]\ncontroller = \"cubic\"\nmultipath = true\nstart_s = FROM\nstop_s = TO\n";
    let one_after_the_other = (0..10_u32)
        .map(|k| own.replace("FROM", &k.to_string()).replace("TO", &(k + 2).to_string()))
        .collect::<Vec<_>>()
        .concat();
    let spec = HostEnvironment::scales(&scenario(&one_after_the_other), &["*".to_owned()]).unwrap();
    assert!((spec.window_max() - 100.0).abs() < 1e-9, "{}: two at once", spec.window_max());
}
