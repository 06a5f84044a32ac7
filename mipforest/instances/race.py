"""A race: solvers and tree searches on instances of the library, with the tables that people who compare solvers read.

Each run gets the instance without a start. Its result is recorded as soon as it is there, so that the same command goes
on where an earlier one ended. The report names wrong answers first, then has shifted geometric means of seconds,
performance profiles and primal gaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from mipforest.atomic import atomic_write
from mipforest.campaigns.experiment_result import environment
from mipforest.campaigns.report import (
    LEAST_TIME,
    distribution_figure,
    markdown_table,
    performance_profiles,
    shifted_geometric_mean,
)
from mipforest.certificates import CertificateError, certify
from mipforest.cluster import DiedWithTask, connected, explained
from mipforest.errors import MipforestError
from mipforest.formatting import value_text
from mipforest.instances.library import (
    BuiltInstance,
    Entry,
    InstanceSpec,
    Library,
    build_problem,
    record_result,
)
from mipforest.instances.results import (
    SAME_OPTIMUM,
    Run,
    fault_of,
    primal_gap,
    read_results,
    record_results,
    solved_by,
)
from mipforest.problem.problem import Problem
from mipforest.problem.registry import make_formulation
from mipforest.problem.result import Result
from mipforest.problem.tree_search import Auto, TreeSearch, solver_or_search
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import Solution, Status
from mipforest.solving import solve
from mipforest.trees.plot import save_figure

#: Shift of geometric means, in seconds, as in H. Mittelmann's benchmarks.
SHIFT = 10.0


@dataclass(frozen=True, kw_only=True)
class Race:
    """Which solvers run on which instances.

    Attributes
    ----------
    library
        The library.
    instances
        Which of its instances; they stand in the catalogue.
    solvers
        Names of solvers and tree searches; ``auto`` takes what ``mipforest solve`` would.
    settings
        The same for all runs; no start. ``dask`` is the address of a cluster that runs them.
    results
        File of the results.
    record
        Whether better solutions and bounds, and the results, go into the library as well.
    """

    library: Library
    instances: Sequence[InstanceSpec]
    solvers: Sequence[str]
    settings: SolveSettings
    results: Path
    record: bool = False


@dataclass(frozen=True, eq=False)
class Raced:
    """A run that has ended: its line, and its result where there is one."""

    run: Run
    result: Result | None = field(default=None, repr=False)


#: Called with every run that has ended.
Finished = Callable[[Run], None]


def run_race(race: Race, finished: Finished | None = None) -> list[Run]:
    """Run what has no result yet, and return the results of the race.

    Parameters
    ----------
    race
        The race.
    finished
        Called with every run that has ended.

    Raises
    ------
    SolverError
        If a solver is unknown or not installed.
    SuiteError
        If an instance cannot be built.
    ClusterError
        If there is no cluster at the address.
    """
    versions = {name: _version(solver_or_search(name)) for name in race.solvers}
    entries = race.library.entries()
    held = {run.key: run for run in read_results(race.results)}
    wanted = [(spec, name) for spec in race.instances for name in race.solvers]

    def done(spec: InstanceSpec, name: str) -> Run | None:
        run = held.get(_key(spec, name, versions[name], race.settings))
        known = entries.get(spec.name)
        return run if run is not None and (known is None or known.sha256 == run.sha256) else None

    def record(spec: InstanceSpec, raced: Raced) -> None:
        held[raced.run.key] = raced.run
        race.results.parent.mkdir(parents=True, exist_ok=True)
        record_results(race.results, [raced.run])
        if race.record:
            _record(race, spec, raced)
        if finished is not None:
            finished(raced.run)

    missing = [(spec, name) for spec, name in wanted if done(spec, name) is None]
    if race.settings.dask is None:
        built: BuiltInstance | None = None
        for spec, name in missing:
            if built is None or built.entry.name != spec.name:
                built = build_problem(race.library, spec, entries.get(spec.name))
            record(spec, raced_on(built, name, race.settings))
    else:
        _run_on_cluster(race, missing, entries, record)
    return [run for spec, name in wanted if (run := done(spec, name)) is not None]


def raced_on(
    built: BuiltInstance, name: str, settings: SolveSettings, *, certificate: Path | None = None
) -> Raced:
    """Run one solver on a built instance; what goes wrong stands in the run.

    A certificate that proves the result is kept in the file ``certificate``, if one is named.
    """
    solver, limit = solver_or_search(name), _limit(settings)
    run = _failed(built.entry, name, settings)
    try:
        solution, result, certified = _solved(built, solver, settings, certificate)
    except MipforestError as error:
        return Raced(replace(run, message=str(error)))
    violation = math.nan if solution.x is None else built.problem.model.violations(solution.x).max
    ended = replace(
        run,
        seconds=round(solution.seconds, 2),
        nodes=solution.nodes,
        status=str(solution.status),
        objective=solution.objective,
        bound=solution.bound,
        violation=violation,
        primal_gap=round(primal_gap(solution.events, limit, built.entry.objective), 4),
        certified=certified,
        message=solution.message if solution.status == "error" else "",
    )
    return Raced(ended, result)


def _failed(entry: Entry, name: str, settings: SolveSettings, message: str = "") -> Run:
    """Return a run without an answer."""
    solver, machine = solver_or_search(name), environment()
    return Run(
        instance=entry.name,
        sha256=entry.sha256,
        solver=name,
        version=_version(solver),
        kind="solver" if isinstance(solver, Solver) else "search",
        machine=f"{machine['cpu']}, {machine['cores']} cores",
        threads=settings.threads,
        seed=settings.seed,
        time_limit=_limit(settings),
        message=message,
    )


def _limit(settings: SolveSettings) -> float:
    return math.inf if settings.time_limit is None else float(settings.time_limit)


def _solved(
    built: BuiltInstance, solver: Solver | TreeSearch | Auto, settings: SolveSettings, kept: Path | None
) -> tuple[Solution, Result, bool]:
    """Return the answer of a run as the solver gave it, the checked one, and whether a certificate was checked."""
    problem, settings = built.problem, replace(settings, start=None, dask=None)
    if isinstance(solver, Solver):
        # Of its own process, as one that aborts or does not look at its clock would end the race.
        settings = replace(settings, isolate=True)
        solution = solve(problem.model, solver, settings=settings)
        return solution, problem.checked(solution), False
    definition = _by_definition(problem) if isinstance(solver, TreeSearch) else problem
    if isinstance(solver, TreeSearch) and solver.certifies:
        with TemporaryDirectory() as folder:
            certificate = Path(folder) / "proof.gz"
            try:
                result = definition.solve(solver, settings=replace(settings, certificate=certificate))
            except MipforestError:  # of this problem it writes none
                result = definition.solve(solver, settings=settings)
            certified = certificate.is_file() and _proves(certificate, result)
            if certified and kept is not None:
                with atomic_write(kept) as file:
                    file.write(certificate.read_bytes())
    else:
        result, certified = definition.solve(solver, settings=settings), False
    if definition is not problem:
        result = _in_rows_of(problem, result)
    return result.solution, result, certified


def _by_definition(problem: Problem) -> Problem:
    """Return the problem that a search is to solve: with constants that cut off no tree, in place of the paper's.

    No tree of an instance with the paper's constants has a value below the optimum by the definition, so that its
    bound is one of the instance too.
    """
    formulation = problem.formulation
    if formulation.variant != "paper" or "valid" not in formulation.variants:
        return problem
    definition = make_formulation(formulation.name, formulation.parameters(), "valid").build(
        problem.data, problem.topology.depth
    )
    definition.constrain(*problem.constraints)
    return definition


def _in_rows_of(problem: Problem, result: Result) -> Result:
    """Return a result of the definition as one of an instance: without a point where its rows have none of the tree."""
    solution = replace(result.solution, x=None, values={}, objective=math.nan, bound_by=("definition",))
    if result.solution.x is not None:
        tree = result.problem.formulation.decode(result.solution.values, result.problem.instance)
        form = problem.model.matrix()
        x = form.to_point(problem.encoded(tree))
        if problem.model.violations(x).max <= FEASIBILITY_TOLERANCE:
            solution = replace(solution, x=x, values=form.to_values(x), objective=form.objective(x))
    if solution.x is None and solution.status is Status.OPTIMAL:
        solution = replace(solution, status=Status.LIMIT)
    return problem.checked(solution)


def _proves(certificate: Path, result: Result) -> bool:
    try:
        found = certify(certificate)
    except CertificateError:
        return False
    slack = SAME_OPTIMUM * max(1.0, abs(result.objective))
    return abs(found.objective - result.objective) <= slack and found.bound >= result.bound - slack


def _version(solver: Solver | TreeSearch | Auto) -> str:
    return "" if isinstance(solver, Auto) else solver.version()


def _key(spec: InstanceSpec, name: str, version: str, settings: SolveSettings) -> tuple[object, ...]:
    return spec.name, name, version, settings.threads, settings.seed, _limit(settings)


def _record(race: Race, spec: InstanceSpec, raced: Raced) -> None:
    """Record a run in the library, with its solution and bound where these are better."""
    library = race.library
    if race.results.resolve() != library.results_path.resolve():
        record_results(library.results_path, [raced.run])
    known = library.entries().get(spec.name)
    if known is None:
        return
    if raced.result is not None and not fault_of(raced.run, known):
        record_result(library, spec, known, raced.result, race.settings)
    else:
        library.record(known)


def _run_on_cluster(
    race: Race,
    missing: Sequence[tuple[InstanceSpec, str]],
    entries: Mapping[str, Entry],
    record: Callable[[InstanceSpec, Raced], None],
) -> None:
    assert race.settings.dask is not None
    with ExitStack() as opened:
        client = opened.enter_context(closing(connected(race.settings.dask)))
        pool = client.get_executor(pure=False)
        opened.callback(pool.shutdown, wait=False)
        folder = race.library.folder.absolute()
        under_way: dict[Future[Run], tuple[InstanceSpec, str]] = {
            pool.submit(_run_there, folder, spec, entries[spec.name], name, race.settings): (spec, name)
            for spec, name in missing
        }
        for ended in as_completed(under_way):
            spec, name = under_way[ended]
            try:
                record(spec, Raced(ended.result()))
            except Exception as error:
                explanation = explained(error, "run")
                if not isinstance(explanation, DiedWithTask):
                    raise explanation from error
                record(spec, Raced(_failed(entries[spec.name], name, race.settings, str(explanation))))


def _run_there(
    folder: Path, spec: InstanceSpec, known: Entry | None, name: str, settings: SolveSettings
) -> Run:
    return raced_on(build_problem(Library(folder), spec, known), name, settings).run


# ---------------------------------------------------------------------- what a race tells


def write_race(folder: Path, runs: Sequence[Run], entries: Mapping[str, Entry]) -> list[Path]:
    """Write the report of a race: ``race.md`` and the performance profiles as ``profiles.svg``.

    Parameters
    ----------
    folder
        Where to; made if it is not there.
    runs
        Results.
    entries
        The catalogue.

    Returns
    -------
    list
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page, picture = folder / "race.md", folder / "profiles.svg"
    figure = distribution_figure(
        performance_profiles(_seconds(runs, entries), LEAST_TIME),
        "Performance profiles",
        "seconds over those of the fastest",
        ratio=True,
    )
    save_figure(figure, picture)
    with atomic_write(page, "w") as file:
        file.write("\n\n".join(_sections(runs, entries, picture.name)) + "\n")
    return [page, picture]


def _sections(runs: Sequence[Run], entries: Mapping[str, Entry], picture: str) -> Iterator[str]:
    instances = list(dict.fromkeys(run.instance for run in runs))
    limits = sorted({run.time_limit for run in runs})
    yield "# Race"
    yield (
        f"{len(instances)} instances, {len(runs)} runs, time limit {' and '.join(f'{limit:g}' for limit in limits)} s, "
        f"threads {' and '.join(sorted({str(run.threads or 'as the solver likes') for run in runs}))}."
    )
    wrong = [(run, fault) for run in runs if (fault := fault_of(run, entries[run.instance]))]
    yield "## Wrong answers"
    if wrong:
        rows = [(run.instance, f"{run.solver} {run.version}", fault) for run, fault in wrong]
        yield markdown_table(("instance", "solver", "what is wrong"), rows)
    else:
        yield "None: no answer contradicts a known tree or a proven bound."
    yield "## Solvers"
    yield markdown_table(*solver_table(runs, entries))
    yield (
        f"Solved: within the gap, and right. Seconds: geometric mean, shifted by {SHIFT:g} s; what was not solved "
        "counts as the time limit. Primal gap: mean over the time limit of the distance from the best known value."
    )
    yield f"![Performance profiles]({picture})"
    yield "## Instances"
    yield markdown_table(*_instance_table(instances, runs, entries))


def solver_table(
    runs: Sequence[Run], entries: Mapping[str, Entry]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return head and rows of the table of solvers."""
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(run.solver for run in runs):
        own = [run for run in runs if run.solver == name]
        known = [(run, entries[run.instance]) for run in own]
        gaps = [run.primal_gap for run in own if not math.isnan(run.primal_gap)]
        rows.append(
            (
                f"{name} {own[0].version}".strip(),
                str(len(own)),
                str(sum(solved_by(run, entry) for run, entry in known)),
                str(sum(bool(fault_of(run, entry)) for run, entry in known)),
                str(sum(run.status in ("failed", "error") for run in own)),
                f"{shifted_geometric_mean([_counted(run, entry) for run, entry in known], SHIFT):.1f}",
                f"{sum(gaps) / len(gaps):.3f}" if gaps else "",
            )
        )
    return ("solver", "runs", "solved", "wrong", "failed", "seconds", "primal gap"), rows


def _counted(run: Run, entry: Entry) -> float:
    """Return the seconds that count: the time limit where the run did not solve its instance."""
    return run.seconds if solved_by(run, entry) else run.time_limit


def _seconds(runs: Sequence[Run], entries: Mapping[str, Entry]) -> pd.DataFrame:
    """Return seconds by instance and solver, infinite where it was not solved."""
    table: dict[str, dict[str, float]] = {}
    for run in runs:
        seconds = run.seconds if solved_by(run, entries[run.instance]) else math.inf
        table.setdefault(run.solver, {})[run.instance] = seconds
    return pd.DataFrame(table)


def _instance_table(
    instances: Sequence[str], runs: Sequence[Run], entries: Mapping[str, Entry]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    solvers = list(dict.fromkeys(run.solver for run in runs))
    by_key = {(run.instance, run.solver): run for run in runs}

    def cell(name: str, solver: str) -> str:
        run, entry = by_key.get((name, solver)), entries[name]
        if run is None:
            return ""
        if fault_of(run, entry):
            return "wrong"
        if run.status in ("failed", "error"):
            return run.status
        if solved_by(run, entry):
            return f"{run.seconds:.1f} s"
        return f"{_short(run.objective)} / {_short(run.bound)}"

    rows = [
        (name, _short(entries[name].objective), *(cell(name, solver) for solver in solvers))
        for name in instances
    ]
    return ("instance", "best known", *solvers), rows


def _short(value: float) -> str:
    return value_text(value) if math.isfinite(value) else "-"
