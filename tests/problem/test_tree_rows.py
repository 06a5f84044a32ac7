"""Rows by hand on labels of leaves, on where samples go and on thresholds: kept by completing the trees of a list."""

import numpy as np
import pytest
from tolerance import at_most, same

import mipforest
from mipforest.data import Dataset
from mipforest.problem.constraints import AtMostSplits, TreeRows
from mipforest.solvers.solution import Status

#: What the tolerance of HiGHS on integer values is worth in the objective, at most.
ACCURACY = 1e-6


def built(model="oct", depth=2, seed=0, n=12, p=3, classes=2, **parameters):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, p)) * rng.integers(2, 9)) / 8
    names = [f"x{j}" for j in range(p)]
    if model == "ort":
        data = Dataset.from_arrays(X, np.round(4 * rng.random(n)), features=names, task="regression")
    else:
        y = rng.integers(0, classes, n)
        y[:classes] = np.arange(classes)
        data = Dataset.from_arrays(X, y, features=names)
    return mipforest.get_formulation(model)(**parameters).build(data, depth)


class Rows:
    """Rows of some kinds, drawn for a problem."""

    def __init__(self, problem, seed):
        self.problem, self.rng = problem, np.random.default_rng(10_000 + seed)
        self.kinds = [self.thresholds, self.apart, self.in_leaf, self.splits]
        if "c" in problem.model.variables:
            self.kinds += [self.label, self.label_or_split, self.own, self.predicted]

    def draw(self):
        for number in range(int(self.rng.integers(1, 4))):
            self.kinds[int(self.rng.integers(len(self.kinds)))](f"drawn_{number}")

    def one(self, among):
        return int(self.rng.integers(among))

    @property
    def leaves(self):
        return self.problem.formulation.expressions(self.problem.model, self.problem.instance).leaves()

    def thresholds(self, name):
        u = self.problem.model["u"]
        t, s = self.rng.choice(u.shape[0], 2, replace=False).tolist()
        weights = self.rng.integers(-1, 2, (2, u.shape[1])).astype(float)
        self.problem.model.add(name, weights[0] @ u[t] + weights[1] @ u[s] <= self.one(3) - 1.0)

    def apart(self, name):
        z, (i, k) = self.leaves, self.rng.choice(self.problem.data.n, 2, replace=False).tolist()
        t = self.one(z.shape[1])
        self.problem.model.add(name, z[i, t] + z[k, t] <= 1)

    def in_leaf(self, name):
        z = self.leaves
        self.problem.model.add(name, z[self.one(z.shape[0]), self.one(z.shape[1])] == 1)

    def splits(self, name):
        d = self.problem.model["d"]
        self.problem.model.add(name, d.sum() >= self.one(d.size + 1))

    def label(self, name):
        c = self.problem.model["c"]
        self.problem.model.add(name, c[self.one(c.shape[0]), self.one(c.shape[1])] == self.one(2))

    def label_or_split(self, name):
        m = self.problem.model
        self.problem.model.add(
            name, m["d"][self.one(m["d"].size)] + m["c"][0, self.one(m["c"].shape[1])] >= 1
        )

    def own(self, name):
        m = self.problem.model
        binary = m.binary(name, 2)
        m.add(f"{name}_paid", m["c"][0] <= binary[0] + self.one(2) * binary[1])
        m.add(f"{name}_room", m["d"].sum() + 2 * binary.sum() <= 2 + self.one(3))

    def predicted(self, name):
        m, n = self.problem.model, self.problem.data.n
        expressions = self.problem.formulation.expressions(m, self.problem.instance)
        m.add(name, expressions.predicted(0)[: n // 2].sum() <= self.one(n // 2 + 1))


@pytest.mark.first_cases(8)
@pytest.mark.parametrize("seed", range(200))
def test_the_optimum_is_that_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    given = {"alpha": float(rng.choice([0.0, 0.02, 0.1])), "N_min": int(rng.choice([1, 1, 2]))}
    given |= {"variant": str(rng.choice(["tight", "valid"])), "n": int(rng.integers(6, 11)), "seed": seed}
    if seed % 4 == 3:
        given |= {"model": "ort", "loss": str(rng.choice(["absolute", "squared"]))}
    given |= {"depth": 3, "n": 7, "p": 2} if seed % 10 == 9 else {"classes": 2 + seed % 2}
    problem, other = built(**given), built(**given)
    for one in (problem, other):
        Rows(one, seed).draw()
    deep = given.get("depth") == 3
    found = problem.solve("exact-search", time_limit=10 if deep else 60)
    known = other.solve("highs", start="none", gap=1e-9, time_limit=60)
    assert not found.failed_checks
    if deep and found.solution.status is Status.TIME_LIMIT:  # there are many trees of seven splits
        if known.solution.status is Status.OPTIMAL:
            assert at_most(found.bound, known.objective + ACCURACY)
        return
    assert found.solution.status is known.solution.status
    if known.solution.status is Status.OPTIMAL:
        assert found.objective == pytest.approx(known.objective, abs=ACCURACY)
        assert all(one.holds(found.tree, problem.data).met for one in problem.constraints)


def test_auto_lists_trees_first_and_leaves_the_rest_to_the_rows():
    problem = built(alpha=0.02)
    m = problem.model
    m.add("first_leaf", m["c"][1, 0] == 1)
    m.add("few_splits", m["d"].sum() <= 2)
    result = problem.solve(time_limit=60)
    assert [type(one) for one in problem.constraints] == [AtMostSplits, TreeRows]
    assert result.solution.solver == "exact-search"  # proven before HiGHS was called
    assert result.solution.status is Status.OPTIMAL
    assert result.verified, result.failed_checks
    again = problem.with_only(problem.constraints).solve("exact-search", time_limit=60)
    assert same(again.objective, result.objective)


def test_a_bound_that_is_set_on_a_label_is_kept():
    problem, other = built(alpha=0.02), built(alpha=0.02)
    problem.model["c"][1, 0].fix(1)
    other.model.add("first_leaf", other.model["c"][1, 0] == 1)
    found = problem.solve("exact-search", time_limit=60)
    assert [type(one) for one in problem.constraints] == [TreeRows]
    assert found.verified, found.failed_checks
    assert same(found.objective, other.solve("exact-search", time_limit=60).objective)
    again = problem.with_only(problem.constraints).solve("exact-search", time_limit=60)
    assert same(again.objective, found.objective)


def test_a_bound_within_rows_is_no_bound_without_them():
    """What is proven within rows does not stay with the problem when these are gone."""
    problem = built(alpha=0.02)
    problem.model.add("first_leaf", problem.model["c"][1, 0] == 1)
    within = problem.solve(time_limit=60)
    free = within.problem.with_only(())
    result = free.solve("highs", time_limit=60)
    assert at_most(result.solution.bound, result.objective)
    assert at_most(result.objective, within.objective)
    assert result.verified, result.failed_checks
