"""Searches are compiled once on a machine, outside the time limit."""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest
from numba import config, njit

import mipforest
from mipforest.searches import COMPILING, compile_by, entry, kernel
from mipforest.searches.exact.open_intervals import advance
from mipforest.time_budget import Stopped, TimeBudget


def test_a_compilation_is_told_and_does_not_count():
    told = []
    budget = TimeBudget(1000.0, report=lambda line, plain=False: told.append((line, plain)))

    @njit
    def twice(number):
        return 2 * number

    with budget.phase("prepare"):
        seconds = compile_by(lambda: (twice(1), sleep(0.05)), budget, "a search", 3)
        left = budget.remaining
        again = compile_by(lambda: twice(1), budget, "a search", 3)
    assert told == [(COMPILING.format("a search", 3), True)]
    assert budget.seconds["compile"] == seconds > 0.05 > again == 0.0
    assert left > 1000.0 - seconds


@pytest.fixture
def collected_often():
    """Thresholds of the garbage collector as Python sets them."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_garbage_is_collected_as_before_once_all_have_compiled(collected_often):
    before = gc.get_threshold()
    during = []

    def compile_another():
        compile_by(lambda: during.append(gc.get_threshold()), TimeBudget(), "a search", 3)
        during.append(gc.get_threshold())

    compile_by(compile_another, TimeBudget(), "a search", 3)
    assert during[0] == during[1] > before
    assert gc.get_threshold() == before


def test_kernels_have_no_machine_code_of_their_own():
    @kernel
    def twice(number):
        return 2 * number

    @entry
    def twice_twice(number):
        return twice(twice(number))

    assert twice_twice(3) == 12
    (linked,), (run,) = twice.overloads.values(), twice_twice.overloads.values()
    assert linked.library.serialize_using_object_code()[1] == "bitcode"
    assert run.library.serialize_using_object_code()[1] == "object"


@pytest.mark.skipif("NUMBA_CACHE_DIR" in os.environ, reason="the user has chosen a place")
def test_machine_code_is_kept_outside_the_package():
    """A package manager would leave behind what it did not write, and that would be imported in the package's place."""
    kept = Path(advance.stats.cache_path)
    assert kept.is_absolute()
    assert not kept.is_relative_to(Path(mipforest.__file__).parent)
    assert not config.CACHE_DIR


def test_a_stop_ends_a_compilation_between_two_functions():
    budget = TimeBudget()
    budget.stop()
    with pytest.raises(Stopped):
        compile_by(lambda: njit(lambda x: x + 1)(1), budget, "a search", 3)


def test_what_is_used_of_numba_beyond_its_documentation_is_there():
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.compiler import CompileResult
    from numba.core.options import DefaultOptions

    assert hasattr(DefaultOptions, "_nrt"), "numba has no option _nrt: see mipforest/searches/__init__.py"

    @njit(no_cpython_wrapper=True)
    def plain(x):
        return x + 1.0

    for name in ("_cache", "compile", "overloads"):
        assert hasattr(plain, name), f"numba's functions have no {name}: see mipforest/searches/__init__.py"
    plain.compile("float64(float64)")
    (made,) = plain.overloads.values()
    assert made.library.has_dynamic_globals is False
    assert made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name) > 0
    assert isinstance(made.library, JITCodeLibrary)
    assert isinstance(made.library.codegen, JITCPUCodegen)
    for name in ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals",
                 "_verify_declare_only_symbols", "_finalized", "serialize_using_bitcode"):  # fmt: skip
        assert hasattr(made.library, name), f"numba's libraries have no {name}: see kernel_compiler.py"
    assert hasattr(made.target_context, "_internal_codegen")
    assert callable(made._reduce)
    assert callable(CompileResult._rebuild)


#: Counts compilations.
COUNTED = """
from numba.core import event

class Compilations(event.Listener):
    count = 0
    def on_start(self, event):
        Compilations.count += 1
    def on_end(self, event):
        pass

event.register("numba:compile", Compilations())
"""


def printed_by(script, tmp_path):
    """Run a script that counts compilations, in a process with a fresh cache; return what it prints last."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": str(Path(mipforest.__file__).parents[1]),
    }
    ran = subprocess.run(
        [sys.executable, "-c", COUNTED + script], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


#: Solves a problem of each kind of univariate trees, as ``mipforest compile`` does, and then variations of them.
VARIATIONS = """
import json
from itertools import product

import numpy as np

from mipforest.cli.compile import compiled, kinds_of
from mipforest.data import Dataset
from mipforest.problem.registry import get_formulation

for model in ("oct", "ort"):
    for kind in kinds_of(model):
        assert not compiled(kind).failure
first, Compilations.count = Compilations.count, 0
rng = np.random.default_rng(0)
solved = 0
for depth, K, weights, parameters in product(
    (1, 2, 3, 4), (2, 3, 5), ("", "samples", "classes", "balanced"), ({}, {"N_min": 3}, {"alpha": 0.01})
):
    X = rng.integers(0, 6, size=(30, 3)).astype(float)
    data = Dataset.from_arrays(X, np.arange(30) % K)
    if weights:
        own = rng.uniform(0.5, 2.0, size=30)
        label = data.y.astype(int)
        # Multiples of a unit, as those of many samples are.
        of_class = (7001.0 + np.arange(K)) / 9001 if weights == "balanced" else own
        data = data.with_weights(own if weights == "samples" else of_class[label])
    assert get_formulation("oct")(**parameters).build(data, depth).solve("exact-search").status == "optimal"
    targets = Dataset.from_arrays(X, rng.normal(size=30))
    assert get_formulation("ort")(**parameters).build(targets, min(depth, 3)).solve("exact-search").status == "optimal"
    solved += 2
print(json.dumps([first, solved, Compilations.count]))
"""


@pytest.mark.slow  # compiles for some 25 s
def test_variations_of_what_was_compiled_compile_nothing(tmp_path):
    first, solved, again = printed_by(VARIATIONS, tmp_path)
    assert first > 0
    assert solved >= 20
    assert again == 0


#: Compiles for a problem, and then counts what is compiled while it is searched.
MANY_CLASSES = """
import json

import numpy as np

from mipforest.data import Dataset
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact.search import compile_kernels, exact_search, rows_of
from mipforest.time_budget import TimeBudget

rng, first, again = np.random.default_rng(0), 0, []
for n, N_min, weight in ((25_000, 1, None), (25_000, 1, 0.7), (200, 3, None)):
    data = Dataset.from_arrays(rng.random((n, 2)), rng.integers(0, 5, n))
    weights = None if weight is None else np.full(n, weight)
    problem = UnivariateProblem(
        thresholds=find_thresholds(data), y=data.y, loss=ClassLoss(), N_min=N_min, weight=weights
    )
    assert bool(rows_of(problem)[0].n_bins) == (n > 1000)
    for depth in (3, 4):
        compile_kernels(TimeBudget(), problem, depth)
        first, Compilations.count = first + Compilations.count, 0
        assert exact_search(problem, depth, most_nodes=40).nodes > 0
        again.append(Compilations.count)
        Compilations.count = 0
print(json.dumps([first, again]))
"""


@pytest.mark.slow  # compiles for some 40 s
def test_what_a_search_of_many_classes_runs_is_compiled_before(tmp_path):
    first, again = printed_by(MANY_CLASSES, tmp_path)
    assert first > 0
    assert set(again) == {0}
