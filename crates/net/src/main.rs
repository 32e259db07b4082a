//! `ackademyd`: Ackademy's controllers on the kernel's TCP, a link emulator, and a lab of network
//! namespaces.
use ackademy_net::{bench, kernel, lab, licenses, link, manual, note, quic};
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "ackademyd", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a congestion control to the kernel's TCP; show its flows; release them
    Kernel(kernel::cli::Arguments),
    /// Emulate a link between two network namespaces
    Link(Box<link::cli::Arguments>),
    /// Run scenario files in network namespaces with an emulated network between them
    Lab(lab::cli::Arguments),
    /// Serve and fetch files over QUIC, under a controller of this project
    Quic(quic::Arguments),
    /// Measure the cost of a controller in user space, beside the kernel's own CUBIC
    Bench(bench::Arguments),
    /// Print the manual's pages, for man(1)
    Man(manual::Arguments),
    /// Print the licences of this program and of everything that is linked into it
    Licenses,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Kernel(arguments) => kernel::cli::run(arguments),
        Command::Link(arguments) => link::cli::run(*arguments),
        Command::Lab(arguments) => lab::cli::run(arguments),
        Command::Quic(arguments) => quic::run(arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Man(arguments) => manual::run(&arguments, Arguments::command()),
        Command::Licenses => licenses::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("ackademyd: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}
