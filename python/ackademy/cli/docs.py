"""`ackademy docs`."""

from __future__ import annotations

import contextlib
import http.server
import webbrowser
from functools import partial
from typing import Annotated

import typer

from ackademy import installation
from ackademy.errors import AckademyError


def docs_command(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser; else only serve.")] = True,
) -> None:
    """Open the documentation: serve the built pages on this machine until Ctrl-C.

    Examples:
        ackademy docs

        ackademy docs --port 8000 --no-browser
    """
    site = installation.site()
    if not (site / "index.html").is_file():
        raise AckademyError(f"no pages in {site}: {installation.build_site()}")
    handler = partial(Quiet, directory=str(site))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise AckademyError(f"--port {port}: {error.strerror}; allowed: a free port") from None
    address = f"http://127.0.0.1:{server.server_port}/index.html"
    typer.echo(f"{address}  (Ctrl-C ends it)")
    if browser:
        webbrowser.open(address)
    with server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files of a folder and prints nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""
