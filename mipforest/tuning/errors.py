"""What can go wrong in a tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class TuningError(ValueError):
    """A tuning that cannot be done as asked; the message says why and what to do."""


class NoTreeFound(TuningError):
    """No setting has a tree in every fold."""


class ClusterError(TuningError):
    """A Dask cluster that cannot be used."""


class FitError(TuningError):
    """A cross-validation that failed on the way; its cause is the error of the model, solver or cluster.

    Attributes
    ----------
    table
        What was finished before, as :attr:`Tuning.table <mipforest.tuning.run.Tuning.table>`.
    """

    def __init__(self, message: str, table: pd.DataFrame) -> None:
        super().__init__(message)
        self.table = table


class TuningInterrupted(KeyboardInterrupt):
    """Ctrl-C during a tuning.

    Attributes
    ----------
    table
        What was finished before, as :attr:`Tuning.table <mipforest.tuning.run.Tuning.table>`.
    """

    def __init__(self, message: str, table: pd.DataFrame) -> None:
        super().__init__(message)
        self.table = table
