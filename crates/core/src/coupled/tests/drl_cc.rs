use super::*;
use crate::controllers::test_support::{MSS, flow};
use crate::policy::joint::PATHS_MAX;
use crate::rng::Seed;
use crate::scenario::Scenario;
use crate::sim::plan::ConnectionPlan;
use crate::sim::{self, Sim};
use std::sync::Mutex;

const ROW: usize = 2 * SUBFLOW_NUMBERS + 1;

fn spec() -> JointSpec {
    JointSpec {
        paths: 2,
        rate_mbps: 16.0,
        rtt_ms: 100.0,
        bdp_packets: 50.0,
        ..JointSpec::default()
    }
}

type Seen = Arc<Mutex<Vec<Vec<f32>>>>;

/// Answers always the same, and keeps what it observed.
struct Script {
    answer: [f32; PATHS_MAX],
    seen: Seen,
}

impl JointAgent for Script {
    fn act(&mut self, _: &[f32]) -> Result<[f32; PATHS_MAX], InvalidAction> {
        Ok(self.answer)
    }
    fn observe(&mut self, observation: &JointObservation) {
        self.seen.lock().unwrap().push(observation.numbers.to_vec());
    }
}

/// A host with so many subflows per connection, numbered one after the other.
fn host(answer: [f32; PATHS_MAX], connections: &[u32]) -> (DrlCc, Seen) {
    host_of(&spec(), answer, connections)
}

fn host_of(spec: &JointSpec, answer: [f32; PATHS_MAX], connections: &[u32]) -> (DrlCc, Seen) {
    let seen = Seen::default();
    let agent = Box::new(Script { answer, seen: Arc::clone(&seen) });
    let mut host = DrlCc::new(spec, agent, "new_reno");
    let mut id = 0;
    for (number, count) in (0..).zip(connections) {
        for _ in 0..*count {
            host.subflow_added(SubflowId(id), &flow());
            host.subflow_of(SubflowId(id), number);
            id += 1;
        }
    }
    (host, seen)
}

fn at(millis: u64) -> Time {
    Time(0) + Span::from_millis(millis)
}

/// An acknowledgement of one packet after 100 ms.
fn ack(millis: u64) -> Ack {
    let rtt = Span::from_millis(100);
    Ack {
        now: at(millis),
        rtt,
        srtt: rtt,
        acked: Bytes(MSS),
        inflight: Bytes(9 * MSS),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

fn lose(host: &mut DrlCc, id: u32, kind: LossKind) {
    host.on_loss(
        SubflowId(id),
        &Loss { kind, lost: Bytes(MSS), inflight: Bytes(10 * MSS), ..Loss::default() },
    );
}

fn cwnd(host: &DrlCc, id: u32) -> u64 {
    host.control(SubflowId(id)).cwnd.0 / MSS
}

/// Ends slow start of so many subflows at 10 packets, and begins the first epoch at time 0.
fn begin(host: &mut DrlCc, subflows: u32) {
    (0..subflows).for_each(|id| lose(host, id, LossKind::Gap));
    (0..subflows).for_each(|id| host.on_ack(SubflowId(id), &ack(0)));
}

/// Lets subflow 0 report at a time, and makes the decision if one is due.
fn tick(host: &mut DrlCc, millis: u64) -> bool {
    host.on_ack(SubflowId(0), &ack(millis));
    let due = host.next_timer(SubflowId(0)).is_some();
    if due {
        assert_eq!(host.next_timer(SubflowId(0)), Some(at(millis)));
        host.on_timer(SubflowId(0), at(millis));
    }
    due
}

#[test]
fn slow_start_lasts_until_the_first_loss_and_then_the_window_is_the_agents() {
    let (mut host, _) = host([0.0; 2], &[2]);
    (0..30).for_each(|_| host.on_ack(SubflowId(1), &ack(1)));
    assert_eq!(cwnd(&host, 1), 40);
    lose(&mut host, 1, LossKind::Gap);
    (0..30).for_each(|_| host.on_ack(SubflowId(1), &ack(2)));
    assert_eq!(cwnd(&host, 1), 40, "it neither fell nor grows");
}

#[test]
fn no_record_makes_a_window_that_no_sender_can_obey() {
    let (mut host, _) = host([0.0; 2], &[2]);
    host.on_ack(SubflowId(0), &Ack { acked: Bytes(u64::MAX), ..ack(1) });
    assert_eq!(host.control(SubflowId(0)).cwnd, CWND_MAX);
}

#[test]
fn an_action_changes_a_window_by_a_quarter_of_it_and_at_least_four_packets() {
    let (mut host, _) = host([1.0, -1.0], &[2]);
    begin(&mut host, 2);
    let mut windows = Vec::new();
    for epoch in 1..=7 {
        assert!(tick(&mut host, 100 * epoch));
        windows.push([cwnd(&host, 0), cwnd(&host, 1)]);
    }
    let expected = [[14, 6], [18, 2], [22, 2], [28, 2], [35, 2], [43, 2], [54, 2]];
    assert_eq!(windows, expected, "14 + 4, 18 + 4.5 = 22.5, 28.1, ...; at least 2");
    (8..40).for_each(|epoch| assert!(tick(&mut host, 100 * epoch)));
    assert_eq!(cwnd(&host, 0), 264, "at most 4 bandwidth-delay products and 64");
}

#[test]
fn an_epoch_lasts_one_round_trip_of_the_targets_slowest_subflow() {
    let (mut host, seen) = host([0.0; 2], &[2]);
    begin(&mut host, 2);
    let slow = Span::from_millis(250);
    host.on_ack(SubflowId(1), &Ack { srtt: slow, rtt: slow, ..ack(50) });
    assert!(!tick(&mut host, 99));
    assert!(tick(&mut host, 100), "the first epoch began before the round trip was known");
    assert!(!tick(&mut host, 349));
    assert!(tick(&mut host, 350));
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[test]
fn an_epoch_lasts_at_least_ten_milliseconds() {
    let (mut host, _) = host([0.0; 2], &[2]);
    let fast = Span::from_millis(1);
    for id in 0..2 {
        host.on_ack(SubflowId(id), &Ack { srtt: fast, rtt: fast, ..ack(0) });
    }
    let fast = |millis| Ack { srtt: fast, rtt: fast, ..ack(millis) };
    host.on_ack(SubflowId(0), &fast(9));
    assert_eq!(host.next_timer(SubflowId(0)), None);
    host.on_ack(SubflowId(0), &fast(10));
    assert_eq!(host.next_timer(SubflowId(0)), Some(at(10)));
}

#[test]
fn an_epoch_may_be_a_number_of_round_trips_or_of_milliseconds() {
    for (own, length) in [
        (JointSpec { epoch_rtts: Some(2.5), ..spec() }, 250),
        (JointSpec { epoch_rtts: Some(0.01), ..spec() }, 10),
        (JointSpec { epoch_ms: Some(180.0), ..spec() }, 180),
    ] {
        let (mut host, seen) = host_of(&own, [0.0; 2], &[2]);
        begin(&mut host, 2);
        for epoch in 1..=3 {
            assert!(!tick(&mut host, epoch * length - 1), "{own:?}");
            assert!(tick(&mut host, epoch * length), "{own:?}");
        }
        assert_eq!(seen.lock().unwrap().len(), 3);
    }
}

#[test]
fn a_window_may_be_halved_by_a_loss_and_grow_between_decisions() {
    let windows = |between| {
        let (mut host, _) =
            host_of(&JointSpec { between: Some(between), ..spec() }, [1.0; 2], &[2]);
        (0..30).for_each(|_| host.on_ack(SubflowId(1), &ack(0)));
        lose(&mut host, 1, LossKind::Gap);
        lose(&mut host, 1, LossKind::More);
        let lost = cwnd(&host, 1);
        (0..42).for_each(|_| host.on_ack(SubflowId(1), &ack(1)));
        (lost, cwnd(&host, 1))
    };
    assert_eq!(windows(Between::Constant), (40, 40));
    assert_eq!(windows(Between::Halve), (20, 20), "once per episode of losses");
    assert_eq!(windows(Between::NewReno), (20, 22), "one packet per window of acknowledgements");
}

#[test]
fn a_window_that_grows_between_decisions_stays_below_the_largest() {
    let own = JointSpec { between: Some(Between::NewReno), window_packets: Some(11.0), ..spec() };
    let (mut host, _) = host_of(&own, [0.0; 2], &[2]);
    begin(&mut host, 2);
    assert_eq!(cwnd(&host, 1), 5, "halved");
    (0..400).for_each(|_| host.on_ack(SubflowId(1), &ack(1)));
    assert_eq!(cwnd(&host, 1), 11);
}

#[test]
fn connections_with_several_subflows_are_targets_in_turn() {
    let (mut host, _) = host([1.0, 1.0], &[2, 1, 2, 2]);
    begin(&mut host, 7);
    let mut changed = Vec::new();
    for epoch in 1..=6 {
        let before: Vec<u64> = (0..7).map(|id| cwnd(&host, id)).collect();
        assert!(tick(&mut host, 100 * epoch));
        changed.extend((0..7).filter(|&id| id != 2 && cwnd(&host, id) > before[id as usize]));
    }
    assert_eq!(changed, [0, 1, 3, 4, 5, 6, 0, 1, 3, 4, 5, 6]);
}

#[test]
fn the_numbers_of_a_subflow_are_those_of_the_epoch_divided_by_the_scales() {
    let (mut host, seen) = host([0.0; 2], &[2]);
    begin(&mut host, 2);
    assert!(tick(&mut host, 100));
    // 20 packets arrive, one is lost, and what is in flight grows from 9 to 29 packets.
    let slow = Span::from_millis(140);
    for _ in 0..19 {
        host.on_ack(SubflowId(1), &Ack { rtt: slow, ..ack(150) });
    }
    host.on_ack(SubflowId(1), &Ack { rtt: slow, inflight: Bytes(29 * MSS), ..ack(160) });
    lose(&mut host, 1, LossKind::More);
    assert!(tick(&mut host, 200));
    let seen = seen.lock().unwrap();
    let row = &seen[1][10..];
    assert_eq!(row.len(), ROW);
    let expected = [41.0 * 0.08 / 16.0, 20.0 * 0.08 / 16.0, 0.7, 0.2, 10.0 / 75.0];
    for (found, expected) in row[SUBFLOW_NUMBERS..].iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-6, "{row:?}");
    }
    assert_eq!(seen[1][..10], row[..10], "the target's numbers come first");
    assert!(row[10].abs() < f32::EPSILON);
}

#[test]
fn a_connection_of_one_subflow_gets_new_reno_and_is_seen_as_tcp() {
    let (mut host, seen) = host([1.0, 1.0], &[2, 1]);
    begin(&mut host, 2);
    for _ in 0..10 {
        host.on_ack(SubflowId(2), &ack(10));
    }
    assert_eq!(cwnd(&host, 2), 20, "slow start");
    lose(&mut host, 2, LossKind::Gap);
    assert!(cwnd(&host, 2) < 10, "New Reno halves");
    assert!(tick(&mut host, 100));
    let seen = seen.lock().unwrap();
    let row = &seen[0][10 + ROW..];
    assert!(row[1] > 0.0, "its goodput");
    assert_eq!(row[SUBFLOW_NUMBERS..], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_second_subflow_hands_a_connection_over_to_the_agent() {
    let (mut host, _) = host([1.0, 1.0], &[1]);
    lose(&mut host, 0, LossKind::Gap);
    let before = cwnd(&host, 0);
    host.subflow_added(SubflowId(1), &flow());
    host.subflow_of(SubflowId(1), 0);
    assert_eq!(cwnd(&host, 0), before);
    host.on_ack(SubflowId(0), &ack(0));
    assert!(tick(&mut host, 100));
    assert_eq!(cwnd(&host, 0), before + 4);
    assert_eq!(cwnd(&host, 1), 10, "still in its first slow start");
}

#[test]
fn only_active_flows_are_fed() {
    let (mut host, seen) = host([0.0; 2], &[2, 2, 2]);
    for id in 6..8 {
        host.subflow_added(SubflowId(id), &FlowInfo { start: at(150), ..flow() });
        host.subflow_of(SubflowId(id), 3);
    }
    begin(&mut host, 6);
    assert!(tick(&mut host, 100));
    host.on_end(SubflowId(2), at(110));
    host.on_end(SubflowId(3), at(110));
    host.subflow_removed(SubflowId(4));
    host.subflow_removed(SubflowId(5));
    assert!(tick(&mut host, 200));
    let rows: Vec<usize> = seen.lock().unwrap().iter().map(|own| (own.len() - 10) / ROW).collect();
    assert_eq!(
        rows,
        [3, 2],
        "without the one that has not begun; then it, without those that left"
    );
}

#[test]
fn a_closed_subflow_leaves_zeros_and_its_connection_a_target() {
    let (mut host, seen) = host([1.0, 1.0], &[2]);
    begin(&mut host, 2);
    host.subflow_removed(SubflowId(1));
    assert!(tick(&mut host, 100));
    assert_eq!(cwnd(&host, 0), 14);
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0][10 + SUBFLOW_NUMBERS..], [0.0; SUBFLOW_NUMBERS + 1]);
}

#[test]
fn a_time_out_leads_by_slow_start_back_to_the_agents_window() {
    let (mut host, _) = host([0.0; 2], &[2]);
    begin(&mut host, 2);
    lose(&mut host, 1, LossKind::Timeout);
    assert_eq!(cwnd(&host, 1), 1);
    (0..4).for_each(|_| host.on_ack(SubflowId(1), &ack(1)));
    assert_eq!(cwnd(&host, 1), 5);
    (0..20).for_each(|_| host.on_ack(SubflowId(1), &ack(2)));
    assert_eq!(cwnd(&host, 1), 10);
    lose(&mut host, 1, LossKind::Timeout);
    lose(&mut host, 1, LossKind::Spurious);
    assert_eq!(cwnd(&host, 1), 10, "it had not been lost");
}

#[test]
fn an_invalid_action_hands_one_connection_over_to_cubic_and_is_counted() {
    for (answer, name) in [([f32::NAN, 0.0], "not_finite"), ([0.0, 1.5], "out_of_range")] {
        let (mut host, _) = host(answer, &[2, 2]);
        begin(&mut host, 4);
        assert!(tick(&mut host, 100));
        let fell_back: Vec<bool> = (0..4).map(|id| host.fell_back(SubflowId(id))).collect();
        assert_eq!(fell_back, [true, true, false, false]);
        let counted: Vec<f64> = (0..4)
            .map(|id| host.counters(SubflowId(id)).iter().find(|(own, _)| *own == name).unwrap().1)
            .collect();
        assert_eq!(counted, [1.0, 0.0, 0.0, 0.0], "{name}");
        assert_eq!(cwnd(&host, 0), 10, "from the present window");
        lose(&mut host, 0, LossKind::Gap);
        assert_eq!(cwnd(&host, 0), 7, "as CUBIC");
    }
}

/// Five connections and more over two lossy paths.
fn scenario(flows: &str) -> Scenario {
    let path = "rate_mbps = 8, delay_ms = 50, queue = { kind = \"drop_tail\", packets = 1000 }, \
                loss = { kind = \"bernoulli\", ratio = 0.02 }";
    let text = format!(
        "duration_s = 20\n[two_path]\nfirst = {{ {path} }}\nsecond = {{ {path} }}\n{flows}"
    );
    let files = format!("{}/tests/files/drl_cc", env!("CARGO_MANIFEST_DIR"));
    let mut load =
        |name: &str, _| std::fs::read(format!("{files}/{name}")).map_err(|error| error.to_string());
    Scenario::parse_with(&text, "drl_cc", &[], &mut load).unwrap_or_else(|error| panic!("{error}"))
}

fn flows(count: u32, more: &str) -> String {
    format!(
        "[[flow]]\nname = \"n{count}\"\ncontroller = \"drl_cc\"\nmultipath = true\ncount = {count}\n\
         params = {{ policy = \"policy\"{more} }}\n"
    )
}

#[test]
fn connections_with_equal_settings_share_one_governor_and_others_have_their_own() {
    let others = "[[flow]]\ncontroller = \"cubic\"\ncount = 2\n";
    let text = flows(3, "") + &flows(2, "") + &flows(4, ", tcp = \"cubic\"") + others;
    let scenario = scenario(&text);
    let mut built = Vec::new();
    let mut build = |plan: &ConnectionPlan| {
        built.push(plan.name.clone());
        sim::builtin(plan)
    };
    let mut sim = Sim::new(&scenario.network, Seed(1), &mut build).unwrap();
    sim.run_until(scenario.network.duration);
    let outcome = sim.finish();
    assert_eq!(built, ["n3_0", "n4_0", "flow3_0", "flow3_1"]);
    let decisions = |name: &str| -> f64 {
        let own = outcome.flows.iter().filter(|row| row.flow.starts_with(name));
        own.flat_map(|row| &row.counters)
            .filter(|(key, _)| *key == "decisions")
            .map(|own| own.1)
            .sum()
    };
    // One decision per epoch of the host, whatever the number of its connections.
    let (shared, own) = (decisions("n3_") + decisions("n2_"), decisions("n4_"));
    assert!((20.0..250.0).contains(&shared) && (20.0..250.0).contains(&own), "{shared}, {own}");
    assert!((decisions("n3_") - 1.5 * decisions("n2_")).abs() <= 4.0, "in turn");
}

#[test]
fn a_run_is_the_same_each_time() {
    let scenario = scenario(&flows(5, ""));
    let run = |seed| format!("{:?}", sim::run(&scenario.network, Seed(seed)).unwrap());
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn connections_that_arrive_and_leave_are_governed_while_they_last() {
    let poisson = "[[flow]]\nname = \"p\"\ncontroller = \"drl_cc\"\nmultipath = true\n\
                   params = { policy = \"policy\" }\n\
                   traffic = { kind = \"poisson\", per_s = 2.0, mean_bytes = 300000 }\n";
    let outcome = sim::run(&scenario(poisson).network, Seed(1)).unwrap();
    let finished = outcome.flows.iter().filter(|row| row.transfers > 0).count();
    assert!(finished > 20, "{finished} subflows of connections that finished");
}
