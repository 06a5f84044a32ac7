"""OLCT at depth two: starts, what the refinement gains, and the tangents V0 beside V3.

    python benchmarks/olct.py [FOLDER] [--limit 60] [--output docs/benchmarks/olct.md]

FOLDER (by default ../shared/data) holds the data sets as CSV files whose last column is ``target``. Where it is absent,
scikit-learn's wine is taken.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown import add_output, measured_with, publish, table

from formulations.olct import Olct
from mipforest.data import Dataset, load
from mipforest.problem.result import Result

DEPTH = 2
TANGENTS = ("V0", "V3")
NAMES = ("parkinsons", "heart", "cleveland", "wholesale", "ionosphere")


@dataclass(frozen=True)
class Split:
    """A data set, 80% of it for training."""

    name: str
    train: Dataset
    test: Dataset


def splits(folder: Path) -> list[Split]:
    """Read the data; labels 1 to 4 of cleveland are merged."""
    if not folder.is_dir():
        return wine()
    found = []
    for name in NAMES:
        path = str(folder / f"{name}.csv")
        data = load(path, target="target", task="classification", scaling="standard")
        found.append(
            split(name, data if len(data.classes) == 2 else data.relabel(dict.fromkeys("1234", "1")))
        )
    return found


def wine() -> list[Split]:
    """Each class against the others."""
    data = load("wine", scaling="standard")
    return [split(f"wine, {name}", data.binarise(name)) for name in data.classes]


def split(name: str, data: Dataset) -> Split:
    return Split(name, *data.split(0.2, seed=0))


def solved(part: Split, formulation: Olct, limit: float) -> tuple[Result, dict[str, Any]]:
    result = formulation.build(part.train, DEPTH).solve(time_limit=limit)
    assert result.verified, result.failed_checks
    return result, result.to_dict(part.test)


def pure_rows(limit: float) -> list[list[str]]:
    """The refinement where nodes are pure."""
    found = [(part.name, solved(part, Olct(), limit)[1]) for part in wine()]
    return [refinement_row(name, "V0", measured) for name, measured in found]


def solve_row(part: Split, result: Result, found: dict[str, Any]) -> list[str]:
    """What the solver did: the surrogate's objective."""
    train, problem = part.train, result.problem
    formulation, instance = problem.formulation, problem.instance
    greedy = formulation.evaluate(formulation.start("greedy-logistic", instance), instance)
    return [
        part.name,
        f"{train.n} x {train.p}",
        *(f"{number:.2f}" for number in (greedy, found["warm_start_objective"], found["objective"])),
    ]


def refinement_row(name: str, tangents: str, found: dict[str, Any]) -> list[str]:
    """The same trees by the log-loss itself."""
    exact, refined = found["exact_log_loss_objective"], found["refined_log_loss_objective"]
    return [
        name,
        tangents,
        *(f"{number:.2f}" for number in (found["objective"], exact)),
        f"{exact - found['objective']:.2f}",
        f"{found['largest_tangent_error']:.3f}",
        f"{refined:.2f}",
        f"{exact - refined:.2f}",
        f"{found['refinement_gain_at_pure_nodes']:.2f}",
        f"{100 * found['gap']:.1f}%",
    ]


def quality_row(name: str, tangents: str, found: dict[str, Any]) -> list[str]:
    """What the refined tree is worth."""
    parts = ("train", "test")
    return [
        name,
        tangents,
        *(f"{100 * found[f'{part}_accuracy']:.1f}" for part in parts),
        *(f"{found[f'{part}_{measure}']:.3f}" for measure in ("log_loss", "brier_score") for part in parts),
        str(len(found["features_used"])),
    ]


SOLVE_HEADER = (
    "data",
    "samples x features",
    "greedy-logistic",
    "start",
    "objective",
)
REFINEMENT_HEADER = (
    "data",
    "tangents",
    "surrogate",
    "exact",
    "exact - surrogate",
    "largest error",
    "refined",
    "gained",
    "of it at pure nodes",
    "gap",
)
QUALITY_HEADER = (
    "data",
    "tangents",
    "accuracy, train",
    "accuracy, test",
    "log loss, train",
    "log loss, test",
    "Brier, train",
    "Brier, test",
    "features",
)


def page(folder: Path, limit: float) -> str:
    """Solve everything and lay out the page."""
    solves, refinements, qualities = [], [], []
    for part in splits(folder):
        for tangents in TANGENTS:
            result, found = solved(part, Olct(tangents=tangents), limit)
            if tangents == "V0":
                solves.append(solve_row(part, result, found))
            refinements.append(refinement_row(part.name, tangents, found))
            qualities.append(quality_row(part.name, tangents, found))
    return PAGE.format(
        limit=limit,
        solves=table(SOLVE_HEADER, solves),
        refinements=table(REFINEMENT_HEADER, refinements),
        pure=table(REFINEMENT_HEADER, pure_rows(limit)),
        qualities=table(QUALITY_HEADER, qualities),
        measured=measured_with(("mipforest", "highspy", "scikit-learn")),
    )


PAGE = """# OLCT, depth 2: starts and the refinement

`python benchmarks/olct.py FOLDER --output docs/benchmarks/olct.md`: variant `valid`, C = 1, solved by `auto`, which
takes the tree search `routing`, at most {limit:.0f} s per solve; 80% of the samples for training, stratified, seed 0;
labels 1 to 4 of cleveland merged. {measured}
What the columns mean is on [the model's page](../models/olct.md#what-the-result-says); proofs and processor
seconds are on [the page of the search](routing_olct.md).

## Starts, V0

`greedy-logistic` is the start that the thesis describes, with each node's split then optimised for its routing; `start`
is the default: the best of `greedy-logistic`, CART and a search over penalties.

{solves}

## The surrogate and the log-loss, V0 and V3

`surrogate` is the objective of the solved tree, `exact` the same with the log-loss itself, `refined` the exact one
after the refinement; `gained` is the difference of the last two.

{refinements}

- For one and the same tree V3 is never farther from the log-loss than V0, as its tangents include those of V0.
- This does not hold for the *solver's* gap, between the surrogate's objective and its bound. V3 has 15 rows in the
  place of one, and its surrogate lies higher: within equal time its gap may be larger than V0's.
- Both bounds, surrogate x (1 - gap), hold for the exact objective of every tree, too: the larger one is the better.
- Neither choice gives the better refined tree every time: the refinement gains much after V0, and little after V3.

Nodes of the last level that one class alone reaches appear where the root separates the classes, as in scikit-learn's
wine, each class against the others:

{pure}

There the convention for pure nodes, not a better fit, makes the difference between `exact` and `refined`.

## The trees

Accuracies in percent; `features` is the number of features that the tree uses.

{qualities}
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per solve")
    add_output(parser)
    given = parser.parse_args()
    publish(page(given.folder, given.limit), given.output)
