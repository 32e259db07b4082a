//! Class `Episodes`: many simulations stepped at once for learners, into arrays that stay the same.
use crate::distribution::Distribution;
use crate::scenario::Scenario;
use crate::tables;
use ackademy::env::{AGENTS_MAX, EnvError, Episode, EpisodeSource, Source};
use ackademy::policy::{Action, FEATURES, Feature, METRIC_NAMES, METRICS, PolicySpec};
use ackademy::rng::Seed;
use ackademy::sim::record::Outcome;
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArray4, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray3,
    PyReadwriteArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::iter::{IntoParallelRefMutIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Most simulations at once.
const N_MAX: usize = 1 << 16;
/// Most bytes of all arrays together (proposed): beyond, numpy has no memory to give.
const BYTES_MAX: usize = 4 << 30;

/// `n` simulations with up to `agents` learning flows each.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Episodes {
    source: EpisodeSource,
    state: Mutex<State>,
    pool: Option<ThreadPool>,
    observation: Py<PyArray4<f32>>,
    metrics: Py<PyArray3<f64>>,
    credit: Py<PyArray3<f64>>,
    credit_step: Py<PyArray2<i64>>,
    due: Py<PyArray2<bool>>,
    left: Py<PyArray2<bool>>,
    decision: Py<PyArray2<i64>>,
    over: Py<PyArray1<bool>>,
}

struct State {
    seed: u64,
    /// Number of the first simulation, where others before it are simulated elsewhere.
    first: u64,
    progress: f64,
    simulations: Vec<Simulation>,
}

/// What a new episode follows from, besides its place and number.
#[derive(Clone, Copy)]
struct Plan {
    seed: u64,
    first: u64,
    progress: f64,
}

/// One of the simulations, and what is left of those before it.
#[derive(Default)]
struct Simulation {
    episode: Option<Episode>,
    /// Episodes begun under the present seed.
    begun: u64,
    outcome: Option<Outcome>,
    packets: u64,
    /// Simulated time of the last episode that ended, seconds.
    ended_s: f64,
    decisions: u64,
    error: Option<EnvError>,
}

/// A simulation and its rows of the arrays.
struct Row<'a> {
    index: usize,
    simulation: &'a mut Simulation,
    observation: &'a mut [f32],
    metrics: &'a mut [f64],
    credit: &'a mut [f64],
    credit_step: &'a mut [i64],
    due: &'a mut [bool],
    left: &'a mut [bool],
    decision: &'a mut [i64],
    over: &'a mut bool,
}

/// What a learner answers, for all agents of all simulations.
enum Actions<'py> {
    Choices(PyReadonlyArray2<'py, i64>),
    Values(PyReadonlyArray3<'py, f32>),
}

#[pymethods]
impl Episodes {
    #[new]
    #[pyo3(signature = (source, agent_settings, *, n, agents, learners, seed, first=0, threads=0))]
    #[allow(clippy::too_many_arguments)] // all but the first two by name
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        agent_settings: &str,
        n: usize,
        agents: usize,
        learners: Vec<String>,
        seed: u64,
        first: u64,
        threads: usize,
    ) -> PyResult<Self> {
        within("n", n, N_MAX)?;
        within("agents", agents, AGENTS_MAX)?;
        let spec = PolicySpec::parse(agent_settings)
            .map(Arc::new)
            .map_err(|error| PyValueError::new_err(format!("agent_settings: {error}")))?;
        let (history, features) = spec.shape();
        let agent_bytes = history * features * size_of::<f32>() + 2 * METRICS * size_of::<f64>();
        if (n * agents).saturating_mul(agent_bytes) > BYTES_MAX {
            return Err(PyValueError::new_err(format!(
                "n = {n} with agents = {agents}: allowed are at most {} agents of {agent_bytes} bytes",
                BYTES_MAX / agent_bytes
            )));
        }
        let source =
            EpisodeSource::new(origin(source)?, &spec, learners, agents).map_err(refused)?;
        Ok(Self {
            source,
            state: Mutex::new(State {
                seed,
                first,
                progress: 0.0,
                simulations: (0..n).map(|_| Simulation::default()).collect(),
            }),
            pool: pool(n, threads)?,
            observation: PyArray4::zeros(py, [n, agents, history, features], false).unbind(),
            metrics: PyArray3::zeros(py, [n, agents, METRICS], false).unbind(),
            credit: PyArray3::zeros(py, [n, agents, METRICS], false).unbind(),
            credit_step: PyArray2::zeros(py, [n, agents], false).unbind(),
            due: PyArray2::zeros(py, [n, agents], false).unbind(),
            left: PyArray2::zeros(py, [n, agents], false).unbind(),
            decision: PyArray2::zeros(py, [n, agents], false).unbind(),
            over: PyArray1::zeros(py, n, false).unbind(),
        })
    }

    /// Begins every simulation anew, and runs each until a decision falls due.
    #[pyo3(signature = (seed=None))]
    fn reset(&self, py: Python<'_>, seed: Option<u64>) -> PyResult<()> {
        let mut state = self.state()?;
        if let Some(seed) = seed {
            state.seed = seed;
            state.simulations.iter_mut().for_each(|simulation| simulation.begun = 0);
        }
        self.each(py, &mut state, &|row, own| self.begin(row, own))
    }

    /// Answers for the agents whose decision is due, and runs every simulation until the next.
    fn step(&self, py: Python<'_>, actions: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut state = self.state()?;
        let actions = self.take(actions)?;
        if state
            .simulations
            .iter()
            .any(|simulation| simulation.episode.is_none() && simulation.outcome.is_none())
        {
            return Err(PyRuntimeError::new_err("step before reset"));
        }
        self.check_choices(py, &actions)?;
        let actions = actions.gather();
        let size = self.source.agents();
        self.each(py, &mut state, &|row, own| {
            if *row.over {
                return self.begin(row, own);
            }
            let first = row.index * size;
            Self::go_on(row, &actions[first..first + size]);
        })
    }

    /// Tables of the last episode of the simulation `index` that ended, as `simulate` returns them.
    fn tables<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        let state = self.state()?;
        let n = state.simulations.len();
        let simulation = state.simulations.get(index).ok_or_else(|| {
            PyValueError::new_err(format!("index = {index}: allowed is a whole number below {n}"))
        })?;
        let outcome = simulation.outcome.clone().ok_or_else(|| {
            PyValueError::new_err(format!("index = {index}: no episode of it has ended yet"))
        })?;
        tables::to_python(py, outcome)
    }

    #[getter]
    fn observation(&self, py: Python<'_>) -> PyResult<Py<PyArray4<f32>>> {
        self.between_calls(|| self.observation.clone_ref(py))
    }

    #[getter]
    fn metrics(&self, py: Python<'_>) -> PyResult<Py<PyArray3<f64>>> {
        self.between_calls(|| self.metrics.clone_ref(py))
    }

    #[getter]
    fn credit(&self, py: Python<'_>) -> PyResult<Py<PyArray3<f64>>> {
        self.between_calls(|| self.credit.clone_ref(py))
    }

    #[getter]
    fn credit_step(&self, py: Python<'_>) -> PyResult<Py<PyArray2<i64>>> {
        self.between_calls(|| self.credit_step.clone_ref(py))
    }

    #[getter]
    fn due(&self, py: Python<'_>) -> PyResult<Py<PyArray2<bool>>> {
        self.between_calls(|| self.due.clone_ref(py))
    }

    #[getter]
    fn left(&self, py: Python<'_>) -> PyResult<Py<PyArray2<bool>>> {
        self.between_calls(|| self.left.clone_ref(py))
    }

    #[getter]
    fn decision(&self, py: Python<'_>) -> PyResult<Py<PyArray2<i64>>> {
        self.between_calls(|| self.decision.clone_ref(py))
    }

    #[getter]
    fn over(&self, py: Python<'_>) -> PyResult<Py<PyArray1<bool>>> {
        self.between_calls(|| self.over.clone_ref(py))
    }

    /// How far training is, in [0, 1]: what a distribution draws the next episodes by.
    #[getter]
    fn progress(&self) -> PyResult<f64> {
        Ok(self.state()?.progress)
    }

    #[setter]
    fn set_progress(&self, progress: f64) -> PyResult<()> {
        if !(0.0..=1.0).contains(&progress) {
            let allowed = "allowed is a number in [0, 1]";
            return Err(PyValueError::new_err(format!("progress = {progress}: {allowed}")));
        }
        self.state()?.progress = progress;
        Ok(())
    }

    #[getter]
    fn n_choices(&self) -> usize {
        self.source.spec().choices()
    }

    #[getter]
    fn action_size(&self) -> usize {
        self.source.spec().action_size()
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.source.spec().shape().1
    }

    #[getter]
    fn history(&self) -> usize {
        self.source.spec().shape().0
    }

    #[getter]
    fn features(&self) -> Vec<String> {
        self.source.spec().observation.features.clone()
    }

    #[getter]
    fn packets(&self) -> PyResult<u64> {
        let packets = |simulation: &Simulation| {
            simulation.packets + simulation.episode.as_ref().map_or(0, Episode::packets)
        };
        Ok(self.state()?.simulations.iter().map(packets).sum())
    }

    #[getter]
    fn decisions(&self) -> PyResult<u64> {
        Ok(self.state()?.simulations.iter().map(|simulation| simulation.decisions).sum())
    }

    /// Simulated time of each episode, seconds.
    #[getter]
    fn time_s<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let now = |simulation: &Simulation| {
            simulation.episode.as_ref().map_or(simulation.ended_s, |own| own.now().as_secs_f64())
        };
        Ok(PyArray1::from_vec(py, self.state()?.simulations.iter().map(now).collect()))
    }
}

impl Episodes {
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

    /// An array, unless another thread's call is writing to it.
    fn between_calls<T>(&self, array: impl FnOnce() -> T) -> PyResult<T> {
        let _idle = self.state()?;
        Ok(array())
    }

    /// Does `work` for every simulation, without the interpreter, on the threads of the pool.
    fn each(
        &self,
        py: Python<'_>,
        state: &mut State,
        work: &(dyn Fn(&mut Row, Plan) + Sync),
    ) -> PyResult<()> {
        let (length, width) = self.source.spec().shape();
        let agents = self.source.agents();
        let mut observation = writable(&self.observation, py)?;
        let mut metrics = writable(&self.metrics, py)?;
        let mut credit = writable(&self.credit, py)?;
        let mut credit_step = writable(&self.credit_step, py)?;
        let mut due = writable(&self.due, py)?;
        let mut left = writable(&self.left, py)?;
        let mut decision = writable(&self.decision, py)?;
        let mut over = writable(&self.over, py)?;
        let mut observation = observation.as_slice_mut()?.chunks_mut(agents * length * width);
        let mut metrics = metrics.as_slice_mut()?.chunks_mut(agents * METRICS);
        let mut credit = credit.as_slice_mut()?.chunks_mut(agents * METRICS);
        let mut credit_step = credit_step.as_slice_mut()?.chunks_mut(agents);
        let mut due = due.as_slice_mut()?.chunks_mut(agents);
        let mut left = left.as_slice_mut()?.chunks_mut(agents);
        let mut decision = decision.as_slice_mut()?.chunks_mut(agents);
        let mut over = over.as_slice_mut()?.iter_mut();
        let plan = Plan { seed: state.seed, first: state.first, progress: state.progress };
        let rows = state.simulations.iter_mut().enumerate().map_while(|(index, simulation)| {
            Some(Row {
                index,
                simulation,
                observation: observation.next()?,
                metrics: metrics.next()?,
                credit: credit.next()?,
                credit_step: credit_step.next()?,
                due: due.next()?,
                left: left.next()?,
                decision: decision.next()?,
                over: over.next()?,
            })
        });
        let mut rows: Vec<Row> = rows.collect();
        py.detach(|| match &self.pool {
            Some(pool) => pool.install(|| rows.par_iter_mut().for_each(|row| work(row, plan))),
            None => rows.iter_mut().for_each(|row| work(row, plan)),
        });
        drop(rows);
        py.check_signals()?;
        match state.simulations.iter_mut().find_map(|simulation| simulation.error.take()) {
            Some(error) => Err(refused(error)),
            None => Ok(()),
        }
    }

    /// The next episode of a simulation, up to its first decision.
    fn begin(&self, row: &mut Row, Plan { seed, first, progress }: Plan) {
        let simulation = &mut *row.simulation;
        if let Some(left) = simulation.episode.take() {
            simulation.packets += left.packets();
        }
        let of_simulation = Seed(seed).derive("simulation", first.wrapping_add(row.index as u64));
        let own = Seed(Seed(of_simulation).derive("episode", simulation.begun));
        simulation.begun += 1;
        row.observation.fill(0.0);
        row.metrics.fill(0.0);
        row.credit.fill(0.0);
        row.decision.fill(0);
        *row.over = false;
        // Of several that failed at once only the first was told.
        simulation.error = None;
        match self.source.begin(own, progress) {
            Ok(episode) => {
                simulation.episode = Some(episode);
                row.advance();
            }
            Err(error) => {
                simulation.error = Some(error);
                *row.over = true;
            }
        }
    }

    fn go_on(row: &mut Row, actions: &[Action]) {
        if let Some(episode) = &mut row.simulation.episode {
            for (agent, &action) in actions.iter().enumerate().take(episode.flows()) {
                row.simulation.decisions += u64::from(episode.act(agent, action));
            }
            row.advance();
        }
    }

    fn take<'py>(&self, actions: &Bound<'py, PyAny>) -> PyResult<Actions<'py>> {
        let (n, agents) = (self.over.bind(actions.py()).len(), self.source.agents());
        let (taken, shape, wanted, kind) = if self.source.spec().choices() > 0 {
            let array: PyReadonlyArray2<i64> = actions.extract().map_err(|_| {
                PyTypeError::new_err("actions: allowed is an array of int64 with 2 dimensions")
            })?;
            let shape = array.shape().to_vec();
            (Actions::Choices(array), shape, vec![n, agents], "int64")
        } else {
            let array: PyReadonlyArray3<f32> = actions.extract().map_err(|_| {
                PyTypeError::new_err("actions: allowed is an array of float32 with 3 dimensions")
            })?;
            let shape = array.shape().to_vec();
            let wanted = vec![n, agents, self.source.spec().action_size()];
            (Actions::Values(array), shape, wanted, "float32")
        };
        if shape == wanted {
            return Ok(taken);
        }
        Err(PyValueError::new_err(format!(
            "actions of shape {shape:?}: allowed is {kind} of shape {wanted:?}"
        )))
    }

    /// A choice that does not exist is a fault of the caller, not a flow's to bear.
    fn check_choices(&self, py: Python<'_>, actions: &Actions) -> PyResult<()> {
        let Actions::Choices(choices) = actions else { return Ok(()) };
        let due = self.due.bind(py).readonly();
        let choices = choices.as_array();
        for ((place, &choice), &due) in choices.indexed_iter().zip(due.as_array().iter()) {
            if due && !(0..self.source.spec().choices() as i64).contains(&choice) {
                return Err(PyValueError::new_err(format!(
                    "actions[{}, {}] = {choice}: allowed is a whole number in [0, {}]",
                    place.0,
                    place.1,
                    self.source.spec().choices() - 1
                )));
            }
        }
        Ok(())
    }
}

impl Row<'_> {
    /// Runs to the next decision, or to the end, and writes down what is new.
    fn advance(&mut self) {
        let Some(episode) = &mut self.simulation.episode else { return };
        episode.advance();
        let numbers = self.observation.len() / self.due.len();
        for agent in 0..self.due.len() {
            self.credit_step[agent] = -1;
            let mut state = episode.agent(agent);
            self.due[agent] = state.due;
            self.left[agent] = state.ended;
            if !std::mem::take(&mut state.fresh) {
                continue;
            }
            self.observation[agent * numbers..][..numbers].copy_from_slice(&state.observation);
            let place = agent * METRICS;
            self.metrics[place..][..METRICS].copy_from_slice(&state.arrived.row());
            self.decision[agent] = state.decision as i64;
            if let Some(credit) = state.credit {
                self.credit_step[agent] = credit.decision as i64;
                self.credit[place..][..METRICS].copy_from_slice(&credit.metrics.row());
            }
        }
        *self.over = episode.is_over();
        if *self.over
            && let Some(ended) = self.simulation.episode.take()
        {
            self.simulation.packets += ended.packets();
            self.simulation.ended_s = ended.now().as_secs_f64();
            self.simulation.outcome = Some(ended.finish());
        }
    }
}

impl Actions<'_> {
    /// In the order of agents; out of the interpreter's reach.
    fn gather(&self) -> Vec<Action> {
        match self {
            Self::Choices(choices) => {
                let choice =
                    |&index: &i64| Action::Choice(usize::try_from(index).unwrap_or(usize::MAX));
                choices.as_array().iter().map(choice).collect()
            }
            Self::Values(values) => {
                let rows = values.as_array();
                let lanes = rows.rows();
                let action = |row: numpy::ndarray::ArrayView1<f32>| {
                    Action::Values([row[0], row.get(1).copied().unwrap_or(0.0)])
                };
                lanes.into_iter().map(action).collect()
            }
        }
    }
}

/// Features that an observation may have: name, meaning, scaling, smallest and largest value.
#[pyfunction]
pub fn observation_features() -> Vec<(&'static str, &'static str, &'static str, f32, f32)> {
    let row = |feature: &Feature| {
        let (low, high) = feature.range();
        (feature.name, feature.about, feature.scale, low, high)
    };
    FEATURES.iter().map(row).collect()
}

/// Names of the columns of `Episodes.metrics` and `Episodes.credit`.
#[pyfunction]
pub fn interval_metrics() -> Vec<&'static str> {
    METRIC_NAMES.to_vec()
}

fn writable<'py, T: numpy::Element, D: numpy::ndarray::Dimension>(
    array: &Py<numpy::PyArray<T, D>>,
    py: Python<'py>,
) -> PyResult<PyReadwriteArray<'py, T, D>> {
    let held =
        |error| PyRuntimeError::new_err(format!("an array of these episodes is held: {error}"));
    array.bind(py).try_readwrite().map_err(held)
}

fn origin(source: &Bound<'_, PyAny>) -> PyResult<Source> {
    if let Ok(scenario) = source.cast::<Scenario>() {
        return Ok(Source::Scenario(Box::new(scenario.get().core.clone())));
    }
    if let Ok(distribution) = source.cast::<Distribution>() {
        return Ok(Source::Distribution(Box::new(distribution.get().core.clone())));
    }
    let class = source.get_type().name()?;
    let allowed = "allowed is a Scenario or a Distribution";
    Err(PyTypeError::new_err(format!("source of type {class}: {allowed}")))
}

fn pool(n: usize, threads: usize) -> PyResult<Option<ThreadPool>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if threads == 0 { cores } else { threads }.min(n);
    if threads < 2 {
        return Ok(None);
    }
    let named = ThreadPoolBuilder::new().num_threads(threads);
    named.build().map(Some).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

fn refused(error: EnvError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn within(name: &str, value: usize, most: usize) -> PyResult<()> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    let allowed = format!("allowed is a whole number in [1, {most}]");
    Err(PyValueError::new_err(format!("{name} = {value}: {allowed}")))
}
