//! Class `Episodes`: many simulations stepped at once for learners, into arrays that stay the same.
use crate::board::{Arrays, Board, Sizes};
use crate::distribution::Distribution;
use crate::scenario::Scenario;
use crate::simulate::stop_on_signal;
use crate::simulation::{Plan, Simulation};
use crate::tables;
use crate::workers::Workers;
use ackademy::env::{AGENTS_MAX, EnvError, EpisodeSource, Source};
use ackademy::policy::{Action, FEATURES, Feature, METRIC_NAMES, METRICS, PolicySpec, TRUTH};
use numpy::ndarray::{Ix1, Ix2, Ix3, Ix4};
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArray4, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray3,
    PyReadwriteArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

/// Most simulations at once.
const N_MAX: usize = 1 << 16;
/// Most bytes of all arrays together (proposed): beyond, numpy has no memory to give.
const BYTES_MAX: usize = 4 << 30;

/// `n` simulations with up to `agents` learning flows each.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Episodes {
    state: Mutex<State>,
    shared: Arc<Shared>,
    observation: Py<PyArray4<f32>>,
    metrics: Py<PyArray3<f64>>,
    credit: Py<PyArray3<f64>>,
    credit_step: Py<PyArray2<i64>>,
    truth: Py<PyArray3<f64>>,
    credit_truth: Py<PyArray3<f64>>,
    due: Py<PyArray2<bool>>,
    left: Py<PyArray2<bool>>,
    decision: Py<PyArray2<i64>>,
    over: Py<PyArray1<bool>>,
}

/// Lets the simulation of this index go on.
type Work = Box<dyn Fn(usize) -> u32 + Send + Sync>;

/// What calls change, one at a time.
struct State {
    /// Episodes have begun.
    begun: bool,
    workers: Workers<Work>,
}

/// What the threads have in common.
struct Shared {
    source: EpisodeSource,
    /// Of which each is locked by the thread that works on it.
    simulations: Box<[Mutex<Simulation>]>,
    board: Board,
    /// What new episodes follow from.
    plan: Mutex<Plan>,
    /// In this call every simulation begins anew, whatever goes on.
    begins: AtomicBool,
    /// An episode could not begin.
    failed: AtomicBool,
    interrupt: Interrupt,
}

/// Ctrl-C in a call, which only the calling thread can find out.
#[derive(Default)]
struct Interrupt {
    /// The thread that called.
    caller: Mutex<Option<ThreadId>>,
    /// Simulations stop where they are.
    pressed: AtomicBool,
    /// What the interpreter's handler raised.
    raised: Mutex<Option<PyErr>>,
}

impl Interrupt {
    /// A call begins, of this thread.
    fn begin(&self) {
        *lock(&self.caller) = Some(thread::current().id());
        self.pressed.store(false, Ordering::Relaxed);
    }

    /// Whether simulations are to stop.
    fn stops(&self) -> bool {
        if *lock(&self.caller) == Some(thread::current().id()) {
            self.look();
        }
        self.pressed.load(Ordering::Relaxed)
    }

    /// Asks the interpreter; nothing but the calling thread may.
    fn look(&self) {
        if !self.pressed.load(Ordering::Relaxed)
            && let Err(raised) = Python::attach(stop_on_signal)
        {
            *lock(&self.raised) = Some(raised);
            self.pressed.store(true, Ordering::Relaxed);
        }
    }
}

/// What a learner answers, for all agents of all simulations.
enum Actions<'py> {
    Choices(PyReadonlyArray2<'py, i64>),
    Values(PyReadonlyArray3<'py, f32>),
}

#[pymethods]
impl Episodes {
    #[new]
    #[pyo3(signature = (source, agent_settings, *, n, agents, learners, seed, first=0, threads=0, truth=false, credit=true))]
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
        truth: bool,
        credit: bool,
    ) -> PyResult<Self> {
        within("n", n, N_MAX)?;
        within("agents", agents, AGENTS_MAX)?;
        let spec = PolicySpec::parse(agent_settings)
            .map(Arc::new)
            .map_err(|error| PyValueError::new_err(format!("agent_settings: {error}")))?;
        let (history, features) = spec.shape();
        let columns = METRICS + if truth { TRUTH } else { 0 };
        let agent_bytes = history * features * size_of::<f32>() + 2 * columns * size_of::<f64>();
        if (n * agents).saturating_mul(agent_bytes) > BYTES_MAX {
            return Err(PyValueError::new_err(format!(
                "n = {n} with agents = {agents}: allowed are at most {} agents of {agent_bytes} bytes",
                BYTES_MAX / agent_bytes
            )));
        }
        let source = EpisodeSource::new(origin(source)?, &spec, learners, agents);
        let source = source.map_err(refused)?.collect_truth(truth).give_credit(credit);
        let width = if truth { TRUTH } else { 0 };
        let sizes = Sizes { n, agents, numbers: history * features, columns: width };
        let plan = Plan { seed, first, progress: 0.0 };
        let shared = Arc::new(Shared {
            source,
            simulations: (0..n).map(|index| Mutex::new(Simulation::new(index))).collect(),
            board: Board::new(sizes, spec.choices() > 0),
            plan: Mutex::new(plan),
            begins: AtomicBool::new(true),
            failed: AtomicBool::new(false),
            interrupt: Interrupt::default(),
        });
        let workers = workers(&shared, threads)?;
        Ok(Self {
            state: Mutex::new(State { begun: false, workers }),
            shared,
            observation: PyArray4::zeros(py, [n, agents, history, features], false).unbind(),
            metrics: PyArray3::zeros(py, [n, agents, METRICS], false).unbind(),
            credit: PyArray3::zeros(py, [n, agents, METRICS], false).unbind(),
            credit_step: PyArray2::zeros(py, [n, agents], false).unbind(),
            truth: PyArray3::zeros(py, [n, agents, width], false).unbind(),
            credit_truth: PyArray3::zeros(py, [n, agents, width], false).unbind(),
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
        let rows = self.rows(py)?;
        if let Some(seed) = seed {
            lock(&self.shared.plan).seed = seed;
            self.locked().for_each(|mut simulation| simulation.rewind());
        }
        self.go_on(py, &mut state, rows, true)
    }

    /// Answers for the agents whose decision is due, and runs every simulation until the next.
    fn step(&self, py: Python<'_>, actions: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut state = self.state()?;
        let actions = self.take(actions)?;
        if !state.begun {
            return Err(PyRuntimeError::new_err("step before reset"));
        }
        self.check_choices(py, &actions)?;
        let rows = self.rows(py)?;
        actions.write(&self.shared.board);
        self.go_on(py, &mut state, rows, false)
    }

    /// Tables of the last episode of the simulation `index` that ended, as `simulate` returns them.
    fn tables<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        let _idle = self.state()?;
        let n = self.shared.simulations.len();
        let simulation = self.shared.simulations.get(index).ok_or_else(|| {
            PyValueError::new_err(format!("index = {index}: allowed is a whole number below {n}"))
        })?;
        let outcome = lock(simulation).outcome.clone().ok_or_else(|| {
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
    fn truth(&self, py: Python<'_>) -> PyResult<Py<PyArray3<f64>>> {
        self.between_calls(|| self.truth.clone_ref(py))
    }

    #[getter]
    fn credit_truth(&self, py: Python<'_>) -> PyResult<Py<PyArray3<f64>>> {
        self.between_calls(|| self.credit_truth.clone_ref(py))
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

    /// Training progress in [0, 1], by which a distribution draws the next episodes.
    #[getter]
    fn progress(&self) -> PyResult<f64> {
        let _idle = self.state()?;
        Ok(lock(&self.shared.plan).progress)
    }

    #[setter]
    fn set_progress(&self, progress: f64) -> PyResult<()> {
        if !(0.0..=1.0).contains(&progress) {
            let allowed = "allowed is a number in [0, 1]";
            return Err(PyValueError::new_err(format!("progress = {progress}: {allowed}")));
        }
        let _idle = self.state()?;
        lock(&self.shared.plan).progress = progress;
        Ok(())
    }

    #[getter]
    fn n_choices(&self) -> usize {
        self.spec().choices()
    }

    #[getter]
    fn action_size(&self) -> usize {
        self.spec().action_size()
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.spec().shape().1
    }

    #[getter]
    fn history(&self) -> usize {
        self.spec().shape().0
    }

    #[getter]
    fn features(&self) -> Vec<String> {
        self.spec().observation.features.clone()
    }

    #[getter]
    fn packets(&self) -> PyResult<u64> {
        self.between_calls(|| self.locked().map(|simulation| simulation.packets()).sum())
    }

    #[getter]
    fn decisions(&self) -> PyResult<u64> {
        self.between_calls(|| self.locked().map(|simulation| simulation.decisions).sum())
    }

    /// Simulated time of each episode, seconds.
    #[getter]
    fn time_s<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let times = self.between_calls(|| self.locked().map(|own| own.time_s()).collect())?;
        Ok(PyArray1::from_vec(py, times))
    }
}

impl Episodes {
    fn spec(&self) -> &PolicySpec {
        self.shared.source.spec()
    }

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

    /// Every simulation, while none is being worked on.
    fn locked(&self) -> impl Iterator<Item = MutexGuard<'_, Simulation>> {
        self.shared.simulations.iter().map(lock)
    }

    /// The arrays for writing. To be called before anything changes: one that cannot be written to is
    /// an error.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Rows<'py>> {
        Ok(Rows {
            observation: writable(&self.observation, py)?,
            metrics: writable(&self.metrics, py)?,
            credit: writable(&self.credit, py)?,
            credit_step: writable(&self.credit_step, py)?,
            truth: writable(&self.truth, py)?,
            credit_truth: writable(&self.credit_truth, py)?,
            due: writable(&self.due, py)?,
            left: writable(&self.left, py)?,
            decision: writable(&self.decision, py)?,
            over: writable(&self.over, py)?,
        })
    }

    /// Lets every simulation go on, or begin anew, without the interpreter, and shows what is new. Ctrl-C stops
    /// them where they are; a step goes on from there, episodes that have not all begun have to begin again.
    fn go_on(
        &self,
        py: Python<'_>,
        state: &mut State,
        mut rows: Rows,
        begins: bool,
    ) -> PyResult<()> {
        let interrupt = &self.shared.interrupt;
        self.shared.begins.store(begins, Ordering::Relaxed);
        interrupt.begin();
        py.detach(|| state.workers.run(&|| interrupt.look()));
        self.shared.board.show(rows.slices()?);
        drop(rows);
        let failed = self.shared.failed.swap(false, Ordering::Relaxed);
        let error = if failed {
            self.locked().find_map(|mut simulation| simulation.error.take())
        } else {
            None
        };
        let raised = lock(&interrupt.raised).take();
        state.begun = if begins && raised.is_some() { false } else { state.begun || !failed };
        raised.map_or(Ok(()), Err)?;
        py.check_signals()?;
        error.map_or(Ok(()), |error| Err(refused(error)))
    }

    fn take<'py>(&self, actions: &Bound<'py, PyAny>) -> PyResult<Actions<'py>> {
        let (n, agents) = (self.over.bind(actions.py()).len(), self.shared.source.agents());
        let (taken, shape, wanted, kind) = if self.spec().choices() > 0 {
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
            let wanted = vec![n, agents, self.spec().action_size()];
            (Actions::Values(array), shape, wanted, "float32")
        };
        if shape == wanted {
            return Ok(taken);
        }
        Err(PyValueError::new_err(format!(
            "actions of shape {shape:?}: allowed is {kind} of shape {wanted:?}"
        )))
    }

    /// A choice out of range is an error of the caller, not a reason for the flow to fall back.
    fn check_choices(&self, py: Python<'_>, actions: &Actions) -> PyResult<()> {
        let Actions::Choices(choices) = actions else { return Ok(()) };
        let due = self.due.bind(py).readonly();
        let choices = choices.as_array();
        for ((place, &choice), &due) in choices.indexed_iter().zip(due.as_array().iter()) {
            if due && !(0..self.spec().choices() as i64).contains(&choice) {
                return Err(PyValueError::new_err(format!(
                    "actions[{}, {}] = {choice}: allowed is a whole number in [0, {}]",
                    place.0,
                    place.1,
                    self.spec().choices() - 1
                )));
            }
        }
        Ok(())
    }
}

/// The arrays, held for writing.
struct Rows<'py> {
    observation: PyReadwriteArray<'py, f32, Ix4>,
    metrics: PyReadwriteArray<'py, f64, Ix3>,
    credit: PyReadwriteArray<'py, f64, Ix3>,
    credit_step: PyReadwriteArray<'py, i64, Ix2>,
    truth: PyReadwriteArray<'py, f64, Ix3>,
    credit_truth: PyReadwriteArray<'py, f64, Ix3>,
    due: PyReadwriteArray<'py, bool, Ix2>,
    left: PyReadwriteArray<'py, bool, Ix2>,
    decision: PyReadwriteArray<'py, i64, Ix2>,
    over: PyReadwriteArray<'py, bool, Ix1>,
}

impl Rows<'_> {
    fn slices(&mut self) -> PyResult<Arrays<'_>> {
        Ok(Arrays {
            observation: self.observation.as_slice_mut()?,
            metrics: self.metrics.as_slice_mut()?,
            credit: self.credit.as_slice_mut()?,
            truth: self.truth.as_slice_mut()?,
            credit_truth: self.credit_truth.as_slice_mut()?,
            credit_step: self.credit_step.as_slice_mut()?,
            decision: self.decision.as_slice_mut()?,
            due: self.due.as_slice_mut()?,
            left: self.left.as_slice_mut()?,
            over: self.over.as_slice_mut()?,
        })
    }
}

impl Shared {
    /// What a thread does with the simulation of this index; returns how many events that were, about.
    fn work(&self, index: usize) -> u32 {
        if self.interrupt.pressed.load(Ordering::Relaxed) {
            return 0;
        }
        let stops = || self.interrupt.stops();
        let mut simulation = lock(&self.simulations[index]);
        let before = simulation.events();
        if self.begins.load(Ordering::Relaxed) || self.board.is_over(index) {
            let plan = *lock(&self.plan); // not held while the episode begins
            simulation.begin(&self.source, plan, &self.board, &stops);
        } else {
            simulation.go_on(&self.board, &stops);
        }
        if simulation.error.is_some() {
            self.failed.store(true, Ordering::Relaxed);
        }
        // An episode that ended or began in this call counts as small until the next.
        u32::try_from(simulation.events().saturating_sub(before)).unwrap_or(u32::MAX)
    }
}

/// Only the thread that works on a simulation holds its lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Actions<'_> {
    /// In the order of agents; out of the interpreter's reach.
    fn write(&self, board: &Board) {
        match self {
            Self::Choices(choices) => {
                for (place, &index) in choices.as_array().iter().enumerate() {
                    let choice = usize::try_from(index).unwrap_or(usize::MAX);
                    board.answer(place, Action::Choice(choice));
                }
            }
            Self::Values(values) => {
                for (place, row) in values.as_array().rows().into_iter().enumerate() {
                    let second = row.get(1).copied().unwrap_or(0.0);
                    board.answer(place, Action::Values([row[0], second]));
                }
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

pub(crate) fn origin(source: &Bound<'_, PyAny>) -> PyResult<Source> {
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

fn workers(shared: &Arc<Shared>, threads: usize) -> PyResult<Workers<Work>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if threads == 0 { cores } else { threads.min(cores) };
    let (threads, shared) = (threads.min(shared.simulations.len()), Arc::clone(shared));
    let count = shared.simulations.len() as u32;
    let workers = Workers::new(threads, count, Box::new(move |index| shared.work(index)) as Work);
    workers.map_err(|error| PyRuntimeError::new_err(format!("threads = {threads}: {error}")))
}

pub(crate) fn refused(error: EnvError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn within(name: &str, value: usize, max: usize) -> PyResult<()> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    let allowed = format!("allowed is a whole number in [1, {max}]");
    Err(PyValueError::new_err(format!("{name} = {value}: {allowed}")))
}
