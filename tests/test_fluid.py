"""The fluid model: what the letter says of it, its fixed points, and how it fits simulations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ackademy.papers.learningcc import fluid
from ackademy.papers.learningcc.fluid_study import load
from ackademy.render.report import page
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet


def test_reno_at_equilibrium_gains_what_it_loses() -> None:
    rtt_s, p, beta = 0.1, 0.02, 0.5
    window = fluid.reno_rate(rtt_s, p, beta) * rtt_s
    assert (1.0 - p) / window == pytest.approx(p * beta * window)


def test_learningcc_at_equilibrium_gains_what_it_loses() -> None:
    rtt_s, min_rtt_s, p, alpha = 0.1, 0.06, 0.03, 2.5
    rate = fluid.learningcc_rate(rtt_s, min_rtt_s, p, alpha)
    window, after_event = rate * rtt_s, 0.9 * rate * min_rtt_s
    assert (1.0 - p) * alpha / window == pytest.approx(p * (window - after_event))


def test_at_twice_the_minimum_a_growth_of_1_1_matches_reno() -> None:
    both = fluid.reno_rate(0.2, 0.01), fluid.learningcc_rate(0.2, 0.1, 0.01, 1.1)  # section III
    assert both[0] == pytest.approx(both[1])


def test_the_square_root_law_gives_renos_published_share_in_case_6() -> None:
    flow_mbps = fluid.square_root_rate(0.12, 0.035) * 1460 * 8 / 1e6
    assert 4 * flow_mbps / 8.0 == pytest.approx(0.32, abs=0.005)  # published: 31 %


def test_model_and_law_are_near_a_simulated_reno_that_loss_governs(tmp_path: Path) -> None:
    study = load("learningcc/fluid")
    rows = tuple(row for row in study.measured.rows if row.group == "case 6, 3 %")
    study = replace(study, measured=replace(study.measured, rows=rows))
    study.run(1, tmp_path, local(1), quiet)
    findings = study.collect(1, tmp_path)
    reno, learningcc = findings.points
    assert reno.model == pytest.approx(reno.measured, rel=0.15)
    assert reno.law == pytest.approx(reno.measured, rel=0.15)
    assert learningcc.law is None
    assert learningcc.measured > 2.0 * reno.measured
    assert findings.csv().count("\n") == 3
    assert "Case 6" in page(study.report(findings))
