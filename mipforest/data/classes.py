"""Renaming and merging classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mipforest.arrays import IntArray
from mipforest.data.columns import Label, sort_texts, text, to_label
from mipforest.data.errors import DataError, did_you_mean, some_of


@dataclass(frozen=True, eq=False)
class Merger:
    """How K old classes become fewer, or otherwise named, classes.

    Attributes
    ----------
    code
        (K,) new index of each old class.
    values, names
        Labels and names of the new classes.
    """

    code: IntArray
    values: tuple[Label, ...]
    names: tuple[str, ...]


def class_index(label: Label, names: Sequence[str], values: Sequence[Label]) -> int:
    """Find a class by its label, or else by its name.

    Raises
    ------
    DataError
        If there is no such class; names the nearest.
    """
    wanted = text(label)
    for known in ([text(value) for value in values], list(names)):
        if wanted in known:
            return known.index(wanted)
    raise DataError(
        f"no class is called {wanted!r}{did_you_mean(wanted, names)}; the classes are {some_of(names, 20)}"
    )


def relabelled(names: Sequence[str], values: Sequence[Label], mapping: Mapping[Label, Label]) -> Merger:
    """Give classes new labels; equal ones merge, and the new classes are sorted by label.

    Parameters
    ----------
    names, values
        Names and labels of the K classes.
    mapping
        New labels by old label or name; a class that is not named keeps its label and name. A new label
        that is the label or name of an existing class stands for that class.

    Raises
    ------
    DataError
        If a class is unknown or one class only would be left.
    """
    new_values, new_names = list(values), list(names)
    for label, replacement in mapping.items():
        k = class_index(label, names, values)
        new_values[k], new_names[k] = _label_and_name(replacement, names, values)
    first = {text(value): k for k, value in reversed(list(enumerate(new_values)))}
    order = sort_texts(first)
    if len(order) < 2:
        raise DataError(
            f"all classes would become {order[0]!r}: nothing would be left to tell apart; keep at least two"
        )
    code = np.array([order.index(text(value)) for value in new_values], dtype=np.int64)
    return Merger(
        code,
        tuple(new_values[first[label]] for label in order),
        tuple(new_names[first[label]] for label in order),
    )


def _label_and_name(new: Label, names: Sequence[str], values: Sequence[Label]) -> tuple[Label, str]:
    """Give label and name of a new class, or of the existing class that is meant."""
    known = [*map(text, values), *names]
    if text(new) not in known:
        return to_label(new), text(new)
    k = class_index(new, names, values)
    return values[k], names[k]


def binarised(names: Sequence[str], values: Sequence[Label], positive: Sequence[Label]) -> Merger:
    """Merge classes into a negative (0) and a positive one (1).

    A group of one class keeps its label and name; a larger one is called after its members, joined by ``|``.

    Raises
    ------
    DataError
        If a class is unknown, or none or all of the classes are positive.
    """
    code = np.zeros(len(names), dtype=np.int64)
    code[[class_index(label, names, values) for label in positive]] = 1
    if code.min() == code.max():
        which = "all" if code.any() else "none"
        raise DataError(f"{which} of the classes {some_of(names)} are positive; name some of them")
    groups = [np.flatnonzero(code == side).tolist() for side in (0, 1)]
    new_names = tuple("|".join(names[k] for k in group) for group in groups)
    new_values = tuple(
        values[group[0]] if len(group) == 1 else name for group, name in zip(groups, new_names, strict=True)
    )
    return Merger(code, new_values, new_names)
