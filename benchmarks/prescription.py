"""Prescriptive trees and what they are held against, on the thesis' three experiments with known outcomes.

    python benchmarks/prescription.py --repetitions 5 --output docs/benchmarks/prescription.md

Dunn 2018, section 6.2: 1000 samples to train, 60,000 without noise to test. A third of the training samples tells
depth, and the weight of linear estimates, by each tree's own objective; then all of them are fitted. Regressions
choose by cross-validation. Policy trees are fitted to scores of both treatments, or to the true outcomes of the
training samples, which shows what trees of their depth can do without any error of estimation.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from markdown import add_output, measured_with, publish, table
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mipforest import reward_scores
from mipforest.data import Dataset, load, treatment_experiment
from mipforest.data.reward_scores import Scores
from mipforest.data.treatments import TreatmentExperiment
from mipforest.estimators import (
    FitWarning,
    OptimalPrescriptiveTree,
    OptimalTreeRegressor,
    PolicyTreeClassifier,
    RegressAndCompare,
    policy_measures,
)

PACKAGES = ("numpy", "scikit-learn", "numba")

#: Test samples, and the share of the training samples that settings are chosen on.
N_TEST, SHARE = 60_000, 1 / 3

#: What a leaf's treatment must have been given to; the samples of a leaf of a policy tree.
N_TREATMENT = 20

#: Depth up to which policy trees are proven by the exact search, in seconds; the local search finds deeper ones.
EXACT = 2

#: What the thesis says of each experiment; its figures are not printed as numbers, but for the trees that it shows.
THESIS = {
    1: "OPT(0.5)-L is best in both measures, PT and OPT(1) are very poor in effect; one tree 0.99 / 0.90, split x1 = 1",
    2: "OPT(0.5)-L is best in both measures, PT and OPT(1) are very poor in effect; one tree 0.925 / 0.82",
    3: "RC-RF and causal forests are best, OPT(0.5)-L is close",
}

TEXT = """\
# Prescriptive trees

`python benchmarks/prescription.py --repetitions {repetitions} --functions {functions}
--experiments {experiments}`. Dunn's experiments
(thesis of 2018, section 6.2; `synthetic:treatments`), base and effect **{functions}**: 1000 samples to train, 60,000
without noise to test. Treatment accuracy is the share of test samples with the better treatment, effect accuracy the
R² of the estimated effect, regret the mean outcome under the prescriptions less that under the better treatments;
means over {repetitions} draws (the thesis: 100), standard errors in brackets, processor seconds of choosing the
settings and fitting.

PT is the greedy personalisation tree, OPT(mu) a prescriptive tree of the local search ({starts} random starts
and the greedy tree, no kicks, depth 1 to {depth},
`n_treatment={n_treatment}`), -L with linear estimates (`lam` 1 or 10). RC are regress-and-compare: one
regression per treatment, by an optimal regression tree (ORT), the lasso, a random forest, nearest neighbours.
Causal forests are in another package, and are left out. Policy trees (exact search to depth {exact}, local search
beyond, depth 1 to {depth}, `N_min={n_treatment}`) have doubly robust scores, direct ones, or the true outcomes of the
training samples; they estimate no effect.
"""

Fitted = Any


def objective(tree: OptimalPrescriptiveTree, X: Any, z: Any, y: Any) -> float:
    """Return the objective of a tree on other samples, without costs."""
    rows, estimates = np.arange(len(y)), tree.predict_outcomes(X)
    tau = np.searchsorted(tree.treatments_, tree.predict(X))
    under = np.where(tau == z, y, estimates[rows, tau])
    return float(tree.mu * under.mean() + (1 - tree.mu) * ((y - estimates[rows, z]) ** 2).mean())


def chosen(candidates: list[OptimalPrescriptiveTree], X: Any, z: Any, y: Any) -> OptimalPrescriptiveTree:
    """Fit the candidates to a part of the samples, and the best one for the rest to all."""
    last = int(len(y) * (1 - SHARE))
    values = [
        objective(tree.fit(X[:last], z[:last], y[:last]), X[last:], z[last:], y[last:]) for tree in candidates
    ]
    return candidates[int(np.argmin(values))].fit(X, z, y)


def tree(mu: float, depth: int, starts: int, **more: Any) -> OptimalPrescriptiveTree:
    local = {"solver": "local-search", "solver_options": {"starts": starts, "kicks": 0}}
    settings = {"n_treatment": N_TREATMENT, "depth": depth, "time_limit": None, **local, **more}
    return OptimalPrescriptiveTree(mu=mu, **settings)


def trees(mu: float, starts: int, deepest: int, **more: Any) -> Callable[..., Fitted]:
    depths = range(1, deepest + 1)
    return lambda X, z, y: chosen([tree(mu, depth, starts, **more) for depth in depths], X, z, y)


def linear(starts: int, deepest: int) -> Callable[..., Fitted]:
    """Choose the weight at depth 1, then the depth."""

    def fit(X: Any, z: Any, y: Any) -> Fitted:
        lam = chosen([tree(0.5, 1, starts, estimates="linear", lam=lam) for lam in (1.0, 10.0)], X, z, y).lam
        return chosen(
            [tree(0.5, depth, starts, estimates="linear", lam=lam) for depth in range(1, deepest + 1)],
            X,
            z,
            y,
        )

    return fit


def compared(regressor: Any) -> Callable[..., Fitted]:
    return lambda X, z, y: RegressAndCompare(regressor).fit(X, z, y)


def policy(rewards: Callable[..., Any], starts: int, deepest: int) -> Callable[..., Fitted]:
    """Choose the depth by the mean score of the last samples, then fit a policy tree to all of them."""

    def candidate(depth: int) -> PolicyTreeClassifier:
        settings: dict[str, Any] = {"solver": "exact-search"}
        if depth > EXACT:
            settings = {"solver": "local-search", "solver_options": {"starts": starts, "kicks": 0}}
        return PolicyTreeClassifier(depth=depth, N_min=N_TREATMENT, time_limit=None, **settings)

    def fit(X: Any, z: Any, y: Any) -> Fitted:
        scores, last = rewards(X, z, y), int(len(y) * (1 - SHARE))
        values = [
            candidate(depth).fit(X[:last], scores[:last]).value(X[last:], scores[last:]).mean_reward
            for depth in range(1, deepest + 1)
        ]
        return candidate(1 + int(np.argmax(values))).fit(X, scores)

    return fit


def estimated(scores: Scores) -> Callable[..., Any]:
    def rewards(X: Any, z: Any, y: Any) -> Any:
        return reward_scores(Dataset.from_arrays(X, y, treatments=z), scores, better="lower", seed=0).rewards

    return rewards


def methods(
    starts: int, deepest: int, experiment: TreatmentExperiment | None = None
) -> dict[str, Callable[..., Fitted]]:
    """Return what to compare by name; the experiment knows true outcomes."""
    experiment = experiment or TreatmentExperiment()
    ort = OptimalTreeRegressor(
        model="ort", solver="local-search", solver_options={"starts": starts, "kicks": 0}, time_limit=None
    )
    neighbours = make_pipeline(StandardScaler(), KNeighborsRegressor())
    return {
        "PT": trees(1.0, starts, deepest, solver="auto", solver_options=None, time_limit=0),
        "OPT(1)": trees(1.0, starts, deepest),
        "OPT(0.5)": trees(0.5, starts, deepest),
        "OPT(0.5)-L": linear(starts, deepest),
        "RC-ORT": compared(GridSearchCV(ort, {"depth": [2, 3, 4, 5]}, cv=3)),
        "RC-LASSO": compared(LassoCV(cv=5)),
        "RC-RF": compared(RandomForestRegressor(500, min_samples_leaf=2, random_state=0)),
        # As randomForest of R grows them by default: a third of the features at each split, 5 samples in a leaf.
        "RC-RF-R": compared(
            RandomForestRegressor(500, min_samples_leaf=5, max_features=1 / 3, random_state=0)
        ),
        "RC-kNN": compared(
            GridSearchCV(neighbours, {"kneighborsregressor__n_neighbors": [5, 10, 20, 40]}, cv=5)
        ),
        "policy-DR": policy(estimated("dr"), starts, deepest),
        "policy-direct": policy(estimated("direct"), starts, deepest),
        "policy-true": policy(lambda X, *_: -experiment.outcomes(X), starts, deepest),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--experiments", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--functions", choices=("scaled", "centred"), default="scaled")
    parser.add_argument("--starts", type=int, default=1)
    parser.add_argument("--depth", type=int, default=4, help="deepest prescriptive tree")
    parser.add_argument("--methods", nargs="+", default=list(methods(1, 4)))
    add_output(parser)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", FitWarning)
    repetitions, parts = arguments.repetitions, []
    for experiment in arguments.experiments:
        found: dict[str, list[tuple[float, ...]]] = {name: [] for name in arguments.methods}
        for seed in range(repetitions):
            data = load(
                f"synthetic:treatments,experiment={experiment},functions={arguments.functions},seed={seed}"
            )
            known = treatment_experiment(data.name)
            X_test, outcomes = known.draw(N_TEST, seed)
            unknown = np.full(outcomes.shape, np.nan)  # what policy trees say of outcomes
            for name in arguments.methods:
                began = process_time()
                fit = methods(arguments.starts, arguments.depth, known)[name]
                fitted = fit(data.X_raw, data.treatments, data.y)
                seconds = process_time() - began
                decides = isinstance(fitted, PolicyTreeClassifier)
                estimates = unknown if decides else fitted.predict_outcomes(X_test)
                told = policy_measures(outcomes, fitted.predict(X_test), estimates)
                regret = told.value - float(outcomes.min(axis=1).mean())
                found[name].append((told.treatment_accuracy, told.effect_accuracy, regret, seconds))
        rows = []
        for name, results in found.items():
            mean, error = np.mean(results, axis=0), np.std(results, axis=0) / np.sqrt(max(1, repetitions - 1))
            numbers = ("" if np.isnan(mean[k]) else f"{mean[k]:.3f} ({error[k]:.3f})" for k in (0, 1, 2))
            rows.append([name, *numbers, f"{mean[3]:.1f}"])
        part = table(["method", "treatment accuracy", "effect accuracy", "regret", "seconds"], rows)
        parts.append(f"\n## Experiment {experiment}\n\nThe thesis: {THESIS[experiment]}.\n\n{part}")
        print(parts[-1], flush=True)
    text = TEXT.format(
        repetitions=repetitions,
        functions=arguments.functions,
        experiments=" ".join(map(str, arguments.experiments)),
        starts=arguments.starts,
        depth=arguments.depth,
        n_treatment=N_TREATMENT,
        exact=EXACT,
    )
    publish(text + "\n".join(parts) + f"\n\n{measured_with(PACKAGES)}\n", arguments.output)


if __name__ == "__main__":
    main()
