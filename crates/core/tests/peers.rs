//! The same scenarios in ns-2 and ns-3, whose figures stand here as data. Where they come from, and
//! which of them are a peer's fault, is in docs/results/peers.md; the rules of ns-2's sender are in docs/reference/ns2.md.
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim;
use ackademy::sim::record::{FlowRow, Outcome};

/// Runs `text` with every seed of `1..=seeds`, half of them on a second thread.
fn runs(text: &str, seeds: u64) -> Vec<Outcome> {
    let network = &Scenario::parse(text, "peers").expect("a scenario").network;
    let run = |seed: u64| sim::run(network, Seed(seed)).expect("built-in controllers");
    std::thread::scope(|scope| {
        let odd = scope.spawn(move || (1..=seeds).step_by(2).map(run).collect::<Vec<_>>());
        let even: Vec<Outcome> = (2..=seeds).step_by(2).map(run).collect();
        let mut all = odd.join().expect("a run that ends");
        all.extend(even);
        all
    })
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn throughput_mbps(flow: &FlowRow) -> f64 {
    flow.delivered_bytes as f64 * 8e-6 / flow.active_s
}

/// Mean over flows and runs: throughput in Mb/s, wait in ms, share of packets dropped by the queue.
fn summary(outcomes: &[Outcome]) -> (f64, f64, f64) {
    let flows = || outcomes.iter().flat_map(|outcome| &outcome.flows);
    let total = |count: fn(&FlowRow) -> u64| flows().map(count).sum::<u64>() as f64;
    (
        mean(flows().map(throughput_mbps)),
        mean(outcomes.iter().map(|outcome| outcome.links[0].wait_mean_ms)),
        total(|flow| flow.queue_drops) / total(|flow| flow.sent_packets),
    )
}

fn near(ours: f64, theirs: f64, tolerance: f64) -> bool {
    (ours / theirs - 1.0).abs() <= tolerance
}

/// The Remy scripts' settings: NewReno without SACK, 1260 bytes on the wire, timestamps of 0.1 ms,
/// access links of 100 Mb/s, 150 ms.
fn remy(buffer: u32, flow: &str) -> String {
    format!(
        "duration_s = 400\n[dumbbell]\nrtt_ms = 150\naccess_mbps = 100\n[dumbbell.bottleneck]\n\
         rate_mbps = 10\nqueue = {{ kind = \"drop_tail\", packets = {buffer} }}\n\
         [sender]\nrecovery = \"ns2\"\n[[flow]]\ncontroller = \"new_reno\"\n{flow}"
    )
}

/// ns-2.35 (Debian 2.35+dfsg-5), own script `tools/ns_peers/ns2/dumbbell.tcl` with its defaults and
/// buffer=L: throughput, sampled delay, packets sent, sent retransmitted, dropped, time-outs.
const NS2_SINGLE: [(u32, f64, f64, u64, u64, u64, u64); 3] = [
    (5, 7.5002, 1.994, 297_761, 56, 41, 1),
    (50, 8.9332, 15.966, 354_830, 232, 95, 2),
    (150, 9.9240, 82.731, 394_579, 612, 311, 1),
];

#[test]
fn a_single_newreno_flow_is_ns2s() {
    for (buffer, mbps, delay_ms, sent, retransmitted, drops, _) in NS2_SINGLE {
        let flow = &runs(&remy(buffer, ""), 1)[0].flows[0];
        let tolerance = if buffer == 50 { 0.02 } else { 0.005 };
        let ours = throughput_mbps(flow);
        assert!(near(ours, mbps, tolerance), "L = {buffer}: {ours} Mb/s, ns-2 {mbps}");
        let delay = flow.rtt_at_delivery_ms - flow.base_rtt_ms;
        assert!((delay - delay_ms).abs() < 0.3, "L = {buffer}: {delay} ms, ns-2 {delay_ms}");
        assert!(flow.queue_drops.abs_diff(drops) <= 5, "L = {buffer}: {flow:?}");
        assert!(flow.sent_packets.abs_diff(sent) <= sent / 200, "L = {buffer}: {flow:?}");
        assert!(flow.retransmitted_packets.abs_diff(retransmitted) <= 10, "L = {buffer}: {flow:?}");
    }
}

#[test]
fn a_single_newreno_flow_is_ns2s_to_the_packet() {
    for (buffer, mbps, delay_ms, sent, retransmitted, drops, timeouts) in NS2_SINGLE {
        let flow = &runs(&remy(buffer, ""), 1)[0].flows[0];
        let counts =
            (flow.sent_packets, flow.retransmitted_packets, flow.queue_drops, flow.timeouts);
        assert_eq!(counts, (sent, retransmitted, drops, timeouts), "L = {buffer}");
        let delay = flow.rtt_at_delivery_ms - flow.base_rtt_ms;
        assert!((throughput_mbps(flow) - mbps).abs() < 5e-5, "L = {buffer}: {flow:?}");
        assert!((delay - delay_ms).abs() < 5e-4, "L = {buffer}: {delay} ms, ns-2 {delay_ms}");
    }
}

#[test]
fn the_first_ten_seconds_are_ns2s_event_by_event() {
    const STEP_MS: f64 = 0.1;
    let text = remy(50, "").replace("400", "10");
    let outcome = &runs(&format!("sample_interval_ms = {STEP_MS}\n{text}"), 1)[0];
    let series = &outcome.flow_series;
    let mut drops = 0;
    let mut compared = 0;
    for line in include_str!("golden/ns2_newreno_L50.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "#" {
            continue;
        }
        let numbers: Vec<f64> =
            words[1..].iter().map(|word| word.parse().expect("a number")).collect();
        // The first sample after the event; ACKs and drops are a millisecond apart.
        let sample = (numbers[0] * 1e3 / STEP_MS).ceil() as usize;
        if words[0] == "drop" {
            // A packet's fate at the second link is booked when it joins the first, where the burst
            // after the first time-out waits for 4 ms.
            let before = if (3.055..3.057).contains(&numbers[0]) { 60 } else { 4 };
            assert!(series.lost_packets[sample - before] <= drops, "{line}");
            drops += 1;
            assert!(series.lost_packets[sample] >= drops, "{line}");
        } else {
            let (cwnd, ssthresh) = (series.cwnd_packets[sample], series.ssthresh_packets[sample]);
            // ns-2 prints six digits; we keep whole bytes.
            assert!((cwnd - numbers[1]).abs() < 2e-3, "{line}: our window is {cwnd}");
            assert!((ssthresh - numbers[2]).abs() < 2e-3, "{line}: our threshold is {ssthresh}");
            let rtt = series.rtt_ms[sample];
            assert!((rtt - numbers[3] / 10.0).abs() < 1e-9, "{line}: our RTT is {rtt}");
        }
        compared += 1;
    }
    assert!(drops > 60 && compared > 120, "{drops} drops among {compared} events");
}

/// The means of ns-2 over 30 runs (docs/results/peers.md, "remy"): throughput, wait, p.
#[test]
fn four_flows_are_ns2s_on_the_average() {
    let on_off = "traffic = { kind = \"on_off\", mean_bytes = 10e6, mean_off_s = 0.5 }\n";
    for (traffic, mbps, wait_ms, ratio) in
        [("", 2.300, 17.36, 1.45e-3), (on_off, 2.311, 16.60, 1.49e-3)]
    {
        let flows = format!("count = 4\nstart_spread_s = 1\n{traffic}");
        let (ours, wait, p) = summary(&runs(&remy(50, &flows), 24));
        println!("{traffic:?}: {ours:.4} Mb/s, wait {wait:.3} ms, p {p:.3e}");
        assert!(near(ours, mbps, 0.01), "{traffic:?}: {ours} Mb/s, ns-2 {mbps}");
        assert!(near(wait, wait_ms, 0.05), "{traffic:?}: {wait} ms, ns-2 {wait_ms}");
        assert!(near(p, ratio, 0.1), "{traffic:?}: {p}, ns-2 {ratio}");
    }
}

/// One SACK flow, 10 Mb/s, 150 ms, 1250 bytes on the wire, IW 2, every packet acknowledged.
fn sack(controller: &str, buffer: u32, loss: f64) -> String {
    format!(
        "duration_s = 400\n[dumbbell]\nrtt_ms = 150\n[dumbbell.bottleneck]\nrate_mbps = 10\n\
         queue = {{ kind = \"drop_tail\", packets = {buffer} }}\n\
         loss = {{ kind = \"bernoulli\", ratio = {loss} }}\n\
         [sender]\npacket_bytes = 1250\ninitial_cwnd_packets = 2\nack_every = 1\n\
         [[flow]]\ncontroller = \"{controller}\"\n"
    )
}

fn inside(controller: &str, buffer: u32, loss: f64, peers: &[f64]) {
    let seeds = if loss > 0.0 { 24 } else { 1 };
    let (ours, _, _) = summary(&runs(&sack(controller, buffer, loss), seeds));
    let low = peers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = peers.iter().copied().fold(0.0, f64::max);
    println!("{controller} L = {buffer}, loss {loss}: {ours:.4} in {low}..{high}");
    assert!(
        (0.97 * low..=1.03 * high).contains(&ours),
        "{controller}, L = {buffer}, loss {loss}: {ours} Mb/s, peers {low} to {high}"
    );
}

/// ns-2 NewReno with SACK and Linux Reno, ns-3 NewReno (SACK and PRR) and Linux Reno: all are Reno
/// with SACK, and none of these rows counts as a fault. Under loss of 1e-3 and 1e-2 means over
/// seeds, at 1e-4 medians.
#[test]
fn newreno_with_sack_lies_between_ns2_and_ns3() {
    inside("new_reno", 5, 0.0, &[7.540, 7.525, 7.594, 7.661]);
    inside("new_reno", 50, 0.0, &[9.071, 9.153, 9.191, 9.219]);
    inside("new_reno", 150, 0.0, &[9.946, 9.973, 9.978, 9.974]);
    inside("new_reno", 150, 1e-4, &[7.911, 7.061, 7.969, 7.446]);
    inside("new_reno", 150, 1e-3, &[2.68, 2.65, 2.78, 2.95]);
    inside("new_reno", 150, 1e-2, &[0.774, 0.710, 0.837, 0.954]);
}

/// ns-2 Linux CUBIC, then ns-3 CUBIC. Neither ends slow start as Linux does today, so ours is
/// the one without HyStart.
/// ns-3.37's CUBIC has no Reno-friendly region, which the reference lists as a fault: it is the low end
/// of the interval at L = 5 and under random loss. Against ns-2 alone ours would be 21 % low at 1e-3;
/// docs/results/peers.md takes that difference apart (ns-2's beta is 0.8).
#[test]
fn cubic_lies_between_ns2_and_ns3() {
    inside("cubic_rfc9438", 5, 0.0, &[8.580, 7.734]);
    inside("cubic_rfc9438", 50, 0.0, &[9.977, 9.932]);
    inside("cubic_rfc9438", 150, 0.0, &[9.935, 9.971]);
    inside("cubic_rfc9438", 150, 1e-4, &[9.935, 9.900]);
    inside("cubic_rfc9438", 150, 1e-3, &[4.45, 3.63]);
    inside("cubic_rfc9438", 150, 1e-2, &[0.964, 0.711]);
}

/// ns-2.35 as above with `delack=1`: the SYN is acknowledged at once, every other packet by itself only
/// after 100 ms.
const NS2_DELAYED: [(u32, f64, u64, u64, u64); 3] =
    [(5, 7.2967, 289_624, 19, 1), (50, 8.7180, 346_434, 121, 2), (150, 9.8650, 392_202, 155, 1)];

#[test]
fn with_delayed_acknowledgements_a_newreno_flow_is_ns2s() {
    for (buffer, mbps, sent, drops, timeouts) in NS2_DELAYED {
        let sender = "sender = { ack_every = 2, ack_delay_ms = 100 }";
        let flow = &runs(&remy(buffer, sender), 1)[0].flows[0];
        println!("L = {buffer}: {} Mb/s, {flow:?}", throughput_mbps(flow));
        assert!(near(throughput_mbps(flow), mbps, 0.002), "L = {buffer}: {flow:?}");
        assert!(flow.sent_packets.abs_diff(sent) <= sent / 1000, "L = {buffer}: {flow:?}");
        assert!(flow.queue_drops.abs_diff(drops) <= 2, "L = {buffer}: {flow:?}");
        assert_eq!(flow.timeouts, timeouts, "L = {buffer}: {flow:?}");
    }
}

#[test]
fn a_syn_is_acknowledged_at_once_where_other_packets_wait() {
    let text = remy(50, "sender = { ack_every = 2, ack_delay_ms = 100 }").replace("400", "2");
    let series = &runs(&format!("sample_interval_ms = 1\n{text}"), 1)[0].flow_series;
    let first = series.rtt_ms.iter().position(|rtt| !rtt.is_nan()).expect("a sample");
    // ns-2's first ACK comes at 0.1500768 s.
    assert!((series.time_s[first] - 0.151).abs() < 1e-9, "at {} s", series.time_s[first]);
}

/// ns-2's NewReno over RED, mean of eight seeds: `ns dumbbell.tcl queue=RED buffer=150 red_min=MIN
/// red_max=MAX duration=200 flows=FLOWS spread=1 seed=1..8`, that is with gentle_ 1 and wait_ 0. The
/// sender is ns-2's to the packet, so what differs is the queue.
#[test]
fn red_drops_as_often_as_ns2s() {
    for (flows, min, max, mbps, wait_ms, ratio) in
        [(1, 10, 30, 7.181, 2.190, 1.74e-3), (4, 20, 60, 2.165, 9.803, 3.50e-3)]
    {
        let red = format!(
            "kind = \"red\", min_packets = {min}, max_packets = {max}, max_ratio = 0.1, \
             weight = 0.002, packets = 150"
        );
        let text = remy(150, &format!("count = {flows}\nstart_spread_s = 1\n"))
            .replace("kind = \"drop_tail\", packets = 150", &red)
            .replace("duration_s = 400", "duration_s = 200");
        let (ours, wait, p) = summary(&runs(&text, 16));
        println!("{flows} flows: {ours:.3} Mb/s, wait {wait:.3} ms, p {p:.3e}");
        assert!(near(ours, mbps, 0.03), "{flows} flows: {ours} Mb/s, ns-2 {mbps}");
        assert!(near(wait, wait_ms, 0.05), "{flows} flows: {wait} ms, ns-2 {wait_ms}");
        assert!(near(p, ratio, 0.1), "{flows} flows: {p}, ns-2 {ratio}");
    }
}
