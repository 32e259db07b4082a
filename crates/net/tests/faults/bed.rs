//! Two network namespaces with a cable between them, and a BPF file system to pin in.
use crate::require::has;
use ackademy::units::{Span, Time};
use ackademy_net::clock;
use ackademy_net::kernel::check::Machine;
use ackademy_net::kernel::status::Status;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use nix::sched::{CloneFlags, setns};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Where flows come from.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
/// Where they go.
pub const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);

/// For what takes a fraction of a second on an idle machine.
pub const SOON: Span = Span(40_000_000_000);
pub const SECOND: Span = Span(1_000_000_000);

/// One test at a time.
static TURN: Mutex<()> = Mutex::new(());
static COUNT: AtomicU32 = AtomicU32::new(0);

pub struct Bed {
    /// Of the congestion control; of namespaces and interfaces with a letter after it.
    pub name: String,
    /// A BPF file system.
    pub folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// Whether the machine can run these tests; what it lacks is said once.
fn has_all() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let missing = Machine::here(None).require().err().map(|why| why.to_string());
        let mut lacking: Vec<String> =
            missing.into_iter().map(|why| why.replace('\n', "; ")).collect();
        if !nix::unistd::geteuid().is_root() {
            lacking.push("only root makes network namespaces".to_owned());
        }
        has("kernel", &lacking)
    })
}

impl Bed {
    /// `None`, and a line that says why, where the machine cannot run the test.
    pub fn new() -> Option<Self> {
        if !has_all() {
            return None;
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("f{}x{count}", std::process::id());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let bed = Self { folder: std::env::temp_dir().join(&name), name, _turn: turn };
        bed.set_up();
        Some(bed)
    }

    fn set_up(&self) {
        fs::create_dir(&self.folder).unwrap();
        must("mount", &["-t", "bpf", "bpf", self.folder.to_str().unwrap()]);
        let (a, b) = (self.namespace('a'), self.namespace('b'));
        must("ip", &["netns", "add", &a]);
        must("ip", &["netns", "add", &b]);
        must("ip", &["link", "add", &a, "netns", &a, "type", "veth", "peer", &b, "netns", &b]);
        for (end, address) in [(&a, SENDER), (&b, RECEIVER)] {
            must("ip", &["-n", end, "address", "add", &format!("{address}/24"), "dev", end]);
            must("ip", &["-n", end, "link", "set", end, "up"]);
        }
    }

    /// Makes the way to the receiver narrow.
    pub fn bottleneck(&self, rate: &str, limit_bytes: &str) {
        let end = self.namespace('a');
        let tbf = ["root", "tbf", "rate", rate, "burst", "20kb", "limit", limit_bytes];
        must("tc", &[&["-n", &end, "qdisc", "add", "dev", &end], &tbf[..]].concat());
    }

    /// Name of the sender's (`a`) or receiver's (`b`) namespace, and of the interface in it.
    pub fn namespace(&self, end: char) -> String {
        format!("{}{end}", self.name)
    }

    /// Where the test's daemons pin.
    pub fn pins(&self) -> PathBuf {
        self.folder.join("pins")
    }

    /// `ackademyd kernel` with `words` before the name and the pins of this bed.
    pub fn ackademyd(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ackademyd"));
        command.arg("kernel").args(words).args(["--name", &self.name]).arg("--pins");
        command.arg(self.pins());
        command
    }

    /// Runs it to its end.
    pub fn output(&self, words: &[&str]) -> Output {
        bounded(self.ackademyd(words))
    }

    /// Serves, from when this returns on.
    pub fn daemon(&self, words: &[&str]) -> Daemon {
        Daemon::start(self.ackademyd(words))
    }

    /// What `ackademyd kernel status` sees.
    pub fn status(&self) -> Status {
        Status::read(&self.pins()).unwrap()
    }

    /// Waits until `count` flows are open and all in `state`.
    pub fn wait_until_all(&self, count: usize, state: &str) {
        let start = clock::now();
        loop {
            let status = self.status();
            if status.flows.len() == count && status.flows.iter().all(|flow| flow.state == state) {
                return;
            }
            assert!(clock::now().since(start) < SOON, "not {count} flows, all {state}: {status}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the kernel offers the congestion control.
    pub fn registered(&self) -> bool {
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
            .unwrap()
            .split_whitespace()
            .any(|name| name == self.name)
    }

    /// Takes everything down and asserts that nothing of this bed is left on the machine.
    pub fn finish(self) {
        assert!(self.output(&["remove"]).status.success());
        assert!(!self.pins().exists(), "`remove` leaves its folder");
        assert!(!self.registered(), "`remove` leaves the name");
        self.take_down();
        wait_for("nothing is left", Span::from_secs_f64(20.0), || self.leftovers().is_empty());
    }

    /// By name, what is on the machine of this bed.
    fn leftovers(&self) -> Vec<String> {
        let named = |text: &str| text.contains(&self.name);
        let mut found = Vec::new();
        for (what, text) in [
            ("namespace", print("ip", &["netns"])),
            ("interface", print("ip", &["link"])),
            ("mount", fs::read_to_string("/proc/self/mounts").unwrap()),
            ("queue", print("tc", &["qdisc"])),
        ] {
            found.extend(named(&text).then(|| what.to_owned()));
        }
        found.extend(self.registered().then(|| "name".to_owned()));
        found.extend(self.folder.exists().then(|| "folder".to_owned()));
        let controls = MapInfoIter::default().filter(|map| map.ty == MapType::StructOps);
        for map in controls.filter_map(|map| MapHandle::from_map_id(map.id).ok()) {
            let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let value = value.unwrap_or_default();
            let ours = value.windows(self.name.len()).any(|part| part == self.name.as_bytes());
            found.extend(ours.then(|| "struct_ops".to_owned()));
        }
        found
    }

    fn take_down(&self) {
        for end in ['a', 'b'] {
            let _ = run("ip", &["netns", "delete", &self.namespace(end)]);
        }
        let _ = run("umount", &[self.folder.to_str().unwrap()]);
        let _ = fs::remove_dir(&self.folder);
    }
}

impl Drop for Bed {
    /// After a failure: no namespace, no mount, and with the mount no pin.
    fn drop(&mut self) {
        self.take_down();
        // What is left of a test that failed may still hold a pin.
        let _ = run("umount", &["--quiet", "--lazy", self.folder.to_str().unwrap()]);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A running `ackademyd kernel`; killed when dropped.
pub struct Daemon(Child, Arc<Mutex<String>>);

impl Daemon {
    /// Serves, from when this returns on. What it says later goes to this process's stderr.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let later = Arc::new(Mutex::new(String::new()));
        let daemon = Self(child, Arc::clone(&later));
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        assert!(first.contains("congestion control"), "not serving: {first}");
        thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                eprintln!("{line}");
                *later.lock().unwrap() += &(line + "\n");
            }
        });
        daemon
    }

    /// What it has said since it began to serve.
    pub fn said(&self) -> String {
        self.1.lock().unwrap().clone()
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let process = nix::unistd::Pid::from_raw(self.0.id().cast_signed());
        nix::sys::signal::kill(process, signal).unwrap();
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// SIGTERM; what it said until its end.
    pub fn last_words(self) -> String {
        let said = Arc::clone(&self.1);
        self.stop();
        wait_for("its last words", SOON, || Arc::strong_count(&said) == 1);
        said.lock().unwrap().clone()
    }

    /// SIGTERM.
    pub fn stop(mut self) {
        self.signal(nix::sys::signal::Signal::SIGTERM);
        wait_for("the daemon ends", SOON, || self.0.try_wait().unwrap().is_some());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `task` in a thread that is in the network namespace `name`.
pub fn inside<T: Send + 'static>(
    name: &str,
    task: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let namespace = File::open(Path::new("/run/netns").join(name)).unwrap();
    thread::spawn(move || {
        setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET).unwrap();
        task()
    })
}

/// Looks until it is true; panics after `limit`.
pub fn wait_for(what: &str, limit: Span, mut is_true: impl FnMut() -> bool) {
    let start: Time = clock::now();
    while !is_true() {
        assert!(clock::now().since(start) < limit, "not within {limit}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command that ends by itself.
pub fn bounded(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = clock::now();
    while child.try_wait().unwrap().is_none() {
        if clock::now().since(start) > Span::from_secs_f64(10.0) {
            let _ = child.kill();
        }
        thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}

fn run(program: &str, words: &[&str]) -> Output {
    Command::new(program).args(words).output().unwrap()
}

/// Runs a command that must succeed.
pub fn must(program: &str, words: &[&str]) {
    let output = run(program, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {said}");
}

/// What a command prints.
pub fn print(program: &str, words: &[&str]) -> String {
    String::from_utf8_lossy(&run(program, words).stdout).into_owned()
}
