"""What each solver reached on each instance: one line per run, and what follows from them.

An answer of a solver is *wrong* where it contradicts what is known: it calls a model with a known point infeasible, its
bound is beyond the value of a known tree, its point violates the model, or has a value beyond a proven bound. An
instance is *solved* where the gap of its best known values is closed and a proof stands: a certificate that was
checked, or the same optimum by two solvers or searches that do not share their bounds.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from mipforest.atomic import atomic_write, turn
from mipforest.errors import MipforestError
from mipforest.settings import DEFAULT_GAP, FEASIBILITY_TOLERANCE
from mipforest.solvers.solution import Event, Status, closed

#: Relative distance within which two values of one optimum, found by two solvers, are the same: both are exact but for
#: the solvers' tolerances on rows.
SAME_OPTIMUM = 1e-6

#: An instance is easy if a matrix solver solves it within an hour, as in MIPLIB.
EASY_SECONDS = 3600.0


class ResultsError(MipforestError, ValueError):
    """The file holds no results; the message says where and why."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a solver on an instance: a line of the file.

    Attributes
    ----------
    instance, sha256
        The instance, and the checksum of its model.
    solver, version, kind
        Who ran; ``kind`` is ``solver`` for one that takes the model's rows, ``search`` for a tree search.
    machine
        Processor and number of its cores.
    threads, seed, time_limit
        Settings; no number of threads leaves it to the solver.
    seconds, nodes
        Wall time, and branch-and-bound nodes.
    status
        As the solver has it (:class:`~mipforest.solvers.solution.Status`), or ``failed``: an error, which
        ``message`` has.
    objective, bound
        The solver's values; NaN and infinite while there are none.
    violation
        Largest violation of a row, bound or integrality by its point; NaN without one.
    primal_gap
        Mean over the time limit of the primal gap, 0 to 1 (Berthold, *Measuring the impact of primal heuristics*, 2013:
        the primal integral over the time limit).
    certified
        Whether the run wrote a certificate that was checked.
    message
        What went wrong.
    """

    instance: str
    sha256: str
    solver: str
    version: str
    kind: str
    machine: str
    threads: int | None = None
    seed: int = 0
    time_limit: float = math.inf
    seconds: float = math.nan
    nodes: int = 0
    status: str = "failed"
    objective: float = math.nan
    bound: float = math.nan
    violation: float = math.nan
    primal_gap: float = 1.0
    certified: bool = False
    message: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """What makes a run another one: a repetition replaces it."""
        return self.instance, self.solver, self.version, self.threads, self.seed, self.time_limit


class Known(Protocol):
    """What is known of an instance, as a line of the catalogue has it."""

    @property
    def objective(self) -> float:
        """Best known value; NaN without one."""

    @property
    def bound(self) -> float:
        """Best proven bound."""

    @property
    def tolerance(self) -> float:
        """Tolerance on rows that the instance needs, where the solvers' default is too coarse; NaN where it is not."""

    @property
    def is_approximated(self) -> bool:
        """Whether points may have objectives below those of their trees, and so below ``bound``."""


def fault_of(run: Run, known: Known) -> str:
    """Say what is wrong with the answer of a run, empty where nothing contradicts it; all models are minimised.

    Parameters
    ----------
    run
        The run.
    known
        What is known of its instance. A point below the proven bound is no fault where the instance needs finer
        tolerances than the solver's, or its objective approximates that of the trees.
    """
    value = known.objective
    slack = FEASIBILITY_TOLERANCE * max(1.0, abs(value)) if math.isfinite(value) else 0.0
    if math.isfinite(value):
        if run.status in (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED, Status.UNBOUNDED):
            return f"says {run.status.replace('_', ' ')}, and a tree has the value {value:.9g}"
        if math.isfinite(run.bound) and run.bound > value + slack:
            return f"claims the bound {run.bound:.9g}, and a tree has the value {value:.9g}"
        if (
            run.status == Status.OPTIMAL
            and run.objective > value
            and not closed(run.objective, value, DEFAULT_GAP)
        ):
            return f"calls {run.objective:.9g} optimal, and a tree has the value {value:.9g}"
    if run.violation > FEASIBILITY_TOLERANCE:
        return f"its point violates the model by {run.violation:.3g}"
    if _below_the_bound(run, known) and math.isnan(known.tolerance):
        return f"its point has the value {run.objective:.9g}, below the proven bound {known.bound:.9g}"
    return ""


def solved_by(run: Run, known: Known) -> bool:
    """Return whether a run closed the gap, with an answer that nothing contradicts.

    A point below the proven bound is no tree's, and solves nothing, also where tolerances excuse it.
    """
    gone = run.status == Status.OPTIMAL and closed(run.objective, run.bound, DEFAULT_GAP)
    return gone and not fault_of(run, known) and not _below_the_bound(run, known)


def _below_the_bound(run: Run, known: Known) -> bool:
    slack = FEASIBILITY_TOLERANCE * max(1.0, abs(known.objective)) if math.isfinite(known.objective) else 0.0
    return math.isfinite(known.bound) and run.objective < known.bound - slack and not known.is_approximated


def proof_of(runs: Iterable[Run], known: Known) -> str:
    """Say what vouches for the optimum: a certificate, or two routes with the same value; empty where nothing does."""
    slack = SAME_OPTIMUM * max(1.0, abs(known.objective))
    agree = [run for run in runs if solved_by(run, known) and abs(run.objective - known.objective) <= slack]
    for run in agree:
        if run.certified:
            return f"certificate of {run.solver}"
    routes = sorted({run.solver.rpartition(":")[2] for run in agree})
    return " and ".join(routes[:2]) if len(routes) > 1 else ""


def difficulty_of(runs: Sequence[Run], known: Known, *, solved: bool) -> tuple[str, float]:
    """Return how difficult an instance is for matrix solvers, and in what time.

    Returns
    -------
    tuple
        ``easy`` and the least seconds in which a matrix solver solved it; ``hard`` and the longest time limit in which
        those that were tried did not, though it is solved; or nothing and that limit (NaN where none was tried).
    """
    tried = [run for run in runs if run.kind == "solver"]
    fastest = min((run.seconds for run in tried if solved_by(run, known)), default=math.inf)
    if fastest <= EASY_SECONDS:
        return "easy", fastest
    limit = max((run.time_limit for run in tried), default=math.nan)
    return "hard" if solved and tried else "", limit


def primal_gap(events: Iterable[Event], limit: float, reference: float) -> float:
    """Return the mean primal gap over a time limit, 0 to 1.

    Parameters
    ----------
    events
        Progress, in order of time.
    limit
        Seconds.
    reference
        Best known value.
    """
    if not (0 < limit < math.inf) or math.isnan(reference):
        return math.nan
    area, last, gap = 0.0, 0.0, 1.0
    for event in events:
        at = min(max(event.seconds, last), limit)
        area += gap * (at - last)
        last, gap = at, min(gap, _gap(event.objective, reference))
    return (area + gap * (limit - last)) / limit


def _gap(value: float, reference: float) -> float:
    if math.isnan(value) or value * reference < 0:
        return 1.0
    size = max(abs(value), abs(reference))
    return min(1.0, abs(value - reference) / size) if size > 0 else 0.0


_COLUMNS = [f.name for f in fields(Run)]


def read_results(path: Path) -> list[Run]:
    """Read results; an absent file holds none.

    Raises
    ------
    ResultsError
        If the columns are others, or a number is none.
    OSError
        If the file cannot be read.
    """
    if not path.exists():
        return []
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ResultsError(f"{path} holds no results: {error}") from error
    return [_run(path, number, row) for number, row in enumerate(rows, 2)]


def _run(path: Path, number: int, row: Mapping[str | None, str | None]) -> Run:
    if set(row) != set(_COLUMNS) or None in row.values():
        raise ResultsError(f"{path}, line {number}: the columns are not {', '.join(_COLUMNS)}")
    values: dict[str, Any] = {}
    for f in fields(Run):
        text = str(row[f.name])
        try:
            if f.type == "bool":
                values[f.name] = text == "yes"
            elif f.type == "float":
                values[f.name] = float(text) if text else math.nan
            elif f.type in ("int", "int | None"):
                values[f.name] = int(text) if text else None
            else:
                values[f.name] = text
        except ValueError:
            raise ResultsError(f"{path}, line {number}: {f.name} is {text[:80]!r}, no number") from None
    return Run(**values)


def write_results(path: Path, runs: Iterable[Run]) -> None:
    """Write results; the file appears complete or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for run in runs:
        writer.writerow([_written(getattr(run, column)) for column in _COLUMNS])
    with atomic_write(path, "w") as file:
        file.write(text.getvalue())


def record_results(path: Path, runs: Iterable[Run]) -> list[Run]:
    """Add runs to a file of results, in place of earlier ones with the same settings; return what it holds then.

    Several processes may record at the same time: each waits for its turn, by a lock on the folder.
    """
    with turn(path.parent):
        held = {run.key: run for run in (*read_results(path), *runs)}
        ordered = sorted(held.values(), key=lambda run: (run.instance, run.kind, run.solver, run.time_limit))
        write_results(path, ordered)
        return ordered


def by_instance(runs: Iterable[Run], sha256: Mapping[str, str]) -> dict[str, list[Run]]:
    """Group runs by instance, leaving out those of models that have changed since."""
    groups: dict[str, list[Run]] = {}
    for run in _current(runs, sha256):
        groups.setdefault(run.instance, []).append(run)
    return groups


def _current(runs: Iterable[Run], sha256: Mapping[str, str]) -> Iterator[Run]:
    return (run for run in runs if sha256.get(run.instance) == run.sha256)


def _written(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(value)
    return " ".join(str(value).split())
