"""Options under Gurobi's own names, checked: Gurobi itself takes 1.5 threads for 1, and * for any letters."""

from __future__ import annotations

from typing import Any

import gurobipy
import numpy as np
from gurobipy import GRB, GurobiError

from mipforest.solvers.errors import NotAllowed
from mipforest.solvers.option_names import unknown_option


def set_option(model: gurobipy.Model, name: str, value: Any) -> None:
    """Set one option of a model; numpy scalars are taken as Python's.

    Raises
    ------
    NotAllowed
        If Gurobi knows no such option (the nearest are named) or refuses its value.
    """
    known = {option.lower(): option for option in dir(GRB.Param) if not option.startswith("_")}
    if name.lower() not in known:
        raise unknown_option("Gurobi", name, known.values())
    plain = value.item() if isinstance(value, np.generic) else value
    kind = model.getParamInfo(known[name.lower()])[1]
    if not _is_a(plain, kind):
        wanted = {int: "a whole number", float: "a number", str: "a text"}[kind]
        raise NotAllowed(f"Gurobi refuses option {name} = {value!r}: it takes {wanted}")
    try:
        model.setParam(name, kind(plain))
    except OverflowError as error:
        raise NotAllowed(f"Gurobi refuses option {name} = {value!r}: {error}") from error
    except GurobiError as error:
        # What the licence and servers need counts when Gurobi starts, which it has.
        advice = "; it belongs in the licence file" if error.errno == GRB.Error.INVALID_ARGUMENT else ""
        raise NotAllowed(f"Gurobi refuses option {name} = {value!r}: {error}{advice}") from error


def _is_a(value: Any, kind: type) -> bool:
    """Whether a value is of an option's type, or a number that loses nothing in it."""
    if kind is str:
        return isinstance(value, str)
    # NaN is not equal to itself: Gurobi would leave the option as it was.
    return isinstance(value, int | float) and value == value and (kind is float or value % 1 == 0)
