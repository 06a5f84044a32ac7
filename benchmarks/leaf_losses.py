"""Leaf losses that vector walks do not take, at depth 3: sums over bins beside plain loops of the exact search.

    python benchmarks/leaf_losses.py [--limit 60] [--output docs/benchmarks/leaf_losses.md]

The data are drawn: features are uniform, and trees of depth 3, or sums of features, tell the targets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from markdown import add_output, measured_with, publish, table

import mipforest
from mipforest.data import Dataset
from mipforest.searches.exact import tables

#: Samples, features, targets, labels of each target, and levels of splits.
N, P, T, K, DEPTH = 10_000, 10, 3, 3, 3

#: Share of labels that are drawn at random.
NOISE = 0.2

#: Decisions of policy trees, and their levels of splits.
DECISIONS, LEVELS = 20, 2

TEXT = f"""\
# Leaf losses at depth 3

Trees of `exact-search` for {N:,} samples of {P} features, all values different unless said: processor seconds of one
thread, model and checks included, at most LIMIT s of wall time. `bins` are the search as it is, `plain loops` the same
without [bins](../tree_searches.md#exact-search). A gap is what was left. Labels are of {T} targets with {K} classes
each. Policy trees have {DECISIONS} decisions and two levels.

"""


def leaves_of_a_tree(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """(n,) leaf of each sample in a random tree of three levels."""
    B = 2**DEPTH - 1
    feature, threshold = rng.integers(0, P, B), rng.uniform(0.25, 0.75, B)
    node = np.zeros(len(X), dtype=np.int64)
    for _ in range(DEPTH):
        node = 2 * node + 1 + (X[np.arange(len(X)), feature[node]] >= threshold[node])
    return node - B


def noisy(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    """Labels of which some are drawn."""
    return np.where(rng.random(y.shape) < NOISE, rng.integers(0, K, y.shape), y)


def ranges(values: np.ndarray) -> np.ndarray:
    """Labels of as many values each, from the lowest on."""
    return np.digitize(values, np.quantile(values, np.arange(1, K) / K))


Drawn = Callable[[np.random.Generator, np.ndarray], dict[str, Any]]


def labels_of_one_tree(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    leaf = leaves_of_a_tree(rng, X)
    return {"y": np.column_stack([noisy(rng, rng.integers(0, K, 2**DEPTH)[leaf]) for _ in range(T)])}


def labels_of_own_trees(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    trees = [rng.integers(0, K, 2**DEPTH)[leaves_of_a_tree(rng, X)] for _ in range(T)]
    return {"y": np.column_stack([noisy(rng, y) for y in trees])}


def labels_of_sums(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    return {"y": np.column_stack([noisy(rng, ranges(X[:, k] + X[:, k + 1])) for k in range(T)])}


def numbers_of_one_tree(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    leaf = leaves_of_a_tree(rng, X)
    return {"y": rng.normal(size=(2**DEPTH, T))[leaf] + 0.5 * rng.normal(size=(len(X), T))}


def counts(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    return {"y": rng.poisson(rng.uniform(0.5, 4, 2**DEPTH)[leaves_of_a_tree(rng, X)]).astype(float)}


def times(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    time = rng.exponential(rng.uniform(0.5, 4, 2**DEPTH)[leaves_of_a_tree(rng, X)])
    censored = rng.exponential(4.0, len(X))
    return {"y": np.minimum(time, censored) + 1e-3, "event": time <= censored}


def numbers(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    return {
        "y": np.round(rng.normal(size=2**DEPTH)[leaves_of_a_tree(rng, X)] + 0.5 * rng.normal(size=len(X)), 1)
    }


def rewards(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    effect = rng.normal(size=(2**LEVELS, DECISIONS))[leaves_of_a_tree(rng, X) // 2]
    return {"y": None, "rewards": np.round(effect + rng.normal(size=effect.shape), 2)}


def rounded(drawn: Drawn, values: int) -> Drawn:
    """Draw from features of a few values, and round these to them."""

    def draw(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
        X[:] = np.floor(X * values) / values
        return drawn(rng, X)

    return draw


PROBLEMS: list[tuple[str, str, Drawn, int]] = [
    ("survival", "times, a third censored", times, DEPTH),
    ("survival", "the same, features of 50 values", rounded(times, 50), DEPTH),
    ("poisson", "counts", counts, DEPTH),
    ("quantile", "numbers of one decimal", numbers, DEPTH),
    ("multi", "numbers of one tree", numbers_of_one_tree, DEPTH),
    ("multi", "labels of one tree", labels_of_one_tree, DEPTH),
    ("multi", "labels of a tree for each target", labels_of_own_trees, DEPTH),
    ("multi", "ranges of sums of two features", labels_of_sums, DEPTH),
    ("policy", "rewards of a tree", rewards, LEVELS),
]


def fitted(model: str, drawn: Drawn, depth: int, n: int, limit: float) -> tuple[str, float]:
    """Solve a problem that is drawn anew; return a cell of the table, and the objective."""
    rng = np.random.default_rng(0)
    X = rng.random((n, P))
    drawn_targets = drawn(rng, X)  # before X is read: it may be rounded
    data = Dataset.from_arrays(
        X, **drawn_targets, **({"task": "regression"} if model in ("poisson", "quantile") else {})
    )
    began = process_time()
    problem = mipforest.get_formulation(model)(variant="valid").build(data, depth, whole=False, declare=False)
    result = problem.solve("exact-search", time_limit=limit, threads=1)
    seconds = process_time() - began
    assert result.verified
    return f"{seconds:.1f}" + (
        "" if result.status == "optimal" else f", gap {result.gap:.0%}"
    ), result.objective


def row(model: str, what: str, drawn: Drawn, depth: int, limit: float) -> list[str]:
    """Return one line: the search as it is, and without bins."""
    most, cells, values = tables.MAX_BINS, [], []
    for bins in (most, 0):
        tables.MAX_BINS = bins
        try:
            fitted(model, drawn, depth, 400, 10.0)  # compiles
            cell, value = fitted(model, drawn, depth, N, limit)
        finally:
            tables.MAX_BINS = most
        cells.append(cell)
        values.append(value)
    assert any("gap" in cell for cell in cells) or np.isclose(*values, rtol=1e-6), values
    return [model, what, str(depth), f"{values[0]:.5g}", *cells]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each search")
    add_output(parser)
    args = parser.parse_args()
    rows = [row(*problem, args.limit) for problem in PROBLEMS]
    text = TEXT.replace("LIMIT", f"{args.limit:g}")
    text += table(["model", "targets", "depth", "objective", "bins", "plain loops"], rows)
    text += f"\n\n{measured_with(['mipforest', 'numpy', 'numba'])}\n"
    publish(
        text + f"Run again: `python benchmarks/leaf_losses.py --limit {args.limit:g} --output FILE`.\n",
        args.output,
    )


if __name__ == "__main__":
    main()
