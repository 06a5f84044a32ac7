"""Many univariate trees of one depth, such as all that are nearly optimal, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.trees.tree import Tree, as_samples


class FeatureUse(NamedTuple):
    """How trees of a set use a feature.

    Attributes
    ----------
    feature
        Its name.
    share
        Share of the trees that split on it, 0 to 1.
    least, mean, most
        Over the trees, the share of the samples whose path has a split on it, 0 to 1.
    """

    feature: str
    share: float
    least: float
    mean: float
    most: float


@dataclass(frozen=True, eq=False, repr=False)
class TreeSet(Sequence[Tree]):
    """Univariate trees with their objectives, the best first; a sequence of :class:`Tree`.

    Methods that take ``X`` take samples in original units.

    Attributes
    ----------
    like
        A tree of the same depth, classes, features and scaling.
    feature
        (m, |B|) feature of each branch node, in heap order; -1 where it does not split and sends all samples right.
    threshold
        (m, |B|) scaled value from which on samples go right.
    leaf_value
        (m, |L|) prediction of each leaf; (m, |L|, T) of several targets.
    objectives
        (m,) objective of each tree, ascending.
    within
        Relative distance from the best objective within which trees were asked for; ``None`` for any.
    found
        Number of trees within it that were met.
    counted
        Whether there are no others within it.
    ended
        Whether the listing ended: every tree that is missing is at least as bad as the last one here.
    """

    like: Tree
    feature: IntArray
    threshold: FloatArray
    leaf_value: IntArray | FloatArray
    objectives: FloatArray
    within: float | None
    found: int
    counted: bool
    ended: bool

    @property
    def complete(self) -> bool:
        """Whether these are all trees within the distance that was asked for, or without one the best so many."""
        return self.ended and (self.within is None or (self.counted and self.found == len(self)))

    def in_words(self) -> str:
        """Say which trees these are."""
        trees = f"{len(self):,} tree{'' if len(self) == 1 else 's'}"
        near = "" if self.within is None else f" within {100 * self.within:.6g}% of the optimum"
        if self.within is not None and self.complete:
            return f"all {trees}{near}"
        if not self.ended:
            return f"{trees}{near} that were found in time; there may be more, and better ones"
        if self.within is None:
            return f"the {trees} of least objective"
        return f"the best {trees} of {'' if self.counted else 'at least '}{self.found:,}{near}"

    def __repr__(self) -> str:
        return f"TreeSet({self.in_words()})"

    def __len__(self) -> int:
        return len(self.objectives)

    @overload
    def __getitem__(self, index: int) -> Tree: ...

    @overload
    def __getitem__(self, index: slice) -> list[Tree]: ...

    def __getitem__(self, index: int | slice) -> Tree | list[Tree]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        feature, threshold = self.feature[index], self.threshold[index]
        w = np.zeros((len(feature), self.like.n_features))
        splits = np.flatnonzero(feature >= 0)
        w[splits, feature[splits]] = 1.0
        b = np.where(feature >= 0, -threshold, 0.0)
        return replace(self.like, w=w, b=b, leaf_value=self.leaf_value[index])

    def best(self, most: int) -> TreeSet:
        """Return the first so many trees."""
        if most >= len(self):
            return self
        first = {
            name: getattr(self, name)[:most] for name in ("feature", "threshold", "leaf_value", "objectives")
        }
        return replace(self, **first)

    # ------------------------------------------------------------------ features

    def uses(self) -> BoolArray:
        """Return (m, p) whether a tree splits on a feature."""
        used = np.zeros((len(self), self.like.n_features), dtype=bool)
        tree, node = np.nonzero(self.feature >= 0)
        used[tree, self.feature[tree, node]] = True
        return used

    def importances(self, X: Any) -> FloatArray:
        """Return (m, p) the share of the samples whose path through a tree has a split on a feature, 0 to 1."""
        x = self._scaled(X)
        found = np.zeros((len(self), self.like.n_features))
        for i in range(len(self)):
            passed = np.zeros(x.shape, dtype=bool)
            for node in self._levels(i, x)[:-1]:
                feature = self.feature[i, node]
                rows = np.flatnonzero(feature >= 0)
                passed[rows, feature[rows]] = True
            found[i] = passed.mean(axis=0)
        return found

    def feature_use(self, X: Any) -> list[FeatureUse]:
        """Return how the trees use the features that any of them uses, those in most trees first."""
        shares, importances = self.uses().mean(axis=0), self.importances(X)
        names = self.like.feature_names
        return [
            FeatureUse(
                names[j],
                float(shares[j]),
                float(importances[:, j].min()),
                float(importances[:, j].mean()),
                float(importances[:, j].max()),
            )
            for j in np.lexsort((-importances.mean(axis=0), -shares)).tolist()
            if shares[j] > 0
        ]

    def fewest_features(self) -> int:
        """Return the number of the tree with the fewest features, of those the fewest splits, then the best."""
        splits = (self.feature >= 0).sum(axis=1)
        return int(np.lexsort((np.arange(len(self)), splits, self.uses().sum(axis=1)))[0])

    # ------------------------------------------------------------------ predictions

    def predict(self, X: Any) -> IntArray | FloatArray:
        """Return the predictions (m, n) of all trees, (m, n, T) of several targets, as of :meth:`Tree.predict`."""
        x = self._scaled(X)
        predicted: Any = np.zeros((len(self), len(x), *self.leaf_value.shape[2:]), self.leaf_value.dtype)
        for i in range(len(self)):
            predicted[i] = self._predicted(i, x)
        return np.asarray(predicted)

    def disagreement(self, X: Any) -> FloatArray:
        """Return (n,) how far the trees disagree on each sample; (n, T) of several targets.

        Returns
        -------
        numpy.ndarray
            Where classes are predicted, the share of the trees that do not predict the most common one, 0 to 1; where
            values are, the greatest prediction less the least.
        """
        x, shape = self._scaled(X), self.leaf_value.shape[2:]
        if self.like.is_classifier or self.like.target_classes:
            most_classes = max(map(len, self.like.target_classes or (self.like.classes,)))
            votes, labels = np.zeros((len(x), *shape, most_classes)), np.arange(most_classes)
            for i in range(len(self)):
                votes += self._predicted(i, x)[..., None] == labels
            return np.asarray(1.0 - votes.max(axis=-1) / max(1, len(self)))
        least, most = np.full((len(x), *shape), np.inf), np.full((len(x), *shape), -np.inf)
        for i in range(len(self)):
            predicted = self._predicted(i, x)
            least, most = np.minimum(least, predicted), np.maximum(most, predicted)
        return np.asarray(most - least)

    def fairest(self, X: Any, groups: npt.ArrayLike, label: str | None = None) -> tuple[int, float]:
        """Return the tree that treats groups of samples most alike, and how much it tells them apart.

        Parameters
        ----------
        X
            (n, p) samples.
        groups
            (n,) group of each sample.
        label
            Name of a class: groups are compared by the share of samples that are predicted this class, and by the mean
            prediction in a regression. The last class unless given.

        Returns
        -------
        number, difference
            Of the tree (of equal ones the best), and the greatest share or mean of a group less the least.

        Raises
        ------
        ValueError
            If there is no such class, or not one group for each sample, or leaves predict several targets.
        """
        if self.like.targets:
            raise ValueError(
                f"these trees predict {len(self.like.targets)} targets ({', '.join(self.like.targets)}) at once, and "
                "groups are compared by one; compare what predict returns"
            )
        x, group = self._scaled(X), np.asarray(groups)
        if group.shape != (len(x),):
            raise ValueError(f"groups has shape {group.shape}; give one for each of the {len(x)} samples")
        classes = self.like.classes
        if label is not None and label not in classes:
            raise ValueError(
                f"no class is called {label!r}; the trees predict {', '.join(classes) or 'numbers'}"
            )
        wanted = len(classes) - 1 if label is None else classes.index(label)
        number = np.unique(group, return_inverse=True)[1]
        size = np.bincount(number)
        differences = np.zeros(len(self))
        for i in range(len(self)):
            predicted = self._predicted(i, x)
            weight = predicted == wanted if classes else predicted
            differences[i] = np.ptp(np.bincount(number, weight) / size)
        best = int(differences.argmin())
        return best, float(differences[best])

    def _scaled(self, X: Any) -> FloatArray:
        x: FloatArray = np.asarray(as_samples(X, self.like.features, self.like.n_features), dtype=np.float64)
        if self.like.offset is None or self.like.scale is None:
            return x
        return (x - self.like.offset) / self.like.scale

    def _levels(self, i: int, x: FloatArray) -> list[IntArray]:
        """Return the (n,) node of each sample on every level of a tree, from the root to the leaves."""
        levels, rows = [np.zeros(len(x), np.int64)], np.arange(len(x))
        for _ in range(self.like.depth):
            node = levels[-1]
            feature = self.feature[i, node]
            right = (feature < 0) | (x[rows, feature] - self.threshold[i, node] >= 0)
            levels.append(2 * node + 1 + right)
        return levels

    def _predicted(self, i: int, x: FloatArray) -> IntArray | FloatArray:
        predicted: IntArray | FloatArray = self.leaf_value[i, self._levels(i, x)[-1] - self.feature.shape[1]]
        return predicted

    # ------------------------------------------------------------------ files

    def to_dict(self) -> dict[str, Any]:
        """Return everything but what all trees share as JSON takes it."""
        like = self.like
        return {
            "within": self.within,
            "found": self.found,
            "counted": self.counted,
            "ended": self.ended,
            "objectives": self.objectives.tolist(),
            "feature": self.feature.tolist(),
            "threshold": self.threshold.tolist(),
            "leaf_value": self.leaf_value.tolist(),
            "offset": None if like.offset is None else like.offset.tolist(),
            "scale": None if like.scale is None else like.scale.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], like: Tree) -> TreeSet:
        """Return the trees of :meth:`to_dict`.

        Raises
        ------
        ValueError, TypeError, LookupError
            If it is not what that wrote for trees like this one.
        """
        topology = like.topology
        m = len(content["objectives"])
        shapes = {
            "feature": ((m, topology.n_branches), np.int64),
            "threshold": ((m, topology.n_branches), np.float64),
            "leaf_value": ((m, *like.leaf_value.shape), np.int64 if like.is_classifier else np.float64),
            "objectives": ((m,), np.float64),
        }
        arrays: dict[str, Any] = {}
        for name, (shape, kind) in shapes.items():
            arrays[name] = np.array(content[name], dtype=kind).reshape(shape)
        numbers = arrays["feature"]
        if numbers.size and not -1 <= numbers.min() <= numbers.max() < like.n_features:
            raise ValueError("a tree splits on a feature that there is not")
        labels = arrays["leaf_value"]
        if like.is_classifier and labels.size and not 0 <= labels.min() <= labels.max() < len(like.classes):
            raise ValueError("a leaf predicts a class that there is not")
        offset, scale = (
            None if content[name] is None else np.array(content[name], dtype=np.float64)
            for name in ("offset", "scale")
        )
        return cls(
            like=replace(like, offset=offset, scale=scale),
            **arrays,
            within=content["within"],
            found=int(content["found"]),
            counted=bool(content["counted"]),
            ended=bool(content["ended"]),
        )
