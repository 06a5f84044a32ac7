"""``mipforest compile``: compile the tree searches before their first use, for containers, clusters and tests."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from mipforest.cli import options as o
from mipforest.cli.doctor import small_data
from mipforest.cli.errors import SOLVER
from mipforest.cli.output import print_json, print_text

if TYPE_CHECKING:
    from mipforest.data import Dataset
    from mipforest.problem import Problem

#: Seconds that the search of a small tree may take, without compiling.
SEARCH_SECONDS = 0.3

#: Depths whose searches are compiled.
DEPTHS = (1, 2)

#: Weights that loops differ by: fractions, heavy whole numbers as ``class_weight="balanced"`` comes to, and of classes
#: whose weights are no multiples of a unit.
FRACTIONS, WHOLE, OF_CLASSES = WEIGHTS = ("weights", "whole weights", "weights of classes")

#: Splits of a tree of three levels whose number is limited.
MOST_SPLITS = 4

#: Features of two values each, so many that their thresholds are searched by pairs.
INDICATORS = 7

#: Processes that compile side by side; each takes some 400 MB.
PROCESSES = 2


@dataclass(frozen=True)
class Kind:
    """A kind of problem that searches are compiled for.

    Attributes
    ----------
    model
        Name of the model.
    depth
        Depth of the tree; ``None`` for score cards.
    classes
        Classes of univariate trees, of a model that predicts them.
    N_min
        Least samples of a leaf of univariate trees.
    weights
        What weights samples have, one of :data:`WEIGHTS`.
    indicators
        Whether features have two values each.
    is_limited
        Whether the number of splits is limited.
    """

    model: str
    depth: int | None
    classes: int = 2
    N_min: int = 1
    weights: str = ""
    indicators: bool = False
    is_limited: bool = False

    def __str__(self) -> str:
        parts = [self.model, "" if self.depth is None else f"depth {self.depth}"]
        parts += [
            {2: "", 3: "three classes", 4: "four classes"}[self.classes],
            "least leaf" * (self.N_min > 1),
            self.weights,
            "indicators" * self.indicators,
            "limit on splits" * self.is_limited,
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class Compiled:
    """What was compiled for a kind of problem.

    Attributes
    ----------
    kind
        In words.
    seconds
        Of compiling; 0 where all was there.
    failure
        What went wrong, or nothing.
    """

    kind: str
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

    Small problems of each kind (depths, classes, weights, leaf sizes) are solved in two processes side by side. The
    machine code is kept in the user's cache, or in the folder NUMBA_CACHE_DIR: make it part of a container, or share it
    among the machines of a cluster that have the same processor.

    Exit code: 0 all are compiled; 4 otherwise.
    """
    from mipforest.problem.registry import formulation_classes, get_formulation
    from mipforest.processes import safe_path
    from mipforest.searches.kernel_cache import kernel_folder

    names = [get_formulation(name).name for name in model] if model else list(formulation_classes())
    kinds = [kind for name in names for kind in kinds_of(name)]
    found: list[Compiled] = []
    with safe_path(), ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(compiled, kind) for kind in kinds]):
            found.append(done.result())
            last = found[-1]
            if not as_json:
                said = last.failure or (f"{last.seconds:.0f} s" if last.seconds else "there")
                print_text(f"{len(found):3d} of {len(kinds)}  {last.kind}: {said}")
    obstacle = kernel_folder().check()
    code = SOLVER if obstacle or any(one.failure for one in found) else 0
    if as_json:
        print_json(
            {"kinds": list(map(asdict, found)), "folder": str(kernel_folder().path), "exit_code": code}
        )
    else:
        where = f"not kept: {obstacle}" if obstacle else f"kept in {kernel_folder().path}"
        print_text(f"{sum(one.seconds for one in found):.0f} s of compiling; {where}")
    raise Exit(code)


def kinds_of(name: str) -> list[Kind]:
    """Return the kinds of problems of a model: by depth, and of univariate trees by all that loops differ by."""
    from mipforest.problem.registry import get_formulation
    from mipforest.problem.structure import UnivariateProblem

    cls = get_formulation(name)
    if not cls.gives.is_tree:
        return [Kind(name, None)]
    if cls.structure_type is not UnivariateProblem:
        return [Kind(name, depth) for depth in DEPTHS]
    classes = (2, 3) if cls.task == "classification" else (2,)
    # Loops are compiled for the depth, operations for all else: those of three levels are those of two.
    operations = [Kind(name, 2, *own) for own in product(classes, (1, 2), ("", FRACTIONS))]
    if cls.task == "classification":
        operations += [Kind(name, 2, *own, WHOLE) for own in product(classes, (1, 2))]
    # Loops over pairs are compiled for counts, for counts times weights of classes, and for sums.
    operations += [Kind(name, 3, K, indicators=True) for K in classes]
    if cls.task == "classification":
        operations.append(Kind(name, 3, weights=OF_CLASSES, indicators=True))
        for weights in ("", OF_CLASSES):
            operations.append(Kind(name, 3, weights=weights, indicators=True, is_limited=True))
    return [Kind(name, 3), *operations, Kind(name, 1)]


def compiled(kind: Kind) -> Compiled:
    """Solve a small problem of a kind, with a certificate if it can have one, so that its searches are compiled."""
    from mipforest.objectives.leaf_losses import TableLoss
    from mipforest.problem.structure import UnivariateProblem
    from mipforest.problem.tree_search import solver_or_search

    try:
        problem = problem_of(kind)
        charged = problem.structure
        # Certificates state no costs that differ from sample to sample.
        is_certified = isinstance(charged, UnivariateProblem) and not isinstance(charged.loss, TableLoss)
        with TemporaryDirectory() as folder:
            result = problem.solve(
                solver_or_search("auto"),
                time_limit=SEARCH_SECONDS,
                certificate=Path(folder, "proof.gz") if is_certified else None,
            )
    except Exception as error:  # whatever a broken installation raises is what the user needs to see
        return Compiled(str(kind), 0.0, f"{type(error).__name__}: {error}")
    return Compiled(str(kind), result.phase_seconds.get("compile", 0.0))


def problem_of(kind: Kind) -> Problem:
    """Return a small problem of a kind."""
    import numpy as np

    from mipforest.problem.constraints import AtMostSplits
    from mipforest.problem.registry import get_formulation
    from mipforest.problem.tree_search import Auto, solver_or_search

    search = solver_or_search("auto")
    assert isinstance(search, Auto)
    sizes: dict[str, Any] = {"N_min": kind.N_min} if kind.N_min > 1 else {}
    formulation = get_formulation(kind.model)(**sizes)
    data = small_data(formulation, kind.classes)
    if kind.indicators:
        data = with_indicators(data)
    if kind.weights:
        number = data.y if kind.weights == OF_CLASSES else np.arange(data.n)
        data = data.with_weights(10_000.0 + number if kind.weights == WHOLE else np.sqrt(1.0 + number))
    problem = formulation.build(data, kind.depth, solver=search, whole=False)
    if kind.is_limited:
        problem.constrain(AtMostSplits(MOST_SPLITS))
    return problem


def with_indicators(data: Dataset) -> Dataset:
    """Return samples with all combinations of some indicators, and targets of those that are given."""
    import numpy as np

    from mipforest.data import Dataset

    number = np.arange(2**INDICATORS)
    X, of = (number[:, None] >> np.arange(INDICATORS) & 1).astype(float), number % data.n
    if data.rewards is not None:
        return Dataset.from_arrays(X, rewards=data.rewards[of])
    if data.followed is not None:
        time, event = data.followed[of, :2].T
        return Dataset.from_arrays(X, time, event=event > 0)
    return Dataset.from_arrays(
        X, data.y[of], task="classification" if data.task == "classification" else "regression"
    )
