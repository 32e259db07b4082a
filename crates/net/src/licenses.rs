//! The licences of this program and of everything that is linked into it.
use crate::error::Error;

/// Of this program; then of each library, with its copyright notices; then the texts.
const TEXT: &str = include_str!("../THIRD-PARTY-LICENSES.txt");

/// Prints them.
///
/// # Errors
///
/// If standard output cannot be written.
pub fn run() -> Result<(), Error> {
    say!("{}", TEXT.trim_end())
}
