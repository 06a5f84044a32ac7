"""``mipforest compile``: compile the tree searches before their first use, for containers, clusters and tests."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from itertools import product
from multiprocessing import get_context
from typing import TYPE_CHECKING, Annotated

import numpy as np
from typer import Exit, Option

from mipforest.cli import options as o
from mipforest.cli.doctor import small_data
from mipforest.cli.errors import SOLVER
from mipforest.cli.output import print_json, print_text

if TYPE_CHECKING:
    from mipforest.data import Dataset
    from mipforest.problem.formulation import Formulation

#: Seconds that the search of a small tree may take, without compiling.
SEARCH_SECONDS = 0.3

#: Depths whose searches are compiled: deeper ones are made of that of depth 3.
DEPTHS = (1, 2, 3)

#: Processes that compile side by side; each takes some 400 MB.
PROCESSES = 2


@dataclass(frozen=True)
class Compiled:
    """What was compiled for a model.

    Attributes
    ----------
    model
        Its name.
    seconds
        Of compiling; 0 where all was there.
    failure
        What went wrong, or nothing.
    """

    model: str
    seconds: float
    failure: str = ""


def compile_searches(
    model: Annotated[
        list[str] | None,
        Option(
            "--model",
            metavar="NAME",
            help="A model whose searches are compiled; repeatable. All unless given.",
        ),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Compile the tree searches of all models, or of some, so that later solves need not wait.

    Small problems of each kind (classes, weights, leaf sizes, depths) are solved in two processes side by side. The
    machine code is kept in the user's cache, or in the folder NUMBA_CACHE_DIR: make it part of a container, or shared
    by the machines of a cluster that have the same processor.

    Exit code: 0 all are compiled; 4 otherwise.
    """
    from mipforest.problem.registry import formulation_classes, get_formulation
    from mipforest.processes import safe_path
    from mipforest.searches.kernel_cache import kernel_folder

    names = [get_formulation(name).name for name in model] if model else list(formulation_classes())
    found: list[Compiled] = []
    with safe_path(), ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(compiled, name) for name in names]):
            found.append(done.result())
            if not as_json:
                last = found[-1]
                said = last.failure or (
                    f"compiled in {last.seconds:.0f} s" if last.seconds else "all was there"
                )
                print_text(f"{len(found):2d} of {len(names)}  {last.model:<16} {said}")
    obstacle = kernel_folder().check()
    code = SOLVER if obstacle or any(one.failure for one in found) else 0
    if as_json:
        print_json(
            {"models": list(map(asdict, found)), "folder": str(kernel_folder().path), "exit_code": code}
        )
    else:
        where = f"not kept: {obstacle}" if obstacle else f"kept in {kernel_folder().path}"
        print_text(f"{sum(one.seconds for one in found):.0f} s of compiling; {where}")
    raise Exit(code)


def compiled(name: str) -> Compiled:
    """Solve small problems of each kind of a model, so that its searches are compiled."""
    from mipforest.problem.registry import get_formulation
    from mipforest.problem.tree_search import Auto, solver_or_search

    seconds, search = 0.0, solver_or_search("auto")
    assert isinstance(search, Auto)
    try:
        for formulation, data, depth in _problems(get_formulation(name)()):
            problem = formulation.build(data, depth, solver=search, whole=False)
            result = problem.solve(search, time_limit=SEARCH_SECONDS)
            seconds += result.phase_seconds.get("compile", 0.0)
    except Exception as error:  # whatever a broken installation raises is what the user needs to see
        return Compiled(name, seconds, f"{type(error).__name__}: {error}")
    return Compiled(name, seconds)


def _problems(
    formulation: Formulation,
) -> Iterator[tuple[Formulation, Dataset, int | None]]:
    """Yield small problems of a model: by depth, and of univariate trees by classes, weights and leaf sizes."""
    from mipforest.problem.structure import UnivariateProblem

    data = small_data(formulation)
    if formulation.structure_type is not UnivariateProblem:
        for depth in DEPTHS[:2] if formulation.gives.is_tree else (None,):
            yield formulation, data, depth
        return
    tables = [data, small_data(formulation, classes=3)] if formulation.task == "classification" else [data]
    sizes = [formulation, replace(formulation, N_min=2)]  # type: ignore[call-arg]
    for depth, table, own in product(DEPTHS, tables, sizes):
        for weighed in (table, table.with_weights(0.3 + np.arange(table.n) / table.n)):
            yield own, weighed, depth
