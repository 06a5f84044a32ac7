r"""Annealing: descent of all nodes at once on a smoothed tree, whose splits become sharper.

In the smoothed tree a sample with score s goes right with probability :math:`1 / (1 + e^{-s / \sigma})`, and corners of
the loss, and of an l1 norm, are rounded. Its expected charge is smooth in all hyperplanes, so L-BFGS lowers it, for
smaller and smaller :math:`\sigma`. Children move together with the root, which line moves and node moves cannot do.
Each evaluation costs O(n p |B|).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import expit

from mipforest.arrays import FloatArray
from mipforest.searches.hyperplanes import HyperplaneProblem, Hyperplanes
from mipforest.time_budget import Stopped

#: Width over which corners of the loss are rounded, in margins, and those of the l1 norm, in weights.
ROUNDED, ROUNDED_NORM = 0.05, 1e-3

#: Iterations of L-BFGS at each width of the splits, and evaluations for each of them.
ITERATIONS, EVALUATIONS = 40, 1.3

#: Relative decrease at which L-BFGS ends: the tree is improved by other moves afterwards.
_DECREASE = 1e-7


def annealed(
    problem: HyperplaneProblem,
    tree: Hyperplanes,
    widths: Sequence[float],
    *,
    iterations: int = ITERATIONS,
    should_stop: Callable[[], bool] = lambda: False,
) -> Hyperplanes:
    """Return a tree near another one, improved on the smoothed tree, without its objective.

    Parameters
    ----------
    problem, tree
        The problem, and where to begin.
    widths
        Widths of the splits, in scores, one after the other.
    iterations
        Iterations of L-BFGS for each.
    should_stop
        Asked at each evaluation: whether to end with the best hyperplanes so far.
    """
    from scipy.optimize import minimize  # late: slow to import, and most runs do without

    n_nodes, p = tree.w.shape
    centre = problem.X.mean(axis=0)
    X = problem.X - centre
    charge = np.outer(problem.C, problem.weight)
    unit = 1.0 / float(charge.sum(axis=1).max())
    best = np.concatenate([tree.w.ravel(), tree.b + tree.w @ centre])
    free = np.ones_like(tree.w)
    for t in range(n_nodes):  # nodes with a budget keep the features that they have
        if problem.selects(t):
            free[t] = tree.w[t] != 0.0
    for width in widths:
        least = np.inf

        def objective(point: FloatArray, width: float = width) -> tuple[float, FloatArray]:
            nonlocal best, least
            w, b = point[: n_nodes * p].reshape(n_nodes, p), point[n_nodes * p :]
            value, slopes = _expected(problem, w @ X.T + b[:, None], charge, width)
            size = np.sqrt(w * w + ROUNDED_NORM**2) if problem.l1 else 0.5 * w * w
            slopes_of_norm = w / size if problem.l1 else w
            value += float(size.sum())
            if value < least:
                least, best = value, point.copy()
            if should_stop():
                raise Stopped
            gradient = np.concatenate([(free * (slopes @ X + slopes_of_norm)).ravel(), slopes.sum(axis=1)])
            return unit * value, unit * gradient

        options = {
            "maxiter": iterations,
            "maxfun": int(EVALUATIONS * iterations),
            "ftol": _DECREASE,
            "gtol": 0.0,
        }
        try:
            best = minimize(objective, best, jac=True, method="L-BFGS-B", options=options).x
        except Stopped:
            break
    w = best[: n_nodes * p].reshape(n_nodes, p).copy()
    return Hyperplanes(w, best[n_nodes * p :] - w @ centre)


def _expected(
    problem: HyperplaneProblem, scores: FloatArray, charge: FloatArray, width: float
) -> tuple[float, FloatArray]:
    """Return the expected charge of all samples for scores (|B|, n), and its slopes in the scores."""
    n_upper = problem.n_upper
    cost, slopes = np.zeros_like(scores), np.zeros_like(scores)
    margins = problem.sign * scores
    for at, change in problem.kinks:
        # The rounded corner is (x + r)^2 / 4r between -r and r: linear growth beyond, with the same slope there.
        lack = at - margins
        near = np.clip(lack + ROUNDED, 0.0, 2.0 * ROUNDED)
        cost += change * (near * near / (4.0 * ROUNDED) + np.maximum(lack - ROUNDED, 0.0))
        slopes -= change * near / (2.0 * ROUNDED)
    cost *= charge
    slopes *= charge * problem.sign
    right = expit(scores[:n_upper] / width)
    for t in reversed(range(n_upper)):
        difference = cost[2 * t + 2] - cost[2 * t + 1]
        slopes[t] += right[t] * (1.0 - right[t]) / width * difference
        cost[t] += cost[2 * t + 1] + right[t] * difference
    reach = [np.ones(scores.shape[1])]
    for t in range(1, problem.n_branches):
        parent = (t - 1) // 2
        share = right[parent] if t % 2 == 0 else 1.0 - right[parent]
        reach.append(reach[parent] * share)
        slopes[t] *= reach[t]
    return float(cost[0].sum()), slopes
