//! Function `watch`: a run whose flows are observed as learned controllers would observe them, while
//! controllers of any kind govern them.
use crate::controller::Failure;
use crate::guests::Guests;
use crate::scenario::Scenario;
use crate::simulate::{Classes, controller, in_steps};
use crate::tables;
use ackademy::control::{Ack, Control, Controller, Coupled, FlowInfo, Loss, SubflowId};
use ackademy::controllers::fallback;
use ackademy::env::AGENT;
use ackademy::policy::{
    ACTION_MAX, Action, Agent, AgentState, InvalidAction, LearnedController, METRICS, PolicySpec,
    Report, TRUTH,
};
use ackademy::rng::Seed;
use ackademy::scenario::fits;
use ackademy::sim::Sim;
use ackademy::sim::plan::{ConnectionPlan, NetworkPlan, TrafficSpec};
use ackademy::sim::record::Outcome;
use ackademy::units::{Rate, Time};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An observer's answer, which nothing takes.
const NOTHING: Action = Action::Values([0.0; ACTION_MAX]);

/// The tables of a run, and for each flow of the entries that match `watched` what it could observe.
#[pyfunction]
#[pyo3(signature = (scenario, seed, agent_settings, *, watched, class_index=0, python_controllers=None, guests=None))]
#[allow(clippy::too_many_arguments, reason = "each has its name in Python")]
pub fn watch<'py>(
    scenario: &Bound<'py, Scenario>,
    seed: u64,
    agent_settings: &str,
    watched: Vec<String>,
    class_index: usize,
    python_controllers: Option<Classes>,
    guests: Option<Guests>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyList>)> {
    let py = scenario.py();
    let spec = PolicySpec::parse(agent_settings).map_err(|error| refused(&error.to_string()))?;
    let run = Run {
        spec: Arc::new(spec),
        seed: Seed(seed),
        class_index,
        classes: python_controllers.unwrap_or_default(),
        guests: guests.unwrap_or_default(),
    };
    let core = &scenario.get().core;
    let (network, own) = renamed(&core.network, &core.entry_names(), &watched)?;
    let (outcome, flows) = py.detach(|| run.to_end(&network, &own))?;
    let flows: PyResult<Vec<_>> = flows.into_iter().map(|flow| flow.into_python(py)).collect();
    Ok((tables::to_python(py, outcome)?, PyList::new(py, flows?)?))
}

fn refused(fault: &str) -> PyErr {
    PyValueError::new_err(fault.to_owned())
}

/// The network with watched connections under the name of learning ones, and their controllers by connection.
fn renamed(
    network: &NetworkPlan,
    entries: &[String],
    watched: &[String],
) -> PyResult<(NetworkPlan, BTreeMap<String, String>)> {
    let (mut network, mut own) = (network.clone(), BTreeMap::new());
    let is_watched = |entry: usize| watched.iter().any(|pattern| fits(pattern, &entries[entry]));
    for plan in network.connections.iter_mut().filter(|plan| is_watched(plan.entry)) {
        if !matches!(plan.traffic, TrafficSpec::Cbr { .. }) {
            let controller = std::mem::replace(&mut plan.controller, AGENT.to_owned());
            own.insert(plan.name.clone(), controller);
        }
    }
    if own.is_empty() {
        let allowed = entries.join(", ");
        return Err(refused(&format!(
            "watched = {watched:?}: allowed are patterns that match a flow with a controller: {allowed}"
        )));
    }
    Ok((network, own))
}

/// A run that is to be made.
struct Run {
    spec: Arc<PolicySpec>,
    seed: Seed,
    class_index: usize,
    classes: Classes,
    guests: Guests,
}

impl Run {
    fn to_end(
        &self,
        network: &NetworkPlan,
        own: &BTreeMap<String, String>,
    ) -> PyResult<(Outcome, Vec<Seen>)> {
        let failure = Failure::default();
        let mut build = |plan: &ConnectionPlan| -> PyResult<Box<dyn Coupled>> {
            let Some(name) = own.get(&plan.name) else {
                return controller(plan, &self.classes, &self.guests, &failure);
            };
            let plan = ConnectionPlan { controller: name.clone(), ..plan.clone() };
            let inner = controller(&plan, &self.classes, &self.guests, &failure)?;
            let (spec, observers) = (Arc::clone(&self.spec), BTreeMap::new());
            Ok(Box::new(Watched { inner, spec, observers }))
        };
        let mut sim = Sim::new(network, self.seed, &mut build)?;
        sim.collect_truth(network, AGENT, self.class_index);
        let mut flows: Vec<Seen> = sim.flows_of(AGENT).map(Seen::new).collect();
        in_steps(network.duration, |until| {
            while let Some(flow) = sim.run_until_decision(until) {
                if let Some(seen) = flows.iter_mut().find(|seen| seen.flow == flow) {
                    seen.read(&mut sim);
                }
            }
            failure.take().map_or(Ok(()), Err)
        })?;
        sim.tell_end();
        for seen in &mut flows {
            seen.read(&mut sim);
        }
        failure.take().map_or(Ok((sim.finish(), flows)), Err)
    }
}

/// What one flow could observe, interval by interval.
#[derive(Default)]
struct Seen {
    flow: u32,
    observation: Vec<f32>,
    /// Numbers of one observation.
    width: usize,
    metrics: Vec<f64>,
    truth: Vec<f64>,
}

impl Seen {
    fn new(flow: u32) -> Self {
        Self { flow, ..Self::default() }
    }

    /// Keeps a report that is not kept yet.
    fn read(&mut self, sim: &mut Sim) {
        let Some(state) = sim.agent_state_with_truth(self.flow) else { return };
        if std::mem::take(&mut state.fresh) {
            self.width = state.observation.len();
            self.observation.extend(&state.observation);
            self.metrics.extend(state.arrived.row());
            self.truth.extend(state.truth);
        }
        state.act(NOTHING);
    }

    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let rows = self.metrics.len() / METRICS;
        let found = PyDict::new(py);
        let observation = PyArray1::from_vec(py, self.observation).reshape([rows, self.width])?;
        found.set_item("flow", self.flow)?;
        found.set_item("observation", observation)?;
        found
            .set_item("metrics", PyArray1::from_vec(py, self.metrics).reshape([rows, METRICS])?)?;
        found.set_item("truth", PyArray1::from_vec(py, self.truth).reshape([rows, TRUTH])?)?;
        Ok(found)
    }
}

/// A controller with an observer of each of its subflows.
struct Watched {
    inner: Box<dyn Coupled>,
    spec: Arc<PolicySpec>,
    observers: BTreeMap<SubflowId, Observer>,
}

/// A learned controller that is told everything, and whose window nothing takes.
struct Observer {
    sensing: LearnedController,
    mss: f64,
}

impl Observer {
    /// Puts the window and the rate in force into a report that nobody has read.
    fn complete(&mut self, control: Control) {
        if let Some(state) = self.sensing.agent_state()
            && state.fresh
        {
            state.arrived.cwnd_packets = control.cwnd.0 as f64 / self.mss;
            let is_paced = control.pacing_rate != Rate::UNLIMITED;
            state.arrived.pacing_mbps = if is_paced { control.pacing_rate.as_mbps() } else { 0.0 };
        }
    }
}

impl Coupled for Watched {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
        let (length, width) = self.spec.shape();
        let agent = Box::new(Witness(AgentState::new(length * width)));
        let sensing = LearnedController::new(flow, &self.spec, agent, fallback);
        self.observers.insert(id, Observer { sensing, mss: flow.mss.0.max(1) as f64 });
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
        self.observers.remove(&id);
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.inner.on_ack(id, ack);
        if let Some(observer) = self.observers.get_mut(&id) {
            observer.sensing.on_ack(ack);
            observer.complete(self.inner.control(id));
        }
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.inner.on_loss(id, loss);
        if let Some(observer) = self.observers.get_mut(&id) {
            observer.sensing.on_loss(loss);
        }
    }
    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(&*self.inner)
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(&mut *self.inner)
    }
    fn on_timer(&mut self, id: SubflowId, now: Time) {
        if self.inner.next_timer(id).is_some_and(|due| due <= now) {
            self.inner.on_timer(id, now);
        }
        if let Some(observer) = self.observers.get_mut(&id)
            && observer.sensing.next_timer().is_some_and(|due| due <= now)
        {
            observer.sensing.on_timer(now);
        }
    }
    fn next_timer(&self, id: SubflowId) -> Option<Time> {
        let own = self.observers.get(&id).and_then(|observer| observer.sensing.next_timer());
        self.inner.next_timer(id).into_iter().chain(own).min()
    }
    fn on_end(&mut self, id: SubflowId, now: Time) {
        self.inner.on_end(id, now);
        if let Some(observer) = self.observers.get_mut(&id) {
            observer.sensing.on_end(now);
            observer.complete(self.inner.control(id));
        }
    }
    fn agent_state(&mut self, id: SubflowId) -> Option<&mut AgentState> {
        self.observers.get_mut(&id)?.sensing.agent_state()
    }
}

/// The agent of an observer: it keeps what it is told for the loop of the run.
struct Witness(AgentState);

impl Agent for Witness {
    fn act(&mut self, _: &[f32]) -> Result<Action, InvalidAction> {
        let _ = self.0.take_action();
        Ok(NOTHING)
    }

    fn wants_reports(&self) -> bool {
        true
    }

    fn wants_credit(&self) -> bool {
        false
    }

    fn observe(&mut self, report: &Report) {
        let state = &mut self.0;
        state.observation.copy_from_slice(report.observation);
        state.arrived = report.arrived;
        state.decision = report.decision;
        state.fresh = true;
        state.due |= report.due;
    }

    fn end(&mut self) {
        self.0.ended = true;
    }

    fn state(&mut self) -> Option<&mut AgentState> {
        Some(&mut self.0)
    }
}
