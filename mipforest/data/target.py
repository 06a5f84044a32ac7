"""What the target column means: classes or a number to predict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data.columns import Label, is_numeric, numbers, sort_texts, text, texts, to_label
from mipforest.data.errors import DataError, did_you_mean, some_of

Task = Literal["classification", "regression"]

#: A numeric target is read as class labels if all values are whole numbers and at most this many differ.
MAX_NUMERIC_CLASSES = 20


@dataclass(frozen=True, eq=False)
class Target:
    """A target column, read.

    Attributes
    ----------
    task
        ``"classification"`` or ``"regression"``.
    y
        (n,) class indices (int64), or values (float64).
    class_values
        The labels of classes 0, 1, ... as the user wrote them; empty for regression.
    notes
        What the user should know about how it was read.
    """

    task: Task
    y: IntArray | FloatArray
    class_values: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()


def read_target(column: Any, task: Task | None = None) -> Target:
    """Read a target column without missing values.

    Unless ``task`` says otherwise: text, categories and true/false are class labels; so are whole numbers
    (2 or 2.0) of which at most 20 differ; every other column of numbers is a regression target. Classes
    are numbered in the order of their labels: numbers (also those written as text) by value, false before
    true, text alphabetically. In a problem with two classes the first is -1, the second +1.

    Parameters
    ----------
    column
        A pandas Series of n values.
    task
        ``"classification"``, ``"regression"`` or ``None`` to infer it.

    Raises
    ------
    DataError
        If there is only one class or value, the task is unknown, or text is to be predicted as a number.
    """
    if task is not None and task not in get_args(Task):
        known = get_args(Task)
        raise DataError(f"unknown task {task!r}{did_you_mean(task, known)}; it is one of {', '.join(known)}")
    numeric = is_numeric(column)
    if numeric:
        values = numbers(column)
        if task is None and (np.any(values % 1) or len(np.unique(values)) > MAX_NUMERIC_CLASSES):
            task = "regression"
        if task == "regression":
            return _regression(values, column.name)
    elif task == "regression":
        raise DataError(
            f"target {column.name!r} holds text or categories, a regression needs numbers; "
            "use task='classification'"
        )
    target = _classification(column)
    if numeric and task is None and len(target.class_values) > 2:
        count = len(target.class_values)
        note = f"whole-number target {column.name!r} read as {count} classes; task='regression' predicts it"
        return replace(target, notes=(note,))
    return target


def match_classes(column: Any, class_values: tuple[Label, ...]) -> IntArray:
    """Give the class index of every value, labels being compared as text.

    Raises
    ------
    DataError
        If a label is not among ``class_values``; names the first such row.
    """
    position = {text(value): k for k, value in enumerate(class_values)}
    labels = texts(column)
    for row, label in zip(column.index, labels, strict=True):
        if label not in position:
            raise DataError(
                f"target {column.name!r} has the class {label!r} in row {row}, which the training data do "
                f"not have (they have {some_of(list(position))}); correct the label or leave out the row"
            )
    return np.array([position[label] for label in labels], dtype=np.int64)


def _regression(values: FloatArray, name: object) -> Target:
    if values.min() == values.max():
        raise DataError(
            f"target {name!r} is {values[0]:g} in all {len(values)} rows: there is nothing to predict"
        )
    return Target("regression", values)


def _classification(column: Any) -> Target:
    first_of: dict[str, Label] = {}
    for value in column:
        first_of.setdefault(text(value), to_label(value))
    class_values = tuple(first_of[label] for label in sort_texts(first_of))
    if len(class_values) == 1:
        only = text(class_values[0])
        raise DataError(
            f"target {column.name!r} has one class only, {only!r} in all {len(column)} rows: nothing can "
            "be told apart; add rows of another class or name another target column"
        )
    return Target("classification", match_classes(column, class_values), class_values)
