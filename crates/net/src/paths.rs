//! Names of files in folders that others may change. A symbolic link of another user leads root to files that this
//! user could not touch, so its owner counts.
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::sys::stat::Mode;
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::unistd::geteuid;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// What a path means.
pub struct Resolved {
    /// Without symbolic links, except for one of `/proc` to a pipe or a device. Nothing need be there.
    pub path: PathBuf,
    /// Links on the way that belong neither to this user nor to root.
    pub strangers: Vec<Link>,
}

/// A symbolic link.
pub struct Link {
    /// Where it is.
    pub path: PathBuf,
    /// User identifier.
    pub owner: u32,
}

/// Follows the symbolic links of `path`.
///
/// # Errors
///
/// If a folder cannot be searched, or after too many links.
pub fn resolve(path: &Path) -> io::Result<Resolved> {
    let mut found = Resolved { path: std::env::current_dir()?, strangers: Vec::new() };
    let mut rest = parts(path);
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == ".." {
            found.path.pop();
            continue;
        }
        let at = found.path.join(part);
        let Some((to, owner, of_proc)) = link(&at)? else {
            found.path = at;
            continue;
        };
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::ELOOP.into());
        }
        if owner != 0 && owner != geteuid().as_raw() {
            found.strangers.push(Link { path: at.clone(), owner });
        }
        // The text of such a link, `pipe:[123]`, is no path.
        if of_proc && fs::metadata(&at).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
            found.path = at;
        } else {
            rest.extend(parts(&to));
        }
    }
    Ok(found)
}

/// Opens a path without symbolic links: one that has been put there since is an error.
///
/// # Errors
///
/// As `open(2)`.
pub fn open(path: &Path, flags: OFlag) -> io::Result<File> {
    let how = OpenHow::new()
        .flags(flags | OFlag::O_CLOEXEC)
        .mode(Mode::empty())
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(File::from(openat2(AT_FDCWD, path, how)?))
}

/// Opens an input without waiting for a writer of a pipe. Root does not follow a link of one user to a file of another:
/// messages quote what is wrong in a file.
///
/// # Errors
///
/// If the file cannot be opened, or such a link leads to it.
pub fn open_input(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    if !geteuid().is_root() {
        return OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    }
    let resolved = resolve(path)?;
    let file = open(&resolved.path, flags)?;
    let owner = file.metadata()?.uid();
    match resolved.strangers.iter().find(|link| link.owner != owner) {
        None => Ok(file),
        Some(Link { path, owner: other }) => Err(io::Error::other(format!(
            "`{}` is a symbolic link of user {other} to a file of user {owner}, which root does not follow",
            path.display()
        ))),
    }
}

/// Where the link at `path` leads, its owner, and whether it is the kernel's own; `None` if there is no link.
fn link(path: &Path) -> io::Result<Option<(PathBuf, u32, bool)>> {
    let link = match open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let about = link.metadata()?;
    if !about.is_symlink() {
        return Ok(None);
    }
    let of_proc = fstatfs(&link).is_ok_and(|system| system.filesystem_type() == PROC_SUPER_MAGIC);
    Ok(Some((readlinkat(&link, "")?.into(), about.uid(), of_proc)))
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

/// As many as the kernel follows (`path_resolution(7)`).
const LINKS_MAX: usize = 40;
