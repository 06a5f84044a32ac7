"""What default hyperparameters are worth: scores on training and on test samples, for values around the default.

    python benchmarks/defaults.py [--only MODEL ...] [--data FILE.csv ...] [--output FILE]

Every cell is the mean of three folds. ``--data`` adds data sets whose target is the last column.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markdown import add_output, measured_with, publish, table
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.model_selection import KFold, StratifiedKFold

from mipforest.estimators import (
    FitWarning,
    MargotClassifier,
    OCTClassifier,
    OLCTClassifier,
    ORTRegressor,
)

FOLDS = 3

Samples = tuple[pd.DataFrame, np.ndarray]

#: Estimator, depth, and the settings tried; the default is the first one.
TRIED: dict[str, tuple[Callable[..., Any], dict[str, Any], str, tuple[float, ...]]] = {
    "oct, depth 2": (OCTClassifier, {"depth": 2}, "N_min", (1, 0.02, 0.05)),
    "oct, depth 3": (OCTClassifier, {"depth": 3}, "N_min", (1, 0.02, 0.05)),
    "ort, depth 2": (ORTRegressor, {"depth": 2}, "N_min", (1, 0.02, 0.05)),
    "ort-l, depth 2": (ORTRegressor, {"depth": 2, "leaves": "linear"}, "lam", (0.01, 0.003, 0.03, 0.1)),
    "ort-l, depth 2, N_min": (ORTRegressor, {"depth": 2, "leaves": "linear"}, "N_min", (1, 0.05)),
    "margot, depth 2": (MargotClassifier, {"depth": 2}, "C", (1.0, 0.1, 10.0, 100.0)),
    "olct, depth 2": (OLCTClassifier, {"depth": 2}, "C", (1.0, 0.1, 10.0, 100.0)),
}


def bundled() -> dict[str, Samples]:
    """Return the data sets that scikit-learn brings; the first class against the others where there are three."""
    loaded = {
        "iris": load_iris(return_X_y=True, as_frame=True),
        "wine": load_wine(return_X_y=True, as_frame=True),
        "breast_cancer": load_breast_cancer(return_X_y=True, as_frame=True),
        "diabetes": load_diabetes(return_X_y=True, as_frame=True),
    }
    return {name: (X, np.asarray(y)) for name, (X, y) in loaded.items()}


def read(file: Path) -> Samples:
    """Read a data set; rows with missing values are left out."""
    frame = pd.read_csv(file).dropna().reset_index(drop=True)
    return frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()


def scores(make: Callable[..., Any], settings: Mapping[str, Any], X: pd.DataFrame, y: np.ndarray) -> str:
    """Return a cell: training score, test score, and how many of the fits were proven."""
    regression = make is ORTRegressor
    cv = (KFold if regression else StratifiedKFold)(FOLDS, shuffle=True, random_state=1)
    found = []
    for train, test in cv.split(X, y):
        given = dict(settings)
        if given.get("N_min", 1) < 1:  # a share of the samples
            given["N_min"] = max(1, int(given["N_min"] * len(train)))
        tree = make(**given).fit(X.iloc[train], y[train])
        proven = tree.status_ == "optimal"
        found.append((tree.score(X.iloc[train], y[train]), tree.score(X.iloc[test], y[test]), proven))
    train_score, test_score, proven = np.mean(found, axis=0)
    return f"{train_score:.3f} / {test_score:.3f} ({round(FOLDS * proven)})"


def suits(make: Callable[..., Any], y: np.ndarray) -> np.ndarray | None:
    """Return the target as an estimator takes it, ``None`` where it does not."""
    many = len(np.unique(y)) > 10
    if many != (make is ORTRegressor):
        return None
    binary_only = make in (MargotClassifier, OLCTClassifier)
    # The class in the middle is the hardest to tell from the others.
    return (y == np.unique(y)[1]).astype(int) if binary_only and len(np.unique(y)) > 2 else y


def section(name: str, data: Mapping[str, Samples], limit: float) -> str:
    """Return the table of a model."""
    make, fixed, parameter, values = TRIED[name]
    targets = {known: suits(make, y) for known, (_, y) in data.items()}
    used = {known: y for known, y in targets.items() if y is not None}
    rows = []
    for value in values:
        settings = {**fixed, parameter: value, "time_limit": limit}
        cells = [scores(make, settings, data[known][0], y) for known, y in used.items()]
        share = parameter == "N_min" and value < 1
        label = f"{value:.0%} of the samples" if share else f"{value:g}"
        rows.append([label + (" (default)" if value == values[0] else ""), *cells])
        print(name, *rows[-1], flush=True)
    return (
        f"### `{name.split(',')[0]}`{name[len(name.split(',')[0]) :]}\n\n{table([parameter, *used], rows)}\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=3.0, help="seconds for each fit")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="models to try, by the first word")
    parser.add_argument("--data", nargs="+", type=Path, default=[], metavar="FILE")
    add_output(parser)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", FitWarning)
    data = bundled() | {file.stem: read(file) for file in given.data}
    names = [name for name in TRIED if not given.only or name.split(",")[0] in given.only]
    tables = "\n".join(section(name, data, given.limit) for name in names)
    publish(
        PAGE.format(
            limit=given.limit,
            folds=FOLDS,
            tables=tables,
            measured=measured_with(["mipforest", "scikit-learn"]),
        ),
        given.output,
    )


PAGE = """# Defaults

Scores on training samples and on test samples (accuracy, R2 of `ort` and `ort-l`) for values around the defaults,
means of {folds} folds, at most {limit:g} s for each fit; in brackets the fits that were proven. Where there are more
than two classes, models of two classes separate the second one from the others.

**`N_min` is 1**, the least number of samples in a leaf. At depth 2 a least leaf of 5% of the samples changes next to
nothing: four leaves are large anyway. At depth 3 it costs more on test samples than it saves. A tree with `N_min=1`
is the best tree of its depth; scikit-learn's `min_samples_leaf` has the same default. At depth 4 and beyond, on few
samples, choose `depth` and `alpha` by [tuning](../tuning.md) first.

**`alpha` is 0** (`oct`, `ort` and related models): the depth alone limits the tree. A price of splits has no value
that suits all data; `mipforest tune --grid alpha=0,0.005,0.02` finds one.

**`lam` is 0.01** (`ort-l`, `ort-lh`): on `diabetes`, linear leaves fit the training samples better than the test
samples, with every value. Larger values cost more on test samples than they save. Smaller values are better where the
target is smooth (`yacht`) and worse on `diabetes`.

**`C` is 1** (`margot`, `olct`): no value is best everywhere, and the best one differs by data set more than by model.
Take 1 for a first look, then `mipforest tune --grid C=0.1,1,10,100`.

**`OptimalTreeClassifier` takes `oct`, `OptimalTreeRegressor` takes `ort`, at depth 2**: univariate splits are read
most easily, any number of classes is possible, and nearly all of these trees are proven within seconds (below).
Estimators that tune themselves (`...CV`) try depths up to 5, with 4 folds and 50 starts: half the starts of
`mipforest tune --method batch`, because the user waits for a call from Python. Raise the depth first; deeper trees
can hardly be read.

**Randomised trees: `gamma` is 512**, with 20 starts (the regressors have 5, as each takes longer) and a leaf for
every class (`coverage`), as in all experiments of the papers. With few samples and many features, a smaller `gamma`
is better on test samples ([measured](randomized_trees.md); German credit: 68.4% with 512, 70.2% with 128):
`mipforest tune --grid gamma=32,128,512`. The estimators charge nothing for features (`lam_local` and `lam_global` are
0), because only accuracy is asked for. Model `s-orct` of the command line, which is `orct` if it has no penalty, has
`lam_global=0.005`. `ridge` is 1e-3 (`s-orrt`): without it the slopes of leaves that few samples reach are not
determined.

**Score cards have at most 3 rules** of -5 to 5 points (`ogrs`, `ors`), as in the thesis' experiments; the exact
search proves cards of three rules in less than a second to 140 s on eight data sets ([measured](risk_scores.md)).
`tangents` is `V3`, the finest of the thesis: the bound of a matrix solver is at most 0.0059 per sample below the
log-loss. `min_support` is 1, which is no condition; raise it where free thresholds fit the training samples too
closely.

**Prescriptive trees: `mu` is 0.5**, as in the thesis, where 0.5 to 0.8 is best. With outcomes in other units than
those of the experiments, set `outcome_scale=standard` first. `n_treatment` is 10, for which the thesis has no value:
means of fewer outcomes look too good. `alpha` is 0 as above. `lam` of linear estimates is 0.1, a small value;
`mipforest tune --method batch` chooses it first.

**Forest selectors have 50 trees of depth 4, and a gate tree of depth 3** with at least 20 samples in a leaf. All of
it can be read, and a path has at most seven conditions. The policy network predicts better
([measured](forest_selector.md)), but cannot be read.

MIRET's `alpha = 0.2` is the paper's, `epsilon` and `mu` are margins larger than the tolerances of solvers (see the
pages of the models).

{tables}
{measured} The limits of fits are in wall time. `heart`, `auto_mpg` and `yacht` are from the UCI repository, given
with `--data`; all others come with scikit-learn.

Run again: `python benchmarks/defaults.py --data FILE.csv ... --output docs/benchmarks/defaults.md`.
"""

if __name__ == "__main__":
    main()
