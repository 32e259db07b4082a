"""The gate here and at GitHub: the same steps."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
GATE, WEEKLY = WORKFLOW.split("\n  weekly:\n")


def test_github_runs_the_steps_of_the_gate_in_their_order() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    steps = re.findall(r"^(?:ACKADEMY_REQUIRE=\S+ )?step (make .*)$", script, re.MULTILINE)
    assert len(steps) >= 8
    theirs = re.findall(r"^      - run: .*\$AS_ROOT (make .*)$", GATE, re.MULTILINE)
    assert theirs == steps


def test_every_step_is_a_target_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\$AS_ROOT make ([\w-]+)", WORKFLOW)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_exhaustive_tests_run_every_week() -> None:
    assert re.search(r"^    - cron: \"\d+ \d+ \* \* \d\"", WORKFLOW, re.MULTILINE)
    assert "make test-all" in WEEKLY
