//! Python module `ackademy._core`: converts and delegates, nothing else. One file per class or
//! group of functions; `python/ackademy/_core.pyi` states what Python sees.
#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value

use pyo3::prelude::*;

mod catalogue;
mod controller;
mod errors;
mod records;
mod scenario;
mod simulate;
mod tables;
mod trace;

/// Ackademy's compiled core.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CODE_HASH", ackademy::CODE_HASH)?;
    module.add_class::<records::Ack>()?;
    module.add_class::<records::Flow>()?;
    module.add_class::<records::Loss>()?;
    module.add_class::<scenario::Scenario>()?;
    module.add_function(wrap_pyfunction!(catalogue::controllers, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::schema, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(trace::generate_trace, module)?)
}
