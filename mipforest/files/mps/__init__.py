"""MPS files: models as text that every solver reads, exact to the last bit.

The dialect is free format: fields are separated by blanks, names hold none. Readers differ in details; what
is written here was chosen so that HiGHS, Gurobi, SCIP and :func:`read_mps` understand the same model, and so
do GLPK and Cbc where it is linear, minimises, and (GLPK) has no constant: they ignore or refuse ``OBJSENSE``,
and GLPK takes the constant with the opposite sign. For these two, LP files are safer.

- Numbers are the shortest decimal that reads back as the same float64 (the writers of HiGHS and SCIP keep 15
  digits, which loses bits).
- The line ``NAME`` ends in the word ``FREE`` if the model has a name: Cbc needs it to read free format.
- The first ``N`` row is the objective. Minus its right-hand side is the constant. Later ``N`` rows are rows
  without sides, which the solvers skip. ``OBJSENSE`` is written only for ``MAX``.
- Every coefficient is one line. A column without coefficients gets a 0 in the objective.
- Integer columns stand between ``MARKER`` lines and always have explicit bounds; a lower bound comes ahead
  of an upper.
- A row with two finite sides has a range ``R``. Readers compute the other side in float64, so anchor and
  ``R`` are chosen to give it exactly. Where no such ``R`` exists, and for indicator rows (Gurobi drops the
  condition of one that has a range), the two sides are two rows, ``NAME`` and ``NAME_upper``, announced by a
  comment line from which :func:`read_mps` joins them again.
- ``QUADOBJ`` holds one triangle of ``Q`` in ``1/2 x'Qx``; ``INDICATORS`` (``IF row column value``) makes
  ordinary rows conditional. HiGHS reads no indicators.
- The same model gives the same bytes. No time stamps.

References
----------
IBM ILOG CPLEX, "MPS file format: industry standard", and its extensions for quadratic objectives and
indicators.
"""

from __future__ import annotations

import os

from mipforest.files.mps.reader import read_mps
from mipforest.files.mps.reading import MpsError
from mipforest.files.mps.writer import mps_text
from mipforest.files.streams import split_suffix, write_lines
from mipforest.model.matrix import MatrixForm

__all__ = ["MpsError", "mps_text", "read_mps", "write_mps"]


def write_mps(form: MatrixForm, path: str | os.PathLike[str]) -> None:
    """Write a model to an MPS file, which appears complete or not at all.

    :func:`read_mps` gives back the same model: every number to the last bit (negative zeros become zeros),
    columns and rows in order. Names that readers would stumble over are replaced, see
    :func:`mipforest.files.layout.safe_names`; block structure is not kept.

    Parameters
    ----------
    form
        The model.
    path
        ``*.mps``, or ``*.mps.gz`` for a compressed file.

    Raises
    ------
    ValueError
        If the suffix is another, or the model has a part that no MPS file tells: NaN, an infinite
        coefficient, crossing sides, a matrix ``Q`` that is not symmetric, an indicator row without sides or
        without a binary column.
    OSError
        As the system reports it: no such folder, no permission, disk full.
    """
    _, compressed = split_suffix(path, (".mps",))
    write_lines(path, mps_text(form), compressed=compressed)
