//! A Python object as a controller of all subflows of a connection.
use crate::controller::{Failure, class_of, positive, told};
use crate::records::{Ack, Flow, Loss};
use ackademy::control::{self, Control, Coupled, FlowInfo, SubflowId};
use ackademy::params::ParamValue;
use ackademy::units::{Bytes, Rate};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Whether a class governs several subflows: it has a method `subflow_added`.
pub fn is_coupled(class: &Py<PyAny>) -> bool {
    Python::attach(|py| class.bind(py).hasattr("subflow_added").unwrap_or(false))
}

/// Calls the methods of a Python object with the number of a subflow, and asks it after each call what every
/// subflow may send. After an exception it is not called any more, and the subflows keep their windows until
/// the run stops.
pub struct PyCoupled {
    object: Option<Py<PyAny>>,
    params: Vec<(String, ParamValue)>,
    controls: BTreeMap<SubflowId, Allowed>,
    failure: Failure,
}

/// What a subflow may send.
struct Allowed {
    control: Control,
    mss: Bytes,
}

impl PyCoupled {
    /// Calls `class()`; `params` are what the scenario sets, unchecked: the class knows its own.
    pub fn new(class: &Py<PyAny>, params: &[(String, ParamValue)], failure: Failure) -> Self {
        let object = Python::attach(|py| match class.call0(py) {
            Ok(object) => Some(object),
            Err(error) => {
                let name = class.bind(py).getattr("__name__").map(|name| name.to_string());
                failure.keep(told(py, &name.unwrap_or_default(), "__init__", error));
                None
            }
        });
        Self { object, params: params.to_vec(), controls: BTreeMap::new(), failure }
    }

    /// Calls a method with a subflow and perhaps a record.
    fn call(
        &mut self,
        method: &str,
        id: SubflowId,
        record: impl FnOnce(Python<'_>) -> PyResult<Option<Py<PyAny>>>,
    ) {
        let Some(object) = self.object.take() else { return };
        Python::attach(|py| {
            let object = object.into_bound(py);
            let called = record(py).and_then(|record| {
                let subflow = id.0.into_pyobject(py)?.into_any();
                match record {
                    Some(record) => object.call_method1(method, (subflow, record)),
                    None => object.call_method1(method, (subflow,)),
                }
            });
            let read = called
                .map_err(|error| told(py, &class_of(&object), method, error))
                .and_then(|_| self.read(&object));
            match read {
                Ok(()) => self.object = Some(object.unbind()),
                Err(error) => self.failure.keep(error),
            }
        });
    }

    /// Asks what every subflow may send.
    fn read(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        let paces = object.hasattr("pacing_bps")?;
        for (id, allowed) in &mut self.controls {
            let ask = |method: &str| {
                let answer = object.call_method1(method, (id.0,));
                answer.map_err(|error| told(py, &class_of(object), method, error))
            };
            let cwnd = self.failure.window(object, &ask("cwnd_bytes")?, allowed.mss)?;
            let rate = if paces { Some(ask("pacing_bps")?) } else { None };
            let pacing_rate = match rate.filter(|rate| !rate.is_none()) {
                Some(rate) => Rate(positive(object, "pacing_bps", &rate)? as u64),
                None => Rate::UNLIMITED,
            };
            allowed.control = Control { pacing_rate, ..Control::window(cwnd) };
        }
        Ok(())
    }
}

impl Coupled for PyCoupled {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        let control = Control::window(flow.initial_cwnd);
        self.controls.insert(id, Allowed { control, mss: flow.mss });
        let flow = Flow(*flow, self.params.clone());
        self.call("subflow_added", id, |py| Ok(Some(Py::new(py, flow)?.into_any())));
    }

    fn subflow_removed(&mut self, id: SubflowId) {
        if self.controls.remove(&id).is_some() {
            self.call("subflow_removed", id, |_| Ok(None));
        }
    }

    fn on_ack(&mut self, id: SubflowId, ack: &control::Ack) {
        let ack = Ack(*ack);
        self.call("on_ack", id, |py| Ok(Some(Py::new(py, ack)?.into_any())));
    }

    fn on_loss(&mut self, id: SubflowId, loss: &control::Loss) {
        let loss = Loss(*loss);
        self.call("on_loss", id, |py| Ok(Some(Py::new(py, loss)?.into_any())));
    }

    fn control(&self, id: SubflowId) -> Control {
        let allowed = self.controls.get(&id);
        allowed.map_or(Control::window(Bytes(1)), |allowed| allowed.control)
    }
}
