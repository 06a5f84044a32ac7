"""Plants faults, one at a time, and tells which of them the default tests find.

A fault is one changed line of a search, of a check, or of a reader; the tests of the folder that mirrors it are run,
and those that are named with it, on a clone of the last commit. Each change compiles what it touches, so that all take
about an hour; ``--slow`` asks the slow tests too::

    python tests/planted_faults.py
    python tests/planted_faults.py --only 3 7
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Fault:
    """What is wrong, where, the text that is changed and into what, and where tests are that should tell."""

    what: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


EXACT, ROUTING = "mipforest/searches/exact", "mipforest/searches/routing"
FAULTS = (
    Fault(
        "two levels: thresholds one row too far are skipped",
        f"{EXACT}/covers.py",
        "weight_below[c] - weight_below[a] <= near",
        "weight_below[c] - weight_below[a] <= near + 1.0",
        ("searches/exact", "test_claims.py"),
    ),
    Fault(
        "three levels: what the sides of the root lose at least is bounded one too high",
        f"{EXACT}/covers.py",
        "found[side].bound = max(own, min(found[side].leaf, cost + key))",
        "found[side].bound = max(own, min(found[side].leaf, cost + key) + 1.0)",
        ("searches/exact", "test_claims.py"),
    ),
    Fault(
        "three levels: thresholds of the root one row too far are skipped",
        f"{EXACT}/open_intervals.py",
        "reach(tables, left + right - cutoff)",
        "reach(tables, left + right - cutoff + 1.0)",
        ("searches/exact", "test_claims.py"),
    ),
    Fault(
        "constraints: nodes below the root may split on what the root may",
        f"{EXACT}/boxes.py",
        "use[side, child, :p], use[side, child, p + MUST] = self.allowed[t], self.must[t]",
        "use[side, child, :p], use[side, child, p + MUST] = self.allowed[0], self.must[t]",
        ("searches/test_constrained_trees.py", "test_custom_constraints.py", "problem"),
    ),
    Fault(
        "constraints: a feature that a budget just has room for is taken out",
        "mipforest/searches/univariate/constrained.py",
        "if not is_paid and cost > room:",
        "if not is_paid and cost + 1e-6 > room:",
        ("searches/test_constrained_trees.py", "test_custom_constraints.py", "problem"),
    ),
    Fault(
        "exact search: half of what samples that move can change is left out of the bound of another root",
        "mipforest/searches/exact/pair_counts.py",
        "of_side[0, q] = max(of_side[0, q], of_all_left - moved[q, r])",
        "of_side[0, q] = max(of_side[0, q], of_all_left - 0.5 * moved[q, r])",
        ("searches/exact",),
    ),
    Fault(
        "exact search: roots inherit what trees with leaves of a least size lose",
        "mipforest/searches/exact/pair_counts.py",
        "N, above = (1, -1) if turn == 0 else (N_min, group[r])",
        "N, above = N_min, group[r]",
        ("searches/exact",),
    ),
    Fault(
        "limits on splits: half of what samples that move can change is left out of the bound of another root",
        "mipforest/searches/exact/limited_splits.py",
        "of_side[1, i, q] = max(of_side[1, i, q], least[1, i] - moved[r, q])",
        "of_side[1, i, q] = max(of_side[1, i, q], least[1, i] - 0.5 * moved[r, q])",
        ("searches/exact/test_limited_splits.py", "searches/test_constrained_trees.py"),
    ),
    Fault(
        "constraints: a tree pays for fewer splits than it may have",
        "mipforest/searches/univariate/constrained.py",
        "return min(self._most_splits, _may_split(box))",
        "return min(self._most_splits, _may_split(box)) - 1",
        ("searches/test_constrained_trees.py",),
    ),
    Fault(
        "exact search: half of what samples that move can change is left out of the bounds below pairs of thresholds",
        "mipforest/searches/exact/pair_search.py",
        "own = of_pairs[a, :, None] - lost[open_roots, None, None]",
        "own = of_pairs[a, :, None] - 0.5 * lost[open_roots, None, None]",
        ("searches/exact",),
    ),
    Fault(
        "routing: the value of a dual point is a little too high",
        f"{ROUTING}/svm_dual.py",
        "value -= 0.5 * w[t, j] * w[t, j]",
        "value -= 0.49 * w[t, j] * w[t, j]",
        ("searches/routing", "formulations/test_margot.py"),
    ),
    Fault(
        "routing: where one side leads to no better tree, the other one is closed",
        f"{ROUTING}/plunge.py",
        "_decide(nodes, work, g, 1 if left >= slack else -1, n_upper)",
        "_decide(nodes, work, g, -1 if left >= slack else 1, n_upper)",
        ("searches/routing", "formulations/test_margot.py"),
    ),
    Fault(
        "routing: a feature beyond the budget costs nothing in the bound",
        f"{ROUTING}/feature_branching.py",
        "value -= worth if j < choices.given[k] else max(0.0, worth - alpha)",
        "value -= worth if j < choices.given[k] else 0.0",
        ("searches/routing", "formulations/test_margot.py"),
    ),
    Fault(
        "local search: a sample that moves leaves its charge behind",
        "mipforest/searches/local/sweeps.py",
        "            cost = leaf_cost(kind, loss, impurity, stat[a])\n            total += cost - old.cost",
        "            cost = leaf_cost(kind, loss, impurity, stat[a])\n            total += 0.0",
        ("searches/local",),
    ),
    Fault(
        "oblique search: a group that may go both ways pays the greater charge",
        "mipforest/searches/oblique/kernels.py",
        "low = min(left if may_left",
        "low = max(left if may_left",
        ("searches/oblique", "test_claims.py"),
    ),
    Fault(
        "version spaces: what proves the value of a leaf counts the charges of groups elsewhere",
        "mipforest/searches/oblique/version_spaces.py",
        "if has(core, g) and has(words, g):",
        "if has(core, g):",
        ("searches/oblique",),
    ),
    Fault(
        "cards: the bound of a box is too high",
        "mipforest/searches/cards/enumeration.py",
        "found += min(gradient[t] * (low[t] - x[t]), gradient[t] * (high[t] - x[t]))",
        "found += 0.0 * min(gradient[t] * (low[t] - x[t]), gradient[t] * (high[t] - x[t]))",
        ("searches/cards", "formulations/test_risk_scores.py"),
    ),
    Fault(
        "prescription search: the right leaf of a split may be too small",
        "mipforest/searches/prescription/enumeration.py",
        "if between and q + 1 >= samples.N_min and size - q - 1 >= samples.N_min:",
        "if between and q + 1 >= rows.N_min:",
        ("searches/prescription", "formulations/test_opt_l.py"),
    ),
    Fault(
        "Lagrangian search: the prices of limits are not paid back",
        "mipforest/searches/lagrangian/closing.py",
        "return self.trees.alpha - float(self.prices @ self.trees.most)",
        "return self.trees.alpha",
        ("searches/lagrangian", "test_custom_constraints.py"),
    ),
    Fault(
        "a tree that is none of the model becomes the incumbent",
        "mipforest/problem/driver.py",
        "        if self._problem.outside(tree):\n            return inf\n",
        "",
        ("problem", "searches/local", "searches/test_constrained_trees.py"),
    ),
    Fault(
        "a search that came to its end is called optimal, whatever its gap",
        "mipforest/problem/proofs.py",
        "    if solution.status is not Status.OPTIMAL:\n        return solution\n    left =",
        "    if True:\n        return solution\n    left =",
        ("problem", "formulations/test_scales.py", "test_claims.py"),
    ),
    Fault(
        "certificates: the last interval of a feature is not checked",
        "mipforest/certificates/univariate.py",
        "worst = int(value.argmin())",
        "worst = int(value[:-1].argmin()) if len(value) > 1 else 0",
        ("certificates", "test_mutated_certificates.py"),
    ),
    Fault(
        "constraints: a difference of shares is understated",
        "mipforest/problem/constraints/labels.py",
        "return self.at_most(float(shares.max() - shares.min()), self.most, step)",
        "return self.at_most(float(shares.max() - shares.mean()), self.most, step)",
        ("problem", "test_custom_constraints.py", "cli/test_cli_constraints.py"),
    ),
    Fault(
        "MPS: a negative range of an equality lies above it",
        "mipforest/files/mps/reader.py",
        'if kind == "G" or (kind == "E" and span is not None and span >= 0):',
        'if kind in "GE":',
        ("files",),
    ),
    Fault(
        "solutions of GLPK: the status of a basic column is its value",
        "mipforest/files/solutions.py",
        'at = 2 if kind == "bas" else 1',
        "at = 1",
        ("files",),
    ),
    Fault(
        "tables: a minus behind a number is overlooked",
        "mipforest/data/convention.py",
        '        (r"^([^-]*\\d)\\s?-$", r"-\\1"),',
        '        (r"^([^-]*\\d)\\s?-$", r"\\1"),',
        ("data",),
    ),
)


def planted(fault: Fault, *, slow: bool) -> str:
    """Run the tests on a copy with a fault; return the first one that fails, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(copy)], check=True)
        source = copy / fault.file
        text = source.read_text(encoding="utf-8")
        if fault.before not in text:
            sys.exit(f"{fault.file} has no more: {fault.before}")
        source.write_text(text.replace(fault.before, fault.after), encoding="utf-8")
        which = ["-m", "not nightly"] if slow else []
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", *which, *(f"tests/{name}" for name in fault.tests)],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(Path(folder) / "kernels")},
            capture_output=True,
            text=True,
            check=False,
        )
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (
        failed[0][:160]
        if failed
        else ("" if done.returncode == 0 else done.stdout[-300:] + done.stderr[-300:])
    )


def main() -> None:
    """Plant the faults that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults, from 1 on")
    parser.add_argument("--slow", action="store_true", help="run slow tests too")
    parser.add_argument("--jobs", type=int, default=2, help="faults at a time")
    options = parser.parse_args()
    numbers = options.only or range(1, len(FAULTS) + 1)
    with ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda k: planted(FAULTS[k - 1], slow=options.slow), numbers)
        found = 0
        for number, result in zip(numbers, results, strict=True):
            found += bool(result)
            print(f"{number:2d} {FAULTS[number - 1].what}\n   {result or 'NOT FOUND'}", flush=True)
    print(f"{found} of {len(numbers)} found")
    sys.exit(found < len(numbers))


if __name__ == "__main__":
    main()
