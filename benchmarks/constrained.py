"""What constraints cost a proof: bound and gap with each helper of ``mipforest.constraints``, beside the model without.

Each helper is used in the first of several ways that excludes the best tree without it, if there is one.

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
from mipforest.problem.formulation import Formulation
from mipforest.problem.problem import Problem
from mipforest.trees import Tree

#: Samples, and features of breast_cancer that tell the classes apart badly; the regression tree predicts the last one.
SAMPLES, FEATURES, TARGET = 30, (1, 4, 8), 5

Use = Callable[[Problem], None]


def uses(data: Dataset) -> dict[str, list[Use]]:
    """Return ways to use each helper; groups are the samples above the median of a feature, and the others."""
    names = list(data.features.labels)
    groups = [(column >= np.median(column)).astype(int) for column in data.X_raw.T]

    def split_at_median(name: str) -> Use:
        values = np.unique(data.X_raw[:, names.index(name)])
        middle = len(values) // 2
        threshold = float(values[middle - 1 : middle + 1].mean())
        return lambda p: constraints.fix_split(p, name, threshold)

    return {
        "forbid_features": [lambda p, name=name: constraints.forbid_features(p, name) for name in names],
        "require_features": [lambda p, name=name: constraints.require_features(p, name) for name in names],
        "feature_budget": [lambda p, k=k: constraints.feature_budget(p, k) for k in (2, 1)],
        "once_per_path": [constraints.once_per_path],
        "monotone": [
            lambda p, name=name, up=up: constraints.monotone(p, name, increasing=up)
            for name in names[:2]
            for up in (True, False)
        ],
        "fix_split": [split_at_median(name) for name in names[:2]],
        "min_samples_leaf": [lambda p, k=k: constraints.min_samples_leaf(p, k) for k in (5, 8)],
        "demographic_parity": [
            lambda p, group=group: constraints.demographic_parity(p, group, 0.1) for group in groups
        ],
        "equal_opportunity": [
            lambda p, group=group: constraints.equal_opportunity(p, group, 0.1) for group in groups
        ],
        "max_false_negatives": [
            lambda p, k=k: constraints.max_false_negatives(p, 0, positive=k) for k in data.classes
        ],
    }


def binding(
    formulation: Formulation, data: Dataset, ways: list[Use], free: Tree | None
) -> tuple[Problem, bool]:
    """Return a problem with the first use of a helper that excludes a tree, and whether there is one; or with the last.

    Raises
    ------
    NotExpressed
        If the model does not express the helper.
    """
    for use in ways:
        problem = formulation.build(data, 2)
        use(problem)
        if free is None:
            continue
        values = problem.encoded(free)
        # Of a tree that a helper excludes, binaries may have no values.
        if problem.model.variables.keys() - values.keys() or problem.worst_violation(values):
            return problem, True
    return problem, False


def main() -> None:
    """Solve every model with every helper, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    whole = load("breast_cancer")
    rows = np.arange(0, whole.n, whole.n // SAMPLES)[:SAMPLES]
    X, names = whole.X_raw[rows][:, FEATURES], [whole.features.labels[j] for j in FEATURES]
    few = Dataset.from_arrays(X, whole.y[rows], features=names)
    numbers = Dataset.from_arrays(X, whole.X_raw[rows, TARGET], features=names, task="regression")
    print("| model | constraint | excludes | status | objective | bound | gap | proven for |")
    print("|---|---|---|---|---|---|---|---|")
    for formulation in (Margot(C=1.0), Olct(C=1.0), Oct(), Ort(), Miret(ensemble="random-forest:trees=10")):
        data = (numbers if formulation.task == "regression" else few).with_scaling(formulation.scaling)
        free = None
        for name, ways in {"none": [lambda _: None], **uses(data)}.items():
            if not ways:  # a real target has no classes
                continue
            try:
                problem, excluded = binding(formulation, data, ways, free)
            except NotExpressed:
                continue
            result = problem.solve("highs", time_limit=seconds)
            free = result.solved_tree if free is None else free
            print(
                f"| {formulation.name} | {name} | {'yes' if excluded else '-'} | {result.status} | "
                f"{result.objective:.5g} | {result.bound:.5g} | {result.gap:.2%} | {result.proven_for or '-'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
