"""Pages served to a browser on this machine, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Annotated, Any, TypeAlias

import typer

from ackademy.errors import AckademyError

Port: TypeAlias = Annotated[
    int, typer.Option(min=0, max=65_535, help="Port on this machine; 0 for any that is free.")
]
Show: TypeAlias = Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")]


def server_of(handler: Callable[..., BaseHTTPRequestHandler], port: int) -> ThreadingHTTPServer:
    """A server on the loopback interface, which is not running yet.

    Args:
        handler: makes what answers a request.
        port: 0 for any that is free.

    Raises:
        AckademyError: if the port is taken.
    """
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise AckademyError(f"--port {port}: {error.strerror}: allowed: a free port") from None


def serve(server: ThreadingHTTPServer, name: str, page: str, *, show: bool) -> None:
    """Print the address of a page, open it, and serve until Ctrl-C."""
    import webbrowser

    address = f"http://127.0.0.1:{server.server_port}/{page}"
    with server, suppress(KeyboardInterrupt):
        typer.echo(f"{name}: {address}  (Ctrl-C ends it)")
        if show:
            Thread(target=webbrowser.open, args=[address], daemon=True).start()
        server.serve_forever()


class Quiet:
    """Mixed into a handler: it prints nothing."""

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """Print nothing."""
