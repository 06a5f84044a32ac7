"""What model files have in common: names that every reader takes, rows exact to the last bit; what no file tells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.model.matrix import Block, MatrixForm

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
        raise ValueError(f"limit is {limit}; a name needs space for a suffix: give at least 8")
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
    """Return whether no name needs a change; looks at all names together where it can."""
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


#: Opens the comment that names the two file rows which are the sides of one row of the model.
TWO_SIDES = "* two sides of one row: "


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows of an MPS or LP file: the linear rows of a model, then its indicator rows.

    A row with two different finite sides is one row with a range if the file can tell both sides exactly
    (:func:`exact_range`) and it is no indicator row (Gurobi drops the condition of an indicator row that has
    a range). Otherwise it becomes two rows, its lower and, right after it, its upper side.

    Attributes
    ----------
    names
        (m,) safe, unique names.
    kind
        (m,) ``b"N"`` free, ``b"L"``, ``b"G"`` or ``b"E"``.
    rhs
        (m,) right-hand sides, 0 for free rows.
    range
        (m,) positive ranges; NaN where the row has none.
    A
        (m, n) CSR matrix.
    origin
        (m,) number of each row in the model, the indicator rows counted after the linear rows.
    is_upper_half
        (m,) whether the row is the upper side of the row before it.
    """

    names: list[str]
    kind: npt.NDArray[np.bytes_]
    rhs: FloatArray
    range: FloatArray
    A: SparseMatrix
    origin: IntArray
    is_upper_half: BoolArray


def file_rows(
    form: MatrixForm, *, ranges: bool = True, naming: Callable[..., list[str]] = safe_names
) -> FileRows:
    """Lay the rows of a model out for a file.

    Parameters
    ----------
    form
        The model.
    ranges
        Whether the format has ranges; without, every row with two different finite sides becomes two.
    naming
        Makes names safe, as :func:`~mipforest.files.layout.safe_names` does for MPS files.
    """
    indicators = form.indicators
    lower = np.concatenate((form.row_lower, indicators.lower))
    upper = np.concatenate((form.row_upper, indicators.upper))
    A = sparse.vstack((form.A, indicators.A), format="csr") if indicators.n_rows else form.A
    names = naming(form.row_names + [name for block in indicators.rows for name in block.names()])

    two_sided = np.isfinite(lower) & np.isfinite(upper) & (lower < upper)
    kind = np.select(
        [lower == upper, np.isfinite(lower) & ~two_sided, np.isfinite(upper)], [b"E", b"G", b"L"], b"N"
    )
    rhs = np.select([kind == b"N", kind == b"L"], [0.0, upper], lower)
    span = np.full(len(lower), np.nan)
    span[two_sided], anchored_below = exact_range(lower[two_sided], upper[two_sided])
    kind[two_sided] = np.where(anchored_below, b"G", b"L")
    rhs[two_sided] = np.where(anchored_below, lower[two_sided], upper[two_sided])

    split = two_sided & np.isnan(span) if ranges else two_sided.copy()
    split[form.n_rows :] |= two_sided[form.n_rows :]
    origin = np.repeat(np.arange(len(lower)), 1 + split)
    if not split.any():
        return FileRows(names, kind, rhs, span, A, origin, np.zeros(len(lower), dtype=bool))
    span[split] = np.nan
    is_upper_half = np.zeros(len(origin), dtype=bool)
    is_upper_half[1:] = origin[1:] == origin[:-1]
    is_half = split[origin]
    upper_names = iter(naming([names[row] + "_upper" for row in np.flatnonzero(split)], reserved=names))
    return FileRows(
        names=[
            next(upper_names) if half else names[row] for row, half in zip(origin, is_upper_half, strict=True)
        ],
        kind=np.where(is_half, np.where(is_upper_half, b"L", b"G"), kind[origin]),
        rhs=np.where(is_half, np.where(is_upper_half, upper[origin], lower[origin]), rhs[origin]),
        range=span[origin],
        A=A[origin],
        origin=origin,
        is_upper_half=is_upper_half,
    )


def canonical(matrix: SparseMatrix) -> SparseMatrix:
    """Return a matrix sorted in place, with repeated entries added up and without those that are 0."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def named_block(name: str, names: Sequence[str]) -> tuple[Block, ...]:
    """Return a block of columns or rows with the names of a file; none without names."""
    return (Block(name, 0, (len(names),), flat_names=tuple(names)),) if names else ()


def exact_range(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Find ranges from which a reader computes the other side of a row to the last bit.

    The file holds one side, the anchor, and the range ``R``; a reader computes ``lower + R`` or ``upper -
    R`` in float64. The rounded difference of the sides need not give the other side back, so its neighbours
    and both anchors are tried. There may be no solution: none for ``[-1, 1 + 2**-52]``.

    Parameters
    ----------
    lower, upper
        (k,) finite sides, ``lower < upper``.

    Returns
    -------
    span, anchored_below
        (k,) ranges, NaN where there is none; and whether the anchor is the lower side (row type ``G``).
    """
    span = np.full(len(lower), np.nan)
    anchored_below = np.zeros(len(lower), dtype=bool)
    with np.errstate(over="ignore"):
        difference = upper - lower
        for candidate in (difference, np.nextafter(difference, 0.0), np.nextafter(difference, np.inf)):
            below, above = lower + candidate == upper, upper - candidate == lower
            found = np.isnan(span) & np.isfinite(candidate) & (below | above)
            span[found], anchored_below[found] = candidate[found], below[found]
    return span, anchored_below


def check_writable(form: MatrixForm) -> None:
    """Refuse what neither an MPS nor an LP file tells.

    Raises
    ------
    ValueError
        If a number is NaN or a coefficient infinite, sides cross, ``Q`` is not symmetric, or an indicator row
        has no side or no binary column.
    """
    indicators = form.indicators
    indicator_names = [name for block in indicators.rows for name in block.names()]
    if not np.isfinite(form.offset):
        raise ValueError(f"the objective constant is {form.offset}; make it finite")
    _check_numbers("objective coefficient of column", form.column_names, form.c)
    for what, names, matrix in (
        ("coefficient in row", form.row_names, form.A),
        ("coefficient in indicator row", indicator_names, indicators.A),
        ("quadratic coefficient of column", form.column_names, form.Q),
    ):
        if matrix is not None and not np.isfinite(matrix.data).all():
            entry = np.flatnonzero(~np.isfinite(matrix.data))[0]
            row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
            raise ValueError(f"a {what} {names[row]} is {matrix.data[entry]}; coefficients must be finite")
    _check_sides("column", form.column_names, form.col_lower, form.col_upper)
    _check_sides("row", form.row_names, form.row_lower, form.row_upper)
    _check_sides("indicator row", indicator_names, indicators.lower, indicators.upper)
    if form.Q is not None and (form.Q != form.Q.T).nnz:
        raise ValueError("Q is not symmetric; give both triangles of the Hessian, (Q + Q') / 2")
    _check_indicators(form, indicator_names)


def _check_numbers(what: str, names: list[str], values: FloatArray) -> None:
    """Refuse NaN and infinity."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(f"the {what} {names[bad[0]]} is {values[bad[0]]}; make it finite")


def _check_sides(what: str, names: list[str], lower: FloatArray, upper: FloatArray) -> None:
    """Refuse sides that are NaN, cross, or are infinite on the wrong side."""
    bad = np.flatnonzero(~((lower <= upper) & (lower < np.inf) & (upper > -np.inf)))
    if len(bad):
        k = bad[0]
        raise ValueError(
            f"{what} {names[k]} has the sides [{lower[k]}, {upper[k]}], which no number meets; "
            "no file can tell this: correct or remove it"
        )


def _check_indicators(form: MatrixForm, names: list[str]) -> None:
    """Refuse indicator rows without a side, or whose condition is not on a binary column."""
    indicators = form.indicators
    free = np.flatnonzero(np.isinf(indicators.lower) & np.isinf(indicators.upper))
    if len(free):
        raise ValueError(f"indicator row {names[free[0]]} has no finite side and says nothing; remove it")
    column: npt.NDArray[np.int64] = indicators.binary
    is_binary = form.integer[column] & (form.col_lower[column] >= 0) & (form.col_upper[column] <= 1)
    bad = np.flatnonzero(~is_binary | ~np.isin(indicators.value, (0, 1)))
    if len(bad):
        k = bad[0]
        raise ValueError(
            f"indicator row {names[k]} depends on column {form.column_names[column[k]]} having the value "
            f"{indicators.value[k]}; the column must be binary and the value 0 or 1"
        )
