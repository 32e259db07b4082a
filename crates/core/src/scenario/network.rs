//! What a scenario means: links and connections with every default filled in and every value
//! checked.
use super::FLOWS_MAX;
use super::check::number;
use super::links::{Builder, Topology};
use super::spec::ScenarioSpec;
use crate::params::{Content, Loader, Reader as FileReader};
use crate::sim::plan::{ConnectionPlan, NetworkPlan, TrafficSpec};
use crate::sim::trace::{self, Trace};
use crate::toml_error::Fault;
use crate::units::{Span, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) const SECONDS_MAX: f64 = 1e8;
pub(super) const MILLIS_MAX: f64 = 1e7;
pub(super) const MBPS_MAX: f64 = 1e6;

/// Ending of a number's name, the least and the largest value that any number so named may have. What one of them
/// may be in its place is a part of that, and may depend on others.
#[cfg(feature = "schema")]
pub const RANGES: &[(&str, f64, f64)] = &[
    ("_ms", 0.0, MILLIS_MAX),
    ("_s", 0.0, SECONDS_MAX),
    ("_mbps", 0.0, MBPS_MAX),
    ("ratio", 0.0, 1.0),
    ("_loss", 0.0, 1.0),
    ("hz", 0.0, 1000.0),
];
/// Most rows of all time series together.
const ROWS_MAX: f64 = 1e7;

/// What links need beyond their own fields.
pub(super) struct Reader<'a, 'b> {
    /// Bounds how often a link may change.
    pub(super) duration_s: f64,
    pub(super) files: &'a mut Files<'b>,
}

/// The files that a scenario names.
pub(super) struct Files<'a> {
    load: &'a mut Loader<'a>,
    /// Each read once, by name.
    pub(super) traces: Vec<(String, Arc<Trace>)>,
    /// Files and folders of controllers, each read once by name and reader.
    pub(super) contents: Vec<(FileReader, Content)>,
}

impl<'a> Files<'a> {
    pub(super) fn new(load: &'a mut Loader<'a>) -> Self {
        Self { load, traces: Vec::new(), contents: Vec::new() }
    }

    pub(super) fn trace(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        if let Some((_, trace)) = self.traces.iter().find(|(known, _)| known == name) {
            return Ok(Arc::clone(trace));
        }
        let content = (self.load)(name, trace::MAX_BYTES)?;
        let trace = Arc::new(Trace::parse(&content, name).map_err(|error| error.to_string())?);
        self.traces.push((name.to_owned(), Arc::clone(&trace)));
        Ok(trace)
    }

    /// What the file or folder called `name` holds for a controller.
    pub(super) fn content(&mut self, name: &str, reader: FileReader) -> Result<Content, String> {
        let mut contents = self.contents.iter();
        if let Some((_, content)) =
            contents.find(|(known, content)| content.path == name && *known == reader)
        {
            return Ok(content.clone());
        }
        let content = Content::load(name, reader, self.load)?;
        self.contents.push((reader, content.clone()));
        Ok(content)
    }
}

/// Checks and resolves a scenario.
pub(super) fn resolve(spec: &ScenarioSpec, files: &mut Files) -> Result<NetworkPlan, Fault> {
    number("duration_s", spec.duration_s, 1e-6..=SECONDS_MAX)?;
    number("sample_interval_ms", spec.sample_interval_ms, 0.0..=MILLIS_MAX)?;
    let sample_interval = millis(spec.sample_interval_ms);
    let duration = Time::from_secs_f64(spec.duration_s);
    let mut builder = Builder { links: Vec::new(), topology: Topology::Free };
    builder.topology(spec, &mut Reader { duration_s: spec.duration_s, files })?;
    let mut connections: Vec<ConnectionPlan> = Vec::new();
    count_flows(spec)?;
    for (index, flow) in spec.flow.iter().enumerate() {
        connections.extend(builder.flow_plans(index, flow, &spec.sender, files)?);
    }
    builder.check_room(spec, &connections)?;
    let plans = connections.iter().map(|plan| plan.name.as_str());
    if let Some((second, name)) = duplicate(plans) {
        let path = format!("flow[{}].name", connections[second].entry);
        return Err(Fault::new(&path, format!("{name:?}"), "a name of its own for every flow"));
    }
    if let Some((_, name)) = duplicate(builder.links.iter().map(|link| link.name.as_str())) {
        let allowed = "a name that no other link has, access links included";
        return Err(Fault::new("dumbbell.bottleneck.name", format!("{name:?}"), allowed));
    }
    let sampled = builder.links.iter().filter(|link| link.sampled).count() + connections.len();
    check_samples(spec, sampled as f64)?;
    Ok(NetworkPlan { duration, sample_interval, links: builder.links, connections })
}

/// Connections of a scenario, the mean number of a Poisson source's arrivals included, within
/// bounds.
pub(super) fn count_flows(spec: &ScenarioSpec) -> Result<f64, Fault> {
    let allowed = format!("1 to {FLOWS_MAX} flows in all");
    if spec.flow.is_empty() {
        return Err(Fault::new("flow", "absent", allowed));
    }
    let mut total = 0.0;
    for (index, flow) in spec.flow.iter().enumerate() {
        total += flow.count as f64;
        if total > FLOWS_MAX as f64 || flow.count == 0 {
            return Err(Fault::new(&format!("flow[{index}].count"), flow.count, allowed));
        }
        if let TrafficSpec::Poisson { per_s, .. } = flow.traffic {
            let until = flow.stop_s.unwrap_or(SECONDS_MAX).min(spec.duration_s);
            total += per_s * (until - flow.start_s).max(0.0) * flow.count as f64;
            if total > FLOWS_MAX as f64 {
                let path = format!("flow[{index}].traffic.per_s");
                let allowed = format!("a rate that gives at most {FLOWS_MAX} flows in all");
                return Err(Fault::new(&path, per_s, allowed));
            }
        }
    }
    Ok(total)
}

/// Time series within bounds: so many rows fill a gigabyte.
fn check_samples(spec: &ScenarioSpec, sampled: f64) -> Result<(), Fault> {
    let min = spec.duration_s * 1e3 / ROWS_MAX * sampled;
    if spec.sample_interval_ms > 0.0 && spec.sample_interval_ms < min {
        let allowed = format!("0 or at least {min}, which gives {ROWS_MAX} rows");
        return Err(Fault::new("sample_interval_ms", spec.sample_interval_ms, allowed));
    }
    Ok(())
}

/// The first name that was there before, and its index.
pub(super) fn duplicate<'a>(names: impl Iterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    let mut known = BTreeSet::new();
    names.enumerate().find(|(_, name)| !known.insert(*name))
}

/// `Ok` if exactly one is given; else the names of those that are.
pub(super) fn one_of<'a>(fields: &[(&'a str, bool)]) -> Result<(), Vec<&'a str>> {
    let given: Vec<&str> = fields.iter().filter(|(_, given)| *given).map(|field| field.0).collect();
    if given.len() == 1 { Ok(()) } else { Err(given) }
}

pub(super) fn millis(ms: f64) -> Span {
    Span::from_secs_f64(ms / 1e3)
}
