"""Fit a random forest, write it as `docs/reference/policies.md` says, the same bytes each time.

Ho, "Random decision forests", ICDAR 1995; the estimate is the mean of the trees' outputs (Kong,
Zang and Ma 2018, section 3.1.1). scikit-learn fits the forest; using a forest does not need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ackademy import installation
from ackademy.errors import TrainingError
from ackademy.policies import policy_files
from ackademy.runner.experiments import Progress, quiet

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestClassifier

STEP = 10
"""trees between two reports of progress"""
LEAF = 255
"""the value in place of the feature of a leaf"""

FloatArray = npt.NDArray[np.float64]
Features = npt.NDArray[np.float32]
Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Growth:
    """Settings of the fit; the paper names none of them."""

    trees: int = 100
    max_features: int = 7
    """tried per split: √55, rounded"""
    min_samples_leaf: int = 5
    max_leaves: int = 0
    """per tree; 0 for no limit"""


@dataclass(frozen=True, slots=True)
class Arrays:
    """A forest as it is stored: the nodes of all trees, a node's children side by side."""

    root: npt.NDArray[np.uint32]
    """shape (trees,): index of each tree's first node"""
    feature: npt.NDArray[np.uint8]
    """shape (nodes,): the feature that decides, `LEAF` for none"""
    threshold: Features
    """shape (nodes,): left if the feature is at most this"""
    child: npt.NDArray[np.uint32]
    """shape (nodes,): the left child; the right one follows it"""
    value: Features
    """shape (nodes,): probability of a loss at this node"""

    def mean(self, x: Features) -> FloatArray:
        """Mean output of the trees for each row of `x`, shape (rows,)."""
        rows, total = np.arange(len(x)), np.zeros(len(x))
        for root in self.root:
            node = np.full(len(x), root, dtype=np.int64)
            while (inner := self.feature[node] != LEAF).any():
                at = node[inner]
                right = x[rows[inner], self.feature[at]] > self.threshold[at]
                node[inner] = self.child[at] + right
            total += self.value[node]
        mean: FloatArray = total / len(self.root)
        return mean


def lacks_sklearn() -> TrainingError:
    """What to say where scikit-learn is not installed."""
    add = installation.add_extra("train")
    return TrainingError(f"training needs scikit-learn: install the extra with {add}")


def fit(
    x: Features, y: Labels, growth: Growth, seed: int, jobs: int, progress: Progress = quiet
) -> Arrays:
    """Grow a forest on rows `x` with labels `y`; `jobs` changes the time and no byte.

    Raises:
        TrainingError: if scikit-learn is not installed, or all labels are equal.
    """
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError as error:
        raise lacks_sklearn() from error
    if y.all() or not y.any():
        raise TrainingError(f"{len(y)} rows with equal labels: nothing to tell apart")
    model = RandomForestClassifier(
        criterion="gini",
        max_features=growth.max_features,
        min_samples_leaf=growth.min_samples_leaf,
        max_leaf_nodes=growth.max_leaves or None,
        bootstrap=True,
        n_jobs=jobs,
        random_state=seed,
        warm_start=True,
    )
    progress(0, growth.trees)
    # In steps only so that there is progress to tell; the trees are those of one fit.
    for grown in range(STEP, growth.trees + STEP, STEP):
        model.set_params(n_estimators=min(grown, growth.trees)).fit(x, y)
        progress(len(model.estimators_), growth.trees)
    return flatten(model)


def flatten(model: RandomForestClassifier) -> Arrays:
    """The arrays of a fitted two-class forest."""
    trees = [_flatten_tree(estimator.tree_) for estimator in model.estimators_]
    sizes = [len(tree["feature"]) for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return Arrays(
        root=roots.astype(np.uint32),
        feature=np.concatenate([tree["feature"] for tree in trees]),
        threshold=np.concatenate([tree["threshold"] for tree in trees]),
        child=np.concatenate(
            [
                np.where(tree["feature"] == LEAF, 0, tree["child"] + root)
                for tree, root in zip(trees, roots, strict=True)
            ]
        ).astype(np.uint32),
        value=np.concatenate([tree["value"] for tree in trees]),
    )


def to_bytes(arrays: Arrays, metadata: Mapping[str, str]) -> bytes:
    """The forest as safetensors."""
    tensors = {name: getattr(arrays, name) for name in Arrays.__dataclass_fields__}
    return policy_files.bytes_of(tensors, metadata)


def from_bytes(content: bytes) -> Arrays:
    """Read the bytes of `to_bytes`."""
    tensors = policy_files.tensors_of(content)
    return Arrays(**{name: tensors[name] for name in Arrays.__dataclass_fields__})


def _flatten_tree(tree: Any) -> dict[str, npt.NDArray[Any]]:  # noqa: ANN401
    """One tree, renumbered level by level so that siblings are neighbours."""
    old, child = [0], []
    for node in old:
        if tree.children_left[node] < 0:
            child.append(0)
        else:
            child.append(len(old))
            old += [int(tree.children_left[node]), int(tree.children_right[node])]
    order = np.array(old)
    inner = tree.children_left[order] >= 0
    share = tree.value[order, 0, :]
    return {
        "feature": np.where(inner, tree.feature[order], LEAF).astype(np.uint8),
        "threshold": np.where(inner, _round_down(tree.threshold[order]), 0).astype(np.float32),
        "child": np.array(child),
        "value": (share[:, 1] / share.sum(axis=1)).astype(np.float32),
    }


def _round_down(thresholds: FloatArray) -> Features:
    """The largest 32-bit numbers that are not above: they part 32-bit features the same way."""
    nearest = thresholds.astype(np.float32)
    above = nearest.astype(np.float64) > thresholds
    nearest[above] = np.nextafter(nearest[above], np.float32(-np.inf))
    return nearest
