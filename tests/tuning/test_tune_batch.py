"""Batch tuning: what it chooses, wherever it is done, and what is certified of the tree in the end."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from tolerance import at_most, less, same

from formulations.splits.univariate import search_by_root
from mipforest import load
from mipforest.data import DataError, Dataset
from mipforest.errors import NotAllowed
from mipforest.problem.registry import make_formulation
from mipforest.problem.tree_search import solver_or_search
from mipforest.settings import SolveSettings
from mipforest.tuning import FitError, TuningError, TuningInterrupted, tune_batch
from mipforest.tuning.batch_plan import BatchPlan, charges_of
from mipforest.tuning.cost_complexity import curves_of, minimum
from mipforest.tuning.run import choose_setting


@pytest.fixture(scope="module")
def wine():
    return load("wine")


@pytest.fixture(scope="module")
def tuned(wine):
    return tune_batch("oct", wine, 2, folds=2, starts=20)


def test_every_depth_has_a_row_and_the_least_loss_is_chosen(wine, tuned):
    table = tuned.table
    assert table["depth"].tolist() == [1, 2]
    assert table["finished"].all()
    assert (table["trees"] == 20 * 2).all()  # fewer than 50, on two folds
    assert tuned.depth == table["depth"][table["validation_mean"].idxmin()] == 2
    assert tuned.parameters["alpha"] == tuned.alpha == table["alpha"][tuned.chosen]
    for number, curve in enumerate(tuned.curves):
        assert same((table["validation_mean"][number], table["alpha"][number]), minimum(curve))
    assert less(table["train_mean"][1], table["train_mean"][0])
    assert tuned.score == "error"
    assert repr(tuned).startswith("BatchTuning(2 settings, best depth=2, alpha=")
    assert len(repr(tuned)) < 200
    assert len(repr(tuned.curves[0])) < 60


def test_the_tree_is_proven_for_its_depth_and_cost(wine, tuned):
    result = tuned.result
    assert result.status == "optimal"
    assert result.verified
    again = make_formulation("oct", {"alpha": tuned.alpha}).build(wine, tuned.depth)
    assert again.solve("exact-search").objective == pytest.approx(result.objective)


def test_another_solver_finds_the_tree_where_it_is_asked_for(wine):
    found = tune_batch("oct", wine, 1, folds=2, starts=5, solver=solver_or_search("local-search")).result
    assert found.solution.solver == "local-search"
    assert found.status == "best_found"
    assert found.bound == -np.inf or found.bound_by != "exact-search" or at_most(found.bound, found.objective)


@pytest.mark.slow  # two processes load all that this one has
def test_processes_find_the_same(wine, tuned):
    elsewhere = tune_batch("oct", wine, 2, folds=2, starts=20, jobs=2)
    columns = tuned.table.columns.drop("seconds")
    pd.testing.assert_frame_equal(elsewhere.table[columns], tuned.table[columns])
    assert (elsewhere.result.tree.w == tuned.result.tree.w).all()


@pytest.mark.parametrize(("starts", "batch"), [(30, 30), (60, 50), (600, 60)])
def test_curves_are_means_over_the_best_trees(wine, starts, batch):
    plan = BatchPlan.of("oct", wine, 2, validation=1 / 3, starts=starts)
    (fold,) = plan.folds
    assert (fold.train.n, fold.validation.n) == (118, 60)
    work, charges = plan.first()[-1], charges_of(plan.formulations[0], fold.train)
    fit = work.done(fold, None)
    assert fit.trees == batch
    trees, loss = work._trees(fold.train, charges, None)
    assert same(loss, fit.train)
    curves = list(curves_of(trees, charges, fold.train, fold.validation))
    assert fit.curve.loss == pytest.approx(np.mean([curve.at(fit.curve.alpha) for curve in curves], axis=0))


def test_the_coefficients_of_linear_leaves_are_tuned_at_the_chosen_depth():
    X, y = load_diabetes(return_X_y=True)
    data = Dataset.from_arrays(X[:120, :4], y[:120], task="regression", scaling="minmax")
    tuned = tune_batch("ort-l", data, 1, grid={"lam": [0.1, 0.01]}, validation=0.3, starts=3, time_limit=5)
    assert tuned.table[["depth", "lam"]].to_numpy().tolist() == [[1, 0.01], [1, 0.1]]
    assert (tuned.table["trees"] == 1).all()  # of linear leaves the best tenth alone
    best = tuned.table["validation_mean"].idxmin()
    assert tuned.parameters["lam"] == tuned.table["lam"][best]
    assert tuned.score == "mse"
    assert tuned.result.tree.has_linear_leaves


def test_cart_has_one_tree_per_depth_and_stays_cart(wine):
    baseline = tune_batch("oct", wine, 2, folds=2, trees="cart")
    assert (baseline.table["trees"] == 2).all()
    pruned = make_formulation("oct", {"alpha": baseline.alpha}).build(wine, baseline.depth)
    assert (baseline.result.tree.unscaled().w == pruned.start_tree("cart").w).all()


def test_no_bounds_are_searched_for_a_tree_of_cart(wine, monkeypatch):
    searched = []

    def recorded(formulation, instance, *charges, **options):
        searched.append(instance.topology.depth)
        return search_by_root(formulation, instance, *charges, **options)

    monkeypatch.setattr("formulations.oct.search_by_root", recorded)
    found = tune_batch("oct", wine, 5, folds=2, trees="cart")
    assert found.depth > 1
    assert set(searched) <= {1}  # what trees are charged is read at depth 1


def test_weights_are_repeated_samples():
    rng = np.random.default_rng(0)
    X, counts = rng.random((40, 2)), rng.integers(1, 4, 40)
    y = (X[:, 0] > 0.5).astype(int)
    y[:6] = 1 - y[:6]
    weighted = Dataset.from_arrays(X, y, weights=counts)
    plan = BatchPlan.of("oct", weighted, 2, validation=0.5, starts=10)
    (fold,) = plan.folds
    repeated = [
        Dataset.from_arrays(
            np.repeat(part.X_raw, part.weights.astype(int), axis=0),
            np.repeat(part.y, part.weights.astype(int)),
        )
        for part in (fold.train, fold.validation)
    ]
    work = plan.first()[-1]
    one, other = work.done(fold, None), work.done(type(fold)(*repeated), None)
    assert one.train == pytest.approx(other.train)
    assert minimum(one.curve).loss == pytest.approx(minimum(other.curve).loss)


def cured(n=60):
    """Samples of two treatments; below the middle of the first feature the other one is better."""
    rng = np.random.default_rng(0)
    X, had = rng.random((n, 2)), rng.permutation(np.arange(n) % 2)
    y = np.where((X[:, 0] < 0.5) == (had == 0), 1.0, 5.0) + 0.3 * rng.standard_normal(n)
    return Dataset.from_arrays(X, y, treatments=np.array(["drug", "rest"])[had])


def test_prescriptive_trees_are_tuned_by_their_objective():
    tuned = tune_batch("opt", cured(), 2, folds=2, starts=10)
    assert (tuned.depth, tuned.score) == (1, "objective")
    assert tuned.result.status == "optimal"  # by the enumeration, which takes prescriptions
    with pytest.raises(TuningError, match="mu changes the objective that a batch tuning of opt compares"):
        tune_batch("opt", cured(), 1, grid={"mu": [0.2, 0.8]}, folds=2)
    with pytest.raises(TuningError, match="CART has no trees for opt"):
        tune_batch("opt", cured(), 1, folds=2, trees="cart")
    with pytest.raises(DataError, match="61 samples of every treatment"):
        tune_batch("opt", cured(), 1, folds=61)


def test_the_least_of_losses_below_zero_is_chosen():
    table = pd.DataFrame({"finished": [True, True], "validation_mean": [-1.0, -2.0]})
    assert choose_setting(table) == 1


def test_equal_losses_go_to_the_least_depth():
    table = pd.DataFrame({"finished": [True, True, True], "validation_mean": [0.3, 0.1 + 0.2 - 0.2, 0.1]})
    assert choose_setting(table) == 1
    assert choose_setting(table.assign(finished=[True, False, False])) == 0
    with pytest.raises(TuningError, match="no depth has a curve"):
        choose_setting(table.assign(finished=False))


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"formulation": "margot"}, TuningError, "batch tuning prunes trees of a local search, and margot"),
        ({"formulation": "ort-l", "grid": {"lam": [0.1]}}, DataError, "ort-l predicts numbers"),
        ({"grid": {"alpha": [0.1]}}, TuningError, "finds alpha and the depth itself"),
        ({"folds": 3, "validation": 0.3}, TuningError, "folds=3 and validation=0.3 are both given"),
        ({"midpoint": "middle"}, TuningError, "no midpoint is called 'middle'"),
        ({"trees": "forest"}, TuningError, "no trees are called 'forest'"),
        ({"formulation": "oct-h", "trees": "cart"}, TuningError, "CART has no trees for oct-h"),
        ({"starts": 0}, ValueError, "starts"),
        ({"depth": 11}, ValueError, "depth must be 1 to 10"),
    ],
)
def test_what_cannot_be_tuned_is_refused(wine, asked, error, message):
    data = wine.binarise("class_0") if asked.get("formulation") == "margot" else wine
    with pytest.raises(error, match=message):
        tune_batch(**{"formulation": "oct", "data": data, "depth": 2} | asked)


def test_options_are_checked_before_any_curve(wine):
    with pytest.raises(NotAllowed, match="kicks"):
        BatchPlan.of("oct", wine, 1, settings=SolveSettings(solver_options={"kick": 1}))


def test_splits_that_are_none_are_refused(wine):
    with pytest.raises(TuningError, match="split 0 is no pair of positions, 0 to 177, to train on"):
        tune_batch("oct", wine, 1, folds=[([0, 1], [178])])


def test_a_fold_with_nothing_to_predict_is_refused():
    data = Dataset.from_arrays(np.arange(8.0)[:, None], [0, 0, 0, 0, 0, 0, 0, 1.0], task="regression")
    with pytest.raises(DataError, match="nothing to predict"):
        tune_batch("ort", data, 1, folds=2)


def test_what_is_finished_survives_ctrl_c_and_errors(wine):
    def stop(fit):
        if fit.setting == 1:
            raise KeyboardInterrupt

    with pytest.raises(TuningInterrupted, match="3 of 4 curves") as stopped:
        tune_batch("oct", wine, 2, folds=2, starts=5, on_fit=stop)
    assert stopped.value.table["folds_done"].tolist() == [2, 1]

    def fail(fit):
        raise OSError("no space")

    with pytest.raises(FitError, match="no space") as failed:
        tune_batch("oct", wine, 1, folds=2, starts=5, on_fit=fail)
    assert failed.value.table["folds_done"].tolist() == [1]
