//! Values of a scenario within their ranges, and values set by a dotted path.
use crate::ranges::note;
use crate::toml_error::Fault;
use crate::units::Span;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub(super) const SECONDS_MAX: f64 = 1e8;
pub(super) const MILLIS_MAX: f64 = 1e7;
pub(super) const MBPS_MAX: f64 = 1e6;

/// `value` if it lies in `range` (NaN lies in none).
pub fn number(path: &str, value: f64, range: RangeInclusive<f64>) -> Result<f64, Fault> {
    note(path, *range.start(), *range.end());
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Fault::new(path, value, format!("a number in [{}, {}]", range.start(), range.end())))
}

/// `value` if it lies in `range`.
pub fn integer(path: &str, value: u64, range: RangeInclusive<u64>) -> Result<u64, Fault> {
    note(path, *range.start() as f64, *range.end() as f64);
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Fault::new(path, value, format!("a whole number in [{}, {}]", range.start(), range.end())))
}

/// Sets the value at a dotted path such as `dumbbell.bottleneck.queue.packets` or `flow.0.params`;
/// missing tables are made.
pub fn set(table: &mut toml::Table, path: &str, value: &str) -> Result<(), Fault> {
    let parsed: Option<toml::Value> = toml::from_str(&format!("value = {value}"))
        .ok()
        .filter(|table: &toml::Table| table.len() == 1)
        .and_then(|mut table| table.remove("value"));
    let Some(parsed) = parsed else {
        return Err(Fault::new(path, value, "a TOML value (words in quotes)"));
    };
    let put = steps(path).and_then(|steps| put(table, &steps, parsed));
    put.map_err(|allowed| Fault::new(path, value, allowed))
}

/// The steps of a dotted path.
///
/// # Errors
///
/// What is allowed, if the value is not.
pub fn steps(path: &str) -> Result<Vec<String>, String> {
    let steps: Vec<String> = path.split('.').map(str::to_owned).collect();
    if steps.len() > DEPTH_MAX || steps.iter().any(String::is_empty) {
        return Err("a path like dumbbell.bottleneck.rate_mbps or flow.0.controller".to_owned());
    }
    Ok(steps)
}

/// Sets the value at these steps, of which there is one at least; missing tables are made.
///
/// # Errors
///
/// What is allowed instead, if the steps lead through what is no table, or to no member of a list.
pub fn put(here: &mut toml::Table, steps: &[String], value: toml::Value) -> Result<(), String> {
    let (step, rest) = steps.split_first().expect("a path has a step");
    if rest.is_empty() {
        here.insert(step.clone(), value);
        return Ok(());
    }
    let next = here.entry(step.as_str()).or_insert_with(|| toml::Table::new().into());
    put_below(next, step, rest, value)
}

/// Sets the value at these steps below a table or a list, which the name leads to.
fn put_below(
    here: &mut toml::Value,
    name: &str,
    steps: &[String],
    value: toml::Value,
) -> Result<(), String> {
    let items = match here {
        toml::Value::Table(table) => return put(table, steps, value),
        toml::Value::Array(items) => items,
        _ => return Err(format!("no more steps: `{name}` is not a table")),
    };
    let (index, rest) = steps.split_first().expect("there is a step below");
    let of_tables = items.iter().any(toml::Value::is_table);
    let allowed =
        format!("{name}.N{} with N below {}", if of_tables { ".FIELD" } else { "" }, items.len());
    let item = index.parse::<usize>().ok().and_then(|index| items.get_mut(index));
    match (item, rest) {
        (Some(item), []) if !item.is_table() => {
            *item = value;
            Ok(())
        }
        (Some(item), [_, ..]) => put_below(item, &format!("{name}.{index}"), rest, value),
        _ => Err(allowed),
    }
}

/// Deepest path of an override.
const DEPTH_MAX: usize = 16;

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
