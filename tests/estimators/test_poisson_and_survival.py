"""Trees of rates and of hazard ratios behind the interfaces of scikit-learn and of scikit-survival."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from seeds import seeds
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from tolerance import at_least, same

from mipforest import PoissonTreeRegressor, SurvivalTree
from mipforest.data import DataError
from mipforest.problem.constraints import Forbid
from mipforest.survival import (
    StepFunction,
    brier_scores,
    concordance,
    integrated_brier_score,
    kaplan_meier,
    kaplan_meier_of_censoring,
    nelson_aalen,
)


def insured(seed, n=60):
    """Return features, claims per year of insurance, and years."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, 3)).astype(float)
    years = rng.integers(1, 5, n).astype(float)
    return X, rng.poisson(years * np.where(X[:, 0] > 2, 1.5, 0.4)) / years, years


def followed(seed, n=60):
    """Return features, and events and times of patients: a structured array as scikit-survival has it."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, 3)).astype(float)
    days = np.ceil(rng.exponential(np.where(X[:, 1] > 2, 10.0, 40.0)))
    y = np.empty(n, dtype=[("status", bool), ("days", float)])
    y["status"], y["days"] = rng.random(n) < 0.7, days
    return X, y


# ------------------------------------------------------------------ rates


@pytest.mark.parametrize("seed", seeds(3, 20))
def test_the_score_is_the_share_of_the_deviance_explained(seed):
    X, rates, years = insured(seed)
    fitted = PoissonTreeRegressor(depth=2, N_min=12).fit(X[:40], rates[:40], sample_weight=years[:40])
    assert (fitted.status_, fitted.verified_) == ("optimal", True)
    assert same(fitted.score(X[:40], rates[:40], years[:40]), 1 - fitted.objective_)
    assert (fitted.predict(X) > 0).all()
    for weights in (None, years):
        expected = d2_tweedie_score(rates, fitted.predict(X), sample_weight=weights, power=1)
        assert same(fitted.score(X, rates, weights), expected)


def test_the_score_is_that_of_scikit_learns_poisson_models():
    """A constant rate is the tree that may not split, and the model without features."""
    X, rates, years = insured(0)
    flat = PoissonTreeRegressor(depth=1, alpha=2.0).fit(X, rates, sample_weight=years)
    model = PoissonRegressor(alpha=0).fit(np.zeros_like(X), rates, sample_weight=years)
    assert flat.get_n_leaves() == 1
    other = rates[::-1] + 1
    assert flat.score(X, other) == pytest.approx(model.score(np.zeros_like(X), other))


def test_a_count_where_the_rate_is_0_is_infinitely_unlikely():
    X, rates = np.arange(6.0)[:, None], np.array([0.0, 0, 0, 2, 2, 2])
    fitted = PoissonTreeRegressor(depth=1).fit(X, rates)
    assert same(fitted.predict(X), rates)
    assert same(fitted.score(X, rates), 1.0)
    other = np.array([0.0, 1, 0, 2, 2, 2])
    assert fitted.score(X, other) == -np.inf
    # Without exposure it does not count.
    assert same(fitted.score(X, other, [1, 0, 1, 1, 1, 1]), 1.0)
    # exact: a choice of two numbers
    assert [fitted.score(X[3:], np.full(3, rate)) for rate in (2.0, 1.0)] == [1.0, 0.0]
    assert same(fitted.score(X[:3], np.zeros(3)), 1.0)


@pytest.mark.parametrize("seed", seeds(5, 40))
def test_one_split_is_the_best_of_all_and_never_worse_than_scikit_learns(seed):
    X, rates, years = insured(seed, 30)
    weights = years if seed % 2 else np.ones(30)
    ours = PoissonTreeRegressor(depth=1).fit(X, rates, sample_weight=weights)
    theirs = DecisionTreeRegressor(criterion="poisson", max_depth=1).fit(X, rates, sample_weight=weights)
    found = d2_tweedie_score(rates, theirs.predict(X), sample_weight=weights, power=1)
    score = ours.score(X, rates, weights)
    assert at_least(score, found)
    # Theirs has no leaves without counts.
    assert ours.predict(X).min() == 0 or same(score, found)


@pytest.mark.parametrize("depth", [1, 2])
def test_an_exposure_counts_as_repeated_samples(depth):
    X, rates, years = insured(1)
    weighted = PoissonTreeRegressor(depth=depth, N_min=1).fit(X, rates, sample_weight=years)
    rows = np.repeat(np.arange(len(X)), years.astype(int))
    repeated = PoissonTreeRegressor(depth=depth, N_min=1).fit(X[rows], rates[rows])
    assert same(weighted.objective_, repeated.objective_)
    assert same(weighted.score(X, rates, years), repeated.score(X[rows], rates[rows]))
    leaf = weighted.apply(X)
    for number in np.unique(leaf):
        claims, here = rates * years, leaf == number
        assert same(weighted.predict(X)[here], claims[here].sum() / years[here].sum())


def test_negative_rates_are_refused():
    X, rates, years = insured(0)
    fitted = PoissonTreeRegressor(depth=1).fit(X, rates)
    with pytest.raises(DataError, match="poisson predicts rates, and the target of data is -1 in some row"):
        PoissonTreeRegressor(depth=1).fit(X, np.append(rates[:-1], -1.0))
    with pytest.raises(DataError, match=r"y is -1 in row 59.*give counts per unit of exposure"):
        fitted.score(X, np.append(rates[:-1], -1.0))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.score(X, rates[:-1])
    with pytest.raises(ValueError, match="sample_weight: row 0 has the weight -1"):
        fitted.score(X, rates, np.append(-1.0, years[:-1]))


@pytest.mark.filterwarnings("ignore:the search did not begin with the start")
def test_rates_are_searched_constrained_and_of_tables():
    X, rates, years = insured(2)
    search = GridSearchCV(PoissonTreeRegressor(depth=1), {"N_min": [5, 20]}, cv=3, error_score="raise")
    search.fit(X, rates, sample_weight=years)
    assert search.best_score_ > 0
    without = PoissonTreeRegressor(depth=2, constraints=Forbid("x0"), N_min=5).fit(X, rates, years)
    assert (without.status_, without.verified_) == ("optimal", True)
    assert "x0" not in without.features_used_
    table = pd.DataFrame(
        {"city": np.array(["Roma", "Pisa", "Siena"])[X[:, 0].astype(int) // 2], "age": X[:, 1]}
    )
    table.loc[::5, "age"] = np.nan
    tree = PoissonTreeRegressor(depth=1, missing="branch", categorical="all").fit(table, rates, years)
    assert (tree.status_, tree.verified_) == ("optimal", True)
    assert "city" in tree.to_text()
    rows = PoissonTreeRegressor(depth=1, N_min=5, tangents=8, solver="highs").fit(X[:30], rates[:30])
    best = PoissonTreeRegressor(depth=1, N_min=5).fit(X[:30], rates[:30])
    assert rows.verified_
    assert at_least(best.score(X[:30], rates[:30]), rows.score(X[:30], rates[:30]))


# ------------------------------------------------------------------ hazard ratios


def test_events_and_times_are_given_in_any_form():
    X, y = followed(0)
    seen, days = y["status"], y["days"]
    fitted = SurvivalTree(depth=2, N_min=5).fit(X, y)
    assert (fitted.status_, fitted.verified_) == ("optimal", True)
    forms = (
        (seen, days),
        (seen.tolist(), days.astype(int)),
        np.column_stack([seen, days]),
        y.tolist(),
        pd.DataFrame({"seen": seen, "days": days}),
        (pd.Series(seen, index=np.arange(60)[::-1]), pd.Series(days)),
        y.astype([("status", int), ("days", np.float32)]),
    )
    for form in forms:
        again = SurvivalTree(depth=2, N_min=5).fit(X, form)
        assert same(again.predict(X), fitted.predict(X))
        assert same(fitted.score(X, form), fitted.score(X, y))


@pytest.mark.parametrize("seed", seeds(3, 20))
def test_a_hazard_ratio_is_events_over_the_events_expected(seed):
    X, y = followed(seed)
    weights = np.random.default_rng(seed).integers(0, 4, 60)
    fitted = SurvivalTree(depth=2, N_min=3).fit(X, y, sample_weight=weights)
    kept = weights > 0
    X, y, weights = X[kept], y[kept], weights[kept]
    baseline = nelson_aalen(y["days"], y["status"], weights)
    assert same(fitted.baseline_hazard_.times, baseline.times)
    assert same(fitted.baseline_hazard_.values, baseline.values)
    assert fitted.unique_times_.tolist() == sorted(set(y["days"]))
    assert fitted.event_times_.tolist() == sorted(set(y["days"][y["status"]]))
    leaf, ratio = fitted.apply(X), fitted.predict(X)
    for number in np.unique(leaf):
        here = leaf == number
        expected = weights[here] @ baseline.at(y["days"][here])
        assert ratio[here] == pytest.approx(weights[here] @ y["status"][here] / expected, rel=1e-6)
    rows = np.repeat(np.arange(len(X)), weights)
    repeated = SurvivalTree(depth=2, N_min=3).fit(X[rows], y[rows])
    assert same(fitted.score(X, y, weights), fitted.score(X[rows], y[rows]))
    # N_min counts samples: with repeated ones more trees have leaves of 3.
    assert at_least(fitted.objective_, repeated.objective_)


def deviance(ratio, seen, expected):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(seen, np.log(1 / (ratio * expected)) - 1, 0.0).sum() + (ratio * expected).sum()


@pytest.mark.parametrize("seed", seeds(3, 20))
def test_one_split_is_the_best_of_all(seed):
    """By the definition: the tree of Huisman et al. at depth 1, every split tried."""
    X, y = followed(seed, 25)
    seen, expected = y["status"], nelson_aalen(y["days"], y["status"]).at(y["days"])
    # A sample without exposure says nothing.
    X, y, seen, expected = X[expected > 0], y[expected > 0], seen[expected > 0], expected[expected > 0]
    tried = []
    for j in range(X.shape[1]):
        for threshold in np.unique(X[:, j])[1:]:
            right = X[:, j] >= threshold
            sides = [right, ~right]
            tried.append(
                sum(
                    deviance(seen[s].sum() / expected[s].sum(), seen[s], expected[s])
                    for s in sides
                    if s.any()
                )
            )
    fitted = SurvivalTree(depth=1).fit(X, y)
    assert fitted.objective_ == pytest.approx(min(tried) / deviance(1.0, seen, expected), rel=1e-6)


def test_the_tree_of_a_clinical_trial_has_the_published_ratios():
    """6-MP against placebo (Freireich et al. 1963): the log-rank test of textbooks expects 19.25 and 10.75 relapses."""
    treated = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
    relapsed = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    placebo = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
    weeks, event = np.array(treated + placebo, dtype=float), np.array(relapsed + [1] * 21, dtype=bool)
    arm = np.repeat([[1.0], [0.0]], 21, axis=0)
    fitted = SurvivalTree(depth=1).fit(arm, (event, weeks))
    assert fitted.predict([[1.0], [0.0]]) == pytest.approx([9 / 19.25, 21 / 10.75], rel=1e-3)
    medians = [
        times[kaplan_meier(weeks[own], event[own]).at(times) <= 0.5].min()
        for own, times in ((arm[:, 0] == value, np.unique(weeks)) for value in (1.0, 0.0))
    ]
    assert medians == [23, 8]


def test_functions_of_time_are_those_of_the_hazard_ratios():
    X, y = followed(1)
    fitted = SurvivalTree(depth=2, N_min=5).fit(X, y)
    times, ratio = fitted.unique_times_, fitted.predict(X)
    hazards = fitted.predict_cumulative_hazard_function(X, return_array=True)
    alive = fitted.predict_survival_function(X, return_array=True)
    assert hazards.shape == alive.shape == (60, len(times))
    assert same(hazards, ratio[:, None] * nelson_aalen(y["days"], y["status"]).at(times))
    assert same(alive, np.exp(-hazards))
    asked = np.array([0.0, times[3], times[3] + 0.5, times[-1], 10 * times[-1]])
    for functions, values, first in (
        (fitted.predict_cumulative_hazard_function(X), hazards, 0.0),
        (fitted.predict_survival_function(X), alive, 1.0),
    ):
        assert functions.shape == (60,)
        assert functions.dtype == object
        for function, row in zip(functions, values, strict=True):
            assert isinstance(function, StepFunction)
            assert same(function(times), row)
            assert same(function(asked), [first, row[3], row[3], row[-1], row[-1]])
            assert same(function.y, row)
        assert same(functions[0].x, times)
        assert np.ndim(functions[0](times[3])) == 0
        assert same(pickle.loads(pickle.dumps(functions[0]))(asked), functions[0](asked))
    with pytest.raises(DataError, match="time is nan"):
        fitted.predict_survival_function(X)[0](np.nan)
    assert same(fitted.baseline_hazard_(times), fitted.baseline_hazard_.at(times))


def test_a_leaf_without_events_has_no_hazard():
    X, y = np.arange(8.0)[:, None], (np.arange(8) > 3, np.arange(8.0, 0.0, -1.0))
    fitted = SurvivalTree(depth=1).fit(X, y)
    assert fitted.predict([[0.0]]) == 0  # exact: no event
    # exact: no hazard
    assert (fitted.predict_survival_function([[0.0]], return_array=True) == 1).all()


def test_the_score_is_harrells_c():
    X, y = followed(2)
    fitted = SurvivalTree(depth=1, N_min=5).fit(X[:40], y[:40])
    seen, days, risk = y["status"], y["days"], fitted.predict(X)
    won = []
    for i in np.flatnonzero(seen):
        later = (days > days[i]) | ((days == days[i]) & ~seen)
        won += np.where(risk[i] == risk[later], 0.5, risk[i] > risk[later]).tolist()
    assert same(fitted.score(X, y), np.mean(won))
    assert same(SurvivalTree(depth=1, alpha=9.0).fit(X, y).score(X, y), 0.5)
    with pytest.raises(DataError, match="no two of the 1 samples can be compared"):
        fitted.score(X[:1], (seen[:1], days[:1]))


def test_scikit_learn_copies_files_and_searches_it(tmp_path):
    X, y = followed(3)
    tree = SurvivalTree(depth=1, N_min=4)
    scores = cross_val_score(tree, X, y, cv=KFold(3, shuffle=True, random_state=0), error_score="raise")
    train, held = next(iter(KFold(3, shuffle=True, random_state=0).split(X)))
    one = clone(tree).fit(X[train], y[train])
    risk = one.predict(X[held])
    assert same(scores[0], concordance(y["days"][held], y["status"][held], risk))
    search = GridSearchCV(tree, {"alpha": [9.0, 0.0], "depth": [1, 2]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.5
    assert search.best_params_["alpha"] == 0
    again = pickle.loads(pickle.dumps(one))
    assert same(again.predict(X), one.predict(X))
    assert same(again.score(X, y), one.score(X, y))
    assert same(again.predict_survival_function(X, return_array=True), one.predict_survival_function(X, True))
    assert not hasattr(again, "result_")
    assert not hasattr(clone(one), "unique_times_")
    piped = make_pipeline(StandardScaler(), SurvivalTree(depth=1)).fit(X, y)
    assert piped.score(X, y) > 0.5


@pytest.mark.filterwarnings("ignore:the search did not begin with the start")
def test_tables_with_gaps_and_levels():
    X, y = followed(4)
    table = pd.DataFrame(
        {"age": X[:, 0], "cell": np.array(["adeno", "large", "small"])[X[:, 1].astype(int) // 2]}
    )
    table.loc[::4, "age"] = np.nan
    for settings in ({"missing": "branch", "categorical": ["cell"]}, {"missing": "impute"}):
        fitted = SurvivalTree(depth=2, N_min=4, **settings).fit(table, y)
        assert (fitted.status_, fitted.verified_) == ("optimal", True)
        assert "cell" in fitted.to_text()
        assert fitted.feature_importances_.sum() == pytest.approx(1.0)
    large = SurvivalTree(depth=2, min_weight_fraction_leaf=0.2).fit(X, y)
    assert (large.status_, large.verified_) == ("optimal", True)
    expected = nelson_aalen(y["days"], y["status"]).at(y["days"])
    shares = np.bincount(large.apply(X), expected) / expected.sum()
    assert at_least(shares[shares > 0], 0.2 - 1e-6)


def test_texts_and_pictures_count_samples():
    X, y = followed(0)
    fitted = SurvivalTree(depth=1, N_min=5).fit(X, y)
    text = fitted.to_text(X, y)
    assert text == fitted.to_text(X)
    assert sum(map(int, re.findall(r"\[(\d+)\]", text))) == 2 * 60  # at the root and at both leaves
    assert fitted.plot(X, y).axes
    with pytest.raises(DataError, match=r"y has shape \(60,\)"):
        fitted.to_text(X, y["days"])


SEEN, DAYS = np.arange(20) % 3 > 0, np.arange(1.0, 21.0)


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (None, "SurvivalTree requires y to be passed, but the target y is None"),
        (DAYS, "y has shape (20,)"),
        (np.column_stack([SEEN, DAYS, DAYS]), "y has shape (20, 3)"),
        (pd.DataFrame({"status": SEEN}), "y has 1 columns (status)"),
        (np.zeros(20, dtype=[("a", bool), ("b", float), ("c", float)]), "y has 3 columns (a, b, c)"),
        ([[1, 2.0], [3]], "y is no table"),
        ((SEEN, DAYS[:5]), "events of shape (20,) and times of shape (5,)"),
        ((SEEN, DAYS.astype(str)), "times of type <U32, which are no numbers"),
        ((SEEN, DAYS.astype("timedelta64[D]")), "times of type timedelta64[D], which are no numbers"),
        ((np.array(["dead"] * 20, dtype=object), DAYS), "y holds something that is no number"),
    ],
)
def test_other_forms_are_refused_with_those_that_there_are(y, told):
    with pytest.raises(DataError) as refused:
        SurvivalTree(depth=1).fit(DAYS[:, None], y)
    assert told in str(refused.value)
    assert "give a structured array whose first field says whether the event was seen" in str(refused.value)


@pytest.mark.parametrize(
    ("y", "told"),
    [
        ((DAYS, SEEN), "the event 2 in row 1, which is neither true nor false; the times come second"),
        ((SEEN + 1, DAYS), "the event 2 in row 1, which is neither true nor false; give a structured"),
        ((SEEN, np.append(DAYS[:-1], np.nan)), "the time nan in row 19; give finite times of 0 or more"),
        ((SEEN, -DAYS), "the time -1 in row 0; give finite times of 0 or more"),
        ((np.zeros(20), DAYS), "none of the 20 samples had its event"),
        ((SEEN[:15], DAYS[:15]), "inconsistent numbers of samples"),
    ],
)
def test_events_and_times_that_are_none_are_named(y, told):
    with pytest.raises(ValueError) as refused:
        SurvivalTree(depth=1).fit(DAYS[:, None], y)
    assert told in str(refused.value)


def test_scikit_survival_takes_it_for_one_of_its_own():
    metrics = pytest.importorskip("sksurv.metrics")
    from sksurv.nonparametric import nelson_aalen_estimator
    from sksurv.util import Surv

    X, y = followed(5, 120)
    # The study ends at day 60 for all: beyond the longest time of training samples their censoring is not known.
    y = Surv.from_arrays(y["status"] & (y["days"] < 60), np.minimum(y["days"], 60))
    train, held = np.arange(80), np.arange(80, 120)
    fitted = SurvivalTree(depth=2, N_min=8).fit(X[train], y[train])
    seen, days = y["event"][held], y["time"][held]
    risk = fitted.predict(X[held])
    assert same(fitted.score(X[held], y[held]), metrics.concordance_index_censored(seen, days, risk)[0])
    times, hazard = nelson_aalen_estimator(y["event"][train], y["time"][train])
    assert fitted.unique_times_.tolist() == times.tolist()
    assert same(fitted.baseline_hazard_(times), hazard)
    asked = np.arange(5.0, 50.0, 5.0)
    alive = np.vstack([function(asked) for function in fitted.predict_survival_function(X[held])])
    _, theirs = metrics.brier_score(y[train], y[held], alive, asked)
    censoring = kaplan_meier_of_censoring(y["time"][train], y["event"][train])
    assert same(brier_scores(days, seen, alive, asked, censoring), theirs)
    scorer = metrics.as_integrated_brier_score_scorer(SurvivalTree(depth=2, N_min=8), times=asked)
    whole = integrated_brier_score(days, seen, alive, asked, censoring)
    assert same(-scorer.fit(X[train], y[train]).score(X[held], y[held]), whole)
    by_weight = metrics.as_concordance_index_ipcw_scorer(SurvivalTree(depth=2, N_min=8), tau=asked[-1])
    assert by_weight.fit(X[train], y[train]).score(X[held], y[held]) == pytest.approx(
        metrics.concordance_index_ipcw(y[train], y[held], risk, tau=asked[-1])[0]
    )
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(scorer, {"estimator__N_min": [5, 20]}, cv=folds, error_score="raise").fit(X, y)
    assert -0.25 < search.best_score_ < 0
