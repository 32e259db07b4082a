//! Starts that must fail, with a reason, and leave everything as it was.
use crate::bed::{Bed, SECOND, SOON, bounded, wait_for};
use crate::traffic::{STEADY, Traffic};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use std::ffi::OsStr;
use std::process::{Command, Output};

fn complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn a_second_daemon_is_told_who_serves() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    let said = complaint(&bed.output(&[]));
    assert!(said.contains(&format!("already served by process {}", daemon.id())), "{said}");
    daemon.stop();
    bed.finish();
}

#[test]
fn a_name_that_is_taken_elsewhere_is_refused() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ackademyd"));
    command.args(["kernel", "--name", &bed.name, "--pins"]).arg(bed.folder.join("other"));
    let said = complaint(&bounded(command));
    assert!(said.contains(&format!("a congestion control `{}` already", bed.name)), "{said}");
    assert!(!bed.folder.join("other").exists());
    daemon.stop();
    bed.finish();
}

#[test]
fn maps_of_another_version_are_left_alone_until_remove() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&[]);
    let traffic = Traffic::start(&bed, 2, STEADY);
    bed.wait_until_all(2, "agent");
    daemon.kill();
    let settings = MapHandle::from_pinned_path(bed.pins().join("settings")).unwrap();
    let mut value = settings.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap();
    value[..4].copy_from_slice(&999_u32.to_ne_bytes());
    settings.update(&[0; 4], &value, MapFlags::ANY).unwrap();
    for words in [&[][..], &["status"]] {
        let said = complaint(&bed.output(words));
        assert!(said.contains("version 999") && said.contains("kernel remove"), "{said}");
    }
    assert!(bed.registered());
    let said = String::from_utf8(bed.output(&["remove"]).stdout).unwrap();
    assert!(said.starts_with("2 flows"), "{said}");
    assert!(traffic.finish() < SECOND);
    bed.finish();
}

#[test]
fn other_slots_than_the_pinned_ones_are_refused() {
    let Some(bed) = Bed::new() else { return };
    bed.daemon(&["--slots", "8"]).stop();
    let said = complaint(&bed.output(&["--slots", "16"]));
    assert!(said.contains("slots 8, not 16"), "{said}");
    bed.daemon(&["--slots", "8", "--interval", "5ms"]).stop();
    bed.finish();
}

#[test]
fn a_start_that_was_cut_short_does_not_stop_the_next() {
    let Some(bed) = Bed::new() else { return };
    std::fs::create_dir(bed.pins()).unwrap();
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    let name: Option<&OsStr> = None;
    let mut map = MapHandle::create(MapType::Array, name, 4, 4, 1, &options).unwrap();
    map.pin(bed.pins().join("records")).unwrap();
    drop(map);
    assert!(complaint(&bed.output(&["status"])).contains("nothing is pinned"));
    bed.daemon(&[]).stop();
    assert!(bed.registered());
    bed.finish();
}

#[test]
fn a_folder_with_pins_of_others_is_not_used() {
    let Some(bed) = Bed::new() else { return };
    std::fs::create_dir_all(bed.pins().join("theirs")).unwrap();
    assert!(complaint(&bed.output(&[])).contains("holds `theirs`"));
    assert!(bed.pins().join("theirs").exists());
    std::fs::remove_dir(bed.pins().join("theirs")).unwrap();
    bed.finish();
}

#[test]
fn a_folder_outside_a_bpf_file_system_is_refused() {
    let Some(bed) = Bed::new() else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_ackademyd"));
    command.args(["kernel", "--name", &bed.name, "--pins", "/tmp/pins-of-nobody"]);
    let said = complaint(&bounded(command));
    assert!(said.contains("`/tmp` is not in a BPF file system"), "{said}");
    assert!(!bed.registered());
    bed.finish();
}

#[test]
fn a_kernel_without_btf_is_refused() {
    let Some(bed) = Bed::new() else { return };
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg("mount -t tmpfs none /sys/kernel/btf && exec \"$@\"").arg("sh");
    let daemon = bed.ackademyd(&[]);
    command.arg(daemon.get_program()).args(daemon.get_args());
    let said = complaint(&bounded(command));
    assert!(said.contains("BTF cannot be read (/sys/kernel/btf/vmlinux: No such file"), "{said}");
    assert!(!bed.registered() && !bed.pins().exists());
    bed.finish();
}

#[test]
fn a_missing_capability_is_named() {
    let Some(bed) = Bed::new() else { return };
    for (lost, named) in
        [("-perfmon,-sys_admin", "lacks CAP_PERFMON:"), ("-bpf,-sys_admin", "lacks CAP_BPF:")]
    {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", lost]);
        let daemon = bed.ackademyd(&[]);
        command.arg(daemon.get_program()).args(daemon.get_args());
        let said = complaint(&bounded(command));
        assert!(said.contains(named), "{said}");
        assert!(!bed.registered() && !bed.pins().exists());
    }
    bed.finish();
}

#[test]
fn too_few_files_are_named_before_the_kernel_is_blamed() {
    let Some(bed) = Bed::new() else { return };
    for files in ["4", "24"] {
        let mut command = Command::new("prlimit");
        let daemon = bed.ackademyd(&[]);
        command.arg(format!("--nofile={files}")).arg(daemon.get_program()).args(daemon.get_args());
        let said = complaint(&bounded(command));
        assert!(said.contains(&format!("may open {files} files, and 128 are needed")), "{said}");
    }
    assert!(!bed.registered() && !bed.pins().exists());
    bed.finish();
}

#[test]
fn flows_beyond_the_slots_go_on_under_cubic_and_are_counted() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&["--slots", "2"]);
    let traffic = Traffic::start(&bed, 5, STEADY);
    bed.wait_until_all(2, "agent");
    assert_eq!(bed.status().counts.without_slot, 3);
    let before = traffic.received();
    wait_for("all flows go on", SOON, || traffic.received() > before + 5_000_000);
    assert!(traffic.finish() < SECOND);
    daemon.stop();
    bed.finish();
}

#[test]
fn flows_without_a_rate_cost_no_calls_for_pacing() {
    let Some(bed) = Bed::new() else { return };
    let programs = |words: &[&str]| -> Vec<String> {
        let before: Vec<u32> = ProgInfoIter::default().map(|program| program.id).collect();
        let daemon = bed.daemon(words);
        let new = ProgInfoIter::default().filter(|program| !before.contains(&program.id));
        let names = new.map(|program| program.name.to_string_lossy().into_owned()).collect();
        daemon.stop();
        names
    };
    let window = programs(&["--cc", "cubic"]);
    assert!(window.iter().any(|name| name.starts_with("cong_control")), "{window:?}");
    assert!(!window.iter().any(|name| name == "min_tso_segs"), "{window:?}");
    assert!(!window.iter().any(|name| name == "pkts_acked"), "one call for an acknowledgement");
    // Under those pins paced packets would leave in pairs.
    let said = complaint(&bed.output(&["--cc", "vivace"]));
    assert!(said.contains("that set no rate, not one that may"), "{said}");
    assert!(bed.output(&["remove"]).status.success());
    for words in [&["--cc", "vivace"][..], &["--cc", "cubic", "--paced"]] {
        let paced = programs(words);
        assert!(paced.iter().any(|name| name == "min_tso_segs"), "{words:?}: {paced:?}");
        bed.daemon(&["--cc", "vivace"]).stop();
        bed.daemon(&["--cc", "cubic"]).stop();
        bed.daemon(&["--cc", "vivace"]).stop();
        assert!(bed.output(&["remove"]).status.success());
    }
    bed.finish();
}
