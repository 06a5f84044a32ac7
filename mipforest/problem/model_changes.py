"""What a model was when it was built, to see what a user has changed since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.model import Model, VarArray
from mipforest.model.blocks import ConstraintBlock
from mipforest.model.matrix import MatrixForm


@dataclass(frozen=True, eq=False)
class _BuiltRows:
    """A constraint block as it was built, to see whether a user removed or relaxed it."""

    block: ConstraintBlock
    lower: FloatArray
    upper: FloatArray

    @staticmethod
    def of(block: ConstraintBlock) -> _BuiltRows:
        return _BuiltRows(block, block.lower.copy(), block.upper.copy())

    def unchanged_in(self, blocks: list[ConstraintBlock]) -> bool:
        same_sides = np.array_equal(self.lower, self.block.lower) and np.array_equal(
            self.upper, self.block.upper
        )
        return same_sides and any(block is self.block for block in blocks)


@dataclass(frozen=True, eq=False)
class AddedTerms:
    """What a user has added to the objective: that of the model, less the one that it was built with.

    Attributes
    ----------
    c, offset, Q
        (n,) coefficients, constant, and (n, n) the quadratic part, half of which counts; ``None`` without one.
    turned
        Whether the objective is minimised that was maximised, or the other way round: then this is no sum.
    """

    c: FloatArray
    offset: float
    Q: SparseMatrix | None
    turned: bool

    @property
    def any(self) -> bool:
        """Whether anything was added."""
        return bool(self.c.any()) or self.offset != 0 or self.Q is not None or self.turned

    def least(self, lower: FloatArray, upper: FloatArray) -> float:
        """Return a lower bound on the terms within (n,) bounds of the variables; -inf unless they are linear."""
        if self.Q is not None or self.turned:
            return -np.inf
        read = self.c != 0
        ends = self.c[read] * np.where(self.c[read] > 0, lower[read], upper[read])
        return float(ends.sum()) + self.offset

    def value(self, x: FloatArray) -> float:
        """Return the terms at a point."""
        quadratic = 0.0 if self.Q is None else 0.5 * float(x @ (self.Q @ x))
        return float(self.c @ x) + self.offset + quadratic

    def as_row(self, model: Model) -> ConstraintBlock:
        """Return a row that reads the same variables, and bounds nothing.

        The least sum of an objective and of these terms is that over all limits on them: a model in which any such
        limit may stand holds it. So what is proven under added rows is proven under added terms.
        """
        row = self.c.copy()
        if self.Q is not None:  # each with a number of its own: it is the same for no other
            read = np.unique(self.Q.nonzero()[0])
            row[read] = 1.0 + np.abs(row).max(initial=0.0) + np.arange(len(read))
        side = np.full(1, np.inf)
        return ConstraintBlock(model, "objective", (), (), sparse.csr_array(row[None, :]), -side, side)


class BuiltModel:
    """A model as it was built.

    Parameters
    ----------
    model
        The model, before a user has touched it.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._form = model.matrix()
        #: Names of its variable blocks.
        self.blocks = tuple(model.variables)
        self._terms: tuple[MatrixForm, AddedTerms] | None = None
        self._rows = tuple(_BuiltRows.of(block) for block in model.constraints.values())

    @property
    def n_columns(self) -> int:
        """Number of its columns."""
        return self._form.n_columns

    def objective_replaced(self) -> bool:
        """Return whether the objective over the built columns changed, or reads columns that were added."""
        return self.added_terms().any

    def added_terms(self) -> AddedTerms:
        """Return what was added to the objective."""
        now, built = self._model.matrix(), self._form
        if self._terms is not None and self._terms[0] is now:
            return self._terms[1]
        c = now.c.copy()
        c[: built.n_columns] -= built.c
        Q = None
        if _quadratic_entries(now) != _quadratic_entries(built):
            Q = sparse.csr_array((now.n_columns, now.n_columns)) if now.Q is None else now.Q.copy()
            if built.Q is not None:
                Q = Q - _resized(built.Q, now.n_columns)
        terms = AddedTerms(c, now.offset - built.offset, Q, now.maximize != built.maximize)
        self._terms = now, terms
        return self._terms[1]

    def changes(self, neutral: Collection[str] = ()) -> ModelChanges:
        """Return what differs from the model as it was built.

        Parameters
        ----------
        neutral
            Names of added constraint blocks that the formulation wrote itself, and that take nothing from its
            proofs: they count as touched, and lock nothing.
        """
        now, built = self._model.matrix(), self._form
        touched, n = np.zeros(now.n_columns, dtype=bool), built.n_columns
        blocks = list(self._model.constraints.values())
        old = [rows.block for rows in self._rows]
        unchanged = [rows.block for rows in self._rows if rows.unchanged_in(blocks)]
        changed_rows = {*blocks, *old}.difference(unchanged)
        if (terms := self.added_terms()).any:
            blocks.append(terms.as_row(self._model))
            changed_rows.add(blocks[-1])
        for block in changed_rows:
            touched[block.A.indices] = True
            if block.binary is not None:
                touched[block.binary] = True
        lower, upper = now.col_lower.copy(), now.col_upper.copy()
        lower[:n][now.col_lower[:n] == built.col_lower] = -np.inf
        upper[:n][now.col_upper[:n] == built.col_upper] = np.inf
        relaxed_integers = now.integer[:n] != built.integer
        touched[:n] |= relaxed_integers | (now.col_lower[:n] != built.col_lower)
        touched[:n] |= now.col_upper[:n] != built.col_upper
        widened = bool(
            (now.col_lower[:n] < built.col_lower).any() or (now.col_upper[:n] > built.col_upper).any()
        )
        return ModelChanges(
            # A row may read no variable at all: 0 >= 1 is a change, and leaves no solution.
            anything=bool(changed_rows) or bool(touched.any()) or now.n_columns > n,
            blocks=frozenset(block.name for block in now.columns if touched[block.start : block.stop].any()),
            loosened=len(unchanged) < len(old) or bool(relaxed_integers.any()) or widened,
            added=tuple(block for block in blocks if block not in old and block.name not in neutral),
            lower=lower,
            upper=upper,
            form=now,
        )


@dataclass(frozen=True, eq=False)
class ModelChanges:
    """What a user has changed in a model.

    Attributes
    ----------
    anything
        Whether rows, variables or terms of the objective were added, rows removed or relaxed, or bounds or integrality
        changed.
    blocks
        Variable blocks that added or removed constraints read, or whose bounds or integrality were changed.
    loosened
        Whether rows of the built model were removed or relaxed, bounds widened, or integer variables made continuous.
    added
        Constraint blocks that were added, but for those that the formulation vouches for, and a row without sides for
        the terms that were added to the objective.
    lower, upper
        (n,) bounds on columns that are the user's; infinite where they are still those of the built model.
    form
        The model as it is now.
    """

    anything: bool
    blocks: frozenset[str]
    loosened: bool
    added: tuple[ConstraintBlock, ...]
    lower: FloatArray
    upper: FloatArray
    form: MatrixForm

    def locked(self, name: str) -> BoolArray:
        """Return which entries (flat) of a block an added constraint or bound may keep from moving, up or down."""
        columns = np.zeros(self.form.n_columns, dtype=bool)
        for block in self.added:
            columns[block.A.indices[block.A.data != 0]] = True
            if block.binary is not None:
                columns[block.binary] = True
        (where,) = (block for block in self.form.columns if block.name == name)
        columns |= np.isfinite(self.lower) | np.isfinite(self.upper)
        locked: BoolArray = columns[where.start : where.stop]
        return locked

    def symmetric_under(self, columns: IntArray) -> bool:
        """Say whether the added rows and the user's bounds stay the same when columns change places.

        Parameters
        ----------
        columns
            (n,) column that each column changes to; a permutation.
        """
        if not (
            np.array_equal(self.lower[columns], self.lower)
            and np.array_equal(self.upper[columns], self.upper)
        ):
            return False
        if any(block.binary is not None for block in self.added):
            return False  # their conditions would have to change places too
        return all(_row_set(block, columns) == _row_set(block) for block in self.added)

    def ranges(
        self, name: str, entries: Collection[int], within: Mapping[str, FloatArray | float]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the least and greatest values that the added constraints allow variables of a block.

        By linear programmes over the added rows alone, without those that a binary switches on.

        Parameters
        ----------
        name
            The block.
        entries
            Numbers of its entries (flat).
        within
            By block, bounds on the size of its variables in place of the built model's; the user's own bounds hold
            in any case, and so do those of all other blocks.

        Returns
        -------
        least, greatest
            (entries,) values; infinite where nothing bounds them, or no point satisfies the rows.
        """
        from scipy.optimize import linprog  # late: slow to import, and most runs do without

        lower, upper = self.form.col_lower.copy(), self.form.col_upper.copy()
        where = {block.name: block for block in self.form.columns}
        for other, size in within.items():
            part = slice(where[other].start, where[other].stop)
            sizes = np.broadcast_to(size, where[other].shape).ravel()
            lower[part] = np.maximum(self.lower[part], -sizes)
            upper[part] = np.minimum(self.upper[part], sizes)
        rows = [block for block in self.added if block.binary is None]
        A = sparse.vstack(
            [sparse.csr_array((0, self.form.n_columns))]
            + [_widened(block.A, self.form.n_columns) for block in rows],
            format="csr",
        )
        low, high = (
            np.concatenate([[], *(getattr(block, side) for block in rows)]) for side in ("lower", "upper")
        )
        above, below = np.isfinite(high), np.isfinite(low)
        A_ub = sparse.vstack([A[above], -A[below]], format="csr")
        b_ub = np.concatenate([high[above], -low[below]])
        found = np.empty((2, len(entries)))
        for k, entry in enumerate(entries):
            for side, sign in enumerate((1.0, -1.0)):
                c = np.zeros(self.form.n_columns)
                c[where[name].start + entry] = sign
                solved = linprog(c, A_ub=A_ub, b_ub=b_ub, bounds=np.column_stack([lower, upper]))
                found[side, k] = sign * solved.fun if solved.status == 0 else -sign * np.inf
        return found[0], found[1]


def _row_set(block: ConstraintBlock, columns: IntArray | None = None) -> Counter[tuple[bytes, ...]]:
    """Return the rows of a block, each with its sides, in no order; with columns changed to others."""
    A, found = block.A, Counter[tuple[bytes, ...]]()
    for i in range(A.shape[0]):
        entries = slice(A.indptr[i], A.indptr[i + 1])
        at = A.indices[entries].astype(np.int64)
        at = at if columns is None else columns[at]
        order = np.argsort(at, kind="stable")
        sides = np.array([block.lower[i], block.upper[i]])
        found[at[order].tobytes(), A.data[entries][order].tobytes(), sides.tobytes()] += 1
    return found


def _widened(A: SparseMatrix, n: int) -> SparseMatrix:
    """Return a block's rows over all n columns of its model."""
    return sparse.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], n))


def _resized(Q: SparseMatrix, n: int) -> SparseMatrix:
    """Return a quadratic form over all n columns of its model."""
    entries = Q.tocoo()
    return sparse.csr_array((entries.data, (entries.row, entries.col)), shape=(n, n))


def _quadratic_entries(form: MatrixForm) -> dict[tuple[int, int], float]:
    """Return the entries of Q by position."""
    if form.Q is None:
        return {}
    Q = form.Q.tocoo()
    return dict(zip(zip(Q.row.tolist(), Q.col.tolist(), strict=True), Q.data.tolist(), strict=True))


def free_name(model: Model, name: str) -> str:
    """Return a name that no constraint or variable block of a model has yet: ``name``, ``name_2``, ..."""
    taken = {*model.variables, *model.constraints}
    number, free = 1, name
    while any(other == free or other.startswith(f"{free}_") for other in taken):
        number += 1
        free = f"{name}_{number}"
    return free


def add_like(model: Model, name: str, given: VarArray) -> None:
    """Add a block of the same shape, labels and integrality as one of another model."""
    over = tuple(labels or length for labels, length in zip(given.labels, given.shape, strict=True))
    if given.integer.any():
        block = model.integer(name, over, lower=given.lower, upper=given.upper)
        if not given.integer.all():
            block[~given.integer].relax()
    else:
        model.continuous(name, over, lower=given.lower, upper=given.upper)
