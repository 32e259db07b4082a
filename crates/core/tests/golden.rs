//! Tables of what networks do with every controller, compared with stored text, so that a review
//! sees in the diff what a change did. `ACKADEMY_BLESS=1 cargo test --test core_tests golden` writes them anew;
//! a change of any of them belongs in the changelog.
use std::fmt::Write as _;
use std::path::PathBuf;

use ackademy::controllers;
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim;
use ackademy::sim::record::Outcome;

fn run(text: &str) -> Outcome {
    let scenario =
        Scenario::parse(text, "golden").unwrap_or_else(|error| panic!("{error}\n{text}"));
    sim::run(&scenario.network, Seed(1)).expect("built-in controllers")
}

/// Compares with `golden/NAME.txt`, or writes it.
fn golden(name: &str, table: &str) {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("ACKADEMY_BLESS").is_some() {
        std::fs::write(&path, table).expect("a writable folder");
        return;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    if stored == table {
        return;
    }
    let mut diff = String::new();
    let (mut old, mut new) = (stored.lines(), table.lines());
    loop {
        match (old.next(), new.next()) {
            (None, None) => break,
            (old, new) if old == new => {}
            (old, new) => {
                let _ = old.map(|line| writeln!(diff, "-{line}"));
                let _ = new.map(|line| writeln!(diff, "+{line}"));
            }
        }
    }
    panic!("golden/{name}.txt differs; ACKADEMY_BLESS=1 accepts this:\n{diff}");
}

/// Significant digits, so that a table shows behaviour and not the last bit.
fn digits(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
    format!("{value:.decimals$}")
}

/// Throughput in Mb/s, mean RTT above the propagation in ms, share of packets lost, time-outs.
fn cells(outcome: &Outcome) -> String {
    let flow = &outcome.flows[0];
    let lost = flow.dropped_packets as f64 / flow.sent_packets as f64;
    format!(
        "{:>8} {:>8} {:>9} {:>4}",
        digits(flow.delivered_bytes as f64 * 8e-6 / flow.active_s, 4),
        digits(flow.rtt_mean_ms - flow.base_rtt_ms, 3),
        digits(lost, 3),
        flow.timeouts
    )
}

const HEAD: &str = "    Mb/s delay ms      lost  RTO";

fn path(buffer: u32, loss: f64, controller: &str, sender: &str) -> String {
    format!(
        "duration_s = 60\n[dumbbell]\nrtt_ms = 60\n[dumbbell.bottleneck]\nrate_mbps = 10\n\
         queue = {{ kind = \"drop_tail\", packets = {buffer} }}\n\
         loss = {{ kind = \"bernoulli\", ratio = {loss} }}\n\
         [[flow]]\ncontroller = \"{controller}\"\nsender = {{ {sender} }}\n"
    )
}

#[test]
fn buffers_and_losses() {
    for (name, sender) in [("sack", ""), ("ns2", "recovery = \"ns2\"")] {
        let mut table = format!(
            "# One flow, 10 Mb/s, 60 ms (BDP 50 packets of 1500 bytes), 60 s, sender `{name}`.\n\
             {:<16} {:>6} {:>6} {HEAD}\n",
            "controller", "buffer", "loss"
        );
        for spec in controllers::ALL.iter().filter(|spec| spec.runs_on_defaults()) {
            for buffer in [5, 50, 200] {
                for loss in [0.0, 1e-3, 1e-2] {
                    let outcome = run(&path(buffer, loss, spec.name, sender));
                    let cells = cells(&outcome);
                    let _ = writeln!(table, "{:<16} {buffer:>6} {loss:>6} {cells}", spec.name);
                }
            }
        }
        golden(&format!("buffers_and_losses_{name}"), &table);
    }
}

const QUEUES: &[(&str, &str)] = &[
    ("drop_tail", "kind = \"drop_tail\", packets = 100"),
    ("red", "kind = \"red\", min_packets = 10, max_packets = 30, packets = 100"),
    ("codel", "kind = \"codel\", packets = 100"),
    ("fq_codel", "kind = \"fq_codel\", packets = 100"),
    ("pie", "kind = \"pie\", packets = 100"),
    ("dualpi2", "kind = \"dualpi2\", packets = 100"),
    ("step", "kind = \"step\", mark_packets = 20, packets = 100"),
];

#[test]
fn queues_and_marks() {
    let mut table = format!(
        "# Four flows, 20 Mb/s, 40 ms, 30 s: mean per flow; the queue's marks and mean wait.\n\
         {:<12} {:<10} {:>8} {:>8} {:>9} {:>7} {:>7}\n",
        "controller", "queue", "ecn", "Mb/s", "lost", "marks", "wait ms"
    );
    for controller in ["new_reno", "cubic"] {
        for (name, queue) in QUEUES {
            for ecn in ["off", "classic"] {
                if *name == "drop_tail" && ecn == "classic" {
                    continue;
                }
                let always = ["step", "dualpi2"].contains(name);
                let mark = if ecn == "off" || always { "" } else { ", ecn = true" };
                let outcome = run(&format!(
                    "duration_s = 30\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\n\
                     rate_mbps = 20\nqueue = {{ {queue}{mark} }}\n\
                     [[flow]]\ncount = 4\nstart_step_s = 0.1\ncontroller = \"{controller}\"\n\
                     sender = {{ ecn = \"{ecn}\" }}\n"
                ));
                let link = &outcome.links[0];
                let _ = writeln!(
                    table,
                    "{controller:<12} {name:<10} {ecn:>8} {:>8} {:>9} {:>7} {:>7}",
                    digits(link.delivered_bytes as f64 * 8e-6 / 30.0 / 4.0, 4),
                    digits(link.queue_drops as f64 / link.arrived_packets as f64, 3),
                    link.marked_packets,
                    digits(link.wait_mean_ms, 3),
                );
            }
        }
    }
    golden("queues_and_marks", &table);
}

#[test]
fn switches_of_the_sender() {
    let mut table = format!(
        "# CUBIC, 10 Mb/s, 60 ms, 50 packets, loss 0.005, 60 s; one switch of [sender] at a time.\n\
         {:<36} {HEAD}\n",
        "switch"
    );
    for switch in [
        "",
        "rack = false",
        "tlp = false",
        "prr = false",
        "rack = false, tlp = false, prr = false",
        "pacing = true",
        "ack_every = 1",
        "initial_cwnd_packets = 2",
        "rto_min_ms = 1000",
        "recovery = \"ns2\"",
        "recovery = \"ns2\", deflation = false",
        "recovery = \"ns2\", impatient = false",
    ] {
        let cells = cells(&run(&path(50, 0.005, "cubic", switch)));
        let _ = writeln!(table, "{switch:<36} {cells}");
    }
    golden("switches_of_the_sender", &table);
}

#[test]
fn transfers() {
    let mut table = "# Fixed transfers, 20 Mb/s, 40 ms, 40 packets: completion in ms (new_reno, \
                     cubic), without and with 1 % loss.\n   bytes  reno     cubic    reno 1%  cubic 1%\n"
        .to_owned();
    for bytes in [1000, 15_000, 100_000, 1_000_000, 10_000_000] {
        let _ = write!(table, "{bytes:>8}");
        for loss in [0.0, 0.01] {
            for controller in ["new_reno", "cubic"] {
                let outcome = run(&format!(
                    "duration_s = 200\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\n\
                     rate_mbps = 20\nqueue = {{ kind = \"drop_tail\", packets = 40 }}\n\
                     loss = {{ kind = \"bernoulli\", ratio = {loss} }}\n\
                     [[flow]]\ncontroller = \"{controller}\"\n\
                     traffic = {{ kind = \"fixed\", bytes = {bytes} }}\n"
                ));
                assert_eq!(outcome.flows[0].transfers, 1);
                let _ = write!(table, "  {:<7}", digits(outcome.flows[0].fct_mean_ms, 4));
            }
        }
        let trimmed = table.trim_end().len();
        table.truncate(trimmed);
        table.push('\n');
    }
    golden("transfers", &table);
}
