"""Support vector machines at the last level: the definition, enumeration, solvers, searches, limits and refusals."""

import numpy as np
import pytest
from independent_routes import enumerated_margot
from margin_data import random_data, random_tree
from tolerance import at_least, at_most, same

import mipforest
from formulations.margot import Margot
from formulations.svm_leaves import SvmLeaves
from mipforest.data import Dataset
from mipforest.problem.parameters import ParameterError
from mipforest.trees import Topology

pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": None, "gap": 1e-7}


def oblique(seed: int, n: int, p: int = 2) -> Dataset:
    """Labels of an oblique tree of depth 2, a tenth of them flipped, on a grid."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 30, (n, p)) / 29.0
    scores = (X - 0.5) @ rng.normal(size=(p, 3))
    y = np.where(scores[:, 0] > 0, scores[:, 1] > 0, scores[:, 2] > 0) ^ (rng.random(n) < 0.1)
    y[:2] = 0, 1
    return Dataset.from_arrays(X, y, name=f"oblique{seed}", scaling="none")


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_evaluate_charges_weights_everywhere_and_margins_at_the_last_level(depth):
    rng, data = np.random.default_rng(depth), random_data(depth, n=30, p=3)
    model = SvmLeaves(C=5.0)
    instance = model.bind(data, Topology(depth))
    tree = random_tree(rng, data, depth, epsilon=model.epsilon)
    expected = 0.5 * float((tree.w**2).sum())
    for x, sign in zip(data.X, data.sign, strict=True):
        t = 0
        for _ in range(depth - 1):
            t = 2 * t + 2 if x @ tree.w[t] + tree.b[t] >= 0 else 2 * t + 1
        expected += 5.0 * max(0.0, 1.0 - sign * float(x @ tree.w[t] + tree.b[t]))
    assert same(model.evaluate(tree, instance), expected)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("seed", "n", "C"),
    [
        (0, 6, (0.0, 1.0)),
        (1, 7, (0.0, 100.0)),
        pytest.param(2, 8, (0.0, 0.1), marks=pytest.mark.slow),  # other penalties, as of seeds 0 and 1
        pytest.param(
            3, 6, (0.0, 0.0, 10.0), marks=pytest.mark.slow
        ),  # depth three is in routing's cases below
    ],
)
def test_solvers_and_routing_equal_enumeration(seed, n, C):
    data, depth = oblique(seed, n), len(C)
    expected = enumerated_margot(data.X, data.sign, C, depth, SvmLeaves().epsilon)
    for solver in ("highs", "gurobi", "scip", "routing"):
        result = SvmLeaves(C=C[-1]).build(data, depth).solve(solver, **PROVEN)
        assert result.verified, (solver, result.failed_checks)
        assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-6), solver
        assert result.bound <= expected * (1 + 1e-6) + 1e-6, solver


def routing_agrees_with_enumeration(seed, statuses=("optimal",)):
    depth = 2 + seed % 2
    data, C = oblique(seed, n=7 + seed % 3, p=1 + seed % 3), 10.0 ** (seed % 4 - 1)
    result = SvmLeaves(C=C).build(data, depth).solve("routing", time_limit=60, threads=1)
    expected = enumerated_margot(data.X, data.sign, (0.0,) * (depth - 1) + (C,), depth, 1e-3)
    assert result.status in statuses
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert all(event.bound <= expected * (1 + 1e-6) + 1e-6 for event in result.solution.events)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_routing_proves_the_optimum_of_enumeration(seed):
    routing_agrees_with_enumeration(seed)


#: Sides that no hyperplane keeps: the dual of their node has no limit, and its value stays far below the cutoff.
SLOW_DUAL = 27


@pytest.mark.slow
def test_routing_ends_with_a_true_bound_where_a_dual_without_a_limit_rises_slowly():
    routing_agrees_with_enumeration(SLOW_DUAL, statuses=("optimal", "limit"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [seed for seed in range(4, 40) if seed != SLOW_DUAL])
def test_routing_proves_the_optimum_of_enumeration_in_more_cases(seed):
    routing_agrees_with_enumeration(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_routing_and_a_matrix_solver_prove_the_same_value(seed):
    data, C = oblique(seed, n=16 + 2 * seed), 10.0 ** (seed % 3)
    found = [SvmLeaves(C=C).build(data, 2).solve(solver, time_limit=120) for solver in ("routing", "gurobi")]
    values, bounds = [result.objective for result in found], [result.bound for result in found]
    assert at_most(max(bounds), min(values) * (1 + 1e-6) + 1e-6)
    assert max(values) == pytest.approx(min(values), rel=2e-4, abs=1e-6)  # both end within a gap of 1e-4


def test_depth_one_is_margot():
    data = oblique(4, n=30)
    values = [
        model(C=3.0).build(data, 1).solve("routing", gap=1e-8).objective for model in (SvmLeaves, Margot)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.slow
def test_labels_of_an_oblique_tree_are_recovered_where_margot_stays_near_one_machine():
    """An exclusive or: one machine is right on about half, and the root of MARGOT pays for all of it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 2))
    X = X[(np.abs(X) > 0.1).all(axis=1)]
    data = Dataset.from_arrays(X, (X > 0).sum(axis=1) == 1, scaling="none")
    problem = SvmLeaves(C=10.0).build(data, 2)
    found = problem.solve("local-search", solver_options={"starts": 4, "kicks": 4})
    assert found.verified
    assert found.measures(data)["accuracy"] == 1.0  # exact: counted samples
    margot = Margot(C=10.0).build(data, 2).solve("local-search", solver_options={"starts": 4, "kicks": 4})
    assert at_most(found.objective, 0.2 * margot.objective)


@pytest.mark.slow
def test_the_local_search_reaches_proven_optima_and_its_bound_holds():
    for seed in range(4):
        problem = SvmLeaves(C=10.0).build(oblique(seed, n=12), 2)
        optimum = problem.solve("routing", threads=1, gap=1e-6)
        found = problem.solve("local-search", threads=1, solver_options={"starts": 5, "kicks": 6})
        assert found.verified
        assert at_least(found.objective, optimum.bound)
        assert at_most(found.bound, optimum.objective)
        assert found.objective == pytest.approx(optimum.objective, rel=1e-4, abs=1e-6)


def test_equal_samples_of_both_classes_are_a_bound_of_the_local_search():
    data = oblique(1, n=20)
    X, y = np.vstack([data.X, data.X[:3]]), np.concatenate([data.y, 1 - data.y[:3]])
    problem = SvmLeaves(C=2.0).build(Dataset.from_arrays(X, y, scaling="none"), 2)
    found = problem.solve("local-search", solver_options={"starts": 2, "kicks": 2})
    # Each pair is charged at least 1 - s and 1 + s, times C.
    assert found.bound == pytest.approx(2.0 * 2.0 * 3, rel=1e-6)
    assert at_most(found.bound, found.objective)


def test_starts_are_feasible_and_polished():
    data = oblique(2, n=60, p=3)
    problem = SvmLeaves(C=10.0).build(data, 3)
    model, instance = problem.formulation, problem.instance
    values = {}
    for name in model.starts:
        tree = model.start(name, instance)
        assert problem.model.violations(model.encode(tree, instance)).max <= 1e-6
        values[name] = model.evaluate(tree, instance)
        assert values[name] == pytest.approx(model.evaluate(model.polish(tree, instance), instance), rel=1e-6)
    assert at_most(values["svm-path"], values["cart"])


def test_a_start_of_many_samples_is_better_than_one_machine():
    data = mipforest.load("synthetic:tree,depth=3,density=5,n=2500,p=5,seed=1,label_noise=0.05")
    values = []
    for depth in (1, 2):
        problem = SvmLeaves().build(data, depth, declare=False)
        values.append(problem.formulation.evaluate(problem.start_tree(), problem.instance))
    assert at_most(values[1], 0.95 * values[0])


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("depth", [2, 3])
def test_certificates_are_those_of_nodes_without_a_loss(tmp_path, depth):
    problem = SvmLeaves(C=10.0).build(oblique(4, n=12), depth)
    result = problem.solve("routing", certificate=tmp_path / "proof.gz", threads=1)
    found = mipforest.certify(tmp_path / "proof.gz")
    assert found.C[: 2 ** (depth - 1)] == (*(0.0,) * (2 ** (depth - 1) - 1), 10.0)  # exact: written and read
    assert found.bound == pytest.approx(result.bound)
    assert found.objective == pytest.approx(result.objective, rel=1e-9)


@pytest.mark.parametrize("C", [0.0, -1.0, (1.0, 2.0)])
def test_one_penalty_above_zero_is_taken(C):
    with pytest.raises(ParameterError, match="parameter C"):
        SvmLeaves(C=C)
