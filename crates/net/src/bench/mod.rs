//! What a controller in user space costs: throughput beside the kernel's own CUBIC on a plain veth
//! pair, time per acknowledgement in BPF, time to a decision, memory; each peer measured in the same
//! run, turn by turn.
mod costs;
mod daemon;

use crate::command::run as command;
use crate::error::Error;
use crate::interrupt;
use crate::kernel::check::Machine;
use crate::kernel::compiled::Compiled;
use crate::kernel::compiled::ask::{Asked, Room};
use crate::lab::iperf3;
use crate::namespace::{Namespace, Owner};
use clap::Args;
use costs::{Programs, count_time, per};
use daemon::{Daemon, Process, Serve};
use serde_json::Value;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, id};
use std::thread::sleep;
use std::time::Duration;

/// Arguments of the command.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Turns of each side; medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Length of a turn, in seconds
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Controller of the daemon
    #[arg(long, default_value = "cubic")]
    cc: String,
    /// Setting of the controller, as NAME=VALUE; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// The controller decides in the kernel (`ackademyd kernel --in-kernel`)
    #[arg(long)]
    in_kernel: bool,
    /// Flows of the crowded run
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..=1000))]
    flows: u32,
    /// Another build of ackademyd to compare with: its daemon takes turns with this one's
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  ackademyd bench
  ackademyd bench --rounds 3 --cc rl-tcp
  ackademyd bench --cc tcp-drinc --param policy=data/policies/tcp_drinc --flows 20
  ackademyd bench --in-kernel --cc own-queue
  ackademyd bench --beside old/ackademyd           what a change does, in one run

Needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON) and iperf3. Everything happens in two
network namespaces that it makes and removes.";

/// Most streams of one iperf3.
const STREAMS_MAX: u32 = 100;
const PORT: u32 = 5201;

/// Measures and prints.
///
/// # Errors
///
/// One line for a person.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    Machine::here(None).require_root("bench")?;
    iperf3::check("bench")?;
    interrupt::watch();
    let bench = Bench::new()?;
    let mut own = serve(arguments, &own_path()?, "")?;
    let beside = arguments.beside.as_deref();
    let beside = beside.map(|program| serve(arguments, program, "b")).transpose()?;
    one_flow(&bench, arguments, &own, beside.as_ref())?;
    let single = own.status()?;
    crowd(&bench, arguments, &own, &single)?;
    if arguments.in_kernel {
        return decision();
    }
    say!("  memory of the daemon    {:7.2} MB", own.memory_mb()?)?;
    let (spent_us, samples) = (own.processor_us()?, count(&own.status()?, "samples"));
    say!("the daemon, over both")?;
    say!("  processor time          {:7.1} us a sample, of {samples}", per(spent_us, samples))?;
    for line in own.end()?.lines() {
        say!("  {}", line.trim_start_matches("ackademyd: "))?;
    }
    Ok(())
}

fn serve(arguments: &Arguments, program: &Path, suffix: &str) -> Result<Daemon, Error> {
    let name = format!("bench{}{suffix}", id());
    let (cc, params, in_kernel) = (&arguments.cc, &arguments.param, arguments.in_kernel);
    Daemon::start(&Serve { program, cc, params, in_kernel, name: &name })
}

/// What a network of every signal and two layers of 64 costs in the kernel: its time does not depend on its weights.
fn decision() -> Result<(), Error> {
    const SHAPE: [usize; 4] = [112, 64, 64, 2];
    const TURNS: usize = 20_000;
    let compiled = Compiled::of_shape(&SHAPE);
    let mut room = Room::new();
    let (programs, mut asked) = Programs::of(|| Asked::load(&mut room, &compiled))?;
    asked.outputs(&[0.5; SHAPE[0]])?;
    for _ in 0..TURNS {
        interrupt::check()?;
        asked.again()?;
    }
    let us = programs.time_ns("ask_network") / 1e3;
    let shape = SHAPE.map(|units| units.to_string()).join("-");
    say!("a network of {shape} in the kernel")?;
    say!("  decision                {us:7.2} us, mean of {TURNS} (target 5)")
}

/// One flow at a time, turn by turn.
fn one_flow(
    bench: &Bench,
    arguments: &Arguments,
    own: &Daemon,
    beside: Option<&Daemon>,
) -> Result<(), Error> {
    let (seconds, rounds) = (arguments.seconds, arguments.rounds);
    let peers: Vec<&Daemon> = [own].into_iter().chain(beside).collect();
    let mut kernel = Vec::new();
    let mut ours = vec![Vec::new(); peers.len()];
    bench.transfer("cubic", 1, 1)?; // Fills caches, so that the first measured flow has no disadvantage.
    for round in 1..=rounds {
        note!("round {round} of {rounds}: one flow, {seconds} s each");
        kernel.push(bench.transfer("cubic", seconds, 1)?);
        for (peer, rates) in peers.iter().zip(&mut ours) {
            rates.push(bench.transfer(&peer.name, seconds, 1)?);
        }
    }
    let kernel = median(kernel);
    say!("one flow over veth, medians of {rounds} turns of {seconds} s")?;
    say!("  kernel CUBIC            {kernel:7.2} Gb/s")?;
    for (index, (peer, rates)) in peers.into_iter().zip(ours).enumerate() {
        let whose = if index == 0 { "" } else { ", --beside" };
        let place = if arguments.in_kernel { "in the kernel" } else { "in user space" };
        let (label, rate) = (format!("{} {place}{whose}", arguments.cc), median(rates));
        say!("  {label:<23} {rate:7.2} Gb/s   ratio {:.3} (target 0.95)", rate / kernel)?;
        peer.programs.print()?;
        if !arguments.in_kernel {
            print_decisions(&peer.status()?)?;
        }
    }
    Ok(())
}

/// Many flows at a time.
fn crowd(bench: &Bench, arguments: &Arguments, own: &Daemon, before: &Value) -> Result<(), Error> {
    note!("{} flows, {} s", arguments.flows, arguments.seconds);
    let rate = bench.transfer(&own.name, arguments.seconds, arguments.flows)?;
    let after = own.status()?;
    let since = |what: &str| count(&after, what) - count(before, what);
    say!("{} flows at a time", arguments.flows)?;
    say!("  throughput              {rate:7.2} Gb/s")?;
    say!(
        "  sockets, decisions      {} {}; fallbacks {} (target 0), samples refused {}",
        since("opened"),
        since("decisions"),
        since("fallbacks"),
        since("refused")
    )
}

fn print_decisions(status: &Value) -> Result<(), Error> {
    let us = |quantile: &str| status["latency"][quantile].as_f64().unwrap_or(f64::NAN);
    say!(
        "  sample -> applied       {:7.0} us p50, {:.0} us p90, {:.0} us p99 (the wait for the next \
         acknowledgement included)",
        us("p50_us"),
        us("p90_us"),
        us("p99_us")
    )
}

/// A count over all flows of a daemon.
fn count(status: &Value, what: &str) -> u64 {
    status["counts"][what].as_u64().unwrap_or(0)
}

/// Two namespaces with a veth pair between them.
struct Bench {
    hosts: [Namespace; 2],
    _statistics: OwnedFd,
    /// Of the hosts' names; goes last.
    _owner: Owner,
}

impl Bench {
    fn new() -> Result<Self, Error> {
        let statistics = count_time()?;
        let owner = Owner::claim()?;
        let hosts = [owner.create("left")?, owner.create("right")?];
        let [left, right] = [hosts[0].name(), hosts[1].name()];
        let pair = ["link", "add", "veth0", "netns", left, "type", "veth", "peer", "veth0"];
        command("ip", &[&pair[..], &["netns", right]].concat())?;
        for (host, address) in [(left, "10.76.0.1/24"), (right, "10.76.0.2/24")] {
            command("ip", &["-n", host, "address", "add", address, "dev", "veth0"])?;
            command("ip", &["-n", host, "link", "set", "veth0", "up"])?;
        }
        Ok(Self { hosts, _statistics: statistics, _owner: owner })
    }

    /// Gb/s of `flows` bulk flows under a congestion control that the kernel knows as `name`.
    fn transfer(&self, name: &str, seconds: u32, flows: u32) -> Result<f64, Error> {
        let pairs = flows.div_ceil(STREAMS_MAX);
        let mut servers = Vec::new();
        for pair in 0..pairs {
            let port = (PORT + pair).to_string();
            let server = ["-s", "-1", "-p", &port];
            servers.push(Process(start_iperf3(&self.hosts[1], &server, Stdio::null())?));
        }
        sleep(Duration::from_millis(300));
        let mut clients = Vec::new();
        for pair in 0..pairs {
            let streams = (flows / pairs + u32::from(pair < flows % pairs)).to_string();
            let (port, time) = ((PORT + pair).to_string(), seconds.to_string());
            let arguments =
                ["-c", "10.76.0.2", "-p", &port, "-t", &time, "-P", &streams, "-C", name, "-J"];
            clients.push(Process(start_iperf3(&self.hosts[0], &arguments, Stdio::piped())?));
        }
        let mut rate = 0.0;
        for mut client in clients {
            let mut text = String::new();
            if let Some(mut out) = client.0.stdout.take() {
                out.read_to_string(&mut text).map_err(|error| failed("read iperf3", error))?;
            }
            interrupt::check()?;
            let report: Value =
                serde_json::from_str(&text).map_err(|error| failed("understand iperf3", error))?;
            let bits = &report["end"]["sum_received"]["bits_per_second"];
            rate += bits.as_f64().ok_or_else(|| {
                Error::System(format!("iperf3: {}", report["error"].as_str().unwrap_or(&text)))
            })?;
        }
        Ok(rate / 1e9)
    }
}

fn start_iperf3(host: &Namespace, arguments: &[&str], out: Stdio) -> Result<Child, Error> {
    let mut start = Command::new("ip");
    start.args(["netns", "exec", host.name(), "iperf3"]).args(arguments);
    start.stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
    start.spawn().map_err(|error| failed("start iperf3", error))
}

fn own_path() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|error| failed("find this program", error))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}

fn failed(what: &str, error: impl std::fmt::Display) -> Error {
    Error::System(format!("cannot {what}: {error}"))
}
