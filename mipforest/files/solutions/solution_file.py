"""What a solution file says, whatever solver wrote it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mipforest.errors import MipforestError
from mipforest.settings import FEASIBILITY_TOLERANCE

#: What the error of a file without a solution says of it.
NO_SOLUTION = "no solution in it"

#: Numbered lines, blanks at both ends removed.
Lines = Iterator[tuple[int, str]]


class PointError(MipforestError, ValueError):
    """A malformed file of a point, or one that does not fit the model.

    Attributes
    ----------
    path
        The file.
    line
        Number of the line at fault, from 1; 0 if it is none in particular.
    reason
        What is wrong.
    """

    def __init__(self, path: str | os.PathLike[str], line: int, reason: str) -> None:
        super().__init__(f"{os.fspath(path)}:{line}: {reason}" if line else f"{os.fspath(path)}: {reason}")
        self.path, self.line, self.reason = Path(path), line, reason


@dataclass(eq=False)
class SolutionFile:
    """What a solution file says.

    Attributes
    ----------
    path
        The file.
    values
        Value by name of the column; by its number, from 1, if the format has no names (:attr:`numbered`).
    objective
        Objective value that the file states, if it does.
    status
        Status in the solver's words, empty if the file states none.
    sparse
        Whether the format leaves zeros out.
    numbered
        Whether columns go by number.
    writer
        Solver that wrote it, empty if the format does not tell.
    """

    path: Path
    values: dict[str, float] = field(default_factory=dict)
    objective: float | None = None
    status: str = ""
    sparse: bool = False
    numbered: bool = False
    writer: str = ""

    def agrees_with(self, objective: float) -> bool:
        """Return whether the file states this objective (up to the tolerance of solvers), or none."""
        return self.objective is None or math.isclose(
            self.objective, objective, rel_tol=FEASIBILITY_TOLERANCE, abs_tol=FEASIBILITY_TOLERANCE
        )

    def add(self, line: int, name: str, text: str) -> None:
        """Take the value of a column.

        Raises
        ------
        PointError
            If it is no finite number, or the column comes a second time.
        """
        try:
            value = float(text)
        except ValueError:
            raise PointError(
                self.path, line, f"the value of {short(name)} is {short(text)}, which is no number"
            ) from None
        if not math.isfinite(value) or "_" in text:
            raise PointError(
                self.path, line, f"the value of {short(name)} is {short(text)}; give a finite number"
            )
        if name in self.values:
            raise PointError(self.path, line, f"{short(name)} comes a second time; keep one of the lines")
        self.values[name] = value


def number_or_none(text: str) -> float | None:
    """Read a stated objective; ``None`` if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def is_number(text: str) -> bool:
    """Return whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def short(text: str) -> str:
    """Quote a text for a message, cut if it is long."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
