//! The only parser of scenario files. Untrusted input: whatever is wrong becomes one line that names
//! file, line, field, value and what is allowed.
use crate::params::{Content, Loader, ParamValue};
use crate::sim::plan::NetworkPlan;
use crate::sim::series::Recorded;
use crate::toml_error::{self, Document, Fault};
use std::fmt::{self, Write as _};

mod check;
mod distribution;
mod dumbbell;
mod files;

mod flows;
mod handover;
mod links;
mod mptcp;
mod network;
pub mod ns3;
mod pairs;
mod portable;
mod recorded;
mod room;
pub mod spec;

pub use distribution::{Distribution, fits};

#[cfg(feature = "schema")]
pub use distribution::FileSpec as DistributionSpec;
use files::Files;
pub use recorded::{RecordedSpec, TraceSpec};
pub use spec::{ParamSpec, RecoverySpec, ScenarioSpec};

/// Most connections of a scenario, arrivals of a Poisson source included.
pub const FLOWS_MAX: u64 = 100_000;

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What the file says, after overrides.
    pub spec: ScenarioSpec,
    /// What it means.
    pub network: NetworkPlan,
    origin: String,
    text: String,
    recordings: Vec<(RecordedSpec, Recorded)>,
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

impl Scenario {
    /// Parses a scenario that names no file.
    ///
    /// # Errors
    ///
    /// See [`ScenarioError`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let mut none = |name: &str, _| Err(format!("files cannot be read here: {name}"));
        Self::parse_with(text, origin, &[], &mut none)
    }

    /// Parses a scenario, with `overrides` (dotted path, value as TOML text) applied to the file's
    /// content and `load` reading the files it names.
    ///
    /// # Errors
    ///
    /// See [`ScenarioError`].
    pub fn parse_with(
        text: &str,
        origin: &str,
        overrides: &[(String, String)],
        load: &mut Loader,
    ) -> Result<Self, ScenarioError> {
        let fail = |(line, message)| ScenarioError { origin: origin.to_owned(), line, message };
        let document = Document::parse(text).map_err(fail)?;
        let spec: ScenarioSpec = if overrides.is_empty() {
            document.read().map_err(fail)?
        } else {
            let mut table: toml::Table = document.read().map_err(fail)?;
            for (path, value) in overrides {
                check::set(&mut table, path, value)
                    .map_err(|fault| fail((0, format!("override {fault}"))))?;
            }
            toml_error::read_table(&table)
                .map_err(|fault| fail((0, format!("with overrides: {fault}"))))?
        };
        let mut files = Files::new(load);
        let network = network::resolve(&spec, &mut files).map_err(|fault| {
            if overrides.iter().any(|(path, _)| fault.lies_in(path)) {
                return fail((0, format!("override {fault}")));
            }
            fail((toml_error::line_of_path(text, &fault.path), fault.to_string()))
        })?;
        Ok(Self {
            spec,
            network,
            origin: origin.to_owned(),
            text: text.to_owned(),
            recordings: files.recordings,
        })
    }

    /// The same scenario with another controller for every flow. Settings that name a file have been
    /// read by [`params::open`](crate::params::open).
    ///
    /// # Errors
    ///
    /// If the controller or one of its settings is unknown or out of range.
    pub fn with_controller(
        &self,
        controller: &str,
        params: &[(String, ParamValue)],
    ) -> Result<Self, ScenarioError> {
        self.with_controller_for(controller, params, &|_| true)
    }

    /// The same scenario with another controller for the flows whose entries `chosen` picks by name
    /// (see [`Self::entry_names`]); the others keep theirs.
    ///
    /// # Errors
    ///
    /// If the controller or one of its settings is unknown or out of range.
    pub fn with_controller_for(
        &self,
        controller: &str,
        params: &[(String, ParamValue)],
        chosen: &dyn Fn(&str) -> bool,
    ) -> Result<Self, ScenarioError> {
        let refused = |fault: Fault| ScenarioError {
            origin: self.origin.clone(),
            line: toml_error::line_of_path(&self.text, &fault.path),
            message: fault.to_string(),
        };
        flows::check_controller("flow[0]", controller, params).map_err(refused)?;
        let mut other = self.clone();
        let picked: Vec<bool> = self.entry_names().iter().map(|name| chosen(name)).collect();
        let mut checked = Vec::new();
        for plan in other.network.connections.iter().filter(|plan| picked[plan.entry]) {
            if !checked.contains(&plan.subflows.len()) {
                checked.push(plan.subflows.len());
                let path = format!("flow[{}]", plan.entry);
                flows::check_paths(&path, controller, params, plan.subflows.len())
                    .map_err(refused)?;
            }
        }
        let flows = other.spec.flow.iter_mut().zip(&picked).filter(|(_, picked)| **picked);
        for (flow, _) in flows {
            controller.clone_into(&mut flow.controller);
            flow.params = params.iter().map(|(name, value)| (name.clone(), value.into())).collect();
        }
        for plan in other.network.connections.iter_mut().filter(|plan| picked[plan.entry]) {
            controller.clone_into(&mut plan.controller);
            plan.params = params.to_vec();
        }
        Ok(other)
    }

    /// Names of the `[[flow]]` entries: their own, or `flow` and their number; an entry with a
    /// `count` stands for several flows.
    pub fn entry_names(&self) -> Vec<String> {
        self.spec.entry_names()
    }

    /// The number of the `[[flow]]` entry that each connection comes from, in the network's order.
    pub fn owners(&self) -> Vec<usize> {
        self.network.connections.iter().map(|plan| plan.entry).collect()
    }

    /// The scenario's name: its own, or its file's.
    pub fn name(&self) -> String {
        self.spec.name.clone().unwrap_or_else(|| {
            let file = self.origin.rsplit('/').next().unwrap_or_default();
            file.strip_suffix(".toml").unwrap_or(file).to_owned()
        })
    }

    /// The scenario as TOML with every default filled in.
    pub fn resolved(&self) -> String {
        toml::to_string(&self.spec).expect("a parsed scenario can be written")
    }

    /// As [`resolved`](Self::resolved), with a digest of each trace, and of each file of a controller
    /// in place of its name: equal texts mean equal runs, wherever the files lie.
    pub fn canonical(&self) -> String {
        let mut spec = self.spec.clone();
        for flow in &mut spec.flow {
            for (name, value) in &mut flow.params {
                if let Some(content) = self.content(&flow.controller, name, value) {
                    *value = ParamSpec::Word(format!("{:016x}", content.digest));
                }
            }
        }
        let mut text = toml::to_string(&spec).expect("a parsed scenario can be written");
        for (spec, recorded) in &self.recordings {
            let _ = writeln!(text, "# trace {:?} {:016x}", spec.file, recorded.digest());
        }
        text
    }

    /// The file that this setting of this controller names, if it names one.
    fn content(&self, controller: &str, name: &str, value: &ParamSpec) -> Option<&Content> {
        let plans = self.network.connections.iter().filter(|plan| plan.controller == controller);
        plans.flat_map(|plan| &plan.params).find_map(|(known, found)| match (found, value) {
            (ParamValue::File(content), ParamSpec::Word(word)) => {
                (known == name && content.path == *word).then_some(content)
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
