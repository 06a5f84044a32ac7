"""What the target column means: classes, which can be merged and split evenly, or a number to predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from mipforest.arrays import FloatArray, IntArray
from mipforest.data.lines import row_text
from mipforest.data.table import (
    MAX_NUMERIC_CLASSES,
    Label,
    coded_texts,
    is_numeric,
    numbers,
    rounds,
    sort_texts,
    text,
    texts,
    to_label,
)
from mipforest.errors import DataError, did_you_mean, some_of

Task = Literal["classification", "regression", "prescription", "decision", "multi-output"]

#: The task of several targets, as scikit-learn calls it.
SEVERAL: Task = "multi-output"


#: Most classes of a target without a remark.
MANY_CLASSES = 50


@dataclass(frozen=True, eq=False)
class Target:
    """A target column, interpreted.

    Attributes
    ----------
    task
        ``"classification"``, ``"regression"``, ``"prescription"``, ``"decision"`` or ``"multi-output"``.
    y
        (n,) class indices (int64), or values (float64); of a policy the decision with the highest reward; (n, T) of
        several targets.
    class_values
        The labels of classes, treatments or decisions, 0, 1, ... as the user wrote them; empty for regression.
    notes
        What the user should know about how it was read.
    treatments
        (n,) treatment index of each sample, for a prescription.
    treatment
        Name of the column of treatments.
    rewards
        (n, K) reward of each decision for each sample, for a policy.
    targets, target_classes
        Names of several targets, and of the classes of each, as text; ``()`` where they are numbers.
    """

    task: Task
    y: IntArray | FloatArray
    class_values: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    treatments: IntArray | None = None
    treatment: str | None = None
    rewards: FloatArray | None = None
    targets: tuple[str, ...] = ()
    target_classes: tuple[tuple[str, ...], ...] = ()


def read_targets(columns: Any, task: Task | None = None) -> Target:
    """Read several targets without missing values, all numbers, or labels each with its own classes.

    Unless ``task`` says otherwise, they are labels where each would be as the only target
    (:func:`read_target`), and numbers where all columns hold numbers otherwise. A target that is the same in all rows
    is taken, as others may vary.

    Parameters
    ----------
    columns
        pandas DataFrame of n rows, one column for each target.
    task
        ``"classification"``, ``"regression"`` or ``None`` to infer it.

    Raises
    ------
    DataError
        If no target varies, or some are numbers and others labels.
    """
    each = [column for _, column in columns.items()]
    names = tuple(str(column.name) for column in each)
    if task == SEVERAL:
        task = None
    if task not in (None, "classification", "regression"):
        raise DataError(f"several targets are numbers or labels, and the task is {task!r}; leave task out")
    numeric = [is_numeric(column) for column in each]
    labels = [not kind or _few_whole_numbers(column) for column, kind in zip(each, numeric, strict=True)]
    if task is None:
        task = "classification" if all(labels) else "regression"
    if task == "regression" and not all(numeric):
        text_columns = [name for name, kind in zip(names, numeric, strict=True) if not kind]
        raise DataError(
            f"the targets {some_of(text_columns)} hold text or categories, and not all targets do: leaves predict "
            "numbers, or labels",
            hint="use task='classification', or leave some targets out",
            option="use --task classification, or leave some targets out of --targets",
        )
    if all(column.nunique() == 1 for column in each):
        raise DataError(
            f"the targets {some_of(names)} are the same in all {len(columns)} rows: nothing to predict"
        )
    if task == "regression":
        return Target(SEVERAL, np.column_stack([numbers(column) for column in each]), targets=names)
    known = [_sorted_labels(column) for column in each]
    y = np.column_stack([match_classes(column, of) for column, of in zip(each, known, strict=True)])
    classes = tuple(tuple(map(text, of)) for of in known)
    note = f"targets {some_of(names)} read as labels; task='regression' predicts numbers"
    return Target(SEVERAL, y, notes=(note,) if all(numeric) else (), targets=names, target_classes=classes)


def read_targets_like(columns: Any, classes: tuple[tuple[str, ...], ...]) -> Target:
    """Read several targets as those of training samples were read, with their classes, ``()`` for numbers.

    Raises
    ------
    DataError
        If a class is not among them, or a value is no number.
    """
    names = tuple(map(str, columns.columns))
    if not classes:
        values = np.column_stack([numbers(column) for _, column in columns.items()])
        return Target(SEVERAL, values, targets=names)
    y = [match_classes(column, of) for (_, column), of in zip(columns.items(), classes, strict=True)]
    return Target(SEVERAL, np.column_stack(y), targets=names, target_classes=classes)


def read_rewards(rewards: ArrayLike, decisions: Sequence[str] | None = None) -> Target:
    """Read the rewards of decisions.

    Parameters
    ----------
    rewards
        (n, K) finite numbers of any sign, K at least 2: what each decision is worth for each sample, such as its doubly
        robust score.
    decisions
        Names of the K decisions; ``0, 1, ...`` unless given.

    Raises
    ------
    DataError
        If they have another shape, are not finite, or there are not as many names.
    """
    try:
        table = np.array(rewards, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"rewards must be numbers ({error}); give one row per sample, one column per decision"
        ) from None
    if table.ndim != 2 or table.shape[1] < 2:
        raise DataError(
            f"rewards have shape {table.shape}; give one row per sample and a column for each of two or more decisions"
        )
    infinite = np.argwhere(~np.isfinite(table))
    if len(infinite):
        row, k = infinite[0].tolist()
        raise DataError(
            f"the reward of decision {k} in row {row} is {table[row, k]}; rewards are finite numbers: estimate it, or "
            "leave out the row"
        )
    names = tuple(map(str, range(table.shape[1]) if decisions is None else decisions))
    if len(names) != table.shape[1]:
        raise DataError(
            f"{len(names)} names for {table.shape[1]} decisions; give one for each column of rewards"
        )
    return Target("decision", table.argmax(axis=1).astype(np.int64), names, rewards=table)


def read_target(column: Any, task: Task | None = None, treatment: Any = None) -> Target:
    """Read a target column without missing values; with treatments, it holds the outcomes that these led to.

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
    treatment
        A pandas Series of n treatments (numbers, text or categories), numbered as classes are, or ``None``.

    Raises
    ------
    DataError
        If there is only one class or value, the task is unknown, or text, or whole numbers that float64 would
        round, are to be predicted as numbers.
    """
    if treatment is not None:
        labels = _sorted_labels(treatment)
        return _prescription(read_target(column, "regression"), labels, treatment)
    if task == "decision":
        raise DataError(
            "a policy is found for rewards, one for each sample and decision, not for a target column",
            hint="give them as rewards=, or leave task out",
            option="name their columns with --rewards",
        )
    if task == "prescription":
        raise DataError(
            f"to prescribe, each row of {column.name!r} needs the treatment that led to it",
            hint="name the column of treatments as treatment=, or leave task out",
            option="name the column of treatments with --treatment",
        )
    if task is not None and task not in get_args(Task):
        known = get_args(Task)
        raise DataError(f"unknown task {task!r}{did_you_mean(task, known)}; it is one of {', '.join(known)}")
    numeric = is_numeric(column)
    if numeric:
        if task is None and not _few_whole_numbers(column):
            task = "regression"
        if task == "regression":
            return _regression(numbers(column), column.name)
    elif task == "regression":
        raise DataError(
            f"target {column.name!r} holds text or categories, a regression needs numbers",
            hint="use task='classification'",
            option="use --task classification",
        )
    target = _classification(column)
    if numeric and task is None and len(target.class_values) > 2:
        count = len(target.class_values)
        note = f"whole-number target {column.name!r} read as {count} classes; task='regression' predicts it"
        return replace(target, notes=(note, *target.notes))
    return target


def are_class_numbers(y: ArrayLike, n: int) -> bool:
    """Return whether labels are an array of n integers, which needs no pandas to be read."""
    return isinstance(y, np.ndarray) and y.dtype.kind == "i" and y.shape == (n,)


def read_class_numbers(labels: IntArray, name: str) -> Target:
    """Read labels that are integers, as :func:`read_target` does for ``task="classification"``.

    Parameters
    ----------
    labels
        (n,) integers.
    name
        Name of the target, for messages.

    Raises
    ------
    DataError
        If there is only one class.
    """
    values, y = np.unique(labels, return_inverse=True)
    _check_two_classes(tuple(values.tolist()), name, len(labels))
    y = y.astype(np.int64)
    return Target(
        "classification", y, tuple(values.tolist()), _many_classes(name, y, len(values), numeric=True)
    )


def read_target_like(task: Task, labels: tuple[Label, ...], column: Any, treatment: Any) -> Target:
    """Read a target column, and one of treatments or ``None``, as those of training samples were read.

    Parameters
    ----------
    task, labels
        Task of the training samples, and labels of their classes or treatments.
    column, treatment
        pandas Series of n values, none missing.

    Raises
    ------
    DataError
        If a class or treatment is not among the labels, or a value is no number.
    """
    if task == "classification":
        return Target(task, match_classes(column, labels), labels)
    read = Target("regression", numbers(column))
    return read if treatment is None else _prescription(read, labels, treatment)


def _prescription(outcomes: Target, labels: tuple[Label, ...], treatment: Any) -> Target:
    given = match_classes(treatment, labels, "treatment")
    return Target("prescription", outcomes.y, labels, (), given, str(treatment.name))


def class_names(target: Target, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of a target's classes: those given, or the labels as text.

    Raises
    ------
    DataError
        If there is not one name for each class.
    """
    labels = tuple(map(text, target.class_values))
    given = labels if names is None else tuple(map(str, names))
    if len(given) != len(labels):
        raise DataError(f"{len(given)} names for {len(labels)} classes ({some_of(labels)}); name every class")
    return given


def refuse_more_classes(classes: Sequence[str], maximum: int, name: str, model: str) -> None:
    """Refuse data with more classes than a model takes, with a DataError."""
    if len(classes) > maximum:
        raise DataError(
            f"{model} takes at most {maximum} classes, {name} has {len(classes)} ({some_of(classes)})",
            hint="merge some with data.relabel(...) or data.binarise(...), or choose another model",
        )


def require_classification(task: Task, name: str, target: str) -> None:
    """Refuse a regression where classes are needed, with a DataError."""
    if task != "classification":
        raise DataError(
            f"{name} is a {task} ({target!r} is a number)",
            hint="use a regression model, or load it with task='classification'",
            option="use a regression model, or load it with --task classification",
        )


def signs(y: IntArray | FloatArray, classes: Sequence[str], name: str) -> FloatArray:
    """Return (n,) -1.0 for the first of two classes, +1.0 for the second; a DataError for another number of classes."""
    if len(classes) != 2:
        raise DataError(
            f"{name} has {len(classes)} classes ({some_of(classes)}), but two are needed",
            hint="merge them with data.binarise(positive=...), or use a model for several classes",
            option="merge them with --positive CLASS, or use a model for several classes",
        )
    return np.where(y == 1, 1.0, -1.0)


def _few_whole_numbers(column: Any) -> bool:
    if rounds(column):  # labels are told apart as they are written
        return len(set(texts(column))) <= MAX_NUMERIC_CLASSES and all(value == int(value) for value in column)
    values = numbers(column)
    return not np.any(values % 1) and len(np.unique(values)) <= MAX_NUMERIC_CLASSES


def match_classes(column: Any, class_values: tuple[Label, ...], what: str = "class") -> IntArray:
    """Return the class (or treatment) index of every value, labels being compared as text.

    Raises
    ------
    DataError
        If a label is not among ``class_values``; names the first such row.
    """
    position = {text(value): k for k, value in enumerate(class_values)}
    labels, codes = coded_texts(column)
    role = "target" if what == "class" else "column"
    found = np.array([position.get(label, -1) for label in labels], dtype=np.int64)[codes]
    if (found < 0).any():
        at = int((found < 0).argmax())
        raise DataError(
            f"{role} {column.name!r} has the {what} {labels[codes[at]]!r} in {row_text(column, column.index[at])}, "
            f"which the training data do not have (they have {some_of(list(position))}); correct the label or leave "
            "out the row"
        )
    return found


def _regression(values: FloatArray, name: object) -> Target:
    if values.min() == values.max():
        raise DataError(
            f"target {name!r} is {values[0]:g} in all {len(values)} rows: there is nothing to predict"
        )
    return Target("regression", values)


def _sorted_labels(column: Any) -> tuple[Label, ...]:
    """Return the distinct labels of a column: numbers by value, text alphabetically."""
    levels, codes = coded_texts(column)
    # Codes number the levels in the order in which they appear.
    _, first = np.unique(codes, return_index=True)
    first_of = {level: to_label(column.iloc[at]) for level, at in zip(levels, first.tolist(), strict=True)}
    return tuple(first_of[label] for label in sort_texts(first_of))


def _classification(column: Any) -> Target:
    class_values = _sorted_labels(column)
    _check_two_classes(class_values, column.name, len(column))
    y = match_classes(column, class_values)
    remarks = _many_classes(column.name, y, len(class_values), numeric=is_numeric(column))
    return Target("classification", y, class_values, remarks)


def _check_two_classes(class_values: tuple[Label, ...], name: object, n: int) -> None:
    if len(class_values) == 1:
        only = text(class_values[0])
        raise DataError(
            f"target {name!r} has one class only, {only!r} in all {n} rows: nothing can "
            "be told apart; add rows of another class or name another target column"
        )


def _many_classes(name: object, y: IntArray, count: int, *, numeric: bool) -> tuple[str, ...]:
    """Remark on a target that may be no classes: very many of them, or one sample each."""
    once = int((np.bincount(y, minlength=count) == 1).sum())
    if count <= MANY_CLASSES and not (once == count and count > 2):
        return ()
    each = f", {'all' if once == count else once} of them of one sample" if once else ""
    numbers_meant = "; task='regression' predicts numbers" if numeric else ""
    return (f"target {name!r} has {count} classes in {len(y)} rows{each}: is it a name?{numbers_meant}",)


@dataclass(frozen=True, eq=False)
class ClassMapping:
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


def relabelled(names: Sequence[str], values: Sequence[Label], mapping: Mapping[Label, Label]) -> ClassMapping:
    """Return classes new labels; equal ones merge, and the new classes are sorted by label.

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
    return ClassMapping(
        code,
        tuple(new_values[first[label]] for label in order),
        tuple(new_names[first[label]] for label in order),
    )


def _label_and_name(new: Label, names: Sequence[str], values: Sequence[Label]) -> tuple[Label, str]:
    """Return label and name of a new class, or of the existing class that is meant."""
    known = [*map(text, values), *names]
    if text(new) not in known:
        return to_label(new), text(new)
    k = class_index(new, names, values)
    return values[k], names[k]


def binarised(names: Sequence[str], values: Sequence[Label], positive: Sequence[Label]) -> ClassMapping:
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
    return ClassMapping(code, new_values, new_names)


def split_rows(
    n: int, test_size: float, seed: int, strata: IntArray | None, names: Sequence[str]
) -> tuple[IntArray, IntArray]:
    """Choose rows as scikit-learn's ``train_test_split`` does.

    Parameters
    ----------
    n
        Number of rows.
    test_size
        Share (a float between 0 and 1) or number (an int) of test rows.
    seed
        Seed of the shuffle.
    strata
        (n,) class indices whose shares both parts are to keep, or ``None``.
    names
        Names of the classes, for messages.

    Returns
    -------
    tuple
        Positions of the training rows and of the test rows, shuffled.

    Raises
    ------
    DataError
        If the sizes are impossible, or a class has too few rows to be in both parts.
    """
    from sklearn.model_selection import train_test_split  # takes seconds, and many runs split nothing

    if strata is not None:
        rare = [names[k] for k in np.flatnonzero(np.bincount(strata) == 1).tolist()]
        if rare:
            raise DataError(
                f"class(es) {some_of(rare)} have one sample, a stratified split needs two; merge classes, "
                "or split with stratify=False"
            )
    try:
        train, test = train_test_split(np.arange(n), test_size=test_size, random_state=seed, stratify=strata)
    except ValueError as error:
        raise DataError(f"{n} samples cannot be split with test_size={test_size}: {error}") from error
    return train, test
