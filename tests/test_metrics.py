"""Numbers with known answers; the degenerate cases that a report meets."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackademy.errors import ExperimentError
from ackademy.stats import formulas
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_tables import COLUMNS, RunTables, stacked

ONE = np.array([1.0])


def test_throughput_counts_megabits_per_active_second() -> None:
    delivered, active = np.array([1_250_000.0, 500_000.0]), np.array([1.0, 2.0])
    assert formulas.throughput_mbps(delivered, active).tolist() == [10.0, 2.0]


def test_flow_that_was_never_active_has_no_throughput() -> None:
    assert formulas.throughput_mbps(np.array([0.0]), np.array([0.0])).tolist() == [0.0]
    assert formulas.goodput_mbps(np.array([0.0]), np.array([0.0])).tolist() == [0.0]


def test_delay_is_what_the_round_trip_has_above_the_empty_path() -> None:
    assert formulas.delay_ms(np.array([165.98]), np.array([150.0]))[0] == pytest.approx(15.98)


def test_delay_without_a_sample_is_not_a_number() -> None:
    assert np.isnan(formulas.delay_ms(np.array([np.nan]), np.array([150.0])))[0]


def test_one_way_delay_is_the_mean_over_packets() -> None:
    assert formulas.one_way_delay_ms(np.array([0.0, 1.0]), np.array([30.0, 41.0])) == 35.0
    assert math.isnan(formulas.one_way_delay_ms(np.array([]), np.array([])))


def test_packet_that_arrives_before_it_leaves_is_an_error() -> None:
    with pytest.raises(ValueError, match="arrives before it leaves"):
        formulas.one_way_delay_ms(np.array([2.0]), np.array([1.0]))


def test_loss_ratio_of_a_silent_flow_is_zero() -> None:
    assert formulas.loss_ratio(np.array([0.0, 1.0]), np.array([0.0, 4.0])).tolist() == [0.0, 0.25]


@pytest.mark.parametrize(
    ("tp", "d", "published"),
    [(7.490, 1.900, 1.9494), (8.910, 15.98, 1.9100), (0.652, 3.101, -0.5409)],
    ids=["NewReno L=5", "NewReno L=50", "Q-TCP L=5"],
)
def test_m_e_agrees_with_the_rows_of_table_5(tp: float, d: float, published: float) -> None:
    assert formulas.m_e(tp * ONE, d * ONE)[0] == pytest.approx(published, abs=1e-4)


def test_m_e_of_a_starved_flow_is_minus_infinity() -> None:
    assert formulas.m_e(0.0 * ONE, ONE)[0] == -math.inf


@pytest.mark.parametrize(
    ("shares", "expected"),
    [([5e6, 5e6], 1.0), ([1e7, 0.0], 0.5), ([0.0, 0.0], 1.0), ([1e-200, 1e-200], 1.0)],
    ids=["equal", "starved", "idle", "tiny"],
)
def test_jain_index(shares: list[float], expected: float) -> None:
    assert formulas.jain_index(np.array(shares)) == pytest.approx(expected)


@given(st.lists(st.floats(0.0, 1e300), min_size=1, max_size=20))
def test_jain_index_stays_between_one_over_n_and_one(shares: list[float]) -> None:
    index = formulas.jain_index(np.array(shares))
    assert 1.0 / len(shares) - 1e-12 <= index <= 1.0 + 1e-12


def test_jain_index_of_no_flows_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one flow"):
        formulas.jain_index(np.array([]))


def test_goodput_share_is_what_arrived_in_order_over_what_fits() -> None:
    shares = formulas.goodput_share(np.array([0.0, 4.0]), np.array([0.0, 16.0]))
    assert shares.tolist() == [0.0, 0.25]


def test_utilisation_of_a_link_that_was_never_up_is_zero() -> None:
    assert formulas.utilisation(np.array([0.0, 5.0]), np.array([0.0, 10.0])).tolist() == [0.0, 0.5]


def test_convergence_counts_from_the_last_excursion() -> None:
    time = np.arange(6.0)
    rate = np.array([0.0, 5.0, 9.0, 5.1, 4.9, 5.0])
    assert formulas.convergence_time_s(time, rate, 5.0) == 3.0


def test_flow_that_leaves_the_band_at_the_end_has_not_converged() -> None:
    assert math.isnan(formulas.convergence_time_s(np.arange(2.0), np.array([5.0, 9.0]), 5.0))


def test_flow_that_starts_at_its_share_converges_at_once() -> None:
    assert formulas.convergence_time_s(np.arange(2.0), np.array([5.0, 5.0]), 5.0) == 0.0


def hand_made() -> RunTables:
    """Two flows over two links."""
    flows = pl.DataFrame({"flow": ["a", "b"], **{name: [0.0, 0.0] for name in COLUMNS}})
    flows = flows.with_columns(goodput_bytes=pl.Series([300, 500]), owd_ms=pl.Series([10.0, 30.0]))
    links = pl.DataFrame(
        {
            "link": ["l1", "l2"],
            "capacity_bytes": [4000, 1000],
            "arrived_packets": [0, 50],
            "queue_drops": [0, 4],
            "random_losses": [0, 1],
        }
    )
    return RunTables(flows, links, pl.DataFrame(), "*")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("goodput_share:l2", 0.8),
        ("goodput_share:l*", 0.16),
        ("link_loss_ratio:l2", 0.1),
        ("link_loss_ratio:l1", 0.0),
        ("owd_mean_ms", 20.0),
    ],
)
def test_metric_of_a_hand_made_run_is_what_one_reckons(name: str, value: float) -> None:
    metric = metric_of(name)
    assert metric.statistic(metric.extract(hand_made())[None]) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jain_throughput", 2.3 / 3.0),
        ("jain_throughput_low", 2.3 / 3.0 - 1.96 * 0.2516611),
        ("jain_throughput_high", 2.3 / 3.0 + 1.96 * 0.2516611),
        ("jain_throughput_span", 2.0 * 1.96 * 0.2516611),
    ],
)
def test_ends_of_an_interval_are_1_96_deviations_of_the_runs_from_their_mean(
    name: str, value: float
) -> None:
    """Indices of 1, 1/2 and 4/5, whose sample variance is 0.19 / 3 = 0.25166 squared."""
    metric = metric_of(name)
    runs = [
        RunTables(
            hand_made().flows.with_columns(throughput_mbps=pl.Series(shares)),
            pl.DataFrame(),
            pl.DataFrame(),
        )
        for shares in ([2.0, 2.0], [4.0, 0.0], [3.0, 1.0])
    ]
    samples = np.stack([metric.extract(run) for run in runs])
    assert metric.statistic(samples) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("name", ["jain_throughput_low", "jain_throughput_high"])
def test_interval_of_one_run_ends_where_the_run_does(name: str) -> None:
    metric = metric_of(name)
    assert metric.statistic(np.array([[0.8]])) == 0.8
    assert metric_of("jain_throughput_span").statistic(np.array([[0.8]])) == 0.0


def test_metric_of_a_link_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(ExperimentError, match="link 'l3': allowed: l1, l2"):
        metric_of("goodput_share:l3").extract(hand_made())


def run_of(*flows: tuple[float, float]) -> RunTables:
    """A run whose flows have these throughputs, Mb/s, and delays, ms."""
    columns = {name: [0.0] * len(flows) for name in COLUMNS}
    columns["throughput_mbps"], columns["delay_ms"] = (
        list(own) for own in zip(*flows, strict=True)
    )
    names = [f"short_{number}" for number in range(len(flows))]
    return RunTables(pl.DataFrame({"flow": names, **columns}), pl.DataFrame(), pl.DataFrame())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("m_e", math.log(3.5) - 0.1 * math.log(25.0)),
        ("power", 3.5 / 25e-3),
        ("throughput_variance", np.var([2.0, 4.0, 4.0], ddof=1)),
    ],
)
def test_runs_of_different_numbers_of_flows_count_the_same(name: str, value: float) -> None:
    """Means of 3 and 4 Mb/s and of 20 and 30 ms; of variances, each flow counts the same."""
    metric = metric_of(name)
    runs = [run_of((2.0, 10.0), (4.0, 30.0)), run_of((4.0, 30.0))]
    assert metric.statistic(stacked([metric.extract(run) for run in runs])) == pytest.approx(value)


def test_run_in_which_no_flow_arrived_is_said_to_be_one() -> None:
    with pytest.raises(ExperimentError, match="no flow arrived in a run"):
        metric_of("m_e").extract(
            RunTables(hand_made().flows.clear(), pl.DataFrame(), pl.DataFrame())
        )
