//! Policies that are none, that have no answer, or whose daemon dies.
use crate::bed::{Bed, SECOND, SOON, wait_for};
use crate::network::TensorFile;
use crate::traffic::{Pattern, Traffic};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// As fast as the window lets them.
const BULK: Pattern = Pattern { chunk: 1 << 16, pause: Duration::ZERO };

/// A small policy that the core's own tests have.
const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/files/policy/policy");

/// A policy's folder, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    /// One that answers `value` to every observation, as a factor of the window.
    fn answering(bed: &Bed, value: f32) -> Self {
        let mut weights = TensorFile::default();
        weights.add("layers.0.kernel", &[1, 1], &[0.0]);
        weights.add("layers.0.bias", &[1], &[value]);
        Self::new(bed, DESCRIPTION, &weights)
    }

    /// One whose weights are all finite and whose sums are not: infinity less infinity.
    fn overflowing(bed: &Bed) -> Self {
        let mut weights = TensorFile::default();
        weights.add("layers.0.kernel", &[1, 2], &[0.0, 0.0]);
        weights.add("layers.0.bias", &[2], &[f32::MAX, f32::MAX]);
        weights.add("layers.1.kernel", &[2, 2], &[2.0, 0.0, 0.0, 2.0]);
        weights.add("layers.1.bias", &[2], &[0.0, 0.0]);
        weights.add("layers.2.kernel", &[2, 1], &[1.0, -1.0]);
        weights.add("layers.2.bias", &[1], &[0.0]);
        let layers = [2, 2, 1].map(|units| format!("{{ kind = \"dense\", units = {units} }}"));
        let one = r#"{ kind = "dense", units = 1 }"#;
        Self::new(bed, &DESCRIPTION.replace(one, &layers.join(", ")), &weights)
    }

    fn new(bed: &Bed, description: &str, weights: &TensorFile) -> Self {
        let folder = Self(std::env::temp_dir().join(format!("{}-policy", bed.name)));
        fs::create_dir(&folder.0).unwrap();
        fs::write(folder.0.join("weights.safetensors"), weights.to_bytes()).unwrap();
        fs::write(folder.0.join("policy.toml"), description).unwrap();
        folder
    }

    fn setting(&self) -> String {
        setting(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn setting(folder: &Path) -> String {
    format!("policy={}", folder.display())
}

const DESCRIPTION: &str = r#"
format = 1
about = "The same answer always"
observation = { features = ["rtt_ratio"], history = 1 }
decision = { every = "srtt" }
action = { map = "cwnd_factor", scale = 0.025, limit = 10.0 }
start = { slow_start = false }
layers = [{ kind = "dense", units = 1 }]
"#;

#[test]
fn flows_under_a_policy_outlive_their_daemon_and_are_taken_over() {
    const FLOWS: usize = 4;
    let Some(bed) = Bed::new() else { return };
    let policy = setting(Path::new(SMALL));
    let serve = ["--cc", "policy", "--param", &policy];
    let daemon = bed.daemon(&serve);
    bed.bottleneck("50mbit", "200kb");
    let traffic = Traffic::start(&bed, FLOWS, BULK);
    wait_for("the policy decides", SOON, || {
        let flows = bed.status().flows;
        flows.len() == FLOWS && flows.iter().all(|flow| flow.decisions > 50)
    });
    bed.wait_until_all(FLOWS, "agent");
    daemon.kill();
    bed.wait_until_all(FLOWS, "cubic");
    let before = traffic.received();
    wait_for("the flows go on", SOON, || traffic.received() > before + 1_000_000);
    let daemon = bed.daemon(&serve);
    bed.wait_until_all(FLOWS, "agent");
    assert_eq!(bed.status().counts.policy_fallbacks, 0);
    assert!(traffic.finish() < SECOND);
    daemon.stop();
    bed.finish();
}

#[test]
fn a_policy_out_of_range_leaves_its_flows_to_cubic_and_that_is_counted() {
    let Some(bed) = Bed::new() else { return };
    let beyond = Folder::answering(&bed, 11.0);
    leaves_its_flows_to_cubic(bed, &beyond);
}

#[test]
fn a_policy_that_answers_nan_leaves_its_flows_to_cubic_and_that_is_counted() {
    let Some(bed) = Bed::new() else { return };
    let overflowing = Folder::overflowing(&bed);
    leaves_its_flows_to_cubic(bed, &overflowing);
}

fn leaves_its_flows_to_cubic(bed: Bed, policy: &Folder) {
    const FLOWS: usize = 3;
    let daemon = bed.daemon(&["--cc", "policy", "--param", &policy.setting()]);
    bed.bottleneck("50mbit", "200kb");
    let traffic = Traffic::start(&bed, FLOWS, BULK);
    bed.wait_until_all(FLOWS, "fallback");
    let said = bed.output(&["status", "--json"]).stdout;
    let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["counts"]["policy_fallbacks"], FLOWS);
    assert_eq!(said["counts"]["fallbacks"], 0, "the kernel's own CUBIC was not needed");
    assert_eq!(said["flows"][0]["state"], "fallback");
    let (before, cwnd) = (traffic.received(), bed.status().flows[0].cwnd_pkts);
    wait_for("CUBIC moves data and its window", SOON, || {
        let moved = bed.status().flows[0].cwnd_pkts != cwnd;
        moved && traffic.received() > before + 5_000_000
    });
    // A daemon whose policy has answers takes the same flows back.
    daemon.kill();
    bed.wait_until_all(FLOWS, "cubic");
    let daemon = bed.daemon(&["--cc", "policy", "--param", &setting(Path::new(SMALL))]);
    bed.wait_until_all(FLOWS, "agent");
    assert_eq!(bed.status().counts.policy_fallbacks, FLOWS as u64);
    assert!(traffic.finish() < SECOND);
    daemon.stop();
    bed.finish();
}

#[test]
fn what_is_no_policy_is_one_line_and_nothing_is_registered() {
    let Some(bed) = Bed::new() else { return };
    let folder = Folder::answering(&bed, f32::NAN);
    let refused = |folder: &Path, words: &[&str]| {
        let output = bed.output(&["--cc", "policy", "--param", &setting(folder)]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(!bed.registered() && !bed.pins().exists());
    };
    refused(&folder.0, &["weights.safetensors", "layers.0.bias"]);
    fs::write(folder.0.join("policy.toml"), DESCRIPTION.replace("= 1\n", "= 2\n")).unwrap();
    refused(&folder.0, &["policy.toml", "format = 2", "allowed is 1"]);
    // A pipe that nobody writes to would be read for ever.
    fs::remove_file(folder.0.join("policy.toml")).unwrap();
    nix::unistd::mkfifo(&folder.0.join("policy.toml"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    refused(&folder.0, &["policy.toml", "a file of at most"]);
    refused(Path::new("/nonexistent"), &["policy.toml", "a file that can be read"]);
    let small = setting(Path::new(SMALL));
    let other = bed.output(&["--cc", "tcp-drinc", "--param", &small]);
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(said.contains("observation.features") && said.contains("rtt_excess"), "{said}");
    bed.finish();
}
