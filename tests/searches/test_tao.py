"""Alternating optimisation: every update is the best for its node, and nothing single is left to improve at the end."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from seeds import few_of
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tolerance import same

from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.ort import Ort
from mipforest.data import Dataset, load
from mipforest.errors import Unsupported
from mipforest.heuristics.cart import cart, forest_trees, from_scikit_learn
from mipforest.objectives.leaf_losses import ClassLoss, TableLoss, error_loss
from mipforest.problem.structure import TreeCharges
from mipforest.searches.memetic import ABSENT, LEAF, AlternatingOptimization, SplitTree, random_split
from mipforest.trees import Topology


def random_charges(rng, n, loss):
    """Charges with weights, and with a cost matrix now and then."""
    weight = rng.integers(1, 5, n).astype(float)
    if loss != "classes":
        return TreeCharges(y=rng.integers(0, 6, n).astype(float), loss=error_loss(loss), weight=weight)
    costs = rng.integers(1, 4, (3, 3)).astype(float) * (1 - np.eye(3)) if rng.random() < 0.5 else None
    y = rng.integers(0, 3, n)
    y[:3] = range(3)
    return TreeCharges(y=y, loss=ClassLoss(costs), weight=weight)


def random_structure(rng, X, depth):
    """An unbalanced tree of random splits."""
    tree = SplitTree(np.full(2**depth - 1, ABSENT), np.zeros(2**depth - 1))
    tree.feature[0] = LEAF
    for t in range(len(tree.feature)):
        if tree.feature[t] == LEAF and (t == 0 or rng.random() < 0.7):
            tree.feature[t], tree.threshold[t] = random_split(X, rng)
            if 2 * t + 2 < len(tree.feature):
                tree.feature[[2 * t + 1, 2 * t + 2]] = LEAF
    return tree


def lost(samples, tree, prediction):
    rows = np.arange(len(samples.X))
    return samples.loss.of(rows, samples._predicted(tree, prediction, 0, rows)).sum()


def single_changes(samples, tree, prediction):
    """The loss of every tree that differs in one split or in one prediction."""
    X = samples.X
    for t in np.flatnonzero(tree.feature >= 0):
        for j, column in enumerate(X.T):
            for threshold in (-np.inf, *np.unique(column), np.inf):
                other = tree.copy()
                other.feature[t], other.threshold[t] = j, threshold
                yield lost(samples, other, prediction)
    for t, value in product(range(len(prediction)), np.unique(samples.charges.y)):
        other = prediction.copy()
        other[t] = value
        yield lost(samples, tree, other)


@pytest.mark.parametrize("loss", ["classes", "squared", "absolute"])
@pytest.mark.parametrize("seed", range(12))
def test_the_loss_never_rises_and_nothing_single_improves_the_end(seed, loss):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (25, 3)).astype(float)
    samples = AlternatingOptimization(X, random_charges(rng, len(X), loss), joint=bool(seed % 2))
    begun = samples.fitted(random_structure(rng, X, 3))
    found = samples.improve(begun.tree)
    assert found.values[0] == pytest.approx(begun.value)
    assert all(np.diff(found.values) <= 1e-9)
    assert found.value == pytest.approx(lost(samples, found.tree, found.prediction))
    assert found.value <= found.values[-1] + 1e-9
    # What was taken out may leave something to improve above it: once more, until nothing changes.
    again = samples.improve(found.tree)
    while again.value < found.value - 1e-9:
        found, again = again, samples.improve(again.tree)
    assert min(single_changes(samples, found.tree, found.prediction)) >= found.value - 1e-9


@pytest.mark.parametrize(("right_one", "threshold"), [(0.0, -np.inf), (1.0, np.inf)])
def test_sending_all_to_one_side_is_taken_where_nothing_else_improves(right_one, threshold):
    X = np.array([[0.0], [1.0]])
    samples = AlternatingOptimization(
        X, TreeCharges(y=np.array([0, 0]), loss=ClassLoss(1 - np.eye(2))), joint=False
    )
    tree = SplitTree(np.array([0]), np.array([0.5]))
    change = samples._improve_split(tree, np.array([0.0, 1.0 - right_one, right_one]), 0, np.arange(2))
    assert change == -1.0
    assert tree.threshold[0] == threshold


def test_samples_that_both_sides_treat_alike_change_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 2)), rng.integers(0, 2, 20)
    tree = SplitTree(np.array([0]), np.array([0.5]))
    prediction = np.array([0.0, 0.0, 1.0])
    alone = AlternatingOptimization(X, TreeCharges(y=y, loss=ClassLoss()), joint=False)
    # A third class is wrong on either side.
    more = AlternatingOptimization(
        np.vstack([X, rng.random((9, 2))]),
        TreeCharges(y=np.append(y, np.full(9, 2)), loss=ClassLoss()),
        joint=False,
    )
    one, other = tree.copy(), tree.copy()
    assert alone._improve_split(one, prediction, 0, np.arange(20)) == more._improve_split(
        other, prediction, 0, np.arange(29)
    )
    assert (one.feature[0], one.threshold[0]) == (other.feature[0], other.threshold[0])


@pytest.mark.parametrize("loss", ["classes", "squared"])
@pytest.mark.parametrize("seed", range(4))
def test_an_update_changes_the_loss_of_the_care_set_alone_and_makes_it_least(seed, loss):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (40, 3)).astype(float)
    samples = AlternatingOptimization(X, random_charges(rng, len(X), loss), joint=False)
    tree, everything = random_structure(rng, X, 3), np.arange(len(X))
    prediction = rng.permutation(np.resize(np.unique(samples.charges.y), 15))

    def losses(of, t=0):
        return samples.loss.of(everything, samples._predicted(of, prediction, t, everything))

    for t, rows in reversed(list(samples._reaching(tree))):
        if tree.is_leaf(t) or not len(rows):
            continue
        sides = np.stack([losses(tree, 2 * t + 1), losses(tree, 2 * t + 2)])
        care = np.isin(everything, rows) & (sides[0] != sides[1])
        before, old = losses(tree), tree.copy()
        change = samples._improve_split(tree, prediction, t, rows)
        after = losses(tree)
        # E = elsewhere + constant + care set: the first two stay.
        assert (after[~care] == before[~care]).all()  # exact: untouched
        assert after[care].sum() - before[care].sum() == pytest.approx(change)
        tried = [
            sides[(column >= threshold).astype(int), everything][care].sum()
            for column in X.T
            for threshold in (-np.inf, *np.unique(column), np.inf)
        ]
        assert after[care].sum() == pytest.approx(min(before[care].sum(), *tried))
        assert change < 0 or (tree.feature.tolist(), tree.threshold.tolist()) == (
            old.feature.tolist(),
            old.threshold.tolist(),
        )


@pytest.mark.parametrize("seed", range(8))
def test_pruning_keeps_predictions_and_leaves_nothing_empty_or_alike(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 5, (20, 2)).astype(float), rng.integers(0, 2, 20)
    samples = AlternatingOptimization(X, TreeCharges(y=y, loss=ClassLoss()))
    tree = random_structure(rng, X, 4)
    tree.threshold[rng.random(15) < 0.3] = np.inf
    before, after = samples.fitted(tree), samples.pruned(tree)
    rows = np.arange(20)
    predicted = [samples._predicted(found.tree, found.prediction, 0, rows) for found in (before, after)]
    assert predicted[0].tolist() == predicted[1].tolist()
    assert after.tree.n_splits <= before.tree.n_splits
    reached = dict(samples._reaching(after.tree))
    for t in np.flatnonzero(after.tree.feature >= 0):
        left, right = 2 * t + 1, 2 * t + 2
        assert len(reached[left])
        assert len(reached[right])
        if after.tree.is_leaf(left) and after.tree.is_leaf(right):
            assert after.prediction[left] != after.prediction[right]


def test_a_split_that_saves_less_than_it_costs_is_taken_out():
    X, y = np.arange(10.0)[:, None], np.array([0] * 5 + [1] * 5)
    tree = SplitTree(np.array([0, 0, LEAF]), np.array([4.5, 1.5, 0.0]))
    for cost, splits in ((0.0, 1), (4.0, 1), (6.0, 0)):
        samples = AlternatingOptimization(X, TreeCharges(y=y, loss=ClassLoss(), split_cost=cost))
        assert samples.pruned(tree).tree.n_splits == splits


def test_leaves_keep_their_least_size():
    rng = np.random.default_rng(3)
    X, y = rng.random((60, 3)), rng.integers(0, 2, 60)
    samples = AlternatingOptimization(X, TreeCharges(y=y, loss=ClassLoss(), N_min=8))
    data = Dataset.from_arrays(X, y, name="random", scaling="none")
    for tree in forest_trees(data, Topology(3), 5, min_leaf=8):
        found = samples.improve(SplitTree(np.where(tree.w.any(axis=1), tree.w.argmax(axis=1), LEAF), -tree.b))
        sizes = [len(rows) for t, rows in samples._reaching(found.tree) if found.tree.is_leaf(t)]
        assert min(sizes) >= 8


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_trees_of_scikit_learn_route_alike_where_single_precision_rounds(task):
    rng = np.random.default_rng(1)
    X = 1.0 + rng.integers(0, 40, (80, 2)) * 2e-8  # several values share one number of single precision
    y = rng.integers(0, 3, 80)
    data = Dataset.from_arrays(X, y, name="close", scaling="none", task=task)
    learner = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    for seed in range(5):
        grown = learner(max_depth=3, random_state=seed, splitter="random").fit(data.X, data.y)
        tree = from_scikit_learn(grown, data, Topology(3))
        assert tree.predict(data.X).tolist() == grown.predict(data.X).tolist()


def test_a_forest_of_no_trees_is_empty_and_others_are_those_of_scikit_learn():
    data = load("wine")
    assert forest_trees(data, Topology(2), 0) == []
    grown = RandomForestClassifier(3, max_depth=2, random_state=5).fit(data.X, data.y)
    for tree, member in zip(forest_trees(data, Topology(2), 3, seed=5), grown.estimators_, strict=True):
        assert tree.predict(data.X).tolist() == member.predict(data.X).astype(int).tolist()


@pytest.mark.parametrize(
    "formulation", few_of([Ort(), Oct(alpha=0.01, N_min=3), Ort(loss="absolute", N_min=4)])
)
def test_as_a_solver_it_is_no_worse_than_cart_and_proves_nothing(formulation):
    rng = np.random.default_rng(0)
    X = rng.random((50, 3))
    y = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > 0.6)
    task = "classification" if isinstance(formulation, Oct) else "regression"
    problem = formulation.build(Dataset.from_arrays(X, y, name="three", task=task), 3)
    result = problem.solve("tao", start="none")
    grown = formulation.polish(
        cart(problem.data, problem.topology, min_leaf=formulation.N_min), problem.instance
    )
    assert result.status == "best_found"
    assert result.verified, result.doubts
    assert result.objective <= formulation.evaluate(grown, problem.instance) + 1e-9
    assert "proves nothing" in result.solution.message


def test_other_trees_are_refused():
    with pytest.raises(
        Unsupported, match="takes trees of univariate splits and constant leaves, and oct-h has"
    ):
        OctH().build(Dataset.from_arrays(np.eye(4), [0, 0, 1, 1], name="four"), 1).solve("tao")


def test_weights_are_repeated_samples():
    rng = np.random.default_rng(2)
    X, y, weight = rng.random((30, 2)), rng.integers(0, 2, 30), rng.integers(1, 4, 30)
    tree = random_structure(rng, X, 2)
    once = AlternatingOptimization(X, TreeCharges(y=y, loss=ClassLoss(), weight=weight.astype(float)))
    rows = np.repeat(np.arange(30), weight)
    repeated = replace(once.charges, y=y[rows], weight=None)
    again = AlternatingOptimization(X[rows], repeated).improve(tree)
    assert same(once.improve(tree).value, again.value)


def test_samples_drawn_from_a_table_of_costs_have_their_own_costs():
    rng = np.random.default_rng(0)
    X, table = rng.random((30, 2)), rng.random((30, 3))
    charges = TreeCharges(y=table.argmin(axis=1), loss=TableLoss(table))
    rows = rng.integers(0, 30, 20)
    drawn = AlternatingOptimization(X, charges).of(rows)
    assert (drawn.charges.statistics == table[rows]).all()
    assert drawn.prediction == table[rows].sum(axis=0).argmin()
