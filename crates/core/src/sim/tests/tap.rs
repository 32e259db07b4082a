//! What a tap sees, beside what the simulation counts.
use super::{FlowId, Point, Tap};
use crate::rng::{Rng, Seed};
use crate::scenario::Scenario;
use crate::sim::plan::NetworkPlan;
use crate::sim::record::Outcome;
use crate::sim::{Sim, builtin};
use crate::transport::packet::{Kind, Packet};
use crate::units::Time;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// Everything that was seen.
#[derive(Default)]
struct Seen {
    packets: Vec<(Time, Point, Packet)>,
    ended: Vec<(Time, u32)>,
    finished: Vec<Time>,
}

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Seen>>);

impl Recorder {
    fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tap for Recorder {
    fn packet(&mut self, at: Time, point: Point, packet: &Packet) {
        self.with(|seen| seen.packets.push((at, point, *packet)));
    }
    fn ended(&mut self, at: Time, flow: u32) {
        self.with(|seen| seen.ended.push((at, flow)));
    }
    fn finished(&mut self, at: Time) {
        self.with(|seen| seen.finished.push(at));
    }
}

fn network(text: &str) -> NetworkPlan {
    Scenario::parse(text, "test").unwrap_or_else(|error| panic!("{error}\n{text}")).network
}

fn run(network: &NetworkPlan, tap: Option<&Recorder>) -> (Outcome, Vec<FlowId>) {
    let mut sim = Sim::new(network, Seed(3), &mut builtin).expect("built-in controllers");
    if let Some(tap) = tap {
        sim.add_tap(Box::new(tap.clone()));
    }
    let ids = sim.flow_ids().collect();
    sim.run_until(Time::NEVER);
    (sim.finish(), ids)
}

/// A network of two links in a row and two back, drawn at random: every queue, loss, reordering, copies, flows that
/// pace, delay their acknowledgements or have two subflows.
fn drawn(rng: &mut Rng) -> String {
    const QUEUES: [&str; 6] = [
        "kind = \"drop_tail\", packets = 40",
        "kind = \"red\", packets = 100, min_packets = 10, max_packets = 30, ecn = true",
        "kind = \"pie\", packets = 100",
        "kind = \"codel\", packets = 100, ecn = true",
        "kind = \"fq_codel\", packets = 100",
        "kind = \"dualpi2\", packets = 100",
    ];
    const FLOWS: [&str; 5] = [
        "controller = \"cubic\"\nsender = { ack_every = 3 }",
        "controller = \"bbr1\"\nsender = { ecn = \"l4s\" }",
        "controller = \"new_reno\"\nsender = { recovery = \"ns2\" }",
        "controller = \"cubic\"\ntraffic = { kind = \"fixed\", bytes = 300000 }",
        "controller = \"none\"\ntraffic = { kind = \"cbr\", rate_mbps = 1, packet_bytes = 500 }",
    ];
    const WIRES: [&str; 4] = [
        "",
        "loss = { kind = \"bernoulli\", ratio = 0.02 }",
        "reorder = { ratio = 0.05, low_ms = 1, high_ms = 9 }",
        "duplicate_ratio = 0.02\npolicer = { rate_mbps = 8, burst_bytes = 30000 }",
    ];
    let mut one_of = |all: &[&str]| all[rng.below(all.len() as u64) as usize].to_owned();
    let mut text = "duration_s = 4\n".to_owned();
    for name in ["a", "b", "c", "d"] {
        let _ = write!(
            text,
            "[[link]]\nname = \"{name}\"\nrate_mbps = 10\ndelay_ms = 7\nqueue = {{ {} }}\n{}\n",
            one_of(&QUEUES),
            one_of(&WIRES)
        );
    }
    for _ in 0..3 {
        let flow = one_of(&FLOWS).replace("controller = \"none\"\n", "");
        text += "[[flow]]\npath = [\"a\", \"b\"]\nreverse = [\"c\", \"d\"]\n";
        text += &flow;
        text += "\n";
    }
    text
}

const MULTIPATH: &str = "duration_s = 4\n[two_path.first]\nrate_mbps = 8\ndelay_ms = 10\n\
    [two_path.second]\nrate_mbps = 4\ndelay_ms = 40\n\
    [[flow]]\ncontroller = \"lia\"\nmultipath = true\ntraffic = { kind = \"fixed\", bytes = 2000000 }\n";

/// Networks of this test: drawn from a seed that its failures name.
fn networks() -> impl Iterator<Item = (String, NetworkPlan)> {
    let mut rng = Rng::new(7);
    let texts: Vec<String> = (0..20).map(|_| drawn(&mut rng)).collect();
    let all = texts.into_iter().chain([MULTIPATH.to_owned()]);
    all.map(|text| (text.clone(), network(&text)))
}

#[test]
fn a_tap_changes_nothing() {
    for (text, network) in networks() {
        let with = run(&network, Some(&Recorder::default())).0;
        let without = run(&network, None).0;
        assert_eq!(format!("{with:?}"), format!("{without:?}"), "{text}");
    }
}

#[test]
fn a_tap_sees_as_many_packets_as_are_counted() {
    for (text, network) in networks() {
        let tap = Recorder::default();
        let (outcome, ids) = run(&network, Some(&tap));
        let end = network.duration;
        tap.with(|seen| {
            let count = |point: Point, flow: Option<u32>| {
                let is_it = |one: &&(Time, Point, Packet)| {
                    let of_flow =
                        flow.is_none_or(|flow| one.2.flow == flow && one.2.kind != Kind::Ack);
                    one.1 == point && one.0 <= end && of_flow
                };
                seen.packets.iter().filter(is_it).count() as u64
            };
            for (index, (row, id)) in outcome.flows.iter().zip(&ids).enumerate() {
                assert_eq!(row.flow, id.name);
                assert_eq!(count(Point::Sent, Some(index as u32)), row.sent_packets, "{text}");
                assert_eq!(
                    count(Point::Received, Some(index as u32)),
                    row.received_packets,
                    "{text}"
                );
            }
            for (index, row) in outcome.links.iter().enumerate() {
                let of = |point: fn(u32) -> Point| count(point(index as u32), None);
                let lost = seen.packets.iter().filter(|one| one.1 == Point::Lost(index as u32));
                assert_eq!(of(Point::Enters), row.arrived_packets, "{text}");
                assert_eq!(of(Point::Dropped), row.queue_drops, "{text}");
                assert_eq!(lost.count() as u64, row.random_losses, "{text}");
                assert_eq!(of(Point::Leaves) - of(Point::Lost), row.delivered_packets, "{text}");
            }
            assert_eq!(seen.finished, [end]);
        });
    }
}

#[test]
fn time_goes_forward_at_hosts_and_at_each_link() {
    for (text, network) in networks() {
        let tap = Recorder::default();
        run(&network, Some(&tap));
        tap.with(|seen| {
            let mut last = std::collections::BTreeMap::new();
            for (at, point, _) in &seen.packets {
                let place = match point {
                    Point::Sent | Point::Received => "hosts".to_owned(),
                    Point::Enters(_) | Point::Dropped(_) | Point::Lost(_) | Point::Leaves(_) => {
                        format!("{point:?}")
                    }
                };
                let before = last.insert(place, *at).unwrap_or_default();
                assert!(before <= *at, "{point:?}: {before:?} {at:?}\n{text}");
            }
        });
    }
}

#[test]
fn the_end_of_a_transfer_is_told_when_all_is_acknowledged() {
    let tap = Recorder::default();
    run(&network(MULTIPATH), Some(&tap));
    tap.with(|seen| {
        let flows: Vec<u32> = seen.ended.iter().map(|one| one.1).collect();
        assert_eq!(flows, [0, 1]);
        let acks = seen.packets.iter().filter(|one| one.2.kind == Kind::Ack);
        let last = acks.map(|one| one.0).take_while(|at| *at <= seen.ended[0].0).last();
        assert_eq!(last, Some(seen.ended[0].0));
    });
}
