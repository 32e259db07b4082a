//! No field of a flow or of its sender is accepted and ignored: with every kind of traffic and both kinds of recovery it changes
//! the outcome or is refused, unless the format says that it does not serve them.
use crate::support::draw::{run, same};
use ackademy::scenario::Scenario;
use ackademy::scenario::spec::{RecoverySpec, SenderSpec};
use ackademy::transport::config::{Ecn, SendHook};
use std::collections::BTreeMap;

const SPEC: &str = include_str!("../src/scenario/spec.rs");

/// Every kind of traffic.
const TRAFFIC: [&str; 8] = [
    "\"bulk\"",
    "\"on_off\", mean_bytes = 200000, mean_off_s = 0.5",
    "\"fixed\", bytes = 3000000",
    "\"app_limited\", rate_mbps = 2, write_bytes = 300000",
    "\"writes\", count = 40, write_bytes = 60000, interval_ms = 400, send_buffer_bytes = 200000",
    "\"poisson\", per_s = 2, mean_bytes = 100000",
    "\"request_response\", response_bytes = 200000, mean_think_s = 0.5",
    "\"cbr\", rate_mbps = 2, packet_bytes = 1000",
];

/// Each field of a sender with a value that is not its default in either kind of recovery.
fn sender() -> SenderSpec {
    SenderSpec {
        recovery: Some(RecoverySpec::Ns2),
        packet_bytes: Some(1000),
        header_bytes: Some(80),
        ack_bytes: Some(100),
        ack_every: Some(3),
        ack_delay_ms: Some(7.0),
        initial_cwnd_packets: Some(5.0),
        initial_ssthresh_packets: Some(6.0),
        receiver_window_packets: Some(4),
        rto_min_ms: Some(900.0),
        rto_max_ms: Some(400.0),
        rto_initial_ms: Some(20.0),
        rto_tick_ms: Some(300.0),
        rack: Some(false),
        tlp: Some(false),
        prr: Some(false),
        rescue: Some(true),
        ecn: Some(Ecn::L4s),
        pacing: Some(true),
        idle_restart: Some(true),
        send_hook: Some(SendHook::Ack),
        timestamps: Some(false),
        deflation: Some(false),
        impatient: Some(false),
        handshake: None, // both values differ from one of the defaults; see below
        quick_acks: Some(16),
        opening_acks: Some(100),
        fuzz_records: Some(0.5),
        hide_marks: Some(true),
        hide_losses: Some(true),
        divide_acks: Some(4),
        optimistic_acks: Some(20),
    }
}

/// Fields of a flow, and what is compared with what.
const FLOW: [(&str, &str, &str); 8] = [
    ("controller", "", "controller = \"vegas\""),
    ("params", "controller = \"cubic\"", "controller = \"cubic\"\nparams = { beta = 0.3 }"),
    ("count", "", "count = 2"),
    ("start_s", "", "start_s = 1"),
    ("start_spread_s", "", "start_spread_s = 1"),
    ("start_step_s", "count = 2", "count = 2\nstart_step_s = 1"),
    ("stop_s", "", "stop_s = 4"),
    ("backward", "", "backward = true"),
];

/// Fields of a flow that say what it is or where it runs; what does not fit the topology is refused.
const PLACE: [&str; 8] =
    ["name", "path", "reverse", "route", "multipath", "traffic", "sender", "mptcp"];

/// What never pauses is never restarted: field, kind of traffic.
const EXCEPTIONS: [(&str, &str); 3] =
    [("idle_restart", "bulk"), ("idle_restart", "fixed"), ("idle_restart", "poisson")];

/// The fields of a struct of the format, each with its description.
fn fields(of: &str) -> Vec<(String, String)> {
    let start = SPEC.find(&format!("pub struct {of} {{")).expect("a struct of the format");
    let body = &SPEC[start..start + SPEC[start..].find("\n}").expect("its end")];
    let (mut found, mut about) = (Vec::new(), String::new());
    for line in body.lines().skip(1).map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            about = about + text + " ";
        } else if let Some((name, _)) = line.strip_prefix("pub ").and_then(|it| it.split_once(':'))
        {
            found.push((name.to_owned(), std::mem::take(&mut about)));
        }
    }
    found
}

/// Whether a description gives a field to this kind of recovery: it begins with the name of the only one.
fn serves(about: &str, recovery: &str) -> bool {
    let only = ["sack", "ns2"].into_iter().find(|kind| about.starts_with(&format!("`{kind}`")));
    only.is_none_or(|only| only == recovery) || about.contains(&format!("`{recovery}`:"))
}

/// A flow over a path that marks, drops, loses, reorders, copies and breaks off.
fn scenario(traffic: &str, flow: &str, sender: &str) -> String {
    format!(
        "duration_s = 12\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 4\n\
         outages = [[3, 6]]\nqueue = {{ kind = \"dualpi2\", packets = 30 }}\nduplicate_ratio = 0.01\n\
         loss = {{ kind = \"bernoulli\", ratio = 0.02, from_s = 1 }}\nreorder = {{ ratio = 0.02, low_ms = 5, high_ms = 30 }}\n\
         [dumbbell.reverse]\nrate_mbps = 1\n\
         [[flow]]\n{flow}\ntraffic = {{ kind = {traffic} }}\nsender = {{ {sender} }}\n"
    )
}

/// Whether a file is refused.
fn is_refused(text: &str) -> bool {
    !text.contains("lp_tcp") && Scenario::parse(text, "fields").is_err()
}

/// The fields whose change, from one file to the other, is accepted and alters no outcome of three seeds.
fn ignored<'a>(changes: impl Iterator<Item = (&'a str, String, String)>) -> Vec<&'a str> {
    let mut known = BTreeMap::new();
    let mut is_same = |before: &String, after: &str, seed| {
        let before = known.entry((before.clone(), seed)).or_insert_with(|| run(before, seed));
        same(before, &run(after, seed))
    };
    changes
        .filter(|(_, before, after)| {
            !is_refused(after) && (1..4).all(|seed| is_same(before, after, seed))
        })
        .map(|(name, ..)| name)
        .collect()
}

/// Lines of the flow and fields of its sender without which a field has nothing to do.
fn needs(field: &str) -> (&'static str, &'static str) {
    match field {
        "send_hook" => {
            ("controller = \"lp_tcp\"\nparams = { policy = \"lp_tcp\", threshold = 0.1 }", "")
        }
        "fuzz_records" => ("controller = \"vegas\"", ""),
        "rescue" => ("", "rack = false, "),
        "ack_delay_ms" => ("", "ack_every = 2, "),
        "rto_initial_ms" | "rto_tick_ms" => ("", "rto_min_ms = 1, "),
        "hide_marks" => ("", "ecn = \"l4s\", "),
        "rto_max_ms" => ("", "rto_min_ms = 100, "),
        _ => ("", ""),
    }
}

fn kind(traffic: &str) -> &str {
    traffic.split('"').nth(1).expect("a kind in quotes")
}

#[test]
fn every_field_of_a_sender_matters_to_what_it_serves() {
    let table = toml::Table::try_from(sender()).expect("the fields as a file has them");
    let about = fields("SenderSpec");
    assert_eq!(table.len() + 1, about.len(), "a field without a value in this test");
    let mut found = Vec::new();
    for traffic in TRAFFIC {
        for recovery in ["sack", "ns2"] {
            let serving = about.iter().filter(|(name, about)| match kind(traffic) {
                "cbr" => name == "ecn",
                _ => name != "recovery" && serves(about, recovery),
            });
            let changes = serving.map(|(name, _)| {
                let value = match table.get(name) {
                    Some(value) => value.to_string(),
                    None => (recovery == "sack").to_string(),
                };
                let (flow, extra) = needs(name);
                let base = format!("recovery = \"{recovery}\", {extra}");
                let base = if kind(traffic) == "cbr" { String::new() } else { base };
                let changed = format!("{base}{name} = {value}");
                let bare = base.trim_end_matches([',', ' ']);
                (name.as_str(), scenario(traffic, flow, bare), scenario(traffic, flow, &changed))
            });
            let own = ignored(changes);
            found.extend(own.into_iter().map(|name| (name, recovery, kind(traffic))));
        }
    }
    found.retain(|(name, _, kind)| !EXCEPTIONS.contains(&(*name, *kind)));
    assert!(found.is_empty(), "accepted and ignored: {found:#?}");
}

#[test]
fn every_field_of_a_flow_matters_to_every_kind_of_traffic() {
    let named: Vec<&str> = FLOW.iter().map(|own| own.0).chain(PLACE).collect();
    for (name, _) in fields("FlowSpec") {
        assert!(named.contains(&name.as_str()), "{name} is in no list of this test");
    }
    for traffic in TRAFFIC {
        let changes = FLOW.iter().map(|(name, before, after)| {
            (*name, scenario(traffic, before, ""), scenario(traffic, after, ""))
        });
        let governs = kind(traffic) != "cbr";
        let changes =
            changes.filter(|(name, ..)| governs || !["controller", "params"].contains(name));
        assert_eq!(ignored(changes), [""; 0], "{traffic}");
    }
}
