//! What is wrong with a field, and the way to it.
use super::{Fault, renamed};
use serde::de::{Error, Expected, Unexpected};
use std::fmt::{self, Write as _};

/// A field that is not as its type has it.
#[derive(Debug)]
pub(super) struct Problem {
    /// From the field up to the root.
    pub(super) steps: Vec<Step>,
    /// What the field has, once it is known.
    value: Option<String>,
    allowed: String,
}

/// A step of a path.
#[derive(Debug)]
pub(super) enum Step {
    /// To a field of a table.
    Key(String),
    /// To a member of a list.
    Index(usize),
}

impl Problem {
    /// A value that is not as `allowed` says; its path is added on the way up.
    pub(super) fn new(value: String, allowed: impl Into<String>) -> Self {
        Self { steps: Vec::new(), value: Some(value), allowed: allowed.into() }
    }

    /// The same problem, with this value if it has none.
    pub(super) fn of(mut self, value: impl FnOnce() -> String) -> Self {
        self.value.get_or_insert_with(value);
        self
    }

    /// The same problem, one step further down.
    pub(super) fn below(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub(super) fn fault(&self) -> Fault {
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                Step::Index(index) => {
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        Fault::new(&path, self.value.as_deref().unwrap_or_default(), &self.allowed)
    }

    fn without_value(allowed: impl Into<String>) -> Self {
        Self { steps: Vec::new(), value: None, allowed: allowed.into() }
    }
}

impl Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::without_value(message.to_string())
    }

    fn invalid_type(_: Unexpected, expected: &dyn Expected) -> Self {
        Self::without_value(expected.to_string())
    }

    fn invalid_value(_: Unexpected, expected: &dyn Expected) -> Self {
        Self::without_value(expected.to_string())
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::without_value(expected.to_string())
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!("{variant:?}"), choices(known, "nothing", ""))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let allowed = renamed(field, known)
            .unwrap_or_else(|| choices(known, "no field at all", "a field named "));
        Self::without_value(allowed)
    }

    fn missing_field(field: &'static str) -> Self {
        let absent = Self::new("absent".to_owned(), "a value: there is no default");
        absent.below(Step::Key(field.to_owned()))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault().fmt(out)
    }
}

impl std::error::Error for Problem {}

fn choices(known: &[&str], none: &str, prefix: &str) -> String {
    if known.is_empty() { none.to_owned() } else { format!("{prefix}{}", known.join(", ")) }
}
