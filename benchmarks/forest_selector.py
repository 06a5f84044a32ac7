"""One tree of a forest per sample: gates beside CART, the forest, and the best tree of it, on test samples.

    python benchmarks/forest_selector.py --data FOLDER [--seeds 2] [--output docs/benchmarks/forest_selector.md]

FOLDER holds spambase.csv and abalone.csv with a column ``target``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from markdown import add_output, measured_with, publish, table
from sklearn.model_selection import train_test_split

from mipforest.estimators import ForestSelectorClassifier, ForestSelectorRegressor

#: Names of the rows, and the settings that differ from the defaults.
SELECTORS: dict[str, dict[str, Any]] = {
    "gate tree of depth 3": {},
    "gate tree, out-of-bag rewards": {"out_of_bag": True},
    "25 neighbours": {"gate": "neighbours"},
    "25 neighbours, out-of-bag rewards": {"gate": "neighbours", "out_of_bag": True},
    "network, all rewards": {"gate": "network"},
    "network, out-of-bag rewards": {"gate": "network", "out_of_bag": True},
    "network, drawn rewards, printed entropy": {
        "gate": "network",
        "objective": "sampled",
        "entropy": "printed",
    },
}
#: Rewards of regressions that each sample's own errors are the unit of, as in the thesis.
PER_SAMPLE = {
    "gate tree, unit per sample": {"reward": "per_sample"},
    "network, unit per sample": {"gate": "network", "reward": "per_sample"},
}
SETS = {"spambase": ForestSelectorClassifier, "abalone": ForestSelectorRegressor}
PACKAGES = ("numpy", "scikit-learn")


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--seeds", type=int, default=2, help="splits of each set")
    add_output(parser)
    args = parser.parse_args()
    found = {name: measured(args.data, name, args.seeds) for name in SETS}
    publish(page(found, args.seeds), args.output)


def measured(folder: Path, name: str, seeds: int) -> list[list[str]]:
    """Return the rows of one data set: means over splits, 80% of the samples for training."""
    frame = pd.read_csv(folder / f"{name}.csv")
    X, y = frame.drop(columns="target"), frame["target"]
    selectors = SELECTORS | (PER_SAMPLE if name == "abalone" else {})
    selected: dict[str, list[tuple[float, int, float]]] = {one: [] for one in selectors}
    others: dict[str, list[float]] = {}
    for seed in range(seeds):
        train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.2, random_state=seed)
        for one, settings in selectors.items():
            began = process_time()
            fitted = SETS[name](random_state=seed, **settings).fit(train_X, train_y)
            seconds = process_time() - began
            report = fitted.report(test_X, test_y)
            selected[one].append((report.values["selector"], int((report.shares > 0).sum()), seconds))
            print(name, seed, one, *selected[one][-1], flush=True)
        for other, value in report.values.items():
            if other != "selector":
                others.setdefault(other, []).append(value)
    rows = []
    for one, runs in selected.items():
        value, used, seconds = np.mean(runs, axis=0)
        rows.append([one, f"{value:.3f}", f"{used:.1f}", f"{seconds:.1f}"])
    return rows + [[other, f"{np.mean(values):.3f}", "", ""] for other, values in others.items()]


def page(found: dict[str, list[list[str]]], seeds: int) -> str:
    """Write the page."""
    tables = {
        name: table(["predictor", measure, "trees used", "seconds"], found[name])
        for name, measure in (("spambase", "accuracy"), ("abalone", "RMSE"))
    }
    return f"""# One tree of a forest per sample

Means over test samples of {seeds} splits, 80% for training. The forest has 50 trees of depth 4, grown anew with each
seed; "trees used" counts those that are chosen on the test samples. Seconds are processor seconds of `fit`. CART of
depth 7 has paths as long as those of the gate tree and the chosen tree together. The oracle knows the target; the best
single tree is the best one on the training samples.

## spambase (4601 samples, 57 features)

{tables["spambase"]}

## abalone (4177 samples, 8 features)

{tables["abalone"]}

{measured_with(PACKAGES)}
Run again: `python benchmarks/forest_selector.py --data FOLDER --seeds {seeds} --output FILE`.
"""


if __name__ == "__main__":
    main()
