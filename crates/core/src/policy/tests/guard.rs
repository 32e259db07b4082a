use crate::policy::written::TensorFile;
use crate::policy::{Action, Agent, Policy};

const HEAD: &str = "format = 1\nabout = \"a test\"\n[observation]\nfeatures = [\"queue\", \"drain\"]\n\
                    history = 2\n[decision]\nevery = \"srtt\"\n";
const LAW: &str =
    "[action]\nmap = \"own_queue\"\n[start]\nslow_start = false\nloss_guard = false\n";
const LAYERS: &str = "[[layers]]\nkind = \"flatten\"\n[[layers]]\nkind = \"dense\"\nunits = 2\n";

/// A policy that always answers 0.5 and -0.25.
fn policy(action: &str, guard: &str) -> Result<Policy, String> {
    let mut file = TensorFile::default();
    file.add("layers.1.kernel", &[4, 2], &[0.0; 8]);
    file.add("layers.1.bias", &[2], &[0.5, -0.25]);
    let text = [HEAD, action, LAYERS, guard].concat();
    Policy::read(&[text.into_bytes(), file.to_bytes()])
}

const RANGES: &str = "[guard]\nranges = [[0.0, 1.0], [0.25, 0.5]]\n";
const INSIDE: [f32; 2] = [1.0, 0.25];
const OUTSIDE: [f32; 2] = [0.5, 0.75];
const OWN: Action = Action::Values([0.5, -0.25]);
const LEFT_TO_THE_LAW: Action = Action::Values([0.0, 0.0]);

/// What the agent answers to a newest vector; what came before is outside and does not count again.
fn answer(agent: &mut impl Agent, newest: [f32; 2]) -> Action {
    agent.act(&[9.0, 9.0, newest[0], newest[1]]).unwrap()
}

#[test]
fn more_than_half_of_the_last_32_intervals_outside_leave_a_flow_to_the_law() {
    let mut agent = policy(LAW, RANGES).unwrap().agent();
    for _ in 0..16 {
        assert_eq!(answer(&mut agent, OUTSIDE), OWN);
    }
    assert_eq!(answer(&mut agent, OUTSIDE), LEFT_TO_THE_LAW);
    // 17 of 32 still are.
    for _ in 0..15 {
        assert_eq!(answer(&mut agent, INSIDE), LEFT_TO_THE_LAW);
    }
    assert_eq!(answer(&mut agent, INSIDE), OWN);
    assert_eq!(agent.counters(), [("decisions_outside", 16.0)]);
}

#[test]
fn flows_are_guarded_each_by_itself_and_only_where_ranges_are_given() {
    let guarded = policy(LAW, RANGES).unwrap();
    let mut one = guarded.agent();
    for _ in 0..40 {
        answer(&mut one, OUTSIDE);
    }
    assert_eq!(answer(&mut one, INSIDE), LEFT_TO_THE_LAW);
    assert_eq!(answer(&mut guarded.agent(), INSIDE), OWN);
    let mut free = policy(LAW, "[guard]\nfallback = \"cubic\"\n").unwrap().agent();
    for _ in 0..40 {
        assert_eq!(answer(&mut free, OUTSIDE), OWN);
    }
    assert!(free.counters().is_empty());
}

#[test]
fn ranges_that_do_not_fit_are_refused_with_their_line() {
    let refused = |action: &str, guard: &str| policy(action, guard).unwrap_err();
    let told = refused(LAW, "[guard]\nranges = [[0.0, 1.0]]\n");
    assert_eq!(
        told,
        "policy.toml:19: guard.ranges has 1 pairs: allowed is one for each of 2 features"
    );
    let told = refused(LAW, "[guard]\nranges = [[0.0, 1.0], [0.5, 0.25]]\n");
    assert_eq!(
        told,
        "policy.toml:19: guard.ranges[1] = [0.5, 0.25]: allowed is [low, high] with low <= high"
    );
    for wrong in ["nan", "inf", "-inf"] {
        let told = refused(LAW, &format!("[guard]\nranges = [[0.0, 1.0], [0.5, {wrong}]]\n"));
        assert!(told.contains("guard.ranges[1]"), "{told}");
    }
    let told = refused("[action]\nmap = \"rate_and_cwnd\"\n", RANGES);
    let allowed = "allowed is nothing, unless map = \"own_queue\" or \"own_queue_paced\"";
    assert!(told.ends_with(allowed), "{told}");
    let told = refused(LAW, "[guard]\nrange = []\n");
    assert!(told.contains("range"), "{told}");
}
