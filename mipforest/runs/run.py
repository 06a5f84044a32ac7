"""A finished run, read back: its result, its tree, its samples, and its status in words.

Solutions made elsewhere are checked, decoded, and reported as if a solver had given them here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mipforest.data import DataError
from mipforest.errors import did_you_mean
from mipforest.files.solutions import Point, point_in
from mipforest.files.solutions.reader import SolutionFile, read_solution
from mipforest.model.matrix import MatrixForm
from mipforest.problem.problem import Problem
from mipforest.problem.result import Result
from mipforest.runs.data_source import DataSource, LoadedData
from mipforest.runs.folder import CARD, RESULT, TREE, RunError, check_digests
from mipforest.runs.instance import Metadata, read_metadata, sha256_of_model
from mipforest.runs.saved import Saved, SavedTree, load_saved_card, load_saved_tree
from mipforest.runs.text_files import JsonFileError, read_json_object
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.convexity import QUADRATIC_SOLVER
from mipforest.solvers.outer_approximation import Tangents, with_best_rest
from mipforest.solvers.solution import Solution, Status


@dataclass(frozen=True, eq=False)
class Run:
    """What a run folder holds.

    Attributes
    ----------
    path
        The folder.
    result
        The content of ``result.json``.
    saved
        The tree or score card, or ``None`` if no solution was found.
    """

    path: Path
    result: dict[str, Any]
    saved: Saved | None

    @property
    def found(self) -> Saved:
        """The tree or score card.

        Raises
        ------
        RunError
            If no solution was found.
        """
        if self.saved is None:
            status = self.result.get("status")
            raise RunError(f"{self.path} has no tree: its run ended without a solution (status {status})")
        return self.saved

    @property
    def found_tree(self) -> SavedTree:
        """The tree.

        Raises
        ------
        RunError
            If no solution was found, or it is a score card.
        """
        if not isinstance(self.found, SavedTree):
            raise RunError(f"{self.path} has a {self.found.fitted.noun}, and this is for trees")
        return self.found


def read_run(path: str | Path) -> Run:
    """Read a run folder.

    Raises
    ------
    RunError
        If there is none, its ``result.json`` is malformed, or a file is not the one that the run wrote.
    TreeFileError
        If its ``tree.json`` is malformed.
    OSError
        If a file cannot be read.
    """
    folder = Path(path)
    if not folder.is_dir():
        kind = "is a file, not a run folder" if folder.exists() else f"does not exist{_nearest(folder)}"
        raise RunError(f"{folder} {kind}; give a folder that 'mipforest solve --out' wrote")
    if not (folder / RESULT).is_file():
        raise RunError(f"{folder} has no {RESULT}; give a folder that 'mipforest solve --out' wrote")
    result = _read_result(folder / RESULT)
    present = [name for name in (TREE, CARD) if (folder / name).exists()]
    # First what a file lacks to be a tree or a card: that says more than that it was changed.
    saved: Saved | None = load_saved_tree(folder / TREE) if TREE in present else None
    saved = load_saved_card(folder / CARD) if CARD in present else saved
    check_digests(folder, result, {name: read_json_object(folder / name) for name in present})
    return Run(folder, result, saved)


def _read_result(path: Path) -> dict[str, Any]:
    try:
        result = read_json_object(path)
    except JsonFileError as error:
        raise RunError(f"{error}; solve again") from error
    if "status" not in result:
        raise RunError(f"{path} holds no result of a run; solve again")
    return result


def _nearest(folder: Path) -> str:
    parent = folder.parent
    return (
        did_you_mean(folder.name, [entry.name for entry in parent.iterdir() if entry.is_dir()])
        if parent.is_dir()
        else ""
    )


def samples_of(run: Run) -> tuple[LoadedData | None, str]:
    """Load the samples of a run again, or say why that is not possible.

    Returns
    -------
    data
        The samples; ``None`` if they cannot be loaded or the training samples are not those of the run.
    reason
        Why there are none; empty if there are.
    """
    try:
        data = DataSource.from_dict(run.result["data_source"]).load()
        if data.train.sha256 == run.result["data"]["sha256"]:
            return data, ""
        return None, f"{data.train.name} has changed since the run"
    except (KeyError, TypeError) as error:
        return None, f"result.json does not say where they are ({error})"
    except (DataError, OSError) as error:
        return None, f"they cannot be loaded ({error})"


#: Names and violations that a warning lists.
_LISTED = 3


@dataclass(frozen=True, eq=False)
class Imported:
    """An imported solution.

    Attributes
    ----------
    result
        The tree and its check; ``result.status`` is ``"imported"``, and nothing is proven about the optimum.
    source, data
        Where the data came from, and the data.
    """

    result: Result
    source: DataSource
    data: LoadedData


def import_solution(
    solution: Path,
    instance: Path,
    *,
    data: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    ensemble: str | None = None,
) -> Imported:
    """Turn a solution of an exported instance into a tree.

    The metadata beside the instance say how to build its model again; the solution is checked against that
    model. Columns are matched by name.

    Parameters
    ----------
    solution
        Solution file of any solver that :func:`~mipforest.files.solutions.reader.read_solution` reads.
    instance
        The instance, with the metadata that ``mipforest export`` wrote beside it.
    data
        Where the data are, if elsewhere than the metadata say.
    parameters
        Parameters that count instead of the recorded ones.
    ensemble
        Ensemble to mimic, for formulations that have one.

    Raises
    ------
    PointError
        If the solution is malformed or of another instance.
    RunError
        If the metadata are absent, malformed, or of another file, or the data are others.
    DataError, ParameterError, UnknownFormulation
        If the data cannot be loaded, or the formulation not be made.
    OSError
        If a file cannot be read.
    """
    given = read_solution(solution)
    metadata = read_metadata(instance)
    source = metadata.source if data is None else replace(metadata.source, data=data)
    formulation = metadata.formulation(parameters or {}, ensemble)
    loaded = source.load()
    if loaded.train.sha256 != metadata.data_sha256:
        raise RunError(
            f"the data {source.data} are not those of {instance} (other checksum): they were changed, or are "
            "others; give the right ones with --data"
        )
    problem = formulation.build(loaded.train, metadata.depth)
    return Imported(_checked(problem, given, metadata), source, loaded)


def _checked(problem: Problem, given: SolutionFile, metadata: Metadata) -> Result:
    form = problem.model.matrix()
    point, warnings = _point_of_tangents(form, given) if metadata.tangents else (point_in(form, given), [])
    objective = form.objective(point.x)
    violations = problem.model.violations(point.x)
    warnings = [*_rebuilt_otherwise(form, metadata), *(warnings or _other_objective(given, objective))]
    if point.absent and not given.sparse:
        few = ", ".join(point.absent[:_LISTED]) + (", ..." if len(point.absent) > _LISTED else "")
        warnings.append(
            f"{len(point.absent)} of {form.n_columns} columns are not in {given.path.name} and count as 0: {few}"
        )
    if violations.max > FEASIBILITY_TOLERANCE:
        worst = ", ".join(f"{name} by {amount:.3g}" for name, amount in violations.worst(_LISTED))
        warnings.append(f"the solution is infeasible; it violates {worst}")
    solution = Solution(
        status=Status.IMPORTED,
        x=point.x,
        values=form.to_values(point.x),
        objective=objective,
        bound=float("inf") if form.maximize else float("-inf"),
        nodes=0,
        seconds=0.0,
        solver=given.writer or "a file",
        solver_version="",
        warnings=tuple(warnings),
    )
    return problem.checked(solution)


def _point_of_tangents(form: MatrixForm, given: SolutionFile) -> tuple[Point, list[str]]:
    """Return the point of a model for one of its tangents: the same integers, and the best rest for the objective."""
    linear = point_in(Tangents(form).linear_form(), given)
    x, settings = linear.x[: form.n_columns], SolveSettings()
    best = with_best_rest(form, x, get_solver(QUADRATIC_SOLVER), settings)
    if best is not None and form.objective(best) < form.objective(x):
        x = best
    warning = (
        "the instance has tangents for the quadratic objective: the numbers here are by the objective itself"
    )
    return replace(linear, x=x), [warning]


def _rebuilt_otherwise(form: MatrixForm, metadata: Metadata) -> list[str]:
    """Warn if the model is not the one that was written, to the last bit."""
    if not metadata.model_sha256 or sha256_of_model(form) == metadata.model_sha256:
        return []
    return [
        f"the model built here is not exactly that of {metadata.instance} (written with mipforest "
        f"{metadata.version or 'unknown'}, or on another machine); the solution was checked against the one built here"
    ]


def _other_objective(given: SolutionFile, objective: float) -> list[str]:
    """Warn if the file states another objective than its values have."""
    if given.agrees_with(objective):
        return []
    return [f"{given.path.name} states the objective {given.objective:.9g}, its values have {objective:.9g}"]
