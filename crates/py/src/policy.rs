//! Class `Policy`: a learned policy, to ask and to compare with the one that trained it.
use crate::scenario::read_file;
use ackademy::params::FILE_BYTES_MAX;
use ackademy::policy::{Action, Agent, InvalidAction};
use ackademy::policy::{FILES, Policy as CorePolicy};
use numpy::{PyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The policy in a folder, by `read` from the bytes of its files.
///
/// # Errors
///
/// `ValueError`: one line that names the file and what is wrong with it.
pub fn open_folder<T>(
    folder: &Path,
    read: impl FnOnce(&[Vec<u8>]) -> Result<T, String>,
) -> PyResult<T> {
    let content = |name: &&str| {
        let path = folder.join(name);
        read_file(&path, FILE_BYTES_MAX)
            .map_err(|allowed| format!("{}: allowed is {allowed}", path.display()))
    };
    let files: Result<Vec<_>, _> = FILES.iter().map(content).collect();
    let policy = files
        .and_then(|files| read(&files).map_err(|fault| format!("{}/{fault}", folder.display())));
    policy.map_err(PyValueError::new_err)
}

/// The policy in these files, by their names.
///
/// # Errors
///
/// `ValueError`, as [`open_folder`].
pub fn read(files: BTreeMap<String, Vec<u8>>) -> PyResult<CorePolicy> {
    if !files.keys().map(String::as_str).eq(FILES.iter().copied()) {
        let given: Vec<_> = files.into_keys().collect();
        let allowed = FILES.join(", ");
        return Err(PyValueError::new_err(format!("files = {given:?}: allowed is {allowed}")));
    }
    let files: Vec<_> = files.into_values().collect();
    CorePolicy::read(&files).map_err(PyValueError::new_err)
}

/// A policy's folder, read.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Policy(CorePolicy);

#[pymethods]
impl Policy {
    #[staticmethod]
    fn load(files: BTreeMap<String, Vec<u8>>) -> PyResult<Self> {
        read(files).map(Self)
    }

    #[staticmethod]
    fn open(folder: PathBuf) -> PyResult<Self> {
        open_folder(&folder, CorePolicy::read).map(Self)
    }

    #[getter]
    fn about(&self) -> &str {
        self.0.about()
    }

    #[getter]
    fn agent_settings(&self) -> String {
        self.0.tables()
    }

    #[getter]
    fn features(&self) -> Vec<String> {
        self.0.spec().observation.features.clone()
    }

    #[getter]
    fn history(&self) -> usize {
        self.0.network().input().steps
    }

    #[getter]
    fn n_choices(&self) -> usize {
        self.0.spec().choices()
    }

    #[getter]
    fn action_size(&self) -> usize {
        self.0.spec().action_size()
    }

    fn outputs<'py>(
        &self,
        py: Python<'py>,
        observation: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let observation = self.numbers(&observation)?;
        Ok(PyArray1::from_slice(py, self.0.agent().outputs(&observation)))
    }

    fn decide<'py>(
        &self,
        py: Python<'py>,
        observation: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let observation = self.numbers(&observation)?;
        match self.0.agent().act(&observation) {
            Ok(Action::Choice(choice)) => Ok(choice.into_pyobject(py)?.into_any()),
            Ok(Action::Values(values)) => {
                Ok(PyArray1::from_slice(py, &values[..self.0.spec().action_size()]).into_any())
            }
            Err(InvalidAction::NotFinite) => Err(PyValueError::new_err("an output is not finite")),
            Err(InvalidAction::OutOfRange) => {
                Err(PyValueError::new_err("an output is out of range"))
            }
        }
    }

    fn __repr__(&self) -> String {
        format!("Policy({:?})", self.0.about())
    }
}

impl Policy {
    /// The observation row by row, if it has this policy's shape.
    fn numbers(&self, observation: &PyReadonlyArray2<'_, f32>) -> PyResult<Vec<f32>> {
        let wanted = self.0.network().input();
        if observation.shape() != [wanted.steps, wanted.width] {
            return Err(PyValueError::new_err(format!(
                "observation of shape {:?}: allowed is [{}, {}]",
                observation.shape(),
                wanted.steps,
                wanted.width
            )));
        }
        Ok(observation.as_array().iter().copied().collect())
    }
}
