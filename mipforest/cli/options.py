"""Options that several commands share, and what the shell offers when it completes their values."""

from __future__ import annotations

from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


class Scaling(StrEnum):
    """How features are scaled."""

    minmax = "minmax"
    standard = "standard"
    none = "none"


class Missing(StrEnum):
    """What happens to rows that lack a value."""

    error = "error"
    drop = "drop"
    impute = "impute"


class Unseen(StrEnum):
    """What happens to a level that the training data do not have."""

    error = "error"
    none = "none"


class Task(StrEnum):
    """What is to be predicted."""

    classification = "classification"
    regression = "regression"


def model_names(incomplete: str) -> list[str]:
    """Complete the name of a model."""
    return _named("mipforest.formulations", incomplete)


def solver_names(incomplete: str) -> list[str]:
    """Complete the name of a solver or a tree search."""
    auto = ["auto"] if "auto".startswith(incomplete) else []
    return sorted(auto + _named("mipforest.solvers", incomplete) + _named("mipforest.searches", incomplete))


def data_names(incomplete: str) -> list[str]:
    """Complete the name of a data set; files are left to the shell."""
    from mipforest.data import catalogue

    return [entry.name for entry in catalogue() if entry.name.startswith(incomplete)]


def _named(group: str, incomplete: str) -> list[str]:
    names = {entry.name for entry in entry_points(group=group)}
    return sorted(name for name in names if name.startswith(incomplete))


_MODEL, _DATA, _SOLVE, _OUTPUT = "Model", "Data", "Solve", "Output"

ModelName = Annotated[
    str,
    Option(
        "--model",
        metavar="NAME",
        help="Model; 'mipforest models' lists them.",
        autocompletion=model_names,
        rich_help_panel=_MODEL,
    ),
]
Depth = Annotated[
    int | None,
    Option(
        metavar="D",
        help="Levels of branch nodes of a tree, 1 to 10; score cards have none.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
Parameters = Annotated[
    list[str] | None,
    Option(
        "--param",
        metavar="NAME=VALUE",
        help="Parameter of the model, as in C=10, or C=1,10 for one value per level. Repeatable.",
        rich_help_panel=_MODEL,
    ),
]
Variant = Annotated[
    str | None,
    Option(metavar="NAME", help="Variant of the model; by default its strongest.", rich_help_panel=_MODEL),
]
Ensemble = Annotated[
    str | None,
    Option(
        metavar="ENSEMBLE",
        help="Tree ensemble to mimic, for a model that mimics one: random-forest, extra-trees, gradient-boosting or "
        "xgboost, fitted here (random-forest:trees=100), or a .joblib file with a fitted classifier. Loading a .joblib "
        "file runs code that it contains: take only files that you trust.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]

DataName = Annotated[
    str,
    Option(
        "--data",
        metavar="DATA",
        help="Bundled name, synthetic:..., openml:NAME, or a .csv or .parquet file; see 'mipforest data'.",
        autocompletion=data_names,
        rich_help_panel=_DATA,
    ),
]
Target = Annotated[
    str | None,
    Option(
        metavar="COLUMN", help="Column to predict; 'target' in files if not given.", rich_help_panel=_DATA
    ),
]
Treatment = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column of the treatments that samples had, for models that prescribe.",
        show_default=False,
        rich_help_panel=_DATA,
    ),
]
OutcomeColumn = Annotated[
    str | None,
    Option(
        "--outcome",
        metavar="COLUMN",
        help="Column of the outcomes that the treatments led to: its target.",
        show_default=False,
        rich_help_panel=_DATA,
    ),
]
Weight = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column of sample weights: a sample's loss counts this many times, and 0 leaves it out.",
        show_default=False,
        rich_help_panel=_DATA,
    ),
]
Positive = Annotated[
    list[str] | None,
    Option(
        metavar="CLASS",
        help="Tell this class from all others: makes two classes of several. Repeatable.",
        rich_help_panel=_DATA,
    ),
]
TaskOption = Annotated[
    Task | None,
    Option(
        "--task",
        help="What to predict; found out from the target's values if not given.",
        rich_help_panel=_DATA,
    ),
]
ScalingOption = Annotated[
    Scaling | None,
    Option(
        "--scaling",
        help="Scaling, fitted on the training samples; by default the model's own ('mipforest models NAME').",
        show_default=False,
        rich_help_panel=_DATA,
    ),
]
Drop = Annotated[
    list[str] | None,
    Option(
        "--drop",
        metavar="COLUMN",
        help="Leave this column out, such as an identifier. Repeatable.",
        rich_help_panel=_DATA,
    ),
]
Keep = Annotated[
    list[str] | None,
    Option(
        "--keep",
        metavar="COLUMN",
        help="Take this column as text although it has hundreds of levels, or numbers among them. Repeatable.",
        rich_help_panel=_DATA,
    ),
]
MissingOption = Annotated[
    Missing,
    Option(
        "--missing",
        help="Rows that lack a value: an error, dropped, or filled in, with the median or most frequent level of the "
        "training samples.",
        rich_help_panel=_DATA,
    ),
]
TestSize = Annotated[
    float | None,
    Option(metavar="SHARE", help="Share of samples to keep for testing (stratified).", rich_help_panel=_DATA),
]
TestFile = Annotated[
    str | None, Option("--test", metavar="FILE", help="File of test samples.", rich_help_panel=_DATA)
]

SolverName = Annotated[
    str,
    Option(
        "--solver",
        metavar="NAME",
        help="Solver or tree search, from 'mipforest solvers'; auto: a tree search where one applies, else HiGHS.",
        autocompletion=solver_names,
        rich_help_panel=_SOLVE,
    ),
]
Start = Annotated[
    str,
    Option(
        metavar="START",
        help="Tree to start from: default, none, a start of the model ('mipforest models'), a tree search, or a run.",
        rich_help_panel=_SOLVE,
    ),
]
Seed = Annotated[
    int,
    Option(
        min=0, metavar="N", help="Seed of the solver, the split, and generated data.", rich_help_panel=_SOLVE
    ),
]
Gap = Annotated[
    float,
    Option(min=0, metavar="SHARE", help="Relative gap that counts as optimal.", rich_help_panel=_SOLVE),
]
SolverOptions = Annotated[
    list[str] | None,
    Option(
        "--solver-option",
        metavar="NAME=VALUE",
        help="Option under the solver's own name. Repeatable.",
        rich_help_panel=_SOLVE,
    ),
]
Bridges = Annotated[
    list[str] | None,
    Option(
        "--bridge",
        metavar="PART",
        help="Rewrite this part of the model although the solver takes it: quadratic or indicator. Repeatable.",
        rich_help_panel=_SOLVE,
    ),
]
Isolate = Annotated[
    bool | None,
    Option(
        "--isolate/--no-isolate",
        help="Run a matrix solver in a process of its own: if it aborts, the start tree is left. By default scip has "
        "one for quadratic objectives.",
        show_default=False,
        rich_help_panel=_SOLVE,
    ),
]
Force = Annotated[bool, Option("--force", help="Replace an earlier run in DIR.", rich_help_panel=_OUTPUT)]
Json = Annotated[
    bool, Option("--json", help="Print one JSON object on standard output.", rich_help_panel=_OUTPUT)
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=_OUTPUT)]
RunPath = Annotated[
    Path, Argument(metavar="RUN", help="Run folder that 'mipforest solve --out' wrote.", show_default=False)
]
