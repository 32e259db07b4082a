//! Hands live flows to a congestion control of the kernel's own.
//!
//! A TCP iterator sees the sockets of its caller's network namespace, so one thread goes from
//! namespace to namespace.
use super::pins::{self, Maps, Pins};
use super::record::{Flow, handed, state};
use super::skeleton::{AckademySkelBuilder, OpenAckademySkel};
use super::table::Table;
use crate::clock;
use crate::error::Error;
use ackademy::units::Span;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link};
use nix::sched::{CloneFlags, setns};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const UNREGISTERED_WITHIN: Span = Span(2_000_000_000);

/// What became of the flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Connections that changed hands.
    pub flows: u64,
    /// Listening sockets that did; what they accept from now on does not start with us.
    pub listeners: u64,
    /// Sockets that the kernel would not change.
    pub refused: u64,
    /// Network namespaces, by inode, whose sockets were looked through.
    pub entered: BTreeSet<u64>,
    /// Flows left in other ones, by inode: no process or name under `/run/netns` leads there, or this process
    /// may not enter.
    pub unreachable: BTreeMap<u64, u64>,
    /// Network namespaces, by inode, whose new connections still start with us by default.
    pub defaults: BTreeSet<u64>,
}

/// Hands the live flows of what is pinned in `folder` to `heir`.
///
/// # Errors
///
/// If nothing is pinned there, the kernel has no `heir`, or refuses.
pub fn release(folder: &Path, heir: &str) -> Result<Released, Error> {
    hand_over(folder, &pins::origin(folder)?.name(), heir)
}

/// Hands the flows under `name` to `heir`, and counts those of `folder` that cannot be reached.
fn hand_over(folder: &Path, name: &str, heir: &str) -> Result<Released, Error> {
    let mut released = hand_back(name, heir)?;
    // Pins that are gone, or of another version, tell of no flow.
    if let Ok(maps) = Maps::open(folder) {
        let flows = Table::<Flow>::map(&maps.flows)?;
        for flow in (0..flows.len()).map(|slot| flows.read(slot)) {
            if flow.state != state::FREE && !released.entered.contains(&flow.netns) {
                *released.unreachable.entry(flow.netns).or_default() += 1;
            }
        }
    }
    Ok(released)
}

/// Releases, and unregisters what is pinned in `folder`, also if some of its pins are gone. `name` is
/// for those that do not tell it. `None` if nothing is pinned there.
///
/// # Errors
///
/// If a daemon serves it, this process may not, or the kernel refuses.
pub fn remove(folder: &Path, name: &str, heir: &str) -> Result<Option<Released>, Error> {
    if !pins::is_registered(folder)? && !folder.exists() {
        return Ok(None);
    }
    let pins = Pins::claim(folder)?;
    let found = pins.name();
    if !pins.registered()? {
        // Without its link the name went with the daemon; flows may still be under it. A name that is
        // registered is another's.
        let orphaned = found.filter(|name| known(name).is_err());
        let released = orphaned.map(|name| hand_over(folder, &name, heir)).transpose()?;
        return Ok(released.filter(|released| released.flows + released.listeners > 0));
    }
    let name = found.unwrap_or_else(|| name.to_owned());
    let released = hand_over(folder, &name, heir)?;
    pins.clear()?;
    unregistered(folder, &name)?;
    Ok(Some(released))
}

/// Waits until the name is gone: the kernel unregisters after the last descriptor is closed, not while.
fn unregistered(folder: &Path, name: &str) -> Result<(), Error> {
    let start = clock::now();
    while known(name).is_ok() {
        if clock::now().since(start) > UNREGISTERED_WITHIN {
            return Err(Error::System(format!(
                "`{name}` is still registered, though `{}` is clear: something else holds its link",
                folder.display()
            )));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn hand_back(name: &str, heir: &str) -> Result<Released, Error> {
    known(heir)?;
    if heir == name {
        return Err(Error::Input(format!(
            "--cc {heir}: allowed is another congestion control than the one that is released"
        )));
    }
    let failed = |error: libbpf_rs::Error| {
        Error::System(format!("cannot look through the kernel's TCP sockets: {error:#}"))
    };
    let mut storage = MaybeUninit::uninit();
    let mut open = AckademySkelBuilder::default().open(&mut storage).map_err(failed)?;
    only_hand_back(&mut open, name, heir).map_err(failed)?;
    let loaded = open.load().map_err(failed)?;
    let link = loaded.progs.hand_back.attach().map_err(failed)?;
    let home = inode(Path::new("/proc/thread-self/ns/net")).unwrap_or(0);
    let mut released = Released::default();
    for (namespace, path) in namespaces() {
        let path = (namespace != home).then_some(path);
        // A thread that has moved does not come back.
        let met = thread::scope(|scope| scope.spawn(|| sockets(&link, path.as_deref())).join());
        // It closed meanwhile, or is another user's: what the flow table has of it is reported.
        let Ok(Ok((met, default))) = met else { continue };
        released.entered.insert(namespace);
        if default == name {
            released.defaults.insert(namespace);
        }
        let count = |what| met.iter().filter(|handed| **handed == what).count() as u64;
        released.flows += count(handed::FLOW);
        released.listeners += count(handed::LISTENER);
        released.refused += count(handed::NOTHING);
    }
    Ok(released)
}

/// Loads nothing else of the BPF program.
fn only_hand_back(open: &mut OpenAckademySkel, name: &str, heir: &str) -> libbpf_rs::Result<()> {
    for mut program in open.open_object_mut().progs_mut() {
        let wanted = program.name() == "hand_back";
        program.set_autoload(wanted);
    }
    for mut map in open.open_object_mut().maps_mut() {
        let wanted = map.name().as_encoded_bytes().ends_with(b".rodata");
        map.set_autocreate(wanted)?;
    }
    let names = open.maps.rodata_data.as_mut().expect("the program has constants");
    for (to, from) in names.from_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    for (to, from) in names.to_name.iter_mut().zip(heir.bytes()) {
        *to = from.cast_signed();
    }
    Ok(())
}

/// Hands back the sockets of the namespace at `path`, or else of this thread's: what became of each,
/// and the namespace's default congestion control.
fn sockets(link: &Link, path: Option<&Path>) -> Result<(Vec<u8>, String), Failure> {
    if let Some(path) = path {
        setns(File::open(path)?.as_fd(), CloneFlags::CLONE_NEWNET)?;
    }
    let mut met = Vec::new();
    Iter::new(link)?.read_to_end(&mut met)?;
    let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
    Ok((met, default.trim_end().to_owned()))
}

/// Network namespaces by inode, each with a way into it.
fn namespaces() -> BTreeMap<u64, PathBuf> {
    let list = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let named = list("/run/netns").map(|entry| entry.path());
    let used = list("/proc").map(|entry| entry.path().join("ns/net"));
    named.chain(used).filter_map(|path| Some((inode(&path)?, path))).collect()
}

fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|found| found.ino())
}

fn known(heir: &str) -> Result<(), Error> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    if names.split_whitespace().any(|name| name == heir) {
        return Ok(());
    }
    Err(Error::Input(format!(
        "--cc {heir}: the kernel has no such congestion control; it has {}",
        names.trim_end()
    )))
}
