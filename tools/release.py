"""Prepares a checkout for a release: what needs the public address gets it.

Links and images of README.md become absolute, so that it reads the same on a package index, and
pyproject.toml and Cargo.toml get the addresses of repository, documentation and issues. The release
job runs this in its own checkout; nothing of it is committed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")
ADDRESS = re.compile(r"https://[\w.-]+(/[\w.-]+)+")
IMAGES = (".svg", ".png")


def main() -> None:
    """Change the files below the current folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="https://HOST/OWNER/NAME; '' takes that of pyproject.toml")
    parser.add_argument("tag", help="v and the version, as v0.1.0")
    given = parser.parse_args()
    sys.exit(prepare(ROOT, given.address, given.tag))


def prepare(root: Path, address: str, tag: str) -> str | None:
    """Change the files below a folder; what is wrong, if something is."""
    pyproject = root / "pyproject.toml"
    found = tomllib.loads(pyproject.read_text("utf-8"))
    address = (address or found["tool"]["ackademy"]["address"]).rstrip("/")
    if not ADDRESS.fullmatch(address):
        return f"address = {address!r}: allowed: https://HOST/OWNER/NAME, here or in pyproject.toml"
    if tag != f"v{found['project']['version']}":
        return f"tag = {tag!r}: allowed: v{found['project']['version']}, as pyproject.toml has it"
    readme = root / "README.md"
    readme.write_text(absolute(readme.read_text("utf-8"), address, tag), "utf-8")
    urls = "".join(f'{name} = "{url}"\n' for name, url in urls_of(address, tag).items())
    text = pyproject.read_text("utf-8")
    text = re.sub(r'^address = ""$', f'address = "{address}"', text, flags=re.MULTILINE)
    pyproject.write_text(
        text.replace("[project.scripts]\n", f"[project.urls]\n{urls}\n[project.scripts]\n", 1),
        "utf-8",
    )
    cargo = root / "Cargo.toml"
    text = cargo.read_text("utf-8")
    head = "[workspace.package]\n"
    cargo.write_text(text.replace(head, f'{head}repository = "{address}"\n', 1), "utf-8")
    for name in ("core", "prefetch"):
        own = root / "crates" / name / "Cargo.toml"
        text = own.read_text("utf-8")
        line = "license.workspace = true\n"
        own.write_text(text.replace(line, f"{line}repository.workspace = true\n", 1), "utf-8")
    return None


def urls_of(address: str, tag: str) -> dict[str, str]:
    """What a package index shows beside the description."""
    return {
        "Repository": address,
        "Documentation": f"{address}/blob/{tag}/docs/README.md",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def absolute(text: str, address: str, tag: str) -> str:
    """A page of the root with absolute links; blocks of code stay as they are."""

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        return f"{mark}[{LINK.sub(link, words)}]({moved(target, address, tag)})"

    def attribute(found: re.Match[str]) -> str:
        return f'{found[1]}="{moved(found[2], address, tag)}"'

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    for index in range(0, len(parts), 2):
        own = LINK.sub(link, parts[index])
        parts[index] = re.sub(r'\b(src|href|srcset)="([^"]+)"', attribute, own)
    return "".join(parts)


def moved(target: str, address: str, tag: str) -> str:
    """A relative link as an absolute one."""
    if re.match(r"[a-z]+:|#", target):
        return target
    kind = "raw" if target.partition("#")[0].endswith(IMAGES) else "blob"
    return f"{address}/{kind}/{tag}/{target}"


if __name__ == "__main__":
    main()
