"""Options that several commands share, in groups; what the shell offers for them; and what their texts stand for.

A group is a dataclass whose fields are options, which the help shows in the group's ``panel``. A command names groups,
and :func:`grouped` puts their fields in the place of the group, so that the text, the type and the default of an option
stand once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from typer import Argument, Context, Exit, Option
from typer.core import TyperCommand

from mipforest.cli import quantities
from mipforest.cli.errors import CommandError
from mipforest.settings import DEFAULT_GAP, SolveSettings

if TYPE_CHECKING:
    from mipforest.data import Dataset
    from mipforest.data.encoding import Scaling as ScalingRule
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.problem import Problem
    from mipforest.problem.tree_search import Auto, TreeSearch
    from mipforest.runs import DataSource
    from mipforest.time_budget import TimeBudget
    from mipforest.trees import Predictor

Command = TypeVar("Command", bound=Callable[..., Any])


class Without:
    """Leaves options of a group out of a command, as in ``Annotated[ModelOptions, Without("ensemble")]``."""

    def __init__(self, *names: str) -> None:
        self.names = names


def grouped(command: Command) -> Command:
    """Return a command for typer that takes the options of its groups one by one.

    Parameters
    ----------
    command
        A function whose annotations may be dataclasses of options; it gets an object of each.
    """
    groups: dict[str, tuple[type, list[str]]] = {}
    parameters = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        annotation = parameter.annotation
        kind, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if not is_dataclass(kind):
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        left_out = [name for mark in marks for name in mark.names]
        hints = get_type_hints(kind, include_extras=True)
        panel = getattr(kind, "panel", None)
        options = [field for field in fields(kind) if field.name not in left_out]
        groups[parameter.name] = kind, [field.name for field in options]  # type: ignore[assignment]
        parameters += [
            inspect.Parameter(
                field.name,
                parameter.KEYWORD_ONLY,
                annotation=_in_panel(hints[field.name], panel),
                default=parameter.empty if field.default is MISSING else field.default,
            )
            for field in options
        ]

    @wraps(command)
    def flat(**given: Any) -> Any:
        objects = {
            name: kind(**{option: given.pop(option) for option in options})
            for name, (kind, options) in groups.items()
        }
        return command(**given, **objects)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return flat  # type: ignore[return-value]


def _in_panel(option: Any, panel: str | None) -> Any:
    """Return the annotation of an option with the panel of its group, unless it names another."""
    kind, described = get_args(option)
    described = copy(described)
    described.rich_help_panel = described.rich_help_panel or panel
    return Annotated[kind, described]


#: Options that ``solve --help`` shows; the rest stands in ``--help-all``.
EVERYDAY = frozenset(
    {
        *("model", "depth", "param", "data", "target", "positive", "balanced", "test_size"),
        *("solver", "time_limit", "start", "out", "as_json", "help", "help_all"),
    }
)


class BriefHelp(TyperCommand):
    """A command whose ``--help`` shows the options in :data:`EVERYDAY` alone, unless ``--help-all`` was asked for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the other options hidden."""
        others = [one for one in self.params if one.name not in EVERYDAY and not getattr(one, "hidden", True)]
        if HELP_ALL in ctx.meta:
            others = []
        for one in others:
            one.hidden = True  # type: ignore[attr-defined]
        try:
            super().format_help(ctx, formatter)
        finally:
            for one in others:
                one.hidden = False  # type: ignore[attr-defined]


#: Mark of a context whose help shows all options.
HELP_ALL = "mipforest.help_all"


def _print_all_help(ctx: Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        print(ctx.get_help())
        raise Exit


HelpAll = Annotated[
    bool,
    Option("--help-all", is_eager=True, callback=_print_all_help, help="Show all options, and exit."),
]


class Scaling(StrEnum):
    """How features are scaled."""

    minmax = "minmax"
    standard = "standard"
    none = "none"


class Dates(StrEnum):
    """How dates become numbers."""

    days = "days"
    parts = "parts"


class DateOrder(StrEnum):
    """What comes first in dates such as 1/5/2019."""

    dmy = "dmy"
    mdy = "mdy"


class Scores(StrEnum):
    """How rewards are estimated of treatments and outcomes."""

    dr = "dr"
    ipw = "ipw"
    direct = "direct"


class Better(StrEnum):
    """Which outcomes are better."""

    less = "lower"
    more = "higher"


class Missing(StrEnum):
    """What happens to rows that lack a value."""

    error = "error"
    drop = "drop"
    impute = "impute"
    branch = "branch"


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


#: Panels of the help.
MODEL, DATA, SOLVE, OUTPUT, WORKERS = "Model", "Data", "Solve", "Output", "Workers"

ModelName = Annotated[
    str,
    Option(
        "--model",
        metavar="NAME",
        help="Model; 'mipforest models' lists them.",
        autocompletion=model_names,
        rich_help_panel=MODEL,
    ),
]
DataName = Annotated[
    str,
    Option(
        "--data",
        metavar="DATA",
        help="Bundled name, synthetic:..., openml:NAME, or a .csv, .tsv, .txt, .data, .arff or .parquet file; see "
        "'mipforest data'.",
        autocompletion=data_names,
        rich_help_panel=DATA,
    ),
]
SolverName = Annotated[
    str,
    Option(
        "--solver",
        metavar="NAME",
        help="Solver or tree search, from 'mipforest solvers'; auto: a tree search where one applies, else HiGHS.",
        autocompletion=solver_names,
        rich_help_panel=SOLVE,
    ),
]
Start = Annotated[
    str,
    Option(
        metavar="START",
        help="Tree to start from: default, none, a start of the model ('mipforest models'), a tree search, or a run.",
        rich_help_panel=SOLVE,
    ),
]
Seed = Annotated[
    int,
    Option(
        min=0, metavar="N", help="Seed of the solver, the split, and generated data.", rich_help_panel=SOLVE
    ),
]
Force = Annotated[bool, Option("--force", help="Replace an earlier run in DIR.", rich_help_panel=OUTPUT)]
Json = Annotated[
    bool, Option("--json", help="Print one JSON object on standard output.", rich_help_panel=OUTPUT)
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=OUTPUT)]


def output_file(help_text: str) -> Any:
    """Return the option ``-o`` of a command that writes one file."""
    return Option("-o", "--output", "--out", metavar="FILE", help=help_text, rich_help_panel=OUTPUT)


def listed(texts: str | None) -> tuple[str, ...]:
    """Read texts with commas between them."""
    return () if texts is None else tuple(text.strip() for text in texts.split(","))


def share(option: str, text: str) -> float:
    """Read a share, ``2%`` or ``0.02``.

    Raises
    ------
    CommandError
        If it is none.
    """
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise CommandError(f"{option} is {text!r}; give a share, such as 2% or 0.02") from None


RunPath = Annotated[Path, Argument(metavar="RUN", help="Run folder that 'mipforest solve --out' wrote.")]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What a model is built with, apart from its name."""

    panel: ClassVar[str] = MODEL

    depth: Annotated[
        int | None,
        Option(metavar="D", help="Levels of branch nodes of a tree, 1 to 10. Score cards have no depth."),
    ] = None
    param: Annotated[
        list[str] | None,
        Option(
            "--param",
            metavar="NAME=VALUE",
            help="Parameter of the model, as in C=10, or C=1,10 for one value per level. Repeatable.",
        ),
    ] = None
    cost_matrix: Annotated[
        Path | None,
        Option(
            metavar="FILE.csv",
            help="Costs of errors, of oct, oct-h and orct: the first line has the predicted classes, the first column "
            "the true ones, in any order.",
        ),
    ] = None
    variant: Annotated[
        str | None, Option(metavar="NAME", help="Variant of the model; by default its strongest.")
    ] = None
    ensemble: Annotated[
        str | None,
        Option(
            metavar="ENSEMBLE",
            help="Tree ensemble to mimic, for a model that mimics one: random-forest, extra-trees, gradient-boosting "
            "or xgboost, fitted here (random-forest:trees=100), or a .joblib file with a fitted classifier. Loading a "
            ".joblib file runs code that it contains: take only files that you trust.",
        ),
    ] = None

    def formulation(self, model: str) -> Formulation:
        """Return the formulation of that name, with its parameters and variant, and the ensemble that it mimics.

        Raises
        ------
        UnknownFormulation, ParameterError
            If a name is unknown or a value is not allowed.
        CommandError
            If the variant is unknown, or the model mimics no ensemble.
        """
        from mipforest.errors import did_you_mean
        from mipforest.problem.parameters import check_parameters, ensemble_parameter_of, parse_parameters
        from mipforest.problem.registry import get_formulation, make_formulation

        cls = get_formulation(model)
        values = parse_parameters(cls, self.param or ())
        if self.cost_matrix is not None:
            if "costs" in values:
                raise CommandError(
                    "--cost-matrix and --param costs= both give the costs of errors; leave one out"
                )
            values |= check_parameters(cls, {"costs": str(self.cost_matrix)})
        if self.variant is not None and self.variant not in cls.variants:
            known = ", ".join(cls.variants)
            raise CommandError(
                f"{model} has no variant {self.variant!r}{did_you_mean(self.variant, cls.variants)}; it has {known}"
            )
        if self.ensemble is not None and ensemble_parameter_of(cls) is None:
            raise CommandError(
                f"--ensemble: {model} mimics no tree ensemble; leave it out, or take --model miret"
            )
        return make_formulation(model, values, self.variant, ensemble=self.ensemble)

    def depth_for(self, formulation: Formulation) -> int:
        """Return the depth that was asked for; a score card has none, and its model one level.

        Raises
        ------
        CommandError
            If a tree's depth is absent or none that a tree has, or a score card is given one.
        """
        if formulation.gives.is_tree:
            if self.depth is None:
                raise CommandError("--depth is missing: give the levels of branch nodes, such as --depth 2")
            check_depth(self.depth)
            return self.depth
        if self.depth not in (None, 1):
            raise CommandError(
                f"--depth: {formulation.name} finds a {formulation.gives.noun}, which has no depth; leave it out"
            )
        return 1


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """How data are read, apart from their name."""

    panel: ClassVar[str] = DATA

    target: Annotated[
        str | None, Option(metavar="COLUMN", help="Column to predict; 'target' in files if not given.")
    ] = None
    targets: Annotated[
        str | None,
        Option(
            metavar="COLUMN,COLUMN,...",
            help="Columns to predict at once, for the model multi: all numbers, or all labels. They take the place of "
            "--target.",
        ),
    ] = None
    treatment: Annotated[
        str | None,
        Option(
            metavar="COLUMN", help="Column of the treatments that samples had, for models that prescribe."
        ),
    ] = None
    outcomes: Annotated[
        str | None,
        Option(
            "--outcome",
            metavar="COLUMN",
            help="Column of the outcomes that the treatments led to. It takes the place of --target.",
        ),
    ] = None
    event: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="Column that tells, of times in --target, whether the event was seen then, for the model survival: "
            "of its two values, such as 0 and 1, the second.",
        ),
    ] = None
    rewards: Annotated[
        str | None,
        Option(
            metavar="COLUMN,COLUMN,...",
            help="Columns of the rewards of decisions, for the model policy. They take the place of --target.",
        ),
    ] = None
    scores: Annotated[
        Scores | None,
        Option(
            "--scores",
            help="Estimate rewards of --treatment and --outcome: doubly robust, inverse-probability or direct scores.",
        ),
    ] = None
    better: Annotated[
        Better | None, Option("--better", help="Which outcomes are better, for --scores; lower unless given.")
    ] = None
    weight: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="Column of sample weights. A sample's loss counts this many times; weight 0 leaves the sample out.",
        ),
    ] = None
    balanced: Annotated[
        bool,
        Option(
            "--balanced",
            help="Weigh samples so that all classes count the same, n/(K n_k); --weight comes on top.",
        ),
    ] = False
    positive: Annotated[
        list[str] | None,
        Option(
            metavar="CLASS",
            help="Tell this class from all others: two classes are made of several. The risk of a score card is that "
            "of this class, by default of the rarer one. Repeatable.",
        ),
    ] = None
    task: Annotated[
        Task | None, Option("--task", help="What to predict; by default the target's values decide.")
    ] = None
    drop: Annotated[
        list[str] | None,
        Option(
            "--drop",
            metavar="COLUMN",
            help="Leave this column out, such as an identifier, or all columns of this name. Repeatable.",
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        Option(
            "--keep",
            metavar="COLUMN",
            help="Take this column as text although it has hundreds of levels, or numbers among them. Repeatable.",
        ),
    ] = None
    categorical: Annotated[
        list[str] | None,
        Option(
            "--categorical",
            metavar="COLUMN",
            help="A split sends a set of levels of this column to each side, in place of a feature per level: at most "
            "10 levels, for models whose splits have one feature. 'all' for all columns of text. Repeatable.",
        ),
    ] = None
    sep: Annotated[
        str | None,
        Option(
            "--sep",
            metavar="SIGN",
            help="Separator of the values in a text file, or 'tab'; by default the first line's.",
        ),
    ] = None
    decimal: Annotated[
        str,
        Option("--decimal", metavar="SIGN", help="Decimal sign of the numbers in a text file: '.' or ','."),
    ] = "."
    thousands: Annotated[
        str | None,
        Option(
            "--thousands",
            metavar="SIGN",
            help="Sign that sets thousands apart in numbers: ',', '.', a blank or an apostrophe.",
        ),
    ] = None
    encoding: Annotated[
        str,
        Option(
            "--encoding", metavar="NAME", help="Encoding of a text file, such as cp1252 (Windows) or latin-1."
        ),
    ] = "utf-8"
    no_header: Annotated[
        bool,
        Option("--no-header", help="The first line of a text file is data; columns are called c1, c2, ..."),
    ] = False
    names: Annotated[
        str | None,
        Option(
            metavar="COLUMN,COLUMN,...",
            help="Names of all columns of a file, in order, in place of those in its first line.",
        ),
    ] = None
    skip_lines: Annotated[
        int, Option(min=0, metavar="N", help="Leave out this many lines at the beginning, such as a title.")
    ] = 0
    missing_values: Annotated[
        str | None,
        Option(
            metavar="WORD,WORD,...",
            help="Words and numbers of a file that stand for missing values, such as '.,-999', beside empty values, NA "
            "and the like.",
        ),
    ] = None
    keep_words: Annotated[
        str | None,
        Option(
            metavar="WORD,WORD,...",
            help="Words such as None or NA that are values, and do not stand for missing ones.",
        ),
    ] = None
    dates: Annotated[
        Dates | None,
        Option(
            "--dates",
            help="Columns of dates as numbers: days since 1970, or the parts year, month, day and weekday; times of "
            "day as hours.",
        ),
    ] = None
    date_order: Annotated[
        DateOrder | None,
        Option(
            "--date-order",
            help="What comes first in dates such as 1/5/2019, the day or the month; by default a value above 12 tells.",
        ),
    ] = None
    missing: Annotated[
        Missing,
        Option(
            "--missing",
            help="Rows that lack a value: an error; dropped; filled in with the median, or the most frequent level, "
            "of the training samples; or sent to the side that each split chooses (branch), by models whose splits "
            "have one feature.",
        ),
    ] = Missing.error
    scaling: Annotated[
        Scaling | None,
        Option(
            "--scaling",
            help="Scaling, fitted on the training samples; by default the model's own ('mipforest models NAME').",
        ),
    ] = None
    test_size: Annotated[
        float | None,
        Option(
            parser=quantities.share,
            metavar="SHARE",
            help="Share of samples to keep for testing (stratified), as in 20% or 0.2.",
        ),
    ] = None
    test: Annotated[str | None, Option("--test", metavar="FILE", help="File of test samples.")] = None

    def source(self, data: str, *, model: str | None, seed: int) -> DataSource:
        """Return what to load, and how to treat it.

        Parameters
        ----------
        data
            Name or file.
        model
            Its scaling is taken where none is asked for; ``None`` for no scaling.
        seed
            Seed of the split and of generated data.

        Raises
        ------
        CommandError
            If two options contradict each other, or a share is none.
        UnknownFormulation
            If there is no such model.
        """
        from mipforest.runs import DataSource

        if self.test_size is not None and self.test is not None:
            raise CommandError("--test-size and --test are both given; keep one")
        if self.test_size is not None and not 0 < self.test_size < 1:
            raise CommandError(
                f"--test-size is {self.test_size:g}; give a share between 0 and 1, such as 0.2"
            )
        if self.outcomes is not None and (self.target is not None or self.treatment is None):
            raise CommandError(
                "--outcome names the outcomes of the treatments in --treatment; "
                + ("give both" if self.treatment is None else "leave --target out")
            )
        if self.rewards is not None and (self.target is not None or self.treatment is not None):
            raise CommandError(
                "--rewards takes the place of --target and --treatment; leave these out, or estimate rewards of "
                "--treatment and --outcome with --scores"
            )
        if self.event is not None and (self.target is None or self.treatment is not None):
            raise CommandError(
                "--event tells at which of the times in --target the event was seen; "
                + ("give both" if self.target is None else "leave --treatment out")
            )
        roles = (self.target, self.treatment, self.outcomes, self.event, self.rewards)
        if self.targets is not None and any(role is not None for role in roles):
            raise CommandError(
                "--targets takes the place of --target, and goes with no treatments, outcomes, events or rewards; "
                "leave these out"
            )
        if self.target is not None and self.rewards is None and model is not None:
            _refuse_target_of_rewards(model)
        if self.scores is not None and self.treatment is None:
            raise CommandError("--scores estimates rewards of --treatment and --outcome; give both")
        if self.better is not None and self.scores is None:
            raise CommandError(
                "--better says which outcomes are better where --scores estimates rewards; give --scores, or "
                "--param better=higher of a prescriptive model"
            )
        return DataSource(
            data=data,
            rewards=listed(self.rewards),
            targets=listed(self.targets),
            scores=None if self.scores is None else self.scores.value,
            better="lower" if self.better is None else self.better.value,
            target=self.target if self.outcomes is None else self.outcomes,
            task=None if self.task is None else self.task.value,
            missing=self.missing.value,
            scaling=self._scaling(model),
            seed=seed,
            positive=tuple(self.positive or ()),
            test_size=self.test_size,
            test=self.test,
            weight=self.weight,
            treatment=self.treatment,
            event=self.event,
            drop=tuple(self.drop or ()),
            keep=tuple(self.keep or ()),
            categorical=tuple(self.categorical or ()),
            sep=self.sep,
            decimal=self.decimal,
            encoding=self.encoding,
            dates=None if self.dates is None else self.dates.value,
            date_order=None if self.date_order is None else self.date_order.value,
            thousands=self.thousands,
            missing_values=listed(self.missing_values),
            keep_words=listed(self.keep_words),
            header=not self.no_header,
            names=None if self.names is None else listed(self.names),
            skip_lines=self.skip_lines,
            balanced=self.balanced,
            rarer_positive=self._finds_card(model),
            unlabelled=self._takes_unlabelled(model),
        )

    @staticmethod
    def _finds_card(model: str | None) -> bool:
        from mipforest.problem.registry import get_formulation

        return model is not None and not get_formulation(model).gives.is_tree

    @staticmethod
    def _takes_unlabelled(model: str | None) -> bool:
        from mipforest.problem.registry import get_formulation

        return model is not None and get_formulation(model).takes_unlabelled

    def _scaling(self, model: str | None) -> ScalingRule:
        if self.scaling is not None:
            return self.scaling.value
        if model is None:
            return "none"
        from mipforest.problem.registry import get_formulation

        return get_formulation(model).scaling


@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """Who solves, and how."""

    panel: ClassVar[str] = SOLVE

    solver: SolverName = "auto"
    time_limit: Annotated[
        float,
        Option(
            parser=quantities.seconds,
            metavar="TIME",
            help="Wall time of loading, preparing and solving together, in seconds or as in 5m; 0 for the start alone, "
            "inf for no limit.",
        ),
    ] = 60.0
    gap: Annotated[
        float,
        Option(
            parser=quantities.share,
            metavar="SHARE",
            help="Relative gap that counts as optimal, as in 1% or 0.01.",
        ),
    ] = DEFAULT_GAP
    threads: Annotated[
        int | None, Option(min=1, metavar="N", help="Threads; by default the solver decides.")
    ] = None
    seed: Seed = 0
    solver_option: Annotated[
        list[str] | None,
        Option(
            "--solver-option", metavar="NAME=VALUE", help="Option under the solver's own name. Repeatable."
        ),
    ] = None
    bridge: Annotated[
        list[str] | None,
        Option(
            "--bridge",
            metavar="PART",
            help="Rewrite this part of the model although the solver takes it: quadratic or indicator. Repeatable.",
        ),
    ] = None

    def settings(self) -> SolveSettings:
        """Return the settings of the solve; the start comes with the formulation.

        Raises
        ------
        CommandError, NotAllowed
            If an option of the solver is no ``NAME=VALUE`` or given twice, or a bridge is unknown.
        """
        return SolveSettings(
            time_limit=self.time_limit,
            gap=self.gap,
            threads=self.threads,
            seed=self.seed,
            solver_options=_solver_options(self.solver_option or ()),
            bridges=tuple(self.bridge or ()),
        )


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Who does many solves."""

    panel: ClassVar[str] = WORKERS

    jobs: Annotated[int, Option(min=1, metavar="N", help="Processes on this machine.")] = 1
    dask: Annotated[
        str | None,
        Option(
            metavar="ADDRESS", help="Dask scheduler whose workers do the solves, as in tcp://127.0.0.1:8786."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where a run is written, and how its outcome is printed."""

    out: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Run folder for the result, tree, picture and log; without it, nothing is written.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    force: Force = False
    as_json: Json = False
    quiet: Quiet = False


def _refuse_target_of_rewards(model: str) -> None:
    """Refuse --target for a model that takes rewards, before the data are read."""
    from mipforest.problem.registry import get_formulation

    cls = get_formulation(model)
    if cls.task == "decision":
        raise CommandError(
            f"--target: {cls.name} takes rewards of decisions, not a target; name their columns with --rewards, or "
            "estimate them with --treatment, --outcome and --scores"
        )


def check_depth(depth: int) -> None:
    """Refuse a depth that no tree has."""
    from mipforest.trees import Topology

    try:
        Topology(depth)
    except ValueError as error:
        raise CommandError(f"--depth: {error}") from None


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
        # An error with its own words for the command line names --positive itself, or has another cause.
        if data.n_classes <= 2 or error.option != error.hint:
            raise
        hints = filter(None, (error.hint, "--positive CLASS tells one class from the rest"))
        raise DataError(error.message, hint=error.hint, option="; ".join(hints)) from error


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


def require_folder_of(path: Path) -> None:
    """Refuse a file whose folder is not there, before anything is computed for it."""
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}; make it first, or write elsewhere")
