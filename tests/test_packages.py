"""What is released: metadata, addresses, pinned actions, crates, Debian package, container."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import release

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
VERSION = PROJECT["project"]["version"]
ADDRESS = "https://example.org/owner/name"
FILES = ("pyproject.toml", "README.md", "Cargo.toml", "crates/core/Cargo.toml",
         "crates/prefetch/Cargo.toml")  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that a release changes."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_one_version_is_in_every_file_that_has_one() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert cargo["workspace"]["package"]["version"] == VERSION
    assert f"\nversion: {VERSION}\n" in citation
    init = (ROOT / "python/ackademy/__init__.py").read_text("utf-8")
    assert f'__version__ = "{VERSION}"' in init


def test_while_nobody_has_chosen_an_address_nothing_has_one() -> None:
    assert PROJECT["tool"]["ackademy"]["address"] == ""
    assert "urls" not in PROJECT["project"]
    relative = [link[2] for link in release.LINK.findall((ROOT / "README.md").read_text("utf-8"))]
    assert not any(link.startswith("https://github.com") for link in relative)


def test_a_release_makes_links_absolute_and_fills_in_the_addresses(checkout: Path) -> None:
    before = (checkout / "README.md").read_text("utf-8")
    assert release.prepare(checkout, ADDRESS, f"v{VERSION}") is None
    text = (checkout / "README.md").read_text("utf-8")
    blocks = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
    assert blocks.findall(text) == blocks.findall(before)
    prose = blocks.sub("", text)
    targets = [link[2] for link in release.LINK.findall(prose)]
    targets += re.findall(r'(?:src|href)="([^"]+)"', prose)
    assert len(targets) > 5
    assert [own for own in targets if not re.match(r"https://|#", own)] == []
    for own in targets:
        if own.startswith(f"{ADDRESS}/"):
            kind, tag, path = own.removeprefix(f"{ADDRESS}/").split("/", 2)
            assert tag == f"v{VERSION}"
            assert (ROOT / path.partition("#")[0]).exists(), own
            assert (kind == "raw") == path.endswith((".svg", ".png"))
    project = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["urls"]["Repository"] == ADDRESS
    assert project["tool"]["ackademy"]["address"] == ADDRESS
    core = tomllib.loads((checkout / "crates/core/Cargo.toml").read_text("utf-8"))
    assert core["package"]["repository"] == {"workspace": True}
    cargo = tomllib.loads((checkout / "Cargo.toml").read_text("utf-8"))
    assert cargo["workspace"]["package"]["repository"] == ADDRESS


@pytest.mark.parametrize(
    ("address", "tag", "word"),
    [
        ("", f"v{VERSION}", "address = ''"),
        ("http://e.org/a", f"v{VERSION}", "address"),
        ("https://e.org", f"v{VERSION}", "address"),
        (ADDRESS, "v9.9.9", "tag = 'v9.9.9'"),
        (ADDRESS, VERSION, "tag"),
    ],
)
def test_a_wrong_address_or_tag_is_one_line_and_changes_nothing(
    checkout: Path, address: str, tag: str, word: str
) -> None:
    before = {name: (checkout / name).read_bytes() for name in FILES}
    told = release.prepare(checkout, address, tag)
    assert told is not None
    assert word in told
    assert "allowed" in told
    assert "\n" not in told
    assert {name: (checkout / name).read_bytes() for name in FILES} == before


def test_actions_are_pinned_by_hash_with_their_version() -> None:
    used = [
        line.strip()
        for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"\buses:", line)
    ]
    assert len(used) > 8
    pinned = re.compile(r"(- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+(\.\d+){2}")
    assert [line for line in used if not pinned.fullmatch(line)] == []


def test_paths_of_the_release_and_of_the_container_exist() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    docker = (ROOT / "Dockerfile").read_text("utf-8")
    named = re.findall(r"\b((?:tools|packaging|crates|docs)/[\w./-]+\w)", text + docker)
    assert len(named) >= 5
    assert [path for path in named if not (ROOT / path).exists()] == []
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", docker, re.MULTILINE))
    assert {"demo", "lab", "ackademyd"} <= stages
    assert set(re.findall(r"--from=(\w+)", docker)) <= stages
    for path in re.findall(r"^COPY (?!--from)(.+) \S+$", docker, re.MULTILINE):
        assert all((ROOT / own).exists() for own in path.split()), path


def test_a_source_distribution_builds_with_the_versions_of_the_lock(tmp_path: Path) -> None:
    maturin = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    subprocess.run(maturin, cwd=ROOT, capture_output=True, check=True)
    (made,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(made, tmp_path)
    (tree,) = (path for path in tmp_path.iterdir() if path.is_dir())
    options = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["tool"]["maturin"]
    assert "locked" not in options, "the lock has crates that the source distribution lacks"
    command = ["cargo", "metadata", "--offline", "--format-version", "1"]
    subprocess.run(command, cwd=tree, capture_output=True, check=True)
    versions = [
        {(own["name"], own["version"]) for own in tomllib.loads(text.read_text())["package"]}
        for text in (tree / "Cargo.lock", ROOT / "Cargo.lock")
    ]
    assert versions[0] <= versions[1]


def test_the_crate_has_its_sources_readme_and_licences_and_no_test() -> None:
    command = ["cargo", "package", "--list", "--allow-dirty", "--offline", "-p", "ackademy"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    files = done.stdout.split()
    assert {"README.md", "LICENSE-MIT", "LICENSE-APACHE", "build.rs", "src/lib.rs"} <= set(files)
    assert not any(name.startswith(("tests/", "benches/", "data/")) for name in files)


def test_the_readme_of_the_crate_has_the_example_that_rustdoc_runs() -> None:
    (shown,) = re.findall(r"```rust\n(.*?)```", (ROOT / "crates/core/README.md").read_text(), re.S)
    library = (ROOT / "crates/core/src/lib.rs").read_text("utf-8")
    (ran,) = re.findall(r"//! ```\n(.*?)//! ```", library, re.DOTALL)
    assert re.sub(r"^//! ?", "", ran, flags=re.MULTILINE) == shown


def test_the_debian_package_has_program_unit_pages_and_licences(tmp_path: Path) -> None:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("needs deb: dpkg-deb")
    program = tmp_path / "ackademyd"
    program.write_text('#!/bin/sh\ncase $1 in man) touch "$3/ackademyd.1";; esac\n')
    program.chmod(0o755)
    command = [ROOT / "packaging/deb.sh", program, VERSION, "amd64", tmp_path]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert made == f"{tmp_path}/ackademyd_{VERSION}_amd64.deb"
    shown = subprocess.run(["dpkg-deb", "-c", made], capture_output=True, text=True, check=True)
    for name in (
        "./usr/bin/ackademyd",
        "./lib/systemd/system/ackademyd.service",
        "./usr/share/doc/ackademyd/copyright",
        "./usr/share/man/man1/ackademyd.1.gz",
    ):
        assert re.search(rf"root/root .* {re.escape(name)}$", shown.stdout, re.MULTILINE), name
    unpacked = tmp_path / "unpacked"
    subprocess.run(["dpkg-deb", "-x", made, unpacked], check=True)
    unit = (unpacked / "lib/systemd/system/ackademyd.service").read_text("utf-8")
    assert "ExecStart=/usr/bin/ackademyd " in unit
    (page,) = re.findall(r"^Documentation=file://(\S+)$", unit, re.MULTILINE)
    assert (unpacked / page.lstrip("/")).is_file()
