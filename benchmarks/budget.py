"""Wall time and memory against the time limit: every model at 20,000 samples of 20 features, all depths, three limits.

    python benchmarks/budget.py --output docs/benchmarks/budget.md
    python benchmarks/budget.py --large --output docs/benchmarks/budget_large.md

Every case is a process of its own, which imports the package and makes the data before the clock starts. What is
measured begins with building the model and ends when the result is ready to be written: preparation, start, solve,
checks and measures. The seconds that a search is compiled or loaded, which the limit does not count, are taken off.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from time import monotonic, process_time
from typing import Any

from markdown import add_output, measured_with, publish, table

#: Each model with its kind of data, and whether its depth says anything.
MODELS = {
    "margot": "classes", "hfs-margot": "classes", "sfs-margot": "classes", "loss-optimal": "classes",
    "olct": "classes", "budgeted-olct": "classes", "univariate-olct": "classes",
    "oct": "classes", "oct-h": "classes", "miret": "classes", "orct": "classes", "s-orct": "classes",
    "ort": "values", "ort-h": "values", "ort-l": "values", "ort-lh": "values", "s-orrt": "values",
    "s-orrt-fd": "curves",
    "opt": "treatments", "opt-h": "treatments", "opt-l": "treatments", "opt-lh": "treatments",
    "ors": "binary", "ogrs": "raw",
}  # fmt: skip

DEPTHS, LIMITS = (1, 2, 3, 4, 5, 6), (1.0, 5.0, 20.0)
SAMPLES, FEATURES = 20_000, 20

#: Large data sets, each with its samples, features and classes; they are read from a .csv file under the limit.
LARGE = {"n = 200,000": (200_000, 20, 2), "K = 100": (20_000, 20, 100), "p = 2,000": (2_000, 2_000, 2)}
LARGE_MODELS, LARGE_DEPTH = ("oct", "oct-h", "olct", "orct"), 3

#: Seconds beyond the limit after which a case is given up.
PATIENCE = 60.0

#: What a case may take: seconds beyond the limit, and GB of memory.
MOST_BEYOND, MOST_MEMORY = 2.0, 2.0

#: Bytes that a case may ask for; one that asks for more ends with an error.
MOST_BYTES = 5_000_000_000

PACKAGES = ("numpy", "scipy", "scikit-learn", "highspy", "clarabel", "numba")

TEXT = """\
Seconds that a solve takes under a time limit, and the most memory of its process, at {samples} samples of {features}
features, depth by depth. Every case is a process of its own. The clock runs from building the model until the result is
ready to be written; making the data and importing the package come before it. The seconds of compiling and loading a
search, which the limit does not count, are subtracted. Parameters, solver and start are the defaults. Data:
`synthetic:tree,depth=3`, for the regression models with `task=regression`; for the prescriptive models
`synthetic:treatments`; for s-orrt-fd `synthetic:curves`. For ors the features are cut at their medians.

A cell is "wall seconds (GB), status": `opt` optimal, `time` time limit, `limit` another limit, `best` the best of a
search that proves nothing, `no tree` an error message: MIRET's forest was not fitted in time, and fewer trees would be
another target. `limit` also stands where no solver is called: the model has more entries than a solver reads in the
remaining time, and is not built. The result is then the start.
"""

LARGE_TEXT = """\
"Wall seconds (GB), status" as in [time and memory against the limit](budget.md), at depth {depth}. Here the clock
begins before the data are read from a `.csv` file: loading and preparing them count.
`n = 200,000` has 20 features and 2 classes, `K = 100` 20,000 samples of 20 features and 100 classes, `p = 2,000` 2,000
samples of 2 classes.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limits", nargs="+", type=float, default=list(LIMITS), help="seconds")
    parser.add_argument("--depths", nargs="+", type=int, default=list(DEPTHS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--large", action="store_true", help="large data alone")
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument(
        "--file", action="store_true", help="of a case: read the data from a file under the limit"
    )
    parser.add_argument("--case", nargs=3, metavar=("MODEL", "DEPTH", "LIMIT"), help="run one case here")
    add_output(parser)
    arguments = parser.parse_args()
    if arguments.case:
        model, depth, limit = arguments.case
        size = arguments.samples, arguments.features, arguments.classes
        print(json.dumps(case(model, int(depth), float(limit), size, from_file=arguments.file)))
        return
    sizes = TEXT.format(samples=f"{arguments.samples:,}", features=arguments.features)
    large = LARGE_TEXT.format(depth=LARGE_DEPTH)
    if arguments.large:
        parts = ["# Large data against the time limit\n", large]
    else:
        parts = ["# Time and memory against the limit\n", sizes]
    over: list[str] = []
    for limit in () if arguments.large else arguments.limits:
        rows = []
        for model in arguments.models:
            cells = []
            for depth in arguments.depths if MODELS[model] not in ("binary", "raw") else (1,):
                found = measured(model, depth, limit, (arguments.samples, arguments.features, 2))
                cells.append(cell(found))
                over += beyond_limit(f"{model} at depth {depth}", limit, found)
            rows.append((model, *cells, *[""] * (len(arguments.depths) - len(cells))))
        parts += [
            f"## Limit {limit:g} s\n",
            table(("model", *(f"depth {d}" for d in arguments.depths)), rows),
            "",
        ]
    for limit in arguments.limits if arguments.large else ():
        rows = []
        for model in LARGE_MODELS:
            cells = []
            for name, size in LARGE.items():
                found = measured(model, LARGE_DEPTH, limit, size, from_file=True)
                cells.append(cell(found))
                over += beyond_limit(f"{model}, {name}", limit, found)
            rows.append((model, *cells))
        parts += [f"## Limit {limit:g} s\n", table(("model", *LARGE), rows), ""]
    beyond, most = f"{MOST_BEYOND:g} s beyond their limit", f"{MOST_MEMORY:g} GB"
    parts.append(
        f"Cases that take more than {beyond} or more than {most}: {'; '.join(over)}.\n"
        if over
        else f"All cases take no more than {beyond} and {most}.\n"
    )
    parts += [
        f"{measured_with(PACKAGES)} One thread of linear algebra.\n",
        f"Run again: `python benchmarks/budget.py{' --large' if arguments.large else ''}`.\n",
    ]
    publish("\n".join(parts), arguments.output)


def beyond_limit(what: str, limit: float, found: dict[str, Any]) -> list[str]:
    """Show a case, and name it if it takes more than it may."""
    print(what, f"{limit:g}", json.dumps(found), file=sys.stderr, flush=True)
    is_within = found["seconds"] <= limit + MOST_BEYOND and found["gigabytes"] <= MOST_MEMORY
    if found.get("error") == "not taken" or (is_within and "error" not in found):
        return []
    worked = f"{found.get('processor', 0.0):.1f} s of the processor"
    return [f"{what}, limit {limit:g} s: {cell(found)}, {worked}"]


def measured(
    model: str, depth: int, limit: float, size: tuple[int, int, int], *, from_file: bool = False
) -> dict[str, Any]:
    """Run one case in a process of its own; ``size`` is the number of samples, features and classes."""
    samples, features, classes = map(str, size)
    command = [sys.executable, __file__, "--case", model, str(depth), str(limit)]
    command += ["--samples", samples, "--features", features, "--classes", classes]
    command += ["--file"] if from_file else []
    began = monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=limit + PATIENCE,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"seconds": monotonic() - began, "gigabytes": 0.0, "error": "given up"}
    except (json.JSONDecodeError, IndexError):
        last = done.stderr.strip().splitlines()[-1:] or [""]
        error = f"ended with {done.returncode}: {last[0][:200]}"
        if "DataError" in error:
            error = "not taken"  # by a model that takes other data
        return {"seconds": monotonic() - began, "gigabytes": 0.0, "error": error}
    return found


def cell(found: dict[str, Any]) -> str:
    short = {"time_limit": "time", "optimal": "opt", "best_found": "best"}
    status = found.get("error") or short.get(found["status"], found["status"])
    if status == "not taken":
        return status
    return f"{found['seconds']:.1f} ({found['gigabytes']:.1f}), {status}"


def case(
    model: str, depth: int, limit: float, size: tuple[int, int, int], *, from_file: bool
) -> dict[str, Any]:
    """Solve one case here, from building the model, or from reading its file, to the result ready to be written."""
    import resource
    from tempfile import TemporaryDirectory

    import pandas as pd

    from mipforest.data import load
    from mipforest.errors import NoTreeFound
    from mipforest.problem.problem import Problem
    from mipforest.problem.registry import make_formulation
    from mipforest.problem.tree_search import solver_or_search
    from mipforest.settings import SolveSettings

    assert Problem is not None
    assert pd is not None
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    formulation = make_formulation(model)
    data = data_for(MODELS[model], *size, formulation.scaling)
    settings = SolveSettings(time_limit=limit, start="default")
    auto: Any = solver_or_search("auto")
    with TemporaryDirectory() as folder:
        path = f"{folder}/data.csv"
        if from_file:
            written(data, path)
        began, worked = monotonic(), process_time()
        budget = settings.budget()
        if from_file:
            with budget.phase("load"):
                data = load(path, scaling=formulation.scaling)
    tree_depth = depth if formulation.gives.is_tree else None
    try:
        problem = formulation.build(data, tree_depth, budget=budget, solver=auto, whole=False)
        result = problem.solve(auto, settings=settings)
        ready, solver = result.to_dict(), result.solution.solver
    except NoTreeFound as refusal:  # the time runs out in a target's own training, and the error says so
        ready, solver = {"status": "no tree", "told": str(refusal)}, ""
    seconds = monotonic() - began - budget.excluded_seconds
    kilobytes = max(
        resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "seconds": seconds,
        "processor": process_time() - worked,
        "excluded": budget.excluded_seconds,
        "gigabytes": kilobytes / 1e6,
        "status": ready["status"],
        "objective": ready.get("objective"),
        "phases": {name: round(value, 2) for name, value in budget.seconds.items()},
        "solver": solver,
    }  # fmt: skip


def written(data: Any, path: str) -> None:
    """Write classified samples to a .csv file."""
    import pandas as pd

    frame = pd.DataFrame(data.X_raw.round(6), columns=list(data.features))
    frame["target"] = [f"class {k}" for k in data.y.tolist()]
    frame.to_csv(path, index=False)


def data_for(kind: str, n: int, p: int, classes: int, scaling: str) -> Any:
    """Make the samples that a kind of model takes."""
    from mipforest.data import Dataset
    from mipforest.data.synthetic import load_synthetic

    names = {
        "treatments": f"treatments,n={n}",
        "curves": f"curves,n={n},points={p}",
        "values": f"tree,depth=3,n={n},p={p},task=regression",
    }
    depth = 3 if classes == 2 else 8
    usual = f"tree,depth={depth},n={n},p={p},classes={classes},label_noise=0.05"
    data = load_synthetic(names.get(kind, usual), scaling=scaling)  # type: ignore[arg-type]
    if kind != "binary":
        return data
    import numpy as np

    X = (np.median(data.X_raw, axis=0) <= data.X_raw).astype(float)
    return Dataset.from_arrays(X, data.y, name="binary", scaling="none")


if __name__ == "__main__":
    main()
