"""`ackademy traces`: campaigns, and sets of recordings without overlap."""

from __future__ import annotations

import http.server
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ackademy.backends import distributions, recordings
from ackademy.backends.recordings import Campaign, Layout, Recording
from ackademy.errors import AckademyError, ExperimentError

RATES = Layout({"interval_ms": 10.0})
PAIRS = Layout({"interval_ms": 10.0}, {"interval_ms": 10.0}, ("rate", "delay"))


@pytest.fixture
def campaign_folder(tmp_path: Path) -> Path:
    """Rates and delays of four places on two days."""
    for place in ("north", "south", "west", "east"):
        for day in ("1", "2"):
            rng = Random(place + day)
            for kind, low, high in (("rate", 1, 9), ("delay", 5, 50)):
                lines = "\n".join(f"{rng.uniform(low, high):.2f}" for _ in range(200))
                (tmp_path / f"{place}_{day}_{kind}.txt").write_text(lines, encoding="utf-8")
    return tmp_path


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a server of `tmp_path / "served"`."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def found(folder: Path, by: str = "^([a-z]+)", layout: Layout = RATES) -> list[Recording]:
    return recordings.found(folder, "*_rate.txt", by, layout)


def test_every_campaign_says_where_it_is_and_what_it_asks_for() -> None:
    for name, campaign in recordings.campaigns().items():
        for field in ("about", "format", "page", "licence", "citation"):
            assert getattr(campaign, field), name
        assert campaign.page.startswith("https://")
        assert bool(campaign.files) == bool(campaign.at), name
        for digest in (campaign.files or {}).values():
            assert digest == "" or len(str(digest)) == 64, name


def test_sets_have_every_recording_once_and_no_group_twice(campaign_folder: Path) -> None:
    own = found(campaign_folder)
    for seed in range(20):
        sets = recordings.split(own, (0.5, 0.25, 0.25), seed)
        assert sorted(one.path for chosen in sets.values() for one in chosen) == sorted(
            one.path for one in own
        )
        groups = [{one.group for one in chosen} for chosen in sets.values()]
        assert [len(chosen) for chosen in sets.values()] == [4, 2, 2], "halves and quarters of 8"
        assert len(set.union(*groups)) == sum(map(len, groups)) == 4


def test_sets_of_any_recordings_share_no_group_and_none_is_empty() -> None:
    rng = Random(20261128)
    for seed in range(200):
        own = [
            Recording(Path(f"{group}/{one}"), f"group {group}", f"{group}-{one}")
            for group in range(rng.randrange(3, 30))
            for one in range(rng.randrange(1, 12))
        ]
        rng.shuffle(own)
        shares = [rng.uniform(0.01, 1.0) for _ in range(3)]
        sets = recordings.split(own, [share / sum(shares) for share in shares], seed)
        assert all(sets.values()), seed
        digests = [one.sha256 for chosen in sets.values() for one in chosen]
        assert sorted(digests) == sorted(one.sha256 for one in own), seed
        groups = [{one.group for one in chosen} for chosen in sets.values()]
        assert len(set.union(*groups)) == sum(map(len, groups)), seed


def test_a_set_is_a_distribution_over_its_recordings(campaign_folder: Path) -> None:
    for layout in (RATES, PAIRS):
        sets = recordings.split(found(campaign_folder, layout=layout), (0.5, 0.25, 0.25), 1)
        file = campaign_folder / "train.toml"
        text = recordings.distribution("train", sets["train"], layout, campaign_folder)
        file.write_text(text, encoding="utf-8")
        distribution = distributions.read(file)
        used = set()
        for seed in range(40):
            scenario = tomllib.loads(distribution.draw(seed, 0.0).resolved())
            link = scenario["dumbbell"]["bottleneck"]
            used.add(link["trace"]["file"])
            assert ("delay_trace" in link) == (layout is PAIRS)
            if layout is PAIRS:
                assert link["delay_trace"]["from_s"] == link["trace"]["from_s"]
                assert link["delay_trace"]["file"] == link["trace"]["file"].replace("rate", "delay")
        assert used == {one.path.name for one in sets["train"]}


def test_sets_with_a_common_recording_are_refused(campaign_folder: Path) -> None:
    sets = recordings.split(found(campaign_folder), (0.5, 0.25, 0.25), 1)
    paths = []
    for name, chosen in sets.items():
        paths.append(campaign_folder / f"{name}.toml")
        text = recordings.distribution(name, chosen, RATES, campaign_folder)
        paths[-1].write_text(text, encoding="utf-8")
    assert list(recordings.check_apart(paths).values()) == [4, 2, 2]
    more = [*sets["test"], sets["train"][0]]
    text = recordings.distribution("test", more, RATES, campaign_folder)
    paths[-1].write_text(text, encoding="utf-8")
    with pytest.raises(
        ExperimentError, match=r"test\.toml: sha256 \w{64} is in .*train\.toml, too"
    ):
        recordings.check_apart(paths)


def test_a_recording_of_two_groups_is_refused(campaign_folder: Path) -> None:
    north = campaign_folder / "north_1_rate.txt"
    (campaign_folder / "up_1_rate.txt").write_bytes(north.read_bytes())
    with pytest.raises(ExperimentError, match=r"up_1_rate\.txt of up is the same as .*north_1"):
        found(campaign_folder)


@pytest.mark.parametrize(
    ("by", "pattern", "layout", "message"),
    [
        ("^([a-z", "*_rate.txt", RATES, "allowed: a regular expression"),
        ("^([0-9]+)", "*_rate.txt", RATES, "finds nothing in east_1_rate.txt"),
        ("^([a-z]+)", "*.csv", RATES, "no file is *.csv"),
        ("^([a-z]+)", "*_delay.txt", PAIRS, "no delays in "),
    ],
)
def test_what_names_no_recordings_is_refused(
    campaign_folder: Path, by: str, pattern: str, layout: Layout, message: str
) -> None:
    with pytest.raises(ExperimentError) as refused:
        recordings.found(campaign_folder, pattern, by, layout)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_fewer_groups_than_sets_are_refused(campaign_folder: Path) -> None:
    with pytest.raises(ExperimentError, match=r"2 groups \(1, 2\): allowed: 3 or more"):
        recordings.split(found(campaign_folder, "_([12])_"), (0.6, 0.2, 0.2), 1)


def campaign(at: str, digest: str = "") -> Campaign:
    return Campaign(
        "about", "mahimahi", "https://example.org/", "none", "nobody", at, {"a": digest}
    )


def test_a_campaign_is_fetched_once_and_its_digest_compared(
    tmp_path: Path, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "served" / "a").write_text("1\n2\n", encoding="utf-8")
    digest = "2d1e2e0f"
    monkeypatch.setattr(recordings, "campaigns", lambda: {"mine": campaign(served, digest * 8)})
    with pytest.raises(ExperimentError, match="allowed: that of the campaign"):
        list(recordings.fetch("mine", tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(recordings, "campaigns", lambda: {"mine": campaign(served)})
    assert list(recordings.fetch("mine", tmp_path / "out")) == [tmp_path / "out" / "a"]
    (tmp_path / "served" / "a").unlink()
    assert list(recordings.fetch("mine", tmp_path / "out")) == [tmp_path / "out" / "a"]


def test_what_cannot_be_fetched_is_said_with_the_page_to_fetch_it_from(
    tmp_path: Path, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in (served, "http://127.0.0.1:9/"):
        monkeypatch.setattr(recordings, "campaigns", lambda at=at: {"mine": campaign(at)})
        with pytest.raises(ExperimentError) as refused:
            list(recordings.fetch("mine", tmp_path / "out"))
        assert f"cannot reach {at}a (" in str(refused.value)
        assert str(refused.value).endswith("fetch it by hand from https://example.org/")
        assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    with pytest.raises(AckademyError, match="leocc: its files have no fixed addresses: https://"):
        list(recordings.fetch("leocc", tmp_path / "out"))
    with pytest.raises(AckademyError, match="campaign 'nowhere': allowed: mahimahi, "):
        list(recordings.fetch("nowhere", tmp_path / "out"))
