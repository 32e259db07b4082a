"""What a machine may lack, and which of it `ACKADEMY_REQUIRE` says that it has.

A test that cannot run is skipped with a reason `needs NAME: why`, where NAME is a capability of
`capabilities.txt`. conftest.py imports the hooks below: they turn such a skip into a failure if
`ACKADEMY_REQUIRE` (a comma list) has the name, and a skip without a known name into a failure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest

VARIABLE = "ACKADEMY_REQUIRE"
LIST = Path(__file__).with_name("capabilities.txt")
NAMES = [line.partition(":")[0] for line in LIST.read_text(encoding="utf-8").splitlines()]
REASON = re.compile(r"(?:Skipped: )?needs (\w+): \S")


def required() -> set[str]:
    """Names in `ACKADEMY_REQUIRE`.

    Raises:
        pytest.UsageError: if one of them is unknown.
    """
    given = os.environ.get(VARIABLE, "")
    names = {name.strip() for name in given.split(",")} - {""}
    for name in sorted(names - set(NAMES)):
        raise pytest.UsageError(f"{VARIABLE}: {name}: allowed: {', '.join(NAMES)}")
    return names


def objection(reason: str) -> str | None:
    """Why a test may not be skipped for `reason`; None if it may."""
    match = REASON.match(reason)
    if match is None or match[1] not in NAMES:
        return f"{reason!r}: a skip's reason is `needs NAME: why`, NAME one of {', '.join(NAMES)}"
    if match[1] in required():
        return f"{VARIABLE} has {match[1]}, so this test must run, but: {reason}"
    return None


def fail_unless_allowed(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip to which there is an objection into a failure."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    longrepr = report.longrepr
    objected = objection(longrepr[2] if isinstance(longrepr, tuple) else str(longrepr))
    if objected:
        report.outcome = "failed"
        report.longrepr = objected


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Check skips of tests and fixtures."""
    report = yield
    fail_unless_allowed(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Check skips of whole files."""
    report = yield
    fail_unless_allowed(report)
    return report
