"""Other tools for optimal classification trees beside mipforest: training errors, and processor seconds of a fit.

    python benchmarks/peers.py [--limit 60] [--python NAME=INTERPRETER ...] [--output docs/benchmarks/peers.md]
    python benchmarks/peers.py FOLDER [--limit 60] [--python NAME=INTERPRETER ...] [--output docs/benchmarks/gosdt.md]

A folder has the sets that GOSDT ships (``datasets`` of its repository): tables whose last column is the class. They
have few thresholds, so all tools get all of them, and their optima have to be the same.

A peer is ``contree`` (package pycontree), ``streed`` (pystreed), ``dl85`` (pydl8.5) or ``gosdt``. Each runs in a
process of its own, with the interpreter that ``--python`` names for it: their packages do not all get on with each
other, and GOSDT 1.0.4 wants scikit-learn below 1.8. A peer without an interpreter is left out. Importing, compiling
kernels and making features binary are not counted.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

DATA = ("iris", "wine", "breast_cancer")
DEPTHS = (2, 3, 4)

#: Thresholds of each feature, at quantiles, for the tools that need binary features.
THRESHOLDS = 8

#: What each tool is given, and what its optimum is one of.
BINARY = ("streed", "dl85", "gosdt")
PEERS = ("contree", *BINARY)


def binary_features(X: np.ndarray, *, thresholds: int | None = THRESHOLDS) -> np.ndarray:
    """(n, q) whether each feature of (n, p) is at least each of its quantiles, or each of its values."""
    if thresholds is None:
        columns = [x >= level for x in X.T for level in np.unique(x)[1:]]
    else:
        levels = np.linspace(0, 1, thresholds + 2)[1:-1]
        columns = [x >= level for x in X.T for level in np.unique(np.quantile(x, levels)) if level > x.min()]
    return np.unique(np.array(columns), axis=0).T.astype(int)


# ---------------------------------------------------------------------- one fit, in a process of its own

Fit = Callable[[np.ndarray, np.ndarray, int, int], tuple[np.ndarray, bool]]


def fit_contree(X: np.ndarray, y: np.ndarray, depth: int, limit: int) -> tuple[np.ndarray, bool]:
    from pycontree import ConTree

    began = perf_counter()
    model = ConTree(max_depth=depth, time_limit=limit)
    model.fit(X, y)
    return model.predict(X), perf_counter() - began < limit


def fit_streed(X: np.ndarray, y: np.ndarray, depth: int, limit: int) -> tuple[np.ndarray, bool]:
    from pystreed import STreeDClassifier

    model = STreeDClassifier(max_depth=depth, max_num_nodes=2**depth - 1, time_limit=limit)
    model.fit(X, y)
    return model.predict(X), bool(model.fit_result.is_optimal())


def fit_dl85(X: np.ndarray, y: np.ndarray, depth: int, limit: int) -> tuple[np.ndarray, bool]:
    from pydl85 import DL85Classifier

    model = DL85Classifier(max_depth=depth, time_limit=limit)
    model.fit(X, y)
    return model.predict(X), not model.timeout_


def fit_gosdt(X: np.ndarray, y: np.ndarray, depth: int, limit: int) -> tuple[np.ndarray, bool]:
    from gosdt import GOSDTClassifier

    # It charges every leaf; with less than half an error it still minimises errors first.
    charge = 0.4 / (len(y) * 2**depth)
    model = GOSDTClassifier(
        regularization=charge, allow_small_reg=True, depth_budget=depth, time_limit=limit, verbose=False
    )
    model.fit(X, y)
    return model.predict(X), str(model.result_.status).endswith("CONVERGED")


FITS: dict[str, Fit] = {
    "contree": fit_contree,
    "streed": fit_streed,
    "dl85": fit_dl85,
    "gosdt": fit_gosdt,
}


def work(name: str, file: str, depth: int, limit: int) -> None:
    """Fit once and print errors, seconds and whether the tool calls it optimal."""
    arrays = np.load(file)
    X, y = arrays["X"], arrays["y"]
    FITS[name](X[:: len(y) // 10], y[:: len(y) // 10], 1, limit)  # imports its package
    began = process_time()
    predicted, proven = FITS[name](X, y, depth, limit)
    seconds = process_time() - began
    print(json.dumps({"errors": int((predicted != y).sum()), "seconds": seconds, "proven": proven}))


def fitted(name: str, python: str, X: np.ndarray, y: np.ndarray, depth: int, limit: int) -> tuple[int, str]:
    """Fit a peer in its own process; return its errors, -1 without a tree, and a cell of the table."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, X=X, y=y)
        command = [python, "-W", "ignore", __file__, "--worker", name, str(file), str(depth), str(limit)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=3 * limit)
        except subprocess.TimeoutExpired:
            return -1, f"no end in {3 * limit} s"
    if done.returncode != 0:
        print(name, done.stderr[-500:], file=sys.stderr)
        return -1, "fails"
    found = json.loads(done.stdout.splitlines()[-1])
    mark = "" if found["proven"] else " (limit)"
    return found["errors"], f"{found['errors']}{mark}, {found['seconds']:.2f} s"


def fitted_cart(X: np.ndarray, y: np.ndarray, depth: int) -> str:
    """Fit CART, which proves nothing; return a cell of the table."""
    from sklearn.tree import DecisionTreeClassifier

    began = process_time()
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
    seconds = process_time() - began
    return f"{int((tree.predict(X) != y).sum())}, {seconds:.2f} s"


# ---------------------------------------------------------------------- the table


def row(
    whole: Any, B: np.ndarray, depth: int, limit: int, pythons: dict[str, str], *, alike: bool
) -> list[str]:
    """Return one line: the tools on a data set at one depth; ``alike`` where all have all thresholds."""
    from mipforest import get_formulation

    data = whole.name
    began = process_time()
    problem = get_formulation("oct")(variant="valid").build(whole, depth, whole=False, declare=False)
    result = problem.solve("exact-search", time_limit=limit, gap=0.0, threads=1)
    seconds = process_time() - began
    own = round(result.objective * (whole.n - np.bincount(whole.y).max()))
    state = "" if result.status == "optimal" else " (limit)"
    assert result.verified
    size = f"{whole.n} x {whole.p}" + (f", {B.shape[1]} thresholds" if alike else "")
    cells = [data, str(depth), size, f"{own}{state}, {seconds:.2f} s"]
    cells.append(fitted_cart(whole.X_raw, whole.y, depth))
    of_binary = {own} if alike and not state else set()
    for name, python in pythons.items():
        errors, cell = fitted(name, python, B if name in BINARY else whole.X_raw, whole.y, depth, limit)
        cells.append(cell)
        if "limit" not in cell and errors >= 0:
            if name in BINARY:
                of_binary.add(errors)
            assert name in BINARY or result.status != "optimal" or errors == own, (data, depth, name)
            assert errors >= result.solution.bound * (whole.n - np.bincount(whole.y).max()) - 0.5
    assert len(of_binary) <= 1, f"the optima of {data} at depth {depth} differ: {of_binary}"
    return cells


def page(limit: int, pythons: dict[str, str]) -> str:
    """Return the table, with what stands behind it."""
    from markdown import measured_with, table

    from mipforest import load

    rows = []
    for whole in map(load, DATA):
        B = binary_features(whole.X_raw)
        if not rows:  # compiles, and imports what is imported late
            [row(whole, B, depth, limit, {}, alike=False) for depth in DEPTHS]
        rows += [row(whole, B, depth, limit, pythons, alike=False) for depth in DEPTHS]
    names = [f"{name} (binary)" if name in BINARY else name for name in pythons]
    versions = "; ".join(f"{name} {_version(name, python)}" for name, python in pythons.items())
    return f"""# Comparison with other tools

Errors on all samples and processor seconds of one fit, at most {limit} s of wall time; "(limit)" means: stopped by
the time limit, not proven. A tool that does not stop by itself is stopped after three times the limit. `mipforest` is
`exact-search` on model `oct`: like ConTree it searches all thresholds of numeric features, and where both end their
errors are the same (the benchmark asserts it). The tools marked "binary" need binary features: they get {THRESHOLDS}
thresholds of each feature, at quantiles, and are optimal among these, so they may be worse and may be faster. Seconds
of `mipforest` include the model, its start and the check of the tree against the definition; on sets that the search
solves in less than a second, these take most of the time. CART (`DecisionTreeClassifier`) proves nothing.

{table(["data", "D", "n x p", "mipforest", "CART", *names], rows)}

{measured_with(["mipforest", "numpy", "scikit-learn"])} {versions}.
Run again: `python benchmarks/peers.py --python NAME=INTERPRETER ... --output FILE`, with an environment for each peer.
"""


def page_of_folder(folder: Path, limit: int, pythons: dict[str, str]) -> str:
    """Return the table of the sets in a folder, on all of their thresholds."""
    from markdown import measured_with, table

    from mipforest.data import Dataset

    rows = []
    for file in sorted(folder.glob("*.csv")):
        text = file.read_text(encoding="utf-8").replace(";", ",").splitlines()[1:]
        values = np.array([line.split(",") for line in text if line])
        X, y = values[:, :-1].astype(float), np.unique(values[:, -1], return_inverse=True)[1]
        whole = Dataset.from_arrays(X, y, name=file.stem)
        B = binary_features(X, thresholds=None)
        if not rows:  # compiles, and imports what is imported late
            [row(whole, B, depth, limit, {}, alike=True) for depth in DEPTHS]
        rows += [row(whole, B, depth, limit, pythons, alike=True) for depth in DEPTHS]
    sums = []
    for depth in DEPTHS:
        own = [one[3:] for one in rows if one[1] == str(depth)]
        seconds = [sum(map(seconds_of, cells)) for cells in zip(*own, strict=True)]
        said = zip(("mipforest", "CART", *pythons), seconds, strict=True)
        sums.append(f"at depth {depth} " + ", ".join(f"{name} {total:.1f}" for name, total in said))
    versions = "; ".join(f"{name} {_version(name, python)}" for name, python in pythons.items())
    return f"""# Trees of few thresholds beside other tools

Errors on all samples and processor seconds of one fit with one thread, at most {limit} s of wall time, on the sets that
GOSDT ships; "(limit)" means: stopped by the time limit, not proven. All tools have all thresholds: `mipforest` (`oct`
with `exact-search`, model and checks included) as numbers, the others as a feature of 0 and 1 each. All optima that
two tools prove are equal (the benchmark asserts it). GOSDT charges leaves: here 0.4 errors for all leaves together.

Seconds in the sum: {"; ".join(sums)}.

{table(["data", "D", "n x p", "mipforest", "CART", *pythons], rows)}

{measured_with(["mipforest", "numpy", "scikit-learn"])} {versions}.
Run again: `python benchmarks/peers.py FOLDER --python NAME=INTERPRETER ... --output FILE`.
"""


def seconds_of(cell: str) -> float:
    """Return the seconds in a cell of the table, 0 where a tool failed."""
    found = re.search(r"([\d.]+) s$", cell)
    return float(found[1]) if found else 0.0


def _version(name: str, python: str) -> str:
    from markdown import version_in

    package = {"contree": "pycontree", "streed": "pystreed", "dl85": "pydl8.5", "gosdt": "gosdt"}[name]
    return version_in(python, package)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or one fit of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="tables of few thresholds")
    parser.add_argument("--limit", type=int, default=60, help="seconds for each fit")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=INTERPRETER")
    parser.add_argument(
        "--worker", nargs=4, metavar=("NAME", "FILE", "DEPTH", "LIMIT"), help=argparse.SUPPRESS
    )
    parser.add_argument("--output", type=Path, help="Markdown file to write as well")
    given = parser.parse_args(arguments)
    if given.worker:
        name, file, depth, limit = given.worker
        work(name, file, int(depth), int(limit))
        return
    from markdown import publish

    pythons = dict(entry.split("=", 1) for entry in given.python)
    unknown = [name for name in pythons if name not in PEERS]
    if unknown:
        parser.error(f"no peer {', '.join(unknown)}: there are {', '.join(PEERS)}")
    chosen = {name: pythons[name] for name in PEERS if name in pythons}
    made = page_of_folder(given.folder, given.limit, chosen) if given.folder else page(given.limit, chosen)
    publish(made, given.output)


if __name__ == "__main__":
    main()
