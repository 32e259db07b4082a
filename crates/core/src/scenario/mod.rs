//! The only parser of scenario files. Untrusted input: whatever is wrong becomes one line that names
//! file, line, field, value and what is allowed.
use crate::params::ParamValue;
use crate::sim::trace::Trace;
use std::fmt::{self, Write as _};
use std::sync::Arc;

mod check;
mod explain;
mod flows;
mod links;
pub mod network;
pub mod spec;

pub use network::{ConnectionPlan, LinkPlan, Network, SenderConfig};
pub use spec::{EcnSpec, GateSpec, ParamSpec, QueueSpec, RecoverySpec, ScenarioSpec, TrafficSpec};

/// Most connections of a scenario, arrivals of a Poisson source included.
pub const FLOWS_MAX: u64 = 100_000;

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What the file says, after overrides.
    pub spec: ScenarioSpec,
    /// What it means.
    pub network: Network,
    origin: String,
    text: String,
    traces: Vec<(String, Arc<Trace>)>,
}

/// Why a scenario was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Where the text came from.
    pub origin: String,
    /// Line in it, from 1; 0 if the fault is in no line.
    pub line: usize,
    /// What is wrong and what is allowed, on one line.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return write!(out, "{}: {}", self.origin, self.message);
        }
        write!(out, "{}:{}: {}", self.origin, self.line, self.message)
    }
}

impl std::error::Error for ScenarioError {}

/// Reads the trace files that a scenario names. Core does no I/O, so the caller lends it this.
pub type TraceLoader<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

impl Scenario {
    /// Parses a scenario that names no trace file.
    ///
    /// # Errors
    ///
    /// See [`ScenarioError`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let mut none = |name: &str| Err(format!("trace files cannot be read here: {name}"));
        Self::parse_with(text, origin, &[], &mut none)
    }

    /// Parses a scenario, with `overrides` (dotted path, value as TOML text) applied to the file's
    /// content and `load` reading its traces.
    ///
    /// # Errors
    ///
    /// See [`ScenarioError`].
    pub fn parse_with(
        text: &str,
        origin: &str,
        overrides: &[(String, String)],
        load: &mut TraceLoader,
    ) -> Result<Self, ScenarioError> {
        let fail = |(line, message)| ScenarioError { origin: origin.to_owned(), line, message };
        let mut table: toml::Table =
            toml::from_str(text).map_err(|error| fail(explain::explain(text, &error)))?;
        for (path, value) in overrides {
            check::set(&mut table, path, value)
                .map_err(|fault| fail((0, format!("override {fault}"))))?;
        }
        let spec: ScenarioSpec = if overrides.is_empty() {
            toml::from_str(text).map_err(|error| fail(explain::explain(text, &error)))?
        } else {
            let changed = table.to_string();
            toml::from_str(&changed).map_err(|error| {
                let (_, message) = explain::explain(&changed, &error);
                fail((0, format!("with overrides: {message}")))
            })?
        };
        let mut traces = Vec::new();
        let mut get = |name: &str| -> Result<Arc<Trace>, String> {
            if let Some((_, trace)) = traces.iter().find(|(known, _)| known == name) {
                return Ok(Arc::clone(trace));
            }
            let trace =
                Arc::new(Trace::parse(&load(name)?, name).map_err(|error| error.to_string())?);
            traces.push((name.to_owned(), Arc::clone(&trace)));
            Ok(trace)
        };
        let network = network::resolve(&spec, &mut get).map_err(|fault| {
            if overrides.iter().any(|(path, _)| fault.lies_in(path)) {
                return fail((0, format!("override {fault}")));
            }
            fail((explain::line_of_path(text, &fault.path), fault.to_string()))
        })?;
        Ok(Self { spec, network, origin: origin.to_owned(), text: text.to_owned(), traces })
    }

    /// The same scenario with another controller for every flow.
    ///
    /// # Errors
    ///
    /// If the controller or one of its settings is unknown or out of range.
    pub fn with_controller(
        &self,
        controller: &str,
        params: &[(String, ParamValue)],
    ) -> Result<Self, ScenarioError> {
        let mut spec = self.spec.clone();
        for flow in &mut spec.flow {
            controller.clone_into(&mut flow.controller);
            flow.params = params
                .iter()
                .map(|(name, value)| {
                    let value = match value {
                        ParamValue::Number(number) => ParamSpec::Number(*number),
                        ParamValue::Word(word) => ParamSpec::Word(word.clone()),
                    };
                    (name.clone(), value)
                })
                .collect();
        }
        let traces = &self.traces;
        let mut get = |name: &str| {
            let found = traces.iter().find(|(known, _)| known == name);
            Ok(Arc::clone(&found.expect("the trace was loaded with the scenario").1))
        };
        let network = network::resolve(&spec, &mut get).map_err(|fault| ScenarioError {
            origin: self.origin.clone(),
            line: explain::line_of_path(&self.text, &fault.path),
            message: fault.to_string(),
        })?;
        Ok(Self { spec, network, ..self.clone() })
    }

    /// The scenario's name: its own, or its file's.
    pub fn name(&self) -> String {
        self.spec.name.clone().unwrap_or_else(|| {
            let file = self.origin.rsplit('/').next().unwrap_or_default();
            file.strip_suffix(".toml").unwrap_or(file).to_owned()
        })
    }

    /// The scenario as TOML with every default filled in, and a digest of each trace: equal texts
    /// mean equal runs.
    pub fn canonical(&self) -> String {
        let mut text = toml::to_string(&self.spec).expect("a parsed scenario can be written");
        for (name, trace) in &self.traces {
            let _ = writeln!(text, "# trace {name:?} {:016x}", trace.digest());
        }
        text
    }
}

#[cfg(test)]
mod tests;
