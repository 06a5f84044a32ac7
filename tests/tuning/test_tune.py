"""``tune``: the same scores as scikit-learn's cross-validation, wherever the fits are done."""

from concurrent.futures import Future
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from dying_formulation import Dying
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from tolerance import less

from formulations.opt import Opt
from mipforest import DataError, Dataset, MargotClassifier, get_formulation, load
from mipforest.errors import NotAllowed, SolverUnavailable
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import Problem
from mipforest.problem.registry import UnknownFormulation
from mipforest.tuning import (
    FitError,
    NoTreeFound,
    Plan,
    Records,
    TuningError,
    TuningInterrupted,
    cross_validate,
    tune,
)
from mipforest.tuning.cross_validation import InThisProcess
from mipforest.tuning.fit import make_folds

#: Columns that differ from run to run.
TIMES = r"seconds$"

#: Trees of one split are found in a moment, and to the end: nothing depends on the time.
SMALL = {"grid": {"C": [0.1, 1.0, 10.0]}, "folds": 3}
CARDS = {"grid": {"rules": [1, 2]}, "folds": 2, "solver": "highs"}


@pytest.fixture(scope="module")
def versicolor():
    return load("iris").binarise(["versicolor"])


@pytest.fixture(scope="module")
def tuned(versicolor):
    return tune("margot", versicolor, 1, **SMALL)


def without_times(table):
    return table.loc[:, ~table.columns.str.contains(TIMES)]


def test_scores_are_those_of_scikit_learn(versicolor, tuned):
    search = GridSearchCV(
        MargotClassifier(depth=1),
        {"C": SMALL["grid"]["C"]},
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
        return_train_score=True,
    ).fit(versicolor.X_raw, versicolor.y)
    for fold in range(3):
        theirs = search.cv_results_[f"split{fold}_test_score"]
        np.testing.assert_allclose(tuned.table[f"fold{fold}_validation"].astype(float), theirs)
    for ours, name in (("validation", "test"), ("train", "train")):
        np.testing.assert_allclose(tuned.table[f"{ours}_mean"], search.cv_results_[f"mean_{name}_score"])
        np.testing.assert_allclose(tuned.table[f"{ours}_std"], search.cv_results_[f"std_{name}_score"])
    assert tuned.parameters["C"] == search.best_params_["C"]


def test_the_chosen_setting_is_fitted_on_all_samples(versicolor, tuned):
    assert tuned.table.iloc[tuned.chosen]["C"] == tuned.parameters["C"]
    assert tuned.result.verified
    assert tuned.result.problem.data is versicolor
    alone = get_formulation("margot")(C=tuned.parameters["C"]).build(versicolor, 1).solve("highs")
    assert tuned.result.objective == pytest.approx(alone.objective, rel=1e-6)


def test_every_setting_has_a_full_row(tuned):
    table = tuned.table
    assert list(table["C"]) == SMALL["grid"]["C"]
    assert table["finished"].all()
    assert table["verified"].all()
    assert (table["gap_max"] <= 1e-4).all()
    assert not table.isna().any(axis=None)


@pytest.mark.slow
def test_processes_give_the_same_table(versicolor, tuned):
    parallel = tune("margot", versicolor, 1, jobs=2, **SMALL)
    pd.testing.assert_frame_equal(without_times(parallel.table), without_times(tuned.table))
    assert parallel.parameters == tuned.parameters


class OutOfOrder(InThisProcess):
    """Takes many fits at a time and finishes the last one first."""

    slots = 100

    def __init__(self, folds):
        super().__init__(folds)
        self._later = []

    def submit(self, work, neighbour):
        later = Future()
        self._later.append((later, work, neighbour))
        # The fits of all chains arrive together.
        if len(self._later) == len(self._folds):
            for future, *arguments in reversed(self._later):
                future.set_result(super().submit(*arguments).result())
            self._later = []
        return later


def test_the_order_in_which_fits_end_changes_nothing(versicolor, tuned):
    plan = Plan.of("margot", versicolor, 1, **SMALL)
    records = Records(plan)
    cross_validate(plan, OutOfOrder(plan.folds), records)
    pd.testing.assert_frame_equal(without_times(records.table()), without_times(tuned.table))


def test_settings_are_finished_one_after_the_other(versicolor):
    order = []
    tune("margot", versicolor, 1, **SMALL, on_fit=lambda fit: order.append((fit.setting, fit.fold)))
    assert order == [(setting, fold) for setting in range(3) for fold in range(3)]


def test_parameters_outside_the_grid_stay(versicolor):
    given = get_formulation("margot")(epsilon=0.01, variant="paper")
    found = tune(given, versicolor, 1, grid={"C": [1.0]}, folds=2, time_limit=0)
    assert found.parameters == {"C": 1.0, "epsilon": 0.01}
    assert found.result.problem.formulation.variant == "paper"


def test_a_regression_is_scored_in_units_of_the_target():
    diabetes = load("diabetes")
    data = Dataset.from_arrays(diabetes.X_raw[:60], 1000 * diabetes.y[:60])
    found = tune("ort", data, 1, grid={"alpha": [0.0, 0.5]}, folds=3, score="mae", time_limit=0)
    assert found.score == "mae"
    assert (found.table["validation_mean"] > 1000).all()
    assert found.chosen == int(found.table["validation_mean"].argmin())
    assert tune("ort", data, 1, grid={"alpha": [0.0]}, folds=3, time_limit=0).score == "r2"


def test_prescriptions_are_scored_by_imputed_outcomes():
    rng = np.random.default_rng(0)
    X, had = rng.random((60, 2)), rng.permutation(np.arange(60) % 2)
    y = np.where((X[:, 0] < 0.5) == (had == 0), 1.0, 5.0)
    data = Dataset.from_arrays(X, y, treatments=had)
    found = tune("opt", data, 1, grid={"n_treatment": [5, 15]}, folds=2, solver="prescription-search")
    assert (found.score, found.parameters["n_treatment"]) == ("imputed_outcome", 5)
    assert found.table["validation_mean"][0] >= 1
    assert less(found.table["validation_mean"][0], found.table["validation_mean"][1])
    turned = Dataset.from_arrays(X, -y, treatments=had)
    higher = tune(Opt(better="higher"), turned, 1, grid={"n_treatment": [5, 15]}, folds=2, time_limit=0)
    assert higher.parameters["n_treatment"] == 5
    with pytest.raises(
        TuningError, match="the score accuracy is for a classification, the data are a prescription"
    ):
        tune("opt", data, 1, grid={"mu": [0.0]}, folds=2, score="accuracy")


def test_per_level_values_reach_the_model(versicolor, few_penalties):
    few = versicolor.take(np.arange(0, 150, 15))
    found = tune("margot", few, 2, grid={"C": [1, 10]}, per_level=["C"], folds=2, time_limit=0)
    assert list(zip(found.table["C[0]"], found.table["C[1]"], strict=True)) == [
        (1, 1),
        (1, 10),
        (10, 1),
        (10, 10),
    ]
    assert found.parameters["C"] == (
        found.table.iloc[found.chosen]["C[0]"],
        found.table.iloc[found.chosen]["C[1]"],
    )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"formulation": "margo"}, UnknownFormulation, "margot"),
        ({"depth": 0}, ParameterError, "depth"),
        ({"score": "acc"}, TuningError, "no score is called 'acc'"),
        ({"score": "r2"}, TuningError, "for a regression"),
        ({"rule": "fewest"}, TuningError, "no rule"),
        ({"folds": "3"}, TuningError, "folds is '3'"),
        ({"jobs": 0}, TuningError, "jobs is 0"),
        ({"jobs": 2, "dask": "tcp://127.0.0.1:1"}, TuningError, "keep one"),
        ({"max_fits": 5}, TuningError, "3 settings on 3 folds are 9 fits, up to 0.15 hours.*max_fits=9"),
        ({"time_limit": -1}, NotAllowed, "time_limit"),
        ({"solver": "cplex"}, SolverUnavailable, "cplex"),
        ({"data": load("iris")}, DataError, "classes"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_first_fit(versicolor, monkeypatch, change, error, message):
    monkeypatch.setattr(Problem, "solve", None)
    arguments = {"formulation": "margot", "data": versicolor, "depth": 1, **SMALL} | change
    with pytest.raises(error, match=message):
        tune(**arguments)


@dataclass(frozen=True, kw_only=True)
class Failing(get_formulation("margot")):
    """Fails at one penalty."""

    def bind(self, data, topology, budget=None):
        if self.C == 10.0:
            raise RuntimeError("no luck")
        return super().bind(data, topology, budget)


def test_a_fit_that_fails_leaves_the_table_of_the_others(versicolor):
    with pytest.raises(FitError, match=r"no luck; in the fit of margot with C=10\.0") as caught:
        tune(Failing, versicolor, 1, **SMALL)
    assert list(caught.value.table["finished"]) == [True, True, False]
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.slow  # processes: test_processes_give_the_same_table; fits that fail: above
def test_a_process_that_dies_is_told(versicolor):
    with pytest.raises(FitError, match=r"one of the 2 processes ended by itself.*take fewer jobs") as caught:
        tune(Dying, versicolor, 1, **SMALL, jobs=2)
    assert isinstance(caught.value.__cause__, TuningError)


def test_an_interruption_leaves_the_table(versicolor):
    def stop_in_the_second_setting(fit):
        if (fit.setting, fit.fold) == (1, 0):
            raise KeyboardInterrupt

    with pytest.raises(TuningInterrupted, match="4 of 9 fits") as caught:
        tune("margot", versicolor, 1, **SMALL, on_fit=stop_in_the_second_setting)
    assert list(caught.value.table["folds_done"]) == [3, 1, 0]
    assert list(caught.value.table["finished"]) == [True, False, False]


def test_without_any_tree_there_is_nothing_to_choose(versicolor, monkeypatch):
    solve = Problem.solve

    def without_start(self, *args, settings, **others):
        return solve(self, *args, settings=replace(settings, start=None), **others)

    monkeypatch.setattr(Problem, "solve", without_start)
    with pytest.raises(NoTreeFound, match="raise the time limit"):
        tune("oct", versicolor, 2, grid={"alpha": [0.0]}, folds=2, time_limit=0)


def test_no_fit_is_recorded_twice(versicolor):
    plan = Plan.of("margot", versicolor, 1, **SMALL)
    records = Records(plan)
    done = InThisProcess(plan.folds).submit(plan.first()[0], None).result()
    records.add(done)
    with pytest.raises(AssertionError, match="twice"):
        records.add(done)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("score", ["log_loss", "auc", "brier_score"])
def test_cards_are_tuned_by_their_probabilities(versicolor, score):
    flowers = versicolor.with_scaling("none").take(np.arange(0, 150, 3))
    tuned = tune(
        "ors", Dataset.from_arrays(flowers.X_raw > 2, flowers.y, scaling="none"), 1, score=score, **CARDS
    )
    fold = make_folds(tuned.result.problem.data, 2, seed=0)[0]
    alone = get_formulation("ors")(rules=1).build(fold.train).solve("highs")
    assert tuned.table.loc[0, "fold0_validation"] == pytest.approx(
        alone.measures(fold.validation)[score], abs=1e-6
    )
    best = tuned.table["validation_mean"].agg("max" if score == "auc" else "min")
    assert tuned.table.loc[tuned.chosen, "validation_mean"] == best


def test_probabilities_that_a_model_does_not_give_are_told(versicolor):
    with pytest.raises(FitError, match="margot predicts classes without probabilities"):
        tune("margot", versicolor, 1, score="log_loss", **SMALL)
