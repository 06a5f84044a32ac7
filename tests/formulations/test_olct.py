import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent_lp import V0, enumerated_tree, tangent, thresholds
from margin_data import random_data, random_tree
from tolerance import at_most, less, same

from formulations.olct import BudgetedOlct, Olct, UnivariateOlct
from mipforest.data import Dataset, load
from mipforest.objectives.losses import LogisticLoss, log_loss, tangent_points
from mipforest.problem.parameters import ParameterError
from mipforest.trees import Topology, Tree

pytestmark = pytest.mark.usefixtures("few_penalties")

#: The default gap.
EPSILON = Olct().epsilon

PROVEN = {"time_limit": None, "gap": 1e-7}

V1 = (*V0, tangent(1.9), tangent(-1.9))


def exact_by_hand(C, tree, data):
    """Norms plus the log-loss of every sample at every branch node that it passes; one C for all."""
    total = float(np.abs(tree.w).sum())
    for x, sign in zip(data.X, data.sign, strict=True):
        t = 0
        while t < 2**tree.depth - 1:
            score = float(x @ tree.w[t] + tree.b[t])
            total += C * float(np.log1p(np.exp(-sign * score)))
            t = 2 * t + 2 if score >= 0 else 2 * t + 1
    return total


# ------------------------------------------------------------------ optima


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("seed", "n", "C", "tangents", "lines"),
    [
        (1, 5, (0.5, 3.0), "V0", V0),
        (2, 5, (2.0, 1.0), "V1", V1),
        pytest.param(0, 7, (1.0, 1.0), "V0", V0, marks=pytest.mark.slow),  # more samples than of seed 1
    ],
)
def test_both_variants_equal_enumeration(seed, n, C, tangents, lines):
    data = random_data(seed, n=n, p=2)
    expected = enumerated_tree(data.X, data.sign, C, EPSILON, lines)
    for variant in Olct.variants:
        result = Olct(C=C, tangents=tangents, variant=variant).build(data, 2).solve("highs", **PROVEN)
        assert result.verified
        assert result.status == "optimal"
        assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("C", [pytest.param(0.5, marks=pytest.mark.slow), 5.0])
def test_equals_enumeration_of_thresholds_on_thirty_samples(C):
    data = random_data(7, n=30, p=1)
    result = Olct(C=C).build(data, 2).solve("highs", **PROVEN)
    expected = enumerated_tree(data.X, data.sign, (C, C), EPSILON, V0, sides_of=thresholds)
    assert result.verified
    assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_thesis_constant_cuts_off_the_optimum_where_weights_are_large():
    # Two samples 0.004 apart: weights of several hundred separate them, so that rows switched off by
    # M = 100 still bind.
    X = np.array([[0.0], [0.498], [0.502], [1.0]])
    data = Dataset.from_arrays(X, np.array([0, 0, 1, 0]))
    proven, limited = (
        Olct(C=1e4, variant=v).build(data, 2).solve("highs", **PROVEN) for v in ("valid", "paper")
    )
    assert proven.verified
    assert proven.objective == pytest.approx(
        enumerated_tree(data.X, data.sign, (1e4, 1e4), EPSILON, V0), rel=1e-6
    )
    assert limited.objective > proven.objective * 1.01


def test_values_nearer_than_the_gap_allows_are_named():
    data = Dataset.from_arrays(np.array([[0.0, 0.0], [5e-6, 1.0], [1.0, 2.0]]), np.array([0, 1, 1]))
    (note,) = UnivariateOlct(variant="paper").bind(data, Topology(2)).notes  # weights are at most 100
    assert note.startswith(f"{data.features[0]} has values nearer to each other than 1e-05")
    assert not UnivariateOlct(variant="paper", epsilon=1e-4).bind(data, Topology(2)).notes
    assert not UnivariateOlct(variant="paper").bind(data, Topology(1)).notes  # there is no gap


def test_univariate_equals_enumeration():
    data = random_data(3, n=5, p=2)
    result = UnivariateOlct(C=2.0).build(data, 2).solve("highs", **PROVEN)
    one_each = [np.array([j]) for j in range(2)]
    expected = enumerated_tree(data.X, data.sign, (2.0, 2.0), EPSILON, V0, features=one_each)
    assert result.verified
    assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert max(map(len, result.tree.features_used().per_node)) <= 1


def test_a_budget_of_all_features_is_olct():
    data = random_data(2, n=7, p=2)
    free = Olct(C=1.0).build(data, 2).solve("highs", **PROVEN)
    budgeted = BudgetedOlct(C=1.0, B=2).build(data, 2).solve("highs", **PROVEN)
    univariate = BudgetedOlct(C=1.0, B=1).build(data, 2).solve("highs", **PROVEN)
    assert budgeted.objective == pytest.approx(free.objective, rel=1e-6)
    assert univariate.objective >= free.objective - 1e-6


def test_equals_scip_on_standardised_real_data(papers_data):
    pytest.importorskip("pyscipopt")
    from independent_routes import scip_optimum

    data = load(str(papers_data / "haberman.csv"), target="target", task="classification")
    some = data.take(np.arange(0, data.n, 24)).with_scaling("standard")
    result = Olct(C=0.5).build(some, 2).solve("highs", **PROVEN)
    expected = scip_optimum(Olct(C=0.5, variant="paper").build(some, 2).model.matrix())
    assert result.verified
    assert result.objective == pytest.approx(expected, rel=1e-5)


# ------------------------------------------------------------------ surrogate and log-loss


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from(["V0", "V1", "V2", "V3", "5"]))
@settings(max_examples=10)
def test_exact_objective_and_errors(seed, depth, tangents):
    rng = np.random.default_rng(seed)
    data = random_data(seed, n=20, p=3)
    formulation = Olct(C=0.7, tangents=tangents, variant="paper")  # nothing to prove before
    instance = formulation.bind(data, Topology(depth))
    tree = random_tree(rng, data, depth, epsilon=1e-5)
    exact, surrogate = formulation.exact_objective(tree, instance), formulation.evaluate(tree, instance)
    assert exact == pytest.approx(exact_by_hand(0.7, tree, data), rel=1e-10)
    report = formulation.report(tree, tree, instance)
    assert same(report["exact_log_loss_objective"], report["refined_log_loss_objective"])
    assert same(report["refined_log_loss_objective"], exact)
    assert -1e-9 <= exact - surrogate <= 0.7 * 20 * depth * report["largest_tangent_error"] + 1e-9
    assert report["largest_tangent_error"] <= report["largest_tangent_error_anywhere"] + 1e-12
    json.dumps(report)


def test_v3_is_nowhere_farther_from_the_log_loss_than_v0():
    data = random_data(1, n=8, p=2)
    coarse, fine = Olct(C=2.0, tangents="V0"), Olct(C=2.0, tangents="V3")
    solved = [formulation.build(data, 2).solve("highs", **PROVEN) for formulation in (coarse, fine)]
    for result in solved:
        tree, instance = result.solved_tree.unscaled(), result.problem.instance
        gaps = [f.exact_objective(tree, instance) - f.evaluate(tree, instance) for f in (coarse, fine)]
        assert gaps[1] >= 0
        assert at_most(gaps[1], gaps[0])
        margins = data.sign[:, None] * tree.scores(data.X)
        errors = [
            log_loss(margins) - LogisticLoss(tangent_points(v)).of_margin(margins) for v in ("V0", "V3")
        ]
        assert (errors[1] <= errors[0] + 1e-12).all()
    # Both optima bound the least exact objective from below, the finer one at least as well.
    assert solved[0].objective <= solved[1].objective + 1e-6
    best = min(fine.exact_objective(result.solved_tree.unscaled(), instance) for result in solved)
    assert solved[1].objective <= best + 1e-6


# ------------------------------------------------------------------ refinement


@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(1, 3),
    C=st.sampled_from([0.01, 1.0, 50.0]),
    kind=st.sampled_from([Olct, BudgetedOlct]),
)
@settings(max_examples=8)
def test_refinement_never_raises_the_exact_objective(seed, depth, C, kind):
    rng = np.random.default_rng(seed)
    data = random_data(seed, n=int(rng.integers(4, 40)), p=3)
    formulation = kind(C=C, variant="paper")  # nothing to prove before
    instance = formulation.bind(data, Topology(depth))
    budget = 2 if kind is BudgetedOlct else None
    tree = random_tree(rng, data, depth, epsilon=1e-5, budget=budget)
    refined = formulation.refine(tree, instance)
    assert (
        formulation.exact_objective(refined, instance) <= formulation.exact_objective(tree, instance) + 1e-9
    )
    upper = list(tree.topology.upper_branches)
    np.testing.assert_array_equal(refined.w[upper], tree.w[upper])
    last = tree.topology.parents
    np.testing.assert_array_equal(last[refined.apply(data.X)], last[tree.apply(data.X)])
    if budget is not None:
        assert ((refined.w != 0) <= (tree.w != 0)).all()
    again = formulation.exact_objective(formulation.refine(refined, instance), instance)
    assert again == pytest.approx(formulation.exact_objective(refined, instance), rel=1e-6, abs=1e-8)


@pytest.fixture(scope="module")
def refined():
    return Olct(C=3.0).build(random_data(2, n=16, p=2), 2).solve("highs", time_limit=20)


def test_refinement_can_be_switched_off(refined):
    data = random_data(2, n=16, p=2)
    on, off = refined, Olct(C=3.0, refinement=False).build(data, 2).solve("highs", time_limit=20)
    assert off.tree.w.tolist() == off.solved_tree.w.tolist()
    assert on.tree.w.tolist() != on.solved_tree.w.tolist()
    kept, better = off.to_dict(), on.to_dict()
    assert same(kept["exact_log_loss_objective"], kept["refined_log_loss_objective"])
    assert less(better["refined_log_loss_objective"], better["exact_log_loss_objective"])
    assert on.verified


def test_refinement_respects_the_constraints_of_users(refined):
    data, free = random_data(2, n=16, p=2), refined
    assert (free.tree.w[1:, 1] != 0).any()
    problem = Olct(C=3.0).build(data, 2)
    problem.model["w"][:, 1].fix(0)
    kept = problem.solve("highs", time_limit=20)
    assert kept.verified
    assert (kept.tree.w[:, 1] == 0).all()
    harmless = Olct(C=3.0).build(data, 2)
    harmless.model.add("harmless", harmless.model["w"].sum() <= 1e4)
    assert harmless.solve("highs", time_limit=20).tree.w.tolist() == free.tree.w.tolist()


def test_a_pure_node_gets_the_log_odds_of_succession():
    data = Dataset.from_arrays(np.array([[0.0], [0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 0, 1, 1]))
    w, b = np.array([[1.0], [0.0], [0.0]]), np.array([-0.5, -1e-3, 1e-3])
    tree = Tree(2, w, b, [0, 1, 0, 1], ("0", "1"))
    instance = Olct().bind(data, Topology(2))
    assert same(Olct().refine(tree, instance).b.tolist(), [-0.5, -np.log(4), np.log(3)])


def test_what_pure_nodes_gain_is_told_apart():
    # The left node is reached by both classes, the right one by class 1 alone, with a weight that costs.
    X, y = np.array([[0.0], [0.1], [0.2], [0.8], [1.0]]), np.array([0, 1, 0, 1, 1])
    data = Dataset.from_arrays(X, y)
    tree = Tree(2, np.array([[1.0], [0.5], [2.0]]), np.array([-0.5, -0.1, -1.0]), [0, 1, 0, 1], ("0", "1"))
    formulation = Olct(C=3.0)
    instance = formulation.bind(data, Topology(2))
    report = formulation.report(tree, formulation.refine(tree, instance), instance)
    scores = data.X[3:, 0] * 2.0 - 1.0
    before = 2.0 + 3.0 * np.log1p(np.exp(-scores)).sum()
    after = 3.0 * 2 * np.log1p(np.exp(-np.log(3)))
    assert report["refinement_gain_at_pure_nodes"] == pytest.approx(before - after)
    gained = report["exact_log_loss_objective"] - report["refined_log_loss_objective"]
    assert less(report["refinement_gain_at_pure_nodes"], gained)
    assert report["refinement_gain_at_pure_nodes"] > 0
    unrefined = formulation.report(tree, tree, instance)
    assert unrefined["refinement_gain_at_pure_nodes"] == 0


# ------------------------------------------------------------------ starts, options


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.1, 1.0, 20.0]))
@settings(max_examples=4)
def test_the_default_start_is_the_best(seed, depth, C):
    rng = np.random.default_rng(seed)
    data = random_data(seed, n=int(rng.integers(5, 16)), p=int(rng.integers(1, 4)))
    formulation = Olct(C=C)
    instance = formulation.bind(data, Topology(depth))
    trees = {name: formulation.start(name, instance) for name in ("greedy-logistic", "cart")}
    greedy = formulation.evaluate(trees["greedy-logistic"], instance)
    assert formulation.evaluate(instance.known, instance) <= greedy + 1e-9
    assert all(tree.logistic for tree in (instance.known, *trees.values()))


def test_real_data_give_a_verified_tree_whenever_time_is_up():
    data = load("breast_cancer", scaling="standard")
    some = data.take(np.arange(0, data.n, 14))
    result = Olct(C=1.0, tangents="V1").build(some, 2).solve("highs", time_limit=0.5)
    assert result.verified
    assert result.tree.logistic
    found = result.to_dict()
    assert at_most(found["refined_log_loss_objective"], found["exact_log_loss_objective"])
    assert at_most(found["bound"], found["objective"])
    assert found["objective"] <= found["warm_start_objective"] + 1e-9


def test_tolerances_stay_below_epsilon():
    formulation = Olct()
    assert formulation.scaling == "standard"
    assert formulation.solver_options["highs"]["mip_feasibility_tolerance"] * 100 < formulation.epsilon
    assert formulation.solver_options["gurobi"]["IntFeasTol"] * 100 < formulation.epsilon
    assert formulation.solver_options["scip"]["numerics/feastol"] * 100 < formulation.epsilon


def test_refuses_unknown_tangents():
    with pytest.raises(ParameterError, match="tangents is 'V7'"):
        Olct(tangents="V7")
