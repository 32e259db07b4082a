"""tools/flagship_figures.py: what it measures; docs/results/beside-others.md shows its numbers."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ackademy

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "img"
PAGE = ROOT / "docs" / "results" / "beside-others.md"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "flagship_figures", ROOT / "tools" / "flagship_figures.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def rows(table: str) -> list[list[str]]:
    """The cells of a Markdown table, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[2:]]


def test_a_rule_of_ratios_keeps_a_split_and_the_law_does_not(script: ModuleType) -> None:
    figure, table = script.split_figure()
    kept, seized, law = ([float(cell) for cell in row[1:4]] for row in rows(table))
    assert kept[0] > 90.0 > 10.0 > kept[1]
    assert seized[1] > 90.0 > 10.0 > seized[0]
    assert law[2] > 0.99
    assert figure.count("<path stroke=") == 6 + 2  # two flows in three panels, and the legend


def test_throughput_adds_up_and_is_unknown_while_a_flow_is_off(script: ModuleType) -> None:
    law = script.schemes.one("own_queue")
    flow = script.flow(law, "own", start_s=1.0, stop_s=3.0)
    run = ackademy.run(script.dumbbell(4.0, 1.0, flow))
    time, rate = script.rates(run, "own", 0.5)
    assert np.isnan(rate[time < 1.0]).all()
    assert np.isnan(rate[time > 3.5]).all()
    delivered = float(run.flows["delivered_bytes"][0])
    late = rate[(time > 1.5) & (time < 3.0)]
    assert delivered * 0.9 < np.nansum(rate) * 0.5e6 / 8 <= delivered
    assert late == pytest.approx(script.RATE, rel=0.1)


def test_beside_cubic_in_one_product_of_buffer_the_policy_has_40_to_60_percent(
    script: ModuleType,
) -> None:
    policy = script.schemes.one(str(script.POLICY))
    runs = [script.beside(policy, 1.0, is_first=False, seed=seed) for seed in range(1, 6)]
    shares = [script.late_share(run) for run in runs]
    assert 0.4 < sum(shares) / len(shares) < 0.6, shares


def test_the_capacity_of_a_trace_repeats(script: ModuleType) -> None:
    capacity = script.capacity_mbps("100\n200\n700\n1000\n", np.arange(0.0, 2.6, 0.5))
    assert capacity == pytest.approx(np.array([2, 1, 3, 1, 3]) * 0.024)


def test_means_have_gaps_where_nothing_is_known(script: ModuleType) -> None:
    time, values = np.array([0.0, 0.4, 1.2, 1.9, 2.5, 3.0]), np.array([1, 3, np.nan, np.nan, 5, 7])
    middles, found = script.means(time, values, 1.0)
    assert middles == pytest.approx([0.5, 1.5, 2.5])
    assert found == pytest.approx([2.0, np.nan, 6.0], nan_ok=True)


def test_a_file_of_judgements_without_a_scheme_is_refused(
    script: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "judged.csv"
    file.write_text("scenario,group,scheme,fair_share,wait_p95_ratio\nx,A,cubic,1,1\n")
    with pytest.raises(ackademy.AckademyError, match=r"judged\.csv: scheme: own_queue: allowed"):
        script.plane_figure(file, [script.schemes.one("own_queue")])


def test_the_shares_on_the_page_are_those_of_the_figure() -> None:
    figure = (IMAGES / "flagship_beside_cubic.svg").read_text(encoding="utf-8")
    drawn = [int(value) for value in re.findall(r'class="c v"[^>]*>(\d+)<', figure)]
    section = PAGE.read_text(encoding="utf-8").split("| scheme | 0.5 BDP |")[1].split("\n\n")[0]
    shown = [
        [[float(part.split(" ± ")[0]) for part in cell.split(" · ")] for cell in row[1:]]
        for row in rows(f"| scheme | 0.5 BDP |{section}")
    ]
    by_order = np.array(shown).transpose(2, 1, 0).ravel()  # (scheme, buffer, order) as drawn
    assert len(drawn) == by_order.size > 0
    assert np.abs(by_order - drawn).max() <= 0.51
