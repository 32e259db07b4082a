//! Running `ackademyd lab` from tests, one at a time, and looking at what it left.
use super::machine::governs_flows;
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim::record::{Column, Outcome};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

static MACHINE: Mutex<()> = Mutex::new(());

/// The machine for one test: emulators that run side by side would make each other late. `None`,
/// and a line that says why, if it cannot run any.
pub fn machine() -> Option<MutexGuard<'static, ()>> {
    if !governs_flows() {
        return None;
    }
    Some(MACHINE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// `ackademyd lab` with these words; a scenario goes to its standard input.
pub fn start(words: &[&str], scenario: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ackademyd"))
        .arg("lab")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built with the tests");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(scenario.as_bytes()).expect("a small text fits into the pipe");
    child
}

/// Its output, once it has ended.
pub fn output(words: &[&str], scenario: &str) -> (u32, Output) {
    let child = start(words, scenario);
    (child.id(), child.wait_with_output().expect("it can be waited for"))
}

/// The result of a run, which must succeed, however slow the machine.
pub fn run(words: &[&str], scenario: &str) -> Value {
    let (pid, output) =
        output(&[&["run", "-", "--lateness-ms", "10000"], words].concat(), scenario);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    assert_eq!(leftovers(pid), Vec::<String>::new());
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

/// What is there of the run with this process id: namespaces, locks, congestion controls, processes.
pub fn leftovers(pid: u32) -> Vec<String> {
    let prefix = format!("ackademy-{pid}");
    let names = |folder: &str| -> Vec<String> {
        let listed = fs::read_dir(folder).into_iter().flatten().flatten();
        listed.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let mut left: Vec<String> = [names("/run/netns"), names("/run")].concat();
    left.retain(|name| name.starts_with(&prefix));
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.expect("every Linux has this file");
    left.extend(
        known.split_whitespace().filter(|name| *name == format!("ack{pid}")).map(Into::into),
    );
    left.extend(names("/proc").into_iter().filter(|name| {
        let status = fs::read_to_string(format!("/proc/{name}/status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{pid}"))
    }));
    left
}

/// A column of a table of a result.
pub fn column<'a>(result: &'a Value, table: &str, name: &str) -> &'a [Value] {
    let column = result["tables"][table][name].as_array();
    column.unwrap_or_else(|| panic!("table {table} has no column {name}"))
}

/// A number of a flow.
pub fn number(result: &Value, flow: usize, name: &str) -> f64 {
    column(result, "flows", name)[flow].as_f64().unwrap_or(f64::NAN)
}

/// Throughput of a flow as a part of `mbps`.
pub fn share(result: &Value, flow: usize, mbps: f64) -> f64 {
    number(result, flow, "delivered_bytes") * 8e-6 / number(result, flow, "active_s") / mbps
}

/// The same scenario in the simulator.
pub fn simulated(scenario: &str, seed: u64) -> Outcome {
    let scenario = Scenario::parse(scenario, "test").expect("a scenario");
    ackademy::sim::run(&scenario.network, Seed(seed)).expect("built-in controllers")
}

/// Names of tables and columns, in order, and whether each holds text.
pub fn layout(outcome: Outcome) -> Vec<(String, String, bool)> {
    let columns = outcome.into_tables().into_iter().flat_map(|table| {
        table.columns.into_iter().map(move |(name, column)| {
            let is_text = matches!(column, Column::Texts { .. });
            (table.name.to_owned(), name.to_owned(), is_text)
        })
    });
    columns.collect()
}
