"""Inputs of a bounded size; outputs that are written whole, through links and into devices."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from ackademy import _core, files
from ackademy.backends.distributions import read as read_distribution
from ackademy.backends.runs import read_text
from ackademy.backends.schemes import of_folder
from ackademy.envs import agent_settings
from ackademy.errors import AckademyError, FileError
from ackademy.toml_table import TomlTable


def device(path: Path, major: int, minor: int) -> Path:
    """A node of our own of a device; skips where none can be made."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        with path.open("rb"):
            pass
    except OSError as error:
        pytest.skip(f"needs devices: none can be made here: {error}")
    return path


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_in_one_step_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")
    target.chmod(0o640)
    before = target.stat().st_ino
    files.write(target, "new")
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("new", 0o640)
    assert target.stat().st_ino != before
    assert left(tmp_path) == ["out.csv"]


def test_what_a_link_names_is_replaced_and_not_the_link(tmp_path: Path) -> None:
    target, link = tmp_path / "far" / "real.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    files.write(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_link_to_nothing_makes_the_file_that_it_names(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "later" / "real.csv")
    files.check_output(link)
    files.write(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "later" / "real.csv").read_text() == "new"


def test_a_device_is_written_through_and_stays_a_device(tmp_path: Path) -> None:
    null = device(tmp_path / "null", 1, 3)
    files.check_output(null)
    files.write(null, "gone")
    assert stat.S_ISCHR(null.stat().st_mode)


def test_a_full_device_is_one_line_and_stays_a_device(tmp_path: Path) -> None:
    full = device(tmp_path / "full", 1, 7)
    with pytest.raises(FileError, match=r"^cannot write .*full: No space left on device$"):
        files.write(full, "too much")
    assert stat.S_ISCHR(full.stat().st_mode)
    assert left(tmp_path) == ["full"]


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    files.write(pipe, "for a reader")
    reader.join(timeout=10)
    assert got == ["for a reader"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")

    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        write(descriptor, data[:2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(FileError, match=r"out\.csv: No space left on device"):
        files.write(target, "new")
    assert (target.read_text(), left(tmp_path)) == ("old", ["out.csv"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda here: here, "it is a folder; allowed: a file"),
        (lambda here: here / "file" / "out.csv", "is not a folder"),
        (lambda here: here / "circle", "Too many levels of symbolic links"),
        (lambda here: Path("/proc/nowhere/out.csv"), "/proc"),
        (lambda here: here / ("x" * 300) / "out.csv", "File name too long"),
        (lambda here: Path("\0"), "null"),
    ],
)
def test_an_output_that_cannot_be_written_is_found_before_the_work(
    tmp_path: Path, make: object, message: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    path = make(tmp_path)  # type: ignore[operator]
    for attempt in (files.check_output, lambda target: files.write(target, "x")):
        with pytest.raises(FileError, match=r"^cannot write ") as caught:
            attempt(path)
        assert message in str(caught.value) or "/proc" in message
        assert "\n" not in str(caught.value)


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    files.check_output(tmp_path / "new" / "folder" / "out.csv")
    files.check_output_folder(tmp_path / "other")
    assert left(tmp_path) == []


def test_two_outputs_may_not_be_one_file(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to("out.csv")
    with pytest.raises(FileError, match="a different file for each output"):
        files.check_outputs([tmp_path / "out.csv", None, tmp_path / "link.csv"])


READERS = {
    "scenario": lambda path: read_text(path),
    "distribution": read_distribution,
    "experiment, suite, card": TomlTable.read,
    "agent_settings": agent_settings.settings_text,
    "policy": lambda path: of_folder(path.parent),
    "policy of a network": lambda path: _core.Policy.open(path.parent),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("what", ["pipe", "device", "folder", "huge"])
def test_an_input_that_may_never_end_is_refused(tmp_path: Path, kind: str, what: str) -> None:
    path = tmp_path / "policy.toml"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        device(path, 1, 5)
    elif what == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises((AckademyError, ValueError)) as caught:
        READERS[kind](path)  # type: ignore[no-untyped-call]
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


HARMLESS = ("deep_buffer-7", "CUBIC (RFC 9438)", "CUBIC, learned β", "case 1, 3.5 %", "a" * 200)
HARMFUL = (
    "/tmp/evil",
    "-tmp-evil",
    "../../evil",
    "..",
    ".",
    "",
    ".hidden",
    "-option",
    "a/b",
    "a\\b",
    "c:b",
    "a\nb",
    "a\0b",
    "a\x1b[2Jb",
    "a\ud800",
    "a" * 201,
    "b" + "a" * 100_000,
    "β" * 150,
    "β" * 151,
    "x~0123456789abcdef",
)


def test_a_name_is_one_file_in_its_folder(tmp_path: Path) -> None:
    for name in HARMLESS:
        assert files.file_name(name) == name
    found = [files.file_name(name) for name in HARMFUL]
    again = [files.file_name(name) for name in found]
    assert len({*HARMLESS, *found, *again}) == len(HARMLESS) + 2 * len(HARMFUL)
    for own in found:
        files.write(tmp_path / f"{own}.toml", "")
        assert own.isprintable()
        assert own[0] not in ".- "
    assert left(tmp_path) == sorted(f"{own}.toml" for own in found)


NOBODY = 65534


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of another user, beside a folder `ours` of root with the file `secret`."""
    if os.geteuid() != 0:
        pytest.skip("needs devices: root alone makes folders of other users")
    ours, folder = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    (ours / "secret").write_text("of root")
    (ours / "secret").chmod(0o600)
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    return folder


def plant(target: Path, link: Path) -> None:
    """A link of the other user."""
    link.symlink_to(target)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)


def untouched(ours: Path) -> bool:
    about = (ours / "secret").lstat()
    whole = (stat.S_IMODE(about.st_mode), about.st_uid) == (0o600, 0)
    return whole and left(ours) == ["secret"] and (ours / "secret").read_text() == "of root"


@pytest.mark.parametrize("name", ["file", "folder/secret", "folder/new", "new", "by_root"])
def test_an_output_follows_no_link_of_another_user(theirs: Path, name: str) -> None:
    ours = theirs.parent / "ours"
    plant(ours / "secret", theirs / "file")
    plant(ours, theirs / "folder")
    plant(ours / "new", theirs / "new")
    (theirs / "by_root").symlink_to(theirs / "file")
    for attempt in (files.check_output, lambda target: files.write(target, "x")):
        with pytest.raises(FileError, match="is a symbolic link of user 65534; allowed: your own"):
            attempt(theirs / name)
    with pytest.raises(FileError, match="is a symbolic link of user 65534"):
        files.check_output_folder(theirs / "folder")
    assert untouched(ours)


def test_what_another_user_puts_into_the_folder_during_the_work_leads_nowhere(
    theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, out, write = theirs.parent / "ours", theirs / "out", os.write
    out.write_text("old")
    out.chmod(0o4666)

    def planting(descriptor: int, data: bytes) -> int:
        for path in theirs.iterdir():
            path.unlink()
            plant(ours / "secret", path)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", planting)
    files.write(out, "result")
    assert untouched(ours)


def test_a_new_file_takes_the_old_ones_permissions_without_its_set_user_id(theirs: Path) -> None:
    out = theirs / "out"
    out.write_text("old")
    out.chmod(0o4755)
    files.write(out, "new")
    assert (stat.S_IMODE(out.stat().st_mode), left(theirs)) == (0o755, ["out"])


def test_root_reads_through_another_users_link_that_users_files_alone(theirs: Path) -> None:
    own = theirs / "own"
    own.write_text("theirs")
    os.chown(own, NOBODY, NOBODY)
    plant(own, theirs / "link")
    plant(theirs.parent / "ours" / "secret", theirs / "policy.toml")
    assert files.read_text(theirs / "link") == "theirs"
    with pytest.raises(FileError, match="of user 65534 to a file of user 0, which root") as caught:
        files.read_text(theirs / "policy.toml")
    assert "of root" not in str(caught.value)
    with pytest.raises(ValueError, match="of user 65534 to a file of user 0, which root"):
        _core.Policy.open(theirs)
