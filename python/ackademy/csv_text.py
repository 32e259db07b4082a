"""Rows as the text of a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The text of a CSV file with one line per row, lines ended by a line feed.

    Args:
        head: names of the columns.
        rows: as many cells each; numbers are written as Python prints them, so a caller that wants
            fewer digits formats them.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return buffer.getvalue()
