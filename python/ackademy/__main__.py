"""Entry point of the command: Ctrl-C ends it without a traceback, while it is imported, too."""

from __future__ import annotations

import gc
import sys

INTERRUPTED = 130
"""as `ackademy.exits` has it, which is not imported yet"""
GARBAGE = 50_000
"""new objects after which the interpreter looks for garbage; 700 by default"""


def version() -> str:
    """What `--version` prints."""
    import ackademy

    return f"ackademy {ackademy.__version__}, core {ackademy.CODE_HASH}"


def main() -> None:
    """Run the command line; it ends the process. The version needs no parser."""
    gc.set_threshold(GARBAGE)  # imports make many objects, none of them garbage
    try:
        from ackademy import exits

        if sys.argv[1:] == ["--version"]:
            exits.leave(exits.status_of(lambda: print(version())))
        from ackademy import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
