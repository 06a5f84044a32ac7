from functools import cache
from itertools import islice

import numpy as np
import pytest
from labelled_trees import labelled_trees
from tolerance import at_least

from formulations.leaves import baseline_error
from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.ort import Ort
from mipforest import constraints
from mipforest.data import DataError, Dataset, load
from mipforest.problem import repair
from mipforest.problem.expressions import NotExpressed
from mipforest.time_budget import TimeBudget

pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": None, "gap": 1e-9}
GROUP = np.array(list("abaabbabab"))


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """Draw few trees where a start is looked for: a search of 5000 takes seconds, and is tested with the repairs."""
    monkeypatch.setattr(repair, "CANDIDATES", 100)


def small_data(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (10, 2)).astype(float)
    y = ((X[:, 0] + rng.integers(0, 4, 10)) > 3).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y)


@cache
def all_trees(seed):
    """All trees on a data set, what each costs, and whether its leaves predict their most common classes."""
    data = small_data(seed)
    trees, baseline = list(labelled_trees(data.X_raw)), baseline_error(data)
    costs = np.array([cost(tree, data.y, baseline) for tree in trees])
    return trees, costs, np.array([has_majority_labels(tree, data.y) for tree in trees])


def shares_within(tree, among, tolerance):
    shares = [tree.predicted[among & (g == GROUP)].mean() for g in "ab"]
    return abs(shares[0] - shares[1]) <= tolerance + 1e-9


def paths(tree):
    root, left, right = tree.features
    return [(root, left), (root, right)]


def is_monotone(tree, j):
    """No leaf right of a split on j predicts less than one to its left."""
    a, b, c, d = tree.labels
    root, left, right = (feature == j for feature in tree.features)
    return not (
        (root and max(a, b) > min(c, d)) or (left and a > b) or (right and c > d)
    )  # an unsplit node never uses its left leaf, which may be labelled at will


CASES = {
    "forbid_features": (lambda p: constraints.forbid_features(p, "x0"), lambda t, y: 0 not in t.features),
    "forbid_at_root": (
        lambda p: constraints.forbid_features(p, ["x0"], nodes=[0]),
        lambda t, y: t.features[0] != 0,
    ),
    "require_features": (
        lambda p: constraints.require_features(p, ["x0", "x1"]),
        lambda t, y: {0, 1} <= set(t.features),
    ),
    "feature_budget": (
        lambda p: constraints.feature_budget(p, 2.5, {"x0": 2.0, "x1": 1.0}),
        lambda t, y: {0, 1} - set(t.features),
    ),
    "once_per_path": (
        constraints.once_per_path,
        lambda t, y: all(up is None or up != down for up, down in paths(t)),
    ),
    "monotone": (lambda p: constraints.monotone(p, "x1"), lambda t, y: is_monotone(t, 1)),
    "fix_split": (
        lambda p: constraints.fix_split(p, "x1", 1.5),
        lambda t, y: t.splits[0] is not None and t.splits[0][0] == 1 and 1 < t.splits[0][1] < 2,
    ),
    "min_samples_leaf": (
        lambda p: constraints.min_samples_leaf(p, 3),
        lambda t, y: all(size == 0 or size >= 3 for size in np.bincount(t.leaf, minlength=4)),
    ),
    "min_weight_fraction_leaf": (
        lambda p: constraints.min_weight_fraction_leaf(p, 0.3),
        lambda t, y: all(size == 0 or size >= 3 for size in np.bincount(t.leaf, minlength=4)),
    ),
    "demographic_parity": (
        lambda p: constraints.demographic_parity(p, GROUP, 0.25),
        lambda t, y: shares_within(t, np.full(len(y), True), 0.25),
    ),
    "equal_opportunity": (
        lambda p: constraints.equal_opportunity(p, GROUP, 0.1, positive="0"),
        lambda t, y: shares_within(t, y == 0, 0.1),
    ),
    "max_false_negatives": (
        lambda p: constraints.max_false_negatives(p, 0),
        lambda t, y: not ((t.predicted == 0) & (y == 1)).any(),
    ),
}


#: A seed for each case at which the constraint cuts off the best tree.
SEEDS = {
    "forbid_features": 2,
    "forbid_at_root": 2,
    "require_features": 0,
    "feature_budget": 2,
    "once_per_path": 2,
    "monotone": 2,
    "fix_split": 2,
    "min_samples_leaf": 2,
    "min_weight_fraction_leaf": 2,
    "demographic_parity": 1,
    "equal_opportunity": 2,
    "max_false_negatives": 3,
}
ALPHA = 0.02


def cost(tree, y, baseline):
    n_splits = sum(split is not None for split in tree.splits)
    return (tree.predicted != y).sum() / baseline + ALPHA * n_splits


def has_majority_labels(tree, y):
    counts = [np.bincount(y[tree.leaf == leaf], minlength=2) for leaf in range(4)]
    return all(count[label] == count.max() for count, label in zip(counts, tree.labels, strict=True))


#: Of each constraint one variant by default, in turn: constraints read expressions, which all have alike.
ONE_OF_EACH = {(name, ("tight", "paper")[k % 2]) for k, name in enumerate(CASES)} - {
    ("max_false_negatives", "paper")
}


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param(name, variant, marks=[] if (name, variant) in ONE_OF_EACH else [pytest.mark.slow])
        for name in CASES
        for variant in Oct.variants
    ],
)
def test_optimum_under_a_constraint_equals_enumeration(name, variant):
    constrain, holds = CASES[name]
    data = small_data(SEEDS[name])
    trees, costs, majority = all_trees(SEEDS[name])
    if variant == "paper":  # its rows (2.21) want the most common class in every leaf
        trees, costs = [tree for tree, kept in zip(trees, majority, strict=True) if kept], costs[majority]
    allowed = costs[[bool(holds(tree, data.y)) for tree in trees]]
    expected = allowed.min(initial=np.inf)
    assert expected > costs.min(), "the constraint must bind to be tested"

    problem = Oct(alpha=ALPHA, variant=variant).build(data, 2)
    constrain(problem)
    result = problem.solve("highs", start=None, **PROVEN)  # repairs of starts have tests of their own
    assert result.status == ("optimal" if len(allowed) else "infeasible")
    if len(allowed):
        assert result.verified, result.failed_checks
        assert result.objective == pytest.approx(expected, abs=1e-6)


# ---------------------------------------------------------------------- on real data, from the tree's predictions


@pytest.fixture(scope="module")
def patients():
    """Diabetes progression above or below the median, 40 patients, three features."""
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame.iloc[:40]
    frame = frame.assign(target=np.where(frame["target"] > frame["target"].median(), "worse", "better"))
    return Dataset.from_frame(frame[["sex", "bmi", "bp", "target"]], target="target", scaling="minmax")


def test_parity_holds_in_the_predictions_of_the_tree(patients):
    sex = patients.X_raw[:, 0]
    free = Oct().build(patients, 1).solve("highs", **PROVEN)
    problem = Oct().build(patients, 1)
    constraints.demographic_parity(problem, sex, 0.03)
    fair = problem.solve("highs", **PROVEN)

    def difference(tree):
        worse = tree.predict_labels(patients.X_raw) == "worse"
        return abs(worse[sex == 1].mean() - worse[sex == 2].mean())

    assert fair.verified
    assert difference(free.tree) > 0.03
    assert difference(fair.tree) <= 0.03 + 1e-9
    assert at_least(fair.objective, free.objective)


def test_a_label_that_a_constraint_needs_is_not_replaced_by_the_majority(patients):
    problem = Oct().build(patients, 1)
    constraints.max_false_negatives(problem, 0)
    result = problem.solve("highs", **PROVEN)
    missed = (result.tree.predict(patients.X_raw) == 0) & (patients.y == 1)
    assert result.verified
    assert not missed.any()


def test_epsilon_constraint_gives_a_pareto_front(patients):
    """Fewest errors for each number of features: falling errors, never more features than allowed."""
    errors = []
    few = patients.take(np.arange(12))
    for most in (1, 2, 3):
        problem = Oct().build(few, 2)
        problem.model.add("at_most", constraints.features_used(problem).sum() <= most)
        result = problem.solve("highs", **PROVEN)
        assert result.verified
        assert len(result.features_used) <= most
        errors.append(round(result.objective, 9))  # proven up to a gap of 1e-9
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > errors[-1]


def test_a_start_that_breaks_the_constraint_is_reported(patients):
    problem = Oct().build(patients, 1)
    best = problem.solve("highs", **PROVEN)
    (used,) = best.features_used
    constraints.forbid_features(problem, used)
    result = problem.solve("highs", start=best.tree, **PROVEN)
    assert result.verified
    assert used not in result.features_used
    assert any("start" in warning for warning in result.solution.warnings)


def test_the_search_for_a_start_ends_in_its_time_however_long_trees_take(patients, monkeypatch):
    drawn = []
    # A fifth of the time per tree.
    budget = TimeBudget(clock=lambda: repair.SEARCH_TIME_LIMIT / 5 * len(drawn))
    problem = Oct().build(patients, depth=1, budget=budget)
    candidates = list(islice(problem.formulation.candidates(problem.instance), 50))

    def draw(self, instance):
        for candidate in candidates:
            drawn.append(candidate)
            yield candidate

    monkeypatch.setattr(Oct, "candidates", draw)
    monkeypatch.setattr(repair, "feasible_values", lambda problem, tree: None)
    assert repair._searched(problem) is None
    assert len(drawn) == 3


def test_hyperplanes_use_a_required_feature_with_a_real_weight(patients):
    problem = OctH().build(patients.take(np.arange(15)), 1)
    constraints.require_features(problem, "sex")
    result = problem.solve("highs", time_limit=30)
    assert result.verified
    assert "sex" in result.features_used


# ---------------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("constrain", "message"),
    [
        (lambda p: constraints.forbid_features(p, "bmj"), "no feature 'bmj' .did you mean 'bmi'"),
        (lambda p: constraints.feature_budget(p, 1, [1.0, 2.0]), "cost has shape"),
        (lambda p: constraints.feature_budget(p, 1, {"bmi": -1.0}), "costs are 0 or more"),
        (lambda p: constraints.demographic_parity(p, [1, 2], 0.1), "give one value each"),
        (lambda p: constraints.demographic_parity(p, np.ones(40), 0.1), "needs two groups or more"),
        (lambda p: constraints.max_false_negatives(p, 1, positive="bad"), "no class 'bad'"),
    ],
)
def test_bad_input(patients, constrain, message):
    with pytest.raises(DataError, match=message):
        constrain(Oct().build(patients, 1))


def test_a_threshold_outside_the_data_is_refused(patients):
    for variant in Oct.variants:
        with pytest.raises(NotExpressed, match="puts all training samples on one side"):
            constraints.fix_split(Oct(variant=variant).build(patients, 1), "bmi", 400)


def test_a_model_that_has_no_such_expression_names_its_blocks():
    data = load("diabetes")
    problem = Ort(variant="paper").build(data.take(np.arange(20)), 1)
    with pytest.raises(NotExpressed, match=r"model ort predicts numbers.*problem.model.add"):
        constraints.max_false_negatives(problem, 1, positive=None)
