//! The command line.
use crate::error::Error;
use clap::Args;

/// Arguments of the command.
#[derive(Args, Debug)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
///
/// One line for a person.
pub fn run(_arguments: Arguments) -> Result<(), Error> {
    Err(Error::System("not built yet".to_owned()))
}
