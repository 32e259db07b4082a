//! Where results go: standard output, files that appear whole or not at all, and special files.
use crate::error::Error;
use nix::unistd::{AccessFlags, Gid, Uid, access, fchown};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where a result goes.
#[derive(Debug)]
pub struct Output {
    /// As the user wrote it.
    given: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Standard,
    /// A device or a pipe: written as it is, never replaced.
    Special,
    /// A file, or a name for one; no symbolic link.
    File(PathBuf),
}

impl Output {
    /// Checks that `path` can be written, before the work that makes the result. `-` is standard
    /// output. A symbolic link stands for what it leads to. `option` named the path.
    ///
    /// # Errors
    ///
    /// One line that says what is allowed.
    pub fn new(option: &str, path: &Path) -> Result<Self, Error> {
        let target = find(path)
            .map_err(|why| Error::Input(format!("{option} {}: {why}", path.display())))?;
        Ok(Self { given: path.to_owned(), target })
    }

    /// Writes the result. If that fails, the file that was there before stays as it was.
    ///
    /// # Errors
    ///
    /// One line, if it cannot be written.
    pub fn write(
        &self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        let written = match &self.target {
            Target::Standard => fill(io::stdout().lock(), content).map(drop),
            Target::Special => OpenOptions::new()
                .write(true)
                .open(&self.given)
                .and_then(|special| fill(special, content).map(drop)),
            Target::File(path) => replace(path, content),
        };
        written.map_err(|error| Error::System(format!("{}: {error}", self.given.display())))
    }
}

/// A line on standard output.
///
/// # Errors
///
/// If it cannot be written, as on a full disk.
pub fn line(text: fmt::Arguments) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    let written =
        out.write_fmt(text).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    written.map_err(|error| Error::System(format!("standard output: {error}")))
}

/// A line on standard error. One that cannot be written is lost: what a process says of its work must not end it.
pub fn note(text: fmt::Arguments) {
    hint(format_args!("{text}\n"));
}

/// The same without an end of the line, for text that the next one overwrites.
pub fn hint(text: fmt::Arguments) {
    let mut out = io::stderr().lock();
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

/// What `path` leads to; else what is wrong with it.
fn find(path: &Path) -> Result<Target, String> {
    if path == Path::new("-") {
        return Ok(Target::Standard);
    }
    match fs::metadata(path) {
        Ok(about) if about.is_dir() => Err("allowed is a file, this is a folder".to_owned()),
        Ok(about) if about.file_type().is_socket() => {
            Err("allowed is a file, this is a socket".to_owned())
        }
        Ok(about) if about.is_file() => {
            let file = fs::canonicalize(path).map_err(|error| error.to_string())?;
            writable(&file)?;
            fits_beside(&file)?;
            Ok(Target::File(file))
        }
        Ok(_special) => writable(path).map(|()| Target::Special),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let file = follow(path)?;
            fits_beside(&file)?;
            Ok(Target::File(file))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn writable(path: &Path) -> Result<(), String> {
    access(path, AccessFlags::W_OK).map_err(|error| format!("cannot be written ({})", error.desc()))
}

/// The end of a chain of symbolic links; nothing need be there.
fn follow(path: &Path) -> Result<PathBuf, String> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(to) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(to);
    }
    Err("too many symbolic links".to_owned())
}

/// Whether a new file can be made next to `file`: tried, since permissions do not tell all.
fn fits_beside(file: &Path) -> Result<(), String> {
    let Some(part) = part_of(file) else {
        return Err("allowed is a file in a folder that exists".to_owned());
    };
    match OpenOptions::new().write(true).create_new(true).open(&part) {
        Ok(_) => fs::remove_file(&part).map_err(|error| error.to_string()),
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            Err("allowed is a file in a folder that exists".to_owned())
        }
        Err(error) => Err(format!("its folder cannot be written ({error})")),
    }
}

/// Where the content is gathered; `None` if `file` ends in `..` or nothing.
fn part_of(file: &Path) -> Option<PathBuf> {
    let mut name = file.file_name()?.to_owned();
    name.push(format!(".{}.part", std::process::id()));
    Some(file.with_file_name(name))
}

/// Puts a new file in the place of `file`, with the permissions and, if allowed, the owner of the old one.
fn replace(file: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let part = part_of(file).ok_or(ErrorKind::InvalidInput)?;
    let replaced = File::create(&part).and_then(|made| {
        if let Ok(old) = fs::metadata(file) {
            made.set_permissions(old.permissions())?;
            // Only root may do this; its new files belong to root anyway.
            let _ = fchown(&made, Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())));
        }
        // A disk may say that it is full no sooner than here.
        fill(made, content)?.sync_all()?;
        fs::rename(&part, file)
    });
    replaced.inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

/// Writes all of the content to `to`.
fn fill<W: Write>(to: W, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<W> {
    let mut to = BufWriter::new(to);
    content(&mut to)?;
    to.into_inner().map_err(io::IntoInnerError::into_error)
}

/// As many as the kernel follows (`path_resolution(7)`).
const LINKS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::require::has;
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A folder of its own, gone when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(label: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("ackademyd-{label}-{}", std::process::id()));
            fs::create_dir(&path).expect("a folder to write in");
            Self(path)
        }

        /// `None`, and a line that says why, where this process makes no devices.
        fn device(&self, name: &str, minor: u64) -> Option<PathBuf> {
            let path = self.0.join(name);
            let mode = Mode::from_bits_truncate(0o666);
            if let Err(error) = mknod(&path, SFlag::S_IFCHR, mode, makedev(1, minor)) {
                has("devices", &[format!("none can be made: {error}")]);
                return None;
            }
            if let Err(error) = OpenOptions::new().write(true).open(&path) {
                has("devices", &[format!("those of {path:?} do not work: {error}")]);
                return None;
            }
            Some(path)
        }

        fn entries(&self) -> usize {
            fs::read_dir(&self.0).expect("it exists").count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = umount2(&self.0, MntFlags::MNT_DETACH);
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn write(path: &Path, text: &str) -> Result<(), Error> {
        Output::new("--out", path)?.write(|out| out.write_all(text.as_bytes()))
    }

    fn complaint(path: &Path) -> String {
        let error = Output::new("--out", path).expect_err("refused");
        assert_eq!(error.exit_status(), 2);
        error.to_string()
    }

    #[test]
    fn a_device_is_written_through_and_stays() {
        let folder = Folder::new("device");
        let (Some(null), Some(full)) = (folder.device("null", 3), folder.device("full", 7)) else {
            return;
        };
        write(&null, "text").expect("it takes all");
        let error = write(&full, "text").expect_err("it takes nothing").to_string();
        assert!(error.contains("No space left") && error.lines().count() == 1, "{error}");
        for device in [null, full] {
            let about = fs::symlink_metadata(&device).expect("still there");
            assert!(about.file_type().is_char_device(), "{device:?} was replaced");
        }
        assert_eq!(folder.entries(), 2);
    }

    #[test]
    fn a_symbolic_link_stays_and_its_target_is_written() {
        let folder = Folder::new("link");
        fs::create_dir(folder.0.join("other")).expect("a folder");
        let (target, link) = (folder.0.join("other/file"), folder.0.join("link"));
        symlink("other/file", &link).expect("a link");
        symlink("link", folder.0.join("link2")).expect("a link");
        for text in ["to a file that is not there yet", "to one that is"] {
            write(&folder.0.join("link2"), text).expect("written");
            assert!(fs::symlink_metadata(&link).expect("still there").is_symlink());
            assert!(fs::symlink_metadata(&target).expect("made").is_file());
            assert_eq!(fs::read_to_string(&link).expect("readable"), text);
        }
        symlink("loop", folder.0.join("loop")).expect("a link");
        assert!(complaint(&folder.0.join("loop")).contains("symbolic links"));
    }

    #[test]
    fn a_pipe_gets_the_result() {
        let folder = Folder::new("pipe");
        let pipe = folder.0.join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::from_bits_truncate(0o600)).expect("a pipe");
        let text = std::thread::scope(|scope| {
            let reader = scope.spawn(|| fs::read_to_string(&pipe).expect("readable"));
            write(&pipe, "text").expect("written");
            reader.join().expect("no panic")
        });
        assert_eq!(text, "text");
        assert!(fs::symlink_metadata(&pipe).expect("still there").file_type().is_fifo());
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_the_work() {
        let folder = Folder::new("refused");
        assert!(complaint(&folder.0).contains("this is a folder"));
        assert!(complaint(&folder.0.join("none/file")).contains("in a folder that exists"));
        assert!(complaint(&folder.0.join("..")).contains("this is a folder"));
        assert!(complaint(Path::new("/proc/result")).contains("--out /proc/result: "));
        assert_eq!(folder.entries(), 0, "nothing is left of the check");
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_and_says_so_in_a_line() {
        let folder = Folder::new("full");
        let small =
            mount(Some("tmpfs"), &folder.0, Some("tmpfs"), MsFlags::empty(), Some("size=64k"));
        if let Err(error) = small {
            has("devices", &[format!("no file system can be mounted: {error}")]);
            return;
        }
        let file = folder.0.join("file");
        write(&file, "old").expect("it fits");
        let error = write(&file, &"x".repeat(1 << 20)).expect_err("it does not fit").to_string();
        assert!(error.contains("No space left") && error.lines().count() == 1, "{error}");
        assert_eq!(fs::read_to_string(&file).expect("still there"), "old");
        assert_eq!(folder.entries(), 1, "nothing is left of the check");
    }

    #[test]
    fn a_file_keeps_its_permissions() {
        let folder = Folder::new("mode");
        let file = folder.0.join("file");
        fs::write(&file, "old").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("ours");
        write(&file, "new").expect("written");
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&file).expect("there"), "new");
    }
}
