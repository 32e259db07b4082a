"""Names that users type: what they stand for, and what is offered for those that name nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import ackademy
from ackademy import lookup
from ackademy.backends import schemes
from ackademy.errors import AckademyError, ControllerError
from commands import ackademy_command

SHORT = {"duration_s": 1, "dumbbell": {"rtt_ms": 20, "bottleneck": {"rate_mbps": 5}}}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("BBRv3", "bbr3"),
        ("bbr-v1", "bbr1"),
        ("NewReno", "new_reno"),
        ("CUBIC", "cubic"),
        ("Westwood+", "westwood_plus"),
        ("PCC Vivace", "vivace"),
        ("Aurora-Mixed", "aurora_mixed"),
    ],
)
def test_another_spelling_of_a_scheme_is_told_the_name(typed: str, meant: str) -> None:
    with pytest.raises(ControllerError, match=r"^[^\n]*$") as raised:
        schemes.parse(typed)
    assert f"similar: {meant}" in str(raised.value)
    assert len(str(raised.value)) < 250  # the list of all controllers is left out


@pytest.mark.parametrize("words", [("list", "BBRv3"), ("evaluate", "BBRv3"), ("stress", "BBRv3")])
def test_every_command_offers_similar_names(words: tuple[str, str], tmp_path: Path) -> None:
    status, _, errors = ackademy_command(*words, cwd=tmp_path)
    assert status == 2
    assert "similar: bbr3" in errors


def test_a_metric_of_another_spelling_is_told_the_name() -> None:
    found = ackademy.compare({**SHORT, "flow": [{}]}, "cubic", runs=1)
    with pytest.raises(AckademyError, match="similar: delay_mean_ms"):
        found.table("Delay-mean-ms")


@pytest.mark.parametrize("name", ["tcp_drinc", "tcp-drinc", "drl_cc"])
def test_a_controller_that_needs_a_policy_runs_the_policy_of_its_name(name: str) -> None:
    folder = lookup.find({"drl_cc": "drl_cc/all"}.get(name, "tcp_drinc"), "policy")
    (scheme,) = schemes.parse(name)
    assert dict(scheme.params) == {"policy": str(folder)}
    assert schemes.one(name).params == scheme.params
    run = ackademy.run({**SHORT, "flow": [{}]}, cc=name)
    assert run.metrics().flows["throughput_mbps"][0] > 0.0


def test_every_controller_of_the_list_runs_by_its_name_or_says_which_policies_there_are() -> None:
    for name in lookup.controllers():
        if name in ("lp_tcp", "policy"):
            with pytest.raises(ControllerError, match="it needs a policy; allowed: ") as raised:
                schemes.parse(name)
            listed = str(raised.value).partition("allowed: ")[2].split(", ")
            assert set(listed) <= set(lookup.names("policy")), name
        else:
            schemes.parse(name)


def test_a_policy_that_is_given_comes_before_the_one_of_the_name() -> None:
    given = str(lookup.find("aurora_mixed", "policy"))
    for word in ("tcp_drinc:policy=aurora_mixed", ("tcp_drinc", {"policy": given})):
        (scheme,) = schemes.of_words([word])
        assert (scheme.controller, dict(scheme.params)) == ("tcp_drinc", {"policy": given})


CONTROLLER = """\
class {name}:
    def __init__(self, flow):
        self.cwnd_bytes = 4.0 * flow.mss_bytes

    def on_ack(self, ack):
        pass

    def on_loss(self, loss):
        pass


"""


def test_a_file_with_one_controller_stands_for_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("class Helper:\n    pass\n\n\n" + CONTROLLER.format(name="Mine"))
    (scheme,) = schemes.parse(f"{file}:gain=2")
    assert scheme.controller == f"{file}:Mine"
    assert dict(scheme.params) == {"gain": 2.0}
    assert ackademy.run({**SHORT, "flow": [{}]}, cc=str(file)).flows["controller"][0] == (
        f"{file}:Mine"
    )


def test_a_file_with_several_controllers_lists_them(tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    file.write_text(CONTROLLER.format(name="One") + CONTROLLER.format(name="Two"))
    with pytest.raises(ControllerError, match=r"two\.py:One or .*two\.py:Two$"):
        schemes.parse(str(file))
    file = tmp_path / "none.py"
    file.write_text("")
    with pytest.raises(ControllerError, match="allowed: a class with on_ack and on_loss"):
        schemes.parse(str(file))
