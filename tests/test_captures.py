"""Packets of a run as pcapng, and what senders do as qlog.

`crates/capture/tests/tshark.rs` compares what tshark reads with what the simulation counts, over
many networks.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ackademy
from ackademy import Pcap
from ackademy.errors import AckademyError
from commands import ackademy_command

Event = dict[str, Any]
SEED = 5
"""of the drawn scenarios"""
SHORT = ("--set", "duration_s=4")
REQUIRED: dict[str, dict[str, type]] = {
    "transport:packet_sent": {"header": dict, "raw": dict, "frames": list},
    "transport:packet_received": {"header": dict, "raw": dict, "frames": list},
    "recovery:packet_lost": {"header": dict, "trigger": str},
    "recovery:metrics_updated": {},
    "recovery:congestion_state_updated": {"new": str},
}
"""fields that qlog 0.3 or qvis ask for, by event"""
METRICS = {
    "min_rtt": float,
    "smoothed_rtt": float,
    "latest_rtt": float,
    "congestion_window": int,
    "bytes_in_flight": int,
    "ssthresh": int,
    "pacing_rate": int,
}
STATES = ("slow_start", "congestion_avoidance", "recovery")
TRIGGERS = ("time_threshold", "reordering_threshold", "pto_expired")
TWO_PATHS = """
duration_s = 3
[two_path.first]
rate_mbps = 8
delay_ms = 10
loss = { kind = "bernoulli", ratio = 0.02 }
[two_path.second]
rate_mbps = 4
delay_ms = 40
[[flow]]
controller = "olia"
multipath = true
"""
FAILS = """
class Fails:
    cwnd_bytes = 30000
    def __init__(self, flow): self.calls = 0
    def on_ack(self, ack):
        self.calls += 1
        if self.calls > 500: raise RuntimeError("enough")
    def on_loss(self, loss): pass
"""


def drawn(rng: random.Random) -> str:
    """A scenario drawn at random, of 3 s."""
    queue = rng.choice(
        [
            'kind = "drop_tail", packets = 20',
            'kind = "codel", packets = 200, ecn = true',
            'kind = "fq_codel", packets = 200',
        ]
    )
    controller = rng.choice(["cubic", "bbr1", "new_reno", "copa", "prague"])
    recovery = rng.choice(["sack", "sack", "ns2"])
    ecn = "off" if recovery == "ns2" else rng.choice(["off", "classic", "accurate"])
    reorder = "reorder = { ratio = 0.01, low_ms = 1, high_ms = 30 }" if rng.random() < 0.5 else ""
    return f"""
duration_s = 3
[dumbbell]
rtt_ms = {rng.uniform(5, 100):.3f}
[dumbbell.bottleneck]
rate_mbps = {rng.uniform(2, 30):.3f}
queue = {{ {queue} }}
loss = {{ kind = "bernoulli", ratio = {rng.uniform(0, 0.03):.4f} }}
{reorder}
[[flow]]
name = "a"
count = {rng.choice([1, 3])}
controller = "{controller}"
sender = {{ recovery = "{recovery}", ecn = "{ecn}", ack_every = {rng.choice([1, 2, 4])} }}
"""


def records(path: Path) -> Iterator[Event]:
    """The records of a JSON text sequence."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("\x1e")
    for record in text[1:].split("\x1e"):
        assert record.endswith("\n")
        yield json.loads(record)


def check_event(event: Event) -> None:
    """An event has the fields that qlog asks for, of the right types."""
    assert set(event) <= {"time", "name", "group_id", "data"}
    assert isinstance(event["time"], float)
    data = event["data"]
    for field, kind in REQUIRED[event["name"]].items():
        assert isinstance(data[field], kind), event
    if "header" in data:
        assert data["header"]["packet_type"] == "1RTT"
        assert isinstance(data["header"]["packet_number"], int)
    for frame in data.get("frames", ()):
        if frame["frame_type"] == "ack":
            assert all(low <= high for low, high in frame["acked_ranges"])
        else:
            assert frame["frame_type"] == "stream"
            assert all(isinstance(frame[name], int) for name in ("stream_id", "offset", "length"))
    assert data.get("trigger", TRIGGERS[0]) in TRIGGERS
    assert data.get("new", STATES[0]) in STATES
    if event["name"] == "recovery:metrics_updated":
        assert data
        assert all(isinstance(value, METRICS[name]) for name, value in data.items()), event


def check_qlog(path: Path, run: ackademy.Run) -> None:
    """A file has the structure of qlog, and as many packets of each flow as its run counts."""
    head, *events = records(path)
    assert (head["qlog_version"], head["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert head["trace"]["vantage_point"]["type"] == "client"
    common = head["trace"]["common_fields"]
    assert (common["time_format"], common["reference_time"]) == ("relative", 0)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    lost: Counter[str] = Counter()
    sizes: dict[tuple[str, int], int] = {}
    acknowledged: set[tuple[str, int]] = set()
    latest = 0.0
    for event in events:
        check_event(event)
        assert event["time"] >= latest
        latest = event["time"]
        flow, data = event.get("group_id", common.get("group_id")), event["data"]
        counts[flow][event["name"]] += 1
        if event["name"] == "transport:packet_sent":
            sizes[flow, data["header"]["packet_number"]] = data["raw"]["length"]
        elif event["name"] == "recovery:packet_lost":
            lost[flow] += sizes[flow, data["header"]["packet_number"]]
        elif event["name"] == "transport:packet_received":
            for low, high in data["frames"][0]["acked_ranges"]:
                found = {(flow, number) for number in range(low, high + 1)}
                assert found <= sizes.keys()
                assert not found & acknowledged
                acknowledged |= found
    for row in run.flows.iter_rows(named=True):
        own = counts[row["flow"]]
        assert own["transport:packet_sent"] == row["sent_packets"]
        # One packet of an episode may be told when the next begins, which the end may forestall.
        untold = row["declared_lost_bytes"] - lost[row["flow"]]
        assert untold in (0, row["mss_bytes"])
        assert own["recovery:metrics_updated"] > 0


def test_a_qlog_has_the_structure_of_the_schema_and_the_counts_of_its_run(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    scenarios = [drawn(rng) for _ in range(8)]
    path = tmp_path / "run.sqlog"
    losses = 0
    for text in [*scenarios, TWO_PATHS]:
        run = ackademy.run(text, qlog=path, seed=3, sample_interval_ms=0)
        try:
            check_qlog(path, run)
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}: {text}") from error
        losses += int(run.flows["declared_lost_bytes"].sum())
    assert losses > 0


def test_datagrams_and_transfers_that_come_and_go_are_logged_by_their_flows(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlog"
    run = ackademy.run("poisson", qlog=path, sample_interval_ms=0)
    _, *events = records(path)
    sent = Counter(
        event["group_id"] for event in events if event["name"] == "transport:packet_sent"
    )
    expected = zip(run.flows["flow"], run.flows["sent_packets"], strict=True)
    assert sent == {flow: count for flow, count in expected if count}


def test_files_are_the_same_for_the_same_seed_and_change_nothing(tmp_path: Path) -> None:
    def files(seed: int, name: str) -> tuple[bytes, bytes, str]:
        pcap, qlog = tmp_path / f"{name}.pcapng", tmp_path / f"{name}.sqlog"
        run = ackademy.run(
            drawn(random.Random(SEED)), seed=seed, sample_interval_ms=0, pcap=pcap, qlog=qlog
        )
        return pcap.read_bytes(), qlog.read_bytes(), run.flows.write_csv()

    first, again, other = files(1, "a"), files(1, "b"), files(2, "c")
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]
    plain = ackademy.run(drawn(random.Random(SEED)), seed=1, sample_interval_ms=0)
    assert first[2] == plain.flows.write_csv()


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark: the program")
def test_the_command_writes_what_tshark_reads(tmp_path: Path) -> None:
    words = ("random_loss", "--set", "duration_s=20", "--pcap", "a.pcapng", "--pcap-ip", "6")
    code, out, err = ackademy_command("run", *words, "--parquet", "tables", cwd=tmp_path)
    assert code == 0, err
    assert "packets: a.pcapng" in out
    kinds = " or ".join(f"tcp.analysis.{kind}" for kind in ("retransmission", "out_of_order"))
    found = subprocess.run(
        ["tshark", "-r", "a.pcapng", "-Y", kinds, "-T", "fields", "-e", "ipv6.version"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    flows = pl.read_parquet(tmp_path / "tables/flows.parquet")
    retransmitted = int(flows["retransmitted_packets"].sum())
    assert found == ["6"] * retransmitted
    assert retransmitted > 10


def test_each_place_has_its_packets(tmp_path: Path) -> None:
    def packets(at: str) -> bytes:
        pcap = Pcap(tmp_path / "a.pcapng", at=at, snaplen=200, ip=6)
        ackademy.run(drawn(random.Random(SEED)), pcap=pcap, sample_interval_ms=0)
        return (tmp_path / "a.pcapng").read_bytes()

    places = ("sender", "receiver", "link:bottleneck", "link:reverse")
    assert len({packets(at) for at in places}) == len(places)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--pcap", "a.txt"), "a.txt: allowed: a file that ends in .pcapng"),
        (("--qlog", "a.qlog"), "a.qlog: allowed: a file that ends in .sqlog"),
        (("--pcap", "-"), "cannot write -: allowed: a file"),
        (("--pcap-at", "receiver"), "--pcap-at: allowed: with --pcap"),
        (("--pcap", "a.pcapng", "--pcap-at", "home"),
         "pcap at 'home': allowed: sender, receiver, link:NAME"),
        (("--pcap", "a.pcapng", "--pcap-at", "link:x"),
         "pcap at 'link:x': allowed: sender, receiver, link:bottleneck, link:reverse"),
        (("--pcap", "a.pcapng", "--pcap-snaplen", "60"),
         "Input should be greater than or equal to 128"),
        (("--pcap", "a.pcapng", "--pcap-ip", "5"), "pcap ip = 5: allowed: 4, 6"),
        (("--pcap", "a.pcapng", "--backend", "kernel"),
         "pcap on the backend kernel: allowed: on the backend sim"),
        (("--qlog", "a.sqlog", "--backend", "kernel"),
         "qlog on the backend kernel: allowed: on the backend sim or quic"),
        (("--pcap", "a.pcapng", "--set", "flow.0.sender={packet_bytes=65535}"),
         "65483 bytes of payload: allowed in a pcap are at most 65435"),
        (("--pcap", "/dev/full"), "cannot write /dev/full: No space left on device"),
    ],
)  # fmt: skip
def test_a_capture_that_cannot_be_is_refused_in_one_line_and_leaves_nothing(
    words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    code, out, err = ackademy_command("run", "deep_buffer", *SHORT, *words, cwd=tmp_path)
    assert code == 2, (out, err)
    assert told in " ".join(err.split())
    assert not list(tmp_path.iterdir())


def test_a_run_that_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    pcap, qlog = tmp_path / "a.pcapng", tmp_path / "a.sqlog"
    pcap.write_text("before")
    with pytest.raises(RuntimeError, match="enough"):
        ackademy.run("deep_buffer", cc=f"{tmp_path / 'fails.py'}:Fails", pcap=pcap, qlog=qlog)
    assert pcap.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"fails.py", "a.pcapng"}


def test_a_controller_in_python_is_captured(tmp_path: Path) -> None:
    class Constant:
        cwnd_bytes = 30_000

        def __init__(self, flow: object) -> None:
            pass

        def on_ack(self, ack: object) -> None:
            pass

        def on_loss(self, loss: object) -> None:
            pass

    path = tmp_path / "a.sqlog"
    run = ackademy.run("random_loss", cc=Constant, qlog=path, pcap=tmp_path / "a.pcapng")
    check_qlog(path, run)
    windows = {
        event["data"]["congestion_window"]
        for event in list(records(path))[1:]
        if "congestion_window" in event["data"]
    }
    assert windows == {30_000}


@pytest.mark.parametrize(
    ("field", "value"), [("snaplen", 1), ("ip", 5), ("at", "link"), ("path", "a.pcap")]
)
def test_a_pcap_says_what_is_allowed(field: str, value: int | str, tmp_path: Path) -> None:
    given: Event = {"path": tmp_path / "a.pcapng", field: value}
    with pytest.raises(AckademyError, match="allowed: "):
        ackademy.run("deep_buffer", pcap=Pcap(**given))
