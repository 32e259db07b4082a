//! The draws of a distribution: what a field of a scenario may become, its ends, and one value of it.
use super::derived::{Derived, LET, ProductSpec, StepsSpec};
use super::interval::{Interval, plain};
use super::traces::{GeneratorSpec, TraceDraw};
use crate::rng::Seed;
use crate::scenario::check::steps;
use crate::scenario::pairs;
use crate::sim::trace::{Cellular, Trace};
use crate::toml_error::Fault;
use crate::units::Span;
use serde::Deserialize;
use std::fmt::Write as _;
use std::sync::Arc;
use toml::Value;

/// What a distribution's file says of one draw: exactly one kind, and further fields that get the
/// same value.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DrawSpec {
    /// Uniform between two numbers.
    #[serde(default, deserialize_with = "pairs::pair")]
    uniform: Option<(f64, f64)>,
    /// Its logarithm is uniform between those of two numbers.
    #[serde(default, deserialize_with = "pairs::pair")]
    log_uniform: Option<(f64, f64)>,
    /// A whole number between two, both included.
    #[serde(default, deserialize_with = "pairs::pair")]
    integer: Option<(i64, i64)>,
    /// A whole number whose logarithm is uniform.
    #[serde(default, deserialize_with = "pairs::pair")]
    log_integer: Option<(i64, i64)>,
    /// One of these values.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<serde_json::Value>>"))]
    choice: Option<Vec<Value>>,
    /// Always this value.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    constant: Option<Value>,
    /// A random trace for a link.
    trace: Option<Box<GeneratorSpec>>,
    /// The product of other draws.
    product: Option<ProductSpec>,
    /// A schedule of steps.
    steps: Option<StepsSpec>,
    /// Further fields that get the same value.
    #[serde(default)]
    also: Vec<String>,
}

/// A checked draw.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    /// The dotted path of the field, which also names the draw's random stream.
    pub(super) path: String,
    /// Where it stands in the distribution's file.
    pub(super) place: Vec<String>,
    /// The steps of every field that gets the value.
    pub(super) targets: Vec<Vec<String>>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Number(Interval),
    Integer(i64, i64),
    LogInteger(i64, i64),
    Choice(Vec<Value>),
    Trace(Box<TraceDraw>),
    Derived(Box<Derived>),
}

/// A value for a field, and the trace behind it if it names one.
pub(super) type Drawn = (Value, Option<Arc<Trace>>);

impl Draw {
    /// Checks a draw that stands at `place` in the file.
    pub(super) fn new(path: &str, place: Vec<String>, spec: &DrawSpec) -> Result<Self, Fault> {
        let here = label(&place);
        let mut targets = Vec::new();
        for (at, path) in
            std::iter::once(path).chain(spec.also.iter().map(String::as_str)).enumerate()
        {
            if at == 0 && path.starts_with(LET) {
                continue;
            }
            let field = if at == 0 { here.clone() } else { format!("{here}.also[{}]", at - 1) };
            let steps =
                steps(path).map_err(|allowed| Fault::new(&field, format!("{path:?}"), allowed))?;
            if spec.trace.is_some() && steps.last().is_none_or(|last| last != "trace") {
                let allowed = "a path that ends in the field `trace` of a link";
                return Err(Fault::new(&field, format!("{path:?}"), allowed));
            }
            targets.push(steps);
        }
        let kind = spec.kind(&here)?;
        Ok(Self { path: path.to_owned(), place, targets, kind })
    }

    /// How the draw is named in an error.
    pub(super) fn label(&self) -> String {
        label(&self.place)
    }

    /// The values between which, or among which, every value of this draw lies.
    pub(super) fn ends(&self) -> Vec<Drawn> {
        let values = match &self.kind {
            Kind::Number(Interval { low, high, .. }) => {
                vec![Value::Float(*low), Value::Float(*high)]
            }
            Kind::Integer(low, high) | Kind::LogInteger(low, high) => {
                vec![Value::Integer(*low), Value::Integer(*high)]
            }
            Kind::Choice(values) => return values.iter().map(|it| (it.clone(), None)).collect(),
            Kind::Derived(derived) => {
                return derived.ends().into_iter().map(|factors| (factors, None)).collect();
            }
            Kind::Trace(_) => {
                let shortest = Cellular { duration: Span::ZERO, ..Cellular::default() };
                let trace = Arc::new(Trace::generate(&shortest, Seed(0)));
                return vec![(Value::String("end.trace".to_owned()), Some(trace))];
            }
        };
        let equal = values[0] == values[1];
        values.into_iter().take(if equal { 1 } else { 2 }).map(|value| (value, None)).collect()
    }

    /// What it depends on, and how, if it does.
    pub(super) fn derived(&self) -> Option<&Derived> {
        match &self.kind {
            Kind::Derived(derived) => Some(derived),
            _ => None,
        }
    }

    /// Whether each of its values is one number.
    pub(super) fn is_number(&self) -> bool {
        match &self.kind {
            Kind::Number(_) | Kind::Integer(..) | Kind::LogInteger(..) => true,
            Kind::Choice(values) => values.iter().all(|value| plain(value).is_some()),
            Kind::Trace(_) => false,
            Kind::Derived(derived) => derived.is_number(),
        }
    }

    /// A value, or the factors of one that depends on others: the same for the same seed, whatever else is
    /// drawn. What a limit refuses is drawn again, in another attempt.
    pub(super) fn value(&self, seed: Seed, attempt: u64) -> Drawn {
        let mut rng = seed.stream(&self.path, attempt);
        let value = match &self.kind {
            Kind::Number(interval) => Value::Float(interval.value(&mut rng)),
            Kind::Integer(low, high) => {
                // Both ends fit a field of 63 bits, and so does their distance.
                let steps = rng.below((high - low) as u64 + 1);
                Value::Integer(low + steps as i64)
            }
            Kind::LogInteger(low, high) => {
                // Each whole number has the weight of the interval from it to the next.
                let (from, to) = (libm::log(*low as f64), libm::log(*high as f64 + 1.0));
                let value = libm::exp(rng.uniform_in(from, to)) as i64;
                Value::Integer(value.clamp(*low, *high))
            }
            Kind::Choice(values) => values[rng.below(values.len() as u64) as usize].clone(),
            Kind::Derived(derived) => derived.factors(&mut rng),
            Kind::Trace(draw) => {
                let (own, trace) = draw.draw(&mut rng);
                return (Value::String(format!("{own:016x}.trace")), Some(Arc::new(trace)));
            }
        };
        (value, None)
    }
}

impl DrawSpec {
    fn kind(&self, here: &str) -> Result<Kind, Fault> {
        let given = [
            self.uniform.is_some(),
            self.log_uniform.is_some(),
            self.integer.is_some(),
            self.log_integer.is_some(),
            self.choice.is_some(),
            self.constant.is_some(),
            self.trace.is_some(),
            self.product.is_some(),
            self.steps.is_some(),
        ];
        let count = given.iter().filter(|&&given| given).count();
        if count != 1 {
            let allowed = "exactly one of uniform, log_uniform, integer, log_integer, choice, constant, trace, product, steps";
            return Err(Fault::new(here, format!("{count} of them"), allowed));
        }
        let field = |name: &str| format!("{here}.{name}");
        if let Some((low, high)) = self.uniform {
            return Ok(Kind::Number(Interval::new(&field("uniform"), low, high, false)?));
        }
        if let Some((low, high)) = self.log_uniform {
            return Ok(Kind::Number(Interval::new(&field("log_uniform"), low, high, true)?));
        }
        if let Some((low, high)) = self.integer {
            let (low, high) = whole(&field("integer"), low, high, 0)?;
            return Ok(Kind::Integer(low, high));
        }
        if let Some((low, high)) = self.log_integer {
            let (low, high) = whole(&field("log_integer"), low, high, 1)?;
            return Ok(Kind::LogInteger(low, high));
        }
        if let Some(values) = &self.choice {
            if values.is_empty() {
                return Err(Fault::new(&field("choice"), "[]", "one value or more"));
            }
            return Ok(Kind::Choice(values.clone()));
        }
        if let Some(value) = &self.constant {
            return Ok(Kind::Choice(vec![value.clone()]));
        }
        if let Some(product) = &self.product {
            return Ok(Kind::Derived(Box::new(product.check(&field("product"))?)));
        }
        if let Some(steps) = &self.steps {
            return Ok(Kind::Derived(Box::new(steps.check(&field("steps"))?)));
        }
        let spec = self.trace.as_ref().expect("one of nine kinds is given");
        Ok(Kind::Trace(Box::new(spec.check(&field("trace"))?)))
    }
}

/// A pair of whole numbers from `min`, in order.
fn whole(field: &str, low: i64, high: i64, min: i64) -> Result<(i64, i64), Fault> {
    if min <= low && low <= high {
        return Ok((low, high));
    }
    let allowed = format!("[low, high], whole numbers from {min}, with low at most high");
    Err(Fault::new(field, format!("[{low}, {high}]"), allowed))
}

/// A place in a file as text, steps with dots in quotes.
fn label(place: &[String]) -> String {
    let mut text = String::new();
    for step in place {
        let dot = if text.is_empty() { "" } else { "." };
        let _ = if step.bytes().all(|byte| byte.is_ascii_digit()) {
            write!(text, "[{step}]")
        } else if step.contains('.') {
            write!(text, "{dot}{step:?}")
        } else {
            write!(text, "{dot}{step}")
        };
    }
    text
}
