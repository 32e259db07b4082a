"""Polars, imported when it is first used: it takes longer to import than most runs take."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        """Stands for the module."""

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            value = getattr(import_module("polars"), name)
            setattr(self, name, value)
            return value

    pl = _Polars()

__all__ = ["pl"]
