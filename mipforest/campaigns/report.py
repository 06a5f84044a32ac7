"""The report of a campaign: its results as tables, the pictures of them, and the page that has both.

Source of the profiles: E. Dolan, J. Moré, *Benchmarking optimization software with performance profiles*, Mathematical
Programming 91 (2002). Distances from the best value, with differences in the place of ratios, are those of the OLCT
experiments.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter, ScalarFormatter

from mipforest.arrays import FloatArray
from mipforest.atomic import atomic_write
from mipforest.campaigns.store import Store
from mipforest.campaigns.suite import Suite, parse_suite
from mipforest.errors import CampaignError
from mipforest.formatting import printable
from mipforest.problem.constraints import constraint_of
from mipforest.solvers.solution import closed
from mipforest.trees.plot import FAINT, INK, PALETTE, add_legend, new_figure, save_figure

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
        See :func:`~mipforest.campaigns.report.results_table` and :func:`~mipforest.campaigns.report.events_table`.
    per_data, per_setting
        Means; see :func:`~mipforest.campaigns.report.by_data` and :func:`~mipforest.campaigns.report.overall`.
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
    parts += [_state(experiments), _constraints(suite), "## All data", _overall_table(per_setting)]
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
        lines.append(
            f"{len(group)} cells were run on {cpu}, {cores:g} cores, with mipforest {mipforest} and {python}."
        )
    lines.append(
        "Means are over seeds. Times are those of the solver, in seconds; over all data, the geometric mean "
        "of time + 10 s, less 10 s. 'solved': optimal within the suite's gap, for the constants of the setting's "
        "variant. 'proven': optimal by the model's definition, too; others may be beaten by trees that the paper's "
        "constants cut off. 'paper': published figures."
    )
    return "\n".join(lines)


def _constraints(suite: Suite) -> str:
    """Say what the trees of each model have to satisfy."""
    lines = []
    for name, entry in suite.models.items():
        if entry.constraints:
            held = ", ".join(printable(str(constraint_of(own))) for own in entry.constraints)
            lines.append(f"- {name}: {held}")
    return "\n".join(["Constraints, which every tree was checked to satisfy:", "", *lines]) if lines else ""


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
    """Return what an optimum is proven for."""
    return json.loads(details)["proven_for"] if isinstance(details, str) else None


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


#: Least cost; smaller ones count as this. Times of a few milliseconds depend on the machine more than on the setting.
LEAST_TIME = 0.01

#: Sizes in inches.
WIDTH, HEIGHT = 6.4, 3.9
PANEL_WIDTH, PANEL_HEIGHT = 4.3, 3.3

#: Lines differ in colour and, for readers without colours, in their dashes.
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))
_BOUND = (0, (3, 1.5))

#: Earliest time that a logarithmic axis shows, in seconds.
EARLIEST = 0.01

#: Relative range below which values over time are drawn as one: rounding errors are no progress.
FLAT = 1e-6

#: Values whose largest is this many times the smallest are shown on a logarithmic axis.
WIDE = 20.0


def distribution_figure(
    lines: Sequence[Distribution], title: str, label: str, *, ratio: bool = False, percent: bool = False
) -> Figure:
    """Draw step functions, one per setting, from the least value to a little beyond the largest.

    Parameters
    ----------
    lines
        What to draw.
    title, label
        Title, and what stands on the horizontal axis.
    ratio
        Whether values are ratios from 1 on; wide ranges get a logarithmic axis.
    percent
        Whether values are shares, to be shown in per cent.
    """
    figure = new_figure(WIDTH, HEIGHT + 0.23 * math.ceil(len(lines) / 2), layout="constrained")
    axes = figure.subplots()
    first = 1.0 if ratio else 0.0
    largest = max((line.values[-1] for line in lines if len(line.values)), default=first)
    wide = ratio and largest > WIDE
    last = _end(first, largest, wide)
    drawn = []
    for line, style in zip(lines, _styles(len(lines)), strict=True):
        values = np.concatenate([[first], line.values, [last]])
        shares = np.concatenate([[0.0], line.shares, [line.last]])
        drawn += axes.step(values, shares, where="post", **style)
    if wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
    if percent:
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
    axes.set_xlim(first, last)
    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel(label, color=INK)
    axes.set_ylabel("share of instances", color=INK)
    _finish(axes, title)
    _legend_below(axes, drawn, [line.setting for line in lines])
    return figure


def _end(first: float, largest: float, wide: bool) -> float:
    if wide:
        return float(largest**1.05)
    span = largest - first
    return float(largest + 0.05 * span) if span > 0 else first + 1.0


def bounds_figure(experiments: pd.DataFrame, events: pd.DataFrame, title: str) -> Figure:
    """Draw incumbent and bound over time: one panel per model, as objectives of models are not comparable.

    Parameters
    ----------
    experiments
        Finished experiments of one data set and seed.
    events
        Incumbent and bound over time of these experiments at least.
    title
        Title.
    """
    models = list(dict.fromkeys(experiments["model"]))
    columns = min(len(models), 3)
    rows = math.ceil(len(models) / columns)
    figure = new_figure(PANEL_WIDTH * columns, PANEL_HEIGHT * rows + 0.5, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(models) :]:
        axes.set_axis_off()
    for axes, model in zip(panels, models, strict=False):
        _draw_bounds(axes, experiments[experiments["model"] == model], events, model)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK, parse_math=False)
    return figure


def series_figure(per_data: pd.DataFrame, measures: Sequence[str]) -> Figure:
    """Draw the means of measures over the data sets, in the suite's order: one panel each, one line per setting.

    Bars reach one standard error of the mean up and down. Data sets and settings without a result are left out.

    Parameters
    ----------
    per_data
        As of :func:`~mipforest.campaigns.report.by_data`.
    measures
        Names of its columns, all shares or scores.
    """
    per_data = per_data.dropna(subset=list(measures), how="all")
    figure = new_figure(PANEL_WIDTH * len(measures), PANEL_HEIGHT + 0.5, layout="constrained")
    settings = list(dict.fromkeys(per_data["setting"]))
    places = {data: place for place, data in enumerate(dict.fromkeys(per_data["data"]))}
    for axes, measure in zip(figure.subplots(1, len(measures), squeeze=False)[0], measures, strict=True):
        drawn = []
        for setting, style in zip(settings, _styles(len(settings)), strict=True):
            own = per_data[per_data["setting"] == setting]
            error = own[f"{measure}_sd"] / np.sqrt(own["done"].clip(lower=1))
            drawn.append(axes.errorbar(own["data"].map(places), own[measure], error, capsize=2, **style))
        axes.set_xticks(
            list(places.values()), list(map(printable, places)), rotation=30, ha="right", parse_math=False
        )
        if not measure.endswith("r2"):
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        _finish(axes, measure.removeprefix("test_").replace("_", " "))
        if measure == measures[0]:
            add_legend(axes, drawn, settings, fontsize=7, frameon=False)
    return figure


def _draw_bounds(axes: Axes, experiments: pd.DataFrame, events: pd.DataFrame, model: str) -> None:
    drawn, names = [], []
    known = events[events["cell"].isin(experiments["cell"])]
    for cell, style in zip(experiments.itertuples(), _styles(len(experiments)), strict=True):
        own = known[known["cell"] == cell.cell]
        # Events are of changes: the last state holds until the end.
        seconds = np.maximum([*own["seconds"], cell.seconds], EARLIEST)
        for column, dashes in (("objective", "-"), ("bound", _BOUND)):
            values = own[column].to_numpy(dtype=float)
            values = np.append(values, values[-1:] if len(values) else np.nan)
            (line,) = axes.step(seconds, values, where="post", **{**style, "linestyle": dashes})
            drawn += [line] if column == "objective" else []
        names.append(str(cell.setting))
    axes.set_xscale("log")
    axes.set_xlim(EARLIEST, max(1.0, 1.1 * experiments["seconds"].max()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = known[["objective", "bound"]].min().min(), known[["objective", "bound"]].max().max()
    if high - low <= FLAT * max(abs(low), abs(high)):
        around = 0.05 * max(abs(low), abs(high)) or 1.0
        axes.set_ylim(low - around, high + around)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_xlabel("seconds", color=INK)
    axes.set_ylabel("objective", color=INK)
    _finish(axes, f"{model}: incumbent (solid), bound (dashed)")
    if len(names) > 1:
        add_legend(axes, drawn, names, fontsize=7, frameon=False)


def _styles(number: int) -> list[dict[str, Any]]:
    """Return the style of each line; earlier lines are wider, so that they show below later ones."""
    return [
        {
            "color": PALETTE[k % len(PALETTE)],
            "linestyle": _DASHES[k % len(_DASHES)],
            "linewidth": 1.4 + 1.8 * (number - 1 - k) / max(number - 1, 1),
        }
        for k in range(number)
    ]


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, color=INK, parse_math=False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=FAINT, labelsize=8)


def _legend_below(axes: Axes, drawn: Sequence[object], names: Sequence[str]) -> None:
    add_legend(
        axes,
        list(drawn),
        list(names),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=2,
        fontsize=8,
        frameon=False,
        handlelength=3.2,
    )


@dataclass(frozen=True, eq=False)
class Distribution:
    """Share of instances up to a value, as a step function that is continuous from the right.

    Attributes
    ----------
    setting
        Whose it is.
    values
        (k,) finite values, ascending.
    shares
        (k,) share of all instances with at most that value.
    """

    setting: str
    values: FloatArray
    shares: FloatArray

    @classmethod
    def of(cls, setting: str, found: FloatArray) -> Distribution:
        """Take the values of all instances; infinite or NaN where there is none."""
        finite = np.sort(found[np.isfinite(found)])
        return cls(setting, finite, np.arange(1, len(finite) + 1) / max(len(found), 1))

    def at(self, value: float) -> float:
        """Return the share of instances with at most this value."""
        count = int(np.searchsorted(self.values, value, side="right"))
        return float(self.shares[count - 1]) if count else 0.0

    @property
    def last(self) -> float:
        """Share of instances that have a value at all."""
        return float(self.shares[-1]) if len(self.shares) else 0.0


def instance_table(experiments: pd.DataFrame, column: str) -> pd.DataFrame:
    """Lay a column out: one row per instance (data and seed), one column per setting, in the suite's order.

    Instances that some setting has not come to yet are left out; where a setting failed, the value is missing.
    """
    waiting = experiments.loc[experiments["state"] == "waiting", ["data", "seed"]].apply(tuple, axis=1)
    instances = experiments[["data", "seed"]].apply(tuple, axis=1)
    compared = experiments[~instances.isin(set(waiting))]
    order = list(dict.fromkeys(experiments["setting"]))
    table = compared.pivot_table(
        index=["data", "seed"], columns="setting", values=column, aggfunc="first", dropna=False
    )
    return table.reindex(columns=order).dropna(how="all")


def performance_profiles(costs: pd.DataFrame, least: float = 0.0) -> list[Distribution]:
    """Return the distribution of each setting's cost over the least cost of any setting, per instance.

    Parameters
    ----------
    costs
        One row per instance, one column per setting; NaN or infinite where it was not solved. Instances that no
        setting solved count in the shares.
    least
        Costs below it count as it.
    """
    values = costs.to_numpy(dtype=float)
    values = np.where(np.isnan(values), np.inf, np.maximum(values, least))
    best = values.min(axis=1, keepdims=True)
    ratio = np.divide(values, best, out=np.full_like(values, np.inf), where=np.isfinite(best) & (best > 0))
    # No cost can be below 0: any other cost is infinitely many times as large.
    ratio[(values == 0) & (best == 0)] = 1.0
    ratio[~np.isfinite(values)] = np.inf
    return [Distribution.of(str(name), ratio[:, k]) for k, name in enumerate(costs.columns)]


def distances_from_best(values: pd.DataFrame) -> list[Distribution]:
    """Return the distribution of each setting's distance from the largest value of any setting, per instance."""
    table = values.to_numpy(dtype=float)
    best = np.nanmax(table, axis=1, keepdims=True) if len(table) else table
    return [Distribution.of(str(name), (best - table)[:, k]) for k, name in enumerate(values.columns)]


def distributions(values: pd.DataFrame) -> list[Distribution]:
    """Return the distribution of each setting's values; NaN where there is none."""
    return [Distribution.of(str(name), values[name].to_numpy(dtype=float)) for name in values.columns]
