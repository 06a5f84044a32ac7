"""Line moves change the objective by what they predict; annealing descends along true slopes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad
from tolerance import at_most, less

from mipforest.searches.hyperplanes import HyperplaneProblem, Hyperplanes
from mipforest.searches.hyperplanes.annealing import _expected, annealed
from mipforest.searches.hyperplanes.line_moves import Line, LineDescent, best_on, random_line

#: Sums of some hundred losses, with costs of 100: rounding is a thousandth of this.
PREDICTION = 1e-7

HINGE = np.array([[1.0, 1.0]])
KINKS = np.array([[-1.0, 0.3], [0.5, 0.4], [2.0, 0.3]])


def problem_of(
    seed: int, depth: int = 3, n: int = 60, kinks: np.ndarray = HINGE, **others: Any
) -> HyperplaneProblem:
    rng = np.random.default_rng(seed)
    return HyperplaneProblem(
        X=rng.uniform(size=(n, 4)),
        sign=np.where(rng.random(n) < 0.5, 1.0, -1.0),
        weight=rng.uniform(0.5, 2.0, n),
        C=10.0 ** rng.uniform(-1, 2, 2**depth - 1),
        kinks=kinks,
        epsilon=1e-2,
        **others,
    )


def free_above(depth: int) -> np.ndarray:
    """Penalties that charge losses at the last level only."""
    return np.where(np.arange(2**depth - 1) < 2 ** (depth - 1) - 1, 0.0, 10.0)


def tree_of(problem: HyperplaneProblem, rng: np.random.Generator) -> Hyperplanes:
    w = rng.normal(size=(problem.n_branches, problem.X.shape[1]))
    if problem.budget is not None:
        w[:, rng.integers(4)] = 0.0
    return problem.valued(Hyperplanes(w, -(w * 0.5).sum(axis=1)))


@pytest.mark.first_cases(6)
@pytest.mark.parametrize("kinks", [HINGE, KINKS])
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("kind", ["l2", "l1", "budget", "last"])
def test_the_predicted_change_is_that_of_the_objective_on_1000_moves(kinks, depth, kind):
    moved = 0
    for seed in range(25):
        problem, rng = problem_of(seed, depth, kinks=kinks, l1=kind == "l1"), np.random.default_rng(seed)
        if kind == "budget":
            problem = replace(problem, budget=np.full(problem.n_branches, 2), alpha=3.0)
        elif kind == "last":
            problem = replace(problem, C=free_above(depth))
        tree = tree_of(problem, rng)
        scores = problem.scores(tree)
        costs, members = problem.costs(scores), problem.members(scores)
        for _ in range(10):
            t = int(rng.integers(problem.n_upper))
            rows = members[t]
            if len(rows) < 2:
                continue
            line = random_line(problem, tree, t, rows, rng)
            difference = costs[rows, 2 * t + 2] - costs[rows, 2 * t + 1]
            step, change = best_on(problem, tree, line, rows, scores[rows, t], difference)
            after = problem.valued(tree.moved(t, tree.w[t] + step * line.e, float(tree.b[t] + step * line.f)))
            assert after.value - tree.value == pytest.approx(change, abs=PREDICTION * tree.value)
            assert at_most(change, 0.0)
            moved += 1
    assert moved > 200  # of each case


def test_no_point_of_the_line_is_better():
    problem, rng = problem_of(1), np.random.default_rng(1)
    tree = tree_of(problem, rng)
    scores = problem.scores(tree)
    costs, members = problem.costs(scores), problem.members(scores)
    for _ in range(10):
        line = random_line(problem, tree, 0, members[0], rng)
        _, change = best_on(problem, tree, line, members[0], scores[:, 0], costs[:, 2] - costs[:, 1])
        largest = np.abs(problem.X @ line.e + line.f).max()
        for step in np.linspace(-2, 2, 400) * (np.abs(scores[:, 0]).max() + 0.1) / largest:
            moved = tree.moved(0, tree.w[0] + step * line.e, float(tree.b[0] + step * line.f))
            assert at_most(change, problem.valued(moved).value - tree.value)


def test_a_price_is_charged_for_samples_between_the_sides():
    problem, rng, price = problem_of(2), np.random.default_rng(2), 5.0

    def priced(tree):
        charge = sum(
            float((problem.C[t] * problem.weight[rows])[(s < 0) & (s > -problem.epsilon)].sum())
            for t, rows, s in problem.visits(tree)
            if t == 0
        )
        return problem.valued(tree).value + price * charge

    tree = tree_of(problem, rng)
    scores = problem.scores(tree)
    costs, members = problem.costs(scores), problem.members(scores)
    for _ in range(50):
        line = random_line(problem, tree, 0, members[0], rng)
        step, change = best_on(
            problem, tree, line, members[0], scores[:, 0], costs[:, 2] - costs[:, 1], price=price
        )
        moved = tree.moved(0, tree.w[0] + step * line.e, float(tree.b[0] + step * line.f))
        assert priced(moved) - priced(tree) == pytest.approx(change, abs=PREDICTION * tree.value)


def test_a_line_that_moves_no_score_changes_nothing():
    problem = problem_of(3)
    tree = tree_of(problem, np.random.default_rng(3))
    descent = LineDescent(problem, tree)
    assert not descent.try_line(Line(0, np.zeros(4), 0.0))
    assert np.array_equal(descent.tree.w, tree.w)


def test_moves_lower_the_objective():
    problem, rng = problem_of(4), np.random.default_rng(4)
    tree = tree_of(problem, rng)
    descent, value = LineDescent(problem, tree), tree.value
    for _ in range(40):
        t = int(rng.integers(problem.n_upper))
        if len(descent.members[t]) > 1:
            descent.try_line(random_line(problem, descent.tree, t, descent.members[t], rng))
            now = problem.valued(descent.tree).value
            assert at_most(now, value)
            value = now


@pytest.mark.parametrize("l1", [False, True])
def test_annealing_and_lines_keep_the_features_of_a_budget(l1):
    problem = problem_of(7, n=200, l1=l1, budget=np.full(7, 2))
    rng = np.random.default_rng(7)
    w = np.zeros((7, 4))
    for t in range(7):
        w[t, rng.choice(4, 2, replace=False)] = rng.normal(size=2)
    tree = problem.valued(Hyperplanes(w, -0.5 * w.sum(axis=1)))
    found = problem.valued(annealed(problem, tree, (0.3, 0.1)))
    assert less(found.value, tree.value)
    descent = LineDescent(problem, found)
    for _ in range(20):
        t = int(rng.integers(3))
        if len(descent.members[t]) > 1:
            descent.try_line(random_line(problem, descent.tree, t, descent.members[t], rng))
    assert not descent.tree.w[w == 0.0].any()


@pytest.mark.parametrize("kinks", [HINGE, KINKS])
def test_the_slopes_of_the_smoothed_tree_are_those_of_its_value(kinks):
    problem = problem_of(5, kinks=kinks, n=5)
    charge = np.outer(problem.C, problem.weight)
    shape = (problem.n_branches, 5)

    def value(point):
        return _expected(problem, point.reshape(shape), charge, 0.3)[0]

    def slope(point):
        return _expected(problem, point.reshape(shape), charge, 0.3)[1].ravel()

    point = np.random.default_rng(5).normal(size=shape).ravel()
    # Finite differences of step 1.5e-8 are accurate to the square root of rounding, times the slopes.
    assert check_grad(value, slope, point) < 1e-5 * np.linalg.norm(slope(point))


def test_annealing_improves_a_poor_tree_and_ends_when_it_is_told():
    problem = problem_of(6, n=200)
    tree = tree_of(problem, np.random.default_rng(6))
    assert problem.valued(annealed(problem, tree, (0.3, 0.1, 0.03))).value < 0.8 * tree.value
    asked = []
    annealed(problem, tree, (0.3, 0.1), should_stop=lambda: bool(asked.append(1)) or len(asked) > 3)
    assert len(asked) == 4
