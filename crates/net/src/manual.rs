//! The manual's pages, made of the same text as `--help`.
use crate::error::Error;
use crate::output::Output;
use clap::{Args, Command};
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// Arguments of the command.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Command whose page is printed [default: the program's page]
    #[arg(value_name = "COMMAND", conflicts_with = "to")]
    of: Vec<String>,
    /// Write every page into this folder instead, as ackademyd-kernel-status.1
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  ackademyd man | man -l -
  ackademyd man kernel status | man -l -
  ackademyd man --to /usr/local/share/man/man1";

/// Prints or writes pages of the manual of `program`.
///
/// # Errors
///
/// If there is no such command, or a page cannot be written.
pub fn run(arguments: &Arguments, mut program: Command) -> Result<(), Error> {
    program.build();
    if let Some(folder) = &arguments.to {
        return write_all(&program, folder);
    }
    let mut command = &program;
    for word in &arguments.of {
        command = command.find_subcommand(word).ok_or_else(|| {
            let known: Vec<&str> = commands(command).map(Command::get_name).collect();
            let given = arguments.of.join(" ");
            Error::Input(format!("man {given}: allowed is one of {}", known.join(", ")))
        })?;
    }
    let page = page(command);
    Output::new("man", Path::new("-"))?.write(|out| out.write_all(&page))
}

/// A page for each command, in a folder that exists.
fn write_all(command: &Command, folder: &Path) -> Result<(), Error> {
    let page = page(command);
    let file = folder.join(format!("{}.1", name(command)));
    Output::new("--to", &file)?.write(|out| out.write_all(&page))?;
    commands(command).try_for_each(|command| write_all(command, folder))
}

fn page(command: &Command) -> Vec<u8> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(name(command)).manual("Ackademy");
    man.render(&mut page).expect("memory can be written");
    page
}

fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// Those below `command`, without clap's own.
fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help")
}
