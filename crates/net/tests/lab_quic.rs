//! Scenario files on QUIC in namespaces, beside the same in virtual time. Needs root, TUN and namespaces.
use crate::common::lab::{column, layout, machine, number, output, run, share, simulated};
use crate::common::machine::{best_of, kept};
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;

/// 10 Mb/s and 30 ms with `seconds` of the given flows.
fn dumbbell(seconds: u32, more: &str, flows: &str) -> String {
    format!(
        "duration_s = {seconds}\nsample_interval_ms = 100\n[dumbbell]\nrtt_ms = 30\n\
         [dumbbell.bottleneck]\nrate_mbps = 10\nqueue = {{ kind = \"drop_tail\", bdp = 2 }}\n{more}\n{flows}"
    )
}

#[test]
fn throughput_and_losses_are_those_of_virtual_time() {
    let Some(_machine) = machine() else { return };
    for cc in ["cubic", "noq:new_reno", "quinn:cubic", "own_queue"] {
        let flow = format!("[[flow]]\ncontroller = {cc:?}\n");
        let text = dumbbell(6, "", &flow);
        best_of(|| {
            let result = run(&["--over", "quic"], &text);
            let scenario = Scenario::parse(&text, "test").expect("a scenario");
            let outcome = ackademy_quic::virtual_time::run(&scenario.network, Seed(1));
            let virtual_time = &outcome.expect("a run").flows[0];
            let expected = virtual_time.delivered_bytes as f64;
            let apart = number(&result, 0, "delivered_bytes") / expected - 1.0;
            assert!(number(&result, 0, "rtt_min_ms") >= 30.0, "{cc}: the path has 30 ms");
            assert_eq!(result["agent"], serde_json::Value::Null, "{cc} is in this process");
            let lost = number(&result, 0, "dropped_packets") as u64;
            let is_lossy = lost.abs_diff(virtual_time.dropped_packets) > 10 + lost / 5;
            kept(apart.abs() < 0.03 && !is_lossy, || {
                format!(
                    "{cc}: {apart:.3}, {lost} drops, {}: {}",
                    virtual_time.dropped_packets, result["why_invalid"]
                )
            })
        });
    }
}

#[test]
fn tables_have_the_simulator_s_columns_and_every_kind_of_traffic_runs() {
    let Some(_machine) = machine() else { return };
    let flows = "[[flow]]\nname = \"once\"\ntraffic = { kind = \"fixed\", bytes = 200_001 }\n\
                 [[flow]]\nname = \"many\"\ntraffic = { kind = \"poisson\", per_s = 4, mean_bytes = 2e4 }\nstop_s = 1.5\n\
                 [[flow]]\nname = \"marked\"\nsender = { ecn = \"classic\" }\nstart_s = 1\n";
    let text = dumbbell(4, "", flows);
    best_of(|| {
        let result = run(&["--over", "quic", "--seed", "7"], &text);
        let simulated = simulated(&text, 7);
        let names: Vec<&str> = simulated.flows.iter().map(|row| row.flow.as_str()).collect();
        let found: Vec<&str> =
            column(&result, "flows", "flow").iter().filter_map(|one| one.as_str()).collect();
        assert_eq!(found, names, "the same arrivals as in the simulator");
        for (table, name, _) in layout(simulated) {
            assert!(result["tables"][&table][&name].is_array(), "{table}.{name}");
        }
        assert!((number(&result, 0, "goodput_bytes") - 200_001.0).abs() < 0.5);
        assert!((number(&result, 0, "transfers") - 1.0).abs() < 0.5);
        let sent = number(&result, 0, "sent_packets");
        let arrived =
            number(&result, 0, "received_packets") + number(&result, 0, "dropped_packets");
        let marked = found.len() - 1;
        kept((sent - arrived).abs() < 0.5 && share(&result, marked, 10.0) > 0.5, || {
            result["tables"]["flows"].to_string()
        })
    });
}

#[test]
fn two_paths_carry_one_connection() {
    let Some(_machine) = machine() else { return };
    let text = "duration_s = 4\n[two_path.first]\nrate_mbps = 8\ndelay_ms = 10\n[two_path.second]\nrate_mbps = 4\n\
                delay_ms = 20\n[[flow]]\nname = \"both\"\ncontroller = \"lia\"\nmultipath = true\n";
    best_of(|| {
        let result = run(&["--over", "quic"], text);
        let shares = [share(&result, 0, 8.0), share(&result, 1, 4.0)];
        kept(shares.iter().all(|&share| share > 0.5), || {
            format!("{shares:?}: {}", result["why_invalid"])
        })
    });
}

#[test]
fn what_quic_cannot_do_is_refused_before_hosts_are_made() {
    let Some(_machine) = machine() else { return };
    for (words, flow, says) in [
        (&[][..], "[[flow]]\ncontroller = \"kernel:cubic\"\n", "allowed with QUIC is a controller"),
        (&[], "[[flow]]\nsender = { packet_bytes = 600 }\n", "packet_bytes = 600"),
        (&["--ipv6"], "[[flow]]\n", "allowed with --over quic is IPv4"),
        (&["--client", "iperf3"], "[[flow]]\n", "allowed with --over tcp"),
    ] {
        let (_, refused) =
            output(&[&["run", "-", "--over", "quic"], words].concat(), &dumbbell(1, "", flow));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
