//! One test per kind of bad input, each with the whole message: it must name line, field, value and
//! what is allowed.
use super::*;
use crate::controllers;
use crate::coupled;
use crate::rng::Seed;
use crate::units::{Bytes, Rate, Span, Time};

mod accepted;
mod distribution;
mod dumbbell;
mod extras;
mod mptcp;
mod recorded;

const DUMBBELL: &str = "duration_s = 10.0
[dumbbell]
rtt_ms = 100
[dumbbell.bottleneck]
rate_mbps = 10
queue = { kind = \"drop_tail\", packets = 50 }
[[flow]]
controller = \"cubic\"
";

const FREE: &str = "duration_s = 10.0
[[link]]
name = \"there\"
rate_mbps = 10
[[link]]
name = \"back\"
rate_mbps = 10
[[flow]]
path = [\"there\"]
reverse = [\"back\"]
";

fn error(text: &str) -> String {
    Scenario::parse(text, "s.toml").map(|_| ()).expect_err("bad input").to_string()
}

/// The message for [`DUMBBELL`] with `old` replaced by `new`.
fn refused(old: &str, new: &str) -> String {
    assert!(DUMBBELL.contains(old), "{old}");
    error(&DUMBBELL.replacen(old, new, 1))
}

fn refused_free(old: &str, new: &str) -> String {
    assert!(FREE.contains(old), "{old}");
    error(&FREE.replacen(old, new, 1))
}

fn overridden(path: &str, value: &str) -> Result<Scenario, String> {
    let overrides = [(path.to_owned(), value.to_owned())];
    Scenario::parse_with(DUMBBELL, "s.toml", &overrides, &mut |_, _| Err("no traces".to_owned()))
        .map_err(|error| error.to_string())
}

#[test]
fn a_renamed_field_is_an_error_with_its_new_name() {
    assert_eq!(
        refused("controller", "sender = { gate = \"ack\" }\ncontroller"),
        "s.toml:8: flow[0].sender.gate = \"ack\": allowed is `send_hook`, the name of this field now"
    );
    assert_eq!(
        refused("packets = 50", "bdp = 1, least_bytes = 6000"),
        "s.toml:6: dumbbell.bottleneck.queue.least_bytes = 6000: allowed is `min_bytes`, the name of \
         this field now"
    );
}

#[test]
fn an_unknown_field_is_named_with_its_path_and_the_known_ones() {
    assert_eq!(
        refused("rtt_ms", "rt_ms"),
        "s.toml:3: dumbbell.rt_ms = 100: allowed is a field named rtt_ms, bottleneck, \
         reverse, reverse_delay_ms, reverse_varies, access_mbps, access_delay_ms"
    );
    assert_eq!(
        refused("[dumbbell]", "[dumbell]"),
        "s.toml:2: dumbell = a table: allowed is a field named name, duration_s, \
         sample_interval_ms, dumbbell, parking_lot, two_path, link, sender, flow"
    );
}

#[test]
fn an_unknown_field_of_a_queue_is_found_in_its_table() {
    assert_eq!(
        refused("packets", "packts"),
        "s.toml:6: dumbbell.bottleneck.queue.packts = 50: allowed is a field named packets, bytes, \
         bdp, min_bytes"
    );
    assert_eq!(
        refused("controller", "traffic = { kind = \"bulk\", bytes = 9 }\ncontroller"),
        "s.toml:8: flow[0].traffic.bytes = 9: allowed is no field at all"
    );
}

#[test]
fn a_wrong_type_names_the_right_one() {
    assert_eq!(
        refused("rtt_ms = 100", "rtt_ms = \"100\""),
        "s.toml:3: dumbbell.rtt_ms = \"100\": allowed is a number"
    );
    assert_eq!(
        refused("packets = 50", "packets = 1.5"),
        "s.toml:6: dumbbell.bottleneck.queue.packets = 1.5: allowed is a whole number in \
         [0, 9223372036854775807]"
    );
    assert_eq!(
        refused("controller", "sender = { rack = 1 }\ncontroller"),
        "s.toml:8: flow[0].sender.rack = 1: allowed is true or false"
    );
    assert_eq!(
        refused("controller", "params.beta = [1]\ncontroller"),
        "s.toml:8: flow[0].params.beta = [1]: allowed is a number, true, false or a word"
    );
    assert_eq!(
        refused("[dumbbell.bottleneck]", "[dumbbell.bottleneck]\noutages = [[1, 2], [3]]"),
        "s.toml:5: dumbbell.bottleneck.outages[1] = [3]: allowed is a pair of numbers"
    );
}

#[test]
fn a_wrong_type_in_a_table_with_a_kind_is_its_own_fields_and_not_that_of_an_equal_value() {
    let red = "kind = \"red\", max_ratio = 1.5, min_packets = 1.5, max_packets = 9, packets = 50";
    assert_eq!(
        refused("kind = \"drop_tail\", packets = 50", red),
        "s.toml:6: dumbbell.bottleneck.queue.min_packets = 1.5: allowed is a whole number in \
         [0, 9223372036854775807]"
    );
}

#[test]
fn a_value_with_quotes_and_dots_in_it_is_quoted_whole() {
    assert_eq!(
        refused("drop_tail", "drop`, expected `tail"),
        "s.toml:6: dumbbell.bottleneck.queue.kind = \"drop`, expected `tail\": allowed is drop_tail, \
         red, codel, fq_codel, pie, dualpi2, step"
    );
    assert_eq!(
        refused("controller", "name = \"x\"\nparams.\"a.b\" = [1]\ncontroller"),
        "s.toml:9: flow[0].params.a.b = [1]: allowed is a number, true, false or a word"
    );
}

#[test]
fn a_value_with_a_unit_is_no_toml() {
    assert_eq!(
        refused("duration_s = 10.0", "duration_s = 10 s"),
        "s.toml:1: duration_s = 10 s: allowed is TOML (string values must be quoted, expected \
         literal string)"
    );
    assert_eq!(
        refused("[dumbbell]", "[dumbbell"),
        "s.toml:2: line = \"[dumbbell\": allowed is TOML (unclosed table, expected `]`)"
    );
}

#[test]
fn a_unit_in_the_wrong_field_name_is_an_unknown_field() {
    assert!(
        refused("rate_mbps", "rate_kbps")
            .starts_with("s.toml:5: dumbbell.bottleneck.rate_kbps = 10: allowed is a field named ")
    );
}

#[test]
fn a_missing_field_is_named() {
    assert_eq!(
        refused("duration_s = 10.0", ""),
        "s.toml:1: duration_s = absent: allowed is a value: there is no default"
    );
    assert_eq!(
        refused("kind = \"drop_tail\", ", ""),
        "s.toml:6: dumbbell.bottleneck.queue.kind = absent: allowed is a value: there is no default"
    );
}

#[test]
fn an_unknown_kind_lists_the_known_ones() {
    assert_eq!(
        refused("drop_tail", "droptail"),
        "s.toml:6: dumbbell.bottleneck.queue.kind = \"droptail\": allowed is drop_tail, red, \
         codel, fq_codel, pie, dualpi2, step"
    );
    assert_eq!(
        refused("controller", "sender = { recovery = \"ns3\" }\ncontroller"),
        "s.toml:8: flow[0].sender.recovery = \"ns3\": allowed is sack, ns2"
    );
}

#[test]
fn a_rate_is_above_zero() {
    let allowed = "allowed is a number in [0.000001, 1000000]";
    for rate in ["-10", "0", "1e7"] {
        assert_eq!(
            refused("rate_mbps = 10", &format!("rate_mbps = {rate}")),
            format!(
                "s.toml:5: dumbbell.bottleneck.rate_mbps = {}: {allowed}",
                rate.parse::<f64>().unwrap()
            )
        );
    }
}

#[test]
fn a_queue_holds_at_least_one_packet() {
    assert_eq!(
        refused("packets = 50", "packets = 0"),
        "s.toml:6: dumbbell.bottleneck.queue.packets = 0: allowed is a whole number in \
         [1, 9223372036854775807]"
    );
    assert_eq!(
        refused("packets = 50", "bdp = 1e-6"),
        "s.toml:6: dumbbell.bottleneck.queue.bdp = 0.000001: allowed is a multiple of rate_mbps \
         times round trip that is a byte or more"
    );
}

#[test]
fn nan_and_infinity_are_in_no_range() {
    assert_eq!(
        refused("rtt_ms = 100", "rtt_ms = nan"),
        "s.toml:3: dumbbell.rtt_ms = NaN: allowed is a number in [0, 10000000]"
    );
    assert_eq!(
        refused("10.0", "inf"),
        "s.toml:1: duration_s = inf: allowed is a number in [0.000001, 100000000]"
    );
    assert_eq!(
        refused("controller", "start_s = -nan\ncontroller"),
        "s.toml:8: flow[0].start_s = NaN: allowed is a number in [0, 100000000]"
    );
}

#[test]
fn a_route_to_a_missing_link_lists_the_links_there_are() {
    assert_eq!(
        refused_free("[\"there\"]", "[\"there\", \"their\"]"),
        "s.toml:9: flow[0].path[1] = \"their\": allowed is there, back"
    );
    assert_eq!(
        refused_free("path = [\"there\"]\n", ""),
        "s.toml:8: flow[0].path = absent: allowed is names of one link or more"
    );
}

#[test]
fn a_path_without_links_would_stop_the_clock() {
    assert_eq!(
        refused_free("[\"there\"]", "[]"),
        "s.toml:9: flow[0].path = []: allowed is names of one link or more"
    );
}

#[test]
fn a_route_that_the_topology_cannot_have_is_refused() {
    assert_eq!(
        refused("controller", "path = [\"bottleneck\"]\ncontroller"),
        "s.toml:8: flow[0].path = given: allowed is nothing here with [dumbbell]"
    );
    assert_eq!(
        refused("controller", "multipath = true\ncontroller"),
        "s.toml:8: flow[0].multipath = true: allowed is only with [two_path]; elsewhere \
         mptcp.subflow lists the subflows"
    );
    assert_eq!(
        refused_free("path =", "route = [0]\npath ="),
        "s.toml:9: flow[0].route = given: allowed is nothing here with [[link]]"
    );
    let lot = "duration_s = 1\n[parking_lot]\nhops = 3\n[parking_lot.bottleneck]\nrate_mbps = 1\n\
               [[flow]]\nroute = [1, 3]\n";
    assert_eq!(
        error(lot),
        "s.toml:7: flow[0].route = [1, 3]: allowed is [first, last] with last < 3"
    );
}

#[test]
fn flows_are_counted_before_they_are_made() {
    for count in ["1000000000000", "0", "100001"] {
        assert_eq!(
            refused("controller", &format!("count = {count}\ncontroller")),
            format!("s.toml:8: flow[0].count = {count}: allowed is 1 to 100000 flows in all")
        );
    }
    assert_eq!(
        refused("controller", "count = -1\ncontroller"),
        "s.toml:8: flow[0].count = -1: allowed is a whole number in [0, 9223372036854775807]"
    );
    let repeated = "count = 9223372036854775807\n[[flow]]\n".repeat(3);
    assert_eq!(
        refused("controller", &format!("{repeated}controller")),
        "s.toml:8: flow[0].count = 9223372036854775807: allowed is 1 to 100000 flows in all"
    );
    assert_eq!(
        refused("[[flow]]\ncontroller = \"cubic\"", ""),
        "s.toml: flow = absent: allowed is 1 to 100000 flows in all"
    );
}

#[test]
fn a_poisson_source_may_not_have_more_arrivals_than_flows_are_allowed() {
    let poisson = |per_s: &str, more: &str| {
        let traffic = format!("{{ kind = \"poisson\", per_s = {per_s}, mean_bytes = 1e4 }}");
        DUMBBELL.replace("controller", &format!("traffic = {traffic}\n{more}controller"))
    };
    assert_eq!(
        error(&poisson("10001.0", "")),
        "s.toml:8: flow[0].traffic.per_s = 10001: allowed is a rate that gives at most 100000 \
         flows in all"
    );
    for (per_s, more) in [("9998.0", ""), ("20000.0", "stop_s = 4\n"), ("90000.0", "start_s = 9\n")]
    {
        Scenario::parse(&poisson(per_s, more), "s.toml").unwrap();
    }
    error(&poisson("9000.0", "count = 2\n"));
}

#[test]
fn names_are_unique() {
    assert_eq!(
        refused_free("\"back\"", "\"there\""),
        "s.toml:6: link[1].name = \"there\": allowed is a name of its own for every link"
    );
    assert_eq!(
        refused("controller", "name = \"a\"\n[[flow]]\nname = \"a\"\ncontroller"),
        "s.toml:10: flow[1].name = \"a\": allowed is a name of its own for every flow"
    );
    assert_eq!(
        refused("rate_mbps = 10", "name = \"reverse\"\nrate_mbps = 10"),
        "s.toml:5: dumbbell.bottleneck.name = \"reverse\": allowed is a name that no other link \
         has, access links included"
    );
}

#[test]
fn numbered_copies_may_not_take_another_flows_name() {
    assert_eq!(
        refused("controller", "name = \"a\"\ncount = 3\n[[flow]]\nname = \"a_1\"\ncontroller"),
        "s.toml:11: flow[1].name = \"a_1\": allowed is a name of its own for every flow"
    );
}

#[test]
fn an_unknown_controller_lists_the_known_ones() {
    let names = coupled::all_names();
    assert_eq!(
        refused("cubic", "cubik"),
        format!("s.toml:8: flow[0].controller = \"cubik\": allowed is {names}, or file.py:Class")
    );
}

#[test]
fn settings_of_a_controller_are_checked_against_its_list() {
    let list: Vec<&str> =
        controllers::find("cubic").unwrap().params.iter().map(|p| p.name).collect();
    assert_eq!(
        refused("controller", "params = { beter = 0.5 }\ncontroller"),
        format!("s.toml:8: flow[0].params.beter = 0.5: allowed is {}", list.join(", "))
    );
    let beta = controllers::find("cubic").unwrap().params.iter().find(|p| p.name == "beta");
    assert_eq!(
        refused("controller", "params = { beta = nan }\ncontroller"),
        format!(
            "s.toml:8: flow[0].params.beta = NaN: allowed is {}",
            beta.expect("cubic has a beta").kind.allowed()
        )
    );
    assert!(
        refused("controller", "params = { beta = \"big\" }\ncontroller")
            .starts_with("s.toml:8: flow[0].params.beta = \"big\": allowed is a number in [")
    );
}

#[test]
fn a_preset_and_links_exclude_each_other() {
    assert_eq!(
        refused("[[flow]]", "[[link]]\nname = \"x\"\nrate_mbps = 1\n[[flow]]"),
        "s.toml:7: link = dumbbell and link: allowed is exactly one of [dumbbell], [parking_lot], \
         [two_path], [[link]]"
    );
    assert_eq!(
        error("duration_s = 1\n[[flow]]\n"),
        "s.toml: topology = absent: allowed is exactly one of [dumbbell], [parking_lot], \
         [two_path], [[link]]"
    );
}

#[test]
fn a_link_has_one_rate_and_one_delay() {
    assert_eq!(
        refused("rate_mbps = 10", ""),
        "s.toml:4: dumbbell.bottleneck.rate_mbps = absent: allowed is exactly one of rate_mbps, \
         rate_schedule, rate_random, trace"
    );
    assert_eq!(
        refused("rate_mbps = 10", "rate_mbps = 10\nrate_schedule = [[0, 5]]"),
        "s.toml:6: dumbbell.bottleneck.rate_schedule = rate_mbps and rate_schedule: allowed is \
         exactly one of rate_mbps, rate_schedule, rate_random, trace"
    );
    assert_eq!(
        refused_free("rate_mbps = 10", "rate_mbps = 10\ndelay_ms = 1\ndelay_schedule = [[0, 5]]"),
        "s.toml:6: link[0].delay_schedule = delay_ms and delay_schedule: allowed is at most one of \
         delay_ms, delay_schedule, delay_random, delay_trace"
    );
    assert_eq!(
        refused("rate_mbps = 10", "rate_mbps = 10\ndelay_ms = 5"),
        "s.toml:3: dumbbell.rtt_ms = 100: allowed is no delay_ms and reverse_delay_ms beside it"
    );
    assert_eq!(
        refused("rtt_ms = 100", "rtt_ms = 100\nreverse_varies = true"),
        "s.toml:4: dumbbell.reverse_varies = true: allowed is false unless the bottleneck has \
         delay_random, delay_trace or handover, and neither rtt_ms nor reverse_delay_ms is given"
    );
}

#[test]
fn a_schedule_begins_at_zero_and_increases() {
    for (steps, line) in [
        ("[[0, 1], [5, 2], [5, 3]]", "[2] = [5, 3]"),
        ("[[0, 1], [5, 2], [4, 3]]", "[2] = [4, 3]"),
        ("[[1, 1]]", "[0] = [1, 1]"),
    ] {
        assert_eq!(
            refused("rate_mbps = 10", &format!("rate_schedule = {steps}")),
            format!(
                "s.toml:5: dumbbell.bottleneck.rate_schedule{line}: allowed is pairs (from second, \
                 value) that begin at 0 and increase"
            )
        );
    }
    assert_eq!(
        refused("rate_mbps = 10", "rate_schedule = []"),
        "s.toml:5: dumbbell.bottleneck.rate_schedule = []: allowed is at least one pair (from \
         second, value)"
    );
    assert_eq!(
        refused("rate_mbps = 10", "rate_schedule = [\n[0, 1],\n[1, -1],\n]"),
        "s.toml:7: dumbbell.bottleneck.rate_schedule[1] = -1: allowed is a number in [0, 1000000]"
    );
    assert_eq!(
        refused("rate_mbps = 10", "rate_schedule = [[0, 0]]"),
        "s.toml:5: dumbbell.bottleneck.rate_schedule = only zeros: allowed is at least one rate \
         above 0"
    );
}

#[test]
fn settings_of_dualpi2_are_within_their_ranges() {
    let queue = |field: &str| {
        let queue = format!("{{ kind = \"dualpi2\", packets = 100, {field} }}");
        refused("{ kind = \"drop_tail\", packets = 50 }", &queue)
    };
    assert_eq!(
        queue("classic_share = 1"),
        "s.toml:6: dumbbell.bottleneck.queue.classic_share = 1: allowed is a number in [0.001, 0.999]"
    );
    assert_eq!(
        queue("update_ms = 0"),
        "s.toml:6: dumbbell.bottleneck.queue.update_ms = 0: allowed is a number in [0.001, 10000000]"
    );
    assert_eq!(
        queue("coupling = nan"),
        "s.toml:6: dumbbell.bottleneck.queue.coupling = NaN: allowed is a number in [0.001, 1000]"
    );
}

#[test]
fn outages_are_in_order() {
    assert_eq!(
        refused("rate_mbps = 10", "rate_mbps = 10\noutages = [[1, 3], [2, 4]]"),
        "s.toml:6: dumbbell.bottleneck.outages[1] = 2: allowed is a number in [3, 100000000]"
    );
    assert_eq!(
        refused("rate_mbps = 10", "rate_mbps = 10\noutages = [[3, 1]]"),
        "s.toml:6: dumbbell.bottleneck.outages[0] = 1: allowed is a number in [3, 100000000]"
    );
}

#[test]
fn redraws_are_few_enough_to_be_added_up() {
    let random = |low: &str, hz: &str| {
        format!("rate_random = {{ low_mbps = {low}, high_mbps = 10, hz = {hz} }}")
    };
    assert_eq!(
        refused("rate_mbps = 10", &random("1", "2e3")),
        "s.toml:5: dumbbell.bottleneck.rate_random.hz = 2000: allowed is a number in \
         [0.000001, 1000]"
    );
    assert_eq!(
        error(&DUMBBELL.replace("10.0", "1e7").replace("rate_mbps = 10", &random("1", "100"))),
        "s.toml:5: dumbbell.bottleneck.rate_random.hz = 100: allowed is a number in [0.000001, 10]"
    );
    assert_eq!(
        refused("rate_mbps = 10", &random("11", "1")),
        "s.toml:5: dumbbell.bottleneck.rate_random.high_mbps = 10: allowed is a number in \
         [11, 1000000]"
    );
}

#[test]
fn a_queue_may_not_work_for_ever() {
    let queue = "kind = \"drop_tail\", packets = 50";
    assert_eq!(
        error(
            &DUMBBELL
                .replace("10.0", "1e7")
                .replace(queue, "kind = \"pie\", packets = 50, update_ms = 1")
        ),
        "s.toml:6: dumbbell.bottleneck.queue.update_ms = 1: allowed is a number in [100, 10000000]"
    );
    assert_eq!(
        refused(queue, "kind = \"fq_codel\", packets = 50, quantum_bytes = 1"),
        "s.toml:6: dumbbell.bottleneck.queue.quantum_bytes = 1: allowed is a whole number in \
         [64, 1000000]"
    );
}

#[test]
fn a_trace_that_cannot_be_read_is_refused_with_the_reason() {
    let traced = |bytes: Result<&[u8], &str>| {
        let text = DUMBBELL.replace("rate_mbps = 10", "trace = \"lte.down\"");
        let mut load = |_: &str, _| bytes.map(<[u8]>::to_vec).map_err(str::to_owned);
        Scenario::parse_with(&text, "s.toml", &[], &mut load)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let place = "s.toml:5: dumbbell.bottleneck.trace = \"lte.down\": allowed is a mahimahi trace";
    assert_eq!(traced(Err("no such\nfile")), Err(format!("{place} (no such file)")));
    assert_eq!(
        traced(Ok(b"1\n2\nx\n")),
        Err(format!(
            "{place} (lte.down:3: found \"x\"; allowed: one whole number of milliseconds per line, \
             digits only)"
        ))
    );
    assert_eq!(
        traced(Ok(b"")),
        Err(format!("{place} (lte.down:1: found \"\"; allowed: at least one line)"))
    );
    assert!(traced(Ok(b"\x7fELF\x00\x01")).is_err());
    assert_eq!(traced(Ok(b"1\n2\n")), Ok(()));
    assert_eq!(
        refused("rate_mbps = 10", "trace = \"a\""),
        "s.toml:5: dumbbell.bottleneck.trace = \"a\": allowed is a mahimahi trace (files \
         cannot be read here: a)"
    );
}

#[test]
fn time_series_have_a_bounded_number_of_rows() {
    assert_eq!(
        refused("duration_s = 10.0", "duration_s = 10.0\nsample_interval_ms = 1e-3"),
        "s.toml:2: sample_interval_ms = 0.001: allowed is 0 or at least 0.002, which gives \
         10000000 rows"
    );
}

#[test]
fn a_fault_in_the_common_sender_table_is_found_there() {
    assert_eq!(
        refused("[[flow]]", "[sender]\nack_every = 0\n[[flow]]"),
        "s.toml:8: sender.ack_every = 0: allowed is a whole number in [1, 1000]"
    );
    assert_eq!(
        refused("controller", "sender = { ack_every = 0 }\ncontroller"),
        "s.toml:8: flow[0].sender.ack_every = 0: allowed is a whole number in [1, 1000]"
    );
    assert_eq!(
        refused("[[flow]]", "[sender]\npacket_bytes = 100\nheader_bytes = 100\n[[flow]]"),
        "s.toml:9: sender.header_bytes = 100: allowed is a whole number in [0, 99]"
    );
}

#[test]
fn a_time_out_that_would_only_spin_is_refused() {
    assert_eq!(
        refused("controller", "sender = { rto_max_ms = 0 }\ncontroller"),
        "s.toml:8: flow[0].sender.rto_max_ms = 0: allowed is a number in [200, 10000000]"
    );
    assert_eq!(
        refused("controller", "sender = { rto_initial_ms = 0 }\ncontroller"),
        "s.toml:8: flow[0].sender.rto_initial_ms = 0: allowed is a number in [0.001, 10000000]"
    );
}

#[test]
fn a_number_beyond_toml_is_refused() {
    let bytes = "traffic = { kind = \"fixed\", bytes = 18446744073709551615 }\ncontroller";
    assert_eq!(
        refused("controller", bytes),
        "s.toml:8: flow[0].traffic.bytes = 18446744073709551615: allowed is a whole number of at \
         most 9223372036854775807"
    );
}

#[test]
fn an_override_reaches_into_lists_of_lists() {
    let schedule = "[[0, 10], [5, 20]]";
    let changed = |path: &str, value: &str| {
        let path = format!("dumbbell.bottleneck.{path}");
        let overrides = [
            (
                "dumbbell.bottleneck".to_owned(),
                format!(
                    "{{ rate_schedule = {schedule}, queue = {{ kind = \"drop_tail\", packets = 9 }} }}"
                ),
            ),
            (path, value.to_owned()),
        ];
        Scenario::parse_with(DUMBBELL, "s.toml", &overrides, &mut |_, _| Err(String::new()))
    };
    let second = changed("rate_schedule.1.1", "40").unwrap();
    let whole = changed("rate_schedule", "[[0, 10], [5, 40]]").unwrap();
    assert_eq!(second.canonical(), whole.canonical());
    for (path, allowed) in [
        ("rate_schedule.2.1", "rate_schedule.N with N below 2"),
        ("rate_schedule.1.2", "rate_schedule.1.N with N below 2"),
        ("rate_schedule.1.x", "rate_schedule.1.N with N below 2"),
        ("rate_schedule.1.1.0", "no more steps: `rate_schedule.1.1` is not a table"),
    ] {
        let message =
            format!("s.toml: override dumbbell.bottleneck.{path} = 40: allowed is {allowed}");
        assert_eq!(changed(path, "40").unwrap_err().to_string(), message);
    }
}

#[test]
fn an_override_with_a_bad_path_or_value_names_it() {
    let allowed_path = "allowed is a path like dumbbell.bottleneck.rate_mbps or flow.0.controller";
    for (path, value, message) in [
        ("duration_s", "ten", "duration_s = ten: allowed is a TOML value (words in quotes)"),
        (
            "duration_s",
            "1\nname = 2",
            "duration_s = 1 name = 2: allowed is a TOML value (words in quotes)",
        ),
        (
            "flow.1.controller",
            "\"cubic\"",
            "flow.1.controller = \"cubic\": allowed is flow.N.FIELD with N below 1",
        ),
        ("flow.0", "1", "flow.0 = 1: allowed is flow.N.FIELD with N below 1"),
        (
            "duration_s.x",
            "1",
            "duration_s.x = 1: allowed is no more steps: `duration_s` is not a table",
        ),
        ("dumbbell..rtt_ms", "1", &format!("dumbbell..rtt_ms = 1: {allowed_path}")),
        ("", "1", &format!(" = 1: {allowed_path}")),
        ("dumbbell.rtt_ms", "-1", "dumbbell.rtt_ms = -1: allowed is a number in [0, 10000000]"),
        ("flow.0.controller", "\"x:y\"", ""),
    ] {
        match overridden(path, value) {
            Ok(_) => assert_eq!(message, "", "{path} = {value}"),
            Err(error) => assert_eq!(error, format!("s.toml: override {message}")),
        }
    }
    assert_eq!(
        overridden("dumbbell.rt_ms", "1").unwrap_err(),
        "s.toml: with overrides: dumbbell.rt_ms = 1: allowed is a field named rtt_ms, bottleneck, \
         reverse, reverse_delay_ms, reverse_varies, access_mbps, access_delay_ms"
    );
    let deep = vec!["a"; 100_000].join(".");
    assert!(overridden(&deep, "1").is_err());
}

#[test]
fn an_override_changes_what_the_file_says() {
    let scenario = overridden("dumbbell.bottleneck.rate_mbps", "5").unwrap();
    let crate::sim::plan::RatePlan::Constant(rate) = scenario.network.links[0].rate else {
        panic!("a constant rate")
    };
    assert_eq!(rate, Rate::from_mbps(5.0));
    let scenario = overridden("flow.0.params.beta", "0.5").unwrap();
    assert_eq!(
        scenario.network.connections[0].params,
        [("beta".to_owned(), ParamValue::Number(0.5))]
    );
}

#[test]
fn no_message_has_more_than_one_line_whatever_names_hold() {
    let name = "\"a\\nb\\u001b[31m\"";
    for text in [
        DUMBBELL.replace("\"cubic\"", name),
        DUMBBELL.replace("controller", &format!("params = {{ {name} = 1 }}\ncontroller")),
        FREE.replacen("\"back\"", name, 1),
        DUMBBELL.replace("rtt_ms", name),
    ] {
        let message = error(&text);
        assert!(!message.contains(|char: char| char.is_control()), "{message:?}");
    }
}
