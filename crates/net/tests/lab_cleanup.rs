//! The lab leaves nothing behind, however it ends. Needs root, TUN and BPF `struct_ops`.
mod lab_machine;

use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy_net::lab::hosts::Hosts;
use ackademy_net::lab::plan::{Family, Plan};
use lab_machine::{leftovers, machine, output, start};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::Child;
use std::time::Duration;

const LONG: &str = "duration_s = 60\n[dumbbell]\nrtt_ms = 20\n\
                    bottleneck = { rate_mbps = 10 }\n[[flow]]\n";

/// Waits until the run's hosts and congestion control are there.
fn wait_until_up(child: &Child) {
    for _ in 0..200 {
        let there = leftovers(child.id());
        if there.iter().any(|name| *name == format!("ack{}", child.id())) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the run is not up after 10 s");
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).expect("a child of ours");
}

#[test]
fn an_interrupted_run_says_so_and_leaves_nothing() {
    let Some(_machine) = machine() else { return };
    for by in [Signal::SIGINT, Signal::SIGTERM] {
        let child = start(&["run", "-"], LONG);
        let pid = child.id();
        wait_until_up(&child);
        signal(&child, by);
        let output = child.wait_with_output().expect("it can be waited for");
        assert_eq!(output.status.code(), Some(130));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "ackademyd: interrupted\n");
        assert!(output.stdout.is_empty(), "half a result is none");
        assert_eq!(leftovers(pid), Vec::<String>::new(), "after {by}");
    }
}

#[test]
fn what_a_killed_run_leaves_the_next_command_removes() {
    let Some(_machine) = machine() else { return };
    let mut child = start(&["run", "-"], LONG);
    let pid = child.id();
    wait_until_up(&child);
    signal(&child, Signal::SIGKILL);
    child.wait().expect("it can be waited for");
    assert!(leftovers(pid).iter().any(|name| name.ends_with("-s0")), "a name outlives its owner");
    let (_, cleaned) = output(&["clean"], "");
    assert!(cleaned.status.success());
    let said = String::from_utf8_lossy(&cleaned.stdout);
    assert!(said.contains(&format!("removed ackademy-{pid}-s0\n")), "{said}");
    assert_eq!(leftovers(pid), Vec::<String>::new());
}

#[test]
fn a_panic_takes_the_hosts_down() {
    let Some(_machine) = machine() else { return };
    let pid = std::process::id();
    let network = Scenario::parse(LONG, "test").expect("a scenario").network;
    let plan = Plan::new(&network, Seed(1), Family::V4).expect("a plan");
    let panicked = std::panic::catch_unwind(|| {
        let _hosts = Hosts::new(&plan).expect("hosts");
        assert!(leftovers(pid).iter().any(|name| name.ends_with("-r0")), "they are there");
        panic!("as if something went wrong");
    });
    let panic = panicked.expect_err("it panicked");
    assert_eq!(panic.downcast_ref(), Some(&"as if something went wrong"));
    assert!(!leftovers(pid).iter().any(|name| name.starts_with("ackademy-")));
}

#[test]
fn up_stays_until_down() {
    let Some(_machine) = machine() else { return };
    let child = start(&["up", "-"], LONG);
    let pid = child.id();
    while !leftovers(pid).iter().any(|name| name.ends_with("-r0")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(output(&["down"], "").1.status.success());
    let said = child.wait_with_output().expect("it can be waited for");
    assert!(said.status.success());
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(said.contains("flow0: 198.18.0.1") && said.contains("-> 198.19.0.1"), "{said}");
    assert_eq!(leftovers(pid), Vec::<String>::new());
}

#[test]
fn what_cannot_be_run_is_one_line_and_touches_nothing() {
    let Some(_machine) = machine() else { return };
    let two_paths = "duration_s = 1\n[two_path]\nfirst = { rate_mbps = 1 }\n\
                     second = { rate_mbps = 1 }\n[[flow]]\nmultipath = true\n";
    let cases: [(&str, &[&str], &str); 7] = [
        ("duration_s = -1\n", &[], "-:1: duration_s"),
        (two_paths, &[], "MPTCP is not supported"),
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
