//! A Python object as a controller of the core.
use crate::errors;
use crate::records::{Ack, Flow, Loss};
use ackademy::control::{self, CWND_MAX, Control, Controller, FlowInfo};
use ackademy::params::ParamValue;
use ackademy::units::{Bytes, Rate};
use pyo3::exceptions::{PyAttributeError, PyKeyboardInterrupt, PyUserWarning};
use pyo3::prelude::*;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where the first exception of a run is kept until the run can stop for it.
#[derive(Clone, Default)]
pub struct Failure {
    error: Arc<Mutex<Option<PyErr>>>,
    /// Whether the run has warned of a window below one packet.
    warned: Arc<AtomicBool>,
}

impl Failure {
    /// Takes the exception, if there was one.
    pub fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps an exception, unless there is one before it.
    pub fn keep(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The window that the object's `cwnd_bytes` gave, at least a packet. The first smaller value of a run
    /// warns: it may be a number of packets.
    pub fn window(
        &self,
        object: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        mss: Bytes,
    ) -> PyResult<Bytes> {
        let cwnd = positive(object, "cwnd_bytes", value)?;
        if cwnd < mss.0 as f64 && !self.warned.swap(true, Ordering::Relaxed) {
            let (class, packet) = (class_of(object), mss.0);
            let text = format!(
                "{class}.cwnd_bytes = {cwnd}: the unit is bytes, and the smallest window is a packet of {packet}"
            );
            let text = CString::new(text)?;
            PyErr::warn(object.py(), &object.py().get_type::<PyUserWarning>(), &text, 1)?;
        }
        Ok(Bytes((cwnd as u64).clamp(mss.0, CWND_MAX.0)))
    }
}

/// Calls `on_ack` and `on_loss` of a Python object and reads `cwnd_bytes` and `pacing_bps` of it.
/// After an exception it is not called any more, and the flow keeps its window until the run stops.
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
            Err(error) => {
                let name = class.bind(py).getattr("__name__").map(|name| name.to_string());
                controller.failure.keep(told(py, &name.unwrap_or_default(), "__init__", error));
            }
        });
        controller
    }

    fn call(&mut self, method: &str, record: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
        let Some(object) = self.object.take() else { return };
        Python::attach(|py| {
            let object = object.into_bound(py);
            match record(py).and_then(|record| object.call_method1(method, (record,))) {
                Ok(_) => self.read(&object),
                Err(error) => self.failure.keep(told(py, &class_of(&object), method, error)),
            }
        });
    }

    /// Reads window and rate and keeps the object for the next call, or keeps the error.
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
        let cwnd = object
            .getattr("cwnd_bytes")
            .map_err(|error| told(object.py(), &class_of(object), "cwnd_bytes", error))?;
        let cwnd = self.failure.window(object, &cwnd, self.mss)?;
        let pacing_rate = match object.getattr("pacing_bps") {
            Ok(value) if value.is_none() => Rate::UNLIMITED,
            Ok(value) => Rate(positive(object, "pacing_bps", &value)? as u64),
            Err(error) if error.is_instance_of::<PyAttributeError>(object.py()) => Rate::UNLIMITED,
            Err(error) => return Err(error),
        };
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

/// A number above zero that the object's member of this name gave.
pub fn positive(object: &Bound<'_, PyAny>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    match value.extract() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => {
            let given = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
            Err(errors::ControllerError::new_err(format!(
                "{}.{name} = {}: allowed is a finite number above 0",
                class_of(object),
                given.chars().take(80).collect::<String>()
            )))
        }
    }
}

/// Name of the object's class.
pub fn class_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

/// An error of a call that never reached a line of the user's file, such as a wrong number of
/// arguments, as one line that names class and method; any other as it is.
pub fn told(py: Python<'_>, class: &str, method: &str, error: PyErr) -> PyErr {
    if error.traceback(py).is_some() || error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return error;
    }
    let text = error.to_string().replace('\n', " ");
    errors::ControllerError::new_err(format!("{class}.{method}: {text}"))
}
