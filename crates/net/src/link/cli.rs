//! The command line: two namespaces, a link between them, and perhaps a program.
use super::delays::Delays;
use super::emulator::{Emulator, Options, Progress, Report};
use super::fabric::{BYTES_MAX, Fabric};
use super::options::LinkOptions;
use super::tun::{self, Port};
use crate::command::run as run_command;
use crate::error::Error;
use crate::interrupt;
use crate::namespace::{self, Namespace, Owner};
use crate::output::hint;
use ackademy::rng::Seed;
use ackademy::units::Span;
use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt::Write as _;
use std::io::{IsTerminal, stderr};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Arguments of the command.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    link: LinkOptions,
    /// Seed of every random draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Busy-wait for this many microseconds before a packet is due: less lateness, more CPU
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    spin_us: u64,
    /// Keep the thread's normal priority: less load on other programs, more lateness
    #[arg(long)]
    no_realtime: bool,
    /// Largest IP packet, in bytes
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=65_535))]
    mtu: u32,
    /// Existing network namespace at the left end [default: a new one, removed at the end]
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace::name)]
    left: Option<String>,
    /// Existing network namespace at the right end [default: a new one, removed at the end]
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace::name)]
    right: Option<String>,
    /// Program to run in the left namespace; the link ends with it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  ackademyd link --rate 12mbit --delay 40ms --queue 50p --loss 1%
  ackademyd link --rate 12mbit --rtt 80ms --queue 1bdp -- bash
  ackademyd link --trace down.trace --back-rate 2mbit --delay 20ms --queue codel
  ackademyd link --rate 50mbit --field 'reorder = { ratio = 0.01, low_ms = 1, high_ms = 5 }'

The ends are 10.77.0.1 and fd77::1 (left), 10.77.0.2 and fd77::2 (right), on device ackademy0.
Options without --back- say how packets go from left to right. docs/guide/link.md has more.";

const DEVICE: &str = "ackademy0";
/// Time between two status lines.
const STATUS_EVERY: Span = Span::from_millis(1000);
/// Time between two checks of the program and the signals.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time that a program has to end after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// One end of the link.
struct End {
    path: PathBuf,
    name: String,
    host: u16,
    /// Removes the namespace, if this command made it.
    _own: Option<Namespace>,
}

/// Runs the command.
///
/// # Errors
///
/// One line for a person.
pub fn run(arguments: Arguments) -> Result<(), Error> {
    let Arguments { link, seed, spin_us, no_realtime, mtu, left, right, command } = arguments;
    let network = link.network()?;
    if let (Some(left), true) = (&left, left == right) {
        return Err(Error::Input(format!(
            "--left {left} --right {left}: allowed are two namespaces, one for each end"
        )));
    }
    interrupt::watch();
    // Only what is made needs an owner, and root.
    let owner = (left.is_none() || right.is_none()).then(Owner::claim).transpose()?;
    let ends =
        [End::new(left, owner.as_ref(), "left", 1)?, End::new(right, owner.as_ref(), "right", 2)?];
    let mut fabric = Fabric::new(&network.links, Seed(seed), Span::ZERO);
    fabric.add_default(&network.connections[0].subflows[0]);
    let ports = ends.iter().map(|end| end.open(mtu)).collect::<Result<Vec<_>, Error>>()?;
    let spin = Span::from_micros(spin_us);
    let options = Options { epoch: None, spin, realtime: !no_realtime };
    let emulator = Emulator::new(ports, fabric, options);
    if command.is_empty() {
        ends.iter().for_each(End::introduce);
        note!("Ctrl-C ends the link.");
    }
    let program = start(&command, &ends[0].path)?;
    let (report, ended) = attend(emulator, program)?;
    hint(format_args!("{}", summary(&report)));
    if !command.is_empty() {
        interrupt::check()?;
    }
    ended
}

impl End {
    /// In the namespace of this name, or in a new one of the owner.
    fn new(
        name: Option<String>,
        owner: Option<&Owner>,
        side: &str,
        host: u16,
    ) -> Result<Self, Error> {
        if let Some(name) = name {
            return Ok(Self { path: namespace::path_of(&name), name, host, _own: None });
        }
        let own = owner.expect("claimed for every end without a name").create(side)?;
        run_command("ip", &["-n", own.name(), "link", "set", "lo", "up"])?;
        Ok(Self { path: own.path(), name: own.name().to_owned(), host, _own: Some(own) })
    }

    fn addresses(&self) -> [IpAddr; 2] {
        [[10, 77, 0, self.host as u8].into(), [0xfd77, 0, 0, 0, 0, 0, 0, self.host].into()]
    }

    fn open(&self, mtu: u32) -> Result<Port, Error> {
        let [v4, v6] = self.addresses();
        tun::open(&tun::Plan {
            namespace: self.path.clone(),
            device: DEVICE.to_owned(),
            addresses: vec![(v4, 24), (v6, 64)],
            mtu,
        })
    }

    /// Prints how to enter it.
    fn introduce(&self) {
        let [v4, v6] = self.addresses();
        note!("{v4} {v6}   ip netns exec {} bash", self.name);
    }
}

/// Starts the program, if there is one, inside a namespace.
fn start(command: &[String], namespace: &Path) -> Result<Option<Child>, Error> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    namespace::within(namespace, || {
        let child = Command::new(program).args(arguments).spawn();
        let child = child.map_err(|error| Error::Input(format!("{program}: {error}")))?;
        Ok(Some(child))
    })
}

/// Runs the emulator until a signal, the end of the program, or its own; returns how the program
/// ended too.
fn attend(
    emulator: Emulator,
    mut program: Option<Child>,
) -> Result<(Report, Result<(), Error>), Error> {
    let stop = AtomicBool::new(false);
    let shows = program.is_none() && stderr().is_terminal();
    let every = if shows { STATUS_EVERY } else { Span::MAX };
    let (send, lines) = channel();
    thread::scope(|scope| {
        let stop = &stop;
        let emulator = scope.spawn(move || {
            let mut before = [0; 2];
            emulator.run_observed(stop, every, &mut |progress| {
                let _ = send.send(status(progress, &mut before));
            })
        });
        let mut ended = Ok(());
        while !interrupt::came() {
            match lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => hint(format_args!("\r{line}\x1b[K")), // over the line before
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break, // the emulator gave up
            }
            if let Some(status) = program.as_mut().and_then(|child| child.try_wait().transpose()) {
                ended = success(status);
                program = None;
                break;
            }
        }
        if let Some(child) = program {
            end_program(child);
        }
        stop.store(true, Ordering::Relaxed);
        if shows {
            note!("");
        }
        let report = emulator.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((report, ended))
    })
}

fn success(status: std::io::Result<std::process::ExitStatus>) -> Result<(), Error> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::System(format!("the command ended with {status}"))),
        Err(error) => Err(Error::System(format!("the command: {error}"))),
    }
}

/// Ends a program: by SIGTERM, then by SIGKILL.
fn end_program(mut child: Child) {
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
    let looks = GRACE.as_millis() / LOOK_EVERY.as_millis();
    for _ in 0..looks {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(LOOK_EVERY);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Rate, queue and drops of both directions, and lateness.
fn status(progress: &mut Progress, before: &mut [u64; 2]) -> String {
    let mut line = String::new();
    for (link, arrow, port) in [(0, "->", 1), (1, "<-", 0)] {
        let bytes = progress.delivered[port] - before[link];
        before[link] = progress.delivered[port];
        let mbps = bytes as f64 * 8e-6 / STATUS_EVERY.as_secs_f64();
        let (stats, (packets, _)) = progress.fabric.link(link);
        let lost = stats.queue_drops + stats.random_losses;
        let _ = write!(line, "{arrow} {mbps:7.2} Mb/s, queue {packets:4} p, lost {lost:5}   ");
    }
    let _ = write!(line, "late p99 {:.0} us", micros(progress.lateness.quantile(0.99)));
    line
}

/// Counts of the links, and lateness.
fn summary(report: &Report) -> String {
    let mut text = String::new();
    for link in &report.network.links {
        let mbps = |bytes: u64| bytes as f64 * 8e-6 / report.elapsed.as_secs_f64();
        let _ = writeln!(
            text,
            "{:6} {} packets in, {} out ({:.3} Mb/s, {:.1} % of what it could carry), {} dropped, \
             {} lost, {} marked, {:.3} ms mean wait",
            link.link,
            link.arrived_packets,
            link.delivered_packets,
            mbps(link.delivered_bytes),
            link.delivered_bytes as f64 * 100.0 / link.capacity_bytes.max(1) as f64,
            link.queue_drops,
            link.random_losses,
            link.marked_packets,
            if link.wait_mean_ms.is_nan() { 0.0 } else { link.wait_mean_ms },
        );
    }
    let priority = if report.realtime { "real-time priority" } else { "ordinary priority" };
    let _ = writeln!(text, "late   {} ({priority})", quantiles(&report.lateness));
    if report.missed > 0 {
        let _ = writeln!(text, "       {} packets lost: the machine was too slow", report.missed);
    }
    if report.network.refused > 0 {
        let max = BYTES_MAX.0 >> 20;
        let _ = writeln!(
            text,
            "       {} packets lost: the link held {max} MiB",
            report.network.refused
        );
    }
    text
}

fn quantiles(lateness: &Delays) -> String {
    let at = |ratio| micros(lateness.quantile(ratio));
    let max = micros(lateness.max());
    format!("p50 {:.1}, p99 {:.1}, p99.9 {:.1}, max {max:.1} us", at(0.5), at(0.99), at(0.999))
}

fn micros(span: Span) -> f64 {
    span.0 as f64 / 1e3
}
