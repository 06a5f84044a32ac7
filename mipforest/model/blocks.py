"""Blocks of variables over index sets, blocks of constraints, the objective, and their rows as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.errors import (
    DataValueError,
    ExpressionError,
    ModelError,
    ShapeError,
    UnknownNameError,
    closest,
)
from mipforest.model.algebra import (
    FEW_ROWS,
    SHOWN_ROWS,
    SMALL,
    between_text,
    cut_off,
    entry_name,
    row_text,
)
from mipforest.model.expressions import LinearExpr, QuadraticExpr
from mipforest.model.matrix import Block, IndicatorRows, stack_rows, widen
from mipforest.model.operators import Relation, Shape, broadcast_shape, fitted, numeric, positions

#: One dimension of a block: a length, or any sized sequence. A sequence's entries are named by its
#: ``labels`` attribute (a sequence of strings), where it has one, else by ``str`` of its items.
IndexSet = Any

#: One index set per dimension (one alone needs no tuple); ``()`` for a scalar.
IndexSets = IndexSet | tuple[IndexSet, ...]

#: The labels of one dimension; ``None`` stands for ``0, 1, 2, ...``.
Labels = tuple[str, ...] | None


def index_sets(over: IndexSets) -> tuple[tuple[int, ...], tuple[Labels, ...]]:
    """Turn index sets into a shape and labels.

    Parameters
    ----------
    over
        One index set, or a tuple of them, one per dimension; ``()`` for a scalar.

    Raises
    ------
    ExpressionError
        If a member is neither a length nor a sized sequence (a set has no order, a generator no length).
    ShapeError
        If a length is negative, or the labels are not as many as the items.
    DataValueError
        If labels repeat.
    """
    members = over if isinstance(over, tuple) else (over,)
    pairs = [_dimension(member) for member in members]
    return tuple(length for length, _ in pairs), tuple(labels for _, labels in pairs)


def _dimension(member: IndexSet) -> tuple[int, Labels]:
    if isinstance(member, int | np.integer) and not isinstance(member, bool):
        if member < 0:
            raise ShapeError(f"an index set of length {member}; give 0 or more")
        return int(member), None
    if (
        isinstance(member, str | set | frozenset)
        or not isinstance(member, Sized)
        or not isinstance(member, Iterable)
    ):
        raise ExpressionError(
            f"{member!r} is no index set; give a length (5), a sequence of labels (['age', 'sex']), "
            "or a tuple of these, one per dimension"
        )
    given = getattr(member, "labels", None)
    labels = tuple(map(str, member if given is None else given))
    if len(labels) != len(member):
        raise ShapeError(
            f"an index set of {len(member)} items has {len(labels)} labels; its attribute 'labels' must name "
            "every item"
        )
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise DataValueError(
            f"label {twice!r} stands twice in one index set; labels must be unique to name entries"
        )
    return len(labels), labels


def numeric_key(key: Any, labels: tuple[Labels, ...]) -> tuple[Any, ...]:
    """Turn an index that may hold labels into one that numpy understands.

    Parameters
    ----------
    key
        What stands between the brackets: numbers, slices, masks, arrays, ``...``, ``None``, and labels
        or lists of labels in place of numbers. A slice from label to label holds both, as in pandas.
    labels
        Labels per dimension.

    Returns
    -------
    tuple
        One index per place; ``...`` is written out.

    Raises
    ------
    UnknownNameError
        If a dimension has no such label, or no labels.
    """
    keys = key if isinstance(key, tuple) else (key,)
    open_dimensions = max(len(labels) - sum(map(_span, keys)), 0)
    numbers: list[Any] = []
    axis = 0
    for k in keys:
        if k is Ellipsis:
            numbers += [slice(None)] * open_dimensions
            axis += open_dimensions
        else:
            numbers.append(_positions(k, axis, labels))
            axis += _span(k)
    return tuple(numbers)


def kept_labels(keys: tuple[Any, ...], labels: tuple[Labels, ...], ndim: int) -> tuple[Labels, ...]:
    """Return the labels of an indexed array; dimensions keep theirs under slices, numbers, and one list or mask."""
    lists = [k for k in keys if not isinstance(k, slice) and k is not None and not _is_number(k)]
    numbers = any(_is_number(k) for k in keys)
    if lists and (len(lists) > 1 or numbers or np.ndim(lists[0]) != 1):
        return (None,) * ndim
    kept: list[Labels] = []
    remaining = list(labels)
    for k in keys:
        if k is None:
            kept.append(None)
            continue
        here = remaining.pop(0)
        if not _is_number(k):
            kept.append(None if here is None else tuple(np.asarray(here, dtype=object)[k]))
    return (*kept, *remaining)


def _is_number(key: Any) -> bool:
    return isinstance(key, int | np.integer) and not isinstance(key, bool)


def _span(key: Any) -> int:
    """Return the number of dimensions that one place of an index uses up (``...`` apart)."""
    if key is None or key is Ellipsis or isinstance(key, bool | np.bool_):
        return 0
    if isinstance(key, list | np.ndarray):
        array = np.asarray(key)
        return array.ndim if array.dtype == bool else 1
    return 1


def _positions(key: Any, axis: int, labels: tuple[Labels, ...]) -> Any:
    """Replace labels in one place of an index by numbers."""
    if isinstance(key, str):
        return _position(key, axis, labels)
    if isinstance(key, slice):
        first, last = key.start, key.stop
        start = _position(first, axis, labels) if isinstance(first, str) else first
        stop = _position(last, axis, labels) + 1 if isinstance(last, str) else last
        return slice(start, stop, key.step)
    if key is None or _is_number(key):
        return key
    array = np.asarray(key)
    if array.ndim == 1 and array.size and all(isinstance(k, str) for k in array):
        return np.array([_position(k, axis, labels) for k in array], dtype=np.int64)
    return key


def _position(label: str, axis: int, labels: tuple[Labels, ...]) -> int:
    here = labels[axis] if axis < len(labels) else None
    if here is None:
        raise UnknownNameError(
            f"dimension {axis} of these {len(labels)} has no labels; use numbers instead of {label!r}"
        )
    try:
        return here.index(label)
    except ValueError:
        raise UnknownNameError(f"no label {label!r} in dimension {axis}{closest(label, here)}") from None


def check_name(name: object, taken: Mapping[str, object], kind: str) -> None:
    """Refuse a name that is no text, or that another block of this kind has.

    Raises
    ------
    ModelError
        With the name.
    """
    if not isinstance(name, str) or not name:
        raise ModelError(f"the name of a {kind} is {name!r}; give a non-empty string")
    if name in taken:
        raise ModelError(f"the model already has a {kind} {name!r}; give another name")


class Columns(Protocol):
    """What variables read and change of their model: bounds and integrality by column."""

    _lower: FloatArray
    _upper: FloatArray
    _integer: BoolArray

    @property
    def n_columns(self) -> int:
        """Number of columns so far."""

    def last_point(self, n_columns: int) -> FloatArray:
        """Return the point of the last solution, which must have so many columns."""

    def last_reduced_costs(self, n_columns: int) -> FloatArray:
        """Return the reduced costs of the last solution, which must have so many columns."""

    def _changed(self) -> None: ...


class VarArray(LinearExpr):
    """An n-dimensional array of variables of a model: a block, or a part of one.

    It is a linear expression, and also gives access to what the model knows of its variables: bounds (to read and to
    set), integrality, values and reduced costs after a solve, and entries by label (``w[:, "age"]``,
    ``w[["n0", "n2"]]``, ``w["n0":"n2"]`` with both ends).

    Attributes
    ----------
    columns
        Column numbers, in the array's shape.
    labels
        Labels per dimension, ``None`` where there are none.
    """

    owner: Columns

    def __init__(self, model: Columns, columns: IntArray, labels: tuple[Labels, ...]) -> None:
        self.columns = columns
        self.labels = labels
        self.shape = columns.shape
        self.owner = model

    @property
    def matrix(self) -> SparseMatrix:
        """(size, columns so far) CSR matrix with a single 1 per row."""
        indptr = np.arange(self.size + 1, dtype=np.int32)
        columns = self.columns.ravel().astype(np.int32)
        return sparse.csr_array(
            (np.ones(self.size), columns, indptr), shape=(self.size, self.owner.n_columns)
        )

    @property
    def constant(self) -> FloatArray:
        """(size,) zeros."""
        return np.zeros(self.size)

    def __repr__(self) -> str:
        if not self.size:
            return f"<VarArray of shape {self.shape}, no columns>"
        return f"<VarArray of shape {self.shape}, columns {self.columns.min()}..{self.columns.max()}>"

    # ------------------------------------------------------------------ bounds and integrality

    @property
    def lower(self) -> FloatArray:
        """Lower bounds, in the array's shape (a copy); set by a number or an array, as by :meth:`set_bounds`."""
        return _locked(self.owner._lower[self.columns])

    @lower.setter
    def lower(self, value: Any) -> None:
        self.set_bounds(lower=value)

    @property
    def upper(self) -> FloatArray:
        """Upper bounds, in the array's shape (a copy); set by a number or an array, as by :meth:`set_bounds`."""
        return _locked(self.owner._upper[self.columns])

    @upper.setter
    def upper(self, value: Any) -> None:
        self.set_bounds(upper=value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "value":
            raise AttributeError(
                "values are those of the last solution; fix(value) fixes variables, model.set_start({name: values}) "
                "sets a start"
            )
        if name not in _SETTABLE_OF_VARIABLES:
            raise AttributeError(
                f"variables have no {name!r} to set; set lower or upper, or both by set_bounds(lower, upper)"
            )
        object.__setattr__(self, name, value)

    @property
    def reduced_cost(self) -> FloatArray:
        """Reduced costs at the last solution, in the array's shape: what the objective changes by per unit of a bound.

        ``c - A'y`` of a linear programme with duals y (:attr:`ConstraintBlock.dual`), plus ``Qx`` of a quadratic one.

        Raises
        ------
        ModelError
            If there is none: of a model with integers, before a solve, or of a solver that gives none.
        """
        return np.array(self.owner.last_reduced_costs(_columns_read(self.columns))[self.columns])

    @property
    def integer(self) -> BoolArray:
        """Integrality, in the array's shape (a copy)."""
        return np.array(self.owner._integer[self.columns])

    def set_bounds(self, lower: Any = None, upper: Any = None) -> None:
        """Change bounds; a side that is not given stays.

        Parameters
        ----------
        lower, upper
            Numbers or arrays that broadcast to the array's shape; infinite for none.

        Raises
        ------
        DataValueError
            If a lower bound is above its upper bound, or NaN.
        ShapeError
            If an array does not broadcast to the array's shape.
        """
        low = self.lower if lower is None else fitted(lower, self.shape, "set_bounds")
        high = self.upper if upper is None else fitted(upper, self.shape, "set_bounds")
        check_bounds(low, high, "set_bounds")
        self.owner._lower[self.columns] = low
        self.owner._upper[self.columns] = high
        self.owner._changed()

    def fix(self, value: Any) -> None:
        """Fix the variables to a number, or an array that broadcasts; :meth:`set_bounds` frees them."""
        self.set_bounds(value, value)

    def relax(self) -> None:
        """Drop the integrality of the variables; their bounds stay."""
        self.owner._integer[self.columns] = False
        self.owner._changed()

    # ------------------------------------------------------------------ choosing entries: cheap, no matrix

    def _select(self, entries: IntArray) -> VarArray:
        return VarArray(self.owner, self.columns.ravel()[entries], (None,) * entries.ndim)

    def _apply(self, operator: SparseMatrix, shape: Shape) -> LinearExpr:
        # The operator's entries keep their coefficients and read the variables' columns: no product needed.
        columns = self.columns.ravel().astype(np.int32)[operator.indices]
        matrix = sparse.csr_array(
            (operator.data, columns, operator.indptr), shape=(operator.shape[0], self.owner.n_columns)
        )
        matrix.sum_duplicates()
        return LinearExpr(matrix, np.zeros(operator.shape[0]), shape, self.owner)

    def __getitem__(self, key: Any) -> VarArray:
        keys = numeric_key(key, self.labels)
        try:
            columns = np.asarray(self.columns[keys])
        except IndexError as error:
            raise IndexError(f"{error} (variables of shape {self.shape})") from None
        return VarArray(self.owner, columns, kept_labels(keys, self.labels, columns.ndim))

    @property
    def T(self) -> VarArray:  # noqa: N802
        """The transpose."""
        return VarArray(self.owner, self.columns.T, self.labels[::-1])


#: Attributes of variables that can be set: bounds, and those that the constructor sets.
_SETTABLE_OF_VARIABLES = frozenset({"columns", "labels", "shape", "owner", "lower", "upper"})


def _columns_read(columns: IntArray) -> int:
    """Return how many columns a model must have so that these are among them."""
    return int(columns.max(initial=-1)) + 1


def _locked(values: FloatArray) -> FloatArray:
    """Return a copy that cannot be written to: it would change nothing of the model."""
    copied = np.array(values)
    copied.setflags(write=False)
    return copied


def check_bounds(lower: FloatArray, upper: FloatArray, where: str) -> None:
    """Refuse bounds that cross or are NaN.

    Raises
    ------
    DataValueError
        Naming the first bad entry.
    """
    bad = ~(lower <= upper) | (lower == np.inf) | (upper == -np.inf)
    if bad.any():
        at = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
        raise DataValueError(
            f"{where}: lower bound {lower[at]} and upper bound {upper[at]} at entry {at} leave no value; "
            "give lower <= upper"
        )


class Rows(Protocol):
    """What blocks of constraints read and change of their model."""

    @property
    def constraints(self) -> Mapping[str, ConstraintBlock]:
        """All blocks by name, in order."""

    @property
    def column_blocks(self) -> Sequence[Block]:
        """The naming blocks of the columns."""

    def last_duals(self, name: str, size: int) -> FloatArray:
        """Return the duals of a block of so many rows at the last solution."""

    def remove(self, name: str) -> None:
        """Take a block out."""

    def _changed(self) -> None: ...


class ConstraintBlock:
    """A named block of rows ``lower <= A x <= upper``, one per entry of an array.

    ``print`` writes the rows as algebra. ``block[entries]`` takes some of them (numbers, slices, labels, masks).

    Attributes
    ----------
    name, shape, labels
        Name, shape, and labels per dimension.
    A
        (size, columns so far) CSR matrix.
    binary, value
        (size,) column and value that switch each row on, for indicator blocks; ``None`` for ordinary rows.
    flat_names
        The rows' full names, of a model that was read from a file.
    meaning
        What the rows state, in a line; may be empty.
    """

    def __init__(
        self,
        model: Rows,
        name: str,
        shape: Shape,
        labels: tuple[Labels, ...],
        A: SparseMatrix,
        lower: FloatArray,
        upper: FloatArray,
        binary: IntArray | None = None,
        value: IntArray | None = None,
        flat_names: tuple[str, ...] | None = None,
        meaning: str = "",
    ) -> None:
        self.meaning = meaning
        self.model = model
        self.name = name
        self.shape = shape
        self.labels = labels
        self.A = A
        self._lower = lower
        self._upper = upper
        self.binary = binary
        self.value = value
        self.flat_names = flat_names

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _SETTABLE_OF_ROWS:
            raise AttributeError(_NO_SUCH_SIDE.format(name))
        object.__setattr__(self, name, value)

    @property
    def lower(self) -> FloatArray:
        """(size,) lower sides; set by a number or an array, as by :meth:`set_sides`."""
        return _view(self._lower)

    @lower.setter
    def lower(self, value: Any) -> None:
        self.set_sides(lower=value)

    @property
    def upper(self) -> FloatArray:
        """(size,) upper sides; set by a number or an array, as by :meth:`set_sides`."""
        return _view(self._upper)

    @upper.setter
    def upper(self, value: Any) -> None:
        self.set_sides(upper=value)

    def set_sides(self, lower: Any = None, upper: Any = None) -> None:
        """Change sides; one that is not given stays.

        Parameters
        ----------
        lower, upper
            Numbers, or arrays that broadcast to the block's shape; infinite for none.

        Raises
        ------
        DataValueError
            If a lower side is above its upper side, or NaN.
        ShapeError
            If an array does not broadcast to the block's shape.
        ModelError
            If the block was removed from its model.
        """
        self[...].set_sides(lower, upper)

    def __getitem__(self, key: Any) -> ConstraintRows:
        """Return some of the rows: by numbers, slices, labels, or a boolean mask."""
        keys = numeric_key(key, self.labels)
        try:
            entries = np.asarray(positions(self.shape)[keys])
        except IndexError as error:
            raise IndexError(f"{error} (rows of shape {self.shape})") from None
        return ConstraintRows(self, entries)

    def __iter__(self) -> Iterator[ConstraintRows]:
        """Iterate over the rows along the first dimension, as numpy does."""
        if not self.shape:
            raise TypeError(
                f"constraint block {self.name!r} is one row; print(block) and block.upper read it"
            )
        return (self[k] for k in range(self.shape[0]))

    @property
    def dual(self) -> FloatArray:
        """Duals at the last solution, in the block's shape: what the objective changes by per unit of a row's side.

        Raises
        ------
        ModelError
            If there are none: of a model with integers, before a solve, or of a solver that gives none.
        """
        return self[...].dual

    @property
    def is_indicator(self) -> bool:
        """Whether the rows hold only when a binary has a value."""
        return self.binary is not None

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self._lower)

    @property
    def rows(self) -> range:
        """Row numbers in the matrix form (of the indicator rows, for an indicator block).

        Raises
        ------
        ModelError
            If the block was removed from its model.
        """
        self._refuse_if_removed()
        blocks = list(self.model.constraints.values())
        earlier = blocks[: blocks.index(self)]
        start = sum(block.size for block in earlier if block.is_indicator == self.is_indicator)
        return range(start, start + self.size)

    def relax(self, entries: Any = ...) -> None:
        """Free rows from both sides; they stay in place, so that row numbers do not move.

        Parameters
        ----------
        entries
            Index into the block's shape (numbers, slices, labels, a boolean mask); all rows when left out.

        Raises
        ------
        ModelError
            If the block was removed from its model.
        """
        self[entries].set_sides(-np.inf, np.inf)

    def remove(self) -> None:
        """Take the whole block out of its model.

        Raises
        ------
        ModelError
            If it was removed before.
        """
        self._refuse_if_removed()
        self.model.remove(self.name)

    def block(self, start: int) -> Block:
        """Return the naming block, for rows that start at a number."""
        return Block(self.name, start, self.shape, self.labels, self.flat_names)

    def copied_to(self, model: Rows) -> ConstraintBlock:
        """Return the same block for a copy of the model."""
        lower, upper = self._lower.copy(), self._upper.copy()
        return ConstraintBlock(
            model,
            self.name,
            self.shape,
            self.labels,
            self.A,
            lower,
            upper,
            self.binary,
            self.value,
            self.flat_names,
            self.meaning,
        )

    def _refuse_if_removed(self) -> None:
        if self not in self.model.constraints.values():
            raise ModelError(f"constraint block {self.name!r} was removed from its model; add it again")

    def in_words(self, most: int = SHOWN_ROWS, name: str = "") -> str:
        """Write the block with its meaning, and at most so many rows as algebra, under its own or another name."""
        kind = ("indicator " if self.is_indicator else "") + ("row" if self.size == 1 else "rows")
        title = f"  {name or self.name}, {self.size} {kind}" + (f": {self.meaning}" if self.meaning else "")
        shown = self[...]
        lines = [f"    {line}" for line in shown.lines(min(most, self.size))]
        return "\n".join(
            [title, *lines, *([f"    ... ({self.size - most} more)"] if self.size > most else [])]
        )

    def __repr__(self) -> str:
        kind = "indicator rows" if self.is_indicator else "rows"
        size = f"{self.size} {kind}, {self.A.nnz} nonzeros"
        return f"<ConstraintBlock {self.name!r} of shape {self.shape}, {size}>"

    def __str__(self) -> str:
        return str(self[...])


#: Attributes of a constraint block that can be set: sides, and those that the constructor sets.
_SETTABLE_OF_ROWS = frozenset(
    {
        "meaning",
        "model",
        "name",
        "shape",
        "labels",
        "A",
        "_lower",
        "_upper",
        "binary",
        "value",
        "flat_names",
        "lower",
        "upper",
    }
)

#: Why another one is refused.
_NO_SUCH_SIDE = "rows have no {!r} to set; set lower or upper, or both by set_sides(lower, upper)"


def _view(values: FloatArray) -> FloatArray:
    """Return a view that cannot be written to: the model would not hear of a change."""
    view = values.view()
    view.setflags(write=False)
    return view


class ConstraintRows:
    """Some rows of a constraint block, made by ``block[entries]``; ``print`` writes them as algebra.

    Attributes
    ----------
    block
        The block.
    entries
        Numbers of the rows in the block, in the shape that the index gives.
    """

    __slots__ = ("block", "entries")

    def __init__(self, block: ConstraintBlock, entries: IntArray) -> None:
        self.block: ConstraintBlock
        self.entries: IntArray
        object.__setattr__(self, "block", block)
        object.__setattr__(self, "entries", entries)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("lower", "upper"):
            raise AttributeError(_NO_SUCH_SIDE.format(name))
        object.__setattr__(self, name, value)

    @property
    def shape(self) -> Shape:
        """Shape of the rows that were taken."""
        return self.entries.shape

    @property
    def lower(self) -> FloatArray:
        """Lower sides; set by a number or an array, as by :meth:`set_sides`."""
        return _locked(self.block._lower[self.entries])

    @lower.setter
    def lower(self, value: Any) -> None:
        self.set_sides(lower=value)

    @property
    def upper(self) -> FloatArray:
        """Upper sides; set by a number or an array, as by :meth:`set_sides`."""
        return _locked(self.block._upper[self.entries])

    @upper.setter
    def upper(self, value: Any) -> None:
        self.set_sides(upper=value)

    def set_sides(self, lower: Any = None, upper: Any = None) -> None:
        """Change sides; parameters and errors as for :meth:`ConstraintBlock.set_sides`."""
        block, where = self.block, f"sides of constraint block {self.block.name!r}"
        block._refuse_if_removed()
        low = self.lower if lower is None else fitted(lower, self.shape, where)
        high = self.upper if upper is None else fitted(upper, self.shape, where)
        check_bounds(low, high, where)
        block._lower[self.entries] = low
        block._upper[self.entries] = high
        block.model._changed()

    def relax(self) -> None:
        """Free the rows from both sides; they stay in place."""
        self.set_sides(-np.inf, np.inf)

    @property
    def dual(self) -> FloatArray:
        """Duals at the last solution, see :attr:`ConstraintBlock.dual`."""
        block = self.block
        block._refuse_if_removed()
        if block.is_indicator:
            raise ModelError(f"indicator rows, such as block {block.name!r}, have no duals")
        return np.array(block.model.last_duals(block.name, block.size)[self.entries])

    def lines(self, most: int) -> list[str]:
        """Write at most so many rows as algebra, each with its name."""
        block, columns = self.block, self.block.model.column_blocks
        names, lines = block.block(0), []
        for i in self.entries.ravel()[:most].tolist():
            switch = ""
            if block.binary is not None and block.value is not None:
                switch = f"{entry_name(columns, int(block.binary[i]))} = {block.value[i]}"
            text = row_text(block.A, i, block._lower[i], block._upper[i], columns, switch=switch)
            lines.append(f"{entry_name([names], i)}: {text}")
        return lines

    def __str__(self) -> str:
        return cut_off(self.lines(SHOWN_ROWS + 1), self.entries.size)

    def __repr__(self) -> str:
        return f"<ConstraintRows of {self.block.name!r}, shape {self.shape}>"


class VariableBlocks(dict[str, VarArray]):
    """Variable blocks by name; ``print`` writes each with its kind, its bounds and what it means.

    Parameters
    ----------
    blocks
        The blocks.
    meanings
        What each means, in a line, as far as it is known.
    """

    def __init__(self, blocks: Mapping[str, VarArray], meanings: Mapping[str, str]) -> None:
        super().__init__(blocks)
        self._meanings = meanings

    def __str__(self) -> str:
        return "\n".join(
            f"  {name}{_indices(block)}, {_kind(block)}"
            + (f": {self._meanings[name]}" if name in self._meanings else "")
            for name, block in self.items()
        )


def _indices(block: VarArray) -> str:
    """Write the index sets: ``[n0..n2, 5]``."""
    written = [
        str(length) if labels is None or not length else labels[0] + f"..{labels[-1]}" * (length > 1)
        for length, labels in zip(block.shape, block.labels, strict=True)
    ]
    return f"[{', '.join(written)}]" if written else ""


def _kind(block: VarArray) -> str:
    """Write how many variables a block has, of which kind, and within which bounds where all have the same."""
    if not block.size:
        return "no variables"
    low, high, integer = block.lower, block.upper, block.integer
    same = bool((low == low.flat[0]).all() and (high == high.flat[0]).all())
    if integer.all() and (low >= 0).all() and (high <= 1).all():
        return f"{block.size} binary"
    kind = "integer" if integer.all() else "mixed" if integer.any() else "continuous"
    within = _within(float(low.flat[0]), float(high.flat[0])) if same else "several bounds"
    return f"{block.size} {kind}, {within}"


def _within(low: float, high: float) -> str:
    if -np.inf < low < high < np.inf:
        return f"{low:g} to {high:g}"
    return between_text("", low, high).strip().removeprefix("is ")


class ConstraintBlocks(dict[str, ConstraintBlock]):
    """Constraint blocks by name, with a suggestion for a mistyped one."""

    def __missing__(self, name: str) -> ConstraintBlock:
        raise UnknownNameError(f"no constraint block {name!r} in this model{closest(str(name), self)}")

    def __str__(self) -> str:
        most = SHOWN_ROWS if sum(block.size for block in self.values()) <= SMALL else FEW_ROWS
        return "\n".join(block.in_words(most, name) for name, block in self.items())


def constraint_block(model: Rows, name: str, relation: Any, over: Any) -> ConstraintBlock:
    """Check a comparison and make it a block of a model.

    Raises
    ------
    ModelError
        As :meth:`Model.add <mipforest.model.model.Model.add>`.
    """
    if not isinstance(relation, Relation):
        raise ExpressionError(
            f"constraint block {name!r} is a {type(relation).__name__}, not a comparison of expressions; "
            "write e.g. model.add('budget', cost @ x <= 10)"
        )
    if relation.owner is not model:
        raise ExpressionError(
            f"constraint block {name!r} reads variables of another model; take them from this one: "
            "model['name']"
        )
    if not np.isfinite(relation.A.data).all():
        raise DataValueError(
            f"constraint block {name!r} has a coefficient that is NaN or infinite; check the data it is "
            "built from"
        )
    lower, upper = relation.lower.copy(), relation.upper.copy()
    unusable = np.isnan(lower) | np.isnan(upper) | (lower == np.inf) | (upper == -np.inf)
    if unusable.any():
        first = int(np.argmax(unusable))
        raise DataValueError(
            f"constraint block {name!r} has a row that no point satisfies or that is NaN: entry "
            f"{tuple(map(int, np.unravel_index(first, relation.shape)))} has sides {lower[first]} and "
            f"{upper[first]}; check the data it is built from"
        )
    labels = _row_labels(name, relation.shape, over)
    return ConstraintBlock(model, name, relation.shape, labels, relation.A, lower, upper)


def add_switch(block: ConstraintBlock, binary: Any, value: Any) -> ConstraintBlock:
    """Make a block's rows hold only when binary variables have a value.

    Raises
    ------
    ModelError
        As :meth:`Model.add_indicator <mipforest.model.model.Model.add_indicator>`.
    """
    where = f"indicator block {block.name!r}"
    if np.ndim(value) or value not in (0, 1):
        raise DataValueError(f"{where} has value {value!r}; a binary is 0 or 1")
    if not isinstance(binary, VarArray):
        raise ExpressionError(
            f"{where}: the switch is a {type(binary).__name__}; give binary variables themselves "
            "(and value 0 instead of 1 - z)"
        )
    owner: object = binary.owner
    if owner is not block.model:
        raise ExpressionError(
            f"{where}: the switch is of another model; take it from this one: model['name']"
        )
    if not (binary.integer & (binary.lower >= 0) & (binary.upper <= 1)).all():
        raise ExpressionError(
            f"{where}: the switch has variables that are not binary; make them with model.binary"
        )
    if broadcast_shape(binary.shape, block.shape, "add_indicator") != block.shape:
        raise ShapeError(
            f"{where}: binaries of shape {binary.shape} do not broadcast to rows of shape {block.shape}; "
            "broadcast the comparison to the binaries' shape first, expr.broadcast_to(shape)"
        )
    block.binary = np.broadcast_to(binary.columns, block.shape).flatten()
    block.value = np.full(block.size, value, dtype=np.int64)
    return block


def _row_labels(name: str, shape: Shape, over: Any) -> tuple[Labels, ...]:
    if over is None:
        return (None,) * len(shape)
    lengths, labels = index_sets(over)
    if lengths != shape:
        raise ShapeError(
            f"constraint block {name!r} has shape {shape}, its index sets have lengths {lengths}; "
            "give one index set per dimension of the comparison"
        )
    return labels


@dataclass(frozen=True, eq=False)
class Objective:
    """A scalar expression and its sense."""

    expression: LinearExpr | QuadraticExpr
    maximize: bool

    @property
    def linear(self) -> LinearExpr:
        """The linear part and the constant."""
        return self.expression.linear if isinstance(self.expression, QuadraticExpr) else self.expression

    def coefficients(self, n_columns: int) -> tuple[FloatArray, float, SparseMatrix | None]:
        """Return c, the offset, and Q (``None`` for a linear objective) over all columns."""
        c = widen(self.linear.matrix, n_columns).toarray().ravel()
        Q = self.expression.hessian(n_columns) if isinstance(self.expression, QuadraticExpr) else None
        return c, float(self.linear.constant[0]), Q

    def copied_to(self, model: object) -> Objective:
        """Return the same objective for a copy of the model."""
        linear = LinearExpr(self.linear.matrix, self.linear.constant, (), model)
        if isinstance(self.expression, QuadraticExpr):
            return Objective(
                QuadraticExpr(linear, self.expression.weights, self.expression.pairs), self.maximize
            )
        return Objective(linear, self.maximize)


def objective(model: object, expression: Any, *, maximize: bool) -> Objective:
    """Check an expression (or a number) and make it the objective of a model.

    Raises
    ------
    ModelError
        As :meth:`Model.minimize <mipforest.model.model.Model.minimize>`.
    """
    if not isinstance(expression, LinearExpr | QuadraticExpr):
        values = numeric(expression)
        expression = LinearExpr(sparse.csr_array((values.size, 0)), values.flatten(), values.shape, model)
    if expression.shape != ():
        raise ShapeError(
            f"the objective has shape {expression.shape}, it must have shape (); add .sum(), or weigh the "
            "entries with weights @ expr"
        )
    linear = expression.linear if isinstance(expression, QuadraticExpr) else expression
    if linear.owner is not model:
        raise ExpressionError(
            "the objective reads variables of another model; take them from this one: model['name']"
        )
    weights = expression.weights.data if isinstance(expression, QuadraticExpr) else np.zeros(0)
    if not all(np.isfinite(part).all() for part in (linear.matrix.data, linear.constant, weights)):
        raise DataValueError(
            "the objective has a coefficient that is NaN or infinite; check the data it is built from"
        )
    return Objective(expression, maximize)


def stack_blocks(
    blocks: Sequence[ConstraintBlock], n_columns: int
) -> tuple[SparseMatrix, FloatArray, FloatArray, tuple[Block, ...]]:
    """Return the canonical matrix (no explicit zeros), the sides and the naming blocks, in fresh arrays."""
    A = stack_rows([block.A for block in blocks], n_columns)
    A.sum_duplicates()
    if not A.data.all():
        A.eliminate_zeros()
    starts = np.cumsum([0, *(block.size for block in blocks)])
    named = tuple(block.block(int(start)) for block, start in zip(blocks, starts, strict=False))
    lower = np.concatenate([np.zeros(0), *(block.lower for block in blocks)])
    upper = np.concatenate([np.zeros(0), *(block.upper for block in blocks)])
    return A, lower, upper, named


def stack_indicators(blocks: Sequence[ConstraintBlock], n_columns: int) -> IndicatorRows:
    """Return the indicator rows of several blocks, in fresh arrays."""
    if not blocks:
        return IndicatorRows.none(n_columns)
    A, lower, upper, named = stack_blocks(blocks, n_columns)
    binary = np.concatenate([block.binary for block in blocks if block.binary is not None])
    value = np.concatenate([block.value for block in blocks if block.value is not None])
    return IndicatorRows(binary, value, A, lower, upper, named)
