"""`ackademy search`: expressions, generations that repeat, candidates that misbehave."""

from __future__ import annotations

import ast
import itertools
import json
import shutil
import sys
from pathlib import Path
from random import Random

import pytest

from ackademy.backends import schemes
from ackademy.errors import AckademyError, ExperimentError
from ackademy.studies.evaluate import sources
from ackademy.studies.search import grammar as grammars
from ackademy.studies.search.grammar import DEPTH_MAX, HOLE, Grammar, Template, Tree, expression
from ackademy.studies.search.search import LOG, Search, Task
from commands import ackademy_command

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "search"
SEED = 20261128
TINY = """\
about = "Small networks."
learners = ["own"]
[draw]
"dumbbell.rtt_ms" = { uniform = [10, 20] }
[[scenario]]
name = "wired"
[scenario.inline]
duration_s = 2
[scenario.inline.dumbbell.bottleneck]
rate_mbps = 3
queue = { kind = "drop_tail", bdp = 1 }
[[scenario.inline.flow]]
name = "own"
"""
CONTROLLER = """\
{top}
class Rule:
    def __init__(self, flow):
        self.cwnd_bytes = float(flow.initial_cwnd_bytes)

    def on_ack(self, ack):
        {body}

    def on_loss(self, loss):
        self.cwnd_bytes = max(self.cwnd_bytes / 2, 3000.0)
"""


def task(folder: Path, **more: object) -> Task:
    (folder / "tiny.toml").write_text(TINY)
    on = sources.source([str(folder / "tiny.toml")], None, folder / "networks", runs=2)
    given: dict[str, object] = {
        "folder": folder / "search",
        "template": EXAMPLES / "rule.py",
        "networks": on.cases,
        "score": "utility",
        "seed": 1,
        "limit_s": 20.0,
        "children": 4,
        **more,
    }
    if "proposer" not in given:
        given.setdefault("grammar", EXAMPLES / "rule.toml")
    return Task(**given)  # type: ignore[arg-type]


def depth(tree: Tree) -> int:
    return 1 + max((depth(own) for own in tree[1:] if isinstance(own, list)), default=0)


def test_random_and_bred_expressions_are_python_of_a_bounded_depth() -> None:
    grammar, rng = Grammar.read(EXAMPLES / "rule.toml"), Random(SEED)
    pool = [grammar.random(rng) for _ in range(50)]
    for _ in range(2000):
        one, other = rng.choice(pool), rng.choice(pool)
        before = json.dumps([one, other])
        for bred in (grammar.mutated(one, rng), grammar.crossed(one, other, rng)):
            assert depth(bred) <= DEPTH_MAX
            ast.parse(expression(bred), mode="eval")
            pool[rng.randrange(len(pool))] = bred
        assert json.dumps([one, other]) == before, "parents stay"


def test_a_simplified_expression_has_the_same_value_and_is_no_longer() -> None:
    names = {"a": 0.7, "b": -2.0, "c": 30.0}
    grammar = Grammar(
        (*names, "1.0", "-2.0"), ("+", "-", "*", "/", "min", "max", "if"), (0.1, 9), 6
    )
    rng, shorter = Random(SEED), 0
    for _ in range(2000):
        tree = grammar.random(rng)
        plain, short = expression(tree), expression(grammars.simplified(tree))
        assert len(short) <= len(plain)
        shorter += len(short) < len(plain)
        try:
            value = eval(plain, dict(names))
        except ZeroDivisionError:
            continue
        # Numbers are rounded to three digits, which a difference of two can magnify.
        if not any(sign in plain for sign in ("-", "if")):
            assert eval(short, dict(names)) == pytest.approx(value, rel=0.05)
    assert shorter > 200


def test_a_hole_may_have_its_own_operators_and_numbers(tmp_path: Path) -> None:
    text = 'terms = ["a"]\nnumbers = [2, 3]\n[hole.x]\nterms = ["b"]\nnumbers = [5, 6]\ndepth = 1'
    (tmp_path / "g.toml").write_text(text)
    grammar, rng = Grammar.read(tmp_path / "g.toml"), Random(SEED)
    for name, term, low, high in (("x", "b", 5.0, 6.0), ("y", "a", 2.0, 3.0)):
        own = grammar.of(name)
        leaves = [own.random(rng, 1) for _ in range(50)]
        assert {str(leaf[1]) for leaf in leaves if leaf[0] == "is"} == {term}
        assert all(low <= float(str(leaf[1])) <= high for leaf in leaves if leaf[0] == "number")
    assert (grammar.of("x").depth, grammar.of("y").depth) == (1, 3)


def test_a_template_filled_with_its_own_expressions_does_the_same() -> None:
    template = Template.read(EXAMPLES / "rule.py")
    assert set(template.holes) == {"forget", "target", "change", "keep"}
    assert ast.dump(ast.parse(template.filled(template.holes))) == ast.dump(
        ast.parse(template.text)
    )
    grammar, rng = Grammar.read(EXAMPLES / "rule.toml"), Random(SEED)
    parents = [template.holes]
    for _ in range(200):
        holes, places = grammars.children(grammar, template, parents, rng)
        ast.parse(template.filled(holes))
        assert all(place < len(parents) for place in places)
        parents.append(holes)


def code_of(text: str) -> str:
    """Without what documents it."""
    tree = ast.parse(text)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for body in (tree.body, *(own.body for own in classes)):
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body.pop(0)
    return ast.dump(tree)


def test_the_found_rule_is_the_template_with_the_expressions_that_the_guide_prints(
    tmp_path: Path,
) -> None:
    template, found = (Template.read(EXAMPLES / name) for name in ("rule.py", "found.py"))
    assert code_of(template.filled(found.holes)) == code_of(found.text)
    guide = (ROOT / "docs" / "guide" / "search.md").read_text(encoding="utf-8")
    printed = guide.split("## A rule that was found")[1].split("```python\n")[1].split("```")[0]
    assert printed.splitlines() == [own[0].strip() for own in HOLE.finditer(found.text)]
    scheme = schemes.one(str(EXAMPLES / "found.py"))
    assert Search(task(tmp_path)).judge(scheme).score is not None


def test_a_search_is_the_same_on_any_number_of_processes_and_after_a_kill(tmp_path: Path) -> None:
    logs = []
    for name, jobs in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        own = Search(task(tmp_path / name))
        assert sum(1 for _ in own.run(10, jobs)) == 10
        assert own.best, "the template itself runs"
        logs.append((tmp_path / name / "search" / LOG).read_bytes())
    assert logs[0] == logs[1]
    whole = logs[0]
    log, rng = tmp_path / "two" / "search" / LOG, Random(SEED)
    for _ in range(2):
        log.write_bytes(whole[: rng.randrange(whole.index(b"\n") + 1, len(whole))])
        again = Search(task(tmp_path / "two"))
        list(again.run(10, 2))
        assert log.read_bytes() == whole


def test_every_candidate_after_the_first_generation_has_parents_that_were_judged_before(
    tmp_path: Path,
) -> None:
    own = Search(task(tmp_path))
    list(own.run(12, 2))
    before: set[str] = set()
    for generation, of_it in itertools.groupby(own.found, key=lambda one: one.generation):
        members = list(of_it)
        assert generation == 0 or all(set(one.parents) <= before for one in members)
        before |= {one.digest for one in members}
    line = own.lineage(own.best[0])
    assert line[-1].generation == 0
    scores = [one.score for one in own.best]
    assert len(set(scores)) == len(scores), "of candidates that do the same, one is a parent"


MISBEHAVING = {
    "crashes": ("", "raise ValueError('told')", "told"),
    "loops": ("", "while True: pass", "more than 1 s of a core"),
    "reads": ("", "open('/etc/passwd').read()", "may not open '/etc/passwd'"),
    "writes": ("", "open('x', 'w')", "may not open 'x'"),
    "reads as it loads": ("open('/etc/hostname')", "pass", "may not open '/etc/hostname'"),
    "starts a program": ("import os", "os.system('true')", "may not use os.system"),
    "removes": ("import os", "os.remove('x')", "may not use os.remove"),
    "connects": ("import socket", "socket.socket()", "may not use socket"),
    "has no class": (
        "import math\nclass Other: pass\ndel Other",
        "pass\nRule = 3",
        "no class Rule",
    ),
    "is no Python": ("this is no Python", "pass", "SyntaxError"),
    "has no window": ("", "self.cwnd_bytes = float('nan')", "cwnd_bytes"),
}


@pytest.mark.parametrize("name", MISBEHAVING)
def test_a_candidate_that_misbehaves_gets_no_score_and_a_line_that_says_why(
    tmp_path: Path, name: str
) -> None:
    top, body, told = MISBEHAVING[name]
    proposer = tmp_path / "proposer.py"
    text = CONTROLLER.format(top=top, body=body)
    if name == "has no class":
        text = text.replace("class Rule:", "class Ruler:").replace("\nRule = 3", "")
    proposer.write_text(f"print({text!r})")
    own = Search(task(tmp_path, proposer=f"{sys.executable} {proposer}", limit_s=1.0))
    (found,) = own.run(1, 1)
    assert found.score is None
    assert told in found.error
    assert "\n" not in found.error
    assert not (tmp_path / "x").exists()


def test_a_proposed_candidate_may_import_and_print(tmp_path: Path) -> None:
    proposer = tmp_path / "proposer.py"
    text = CONTROLLER.format(
        top="import math\nimport statistics", body="print(math.pi); self.cwnd_bytes += 10.0"
    )
    proposer.write_text(
        "import json, sys\ntold = json.load(sys.stdin)\n"
        "assert told['class'] == 'Rule' and told['better'] == 'higher'\n"
        f"print({text!r} + '# ' + str(told['place']) + ' ' + str(len(told['best'])))"
    )
    own = Search(task(tmp_path, proposer=f"{sys.executable} {proposer}"))
    found = list(own.run(5, 2))
    assert all(one.score is not None for one in found)
    assert own.text(found[4]).rstrip().endswith("# 0 1"), (
        "it is told the best so far, equal ones once"
    )


@pytest.mark.parametrize(
    ("proposer", "told"),
    [
        ("false", "status 1"),
        ("true", "nothing was printed"),
        ("/no/such/program", "No such file"),
        ("'", "No closing quotation"),
    ],
)
def test_a_proposer_that_fails_ends_the_search_in_one_line(
    tmp_path: Path, proposer: str, told: str
) -> None:
    own = Search(task(tmp_path, proposer=proposer))
    with pytest.raises(ExperimentError, match=told) as error:
        list(own.run(1, 1))
    assert "\n" not in str(error.value)


def test_a_folder_has_one_search(tmp_path: Path) -> None:
    Search(task(tmp_path))
    for more in ({"seed": 2}, {"score": "link_share"}, {"children": 5}, {"proposer": "x"}):
        with pytest.raises(ExperimentError, match="is of another search"):
            Search(task(tmp_path, **more))
    (tmp_path / "search" / LOG).write_text("x\n")
    with pytest.raises(ExperimentError, match="allowed: what a search has written"):
        Search(task(tmp_path))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("terms = []", "one or more"),
        ('terms = ["a b"]', "an expression of Python"),
        ('terms = ["a"]\noperators = ["**"]', r"operators = '\*\*'"),
        ('terms = ["a"]\nnumbers = [0, 1]', "both above 0"),
        ('terms = ["a"]\nnumbers = [1, nan]', "both above 0"),
        ('terms = ["a"]\ndepth = 99', "depth = 99"),
        ('terms = ["a"]\nmore = 1', "more"),
        ('terms = ["a"]\n[hole.x]\nterms = ["("]', "an expression of Python"),
    ],
)
def test_a_wrong_grammar_is_refused_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "g.toml").write_text(text)
    with pytest.raises(AckademyError, match=told) as error:
        Grammar.read(tmp_path / "g.toml")
    assert "\n" not in str(error.value)


def test_a_template_without_a_hole_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rule.py").write_text("x = 1\n")
    with pytest.raises(ExperimentError, match="no hole"):
        Template.read(tmp_path / "rule.py")
    (tmp_path / "rule.py").write_text("x = 1  # hole: a\ny = 2  # hole: a\n")
    with pytest.raises(ExperimentError, match="every name once"):
        Template.read(tmp_path / "rule.py")


def test_the_command_leaves_a_controller_that_runs(tmp_path: Path) -> None:
    for name in ("rule.py", "rule.toml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    words = ("--template", "rule.py", "--grammar", "rule.toml", "--on", "tiny.toml", "--runs", "2")
    status, out, error = ackademy_command("search", *words, "--candidates", "3", cwd=tmp_path)
    assert status == 0, error
    assert "minus vegas" in out
    assert (tmp_path / "reports" / "search-rule.html").is_file()
    status, _, error = ackademy_command(
        "run", "deep_buffer", "--cc", "searches/rule/best.py", "--set", "duration_s=2", cwd=tmp_path
    )
    assert status == 0, error
    status, _, error = ackademy_command("search", *words[:2], cwd=tmp_path)
    assert status == 2
    assert "--grammar FILE or --proposer COMMAND" in error
