use super::*;
use crate::policy::written::TensorFile;

/// A policy over two features, with one dense layer of three outputs.
const HEAD: &str = r#"format = 1
about = "a test"
[observation]
features = ["rtt_ratio", "loss_ratio"]
history = 1
[decision]
every = "srtt"
"#;
const STEPS: &str = r#"[action]
map = "cwnd_steps"
steps = ["-1", "+0", "+1"]
"#;
const LAYER: &str = r#"[[layers]]
kind = "dense"
units = 3
"#;

fn description(parts: &[&str]) -> String {
    parts.concat()
}

/// Outputs `x0 w0 + x1 w1 + b`.
fn weights(kernel: &[f32], bias: &[f32]) -> Vec<u8> {
    let mut file = TensorFile::default();
    file.add("layers.0.kernel", &[2, bias.len()], kernel);
    file.add("layers.0.bias", &[bias.len()], bias);
    file.to_bytes()
}

fn read(description: &str, weights: Vec<u8>) -> Result<Policy, String> {
    Policy::read(&[description.as_bytes().to_vec(), weights])
}

fn with(kernel: &[f32], bias: &[f32]) -> Policy {
    read(&description(&[HEAD, STEPS, LAYER]), weights(kernel, bias)).unwrap()
}

#[track_caller]
fn refused(description: &str) -> String {
    read(description, weights(&[0.0; 6], &[0.0; 3])).unwrap_err()
}

#[test]
fn the_largest_output_is_the_choice_and_of_equal_ones_the_first() {
    let choice = |bias: [f32; 3]| with(&[0.0; 6], &bias).agent().act(&[0.0; 2]);
    assert_eq!(choice([1.0, 3.0, 2.0]), Ok(Action::Choice(1)));
    assert_eq!(choice([1.0, 3.0, 3.0]), Ok(Action::Choice(1)));
    assert_eq!(choice([-1.0, -1.0, -1.0]), Ok(Action::Choice(0)));
}

#[test]
fn an_output_that_is_not_finite_is_no_choice() {
    let mut agent = with(&[3e38, 3e38, 0.0, 3e38, 3e38, 0.0], &[0.0; 3]).agent();
    assert_eq!(agent.act(&[0.5, 0.25]), Ok(Action::Choice(0)));
    assert_eq!(agent.act(&[1.0, 1.0]), Err(InvalidAction::NotFinite));
    assert_eq!(agent.act(&[1.0, -1.0]), Ok(Action::Choice(0)));
    assert_eq!(agent.act(&[f32::NAN, 0.0]), Err(InvalidAction::NotFinite));
}

#[test]
fn the_first_outputs_are_the_values() {
    let values = |map: &str| {
        let action = format!("[action]\nmap = \"{map}\"\n");
        let policy =
            read(&description(&[HEAD, &action, LAYER]), weights(&[0.0; 6], &[3.0, 4.0, 5.0]));
        policy.unwrap().agent().act(&[0.0; 2])
    };
    assert_eq!(values("rate_and_cwnd"), Ok(Action::Values([3.0, 4.0])));
    assert!(
        matches!(values("cwnd_factor"), Ok(Action::Values([first, _])) if (first - 3.0).abs() < 1e-6)
    );
}

#[test]
fn agents_share_the_weights_and_nothing_else() {
    let policy = with(&[0.0; 6], &[0.0; 3]);
    let agents: Vec<_> = (0..1000).map(|_| policy.agent()).collect();
    assert_eq!(Arc::strong_count(&policy.network), 1001);
    drop(agents);
    assert_eq!(Arc::strong_count(&policy.network), 1);
}

#[test]
fn where_it_came_from_may_be_said_in_any_words() {
    let made = "[guard]\nfallback = \"cubic\"\n[made]\ncommand = \"train\"\nseed = 1\n[made.by]\nx = [1]\n";
    let text = description(&[HEAD, STEPS, LAYER, made]);
    let policy = read(&text, weights(&[0.0; 6], &[0.0; 3])).unwrap();
    assert_eq!(policy.about(), "a test");
    let reread: PolicySpec = toml::from_str(&policy.tables()).unwrap();
    assert_eq!(reread, **policy.spec());
}

#[test]
fn what_is_wrong_in_the_description_is_told_with_its_line() {
    let changed = |from: &str, to: &str| {
        let text = description(&[HEAD, STEPS, LAYER]);
        assert!(text.contains(from), "{from}");
        refused(&text.replace(from, to))
    };
    assert_eq!(changed("format = 1", "format = 2"), "policy.toml:1: format = 2: allowed is 1");
    assert_eq!(
        changed("units = 3", "units = 1_000_000_000"),
        "policy.toml:13: layers[0].units = 1000000000: allowed is a whole number in [1, 4096]"
    );
    assert_eq!(
        changed("units = 3", "units = 4"),
        "weights.safetensors: shape of `layers.0.kernel` = [2, 3]: allowed is [2, 4]"
    );
    assert_eq!(
        changed("history = 1", "history = 1000"),
        "policy.toml:5: observation.history = 1000: allowed is a whole number in [1, 256]"
    );
    for (from, to, line, word) in [
        ("units = 3", "units = 3\nunit = 3", 14, "layers[0].unit"),
        ("kind = \"dense\"", "kind = \"dance\"", 12, "dance"),
        ("units = 3", "units = -3", 13, "-3"),
        ("about = \"a test\"", "abuot = \"a test\"", 2, "abuot"),
        ("every = \"srtt\"", "every = srtt", 7, "srtt"),
        ("map = \"cwnd_steps\"", "map = \"windows\"", 9, "windows"),
    ] {
        let fault = changed(from, to);
        assert!(fault.starts_with(&format!("policy.toml:{line}: ")), "{fault}");
        assert!(fault.contains(word) && fault.contains("allowed"), "{fault}");
    }
}

#[test]
fn as_many_outputs_as_the_actions_want_are_asked_for() {
    let steps = STEPS.replace("\"+0\", ", "");
    assert_eq!(
        refused(&description(&[HEAD, &steps, LAYER])),
        "policy.toml:11: layers give 3 outputs: allowed is one for each of 2 `steps`"
    );
    let two = "[action]\nmap = \"rate_and_cwnd\"\n";
    let one = LAYER.replace('3', "1");
    assert_eq!(
        read(&description(&[HEAD, two, &one]), weights(&[0.0; 2], &[0.0])).unwrap_err(),
        "policy.toml:10: layers give 1 outputs: allowed is at least 2 for this `map`"
    );
}

#[test]
fn a_hostile_description_is_one_short_line() {
    let deep = format!("made = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    let tables = format!("[{}]", vec!["a"; 20_000].join("."));
    let long = format!("format = 1\nabout = {:?}", "x".repeat(60_000));
    let name = description(&[HEAD, STEPS, LAYER]).replace("rtt_ratio", &"y".repeat(50_000));
    let many = description(&[HEAD, STEPS, &LAYER.repeat(1500)]);
    let texts =
        [deep, tables, long, name, many, "\0".to_owned(), "x".repeat(70_000), String::new()];
    for text in texts {
        let fault = refused(&text);
        assert!(fault.starts_with("policy.toml"), "{fault}");
        assert!(fault.len() <= 4 * crate::policy::ERROR_MAX && !fault.contains('\n'), "{fault}");
    }
    let bytes = Policy::read(&[vec![0xff], Vec::new()]).unwrap_err();
    assert_eq!(bytes, "policy.toml: byte 0: allowed is UTF-8");
}

#[test]
fn weights_that_are_none_are_refused_by_the_name_of_their_file() {
    let text = description(&[HEAD, STEPS, LAYER]);
    let fault = read(&text, b"none".to_vec()).unwrap_err();
    assert_eq!(fault, "weights.safetensors: 4 bytes: allowed is safetensors");
    let mut file = TensorFile::default();
    file.add("layers.0.kernel", &[2, 3], &[f32::NAN; 6]);
    let fault = read(&text, file.to_bytes()).unwrap_err();
    assert_eq!(
        fault,
        "weights.safetensors: `layers.0.kernel`[0] = NaN: allowed is a finite number"
    );
}
