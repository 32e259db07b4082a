//! From a parsed TOML text to a type. An error carries the path and value of its field: nothing is
//! recovered from the messages of serde or of the parser.
//!
//! An enum with fields is a table whose `kind` names the variant ([`kinds`]).
use super::Fault;
use super::node::Node;
use super::place::{line_below, syntax};
use super::problem::Step;
use serde::de::DeserializeOwned;
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
