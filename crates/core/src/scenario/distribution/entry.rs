//! One scenario of a distribution: what is drawn, what depends on it, and what limits it.
use super::draws::{Draw, Drawn};
use super::interval::plain;
use crate::params::{Content, Reader as FileReader};
use crate::rng::Seed;
use crate::scenario::ScenarioSpec;
use crate::scenario::check::put;
use crate::scenario::files::Files;
use crate::scenario::network::{self};
use crate::scenario::recorded::RecordedSpec;
use crate::sim::plan::NetworkPlan;
use crate::sim::series::Recorded;
use crate::toml_error;
use crate::toml_error::Fault;
use serde::Deserialize;
use std::sync::Arc;
use toml::{Table, Value};

/// How often values are drawn that a limit refuses.
const ATTEMPTS: u64 = 1000;
/// Draws by which a limit is tried, and how many of them it must keep.
const TRIED: u64 = 512;
const KEPT_MIN: u64 = TRIED / 8;

/// One `[[scenario]]`.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Place of its class among all.
    pub(super) class: usize,
    /// The most learning flows that it has.
    pub(super) agents: usize,
    /// Over training progress.
    pub(super) weight: Vec<(f64, f64)>,
    /// What is not drawn, with the names of files relative to the distribution.
    pub(super) table: Table,
    pub(super) draws: Vec<Draw>,
    /// Those that depend on others, in an order in which they can be computed.
    pub(super) derived: Vec<Dependent>,
    pub(super) limits: Vec<Limit>,
    /// What its files hold, whichever values are drawn.
    pub(super) recordings: Vec<(RecordedSpec, Recorded)>,
    pub(super) contents: Vec<(FileReader, Content)>,
    pub(super) source: Source,
}

/// Where the fields that are not drawn come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The place of the inline table.
    Inline(Vec<String>),
    /// A file, and its text.
    File(String, String),
}

/// What the product of some draws may be at most.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// Paths of draws.
    product: Vec<String>,
    /// Largest product of their values.
    at_most: f64,
}

/// A limit on the draws in these places.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    of: Vec<usize>,
    at_most: f64,
}

impl Entry {
    /// Gives the files read when parsing.
    pub(super) fn lend(&self, files: &mut Files) {
        files.recordings.clone_from(&self.recordings);
        files.contents.clone_from(&self.contents);
    }

    /// The scenario with these values for its draws.
    pub(super) fn resolve(
        &self,
        values: &[Drawn],
        files: &mut Files,
    ) -> Result<(ScenarioSpec, NetworkPlan), Fault> {
        let spec = self.spec(values)?;
        for (value, trace) in values {
            if let (Value::String(name), Some(trace)) = (value, trace) {
                let recorded = Recorded::Opportunities(Arc::clone(trace));
                files.recordings.push((RecordedSpec::named(name), recorded));
            }
        }
        let network = network::resolve(&spec, files)?;
        Ok((spec, network))
    }

    /// What the scenario says with these values for its draws.
    pub(super) fn spec(&self, values: &[Drawn]) -> Result<ScenarioSpec, Fault> {
        toml_error::read_table(&self.filled(values)?)
    }

    fn filled(&self, values: &[Drawn]) -> Result<Table, Fault> {
        let mut table = self.table.clone();
        for (draw, (value, _)) in self.draws.iter().zip(values) {
            for target in &draw.targets {
                put(&mut table, target, value.clone())
                    .map_err(|allowed| Fault::new(&target.join("."), value, allowed))?;
            }
        }
        Ok(table)
    }

    /// A value for each draw, of which all limits hold.
    pub(super) fn values(&self, seed: Seed) -> Vec<Drawn> {
        let attempts = (0..ATTEMPTS).map(|attempt| self.drawn(seed, attempt));
        let mut kept =
            attempts.filter(|values| self.limits.iter().all(|limit| limit.holds(values)));
        // As many in a row are never refused where an eighth is kept.
        kept.next().unwrap_or_else(|| self.drawn(seed, 0))
    }

    /// A value for each draw.
    fn drawn(&self, seed: Seed, attempt: u64) -> Vec<Drawn> {
        self.complete(self.draws.iter().map(|draw| draw.value(seed, attempt)).collect())
    }

    /// The values of all draws, from those of the ones that do not depend on others and the factors of the
    /// ones that do.
    pub(super) fn complete(&self, mut values: Vec<Drawn>) -> Vec<Drawn> {
        for (index, of) in &self.derived {
            let product = of.iter().map(|&other| plain(&values[other].0).unwrap_or(0.0)).product();
            if let Some(derived) = self.draws[*index].derived() {
                values[*index].0 = derived.value(&values[*index].0, product);
            }
        }
        values
    }
}

/// The value at `progress` of a line through these points, constant outside of them.
pub(super) fn weight_at(points: &[(f64, f64)], progress: f64) -> f64 {
    let progress = if progress.is_nan() { 0.0 } else { progress };
    let after = points.iter().position(|point| point.0 > progress).unwrap_or(points.len());
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (Some((from, low)), Some(&(to, high))) => {
            low + (high - low) * (progress - from) / (to - from)
        }
        (Some((_, weight)), None) | (None, Some(&(_, weight))) => weight,
        (None, None) => 0.0,
    }
}

/// A draw that depends on others, and the places of these.
pub(super) type Dependent = (usize, Vec<usize>);

/// The draws that depend on others, each after those that it depends on. An error has the place of the draw.
pub(super) fn order(draws: &[Draw]) -> Result<Vec<Dependent>, (usize, Fault)> {
    let place = |path: &String| draws.iter().position(|draw| draw.path == *path);
    let mut known: Vec<bool> = draws.iter().map(|draw| draw.derived().is_none()).collect();
    let mut found = Vec::new();
    loop {
        let next = draws.iter().enumerate().find_map(|(index, draw)| {
            let of = draw.derived().filter(|_| !known[index])?.of.iter().map(place);
            let of: Option<Vec<usize>> = of.collect();
            of.filter(|of| of.iter().all(|&other| known[other])).map(|of| (index, of))
        });
        let Some((index, of)) = next else { break };
        if let Some(&wrong) = of.iter().find(|&&other| !draws[other].is_number()) {
            let allowed = "draws of one number each";
            return Err((index, Fault::new(&draws[index].label(), &draws[wrong].path, allowed)));
        }
        known[index] = true;
        found.push((index, of));
    }
    match known.iter().position(|known| !known) {
        None => Ok(found),
        Some(index) => {
            let of = draws[index].derived().map(|derived| derived.of.join(", "));
            let allowed = "paths of other draws of the scenario that do not depend on this one";
            let label = format!("{}.of", draws[index].label());
            Err((index, Fault::new(&label, of.unwrap_or_default(), allowed)))
        }
    }
}

/// Checked limits of an entry's draws, of which none may refuse most of what is drawn.
pub(super) fn checked_limits(
    entry: &Entry,
    field: &str,
    specs: &[LimitSpec],
) -> Result<Vec<Limit>, Fault> {
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let mut limits = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let here = format!("{field}[{index}]");
        let place = |path: &String| {
            let place = entry.draws.iter().position(|draw| draw.path == *path);
            place.filter(|&place| entry.draws[place].is_number()).ok_or_else(|| {
                let allowed = "paths of draws of one number each";
                Fault::new(&format!("{here}.product"), format!("{path:?}"), allowed)
            })
        };
        let of = spec.product.iter().map(place).collect::<Result<_, _>>()?;
        limits.push(Limit { of, at_most: spec.at_most });
    }
    let kept = (0..TRIED).filter(|&seed| {
        let values = entry.drawn(Seed(seed), 0);
        limits.iter().all(|limit| limit.holds(&values))
    });
    let kept = kept.count() as u64;
    if kept < KEPT_MIN {
        let about = format!("of {TRIED} draws they keep {kept}");
        return Err(Fault::new(field, about, format!("limits that keep {KEPT_MIN} or more")));
    }
    Ok(limits)
}

impl Limit {
    fn holds(&self, values: &[Drawn]) -> bool {
        let product: f64 =
            self.of.iter().map(|&place| plain(&values[place].0).unwrap_or(0.0)).product();
        product <= self.at_most
    }
}
