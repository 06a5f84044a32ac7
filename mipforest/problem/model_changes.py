"""What a model was when it was built, to see what a user has changed since."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import Model
from mipforest.model.constraints import ConstraintBlock
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
        self._rows = tuple(_BuiltRows.of(block) for block in model.constraints.values())

    def objective_replaced(self) -> bool:
        """Whether the objective over the built columns changed, or reads columns that were added."""
        now, built = self._model.matrix(), self._form
        n = built.n_columns
        same_linear = (
            np.array_equal(now.c[:n], built.c) and not now.c[n:].any() and now.offset == built.offset
        )
        Q_now, Q_built = _quadratic_entries(now), _quadratic_entries(built)
        return not (same_linear and Q_now == Q_built and now.maximize == built.maximize)

    def touched_blocks(self) -> frozenset[str]:
        """Blocks that added or removed constraints read, or whose bounds or integrality were changed."""
        now, built = self._model.matrix(), self._form
        touched = np.zeros(now.n_columns, dtype=bool)
        blocks = list(self._model.constraints.values())
        unchanged = [rows.block for rows in self._rows if rows.unchanged_in(blocks)]
        for block in {*blocks, *(rows.block for rows in self._rows)}.difference(unchanged):
            touched[block.A.indices] = True
            if block.binary is not None:
                touched[block.binary] = True
        n = built.n_columns
        touched[:n] |= now.col_lower[:n] != built.col_lower
        touched[:n] |= now.col_upper[:n] != built.col_upper
        touched[:n] |= now.integer[:n] != built.integer
        return frozenset(block.name for block in now.columns if touched[block.start : block.stop].any())


def _quadratic_entries(form: MatrixForm) -> dict[tuple[int, int], float]:
    """Entries of Q by position."""
    if form.Q is None:
        return {}
    Q = form.Q.tocoo()
    return dict(zip(zip(Q.row.tolist(), Q.col.tolist(), strict=True), Q.data.tolist(), strict=True))
