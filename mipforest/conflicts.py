"""Why a model has no solution: a small set of rows that contradict each other.

The set is found by a deletion filter (Chinneck and Dravnieks, ORSA J. Computing 3, 1991): parts of the model are left
out one after the other, for good where the rest still has no solution. Blocks of rows are tried first, those that were
added last before the others, so that a user's rows go before those of a formulation; then single rows, of which a
solver's own irreducible infeasible subsystem (HiGHS' of linear programmes, Gurobi's) leaves few; then bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import ModelError
from mipforest.model.algebra import between_text, entry_name, row_text
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.model.model import Model
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver, get_solver
from mipforest.solvers.solution import Status
from mipforest.solving import solve_form
from mipforest.time_budget import TimeBudget

#: Seconds for an explanation unless asked otherwise.
TIME_LIMIT = 30.0

#: Share of the time left that one question to the solver may take: one that it cannot answer must not take all.
CHECK_SHARE = 0.25

#: Blocks and bounds that a message shows.
SHOWN = 6

#: What a solver says of a model without a solution; the models that are asked about have no objective.
_NO_SOLUTION = (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED)


@dataclass(frozen=True)
class ConflictingRow:
    """A row of a conflict.

    Attributes
    ----------
    name
        Its name, ``need[1]``.
    block
        Name of its constraint block.
    text
        The row as algebra; an indicator row with its condition before it.
    """

    name: str
    block: str
    text: str


@dataclass(frozen=True)
class Conflict:
    """Rows and bounds that no point satisfies together.

    Attributes
    ----------
    rows
        The rows, those of blocks that were added last first.
    bounds
        The bounds that the conflict needs besides, written as algebra. The values 0 and 1 of binaries count as a
        part of the rows. With indicator rows, all bounds of their columns are named: big-M rows need them.
    irreducible
        Whether the rest has a solution whichever single row is left out, or bound (of a conflict without indicator
        rows); ``False`` where the time ran out, or a solver could not tell.
    """

    rows: tuple[ConflictingRow, ...]
    bounds: tuple[str, ...]
    irreducible: bool

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the constraint blocks of the rows, each once, in their order."""
        return tuple(dict.fromkeys(row.block for row in self.rows))

    def __str__(self) -> str:
        parts = []
        for block in self.blocks:
            first, *others = (row for row in self.rows if row.block == block)
            more = f" and {len(others)} more of {block}" if others else ""
            parts.append(f"{first.name}: {first.text}{more}")
        parts += [f"bound {text}" for text in self.bounds]
        listed = "; ".join(parts[:SHOWN]) + (f"; {len(parts) - SHOWN} more" if len(parts) > SHOWN else "")
        counts = ((len(self.rows), "row"), (len(self.bounds), "bound"))
        size = " and ".join(f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count)
        kind = "a smallest set" if self.irreducible else "perhaps not a smallest set"
        return f"{size} cannot hold together ({kind}): {listed}"


def explain_infeasibility(
    model: Model, solver: str | Solver = "highs", *, time_limit: float | None = TIME_LIMIT
) -> Conflict:
    """Find a smallest set of rows and bounds that contradict each other in a model without a solution.

    "Smallest" means irreducible: without any one of them, the others have a solution. There may be sets with fewer
    rows.

    Parameters
    ----------
    model
        A model without a solution; its objective does not count.
    solver
        Who is asked whether parts of the model have a solution; ``"gurobi"`` and ``"highs"`` also give an irreducible
        infeasible subsystem of their own.
    time_limit
        Seconds; ``None`` for no limit. A conflict that is not reduced to the end by then is returned as it is, as long
        as the model is known to have no solution.

    Raises
    ------
    ModelError
        If the model has a solution, or the solver does not find out in time.
    SolverError
        If the solver is unknown or not installed, or takes no such model.
    """
    plugin = solver if isinstance(solver, Solver) else get_solver(solver)
    return _Filter(model.matrix(), plugin, TimeBudget(time_limit)).conflict()


class _Filter:
    """A deletion filter over the rows and bounds of one model.

    Rows are numbered together, first the linear ones and then the indicator rows.
    """

    def __init__(self, form: MatrixForm, solver: Solver, budget: TimeBudget) -> None:
        self.form = replace(form, c=np.zeros(form.n_columns), Q=None, offset=0.0, maximize=False)
        self.solver, self.budget = solver, budget
        self.complete = True

    def conflict(self) -> Conflict:
        form = self.form
        alone = form.integer & (np.ceil(form.col_lower) > np.floor(form.col_upper))
        if alone.any():
            j = int(np.argmax(alone))
            whole = (
                f"{form.col_lower[j]:g} <= {entry_name(form.columns, j)} <= {form.col_upper[j]:g}, integer"
            )
            return Conflict((), (whole,), irreducible=True)
        blocks = [np.arange(block.start, block.stop) for block in form.rows]
        blocks += [form.n_rows + np.arange(block.start, block.stop) for block in form.indicators.rows]
        self._require_conflict(np.concatenate([np.zeros(0, dtype=np.int64), *blocks]))
        kept = self._filtered(blocks[::-1], len(blocks), self._infeasible)
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *kept])
        rows = self._single_rows(rows)
        lower, upper = self._bounds(rows)
        return self._described(rows, lower, upper)

    def _require_conflict(self, rows: IntArray) -> None:
        verdict = self._infeasible(rows, share=1.0)
        if verdict is None:
            raise ModelError(
                f"{self.solver.name} did not find out whether the model has a solution; give a longer time_limit, "
                "or another solver"
            )
        if not verdict:
            raise ModelError(
                f"the model has a solution: {self.solver.name} found one, and no rows contradict each other; solve it"
            )

    def _single_rows(self, rows: IntArray) -> IntArray:
        """Reduce the rows that are left by the solver's own means, then one by one."""
        time = self.budget.at_most(share=CHECK_SHARE)
        small, _ = self._restricted(rows)
        own = self.solver.infeasible_subsystem(small, SolveSettings(time_limit=time))
        # The solver's set counts only where the check finds no solution either.
        if own is not None and len(own) < len(rows) and self._infeasible(rows[own]):
            rows = rows[own]
        self.complete = True  # what blocks left open, rows may settle: each that stays is asked about below
        kept = self._filtered([np.array([i]) for i in rows], max(1, len(rows) // 4), self._infeasible)
        return np.concatenate([np.zeros(0, dtype=np.int64), *kept])

    def _bounds(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the columns whose lower bounds, and those whose upper bounds the conflict of these rows needs."""
        form = self.form
        small, columns = self._restricted(rows)
        wide_lower, wide_upper = _natural(small)
        has_lower = columns[small.col_lower > wide_lower]
        has_upper = columns[small.col_upper < wide_upper]
        sides = [np.array([j]) for j in (*has_lower, *(form.n_columns + has_upper))]
        if (rows >= form.n_rows).any():
            # Big-M rows of an indicator row need the bounds of its columns.
            return has_lower, has_upper

        def infeasible(kept: IntArray) -> bool | None:
            lower, upper = np.full(form.n_columns, -np.inf), np.full(form.n_columns, np.inf)
            lower[columns], upper[columns] = wide_lower, wide_upper
            at_lower, at_upper = kept[kept < form.n_columns], kept[kept >= form.n_columns] - form.n_columns
            lower[at_lower], upper[at_upper] = form.col_lower[at_lower], form.col_upper[at_upper]
            return self._infeasible(rows, lower=lower, upper=upper)

        found = self._filtered(sides, 1 + len(sides) // 2, infeasible)
        kept = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *found]))
        return kept[kept < form.n_columns], kept[kept >= form.n_columns] - form.n_columns

    def _filtered(
        self, parts: Sequence[IntArray], n_chunks: int, infeasible: Callable[[IntArray], bool | None]
    ) -> list[IntArray]:
        """Leave out parts without which there is still no solution; chunks of them at once, which are halved."""
        open_chunks = [
            [parts[k] for k in chunk] for chunk in np.array_split(np.arange(len(parts)), n_chunks or 1)
        ]
        kept: list[IntArray] = []
        while open_chunks:
            chunk = open_chunks.pop(0)
            if not chunk:
                continue
            rest = [*kept, *(part for later in open_chunks for part in later)]
            verdict = (
                None
                if self.budget.expired
                else infeasible(np.concatenate([np.zeros(0, dtype=np.int64), *rest]))
            )
            if verdict:
                continue
            if verdict is False and len(chunk) > 1 and (half := len(chunk) // 2):
                open_chunks[:0] = [chunk[:half], chunk[half:]]
                continue
            self.complete &= verdict is False
            kept += chunk
        return kept

    def _infeasible(
        self,
        rows: IntArray,
        *,
        share: float = CHECK_SHARE,
        lower: FloatArray | None = None,
        upper: FloatArray | None = None,
    ) -> bool | None:
        """Say whether these rows have no solution, by the linear relaxation or else whole; ``None`` if unknown."""
        if not len(rows):
            return False
        form, _ = self._restricted(rows, lower, upper)
        for asked in (form.relaxed(), form) if form.is_mip else (form,):
            settings = SolveSettings(time_limit=self.budget.at_most(share=share))
            solution = solve_form(asked, self.solver, settings)
            if solution.status in _NO_SOLUTION:
                return True
        return False if solution.found else None

    def _restricted(
        self, rows: IntArray, lower: FloatArray | None = None, upper: FloatArray | None = None
    ) -> tuple[MatrixForm, IntArray]:
        """Return the model of these rows and the columns that they read, and the numbers of these columns."""
        form = self.form
        rows = np.asarray(rows, dtype=np.int64)
        linear, switched = rows[rows < form.n_rows], rows[rows >= form.n_rows] - form.n_rows
        A, B = form.A[linear], form.indicators.A[switched]
        columns = np.unique(np.concatenate([A.indices, B.indices, form.indicators.binary[switched]]))
        columns = columns.astype(np.int64)
        lower = form.col_lower if lower is None else lower
        upper = form.col_upper if upper is None else upper
        indicators = IndicatorRows(
            np.searchsorted(columns, form.indicators.binary[switched]),
            form.indicators.value[switched],
            B[:, columns],
            form.indicators.lower[switched],
            form.indicators.upper[switched],
            (Block("indicator", 0, (len(switched),)),),
        )
        restricted = MatrixForm(
            c=np.zeros(len(columns)),
            A=A[:, columns],
            row_lower=form.row_lower[linear],
            row_upper=form.row_upper[linear],
            col_lower=lower[columns],
            col_upper=upper[columns],
            integer=form.integer[columns],
            indicators=indicators if len(switched) else IndicatorRows.none(len(columns)),
            columns=(Block("x", 0, (len(columns),)),),
            rows=(Block("row", 0, (len(linear),)),),
        )
        return restricted, columns

    def _described(self, rows: IntArray, at_lower: IntArray, at_upper: IntArray) -> Conflict:
        form, found = self.form, []
        for i in rows.tolist():
            if i < form.n_rows:
                named, k, A, switch = form.rows, i, form.A, ""
                lower, upper = form.row_lower[k], form.row_upper[k]
            else:
                switched = form.indicators
                named, k, A = switched.rows, i - form.n_rows, switched.A
                lower, upper = switched.lower[k], switched.upper[k]
                switch = f"{entry_name(form.columns, int(switched.binary[k]))} = {switched.value[k]}"
            block = next(block.name for block in named if block.start <= k < block.stop)
            text = row_text(A, k, lower, upper, form.columns, switch=switch)
            found.append(ConflictingRow(entry_name(named, k), block, text))
        bounds = []
        for j in np.union1d(at_lower, at_upper).tolist():
            low = form.col_lower[j] if j in at_lower else -np.inf
            high = form.col_upper[j] if j in at_upper else np.inf
            bounds.append(between_text(entry_name(form.columns, j), low, high))
        return Conflict(tuple(found), tuple(bounds), self.complete)


def _natural(form: MatrixForm) -> tuple[FloatArray, FloatArray]:
    """Return the (n,) bounds that belong to a variable's kind: 0 and 1 of binaries, none of others."""
    binary = form.integer & (form.col_lower >= 0) & (form.col_upper <= 1)
    return np.where(binary, 0.0, -np.inf), np.where(binary, 1.0, np.inf)
