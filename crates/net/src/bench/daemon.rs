//! The daemon of the bench, in a separate BPF file system.
use super::costs::Programs;
use super::failed;
use crate::clock;
use crate::command::run as command;
use crate::error::Error;
use ackademy::units::Span;
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// What a daemon serves.
pub(super) struct Serve<'a> {
    /// Of `ackademyd`.
    pub program: &'a Path,
    /// Controller, and its settings.
    pub cc: &'a str,
    pub params: &'a [String],
    /// The controller decides in the kernel; the process ends at once.
    pub in_kernel: bool,
    /// What the kernel knows it as.
    pub name: &'a str,
}

/// A daemon; ended, and its pins removed, when dropped.
pub(super) struct Daemon {
    /// What the kernel knows its congestion control as.
    pub name: String,
    /// Its BPF programs.
    pub programs: Programs,
    program: PathBuf,
    process: Process,
    pins: PathBuf,
    _files: BpfFiles,
}

impl Daemon {
    /// Serves from when this returns on.
    pub fn start(serve: &Serve) -> Result<Self, Error> {
        let files = BpfFiles::mount(serve.name)?;
        let pins = files.folder.join("pins");
        let mut words = Command::new(serve.program);
        words.args(["kernel", "--cc", serve.cc, "--name", serve.name, "--pins"]).arg(&pins);
        words.args(serve.params.iter().flat_map(|param| ["--param", param]));
        if serve.in_kernel {
            words.arg("--in-kernel");
        }
        let start = || {
            let process = words.stderr(Stdio::piped()).spawn();
            let process = process.map_err(|error| failed("start the daemon", error))?;
            await_name(serve.name, Process(process))
        };
        let (programs, process) = Programs::of(start)?;
        let (name, program) = (serve.name.to_owned(), serve.program.to_owned());
        Ok(Self { name, programs, program, process, pins, _files: files })
    }

    /// What `kernel status` says.
    pub fn status(&self) -> Result<Value, Error> {
        let mut ask = Command::new(&self.program);
        ask.args(["kernel", "status", "--json", "--pins"]).arg(&self.pins);
        let said = ask.output().map_err(|error| failed("ask for the status", error))?;
        serde_json::from_slice(&said.stdout)
            .map_err(|_| failed("ask for the status", String::from_utf8_lossy(&said.stderr).trim()))
    }

    /// Ends it, for what it says then: how long answers took, and what a policy's decisions cost.
    pub fn end(&mut self) -> Result<String, Error> {
        kill(self.pid(), Signal::SIGTERM).map_err(|error| failed("end the daemon", error))?;
        let mut said = String::new();
        if let Some(mut out) = self.process.0.stderr.take() {
            out.read_to_string(&mut said)
                .map_err(|error| failed("read what the daemon prints", error))?;
        }
        // The first line says what it serves.
        Ok(said.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned()))
    }

    /// Processor time that it has had, in microseconds.
    pub fn processor_us(&self) -> Result<u64, Error> {
        let spent = clock_getcpuclockid(self.pid()).and_then(clock_gettime);
        let spent = spent.map_err(|error| failed("read the daemon's time", error))?;
        Ok(Duration::from(spent).as_micros() as u64)
    }

    /// Resident memory.
    pub fn memory_mb(&self) -> Result<f64, Error> {
        let path = format!("/proc/{}/status", self.process.0.id());
        let text = fs::read_to_string(path).map_err(|error| failed("look at the daemon", error))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
        kib.map(|kib| kib * 1024.0 / 1e6).ok_or_else(|| failed("read the daemon's memory", "VmRSS"))
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.process.0.id().cast_signed())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.0.kill();
        let _ = self.process.0.wait();
        let mut remove = Command::new(&self.program);
        remove.args(["kernel", "remove", "--pins"]).arg(&self.pins).stderr(Stdio::null());
        if let Err(error) = remove.output() {
            note!("ackademyd: {}", failed("remove the pins", error));
        }
    }
}

/// Waits until the kernel has a congestion control of this name.
fn await_name(name: &str, mut daemon: Process) -> Result<Process, Error> {
    let since = clock::now();
    let known = || fs::read_to_string(AVAILABLE).unwrap_or_default();
    while !known().split_whitespace().any(|one| one == name) {
        let ended = daemon.0.try_wait().is_ok_and(|status| status.is_some());
        if ended || clock::now().since(since) > START {
            return Err(complaint(daemon));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(daemon)
}

/// Why it did not start; what the user can fix there, the user can fix here.
fn complaint(mut daemon: Process) -> Error {
    let _ = daemon.0.kill();
    let mut text = String::new();
    if let Some(mut out) = daemon.0.stderr.take() {
        let _ = out.read_to_string(&mut text);
    }
    let line = text.lines().last().unwrap_or("the daemon did not start");
    let line = line.trim_start_matches("ackademyd: ").to_owned();
    match daemon.0.wait().map(|status| status.code()) {
        Ok(Some(2)) => Error::Input(line),
        _ => Error::System(line),
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
pub(super) struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Congestion controls that the kernel knows.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Longest wait for the daemon to offer its name.
const START: Span = Span::from_millis(5000);
