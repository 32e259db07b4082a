"""Results as JSON, for other programs. Numbers that are not finite are null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from ackademy import _core
from ackademy.lazy import pl
from ackademy.stats.results import Results


def results_json(results: Results, more: Mapping[str, object] | None = None) -> str:
    """A study: its estimates, and the numbers of single runs.

    Args:
        results: of the study.
        more: entries to put before them.
    """
    found = {"estimates": results.estimates, "runs": results.wide()}
    return to_json({**({"code": _core.CODE_HASH} if more is None else more), **found})


def to_json(content: Mapping[str, object]) -> str:
    """The content as JSON; a frame is a list of its rows."""
    return json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, pl.DataFrame):
        return _plain(value.to_dicts())
    if isinstance(value, Mapping):
        return {key: _plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
