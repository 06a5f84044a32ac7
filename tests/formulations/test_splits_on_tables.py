"""Splits on sets of levels, and splits that send missing values to a side: as good as all trees by brute force."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from enumerate_trees import best_table_value, misclassified, squared_loss
from seeds import seeds

from formulations.leaves import baseline_error
from mipforest.constraints import forbid_features
from mipforest.data import DataError, Dataset, load
from mipforest.data.encoding import MAX_SET_LEVELS
from mipforest.problem.registry import get_formulation
from mipforest.trees import to_text

#: What an optimum may differ by: solvers close the gap up to their tolerances.
TOLERANCE = 1e-6


def random_table(seed, *, gaps, regression=False):
    """A table of two columns of levels and one of numbers, with a target ``y``; with ``gaps`` values are missing."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 17))
    frame = pd.DataFrame(
        {
            "colour": rng.choice(list("abcde")[: rng.integers(3, 6)], n),
            "size": rng.integers(0, 6, n).astype(float),
            "smoker": rng.choice(["no", "yes"], n),
        }
    )
    if gaps:
        frame = frame.mask(rng.random(frame.shape) < 0.2)
    return frame.assign(y=rng.normal(size=n).round(2) if regression else rng.permutation(np.arange(n) % 2))


def columns_of(frame):
    """The feature columns as lists, ``None`` for missing values."""
    features = frame.drop(columns="y").astype(object)
    return [[None if pd.isna(value) else value for value in features[name]] for name in features]


def case(seed, *, gaps):
    """A random case: problem, and the least value by enumeration."""
    rng = np.random.default_rng([seed, 1])
    name = ("oct", "ort")[seed % 2]
    frame = random_table(seed, gaps=gaps, regression=name == "ort")
    missing = "branch" if gaps else "error"
    data = Dataset.from_frame(frame, "y", missing=missing, categorical="all", task=TASKS[name])
    alpha, depth, n_min = float(rng.choice([0.0, 0.05])), 1 + seed // 2 % 2, int(rng.integers(1, 4))
    cost = (misclassified if name == "oct" else squared_loss)(data.y)
    unit = baseline_error(data) if name == "oct" else cost(list(range(data.n)))
    expected = best_table_value(columns_of(frame), cost, depth, alpha * unit, n_min) / unit
    build = partial(get_formulation(name)(alpha=alpha, N_min=n_min).build, data, depth)
    return build, expected


TASKS = {"oct": "classification", "ort": "regression"}


@pytest.mark.first_cases(6)
@pytest.mark.parametrize("seed", seeds(20, 200))
def test_sets_of_levels_are_those_of_enumeration(seed):
    build, expected = case(seed, gaps=False)
    result = build().solve("exact-search")
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.first_cases(8)
@pytest.mark.parametrize("seed", seeds(30, 100))
def test_missing_values_go_where_enumeration_sends_them(seed):
    build, expected = case(seed, gaps=True)
    result = build().solve("exact-search")
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 8))])
def test_rows_have_the_same_optimum(seed, gaps):
    build, expected = case(seed, gaps=gaps)
    problem = build()
    result = problem.solve("highs", start=None, time_limit=60)
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(
    "seed", [0, 1, 4, 5, *(pytest.param(k, marks=pytest.mark.slow) for k in range(8, 14))]
)
def test_binaries_of_levels_alone_choose_sets(seed, gaps):
    """Without what the exact search proves of the root, and with one binary per level and node for sets."""
    build, expected = case(seed, gaps=gaps)
    problem = build()
    model, levels = problem.model, problem.instance.routing.levels
    if "root_value" in model.constraints:
        model.remove("root_value")
    assert not model["u"].integer[:, levels.thresholds].any()
    # One binary per level and node: of colours that some sample has, and of missing ones.
    assert model["y"].integer.all()
    assert model["y"].shape[1] == len({*levels.names}) <= 6 + 3
    result = problem.solve("highs", start=None, time_limit=60)
    # No bound is stated of a model that lost a row; that HiGHS ended is all that is asked for.
    assert result.solution.message == "Optimal"
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("gaps", [False, True])
def test_local_search_finds_the_optimum_of_small_tables(gaps):
    for seed in range(12):
        build, expected = case(seed, gaps=gaps)
        result = build().solve("local-search", time_limit=1)
        assert result.verified
        assert result.objective == pytest.approx(expected, abs=TOLERANCE)


def prescription_cost(y, had):
    """Cost of a leaf of OPT with mu = 1/2: its best treatment's estimated outcomes, and squared errors, halved."""

    def cost(rows):
        means = {t: y[[i for i in rows if had[i] == t]].mean() for t in set(had[rows])}
        error = sum((y[i] - means[had[i]]) ** 2 for i in rows)
        return min(sum(y[i] if had[i] == t else means[t] for i in rows) + error for t in means) / (2 * len(y))

    return cost


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", seeds(4, 12))
def test_prescriptive_trees_part_levels_too(seed):
    frame = random_table(seed, gaps=seed % 2 == 1, regression=True)
    frame["had"] = np.random.default_rng(seed).permutation(np.arange(len(frame)) % 2)
    data = Dataset.from_frame(frame, "y", missing="branch", categorical="all", treatment="had")
    depth = 1 + seed // 2 % 2
    problem = get_formulation("opt")(mu=0.5, n_treatment=1).build(data, depth)
    cost = prescription_cost(data.y, frame["had"].to_numpy())
    expected = best_table_value(columns_of(frame.drop(columns="had")), cost, depth, 0.0, 1)
    result = problem.solve()
    assert (result.solution.solver, result.status, result.verified) == (
        "prescription-search",
        "optimal",
        True,
    )
    assert result.objective == pytest.approx(expected, abs=TOLERANCE)
    if seed < 2:
        rows = problem.solve("highs", start=None, gap=1e-7)
        assert rows.verified
        assert rows.objective == pytest.approx(expected, abs=TOLERANCE)


def test_models_of_other_splits_refuse_sets_and_branches():
    frame = random_table(1, gaps=False)
    sets = Dataset.from_frame(frame, "y", categorical=["colour"])
    branch = Dataset.from_frame(random_table(1, gaps=True), "y", missing="branch")
    for name in ("oct-h", "margot", "olct", "univariate-olct"):
        with pytest.raises(DataError, match=f"^{name} has no splits on sets of levels.*'colour'.*one-hot"):
            get_formulation(name)().build(sets, 1)
        with pytest.raises(DataError, match=f"^{name} sends no missing values to a side.*missing='impute'"):
            get_formulation(name)().build(branch, 1)
    with pytest.raises(DataError, match="ogrs has no splits on sets of levels"):
        get_formulation("ogrs")().build(sets)


def test_too_many_levels_are_refused_and_one_hot_is_the_hint():
    frame = pd.DataFrame({"city": [f"c{k:02d}" for k in range(12)] * 2, "y": [0, 1] * 12})
    with pytest.raises(DataError, match=r"'city' \(12\): .*at most 10 levels.*one-hot") as refused:
        Dataset.from_frame(frame, "y", categorical="all")
    assert "--categorical" in refused.value.option
    ten = frame[frame["city"] < "c10"]
    data = Dataset.from_frame(ten, "y", categorical="all")
    assert data.p == 2 ** (MAX_SET_LEVELS - 1) - 1
    with pytest.raises(DataError, match=r"'city' \(11\)"):
        Dataset.from_frame(
            ten.assign(city=ten["city"].mask(ten.index == 3)), "y", categorical="all", missing="branch"
        )
    with pytest.raises(DataError, match="no feature column is called 'town'"):
        Dataset.from_frame(ten, "y", categorical=["town"])


@pytest.mark.slow
def test_numbers_can_be_levels_and_levels_keep_their_meaning():
    frame = pd.DataFrame({"ward": [1, 2, 3, 4] * 6, "y": [0, 1, 1, 0] * 6})
    data = Dataset.from_frame(frame, "y", categorical=["ward"])
    result = get_formulation("oct")().build(data, 1).solve()
    assert result.measures(data)["accuracy"] == 1.0
    assert to_text(result.tree).startswith("n0: ward in {2, 3}")
    problem = get_formulation("oct")().build(data, 1)
    forbid_features(problem, "ward")
    assert problem.solve("highs").tree.n_splits == 0


def test_a_table_is_named_where_it_has_no_columns_of_text():
    with pytest.raises(DataError, match=r"fixed columns of numbers.*colour"):
        load("iris", categorical=["colour"])


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("seed", range(6))
def test_policies_part_levels_too(seed):
    frame = random_table(seed, gaps=seed % 2 == 1).drop(columns="y")
    rewards = np.random.default_rng(seed).normal(size=(len(frame), 3)).round(2)
    names = ["rest", "drug", "surgery"]
    table = frame.join(pd.DataFrame(rewards, columns=names))
    data = Dataset.from_frame(table, None, rewards=names, missing="branch", categorical="all")
    regrets = rewards.max(axis=1, keepdims=True) - rewards
    expected = best_table_value(
        columns_of(frame.assign(y=0)), lambda rows: regrets[rows].sum(axis=0).min() / len(frame), 2, 0.0, 1
    )
    result = get_formulation("policy")().build(data, 2).solve()
    assert (result.status, result.verified) == ("optimal", True)
    assert result.objective == pytest.approx(expected, abs=TOLERANCE)
