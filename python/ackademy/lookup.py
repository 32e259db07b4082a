"""Finds scenarios, distributions, lists, recipes, suites and policies by name, from any folder.

A name stands for a file in the folder of its kind: `deep_buffer` for `scenarios/deep_buffer.toml`,
`gap/fast` for `scenarios/gap/fast.toml`, `aurora_mixed` for the folder `policies/aurora_mixed`.
Folders of the kind are looked for here, above, and in what the package ships, the folder `data/` of
the repository. A path that exists is used unchanged. This module imports nothing that takes time:
shell completion uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from glob import has_magic
from pathlib import Path
from typing import Literal

from ackademy import _core
from ackademy.errors import AckademyError, ControllerError, ScenarioError
from ackademy.folders import POLICY_FILE, exists, expanded, here_or_above, is_file, is_folder

Kind = Literal[
    "scenario", "distribution", "list", "recipe", "suite", "scorecard", "policy", "paper"
]
FOLDERS: dict[Kind, str] = {
    "scenario": "scenarios",
    "distribution": "distributions",
    "list": "distributions/lists",
    "recipe": "recipes",
    "suite": "suites",
    "scorecard": "scorecards",
    "policy": "policies",
    "paper": "papers",
}
"""where each kind lies"""
ENDINGS: dict[Kind, str] = {"list": ".links"}
"""of the files of a kind; `.toml` by default"""
SHOWN_MAX = 12
"""names that an error lists"""
WORD_MAX = 200
"""characters of a word in an error"""


def names(kind: Kind) -> list[str]:
    """Names of everything of a kind that can be found from here, sorted."""
    return sorted({name for folder in here_or_above(FOLDERS[kind]) for name in _in(folder, kind)})


def find(word: str | Path, kind: Kind, error: type[AckademyError] = AckademyError) -> Path:
    """The file of a name; for a policy, its folder. A path that exists is used unchanged.

    Args:
        word: a path, a name of `names(kind)`, or a path as it would be in the repository, such as
            `data/scenarios/deep_buffer.toml`, without `data/` too.
        kind: what is looked for.
        error: what is raised.

    Raises:
        AckademyError: if there is none; one line, with names that are similar.
    """
    if not str(word):
        raise error(f"'': allowed: the path or the name of a {kind}")
    found = _found(word, kind)
    if found is None:
        shown = _shown(word)
        raise error(f"{shown}: No such file, and no {kind} of this name; {_others(word, kind)}")
    return found


def scenarios_of(words: Sequence[str | Path]) -> list[tuple[str, Path]]:
    """Files of names, paths or patterns as `scenarios/*_buffer.toml`, each with its name.

    The name is the word without `.toml`; of a pattern, the folder and the name of each file.

    Raises:
        ScenarioError: if a name or a pattern has no file.
    """
    found: list[tuple[str, Path]] = []
    for word in words:
        if has_magic(str(word)) and not exists(word):
            fitting = _matching(str(word))
            found += [(f"{path.parent.name}/{path.stem}", path) for path in fitting]
        else:
            name = str(word).removesuffix(".toml")
            found.append((name, find(word, "scenario", ScenarioError)))
    return found


def policy_folder(word: str) -> Path | None:
    """The folder of a policy, by path or name; `None` if there is none."""
    return _found(word, "policy")


def settings(params: Mapping[str, float | str]) -> dict[str, float | str]:
    """Settings of a controller, their `policy` found by name if no such path exists."""
    found = dict(params)
    word = found.get("policy")
    if isinstance(word, str) and not exists(word):
        found["policy"] = str(policy_path(word) or word)
    return found


def policy_path(word: str) -> Path | None:
    """The folder or the file of a policy, by path or name; `None` if there is none."""
    return policy_folder(word) or next(iter(_looked_up(word)), None)


def controllers() -> list[str]:
    """Names of the controllers of the core."""
    return [entry["name"] for entry in _core.controllers()]


def unknown_controller(word: str) -> ControllerError:
    """What to raise for a word that is neither a controller nor a policy; one line."""
    near = similar(word, [*controllers(), *names("policy")])
    if near:
        more = f"similar: {', '.join(near)}; `ackademy list` names all"
    else:
        more = f"allowed: {', '.join(controllers())}, a policy, file.py:Class"
    return ControllerError(
        f"controller {_shown(word)}: no controller and no policy of this name; {more}"
    )


def own_policy(controller: str) -> Path | None:
    """The policy that has the name of a controller which needs one; `None` if it needs none.

    It is `NAME`, or `NAME/all`, the one for all networks, where the policies of a controller are
    for single ones.

    Raises:
        ControllerError: if the controller needs a policy and there is none of its name; the message
            lists those in a folder of its name.
    """
    entry = next(own for own in _core.controllers() if own["name"] == controller)
    if not any(own["name"] == "policy" and own["default"] is None for own in entry["params"]):
        return None
    found = next(filter(None, map(policy_named, (controller, f"{controller}/all"))), None)
    if found is None:
        known = names("policy")
        inside = [name for name in known if name.startswith(f"{controller}/")] or known
        listed = ", ".join(inside) or "the setting `policy`"
        raise ControllerError(f"controller {controller}: it needs a policy; allowed: {listed}")
    return found


def policy_named(name: str) -> Path | None:
    """The folder of a policy of this name, whatever folders are here; `None` if there is none."""
    found = _looked_up(f"{FOLDERS['policy']}/{name}")
    return next((path for path in found if is_file(path / POLICY_FILE)), None)


def similar(word: str, known: Iterable[str], most: int = 5) -> list[str]:
    """Names that are spelled like a word, nearest first; at most so many.

    Case, `-`, `_` and the `v` of a version do not count: `BBRv3` is spelled like `bbr3`.
    """
    plain: dict[str, list[str]] = {}
    for name in dict.fromkeys(known):
        plain.setdefault(_plain(name), []).append(name)
    near = get_close_matches(_plain(word[:WORD_MAX]), plain, most)
    return [name for own in near for name in plain[own]][:most]


def _plain(name: str) -> str:
    return re.sub(r"[-_ .]|v(?=\d)", "", name.lower())


def _in(folder: Path, kind: Kind) -> list[str]:
    """Names of what a folder of a kind holds."""
    if kind == "policy":
        found = [path.parent for path in folder.rglob(POLICY_FILE)]
        return [path.relative_to(folder).as_posix() for path in found]
    files = [path for path in folder.rglob(f"*{_ending(kind)}") if path.name != "paper.toml"]
    return [path.relative_to(folder).with_suffix("").as_posix() for path in files]


def _ending(kind: Kind) -> str:
    return ENDINGS.get(kind, ".toml")


def _found(word: str | Path, kind: Kind) -> Path | None:
    given = expanded(word)
    if kind == "policy":
        if is_folder(given):
            return given
        options = [f"policies/{word}", str(word)]
        return next(
            (path for own in options for path in _looked_up(own) if is_file(path / POLICY_FILE)),
            None,
        )
    if exists(given) and not is_folder(given):
        return given
    own = str(word) if given.suffix else f"{FOLDERS[kind]}/{word}{_ending(kind)}"
    named = next((path for path in _looked_up(own) if is_file(path)), None)
    return given if named is None and is_folder(given) else named


def _looked_up(name: str) -> list[Path]:
    """Where a relative path leads; nowhere for an absolute one or one that leaves the folder."""
    path = Path(name)
    return [] if path.is_absolute() or ".." in path.parts else here_or_above(name)


def _matching(pattern: str) -> list[Path]:
    """The scenario files that a pattern of names or of paths fits, in the nearest folder."""
    inside = pattern.removeprefix("data/").removeprefix("scenarios/")
    inside = inside if inside.endswith(".toml") else f"{inside}.toml"
    for folder in here_or_above("scenarios") if not Path(pattern).is_absolute() else []:
        if found := sorted(folder.glob(inside)):
            return found
    raise ScenarioError(f"{_shown(pattern)}: no scenario fits; {_others(pattern, 'scenario')}")


def _shown(word: str | Path) -> str:
    """A word for an error: on one line, its beginning if it is long."""
    text = str(word)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= WORD_MAX else f"{text[:WORD_MAX]}..."


def _others(word: str | Path, kind: Kind) -> str:
    """Names that are similar, or else the first of all names."""
    known = names(kind)
    stem = (
        str(word)
        .removeprefix("data/")
        .removeprefix(f"{FOLDERS[kind]}/")
        .removesuffix(_ending(kind))
    )
    if near := similar(stem, known):
        return f"similar: {', '.join(near)}"
    more = f" and {len(known) - SHOWN_MAX} more" if len(known) > SHOWN_MAX else ""
    return f"known: {', '.join(known[:SHOWN_MAX]) or 'none'}{more}"
