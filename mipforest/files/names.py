"""Names that every reader of MPS files takes, and those that every reader of LP files takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: Section headers, set names and markers. HiGHS stops at a row named ``RHS`` or a column named ``QSECTION``;
#: the others are kept out because readers that guess the format of a line may stumble over them too.
KEYWORDS = frozenset(
    """
    NAME OBJSENSE OBJSENCE OBJNAME MAX MIN ROWS USERCUTS LAZYCONS MODELCUTS DELAYEDROWS COLUMNS RHS RANGES
    BOUNDS SOS SOS1 SOS2 SETS QUADOBJ QMATRIX QSECTION QCMATRIX CSECTION INDICATORS GENCONS PWLOBJ SCENARIOS
    BRANCH NEGATIVE FREE ENDATA MARKER INTORG INTEND RNG BND
    """.split()  # noqa: SIM905
)

#: A name made of these characters alone needs no replacement: the printable ones but the colon. Gurobi reads
#: a name with a colon, but then renames all columns in the solution that it writes.
_HARMLESS = re.compile(r"[!-9;-~]*")
_HARMFUL = re.compile(r"[^!-9;-~]")
#: Gurobi and SCIP refuse or cut names of more than 255 characters, Cbc crashes above 161.
LONGEST_NAME = 150
#: ``$`` and ``*`` open comments, quotes open markers.
_BAD_START = re.compile(r"[$*'\"]")
#: What a reader may take for a number (also Fortran's ``1d5``).
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([edED][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
#: First characters of names that need a closer look: a comment, a marker or a possible number.
_SUSPECT_STARTS = frozenset("$*'\"+-.0123456789iInN")


def safe_names(names: Sequence[str], limit: int = LONGEST_NAME, reserved: Iterable[str] = ()) -> list[str]:
    """Make names that are safe in free-format MPS files, and unique.

    Names that are safe, and the first of their kind, stay as they are. In the others

    - every character but the printable ASCII ones (``!`` to ``~``) becomes ``_``: blanks, control
      characters, accents; so does the colon;
    - an empty name, and one that begins with ``$``, ``*`` or a quote, reads as a number, or is a keyword of
      the format (:data:`KEYWORDS`), gets a leading ``_``;
    - what exceeds ``limit`` is cut;
    - a name that is taken gets the first free suffix of ``_2``, ``_3``, ...

    All other punctuation, such as ``[ ] ( ) , . = < > + - #``, is kept: HiGHS, Gurobi and SCIP read it.
    The result depends on the arguments alone.

    Parameters
    ----------
    names
        Wanted names.
    limit
        Greatest number of characters, at least 8.
    reserved
        Names that must not be used.

    Raises
    ------
    ValueError
        If the limit is below 8.
    """
    if limit < 8:
        raise ValueError(f"limit is {limit}; a name needs room for a suffix: give at least 8")
    taken = set(reserved)
    if _all_safe(names, limit, taken):
        return list(names)
    return unique_names(names, [_safe(name) for name in names], limit, taken)


def unique_names(names: Sequence[str], wanted: Sequence[str], limit: int, taken: set[str]) -> list[str]:
    """Cut names to a length and tell equal ones apart by suffixes; names that need no change come first.

    Parameters
    ----------
    names
        Names as they were given.
    wanted
        The same in a syntax that readers take.
    limit
        Greatest number of characters, at least 8.
    taken
        Names that must not be used; those given out are added.
    """
    result: list[str | None] = [None] * len(names)
    for k, (name, given) in enumerate(zip(wanted, names, strict=True)):
        if name == given and len(name) <= limit and name not in taken:
            result[k] = name
            taken.add(name)
    suffixes: dict[str, int] = {}
    return [
        kept if kept is not None else _free_name(name[:limit], limit, taken, suffixes)
        for kept, name in zip(result, wanted, strict=True)
    ]


def _all_safe(names: Sequence[str], limit: int, taken: set[str]) -> bool:
    """Whether no name needs a change; looks at all names together where it can."""
    distinct = set(names)
    if len(distinct) < len(names) or "" in distinct or distinct & taken or distinct & KEYWORDS:
        return False
    if max(map(len, names), default=0) > limit or not _HARMLESS.fullmatch("".join(names)):
        return False
    return all(name == _safe(name) for name in names if name[0] in _SUSPECT_STARTS)


def _safe(name: str) -> str:
    """Replace what breaks readers in one name."""
    if not _HARMLESS.fullmatch(name):
        name = _HARMFUL.sub("_", name)
    if not name or name in KEYWORDS or _BAD_START.match(name) or _NUMBER.fullmatch(name):
        return "_" + name
    return name


def _free_name(name: str, limit: int, taken: set[str], suffixes: dict[str, int]) -> str:
    """Find and take the first free variant of a name; ``suffixes`` remembers where to go on."""
    candidate, number = name, suffixes.get(name, 1)
    while candidate in taken:
        number += 1
        suffix = f"_{number}"
        candidate = name[: limit - len(suffix)] + suffix
    suffixes[name] = number
    taken.add(candidate)
    return candidate


#: Fixed column that carries the constant of the objective; Gurobi's own convention.
CONSTANT = "Constant"

#: The reader of COIN-OR allows 100 characters.
_LONGEST_LP_NAME = 100

#: Section headers and words with a meaning, in any case, of HiGHS, Gurobi, SCIP, GLPK or COIN-OR.
_LP_KEYWORDS = frozenset(
    """
    max min maximum minimum maximize minimize maximise minimise st st. s.t. such subject that to bound bounds
    bin binary binaries gen general generals int integer integers end free semi semis sos sos1 sos2 pwlobj
    scenario lazy user cuts constraints constant
    """.split()  # noqa: SIM905
)

#: Operators, signs of a number or comment, and whatever is no printable ASCII character.
_UNSAFE_IN_LP = re.compile(r"[^!-~]|[*+\-/:<=>\\^|]")
_BRACKETS = str.maketrans("[]", "()")
#: A number, a comment (``;``), or what HiGHS takes for an infinite value however it goes on.
_BAD_LP_START = re.compile(r"[\d.;]|inf|nan$", re.IGNORECASE)


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
    return unique_names(names, [_safe_in_lp(name) for name in names], _LONGEST_LP_NAME, set(reserved))


def _safe_in_lp(name: str) -> str:
    safe = _UNSAFE_IN_LP.sub("_", name.translate(_BRACKETS))
    return f"_{safe}" if not safe or safe.lower() in _LP_KEYWORDS or _BAD_LP_START.match(safe) else safe
