//! From a parsed TOML text to a type. An error carries the path and value of its field: nothing is
//! recovered from the messages of serde or of the parser.
//!
//! An enum with fields is a table whose `kind` names the variant ([`kinds`]).
use super::node::Node;
use super::place::{line_below, syntax};
use super::{Fault, renamed};
use serde::de::{DeserializeOwned, Error, Expected, Unexpected};
use std::fmt::{self, Write as _};
use toml::de::{DeTable, DeValue};

/// A text that is TOML.
pub struct Document<'a> {
    text: &'a str,
    root: DeValue<'a>,
}

impl<'a> Document<'a> {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// The line, from 1, and a sentence if it is not TOML.
    pub fn parse(text: &'a str) -> Result<Self, (usize, String)> {
        let root = DeTable::parse(text).map_err(|error| syntax(text, &error))?;
        Ok(Self { text, root: DeValue::Table(root.into_inner()) })
    }

    /// What the text says.
    ///
    /// # Errors
    ///
    /// The line of the field, from 1, and a sentence: path, value, what is allowed.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, (usize, String)> {
        T::deserialize(Node::Parsed(&self.root)).map_err(|problem| {
            let steps = problem.steps.iter().rev().map(|step| match step {
                Step::Key(key) => key.clone(),
                Step::Index(index) => index.to_string(),
            });
            let steps: Vec<String> = steps.collect();
            let line = match &self.root {
                DeValue::Table(root) => {
                    line_below(self.text, root, steps.iter().map(String::as_str)).max(1)
                }
                _ => 0,
            };
            (line, problem.fault().to_string())
        })
    }
}

/// What a TOML text says.
///
/// # Errors
///
/// As [`Document::parse`] and [`Document::read`].
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, (usize, String)> {
    Document::parse(text)?.read()
}

/// What a table says.
///
/// # Errors
///
/// The first field that is not as the type has it.
pub fn read_table<T: DeserializeOwned>(table: &toml::Table) -> Result<T, Fault> {
    T::deserialize(Node::Root(table)).map_err(|problem| problem.fault())
}

/// A field that is not as its type has it.
#[derive(Debug)]
pub(super) struct Problem {
    /// From the field up to the root.
    steps: Vec<Step>,
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

    fn fault(&self) -> Fault {
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

/// An enum that a file has as a table: `kind` names the variant, the other fields are the variant's.
///
/// serde's own code for tagged enums copies a table before it reads the fields, and so loses their
/// paths. Here `Serialize` and the schema have serde's tag, and `Deserialize` reads the variants of
/// `$fields`, a copy of the enum without the tag, from [`Node`], which takes `kind` for the tag.
macro_rules! kinds {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident as $fields:ident, $text:tt {
            $($variants:tt)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, serde::Serialize, PartialEq)]
        #[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
        pub enum $name {
            $($variants)*
        }

        #[derive(serde::Deserialize)]
        #[serde(remote = $text, rename_all = "snake_case", deny_unknown_fields)]
        #[allow(dead_code)] // only names the fields for serde
        enum $fields {
            $($variants)*
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $fields::deserialize(from)
            }
        }
    };
}

pub(crate) use kinds;
