"""`ackademy docs`."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler

from ackademy import installation
from ackademy.cli import serving
from ackademy.errors import AckademyError


def docs_command(port: serving.Port = 0, show: serving.Show = True) -> None:
    """Open the documentation: serve the built pages on this machine until Ctrl-C.

    Examples:
        ackademy docs

        ackademy docs --port 8000 --no-open
    """
    site = installation.site()
    if not (site / "index.html").is_file():
        raise AckademyError(f"no pages in {site}: {installation.build_site()}")
    server = serving.server_of(partial(Handler, directory=str(site)), port)
    serving.serve(server, "documentation", "index.html", show=show)


class Handler(serving.Quiet, SimpleHTTPRequestHandler):
    """Files of the site."""
