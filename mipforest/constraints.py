"""Constraints that take more than one line, for the models of trees that can express them.

Every function takes a built :class:`~mipforest.problem.problem.Problem` and adds rows to ``problem.model``.
What they read comes from the formulation (:class:`~mipforest.problem.expressions.TreeExpressions`), so one
function serves every model that says, for example, which class a sample is predicted. A model that does not raises
:class:`~mipforest.problem.expressions.NotExpressed`.

Constraints on samples hold for the **training samples**; on new ones they hold as far as these are alike.

The name of a **column** of the table stands for all of its features: of its levels, of sets of them, and of both places
for its missing values. The name of a feature stands for it alone, but where features are counted or monotone: there it
stands for those that differ from it in missing values alone, too.

The same constraints as objects, which options and files make, are in :mod:`mipforest.problem.constraints`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import numpy as np

from mipforest.errors import DataError
from mipforest.problem.constraints import (
    AtMostOf,
    Built,
    Constraint,
    FeatureBudget,
    Forbid,
    LabelRows,
    MinLeaf,
    Monotone,
    OncePerPath,
    Require,
    Split,
    rows,
)
from mipforest.problem.constraints.rows import columns_used, features_used, max_total

P = ParamSpec("P")


def _stated(
    helper: Callable[Concatenate[Built, P], None], made: Callable[..., Constraint | None]
) -> Callable[Concatenate[Built, P], None]:
    """Have a helper state its constraint as an object, which searches and results know, where it has one.

    Part of a larger model gets the rows alone. Wrong arguments are the helper's to refuse.
    """

    @wraps(helper)
    def add(problem: Built, /, *args: P.args, **keywords: P.kwargs) -> None:
        from mipforest.problem.problem_data import ProblemData

        constraint = None
        if isinstance(problem, ProblemData):
            try:
                constraint = made(problem, *args, **keywords)
            except (DataError, TypeError, ValueError):
                constraint = None
        if constraint is None or not isinstance(problem, ProblemData):
            helper(problem, *args, **keywords)
        else:
            problem.constrain(constraint)

    add.__module__ = __name__  # where pickle finds it
    return add


def _of_labels(helper: Callable[Concatenate[Built, P], None]) -> Callable[Concatenate[Built, P], None]:
    """Have a helper that reads nothing but labels state its rows as an object."""

    def made(problem: Built, *args: Any, **keywords: Any) -> Constraint:
        name = " ".join([helper.__name__, *(str(one) for one in args if isinstance(one, str | int | float))])
        return LabelRows(name, lambda built: helper(built, *args, **keywords), problem)

    return _stated(helper, made)


def _budget(problem: Built, budget: float, cost: Any = 1.0) -> Constraint | None:
    if isinstance(cost, Mapping):
        return FeatureBudget(budget, dict(cost))
    names = [column.name for column in problem.data.encoding.columns]
    return FeatureBudget(budget, dict(zip(names, np.broadcast_to(cost, (len(names),)).tolist(), strict=True)))


def _at_most_of(problem: Built, features: Any, most: int) -> Constraint | None:
    names = [features] if isinstance(features, str) else list(dict.fromkeys(features))
    counted = rows.groups_counted(problem.data, names)
    return AtMostOf(most, dict.fromkeys(counted, 1.0))


def _min_leaf(problem: Built, n_min: int) -> Constraint | None:
    return (
        MinLeaf(n_min) if n_min <= problem.data.n else None
    )  # that no leaf holds as many is for the rows to tell


def _split(problem: Built, feature: str, threshold: float, *, node: int = 0) -> Constraint | None:
    features, at = rows.scaled_split(problem, feature, threshold)
    x = problem.data.X[:, features]
    parts = (x.min(axis=0) < at) & (at <= x.max(axis=0))
    return Split(feature, threshold, node) if parts.any() else None


def _range(
    _: Built, feature: str, least: float = -math.inf, most: float = math.inf, *, node: int = 0
) -> Constraint:
    ends = (None if least == -math.inf else least), (None if most == math.inf else most)
    return Split(feature, ends, node)


forbid_features = _stated(rows.forbid_features, lambda _, features, *, nodes=None: Forbid(features, nodes))
require_features = _stated(rows.require_features, lambda _, features: Require(features))
feature_budget = _stated(rows.feature_budget, _budget)
at_most_of = _stated(rows.at_most_of, _at_most_of)
once_per_path = _stated(rows.once_per_path, lambda _, features=None: OncePerPath(features))
monotone = _stated(
    rows.monotone,
    lambda _, feature, *, increasing=True, target=None: Monotone(feature, increasing, target),
)
fix_split = _stated(rows.fix_split, _split)
keep_split = _stated(rows.keep_split, _range)
min_samples_leaf = _stated(rows.min_samples_leaf, _min_leaf)
min_weight_fraction_leaf = _stated(
    rows.min_weight_fraction_leaf, lambda _, share: MinLeaf(f"{100 * share!r}%")
)
demographic_parity = _of_labels(rows.demographic_parity)
equal_opportunity = _of_labels(rows.equal_opportunity)
max_false_negatives = _of_labels(rows.max_false_negatives)
min_recall = _of_labels(rows.min_recall)
min_precision = _of_labels(rows.min_precision)
min_balanced_accuracy = _of_labels(rows.min_balanced_accuracy)
min_f1 = _of_labels(rows.min_f1)
limit_label = _of_labels(rows.limit_label)
forbid_label = _of_labels(rows.forbid_label)

__all__ = [
    "at_most_of",
    "columns_used",
    "demographic_parity",
    "equal_opportunity",
    "feature_budget",
    "features_used",
    "fix_split",
    "forbid_features",
    "forbid_label",
    "keep_split",
    "limit_label",
    "max_false_negatives",
    "max_total",
    "min_balanced_accuracy",
    "min_f1",
    "min_precision",
    "min_recall",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "monotone",
    "once_per_path",
    "require_features",
]
