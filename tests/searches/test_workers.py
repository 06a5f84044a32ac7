"""Searches in slices: with workers in this process, some of which lose slices, and on clusters of real processes."""

import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from margin_data import random_data
from tolerance import at_most, same
from univariate_cases import Case, hold_for_all

import mipforest
from formulations.margot import HfsMargot, Margot
from formulations.oct import Oct
from formulations.olct import Olct
from mipforest.data import Dataset, load
from mipforest.errors import ClusterError, NotAllowed, Unsupported
from mipforest.problem.constraints import Forbid, LimitLabel, MinLeaf, OncePerPath, Split
from mipforest.searches import workers as module
from mipforest.searches.exact import search as exact_module
from mipforest.searches.exact.search import exact_search
from mipforest.searches.pool import Pool
from mipforest.searches.workers import Shared, Slices, Workers
from mipforest.time_budget import TimeBudget

PAPERS_DATA = Path(__file__).parents[3] / "shared" / "data"


class WorkersHere(Pool):
    """Two workers in this process, each with a part and a memory of its own.

    Slices are as short as they can be; some run twice, and some are given up.
    """

    def __init__(self, address, kind, problem, budget, time_limit=inf):
        self.deadline, self.submitted, self.returned = monotonic() + time_limit, 0, 0
        self._places = [(Shared(), kind(pickle.loads(pickle.dumps(problem)))) for _ in range(2)]
        self._pool = ThreadPoolExecutor(2)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._pool.shutdown()

    @property
    def at_once(self):
        return 3

    def share(self, n_open):
        return 1 + self.submitted % 3, 0.0

    def submit(self, *work, best=inf):
        self.submitted += 1
        return self._pool.submit(self._run, self.submitted, pickle.dumps(work), best)

    def _run(self, number, work, best):
        for turn in range(2 if number % 5 == 0 else 1):  # a slice that runs again does no harm
            shared, part = self._places[(number + turn) % 2]
            shared.update(best)
            found = pickle.dumps(part.run(shared, *pickle.loads(work)))
        return found

    def result(self, future):
        self.returned += 1
        found = pickle.loads(future.result())
        return None if self.returned % 7 == 3 else found

    def publish(self, best):
        for shared, _ in self._places:
            shared.update(best)

    def stop(self):
        for shared, _ in self._places:
            shared.update(inf, stop=True)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(exact_module, "Workers", WorkersHere)
    monkeypatch.setattr(module, "Workers", WorkersHere)
    return "here"


# ---------------------------------------------------------------------- workers in this process


def agrees_in_slices(seed):
    case = Case(seed)
    depth = case.depth = max(3, case.depth)
    alone = exact_search(case.problem, depth)
    for threads in (1, 2):
        shared_out = exact_search(case.problem, depth, dask="here", threads=threads)
        assert shared_out.ended
        assert same(shared_out.value, alone.value)
        assert same(shared_out.bound, alone.bound)
        if shared_out.chosen is not None:
            assert same(case.value(shared_out.chosen), shared_out.value)


@pytest.mark.parametrize(
    ("first", "beyond"), [(0, 2), pytest.param(2, 60, marks=pytest.mark.slow, id="more")]
)
def test_the_exact_search_in_slices_finds_the_same_optimum(here, first, beyond):
    hold_for_all(agrees_in_slices, range(first, beyond))


def harder(n=80, p=3, K=3, seed=0):
    rng = np.random.default_rng(seed)
    return Dataset.from_arrays(rng.random((n, p)), rng.integers(0, K, n), name="random")


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_a_search_in_slices_that_is_stopped_has_a_true_bound(here, depth):
    data = harder(30 if depth > 3 else 80)
    calls = []
    problem = Oct().build(data, depth)
    best = problem.solve("exact-search", time_limit=120)
    stopped = problem.solve(
        "exact-search", dask=here, on_progress=lambda event: calls.append(event) or len(calls) > 3
    )
    assert stopped.status in ("interrupted", "optimal")
    assert stopped.verified
    assert at_most(stopped.bound, best.objective)
    assert at_most(best.objective, stopped.objective)
    whole = problem.solve("exact-search", dask=here)
    assert whole.status == "optimal"
    assert same(whole.objective, best.objective)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    "formulation",
    [Margot(C=10.0), HfsMargot(C=10.0, B=1), Olct(C=1.0, tangents="V0", refinement=False)],
    ids=lambda formulation: formulation.name,
)
@pytest.mark.parametrize("threads", [1, 2])
def test_routing_in_slices_proves_the_same_optimum(here, formulation, threads):
    data = random_data(3, n=24, p=2)
    problem = formulation.build(data, 2)
    alone = problem.solve("routing", gap=1e-6)
    there = problem.solve("routing", gap=1e-6, dask=here, threads=threads)
    assert alone.status == there.status == "optimal"
    assert there.verified
    assert there.objective == pytest.approx(alone.objective, rel=1e-5)
    assert there.bound <= alone.objective * (1 + 1e-9)


def test_slices_of_a_worker_share_incumbent_and_end():
    shared = Shared()
    shared.update(3.0)
    shared.update(4.0)
    assert shared.best == 3.0  # exact: a copy
    assert not shared.stop[0]
    shared.update(inf, stop=True)
    assert shared.best == 3.0  # exact: a copy
    assert shared.stop[0]


def test_slices_grow_with_what_is_open():
    workers = Workers.__new__(Workers)
    workers.slots = 8
    assert workers.share(0) == (1, module.SHORT_SLICE)
    assert workers.share(16) == (1, 0.5 * module.SLICE)
    assert workers.share(320) == (10, module.SLICE)
    assert workers.share(10**6) == (module.MOST_OF_A_SLICE, module.SLICE)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(("depth", "n"), [(3, 60), (4, 30)])
def test_with_constraints_the_same_tree_is_found_on_workers(here, depth, n):
    data = harder(n)
    first, second = data.features.labels[:2]
    for asked in (
        (Forbid((first,)), MinLeaf(2)),
        (Forbid((first,), (0, 1)), Split(second, None, 1), OncePerPath()),
    ):
        problem = Oct().build(data, depth)
        problem.constrain(*asked)
        alone, there = problem.solve("exact-search"), problem.solve("exact-search", dask=here)
        assert there.status == "optimal"
        assert same(there.objective, alone.objective)
        assert not any("this machine alone" in warning for warning in there.solution.warnings)


def test_limits_on_labels_are_searched_on_this_machine(here):
    problem = Oct().build(harder(30), 3)
    problem.constrain(LimitLabel(problem.data.classes[1], 0.2))
    result = problem.solve("exact-search", dask=here)
    assert result.status == "optimal"
    assert any("this machine alone" in warning for warning in result.solution.warnings)


def test_what_does_not_run_on_a_cluster_is_refused(tmp_path):
    problem = Oct(variant="paper").build(harder(20), 3)
    with pytest.raises(Unsupported, match=r"highs does not run on a Dask cluster; these do: exact-search, "):
        problem.solve("highs", dask="tcp://127.0.0.1:1")
    with pytest.raises(Unsupported, match="tao does not run on a Dask cluster"):
        problem.solve("tao", dask="tcp://127.0.0.1:1")
    with pytest.raises(NotAllowed, match="dask is 3; give the address of a scheduler"):
        problem.solve("exact-search", dask=3)
    with pytest.raises(NotAllowed, match="two Dask clusters are given"):
        problem.solve("local-search", dask="tcp://a:1", solver_options={"dask": "tcp://b:1"})
    margot = Margot(C=1.0).build(random_data(0, n=10, p=2), 2)
    with pytest.raises(NotAllowed, match="a certificate is written by one process"):
        margot.solve("routing", dask="tcp://127.0.0.1:1", certificate=tmp_path / "proof.gz")
    with pytest.raises(Unsupported, match="highs does not run on a Dask cluster"):
        mipforest.solve(problem.model, dask="tcp://127.0.0.1:1")


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setattr(module.connected, "__defaults__", (0.5,))
    problem = Oct().build(harder(20), 3)
    for solver in ("exact-search", "auto", "local-search"):
        with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 within"):
            problem.solve(solver, dask="tcp://127.0.0.1:1")


def test_two_levels_are_searched_on_this_machine():
    told = []
    budget = TimeBudget(report=lambda line, plain=False: told.append(line))
    problem = Oct().build(harder(30), 2, budget=budget)
    result = problem.solve("exact-search", dask="tcp://127.0.0.1:1")
    assert result.status == "optimal"
    assert "exact-search runs on this machine alone: a cluster helps it from depth 3 on" in told
    assert any("runs on this machine alone" in warning for warning in result.solution.warnings)


# ---------------------------------------------------------------------- clusters of processes


def processes(number):
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=number,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        protocol="tcp",
        host="127.0.0.1",
    )


def pids(address):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


@pytest.fixture(scope="module")
def two():
    with processes(2) as cluster:
        yield cluster.scheduler_address


@pytest.mark.slow
def test_searches_on_two_processes_prove_the_same_optima(two):
    problem = Oct().build(harder(200, seed=1), 3)
    alone, there = problem.solve("exact-search"), problem.solve("auto", dask=two)
    assert there.status == "optimal"
    assert same(there.objective, alone.objective)
    assert same(there.bound, alone.bound)
    margot = Margot(C=100.0).build(random_data(1, n=40, p=3), 2)
    alone, there = margot.solve("routing"), margot.solve("routing", dask=two)
    assert there.status == "optimal"
    assert there.objective == pytest.approx(alone.objective, rel=1e-3)
    assert there.bound <= alone.objective * (1 + 1e-9)
    options = {"starts": 3, "kicks": 4}
    first, again = (margot.solve("local-search", solver_options=options, dask=two) for _ in range(2))
    assert first.status == "best_found"
    assert first.verified
    assert (first.tree.w == again.tree.w).all()  # exact: the same starts, with the same arithmetic
    assert at_most(alone.bound, first.objective)
    options = {"starts": 3, "kicks": 5}
    alone, there = (
        problem.solve("local-search", solver_options=options, dask=address) for address in (None, two)
    )
    assert (alone.tree.w == there.tree.w).all()  # exact: the same starts, with the same arithmetic


class Ending(Slices):
    """A part whose slices end their worker."""

    def __init__(self, problem):
        pass

    @classmethod
    def compile(cls, problem, budget):
        return 0.0

    def run(self, shared, *work):
        os._exit(1)


@pytest.mark.slow  # workers begin anew several times
def test_slices_that_end_their_workers_are_given_up_a_few_times(monkeypatch):
    pytest.importorskip("distributed")  # its defaults come before what is set, or they end with it
    import dask

    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    )
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        processes(2) as cluster,
        Workers(cluster.scheduler_address, Ending, None, TimeBudget()) as workers,
    ):
        for _ in range(module.MOST_LOST):
            assert workers.result(workers.submit()) is None
        with pytest.raises(ClusterError, match="a slice was given up after several workers had died with it"):
            workers.result(workers.submit())


def tree_problem(name, depth, **parameters):
    path = PAPERS_DATA / f"{name}.csv"
    if not path.exists():
        pytest.skip("the papers' data are not there")
    data = load(str(path), target="target", task="classification")
    return Oct(**parameters).build(data, depth)


@pytest.mark.slow  # searches of several seconds
@pytest.mark.parametrize("solver", ["exact-search", "routing"])
def test_a_worker_that_is_killed_amid_a_search_changes_nothing(solver):
    if solver == "exact-search":
        problem = tree_problem("indian_liver", 4)
    else:
        problem = Margot(C=1.0).build(mipforest.load("breast_cancer"), 2)
    alone = problem.solve(solver, time_limit=None)
    with processes(4) as cluster:
        problem.solve(solver, dask=cluster.scheduler_address, time_limit=1.0)  # loads the search
        victims = pids(cluster.scheduler_address)
        seen = []

        def kill(event):
            if event.nodes > 0 and not seen:
                seen.append(event)
                os.kill(victims[0], 9)

        there = problem.solve(solver, dask=cluster.scheduler_address, time_limit=None, on_progress=kill)
    assert seen
    assert there.status == "optimal"
    assert there.verified
    assert there.objective == pytest.approx(alone.objective, rel=1e-3)
    assert there.bound <= alone.objective * (1 + 1e-9)


@pytest.mark.slow  # searches of several seconds
def test_a_time_limit_and_a_stop_leave_a_true_bound_and_no_task():
    from distributed import Client

    problem = tree_problem("cleveland", 4)
    with processes(2) as cluster:
        address = cluster.scheduler_address
        problem.solve("exact-search", dask=address, time_limit=0.5)  # loads the search
        limited = problem.solve("exact-search", dask=address, time_limit=1.0)
        asked = problem.solve("exact-search", dask=address, time_limit=None, on_progress=lambda event: True)
        with Client(address, set_as_default=False) as client:
            end = monotonic() + 10
            while any(client.processing().values()) and monotonic() < end:
                time.sleep(0.1)
            assert not any(client.processing().values())
        best = problem.solve("exact-search", dask=address, time_limit=None)
    assert limited.status == "time_limit"
    assert asked.status == "interrupted"
    assert best.status == "optimal"
    for stopped in (limited, asked):
        assert stopped.verified
        assert at_most(stopped.bound, best.objective)
        assert at_most(best.objective, stopped.objective)


@pytest.mark.slow  # a cluster of its own
def test_a_scheduler_that_goes_leaves_tree_and_bound():
    problem = tree_problem("cleveland", 4)
    with processes(2) as cluster:
        problem.solve("exact-search", dask=cluster.scheduler_address, time_limit=0.5)  # loads the search
        began = []

        def close(event):
            if not began:
                began.append(threading.Thread(target=cluster.close))
                began[0].start()

        result = problem.solve(
            "exact-search", dask=cluster.scheduler_address, time_limit=60, on_progress=close
        )
        began[0].join()
    assert result.status == "limit"
    assert result.verified
    assert at_most(result.bound, result.objective)
    assert any("the Dask scheduler has gone" in warning for warning in result.solution.warnings)
