//! Fields that few links and senders have.
use super::*;

/// The message for [`DUMBBELL`] with one more field of the bottleneck.
fn refused_link(field: &str) -> String {
    refused("rate_mbps = 10\n", &format!("rate_mbps = 10\n{field}\n"))
        .replace("s.toml:6: dumbbell.bottleneck.", "")
}

#[test]
fn settings_of_policers_lumps_and_retransmissions_are_within_their_ranges() {
    for (field, message) in [
        (
            "policer = { rate_mbps = 0, burst_bytes = 1 }",
            "policer.rate_mbps = 0: allowed is a number in [0.000001, 1000000]",
        ),
        (
            "policer = { rate_mbps = 1, burst_bytes = 0 }",
            "policer.burst_bytes = 0: allowed is a whole number in [1, 1099511627776]",
        ),
        (
            "aggregation = { low_ms = 0, high_ms = 1 }",
            "aggregation.low_ms = 0: allowed is a number in [0.001, 10000000]",
        ),
        (
            "aggregation = { low_ms = 2, high_ms = 1 }",
            "aggregation.high_ms = 1: allowed is a number in [2, 10000000]",
        ),
        (
            "retransmit = { ratio = 1.5, delay_ms = 1 }",
            "retransmit.ratio = 1.5: allowed is a number in [0, 1]",
        ),
        (
            "retransmit = { ratio = 0.5, delay_ms = 1, most = 1001 }",
            "retransmit.most = 1001: allowed is a whole number in [0, 1000]",
        ),
        ("forge_ce = -0.1", "forge_ce = -0.1: allowed is a number in [0, 1]"),
        (
            "ecn = \"bleach\"\nforge_ce = 0.1",
            "s.toml:7: dumbbell.bottleneck.forge_ce = 0.1: allowed is 0 beside ecn = \"bleach\", which \
             leaves no packet that may be marked",
        ),
        ("ecn = \"clear\"", "ecn = \"clear\": allowed is bleach"),
    ] {
        assert_eq!(refused_link(field), message, "{field}");
    }
}

#[test]
fn handovers_say_what_no_other_field_says() {
    let handover = "handover = { low_mbps = 5, high_mbps = 50, low_ms = 10, high_ms = 60 }";
    assert_eq!(
        refused_link(handover),
        "s.toml:5: dumbbell.bottleneck.rate_mbps = given: allowed is nothing beside handover, which has \
         rate, delay and outages"
    );
    let alone = |fields: &str| refused("rate_mbps = 10", &handover.replace("low_mbps = 5", fields));
    assert_eq!(
        alone("low_mbps = 60"),
        "s.toml:5: dumbbell.bottleneck.handover.high_mbps = 50: allowed is a number in [60, 1000000]"
    );
    assert_eq!(
        alone("low_mbps = 5, every_s = 0"),
        "s.toml:5: dumbbell.bottleneck.handover.every_s = 0: allowed is a number in [0.001, 100000000]"
    );
    assert_eq!(
        alone("low_mbps = 5, outage_ms = 15000"),
        "s.toml:5: dumbbell.bottleneck.handover.outage_ms = 15000: allowed is a number in [0, 14985]"
    );
    for (fields, message) in [
        ("loss = 2", "handover.loss = 2: allowed is a number in [0, 1]"),
        (
            "loss = 1, loss_ms = 15000",
            "handover.loss_ms = 15000: allowed is a number in [0, 14985]",
        ),
        ("rate_spread = 0.1", "handover.rate_spread = 0.1: allowed is 0 without step_ms"),
        (
            "step_ms = 100, delay_spread = 1",
            "handover.delay_spread = 1: allowed is a number in [0, 0.99]",
        ),
        ("step_ms = 0", "handover.step_ms = 0: allowed is a number in [1, 10000000]"),
    ] {
        let found = alone(&format!("low_mbps = 5, {fields}"));
        assert_eq!(found.replace("s.toml:5: dumbbell.bottleneck.", ""), message, "{fields}");
    }
    let lossy = handover.replace("high_ms = 60", "high_ms = 60, loss = 0.1");
    let beside = |loss: &str| refused("rate_mbps = 10", &format!("{lossy}\n{loss}"));
    assert_eq!(
        beside("loss = { kind = \"gilbert_elliott\", good_to_bad = 0.1, bad_to_good = 0.1 }"),
        "s.toml:6: dumbbell.bottleneck.loss = given: allowed is absent, or bernoulli at all times, beside \
         handover.loss"
    );
    assert_eq!(
        beside("loss_schedule = [[0, 0.1]]"),
        "s.toml:6: dumbbell.bottleneck.loss_schedule = given: allowed is absent beside handover.loss"
    );
}

#[test]
fn what_few_links_have_is_not_written_for_the_others() {
    let text = Scenario::parse(DUMBBELL, "s.toml").unwrap().resolved();
    for field in ["policer", "aggregation", "retransmit", "ecn", "forge_ce", "handover", "until_s"]
    {
        assert!(!text.contains(field), "{field}: {text}");
    }
}

#[test]
fn a_fault_in_an_option_of_a_receiver_that_misbehaves_is_found_there() {
    assert_eq!(
        refused("controller", "sender = { divide_acks = 0 }\ncontroller"),
        "s.toml:8: flow[0].sender.divide_acks = 0: allowed is a whole number in [1, 1000]"
    );
    assert_eq!(
        refused("controller", "sender = { fuzz_records = 1.5 }\ncontroller"),
        "s.toml:8: flow[0].sender.fuzz_records = 1.5: allowed is a number in [0, 1]"
    );
    assert_eq!(
        refused("[[flow]]", "[sender]\noptimistic_acks = 2000000\n[[flow]]"),
        "s.toml:8: sender.optimistic_acks = 2000000: allowed is a whole number in [0, 1000000]"
    );
    assert_eq!(
        refused("controller", "sender = { recovery = \"ns2\", hide_marks = true }\ncontroller"),
        "s.toml:8: flow[0].sender.hide_marks = given: allowed is nothing with recovery = \"ns2\""
    );
}

#[test]
fn fields_of_dualpi2_are_named_as_those_of_other_queues() {
    let queue = |fields: &str| {
        let queue = format!("{{ kind = \"dualpi2\"{fields} }}");
        refused("{ kind = \"drop_tail\", packets = 50 }", &queue)
    };
    assert_eq!(
        queue(""),
        "s.toml:6: dumbbell.bottleneck.queue.packets = absent: allowed is a value: there is no default"
    );
    assert_eq!(
        queue(", packets = 100, target_ms = \"15\""),
        "s.toml:6: dumbbell.bottleneck.queue.target_ms = \"15\": allowed is a number"
    );
    let unknown = queue(", packets = 100, tarket = 15");
    let named = "s.toml:6: dumbbell.bottleneck.queue.tarket = 15: allowed is a field named ";
    assert!(unknown.starts_with(named), "{unknown}");
}

#[test]
fn a_whole_number_beyond_toml_in_a_field_of_fractions_is_refused_by_the_field() {
    let large = "duration_s = 9223372036854775808";
    assert_eq!(
        refused("duration_s = 10.0", large),
        "s.toml:1: duration_s = 9223372036854776000: allowed is a number in [0.000001, 100000000]"
    );
}

#[test]
fn limits_in_bytes_have_room_for_the_packets_of_every_flow() {
    let queue = "kind = \"drop_tail\", packets = 50";
    assert_eq!(
        refused(queue, "kind = \"drop_tail\", bytes = 1499"),
        "s.toml:6: dumbbell.bottleneck.queue.bytes = 1499: allowed is 1500 bytes or more, a packet of flow flow0"
    );
    assert_eq!(
        refused(queue, "kind = \"drop_tail\", bdp = 0.01"),
        "s.toml:6: dumbbell.bottleneck.queue.bdp = 0.01: allowed is a limit of 1500 bytes or more, a packet of \
         flow flow0, as with min_bytes = 1500"
    );
    assert_eq!(
        refused_link("policer = { rate_mbps = 5, burst_bytes = 1000 }"),
        "policer.burst_bytes = 1000: allowed is 1500 bytes or more, a packet of flow flow0"
    );
    assert_eq!(
        refused_free(
            "name = \"back\"",
            "name = \"back\"\nqueue = { kind = \"drop_tail\", bytes = 51 }"
        ),
        "s.toml:7: link[1].queue.bytes = 51: allowed is 52 bytes or more, a packet of flow flow0"
    );
}

#[test]
fn a_limit_that_the_packets_of_its_flows_fit_is_allowed() {
    let queue = "queue = { kind = \"drop_tail\", packets = 50 }\n[[flow]]\n";
    for (bytes, flow) in [
        (1500, ""),
        (
            552,
            "traffic = { kind = \"writes\", count = 9, write_bytes = 500, interval_ms = 9, send_buffer_bytes = 900 }\n",
        ),
        (152, "traffic = { kind = \"fixed\", bytes = 100 }\n"),
        (700, "traffic = { kind = \"cbr\", rate_mbps = 2, packet_bytes = 700 }\n"),
        (60, "backward = true\n"),
    ] {
        let text = |bytes| {
            let limit =
                format!("queue = {{ kind = \"drop_tail\", bytes = {bytes} }}\n[[flow]]\n{flow}");
            DUMBBELL.replacen(queue, &limit, 1)
        };
        assert!(Scenario::parse(&text(bytes), "s.toml").is_ok(), "{flow}");
    }
    // A link that no flow of large packets crosses.
    let other = FREE.replacen(
        "name = \"back\"",
        "name = \"back\"\npolicer = { rate_mbps = 1, burst_bytes = 100 }",
        1,
    );
    assert!(Scenario::parse(&other, "s.toml").is_ok());
}
