//! Writes into a bounded send buffer, and the handshake before them.
use super::*;

/// Writes of 1000 bytes every 10 ms (0.8 Mb/s) into a buffer of 10 000 bytes.
fn writes(rate_mbps: f64, sender: &str) -> Outcome {
    outcome(&dumbbell(
        &format!("rate_mbps = {rate_mbps}"),
        &format!(
            "traffic = {{ kind = \"writes\", count = 100, write_bytes = 1000, interval_ms = 10, \
             send_buffer_bytes = 10000 }}\nsender = {{ {sender} }}"
        ),
    ))
}

#[test]
fn what_a_full_send_buffer_refuses_is_gone_and_the_rest_is_delivered() {
    let slow = &writes(0.4, "").flows[0];
    assert_eq!(slow.offered_writes, 100);
    // Half of what is offered fits the link; the buffer's 10 writes come on top.
    assert!((35..50).contains(&slow.refused_writes), "{slow:?}");
    assert_eq!(slow.goodput_bytes, 1000 * (100 - slow.refused_writes));
    assert_eq!((slow.transfers, slow.dropped_packets), (1, 0));
}

#[test]
fn a_link_faster_than_the_writes_refuses_none() {
    let fast = &writes(10.0, "").flows[0];
    assert_eq!((fast.refused_writes, fast.goodput_bytes), (0, 100_000));
}

#[test]
fn the_send_buffer_keeps_what_is_sent_and_not_acknowledged() {
    // 200 ms of propagation hold 20 writes, the buffer 10: every second one finds it full.
    let text = dumbbell(
        "rate_mbps = 100",
        "traffic = { kind = \"writes\", count = 100, write_bytes = 1000, interval_ms = 10, \
         send_buffer_bytes = 10000 }\nsender = { ack_every = 1 }",
    )
    .replace("rtt_ms = 20", "rtt_ms = 200");
    let refused = outcome(&text).flows[0].refused_writes;
    assert!((40..=50).contains(&refused), "{refused}");
}

#[test]
fn a_handshake_holds_data_back_for_one_round_trip_of_empty_packets() {
    let first_rtt = |sender: &str| {
        let text = dumbbell(
            "rate_mbps = 1",
            &format!("traffic = {{ kind = \"fixed\", bytes = 10 }}\n{sender}"),
        );
        let flow = outcome(&text).flows.swap_remove(0);
        flow.fct_mean_ms
    };
    let ack = "ack_bytes = 50, ack_every = 1";
    let plain = first_rtt(&format!("sender = {{ {ack} }}"));
    let shaken = first_rtt(&format!("sender = {{ {ack}, handshake = true }}"));
    // 20 ms of propagation and twice 0.4 ms for 50 bytes at 1 Mb/s.
    assert!((shaken - plain - 20.8).abs() < 1e-6, "{plain} {shaken}");
}

/// Ten packets and their acknowledgements, 45 ms away at 60 Mb/s.
fn largest_rtt(sender: &str) -> f64 {
    let text = dumbbell(
        "rate_mbps = 60",
        &format!("traffic = {{ kind = \"fixed\", bytes = 14480 }}\nsender = {{ {sender} }}"),
    );
    outcome(&text.replace("rtt_ms = 20", "rtt_ms = 45")).flows[0].rtt_max_ms
}

#[test]
fn quick_acknowledgements_keep_the_delay_of_the_receiver_out_of_the_first_samples() {
    let delayed = largest_rtt("handshake = true");
    assert!((85.0..88.0).contains(&delayed), "the tenth packet waits for a second: {delayed}");
    let quick = largest_rtt("handshake = true, quick_acks = 16");
    assert!((45.0..48.0).contains(&quick), "{quick}");
}

/// What a frozen policy reaches on 60 Mb/s, Mb/s.
fn throughput_of_drinc(sender: &str) -> f64 {
    let flow = "controller = \"tcp_drinc\"\nparams = { policy = \"policies/tcp_drinc\" }";
    let text = dumbbell(
        "rate_mbps = 60\nqueue = { kind = \"drop_tail\", bdp = 1.5 }",
        &format!("{flow}\nsender = {{ {sender} }}"),
    );
    let text = text.replace("rtt_ms = 20", "rtt_ms = 45");
    let mut load = |name: &str, _| {
        let path = format!("{}/../../data/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(path).map_err(|error| error.to_string())
    };
    let scenario = Scenario::parse_with(&text, "test", &[], &mut load).expect("valid");
    let outcome = run(&scenario.network, Seed(1)).expect("built-in controllers");
    outcome.flows[0].delivered_bytes as f64 * 8e-6 / outcome.flows[0].active_s
}

#[test]
fn behind_a_handshake_and_quick_acknowledgements_no_delayed_one_ends_a_policys_slow_start() {
    assert!(throughput_of_drinc("handshake = true, quick_acks = 16") > 0.9 * 60.0);
}
