"""Index sets of a block, and indexing by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

import numpy as np

from mipforest.errors import (
    DataValueError,
    ExpressionError,
    ModelError,
    ShapeError,
    UnknownNameError,
    closest,
)

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
