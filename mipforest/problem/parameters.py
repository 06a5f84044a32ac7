"""Hyperparameters of formulations, typed and ranged: the source of ``--param``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_type_hints

import numpy as np

from mipforest.arrays import FloatArray

#: A value per branch node: one for all, one per level (root first), or one per node in heap order.
PerNode = float | tuple[float, ...]

_KINDS: dict[Any, str] = {
    float: "number",
    int: "whole number",
    str: "text",
    bool: "yes or no",
    PerNode: "number per node",
}


#: Integers beyond it are no numbers for numpy, and for no solver.
_LARGEST_INTEGER = 2**63 - 1

_YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


class ParameterError(ValueError):
    """A hyperparameter that is unknown, of the wrong type, or out of range."""


def parameter(
    default: Any,
    help: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    whole: bool = False,
    choices: Sequence[str] | None = None,
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
    """
    return dataclasses.field(
        default=default,
        metadata={
            "help": help,
            "above": above,
            "at_least": at_least,
            "below": below,
            "whole": whole,
            "choices": choices,
        },
    )


@dataclass(frozen=True)
class Parameter:
    """What is known of one hyperparameter.

    Attributes
    ----------
    name, kind, default, help
        Its name, kind of value, default value, and meaning.
    above, at_least, below, whole, choices
        As declared with :func:`parameter`.
    """

    name: str
    kind: str
    default: Any
    help: str
    above: float | None
    at_least: float | None
    below: float | None
    whole: bool
    choices: tuple[str, ...] | None

    @property
    def range(self) -> str:
        """The allowed values in words."""
        if self.choices:
            return " | ".join(self.choices)
        sides = [("> ", self.above), (">= ", self.at_least), ("< ", self.below)]
        return ", ".join(f"{sign}{side:g}" for sign, side in sides if side is not None)

    def parse(self, text: str) -> Any:
        """Read a value from the command line: ``10``, ``1e-3``, or ``1,10`` for one value per level or node.

        Raises
        ------
        ParameterError
            If the text is no value of this kind or out of range.
        """
        try:
            value: Any
            if self.kind == "whole number":
                value = int(text)
            elif self.kind == "number":
                value = float(text)
            elif self.kind == "yes or no":
                value = _YES_OR_NO[text.lower()]
            elif self.kind == "number per node":
                parts = tuple(float(part) for part in text.split(","))
                value = parts[0] if len(parts) == 1 else parts
            else:
                value = text
        except (ValueError, KeyError):
            several = (
                ", or several with commas (one per level or per node)"
                if self.kind == "number per node"
                else ""
            )
            raise ParameterError(
                f"parameter {self.name}={text!r} is no {self.kind}; give {self._a_kind}{several}"
            ) from None
        return self.check(value)

    def check(self, value: Any) -> Any:
        """Give the value back, normalised, if it is allowed.

        Raises
        ------
        ParameterError
            If it is of another kind or out of range.
        """
        if self.kind == "text":
            return self._check_choice(value)
        if self.kind == "yes or no":
            return self._check_yes_or_no(value)
        many = (
            self.kind == "number per node"
            and isinstance(value, Sequence | np.ndarray)
            and not isinstance(value, str)
            and np.ndim(value) > 0
        )
        numbers = tuple(self._check_number(v) for v in (value if many else (value,)))
        if not numbers:
            raise ParameterError(
                f"parameter {self.name} is empty; give one value, one per level, or one per node"
            )
        return numbers if many else numbers[0]

    @property
    def _a_kind(self) -> str:
        return self.kind if self.kind == "yes or no" else f"a {self.kind}"

    def _check_number(self, value: Any) -> float | int:
        if isinstance(value, bool | np.bool_) or not isinstance(
            value, int | float | np.integer | np.floating
        ):
            raise ParameterError(f"parameter {self.name} is {value!r}; give a {self.kind}")
        whole = self.kind == "whole number" or self.whole
        exact: Any = value  # an integer of Python has any size
        if (whole or isinstance(value, int)) and abs(exact) > _LARGEST_INTEGER:
            raise ParameterError(
                f"parameter {self.name} is beyond 2^63; give a {'whole number' if whole else 'number'} below it"
            )
        if whole:
            if not float(value).is_integer():
                raise ParameterError(f"parameter {self.name} is {value}; give a whole number")
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
                f"parameter {self.name} is {value}; it must be finite{', ' if self.range else ''}{self.range}"
            )
        return number

    def _check_yes_or_no(self, value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise ParameterError(f"parameter {self.name} is {value!r}; give True or False")
        return bool(value)

    def _check_choice(self, value: Any) -> str:
        if self.choices and value not in self.choices:
            near = get_close_matches(str(value), self.choices, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ParameterError(
                f"parameter {self.name} is {value!r}{hint} Choose from: {', '.join(self.choices)}"
            )
        return str(value)


def parameters_of(cls: type) -> dict[str, Parameter]:
    """All hyperparameters that a dataclass declares with :func:`parameter`, by name."""
    hints = get_type_hints(cls)
    return {
        field.name: Parameter(field.name, _KINDS[hints[field.name]], field.default, **_described(field))
        for field in dataclasses.fields(cls)
        if "help" in field.metadata
    }


def _described(field: dataclasses.Field[Any]) -> dict[str, Any]:
    described = dict(field.metadata)
    described["choices"] = None if described["choices"] is None else tuple(described["choices"])
    return described


def parse_parameters(cls: type, assignments: Sequence[str]) -> dict[str, Any]:
    """Read ``NAME=VALUE`` texts of the command line.

    Raises
    ------
    ParameterError
        If a text has no ``=``, a name is unknown (the nearest is suggested) or given twice, or a value is
        not allowed.
    """
    known = parameters_of(cls)
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip()
        if not equals:
            raise ParameterError(
                f"--param {assignment!r} has no '='; write NAME=VALUE, for example {next(iter(known), 'C')}=1"
            )
        if name not in known:
            # Letters of the papers are easily given in the other case.
            near = [k for k in known if k.lower() == name.lower()] or get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ParameterError(f"no parameter {name!r}{hint} Known: {', '.join(known)}")
        if name in values:
            raise ParameterError(f"parameter {name!r} is given twice")
        values[name] = known[name].parse(text.strip())
    return values


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
