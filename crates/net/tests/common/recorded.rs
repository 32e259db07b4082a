//! Policies of the flagship's shape with drawn weights, and what they observe in simulated flows.
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../core/tests/support/network.rs"]
mod network;

use ackademy::control::{Controller, FlowInfo, PerFlow};
use ackademy::controllers;
use ackademy::env::{AGENT, Environment};
use ackademy::policy::{
    Action, Agent, InvalidAction, LearnedController, NetworkAgent, Policy, PolicySpec,
};
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Distribution;
use ackademy::sim::{self, Sim};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The flagship's features.
const FEATURES: [&str; 14] = [
    "queue",
    "rtt_rise",
    "rtt_spread",
    "loss_log",
    "ce_ratio",
    "drain",
    "rtt_change",
    "base_rtt",
    "base_age",
    "own_best",
    "app_limited",
    "since_loss",
    "action_0",
    "action_1",
];

/// A policy of the flagship's shape, with weights drawn from `seed`: `layers` are units and activation.
pub fn policy(seed: u64, layers: &[(usize, &str)]) -> Policy {
    let names: Vec<String> = FEATURES.iter().map(|name| format!("{name:?}")).collect();
    let mut text = format!(
        "format = 1\nabout = \"drawn weights\"\n\
         observation = {{ features = [{}], history = 8 }}\n\
         decision = {{ every = \"srtt\" }}\n\
         action = {{ map = \"rate_and_cwnd\", scale = 0.1, limit = 100 }}\n\
         start = {{ slow_start = true }}\nlayers = [{{ kind = \"flatten\" }},",
        names.join(", ")
    );
    let mut shapes = Vec::new();
    let mut inputs = 8 * FEATURES.len();
    for (index, (units, activation)) in layers.iter().enumerate() {
        let _ =
            write!(text, " {{ kind = \"dense\", units = {units}, activation = {activation:?} }},");
        shapes.push((format!("layers.{}.kernel", index + 1), vec![inputs, *units]));
        shapes.push((format!("layers.{}.bias", index + 1), vec![*units]));
        inputs = *units;
    }
    text += "]\n";
    let mut rng = Rng::new(seed);
    let tensors: Vec<(&str, &[usize])> =
        shapes.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect();
    let weights = network::random(&tensors, &mut || rng.uniform());
    Policy::read(&[text.into_bytes(), weights]).expect("a policy")
}

/// The flagship's own layers.
pub const FLAGSHIP: [(usize, &str); 3] = [(64, "tanh"), (64, "tanh"), (2, "linear")];

struct Recorder {
    inner: NetworkAgent,
    rows: Arc<Mutex<Vec<f32>>>,
}

impl Agent for Recorder {
    fn act(&mut self, observation: &[f32]) -> Result<Action, InvalidAction> {
        self.rows.lock().expect("no panic").extend_from_slice(observation);
        self.inner.act(observation)
    }
}

/// What the policy observed in `count` decisions of episodes of `distributions/flagship.toml`, one behind
/// the other, in episodes of the seeds from `seed` on.
pub fn observations(policy: &Policy, count: usize, seed: u64) -> Vec<f32> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("distributions/flagship.toml");
    let text = std::fs::read_to_string(&file).expect("the distribution");
    let mut load =
        |name: &str, _| std::fs::read(file.with_file_name(name)).map_err(|error| error.to_string());
    let distribution = Distribution::parse(&text, "flagship.toml", &mut load).expect("valid");
    let spec: Arc<PolicySpec> = Arc::clone(policy.spec());
    let size = spec.shape().0 * spec.shape().1;
    let rows = Arc::new(Mutex::new(Vec::with_capacity(count * size)));
    for episode in seed.. {
        let progress = (episode - seed) as f64 % 10.0 / 10.0;
        let scenario = distribution.draw(Seed(episode), progress).expect("a scenario");
        let learners = distribution.learners();
        let agents = distribution.agents();
        let environment = Environment::new(&scenario, &spec, learners, agents).expect("valid");
        let network = environment.network();
        let mut sim = Sim::new(network, Seed(episode), &mut |plan| {
            if plan.controller != AGENT {
                return sim::builtin(plan);
            }
            let (spec, rows, policy) = (Arc::clone(&spec), Arc::clone(&rows), policy.clone());
            let build = move |flow: &FlowInfo| -> Box<dyn Controller> {
                let agent = Recorder { inner: policy.agent(), rows: Arc::clone(&rows) };
                Box::new(LearnedController::new(
                    flow,
                    &spec,
                    Box::new(agent),
                    controllers::fallback,
                ))
            };
            Ok(Box::new(PerFlow::new(build)))
        })
        .expect("controllers");
        sim.run_until(network.duration);
        let mut rows = rows.lock().expect("no panic");
        if rows.len() >= count * size {
            rows.truncate(count * size);
            return std::mem::take(&mut rows);
        }
    }
    unreachable!("there are more seeds than memory")
}
