//! The command line.
use super::plan::{Family, Over};
use super::run::{self, Client, Options};
use super::{scenario, up};
use crate::error::Error;
use crate::interrupt;
use crate::link::options;
use crate::namespace;
use crate::output::Output;
use ackademy::rng::Seed;
use ackademy::units::Span;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of the command.
#[derive(Args, Debug)]
#[command(after_help = NEEDS)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a scenario file on the kernel's TCP or on QUIC, in real time; write its records as JSON
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Keep the hosts and the network of a scenario up for your own programs, until Ctrl-C
    #[command(after_help = UP_EXAMPLES)]
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
    /// Seed of every random draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// IPv6 between the hosts instead of IPv4
    #[arg(long)]
    ipv6: bool,
    /// Busy-wait for this time before a packet is due: less lateness for more CPU
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
    /// Longest time between samples of a flow for this project's controllers [default: 10ms; 1ms for policies, and for controllers that decide once per round trip; every
    /// acknowledgement if one of them holds packets back]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    backend_interval: Option<Span>,
    /// A run whose 99th percentile of lateness exceeds this is marked invalid
    #[arg(long, value_name = "MS", default_value = "2", value_parser = millis)]
    lateness_ms: Span,
    /// What carries the data: the kernel's TCP, or QUIC (noq or quinn, in this program)
    #[arg(long, value_enum, default_value_t = Over::Tcp)]
    over: Over,
    /// Program that sends bulk flows: this one, or iperf3
    #[arg(long, value_enum, default_value_t = Client::Own)]
    client: Client,
    /// File of the result; - is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
}

const NEEDS: &str = "\
Needs root, /dev/net/tun and iproute2; for this project's controllers Linux 6.4 with BTF, too.
`ackademyd lab run --help` has examples; docs/guide/lab.md has more.";

const RUN_EXAMPLES: &str = "\
Examples:
  ackademyd lab run data/scenarios/fair_share.toml --seed 1 --out result.json
  ackademyd lab run FILE --cc kernel:cubic          the kernel's own CUBIC for every flow
  ackademyd lab run FILE --cc rl_tcp --param alpha=0.2 --set dumbbell.rtt_ms=80 --sample-ms 50
  ackademyd lab run FILE --cc policy --param policy=data/policies/aurora_mixed
  ackademyd lab run FILE --client iperf3            bulk flows by iperf3, measured by itself
  ackademyd lab run FILE --over quic --cc cubic     over QUIC; also noq:cubic, quinn:cubic: theirs
  ackademyd lab run - --beside scenarios < FILE     the files that it names are in scenarios

The result is one JSON object; docs/guide/lab.md is its schema. It takes as long as the scenario lasts.";

const UP_EXAMPLES: &str = "\
Examples:
  ackademyd lab up data/scenarios/fair_share.toml        prints hosts, addresses, a first command
  ackademyd lab up FILE --set dumbbell.rtt_ms=80 --ipv6
  ackademyd lab down                                ends it from elsewhere";

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
            arguments.scenario.without_controller(up::NO_CONTROLLER)?;
            let network = arguments.scenario.network()?;
            up::up(&network, Seed(arguments.seed), arguments.family(), arguments.spin())
        }
        Command::Down => {
            say!("ended {}", namespace::end_others()?)?;
            clean()
        }
        Command::Clean => clean(),
    }
}

fn clean() -> Result<(), Error> {
    for name in namespace::clean()? {
        say!("removed {name}")?;
    }
    Ok(())
}

fn run_scenario(arguments: &RunArguments) -> Result<(), Error> {
    let network = arguments.up.scenario.network()?;
    let out = Output::new("--out", &arguments.out)?;
    let options = Options {
        seed: Seed(arguments.up.seed),
        family: arguments.up.family(),
        interval: arguments.backend_interval,
        spin: arguments.up.spin(),
        lateness_max: arguments.lateness_ms,
        client: arguments.client,
        over: arguments.over,
    };
    run::run(&network, &options)?.write(&out)
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
