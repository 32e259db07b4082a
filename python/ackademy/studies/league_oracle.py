"""Runs of the BDP oracle on a league's drawn networks, which regret is measured against, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ackademy import _core
from ackademy.studies import bdp_oracle, league
from ackademy.studies.league import LeagueScheme, Network, SchemeCase, Suite
from ackademy.studies.league_grid import Role

ORACLE = LeagueScheme(
    label="BDP oracle",
    controller=f"{bdp_oracle.__file__}:{bdp_oracle.BdpOracle.__name__}",
    kind="classic",
    family="omniscient",
)
"""no scheme of the league: it wins nothing and is ranked nowhere"""
TOLD: tuple[Role, ...] = ("alone", "redraw")
"""networks of which rate and round trip are known at any time, and whose flow is alone"""


def cases(suite: Suite, runs: int, only: str = "*") -> list[SchemeCase]:
    """The oracle on every network that it can be told; seeds count from 1.

    Args:
        suite: whose drawn networks are meant.
        runs: seeds per network, >= 1.
        only: pattern of the networks' names.
    """
    told = [own for own in suite.networks if own.role in TOLD and _core.fits(only, own.name)]
    if not told:
        return []
    networks = tuple(replace(own, scheme_params={ORACLE.label: _params(own)}) for own in told)
    return league.scheme_cases(replace(suite, schemes=(ORACLE,), networks=networks), runs)


def _params(network: Network) -> dict[str, float | str]:
    return {
        "rates_mbps": _schedule(network.rates_mbps),
        "rtts_ms": _schedule(network.rtts_ms),
        "flows": 1.0,
    }


def _schedule(steps: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{start!r}:{value!r}" for start, value in steps)
