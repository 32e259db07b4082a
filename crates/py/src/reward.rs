//! The rewards that the core computes, and the names of truth's columns.
use ackademy::decision::{METRICS, Metrics, TRUTH, TRUTH_NAMES, Truth};
use ackademy::env::reward::{self, Flagship, Reward as _};
use numpy::ndarray::ArrayView1;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Names of the columns of `Episodes.truth` and `Episodes.credit_truth`.
#[pyfunction]
pub fn truth_columns() -> Vec<&'static str> {
    TRUTH_NAMES.to_vec()
}

/// Part of the least reward of the flows of its kind in a flow's `flagship` reward.
#[pyfunction]
pub fn flagship_team() -> f64 {
    Flagship::default().team
}

/// The rewards `aurora` of intervals.
#[pyfunction]
pub fn aurora_reward<'py>(
    py: Python<'py>,
    metrics: PyReadonlyArray2<'py, f64>,
    scale: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    check("metrics", metrics.shape(), [metrics.shape()[0], METRICS])?;
    let metrics = metrics.as_array();
    let rewards = metrics.rows().into_iter().map(|row| reward::aurora(&interval(row), scale));
    Ok(PyArray1::from_iter(py, rewards))
}

/// The own rewards of intervals; NaN for those that are unrewarded.
#[pyfunction]
pub fn flagship_reward<'py>(
    py: Python<'py>,
    metrics: PyReadonlyArray2<'py, f64>,
    truth: PyReadonlyArray2<'py, f64>,
    before_mbps: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let rows = before_mbps.len();
    check("metrics", metrics.shape(), [rows, METRICS])?;
    check("truth", truth.shape(), [rows, TRUTH])?;
    let reward = Flagship::default();
    let known = |row: ArrayView1<f64>| Truth::from_row(&std::array::from_fn(|place| row[place]));
    let (metrics, truth, before) = (metrics.as_array(), truth.as_array(), before_mbps.as_array());
    let pairs = metrics.rows().into_iter().zip(truth.rows()).zip(before);
    let own = pairs.map(|((metrics, truth), &before)| {
        reward.own(&interval(metrics), &known(truth), before).unwrap_or(f64::NAN)
    });
    Ok(PyArray1::from_iter(py, own))
}

fn interval(row: ArrayView1<f64>) -> Metrics {
    Metrics::from_row(&std::array::from_fn(|place| row[place]))
}

fn check(name: &str, shape: &[usize], wanted: [usize; 2]) -> PyResult<()> {
    if *shape == wanted {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{name} of shape {shape:?}: allowed is {wanted:?}")))
}
