//! Classes `HostEpisodes` and `JointPolicy`: the agent of a host, trained and asked.
use crate::policy::open_folder;
use crate::scenario::Scenario;
use crate::tables;
use ackademy::env::{HostEnvironment, HostEpisode};
use ackademy::policy::joint::{JointPolicy as CorePolicy, JointSpec, PATHS_MAX};
use ackademy::rng::Seed;
use numpy::ndarray::Array2;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Simulations of a scenario, one after the other, in which a host's agent learns.
#[pyclass(frozen, module = "ackademy._core")]
pub struct HostEpisodes {
    environment: HostEnvironment,
    seed: Seed,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    episode: Option<HostEpisode>,
    /// Data packets of the episodes before.
    packets: u64,
}

/// The numbers of the target, and those of every flow.
type Observation<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray2<f32>>);

#[pymethods]
impl HostEpisodes {
    #[new]
    #[pyo3(signature = (scenario, settings, *, learners, seed))]
    fn new(
        scenario: &Bound<'_, Scenario>,
        settings: &str,
        learners: Vec<String>,
        seed: u64,
    ) -> PyResult<Self> {
        let refused = |fault: String| PyValueError::new_err(fault);
        let spec =
            JointSpec::parse(settings).map_err(|fault| refused(format!("settings: {fault}")))?;
        let environment = HostEnvironment::new(&scenario.get().core, &spec, &learners)
            .map_err(|error| refused(error.to_string()))?;
        Ok(Self { environment, seed: Seed(seed), state: Mutex::default() })
    }

    /// The table `host` of a scenario, as TOML.
    #[staticmethod]
    fn scales(scenario: &Bound<'_, Scenario>, learners: Vec<String>) -> PyResult<String> {
        HostEnvironment::scales(&scenario.get().core, &learners)
            .map(|spec| spec.text())
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Begins the episode of this number, and runs it until a decision is due.
    fn begin(&self, py: Python<'_>, number: u64) -> PyResult<bool> {
        let mut state = self.state()?;
        let episode = self.environment.begin(Seed(self.seed.derive("episode", number)));
        let episode = episode.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let before = state.episode.replace(episode);
        state.packets += before.map_or(0, |before| before.packets());
        go_on(py, &mut state)
    }

    /// Changes the target's windows, and runs until the next decision is due; false at the end.
    fn step(&self, py: Python<'_>, changes: PyReadonlyArray1<'_, f32>) -> PyResult<bool> {
        let paths = self.environment.spec().paths;
        if changes.shape() != [paths] {
            let problem = format!("changes of shape {:?}: allowed is [{paths}]", changes.shape());
            return Err(PyValueError::new_err(problem));
        }
        let mut values = [0.0; PATHS_MAX];
        values.iter_mut().zip(changes.as_array()).for_each(|(to, from)| *to = *from);
        let mut state = self.state()?;
        if !running(&mut state)?.act(values) {
            return Err(PyRuntimeError::new_err("step after the end of the episode"));
        }
        go_on(py, &mut state)
    }

    /// The numbers of the target, shape (5 paths,), and of every active flow, shape (flows, 5 paths + 1).
    #[getter]
    fn observation<'py>(&self, py: Python<'py>) -> PyResult<Observation<'py>> {
        let spec = *self.environment.spec();
        let mut state = self.state()?;
        let episode = running(&mut state)?;
        let numbers = episode.state().map_or(&[][..], |state| &state.observation);
        let (target, rows) = numbers.split_at(spec.target_width().min(numbers.len()));
        let width = spec.row_width();
        let rows = Array2::from_shape_vec((rows.len() / width, width), rows.to_vec());
        let rows = rows.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok((PyArray1::from_slice(py, target), PyArray2::from_owned_array(py, rows)))
    }

    /// Length of the epoch that the observation is of, seconds.
    #[getter]
    fn duration_s(&self) -> PyResult<f64> {
        let mut state = self.state()?;
        Ok(running(&mut state)?.state().map_or(0.0, |state| state.arrived.duration_s))
    }

    /// Simulated time of the episode, seconds.
    #[getter]
    fn time_s(&self) -> PyResult<f64> {
        let mut state = self.state()?;
        Ok(running(&mut state)?.now().as_secs_f64())
    }

    /// Data packets sent so far, by every flow of every episode.
    #[getter]
    fn packets(&self) -> PyResult<u64> {
        let state = self.state()?;
        Ok(state.packets + state.episode.as_ref().map_or(0, HostEpisode::packets))
    }

    /// Tables of the episode up to the present time, as `simulate` returns them; ends it.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut state = self.state()?;
        let episode = state.episode.take().ok_or_else(not_begun)?;
        state.packets += episode.packets();
        tables::to_python(py, episode.finish())
    }
}

impl HostEpisodes {
    /// Waiting for another thread's step would keep the interpreter, which that step may need.
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("these episodes are being stepped by another thread"))
            }
        }
    }
}

fn not_begun() -> PyErr {
    PyRuntimeError::new_err("no episode has begun")
}

fn running(state: &mut State) -> PyResult<&mut HostEpisode> {
    state.episode.as_mut().ok_or_else(not_begun)
}

/// Runs until a decision is due, without the interpreter.
fn go_on(py: Python<'_>, state: &mut State) -> PyResult<bool> {
    let episode = running(state)?;
    let is_due = py.detach(|| episode.advance());
    py.check_signals()?;
    Ok(is_due)
}

/// A policy of a host, to ask and to compare with the one that trained it.
#[pyclass(frozen, module = "ackademy._core")]
pub struct JointPolicy(CorePolicy);

#[pymethods]
impl JointPolicy {
    #[staticmethod]
    fn open(folder: PathBuf) -> PyResult<Self> {
        open_folder(&folder, CorePolicy::read).map(Self)
    }

    #[getter]
    fn about(&self) -> &str {
        self.0.about()
    }

    /// Subflows of a connection.
    #[getter]
    fn paths(&self) -> usize {
        self.0.spec().paths
    }

    /// The actor's outputs for a target and the flows of the host.
    fn outputs<'py>(
        &self,
        py: Python<'py>,
        target: PyReadonlyArray1<'py, f32>,
        flows: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let spec = self.0.spec();
        let (width, row) = (spec.target_width(), spec.row_width());
        if target.shape() != [width] || flows.shape()[0] == 0 || flows.shape()[1] != row {
            let (target, flows) = (target.shape(), flows.shape());
            let given = format!("target of shape {target:?} and flows of shape {flows:?}");
            let allowed = format!("allowed are [{width}] and [1 or more, {row}]");
            return Err(PyValueError::new_err(format!("{given}: {allowed}")));
        }
        let (target, flows) = (target.as_array(), flows.as_array());
        let numbers: Vec<f32> = target.iter().chain(flows.iter()).copied().collect();
        Ok(PyArray1::from_slice(py, self.0.agent().outputs(&numbers)))
    }

    fn __repr__(&self) -> String {
        format!("JointPolicy({:?})", self.0.about())
    }
}
