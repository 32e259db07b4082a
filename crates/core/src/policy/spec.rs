//! The five tables of a learned controller: observation, decision, action, bounds and start. Policies
//! and environments read the same tables, so that an agent acts in deployment as it did in training.
use super::TRUTH_NAMES;
use super::features::{self, FEATURES, Feature};
use crate::law::own_queue::{EXPONENT_MAX, TARGET_PACKETS};
use crate::ranges::note;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most vectors of a history.
pub const HISTORY_MAX: u32 = 256;
/// Most features of a vector.
const FEATURES_MAX: usize = 64;
/// Most steps of a discrete action map.
const STEPS_MAX: usize = 64;
/// Shortest interval of the law `own_queue`, ms.
const LAW_MIN_MS: f64 = 10.0;
/// Largest window that may be asked for, in packets.
const PACKETS_MAX: f64 = 1e6;
/// Most characters of a value that an error quotes.
const VALUE_MAX: usize = 80;

/// All five tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// What the agent observes.
    pub observation: ObservationSpec,
    /// When a decision is due.
    pub decision: DecisionSpec,
    /// What an action changes.
    pub action: ActionSpec,
    /// Smallest and largest window.
    #[serde(default)]
    pub bounds: BoundsSpec,
    /// Slow start and the reactions to loss that need no agent.
    #[serde(default)]
    pub start: StartSpec,
}

/// Table `observation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ObservationSpec {
    /// Names out of [`FEATURES`], in the order of a vector.
    pub features: Vec<String>,
    /// Vectors of an observation, in 1..=256: the latest intervals, oldest first, zeros before the first.
    #[serde(default = "history")]
    pub history: u32,
    /// Over what the smallest round trip is taken.
    #[serde(default)]
    pub rtt_min: RttMinSpec,
}

/// Over what the smallest round trip is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RttMinSpec {
    /// The whole flow.
    #[default]
    Life,
    /// The last 10 s, in steps of 100 ms.
    Window,
}

/// Table `decision`: a decision is due with the first acknowledgement at or after the end of an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DecisionSpec {
    /// How long an interval is.
    pub every: ClockSpec,
    /// Round trips of an interval (`srtt`, `min_rtt`), in [0.01, 100].
    #[serde(default = "times")]
    pub times: f64,
    /// Minimum length of an interval, ms; with `time` its length. In [0, 1e6], above 0 with `time`.
    #[serde(default = "min_ms")]
    pub min_ms: f64,
}

/// How long an interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClockSpec {
    /// `times` smoothed round trips.
    Srtt,
    /// `times` smallest round trips.
    MinRtt,
    /// `min_ms`.
    Time,
    /// Until the next acknowledgement.
    Ack,
}

/// Table `action`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ActionSpec {
    /// What an action changes.
    pub map: MapSpec,
    /// Only with `cwnd_steps`: what each choice does to the window: `*F` and `/F` multiply and
    /// divide it, `+P` and `-P` add and subtract packets.
    #[serde(default = "steps")]
    pub steps: Vec<String>,
    /// How much a value of 1 changes, in [1e-6, 10]; not with `cwnd_steps` and over a law.
    #[serde(default = "scale")]
    pub scale: f64,
    /// Largest absolute value of a valid action, in [1, 1e6]; beyond it the flow falls back. Valid
    /// values are clipped to [-1, 1].
    #[serde(default = "limit")]
    pub limit: f64,
    /// Only with `own_queue`: the law's target grows with this power of the rate, in [0, 0.9].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponent: Option<f64>,
    /// Only with `own_queue_paced`: the law's target at 10 Mb/s, packets, in [0.1, 1000].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_packets: Option<f64>,
    /// Only with `own_queue`: when actions apply.
    #[serde(default, skip_serializing_if = "WhenSpec::is_always")]
    pub when: WhenSpec,
}

/// When actions apply. Elsewhere they are zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhenSpec {
    /// At all times.
    #[default]
    Always,
    /// Where a queue longer than flows of the law keep, or a loss, shows that others want the link.
    Contention,
}

impl WhenSpec {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    fn is_always(&self) -> bool {
        *self == Self::Always
    }
}

/// What an action changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MapSpec {
    /// The window, by one of `steps`.
    CwndSteps,
    /// The window, by the factor 2^(scale a).
    CwndFactor,
    /// The pacing rate x, to x (1 + scale a) for a of at least 0, to x / (1 - scale a) below
    /// (source: Jay et al., Aurora, ICML 2019, section 4.1).
    RateChange,
    /// The pacing rate by 2^(scale a0), the window by 2^(scale a1).
    RateAndCwnd,
    /// What the law of the controller `own_queue` does: a0 its target, a1 its window. Zeros leave it as it is.
    OwnQueue,
    /// The same law at all times: a0 its target and how far it paces, a1 the rate that it holds. Zeros leave it as it is.
    OwnQueuePaced,
    /// The window of the controller `cubic`, by the factor 2^(scale a); CUBIC goes on from there (source: Abbasloo,
    /// Yen and Chao, Orca, SIGCOMM 2020, with a scale of 2).
    CubicFactor,
}

impl MapSpec {
    /// How many values an action has; 0 if it is a choice.
    pub fn values(self) -> usize {
        match self {
            Self::CwndSteps => 0,
            Self::CwndFactor | Self::RateChange | Self::CubicFactor => 1,
            Self::RateAndCwnd | Self::OwnQueue | Self::OwnQueuePaced => 2,
        }
    }

    /// Whether actions correct a law, which has a start and reactions to losses of its own.
    pub fn is_over_law(self) -> bool {
        matches!(self, Self::OwnQueue | Self::OwnQueuePaced | Self::CubicFactor)
    }

    /// As it is written.
    fn name(self) -> &'static str {
        match self {
            Self::CwndSteps => "cwnd_steps",
            Self::CwndFactor => "cwnd_factor",
            Self::RateChange => "rate_change",
            Self::RateAndCwnd => "rate_and_cwnd",
            Self::OwnQueue => "own_queue",
            Self::OwnQueuePaced => "own_queue_paced",
            Self::CubicFactor => "cubic_factor",
        }
    }
}

/// Table `bounds`, in packets of the flow's size, per round trip where a rate is bounded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BoundsSpec {
    /// Smallest window, in [1, 1e6].
    #[serde(default = "cwnd_min")]
    pub cwnd_min_packets: f64,
    /// Largest window, in [`cwnd_min_packets`, 1e6].
    #[serde(default = "cwnd_max")]
    pub cwnd_max_packets: f64,
}

/// Table `start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StartSpec {
    /// Whether `NewReno`'s slow start comes first, until a loss, a round trip above 1.25 times the
    /// smallest, or the initial threshold.
    #[serde(default = "on")]
    pub slow_start: bool,
    /// Whether a loss halves the window, once per window.
    #[serde(default = "on")]
    pub loss_guard: bool,
    /// Whether a time-out sets the window to two packets, with slow start to half of what it was;
    /// `loss_guard` if it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_guard: Option<bool>,
}

/// An invalid table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Line of the text, from 1; 0 if it is not known.
    pub line: usize,
    /// Path of the field, such as `observation.features[0]`; empty if `problem` names it.
    pub path: String,
    /// The value and what is allowed, on one line.
    pub problem: String,
}

impl SpecError {
    /// An error at a path, in a line that is not known yet.
    pub fn at(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { line: 0, path: path.into(), problem: problem.into() }
    }

    /// The same error of a table at `parent`.
    #[must_use]
    pub fn below(mut self, parent: &str) -> Self {
        self.path = format!("{parent}.{}", self.path);
        self
    }

    /// The same error in the line of its field in `text`.
    #[must_use]
    pub fn located(mut self, text: &str) -> Self {
        self.line = crate::toml_error::line_of_path(text, &self.path);
        self
    }

    /// Field, value and what is allowed, without the line.
    pub fn message(&self) -> String {
        if self.path.is_empty() {
            return self.problem.clone();
        }
        format!("{} {}", self.path, self.problem)
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(out, "line {}: ", self.line)?;
        }
        out.write_str(&self.message())
    }
}

impl std::error::Error for SpecError {}

fn history() -> u32 {
    64
}
fn times() -> f64 {
    1.0
}
fn min_ms() -> f64 {
    10.0
}
fn steps() -> Vec<String> {
    ["*0.9", "-1", "+0", "+1", "*1.1"].map(str::to_owned).to_vec()
}
fn scale() -> f64 {
    0.025
}
fn limit() -> f64 {
    10.0
}
fn cwnd_min() -> f64 {
    2.0
}
fn cwnd_max() -> f64 {
    2000.0
}
fn on() -> bool {
    true
}

impl Default for BoundsSpec {
    fn default() -> Self {
        Self { cwnd_min_packets: cwnd_min(), cwnd_max_packets: cwnd_max() }
    }
}

impl Default for StartSpec {
    fn default() -> Self {
        Self { slow_start: true, loss_guard: true, timeout_guard: None }
    }
}

impl PolicySpec {
    /// Reads and checks the TOML text of the five tables.
    ///
    /// # Errors
    ///
    /// If the text is not TOML, a field is unknown, missing or of the wrong type, or a value is not
    /// allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let spec: Self = crate::toml_error::read(text).map_err(|(line, problem)| SpecError {
            line,
            path: String::new(),
            problem,
        })?;
        spec.check().map_err(|error| error.located(text))?;
        Ok(spec)
    }

    /// Whether every value is allowed.
    ///
    /// # Errors
    ///
    /// Names the first field that is not.
    pub fn check(&self) -> Result<(), SpecError> {
        self.observation.check()?;
        let DecisionSpec { every, times, min_ms } = self.decision;
        number("decision.times", times, 0.01, 100.0)?;
        number("decision.min_ms", min_ms, 0.0, 1e6)?;
        if every == ClockSpec::Time && min_ms <= 0.0 {
            return Err(fault(
                "decision.min_ms",
                min_ms,
                "with every = \"time\", a number above 0",
            ));
        }
        self.action.check()?;
        let BoundsSpec { cwnd_min_packets, cwnd_max_packets } = self.bounds;
        number("bounds.cwnd_min_packets", cwnd_min_packets, 1.0, PACKETS_MAX)?;
        number("bounds.cwnd_max_packets", cwnd_max_packets, cwnd_min_packets, PACKETS_MAX)?;
        match self.action.map {
            MapSpec::OwnQueue | MapSpec::OwnQueuePaced => {
                self.check_times_and_bounds()?;
                self.check_guards()
            }
            MapSpec::CubicFactor => self.check_guards(),
            _ => Ok(()),
        }
    }

    /// The law `own_queue` decides at its own times, and has bounds of its own.
    fn check_times_and_bounds(&self) -> Result<(), SpecError> {
        let DecisionSpec { every, times, min_ms } = &self.decision;
        let BoundsSpec { cwnd_min_packets: least, cwnd_max_packets: most } = &self.bounds;
        let every_name = format!("{every:?}").to_lowercase();
        self.only(*every == ClockSpec::Srtt, "decision.every", &every_name, "srtt")?;
        self.only(is(*times, 1.0), "decision.times", times, "1")?;
        self.only(is(*min_ms, LAW_MIN_MS), "decision.min_ms", min_ms, "10")?;
        self.only(is(*least, cwnd_min()), "bounds.cwnd_min_packets", least, "2")?;
        let allowed = "nothing: it has its own";
        self.only(is(*most, cwnd_max()), "bounds.cwnd_max_packets", most, allowed)
    }

    /// A law has a start and reactions to losses of its own.
    fn check_guards(&self) -> Result<(), SpecError> {
        let StartSpec { slow_start, loss_guard, timeout_guard } = &self.start;
        self.only(!slow_start, "start.slow_start", slow_start, "false")?;
        self.only(!loss_guard, "start.loss_guard", loss_guard, "false")?;
        let timeout_guard = timeout_guard.unwrap_or(false);
        self.only(!timeout_guard, "start.timeout_guard", &timeout_guard, "false")
    }

    /// Whether a field has the only value that this map over a law takes.
    fn only(
        &self,
        is_so: bool,
        path: &str,
        value: &dyn fmt::Display,
        allowed: &str,
    ) -> Result<(), SpecError> {
        let allowed = format!("with map = \"{}\", {allowed}", self.action.map.name());
        if is_so { Ok(()) } else { Err(fault(path, value, &allowed)) }
    }

    /// The features of a vector.
    ///
    /// # Errors
    ///
    /// If a name is unknown.
    pub fn features(&self) -> Result<Vec<&'static Feature>, SpecError> {
        self.observation.resolve()
    }

    /// Numbers of an observation: vectors and features.
    pub fn shape(&self) -> (usize, usize) {
        (self.observation.history as usize, self.observation.features.len())
    }

    /// How many choices there are; 0 if actions are values.
    pub fn choices(&self) -> usize {
        if self.action.map == MapSpec::CwndSteps { self.action.steps.len() } else { 0 }
    }

    /// How many values an action has; 0 if it is a choice.
    pub fn action_size(&self) -> usize {
        self.action.map.values()
    }
}

impl ObservationSpec {
    fn check(&self) -> Result<(), SpecError> {
        if self.features.is_empty() || self.features.len() > FEATURES_MAX {
            let allowed = format!("1 to {FEATURES_MAX} names");
            return Err(fault("observation.features", format!("{:?}", self.features), &allowed));
        }
        note("observation.history", 1.0, f64::from(HISTORY_MAX));
        if !(1..=HISTORY_MAX).contains(&self.history) {
            let allowed = format!("a whole number in [1, {HISTORY_MAX}]");
            return Err(fault("observation.history", self.history, &allowed));
        }
        self.resolve().map(drop)
    }

    fn resolve(&self) -> Result<Vec<&'static Feature>, SpecError> {
        let find = |(index, name): (usize, &String)| {
            features::find(name).ok_or_else(|| {
                let known: Vec<_> = FEATURES.iter().map(|feature| feature.name).collect();
                let path = format!("observation.features[{index}]");
                let mut allowed = known.join(", ");
                if TRUTH_NAMES.contains(&name.as_str()) {
                    let about = "which only the simulator knows: it is for rewards and critics";
                    allowed = format!("{allowed}; {name} is truth, {about}");
                }
                fault(&path, format!("{name:?}"), &allowed)
            })
        };
        self.features.iter().enumerate().map(find).collect()
    }
}

/// What a choice does to the window: `cwnd * factor + packets`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Multiplies.
    pub factor: f64,
    /// Adds, packets.
    pub packets: f64,
}

impl ActionSpec {
    fn check(&self) -> Result<(), SpecError> {
        number("action.scale", self.scale, 1e-6, 10.0)?;
        number("action.limit", self.limit, 1.0, 1e6)?;
        note("action.exponent", 0.0, EXPONENT_MAX);
        if let Some(exponent) = self.exponent {
            if self.map != MapSpec::OwnQueue {
                let allowed = "nothing, unless map = \"own_queue\"";
                return Err(fault("action.exponent", exponent, allowed));
            }
            number("action.exponent", exponent, 0.0, EXPONENT_MAX)?;
        }
        let (low, high) = TARGET_PACKETS;
        note("action.target_packets", low, high);
        if let Some(packets) = self.target_packets {
            if self.map != MapSpec::OwnQueuePaced {
                let allowed = "nothing, unless map = \"own_queue_paced\"";
                return Err(fault("action.target_packets", packets, allowed));
            }
            number("action.target_packets", packets, low, high)?;
        }
        if self.when == WhenSpec::Contention && self.map != MapSpec::OwnQueue {
            let allowed = "\"always\", unless map = \"own_queue\"";
            return Err(fault("action.when", "\"contention\"", allowed));
        }
        if self.steps.len() < 2 || self.steps.len() > STEPS_MAX {
            let allowed = format!("2 to {STEPS_MAX} steps");
            return Err(fault("action.steps", format!("{:?}", self.steps), &allowed));
        }
        self.steps().map(drop)
    }

    /// What each choice does.
    ///
    /// # Errors
    ///
    /// If a step is malformed.
    pub fn steps(&self) -> Result<Vec<Step>, SpecError> {
        let read = |(index, text): (usize, &String)| {
            step(text).ok_or_else(|| {
                let allowed =
                    "*F or /F with F in [0.01, 100], +P or -P with P in [0, 1000] packets";
                fault(&format!("action.steps[{index}]"), format!("{text:?}"), allowed)
            })
        };
        self.steps.iter().enumerate().map(read).collect()
    }
}

/// A step as it is written.
fn step(text: &str) -> Option<Step> {
    let sign = text.chars().next()?;
    let digits = &text[sign.len_utf8()..];
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None; // a second sign, `inf` or `nan`
    }
    let value: f64 = digits.parse().ok()?;
    let factor = (0.01..=100.0).contains(&value);
    let packets = (0.0..=1000.0).contains(&value);
    match sign {
        '*' if factor => Some(Step { factor: value, packets: 0.0 }),
        '/' if factor => Some(Step { factor: 1.0 / value, packets: 0.0 }),
        '+' if packets => Some(Step { factor: 1.0, packets: value }),
        '-' if packets => Some(Step { factor: 1.0, packets: -value }),
        _ => None,
    }
}

impl StartSpec {
    /// Whether a time-out is handled without the agent.
    pub fn guards_timeouts(&self) -> bool {
        self.timeout_guard.unwrap_or(self.loss_guard)
    }
}

/// Whether a value is one that is written without loss.
fn is(value: f64, wanted: f64) -> bool {
    value.to_bits() == wanted.to_bits()
}

/// The value is shortened, so that what is allowed stays visible.
fn fault(path: &str, value: impl fmt::Display, allowed: &str) -> SpecError {
    let value: String = value.to_string().chars().take(VALUE_MAX).collect();
    SpecError::at(path, format!("= {value}: allowed is {allowed}"))
}

fn number(path: &str, value: f64, low: f64, high: f64) -> Result<(), SpecError> {
    note(path, low, high);
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(fault(path, value, &format!("a number in [{low}, {high}]")))
}

#[cfg(test)]
#[path = "tests/spec.rs"]
mod tests;
