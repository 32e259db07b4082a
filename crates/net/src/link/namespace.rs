//! Network namespaces: making them, working inside them, removing them.
use crate::error::Error;
use nix::sched::{CloneFlags, setns};
use nix::unistd::geteuid;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// Where `ip netns` keeps the names.
const NAMES: &str = "/run/netns";

/// A named network namespace of our own; removed when dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace whose name only says who it is for: removed with this value, also by a
    /// panic.
    ///
    /// # Errors
    ///
    /// If the name is taken, or the process may not.
    pub fn create(name: &str) -> Result<Self, Error> {
        if !geteuid().is_root() {
            return Err(Error::Input(format!("network namespace {name}: only root may make it")));
        }
        run("ip", &["netns", "add", name])?;
        let namespace = Self { name: name.to_owned() };
        run("ip", &["-n", name, "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        path_of(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = run("ip", &["netns", "del", &self.name]) {
            eprintln!("ackademyd: {error}");
        }
    }
}

/// The file of a namespace that `ip netns` knows by this name.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

/// Removes the namespaces `<prefix><pid>` of processes that are gone: what `kill -9` left behind.
///
/// # Errors
///
/// If one cannot be removed.
pub fn sweep(prefix: &str) -> Result<(), Error> {
    let Ok(names) = std::fs::read_dir(NAMES) else { return Ok(()) };
    for name in names.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let owner = name.strip_prefix(prefix).and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let removed = run("ip", &["netns", "del", &name]);
            if path_of(&name).exists() {
                removed?; // else another process was faster
            }
        }
    }
    Ok(())
}

/// Does some work inside a namespace, in a thread of its own: the caller's namespace, and that of
/// its other threads, never change. Programs that the work starts are inside too.
///
/// # Errors
///
/// If there is no such file, the process may not enter it, or the work fails.
pub fn within<T: Send>(
    path: &Path,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let fail = |error: &dyn std::fmt::Display| {
        Error::Input(format!("network namespace {}: {error}", path.display()))
    };
    let namespace = File::open(path).map_err(|error| fail(&error))?;
    let enter = || {
        setns(&namespace, CloneFlags::CLONE_NEWNET)
            .map_err(|error| fail(&format!("{error} (CAP_SYS_ADMIN is needed)")))?;
        work()
    };
    let done = thread::scope(|scope| scope.spawn(enter).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

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
