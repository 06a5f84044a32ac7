"""Semi-supervised trees: optima against enumeration, bounds of prices, totals as given, samples without a label."""

from itertools import pairwise, product

import numpy as np
import pytest
from tolerance import at_most, less

from formulations.oct import Oct
from formulations.semi import SemiOct, Totals, predicted_totals
from mipforest.constraints import forbid_features
from mipforest.data import DataError, Dataset, load
from mipforest.problem.parameters import ParameterError

PROVEN = {"time_limit": None, "gap": 1e-9}


def least_costs(X, rows, y, levels, alpha, n_min):
    """Every number of unlabelled samples (y = -1) in each class that a tree predicts, with the least cost of errors."""
    K = y.max() + 1
    found = {}
    if len(rows) >= n_min:
        for k in range(K):
            counts = tuple(int((y[rows] == -1).sum()) * (j == k) for j in range(K))
            found[counts] = min(found.get(counts, np.inf), ((y[rows] >= 0) & (y[rows] != k)).sum())
    if levels:
        for j in range(X.shape[1]):
            for low, high in pairwise(sorted(set(X[rows, j]))):
                left = X[rows, j] < (low + high) / 2
                sides = (
                    least_costs(X, part, y, levels - 1, alpha, n_min) for part in (rows[left], rows[~left])
                )
                for (a, cost), (b, other) in product(*(side.items() for side in sides)):
                    counts = tuple(np.add(a, b).tolist())
                    found[counts] = min(found.get(counts, np.inf), cost + other + alpha)
    return found


def best_value(X, y, depth, alpha, n_min, total, price):
    """Least errors, price of missed totals and cost of splits (in errors), over all trees."""
    costs = least_costs(X, np.arange(len(X)), y, depth, alpha, n_min)
    known = ~np.isnan(total)

    def missed(counts):
        away = (np.array(counts) - total)[known]
        return max(away[away > 0].sum(), -away[away < 0].sum())

    return min(cost + price * missed(counts) for counts, cost in costs.items())


def case(seed):
    """Few samples with ties, two or three classes, totals of all classes or of one."""
    rng = np.random.default_rng(seed)
    n, m, K, p = int(rng.integers(6, 10)), int(rng.integers(4, 9)), 2 + seed % 2, int(rng.integers(1, 3))
    X = rng.integers(0, 5, (n + m, p)).astype(float)
    y = np.concatenate([rng.permutation(np.arange(n) % K), np.full(m, -1)])
    total = rng.multinomial(m, np.ones(K) / K).astype(float)
    if seed % 3 == 0:
        total[1:] = np.nan
    data = Dataset.from_arrays(X[:n], y[:n], unlabelled=X[n:])
    given = {
        "alpha": float(rng.choice([0.0, 0.05, 0.2])),
        "N_min": int(rng.integers(1, 4)) if seed % 2 else 1,
        "total_price": float(rng.choice([0.25, 1.0, 3.0])),
        "totals": {str(k): total[k] for k in range(K) if not np.isnan(total[k])},
    }
    return X, y, data, given, total


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(s, marks=pytest.mark.slow) for s in range(6, 24))]
)
def test_variants_and_enumeration_agree(seed):
    X, y, data, given, total = case(seed)
    depth, n = 1 + seed % 3 % 2, data.n
    unit = float(n - np.bincount(y[:n]).max())
    expected = best_value(X, y, depth, given["alpha"] * unit, given["N_min"], total, given["total_price"])
    for variant in SemiOct.variants:
        problem = SemiOct(**given, variant=variant).build(data, depth)
        result = problem.solve("highs", **PROVEN)
        assert result.status == "optimal", variant
        assert result.verified, (variant, result.failed_checks)
        assert result.objective == pytest.approx(expected / unit, abs=1e-6), variant


@pytest.mark.parametrize(
    ("seed", "depth"),
    # Two classes; three classes and one total; three classes at depth 1.
    [
        *((2 * k, 1 + k % 2) for k in range(40, 48)),
        *((6 * k + 3, 2) for k in range(2)),
        (5, 1),
        *(pytest.param(2 * k, 1 + k % 2, marks=pytest.mark.slow) for k in range(48, 60)),
        *(pytest.param(6 * k + 3, 2, marks=pytest.mark.slow) for k in range(2, 6)),
    ],
)
def test_the_start_is_the_optimum(seed, depth):
    """Without a solver: the search of roots ends with a proof."""
    X, y, data, given, total = case(seed)
    n = data.n
    unit = float(n - np.bincount(y[:n]).max())
    expected = best_value(X, y, depth, given["alpha"] * unit, given["N_min"], total, given["total_price"])
    formulation = SemiOct(**given)
    instance = formulation.build(data, depth).instance
    assert formulation.evaluate(instance.known, instance) == pytest.approx(expected / unit, abs=1e-9)
    assert instance.least_objective == pytest.approx(expected / unit, abs=1e-6)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("seed", range(1, 14, 2))
def test_bounds_of_three_classes_hold(seed):
    X, y, data, given, total = case(seed)
    unit = float(data.n - np.bincount(y[: data.n]).max())
    least = best_value(X, y, 2, given["alpha"] * unit, given["N_min"], total, given["total_price"])
    instance = SemiOct(**given).build(data, 2).instance
    assert at_most(instance.least_objective, least / unit)
    assert instance.roots is not None
    assert at_most(min(instance.roots.by_threshold.min(), instance.roots.no_split), least)


@pytest.mark.slow
def test_scip_agrees():
    pytest.importorskip("pyscipopt")
    _, _, data, given, _ = case(5)
    values = [
        SemiOct(**given, variant="valid").build(data, 2).solve(solver, time_limit=None, gap=1e-6).objective
        for solver in ("highs", "scip")
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


def test_without_unlabelled_samples_it_is_oct():
    data = load("iris").take(np.arange(0, 150, 5))
    semi, oct = (model(alpha=0.02, N_min=2).build(data, 2).solve(**PROVEN) for model in (SemiOct, Oct))
    assert semi.objective == pytest.approx(oct.objective, abs=1e-7)


def hidden(name, share, seed):
    """A bundled data set without most of its labels, and these."""
    full = load(name)
    away = np.random.default_rng(seed).random(full.n) < share
    data = Dataset.from_arrays(
        full.X_raw[~away], full.y[~away], unlabelled=full.X_raw[away], features=full.features.labels
    )
    return data, np.bincount(full.y[away])


def test_totals_are_met_on_data_of_which_most_labels_are_hidden():
    data, total = hidden("breast_cancer", 0.8, seed=0)
    formulation = SemiOct(alpha=0.01, totals=tuple(total))
    result = formulation.build(data, 2, whole=False).solve(time_limit=20.0)
    report = result.to_dict()
    assert result.status == "optimal"
    assert result.verified
    assert report["samples_without_label"] == total.sum()
    assert sum(report["predicted_totals"].values()) == total.sum()  # exact: counts
    alone = Oct(alpha=0.01).build(Dataset.from_arrays(data.X_raw, data.y), 2).solve(**PROVEN)
    missed = abs((alone.tree.predict(data.unlabelled) == 1).sum() - total[1])
    assert less(report["totals_missed_by"], missed)


def test_constraints_read_labelled_samples():
    _, _, data, given, _ = case(4)
    problem = SemiOct(**given).build(data, 2)
    forbid_features(problem, [data.features.labels[0]])
    result = problem.solve("highs", **PROVEN)
    assert result.verified
    assert not result.tree.unscaled().w[:, 0].any()
    expressions = SemiOct(**given).build(data, 2)
    assert expressions.formulation.expressions(expressions.model, expressions.instance).predicted(
        0
    ).shape == (data.n,)


def test_price_zero_and_high():
    _, _, data, given, total = case(2)
    free = SemiOct(**{**given, "alpha": 0.0, "total_price": 0.0}).build(data, 2).solve("highs", **PROVEN)
    labelled = Oct(N_min=given["N_min"]).build(Dataset.from_arrays(data.X_raw, data.y), 2)
    assert at_most(free.objective, labelled.solve("highs", **PROVEN).objective)
    dear = SemiOct(**{**given, "alpha": 0.0, "total_price": 100.0}).build(data, 2)
    result = dear.solve("highs", **PROVEN)
    predicted = predicted_totals(result.tree.unscaled(), dear.instance)
    ideal = best_value(
        np.vstack([data.X_raw, data.unlabelled]),
        np.concatenate([data.y, np.full(len(data.unlabelled), -1)]),
        2, 0.0, given["N_min"], total, 100.0,
    )  # fmt: skip
    assert at_most(100.0 * dear.instance.missed(predicted), ideal)


# ---------------------------------------------------------------------- totals as they are given


def test_totals_are_read_as_they_are_written():
    kind = Totals()
    assert kind.parse("totals", "yes:30,no:0.5") == (("yes", 30.0), ("no", 0.5))
    assert kind.parse("totals", "30, 70") == (30.0, 70.0)
    for value in (None, (("a", 3.0),), (1.0, 2.0)):
        assert kind.check("totals", kind.to_json(value)) == value  # exact: a copy
    assert kind.check("totals", {1: 3}) == (("1", 3.0),)


@pytest.mark.parametrize("text", ["yes", "yes:3,4", "", "yes:3,yes:4", "yes:-1", "yes:nan", "yes:inf"])
def test_what_gives_no_totals(text):
    with pytest.raises(ParameterError, match="parameter totals"):
        Totals().parse("totals", text)


@pytest.mark.parametrize("value", [True, "3", [], [[1.0]], {"a": "b"}, [-1.0]])
def test_what_are_no_totals(value):
    with pytest.raises(ParameterError, match="parameter totals is"):
        SemiOct(totals=value)


def test_totals_belong_to_classes_and_samples_without_a_label():
    data = Dataset.from_arrays([[1.0], [2.0]], ["no", "yes"], unlabelled=np.arange(10.0)[:, None])
    assert Totals.of((("yes", 0.3),), data).tolist() == pytest.approx([np.nan, 3.0], nan_ok=True)
    assert Totals.of((4.0, 6.0), data).tolist() == [4.0, 6.0]  # exact: a copy
    for totals, told in [
        (None, "totals is needed"),
        ((("yess", 3.0),), "did you mean 'yes'"),
        ((1.0, 2.0, 3.0), "has 3 numbers"),
        ((4.0, 9.0), "adds up to 13"),
        ((1.0, 3.0), "adds up to 4"),
    ]:
        with pytest.raises(ParameterError, match=told):
            SemiOct(totals=totals).build(data, 1)


# ---------------------------------------------------------------------- samples without a label


def test_other_models_refuse_samples_without_a_label():
    data, _ = hidden("iris", 0.8, seed=1)
    with pytest.raises(DataError, match=r"oct has no use for samples without a label.*semi-oct"):
        Oct().build(data, 1)


def test_sizes_of_leaves_count_both_kinds():
    data = Dataset.from_arrays([[1.0], [2.0]], [0, 1], unlabelled=[[0.0], [3.0]])
    assert SemiOct(N_min=2, totals=(1.0, 1.0)).build(data, 1).solve(**PROVEN).objective == pytest.approx(0.0)
    with pytest.raises(DataError, match="N_min is 5"):
        SemiOct(N_min=5, totals=(1.0, 1.0)).build(data, 1)


def test_a_start_of_three_levels_in_the_variant_without_one():
    """The start of one level less is that of the variant ``tight``."""
    rng = np.random.default_rng(3)
    X = rng.random((24, 2))
    data = Dataset.from_arrays(X[:12], np.arange(12) % 2, unlabelled=X[12:])
    problem = SemiOct(variant="valid", totals=(("1", 6.0),)).build(data, 3)
    tree = problem.start_tree("depth-two")
    assert tree is not None
    assert np.isfinite(problem.formulation.evaluate(tree, problem.instance))
