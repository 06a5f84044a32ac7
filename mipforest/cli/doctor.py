"""``mipforest doctor``: what is installed, which licences, and whether every solver and every tree search works."""

from __future__ import annotations

import platform
import re
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import product
from time import monotonic
from typing import TYPE_CHECKING, Any

from typer import Exit

from mipforest.cli import options as o
from mipforest.cli.errors import SOLVER
from mipforest.cli.output import print_json, print_table, print_text
from mipforest.cli.progress import Progress

if TYPE_CHECKING:
    from mipforest.data import Dataset
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.tree_search import TreeSearch

#: Seconds that the self-test of one solver may take.
SELF_TEST_SECONDS = 10.0

#: Seconds for one model by a tree search, without compiling. Its tree is checked, proven or not. A local search uses
#: them up, on each of two dozen models, and the whole test shall take less than 20 s.
SEARCH_TEST_SECONDS = 0.3

#: Tolerance of the test's answer: where a quadratic row holds within 1e-6, the point is off by a few times that.
SELF_TEST_TOLERANCE = 1e-5

#: The solver that everything works with unless another is named.
DEFAULT = "highs"

#: The model that solvers are tried on, in its variant of few rows.
PROBE = "oct"

_NAME = re.compile(r"[A-Za-z0-9._-]+")

#: Extras whose packages the program uses; those for its development are left out.
_USED_EXTRAS = ("gurobi", "scip", "pyomo", "parquet", "dp", "xgboost", "dask", "onnx")


@dataclass(frozen=True)
class Diagnosis:
    """What was found out about one solver or one tree search.

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
    """Say what is installed, and try every solver and every tree search on a small tree.

    The self-test builds the model of a tree for 40 flowers, solves it and checks the answer, for at most ten seconds
    for each solver. A tree search solves a model of each kind that it takes. All of it takes about fifteen seconds; the
    first time on a machine two minutes more: the searches are compiled, so that later solves need not wait.

    Exit code: 0 the default solver works, and no tree search fails; 4 otherwise.
    """
    from mipforest.problem.tree_search import search_classes
    from mipforest.solvers.base import solver_classes

    if not as_json:
        print_text(f"Python {platform.python_version()} on {platform.platform()}")
        print_text(", ".join(f"{name} {version or '-'}" for name, version in versions().items()))
    with Progress(quiet=as_json) as progress:
        solvers = []
        for name in solver_classes():
            progress.phase(f"trying solver {name}", plain=True)
            solvers.append(_diagnosis(name))
    if not as_json:
        _print("solver", solvers)
        print_text()
    with Progress(quiet=as_json) as progress:
        searches = []
        for name in search_classes():
            progress.phase(f"trying tree search {name}", plain=True)
            searches.append(_search_diagnosis(name, progress))
    works = any(d.solver == DEFAULT and d.state == "works" for d in solvers)
    failing = [d.solver for d in searches if d.state == "fails"]
    code = 0 if works and not failing else SOLVER
    if as_json:
        content: dict[str, Any] = {"versions": versions(), "platform": platform.platform()}
        content |= {"solvers": list(map(asdict, solvers)), "searches": list(map(asdict, searches))}
        print_json(content | {"exit_code": code})
    else:
        _print("tree search", searches)
        if not works:
            print_text(
                f"\nThe default solver, {DEFAULT}, does not work: pip install --force-reinstall highspy"
            )
        if failing:
            print_text(f"\nNot all tree searches work; until they do, choose another way: --solver {DEFAULT}")
    raise Exit(code)


def _print(kind: str, found: list[Diagnosis]) -> None:
    rows = [(d.solver, d.state, "" if d.seconds is None else f"{d.seconds:.1f} s", d.about) for d in found]
    print_text()
    print_table((kind, "state", "test", "about"), rows, wrapped=("about",))


def _diagnosis(name: str) -> Diagnosis:
    from mipforest.solvers.base import get_solver, solver_classes

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


def _search_diagnosis(name: str, progress: Progress) -> Diagnosis:
    from mipforest.problem.registry import models_of
    from mipforest.problem.tree_search import search_classes

    cls = search_classes()[name]
    if not cls.available():
        return Diagnosis(name, "not installed", f"pip install {cls.install}")
    began, compiled = monotonic(), 0.0
    try:
        models, searches = models_of(cls), [cls.named(method) for method in cls.methods or ("",)]
        for search, model in product(searches, models):
            progress.phase(f"trying tree search {search.name} on {model}")
            failure, seconds = _search_test(search, model)
            compiled += seconds
            if failure:
                return Diagnosis(name, "fails", f"{model}: {failure}", monotonic() - began)
        about = f"version {searches[0].version()}: {', '.join(models)}"
    except Exception as error:  # as for solvers
        return Diagnosis(name, "fails", f"{type(error).__name__}: {error}", monotonic() - began)
    if compiled:
        from mipforest.searches.kernel_cache import kernel_folder

        obstacle = kernel_folder().obstacle
        often = (
            f"as each run has to: machine code cannot be kept ({obstacle})"
            if obstacle
            else "once on this machine"
        )
        about += f"; compiled in {compiled:.0f} s, {often}"
    return Diagnosis(name, "works", about, monotonic() - began)


def _search_test(search: TreeSearch, model: str) -> tuple[str, float]:
    """Let a search find a small tree; return what is wrong with it, or nothing, and the seconds of compiling."""
    from mipforest.problem.registry import get_formulation

    formulation = get_formulation(model)()
    problem = formulation.build(small_data(formulation), 1 if formulation.gives.is_tree else None)
    if not search.takes(problem):  # a part of the models of that name, other than the default one
        return "", 0.0
    result = problem.solve(search, time_limit=SEARCH_TEST_SECONDS)
    wrong = (
        "" if result.verified else f"the answer of the self-test is wrong: {'; '.join(result.failed_checks)}"
    )
    if result.tree is None:
        wrong = f"the self-test ended with {result.status}: {result.solution.message}"
    return wrong, result.phase_seconds.get("compile", 0.0)


def small_data(formulation: Formulation, classes: int = 2) -> Dataset:
    """Return a few samples that a model takes.

    Parameters
    ----------
    formulation
        The model.
    classes
        2, 3 or 4, of a model that predicts classes.
    """
    import numpy as np

    from mipforest.data import Dataset, load

    task, data = formulation.task, load("iris")
    if task in ("regression", "prescription"):
        data = load("diabetes" if task == "regression" else "synthetic:treatments,n=400")
    elif classes == 2:
        data = data.binarise("virginica")
    few = data.take(range(0, data.n, data.n // (40 if task == "prescription" else 15))).with_scaling(
        formulation.scaling
    )
    if task == "classification" and classes > 3:
        return Dataset.from_arrays(few.X_raw, np.arange(few.n) % classes, scaling=formulation.scaling)
    if task == "decision":
        gains = few.X_raw[:, :2] - few.X_raw[:, :2].mean(axis=0)
        return Dataset.from_arrays(few.X_raw, rewards=gains, scaling=formulation.scaling)
    if task == "multi-output":
        return Dataset.from_arrays(
            few.X_raw, few.X_raw[:, :2], task="regression", scaling=formulation.scaling
        )
    if formulation.takes_times:
        seen = few.y > few.y.min()
        return Dataset.from_arrays(few.X_raw, few.y, event=seen, scaling=formulation.scaling)
    if not formulation.gives.is_tree and formulation.scaling == "none":  # it takes features of 0 and 1
        return Dataset.from_arrays(few.X_raw > few.X_raw.mean(axis=0), few.y, scaling="none")
    return few


def _self_test(name: str) -> str:
    """Solve a small model with a solver; say what is wrong with the answer, or nothing."""
    if name == "clarabel":
        return _quadratic_test(name)
    import numpy as np

    from mipforest.data import load
    from mipforest.problem.registry import get_formulation

    data = load("iris").take(np.arange(0, 150, 4))
    problem = get_formulation(PROBE)(variant="paper").build(data, 1)
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
    return {name: version_of(name) for name in names}


def version_of(package: str) -> str | None:
    """Return the version of an installed package, without importing it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
