"""The exact search of oblique trees against the enumeration of all trees, another solver, and its own bounds."""

import numpy as np
import pytest
from every_tree import loss_of_groups, optimum, value_of
from miret_data import blobs, gurobi_optimum
from scipy.optimize import linprog
from tolerance import at_most

from formulations.miret import Miret
from formulations.oct_h import OctH
from formulations.ort import OrtH
from formulations.ort_l import OrtLH
from mipforest.data import Dataset
from mipforest.errors import Unsupported
from mipforest.objectives.leaf_losses import ClassLoss, error_loss
from mipforest.problem.structure import HyperplaneCharges, LabelledLeaves
from mipforest.searches.oblique.labelled import LabelledSearch
from mipforest.searches.oblique.plugin import ObliqueSearch as ObliqueSearchPlugin
from mipforest.searches.oblique.problem import ObliqueProblem, widest_line
from mipforest.searches.oblique.search import ObliqueSearch

#: What rows may be missed by, over the smallest unit of charges here: a tree within it counts.
NEAR = 1e-6

#: What HiGHS may miss squared losses by: it approaches them by tangents.
ROWS_NEAR = 1e-5


def random_problem(seed, *, most_points, most_features, depth=None, least_points=3):
    """A random problem of either model: ties, weights, prices from 0 to large, gaps up to large ones."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(least_points, most_points + 1)), int(rng.integers(1, most_features + 1))
    depth = depth or int(rng.integers(1, 3))
    X = rng.integers(0, 5, (n, p)) / 4 if seed % 3 == 0 else np.round(rng.random((n, p)), 2)
    gap = float(rng.choice([0.005, 0.05, 0.25]))
    price = float(rng.choice([0.0, 0.1, 0.4, 1.0]))
    if seed % 2:
        y = rng.integers(0, 3 if seed % 5 == 0 else 2, n)
        y[:2] = 0, 1
        weight = rng.choice([1.0, 2.0, 0.5], n) if seed % 4 == 1 else None
        structure = HyperplaneCharges(
            y=y,
            loss=ClassLoss(),
            split_cost=price,
            N_min=int(rng.integers(1, 3)),
            weight=weight,
            margin=gap,
            max_features=(0, 1, 2)[seed // 2 % 3],
        )
    else:
        group = np.unique(rng.integers(0, n, n), return_inverse=True)[1] if seed % 4 else np.arange(n)
        wrong = np.round(rng.random((n, 2)) * rng.integers(0, 2, (n, 2)), 2)
        charges = np.zeros((group.max() + 1, 2))
        np.add.at(charges, group, wrong)
        prices = np.round(price * rng.uniform(0.5, 2.0, (depth, p)), 3)
        prices[rng.random((depth, p)) < 0.2] = np.inf
        improved = seed % 3 == 1 and np.isfinite(prices).any()
        structure = LabelledLeaves(
            group=group,
            charges=charges,
            prices=prices,
            gap=gap,
            upper_intercepts=0.0 if improved else -1.0,
            needs_split=bool(improved),
        )
    return ObliqueProblem.of(structure, X, depth)


def random_regression(seed, *, most_points, most_features, depth=None, least_points=3):
    """A random problem of ORT-H, with either loss: ties, weights, least leaf sizes, prices, gaps, budgets."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(least_points, most_points + 1)), int(rng.integers(1, most_features + 1))
    X = rng.integers(0, 3, (n, p)) / 2 if seed % 3 == 0 else np.round(rng.random((n, p)), 2)
    structure = HyperplaneCharges(
        y=np.round(rng.random(n), 1 + seed % 2) if seed % 5 else rng.integers(0, 2, n).astype(float),
        loss=error_loss(("squared", "squared", "absolute")[seed % 3]),
        split_cost=float(rng.choice([0.0, 0.02, 0.1, 0.5])),
        N_min=int(rng.integers(1, 4)),
        weight=rng.choice([1.0, 2.0, 0.5], n) if seed % 4 == 1 else None,
        margin=float(rng.choice([0.005, 0.05, 0.25])),
        max_features=(0, 1, 2)[seed // 2 % 3],
    )
    problem = ObliqueProblem.of(structure, X, depth or int(rng.integers(1, 3)))
    return problem, loss_of_groups(structure, X)


def searched(problem, stop_after=np.inf, loss=None):
    """Return the best value and the bound of a search, of its steps up to some."""
    best, looks = [float(problem.charges.sum()) + 10.0], [0]

    def adopt(tree):
        best[0] = min(best[0], value_of(problem, tree, loss))
        return best[0]

    def halted(bound, steps):
        del bound, steps
        looks[0] += 1
        return looks[0] > stop_after

    kind = LabelledSearch if problem.given_labels else ObliqueSearch
    search = kind(problem, best[0], adopt=adopt, halted=halted)
    ended = search.run()
    return best[0], search.bound, ended


def check_against_enumeration(seed, *, regression=False, **sizes):
    loss = None
    if regression:
        problem, loss = random_regression(seed, **sizes)
    else:
        problem = random_problem(seed, **sizes)
    expected = optimum(problem, problem.upper_intercepts, loss)
    value, bound, ended = searched(problem, loss=loss)
    assert ended
    assert value == pytest.approx(expected, abs=NEAR), seed
    assert bound == pytest.approx(expected, abs=NEAR), seed
    for stop_after in (1, 3, 10):
        assert at_most(searched(problem, stop_after, loss)[1], expected + NEAR), seed


@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_of_constant_leaves_is_that_of_all_trees(seed):
    check_against_enumeration(seed, regression=True, most_points=5, most_features=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_the_optimum_of_constant_leaves_is_that_of_all_trees_of_more_points(seed):
    check_against_enumeration(
        seed, regression=True, most_points=10 if seed % 10 == 0 else 6, most_features=3,
        depth=1 + (seed % 10 != 0),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1400, 1420))
def test_the_optimum_of_constant_leaves_is_that_of_all_splits_of_twelve_points(seed):
    check_against_enumeration(
        seed, regression=True, least_points=12, most_points=12, most_features=3, depth=1
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_that_of_all_trees(seed):
    check_against_enumeration(seed, most_points=5, most_features=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_the_optimum_is_that_of_all_trees_of_more_points(seed):
    check_against_enumeration(
        seed, most_points=10 if seed % 10 == 0 else 6, most_features=3, depth=1 + (seed % 10 != 0)
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(400, 430))
def test_the_optimum_is_that_of_all_splits_of_twelve_points(seed):
    check_against_enumeration(seed, least_points=12, most_points=12, most_features=3, depth=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [501, 503, 505, 507, 512, 514])
def test_the_optimum_is_that_of_all_trees_of_twelve_points(seed):
    check_against_enumeration(seed, least_points=12, most_points=12, most_features=2, depth=2)


def values(seed, n=9, p=2):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, p)), 1 + seed % 2)
    y = np.round(np.where(X.sum(axis=1) > p / 2, X[:, 0], 1.0) + 0.1 * rng.standard_normal(n), 2)
    return Dataset.from_arrays(X, y, task="regression", scaling="none")


@pytest.mark.parametrize(("loss", "N_min", "K"), [("squared", 2, 2), ("absolute", 1, 0)])
def test_ort_h_has_the_optimum_of_its_rows(loss, N_min, K):
    check_rows(OrtH(alpha=0.02, loss=loss, N_min=N_min, max_features=K), seed=0)


def check_rows(model, seed):
    problem = model.build(values(seed), 1)
    ours = problem.solve(solver="oblique-search", start="cart", gap=0)
    theirs = problem.solve(solver="highs", gap=0)
    assert ours.status == theirs.status == "optimal"
    assert ours.verified
    assert ours.objective == pytest.approx(theirs.objective, abs=ROWS_NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_ort_h_of_other_settings_has_the_optimum_of_its_rows(seed):
    loss, K = ("squared", "absolute")[seed % 2], (2, 0, 1)[seed // 2]
    check_rows(OrtH(alpha=0.02, loss=loss, N_min=1 + seed % 3, max_features=K), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_thirty_optima_are_those_of_the_rows(seed):
    data = blobs(seed, n=10, p=2 + seed % 2, decimals=1 + seed % 2)
    alpha = (0.0, 0.05, 0.3)[seed % 3]
    models = (
        OctH(alpha=alpha, max_features=(0, 1, 2)[seed // 3 % 3]),
        Miret(alpha=alpha + 0.01, epsilon=0.01, ensemble="random-forest:trees=5,seed=1"),
    )
    for model in models:
        problem = model.build(data, 1 + seed % 2)
        ours = problem.solve(
            solver="oblique-search", start="constant" if model.name == "miret" else "cart", gap=0
        )
        theirs = problem.solve(solver="highs", gap=0)
        assert ours.status == theirs.status == "optimal"
        assert ours.verified
        assert ours.objective == pytest.approx(theirs.objective, abs=NEAR)


@pytest.mark.parametrize("gap", [0.25, 0.25 + 1e-4])
def test_a_gap_as_wide_as_the_data_is_kept_and_a_wider_one_is_not(gap):
    # The samples of class 0 and 1 are 0.25 apart, so that a split with that gap exists, and none with a wider one.
    data = Dataset.from_arrays([[0.0], [0.25], [0.5], [1.0]], [0, 0, 0, 1], scaling="none")
    narrow = Dataset.from_arrays([[0.0], [0.75], [1.0]], [0, 0, 1], scaling="none")
    for samples, fits in ((data, True), (narrow, gap == 0.25)):  # exact: a copy
        result = OctH(mu=gap).build(samples, 1).solve(solver="oblique-search", start="cart", gap=0)
        assert result.status == "optimal"
        assert (result.objective == 0) is fits  # exact: no sample is wrong


def test_an_intercept_at_the_end_of_its_box_is_allowed():
    problem = ObliqueProblem(
        X=np.array([[1.0, 1.0], [0.5, 0.5]]),
        first=np.arange(3),
        size=np.ones(2, np.int64),
        charges=np.array([[1.0, 0.0], [0.0, 1.0]]),
        prices=np.full((1, 2), 0.1),
        gap=0.5,
        l1=False,
        given_labels=True,
    )
    # a = (1, 0), b = -1: scores 0 and -0.5, and no other intercept leaves one feature enough.
    value, bound, _ = searched(problem)
    assert value == pytest.approx(0.1)
    assert bound == pytest.approx(0.1)
    assert optimum(problem) == pytest.approx(0.1)


@pytest.mark.parametrize("variant", ["tight", "improved", "paper"])
@pytest.mark.parametrize("seed", [0, 1])
def test_miret_has_the_optimum_of_its_rows(variant, seed):
    data = blobs(seed, n=12)
    model = Miret(variant=variant, alpha=(0.05, 0.6)[seed], ensemble="random-forest:trees=5,seed=1")
    problem = model.build(data, 2)
    ours = problem.solve(solver="oblique-search", gap=0)
    theirs = problem.solve(solver="highs", gap=0)
    assert ours.status == theirs.status == "optimal"
    assert ours.verified
    assert ours.objective == pytest.approx(theirs.objective, abs=NEAR)


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 25))])
def test_miret_has_the_optimum_of_indicators(seed):
    pytest.importorskip("gurobipy")
    data = blobs(seed, n=9)
    alpha, epsilon = (0.1, 0.02, 0.4)[seed % 3], (0.01, 0.05)[seed % 2]
    model = Miret(alpha=alpha, epsilon=epsilon, ensemble="random-forest:trees=5,seed=1")
    problem = model.build(data, 2 if seed % 4 else 1)
    target = problem.instance.target
    costs = np.where(target.allowed, target.feature_costs(model.alpha), np.inf)
    pairs = [(i, j) for i in range(data.n) for j in range(i) if target.group[i] == target.group[j]]
    depth = problem.topology.depth
    expected = gurobi_optimum(data.X, target.sign, target.weight, costs, pairs, depth, model.epsilon)
    ours = problem.solve(solver="oblique-search", gap=0)
    assert ours.status == "optimal"
    assert ours.objective == pytest.approx(expected, abs=NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_oct_h_has_the_optimum_of_gurobi(seed):
    pytest.importorskip("gurobipy")
    alpha, K = (0.0, 0.05, 0.3)[seed % 3], (0, 1, 2)[seed // 3 % 3]
    model = OctH(alpha=alpha, max_features=K, N_min=1 + seed % 2)
    problem = model.build(blobs(100 + seed, n=10, p=2 + seed % 2, decimals=1 + seed % 2), 1 + seed % 2)
    ours = problem.solve(solver="oblique-search", start="cart", gap=0)
    theirs = problem.solve(solver="gurobi", start="cart", gap=0)
    assert ours.status == theirs.status == "optimal"
    assert ours.objective == pytest.approx(theirs.objective, abs=NEAR)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("alpha", "N_min", "mu"), [(0.0, 1, 0.005), (0.1, 2, 0.1), (2.0, 1, 0.005)])
def test_oct_h_has_the_optimum_of_its_rows(alpha, N_min, mu):
    problem = OctH(alpha=alpha, N_min=N_min, mu=mu).build(blobs(4, n=10, decimals=1), 2)
    ours = problem.solve(solver="oblique-search", start="cart", gap=0)
    theirs = problem.solve(solver="highs", start="cart", gap=0)
    assert ours.status == theirs.status == "optimal"
    assert ours.verified
    assert ours.objective == pytest.approx(theirs.objective, abs=NEAR)


@pytest.mark.slow
def test_depth_three_is_no_worse_than_depth_two_and_proven():
    data = blobs(5, n=14, decimals=1)
    model = Miret(alpha=0.1, ensemble="random-forest:trees=5,seed=1")
    results = [model.build(data, depth).solve(solver="oblique-search", gap=0) for depth in (1, 2)]
    assert [result.status for result in results] == ["optimal", "optimal"]
    three = OctH(alpha=0.15).build(data, 3).solve(solver="oblique-search", start="cart", gap=0)
    two = OctH(alpha=0.15).build(data, 2).solve(solver="oblique-search", start="cart", gap=0)
    assert three.status == two.status == "optimal"
    assert at_most(three.objective, two.objective)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("most", [2, 0])
def test_two_threads_prove_the_same_optimum_and_one_repeats_itself(most):
    problem = OctH(max_features=most, alpha=0.03).build(blobs(9, n=16), 2)
    one, again, two = (
        problem.solve(solver="oblique-search", start="cart", gap=0, threads=threads) for threads in (1, 1, 2)
    )
    assert one.status == again.status == two.status == "optimal"
    assert two.verified
    assert two.objective == pytest.approx(one.objective, abs=NEAR)
    assert (again.tree.w == one.tree.w).all()  # exact: the same run
    assert (again.tree.b == one.tree.b).all()  # exact: the same run


def test_two_threads_stop_with_a_bound_below_the_tree():
    rng = np.random.default_rng(0)
    noise = Dataset.from_arrays(rng.random((90, 4)), rng.integers(0, 2, 90))
    result = (
        OctH(max_features=2)
        .build(noise, 2)
        .solve(
            solver="oblique-search",
            start="cart",
            threads=2,
            time_limit=10,
            on_progress=lambda event: event.bound > 0,
        )
    )
    assert result.status == "interrupted"
    assert result.bound > 0  # exact: it was told
    assert at_most(result.bound, result.objective)


def test_the_line_with_the_widest_gap_is_that_of_the_linear_programme():
    rng = np.random.default_rng(0)
    for case in range(40):
        k = 1 + case % 2
        X = np.unique(np.round(rng.random((12, k)), 1 + case % 3), axis=0)
        score = X @ rng.standard_normal(k)
        right = (score > np.median(score)) ^ (rng.random(len(X)) < 0.1 * (case % 4 == 0))
        if right.all() or not right.any():
            continue
        low, high = X[~right], X[right]
        weights, reach, floor = widest_line(low, high)
        assert np.abs(weights).sum() == pytest.approx(1.0)
        # Columns: both parts of the weights, a threshold, the half of the gap; the widest gap may be below 0.
        rows = np.vstack([np.column_stack([low, -low, -np.ones(len(low)), np.ones(len(low))]),
                          np.column_stack([-high, high, np.ones(len(high)), np.ones(len(high))])])  # fmt: skip
        found = linprog(
            [0.0] * (2 * k + 1) + [-1.0], A_ub=np.vstack([rows, [1.0] * (2 * k) + [0.0, 0.0]]),
            b_ub=[0.0] * len(rows) + [1.0], bounds=[(0, 1)] * (2 * k) + [(-2, 2), (0, 1)],
        )  # fmt: skip
        assert max(0.0, floor - reach) == pytest.approx(2 * found.x[-1], abs=NEAR)


def test_a_stop_leaves_a_bound_below_the_tree():
    data = blobs(6, n=60, p=3)
    problem = OctH(alpha=0.01).build(data, 2)
    told = []
    result = problem.solve(
        solver="oblique-search", start="cart", on_progress=lambda event: told.append(event) or len(told) > 3
    )
    assert result.status == "interrupted"
    assert result.verified
    assert at_most(result.bound, result.objective)


def test_other_problems_are_refused():
    values = Dataset.from_arrays(np.linspace(0, 1, 8)[:, None], np.arange(8.0), task="regression")
    with pytest.raises(Unsupported, match="predict linear functions"):
        OrtLH(lam=0.1).build(values, 1).solve(solver="oblique-search")
    many = Dataset.from_arrays(np.linspace(0, 1, 201)[:, None], np.arange(201.0), task="regression")
    assert "201 different values" in ObliqueSearchPlugin().objection(OrtH(loss="absolute").build(many, 1))
    with pytest.raises(Unsupported, match="writes no certificate, as it discards boxes"):
        OctH().build(blobs(7, n=8), 1).solve(solver="oblique-search", certificate="proof.gz")
    changed = OctH().build(blobs(7, n=8), 1)
    changed.model.add("no_second_feature", changed.model["s"][:, 1] == 0)
    with pytest.raises(Unsupported, match="the model was changed"):
        changed.solve(solver="oblique-search")
