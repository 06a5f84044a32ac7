import numpy as np
import pytest
from enumerate_trees import best_tree_value, misclassified
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from formulations.leaves import baseline_error
from formulations.oct import Oct
from mipforest.data import DataError, Dataset, load
from mipforest.heuristics.thresholds import find_thresholds, univariate_tree
from mipforest.problem.parameters import ParameterError
from mipforest.solving import solve
from mipforest.trees import Topology

PROVEN = {"time_limit": None, "gap": 1e-9}


def small_data(seed):
    """Ties, duplicates, a constant feature in some, 2 to 4 classes; with hyperparameters to match."""
    rng = np.random.default_rng(seed)
    n, p, K = int(rng.integers(6, 13)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    X = rng.integers(0, int(rng.integers(2, 7)), (n, p)).astype(float)
    if seed % 4 == 0:
        X[:, 0] = 3.0
    if seed % 3 == 0:
        X[n // 2 :] = X[: n - n // 2]
    y = rng.integers(0, K, n)
    y[:2] = [0, 1]
    alpha = float(rng.choice([0.0, 0.01, 0.1, 0.3]))
    n_min = int(rng.integers(1, 6)) if seed % 2 else 1
    return Dataset.from_arrays(X, y), alpha, min(n_min, n)


#: These have a constant feature, duplicates, both parities, both depths; the others are further mixes.
QUICK = (1, 3, 4, 6)
SEEDS = [pytest.param(seed, marks=[] if seed in QUICK else [pytest.mark.slow]) for seed in range(40)]


@pytest.mark.parametrize("seed", SEEDS)
def test_paper_tight_and_enumeration_agree(seed):
    data, alpha, n_min = small_data(seed)
    depth = 1 if seed % 5 == 4 else 2
    baseline = baseline_error(data)
    expected = best_tree_value(data.X, misclassified(data.y), depth, alpha * baseline, n_min) / baseline
    for variant in Oct.variants:
        result = Oct(alpha=alpha, N_min=n_min, variant=variant).build(data, depth).solve("highs", **PROVEN)
        assert result.status == "optimal", variant
        assert result.verified, (variant, result.failed_checks)
        assert result.objective == pytest.approx(expected, abs=1e-6), variant


@pytest.mark.parametrize(
    "seed", [1, 3, pytest.param(8, marks=pytest.mark.slow)]
)  # with a constant feature too
def test_depth_three_tight_equals_enumeration(seed):
    data, alpha, n_min = small_data(seed)
    baseline = baseline_error(data)
    expected = best_tree_value(data.X, misclassified(data.y), 3, alpha * baseline, n_min) / baseline
    result = Oct(alpha=alpha, N_min=n_min).build(data, 3).solve("highs", **PROVEN)
    assert result.verified
    assert result.objective == pytest.approx(expected, abs=1e-6)


def test_without_the_added_rows_the_thesis_model_needs_no_split():
    data = Dataset.from_arrays(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1])
    problem = Oct(alpha=0.5, variant="paper").build(data, 1)
    problem.model.remove("left_needs_split")
    # Samples go left and right at a node that does not split.
    matrix = solve(problem.model, **PROVEN)
    assert matrix.objective == pytest.approx(0.0)
    assert matrix.values["d"].sum() == 0
    # Its tree has another value by the definition, which counts, and is not called optimal.
    result = problem.solve("highs", start=None, **PROVEN)
    assert result.objective == pytest.approx(1.0)
    assert result.solution.bound == pytest.approx(0.0)
    assert result.status != "optimal"


@pytest.mark.parametrize("variant", Oct.variants)
@given(seed=st.integers(0, 10**6), depth=st.integers(1, 4))
@settings(max_examples=15)
def test_evaluate_is_the_definition(variant, seed, depth):
    rng = np.random.default_rng(seed)
    n, p, K = int(rng.integers(5, 40)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    X = np.round(rng.random((n, p)), 2)
    y = rng.integers(0, K, n)
    y[:2] = [0, 1]
    data = Dataset.from_arrays(X, y)
    formulation = Oct(alpha=0.05, N_min=1, variant=variant)
    tree = random_univariate_tree(rng, data, depth)
    instance = formulation.bind(data, Topology(depth))
    expected = (tree.predict(data.X) != data.y).sum() / baseline_error(data) + 0.05 * tree.n_splits
    assert formulation.evaluate(tree, instance) == pytest.approx(expected, abs=1e-12)


def random_univariate_tree(rng, data, depth):
    """Random splits that put samples on both sides, under parents that split; leaves labelled by majority."""
    topology = Topology(depth)
    feature = np.full(topology.n_branches, -1)
    threshold = np.zeros(topology.n_branches)
    here = {0: np.arange(data.n)}
    for t in topology.branches:
        rows = here.get(t, np.zeros(0, dtype=int))
        j = int(rng.integers(data.p))
        values = np.unique(data.X[rows, j])
        if len(values) > 1 and (t == 0 or feature[topology.parent(t)] >= 0) and rng.random() < 0.8:
            k = int(rng.integers(1, len(values)))
            feature[t], threshold[t] = j, (values[k - 1] + values[k]) / 2
        goes_right = data.X[rows, j] >= threshold[t] if feature[t] >= 0 else np.ones(len(rows), dtype=bool)
        here[topology.left(t)], here[topology.right(t)] = rows[~goes_right], rows[goes_right]
    labels = [
        np.bincount(data.y[here[leaf]], minlength=len(data.classes)).argmax() if len(here[leaf]) else 0
        for leaf in topology.leaves
    ]
    return univariate_tree(data, topology, feature, threshold, np.array(labels))


def test_alpha_has_the_meaning_of_cost_complexity_pruning():
    # CART's path prunes at alphas in units of errors per sample; ours are in units of Lhat errors. At depth 1 the
    # best stump pays exactly below alpha* = (Lhat - errors of the stump) / Lhat.
    data = load("iris")
    baseline = baseline_error(data)
    assert baseline == 100
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(data.X, data.y)
    errors = (stump.predict(data.X) != data.y).sum()
    worth = (baseline - errors) / baseline
    for alpha, splits in ((worth - 1e-3, 1), (worth + 1e-3, 0)):
        result = Oct(alpha=alpha).build(data, 1).solve("highs", **PROVEN)
        assert result.tree.n_splits == splits
        assert result.objective == pytest.approx(min(errors / baseline + alpha, 1.0))


def weakest_links(data, depth):
    """CART's pruning path in errors over Lhat: alphas, and the splits left from each on (Breiman et al. 1984, 3.3)."""
    source = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(data.X, data.y).tree_
    left, right, baseline = source.children_left.copy(), source.children_right.copy(), baseline_error(data)
    errors = source.n_node_samples * (1 - source.value[:, 0].max(axis=1)) / baseline

    def below(node):
        if left[node] < 0:
            return errors[node], 0
        parts = [below(child) for child in (left[node], right[node])]
        return sum(loss for loss, _ in parts), 1 + sum(splits for _, splits in parts)

    def reachable(node):
        return [] if left[node] < 0 else [node, *reachable(left[node]), *reachable(right[node])]

    path = []
    while nodes := reachable(0):
        links = {node: (errors[node] - below(node)[0]) / below(node)[1] for node in nodes}
        alpha = min(links.values())
        for node, link in links.items():
            if link <= alpha + 1e-12:
                left[node] = -1
        path.append((alpha, below(0)[1]))
    return path


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_pruned_cart_starts_follow_the_cost_complexity_path(name):
    data, depth = load(name), 3
    path = weakest_links(data, depth)
    assert len(path) >= 2
    for (alpha, splits), upper in zip(
        path, [*(alpha for alpha, _ in path[1:]), path[-1][0] + 1], strict=True
    ):
        if upper - alpha > 1e-6:
            formulation = Oct(alpha=(alpha + upper) / 2, variant="paper")
            pruned = formulation.start("cart", formulation.bind(data, Topology(depth)))
            assert pruned.n_splits == splits


def test_iris_depth_two_is_certified():
    result = Oct().build(load("iris"), 2).solve("highs", **PROVEN)
    assert result.verified
    assert result.status == "optimal"
    assert result.objective * 100 == pytest.approx(6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "errors"),
    [
        ("wine", 6),
        pytest.param("haberman", 67, marks=pytest.mark.slow),
        pytest.param("transfusion", 164, marks=pytest.mark.slow),
    ],
)
def test_optima_of_real_data(papers_data, name, errors):
    data = load(str(papers_data / f"{name}.csv"), task="classification")
    result = Oct().build(data, 2).solve("highs", time_limit=120)
    assert result.verified
    assert result.objective * baseline_error(data) == pytest.approx(errors)
    assert result.bound * baseline_error(data) == pytest.approx(errors, rel=1e-3)


def test_cart_start_respects_the_leaf_size_and_never_loses_to_cart():
    data = load("wine").take(np.arange(0, 178, 3))
    for n_min in (1, 5, 10):
        formulation = Oct(N_min=n_min)
        problem = formulation.build(data, 3)
        tree = formulation.start("cart", problem.instance)
        grown = DecisionTreeClassifier(max_depth=3, min_samples_leaf=n_min, random_state=0).fit(
            data.X, data.y
        )
        errors = (grown.predict(data.X) != data.y).sum()
        assert formulation.evaluate(tree, problem.instance) <= errors / baseline_error(data) + 1e-12
        assert problem.model.violations(formulation.encode(tree, problem.instance)).max <= 1e-6


def test_refuses_what_it_does_not_take():
    with pytest.raises(DataError, match="the target of diabetes is a number"):
        Oct().build(load("diabetes"), 2)
    data, _, _ = small_data(1)
    with pytest.raises(DataError, match="N_min is 50"):
        Oct(N_min=50).build(data, 2)
    with pytest.raises(DataError, match="min-max"):
        Oct().build(data.with_scaling("standard"), 2)
    with pytest.raises(ParameterError, match=">= 0"):
        Oct(alpha=-1)


def test_all_rows_equal_gives_the_tree_without_a_split():
    data = Dataset.from_arrays(np.ones((4, 2)), [0, 1, 1, 1])
    for variant in Oct.variants:
        result = Oct(variant=variant, alpha=0.1).build(data, 2).solve("highs", **PROVEN)
        assert result.verified
        assert result.tree.n_splits == 0
        assert result.objective == pytest.approx(1.0)


@pytest.mark.parametrize("variant", Oct.variants)
def test_one_class_is_refused(variant):
    data = load("iris").take(np.arange(20))
    with pytest.raises(DataError, match="all 20 samples of iris are of class setosa: nothing to predict"):
        Oct(variant=variant).build(data, 1)


@pytest.mark.parametrize("variant", Oct.variants)
def test_thresholds_are_found_once_however_often_a_problem_is_solved(variant, monkeypatch):
    found = []
    monkeypatch.setattr(
        "formulations.oct.find_thresholds", lambda data: found.append(data) or find_thresholds(data)
    )
    data, _, _ = small_data(1)
    problem = Oct(variant=variant).build(data, 2)
    for start in ("depth-two", "cart"):
        assert problem.solve("highs", start=start, time_limit=20).verified
    assert found == [data]


def test_costs_beyond_double_precision_are_refused():
    with pytest.raises(ParameterError, match="costs has an entry beyond double precision"):
        Oct(costs=((0, 10**400), (1, 0)))
