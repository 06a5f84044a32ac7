"""Results as tables of numbers, and tables in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from mipforest.campaigns.store import Store
from mipforest.solvers.solution import closed

#: Measures of predictions that tables and pictures show, where there are any.
PREDICTION = ("accuracy", "balanced_accuracy", "r2", "fidelity", "treatment_accuracy", "effect_r2")

#: What tables and pictures show of trees that are compared with the one behind generated data.
RECOVERY = ("true_discovery_rate", "false_discovery_rate")

#: Seconds that are added to each time before the geometric mean, as benchmarks of solvers do: without, times near
#: nothing would outweigh all others.
SHIFT = 10.0

_CELLS = """
    SELECT cells.key, setting, cells.model, cells.data, seed, cells.solver, depth, time_limit, results.*,
        environments.mipforest, environments.python, cpu, cores
    FROM cells
    LEFT JOIN results ON results.cell = cells.number
    LEFT JOIN environments ON environments.number = results.environment
    WHERE position IS NOT NULL
    ORDER BY position
"""
_MEASURES = """
    SELECT cell, name, value FROM measures JOIN cells ON cells.number = measures.cell
    WHERE position IS NOT NULL ORDER BY position, name
"""
_EVENTS = """
    SELECT cell, seconds, objective, bound FROM events JOIN cells ON cells.number = events.cell
    WHERE position IS NOT NULL ORDER BY position, events.number
"""


def results_table(store: Store) -> pd.DataFrame:
    """Return every cell (experiment) of the latest suite, in its order: what it is, its result, and its measures.

    Cells without a result have ``state`` "waiting" and missing values.
    """
    frame = pd.DataFrame(store.rows(_CELLS))
    frame["proven_for"] = [_proven_for(details) for details in frame["details"]]
    frame = frame.drop(columns=["details", "tree", "suite", "environment"])
    frame["state"] = frame["state"].fillna("waiting")
    measures = pd.DataFrame(store.rows(_MEASURES), columns=["cell", "name", "value"])
    wide = measures.pivot_table(index="cell", columns="name", values="value", dropna=False)
    wide = wide.drop(columns=[name for name in wide.columns if name in frame.columns])
    joined = frame.merge(wide, how="left", left_on="cell", right_index=True)
    if joined["state"].ne("waiting").any():
        # What no cell has is left out, but for the one column that is read where nothing is proven, too.
        joined = joined[
            [name for name in joined if name == "proven_for" or joined[name].notna().any()]
        ].copy()
    # A table of waiting cells only has columns of nothing, which are no numbers yet.
    numbers = ["seconds", "objective", "bound", "gap", "features_per_split", "verified", "nodes"]
    for name in numbers:
        joined[name] = pd.to_numeric(joined.get(name, pd.Series(np.nan, index=joined.index)))
    known = zip(joined["objective"], joined["bound"], strict=True)
    joined["gap"] = joined["gap"].mask([closed(objective, bound) for objective, bound in known], 0.0)
    return joined


def _proven_for(details: object) -> str | None:
    """Return what an optimum is proven for; results of older versions do not tell, and are taken at their status."""
    return json.loads(details).get("proven_for", "definition") if isinstance(details, str) else None


def events_table(store: Store) -> pd.DataFrame:
    """Return incumbent and bound over time: columns ``cell``, ``seconds``, ``objective``, ``bound``."""
    frame = pd.DataFrame(store.rows(_EVENTS), columns=["cell", "seconds", "objective", "bound"])
    return frame.astype({"objective": float, "bound": float})


def by_data(experiments: pd.DataFrame) -> pd.DataFrame:
    """Average the finished cells of each setting and data set over seeds, both in the suite's order.

    Returns
    -------
    DataFrame
        Columns ``setting``, ``model``, ``data``, ``cells``, ``done``, ``solved``, ``proven`` (solved, and for the
        definition, not for the paper's constants alone), ``verified`` (numbers of cells),
        ``samples``, ``features``, then the mean of each number, and the standard deviation (of the sample) of
        each measure of predictions as ``..._sd``. A gap that is not known counts as infinite.
    """
    rows = []
    for (setting, data), group in experiments.groupby(["setting", "data"], sort=False):
        done = group[group["state"] == "done"]
        row = {"setting": setting, "model": group["model"].iloc[0], "data": data, **_counted(group, done)}
        if len(done):
            row |= {"samples": done["train_samples"].iloc[0], "features": done["features"].iloc[0]}
        row |= _means(done)
        rows.append(row)
    return pd.DataFrame(rows)


def overall(experiments: pd.DataFrame) -> pd.DataFrame:
    """Average the finished cells of each setting over all data and seeds, in the suite's order.

    Returns
    -------
    DataFrame
        Columns ``setting``, ``cells``, ``done``, ``failed``, ``solved``, ``proven``, ``verified``, the mean of each
        measure of predictions, ``features_per_split``, ``gap`` (mean; infinite if one is not known), and ``seconds``
        (shifted geometric mean).
    """
    rows = []
    for setting, group in experiments.groupby("setting", sort=False):
        done = group[group["state"] == "done"]
        failed = int((group["state"] == "failed").sum())
        means = _means(done)
        means["seconds"] = shifted_geometric_mean(done["seconds"])
        rows.append({"setting": setting, **_counted(group, done), "failed": failed, **means})
    return pd.DataFrame(rows)


def _counted(group: pd.DataFrame, done: pd.DataFrame) -> dict[str, int]:
    solved = done["status"] == "optimal" if len(done) else pd.Series(dtype=bool)
    return {
        "cells": len(group),
        "done": len(done),
        "solved": int(solved.sum()),
        "proven": int((solved & (done["proven_for"] == "definition")).sum()) if len(done) else 0,
        "verified": int(done["verified"].sum()),
    }


def _means(done: pd.DataFrame) -> dict[str, float]:
    predictions = prediction_columns(done)
    numbers = (
        *("objective", "bound", "nodes", "seconds", "features_used", "features_per_split"),
        *("splits", "chosen_depth", "chosen_alpha"),
    )
    known = [name for name in (*predictions, *numbers) if name in done]
    # What some cell lacks, such as a bound, has no mean.
    means = {name: float(done[name].mean(skipna=False)) for name in known}
    means |= {f"{name}_sd": float(done[name].std()) for name in predictions}
    return means | {"gap": float(done["gap"].fillna(np.inf).mean())}


def prediction_columns(experiments: pd.DataFrame) -> list[str]:
    """Name the measures of predictions that there are, test before training, and those of recovery."""
    names = (*(f"{part}_{measure}" for measure in PREDICTION for part in ("test", "train")), *RECOVERY)
    return [name for name in names if name in experiments and experiments[name].notna().any()]


def shifted_geometric_mean(values: Iterable[float], shift: float = SHIFT) -> float:
    """Return the geometric mean of ``values + shift``, less ``shift``; NaN of no values."""
    array = np.asarray(list(values), dtype=float)
    return float(np.exp(np.log(array + shift).mean()) - shift) if len(array) else float("nan")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table: the first column to the left, the others to the right; bars in cells are escaped."""
    lines = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in (header, *rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]

    def text(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 2) if k == 0 else "-" * (width + 1) + ":" for k, width in enumerate(widths)
    )
    return "\n".join([text(lines[0]), f"|{rule}|", *map(text, lines[1:])])
