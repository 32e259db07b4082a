//! The table of controllers, and the schemas of the files that the core reads.
use ackademy::params::{Param, ParamValue};
use ackademy::policy::DescriptionSpec;
use ackademy::scenario::{DistributionSpec, ScenarioSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use schemars::generate::SchemaSettings;

/// Name, purpose, source, settings; of a coupled controller its scope and what takes its place.
type Entry = (
    &'static str,
    &'static str,
    &'static str,
    &'static [Param],
    Option<(&'static str, &'static str)>,
);

/// Every controller in the table, by name.
#[pyfunction]
pub fn controllers(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let plain = ackademy::controllers::ALL.iter();
    let plain = plain.map(|spec| (spec.name, spec.about, spec.source, spec.params, None));
    let coupled = ackademy::coupled::ALL.iter();
    let coupled = coupled.map(|spec| {
        (spec.name, spec.about, spec.source, spec.params, Some((spec.scope.name(), spec.single)))
    });
    let mut entries: Vec<Entry> = plain.chain(coupled).collect();
    entries.sort_by_key(|entry| entry.0);
    entries
        .into_iter()
        .map(|(name, about, source, params, coupled)| {
            let entry = PyDict::new(py);
            entry.set_item("name", name)?;
            entry.set_item("about", about)?;
            entry.set_item("source", source)?;
            entry.set_item("scope", coupled.map_or("subflow", |(scope, _)| scope))?;
            entry.set_item("single", coupled.map_or(name, |(_, single)| single))?;
            let params: PyResult<Vec<_>> = params.iter().map(|param| describe(py, param)).collect();
            entry.set_item("params", params?)?;
            Ok(entry)
        })
        .collect()
}

/// JSON Schema of a kind of files that the core reads: `scenario`, `distribution` or `policy`.
#[pyfunction]
pub fn schema(kind: &str) -> PyResult<String> {
    let generator = SchemaSettings::default().into_generator();
    let schema = match kind {
        "scenario" => generator.into_root_schema_for::<ScenarioSpec>(),
        "distribution" => generator.into_root_schema_for::<DistributionSpec>(),
        "policy" => generator.into_root_schema_for::<DescriptionSpec>(),
        _ => {
            let allowed = "scenario, distribution, policy";
            return Err(PyValueError::new_err(format!("kind = {kind:?}: allowed is {allowed}")));
        }
    };
    Ok(serde_json::to_string(&schema).expect("a schema has no map with keys other than text"))
}

/// The ranges that the core's parsers check while `read` runs: path, least and largest value.
#[pyfunction]
pub fn ranges(read: &Bound<'_, PyAny>) -> PyResult<Vec<ackademy::ranges::Seen>> {
    let mut called = Ok(());
    let seen = ackademy::ranges::recorded(|| called = read.call0().map(drop));
    called.map(|()| seen)
}

fn describe<'py>(py: Python<'py>, param: &Param) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("name", param.name)?;
    entry.set_item("about", param.about)?;
    match param.kind.default() {
        Some(ParamValue::Number(number)) => entry.set_item("default", number)?,
        Some(ParamValue::Word(word)) => entry.set_item("default", word)?,
        Some(ParamValue::File(_)) | None => entry.set_item("default", py.None())?,
    }
    entry.set_item("allowed", param.kind.allowed())?;
    Ok(entry)
}
