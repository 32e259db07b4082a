//! A Python object as a controller of the core.
use crate::records::{Ack, Flow, Loss};
use ackademy::control::{self, Control, Controller, FlowInfo};
use ackademy::params::ParamValue;
use ackademy::units::{Bytes, Rate};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the first exception of a run is kept until the run can stop for it.
#[derive(Clone, Default)]
pub struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// Takes the exception, if there was one.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Calls `on_ack` and `on_loss` of a Python object and reads `cwnd_bytes` and `pacing_bps` of it.
/// After an exception it is left alone, and the flow keeps its window until the run stops.
pub struct PyController {
    object: Option<Py<PyAny>>,
    control: Control,
    mss: Bytes,
    failure: Failure,
}

impl PyController {
    /// Calls `class(flow)`; `params` are what the scenario sets, unchecked: the class knows its own.
    pub fn new(
        class: &Py<PyAny>,
        flow: &FlowInfo,
        params: &[(String, ParamValue)],
        failure: Failure,
    ) -> Self {
        let control = Control::window(flow.initial_cwnd);
        let mut controller = Self { object: None, control, mss: flow.mss, failure };
        Python::attach(|py| match class.call1(py, (Flow(*flow, params.to_vec()),)) {
            Ok(object) => controller.read(object.bind(py)),
            Err(error) => controller.failure.keep(error),
        });
        controller
    }

    fn call(&mut self, method: &str, record: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
        let Some(object) = self.object.take() else { return };
        Python::attach(|py| {
            let object = object.into_bound(py);
            match record(py).and_then(|record| object.call_method1(method, (record,))) {
                Ok(_) => self.read(&object),
                Err(error) => self.failure.keep(error),
            }
        });
    }

    /// Reads what the object allows; keeps the object if that makes sense.
    fn read(&mut self, object: &Bound<'_, PyAny>) {
        match self.allowed(object) {
            Ok(control) => {
                self.control = control;
                self.object = Some(object.clone().unbind());
            }
            Err(error) => self.failure.keep(error),
        }
    }

    fn allowed(&self, object: &Bound<'_, PyAny>) -> PyResult<Control> {
        let cwnd = positive(object, "cwnd_bytes", object.getattr("cwnd_bytes")?.extract()?)?;
        let pacing_rate = match object.getattr("pacing_bps") {
            Ok(value) if value.is_none() => Rate::UNLIMITED,
            Ok(value) => Rate(positive(object, "pacing_bps", value.extract()?)? as u64),
            Err(error) if error.is_instance_of::<PyAttributeError>(object.py()) => Rate::UNLIMITED,
            Err(error) => return Err(error),
        };
        let cwnd = Bytes((cwnd as u64).clamp(self.mss.0, CWND_MAX));
        Ok(Control { pacing_rate, ..Control::window(cwnd) })
    }
}

impl Controller for PyController {
    fn on_ack(&mut self, ack: &control::Ack) {
        let ack = Ack(*ack);
        self.call("on_ack", |py| Ok(Py::new(py, ack)?.into_any()));
    }

    fn on_loss(&mut self, loss: &control::Loss) {
        let loss = Loss(*loss);
        self.call("on_loss", |py| Ok(Py::new(py, loss)?.into_any()));
    }

    fn control(&self) -> Control {
        self.control
    }
}

/// A terabyte in flight is more than any path holds.
const CWND_MAX: u64 = 1 << 40;

fn positive(object: &Bound<'_, PyAny>, name: &str, value: f64) -> PyResult<f64> {
    if value > 0.0 && value.is_finite() {
        return Ok(value);
    }
    let class = object.get_type().name()?;
    Err(PyValueError::new_err(format!(
        "{class}.{name} = {value}: allowed is a finite number above 0"
    )))
}
