r"""LP files (CPLEX's format): models as text that people and every solver read.

The written dialect was chosen so that HiGHS, Gurobi, SCIP, GLPK and COIN-OR's Cbc read the same model, as far
as each takes its parts:

- Every coefficient is one line, so no line is long. The sign stands apart from the number. Numbers are the
  shortest decimal that reads back as the same float64.
- The objective names every column, in order, with coefficient 0 where it has none: readers number columns as
  they meet them.
- A constant ``k`` of the objective is ``k Constant`` with ``Constant = 1`` in the bounds. Of a bare number
  at the end, Gurobi and Cbc make a column with a lower bound of 0, or drop it; GLPK refuses it.
- The quadratic part ``1/2 x'Qx`` is ``[ Q11 x ^2 + 2 Q12 x * y ] / 2``.
- A row with two sides is two rows, ``NAME`` and ``NAME_upper``: readers differ in their notation for ranges.
- Indicator rows read ``NAME: z = 1 -> ...``. Gurobi and SCIP take them; HiGHS refuses the file.
- Rows without sides are left out (a comment says how many): the format has none.
- Names are made safe by :func:`mipforest.files.lp_names.lp_names`.
"""

from __future__ import annotations

import os

from mipforest.files.lp_writer import lp_column_names, lp_text
from mipforest.files.streams import write_lines
from mipforest.files.suffixes import split_suffix
from mipforest.model.matrix import MatrixForm

__all__ = ["lp_column_names", "lp_text", "write_lp"]


def write_lp(form: MatrixForm, path: str | os.PathLike[str]) -> None:
    """Write a model to an LP file, which appears complete or not at all.

    Parameters
    ----------
    form
        The model.
    path
        ``*.lp``, or ``*.lp.gz`` for a compressed file.

    Raises
    ------
    ValueError
        If the suffix is another, or the model has a part that no LP file tells: NaN, an infinite
        coefficient, crossing sides, a matrix ``Q`` that is not symmetric, an indicator row without sides or
        without a binary column, no columns at all.
    OSError
        As the system reports it: no such folder, no permission, disk full.
    """
    _, compressed = split_suffix(path, (".lp",))
    write_lines(path, lp_text(form), compressed=compressed)
