"""The outcome of a tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from mipforest.problem.result import Result
from mipforest.tuning.selection import Rule


@dataclass(frozen=True, eq=False)
class Tuning:
    """Scores of all settings, the one that was chosen, and the tree fitted with it on all samples.

    Attributes
    ----------
    table
        One row per setting, in grid order:

        - a column per axis of the grid: ``C``, or ``C[0]``, ``C[1]`` where each level has its own value;
        - ``finished``, whether all folds are done, and ``folds_done``, how many are;
        - ``validation_mean``, ``train_mean``, ``features_mean`` and the same with ``_std``: scores, and the
          number of features used, over the folds (NaN if a fold has no tree);
        - ``gap_mean``, ``gap_max``, ``seconds`` (the sum), ``verified`` (whether all are);
        - for every fold, from ``fold0_`` on: ``validation``, ``train``, ``features``, ``gap``, ``seconds``,
          ``objective``, ``status``, ``verified``, ``start`` (``default`` or ``neighbour``) and
          ``start_objective``.
    chosen
        Number of the chosen row.
    parameters
        Hyperparameters of the chosen setting, those outside the grid included.
    score, rule
        Name of the score, and the rule that chose.
    result
        Outcome of the fit on all samples with the chosen setting.
    """

    table: pd.DataFrame
    chosen: int
    parameters: dict[str, Any]
    score: str
    rule: Rule
    result: Result

    @property
    def chosen_row(self) -> pd.Series[Any]:
        """The row of the table that was chosen."""
        return self.table.iloc[self.chosen]
