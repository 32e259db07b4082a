//! Class `Forest`: a loss predictor, to compare with the one that fitted it.
use ackademy::controllers::lp_tcp::Policy;
use ackademy::sensing::sends::FEATURES;
use numpy::{PyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A random forest over LP-TCP's numbers.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Forest(Policy);

#[pymethods]
impl Forest {
    #[staticmethod]
    fn load(content: &[u8]) -> PyResult<Self> {
        let refused = |fault| PyValueError::new_err(format!("policy: {fault}"));
        Policy::read(content).map(Self).map_err(refused)
    }

    fn mean<'py>(
        &self,
        py: Python<'py>,
        features: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let &[_, columns] = features.shape() else { unreachable!("two dimensions") };
        if columns != FEATURES {
            let allowed = format!("{FEATURES} columns");
            return Err(PyValueError::new_err(format!(
                "features of {columns} columns: allowed is {allowed}"
            )));
        }
        let rows = features.as_array();
        let mean = rows.rows().into_iter().map(|row| self.0.loss_probability(&row.to_vec()));
        Ok(PyArray1::from_vec(py, mean.collect()))
    }
}
