"""Risk scores: proven optima of the log-loss, beside starts, rounded logistic regressions and matrix solvers.

Training samples are ``train_test_split(test_size=.2, random_state=0, stratify=y)``, the positive class is the larger
label (Cleveland: 0 against the rest), points are -5 to 5. Values of an independent prototype stand
beside. A rounded regression is the l1-regularised logistic regression, over the columns
of all cuts, whose path first has that many features, one cut each, scaled to the largest points and rounded, with the
best intercept.

    python benchmarks/risk_scores.py --data FOLDER [--matrix SECONDS] [--sets NAME ...] [--page FILE]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from mipforest import get_formulation
from mipforest.data import Dataset
from mipforest.heuristics.score_cards import CardProblem

#: What a value may differ from the prototype's.
AGREEMENT = 1e-3

#: Strengths of the l1 norm that are tried for a rounded regression.
PENALTIES = np.geomspace(1e-3, 10, 40)


class Case(NamedTuple):
    """A data set, the number of rules, and the optimum of the prototype (``None`` where it ended without one)."""

    name: str
    model: str
    rules: int
    known: float | None


CASES = (
    Case("haberman", "ogrs", 3, 122.9275),
    Case("cleveland", "ogrs", 3, 96.6982),
    Case("wholesale", "ogrs", 3, 52.4953),
    Case("diabetes", "ogrs", 3, 304.6373),
    Case("parkinsons", "ogrs", 3, 34.6072),
    Case("spectf", "ogrs", 3, 70.4906),
    Case("ionosphere", "ogrs", 3, 65.8320),
    Case("breast_cancer_diagnostic", "ogrs", 3, 50.1382),
    Case("tic_tac_toe", "ors", 3, 424.5123),
    Case("tic_tac_toe", "ors", 5, 388.1579),
    Case("spambase", "ors", 3, 1296.6470),
    Case("spambase", "ors", 5, 1036.8567),
)


def training_samples(case: Case, folder: Path) -> Dataset:
    """Load a set as the prototype did."""
    table = pd.read_csv(folder / f"{case.name}.csv")
    labels = table.pop("target").to_numpy()
    if case.name == "cleveland":
        labels = (labels > 0).astype(int)
    complete = table.notna().all(axis=1).to_numpy()
    X, y = table.to_numpy(float)[complete], np.unique(labels[complete], return_inverse=True)[1]
    if case.model == "ors":
        X = (X > 0).astype(float)
    train, _, y_train, _ = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    return Dataset.from_arrays(train, y_train, features=list(table.columns), name=case.name, scaling="none")


def rounded_regression(cards: CardProblem) -> float:
    """Return the log-loss of a sparse logistic regression over all rules, rounded to points."""
    columns = np.array([cards.holds(k)[cards.of_sample] for k in range(cards.n_rules)], dtype=float).T
    best = np.inf
    for C in PENALTIES:
        fit = LogisticRegression(C=C, penalty="l1", solver="liblinear").fit(columns, cards.data.y)
        weights = fit.coef_[0]
        order, chosen, seen = np.argsort(-np.abs(weights)), [], set()
        for k in order[np.abs(weights[order]) > 0]:
            if cards.feature[k] not in seen and len(chosen) < cards.rules:
                seen.add(cards.feature[k])
                chosen.append(int(k))
        if len(chosen) < cards.rules:
            continue
        again = LogisticRegression(C=1e6, max_iter=1000).fit(columns[:, chosen], cards.data.y).coef_[0]
        scale = min(1.0, cards.most / np.abs(again).max())
        points = np.round(again * scale).astype(int)
        best = min(best, cards.refit(cards.totals(zip(chosen, points.tolist(), strict=True)))[1])
        break
    return best


def row(case: Case, folder: Path, limit: float, matrix: float) -> list[str]:
    """Solve one case; give a row of the table."""
    data = training_samples(case, folder)
    formulation = get_formulation(case.model)
    model = formulation(rules=case.rules)
    problem = model.build(data)
    cards = problem.instance.cards
    start = model.evaluate(problem.start_tree(), problem.instance)
    greedy = model.evaluate(problem.start_tree("rule-by-rule"), problem.instance)
    began = perf_counter()
    result = problem.solve(time_limit=limit)
    seconds = (
        perf_counter()
        - began
        - sum(result.phase_seconds.get(phase, 0.0) for phase in ("compile", "load", "start"))
    )
    agrees = "" if case.known is None else f"{case.known:.4f}"
    if case.known is not None and result.status == "optimal":
        agrees += " ✓" if abs(result.objective - case.known) <= AGREEMENT * case.known else " ✗"
    cells = [
        case.name,
        case.model,
        str(case.rules),
        str(data.n),
        str(data.p),
        f"{int((cards.up | cards.down).sum())} of {cards.n_rules}",
        f"{rounded_regression(cards):.4f}",
        f"{greedy:.4f}",
        f"{start:.4f}",
        f"{result.objective:.4f}",
        result.status,
        f"{result.bound:.4f}",
        f"{seconds:.1f}",
        agrees,
    ]
    for variant in ("tight", "paper") if matrix else ():
        other = formulation(rules=case.rules, variant=variant).build(data)
        found = other.solve("highs", time_limit=matrix, start="none", threads=1)
        cells.append(f"{found.objective:.2f}, bound {found.bound:.2f}")
    print(" | ".join(cells), flush=True)
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets as CSV files")
    parser.add_argument("--sets", nargs="*", default=None, help="names of sets; all unless given")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each search")
    parser.add_argument(
        "--matrix", type=float, default=0.0, help="seconds for HiGHS, each variant; 0 for none"
    )
    parser.add_argument("--page", type=Path, help="write the table as a page")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")  # its l1 norm is named otherwise from 1.8 on
    cases = [case for case in CASES if given.sets is None or case.name in given.sets]
    rows = [row(case, given.data, given.limit, given.matrix) for case in cases]
    heads = [
        "set",
        "model",
        "T",
        "n",
        "p",
        "rules needed",
        "rounded regression",
        "rule by rule",
        "start",
        "log-loss",
    ]
    heads += ["status", "bound", "seconds", "prototype"]
    heads += ["HiGHS, tight", "HiGHS, paper"] if given.matrix else []
    lines = ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows)]
    text = "\n".join(
        ["# Risk scores: proven optima", "", (__doc__ or "").split("\n\n    python")[0], "", *lines, ""]
    )
    if given.page is not None:
        given.page.write_text(text, encoding="utf-8")
    print(text)
    sys.exit(any("✗" in cell for cells in rows for cell in cells))


if __name__ == "__main__":
    main()
