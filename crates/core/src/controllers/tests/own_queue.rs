use crate::controllers::test_support::{run, simulated};

fn alone(rate_mbps: f64, rtt_ms: f64, buffer_bdp: f64, loss: f64) -> (f64, f64) {
    let text = format!(
        "duration_s = 30\n[dumbbell]\nrtt_ms = {rtt_ms}\n[dumbbell.bottleneck]\nrate_mbps = {rate_mbps}\n\
         queue = {{ kind = \"drop_tail\", bdp = {buffer_bdp} }}\n\
         loss = {{ kind = \"bernoulli\", ratio = {loss} }}\n[[flow]]\ncontroller = \"own_queue\"\n"
    );
    simulated(&text)[0]
}

#[test]
fn a_flow_alone_fills_the_link_and_not_the_buffer() {
    let (mbps, rtt_ms) = alone(10.0, 40.0, 4.0, 0.0);
    assert!(mbps > 9.3, "{mbps}"); // payload: 9.7 at most
    assert!(rtt_ms < 48.0, "{rtt_ms}");
}

#[test]
fn random_loss_of_five_percent_leaves_most_of_the_link() {
    let (mbps, _) = alone(20.0, 40.0, 4.0, 0.05);
    assert!(mbps > 0.9 * 20.0 * 0.95 * 0.97, "{mbps}");
}

#[test]
fn random_loss_of_five_percent_leaves_most_of_a_link_that_jitters_too() {
    let goodput = |seed: u64| {
        let text = "duration_s = 30\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 20\n\
                    jitter_ms = 0.1\nqueue = { kind = \"drop_tail\", bdp = 1 }\n\
                    loss = { kind = \"bernoulli\", ratio = 0.05 }\n[[flow]]\ncontroller = \"own_queue\"\n";
        run(text, seed).0.flows[0].goodput_bytes as f64 * 8e-6 / 30.0
    };
    let mean = (1..=4).map(goodput).sum::<f64>() / 4.0;
    assert!(mean > 0.8 * 20.0 * 0.95 * 0.97, "{mean}");
}

#[test]
fn behind_a_policer_whose_bucket_holds_many_windows_few_packets_are_lost() {
    for rtt_ms in [10, 30] {
        let text = format!(
            "duration_s = 40\n[dumbbell]\nrtt_ms = {rtt_ms}\n[dumbbell.bottleneck]\nrate_mbps = 100\n\
             queue = {{ kind = \"drop_tail\", bdp = 1 }}\npolicer = {{ rate_mbps = 10, burst_bytes = 100_000 }}\n\
             [[flow]]\ncontroller = \"own_queue\"\n"
        );
        let flow = run(&text, 1).0.flows[0].clone();
        let mbps = flow.goodput_bytes as f64 * 8e-6 / 40.0;
        let lost = flow.dropped_packets as f64 / flow.sent_packets as f64;
        assert!(mbps > 9.0 && lost < 0.03, "{rtt_ms} ms: {mbps} Mb/s, {lost} lost");
    }
}

#[test]
fn jitter_is_not_taken_for_a_queue() {
    for jitter_ms in [0.2, 0.5, 1.0, 2.0] {
        let text = format!(
            "duration_s = 30\n[dumbbell]\nrtt_ms = 20\n[dumbbell.bottleneck]\nrate_mbps = 100\n\
             jitter_ms = {jitter_ms}\nqueue = {{ kind = \"drop_tail\", bdp = 0.5 }}\n\
             [[flow]]\ncontroller = \"own_queue\"\n"
        );
        let (mbps, _) = simulated(&text)[0];
        assert!(mbps > 70.0, "{mbps} at {jitter_ms} ms");
    }
}

#[test]
fn a_flow_that_comes_late_gets_its_half() {
    let text = "duration_s = 60\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 20\n\
                queue = { kind = \"drop_tail\", bdp = 2 }\n[[flow]]\ncontroller = \"own_queue\"\n\
                [[flow]]\ncontroller = \"own_queue\"\nstart_s = 20\n";
    let flows = simulated(text);
    // 20 s alone and 40 s of a half, or 40 s of a half.
    let expected = [(20.0 + 20.0) / 60.0, 20.0 / 60.0].map(|part| part * 20.0 * 0.97);
    for (flow, expected) in flows.iter().zip(expected) {
        assert!((flow.0 / expected - 1.0).abs() < 0.1, "{} not {expected}", flow.0);
    }
}

/// Goodput of two flows over the last 30 s of 60, of a scenario of so many seconds.
fn shares(text_of: impl Fn(f64) -> String) -> (f64, f64) {
    let [long, short] = [60.0, 30.0].map(|seconds| {
        let flows = simulated(&text_of(seconds));
        [flows[0].0 * seconds, flows[1].0 * seconds]
    });
    ((long[0] - short[0]) / 30.0, (long[1] - short[1]) / 30.0)
}

#[test]
fn round_trips_of_20_and_200_ms_share_fairly_after_30_s() {
    let (short, long) = shares(|seconds| {
        format!(
            "duration_s = {seconds}\n[[link]]\nname = \"b\"\nrate_mbps = 100\ndelay_ms = 1\n\
             queue = {{ kind = \"drop_tail\", packets = 1666 }}\n\
             [[link]]\nname = \"s\"\nrate_mbps = 100000\ndelay_ms = 9\n\
             [[link]]\nname = \"s_back\"\nrate_mbps = 100000\ndelay_ms = 10\n\
             [[link]]\nname = \"l\"\nrate_mbps = 100000\ndelay_ms = 99\n\
             [[link]]\nname = \"l_back\"\nrate_mbps = 100000\ndelay_ms = 100\n\
             [[flow]]\ncontroller = \"own_queue\"\npath = [\"b\", \"s\"]\nreverse = [\"s_back\"]\n\
             [[flow]]\ncontroller = \"own_queue\"\npath = [\"b\", \"l\"]\nreverse = [\"l_back\"]\n"
        )
    });
    let jain = (short + long) * (short + long) / (2.0 * (short * short + long * long));
    assert!(jain > 0.92 && short + long > 88.0, "{short} and {long} Mb/s");
}

/// Share of 50 Mb/s and ratio dropped, with a queue of so many packets and 40 ms.
fn shallow(flows: u32, packets: u32) -> (f64, f64) {
    let text = format!(
        "duration_s = 60\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 50\n\
         queue = {{ kind = \"drop_tail\", packets = {packets} }}\n\
         [[flow]]\ncontroller = \"own_queue\"\ncount = {flows}\nstart_step_s = 0.5\n"
    );
    let link = run(&text, 1).0.links[0].clone();
    (
        link.delivered_bytes as f64 / link.capacity_bytes as f64,
        link.queue_drops as f64 / link.arrived_packets as f64,
    )
}

#[test]
fn buffers_too_short_for_the_target_cost_little_loss_and_little_of_the_link() {
    for (flows, packets) in [(1, 4), (1, 6), (1, 10), (7, 17)] {
        let (used, dropped) = shallow(flows, packets);
        assert!(
            used > 0.85 && dropped < 0.03,
            "{flows} flows, {packets} packets: {used}, {dropped}"
        );
    }
}

#[test]
fn after_its_start_a_flow_uses_the_link_without_a_gap_but_for_its_drains() {
    let text = "duration_s = 10\nsample_interval_ms = 250\n[dumbbell]\nrtt_ms = 124\n[dumbbell.bottleneck]\n\
                rate_mbps = 57\nqueue = { kind = \"drop_tail\", bdp = 4 }\n\
                [[flow]]\ncontroller = \"own_queue\"\n";
    let series = run(text, 1).0.flow_series;
    let bytes = &series.delivered_bytes;
    let whole = 57e6 / 8.0 * 0.25;
    let parts = bytes.windows(2).skip(4).map(|two| (two[1] - two[0]) as f64 / whole);
    let parts = parts.collect::<Vec<_>>();
    // Two drains are due in this time, and each may show in two samples.
    let short = parts.iter().filter(|part| **part < 0.9).count();
    assert!(parts.len() >= 32 && short <= 4, "{parts:?}");
    assert!(parts.iter().all(|part| *part > 0.7), "{parts:?}");
}

/// Jain's index of eight flows of which one comes every 0.2 s, over the time from `from_s` to 60 s.
fn jain_of_eight(from_s: f64) -> f64 {
    let bytes = |seconds: f64| {
        let text = format!(
            "duration_s = {seconds}\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 50\n\
             queue = {{ kind = \"drop_tail\", bdp = 2 }}\n\
             [[flow]]\ncontroller = \"own_queue\"\ncount = 8\nstart_step_s = 0.2\n"
        );
        simulated(&text).iter().map(|flow| flow.0 * seconds).collect::<Vec<_>>()
    };
    let (late, early) = (bytes(60.0), bytes(from_s));
    let parts = late.iter().zip(early).map(|(late, early)| late - early);
    let (sum, squares) = parts.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (8.0 * squares)
}

#[test]
fn eight_flows_that_come_one_by_one_share_equally_after_their_first_drains() {
    let jain = jain_of_eight(20.0);
    assert!(jain > 0.995, "{jain}");
    // Before them the last to come hold most of the link: they take the queue that they meet for the path's.
    let jain = jain_of_eight(2.0);
    assert!(jain > 0.9, "{jain}");
}
