//! Programs of the system, such as iproute2's.
use crate::error::Error;
use std::process::Command;

/// Runs a program to its end.
///
/// # Errors
///
/// One line: the command and what it complained about.
pub fn run(program: &str, arguments: &[&str]) -> Result<(), Error> {
    let line = || format!("{program} {}", arguments.join(" "));
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|error| Error::System(format!("`{}`: {error}", line())))?;
    if done.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&done.stderr);
    let complaint: Vec<&str> = complaint.lines().map(str::trim).collect();
    Err(Error::System(format!("`{}`: {}", line(), complaint.join("; "))))
}
