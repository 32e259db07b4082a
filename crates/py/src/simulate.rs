//! Function `simulate`.
use crate::captures::{Captures, PcapFile};
use crate::controller::{Failure, PyController};
use crate::coupled_controller::{PyCoupled, is_coupled};
use crate::errors;
use crate::guests::{Guests, guest};
use crate::scenario::Scenario;
use crate::tables;
use ackademy::control::{Coupled, PerFlow};
use ackademy::rng::{Seed, watched};
use ackademy::sim::plan::{ConnectionPlan, NetworkPlan};
use ackademy::sim::record::Outcome;
use ackademy::sim::{self, Sim};
use ackademy::units::{Span, Time};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;

/// Classes by the names of controllers.
pub type Classes = BTreeMap<String, Py<PyAny>>;

/// Runs one simulation; other Python threads run meanwhile unless a controller is Python's.
#[pyfunction]
#[pyo3(signature = (scenario, seed, *, sample_interval_ms=0.0, python_controllers=None, guests=None, progress=None, pcap=None, qlog=None))]
#[allow(clippy::too_many_arguments, reason = "each has its name in Python")]
pub fn simulate<'py>(
    scenario: &Bound<'py, Scenario>,
    seed: u64,
    sample_interval_ms: f64,
    python_controllers: Option<Classes>,
    guests: Option<Guests>,
    progress: Option<Py<PyAny>>,
    pcap: Option<PcapFile>,
    qlog: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = scenario.py();
    let network = sampled(scenario.get(), sample_interval_ms)?;
    let reached = |sim: &Sim| match &progress {
        Some(progress) => tell(progress, sim.now()),
        None => Ok(()),
    };
    let failure = Failure::default();
    let name = scenario.get().core.name();
    let captures = Captures::new(pcap, qlog, format!("{name}, seed {seed}"), &failure);
    let guests = guests.unwrap_or_default();
    let (network, guests, seed) = (&network, &guests, Seed(seed));
    let run = Run { network, guests, seed, failure: &failure, reached: &reached };
    let (outcome, drawn) = if let Some(classes) = python_controllers {
        // What a controller in Python draws is not seen here.
        (run.to_end(&classes, captures)?, true)
    } else {
        let work = || run.to_end(&Classes::new(), captures);
        let (outcome, drawn) = py.detach(|| watched(work));
        (outcome?, drawn)
    };
    // What a guest draws is not seen either.
    with_randomness(tables::to_python(py, outcome)?, drawn || !guests.is_empty())
}

/// A scenario's network, with a row of time series every `sample_interval_ms`, if that is above 0.
pub fn sampled(scenario: &Scenario, sample_interval_ms: f64) -> PyResult<NetworkPlan> {
    let mut network = scenario.core.network.clone();
    if !(0.0..=MILLIS_MAX).contains(&sample_interval_ms) {
        return Err(PyValueError::new_err(format!(
            "sample_interval_ms = {sample_interval_ms}: allowed is a number in [0, {MILLIS_MAX}]"
        )));
    }
    if sample_interval_ms > 0.0 {
        network.sample_interval = Span::from_secs_f64(sample_interval_ms / 1e3);
    }
    Ok(network)
}

/// The tables of a run with the table `run`, which says whether a random number was drawn.
pub fn with_randomness(found: Bound<'_, PyDict>, drawn: bool) -> PyResult<Bound<'_, PyDict>> {
    let random = PyDict::new(found.py());
    random.set_item("is_random", PyArray1::from_vec(found.py(), vec![i64::from(drawn)]))?;
    found.set_item("run", random)?;
    Ok(found)
}

const MILLIS_MAX: f64 = 1e9;

/// How often a run checks for Ctrl-C or an exception of a controller, and reports its progress.
const CHECKS: u64 = 256;

/// A run that is to be made.
struct Run<'a> {
    network: &'a NetworkPlan,
    guests: &'a Guests,
    seed: Seed,
    failure: &'a Failure,
    reached: &'a (dyn Fn(&Sim) -> PyResult<()> + Sync),
}

impl Run<'_> {
    fn to_end(&self, classes: &Classes, captures: Captures) -> PyResult<Outcome> {
        let Self { network, guests, seed, failure, reached } = self;
        let mut build = |plan: &ConnectionPlan| {
            controller(plan, classes, guests, failure).map(|built| captures.wrap(built))
        };
        let mut sim = Sim::new(network, *seed, &mut build)?;
        captures.tap(&mut sim, network, *seed)?;
        drive(&mut sim, network.duration, |sim| {
            failure.take().map_or(Ok(()), Err)?;
            reached(sim)
        })?;
        let outcome = sim.finish();
        failure.take().map_or(Ok(outcome), Err)
    }
}

/// Calls `progress` with the simulated seconds that are over.
pub fn tell(progress: &Py<PyAny>, now: Time) -> PyResult<()> {
    Python::attach(|py| progress.call1(py, (now.as_secs_f64(),)).map(drop))
}

/// Runs a simulation to its end, unless `check` or Ctrl-C stops it.
pub fn drive(sim: &mut Sim, end: Time, check: impl Fn(&Sim) -> PyResult<()>) -> PyResult<()> {
    in_steps(end, |until| {
        sim.run_until(until);
        check(sim)
    })
}

/// Calls `reach` with times up to `end`, unless it fails or Ctrl-C stops it.
pub fn in_steps(end: Time, mut reach: impl FnMut(Time) -> PyResult<()>) -> PyResult<()> {
    for step in 1..=CHECKS {
        let until = u128::from(end.0) * u128::from(step) / u128::from(CHECKS);
        reach(Time(until as u64))?;
        Python::attach(stop_on_signal)?;
    }
    Ok(())
}

/// Raises what Ctrl-C raises, if it was pressed.
pub fn stop_on_signal(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// The controller of a connection: a guest, a class, or the core's own.
pub fn controller(
    plan: &ConnectionPlan,
    classes: &Classes,
    guests: &Guests,
    failure: &Failure,
) -> PyResult<Box<dyn Coupled>> {
    if let Some(path) = guests.get(&plan.controller) {
        return guest(&plan.controller, path);
    }
    let Some(class) = classes.get(&plan.controller) else {
        return sim::builtin(plan).map_err(|error| errors::controller(&plan.controller, error));
    };
    let class = Python::attach(|py| class.clone_ref(py));
    let failure = failure.clone();
    if is_coupled(&class) {
        return Ok(Box::new(PyCoupled::new(&class, &plan.params, failure)));
    }
    let params = plan.params.clone();
    Ok(Box::new(PerFlow::new(move |flow| {
        Box::new(PyController::new(&class, flow, &params, failure.clone()))
    })))
}
