"""Few labels from a biased sample: `semi-oct`, which knows the totals of the others, beside `oct` without these.

python benchmarks/semi_supervised.py [--seeds 20] [--output docs/benchmarks/semi_supervised.md]
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np
from markdown import add_output, measured_with, publish, table

from mipforest import get_formulation
from mipforest.data import Dataset, load

#: Bundled data and the class to tell from the others.
SETS = (("breast_cancer", "malignant"), ("wine", "class_1"), ("iris", "versicolor"))

#: Labelled samples, share of them that is of the class, share of test samples, levels of splits, and cost of a split.
LABELLED, BIASED, TEST, DEPTH, ALPHA = 20, 0.85, 0.3, 2, 0.02

TEXT = f"""\
# Few labels from a biased sample

One class against the others. {LABELLED} training samples have a label, {BIASED:.0%} of them drawn from the class,
whatever its share is; the others have none, and their number in the class is known. `oct` has the labelled ones alone.
Depth {DEPTH}, alpha {ALPHA}, price of totals 1, trees of the exact searches of both models; accuracy, in %, on
{TEST:.0%} of the samples, which were kept apart. `fair` is the same with labelled samples drawn at random: SEEDS seeds,
mean and standard error of the mean of the difference. Proven is how many trees of `semi-oct` are optimal, processor
seconds those of one.

"""


def sample(rng: np.random.Generator, y: np.ndarray, share: float | None) -> np.ndarray:
    """(n,) which training samples have a label: drawn at random, or a share of them from class 1."""
    chosen = np.zeros(len(y), dtype=bool)
    if share is None:
        chosen[rng.choice(len(y), LABELLED, replace=False)] = True
        return chosen
    of_class = min(round(share * LABELLED), int(y.sum()) - 1)
    for k, count in ((1, of_class), (0, LABELLED - of_class)):
        chosen[rng.choice(np.flatnonzero(y == k), count, replace=False)] = True
    return chosen


def accuracies(name: str, positive: str, seed: int, share: float | None) -> tuple[float, float, bool, float]:
    """Test accuracies of `oct` and `semi-oct`, whether the latter is proven, and its processor seconds."""
    train, test = load(name).binarise(positive).split(TEST, seed=seed)
    y = train.y.astype(np.int64)
    known = sample(np.random.default_rng(seed), y, share)
    few = Dataset.from_arrays(train.X_raw[known], y[known])
    both = Dataset.from_arrays(train.X_raw[known], y[known], unlabelled=train.X_raw[~known])
    totals = {"1": float(y[~known].sum())}
    began = process_time()
    semi = get_formulation("semi-oct")(alpha=ALPHA, totals=totals)
    instance = semi.build(both, DEPTH, declare=False).instance
    seconds = process_time() - began
    value = semi.evaluate(instance.known, instance)
    alone = get_formulation("oct")(alpha=ALPHA).build(few, DEPTH).solve(time_limit=None).tree
    predicted = (
        alone.predict(test.X_raw),
        instance.known.predict(both.encoding.to_scaled(test.X_raw)),
    )
    of_oct, of_semi = (100 * float((labels == test.y).mean()) for labels in predicted)
    return of_oct, of_semi, value - instance.least_objective <= 1e-7, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    add_output(parser)
    asked = parser.parse_args()
    rows = []
    for name, positive in SETS:
        for how, share in (("biased", BIASED), ("fair", None)):
            found = np.array([accuracies(name, positive, seed, share) for seed in range(asked.seeds)])
            gain = found[:, 1] - found[:, 0]
            rows.append(
                [
                    f"{name}, {positive}",
                    how,
                    f"{found[:, 0].mean():.1f}",
                    f"{found[:, 1].mean():.1f}",
                    f"{gain.mean():+.1f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.1f}",
                    f"{int(found[:, 2].sum())} of {len(found)}",
                    f"{np.median(found[:, 3]):.1f}",
                ]
            )
            print(rows[-1], flush=True)
    head = ["data", "labels", "`oct`", "`semi-oct`", "difference", "proven", "seconds"]
    text = TEXT.replace("SEEDS", str(asked.seeds)) + table(head, rows)
    publish(f"{text}\n{measured_with(['numpy', 'numba'])}\n", asked.output)


if __name__ == "__main__":
    main()
