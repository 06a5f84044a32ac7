"""SCIP's parameters, checked before they are set: SCIP prints its complaints past every redirection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyscipopt.scip import Model

from mipforest.solvers.errors import NotAllowed
from mipforest.solvers.option_names import unknown_option

#: Parameters that would break what this package promises, with what to do instead.
REFUSED = {
    "misc/catchctrlc": "Ctrl-C is taken care of, and keeps the incumbent",
    "exact/enable": "the answer would be read in double precision anyway",
    "constraints/countsols/active": "SCIP would count the feasible points instead of optimising",
}

#: The two lines that SCIP writes for each parameter.
_DESCRIPTION = re.compile(
    r"# \[type: (\w+), advanced: \w+(?:, range: ([\[{].*?[\]}]))?, default: .*\]\n(\S+) = "
)


@dataclass(frozen=True)
class Parameter:
    """What SCIP says of a parameter.

    Attributes
    ----------
    kind
        ``bool``, ``int``, ``longint``, ``real``, ``char`` or ``string``.
    range
        ``[least,greatest]`` of numbers, ``{abc}`` of characters, empty for texts.
    """

    kind: str
    range: str

    def takes(self, value: Any) -> bool:
        """Whether a value has the right type and lies within the range."""
        if self.kind == "string":
            return isinstance(value, str)
        if self.kind == "char":
            return isinstance(value, str) and len(value) == 1 and value in self.range[1:-1]
        if self.kind == "bool":
            return isinstance(value, bool | int) and value in (0, 1)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind in ("int", "longint") and value % 1 != 0:
            return False
        least, greatest = map(float, self.range[1:-1].split(","))
        return least <= value <= greatest

    def __str__(self) -> str:
        return f"a {self.kind} in {self.range}" if self.range else f"a {self.kind}"


@cache
def parameters() -> dict[str, Parameter]:
    """Give all parameters of SCIP by name, from the settings file that it writes."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "scip.set"
        Model().writeParams(str(file), comments=True, onlychanged=False, verbose=False)
        text = file.read_text()
    return {name: Parameter(kind, limits) for kind, limits, name in _DESCRIPTION.findall(text)}


def set_parameter(scip: Model, name: str, value: Any) -> None:
    """Set one parameter; numpy scalars are taken as Python's.

    Raises
    ------
    NotAllowed
        If SCIP has no such parameter (the nearest are named), or the value is not one that it takes.
    """
    known = parameters()
    if name not in known:
        raise unknown_option("SCIP", name, known)
    if name in REFUSED:
        raise NotAllowed(f"SCIP option {name} = {value!r} is refused: {REFUSED[name]}")
    plain = value.item() if isinstance(value, np.generic) else value
    if not known[name].takes(plain):
        raise NotAllowed(f"SCIP refuses option {name} = {value!r}: it takes {known[name]}")
    scip.setParam(name, plain)
