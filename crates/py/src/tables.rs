//! From tables of the core to columns of numpy.
use ackademy::sim::record::{Column, Outcome, Table};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// Columns by table: `flows`, `counters`, `links`, `flow_series`, `link_series`.
pub fn to_python(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyDict>> {
    let tables = PyDict::new(py);
    for Table { name, columns } in outcome.into_tables() {
        let table = PyDict::new(py);
        for (name, column) in columns {
            table.set_item(name, values(py, column)?)?;
        }
        tables.set_item(name, table)?;
    }
    Ok(tables)
}

fn values(py: Python<'_>, column: Column) -> PyResult<Bound<'_, PyAny>> {
    match column {
        Column::Texts { words, rows } => {
            // Few distinct texts, repeated: one object each.
            let words: Vec<_> = words.iter().map(|word| PyString::new(py, word)).collect();
            let texts = rows.iter().map(|&row| words[row as usize].clone());
            Ok(PyList::new(py, texts)?.into_any())
        }
        Column::Numbers(values) => Ok(PyArray1::from_vec(py, values).into_any()),
        // As signed integers, so that differences of columns may be negative.
        Column::Counts(values) => {
            let signed: Vec<i64> =
                values.into_iter().map(|value| i64::try_from(value).unwrap_or(i64::MAX)).collect();
            Ok(PyArray1::from_vec(py, signed).into_any())
        }
    }
}
