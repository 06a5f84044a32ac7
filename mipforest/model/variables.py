"""Blocks of variables over index sets, and indexing by the sets' labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
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
from mipforest.model.expressions import LinearExpr
from mipforest.model.operators import Shape, fitted

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
        or lists of labels in place of numbers.
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
    if isinstance(key, slice) or key is None or _is_number(key):
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

    def _changed(self) -> None: ...


class VarArray(LinearExpr):
    """An n-dimensional array of variables of a model: a block, or a part of one.

    It is a linear expression, and also gives access to what the model knows of its variables: bounds,
    integrality, and entries by label (``w[:, "age"]``, ``w[["n0", "n2"]]``).

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
        """Lower bounds, in the array's shape (a copy)."""
        return np.array(self.owner._lower[self.columns])

    @property
    def upper(self) -> FloatArray:
        """Upper bounds, in the array's shape (a copy)."""
        return np.array(self.owner._upper[self.columns])

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

    def _take(self, entries: IntArray) -> VarArray:
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
