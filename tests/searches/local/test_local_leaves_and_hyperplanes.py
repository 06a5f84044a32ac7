"""The local search of trees with hyperplane splits, and with linear leaves."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from tolerance import at_most, less, same
from univariate_cases import LOSSES, leaf_cost, noisy, numbers

from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.ort import Ort, OrtH
from formulations.ort_l import OrtL, OrtLH
from mipforest.data import Dataset, load
from mipforest.searches import entry
from mipforest.searches.local import LocalProblem, LocalTree
from mipforest.searches.local.descent import _enter
from mipforest.searches.local.search import local_search, samples_of
from mipforest.searches.local.state import LEAF, NONE, OWN, Members, workspace_for
from mipforest.searches.local.sweeps import _best_coefficient, _best_threshold, _score

# ---------------------------------------------------------------------- hyperplanes


def diagonal(n=120):
    """Two classes on both sides of an oblique line, apart from it."""
    rng = np.random.default_rng(0)
    X = rng.random((2 * n, 3))
    score = X[:, 0] - 0.7 * X[:, 1] + 0.3 * X[:, 2] - 0.25
    X = X[np.abs(score) > 0.03][:n]
    return Dataset.from_arrays(X, (X[:, 0] - 0.7 * X[:, 1] + 0.3 * X[:, 2] > 0.25).astype(int))


@pytest.mark.slow  # kernels of hyperplanes take half a minute to compile
def test_one_hyperplane_is_found_where_univariate_splits_need_many():
    data = diagonal()
    for formulation, depth in ((OctH(), 1), (OctH(alpha=0.01, N_min=4), 2)):
        problem = formulation.build(data, depth)
        result = problem.solve("local-search", solver_options={"starts": 4, "kicks": 10})
        assert result.verified, result.failed_checks
        assert result.objective <= 0.1
        assert less(
            result.objective,
            formulation.evaluate(formulation.start("cart", problem.instance), problem.instance),
        )


@pytest.mark.slow
def test_samples_that_come_to_a_node_when_a_split_above_changes_keep_its_margin():
    failed = {}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        data = Dataset.from_arrays(rng.random((10, 2)), np.round(rng.normal(size=10), 1), task="regression")
        problem = OrtH(alpha=0.02, mu=0.05).build(data, 2 + seed % 2)
        result = problem.solve("local-search", start=None, solver_options={"starts": 4, "kicks": 20})
        if not result.verified:
            failed[seed] = result.failed_checks
    assert not failed


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES[1:])
def test_hyperplanes_of_regression_trees_are_verified_and_no_worse_than_univariate_splits(loss):
    data = load("diabetes").take(np.arange(0, 442, 6))
    charges = {"loss": loss, "alpha": 0.01, "N_min": 3}
    own, plain = (f.build(data, 2) for f in (OrtH(**charges), Ort(**charges, variant="paper")))
    options = {"starts": 3, "kicks": 5}
    result = own.solve("local-search", solver_options=options)
    assert result.verified, result.failed_checks
    assert at_most(result.objective, own.formulation.evaluate(own.start_tree("cart"), own.instance))
    # Without the margin, every univariate tree is one of hyperplanes.
    free = replace(LocalProblem.of(own.structure, own.data.X), margin=0.0)
    start = plain.solve("local-search", solver_options=options)
    found = local_search(
        free, 2, starts=0, kicks=0, trees=[LocalTree(start.tree.unscaled().w, start.tree.unscaled().b)]
    )
    assert found.value <= start.objective + 1e-9


@entry
def all_thresholds(samples, work, k):
    """Sweep all thresholds without coefficient k of the hyperplane at work, of two leaves."""
    root = Members(samples.order, 0, len(work.scores))
    _score(samples, work, root)
    _best_threshold(samples, work, root, _enter(samples, work, 0, root)[3], k, 0.0, -np.inf)


@entry
def all_coefficients(samples, work, k):
    """Sweep all values of coefficient k of the hyperplane at work, of two leaves."""
    root = Members(samples.order, 0, len(work.scores))
    _score(samples, work, root)
    _best_coefficient(samples, work, root, _enter(samples, work, 0, root)[3], k, 0.0, -np.inf)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_every_value_of_a_coefficient_and_of_a_threshold_is_that_of_its_hyperplane(loss):
    problem = replace(noisy(n=50) if loss == "classes" else numbers(n=50, loss=loss), margin=0.0)
    problem.X[:5] = 0.0  # these stay on their side whatever the coefficient
    cost = leaf_cost(loss, problem.y, np.ones(50), 1.0 - np.eye(3))
    samples, _ = samples_of(problem, tie_break=False, hyperplanes=1)
    work = workspace_for(samples, 2)
    work.trees[OWN]["feature"], work.trees[OWN]["feature"][0], work.trees[OWN]["count"][0] = NONE, LEAF, 50
    rng = np.random.default_rng(0)
    for sweep, k in ((sweep, k) for k in range(5) for sweep in (all_thresholds, all_coefficients)):
        a = np.append(rng.uniform(-1, 1, 5), 0.2)
        work.weights[:] = a
        moving = 50 if sweep is all_thresholds else int((problem.X[:, k] > 0).sum())
        sweep(samples, work, k)
        seen = 0
        for q in np.flatnonzero(np.diff(work.key[:moving]) > 1e-9):
            here, middle = a.copy(), work.key[q : q + 2].mean()
            if sweep is all_thresholds:
                here[k], here[5] = 0.0, middle
            else:
                here[k] = middle
            left = problem.X @ here[:5] < here[5]
            expected = sum(cost(np.flatnonzero(side)) for side in (left, ~left) if side.any())
            assert work.curve[q] == pytest.approx(expected, abs=1e-9)
            seen += 1
        assert seen > 30


@pytest.mark.slow
def test_random_hyperplanes_help_and_units_of_weights_do_not_matter():
    data = diagonal()
    built = OctH().build(data, 1)
    problem = LocalProblem.of(built.structure, data.X)
    problem = replace(problem, X=data.X, margin=0.0, split_cost=0.0)
    univariate = local_search(replace(problem, margin=None), 1, starts=3, kicks=0).value
    assert at_most(local_search(problem, 1, starts=3, kicks=0, hyperplanes=0).value, univariate)
    rng = np.random.default_rng(3)
    # From trees that are given: the starts of one's own begin with a fitted hyperplane, which is already right here.
    given = LocalTree(rng.uniform(-1, 1, (1, 3)), np.zeros(1))
    none, some = (
        local_search(problem, 1, starts=0, kicks=0, trees=[given], hyperplanes=h).value for h in (0, 5)
    )
    assert less(some, none)
    for _ in range(5):
        tree = LocalTree(rng.uniform(-1, 1, (1, 3)), np.zeros(1))
        values = [
            local_search(problem, 1, starts=0, kicks=0, trees=[LocalTree(scale * tree.w, tree.b)]).value
            for scale in (1.0, 4.0, 0.25)
        ]
        assert same(values[0], values[1])
        assert same(values[1], values[2])


# ---------------------------------------------------------------------- linear leaves


def test_a_linear_leaf_is_the_lasso_least_squares_for_nothing_and_a_constant_at_a_high_price():
    problem = numbers(n=80)
    theta = 1.5
    one_leaf = replace(problem, split_cost=1e3, coefficient_cost=2 * theta)
    found = local_search(one_leaf, 1, starts=1, kicks=0)
    assert not found.tree.w.any()
    lasso = Lasso(alpha=theta / 80, tol=1e-10, max_iter=10**5).fit(problem.X, problem.y)
    loss = ((problem.y - lasso.predict(problem.X)) ** 2).sum() + 2 * theta * np.abs(lasso.coef_).sum()
    assert found.value == pytest.approx(loss, rel=1e-6)

    free = local_search(replace(one_leaf, coefficient_cost=1e-9), 1, starts=1, kicks=0)
    least = np.linalg.lstsq(np.column_stack([np.ones(80), problem.X]), problem.y, rcond=None)[1]
    assert free.value == pytest.approx(float(least[0]), rel=1e-6)

    # On features in [0, 1] no leaf takes a coefficient at this price; of a loss of 1 for one leaf it is 1 / sd(y).
    dear = replace(problem, coefficient_cost=80 * problem.y.std())
    for depth in (1, 2):
        linear, constant = (local_search(each, depth, starts=2, kicks=0) for each in (dear, problem))
        assert linear.values == pytest.approx(constant.values, rel=1e-5)


def test_linear_leaves_do_not_depend_on_threads_and_on_units_of_the_target():
    problem = replace(numbers(n=60), coefficient_cost=0.5)
    one, two = (local_search(problem, 2, starts=4, kicks=2, threads=threads) for threads in (1, 2))
    assert (one.values == two.values).all()  # exact: the same searches, with the same arithmetic
    # The price of coefficients, in units of the loss, is that of their own units times the loss of one leaf.
    other = local_search(replace(problem, y=4 * problem.y - 3, coefficient_cost=2.0), 2, starts=4, kicks=2)
    assert other.values == pytest.approx(16 * one.values, rel=1e-5)


@pytest.mark.parametrize("model", [OrtL, pytest.param(OrtLH, marks=pytest.mark.slow)])
def test_trees_with_linear_leaves_are_verified_and_no_worse_than_cart(model):
    data = load("diabetes").take(np.arange(0, 442, 9))
    formulation = model(lam=0.05, alpha=0.02, N_min=5)
    problem = formulation.build(data, 1)
    result = problem.solve("local-search", solver_options={"starts": 1, "kicks": 2})
    assert result.status == "best_found"
    assert result.verified, result.failed_checks
    assert at_most(result.objective, formulation.evaluate(problem.instance.known, problem.instance))
    # What the search has summed up is what the definition says, up to the accuracy of a leaf.
    assert result.solution.events[-2].objective == pytest.approx(result.objective, rel=1e-4)
    for other in ({"regulariser": "l0"}, {"loss": "absolute"}, {"lam": 0.0}):
        assert replace(formulation, **other).structure(problem.instance) is None


@pytest.mark.parametrize(
    "formulation",
    [
        Oct(variant="paper"),
        Ort(variant="paper"),
        OrtL(lam=0.05),
        *(pytest.param(model, marks=pytest.mark.slow) for model in (OctH(), OrtH(), OrtLH(lam=0.05))),
    ],
)
def test_weights_count_as_in_the_definition(formulation):
    problem = noisy(7, n=40) if formulation.task == "classification" else numbers(7, n=40)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 40)
    built = formulation.build(Dataset.from_arrays(problem.X, problem.y, weights=weights), 1)
    result = built.solve("local-search", start=None, solver_options={"starts": 1, "kicks": 0})
    assert result.verified, result.failed_checks
    last, defined = result.solution.events[-2].objective, result.objective
    assert last == pytest.approx(defined, rel=1e-3)
