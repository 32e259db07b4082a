"""Expressions for the holes of a template, at random and by mutation.

A template is a controller that runs as it is. A line `name = EXPRESSION  # hole: NAME` is a hole:
the search puts another expression there. A grammar file says what expressions are made of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TypeAlias, TypeGuard

from ackademy.errors import ExperimentError
from ackademy.files import read_text
from ackademy.toml_table import TomlTable

Tree: TypeAlias = "list[object]"
"""`["is", text]`, `["number", value]`, or an operator with the trees of its operands"""
Holes: TypeAlias = Mapping[str, Tree]

HOLE = re.compile(r"^([ \t]*[\w.]+ = )(.+?)([ \t]*# hole: (\w+))[ \t]*$", re.MULTILINE)
NUMBER = re.compile(r"-?[0-9.]+")
OPERATORS: Mapping[str, tuple[int, str]] = {
    "+": (2, "({} + {})"),
    "-": (2, "({} - {})"),
    "*": (2, "({} * {})"),
    "/": (2, "({} / {})"),
    "min": (2, "min({}, {})"),
    "max": (2, "max({}, {})"),
    "if": (4, "({2} if {0} < {1} else {3})"),
}
"""number of operands, and Python"""
DEPTH_MAX = 8
LEAVES = 0.3
"""probability that a random tree ends before its depth"""
NUMBERS = 0.3
"""of a leaf to be a number"""
KEYS = ("terms", "operators", "numbers", "depth")
"""of a grammar file, and of a hole in it"""
STEP = 0.3
"""standard deviation of a mutated number's logarithm"""


@dataclass(frozen=True, slots=True)
class Grammar:
    """What expressions are made of."""

    terms: tuple[str, ...]
    """expressions of Python, each a leaf"""
    operators: tuple[str, ...]
    numbers: tuple[float, float]
    """smallest and largest of a random one, above 0; their logarithms are uniform"""
    depth: int
    """of a random tree"""
    of_holes: Mapping[str, Grammar] = field(default_factory=dict)
    """of a hole that has its own"""

    @classmethod
    def read(cls, path: Path) -> Grammar:
        """Read a grammar file.

        Raises:
            ExperimentError: if it is wrong; one line.
        """
        table = TomlTable.read(path).only(*KEYS, "hole")
        whole = cls(_terms(table), tuple(OPERATORS), (0.01, 100.0), 3)._with(table)
        holes = table.table("hole")
        own = {name: whole._with(holes.table(name).only(*KEYS)) for name in holes.values}
        return replace(whole, of_holes=own)

    def of(self, hole: str) -> Grammar:
        """The grammar of a hole."""
        return self.of_holes.get(hole, self)

    def random(self, rng: Random, depth: int | None = None) -> Tree:
        """A tree of at most so many levels."""
        left = self.depth if depth is None else depth
        if left <= 1 or rng.random() < LEAVES:
            return self._leaf(rng)
        operator = rng.choice(self.operators)
        return [operator, *(self.random(rng, left - 1) for _ in range(OPERATORS[operator][0]))]

    def mutated(self, tree: Tree, rng: Random) -> Tree:
        """A tree that differs in one place."""
        place = rng.choice(_places(tree))
        old = _at(tree, place)
        kind = rng.random()
        if old[0] == "number" and kind < 0.7:
            new: Tree = ["number", _rounded(_number(old) * rng.lognormvariate(0.0, STEP))]
        elif kind < 0.5 or not place:
            new = self.random(rng, max(1, self.depth - len(place)))
        elif kind < 0.7:
            operator = rng.choice(
                [own for own in self.operators if OPERATORS[own][0] == 2] or ["+"]
            )
            pair = [old, self._leaf(rng)]
            new = [operator, *(pair if rng.random() < 0.5 else pair[::-1])]
        else:
            return _put(tree, place[:-1], old)  # its parent goes
        found = _put(tree, place, new)
        return found if _depth(found) <= DEPTH_MAX else self.random(rng)

    def crossed(self, one: Tree, other: Tree, rng: Random) -> Tree:
        """The first with a part of the second in place of one of its own."""
        found = _put(one, rng.choice(_places(one)), _at(other, rng.choice(_places(other))))
        return found if _depth(found) <= DEPTH_MAX else one

    def _with(self, table: TomlTable) -> Grammar:
        """With what a table says in place of its own."""
        operators = tuple(table.strings("operators", list(self.operators)))
        wrong = next((own for own in operators if own not in OPERATORS), None)
        if wrong is not None:
            raise table.error("operators", wrong, ", ".join(OPERATORS))
        if not operators:
            raise table.error("operators", [], "one or more")
        ends = table.values.get("numbers", list(self.numbers))
        if not _is_range(ends):
            raise table.error("numbers", ends, "[low, high], both above 0")
        low, high = map(float, ends)
        depth = table.whole("depth", 1, DEPTH_MAX) if "depth" in table.values else self.depth
        terms = _terms(table) if "terms" in table.values else self.terms
        return Grammar(terms, operators, (low, high), depth)

    def _leaf(self, rng: Random) -> Tree:
        if rng.random() < NUMBERS:
            low, high = self.numbers
            return ["number", _rounded(low * (high / low) ** rng.random())]
        return ["is", rng.choice(self.terms)]


@dataclass(frozen=True, slots=True)
class Template:
    """A controller's file with holes."""

    text: str
    holes: Mapping[str, Tree]
    """what it has in them"""

    @classmethod
    def read(cls, path: Path) -> Template:
        """Read a template.

        Raises:
            ExperimentError: if it cannot be read, or has no hole; one line.
        """
        text = read_text(path, error=ExperimentError)
        found: dict[str, Tree] = {match[4]: ["is", match[2]] for match in HOLE.finditer(text)}
        if not found:
            allowed = "a line `name = EXPRESSION  # hole: NAME`"
            raise ExperimentError(f"{path}: no hole: allowed: {allowed}")
        if len(found) < len(HOLE.findall(text)):
            raise ExperimentError(f"{path}: hole: allowed: every name once")
        return cls(text, found)

    def filled(self, holes: Holes) -> str:
        """The file with these expressions."""
        return HOLE.sub(lambda m: m[1] + expression(holes[m[4]]) + m[3], self.text)


def expression(tree: Tree) -> str:
    """A tree as Python."""
    if tree[0] == "is":
        text = str(tree[1])
        return text if re.fullmatch(r"[\w.]+", text) else f"({text})"
    if tree[0] == "number":
        return f"{_number(tree):g}"
    return OPERATORS[str(tree[0])][1].format(*(expression(own) for own in _operands(tree)))


def simplified(tree: Tree) -> Tree:
    """Without operators whose result is known: that of numbers, or of the same twice."""
    if tree[0] == "is":
        return ["number", float(str(tree[1]))] if NUMBER.fullmatch(str(tree[1])) else tree
    own = [simplified(one) for one in _operands(tree)]
    if not own:
        return tree
    new: Tree = [tree[0], *own]
    first, second, *chosen = own
    are_numbers = first[0] == second[0] == "number"
    if tree[0] == "if" and (are_numbers or chosen[0] == chosen[1]):
        return chosen[0] if _number(first) < _number(second) else chosen[1]
    if tree[0] in ("min", "max") and first == second:
        return first
    if tree[0] != "if" and are_numbers and (tree[0] != "/" or _number(second)):
        return ["number", _rounded(eval(expression(new)))]  # of two numbers
    return new


def children(
    grammar: Grammar, template: Template, parents: Sequence[Holes], rng: Random
) -> tuple[dict[str, Tree], tuple[int, ...]]:
    """New holes from the best so far, and the places of those that they come from.

    Args:
        grammar: what may be in them.
        template: where they are.
        parents: the best first; none for a random beginning.
        rng: of every choice.
    """
    if not parents:
        return {name: simplified(grammar.of(name).random(rng)) for name in template.holes}, ()
    first = min(rng.randrange(len(parents)) for _ in range(2))
    holes = dict(parents[first])
    name = rng.choice(sorted(holes))
    if len(parents) > 1 and rng.random() < 0.3:
        second = rng.randrange(len(parents))
        crossed = grammar.of(name).crossed(holes[name], parents[second][name], rng)
        return {**holes, name: simplified(crossed)}, (first, second)
    for _ in range(1 + (rng.random() < 0.3)):
        holes[name] = simplified(grammar.of(name).mutated(holes[name], rng))
        name = rng.choice(sorted(holes))
    return holes, (first,)


def _terms(table: TomlTable) -> tuple[str, ...]:
    """Expressions of Python, one or more."""
    terms = table.strings("terms")
    if not terms:
        raise table.error("terms", terms, "one or more")
    for term in terms:
        try:
            compile(term, "a term", "eval")
        except (SyntaxError, ValueError):
            raise table.error("terms", term, "an expression of Python") from None
    return tuple(terms)


def _is_range(ends: object) -> TypeGuard[list[float]]:
    return (
        isinstance(ends, list)
        and len(ends) == 2
        and all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
        and 0.0 < ends[0] <= ends[1] < float("inf")
    )


def _rounded(value: float) -> float:
    """With three digits, so that a rule can be read."""
    return float(f"{value:.3g}")


def _number(tree: Tree) -> float:
    value = tree[1]
    return float(value) if isinstance(value, int | float) else 0.0


def _operands(tree: Tree) -> list[Tree]:
    return [own for own in tree[1:] if isinstance(own, list)]


def _places(tree: Tree) -> list[tuple[int, ...]]:
    """Ways to every part of a tree, the whole among them."""
    inside = [(i, *rest) for i, own in enumerate(_operands(tree)) for rest in _places(own)]
    return [(), *inside]


def _at(tree: Tree, place: tuple[int, ...]) -> Tree:
    return _at(_operands(tree)[place[0]], place[1:]) if place else tree


def _put(tree: Tree, place: tuple[int, ...], new: Tree) -> Tree:
    if not place:
        return new
    operands = _operands(tree)
    operands[place[0]] = _put(operands[place[0]], place[1:], new)
    return [tree[0], *operands]


def _depth(tree: Tree) -> int:
    return 1 + max((_depth(own) for own in _operands(tree)), default=0)
