//! The command line.
use super::check::Machine;
use super::compiled::{self, Compiled};
use super::release::{Released, release, remove};
use super::scheme::OneForAll;
use super::status::Status;
use super::{Agent, NAME_MAX, Options, Registered, may_pace, usual_interval};
use crate::error::Error;
use crate::files;
use crate::interrupt;
use crate::link::delays::Delays;
use ackademy::controllers::own_queue;
use ackademy::coupled;
use ackademy::params::ParamValue;
use ackademy::policy::Policy;
use ackademy::scheme::{Entry, Scheme};
use ackademy::units::Span;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Arguments of the command.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Args, Debug)]
struct Serve {
    /// Controller of every flow, plain or coupled (for MPTCP); `-` and `_` are equal in its name
    #[arg(long, default_value = "new_reno")]
    cc: String,
    /// Setting of the controller; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    param: Vec<(String, ParamValue)>,
    /// Longest time between samples of a flow; an eighth of its smallest round trip if that is shorter [default:
    /// 10ms; 1ms for a policy, and for a controller that decides once per round trip; 0ms, every acknowledgement, for a controller that holds packets back]
    #[arg(long, value_name = "TIME", value_parser = span)]
    interval: Option<Span>,
    /// A flow whose sample waits longer for its answer, and longer than four intervals, falls back
    /// to CUBIC
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "150ms")]
    watchdog: Span,
    #[command(flatten)]
    place: Place,
    /// Pin nothing: the name ends with this process, open flows continue under CUBIC
    #[arg(long, conflicts_with = "pins")]
    ephemeral: bool,
    /// Keep the pins ready for a controller that sets a rate, so that the next daemon may serve one
    /// [default: only if --cc may set one]
    #[arg(long)]
    paced: bool,
    /// Compile `own_queue`, or a policy over it, into the kernel: decisions are made on the acknowledgement, and
    /// this process ends as soon as it has registered (with --ephemeral, when it is stopped)
    #[arg(long, conflicts_with_all = ["interval", "paced"])]
    in_kernel: bool,
    /// Largest number of flows at a time; others stay under CUBIC. Each takes 252 bytes of the kernel, open or not
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 19), default_value_t = 4096)]
    slots: u32,
}

/// Which congestion control.
#[derive(Args, Debug)]
struct Place {
    /// Name that programs give to `TCP_CONGESTION`, the same in all network namespaces
    #[arg(long, value_parser = name, default_value = "ackademy")]
    name: String,
    /// Folder of a BPF file system that link and maps are pinned in [default: /sys/fs/bpf/NAME]
    #[arg(long, value_name = "DIR")]
    pins: Option<PathBuf>,
}

impl Place {
    fn folder(&self) -> PathBuf {
        self.pins.clone().unwrap_or_else(|| Path::new("/sys/fs/bpf").join(&self.name))
    }
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show what is served and every flow; needs no daemon, and exits with 3 if there is none and flows are under CUBIC
    Status {
        #[command(flatten)]
        place: Place,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Repeat every second
        #[arg(long)]
        watch: bool,
    },
    /// Move live flows to a congestion control of the kernel; the name stays
    Release {
        #[command(flatten)]
        heir: Heir,
    },
    /// Release, unpin and unregister
    Remove {
        #[command(flatten)]
        heir: Heir,
    },
}

#[derive(Args, Debug)]
struct Heir {
    #[command(flatten)]
    place: Place,
    /// Congestion control of the kernel that the flows get
    #[arg(long, default_value = "cubic")]
    cc: String,
}

const EXAMPLES: &str = "\
Examples:
  ackademyd kernel --cc rl-tcp                      serve RL-TCP as `ackademy`
  ackademyd kernel --cc new-reno --param half_of=window --name reno2 --ephemeral
  ackademyd kernel --cc lia                         the subflows of each MPTCP connection together
  ackademyd kernel --in-kernel --cc own-queue       no daemon: decided on the acknowledgement
  ackademyd kernel status --watch                   its flows
  ackademyd kernel remove                           hand them to the kernel's CUBIC and be gone
  iperf3 -c HOST -C ackademy                        a program that asks for it
  ip route change default via GATEWAY congctl ackademy

It is experimental: select it per socket or per route, as above, not as the system's default.
CAP_BPF and CAP_PERFMON are needed, and Linux 6.4. docs/guide/deploy.md has more.";

/// How often a process with nothing to do looks whether it is to stop.
const NAP: Duration = Duration::from_millis(100);
const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// Runs the command.
///
/// # Errors
///
/// One line for a person.
pub fn run(arguments: Arguments) -> Result<(), Error> {
    match arguments.command {
        None => serve(arguments.serve),
        Some(Command::Status { place, json, watch }) => loop {
            let status = show(&place.folder(), json)?;
            if !watch {
                return if status.served { Ok(()) } else { Err(Error::Unserved(status.name)) };
            }
            sleep(WATCH_PERIOD);
        },
        Some(Command::Release { heir }) => {
            report(&release(&heir.place.folder(), &heir.cc)?, &heir.cc)
        }
        Some(Command::Remove { heir }) => {
            let folder = heir.place.folder();
            match remove(&folder, &heir.place.name, &heir.cc)? {
                Some(released) => report(&released, &heir.cc),
                None => say!("nothing is pinned in `{}`", folder.display()),
            }
        }
    }
}

fn show(folder: &Path, json: bool) -> Result<Status, Error> {
    let status = Status::read(folder)?;
    if json {
        let text = serde_json::to_string(&status).expect("numbers and words are JSON");
        say!("{text}")?;
    } else {
        say!("{status}")?;
    }
    Ok(status)
}

fn report(released: &Released, heir: &str) -> Result<(), Error> {
    let Released { flows, listeners, refused, unreachable, defaults, .. } = released;
    say!("{flows} flows and {listeners} listening sockets handed to `{heir}`")?;
    if *refused > 0 {
        say!("{refused} sockets refused it")?;
    }
    for (namespace, left) in unreachable {
        say!(
            "{left} flows left in network namespace {namespace}, which cannot be entered: they go on \
             under CUBIC inside BPF until they close"
        )?;
    }
    for namespace in defaults {
        say!(
            "new connections of network namespace {namespace} still start with it: set \
             net.ipv4.tcp_congestion_control there"
        )?;
    }
    Ok(())
}

fn serve(arguments: Serve) -> Result<(), Error> {
    let entry = Entry::find(&arguments.cc.replace('-', "_")).ok_or_else(|| {
        let (given, known) = (&arguments.cc, coupled::all_names());
        Error::Input(format!("--cc {given}: no such controller; known: {known}"))
    })?;
    let mut load = |name: &str, bytes_max| files::read(Path::new(name), bytes_max);
    let scheme = Scheme::open(entry, &arguments.param, &mut load)
        .map_err(|error| Error::Input(format!("--param of {}: {error}", entry.name())))?;
    if let Entry::Coupled(spec) = entry {
        Machine::here(None).require_mptcp(spec.name, spec.single)?;
    }
    let options = Options {
        pins: (!arguments.ephemeral).then(|| arguments.place.folder()),
        name: arguments.place.name,
        interval: arguments
            .interval
            .unwrap_or_else(|| usual_interval(entry.params(), scheme.build())),
        watchdog: arguments.watchdog,
        slots: arguments.slots,
        paced: arguments.paced || arguments.in_kernel || may_pace(entry.params(), scheme.build()),
        in_kernel: arguments.in_kernel.then(|| compile(&scheme)).transpose()?,
    };
    let stop = interrupt::watch();
    if options.pins.is_some() {
        interrupt::outlive_hangup();
    }
    if options.in_kernel.is_some() {
        return in_kernel(&options, entry, stop);
    }
    let mut agent = Agent::start(&options, Box::new(OneForAll { scheme }))?;
    note!(
        "ackademyd: congestion control `{}` is {}; samples at most every {} ms, CUBIC after {} ms \
         without an answer, {} flows at most",
        options.name,
        entry.name(),
        options.interval.as_millis_f64(),
        options.watchdog.as_millis_f64(),
        options.slots
    );
    agent.run(stop)?;
    let (counts, response_times, inference_times) =
        (agent.totals().counts, agent.response_times(), agent.inference_times());
    note!(
        "ackademyd: {} flows, {} decisions, {} falls to CUBIC; answers after p50 {} us, p99 {} us",
        counts.opened,
        counts.decisions,
        counts.fallbacks,
        response_times.quantile(0.5).0 / 1000,
        response_times.quantile(0.99).0 / 1000
    );
    if inference_times.total() > 0 {
        note!(
            "ackademyd: {} decisions of policies, {} flows fell back for want of one; processor time \
             {}; answered after {}",
            inference_times.total(),
            counts.policy_fallbacks,
            quantiles(inference_times),
            quantiles(agent.policy_response_times())
        );
    }
    Ok(())
}

/// What of a controller the kernel evaluates by itself.
fn compile(scheme: &Scheme) -> Result<Arc<Compiled>, Error> {
    let refused = |why: String| Error::Input(format!("--in-kernel: {why}"));
    let compiled = match scheme.entry.name() {
        "own_queue" => {
            let settings = own_queue::settings(&scheme.params);
            compiled::check_exponent(settings.exponent).map_err(refused)?;
            Compiled::law(&settings)
        }
        "policy" => {
            let policy: Arc<Policy> = scheme.params.file("policy");
            Compiled::policy(&policy).map_err(refused)?
        }
        other => {
            let known = "the kernel evaluates `own_queue` and `policy`";
            return Err(refused(format!("--cc {other}: {known}")));
        }
    };
    Ok(Arc::new(compiled))
}

/// Registers what decides in the kernel; it stays when this process ends, unless it is ephemeral.
fn in_kernel(options: &Options, entry: Entry, stop: &AtomicBool) -> Result<(), Error> {
    let registered = Registered::start(options)?;
    note!(
        "ackademyd: congestion control `{}` is {}, decided in the kernel; {} flows at most",
        options.name,
        entry.name(),
        options.slots
    );
    if options.pins.is_some() {
        return Ok(());
    }
    while !stop.load(Ordering::Relaxed) {
        sleep(NAP);
    }
    let counts = registered.totals().counts;
    note!(
        "ackademyd: {} flows, {} decisions, {} falls to CUBIC",
        counts.opened,
        counts.decisions,
        counts.fallbacks
    );
    Ok(())
}

fn quantiles(measured: &Delays) -> String {
    let us = |ratio| measured.quantile(ratio).0 as f64 / 1e3;
    format!("p50 {:.1} us, p90 {:.1} us, p99 {:.1} us", us(0.5), us(0.9), us(0.99))
}

/// A setting of a controller, NAME=VALUE.
///
/// # Errors
///
/// What is wanted.
pub fn setting(text: &str) -> Result<(String, ParamValue), String> {
    let (name, value) = text.split_once('=').ok_or("wanted is NAME=VALUE")?;
    let value = match value {
        "true" => ParamValue::Number(1.0),
        "false" => ParamValue::Number(0.0),
        _ => value.parse().map_or_else(|_| ParamValue::Word(value.to_owned()), ParamValue::Number),
    };
    Ok((name.to_owned(), value))
}

fn span(text: &str) -> Result<Span, String> {
    let refused = || "wanted is a time from 0 to 60 s, such as 500us, 10ms or 1s".to_owned();
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refused)?;
    let (number, unit) = text.split_at(unit);
    let unit_s = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(refused()),
    };
    let secs = number.parse::<f64>().map_err(|_| refused())? * unit_s;
    if (0.0..=60.0).contains(&secs) { Ok(Span::from_secs_f64(secs)) } else { Err(refused()) }
}

/// A congestion control's name is also that of the folder it is pinned in.
fn name(text: &str) -> Result<String, String> {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if text.bytes().all(allowed) && (1..=NAME_MAX).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(format!("allowed are 1 to {NAME_MAX} of a-z, 0-9, `_` and `-`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(span("10ms"), Ok(Span::from_millis(10)));
        assert_eq!(span("0.5s"), Ok(Span::from_millis(500)));
        assert_eq!(span("0us"), Ok(Span::ZERO));
        for wrong in ["10", "ms", "-1ms", "61s", "1h", "nanms"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_are_numbers_truths_or_words() {
        let value = |text| setting(text).map(|(_, value)| value);
        assert_eq!(value("x=1e3"), Ok(ParamValue::Number(1000.0)));
        assert_eq!(value("x=true"), Ok(ParamValue::Number(1.0)));
        assert_eq!(value("x=flight"), Ok(ParamValue::Word("flight".to_owned())));
        assert!(setting("x").is_err());
    }

    #[test]
    fn a_name_fits_into_the_kernel_and_names_a_folder_in_its_parent() {
        assert!(name("a-23456789_b345").is_ok());
        for wrong in ["", "a234567890123456", "a/b", "a b", ".", "..", "a.b", "../x", "Reno"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }
}
