//! What is seen of a run before it is over, and runs whose links change meanwhile.
use ackademy::live::{Change, Live};
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::sim::record::{FlowSeries, Outcome};
use ackademy::sim::{self, Sim};
use ackademy::transport::packet::Kind;
use ackademy::units::{Span, Time};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const DUMBBELL: &str = "
duration_s = 12
sample_interval_ms = 100
[dumbbell]
rtt_ms = 40
[dumbbell.bottleneck]
rate_mbps = 10
queue = QUEUE
[[flow]]
controller = 'cubic'
[[flow]]
controller = 'bbr3'
start_s = 1
";
const QUEUES: &[&str] = &[
    "{ kind = 'drop_tail', bdp = 2 }",
    "{ kind = 'red', min_packets = 5, max_packets = 20, packets = 60 }",
    "{ kind = 'pie', packets = 100 }",
    "{ kind = 'codel', packets = 100 }",
    "{ kind = 'fq_codel', packets = 100, device_packets = 3 }",
    "{ kind = 'dualpi2', packets = 100 }",
];

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name);
    fs::read_to_string(path).expect("a file of data/")
}

fn dumbbell(queue: &str) -> String {
    DUMBBELL.replace("QUEUE", queue)
}

fn live(text: &str) -> Live {
    Live::new(text, BTreeMap::new(), Seed(1), Span::ZERO).expect("a scenario")
}

/// The run of a text, without stops.
fn run(text: &str) -> Outcome {
    let scenario = Scenario::parse(text, "exported").expect("an exported scenario is one");
    sim::run(&scenario.network, Seed(1)).expect("its controllers are known")
}

fn written(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

#[test]
fn a_run_with_changes_is_the_run_of_the_exported_scenario() {
    let seed = 20_261_128;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for queue in QUEUES {
        let mut live = live(&dumbbell(queue));
        let mut at = 0;
        for _ in 0..8 {
            at += rng.below(1_500_000_000);
            live.sim().run_until(Time(at));
            let change = match rng.below(3) {
                0 => Change::Rate(rng.below(30) as f64 * 0.7),
                1 => Change::Loss(rng.below(20) as f64 / 1e3),
                _ => Change::Delay(1.0 + rng.below(60) as f64),
            };
            live.change(0, change).expect("a change in range");
            assert_eq!(live.sim().now(), Time(at), "the run is where it was");
        }
        let text = live.text().to_owned();
        live.sim().run_until(Time::NEVER);
        assert!(written(&live.finish()) == written(&run(&text)), "{queue}: {text}");
    }
}

/// What flows know so far. Losses of what waits in a queue count before they happen.
fn known(sim: &Sim) -> String {
    let rows = FlowSeries { lost_packets: Vec::new(), ..sim.flow_series().clone() };
    format!("{rows:?}")
}

#[test]
fn a_change_leaves_what_was_before_it() {
    for (queue, change) in [
        (0, Change::Rate(3.0)),
        (0, Change::Loss(0.02)),
        (0, Change::Delay(60.0)),
        (4, Change::Rate(3.0)),
    ] {
        let mut live = live(&dumbbell(QUEUES[queue]));
        live.sim().run_until(Time(6_000_000_000));
        let before = known(live.sim());
        live.change(0, change).unwrap();
        assert!(known(live.sim()) == before, "{queue} {change:?} changes the past");
        live.sim().run_until(Time::NEVER);
        let text = dumbbell(QUEUES[queue]);
        assert!(written(&live.finish()) != written(&run(&text)), "{change:?} changes nothing");
    }
}

#[test]
fn a_link_takes_the_new_rate_for_what_waits_in_its_queue() {
    let mut live = live(&dumbbell(QUEUES[0]));
    live.sim().run_until(Time(5_000_000_000));
    let waiting = live.sim().backlog(0).0;
    assert!(waiting > 10, "{waiting} packets");
    live.change(0, Change::Rate(0.0)).unwrap();
    live.sim().run_until(Time(5_050_000_000));
    assert!(live.sim().backlog(0).0 >= waiting, "an outage serves nothing");
}

#[test]
fn changes_that_no_scenario_can_say_are_refused_and_change_nothing() {
    let trace = dumbbell(QUEUES[0])
        .replace("rate_mbps = 10", "trace = 'a.trace'")
        .replace("bdp = 2", "packets = 9");
    let files = BTreeMap::from([("a.trace".to_owned(), b"1\n2\n4\n".to_vec())]);
    let mut traced = Live::new(&trace, files, Seed(1), Span::ZERO).unwrap();
    let refused = traced.change(0, Change::Rate(5.0)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "scenario.toml: bottleneck: allowed is a change of rate_mbps or rate_schedule"
    );
    let mut plain = live(&dumbbell(QUEUES[0]));
    for (link, change) in [
        (0, Change::Rate(-1.0)),
        (0, Change::Loss(2.0)),
        (0, Change::Delay(f64::NAN)),
        (1, Change::Rate(1.0)),
        (9, Change::Rate(1.0)),
    ] {
        let refused = plain.change(link, change).unwrap_err().to_string();
        assert_eq!(refused.lines().count(), 1, "{refused}");
        assert_eq!(plain.text(), dumbbell(QUEUES[0]));
    }
}

#[test]
fn a_controller_that_is_not_of_this_crate_is_refused() {
    let text = dumbbell(QUEUES[0]).replace("bbr3", "mine.py:Mine");
    let refused = Live::new(&text, BTreeMap::new(), Seed(1), Span::ZERO).err().unwrap().to_string();
    assert!(
        refused.starts_with("scenario.toml: `controller` = \"mine.py:Mine\": allowed is "),
        "{refused}"
    );
}

#[test]
fn links_of_every_topology_can_be_changed() {
    for (name, link) in
        [("rtt_fairness", 2), ("two_paths", 2), ("learningcc_case1", 1), ("two_way", 0)]
    {
        let text = data(&format!("scenarios/{name}.toml"));
        let text = text
            .replace("duration_s = 300", "duration_s = 20")
            .replace("duration_s = 120", "duration_s = 20");
        let mut live = live(&text);
        live.sim().run_until(Time(3_000_000_000));
        for change in [Change::Rate(4.0), Change::Loss(0.01), Change::Delay(33.0)] {
            live.change(link, change).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let text = live.text().to_owned();
        live.sim().run_until(Time::NEVER);
        assert!(written(&live.finish()) == written(&run(&text)), "{name}");
    }
}

#[test]
fn every_packet_of_a_backlog_is_shown() {
    for queue in QUEUES {
        let scenario = Scenario::parse(&dumbbell(queue), "scenario").unwrap();
        let mut sim = Sim::new(&scenario.network, Seed(1), &mut sim::builtin).unwrap();
        let mut most = 0;
        for step in 1..100 {
            let now = Time(step * 100_000_000);
            sim.run_until(now);
            let propagation = sim.propagation(0);
            let mut waiting = 0;
            sim.show_packets(&mut |inside| {
                let waits = inside.arrives.is_none_or(|at| at.since(now) > propagation);
                waiting += u64::from(inside.link == 0 && waits);
            });
            assert_eq!(waiting, sim.backlog(0).0, "{queue} at {now}");
            most = most.max(waiting);
        }
        assert!(most > 5, "{queue}: {most} packets at most");
    }
}

#[test]
fn every_packet_on_its_way_is_shown_once() {
    let reorder =
        "loss_schedule = [[0, 0.01]]\nreorder = { ratio = 0.2, low_ms = 1, high_ms = 30 }";
    for queue in QUEUES {
        let text = dumbbell(queue).replace(
            "[[flow]]\ncontroller = 'cubic'",
            &format!("{reorder}\n[[flow]]\ncontroller = 'cubic'"),
        );
        let mut live = live(&text);
        live.sim().run_until(Time(7_654_321_000));
        let mut shown = [0; 2];
        live.sim().show_packets(&mut |inside| {
            shown[inside.packet.flow as usize] += u64::from(inside.packet.kind != Kind::Ack);
        });
        for (row, shown) in live.finish().flows.iter().zip(shown) {
            assert_eq!(
                row.sent_packets - row.received_packets - row.dropped_packets,
                shown,
                "{queue}"
            );
            assert!(shown > 0, "{queue}");
        }
    }
}

#[test]
fn the_rows_so_far_are_those_of_the_whole_run() {
    let outcome = run(&dumbbell(QUEUES[0]));
    let whole = (outcome.flow_series, outcome.link_series.queue_packets);
    let mut live = live(&dumbbell(QUEUES[0]));
    live.sim().run_until(Time(4_000_000_000));
    let rows = live.sim().flow_series();
    let count = rows.time_s.len();
    assert_eq!(rows.time_s, whole.0.time_s[..count]);
    assert_eq!(rows.cwnd_packets, whole.0.cwnd_packets[..count]);
    assert_eq!(count, 41 + 31);
    let queued: Vec<u64> = live.sim().link_samples(0).iter().map(|sample| sample.0).collect();
    assert_eq!(queued, whole.1[..41]);
}
