"""What all tests share: property tests that repeat, compiled modules, threads, Ctrl-C, the papers' data if present."""

import gc
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

if sys.dont_write_bytecode:
    # Tests start dozens of Pythons. Each would compile pandas and SciPy again, which takes longer than most tests:
    # let them share what is compiled, in a place of the tests' own.
    compiled = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    sys.dont_write_bytecode, sys.pycache_prefix = False, compiled
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = compiled

# Linear algebra of these sizes gains nothing from threads: they wait for each other in loops, beside those of the other
# workers. It is read when NumPy is loaded, so this comes first.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Python looks for garbage after 700 new objects. Models of rows, and the compiler, make millions that stay: fewer looks
# save a tenth of the processor time of tests that declare rows.
gc.set_threshold(20_000, 20, 50)

from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "repeatable",
    derandomize=True,
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("repeatable")

PAPERS_DATA = Path(__file__).parents[2] / "shared" / "data"


#: Folders whose answers rest on how linear algebra rounds, which other processors do otherwise.
ARITHMETIC = {
    "bridges", "formulations", "heuristics", "objectives", "smooth", "solvers", "trees",
    "searches/hyperplanes", "searches/oblique", "searches/prescription", "searches/routing",
}  # fmt: skip

#: Folders that rest on what other packages offer.
INTERFACES = {
    "campaigns", "cli", "data", "deployment", "ensembles", "estimators", "files", "heuristics", "instances", "model",
    "report", "smooth", "solvers", "trees", "tuning",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of folders that other machines run again, and the cases of a test beyond its first ones."""
    run_by_default: Counter[str] = Counter()
    for item in items:
        few = item.get_closest_marker("first_cases")
        if few and not item.get_closest_marker("slow"):
            test = item.nodeid.partition("[")[0]
            run_by_default[test] += 1
            if run_by_default[test] > few.args[0]:
                item.add_marker("slow")
        for marker in markers_of(item.path.parent):
            item.add_marker(marker)


@cache
def markers_of(folder: Path) -> list[str]:
    """Return the marks of the tests in a folder."""
    own = folder.relative_to(Path(__file__).parent)
    folders = {above.as_posix() for above in (own, *own.parents)}
    return [
        marker
        for marker, marked in (("arithmetic", ARITHMETIC), ("interfaces", INTERFACES))
        if not marked.isdisjoint(folders)
    ]


#: Compile what many tests search by, in two processes that take about as long as each other.
COMPILE_ROUTING = """
from mipforest.cli.compile import compiled, kinds_of
from mipforest.searches.routing.convex_backend import ConvexBackend
from mipforest.searches.routing.feature_branching import FeatureBackend
from mipforest.searches.routing.l1_simplex import L1Backend
from mipforest.searches.routing.svm_backend import SvmBackend
from mipforest.time_budget import TimeBudget

for backend in (SvmBackend, L1Backend, ConvexBackend, FeatureBackend):
    backend.compile(TimeBudget())
for model in ("opt", "opt-l", "ogrs"):
    for kind in kinds_of(model):
        compiled(kind)
"""
COMPILE_OTHERS = """
from mipforest.cli.compile import compiled, kinds_of
from mipforest.searches.local import search as local
from mipforest.searches.oblique import labelled
from mipforest.searches.oblique import search as oblique
from mipforest.time_budget import TimeBudget

for is_oblique in (False, True):
    local.compile_kernels(TimeBudget(), oblique=is_oblique)
for model in ("oct", "ort"):
    for kind in kinds_of(model):
        compiled(kind)
oblique.run_on_little()
labelled.run_on_little()
"""


def pytest_configure(config: pytest.Config) -> None:
    """Compile the searches before pytest-xdist starts its workers: each would compile them at the same time."""
    controls = getattr(config.option, "numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ
    if controls and not config.option.collectonly:
        halves = [
            subprocess.Popen(
                [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
            )
            for code in (COMPILE_ROUTING, COMPILE_OTHERS)
        ]
        for half in halves:
            half.wait()


def pytest_collection_finish() -> None:
    """Leave modules and tests out of later looks for garbage."""
    gc.collect()
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name bytes by their number: compressed ones hold the second, and all workers must collect the same names."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all tests of a file to one worker: what they share (a browser, a cluster, fits) is then there once."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def heard_ctrl_c() -> Iterator[None]:
    """Hear Ctrl-C in the tests and in the processes they start, also where the parent ignores it.

    Shells start background jobs that way, and what is ignored is inherited.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def command_built_once() -> Iterator[None]:
    """Keep the parser of a command line: typer builds it for every call, which takes longer than most calls."""
    from typer import testing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", cache(testing._get_command))
        yield


@pytest.fixture(scope="module")
def few_penalties() -> Iterator[None]:
    """Search start trees at a fifth of the penalties, where a test wants any good start.

    Most of the time of a build of a few samples is this search, which has tests of its own.
    """
    from mipforest.heuristics import linear_starts

    with pytest.MonkeyPatch.context() as patch:
        for name in ("PENALTIES", "COARSE_PENALTIES"):
            patch.setattr(linear_starts, name, getattr(linear_starts, name)[::5])
        yield


@pytest.fixture
def papers_data() -> Path:
    """Folder of the papers' data sets; the test is skipped where it is absent."""
    if not PAPERS_DATA.is_dir():
        pytest.skip("the papers' data sets are not here")
    return PAPERS_DATA
