"""What all estimators share: how X is read, the settings and their checks, the fit, and what it shows and keeps."""

from __future__ import annotations

import inspect
import math
import warnings
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mipforest.arrays import FloatArray, IntArray
from mipforest.constraints import min_weight_fraction_leaf
from mipforest.data import Dataset
from mipforest.data.encoding import Column, Encoding, Scaling, Unseen
from mipforest.data.table import (
    checked_weights,
    column_names,
    refuse_doubtful_text,
    refuse_rounding,
    with_text_names,
)
from mipforest.errors import DataError, NotAllowed, NoTreeFound, did_you_mean, some_of
from mipforest.estimators.descriptions import FullDocstring
from mipforest.estimators.scikit import BaseEstimator
from mipforest.formatting import percent
from mipforest.interruption import Interruption, interruptible
from mipforest.problem.constraints import Constraint, Monotone
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import SCIKIT_NAMES, ParameterError, WholeNumber, parameters_of
from mipforest.problem.problem import TIME_LIMIT, Problem
from mipforest.problem.result import Result
from mipforest.problem.tree_search import AUTO, Auto, TreeSearch, searching
from mipforest.settings import DEFAULT_GAP, SolveSettings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import Event, Progress, Status, relative_gap
from mipforest.trees import (
    Predictor,
    RandomizedTree,
    Tree,
    feature_importances,
    node_statistics,
    shown_tree,
    to_text,
)
from mipforest.trees.reachable import reachable_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: With one sample there is nothing to tell apart.
LEAST_SAMPLES = 2


def learn_features(estimator: Any, X: Any, sample_weight: Any = None) -> tuple[Encoding, FloatArray]:
    """Check training samples and learn what their columns are.

    Columns of numbers are features. In a pandas DataFrame every other column (texts, categories, true/false)
    is one-hot encoded, as :meth:`Dataset.from_frame <mipforest.data.Dataset.from_frame>` does.

    Parameters
    ----------
    estimator
        Gets ``n_features_in_`` and, for a DataFrame with text names, ``feature_names_in_``. Its ``missing`` says
        whether missing values are filled in.
    X
        (n, p) array-like or DataFrame of n >= 2 rows.
    sample_weight
        (n,) weights; samples of weight 0 do not count for what to fill in.

    Returns
    -------
    encoding
        What the columns are; features keep their units.
    X_raw
        (n, p') features.

    Raises
    ------
    ValueError, TypeError
        If X cannot be used, :class:`~mipforest.data.DataError` for a DataFrame; scikit-learn's otherwise.
    """
    categorical = getattr(estimator, "categorical", ())
    if isinstance(X, pd.DataFrame):
        validate(estimator, X, reset=True, skip_check_array=True)
        if len(X) < LEAST_SAMPLES or X.shape[1] == 0:
            raise ValueError(
                f"X has {X.shape[1]} feature(s) and n_samples={len(X)}; give at least one feature (column) and "
                f"{LEAST_SAMPLES} samples (rows)"
            )
        frame = with_text_names(X)
        _refuse_doubtful_text(frame, column_names(categorical, frame.columns) or ())
    else:
        matrix = validate(estimator, X, reset=True, dtype=np.float64, ensure_min_samples=LEAST_SAMPLES)
        refuse_rounding(X, matrix, "X")
        names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(matrix.shape[1])])
        if estimator.missing == "error" and not categorical:
            return Encoding.unscaled([Column(str(name)) for name in names]), matrix
        frame = pd.DataFrame(matrix, columns=[str(name) for name in names])
    filled = None
    if estimator.missing == "impute":
        filled = np.ones(len(frame), dtype=bool)
        if sample_weight is not None and np.shape(sample_weight) == filled.shape:
            filled = np.asarray(sample_weight) > 0
    encoding = Encoding.fit(
        frame, fill_from=filled, branch=estimator.missing == "branch", categorical=categorical
    )
    return encoding, encoding.encode(frame)


def _refuse_doubtful_text(frame: pd.DataFrame, keep: Collection[str]) -> None:
    """Refuse columns as :func:`~mipforest.data.table.refuse_doubtful_text`, and say what to do with X."""
    try:
        refuse_doubtful_text(frame, keep)
    except DataError as error:
        way = "correct the values, or leave the column out: X.drop(columns=...)"
        if "astype" in error.hint:
            way = "correct the value, leave the column out (X.drop(columns=...)), or make it a category (astype)"
        raise DataError(error.message, hint=way) from error


def read_features(estimator: Any, encoding: Encoding, X: Any, unseen: Unseen = "error") -> FloatArray:
    """Turn samples into (n, p') features in original units, as the training samples were.

    They are laid out row by row, as the training samples are: another layout rounds scores differently.

    Raises
    ------
    ValueError, TypeError
        If columns are others than in training, a value is missing that nothing fills in, or a level is new.
    """
    numeric = all(column.levels is None and not column.base and column.plain for column in encoding.columns)
    if numeric and not isinstance(X, pd.DataFrame):
        matrix: FloatArray = validate(estimator, X, reset=False, dtype=np.float64, order="C")
        refuse_rounding(X, matrix, "X")
        if not np.isnan(matrix).any():
            return matrix
        X = pd.DataFrame(matrix)
    else:
        validate(estimator, X, reset=False, skip_check_array=True)
    if not isinstance(X, pd.DataFrame):
        X = pd.DataFrame(np.asarray(X, dtype=object))
    # Names are checked above where there are any; without them columns are known by position.
    frame = X.set_axis([column.name for column in encoding.columns], axis="columns")
    found = getattr(estimator, getattr(estimator, "_fitted_name", "tree_"), None)
    if found is not None and not isinstance(found, RandomizedTree):
        frame = encoding.without_unread_gaps(frame, found.features_used().overall)
    return np.ascontiguousarray(encoding.encode(frame, unseen=unseen))


def validate(estimator: Any, X: Any, *, reset: bool, skip_check_array: bool = False, **checks: Any) -> Any:
    """Check samples, and set or compare ``n_features_in_`` and ``feature_names_in_``.

    Parameters
    ----------
    estimator
        Who asks.
    X
        (n, p) samples.
    reset
        Whether this is a fit, which sets the attributes.
    skip_check_array
        Check only names and number of columns, and give X as it is.
    checks
        As for :func:`sklearn.utils.check_array`.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn states.
    """
    if not skip_check_array:
        checks["ensure_all_finite"] = "allow-nan" if estimator.missing != "error" else True
    return validate_data(estimator, X, reset=reset, skip_check_array=skip_check_array, **checks)


class TreePictures(ABC):
    """Write and draw the tree of an estimator."""

    tree_: Tree

    @abstractmethod
    def _features(self, X: Any) -> FloatArray:
        """Return the (n, p') encoded features in original units."""

    def _numbers(self, y: Any) -> Any:
        """Turn targets into what trees count: class numbers, or values."""
        return y

    def to_text(self, X: Any = None, y: npt.ArrayLike | None = None, *, max_terms: int = 6) -> str:
        """Write the tree as text, with the samples at each node if some are given.

        Splits that send all training samples, and all that are given, to one side are left out.

        Parameters
        ----------
        X, y
            (n, p) samples and (n,) targets to count at the nodes, or ``None``.
        max_terms
            Most terms of a split or a linear leaf to show.
        """
        check_is_fitted(self, "tree_")
        counts = None
        if X is not None:
            counts = node_statistics(self.tree_, self._features(X), None if y is None else self._numbers(y))
        root = shown_tree(self.tree_, getattr(self, "_statistics", None), counts)
        return to_text(self.tree_, counts, max_terms=max_terms, root=root)

    def plot(
        self, X: Any = None, y: npt.ArrayLike | None = None, ax: Axes | None = None, *, max_terms: int = 3
    ) -> Figure:
        """Draw the tree; ``figure.savefig(...)`` writes it.

        Splits that send all training samples, and all that are given, to one side are left out.

        Parameters
        ----------
        X, y
            (n, p) samples and (n,) targets to count at the nodes, or ``None``.
        ax
            Axes to draw into; ``None`` makes a figure.
        max_terms
            Most terms of a split or a linear leaf to show.

        Raises
        ------
        ValueError
            If X or y do not fit the tree, or y comes without X.
        """
        from mipforest.trees import plot_tree

        check_is_fitted(self, "tree_")
        X_raw = None if X is None else self._features(X)
        targets = None if y is None else self._numbers(y)
        training = getattr(self, "_statistics", False)
        return plot_tree(self.tree_, X_raw, targets, ax, max_terms=max_terms, training=training)


class PrintedProgress:
    """Prints what was built, a line whenever incumbent or bound moved, and the end; passes every event on.

    Parameters
    ----------
    name
        Stands at the beginning of every line.
    verbose
        0 prints nothing.
    then
        Called with every event; ``True`` stops the solve.
    interruption
        Ctrl-C, which stops the solve too.

    Attributes
    ----------
    stopped_by_user
        Whether ``then`` stopped the solve.
    """

    def __init__(self, name: str, verbose: int, then: Progress | None, interruption: Interruption) -> None:
        self._name = name
        self._verbose = verbose
        self._then = then
        self._interruption = interruption
        self._printed = ""
        self.stopped_by_user = False

    def show_problem(self, problem: Problem) -> None:
        """Say what is solved."""
        if self._verbose:
            seconds = problem.prepare_seconds + problem.build_seconds
            size = ", ".join(f"{count} {name}" for name, count in problem.size().items())
            print(
                f"[{self._name}] {problem.name_in_words}, {problem.data.n} samples: {size}, built in {seconds:.1f} s",
                flush=True,
            )

    def ended(self, result: Result) -> None:
        """Say how the solve ended."""
        if self._verbose:
            print(f"[{self._name}] {result.status} after {result.solution.seconds:.1f} s", flush=True)

    def __call__(self, event: Event) -> bool:
        """Take an event; ``True`` asks the solver to stop and keep its incumbent."""
        state = f"incumbent {_written(event.objective)}  bound {_written(event.bound)}"
        if self._verbose and state != self._printed:
            self._printed = state
            gap = relative_gap(event.objective, event.bound)
            share = f"{gap:.2%}" if math.isfinite(gap) else "-"
            print(f"[{self._name}] {event.seconds:7.1f} s  {state}  gap {share}", flush=True)
        if self._then is not None and self._then(event):
            self.stopped_by_user = True
        return self.stopped_by_user or self._interruption.asked


def _written(value: float) -> str:
    """Write a value with six digits, - where there is none."""
    return f"{value:.6g}" if math.isfinite(value) else "-"


def why_no_tree(result: Result) -> str:
    """Say why a fit ended without a tree, and what to do."""
    solution = result.solution
    why = f"{solution.solver} stopped after {solution.seconds:.1f} s without a tree (status {result.status})"
    if solution.status in (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED):
        return (
            f"{why}: no tree satisfies all constraints; relax those that were added, or a limit such as N_min"
        )
    reason = f": {solution.message}" if solution.message else ""
    return f"{why}{reason}; raise time_limit, or give a start (start='default')"


class FitWarning(UserWarning):
    """Something that the user should know about a fit: a start that was repaired, a bound that is limited."""


class NotProvenWarning(FitWarning, ConvergenceWarning):  # type: ignore[misc] # scikit-learn has no types
    """The fit stopped at its limit: the tree is the best one found, not a proven optimum."""


class UnverifiedTreeWarning(FitWarning):
    """The tree's objective by the definition is not what the solver states, or a constraint is violated."""


#: scikit-learn's random states draw seeds below this; every solver takes them.
SEEDS = 2**31 - 1


class NotTaken:
    """Stands where other trees have a parameter that an estimator does not take: it has no such attribute."""

    def __get__(self, instance: object, owner: type) -> NotTaken:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__} has no such parameter")


#: What is left out of pickles: the model and the solver's answer, many times the size of the tree.
NOT_PICKLED = ("result_", "solution_")


def no_parameter(estimator: type, name: str) -> str:
    """Say that an estimator has no parameter of a name, and which one may be meant."""
    known = [known for known in inspect.signature(estimator.__init__).parameters if known != "self"]  # type: ignore[misc]
    says = f"{estimator.__name__} has no parameter {name!r}"
    if name not in SCIKIT_NAMES:
        of_model = f"; give one of its model as parameters={{{name!r}: ...}}" if "parameters" in known else ""
        return f"{says}{did_you_mean(name, known)}; it has {', '.join(known)}{of_model}"
    ours = SCIKIT_NAMES[name]
    # Where leaves have no least size, alpha is the cost of a feature, not of a split.
    if ours in known and not (ours == "alpha" and "N_min" not in known):
        return f"{says}: what scikit-learn's trees call {name} is {ours} here"
    if ours is not None and "parameters" in known:
        return f"{says}: what scikit-learn's trees call {name} is {ours} of a model here, parameters={{{ours!r}: ...}}"
    return f"{says}, and nothing that does what {name} does in scikit-learn's trees; leave it out"


class EstimatorType(ABCMeta):
    """The type of estimators: refuses parameters that there are not with those that there are."""

    # Type checkers and editors take the parameters from the fields of the class.
    if not TYPE_CHECKING:

        def __call__(cls, *args: Any, **settings: Any) -> Any:
            """Make an estimator; a TypeError names what is meant by an unknown parameter."""
            known = inspect.signature(cls.__init__).parameters
            for name in settings:
                if name not in known:
                    raise TypeError(no_parameter(cls, name))
            return super().__call__(*args, **settings)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The parameters of ``__init__``, which tools would look for in ``__call__``."""
        whole = inspect.signature(cls.__init__)  # type: ignore[misc]
        return whole.replace(parameters=list(whole.parameters.values())[1:])


# help() reads the docstring of a class by its type.
EstimatorType.__doc__ = FullDocstring(EstimatorType.__doc__)  # type: ignore[assignment]


@dataclass(eq=False, repr=False)
class TreeEstimator(TreePictures, BaseEstimator, metaclass=EstimatorType):
    """An optimal tree behind scikit-learn's interface.

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.
    variant
        Variant of the formulation; its default one when ``None``.
    constraints
        Objects of :mod:`mipforest.problem.constraints`, one or several, as ``[Forbid("age"), Recall("yes", 0.9)]``;
        ``result_.constraints`` says of each whether it binds. Or a function that is called with the built
        :class:`~mipforest.problem.problem.Problem` before the solve, to add constraints: see
        :mod:`mipforest.constraints`. A function of a module, or a ``functools.partial`` of one, goes into
        pickles and other processes; a lambda does not. In cross-validation it sees a part of the samples.
    monotonic_cst
        As in scikit-learn's trees: 1 where predictions rise in a column of X, -1 where they fall, else 0; one number
        for each column, or a mapping by name. Of two classes the second is the higher one.
    min_weight_fraction_leaf
        Least share, 0 to 0.5, of the weight of all training samples in a leaf that holds any, as in scikit-learn's
        trees; above 0 it is a constraint like others (:func:`~mipforest.constraints.min_weight_fraction_leaf`).
    solver
        A solver or a tree search, or the name of either; ``mipforest solvers`` lists them. ``"auto"``, the default,
        takes a tree search where one takes the model, and nothing was added to it; otherwise HiGHS.
    start
        ``"default"``, the name of a start of the formulation, a tree (such as ``tree_`` of another
        estimator), or ``None`` for no start.
    time_limit
        Seconds for the fit (preparing, start, building, solving), at least 0, ``None`` for no limit. With 0 the tree
        is that of the start.
    gap
        Relative gap at which a tree counts as optimal, at least 0.
    threads
        Threads of the solver, at least 1; ``None`` leaves it to the solver.
    random_state
        Seed of solver and start: a whole number (as ``--seed`` on the command line), a ``RandomState``, or
        ``None`` for another one at each fit.
    solver_options
        Options under the solver's own names.
    bridges
        Parts of the model to rewrite although the solver takes them: ``"quadratic"``, ``"indicator"``.
    missing
        ``"error"`` refuses missing values; ``"impute"`` fills them in, in ``fit`` and in ``predict``, by what
        the training samples say: the lower median of a column of numbers, the most frequent level of any other;
        ``"branch"`` lets each split send them to the side that suits the training samples, in models whose splits have
        one feature and whose leaves are constant. A column without missing values in training refuses them later.
    handle_unknown
        A level that the training samples do not have: ``"error"`` refuses it, ``"ignore"`` takes it for none of theirs,
        as scikit-learn's ``OneHotEncoder`` does.
    categorical
        Names of columns, of numbers too, of which a split sends a set of levels to each side, in place of one feature
        for each level; ``"all"`` for all columns that are not numbers. At most 10 levels each, missing values counted
        as one, in the same models.
    verbose
        1 prints what was built, a line whenever incumbent or bound moved, and how the solve ended.
    on_progress
        Called with each :class:`~mipforest.solvers.solution.Event`; returning ``True`` stops the solve and
        keeps the incumbent.
    on_interrupt
        What ``fit`` does after Ctrl-C: ``"raise"`` raises ``KeyboardInterrupt``, so that a search over parameters stops
        too; ``"keep"`` takes the best tree found so far as the fitted one.

    Attributes
    ----------
    tree_
        The fitted :class:`~mipforest.trees.Tree`, for (encoded) features in original units.
    result_, solution_
        The checked :class:`~mipforest.problem.result.Result` (``result_.problem.model`` is the model) and the
        solver's answer. They are left out of pickles and copies.
    objective_, bound_, gap_, status_
        Objective of the solved tree, proven bound on the optimal value, relative gap between both, and why
        the solver stopped (``"optimal"``, ``"time_limit"``, ...).
    verified_
        Whether the objective recomputed from the definition agrees, at a feasible point.
    features_used_, n_features_used_
        Names and number of the (encoded) features that the tree uses.
    n_features_in_, feature_names_in_
        Columns of X; names only if X was a DataFrame with text names.

    feature_importances_
        (n_features_in_,) share of each column of X in what the splits explain of the training samples, summing to 1;
        see :func:`~mipforest.trees.feature_importances`.

    Notes
    -----
    A weight multiplies the loss of its sample in the objective; whole weights are repeated rows. Weight 0 leaves a
    sample out. ``N_min`` counts samples, whatever they weigh, as scikit-learn's ``min_samples_leaf`` does.

    A solve that ends at its time limit depends on the machine: two fits may give different trees. One that
    ends with a proven optimum, or with ``time_limit=0``, gives the same tree again; of the tree search ``routing``,
    with ``threads=1`` or at most 100 different samples only: on several threads it may be another tree within the gap.

    Ctrl-C stops the solve, and ``fit`` raises ``KeyboardInterrupt``; the best tree found so far is ``result_.tree``.
    With ``on_interrupt="keep"`` it is ``tree_``, and ``status_`` is ``"interrupted"``. A second Ctrl-C does not wait
    for the solver, and no tree is kept. Ctrl-C is left to a program that has its own handler of SIGINT.
    """

    depth: int = 2
    _: KW_ONLY
    variant: str | None = None
    constraints: Callable[[Problem], Any] | Constraint | Sequence[Constraint] | None = None
    monotonic_cst: Mapping[str, int] | Sequence[int] | None = None
    min_weight_fraction_leaf: float = 0.0
    solver: str | Solver | TreeSearch | Auto = AUTO
    start: str | Tree | None = "default"
    time_limit: float | None = TIME_LIMIT
    gap: float = DEFAULT_GAP
    threads: int | None = None
    random_state: Any = 0
    solver_options: Mapping[str, Any] | None = None
    bridges: str | Iterable[str] = ()
    missing: str = "error"
    handle_unknown: str = "error"
    categorical: str | Iterable[str] = ()
    verbose: int = 0
    on_progress: Progress | None = None
    on_interrupt: str = "raise"

    #: Attribute that a fit makes, whatever it finds.
    _fitted_name: ClassVar[str] = "tree_"

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator.

        Raises
        ------
        ValueError
            If there is no parameter of a name; it says which one may be meant.
        """
        for name in params:
            if "__" not in name and name not in self._get_param_names():
                raise ValueError(no_parameter(type(self), name))
        super().set_params(**params)
        return self

    # ------------------------------------------------------------------ what a subclass says

    @abstractmethod
    def _model(self) -> type[Formulation]:
        """Return the class of the formulation to build."""

    @abstractmethod
    def _hyperparameters(self) -> dict[str, Any]:
        """Return the hyperparameters that do not have the formulation's own default."""

    def _check_settings(self) -> None:
        """Refuse settings that no solver takes, before any work is done."""
        WholeNumber(at_least=1).check("depth", self.depth)
        if not isinstance(self.verbose, bool):  # True and False are usual
            WholeNumber(at_least=0).check("verbose", self.verbose)
        share = self._least_share()
        if not (isinstance(share, Real) and 0 <= share <= 0.5):
            raise ParameterError(f"parameter min_weight_fraction_leaf is {share!r}; give a share, 0 to 0.5")
        for name, value, known in (
            ("missing", self.missing, ("error", "impute", "branch")),
            ("handle_unknown", self.handle_unknown, ("error", "ignore")),
            ("on_interrupt", self.on_interrupt, ("raise", "keep")),
        ):
            if value not in known:
                raise ParameterError(f"parameter {name} is {value!r}; choose {' or '.join(map(repr, known))}")
        try:
            SolveSettings(time_limit=self.time_limit, gap=self.gap, threads=self.threads)
        except NotAllowed as error:
            raise ParameterError(f"parameter {error}") from error
        if self.on_progress is not None and not callable(self.on_progress):
            raise ParameterError(
                f"parameter on_progress is {self.on_progress!r}; give a function that takes an Event, or None"
            )
        asked = self.constraints
        if not (asked is None or callable(asked) or isinstance(asked, Constraint)):
            objects = list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
            if not all(isinstance(one, Constraint) for one in objects):
                raise ParameterError(
                    f"parameter constraints is {asked!r:.80}; give objects of mipforest.problem.constraints, such "
                    "as [Forbid('age')], a function that takes a built Problem, or None"
                )

    @abstractmethod
    def _read(
        self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...], scaling: Scaling
    ) -> Dataset:
        """Check the targets and put them together with the features."""

    def _formulation(self, data: Dataset) -> Formulation:
        """Make the formulation; an unfitted ensemble among its hyperparameters is fitted on the data."""
        cls = self._model()
        known = parameters_of(cls)
        given = {
            name: known[name].kind.for_data(value, data) for name, value in self._hyperparameters().items()
        }
        return cls(variant=self.variant or "", **given)

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find an optimal tree.

        Parameters
        ----------
        X
            (n, p) numbers, or a pandas DataFrame, whose columns of texts, categories or true/false are one-hot
            encoded; values may lack with ``missing="impute"`` or ``"branch"``.
        y
            (n,) targets.
        sample_weight
            (n,) weights of the samples, at least 0; 1 unless given.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed (:class:`~mipforest.problem.parameters.ParameterError`,
            :class:`~mipforest.data.DataError` and others).
        NoTreeFound
            If the solver ended without a tree.
        KeyboardInterrupt
            At Ctrl-C, unless ``on_interrupt="keep"`` and a tree was found.
        SolverError
            If the solver is unknown, not installed, or cannot take the model or an option.

        Warns
        -----
        UnverifiedTreeWarning
            If the answer failed its check.
        NotProvenWarning
            If the solver stopped at a limit above 0 without a proof; scikit-learn's ``ConvergenceWarning`` too.
        FitWarning
            If there is more to know about the solve.
        """
        self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        # A fit that fails must not leave the tree of an earlier one behind.
        for name in (self._fitted_name, *NOT_PICKLED):
            self.__dict__.pop(name, None)
        self._check_settings()
        seed = seed_of(self.random_state)
        self._encoding, X_raw = learn_features(self, X, sample_weight)
        # Models that state their constants for features in [0, 1] leave no choice: no parameter ``scaling``.
        scaling = getattr(self, "scaling", None)
        if scaling is None:
            scaling = self._model().scaling
        weights = checked_weights(sample_weight, len(X_raw), "sample_weight")
        data = self._read(X_raw, y, weights, self._encoding.features, scaling)
        # So trees, cards and pictures say "city is Roma".
        data = replace(data, encoding=replace(data.encoding, columns=self._encoding.columns))
        settings = SolveSettings(
            start=self.start,
            time_limit=self.time_limit,
            gap=self.gap,
            threads=self.threads,
            seed=seed,
            solver_options=self.solver_options or {},
            bridges=(self.bridges,) if isinstance(self.bridges, str) else tuple(self.bridges),
        )
        with interruptible(lambda: None, own_handlers=False) as interruption:
            progress = PrintedProgress(type(self).__name__, self.verbose, self.on_progress, interruption)
            result = self._found(self._formulation(data), data, settings, interruption, progress)
        # A handler that is not ours leaves only the solver's own status.
        reached_solver = result.status == Status.INTERRUPTED and not progress.stopped_by_user
        if (interruption.asked or reached_solver) and (self.on_interrupt != "keep" or result.tree is None):
            self.result_, self.solution_ = result, result.solution
            raise KeyboardInterrupt(
                "the fit was interrupted; result_ has the best tree so far, and on_interrupt='keep' fits it"
                if result.tree is not None
                else "the fit was interrupted before there was a tree"
            )
        self._check_found(result, settings)
        self._store(result)

    def _least_share(self) -> float:
        """Return the least share of weight in a leaf; 0 of an estimator without that parameter."""
        return float(getattr(self, "min_weight_fraction_leaf", 0.0))

    def _monotone(self) -> list[Monotone]:
        """Return the constraints of ``monotonic_cst``; none of an estimator without that parameter.

        Raises
        ------
        ParameterError
            If it is not one of -1, 0 and 1 for each column, or names a column that there is not.
        """
        given = getattr(self, "monotonic_cst", None)
        if given is None:
            return []
        names = [column.name for column in self._encoding.columns]
        if isinstance(given, Mapping):
            if unknown := [name for name in given if name not in names]:
                raise ParameterError(
                    f"parameter monotonic_cst names {unknown[0]!r}{did_you_mean(str(unknown[0]), names)}; X has the "
                    f"columns {some_of(names)}"
                )
            signs = [(name, given[name]) for name in names if name in given]
        else:
            values = np.asarray(given)
            if values.shape != (len(names),):
                raise ParameterError(
                    f"parameter monotonic_cst has shape {values.shape}, and X has {len(names)} columns; give 1, 0 or "
                    "-1 for each"
                )
            signs = list(zip(names, values.tolist(), strict=True))
        for name, sign in signs:
            if sign not in (-1, 0, 1):
                raise ParameterError(f"parameter monotonic_cst has {sign!r} for {name}; give 1, 0 or -1")
        return [Monotone(name, increasing=sign == 1) for name, sign in signs if sign]

    def _found(
        self,
        model: Formulation,
        data: Dataset,
        settings: SolveSettings,
        interruption: Interruption,
        progress: PrintedProgress,
    ) -> Result:
        """Build the model for the samples, and solve it."""
        share, monotone = self._least_share(), self._monotone()
        constrained = self.constraints is not None or share > 0 or bool(monotone)
        expected = None if constrained else searching(self.solver, settings)
        budget = settings.budget()
        interruption.solving(budget)
        problem = model.build(data, self.depth, budget=budget, solver=expected, whole=constrained)
        if share > 0:
            min_weight_fraction_leaf(problem, share)
        problem.constrain(*monotone)
        if isinstance(self.constraints, Constraint):
            problem.constrain(self.constraints)
        elif callable(self.constraints):
            self.constraints(problem)
        elif self.constraints is not None:
            problem.constrain(*self.constraints)
        progress.show_problem(problem)
        result = problem.solve(self.solver, settings=settings, on_progress=progress)
        progress.ended(result)
        return result

    def _check_found(self, result: Result, settings: SolveSettings) -> None:
        """Refuse a result without a tree; warn the caller of ``fit`` of what the user should know."""
        if result.tree is None:
            raise NoTreeFound(why_no_tree(result))
        if result.solution.warnings:
            warnings.warn("; ".join(result.solution.warnings), FitWarning, stacklevel=4)
        limited = result.solution.status in (Status.TIME_LIMIT, Status.LIMIT)
        if limited and settings.time_limit != 0:  # with 0 the start alone was asked for
            left = f"with a gap of {percent(result.gap)}" if np.isfinite(result.gap) else "without a bound"
            warnings.warn(
                f"stopped after {result.solution.seconds:.1f} s {left}: the tree is not proven to be optimal; raise "
                "time_limit, or gap if that is enough",
                NotProvenWarning,
                stacklevel=4,
            )
        if not result.verified:
            text = f"the tree is not verified: {'; '.join(result.failed_checks)}"
            warnings.warn(text, UnverifiedTreeWarning, stacklevel=4)

    def _store(self, result: Result) -> None:
        assert isinstance(result.tree, Tree)
        self.tree_ = result.tree
        self._keep_outcome(result)
        data = result.problem.data
        shares = feature_importances(self.tree_, data.X_raw, data.labels, data.weights)
        self.feature_importances_ = self._by_column(shares)
        self._statistics = node_statistics(self.tree_, data.X_raw, data.labels, data.weights)

    def _keep_outcome(self, result: Result) -> None:
        """Keep what is known of any result, whatever it found."""
        self.result_, self.solution_ = result, result.solution
        self.objective_, self.bound_, self.gap_ = result.objective, result.bound, result.gap
        self.status_, self.verified_ = result.status, result.verified
        self.features_used_ = result.features_used
        self.n_features_used_ = len(result.features_used)

    def _by_column(self, shares: FloatArray) -> FloatArray:
        """Sum shares of encoded features up by the columns of X."""
        columns = [k for k, column in enumerate(self._encoding.columns) for _ in column.features]
        return np.bincount(columns, shares, minlength=self.n_features_in_).astype(np.float64)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in NOT_PICKLED}

    # ------------------------------------------------------------------ in a notebook

    def _html_repr(self) -> str:
        """Return what a notebook shows: scikit-learn's box, and the fitted tree beside it."""
        box: str = super()._html_repr()
        if not hasattr(self, self._fitted_name):
            return box
        parts = [f"<div>{box}</div>", f'<div style="overflow-x: auto">{self._picture()._repr_svg_()}</div>']
        # A picture that is wider than what is left stands below the box.
        style = "display: flex; flex-wrap: wrap; gap: 1em; align-items: flex-start"
        return f'<div style="{style}">{"".join(parts)}</div>'

    def _picture(self) -> Any:
        """Draw the fitted tree, with the training samples where they are known."""
        return self.result_.plot() if hasattr(self, "result_") else self.plot()

    # ------------------------------------------------------------------ what the tree is, and does with samples

    def get_depth(self) -> int:
        """Return the number of splits on the longest path from the root to a leaf that a sample can reach."""
        check_is_fitted(self, "tree_")
        return reachable_tree(self.tree_).depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves that a sample can reach."""
        check_is_fitted(self, "tree_")
        return reachable_tree(self.tree_).n_leaves

    def _features(self, X: Any) -> FloatArray:
        """Return (n, p') encoded features in original units."""
        check_is_fitted(self, self._fitted_name)
        return read_features(self, self._encoding, X, "none" if self.handle_unknown == "ignore" else "error")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def apply(self, X: Any) -> IntArray:
        """Return (n,) the leaf that each sample reaches, by its number: nodes are numbered by level, root 0."""
        X_raw = self._features(X)
        return self.tree_.apply(X_raw)

    def decision_path(self, X: Any) -> sparse.csr_matrix:
        """Return an (n, n_nodes) sparse matrix: 1 where a sample passes a node, the root and its leaf included."""
        X_raw = self._features(X)
        return sparse.csr_matrix(self.tree_.decision_path(X_raw), dtype="int64")

    def explain(self, X: Any) -> list[str]:
        """Return, for each of n samples, its path in words: ``"age >= 52.5 (60): sick"``.

        The conditions that hold, with the value of the sample, then what the leaf predicts. Of a score card, the rules
        that hold with their points, then total and risk.

        Raises
        ------
        ValueError
            If the tree is a randomised classifier: its samples have no path.
        """
        X_raw = self._features(X)
        fitted: Predictor = getattr(self, self._fitted_name)
        return fitted.explanations(X_raw)

    # ------------------------------------------------------------------ the tree elsewhere

    def _labels(self) -> npt.NDArray[Any] | None:
        """Return the (K,) labels of the classes, in the tree's order; ``None`` where values are predicted."""
        return getattr(self, "classes_", None)

    def _to_deploy(self) -> dict[str, Any]:
        """Return what every form elsewhere is made of, as arguments by name."""
        check_is_fitted(self, self._fitted_name)
        return {
            "fitted": getattr(self, self._fitted_name),
            "statistics": getattr(self, "_statistics", None),
            "encoding": self._encoding,
            "classes": self._labels(),
        }

    def encoded(self, X: Any) -> pd.DataFrame:
        """Return what :meth:`to_sklearn` and :meth:`to_onnx` take, (n, k) numbers with the names of their columns.

        Numbers as they are, NaN where a split sends missing ones to a side, and 0 or 1 for levels and sets of levels.
        """
        from mipforest.deployment.cuts import inputs_of

        X_raw = self._features(X)
        inputs = inputs_of(getattr(self, self._fitted_name))
        return pd.DataFrame(inputs.table(X_raw), columns=list(inputs.names))

    def to_sklearn(self, *, certain: bool = False) -> Any:
        """Return scikit-learn's ``DecisionTreeClassifier`` or ``DecisionTreeRegressor`` that predicts alike.

        For SHAP, dtreeviz, treelite, m2cgen and PMML. It takes what :meth:`encoded` returns (see
        :func:`~mipforest.deployment.scikit.to_sklearn`, with what it cannot keep).

        Parameters
        ----------
        certain
            Whether every leaf gives its class the probability 1, in place of its share of the training samples.

        Raises
        ------
        ValueError
            If a split has several features, leaves are linear, or probabilities are not those of leaves.
        """
        from mipforest.deployment import to_sklearn

        given = self._to_deploy()
        return to_sklearn(given.pop("fitted"), given.pop("statistics"), **given, certain=certain)

    def to_onnx(self) -> Any:
        """Return an ONNX model (``onnx.ModelProto``) that predicts alike; needs the package onnx.

        Its input ``X`` is a tensor of doubles, what :meth:`encoded` returns; see
        :func:`~mipforest.deployment.onnx_model.to_onnx` for its outputs.

        Raises
        ------
        OnnxAbsent
            If the package onnx is not installed.
        """
        from mipforest.deployment import to_onnx

        given = self._to_deploy()
        return to_onnx(given.pop("fitted"), given.pop("statistics"), **given)

    def to_sql(self, *, probability_of: Any = None, dialect: str = "standard") -> str:
        """Return a SQL expression over the columns of X that predicts alike.

        Parameters
        ----------
        probability_of
            A label: the expression is its probability, in place of the predicted label.
        dialect
            The database, which decides how names and texts are quoted: ``"standard"``, ``"bigquery"``,
            ``"databricks"``, ``"duckdb"``, ``"mysql"``, ``"postgres"``, ``"snowflake"``, ``"sqlite"`` or
            ``"sqlserver"``.

        Raises
        ------
        ValueError
            If the tree is randomised, there is no such label or dialect, or a name or level has a character that the
            dialect cannot write.
        """
        from mipforest.deployment import to_sql

        given, unseen = self._to_deploy(), "none" if self.handle_unknown == "ignore" else "error"
        return to_sql(
            given.pop("fitted"),
            given.pop("statistics"),
            **given,
            unseen=unseen,  # type: ignore[arg-type] # one of the two
            probability_of=probability_of,
            dialect=dialect,
        )


def seed_of(random_state: Any) -> int:
    """Return a seed: a whole number as it is, so that it means the same on the command line; else one drawn.

    Raises
    ------
    ValueError
        If it is no whole number of 0 or more, no ``RandomState`` and not ``None``.
    """
    if isinstance(random_state, Integral) and random_state < 0:
        raise ParameterError(f"parameter random_state is {random_state}; give a whole number, 0 or more")
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(SEEDS))
