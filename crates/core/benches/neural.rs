//! Time of one evaluation of a network, one observation at a time, on one thread.
//!
//! `cargo bench --bench neural` prints one JSON row per network: `network`, `weights`, `us` (median over the runs).
#![allow(missing_docs, reason = "a program, not an interface")]
use ackademy::policy::joint::JointPolicy;
use ackademy::policy::nn::{Activation, LayerSpec, Network, Padding, Returns, Shape};
use ackademy::policy::safetensors::Tensors;
use ackademy::rng::Rng;
use std::fs;
use std::hint::black_box;

#[allow(dead_code, reason = "other programs use the rest")]
#[path = "../tests/support/forest.rs"]
mod forest;
#[path = "../tests/support/network.rs"]
mod network;

/// Runs per network; the median counts.
const RUNS: usize = 15;
/// Time of a run, about.
const RUN_S: f64 = 0.1;

fn dense(units: u64, activation: Activation) -> LayerSpec {
    LayerSpec::Dense { units, activation }
}

fn conv(filters: u64, kernel: u64) -> LayerSpec {
    LayerSpec::Conv1d { filters, kernel, padding: Padding::Same, activation: Activation::Relu }
}

fn drinc() -> Vec<LayerSpec> {
    vec![
        conv(32, 5),
        LayerSpec::MaxPool { size: 2 },
        conv(64, 3),
        LayerSpec::MaxPool { size: 2 },
        dense(32, Activation::Relu),
        LayerSpec::Lstm { units: 64, returns: Returns::Last },
        dense(5, Activation::Linear),
    ]
}

fn measure(name: &str, layers: &[LayerSpec], input: Shape, file: &[u8]) {
    let tensors = Tensors::read(file).expect("a valid file");
    let network = Network::read(layers, input, &tensors).expect("a valid network");
    let mut scratch = network.scratch();
    report(name, input.size(), file, &mut |observation| {
        black_box(network.evaluate(black_box(observation), &mut scratch));
    });
}

/// The networks of DRL-CC's agent for so many flows.
fn host(flows: usize) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/policies/drl_cc/s1");
    let files = ["policy.toml", "weights.safetensors"]
        .map(|name| fs::read(format!("{folder}/{name}")).expect("a shipped policy"));
    let policy = JointPolicy::read(&files).expect("a valid policy");
    let (spec, mut agent) = (policy.spec(), policy.agent());
    let numbers = spec.target_width() + flows * spec.row_width();
    report(&format!("drl_cc_flows_{flows}"), numbers, &files[1], &mut |observation| {
        black_box(agent.outputs(black_box(observation)));
    });
}

/// Times evaluations of an observation of so many numbers.
fn report(name: &str, numbers: usize, file: &[u8], evaluate: &mut dyn FnMut(&[f32])) {
    let mut rng = Rng::new(2);
    let observation: Vec<f32> = (0..numbers).map(|_| rng.uniform() as f32).collect();
    let mut time = |times: usize| {
        let before = cpu_s();
        for _ in 0..times {
            evaluate(&observation);
        }
        cpu_s() - before
    };
    let mut times = 16;
    while time(times) < RUN_S {
        times *= 2;
    }
    let mut runs: Vec<f64> = (0..RUNS).map(|_| time(times) / times as f64 * 1e6).collect();
    runs.sort_by(f64::total_cmp);
    let (fastest, median) = (runs[0], runs[RUNS / 2]);
    println!(
        "{{\"network\": \"{name}\", \"bytes\": {}, \"us\": {median:.2}, \"min_us\": {fastest:.2}}}",
        file.len()
    );
}

/// CPU time of this process in seconds (Linux: /proc/self/schedstat, nanoseconds).
fn cpu_s() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").expect("Linux's schedstat");
    let nanos = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    nanos.expect("schedstat begins with a number") / 1e9
}

fn file(tensors: &[(&str, Vec<usize>)]) -> Vec<u8> {
    let mut rng = Rng::new(1);
    let tensors: Vec<(&str, &[usize])> =
        tensors.iter().map(|(name, shape)| (*name, &shape[..])).collect();
    network::random(&tensors, &mut || rng.uniform())
}

/// Tensors of a flattened observation of `inputs` numbers, two dense layers of 128, one of `outputs`.
fn perceptron(inputs: usize, outputs: usize) -> Vec<(&'static str, Vec<usize>)> {
    vec![
        ("layers.1.kernel", vec![inputs, 128]),
        ("layers.1.bias", vec![128]),
        ("layers.2.kernel", vec![128, 128]),
        ("layers.2.bias", vec![128]),
        ("layers.3.kernel", vec![128, outputs]),
        ("layers.3.bias", vec![outputs]),
    ]
}

fn trees() -> Vec<u8> {
    let mut rng = Rng::new(1);
    let arrays = forest::Arrays::grow(100, 2001, 50, &mut || rng.uniform());
    arrays.to_bytes_of("layers.0.0.", &[])
}

fn main() {
    let series = |steps, width| Shape { steps, width };
    let layers = |activation| {
        [
            LayerSpec::Flatten {},
            dense(128, activation),
            dense(128, activation),
            dense(1, Activation::Linear),
        ]
    };
    let mlp = file(&perceptron(30, 1));
    measure("mlp_2x128_relu", &layers(Activation::Relu), series(10, 3), &mlp);
    measure("mlp_2x128_tanh", &layers(Activation::Tanh), series(10, 3), &mlp);
    measure("drinc", &drinc(), series(64, 5), &file(&network::drinc()));
    let gru = [LayerSpec::Gru { units: 64, returns: Returns::Last }, dense(5, Activation::Linear)];
    let tensors = [
        ("layers.0.kernel", vec![5, 192]),
        ("layers.0.recurrent", vec![64, 192]),
        ("layers.0.bias", vec![192]),
        ("layers.0.recurrent_bias", vec![64]),
        ("layers.1.kernel", vec![64, 5]),
        ("layers.1.bias", vec![5]),
    ];
    measure("gru_64_steps_16", &gru, series(16, 5), &file(&tensors));
    let forest = [LayerSpec::Trees { outputs: 1, low: 0.0, high: 1.0 }];
    measure("trees_100x2001", &forest, series(10, 5), &trees());
    host(5);
    host(10);
}
