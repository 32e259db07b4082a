//! A policy's folder: `policy.toml` describes observations, decision clock, actions and layers;
//! `weights.safetensors` holds the weights. Untrusted input: every error is one line that names file,
//! line, field, value and what is allowed.
//! `docs/reference/policies.md` describes both files.
use super::files::Files;
use super::guard::{Guard, GuardTable};
use super::nn::{LayerSpec, Network, Scratch, Shape};
use crate::policy::{
    ACTION_MAX, Action, ActionSpec, Agent, BoundsSpec, DecisionSpec, InvalidAction,
    ObservationSpec, PolicySpec, SpecError, StartSpec,
};
use serde::Deserialize;
use std::sync::Arc;

/// A policy; flows can share it.
#[derive(Clone, Debug)]
pub struct Policy {
    about: String,
    spec: Arc<PolicySpec>,
    network: Arc<Network>,
    guard: Option<Guard>,
}

/// The fields of `policy.toml`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "FlowPolicy"))]
pub struct Description {
    format: u64,
    about: String,
    observation: ObservationSpec,
    decision: DecisionSpec,
    action: ActionSpec,
    #[serde(default)]
    bounds: BoundsSpec,
    #[serde(default)]
    start: StartSpec,
    layers: Vec<LayerSpec>,
    #[serde(default)]
    guard: GuardTable,
    /// Provenance, for people; only checked to be a table.
    #[serde(default, rename = "made")]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    _made: toml::Table,
}

impl Policy {
    /// Reads the two files, in the order of [`FILES`](super::FILES).
    ///
    /// # Errors
    ///
    /// One line: the file, its line where it has any, and what is wrong.
    pub fn read(files: &[Vec<u8>]) -> Result<Self, String> {
        Files::read(files, Self::parse)
    }

    fn parse(files: &Files) -> Result<Self, String> {
        let said: Description = files.described()?;
        files.check_head(said.format, &said.about)?;
        let in_line = |error| files.in_line(error);
        let spec = PolicySpec {
            observation: said.observation,
            decision: said.decision,
            action: said.action,
            bounds: said.bounds,
            start: said.start,
        };
        spec.check().map_err(in_line)?;
        let (steps, width) = spec.shape();
        let network = Network::read(&said.layers, Shape { steps, width }, &files.tensors()?)
            .map_err(|fault| files.of_network(fault))?;
        check_outputs(&spec, network.outputs()).map_err(in_line)?;
        let guard = said.guard.read(&spec).map_err(in_line)?;
        Ok(Self { about: said.about, spec: Arc::new(spec), network: Arc::new(network), guard })
    }

    /// A description in one line.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Observations, decision clock, actions, bounds and start.
    pub fn spec(&self) -> &Arc<PolicySpec> {
        &self.spec
    }

    /// The same as the TOML text of the five tables, with every default filled in.
    pub fn tables(&self) -> String {
        toml::to_string(&*self.spec).expect("what was read can be written")
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network, for several threads.
    pub fn shared_network(&self) -> Arc<Network> {
        Arc::clone(&self.network)
    }

    /// Smallest and largest value of each feature in training, where the policy has a guard: while most of the
    /// latest 32 intervals have a feature beyond, the law decides alone.
    pub fn guarded_ranges(&self) -> Option<&[(f32, f32)]> {
        self.guard.as_ref().map(Guard::ranges)
    }

    /// An agent for one flow; all agents share the weights.
    pub fn agent(&self) -> NetworkAgent {
        NetworkAgent {
            scratch: self.network.scratch(),
            network: Arc::clone(&self.network),
            discrete: self.spec.choices() > 0,
            width: self.spec.shape().1,
            guard: self.guard.clone(),
            outside: 0,
        }
    }
}

/// The network must have one output per step, or at least as many outputs as the action map uses
/// values; further outputs, such as standard deviations, are ignored.
fn check_outputs(spec: &PolicySpec, outputs: usize) -> Result<(), SpecError> {
    let (choices, values) = (spec.choices(), spec.action_size());
    if choices > 0 && outputs != choices {
        let allowed = format!("one for each of {choices} `steps`");
        return Err(SpecError::at(
            "layers",
            format!("give {outputs} outputs: allowed is {allowed}"),
        ));
    }
    if outputs < values {
        let allowed = format!("at least {values} for this `map`");
        return Err(SpecError::at(
            "layers",
            format!("give {outputs} outputs: allowed is {allowed}"),
        ));
    }
    Ok(())
}

/// Acts by a network: the step with the largest output (the first of equal ones), or the first
/// outputs as values.
pub struct NetworkAgent {
    network: Arc<Network>,
    scratch: Scratch,
    discrete: bool,
    /// Numbers of a vector.
    width: usize,
    guard: Option<Guard>,
    /// Decisions that the guard left to the law.
    outside: u64,
}

impl NetworkAgent {
    /// All outputs for an observation: vectors of features, oldest first, row by row.
    ///
    /// # Panics
    ///
    /// If the observation has another length than [`PolicySpec::shape`] says.
    pub fn outputs(&mut self, observation: &[f32]) -> &[f32] {
        self.network.evaluate(observation, &mut self.scratch)
    }
}

impl Agent for NetworkAgent {
    fn act(&mut self, observation: &[f32]) -> Result<Action, InvalidAction> {
        let discrete = self.discrete;
        if let Some(guard) = &mut self.guard
            && guard.takes_over(&observation[observation.len().saturating_sub(self.width)..])
        {
            self.outside += 1;
            return Ok(Action::Values([0.0; ACTION_MAX]));
        }
        let outputs = self.outputs(observation);
        if outputs.iter().any(|output| !output.is_finite()) {
            return Err(InvalidAction::NotFinite);
        }
        if discrete {
            return Ok(Action::Choice(first_largest(outputs)));
        }
        let mut values = [0.0; ACTION_MAX];
        values.iter_mut().zip(outputs).for_each(|(value, output)| *value = *output);
        Ok(Action::Values(values))
    }

    fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.guard.iter().map(|_| ("decisions_outside", self.outside as f64)).collect()
    }
}

fn first_largest(outputs: &[f32]) -> usize {
    let mut largest = 0;
    for (index, output) in outputs.iter().enumerate() {
        if *output > outputs[largest] {
            largest = index;
        }
    }
    largest
}

#[cfg(test)]
#[path = "tests/folder.rs"]
mod tests;
