//! Draws that depend on others: products of their values, schedules of steps around them, and limits on what
//! values may come together.
use super::check::number;
use super::distribution::Entry;
use super::draws::{Draw, Drawn, Interval, plain};
use super::pairs;
use crate::rng::{Rng, Seed};
use crate::toml_error::Fault;
use serde::Deserialize;
use toml::Value;

/// A draw whose path begins so is no field of a scenario, but a value for other draws.
pub(super) const LET: &str = "let.";
/// How often values are drawn that a limit refuses.
const ATTEMPTS: u64 = 1000;
/// Draws by which a limit is tried, and how many of them it must keep.
const TRIED: u64 = 512;
const KEPT_MIN: u64 = TRIED / 8;
/// Longest schedule of steps, in seconds, and the shortest step.
const SECONDS_MAX: f64 = 3600.0;
const STEP_MIN_S: f64 = 0.01;

/// The product of other draws and a factor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProductSpec {
    of: Vec<String>,
    by: Option<Value>,
    #[serde(default, deserialize_with = "pairs::pair")]
    within: Option<(f64, f64)>,
    #[serde(default)]
    whole: bool,
}

/// A schedule that begins with the product of other draws and goes on with that times a factor, each step
/// with one of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepsSpec {
    of: Vec<String>,
    by: Value,
    every_s: Value,
    seconds: f64,
    #[serde(default, deserialize_with = "pairs::pair")]
    within: Option<(f64, f64)>,
}

/// What the product of some draws may be at most.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitSpec {
    product: Vec<String>,
    at_most: f64,
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

/// A limit on the draws in these places.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    of: Vec<usize>,
    at_most: f64,
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
pub(super) fn limits(entry: &Entry, field: &str, specs: &[LimitSpec]) -> Result<Vec<Limit>, Fault> {
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

impl Entry {
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
