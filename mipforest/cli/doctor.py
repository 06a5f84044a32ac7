"""``mipforest doctor``: what is installed, which licences, and whether every solver works."""

from __future__ import annotations

import platform
import re
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from time import monotonic
from typing import Any

from typer import Exit

from mipforest.cli import options as o
from mipforest.cli.errors import SOLVER
from mipforest.cli.output import print_json, print_table, print_text

#: Seconds that the self-test of one solver may take.
SELF_TEST_SECONDS = 10.0

#: What its point may be off: a quadratic row that holds within 1e-6 leaves the point a few times that.
SELF_TEST_TOLERANCE = 1e-5

#: The solver that everything works with unless another is named.
DEFAULT = "highs"


_NAME = re.compile(r"[A-Za-z0-9._-]+")

#: Extras whose packages the program uses; those for its development are left out.
_USED_EXTRAS = ("gurobi", "scip", "pyomo", "parquet", "dp", "xgboost", "dask")


@dataclass(frozen=True)
class Diagnosis:
    """What was found out about one solver.

    Attributes
    ----------
    solver
        Its name.
    state
        ``works``, ``not installed`` or ``fails``.
    about
        Version and licence; how to install it; or what went wrong.
    seconds
        Time of the self-test, ``None`` without one.
    """

    solver: str
    state: str
    about: str
    seconds: float | None = None


def doctor(as_json: o.Json = False) -> None:
    """Say what is installed, and try every solver on a small tree.

    The self-test builds the model of a tree for 40 flowers, solves it and checks the answer, for at most ten seconds
    for each solver.

    Exit code: 0 the default solver works; 4 it does not.
    """
    from mipforest.solvers.registry import solver_classes

    found = [_diagnosis(name) for name in solver_classes()]
    healthy = any(d.solver == DEFAULT and d.state == "works" for d in found)
    if as_json:
        content: dict[str, Any] = {"versions": versions(), "platform": platform.platform()}
        print_json(content | {"solvers": [asdict(d) for d in found], "exit_code": 0 if healthy else SOLVER})
    else:
        print_text(f"Python {platform.python_version()} on {platform.platform()}")
        print_text(", ".join(f"{name} {version or '-'}" for name, version in versions().items()))
        print_text()
        rows = [
            (d.solver, d.state, "" if d.seconds is None else f"{d.seconds:.1f} s", d.about) for d in found
        ]
        print_table(("solver", "state", "test", "about"), rows, wrapped=("about",))
        if not healthy:
            print_text(
                f"\nThe default solver, {DEFAULT}, does not work: pip install --force-reinstall highspy"
            )
    raise Exit(0 if healthy else SOLVER)


def _diagnosis(name: str) -> Diagnosis:
    from mipforest.solvers.registry import get_solver, solver_classes

    cls = solver_classes()[name]
    if not cls.available():
        return Diagnosis(name, "not installed", f"pip install '{cls.install}'")
    if name == "pyomo":
        return Diagnosis(name, "works", "solves through others: --solver pyomo:NAME")
    began = monotonic()
    try:
        solver = get_solver(name)
        about = ", ".join(filter(None, [f"version {solver.version()}", solver.license()]))
        failure = _self_test(name)
    except Exception as error:  # whatever a broken installation raises is what the user needs to see
        return Diagnosis(name, "fails", f"{type(error).__name__}: {error}", monotonic() - began)
    state, about = ("fails", failure) if failure else ("works", about)
    return Diagnosis(name, state, about, monotonic() - began)


def _self_test(name: str) -> str:
    """Solve a small model with a solver; say what is wrong with the answer, or nothing."""
    if name == "clarabel":
        return _quadratic_test(name)
    import numpy as np

    from mipforest.data import load
    from mipforest.problem.registry import get_formulation

    data = load("iris").take(np.arange(0, 150, 4))
    problem = get_formulation("oct")(variant="paper").build(data, 1)
    result = problem.solve(name, time_limit=SELF_TEST_SECONDS)
    if result.status != "optimal":
        return f"the self-test ended with {result.status}: {result.solution.message}"
    return (
        "" if result.verified else f"the answer of the self-test is wrong: {'; '.join(result.failed_checks)}"
    )


def _quadratic_test(name: str) -> str:
    """Project a point onto a plane: the answer is known."""
    import numpy as np

    from mipforest.model import Model, sum_squares
    from mipforest.solving import solve

    m = Model("projection")
    x = m.continuous("x", 3)
    m.minimize(sum_squares(x))
    m.add("plane", x.sum() == 3)
    solution = solve(m, name, time_limit=SELF_TEST_SECONDS)
    right = solution.found and np.allclose(solution["x"], 1.0, atol=SELF_TEST_TOLERANCE)
    return "" if right else f"the self-test ended with {solution.status}: {solution.message}"


def versions() -> dict[str, str | None]:
    """Return the version of mipforest and of every package it can use; ``None`` for what is not installed."""
    names = ["mipforest"]
    for requirement in requires("mipforest") or ():
        name, _, marker = requirement.partition(";")
        if not marker or any(f'extra == "{extra}"' in marker.replace("'", '"') for extra in _USED_EXTRAS):
            match = _NAME.match(name)
            if match and match.group() not in names:
                names.append(match.group())
    return {name: _version(name) for name in names}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
