"""From a suite to files: the same suite gives the same bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mipforest.data import DataError
from mipforest.instances.catalogue import Entry
from mipforest.instances.library import Library
from mipforest.instances.suite import InstanceSpec, SuiteError
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import Problem
from mipforest.problem.registry import UnknownFormulation, make_formulation
from mipforest.runs.data_source import DataSource
from mipforest.runs.instance import sha256_of_model, write_instance


@dataclass(frozen=True, eq=False)
class Built:
    """A built instance and its line of the catalogue."""

    problem: Problem
    source: DataSource
    entry: Entry


def build_problem(spec: InstanceSpec, known: Entry | None = None) -> Built:
    """Build the model of an instance.

    Parameters
    ----------
    spec
        The instance.
    known
        What the catalogue says of it: best known values are kept while the model stays the same.

    Raises
    ------
    SuiteError
        If the suite asks for what there is not.
    """
    try:
        formulation = make_formulation(spec.model, spec.parameters, spec.variant, ensemble=spec.ensemble)
        source = spec.source(formulation.scaling)
        problem = formulation.build(source.load().train, spec.depth)
    except (UnknownFormulation, ParameterError, DataError) as error:
        raise error.located(f"instance {spec.name}", SuiteError) from error
    entry = _entry(spec, problem)
    if known is not None and known.sha256 == entry.sha256:
        best = ("objective", "bound", "solver", "seconds", "time_limit")
        entry = replace(entry, **{name: getattr(known, name) for name in best})
    return Built(problem, source, entry)


def _entry(spec: InstanceSpec, problem: Problem) -> Entry:
    form, counts = problem.model.matrix(), problem.model.stats()
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
    built = build_problem(spec, library.entries().get(spec.name))
    path = library.model_path(spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_instance(built.problem, path, built.source, start="default", seed=spec.seed, version=version)
    if not built.entry.solver:
        library.solution_path(spec).unlink(missing_ok=True)
    library.record(built.entry)
    return built.entry
