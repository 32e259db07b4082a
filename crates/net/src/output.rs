//! Where results go: standard output, files that appear whole or not at all, and special files.
use crate::error::Error;
use crate::paths::{self, Link};
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, Gid, Uid, UnlinkatFlags, access, fchown, unlinkat};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
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
    Special(PathBuf),
    /// A file, or a name for one; no symbolic link is on its path.
    File(PathBuf),
}

impl Output {
    /// Checks that `path` can be written, before the work that makes the result. `-` is standard
    /// output. A symbolic link of this user or of root stands for what it leads to; others' links are refused. `option`
    /// named the path.
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
            Target::Special(path) => {
                special(path).and_then(|special| fill(special, content).map(drop))
            }
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
    let resolved = paths::resolve(path).map_err(|error| match error.kind() {
        ErrorKind::NotADirectory => NO_FOLDER.to_owned(),
        _ => error.to_string(),
    })?;
    if let Some(Link { path, owner }) = resolved.strangers.first() {
        return Err(format!(
            "`{}` is a symbolic link of user {owner}; allowed are links of your own and of root",
            path.display()
        ));
    }
    let path = resolved.path;
    match fs::metadata(&path) {
        Ok(about) if about.is_dir() => Err("allowed is a file, this is a folder".to_owned()),
        Ok(about) if about.file_type().is_socket() => {
            Err("allowed is a file, this is a socket".to_owned())
        }
        Ok(about) if !about.is_file() => writable(&path).map(|()| Target::Special(path)),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.to_string()),
        found => {
            found.map_or(Ok(()), |_| writable(&path))?;
            fits_beside(&path)?;
            Ok(Target::File(path))
        }
    }
}

fn writable(path: &Path) -> Result<(), String> {
    access(path, AccessFlags::W_OK).map_err(|error| format!("cannot be written ({})", error.desc()))
}

/// Whether a new file can be made next to `file`: tried, since permissions do not tell all.
fn fits_beside(file: &Path) -> Result<(), String> {
    let tried = beside(file).and_then(|(folder, _)| {
        let part = part_name();
        create(&folder, &part, PRIVATE)?;
        Ok(unlinkat(&folder, part.as_str(), UnlinkatFlags::NoRemoveDir)?)
    });
    tried.map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput => {
            NO_FOLDER.to_owned()
        }
        _ => format!("its folder cannot be written ({error})"),
    })
}

/// The folder of `file`, and its name there.
fn beside(file: &Path) -> io::Result<(File, &OsStr)> {
    let (folder, name) = file.parent().zip(file.file_name()).ok_or(ErrorKind::InvalidInput)?;
    Ok((paths::open(folder, OFlag::O_DIRECTORY | OFlag::O_PATH)?, name))
}

/// A name that nobody can guess, and put a link there before the file.
fn part_name() -> String {
    format!(".ackademyd-{:016x}.part", RandomState::new().build_hasher().finish())
}

/// Makes a file that was not there.
fn create(folder: &File, name: &str, mode: Mode) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
    Ok(File::from(openat(folder, name, flags | OFlag::O_CLOEXEC, mode)?))
}

/// Puts a new file in the place of `file`, with the permissions and, if allowed, the owner of the old one. All is asked of
/// open files: names in a folder of another user may mean another file a moment later.
fn replace(file: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let (folder, name) = beside(file)?;
    let old =
        openat(&folder, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty());
    let old =
        old.ok().and_then(|old| File::from(old).metadata().ok()).filter(fs::Metadata::is_file);
    let part = part_name();
    let made = create(&folder, &part, if old.is_some() { PRIVATE } else { USUAL })?;
    let replaced = fill(made, content).and_then(|made| {
        if let Some(old) = &old {
            // Only root may do this; its new files belong to root anyway.
            let _ = fchown(&made, Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())));
            made.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
        }
        // A disk may say that it is full no sooner than here.
        made.sync_all()?;
        Ok(renameat(&folder, part.as_str(), &folder, name)?)
    });
    replaced.inspect_err(|_| {
        let _ = unlinkat(&folder, part.as_str(), UnlinkatFlags::NoRemoveDir);
    })
}

/// Opens a device or a pipe; a file that is there by now is left alone.
fn special(path: &Path) -> io::Result<File> {
    let opened = if path.starts_with("/proc") {
        OpenOptions::new().write(true).open(path)? // through a link of the kernel's
    } else {
        paths::open(path, OFlag::O_WRONLY | OFlag::O_NOCTTY)?
    };
    if opened.metadata()?.is_file() {
        return Err(io::Error::other("it was a device or a pipe, and is a file now"));
    }
    Ok(opened)
}

/// Writes all of the content to `to`.
fn fill<W: Write>(to: W, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<W> {
    let mut to = BufWriter::new(to);
    content(&mut to)?;
    to.into_inner().map_err(io::IntoInnerError::into_error)
}

const NO_FOLDER: &str = "allowed is a file in a folder that exists";
/// Of a file that gets the permissions of the one it replaces.
const PRIVATE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);
/// Of any other; the process's mask takes from it.
const USUAL: Mode =
    PRIVATE.union(Mode::S_IRGRP).union(Mode::S_IWGRP).union(Mode::S_IROTH).union(Mode::S_IWOTH);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::require::has;
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

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

    const NOBODY: u32 = 65_534;

    /// A folder of root with a file `secret`, and one of another user; `None`, and a line that says why, for who may not.
    fn roots_and_anothers(label: &str) -> Option<(Folder, Folder)> {
        if !nix::unistd::geteuid().is_root() {
            has("devices", &["root alone makes folders of other users".to_owned()]);
            return None;
        }
        let (ours, theirs) = (Folder::new(label), Folder::new(&format!("{label}-theirs")));
        fs::write(ours.0.join("secret"), "of root").expect("a file");
        fs::set_permissions(ours.0.join("secret"), Permissions::from_mode(0o600)).expect("ours");
        chown(&theirs.0, Some(NOBODY), Some(NOBODY)).expect("root may");
        Some((ours, theirs))
    }

    /// A link of the other user.
    fn plant(target: &Path, link: &Path) {
        symlink(target, link).expect("its name is free");
        lchown(link, Some(NOBODY), Some(NOBODY)).expect("root may");
    }

    fn assert_untouched(ours: &Folder) {
        let secret = ours.0.join("secret");
        let about = fs::symlink_metadata(&secret).expect("still there");
        assert_eq!((about.mode() & 0o7777, about.uid(), about.gid()), (0o600, 0, 0));
        assert_eq!(fs::read_to_string(&secret).expect("there"), "of root");
        assert_eq!(ours.entries(), 1, "nothing new among root's files");
    }

    #[test]
    fn a_link_of_another_user_is_refused_as_an_output_and_on_the_way_to_one() {
        let Some((ours, theirs)) = roots_and_anothers("planted") else { return };
        let (file, folder) = (theirs.0.join("file"), theirs.0.join("folder"));
        plant(&ours.0.join("secret"), &file);
        plant(&ours.0, &folder);
        plant(&ours.0.join("new"), &theirs.0.join("new"));
        symlink(&file, theirs.0.join("by_root")).expect("a link");
        for name in ["file", "folder/secret", "folder/new", "new", "by_root"] {
            let complaint = complaint(&theirs.0.join(name));
            assert!(complaint.contains("symbolic link of user 65534"), "{name}: {complaint}");
        }
        assert_untouched(&ours);
    }

    #[test]
    fn what_another_user_puts_into_the_folder_during_the_work_leads_nowhere() {
        let Some((ours, theirs)) = roots_and_anothers("during") else { return };
        let (secret, out) = (ours.0.join("secret"), theirs.0.join("out"));
        fs::write(&out, "old").expect("a file");
        fs::set_permissions(&out, Permissions::from_mode(0o4666)).expect("root may");
        chown(&out, Some(NOBODY), Some(NOBODY)).expect("root may");
        plant(&secret, &theirs.0.join(format!("out.{}.part", std::process::id())));
        let output = Output::new("--out", &out).expect("a file of the other user");
        let written = output.write(|to| {
            to.write_all(b"result")?;
            for entry in fs::read_dir(&theirs.0)? {
                let path = entry?.path();
                fs::remove_file(&path)?;
                plant(&secret, &path);
            }
            Ok(())
        });
        written.expect("another user may name files in an own folder as they like");
        assert_untouched(&ours);
    }

    #[test]
    fn a_folder_that_becomes_a_link_after_the_check_is_an_error() {
        let Some((ours, theirs)) = roots_and_anothers("swapped") else { return };
        let (folder, device) = (theirs.0.join("folder"), theirs.0.join("pipe"));
        fs::create_dir(&folder).expect("a folder");
        nix::unistd::mkfifo(&device, Mode::from_bits_truncate(0o666)).expect("a pipe");
        let outputs = [folder.join("out"), device.clone()]
            .map(|path| Output::new("--out", &path).expect("nothing is wrong yet"));
        fs::remove_dir(&folder).expect("empty");
        fs::remove_file(&device).expect("there");
        plant(&ours.0, &folder);
        plant(&ours.0.join("secret"), &device);
        for output in outputs {
            output.write(|to| to.write_all(b"result")).expect_err("it leads elsewhere now");
        }
        assert_untouched(&ours);
    }

    #[test]
    fn a_result_takes_no_more_than_permissions_and_owner_of_the_file_it_replaces() {
        let Some((_ours, theirs)) = roots_and_anothers("owner") else { return };
        let file = theirs.0.join("file");
        fs::write(&file, "old").expect("a file");
        chown(&file, Some(NOBODY), Some(NOBODY)).expect("root may");
        fs::set_permissions(&file, Permissions::from_mode(0o4755)).expect("root may");
        write(&file, "new").expect("written");
        let about = fs::metadata(&file).expect("there");
        assert_eq!((about.mode() & 0o7777, about.uid()), (0o755, NOBODY));
        assert_eq!(theirs.entries(), 1);
    }
}
