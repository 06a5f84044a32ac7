"""Constraints on predictions of the training samples: shares of groups, rates of a class, shares of a label."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.cards import ScoreCard
from mipforest.data import Dataset
from mipforest.data.columns import base_of, features_named
from mipforest.errors import DataError, did_you_mean, some_of
from mipforest.heuristics.thresholds import Thresholds
from mipforest.model import Model
from mipforest.problem.constraints import rows as helpers
from mipforest.problem.constraints.constraint import (
    ROUNDING,
    Built,
    Constraint,
    Holding,
    Named,
    count,
    joined,
    listed,
    name,
    named_share,
    percent,
    share,
)
from mipforest.problem.expressions import NotExpressed
from mipforest.problem.model_changes import free_name
from mipforest.problem.operations import Instance
from mipforest.problem.restrictions import Restrictions
from mipforest.problem.structure import LabelSums
from mipforest.trees import Predictor


def _predicted(tree: Predictor, data: Dataset, label: str | None) -> BoolArray:
    """Return (n,) which training samples are predicted a class; the last one where none is named."""
    k = len(data.label_names) - 1 if label is None else data.label_names.index(label)
    chosen: BoolArray = data.label_indicators(tree.predict(data.X_raw))[:, k]
    return chosen


class _Recorder:
    """A built problem of one tree of which nothing is known but the label of each training sample."""

    def __init__(self, problem: Built) -> None:
        self.instance, self.data, self.topology = problem.instance, problem.data, problem.topology
        self.model = Model("labels")
        self.label = self.model.binary("label", (problem.data.n, len(problem.data.label_names)))
        self.formulation: Any = self
        self.name, self.task = problem.formulation.name, problem.formulation.task

    def expressions(self, model: Model, instance: Instance) -> Any:  # noqa: ARG002
        """Return what rows read."""
        return self

    def predicted(self, k: int) -> Any:
        """Return (n,) whether the samples get a label."""
        return self.label[:, k]

    def free_name(self, name: str) -> str:
        """Return a name that no block has yet."""
        return free_name(self.model, name)

    def sums(self) -> LabelSums:
        """Return the rows that were added."""
        blocks = list(self.model.constraints.values())
        use = [
            block.A.toarray().reshape(block.A.shape[0], self.data.n, len(self.data.label_names))
            for block in blocks
        ]
        names = [
            block.name if block.size == 1 else f"{block.name}[{i}]"
            for block in blocks
            for i in range(block.size)
        ]
        least, most = (
            np.concatenate([getattr(block, side) for block in blocks]) for side in ("lower", "upper")
        )
        return LabelSums(tuple(names), np.concatenate(use), least, most)


class OfLabels(Constraint):
    """A constraint that reads the labels of the training samples alone."""

    def sums(self, problem: Built) -> LabelSums:
        """Return its rows as limits on sums over labels."""
        recorder = _Recorder(problem)
        self.rows(recorder)
        return recorder.sums()

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:  # noqa: ARG002
        """Limit the sums over labels that its rows limit."""
        return own.limiting(self.sums(problem))


@dataclass(frozen=True, eq=False)
class LabelRows(Named, OfLabels):
    """Limits on the labels of the training samples, by a function that adds their rows.

    Attributes
    ----------
    name
        What they are called.
    add
        Adds the rows to what was built; it reads nothing but predictions.
    built
        What they were stated for.
    """

    name: str
    add: Callable[[Built], None] = field(repr=False)
    built: Built = field(repr=False)

    kind: ClassVar[str] = "labels"

    def rows(self, problem: Built) -> None:
        """Add the rows."""
        self.add(problem)

    @cached_property
    def _from_above(self) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Limits from above on sums of labels; searches ask for them at every tree."""
        return self.sums(self.built).from_above()

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Compare the sum that exceeds its limit most, or comes nearest to it."""
        _, use, most = self._from_above
        sums = use[:, data.label_indicators(tree.predict(data.X_raw))].sum(axis=1)
        worst = int((sums - most).argmax())
        value, limit = float(sums[worst]), float(most[worst])
        rounding = ROUNDING * max(1.0, abs(limit))
        return Holding(value, limit, value >= limit - rounding, value <= limit + rounding)


class _ShareByName(OfLabels):
    """A limit on a share: the first two fields of a subclass are a name and the limit."""

    _shares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        named, limit = (own.name for own in fields(self)[:2])
        object.__setattr__(self, limit, share(self.kind, getattr(self, limit)))
        name(self.kind, getattr(self, named))

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read ``NAME=SHARE``."""
        return [cls(*named_share(cls.kind, part)) for part in listed(text)]  # type: ignore[call-arg]

    @property
    def words(self) -> str:
        """Name and share."""
        named, limit = (getattr(self, own.name) for own in fields(self)[:2])
        return f"{named}={percent(limit)}"


@dataclass(frozen=True)
class Parity(_ShareByName):
    """Shares of positive predictions of any two groups, by weight, within a tolerance of each other.

    Attributes
    ----------
    column
        Column of the table that holds the groups; it need not be a feature, see :meth:`with_groups`.
    most
        Largest difference of shares, 0 to 1.
    positive
        The positive class; the last one when left out.
    groups
        (n,) group of each training sample; read from the features of the column when left out.
    """

    column: str
    most: float
    positive: str | None = None
    groups: Any = field(default=None, compare=False, repr=False, metadata={"kept": False})

    kind: ClassVar[str] = "parity"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positive is not None:
            name(self.kind, self.positive)

    def with_groups(self, read: Callable[[str], Any]) -> Parity:
        """Return it with the groups that a function reads of its column."""
        return replace(self, groups=read(self.column))

    def rows(self, problem: Built) -> None:
        """Add the rows of :func:`mipforest.constraints.demographic_parity`."""
        helpers.demographic_parity(
            problem, self._groups(problem.data).tolist(), self.most, positive=self.positive
        )

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Compare the largest difference of shares with the tolerance."""
        chosen = _predicted(tree, data, self.positive)
        number = np.unique(self._groups(data), return_inverse=True)[1]
        sizes = np.bincount(number, data.weights)
        shares = np.bincount(number, data.weights * chosen) / sizes
        step = float((data.weights / sizes[number]).max())
        return self.at_most(float(shares.max() - shares.min()), self.most, step)

    def _groups(self, data: Dataset) -> IntArray:
        if self.groups is not None:
            given = np.asarray(self.groups)
            return np.unique(given.astype(str) if given.dtype == object else given, return_inverse=True)[1]
        own = features_named(data, self.column)
        return np.unique(data.X_raw[:, own], axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class _Rate(_ShareByName):
    """A rate of a class that is at least a number.

    Attributes
    ----------
    label
        The class.
    least
        Least rate, 0 to 1.
    """

    label: str
    least: float

    def _sums(self, tree: Predictor, data: Dataset) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Return weights with the sum 1, the samples of the class, and those that are predicted it."""
        true = data.label_indicators(data.y)[:, data.label_names.index(self.label)]
        return data.weights / data.weights.sum(), true, _predicted(tree, data, self.label)


@dataclass(frozen=True)
class Recall(_Rate):
    """The share of the samples of a class that are predicted it, by weight."""

    kind: ClassVar[str] = "recall"

    def rows(self, problem: Built) -> None:
        """Add the row of :func:`mipforest.constraints.min_recall`."""
        helpers.min_recall(problem, self.least, positive=self.label)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Compare the recall with the least one."""
        weight, true, chosen = self._sums(tree, data)
        whole = weight[true].sum()
        return self.at_least(
            float(weight[true & chosen].sum() / whole), self.least, float(weight[true].max() / whole)
        )


@dataclass(frozen=True)
class Precision(_Rate):
    """The share of the samples that are predicted a class that belong to it, by weight; 1 where none is."""

    kind: ClassVar[str] = "precision"

    def rows(self, problem: Built) -> None:
        """Add the row of :func:`mipforest.constraints.min_precision`."""
        helpers.min_precision(problem, self.least, positive=self.label)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Compare the precision with the least one."""
        weight, true, chosen = self._sums(tree, data)
        whole = weight[chosen].sum()
        if whole == 0:
            return Holding(1.0, self.least, False)
        hit = float(weight[true & chosen].sum())
        # One sample of another class, of the largest weight, is predicted this one, too.
        worse = hit / float(whole + weight.max())
        return self.at_least(hit / float(whole), self.least, hit / float(whole) - worse)


@dataclass(frozen=True)
class F1(_Rate):
    """The F1 score of a class, by weight."""

    kind: ClassVar[str] = "f1"

    def rows(self, problem: Built) -> None:
        """Add the row of :func:`mipforest.constraints.min_f1`."""
        helpers.min_f1(problem, self.least, positive=self.label)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Compare the score with the least one."""
        weight, true, chosen = self._sums(tree, data)
        both, hit = float(weight[true].sum() + weight[chosen].sum()), float(weight[true & chosen].sum())
        value = 2 * hit / both if both else 0.0
        worse = 2 * hit / (both + float(weight.max()))
        return self.at_least(value, self.least, value - worse)


@dataclass(frozen=True)
class LimitLabel(_ShareByName):
    """At most a share of the training samples, by weight, are predicted a class or get a decision.

    Attributes
    ----------
    label
        The class, the treatment or the decision.
    most
        Largest share, 0 to 1.
    """

    label: str
    most: float

    kind: ClassVar[str] = "limit-label"

    def rows(self, problem: Built) -> None:
        """Add the row of :func:`mipforest.constraints.limit_label`."""
        helpers.limit_label(problem, self.label, self.most)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Compare the share with the largest one."""
        weight = data.weights / data.weights.sum()
        value = float(weight[_predicted(tree, data, self.label)].sum())
        return self.at_most(value, self.most, float(weight.max()))


#: A condition of a rule: a name, a sign, and a number.
_CONDITION = re.compile(r"(?P<name>.*\S)\s*(?P<sign><|>=)\s*(?P<value>[^<>=]+)")


@dataclass(frozen=True)
class RegionLabel(OfLabels):
    """All training samples that satisfy some conditions are predicted a class, or get a decision.

    Attributes
    ----------
    label
        The class, the treatment or the decision.
    where
        Conditions, such as ``age < 30`` or ``dose >= 2.5``: a column of numbers or a feature, and a number in original
        units. All hold; without any, all samples are meant.
    """

    label: str
    where: tuple[str, ...] = ()

    kind: ClassVar[str] = "label"

    def __post_init__(self) -> None:
        name(self.kind, self.label)
        where = (self.where,) if isinstance(self.where, str) else self.where
        object.__setattr__(self, "where", tuple(str(one).strip() for one in where))
        for condition in self.where:
            self._read(condition)

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read ``LABEL: CONDITION, CONDITION``."""
        label, colon, conditions = text.partition(":")
        if not colon or not label.strip():
            raise DataError(
                f"label: {text!r} is not LABEL: CONDITION, ...; write it as in 'ill: age >= 60, dose < 2'"
            )
        return [cls(label.strip(), tuple(listed(conditions)))]

    @property
    def words(self) -> str:
        """Label and conditions."""
        return f"{self.label}: {joined(self.where)}"

    def _read(self, condition: str) -> tuple[str, bool, float]:
        """Return the name, whether samples are below the number, and the number."""
        found = _CONDITION.fullmatch(condition)
        try:
            value = float(found["value"]) if found else math.nan
        except ValueError:
            value = math.nan
        if not found or not math.isfinite(value):
            raise DataError(f"label: {condition!r} is no condition; write it as in 'age < 30' or 'age >= 30'")
        return found["name"], found["sign"] == "<", value

    def samples(self, data: Dataset) -> BoolArray:
        """Return (n,) which training samples satisfy the conditions.

        Raises
        ------
        DataError
            If a name is none, or stands for several features.
        """
        here = np.ones(data.n, dtype=bool)
        for condition in self.where:
            named, below, value = self._read(condition)
            own = features_named(data, named)
            if len(own) != 1:
                parts = ", ".join(data.features.labels[j] for j in own[:3])
                raise DataError(f"label: {named} is several features; name one of them, such as {parts}")
            is_below = data.X_raw[:, own[0]] + base_of(data, named) < value
            here &= is_below if below else ~is_below
        return here

    def rows(self, problem: Built) -> None:
        """Add the rows of :func:`mipforest.constraints.forbid_label` for all other labels."""
        data, classes = problem.data, problem.data.label_names
        if not classes:
            raise NotExpressed(f"label: model {problem.formulation.name} predicts numbers, and no labels")
        if self.label not in classes:
            raise DataError(
                f"label: there is no {self.label!r}{did_you_mean(self.label, classes)}; there are "
                f"{some_of(classes)}"
            )
        here = self.samples(data)
        if not here.any():
            raise DataError(f"label: no training sample satisfies {self.words!r}; take other conditions")
        of_targets = data.target_classes or (data.classes,)
        target = np.repeat(np.arange(len(of_targets)), list(map(len, of_targets)))
        own = classes.index(self.label)
        for k in np.flatnonzero(target == target[own]).tolist():
            if k != own:
                helpers.forbid_label(problem, classes[k], here)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Count the samples that get another label."""
        others = int((self.samples(data) & ~_predicted(tree, data, self.label)).sum())
        return Holding(float(others), 0.0, None, others == 0)


@dataclass(frozen=True)
class MinLeaf(Constraint):
    """Every leaf that holds training samples holds at least so many, or at least a share of their weight.

    Attributes
    ----------
    least
        A whole number of samples, or a text such as ``5%``.
    """

    least: int | str

    kind: ClassVar[str] = "min-leaf"

    def __post_init__(self) -> None:
        text = str(self.least).strip()
        least: int | str = count_of(text) if not text.endswith("%") else percent(share(self.kind, text))
        object.__setattr__(self, "least", least)

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Read a number or a share."""
        return [cls(text)]

    @property
    def words(self) -> str:
        """Number or share."""
        return str(self.least)

    @property
    def of_shares(self) -> bool:
        """Whether it is a share."""
        return isinstance(self.least, str)

    def rows(self, problem: Built) -> None:
        """Add the rows of :func:`mipforest.constraints.min_samples_leaf` or ``min_weight_fraction_leaf``."""
        if isinstance(self.least, str):
            helpers.min_weight_fraction_leaf(problem, share(self.kind, self.least))
            return
        if self.least > problem.data.n:
            raise DataError(
                f"min-leaf: a leaf has to hold {self.least} training samples, and there are {problem.data.n} in all; "
                "ask for fewer"
            )
        helpers.min_samples_leaf(problem, self.least)

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:
        """Raise the least number of samples; a share of unlike weights is asked of each tree."""
        least = self.samples(problem.data)
        if least is None:
            return super().restrict(own, problem, thresholds)
        return replace(own, N_min=max(own.N_min, least))

    def samples(self, data: Dataset) -> int | None:
        """Return the least number of samples of a leaf; ``None`` of a share of unlike weights."""
        if not isinstance(self.least, str):
            return self.least
        return None if data.weighted else math.ceil(share(self.kind, self.least) * data.n * (1.0 - ROUNDING))

    def amounts(self, data: Dataset) -> tuple[FloatArray, float]:
        """Return what each training sample (n,) counts in its leaf, and the least sum of a leaf that holds any."""
        if isinstance(self.least, str):
            return data.weights / data.weights.sum(), share(self.kind, self.least)
        return np.ones(data.n), float(self.least)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Compare the smallest leaf that holds samples, or side of a rule of a score card, with the least size."""
        if isinstance(tree, ScoreCard):
            held = [rule.holds(data.X_raw) for rule in tree.rules]
            sides = [side for rule in held for side in (rule, ~rule)]
        else:
            leaves = np.asarray(tree.apply(data.X_raw))
            sides = [leaves == leaf for leaf in np.unique(leaves)]
        amount, least = self.amounts(data)
        smallest = min((float(amount[side].sum()) for side in sides), default=float(amount.sum()))
        return self.at_least(smallest, least, float(amount.max()))


def count_of(text: str) -> int:
    """Read the least number of samples of a leaf."""
    try:
        return count("min-leaf", text, 1)
    except DataError as error:
        raise DataError(f"{error}, nor a share such as 5%") from None
