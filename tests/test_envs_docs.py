"""docs/reference/envs.md: its programs run and its tables say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ackademy import _core
from ackademy.envs.agent_settings import DRINC
from ackademy.envs.flow import Flow
from ackademy.envs.metrics import COLUMNS
from ackademy.envs.rewards import REWARDS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "reference" / "envs.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_every_program_runs(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(program, "docs/reference/envs.md", "exec"), {})


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 4


def test_the_agent_settings_shown_are_drincs() -> None:
    (table,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    shown, named = Flow(agent_settings=table), Flow(agent_settings=DRINC)
    assert shown.observation_space == named.observation_space
    rows = []
    for env in (shown, named):
        env.reset(seed=1)
        rows.append([env.step(action)[1] for action in (0, 4, 3, 1, 2) * 20])
    assert rows[0] == rows[1]


def test_the_table_of_features_is_the_codes() -> None:
    for name, about, scale, _, _ in _core.observation_features():
        assert f"| `{name}` | {about} | {scale} |" in TEXT


def test_every_reward_and_every_column_is_described() -> None:
    for name in (*REWARDS, *COLUMNS):
        assert f"`{name}`" in TEXT
