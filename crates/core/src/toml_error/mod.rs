//! Reads TOML files. What is wrong with one is said on one line: field, value, what is allowed, and
//! where.
use std::fmt;

mod node;
mod place;
mod problem;
mod read;

pub use place::{line_of, line_of_path};
pub(crate) use read::kinds;
pub use read::{Document, read, read_table};

/// Fields that had another name before: the name now is what an error allows.
const RENAMED: &[(&str, &str)] = &[("gate", "send_hook"), ("least_bytes", "min_bytes")];

/// A value that a file may not have.
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
            path: cut(&one_line(path)),
            value: cut(&one_line(&value.to_string())),
            allowed: one_line(&allowed.to_string()),
        }
    }

    /// Whether the fault is at, or below, the dotted path of an override.
    pub fn lies_in(&self, path: &str) -> bool {
        let own = self.path.replace('[', ".").replace(']', "");
        own == path || own.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// What is allowed in place of the unknown field `name`, if a field of another name replaces it.
fn renamed(name: &str, known: &[&str]) -> Option<String> {
    let (_, now) = RENAMED.iter().find(|(before, _)| *before == name)?;
    known.contains(now).then(|| format!("`{now}`, the name of this field now"))
}

/// At most 80 characters.
fn cut(text: &str) -> String {
    if text.chars().count() <= 80 {
        return text.to_owned();
    }
    text.chars().take(77).chain("...".chars()).collect()
}

/// On one line, with runs of white space as one space.
pub fn one_line(text: &str) -> String {
    text.split(|char: char| char.is_whitespace() || char.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
