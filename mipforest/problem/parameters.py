"""Hyperparameters of formulations, declared as fields of a dataclass: the source of ``--param``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.errors import ParameterError, did_you_mean, suggestion
from mipforest.problem.parameter_kinds import (
    CostMatrix,
    Costs,
    Number,
    NumberPerNode,
    ParameterKind,
    PerNode,
    Text,
    TreeEnsemble,
    WholeNumber,
    YesOrNo,
)

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


def parameters_of(cls: type) -> dict[str, Parameter]:
    """Return all hyperparameters that a dataclass declares with :func:`parameter`, by name."""
    hints = get_type_hints(cls)
    return {
        field.name: Parameter(field.name, _kind(field, hints), field.default, field.metadata["help"])
        for field in dataclasses.fields(cls)
        if "help" in field.metadata
    }


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
            # Letters of the papers are easily given in the other case.
            hint = suggestion(name, known, otherwise=".")
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


__all__ = [
    "CostMatrix",
    "Costs",
    "Number",
    "NumberPerNode",
    "Parameter",
    "ParameterError",
    "ParameterKind",
    "PerNode",
    "Text",
    "TreeEnsemble",
    "WholeNumber",
    "YesOrNo",
    "check_parameters",
    "ensemble_parameter_of",
    "parameter",
    "parameters_of",
    "parse_parameters",
    "per_node",
    "plain_parameters_of",
]
