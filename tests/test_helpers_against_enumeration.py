"""Helpers that read leaves or predictions of trees of linear classifiers: the optimum is that over all routings.

The definition: right is a score of at least 0, left one of at most -epsilon, at every level.
"""

from itertools import product

import numpy as np
import pytest

from formulations.loss_optimal import LossOptimal
from formulations.margot import HfsMargot, Margot, SfsMargot
from formulations.olct import BudgetedOlct, Olct
from mipforest import constraints
from mipforest.data import Dataset

routes = pytest.importorskip("independent_routes")
pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": 60, "gap": 1e-7}
EPSILON = 0.05
#: The hyperplane of the best tree without a false negative passes through two of the samples.
X = np.array([[0.81, 0.81], [0.52, 0.29], [0.05, 0.38], [0.41, 0.05], [0.05, 1.0], [0.65, 0.23]])
Y = np.array([0, 0, 0, 1, 0, 1])
GROUP = np.array([0, 1, 0, 1, 1, 0])
LINES = ((np.log(2.0), -0.5), (0.0, -1.0), (0.0, 0.0))  # V0: the tangent at 0, and those at both infinities

MODELS = {
    "margot": Margot(C=0.5, epsilon=EPSILON),
    "hfs-margot": HfsMargot(C=0.5, epsilon=EPSILON, B=1),
    "sfs-margot": SfsMargot(C=0.5, epsilon=EPSILON, B=1, alpha=0.1),
    "olct": Olct(C=1.0, epsilon=EPSILON, refinement=False),
    "budgeted-olct": BudgetedOlct(C=1.0, epsilon=EPSILON, B=1, refinement=False),
    "loss-optimal": LossOptimal(C=1.0, epsilon=EPSILON, loss="hinge", regulariser="l1", refinement=False),
}
#: Helper, and whether (leaf, predicted class) of the samples satisfy it.
HELPERS = {
    "min_samples_leaf": (
        lambda p: constraints.min_samples_leaf(p, 3),
        lambda leaf, k: all(size == 0 or size >= 3 for size in np.bincount(leaf)),
    ),
    "min_weight_fraction_leaf": (
        lambda p: constraints.min_weight_fraction_leaf(p, 0.3),
        lambda leaf, k: all(size == 0 or size >= 2 for size in np.bincount(leaf)),
    ),
    "demographic_parity": (
        lambda p: constraints.demographic_parity(p, GROUP, 0.0),
        lambda leaf, k: k[GROUP == 0].sum() == k[GROUP == 1].sum(),
    ),
    "equal_opportunity": (
        lambda p: constraints.equal_opportunity(p, GROUP, 0.0, positive="0"),
        lambda leaf, k: k[(Y == 0) & (GROUP == 0)].sum() == k[(Y == 0) & (GROUP == 1)].sum(),
    ),
    "max_false_negatives": (
        lambda p: constraints.max_false_negatives(p, 0),
        lambda leaf, k: bool(k[Y == 1].all()),
    ),
}


def node_value(model, X, sign, right):
    """Value of one node of a model for given sides of its samples, by Gurobi or scipy."""

    def margin(Z):
        return routes.margin_qp(Z, sign, 0.5, right, EPSILON)

    def l1(lines):
        return lambda Z: routes.l1_lp(Z, sign, 1.0, lines, right, EPSILON)

    if model == "margot":
        return margin(X)
    if model in ("hfs-margot", "sfs-margot"):
        return routes.best_features(margin, X, 1, np.inf if model == "hfs-margot" else 0.1)
    if model == "loss-optimal":
        return l1(((1.0, -1.0), (0.0, 0.0)))(X)
    return routes.best_features(l1(LINES), X, 1, np.inf) if model == "budgeted-olct" else l1(LINES)(X)


def enumerated(model, X, sign, depth, holds):
    """Least value of a tree over all routings of the samples that satisfy a constraint."""
    sides = [np.array(side, dtype=bool) for side in product([False, True], repeat=len(X))]
    known = {}

    def value(rows, right):
        key = (rows.tobytes(), right.tobytes())
        if key not in known:
            known[key] = node_value(model, X[rows], sign[rows], right)
        return known[key]

    def subtrees(rows, level):
        """Yield the value, the leaf and the class of each of the rows."""
        for right in {side[rows].tobytes(): side[rows] for side in sides}.values():
            own = value(rows, right)
            if not np.isfinite(own):
                continue
            if level == depth - 1:
                yield own, right.astype(int), right.astype(int)
                continue
            below = [subtrees(rows[here], level + 1) for here in (~right, right)]
            for (cost_0, leaf_0, k_0), (cost_1, leaf_1, k_1) in product(*below):
                leaf, k = np.empty((2, len(rows)), dtype=int)
                leaf[~right], leaf[right] = leaf_0, leaf_1 + 2 ** (depth - level - 1)
                k[~right], k[right] = k_0, k_1
                yield own + cost_0 + cost_1, leaf, k

    return min((cost for cost, leaf, k in subtrees(np.arange(len(X)), 0) if holds(leaf, k)), default=np.inf)


#: One of each kind: the others repeat them with other node problems.
QUICK = [
    ("margot", "max_false_negatives", 1),
    ("margot", "max_false_negatives", 2),
    ("olct", "demographic_parity", 1),
    ("hfs-margot", "equal_opportunity", 1),
    ("budgeted-olct", "min_samples_leaf", 1),
    ("loss-optimal", "min_weight_fraction_leaf", 1),
]


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("model", "helper", "depth"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
        for case in product(MODELS, HELPERS, (1, 2))
    ],
)
def test_a_helper_on_leaves_gives_the_best_of_all_routings(model, helper, depth):
    formulation, (constrain, holds) = MODELS[model], HELPERS[helper]
    data = Dataset.from_arrays(X, Y).with_scaling(formulation.scaling)
    expected = enumerated(model, data.X, data.sign, depth, holds)
    problem = formulation.build(data, depth)
    constrain(problem)
    result = problem.solve("highs", **PROVEN)
    assert result.verified, result.failed_checks
    assert result.status == "optimal"
    assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert result.bound <= expected * (1 + 1e-6) + 1e-6, "a bound is a claim for the definition"
    leaf = result.tree.apply(X) - (2**depth - 1)
    assert holds(leaf, result.tree.predict(X)), "the constraint holds for the tree itself"
