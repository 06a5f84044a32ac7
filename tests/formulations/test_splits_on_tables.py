"""Splits on sets of levels, and splits that send missing values to a side: as good as all trees by brute force."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from enumerate_trees import best_table_value, misclassified, squared_loss

from formulations.leaves import baseline_error
from mipforest.data import Dataset
from mipforest.problem.registry import get_formulation

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


@pytest.mark.parametrize("seed", range(200))
def test_sets_of_levels_are_those_of_enumeration(seed):
    build, expected = case(seed, gaps=False)
    result = build().solve("exact-search")
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(100))
def test_missing_values_go_where_enumeration_sends_them(seed):
    build, expected = case(seed, gaps=True)
    result = build().solve("exact-search")
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 8))])
def test_rows_have_the_same_optimum(seed, gaps):
    build, expected = case(seed, gaps=gaps)
    result = build().solve("highs", time_limit=60)
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("gaps", [False, True])
def test_local_search_finds_the_optimum_of_small_tables(gaps):
    for seed in range(12):
        build, expected = case(seed, gaps=gaps)
        result = build().solve("local-search", time_limit=1)
        assert result.verified
        assert result.objective == pytest.approx(expected, abs=TOLERANCE)
