"""What a batch tuning will do, checked before anything is done, and one of its tasks: a pruning curve on one fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Literal, get_args

import numpy as np

from mipforest.data import Dataset
from mipforest.errors import DataError, TuningError, did_you_mean
from mipforest.heuristics.cart import cart
from mipforest.heuristics.thresholds import tree_of_splits
from mipforest.objectives.leaf_losses import PrescriptionLoss, TableLoss
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import WholeNumber, plain_parameters_of
from mipforest.problem.registry import models_with
from mipforest.problem.structure import TreeCharges
from mipforest.problem.tree_search import AUTO, Auto, TreeSearch, check_settings, solver_or_search
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver
from mipforest.trees import Topology, Tree
from mipforest.tuning.cost_complexity import Curve, Midpoint, check_midpoint, curves_of, mean_curve
from mipforest.tuning.fit import Fold, Splits, check_folds, given_folds, make_folds
from mipforest.tuning.plan import SETTINGS, Grid, formulation_of, topology_of

#: Trees of each search unless given; the share of them, the best ones, whose curves count; and the fewest such trees
#: where leaves are constant. The thesis has a tenth of 500: of fewer starts a tenth are few curves, and accuracy on new
#: samples depends on their number more than on that of the starts (``docs/benchmarks/accuracy.md``).
STARTS, SHARE, BATCH = 100, 0.1, 50

#: Greatest depth unless given.
DEPTH = 6

#: Folds unless given; fewer where a class, or a treatment, has fewer samples.
FOLDS = 4

#: Costs of coefficients that are tried for linear leaves, apart from the formulation's own: of values in units of the
#: target's range, and of outcomes in their own units.
COEFFICIENT_COSTS, ESTIMATE_COSTS = (1e-3, 1e-2, 1e-1), (1.0, 10.0)

#: What the validation loss is, by the loss of the leaves.

#: Parameters that change what the validation loss of a prescription is, so that it does not choose among their values.
NOT_COMPARED = ("mu", "better", "outcome_scale")

#: Where trees come from: the local search, or CART, one tree per depth, to compare with.
Trees = Literal["local-search", "cart"]


@dataclass(frozen=True, eq=False)
class CurveFit:
    """The pruning curve of one depth on one fold; small enough to be sent from one process to another.

    Attributes
    ----------
    setting, fold
        Numbers of the setting and of the fold.
    curve
        Mean validation loss per sample of the best trees, by the cost of a split.
    train
        Training loss of the best one, without costs, as a share of that of one leaf.
    trees
        How many trees the curve is the mean of.
    seconds
        Wall time.
    """

    setting: int
    fold: int
    curve: Curve
    train: float
    trees: int
    seconds: float
    tree: None = None


@dataclass(frozen=True, eq=False)
class CurveWork:
    """A curve to be found.

    Attributes
    ----------
    setting, fold
        Numbers of the setting and of the fold.
    formulation, depth
        What trees are charged, and their greatest depth.
    trees, starts
        Where they come from, and how many a local search makes.
    settings
        Seed, threads and time limit.
    """

    setting: int
    fold: int
    formulation: Formulation
    depth: int
    trees: Trees
    starts: int
    settings: SolveSettings

    def done(
        self, fold: Fold, neighbour: Tree | None, stopping: Callable[[], bool] | None = None
    ) -> CurveFit:
        """Find the curve on the samples of a fold.

        Raises
        ------
        KeyboardInterrupt
            If it was stopped.
        """
        del neighbour  # settings do not depend on each other
        began, charges = monotonic(), charges_of(self.formulation, fold.train)
        trees, train = self._trees(fold.train, charges, stopping)
        curve = mean_curve(list(curves_of(trees, charges, fold.train, fold.validation)))
        return CurveFit(self.setting, self.fold, curve, train, len(trees), monotonic() - began)

    def _trees(
        self, train: Dataset, charges: TreeCharges, stopping: Callable[[], bool] | None
    ) -> tuple[list[Tree], float]:
        """Return trees for scaled features, the best first, and the value of that one where it was searched for."""
        topology = Topology(self.depth)
        if self.trees == "cart":
            return [cart(train, topology, min_leaf=charges.N_min, seed=self.settings.seed)], np.nan
        # Not above: numba takes half a second to import.
        from mipforest.searches.local import LocalProblem
        from mipforest.searches.local.search import compile_kernels, local_search

        compile_kernels(self.settings.budget(), oblique=charges.margin is not None)
        limit = self.settings.time_limit
        outcome = local_search(
            LocalProblem.of(replace(charges, split_cost=0.0), train.X),
            self.depth,
            starts=self.starts,
            kicks=0,
            keep=self._batch(charges),
            seed=self.settings.seed,
            threads=self.settings.threads,
            deadline=np.inf if limit is None else monotonic() + limit,
            on_progress=None if stopping is None else lambda *_: stopping(),
        )
        if outcome.interrupted:
            raise KeyboardInterrupt
        return [tree_of_splits(train, topology, tree.w, tree.b) for tree in outcome.kept], outcome.value

    def _batch(self, charges: TreeCharges) -> int:
        """Return how many of the trees have curves that count; for linear leaves each node takes a regression."""
        tenth = max(1, int(SHARE * self.starts))
        return tenth if charges.coefficient_cost is not None else max(tenth, min(BATCH, self.starts))


def charges_of(formulation: Formulation, data: Dataset) -> TreeCharges:
    """Return what trees of a formulation are charged for some samples, whatever their depth.

    Raises
    ------
    TuningError
        If the local search does not take such trees.
    """
    # What is computed for the samples of deeper trees may take long, and is for matrix solvers.
    charges = formulation.structure(formulation.bind(data, Topology(1)))
    if isinstance(charges, TreeCharges) and not charges.loss.measure:
        raise TuningError(
            f"batch tuning compares losses on other samples, and that of {formulation.name} may be infinite there, "
            "where a leaf predicts a rate of 0; tune it by a grid"
        )
    if not isinstance(charges, TreeCharges) or not hasattr(formulation, "alpha"):
        raise TuningError(
            f"batch tuning prunes trees of a local search, and {formulation.name} with these parameters has others: "
            f"it takes {', '.join(models_with(TreeCharges))} (of linear leaves, the l1 regulariser with lam above 0); "
            "tune others by a grid"
        )
    return charges


def with_alpha(formulation: Formulation, alpha: float) -> Formulation:
    """Return a formulation with another cost of a split."""
    parameters: dict[str, Any] = {"alpha": alpha}
    return replace(formulation, **parameters)


# ---------------------------------------------------------------------- the plan


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchPlan:
    """A batch tuning that can be run: all depths on all folds, then the costs of coefficients at the best depth.

    Attributes
    ----------
    data
        All training samples.
    depths, formulations
        The settings: a depth and a formulation each.
    folds
        Training and validation samples.
    loss
        What the validation loss is: ``"error"``, ``"cost"``, ``"mse"``, ``"mae"`` or ``"objective"``.
    trees, starts, midpoint
        As for :func:`mipforest.tuning.run.tune_batch`.
    solver, settings
        Who finds the tree in the end, and how.
    tried, later
        Name of the parameter that is tried once the depth is chosen, and its values, while that is still to come.
    begin
        Number of the first setting that is still to be tried.
    """

    data: Dataset
    depths: tuple[int, ...]
    formulations: tuple[Formulation, ...]
    folds: tuple[Fold, ...]
    loss: str
    trees: Trees
    starts: int
    midpoint: Midpoint
    solver: str | Solver | TreeSearch | Auto
    settings: SolveSettings
    tried: str = ""
    later: tuple[Any, ...] = ()
    begin: int = 0

    @classmethod
    def of(
        cls,
        formulation: str | type[Formulation] | Formulation,
        data: Dataset,
        depth: int = DEPTH,
        *,
        grid: Mapping[str, Sequence[Any]] | None = None,
        folds: int | Splits | None = None,
        validation: float | None = None,
        trees: Trees = "local-search",
        starts: int = STARTS,
        midpoint: Midpoint = "interval",
        solver: str | Solver | TreeSearch | Auto = AUTO,
        settings: SolveSettings = SETTINGS,
    ) -> BatchPlan:
        """Check what was asked for; see :func:`mipforest.tuning.run.tune_batch`.

        Raises
        ------
        TuningError, ParameterError, DataError, UnknownFormulation, SolverError
            If a name is unknown, a value is not allowed, the data do not suffice, or the solver is missing.
        """
        last = solver_or_search(solver) if isinstance(solver, str) else solver
        check_settings(solver_or_search("local-search") if isinstance(last, Auto) else last, settings)
        base = formulation_of(formulation)
        WholeNumber(at_least=1).check("starts", starts)
        check_midpoint(midpoint)
        if trees not in (known := get_args(Trees)):
            raise TuningError(
                f"no trees are called {trees!r}{did_you_mean(trees, known)}; choose from: {', '.join(known)}"
            )
        if data.targets:
            raise TuningError(
                f"batch tuning compares losses of one target, and {base.name} predicts {len(data.targets)} at once; "
                "tune it by a grid"
            )
        parts = _folds(data, folds, validation, settings.seed)
        base.check_data(data, topology_of(depth))
        for number, part in enumerate(parts):
            try:
                base.check_data(part.train, topology_of(depth))
            except DataError as error:
                raise error.located(f"fold {number} of {data.n} samples with {data.p} feature(s)") from error
        base.check_weights(data)
        charges = charges_of(base, data)
        if isinstance(charges.loss, TableLoss):  # validation samples would be charged by class
            raise TuningError(
                f"pruning curves count errors of classes and values, and {base.name} is charged by rewards; choose "
                "alpha and the depth by a grid: --grid, or mipforest.tuning.tune"
            )
        if trees == "cart" and (
            charges.margin is not None
            or charges.coefficient_cost is not None
            or isinstance(charges.loss, PrescriptionLoss)
        ):
            raise TuningError(
                f"CART has no trees for {base.name}: its splits are univariate, its leaves constant; take oct or ort"
            )
        tried, later = _later(base, charges, grid, depth)
        return cls(
            data=data,
            depths=tuple(range(1, depth + 1)),
            formulations=(with_alpha(base, 0.0),) * depth,
            folds=parts,
            loss=charges.loss.measure,
            trees=trees,
            starts=starts,
            midpoint=midpoint,
            solver=solver,
            settings=settings,
            tried=tried,
            later=later,
        )

    @property
    def n_fits(self) -> int:
        """Number of curves still to be found."""
        return (len(self.depths) - self.begin) * len(self.folds)

    @property
    def n_chains(self) -> int:
        """Number of curves that can be found at a time: all."""
        return self.n_fits

    def first(self) -> list[CurveWork]:
        """Return the curves to be found."""
        return [
            CurveWork(
                number,
                fold,
                self.formulations[number],
                self.depths[number],
                self.trees,
                self.starts,
                self.settings,
            )
            for number in range(self.begin, len(self.depths))
            for fold in range(len(self.folds))
        ]

    def after(self, work: CurveWork) -> None:
        """Return no task: curves do not depend on each other."""

    def with_depth(self, number: int) -> BatchPlan:
        """Return the plan of what is tried at the depth of a setting; the settings before keep their numbers."""
        tried = tuple(replace(self.formulations[number], **{self.tried: value}) for value in self.later)
        return replace(
            self,
            depths=self.depths + (self.depths[number],) * len(tried),
            formulations=self.formulations + tried,
            later=(),
            begin=len(self.depths),
        )


def _folds(
    data: Dataset, folds: int | Splits | None, validation: float | None, seed: int
) -> tuple[Fold, ...]:
    if validation is None:
        if folds is None:
            fewest = FOLDS
            if data.task != "regression":  # folds are stratified, by treatments if there are any
                counts = np.bincount(data.labels.astype(np.int64))
                fewest = int(counts[counts > 0].min())
            folds = max(2, min(FOLDS, fewest))
        if isinstance(folds, Iterable) and not isinstance(folds, str):
            return given_folds(data, folds)
        return make_folds(data, folds, seed)
    if folds is not None:
        if not isinstance(folds, Iterable):
            check_folds(folds)
        raise TuningError(f"folds={folds} and validation={validation} are both given; keep one")
    train, rest = data.split(validation, seed=seed)
    return (Fold(train, rest),)


def _later(
    base: Formulation, charges: TreeCharges, grid: Mapping[str, Sequence[Any]] | None, depth: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the name and the values of the parameter that is tuned after the depth; none of constant leaves."""
    if grid is None:
        own = charges.coefficient_cost is not None and "lam" in plain_parameters_of(type(base))
        costs = ESTIMATE_COSTS if isinstance(charges.loss, PrescriptionLoss) else COEFFICIENT_COSTS
        grid = {"lam": costs} if own else {}
    if not grid:
        return "", ()
    if len(grid) > 1 or "alpha" in grid:
        raise TuningError(
            f"the grid has {', '.join(grid)}; a batch tuning finds alpha and the depth itself, and tries values of one "
            "other parameter at most, such as lam"
        )
    axis = Grid.of(type(base), grid, depth=depth).axes[0]
    if isinstance(charges.loss, PrescriptionLoss) and axis.parameter in NOT_COMPARED:
        raise TuningError(
            f"{axis.parameter} changes the objective that a batch tuning of {base.name} compares on validation "
            "samples; choose among its values by a grid, whose score does not depend on it"
        )
    return axis.parameter, tuple(value for value in axis.values if value != getattr(base, axis.parameter))
