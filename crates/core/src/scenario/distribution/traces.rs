//! Draws of generated traces: a kind of generator, and what of it is drawn.
use super::interval::Interval;
use crate::rng::{Rng, Seed};
use crate::scenario::check::{MBPS_MAX, number};
use crate::sim::grants::{Field, Grants};
use crate::sim::trace::{Cellular, OPPORTUNITY, Trace};
use crate::toml_error::Fault;
use crate::units::{Rate, Span};
use serde::Deserialize;
use toml::Value;

/// A random trace; each property is a number, a pair (uniform between), or `{ log_uniform = pair }`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct GeneratorSpec {
    /// The generator. Default `wander`.
    #[serde(default)]
    kind: Kind,
    /// Mean rate.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    mean_mbps: Value,
    /// Length; the trace then repeats.
    seconds: f64,
    /// `wander`: change of the rate in a second, relative to its mean.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    volatility: Option<Value>,
    /// `wander`: how fast the rate returns to its mean, per second.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    reversion: Option<Value>,
    /// `wander`: outages in a second.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    outages_per_s: Option<Value>,
    /// `wander`: length of an outage.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    outage_ms: Option<Value>,
    /// `grants`: where in the distribution of rates the middle lies.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    level: Option<Value>,
    /// `grants`: how far the rates spread.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    spread: Option<Value>,
    /// `grants`: part of the variance that changes within tenths of a second.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    fast: Option<Value>,
    /// `grants`: part of the variance that changes within tens of seconds.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    slow: Option<Value>,
    /// `grants`: mean time from a grant to the next.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    grant_ms: Option<Value>,
    /// `grants`: packets that a grant carries in a millisecond.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    grant_packets: Option<Value>,
    /// `grants`: fades that begin in a second.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    fades_per_s: Option<Value>,
    /// `grants`: shortest fade.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    fade_ms: Option<Value>,
    /// `grants`: exponent of the lengths of fades; the smaller, the more long ones.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    fade_tail: Option<Value>,
}

/// A generator of traces.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A rate that wanders around its mean.
    #[default]
    Wander,
    /// Scheduler grants, fitted to recorded traces.
    Grants,
}

/// A checked draw.
#[derive(Clone, Debug)]
pub(super) struct TraceDraw {
    kind: Kind,
    duration: Span,
    mean_mbps: Interval,
    /// Of the generator's parameters, in their order.
    values: Vec<Interval>,
}

impl GeneratorSpec {
    pub(super) fn check(&self, here: &str) -> Result<TraceDraw, Fault> {
        let interval = |name: &str, value: Option<&Value>, default: f64, low: f64, high: f64| {
            let field = format!("{here}.{name}");
            let found = match value {
                None => Interval { low: default, high: default, log: false },
                Some(value) => Interval::read(&field, value)?,
            };
            number(&field, found.low, low..=high)?;
            number(&field, found.high, low..=high)?;
            Ok(found)
        };
        number(&format!("{here}.seconds"), self.seconds, 1.0..=SECONDS_MAX)?;
        let mean_mbps = interval("mean_mbps", Some(&self.mean_mbps), 0.0, 1e-3, MBPS_MAX)?;
        let max = Rate::from_mbps(mean_mbps.high).bytes_in(Span::from_secs_f64(self.seconds)).0
            / OPPORTUNITY.0;
        if max > OPPORTUNITIES_MAX {
            let allowed = format!(
                "so much that a trace of {} s has at most {OPPORTUNITIES_MAX} packets",
                self.seconds
            );
            return Err(Fault::new(&format!("{here}.mean_mbps"), mean_mbps.high, allowed));
        }
        let mut values = Vec::new();
        for (kind, (name, low, high), default, value) in self.fields() {
            if kind == self.kind {
                values.push(interval(name, value, default, low, high)?);
            } else if value.is_some() {
                let allowed = match kind {
                    Kind::Wander => "absent with kind = \"grants\"",
                    Kind::Grants => "absent without kind = \"grants\"",
                };
                return Err(Fault::new(&format!("{here}.{name}"), "given", allowed));
            }
        }
        let duration = Span::from_secs_f64(self.seconds);
        Ok(TraceDraw { kind: self.kind, duration, mean_mbps, values })
    }

    /// The parameters of all generators: whose, name and range, default, value.
    fn fields(&self) -> Vec<(Kind, Field, f64, Option<&Value>)> {
        let usual = Cellular::default();
        let outage_ms = usual.outage.as_secs_f64() * 1e3;
        // Beyond ten per second the ticks of 20 ms are too long.
        let wander = [
            (("volatility", 0.0, 10.0), usual.volatility, &self.volatility),
            (("reversion", 0.0, 10.0), usual.reversion, &self.reversion),
            (("outages_per_s", 0.0, 10.0), usual.outages_per_second, &self.outages_per_s),
            (("outage_ms", 0.0, 1e5), outage_ms, &self.outage_ms),
        ];
        let grants = [
            &self.level,
            &self.spread,
            &self.fast,
            &self.slow,
            &self.grant_ms,
            &self.grant_packets,
            &self.fades_per_s,
            &self.fade_ms,
            &self.fade_tail,
        ];
        let wander =
            wander.map(|(field, usual, value)| (Kind::Wander, field, usual, value.as_ref()));
        let grants = Grants::FIELDS.into_iter().zip(Grants::USUAL).zip(grants);
        let grants =
            grants.map(|((field, usual), value)| (Kind::Grants, field, usual, value.as_ref()));
        wander.into_iter().chain(grants).collect()
    }
}

impl TraceDraw {
    /// A trace, whose own seed `rng` draws, and that seed.
    pub(super) fn draw(&self, rng: &mut Rng) -> (u64, Trace) {
        let mean = Rate::from_mbps(self.mean_mbps.value(rng));
        let values: Vec<f64> = self.values.iter().map(|interval| interval.value(rng)).collect();
        let own = rng.next_u64();
        let trace = match (self.kind, values.as_slice()) {
            (Kind::Grants, values) => {
                let values = values.try_into().expect("an interval for each parameter");
                Grants::of(self.duration, mean, values).generate(Seed(own))
            }
            (Kind::Wander, &[volatility, reversion, outages_per_second, outage_ms]) => {
                let outage = Span::from_secs_f64(outage_ms / 1e3);
                let duration = self.duration;
                let model =
                    Cellular { duration, mean, volatility, reversion, outages_per_second, outage };
                Trace::generate(&model, Seed(own))
            }
            (Kind::Wander, _) => unreachable!("an interval for each parameter"),
        };
        (own, trace)
    }
}

/// Longest drawn trace: an hour.
const SECONDS_MAX: f64 = 3600.0;

/// Most packets of a drawn trace: 16 MB, drawn in some 50 ms.
const OPPORTUNITIES_MAX: u64 = 4_000_000;
