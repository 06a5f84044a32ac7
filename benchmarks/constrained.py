"""What constraints cost a proof: bound and gap with each helper of ``mipforest.constraints``, beside the model without.

Run: ``python benchmarks/constrained.py --seconds 60``. It prints a table in Markdown: docs/benchmarks/constrained.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from formulations.margot import Margot
from formulations.miret import Miret
from formulations.oct import Oct
from formulations.olct import Olct
from formulations.ort import Ort
from mipforest import constraints
from mipforest.data import Dataset, load
from mipforest.problem.expressions import NotExpressed
from mipforest.problem.problem import Problem

SAMPLES, FEATURES = 40, 5


def helpers(feature: str) -> dict[str, Callable[[Problem], None]]:
    """Return one use of each helper; ``feature`` is one of the data's."""

    def groups(problem: Problem) -> np.ndarray:
        return np.arange(problem.data.n) % 2

    def at_median(problem: Problem) -> None:
        column = problem.data.X_raw[:, list(problem.data.features.labels).index(feature)]
        values = np.unique(column)
        middle = len(values) // 2
        constraints.fix_split(problem, feature, float(values[middle - 1 : middle + 1].mean()))

    return {
        "none": lambda _: None,
        "forbid_features": lambda p: constraints.forbid_features(p, feature),
        "require_features": lambda p: constraints.require_features(p, feature),
        "feature_budget": lambda p: constraints.feature_budget(p, 3),
        "once_per_path": constraints.once_per_path,
        "monotone": lambda p: constraints.monotone(p, feature),
        "fix_split": at_median,
        "min_samples_leaf": lambda p: constraints.min_samples_leaf(p, 10),
        "demographic_parity": lambda p: constraints.demographic_parity(p, groups(p), 0.1),
        "equal_opportunity": lambda p: constraints.equal_opportunity(p, groups(p), 0.1),
        "max_false_negatives": lambda p: constraints.max_false_negatives(p, 2),
    }


def main() -> None:
    """Solve every model with every helper, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    whole = load("breast_cancer")
    feature = whole.features.labels[0]
    X, y = whole.X_raw[:SAMPLES, :FEATURES], whole.y[:SAMPLES]
    names = list(whole.features.labels[:FEATURES])
    few = Dataset.from_arrays(X, y, features=names)
    # The regression tree predicts the next feature from these.
    numbers = Dataset.from_arrays(X, whole.X_raw[:SAMPLES, FEATURES], features=names, task="regression")
    print("| model | constraint | status | objective | bound | gap | proven for |")
    print("|---|---|---|---|---|---|---|")
    for formulation in (Margot(C=1.0), Olct(C=1.0), Oct(), Ort(), Miret(ensemble="random-forest:trees=10")):
        data = (numbers if formulation.task == "regression" else few).with_scaling(formulation.scaling)
        for name, constrain in helpers(feature).items():
            problem = formulation.build(data, 2)
            try:
                constrain(problem)
            except NotExpressed:
                continue
            result = problem.solve(time_limit=seconds)
            print(
                f"| {formulation.name} | {name} | {result.status} | {result.objective:.5g} | {result.bound:.5g} | "
                f"{result.gap:.2%} | {result.proven_for or '-'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
