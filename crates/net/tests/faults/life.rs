//! status, release, remove.
use crate::bed::{Bed, Daemon, SECOND, SOON, bounded, inside, must, print, wait_for};
use crate::traffic::{STEADY, Traffic};
use libbpf_rs::{MapCore, MapHandle};
use std::net::TcpListener;
use std::process::Command;

#[test]
fn status_shows_every_flow_while_it_runs() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    let traffic = Traffic::start(&bed, 3, STEADY);
    wait_for("decisions are obeyed", SOON, || {
        bed.status().flows.iter().filter(|flow| flow.decisions > 2).count() == 3
    });
    let text = String::from_utf8(bed.output(&["status"]).stdout).unwrap();
    assert!(text.contains(&format!("`{}`: process {}", bed.name, daemon.id())), "{text}");
    assert_eq!(text.matches("10.99.0.1:").count(), 3, "{text}");
    let json = bed.output(&["status", "--json"]).stdout;
    let status: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(status["daemon"], daemon.id());
    for flow in status["flows"].as_array().unwrap() {
        assert!(flow["samples"].as_u64() > Some(0), "{flow}");
        assert!(flow["srtt_ms"].as_f64() > Some(0.0), "{flow}");
        assert!(flow["cwnd_pkts"].as_u64() > Some(1), "{flow}");
    }
    assert!(status["latency"]["p99_us"].as_f64() > Some(0.0), "{status}");
    traffic.finish();
    wait_for("closed flows leave the table", SOON, || bed.status().flows.is_empty());
    daemon.stop();
    bed.finish();
}

#[test]
fn status_exits_with_3_where_nothing_decides() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    assert_eq!(bed.output(&["status"]).status.code(), Some(0));
    daemon.stop();
    for words in [&["status"][..], &["status", "--json"]] {
        let output = bed.output(words);
        assert_eq!(output.status.code(), Some(3));
        assert!(
            String::from_utf8(output.stdout).unwrap().contains(&bed.name),
            "the status is shown"
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said, format!("ackademyd: no daemon serves `{}`\n", bed.name));
    }
    bed.finish();
}

#[test]
fn status_sees_a_daemon_outside_of_its_pid_namespace() {
    let Some(bed) = Bed::new() else { return };
    let status = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]);
        let status = bed.ackademyd(&["status"]);
        command.arg(status.get_program()).args(status.get_args());
        bounded(command)
    };
    let daemon = bed.daemon(&[]);
    let output = status();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(": a process outside of this PID namespace"), "{said}");
    assert_eq!(output.status.code(), Some(0));
    daemon.stop();
    assert_eq!(status().status.code(), Some(3));
    bed.finish();
}

#[test]
fn a_hangup_ends_no_daemon_that_the_next_could_take_over_from() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    let traffic = Traffic::start(&bed, 1, STEADY);
    bed.wait_until_all(1, "agent");
    daemon.signal(nix::sys::signal::Signal::SIGHUP);
    let before = bed.status().counts.decisions;
    wait_for("decisions go on", SOON, || bed.status().counts.decisions > before + 100);
    assert_eq!((bed.status().daemon, bed.status().counts.fallbacks), (Some(daemon.id()), 0));
    traffic.finish();
    daemon.stop();
    bed.finish();
}

#[test]
fn a_daemon_in_a_time_namespace_has_the_kernels_clock() {
    let Some(bed) = Bed::new() else { return };
    let mut command = Command::new("unshare");
    command.args(["--time", "--monotonic", "1000000"]);
    let daemon = bed.ackademyd(&[]);
    command.arg(daemon.get_program()).args(daemon.get_args());
    let daemon = Daemon::start(command);
    let traffic = Traffic::start(&bed, 2, STEADY);
    wait_for("decisions are obeyed", SOON, || bed.status().counts.decisions > 100);
    let latency = bed.status().latency;
    assert!(latency.p50_us < 1e6, "{latency:?}");
    traffic.finish();
    let said = daemon.last_words();
    let answers = said.split("answers after p50 ").nth(1).expect(&said);
    let p50: u64 = answers.split(' ').next().unwrap().parse().unwrap();
    assert!(p50 > 0 && p50 < 1_000_000, "{said}");
    bed.finish();
}

#[test]
fn the_most_slots_fit_into_the_memory_of_the_unit() {
    let Some(bed) = Bed::new() else { return };
    let unit = include_str!("../../ackademyd.service");
    assert!(unit.contains("MemoryMax=256M"));
    let most = 1 << 19;
    assert_eq!(bed.output(&["--slots", &(most + 1).to_string()]).status.code(), Some(2));
    let daemon = bed.daemon(&["--slots", &most.to_string()]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let own: usize = anonymous.trim().trim_end_matches(" kB").parse().unwrap();
    let mut maps = 0;
    for name in ["decisions", "flows"] {
        let map = MapHandle::from_pinned_path(bed.pins().join(name)).unwrap();
        maps += (map.max_entries() * map.value_size()) as usize;
    }
    let all = own * 1024 + maps + most * 4;
    assert!(all < 200 << 20, "{} MiB", all >> 20);
    daemon.stop();
    bed.finish();
}

#[test]
fn release_moves_live_flows_and_listeners_to_the_kernels_cubic() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    let traffic = Traffic::start(&bed, 4, STEADY);
    let name = bed.name.clone();
    let listener = inside(&bed.namespace('b'), move || {
        let listener = TcpListener::bind(("10.99.0.2", 0)).unwrap();
        let congestion = nix::sys::socket::sockopt::TcpCongestion;
        nix::sys::socket::setsockopt(&listener, congestion, &name.into()).unwrap();
        listener
    });
    let listener = listener.join().unwrap();
    bed.wait_until_all(4, "agent");
    let output = bed.output(&["release"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "4 flows and 1 listening sockets handed to `cubic`\n");
    let sockets = print("ip", &["netns", "exec", &bed.namespace('a'), "ss", "-tin"]);
    assert_eq!(sockets.matches(" cubic ").count(), 4, "{sockets}");
    assert!(!sockets.contains(&bed.name), "{sockets}");
    assert!(bed.status().flows.is_empty());
    assert!(bed.registered(), "release leaves the name");
    let before = traffic.received();
    wait_for("the flows go on", SOON, || traffic.received() > before + 1_000_000);
    drop(listener);
    assert!(traffic.finish() < SECOND);
    daemon.stop();
    bed.finish();
}

#[test]
fn flows_in_a_namespace_that_nothing_leads_to_are_reported_and_go_on() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    let traffic = Traffic::start(&bed, 2, STEADY);
    bed.wait_until_all(2, "agent");
    let namespace = bed.status().flows[0].namespace;
    must("ip", &["netns", "delete", &bed.namespace('a')]);
    daemon.stop();
    let said = String::from_utf8(bed.output(&["remove"]).stdout).unwrap();
    assert!(said.starts_with("0 flows and 0 listening sockets"), "{said}");
    assert!(said.contains(&format!("2 flows left in network namespace {namespace}")), "{said}");
    let before = traffic.received();
    wait_for("the flows go on", SOON, || traffic.received() > before + 1_000_000);
    assert!(traffic.finish() < SECOND);
    bed.finish();
}

#[test]
fn remove_names_the_namespaces_that_still_have_it_as_default() {
    let Some(bed) = Bed::new() else { return };
    bed.daemon(&[]).stop();
    let end = bed.namespace('a');
    let default = |name: &str| {
        let setting = format!("net.ipv4.tcp_congestion_control={name}");
        must("ip", &["netns", "exec", &end, "sysctl", "-qw", &setting]);
    };
    default(&bed.name);
    let said = String::from_utf8(bed.output(&["remove"]).stdout).unwrap();
    assert_eq!(said.matches("still start with it: set net").count(), 1, "{said}");
    default("reno"); // as every namespace may
    bed.finish();
}

#[test]
fn release_to_an_unknown_congestion_control_names_the_known_ones() {
    let Some(bed) = Bed::new() else { return };
    bed.daemon(&[]).stop();
    let output = bed.output(&["release", "--cc", "nonesuch"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--cc nonesuch") && said.contains("cubic"), "{said}");
    bed.finish();
}

#[test]
fn remove_is_refused_under_a_daemon_and_repeatable_after_it() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    let output = bed.output(&["remove"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!("served by process {}", daemon.id())), "{said}");
    let traffic = Traffic::start(&bed, 2, STEADY);
    daemon.kill();
    for expected in ["2 flows and 0 listening sockets handed", "nothing is pinned in"] {
        let output = bed.output(&["remove"]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains(expected), "{said}");
        assert!(!bed.registered() && !bed.pins().exists());
    }
    assert!(traffic.finish() < SECOND);
    bed.finish();
}

#[test]
fn remove_cleans_up_whatever_is_left_of_the_pins() {
    const PINS: [&str; 6] = ["link", "settings", "records", "decisions", "flows", "totals"];
    let Some(bed) = Bed::new() else { return };
    for lost in [&PINS[1..], &PINS[1..2], &PINS[4..5], &PINS[..1]] {
        let daemon = bed.daemon(&[]);
        let traffic = Traffic::start(&bed, 2, STEADY);
        bed.wait_until_all(2, "agent");
        for pin in lost {
            std::fs::remove_file(bed.pins().join(pin)).unwrap();
        }
        daemon.kill();
        if lost[0] != "link" {
            let release = (lost[0] == "settings").then_some(&["release"][..]);
            for words in [&[][..], &["status"]].into_iter().chain(release) {
                let output = bed.output(words);
                let said = String::from_utf8(output.stderr).unwrap();
                assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
                assert!(said.contains(&format!("lost its pin `{}`", lost[0])), "{said}");
                assert!(said.contains("`ackademyd kernel remove`"), "{said}");
            }
        }
        // Without --name: what is left tells it.
        let mut remove = Command::new(env!("CARGO_BIN_EXE_ackademyd"));
        remove.args(["kernel", "remove", "--pins"]).arg(bed.pins());
        let output = bounded(remove);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{lost:?}: {output:?}");
        assert!(said.starts_with("2 flows and 0 listening sockets handed"), "{lost:?}: {said}");
        assert!(!bed.registered() && !bed.pins().exists(), "{lost:?}");
        assert!(traffic.finish() < SECOND);
        bed.daemon(&[]).stop();
        assert!(bed.output(&["remove"]).status.success());
    }
    bed.finish();
}

#[test]
fn what_may_not_be_looked_into_is_not_called_empty() {
    let Some(bed) = Bed::new() else { return };
    bed.daemon(&[]).stop();
    let program = bed.folder.with_extension("bin");
    std::fs::copy(env!("CARGO_BIN_EXE_ackademyd"), &program).unwrap();
    for word in ["status", "release", "remove"] {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}")]);
        command.args(["--clear-groups", "--bounding-set=-all"]).arg(&program);
        command.args(["kernel", word, "--name", &bed.name, "--pins"]).arg(bed.pins());
        let output = bounded(command);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{word}: {said}");
        assert!(said.contains("ermission denied") && said.contains("root"), "{word}: {said}");
        assert!(!said.contains("nothing is pinned"), "{word}: {said}");
    }
    std::fs::remove_file(&program).unwrap();
    bed.finish();
}

#[test]
fn the_daemon_serves_as_an_ordinary_user_with_two_capabilities() {
    let Some(bed) = Bed::new() else { return };
    std::os::unix::fs::chown(&bed.folder, Some(NOBODY), Some(NOBODY)).unwrap();
    let program = bed.folder.with_extension("bin");
    std::fs::copy(env!("CARGO_BIN_EXE_ackademyd"), &program).unwrap();
    let unit = include_str!("../../ackademyd.service");
    let ambient = unit.lines().find_map(|line| line.strip_prefix("AmbientCapabilities="));
    assert_eq!(ambient, Some("CAP_BPF CAP_PERFMON"));
    let capabilities = "+bpf,+perfmon";
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
    command.args(["--inh-caps", capabilities, "--ambient-caps", capabilities, "--no-new-privs"]);
    command.arg(&program).args(["kernel", "--name", &bed.name, "--pins"]).arg(bed.pins());
    let daemon = Daemon::start(command);
    std::fs::remove_file(&program).unwrap();
    let traffic = Traffic::start(&bed, 2, STEADY);
    bed.wait_until_all(2, "agent");
    assert!(traffic.finish() < SECOND);
    daemon.stop();
    bed.finish();
}

const NOBODY: u32 = 65_534;
