//! Network namespaces that are gone when their owner is.
//!
//! A namespace is a file under `/run/netns`, as iproute2 makes them, so that `ip netns exec` works. Its
//! name carries the process id of its owner, who holds a lock for as long as it lives: what a killed
//! owner left behind is recognised by a lock that no process holds.
use crate::clock;
use crate::error::Error;
use ackademy::units::Span;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A network namespace, removed when dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
}

/// Namespaces of this process, and the lock that says it lives. Dropped last of all.
#[derive(Debug)]
pub struct Owner {
    prefix: String,
    lock: Option<Flock<File>>,
    path: PathBuf,
}

impl Owner {
    /// Claims the names `ackademy-<pid>-…`. Removes what dead owners left.
    ///
    /// # Errors
    ///
    /// If this process may not, or another lab of it is up.
    pub fn claim() -> Result<Self, Error> {
        clean()?;
        let pid = std::process::id();
        let path = Path::new(LOCKS).join(format!("{PREFIX}{pid}.lock"));
        let lock = hold(&path)?.ok_or_else(|| {
            Error::System(format!(
                "process {pid} has its namespaces already; one lab or link at a time"
            ))
        })?;
        Ok(Self { prefix: format!("{PREFIX}{pid}-"), lock: Some(lock), path })
    }

    /// A new namespace, `ackademy-<pid>-<suffix>`, with its loopback device down.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn create(&self, suffix: &str) -> Result<Namespace, Error> {
        Namespace::create(&format!("{}{suffix}", self.prefix))
    }

    /// From here on [`end_others`] ends this process.
    ///
    /// # Errors
    ///
    /// If the lock cannot be written.
    pub fn ends_on_request(&mut self) -> Result<(), Error> {
        let lock = self.lock.as_mut().expect("it is held until the owner is dropped");
        lock.write_all(ENDS_ON_REQUEST.as_bytes())
            .map_err(|error| refused("write", &self.path, &error))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // The next claim makes a new file: the name is removed before the lock is released.
        let _ = fs::remove_file(&self.path);
        drop(self.lock.take());
    }
}

impl Namespace {
    /// A new namespace of this name, with its loopback device down. Nobody but this value removes it:
    /// [`Owner::create`] is for those that may be killed.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn create(name: &str) -> Result<Self, Error> {
        prepare_folder()?;
        let path = path_of(name);
        File::create(&path).map_err(|error| refused("create", &path, &error))?;
        let bound = thread::scope(|scope| {
            // The new namespace becomes that of the thread, which ends with it.
            let thread = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET)?;
                mount(
                    Some("/proc/thread-self/ns/net"),
                    &path,
                    None::<&str>,
                    MsFlags::MS_BIND,
                    None::<&str>,
                )
            });
            thread.join().expect("two system calls do not panic")
        });
        let opened = bound.map_err(std::io::Error::from).and_then(|()| File::open(&path));
        match opened {
            Ok(file) => Ok(Self { name: name.to_owned(), file }),
            Err(error) => {
                remove(&path);
                Err(refused("make namespace", &path, &error))
            }
        }
    }

    /// Its name, as `ip netns exec` takes it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        path_of(&self.name)
    }

    /// Its inode, by which BPF programs know it.
    pub fn inode(&self) -> u64 {
        self.file.metadata().map_or(0, |about| about.ino())
    }

    /// Moves the calling thread into it.
    ///
    /// # Errors
    ///
    /// If this process may not.
    pub fn enter(&self) -> Result<(), Error> {
        enter(&self.file, &self.path())
    }

    /// What a thread inside it returns.
    ///
    /// # Errors
    ///
    /// If this process may not enter it, and whatever `work` returns.
    pub fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        in_thread(|| self.enter(), work)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.path());
    }
}

/// A name as `ip netns` takes it: of one file in its folder.
///
/// # Errors
///
/// What is allowed.
pub fn name(text: &str) -> Result<String, String> {
    let of_a_file = !text.is_empty() && text.len() <= NAME_MAX && !text.contains(['/', '\0']);
    if of_a_file && ![".", ".."].contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "allowed is a name of `ip netns list`: 1 to {NAME_MAX} bytes, no `/`, not `.` or `..`"
        ))
    }
}

/// The file of a namespace that `ip netns` knows by this name.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Does some work inside a namespace, in a thread of its own: the caller's namespace, and that of
/// its other threads, never change. Programs that the work starts are inside too.
///
/// # Errors
///
/// If there is no such namespace, the process may not enter it, or the work fails.
pub fn within<T: Send>(
    namespace: &Path,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let file = File::open(namespace).map_err(|error| {
        Error::Input(format!("network namespace {}: {error}", namespace.display()))
    })?;
    in_thread(|| enter(&file, namespace), work)
}

fn in_thread<T: Send>(
    enter: impl FnOnce() -> Result<(), Error> + Send,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let done = thread::scope(|scope| scope.spawn(|| enter().and_then(|()| work())).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn enter(file: &File, path: &Path) -> Result<(), Error> {
    setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| {
        let hint = "root or CAP_SYS_ADMIN is needed";
        Error::Input(format!("cannot enter {}: {error} ({hint})", path.display()))
    })
}

/// Ends the owners that said they may be ended, and waits until they are gone; returns how many.
///
/// # Errors
///
/// If this process may not.
pub fn end_others() -> Result<usize, Error> {
    let mut ended = 0;
    for entry in entries(LOCKS)? {
        let path = Path::new(LOCKS).join(&entry);
        let owner = entry.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(".lock"));
        let Some(pid) = owner.and_then(|owner| owner.parse().ok()).map(Pid::from_raw) else {
            continue;
        };
        if fs::read_to_string(&path).is_ok_and(|text| text == ENDS_ON_REQUEST) && is_held(&path) {
            match kill(pid, Signal::SIGTERM) {
                Ok(()) | Err(Errno::ESRCH) => {} // gone in the meantime
                Err(error) => return Err(Error::System(format!("end process {pid}: {error}"))),
            }
            if !is_free_within(ENDING, &path) {
                return Err(Error::System(format!(
                    "process {pid} has not ended {ENDING} after SIGTERM; `kill -9 {pid}` ends it"
                )));
            }
            ended += 1;
        }
    }
    Ok(ended)
}

/// Makes and locks the file of an owner; `None` if somebody holds it.
fn hold(path: &Path) -> Result<Option<Flock<File>>, Error> {
    loop {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(|error| refused("create", path, &error))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            // Who cleans may have removed the file between our opening and our locking it.
            Ok(lock) if is_at(&lock, path) => return Ok(Some(lock)),
            Ok(_removed) => {}
            // Who cleans holds each lock while it looks whether the owner lives.
            Err((_, Errno::EWOULDBLOCK)) if is_free_within(CLEANING, path) => {}
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, error)) => return Err(refused("lock", path, &error.into())),
        }
    }
}

/// Whether an open file is the one of this name.
fn is_at(file: &File, path: &Path) -> bool {
    let named = fs::metadata(path).map(|about| about.ino()).ok();
    named.is_some() && named == file.metadata().map(|about| about.ino()).ok()
}

/// Waits until no process holds a lock; false if one still does after `patience`.
fn is_free_within(patience: Span, path: &Path) -> bool {
    let deadline = clock::now() + patience;
    while is_held(path) {
        if clock::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Whether the owner of a lock lives.
fn is_held(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return false };
    Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err()
}

/// Removes namespaces whose owners are dead; returns their names.
///
/// # Errors
///
/// If this process may not.
pub fn clean() -> Result<Vec<String>, Error> {
    prepare_folder()?;
    let mut removed = Vec::new();
    for entry in entries(LOCKS)? {
        let Some(owner) = entry.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(".lock"))
        else {
            continue;
        };
        let path = Path::new(LOCKS).join(&entry);
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        let Ok(dead) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { continue };
        if !is_at(&dead, &path) {
            continue; // its owner went in order, and the name is somebody else's
        }
        let prefix = format!("{PREFIX}{owner}-");
        for name in entries(FOLDER)?.into_iter().filter(|name| name.starts_with(&prefix)) {
            remove(&Path::new(FOLDER).join(&name));
            removed.push(name);
        }
        let _ = fs::remove_file(&path);
    }
    Ok(removed)
}

/// Makes the folder of namespaces as iproute2 does: a mount of its own, shared with other mount
/// namespaces, lest a later `ip netns add` hides what was mounted in it before.
fn prepare_folder() -> Result<(), Error> {
    let fail = |error: std::io::Error| refused("prepare", Path::new(FOLDER), &error);
    fs::create_dir_all(FOLDER).map_err(fail)?;
    let share = || {
        let flags = MsFlags::MS_SHARED | MsFlags::MS_REC;
        mount(None::<&str>, FOLDER, None::<&str>, flags, None::<&str>)
    };
    match share() {
        Err(Errno::EINVAL) => {
            let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
            let bound = mount(Some(FOLDER), FOLDER, None::<&str>, flags, None::<&str>);
            bound.and_then(|()| share()).map_err(|error| fail(error.into()))
        }
        Err(Errno::EPERM) => Err(Error::Input(
            "network namespaces are made by root (CAP_SYS_ADMIN and CAP_NET_ADMIN)".to_owned(),
        )),
        other => other.map_err(|error| fail(error.into())),
    }
}

fn entries(folder: &str) -> Result<Vec<String>, Error> {
    let fail = |error: std::io::Error| refused("read", Path::new(folder), &error);
    let listed = fs::read_dir(folder).map_err(fail)?;
    Ok(listed.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// The namespace itself goes when the last process, thread or socket leaves it.
fn remove(path: &Path) {
    let _ = umount2(path, MntFlags::MNT_DETACH);
    let _ = fs::remove_file(path);
}

fn refused(what: &str, path: &Path, error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        return Error::Input(format!(
            "{what} {}: {error}; network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
            path.display()
        ));
    }
    Error::System(format!("{what} {}: {error}", path.display()))
}

const FOLDER: &str = "/run/netns";
/// Of a file's name, in bytes.
const NAME_MAX: usize = 255;
const LOCKS: &str = "/run";
const PREFIX: &str = "ackademy-";
/// What an owner has to end after a signal.
const ENDING: Span = Span::from_millis(10_000);
/// Longer than a process that cleans holds the lock of a living owner.
const CLEANING: Span = Span::from_millis(1000);
/// Content of a lock whose owner may be ended.
const ENDS_ON_REQUEST: &str = "up\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock's file of its own, gone when dropped.
    struct Lock(PathBuf);

    impl Lock {
        fn new(label: &str) -> Self {
            let name = format!("ackademy-locktest-{label}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Lock {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_name_stays_in_the_folder_of_namespaces() {
        assert_eq!(name("blue.1"), Ok("blue.1".to_owned()));
        for wrong in ["", ".", "..", "../../proc/1/ns/net", "/proc/1/ns/net", &"x".repeat(256)] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_lock_has_one_holder() {
        let file = Lock::new("one");
        let held = hold(&file.0).expect("a folder to write in");
        assert!(held.is_some() && is_held(&file.0));
        assert!(hold(&file.0).expect("the file is there").is_none());
        drop(held);
        assert!(hold(&file.0).expect("the file is there").is_some());
    }

    #[test]
    fn a_lock_is_never_of_a_file_that_was_removed() {
        let file = Lock::new("race");
        thread::scope(|scope| {
            // What `clean` does to a fresh file that nobody holds yet.
            let cleaner = scope.spawn(|| {
                for _ in 0..2000 {
                    let Ok(found) = File::open(&file.0) else { continue };
                    if let Ok(_lock) = Flock::lock(found, FlockArg::LockExclusiveNonblock) {
                        let _ = fs::remove_file(&file.0);
                    }
                }
            });
            while !cleaner.is_finished() {
                let held = hold(&file.0).expect("a folder to write in").expect("for a moment only");
                assert!(is_at(&held, &file.0));
            }
        });
    }
}
