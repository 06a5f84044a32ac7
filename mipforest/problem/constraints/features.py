"""Constraints on the features of a tree: forbidden, required, counted, paid, monotone, or in a fixed split."""

from __future__ import annotations

import re
import tomllib
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.columns import (
    base_of,
    counted_as_one,
    directions,
    features_named,
    features_of_columns,
    steps,
)
from mipforest.errors import DataError
from mipforest.heuristics.thresholds import Thresholds, chosen_features
from mipforest.problem.constraints import rows as helpers
from mipforest.problem.constraints.constraint import (
    ROUNDING,
    Built,
    Constraint,
    Holding,
    count,
    joined,
    listed,
    name,
    names,
)
from mipforest.problem.expressions import NotExpressed
from mipforest.problem.restrictions import Effect, FixedSplit, Restrictions, SplitRow, UsedRow
from mipforest.problem.structure import UnivariateProblem
from mipforest.trees import Predictor, Topology, Tree

#: Of a path: every column.
EVERY = "all"


@dataclass(frozen=True)
class Forbid(Constraint):
    """Columns or features that the tree may not use, linear leaves included.

    Attributes
    ----------
    features
        Their names; the name of a column stands for all of its features.
    nodes
        Branch nodes (root 0) whose splits may not use them; the whole tree when left out.
    """

    features: tuple[str, ...]
    nodes: tuple[int, ...] | None = None

    kind: ClassVar[str] = "forbid"

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", names(self.kind, self.features))
        if self.nodes is not None:
            object.__setattr__(self, "nodes", tuple(count("forbid: nodes", node) for node in self.nodes))

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read ``NAME,NAME``."""
        return [cls(tuple(listed(text)))]

    @property
    def words(self) -> str:
        """The names, and the nodes where they are some."""
        return joined(self.features) + ("" if self.nodes is None else f" at nodes {self.nodes}")

    @property
    def is_of_whole_tree(self) -> bool:
        """Whether no node may use them."""
        return self.nodes is None

    def rows(self, problem: Built) -> None:
        """Add the rows of :func:`mipforest.constraints.forbid_features`."""
        self._check(problem)
        helpers.forbid_features(problem, self.features, nodes=self.nodes)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Count the names that are used."""
        used = tree.features_used()
        where = used.overall if self.nodes is None else [j for t in self.nodes for j in used.per_node[t]]
        count_used = _count_used(data, self.features, where)
        return Holding(float(count_used), 0.0, None, count_used == 0)

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:  # noqa: ARG002
        """Take the features out of the nodes."""
        self._check(problem)
        features = np.concatenate([features_named(problem.data, name) for name in self.features])
        return own.forbidding(np.unique(features), self.nodes)

    def _check(self, problem: Built) -> None:
        for node in self.nodes or ():
            _check_node(self.kind, problem, node)


@dataclass(frozen=True)
class Require(Constraint):
    """Columns or features that some split has to use; of a column one of its features.

    Attributes
    ----------
    features
        Their names.
    """

    features: tuple[str, ...]

    kind: ClassVar[str] = "require"

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", names(self.kind, self.features))

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read ``NAME,NAME``."""
        return [cls(tuple(listed(text)))]

    @property
    def words(self) -> str:
        """The names."""
        return joined(self.features)

    def rows(self, problem: Built) -> None:
        """Add the rows of :func:`mipforest.constraints.require_features`."""
        required, branches = len(set(self.features)), problem.topology.n_branches
        if required > branches:
            structure = problem.formulation.structure(problem.instance)
            if isinstance(structure, UnivariateProblem):
                raise DataError(
                    f"require: {required} names have to be used ({joined(self.features)}), and a tree of depth "
                    f"{problem.topology.depth} has {branches} splits of one feature each; require fewer, or take a "
                    "deeper tree"
                )
        helpers.require_features(problem, self.features)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Count the names that splits use."""
        used = [j for own in tree.features_used().per_node for j in own]
        count_used, asked = _count_used(data, self.features, used), len(self.features)
        return Holding(float(count_used), float(asked), None, count_used == asked)

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:  # noqa: ARG002
        """Have one feature of each name used."""
        groups = [features_named(problem.data, name) for name in dict.fromkeys(self.features)]
        return replace(own, required=(*own.required, *groups))


def _count_used(data: Dataset, names: tuple[str, ...], used: Any) -> int:
    return sum(bool(np.isin(features_named(data, name), list(used)).any()) for name in names)


class _Budget(Constraint):
    """A largest cost of groups of features that the tree uses together, each paid once."""

    @property
    def is_of_whole_tree(self) -> bool:
        """True: features are chosen for the whole tree."""
        return True

    @abstractmethod
    def _row(self, data: Dataset) -> UsedRow:
        """Return the groups, their costs and the limit."""

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Add the costs of the groups of which something is used."""
        row, used = self._row(data), np.isin(np.arange(data.p), list(tree.features_used().overall))
        groups = zip(row.groups, row.cost.tolist(), strict=True)
        more = [cost for group, cost in groups if cost > 0 and not used[group].any()]
        return self.at_most(row.paid(used), row.most, min(more, default=0.0))

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:  # noqa: ARG002
        """Pay for each group."""
        return replace(own, budgets=(*own.budgets, self._row(problem.data)))


@dataclass(frozen=True)
class AtMostFeatures(_Budget):
    """A largest number of columns that the tree uses.

    Attributes
    ----------
    most
        The number.
    """

    most: int

    kind: ClassVar[str] = "at-most-features"

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", count(self.kind, self.most))

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read a number."""
        return [cls(text)]  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """The number."""
        return str(self.most)

    def rows(self, problem: Built) -> None:
        """Add the row of :func:`mipforest.constraints.feature_budget` with costs of 1."""
        helpers.feature_budget(problem, self.most)

    def _row(self, data: Dataset) -> UsedRow:
        groups = tuple(features_of_columns(data))
        return UsedRow(groups, np.ones(len(groups)), float(self.most))


@dataclass(frozen=True)
class FeatureBudget(_Budget):
    """A largest cost of all columns that the tree uses together, each paid once.

    Attributes
    ----------
    budget
        The largest cost.
    cost
        Cost of each column by name, 0 for those left out; 1 for each column when left out.
    """

    budget: float
    cost: Mapping[str, float] | None = None

    kind: ClassVar[str] = "feature-budget"

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", _amount(self.budget, "the budget"))
        if self.cost is None:
            return
        if not isinstance(self.cost, Mapping):
            raise DataError(
                f"feature-budget: cost is {self.cost!r:.60}; give a number for each column by name"
            )
        cost = {name: _amount(value, f"the cost of {name}") for name, value in self.cost.items()}
        object.__setattr__(self, "cost", cost)

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read a number, or the name of a TOML file with ``budget`` and a table ``cost``."""
        if not text.strip().endswith(".toml"):
            return [cls(_amount(text, "the budget"))]
        content = read_toml(Path(text.strip()))
        if "budget" not in content:
            raise DataError(
                f"{text} has no budget; write 'budget = 25', and costs under [cost] as in 'age = 0'"
            )
        return [cls.from_dict(content)]

    @property
    def words(self) -> str:
        """The budget, and the costs."""
        costs = ", ".join(f"{name} {value:g}" for name, value in (self.cost or {}).items())
        return f"{self.budget:g}" + (f" (costs: {costs})" if costs else "")

    def rows(self, problem: Built) -> None:
        """Add the row of :func:`mipforest.constraints.feature_budget`."""
        helpers.feature_budget(problem, self.budget, 1.0 if self.cost is None else self.cost)

    def _row(self, data: Dataset) -> UsedRow:
        cost = dict.fromkeys((c.name for c in data.encoding.columns), 1.0) if self.cost is None else self.cost
        groups = tuple(counted_as_one(data, name) for name in cost)
        return UsedRow(groups, np.array(list(cost.values()), dtype=np.float64), self.budget)

    def __hash__(self) -> int:
        return hash((self.budget, tuple((self.cost or {}).items())))


@dataclass(frozen=True)
class GroupBudget(_Budget):
    """A largest cost of groups of columns or features, such as what one blood sample tells: a group is paid once.

    Attributes
    ----------
    budget
        The largest cost.
    groups
        Names of the columns or features of each group. A group is paid if the tree uses some of them.
    cost
        Cost of each group, at least 0; 1 for each when left out.
    """

    budget: float
    groups: tuple[tuple[str, ...], ...]
    cost: tuple[float, ...] | None = None

    kind: ClassVar[str] = "group-budget"

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", _amount(self.budget, "the budget", self.kind))
        object.__setattr__(self, "groups", tuple(names(self.kind, group) for group in self.groups))
        cost = (1.0,) * len(self.groups) if self.cost is None else tuple(self.cost)
        if len(cost) != len(self.groups):
            raise DataError(
                f"{self.kind}: {len(cost)} costs for {len(self.groups)} groups; give one for each"
            )
        object.__setattr__(self, "cost", tuple(_amount(one, "a cost", self.kind) for one in cost))

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """No option has groups; see :meth:`from_dict`."""
        raise DataError(f"{cls.kind}: {text!r} is no budget, groups and costs; give these by name")

    @property
    def words(self) -> str:
        """The budget, and the groups with their costs."""
        groups = (
            f"{joined(group)} {cost:g}" for group, cost in zip(self.groups, self.cost or (), strict=True)
        )
        return f"{self.budget:g} (costs: {'; '.join(groups)})"

    def rows(self, problem: Built) -> None:
        """Add a binary for each group, at least as large as whether each of its columns is used, and a row."""
        helpers.group_budget(problem, self.budget, self.groups, self.cost or ())

    def _row(self, data: Dataset) -> UsedRow:
        groups = tuple(
            np.unique(np.concatenate([counted_as_one(data, name) for name in group])) for group in self.groups
        )
        return UsedRow(groups, np.array(self.cost, dtype=np.float64), self.budget)


@dataclass(frozen=True)
class OncePerPath(Constraint):
    """Columns or features that come at most once on the way from the root to any leaf.

    Attributes
    ----------
    features
        Their names; every column when left out.
    """

    features: tuple[str, ...] | None = None

    kind: ClassVar[str] = "once-per-path"

    def __post_init__(self) -> None:
        if self.features is not None:
            object.__setattr__(self, "features", names(self.kind, self.features))

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read ``NAME,NAME``, or ``all``."""
        return [cls(None if text.strip() == EVERY else tuple(listed(text)))]

    @property
    def words(self) -> str:
        """The names."""
        return EVERY if self.features is None else joined(self.features)

    def rows(self, problem: Built) -> None:
        """Add the rows of :func:`mipforest.constraints.once_per_path`."""
        helpers.once_per_path(problem, self.features)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Count the nodes that use a group which a node above them uses."""
        groups = self._groups(data)
        uses = np.array(
            [[np.isin(own, group).any() for group in groups] for own in tree.features_used().per_node]
        )
        above = np.zeros_like(uses)
        for t in range(1, len(uses)):
            above[t] = uses[(t - 1) // 2] | above[(t - 1) // 2]
        again = int((uses & above).sum())
        return Holding(float(again), 0.0, None, again == 0)

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:
        """Give each group a number; one within another has the number of that."""
        once = np.full(problem.data.p, -1) if own.once is None else own.once.copy()
        for group in self._groups(problem.data):
            for number in np.unique(once[group][once[group] >= 0]).tolist():
                members = np.flatnonzero(once == number)
                if np.isin(group, members).all():
                    break
                if not np.isin(members, group).all():  # both have features of their own: it is asked of trees
                    return super().restrict(own, problem, thresholds)
            else:
                once[group] = once.max(initial=-1) + 1
        return replace(own, once=once)

    def of_single_features(self, data: Dataset) -> bool:
        """Return whether each column that it counts is one feature."""
        return all(len(group) == 1 for group in self._groups(data))

    def _groups(self, data: Dataset) -> list[IntArray]:
        if self.features is None:
            return features_of_columns(data)
        return list(helpers.groups_counted(data, self.features).values())


@dataclass(frozen=True)
class AtMostOf(FeatureBudget):
    """A largest number of some columns or features that the tree uses: each costs 1."""

    kind: ClassVar[str] = "at-most-of"

    def rows(self, problem: Built) -> None:
        """Add the row of :func:`mipforest.constraints.at_most_of`."""
        helpers.at_most_of(problem, list(self.cost or ()), int(self.budget))

    __hash__ = FeatureBudget.__hash__


@dataclass(frozen=True)
class AtMostSplits(Constraint):
    """A limit on the splits of the tree: the weights of the nodes that split sum up to at most a number.

    Attributes
    ----------
    most
        The number.
    weights
        (|B|,) weights of the nodes, at least 0; 1 for each when left out.
    """

    most: float
    weights: tuple[float, ...] | None = None

    kind: ClassVar[str] = "at-most-splits"

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", _amount(self.most, "the number", self.kind))
        if self.weights is not None:
            weights = tuple(_amount(one, "a weight", self.kind) for one in self.weights)
            object.__setattr__(self, "weights", weights)

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read a number."""
        return [cls(count(cls.kind, text))]

    @property
    def words(self) -> str:
        """The number, and the weights."""
        return f"{self.most:g}" + ("" if self.weights is None else f" (weights {self.weights})")

    def rows(self, problem: Built) -> None:
        """Add the row on the binaries ``d`` of the nodes that split."""
        d = problem.model.variables.get("d")
        if d is None or d.shape != (problem.topology.n_branches,):
            raise NotExpressed(
                f"model {problem.formulation.name} does not say which nodes split; the constraint is for oct, oct-h, "
                "policy and the ort family"
            )
        problem.model.add(problem.free_name("at_most_splits"), self._of_nodes(d.size) @ d <= self.most)

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:  # noqa: ARG002
        """Limit the nodes that split."""
        row = SplitRow(self._of_nodes(problem.topology.n_branches), self.most)
        return replace(own, splits=(*own.splits, row))

    def _of_nodes(self, n_branches: int) -> FloatArray:
        if self.weights is None:
            return np.ones(n_branches)
        if len(self.weights) != n_branches:
            raise DataError(
                f"{self.kind}: {len(self.weights)} weights are given, and the tree has {n_branches} branch nodes"
            )
        return np.array(self.weights)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:  # noqa: ARG002
        """Sum up the weights of the nodes that split."""
        assert isinstance(tree, Tree)
        splits: BoolArray = np.asarray(tree.w.any(axis=1))
        weights = self._of_nodes(len(splits))
        unused = weights[~splits]
        return self.at_most(float(weights @ splits), self.most, float(unused[unused > 0].min(initial=np.inf)))


def _amount(given: Any, what: str, kind: str = "feature-budget") -> float:
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = np.nan
    if isinstance(given, bool) or not (np.isfinite(number) and number >= 0):
        raise DataError(f"{kind}: {what} is {given!r:.60}; give a number of 0 or more")
    return number


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    DataError
        If there is none, or it is malformed.
    """
    try:
        return tomllib.loads(path.expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path} is no TOML file: {error}; correct it there") from None


@dataclass(frozen=True)
class Monotone(Constraint):
    """A larger value of a column never turns a prediction from the second class to the first, or the other way round.

    Attributes
    ----------
    feature
        The column, or a feature; see :func:`mipforest.constraints.monotone`.
    increasing
        Whether predictions rise in it; else they fall.
    target
        Of several targets, the one whose predictions are meant.
    """

    feature: str
    increasing: bool = True
    target: str | None = None

    kind: ClassVar[str] = "monotone"

    def __post_init__(self) -> None:
        if not isinstance(self.feature, str) or not isinstance(self.increasing, bool):
            raise DataError(
                f"monotone: {self.feature!r}, {self.increasing!r} is no column with true or false"
            )
        if self.target is not None:
            name(self.kind, self.target)

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read ``NAME+,NAME-``, or ``NAME+ of TARGET``."""
        found = []
        for part in listed(text):
            if of_target := _OF_TARGET.fullmatch(part):
                found.append(cls(of_target["feature"], of_target["sign"] == "+", of_target["target"]))
                continue
            if part[-1] not in "+-" or len(part) == 1:
                raise DataError(
                    f"monotone: {part!r} does not say whether predictions rise or fall; write {part}+ or {part}-"
                )
            found.append(cls(part[:-1].strip(), part[-1] == "+"))
        return found

    @property
    def words(self) -> str:
        """Name and sign."""
        of_target = "" if self.target is None else f" of {self.target}"
        return joined([self.feature + ("+" if self.increasing else "-") + of_target])

    def rows(self, problem: Built) -> None:
        """Add the rows of :func:`mipforest.constraints.monotone`."""
        helpers.monotone(problem, self.feature, increasing=self.increasing, target=self.target)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Count the training samples whose prediction goes the wrong way as their value of the column changes.

        The values are those of the training samples, :data:`STEPS` quantiles where they are more.
        """
        own, values = steps(data, self.feature)
        asked = np.arange(data.n)[:: max(1, data.n // SAMPLES)]
        wrong = np.zeros(len(asked), dtype=bool)
        highest = np.full(len(asked), -np.inf)
        for group in values if self.increasing else values[::-1]:
            among = []
            for value in group[np.unique(np.linspace(0, len(group) - 1, STEPS).astype(int))]:
                X = data.X_raw[asked].copy()
                X[:, own] = value
                among.append(_outcome(tree, X, self._number(data)))
            wrong |= np.min(among, axis=0) < highest - ROUNDING
            highest = np.maximum(highest, np.max(among, axis=0))
        return Holding(float(wrong.sum()), 0.0, None, not wrong.any())

    def admits(self, tree: Predictor, data: Dataset) -> bool:
        """Return whether no leaf beyond a split on the column falls while one before it rises, as its rows have it."""
        if not isinstance(tree, Tree) or (np.count_nonzero(tree.w, axis=1) > 1).any():
            return super().admits(tree, data)
        rises = list(directions(data, self.feature))
        topology, leaf = Topology(tree.depth), np.asarray(tree.leaf_value, dtype=np.float64)
        leaf = leaf if leaf.ndim == 1 else leaf[:, self._number(data)]
        on_left, on_right = topology.leaf_reach_left.toarray() > 0, topology.leaf_reach_right.toarray() > 0
        chosen = chosen_features(tree)
        for j, rising in rises:
            sign = 1.0 if rising == self.increasing else -1.0
            for t in np.flatnonzero(chosen == j):
                if (sign * leaf[on_left[:, t]]).max() > (sign * leaf[on_right[:, t]]).min():
                    return False
        return True

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:
        """Leave trees with that effect, of two classes; of several targets it is asked of every tree."""
        data = problem.data
        found = list(directions(data, self.feature))
        if len(data.classes) != 2 or data.targets:
            return super().restrict(own, problem, thresholds)
        effect = Effect(
            features=np.array([j for j, _ in found], dtype=np.int64),
            rises=np.array([rising == self.increasing for _, rising in found], dtype=bool),
            admits=self.asked_of_scaled(problem),
        )
        return replace(own, effects=(*own.effects, effect))

    def _number(self, data: Dataset) -> int:
        """Return the number of its target."""
        return 0 if self.target is None else data.targets.index(self.target)


#: ``age+ of ill``.
_OF_TARGET = re.compile(r"(?P<feature>.*\S)(?P<sign>[+-])\s+of\s+(?P<target>\S.*)")


#: Values of a column and training samples at which predictions are compared.
STEPS, SAMPLES = 40, 500


def _outcome(tree: Predictor, X: FloatArray, target: int) -> FloatArray:
    """Return (n,) what rises: the risk of a score card, else the number of the class or the value of a target."""
    if not tree.is_tree and tree.gives_probabilities:
        return tree.predict_proba(X)[:, -1]
    predicted = np.asarray(tree.predict(X), dtype=np.float64)
    return predicted if predicted.ndim == 1 else predicted[:, target]


def _check_node(kind: str, problem: Built, node: int) -> None:
    if node >= (branches := problem.topology.n_branches):
        raise DataError(
            f"{kind}: there is no branch node {node}; a tree of depth {problem.topology.depth} has the nodes 0 to "
            f"{branches - 1}"
        )


#: ``1: age >= 60``, with or without the node.
_NODE = r"(?:(?P<node>\d+)\s*:)?\s*"
_SPLIT = re.compile(_NODE + r"(?P<feature>.+?)\s*(?P<sign>>=|<)\s*(?P<threshold>[^<>=]+)")
_BETWEEN = re.compile(_NODE + r"(?P<feature>.+?)\s+in\s+(?P<least>\S*)\.\.(?P<most>\S*)")
_LEVEL = re.compile(_NODE + r"(?P<feature>[^<>]+=[^<>]+)")
_FEATURE = re.compile(_NODE + r"(?P<feature>[^<>]+)")


@dataclass(frozen=True)
class Split(Constraint):
    """A split: samples with a value below a threshold go left at a node, others right.

    In a model of univariate splits the node splits on the feature; a hyperplane may be any that sends the samples so.

    Attributes
    ----------
    feature
        A column of numbers, or a feature; where any threshold will do, a column of levels, too.
    threshold
        In original units. Two numbers, or ``None`` for one of them, are the least and the greatest threshold that the
        node may have; ``None`` is any.
    node
        Branch node in heap order: the root is 0, the nodes below node t are 2t + 1 (left) and 2t + 2.
    """

    feature: str
    threshold: float | tuple[float | None, float | None] | None = None
    node: int = 0

    kind: ClassVar[str] = "split"

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", self._read(self.threshold))
        object.__setattr__(self, "node", count(self.kind, self.node))
        name(self.kind, self.feature)

    @staticmethod
    def _read(given: Any) -> float | tuple[float | None, float | None] | None:
        try:
            if isinstance(given, tuple | list):
                least, most = (None if one is None else float(one) for one in given)
            else:
                least = most = None if given is None else float(given)
        except (TypeError, ValueError):
            raise DataError(
                f"split: {given!r} is no threshold; give a number, or the least and the greatest one"
            ) from None
        numbers = [one for one in (least, most) if one is not None]
        if not np.isfinite(numbers).all():
            raise DataError(f"split: the threshold is {given}; give finite numbers")
        if numbers != sorted(numbers):
            raise DataError(
                f"split: no threshold is from {numbers[0]:g} to {numbers[1]:g}; give the least one first"
            )
        return (least, most) if isinstance(given, tuple | list) and numbers else least

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read ``age >= 60``, ``age in 50..60``, ``age``, ``colour=red``; with a node as in ``1: age >= 60``."""
        given = text.strip()
        if found := _BETWEEN.fullmatch(given):
            ends = tuple(found[end] or None for end in ("least", "most"))
            return [cls(found["feature"], ends, int(found["node"] or 0))]  # type: ignore[arg-type]
        if found := _SPLIT.fullmatch(given):
            return [cls(found["feature"], found["threshold"], int(found["node"] or 0))]  # type: ignore[arg-type]
        if found := _LEVEL.fullmatch(given):
            return [cls(found["feature"].strip(), 0.5, int(found["node"] or 0))]
        if found := _FEATURE.fullmatch(given):
            return [cls(found["feature"].strip(), None, int(found["node"] or 0))]
        raise DataError(
            f"split: {text!r} is no split; write it as 'age >= 60', 'age in 50..60' or 'age', at another node than the "
            "root as '1: age >= 60'"
        )

    @property
    def words(self) -> str:
        """The split, with its node where this is not the root."""
        at = f"{self.node}: " if self.node else ""
        if isinstance(self.threshold, tuple):
            least, most = ("" if one is None else f"{one:.10g}" for one in self.threshold)
            return f"{at}{self.feature} in {least}..{most}"
        return f"{at}{self.feature}" + ("" if self.threshold is None else f" >= {self.threshold:.10g}")

    @property
    def _ends(self) -> tuple[float, float]:
        """The least and the greatest threshold."""
        if isinstance(self.threshold, float):
            return self.threshold, self.threshold
        least, most = self.threshold or (None, None)
        return -np.inf if least is None else least, np.inf if most is None else most

    def rows(self, problem: Built) -> None:
        """Add the rows of :func:`mipforest.constraints.fix_split` or ``keep_split``."""
        self._check(problem)
        if isinstance(self.threshold, float):
            helpers.fix_split(problem, self.feature, self.threshold, node=self.node)
        else:
            helpers.keep_split(problem, self.feature, *self._ends, node=self.node)

    def _check(self, problem: Built) -> None:
        """Raise an error where there is no such node, or no threshold that parts the samples."""
        _check_node(self.kind, problem, self.node)
        own = features_named(problem.data, self.feature)
        if len(own) == 1 and self.feature in problem.data.features.labels:
            x, (least, most) = problem.data.X_raw[:, own[0]], self._ends
            if not (least <= x.max() and x.min() < most):
                raise DataError(
                    f"split: {self.words} puts all training samples on one side: {self.feature} lies between "
                    f"{x.min():g} and {x.max():g}; choose a threshold inside"
                )

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Count the training samples at the node that the split sends to the wrong side.

        Where several thresholds will do, it is 1 if the node has none of them, else 0.
        """
        own = features_named(data, self.feature)
        base = base_of(data, self.feature)
        if not isinstance(self.threshold, float):
            wrong_split = not self._has(tree, own, data, base)
            return Holding(float(wrong_split), 0.0, None, not wrong_split)
        left = data.X_raw[:, own] < self.threshold - base
        known = (left == left[:, :1]).all(axis=1)  # missing values may go either way
        at = np.asarray(tree.apply(data.X_raw))
        child = np.zeros_like(at)
        while (at > 0).any():
            above = (at - 1) // 2
            child = np.where(above == self.node, at, child)
            at = above
        wrong = (child > 0) & known & ((child == 2 * self.node + 1) != left[:, 0])
        return Holding(float(wrong.sum()), 0.0, None, not wrong.any())

    def _has(self, tree: Predictor, own: IntArray, data: Dataset, base: float) -> bool:
        """Return whether a tree's node splits on one of some features, with a threshold in the range."""
        if not isinstance(tree, Tree) or tree.is_oblique or tree.is_trivial(self.node):
            return False
        j = int(np.flatnonzero(tree.w[self.node])[0])
        if j not in own.tolist():
            return False
        x, (least, most) = np.unique(data.X_raw[:, j]), self._ends
        weights, intercepts = tree.original_units()
        below = int((x < -intercepts[self.node] / weights[self.node, j]).sum())
        # Thresholds between the same two training values are one.
        return max(1, int((x < least - base).sum())) <= below <= int((x < most - base).sum())

    def admits(self, tree: Predictor, data: Dataset) -> bool:
        """Return whether a tree sends samples so, and its node has a split: the rows pay for one, reached or not."""
        is_none = isinstance(tree, Tree) and not tree.is_oblique and tree.is_trivial(self.node)
        return not is_none and super().admits(tree, data)

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:
        """Give the node the thresholds that part the training samples alike, or those of the range."""
        self._check(problem)
        features, least, most = helpers.scaled_range(problem, self.feature, *self._ends)
        fixed = []
        for j, low, high in zip(features, least, most, strict=True):
            x = np.unique(problem.data.X[:, j])
            # The threshold between the same two values: the number of values below it tells which.
            first, last = max(1, int((x < low).sum())), min(len(x) - 1, int((x < high).sum()))
            if isinstance(self.threshold, float) and not 0 < int((x < low).sum()) < len(x):
                continue
            fixed.append(thresholds.first[j] + np.arange(first, last + 1) - 1)
        chosen = np.concatenate(fixed) if fixed else np.zeros(0)
        return replace(own, fixed=(*own.fixed, FixedSplit(self.node, chosen.astype(np.int64))))
