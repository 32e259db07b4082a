"""The tables of `ackademy gap` for a document."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy.render.markdown.sheet import sheet, text
from ackademy.render.sheets import gap as sheets
from ackademy.studies import gap
from ackademy.studies.gap import METRICS, Gap


def tables(gaps: Sequence[Gap], command: str) -> str:
    """One table per number, then the claims, what is large, and how the kernel's runs went."""
    parts = [f"```sh\n{command}\n```"]
    for metric in METRICS:
        own = sheets.one_metric(gaps, metric)
        if own.lines:
            parts += [f"### {text(own.title)}", sheet(own)]
    checked, large = gap.claims(gaps), gap.large(gaps)
    if checked:
        parts += ["### Ours beside the kernel's own", sheet(sheets.claims(checked))]
    if large:
        title = f"### Differences above {100 * gap.LARGE_RATIO:.0f} %"
        parts += [title, sheet(sheets.large(large))]
    runs = sheets.runs(gaps, {})
    parts += ["### The runs on the kernel", sheet(runs)]
    if sheets.POLICY_HEADS[0] in runs.heads:
        parts.append(sheets.POLICY_NOTE)
    return "\n\n".join(parts) + "\n"
