"""The scores of a tuning: as ``tuning.csv``, as JSON, in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mipforest.cli.output import print_table, print_text
from mipforest.readable import duration, number, percent

if TYPE_CHECKING:
    from mipforest.tuning import Fit, Plan, Records

#: Settings that are shown; of more, the best ones.
SHOWN = 20


@dataclass(frozen=True, eq=False)
class Scores:
    """What a cross-validation found.

    Attributes
    ----------
    plan, records
        What was to be done, and what is finished.
    chosen
        Number of the chosen setting; ``None`` if the cross-validation was stopped.
    """

    plan: Plan
    records: Records
    chosen: int | None = None

    def write(self, path: Path) -> None:
        """Write ``tuning.csv``: one row per setting, in grid order; see :class:`mipforest.tuning.Tuning`."""
        table = self.records.table()
        table.insert(len(self.plan.grid.axes), "chosen", [row == self.chosen for row in range(len(table))])
        table.to_csv(path, index=False)

    def as_json(self) -> dict[str, Any]:
        """Give the table and what was chosen; NaN and infinities become ``None``."""
        rows = json.loads(self.records.table().to_json(orient="records", double_precision=15))
        return {"tuning": self.summary() | {"settings": rows}}

    def summary(self) -> dict[str, Any]:
        """Give what ``result.json`` tells of the tuning."""
        found: dict[str, Any] = {
            "score": self.plan.score.name,
            "rule": self.plan.rule,
            "folds": len(self.plan.folds),
            "fits": len(self.records),
            "chosen": self.chosen,
        }
        if self.chosen is not None:
            row = self.records.table().iloc[self.chosen]
            names = ("validation_mean", "validation_std", "train_mean", "train_std", "features_mean")
            found |= {name: float(row[name]) for name in names}
        return found

    def tell(self) -> None:
        """Print the settings, the chosen one marked."""
        table = self.records.table()
        shown = table
        if len(table) > SHOWN:
            order = self.plan.score.sign * -table["validation_mean"]
            shown = table.loc[order.sort_values(kind="stable").index[:SHOWN]]
            if self.chosen not in shown.index:
                shown = table.loc[[*shown.index[:-1], self.chosen]]
            print_text(f"The {SHOWN} best of {len(table)} settings:")
        labels = [axis.label for axis in self.plan.grid.axes]
        rows = [
            (
                *(setting_value(row[label]) for label in labels),
                f"{number(row['validation_mean'])} +- {number(row['validation_std'])}",
                number(row["train_mean"]),
                number(row["features_mean"]),
                percent(row["gap_max"]),
                duration(row["seconds"]),
                "chosen" if position == self.chosen else "",
            )
            for position, row in shown.iterrows()
        ]
        score = self.plan.score.name.replace("_", " ")
        columns = (*labels, f"validation {score}", "training", "features", "largest gap", "time", "")
        print_table(columns, rows, wrapped="")
        print_text()


def announcement(plan: Plan, jobs: int, dask: str | None) -> str:
    """Say how much is to be done, before it begins."""
    limit = plan.options.time_limit
    each = "without a time limit" if limit is None else f"of at most {duration(limit)} each"
    where = f"on the Dask cluster {dask}" if dask else f"{min(jobs, plan.n_chains)} at a time"
    idle = ""
    if not dask and jobs > plan.n_chains:
        idle = f" (of {jobs} jobs: the others wait for the trees of settings before)"
    return (
        f"tuning {plan.formulations[0].name}, depth {plan.depth}, {plan.data.name}: {plan.grid.size} settings "
        f"x {len(plan.folds)} folds = {plan.n_fits} fits {each}, {where}{idle}, and one on all samples"
    )


def fit_told(plan: Plan, records: Records, fit: Fit) -> tuple[str, bool]:
    """Say how far the tuning is, and whether a setting was finished by this fit."""
    grid, setting = plan.grid, fit.setting
    labels = (axis.label for axis in grid.axes)
    given = ", ".join(
        f"{label}={setting_value(value)}" for label, value in zip(labels, grid.row(setting), strict=True)
    )
    done = f"{len(records)} of {plan.n_fits} fits done; {given}"
    fits = records.of_setting(setting)
    if len(fits) < len(plan.folds):
        return f"{done}, fold {fit.fold}: {number(fit.validation)}", False
    mean = sum(fit.validation for fit in fits) / len(fits)
    return f"{done}: validation {plan.score.name.replace('_', ' ')} {number(mean)}", True


def setting_value(value: Any) -> str:
    """Write a value of the grid as the command line takes it."""
    parts = value if isinstance(value, tuple) else (value,)
    return ":".join(f"{part:g}" if isinstance(part, float) else str(part) for part in parts)
