"""From the texts of the command line to formulations, data and problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mipforest.cli.errors import CommandError
from mipforest.cli.options import Missing, Scaling, Task
from mipforest.settings import SolveSettings

if TYPE_CHECKING:
    from mipforest.data import Dataset
    from mipforest.data.encoding import Scaling as ScalingRule
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.problem import Problem
    from mipforest.problem.tree_search import Auto, TreeSearch
    from mipforest.runs import DataSource
    from mipforest.time_budget import TimeBudget
    from mipforest.trees import Predictor


def formulation_of(
    model: str, parameters: Sequence[str] | None, variant: str | None, ensemble: str | None = None
) -> Formulation:
    """Return a formulation by name, with its parameters and variant, and the ensemble that it mimics.

    Raises
    ------
    UnknownFormulation, ParameterError
        If a name is unknown or a value is not allowed.
    CommandError
        If the variant is unknown, or the model mimics no ensemble.
    """
    from mipforest.errors import did_you_mean
    from mipforest.problem.parameters import ensemble_parameter_of, parse_parameters
    from mipforest.problem.registry import get_formulation, make_formulation

    cls = get_formulation(model)
    values = parse_parameters(cls, parameters or ())
    if variant is not None and variant not in cls.variants:
        known = ", ".join(cls.variants)
        raise CommandError(
            f"{model} has no variant {variant!r}{did_you_mean(variant, cls.variants)}; it has {known}"
        )
    if ensemble is not None and ensemble_parameter_of(cls) is None:
        raise CommandError(
            f"--ensemble: {model} mimics no tree ensemble; leave it out, or take --model miret"
        )
    return make_formulation(model, values, variant, ensemble=ensemble)


def check_depth(depth: int) -> None:
    """Refuse a depth that no tree has."""
    from mipforest.trees import Topology

    try:
        Topology(depth)
    except ValueError as error:
        raise CommandError(f"--depth: {error}") from None


def depth_of(depth: int | None, formulation: Formulation) -> int:
    """Return the depth that was asked for; a score card has none, and its model one level.

    Raises
    ------
    CommandError
        If a tree's depth is absent or none that a tree has, or a score card is given one.
    """
    if formulation.gives.is_tree:
        if depth is None:
            raise CommandError("--depth is missing: give the levels of branch nodes, such as --depth 2")
        check_depth(depth)
        return depth
    if depth not in (None, 1):
        raise CommandError(
            f"--depth: {formulation.name} finds a {formulation.gives.noun}, which has no depth; leave it out"
        )
    return 1


def scaling_of(scaling: Scaling | None, model: str) -> ScalingRule:
    """Return the scaling that was asked for, or the model's own.

    Raises
    ------
    UnknownFormulation
        If there is no such model.
    """
    from mipforest.problem.registry import get_formulation

    return get_formulation(model).scaling if scaling is None else scaling.value


def source_of(
    data: str,
    *,
    target: str | None,
    positive: Sequence[str] | None,
    task: Task | None,
    scaling: ScalingRule,
    missing: Missing,
    seed: int,
    test_size: float | None = None,
    test: str | None = None,
    weight: str | None = None,
    treatment: str | None = None,
    outcome: str | None = None,
    drop: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
) -> DataSource:
    """Return what to load, and how to treat it."""
    from mipforest.runs import DataSource

    if test_size is not None and test is not None:
        raise CommandError("--test-size and --test are both given; keep one")
    if test_size is not None and not 0 < test_size < 1:
        raise CommandError(f"--test-size is {test_size:g}; give a share between 0 and 1, such as 0.2")
    if outcome is not None and (target is not None or treatment is None):
        raise CommandError(
            "--outcome names the outcomes of the treatments in --treatment; "
            + ("give both" if treatment is None else "leave --target out")
        )
    return DataSource(
        data=data,
        target=target if outcome is None else outcome,
        task=None if task is None else task.value,
        missing=missing.value,
        scaling=scaling,
        seed=seed,
        positive=tuple(positive or ()),
        test_size=test_size,
        test=test,
        weight=weight,
        treatment=treatment,
        drop=tuple(drop or ()),
        keep=tuple(keep or ()),
    )


def start_of(start: str, formulation: Formulation) -> str | Predictor | None:
    """Return a start by name or from a file, before anything else is done.

    Raises
    ------
    CommandError
        If it is neither a start of the formulation nor a file.
    TreeFileError, OSError
        If the file cannot be read.
    """
    from mipforest.errors import did_you_mean
    from mipforest.problem.tree_search import is_search
    from mipforest.runs import load_saved_card
    from mipforest.trees import load

    known = ("default", "none", *formulation.starts)
    if start in known or is_search(start):
        return start
    path = Path(start)
    of_tree = formulation.gives.is_tree
    path = path / ("tree.json" if of_tree else "card.json") if path.is_dir() else path
    if path.exists() or path.suffix == ".json":
        return load(path) if of_tree else load_saved_card(path).card
    raise CommandError(
        f"{formulation.name} has no start {start!r}{did_you_mean(start, known)}; it has {', '.join(known)}, "
        f"and takes the {'tree' if of_tree else 'card'}.json of a run"
    )


def build(
    formulation: Formulation,
    data: Dataset,
    depth: int,
    budget: TimeBudget | None = None,
    solver: TreeSearch | Auto | None = None,
) -> Problem:
    """Build the model; a refusal of several classes says how to go on."""
    from mipforest.data import DataError

    try:
        return formulation.build(data, depth, budget=budget, solver=solver, whole=False)
    except DataError as error:
        # What has a command-line wording of its own is about something else, or names --positive itself.
        if data.n_classes <= 2 or error.option != error.hint:
            raise
        ways = filter(None, (error.hint, "--positive CLASS tells one class from the rest"))
        raise DataError(error.message, hint=error.hint, option="; ".join(ways)) from error


def settings_of(
    time_limit: float,
    gap: float,
    threads: int | None,
    seed: int,
    solver_options: Sequence[str] | None,
    bridges: Sequence[str] | None,
    isolate: bool | None = None,
) -> SolveSettings:
    """Collect the options of the solver in one object; the start comes with the formulation.

    Raises
    ------
    CommandError, NotAllowed
        If an option of the solver is no ``NAME=VALUE`` or given twice, or a bridge is unknown.
    """
    return SolveSettings(
        time_limit=time_limit,
        gap=gap,
        threads=threads,
        seed=seed,
        solver_options=_solver_options(solver_options or ()),
        bridges=tuple(bridges or ()),
        isolate=isolate,
    )


def _solver_options(assignments: Sequence[str]) -> dict[str, Any]:
    """Read ``NAME=VALUE`` texts as options under the solver's own names."""
    options: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = (part.strip() for part in assignment.partition("="))
        if not equals or not name:
            raise CommandError(f"--solver-option {assignment!r} is not NAME=VALUE")
        if name in options:
            raise CommandError(f"--solver-option {name} is given twice")
        options[name] = _typed(value)
    return options


def _typed(value: str) -> bool | int | float | str:
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
