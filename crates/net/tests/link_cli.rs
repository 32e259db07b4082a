//! `ackademyd link` as a program: what it runs, how it ends, what it leaves. Needs root and TUN.
use crate::common::bench::owner;
use crate::common::machine::{makes_links, wait_until};
use ackademy_net::namespace::path_of;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ackademyd"));
    command.arg("link").args(arguments).stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// A link that runs until it is told to end; killed when dropped.
struct Running(Child);

impl Running {
    /// Returns once `sign` holds.
    fn new(arguments: &[&str], sign: impl Fn(&Child) -> bool) -> Self {
        let child = command(arguments).stderr(Stdio::null()).spawn().expect("the program");
        let running = Self(child);
        wait_until("the link is up", || sign(&running.0));
        running
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).expect("it runs");
    }

    fn wait(&mut self) -> ExitStatus {
        self.0.wait().expect("a child")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The namespaces that a process of this id makes.
fn ends(pid: u32) -> [String; 2] {
    [format!("ackademy-{pid}-left"), format!("ackademy-{pid}-right")]
}

fn has_ends(pid: u32) -> bool {
    ends(pid).iter().any(|name| path_of(name).exists())
}

/// The device of the right end is the last thing made.
fn is_up(child: &Child) -> bool {
    let [_, right] = ends(child.id());
    let show = ["-n", &right, "addr", "show", "dev", "ackademy0", "to", "fd77::2"];
    let shown = Command::new("ip").args(show).output().expect("iproute2");
    shown.status.success() && !shown.stdout.is_empty()
}

#[test]
fn a_command_runs_in_the_left_namespace_and_the_link_ends_with_it() {
    if !makes_links() {
        return;
    }
    let addresses = "ip -brief addr show dev ackademy0; echo pid $PPID";
    let done = output(&["--delay", "5ms", "--", "sh", "-c", addresses]);
    let shown = text(&done.stdout);
    assert!(done.status.success(), "{done:?}");
    assert!(shown.contains("10.77.0.1/24 fd77::1/64"), "{shown}");
    let pid = shown.rsplit("pid ").next().and_then(|pid| pid.trim().parse().ok());
    assert!(!has_ends(pid.expect("a pid")), "{shown}");
    assert!(text(&done.stderr).contains("late   p50"), "{done:?}");
}

#[test]
fn the_command_s_failure_is_the_link_s() {
    if !makes_links() {
        return;
    }
    let done = output(&["--", "false"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).ends_with("the command ended with exit status: 1\n"), "{done:?}");
}

#[test]
fn signals_end_the_link_and_remove_its_namespaces() {
    if !makes_links() {
        return;
    }
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut link = Running::new(&["--rate", "10mbit"], is_up);
        link.signal(signal);
        assert_eq!(link.wait().code(), Some(0), "{signal}");
        assert!(!has_ends(link.0.id()), "{signal}");
    }
}

#[test]
fn an_interrupted_command_is_ended_too() {
    if !makes_links() {
        return;
    }
    let file = std::env::temp_dir().join(format!("ackademy-linktest-{}", std::process::id()));
    let path = file.to_str().expect("UTF-8");
    let script = format!("echo $$ > {path}; exec sleep 1000");
    let pid = || std::fs::read_to_string(path).ok()?.trim().parse::<u32>().ok();
    let mut link = Running::new(&["--", "sh", "-c", &script], |_| pid().is_some());
    let sleeper = pid().expect("just seen");
    link.signal(Signal::SIGTERM);
    assert_eq!(link.wait().code(), Some(130));
    std::fs::remove_file(path).expect("made above");
    assert!(!Path::new(&format!("/proc/{sleeper}")).exists());
    assert!(!has_ends(link.0.id()));
}

#[test]
fn what_kill_9_left_is_removed_by_the_next_link() {
    if !makes_links() {
        return;
    }
    let mut link = Running::new(&[], is_up);
    link.signal(Signal::SIGKILL);
    link.wait();
    // The link of another test may sweep first.
    assert!(output(&["--", "true"]).status.success());
    assert!(!has_ends(link.0.id()));
}

#[test]
fn existing_namespaces_are_used_and_left_as_they_were() {
    if !makes_links() {
        return;
    }
    let owner = owner();
    let [left, right] = ["a", "b"].map(|side| owner.create(side).expect("root"));
    let ends = ["--left", left.name(), "--right", right.name()];
    let done = output(&[&ends[..], &["--", "ip", "addr", "show", "dev", "ackademy0"]].concat());
    assert!(done.status.success(), "{done:?}");
    for side in [&left, &right] {
        let devices = ["-n", side.name(), "-brief", "link"];
        let devices = Command::new("ip").args(devices).output().expect("iproute2").stdout;
        assert_eq!(text(&devices).lines().count(), 1, "only lo: {}", text(&devices));
    }
}

#[test]
fn between_existing_namespaces_capabilities_will_do() {
    const KEPT: &str = "-all,+net_admin,+sys_admin";
    // Machines without udev keep the device to root's own: a namespace of mounts has one that anybody may open.
    const OPEN_TUN: &str =
        "mount -t tmpfs tmpfs /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec \"$@\"";
    if !makes_links() {
        return;
    }
    let owner = owner();
    let [left, right] = ["c", "d"].map(|side| owner.create(side).expect("root"));
    // Where a user without rights may run it.
    let program =
        std::env::temp_dir().join(format!("ackademy-linktest-caps-{}", std::process::id()));
    std::fs::copy(env!("CARGO_BIN_EXE_ackademyd"), &program).expect("room for a copy");
    let done = Command::new("unshare")
        .args(["--mount", "sh", "-c", OPEN_TUN, "sh", "setpriv"])
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args(["--inh-caps", KEPT, "--ambient-caps", KEPT, "--bounding-set", KEPT])
        .arg(&program)
        .args(["link", "--left", left.name(), "--right", right.name(), "--", "true"])
        .output();
    std::fs::remove_file(&program).expect("made above");
    let done = done.expect("util-linux");
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn what_is_wrong_is_said_in_one_line_that_names_it() {
    let refused = |arguments: &[&str]| {
        let done = output(arguments);
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        text(&done.stderr).lines().next().unwrap_or_default().to_owned()
    };
    let rate = refused(&["--rate", "0mbit"]);
    assert!(rate.starts_with("ackademyd: --rate (Mb/s) = 0: allowed is"), "{rate}");
    let unit = refused(&["--delay", "40"]);
    assert!(unit.contains("'40' for '--delay <TIME>': allowed is"), "{unit}");
    if makes_links() {
        let namespace = refused(&["--left", "nonesuch"]);
        assert!(namespace.contains(&*path_of("nonesuch").to_string_lossy()));
        let program = refused(&["--", "/nonesuch"]);
        assert!(program.starts_with("ackademyd: /nonesuch: No such file"), "{program}");
    }
}
