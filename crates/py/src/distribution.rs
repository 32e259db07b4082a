//! Class `Distribution`: the core's, with files read beside it.
use crate::scenario::Scenario;
use crate::{errors, files};
use ackademy::rng::Seed;
use ackademy::scenario::Distribution as CoreDistribution;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;

/// Scenarios at random.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Distribution {
    pub core: CoreDistribution,
}

#[pymethods]
impl Distribution {
    #[staticmethod]
    #[pyo3(signature = (text, origin, files=None))]
    fn parse(text: &str, origin: &str, files: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let folder = Path::new(origin).parent().map(Path::to_path_buf).unwrap_or_default();
        let core = CoreDistribution::parse(text, origin, &mut files::loader(folder, files));
        Ok(Self { core: core.map_err(errors::scenario)? })
    }

    #[pyo3(signature = (seed, progress=0.0))]
    fn draw(&self, py: Python<'_>, seed: u64, progress: f64) -> PyResult<Scenario> {
        let drawn = py.detach(|| self.core.draw(Seed(seed), progress));
        let core = drawn.map_err(errors::scenario)?;
        Ok(Scenario { core, origin: self.core.origin().to_owned() })
    }

    #[pyo3(signature = (progress=0.0))]
    fn weights(&self, progress: f64) -> Vec<f64> {
        self.core.weights(progress)
    }

    #[getter]
    fn about(&self) -> &str {
        self.core.about()
    }

    #[getter]
    fn agents(&self) -> usize {
        self.core.agents()
    }

    #[pyo3(signature = (progress=0.0))]
    fn agents_at(&self, progress: f64) -> usize {
        self.core.agents_at(progress)
    }

    #[getter]
    fn classes(&self) -> Vec<String> {
        self.core.classes().to_vec()
    }

    #[getter]
    fn class_of_each(&self) -> Vec<usize> {
        self.core.class_of_each()
    }

    #[getter]
    fn digest(&self) -> String {
        format!("{:016x}", self.core.digest())
    }

    #[getter]
    fn learners(&self) -> Vec<String> {
        self.core.learners().to_vec()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.core.names().into_iter().map(str::to_owned).collect()
    }

    #[getter]
    fn origin(&self) -> &str {
        self.core.origin()
    }

    fn __repr__(&self) -> String {
        format!("Distribution({})", self.core.origin())
    }
}
