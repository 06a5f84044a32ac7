"""The local search against definitions: sweeps, local optima, exact optima, and invariances."""

from dataclasses import replace

import numpy as np
import pytest
from dask_processes import Cluster
from seeds import seeds
from sklearn.tree import DecisionTreeRegressor
from tolerance import at_least, at_most, same
from univariate_cases import LOSSES, Case, hold_for_all, local, medium, noisy, numbers

import mipforest
from formulations.oct import Oct
from mipforest.data import Dataset
from mipforest.errors import ClusterError, NotAllowed
from mipforest.objectives.leaf_losses import ClassLoss, SquaredLoss
from mipforest.problem.constraints import Forbid, MinLeaf, OncePerPath
from mipforest.searches import entry
from mipforest.searches.exact.search import exact_search
from mipforest.searches.leaf_sums import ABSOLUTE
from mipforest.searches.local import LocalProblem, LocalTree
from mipforest.searches.local import search as search_module
from mipforest.searches.local.descent import _enter, search_from, visit
from mipforest.searches.local.search import _load_tree, _tree_of, local_search, samples_of
from mipforest.searches.local.state import LEAF, OWN, members_of, partition_below, value_below, workspace_for
from mipforest.searches.local.sweeps import (
    add_absolute_losses,
    find_no_hyperplane,
    fit_leaves,
    save_leaves,
    sweep,
)

# ---------------------------------------------------------------------- by the definition


def nested(tree, t=0):
    """A tree as nested tuples ``(feature, threshold, left, right)``; a leaf is None."""
    if t >= len(tree.b) or not tree.w[t].any():
        return None
    return int(tree.w[t].argmax()), -tree.b[t], nested(tree, 2 * t + 1), nested(tree, 2 * t + 2)


def value(node, X, rows, cost, split_cost, n_min):
    """Value of a tree on some samples: empty leaves are dropped with the splits above them."""
    if not len(rows):
        return 0.0
    if node is None:
        return cost(rows) if len(rows) >= n_min else np.inf
    left = X[rows, node[0]] < node[1]
    paid = split_cost if left.any() and not left.all() else 0.0
    return paid + sum(
        value(child, X, part, cost, split_cost, n_min)
        for child, part in ((node[2], rows[left]), (node[3], rows[~left]))
    )


def improvements(node, X, rows, cost, split_cost, n_min, levels):
    """Values of all trees that one visit of a node could make, less the value of the tree."""
    if levels == 0 or not len(rows):
        return
    now = value(node, X, rows, cost, split_cost, n_min)
    below = (None, None) if node is None else node[2:]
    for child in below:
        yield value(child, X, rows, cost, split_cost, n_min) - now
    yield value(None, X, rows, cost, split_cost, n_min) - now
    for j in range(X.shape[1]):
        for threshold in np.unique(X[rows, j])[1:]:
            yield value((j, threshold, *below), X, rows, cost, split_cost, n_min) - now
    if node is not None:
        left = X[rows, node[0]] < node[1]
        for child, part in ((node[2], rows[left]), (node[3], rows[~left])):
            yield from improvements(child, X, part, cost, split_cost, n_min, levels - 1)


def every_split_separates(node, X, rows):
    """Whether no leaf of a tree is empty."""
    if node is None:
        return True
    left = X[rows, node[0]] < node[1]
    below = every_split_separates(node[2], X, rows[left]) and every_split_separates(node[3], X, rows[~left])
    return left.any() and not left.all() and below


def random_tree(seed, X, depth):
    """A tree of random splits at values of the samples."""
    rng = np.random.default_rng(seed)
    w = np.eye(X.shape[1])[rng.integers(0, X.shape[1], 2**depth - 1)]
    return LocalTree(w, -np.array([rng.choice(X @ column) for column in w]))


# ---------------------------------------------------------------------- kernels


@entry
def swept(samples, work, feature):
    """Sweep the root's samples in the order of a feature."""
    root = members_of(samples, work, 0)
    leaves, ids = _enter(samples, work, 0, root)[3], root.order[feature, root.begin : root.end]
    fit_leaves(samples, work, root, 1, leaves)
    save_leaves(work, leaves)
    sweep(samples, work, ids, 1, leaves, samples.kind, 1.0, samples.tie)
    if samples.kind == ABSOLUTE:
        add_absolute_losses(samples, work, root, ids, 1, leaves)


@pytest.mark.slow  # its kernel takes seconds to compile
def test_every_value_of_a_sweep_is_that_of_its_tree():
    hold_for_all(values_of_a_sweep_are_those_of_its_tree, range(60))


def values_of_a_sweep_are_those_of_its_tree(seed):
    case = Case(seed)
    samples, features = samples_of(local(case.problem), tie_break=False)
    work = workspace_for(samples, 3)
    _load_tree(random_tree(seed, case.data.X, 3), samples, features, work)
    if case.n_min == 1:
        search_from(samples, work, 0, 0, 0, np.ones(1, np.int64), np.zeros(2, np.int64))
    else:  # of any sizes
        search_from(samples._replace(N_min=1), work, 0, 0, 0, np.ones(1, np.int64), np.zeros(2, np.int64))
    if work.trees[OWN, 0]["feature"] < 0:
        return
    nodes = work.trees[OWN]

    def as_tuples(t):
        f, cut = nodes["feature"][t], nodes["cut"][t]
        if f < 0:
            return None
        return (
            int(features[f]),
            samples.distinct[samples.first[f] + cut],
            as_tuples(2 * t + 1),
            as_tuples(2 * t + 2),
        )

    _, _, left, right = as_tuples(0)
    splits = int((nodes["feature"] >= 0).sum())
    X, rows, seen = case.data.X, np.arange(case.data.n), 0
    for f in range(len(features)):
        swept(samples, work, f)
        order = samples.order[f]
        for q in range(case.data.n - 1):
            low, high = X[order[[q, q + 1]], features[f]]
            if low < high:
                tree = (int(features[f]), high, left, right)
                expected = value(tree, X, rows, case.cost, case.problem.split_cost, case.n_min)
                assert work.curve[q] + case.problem.split_cost * splits == pytest.approx(expected, abs=1e-9)
                seen += 1
    assert seen


@pytest.mark.slow  # its kernel takes seconds to compile
def test_sums_of_linear_leaves_are_right_after_a_sweep():
    problem = replace(numbers(n=400), coefficient_cost=0.5)
    samples, features = samples_of(problem)
    work = workspace_for(samples, 3)
    _load_tree(random_tree(1, problem.X, 3), samples, features, work)
    search_from(samples, work, 0, 0, 0, np.ones(1, np.int64), np.zeros(2, np.int64))
    V = samples.value.shape[1]
    for f in range(len(features)):
        swept(samples, work, f)
        for leaf in range(work.leaf.max() + 1):
            expected = samples.value[work.leaf[:, 0] == leaf].sum(axis=0)
            assert work.sums[leaf, :V] == pytest.approx(expected, abs=1e-8)


@entry
def visited(samples, work, t):
    """Visit a node; return the value of the tree before and after."""
    partition_below(samples, work, 0)
    before = value_below(samples, work, 0)
    visit(samples, work, t, find_no_hyperplane)
    return before, value_below(samples, work, 0)


@pytest.mark.slow  # its kernel takes seconds to compile
def test_no_visit_raises_the_objective():
    hold_for_all(no_visit_raises_the_objective, range(60))


def no_visit_raises_the_objective(seed):
    case = Case(seed)
    samples, features = samples_of(local(case.problem), tie_break=False)
    work = workspace_for(samples, case.depth)
    _load_tree(random_tree(seed, case.data.X, case.depth), samples, features, work)
    search_from(samples, work, 0, 0, 0, np.ones(1, np.int64), np.zeros(2, np.int64))
    rng, now = np.random.default_rng(seed), None
    for _ in range(30):
        there = np.flatnonzero(work.trees[OWN]["feature"] >= LEAF)
        before, after = visited(samples, work, int(rng.choice(there)))
        assert now is None or before == now
        assert after <= before
        now = after
    tree = nested(_tree_of(local(case.problem), samples, features, work))
    charged = case.cost, case.split_cost, case.problem.N_min
    assert value(tree, case.data.X, np.arange(case.data.n), *charged) == pytest.approx(now, abs=1e-9)


@pytest.mark.parametrize("seed", seeds(8, 24))
def test_no_visit_improves_the_result_and_no_tree_is_better_than_the_exact_search(seed):
    no_visit_improves_the_result(seed)


@pytest.mark.slow
def test_no_visit_improves_the_result_in_more_cases():
    hold_for_all(no_visit_improves_the_result, range(24, 300))


def no_visit_improves_the_result(seed):
    case = Case(seed)
    X, rows = case.data.X, np.arange(case.data.n)
    found = local_search(local(case.problem), case.depth, starts=2, kicks=0, tie_break=False)
    tree = nested(found.tree)
    args = case.cost, case.problem.split_cost, case.n_min
    assert value(tree, X, rows, *args) == pytest.approx(found.value, abs=1e-9)
    assert every_split_separates(tree, X, rows)
    some = random_tree(seed, X, case.depth)
    alone = local_search(local(case.problem), case.depth, starts=0, kicks=0, trees=[some])
    assert alone.value <= value(nested(some), X, rows, *args) + 1e-9
    assert min(improvements(tree, X, rows, *args, case.depth), default=0.0) > -1e-7

    optimum = exact_search(case.problem, case.depth).value
    assert found.value >= optimum - 1e-9
    kicked = local_search(local(case.problem), case.depth, starts=4, kicks=30)
    assert optimum - 1e-9 <= kicked.value <= found.value + 1e-9
    assert value(nested(kicked.tree), X, rows, *args) == pytest.approx(kicked.value, abs=1e-9)
    if case.depth == 1:
        assert found.value == pytest.approx(optimum, abs=1e-9)


# ---------------------------------------------------------------------- starts, threads, invariances


def test_the_number_of_threads_does_not_matter():
    for problem in (noisy(), numbers()):
        one = local_search(problem, 3, starts=6, kicks=5, seed=3, threads=1)
        two = local_search(problem, 3, starts=6, kicks=5, seed=3, threads=2)
        assert (one.values == two.values).all()  # exact: the same searches, with the same arithmetic
        assert (one.tree.w == two.tree.w).all()
        assert (one.tree.b == two.tree.b).all()


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of one worker with two threads, in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        dashboard_address=None,
        protocol="tcp",
        host="127.0.0.1",
    ) as running:
        yield running.scheduler_address


def identical(one, other):
    return (
        one.value == other.value and (one.values == other.values).all() and (one.tree.w == other.tree.w).all()
    )


@pytest.mark.parametrize("seed", range(12))
def test_with_many_samples_starts_work_on_a_part_and_values_are_those_of_all(seed, monkeypatch):
    case = Case(seed)
    monkeypatch.setattr(search_module, "MANY", 4)
    monkeypatch.setattr(search_module, "PART", 2)
    told = []
    found = local_search(
        local(case.problem), case.depth, starts=6, kicks=3, on_progress=lambda *event: told.append(event)
    )
    rows = np.arange(case.data.n)
    charged = case.cost, case.split_cost, case.problem.N_min
    assert value(nested(found.tree), case.data.X, rows, *charged) == pytest.approx(found.value, abs=1e-9)
    assert found.value >= exact_search(case.problem, case.depth).value - 1e-9
    assert found.ended
    assert 2 <= found.begun <= 6  # trees without errors on a part end it
    assert len(found.values) == 2
    assert all(at_least(objective, found.value) for objective, *_ in told)


def test_with_many_samples_neither_threads_nor_a_cluster_matter_and_a_stop_leaves_a_tree(
    cluster, monkeypatch
):
    monkeypatch.setattr(search_module, "MANY", 40)
    problem = numbers()
    one, two = (local_search(problem, 3, starts=6, kicks=5, seed=3, threads=threads) for threads in (1, 2))
    assert identical(one, two)
    assert identical(one, local_search(problem, 3, starts=6, kicks=5, seed=3, dask=cluster))
    stopped = local_search(problem, 3, starts=6, kicks=10**6, deadline=0.0)
    assert not stopped.ended
    assert np.isfinite(stopped.value)
    asked = local_search(problem, 3, starts=6, kicks=10**6, on_progress=lambda *_: True, deadline=0.0)
    assert not asked.ended


def test_a_dask_cluster_leads_to_the_same_tree(cluster):
    problem = noisy()
    here = local_search(problem, 3, starts=4, kicks=3, seed=3)
    there = local_search(problem, 3, starts=4, kicks=3, seed=3, dask=cluster)
    assert identical(here, there)
    assert there.ended
    assert (there.visits, there.moves) == (here.visits, here.moves)
    stopped = local_search(problem, 3, starts=4, kicks=10**6, deadline=0.0, dask=cluster)
    assert not stopped.ended
    assert np.isfinite(stopped.value)

    built = Oct(variant="paper").build(medium(4), 2)
    options = {"starts": 2, "kicks": 5}
    results = [
        built.solve("local-search", solver_options=options | more, seed=1) for more in ({}, {"dask": cluster})
    ]
    assert (results[0].tree.w == results[1].tree.w).all()


def test_a_cluster_that_is_not_there_is_told():
    built = Oct().build(medium(1, n=20), 1)
    with pytest.raises(ClusterError, match="no Dask scheduler answers at nonsense"):
        built.solve("local-search", solver_options={"dask": "nonsense"})
    with pytest.raises(NotAllowed, match="option dask is 3; give the scheduler's address"):
        built.solve("local-search", solver_options={"dask": 3})


@pytest.mark.slow  # workers that are processes of their own
def test_the_number_of_workers_of_a_dask_cluster_does_not_matter(tmp_path):
    pytest.importorskip("distributed")
    problem = numbers()
    here = local_search(problem, 3, starts=8, kicks=20, seed=5)
    with Cluster(tmp_path) as running:
        for number in (1, 2):
            running.add_worker()
            running.wait_for_workers(number)
            assert identical(here, local_search(problem, 3, starts=8, kicks=20, seed=5, dask=running.address))


def test_more_starts_and_deeper_trees_are_no_worse():
    problem = noisy(1)
    few, many = (local_search(problem, 3, starts=starts, kicks=0) for starts in (3, 9))
    assert at_most(many.value, few.value)
    assert (many.values[:3] == few.values).all()  # exact: the same searches, with the same arithmetic
    shallow = few.tree
    deep = LocalTree(
        *(np.concatenate([part, np.zeros((8, *part.shape[1:]))]) for part in (shallow.w, shallow.b))
    )
    assert at_most(local_search(problem, 4, starts=0, kicks=0, trees=[deep]).value, few.value)


def test_every_move_of_a_classification_saves_an_error():
    problem = noisy(2)
    found = local_search(problem, 4, starts=1, kicks=0, tie_break=False)
    assert found.moves <= len(problem.y) - np.bincount(problem.y).max()


def test_at_depth_one_order_of_samples_features_classes_and_scales_do_not_matter():
    problem = noisy(3, classes=4)
    value = local_search(problem, 1).value
    samples, features = np.random.default_rng(0).permutation(150), [3, 1, 4, 0, 2]
    for other in (
        replace(problem, X=problem.X[samples], y=problem.y[samples]),
        replace(problem, X=problem.X[:, features]),
        replace(problem, X=np.exp(3 * problem.X)),
        replace(problem, y=3 - problem.y),
    ):
        assert same(local_search(other, 1).value, value)
    for problem in (numbers(3, n=150), numbers(3, n=150, loss="absolute")):
        value = local_search(problem, 1, starts=1, kicks=0).value
        for other in (
            replace(problem, X=problem.X[samples], y=problem.y[samples]),
            replace(problem, X=problem.X[:, features]),
            replace(problem, X=np.exp(3 * problem.X)),
        ):
            assert local_search(other, 1, starts=1, kicks=0).value == pytest.approx(value, rel=1e-9)
        if isinstance(problem.loss, SquaredLoss):
            cart = DecisionTreeRegressor(max_depth=1).fit(problem.X, problem.y)
            assert value == pytest.approx(((problem.y - cart.predict(problem.X)) ** 2).sum(), rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_values_do_not_depend_on_the_scales_of_features(loss):
    problem = noisy(3) if loss == "classes" else numbers(3, loss=loss)
    found, other = (
        local_search(replace(problem, X=X), 3, starts=3, kicks=3) for X in (problem.X, np.exp(3 * problem.X))
    )
    assert (found.values == other.values).all()  # exact: the same searches, with the same arithmetic


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_units_of_the_target_and_samples_counted_twice_do_not_matter(loss):
    problem = replace(numbers(loss=loss), N_min=3)
    found = local_search(problem, 3, starts=2, kicks=0)
    scale = 4.0 if loss == "absolute" else 16.0
    other = local_search(replace(problem, y=4 * problem.y - 7), 3, starts=2, kicks=0)
    assert other.values == pytest.approx(scale * found.values, rel=1e-9)
    twice = replace(problem, X=np.tile(problem.X, (2, 1)), y=np.tile(problem.y, 2), N_min=6)
    assert local_search(twice, 3, starts=2, kicks=0).values == pytest.approx(2 * found.values, rel=1e-9)
    weighted = replace(problem, weight=np.full(120, 2.0))
    assert local_search(weighted, 3, starts=2, kicks=0).values == pytest.approx(2 * found.values, rel=1e-9)


def test_features_without_a_threshold_leave_one_leaf():
    problem = LocalProblem(X=np.ones((4, 2)), y=np.array([0, 1, 1, 1]), loss=ClassLoss())
    found = local_search(problem, 2, starts=1)
    assert found.value == 1
    assert not found.tree.w.any()


@pytest.mark.parametrize("seed", seeds(6, 120))
def test_what_nodes_may_split_on_is_kept_on_the_way(seed):
    """The trees are within the constraints without a repair, and near the best one of all."""
    rng = np.random.default_rng(seed)
    X, names = rng.integers(0, 6, (60, 4)).astype(float), list("abcd")
    if seed % 3:
        data, model = Dataset.from_arrays(X, rng.integers(0, 2, 60), features=names), "oct"
    else:
        data, model = (
            Dataset.from_arrays(X, X[:, 0] + rng.random(60), features=names, task="regression"),
            "ort",
        )
    problem = mipforest.get_formulation(model)(alpha=0.01).build(data, 3)
    asked = [Forbid(("a",), (0, 1)), Forbid(("b",), (2,)), MinLeaf(1 + seed % 4)]
    problem.constrain(*asked, *([OncePerPath()] if seed % 2 else []))
    result, best = (problem.solve(name, seed=0, time_limit=60) for name in ("local-search", "exact-search"))
    assert result.verified, result.failed_checks
    assert not any("was repaired" in told for told in result.solution.warnings)
    assert all(one.admits(result.tree, data) for one in problem.constraints)
    assert best.status == "optimal"
    assert at_most(best.objective, result.objective)
    assert result.objective <= 1.5 * best.objective
