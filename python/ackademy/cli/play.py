"""`ackademy play`: the playground of `web/`, served to a browser on this machine."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlsplit

import typer

from ackademy.cli import completion, serving
from ackademy.errors import AckademyError
from ackademy.folders import SHIPPED, is_file
from ackademy.installation import ROOT, build_playground

SITES = (Path(__file__).parents[1] / "web", ROOT / "web" / "dist")
"""where the page is: in a wheel, in a checkout"""
SHARED = {"policies": SHIPPED / "policies", "traces": SHIPPED / "scenarios"}
"""what the page fetches when a scenario names it, where it does not lie beside the page"""
SEED_MAX = 2**32 - 1
"""that the page takes"""
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


def play_command(
    scenario: Annotated[
        str | None,
        typer.Argument(
            help="A scenario, by file or name; without one, the tours.",
            metavar="[SCENARIO]",
            autocompletion=completion.scenarios,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Seed of the scenario.")] = 1,
    port: serving.Port = 0,
    show: serving.Show = True,
) -> None:
    """Open the playground: flows share a link in a browser, with the numbers of `run`.

    The page is served to this machine alone, until Ctrl-C.

    Examples:
        ackademy play

        ackademy play deep_buffer

        ackademy play my/path.toml --port 8000 --no-open
    """
    site = site_folder()
    carried, fragment = brought(scenario, seed) if scenario else ({}, "")
    serving.serve(serve(site, carried, port), "playground", fragment, show=show)


def site_folder() -> Path:
    """The folder with the page.

    Raises:
        AckademyError: if it has not been built.
    """
    for site in SITES:
        if is_file(site / "ackademy.wasm"):
            return site
    raise AckademyError(f"play: the page is missing; {build_playground()}")


def serve(site: Path, brought: Mapping[str, bytes], port: int) -> ThreadingHTTPServer:
    """A server on the loopback interface, which is not running yet.

    Args:
        site: the folder with the page.
        brought: contents of more files, by their path.
        port: 0 for any that is free.

    Raises:
        AckademyError: if the port is taken.
    """
    return serving.server_of(partial(Handler, directory=str(site), brought=brought), port)


class Handler(serving.Quiet, SimpleHTTPRequestHandler):
    """Files of the page, and those that a scenario names."""

    extensions_map = {  # noqa: RUF012  # as the base class has it
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript",
        ".css": "text/css",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
        ".txt": "text/plain; charset=utf-8",
        "": "application/octet-stream",
    }

    def __init__(self, *args: Any, brought: Mapping[str, bytes], **extra: Any) -> None:  # noqa: ANN401
        self.brought = brought
        super().__init__(*args, **extra)

    def do_GET(self) -> None:
        """Answer with a file that was brought along, or one of the page."""
        content = self.brought.get(unquote(urlsplit(self.path).path).lstrip("/"))
        if content is None:
            super().do_GET()
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def translate_path(self, path: str) -> str:
        """A file of the page; a policy or trace that is not beside it is the package's."""
        found = super().translate_path(path)
        kind, _, rest = str(Path(found).relative_to(self.directory)).partition("/")
        if kind in SHARED and rest and not is_file(Path(found)):
            return str(SHARED[kind] / rest)
        return found

    def list_directory(self, path: Any) -> None:  # noqa: ANN401
        """Refuse: folders have no page."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        """Say what the page may do."""
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


def brought(scenario: str, seed: int) -> tuple[dict[str, bytes], str]:
    """The files that a scenario names, under the paths that the page asks for, and its link.

    Raises:
        ScenarioError: if it cannot be read or is wrong.
    """
    from ackademy import _core
    from ackademy.backends.runs import named_policies, text_of

    text, origin = text_of(scenario)
    files: dict[str, bytes] = {}
    parsed = _core.Scenario.parse(text, origin, named_policies(text, origin), files)
    served = {}
    for name, content in files.items():
        if Path(name).is_absolute():
            continue  # called by name: the page finds it by that
        is_trace = not name.endswith((".toml", ".safetensors"))
        rest = name.rpartition("/")[2] if is_trace else name.rpartition("policies/")[2]
        served[f"{'traces' if is_trace else 'policies'}/{rest}"] = content
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9, -15)).decode().rstrip("=")
    return served, f"#scenario={packed}&seed={seed}&name={quote(parsed.name)}"
