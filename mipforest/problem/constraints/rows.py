"""The rows of constraints, by the expressions of a formulation: the functions of :mod:`mipforest.constraints`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.columns import base_of, counted_as_one, directions, features_named, features_of_columns
from mipforest.errors import DataError, did_you_mean, some_of
from mipforest.model import LinearExpr, Model, VarArray
from mipforest.problem.constraints.constraint import Built
from mipforest.problem.expressions import NotExpressed, TreeExpressions
from mipforest.trees import Predictor

# ---------------------------------------------------------------------- features


def forbid_features(
    problem: Built, features: str | Sequence[str], *, nodes: Sequence[int] | None = None
) -> None:
    """Keep features out of the tree, linear functions of leaves included, or out of the splits of some nodes.

    Parameters
    ----------
    problem
        A built problem.
    features
        Names of columns of the table, or of features.
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
    for j in np.unique(np.concatenate(_named(problem, features))):
        name = problem.free_name(f"forbid_{problem.data.features.labels[j]}")
        problem.model.add(name, uses[where, j] == 0)
        if in_leaves is not None:
            problem.model.add(f"{name}_in_leaves", in_leaves[:, j] == 0)


def require_features(problem: Built, features: str | Sequence[str]) -> None:
    """Have every one of these columns or features used by some split; parameters as for :func:`forbid_features`.

    Of a column, one of its features is enough.
    """
    for own in _named(problem, features):
        _expressions(problem).require_feature(own if len(own) > 1 else int(own[0]))


def features_used(problem: Built) -> VarArray:
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
        used = m.binary("feature_used", problem.data.features, meaning="whether the tree uses a feature")
        m.add("feature_used_somewhere", used >= uses, over=(problem.topology.branches, problem.data.features))
        anywhere: LinearExpr = uses.sum(axis=0)
        if in_leaves is not None:
            m.add("feature_used_in_leaves", used >= in_leaves)
            anywhere = anywhere + in_leaves.sum(axis=0)
        m.add("feature_used_nowhere", used <= anywhere, over=problem.data.features)
    return m["feature_used"]


def columns_used(problem: Built) -> VarArray:
    """Return the binaries that say whether a column of the table is used anywhere in the tree, by any of its features.

    One for each column, in the order of the table; as :func:`features_used`, which it returns where every column is one
    feature, and else as block ``column_used``.

    Raises
    ------
    NotExpressed
        If the model does not say which features its splits use.
    """
    columns = features_of_columns(problem.data)
    if len(columns) == problem.data.p:
        return features_used(problem)
    if "column_used" not in problem.model.variables:
        names = [column.name for column in problem.data.encoding.columns]
        _some_used(problem, "column_used", columns, names)
    return problem.model["column_used"]


def _some_used(problem: Built, name: str, groups: Sequence[IntArray], over: Sequence[str] | int) -> VarArray:
    """Add binaries that say whether some feature of each group is used."""
    m, used = problem.model, features_used(problem)
    some = m.binary(name, over)
    group, feature = np.repeat(np.arange(len(groups)), list(map(len, groups))), np.concatenate(groups)
    m.add(f"{name}_somewhere", some[group] >= used[feature])
    member = np.zeros((len(groups), problem.data.p))
    member[group, feature] = 1.0
    m.add(f"{name}_nowhere", some <= member @ used)
    return some


#: Endings of the names of rows that say what a binary is 1 for: some feature of a group, or a leaf that holds samples.
_SWITCHES = ("_nowhere", "_empty")

#: What the variables of labels that differ are called, and the ending of their rows; users have names of their own.
OTHER_LABEL, DIFFERS = "other_label", "_differs"


def encode_switches(model: Model, tree: Predictor, values: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the values of the binaries that constraints have added, for a tree and what is known of its blocks.

    Each is 1 where a row says that it has to be: where the other columns of the row are not all 0, or, of labels that
    differ, as they are.
    """
    found: dict[str, FloatArray] = {}
    if "feature_used" in model.variables and "feature_used" not in values:
        used = np.zeros(model["feature_used"].size)
        used[list(tree.features_used().overall)] = 1.0
        found["feature_used"] = used
    for row_name, rows in model.constraints.items():
        for ending in (*_SWITCHES, DIFFERS):
            name = row_name.removesuffix(ending) + ("_used" if ending == "_empty" else "")
            if not row_name.endswith(ending) or name not in model.variables or name in {**values, **found}:
                continue
            if ending == DIFFERS and not name.startswith(OTHER_LABEL):
                continue
            x, block = model.matrix().to_point({**values, **found}), model[name]
            others = sparse.csr_array(
                (rows.A.data, rows.A.indices, rows.A.indptr), shape=(rows.A.shape[0], len(x))
            )
            x[block.columns.ravel()] = 0.0
            if not np.isfinite(x[np.unique(others.indices)]).all():
                continue
            sums = others @ np.nan_to_num(x)
            told = (
                np.maximum(0.0, rows.lower - sums)
                if ending == DIFFERS
                else (np.abs(sums) > 0.5).astype(float)
            )
            found[name] = told.reshape(block.shape)
    return found


def feature_budget(
    problem: Built, budget: float, cost: Mapping[str, float] | Sequence[float] | float = 1.0
) -> None:
    """Limit the total cost of the columns that the tree uses, linear leaves included, each paid once.

    Parameters
    ----------
    problem
        A built problem.
    budget
        Most that the columns may cost together.
    cost
        Cost of each column of the table: one number for all, a number for each, or a mapping by name (0 for those left
        out). A mapping may name single features of a column, such as its levels: each that is used is paid.

    Raises
    ------
    DataError
        If a name is unknown or paid twice, a cost is negative, or there is not one for each column.
    NotExpressed
        If the model does not say which features its splits use.
    """
    names, costs = _costs(problem, cost)
    total = costs @ _counted(problem, "feature_budget", names)
    problem.model.add(problem.free_name("feature_budget"), total <= budget)


def at_most_of(problem: Built, features: str | Sequence[str], most: int) -> None:
    """Use at most some number of these columns or features, in the whole tree (linear leaves included) or score card.

    Parameters
    ----------
    problem
        A built problem.
    features
        Names of the columns or features of the group; each counts once.
    most
        Largest number of them.

    Raises
    ------
    DataError
        If a name is unknown.
    NotExpressed
        If the model does not say which features it uses.
    """
    used = _counted(problem, "at_most_of", [features] if isinstance(features, str) else features)
    problem.model.add(problem.free_name("at_most_of"), used.sum() <= most)


def group_budget(
    problem: Built, budget: float, groups: Sequence[Sequence[str]], cost: Sequence[float]
) -> None:
    """Limit the total cost of groups of columns or features, each paid once if the tree uses some of it.

    Parameters
    ----------
    problem
        A built problem.
    budget
        Most that the groups may cost together.
    groups, cost
        Names in each group, and its cost.

    Raises
    ------
    DataError
        If a name is unknown.
    NotExpressed
        If the model does not say which features its splits use.
    """
    name, model = problem.free_name("group_budget"), problem.model
    paid = model.binary(f"{name}_paid", len(groups), meaning="whether some column of a group is used")
    for k, group in enumerate(groups):
        model.add(f"{name}_of_{k}", _counted(problem, name, group) <= paid[k])
    model.add(name, np.asarray(cost, dtype=float) @ paid <= budget)


def max_total(problem: Built, most: int) -> None:
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


def once_per_path(problem: Built, features: str | Sequence[str] | None = None) -> None:
    """Use a column at most once on the way from the root to any leaf.

    Parameters
    ----------
    problem
        A built problem.
    features
        Names of the columns or features this holds for; all columns when left out.
    """
    uses, tree = _expressions(problem).features(), problem.topology
    if features is None:
        groups = features_of_columns(problem.data)
    else:
        groups = list(
            groups_counted(problem.data, [features] if isinstance(features, str) else features).values()
        )
    member = np.zeros((problem.data.p, len(groups)))
    for k, own in enumerate(groups):
        member[own, k] = 1.0
    problem.model.add(problem.free_name("once_per_path"), tree.reach @ uses @ member <= 1)


def monotone(problem: Built, feature: str, *, increasing: bool = True, target: str | None = None) -> None:
    """Let a larger value of a column never turn a prediction from the second class to the first.

    With ``increasing=False``: never from the first to the second. Of a score card it is the sign of a rule: the risk
    never falls in the feature, or never rises. The classes are in the order of
    ``problem.data.classes``. The rows are sufficient, and not necessary: they may exclude a tree that is
    monotone for another reason.

    Parameters
    ----------
    problem
        A built problem.
    feature
        A column of numbers, or of two levels (the second is the larger value). The feature of a level, or of a set of
        levels: a value that has it is larger than one that has not, whichever features splits read. Missing values are
        neither larger nor smaller.
    increasing
        Whether predictions rise.
    target
        Of several targets, the one whose predictions are meant.

    Raises
    ------
    DataError
        If the name is unknown, or that of a column of several levels, which have no order; or if there is no such
        target, or none of several is named.
    NotExpressed
        If the model cannot express it.
    """
    targets, given = problem.data.targets, () if target is None else (target,)
    if target not in targets and (targets or given):
        raise DataError(
            f"predictions of {problem.data.name} are those of {some_of(targets) if targets else 'one target'}, and "
            f"{'none is named' if target is None else f'{target!r} is named'}; "
            + (f"name one of them, as in target={targets[0]!r}" if targets else "name none")
        )
    number = targets.index(target) if target is not None else 0
    for j, rises in directions(problem.data, feature):
        _expressions(problem).keep_monotone(j, increasing=increasing == rises, target=number)


def fix_split(problem: Built, feature: str, threshold: float, *, node: int = 0) -> None:
    """Fix a split: samples with ``feature < threshold`` go left at a node, others right.

    Parameters
    ----------
    problem
        A built problem.
    feature
        Name of a column of numbers, or of a feature. Where splits decide where missing values go, the column's name
        leaves that free.
    threshold
        In original units. A univariate model routes the training samples like this; the threshold of its
        tree lies anywhere between the same two training values.
    node
        Branch node in heap order; the root is 0.

    Raises
    ------
    DataError
        If the feature is unknown, or a column of levels that is several features.
    NotExpressed
        If the model cannot express it, or the threshold leaves all training samples on one side.
    """
    own, scaled = scaled_split(problem, feature, threshold)
    if len(own) == 1:
        _expressions(problem).fix_split(node, int(own[0]), float(scaled[0]))
    else:
        _expressions(problem).fix_split(node, own, scaled)


def keep_split(
    problem: Built, feature: str, least: float = -math.inf, most: float = math.inf, *, node: int = 0
) -> None:
    """Have a node split on a column or feature, with a threshold in a range.

    Parameters
    ----------
    problem
        A built problem of a univariate model.
    feature
        Name of a column, or of a feature. Of a column that is several features, it is a split on one of them.
    least, most
        Least and greatest threshold, in original units; a column of levels has none.
    node
        Branch node in heap order; the root is 0.

    Raises
    ------
    DataError
        If the feature is unknown, or a column of levels that is to have a range.
    NotExpressed
        If the model cannot express it, or no threshold of the range parts the training samples.
    """
    own, low, high = scaled_range(problem, feature, least, most)
    _expressions(problem).keep_split(node, own, low, high)


def scaled_range(
    problem: Built, feature: str, least: float, most: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the features that a split on a column may read, and the scaled range of the threshold of each."""
    if least == -math.inf and most == math.inf:
        (own,) = _named(problem, feature)
        return own, np.full(len(own), -np.inf), np.full(len(own), np.inf)
    own, low = scaled_split(problem, feature, least)
    return own, low, scaled_split(problem, feature, most)[1]


def scaled_split(problem: Built, feature: str, threshold: float) -> tuple[IntArray, FloatArray]:
    """Return the features that a split on a column may read, and the scaled threshold of each."""
    (own,) = _named(problem, feature)
    encoding = problem.data.encoding
    of_numbers = {column.name for column in encoding.columns if column.levels is None}
    if len(own) > 1 and feature not in of_numbers:
        raise DataError(
            f"the column {feature} has levels, and a split parts them into two sets; name one of its features, such as "
            f"{problem.data.features.labels[own[0]]!r}, with the threshold 0.5"
        )
    return own, (threshold - base_of(problem.data, feature) - encoding.offset[own]) / encoding.scale[own]


# ---------------------------------------------------------------------- samples


def min_samples_leaf(problem: Built, n_min: int) -> None:
    """Have at least ``n_min`` training samples in every leaf that holds any, and one for each that holds none.

    Raises
    ------
    NotExpressed
        If the model does not say which leaf a sample is in.
    """
    _least_in_leaves(problem, "leaf_size", np.ones(problem.data.n), n_min)


def min_weight_fraction_leaf(problem: Built, share: float) -> None:
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


def _least_in_leaves(problem: Built, name: str, amounts: FloatArray, least: float) -> None:
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
    problem: Built,
    group: Sequence[Any] | FloatArray,
    tolerance: float,
    *,
    positive: str | None = None,
) -> None:
    """Keep the shares of positive predictions of any two groups, by weight, within a tolerance of each other.

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
    problem: Built,
    group: Sequence[Any] | FloatArray,
    tolerance: float,
    *,
    positive: str | None = None,
) -> None:
    """Keep the true positive rates of any two groups, by weight, within a tolerance of each other.

    As :func:`demographic_parity`, among the samples of the positive class; a model that prescribes treatments has no
    true class, and raises :class:`NotExpressed`.
    """
    k = _true_class(problem, positive)
    _equal_shares(problem, "equal_opportunity", group, _of_class(problem.data, k), tolerance, k)


def max_false_negatives(problem: Built, most: int, *, positive: str | None = None) -> None:
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
    members = _of_class(problem.data, k)
    hit = _expressions(problem).predicted(k)[members].sum()
    problem.model.add(problem.free_name("max_false_negatives"), hit >= int(members.sum()) - most)


def min_recall(problem: Built, least: float, *, positive: str | None = None) -> None:
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
    problem.model.add(problem.free_name(f"min_recall_{problem.data.label_names[k]}"), row)


def min_precision(problem: Built, least: float, *, positive: str | None = None) -> None:
    """Have at least a share of the samples that are predicted a class belong to it, by their weights: its precision.

    A tree that predicts the class for no sample satisfies this. With :func:`min_recall`: a recall at a precision.
    Parameters and errors as for :func:`min_recall`.
    """
    k = _true_class(problem, positive)
    data, least = problem.data, _rate(least)
    weight = data.weights / data.weights.sum()
    row = (weight * (_of_class(data, k) - least)) @ _expressions(problem).predicted(k) >= 0
    problem.model.add(problem.free_name(f"min_precision_{data.label_names[k]}"), row)


def min_balanced_accuracy(problem: Built, least: float) -> None:
    """Have the mean of the recalls of all classes that have samples at least at a number from 0 to 1.

    Errors as for :func:`min_recall`.
    """
    if problem.data.targets:
        raise NotExpressed(
            f"balanced accuracy is of one target, and model {problem.formulation.name} predicts "
            f"{len(problem.data.targets)} at once; bound the recall of each label of a target by min_recall"
        )
    _true_class(problem, None)
    present = np.unique(problem.data.y.astype(np.int64)).tolist()
    recalls = [_share_of(problem, k) @ _expressions(problem).predicted(k) for k in present]
    total: LinearExpr = sum(recalls[1:], recalls[0])
    problem.model.add(problem.free_name("min_balanced_accuracy"), total >= len(recalls) * _rate(least))


def min_f1(problem: Built, least: float, *, positive: str | None = None) -> None:
    """Have the F1 score of a class at least at a number from 0 to 1.

    With TP samples of the class that are predicted it, P samples of it and Q that are predicted it, all by weight, it
    is :math:`2 TP / (P + Q)`. Parameters and errors as for :func:`min_recall`; :func:`mipforest.rates.best_f1`
    maximises it.
    """
    k = _true_class(problem, positive)
    data, least = problem.data, _rate(least)
    weight = data.weights / data.weights.sum()
    true = _of_class(data, k)
    row = (weight * (2.0 * true - least)) @ _expressions(problem).predicted(k) >= least * float(
        weight[true].sum()
    )
    problem.model.add(problem.free_name(f"min_f1_{data.label_names[k]}"), row)


def _rate(least: float) -> float:
    if not 0 <= least <= 1:
        raise DataError(f"the least rate is {least:g}; give a number from 0 to 1")
    return float(least)


def _share_of(problem: Built, k: int) -> FloatArray:
    """Return the (n,) share of each sample in the weight of class k, 0 for those of other classes."""
    data = problem.data
    members = data.weights * _of_class(data, k)
    if not members.any():
        raise DataError(f"{data.name} has no sample of class {data.label_names[k]}, and none to recall")
    shares: FloatArray = members / members.sum()
    return shares


def limit_label(
    problem: Built, label: str, share: float, *, cost: Sequence[float] | FloatArray | None = None
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


def forbid_label(problem: Built, label: str, samples: Sequence[int] | BoolArray) -> None:
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


def _equal_shares(problem: Built, name: str, group: Any, among: BoolArray, tolerance: float, k: int) -> None:
    """Bound the differences of the shares predicted class k, by group among some samples and by weight."""
    number, n_groups = _groups(problem, group)
    weights = problem.data.weights
    sizes = np.bincount(number[among], weights[among], minlength=n_groups)
    if (sizes == 0).any():
        raise DataError(
            f"{name}: a group has no sample of class {problem.data.label_names[k]}; leave it out of 'group'"
        )
    average = np.zeros((n_groups, problem.data.n))
    rows = np.flatnonzero(among)
    average[number[rows], rows] = weights[rows] / sizes[number[rows]]
    shares: LinearExpr = average @ _expressions(problem).predicted(k)
    first, second = np.triu_indices(n_groups, 1)
    free = problem.free_name(name)
    problem.model.add(f"{free}_above", shares[first] - shares[second] <= tolerance)
    problem.model.add(f"{free}_below", shares[second] - shares[first] <= tolerance)


# ---------------------------------------------------------------------- reading what the user gave


def _expressions(problem: Built) -> TreeExpressions:
    return problem.formulation.expressions(problem.model, problem.instance)


def _named(problem: Built, features: str | Sequence[str]) -> list[IntArray]:
    """Return the features that each name stands for."""
    names = [features] if isinstance(features, str) else features
    return [features_named(problem.data, name) for name in names]


def groups_counted(data: Dataset, names: Sequence[str]) -> dict[str, IntArray]:
    """Return the features of names that are counted, by the first name of each that is not within another."""
    groups = dict[str, IntArray]()
    for name in names:
        own = counted_as_one(data, name)
        if not any(np.isin(own, other).all() for other in groups.values()):
            groups = {key: other for key, other in groups.items() if not np.isin(other, own).all()}
            groups[name] = own
    return groups


def _counted(problem: Built, name: str, names: Sequence[str]) -> VarArray:
    """Return the binaries that say of each name that is counted whether it is used."""
    groups = list(groups_counted(problem.data, names).values())
    if all(len(own) == 1 for own in groups):
        return features_used(problem)[np.concatenate([np.zeros(0, np.int64), *groups])]
    of_columns = [own.tolist() for own in features_of_columns(problem.data)]
    if all(own.tolist() in of_columns for own in groups):
        return columns_used(problem)[np.array([of_columns.index(own.tolist()) for own in groups])]
    return _some_used(problem, problem.free_name(f"{name}_uses"), groups, len(groups))


def _costs(
    problem: Built, cost: Mapping[str, float] | Sequence[float] | float
) -> tuple[list[str], FloatArray]:
    """Return what is paid, and its costs."""
    if isinstance(cost, Mapping):
        names, costs = list(cost), np.array(list(cost.values()), dtype=np.float64)
        paid = groups_counted(problem.data, names)
        if len(paid) < len(names):
            twice = next(name for name in names if name not in paid)
            raise DataError(
                f"{twice!r} is paid twice: {', '.join(names)} name its column more than once; name each column once"
            )
    else:
        names = [column.name for column in problem.data.encoding.columns]
        given = np.asarray(cost, dtype=np.float64)
        if given.shape not in ((), (len(names),)):
            raise DataError(
                f"cost has shape {given.shape}; give one number, {len(names)} numbers, one for each column, or a "
                "mapping by name"
            )
        costs = np.broadcast_to(given, (len(names),)).copy()
    if not (costs >= 0).all():
        raise DataError(f"a feature costs {costs.min():g}; costs are 0 or more")
    return names, costs


def _class(problem: Built, positive: str | None) -> int:
    classes, several = problem.data.label_names, problem.data.targets
    if not classes:
        raise NotExpressed(
            f"model {problem.formulation.name} predicts numbers, and the constraint reads predicted classes; bound "
            "its leaf values or fitted values with problem.model.add"
        )
    if positive is None and several:
        raise DataError(
            f"model {problem.formulation.name} predicts {len(several)} targets at once; name a label of one of them, "
            f"such as {classes[-1]!r}; there are {some_of(classes)}"
        )
    if positive is None:
        return len(classes) - 1
    if positive not in classes:
        raise DataError(
            f"{problem.data.name} has no class {positive!r}{did_you_mean(positive, classes)}; "
            f"it has {some_of(classes) if several else ', '.join(classes)}"
        )
    return classes.index(positive)


def _true_class(problem: Built, positive: str | None) -> int:
    """Return the number of a class that samples truly have, which is no matter of treatments."""
    if problem.formulation.task in ("prescription", "decision"):
        raise NotExpressed(
            f"the leaves of model {problem.formulation.name} prescribe or decide, and the constraint compares "
            "predictions with true classes, which there are none of; demographic_parity and limit_label take "
            "treatments and decisions"
        )
    return _class(problem, positive)


def _of_class(data: Dataset, k: int) -> BoolArray:
    """Return (n,) which training samples truly have a label."""
    of_class: BoolArray = data.label_indicators(data.y)[:, k]
    return of_class


def _groups(problem: Built, group: Any) -> tuple[IntArray, int]:
    values = np.asarray(group)
    if values.shape != (problem.data.n,):
        raise DataError(
            f"group has shape {values.shape}, and there are {problem.data.n} training samples; give one value each"
        )
    known, number = np.unique(values, return_inverse=True)
    if len(known) < 2:
        raise DataError(f"all samples are in group {known[0]!r}; a comparison needs two groups or more")
    return number, len(known)
