//! Class `Rollouts`: trajectories simulated and decided in the core, on several threads.
#![allow(
    clippy::disallowed_methods,
    reason = "the clock decides when Python looks for signals, never what"
)]
use crate::episodes::{origin, refused, within};
use crate::policy;
use ackademy::decision::TRUTH;
use ackademy::env::account::CreditKind;
use ackademy::env::reward::{REWARDS, Reward};
use ackademy::env::rollout::{Columns, Goal, Means, Plan, Rollout, Sampler, TRUTH_ROW};
use ackademy::env::{AGENTS_MAX, EnvError, EpisodeSource};
use ackademy::policy::{METRICS, Policy, PolicySpec};
use numpy::ndarray::{Array, Dimension};
use numpy::{PyArray, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Most simulations.
const N_MAX: usize = 1 << 16;
/// Most decisions of a call.
const DECISIONS_MAX: usize = 1 << 24;
/// Most bytes of a batch (proposed), as for `Episodes`.
const BYTES_MAX: usize = 4 << 30;
/// How long the interpreter waits before it looks for signals (proposed).
const PATIENCE: Duration = Duration::from_millis(200);
/// Decisions of a simulation between two looks at the clock (proposed).
const STEPS: u32 = 128;

/// `n` simulations with up to `agents` learning flows each.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Rollouts {
    source: Arc<EpisodeSource>,
    threads: usize,
    /// Of which each is locked by the thread that works on it.
    simulations: Vec<Mutex<Rollout>>,
    /// Held during a call.
    plan: Mutex<Plan>,
}

/// What the threads of a call share.
struct Work<'a> {
    simulations: &'a [Mutex<Rollout>],
    source: &'a EpisodeSource,
    plan: Plan,
    sampler: Sampler,
    /// Completed decisions of each simulation, of the first ones one more.
    rows: usize,
    more: usize,
    episodes: u64,
    done: Vec<AtomicBool>,
    error: Mutex<Option<(usize, EnvError)>>,
}

#[pymethods]
impl Rollouts {
    #[new]
    #[pyo3(signature = (source, agent_settings, *, n, agents, learners, seed, credit="sent", truth=false, reward=None, first=0, threads=0))]
    #[allow(clippy::too_many_arguments)] // all but the first two by name
    fn new(
        source: &Bound<'_, PyAny>,
        agent_settings: &str,
        n: usize,
        agents: usize,
        learners: Vec<String>,
        seed: u64,
        credit: &str,
        truth: bool,
        reward: Option<&str>,
        first: u64,
        threads: usize,
    ) -> PyResult<Self> {
        within("n", n, N_MAX)?;
        within("agents", agents, AGENTS_MAX)?;
        let spec = PolicySpec::parse(agent_settings)
            .map(Arc::new)
            .map_err(|error| PyValueError::new_err(format!("agent_settings: {error}")))?;
        let source = EpisodeSource::new(origin(source)?, &spec, learners, agents);
        let reward = reward_of(reward)?;
        let collects = truth || reward.is_some();
        let credit = credit_of(credit)?;
        let source = source.map_err(refused)?.collect_truth(collects);
        let source = Arc::new(source.give_credit(credit == CreditKind::Sent));
        let simulation = |index: usize| {
            let number = first.wrapping_add(index as u64);
            Mutex::new(Rollout::new(number, (index * agents) as i64, &source))
        };
        let simulations = (0..n).map(simulation).collect();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if threads == 0 { cores } else { threads.min(cores) }.min(n);
        let plan = Mutex::new(Plan { seed, progress: 0.0, credit, truth, reward });
        Ok(Self { source, threads, simulations, plan })
    }

    /// Collects completed decisions.
    #[pyo3(signature = (files, log_std, decisions, *, episodes=None))]
    #[allow(clippy::too_many_arguments)] // the interpreter is one of them
    fn collect<'py>(
        &self,
        py: Python<'py>,
        files: BTreeMap<String, Vec<u8>>,
        log_std: PyReadonlyArray1<'py, f32>,
        decisions: usize,
        episodes: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let plan = self.plan()?;
        within("decisions", decisions, DECISIONS_MAX)?;
        self.check_size(decisions)?;
        let sampler = self.sampler(&policy::read(files)?, &log_std)?;
        let work = self.work(*plan, sampler, decisions, episodes);
        self.each(|rollout| rollout.start(&work.sampler));
        while work.is_left() {
            py.detach(|| work.on_threads(self.threads));
            py.check_signals()?;
            let error = work.error.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((_, error)) = error {
                return Err(refused(error));
            }
        }
        let (columns, sums) = py.detach(|| self.gather(&work));
        to_python(py, columns, &sums, (&plan, self.source.spec()))
    }

    /// Training progress in [0, 1], by which a distribution draws the next episodes.
    #[getter]
    fn progress(&self) -> PyResult<f64> {
        Ok(self.plan()?.progress)
    }

    #[setter]
    fn set_progress(&self, progress: f64) -> PyResult<()> {
        if !(0.0..=1.0).contains(&progress) {
            let allowed = "allowed is a number in [0, 1]";
            return Err(PyValueError::new_err(format!("progress = {progress}: {allowed}")));
        }
        self.plan()?.progress = progress;
        Ok(())
    }

    #[getter]
    fn n(&self) -> usize {
        self.simulations.len()
    }

    #[getter]
    fn agents(&self) -> usize {
        self.source.agents()
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
    fn packets(&self) -> PyResult<u64> {
        self.sum(Rollout::packets)
    }

    #[getter]
    fn decisions(&self) -> PyResult<u64> {
        self.sum(Rollout::decisions)
    }

    #[getter]
    fn episodes(&self) -> PyResult<u64> {
        self.sum(Rollout::episodes)
    }
}

impl Rollouts {
    /// Waiting for another thread's call would keep the interpreter, which that call may need.
    fn plan(&self) -> PyResult<MutexGuard<'_, Plan>> {
        match self.plan.try_lock() {
            Ok(plan) => Ok(plan),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("another thread collects from these rollouts"))
            }
        }
    }

    fn each(&self, mut work: impl FnMut(&mut Rollout)) {
        self.simulations.iter().for_each(|own| work(&mut lock(own)));
    }

    fn sum(&self, of: impl Fn(&Rollout) -> u64) -> PyResult<u64> {
        let _idle = self.plan()?;
        Ok(self.simulations.iter().map(|own| of(&lock(own))).sum())
    }

    fn check_size(&self, decisions: usize) -> PyResult<()> {
        let (history, features) = self.source.spec().shape();
        let numbers = 2 * (history * features + TRUTH_ROW) * size_of::<f32>()
            + (2 * METRICS + TRUTH) * size_of::<f64>();
        if decisions.saturating_mul(numbers) <= BYTES_MAX {
            return Ok(());
        }
        let most = BYTES_MAX / numbers;
        Err(PyValueError::new_err(format!(
            "decisions = {decisions}: allowed are at most {most}, of {numbers} bytes each"
        )))
    }

    fn sampler(&self, policy: &Policy, log_std: &PyReadonlyArray1<f32>) -> PyResult<Sampler> {
        if **policy.spec() != *self.source.spec() {
            let allowed = "allowed is one with the tables of `agent_settings`";
            return Err(PyValueError::new_err(format!("policy: {allowed}")));
        }
        let log_std: Vec<f32> = log_std.as_array().iter().copied().collect();
        let size = self.source.spec().action_size();
        if log_std.len() != size || log_std.iter().any(|log| !log.is_finite()) {
            let allowed = format!("allowed are {size} finite numbers");
            return Err(PyValueError::new_err(format!("log_std = {log_std:?}: {allowed}")));
        }
        Ok(Sampler::new(policy, &log_std))
    }

    fn work(
        &self,
        plan: Plan,
        sampler: Sampler,
        decisions: usize,
        episodes: Option<u64>,
    ) -> Work<'_> {
        let n = self.simulations.len();
        Work {
            simulations: &self.simulations,
            source: &self.source,
            plan,
            sampler,
            rows: decisions / n,
            more: decisions % n,
            episodes: episodes.unwrap_or(u64::MAX),
            done: (0..n).map(|_| AtomicBool::new(false)).collect(),
            error: Mutex::new(None),
        }
    }

    /// The batch, in the order of the simulations, by two threads if there are two.
    fn gather(&self, work: &Work) -> (Columns, Vec<Means>) {
        let count = |(index, own)| lock(own).columns().len().min(work.goal(index).rows);
        let counts: Vec<usize> = self.simulations.iter().enumerate().map(count).collect();
        let empty = || lock(&self.simulations[0]).columns().empty(counts.iter().sum());
        let (mut seen, mut rest) = (empty(), empty());
        let mut sums = Vec::with_capacity(self.simulations.len());
        let mut move_seen = || {
            for (own, &count) in self.simulations.iter().zip(&counts) {
                lock(own).columns().move_seen(count, &mut seen);
            }
        };
        let mut move_rest = || {
            for (own, &count) in self.simulations.iter().zip(&counts) {
                let mut own = lock(own);
                own.columns().move_rest(count, &mut rest);
                sums.push(own.take_means());
            }
        };
        if self.threads > 1 {
            std::thread::scope(|scope| {
                scope.spawn(move_seen);
                move_rest();
            });
        } else {
            move_seen();
            move_rest();
        }
        (rest.with_seen(seen), sums)
    }
}

impl Work<'_> {
    fn goal(&self, index: usize) -> Goal {
        let rows = self.rows + usize::from(index < self.more);
        Goal { rows, episodes: self.episodes, steps: STEPS }
    }

    fn is_left(&self) -> bool {
        self.done.iter().any(|done| !done.load(Ordering::Relaxed))
    }

    /// Works on the simulations that have not reached their goal, until all have or for a while.
    fn on_threads(&self, threads: usize) {
        let (next, begin) = (AtomicUsize::new(0), Instant::now());
        let one = || {
            while let index = next.fetch_add(1, Ordering::Relaxed)
                && index < self.done.len()
                && begin.elapsed() < PATIENCE
            {
                self.run(index, begin);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(one);
            }
            one();
        });
    }

    fn run(&self, index: usize, begin: Instant) {
        let mut rollout = lock(&self.simulations[index]);
        let goal = self.goal(index);
        while !self.done[index].load(Ordering::Relaxed) && begin.elapsed() < PATIENCE {
            match rollout.run(self.source, &self.plan, &self.sampler, goal) {
                Ok(done) => self.done[index].store(done, Ordering::Relaxed),
                Err(error) => return self.fail(index, error),
            }
        }
    }

    /// Of several errors that of the first simulation is told.
    fn fail(&self, index: usize, error: EnvError) {
        self.done[index].store(true, Ordering::Relaxed);
        let mut told = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref().is_none_or(|(first, _)| index < *first) {
            *told = Some((index, error));
        }
    }
}

fn credit_of(name: &str) -> PyResult<CreditKind> {
    match name {
        "sent" => Ok(CreditKind::Sent),
        "arrived" => Ok(CreditKind::Arrived),
        _ => {
            let allowed = "allowed is sent, arrived";
            Err(PyValueError::new_err(format!("credit = {name:?}: {allowed}")))
        }
    }
}

fn reward_of(name: Option<&str>) -> PyResult<Option<&'static dyn Reward>> {
    let Some(name) = name else { return Ok(None) };
    let found = REWARDS.iter().find(|(known, _)| *known == name).map(|(_, reward)| *reward);
    found.map(Some).ok_or_else(|| {
        let known: Vec<_> = REWARDS.iter().map(|(known, _)| *known).collect();
        let allowed = format!("allowed is {}, or none", known.join(", "));
        PyValueError::new_err(format!("reward = {name:?}: {allowed}"))
    })
}

fn lock(simulation: &Mutex<Rollout>) -> MutexGuard<'_, Rollout> {
    simulation.lock().unwrap_or_else(PoisonError::into_inner)
}

fn to_python<'py>(
    py: Python<'py>,
    columns: Columns,
    sums: &[Means],
    (plan, spec): (&Plan, &PolicySpec),
) -> PyResult<Bound<'py, PyDict>> {
    let m = columns.len();
    let (history, features) = spec.shape();
    let dict = PyDict::new(py);
    put(&dict, "observation", columns.observation, (m, history, features))?;
    put(&dict, "following", columns.following, (m, history, features))?;
    if spec.choices() > 0 {
        put(&dict, "action", columns.choice, m)?;
    } else {
        put(&dict, "action", columns.value, (m, spec.action_size()))?;
    }
    put(&dict, "log_probability", columns.log_probability, m)?;
    put(&dict, "metrics", columns.metrics, (m, METRICS))?;
    put(&dict, "before", columns.before, (m, METRICS))?;
    put(&dict, "best", columns.best, m)?;
    put(&dict, "best_before", columns.best_before, m)?;
    put(&dict, "stream", columns.stream, m)?;
    put(&dict, "place", columns.place, m)?;
    put(&dict, "class_index", columns.class, m)?;
    let (seen, rewarded) = if plan.truth { (TRUTH_ROW, TRUTH) } else { (0, 0) };
    put(&dict, "truth", columns.truth, (m, seen))?;
    put(&dict, "following_truth", columns.following_truth, (m, seen))?;
    put(&dict, "rewarded_truth", columns.rewarded_truth, (m, rewarded))?;
    if plan.reward.is_some() {
        put(&dict, "reward", columns.reward, m)?;
    } else {
        dict.set_item("reward", py.None())?;
    }
    let row = |own: &Means| [own.count as f64, own.throughput_mbps, own.rtt_ms, own.loss_ratio];
    let rows: Vec<f64> = sums.iter().flat_map(row).collect();
    put(&dict, "sums", rows, (sums.len(), 4))?;
    Ok(dict)
}

/// An array of this shape under this name.
fn put<T: numpy::Element, S: numpy::ndarray::IntoDimension<Dim = D>, D: Dimension>(
    dict: &Bound<'_, PyDict>,
    name: &str,
    values: Vec<T>,
    shape: S,
) -> PyResult<()> {
    let array = Array::from_shape_vec(shape.into_dimension(), values)
        .map_err(|error| PyRuntimeError::new_err(format!("{name}: {error}")))?;
    dict.set_item(name, PyArray::from_owned_array(dict.py(), array))
}
