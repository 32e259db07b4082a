//! What a scenario means: links and connections with every default filled in and every value
//! checked.
use super::FLOWS_MAX;
use super::check::{MILLIS_MAX, SECONDS_MAX, duplicate, millis, number};
use super::files::{Files, Reader};
use super::links::{Builder, Topology};
use super::spec::ScenarioSpec;
use crate::ranges::note;
use crate::sim::plan::{ConnectionPlan, NetworkPlan, TrafficSpec};
use crate::toml_error::Fault;
use crate::units::Time;

/// Most rows of all time series together.
const ROWS_MAX: f64 = 1e7;

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
        note(&format!("flow[{index}].count"), 1.0, FLOWS_MAX as f64);
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
