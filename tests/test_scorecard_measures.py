"""Each measure of a scorecard gives the number that its definition says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ackademy.stats.formulas import FloatArray
from ackademy.stats.network_metrics import MEASURES
from ackademy.stats.network_runs import Ran, RunData
from ackademy.stats.run_tables import RunTables

FLOW: Mapping[str, object] = {
    "start_s": 0.0,
    "active_s": 60.0,
    "mss_bytes": 1500,
    "sent_packets": 1000,
    "dropped_packets": 0,
    "delivered_bytes": 1_500_000,
    "goodput_bytes": 1_400_000,
    "throughput_mbps": 0.2,
    "goodput_mbps": 0.19,
    "delay_ms": 5.0,
    "owd_ms": 30.0,
    "loss_ratio": 0.0,
    "rtt_p50_ms": 55.0,
    "rtt_p95_ms": 60.0,
    "base_rtt_ms": 50.0,
    "timeouts": 0,
    "stall_max_ms": 10.0,
    "transfers": 0,
    "fct_mean_ms": math.nan,
}
"""a flow of a summary"""
Step = tuple[float, float]
"""from second, Mb/s"""


def flow(name: str, **more: object) -> dict[str, object]:
    return {"flow": name, **FLOW, **more}


def series(
    rates: Mapping[str, Sequence[Step]],
    lost: Mapping[str, Sequence[Step]] | None = None,
    cwnd: float = 20.0,
) -> pl.DataFrame:
    """Samples each 0.1 s of 60 s; losses in packets per second."""
    frames = []
    times = np.round(np.arange(0.0, 60.05, 0.1), 6)
    for name, steps in rates.items():
        own = (lost or {}).get(name, [(0.0, 0.0)])
        columns = {
            "delivered_bytes": integral(steps, times) * 125_000.0,
            "lost_packets": integral(own, times),
        }
        frames.append(
            pl.DataFrame({"time_s": times, "flow": name, "cwnd_packets": cwnd, **columns})
        )
    return pl.concat(frames)


def integral(steps: Sequence[Step], times: FloatArray) -> FloatArray:
    """Of a step function."""
    total = np.zeros_like(times)
    for (begin, rate), end in zip(steps, [*(s for s, _ in steps[1:]), 1e9], strict=True):
        total += rate * (np.clip(times, begin, end) - begin)
    return total


def queue(steps: Sequence[Step]) -> pl.DataFrame:
    """Bytes in the bottleneck's queue by time, each 0.1 s of 60 s."""
    times = np.round(np.arange(0.0, 60.05, 0.1), 6)
    size = np.zeros(times.size, np.int64)
    for begin, held in steps:
        size[times >= begin] = int(held)
    return pl.DataFrame({"time_s": times, "link": "bottleneck", "queue_bytes": size})


def data(
    flows: Sequence[dict[str, object]],
    samples: pl.DataFrame | None = None,
    waiting: pl.DataFrame | None = None,
    counters: Mapping[str, float] | None = None,
) -> RunData:
    """A run of 60 s over a link of 10 Mb/s."""
    frame = pl.DataFrame(list(flows))
    chosen = tuple(str(own["flow"]).startswith("own") for own in flows)
    links = pl.DataFrame(
        {"link": ["bottleneck"], "capacity_bytes": [75_000_000], "delivered_bytes": [60_000_000]}
    )
    counted = [
        {"flow": "own", "name": key, "value": value} for key, value in (counters or {}).items()
    ]
    empty = pl.DataFrame(schema={"flow": pl.String, "name": pl.String, "value": pl.Float64})
    return RunData(
        RunTables(frame, links, pl.DataFrame(counted) if counted else empty, chosen, 60.0),
        samples
        if samples is not None
        else series({str(own["flow"]): [(0.0, 1.0)] for own in flows}),
        waiting if waiting is not None else queue([(0.0, 0.0)]),
    )


def value(name: str, run: RunData, **values: object) -> float:
    network = {"rate_mbps": 10, "rtt_ms": 50, **values}
    return MEASURES[name].of(Ran(network, {"run": run}))


def both(name: str, **runs: RunData) -> float:
    return MEASURES[name].of(Ran({"rate_mbps": 10, "rtt_ms": 50}, runs))


ONE = [flow("own")]


def test_queueing_delay_is_the_time_to_drain_in_round_trips_after_the_warm_up() -> None:
    # 62 500 bytes at 10 Mb/s are 50 ms, one round trip; before 10 s nothing counts.
    run = data(ONE, waiting=queue([(0.0, 1e6), (10.0, 62_500), (40.0, 125_000)]))
    assert value("steady_wait_p50", run) == pytest.approx(1.0)
    assert value("steady_wait_p95", run) == pytest.approx(2.0)
    assert value("victim_delay_ms", run) == pytest.approx(100.0)


def test_freezes_are_the_part_of_the_time_with_a_wait_above_200_ms() -> None:
    run = data(ONE, waiting=queue([(0.0, 0.0), (35.0, 260_000)]))
    assert value("victim_late", run) == pytest.approx(0.5, abs=0.01)


def test_use_is_of_all_flows_after_the_warm_up() -> None:
    samples = series({"own": [(0.0, 0.0), (10.0, 4.0)], "victim": [(0.0, 0.0), (10.0, 5.0)]})
    assert value("steady_use", data([flow("own"), flow("victim")], samples)) == pytest.approx(0.9)


def test_shares_of_the_whole_run_are_of_the_bottlenecks_capacity() -> None:
    assert value("utilisation:bottleneck", data(ONE)) == pytest.approx(0.8)
    assert value("goodput_share:bottleneck", data(ONE)) == pytest.approx(1.4 / 75.0)


def test_loss_counts_the_tested_flows_after_the_warm_up() -> None:
    # 12 Mb/s are 1000 packets a second.
    samples = series({"own": [(0.0, 12.0)]}, {"own": [(0.0, 500.0), (10.0, 1000.0 / 9.0)]})
    assert value("steady_loss", data(ONE, samples)) == pytest.approx(0.1)


def test_loss_of_the_whole_run_is_dropped_over_sent() -> None:
    assert value("loss", data([flow("own", dropped_packets=50)])) == pytest.approx(0.05)
    assert value("victim_loss", data([flow("own"), flow("victim", dropped_packets=20)])) == 0.02


def test_packets_per_round_trip_is_a_mean_over_flows() -> None:
    # 60 s are 1200 round trips of 50 ms.
    flows = [flow("own_0", sent_packets=1200), flow("own_1", sent_packets=3600)]
    assert value("sent_per_rtt", data(flows)) == pytest.approx(2.0)


def test_rtt_inflation_is_over_the_empty_path() -> None:
    assert value("wait_p95_ratio", data(ONE)) == pytest.approx(0.2)
    unknown = [flow("own_0", rtt_p95_ms=math.nan), flow("own_1")]
    assert value("wait_p95_ratio", data(unknown)) == pytest.approx(0.2)


def test_timeouts_and_stalls_are_of_the_tested_flows() -> None:
    flows = [
        flow("own_0", timeouts=1),
        flow("own_1", timeouts=4, stall_max_ms=70.0),
        flow("victim"),
    ]
    assert value("timeouts", data(flows)) == 2.5
    assert value("stall_max_ms", data(flows)) == 70.0


def test_fairness_begins_when_all_have_joined_and_settled() -> None:
    samples = series({"own_0": [(0.0, 9.0), (30.0, 6.0)], "own_1": [(0.0, 1.0), (30.0, 2.0)]})
    run = data([flow("own_0"), flow("own_1")], samples)
    assert value("steady_jain", run, joined_s=20, settle_s=10) == pytest.approx(64.0 / 80.0)
    assert value("min_share", run, joined_s=20, settle_s=10) == pytest.approx(0.5)


def test_convergence_needs_five_seconds_within_a_fifth_of_the_fair_share() -> None:
    rates = {
        "own_0": [(0.0, 9.0), (15.0, 5.0), (18.0, 9.0), (30.0, 5.5)],
        "own_1": [(0.0, 1.0), (15.0, 5.0), (18.0, 1.0), (30.0, 4.5)],
    }
    run = data([flow("own_0"), flow("own_1")], series(rates))
    assert value("convergence_s", run, joined_s=10) == pytest.approx(20.0)


def test_flows_that_never_converge_count_with_the_time_that_was_left() -> None:
    rates = {"own_0": [(0.0, 9.0)], "own_1": [(0.0, 1.0)]}
    run = data([flow("own_0"), flow("own_1")], series(rates))
    assert value("convergence_s", run, joined_s=10) == pytest.approx(50.0)


@pytest.mark.parametrize(("far_mbps", "bias"), [(1.0, 1.0), (4.0, 0.0), (8.0, -0.5)])
def test_rtt_bias_is_the_exponent_of_the_inverse_round_trip(far_mbps: float, bias: float) -> None:
    flows = [flow("own_near", base_rtt_ms=20.0), flow("own_far", base_rtt_ms=80.0)]
    samples = series({"own_near": [(0.0, 4.0)], "own_far": [(0.0, far_mbps)]})
    assert value("rtt_bias", data(flows, samples)) == pytest.approx(bias)


def test_completion_counts_unfinished_transfers_with_their_time_so_far() -> None:
    done = [flow(f"own_short_{i}", transfers=1, fct_mean_ms=100.0) for i in range(3)]
    open_ = flow("own_short_3", active_s=20.0, start_s=40.0)
    late = flow("own_short_4", active_s=1.0, start_s=59.0)
    run = data([flow("own_bulk"), *done, open_, late])
    assert value("completion_p50_ms", run) == 100.0
    assert value("completion_p99_ms", run) == pytest.approx(100.0 + 0.97 * 19_900.0)


def test_bulk_use_is_of_what_the_short_transfers_leave() -> None:
    flows = [
        flow("own_bulk", delivered_bytes=54_000_000),
        flow("own_short_0", delivered_bytes=15_000_000),
    ]
    assert value("bulk_use", data(flows)) == pytest.approx(0.9)


def test_own_share_is_over_the_mean_of_all_flows() -> None:
    samples = series({"own": [(0.0, 2.0)], "victim": [(0.0, 6.0)]})
    assert value("own_share", data([flow("own"), flow("victim")], samples)) == pytest.approx(0.5)


def test_harm_compares_the_victims_beside_with_alone() -> None:
    alone = data([flow("victim", rtt_p95_ms=60.0)], series({"victim": [(0.0, 8.0)]}))
    beside = data(
        [flow("victim", rtt_p95_ms=80.0), flow("own")],
        series({"victim": [(0.0, 2.0)], "own": [(0.0, 6.0)]}),
    )
    assert both("harm_throughput", alone=alone, beside=beside) == pytest.approx(0.75)
    assert both("harm_delay", alone=alone, beside=beside) == pytest.approx(0.25)


def test_a_rise_is_over_when_a_window_carries_nine_tenths() -> None:
    run = data(ONE, series({"own": [(0.0, 5.0), (12.0, 9.5)]}))
    assert value("rise_s", run, at_s=10, to_mbps=10) == pytest.approx(2.2)
    # 20 round trips of 50 ms are 1 s; the longer of the two times is allowed.
    assert value("rise_part", run, at_s=10, to_mbps=10, allowed_s=4.4) == pytest.approx(0.5)
    assert value("rise_part", run, at_s=10, to_mbps=10, allowed_s=0.1) == pytest.approx(2.2)


def test_a_rise_that_never_ends_counts_with_the_time_that_was_left() -> None:
    run = data(ONE, series({"own": [(0.0, 5.0)]}))
    assert value("rise_s", run, at_s=10, to_mbps=10) == pytest.approx(50.0)
    assert value("rise_s", run, at_s=10, to_mbps=10, until_s=30) == pytest.approx(20.0)


def test_a_queue_is_gone_when_it_stays_below_two_round_trips_for_a_second() -> None:
    # 187 500 bytes are three round trips at 10 Mb/s.
    steps = [(0.0, 187_500), (11.0, 0), (11.5, 187_500), (13.0, 0), (20.0, 187_500), (21.0, 0)]
    run = data(ONE, waiting=queue(steps))
    assert value("fall_s", run, at_s=10, to_mbps=10) == pytest.approx(2.9)


def test_a_queue_that_stays_counts_with_the_time_that_was_left() -> None:
    run = data(ONE, waiting=queue([(0.0, 187_500)]))
    assert value("fall_s", run, at_s=10, to_mbps=10) == pytest.approx(50.0)


def test_a_start_is_over_when_a_window_carries_four_fifths() -> None:
    run = data(ONE, series({"own": [(0.0, 1.0), (3.0, 9.0)]}))
    assert value("start_s", run) == pytest.approx(3.1)


def test_a_breaker_trips_after_three_seconds_of_a_tenth_lost() -> None:
    # 1000 packets a second arrive.
    lost = {"own": [(0.0, 0.0), (10.0, 500.0), (12.0, 0.0), (20.0, 500.0), (27.0, 0.0)]}
    assert value("breaker_trips", data(ONE, series({"own": [(0.0, 12.0)]}, lost))) == 2.0


def test_blind_packets_are_those_sent_between_the_ends_of_two_runs() -> None:
    before = data([flow("own", sent_packets=500)], series({"own": [(0.0, 1.0)]}, cwnd=30.0))
    blind = data([flow("own", sent_packets=536, timeouts=4)])
    assert both("blind_packets", before=before, blind=blind) == 36.0
    assert both("blind_excess", before=before, blind=blind) == 6.0
    assert both("blind_timeouts", before=before, blind=blind) == 4.0


def test_a_sender_that_sends_less_than_a_window_has_no_excess() -> None:
    before = data([flow("own", sent_packets=500)], series({"own": [(0.0, 1.0)]}, cwnd=30.0))
    assert both("blind_excess", before=before, blind=data([flow("own", sent_packets=510)])) == 0.0


def test_the_largest_window_is_over_what_the_path_holds() -> None:
    run = data(ONE, series({"own": [(0.0, 1.0)]}, cwnd=120.0))
    assert value("window_ratio", run, hold_packets=60) == 2.0
    assert value("window_ratio", run, hold_packets=1) == 12.0


def test_a_window_that_is_no_number_is_infinite() -> None:
    run = data(ONE, series({"own": [(0.0, 1.0)]}, cwnd=math.inf))
    assert value("window_ratio", run, hold_packets=60) == math.inf


def test_fallbacks_are_counted_by_the_controller() -> None:
    assert value("fallbacks", data(ONE, counters={"fallbacks": 1.0, "decisions": 9.0})) == 1.0
    assert value("fallbacks", data(ONE)) == 0.0


def test_gain_and_kept_compare_two_variants() -> None:
    little, much = (data([flow("own_cheat", delivered_bytes=own)]) for own in (1000, 1500))
    assert both("cheating_gain", honest=little, cheat=much) == 1.5
    assert both("kept", plain=much, changed=little) == pytest.approx(2.0 / 3.0)


def test_every_measure_is_tested_here_and_says_what_it_is() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    for name, own in MEASURES.items():
        assert f'"{name}"' in text, name
        assert own.about, name
