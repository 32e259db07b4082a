//! Policies that govern all connections of a host jointly: a recurrent network represents the flows of
//! the host, and an actor changes the windows of one connection's subflows. `policy.toml` holds the
//! scales and the layers of both networks, `weights.safetensors` their weights. Untrusted input, as in
//! `folder`. `docs/reference/policies.md` describes both files.
use super::files::{Files, GuardSpec};
use super::nn::{Fault, LayerSpec, Network, Returns, Scratch, Shape};
use super::safetensors::Tensors;
use super::{ACTION_MAX, InvalidAction, SpecError};
use crate::decision::AgentState;
use crate::ranges::note;
use crate::toml_error;
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Numbers that describe a subflow: sending rate, goodput, round trip, its mean deviation, window.
pub const SUBFLOW_NUMBERS: usize = 5;
/// Smallest window that the agent sets, packets (proposed).
pub const WINDOW_MIN: f64 = 2.0;
/// Shortest epoch (proposed).
const EPOCH_MIN: Span = Span::from_millis(10);
/// Smallest number of subflows of a connection: one is TCP.
pub const PATHS_MIN: usize = 2;
/// Largest number.
pub const PATHS_MAX: usize = ACTION_MAX;
/// Most numbers of the state between the two networks.
const OUTPUTS_MAX: usize = 4096;

/// What happens to a window between two decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// It is the agent's: a loss does not change it.
    #[default]
    Constant,
    /// The first loss of an episode halves it.
    Halve,
    /// The same, and it grows by one packet per round trip.
    NewReno,
}

/// Table `host`: the connections, and what their numbers are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JointSpec {
    /// Subflows of a connection; 2.
    pub paths: usize,
    /// Sum of the links' rates, Mb/s, in [0.001, 1e6]: rates and goodputs are divided by it.
    pub rate_mbps: f64,
    /// Smallest round trip, ms, in [0.001, 1e5]: round trips are divided by twice that.
    pub rtt_ms: f64,
    /// Bandwidth-delay product of a path, packets, in [1, 1e6]: windows are divided by 1.5 times that.
    pub bdp_packets: f64,
    /// Largest window that the agent sets, packets, in [2, 1e7]; by default 4 times `bdp_packets` and 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_packets: Option<f64>,
    /// Length of an epoch in round trips of the target's slowest subflow, in [0.01, 100]; by default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_rtts: Option<f64>,
    /// Length of an epoch, ms, in [10, 1e5], in place of round trips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_ms: Option<f64>,
    /// What happens to a window between decisions; by default nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<Between>,
}

impl JointSpec {
    /// Checks the ranges.
    ///
    /// # Errors
    ///
    /// The field, its value and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        note("host.paths", PATHS_MIN as f64, PATHS_MAX as f64);
        if !(PATHS_MIN..=PATHS_MAX).contains(&self.paths) {
            let allowed = format!("a whole number in [{PATHS_MIN}, {PATHS_MAX}]");
            let problem = format!("= {}: allowed is {allowed}", self.paths);
            return Err(SpecError::at("host.paths", problem));
        }
        let ranges = [
            ("rate_mbps", self.rate_mbps, 1e-3..=1e6),
            ("rtt_ms", self.rtt_ms, 1e-3..=1e5),
            ("bdp_packets", self.bdp_packets, 1.0..=1e6),
            ("window_packets", self.window_max(), WINDOW_MIN..=1e7),
            ("epoch_rtts", self.epoch_rtts.unwrap_or(1.0), 0.01..=100.0),
            ("epoch_ms", self.epoch_ms.unwrap_or(10.0), 10.0..=1e5),
        ];
        for (name, value, range) in ranges {
            note(&format!("host.{name}"), *range.start(), *range.end());
            if !range.contains(&value) {
                let (low, high) = range.into_inner();
                let problem = format!("= {value}: allowed is a number in [{low}, {high}]");
                return Err(SpecError::at(format!("host.{name}"), problem));
            }
        }
        if self.epoch_rtts.is_some() && self.epoch_ms.is_some() {
            let problem = "beside `epoch_rtts`: allowed is one of them";
            return Err(SpecError::at("host.epoch_ms", problem.to_owned()));
        }
        Ok(())
    }

    /// Reads the table `host` of a text, which may hold nothing else.
    ///
    /// # Errors
    ///
    /// One line: the line where there is one, the field, its value and what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            host: JointSpec,
        }
        let table: Table =
            toml_error::read(text).map_err(|(line, fault)| format!("line {line}: {fault}"))?;
        table.host.check().map_err(|error| error.located(text).to_string())?;
        Ok(table.host)
    }

    /// The table as TOML.
    pub fn text(&self) -> String {
        format!("[host]\n{}", toml::to_string(self).expect("numbers can be written"))
    }

    /// Largest window that the agent sets, packets.
    pub fn window_max(&self) -> f64 {
        self.window_packets.unwrap_or(4.0 * self.bdp_packets + 64.0)
    }

    /// What happens to a window between decisions.
    pub fn between(&self) -> Between {
        self.between.unwrap_or_default()
    }

    /// Length of an epoch whose target's slowest subflow has this smoothed round trip.
    pub fn epoch(&self, slowest: Span) -> Span {
        let round_trips = || slowest.as_secs_f64() * self.epoch_rtts.unwrap_or(1.0);
        let length = match self.epoch_ms {
            Some(millis) => Span::from_secs_f64(millis / 1e3),
            None if self.epoch_rtts.is_none() => slowest,
            None => Span::from_secs_f64(round_trips()),
        };
        length.max(EPOCH_MIN)
    }

    /// Numbers of the connection whose windows are to change.
    pub fn target_width(&self) -> usize {
        SUBFLOW_NUMBERS * self.paths
    }

    /// Numbers of a flow: those of its subflows, and whether it is a TCP flow.
    pub fn row_width(&self) -> usize {
        self.target_width() + 1
    }
}

/// A policy; hosts can share it.
#[derive(Clone, Debug)]
pub struct JointPolicy {
    about: String,
    spec: JointSpec,
    representation: Arc<Network>,
    actor: Arc<Network>,
}

/// The fields of `policy.toml`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "HostPolicy"))]
pub struct Description {
    format: u64,
    about: String,
    host: JointSpec,
    representation: Vec<LayerSpec>,
    actor: Vec<LayerSpec>,
    #[serde(default, rename = "guard")]
    _guard: GuardSpec,
    /// Provenance, for people; only checked to be a table.
    #[serde(default, rename = "made")]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    _made: toml::Table,
}

impl JointPolicy {
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
        said.host.check().map_err(in_line)?;
        said.check_representation().map_err(in_line)?;
        let networks = said.networks(&files.tensors()?);
        let [representation, actor] = networks.map_err(|fault| files.of_network(fault))?;
        if actor.outputs() != said.host.paths {
            let problem = format!(
                "gives {} outputs: allowed is one for each of {} `paths`",
                actor.outputs(),
                said.host.paths
            );
            return Err(in_line(SpecError::at("actor", problem)));
        }
        Ok(Self {
            about: said.about,
            spec: said.host,
            representation: Arc::new(representation),
            actor: Arc::new(actor),
        })
    }

    /// A description in one line.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Table `host`.
    pub fn spec(&self) -> &JointSpec {
        &self.spec
    }

    /// An agent for one host; all agents share the weights.
    pub fn agent(&self) -> JointNetworkAgent {
        let width = self.spec.target_width();
        JointNetworkAgent {
            scratches: [self.representation.scratch(), self.actor.scratch()],
            entering: vec![0.0; width + self.representation.outputs()],
            target_width: width,
            representation: Arc::clone(&self.representation),
            actor: Arc::clone(&self.actor),
        }
    }
}

impl Description {
    /// The first layer takes any number of flows, and represents them by its last state.
    fn check_representation(&self) -> Result<(), SpecError> {
        match self.representation.first() {
            Some(
                LayerSpec::Lstm { returns: Returns::Last, units }
                | LayerSpec::Gru { returns: Returns::Last, units },
            ) if *units as usize <= OUTPUTS_MAX => Ok(()),
            _ => {
                let allowed = "`lstm` or `gru` that returns `last`, of at most 4096 units";
                Err(SpecError::at(
                    "representation[0]",
                    format!("is another layer: allowed is {allowed}"),
                ))
            }
        }
    }

    fn networks(&self, tensors: &Tensors) -> Result<[Network; 2], Fault> {
        let row = Shape { steps: 1, width: self.host.row_width() };
        let represented =
            self.representation.iter().try_fold(row, |shape, layer| layer.output(shape));
        let represented =
            represented.map_err(|error| Fault::Layers(error.below("representation")))?;
        let entering = Shape { steps: 1, width: self.host.target_width() + represented.size() };
        Network::read_all(
            [("representation", &self.representation, row), ("actor", &self.actor, entering)],
            tensors,
        )
    }
}

/// What an agent of a host observes.
#[derive(Clone, Copy, Debug)]
pub struct JointObservation<'a> {
    /// The numbers of the connection whose windows are to change ([`JointSpec::target_width`]), then those of
    /// every active flow ([`JointSpec::row_width`] each).
    pub numbers: &'a [f32],
    /// Number of the decision, from 0.
    pub decision: u64,
    /// When it is due, s since the run began.
    pub time_s: f64,
    /// Length of the epoch that was measured, s.
    pub duration_s: f64,
}

/// Changes the windows of a connection's subflows.
pub trait JointAgent: Send {
    /// The changes, one per subflow in [-1, 1]; further values are ignored.
    ///
    /// # Errors
    ///
    /// If there is no valid action; the connection falls back for the rest of its life.
    fn act(&mut self, observation: &[f32]) -> Result<[f32; PATHS_MAX], InvalidAction>;

    /// A decision is due.
    fn observe(&mut self, _observation: &JointObservation) {}

    /// The decision that an agent outside of the simulation reads, and its action; `None` for others.
    fn state(&mut self) -> Option<&mut AgentState> {
        None
    }
}

/// Acts by the two networks of a policy.
pub struct JointNetworkAgent {
    representation: Arc<Network>,
    actor: Arc<Network>,
    scratches: [Scratch; 2],
    /// The target's numbers and the representation.
    entering: Vec<f32>,
    target_width: usize,
}

impl JointNetworkAgent {
    /// The actor's outputs.
    ///
    /// # Panics
    ///
    /// If the observation is not that of a target and of one flow or more.
    pub fn outputs(&mut self, observation: &[f32]) -> &[f32] {
        let (target, rows) = observation.split_at(self.target_width);
        let [first, second] = &mut self.scratches;
        let represented = self.representation.evaluate_series(rows, first);
        self.entering[..target.len()].copy_from_slice(target);
        self.entering[target.len()..].copy_from_slice(represented);
        self.actor.evaluate(&self.entering, second)
    }
}

impl JointAgent for JointNetworkAgent {
    fn act(&mut self, observation: &[f32]) -> Result<[f32; PATHS_MAX], InvalidAction> {
        let mut values = [0.0; PATHS_MAX];
        let outputs = self.outputs(observation);
        values.iter_mut().zip(outputs).for_each(|(value, output)| *value = *output);
        Ok(values)
    }
}

#[cfg(test)]
#[path = "tests/joint.rs"]
mod tests;
