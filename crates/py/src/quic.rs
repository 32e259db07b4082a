//! Functions of QUIC in virtual time.
use crate::captures::PyFile;
use crate::controller::Failure;
use crate::errors;
use crate::scenario::Scenario;
use crate::simulate::{in_steps, sampled, tell, with_randomness};
use crate::tables;
use ackademy::rng::Seed;
use ackademy_quic::Refused;
use ackademy_quic::virtual_time::{self, Quic};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Refuses a scenario that QUIC cannot run.
#[pyfunction]
pub fn check_quic(scenario: &Bound<'_, Scenario>) -> PyResult<()> {
    let Scenario { core, origin } = scenario.get();
    virtual_time::check(&core.network).map_err(|error| refused(origin, error))
}

/// Runs a scenario once over QUIC in virtual time; other Python threads run meanwhile.
#[pyfunction]
#[pyo3(signature = (scenario, seed, *, sample_interval_ms=0.0, progress=None, qlog=None))]
pub fn run_quic<'py>(
    scenario: &Bound<'py, Scenario>,
    seed: u64,
    sample_interval_ms: f64,
    progress: Option<Py<PyAny>>,
    qlog: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = scenario.py();
    let failure = Failure::default();
    let about = format!("{}, seed {seed}", scenario.get().core.name());
    let network = sampled(scenario.get(), sample_interval_ms)?;
    let origin = &scenario.get().origin;
    let work = || -> PyResult<_> {
        let mut quic = Quic::new(&network, Seed(seed)).map_err(|error| refused(origin, error))?;
        if let Some(file) = qlog {
            quic.log(PyFile::output(file, &failure), &about)
                .map_err(|error| refused(origin, error))?;
        }
        in_steps(network.duration, |until| {
            quic.run_until(until).map_err(|error| refused(origin, error))?;
            failure.take().map_or(Ok(()), Err)?;
            progress.as_ref().map_or(Ok(()), |progress| tell(progress, quic.now()))
        })?;
        let outcome = quic.finish();
        failure.take().map_or(Ok(outcome), Err)
    };
    let outcome = py.detach(work)?;
    with_randomness(tables::to_python(py, outcome)?, true) // noq draws, too
}

fn refused(origin: &str, error: Refused) -> PyErr {
    errors::ScenarioError::new_err(format!("{origin}: {error}"))
}
