"""What a tuning was asked for, and doing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mipforest.cli.inputs import build
from mipforest.cli.job import Job
from mipforest.cli.outcome import Outcome
from mipforest.cli.output import print_note
from mipforest.cli.tuning_scores import Scores, announcement, fit_told
from mipforest.runs.folder import LOG, TUNING
from mipforest.tuning import FitOptions, Plan, Records, choose, cross_validate, executor_for, parse_grid

if TYPE_CHECKING:
    from mipforest.cli.interrupts import Interruption
    from mipforest.cli.progress import Progress
    from mipforest.result import Result
    from mipforest.runs import DataSource, LoadedData, RunFolder
    from mipforest.solvers.solution import Event
    from mipforest.tuning import Fit, Rule


@dataclass(frozen=True, eq=False, kw_only=True)
class TuningJob:
    """One tuning.

    Attributes
    ----------
    job
        The solve of the chosen setting; until then, of the parameters outside the grid.
    data
        The samples.
    plan
        The settings and folds.
    jobs, dask
        Where the fits are done.
    """

    job: Job
    data: LoadedData
    plan: Plan
    jobs: int
    dask: str | None
