"""What is finished so far, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mipforest.tuning.fit import Fit
from mipforest.tuning.plan import Plan

#: What is told of every fold, in columns such as ``fold0_gap``.
_PER_FOLD = (
    "validation",
    "train",
    "features",
    "gap",
    "seconds",
    "objective",
    "status",
    "verified",
    "start",
    "start_objective",
)


class Records:
    """Collects the fits of a plan, each once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._fits: dict[tuple[int, int], Fit] = {}

    def __len__(self) -> int:
        return len(self._fits)

    def add(self, fit: Fit) -> None:
        """Take a fit; its tree is not kept."""
        place = (fit.setting, fit.fold)
        if place in self._fits:
            raise AssertionError(f"setting {fit.setting} was fitted twice on fold {fit.fold}")
        self._fits[place] = replace(fit, tree=None)

    def of_setting(self, setting: int) -> list[Fit]:
        """Give the finished fits of a setting, in the order of the folds."""
        places = ((setting, fold) for fold in range(len(self._plan.folds)))
        return [self._fits[place] for place in places if place in self._fits]

    def finished(self, setting: int) -> bool:
        """Whether a setting is fitted on all folds."""
        return len(self.of_setting(setting)) == len(self._plan.folds)

    def table(self) -> pd.DataFrame:
        """Give one row per setting, in grid order; see :attr:`mipforest.tuning.result.Tuning.table`."""
        grid = self._plan.grid
        labels = [axis.label for axis in grid.axes]
        return pd.DataFrame(
            [
                dict(zip(labels, values, strict=True)) | self._row(number)
                for number, values in enumerate(grid.rows())
            ]
        )

    def _row(self, setting: int) -> dict[str, Any]:
        fits = self.of_setting(setting)
        row: dict[str, Any] = {"finished": self.finished(setting), "folds_done": len(fits)}
        for name in ("validation", "train", "features"):
            values = _numbers(fits, name)
            row[f"{name}_mean"], row[f"{name}_std"] = _mean(values), _std(values)
        gaps = _numbers(fits, "gap")
        row["gap_mean"], row["gap_max"] = _mean(gaps), max(gaps, default=np.nan)
        row["seconds"] = sum(fit.seconds for fit in fits)
        row["verified"] = bool(fits) and all(fit.verified for fit in fits)
        by_fold = {fit.fold: fit for fit in fits}
        for fold in range(len(self._plan.folds)):
            for name in _PER_FOLD:
                row[f"fold{fold}_{name}"] = getattr(by_fold.get(fold), name, None)
        return row


def _numbers(fits: Sequence[Fit], name: str) -> list[float]:
    values = (getattr(fit, name) for fit in fits)
    return [np.nan if value is None else float(value) for value in values]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else np.nan


def _std(values: Sequence[float]) -> float:
    """Give the standard deviation over the folds, which are all there are: as in scikit-learn's ``cv_results_``."""
    return float(np.std(values)) if values else np.nan
