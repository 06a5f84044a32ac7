"""Risk scores: proven optima of the log-loss, beside starts, rounded logistic regressions and matrix solvers.

Training samples are ``train_test_split(test_size=.2, random_state=0, stratify=y)``, the positive class is the larger
label (Cleveland: 0 against the rest), points are -5 to 5. Values of an independent prototype stand
beside. A rounded regression is the l1-regularised logistic regression, over the columns
of all cuts, whose path first has that many features, one cut each, scaled to the largest points and rounded, with the
best intercept.

    python benchmarks/risk_scores.py --data FOLDER [--sets NAME ...] [--page FILE]

Two more tables, each instead of this one: FasterRisk (Liu, Zhong, Seltzer, Rudin 2022) beside the proven optima, and
the variants of the model on HiGHS and Gurobi, of as many samples as Gurobi's bundled licence takes. FasterRisk needs
numpy below 2 and so an environment of its own, whose Python is named:

    uv venv --python 3.11 ENV && uv pip install --python ENV/bin/python fasterrisk
    python benchmarks/risk_scores.py --data FOLDER --fasterrisk ENV/bin/python
    python benchmarks/risk_scores.py --data FOLDER --variants SECONDS
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from mipforest import get_formulation
from mipforest.data import Dataset
from mipforest.errors import LicenseLimit
from mipforest.heuristics.score_cards import CardProblem
from mipforest.solving import solve

#: What a value may differ from the prototype's.
AGREEMENT = 1e-3

#: Strengths of the l1 norm that are tried for a rounded regression.
PENALTIES = np.geomspace(1e-3, 10, 40)


class Case(NamedTuple):
    """A data set, the number of rules, and the optimum of the prototype (``None`` where it has none)."""

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
    Case("cleveland", "ogrs", 4, None),
    Case("wholesale", "ogrs", 4, None),
    Case("diabetes", "ogrs", 4, None),
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


def row(case: Case, folder: Path, limit: float) -> list[str]:
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
    print(" | ".join(cells), flush=True)
    return cells


# ---------------------------------------------------------------------- FasterRisk

#: What runs in the environment of FasterRisk: columns and labels in, its best card and the seconds out.
PEER = """
import json, sys, time
import numpy as np
from fasterrisk.fasterrisk import RiskScoreOptimizer
given = np.load(sys.argv[1])
began = time.process_time()
found = RiskScoreOptimizer(given["X"], given["y"], k=int(given["k"]), lb=-5, ub=5)
found.optimize()
multipliers, intercepts, points = found.get_models()
json.dump([time.process_time() - began, *(one[0].tolist() for one in (multipliers, intercepts, points))], sys.stdout)
"""


def with_free_scale(totals: np.ndarray, y: np.ndarray) -> float:
    """Return the log-loss of totals at their best intercept and scale: a logistic regression on the total."""

    def loss(at: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -(2 * y - 1) * (at[0] * totals + at[1])).sum())

    return float(minimize(loss, np.array([1.0, 0.0]), method="BFGS").fun)


def peer_row(case: Case, folder: Path, limit: float, python: Path) -> list[str]:
    """Solve one case, and have FasterRisk solve it over the rules that an optimum may need."""
    data = training_samples(case, folder)
    problem = get_formulation(case.model)(rules=case.rules).build(data)
    cards = problem.instance.cards
    result = problem.solve(time_limit=limit)
    needed = np.flatnonzero(cards.up | cards.down)
    X = np.array([cards.holds(int(k))[cards.of_sample] for k in needed], dtype=float).T
    with tempfile.TemporaryDirectory() as room:
        given = Path(room) / "given.npz"
        np.savez(given, X=X, y=2.0 * data.y - 1, k=case.rules)
        done = subprocess.run([python, "-c", PEER, given], capture_output=True, text=True, check=True)
    # FasterRisk prints progress before the answer.
    seconds, multiplier, intercept, listed = json.loads(done.stdout[done.stdout.index("[") :])
    points = np.array(listed)
    totals = X @ points
    own = np.logaddexp(0.0, -(2 * data.y - 1) * (totals + intercept) / multiplier).sum()
    chosen = [(int(needed[k]), int(points[k])) for k in np.flatnonzero(points)]
    several = len(chosen) - len({int(cards.feature[k]) for k, _ in chosen})
    cells = [case.name, case.model, str(case.rules), f"{result.objective:.2f}", result.status]
    cells += [
        f"{with_free_scale(result.tree.totals(data.X_raw), data.y):.2f}",
        f"{own:.2f}",
        f"{multiplier:.2f}",
    ]
    cells += [
        f"{with_free_scale(totals, data.y):.2f}",
        f"{cards.refit(cards.totals(chosen))[1]:.2f}",
        str(several),
        f"{seconds:.1f}",
    ]
    print(" | ".join(cells), flush=True)
    return cells


# ---------------------------------------------------------------------- variants on matrix solvers

#: Sets, rules and every how manieth sample for the table of variants: ``paper`` has some 21 rows a sample.
VARIANTS = (
    ("haberman", 2, 3), ("haberman", 3, 3), ("cleveland", 3, 3), ("diabetes", 3, 8), ("wholesale", 3, 4),
    ("haberman", 3, 1),
)  # fmt: skip


def variant_rows(folder: Path, limit: float, names: list[str] | None) -> list[list[str]]:
    """Solve some cases with both variants on both solvers, tangents V0, from nothing, on one thread."""
    rows = []
    for name, rules, step in VARIANTS:
        if names is not None and name not in names:
            continue
        whole = training_samples(Case(name, "ogrs", rules, None), folder)
        data = whole.take(np.arange(0, whole.n, step))
        for variant in ("tight", "paper"):
            problem = get_formulation("ogrs")(rules=rules, tangents="V0", variant=variant).build(data)
            size = problem.model.stats()
            cells = [name, str(data.n), str(rules), f"`{variant}`", str(size.columns), str(size.rows)]
            cells += [_solved(problem, solver, limit) for solver in ("highs", "gurobi")]
            print(" | ".join(cells), flush=True)
            rows.append(cells)
    return rows


def _solved(problem: Any, solver: str, limit: float) -> str:
    """Solve within processor seconds."""
    began = process_time()
    try:
        found = solve(problem.model, solver, threads=1, on_progress=lambda _: process_time() - began >= limit)
    except LicenseLimit:
        return "beyond the licence"
    seconds = process_time() - began
    if found.status == "optimal":
        return f"{found.objective:.4f} proven in {seconds:.1f} s"
    return f"{found.objective:.4f}, bound {found.bound:.4f} after {seconds:.0f} s"


def markdown_table(heads: list[str], rows: list[list[str]]) -> str:
    """Write a table."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets as CSV files")
    parser.add_argument("--sets", nargs="*", default=None, help="names of sets; all unless given")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each search")
    parser.add_argument("--fasterrisk", type=Path, help="Python of an environment with fasterrisk")
    parser.add_argument("--variants", type=float, help="processor seconds for each variant and solver")
    parser.add_argument("--page", type=Path, help="write the table as a page")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")  # its l1 norm is named otherwise from 1.8 on
    cases = [case for case in CASES if given.sets is None or case.name in given.sets]
    if given.fasterrisk is not None:
        rows = [peer_row(case, given.data, given.limit, given.fasterrisk) for case in cases]
        heads = ["set", "model", "T", "proven card", "status", "its scale free", "FasterRisk", "its scale"]
        heads += ["refitted", "at scale 1", "further cuts of a feature", "seconds"]
        print(markdown_table(heads, rows))
        return
    if given.variants is not None:
        heads = ["set", "n", "T", "variant", "columns", "rows", "HiGHS", "Gurobi"]
        print(markdown_table(heads, variant_rows(given.data, given.variants, given.sets)))
        return
    rows = [row(case, given.data, given.limit) for case in cases]
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
    text = "\n".join(
        [
            "# Risk scores: proven optima",
            "",
            (__doc__ or "").split("\n\n    python")[0],
            "",
            markdown_table(heads, rows),
            "",
        ]
    )
    if given.page is not None:
        given.page.write_text(text, encoding="utf-8")
    print(text)
    sys.exit(any("✗" in cell for cells in rows for cell in cells))


if __name__ == "__main__":
    main()
