//! The reward that needs truth, and the names of truth's columns.
use ackademy::decision::{METRICS, Metrics, TRUTH, TRUTH_NAMES, Truth, metric_place};
use ackademy::env::reward::Flagship;
use numpy::{
    PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods, ndarray::ArrayView1,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const THROUGHPUT: usize = metric_place("throughput_mbps");

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

/// The own rewards of intervals; NaN for those that are unrewarded.
#[pyfunction]
pub fn flagship_reward<'py>(
    py: Python<'py>,
    metrics: PyReadonlyArray2<'py, f64>,
    truth: PyReadonlyArray2<'py, f64>,
    before_mbps: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let rows = before_mbps.len();
    for (name, shape, wanted) in
        [("metrics", metrics.shape(), [rows, METRICS]), ("truth", truth.shape(), [rows, TRUTH])]
    {
        if *shape != wanted {
            let about = format!("{name} of shape {shape:?}: allowed is {wanted:?}");
            return Err(PyValueError::new_err(about));
        }
    }
    let reward = Flagship::default();
    let throughput =
        |row: ArrayView1<f64>| Metrics { throughput_mbps: row[THROUGHPUT], ..Metrics::default() };
    let known = |row: ArrayView1<f64>| Truth::from_row(&std::array::from_fn(|place| row[place]));
    let (metrics, truth, before) = (metrics.as_array(), truth.as_array(), before_mbps.as_array());
    let pairs = metrics.rows().into_iter().zip(truth.rows()).zip(before);
    let own = pairs.map(|((metrics, truth), &before)| {
        reward.own(&throughput(metrics), &known(truth), before).unwrap_or(f64::NAN)
    });
    Ok(PyArray1::from_iter(py, own))
}
