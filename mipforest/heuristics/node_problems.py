r"""The node problems of a tree of linear classifiers, trees put together from their solutions, and their numbers.

The best split of one node is found exactly, with a smooth loss, or with few features:

.. math::

    \min_{w, b}\; \Omega(w) + C \sum_i n_i f(y_i (w^\top x_i + b))

with sample weights n, a norm and a convex piecewise-linear loss. For MARGOT these are half the squared Euclidean norm
and the hinge, a soft-margin support vector machine. A node above the last level also has to keep its samples' sides:
``w.x_i + b >= 0`` to the right, ``w.x_i + b <= -epsilon`` to the left (D'Onofrio et al. 2024, section 3).

**Many samples.** The quadratic solver takes seconds for some thousand samples, a linear programme over a minute for
10,000. :func:`many_sample_split` is exact, with a proven bound, and linear in n: for 150,000 samples of 20 features 0.4
s with half the squared Euclidean norm, 4 s with the l1 norm (:mod:`mipforest.heuristics.node_solver`). For the l1 norm
splits are proposed by :func:`smoothed_split`, with a smooth loss in the place of the piecewise-linear one: 0.05 s for
10,000 samples of 20 features, with a value within 0.1% of the best one.

**Few features.** Hard: at most ``budget`` non-zero weights. Soft: the objective pays
``alpha max(0, nonzeros - budget)`` (D'Onofrio et al. 2024, section 4). :func:`search_features` ranks features by
recursive elimination (Guyon et al. 2002: drop the smallest weight, refit) and then exchanges single features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.certificates import digest_of_samples
from mipforest.data import Dataset
from mipforest.errors import SolverError
from mipforest.heuristics.node_solver import Halted, hinges_of, never, solve_node
from mipforest.model import Model
from mipforest.objectives.losses import (
    HALF_SQUARED_L2,
    HINGE,
    L1,
    NO_NORM,
    BranchLoss,
    Norm,
    PiecewiseLinearLoss,
)
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.clarabel import ACCEPTED_GAP, MAX_ENTRIES_HERE, native_settings
from mipforest.solvers.solution import Solution, Status
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import (
    INTERIOR_RESIDUE,
    SIDE_TOLERANCE,
    clear_residue,
    into_a_gap,
    keep_sides,
)

#: An exchange of features lowers the value by this share at least: rounding alone could swap them for ever.
LEAST_GAIN = 1e-9

#: Width over which the corners of a loss are rounded, in margins: the value is within 0.1% of the best (at 0.2: 0.5%).
SMOOTHING = 0.05

#: Most iterations of the smooth problem: about a second for 10,000 samples of 20 features.
SMOOTH_ITERATIONS = 200

#: Slope of the objective at which it ends; that of the l1 norm is 1.
SMOOTH_SLOPE = 1e-3


#: By how much scores of the least split are inside their sides: what counts as on a side.
CLEARANCE = SIDE_TOLERANCE


@dataclass(frozen=True, eq=False)
class Split:
    """A hyperplane and its share of the objective.

    Attributes
    ----------
    w, b
        (p,) weights and the bias.
    value
        The charge for the weights, plus C times the loss (plus a penalty on features, where the node has one).
    """

    w: FloatArray
    b: float
    value: float

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the (n,) scores ``w.x + b``."""
        return X @ self.w + self.b


def margin_split(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    *,
    weight: FloatArray | None = None,
    right: BoolArray | None = None,
    kept: BoolArray | None = None,
    epsilon: float = 0.0,
    features: IntArray | None = None,
    bias_if_empty: float = 1.0,
    loss: PiecewiseLinearLoss = HINGE,
    norm: Norm = HALF_SQUARED_L2,
    time_limit: float | None = None,
) -> Split | None:
    """Solve a node's problem exactly.

    Parameters
    ----------
    X, sign
        (n, p) samples that reach the node, and their labels, -1 or +1.
    C
        Penalty of the loss, above 0; with given sides also 0.
    weight
        (n,) weights of the samples' losses; 1 unless given.
    right
        (n,) side each sample must keep; ``None`` where sides are free (the last level, or a plain SVM).
    kept
        (n,) which samples must keep that side; all unless given.
    epsilon
        Gap that stands for the strict inequality on the left.
    features
        Features the split may use; all when left out.
    bias_if_empty
        The bias (+1 or -1) of a node that no sample reaches.
    loss, norm
        What the objective charges for margins and for weights.
    time_limit
        Seconds.

    Returns
    -------
    The best split, or ``None`` if no hyperplane keeps the sides, none was found in time, or the solver failed.
    """
    kept = np.full(len(sign), right is not None) if kept is None else kept
    sides = None if right is None else np.where(kept, right, sign > 0)
    constant = constant_split(sign, sides, X.shape[1], bias_if_empty, loss.flat_from)
    if constant is not None:
        return constant
    if C == 0 and right is not None and kept.any():
        X, right = X[kept], right[kept]
        return least_norm_split(X, right, epsilon, norm, features, loss.flat_from, time_limit)
    used = np.arange(X.shape[1]) if features is None else features
    found, is_settled = None, False
    if norm is HALF_SQUARED_L2:
        found, is_settled = _small_split(X[:, used], sign, C, weight, right, kept, epsilon, loss, time_limit)
    if not is_settled:
        found = _declared_split(X[:, used], sign, C, weight, right, kept, epsilon, loss, norm, time_limit)
    if found is None:
        return None
    weights, bias = _weights(found[0], X, used), found[1]
    if right is not None and kept.any():
        bias = keep_sides(X[kept], weights, right[kept], bias)
    losses = weighted_sum(loss.values(X @ weights + bias, sign), weight)
    return Split(weights, bias, norm.value(weights) + C * losses)


def _declared_split(
    X: FloatArray, sign: FloatArray, C: float, weight: FloatArray | None, right: BoolArray | None,
    kept: BoolArray, epsilon: float, loss: PiecewiseLinearLoss, norm: Norm, time_limit: float | None,
) -> tuple[FloatArray, float] | None:  # fmt: skip
    """Solve the problem of a node as a model; ``None`` where it has no solution, or none was found in time."""
    m = Model("node")
    w = m.continuous("w", X.shape[1])
    b = m.continuous("b")
    xi = m.nonnegative("xi", len(sign))
    score = X @ w + b
    m.minimize(norm.declare(m, w) + C * (xi.sum() if weight is None else weight @ xi))
    for k, (intercept, slope) in enumerate(zip(loss.intercepts, loss.slopes, strict=True)):
        m.add(f"line_{k}", -slope * sign * score >= intercept - xi)
    if right is not None:
        m.add("right", score[kept & right] >= 0)
        m.add("left", score[kept & ~right] <= -epsilon)
    solution = _solved(m, time_limit)
    return None if solution is None else (solution["w"], float(solution["b"]))


def _small_split(
    X: FloatArray, sign: FloatArray, C: float, weight: FloatArray | None, right: BoolArray | None,
    kept: BoolArray, epsilon: float, loss: PiecewiseLinearLoss, time_limit: float | None,
) -> tuple[tuple[FloatArray, float] | None, bool]:  # fmt: skip
    r"""Solve the problem of a node with half the squared Euclidean norm, written down as Clarabel takes it.

    The columns are (w, b, xi). With the slope :math:`s_k` and the intercept :math:`c_k` of line k, rows are

    .. math::

        w^\top x_i + b \le -\epsilon \;\; (i \text{ left}), \quad
        s_k y_i (w^\top x_i + b) - \xi_i \le -c_k, \quad
        -(w^\top x_i + b) \le 0 \;\; (i \text{ right}), \quad -\xi_i \le 0.

    A start solves hundreds of such problems, and declaring a model of some dozen samples takes ten times as long as
    solving it.

    Returns
    -------
    found
        The weights and the bias, optimal within :data:`ACCEPTED_GAP`; ``None`` where there are none, or the time ended.
    is_settled
        Whether that is so; not where the problem is large, or has numbers beyond the solver's arithmetic.
    """
    import clarabel

    n, p = X.shape
    K, none = len(loss.slopes), np.zeros(n, dtype=bool)
    left, right = (none, none) if right is None else (kept & ~right, kept & right)
    n_rows = int(left.sum() + right.sum()) + (K + 1) * n
    if n_rows * (p + 2) > MAX_ENTRIES_HERE:
        return None, False
    ones = np.column_stack([X, np.ones(n)])
    lines = [slope * sign[:, None] * ones for slope in loss.slopes]
    of_score = np.vstack([ones[left], *lines, -ones[right], np.zeros((n, p + 1))])
    column, row = np.nonzero(of_score.T)
    # Each xi has an entry in its row of each line, and in its bound.
    starts = np.append(left.sum() + n * np.arange(K), n_rows - n)
    of_xi = (np.arange(n)[:, None] + starts).ravel()
    ends = np.concatenate([np.bincount(column, minlength=p + 1), np.full(n, K + 1)]).cumsum()
    N = p + 1 + n
    G = sparse.csc_matrix(
        (
            np.append(of_score[row, column], np.full(len(of_xi), -1.0)),
            np.append(row, of_xi),
            np.append(0, ends),
        ),
        shape=(n_rows, N),
    )
    h = np.zeros(n_rows)
    h[: left.sum()] = -epsilon
    h[left.sum() : left.sum() + K * n] = -np.repeat(loss.intercepts, n)
    P = sparse.csc_matrix((np.ones(p), np.arange(p), np.minimum(np.arange(N + 1), p)), shape=(N, N))
    q = np.zeros(N)
    q[p + 1 :] = C if weight is None else C * weight
    if not (np.isfinite(of_score).all() and np.isfinite(q).all()):
        return None, False
    settings = native_settings(SolveSettings(time_limit=time_limit))
    cones = [clarabel.NonnegativeConeT(n_rows)]
    solution = clarabel.DefaultSolver(P, q, G, h, cones, settings).solve()
    if str(solution.status) in ("PrimalInfeasible", "MaxTime"):
        return None, True
    v = np.array(solution.x)
    v[p + 1 :] = np.maximum(v[p + 1 :], 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        objective = 0.5 * float(v[:p] @ v[:p]) + float(q @ v)
        is_optimal = float((G @ v - h).max()) <= FEASIBILITY_TOLERANCE and abs(
            objective - solution.obj_val_dual
        ) <= ACCEPTED_GAP * max(1.0, abs(objective))
    return ((v[:p], float(v[p])), True) if is_optimal else (None, False)


def _solved(m: Model, time_limit: float | None) -> Solution | None:
    """Return the solution of a node's model, ``None`` where there is none, or none was found in time."""
    form = m.matrix()
    solver = "clarabel" if form.is_quadratic else "highs"
    try:
        solution = get_solver(solver).solve(form, SolveSettings(time_limit=time_limit))
    except SolverError:  # a penalty beyond the solver's arithmetic
        return None
    # LIMIT says that numbers are too small for a proof; values are those of the definition.
    found = solution.x is not None and solution.status in (Status.OPTIMAL, Status.LIMIT)
    return solution if found else None


def _weights(found: FloatArray, X: FloatArray, used: IntArray) -> FloatArray:
    """Return the (p,) weights of a solution, cleared as those of decoded trees, which use the same features then."""
    weights = np.zeros((1, X.shape[1]))
    weights[0, used] = found
    cleared: FloatArray = clear_residue(weights, X)[0]
    return cleared


def least_norm_split(
    X: FloatArray,
    right: BoolArray,
    epsilon: float,
    norm: Norm,
    features: IntArray | None = None,
    bias_of_one_side: float = 1.0,
    time_limit: float | None = None,
) -> Split | None:
    """Return the split with the least norm that keeps sides: the problem of a node that no loss is charged at.

    The weights are as small as the gap, so the problem is solved for a gap of 1, within whose tolerances a solver is
    exact, and scaled. Scores are :data:`CLEARANCE` inside their sides.

    Parameters
    ----------
    X, right, epsilon, norm, features, time_limit
        As for :func:`margin_split`; some sample is given.
    bias_of_one_side
        The bias, or minus the bias, of a node that sends all samples one way.

    Returns
    -------
    The split, or ``None`` if no hyperplane keeps the sides, or none was found in time.
    """
    if (right == right[0]).all():
        return Split(np.zeros(X.shape[1]), bias_of_one_side if right[0] else -bias_of_one_side, 0.0)
    used = np.arange(X.shape[1]) if features is None else features
    m = Model("sides")
    w, b = m.continuous("w", len(used)), m.continuous("b")
    score = X[:, used] @ w + b
    m.minimize(norm.declare(m, w))
    m.add("right", score[right] >= 0)
    m.add("left", score[~right] <= -1)
    solution = _solved(m, time_limit)
    if solution is None:
        return None
    weights = _weights(solution["w"], X, used)
    scores = X @ weights
    low, high = float(scores[~right].max()), float(scores[right].min())
    if not high > low:
        return None
    # The gap between the sides, which a solver's tolerance has changed, is made what it is to be.
    scale = (epsilon + 2.0 * CLEARANCE) / (high - low)
    weights *= scale
    return Split(weights, CLEARANCE - scale * high, norm.value(weights))


def weighted_sum(losses: FloatArray, weight: FloatArray | None) -> float:
    """Return the sum of losses (n,), each times its sample's weight (1 unless given)."""
    return float((losses if weight is None else weight * losses).sum())


def constant_split(
    sign: FloatArray, right: BoolArray | None, p: int, bias_if_empty: float, flat_from: float
) -> Split | None:
    """Return ``w = 0`` and a bias free of cost, where one class alone reaches the node (and goes its way)."""
    if len(sign) == 0:
        return Split(np.zeros(p), bias_if_empty, 0.0)
    if (sign == sign[0]).all() and (right is None or (right == (sign > 0)).all()):
        return Split(np.zeros(p), flat_from * float(sign[0]), 0.0)
    return None


def smoothed_split(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    *,
    weight: FloatArray | None = None,
    features: IntArray | None = None,
    bias_if_empty: float = 1.0,
    loss: PiecewiseLinearLoss = HINGE,
    norm: Norm = HALF_SQUARED_L2,
) -> Split:
    r"""Solve a node's problem, sides free, with a smooth loss.

    The largest of the lines becomes :math:`\mu \log \sum_k e^{(a_k + d_k v) / \mu}`, which L-BFGS-B minimises.

    Parameters
    ----------
    X, sign, C, weight, features, bias_if_empty, loss, norm
        As for :func:`margin_split`.
    """
    constant = constant_split(sign, None, X.shape[1], bias_if_empty, loss.flat_from)
    if constant is not None:
        return constant
    used = np.arange(X.shape[1]) if features is None else features
    intercepts, slopes = np.append(loss.intercepts, 0.0), np.append(loss.slopes, 0.0)

    def softened(margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        lines = intercepts[:, None] + slopes[:, None] * margins
        largest = lines.max(axis=0)
        weights = np.exp((lines - largest) / SMOOTHING)
        sums = weights.sum(axis=0)
        return largest + SMOOTHING * np.log(sums), slopes @ (weights / sums)

    total = C * (len(sign) if weight is None else float(weight.sum()))
    chosen, limits = X[:, used], {"maxiter": SMOOTH_ITERATIONS, "gtol": SMOOTH_SLOPE / total}
    w, b = smooth_minimum(chosen, sign, C, weight, norm, softened, limits)
    value = norm.value(w) + C * weighted_sum(loss.values(chosen @ w + b, sign), weight)
    spread = np.zeros(X.shape[1])
    spread[used] = w
    return Split(spread, b, value)


def smooth_minimum(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    weight: FloatArray | None,
    norm: Norm,
    loss: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    limits: Mapping[str, float],
) -> tuple[FloatArray, float]:
    """Return the weights (p,) and the bias that minimise a norm plus C times a smooth loss, by L-BFGS-B.

    Weights are the difference of two nonnegative parts, so that an l1 norm is linear.

    Parameters
    ----------
    X, sign, C, weight, norm
        As for :func:`margin_split`.
    loss
        Returns the (n,) losses at some margins (n,), and their slopes.
    limits
        Most iterations (``maxiter``), and the slope of the objective, relative to C times the samples' weight, at which
        to end (``gtol``).
    """
    n, p = np.ones(len(sign)) if weight is None else weight, X.shape[1]
    total = C * float(n.sum())

    def objective(parts: FloatArray) -> tuple[float, FloatArray]:
        losses, slopes = loss(sign * (X @ (parts[:p] - parts[p : 2 * p]) + parts[-1]))
        pull = C * n * sign * slopes
        slope = X.T @ pull
        charge, charge_slopes = norm.of_parts(parts[:-1])
        gradient = np.concatenate([slope, -slope, [pull.sum()]])
        gradient[:-1] += charge_slopes
        return (C * weighted_sum(losses, n) + charge) / total, gradient / total

    from scipy.optimize import minimize  # late: slow to import, and most runs do without

    bounds = [(0.0, None)] * (2 * p) + [(None, None)]
    options = {"ftol": 0.0, "maxfun": 2 * limits["maxiter"], **limits}
    found = minimize(
        objective, np.zeros(2 * p + 1), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return found.x[:p] - found.x[p : 2 * p], float(found.x[-1])


def many_sample_split(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    *,
    weight: FloatArray | None = None,
    features: IntArray | None = None,
    bias_if_empty: float = 1.0,
    loss: PiecewiseLinearLoss = HINGE,
    norm: Norm = HALF_SQUARED_L2,
    halted: Halted = never,
) -> tuple[Split, float]:
    """Solve a node's problem of many samples, sides free.

    Parameters
    ----------
    X, sign, C, weight, features, bias_if_empty, loss
        As for :func:`margin_split`.
    norm
        Half the squared Euclidean norm, or the l1 norm.
    halted
        Asked now and then whether to end with the best split so far, and a lower bound.

    Returns
    -------
    split
        The best one, within :data:`~mipforest.heuristics.node_solver.ACCURACY` of its value.
    bound
        The value of every split is at least this.
    """
    constant = constant_split(sign, None, X.shape[1], bias_if_empty, loss.flat_from)
    if constant is not None:
        return constant, 0.0
    chosen = X if features is None or len(features) == X.shape[1] else X[:, features]
    capacity = np.full(len(sign), C) if weight is None else C * weight
    found = solve_node(hinges_of(chosen, sign, capacity, loss.kinks(), l1=norm is L1), halted=halted)
    w = np.zeros(X.shape[1])
    w[slice(None) if chosen is X else features] = found.w
    w = clear_residue(w[None], X)[0]
    losses = weighted_sum(loss.values(X @ w + found.b, sign), weight)
    return Split(w, found.b, norm.value(w) + C * losses), found.bound


# ------------------------------------------------------------------ few features


def search_features(
    fit: Callable[[IntArray], Split | None],
    p: int,
    budget: int,
    alpha: float | None,
    *,
    quick: bool = False,
    hurry: Callable[[], bool] = lambda: False,
) -> Split | None:
    """Find a good split with few features, given how to fit one to a set of features.

    Parameters
    ----------
    fit
        Returns the best split that uses only these features (ascending); ``None`` where there is none.
    p
        Number of features.
    budget
        Number of features that are free of cost, at least 1.
    alpha
        Cost of every feature above the budget; ``None`` forbids them.
    quick
        Halve the features at a time and exchange none: a tenth of the time, for one of many trials.
    hurry
        Asked between two fits: whether to drop all features above the budget at once, and to exchange none.

    Returns
    -------
    Split
        Within the budget (hard) or with its penalty in ``value`` (soft); ``None`` where none was found.
    """

    def priced(features: IntArray) -> Split | None:
        split = fit(features)
        return None if split is None else with_penalty(split, budget, alpha)

    best = priced(np.arange(p))
    if best is None or not best.w.any():
        return best
    features = np.arange(p)
    if alpha is None and len(features) > budget:
        weights, best = best.w, None
    else:
        weights = best.w
    while len(features) > budget:
        n_dropped = len(features) - budget
        if not hurry():  # a tenth, or half, while there are many; one near the budget
            n_dropped = max(1, min(len(features) // (2 if quick else 10), n_dropped))
        least_first = np.argsort(np.abs(weights[features]), kind="stable")
        features = np.sort(features[least_first[n_dropped:]])
        split = priced(features)
        if split is None:
            break
        weights = split.w
        allowed = alpha is not None or len(features) <= budget
        if allowed and (best is None or split.value < best.value):
            best = split
    return best if best is None or quick else _exchange(best, priced, hurry)


def _exchange(split: Split, fit: Callable[[IntArray], Split | None], hurry: Callable[[], bool]) -> Split:
    """Swap the weakest used feature for each unused one while that helps."""
    improved = True
    while improved:
        improved = False
        used = np.flatnonzero(split.w)
        weakest = used[np.argsort(np.abs(split.w[used]))][:1]
        kept = np.setdiff1d(used, weakest)
        for candidate in np.setdiff1d(np.arange(len(split.w)), used):
            if hurry():
                return split
            other = fit(np.sort(np.append(kept, candidate)))
            if other is not None and other.value < split.value * (1 - LEAST_GAIN):
                split, improved = other, True
                break
    return split


def with_penalty(split: Split, budget: int, alpha: float | None) -> Split:
    """Clear negligible weights and add the cost of features above the budget."""
    largest = np.abs(split.w).max(initial=0.0)
    w = np.where(np.abs(split.w) > INTERIOR_RESIDUE * largest, split.w, 0.0)
    excess = max(0, int((w != 0).sum()) - budget)
    return replace(split, w=w, value=split.value + (0.0 if alpha is None else alpha * excess))


#: Most samples of a node whose problem is solved exactly: up to 4 s for a linear programme, 0.5 s for a quadratic one.
#: With more, the loss is smoothed: the value is within 0.1% of the best, in 0.05 s for 10,000 samples.
MAX_EXACT = 2000

#: Most entries of such a problem, samples times features: model and solver take some 800 bytes for each.
MAX_ENTRIES = 1_000_000

#: Scales that are tried for the split of a node with more samples than that.
SCALES = tuple(10.0 ** (k / 4) for k in range(-8, 9))


@dataclass(frozen=True, eq=False)
class NodeProblems:
    """What an objective charges at each branch node: the loss of the samples that reach it, and a norm of its weights.

    For a fixed routing of the samples a tree falls apart into one such problem per node.

    Attributes
    ----------
    C
        (|B|,) penalties of the loss; 0 at nodes that are charged for their weights alone.
    epsilon
        Gap that stands for the strict inequality on the left.
    budget
        (|B|,) features free of cost per node; ``None`` for all.
    alpha
        Cost of a feature above the budget; ``None`` forbids it.
    loss, norm
        What is charged for scores and for weights: those of MARGOT unless given.
    uncharged
        Nodes that are fitted like the others, and of which only features above the budget cost.
    time
        Once it has run out, problems are smoothed, and searches of features hurry.
    exact_up_to
        Most samples of a node whose problem is solved exactly.
    """

    words: ClassVar[str] = "trees of problems at the branch nodes"

    C: FloatArray
    epsilon: float
    budget: IntArray | None = None
    alpha: float | None = None
    loss: BranchLoss = HINGE
    norm: Norm = HALF_SQUARED_L2
    uncharged: frozenset[int] = frozenset()
    time: TimeBudget = field(default_factory=TimeBudget)
    exact_up_to: int = MAX_EXACT

    @property
    def exact(self) -> bool:
        """Whether the problems are convex, so that :meth:`split` solves them exactly (without a budget)."""
        return self.loss.convex is self.loss

    def split(
        self,
        t: int,
        X: FloatArray,
        sign: FloatArray,
        weight: FloatArray,
        *,
        right: BoolArray | None = None,
        kept: BoolArray | None = None,
        C: float | None = None,
        quick: bool = False,
        features: IntArray | None = None,
    ) -> Split | None:
        """Return the best split of node t for the samples that reach it (with a budget: the best found).

        Without a loss and with free sides the best split has no weights, and is of no use: the split is then the best
        one for the largest penalty of all nodes, at what the node is charged for it.

        Of more samples than :attr:`exact_up_to`, and once the time has run out, a split that is nearly as good where
        sides are free, and none where they are not.

        Parameters
        ----------
        t
            Branch node.
        X, sign, weight, right
            (n_t, p) samples, their labels and weights, and the sides they must keep (``None``: free).
        kept
            (n_t,) which samples must keep their side, of a convex loss; all unless given.
        C
            Another penalty than the node's own.
        quick
            With a budget: search a tenth of the time.
        features
            With these features, however many the budget allows; ``None``: search for them.

        Returns
        -------
        Split
            ``None`` if none was found that keeps the sides.
        """
        proposes = not self.C[t] and right is None
        penalty = float(self.C.max() if proposes else self.C[t]) if C is None else C

        def fit(features: IntArray) -> Split | None:
            if self.exact:
                return self._convex(t, X, sign, weight, penalty, right, features, kept)
            return self._by_stand_in(t, X, sign, weight, penalty, right, features)

        p = X.shape[1]
        if features is not None or self.budget is None or self.budget[t] >= p:
            found = fit(np.arange(p) if features is None else features)
        else:
            found = search_features(
                fit, p, int(self.budget[t]), self.alpha, quick=quick, hurry=lambda: self.time.expired
            )
        if found is None or not (proposes or t in self.uncharged):
            return found
        return replace(found, value=self.value(t, found.w, found.b, X, sign, weight))

    def _convex(
        self, t: int, X: FloatArray, sign: FloatArray, weight: FloatArray,
        C: float, right: BoolArray | None, features: IntArray, kept: BoolArray | None = None,
    ) -> Split | None:  # fmt: skip
        """Solve the convex problem of node t with these features."""
        bias, loss, norm = bias_if_empty(t), self.loss.convex, self.norm
        found = None
        if self._solves_exactly(X):
            found = margin_split(
                X,
                sign,
                C,
                weight=weight,
                right=right,
                kept=kept,
                epsilon=self.epsilon,
                features=features,
                bias_if_empty=bias,
                loss=loss,
                norm=norm,
                time_limit=self.time.at_most(),
            )
        if found is None and right is None and C > 0 and norm is HALF_SQUARED_L2:
            found, _ = many_sample_split(
                X,
                sign,
                C,
                weight=weight,
                features=features,
                bias_if_empty=bias,
                loss=loss,
                halted=lambda: self.time.expired,
            )
        elif found is None and right is None and C > 0:
            found = smoothed_split(
                X, sign, C, weight=weight, features=features, bias_if_empty=bias, loss=loss, norm=norm
            )
        return found

    def _solves_exactly(self, X: FloatArray) -> bool:
        """Return whether the problem of (n_t, p) samples is solved exactly."""
        return len(X) <= self.exact_up_to and X.size <= MAX_ENTRIES and not self.time.expired

    def lower_bound(self, t: int, X: FloatArray, sign: FloatArray, weight: FloatArray) -> float:
        """Return a lower bound on the charge of node t for some samples, sides free; the loss is convex."""
        C, loss, norm = float(self.C[t]), self.loss.convex, self.norm
        if C == 0:
            return 0.0
        if self._solves_exactly(X):
            found = margin_split(
                X, sign, C, weight=weight, loss=loss, norm=norm, time_limit=self.time.at_most()
            )
            if found is not None:
                return found.value
        if norm is NO_NORM:
            return 0.0
        return many_sample_split(
            X, sign, C, weight=weight, loss=loss, norm=norm, halted=lambda: self.time.expired
        )[1]

    def _by_stand_in(
        self, t: int, X: FloatArray, sign: FloatArray, weight: FloatArray,
        C: float, right: BoolArray | None, features: IntArray,
    ) -> Split | None:  # fmt: skip
        """Let the convex stand-in propose the sides; the split with the least norm for these sides follows.

        Above the last level the sides are given; for a loss that depends on sides only that split is then optimal.
        """
        sides, proposed = right, None
        if sides is None:
            proposed = self._convex(t, X, sign, weight, C, None, features)
            assert proposed is not None  # with free sides the stand-in always has a split
            proposed, sides = self.route(proposed, X)
        # Without a norm any split with these sides is as good: the stand-in's keeps a natural scale.
        penalty = C if self.norm is NO_NORM else 0.0
        found = self._convex(t, X, sign, weight, penalty, sides, features) or proposed
        if found is None:
            return None
        losses = self._losses(found.scores(X), sign, weight)
        return replace(found, value=self.norm.value(found.w) + C * losses)

    def value(
        self, t: int, w: FloatArray, b: float, X: FloatArray, sign: FloatArray, weight: FloatArray
    ) -> float:
        """Return the charge for a split of node t and the samples that reach it; inf beyond a hard budget."""
        charge = self.norm.value(w) + float(self.C[t]) * self._losses(X @ w + b, sign, weight)
        total = 0.0 if t in self.uncharged else charge
        if self.budget is None:
            return total
        excess = max(0, int((w != 0).sum()) - int(self.budget[t]))
        if self.alpha is None:
            return float("inf") if excess else total
        return total + self.alpha * excess

    def _losses(self, scores: FloatArray, sign: FloatArray, weight: FloatArray) -> float:
        return weighted_sum(self.loss.values(scores, sign), weight)

    def route(self, split: Split, X: FloatArray) -> tuple[Split, BoolArray]:
        """Shift a split so that no sample lies between the sides; return it, and which samples go right."""
        shift = into_a_gap(split.scores(X), self.epsilon)
        moved = Split(split.w, split.b + shift, split.value)
        return moved, moved.scores(X) >= 0

    def fitted_to_all(self, tree: Tree, data: Dataset, topology: Topology) -> Tree:
        """Return a tree of many samples like another: its upper splits at the best scale, the last level fitted anew.

        Samples between the sides of a split, for the gap that it must keep, change sides.
        """

        def fit(t: int, X: FloatArray, sign: FloatArray, weight: FloatArray) -> Split:
            scaled = [Split(scale * tree.w[t], scale * float(tree.b[t]), np.nan) for scale in SCALES]
            if t in topology.upper_branches:
                return min(
                    (self._routed(t, split, X, sign, weight) for split in scaled),
                    key=lambda split: split.value,
                )
            own = [replace(split, value=self.value(t, split.w, split.b, X, sign, weight)) for split in scaled]
            free = self.split(t, X, sign, weight, quick=True)
            return min(filter(None, [*own, free]), key=lambda split: split.value)

        return top_down(data, topology, self, fit)

    def _routed(self, t: int, split: Split, X: FloatArray, sign: FloatArray, weight: FloatArray) -> Split:
        """Shift a split into a gap; in its value, samples that change sides count with the penalty of the loss."""
        moved, right = self.route(split, X)
        changed = float(weight[right != (split.scores(X) >= 0)].sum())
        value = self.value(t, moved.w, moved.b, X, sign, weight) + float(self.C[t] or self.C.max()) * changed
        return replace(moved, value=value)

    def tree(self, splits: Mapping[int, Split], data: Dataset, topology: Topology) -> Tree:
        """Put splits together: left leaves predict the first class (-1), right leaves the second (+1)."""
        p = data.X.shape[1]
        w = np.array([splits[t].w if t in splits else np.zeros(p) for t in topology.branches])
        b = np.array([splits[t].b if t in splits else bias_if_empty(t) for t in topology.branches])
        return self.labelled(w, b, data, topology)

    def labelled(self, w: FloatArray, b: FloatArray, data: Dataset, topology: Topology) -> Tree:
        """Return the tree of weights (|B|, p) and biases (|B|,); the loss says whether its scores are log-odds."""
        return Tree(
            depth=topology.depth,
            w=w,
            b=b,
            leaf_value=np.tile([0, 1], topology.n_leaves // 2),
            classes=tuple(data.classes),
            features=tuple(data.features.labels),
            logistic=self.loss.log_odds,
        )


def passed(tree: Tree, data: Dataset) -> BoolArray:
    """Return (n, |B|) whether a sample passes a branch node of a tree for scaled features."""
    return tree.decision_path(data.X)[:, : tree.topology.n_branches]


def bias_if_empty(t: int) -> float:
    """Return the bias of a node that no sample reaches: +1 for a right child (even number), -1 for a left one."""
    return 1.0 if t % 2 == 0 else -1.0


def top_down(
    data: Dataset,
    topology: Topology,
    nodes: NodeProblems,
    fit: Callable[[int, FloatArray, FloatArray, FloatArray], Split],
) -> Tree:
    """Grow a tree level by level.

    Parameters
    ----------
    data
        Two classes; scaled features.
    topology
        The tree.
    nodes
        Shifts splits so that they route.
    fit
        Returns the split of node t for the samples (n_t, p) that reach it, with their labels, -1 or +1, and weights.

    Returns
    -------
    Tree
        For scaled features. Where samples fall between the sides of a node above the last level, its bias is
        shifted to the nearest gap of their scores, so that the tree is feasible for the model.
    """
    members = {0: np.arange(data.n)}
    splits: dict[int, Split] = {}
    for t in topology.branches:
        X = data.X[members[t]]
        splits[t] = fit(t, X, data.sign[members[t]], data.weights[members[t]])
        if t not in topology.last_branches:
            splits[t], goes_right = nodes.route(splits[t], X)
            members[topology.left(t)], members[topology.right(t)] = (
                members[t][~goes_right],
                members[t][goes_right],
            )
    return nodes.tree(splits, data, topology)


def numbers_of_nodes(nodes: NodeProblems) -> dict[str, Any] | None:
    """Return what is charged at the branch nodes, as a certificate has it; ``None`` where none can say it."""
    if not nodes.exact or nodes.norm not in (HALF_SQUARED_L2, L1) or nodes.uncharged:
        return None
    hard = nodes.budget is None or nodes.alpha is None or not np.isfinite(nodes.alpha)
    return {
        "C": [float(penalty) for penalty in nodes.C],
        "epsilon": float(nodes.epsilon),
        "kinks": [[float(part) for part in kink] for kink in nodes.loss.convex.kinks()],
        "norm": "l1" if nodes.norm is L1 else "l2",
        "free": None if nodes.budget is None else [int(free) for free in nodes.budget],
        "alpha": None if hard or nodes.alpha is None else float(nodes.alpha),
    }


def digest_of_data(data: Dataset) -> str:
    """Return the digest of the samples that a certificate of these data has."""
    X, group = np.unique(data.X, axis=0, return_inverse=True)
    return digest_of_samples(X, weights_by_class(data, group.ravel(), len(X)))


def weights_by_class(data: Dataset, group: IntArray, n_groups: int) -> FloatArray:
    """Return (G, 2) what the samples of class -1 and +1 in each group weigh together."""
    weight = np.zeros((n_groups, 2))
    np.add.at(weight, (group, (data.sign > 0).astype(np.int64)), data.weights)
    return weight
