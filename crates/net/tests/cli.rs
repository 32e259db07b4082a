//! What `ackademyd` says, and how it ends, before it touches anything.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn ackademyd(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ackademyd"));
    command.args(words).stdin(Stdio::null()).output().expect("it was built with the tests")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_name_that_is_no_file_name_is_refused() {
    for name in [".", "..", "a.b", "../x", "Reno", "a23456789012345x"] {
        for words in [&["kernel"][..], &["kernel", "status"], &["kernel", "remove"]] {
            let output = ackademyd(&[words, &["--name", name]].concat());
            let complaint = complaint(&output);
            assert_eq!(output.status.code(), Some(2), "{complaint}");
            assert!(complaint.contains("allowed are 1 to 15 of a-z, 0-9"), "{complaint}");
        }
    }
    for name in ["..", "../../proc/1/ns/net", "/proc/1/ns/net"] {
        let output = ackademyd(&["link", "--rate", "1mbit", "--left", name]);
        let complaint = complaint(&output);
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains("no `/`, not `.` or `..`"), "{complaint}");
    }
}

#[test]
fn a_bench_without_capabilities_names_them() {
    if !nix::unistd::geteuid().is_root() {
        return; // an ordinary user's process has none to drop
    }
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-all", env!("CARGO_BIN_EXE_ackademyd"), "bench"])
        .output()
        .expect("util-linux");
    let complaint = complaint(&output);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    for capability in ["CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"] {
        assert!(complaint.contains(capability), "{complaint}");
    }
}

#[test]
fn no_help_advises_what_the_documentation_forbids() {
    let help = said(&ackademyd(&["kernel", "--help"]));
    assert!(!help.contains("sysctl") && !help.contains("tcp_congestion_control"), "{help}");
    assert!(help.contains("not as the system's default"), "{help}");
}

#[test]
fn every_command_that_runs_something_has_examples() {
    for words in [
        &["kernel"][..],
        &["link"],
        &["lab", "run"],
        &["lab", "up"],
        &["quic", "serve"],
        &["quic", "fetch"],
        &["bench"],
        &["man"],
    ] {
        let help = said(&ackademyd(&[words, &["--help"]].concat()));
        assert!(help.contains("Examples:\n  ackademyd "), "{words:?}: {help}");
    }
}

#[test]
fn every_command_has_a_page_in_the_manual() {
    let folder = Folder::new("man");
    assert!(ackademyd(&["man", "--to", folder.text()]).status.success());
    for page in [
        "",
        "-kernel",
        "-kernel-status",
        "-kernel-remove",
        "-link",
        "-lab-run",
        "-quic-serve",
        "-bench",
    ] {
        let file = folder.0.join(format!("ackademyd{page}.1"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    let page = said(&ackademyd(&["man", "lab", "run"]));
    assert_eq!(page, fs::read_to_string(folder.0.join("ackademyd-lab-run.1")).expect("written"));
    assert!(page.contains("lateness") && page.contains("Examples:"), "{page}");
    let unknown = ackademyd(&["man", "lab", "walk"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(complaint(&unknown).contains("allowed is one of run, up, down, clean"));
}

#[test]
fn a_full_standard_output_is_one_line() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else { return }; // a machine without it
    let output = Command::new(env!("CARGO_BIN_EXE_ackademyd"))
        .arg("licenses")
        .stdout(full)
        .output()
        .expect("it was built with the tests");
    let complaint = complaint(&output);
    assert_eq!((output.status.code(), complaint.lines().count()), (Some(1), 1), "{complaint}");
    assert!(complaint.contains("standard output: No space left on device"), "{complaint}");
}

#[test]
fn a_standard_error_that_takes_nothing_changes_no_exit_status() {
    let status = |stderr: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ackademyd"));
        let wrong = command.args(["link", "--rate", "0mbit"]).stderr(stderr);
        wrong.status().expect("it was built with the tests").code()
    };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert_eq!(status(writer.into()), Some(2));
    if let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") {
        assert_eq!(status(full.into()), Some(2));
    }
}

#[test]
fn a_lab_that_serves_no_controller_refuses_one() {
    for words in [&["--cc", "own_queue"][..], &["--cc", "kernel:cubic", "--param", "x=1"]] {
        let output = ackademyd(&[&["lab", "up", "-"], words].concat());
        let complaint = complaint(&output);
        assert_eq!((output.status.code(), complaint.lines().count()), (Some(2), 1), "{complaint}");
        let refused = format!("--cc {}: `lab up` serves no controller", words[1]);
        assert!(complaint.contains(&refused), "{complaint}");
    }
    let alone = ackademyd(&["lab", "up", "-", "--param", "alpha=2"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(complaint(&alone).contains("--param alpha=2: `lab up` serves no controller"));
}

#[test]
fn a_link_from_a_namespace_to_itself_is_refused() {
    let output = ackademyd(&["link", "--left", "x", "--right", "x"]);
    let complaint = complaint(&output);
    assert_eq!((output.status.code(), complaint.lines().count()), (Some(2), 1), "{complaint}");
    assert!(complaint.contains("--left x --right x: allowed are two namespaces"), "{complaint}");
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_run() {
    let folder = Folder::new("out");
    let scenario = folder.0.join("one.toml");
    fs::write(
        &scenario,
        "duration_s = 60\n[dumbbell]\nrtt_ms = 20\nbottleneck = { rate_mbps = 10 }\n[[flow]]\n",
    )
    .expect("a file");
    let scenario = scenario.to_str().expect("of letters");
    for (out, why) in [
        (folder.text(), "this is a folder"),
        ("/nowhere/x", "in a folder that exists"),
        ("/proc/x", "/proc/x: "),
    ] {
        let output = ackademyd(&["lab", "run", scenario, "--out", out]);
        let complaint = complaint(&output);
        assert_eq!((output.status.code(), complaint.lines().count()), (Some(2), 1), "{complaint}");
        assert!(complaint.contains(&format!("--out {out}: ")) && complaint.contains(why));
    }
}

/// A folder of its own, gone when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(label: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("ackademyd-cli-{label}-{}", std::process::id()));
        fs::create_dir(&path).expect("a folder to write in");
        Self(path)
    }

    pub(crate) fn text(&self) -> &str {
        Path::to_str(&self.0).expect("of letters")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
