//! What tshark reads in a pcapng file, beside what the simulation counts.
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::sim::record::Outcome;
use ackademy::sim::tap::{Point, Tap};
use ackademy::sim::{Sim, builtin};
use ackademy::transport::config::Ecn;
use ackademy::transport::packet::{Kind, Packet};
use ackademy::units::Time;
use ackademy_capture::pcap::{At, IpVersion, Settings};
use ackademy_capture::{Failure, Flow, Output, Pcap};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

#[path = "../../net/tests/common/require.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod require;

/// Of the drawn networks.
const SEED: u64 = 11;

/// What tshark is asked of every packet.
const FIELDS: [&str; 19] = [
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment",
    "tcp.checksum.status",
    "ip.checksum.status",
    "udp.checksum.status",
    "ip.dsfield.ecn",
    "ipv6.tclass.ecn",
    "tcp.options.sack.count",
    "tcp.options.mptcp.subtype",
    "mptcp.stream",
    "_ws.malformed",
    "_ws.expert.message",
    "tcp.srcport",
    "tcp.len",
    "tcp.flags",
    "tcp.options.timestamp.tsval",
    "frame.time_epoch",
];
/// Remarks of tshark that packets of a faultless TCP get, too.
const REMARKS: [&str; 9] = [
    "Duplicate ACK",
    "D-SACK Sequence",
    "This frame is a (suspected)",
    "Connection establish",
    "Connection finish",
    "This frame initiates the connection closing",
    "This frame undergoes the connection closing",
    "TCP window specified by the receiver is now completely full",
    // At the receiver alone: what was lost before it.
    "Previous segment(s) not captured",
];
const RECEIVER_PORT: &str = "9";
/// Before the first tick of timestamps.
const CLOCK: u64 = 1000;

/// What the ends of a simulation see.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    data_sent: u64,
    acks_received: u64,
    selective: u64,
    data_received: u64,
    marked: u64,
    marked_on_first_link: u64,
    datagrams: u64,
}

#[derive(Clone, Default)]
struct Counter(Arc<Mutex<Counts>>);

impl Counter {
    fn counts(&self) -> Counts {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Counter {
    fn packet(&mut self, at: Time, point: Point, packet: &Packet) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (packet.kind, point) {
            (Kind::Data, Point::Sent) => counts.data_sent += 1,
            (Kind::Data, Point::Received) => {
                counts.data_received += 1;
                counts.marked += u64::from(packet.ce);
            }
            (Kind::Data, Point::Leaves(0)) if at <= DURATION => {
                counts.marked_on_first_link += u64::from(packet.ce);
            }
            (Kind::Ack, Point::Received) => {
                counts.acks_received += 1;
                counts.selective += u64::from(packet.sack.iter().any(|block| block.1 > 0));
            }
            (Kind::Datagram, Point::Sent) => counts.datagrams += 1,
            _ => {}
        }
    }
}

/// Of every simulation here.
const DURATION: Time = Time(3_000_000_000);

/// A network that is captured.
struct Case {
    name: String,
    text: String,
    ip: IpVersion,
}

fn case(name: &str, links: &str, flow: &str) -> Case {
    let text = format!("duration_s = 3\n{links}\n[[flow]]\n{flow}\n");
    let ip = if name.ends_with('6') { IpVersion::V6 } else { IpVersion::V4 };
    Case { name: name.to_owned(), text, ip }
}

/// A dumbbell of 10 Mb/s and 40 ms whose bottleneck has these lines.
fn dumbbell(lines: &str) -> String {
    format!("[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 10\n{lines}")
}

fn two_paths(lines: &str) -> String {
    format!(
        "[two_path.first]\nrate_mbps = 8\ndelay_ms = 10\nqueue = {{ kind = \"drop_tail\", packets = 30 }}\n\
         {lines}\n[two_path.second]\nrate_mbps = 4\ndelay_ms = 40\n\
         queue = {{ kind = \"drop_tail\", packets = 30 }}"
    )
}

const LOSES: &str = "loss = { kind = \"bernoulli\", ratio = 0.01 }";
const DROPS: &str = "queue = { kind = \"drop_tail\", packets = 25 }";
const MARKS: &str = "queue = { kind = \"red\", min_packets = 5, max_packets = 20, packets = 100, \
    ecn = true, max_ratio = 0.2 }";
/// Names, lines of a dumbbell's bottleneck and what follows it, lines of a flow.
const DUMBBELLS: &[(&str, &str, &str)] = &[
    ("drops", DROPS, "controller = \"cubic\""),
    ("loss 6", LOSES, "controller = \"bbr1\""),
    (
        "bursts",
        "loss = { kind = \"gilbert_elliott\", good_to_bad = 0.005, bad_to_good = 0.3 }",
        "controller = \"cubic\"",
    ),
    (
        "reordering 6",
        "reorder = { ratio = 0.03, low_ms = 1, high_ms = 30 }",
        "controller = \"cubic\"",
    ),
    (
        "copies",
        "queue = { kind = \"drop_tail\", packets = 25 }\nduplicate_ratio = 0.02",
        "controller = \"cubic\"",
    ),
    ("delayed acknowledgements", DROPS, "controller = \"cubic\"\nsender = { ack_every = 8 }"),
    (
        "lost acknowledgements",
        "[dumbbell.reverse]\nrate_mbps = 1\nloss = { kind = \"bernoulli\", ratio = 0.2 }",
        "controller = \"cubic\"\nsender = { ack_every = 1 }",
    ),
    ("no timestamps", LOSES, "controller = \"cubic\"\nsender = { timestamps = false }"),
    (
        "handshake, large packets",
        LOSES,
        "controller = \"cubic\"\nsender = { handshake = true, packet_bytes = 9000 }",
    ),
    ("ns-2", LOSES, "controller = \"new_reno\"\nsender = { recovery = \"ns2\" }"),
    ("classic ECN", MARKS, "controller = \"cubic\"\nsender = { ecn = \"classic\" }"),
    ("accurate ECN 6", MARKS, "controller = \"cubic\"\nsender = { ecn = \"accurate\" }"),
    (
        "low latency",
        "queue = { kind = \"dualpi2\", packets = 100 }",
        "controller = \"prague\"\nsender = { ecn = \"l4s\" }",
    ),
    (
        "short transfers",
        DROPS,
        "controller = \"cubic\"\ntraffic = { kind = \"poisson\", per_s = 10, mean_bytes = 40000 }",
    ),
    (
        "short segments 6",
        LOSES,
        "controller = \"cubic\"\n\
         traffic = { kind = \"request_response\", response_bytes = 70001, mean_think_s = 0.01 }",
    ),
    (
        "receive window",
        LOSES,
        "controller = \"cubic\"\nsender = { receiver_window_packets = 20, quick_acks = 16 }",
    ),
    (
        "datagrams",
        DROPS,
        "traffic = { kind = \"cbr\", rate_mbps = 5, packet_bytes = 700 }\n\
         [[flow]]\ncontroller = \"cubic\"",
    ),
];
/// The same over two paths, of which the first has these lines.
const TWO_PATHS: &[(&str, &str, &str)] = &[
    ("two subflows", LOSES, "controller = \"olia\"\nmultipath = true"),
    (
        "redundant subflows 6",
        LOSES,
        "controller = \"lia\"\nmultipath = true\ntraffic = { kind = \"fixed\", bytes = 1000001 }\n\
         mptcp = { scheduler = \"redundant\" }",
    ),
];

fn cases() -> Vec<Case> {
    let mut rng = Rng::new(SEED);
    let one_path = DUMBBELLS.iter().map(|(name, lines, flow)| case(name, &dumbbell(lines), flow));
    let two = TWO_PATHS.iter().map(|(name, lines, flow)| case(name, &two_paths(lines), flow));
    let drawn = (0..6).map(|number| drawn(number, &mut rng));
    one_path.chain(two).chain(drawn).collect()
}

/// A network drawn at random.
fn drawn(number: u64, rng: &mut Rng) -> Case {
    const QUEUES: [&str; 5] = [
        "kind = \"drop_tail\", packets = 15",
        "kind = \"codel\", packets = 100, ecn = true",
        "kind = \"fq_codel\", packets = 100, ecn = true",
        "kind = \"pie\", packets = 100, ecn = true",
        "kind = \"step\", packets = 60, mark_packets = 20",
    ];
    const CONTROLLERS: [&str; 4] = ["cubic", "bbr3", "new_reno", "copa"];
    const ECN: [&str; 3] = ["off", "classic", "accurate"];
    let mut one_of = |all: &[&'static str]| all[rng.below(all.len() as u64) as usize];
    let (queue, controller, ecn) = (one_of(&QUEUES), one_of(&CONTROLLERS), one_of(&ECN));
    let mut lines = format!("queue = {{ {queue} }}\n");
    if rng.below(2) == 0 {
        let ratio = rng.uniform() * 0.03;
        let _ = writeln!(lines, "loss = {{ kind = \"bernoulli\", ratio = {ratio} }}");
    }
    if rng.below(2) == 0 {
        lines += "reorder = { ratio = 0.01, low_ms = 1, high_ms = 20 }\n";
    }
    let is_multipath = rng.below(2) == 0;
    let (links, more) = if is_multipath {
        let lines = lines.replace("queue", "# queue");
        (two_paths(&lines), "multipath = true\n")
    } else {
        (dumbbell(&lines), "count = 2\n")
    };
    let sender = format!(
        "sender = {{ ecn = \"{ecn}\", ack_every = {}, packet_bytes = {} }}",
        1 + rng.below(4),
        300 + rng.below(1200)
    );
    let version = if rng.below(2) == 0 { " 6" } else { "" };
    let flow = format!("controller = \"{controller}\"\n{more}{sender}");
    case(&format!("drawn {number} of seed {SEED}{version}"), &links, &flow)
}

/// Files of a run, and what there was.
struct Run {
    files: Vec<PathBuf>,
    outcome: Outcome,
    counts: Counts,
    flows: Vec<Flow>,
}

const SENDER: usize = 0;
const RECEIVER: usize = 1;
const LINK: usize = 2;

fn run(number: usize, case: &Case) -> Run {
    let parsed = Scenario::parse(&case.text, "test");
    let network = parsed.unwrap_or_else(|error| panic!("{error}\n{}", case.text)).network;
    assert_eq!(network.duration, DURATION);
    let seed = Seed(number as u64);
    let mut sim = Sim::new(&network, seed, &mut builtin).expect("built-in controllers");
    let flows = Flow::all(&network, seed, &sim);
    let places = [At::Sender, At::Receiver, At::Link(0, network.links[0].name.clone())];
    let failure = Failure::default();
    let mut files = Vec::new();
    for (place, at) in places.into_iter().enumerate() {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{number}-{place}.pcapng"));
        let file = File::create(&path).expect("the folder for tests");
        let settings = Settings {
            at,
            // Payloads of one file are whole, so that their checksums can be checked.
            snaplen: if place == SENDER { 1 << 16 } else { 128 },
            ip: case.ip,
            until: network.duration,
            about: case.name.clone(),
        };
        let out = Output::new(Box::new(file), failure.clone());
        let pcap = Pcap::new(out, settings, flows.clone()).expect("packets that fit into IP");
        sim.add_tap(Box::new(pcap));
        files.push(path);
    }
    let counter = Counter::default();
    sim.add_tap(Box::new(counter.clone()));
    sim.run_until(network.duration);
    let outcome = sim.finish();
    assert!(failure.take().is_none());
    Run { files, outcome, counts: counter.counts(), flows }
}

/// A packet as tshark reads it.
struct Frame(BTreeMap<&'static str, String>);

impl Frame {
    fn get(&self, field: &str) -> &str {
        &self.0[field]
    }

    fn has(&self, field: &str) -> bool {
        !self.get(field).is_empty()
    }

    fn is_of_receiver(&self) -> bool {
        self.get("tcp.srcport") == RECEIVER_PORT
    }

    fn is_data(&self) -> bool {
        !self.is_of_receiver() && self.get("tcp.len").parse().unwrap_or(0) > 0
    }

    fn flags(&self) -> u32 {
        u32::from_str_radix(self.get("tcp.flags").trim_start_matches("0x"), 16).unwrap_or(0)
    }

    fn is_syn_or_fin(&self) -> bool {
        self.flags() & 3 != 0
    }

    fn is_marked(&self) -> bool {
        self.get("ip.dsfield.ecn") == "3" || self.get("ipv6.tclass.ecn") == "3"
    }

    fn is_retransmission(&self) -> bool {
        self.has("tcp.analysis.retransmission") || self.has("tcp.analysis.out_of_order")
    }
}

fn tshark(path: &Path) -> Vec<Frame> {
    let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
    let options = ["tcp.check_checksum", "ip.check_checksum", "udp.check_checksum"];
    let options = options.map(|option| format!("{option}:TRUE"));
    let output = Command::new("tshark")
        .args(["-n", "-r"])
        .arg(path)
        .args(options.iter().flat_map(|option| ["-o", option]))
        .args(["-T", "fields", "-E", "separator=|", "-E", "occurrence=a"])
        .args(fields)
        .output()
        .expect("tshark runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", path.display());
    let text = String::from_utf8_lossy(&output.stdout);
    let frame =
        |line: &str| Frame(FIELDS.into_iter().zip(line.split('|').map(String::from)).collect());
    text.lines().map(frame).collect()
}

fn count(frames: &[Frame], is_it: impl Fn(&Frame) -> bool) -> u64 {
    frames.iter().filter(|frame| is_it(frame)).count() as u64
}

fn check_sound(case: &Case, frames: &[Frame]) {
    let Case { name, text, .. } = case;
    for (number, frame) in frames.iter().enumerate() {
        assert!(!frame.has("_ws.malformed"), "{name}: packet {number} is malformed\n{text}");
        for protocol in ["tcp", "ip", "udp"] {
            let status = frame.get(&format!("{protocol}.checksum.status"));
            assert_ne!(
                status, "0",
                "{name}: packet {number} has a bad checksum of {protocol}\n{text}"
            );
        }
        for remark in frame.get("_ws.expert.message").split(',').filter(|text| !text.is_empty()) {
            let is_known = REMARKS.iter().any(|known| remark.starts_with(known));
            assert!(is_known, "{name}: packet {number}: {remark}\n{text}");
        }
    }
}

fn check_sender(case: &Case, run: &Run, frames: &[Frame]) {
    let Case { name, text, .. } = case;
    let retransmitted: u64 = run.outcome.flows.iter().map(|row| row.retransmitted_packets).sum();
    let repeated = count(frames, Frame::is_retransmission);
    assert_eq!(repeated, retransmitted, "{name}: retransmissions\n{text}");
    let sent = count(frames, Frame::is_data);
    let syns = count(frames, |frame| frame.flags() & 2 != 0 && !frame.is_of_receiver());
    let is_ns2 = text.contains("ns2");
    assert_eq!(sent + u64::from(is_ns2) * syns, run.counts.data_sent, "{name}: data\n{text}");
    let selective = count(frames, |frame| frame.has("tcp.options.sack.count"));
    assert_eq!(selective, run.counts.selective, "{name}: selective acknowledgements\n{text}");
    let made_up = |frame: &Frame| frame.is_syn_or_fin() && !is_ns2;
    let acks = count(frames, |frame| frame.is_of_receiver() && !made_up(frame));
    assert_eq!(acks, run.counts.acks_received, "{name}: acknowledgements\n{text}");
    let datagrams = count(frames, |frame| frame.has("udp.checksum.status"));
    assert_eq!(datagrams, run.counts.datagrams, "{name}: datagrams\n{text}");
    assert_eq!(count(frames, |frame| frame.has("tcp.analysis.lost_segment")), 0, "{name}\n{text}");
    assert_eq!(
        count(frames, |frame| frame.has("tcp.analysis.ack_lost_segment")),
        0,
        "{name}\n{text}"
    );
    check_clocks(case, frames);
}

/// The receiver's clock is that of when an acknowledgement left: one way, of 10 ms or more, ago.
fn check_clocks(case: &Case, frames: &[Frame]) {
    let is_ack = |frame: &&Frame| frame.is_of_receiver() && !frame.is_syn_or_fin();
    for frame in frames.iter().filter(is_ack) {
        let Ok(value) = frame.get("tcp.options.timestamp.tsval").parse::<u64>() else { continue };
        let now: f64 = frame.get("frame.time_epoch").parse().expect("a time");
        let ago_ms = now * 1e3 - (value - CLOCK) as f64;
        assert!((9.0..3000.0).contains(&ago_ms), "{}: {ago_ms}\n{}", case.name, case.text);
    }
}

fn check_receiver(case: &Case, run: &Run, frames: &[Frame]) {
    let Case { name, text, .. } = case;
    let marked = count(frames, |frame| frame.is_marked() && frame.is_data());
    assert_eq!(marked, run.counts.marked, "{name}: marks\n{text}");
    let received = count(frames, |frame| {
        frame.is_data() || frame.flags() & 2 != 0 && text.contains("ns2") && !frame.is_of_receiver()
    });
    assert_eq!(received, run.counts.data_received, "{name}: data\n{text}");
    let acks = || frames.iter().filter(|frame| frame.is_of_receiver() && !frame.is_syn_or_fin());
    let echo = |frame: &Frame| frame.flags() >> 6 & 7;
    match run.flows[0].plan.sender.ecn {
        Ecn::Off => assert!(acks().all(|frame| echo(frame) == 0), "{name}\n{text}"),
        Ecn::Classic => {
            let echoes = acks().filter(|frame| echo(frame) == 1).count();
            let reduced = count(frames, |frame| frame.is_data() && echo(frame) == 2);
            assert_eq!(marked > 0, echoes > 0, "{name}\n{text}");
            assert!(
                reduced <= marked && (reduced > 0 || marked < 2),
                "{name}: {reduced} {marked}\n{text}"
            );
        }
        Ecn::Accurate | Ecn::L4s if run.flows.len() == 1 => {
            let last = acks().next_back().expect("acknowledgements");
            assert_eq!(u64::from(echo(last)), (5 + marked) % 8, "{name}\n{text}");
        }
        Ecn::Accurate | Ecn::L4s => {}
    }
}

fn check_link(case: &Case, run: &Run, frames: &[Frame]) {
    check_sound(case, frames);
    let marked = count(frames, |frame| frame.is_marked() && frame.is_data());
    assert_eq!(marked, run.counts.marked_on_first_link, "{}: marks\n{}", case.name, case.text);
}

fn check_subflows(case: &Case, run: &Run, frames: &[Frame]) {
    let Case { name, text, .. } = case;
    if !run.flows[0].is_subflow() {
        assert_eq!(
            count(frames, |frame| frame.has("tcp.options.mptcp.subtype")),
            0,
            "{name}\n{text}"
        );
        return;
    }
    let lacking = count(frames, |frame| !frame.has("tcp.options.mptcp.subtype"));
    assert_eq!(lacking, 0, "{name}: packets without an option\n{text}");
    let of_subtype =
        |subtype: &str| count(frames, |frame| frame.get("tcp.options.mptcp.subtype") == subtype);
    // SYN, SYN-ACK, ACK and the first data; SYN, SYN-ACK and ACK.
    assert_eq!((of_subtype("0"), of_subtype("1")), (4, 3), "{name}\n{text}");
    // The first SYN has no key yet.
    let strangers = count(frames, |frame| frame.get("mptcp.stream") != "0");
    assert!(strangers <= 1, "{name}: {strangers} packets of another connection\n{text}");
}

#[test]
fn tshark_finds_what_the_simulation_counts_and_nothing_to_complain_of() {
    let lacking = Command::new("tshark").arg("--version").output().is_err();
    if !require::has(
        "tshark",
        &lacking.then(|| "tshark".to_owned()).into_iter().collect::<Vec<_>>(),
    ) {
        return;
    }
    let (mut retransmitted, mut marked, mut selective) = (0, 0, 0);
    for (number, case) in cases().iter().enumerate() {
        let run = run(number, case);
        let read = [SENDER, RECEIVER].map(|place| tshark(&run.files[place]));
        for frames in &read {
            check_sound(case, frames);
        }
        check_sender(case, &run, &read[SENDER]);
        check_receiver(case, &run, &read[RECEIVER]);
        check_subflows(case, &run, &read[SENDER]);
        if run.counts.marked > 0 {
            check_link(case, &run, &tshark(&run.files[LINK]));
        }
        retransmitted += count(&read[SENDER], Frame::is_retransmission);
        marked += run.counts.marked;
        selective += run.counts.selective;
        for path in run.files {
            fs::remove_file(path).expect("the file is there");
        }
    }
    assert!(retransmitted > 500 && marked > 100 && selective > 2000);
}
