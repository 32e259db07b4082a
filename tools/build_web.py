"""Put the playground together: `web/`, the compiled simulator, policies and traces, in one folder.

python tools/build_web.py WASM OUT [--bare]

A wheel has the policies and traces already: there the page is --bare, in python/ackademy/web.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = {
    "policies": ROOT / "data" / "policies",
    "traces": ROOT / "data" / "scenarios",
}
FILES = (
    *(
        f"policies/{name}/{file}"
        for name in ("flagship", "aurora_mixed", "tcp_drinc", "drl_cc/all")
        for file in ("policy.toml", "weights.safetensors")
    ),
    "policies/lp_tcp/L50_K4/forest.safetensors",
    "traces/cellular.trace",
)
"""what the page fetches of `data/` when a scenario names it"""


def build(wasm: Path, out: Path, files: Iterable[str] = FILES) -> None:
    """Write the page to `out`, in place of what is there."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "web", out, ignore=shutil.ignore_patterns("dist"))
    shutil.copyfile(wasm, out / "ackademy.wasm")
    for name in files:
        kind, _, rest = name.partition("/")
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(DATA[kind] / rest, out / name)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]), () if "--bare" in sys.argv[3:] else FILES)
