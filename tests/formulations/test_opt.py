"""OPT: the definition summed directly, model and searches against enumeration, special cases, constraints."""

from itertools import product

import numpy as np
import pytest
from tolerance import at_most, less

from formulations.opt import Opt, OptH
from formulations.opt_l import OptL
from formulations.ort import Ort
from mipforest.data import DataError, Dataset
from mipforest.problem.parameters import ParameterError
from mipforest.testing.formulation_conformance import repeated
from mipforest.trees import Topology, Tree


def small(n: int = 14, seed: int = 0, m: int = 2, levels: int = 5) -> Dataset:
    """Two features on a grid, with ties; which treatment is better depends on the first."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, 2)).astype(float)
    had = rng.permutation(np.arange(n) % m)
    y = np.round(np.where(had == 0, X[:, 0], levels - X[:, 0]) + rng.standard_normal(n), 2)
    return Dataset.from_arrays(X, y, treatments=np.array(["a", "b", "c"])[had])


def charged(leaf, y, z, mu, n_treatment):
    """Return the best value of a tree by its leaves, summed sample by sample as the definition says."""
    total = 0.0
    for label in np.unique(leaf):
        here = np.flatnonzero(leaf == label)
        mean = {t: y[[i for i in here if z[i] == t]].mean() for t in np.unique(z[here])}
        error = sum((y[i] - mean[z[i]]) ** 2 for i in here)
        options = [
            mu * sum(y[i] if z[i] == tau else mean[tau] for i in here) + (1 - mu) * error
            for tau in mean
            if (z[here] == tau).sum() >= n_treatment
        ]
        total += min(options, default=np.inf)
    return total / len(y)


def enumerated(data, depth, mu, n_treatment, N_min=1, split_cost=0.0):
    """Return the least value of all trees of a depth, one by one."""
    X, y, z = data.X_raw, np.asarray(data.y), data.treatments
    cuts = [None, *((j, v) for j in range(data.p) for v in np.unique(X[:, j])[1:])]
    best = np.inf
    for chosen in product(cuts, repeat=2**depth - 1):
        leaf, used = np.zeros(data.n, int), 0
        for t, cut in enumerate(chosen):
            used += cut is not None
            if cut is not None:
                leaf = np.where(
                    (leaf == t) & (X[:, cut[0]] >= cut[1]), 2 * t + 2, np.where(leaf == t, 2 * t + 1, leaf)
                )
        if np.unique(leaf, return_counts=True)[1].min() >= N_min:
            best = min(best, charged(leaf, y, z, mu, n_treatment) + split_cost * used / data.n)
    return best


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("better", ["lower", "higher"])
def test_the_value_of_a_tree_is_the_definition_summed_sample_by_sample(m, better):
    data = small(40, seed=m, m=m)
    formulation = Opt(mu=0.4, n_treatment=2, better=better)
    instance = formulation.bind(data, Topology(2))
    y = np.asarray(data.y) if better == "lower" else -np.asarray(data.y)
    rng = np.random.default_rng(4)
    for _ in range(5):
        w, b = np.eye(2)[rng.integers(0, 2, 3)], -rng.random(3)
        tree = formulation.relabel(Tree(2, w, b, np.zeros(4), data.classes), instance)
        expected = charged(tree.apply(data.X), y, data.treatments, 0.4, 2)
        assert formulation.evaluate(tree, instance) == pytest.approx(expected, abs=1e-12) or np.isinf(
            expected
        )
        # The same from what the tree says: prescriptions and estimated outcomes.
        prescribed, estimates = tree.predict(data.X), tree.predict_outcomes(data.X)
        own = estimates[np.arange(data.n), data.treatments]
        under = np.where(prescribed == data.treatments, data.y, estimates[np.arange(data.n), prescribed])
        sign = 1 if better == "lower" else -1
        direct = 0.4 * sign * under.mean() + 0.6 * ((data.y - own) ** 2).mean()
        if np.isfinite(expected):
            assert direct == pytest.approx(expected, abs=1e-12)


CASES = [
    (1, 0.5, 1, 1, 0.0),
    (1, 1.0, 3, 2, 0.1),
    (2, 0.5, 2, 1, 0.05),
    (2, 0.0, 1, 2, 0.0),
    (2, 1.0, 2, 2, 0.02),
]


@pytest.mark.parametrize(("depth", "mu", "n_treatment", "N_min", "alpha"), CASES)
def test_search_and_local_search_find_what_enumeration_finds(depth, mu, n_treatment, N_min, alpha):
    for seed, m in ((0, 2), (1, 3)):
        data = small(12, seed, m, levels=4)
        formulation = Opt(mu=mu, n_treatment=n_treatment, N_min=N_min, alpha=alpha)
        problem = formulation.build(data, depth)
        cost = alpha * problem.instance.leaves.baseline
        expected = enumerated(data, depth, mu, n_treatment, N_min, cost)
        result = problem.solve()
        assert (result.solution.solver, result.status, result.verified) == (
            "prescription-search",
            "optimal",
            True,
        )
        assert result.objective == pytest.approx(expected, abs=1e-9)
        assert at_most(result.bound, result.objective)
        local = problem.solve("local-search", solver_options={"starts": 20, "kicks": 20})
        assert local.verified
        assert local.objective == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("depth", "mu", "n_treatment", "N_min", "alpha"),
    [
        CASES[0],
        CASES[1],
        pytest.param(*CASES[2], marks=pytest.mark.slow),
        pytest.param(*CASES[3], marks=pytest.mark.slow),
    ],
)
def test_the_model_has_the_optimum_of_enumeration(depth, mu, n_treatment, N_min, alpha):
    data = small(10, 2, levels=3)
    formulation = Opt(mu=mu, n_treatment=n_treatment, N_min=N_min, alpha=alpha)
    result = formulation.build(data, depth).solve("highs", start=None, gap=1e-7)
    cost = alpha * result.problem.instance.leaves.baseline
    assert (result.status, result.verified) == ("optimal", True)
    assert result.objective == pytest.approx(enumerated(data, depth, mu, n_treatment, N_min, cost), abs=1e-6)


@pytest.mark.parametrize("model", [Opt, pytest.param(OptL, marks=pytest.mark.slow)])
def test_searches_and_leaves_take_whole_weights_as_repeated_samples(model):
    data, counts = small(12, 3, levels=4), 1 + np.arange(12) % 3
    formulation = model(n_treatment=1, alpha=0.05, mu=0.4, outcome_scale="standard", better="higher")
    weighted, again = data.with_weights(counts), repeated(data, counts)
    for solver in ("prescription-search", "local-search"):
        first, second = (formulation.build(one, 2).solve(solver) for one in (weighted, again))
        assert first.verified
        assert second.verified
        assert first.objective == pytest.approx(second.objective, rel=1e-6)
    np.testing.assert_allclose(
        formulation.start("greedy", formulation.bind(weighted, Topology(2))).outcomes,
        formulation.start("greedy", formulation.bind(again, Topology(2))).outcomes,
    )


def test_the_least_number_of_samples_with_a_treatment_counts_samples_whatever_they_weigh():
    data = small(12, 3).with_weights(np.full(12, 100.0))
    with pytest.raises(DataError, match="no treatment of data was given more than 6 times"):
        Opt(n_treatment=7).build(data, 1)
    few = Opt(n_treatment=4).build(data, 2).solve()
    free = Opt(n_treatment=4).build(small(12, 3), 2).solve()
    assert few.objective == pytest.approx(free.objective)


def test_with_mu_0_prescriptions_do_not_count():
    data = small(30, 5)
    formulation = Opt(mu=0.0, n_treatment=1)
    result = formulation.build(data, 2).solve()
    tree = result.tree.unscaled()
    other = Tree(2, tree.w, tree.b, 1 - tree.leaf_value, tree.classes, tree.features, outcomes=tree.outcomes)
    assert formulation.evaluate(other, result.problem.instance) == pytest.approx(result.objective, abs=1e-12)


@pytest.mark.parametrize("mu", [0.0, 0.5, 0.9])
def test_with_one_treatment_the_tree_is_a_regression_tree(mu):
    data = small(30, 6, m=1)
    regression = Dataset.from_arrays(data.X_raw, data.y, task="regression")
    ort = Ort(alpha=0.02 / (1 - mu)).build(regression, 2).solve(gap=0)
    opt = Opt(mu=mu, n_treatment=1, alpha=0.02).build(data, 2).solve()
    errors = ((np.asarray(data.y) - opt.tree.predict_outcomes(data.X_raw)[:, 0]) ** 2).sum()
    baseline = ((data.y - data.y.mean()) ** 2).sum()
    # The best trees may differ, their value does not.
    value = errors / baseline + 0.02 / (1 - mu) * opt.tree.n_splits
    assert value == pytest.approx(ort.objective, abs=1e-7)


def test_a_shift_changes_no_tree_and_relabelled_treatments_relabel_prescriptions():
    data = small(60, 7)
    first = Opt(n_treatment=3).build(data, 2).solve()
    shifted = Dataset.from_arrays(data.X_raw, data.y + 100, treatments=1 - data.treatments)
    second = Opt(n_treatment=3).build(shifted, 2).solve()
    assert second.objective == pytest.approx(first.objective + 50, abs=1e-9)
    np.testing.assert_array_equal(second.tree.predict(data.X_raw), 1 - first.tree.predict(data.X_raw))


def test_no_leaf_prescribes_what_too_few_samples_had():
    data = small(60, 8, m=3)
    for solver in ("auto", "local-search"):
        result = Opt(n_treatment=6, mu=1.0).build(data, 2).solve(solver)
        leaves = result.tree.apply(data.X_raw)
        for leaf in np.unique(leaves):
            here = leaves == leaf
            tau = result.tree.leaf_value[leaf - 3]
            assert (data.treatments[here] == tau).sum() >= 6  # exact: names of treatments


def test_with_many_samples_starts_of_the_local_search_work_on_a_part(monkeypatch):
    from mipforest.searches.local import search

    data = small(400, 10)
    formulation = Opt(n_treatment=20)
    expected = formulation.build(data, 2).solve().objective
    monkeypatch.setattr(search, "MANY", 100)
    found = formulation.build(data, 2).solve("local-search", solver_options={"starts": 6, "kicks": 5})
    assert found.verified
    assert found.objective == pytest.approx(expected, rel=0.05)


def test_a_constraint_on_prescriptions_is_obeyed():
    data = small(10, 9, levels=3)
    problem = Opt(n_treatment=1, mu=1.0).build(data, 1)
    free = problem.solve()
    predicted = problem.formulation.expressions(problem.model, problem.instance).predicted(0)
    few = int((free.tree.predict(data.X_raw) == 0).sum()) - 1
    problem.model.add("budget", predicted.sum() <= few)
    result = problem.solve()
    assert (result.status, result.verified) == ("optimal", True)
    assert (result.tree.predict(data.X_raw) == 0).sum() <= few
    assert less(free.objective, result.objective)


def test_hyperplanes_are_no_worse_than_univariate_splits():
    rng = np.random.default_rng(1)
    X = rng.random((60, 2))
    had = rng.integers(0, 2, 60)
    y = np.where((X.sum(axis=1) > 1) == had, 0.0, 5.0) + 0.1 * rng.standard_normal(60)
    data = Dataset.from_arrays(X, y, treatments=had)
    straight = Opt(n_treatment=2).build(data, 1).solve()
    oblique = (
        OptH(n_treatment=2).build(data, 1).solve("local-search", solver_options={"starts": 5, "kicks": 5})
    )
    assert oblique.verified
    assert oblique.tree.is_oblique
    assert oblique.objective < straight.objective - 0.5


def test_what_does_not_fit_is_refused():
    with pytest.raises(ParameterError, match="from 0 to 1"):
        Opt(mu=1.5)
    with pytest.raises(DataError, match="no treatment of data was given more than 7 times"):
        Opt().build(small(), 1)
    with pytest.raises(DataError, match="has no column of treatments"):
        Opt().build(Dataset.from_arrays(np.eye(4), [0, 1, 0, 1]), 1)
