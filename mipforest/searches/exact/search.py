"""The exact search from Python: limits, progress, and what was found in units of the objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from time import monotonic
from weakref import WeakKeyDictionary

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import ClusterError
from mipforest.heuristics.thresholds import Thresholds
from mipforest.objectives.leaf_losses import ClassLoss, LabelLoss, LeafLoss, SquaredLoss, TableLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import compile_by
from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.cover_search import COMPILING_SECONDS, LONG, CoverSearch
from mipforest.searches.exact.limited_splits import LimitedPairSearch
from mipforest.searches.exact.pair_counts import MANY, MOST, are_counted, are_faster, unit_of
from mipforest.searches.exact.pair_search import PairSearch
from mipforest.searches.exact.side_bounds import KEPT_DEPTH, Losses, keep_sides, known_sides
from mipforest.searches.exact.slices import CoverSlices, SlicedProblem, SlicedSearch
from mipforest.searches.exact.tables import (
    MAX_BYTES,
    MAX_SHORT_RANKS,
    DistinctRows,
    bins_of,
    bytes_of_ranks,
    fit_bits,
    kind_of,
)
from mipforest.searches.exact.walks import MAX_WEIGHT
from mipforest.searches.numbers import ANY_SIZE, require, require_charges, require_limits
from mipforest.searches.workers import Workers
from mipforest.time_budget import TimeBudget

#: Values closer than this share of the loss of one leaf are the same: far above what rounding makes of sums.
TOLERANCE = 1e-11

#: What bounds are lowered by for the same reason, where losses are not whole numbers.
ROUNDING = 1e-10

#: Share of the gap that the search may use; the rest is for what bounds are lowered by.
GAP_SHARE = 0.99

#: Least and most that the greatest centred target may be, and weights, for walks: products of four sums are doubles.
WALKED_TARGETS = 1e-30, 1e30

#: Most that weights may differ by for walks of the squared loss: less than rounding hides of a sum.
WALKED_WEIGHTS = 1e9

#: Most different weights that are looked at for a unit, most of its parts that the least one has, and the difference
#: between a weight and its multiple, as a share of it, that is rounding.
MOST_WEIGHTS, MOST_PARTS, SAME_WEIGHT = 32, 1 << 15, 1e-15

#: Least depth of a search on a cluster: with fewer levels there are no open nodes to hand out.
LEAST_ON_WORKERS = 3

#: Sets of distinct rows of the same thresholds that are kept.
MAX_KEPT = 4

#: Distinct rows by thresholds, with what else they depend on: compiling and searching ask for them, and problems that
#: differ in constraints alone.
_ROWS: WeakKeyDictionary[Thresholds, list[tuple[Losses, int, DistinctRows, float]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ExactResult:
    """What an exact search has found.

    Attributes
    ----------
    value
        Objective of the best tree.
    bound
        Proven lower bound on the objective of every tree.
    chosen
        (|B|,) threshold of each branch node, -1 where it does not split; ``None`` where nothing is better than the
        tree that was given.
    by_threshold
        (q,) proven lower bound on the objective of every tree with this threshold at the root; where single charges are
        larger than that, no more than twice the value of the best tree without a split.
    nodes
        Pairs of sides of a threshold for which the best split of each side was found.
    ended
        Whether nothing is left to search.
    interrupted
        Whether the caller stopped it.
    lost
        Why a cluster could not go on, empty where none was asked or it could.
    """

    value: float
    bound: float
    chosen: IntArray | None
    by_threshold: FloatArray
    nodes: int
    ended: bool
    interrupted: bool
    lost: str = ""


def search_for(rows: DistinctRows, depth: int) -> type[CoverSearch]:
    """Return the search that is the faster one for some rows and levels."""
    return PairSearch if are_faster(rows, depth) else CoverSearch


def _search_within(
    rows: DistinctRows, depth: int, most_splits: int | None, box: Box | None = None
) -> Callable[..., CoverSearch]:
    """Return the search for some rows and levels, or the one that keeps a limit on splits, or leaves with labels."""
    if box is not None and box.leaf is not None:
        return CoverSearch
    if most_splits is None:
        return search_for(rows, depth)
    return partial(LimitedPairSearch, most_splits=most_splits)


def takes_leaves(problem: UnivariateProblem, depth: int) -> bool:
    """Return whether :func:`exact_search` takes boxes with leaves whose label is given (:attr:`Box.leaf`)."""
    return depth > 1 and rows_of(in_whole_units(problem))[0].is_of_two


def takes_most_splits(problem: UnivariateProblem, depth: int, box: Box | None = None) -> bool:
    """Return whether :func:`exact_search` takes a limit on the number of splits for some trees."""
    if depth not in LimitedPairSearch.levels or (box is not None and box.group.max(initial=-1) >= 0):
        return False
    rows = rows_of(in_whole_units(problem))[0]
    return are_counted(rows) and are_faster(rows, depth)


def is_slowed_by_leaves(problem: UnivariateProblem, depth: int) -> bool:
    """Return whether the search without such leaves is by sums over pairs of thresholds, which do not take them."""
    return search_for(rows_of(in_whole_units(problem))[0], depth) is PairSearch


def compile_kernels(
    budget: TimeBudget,
    problem: UnivariateProblem | None = None,
    depth: int = 3,
    *,
    most_splits: int | None = None,
    box: Box | None = None,
) -> float:
    """Load what a search of a problem runs, or compile it; that of errors and squares where no problem is given.

    See :func:`~mipforest.searches.compile_by`.
    """

    def run() -> None:
        real = None if problem is None else rows_of(in_whole_units(problem))[0]
        for loss in (ClassLoss(), SquaredLoss()) if problem is None else (problem.loss,):
            is_long = real is not None and real.rank.size >= LONG
            rows = tiny_rows(loss, real)
            for levels in (2,) if depth == 2 else (3,) if depth > 2 else ():
                kind = CoverSearch if real is None else _search_within(real, levels, most_splits, box)
                # Deeper, sides of few rows have no bins.
                for some in (rows, replace(rows, n_bins=0)) if rows.n_bins and depth > 3 else (rows,):
                    search = kind(some, levels, cost=0.0, tolerance=0.0, incumbent=np.inf)
                    search.compile(is_long=is_long, is_short=not is_long or depth > 3)
            if depth == 1 and not rows.loss.has_sums:
                rows.splits(0.0)

    return compile_by(run, budget, "exact-search", COMPILING_SECONDS)


def tiny_rows(loss: LeafLoss, real: DistinctRows | None) -> DistinctRows:
    """Return four rows for which the same is compiled as for the rows of a problem, if there is one."""
    labels = isinstance(loss, LabelLoss)
    X, y = np.arange(4.0)[:, None], np.array([0, 1, 0, 1]) + (not labels)
    tiny = Thresholds(
        X=X,
        group=np.arange(4),
        distinct=(X[:, 0],),
        rank=np.arange(4, dtype=np.int32)[None],
        feature=np.zeros(3, np.int64),
        value=np.array([0.5, 1.5, 2.5]),
        first=np.array([0, 3]),
        names=("x",),
    )
    rows, _ = rows_of(UnivariateProblem(thresholds=tiny, y=y, loss=ClassLoss() if labels else loss))
    if real is None:
        return rows
    if labels and not real.of_classes:
        # Whole numbers are summed as such, where statistics are many.
        V, part = real.value.shape[1], 0.0 if (real.value == np.rint(real.value)).all() else 0.5
        value = np.add.outer(np.arange(4.0), np.arange(V)) % 2 + part
        rows = replace(rows, loss=real.loss, of_classes=False, value=value)
    if real.of_classes and real.n_classes > 2:
        # Sums of more than three are of whole numbers, where weights are.
        weights = np.array([1.0, 1.0 if real.is_whole else 0.5])
        rows = replace(rows, n_classes=min(4, real.n_classes), value=rows.value * weights)
    if real.unit is not None and unit_of(real).dtype.kind == "f":
        unit = float(MANY) if real.is_whole else 0.5
        label = rows.value[:, :1]
        rows = replace(
            rows, value=np.hstack([label, np.full_like(label, unit)]), unit=np.full(rows.n_classes, unit)
        )
    # What is compiled depends on the types of weights and ranks, and on leaf sizes.
    most = int(real.n_values.max(initial=1))
    n_values = np.full(1, most) if most > MAX_SHORT_RANKS else rows.n_values
    return replace(
        rows,
        kind=real.kind,
        is_gathered=real.is_gathered,
        n_bins=min(2, real.n_bins),
        is_counted=real.is_counted,
        N_min=min(2, real.N_min),
        n_values=n_values,
    )


def exact_search(
    problem: UnivariateProblem,
    depth: int,
    *,
    best: float = np.inf,
    gap: float = 0.0,
    most_nodes: int | None = None,
    deadline: float = np.inf,
    on_progress: Callable[[float, float, int], bool | None] | None = None,
    complete: bool = False,
    threads: int | None = 1,
    dask: str | None = None,
    budget: TimeBudget | None = None,
    box: Box | None = None,
    most_splits: int | None = None,
) -> ExactResult:
    """Search for the best tree of univariate splits.

    Parameters
    ----------
    problem
        What trees are charged.
    depth
        Most splits on a path, at least 1.
    best
        Objective of a tree that is known already.
    gap
        Relative gap within which the best tree will do.
    most_nodes
        Pairs of sides to evaluate; the outcome depends on nothing else then.
    deadline
        On the clock of :func:`time.monotonic`.
    on_progress
        Called now and then with objective, bound and nodes; returning ``True`` stops the search.
    complete
        Whether to evaluate every threshold of the root, also those that cannot be best: exact values of
        ``by_threshold`` at depth 1 and, in time, at depth 2.
    threads
        Thresholds of the root that are evaluated at a time, ``None`` for one on each processor, from depth 3 on. The
        outcome is the same for any number, unless the search is stopped. On a cluster, those of each slice, one unless
        given.
    dask, budget
        Address of the scheduler of a Dask cluster whose workers search from depth :data:`LEAST_ON_WORKERS` on, without
        ``most_nodes``, and what their preparation is excluded from. Value and bound are the same; of equally good
        trees it may be another one.
    box
        Trees to search among, settled: up to depth 4; with leaves where :func:`takes_leaves` says so, on this machine
        alone. Without it, all. Where it has no tree, the bound is infinite. At depth 3 of a box, or of some features,
        what searches of more trees have proven before is taken over: value and bound are the same; of equally good
        trees it may be another one.
    most_splits
        Most splits of a tree, where :func:`takes_most_splits` says so; a cluster is not asked then.

    Raises
    ------
    ClusterError
        If the cluster cannot be used.
    DataValueError
        If a number is NaN, infinite where it may not be, or too large to compute with.
    """
    require_charges("exact-search", problem, problem.thresholds.X)
    require("exact-search", "thresholds", problem.thresholds.value, least=-ANY_SIZE, most=ANY_SIZE)
    require_limits("exact-search", best=best, gap=gap, deadline=deadline)
    given, problem = problem, in_whole_units(problem)
    rows, base = rows_of(problem)
    unit, thresholds = problem.unit, problem.thresholds
    # The loss of one leaf, which rounding errors are shares of, may be far from the unit.
    is_sum = not rows.predicts_labels and rows.loss.has_sums
    slack = max(1.0, float(np.abs(rows.value[:, -1]).sum()) / unit) if is_sum else 1.0
    if rows.is_whole and problem.split_cost == 0 and problem is given:
        slack = 0.0

    def lowered(bound: FloatArray) -> FloatArray:
        """Return bounds that rounding errors cannot have raised, in units of the objective."""
        return np.maximum(0.0, (bound + base) / unit - slack * ROUNDING)

    cost, tolerance, lost = problem.split_cost, slack * TOLERANCE * unit, ""
    has_leaves = box is not None and box.leaf is not None
    on_workers = dask is not None and depth >= LEAST_ON_WORKERS and most_nodes is None
    on_workers = on_workers and most_splits is None and not has_leaves
    kind = SlicedSearch if on_workers else _search_within(rows, depth, most_splits, box)
    known = best * unit - base
    # Of all trees, what is found does not depend on what was searched before.
    is_part = box is not None or thresholds.whole is not None
    sides = known_sides(problem, base, tolerance, box) if depth == KEPT_DEPTH and is_part else {}
    found: CoverSearch = kind(
        rows, depth, cost=cost, tolerance=tolerance, incumbent=known, box=box, known_sides=sides
    )

    def should_stop() -> bool:
        if on_progress is None:
            return False
        value = (min(found.incumbent, found.found_since) + base) / unit
        return bool(on_progress(value, float(lowered(np.asarray(found.bound))), found.pairs))

    if depth == 1 or (complete and depth == 2):
        by_threshold = found.each_threshold(deadline=deadline, should_stop=should_stop)
        ended, interrupted = not found.is_stopped, found.interrupted
    elif dask is not None and isinstance(found, SlicedSearch):
        stated = SlicedProblem(rows, cost, tolerance, box, tiny_rows(problem.loss, rows))
        with Workers(dask, CoverSlices, stated, budget or TimeBudget(), deadline - monotonic()) as workers:
            try:
                ended, interrupted = found.hand_out(
                    workers, gap=GAP_SHARE * gap, threads=threads or 1, should_stop=should_stop
                )
            except ClusterError as error:
                ended, interrupted, lost = False, False, str(error)
        by_threshold = found.by_threshold(thresholds.first)
    else:
        ended, interrupted = found.run(
            gap=GAP_SHARE * gap,
            deadline=deadline,
            threads=threads,
            should_stop=should_stop,
            max_pairs=most_nodes,
        )
        by_threshold = found.by_threshold(thresholds.first)
    if depth == KEPT_DEPTH and not has_leaves:
        keep_sides(problem, base, box, found.evaluated)
    chosen = None
    if found.splits is not None:
        nodes = [-1 if f < 0 else thresholds.first[f] + t - 1 for f, t in found.tree()]
        chosen = _in_the_middle(np.array(nodes), thresholds, depth)
    return ExactResult(
        value=best if chosen is None else (found.incumbent + base) / unit,
        bound=float(lowered(np.asarray(found.bound))),
        chosen=chosen,
        by_threshold=lowered(by_threshold),
        nodes=found.pairs,
        ended=ended,
        interrupted=interrupted,
        lost=lost,
    )


def rows_of(problem: UnivariateProblem) -> tuple[DistinctRows, float]:
    """Return the distinct rows of a problem, and what every tree loses beside them."""
    known, losses = _ROWS.setdefault(problem.thresholds, []), Losses.of(problem)
    for others, N_min, rows, base in known:
        if N_min == problem.N_min and losses.are(others):
            return rows, base
    rows, base = distinct_rows(_capped(problem))
    known.append((losses, problem.N_min, rows, base))
    del known[:-MAX_KEPT]
    return rows, base


def in_whole_units(problem: UnivariateProblem) -> UnivariateProblem:
    """Return a problem whose weights are multiples of a unit, in this unit; the problem itself where they are not.

    Errors of whole weights are added up exactly, and by vectors of more numbers. Weights of classes as of
    ``class_weight="balanced"`` are such multiples, but for what their own rounding makes of them.
    """
    if problem.weight is None or not problem.counts_errors:
        return problem
    weight = problem.weights
    if len(np.unique(weight[:1000])) > MOST_WEIGHTS:
        return problem
    values, number = np.unique(weight, return_inverse=True)
    if len(values) > MOST_WEIGHTS or values[0] <= 0.0 or (values == np.rint(values)).all():
        return problem
    shares = [Fraction(share).limit_denominator(MOST_PARTS) for share in (values / values[0]).tolist()]
    parts = math.lcm(*(share.denominator for share in shares))
    times = np.array([float(share * parts) for share in shares])
    unit = float(values[0]) / parts
    if (np.abs(times * unit - values) > SAME_WEIGHT * values).any() or times[number].sum() > MAX_WEIGHT:
        return problem
    cost, whole = problem.split_cost / unit, problem.unit / unit
    return replace(problem, weight=times[number], split_cost=cost, unit=whole)


def _capped(problem: UnivariateProblem) -> UnivariateProblem:
    """Return a problem in which no sample is charged more than twice what the best tree without a split pays in all.

    A tree that pays such a charge is worse than that one, with the charge or with what is left of it; all others have
    the same value. So nothing is lost but charges that can only be avoided, beside which sums would be rounded.
    """
    if not problem.predicts_class:
        return problem
    charged = problem.statistics
    most = 2.0 * float(charged.sum(axis=0).min())
    if not 0.0 < most < charged.max(initial=0.0):
        return problem
    if problem.counts_errors:
        return replace(problem, weight=np.minimum(problem.weights, most))
    return replace(problem, weight=None, loss=TableLoss(np.minimum(charged, most)))


def distinct_rows(problem: UnivariateProblem, *, merged: bool = True) -> tuple[DistinctRows, float]:
    """Return the distinct rows of a problem, and what every tree loses beside them.

    ``merged`` leaves out rows that lose the same under any prediction, where leaves may be of any size.
    """
    thresholds, y = problem.thresholds, np.asarray(problem.y, dtype=np.float64)
    weight, base, loss, K = problem.weights, 0.0, problem.loss, 0
    charged = problem.statistics if isinstance(loss, LabelLoss) else np.zeros((len(y), 0))
    unit = _class_weights(problem, charged) if merged else None
    # Samples of a leaf are counted as errors are, where each row has one class.
    is_apart = unit is not None or (merged and problem.N_min > 1 and _is_counted(problem))
    target, of, row = numbered_rows(problem, charged.argmin(axis=1) if is_apart else None)
    size = np.bincount(row)
    shifted, two, of_classes = np.zeros(len(y)), False, False
    if isinstance(loss, LabelLoss):
        K = charged.shape[1]
        two = problem.predicts_class and K == 2
        of_classes = two or problem.counts_errors
        losses = np.zeros((len(of), K))
        np.add.at(losses, row, charged)
        if two or not of_classes:
            # What the best class of a row loses is lost by every tree.
            blocks = losses.reshape(len(of), loss.n_labels, K // loss.n_labels)
            least = blocks.min(axis=2, keepdims=True)
            base = float(least.sum())
            losses = (blocks - least).reshape(losses.shape)
        value = losses
        if two:
            value = np.column_stack([losses[:, 0] > losses[:, 1], np.abs(losses[:, 0] - losses[:, 1])])
        elif of_classes:
            value = np.column_stack([target[of], np.bincount(row, weight)])
    else:
        shifted = loss.centred(y, weight)
        value = np.column_stack([np.bincount(row, one) for one in loss.statistics(shifted, weight).T])
    if merged and two and problem.N_min == 1:
        chosen = value[:, 1] > 0.0
        value, size, of = value[chosen], size[chosen], of[chosen]
    n_values = np.diff(thresholds.first) + 1
    rank = np.ascontiguousarray(thresholds.rank[:, thresholds.group[of]])
    order = np.empty_like(rank)
    for f, ranks in enumerate(rank):
        # Ranks of 16 bits are sorted in a time that grows with their number alone.
        short = ranks.astype(np.uint16) if n_values[f] <= MAX_SHORT_RANKS else ranks
        order[f] = short.argsort(kind="stable")
    kind: np.dtype[np.generic] | None = None
    fits = bytes_of_ranks(len(of), len(rank), int(n_values.max(initial=1))) <= MAX_BYTES
    if of_classes:
        kind = kind_of(len(of), value[:, 1])
        if problem.N_min > 1:  # vectors of the same type count samples
            kind = np.promote_types(kind, kind_of(len(of), size.astype(np.float64)))
    elif isinstance(loss, SquaredLoss) and y.ndim == 1 and are_walked(weight, shifted):
        kind = np.dtype(np.float64) if fits else None
    elif not loss.has_sums:
        order = np.vstack([order, np.argsort(shifted[of], kind="stable").astype(np.int32)])
    is_whole = kind is not None and kind.kind == "i"
    counted = of_classes and not fits and is_whole and fit_bits(value[:, 1])
    rows = DistinctRows(
        loss=loss,
        rank=rank,
        order=order,
        n_values=n_values.astype(np.int64),
        value=np.ascontiguousarray(value, dtype=np.float64),
        n_classes=K,
        target=np.zeros(len(of)) if loss.has_sums else shifted[of],
        size=size.astype(np.int64),
        N_min=problem.N_min,
        kind=kind,
        of_classes=of_classes,
        is_gathered=of_classes and not fits and not counted,
        is_counted=counted,
        unit=unit,
    )
    return rows if rows.is_gathered or rows.is_counted else replace(rows, n_bins=bins_of(rows, len(of))), base


def _is_counted(problem: UnivariateProblem) -> bool:
    """Return whether errors are counted, of samples without weights, and thresholds are few."""
    few = len(problem.thresholds) <= MOST
    return few and problem.predicts_class and problem.counts_errors and problem.weight is None


def _class_weights(problem: UnivariateProblem, charged: FloatArray) -> FloatArray | None:
    """Return what a sample of each class (K,) loses under a wrong label, where all of a class lose the same.

    ``charged`` is (n, K) what each label costs.

    ``None`` where they differ or are 1, or thresholds are too many to count their pairs.
    """
    if not problem.predicts_class or len(problem.thresholds) > MOST:
        return None
    K = charged.shape[1]
    if K > 2 and not problem.counts_errors:
        return None
    label = np.asarray(charged.argmin(axis=1))
    weight = charged.max(axis=1) - charged.min(axis=1)
    unit = np.array([weight[label == k].max(initial=0.0) for k in range(K)])
    is_alike = ((weight == unit[label]) | (weight == 0.0)).all()
    return unit if is_alike and unit.all() and (unit != 1.0).any() else None


def numbered_rows(
    problem: UnivariateProblem, label: IntArray | None = None
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the distinct rows of the samples: those that are equal in features, and in what is lost, are one.

    ``label`` (n,) keeps samples of two classes apart, too, where a row is to have one class.

    Returns
    -------
    target
        (n,) number of what tells samples of equal features apart.
    of
        (m,) a sample of each row.
    row
        (n,) row of each sample.
    """
    y, group = np.asarray(problem.y), problem.thresholds.group
    target: IntArray = np.zeros(len(y), np.int64)
    if not problem.loss.has_sums:
        target = np.unique(y, return_inverse=True)[1]
    elif label is not None:
        target = label
    elif problem.counts_errors and y.max(initial=0) > 1:
        target = y.astype(np.int64)
    _, of, row = np.unique(
        group * (int(target.max(initial=0)) + 1) + target, return_index=True, return_inverse=True
    )
    return target, of, row


def are_walked(weight: FloatArray, shifted: FloatArray) -> bool:
    """Return whether products of sums of these weights and centred targets are doubles."""
    (least, most), spread = WALKED_TARGETS, float(np.abs(shifted).max(initial=0.0))
    light, heavy = weight.min(initial=1.0), weight.max(initial=1.0)
    return bool(least < spread < most and least < light and heavy < min(most, WALKED_WEIGHTS * light))


def _in_the_middle(chosen: IntArray, thresholds: Thresholds, depth: int) -> IntArray:
    """Move thresholds that lie just above the left side to the middle between both sides of their node."""
    chosen = chosen.copy()
    here = {0: np.arange(len(thresholds.X))}
    for t in range(2**depth - 1):
        members, k = here.pop(t, None), chosen[t]
        if members is None or k < 0:
            continue
        j = thresholds.feature[k]
        x = thresholds.X[members, j]
        right = x >= thresholds.value[k]
        if right.all() or not right.any():  # a node that has to split
            here[2 * t + 1], here[2 * t + 2] = members[~right], members[right]
            continue
        middle = x[~right].max() + (x[right].min() - x[~right].max()) / 2
        own = thresholds.value[thresholds.of(j)]
        between = np.flatnonzero((own > x[~right].max()) & (own <= x[right].min()))
        chosen[t] = thresholds.first[j] + between[np.abs(own[between] - middle).argmin()]
        here[2 * t + 1], here[2 * t + 2] = members[~right], members[right]
    return chosen
