//! Files that scenarios and distributions name: read here, or brought along from another machine.
use crate::scenario::read_file;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;

/// Gives the contents of files by name: those in `brought`, and otherwise what lies in `folder`, which is then put
/// into `brought`.
pub fn loader<'a>(
    folder: PathBuf,
    brought: Option<&'a Bound<'a, PyDict>>,
) -> impl FnMut(&str, u64) -> Result<Vec<u8>, String> + 'a {
    move |name, bytes_max| {
        let Some(brought) = brought else { return read_file(&folder.join(name), bytes_max) };
        let fail = |error: PyErr| format!("a file whose content can be kept ({error})");
        if let Some(content) = brought.get_item(name).map_err(fail)? {
            let content: Vec<u8> = content.extract().map_err(fail)?;
            return if content.len() as u64 <= bytes_max {
                Ok(content)
            } else {
                Err(format!("a file of at most {bytes_max} bytes"))
            };
        }
        let content = read_file(&folder.join(name), bytes_max)?;
        brought.set_item(name, PyBytes::new(brought.py(), &content)).map_err(fail)?;
        Ok(content)
    }
}
