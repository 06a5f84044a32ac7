"""Reader of LP files: that of HiGHS, with a word on each thing that it leaves out or changes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from mipforest.arrays import SparseMatrix
from mipforest.errors import MipforestError
from mipforest.files.layout import canonical, named_block
from mipforest.files.streams import file_blocks, split_suffix
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.unpacking import UnpackingError

#: Versions of HiGHS from this one on say what they leave out of a file: 1.15 drops constants of rows without a word.
SOUND = (1, 16)

#: Remarks of HiGHS after which the model is the one of the file: terms that repeat are added up, as in all readers.
_HARMLESS = ("appears more than once", "appears multiple times", "values summed", "summing them")

_REMARK = re.compile(r"^(ERROR|WARNING): +(.*)$")
_PLACE = re.compile(r"^ *--> .*:(\d+):\d+$")


class LpError(MipforestError, ValueError):
    """An LP file that is malformed, or has what a model cannot hold.

    Attributes
    ----------
    path
        The file.
    line
        Number of the line at fault, from 1; 0 if none is known.
    reason
        What is wrong.
    """

    def __init__(self, path: str | os.PathLike[str], line: int, reason: str) -> None:
        super().__init__(f"{os.fspath(path)}:{line}: {reason}" if line else f"{os.fspath(path)}: {reason}")
        self.path, self.line, self.reason = Path(path), line, reason


def read_lp(path: str | os.PathLike[str]) -> MatrixForm:
    """Read a model from an LP file, by HiGHS.

    What HiGHS cannot hold is refused by name: quadratic, indicator and general constraints, special ordered sets, rows
    with two sides in one line. So is what it would change: coefficients up to 1e-9 or from 1e15 on, constants on the
    left of a row, semi-continuous columns, names that repeat, bounds that cross. Bounds and sides from 1e20 on are
    infinite.

    Parameters
    ----------
    path
        ``*.lp``, or ``*.lp.gz`` (compressed).

    Returns
    -------
    MatrixForm
        With one block ``columns`` and one block ``rows`` that hold the names.

    Raises
    ------
    LpError
        If the file is malformed, or has what a model cannot hold; with line and reason.
    ValueError
        If the suffix is another.
    OSError
        As the system reports it.
    """
    _, compressed = split_suffix(path, (".lp",))
    highs = _silent()
    if (version := (highs.versionMajor(), highs.versionMinor())) < SOUND:
        raise LpError(
            path,
            0,
            f"HiGHS {version[0]}.{version[1]} drops parts of LP files without a word; run: pip install -U highspy, or "
            "give an .mps file",
        )
    with TemporaryDirectory(prefix="mipforest-lp-") as name:
        folder = Path(name)
        copy, log = folder / "model.lp", folder / "log"
        try:
            with copy.open("wb") as file:
                file.writelines(file_blocks(path, compressed=compressed))
        except UnpackingError as damage:
            raise LpError(path, 0, str(damage)) from damage
        highs.setOptionValue("log_file", str(log))
        highs.readModel(str(copy))
        highs.setOptionValue("log_file", "")
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    for line, remark in _remarks(said):
        raise LpError(path, line, f"{remark} (said HiGHS, which reads LP files); or give an .mps file")
    return _form_of(highs.getModel(), path)


def _silent() -> Any:
    """Return a HiGHS object that prints nothing, not even its banner."""
    import highspy

    class Silent(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:  # noqa: N802 (the name is that of highspy)
            self.setOptionValue("log_to_console", False)
            super().enableCallbacks()

    highs = Silent()
    highs.setOptionValue("log_to_console", False)
    return highs


def _remarks(said: str) -> Iterator[tuple[int, str]]:
    """Yield the errors and warnings that matter, with the number of their line, 0 where none is told."""
    lines = said.splitlines()
    for number, text in enumerate(lines):
        found = _REMARK.match(text)
        if found is None or found[2].startswith("Parser error") or any(word in text for word in _HARMLESS):
            continue
        place = _PLACE.match(lines[number + 1]) if number + 1 < len(lines) else None
        yield (int(place[1]) if place else 0), found[2]


def _form_of(model: Any, path: str | os.PathLike[str]) -> MatrixForm:
    """Return the model that HiGHS has read, or refuse what it holds beyond one."""
    import highspy

    lp, n, m = model.lp_, model.lp_.num_col_, model.lp_.num_row_
    if not n:
        raise LpError(path, 0, "there is no column in it: is this an LP file, and whole?")
    try:
        columns, rows = list(lp.col_names_), list(lp.row_names_)
    except UnicodeDecodeError as error:
        raise LpError(path, 0, f"a name is no text in UTF-8 ({error.reason}); rename it") from error
    for kind, names in (("column", columns), ("row", rows)):
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise LpError(path, 0, f"the {kind} {twice!r} comes twice; rename one of them")
        for name in names:
            if not name.isprintable():
                raise LpError(path, 0, f"the {kind} {name!r} has a character that does not print; rename it")
    kinds = highspy.HighsVarType
    types = list(lp.integrality_) or [kinds.kContinuous] * n
    for name, kind in zip(columns, types, strict=True):
        if kind not in (kinds.kContinuous, kinds.kInteger):
            raise LpError(
                path,
                0,
                f"the column {name!r} is semi-continuous, which a model here cannot hold; write a binary z and "
                f"the rows {name} <= upper z, {name} >= lower z",
            )
    lower, upper = np.array(lp.col_lower_, dtype=float), np.array(lp.col_upper_, dtype=float)
    if (crossing := np.flatnonzero(lower > upper)).size:
        j = int(crossing[0])
        raise LpError(
            path,
            0,
            f"the bounds of {columns[j]!r} cross: {lower[j]:g} and {upper[j]:g}; without a lower bound it is 0 for "
            "some readers, -inf for others: write it out",
        )
    c, offset = np.array(lp.col_cost_, dtype=float), float(lp.offset_)
    if not (np.isfinite(c).all() and isfinite(offset)):
        raise LpError(path, 0, "the objective has a coefficient that is infinite or no number")
    return MatrixForm(
        c=c,
        A=canonical(_matrix(lp.a_matrix_, (m, n))),
        row_lower=np.array(lp.row_lower_, dtype=float),
        row_upper=np.array(lp.row_upper_, dtype=float),
        col_lower=lower,
        col_upper=upper,
        integer=np.array([kind == kinds.kInteger for kind in types], dtype=bool),
        indicators=IndicatorRows.none(n),
        Q=_hessian(model.hessian_, n),
        offset=offset,
        columns=named_block("columns", columns),
        rows=named_block("rows", rows),
        maximize=lp.sense_ == highspy.ObjSense.kMaximize,
        name=lp.model_name_,
    )


def _matrix(given: Any, shape: tuple[int, int]) -> SparseMatrix:
    """Return a matrix of HiGHS, which it has by column or by row."""
    import highspy

    parts = (
        np.array(given.value_, dtype=float),
        np.array(given.index_, dtype=np.int32),
        np.array(given.start_, dtype=np.int32),
    )
    if not all(shape):
        return sparse.csr_array(shape)
    by_column = given.format_ == highspy.MatrixFormat.kColwise
    return sparse.csr_array((sparse.csc_array if by_column else sparse.csr_array)(parts, shape=shape))


def _hessian(given: Any, n: int) -> SparseMatrix | None:
    """Return Q of ``1/2 x'Qx``, of which HiGHS has one triangle by column."""
    if not given.dim_ or not len(given.value_):
        return None
    parts = (
        np.array(given.value_, dtype=float),
        np.array(given.index_, dtype=np.int32),
        np.array(given.start_, dtype=np.int32),
    )
    triangle = sparse.csc_array(parts, shape=(n, n))
    Q = canonical(sparse.csr_array(triangle + sparse.triu(triangle.T, 1) + sparse.tril(triangle.T, -1)))
    return Q if Q.nnz else None
