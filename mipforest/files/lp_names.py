"""Names that every reader of LP files takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mipforest.files.names import unique_names

#: Fixed column that carries the constant of the objective; Gurobi's own convention.
CONSTANT = "Constant"

#: The reader of COIN-OR allows 100 characters.
_LIMIT = 100

#: Section headers and words with a meaning, in any case, of HiGHS, Gurobi, SCIP, GLPK or COIN-OR.
_KEYWORDS = frozenset(
    """
    max min maximum minimum maximize minimize maximise minimise st st. s.t. such subject that to bound bounds
    bin binary binaries gen general generals int integer integers end free semi semis sos sos1 sos2 pwlobj
    scenario lazy user cuts constraints constant
    """.split()  # noqa: SIM905
)

#: Operators, signs of a number or comment, and whatever is no printable ASCII character.
_UNSAFE = re.compile(r"[^!-~]|[*+\-/:<=>\\^|]")
_BRACKETS = str.maketrans("[]", "()")
#: A number, a comment (``;``), or what HiGHS takes for an infinite value however it goes on.
_BAD_START = re.compile(r"[\d.;]|inf|nan$", re.IGNORECASE)


def lp_names(names: Sequence[str], reserved: Iterable[str] = ()) -> list[str]:
    """Make names that are safe in LP files, and unique.

    Names that are safe, and the first of their kind, stay as they are. In the others

    - square brackets, which stand for quadratic terms there, become round ones: ``z[1,n0]`` is ``z(1,n0)``;
    - operators and every character but the printable ASCII ones become ``_``;
    - an empty name, a keyword, and one that begins with a digit, ``.``, ``;`` or ``inf`` get a leading ``_``;
    - what exceeds 100 characters is cut;
    - a name that is taken gets the first free suffix of ``_2``, ``_3``, ...

    Parameters
    ----------
    names
        Wanted names.
    reserved
        Names that must not be used.
    """
    return unique_names(names, [_safe(name) for name in names], _LIMIT, set(reserved))


def _safe(name: str) -> str:
    safe = _UNSAFE.sub("_", name.translate(_BRACKETS))
    return f"_{safe}" if not safe or safe.lower() in _KEYWORDS or _BAD_START.match(safe) else safe
