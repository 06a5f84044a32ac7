"""Shrink a model on which a solver is wrong, or aborts, until it fits into a report to the solver's maintainers.

python tests/fuzz/shrink.py model.mps.gz --solver highs --point best.sol -o small.mps
python tests/fuzz/shrink.py model.mps --solver scip --option limits/time=20 -o small.mps
python tests/fuzz/shrink.py --seed 3 --case 14 --weights 0 --solver highs --python old/bin/python -o small.mps

The solver's own Python package reads the written file and solves it, in a process of its own, as its maintainers will.
A feasible point is known throughout: a claim that no point is as good, or that there is none, is wrong, whatever the
optimum is. Each change of the model keeps the point feasible. Where a signal ends the process, this is what is kept.

Changes are tried in bulk first, then in halves (Zeller and Hildebrandt, Simplifying and isolating failure-inducing
input, IEEE Trans. Softw. Eng. 28(2), 2002). Reducers of text (picire, shrinkray) do not know the point: most of what
they leave of an MPS file is no model, or one on which the solver is right.
"""

from __future__ import annotations

import argparse
import ast
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import formulations  # noqa: F401 - before the path that fuzz_models adds, which has a folder of this name
from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.bridges import indicator_to_big_m
from mipforest.errors import MipforestError
from mipforest.files.mps import mps_text, read_mps, write_mps
from mipforest.files.solutions import point_in, read_solution
from mipforest.model.check import exact_objective, violations
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm, with_data
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solving import solve_form

#: Relative difference (absolute below 1) by which a claim has to miss the point's value: ten times the gap at which
#: solvers stop by default.
MARGIN = 1e-3

#: Significant digits to which numbers are rounded, fewest first; 0 makes them 1 or -1, and a point integral.
DIGITS = (0, 1, 2, 3, 5)

#: Seconds for each solver that looks for the known point.
POINT_LIMIT = 60.0

#: Solvers that look for it, with options; HiGHS' presolve is what is most often wrong.
POINT_SOLVERS: dict[str, dict[str, Any]] = {"gurobi": {}, "scip": {}, "highs": {"presolve": "off"}}

#: The Python package of each solver.
PACKAGES = {"highs": "highspy", "scip": "pyscipopt"}

#: What the maintainers run: the program, the line of an option, and one that names the version.
PROGRAMS = {
    "highs": (
        "import highspy\n"
        "h = highspy.Highs()\n"
        "{options}h.readModel({file!r})\n"
        "h.run()\n"
        "info = h.getInfo()\n"
        "status = h.modelStatusToString(h.getModelStatus())\n"
        "print(status, info.objective_function_value, info.mip_dual_bound, sep='|', flush=True)\n",
        "h.setOptionValue({name!r}, {value!r})\n",
        "import highspy; print('highspy', highspy.Highs().version())",
    ),
    "scip": (
        "from pyscipopt import Model\n"
        "m = Model()\n"
        "{options}m.readProblem({file!r})\n"
        "m.optimize()\n"
        "print(m.getStatus(), m.getPrimalbound(), m.getDualbound(), sep='|', flush=True)\n",
        "m.setParam({name!r}, {value!r})\n",
        "import pyscipopt; print('pyscipopt', pyscipopt.__version__, 'with SCIP', pyscipopt.Model().version())",
    ),
}

#: Runs programs that it reads, one a line in JSON, each in a fork of its own: the solver's package is loaded once.
SERVER = """
import json, os, signal, sys, tempfile, time
import {package}
for line in sys.stdin:
    program, limit = json.loads(line)
    with tempfile.TemporaryFile() as said:
        process = os.fork()
        if process == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            exec(program, {{}})
            os._exit(0)
        latest, ended = time.monotonic() + limit, 0
        while not ended:
            ended, code = os.waitpid(process, os.WNOHANG)
            if not ended and time.monotonic() > latest:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                ended, code = process, None
            time.sleep(0.001)
        said.seek(0)
        words = said.read().decode(errors="replace")
    code = None if code is None else os.waitstatus_to_exitcode(code)
    print(json.dumps([code, words]), flush=True)
"""


class ShrinkError(MipforestError):
    """What is asked for cannot be shrunk."""


# ---------------------------------------------------------------------- what a solver says


@dataclass(frozen=True)
class Answer:
    """What a solver said of a model.

    Attributes
    ----------
    status
        In lower case, ``optimal``, ``infeasible`` or another word.
    objective, bound
        NaN where it named none.
    signal
        Name of the signal that ended its process, empty without one.
    """

    status: str = ""
    objective: float = np.nan
    bound: float = np.nan
    signal: str = ""

    def fault(self, form: MatrixForm, x: FloatArray) -> str:
        """Say what is wrong with the answer, given a feasible point; empty where nothing is."""
        if self.signal:
            return f"the process is ended by {self.signal}"
        value = exact_objective(form, x)
        margin, sign = MARGIN * max(1.0, abs(value)), -1.0 if form.maximize else 1.0
        if self.status == "infeasible":
            return "it says that the model is infeasible"
        if self.status == "optimal" and sign * (self.objective - value) > margin:
            return f"it calls {self.objective!r} optimal"
        # HiGHS names 0 as the bound of a linear programme.
        if form.is_mip and sign * (self.bound - value) > margin:
            return f"it claims the bound {self.bound!r}"
        return ""


#: Ask a solver about a model.
Ask = Callable[[MatrixForm], Answer]


@dataclass(frozen=True)
class Alone:
    """A solver in a process of its own, which reads the model from a file.

    Attributes
    ----------
    solver
        ``highs`` or ``scip``.
    folder
        Where the file is written.
    python
        The interpreter that has the solver's package.
    options
        The solver's options.
    limit
        Seconds after which the process is killed; it has said nothing then.
    repeat
        Runs at most until one is ended by a signal.
    forks
        Whether the process is a fork of one that has loaded the package, in place of a new one: quicker, but its
        memory is laid out in another way.
    """

    solver: str
    folder: Path
    python: str = sys.executable
    options: tuple[tuple[str, Any], ...] = ()
    limit: float = 30.0
    repeat: int = 1
    forks: bool = False
    _server: list[subprocess.Popen[str]] = field(default_factory=list, init=False)

    def program(self, file: str) -> str:
        """Return what the process runs."""
        text, option, _ = PROGRAMS[self.solver]
        lines = [option.format(name=name, value=value) for name, value in self.options]
        return text.format(file=file, options="".join(lines))

    def versions(self) -> str:
        """Return the versions of the solver and of Python.

        Raises
        ------
        ShrinkError
            If the solver's package is not installed there.
        """
        program = PROGRAMS[self.solver][2] + "; import platform; print('Python', platform.python_version())"
        try:
            code, words = self._fresh(program)
        except OSError as error:
            raise ShrinkError(
                f"{self.python} does not run: {error.strerror}; give another one with --python"
            ) from error
        lines = words.strip().splitlines()
        if code != 0:
            raise ShrinkError(
                f"{self.python} does not load {self.solver}: {(lines or ['no answer'])[-1]}; "
                "install it there, or name another interpreter with --python"
            )
        return ", ".join(line for line in lines if line.startswith(("highspy ", "pyscipopt ", "Python ")))

    def __call__(self, form: MatrixForm) -> Answer:
        """Write a model and solve it.

        Raises
        ------
        ShrinkError
            If the program ends with an error.
        """
        file = self.folder / "candidate.mps"
        write_mps(form, file)
        for _ in range(self.repeat):
            code, words = self._run(self.program(str(file)))
            if code is not None and code < 0:
                return Answer(signal=signal.Signals(-code).name)
        if code is None:
            return Answer()
        last = words.strip().rpartition("\n")[2]
        if code != 0:
            raise ShrinkError(f"{self.solver} failed: {last}")
        status, objective, bound = last.split("|")
        return Answer(status.lower(), float(objective), float(bound))

    def _fresh(self, program: str) -> tuple[int | None, str]:
        """Run a program in a new process; give its exit code, ``None`` where it was late, and what it said."""
        try:
            ended = subprocess.run(
                [self.python, "-c", program], capture_output=True, text=True, timeout=self.limit, check=False
            )
        except subprocess.TimeoutExpired:
            return None, ""
        return ended.returncode, ended.stdout + ended.stderr

    def _run(self, program: str) -> tuple[int | None, str]:
        """Run a program as :meth:`_fresh` does, in a fork of a process that has loaded the package."""
        if not self.forks:
            return self._fresh(program)
        if not self._server:
            text = SERVER.format(package=PACKAGES[self.solver])
            self._server.append(
                subprocess.Popen(
                    [self.python, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
        server = self._server[0]
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps([program, self.limit]) + "\n")
        server.stdin.flush()
        code, words = json.loads(server.stdout.readline())
        return code, words

    def close(self) -> None:
        """End the process that forks."""
        for server in self._server:
            server.communicate()


# ---------------------------------------------------------------------- changes of a model


class Case(NamedTuple):
    """A model and a feasible point of it."""

    form: MatrixForm
    x: FloatArray


@dataclass(frozen=True)
class Change:
    """A change that can be made at any set of places.

    Attributes
    ----------
    what
        Its name.
    places
        Gives the numbers of the places where it can be made.
    make
        Makes it at some of these.
    """

    what: str
    places: Callable[[Case], IntArray]
    make: Callable[[Case, IntArray], Case]


def containing(case: Case) -> Case:
    """Move the sides and bounds that the point violates onto the point; an equality stays one."""
    form, x = case
    activity = form.A @ x
    missed = (activity < form.row_lower) | (activity > form.row_upper)
    equality = missed & (form.row_lower == form.row_upper)
    row_lower = np.where(equality, activity, np.minimum(form.row_lower, activity))
    row_upper = np.where(equality, activity, np.maximum(form.row_upper, activity))
    return Case(
        replace(
            form,
            row_lower=row_lower,
            row_upper=row_upper,
            col_lower=np.minimum(form.col_lower, x),
            col_upper=np.maximum(form.col_upper, x),
        ),
        x,
    )


def without_rows(case: Case, rows: IntArray) -> Case:
    """Delete rows."""
    form = case.form
    kept = _others(form.n_rows, rows)
    names = tuple(form.row_names[i] for i in kept)
    return case._replace(
        form=replace(
            form,
            A=form.A[kept],
            row_lower=form.row_lower[kept],
            row_upper=form.row_upper[kept],
            rows=_named("rows", names),
        )
    )


def without_indicator_rows(case: Case, rows: IntArray) -> Case:
    """Delete indicator rows."""
    old = case.form.indicators
    kept = _others(old.n_rows, rows)
    names = [name for block in old.rows for name in block.names()]
    new = IndicatorRows(
        old.binary[kept],
        old.value[kept],
        old.A[kept],
        old.lower[kept],
        old.upper[kept],
        _named("indicators", tuple(names[i] for i in kept)),
    )
    return case._replace(form=replace(case.form, indicators=new))


def without_columns(case: Case, columns: IntArray) -> Case:
    """Delete columns: they are fixed at the point's values, which the sides and the objective take in."""
    form, x = case
    kept = _others(form.n_columns, columns)
    fixed = np.where(np.isin(np.arange(len(x)), columns), x, 0.0)
    moved, off_side = form.A @ fixed, form.indicators.A @ fixed
    c, offset, Q = form.c, form.offset + float(form.c @ fixed), form.Q
    if Q is not None:
        slope = Q @ fixed
        c, offset, Q = c + slope, offset + 0.5 * float(fixed @ slope), Q[kept][:, kept]
    place = np.cumsum(np.isin(np.arange(len(x)), kept)) - 1
    indicators = replace(
        form.indicators,
        binary=place[form.indicators.binary],
        A=form.indicators.A[:, kept],
        lower=form.indicators.lower - off_side,
        upper=form.indicators.upper - off_side,
    )
    shorter = replace(
        form,
        c=c[kept],
        offset=offset,
        Q=Q,
        A=form.A[:, kept],
        row_lower=form.row_lower - moved,
        row_upper=form.row_upper - moved,
        col_lower=form.col_lower[kept],
        col_upper=form.col_upper[kept],
        integer=form.integer[kept],
        indicators=indicators,
        columns=_named("columns", tuple(form.column_names[j] for j in kept)),
    )
    return Case(shorter, x[kept])


def without_columns_and_rows(case: Case, columns: IntArray) -> Case:
    """Delete columns, and all rows that have them."""
    touched = np.flatnonzero(np.diff(case.form.A[:, columns].tocsr().indptr))
    return without_columns(without_rows(case, touched), columns)


def without_entries(case: Case, entries: IntArray) -> Case:
    """Delete entries of the matrix; the sides move by what these added at the point."""
    form, x = case
    kept = np.isin(np.arange(form.A.nnz), entries, invert=True)
    A = _without_zeros(with_data(form.A, np.where(kept, form.A.data, 0.0)))
    moved = form.A @ x - A @ x
    return case._replace(
        form=replace(form, A=A, row_lower=form.row_lower - moved, row_upper=form.row_upper - moved)
    )


def without_quadratic(case: Case, columns: IntArray) -> Case:
    """Delete all quadratic terms of columns; what is left of a convex objective is convex."""
    assert case.form.Q is not None
    keep = sparse.diags_array(np.isin(np.arange(len(case.x)), columns, invert=True).astype(float))
    return case._replace(
        form=replace(case.form, Q=_without_zeros(sparse.csr_array(keep @ case.form.Q @ keep)))
    )


def without_products(case: Case, columns: IntArray) -> Case:
    """Delete the products of columns with others, not their squares; what is left of a convex objective is convex."""
    Q = case.form.Q
    assert Q is not None
    gone = np.isin(np.arange(len(case.x)), columns)
    entries = Q.tocoo()
    kept = (entries.row == entries.col) | ~(gone[entries.row] | gone[entries.col])
    left = sparse.csr_array((entries.data[kept], (entries.row[kept], entries.col[kept])), shape=Q.shape)
    return case._replace(form=replace(case.form, Q=left))


def _set(name: str, value: Any) -> Callable[[Case, IntArray], Case]:
    """Return a change that sets one value in an array of the form; a callable value is given the case."""

    def make(case: Case, places: IntArray) -> Case:
        array = getattr(case.form, name).copy()
        array[places] = value(case)[places] if callable(value) else value
        return case._replace(form=replace(case.form, **{name: array}))

    return make


def _removable(case: Case) -> IntArray:
    """Return the columns that switch no indicator row."""
    return _others(case.form.n_columns, case.form.indicators.binary)


def _with_quadratic(case: Case, *, products: bool) -> IntArray:
    """Return the columns with a quadratic term, or with a product."""
    if case.form.Q is None:
        return np.zeros(0, dtype=np.int64)
    entries = case.form.Q.tocoo()
    return np.unique(entries.row[entries.row != entries.col] if products else entries.row)


def rounded(values: FloatArray, digits: int) -> FloatArray:
    """Round to significant digits; 0 digits give 1, -1 or 0."""
    if digits == 0:
        return np.sign(values)
    return np.array([float(f"{value:.{digits}g}") for value in values.tolist()])


def _numbers(form: MatrixForm, x: FloatArray) -> dict[str, FloatArray]:
    """Return the numbers that rounding may change, by where they are."""
    triangle = np.zeros(0) if form.Q is None else sparse.triu(form.Q).tocsr().data
    return {
        "x": x, "A": form.A.data, "c": form.c, "Q": triangle, "row_lower": form.row_lower,
        "row_upper": form.row_upper, "col_lower": form.col_lower, "col_upper": form.col_upper,
    }  # fmt: skip


def _rounded_numbers(case: Case, digits: int) -> FloatArray:
    """Return all numbers of a case in one row, rounded; sides and bounds, to 0 digits, to integers."""
    numbers = _numbers(*case)
    parts = []
    for name, values in numbers.items():
        whole = digits == 0 and name not in ("A", "c", "Q")
        parts.append(np.round(values) if whole else rounded(values, digits))
    return np.concatenate(parts)


def rounding(digits: int) -> Change:
    """Round numbers, those of the point too; sides that miss it then are moved onto it."""

    def places(case: Case) -> IntArray:
        return np.flatnonzero(np.concatenate([*_numbers(*case).values()]) != _rounded_numbers(case, digits))

    def make(case: Case, chosen: IntArray) -> Case:
        form = case.form
        numbers = _numbers(*case)
        flat = np.concatenate([*numbers.values()])
        flat[chosen] = _rounded_numbers(case, digits)[chosen]
        cuts = np.cumsum([len(values) for values in numbers.values()])[:-1]
        new = dict(zip(numbers, np.split(flat, cuts), strict=True))
        x = np.clip(new.pop("x"), new["col_lower"], np.maximum(new["col_lower"], new["col_upper"]))
        x = np.where(form.integer, np.round(x), x)
        A, triangle = with_data(form.A, new.pop("A")), new.pop("Q")
        Q = form.Q
        if Q is not None:
            upper = sparse.triu(Q).tocsr()
            upper = with_data(upper, triangle)
            Q = _without_zeros(sparse.csr_array(upper + sparse.triu(upper, 1).T))
        # An equality that the rounded point misses has the sides of the point, with few digits too.
        return Case(replace(form, A=_without_zeros(A), Q=Q, **new), x)

    return Change(f"round to {digits} digits" if digits else "round to 1", places, make)


def _both_sides(case: Case) -> IntArray:
    return np.flatnonzero(np.isfinite(case.form.row_lower) & np.isfinite(case.form.row_upper))


#: All changes, in the order in which they are tried.
CHANGES: tuple[Change, ...] = (
    Change("delete columns with their rows", _removable, without_columns_and_rows),
    Change("delete rows", lambda case: np.arange(case.form.n_rows), without_rows),
    Change(
        "delete indicator rows", lambda case: np.arange(case.form.indicators.n_rows), without_indicator_rows
    ),
    Change("delete columns", _removable, without_columns),
    Change("delete quadratic terms", lambda case: _with_quadratic(case, products=False), without_quadratic),
    Change("delete products", lambda case: _with_quadratic(case, products=True), without_products),
    Change("delete entries", lambda case: np.arange(case.form.A.nnz), without_entries),
    Change("delete costs", lambda case: np.flatnonzero(case.form.c), _set("c", 0.0)),
    Change(
        "delete the constant",
        lambda case: np.arange(int(case.form.offset != 0)),
        lambda case, places: case._replace(form=replace(case.form, offset=0.0)) if len(places) else case,
    ),
    Change(
        "delete integrality",
        lambda case: np.intersect1d(np.flatnonzero(case.form.integer), _removable(case)),
        _set("integer", False),
    ),
    Change("delete lower sides", _both_sides, _set("row_lower", -np.inf)),
    Change("delete upper sides", _both_sides, _set("row_upper", np.inf)),
    Change(
        "delete upper bounds",
        lambda case: np.flatnonzero(~case.form.integer & np.isfinite(case.form.col_upper)),
        _set("col_upper", np.inf),
    ),
    Change(
        "delete lower bounds",
        lambda case: np.flatnonzero(~case.form.integer & (case.form.col_lower != 0)),
        _set("col_lower", lambda case: np.where(case.x >= 0, 0.0, -np.inf)),
    ),
    *map(rounding, DIGITS),
)


def _others(size: int, numbers: IntArray) -> IntArray:
    return np.flatnonzero(np.isin(np.arange(size), numbers, invert=True))


def _named(what: str, names: tuple[str, ...]) -> tuple[Block, ...]:
    return (Block(what, 0, (len(names),), flat_names=names),) if names else ()


def _without_zeros(matrix: SparseMatrix) -> SparseMatrix:
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    return matrix


# ---------------------------------------------------------------------- shrinking


def least_kept(places: Sequence[int], holds: Callable[[list[int]], bool]) -> list[int]:
    """Return few places that are to be kept as they are: none of them can be left out alone.

    Parameters
    ----------
    places
        All places; it holds where all of them are kept.
    holds
        Whether it still holds where only these are kept.
    """
    kept, size = list(places), len(places)
    while size:
        start, left_out = 0, False
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if holds(rest):
                kept, left_out = rest, True
            else:
                start += size
        size = size if left_out and size == 1 else size // 2
    return kept


def shrink(
    case: Case,
    ask: Ask,
    *,
    changes: Sequence[Change] = CHANGES,
    seconds: float = np.inf,
    say: Callable[[str], None] = lambda text: None,
) -> Case:
    """Shrink a model on which a solver is wrong until no change leaves it wrong.

    Parameters
    ----------
    case
        The model and a feasible point.
    ask
        The solver.
    changes
        The changes to try.
    seconds
        Time after which nothing more is tried.
    say
        Is told of each step.

    Raises
    ------
    ShrinkError
        If the point is not feasible, or the solver is not wrong to begin with.
    """
    worst = violations(case.form, case.x).max
    if worst > FEASIBILITY_TOLERANCE:
        raise ShrinkError(f"the point violates the model by {worst:.2g}; give a feasible one with --point")
    rounded_x = np.where(case.form.integer, np.round(case.x), case.x)
    case = containing(Case(case.form, rounded_x))
    first = ask(case.form)
    if not first.fault(*case):
        raise ShrinkError(
            f"the solver is not wrong: it says {first.status or 'nothing in its time'}, value {first.objective!r}, "
            f"bound {first.bound!r}; the point has {exact_objective(*case)!r}"
        )
    deadline, asked = monotonic() + seconds, dict[bytes, bool]()

    def wrong(candidate: Case) -> bool:
        text = b"".join(mps_text(candidate.form))
        if text not in asked:
            if monotonic() > deadline:
                return False
            answer = ask(candidate.form)
            # An abort and a wrong claim are different faults: one is not shrunk into the other.
            asked[text] = bool(answer.signal) == bool(first.signal) and bool(answer.fault(*candidate))
        return asked[text]

    def pass_of(change: Change, case: Case) -> Case:
        places = change.places(case)

        def made(kept: Sequence[int]) -> Case:
            return containing(change.make(case, np.setdiff1d(places, np.asarray(kept, dtype=np.int64))))

        def holds(kept: list[int]) -> bool:
            candidate = made(kept)
            safe = candidate.form.n_columns and violations(*candidate).max <= FEASIBILITY_TOLERANCE
            return bool(safe) and wrong(candidate)

        kept = least_kept(places.tolist(), holds)
        if len(kept) == len(places):
            return case
        smaller = made(kept)
        say(f"{change.what}: {len(places) - len(kept)} of {len(places)}; {size_of(smaller.form)}")
        return smaller

    before: Case | None = None
    while before is not case:
        before = case
        for change in changes:
            case = pass_of(change, case)
    return case


def size_of(form: MatrixForm) -> str:
    """Tell the size of a model."""
    terms = 0 if form.Q is None else sparse.triu(form.Q).nnz
    return (
        f"{form.n_rows + form.indicators.n_rows} rows, {form.n_columns} columns ({int(form.integer.sum())} integer), "
        f"{form.A.nnz + form.indicators.A.nnz} entries, {terms} quadratic terms"
    )


def renamed(form: MatrixForm) -> MatrixForm:
    """Give short names to columns and rows."""
    columns = tuple(f"x{j}" for j in range(form.n_columns))
    rows = tuple(f"r{i}" for i in range(form.n_rows))
    return replace(form, columns=_named("columns", columns), rows=_named("rows", rows), name="shrunken")


# ---------------------------------------------------------------------- the command


def known_point(form: MatrixForm) -> FloatArray:
    """Return the best point that the solvers of this package find.

    Raises
    ------
    ShrinkError
        If none finds one.
    """
    found: list[FloatArray] = []
    for name, options in POINT_SOLVERS.items():
        solver = get_solver(name)
        if not solver.available():
            continue
        try:
            settings = SolveSettings(time_limit=POINT_LIMIT, gap=1e-6, threads=1, solver_options=options)
            solution = solve_form(form, solver, settings)
        except MipforestError:
            continue
        if solution.x is not None and violations(form, solution.x).max <= FEASIBILITY_TOLERANCE:
            found.append(solution.x)
    if not found:
        raise ShrinkError(f"no solver found a feasible point in {POINT_LIMIT:.0f} s; give one with --point")
    return (max if form.maximize else min)(found, key=form.objective)


def forms_of_case(seed: int, number: int, weights: float, variant: str | None) -> dict[str, MatrixForm]:
    """Return the models of a case of ``fuzz_models.py`` by variant.

    Raises
    ------
    ShrinkError
        If it has no such variant, or none that can be built.
    """
    from fuzz_models import SOLVERS, drawn_problem

    solvers = tuple(name for name in SOLVERS if get_solver(name).available())
    drawn = drawn_problem(np.random.default_rng((seed, number)), solvers, weights=weights)
    forms = {}
    for name in drawn.model.variants if variant is None else (variant,):
        try:
            problem = drawn.problem(name)
            if drawn.constraint is not None:
                drawn.constraint.add(problem)
        except MipforestError:
            continue
        forms[name] = problem.model.matrix()
    if not forms:
        raise ShrinkError(f"seed {seed} case {number} has no model {variant or ''} of rows")
    return forms


def report(ask: Alone, before: MatrixForm, case: Case, file: Path) -> str:
    """Tell the shrunken model, what the solver says of it and how to repeat this, in Markdown."""
    fault = ask(case.form).fault(*case)
    point = ", ".join(
        f"{name} = {value:g}" for name, value in zip(case.form.column_names, case.x, strict=True)
    )
    text = b"".join(mps_text(case.form)).decode()
    return "\n".join(
        [
            f"# {ask.versions()}",
            "",
            f"On the model below {fault}. The point below is feasible and has the objective value "
            f"{exact_objective(*case)!r}; it violates rows and bounds by {violations(*case, exact=True).max:.1g}.",
            "",
            f"- Before shrinking: {size_of(before)}.",
            f"- After: {size_of(case.form)}.",
            "",
            "```python",
            ask.program(file.name).strip(),
            "```",
            "",
            f"Point: {point}"
            if case.form.n_columns <= 100
            else f"Point: {len(case.x)} values, in {file.name}.sol",
            "",
            *(["```", text.strip(), "```", ""] if text.count("\n") < 100 else [f"Model: {file.name}", ""]),
        ]
    )


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def run(given: argparse.Namespace) -> str:
    """Do what the command line asks for; give the report."""
    if (given.model is None) == (given.case is None):
        raise ShrinkError("give either a file or --seed and --case")
    if given.model is not None:
        if not given.model.exists():
            raise ShrinkError(f"there is no file {given.model}")
        forms = {"": read_mps(given.model)}
    else:
        forms = forms_of_case(given.seed, given.case, given.weights, given.variant)
    with tempfile.TemporaryDirectory() as folder:
        ask = Alone(
            given.solver, Path(folder), given.python, tuple(given.option), given.time_limit, given.repeat
        )
        print(ask.versions(), flush=True)
        for number, (variant, form) in enumerate(forms.items(), start=1):
            if given.solver == "highs" and form.indicators.n_rows:
                form = indicator_to_big_m.apply(form).form  # HiGHS reads no indicator rows
            x = known_point(form) if given.point is None else point_in(form, read_solution(given.point)).x
            print(
                f"{variant or given.model}: {size_of(form)}, the point has {form.objective(x)!r}", flush=True
            )
            # Where memory is spoilt it depends on its layout, hence on the process, whether this shows.
            alone = replace(ask, forks=not ask(form).signal)
            try:
                case = shrink(
                    Case(form, x), alone, seconds=60 * given.minutes, say=lambda text: print(text, flush=True)
                )
            except ShrinkError:
                if number == len(forms):
                    raise
                continue
            finally:
                alone.close()
            break
        case = Case(renamed(case.form), case.x)
        write_mps(case.form, given.out)
        text = report(ask, form, case, given.out)
        given.out.with_suffix(".md").write_text(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, nargs="?", help="MPS file (.mps or .mps.gz)")
    parser.add_argument("--seed", type=int, default=0, help="of a case of fuzz_models.py")
    parser.add_argument("--case", type=int, default=None, help="number of the case")
    parser.add_argument("--weights", type=float, default=1 / 3, metavar="SHARE", help="as in fuzz_models.py")
    parser.add_argument("--variant", help="of the case; by default the first on which the solver is wrong")
    parser.add_argument("--solver", choices=sorted(PROGRAMS), default="highs")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has the solver's package")
    parser.add_argument(
        "--option", type=_option, action="append", default=[], metavar="NAME=VALUE", help="of the solver"
    )
    parser.add_argument("--point", type=Path, help="file of a feasible point (.sol, .mst)")
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds of each run of the solver")
    parser.add_argument("--repeat", type=int, default=1, help="runs of the solver until a signal ends one")
    parser.add_argument("--minutes", type=float, default=np.inf, help="after which nothing more is tried")
    parser.add_argument(
        "-o", "--out", type=Path, default=Path("shrunken.mps"), help="the report is beside it (.md)"
    )
    try:
        print("\n" + run(parser.parse_args()))
    except (MipforestError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
