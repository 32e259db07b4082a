//! Scenarios for the program that runs ns-3's TCP.
use crate::errors;
use crate::scenario::Scenario;
use crate::simulate::sampled;
use ackademy::rng::Seed;
use ackademy::scenario::ns3;
use pyo3::prelude::*;

/// Refuses a scenario that ns-3's TCP cannot run.
#[pyfunction]
pub fn check_ns3(scenario: &Bound<'_, Scenario>) -> PyResult<()> {
    ns3_plan(scenario, 0, 0.0).map(drop)
}

/// The scenario as the program reads it.
#[pyfunction]
#[pyo3(signature = (scenario, seed, *, sample_interval_ms=0.0))]
pub fn ns3_plan(
    scenario: &Bound<'_, Scenario>,
    seed: u64,
    sample_interval_ms: f64,
) -> PyResult<String> {
    let network = sampled(scenario.get(), sample_interval_ms)?;
    let origin = &scenario.get().origin;
    ns3::lines(&network, Seed(seed))
        .map_err(|error| errors::ScenarioError::new_err(format!("{origin}: {error}")))
}
