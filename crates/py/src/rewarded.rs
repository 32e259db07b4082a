//! Class `RewardedIntervals`: which flows get a reward after a step, and for which interval.
use ackademy::decision::METRICS;
use ackademy::env::account::{Account, CreditKind, Rewarded, Shown};
use numpy::ndarray::Array2;
use numpy::{
    Element, PyArray1, PyArray2, PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2,
    PyReadonlyArray3,
};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// The flows of `n` episodes with `agents` flows each.
#[pyclass(frozen, module = "ackademy._core")]
pub struct RewardedIntervals {
    n: usize,
    agents: usize,
    kind: CreditKind,
    state: Mutex<State>,
}

struct State {
    flows: Vec<Account>,
    /// Which episodes were over at the last step.
    over: Vec<bool>,
}

/// Places of flows; the metrics of each one's interval and of the one before; the highest throughput by the end of
/// either; number of the decision that each flow is rewarded for, or −1.
type Taken<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<i64>>,
);

/// What simulations show after a step, as far as rewards follow from it.
struct Arrays<'py> {
    metrics: PyReadonlyArray3<'py, f64>,
    /// What was sent, and the number of the decision that began it; only where that is rewarded.
    credit: Option<(PyReadonlyArray3<'py, f64>, PyReadonlyArray2<'py, i64>)>,
    decision: PyReadonlyArray2<'py, i64>,
    due: PyReadonlyArray2<'py, bool>,
    left: PyReadonlyArray2<'py, bool>,
    over: PyReadonlyArray1<'py, bool>,
}

#[pymethods]
impl RewardedIntervals {
    #[new]
    fn new(n: usize, agents: usize, sent: bool) -> Self {
        let kind = if sent { CreditKind::Sent } else { CreditKind::Arrived };
        let state = State { flows: vec![Account::default(); n * agents], over: vec![false; n] };
        Self { n, agents, kind, state: Mutex::new(state) }
    }

    /// Starts over: all episodes have been reset.
    fn reset(&self, accounts: &Bound<'_, PyAny>) -> PyResult<()> {
        let accounts = self.shown(accounts)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.flows.fill(Account::default());
        self.each(&mut state, &accounts, |_, _| {})
    }

    /// What is rewarded after a step.
    fn take<'py>(&self, py: Python<'py>, accounts: &Bound<'py, PyAny>) -> PyResult<Taken<'py>> {
        let accounts = self.shown(accounts)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let flows = self.n * self.agents;
        let mut places = Vec::with_capacity(flows);
        let (mut rows, mut before) =
            (Vec::with_capacity(flows * METRICS), Vec::with_capacity(flows * METRICS));
        let (mut best, mut best_before) = (Vec::with_capacity(flows), Vec::with_capacity(flows));
        let mut decisions = vec![-1; flows];
        self.each(&mut state, &accounts, |place, rewarded| {
            places.push(place as i64);
            rows.extend_from_slice(&rewarded.own.row);
            best.push(rewarded.own.best);
            before.extend_from_slice(&rewarded.before.row);
            best_before.push(rewarded.before.best);
            decisions[place] = rewarded.decision as i64;
        })?;
        let table = |values: Vec<f64>| -> PyResult<Bound<'py, PyArray2<f64>>> {
            let table = Array2::from_shape_vec((places.len(), METRICS), values);
            Ok(PyArray2::from_owned_array(py, table.map_err(|error| refused(&error))?))
        };
        let (rows, before) = (table(rows)?, table(before)?);
        let decisions = Array2::from_shape_vec((self.n, self.agents), decisions);
        Ok((
            PyArray1::from_vec(py, places),
            rows,
            before,
            PyArray1::from_vec(py, best),
            PyArray1::from_vec(py, best_before),
            PyArray2::from_owned_array(py, decisions.map_err(|error| refused(&error))?),
        ))
    }

    /// Which flows have been due in their present episode, shape (n, agents).
    #[getter]
    fn entered<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<bool>>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let entered = state.flows.iter().map(Account::has_entered).collect();
        let table = Array2::from_shape_vec((self.n, self.agents), entered);
        Ok(PyArray2::from_owned_array(py, table.map_err(|error| refused(&error))?))
    }
}

impl RewardedIntervals {
    fn shown<'py>(&self, accounts: &Bound<'py, PyAny>) -> PyResult<Arrays<'py>> {
        let py = accounts.py();
        let credit = if self.kind == CreditKind::Sent {
            let rows = accounts.getattr(intern!(py, "credit"))?.extract()?;
            Some((rows, accounts.getattr(intern!(py, "credit_step"))?.extract()?))
        } else {
            None
        };
        Ok(Arrays {
            metrics: accounts.getattr(intern!(py, "metrics"))?.extract()?,
            credit,
            decision: accounts.getattr(intern!(py, "decision"))?.extract()?,
            due: accounts.getattr(intern!(py, "due"))?.extract()?,
            left: accounts.getattr(intern!(py, "left"))?.extract()?,
            over: accounts.getattr(intern!(py, "over"))?.extract()?,
        })
    }

    /// Takes in what is shown of each flow; `see` gets the place of each that is rewarded.
    fn each(
        &self,
        state: &mut State,
        arrays: &Arrays<'_>,
        mut see: impl FnMut(usize, &Rewarded),
    ) -> PyResult<()> {
        let flows = self.n * self.agents;
        let metrics = rows_of("metrics", &arrays.metrics, flows)?;
        let credit = match &arrays.credit {
            Some((rows, steps)) => {
                Some((rows_of("credit", rows, flows)?, slice("credit_step", steps, flows)?))
            }
            None => None,
        };
        let decision = slice("decision", &arrays.decision, flows)?;
        let due = slice("due", &arrays.due, flows)?;
        let left = slice("left", &arrays.left, flows)?;
        let over = slice("over", &arrays.over, self.n)?;
        for (place, flow) in state.flows.iter_mut().enumerate() {
            if state.over[place / self.agents] {
                *flow = Account::default();
            }
            let credit = credit.and_then(|(rows, steps)| {
                u64::try_from(steps[place]).ok().map(|decision| (&rows[place], decision))
            });
            let (arrived, due, left) = (&metrics[place], due[place], left[place]);
            if let Some(rewarded) = flow.close(self.kind, &Shown { arrived, credit, due, left }) {
                see(place, &rewarded);
            }
            if due {
                flow.enter(decision[place] as u64, arrived);
            }
        }
        state.over.copy_from_slice(over);
        Ok(())
    }
}

/// The rows of an array of metrics, of which there must be so many.
fn rows_of<'a>(
    name: &str,
    array: &'a PyReadonlyArray3<'_, f64>,
    count: usize,
) -> PyResult<&'a [[f64; METRICS]]> {
    Ok(slice(name, array, count * METRICS)?.as_chunks().0)
}

/// The numbers of an array, of which there must be so many.
fn slice<'a, T: Element, D: numpy::ndarray::Dimension>(
    name: &str,
    array: &'a PyReadonlyArray<'_, T, D>,
    count: usize,
) -> PyResult<&'a [T]> {
    let numbers = array.as_slice()?;
    if numbers.len() == count {
        return Ok(numbers);
    }
    Err(PyValueError::new_err(format!("{name} of {} numbers: allowed is {count}", numbers.len())))
}

fn refused(error: &numpy::ndarray::ShapeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
