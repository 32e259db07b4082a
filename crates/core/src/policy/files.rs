//! The two files of a policy's folder as they come, for the readers of both kinds of policies. Untrusted
//! input: every error is one line that names the file, and the line where there is one.
use super::SpecError;
use super::nn::Fault;
use super::safetensors::Tensors;
use crate::ranges::note;
use crate::toml_error;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Names of the files, in the order in which policies are read from them.
pub const FILES: &[&str] = &["policy.toml", "weights.safetensors"];
/// The only format.
const FORMAT: u64 = 1;
/// Largest description, in bytes.
const DESCRIPTION_MAX: usize = 1 << 16;
/// Longest `about`, in characters.
const ABOUT_MAX: usize = 200;
/// Longest error, in characters: an error quotes values of the file, and may list all features.
pub const ERROR_MAX: usize = 1000;

/// `policy.toml` as text, and the weights.
pub(super) struct Files<'a> {
    text: &'a str,
    weights: &'a [u8],
}

/// The table that names the controller for invalid actions; CUBIC is the only one. That of a flow's policy
/// may hold more (`guard.rs`).
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct GuardSpec {
    #[serde(default, rename = "fallback")]
    _fallback: Fallback,
}

/// The controller that takes over after an invalid action.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum Fallback {
    #[default]
    Cubic,
}

impl<'a> Files<'a> {
    /// What `parse` makes of the two files, in the order of [`FILES`]; an error is cut to a length that fits
    /// a terminal.
    pub(super) fn read<T>(
        files: &'a [Vec<u8>],
        parse: impl FnOnce(&Self) -> Result<T, String>,
    ) -> Result<T, String> {
        let read = Self::open(files).and_then(|files| parse(&files));
        read.map_err(|fault| fault.chars().take(ERROR_MAX).collect())
    }

    fn open(files: &'a [Vec<u8>]) -> Result<Self, String> {
        let [description, weights] = files else {
            return Err(format!("{} files: allowed are {}", files.len(), FILES.join(" and ")));
        };
        let text = text_of(description).map_err(|fault| at(0, &fault))?;
        Ok(Self { text, weights })
    }

    /// The fields of `policy.toml`.
    pub(super) fn described<D: DeserializeOwned>(&self) -> Result<D, String> {
        toml_error::read(self.text).map_err(|(line, fault)| at(line, &fault))
    }

    /// Checks the first two fields of `policy.toml`.
    pub(super) fn check_head(&self, format: u64, about: &str) -> Result<(), String> {
        note("format", FORMAT as f64, FORMAT as f64);
        if format != FORMAT {
            let problem = format!("= {format}: allowed is {FORMAT}");
            return Err(self.in_line(SpecError::at("format", problem)));
        }
        let length = about.chars().count();
        if length > ABOUT_MAX || about.chars().any(char::is_control) {
            let allowed = format!("one line of at most {ABOUT_MAX}");
            let problem = format!("= {length} characters: allowed is {allowed}");
            return Err(self.in_line(SpecError::at("about", problem)));
        }
        Ok(())
    }

    /// An error about a field of `policy.toml`, with its line.
    pub(super) fn in_line(&self, error: SpecError) -> String {
        let error = error.located(self.text);
        at(error.line, &error.message())
    }

    /// The arrays of `weights.safetensors`.
    pub(super) fn tensors(&self) -> Result<Tensors<'a>, String> {
        Tensors::read(self.weights).map_err(of_weights)
    }

    /// An error about a network, which either file may have.
    pub(super) fn of_network(&self, fault: Fault) -> String {
        match fault {
            Fault::Layers(error) => self.in_line(error),
            Fault::Tensors(fault) => of_weights(fault),
        }
    }
}

/// An error about `policy.toml`; line 0 for none.
fn at(line: usize, fault: &str) -> String {
    match line {
        0 => format!("{}: {fault}", FILES[0]),
        line => format!("{}:{line}: {fault}", FILES[0]),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn of_weights(fault: String) -> String {
    format!("{}: {fault}", FILES[1])
}

/// `policy.toml` as text.
fn text_of(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() > DESCRIPTION_MAX {
        let length = bytes.len();
        return Err(format!("{length} bytes: allowed is at most {DESCRIPTION_MAX}"));
    }
    std::str::from_utf8(bytes)
        .map_err(|error| format!("byte {}: allowed is UTF-8", error.valid_up_to()))
}
