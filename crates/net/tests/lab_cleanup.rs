//! The lab leaves nothing behind, however it ends. Needs root, TUN and BPF `struct_ops`.
use crate::common::lab::{leftovers, machine, output, start};
use crate::common::machine::{has_iperf3, wait_until};
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::units::Span;
use ackademy_net::clock;
use ackademy_net::lab::hosts::Hosts;
use ackademy_net::lab::plan::{Family, Plan};
use libbpf_rs::query::{MapInfo, MapInfoIter};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::panic::AssertUnwindSafe;
use std::process::{Child, Output};
use std::thread::sleep;
use std::time::Duration;

const LONG: &str = "duration_s = 60\n[dumbbell]\nrtt_ms = 20\n\
                    bottleneck = { rate_mbps = 10 }\n[[flow]]\n";

/// A lab that runs until it is told to end; killed when dropped.
struct Running(Option<Child>);

impl Running {
    fn new(command: &str) -> Self {
        Self::with(&[command, "-"])
    }

    fn with(words: &[&str]) -> Self {
        Self(Some(start(words, LONG)))
    }

    /// A run whose hosts and congestion control are there.
    fn run() -> Self {
        let running = Self::new("run");
        let name = format!("ack{}", running.pid());
        wait_until("the run is up", || leftovers(running.pid()).contains(&name));
        running
    }

    fn pid(&self) -> u32 {
        self.0.as_ref().expect("until it is waited for").id()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).expect("a child of ours");
    }

    fn wait(mut self) -> Output {
        let child = self.0.take().expect("waited for once");
        child.wait_with_output().expect("it can be waited for")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn an_interrupted_run_says_so_and_leaves_nothing() {
    let Some(_machine) = machine() else { return };
    for by in [Signal::SIGINT, Signal::SIGTERM] {
        let run = Running::run();
        let pid = run.pid();
        run.signal(by);
        let output = run.wait();
        assert_eq!(output.status.code(), Some(130));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "ackademyd: interrupted\n");
        assert!(output.stdout.is_empty(), "half a result is none");
        assert_eq!(leftovers(pid), Vec::<String>::new(), "after {by}");
    }
}

#[test]
fn what_a_killed_run_leaves_the_next_command_removes() {
    let Some(_machine) = machine() else { return };
    let run = Running::run();
    let pid = run.pid();
    run.signal(Signal::SIGKILL);
    run.wait();
    assert!(leftovers(pid).iter().any(|name| name.ends_with("-s0")), "a name outlives its owner");
    let (_, cleaned) = output(&["clean"], "");
    assert!(cleaned.status.success());
    let said = String::from_utf8_lossy(&cleaned.stdout);
    assert!(said.contains(&format!("removed ackademy-{pid}-s0\n")), "{said}");
    assert_eq!(leftovers(pid), Vec::<String>::new());
}

#[test]
fn what_a_killed_run_had_in_the_kernel_is_gone_within_seconds() {
    let Some(_machine) = machine() else { return };
    let mut clients = vec!["own"];
    if has_iperf3() {
        clients.push("iperf3");
    }
    for client in clients {
        let run = Running::with(&["run", "-", "--client", client]);
        let name = format!("ack{}", run.pid());
        wait_until("the run is up", || leftovers(run.pid()).contains(&name));
        // Data is on its way: sockets that nobody holds any more would send it for minutes.
        sleep(Duration::from_secs(2));
        assert!(controls(&name) > 0, "it is there");
        run.signal(Signal::SIGKILL);
        run.wait();
        assert!(output(&["clean"], "").1.status.success());
        let cleaned = clock::now();
        wait_until("its maps and programs are gone", || controls(&name) == 0);
        let took = clock::now().since(cleaned);
        assert!(took < Span::from_millis(10_000), "{client}: {took}");
    }
}

/// How many congestion controls of this name the kernel holds, also of those that no new socket can choose.
fn controls(name: &str) -> usize {
    let holds = |map: &MapInfo| {
        let map = MapHandle::from_map_id(map.id).ok();
        let value = map.and_then(|map| map.lookup(&[0; 4], MapFlags::ANY).ok().flatten());
        value.is_some_and(|value| value.windows(name.len()).any(|part| part == name.as_bytes()))
    };
    let maps = MapInfoIter::default().filter(|map| map.ty == MapType::StructOps);
    maps.filter(holds).count()
}

#[test]
fn a_panic_takes_the_hosts_down() {
    let Some(_machine) = machine() else { return };
    let pid = std::process::id();
    let network = Scenario::parse(LONG, "test").expect("a scenario").network;
    let plan = Plan::new(&network, Seed(1), Family::V4).expect("a plan");
    // A plan may hold what files hold, of any type; nobody looks at it after the panic.
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let _hosts = Hosts::new(&plan).expect("hosts");
        assert!(leftovers(pid).iter().any(|name| name.ends_with("-r0")), "they are there");
        panic!("as if something went wrong");
    }));
    let panic = panicked.expect_err("it panicked");
    assert_eq!(panic.downcast_ref(), Some(&"as if something went wrong"));
    assert!(!leftovers(pid).iter().any(|name| name.starts_with("ackademy-")));
}

#[test]
fn up_stays_until_down() {
    let Some(_machine) = machine() else { return };
    let up = Running::new("up");
    let pid = up.pid();
    let lock = format!("/run/ackademy-{pid}.lock");
    let may_be_ended = || std::fs::read_to_string(&lock).is_ok_and(|text| text == "up\n");
    wait_until("the lab is up", may_be_ended);
    assert!(output(&["down"], "").1.status.success());
    let said = up.wait();
    assert!(said.status.success());
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(said.contains("flow0: 198.18.0.1") && said.contains("-> 198.19.0.1"), "{said}");
    assert!(said.contains("not served: new_reno of the scenario: `lab up` serves no"), "{said}");
    assert_eq!(leftovers(pid), Vec::<String>::new());
}

#[test]
fn what_cannot_be_run_is_one_line_and_touches_nothing() {
    let Some(_machine) = machine() else { return };
    let two_paths = "duration_s = 1\n[two_path]\nfirst = { rate_mbps = 1 }\n\
                     second = { rate_mbps = 1 }\n[[flow]]\nmultipath = true\ncount = 201\n";
    let cases: [(&str, &[&str], &str); 7] = [
        ("duration_s = -1\n", &[], "-:1: duration_s"),
        (two_paths, &[], "allowed on the kernel are 200"),
        (LONG, &["--cc", "kernel:westwood9"], "kernel:cubic"),
        (LONG, &["--cc", "mine.py:Mine"], "allowed on the kernel"),
        (LONG, &["--cc", "cubic", "--param", "beta=7"], "--cc cubic"),
        (LONG, &["--set", "dumbbell.rtt_ms=x"], "dumbbell.rtt_ms"),
        (LONG, &["--out", "/nowhere/result.json"], "--out /nowhere/result.json"),
    ];
    for (scenario, words, expected) in cases {
        let (pid, output) = output(&[&["run", "-"], words].concat(), scenario);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert!(complaint.contains(expected), "{complaint}");
        assert_eq!(leftovers(pid), Vec::<String>::new());
    }
}
