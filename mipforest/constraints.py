"""Constraints that take more than one line, for the models of trees that can express them.

Every function takes a built :class:`~mipforest.problem.problem.Problem` and adds rows to ``problem.model``.
What they read comes from the formulation (:class:`~mipforest.problem.expressions.TreeExpressions`), so one
function serves every model that says, for example, which class a sample is predicted. A model that does not raises
:class:`~mipforest.problem.expressions.NotExpressed`.

Constraints on samples hold for the **training samples**; on new ones they hold as far as these are alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import DataError, did_you_mean
from mipforest.model import LinearExpr, VarArray
from mipforest.problem.expressions import NotExpressed, TreeExpressions
from mipforest.problem.part import Part
from mipforest.problem.problem import Problem

# ---------------------------------------------------------------------- features


def forbid_features(
    problem: Problem | Part, features: str | Sequence[str], *, nodes: Sequence[int] | None = None
) -> None:
    """Keep features out of the tree, linear functions of leaves included, or out of the splits of some nodes.

    Parameters
    ----------
    problem
        A built problem.
    features
        Names of features, or of columns of the table, which stand for all of their features.
    nodes
        Branch nodes (root 0) that may not use them; the whole tree when left out.

    Raises
    ------
    DataError
        If a feature is unknown.
    NotExpressed
        If the model does not say which features its splits use.
    """
    uses = _expressions(problem).features()
    in_leaves = _expressions(problem).leaf_features() if nodes is None else None
    where = np.arange(problem.topology.n_branches) if nodes is None else np.asarray(nodes)
    for j in _columns(problem, features, whole=True):
        name = problem.free_name(f"forbid_{problem.data.features.labels[j]}")
        problem.model.add(name, uses[where, j] == 0)
        if in_leaves is not None:
            problem.model.add(f"{name}_in_leaves", in_leaves[:, j] == 0)


def require_features(problem: Problem | Part, features: str | Sequence[str]) -> None:
    """Have every one of these features used by some split; parameters and errors as for :func:`forbid_features`."""
    for j in _columns(problem, features):
        _expressions(problem).require_feature(int(j))


def features_used(problem: Problem | Part) -> VarArray:
    """Return the (p,) binaries that say whether a feature is used anywhere in the tree: to bound, or to minimise.

    In splits, and in linear functions of leaves. They are added as block ``feature_used`` when first asked for. A
    feature whose binary is 0 is not used; one whose binary is 1 may have a weight of 0 (see :func:`require_features`).

    Raises
    ------
    NotExpressed
        If the model does not say which features its splits use.
    """
    m = problem.model
    if "feature_used" not in m.variables:
        # Both first: where a model has no such expression, nothing is added.
        uses, in_leaves = _expressions(problem).features(), _expressions(problem).leaf_features()
        used = m.binary("feature_used", problem.data.features)
        m.add("feature_used_somewhere", used >= uses, over=(problem.topology.branches, problem.data.features))
        anywhere: LinearExpr = uses.sum(axis=0)
        if in_leaves is not None:
            m.add("feature_used_in_leaves", used >= in_leaves)
            anywhere = anywhere + in_leaves.sum(axis=0)
        m.add("feature_used_nowhere", used <= anywhere, over=problem.data.features)
    return m["feature_used"]


def feature_budget(
    problem: Problem | Part, budget: float, cost: Mapping[str, float] | Sequence[float] | float = 1.0
) -> None:
    """Limit the total cost of the features that the tree uses, linear leaves included, each paid once.

    Parameters
    ----------
    problem
        A built problem.
    budget
        Most that the features may cost together.
    cost
        Cost of each feature: one number for all, (p,) numbers, or a mapping by name (0 for those left out).

    Raises
    ------
    DataError
        If a feature is unknown, a cost is negative, or there are not p of them.
    NotExpressed
        If the model does not say which features its splits use.
    """
    costs = _costs(problem, cost)
    problem.model.add(problem.free_name("feature_budget"), costs @ features_used(problem) <= budget)


def at_most_of(problem: Problem | Part, features: str | Sequence[str], most: int) -> None:
    """Use at most some number of these features, in the whole tree (linear leaves included) or score card.

    Parameters
    ----------
    problem
        A built problem.
    features
        Names of the features of the group.
    most
        Largest number of them.

    Raises
    ------
    DataError
        If a feature is unknown.
    NotExpressed
        If the model does not say which features it uses.
    """
    used = features_used(problem)[_columns(problem, features)]
    problem.model.add(problem.free_name("at_most_of"), used.sum() <= most)


def max_total(problem: Problem | Part, most: int) -> None:
    """Limit the largest total of a score card that is written without negative points: the sum of its points' sizes.

    Parameters
    ----------
    problem
        A built problem of a model of score cards.
    most
        The limit, 0 or more.

    Raises
    ------
    NotExpressed
        If the model has no points.
    """
    problem.model.add(problem.free_name("max_total"), _expressions(problem).total_size() <= most)


def once_per_path(problem: Problem | Part, features: str | Sequence[str] | None = None) -> None:
    """Use a feature at most once on the way from the root to any leaf.

    Parameters
    ----------
    problem
        A built problem.
    features
        Names of the features this holds for; all when left out.
    """
    uses, tree = _expressions(problem).features(), problem.topology
    columns = np.arange(problem.data.p) if features is None else _columns(problem, features)
    problem.model.add(problem.free_name("once_per_path"), tree.reach @ uses[:, columns] <= 1)


def monotone(problem: Problem | Part, feature: str, *, increasing: bool = True) -> None:
    """Let a larger value of a feature never turn a prediction from the second class to the first.

    With ``increasing=False``: never from the first to the second. Of a score card it is the sign of a rule: the risk
    never falls in the feature, or never rises. The classes are in the order of
    ``problem.data.classes``. The rows are sufficient, and not necessary: they may exclude a tree that is
    monotone for another reason.

    Raises
    ------
    DataError
        If the feature is unknown.
    NotExpressed
        If the model cannot express it.
    """
    (j,) = _columns(problem, feature)
    _expressions(problem).keep_monotone(int(j), increasing=increasing)


def fix_split(problem: Problem | Part, feature: str, threshold: float, *, node: int = 0) -> None:
    """Fix a split: samples with ``feature < threshold`` go left at a node, others right.

    Parameters
    ----------
    problem
        A built problem.
    feature
        Name of a feature.
    threshold
        In original units. A univariate model routes the training samples like this; the threshold of its
        tree lies anywhere between the same two training values.
    node
        Branch node in heap order; the root is 0.

    Raises
    ------
    DataError
        If the feature is unknown.
    NotExpressed
        If the model cannot express it, or the threshold leaves all training samples on one side.
    """
    (j,) = _columns(problem, feature)
    encoding = problem.data.encoding
    scaled = (threshold - encoding.offset[j]) / encoding.scale[j]
    _expressions(problem).fix_split(node, int(j), float(scaled))


# ---------------------------------------------------------------------- samples


def min_samples_leaf(problem: Problem | Part, n_min: int) -> None:
    """Have at least ``n_min`` training samples in every leaf that holds any, and one for each that holds none.

    Raises
    ------
    NotExpressed
        If the model does not say which leaf a sample is in.
    """
    _least_in_leaves(problem, "leaf_size", np.ones(problem.data.n), n_min)


def min_weight_fraction_leaf(problem: Problem | Part, share: float) -> None:
    """Have at least a share of the weight of all training samples in every leaf that holds any sample.

    Of a score card: among the samples that a rule holds for, and among the others.

    Parameters
    ----------
    problem
        A built problem.
    share
        Above 0, at most 0.5; with samples of weight 1 it is a share of their number.

    Raises
    ------
    DataError
        If the share is no such number.
    NotExpressed
        If the model does not say which leaf a sample is in.
    """
    if not 0 < share <= 0.5:
        raise DataError(f"the least share of weight in a leaf is {share:g}; give one above 0, at most 0.5")
    # Relative to the least weight, entries are of the order of 1, however large the weights are.
    weights = problem.data.weights
    _least_in_leaves(problem, "leaf_weight", weights / (share * weights.sum()), 1.0)


def _least_in_leaves(problem: Problem | Part, name: str, amounts: FloatArray, least: float) -> None:
    """Have at least some amount of the samples' (n,) amounts in every leaf that holds any of them."""
    name = problem.free_name(name)
    if _expressions(problem).least_on_sides(name, amounts, least):
        return
    leaves = _expressions(problem).leaves()
    m, tree = problem.model, problem.topology
    used = m.binary(f"{name}_used", tree.leaves)
    m.add(f"{name}_least", amounts @ leaves >= least * used, over=tree.leaves)
    m.add(f"{name}_empty", leaves.sum(axis=0) <= problem.data.n * used, over=tree.leaves)


def demographic_parity(
    problem: Problem | Part,
    group: Sequence[Any] | FloatArray,
    tolerance: float,
    *,
    positive: str | None = None,
) -> None:
    """Keep the shares of positive predictions of any two groups within a tolerance of each other.

    Parameters
    ----------
    problem
        A built problem for a classification.
    group
        (n,) group of each training sample, of any type.
    tolerance
        Largest difference of shares, 0 to 1.
    positive
        Name of the positive class; the last one when left out.

    Raises
    ------
    DataError
        If ``group`` has another length or one value only, or the class is unknown.
    NotExpressed
        If the model does not say which class a sample is predicted.
    """
    everyone = np.ones(problem.data.n, dtype=bool)
    _equal_shares(problem, "demographic_parity", group, everyone, tolerance, _class(problem, positive))


def equal_opportunity(
    problem: Problem | Part,
    group: Sequence[Any] | FloatArray,
    tolerance: float,
    *,
    positive: str | None = None,
) -> None:
    """Keep the true positive rates of any two groups within a tolerance of each other.

    As :func:`demographic_parity`, among the samples of the positive class; a model that prescribes treatments has no
    true class, and raises :class:`NotExpressed`.
    """
    k = _true_class(problem, positive)
    _equal_shares(problem, "equal_opportunity", group, problem.data.y == k, tolerance, k)


def max_false_negatives(problem: Problem | Part, most: int, *, positive: str | None = None) -> None:
    """Limit the number of training samples of the positive class that are predicted another one.

    Parameters
    ----------
    problem
        A built problem for a classification.
    most
        Largest number of them.
    positive
        Name of the positive class; the last one when left out.

    Raises
    ------
    DataError
        If the class is unknown.
    NotExpressed
        If the model does not say which class a sample is predicted, or samples have no true class: treatments.
    """
    k = _true_class(problem, positive)
    members = problem.data.y == k
    hit = _expressions(problem).predicted(k)[members].sum()
    problem.model.add(problem.free_name("max_false_negatives"), hit >= int(members.sum()) - most)


def min_recall(problem: Problem | Part, least: float, *, positive: str | None = None) -> None:
    """Have at least a share of the samples of a class predicted it, by their weights: its recall.

    Parameters
    ----------
    problem
        A built problem for a classification, of any number of classes.
    least
        The share, 0 to 1.
    positive
        Name of the class; the last one when left out.

    Raises
    ------
    DataError
        If the class is unknown or has no sample, or the share is none.
    NotExpressed
        If the model does not say which class a sample is predicted, or samples have no true class: treatments.
    """
    k = _true_class(problem, positive)
    share = _share_of(problem, k)
    row = share @ _expressions(problem).predicted(k) >= _rate(least)
    problem.model.add(problem.free_name(f"min_recall_{problem.data.classes[k]}"), row)


def min_precision(problem: Problem | Part, least: float, *, positive: str | None = None) -> None:
    """Have at least a share of the samples that are predicted a class belong to it, by their weights: its precision.

    A tree that predicts the class for no sample satisfies this. With :func:`min_recall`: a recall at a precision.
    Parameters and errors as for :func:`min_recall`.
    """
    k = _true_class(problem, positive)
    data, least = problem.data, _rate(least)
    weight = data.weights / data.weights.sum()
    row = (weight * ((data.y == k) - least)) @ _expressions(problem).predicted(k) >= 0
    problem.model.add(problem.free_name(f"min_precision_{data.classes[k]}"), row)


def min_balanced_accuracy(problem: Problem | Part, least: float) -> None:
    """Have the mean of the recalls of all classes that have samples at least at a number from 0 to 1.

    Errors as for :func:`min_recall`.
    """
    _true_class(problem, None)
    present = np.unique(problem.data.y.astype(np.int64)).tolist()
    recalls = [_share_of(problem, k) @ _expressions(problem).predicted(k) for k in present]
    total: LinearExpr = sum(recalls[1:], recalls[0])
    problem.model.add(problem.free_name("min_balanced_accuracy"), total >= len(recalls) * _rate(least))


def min_f1(problem: Problem | Part, least: float, *, positive: str | None = None) -> None:
    """Have the F1 score of a class at least at a number from 0 to 1.

    With TP samples of the class that are predicted it, P samples of it and Q that are predicted it, all by weight, it
    is :math:`2 TP / (P + Q)`. Parameters and errors as for :func:`min_recall`; :func:`mipforest.rates.best_f1`
    maximises it.
    """
    k = _true_class(problem, positive)
    data, least = problem.data, _rate(least)
    weight = data.weights / data.weights.sum()
    true = data.y == k
    row = (weight * (2.0 * true - least)) @ _expressions(problem).predicted(k) >= least * float(
        weight[true].sum()
    )
    problem.model.add(problem.free_name(f"min_f1_{data.classes[k]}"), row)


def _rate(least: float) -> float:
    if not 0 <= least <= 1:
        raise DataError(f"the least rate is {least:g}; give a number from 0 to 1")
    return float(least)


def _share_of(problem: Problem | Part, k: int) -> FloatArray:
    """Return the (n,) share of each sample in the weight of class k, 0 for those of other classes."""
    data = problem.data
    members = data.weights * (data.y == k)
    if not members.any():
        raise DataError(f"{data.name} has no sample of class {data.classes[k]}, and none to recall")
    shares: FloatArray = members / members.sum()
    return shares


def limit_label(
    problem: Problem | Part, label: str, share: float, *, cost: Sequence[float] | FloatArray | None = None
) -> None:
    """Let at most a share of the training samples, or of their costs, be predicted a class or get a decision.

    Parameters
    ----------
    problem
        A built problem whose leaves have labels.
    label
        Name of the class, the treatment or the decision.
    share
        Largest share, from 0 to 1: of the sum of all costs.
    cost
        (n,) what the label costs for each sample, at least 0; its weight unless given, so that samples are counted.

    Raises
    ------
    DataError
        If the label is unknown, the share is none, or costs have another shape, are negative or all 0.
    NotExpressed
        If the model does not say which label a sample gets.
    """
    data, k = problem.data, _class(problem, label)
    costs = np.asarray(data.weights if cost is None else cost, dtype=np.float64)
    if costs.shape != (data.n,) or not np.isfinite(costs).all() or costs.min() < 0 or not costs.any():
        raise DataError(
            f"cost has shape {costs.shape}, and values from {costs.min(initial=0):g} to {costs.max(initial=0):g}; give "
            f"one number of at least 0 for each of {data.n} samples, and one above 0"
        )
    if not 0 <= share <= 1:
        raise DataError(f"share is {share:g}; give the largest share of the costs, from 0 to 1")
    shares = costs / costs.sum()
    row = shares @ _expressions(problem).predicted(k) <= share
    problem.model.add(problem.free_name(f"at_most_{label}"), row)


def forbid_label(problem: Problem | Part, label: str, samples: Sequence[int] | BoolArray) -> None:
    """Keep a class or a decision from some of the training samples, whatever it would be worth.

    Parameters
    ----------
    problem
        A built problem whose leaves have labels.
    label
        Name of the class, the treatment or the decision.
    samples
        Numbers of the samples, or an (n,) mask of them.

    Raises
    ------
    DataError
        If the label is unknown, or a sample.
    NotExpressed
        If the model does not say which label a sample gets.
    """
    data, k = problem.data, _class(problem, label)
    asked = np.asarray(samples)
    if asked.dtype == bool and asked.shape != (data.n,):
        raise DataError(
            f"the mask of samples has shape {asked.shape}, and there are {data.n} training samples"
        )
    numbers = np.flatnonzero(asked) if asked.dtype == bool else asked.astype(np.int64).ravel()
    wrong = numbers[(numbers < 0) | (numbers >= data.n)]
    if len(wrong):
        raise DataError(f"there is no sample {wrong[0]}: {data.name} has {data.n} training samples, from 0")
    if len(numbers):
        predicted = _expressions(problem).predicted(k)
        problem.model.add(problem.free_name(f"never_{label}"), predicted[numbers].sum() <= 0)


def _equal_shares(
    problem: Problem | Part, name: str, group: Any, among: BoolArray, tolerance: float, k: int
) -> None:
    """Bound the shares predicted class k, by group among some samples, from above and below by two variables."""
    number, n_groups = _groups(problem, group)
    sizes = np.bincount(number[among], minlength=n_groups)
    if (sizes == 0).any():
        raise DataError(
            f"{name}: a group has no sample of class {problem.data.classes[k]}; leave it out of 'group'"
        )
    average = np.zeros((n_groups, problem.data.n))
    rows = np.flatnonzero(among)
    average[number[rows], rows] = 1.0 / sizes[number[rows]]
    shares: LinearExpr = average @ _expressions(problem).predicted(k)
    first, second = np.triu_indices(n_groups, 1)
    free = problem.free_name(name)
    problem.model.add(f"{free}_above", shares[first] - shares[second] <= tolerance)
    problem.model.add(f"{free}_below", shares[second] - shares[first] <= tolerance)


# ---------------------------------------------------------------------- reading what the user gave


def _expressions(problem: Problem | Part) -> TreeExpressions:
    return problem.formulation.expressions(problem.model, problem.instance)


def _columns(problem: Problem | Part, features: str | Sequence[str], *, whole: bool = False) -> IntArray:
    """Return the numbers of features by name; with ``whole`` a column of the table stands for all of its features."""
    names = [features] if isinstance(features, str) else list(features)
    known = list(problem.data.features.labels)
    if whole:
        of = {column.name: column.features for column in problem.data.encoding.columns}
        names = [
            feature for name in names for feature in ((name,) if name in known else of.get(name, (name,)))
        ]
    for name in names:
        if name not in known:
            raise DataError(
                f"{problem.data.name} has no feature {name!r}{did_you_mean(name, known)}; "
                f"it has {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}"
            )
    return np.array([known.index(name) for name in names], dtype=np.int64)


def _costs(problem: Problem | Part, cost: Mapping[str, float] | Sequence[float] | float) -> FloatArray:
    p = problem.data.p
    if isinstance(cost, Mapping):
        costs = np.zeros(p)
        costs[_columns(problem, list(cost))] = list(cost.values())
    else:
        given = np.asarray(cost, dtype=np.float64)
        if given.shape not in ((), (p,)):
            raise DataError(
                f"cost has shape {given.shape}; give one number, {p} numbers, or a mapping by name"
            )
        costs = np.broadcast_to(given, (p,)).copy()
    if not (costs >= 0).all():
        raise DataError(f"a feature costs {costs.min():g}; costs are 0 or more")
    return costs


def _class(problem: Problem | Part, positive: str | None) -> int:
    classes = problem.data.classes
    if not classes:
        raise NotExpressed(
            f"model {problem.formulation.name} predicts numbers, and the constraint reads predicted classes; bound "
            "its leaf values or fitted values with problem.model.add"
        )
    if positive is None:
        return len(classes) - 1
    if positive not in classes:
        raise DataError(
            f"{problem.data.name} has no class {positive!r}{did_you_mean(positive, classes)}; "
            f"it has {', '.join(classes)}"
        )
    return classes.index(positive)


def _true_class(problem: Problem | Part, positive: str | None) -> int:
    """Return the number of a class that samples truly have, which is no matter of treatments."""
    if problem.formulation.task in ("prescription", "decision"):
        raise NotExpressed(
            f"the leaves of model {problem.formulation.name} prescribe or decide, and the constraint compares "
            "predictions with true classes, which there are none of; demographic_parity and limit_label take "
            "treatments and decisions"
        )
    return _class(problem, positive)


def _groups(problem: Problem | Part, group: Any) -> tuple[IntArray, int]:
    values = np.asarray(group)
    if values.shape != (problem.data.n,):
        raise DataError(
            f"group has shape {values.shape}, and there are {problem.data.n} training samples; give one value each"
        )
    known, number = np.unique(values, return_inverse=True)
    if len(known) < 2:
        raise DataError(f"all samples are in group {known[0]!r}; a comparison needs two groups or more")
    return number, len(known)
