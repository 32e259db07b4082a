//! A library governs flows as the core's own controllers do, one that fails gives its flow to CUBIC, and the guests that
//! `make guests` has built hold what every controller holds.
#![cfg(target_os = "linux")]
use ackademy::control::{
    Ack, CWND_MAX, Controller, Coupled, FlowInfo, Loss, LossKind, PacketEvent, PacketEventKind,
    Send, SendAction,
};
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim::record::{FlowRow, Outcome};
use ackademy::sim::{self, Sim};
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy_guests::{Guest, Library, abi};
use proptest::prelude::*;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

#[path = "../../core/tests/support"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod support {
    pub mod files;
    pub mod table;
}
#[path = "../../net/tests/common/require.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod require;

fn package(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// A scenario of `data/scenarios`, cut at so many seconds.
fn scenario(name: &str, seconds: u64) -> Scenario {
    let folder = package("../../data/scenarios");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("a scenario");
    let mut load = |file: &str, _| std::fs::read(folder.join(file)).map_err(|e| e.to_string());
    let cut = [("duration_s".to_owned(), seconds.to_string())];
    Scenario::parse_with(&text, name, &cut, &mut load).expect("a scenario")
}

/// What governs every flow of a run.
#[derive(Clone)]
enum Scheme {
    Own(&'static str),
    Guest(Arc<Library>, String),
}

fn run(scenario: &Scenario, scheme: &Scheme, seed: u64) -> Outcome {
    let mut network = scenario.network.clone();
    if let Scheme::Own(name) = scheme {
        network.connections.iter_mut().for_each(|plan| (*name).clone_into(&mut plan.controller));
        return sim::run(&network, Seed(seed)).expect("a controller of the core");
    }
    let Scheme::Guest(library, name) = scheme.clone() else { unreachable!("it is a guest") };
    let mut build = |_: &_| -> Result<Box<dyn Coupled>, ()> {
        Ok(Box::new(Guest::per_flow(Arc::clone(&library), name.clone())))
    };
    let mut sim = Sim::new(&network, Seed(seed), &mut build).expect("it is built");
    sim.run_until(network.duration);
    sim.finish()
}

fn mbps(flow: &FlowRow) -> f64 {
    flow.delivered_bytes as f64 * 8e-6 / flow.active_s
}

/// The library of the core under the header's functions, which cargo builds for these tests.
fn own_library() -> Arc<Library> {
    let test = std::env::current_exe().expect("this test");
    Library::open(&test.with_file_name("libackademy_ffi.so")).expect("it is a guest")
}

/// `guest.c` with these flags of the compiler.
fn compiled(name: &str, flags: &[&str]) -> PathBuf {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]);
    cc.args(flags).arg("-I").arg(package("../ffi/include")).arg(package("tests/guest.c"));
    let done = cc.arg("-o").arg(&library).output().expect("cc is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    library
}

/// Those that are built, by library and name.
fn built() -> Vec<(&'static str, String, Arc<Library>)> {
    let mut found = Vec::new();
    for source in ["linux", "s2n"] {
        let path = package("../../build/guests").join(source).with_extension("so");
        if path.exists() {
            let library = Library::open(&path).expect("a guest");
            let names = library.names().iter();
            found.extend(names.map(|name| (source, name.clone(), Arc::clone(&library))));
        }
    }
    let lacking = if found.is_empty() { vec!["`make guests`".to_owned()] } else { Vec::new() };
    require::has("guests", &lacking);
    found
}

/// That the fields of a record are where the C library has them.
macro_rules! same_places {
    ($record:ident { $($field:ident),* }) => {
        assert_eq!(size_of::<abi::$record>(), size_of::<ackademy_ffi::$record>());
        $(assert_eq!(
            offset_of!(abi::$record, $field),
            offset_of!(ackademy_ffi::$record, $field),
            stringify!($field)
        );)*
    };
}

#[test]
fn the_records_and_the_number_of_the_abi_are_the_c_librarys() {
    assert_eq!(abi::ABI, ackademy_ffi::ABI);
    assert_eq!((abi::OK, abi::HOLD), (ackademy_ffi::OK, ackademy_ffi::HOLD));
    same_places!(Flow { mss, initial_cwnd, initial_ssthresh, paces, start, seed });
    same_places!(Answer { cwnd, pacing_rate, ssthresh, timer });
}

#[test]
fn a_controller_of_the_core_decides_alike_behind_the_c_abi() {
    for name in ["cubic", "bbr3", "vivace"] {
        for file in ["deep_buffer", "random_loss"] {
            let scenario = scenario(file, 10);
            let guest = Scheme::Guest(own_library(), name.to_owned());
            let seen = [Scheme::Own(name), guest].map(|scheme| {
                let flows = run(&scenario, &scheme, 3).flows;
                flows
                    .iter()
                    .map(|f| (f.delivered_bytes, f.sent_packets, f.recoveries))
                    .collect::<Vec<_>>()
            });
            assert_eq!(seen[0], seen[1], "{name} on {file}");
        }
    }
}

#[test]
fn a_flow_of_a_guest_that_fails_is_cubics_from_then_on() {
    let scenario = scenario("deep_buffer", 20);
    let window = |fail: &str| {
        let library =
            Library::open(&compiled(&format!("fails{fail}"), &[&format!("-DFAIL_AT={fail}")]));
        let fixed = Scheme::Guest(library.expect("a guest"), "fixed".to_owned());
        mbps(&run(&scenario, &fixed, 1).flows[0])
    };
    // Twenty packets of 1500 bytes in 40 ms are 6 Mb/s of the link's 20.
    assert!((5.8..6.1).contains(&window("~0ull")), "{}", window("~0ull"));
    assert!(window("100") > 15.0, "{}", window("100"));
    assert!(window("0") > 18.0, "{}", window("0"));
}

#[test]
fn a_file_that_is_no_guest_is_refused_in_one_line() {
    let text = package("Cargo.toml");
    for (path, named) in [
        (PathBuf::from("/nowhere/linux.so"), "no library that can be loaded"),
        (text, "no library that can be loaded"),
        (compiled("old", &["-DREPORTED_ABI=99"]), "its ABI is 99; allowed is 1"),
        (compiled("mute", &["-DWITHOUT_CONTROL"]), "it lacks ackademy_control"),
    ] {
        let Err(line) = Library::open(&path) else { panic!("{} is refused", path.display()) };
        assert!(line.contains(named) && line.starts_with(path.to_str().expect("text")), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn a_built_guest_uses_clean_paths_and_repeats_itself_also_beside_others() {
    let scenario = scenario("fair_share", 12);
    for (source, name, library) in built() {
        let scheme = Scheme::Guest(library, name.clone());
        let alone = format!("{:?}", run(&scenario, &scheme, 5).flows);
        let beside = std::thread::scope(|scope| {
            let runs = [5, 6, 5].map(|seed| {
                let (scenario, scheme) = (&scenario, &scheme);
                scope.spawn(move || format!("{:?}", run(scenario, scheme, seed).flows))
            });
            runs.map(|run| run.join().expect("no panic"))
        });
        assert_eq!(alone, beside[0], "{source}:{name}");
        assert_eq!(alone, beside[2], "{source}:{name}");
        let flows = run(&scenario, &scheme, 5).flows;
        let all: f64 = flows.iter().map(|flow| flow.delivered_bytes as f64 * 8e-6 / 12.0).sum();
        assert!(all > 40.0, "{source}:{name}: {all} Mb/s");
    }
}

/// Of a packet that was sent at the time that is its number.
fn tell(guest: &mut Guest, now: Time, number: u64, kind: PacketEventKind) {
    if guest.wants_packets() {
        let (sent_at, size) = (Time(number), Bytes(1500));
        guest.on_packet(&PacketEvent { now, number, sent_at, size, kind });
    }
}

/// RFC 5681 section 3.1, RFC 9438 sections 4.6 and 4.8.
#[test]
fn a_built_cubic_lowers_its_window_for_a_loss_and_closes_it_for_a_time_out() {
    for (source, name, library) in built().into_iter().filter(|(_, name, _)| name == "cubic") {
        let what = format!("{source}:{name}");
        let mut guest = Guest::new(library, &name, &support::table::ordinary_flow());
        let (rtt, size) = (Span::from_millis(40), Bytes(1500));
        for number in 0..10 {
            let now = Time(number);
            let action = guest.on_send(&Send { now, size, ..Send::default() });
            assert_eq!(action, SendAction::Send, "{what}");
            tell(&mut guest, now, number, PacketEventKind::Sent);
        }
        let first = guest.control().cwnd;
        for number in 0..8 {
            let (sent_at, now) = (Time(number), Time(number) + rtt);
            tell(&mut guest, now, number, PacketEventKind::Acked);
            let ack =
                Ack { now, sent_at, rtt, srtt: rtt, min_rtt: rtt, acked: size, ..Ack::default() };
            guest.on_ack(&Ack { cwnd_limited: 1, prior_inflight: first, ..ack });
        }
        let grown = guest.control().cwnd;
        let (now, sent_at, lost, inflight) = (Time(9) + rtt, Time(9), size, grown);
        let loss = Loss { now, sent_at, lost, inflight, ..Loss::default() };
        tell(&mut guest, now, 8, PacketEventKind::Lost);
        guest.on_loss(&loss);
        let reduced = guest.control().cwnd;
        let now = now + rtt * 9;
        tell(&mut guest, now, 9, PacketEventKind::Lost);
        guest.on_loss(&Loss { now, kind: LossKind::Timeout, ..loss });
        let closed = guest.control().cwnd;
        let seen = [first, grown, reduced, closed];
        assert!(first < grown && reduced < grown && closed <= size * 2, "{what}: {seen:?}");
        assert!(reduced.0 as f64 > 0.6 * grown.0 as f64, "{what}: {seen:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_sequence_of_records_breaks_a_built_guest(
        records in prop::collection::vec(
            (support::table::ack(), support::table::loss(), 0_u8..10, 0_u64..30),
            1..300,
        ),
        seed in any::<u64>(),
    ) {
        for (source, name, library) in built() {
            let flow = FlowInfo { seed, ..support::table::ordinary_flow() };
            let mut guest = Guest::new(library, &name, &flow);
            for (ack, loss, which, number) in &records {
                match which {
                    0 => guest.on_loss(loss),
                    1..4 => tell(&mut guest, ack.now, *number, PacketEventKind::Sent),
                    4..6 => tell(&mut guest, ack.now, *number, PacketEventKind::Acked),
                    6 => tell(&mut guest, ack.now, *number, PacketEventKind::Lost),
                    7 => tell(&mut guest, ack.now, *number, PacketEventKind::Discarded),
                    _ => guest.on_ack(ack),
                }
                let control = guest.control();
                prop_assert!(control.cwnd >= Bytes(1500) && control.cwnd <= CWND_MAX, "{source}:{name}");
                prop_assert!(control.pacing_rate > Rate(0), "{source}:{name}");
            }
        }
    }
}

type Bounds = [(&'static str, [f64; 3]); 6];

/// Scenarios of one flow, and by how much Linux's BBR and CUBIC may differ from ours there: throughput in per cent, mean
/// round trip in ms, loss in percentage points.
const CLOSE: Bounds = [
    ("deep_buffer", [0.1, 0.1, 0.01]),
    ("short_buffer", [0.2, 0.1, 0.05]),
    ("random_loss", [0.5, 0.3, 0.2]),
    ("policer", [0.3, 0.1, 1.0]),
    ("wifi", [0.3, 1.0, 0.05]),
    ("bursty_loss", [2.5, 0.3, 0.2]),
];

/// The same of its other controllers.
const NEAR: Bounds = [
    ("deep_buffer", [0.1, 1.0, 0.01]),
    ("short_buffer", [1.0, 0.2, 0.01]),
    ("random_loss", [2.5, 0.5, 0.05]),
    ("policer", [1.0, 0.1, 3.0]),
    ("wifi", [1.0, 0.3, 0.05]),
    ("bursty_loss", [3.0, 0.2, 0.1]),
];

#[test]
fn linuxs_controllers_agree_with_ours_on_paths_of_one_flow() {
    for (_, name, library) in built().into_iter().filter(|(source, ..)| *source == "linux") {
        let (ours, bounds) = match name.as_str() {
            "bbr" => ("bbr1", CLOSE),
            "cubic" => ("cubic", CLOSE),
            "illinois" => ("illinois", NEAR),
            "reno" => ("new_reno", NEAR),
            "vegas" => ("vegas", NEAR),
            other => panic!("no controller of ours is said to be as linux:{other}"),
        };
        let guest = Scheme::Guest(library, name);
        for (file, [percent, ms, points]) in bounds {
            let scenario = scenario(file, 60);
            for seed in [1, 2] {
                let [own, theirs] = [&Scheme::Own(ours), &guest].map(|scheme| {
                    let flow = &run(&scenario, scheme, seed).flows[0];
                    let loss = 100.0 * flow.dropped_packets as f64 / flow.sent_packets as f64;
                    (mbps(flow), flow.rtt_mean_ms, loss)
                });
                let apart = (own.0 / theirs.0 - 1.0).abs() * 100.0;
                let agrees = apart <= percent
                    && (own.1 - theirs.1).abs() <= ms
                    && (own.2 - theirs.2).abs() <= points;
                assert!(agrees, "{ours} on {file}, seed {seed}: {own:?}, Linux {theirs:?}");
            }
        }
    }
}
