"""The routing search against enumeration of all routings with an independent quadratic solver."""

import numpy as np
import pytest
from independent_routes import enumerated_margot, scip_optimum
from margin_data import random_data, random_tree
from tolerance import at_most, in_order, same
from univariate_cases import hold_for_all

import mipforest
from formulations.margot import Margot
from mipforest.certificates import certify
from mipforest.data import Dataset
from mipforest.errors import Unsupported
from mipforest.problem.driver import Driver
from mipforest.searches.routing import search as search_module
from mipforest.searches.routing import svm_backend
from mipforest.searches.routing.plugin import Routing, _CandidateTrees
from mipforest.searches.routing.search import RoutingSearch
from mipforest.searches.routing.svm_backend import SvmBackend
from mipforest.testing.formulation_conformance import repeated

GAP = 1e-6


def tied_data(seed):
    """Few distinct samples, some of both classes; now and then one class is nearly absent."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 9)), int(rng.integers(1, 4))
    X = rng.integers(0, 4, (n, p)) / 3.0
    y = (rng.random(n) < rng.choice([0.15, 0.5])).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, name=f"tied{seed}", scaling="none")


def small_problem(seed, *, max_samples):
    """Data, depth and penalties: all depths, samples on a grid or not, equal ones of both classes, weights."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, max_samples + 1)), int(rng.integers(1, 4))
    X = rng.integers(0, 4, (n, p)) / 3.0 if seed % 2 else rng.random((n, p))
    y = (rng.random(n) < rng.choice([0.1, 0.5])).astype(int)
    if rng.random() < 0.3:
        X[-2:], y[-2:] = X[:2], 1 - y[:2]
    y[:2] = [0, 1]
    data = Dataset.from_arrays(X, y, name=f"small{seed}", scaling="none")
    if rng.random() < 0.5:
        data = data.with_weights(rng.choice([0.3, 1.0, 2.0, 5.0], n))
    depth = 1 + seed // 2 % 3
    return data, depth, tuple(float(10.0**k) for k in rng.uniform(-3, 4, depth))


#: The first ones have all depths, weights or not, and data with ties and without.
FIRST = 8


def agree_with_enumeration(seed):
    data, depth, C = small_problem(seed, max_samples=8 if seed < FIRST else 14)
    result = Margot(C=C).build(data, depth).solve("routing", gap=GAP, time_limit=60, threads=1)
    optimum = enumerated_margot(data.X, data.sign, C, depth, 1e-3, data.weights)
    assert result.status == "optimal"
    assert result.verified, result.doubts
    assert result.objective == pytest.approx(optimum, rel=1e-5, abs=1e-6)
    assert result.bound <= optimum * (1 + 1e-6) + 1e-6
    assert all(event.bound <= optimum * (1 + 1e-6) + 1e-6 for event in result.solution.events)


@pytest.mark.parametrize("seed", range(FIRST))
def test_the_optimum_is_that_of_enumeration(seed):
    agree_with_enumeration(seed)


#: More cases: some of them, and all of them.
MORE = [
    pytest.param(range(FIRST, 80), marks=pytest.mark.slow),
    pytest.param(range(FIRST, 308), marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("seeds", MORE)
def test_the_optimum_is_that_of_enumeration_in_more_cases(seeds):
    hold_for_all(agree_with_enumeration, seeds)


def of_depth_three(seeds):
    return [seed for seed in seeds if small_problem(seed, max_samples=8)[1] == 3]


@pytest.fixture
def subtree_bounds_everywhere(monkeypatch):
    """Bound subtrees at every open node, however few samples reach them; return the bounds."""
    found = []
    monkeypatch.setattr(svm_backend, "_PAYS", 0.0)
    monkeypatch.setattr(svm_backend, "_LEAST_GROUPS", 1)
    monkeypatch.setattr(svm_backend, "_GROWTH", 1.0)
    monkeypatch.setattr(search_module, "STEPS", 2)  # they are computed where plunges begin
    subtree_bound = SvmBackend._subtree_bound

    def counted(*given):
        found.append(subtree_bound(*given))
        return found[-1]

    monkeypatch.setattr(SvmBackend, "_subtree_bound", counted)
    return found


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", [11, 22])
def test_with_subtree_bounds_the_optimum_is_that_of_enumeration(seed, subtree_bounds_everywhere):
    agree_with_enumeration(seed)
    assert max(bound for bound, *_ in subtree_bounds_everywhere) > 0.0


@pytest.mark.parametrize("seeds", MORE)
def test_with_subtree_bounds_the_optimum_is_that_of_enumeration_in_more_cases(
    subtree_bounds_everywhere, seeds
):
    hold_for_all(agree_with_enumeration, of_depth_three(seeds))


@pytest.mark.slow
def test_subtrees_of_subtrees_have_bounds_and_the_optimum_stays(subtree_bounds_everywhere, monkeypatch):
    for seed in range(400, 412):
        data, _, C = small_problem(seed, max_samples=12)
        problem = Margot(C=(*C, C[-1], C[-1], C[-1])[:4]).build(data, 4)
        with_bounds = problem.solve("routing", gap=GAP, time_limit=60, threads=1)
        with monkeypatch.context() as without:
            without.setattr(svm_backend, "_LEAST_GROUPS", data.n + 1)
            expected = problem.solve("routing", gap=GAP, time_limit=60, threads=1)
        assert with_bounds.status == expected.status == "optimal"
        assert with_bounds.objective == pytest.approx(expected.objective, rel=1e-5, abs=1e-6)
    assert len(subtree_bounds_everywhere) > 100


def agree_with_an_integer_programme(seed):
    data, depth, C = small_problem(seed, max_samples=14 if seed % 6 < 4 else 8)  # three levels take SCIP long
    problem = Margot(C=C).build(data, depth)
    result = problem.solve("routing", gap=GAP, time_limit=60, threads=1)
    expected = scip_optimum(problem.model.matrix())
    assert expected is not None
    assert result.objective == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.slow
def test_an_integer_programme_has_the_same_optimum():
    hold_for_all(agree_with_an_integer_programme, range(1000, 1030))


@pytest.mark.parametrize(
    "depth", [2, pytest.param(3, marks=pytest.mark.slow)]
)  # a level more of the same bounds
def test_every_bound_is_below_every_known_tree(depth):
    data = random_data(7, n=30, p=3)
    problem = Margot(C=10.0).build(data, depth)
    result = problem.solve("routing", time_limit=0.5, threads=2)
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, data, depth, epsilon=1e-3) for _ in range(12)]
    values = [
        problem.formulation.evaluate(problem.formulation.polish(tree, problem.instance), problem.instance)
        for tree in trees
    ]
    least = min(*values, result.objective)
    assert all(event.bound <= least * (1 + 1e-9) for event in result.solution.events)
    bounds = [event.bound for event in result.solution.events]
    assert in_order(bounds)


def test_stopped_at_its_first_event_it_has_the_bound_of_the_root():
    problem = Margot(C=10.0).build(random_data(7, n=30, p=3), 3)
    result = problem.solve("routing", threads=1, on_progress=lambda event: event.nodes > 0)
    assert result.bound > 0.0


def test_far_above_the_bound_it_looks_for_much_better_trees_first_and_stays_exact():
    data = random_data(11, n=12, p=2)
    problem = Margot(C=(0.1, 10.0)).build(data, 2)
    optimum = problem.solve("routing", gap=GAP, time_limit=60, threads=1).objective
    trees = _CandidateTrees(Driver(Routing(), problem), None)
    backend = SvmBackend(trees.convex_nodes())
    search = RoutingSearch(backend, gap=GAP, complete=trees.realised, propose=lambda _: np.inf)
    reported = []
    found = search.run(1e6, deadline=np.inf, on_progress=lambda *event: reported.append(event))
    assert found.proven
    assert search.best == pytest.approx(optimum, rel=1e-6)
    bounds = [bound for _, bound, _ in reported]
    assert in_order(bounds)
    assert max(bounds) <= optimum * (1 + 1e-6)


@pytest.mark.parametrize("power", [3.0, 8.0, 20.0])
def test_restarts_take_as_many_times_the_steps_of_the_last_one_as_wanted(power):
    limit, steps, spent, values = search_module._ObjectiveLimit(), 0, [], []
    limit.begin(100.0)
    for _ in range(6):
        values.append(limit.value)
        spent.append(round(1000 * (limit.value / 100.0) ** power))
        steps += spent[-1]
        limit.restart(steps)
    assert in_order(values)
    assert np.diff(np.log(spent))[1:] == pytest.approx(np.log(search_module.RESTART_GROWTH), rel=1e-2)


@pytest.mark.slow
def test_the_search_agrees_with_a_matrix_solver():
    data = random_data(3, n=14, p=2)
    problem = Margot(C=5.0).build(data, 2)
    by_search = problem.solve("routing", gap=GAP, time_limit=60)
    by_matrix = problem.solve("highs", gap=1e-5, time_limit=60)
    assert by_search.status == "optimal"
    assert by_search.objective <= by_matrix.objective * (1 + 1e-6)
    assert by_matrix.bound <= by_search.objective * (1 + 1e-6)


def test_a_changed_model_is_refused():
    problem = Margot().build(random_data(0, n=8, p=2), 2)
    problem.model.add("alike", problem.model["w"][:, 0] == problem.model["w"][:, 1])
    with pytest.raises(Unsupported, match="sees no rows"):
        problem.solve("routing")


def test_a_stopped_search_keeps_its_tree_and_a_true_bound():
    data = random_data(7, n=30, p=3)
    problem = Margot(C=100.0).build(data, 3)
    result = problem.solve("routing", on_progress=lambda event: event.nodes > 20)
    assert result.status == "interrupted"
    assert result.verified
    longer = problem.solve("routing", time_limit=0.5)
    assert result.bound <= longer.objective * (1 + 1e-9)


def overlapping():
    return Margot(C=10.0).build(random_data(5, n=80, p=3), 2)


@pytest.fixture(scope="module")
def proven():
    """The optimum of overlapping classes, on one thread."""
    result = overlapping().solve("routing", threads=1, time_limit=None)
    assert result.status == "optimal"
    return result


def test_a_tenth_of_a_second_leaves_a_tree_and_a_true_bound(proven):
    result = overlapping().solve("routing", threads=1, time_limit=0.1)
    assert result.status in ("time_limit", "optimal")
    assert result.verified
    assert at_most(result.bound, proven.objective)
    assert proven.objective <= result.objective * (1 + 1e-4)


def test_two_threads_find_the_same_optimum(proven):
    result = overlapping().solve("routing", threads=2, time_limit=None)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(proven.objective, rel=2e-4)


def test_past_the_budget_of_memory_it_plunges_and_stays_exact(proven, monkeypatch):
    taken, most = [], []
    following = RoutingSearch._next

    def counted(search):
        most.append(len(search._heap))
        node = following(search)
        taken.append(bool(search._heap) and node.bound > search._heap[0].bound)
        return node

    monkeypatch.setattr(RoutingSearch, "_next", counted)
    overlapping().solve("routing", threads=1, time_limit=None)
    free, best_first = max(most), not any(taken)
    most.clear()
    monkeypatch.setattr(search_module, "OPEN_BYTES", 1000)
    result = overlapping().solve("routing", threads=1, time_limit=None)
    assert best_first
    assert any(taken)
    assert max(most) < free
    assert result.status == "optimal"
    assert result.objective == pytest.approx(proven.objective, rel=2e-4)
    assert all(event.bound <= proven.objective * (1 + 1e-4) for event in result.solution.events)


def test_one_thread_is_reproducible():
    data = random_data(5, n=20, p=3)
    runs = [Margot(C=3.0).build(data, 2).solve("routing", threads=1, time_limit=60) for _ in range(2)]
    assert runs[0].solution.nodes == runs[1].solution.nodes
    assert same(runs[0].objective, runs[1].objective)


def test_the_command_line_lists_and_takes_it(capsys):
    from mipforest.problem.tree_search import search_classes

    assert search_classes()["routing"].proves
    assert mipforest.get_formulation("margot") is Margot


def test_weights_are_repeated_samples_and_so_the_certificate_says(tmp_path):
    data, counts = tied_data(4), np.array([1, 3, 2, 1, 2, 4, 1, 2])
    counts = counts[: data.n]
    again = repeated(data, counts)
    expected = Margot(C=2.0).build(again, 2).solve("routing", gap=GAP, threads=1)
    proof = tmp_path / "proof.gz"
    result = (
        Margot(C=2.0)
        .build(data.with_weights(counts), 2)
        .solve("routing", gap=GAP, threads=1, certificate=proof)
    )
    assert result.verified
    assert result.objective == pytest.approx(expected.objective, rel=1e-5)
    certified = certify(proof)
    assert certified.weight.sum() == again.n
    assert certified.bound == pytest.approx(expected.objective, rel=1e-4)
