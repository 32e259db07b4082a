#![allow(clippy::float_cmp)] // exact: whole numbers, bounds and untouched values
use super::*;
use crate::control::{Controller, Coupled};
use crate::policy::{Agent, InvalidAction, METRICS};
use crate::units::Span;

/// Acts by the bits of the observation: any difference in an observation becomes one in what is
/// done.
#[derive(Clone, Copy)]
struct Capricious {
    choices: usize,
}

impl Capricious {
    fn of(spec: &PolicySpec) -> Self {
        Self { choices: spec.choices() }
    }

    fn answer(self, observation: &[f32]) -> Action {
        let hash = observation.iter().fold(17_u64, |hash, value| {
            (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3)
        });
        if self.choices > 0 {
            return Action::Choice((hash >> 32) as usize % self.choices);
        }
        let value = |bits: u64| (bits % 2001) as f32 / 1000.0 - 1.0;
        Action::Values([value(hash >> 16), value(hash >> 40)])
    }
}

impl Agent for Capricious {
    fn act(&mut self, observation: &[f32]) -> Result<Action, InvalidAction> {
        Ok(self.answer(observation))
    }
}

fn scenario(flows: &str) -> Scenario {
    let text = format!(
        "duration_s = 12\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 8\n\
         queue = {{ kind = \"drop_tail\", packets = 30 }}\n\
         loss = {{ kind = \"bernoulli\", ratio = 0.001 }}\n{flows}"
    );
    Scenario::parse(&text, "training").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn learners(count: u32, sender: &str) -> Scenario {
    scenario(&format!(
        "[[flow]]\nname = \"learner\"\ncontroller = \"cubic\"\ncount = {count}\nstart_spread_s = 1\n\
         sender = {{ {sender} }}\n[[flow]]\nname = \"rival\"\ncontroller = \"cubic\"\nstart_s = 3\nstop_s = 8\n"
    ))
}

fn spec(decision: &str, action: &str) -> Arc<PolicySpec> {
    let text = format!(
        "[observation]\nfeatures = [\"cwnd_change\", \"rtt_mean\", \"rtt_ratio\", \"rtt_excess\", \
         \"ack_gap\", \"loss_ratio\", \"throughput\"]\nhistory = 8\n[decision]\n{decision}\n[action]\n{action}"
    );
    Arc::new(PolicySpec::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

fn drinc() -> Arc<PolicySpec> {
    spec("every = \"srtt\"", "map = \"cwnd_steps\"")
}

fn environment(scenario: &Scenario, spec: &Arc<PolicySpec>, agents: usize) -> Environment {
    Environment::new(scenario, spec, &["learn*".to_owned()], agents).unwrap()
}

/// Every flow has its agent with it.
fn inside(environment: &Environment, seed: Seed) -> Outcome {
    let mut build = |plan: &ConnectionPlan| -> Result<Box<dyn Coupled>, ParamError> {
        if plan.controller != AGENT {
            return sim::builtin(plan);
        }
        let spec = Arc::clone(environment.spec());
        Ok(Box::new(PerFlow::new(move |flow: &FlowInfo| -> Box<dyn Controller> {
            Box::new(LearnedController::new(
                flow,
                &spec,
                Box::new(Capricious::of(&spec)),
                controllers::fallback,
            ))
        })))
    };
    let mut sim = Sim::new(environment.network(), seed, &mut build).unwrap();
    sim.run_until(environment.network().duration);
    sim.finish()
}

/// The same agent outside; also how many actions were set, and how often the simulation stopped.
fn outside(environment: &Environment, seed: Seed, agents: usize) -> (Outcome, u64, u64) {
    let policy = Capricious::of(environment.spec());
    let mut episode = environment.begin(seed).unwrap();
    let (mut answers, mut stops) = (0, 0);
    while episode.advance() {
        stops += 1;
        for agent in 0..agents {
            let Some(state) = episode.agent(agent).cloned() else { continue };
            if state.due {
                assert!(episode.act(agent, policy.answer(&state.observation)));
                answers += 1;
            }
        }
    }
    (episode.finish(), answers, stops)
}

/// All there is of a run, where NaN equals NaN.
fn text(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

fn decisions(outcome: &Outcome) -> f64 {
    let counters = outcome.flows.iter().flat_map(|flow| &flow.counters);
    counters.filter(|(name, _)| *name == "decisions").map(|(_, count)| count).sum()
}

#[test]
fn an_agent_does_outside_what_it_does_in_the_flow() {
    let maps = [
        "map = \"cwnd_steps\"",
        "map = \"cwnd_factor\"\nscale = 0.3",
        "map = \"rate_change\"\nscale = 0.1",
        "map = \"rate_and_cwnd\"\nscale = 0.1",
    ];
    let clocks = [
        "every = \"srtt\"",
        "every = \"min_rtt\"\ntimes = 0.5",
        "every = \"time\"\nmin_ms = 30.0",
        "every = \"ack\"\nmin_ms = 0.0",
    ];
    for sender in ["", "recovery = \"ns2\"", "send_hook = \"ack\"", "ack_every = 4"] {
        for map in maps {
            for clock in clocks {
                for count in [1, 3] {
                    let spec = spec(clock, map);
                    let environment = environment(&learners(count, sender), &spec, count as usize);
                    let seed = Seed(u64::from(count));
                    let own = inside(&environment, seed);
                    let (foreign, answers, _) = outside(&environment, seed, count as usize);
                    assert_eq!(
                        text(&own),
                        text(&foreign),
                        "{sender}, {map}, {clock}, {count} flows"
                    );
                    assert_eq!(decisions(&foreign), answers as f64);
                    assert!(answers > 50 * u64::from(count), "{answers} decisions");
                }
            }
        }
    }
}

/// Checks that every timer of a controller is called at the moment it asks for.
struct Prompt {
    controller: LearnedController,
    now: Time,
}

impl Controller for Prompt {
    fn on_ack(&mut self, ack: &crate::control::Ack) {
        assert_eq!(self.controller.next_timer(), None, "a decision waits for the next record");
        self.now = ack.now;
        self.controller.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &crate::control::Loss) {
        self.controller.on_loss(loss);
    }
    fn on_timer(&mut self, now: Time) {
        assert_eq!(now, self.now);
        self.controller.on_timer(now);
    }
    fn next_timer(&self) -> Option<Time> {
        self.controller.next_timer()
    }
    fn control(&self) -> crate::control::Control {
        self.controller.control()
    }
    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.controller.counters()
    }
}

#[test]
fn both_senders_call_a_controller_at_the_moment_that_it_asks_for() {
    for sender in
        ["", "recovery = \"ns2\"", "send_hook = \"ack\"", "recovery = \"ns2\", send_hook = \"ack\""]
    {
        for map in ["map = \"cwnd_steps\"", "map = \"rate_change\""] {
            let spec = spec("every = \"ack\"\nmin_ms = 0.0", map);
            let environment = environment(&learners(1, sender), &spec, 1);
            let mut build = |plan: &ConnectionPlan| -> Result<Box<dyn Coupled>, ParamError> {
                if plan.controller != AGENT {
                    return sim::builtin(plan);
                }
                let spec = Arc::clone(&spec);
                Ok(Box::new(PerFlow::new(move |flow: &FlowInfo| -> Box<dyn Controller> {
                    let controller = LearnedController::new(
                        flow,
                        &spec,
                        Box::new(Capricious::of(&spec)),
                        controllers::fallback,
                    );
                    Box::new(Prompt { controller, now: Time(0) })
                })))
            };
            let mut sim = Sim::new(environment.network(), Seed(1), &mut build).unwrap();
            sim.run_until(environment.network().duration);
            let made = decisions(&sim.finish());
            assert!(made > 300.0, "only {made} calls to judge by: {sender} {map}");
        }
    }
}

#[test]
fn equal_seeds_make_equal_episodes_and_others_do_not() {
    let environment = environment(&learners(3, ""), &drinc(), 3);
    let (one, two) = (outside(&environment, Seed(5), 3), outside(&environment, Seed(5), 3));
    assert_eq!(text(&one.0), text(&two.0));
    assert_ne!(text(&one.0), text(&outside(&environment, Seed(6), 3).0));
}

#[test]
fn an_episode_that_is_advanced_in_parts_is_the_same() {
    let environment = environment(&learners(3, ""), &drinc(), 3);
    let policy = Capricious::of(environment.spec());
    let mut episode = environment.begin(Seed(5)).unwrap();
    let mut parts = 0;
    while !episode.is_over() {
        let until = episode.now() + Span::from_millis(3);
        parts += 1;
        if !episode.advance_to(until) {
            assert_eq!(episode.now(), until);
            continue;
        }
        for agent in 0..3 {
            let Some(state) = episode.agent(agent).cloned() else { continue };
            if state.due {
                assert!(episode.act(agent, policy.answer(&state.observation)));
            }
        }
    }
    let (whole, _, stops) = outside(&environment, Seed(5), 3);
    assert!(parts > 2 * stops, "{parts} parts of {stops} steps");
    assert_eq!(text(&episode.finish()), text(&whole));
}

#[test]
fn agents_are_due_each_at_their_own_time() {
    let environment = environment(&learners(3, ""), &drinc(), 3);
    let (_, answers, stops) = outside(&environment, Seed(1), 3);
    assert!(stops > answers / 2, "{stops} stops for {answers} answers");
}

#[test]
fn nothing_goes_on_until_every_agent_that_is_due_has_its_answer() {
    let environment = environment(&learners(1, ""), &drinc(), 2);
    let mut episode = environment.begin(Seed(1)).unwrap();
    assert!(episode.advance());
    let now = episode.now();
    assert!(episode.advance());
    assert_eq!(episode.now(), now);
    assert!(!episode.act(1, Action::Choice(0)), "an agent without a flow is never asked");
    assert!(episode.act(0, Action::Choice(0)));
    assert!(!episode.act(0, Action::Choice(0)), "one action per decision");
    assert!(episode.advance());
    assert!(episode.now() > now);
    assert_eq!(episode.flows(), 1);
}

#[test]
fn the_end_is_told_with_what_arrived_since_the_last_decision() {
    let environment = environment(&learners(1, ""), &drinc(), 1);
    let mut episode = environment.begin(Seed(1)).unwrap();
    let mut last = AgentState::default();
    while episode.advance() {
        last = episode.agent(0).unwrap().clone();
        episode.act(0, Action::Choice(2));
    }
    let end = episode.agent(0).unwrap().clone();
    assert!(episode.is_over() && !end.due);
    assert_eq!(end.arrived.time_s, 12.0);
    assert_eq!(end.decision, last.decision + 1);
    assert!((end.arrived.duration_s - (12.0 - last.arrived.time_s)).abs() < 1e-9);
    assert_ne!(end.observation, last.observation);
    assert!(!episode.advance(), "it stays over");
}

/// Sums over an episode under an agent, of both accounts: packets delivered and lost.
fn accounts(environment: &Environment) -> ([f64; 2], [f64; 2], Outcome) {
    let policy = Capricious::of(environment.spec());
    let mut episode = environment.begin(Seed(3)).unwrap();
    let (mut arrived, mut credit) = ([0.0; 2], [0.0; 2]);
    let mut add = |state: &AgentState| {
        arrived[0] += state.arrived.acked_packets;
        arrived[1] += state.arrived.lost_packets;
        if let Some(known) = state.credit {
            credit[0] += known.metrics.acked_packets;
            credit[1] += known.metrics.lost_packets;
        }
        assert_eq!(state.arrived.row().len(), METRICS);
        assert!(state.arrived.row().iter().all(|value| value.is_finite()));
    };
    while episode.advance() {
        let state = episode.agent(0).unwrap().clone();
        add(&state);
        episode.act(0, policy.answer(&state.observation));
    }
    add(&episode.agent(0).unwrap().clone());
    (arrived, credit, episode.finish())
}

#[test]
fn both_accounts_add_up_to_what_was_sent() {
    let spec = spec("every = \"srtt\"", "map = \"cwnd_steps\"\n[start]\nslow_start = false");
    let (arrived, credit, outcome) = accounts(&environment(&learners(1, ""), &spec, 1));
    let sent = outcome.flows[0].sent_packets as f64;
    // All that was sent arrived or was lost, but for what is on its way, and what was interrupted by
    // the slow start after a time-out, where intervals end without a report.
    let known = arrived[0] + arrived[1];
    assert!(known <= sent && known > 0.95 * sent, "{known} of {sent}");
    let credited = credit[0] + credit[1];
    assert!(credited <= known * 1.01 && credited > 0.9 * known, "{credited} of {known}");
    assert!(arrived[1] > 0.0 && credit[1] > 0.0, "there were losses: {arrived:?} {credit:?}");
}

#[test]
fn a_policy_that_answers_nonsense_leaves_a_flow_that_runs_on() {
    let spec = spec("every = \"srtt\"", "map = \"cwnd_factor\"");
    let environment = environment(&learners(1, ""), &spec, 1);
    let mut episode = environment.begin(Seed(1)).unwrap();
    let mut asked = 0;
    while episode.advance() {
        asked += 1;
        episode.act(0, Action::Values([f32::NAN, 0.0]));
    }
    assert_eq!(asked, 1);
    let outcome = episode.finish();
    let flow = &outcome.flows[0];
    assert!(flow.counters.contains(&("not_finite", 1.0)), "{:?}", flow.counters);
    assert!(flow.sent_packets > 1000, "under CUBIC it goes on");
}

#[test]
fn flows_that_start_late_and_end_early_are_due_only_in_between() {
    let scenario = scenario(
        "[[flow]]\nname = \"learner\"\ncontroller = \"cubic\"\nstart_s = 4\nstop_s = 8\n\
         [[flow]]\nname = \"other\"\ncontroller = \"new_reno\"\n",
    );
    let environment = environment(&scenario, &drinc(), 1);
    let mut episode = environment.begin(Seed(1)).unwrap();
    while episode.advance() {
        let seconds = episode.now().as_secs_f64();
        assert!((4.0..8.5).contains(&seconds), "{seconds}");
        episode.act(0, Action::Choice(2));
    }
    assert!(episode.agent(0).unwrap().decision > 10);
    assert_eq!(episode.now(), Time(0) + Span::from_millis(12_000));
}

#[test]
fn too_many_flows_none_at_all_and_flows_without_controller_are_refused() {
    let refuse = |scenario: &Scenario, pattern: &str, agents| {
        let patterns = [pattern.to_owned()];
        Environment::new(scenario, &drinc(), &patterns, agents).expect_err(pattern).to_string()
    };
    let three = learners(3, "");
    assert_eq!(
        refuse(&three, "learner", 2),
        "agents = 2: allowed is at least 3, so many flows learn"
    );
    assert_eq!(
        refuse(&three, "teach*", 9),
        "learners = [\"teach*\"]: allowed are patterns that match a flow of the scenario: learner, rival"
    );
    let cbr = "[[flow]]\nname = \"cbr\"\ncontroller = \"cubic\"\ntraffic = { kind = \"cbr\", rate_mbps = 1, packet_bytes = 500 }\n";
    assert_eq!(
        refuse(&scenario(cbr), "*", 9),
        "flow cbr cannot learn: its traffic is cbr, which no congestion controller governs"
    );
}

#[test]
fn arrivals_of_a_poisson_source_are_agents_each_up_to_the_number_of_agents() {
    let flows = "[[flow]]\nname = \"learner\"\ncontroller = \"cubic\"\n\
                 traffic = { kind = \"poisson\", per_s = 1.0, mean_bytes = 1e6 }\n";
    let scenario = scenario(flows);
    let (outcome, answers, _) = outside(&environment(&scenario, &drinc(), 100), Seed(1), 100);
    assert!(outcome.flows.len() > 5 && answers > 0);
    let refused = environment(&scenario, &drinc(), 2).begin(Seed(1)).err();
    let expected = "agents = 2: allowed is at least 3, so many flows learn";
    assert_eq!(refused.map(|error| error.to_string()).as_deref(), Some(expected));
}

const LOSSY: &str = ", loss = { kind = \"bernoulli\", ratio = 0.001 }";

/// One connection over two equal paths, each of whose subflows learns; of path, data level and subflows these
/// settings.
fn subflows([path, mptcp, first, second]: [&str; 4]) -> Scenario {
    let path = format!(
        "rate_mbps = 4, delay_ms = 20, queue = {{ kind = \"drop_tail\", packets = 30 }}{path}"
    );
    let text = format!(
        "duration_s = 12\n[two_path]\nfirst = {{ {path} }}\nsecond = {{ {path} }}\n\
         [[flow]]\nname = \"learner\"\ncontroller = \"cubic\"\n\
         mptcp = {{ {mptcp}subflow = [{{ route = [0]{first} }}, {{ route = [1]{second} }}] }}\n"
    );
    Scenario::parse(&text, "training").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_subflow_of_a_connection_has_an_agent_also_one_that_opens_late_or_closes() {
    for (first, second) in [("", ""), ("", ", start_s = 3"), (", stop_s = 6", ", start_s = 3")] {
        for clock in ["every = \"srtt\"", "every = \"ack\"\nmin_ms = 0.0"] {
            let spec = spec(clock, "map = \"cwnd_factor\"\nscale = 0.3");
            let environment = environment(&subflows([LOSSY, "", first, second]), &spec, 2);
            let own = inside(&environment, Seed(1));
            let (foreign, answers, _) = outside(&environment, Seed(1), 2);
            assert_eq!(text(&own), text(&foreign), "{first}, {second}, {clock}");
            assert_eq!(decisions(&foreign), answers as f64);
            let by_flow = own.flows.iter().map(|flow| flow.counters[0]);
            assert!(by_flow.clone().all(|(_, count)| count > 20.0), "{by_flow:?}");
        }
    }
}

#[test]
fn the_agent_of_a_subflow_begins_when_it_opens_and_has_ended_when_it_closes() {
    let scenario = subflows([LOSSY, "", ", stop_s = 6", ", start_s = 3"]);
    let mut episode = environment(&scenario, &drinc(), 2).begin(Seed(1)).unwrap();
    assert_eq!(episode.flows(), 2);
    let (mut seen, mut last) = ([0; 2], 0);
    while episode.advance() {
        let second = episode.now().as_secs_f64();
        assert_eq!(episode.agent(1).is_some(), second >= 3.0, "at {second} s");
        let ended = episode.agent(0).unwrap().ended;
        assert_eq!(ended, second > 6.0, "at {second} s");
        for (agent, seen) in seen.iter_mut().enumerate() {
            *seen += u32::from(episode.act(agent, Action::Choice(2)));
        }
        if !ended {
            last = episode.agent(0).unwrap().decision;
        }
    }
    assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
    let state = episode.agent(0).unwrap();
    assert!(state.decision == last + 1 && state.credit.is_some(), "the last interval is reported");
    assert!(!state.act(Action::Choice(0)), "of a closed subflow nothing is awaited");
}

#[test]
fn decisions_of_several_subflows_that_are_due_at_once_are_asked_for_in_the_order_of_the_subflows() {
    // The paths are equal, so acknowledgements come at the same instants. While the receive window blocks
    // the connection, each of them looks at both subflows.
    let scenario =
        subflows(["", "scheduler = \"round_robin\", receive_buffer_bytes = 30000, ", "", ""]);
    let environment = environment(&scenario, &drinc(), 2);
    let mut episode = environment.begin(Seed(1)).unwrap();
    let mut asked = Vec::new();
    while let Some(flow) = episode.sim.run_until_decision(episode.end) {
        let is_due = |flow: &u32| episode.sim.agent_state(*flow).is_some_and(|own| own.due);
        let due: Vec<u32> = [0, 1].into_iter().filter(is_due).collect();
        asked.push((flow, due));
    }
    // One that is not answered is asked again, until it falls back.
    let both = || vec![0, 1];
    assert_eq!(asked, [(0, vec![0]), (0, both()), (1, both()), (1, vec![1])]);
    let outcome = episode.finish();
    assert!(outcome.flows.iter().all(|flow| flow.counters[1] == ("fallbacks", 1.0)), "no answer");
}
