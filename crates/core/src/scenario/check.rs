//! From faults to lines: where in the text a fault is, and how to say it on one line.
use std::fmt;
use std::ops::RangeInclusive;
use toml::de::{DeTable, DeValue};

/// A value that a scenario may not have.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Dotted path with indices, such as `flow[0].sender.ack_every`.
    pub path: String,
    /// The value, as text.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} = {}: allowed is {}", self.path, self.value, self.allowed)
    }
}

impl Fault {
    /// A fault at `path`.
    pub fn new(path: &str, value: impl fmt::Display, allowed: impl fmt::Display) -> Self {
        Self {
            path: printable(path),
            value: printable(&value.to_string()),
            allowed: allowed.to_string(),
        }
    }
}

/// On one line, at most 80 characters, without control characters.
fn printable(text: &str) -> String {
    let clean = text.chars().map(|char| if char.is_control() { ' ' } else { char });
    if text.chars().count() <= 80 {
        return clean.collect();
    }
    clean.take(77).chain("...".chars()).collect()
}

/// `value` if it lies in `range` (NaN lies in none).
pub fn number(path: &str, value: f64, range: RangeInclusive<f64>) -> Result<f64, Fault> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Fault::new(path, value, format!("a number in [{}, {}]", range.start(), range.end())))
}

/// `value` if it lies in `range`.
pub fn integer(path: &str, value: u64, range: RangeInclusive<u64>) -> Result<u64, Fault> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Fault::new(path, value, format!("an integer in [{}, {}]", range.start(), range.end())))
}

/// The line of a syntax or type error, from 1.
pub fn line_of(text: &str, error: &toml::de::Error) -> usize {
    error.span().map_or(0, |span| line_at(text, span.start))
}

/// A syntax or type error on one line, with the key of its line and the value found there.
pub fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message: String = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    let message: String = message.chars().filter(|char| !char.is_control()).collect();
    let Some(span) = error.span() else { return message };
    let line = text.lines().nth(line_at(text, span.start) - 1).unwrap_or_default();
    match line.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            let fault = Fault::new(key.trim(), value.trim(), message);
            format!("{} = {}: {}", fault.path, fault.value, fault.allowed)
        }
        _ => message,
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// The line of the field at `path`, or of its nearest enclosing table; 0 if there is none.
pub fn line_of_path(text: &str, path: &str) -> usize {
    let Ok(root) = DeTable::parse(text) else { return 0 };
    let mut offset = None;
    let mut value: Option<&DeValue> = None;
    for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        let next = match (value, step.parse::<usize>()) {
            (None, _) => root.get_ref().get(step),
            (Some(DeValue::Array(items)), Ok(index)) => items.get(index),
            (Some(DeValue::Table(table)), _) => table.get(step),
            _ => None,
        };
        let Some(next) = next else { break };
        offset = Some(next.span().start);
        value = Some(next.get_ref());
    }
    offset.map_or(0, |offset| line_at(text, offset))
}

/// Sets the value at a dotted path such as `dumbbell.bottleneck.queue.packets` or `flow.0.params`;
/// missing tables are made.
pub fn set(table: &mut toml::Table, path: &str, value: &str) -> Result<(), String> {
    let parsed: toml::Table = toml::from_str(&format!("value = {value}"))
        .map_err(|_| format!("override {path} = {value}: allowed is a TOML value"))?;
    let steps: Vec<&str> = path.split('.').collect();
    let (last, parents) = steps.split_last().expect("split yields at least one part");
    let mut here: &mut toml::Table = table;
    for (depth, step) in parents.iter().enumerate() {
        if step.parse::<usize>().is_ok() {
            continue;
        }
        let next = here.entry(*step).or_insert_with(|| toml::Table::new().into());
        let index = parents.get(depth + 1).and_then(|index| index.parse::<usize>().ok());
        here = match (next, index) {
            (toml::Value::Table(table), None) => table,
            (toml::Value::Array(items), Some(index)) => items
                .get_mut(index)
                .and_then(toml::Value::as_table_mut)
                .ok_or_else(|| format!("override {path}: there is no element {index}"))?,
            _ => return Err(format!("override {path}: `{step}` has no such field")),
        };
    }
    here.insert((*last).to_owned(), parsed["value"].clone());
    Ok(())
}
