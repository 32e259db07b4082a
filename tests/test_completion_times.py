"""Completion times of many transfers."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest

import ackademy
from ackademy.console import Console
from ackademy.render import report as render
from ackademy.stats.completion_times import completion_times, ideal_ms, narrowest_bytes_per_ms
from ackademy.studies import run as of_run


@pytest.fixture(scope="module")
def run() -> ackademy.Run:
    """Hundreds of short transfers beside a bulk flow."""
    return ackademy.run("poisson", seed=2)


def test_an_ideal_transfer_takes_a_round_trip_and_the_time_of_its_bytes() -> None:
    ideal = ideal_ms(np.array([1000.0, 3000.0, 500.0]), np.full(3, 20.0), 100.0)
    assert ideal.tolist() == [30.0, 50.0, 25.0]


@pytest.mark.parametrize("rate_mbps", [0.5, 100])
def test_a_transfer_of_one_window_on_an_idle_path_has_a_slowdown_of_one(rate_mbps: float) -> None:
    fields = {
        "duration_s": 60,
        "sender": {"ack_every": 1},  # no last packet waits for the receiver's timer
        "dumbbell": {"rtt_ms": 10, "bottleneck": {"rate_mbps": rate_mbps}},
        "flow": [
            {"name": f"f{i}", "start_s": 2 * i, "traffic": {"kind": "fixed", "bytes": 4000}}
            for i in range(25)
        ],
    }
    times = completion_times(ackademy.run(fields, cc="cubic"), 60.0)
    assert times is not None
    assert times.fct_ms.size == 25
    # Four packets fit into the first window: nothing but the path takes time.
    assert np.all(times.slowdown >= 1.0 - 1e-9)
    assert np.all(times.slowdown < 1.1)


def test_many_transfers_are_quantiles_in_terminal_page_and_json(run: ackademy.Run) -> None:
    times = completion_times(run, run.scenario.duration_s)
    assert times is not None
    done = run.flows.filter(run.flows["transfers"] > 0)
    assert times.fct_ms.size == done.height
    assert sum(own.fct_ms.size for _, own in times.groups()[1:]) in (0, done.height)
    text = io.StringIO()
    console = Console(width=100, file=text)
    render.show(of_run.report(run), console)
    for word in ("p50", "p99", "slowdown", "CDF", "flows finished a transfer"):
        assert word in text.getvalue()
    assert len(text.getvalue().splitlines()) < 40  # and not a row per flow
    page = render.page(of_run.report(run, "ackademy run poisson"))
    assert "Flow completion times" in page
    content = json.loads(of_run.run_json(run))["completion"][0]
    assert content["count"] == done.height
    assert content["fct_ms"]["p50"] == pytest.approx(float(np.median(done["fct_mean_ms"])))


def test_few_transfers_keep_their_rows() -> None:
    run = ackademy.run("deep_buffer")
    assert completion_times(run, run.scenario.duration_s) is None
    assert json.loads(of_run.run_json(run))["completion"] == []


def test_the_narrowest_link_is_the_bottleneck() -> None:
    run = ackademy.run("deep_buffer")
    assert narrowest_bytes_per_ms(run, 60.0) == pytest.approx(2500.0, rel=1e-3)


@pytest.mark.parametrize("known", [0, 1])
def test_transfers_over_a_path_without_a_delay_and_a_rate_have_no_slowdown(
    run: ackademy.Run, known: int
) -> None:
    """Their ideal time may be 0; tables, pages and JSON say so and are written."""
    rtt = np.array([0.0] * (run.flows.height - known) + [20.0] * known)
    # A link without a rate has no capacity.
    none = np.zeros(run.links.height, np.int64)
    changed = {
        "flows": {**run.columns["flows"], "base_rtt_ms": rtt},
        "links": {**run.columns["links"], "capacity_bytes": none},
    }
    instant = replace(run, columns={**run.columns, **changed})
    times = completion_times(instant, 60.0)
    assert times is not None
    is_known = rtt[run.floats("flows", "transfers") > 0] > 0.0
    assert np.isfinite(times.slowdown).tolist() == is_known.tolist()
    page = render.page(of_run.report(instant, "ackademy run instant"))
    assert f"{times.n_without_slowdown} of {times.fct_ms.size} have no slowdown" in page
    text = io.StringIO()
    console = Console(width=200, file=text)
    render.show(of_run.report(instant), console)
    assert "have no slowdown: their empty path takes no time" in text.getvalue()
    content = json.loads(of_run.run_json(instant))["completion"][0]
    assert content["fct_ms"]["p50"] > 0.0
    assert (content["slowdown"]["p50"] is not None) == is_known.any()
