//! The guard of a policy in networks unlike those of its training: while most of what it sees is outside of the
//! ranges that its training saw, its flow is left to the law beneath.
use super::files::Fallback;
use super::spec::{MapSpec, PolicySpec, SpecError};
use serde::Deserialize;
use std::sync::Arc;

/// Of the latest 32 intervals, one bit each, more than this must be outside (proposed).
const OUTSIDE_MAX: u32 = 16;

/// The table `guard` of a flow's policy.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct GuardTable {
    #[serde(default, rename = "fallback")]
    _fallback: Fallback,
    /// Smallest and largest value of each feature.
    ranges: Option<Vec<[f64; 2]>>,
}

impl GuardTable {
    /// The guard, if there is one.
    ///
    /// # Errors
    ///
    /// If the ranges are not those of the policy's features, or zeros would not leave the flow to a law.
    pub fn read(&self, spec: &PolicySpec) -> Result<Option<Guard>, SpecError> {
        let Some(pairs) = &self.ranges else { return Ok(None) };
        let told = |problem: String| SpecError::at("guard.ranges", problem);
        if !matches!(spec.action.map, MapSpec::OwnQueue | MapSpec::OwnQueuePaced) {
            let allowed = "nothing, unless map = \"own_queue\" or \"own_queue_paced\"";
            return Err(told(format!("is given: allowed is {allowed}")));
        }
        let (count, wanted) = (pairs.len(), spec.observation.features.len());
        if count != wanted {
            let allowed = format!("one for each of {wanted} features");
            return Err(told(format!("has {count} pairs: allowed is {allowed}")));
        }
        for (index, [low, high]) in pairs.iter().enumerate() {
            if !(low <= high
                && low.abs() <= f64::from(f32::MAX)
                && high.abs() <= f64::from(f32::MAX))
            {
                let problem = format!("= [{low}, {high}]: allowed is [low, high] with low <= high");
                return Err(SpecError::at(format!("guard.ranges[{index}]"), problem));
            }
        }
        let ranges = pairs.iter().map(|[low, high]| (*low as f32, *high as f32)).collect();
        Ok(Some(Guard { ranges, outside: 0 }))
    }
}

/// The guard of one flow; flows share the ranges.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    ranges: Arc<[(f32, f32)]>,
    /// The latest interval is the lowest bit, which is set if a feature was outside.
    outside: u32,
}

impl Guard {
    /// Smallest and largest value of each feature.
    pub fn ranges(&self) -> &[(f32, f32)] {
        &self.ranges
    }

    /// Takes in the features of the next interval; whether the flow is to be left to the law.
    pub fn takes_over(&mut self, features: &[f32]) -> bool {
        let is_outside = |(value, (low, high)): (&f32, &(f32, f32))| value < low || value > high;
        let outside = features.iter().zip(&*self.ranges).any(is_outside);
        self.outside = self.outside << 1 | u32::from(outside);
        self.outside.count_ones() > OUTSIDE_MAX
    }
}

#[cfg(test)]
#[path = "tests/guard.rs"]
mod tests;
