//! What runs say of the truth.
#![allow(clippy::float_cmp)] // exact: what is planned, and untouched values
use super::*;
use crate::decision::{Metrics, TRUTH, TRUTH_NAMES, Truth};

/// One monitor interval.
struct Interval {
    metrics: Metrics,
    truth: Truth,
}

/// A dumbbell of 10 Mb/s and 40 ms, which holds 33 packets, with these fields of the bottleneck and these
/// flows.
fn dumbbell(bottleneck: &str, flows: &str) -> Scenario {
    let rate = if bottleneck.contains("rate_schedule") { "" } else { "rate_mbps = 10\n" };
    let text = format!(
        "duration_s = 8\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\n{rate}{bottleneck}\n{flows}"
    );
    Scenario::parse(&text, "truth").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An agent whose window stays at so many packets.
fn learner(window: u32) -> String {
    format!(
        "[[flow]]\nname = \"learner\"\nsender = {{ initial_cwnd_packets = {window}, ack_every = 1 }}\n"
    )
}

const TAIL: &str = "queue = { kind = \"drop_tail\", packets = 100 }";

fn environment(scenario: &Scenario) -> Environment {
    let text = "[observation]\nfeatures = [\"rtt_mean\"]\n[decision]\nevery = \"srtt\"\n\
                [action]\nmap = \"cwnd_steps\"\nsteps = [\"+0\", \"+1\"]\n[start]\nslow_start = false\n\
                loss_guard = false\n";
    let spec = Arc::new(PolicySpec::parse(text).unwrap());
    Environment::new(scenario, &spec, &["learner".to_owned()], 4).unwrap()
}

/// What agent 0 learns: of what arrived, and of what it sent.
fn intervals(scenario: &Scenario) -> (Vec<Interval>, Vec<Interval>) {
    let mut episode = environment(scenario).collect_truth(3).begin(Seed(1)).unwrap();
    let (mut arrived, mut sent) = (Vec::new(), Vec::new());
    while episode.advance() {
        for agent in 0..episode.flows() {
            let Some(state) = episode.agent(agent).cloned() else { continue };
            if !state.due {
                continue;
            }
            episode.act(agent, Action::Choice(0));
            if agent > 0 {
                continue;
            }
            let truth = Truth::from_row(&state.truth);
            arrived.push(Interval { metrics: state.arrived, truth });
            if let Some(credit) = state.credit {
                let truth = Truth::from_row(&state.credit_truth);
                sent.push(Interval { metrics: credit.metrics, truth });
            }
        }
    }
    (arrived, sent)
}

/// Those between two times, which there must be.
fn between(intervals: &[Interval], from_s: f64, until_s: f64) -> Vec<&Interval> {
    let within = |one: &&Interval| {
        from_s <= one.metrics.time_s - one.metrics.duration_s && one.metrics.time_s < until_s
    };
    let found: Vec<_> = intervals.iter().filter(within).collect();
    assert!(found.len() > 5, "{} intervals", found.len());
    found
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

#[test]
fn a_flow_alone_has_the_link_and_its_own_queue_and_nothing_else() {
    let (arrived, sent) = intervals(&dumbbell(TAIL, &learner(50)));
    for one in between(&arrived, 1.0, 7.5).into_iter().chain(between(&sent, 1.0, 7.5)) {
        let truth = &one.truth;
        near(truth.fair_mbps, 10.0, 1e-3);
        near(truth.capacity_mbps, 10.0, 1e-3);
        assert_eq!(truth.base_rtt_ms, 40.0);
        // 50 packets are in flight, and 1 in transmission beside the 33.3 on the wire and the ACK's 0.04 ms.
        near(truth.own_queue_packets, 50.0 - 34.3, 0.5);
        near(truth.queue_ms, (50.0 - 34.3) * 1.2, 0.6);
        near(truth.own_queue_ms, truth.queue_ms, 0.6);
        near(truth.buffer_bdp, 3.0, 1e-3);
        near(truth.utilisation, 1.0, 0.03);
        near(one.metrics.throughput_mbps / truth.fair_mbps, 1.0, 0.03);
        assert_eq!((truth.congestion_loss, truth.random_loss, truth.class), (0.0, 0.0, 3.0));
        let flows = (truth.own_kind_flows, truth.loss_based_flows, truth.bbr_flows);
        assert_eq!(flows, (1.0, 0.0, 0.0));
    }
    let numbers: Vec<f64> = sent.iter().map(|one| one.truth.interval).collect();
    let expected: Vec<f64> = (0..numbers.len()).map(|number| number as f64).collect();
    assert_eq!(numbers, expected, "what was sent after each decision, in order");
    assert_eq!(arrived[0].truth.interval, -1.0);
    // So many are counted, less those that ended while the last was on its way.
    assert!((60.0..=64.0).contains(&sent.last().unwrap().truth.intervals_since_event));
}

#[test]
fn a_wait_is_in_queues_also_where_jitter_and_schedulers_hide_it() {
    let jitter = format!("jitter_ms = 5\n{TAIL}");
    let (_, sent) = intervals(&dumbbell(&jitter, &learner(4)));
    let steady = between(&sent, 1.0, 7.5);
    // Four packets never wait for long, though round trips are many milliseconds longer than the base.
    assert!(steady.iter().all(|one| one.truth.queue_ms < 2.0));
    assert!(steady.iter().any(|one| one.metrics.rtt_last_ms > 47.0));
    assert!(steady.iter().all(|one| one.truth.base_rtt_ms == 40.0));
    let fq = "queue = { kind = \"fq_codel\", packets = 1000, target_ms = 500 }";
    let (_, sent) = intervals(&dumbbell(fq, &learner(50)));
    for one in between(&sent, 1.0, 7.5) {
        near(one.truth.queue_ms, (50.0 - 34.3) * 1.2, 0.6);
    }
}

#[test]
fn packets_that_queues_drop_are_congestive_loss_and_others_are_not() {
    let lossy = format!("loss = {{ kind = \"bernoulli\", ratio = 0.05 }}\n{TAIL}");
    let (_, sent) = intervals(&dumbbell(&lossy, &learner(20)));
    assert!(sent.iter().any(|one| one.metrics.lost_packets > 0.0));
    assert!(sent.iter().all(|one| one.truth.congestion_loss == 0.0));
    assert!(sent.iter().all(|one| (one.truth.random_loss - 0.05).abs() < 1e-12));

    // Access links spread the first window, so that no round trip loses more than it delivers.
    let cbr = "[[flow]]\ntraffic = { kind = \"cbr\", rate_mbps = 4, packet_bytes = 1500 }\n";
    let text = format!(
        "duration_s = 8\n[dumbbell]\nrtt_ms = 40\naccess_mbps = 12\n[dumbbell.bottleneck]\nrate_mbps = 10\n\
         queue = {{ kind = \"drop_tail\", packets = 5 }}\n{}{cbr}",
        learner(30)
    );
    let (_, sent) = intervals(&Scenario::parse(&text, "truth").unwrap());
    let lost: f64 = sent.iter().map(|one| one.metrics.lost_packets).sum();
    let sent_packets = |one: &Interval| one.metrics.acked_packets + one.metrics.lost_packets;
    let dropped: f64 = sent.iter().map(|one| one.truth.congestion_loss * sent_packets(one)).sum();
    assert!(lost > 20.0, "{lost} packets lost");
    near(dropped / lost, 1.0, 0.1);
}

#[test]
fn a_fair_share_follows_flows_that_come_and_go_and_what_they_want() {
    let cbr = "[[flow]]\nname = \"cbr\"\nstart_s = 2\nstop_s = 4\n\
               traffic = { kind = \"cbr\", rate_mbps = 4, packet_bytes = 1500 }\n";
    let cubic = "[[flow]]\nname = \"cubic\"\ncontroller = \"cubic\"\nstart_s = 5\n";
    let flows = format!("{}{cbr}{cubic}", learner(34));
    let (_, sent) = intervals(&dumbbell(TAIL, &flows));
    for one in between(&sent, 0.5, 2.0) {
        near(one.truth.fair_mbps, 10.0, 1e-3);
    }
    for one in between(&sent, 2.1, 4.0) {
        near(one.truth.fair_mbps, 6.0, 1e-3);
        assert_eq!(one.truth.loss_based_flows, 0.0);
    }
    for one in between(&sent, 5.2, 7.5) {
        near(one.truth.fair_mbps, 5.0, 1e-3);
        assert_eq!((one.truth.loss_based_flows, one.truth.own_kind_flows), (1.0, 1.0));
        assert!(one.truth.own_queue_ms < 0.9 * one.truth.queue_ms, "the rest is CUBIC's");
    }
    let quiet = |one: &&Interval| one.truth.intervals_since_event == 0.0;
    let times: Vec<f64> = sent.iter().filter(quiet).map(|one| one.metrics.time_s).collect();
    for event_s in [2.0, 4.0, 5.0] {
        assert!(times.iter().any(|at| (event_s..event_s + 0.3).contains(at)), "{times:?}");
    }
    assert!(times.iter().all(|at| *at < 0.3 || (2.0..5.3).contains(at)), "{times:?}");
}

#[test]
fn capacity_is_that_of_the_time_in_which_packets_were_served() {
    let steps = format!("rate_schedule = [[0, 10], [3, 5]]\n{TAIL}");
    let (_, sent) = intervals(&dumbbell(&steps, &learner(60)));
    assert!(sent.iter().all(|one| (5.0 - 1e-6..=10.0).contains(&one.truth.fair_mbps)));
    for one in between(&sent, 0.5, 7.5) {
        // The queue never empties, so that the flow gets what there is, also where the rate changes.
        near(one.metrics.throughput_mbps / one.truth.fair_mbps, 1.0, 0.05);
    }
    near(between(&sent, 4.0, 7.5)[0].truth.fair_mbps, 5.0, 1e-3);

    let outage = format!("outages = [[3, 4]]\n{TAIL}");
    let (_, sent) = intervals(&dumbbell(&outage, &learner(40)));
    assert!(sent.iter().all(|one| one.truth.row().iter().all(|value| value.is_finite())));
    let policed = format!("policer = {{ rate_mbps = 4, burst_bytes = 20000 }}\n{TAIL}");
    let (_, sent) = intervals(&dumbbell(&policed, &learner(20)));
    near(sent.last().unwrap().truth.fair_mbps, 4.0, 1e-3);
}

#[test]
fn flows_of_a_parking_lot_have_max_min_shares() {
    let text = "duration_s = 4\n[parking_lot]\nhops = 2\nbottleneck = { rate_mbps = 9, delay_ms = 10, \
                queue = { kind = \"drop_tail\", packets = 50 } }\n\
                [[flow]]\nname = \"learner\"\nsender = { initial_cwnd_packets = 20 }\n\
                [[flow]]\nname = \"first\"\ncontroller = \"bbr1\"\nroute = [0, 0]\ncount = 2\n\
                [[flow]]\nname = \"last\"\ncontroller = \"vegas\"\nroute = [1, 1]\n";
    let scenario = Scenario::parse(text, "lot").unwrap_or_else(|error| panic!("{error}"));
    let (_, sent) = intervals(&scenario);
    let last = &sent.last().unwrap().truth;
    near(last.fair_mbps, 3.0, 1e-3);
    near(last.capacity_mbps, 9.0, 1e-3);
    assert_eq!((last.base_rtt_ms, last.bbr_flows), (40.0, 2.0));
}

#[test]
fn truth_changes_nothing_and_is_not_there_unless_it_is_asked_for() {
    let flows =
        format!("{}[[flow]]\nname = \"cubic\"\ncontroller = \"cubic\"\nstart_s = 1\n", learner(30));
    for queue in [TAIL, "queue = { kind = \"fq_codel\", packets = 100 }"] {
        let plain = environment(&dumbbell(queue, &flows));
        let run = |environment: &Environment| {
            let mut episode = environment.begin(Seed(2)).unwrap();
            let mut rows = Vec::new();
            while episode.advance() {
                let state = episode.agent(0).unwrap();
                rows.push((state.truth, state.credit_truth));
                episode.act(0, Action::Choice(0));
            }
            (format!("{:?}", episode.finish()), rows)
        };
        let (without, none) = run(&plain);
        let (with, all) = run(&plain.clone().collect_truth(0));
        assert_eq!(without, with, "{queue}");
        assert!(none.iter().all(|rows| *rows == ([0.0; TRUTH], [0.0; TRUTH])));
        assert!(all.iter().all(|rows| rows.0 != [0.0; TRUTH]));
    }
}

#[test]
fn a_row_of_truth_has_its_columns_names_and_comes_back() {
    let row = std::array::from_fn(|place| place as f64);
    let truth = Truth::from_row(&row);
    assert_eq!(truth.row(), row);
    let place = |name: &str| TRUTH_NAMES.iter().position(|known| *known == name).unwrap() as f64;
    assert_eq!((truth.fair_mbps, truth.queue_ms), (place("fair_mbps"), place("queue_ms")));
    assert_eq!(
        (truth.own_queue_ms, truth.capacity_mbps),
        (place("own_queue_ms"), place("capacity_mbps"))
    );
    assert_eq!((truth.class, truth.utilisation), (place("class"), place("utilisation")));
}

#[test]
fn an_observation_that_asks_for_truth_is_refused() {
    for name in TRUTH_NAMES {
        let text = format!(
            "[observation]\nfeatures = [\"rtt_mean\", \"{name}\"]\n[decision]\nevery = \"srtt\"\n\
             [action]\nmap = \"cwnd_steps\"\n"
        );
        let error = PolicySpec::parse(&text).unwrap_err().to_string();
        let about = "which only the simulator knows: it is for rewards and critics";
        assert!(error.contains(&format!("observation.features[1] = \"{name}\"")), "{error}");
        assert!(error.contains(about) && !error.contains('\n'), "{error}");
    }
}
