"""The playground in Chromium: the numbers of the command line, for everyone."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import ackademy
from ackademy import _core
from ackademy.backends.tables import NAMES
from ackademy.cli import play
from ackademy.errors import AckademyError
from commands import ackademy_command

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
DIST = ROOT / "web" / "dist"
TOURS_FILE = ROOT / "web" / "tours.js"
TOURS = re.findall(r"id: '([\w-]+)'", TOURS_FILE.read_text(encoding="utf-8"))
SHIPPED = [
    "aqm_ecn", "bleached_ecn", "bursty_loss", "cellular", "deep_buffer", "fair_share",
    "forged_marks", "free_topology", "handovers", "learningcc_case1", "lost_feedback",
    "low_latency", "multipath_beside_tcp", "narrow_feedback", "outage", "poisson", "policer",
    "random_loss", "rtt_fairness", "shared_bottleneck", "short_buffer", "two_path_lossy",
    "two_way", "two_wifi", "wifi", "wire/case1_lossy", "xiao2019",
]  # fmt: skip
SECONDS = 8
"""of each of them"""
WEIGHT = 1_500_000
"""most bytes of the page, compressed"""
BARE_WEIGHT = 700_000
"""and of what of it a wheel would hold beside its data"""
RUN_IN_PAGE = """([toml, seed]) => new Promise((done, failed) => {
  const worker = window.spare ??= new Worker('worker.js');
  const results = {};
  worker.onmessage = ({ data }) => {
    if (data.kind === 'frame' && data.on) worker.postMessage({ kind: 'more' });
    if (data.kind === 'refused' || data.kind === 'failed') failed(new Error(data.message));
    if (data.kind === 'finished') worker.postMessage({ kind: 'digest' });
    if (data.kind === 'digest') done(data.hash);
  };
  worker.postMessage({ kind: 'speed', value: Infinity });
  worker.postMessage({ kind: 'open', toml, seed, sample_ms: 100, on: true });
})"""
FOCUSABLE = """() => {
  const kinds = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  const folded = 'details:not([open]) > :not(summary)';
  return [...document.querySelectorAll(kinds)]
    .filter((one) => !one.disabled && one.checkVisibility() && !one.closest(folded))
    .map((one, index) => (one.dataset.place = String(index)));
}"""
NAMELESS = """() => {
  const kinds = 'button, input, select, textarea, canvas:not([aria-hidden], [role=img] canvas)';
  const worded = (one) => one.tagName === 'BUTTON' && one.textContent.trim();
  return [...document.querySelectorAll(kinds)]
    .filter((one) => one.checkVisibility() && !worded(one))
    .filter((one) => !one.ariaLabel && !one.labels?.length)
    .map((one) => one.outerHTML);
}"""


@dataclass
class Opened:
    """A page, and what it must not do."""

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def to_the_end(self) -> dict[str, Any]:
        """What the page measured, when its run is over."""
        self.page.click("#end")
        self.page.wait_for_selector("#results[data-done=true]", timeout=60_000)
        found: dict[str, Any] = self.page.evaluate("playground.measured")
        return found

    def say(self, expression: str) -> Any:  # noqa: ANN401
        """The value of an expression in the page."""
        return self.page.evaluate(expression)


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """Address of the page, as `ackademy play` serves it."""
    if not (DIST / "ackademy.wasm").is_file():
        pytest.skip("needs browser: web/dist, which `make wasm` builds")
    server = play.serve(DIST, {}, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs browser: chromium or google-chrome")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs browser: Playwright")
    with playwright.sync_playwright() as own:
        found = own.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser: Browser, base: str) -> Iterator[Callable[..., Opened]]:
    """Opens the page at a link; in the end no visit has had a fault or asked another host."""
    opened: list[Opened] = []

    def open_at(link: str = "", **options: Any) -> Opened:  # noqa: ANN401
        page = browser.new_context(**options).new_page()
        own = Opened(page, base)
        page.on("console", lambda message: own.faults.append(message.text)
                if message.type in ("error", "warning") else None)  # fmt: skip
        page.on("pageerror", lambda error: own.faults.append(str(error)))
        page.on("request", lambda request: own.requests.append(request.url))
        page.goto(base + link)
        page.wait_for_function("() => window.playground?.about", timeout=60_000)
        opened.append(own)
        return own

    yield open_at
    for own in opened:
        own.page.context.close()
        assert own.faults == []
        assert [url for url in own.requests if not url.startswith((base, "blob:"))] == []


def native(toml: str, seed: int = 1) -> dict[str, Any]:
    """The numbers of a report, as the page has them."""
    found = ackademy.run(toml, seed=seed).metrics()
    rows = {
        name: [
            dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)
        ]
        for name, table in found.columns.items()
    }
    return {**rows, "jain_throughput": found.jain_throughput}


def assert_same(page: Mapping[str, Any], command: Mapping[str, Any]) -> None:
    """Every number of the page is that of the command line."""
    assert page["jain_throughput"] == command["jain_throughput"]
    for table in ("flows", "links"):
        assert len(page[table]) == len(command[table])
        for ours, theirs in zip(page[table], command[table], strict=True):
            for name in ours.keys() & theirs.keys():
                own, other = ours[name], theirs[name]
                if isinstance(other, str):
                    assert own == other
                elif own is None:
                    assert not math.isfinite(other), (name, other)
                elif name == "m_e":
                    assert own == pytest.approx(float(other), rel=1e-14)  # another logarithm
                else:
                    assert own == float(other), (table, name)


def test_the_page_is_built_from_these_sources(visit: Callable[..., Opened]) -> None:
    built = visit().page.inner_text("#core")
    assert built == _core.CODE_HASH, "`make wasm` builds the page anew"


@pytest.mark.parametrize("tour", TOURS)
def test_a_tour_runs_and_ends_with_the_numbers_of_the_command_line(
    visit: Callable[..., Opened], tour: str
) -> None:
    opened = visit(f"#tour={tour}")
    measured = opened.to_the_end()
    assert_same(measured, native(opened.say("playground.toml")))
    shown = opened.page.locator("#report tbody tr").count()
    assert shown >= len(measured["flows"])
    assert opened.page.inner_text("#fault") == ""


def canonical(columns: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The bytes of `crates/wasm/src/tables.rs`."""
    names, values = [], []
    for table in NAMES:
        names.append(table)
        for name, column in columns[table].items():
            names.append(name)
            if isinstance(column, list):
                values.append(b"".join(text.encode() + b"\0" for text in column))
            else:
                values.append(
                    np.ascontiguousarray(column).astype("<" + column.dtype.str[1:]).tobytes()
                )
    return b"".join(name.encode() + b"\0" for name in names) + b"".join(values)


def test_shipped_scenarios_give_the_same_rows_and_series_in_the_page(
    visit: Callable[..., Opened],
) -> None:
    page = visit().page
    assert len(SHIPPED) >= 20
    for name in SHIPPED:
        path = ROOT / "data" / "scenarios" / f"{name}.toml"
        cut = {"duration_s": str(SECONDS), "sample_interval_ms": "100"}
        toml = _core.Scenario.parse(path.read_text(), str(path), cut).resolved()
        columns = _core.simulate(_core.Scenario.parse(toml, str(path)), 3)
        ours = hashlib.sha256(canonical(columns)).hexdigest()
        assert page.evaluate(RUN_IN_PAGE, [toml, 3]) == ours, name


def test_changes_while_it_runs_give_the_run_of_the_scenario_that_is_downloaded(
    visit: Callable[..., Opened],
) -> None:
    opened = visit("#tour=rtt")
    opened.page.wait_for_function("() => playground.frame?.now > 2")
    for key, value in (("rate", "8"), ("rtt", "80"), ("loss", "0.5")):
        opened.page.fill(f"#in-{key}", value)
        opened.page.dispatch_event(f"#in-{key}", "change")
        opened.page.wait_for_timeout(300)
    measured = opened.to_the_end()
    with opened.page.expect_download() as download:
        opened.page.click("#download")
    toml = Path(download.value.path()).read_text()
    assert {"rate_schedule", "delay_schedule", "loss_schedule"} <= set(re.findall(r"\w+", toml))
    assert_same(measured, native(toml))


def test_a_link_opens_the_same_run(visit: Callable[..., Opened]) -> None:
    opened = visit("#tour=late")
    opened.page.select_option("#in-queue", "codel")
    opened.page.wait_for_function("() => location.hash.startsWith('#play=')")
    measured = opened.to_the_end()
    assert "codel" in opened.say("playground.toml")
    again = visit(opened.say("location.hash"))
    assert again.to_the_end() == measured


def test_the_copied_command_prints_the_numbers_of_the_page(
    visit: Callable[..., Opened], tmp_path: Path
) -> None:
    opened = visit("#tour=flagship", permissions=["clipboard-read", "clipboard-write"])
    measured = opened.to_the_end()
    opened.page.click("#command")
    opened.page.wait_for_function("() => document.getElementById('copied').textContent")
    words = shlex.split(opened.say("navigator.clipboard.readText()"))
    assert words[:2] == ["ackademy", "run"]
    code, out, errors = ackademy_command(*words[1:], "--json", "-", cwd=tmp_path)
    assert code == 0, errors
    found = json.loads(out)
    for ours, theirs in zip(measured["flows"], found["flows"], strict=True):
        assert ours["throughput_mbps"] == theirs["throughput_mbps"]
        assert ours["delay_ms"] == theirs["delay_ms"]


def test_scenarios_traces_and_policies_can_be_brought(
    visit: Callable[..., Opened], tmp_path: Path
) -> None:
    opened = visit()
    page = opened.page
    (tmp_path / "own.txt").write_text("5\n10\n15\n20\n")
    page.set_input_files("#files", tmp_path / "own.txt")
    page.wait_for_function("() => playground.toml.includes('trace = \"own.txt\"')")
    opened.to_the_end()
    folder = ROOT / "data" / "policies" / "aurora_mixed"
    page.set_input_files("#files", [folder / "policy.toml", folder / "weights.safetensors"])
    page.wait_for_function("() => playground.toml.includes('policy = \"dropped\"')")
    opened.to_the_end()
    page.set_input_files("#files", ROOT / "data" / "scenarios" / "two_way.toml")
    page.wait_for_function(
        "() => playground.file?.name === 'two_way.toml' && playground.about.flows.length > 1"
    )
    assert_same(opened.to_the_end(), native((ROOT / "data/scenarios/two_way.toml").read_text()))
    assert page.inner_text("#fault") == ""


def test_what_is_wrong_is_one_line_on_the_page(visit: Callable[..., Opened]) -> None:
    opened = visit("#scenario=nonsense")
    assert "first tour" in opened.page.inner_text("#fault")
    opened.page.click("summary")
    opened.page.fill(
        "#toml", "duration_s = 5\n[dumbbell]\nrtt_ms = 20\nbottleneck = {}\n[[flow]]\n"
    )
    opened.page.click("#use")
    opened.page.wait_for_function(
        "() => document.getElementById('fault').textContent.includes('rate_mbps')"
    )
    fault = opened.page.inner_text("#fault")
    assert fault.startswith("scenario.toml:")
    assert "\n" not in fault


def test_the_keyboard_reaches_every_control_and_each_has_a_name(
    visit: Callable[..., Opened],
) -> None:
    opened = visit()
    opened.to_the_end()
    places = set(opened.say(f"({FOCUSABLE})()"))
    assert len(places) > 40
    reached = set()
    for _ in range(2 * len(places)):
        opened.page.keyboard.press("Tab")
        reached.add(opened.say("document.activeElement?.dataset.place ?? null"))
        if places <= reached:
            break
    assert places - reached == set()
    assert opened.say(f"({NAMELESS})()") == []
    assert opened.page.get_attribute("#state", "aria-live") == "polite"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(visit: Callable[..., Opened], scheme: str) -> None:
    opened = visit("#tour=lia", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    opened.to_the_end()
    assert opened.say("document.documentElement.scrollWidth") == 390
    dark = opened.say("getComputedStyle(document.body).backgroundColor") == "rgb(16, 21, 28)"
    assert dark == (scheme == "dark")


def test_who_wants_no_motion_starts_the_run(visit: Callable[..., Opened]) -> None:
    opened = visit(reduced_motion="reduce")
    assert opened.page.inner_text("#go") == "Start"
    opened.page.keyboard.press("Tab")
    opened.page.focus("#go")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_function("() => playground.frame.now > 0.5")
    assert opened.page.inner_text("#state") == "Running."


def test_the_page_weighs_little(base: str) -> None:
    files = [path for path in DIST.rglob("*") if path.is_file()]
    sizes = {path.relative_to(DIST): len(zlib.compress(path.read_bytes(), 9)) for path in files}
    assert sum(sizes.values()) <= WEIGHT, sizes
    bare = [size for path, size in sizes.items() if path.parts[0] not in play.SHARED]
    assert sum(bare) <= BARE_WEIGHT, sizes


def test_play_serves_the_page_to_this_machine_until_it_is_stopped(base: str) -> None:
    command = [sys.executable, "-c", "from ackademy.cli import main; main()"]
    with subprocess.Popen(
        [*command, "play", "cellular", "--no-open"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(2)
        assert process.wait(timeout=20) == 0
    assert re.match(
        r"playground: http://127\.0\.0\.1:\d+/#scenario=[\w-]+&seed=1&name=cellular  \(Ctrl-C",
        line,
    )


def test_a_scenario_on_the_command_line_is_what_the_page_runs(
    visit: Callable[..., Opened], tmp_path: Path
) -> None:
    path = ROOT / "data" / "scenarios" / "deep_buffer.toml"
    _, fragment = play.brought(str(path), 5)
    opened = visit(fragment)
    assert_same(opened.to_the_end(), native(path.read_text(), seed=5))


def test_a_page_that_is_not_built_and_a_taken_port_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(play, "SITES", (tmp_path,))
    with pytest.raises(AckademyError, match="play: the page is missing; build it with `make wasm`"):
        play.site_folder()
    server = play.serve(tmp_path, {}, 0)
    with pytest.raises(AckademyError, match=f"--port {server.server_port}: Address already"):
        play.serve(tmp_path, {}, server.server_port)
    server.server_close()
