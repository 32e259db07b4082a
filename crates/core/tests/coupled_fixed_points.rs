//! What the coupled controllers earn in the simulator: the fixed points that their papers derive.
use ackademy::params::ParamValue;
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim;
use ackademy::sim::record::{FlowRow, Outcome};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test").expect("a scenario")
}

fn run(scenario: &Scenario, seed: u64) -> Outcome {
    sim::run(&scenario.network, Seed(seed)).expect("built-in controllers")
}

fn set(scenario: &mut Scenario, flow: usize, name: &str, settings: &[(&str, &str)]) {
    let plan = &mut scenario.network.connections[flow];
    name.clone_into(&mut plan.controller);
    let word =
        |&(name, value): &(&str, &str)| (name.to_owned(), ParamValue::Word(value.to_owned()));
    plan.params = settings.iter().map(word).collect();
}

/// Mean and half of its 95 % interval (Student's t, 15 degrees of freedom).
fn interval(values: &[f64; 16]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / 16.0;
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    (mean, 2.131 * (squares / 15.0 / 16.0).sqrt())
}

/// A bottleneck with a little random loss, which keeps the flows from losing together, shared by a connection with two subflows and by a flow of NewReno.
fn shared_bottleneck() -> Scenario {
    let mut scenario = parse(
        "duration_s = 200\n[dumbbell]\nreverse_delay_ms = 20\n[dumbbell.bottleneck]\nrate_mbps = 10\n\
         delay_ms = 20\nloss = { kind = \"bernoulli\", ratio = 0.002 }\nqueue = { kind = \"drop_tail\", packets = 100 }\n\
         [[flow]]\nname = \"coupled\"\nstart_spread_s = 1\n[[flow]]\nname = \"alone\"\n\
         controller = \"new_reno\"\nstart_spread_s = 1\n",
    );
    let subflows = &mut scenario.network.connections[0].subflows;
    subflows.push(subflows[0].clone());
    scenario
}

/// Goodput of a connection with two subflows over that of one flow of `other` beside it, over seeds.
fn ratio(name: &str, settings: &[(&str, &str)], other: &str) -> (f64, f64) {
    let mut scenario = shared_bottleneck();
    set(&mut scenario, 0, name, settings);
    set(&mut scenario, 1, other, settings);
    let one = |seed: usize| {
        let flows = run(&scenario, seed as u64).flows;
        let bytes = |flow: &FlowRow| flow.goodput_bytes as f64;
        (bytes(&flows[0]) + bytes(&flows[1])) / bytes(&flows[2])
    };
    interval(&std::array::from_fn(one))
}

#[test]
fn two_subflows_over_a_shared_bottleneck_earn_one_reno_in_total() {
    for name in ["lia", "olia", "balia"] {
        let (mean, half) = ratio(name, &[], "new_reno");
        println!("{name}: {mean:.3} +- {half:.3}");
        assert!((0.9..=1.15).contains(&mean) && half < 0.06, "{name}: {mean} +- {half}");
    }
    let (uncoupled, _) = ratio("new_reno", &[], "new_reno");
    println!("new_reno: {uncoupled:.3}");
    assert!(uncoupled > 1.6, "two flows of NewReno take two shares: {uncoupled}");
}

#[test]
fn in_the_integers_of_linux_two_subflows_earn_what_one_alone_does() {
    for name in ["lia", "olia", "balia"] {
        // The other connection has one subflow: NewReno in the same integers.
        let (mean, half) = ratio(name, &[("kernel", "on")], name);
        println!("{name}: {mean:.3} +- {half:.3}");
        assert!((0.9..=1.25).contains(&mean) && half < 0.06, "{name}: {mean} +- {half}");
    }
}

/// Two paths, the second with eight times the loss: goodput of each, bytes, summed over seeds.
fn good_and_bad_path(name: &str) -> [f64; 2] {
    let mut scenario = parse(
        "duration_s = 120\n[two_path.first]\nrate_mbps = 50\ndelay_ms = 25\nloss = { kind = \"bernoulli\", ratio = 0.002 }\n\
         [two_path.second]\nrate_mbps = 50\ndelay_ms = 25\nloss = { kind = \"bernoulli\", ratio = 0.016 }\n\
         [[flow]]\nmultipath = true\n",
    );
    set(&mut scenario, 0, name, &[]);
    let mut sums = [0.0; 2];
    for seed in 0..8 {
        for (sum, flow) in sums.iter_mut().zip(run(&scenario, seed).flows) {
            *sum += flow.goodput_bytes as f64;
        }
    }
    sums
}

#[test]
fn olia_moves_off_the_worse_path_and_lia_moves_less() {
    let share = |name| {
        let [good, bad] = good_and_bad_path(name);
        bad / (good + bad)
    };
    let [olia, lia, reno] = ["olia", "lia", "new_reno"].map(share);
    println!("share of the worse path: olia {olia:.3}, lia {lia:.3}, new_reno {reno:.3}");
    // Two flows of NewReno: 1 / (1 + sqrt 8) = 0.26 of the sum.
    assert!(olia < 0.85 * lia && lia < 0.6 * reno, "{olia} {lia} {reno}");
    assert!(olia < 0.1, "{olia}");
}

#[test]
fn a_connection_with_one_subflow_is_new_reno_to_the_byte() {
    for loss in ["0.0", "0.01"] {
        let mut scenario = parse(&format!(
            "duration_s = 60\n[dumbbell.bottleneck]\nrate_mbps = 8\ndelay_ms = 50\nloss = {{ kind = \"bernoulli\", ratio = {loss} }}\n\
             queue = {{ kind = \"drop_tail\", packets = 60 }}\n[[flow]]\n"
        ));
        set(&mut scenario, 0, "new_reno", &[]);
        let reno = run(&scenario, 3).flows;
        for name in ["lia", "olia", "balia"] {
            set(&mut scenario, 0, name, &[]);
            let mut alone = run(&scenario, 3).flows;
            alone[0].controller = "new_reno".to_owned();
            assert_eq!(format!("{alone:?}"), format!("{reno:?}"), "{name}, loss {loss}");
        }
    }
}

/// wVegas on two paths of 12 and 4 Mb/s without losses: packets waiting on each, and the share of the links in
/// use. A packet takes one millisecond on the first, three on the second.
fn wvegas_on(paths: usize, drain: &str) -> (Vec<f64>, f64) {
    let mut scenario = parse(
        "duration_s = 200\n[two_path.first]\nrate_mbps = 12\ndelay_ms = 50\n\
         [two_path.second]\nrate_mbps = 4\ndelay_ms = 50\n[[flow]]\nmultipath = true\n",
    );
    scenario.network.connections[0].subflows.truncate(paths);
    set(&mut scenario, 0, "wvegas", &[("drain", drain)]);
    let links = run(&scenario, 1).links;
    let forward = || links.iter().filter(|link| !link.link.ends_with("reverse")).take(paths);
    let delivered: u64 = forward().map(|link| link.delivered_bytes).sum();
    let capacity: u64 = forward().map(|link| link.capacity_bytes).sum();
    let waiting = forward().zip([1.0, 3.0]).map(|(link, ms)| link.wait_mean_ms / ms).collect();
    (waiting, delivered as f64 / capacity as f64)
}

#[test]
fn wvegas_alone_keeps_its_whole_target_in_the_queue() {
    let (waiting, used) = wvegas_on(1, "off");
    println!("{waiting:?} {used}");
    assert!((waiting[0] - 10.0).abs() < 2.0 && used > 0.97, "{waiting:?} {used}");
}

/// Of one flow on a path of this rate, Mb/s, and round trip, ms, the bytes that it delivers after the first
/// 200 s, when slow start is over, and its mean queue then, packets.
fn alone_on([rate, rtt]: [u64; 2], name: &str, params: &[(&str, ParamValue)]) -> (f64, f64) {
    let mut scenario = parse(&format!(
        "duration_s = 300\nsample_interval_ms = 7\n[dumbbell]\nrtt_ms = {rtt}\n\
         [dumbbell.bottleneck]\nrate_mbps = {rate}\n[[flow]]\nsender = {{ ack_every = 1 }}\n"
    ));
    let plan = &mut scenario.network.connections[0];
    name.clone_into(&mut plan.controller);
    plan.params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let outcome = run(&scenario, 1);
    let flow = &outcome.flow_series;
    let late = flow.time_s.partition_point(|&time| time < 200.0);
    let delivered = flow.delivered_bytes[flow.time_s.len() - 1] - flow.delivered_bytes[late];
    let link = &outcome.link_series;
    let samples = link.time_s.iter().zip(&link.link).zip(&link.queue_packets);
    let waiting: Vec<u64> = samples
        .filter(|&((&time, &link), _)| link == 0 && time >= 200.0)
        .map(|(_, &packets)| packets)
        .collect();
    (delivered as f64, waiting.iter().sum::<u64>() as f64 / waiting.len() as f64)
}

#[test]
fn wvegas_alone_without_its_drains_is_vegas_with_its_target() {
    let target = ["alpha_packets", "beta_packets"].map(|name| (name, ParamValue::Number(10.0)));
    let off = [("drain", ParamValue::Word("off".to_owned()))];
    for path in [[12, 100], [40, 40], [5, 200], [100, 20]] {
        let (vegas, queue) = alone_on(path, "vegas", &target);
        let (wvegas, own) = alone_on(path, "wvegas", &off);
        println!("{path:?}: {:.4}, {own:.2} and {queue:.2} packets", wvegas / vegas);
        assert!((wvegas / vegas - 1.0).abs() < 0.001, "{path:?}: {wvegas} and {vegas} bytes");
        assert!((own - queue).abs() < 1.0, "{path:?}: {own} and {queue} packets");
    }
}

#[test]
fn the_subflows_of_wvegas_share_its_target_by_their_rates() {
    let (waiting, used) = wvegas_on(2, "off");
    println!("{waiting:?} {used}");
    // 7.5 and 2.5 packets, rounded down.
    assert!((waiting[0] - 7.0).abs() < 2.0 && (waiting[1] - 2.0).abs() < 1.5, "{waiting:?}");
    assert!(used > 0.97, "{used}");
}

#[test]
fn draining_empties_the_queues_of_wvegas_at_the_price_of_throughput() {
    let (waiting, used) = wvegas_on(2, "on");
    println!("{waiting:?} {used}");
    assert!(waiting.iter().sum::<f64>() < 7.0 && used < 0.9, "{waiting:?} {used}");
}

/// Goodput in the integers of Linux over that in real numbers, on two paths with this share of losses.
fn integers_over_reals(name: &str, loss: f64) -> f64 {
    let mut scenario = parse(&format!(
        "duration_s = 300\n[two_path.first]\nrate_mbps = 100\ndelay_ms = 25\n\
         loss = {{ kind = \"bernoulli\", ratio = {loss:?} }}\n\
         [two_path.second]\nrate_mbps = 100\ndelay_ms = 50\n\
         loss = {{ kind = \"bernoulli\", ratio = {loss:?} }}\n[[flow]]\nmultipath = true\n"
    ));
    let mut goodput = |settings: &[(&str, &str)]| -> f64 {
        set(&mut scenario, 0, name, settings);
        let flows = (0..4).flat_map(|seed| run(&scenario, seed).flows);
        flows.map(|flow| flow.goodput_bytes as f64).sum()
    };
    goodput(&[("kernel", "on")]) / goodput(&[])
}

#[test]
fn the_integers_of_linux_earn_up_to_a_quarter_more_in_small_windows_and_a_tenth_in_large_ones() {
    // They grow exponentially at the threshold too: a packet more after each loss. A window of half of
    // NewReno's sqrt(1.5 / loss) has 6 packets at 1 % of losses and 27 at 0.05 %.
    for name in ["lia", "olia", "balia", "wvegas"] {
        let ratios = [0.01, 0.0005].map(|loss| integers_over_reals(name, loss));
        println!("{name}: {ratios:.3?}");
        assert!((0.95..1.25).contains(&ratios[0]), "{name}: {ratios:?}");
        assert!((0.95..1.1).contains(&ratios[1]), "{name}: {ratios:?}");
    }
}
