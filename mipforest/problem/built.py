"""A formulation built for a data set: the model, the points of it that trees stand for, and what users change in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.errors import MipforestError
from mipforest.files import write_model
from mipforest.model import Model
from mipforest.model.constraints import ConstraintBlock
from mipforest.model.matrix import MatrixForm, Values
from mipforest.problem.instance import Instance
from mipforest.problem.operations import Operations
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.trees import Topology, Tree


class StartError(MipforestError, ValueError):
    """A start tree that does not fit the problem."""


@dataclass(frozen=True, eq=False)
class BuiltProblem:
    """A formulation bound to a data set, and its model.

    Attributes
    ----------
    formulation
        What was built.
    instance
        What it knows of the data set.
    model
        The model, an ordinary one: add constraints or fix variables.
    prepare_seconds, build_seconds
        Wall time of binding the formulation to the data, and of building the model.
    as_built
        The model before a user changed it.
    """

    formulation: Operations
    instance: Instance
    model: Model
    prepare_seconds: float
    build_seconds: float
    as_built: BuiltModel = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "as_built", BuiltModel(self.model))

    @property
    def data(self) -> Dataset:
        """Training samples."""
        return self.instance.data

    @property
    def topology(self) -> Topology:
        """Index sets of the tree."""
        return self.instance.topology

    def write(self, path: str | Path) -> None:
        """Write the model as ``.mps`` or ``.lp``, or either with ``.gz``; see :func:`mipforest.files.write_model`."""
        write_model(self.model.matrix(), Path(path))

    def start_tree(self, start: str | Tree | None = "default", *, seed: int = 0) -> Tree | None:
        """Return the tree to start from, for scaled features.

        Parameters
        ----------
        start
            ``"default"``, the name of one of the formulation's starts, a tree (its own scaling, if it has
            one, is taken into account), or ``None`` / ``"none"``.
        seed
            Seed of starts that draw.

        Raises
        ------
        ParameterError
            If the formulation has no start of that name.
        StartError
            If the tree has another depth or number of features.
        """
        if start is None or start == "none":
            return None
        if isinstance(start, Tree):
            return self._fitting(start)
        default = self.formulation.starts[0]
        name = default if start == "default" else start
        if name == default and self.instance.known is not None:
            return self.instance.known
        return self.formulation.start(name, self.instance, seed=seed)

    def _fitting(self, tree: Tree) -> Tree:
        """Turn a tree from elsewhere into one for this problem's scaled features."""
        if tree.depth != self.topology.depth or tree.n_features != self.data.p:
            raise StartError(
                f"the start tree has depth {tree.depth} and {tree.n_features} features; the problem has "
                f"depth {self.topology.depth} and {self.data.p}: give a tree of the same depth and data"
            )
        # A start is splits and leaves: another model may label the leaves of a logistic tree anew.
        tree = replace(tree, logistic=False)
        if tree.offset is None or tree.scale is None:
            return tree
        offset, scale = self.data.encoding.offset, self.data.encoding.scale
        return tree.rescaled(offset, scale).unscaled()

    def encoded(self, tree: Tree) -> dict[str, FloatArray]:
        """Return the values of the formulation's blocks for a tree (scaled features), those for constraints included.

        Blocks that a user added by hand are not among them.
        """
        formulation = self.formulation
        added = formulation.expressions(self.model, self.instance).encode(tree)
        values = formulation.encode(tree, self.instance)
        forgotten = [name for name in self.as_built.blocks if name not in values]
        if forgotten:
            raise TypeError(
                f"encode of {formulation.name} gives no values of {', '.join(forgotten)}, which its declare makes; "
                "without them a start is no point of the model, and nothing vouches for them: encode every block"
            )
        return {**values, **added}

    def worst_violation(self, values: Values) -> str:
        """Name the worst violation of the model by values of all its blocks; empty if they are feasible."""
        worst = self.model.violations(values)
        if worst.max <= FEASIBILITY_TOLERANCE:
            return ""
        name, amount = worst.worst(1)[0]
        return f"{name} by {amount:.3g}"


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
