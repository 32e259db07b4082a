//! Recorded rates and delays of links: files by name, and what is to be known to read them.
use super::check::{MILLIS_MAX, SECONDS_MAX, number};
use crate::sim::series::{Layout, Times};
use crate::toml_error::Fault;
use crate::units::Span;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A recorded rate: the name of a mahimahi trace, or a table.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum TraceSpec {
    /// A mahimahi trace, relative to the scenario.
    File(String),
    /// Any of the formats.
    Table(RecordedSpec),
}

/// A file of a recorded rate or delay. Without `interval_ms` and `time`, it is a mahimahi trace.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedSpec {
    /// Relative to the scenario.
    pub file: String,
    /// A value for each so many milliseconds.
    #[serde(default)]
    pub interval_ms: Option<f64>,
    /// Column of the seconds at which the values begin, counted from the first: a name in the file's first line, or a
    /// number from 1.
    #[serde(default)]
    pub time: Option<String>,
    /// Column of the values, in the same way. Absent: a line is a value.
    #[serde(default)]
    pub column: Option<String>,
    /// Factor that makes Mb/s, or milliseconds, of the values. Default 1.
    #[serde(default)]
    pub scale: Option<f64>,
    /// Where in the recording, which repeats, a run begins. Default 0.
    #[serde(default)]
    pub from_s: Option<f64>,
    /// Digest that the file must have, as `sha256sum` prints it.
    #[serde(default)]
    pub sha256: Option<String>,
}

impl RecordedSpec {
    /// A mahimahi trace of this name.
    pub(super) fn named(file: &str) -> Self {
        Self { file: file.to_owned(), ..Self::default() }
    }

    /// The same recording, whatever part of it is used.
    pub(super) fn whole(&self) -> Self {
        Self { from_s: None, ..self.clone() }
    }

    pub(super) fn place(&self, path: &str) -> Result<Span, Fault> {
        let from_s = self.from_s.unwrap_or(0.0);
        Ok(Span::from_secs_f64(number(&format!("{path}.from_s"), from_s, 0.0..=SECONDS_MAX)?))
    }

    /// How the file holds values of at most `max`; `None` for a mahimahi trace.
    pub(super) fn layout(&self, path: &str, max: f64) -> Result<Option<Layout<'_>>, Fault> {
        let field = |name: &str| format!("{path}.{name}");
        let scale = self.scale.unwrap_or(1.0);
        number(&field("scale"), scale, 1e-12..=1e12)?;
        let column = self.column.as_deref();
        let times = match (self.interval_ms, self.time.as_deref()) {
            (Some(ms), None) => {
                number(&field("interval_ms"), ms, 1e-3..=MILLIS_MAX)?;
                Times::Every(Span::from_secs_f64(ms / 1e3))
            }
            (None, Some(time)) if column.is_some() => Times::Column(time),
            (None, Some(time)) => {
                return Err(Fault::new(
                    &field("time"),
                    format!("{time:?}"),
                    "absent without column",
                ));
            }
            (Some(_), Some(time)) => {
                let allowed = "absent beside interval_ms";
                return Err(Fault::new(&field("time"), format!("{time:?}"), allowed));
            }
            (None, None) => {
                let given = [("column", column.is_some()), ("scale", self.scale.is_some())];
                return match given.iter().find(|(_, given)| *given) {
                    Some((name, _)) => {
                        Err(Fault::new(&field(name), "given", "absent without interval_ms or time"))
                    }
                    None => Ok(None),
                };
            }
        };
        Ok(Some(Layout { times, column, scale, max }))
    }
}

impl TraceSpec {
    /// As a table.
    pub(super) fn table(&self) -> RecordedSpec {
        match self {
            Self::File(file) => RecordedSpec::named(file),
            Self::Table(table) => table.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for TraceSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TraceVisitor)
    }
}

struct TraceVisitor;

impl<'de> Visitor<'de> for TraceVisitor {
    type Value = TraceSpec;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a file, or a table")
    }

    fn visit_str<E>(self, file: &str) -> Result<TraceSpec, E> {
        Ok(TraceSpec::File(file.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TraceSpec, A::Error> {
        RecordedSpec::deserialize(MapAccessDeserializer::new(map)).map(TraceSpec::Table)
    }
}
