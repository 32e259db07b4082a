"""Controllers of several subflows: in the table, in errors, and as Python classes."""

from __future__ import annotations

from pathlib import Path

import pytest

import ackademy
from ackademy.backends import controllers
from ackademy.errors import ControllerError
from commands import ackademy_command

ROOT = Path(__file__).parent.parent
TWO_PATHS = """\
duration_s = 5
[two_path.first]
rate_mbps = 8
delay_ms = 10
[two_path.second]
rate_mbps = 4
delay_ms = 20
[[flow]]
name = "multipath"
multipath = true
count = 2
"""


class _Fixed:
    """A window of so many packets on each subflow."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.windows: dict[int, float] = {}

    def subflow_added(self, subflow: int, flow: ackademy._core.Flow) -> None:
        packets = float(flow.params.get("packets", 4.0)) * (1 + subflow % 2)
        self.windows[subflow] = packets * flow.mss_bytes

    def subflow_removed(self, subflow: int) -> None:
        del self.windows[subflow]

    def on_ack(self, subflow: int, ack: ackademy._core.Ack) -> None:
        assert ack.acked_bytes >= 0
        assert subflow in self.windows

    def on_loss(self, subflow: int, loss: ackademy._core.Loss) -> None:
        pass

    def cwnd_bytes(self, subflow: int) -> float:
        return self.windows[subflow]


class _Raises(_Fixed):
    def on_ack(self, subflow: int, ack: ackademy._core.Ack) -> None:
        raise KeyError("on purpose")


class _Negative(_Fixed):
    def cwnd_bytes(self, subflow: int) -> float:
        return -1.0


class _InPackets(_Fixed):
    def cwnd_bytes(self, subflow: int) -> float:
        return 10.0


class _WithoutWindow:
    def subflow_added(self, subflow: int, flow: ackademy._core.Flow) -> None: ...
    def on_ack(self, subflow: int, ack: ackademy._core.Ack) -> None: ...
    def on_loss(self, subflow: int, loss: ackademy._core.Loss) -> None: ...


@pytest.fixture
def two_paths(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(TWO_PATHS)
    return path


def test_a_python_class_governs_the_subflows_of_each_connection_together(two_paths: Path) -> None:
    _Fixed.made = 0
    result = ackademy.run(two_paths, cc=_Fixed)
    assert _Fixed.made == 2  # one per connection, not per subflow
    delivered = dict(result.flows.select("flow", "goodput_bytes").iter_rows())
    # 4 packets per 20 ms and 8 per 40 ms: 2 Mb/s each, headers included, nothing queues.
    for name, rtt_s, packets in (("multipath_0.0", 0.02, 4), ("multipath_0.1", 0.04, 8)):
        expected = packets * 1448 * 5 / rtt_s
        assert delivered[name] == pytest.approx(expected, rel=0.3), name


def test_a_python_class_of_several_subflows_gets_its_settings(two_paths: Path) -> None:
    totals = [
        int(ackademy.run(two_paths, cc=_Fixed, params={"packets": n}).flows["goodput_bytes"].sum())
        for n in (1.0, 2.0)
    ]
    assert totals[1] > 1.5 * totals[0]


def test_an_exception_of_a_class_of_several_subflows_ends_the_run(two_paths: Path) -> None:
    with pytest.raises(KeyError, match="on purpose"):
        ackademy.run(two_paths, cc=_Raises)


def test_a_window_that_no_sender_can_obey_names_class_and_method(two_paths: Path) -> None:
    with pytest.raises(ControllerError, match=r"_Negative.cwnd_bytes = -1.0: allowed is a finite"):
        ackademy.run(two_paths, cc=_Negative)


def test_a_window_in_packets_gives_one_warning_for_all_subflows(two_paths: Path) -> None:
    with pytest.warns(UserWarning, match=r"_InPackets\.cwnd_bytes = 10: the unit is") as caught:
        ackademy.run(two_paths, cc=_InPackets)
    assert len(caught) == 1


def test_a_class_of_several_subflows_without_a_method_is_refused() -> None:
    with pytest.raises(ControllerError, match="lacks subflow_removed and cwnd_bytes"):
        controllers.register(_WithoutWindow)


def test_the_template_of_a_coupled_controller_runs(tmp_path: Path, two_paths: Path) -> None:
    code, out, err = ackademy_command("new", "coupled", "mine", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "mine.py:Mine" in out
    code, out, err = ackademy_command("run", "two.toml", "--cc", "mine.py:Mine", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "multipath_0" in out


def test_list_says_what_a_controller_governs(tmp_path: Path) -> None:
    entries = {entry["name"]: entry for entry in ackademy._core.controllers()}
    assert (entries["lia"]["scope"], entries["lia"]["single"]) == ("connection", "new_reno")
    assert (entries["cubic"]["scope"], entries["cubic"]["single"]) == ("subflow", "cubic")
    code, out, _ = ackademy_command("list", cwd=tmp_path)
    assert code == 0
    assert any("olia" in line and "connection" in line for line in out.splitlines())


def test_a_coupled_controller_is_accepted_wherever_a_plain_one_is(two_paths: Path) -> None:
    command = ("compare", "two.toml", "--cc", "lia,olia,lia:kernel=on,new_reno", "--runs", "1")
    code, out, err = ackademy_command(*command, cwd=two_paths.parent)
    assert (code, err) == (0, "")
    assert "lia:kernel=on" in out


def test_a_coupled_controller_of_datagrams_is_one_line(two_paths: Path) -> None:
    path = two_paths.with_name("cbr.toml")
    traffic = 'traffic = { kind = "cbr", rate_mbps = 1, packet_bytes = 1000 }\n'
    path.write_text(f'{TWO_PATHS}{traffic}controller = "lia"\n')
    code, _, err = ackademy_command("run", "cbr.toml", cwd=path.parent)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert "a plain controller beside traffic cbr, which has no subflows" in err


LISTED = "mptcp = { subflow = [{ route = [0] }, { route = [1] }, { route = [1] }] }\n"
HOST_POLICY = ROOT / "data/policies" / "drl_cc" / "s1"
FLOW_POLICY = ROOT / "data/policies" / "aurora_mixed"


@pytest.mark.parametrize(
    ("flow", "scheme", "told"),
    [
        pytest.param(
            LISTED,
            f"drl_cc:policy={FLOW_POLICY}",
            "a folder with a policy of a host",
            id="a plain policy named as coupled",
        ),
        pytest.param(
            LISTED,
            f"policy:policy={HOST_POLICY}",
            "a folder with policy.toml and weights.safetensors",
            id="a coupled policy named as plain",
        ),
        pytest.param(
            LISTED.replace("[1] }]", "[2] }]"),
            "lia",
            "flow[0].mptcp.subflow[2].route = [2]: allowed is [0] or [1]",
            id="a subflow over a missing link",
        ),
        pytest.param(
            LISTED,
            f"drl_cc:policy={HOST_POLICY}",
            "allowed is a policy for 3, as many as this flow has",
            id="a policy for another number of paths",
        ),
    ],
)
def test_bad_input_of_several_subflows_is_exit_2_and_one_line(
    tmp_path: Path, flow: str, scheme: str, told: str
) -> None:
    text = TWO_PATHS.replace("multipath = true\n", flow)
    (tmp_path / "bad.toml").write_text(text)
    code, _, err = ackademy_command("run", "bad.toml", "--cc", scheme, cwd=tmp_path)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert told in err


def test_an_unknown_controller_lists_both_tables(two_paths: Path) -> None:
    code, _, err = ackademy_command("run", "two.toml", "--cc", "lai", cwd=two_paths.parent)
    assert code == 2
    assert "similar: lia" in err


@pytest.mark.parametrize("backend", ["sim", "kernel"])
def test_a_policy_for_another_number_of_paths_is_refused_in_one_line(
    tmp_path: Path, backend: str
) -> None:
    path = tmp_path / "three.toml"
    three = "mptcp = { subflow = [{ route = [0] }, { route = [1] }, { route = [0] }] }"
    path.write_text(TWO_PATHS.replace("multipath = true", three))
    policy = str(Path(__file__).parents[1] / "data/policies" / "drl_cc" / "s1")
    words = ("run", str(path), "--cc", policy, "--backend", backend)
    status, out, err = ackademy_command(*words, cwd=tmp_path)
    assert (status, out, len(err.splitlines())) == (2, "", 1), err
    assert "connections of 2 subflows: allowed is a policy for 3" in err
