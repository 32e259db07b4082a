//! quinn in virtual time: its own controllers, and ours in it.
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::scheme::Scheme;
use ackademy::sim::record::FlowRow;
use ackademy::units::Bytes;
use ackademy_quic::Factory;
use ackademy_quic::virtual_time::{Governor, Quic, check, run};
use std::sync::Arc;

/// Where random points come from.
const SEED: u64 = 43;

/// One flow over a bottleneck of a drop-tail queue; `more` goes to the bottleneck.
fn path(controller: &str, (mbps, rtt_ms, bdp): (f64, f64, f64), more: &str) -> Scenario {
    let text = format!(
        "duration_s = 20\n[dumbbell]\nrtt_ms = {rtt_ms}\n[dumbbell.bottleneck]\nrate_mbps = {mbps}\n\
         queue = {{ kind = \"drop_tail\", bdp = {bdp}, min_bytes = 6000 }}\n{more}\n[[flow]]\n\
         controller = {controller:?}\n"
    );
    Scenario::parse(&text, "test").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn row(scenario: &Scenario, seed: u64) -> FlowRow {
    let outcome = run(&scenario.network, Seed(seed)).unwrap_or_else(|error| panic!("{error}"));
    outcome.flows[0].clone()
}

fn goodput_mbps(row: &FlowRow) -> f64 {
    row.goodput_bytes as f64 * 8e-6 / 20.0
}

#[test]
fn quinns_cubic_and_new_reno_get_what_noqs_get_on_drop_tail_within_3_percent() {
    let mut rng = Rng::new(SEED);
    for name in ["cubic", "new_reno"] {
        for _ in 0..3 {
            let point =
                (rng.uniform_in(2.0, 30.0), rng.uniform_in(10.0, 80.0), rng.uniform_in(0.5, 4.0));
            let [quinn, noq] = ["quinn", "noq"]
                .map(|stack| goodput_mbps(&row(&path(&format!("{stack}:{name}"), point, ""), 1)));
            let place = format!("{name} on {point:?}, seed {SEED}: {quinn} and {noq} Mb/s");
            assert!((quinn / noq - 1.0).abs() < 0.03, "{place}");
        }
    }
}

/// quinn's trait has no pacing rate, so two bandwidth-delay products leave in each round trip.
#[test]
fn quinns_bbr_loses_a_third_or_more_behind_a_policer_where_our_bbr1_over_noq_loses_a_tenth() {
    let policer = "policer = { rate_mbps = 10, burst_bytes = 50_000 }";
    let lost = |controller| {
        let row = row(&path(controller, (100.0, 40.0, 1.0), policer), 1);
        assert!(goodput_mbps(&row) > 8.0, "{controller}: {row:?}");
        row.queue_drops as f64 / row.sent_packets as f64
    };
    let (theirs, ours) = (lost("quinn:bbr"), lost("bbr1"));
    assert!(theirs > 0.33 && ours < 0.1, "{theirs} and {ours} lost");
}

#[test]
fn a_connection_of_several_subflows_is_refused_in_one_line() {
    let text = "duration_s = 1\n[two_path.first]\nrate_mbps = 10\ndelay_ms = 10\n[two_path.second]\nrate_mbps = 4\n\
         delay_ms = 40\n[[flow]]\nname = \"both\"\nmultipath = true\ncontroller = \"quinn:cubic\"\n";
    let scenario = Scenario::parse(text, "test").expect("a scenario");
    let said = "flow \"both\": 2 subflows under quinn:cubic: allowed with quinn is one";
    assert_eq!(check(&scenario.network).expect_err("two paths").to_string(), said);
    let error = Quic::new(&scenario.network, Seed(1)).err().expect("two paths");
    assert_eq!(error.to_string(), said);
}

#[test]
fn our_controllers_govern_a_connection_of_quinn() {
    let mut rng = Rng::new(SEED);
    for name in ["cubic", "new_reno", "bbr3", "own_queue"] {
        let ratio = rng.uniform_in(0.001, 0.01);
        let lossy = format!("loss = {{ kind = \"bernoulli\", ratio = {ratio} }}");
        let scenario = path(name, (20.0, 40.0, 2.0), &lossy);
        let scheme = Scheme::resolve(name, &[]).expect("in the table");
        let factory = Arc::new(Factory::new(&scheme).expect("no hook").observed());
        let mut build = |_: &_| Ok(Governor::Quinn(Arc::clone(&factory) as _));
        let mut quic = Quic::governed(&scenario.network, Seed(1), &mut build).expect("a path");
        quic.run_until(scenario.network.duration).expect("connections stay");
        let goodput = goodput_mbps(&quic.finish().flows[0]);
        let place = format!("{name}, {ratio} lost, seed {SEED}: {goodput} Mb/s");
        assert!(goodput > 1.0 && goodput < 20.0, "{place}");
        let handle = &factory.handles()[0];
        assert!(handle.delivery_rate().0 > 500_000, "{place}: {handle:?}");
        assert!(handle.control().cwnd > Bytes(2400) && !handle.fell_back(), "{place}");
    }
}
