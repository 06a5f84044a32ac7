"""Tables and pictures of a campaign."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mipforest.atomic import atomic_write
from mipforest.campaigns.figures import (
    LEAST_TIME,
    bounds_figure,
    distances_from_best,
    distribution_figure,
    distributions,
    instance_table,
    performance_profiles,
    series_figure,
)
from mipforest.campaigns.store import Store
from mipforest.campaigns.suite import Suite, parse_suite
from mipforest.campaigns.tables import (
    RECOVERY,
    by_data,
    events_table,
    markdown_table,
    overall,
    prediction_columns,
    results_table,
)
from mipforest.errors import CampaignError
from mipforest.trees.plot import save_figure

#: Columns that are shares and read better in per cent.
_SHARES = ("accuracy", "fidelity", "gap", "rate")


def write_report(results: Path, folder: Path) -> list[Path]:
    """Write ``report.md``, its tables as CSV, and its pictures as SVG and PNG.

    The same results give the same bytes.

    Parameters
    ----------
    results
        A results file; cells that wait or failed are named in the report.
    folder
        Where to write; made where it is missing. Files of the same names are replaced.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    CampaignError
        If the results file cannot be used.
    OSError
        If a file cannot be written.
    """
    found = read_results(results)
    suite, experiments, events = found.suite, found.experiments, found.events
    folder = folder.expanduser()
    if folder.exists() and not folder.is_dir():
        raise CampaignError(f"{folder} is a file; give a folder for the report")
    folder.mkdir(parents=True, exist_ok=True)
    written = []

    def write_text(name: str, text: str) -> None:
        with atomic_write(folder / name, "w") as file:
            file.write(text)
        written.append(folder / name)

    per_data, per_setting = found.per_data, found.per_setting
    pictures = _pictures(experiments, events)
    for name, figure in pictures.items():
        for suffix in (".svg", ".png"):
            save_figure(figure, folder / f"{name}{suffix}")
            written.append(folder / f"{name}{suffix}")
    write_text("cells.csv", experiments.drop(columns="cell").to_csv(index=False, lineterminator="\n"))
    write_text("by_data.csv", per_data.to_csv(index=False, lineterminator="\n"))
    write_text("overall.csv", per_setting.to_csv(index=False, lineterminator="\n"))
    write_text("report.md", _page(suite, experiments, per_data, per_setting, pictures))
    return written


@dataclass(frozen=True, eq=False)
class Results:
    """What a results file holds.

    Attributes
    ----------
    suite
        The latest suite.
    experiments, events
        See :func:`~mipforest.campaigns.tables.results_table` and :func:`~mipforest.campaigns.tables.events_table`.
    per_data, per_setting
        Means; see :func:`~mipforest.campaigns.tables.by_data` and :func:`~mipforest.campaigns.tables.overall`.
    """

    suite: Suite
    experiments: pd.DataFrame
    events: pd.DataFrame
    per_data: pd.DataFrame
    per_setting: pd.DataFrame


def read_results(path: Path) -> Results:
    """Read a results file.

    Raises
    ------
    CampaignError
        If it is none, or what it holds is damaged.
    """
    with Store(path) as store:
        suite = parse_suite(store.suite_text())
        try:
            experiments, events = results_table(store), events_table(store)
            return Results(suite, experiments, events, by_data(experiments), overall(experiments))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, CampaignError):
                raise
            # SQLite keeps any value in any column: what is no number shows where it is counted.
            raise CampaignError(
                f"{path} holds damaged results ({type(error).__name__}: {str(error)[:100]}); restore an earlier "
                "copy, or run the suite into another file"
            ) from error


# ---------------------------------------------------------------------- pictures


def _pictures(experiments: pd.DataFrame, events: pd.DataFrame) -> dict[str, Figure]:
    """Return all pictures by name; those with nothing to show are left out."""
    done = experiments[experiments["state"] == "done"]
    if done.empty:
        return {}
    solved = experiments.assign(seconds=experiments["seconds"].where(experiments["status"] == "optimal"))
    found = {
        "profile-time": distribution_figure(
            performance_profiles(instance_table(solved, "seconds"), LEAST_TIME),
            "Performance profile of the time until the model is solved",
            "time, as a multiple of the fastest setting's",
            ratio=True,
        ),
        "profile-features": distribution_figure(
            performance_profiles(instance_table(experiments, "features_per_split")),
            "Performance profile of the number of features per split",
            "features per split, as a multiple of the sparsest tree's",
            ratio=True,
        ),
        "gaps": distribution_figure(
            distributions(instance_table(experiments, "gap")),
            "Relative gap between objective and bound at the end",
            "gap",
            percent=True,
        ),
    }
    for measure in ("test_balanced_accuracy", "test_r2"):
        if measure in experiments:
            words = measure.removeprefix("test_").replace("_", " ")
            found[f"distance-{words.replace(' ', '-')}"] = distribution_figure(
                distances_from_best(instance_table(experiments, measure)),
                f"Distance from the best {words} on test samples",
                f"difference in {words}",
                percent=measure != "test_r2",
            )
    if RECOVERY[0] in experiments:
        found["recovery"] = series_figure(
            by_data(experiments),
            ["test_accuracy" if "test_accuracy" in experiments else "test_r2", *RECOVERY],
        )
    if "test_treatment_accuracy" in experiments:
        found["prescriptions"] = series_figure(
            by_data(experiments), ["test_treatment_accuracy", "test_effect_r2"]
        )
    for data, group in done.groupby("data", sort=False):
        seed = group["seed"].min()
        found[f"bounds-{data}"] = bounds_figure(group[group["seed"] == seed], events, f"{data}, seed {seed}")
    return found


# ---------------------------------------------------------------------- the page


def _page(
    suite: Suite,
    experiments: pd.DataFrame,
    per_data: pd.DataFrame,
    per_setting: pd.DataFrame,
    pictures: Mapping[str, Figure],
) -> str:
    parts = [f"# {suite.name}", suite.summary, suite.source and f"Source: {suite.source}."]
    parts += [_state(experiments), "## All data", _overall_table(per_setting)]
    for setting, rows in per_data.groupby("setting", sort=False):
        published = suite.published.get(rows["model"].iloc[0], {})
        parts += [f"## {setting}", _data_table(rows, published)]
    parts += ["## Pictures", *(f"![{name}]({name}.svg)" for name in pictures)] if pictures else []
    parts += _failures(experiments)
    return "\n\n".join(part for part in parts if part) + "\n"


def _state(experiments: pd.DataFrame) -> str:
    counts = experiments["state"].value_counts()
    lines = [
        f"{counts.get('done', 0)} of {len(experiments)} cells are done, {counts.get('failed', 0)} failed, "
        f"{counts.get('waiting', 0)} are not run yet."
    ]
    run = experiments[experiments["state"] != "waiting"]
    for (cpu, cores, mipforest, python), group in run.groupby(
        ["cpu", "cores", "mipforest", "python"], sort=True
    ):
        load = group["load_average"]
        lines.append(
            f"{len(group)} cells were run on {cpu}, {cores:g} cores, with mipforest {mipforest} and {python}; "
            f"the machine's load average was {load.min():.1f} to {load.max():.1f}."
        )
    lines.append(
        "Means are over seeds. Times are those of the solver, in seconds; over all data, the geometric mean "
        "of time + 10 s, less 10 s. 'solved': optimal within the suite's gap, for the constants of the setting's "
        "variant. 'proven': optimal by the model's definition, too; others may be beaten by trees that the paper's "
        "constants cut off. 'paper': published figures."
    )
    return "\n".join(lines)


def _overall_table(per_setting: pd.DataFrame) -> str:
    predictions = [name for name in prediction_columns(per_setting) if not name.startswith("train_")]
    columns = [
        "cells",
        "done",
        "solved",
        "proven",
        "verified",
        *predictions,
        "gap",
        "seconds",
        "features_per_split",
    ]
    known = [column for column in columns if column in per_setting]
    header = ["setting", *map(_heading, known)]
    rows = [
        [str(row["setting"]), *(_cell(name, row[name]) for name in known)]
        for _, row in per_setting.iterrows()
    ]
    return markdown_table(header, rows)


def _data_table(rows: pd.DataFrame, published: Mapping[str, Mapping[str, float]]) -> str:
    predictions = prediction_columns(rows)
    columns = [
        "solved",
        "proven",
        "verified",
        *predictions,
        "objective",
        "bound",
        "gap",
        "seconds",
        "nodes",
        "features_used",
        "splits",
        "chosen_depth",
    ]
    header, values = ["data"], [[str(data)] for data in rows["data"]]
    for name in columns:
        if name not in rows:
            continue
        header.append(_heading(name))
        for line, (_, row) in zip(values, rows.iterrows(), strict=True):
            line.append(_of_experiments(name, row))
        if any(name in figures for figures in published.values()):
            header.append("paper")
            for line, data in zip(values, rows["data"], strict=True):
                line.append(_cell(name, published.get(str(data), {}).get(name, math.nan)))
    return markdown_table(header, values)


def _of_experiments(name: str, row: pd.Series) -> str:
    if name in ("solved", "proven", "verified"):
        return f"{row[name]:g}/{row['cells']:g}"
    return _cell(name, row[name])


def _heading(name: str) -> str:
    words = name.replace("balanced_accuracy", "bal. acc.").replace("accuracy", "acc.").replace("_", " ")
    return f"{words} %" if name.endswith(_SHARES) else words


def _cell(name: str, value: float) -> str:
    if pd.isna(value):
        return "-"
    if np.isinf(value):
        return "∞"
    if name.endswith(_SHARES):
        return f"{100 * value:.1f}"
    decimals = {
        "seconds": ".1f",
        "nodes": ".0f",
        "splits": ".1f",
        "chosen_depth": ".1f",
        "features_per_split": ".1f",
    }
    return format(float(value), decimals.get(name, ".7g"))


def _failures(experiments: pd.DataFrame) -> list[str]:
    failed = experiments[experiments["state"] == "failed"]
    if failed.empty:
        return []
    rows = [
        [f"{cell['setting']}, {cell['data']}, seed {cell['seed']}", str(cell["error"])]
        for _, cell in failed.iterrows()
    ]
    return ["## Failed cells", markdown_table(["cell", "error"], rows)]
