"""ORCT and S-ORCT: definitions against models, starts, constraints, sparsity, and what is refused."""

import numpy as np
import pytest
from tolerance import at_least

from formulations.orct import Orct, SOrct
from mipforest import load
from mipforest.data import DataError, Dataset
from mipforest.errors import NotAllowed, Unsupported
from mipforest.problem.parameters import ParameterError, parse_parameters
from mipforest.trees import RandomizedTree, Topology


@pytest.fixture(scope="module")
def flowers():
    return load("iris")


@pytest.fixture(scope="module")
def solved(flowers):
    return Orct(n_starts=4).build(flowers, 2).solve()


def test_a_local_optimum_is_checked_by_its_definition_and_proves_nothing(solved, flowers):
    assert solved.verified
    assert solved.status == "best_found"
    assert solved.bound == -np.inf
    assert solved.solution.solver == "l-bfgs"
    assert solved.measures(flowers)["accuracy"] >= 0.95
    told = solved.to_dict()
    assert told["outcome"] == "local optimum, the best of 4 starts; without a bound"
    assert told["starts"] == len(told["start_objectives"]) == 4
    assert told["best_start"] == pytest.approx(solved.objective)
    assert told["model_statistics"] == {"variables": 3 * 5 + 4 * 3, "constraints": 4 + 3}
    assert told["train_expected_accuracy"] == pytest.approx(1 - 2 * solved.objective)


def test_more_starts_are_never_worse(solved, flowers):
    assert solved.objective <= Orct(n_starts=2).build(flowers, 2).solve().objective + 1e-12


def test_a_steep_tree_has_the_error_rate_of_the_certain_one(flowers):
    instance = Orct(gamma=1e9).bind(flowers, Topology(2))
    tree = Orct(gamma=1e9).start("random", instance)
    errors = 1 - np.mean(tree.predict(flowers.X) == flowers.y)
    assert 2 * Orct(gamma=1e9).evaluate(tree, instance) == pytest.approx(errors, abs=1e-6)


def test_trees_and_points_correspond_and_the_definition_has_the_models_value(flowers):
    for formulation in (Orct(gamma=7.0), SOrct(gamma=7.0, lam_local=0.1, lam_global=0.2)):
        instance = formulation.bind(flowers.with_weights(np.arange(flowers.n) % 3 + 1), Topology(2))
        point = instance.smooth.random_point(np.random.default_rng(0))
        tree = formulation.tree_of(point, instance)
        again = formulation.point_of(tree, instance)
        for name, values in point.items():
            assert again[name] == pytest.approx(values, abs=1e-15)
        assert formulation.evaluate(tree, instance) == pytest.approx(
            instance.smooth.objective(point), abs=1e-13
        )


def test_a_start_from_elsewhere_is_used(solved, flowers):
    problem = Orct(n_starts=1).build(flowers, 2)
    again = problem.solve(start=solved.tree)
    assert again.objective <= solved.objective + 1e-9
    hard = load("iris")
    from mipforest.heuristics.cart import cart

    started = problem.solve(start=cart(hard, Topology(2)), time_limit=0)
    assert isinstance(started.tree, RandomizedTree)
    assert started.measures(hard)["accuracy"] > 0.9


def test_rates_are_kept_and_cost_something():
    data = load("breast_cancer").take(np.arange(0, 569, 4))
    free = Orct(n_starts=1).build(data, 1).solve()
    held = Orct(n_starts=1, rates={"malignant": 0.999}).build(data, 1).solve()
    assert held.verified
    assert held.max_violation <= 1e-6
    assert held.to_dict()["train_expected_rate_malignant"] >= 0.999 - 1e-6
    assert held.objective >= free.objective - 1e-9


def test_rates_beyond_reach_are_told_and_not_verified():
    rng = np.random.default_rng(0)
    noise = Dataset.from_arrays(rng.random((40, 1)), rng.permutation(np.arange(40) % 2))
    result = Orct(gamma=4.0, n_starts=1, rates=0.95).build(noise, 1).solve()
    assert not result.verified
    assert "violates the model" in result.failed_checks[0]


def test_penalties_leave_exact_zeros_and_a_large_one_the_empty_tree(flowers):
    sparse = SOrct(lam_local=0.0, lam_global=0.1, n_starts=2).build(flowers, 2).solve()
    assert sparse.verified
    assert len(sparse.features_used) < 4
    assert sparse.to_dict()["global_sparsity"] > 0
    empty = SOrct(lam_local=0.0, lam_global=50.0, n_starts=1).build(flowers, 2).solve()
    assert empty.features_used == ()
    assert empty.to_dict()["local_sparsity"] == 1.0


def test_at_depth_one_both_penalties_are_one(flowers):
    data = flowers.binarise("versicolor")
    both = [
        SOrct(lam_local=one, lam_global=0.02 - one, n_starts=1).build(data, 1).solve().objective
        for one in (0.0, 0.02)
    ]
    assert both[0] == pytest.approx(both[1], abs=1e-9)


def test_what_does_not_fit_is_refused(flowers):
    with pytest.raises(DataError, match=r"3 classes, and a tree of depth 1 has 2 leaves.*coverage=no"):
        Orct().build(flowers, 1)
    assert Orct(coverage=False, n_starts=1).build(flowers, 1).solve().verified
    with pytest.raises(
        ParameterError, match=r"'setos', which is no class of iris \(did you mean 'setosa'\?\)"
    ):
        Orct(rates={"setos": 0.5}).build(flowers, 2)
    with pytest.raises(ParameterError, match=r"rates is 1\.5 for every class"):
        Orct(rates=1.5)
    with pytest.raises(ParameterError, match=r"is no rate per class"):
        parse_parameters(Orct, ["rates=much"])
    assert parse_parameters(Orct, ["rates=setosa=0.9,virginica=0.8"])["rates"] == {
        "setosa": 0.9,
        "virginica": 0.8,
    }


def test_a_smooth_model_goes_to_no_file_and_to_no_solver_of_rows(flowers, tmp_path):
    problem = Orct(n_starts=1).build(flowers, 2)
    with pytest.raises(Unsupported, match="orct is a smooth model without rows"):
        problem.solve("highs")
    with pytest.raises(Unsupported, match="a file of rows has no other"):
        problem.write(tmp_path / "orct.mps")
    with pytest.raises(NotAllowed, match="l-bfgs is a tree search"):
        problem.solve("l-bfgs", solver_options={"cuts": 1})
    extra = problem.model.continuous("extra")
    problem.model.add("more", extra >= 1)
    with pytest.raises(Unsupported, match="the model was changed"):
        problem.solve()


@pytest.mark.slow
def test_the_time_limit_ends_a_search_with_its_best_tree(flowers):
    result = Orct(n_starts=10_000).build(flowers, 2).solve(time_limit=0.3)
    assert result.status == "time_limit"
    assert result.verified
    alone = Orct(n_starts=5).build(flowers, 2).solve(time_limit=0)
    assert alone.verified
    assert alone.objective == pytest.approx(alone.solution.start_objective)
    stopped = Orct(n_starts=10_000).build(flowers, 2).solve(on_progress=lambda event: event.nodes >= 2)
    assert stopped.status == "interrupted"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "depth", "floor"), [("breast_cancer", 1, 0.95), ("iris", 2, 0.93), ("wine", 2, 0.94)]
)
def test_accuracy_on_ten_splits_is_that_of_the_thesis(name, depth, floor):
    data, found = load(name), []
    for seed in range(10):
        train, test = data.split(0.25, seed=seed)
        found.append(Orct().build(train, depth).solve(time_limit=None, seed=seed).measures(test)["accuracy"])
    assert at_least(np.mean(found), floor)
