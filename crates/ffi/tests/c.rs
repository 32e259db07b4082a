//! What a C compiler makes of `include/ackademy.h` is what Rust has, and a C program governs a flow by it.
#![cfg(target_os = "linux")]
use ackademy::control::{Ack, LossKind, PacketEventKind, Send};
use ackademy::transport::delivery_rate::{DeliveryRate, SentState};
use ackademy::transport::prr::Prr;
use ackademy_ffi::{Answer, Flow, LossRecord, PacketRecord};
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../../net/tests/common/require.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod require;

/// Name in C, size, fields with their offsets.
type Layout = (&'static str, usize, Vec<(&'static str, usize)>);

/// Of all fields: a pattern without one of them does not compile.
macro_rules! layout {
    ($name:literal, $record:ident { $($field:ident),* }) => {{
        let _ = |record: $record| { let $record { $($field: _),* } = record; };
        ($name, size_of::<$record>(), vec![$((stringify!($field), offset_of!($record, $field))),*])
    }};
}

/// In the order of `ACKADEMY_RECORD_`.
fn layouts() -> [Layout; 9] {
    [
        layout!("flow", Flow { mss, initial_cwnd, initial_ssthresh, paces, start, seed }),
        layout!(
            "ack",
            Ack {
                now,
                sent_at,
                rtt,
                srtt,
                min_rtt,
                rtt_max,
                batch_rtt_min,
                acked,
                ce_marked,
                inflight,
                prior_inflight,
                delivered,
                delivery_rate,
                tx_inflight,
                delivered_since,
                lost_since,
                app_limited,
                recovering,
                cwnd_limited
            }
        ),
        layout!(
            "loss",
            LossRecord { now, sent_at, lost, inflight, tx_inflight, lost_since, app_limited, kind }
        ),
        layout!("send", Send { now, size, inflight, retransmission, order }),
        layout!("answer", Answer { cwnd, pacing_rate, ssthresh, timer }),
        ("rate", size_of::<DeliveryRate>(), vec![("opaque", 0)]),
        ("sent", size_of::<SentState>(), vec![("opaque", 0)]),
        layout!("prr", Prr { recover_fs, delivered, out, budget }),
        layout!("packet", PacketRecord { now, number, sent_at, size, kind }),
    ]
}

const PACKET_KINDS: [(&str, PacketEventKind); 4] = [
    ("PACKET_SENT", PacketEventKind::Sent),
    ("PACKET_ACKED", PacketEventKind::Acked),
    ("PACKET_LOST", PacketEventKind::Lost),
    ("PACKET_DISCARDED", PacketEventKind::Discarded),
];

const KINDS: [(&str, LossKind); 7] = [
    ("GAP", LossKind::Gap),
    ("MORE", LossKind::More),
    ("TIMEOUT", LossKind::Timeout),
    ("DEFLATE", LossKind::Deflate),
    ("IDLE", LossKind::Idle),
    ("SPURIOUS", LossKind::Spurious),
    ("TIMEOUT_AGAIN", LossKind::TimeoutAgain),
];

fn package(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// A folder with the library under the names that a linker and a loader look for.
fn installed(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a new folder");
    let built = std::env::current_exe().expect("this test").with_file_name("libackademy_ffi.so");
    for name in ["libackademy.so", "libackademy.so.1"] {
        std::os::unix::fs::symlink(&built, folder.join(name)).expect("a new link");
    }
    folder
}

/// The C compiler: `cc`, or what `CC` says, with its options.
fn cc() -> Command {
    let words = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().expect("CC names a compiler"));
    command.args(words);
    command
}

/// Compiles a program against the header and the library in `folder`; warnings are errors.
fn compiled(folder: &Path, source: &Path, flags: &[&str]) -> PathBuf {
    let program = folder.join(source.file_stem().expect("it has a name"));
    let mut cc = cc();
    cc.args(["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    cc.args(flags).arg("-I").arg(package("include")).arg(source).arg("-o").arg(&program);
    cc.arg("-L").arg(folder).arg("-lackademy").arg(format!("-Wl,-rpath,{}", folder.display()));
    let done = cc.output().expect("cc is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

/// What a program says, or the error line of one that fails.
fn said(command: &mut Command) -> Result<String, String> {
    let done = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    if done.status.success() { Ok(text(done.stdout)) } else { Err(text(done.stderr)) }
}

/// The fields of a record as the header declares them.
fn declared<'h>(header: &'h str, record: &str) -> Vec<&'h str> {
    let end = header.find(&format!("}} ackademy_{record};")).expect("the header has the record");
    let begin = header[..end].rfind('{').expect("it begins");
    let lines = header[begin..end].lines().map(str::trim);
    let fields = lines.filter_map(|line| line.strip_prefix("uint64_t ")?.split([';', '[']).next());
    fields.collect()
}

#[test]
fn the_header_has_the_records_of_rust_field_by_field() {
    let header = std::fs::read_to_string(package("include/ackademy.h")).expect("the header");
    let (mut code, mut expected) = (String::new(), String::new());
    for (number, (record, size, fields)) in layouts().into_iter().enumerate() {
        let names: Vec<&str> = fields.iter().map(|&(name, _)| name).collect();
        assert_eq!(declared(&header, record), names, "ackademy_{record}");
        let upper = record.to_uppercase();
        let sizes = format!("ACKADEMY_RECORD_{upper}, sizeof(ackademy_{record})");
        let _ = writeln!(code, "SHOW({sizes}, ackademy_sizeof(ACKADEMY_RECORD_{upper}));");
        let _ = writeln!(expected, "{number} {size} {size}");
        for (name, offset) in fields {
            let _ = writeln!(code, "SHOW(offsetof(ackademy_{record}, {name}), 0, 0);");
            let _ = writeln!(expected, "{offset} 0 0");
        }
    }
    for (name, kind) in PACKET_KINDS {
        let _ = writeln!(code, "SHOW(ACKADEMY_{name}, 0, 0);");
        let _ = writeln!(expected, "{} 0 0", kind as u64);
    }
    for (name, kind) in KINDS {
        let _ = writeln!(code, "SHOW(ACKADEMY_{name}, 0, 0);");
        let _ = writeln!(expected, "{} 0 0", kind as u64);
    }
    let _ = writeln!(code, "SHOW(ackademy_abi(), ACKADEMY_ABI, 0);");
    let _ = writeln!(expected, "{0} {0} 0", ackademy_ffi::ABI);
    let folder = installed("layout");
    let source = folder.join("layout.c");
    let text = format!(
        "#include <ackademy.h>\n#include <stdio.h>\n\
         #define SHOW(a, b, c) printf(\"%zu %zu %zu\\n\", (size_t)(a), (size_t)(b), (size_t)(c))\n\
         int main(void) {{\n{code}return 0;\n}}\n"
    );
    std::fs::write(&source, text).expect("it is written");
    let program = compiled(&folder, &source, &[]);
    assert_eq!(said(&mut Command::new(program)).expect("it runs"), expected);
}

#[test]
fn the_header_names_every_function_of_the_library_and_no_other() {
    let header = std::fs::read_to_string(package("include/ackademy.h")).expect("the header");
    let in_header = |line: &str| {
        let name = line.split_once('(')?.0.rsplit([' ', '*']).next()?;
        (name.starts_with("ackademy_") && !line.starts_with([' ', '/'])).then(|| name.to_owned())
    };
    let mut in_header: Vec<String> = header.lines().filter_map(in_header).collect();
    let mut in_rust = Vec::new();
    for file in ["src/lib.rs", "src/prr.rs", "src/rate.rs"] {
        let source = std::fs::read_to_string(package(file)).expect("a source file");
        let names = source.split("extern \"C\" fn ").skip(1);
        in_rust.extend(names.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())));
    }
    in_header.sort();
    in_rust.sort();
    assert_eq!(in_header, in_rust);
}

#[test]
fn a_c_program_governs_a_flow_by_every_kind_of_controller() {
    let folder = installed("flow");
    let program = compiled(&folder, &package("examples/flow.c"), &[]);
    let policy = package("../../data/policies/flagship");
    let flagship = format!("policy={}", policy.display());
    for (name, settings) in [
        ("cubic", ""),
        ("cubic", "beta=0.8"),
        ("bbr3", ""),
        ("vivace", ""),
        ("own_queue", ""),
        ("lia", ""),
        ("policy", flagship.as_str()),
    ] {
        let line = said(Command::new(&program).args([name, settings])).expect("it runs");
        let mbps: f64 = line.split(' ').next().and_then(|word| word.parse().ok()).expect(&line);
        assert!((17.0..20.1).contains(&mbps), "{name} {settings}: {line}");
        assert!(line.ends_with("fell back: 0\n"), "{name} {settings}: {line}");
    }
    for (name, settings, named) in [
        ("none", "", "controller none: allowed is bbr1, "),
        ("cubic", "beta=2", "cubic: `beta` = 2: allowed is "),
        ("cubic", "beta", "setting beta: allowed is NAME=VALUE"),
        ("policy", "policy=/nowhere", "policy: `policy` = \"/nowhere\": allowed is "),
    ] {
        let line = said(Command::new(&program).args([name, settings])).expect_err("it is refused");
        assert!(line.starts_with(&format!("flow: {named}")), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn a_c_program_refuses_a_library_of_another_abi_in_one_line() {
    let folder = installed("abi");
    let program = compiled(&folder, &package("examples/flow.c"), &[]);
    let (source, other) = (folder.join("other.c"), folder.join("other.so"));
    std::fs::write(&source, "unsigned ackademy_abi(void) { return 99; }\n").expect("it is written");
    let mut cc = cc();
    cc.args(["-shared", "-fPIC", "-o"]).arg(&other).arg(&source);
    assert!(cc.status().expect("cc is there").success());
    let done = Command::new(&program).env("LD_PRELOAD", &other).output().expect("it starts");
    assert_eq!(done.status.code(), Some(2));
    let line = String::from_utf8(done.stderr).expect("text");
    assert_eq!(line, "flow: the library has ABI 99; allowed is 1\n");
}

#[test]
fn the_header_is_also_c_plus_plus() {
    let folder = installed("plus");
    let source = folder.join("plus.c");
    std::fs::write(&source, "#include <ackademy.h>\n").expect("it is written");
    let done = Command::new("c++")
        .args(["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .args(["-fsyntax-only", "-I"])
        .arg(package("include"))
        .arg(&source)
        .output()
        .expect("c++ is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_program_of_the_guide_runs() {
    let page = std::fs::read_to_string(package("../../docs/guide/c-abi.md")).expect("the page");
    let (code, _) = page.split_once("```c\n").and_then(|(_, rest)| rest.split_once("```")).unwrap();
    let folder = installed("guide");
    let source = folder.join("guide.c");
    std::fs::write(&source, code).expect("it is written");
    let program = compiled(&folder, &source, &["-Wno-missing-field-initializers"]);
    assert_eq!(said(&mut Command::new(program)).expect("it runs"), "16500 bytes\n");
}

#[test]
fn valgrind_finds_no_error_and_no_leak() {
    let is_there = Command::new("valgrind").arg("--version").output().is_ok();
    let lacking = if is_there { Vec::new() } else { vec!["valgrind".to_owned()] };
    if !require::has("valgrind", &lacking) {
        return;
    }
    let folder = installed("valgrind");
    let program = compiled(&folder, &package("examples/flow.c"), &["-DSECONDS=3"]);
    for name in ["cubic", "bbr3", "lia"] {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]).arg(&program);
        said(valgrind.arg(name)).expect(name);
    }
}
