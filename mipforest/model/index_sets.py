"""What a formulation may give as the index sets of a block."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

import numpy as np

from mipforest.model.errors import DataValueError, ExpressionError, ShapeError

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
