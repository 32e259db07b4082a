"""Copy the notebooks for a release: with a link to open each in Colab, and the line that installs.

    python tools/notebooks.py https://github.com/OWNER/NAME --to dist/notebooks

The notebooks of examples/notebooks name no address and install nothing: there may be none yet.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1] / "examples" / "notebooks"
ADDRESS = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)")
COLAB = "https://colab.research.google.com"
BADGE = "<!-- release: badge -->"
INSTALL = re.compile(r"^ +raise .*# release: install:?([\w,]*)$", re.MULTILINE)


def released(text: str, name: str, address: str) -> str:
    """A notebook for the public, as text of its file.

    Args:
        text: of the notebook.
        name: of its file.
        address: of the project.

    Raises:
        ValueError: if Colab cannot open notebooks of that address, or a mark is missing.
    """
    found = ADDRESS.fullmatch(address)
    if found is None:
        raise ValueError(f"{address}: allowed: https://github.com/OWNER/NAME, which Colab opens")
    place = f"{COLAB}/github/{found[1]}/blob/main/examples/notebooks/{name}"
    badge = f"[![Open in Colab]({COLAB}/assets/colab-badge.svg)]({place})"
    book, counts = json.loads(text), {"badge": 0, "install": 0}
    for cell in book["cells"]:
        source = "".join(cell["source"])
        counts["badge"] += source.count(BADGE)
        source, n_installs = INSTALL.subn(_install, source.replace(BADGE, badge))
        counts["install"] += n_installs
        cell["source"] = source.splitlines(keepends=True)
    if set(counts.values()) != {1}:
        raise ValueError(f"{name}: marks {counts}; allowed: one of each")
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _install(mark: re.Match[str]) -> str:
    extras = f"[{mark[1]}]" if mark[1] else ""
    return f'    %pip install --quiet "ackademy{extras}"'


def main() -> None:
    """Write the copies."""
    parser = argparse.ArgumentParser(description="Copy the notebooks for a release.")
    parser.add_argument("address")
    parser.add_argument("--to", type=Path, required=True)
    asked = parser.parse_args()
    asked.to.mkdir(parents=True, exist_ok=True)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text = released(path.read_text(encoding="utf-8"), path.name, asked.address)
        (asked.to / path.name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
