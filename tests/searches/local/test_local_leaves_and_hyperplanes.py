"""The local search of trees with hyperplane splits, and with linear leaves."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from univariate_cases import LOSSES, noisy, numbers

from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.ort import Ort, OrtH
from formulations.ort_l import OrtL, OrtLH
from mipforest.data import Dataset, load
from mipforest.searches.local import LocalTree
from mipforest.searches.local.plugin import charged_by
from mipforest.searches.local.search import local_search

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
        assert result.objective < formulation.evaluate(
            formulation.start("cart", problem.instance), problem.instance
        )


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES[1:])
def test_hyperplanes_of_regression_trees_are_verified_and_no_worse_than_univariate_splits(loss):
    data = load("diabetes").take(np.arange(0, 442, 6))
    charges = {"loss": loss, "alpha": 0.01, "N_min": 3}
    own, plain = (f.build(data, 2) for f in (OrtH(**charges), Ort(**charges, variant="paper")))
    options = {"starts": 3, "kicks": 5}
    result = own.solve("local-search", solver_options=options)
    assert result.verified, result.failed_checks
    assert result.objective <= own.formulation.evaluate(own.start_tree("cart"), own.instance)
    # Without the margin, every univariate tree is one of hyperplanes.
    free = replace(charged_by(own), margin=0.0)
    start = plain.solve("local-search", solver_options=options)
    found = local_search(
        free, 2, starts=0, kicks=0, trees=[LocalTree(start.tree.unscaled().w, start.tree.unscaled().b)]
    )
    assert found.value <= start.objective + 1e-9


# ---------------------------------------------------------------------- linear leaves


def test_a_linear_leaf_is_the_lasso_and_a_high_price_leaves_constants():
    problem = numbers(n=80)
    theta = 1.5
    one_leaf = replace(problem, split_cost=1e3, coefficient_cost=2 * theta)
    found = local_search(one_leaf, 1, starts=1, kicks=0)
    assert not found.tree.w.any()
    lasso = Lasso(alpha=theta / 80, tol=1e-10, max_iter=10**5).fit(problem.X, problem.y)
    loss = ((problem.y - lasso.predict(problem.X)) ** 2).sum() + 2 * theta * np.abs(lasso.coef_).sum()
    assert found.value == pytest.approx(loss, rel=1e-6)

    dear = replace(problem, coefficient_cost=1e3)
    for depth in (1, 2):
        linear, constant = (local_search(each, depth, starts=2, kicks=0) for each in (dear, problem))
        assert linear.values == pytest.approx(constant.values, rel=1e-5)


def test_linear_leaves_do_not_depend_on_threads():
    problem = replace(numbers(n=60), coefficient_cost=0.5)
    one, two = (local_search(problem, 2, starts=4, kicks=2, threads=threads) for threads in (1, 2))
    assert (one.values == two.values).all()


@pytest.mark.parametrize("model", [OrtL, pytest.param(OrtLH, marks=pytest.mark.slow)])
def test_trees_with_linear_leaves_are_verified_and_no_worse_than_cart(model):
    data = load("diabetes").take(np.arange(0, 442, 9))
    formulation = model(lam=0.05, alpha=0.02, N_min=5)
    problem = formulation.build(data, 1)
    result = problem.solve("local-search", solver_options={"starts": 1, "kicks": 2})
    assert result.status == "best_found"
    assert result.verified, result.failed_checks
    assert result.objective <= formulation.evaluate(problem.instance.known, problem.instance)
    # What the search has summed up is what the definition says, up to the accuracy of a leaf.
    assert result.solution.events[-2].objective == pytest.approx(result.objective, rel=1e-4)
    for other in ({"regulariser": "l0"}, {"loss": "absolute"}, {"lam": 0.0}):
        assert replace(formulation, **other).tree_charges(problem.instance) is None


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
