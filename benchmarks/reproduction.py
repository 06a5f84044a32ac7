"""Tables of docs/reproduction.md from the results of campaigns: each figure beside the published one.

``python benchmarks/reproduction.py margot-tables-7-8.sqlite --only oct-h-sparse``
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path

import markdown
import pandas as pd

from mipforest.campaigns.report import read_results

#: Column of the results, heading, and how it is written; those that are published have the paper's figure beside them.
COLUMNS = (
    ("test_accuracy", "acc. %", "{:.1%}"),
    ("test_balanced_accuracy", "bal. acc. %", "{:.1%}"),
    ("test_fidelity", "fidelity %", "{:.1%}"),
    ("test_r2", "R2", "{:.3f}"),
    ("gap", "gap %", "{:.1%}"),
    ("seconds", "seconds (processor)", "{:.0f}"),
    ("objective", "objective", "{:.6g}"),
    ("bound", "bound", "{:.6g}"),
)


def setting_table(rows: pd.DataFrame, published: Mapping[str, Mapping[str, float]]) -> str:
    """Return the table of one setting: a row per data set, means over seeds."""
    header, lines = ["data"], [[str(data)] for data in rows["data"]]
    for name, heading, form in COLUMNS:
        if name not in rows or rows[name].isna().all():
            continue
        header.append(heading)
        for line, (_, row) in zip(lines, rows.iterrows(), strict=True):
            text = _written(form, row[name])
            line.append(f"{text} ({row['cpu_seconds']:.0f})" if name == "seconds" else text)
        if any(name in figures for figures in published.values()):
            header.append("paper")
            paper = "{:.1f}" if name == "seconds" else form
            for line, data in zip(lines, rows["data"], strict=True):
                line.append(_written(paper, published.get(str(data), {}).get(name, math.nan)))
    return markdown.table(header, lines)


def _written(form: str, value: float) -> str:
    return "" if pd.isna(value) else form.format(value).rstrip("%")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="results files of campaigns")
    parser.add_argument("--only", nargs="*", default=[], help="settings; all if not given")
    markdown.add_output(parser)
    asked = parser.parse_args()
    parts = []
    for path in asked.results:
        found = read_results(path)
        processor = found.experiments.groupby(["setting", "data"])["cpu_seconds"].mean().rename("cpu_seconds")
        done = found.per_data[found.per_data["done"] > 0].join(processor, on=["setting", "data"])
        for setting, rows in done.groupby("setting", sort=False):
            if asked.only and setting not in asked.only:
                continue
            published = found.suite.published.get(rows["model"].iloc[0], {})
            parts.append(f"## {found.suite.name}: {setting}\n\n{setting_table(rows, published)}\n")
    markdown.publish("\n".join(parts), asked.output)


if __name__ == "__main__":
    main()
