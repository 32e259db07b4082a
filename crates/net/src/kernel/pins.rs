//! Where link and maps outlive the daemon: a folder of a BPF file system.
//!
//! The link is pinned last and unpinned first: a folder without it holds nothing that works, and
//! whoever means to serve there removes what is left. A daemon holds a lock on the folder, which the
//! kernel lets go of however the daemon ends.
use super::record::{ABI_VERSION, Origin, Plain, Settings};
use super::{NAME_MAX, Options};
use crate::error::Error;
use libbpf_rs::btf::{Btf, types};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc::{major, minor};
use std::fmt::Display;
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const LINK: &str = "link";
/// Inode of the first PID namespace (`PROC_PID_INIT_INO`).
const OUTERMOST_PIDS: u64 = 0xefff_fffc;
const SETTINGS: &str = "settings";
const MAPS: [&str; 5] = ["records", "decisions", "flows", "totals", SETTINGS];

/// The maps that outlive a daemon.
pub(super) struct Maps {
    pub records: MapHandle,
    pub decisions: MapHandle,
    pub flows: MapHandle,
    pub totals: MapHandle,
    pub settings: MapHandle,
}

impl Maps {
    /// In the order of [`MAPS`].
    fn each(&mut self) -> [&mut MapHandle; MAPS.len()] {
        let Self { records, decisions, flows, totals, settings } = self;
        [records, decisions, flows, totals, settings]
    }

    /// Opens the pinned ones.
    ///
    /// # Errors
    ///
    /// If nothing is pinned in `folder`, or something of another version.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let abi = origin(folder)?.abi;
        if abi != ABI_VERSION {
            return Err(Error::Input(format!(
                "`{}` holds maps of version {abi}, not {ABI_VERSION}: another ackademyd made them; `ackademyd kernel remove` hands its flows to CUBIC and clears the folder",
                folder.display(),
            )));
        }
        Ok(Self {
            records: open(folder, "records")?,
            decisions: open(folder, "decisions")?,
            flows: open(folder, "flows")?,
            totals: open(folder, "totals")?,
            settings: open(folder, SETTINGS)?,
        })
    }

    /// How the flows are served.
    ///
    /// # Errors
    ///
    /// If the map cannot be read.
    pub fn settings(&self) -> Result<Settings, Error> {
        read(&self.settings)
    }

    /// Sets how flows are served from now on.
    ///
    /// # Errors
    ///
    /// If the map cannot be written.
    pub fn set(&self, settings: &Settings) -> Result<(), Error> {
        self.settings
            .update(&0_u32.to_ne_bytes(), settings.bytes(), MapFlags::ANY)
            .map_err(|error| Error::System(format!("cannot write the map `settings`: {error}")))
    }
}

/// Who pinned what is in `folder`, whatever its version.
///
/// # Errors
///
/// If nothing is pinned there, not all of it, or this process may not look.
pub(super) fn origin(folder: &Path) -> Result<Origin, Error> {
    if !is_registered(folder)? {
        return Err(Error::Input(format!(
            "nothing is pinned in `{}`: no `ackademyd kernel` has served from there, or its pins were removed",
            folder.display()
        )));
    }
    read(&open(folder, SETTINGS)?)
}

fn open(folder: &Path, name: &str) -> Result<MapHandle, Error> {
    let path = folder.join(name);
    MapHandle::from_pinned_path(&path).map_err(|error| match error.kind() {
        libbpf_rs::ErrorKind::NotFound => Error::Input(format!(
            "`{}` has lost its pin `{name}`, so its flows cannot be served or shown; they are under CUBIC: `ackademyd kernel remove` hands them to the kernel's and clears the folder",
            folder.display()
        )),
        libbpf_rs::ErrorKind::PermissionDenied => forbidden(&path, &error),
        _ => Error::System(format!("cannot open `{}`: {error}", path.display())),
    })
}

fn forbidden(path: &Path, error: &dyn Display) -> Error {
    Error::Input(format!(
        "cannot look into `{}`: {error}: allowed are root, and with CAP_BPF the user whose daemon pinned it",
        path.display()
    ))
}

/// What the congestion control of a pinned link is called; asking takes `CAP_SYS_ADMIN`.
fn name_of(link: &Path) -> Option<String> {
    let LinkTypeInfo::StructOps(about) = Link::open(link).ok()?.info().ok()?.info else {
        return None;
    };
    let operations = MapHandle::from_map_id(about.map_id).ok()?;
    let value = operations.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
    let btf = Btf::from_vmlinux().ok()?;
    let at = offset(&btf, "bpf_struct_ops_tcp_congestion_ops", "data")?
        + offset(&btf, "tcp_congestion_ops", "name")?;
    let name = String::from_utf8_lossy(value.get(at..at + NAME_MAX + 1)?).into_owned();
    Some(name.trim_end_matches('\0').to_owned())
}

/// Bytes before a member of a structure of the kernel.
fn offset(btf: &Btf, structure: &str, member: &str) -> Option<usize> {
    let structure: types::Struct = btf.type_by_name(structure)?;
    let member = structure.iter().find(|one| one.name.is_some_and(|name| name == member))?;
    let types::MemberAttr::Normal { offset: bits } = member.attr else { return None };
    Some(bits as usize / 8)
}

fn read<T: Plain>(settings: &MapHandle) -> Result<T, Error> {
    let value = settings
        .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| Error::System(format!("cannot read the map `settings`: {error}")))?;
    value
        .and_then(|bytes| T::from_bytes(&bytes))
        .ok_or_else(|| Error::System("the map `settings` is too short".to_owned()))
}

/// What settings `options` ask for.
pub(super) fn settings_for(options: &Options) -> Settings {
    let mut name = [0; NAME_MAX + 1];
    for (to, from) in name.iter_mut().zip(options.name.bytes()) {
        *to = from;
    }
    Settings {
        abi: ABI_VERSION,
        slots: options.slots,
        interval: options.interval.0,
        watchdog: options.watchdog.0,
        name,
        paced: options.paced.into(),
        in_kernel: options.in_kernel.is_some().into(),
    }
}

/// The folder, while this process alone may change it.
pub(super) struct Pins {
    folder: PathBuf,
    _lock: Flock<File>,
}

impl Pins {
    /// Makes the folder if there is none, and locks it.
    ///
    /// # Errors
    ///
    /// If a daemon holds it.
    pub fn claim(folder: &Path) -> Result<Self, Error> {
        let failed =
            |error| Error::System(format!("cannot use `{}` for pins: {error}", folder.display()));
        loop {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(failed(error));
                }
                _ => {}
            }
            let lock = match File::open(folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.map_err(failed)?,
            };
            let lock = match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
                Err((_, Errno::EWOULDBLOCK)) => return Err(busy(folder)),
                locked => locked.map_err(|(_, error)| failed(error.into()))?,
            };
            // The previous holder may have removed it.
            let locked = lock.metadata().map_err(failed)?;
            if fs::metadata(folder).is_ok_and(|now| now.ino() == locked.ino()) {
                only_pins(folder)?;
                return Ok(Self { folder: folder.to_owned(), _lock: lock });
            }
        }
    }

    /// Whether a congestion control is registered here.
    ///
    /// # Errors
    ///
    /// If this process may not look.
    pub fn registered(&self) -> Result<bool, Error> {
        is_registered(&self.folder)
    }

    /// What the congestion control is called, as far as what is left of the pins tells.
    pub fn name(&self) -> Option<String> {
        let settings: Option<Origin> = open(&self.folder, SETTINGS).and_then(|map| read(&map)).ok();
        settings.map(|origin| origin.name()).or_else(|| name_of(&self.folder.join(LINK)))
    }

    /// Opens what an earlier daemon pinned, to serve as `options` ask.
    ///
    /// # Errors
    ///
    /// If it was pinned by another version, or for settings that cannot change under live flows.
    pub fn open(&self, options: &Options) -> Result<(Link, Maps), Error> {
        let maps = Maps::open(&self.folder)?;
        let (found, wanted) = (maps.settings()?, settings_for(options));
        let differs = |what: &str, found: &str, wanted: &str| {
            Err(Error::Input(format!(
                "`{}` serves {what} {found}, not {wanted}: ask for the former, or `ackademyd kernel remove` first",
                self.folder.display()
            )))
        };
        let name = origin(&self.folder)?.name();
        if name != options.name {
            return differs("the name", &name, &options.name);
        }
        if found.in_kernel != 0 || wanted.in_kernel != 0 {
            let how = |settings: &Settings| match settings.in_kernel {
                0 => "under a daemon",
                _ => "in the kernel",
            };
            let folder = self.folder.display();
            return Err(Error::Input(format!(
                "`{folder}` serves flows {} already, which nothing takes over {}: `ackademyd kernel remove` first",
                how(&found),
                how(&wanted)
            )));
        }
        if found.slots != wanted.slots {
            return differs("slots", &found.slots.to_string(), &wanted.slots.to_string());
        }
        if wanted.paced > found.paced {
            return differs("controllers", "that set no rate", "one that may");
        }
        let link = Link::open(self.folder.join(LINK)).map_err(|error| {
            Error::System(format!("cannot open the link in `{}`: {error}", self.folder.display()))
        })?;
        maps.set(&Settings { paced: found.paced, ..wanted })?;
        Ok((link, maps))
    }

    /// Pins everything.
    ///
    /// # Errors
    ///
    /// If the kernel refuses; then nothing is pinned.
    pub fn pin(&self, link: &mut Link, maps: &mut Maps) -> Result<(), Error> {
        let pinned = MAPS
            .iter()
            .zip(maps.each())
            .try_for_each(|(name, map)| map.pin(self.folder.join(name)))
            .and_then(|()| link.pin(self.folder.join(LINK)));
        pinned.map_err(|error| {
            Error::System(format!("cannot pin in `{}`: {error}", self.folder.display()))
        })
    }

    /// Unpins everything; the name goes with the last descriptor of the link.
    ///
    /// # Errors
    ///
    /// If a pin cannot be removed.
    pub fn clear(&self) -> Result<(), Error> {
        for name in [LINK].iter().chain(&MAPS) {
            let path = self.folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    let path = path.display();
                    return Err(Error::System(format!("cannot remove `{path}`: {error}")));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Pins {
    /// Leaves no empty folder behind, nor a half-made one.
    fn drop(&mut self) {
        if self.registered().is_ok_and(|registered| !registered) {
            let _ = self.clear();
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// Whether a congestion control is registered in `folder`.
///
/// # Errors
///
/// If this process may not look.
pub(super) fn is_registered(folder: &Path) -> Result<bool, Error> {
    let link = folder.join(LINK);
    match fs::symlink_metadata(&link) {
        Ok(_) => Ok(true),
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            Ok(false)
        }
        Err(error) => Err(forbidden(folder, &error)),
    }
}

/// Whether a process that [`daemon`] cannot see holds `folder`: `/proc/locks` leaves out those outside of the reader's PID
/// namespace. Tried by a lock of a moment, only within such a namespace.
pub(super) fn is_held(folder: &Path) -> bool {
    let outermost = fs::metadata("/proc/self/ns/pid").is_ok_and(|own| own.ino() == OUTERMOST_PIDS);
    let tried = || Some(Flock::lock(File::open(folder).ok()?, FlockArg::LockSharedNonblock));
    !outermost && matches!(tried(), Some(Err((_, Errno::EWOULDBLOCK))))
}

/// The process that serves `folder`.
pub(super) fn daemon(folder: &Path) -> Option<u32> {
    let locked = fs::metadata(folder).ok()?;
    let file = format!("{:02x}:{:02x}:{}", major(locked.dev()), minor(locked.dev()), locked.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 123 00:27:456 0 EOF
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, at, ..] = fields[..] else { return None };
        (at == file).then(|| process.parse().ok())?
    })
}

/// The error that a daemon holds `folder`.
fn busy(folder: &Path) -> Error {
    let process = daemon(folder).map_or("a process".to_owned(), |pid| format!("process {pid}"));
    Error::Input(format!(
        "`{}` is already served by {process}: stop it first, or choose another --pins and --name",
        folder.display()
    ))
}

/// A folder with anything else in it is not ours to clear.
fn only_pins(folder: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for name in entries.map(|entry| entry.file_name()) {
        if name != LINK && !MAPS.iter().any(|map| name == *map) {
            return Err(Error::Input(format!(
                "`{}` holds `{}`, which is not ackademyd's: give --pins another folder",
                folder.display(),
                name.display()
            )));
        }
    }
    Ok(())
}
