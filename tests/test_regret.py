"""Regret: an omniscient flow has none, shares are max-min fair, and what is worse has more."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import ackademy
from ackademy.backends.runs import read_scenario
from ackademy.errors import ScenarioError
from ackademy.stats import omniscient
from ackademy.stats.regret import (
    Demand,
    Stretch,
    max_min_mbps,
    power_regret,
    regret,
)
from ackademy.stats.regret import (
    omniscient as of_all,
)
from ackademy.stats.scores import SHARE_FLOOR

LINK = """\
duration_s = 20
[dumbbell]
rtt_ms = 40
[dumbbell.bottleneck]
rate_mbps = 12
queue = { kind = "drop_tail", packets = 200 }
[sender]
ack_every = 1
[[flow]]
name = "own"
"""
FIXED = """\
class Mine:
    def __init__(self, flow):
        self.cwnd_bytes = float(flow.params["packets"]) * flow.mss_bytes

    def on_ack(self, ack):
        pass

    def on_loss(self, loss):
        pass
"""


@pytest.mark.parametrize(
    ("wanted", "shares"),
    [
        ([math.inf, math.inf], [5.0, 5.0]),
        ([2.0, math.inf, math.inf], [2.0, 4.0, 4.0]),
        ([2.0, 3.0, math.inf], [2.0, 3.0, 5.0]),
        ([4.0, 3.0, 20.0], [10.0 / 3.0 + 1.0 / 6.0, 3.0, 3.5]),
        ([1.0, 2.0], [1.0, 2.0]),
        ([], []),
    ],
)
def test_max_min_gives_nobody_more_than_wanted_and_the_rest_in_equal_parts(
    wanted: list[float], shares: list[float]
) -> None:
    assert max_min_mbps(10.0, np.array(wanted)).tolist() == pytest.approx(shares)


def test_an_omniscient_flow_follows_the_rate_and_makes_room_while_others_are_there() -> None:
    stretches = [Stretch(0.0, 10.0, 10.0, 40.0), Stretch(10.0, 20.0, 30.0, 80.0)]
    bulk, late = Demand(0.0, 20.0), Demand(5.0, 15.0)
    alone = of_all(stretches, [bulk])[0]
    assert alone.mbit == pytest.approx(400.0)
    assert alone.rtt_ms == pytest.approx((100.0 * 40.0 + 300.0 * 80.0) / 400.0)
    first, second = of_all(stretches, [bulk, late])
    assert first.mbit == pytest.approx(50 + 25 + 75 + 150)
    assert second.mbit == pytest.approx(25 + 75)


def test_datagrams_come_first_and_what_an_application_does_not_want_is_shared() -> None:
    stretches = [Stretch(0.0, 10.0, 10.0, 40.0)]
    own, shy, call = Demand(0.0, 10.0), Demand(0.0, 10.0, 1.0), Demand(0.0, 10.0, 6.0, yields=False)
    found = [ideal.mbit for ideal in of_all(stretches, [own, shy, call])]
    assert found == pytest.approx([30.0, 10.0, 60.0])


def test_regret_is_zero_for_the_omniscient_flow_and_grows_with_queue_and_lost_share() -> None:
    assert regret(1.0, 1.0) == 0.0
    assert regret(2.0, 0.5) == 0.0
    assert regret(0.5, 1.0) == pytest.approx(math.log(2.0))
    assert regret(1.0, 3.0) == pytest.approx(math.log(3.0))
    assert regret(2.0, 3.0) == pytest.approx(math.log(3.0))
    assert regret(0.0, 1.0) == regret(1.0, math.nan) == -math.log(SHARE_FLOOR)


def test_regret_of_power_is_zero_for_the_omniscient_flow_and_one_without_a_packet() -> None:
    assert power_regret(10.0, 20.0, 10.0, 20.0) == 0.0
    assert power_regret(5.0, 20.0, 10.0, 20.0) == pytest.approx(0.75)
    assert power_regret(10.0, 80.0, 10.0, 20.0) == pytest.approx(0.75)
    assert power_regret(0.0, math.nan, 10.0, 20.0) == 1.0
    assert power_regret(0.0, math.nan, 0.0, math.nan) == 0.0


@pytest.mark.parametrize(
    ("packets", "share", "ratio"),
    # 41 ms of round trip carry 41 packets of a millisecond each.
    [(41, 1.0, 1.0), (20, 20 / 41, 1.0), (123, 1.0, 3.0)],
)
def test_a_window_of_the_pipe_has_no_regret_and_others_what_follows_from_them(
    controller: Callable[[str], str], packets: int, share: float, ratio: float
) -> None:
    run = ackademy.run(LINK, cc=controller(FIXED), params={"packets": packets})
    found = omniscient.behind(run.scenario, run.flows, ["own"])
    assert found.fair_share == pytest.approx(share, rel=0.01)
    assert found.rtt_over_ideal == pytest.approx(ratio, rel=0.05)
    assert found.regret == pytest.approx(math.log(ratio) - math.log(share), abs=0.07)


def test_a_step_of_the_delay_is_not_the_flows_fault(controller: Callable[[str], str]) -> None:
    text = LINK.replace("rate_mbps = 12", "rate_mbps = 12\ndelay_schedule = [[0, 20], [10, 220]]")
    run = ackademy.run(text, cc=controller(FIXED), params={"packets": 2})
    found = omniscient.behind(run.scenario, run.flows, ["own"])
    # Two packets never wait. They see more of the short delay than a flow at the rate of the link.
    assert found.rtt_over_ideal == 1.0
    assert run.flows["rtt_at_delivery_ms"][0] > 60.0


def test_order_kept_under_jitter_is_not_the_flows_fault(controller: Callable[[str], str]) -> None:
    text = LINK.replace("rate_mbps = 12", "rate_mbps = 12\njitter_ms = 10\nkeep_order = true")
    run = ackademy.run(text, cc=controller(FIXED), params={"packets": 45})
    found = omniscient.behind(run.scenario, run.flows, ["own"])
    assert found.rtt_over_ideal == pytest.approx(1.0, abs=0.1)
    assert run.flows["rtt_at_delivery_ms"][0] > 50.0


def test_an_outage_and_steps_of_the_rate_are_cut_into_stretches() -> None:
    text = LINK.replace(
        "rate_mbps = 12", "rate_schedule = [[0, 12], [5, 24]]\noutages = [[2, 3], [18, 30]]"
    )
    found = omniscient.stretches(read_scenario(text))
    assert [(own.start_s, own.end_s, own.rate_mbps) for own in found] == [
        (0.0, 2.0, 12.0),
        (2.0, 3.0, 0.0),
        (3.0, 5.0, 12.0),
        (5.0, 18.0, 24.0),
        (18.0, 20.0, 0.0),
    ]
    assert found[0].rtt_ms == pytest.approx(41.0)
    assert found[3].rtt_ms == pytest.approx(40.5)


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("rate_mbps = 12", 'trace = "t"', "a bottleneck with rate_mbps or rate_schedule"),
        (
            'name = "own"',
            'name = "own"\ntraffic = { kind = "poisson", per_s = 1, mean_bytes = 9 }',
            "traffic.kind = 'poisson': allowed: bulk, app_limited, cbr",
        ),
        ("rtt_ms = 40", "rtt_ms = 40\naccess_mbps = 100", "neither delay_random nor access_mbps"),
    ],
)
def test_what_has_no_known_omniscient_flow_is_refused_on_one_line(
    old: str, new: str, allowed: str
) -> None:
    if "trace" in new:
        new = "rate_random = { low_mbps = 1, high_mbps = 2, hz = 1 }"
    scenario = read_scenario(LINK.replace(old, new))
    with pytest.raises(ScenarioError, match=allowed) as caught:
        omniscient.check(scenario)
    assert "\n" not in str(caught.value)
