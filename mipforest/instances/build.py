"""Work on the instances of a library: build them, verify them, improve what is known of them.

The same suite gives the same bytes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mipforest.data import DataError
from mipforest.files import MpsError, read_mps
from mipforest.files.solutions import PointError, point_of, read_point, write_point
from mipforest.files.streams import numbered_lines
from mipforest.instances.library import Entry, InstanceSpec, Library, SuiteError
from mipforest.model import MatrixForm
from mipforest.model.check import violations
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import Problem
from mipforest.problem.proofs import needed_tolerance
from mipforest.problem.registry import UnknownFormulation, make_formulation
from mipforest.problem.result import Result
from mipforest.runs.data_source import DataSource
from mipforest.runs.instance import sha256_of_model, write_instance
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import ROUNDED_ZERO, Solution
from mipforest.trees import Predictor


@dataclass(frozen=True, eq=False)
class BuiltInstance:
    """A built instance and its line of the catalogue."""

    problem: Problem
    source: DataSource
    entry: Entry


def build_problem(library: Library, spec: InstanceSpec, known: Entry | None = None) -> BuiltInstance:
    """Build the model of an instance.

    Parameters
    ----------
    library, spec
        The library, and which of its instances.
    known
        What the catalogue says of it: best known values are kept while the model stays the same.

    Raises
    ------
    SuiteError
        If the suite asks for what there is not.
    """
    try:
        formulation = make_formulation(spec.model, spec.parameters, spec.variant, ensemble=spec.ensemble)
        source = spec.source(formulation.scaling, library.folder)
        problem = formulation.build(source.load().train, spec.depth)
        problem.model.name = spec.name
    except (UnknownFormulation, ParameterError, DataError) as error:
        raise error.located(f"instance {spec.name}", SuiteError) from error
    entry = _entry(spec, problem)
    if known is not None and known.sha256 == entry.sha256:
        best = ("objective", "bound", "proven_for", "solver", "seconds", "time_limit")
        entry = replace(entry, **{name: getattr(known, name) for name in best})
    return BuiltInstance(problem, source, entry)


def _entry(spec: InstanceSpec, problem: Problem) -> Entry:
    form, counts = problem.model.matrix(), problem.model.stats()
    tolerance = needed_tolerance(problem)
    if tolerance is None or tolerance >= FEASIBILITY_TOLERANCE:
        tolerance = math.nan  # the solvers' default does
    by_class = ";".join(f"{name}:{block.A.nnz}" for name, block in problem.model.constraints.items())
    return Entry(
        name=spec.name,
        family=spec.family,
        model=spec.model,
        variant=problem.formulation.variant,
        depth=spec.depth,
        data=spec.data,
        samples=problem.data.n,
        features=problem.data.p,
        columns=counts.columns,
        binary=counts.binary,
        integer=counts.integer,
        continuous=counts.continuous,
        rows=counts.rows,
        indicators=counts.indicators,
        nonzeros=counts.nonzeros,
        nonzeros_by_class=by_class,
        quadratic_terms=counts.quadratic_terms,
        sha256=sha256_of_model(form),
        tolerance=tolerance,
    )


def build_instance(library: Library, spec: InstanceSpec, *, version: str) -> Entry:
    """Build an instance, write its files and record it in the catalogue.

    Parameters
    ----------
    library, spec
        The library, and which of its instances.
    version
        Version of mipforest, for the metadata.

    Raises
    ------
    SuiteError
        If the suite asks for what there is not.
    OSError
        If a file cannot be written.
    """
    built = build_problem(library, spec, library.entries().get(spec.name))
    path = library.model_path(spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_instance(built.problem, path, built.source, start="default", seed=spec.seed, version=version)
    if not built.entry.solver:
        library.solution_path(spec).unlink(missing_ok=True)
    library.record(built.entry)
    return built.entry


@dataclass(frozen=True)
class Finding:
    """Something wrong with an instance."""

    instance: str
    message: str


def verify(library: Library, spec: InstanceSpec, *, rebuild: bool = False) -> list[Finding]:
    """Check an instance against the catalogue.

    Parameters
    ----------
    library, spec
        The library, and which of its instances.
    rebuild
        Build the model anew even if its file is there, and compare.

    Returns
    -------
    list
        What is wrong; empty if all is well. A model that cannot be read is one finding.

    Raises
    ------
    SuiteError, CatalogueError
        If the suite asks for what there is not, or the catalogue is damaged.
    """
    entry = library.entries().get(spec.name)
    if entry is None:
        return [Finding(spec.name, "it is not in the catalogue; build it first")]
    return [Finding(spec.name, message) for message in _findings(library, spec, entry, rebuild)]


def _findings(library: Library, spec: InstanceSpec, entry: Entry, rebuild: bool) -> Iterator[str]:
    path = library.model_path(spec)
    form = None
    if path.is_file():
        try:
            form, found = read_mps(path), _sha256_of_text(path)
        except (MpsError, PointError) as error:
            yield str(error)
            return
        if found != entry.sha256:
            yield f"{path.name} has the checksum {found[:16]}..., the catalogue says {entry.sha256[:16]}..."
    if rebuild or form is None:
        built = build_problem(library, spec)
        form = form or built.problem.model.matrix()
        if entry.solver and library.solution_path(spec).is_file():
            yield from _wrong_tree(built.problem, library.solution_path(spec), entry.objective)
        if built.entry.sha256 != entry.sha256:
            yield (
                f"built anew it has the checksum {built.entry.sha256[:16]}..., the catalogue says "
                f"{entry.sha256[:16]}...; other versions of the packages it is made with give other models"
            )
    yield from _wrong_point(form, library.start_path(spec), None)
    if entry.solver:
        yield from _wrong_point(form, library.solution_path(spec), entry.objective)
    worse = entry.objective > entry.bound if form.maximize else entry.objective < entry.bound
    if worse and abs(entry.objective - entry.bound) > FEASIBILITY_TOLERANCE * max(1.0, abs(entry.objective)):
        yield f"the best objective {entry.objective:.9g} lies beyond the bound {entry.bound:.9g}"


def _wrong_point(form: MatrixForm, path: Path, objective: float | None) -> Iterator[str]:
    """Describe what is wrong with a solution that must be there, or with a start (no objective) that may be."""
    if not path.is_file():
        if objective is not None:
            yield f"{path.name} is not there"
        return
    try:
        x = point_of(form, read_point(path), path).x
    except PointError as error:
        yield str(error)
        return
    worst = violations(form, x)
    if worst.max > FEASIBILITY_TOLERANCE:
        name, amount = worst.worst(1)[0]
        yield f"{path.name} violates {name} by {amount:.3g}"
    found = form.objective(x)
    if objective is not None and abs(found - objective) > FEASIBILITY_TOLERANCE * max(1.0, abs(objective)):
        yield f"{path.name} has the objective {found:.9g}, the catalogue says {objective:.9g}"


def _wrong_tree(problem: Problem, path: Path, objective: float) -> Iterator[str]:
    """Say so where the tree of a solution has another value by the definition than the catalogue says."""
    form = problem.model.matrix()
    try:
        values = form.to_values(point_of(form, read_point(path), path).x)
    except PointError:
        return  # said of the point itself
    tree = problem.formulation.decode(values, problem.instance)
    value = problem.formulation.evaluate(tree, problem.instance)
    if abs(value - objective) > FEASIBILITY_TOLERANCE * max(1.0, abs(objective)):
        yield (
            f"the tree of {path.name} has the value {value:.9g} by the definition, the catalogue says {objective:.9g}: "
            "the point is one by a solver's tolerances"
        )


def _sha256_of_text(path: Path) -> str:
    """Return the checksum of what a compressed file unpacks to."""
    digest = hashlib.sha256()
    for _, line in numbered_lines(
        path, lambda number, reason: PointError(path, number, reason), compressed=True
    ):
        digest.update(line)
    return digest.hexdigest()


def improve(
    library: Library,
    spec: InstanceSpec,
    solver: str | Solver,
    settings: SolveSettings,
) -> Entry:
    """Solve an instance from its best known solution; record a better solution or bound.

    Only verified trees count, and only bounds of the unchanged model.

    Parameters
    ----------
    library, spec
        The library, and which of its instances.
    solver, settings
        As for :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>`; the start is the best known solution.

    Returns
    -------
    Entry
        The entry, as it now stands in the catalogue.
    """
    built = build_problem(library, spec, library.entries().get(spec.name))
    problem, entry = built.problem, built.entry
    start = _best_known(library, spec, problem) if entry.solver else None
    result = problem.solve(solver, settings=replace(settings, start=start or "default"))
    return library.record(entry, lambda known: _improved(library, spec, known, result, settings))


def _improved(
    library: Library, spec: InstanceSpec, entry: Entry, result: Result, settings: SolveSettings
) -> Entry:
    """Return an entry with what a result has better, and write the result's point if its value is."""
    solution, form = result.solution, result.problem.model.matrix()
    maximize = form.maximize
    if result.verified and solution.x is not None and _better(result.objective, entry.objective, maximize):
        value = 0.0 if abs(result.objective) <= ROUNDED_ZERO else result.objective
        sparse = np.where(solution.x == 0, np.nan, solution.x)  # a column that is not named is 0
        write_point(
            form,
            sparse,
            library.solution_path(spec),
            comments=(f"best known solution of {spec.name}", f"objective value = {value!r}"),
        )
        entry = _by(replace(entry, objective=value), solution, settings)
    if _better(entry.bound, result.bound, maximize):
        entry = _by(replace(entry, bound=result.bound), solution, settings)
    if result.bound_for is not None and entry.bound == result.bound:
        entry = replace(entry, proven_for=result.bound_for)
    return entry


def _by(entry: Entry, solution: Solution, settings: SolveSettings) -> Entry:
    limit = math.inf if settings.time_limit is None else float(settings.time_limit)
    by = f"{solution.solver} {solution.solver_version}"
    return replace(entry, solver=by, seconds=round(solution.seconds, 1), time_limit=limit)


def _better(one: float, other: float, maximize: bool) -> bool:
    """Return whether the first objective value is better, or the second unknown."""
    if math.isnan(one):
        return False
    return math.isnan(other) or (one > other if maximize else one < other)


def _best_known(library: Library, spec: InstanceSpec, problem: Problem) -> Predictor | None:
    path = library.solution_path(spec)
    if not path.is_file():
        return None
    form = problem.model.matrix()
    x = point_of(form, read_point(path), path).x
    return problem.formulation.decode(form.to_values(x), problem.instance)
