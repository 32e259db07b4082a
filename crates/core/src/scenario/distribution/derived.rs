//! Draws that depend on others: products of their values, and schedules of steps around them.
use super::interval::{Interval, plain};
use crate::rng::Rng;
use crate::scenario::check::number;
use crate::scenario::pairs;
use crate::toml_error::Fault;
use serde::Deserialize;
use toml::Value;

/// A draw whose path begins so is no field of a scenario, but a value for other draws.
pub(super) const LET: &str = "let.";
/// Longest schedule of steps, in seconds, and the shortest step.
const SECONDS_MAX: f64 = 3600.0;
const STEP_MIN_S: f64 = 0.01;

/// The product of other draws and a factor.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProductSpec {
    /// Paths of other draws.
    of: Vec<String>,
    /// Factor: a number, a pair (uniform between), or `{ choice = [...] }`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    by: Option<Value>,
    /// Values outside are moved to the nearer end.
    #[serde(default, deserialize_with = "pairs::pair")]
    within: Option<(f64, f64)>,
    /// Rounded to a whole number.
    #[serde(default)]
    whole: bool,
}

/// A schedule that begins with the product of other draws and goes on with that times a factor, each step
/// with one of its own.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepsSpec {
    /// Paths of other draws.
    of: Vec<String>,
    /// Factor of each step.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    by: Value,
    /// Length of a step.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    every_s: Value,
    /// Length of the schedule.
    seconds: f64,
    /// Values outside are moved to the nearer end.
    #[serde(default, deserialize_with = "pairs::pair")]
    within: Option<(f64, f64)>,
}

/// A checked draw that depends on others.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub(super) of: Vec<String>,
    by: Factor,
    within: Option<(f64, f64)>,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Number,
    Whole,
    Steps { every_s: Interval, seconds: f64 },
}

/// A number to multiply by.
#[derive(Clone, Debug)]
enum Factor {
    Between(Interval),
    OneOf(Vec<f64>),
}

impl ProductSpec {
    pub(super) fn check(&self, here: &str) -> Result<Derived, Fault> {
        let by = match &self.by {
            None => Factor::Between(Interval::new(here, 1.0, 1.0, false)?),
            Some(by) => Factor::read(&format!("{here}.by"), by)?,
        };
        let within = range(here, self.within)?;
        let form = if self.whole { Form::Whole } else { Form::Number };
        Ok(Derived { of: named(here, &self.of)?, by, within, form })
    }
}

impl StepsSpec {
    pub(super) fn check(&self, here: &str) -> Result<Derived, Fault> {
        let by = Factor::read(&format!("{here}.by"), &self.by)?;
        let field = format!("{here}.every_s");
        let every_s = Interval::read(&field, &self.every_s)?;
        number(&field, every_s.low, STEP_MIN_S..=SECONDS_MAX)?;
        number(&format!("{here}.seconds"), self.seconds, STEP_MIN_S..=SECONDS_MAX)?;
        let within = range(here, self.within)?;
        let form = Form::Steps { every_s, seconds: self.seconds };
        Ok(Derived { of: named(here, &self.of)?, by, within, form })
    }
}

fn named(here: &str, of: &[String]) -> Result<Vec<String>, Fault> {
    if of.is_empty() {
        return Err(Fault::new(&format!("{here}.of"), "[]", "paths of other draws, one or more"));
    }
    Ok(of.to_vec())
}

fn range(here: &str, within: Option<(f64, f64)>) -> Result<Option<(f64, f64)>, Fault> {
    let Some((low, high)) = within else { return Ok(None) };
    Interval::new(&format!("{here}.within"), low, high, false)?;
    Ok(Some((low, high)))
}

impl Factor {
    /// What an interval may be, or `{ choice = numbers }`.
    fn read(field: &str, value: &Value) -> Result<Self, Fault> {
        let choice = value.as_table().and_then(|table| table.get("choice"));
        let Some(choice) = choice else { return Interval::read(field, value).map(Self::Between) };
        let numbers = choice.as_array().and_then(|items| items.iter().map(plain).collect());
        let numbers: Option<Vec<f64>> = numbers.filter(|numbers: &Vec<f64>| {
            !numbers.is_empty() && numbers.iter().all(|number| number.is_finite())
        });
        let allowed = "one number or more";
        numbers
            .map(Self::OneOf)
            .ok_or_else(|| Fault::new(&format!("{field}.choice"), choice, allowed))
    }

    fn value(&self, rng: &mut Rng) -> f64 {
        match self {
            Self::Between(interval) => interval.value(rng),
            Self::OneOf(numbers) => numbers[rng.below(numbers.len() as u64) as usize],
        }
    }

    fn ends(&self) -> Vec<f64> {
        match self {
            Self::Between(Interval { low, high, .. }) if low >= high => vec![*low],
            Self::Between(Interval { low, high, .. }) => vec![*low, *high],
            Self::OneOf(numbers) => numbers.clone(),
        }
    }
}

impl Derived {
    /// Whether its value is one number.
    pub(super) fn is_number(&self) -> bool {
        !matches!(self.form, Form::Steps { .. })
    }

    /// Factors: one, or pairs of a time and one, of which the first holds from the beginning.
    pub(super) fn factors(&self, rng: &mut Rng) -> Value {
        let Form::Steps { every_s, seconds } = self.form else {
            return Value::Float(self.by.value(rng));
        };
        let mut steps = vec![step(0.0, 1.0)];
        let mut at = every_s.value(rng);
        while at < seconds {
            steps.push(step(at, self.by.value(rng)));
            at += every_s.value(rng);
        }
        Value::Array(steps)
    }

    /// Factors between which, or among which, all lie: of steps, the most and the fewest of them.
    pub(super) fn ends(&self) -> Vec<Value> {
        let factors = self.by.ends();
        let Form::Steps { every_s, seconds } = self.form else {
            return factors.into_iter().map(Value::Float).collect();
        };
        let schedule = |by: f64, every: f64| {
            let count = (seconds / every).ceil() as usize;
            let later = (1..count).map(|place| step(place as f64 * every, by));
            Value::Array(std::iter::once(step(0.0, 1.0)).chain(later).collect())
        };
        let most = factors.iter().map(|&by| schedule(by, every_s.low));
        most.chain([schedule(factors[0], every_s.high)]).collect()
    }

    /// The value, from the factors and the product of the draws that it depends on.
    pub(super) fn value(&self, factors: &Value, product: f64) -> Value {
        let cut = |value: f64| match self.within {
            Some((low, high)) => value.clamp(low, high),
            None => value,
        };
        match (factors, &self.form) {
            (Value::Array(steps), _) => {
                let pairs = steps.iter().filter_map(Value::as_array);
                let numbers = pairs.filter_map(|pair| Some((plain(&pair[0])?, plain(&pair[1])?)));
                Value::Array(numbers.map(|(at, by)| step(at, cut(by * product))).collect())
            }
            (factor, Form::Whole) => {
                Value::Integer(cut(plain(factor).unwrap_or(0.0) * product).round() as i64)
            }
            (factor, _) => Value::Float(cut(plain(factor).unwrap_or(0.0) * product)),
        }
    }
}

fn step(at_s: f64, value: f64) -> Value {
    Value::Array(vec![Value::Float(at_s), Value::Float(value)])
}
