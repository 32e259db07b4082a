//! Policies of the flagship's shape with drawn weights, and what they observe in simulated flows.
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../core/tests/support/network.rs"]
mod network;

use ackademy::control::{Ack, Control, Controller, FlowInfo, Loss, PerFlow};
use ackademy::controllers;
use ackademy::env::{AGENT, Environment};
use ackademy::params::Params;
use ackademy::policy::{Action, Agent, InvalidAction, LearnedController, NetworkAgent, Policy};
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Distribution;
use ackademy::sim::{self, Sim};
use ackademy::units::Time;
use ackademy_net::kernel::compiled::FEATURES;
use network::TensorFile;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// A policy that sees every signal, with weights drawn from `seed`: `layers` are units and activation. With
/// `guards` it has a slow start and halves its window on a loss; without, it acts over the law, from the beginning. The
/// weights of the last layer are `last` times as large as drawn;
/// a guard leaves to the law what has `queue` above `seen`, and what is not contended.
pub fn policy(
    seed: u64,
    layers: &[(usize, &str)],
    guards: bool,
    last: f64,
    seen: Option<f64>,
) -> Policy {
    let names: Vec<String> = FEATURES.iter().map(|name| format!("{name:?}")).collect();
    let map = if guards { "rate_and_cwnd" } else { "own_queue" };
    let when = if seen.is_some() { "contention" } else { "always" };
    let mut text = format!(
        "format = 1\nabout = \"drawn weights\"\n\
         observation = {{ features = [{}], history = 8 }}\n\
         decision = {{ every = \"srtt\" }}\n\
         action = {{ map = \"{map}\", limit = 100, when = \"{when}\" }}\n\
         start = {{ slow_start = {guards}, loss_guard = {guards} }}\nlayers = [{{ kind = \"flatten\" }},",
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
    if let Some(high) = seen {
        // What training saw of `queue` ends at `high`, and of the others nowhere.
        let ranges: Vec<String> = (0..FEATURES.len())
            .map(|index| if index == 0 { format!("[0, {high}]") } else { "[-9, 9]".to_owned() })
            .collect();
        let _ = writeln!(text, "guard = {{ ranges = [{}] }}", ranges.join(", "));
    }
    let mut rng = Rng::new(seed);
    let mut file = TensorFile::default();
    for (index, (name, shape)) in shapes.iter().enumerate() {
        let inputs: usize = shape[..shape.len() - 1].iter().product();
        let size = (3.0 / inputs.max(1) as f64).sqrt().min(0.5);
        let size = if index + 2 < shapes.len() { size } else { size * last };
        file.add_random(name, shape, (size, &mut || rng.uniform()));
    }
    Policy::read(&[text.into_bytes(), file.to_bytes()]).expect("a policy")
}

/// Layers of the flagship's sizes.
pub const FLAGSHIP: [(usize, &str); 3] = [(64, "tanh"), (64, "tanh"), (2, "linear")];

/// What a controller was told.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Ack(Ack),
    Loss(Loss),
}

/// Runs a controller and keeps what it is told.
struct Listener {
    inner: Box<dyn Controller>,
    told: Arc<Mutex<Vec<Event>>>,
}

impl Controller for Listener {
    fn on_ack(&mut self, ack: &Ack) {
        self.told.lock().expect("no panic").push(Event::Ack(*ack));
        self.inner.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.told.lock().expect("no panic").push(Event::Loss(*loss));
        self.inner.on_loss(loss);
    }
    fn on_timer(&mut self, now: Time) {
        self.inner.on_timer(now);
    }
    fn next_timer(&self) -> Option<Time> {
        self.inner.next_timer()
    }
    fn control(&self) -> Control {
        self.inner.control()
    }
}

type Events = Arc<Mutex<Vec<Event>>>;

/// A flow, and what the controller that ran it was told.
pub struct Told {
    pub flow: FlowInfo,
    pub events: Vec<Event>,
}

/// Flows under `own_queue` in the episode of `seed` of `data/distributions/flagship.toml`.
pub fn flows(policy: &Policy, seed: u64) -> Vec<Told> {
    let told: Arc<Mutex<Vec<(FlowInfo, Events)>>> = Arc::default();
    let seen = Arc::clone(&told);
    let build = move |flow: &FlowInfo| -> Box<dyn Controller> {
        let events = Arc::new(Mutex::new(Vec::new()));
        seen.lock().expect("no panic").push((*flow, Arc::clone(&events)));
        let spec = controllers::find("own_queue").expect("in the table");
        let inner = (spec.build)(flow, &Params::defaults(spec.params));
        Box::new(Listener { inner, told: events })
    };
    run(policy, seed, &(Arc::new(build) as Arc<Build>));
    let told = std::mem::take(&mut *told.lock().expect("no panic"));
    let events =
        |events: Arc<Mutex<Vec<Event>>>| std::mem::take(&mut *events.lock().expect("no panic"));
    told.into_iter().map(|(flow, told)| Told { flow, events: events(told) }).collect()
}

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

/// What the policy observed in `count` decisions of episodes of `data/distributions/flagship.toml`, one behind
/// the other, in episodes of the seeds from `seed` on.
pub fn observations(policy: &Policy, count: usize, seed: u64) -> Vec<f32> {
    let size = policy.spec().shape().0 * policy.spec().shape().1;
    let rows = Arc::new(Mutex::new(Vec::with_capacity(count * size)));
    for episode in seed.. {
        let (own, kept) = (policy.clone(), Arc::clone(&rows));
        let build = move |flow: &FlowInfo| -> Box<dyn Controller> {
            let agent = Recorder { inner: own.agent(), rows: Arc::clone(&kept) };
            let agent = Box::new(agent);
            Box::new(LearnedController::new(flow, own.spec(), agent, controllers::fallback))
        };
        run(policy, episode, &(Arc::new(build) as Arc<Build>));
        let mut rows = rows.lock().expect("no panic");
        if rows.len() >= count * size {
            rows.truncate(count * size);
            return std::mem::take(&mut rows);
        }
    }
    unreachable!("there are more seeds than memory")
}

/// `data/distributions/flagship.toml`; reading it takes as long as a hundred draws.
fn distribution() -> &'static Distribution {
    static READ: OnceLock<Distribution> = OnceLock::new();
    READ.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
        let file = root.join("distributions/flagship.toml");
        let text = std::fs::read_to_string(&file).expect("the distribution");
        let mut load = |name: &str, _| {
            std::fs::read(file.with_file_name(name)).map_err(|error| error.to_string())
        };
        Distribution::parse(&text, "flagship.toml", &mut load).expect("valid")
    })
}

/// Makes the controller of a learning flow.
type Build = dyn Fn(&FlowInfo) -> Box<dyn Controller> + Send + Sync;

/// Runs the episode of `seed` of `data/distributions/flagship.toml` with what `build` makes for each learning flow.
fn run(policy: &Policy, seed: u64, build: &Arc<Build>) {
    let distribution = distribution();
    let scenario = distribution.draw(Seed(seed), seed as f64 % 10.0 / 10.0).expect("a scenario");
    let (learners, agents) = (distribution.learners(), distribution.agents());
    let environment = Environment::new(&scenario, policy.spec(), learners, agents).expect("valid");
    let network = environment.network();
    let mut sim = Sim::new(network, Seed(seed), &mut |plan| {
        if plan.controller != AGENT {
            return sim::builtin(plan);
        }
        let build = Arc::clone(build);
        Ok(Box::new(PerFlow::new(move |flow: &FlowInfo| build(flow))))
    })
    .expect("controllers");
    sim.run_until(network.duration);
}

/// Makes observations of what a controller is told, and answers as the policy does.
pub struct Observer {
    controller: LearnedController,
    noted: Arc<Mutex<Noted>>,
}

/// The newest observation, and the network's action.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    pub observation: Vec<f32>,
    pub action: [f64; 2],
}

struct Notes {
    inner: NetworkAgent,
    noted: Arc<Mutex<Noted>>,
}

impl Agent for Notes {
    fn act(&mut self, observation: &[f32]) -> Result<Action, InvalidAction> {
        let action = self.inner.act(observation)?;
        let Action::Values(values) = action else { return Err(InvalidAction::OutOfRange) };
        *self.noted.lock().expect("no panic") = Noted {
            observation: observation.to_vec(),
            action: values.map(|value| f64::from(value.clamp(-1.0, 1.0))),
        };
        Ok(action)
    }
    fn is_guarded(&self) -> bool {
        self.inner.is_guarded()
    }
}

impl Observer {
    pub fn new(policy: &Policy, flow: &FlowInfo) -> Self {
        let noted = Arc::new(Mutex::new(Noted::default()));
        let agent = Notes { inner: policy.agent(), noted: Arc::clone(&noted) };
        let agent = Box::new(agent);
        let controller = LearnedController::new(flow, policy.spec(), agent, controllers::fallback);
        Self { controller, noted }
    }

    /// What is decided if a decision falls due with this acknowledgement.
    pub fn on_ack(&mut self, ack: &Ack) -> Option<Noted> {
        self.controller.on_ack(ack);
        let at = self.controller.next_timer()?;
        self.controller.on_timer(at);
        Some(self.noted.lock().expect("no panic").clone())
    }

    pub fn on_loss(&mut self, loss: &Loss) {
        self.controller.on_loss(loss);
    }
}
