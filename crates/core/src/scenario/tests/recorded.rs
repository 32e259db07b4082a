//! Recorded rates and delays of links.
use super::*;
use crate::rng::Seed;
use crate::sim::plan::{DelayPlan, RatePlan};
use crate::units::{Rate, Span, Time};

const LINK: &str = "duration_s = 2
[[link]]
name = \"a\"
RATE
DELAY
[[flow]]
path = [\"a\"]
";

const RATES: &str = "{ file = \"rates\", interval_ms = 10 }";

fn read(rate: &str, delay: &str) -> Result<Scenario, String> {
    let text = LINK.replace("RATE", rate).replace("DELAY", delay);
    Scenario::parse_with(&text, "s.toml", &[], &mut |name, _| match name {
        "rates" => Ok(b"10\n0\n20.5\n".to_vec()),
        "delays" => Ok(b"5\n7.25\n".to_vec()),
        "zeros" => Ok(b"0\n0\n".to_vec()),
        "table.csv" => Ok(b"t,kbps\n0,1000\n4,2000\n".to_vec()),
        "grants" => Ok(b"2\n5\n9\n".to_vec()),
        _ => Err("a file that can be read (no such file)".to_owned()),
    })
    .map_err(|error| error.to_string())
}

#[test]
fn a_link_has_a_recorded_rate_and_a_recorded_delay() {
    let rate = format!("trace = {RATES}");
    let delay = "delay_trace = { file = \"delays\", interval_ms = 10, scale = 0.5, from_s = 0.01 }";
    let scenario = read(&rate, delay).unwrap();
    let link = &scenario.network.links[0];
    let (RatePlan::Schedule(rates), DelayPlan::Schedule(delays)) = (&link.rate, &link.delay) else {
        panic!("two recordings")
    };
    let at = |millis: u64| Time(millis * 1_000_000);
    assert_eq!(rates.at(at(50)).0, Rate::from_mbps(20.5), "it repeats after 30 ms");
    assert_eq!(delays.at(at(0)), (Span::from_micros(3625), at(10)));
    assert_eq!(delays.at(at(10)), (Span::from_micros(2500), at(20)));
    let outcome = crate::sim::run(&scenario.network, Seed(1)).unwrap();
    let capacity = outcome.links[0].capacity_bytes;
    assert!(
        capacity.abs_diff(2_528_750) <= 1,
        "10, 0 and 20.5 Mb/s in turn for 2 s are {capacity} bytes"
    );
}

#[test]
fn a_trace_begins_where_its_table_says() {
    let scenario = read("trace = { file = \"grants\", from_s = 0.007 }", "").unwrap();
    let RatePlan::Trace(trace) = &scenario.network.links[0].rate else { panic!("a trace") };
    assert_eq!(trace.millis(), [4, 6, 9]);
    assert_eq!(read("trace = \"grants\"", "").unwrap().resolved().matches("\"grants\"").count(), 1);
}

#[test]
fn a_recording_has_the_digest_that_the_scenario_says() {
    // sha256sum of "2\n5\n9\n".
    let right = "63fd9ff6b2f6a1ea0b2c4b7c4a2c0a1d2d5a25ef9b6a1d4d1c2b1a0f9e8d7c6b";
    let found = read(&format!("trace = {{ file = \"grants\", sha256 = \"{right}\" }}"), "");
    let message = found.unwrap_err();
    let own = message.rsplit_once("not ").unwrap().1.trim_end_matches(')').to_owned();
    assert!(
        message.starts_with(
            "s.toml:4: link[0].trace = \"grants\": allowed is a mahimahi trace (of the sha256 "
        ),
        "{message}"
    );
    read(&format!("trace = {{ file = \"grants\", sha256 = \"{own}\" }}"), "").unwrap();
}

#[test]
fn a_saved_scenario_has_the_same_recordings() {
    for (rate, delay) in [
        (RATES, "{ file = \"delays\", interval_ms = 10, from_s = 0.01 }"),
        (
            "{ file = \"table.csv\", time = \"t\", column = \"kbps\", scale = 0.001, from_s = 3 }",
            "{ file = \"delays\", interval_ms = 10 }",
        ),
        ("{ file = \"grants\", from_s = 0.005 }", "{ file = \"delays\", interval_ms = 10 }"),
        ("\"grants\"", "{ file = \"delays\", interval_ms = 10 }"),
    ] {
        let scenario = read(&format!("trace = {rate}"), &format!("delay_trace = {delay}")).unwrap();
        let (text, files) = scenario.portable(&str::to_owned);
        let mut load = |name: &str, _| {
            let found = files.iter().find(|(known, _)| known == name);
            Ok(found.expect("a file of this name").1.to_text().into_bytes())
        };
        let again = Scenario::parse_with(&text, "s.toml", &[], &mut load).unwrap();
        let run = |one: &Scenario| crate::sim::run(&one.network, Seed(3)).unwrap();
        assert_eq!(format!("{:?}", run(&scenario)), format!("{:?}", run(&again)), "{rate}");
    }
}

#[test]
fn a_wrong_recording_is_refused_with_what_is_allowed() {
    for (rate, message) in [
        (
            "{ file = \"none\" }",
            "s.toml:4: link[0].trace = \"none\": allowed is a mahimahi trace (a file that can be read (no such file))",
        ),
        (
            "{ file = \"zeros\", interval_ms = 10 }",
            "s.toml:4: link[0].trace = \"zeros\": allowed is a file of rates, one of them above 0",
        ),
        (
            "{ file = \"rates\", interval_ms = 0 }",
            "s.toml:4: link[0].trace.interval_ms = 0: allowed is a number in [0.001, 10000000]",
        ),
        (
            "{ file = \"rates\", interval_ms = nan }",
            "s.toml:4: link[0].trace.interval_ms = NaN: allowed is a number in [0.001, 10000000]",
        ),
        (
            "{ file = \"rates\", interval_ms = 1, scale = -1 }",
            "s.toml:4: link[0].trace.scale = -1: allowed is a number in [0.000000000001, 1000000000000]",
        ),
        (
            "{ file = \"rates\", interval_ms = 1, time = \"t\" }",
            "s.toml:4: link[0].trace.time = \"t\": allowed is absent beside interval_ms",
        ),
        (
            "{ file = \"rates\", time = \"t\" }",
            "s.toml:4: link[0].trace.time = \"t\": allowed is absent without column",
        ),
        (
            "{ file = \"grants\", scale = 2 }",
            "s.toml:4: link[0].trace.scale = given: allowed is absent without interval_ms or time",
        ),
        (
            "{ file = \"grants\", from_s = -1 }",
            "s.toml:4: link[0].trace.from_s = -1: allowed is a number in [0, 100000000]",
        ),
        (
            "{ file = \"grants\", from = 1 }",
            "s.toml:4: link[0].trace.from = 1: allowed is a field named file, interval_ms, time, column, scale, from_s, sha256",
        ),
        (
            "{ interval_ms = 1 }",
            "s.toml:4: link[0].trace.file = absent: allowed is a value: there is no default",
        ),
        ("7", "s.toml:4: link[0].trace = 7: allowed is the name of a file, or a table"),
        (
            "{ file = \"grants\", interval_ms = 1, column = \"x\" }",
            "s.toml:4: link[0].trace = \"grants\": allowed is a file of rates (grants:1: found \"2\"; allowed: a first line that names the column x)",
        ),
    ] {
        assert_eq!(read(&format!("trace = {rate}"), "").unwrap_err(), message);
    }
}

#[test]
fn a_recorded_delay_stands_alone() {
    for (delay, message) in [
        (
            "delay_trace = { file = \"delays\" }",
            "s.toml:5: link[0].delay_trace.interval_ms = absent: allowed is given, or time and column",
        ),
        (
            "delay_trace = { file = \"delays\", interval_ms = 1 }\ndelay_ms = 3",
            "s.toml:5: link[0].delay_trace = delay_ms and delay_trace: allowed is at most one of delay_ms, delay_schedule, delay_random, delay_trace",
        ),
        (
            "delay_trace = { file = \"delays\", interval_ms = 1 }\njitter_ms = 3",
            "s.toml:6: link[0].jitter_ms = 3: allowed is 0 with delay_schedule, delay_random or delay_trace",
        ),
        (
            "handover = { low_mbps = 1, high_mbps = 2, low_ms = 1, high_ms = 2 }",
            "s.toml:4: link[0].trace = given: allowed is nothing beside handover, which has rate, delay and outages",
        ),
    ] {
        assert_eq!(read("trace = \"grants\"", delay).unwrap_err(), message);
    }
}
