"""Files: inputs of a bounded size, outputs that are written whole or not at all.

An input is a regular file: a pipe or a device may never end. An output replaces its file in one
step, through symbolic links. What is not a regular file (a device, a pipe, the terminal) is
written through and never replaced. `check_output` finds an output that cannot be written before
any work is done.

A folder may belong to another user, whose links lead root where that user may not go. So an output
follows the links of this user and of root alone, and is made by a name that was free; root reads
through another user's link that user's files alone, since messages quote what is wrong in a file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import sys
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from ackademy.errors import AckademyError, FileError

TEXT_BYTES_MAX = 1 << 24
"""of a scenario, a TOML file or a Python file: as `ackademyd lab` has it"""
TABLE_BYTES_MAX = 1 << 28
"""of a CSV file"""
PAGE_ENDINGS = (".html", ".htm")
"""of the names of reports"""
NAME_BYTES_MAX = 200
"""of a file that has the name of something else: file systems take 255 with its ending"""
LINKS_MAX = 40
"""as many as Linux follows"""
SEPARATORS = "/\\:"
"""of paths, on any system"""


def file_name(name: str) -> str:
    """A name out of a file, such as a scenario's, as the name of one file without its ending.

    Most names stay as they are. One that could lead out of a folder, hide the file or be no file's
    name loses what does so, and gets `~` and a digest. Distinct names stay distinct.

    Args:
        name: any text.

    Returns:
        At most `NAME_BYTES_MAX` bytes of UTF-8: printable, without separators of paths, not empty,
        not beginning with a dot, a hyphen or a space.
    """
    kept = "".join("-" if own in SEPARATORS or not own.isprintable() else own for own in name)
    kept = kept.lstrip(".- ")  # hidden, or an option of a command
    short = kept.encode()[:NAME_BYTES_MAX].decode(errors="ignore")
    if short == name and name and "~" not in name:
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]
    most = NAME_BYTES_MAX - len(digest) - 1
    return f"{short.encode()[:most].decode(errors='ignore').replace('~', '-')}~{digest}"


def read_bytes(
    path: Path, bytes_max: int = TEXT_BYTES_MAX, error: type[AckademyError] = FileError
) -> bytes:
    """The content of a regular file.

    Args:
        path: the file, or a symbolic link to it.
        bytes_max: size that is refused above.
        error: the class of what is raised.

    Raises:
        AckademyError: if it cannot be read, is not a regular file or is too large; one line.
    """
    try:
        # Without waiting: the opening of a pipe ends when somebody writes to it.
        descriptor, strangers = _open_input(path)
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise error(f"{path}: allowed: a regular file of at most {bytes_max} bytes")
            for link, owner in strangers:
                if owner != about.st_uid:
                    raise error(
                        f"{path}: {link} is a symbolic link of user {owner} to a file of user "
                        f"{about.st_uid}, which root does not follow"
                    )
            content = file.read(bytes_max + 1)
    except OSError as fault:
        raise error(f"{path}: {fault.strerror or fault}") from fault
    except ValueError as fault:  # a null byte in the name
        raise error(f"{str(path)!r}: {fault}") from fault
    if len(content) > bytes_max:
        raise error(f"{path}: allowed: a regular file of at most {bytes_max} bytes")
    return content


def read_text(
    path: Path, bytes_max: int = TEXT_BYTES_MAX, error: type[AckademyError] = FileError
) -> str:
    """The content of a regular file of UTF-8 text, every line end a line feed.

    A byte order mark at its head is skipped, as by the core's reader of TOML.

    Args:
        path: the file, or a symbolic link to it.
        bytes_max: size that is refused above.
        error: the class of what is raised.

    Raises:
        AckademyError: as `read_bytes`, or if it is not text.
    """
    content = read_bytes(path, bytes_max, error)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise error(f"{path}: byte {fault.start} is not UTF-8; allowed: text") from fault
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; folders above it are made.

    The file that a symbolic link names is replaced, not the link. What is not a regular file is
    written through.

    Raises:
        FileError: if it cannot be written; what was there is still there.
    """
    with streamed(path) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


class Stream:
    """A file that is written in parts; `streamed` makes it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor

    def write(self, data: bytes) -> int:
        """Write all of `data`.

        Raises:
            FileError: if it cannot be written.
        """
        with _explained(self._path):
            _write_all(self._descriptor, data)
        return len(data)


@contextlib.contextmanager
def streamed(path: Path) -> Iterator[Stream]:
    """As `write`, in parts: the file is there when the block ends, unless it raises.

    Raises:
        FileError: if it cannot be written; what was there is still there.
    """
    with contextlib.ExitStack() as stack:
        with _explained(path):
            target = _target(path)
            is_file = not target.exists() or target.is_file()
            way = _replacing if is_file and not _is_printed_on(target) else _through
            descriptor = stack.enter_context(way(target))
        yield Stream(path, descriptor)
        with _explained(path):
            stack.close()


def check_output(path: Path | None) -> None:
    """Find out, before the work, whether `write` could write here; `None` is fine.

    Raises:
        FileError: if it could not.
    """
    if path is None:
        return
    if str(path) == "-":
        raise FileError("cannot write -: allowed: a file; - is stdout for --json and --csv alone")
    try:
        target = _target(path)
        if target.exists() and not target.is_file():
            if not os.access(target, os.W_OK):
                raise PermissionError(13, "Permission denied")
            return
        _probe(target.parent)
    except (OSError, ValueError) as fault:
        raise _cannot_write(path, fault) from fault


def check_ending(path: Path, endings: tuple[str, ...]) -> Path:
    """The path of an output, its `~` replaced, unless its name ends like another kind of file.

    Args:
        path: of the output; without an ending, or no regular file such as `/dev/stdout`, it is
            accepted.
        endings: those of the kind, with their dots, in lower case.

    Raises:
        FileError: naming the endings that are allowed.
    """
    found = Path(os.path.expanduser(path))
    is_other = found.suffix and found.suffix.lower() not in endings
    if is_other and (not os.path.exists(found) or os.path.isfile(found)):
        raise FileError(f"{path}: allowed: a file that ends in {' or '.join(endings)}")
    return found


def check_outputs(paths: Iterable[Path | None]) -> None:
    """`check_output` of each, and refuse one file for two outputs.

    Raises:
        FileError: if one could not be written, or two are one.
    """
    seen: dict[Path, Path] = {}
    for path in paths:
        check_output(path)
        if path is None:
            continue
        target = Path(os.path.realpath(path))
        if target in seen and not (target.exists() and not target.is_file()):
            raise FileError(f"{path}: allowed: a different file for each output")
        seen[target] = path


def check_output_folder(path: Path | None) -> None:
    """Find out, before the work, whether files could be written into a folder; `None` is fine.

    Raises:
        FileError: if not.
    """
    if path is None:
        return
    try:
        target = _resolve_own(path)
        if target.exists() and not target.is_dir():
            raise FileError(f"cannot write {path}: allowed: a folder")
        _probe(target)
    except (OSError, ValueError) as fault:
        raise _cannot_write(path, fault) from fault


def _target(path: Path) -> Path:
    """What a path means after its symbolic links; a link to nothing means what it would name.

    Raises:
        OSError: if it is a folder, the links go round in a circle, or one is another user's.
    """
    if "\0" in str(path):
        raise ValueError("a null character in its name")
    target = _resolve_own(path)
    if target.is_dir() or not target.name:
        raise IsADirectoryError(21, "it is a folder; allowed: a file")
    return target


def _resolve_own(path: Path) -> Path:
    """A path after its symbolic links, which are this user's and root's.

    Raises:
        OSError: as `_resolve`, or if one is another user's.
    """
    target, strangers = _resolve(path)
    for link, owner in strangers:
        raise PermissionError(
            errno.EACCES, f"{link} is a symbolic link of user {owner}; allowed: your own and root's"
        )
    return target


def _open_input(path: Path) -> tuple[int, list[tuple[Path, int]]]:
    """A descriptor, opened without waiting for a pipe's writer; for root the strangers' links."""
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return os.open(path, flags), []
    target, strangers = _resolve(path)
    if target.parts[:2] == ("/", "proc"):
        return os.open(target, flags), strangers
    with _opened(target.parent) as folder:
        name = target.name or "."
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder), strangers


def _resolve(path: Path) -> tuple[Path, list[tuple[Path, int]]]:
    """A path after its symbolic links, and the links that belong neither to this user nor to root.

    Links of /proc to pipes name nothing that could be opened: they stay as they are.

    Returns:
        The path, absolute; each such link with its owner.

    Raises:
        OSError: if the links go round in a circle, or a folder cannot be searched.
    """
    found, rest = Path.cwd(), [*reversed(path.parts)]
    strangers: list[tuple[Path, int]] = []
    links = 0
    while rest:
        part = rest.pop()
        at = found.parent if part == ".." else found / part
        link = None if part == ".." else _link(at)
        if link is None:
            found = at
            continue
        text, owner = link
        links += 1
        if links > LINKS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if owner not in (0, os.geteuid()):
            strangers.append((at, owner))
        to = found / text
        if not rest and at.exists() and not to.exists():
            return at, strangers
        rest.extend(reversed(Path(text).parts))
    return found, strangers


def _link(path: Path) -> tuple[str, int] | None:
    """Where a symbolic link leads, and its owner; `None`: there is no link.

    Raises:
        OSError: if its folder cannot be searched.
    """
    try:
        if not hasattr(os, "O_PATH"):
            about = path.lstat()
            return (os.readlink(path), about.st_uid) if stat.S_ISLNK(about.st_mode) else None
        # Both of one link, whatever is put in its place meanwhile.
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISLNK(about.st_mode):
            return None
        return os.readlink("", dir_fd=descriptor), about.st_uid
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A descriptor of a folder on whose path no symbolic link is, or appears.

    Raises:
        OSError: if there is one, or the folder cannot be searched.
    """
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(folder.anchor, flags)
    try:
        for part in folder.parts[1:]:
            below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _is_printed_on(target: Path) -> bool:
    """Whether it is the file that standard output goes to: replaced, it would lose what follows."""
    try:
        return os.path.samestat(target.stat(), os.fstat(1))
    except OSError:
        return False


@contextlib.contextmanager
def _through(target: Path) -> Iterator[int]:
    """A descriptor of standard output, or of what is not a regular file."""
    if _is_printed_on(target):
        sys.stdout.flush()
        yield 1
        return
    flags = os.O_WRONLY | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0)
    # Links of /proc are the kernel's own.
    own = 0 if target.parts[:2] == ("/", "proc") else os.O_NOFOLLOW
    descriptor = os.open(target, flags | own)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it was a device or a pipe, and is a file now")
        yield descriptor
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[int]:
    """A descriptor of a file that replaces another when the block ends, unless it raises."""
    _nearest(target.parent)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _opened(target.parent) as folder:
        scratch = _scratch()
        try:
            mode = os.stat(target.name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            mode = 0
        kept = stat.S_IMODE(mode) & 0o777 if stat.S_ISREG(mode) else None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        made = os.open(scratch, flags, 0o666 if kept is None else 0o600, dir_fd=folder)
        try:
            try:
                yield made
                if kept is not None:
                    os.fchmod(made, kept)
            finally:
                os.close(made)
            os.rename(scratch, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(scratch, dir_fd=folder)
            raise


def _probe(folder: Path) -> None:
    """Make a file in a folder, or in the nearest above it that is there, and remove it.

    Raises:
        OSError: if that cannot be done.
    """
    scratch = _nearest(folder) / _scratch()
    os.close(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    scratch.unlink()


def _nearest(folder: Path) -> Path:
    """A folder, or the nearest above it that is there.

    Raises:
        OSError: if that is not a folder.
    """
    while not folder.exists() and not folder.is_symlink() and folder.parent != folder:
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(20, f"{folder} is not a folder")
    return folder


def _scratch() -> str:
    return f".ackademy-{uuid.uuid4().hex[:12]}"


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say of a fault that an output cannot be written.

    Raises:
        FileError: for it.
    """
    try:
        yield
    except (OSError, ValueError) as fault:
        raise _cannot_write(path, fault) from fault


def _cannot_write(path: Path, fault: OSError | ValueError) -> FileError:
    name = str(path) if str(path).isprintable() else repr(str(path))
    words = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
    return FileError(f"cannot write {name}: {words}")
