"""Samples of a distribution: libraries of training and of test instances, with what learners read of them.

Each instance is drawn from its number and the seed alone, built and solved in one process, and recorded once its
files are there. So the same command goes on where an earlier one ended, whatever ended it, and the number of processes
changes no file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from joblib.externals.loky import ProcessPoolExecutor

from mipforest.atomic import atomic_write
from mipforest.cluster import connected, explained
from mipforest.errors import MipforestError
from mipforest.instances.data_features import data_features
from mipforest.instances.distributions import Distribution
from mipforest.instances.graph import graph_of, write_graph
from mipforest.instances.library import (
    BuiltInstance,
    Entry,
    InstanceSpec,
    Library,
    SuiteError,
    build_problem,
    improved,
    parse_suite,
    read_suite,
    suite_text,
)
from mipforest.instances.race import raced_on
from mipforest.instances.results import Run, fault_of, record_results
from mipforest.problem.tree_search import Auto, solver_or_search
from mipforest.processes import SAFE_PATH, safe_path
from mipforest.runs.instance import write_instance
from mipforest.runs.text_files import LONGEST, json_text
from mipforest.settings import SolveSettings

#: The two libraries of a sample.
PARTS = ("train", "test")

#: Instances in a process's queue, so that none waits for this one.
_QUEUED = 2


@dataclass(frozen=True, kw_only=True)
class Generation:
    """A sample of a distribution, and how it is made.

    Attributes
    ----------
    distribution, level, seed
        What is drawn.
    n
        Number of instances, 1 or more.
    folder
        Where to: its folders ``train`` and ``test`` become libraries.
    test_share
        Share of test instances, at least 0 and below 1.
    solvers
        Solvers and tree searches that look for optima; ``auto`` takes what ``mipforest solve`` would; none if empty.
    settings
        The same for all solves; one thread gives the same files again. ``dask`` is the address of a cluster whose
        workers share the folder.
    workers
        Number of processes on this machine, 1 or more; of no meaning for a cluster.
    """

    distribution: Distribution
    level: str
    seed: int
    n: int
    folder: Path
    test_share: float = 0.2
    solvers: Sequence[str] = ("auto",)
    settings: SolveSettings = field(default_factory=lambda: SolveSettings(time_limit=60.0, threads=1))
    workers: int = 1


@dataclass(frozen=True)
class Generated:
    """An instance that was worked on: its line and its runs, or why it was not built."""

    name: str
    entry: Entry | None = None
    runs: tuple[Run, ...] = ()
    message: str = ""


#: Called with every instance that was worked on.
Finished = Callable[[Generated], None]


def part_of(number: int, test_share: float) -> str:
    """Return the part that an instance belongs to, by its number: test instances are evenly spread."""
    return PARTS[math.floor((number + 1) * test_share) > math.floor(number * test_share)]


def graph_path(library: Library, spec: InstanceSpec) -> Path:
    """Return the file of an instance's graph."""
    return library.folder / spec.family / f"{spec.name}.npz"


def features_path(library: Library, spec: InstanceSpec) -> Path:
    """Return the file of the features of an instance's data."""
    return library.folder / spec.family / f"{spec.name}.features.json"


def certificate_path(library: Library, spec: InstanceSpec) -> Path:
    """Return the file of the certificate of an instance's optimum."""
    return library.folder / spec.family / f"{spec.name}.certificate.gz"


def generate(given: Generation, finished: Finished | None = None) -> list[Generated]:
    """Draw a sample, and build and solve what of it is not in the catalogues yet.

    Parameters
    ----------
    given
        The sample. One that is larger than what is in the folder extends it.
    finished
        Called with every instance that was worked on.

    Returns
    -------
    list
        Instances that could not be built.

    Raises
    ------
    SuiteError
        If the folder holds something else, the sample is too large, or a draw is not possible.
    SolverError
        If a solver is unknown or not installed.
    ClusterError
        If there is no cluster at the address.
    OSError
        If a file cannot be written.
    """
    for name in given.solvers:
        solver_or_search(name)
    libraries = _drawn(given)
    missing = [
        (library, spec)
        for library in libraries
        for known in [library.entries()]
        for spec in library.suite.values()
        if spec.name not in known
    ]
    failed = []
    for done in _worked_on(given, missing):
        for library in {library.folder: library for library, _ in done}.values():
            own = [ended for at, ended in done if at.folder == library.folder]
            record_results(library.results_path, [run for ended in own for run in ended.runs])
            library.record_all([ended.entry for ended in own if ended.entry is not None])
        failed += [ended for _, ended in done if ended.entry is None]
        if finished is not None:
            for _, ended in done:
                finished(ended)
    return failed


def _drawn(given: Generation) -> list[Library]:
    """Write the suites, unless they are there, and return the libraries that have instances."""
    tables: dict[str, list[dict[str, object]]] = {part: [] for part in PARTS}
    for number in range(given.n):
        tables[part_of(number, given.test_share)].append(
            given.distribution.draw(given.level, given.seed, number)
        )
    texts = {part: suite_text(own) for part, own in tables.items() if own}
    for part, text in texts.items():
        path = given.folder / part / "suite.toml"
        if len(text.encode()) > LONGEST:
            raise SuiteError(
                f"{len(tables[part])} instances make a suite of more than {LONGEST} bytes; draw fewer, and samples of "
                "other seeds into folders of their own"
            )
        held = read_suite(path) if path.is_file() else {}
        own = parse_suite(text)
        if any(own.get(name) != spec for name, spec in held.items()):
            raise SuiteError(
                f"{path} holds another sample than this one of {given.distribution.name}, level {given.level}, seed "
                f"{given.seed}, {given.n} instances; give another folder, or the arguments of that sample"
            )
        if own.keys() != held.keys():
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path, "w") as file:
                file.write(text)
    return [Library(given.folder / part) for part in texts]


def _worked_on(
    given: Generation, missing: Sequence[tuple[Library, InstanceSpec]]
) -> Iterator[list[tuple[Library, Generated]]]:
    """Yield what was worked on, in the order of its ends: all that ended since the last time."""
    settings = replace(given.settings, dask=None)
    if given.settings.dask is None and given.workers == 1:
        for library, spec in missing:
            yield [(library, _generated(library.folder, spec, given.solvers, settings))]
        return
    cluster = given.settings.dask is not None
    with _executor(given) as pool:
        waiting = iter(missing)
        under_way: dict[Future[Generated], Library] = {}
        while True:
            for library, spec in waiting:
                with safe_path():
                    future = pool.submit(_generated, library.folder.absolute(), spec, given.solvers, settings)
                under_way[future] = library
                if not cluster and len(under_way) >= given.workers * _QUEUED:
                    break
            if not under_way:
                return
            ended = wait(under_way, return_when=FIRST_COMPLETED).done
            try:
                yield [(under_way.pop(future), future.result()) for future in ended]
            except BrokenExecutor as error:
                raise SuiteError(
                    f"one of the {given.workers} processes ended by itself, as when the memory is used up; run the "
                    "same command with fewer workers, and it goes on"
                ) from error
            except Exception as error:
                raise (explained(error, "instance") if cluster else error) from error


@contextmanager
def _executor(given: Generation) -> Iterator[Executor]:
    """Open processes of this machine, or those of a cluster."""
    if given.settings.dask is not None:
        with closing(connected(given.settings.dask)) as client:
            pool = client.get_executor(pure=False)
            try:
                yield pool
            finally:
                pool.shutdown(wait=False)
        return
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with safe_path():
        processes = ProcessPoolExecutor(given.workers, env={**one_thread, SAFE_PATH: "1"})
    whole = False
    try:
        yield processes
        whole = True
    finally:
        processes.shutdown(wait=True, kill_workers=not whole)


def _generated(
    folder: Path, spec: InstanceSpec, solvers: Sequence[str], settings: SolveSettings
) -> Generated:
    """Build and solve an instance, and write its files."""
    from mipforest import __version__

    library = Library(folder)
    try:
        built = build_problem(library, spec)
        path = library.model_path(spec)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_instance(
            built.problem, path, built.source, start="default", seed=spec.seed, version=__version__
        )
        write_graph(graph_of(built.problem.model.matrix()), graph_path(library, spec))
        with atomic_write(features_path(library, spec), "w") as file:
            file.write(json_text(data_features(built.problem.data)))
        return _solved(library, spec, built, solvers, settings)
    except MipforestError as error:
        return Generated(spec.name, message=str(error))


def _solved(
    library: Library,
    spec: InstanceSpec,
    built: BuiltInstance,
    solvers: Sequence[str],
    settings: SolveSettings,
) -> Generated:
    """Let the solvers look for the optimum; the first one that proves it by a certificate writes this file."""
    entry = built.entry
    runs: list[Run] = []
    for given in solvers:
        chosen = solver_or_search(given)
        name = chosen.choose(built.problem, settings)[0].name if isinstance(chosen, Auto) else given
        proven = any(run.certified for run in runs)
        raced = raced_on(
            replace(built, entry=entry),
            name,
            settings,
            certificate=None if proven else certificate_path(library, spec),
        )
        runs.append(raced.run)
        if raced.result is not None and not fault_of(raced.run, entry):
            # Seconds stand with the runs: they are the one thing that differs when this is done again.
            entry = replace(improved(library, spec, entry, raced.result, settings), seconds=math.nan)
    return Generated(spec.name, entry, tuple(runs))
