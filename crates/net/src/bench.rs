//! What a controller in user space costs: throughput beside the kernel's own CUBIC on a plain veth
//! pair, time per acknowledgement in BPF, time to a decision, memory; each peer measured in the same
//! run, turn by turn.
use crate::clock;
use crate::command::run as command;
use crate::error::Error;
use crate::interrupt;
use crate::kernel::status::Status;
use crate::namespace::{Namespace, Owner};
use ackademy::units::Span;
use clap::Args;
use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio, id};
use std::thread::sleep;
use std::time::Duration;

/// Arguments of the command.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Turns of each peer; medians are printed
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
    /// Flows of the crowded run
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..=1000))]
    flows: u32,
}

const EXAMPLES: &str = "\
Examples:
  ackademyd bench
  ackademyd bench --rounds 3 --cc rl-tcp
  ackademyd bench --cc tcp-drinc --param policy=policies/tcp_drinc --flows 20

Needs root, and iperf3. Everything happens in two network namespaces that it makes and removes.";

/// Longest wait for the daemon to offer its name.
const START: Span = Span::from_millis(5000);
/// Most streams of one iperf3.
const STREAMS_MAX: u32 = 100;
const PORT: u32 = 5201;

/// Measures and prints.
///
/// # Errors
///
/// One line for a person.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    interrupt::watch();
    let mut bench = Bench::new(&arguments.cc, &arguments.param)?;
    let (mut kernel, mut ours) = (Vec::new(), Vec::new());
    let seconds = arguments.seconds;
    bench.transfer("cubic", 1, 1)?; // Fills caches for whoever is first.
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}: one flow, {seconds} s each", arguments.rounds);
        kernel.push(bench.transfer("cubic", seconds, 1)?);
        ours.push(bench.transfer(&bench.name, seconds, 1)?);
    }
    let single = bench.status()?;
    let (kernel, ours) = (median(kernel), median(ours));
    println!("one flow over veth, medians of {} turns of {seconds} s", arguments.rounds);
    println!("  kernel CUBIC            {kernel:7.2} Gb/s");
    println!("  {:<23} {ours:7.2} Gb/s   ratio {:.3} (target 0.95)", bench.label(), ours / kernel);
    bench.print_costs();
    print_decisions(&single);

    eprintln!("{} flows, {seconds} s", arguments.flows);
    let crowd = bench.transfer(&bench.name, seconds, arguments.flows)?;
    let after = bench.status()?;
    let since = |count: fn(&Status) -> u64| count(&after) - count(&single);
    println!("{} flows at a time", arguments.flows);
    println!("  throughput              {crowd:7.2} Gb/s");
    println!(
        "  sockets, decisions      {} {}; fallbacks {} (target 0), samples refused {}",
        since(|status| status.counts.opened),
        since(|status| status.counts.decisions),
        since(|status| status.counts.fallbacks),
        since(|status| status.counts.refused)
    );
    println!("  memory of the daemon    {:7.2} MB", bench.daemon.memory_mb()?);
    let (spent_us, samples) = (bench.daemon.processor_us()?, after.counts.samples);
    println!("the daemon, over both");
    println!("  processor time          {:7.1} us a sample, of {samples}", per(spent_us, samples));
    for line in bench.daemon.end()?.lines() {
        println!("  {}", line.trim_start_matches("ackademyd: "));
    }
    Ok(())
}

/// Two namespaces with a veth pair between them, and a daemon.
struct Bench {
    daemon: Daemon,
    hosts: [Namespace; 2],
    name: String,
    cc: String,
    /// Newest BPF program that was there before ours.
    others: u32,
    _statistics: OwnedFd,
    /// Of the hosts' names; goes last.
    _owner: Owner,
}

impl Bench {
    fn new(cc: &str, params: &[String]) -> Result<Self, Error> {
        let statistics = count_time()?;
        let others = programs().map(|program| program.id).max().unwrap_or(0);
        let name = format!("bench{}", id());
        let owner = Owner::claim()?;
        let hosts = [owner.create("left")?, owner.create("right")?];
        let [left, right] = [hosts[0].name(), hosts[1].name()];
        let pair = ["link", "add", "veth0", "netns", left, "type", "veth", "peer", "veth0"];
        command("ip", &[&pair[..], &["netns", right]].concat())?;
        for (host, address) in [(left, "10.76.0.1/24"), (right, "10.76.0.2/24")] {
            command("ip", &["-n", host, "address", "add", address, "dev", "veth0"])?;
            command("ip", &["-n", host, "link", "set", "veth0", "up"])?;
        }
        let daemon = Daemon::start(cc, params, &name)?;
        let cc = cc.to_owned();
        Ok(Self { daemon, hosts, name, cc, others, _statistics: statistics, _owner: owner })
    }

    fn label(&self) -> String {
        format!("{} in user space", self.cc)
    }

    /// Gb/s of `flows` bulk flows under a congestion control that the kernel knows as `name`.
    fn transfer(&self, name: &str, seconds: u32, flows: u32) -> Result<f64, Error> {
        let pairs = flows.div_ceil(STREAMS_MAX);
        let mut servers = Vec::new();
        for pair in 0..pairs {
            let port = (PORT + pair).to_string();
            let server = ["-s", "-1", "-p", &port];
            servers.push(Process(iperf3(&self.hosts[1], &server, Stdio::null())?));
        }
        sleep(Duration::from_millis(300));
        let mut clients = Vec::new();
        for pair in 0..pairs {
            let streams = (flows / pairs + u32::from(pair < flows % pairs)).to_string();
            let (port, time) = ((PORT + pair).to_string(), seconds.to_string());
            let arguments =
                ["-c", "10.76.0.2", "-p", &port, "-t", &time, "-P", &streams, "-C", name, "-J"];
            clients.push(Process(iperf3(&self.hosts[0], &arguments, Stdio::piped())?));
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

    fn status(&self) -> Result<Status, Error> {
        Status::read(&self.daemon.pins)
    }

    /// Time per call of each BPF program that has run since the daemon started.
    fn print_costs(&self) {
        let mut ours: Vec<ProgramInfo> =
            programs().filter(|program| program.id > self.others && program.run_cnt > 0).collect();
        ours.sort_by_key(|program| std::cmp::Reverse(program.run_time_ns));
        let acks = ours
            .iter()
            .find(|program| program.name.to_string_lossy().starts_with("cong_control"))
            .map_or(0, |program| program.run_cnt);
        let all: u64 = ours.iter().map(|program| program.run_time_ns).sum();
        println!("  BPF, per acknowledgement{:7.0} ns      over {acks}", per(all, acks));
        for program in ours {
            let name = program.name.to_string_lossy();
            let each = per(program.run_time_ns, program.run_cnt);
            println!("    {name:<21} {each:7.0} ns      each of {}", program.run_cnt);
        }
    }
}

fn print_decisions(status: &Status) {
    println!(
        "  sample -> applied       {:7.0} us p50, {:.0} us p90, {:.0} us p99 (the wait for the next \
         acknowledgement included)",
        status.latency.p50_us, status.latency.p90_us, status.latency.p99_us
    );
}

/// A daemon of the bench's own; ended, and its pins removed, when dropped.
struct Daemon {
    process: Process,
    pins: PathBuf,
    _files: BpfFiles,
}

impl Daemon {
    fn start(cc: &str, params: &[String], name: &str) -> Result<Self, Error> {
        let files = BpfFiles::mount(name)?;
        let pins = files.folder.join("pins");
        let mut serve = Command::new(own_path()?);
        serve.args(["kernel", "--cc", cc, "--name", name, "--pins"]).arg(&pins);
        serve.args(params.iter().flat_map(|param| ["--param", param]));
        let process = serve.stderr(Stdio::piped()).spawn();
        let process = Process(process.map_err(|error| failed("start the daemon", error))?);
        let mut daemon = Self { process, pins, _files: files };
        let since = clock::now();
        while !fs::read_to_string(AVAILABLE)
            .unwrap_or_default()
            .split(' ')
            .any(|one| one.trim() == name)
        {
            let ended = daemon.process.0.try_wait().is_ok_and(|status| status.is_some());
            if ended || clock::now().since(since) > START {
                return Err(daemon.complaint());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(daemon)
    }

    fn complaint(&mut self) -> Error {
        let _ = self.process.0.kill();
        let mut text = String::new();
        if let Some(mut out) = self.process.0.stderr.take() {
            let _ = out.read_to_string(&mut text);
        }
        let line = text.lines().last().unwrap_or("it did not start");
        Error::System(line.trim_start_matches("ackademyd: ").to_owned())
    }

    /// Ends it, for what it says then: how long answers took, and what a policy's decisions cost.
    fn end(&mut self) -> Result<String, Error> {
        let process = Pid::from_raw(self.process.0.id().cast_signed());
        kill(process, Signal::SIGTERM).map_err(|error| failed("end the daemon", error))?;
        let mut said = String::new();
        if let Some(mut out) = self.process.0.stderr.take() {
            out.read_to_string(&mut said).map_err(|error| failed("hear the daemon", error))?;
        }
        // The first line says what it serves.
        Ok(said.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned()))
    }

    /// Processor time that it has had, in microseconds.
    fn processor_us(&self) -> Result<u64, Error> {
        let process = Pid::from_raw(self.process.0.id().cast_signed());
        let spent = clock_getcpuclockid(process).and_then(clock_gettime);
        let spent = spent.map_err(|error| failed("read the daemon's time", error))?;
        Ok(Duration::from(spent).as_micros() as u64)
    }

    /// Resident memory.
    fn memory_mb(&self) -> Result<f64, Error> {
        let path = format!("/proc/{}/status", self.process.0.id());
        let text = fs::read_to_string(path).map_err(|error| failed("look at the daemon", error))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
        kib.map(|kib| kib * 1024.0 / 1e6).ok_or_else(|| failed("read the daemon's memory", "VmRSS"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let removal = own_path().and_then(|program| {
            let mut remove = Command::new(program);
            remove.args(["kernel", "remove", "--pins"]).arg(&self.pins).stderr(Stdio::null());
            let _ = self.process.0.kill();
            let _ = self.process.0.wait();
            remove.output().map_err(|error| failed("remove the pins", error))
        });
        if let Err(error) = removal {
            eprintln!("ackademyd: {error}");
        }
    }
}

/// A BPF file system of our own, whether the machine has one or not.
struct BpfFiles {
    folder: PathBuf,
}

impl BpfFiles {
    fn mount(name: &str) -> Result<Self, Error> {
        let folder = std::env::temp_dir().join(format!("ackademyd-{name}"));
        fs::create_dir(&folder).map_err(|error| failed("make a folder for pins", error))?;
        let made = Self { folder };
        command("mount", &["-t", "bpf", "bpf", &made.folder.to_string_lossy()])?;
        Ok(made)
    }
}

impl Drop for BpfFiles {
    fn drop(&mut self) {
        let _ = command("umount", &[&self.folder.to_string_lossy()]);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A child that does not outlive this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Congestion controls that the kernel knows.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

fn iperf3(host: &Namespace, arguments: &[&str], out: Stdio) -> Result<Child, Error> {
    let mut start = Command::new("ip");
    start.args(["netns", "exec", host.name(), "iperf3"]).args(arguments);
    start.stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
    start.spawn().map_err(|error| failed("start iperf3", error))
}

fn own_path() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|error| failed("find this program", error))
}

/// Has the kernel count calls and time of BPF programs until the descriptor is closed.
fn count_time() -> Result<OwnedFd, Error> {
    // SAFETY: a system call without pointers; the descriptor is ours.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if descriptor < 0 {
        let error = std::io::Error::from_raw_os_error(-descriptor);
        return Err(failed("have the kernel time BPF programs", error));
    }
    // SAFETY: just opened, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn programs() -> impl Iterator<Item = ProgramInfo> {
    ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default())
}

fn per(total: u64, count: u64) -> f64 {
    if count == 0 { f64::NAN } else { total as f64 / count as f64 }
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
