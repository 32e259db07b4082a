//! Python's exception classes; each Rust error maps to one.
use ackademy::scenario::ScenarioError as CoreScenarioError;
use pyo3::PyErr;

pyo3::import_exception!(ackademy.errors, AckademyError);
pyo3::import_exception!(ackademy.errors, ScenarioError);
pyo3::import_exception!(ackademy.errors, ControllerError);

/// A refused scenario.
pub fn scenario(error: CoreScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// A refused controller or setting of one.
pub fn controller(name: &str, error: impl std::fmt::Display) -> PyErr {
    ControllerError::new_err(format!("controller {name}: {error}"))
}
