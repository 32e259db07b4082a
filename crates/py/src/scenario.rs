//! Class `Scenario`: the core's, with files read beside it.
use crate::{errors, files};
use ackademy::params::{self, ParamValue, Params};
use ackademy::scenario::{self, Scenario as CoreScenario};
use ackademy::transport::send_hook;
use ackademy::{coupled, sim};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::path::Path;

/// A checked scenario file, every default filled in.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Scenario {
    pub core: CoreScenario,
    pub origin: String,
}

/// Whether a name matches a pattern (`*` for any characters, `?` for one).
#[pyfunction]
pub fn fits(pattern: &str, name: &str) -> bool {
    scenario::fits(pattern, name)
}

/// A setting of a controller as Python gives it.
#[derive(FromPyObject)]
pub enum Setting {
    Number(f64),
    Word(String),
}

#[pymethods]
impl Scenario {
    #[staticmethod]
    #[pyo3(signature = (text, origin, overrides=BTreeMap::new(), files=None))]
    fn parse(
        text: &str,
        origin: &str,
        overrides: BTreeMap<String, String>,
        files: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let folder = Path::new(origin).parent().map(Path::to_path_buf).unwrap_or_default();
        let overrides: Vec<_> = overrides.into_iter().collect();
        let mut load = files::loader(folder, files);
        let core = CoreScenario::parse_with(text, origin, &overrides, &mut load);
        Ok(Self { core: core.map_err(errors::scenario)?, origin: origin.to_owned() })
    }

    fn canonical(&self) -> String {
        self.core.canonical()
    }

    fn resolved(&self) -> String {
        self.core.resolved()
    }

    fn portable(&self) -> PyResult<(String, BTreeMap<String, String>)> {
        let folder = std::path::absolute(self.folder())?;
        let (text, traces) = self.core.portable(&|name| folder.join(name).display().to_string());
        let texts = traces.into_iter().map(|(name, trace)| (name, trace.to_text()));
        Ok((text, texts.collect()))
    }

    #[pyo3(signature = (cc, params, entries=None))]
    fn with_controller(
        &self,
        cc: &str,
        params: BTreeMap<String, Setting>,
        entries: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let params: Vec<(String, ParamValue)> =
            params.into_iter().map(|(name, setting)| (name, setting.into())).collect();
        let params = check(cc, &params)?;
        let chosen =
            |name: &str| entries.as_ref().is_none_or(|names| names.iter().any(|own| own == name));
        let core = self.core.with_controller_for(cc, &params, &chosen).map_err(errors::scenario)?;
        Ok(Self { core, origin: self.origin.clone() })
    }

    #[getter]
    fn name(&self) -> String {
        self.core.name()
    }

    #[getter]
    fn origin(&self) -> &str {
        &self.origin
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.core.network.duration.as_secs_f64()
    }

    #[getter]
    fn flows(&self) -> Vec<&str> {
        self.core.network.connections.iter().map(|plan| plan.name.as_str()).collect()
    }

    #[getter]
    fn links(&self) -> Vec<&str> {
        self.core.network.links.iter().map(|link| link.name.as_str()).collect()
    }

    #[getter]
    fn owners(&self) -> Vec<usize> {
        self.core.owners()
    }

    #[getter]
    fn subflows(&self) -> Vec<usize> {
        self.core.network.connections.iter().map(|plan| plan.subflows.len()).collect()
    }

    #[getter]
    fn idle(&self) -> Vec<&str> {
        let network = &self.core.network;
        let late = network.connections.iter().filter(|plan| plan.start >= network.duration);
        late.map(|plan| plan.name.as_str()).collect()
    }

    #[getter]
    fn entries(&self) -> Vec<String> {
        self.core.entry_names()
    }

    #[getter]
    fn controllers(&self) -> Vec<&str> {
        self.core.network.connections.iter().map(|plan| plan.controller.as_str()).collect()
    }

    #[getter]
    fn has_send_hook(&self) -> bool {
        let plans = &self.core.network.connections;
        plans.iter().any(|plan| sim::builtin(plan).is_ok_and(send_hook::has_send_hook))
    }

    fn __repr__(&self) -> String {
        format!("Scenario({}, {} s)", self.name(), self.duration_s())
    }
}

impl Scenario {
    /// What the names of files in it are relative to.
    fn folder(&self) -> &Path {
        match Path::new(&self.origin).parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }
}

impl From<Setting> for ParamValue {
    fn from(setting: Setting) -> Self {
        match setting {
            Setting::Number(number) => Self::Number(number),
            Setting::Word(word) => Self::Word(word),
        }
    }
}

/// The settings with their files read, relative to the current folder. Says what is wrong with a
/// controller without blaming a line of the scenario file for it.
fn check(cc: &str, given: &[(String, ParamValue)]) -> PyResult<Vec<(String, ParamValue)>> {
    let Some(list) = coupled::settings(cc) else {
        if cc.contains(':') {
            return Ok(given.to_vec());
        }
        let known = coupled::all_names();
        return Err(errors::controller(cc, format!("allowed is {known}, or file.py:Class")));
    };
    let refused = |error| errors::controller(cc, error);
    let mut load = |name: &str, bytes_max| read_file(Path::new(name), bytes_max);
    let mut opened = params::open(list, given, &mut load).map_err(refused)?;
    Params::resolve(list, &opened).map_err(refused)?;
    // Beside a scenario's own files, whose names are relative to its folder.
    for (_, value) in &mut opened {
        if let ParamValue::File(content) = value {
            content.path = std::path::absolute(&content.path)?.display().to_string();
        }
    }
    Ok(opened)
}

/// The content of a file of at most `bytes_max` bytes, by `ackademy.files.read_bytes`, which says what may be read.
pub fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let read = |py: Python| -> PyResult<Vec<u8>> {
        let files = py.import("ackademy.files")?;
        let content = files.call_method1("read_bytes", (path, bytes_max))?;
        Ok(content.extract::<Bound<PyBytes>>()?.as_bytes().to_vec())
    };
    Python::attach(|py| {
        read(py).map_err(|error| format!("a file that can be read ({})", error.value(py)))
    })
}
