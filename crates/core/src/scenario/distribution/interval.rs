//! Numbers between two ends.
use crate::rng::Rng;
use crate::toml_error::Fault;
use toml::Value;

/// Numbers between two ends, both allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) log: bool,
}

impl Interval {
    pub(super) fn new(field: &str, low: f64, high: f64, log: bool) -> Result<Self, Fault> {
        let above = !log || low > 0.0;
        if low.is_finite() && high.is_finite() && low <= high && above {
            return Ok(Self { low, high, log });
        }
        let what = if log { " and above 0" } else { "" };
        let allowed = format!("[low, high], finite{what}, with low at most high");
        Err(Fault::new(field, format!("[{low}, {high}]"), allowed))
    }

    /// A number, a pair, or `{ log_uniform = pair }`.
    pub(super) fn read(field: &str, value: &Value) -> Result<Self, Fault> {
        if let Some(value) = plain(value) {
            return Self::new(field, value, value, false);
        }
        let (pair, log) = match value {
            Value::Table(table) if table.len() == 1 => (table.get("log_uniform"), true),
            other => (Some(other), false),
        };
        let pair = pair.and_then(Value::as_array).map(|items| {
            let numbers: Option<Vec<f64>> = items.iter().map(plain).collect();
            numbers.and_then(|numbers| <[f64; 2]>::try_from(numbers).ok())
        });
        let allowed = "a number, a pair [low, high], or { log_uniform = [low, high] }";
        let [low, high] = pair.flatten().ok_or_else(|| Fault::new(field, value, allowed))?;
        Self::new(field, low, high, log)
    }

    /// A value within the ends, rounding included.
    pub(super) fn value(self, rng: &mut Rng) -> f64 {
        let Self { low, high, log } = self;
        let value = if log {
            libm::exp(rng.uniform_in(libm::log(low), libm::log(high)))
        } else {
            rng.uniform_in(low, high)
        };
        value.clamp(low, high)
    }
}

/// A number of TOML.
pub(super) fn plain(value: &Value) -> Option<f64> {
    value.as_float().or(value.as_integer().map(|integer| integer as f64))
}
