"""Builds the documentation site in site/ from docs/, and pages of what the program says of itself.

Zensical renders a copy of docs/ in build/site. Links that leave docs/ go to the public address of
pyproject.toml (`[tool.ackademy]`); without one they become text. The pages on commands, on the
fields of files and on the Python API are written from the parsers, the JSON Schemas and the
docstrings.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import ackademy
from ackademy.cli import COMMANDS, load

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "site"
SITE = ROOT / "site"
BLOCK = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
"""of code, which has no links"""
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")
MODULES = ("ackademy.envs.flow", "ackademy.envs.parallel", "ackademy.stats.formulas")
"""whose public names the page on the Python API has, beside those of `ackademy`"""
REPORTS = {
    "run": ("run", "deep_buffer", "--cc", "cubic", "--seed", "3"),
    "compare": ("compare", "deep_buffer", "random_loss", "--cc", "cubic,bbr3,own_queue",
                "--runs", "3"),
    "sweep": ("sweep", "deep_buffer", "--cc", "cubic:beta=0.5..0.9", "--runs", "1"),
}  # fmt: skip
"""pages of studies, which the site has as they are"""


def main() -> None:
    """Write the pages, build, check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rust", type=Path, help="folder of rustdoc's pages")
    parser.add_argument("--no-reports", action="store_true", help="without pages of studies")
    given = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    parts = {"rust": given.rust, "playground": ROOT / "web" / "dist"}
    has = {name: folder for name, folder in parts.items() if folder and folder.is_dir()}
    write_pages(address(), has)
    if not given.no_reports:
        write_reports(WORK / "docs" / "results" / "reports")
    (WORK / "zensical.toml").write_text(
        config(address(), has, has_reports=not given.no_reports), "utf-8"
    )
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    built = subprocess.run(command, cwd=WORK, capture_output=True, text=True, check=False)
    if built.returncode:
        sys.exit(f"{built.stdout}{built.stderr}")
    for name, folder in has.items():
        shutil.copytree(folder, WORK / "site" / name)
    if wrong := list(faults(WORK / "site", skip=tuple(has))):
        sys.exit("\n".join(wrong))
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(WORK / "site", SITE)
    print(f"{SITE}: {len(list(SITE.rglob('*.html')))} pages; `ackademy docs` opens them")


def address() -> str:
    """The public address of the repository; empty while nobody has chosen one."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return str(found["tool"]["ackademy"]["address"]).rstrip("/")


def config(url: str, has: Mapping[str, Path], *, has_reports: bool) -> str:
    """The configuration of Zensical, without the entries of pages that there are not."""
    lines = (ROOT / "zensical.toml").read_text("utf-8").splitlines()
    absent = {f'"{name}.md"' for name in ("rust", "playground") if name not in has}
    absent |= set() if has_reports else {'"results/reports/index.md"'}
    kept = [line for line in lines if not any(page in line for page in absent)]
    text = "\n".join(kept) + "\n"
    # Not as `repo_url`: for that Zensical asks the host for numbers at run time.
    return text.replace("\n]\n", f'\n  {{ "Source" = "{url}" }},\n]\n', 1) if url else text


def write_pages(url: str, has: Mapping[str, Path]) -> None:
    """The pages of docs/, and those that are written from the program."""
    docs = WORK / "docs"
    shutil.copytree(ROOT / "docs", docs)
    (docs / "README.md").rename(docs / "index.md")
    for page in docs.rglob("*.md"):
        place = page.relative_to(docs).as_posix()
        text = page.read_text("utf-8")
        page.write_text(
            rewritten(text, "README.md" if place == "index.md" else place, url), "utf-8"
        )
    made = {
        "reference/commands.md": commands(),
        "reference/python.md": python_api(),
        **{f"reference/files/{kind}.md": fields(kind) for kind in kinds()},
        **{f"{name}.md": frame(name) for name in has},
    }
    for name, text in made.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def frame(name: str) -> str:
    """A page that leads to pages of another program."""
    title = {"rust": "Rust API", "playground": "Playground"}[name]
    target = {"rust": "rust/ackademy/index.html", "playground": "playground/index.html"}[name]
    return f'# {title}\n\n<a href="{target}">Open the {title}</a>\n'


def rewritten(text: str, page: str, url: str) -> str:
    """A page with its links as the site has them.

    Args:
        text: of the page.
        page: its path below docs/.
        url: public address; empty for none.
    """

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        path, sharp, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return found[0]
        place = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
        if place.startswith("docs/") and (ROOT / place).is_file():
            own = re.sub(r"(^|/)README\.md$", r"\1index.md", path)
            return f"{mark}[{words}]({own}{sharp}{anchor})"
        return f"[{words}]({url}/blob/main/{place})" if url else words

    parts = BLOCK.split(text)
    return "".join(part if index % 2 else LINK.sub(link, part) for index, part in enumerate(parts))


def commands() -> str:
    """The page on all commands: what `--help` says."""
    lines = [
        "# Commands",
        "",
        "Every command with its arguments and options, as `--help` prints.",
        "",
    ]
    for name in sorted(COMMANDS):
        lines += [f"## {name}", "", *command(f"ackademy {name}", load(name))]
    return "\n".join(lines) + "\n"


def command(name: str, own: Any) -> list[str]:  # noqa: ANN401
    """A command, or the commands of a group."""
    lines: list[str] = []
    help_text = str(own.help or "").replace("\b", "")
    about, _, examples = help_text.partition("Examples:")
    lines += [about.strip(), ""]
    for below, inner in getattr(own, "commands", {}).items():
        lines += [f"### {name.partition(' ')[2]} {below}", "", *command(f"{name} {below}", inner)]
    shown = [line.strip() for line in examples.splitlines() if line.strip()]
    lines += ["```sh", *shown, "```", ""] if shown else []
    rows = [row(param) for param in own.params if param.name != "help"]
    head = ["| | | default |", "|---|---|---|"]
    return lines + ([*head, *rows, ""] if rows else [])


def row(param: Any) -> str:  # noqa: ANN401
    """An argument or option as a row of a table."""
    names = ", ".join(f"`{name}`" for name in [*param.opts, *param.secondary_opts])
    is_option = param.opts[0].startswith("-")
    annotation = param.type_descriptor.annotation
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    shown = names if is_option else f"`{(param.metavar or param.name).upper()}`"
    kind = f" `{'|'.join(map(str, choices))}`" if choices else ""
    about = " ".join(str(getattr(param, "help", "") or "").split())
    default = "" if param.default in (None, (), "", False) or callable(param.default) else (
        f"`{param.default}`"
    )  # fmt: skip
    cells = f"{shown}{kind}", about, "required" if param.required else default
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def kinds() -> list[str]:
    """The kinds of files that have a schema."""
    found = (ROOT / "data" / "schemas").glob("*.schema.json")
    return sorted(path.name.partition(".")[0] for path in found)


def fields(kind: str) -> str:
    """The page on the fields of a kind of files, from its schema."""
    text = (ROOT / "data" / "schemas" / f"{kind}.schema.json").read_text("utf-8")
    schema = json.loads(text)
    own = {key: value for key, value in schema.items() if key != "$defs"}
    lines = [
        f"# Fields: {kind}",
        "",
        f"Every field of a {kind} file, as `ackademy schema {kind}` prints.",
        "",
    ]
    below = schema.get("$defs", {}).items()
    found = [*tables_of("The file", own)]
    found += [each for name, inner in below for each in tables_of(name, inner)]
    for title, table in found:
        lines += [f"## {title}", ""]
        about = str(table.get("description", ""))
        lines += [about, ""] if about and title != "The file" else []
        lines += ["| field | value | default | what |", "|---|---|---|---|"]
        needed = table.get("required", ())
        for name, field in table["properties"].items():
            default = "required" if name in needed else shown_default(field)
            about = " ".join(str(field.get("description", "")).split())
            cells = f"`{name}`", value_of(field), default, about
            lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
        lines.append("")
    return "\n".join(lines)


def tables_of(title: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tables of a schema, those of its choices too."""
    if table.get("properties"):
        yield title, table
    for index, choice in enumerate((*table.get("oneOf", ()), *table.get("anyOf", ()))):
        if "properties" in choice:
            kind = choice["properties"].get("kind", {}).get("const")
            yield f"{title}: {kind or choice.get('title') or index + 1}", choice


def value_of(field: Any) -> str:  # noqa: ANN401
    """What a field may be, in a few words."""
    if not isinstance(field, dict):
        return ""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"{name}"
    if "const" in field or "enum" in field:
        return ", ".join(f"`{own}`" for own in field.get("enum", [field.get("const")]))
    choices = [own for own in (*field.get("anyOf", ()), *field.get("oneOf", ()))]
    if choices:
        named = (value_of(own) for own in choices if own.get("type") != "null")
        return " or ".join(dict.fromkeys(filter(None, named)))
    kind = field.get("type", "")
    kind = next(own for own in kind if own != "null") if isinstance(kind, list) else kind
    if kind == "array":
        return f"list of {value_of(field.get('items')) or 'values'}"
    words = {"integer": "whole number", "number": "number", "string": "text", "boolean": "switch",
             "object": "table"}.get(kind, "")  # fmt: skip
    low, high = field.get("minimum", field.get("exclusiveMinimum")), field.get("maximum")
    return f"{words} {limits(low, high)}".strip()


def limits(low: float | None, high: float | None) -> str:
    """A range in words."""
    if high is not None and high >= 2**62:
        high = None
    if low is None and high is None:
        return ""
    if high is None:
        return f"from {low:g}"
    return f"up to {high:g}" if low is None else f"{low:g} to {high:g}"


def shown_default(field: Mapping[str, Any]) -> str:
    """The default of a field, if it is a plain value."""
    default = field.get("default")
    is_plain = isinstance(default, str | int | float)
    return f"`{json.dumps(default)}`" if is_plain and default != "" else ""


def python_api() -> str:
    """The page on the Python API, which mkdocstrings fills from the docstrings."""
    lines = ["# Python API: docstrings", "", "[The overview](python-api.md) is shorter.", ""]
    for name in ackademy.__all__:
        own = getattr(ackademy, name)
        if getattr(own, "__module__", "").startswith("ackademy.") and hasattr(own, "__doc__"):
            lines += [f"::: {own.__module__}.{own.__name__}", ""]
    for name in MODULES:
        lines += [f"::: {name}", ""]
    return "\n".join(lines)


def write_reports(folder: Path) -> None:
    """Pages of a few studies, and the page that leads to them."""
    folder.mkdir(parents=True)
    lines = [
        "# Reports",
        "",
        "Pages that the commands write, as they are; each holds its numbers.",
        "",
    ]
    for name, words in REPORTS.items():
        own = [*words, "--html", str(folder / f"{name}.html")]
        own += [] if name == "run" else ["--work", str(ROOT / "build" / "site-runs")]
        program = [sys.executable, "-m", "ackademy"]
        subprocess.run([*program, *own], cwd=WORK, check=True, capture_output=True)
        lines += [f'- <a href="{name}.html">ackademy {" ".join(words)}</a>']
    (folder / "index.md").write_text("\n".join(lines) + "\n", "utf-8")


class Links(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Note the attributes of a tag."""
        own = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := own.get(key))}
        target = own.get("href") if tag in ("a", "link") else own.get("src")
        if target and tag == "a":
            self.links.append(target)
        elif target and not (tag == "link" and own.get("rel") in ("canonical", "prev", "next")):
            self.loads.append(target)


def faults(site: Path, skip: tuple[str, ...] = ()) -> Iterator[str]:
    """Links of a built site that lead nowhere, and what it would load from elsewhere."""
    pages = {path: Links() for path in sorted(site.rglob("*.html"))}
    pages = {p: own for p, own in pages.items() if p.relative_to(site).parts[0] not in skip}
    for path, own in pages.items():
        own.feed(path.read_text("utf-8"))
    for path, own in pages.items():
        for target in own.loads:
            if re.match(r"(https?:)?//", target):
                yield f"{path.relative_to(site)}: loads {target}"
        for target in [*own.links, *own.loads]:
            if re.match(r"([a-z]+:|//)", target) or path.name == "404.html":
                continue
            name, _, anchor = target.partition("#")
            there = (path.parent / name.partition("?")[0]).resolve() if name else path.resolve()
            there = there / "index.html" if there.is_dir() else there
            known = pages.get(there)
            if not there.exists() or (anchor and known and anchor not in known.anchors):
                yield f"{path.relative_to(site)}: link to {target}"


if __name__ == "__main__":
    main()
