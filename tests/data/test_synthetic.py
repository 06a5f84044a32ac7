from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.svm import SVC

from mipforest.data import DataError, ground_truth, load
from mipforest.data.synthetic import MARGIN, RandomTree, load_synthetic

seeds = st.integers(0, 10**6)
sometimes = settings(deadline=None, max_examples=15)


def route(truth, x):
    """Walk one point down the tree by the definition; give its leaf and least distance."""
    t, distance = 0, np.inf
    while t < len(truth.b):
        norm = np.sqrt(sum(truth.w[t] ** 2))
        score = sum(truth.w[t] * x) + truth.b[t]
        if norm > 0:
            distance = min(distance, abs(score) / norm)
        t = 2 * t + 2 if score >= 0 else 2 * t + 1
    return t - len(truth.b), distance


def hulls_meet(X, sign):
    """Give up to four points of the two classes whose convex hulls meet, or None if a line separates them."""
    one, other = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
    if not len(one) or not len(other):
        return None
    A = np.zeros((4, len(X)))
    A[0, one] = A[1, other] = 1
    A[2:, one], A[2:, other] = X[one].T, -X[other].T
    answer = linprog(np.zeros(len(X)), A_eq=A, b_eq=[1, 1, 0, 0], bounds=(0, None), method="highs-ds")
    return np.flatnonzero(answer.x > 1e-12) if answer.status == 0 else None


def depth_two_suffices(X, sign):
    """Try every line through two points as the root: can a line finish on both sides?"""
    witnesses = np.zeros((0, len(X)), dtype=np.float32)

    def separable(side):
        nonlocal witnesses
        if (witnesses @ (~side).astype(np.float32) == 0).any():
            return False
        rows = np.flatnonzero(side)
        witness = hulls_meet(X[rows], sign[rows])
        if witness is None:
            return True
        row = np.isin(np.arange(len(X)), rows[witness]).astype(np.float32)
        witnesses = np.vstack([witnesses, row])
        return False

    for i, j in combinations(range(len(X)), 2):
        direction = X[j] - X[i]
        score = (X - X[i]) @ np.array([-direction[1], direction[0]])
        for score[i], score[j] in product((-1.0, 1.0), repeat=2):
            right = score >= 0
            if separable(right) and separable(~right):
                return True
    return False


def greedy_svm(X, sign, depth, C):
    """Number of points that linear SVMs, fitted from the root downwards, classify correctly."""
    if depth == 0 or len(set(sign)) == 1:
        return max((sign > 0).sum(), (sign < 0).sum())
    right = SVC(kernel="linear", C=C).fit(X, sign).decision_function(X) >= 0
    return sum(greedy_svm(X[side], sign[side], depth - 1, C) for side in (right, ~right) if side.any())


# -- partitions ------------------------------------------------------------------------------------------


@sometimes
@given(st.sampled_from([("4-partitions", 108, 4), ("6-partitions", 96, 6)]), seeds)
def test_partitions_are_separated_by_the_truth_with_the_margin(kind, seed):
    name, n, partitions = kind
    data, truth = load(f"synthetic:{name}", seed=seed), ground_truth(f"synthetic:{name},seed={seed}")
    walked = [route(truth, x) for x in data.X_raw]
    leaves = np.array([leaf for leaf, _ in walked])
    np.testing.assert_array_equal(truth.leaves[leaves], data.sign)
    assert min(distance for _, distance in walked) >= MARGIN - 1e-12
    np.testing.assert_array_equal(np.unique_counts(leaves).counts, [n // partitions] * partitions)
    np.testing.assert_array_equal(truth.predict(data.X_raw), data.sign)
    np.testing.assert_allclose(truth.margin(data.X_raw), [distance for _, distance in walked])
    assert data.X_raw.min() >= 0
    assert data.X_raw.max() <= 1


@pytest.mark.parametrize("name", ["4-partitions", "6-partitions"])
@pytest.mark.parametrize("seed", range(5))
def test_partitions_are_not_linearly_separable(name, seed):
    data = load(f"synthetic:{name}", seed=seed)
    assert hulls_meet(data.X, data.sign) is not None


@pytest.mark.parametrize(("name", "depth"), [("4-partitions", 2), ("6-partitions", 3)])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_greedy_svm_tree_falls_short_of_the_truth(name, depth, C):
    shares = []
    for seed in range(15):
        data = load(f"synthetic:{name}", seed=seed, scaling="none")
        shares.append(greedy_svm(data.X, data.sign, depth, C) / data.n)
    assert max(shares) < 1.0
    if name == "4-partitions":
        assert 0.8 < np.mean(shares) < 0.9  # the paper's one sample: 0.861


def test_six_partitions_need_depth_three():
    data = load("synthetic:6-partitions")
    some = slice(None, None, 4)  # depth two fails even on these
    assert not depth_two_suffices(data.X_raw[some], data.sign[some])


def test_four_partitions_need_only_depth_two():
    data = load("synthetic:4-partitions")
    assert depth_two_suffices(data.X_raw, data.sign)


# -- random trees ----------------------------------------------------------------------------------------


@pytest.mark.slow
@sometimes
@given(
    seeds,
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["classification", "regression"]),
)
def test_samples_are_labelled_by_the_tree(seed, depth, p, density, task):
    spec = f"synthetic:tree,depth={depth},n=300,p={p},density={min(density, p)},task={task},seed={seed}"
    truth = ground_truth(spec)
    X, y = truth.draw(300, seed=seed)
    np.testing.assert_array_equal(y[:50], [truth.leaves[route(truth, x)[0]] for x in X[:50]])
    assert truth.depth == depth
    assert truth.splits.all()
    if len(set(y)) == 1:
        with pytest.raises(DataError, match=r"another seed"):
            load(spec)
        return
    data = load(spec)
    expected = truth.predict(data.X_raw)
    actual = data.y if task == "regression" else np.array(data.class_values)[data.y]
    np.testing.assert_array_equal(actual, expected)


@sometimes
@given(seeds, st.integers(2, 6), st.integers(2, 4))
def test_sibling_leaves_differ(seed, depth, classes):
    leaves = ground_truth(f"tree,depth={depth},classes={classes}", seed=seed).leaves
    assert (leaves[::2] != leaves[1::2]).all()
    assert set(leaves) <= set(range(classes))


@sometimes
@given(seeds, st.integers(1, 6))
def test_splits_on_one_feature_cut_their_box(seed, depth):
    truth = ground_truth(f"tree,depth={depth},p=3", seed=seed)
    np.testing.assert_array_equal((truth.w != 0).sum(axis=1), 1)
    boxes = {0: (np.zeros(3), np.ones(3))}
    for t in range(len(truth.b)):
        low, high = boxes[t]
        j, threshold = int(truth.w[t].argmax()), -truth.b[t]
        assert low[j] <= threshold <= high[j]
        boxes[2 * t + 1] = low, np.where(np.arange(3) == j, threshold, high)
        boxes[2 * t + 2] = np.where(np.arange(3) == j, threshold, low), high


@settings(deadline=None, max_examples=5)
@given(seeds, st.integers(2, 5))
def test_hyperplanes_use_at_most_density_features_and_cut_their_cell(seed, density):
    truth = ground_truth(f"tree,depth=4,p=5,density={density}", seed=seed)
    used = (truth.w != 0).sum(axis=1)
    assert used.min() >= 1
    assert used.max() <= density
    assert np.abs(truth.w).max() <= 1
    for t in range(len(truth.b)):  # a point of the cube on each side of every node: no cell is empty
        A, c, node = [np.zeros((0, 5))], [np.zeros(0)], t
        while node:
            parent, sign = (node - 1) // 2, 1.0 if node % 2 == 0 else -1.0
            A, c, node = [*A, sign * truth.w[[parent]]], [*c, sign * truth.b[[parent]]], parent
        for sign in (-1.0, 1.0):
            rows = np.vstack([*A, sign * truth.w[[t]]])
            answer = linprog(
                -sign * truth.w[t],
                A_ub=-rows,
                b_ub=np.append(np.concatenate(c), sign * truth.b[t]),
                bounds=(0, 1),
            )
            assert answer.status == 0
            assert sign * (truth.w[t] @ answer.x + truth.b[t]) > 1e-9


def test_quantiles_of_the_root_are_roughly_even():
    shares = []
    for seed in range(60):
        truth = ground_truth("tree,depth=1,density=5", seed=seed)
        X, _ = truth.draw(2000)
        shares.append((truth.leaf_of(X) == 1).mean())
    assert min(shares) > 0.02
    assert max(shares) < 0.98
    assert abs(np.mean(shares) - 0.5) < 0.1


def test_the_tree_does_not_depend_on_sample_size_or_noise():
    one, other = ground_truth("tree,n=10"), ground_truth("tree,n=500,feature_noise=0.2,label_noise=0.1")
    np.testing.assert_array_equal(one.w, other.w)
    np.testing.assert_array_equal(one.b, other.b)
    np.testing.assert_array_equal(one.leaves, other.leaves)


def test_label_noise_flips_the_stated_share():
    for classes in (2, 5):
        clean = load(f"synthetic:tree,n=400,classes={classes}")
        noisy = load(f"synthetic:tree,n=400,classes={classes},label_noise=0.05")
        np.testing.assert_array_equal(clean.X_raw, noisy.X_raw)
        assert (np.array(clean.class_values)[clean.y] != np.array(noisy.class_values)[noisy.y]).sum() == 20


def test_label_noise_of_a_regression_has_the_stated_deviation():
    clean = load("synthetic:tree,n=5000,task=regression")
    noisy = load("synthetic:tree,n=5000,task=regression,label_noise=0.25")
    assert abs(np.std(noisy.y - clean.y) - 0.25) < 0.01


def test_feature_noise_moves_the_stated_share_after_labelling():
    clean, noisy = load("synthetic:tree,n=400"), load("synthetic:tree,n=400,feature_noise=0.25")
    moved = np.abs(noisy.X_raw - clean.X_raw)
    assert (moved > 0).all(axis=1).sum() == (moved > 0).any(axis=1).sum() == 100
    assert moved.max() <= 0.1
    np.testing.assert_array_equal(noisy.y, clean.y)


@pytest.mark.parametrize(
    "spec",
    [
        "4-partitions",
        "6-partitions",
        "tree",
        "tree,depth=2,n=40,label_noise=0.1",
        "tree,density=3,task=regression",
    ],
)
def test_the_name_generates_the_data_again(spec):
    data = load(f"synthetic:{spec}", seed=11)
    assert "seed=11" in data.name
    assert load(data.name).sha256 == data.sha256
    assert load(f"synthetic:{spec},seed=12").sha256 != data.sha256
    assert load(f"synthetic:{spec},seed=11", seed=12).sha256 == data.sha256


def test_classes_that_do_not_occur_are_remarked():
    data = load("synthetic:tree,depth=3,classes=8,n=300", seed=1)
    assert data.n_classes < 8
    assert "do not occur" in data.notes[0]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("5-partitions", "no generator is called '5-partitions'.*did you mean.*as in synthetic:tree,depth=3"),
        ("tree,deph=3", "did you mean 'depth'"),
        ("tree,depth", "cannot read the option 'depth'"),
        ("tree,depth=deep", "depth=deep is not a whole number"),
        ("tree,label_noise=lots", "not a number"),
        ("tree,depth=2,depth=3", "given twice"),
        ("tree,depth=0", "depth=0 is out of range; choose from 1 to 12"),
        ("tree,depth=2,classes=5", "classes=5 is out of range; choose from 2 to 4"),
        ("tree,p=2,density=3", "density=3 is out of range; choose from 1 to 2"),
        ("tree,n=0", "n=0 is out of range"),
        ("tree,seed=-1", "seed=-1 is out of range"),
        ("tree,label_noise=1.5", "label_noise=1.5 is out of range"),
        ("tree,task=ranking", "task=ranking is unknown"),
        ("tree,n=1", "one class only.*another seed"),
        ("4-partitions,depth=2", "takes no option depth"),
        ("4-partitions,seed=-1", "seed=-1 is negative"),
    ],
)
def test_bad_options(spec, message):
    with pytest.raises(DataError, match=message):
        load(f"synthetic:{spec}")


def test_linear_leaves_add_a_function_of_few_features_to_the_same_tree():
    constant = RandomTree(depth=2, p=4, task="regression", seed=3)
    linear = replace(constant, leaf_density=2)
    one, other = constant.ground_truth(), linear.ground_truth()
    assert (one.w == other.w).all()
    assert (one.leaves == other.leaves).all()
    used = np.count_nonzero(other.leaf_w, axis=1)
    assert used.min() >= 1
    assert used.max() <= 2
    assert np.abs(other.leaf_w).max() <= 1
    X = np.random.default_rng(0).random((50, 4))
    slopes = np.array([other.leaf_w[leaf] @ x for leaf, x in zip(other.leaf_of(X), X, strict=True)])
    assert other.predict(X) == pytest.approx(one.predict(X) + slopes)
    spec = "tree,depth=2,n=20,p=4,task=regression"
    assert "leaf_density" not in load_synthetic(spec).name
    again = load_synthetic(f"{spec},leaf_density=2")
    assert load_synthetic(again.name.removeprefix("synthetic:")).sha256 == again.sha256
    with pytest.raises(DataError, match="leaf_density=1 is out of range; choose from 0 to 0"):
        RandomTree(leaf_density=1)
