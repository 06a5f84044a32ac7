"""Pictures of a campaign, and the distributions over many instances that they draw.

Source of the profiles: E. Dolan, J. Moré, *Benchmarking optimization software with performance profiles*, Mathematical
Programming 91 (2002). Distances from the best value, with differences in the place of ratios, are those of the OLCT
experiments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter, ScalarFormatter

from mipforest.arrays import FloatArray
from mipforest.trees.plot import FAINT, INK, PALETTE, add_legend, new_figure

#: Costs below it count as it: times of a few milliseconds tell the machine's mood, not the setting.
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
        As of :func:`~mipforest.campaigns.tables.by_data`.
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
        axes.set_xticks(list(places.values()), list(places), rotation=30, ha="right", parse_math=False)
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
    # A cost of nothing is the best there is: any other is infinitely many times as large.
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
