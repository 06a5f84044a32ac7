"""What ``export.py`` measures and compares, each task in a process of its own."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mipforest.model.matrix import MatrixForm

#: Rows that are compared entry by entry.
SPOT_ROWS = 200


def margot(arguments: argparse.Namespace) -> MatrixForm:
    """Build the model of ``mipforest export --variant paper``."""
    from formulations.margot import Margot
    from mipforest.data import load

    data = load(f"synthetic:tree,n={arguments.n},p={arguments.p}")
    return Margot(variant="paper").build(data, arguments.depth).model.matrix()


def write(arguments: argparse.Namespace) -> dict[str, float]:
    """Processor time in seconds of one write, and growth of the peak memory in MB from the arrays on."""
    from time import process_time

    form = margot(arguments)
    before = _used()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    writer = writer_of(arguments.who, form, arguments.path)
    began = process_time()
    writer()
    seconds = process_time() - began
    peak = int(_status("VmHWM").split()[0]) / 1e3
    return {
        "seconds": seconds,
        "megabytes": peak - before,
        "file": arguments.path.stat().st_size / 1e6,
    }


def _used() -> float:
    return int(_status("VmRSS").split()[0]) / 1e3


def _status(entry: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.partition(":")[2] for line in lines if line.startswith(f"{entry}:"))


def writer_of(who: str, form: MatrixForm, path: Path) -> Callable[[], object]:
    if who.startswith("mipforest"):
        from mipforest.files import write_model

        return lambda: write_model(form, path)
    highs = in_highs(form)
    return lambda: highs.writeModel(str(path))


def in_highs(form: MatrixForm) -> Any:
    """Put the model into HiGHS, names and quadratic part included."""
    from margot_builders import load_quadratic

    from mipforest.solvers.highs import HighsSession
    from mipforest.solvers.worker import Worker

    session = HighsSession(Worker(maximize=False))
    session.load(form)
    load_quadratic(session, form)
    for j, name in enumerate(form.column_names):
        session.highs.passColName(j, name)
    for i, name in enumerate(form.row_names):
        session.highs.passRowName(i, name)
    return session.highs


def read(arguments: argparse.Namespace) -> dict[str, Any]:
    """What a solver holds after reading the file: its size, the objective at a point, some rows."""
    return {"HiGHS": read_by_highs, "Gurobi": read_by_gurobi, "SCIP": read_by_scip}[arguments.who](arguments)


def point(n: int) -> list[float]:
    """A point with a different value in every column."""
    return [((7 * j) % 1001) / 1000 for j in range(n)]


def spot_rows(m: int) -> list[int]:
    return list(range(0, m, max(1, m // SPOT_ROWS)))


def ours(form: MatrixForm) -> dict[str, Any]:
    import numpy as np

    names, rows = form.column_names, spot_rows(form.n_rows)
    A = form.A
    entries = {
        form.row_names[i]: {
            "low": _side(form.row_lower[i]),
            "high": _side(form.row_upper[i]),
            "row": {
                names[j]: value
                for j, value in zip(
                    A.indices[A.indptr[i] : A.indptr[i + 1]].tolist(),
                    A.data[A.indptr[i] : A.indptr[i + 1]].tolist(),
                    strict=True,
                )
            },
        }
        for i in rows
    }
    return {
        "columns": form.n_columns,
        "rows": form.n_rows,
        "nonzeros": int(A.nnz),
        "integers": int(form.integer.sum()),
        "objective": form.objective(np.array(point(form.n_columns))),
        "linear": form.offset + float(form.c @ np.array(point(form.n_columns))),
        "spot": entries,
    }


def _side(value: float) -> float | None:
    return None if abs(value) >= 1e20 else float(value)


def read_by_highs(arguments: argparse.Namespace) -> dict[str, Any]:
    import highspy
    import numpy as np
    from scipy import sparse

    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(arguments.path)) == highspy.HighsStatus.kOk
    model = solver.getModel()
    lp, hessian = model.lp_, model.hessian_
    n, m = lp.num_col_, lp.num_row_
    A = sparse.csc_array((lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_), (m, n)).tocsr()
    x = np.array(point(n))
    triangle = sparse.csc_array((hessian.value_, hessian.index_, hessian.start_), (n, n))
    diagonal = triangle.diagonal() @ (x * x)
    quadratic = x @ (triangle @ x) - 0.5 * diagonal  # one triangle of Q is kept
    names, rows = list(lp.col_names_), list(lp.row_names_)
    return {
        "columns": n,
        "rows": m,
        "nonzeros": int(A.nnz),
        "integers": sum(kind == highspy.HighsVarType.kInteger for kind in lp.integrality_),
        "objective": float(np.array(lp.col_cost_) @ x + quadratic + lp.offset_),
        "spot": {
            rows[i]: {
                "low": _side(lp.row_lower_[i]),
                "high": _side(lp.row_upper_[i]),
                "row": {
                    names[j]: float(A.data[k])
                    for k, j in enumerate(A.indices[A.indptr[i] : A.indptr[i + 1]].tolist(), A.indptr[i])
                },
            }
            for i in spot_rows(m)
        },
    }


def read_by_gurobi(arguments: argparse.Namespace) -> dict[str, Any]:
    import gurobipy

    with (
        gurobipy.Env(params={"OutputFlag": 0}) as environment,
        gurobipy.read(str(arguments.path), environment) as model,
    ):
        variables, rows = model.getVars(), model.getConstrs()
        x = dict(zip([v.VarName for v in variables], point(len(variables)), strict=True))
        objective = model.getObjective()
        linear = objective.getLinExpr() if model.NumQNZs else objective
        value = model.ObjCon + sum(
            linear.getCoeff(k) * x[linear.getVar(k).VarName] for k in range(linear.size())
        )
        if model.NumQNZs:
            value += sum(
                objective.getCoeff(k) * x[objective.getVar1(k).VarName] * x[objective.getVar2(k).VarName]
                for k in range(objective.size())
            )
        spot = {}
        for i in spot_rows(len(rows)):
            row = model.getRow(rows[i])
            side, sense = rows[i].RHS, rows[i].Sense
            spot[rows[i].ConstrName] = {
                "low": side if sense in "=>" else None,
                "high": side if sense in "=<" else None,
                "row": {row.getVar(k).VarName: row.getCoeff(k) for k in range(row.size())},
            }
        return {
            "columns": model.NumVars,
            "rows": model.NumConstrs,
            "nonzeros": model.NumNZs,
            "integers": model.NumIntVars,
            "objective": value,
            "spot": spot,
        }


def read_by_scip(arguments: argparse.Namespace) -> dict[str, Any]:
    """SCIP keeps a quadratic objective as a nonlinear row that it does not evaluate: the linear part counts."""
    import pyscipopt

    solver = pyscipopt.Model()
    solver.hideOutput()
    solver.readProblem(str(arguments.path))
    order = json.loads(arguments.path.with_suffix(".columns").read_text())
    x = dict(zip(order, point(len(order)), strict=True))
    variables = {v.name: v for v in solver.getVars()}
    rows = [row for row in solver.getConss() if row.getConshdlrName() == "linear"]
    value = solver.getObjoffset() + sum(variables[name].getObj() * x[name] for name in order)
    spot = {}
    for i in spot_rows(len(rows)):
        spot[rows[i].name] = {
            "low": _side(solver.getLhs(rows[i])),
            "high": _side(solver.getRhs(rows[i])),
            "row": solver.getValsLinear(rows[i]),
        }
    return {
        "columns": len(x),
        "rows": len(rows),
        "nonzeros": sum(len(solver.getValsLinear(row)) for row in rows),
        "integers": sum(variables[name].vtype() != "CONTINUOUS" for name in order),
        "linear": value,
        "spot": spot,
    }


def size(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the file for the readers; give what they have to find."""
    from mipforest.files import write_mps

    form = margot(arguments)
    write_mps(form, arguments.path)
    arguments.path.with_suffix(".columns").write_text(json.dumps(form.column_names))
    return ours(form)


TASKS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "write": write,
    "read": read,
    "size": size,
}
