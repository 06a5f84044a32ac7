"""Routing keeps limits on what leaves hold, and features forbidden at nodes: the optimum is that of the rows."""

import itertools

import numpy as np
import pytest
from routed_models import GAP, MODELS, NAMES, SAME, check_beside, refusal, solved_by_both

import mipforest
from mipforest.data import Dataset
from mipforest.errors import Unsupported
from mipforest.problem.constraints import (
    F1,
    AtMostFeatures,
    Forbid,
    LimitLabel,
    MinLeaf,
    Parity,
    Precision,
    Recall,
    Require,
)
from mipforest.searches.routing.leaf_limits import LeafLimits


def case(seed, n=12):
    """Return a problem with one or two constraints; models and depths take turns."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 3)), 2)
    y = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(n)
    data = Dataset.from_arrays(X, (y > np.median(y)).astype(int), features=NAMES)
    model, parameters = MODELS[seed % len(MODELS)]
    depth = 1 + seed // len(MODELS) % 2
    pool = [
        Recall("1", float(rng.choice([0.6, 0.8, 0.9, 1.0]))),
        Precision("1", float(rng.choice([0.7, 0.9, 1.0]))),
        LimitLabel("1", float(rng.choice([0.2, 0.3, 0.4]))),
        MinLeaf(int(rng.integers(2, 6))),
        MinLeaf("20%"),
        Forbid(("a",), (0,)),
        Forbid(("b", "c"), (2**depth - 2,)),
        Parity("g", 0.1, groups=np.arange(n) % 2),
        AtMostFeatures(2),
    ]
    own = [pool[k] for k in rng.choice(len(pool), 1 + seed % 2, replace=False)]
    problem = mipforest.get_formulation(model)(**parameters).build(data, depth)
    problem.constrain(*own)
    return problem


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("seed", range(90))
def test_the_matrix_solver_finds_the_same_optimum(seed):
    problem = case(seed)
    if why := refusal(problem):
        pytest.skip(why)
    result, other = solved_by_both(problem, case(seed))
    assert result.status == "optimal", result.status
    check_beside(result, other)
    if other.status == "optimal":
        assert result.objective == pytest.approx(other.objective, rel=SAME)


def random_limits(rng, depth, n_groups):
    rows, sizes = int(rng.integers(0, 3)), int(rng.integers(0, 2))
    return LeafLimits(
        use=rng.integers(-2, 3, (rows, n_groups, 2)).astype(float),
        most=rng.integers(-3, 4, rows).astype(float),
        amounts=np.ones((sizes, n_groups)),
        least=rng.integers(1, 4, sizes).astype(float),
        depth=depth,
    )


@pytest.mark.first_cases(20)
@pytest.mark.parametrize("seed", range(400))
def test_what_is_left_out_extends_to_no_assignment_within_limits(seed):
    """Enumeration of the leaves of all groups: sides are forced, and nodes cut off, where all others break a limit."""
    rng = np.random.default_rng(seed)
    depth, n_groups = 1 + seed % 2, 5
    limits = random_limits(rng, depth, n_groups)
    first_leaf = 2**depth - 1
    reached = rng.integers(0, 2 * first_leaf + 1, n_groups)

    def below(node):
        return [node] if node >= first_leaf else below(2 * node + 1) + below(2 * node + 2)

    def within(leaves):
        side = (leaves - first_leaf) % 2
        sums = limits.use[:, np.arange(n_groups), side].sum(axis=1)
        held = [
            amount[leaves == leaf].sum() >= least
            for amount, least in zip(limits.amounts, limits.least, strict=True)
            for leaf in np.unique(leaves)
        ]
        return bool((sums <= limits.most).all()) and all(held)

    ends = [
        leaves
        for found in itertools.product(*(below(int(node)) for node in reached))
        if within(leaves := np.array(found))
    ]
    propagated = limits.propagated(reached)
    if propagated is None:
        assert not ends
        return
    kept = itertools.product(*(below(int(node)) for node in propagated))
    assert {tuple(map(int, leaves)) for leaves in ends} <= {tuple(map(int, leaves)) for leaves in kept}
    if (reached >= first_leaf).all():
        assert bool(ends) == (propagated is not None)


def test_auto_chooses_it_and_says_what_it_does_not_keep():
    problem = case(0)
    problem.constrain(Require("a"))
    why = refusal(problem)
    assert "require a" in why
    assert "limits on features" in why


def test_without_a_tree_to_begin_with_it_refuses():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    data = Dataset.from_arrays(X, [0, 1, 0, 1], features=["x"])
    problem = mipforest.get_formulation("margot")(C=1.0).build(data, 1)
    problem.constrain(F1("1", 1.0))
    assert "no tree to begin with" in refusal(problem)
    with pytest.raises(Unsupported, match="no tree to begin with"):
        problem.solve("routing")


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model[0])
def test_a_node_may_be_left_without_features(model):
    data = case(5).data
    name, parameters = model
    proven = []
    for solver in ("routing", "highs"):
        problem = mipforest.get_formulation(name)(**parameters).build(data, 2)
        problem.constrain(Forbid(("a", "b", "c"), (1,)))
        result = problem.solve(solver, gap=GAP, time_limit=120, start=None)
        assert result.status == "optimal"
        assert not result.tree.w[1].any()
        proven.append(result.objective)
    assert proven[0] == pytest.approx(proven[1], rel=SAME)


def test_a_certificate_does_not_state_them(tmp_path):
    problem = case(0)
    with pytest.raises(Unsupported, match="certificate"):
        problem.solve("routing", certificate=tmp_path / "proof.gz")
