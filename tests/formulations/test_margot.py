from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent_routes import enumerated_margot, margin_qp, scip_optimum
from margin_data import random_data, random_tree
from sklearn.svm import SVC

from formulations.margins import proven_limits
from formulations.margot import HfsMargot, Margot, SfsMargot
from mipforest.data import DataError, Dataset
from mipforest.model import Model
from mipforest.problem.parameters import ParameterError, per_node
from mipforest.trees import Topology

pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": None, "gap": 1e-7}


def by_hand(formulation, tree, data):
    """The definition, sample by sample: walk down, pay at every branch node that is passed."""
    C = per_node("C", formulation.C, tree.depth)
    total = 0.5 * float((tree.w**2).sum())
    for x, sign in zip(data.X, data.sign, strict=True):
        t = 0
        while t < 2**tree.depth - 1:
            score = float(x @ tree.w[t] + tree.b[t])
            total += C[t] * max(0.0, 1 - sign * score)
            t = 2 * t + 2 if score >= 0 else 2 * t + 1
    if isinstance(formulation, SfsMargot):
        free = per_node("B", formulation.B, tree.depth)
        total += formulation.alpha * float(np.maximum(0, (tree.w != 0).sum(axis=1) - free).sum())
    return total


FORMULATIONS = [
    (lambda C: Margot(C=C, variant="paper"), None),
    (lambda C: HfsMargot(C=C, B=2, variant="paper"), 2),
    (lambda C: SfsMargot(C=C, B=1, alpha=0.7, variant="paper"), None),
]


@pytest.mark.parametrize(("make", "budget"), FORMULATIONS, ids=["margot", "hfs", "sfs"])
@given(depth=st.integers(1, 4), seed=st.integers(0, 10**6), levels=st.booleans())
@settings(max_examples=15)
def test_evaluate_is_the_definition(make, budget, depth, seed, levels):
    rng = np.random.default_rng(seed)
    data = random_data(seed, n=int(rng.integers(4, 40)), p=int(rng.integers(2, 5)))
    C = tuple(10.0 ** rng.integers(-2, 3, depth)) if levels else float(10.0 ** rng.integers(-2, 3))
    formulation = make(C)
    instance = formulation.bind(data, Topology(depth))
    tree = random_tree(rng, data, depth, epsilon=formulation.epsilon, budget=budget)
    expected = by_hand(formulation, tree, data)
    assert formulation.evaluate(tree, instance) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("C", [pytest.param(0.1, marks=pytest.mark.slow), 100.0])  # the same limits, scaled
def test_valid_limits_contain_every_polished_tree_up_to_their_upper_bound(C):
    data = random_data(1, n=15, p=3)
    formulation, rng = Margot(C=C), np.random.default_rng(0)
    instance = formulation.bind(data, Topology(2))
    trees = [formulation.start("svm-path", instance)]
    trees += [
        formulation.polish(random_tree(rng, data, 2, epsilon=1e-3, bound=4.0), instance) for _ in range(24)
    ]
    values = np.array([formulation.evaluate(tree, instance) for tree in trees])
    limit = float(np.median(values))
    model = Model()
    limits = proven_limits(data.X, formulation.epsilon, limit)
    formulation.declare(model, replace(instance, limits=limits))
    inside = np.flatnonzero(values <= limit)
    assert len(inside) > 10
    for k in inside:
        assert model.violations(formulation.encode(trees[k], instance)).max <= 1e-6


def test_known_tree_gives_the_limits():
    data = random_data(1, n=30, p=3)
    problem = Margot(C=10.0).build(data, 2)
    instance = problem.instance
    known = instance.known
    assert instance.limits.upper_bound == pytest.approx(problem.formulation.evaluate(known, instance))
    assert problem.model.violations(problem.formulation.encode(known, instance)).max <= 1e-6
    assert np.isfinite(problem.model["w"].lower).all()
    assert np.isfinite(problem.model["b"].upper).all()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 1000.0])
def test_depth_one_is_a_support_vector_machine(C):
    data = random_data(3, n=60, p=5)
    result = Margot(C=C).build(data, 1).solve("highs", **PROVEN)
    svm = SVC(C=C, kernel="linear", tol=1e-8, max_iter=10**7).fit(data.X, data.sign)
    w, b = svm.coef_[0], svm.intercept_[0]
    primal = 0.5 * w @ w + C * np.maximum(0, 1 - data.sign * (data.X @ w + b)).sum()
    dual = np.abs(svm.dual_coef_).sum() - 0.5 * w @ w
    assert result.verified
    # libsvm stops with a small gap of its own; the optimum lies in it.
    assert primal - dual < 1e-4 * primal
    assert dual * (1 - 1e-6) <= result.objective <= primal * (1 + 1e-6)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("seed", "n", "C"),
    [
        (0, 6, (0.1, 0.1)),
        (2, 6, (1.0, 10.0)),
        # Other penalties and more samples, as of seeds 0 and 2; depth three is in the routing search's enumeration.
        pytest.param(5, 8, (10.0, 1.0), marks=pytest.mark.slow),
        pytest.param(7, 5, (0.1, 1.0, 10.0), marks=pytest.mark.slow),
        pytest.param(1, 8, (1.0, 1.0), marks=pytest.mark.slow),  # moderate penalties, as of seeds 0 and 2
        pytest.param(4, 6, (1.0, 1.0, 1.0), marks=pytest.mark.slow),  # depth three, as of seed 7
    ],
)
def test_both_variants_equal_enumeration(seed, n, C):
    data, depth = random_data(seed, n=n, p=2), len(C)
    expected = enumerated_margot(data.X, data.sign, C, depth, Margot().epsilon)
    for variant in Margot.variants:
        result = Margot(C=C, variant=variant).build(data, depth).solve("highs", **PROVEN)
        assert result.verified, variant
        assert result.status == "optimal", variant
        assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-6), variant


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("formulation", "n", "p", "depth"),
    [
        (HfsMargot(C=1.0, B=1), 9, 2, 2),
        # Enumerated above without a budget; SCIP solves a soft one of the loss-optimal tree, which has these rows.
        pytest.param(Margot(C=1.0), 9, 2, 2, marks=pytest.mark.slow),
        pytest.param(SfsMargot(C=1.0, B=1, alpha=0.3), 8, 2, 2, marks=pytest.mark.slow),
        # Larger ones of each; other penalties and depth three are enumerated above.
        pytest.param(Margot(C=1.0), 12, 3, 2, marks=pytest.mark.slow),
        pytest.param(Margot(C=1000.0), 12, 2, 2, marks=pytest.mark.slow),
        pytest.param(HfsMargot(C=1.0, B=1), 12, 3, 2, marks=pytest.mark.slow),
        pytest.param(SfsMargot(C=1.0, B=1, alpha=0.3), 10, 3, 2, marks=pytest.mark.slow),
        pytest.param(Margot(C=0.1), 16, 2, 2, marks=pytest.mark.slow),
        pytest.param(Margot(C=10.0), 14, 3, 2, marks=pytest.mark.slow),
        pytest.param(Margot(C=1.0), 6, 2, 3, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_equals_scip_on_the_quadratic_model(formulation, n, p, depth):
    pytest.importorskip("pyscipopt")
    data = random_data(11, n=n, p=p)
    result = formulation.build(data, depth).solve("highs", **PROVEN)
    expected = scip_optimum(replace(formulation, variant="paper").build(data, depth).model.matrix())
    assert result.verified
    assert result.status == "optimal"
    assert expected is not None
    assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_paper_constants_cut_off_the_optimum_where_weights_are_large():
    # Two samples 0.004 apart, C large: the separating weight is 2 / 0.004 = 500 > M_w = 50 per unit, so that
    # rows switched off by M = 50 still bind.
    X = np.array([[0.0], [0.498], [0.502], [1.0]])
    data = Dataset.from_arrays(X, np.array([0, 0, 1, 0]))
    C = 1e6
    proven = Margot(C=C).build(data, 2).solve("highs", **PROVEN)
    assert proven.verified
    assert proven.objective == pytest.approx(enumerated_margot(data.X, data.sign, (C, C), 2, 1e-3), rel=1e-5)
    assert np.abs(proven.solution["w"]).max() > 50


def test_one_value_per_level_or_per_node():
    data = random_data(2, n=8, p=2)
    by_level = Margot(C=(1.0, 5.0)).build(data, 2).model.matrix()
    by_node = Margot(C=(1.0, 5.0, 5.0)).build(data, 2).model.matrix()
    np.testing.assert_array_equal(by_level.c, by_node.c)
    with pytest.raises(ParameterError, match=r"4 values.*takes 1, 2 .one per level. or 3"):
        Margot(C=(1.0, 2.0, 3.0, 4.0)).build(data, 2)


def test_budget_holds_and_penalty_counts():
    data = random_data(6, n=9, p=3)
    hard = HfsMargot(C=10.0, B=(1, 2)).build(data, 2).solve("highs", time_limit=20)
    assert hard.verified
    assert [
        len(used) <= most for used, most in zip(hard.tree.features_used().per_node, (1, 2, 2), strict=True)
    ] == [True] * 3
    free = Margot(C=10.0).build(data, 2).solve("highs", time_limit=20)
    dear = SfsMargot(C=10.0, B=1, alpha=1e4).build(data, 2).solve("highs", time_limit=20)
    assert max(map(len, dear.tree.features_used().per_node)) <= 1
    assert free.objective <= hard.objective + 1e-6


def test_refuses_what_it_does_not_take():
    three = Dataset.from_arrays(np.random.default_rng(0).random((9, 2)), np.repeat([0, 1, 2], 3))
    with pytest.raises(DataError, match="3 classes"):
        Margot().build(three, 2)
    for wrong in ({"C": -1}, {"C": 0}, {"epsilon": 1.5}, {"C": "ten"}, {"variant": "tight?"}):
        with pytest.raises(ParameterError):
            Margot(**wrong)
    with pytest.raises(ParameterError, match="whole number"):
        HfsMargot(B=1.5)
    for depth in (0, 12):
        with pytest.raises(ValueError, match="depth must be 1 to 10"):
            Margot().build(random_data(0, 10, 2), depth)


def test_root_margin_always_holds_so_the_plain_svm_bounds_the_optimum():
    data = random_data(8, n=15, p=3)
    result = Margot(C=1.0).build(data, 2).solve("highs", time_limit=1)
    assert result.bound >= margin_qp(data.X, data.sign, 1.0) - 1e-4


def test_names_in_the_model_follow_samples_features_and_nodes():
    data = Dataset.from_arrays(np.random.default_rng(0).random((4, 2)), [0, 1, 0, 1], features=["age", "sex"])
    form = Margot(variant="paper").build(data, 2).model.matrix()
    assert "w[n2,age]" in form.column_names
    assert "z[3,n1]" in form.column_names
    assert "margin[0,n2]" in form.row_names
    assert Topology(2).last_branches.labels == ("n1", "n2")
