//! Function `collect_sends`: the training set of a loss predictor.
use crate::errors;
use crate::scenario::Scenario;
use crate::simulate::drive;
use ackademy::rng::Seed;
use ackademy::sensing::sends::FEATURES;
use ackademy::sim::plan::ConnectionPlan;
use ackademy::sim::sends::{Sampling, Sends, collect};
use ackademy::sim::{Sim, builtin};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What senders knew at each transmission, and which of them a queue dropped.
#[pyfunction]
#[pyo3(signature = (scenario, seed, *, keep_one_in))]
pub fn collect_sends<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    seed: u64,
    keep_one_in: u64,
) -> PyResult<Bound<'py, PyDict>> {
    if keep_one_in == 0 {
        return Err(PyValueError::new_err("keep_one_in = 0: allowed is a number from 1"));
    }
    let network = scenario.get().core.network.clone();
    let sampling = Sampling { seed: Seed(seed), keep_one_in };
    let mut build = |plan: &ConnectionPlan| {
        builtin(plan).map_err(|error| errors::controller(&plan.controller, error))
    };
    let mut run = |sim: &mut Sim| drive(sim, network.duration, |_| Ok(()));
    let sends = py.detach(|| collect(&network, sampling, &mut build, &mut run))?;
    to_python(py, sends)
}

fn to_python(py: Python<'_>, sends: Sends) -> PyResult<Bound<'_, PyDict>> {
    let rows = sends.flow.len();
    let table = PyDict::new(py);
    let features = PyArray1::from_vec(py, sends.features).reshape([rows, FEATURES])?;
    table.set_item("features", features)?;
    table.set_item("dropped", PyArray1::from_vec(py, sends.dropped))?;
    table.set_item("time_s", PyArray1::from_vec(py, sends.time_s))?;
    table.set_item("flow", PyArray1::from_vec(py, sends.flow))?;
    table.set_item("phase", PyArray1::from_vec(py, sends.phase))?;
    table.set_item("n_sends", sends.sends)?;
    table.set_item("n_drops", sends.drops)?;
    Ok(table)
}
