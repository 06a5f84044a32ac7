"""Optimal values that solvers find for the model of a file; each skips where the solver is absent."""

from __future__ import annotations

import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mipforest.files.solutions import read_solution
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm


def best_by_enumeration(form: MatrixForm) -> float:
    """Optimal value over all integer points of the box; every column is integer."""
    boxes = [range(int(low), int(high) + 1) for low, high in zip(form.col_lower, form.col_upper, strict=True)]
    points = (np.array(point, dtype=float) for point in product(*boxes))
    values = [form.objective(point) for point in points if violations(form, point).max == 0]
    return max(values) if form.maximize else min(values)


def highs_value(path: Path) -> float:
    highspy = pytest.importorskip("highspy")
    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getObjectiveValue())


def gurobi_value(path: Path) -> float:
    gurobipy = pytest.importorskip("gurobipy")
    with (
        gurobipy.Env(params={"OutputFlag": 0}) as environment,
        gurobipy.read(str(path), environment) as model,
    ):
        model.Params.MIPGap = 0
        model.Params.Threads = 1
        model.optimize()
        assert model.Status == gurobipy.GRB.OPTIMAL
        return float(model.ObjVal)


def scip_value(path: Path) -> float:
    pyscipopt = pytest.importorskip("pyscipopt")
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    assert model.getStatus() == "optimal"
    return float(model.getObjVal())


def glpsol_value(path: Path) -> float:
    """Value that GLPK's program writes (rounded to six digits on the screen, so the written one is taken)."""
    written = path.with_name(f"{path.name}.glpk.sol")
    _run("glpsol", "--lp" if ".lp" in path.name else "--freemps", str(path), "-w", str(written))
    return _stated(written)


def cbc_value(path: Path) -> float:
    """Value that COIN-OR's Cbc writes."""
    written = path.with_name(f"{path.name}.cbc.sol")
    _run("cbc", str(path), "solve", "solution", str(written))
    return _stated(written)


def _run(program: str, *arguments: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    Path(arguments[-1]).unlink(missing_ok=True)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert Path(arguments[-1]).exists(), done.stdout[-2000:]


def _stated(path: Path) -> float:
    solution = read_solution(path)
    assert "optimal" in solution.status.lower()
    assert solution.objective is not None
    return solution.objective
