"""Hyperparameters of formulations: fields of a dataclass, the source of ``--param``, and the kinds of their values.

A kind says how values are read from texts, checked, recorded in files and taken from there.
"""

from __future__ import annotations

import csv
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, get_type_hints

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.ensembles import describe_target, fitted_target, names_no_file
from mipforest.errors import ParameterError as ParameterError
from mipforest.errors import did_you_mean, some_of, suggestion

#: A value per branch node: one for all, one per level (root first), or one per node in heap order.
PerNode = float | tuple[float, ...]

#: K rows of K costs: of predicting the class of a column for a sample of the class of a row; ``None`` for 1 per error.
CostMatrix = tuple[tuple[float, ...], ...] | None

#: Integers beyond it are no numbers for numpy, and for no solver.
_LARGEST_INTEGER = 2**63 - 1

#: What a number that is computed from the data is called until a model is built.
RELATIVE = "relative"

#: What parameters of scikit-learn's trees are here; ``None`` where there is nothing of the kind.
SCIKIT_NAMES = {
    "max_depth": "depth",
    "min_samples_leaf": "N_min",
    "ccp_alpha": "alpha",
    "min_impurity_decrease": "alpha",
    "max_features": "B",
    "n_jobs": "threads",
    "n_estimators": "n_trees",
    "max_leaf_nodes": None,
    "min_samples_split": None,
    "criterion": None,
    "splitter": None,
    "monotonic_cst": None,
}

_YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True, kw_only=True)
class ParameterKind(ABC):
    """What values a hyperparameter may have; the fields of a kind narrow them down."""

    #: What a value is called in messages.
    name: ClassVar[str]

    @property
    def label(self) -> str:
        """What a value is called in lists of parameters."""
        return self.name

    @property
    def range(self) -> str:
        """The allowed values in words; empty where all are."""
        return ""

    @abstractmethod
    def parse(self, parameter: str, text: str) -> Any:
        """Read a value of the named parameter from the command line.

        Raises
        ------
        ParameterError
            If the text is no value of this kind or out of range.
        """

    @abstractmethod
    def check(self, parameter: str, value: Any) -> Any:
        """Return a value of the named parameter, normalised, if it is allowed.

        Raises
        ------
        ParameterError
            If it is of another kind or out of range.
        """

    def for_data(self, value: Any, data: Dataset) -> Any:  # noqa: ARG002
        """Prepare a value that an estimator was given for the samples that the estimator is fitted on."""
        return value

    def to_json(self, value: Any) -> Any:
        """Describe a value as JSON takes it."""
        return value

    def may_name_file(self, value: Any) -> bool:  # noqa: ARG002
        """Say whether a value could name a file: one that stands in a file itself is then not to be trusted."""
        return False


@dataclass(frozen=True, kw_only=True)
class Number(ParameterKind):
    """A finite number: ``> above``, ``>= at_least``, ``< below``."""

    name = "number"
    whole: ClassVar[bool] = False

    above: float | None = None
    at_least: float | None = None
    below: float | None = None

    @property
    def range(self) -> str:
        """The bounds in words."""
        sides = [("> ", self.above), (">= ", self.at_least), ("< ", self.below)]
        return ", ".join(f"{sign}{side:g}" for sign, side in sides if side is not None)

    def parse(self, parameter: str, text: str) -> Any:
        """Read ``10`` or ``1e-3``."""
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            raise _no_value(parameter, text, self.name) from None
        return self.check(parameter, value)

    def check(self, parameter: str, value: Any) -> Any:
        """Return an int for a whole number, else a float."""
        return self._number(parameter, value, whole=self.whole)

    def _number(self, parameter: str, value: Any, *, whole: bool) -> float | int:
        if isinstance(value, bool | np.bool_) or not isinstance(
            value, int | float | np.integer | np.floating
        ):
            raise ParameterError(f"parameter {parameter} is {value!r}; give a {self.name}")
        exact: Any = value  # an integer of Python has any size
        if (whole or isinstance(value, int)) and abs(exact) > _LARGEST_INTEGER:
            raise ParameterError(
                f"parameter {parameter} is beyond 2^63; give a {'whole number' if whole else 'number'} below it"
            )
        if whole:
            if not float(value).is_integer():
                raise ParameterError(f"parameter {parameter} is {value}; give a whole number")
            number: float | int = int(value)
        else:
            number = float(value)
        inside = (
            np.isfinite(number)
            and (self.above is None or number > self.above)
            and (self.at_least is None or number >= self.at_least)
            and (self.below is None or number < self.below)
        )
        if not inside:
            raise ParameterError(
                f"parameter {parameter} is {value}; it must be finite{', ' if self.range else ''}{self.range}"
            )
        return number


@dataclass(frozen=True, kw_only=True)
class WholeNumber(Number):
    """A whole number within bounds."""

    name = "whole number"
    whole: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class RelativeNumber(Number):
    """A number within bounds, or :data:`RELATIVE`: the formulation then computes it from the data.

    See :meth:`~mipforest.problem.operations.ModelOperations.for_data`.
    """

    name = f"number, or {RELATIVE}"

    def parse(self, parameter: str, text: str) -> Any:
        """Read ``1e-3`` or ``relative``."""
        if text == RELATIVE:
            return RELATIVE
        try:
            float(text)
        except ValueError:
            raise ParameterError(
                f"parameter {parameter}={text!r} is neither a number nor {RELATIVE!r}; give one of them"
            ) from None
        return super().parse(parameter, text)

    def check(self, parameter: str, value: Any) -> Any:
        """Return a float, or the word."""
        return RELATIVE if is_relative(value) else super().check(parameter, value)


def is_relative(value: object) -> bool:
    """Return whether a value of a :class:`RelativeNumber` is to be computed from the data."""
    return isinstance(value, str) and value == RELATIVE


@dataclass(frozen=True, kw_only=True)
class NumberPerNode(Number):
    """One number, or a tuple with one per level or per branch node; ``whole_numbers`` takes no others."""

    name = "number per node"

    whole_numbers: bool = False

    @property
    def label(self) -> str:
        """Say whether numbers are whole."""
        return f"whole {self.name}" if self.whole_numbers else self.name

    def parse(self, parameter: str, text: str) -> Any:
        """Read ``10``, or ``1,10`` for one value per level or node."""
        try:
            parts = tuple(float(part) for part in text.split(","))
        except ValueError:
            error = _no_value(parameter, text, self.name)
            raise ParameterError(f"{error}, or several with commas (one per level or per node)") from None
        return self.check(parameter, parts[0] if len(parts) == 1 else parts)

    def check(self, parameter: str, value: Any) -> Any:
        """Return a number, or a tuple of numbers."""
        several = (
            isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) and np.ndim(value) > 0
        )
        if not several:
            return self._number(parameter, value, whole=self.whole_numbers)
        if not len(value):
            raise ParameterError(
                f"parameter {parameter} is empty; give one value, one per level, or one per node"
            )
        return tuple(self._number(parameter, one, whole=self.whole_numbers) for one in value)


@dataclass(frozen=True, kw_only=True)
class YesOrNo(ParameterKind):
    """True or false."""

    name = "yes or no"

    def parse(self, parameter: str, text: str) -> bool:
        """Read ``yes``, ``true``, ``no`` or ``false``."""
        if text.lower() not in _YES_OR_NO:
            raise ParameterError(f"parameter {parameter}={text!r} is no {self.name}; give {self.name}")
        return _YES_OR_NO[text.lower()]

    def check(self, parameter: str, value: Any) -> bool:
        """Return a bool of Python."""
        if not isinstance(value, bool | np.bool_):
            raise ParameterError(f"parameter {parameter} is {value!r}; give True or False")
        return bool(value)


@dataclass(frozen=True, kw_only=True)
class Text(ParameterKind):
    """A text: one of ``choices``, or any if there are none."""

    name = "text"

    choices: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """The choices."""
        return " | ".join(self.choices)

    def parse(self, parameter: str, text: str) -> str:
        """Take the text as it is."""
        return self.check(parameter, text)

    def check(self, parameter: str, value: Any) -> str:
        """Suggest the nearest choice in place of another text."""
        if self.choices and value not in self.choices:
            hint = suggestion(str(value), self.choices, otherwise=".")
            raise ParameterError(
                f"parameter {parameter} is {value!r}{hint} Choose from: {', '.join(self.choices)}"
            )
        return str(value)

    def may_name_file(self, value: Any) -> bool:  # noqa: ARG002
        """Say that a free text may."""
        return not self.choices


class NamedCosts(NamedTuple):
    """Costs of errors by the names of classes, before the order of the data's classes is known.

    Attributes
    ----------
    classes
        (K,) names, in the order of the rows.
    rows
        K rows of K costs; columns have the order of the rows.
    """

    classes: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    def ordered(self, parameter: str, data: Dataset) -> tuple[tuple[float, ...], ...]:
        """Return the rows and columns in the order of the data's classes.

        Raises
        ------
        ParameterError
            If a class of the data has no costs, or the data have no such class.
        """
        classes = [str(name) for name in data.classes]
        missing = [name for name in classes if name not in self.classes]
        unknown = [name for name in self.classes if name not in classes]
        problems = [f"no costs of class {some_of(missing)}"] if missing else []
        problems += [f"costs of {some_of(unknown)}, which is no class of {data.name}"] if unknown else []
        if problems:
            raise ParameterError(
                f"parameter {parameter} has {', and '.join(problems)}; give one row and one column for each of "
                f"{some_of(classes)}"
            )
        at = [self.classes.index(name) for name in classes]
        return tuple(tuple(self.rows[i][k] for k in at) for i in at)


@dataclass(frozen=True, kw_only=True)
class Costs(ParameterKind):
    """A matrix of misclassification costs: rows in the order of the data's classes, or by the names of classes.

    Rows are lists, or lines of a ``.csv`` file. With names, it is a data frame (index: true classes, columns: predicted
    ones), a mapping of mappings, or a ``.csv`` file whose first line has the predicted classes behind one entry that
    is no number, and whose other lines begin with the true class. The classes may have any order.
    """

    name = "cost matrix"

    @property
    def range(self) -> str:
        """The shape."""
        return "K x K, >= 0"

    def parse(self, parameter: str, text: str) -> Any:
        """Read ``0,1;5,0``, or the name of a ``.csv`` file."""
        if text.endswith(".csv"):
            return self.check(parameter, text)
        try:
            rows = [[float(entry) for entry in row.split(",")] for row in text.split(";")]
        except ValueError:
            error = _no_value(parameter, text, self.name)
            raise ParameterError(f"{error} such as '0,1;5,0', or a .csv file") from None
        return self.check(parameter, rows)

    def check(self, parameter: str, value: Any) -> Any:
        """Return a tuple of rows, :class:`NamedCosts` where classes have names; ``None`` stays."""
        if value is None:
            return None
        if isinstance(value, str):
            value = _read_costs(parameter, value)
        elif hasattr(value, "to_dict") and hasattr(value, "columns"):
            _check_once(parameter, "row", list(map(str, value.index)))
            _check_once(parameter, "column", list(map(str, value.columns)))
            value = value.to_dict("index")
        if isinstance(value, Mapping):
            value = _costs_by_name(parameter, value)
        if isinstance(value, NamedCosts):
            return NamedCosts(value.classes, _cost_rows(parameter, value.rows))
        return _cost_rows(parameter, value)

    def to_json(self, value: Any) -> Any:
        """Write names as a mapping of mappings."""
        if isinstance(value, NamedCosts):
            rows = [dict(zip(value.classes, row, strict=True)) for row in value.rows]
            return dict(zip(value.classes, rows, strict=True))
        return value

    def may_name_file(self, value: Any) -> bool:
        """Say that a text does; files record the numbers that were read from it."""
        return isinstance(value, str)


def _cost_rows(parameter: str, value: Any) -> tuple[tuple[float, ...], ...]:
    """Return K rows of K costs."""
    try:
        costs = np.array(value, dtype=np.float64)
    except OverflowError:
        raise ParameterError(
            f"parameter {parameter} has an entry beyond double precision; costs are finite and at least 0"
        ) from None
    except (TypeError, ValueError):
        costs = np.zeros(0)
    if costs.ndim != 2 or len(costs) < 2 or costs.shape[0] != costs.shape[1]:
        raise ParameterError(
            f"parameter {parameter} has the shape {np.shape(costs)}; give K rows of K costs, one row for each "
            "class of a sample, one column for each class that is predicted"
        )
    if not (np.isfinite(costs) & (costs >= 0)).all():
        raise ParameterError(
            f"parameter {parameter} has the entry {costs.min():g}; costs are finite and at least 0"
        )
    return tuple(map(tuple, costs.tolist()))


def _costs_by_name(parameter: str, value: Mapping[Any, Any]) -> NamedCosts:
    """Read a mapping from true to predicted classes to costs."""
    if not all(isinstance(row, Mapping) for row in value.values()):
        raise ParameterError(
            f"parameter {parameter} has a class without a row; give the costs by true class, then by predicted class"
        )
    table = {str(true): {str(name): cost for name, cost in row.items()} for true, row in value.items()}
    classes = tuple(table)
    for true, row in table.items():
        if odd := sorted(row.keys() ^ table.keys()):
            raise ParameterError(
                f"parameter {parameter}: class {some_of(odd)} has only a row, or only a column, at the row of class "
                f"{true}; give one row and one column for each class"
            )
    return NamedCosts(classes, tuple(tuple(row[name] for name in classes) for row in table.values()))


def _read_costs(parameter: str, path: str) -> Any:
    """Read a .csv file with or without names of classes; errors say the line."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            lines = [(reader.line_num, [entry.strip() for entry in row]) for row in reader if any(row)]
    except (OSError, ValueError, csv.Error) as error:
        raise ParameterError(
            f"parameter {parameter}: no costs can be read from {path!r} ({error}); give a .csv file with K lines of K "
            "numbers, or with the names of the classes as first line and first column"
        ) from None
    if not lines or _is_number(lines[0][1][0]):
        return [_costs_of_line(path, at, row) for at, row in lines]
    classes = lines[0][1][1:]
    _check_once(parameter, "column", classes)
    _check_once(parameter, "row", [row[0] for _, row in lines[1:]])
    table = {}
    for at, (true, *row) in lines[1:]:
        if len(row) != len(classes):
            raise ParameterError(
                f"{path}, line {at}: class {true} has {len(row)} costs for {len(classes)} predicted classes; give one "
                "for each"
            )
        table[true] = dict(zip(classes, _costs_of_line(path, at, row), strict=True))
    return table


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _costs_of_line(path: str, at: int, row: Sequence[str]) -> list[float]:
    for entry in row:
        if not _is_number(entry) or not 0 <= float(entry) < np.inf:
            raise ParameterError(
                f"{path}, line {at}: {entry!r} is no cost; costs are finite numbers and at least 0"
            )
    return [float(entry) for entry in row]


def _check_once(parameter: str, what: str, names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ParameterError(
            f"parameter {parameter} has more than one {what} of class {some_of(twice)}; give one for each class"
        )


@dataclass(frozen=True, kw_only=True)
class TargetWeights(ParameterKind):
    """How much each of several targets counts: ``variance``, ``equal``, or a number above 0 for each target."""

    name = "weights of targets"

    @property
    def range(self) -> str:
        """The words, and what numbers may be."""
        return f"{' | '.join(WEIGHTS_IN_WORDS)} | numbers > 0"

    def parse(self, parameter: str, text: str) -> Any:
        """Read ``equal``, or ``1,0.5,2`` for one number per target."""
        if text in WEIGHTS_IN_WORDS:
            return text
        try:
            return self.check(parameter, [float(part) for part in text.split(",")])
        except ValueError:
            words = " or ".join(WEIGHTS_IN_WORDS)
            raise ParameterError(
                f"parameter {parameter}={text!r} weighs no targets; give {words}, or a number above 0 for each target, "
                "with commas"
            ) from None

    def check(self, parameter: str, value: Any) -> Any:
        """Return one of the words, or a tuple of numbers."""
        if isinstance(value, str) and value in WEIGHTS_IN_WORDS:
            return value
        weights = np.atleast_1d(np.asarray([] if isinstance(value, str) else value))
        numeric = weights.ndim == 1 and len(weights) > 0 and weights.dtype.kind in "iuf"
        if not (numeric and np.isfinite(weights).all() and weights.min() > 0):
            raise ParameterError(
                f"parameter {parameter} is {value!r}; give {' or '.join(WEIGHTS_IN_WORDS)}, or a finite number "
                "above 0 for each target (a target that does not count is left out)"
            )
        return tuple(map(float, weights.tolist()))

    @staticmethod
    def of(asked: str | tuple[float, ...], data: Dataset) -> FloatArray:
        """Return the (T,) weight of each target.

        Parameters
        ----------
        asked
            ``"variance"``, ``"equal"``, or T numbers.
        data
            Training samples with several targets; labels, and a target that does not vary, have the weight 1.

        Raises
        ------
        ParameterError
            If there is not one number for each target.
        """
        T = len(data.targets)
        if isinstance(asked, tuple):
            if len(asked) != T:
                raise ParameterError(
                    f"parameter target_weights has {len(asked)} numbers, and {data.name} has {T} targets "
                    f"({', '.join(data.targets)}); give one for each"
                )
            return np.array(asked)
        if asked == "equal" or data.target_classes:
            return np.ones(T)
        away = data.y - np.average(data.y, axis=0, weights=data.weights)
        varies = data.y.min(axis=0) < data.y.max(axis=0)
        variance = np.average(away**2, axis=0, weights=data.weights)
        return np.divide(1.0, variance, out=np.ones(T), where=varies & (variance > 0))


#: Weights of targets that the data decide: of numbers one over the variance, or 1 each; of labels 1 each.
WEIGHTS_IN_WORDS = ("variance", "equal")


@dataclass(frozen=True, kw_only=True)
class TreeEnsemble(ParameterKind):
    """A tree ensemble to mimic, in any form that :func:`mipforest.ensembles.ensemble_for` takes.

    It is checked against the data when the model is built. The command line gives it with ``--ensemble``, suites and
    metadata under the key ``ensemble``; loading one from a file runs code, so that only the user may name a file.
    """

    name = "tree ensemble"

    def parse(self, parameter: str, text: str) -> str:  # noqa: ARG002
        """Take the name of an ensemble to fit, or of a file."""
        return text

    def check(self, parameter: str, value: Any) -> Any:  # noqa: ARG002
        """Take anything: what it means depends on the data."""
        return value

    def for_data(self, value: Any, data: Dataset) -> Any:
        """Fit an estimator that is not fitted; take one out of scikit-learn's ``FrozenEstimator``."""
        return fitted_target(value, data)

    def to_json(self, value: Any) -> str:
        """Say what it is in a few words; a name or a path is written as it is."""
        return describe_target(value)

    def may_name_file(self, value: Any) -> bool:
        """Say that all may but the name of an ensemble to fit anew; ``None`` stands for an object that is gone."""
        return not isinstance(value, str) or not names_no_file(value)


def _no_value(parameter: str, text: str, kind: str) -> ParameterError:
    return ParameterError(f"parameter {parameter}={text!r} is no {kind}; give a {kind}")


#: Kind of a parameter that states none, by its annotation.
_KINDS: dict[Any, type[ParameterKind]] = {
    float: Number,
    int: WholeNumber,
    str: Text,
    bool: YesOrNo,
    PerNode: NumberPerNode,
    CostMatrix: Costs,
}


def parameter(
    default: Any,
    help: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    whole: bool = False,
    choices: Sequence[str] | None = None,
    kind: ParameterKind | None = None,
) -> Any:
    """Declare a hyperparameter as a field of a formulation's dataclass.

    Parameters
    ----------
    default
        Its default value.
    help
        One line that says what it is.
    above, at_least, below
        Range: ``> above``, ``>= at_least``, ``< below``.
    whole
        Whether a :data:`PerNode` value must be a whole number.
    choices
        The values a text parameter may have.
    kind
        Its kind, where the field's annotation does not say it: ``TreeEnsemble()``, or a kind of your own.
    """
    limits = {"above": above, "at_least": at_least, "below": below, "choices": choices and tuple(choices)}
    given = {name: value for name, value in limits.items() if value is not None}
    if whole:
        given["whole_numbers"] = True
    return dataclasses.field(default=default, metadata={"help": help, "kind": kind, "limits": given})


@dataclass(frozen=True)
class Parameter:
    """What is known of one hyperparameter.

    Attributes
    ----------
    name, kind, default, help
        Its name, the values it may have, its default value, and its meaning.
    """

    name: str
    kind: ParameterKind
    default: Any
    help: str

    @property
    def range(self) -> str:
        """The allowed values in words."""
        return self.kind.range

    def parse(self, text: str) -> Any:
        """Read a value from the command line.

        Raises
        ------
        ParameterError
            If the text is no value of this kind or out of range.
        """
        return self.kind.parse(self.name, text)

    def check(self, value: Any) -> Any:
        """Return the value back, normalised, if it is allowed.

        Raises
        ------
        ParameterError
            If it is of another kind or out of range.
        """
        return self.kind.check(self.name, value)

    def may_name_file(self, value: Any) -> bool:
        """Say whether a value could name a file; the default does not."""
        return value != self.default and self.kind.may_name_file(value)


@cache  # every new formulation asks, and reading type hints takes a millisecond
def parameters_of(cls: type) -> Mapping[str, Parameter]:
    """Return all hyperparameters that a dataclass declares with :func:`parameter`, by name."""
    hints = get_type_hints(cls)
    known = {
        field.name: Parameter(field.name, _kind(field, hints), field.default, field.metadata["help"])
        for field in dataclasses.fields(cls)
        if "help" in field.metadata
    }
    return MappingProxyType(known)


def _kind(field: dataclasses.Field[Any], hints: Mapping[str, Any]) -> ParameterKind:
    kind: ParameterKind | None = field.metadata["kind"]
    return kind or _KINDS[hints[field.name]](**field.metadata["limits"])


def plain_parameters_of(cls: type) -> dict[str, Parameter]:
    """Return the hyperparameters that ``--param``, grids and suites take: all but a tree ensemble."""
    return {
        name: known for name, known in parameters_of(cls).items() if not isinstance(known.kind, TreeEnsemble)
    }


def ensemble_parameter_of(cls: type) -> Parameter | None:
    """Return the hyperparameter that is a tree ensemble; ``None`` for a formulation that mimics none."""
    every = parameters_of(cls).values()
    return next((known for known in every if isinstance(known.kind, TreeEnsemble)), None)


def check_parameters(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Normalise values of plain hyperparameters; give them sorted by name.

    Raises
    ------
    ParameterError
        If a name is unknown (the nearest is suggested), or a value is not allowed.
    """
    known = plain_parameters_of(cls)
    for name in values:
        if name not in known:
            model = getattr(cls, "name", cls.__name__)
            _check_not_refused(cls, name)
            raise ParameterError(
                f"{model} has no parameter {name!r:.60}{did_you_mean(name, known)}; it has {', '.join(known)}"
            )
    return {name: known[name].check(value) for name, value in sorted(values.items())}


def parse_parameters(cls: type, assignments: Sequence[str]) -> dict[str, Any]:
    """Read ``NAME=VALUE`` texts of the command line.

    Raises
    ------
    ParameterError
        If a text has no ``=``, a name is unknown (the nearest is suggested) or given twice, or a value is
        not allowed.
    """
    known = plain_parameters_of(cls)
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip()
        if not equals:
            raise ParameterError(
                f"--param {assignment!r} has no '='; write NAME=VALUE, for example {next(iter(known), 'C')}=1"
            )
        if name not in known:
            _check_not_refused(cls, name)
            if meant := meant_by_scikit_name(cls, name):
                raise ParameterError(f"no parameter {name!r}: {meant}. Known: {', '.join(known)}")
            # Letters of the papers are easily given in the other case.
            hint = suggestion(name, known, otherwise=".")
            raise ParameterError(f"no parameter {name!r}{hint} Known: {', '.join(known)}")
        if name in values:
            raise ParameterError(f"parameter {name!r} is given twice")
        values[name] = known[name].parse(text.strip())
    return values


def meant_by_scikit_name(cls: type, name: str) -> str:
    """Say what a parameter of scikit-learn's trees is on the command line; empty where there is none of the kind."""
    ours, known = SCIKIT_NAMES.get(name), plain_parameters_of(cls)
    if ours in ("depth", "threads"):
        return f"what scikit-learn calls {name} is --{ours} here"
    # Where leaves have no least size, alpha is the cost of a feature, not of a split.
    if ours in known and not (ours == "alpha" and "N_min" not in known):
        return f"what scikit-learn's trees call {name} is {ours} here"
    return ""


def _check_not_refused(cls: type, name: str) -> None:
    """Raise an error for a hyperparameter of related models that a formulation refuses with a reason."""
    if reason := getattr(cls, "refused_parameters", {}).get(name):
        raise ParameterError(f"{getattr(cls, 'name', cls.__name__)} takes no {name}: {reason}")


def per_node(name: str, value: PerNode, depth: int) -> FloatArray:
    """Spread a per-node parameter over the branch nodes of a tree.

    Parameters
    ----------
    name
        Name of the parameter, for the message.
    value
        One number; ``depth`` numbers, one per level; or ``2^depth - 1`` numbers, one per branch node in heap
        order.
    depth
        Depth of the tree.

    Returns
    -------
    (2^depth - 1,) array

    Raises
    ------
    ParameterError
        If the number of values is none of these.
    """
    n_branches = 2**depth - 1
    values = np.atleast_1d(np.asarray(value, dtype=float))
    if len(values) in (1, n_branches):
        return np.broadcast_to(values, n_branches).copy()
    if len(values) == depth:
        return np.repeat(values, 2 ** np.arange(depth))
    raise ParameterError(
        f"parameter {name} has {len(values)} values; a tree of depth {depth} takes 1, {depth} (one per "
        f"level) or {n_branches} (one per branch node)"
    )
