//! The command line.
use super::plan::Family;
use super::result::Report;
use super::run::{self, Client, Options};
use super::{scenario, up};
use crate::error::Error;
use crate::interrupt;
use crate::link::options;
use crate::namespace;
use ackademy::rng::Seed;
use ackademy::units::Span;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of the command.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a scenario file on the kernel's TCP, in real time; write its records as JSON
    Run(RunArguments),
    /// Keep the hosts and the network of a scenario up for your own programs, until Ctrl-C
    Up(UpArguments),
    /// End every `lab up` of this machine, and remove what killed runs left behind
    Down,
    /// Remove what killed runs left behind
    Clean,
}

#[derive(Args, Debug)]
struct UpArguments {
    #[command(flatten)]
    scenario: scenario::Arguments,
    /// Seed of everything that is drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// IPv6 between the hosts instead of IPv4
    #[arg(long)]
    ipv6: bool,
    /// Watch so long before a packet is due instead of sleeping: less lateness for more CPU
    #[arg(long, value_name = "US", default_value_t = 0)]
    spin_us: u64,
}

impl UpArguments {
    fn family(&self) -> Family {
        if self.ipv6 { Family::V6 } else { Family::V4 }
    }

    fn spin(&self) -> Span {
        Span::from_micros(self.spin_us.min(SPIN_US_MAX))
    }
}

#[derive(Args, Debug)]
struct RunArguments {
    #[command(flatten)]
    up: UpArguments,
    /// Longest time between samples of a flow for this project's controllers [default: 10ms; 1ms for policies; every
    /// acknowledgement if one of them holds packets back]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    backend_interval: Option<Span>,
    /// A run whose 99th percentile of lateness exceeds this is marked invalid
    #[arg(long, value_name = "MS", default_value = "2", value_parser = millis)]
    lateness_ms: Span,
    /// What sends bulk flows: this program, or iperf3
    #[arg(long, value_enum, default_value_t = Client::Own)]
    client: Client,
    /// Where the result goes; - is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
}

/// Runs the command.
///
/// # Errors
///
/// One line for a person.
pub fn run(arguments: Arguments) -> Result<(), Error> {
    interrupt::watch();
    match arguments.command {
        Command::Run(arguments) => run_scenario(&arguments),
        Command::Up(arguments) => {
            let network = arguments.scenario.network()?;
            up::up(&network, Seed(arguments.seed), arguments.family(), arguments.spin())
        }
        Command::Down => {
            println!("ended {}", namespace::end_others()?);
            clean()
        }
        Command::Clean => clean(),
    }
}

fn clean() -> Result<(), Error> {
    for name in namespace::clean()? {
        println!("removed {name}");
    }
    Ok(())
}

fn run_scenario(arguments: &RunArguments) -> Result<(), Error> {
    let network = arguments.up.scenario.network()?;
    Report::check_target(&arguments.out)?;
    let options = Options {
        seed: Seed(arguments.up.seed),
        family: arguments.up.family(),
        interval: arguments.backend_interval,
        spin: arguments.up.spin(),
        lateness_max: arguments.lateness_ms,
        client: arguments.client,
    };
    run::run(&network, &options)?.write(&arguments.out)
}

/// A length of time with its unit, above zero.
fn span(text: &str) -> Result<Span, String> {
    let given = options::millis(text).ok().and_then(within_bounds);
    given.ok_or_else(|| "allowed is above 0 and at most 10s, as in 500us or 10ms".to_owned())
}

/// A length of time in milliseconds, above zero.
fn millis(text: &str) -> Result<Span, String> {
    let given = text.parse().ok().and_then(within_bounds);
    given.ok_or_else(|| "allowed is a number of milliseconds in (0, 10000]".to_owned())
}

fn within_bounds(millis: f64) -> Option<Span> {
    (millis > 0.0 && millis <= 1e4).then(|| Span::from_secs_f64(millis / 1e3))
}

/// Longer than it takes a machine to wake up.
const SPIN_US_MAX: u64 = 10_000;
