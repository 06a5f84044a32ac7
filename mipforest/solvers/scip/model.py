"""A model in SCIP's own objects, every number to the last bit; its parameters and its start.

Rows are built straight from the matrix, without SCIP's expression operators: 2.2 million entries in 1.7 s. A
detour over an MPS file takes 2.2 s, and SCIP then orders the columns anew. Parameters are checked before they
are set, since SCIP prints its complaints past every redirection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyscipopt.scip import Expr, ExprCons, Model, Term
from scipy import sparse

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.errors import NotAllowed
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.checks import SMALL_ENTRY, JudgedStart, unknown_option


def add_columns(scip: Model, form: MatrixForm) -> list[Any]:
    """Add the columns and the linear objective; give SCIP's variables in order."""
    binary = form.integer & (form.col_lower >= 0) & (form.col_upper <= 1)
    kinds = np.where(binary, "B", np.where(form.integer, "I", "C")).tolist()
    columns = zip(kinds, _sides(form.col_lower), _sides(form.col_upper), form.c.tolist(), strict=True)
    variables = [scip.addVar(vtype=kind, lb=low, ub=high, obj=cost) for kind, low, high, cost in columns]
    scip.addObjoffset(float(form.offset))
    if form.maximize:
        scip.setMaximize()
    return variables


def add_rows(scip: Model, form: MatrixForm, variables: list[Any]) -> None:
    """Add the rows that have a finite side."""
    rows = zip(_left_sides(form.A, variables), _sides(form.row_lower), _sides(form.row_upper), strict=True)
    for left, lower, upper in rows:
        if lower is not None or upper is not None:
            scip.addCons(ExprCons(left, lower, upper))


def add_indicator_rows(scip: Model, form: MatrixForm, variables: list[Any]) -> None:
    """Add the indicator rows, one for each finite side: SCIP takes ``<=`` and ``>=`` only."""
    indicators = form.indicators
    rows = zip(
        indicators.binary.tolist(),
        (indicators.value == 1).tolist(),
        _left_sides(indicators.A, variables),
        _sides(indicators.lower),
        _sides(indicators.upper),
        strict=True,
    )
    for column, at_one, left, lower, upper in rows:
        for sides in ((lower, None), (None, upper)):
            if sides != (None, None):
                scip.addConsIndicator(ExprCons(left, *sides), variables[column], activeone=at_one)


def add_quadratic_objective(scip: Model, form: MatrixForm, variables: list[Any]) -> Any:
    """Add a column that stands for the quadratic part, and give it.

    SCIP's objective is linear: it gets a column ``theta >= 0`` with ``1/2 x'Qx <= theta`` (of ``-Q``, at the
    price ``-theta``, when maximising). The quadratic part must be convex (concave when maximising).
    """
    sign = -1.0 if form.maximize else 1.0
    theta = scip.addVar(lb=0.0, obj=sign)
    triangle = sparse.triu(form.Q).tocoo()
    factor = sign * np.where(triangle.row == triangle.col, 0.5, 1.0) * triangle.data
    terms = {
        Term(variables[i], variables[j]): value
        for i, j, value in zip(triangle.row.tolist(), triangle.col.tolist(), factor.tolist(), strict=True)
    }
    terms[Term(theta)] = -1.0
    scip.addCons(ExprCons(Expr(terms), None, 0.0))
    return theta


def negligible_entries(form: MatrixForm) -> int:
    """Count the matrix entries that SCIP takes for zeros."""
    return sum(int((np.abs(matrix.data) <= SMALL_ENTRY).sum()) for matrix in (form.A, form.indicators.A))


def _left_sides(A: SparseMatrix, variables: list[Any]) -> Iterator[Expr]:
    """Return each row of a CSR matrix as an expression of SCIP."""
    terms = [Term(variable) for variable in variables]
    ends, columns, data = A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    for start, stop in pairwise(ends):
        entries = zip(columns[start:stop], data[start:stop], strict=True)
        yield Expr({terms[column]: value for column, value in entries})


def _sides(values: FloatArray) -> list[float | None]:
    """Return ``None`` for infinite sides."""
    return [None if np.isinf(value) else value for value in values.tolist()]


#: Parameters that would break what this package promises, with what to do instead.
REFUSED = {
    "misc/catchctrlc": "Ctrl-C is taken care of, and keeps the incumbent",
    "exact/enable": "the answer would be read in double precision anyway",
    "constraints/countsols/active": "SCIP would count the feasible points instead of optimising",
}

#: The two lines that SCIP writes for each parameter.
_DESCRIPTION = re.compile(
    r"# \[type: (\w+), advanced: \w+(?:, range: ([\[{].*?[\]}]))?, default: .*\]\n(\S+) = "
)


@dataclass(frozen=True)
class Parameter:
    """What SCIP says of a parameter.

    Attributes
    ----------
    kind
        ``bool``, ``int``, ``longint``, ``real``, ``char`` or ``string``.
    range
        ``[least,greatest]`` of numbers, ``{abc}`` of characters, empty for texts.
    """

    kind: str
    range: str

    def takes(self, value: Any) -> bool:
        """Return whether a value has the right type and lies within the range."""
        if self.kind == "string":
            return isinstance(value, str)
        if self.kind == "char":
            return isinstance(value, str) and len(value) == 1 and value in self.range[1:-1]
        if self.kind == "bool":
            return isinstance(value, bool | int) and value in (0, 1)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind in ("int", "longint") and value % 1 != 0:
            return False
        least, greatest = map(float, self.range[1:-1].split(","))
        return least <= value <= greatest

    def __str__(self) -> str:
        return f"a {self.kind} in {self.range}" if self.range else f"a {self.kind}"


@cache
def parameters() -> dict[str, Parameter]:
    """Return all parameters of SCIP by name, from the settings file that it writes."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "scip.set"
        Model().writeParams(str(file), comments=True, onlychanged=False, verbose=False)
        text = file.read_text()
    return {name: Parameter(kind, limits) for kind, limits, name in _DESCRIPTION.findall(text)}


def set_parameter(scip: Model, name: str, value: Any) -> None:
    """Set one parameter; numpy scalars are taken as Python's.

    Raises
    ------
    NotAllowed
        If SCIP has no such parameter (the nearest are named), or the value is not one that it takes.
    """
    known = parameters()
    if name not in known:
        raise unknown_option("SCIP", name, known)
    if name in REFUSED:
        raise NotAllowed(f"SCIP option {name} = {value!r} is refused: {REFUSED[name]}")
    plain = value.item() if isinstance(value, np.generic) else value
    if not known[name].takes(plain):
        raise NotAllowed(f"SCIP refuses option {name} = {value!r}: it takes {known[name]}")
    scip.setParam(name, plain)


class ScipStart:
    """A start on its way into SCIP.

    A full and feasible start is passed as it is. Of any other the integer values are passed, as a partial
    solution that SCIP's heuristic ``completesol`` completes.

    Parameters
    ----------
    scip
        SCIP, with the model.
    form
        The model.
    variables
        SCIP's variable of each column.
    theta
        SCIP's variable of the quadratic part of the objective, if there is one.

    Attributes
    ----------
    objective
        Value of the start that SCIP took, NaN without one.
    warnings
        What the user should know.
    """

    def __init__(self, scip: Model, form: MatrixForm, variables: list[Any], theta: Any) -> None:
        self.objective = np.nan
        self.warnings: list[str] = []
        self._scip = scip
        self._form = form
        self._variables = variables
        self._theta = theta
        self._given: dict[int, float] = {}
        self._judged = JudgedStart()

    def give(self, start: JudgedStart) -> None:
        """Pass a start to SCIP."""
        self._judged = start
        if start.full is not None:
            if self._give_point(start.full):
                return
            self._judged = replace(
                start, full=None, flaw="the start is infeasible for SCIP's own tolerances", infeasible=True
            )
        self._give_integers()

    @property
    def is_partial(self) -> bool:
        """Whether SCIP was given integer values to complete."""
        return bool(self._given)

    def is_completed_by(self, solution: Any) -> bool:
        """Return whether a solution of SCIP has the integer values that were given."""
        return all(abs(solution[self._variables[j]] - value) < 0.5 for j, value in self._given.items())

    def conclude(self, completion: FloatArray | None) -> None:
        """Take note of the completion that SCIP found, or found not, and of its value."""
        if completion is not None:
            self.objective = self._form.objective(completion)
        self.warnings += self._judged.warnings(taken=completion is not None)

    def _give_point(self, x: FloatArray) -> bool:
        """Pass a feasible point; whether SCIP finds it feasible too."""
        solution = self._scip.createSol()
        for variable, value in zip(self._variables, x.tolist(), strict=True):
            self._scip.setSolVal(solution, variable, value)
        if self._theta is not None and self._form.Q is not None:
            self._scip.setSolVal(solution, self._theta, 0.5 * abs(float(x @ (self._form.Q @ x))))
        # addSol returns True for an infeasible point too.
        if not self._scip.checkSol(solution, printreason=False, original=True):
            self._scip.freeSol(solution)
            return False
        self._scip.addSol(solution)
        self.objective = self._form.objective(x)
        return True

    def _give_integers(self) -> None:
        """Pass the integer values that are integral and within their bounds."""
        if not self._judged.completable or self._judged.integers is None:
            self.warnings += self._judged.warnings(taken=False)
            return
        kept = np.flatnonzero(~np.isnan(self._judged.integers))
        self._given = {int(j): float(self._judged.integers[j]) for j in kept}
        solution = self._scip.createPartialSol()
        for j, value in self._given.items():
            self._scip.setSolVal(solution, self._variables[j], value)
        self._scip.addSol(solution)
