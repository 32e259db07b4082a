//! The table of controllers and the schema of scenario files.
use ackademy::params::{Param, ParamValue};
use ackademy::scenario::{RANGES, ScenarioSpec};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;

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

/// JSON Schema of scenario files, with the ranges of numbers whose unit is in their name.
#[pyfunction]
pub fn schema() -> String {
    let settings = SchemaSettings::default().with_transform(RecursiveTransform(add_ranges));
    let schema = settings.into_generator().into_root_schema_for::<ScenarioSpec>();
    serde_json::to_string_pretty(&schema).expect("a schema has no map with keys other than text")
}

/// Adds `minimum` and `maximum` to the numbers among a table's properties.
fn add_ranges(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(|found| found.as_object_mut())
    else {
        return;
    };
    for (name, property) in properties {
        let range = RANGES.iter().find(|range| name.ends_with(range.0));
        let kind = property.get("type").map(ToString::to_string).unwrap_or_default();
        if let Some(&(_, low, high)) = range
            && kind.contains("number")
        {
            property["minimum"] = low.into();
            property["maximum"] = high.into();
        }
    }
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
