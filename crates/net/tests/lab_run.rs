//! Scenario files on this machine's TCP. Needs root, TUN and BPF `struct_ops`.
use crate::common::lab::{column, layout, machine, number, run, share, simulated};
use crate::common::machine::{best_of, has_iperf3, kept};
use serde_json::Value;

/// 10 Mb/s and 20 ms with `seconds` of the given flows.
fn dumbbell(seconds: u32, flows: &str) -> String {
    format!(
        "duration_s = {seconds}\nsample_interval_ms = 100\n[dumbbell]\nrtt_ms = 20\n\
         [dumbbell.bottleneck]\nrate_mbps = 10\nqueue = {{ kind = \"drop_tail\", bdp = 2 }}\n{flows}"
    )
}

/// A run of which nothing was late: a busy machine makes some invalid.
fn valid_run(words: &[&str], scenario: &str) -> Value {
    let mut valid = None;
    best_of(|| {
        let result = run(words, scenario);
        let why = result["why_invalid"].to_string();
        let is_valid = result["why_invalid"] == "";
        valid = Some(result);
        kept(is_valid, || why)
    });
    valid.expect("the last attempt's")
}

#[test]
fn new_reno_from_user_space_fills_the_link() {
    let Some(_machine) = machine() else { return };
    best_of(|| {
        let result = run(&["--cc", "new_reno"], &dumbbell(5, "[[flow]]\n"));
        let rtt_min = number(&result, 0, "rtt_min_ms");
        assert!(rtt_min >= 20.0, "the path has 20 ms, the flow saw {rtt_min}");
        let served = &result["agent"]["flows"][0];
        assert!(
            served["decisions"].as_u64() > Some(100),
            "it was the controller's doing: {served}"
        );
        kept(share(&result, 0, 10.0) > 0.85 && rtt_min < 21.5, || {
            result["tables"]["flows"].to_string()
        })
    });
}

#[test]
fn ours_and_the_kernel_s_own_share_a_run() {
    let Some(_machine) = machine() else { return };
    let flows = "[[flow]]\nname = \"ours\"\ncontroller = \"cubic\"\n\
                 [[flow]]\nname = \"kernel\"\ncontroller = \"kernel:cubic\"\n";
    let result = run(&[], &dumbbell(5, flows));
    let shares = [share(&result, 0, 10.0), share(&result, 1, 10.0)];
    assert!(shares.iter().sum::<f64>() > 0.85, "{shares:?}");
    assert!(shares.iter().all(|&share| share > 0.1), "{shares:?}");
    let served = result["agent"]["flows"].as_array().expect("a list");
    assert_eq!(served.len(), 1, "the kernel's own asks nobody");
    assert_eq!(served[0]["flow"], "ours");
}

#[test]
fn a_fixed_transfer_arrives_whole_over_ipv6() {
    let Some(_machine) = machine() else { return };
    let flows = "[[flow]]\ntraffic = { kind = \"fixed\", bytes = 1_000_001 }\n";
    let result = valid_run(&["--ipv6"], &dumbbell(3, flows));
    assert!((number(&result, 0, "goodput_bytes") - 1_000_001.0).abs() < 0.5);
    assert!((number(&result, 0, "transfers") - 1.0).abs() < 0.5);
    let fct_ms = number(&result, 0, "fct_mean_ms");
    assert!(fct_ms >= 800.0, "a megabyte takes 0.8 s at least, not {fct_ms} ms");
}

#[test]
fn applications_offer_what_the_simulator_s_would() {
    let Some(_machine) = machine() else { return };
    let flows = "[[flow]]\nname = \"once\"\ncount = 3\n\
                 traffic = { kind = \"on_off\", mean_bytes = 2e4, mean_off_s = 1e4 }\n\
                 [[flow]]\nname = \"many\"\n\
                 traffic = { kind = \"poisson\", per_s = 8, mean_bytes = 2e4 }\nstop_s = 1.5\n";
    let scenario = dumbbell(3, flows);
    let result = valid_run(&["--seed", "7"], &scenario);
    let simulated = simulated(&scenario, 7).flows;
    assert_eq!(column(&result, "flows", "flow").len(), simulated.len());
    let mut min_late_s = f64::INFINITY;
    for (index, row) in simulated.iter().enumerate() {
        assert_eq!(column(&result, "flows", "flow")[index], row.flow.as_str());
        let bytes = number(&result, index, "goodput_bytes");
        assert!((bytes - row.goodput_bytes as f64).abs() < 0.5, "{}: {bytes} bytes", row.flow);
        let late_s = number(&result, index, "start_s") - row.start_s;
        assert!(late_s >= 0.0, "{}: {late_s} s after the simulator's", row.flow);
        min_late_s = min_late_s.min(late_s);
    }
    assert!(min_late_s < 0.5, "not even one on time: {min_late_s} s");
}

#[test]
fn a_parking_lot_has_hosts_for_every_path() {
    let Some(_machine) = machine() else { return };
    let scenario = "duration_s = 3\n[parking_lot]\nhops = 2\n\
                    [parking_lot.bottleneck]\nrate_mbps = 10\ndelay_ms = 5\n\
                    queue = { kind = \"drop_tail\", packets = 30 }\n\
                    [[flow]]\nname = \"long\"\n[[flow]]\nname = \"first\"\nroute = [0, 0]\n\
                    [[flow]]\nname = \"noise\"\nroute = [1, 1]\n\
                    traffic = { kind = \"cbr\", rate_mbps = 2, packet_bytes = 500 }\n";
    let result = valid_run(&[], scenario);
    for (flow, (min, rtt)) in [(0.02, 20.0), (0.3, 10.0)].into_iter().enumerate() {
        assert!(share(&result, flow, 10.0) > min, "{}", result["tables"]["flows"]);
        assert!((rtt..rtt + 3.0).contains(&number(&result, flow, "rtt_min_ms")), "flow {flow}");
    }
    let sent = number(&result, 2, "sent_packets");
    assert!((1490.0..=1501.0).contains(&sent), "2 Mb/s of 500 bytes for 3 s, not {sent} packets");
}

#[test]
fn records_have_the_simulator_s_columns_and_no_other() {
    let Some(_machine) = machine() else { return };
    let scenario = dumbbell(1, "[[flow]]\ncontroller = \"rl_tcp\"\n");
    let result = run(&[], &scenario);
    let expected = layout(simulated(&scenario, 1));
    let tables = result["tables"].as_object().expect("an object");
    let count: usize =
        tables.values().map(|table| table.as_object().map_or(0, serde_json::Map::len)).sum();
    assert_eq!(count, expected.len());
    for (table, name, is_text) in expected {
        let values = column(&result, &table, &name);
        assert!(!values.is_empty(), "{table}.{name} has rows");
        assert!(values.iter().all(|value| value.is_string() == is_text), "{table}.{name}");
    }
    let rows = simulated(&scenario, 1).flow_series.time_s.len();
    assert_eq!(column(&result, "flow_series", "time_s").len(), rows);
}

#[test]
fn iperf3_sends_bulk_flows_if_asked() {
    let Some(_machine) = machine() else { return };
    if !has_iperf3() {
        return;
    }
    let flows = "[[flow]]\ncount = 2\ncontroller = \"cubic\"\n\
                 [[flow]]\ntraffic = { kind = \"fixed\", bytes = 100_000 }\n";
    let result = valid_run(&["--client", "iperf3", "--ipv6"], &dumbbell(3, flows));
    let shares = [share(&result, 0, 10.0), share(&result, 1, 10.0)];
    assert!(shares.iter().sum::<f64>() > 0.6, "{}", result["tables"]["flows"]);
    assert!((number(&result, 2, "goodput_bytes") - 100_000.0).abs() < 0.5, "that one is ours");
    let governed = result["agent"]["flows"].as_array().map_or(0, Vec::len);
    assert_eq!(governed, 3, "iperf3's data connections are under our controller");
}

#[test]
fn iperf3_receives_no_more_than_the_link_carries() {
    let Some(_machine) = machine() else { return };
    if !has_iperf3() {
        return;
    }
    // What the queue holds when the sender stops arrives within half a second more.
    let queue = "dumbbell.bottleneck.queue={ kind = \"drop_tail\", packets = 400 }";
    let flow = dumbbell(3, "[[flow]]\ncontroller = \"kernel:cubic\"\n");
    let result = valid_run(&["--client", "iperf3", "--set", queue], &flow);
    let share = share(&result, 0, 10.0);
    assert!((0.8..1.01).contains(&share), "{share} of the link");
}

#[test]
fn the_receiver_acknowledges_each_packet_if_asked() {
    let Some(_machine) = machine() else { return };
    let acks_per_packet = |fields: &str| {
        let flow = format!("[[flow]]\nsender = {{ {fields} }}\n");
        let result = run(&[], &dumbbell(3, &flow));
        let packets = column(&result, "links", "delivered_packets");
        let [data, acks] = [&packets[0], &packets[1]].map(|count| count.as_f64().expect("a count"));
        acks / data
    };
    assert!(acks_per_packet("ack_every = 1") > 0.95);
    assert!(acks_per_packet("ack_every = 2") < 0.75);
}

/// The scenario names a policy by its path, and the forest's send hook acts on the kernel's flows.
#[test]
fn a_learned_send_hook_holds_packets_on_the_wire() {
    let Some(_machine) = machine() else { return };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/scenarios/wire");
    let text = std::fs::read_to_string(format!("{folder}/case1_clean.toml")).expect("a file");
    let result = run(&["--beside", folder, "--set", "duration_s=6"], &text);
    let capacity = share(&result, 0, 5.0) + share(&result, 1, 5.0);
    let capacity = capacity + share(&result, 2, 5.0) + share(&result, 3, 5.0);
    assert!(capacity > 0.85, "{capacity} of the link");
    let counter = |name: &str| -> f64 {
        let rows = column(&result, "counters", "name").iter();
        let values = rows.zip(column(&result, "counters", "value"));
        values.filter(|row| row.0 == name).filter_map(|row| row.1.as_f64()).sum()
    };
    assert!(counter("held") > 10.0, "{}", result["tables"]["counters"]);
    // A packet that is held is asked about again; one that leaves with a loss's record is not. The
    // tolerance is for these and for records that stand for several acknowledgements.
    let sent: f64 = (0..4).map(|flow| number(&result, flow, "sent_packets")).sum();
    let told = counter("send_hook_calls") / (sent + counter("held"));
    assert!((0.9..=1.2).contains(&told), "{told} questions for each of {sent} packets sent");
    assert_eq!(result["agent"]["interval_ms"], 0.0, "every acknowledgement is told");
    for served in result["agent"]["flows"].as_array().expect("a list") {
        assert_eq!(served["fallbacks"], 0, "{served}");
    }
}
