use super::*;
use crate::policy::written;
use crate::rng::Rng;

const GOOD: &str = include_str!("../../../tests/files/drl_cc/policy/policy.toml");
const WEIGHTS: &[u8] = include_bytes!("../../../tests/files/drl_cc/policy/weights.safetensors");

fn read(text: &str) -> Result<JointPolicy, String> {
    JointPolicy::read(&[text.as_bytes().to_vec(), WEIGHTS.to_vec()])
}

#[track_caller]
fn refused(from: &str, to: &str, fault: &str) {
    let text = GOOD.replace(from, to);
    assert_ne!(text, GOOD);
    assert_eq!(read(&text).map(drop).unwrap_err(), fault);
}

#[test]
fn a_number_out_of_its_range_is_refused_by_line_name_and_value() {
    refused(
        "paths = 2",
        "paths = 3",
        "policy.toml:5: host.paths = 3: allowed is a whole number in [2, 2]",
    );
    refused(
        "rate_mbps = 16.0",
        "rate_mbps = 0.0",
        "policy.toml:6: host.rate_mbps = 0: allowed is a number in [0.001, 1000000]",
    );
    refused(
        "rtt_ms = 100.0",
        "rtt_ms = nan",
        "policy.toml:7: host.rtt_ms = NaN: allowed is a number in [0.001, 100000]",
    );
    refused(
        "rtt_ms = 100.0",
        "rtt_ms = 100.0\nwindow_packets = 1.0",
        "policy.toml:8: host.window_packets = 1: allowed is a number in [2, 10000000]",
    );
    refused(
        "rtt_ms = 100.0",
        "rtt_ms = 100.0\nepoch_rtts = 0.0",
        "policy.toml:8: host.epoch_rtts = 0: allowed is a number in [0.01, 100]",
    );
    refused(
        "rtt_ms = 100.0",
        "rtt_ms = 100.0\nepoch_rtts = 1.0\nepoch_ms = 9.0",
        "policy.toml:9: host.epoch_ms = 9: allowed is a number in [10, 100000]",
    );
    refused(
        "rtt_ms = 100.0",
        "rtt_ms = 100.0\nepoch_rtts = 1.0\nepoch_ms = 90.0",
        "policy.toml:9: host.epoch_ms beside `epoch_rtts`: allowed is one of them",
    );
    let fault =
        read(&GOOD.replace("rtt_ms = 100.0", "rtt_ms = 100.0\nbetween = \"grow\"")).unwrap_err();
    assert!(fault.starts_with("policy.toml:8: ") && fault.contains("new_reno"), "{fault}");
    refused("format = 1", "format = 2", "policy.toml:1: format = 2: allowed is 1");
}

#[test]
fn a_representation_that_cannot_take_any_number_of_flows_is_refused() {
    let fault = "policy.toml:10: representation[0] is another layer: allowed is `lstm` or `gru` that \
                 returns `last`, of at most 4096 units";
    refused("returns = \"last\"", "returns = \"all\"", fault);
}

#[test]
fn an_actor_of_another_number_of_outputs_or_weights_is_refused() {
    let fault = read(&GOOD.replace("units = 2\n", "units = 3\n")).unwrap_err();
    assert!(fault.starts_with("weights.safetensors: ") && fault.contains("[16, 3]"), "{fault}");
    let fault = read(&GOOD.replace("units = 8\nreturns", "units = 16\nreturns")).unwrap_err();
    assert!(fault.contains("`representation.0.kernel`"), "{fault}");
}

#[allow(clippy::many_single_char_names, reason = "the names of the equations")]
/// The state of an LSTM and the actor's outputs, step by step in 64 bits.
fn by_hand(tensors: &Tensors, target: &[f32], rows: &[f32]) -> Vec<f64> {
    let get = |name: &str, shape: &[usize]| -> Vec<f64> {
        tensors.f32s_of(name, shape).expect("present").map(f64::from).collect()
    };
    let (units, width) = (8, 11);
    let kernel = get("representation.0.kernel", &[width, 4 * units]);
    let own = get("representation.0.recurrent", &[units, 4 * units]);
    let bias = get("representation.0.bias", &[4 * units]);
    let (mut h, mut c) = (vec![0.0; units], vec![0.0; units]);
    let sigmoid = |x: f64| 1.0 / (1.0 + libm::exp(-x));
    for row in rows.chunks(width) {
        let part_of = |at: usize| {
            let entering: f64 = row
                .iter()
                .zip(kernel[at..].iter().step_by(4 * units))
                .map(|(x, w)| f64::from(*x) * w)
                .sum();
            let state: f64 =
                h.iter().zip(own[at..].iter().step_by(4 * units)).map(|(x, w)| x * w).sum();
            bias[at] + entering + state
        };
        let parts: Vec<f64> = (0..4 * units).map(part_of).collect();
        for unit in 0..units {
            let [i, f, g, o] = [0, 1, 2, 3].map(|nth| parts[nth * units + unit]);
            c[unit] = sigmoid(f) * c[unit] + sigmoid(i) * libm::tanh(g);
            h[unit] = sigmoid(o) * libm::tanh(c[unit]);
        }
    }
    let mut x: Vec<f64> = target.iter().map(|x| f64::from(*x)).chain(h).collect();
    for (layer, outputs) in [16, 16, 2].into_iter().enumerate() {
        let kernel = get(&format!("actor.{layer}.kernel"), &[x.len(), outputs]);
        let bias = get(&format!("actor.{layer}.bias"), &[outputs]);
        x = (0..outputs)
            .map(|at| {
                let sum: f64 =
                    x.iter().zip(kernel[at..].iter().step_by(outputs)).map(|(x, w)| x * w).sum();
                if layer < 2 { (bias[at] + sum).max(0.0) } else { libm::tanh(bias[at] + sum) }
            })
            .collect();
    }
    x
}

#[test]
fn the_same_agent_evaluates_any_number_of_flows() {
    let policy = read(GOOD).unwrap();
    let tensors = Tensors::read(WEIGHTS).unwrap();
    let mut agent = policy.agent();
    let mut rng = Rng::new(7);
    for flows in [1, 5, 2, 40, 3] {
        let mut draw = |count| (0..count).map(|_| rng.uniform() as f32).collect::<Vec<f32>>();
        let (target, rows) = (draw(10), draw(11 * flows));
        let expected = by_hand(&tensors, &target, &rows);
        let numbers = [target, rows].concat();
        let found = agent.outputs(&numbers);
        assert_eq!(found.len(), 2);
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-6, "{flows}: {found}, {expected}");
        }
    }
}

#[test]
fn a_policy_of_the_paper_s_size_can_be_read() {
    let tensors: Vec<(&str, &[usize])> = vec![
        ("representation.0.kernel", &[11, 256]),
        ("representation.0.recurrent", &[64, 256]),
        ("representation.0.bias", &[256]),
        ("actor.0.kernel", &[74, 128]),
        ("actor.0.bias", &[128]),
        ("actor.1.kernel", &[128, 128]),
        ("actor.1.bias", &[128]),
        ("actor.2.kernel", &[128, 2]),
        ("actor.2.bias", &[2]),
    ];
    let mut rng = Rng::new(1);
    let weights = written::random(&tensors, &mut || rng.uniform());
    let text = GOOD.replace("units = 16", "units = 128").replace("units = 8", "units = 64");
    let policy = JointPolicy::read(&[text.into_bytes(), weights]).unwrap();
    assert_eq!(policy.agent().outputs(&[0.5; 10 + 11 * 5]).len(), 2);
}
