"""Whether a library is what its catalogue says: checksums, feasibility, objectives. No solver is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mipforest.files import MpsError, read_mps
from mipforest.files.solutions.points import PointError, point_of, read_point
from mipforest.files.streams import numbered_lines
from mipforest.instances.build import build_problem
from mipforest.instances.catalogue import Entry
from mipforest.instances.library import Library
from mipforest.instances.suite import InstanceSpec
from mipforest.model import MatrixForm
from mipforest.model.check import violations
from mipforest.settings import FEASIBILITY_TOLERANCE


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
        built = build_problem(spec)
        form = form or built.problem.model.matrix()
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


def _sha256_of_text(path: Path) -> str:
    """Return the checksum of what a compressed file unpacks to."""
    digest = hashlib.sha256()
    for _, line in numbered_lines(
        path, lambda number, reason: PointError(path, number, reason), compressed=True
    ):
        digest.update(line)
    return digest.hexdigest()
