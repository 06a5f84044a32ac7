"""What ``build.py`` measures, each task in a process of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Depth and samples of the build that loads whatever is loaded lazily.
WARM_UP = (2, 20)


def one_build(arguments: argparse.Namespace) -> dict[str, float]:
    """Seconds to the flat arrays and in all, and growth of the peak memory in MB, of one build."""
    from resource import RUSAGE_SELF, getrusage
    from time import perf_counter

    from margot_builders import samples

    arrays, load = steps(arguments.model, arguments.way)
    depth, n = WARM_UP
    load(arrays(*samples(n, arguments.p), depth))
    X, y = samples(arguments.n, arguments.p)
    unit = 1e6 if sys.platform == "darwin" else 1e3  # ru_maxrss is in bytes there, else in kilobytes
    before = getrusage(RUSAGE_SELF).ru_maxrss
    began = perf_counter()
    flat = arrays(X, y, arguments.depth)
    filled = perf_counter()
    loaded = load(flat)
    ended = perf_counter()
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    del flat, loaded
    return {
        "arrays": filled - began,
        "seconds": ended - began,
        "megabytes": (peak - before) / unit,
        "imports": before / unit,
    }


def steps(model: str, way: str) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """Give the two steps of a way: to the flat arrays, and to the solver; MARGOT's ways do both in the first."""
    if model == "oct":
        import oct_builders

        return {
            "by hand": (oct_builders.arrays_by_hand, oct_builders.load_by_hand),
            "mipforest": (oct_builders.arrays_with_mipforest, oct_builders.load_with_mipforest),
        }[way]
    import margot_builders

    build = {
        "by hand": margot_builders.by_hand,
        "mipforest": margot_builders.with_mipforest,
        "Pyomo": margot_builders.with_pyomo,
    }[way]
    return build, lambda built: built


def write_pairs(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds of our writer and of HiGHS', in turns, for the same model under the same names."""
    from dataclasses import replace
    from tempfile import TemporaryDirectory
    from time import perf_counter

    import margot_builders

    from mipforest.files import write_mps

    X, y = margot_builders.samples(arguments.n, arguments.p)
    session, form = margot_builders.with_mipforest(X, y, arguments.depth)
    highs = session.highs
    for j, name in enumerate(form.column_names):
        highs.passColName(j, name)
    for i, name in enumerate(form.row_names):
        highs.passRowName(i, name)
    times: dict[str, list[float]] = {"mipforest": [], "HiGHS": []}
    with TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.mps" for name in times}
        writers = {
            # A fresh form each time: names that were made before would be a gift.
            "mipforest": lambda: write_mps(replace(form), paths["mipforest"]),
            "HiGHS": lambda: highs.writeModel(str(paths["HiGHS"])),
        }
        for write in writers.values():
            write()
        for k in range(arguments.repeats):
            for name in sorted(writers, reverse=bool(k % 2)):
                began = perf_counter()
                writers[name]()
                times[name].append(perf_counter() - began)
        sizes = {name: path.stat().st_size / 1e6 for name, path in paths.items()}
    return {"seconds": times, "megabytes": sizes}


def compare(arguments: argparse.Namespace) -> dict[str, int]:
    """Size of the model; fails if the ways disagree in any number."""
    from margot_builders import samples

    X, y = samples(arguments.n, arguments.p)
    form = (compare_oct if arguments.model == "oct" else compare_margot)(X, y, arguments.depth)
    return {"columns": form.n_columns, "rows": form.n_rows, "nonzeros": form.A.nnz}


def compare_oct(X: Any, y: Any, depth: int) -> Any:
    """Compare what HiGHS holds after both ways; give mipforest's form."""
    import oct_builders

    form = oct_builders.arrays_with_mipforest(X, y, depth)
    ours = oct_builders.load_with_mipforest(form)
    compare_in_highs(ours, oct_builders.load_by_hand(oct_builders.arrays_by_hand(X, y, depth)))
    return form


def compare_margot(X: Any, y: Any, depth: int) -> Any:
    """Compare what HiGHS holds after two ways, and Pyomo's rows; give mipforest's form."""
    import margot_builders

    session, form = margot_builders.with_mipforest(X, y, depth)
    compare_in_highs(session.highs, margot_builders.by_hand(X, y, depth))
    compare_pyomo(margot_builders.with_pyomo(X, y, depth), form)
    return form


def compare_in_highs(ours: Any, by_hand: Any) -> None:
    """Compare all numbers of two models in HiGHS; fails if one differs."""
    import numpy as np

    a, b = ours.getModel(), by_hand.getModel()
    sides = ("col_lower_", "col_upper_", "row_lower_", "row_upper_")
    matrix = ("format_", "start_", "index_", "value_")
    for one, other, fields in (
        (a.lp_, b.lp_, ("col_cost_", "integrality_", *sides)),
        (a.lp_.a_matrix_, b.lp_.a_matrix_, matrix),
        (a.hessian_, b.hessian_, matrix),
    ):
        for field in fields:
            if not np.array_equal(getattr(one, field), getattr(other, field)):
                raise SystemExit(f"mipforest and the arrays by hand differ in {field}")


def compare_pyomo(m: Any, form: Any) -> None:
    """Compare Pyomo's rows, as its own compiler gives them, with ours; fails if they differ."""
    import numpy as np
    import pyomo.environ as pyo
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    m.objective.deactivate()
    m.nothing = pyo.Objective(expr=0.0)
    compiled = LinearStandardFormCompiler().write(m, mixed_form=True)
    order = {id(v): k for k, v in enumerate(v for block in (m.w, m.b, m.xi, m.z) for v in block.values())}
    rows = {
        id(c): k
        for k, c in enumerate(c for block in (m.assign, m.margin, m.right, m.left) for c in block.values())
    }
    A = compiled.A.tocoo()
    row = np.array([rows[id(r.constraint)] for r in compiled.rows])
    column = np.array([order[id(v)] for v in compiled.columns])
    theirs = type(form.A)((A.data, (row[A.row], column[A.col])), shape=form.A.shape)
    if (theirs != form.A).nnz or theirs.nnz != form.A.nnz:
        raise SystemExit("Pyomo's matrix differs from mipforest's")
    sides = np.where(np.isfinite(form.row_lower), form.row_lower, form.row_upper)[row]
    if np.abs(np.asarray(compiled.rhs) - sides).max() > 1e-12 * np.abs(sides).max():
        raise SystemExit("Pyomo's right-hand sides differ from mipforest's")
