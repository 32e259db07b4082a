"""Entry point of the command: Ctrl-C ends it without a traceback, while it is imported, too."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""as `ackademy.exits` has it, which is not imported yet"""


def main() -> None:
    """Run the command line; it ends the process."""
    try:
        from ackademy import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
