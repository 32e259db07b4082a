//! Controllers of other people's libraries, each loaded once.
use crate::errors;
use ackademy::control::Coupled;
use ackademy_guests::{Guest, Library};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Names as scenarios have them, such as `linux:bbr`, with the files of the libraries.
pub type Guests = BTreeMap<String, PathBuf>;

/// Names of the controllers in a library, which is loaded.
#[pyfunction]
pub fn guest_names(path: PathBuf) -> PyResult<Vec<String>> {
    Ok(library(&path)?.names().to_vec())
}

/// A controller for each subflow.
pub fn guest(name: &str, path: &Path) -> PyResult<Box<dyn Coupled>> {
    let own = name.rsplit(':').next().unwrap_or(name).to_owned();
    Ok(Box::new(Guest::per_flow(library(path)?, own)))
}

fn library(path: &Path) -> PyResult<Arc<Library>> {
    static LOADED: Mutex<BTreeMap<PathBuf, Arc<Library>>> = Mutex::new(BTreeMap::new());
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = loaded.get(path) {
        return Ok(Arc::clone(library));
    }
    let library = Library::open(path).map_err(errors::ControllerError::new_err)?;
    loaded.insert(path.to_owned(), Arc::clone(&library));
    Ok(library)
}
