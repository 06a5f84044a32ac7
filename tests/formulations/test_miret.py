import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from miret_data import blobs, gurobi_optimum, random_split_tree
from sklearn.ensemble import RandomForestClassifier

from formulations.miret import Miret
from mipforest.data import DataError, Dataset, load
from mipforest.ensembles import Ensemble, EnsembleError
from mipforest.model import Model
from mipforest.problem.parameters import ParameterError
from mipforest.trees import Topology, Tree

FEW = "random-forest:trees=5"
PROVEN = {"time_limit": None, "gap": 1e-9}


def by_hand(formulation, tree, instance):
    """The definition, sample by sample: walk down, compare, and look up what features cost."""
    data, target = instance.data, instance.target
    answers = target.ensemble.predict(data.X_raw)
    leaves, total = [], 0.0
    for x, answer, weight in zip(data.X, answers, target.weight, strict=True):
        t = 0
        while t < 2**tree.depth - 1:
            t = 2 * t + 2 if float(x @ tree.w[t] + tree.b[t]) >= 0 else 2 * t + 1
        leaves.append(t)
        total += weight * (t % 2 == answer)  # even leaves predict class 1
    for t in range(2**tree.depth - 1):
        level = int(np.log2(t + 1))
        for j in np.flatnonzero(tree.w[t]):
            frequency = target.frequency[level, j]
            total += formulation.alpha / frequency if target.allowed[level, j] else np.inf
    members = {}
    for leaf, group in zip(leaves, target.group, strict=True):
        if members.setdefault(group, leaf) != leaf:
            return np.inf
    return total


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("variant", Miret.variants)
@given(depth=st.integers(1, 3), seed=st.integers(0, 10**6))
@settings(max_examples=8)
def test_evaluate_is_the_definition_and_the_paper_keeps_its_leaves(variant, depth, seed):
    rng = np.random.default_rng(seed)
    data = blobs(seed % 50, n=int(rng.integers(8, 30)), p=int(rng.integers(1, 4)))
    # Above 1, no samples are close; then every tree is feasible.
    formulation = Miret(variant=variant, ensemble=FEW, proximity=1.5, alpha=float(rng.uniform(0, 1)))
    try:
        instance = formulation.bind(data, Topology(depth))
    except ParameterError:
        return  # the small forest has no split at some level
    tree = random_split_tree(rng, data, depth, instance.target.allowed)
    expected = by_hand(formulation, tree, instance)
    assert formulation.evaluate(tree, instance) == pytest.approx(expected, abs=1e-9)
    decoded = formulation.decode(formulation.encode(tree, instance), instance)
    if variant == "paper":
        np.testing.assert_array_equal(decoded.apply(data.X), tree.apply(data.X))


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("seed", "n", "p", "depth", "alpha", "proximity"),
    [
        (0, 20, 2, 1, 0.1, 1.0),
        pytest.param(1, 14, 2, 2, 0.05, 1.0, marks=pytest.mark.slow),  # between seeds 0 and 2
        (2, 12, 3, 2, 0.02, 0.8),
        (3, 16, 1, 2, 0.1, 0.6),
        (4, 8, 2, 2, 0.0, 1.5),
        (5, 10, 2, 2, 3.0, 1.0),
        (6, 12, 2, 2, 0.1, 0.4),
        pytest.param(7, 8, 2, 3, 0.02, 1.0, marks=pytest.mark.slow),  # depth three
    ],
)
def test_variants_agree_with_an_independent_model(seed, n, p, depth, alpha, proximity):
    pytest.importorskip("gurobipy")
    data = blobs(seed, n, p)
    formulation = Miret(ensemble=FEW, alpha=alpha, proximity=proximity, epsilon=0.001)
    target = formulation.bind(data, Topology(depth)).target
    leaves = target.ensemble.leaves(data.X_raw)
    close = (leaves[:, None] == leaves).mean(axis=2) >= proximity - 1e-9
    costs = np.where(
        target.frequency > 0, alpha / np.where(target.frequency > 0, target.frequency, 1), np.inf
    )
    answers = np.where(target.ensemble.predict(data.X_raw) == 1, 1, -1)
    expected = gurobi_optimum(
        data.X, answers, target.weight, costs, np.argwhere(np.triu(close, 1)), depth, 0.001
    )
    for variant in ("tight", "paper"):
        result = replace(formulation, variant=variant).build(data, depth).solve("highs", **PROVEN)
        assert result.verified, result.failed_checks
        assert result.status == "optimal"
        assert result.objective == pytest.approx(expected, abs=1e-6)


def test_improved_leaves_out_trees_without_a_split():
    data = blobs(5, 14, 2)
    dear = Miret(ensemble=FEW, alpha=3.0)
    tight = dear.build(data, 2).solve("highs", **PROVEN)
    improved = replace(dear, variant="improved").build(data, 2).solve("highs", **PROVEN)
    assert tight.verified
    assert improved.verified
    assert tight.features_used == ()
    assert len(improved.features_used) == 1
    assert improved.objective > tight.objective + 0.1


@pytest.mark.parametrize("side", [0, 1])
def test_improved_gives_a_feature_that_is_only_paid_for_a_weight(side):
    """Rows allow s = 1 at a = 0; the decoded tree has the split that its objective pays for."""
    data = blobs(5, 14, 2)
    problem = Miret(ensemble=FEW, alpha=3.0, variant="improved").build(data, 1)
    instance, n = problem.instance, len(problem.instance.first)
    t, j = np.argwhere(instance.allowed)[0]
    values = {
        "a": np.zeros((1, 2)), "s": np.zeros((1, 2)), "b": np.array([2.0 * side - 1]),
        "z": np.eye(2)[np.full(n, side)], "goes_left": np.full((n, 1), 1.0 - side), "goes_right": np.full((n, 1), side),
    }  # fmt: skip
    values["s"][t, j] = 1.0
    assert problem.model.violations(values).max == 0
    tree = problem.formulation.decode(values, instance)
    assert problem.formulation.evaluate(tree, instance) == pytest.approx(problem.model.objective(values))
    assert (tree.predict(data.X) == side).all()
    assert tree.features_used().overall == (j,)
    again = problem.formulation.encode(tree, instance)
    assert problem.model.violations(again).max <= 1e-6
    assert problem.model.objective(again) == pytest.approx(problem.model.objective(values))


def test_a_nonnegative_intercept_cuts_off_close_samples():
    """Two samples that differ by half of epsilon in each of two features: only b = -epsilon / 2 tells them apart."""
    X = np.array([[0.0, 0.0005], [0.0005, 0.0], [1.0, 0.0], [0.0, 1.0]])
    data = Dataset.from_arrays(X, [0, 1, 1, 0])
    split = Tree(2, [[1.0, -1.0], [0, 0], [0, 0]], [-0.0005, -1.0, 1.0], [0, 1, 0, 1], ("0", "1"))
    labels = [0, 1, 1, 0, 1, 1, 0, 0]  # for the forest to use both features at both levels
    forest = RandomForestClassifier(40, max_depth=2, max_features=1, random_state=0)
    forest.fit(np.vstack([X, 1 - X]), labels)
    worst = {}
    for variant in Miret.variants:
        formulation = Miret(variant=variant, ensemble=forest, alpha=1e-3, proximity=2.0)
        model = Model()
        instance = formulation.bind(data, Topology(2))
        formulation.declare(model, instance)
        worst[variant] = model.violations(formulation.encode(split, instance)).max
    assert worst["paper"] <= 1e-6
    assert worst["tight"] <= 1e-6
    assert worst["improved"] > 1e-4


@given(seed=st.integers(0, 10**6))
@settings(max_examples=5)
def test_merging_never_changes_the_optimum(seed):
    rng = np.random.default_rng(seed)
    data = blobs(seed % 30, n=int(rng.integers(10, 18)), p=2, decimals=1)
    formulation = Miret(ensemble=FEW, alpha=0.05, proximity=float(rng.choice([0.4, 0.8, 1.0])))
    merged = formulation.build(data, 1)
    single = replace(formulation, variant="paper").build(data, 1)
    assert merged.model["z"].shape[0] < single.model["z"].shape[0]
    values = [problem.solve("highs", **PROVEN) for problem in (merged, single)]
    assert all(result.verified for result in values)
    assert values[0].objective == pytest.approx(values[1].objective, abs=1e-6)


@pytest.mark.parametrize("variant", ["tight", pytest.param("paper", marks=pytest.mark.slow)])
def test_starts_are_feasible_and_real_data_are_verified(variant, papers_data):
    data, _ = load(str(papers_data / "wholesale.csv"), target="target", task="classification").split(0.2, 10)
    formulation = Miret(variant=variant, gamma_percentile=25)
    problem = formulation.build(data, 2)
    for name in formulation.starts:
        tree = formulation.start(name, problem.instance)
        values = formulation.encode(tree, problem.instance)
        assert problem.model.violations(values).max <= 1e-6
        expected = formulation.evaluate(tree, problem.instance)
        assert problem.model.objective(values) == pytest.approx(expected, abs=1e-9)
    constant, known = (formulation.evaluate(t, problem.instance) for t in (tree, problem.instance.known))
    assert known < 0.1 * constant


def test_wholesale_reaches_the_papers_fidelity(papers_data):
    """Tables 6 and 7: 99.7% in training, 97.7% in the test; accuracy of the tree 92.6% and 90.9%."""
    whole = load(str(papers_data / "wholesale.csv"), target="target", task="classification")
    train, test = whole.split(0.2, 10)
    result = (
        Miret(alpha=0.2, gamma_percentile=25, proximity=1.0).build(train, 2).solve("highs", time_limit=100)
    )
    found = result.to_dict(test)
    assert result.verified
    assert result.status == "optimal"
    assert found["train_fidelity"] >= 0.99
    assert found["test_fidelity"] >= 0.97
    assert found["train_close_pairs_together"] == 1.0
    assert found["test_close_pairs"] > 100
    json.dumps(found, allow_nan=False)


def test_evaluate_is_infinite_outside_the_limits():
    data = blobs(1, 20, 2)
    formulation = Miret(ensemble=FEW, gamma=(0.0, 0.0), proximity=1.0)
    instance = formulation.bind(data, Topology(2))
    target = instance.target
    close = np.flatnonzero(np.bincount(target.group)[target.group] > 1)
    i, k = next(
        (i, k)
        for i in close
        for k in close
        if target.group[i] == target.group[k] and data.X[i, 0] > data.X[k, 0]
    )
    w = np.array([1.0, 0.0])
    assert target.frequency[0, 0] > 0
    labels, names = [0, 1, 0, 1], (tuple(data.classes), tuple(data.features.labels))
    parting = Tree(
        2, np.vstack([w, np.zeros((2, 2))]), [-w @ (data.X[i] + data.X[k]) / 2, -1, 1], labels, *names
    )
    assert formulation.evaluate(parting, instance) == np.inf
    free = Miret(ensemble=FEW, proximity=1.5)
    assert np.isfinite(free.evaluate(parting, free.bind(data, Topology(2))))
    most = target.frequency[0].argmax()
    one_only = Miret(ensemble=FEW, gamma=(float(target.frequency[0, most]), 0.0), proximity=1.5)
    other = np.zeros((3, 2))
    other[0, 1 - most] = 1.0
    elsewhere = Tree(2, other, [-0.5, -1, 1], labels, *names)
    assert one_only.evaluate(elsewhere, one_only.bind(data, Topology(2))) == np.inf


def test_labels_of_a_foreign_tree_are_fixed_without_changing_predictions():
    data = blobs(3, 30, 2)
    formulation = Miret(ensemble=FEW, proximity=1.5, variant="paper")
    names = (tuple(data.classes), tuple(data.features.labels))
    w = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    foreign = Tree(2, w, [-0.505, -0.335, -0.705], [1, 0, 1, 1], *names)
    instance = formulation.bind(data, Topology(2))
    decoded = formulation.decode(formulation.encode(foreign, instance), instance)
    np.testing.assert_array_equal(decoded.predict(data.X), foreign.predict(data.X))
    assert list(decoded.leaf_value) == [0, 1, 0, 1]
    assert not decoded.w[2].any()
    expected = formulation.evaluate(decoded, instance)
    assert formulation.evaluate(foreign, instance) == pytest.approx(expected)


def test_constraints_of_users_void_the_symmetry_but_neither_tree_nor_bound():
    data = blobs(2, 12, 3)
    formulation = Miret(ensemble=FEW, alpha=0.01, proximity=1.5)

    def built(variant):
        problem = replace(formulation, variant=variant).build(data, 2)
        s = problem.model["s"]
        problem.model.add("no_x0", s[:, "x0"].sum() == 0)
        # It names one child of the root, so its subtrees cannot change places.
        problem.model.add("left_is_richer", s[1].sum() >= s[2].sum())
        return problem

    result = built("tight").solve("highs", **PROVEN)
    assert result.verified
    assert "x0" not in result.features_used
    assert result.status == "optimal"
    assert result.proven_for == "definition"
    assert (result.problem.instance.least_intercept == -1).all()
    improved = replace(formulation, variant="improved").build(data, 2)
    assert improved.solve("highs", time_limit=3).bound_for == "constants"
    assert built("improved").solve("highs", time_limit=3).bound == 0  # of no tree it is less
    proven = built("paper").solve("highs", **PROVEN)
    assert proven.status == "optimal"
    assert proven.objective == pytest.approx(result.objective, abs=1e-6)


def test_ensembles_in_any_form_give_the_same_model():
    data = blobs(4, 30, 3)
    forest = RandomForestClassifier(
        5, max_depth=2, class_weight="balanced", max_features=None, random_state=100
    ).fit(data.X_raw, data.y)
    by_name, fitted = Miret(ensemble=FEW), Miret(ensemble=forest)
    adopted = Miret(ensemble=by_name.build(data, 2).instance.target.ensemble)
    forms = [formulation.build(data, 2).model.matrix() for formulation in (by_name, fitted, adopted)]
    for form in forms[1:]:
        np.testing.assert_array_equal(form.c, forms[0].c)
        assert abs(form.A - forms[0].A).max() == 0
    assert by_name.parameters()["ensemble"] == FEW
    assert fitted.parameters()["ensemble"] == "RandomForestClassifier, fitted before"
    assert "5 trees of depth 2" in adopted.parameters()["ensemble"]
    assert isinstance(adopted.ensemble, Ensemble)
    json.dumps(adopted.parameters())


def test_an_estimator_fitted_anew_is_read_anew():
    data = blobs(4, 30, 3)
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(data.X_raw, data.y)
    formulation = Miret(ensemble=forest)
    first = formulation.build(data, 2).instance.target
    before = first.sign.copy()
    forest.fit(data.X_raw, 1 - data.y)
    np.testing.assert_array_equal(formulation.build(data, 2).instance.target.sign, -before)
    np.testing.assert_array_equal(first.sign, before)


def test_refuses_what_it_does_not_take():
    data = blobs(0, 30, 3)
    X, y = data.X_raw, data.y
    three = Dataset.from_arrays(X, np.arange(30) % 3)
    with pytest.raises(DataError, match=r"3 classes|at most 2"):
        Miret(ensemble=FEW).build(three, 2)
    with pytest.raises(DataError, match=r"\[0, 1\]"):
        Miret(ensemble=FEW).build(data.with_scaling("standard"), 2)
    deep = RandomForestClassifier(3, max_depth=4, random_state=0).fit(X, y)
    narrow = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X[:, :2], y)
    for wrong, said in (
        (deep, "depth"),
        (narrow, "2 features"),
        (RandomForestClassifier(), "not fitted"),
        ("random-wood", "random-wood"),
        (object(), "object"),
    ):
        with pytest.raises(EnsembleError, match=said):
            Miret(ensemble=wrong).build(data, 2)
    for wrong in ({"alpha": -1}, {"proximity": 0}, {"epsilon": 1}, {"gamma": -0.1}):
        with pytest.raises(ParameterError):
            Miret(**wrong)


def test_random_trees_keep_partitions_through_every_variant():
    data = blobs(12, 40, 3)
    for variant in Miret.variants:
        formulation = Miret(ensemble=FEW, proximity=1.5, variant=variant)
        instance = formulation.bind(data, Topology(3))
        for seed in range(4):
            tree = random_split_tree(np.random.default_rng(seed), data, 3, instance.target.allowed)
            decoded = formulation.decode(formulation.encode(tree, instance), instance)
            groups = {tuple(np.flatnonzero(tree.apply(data.X) == leaf)) for leaf in range(7, 15)}
            assert groups == {tuple(np.flatnonzero(decoded.apply(data.X) == leaf)) for leaf in range(7, 15)}
