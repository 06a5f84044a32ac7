"""Choose hyperparameters by cross-validation: over a grid, or by the pruning curves of many good trees.

The second is batch cost-complexity tuning (J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT
2018, Algorithms 2.6, 2.7). For every depth and fold a local search makes trees without a cost of splits; the best ones
are pruned, and the mean of their validation curves says which cost suits
(:mod:`mipforest.tuning.cost_complexity`). No fit is needed per cost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from mipforest.data import Dataset
from mipforest.errors import FitError, TuningError, TuningInterrupted
from mipforest.problem.formulation import Formulation
from mipforest.problem.result import Result
from mipforest.problem.tree_search import AUTO, Auto, TreeSearch, searching, solver_or_search
from mipforest.settings import FitKeywords, SolveSettings, chosen_settings, takes_settings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import Progress, Status
from mipforest.tuning.batch_plan import DEPTH, STARTS, BatchPlan, CurveFit, Trees, with_alpha
from mipforest.tuning.cost_complexity import SAME_LOSS, Curve, Midpoint, mean_curve, minimum
from mipforest.tuning.cross_validation import (
    Executor,
    OnFit,
    Records,
    TaskRecords,
    cross_validate,
    executor_for,
)
from mipforest.tuning.fit import Fit, Splits
from mipforest.tuning.plan import MAX_FITS, SETTINGS, Plan, Rule

if TYPE_CHECKING:
    import pandas as pd

#: Deepest trees that an exact search is asked for at the end, where one takes the model, and its seconds: on data of
#: some hundred samples it nearly always ends; where it does not, the tree of the local search stays.
EXACT_DEPTH, EXACT_SECONDS = 3, 5.0
EXACT_SEARCHES = ("exact-search", "prescription-search")

#: Pairs of a sample and a leaf up to which the tree in the end is also checked against the model's rows: of more, the
#: model takes longer than the search.
MAX_ASSIGNED = 20_000


# ---------------------------------------------------------------------- over a grid


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """Scores of all settings, the one that was chosen, and the tree fitted with it on all samples.

    Attributes
    ----------
    table
        One row per setting, in grid order:

        - a column per axis of the grid: ``C``, or ``C[0]``, ``C[1]`` where each level has its own value;
        - ``finished``, whether all folds are done, and ``folds_done``, how many are;
        - ``validation_mean``, ``train_mean``, ``features_mean`` and the same with ``_std``: scores, and the
          number of features used, over the folds (NaN if a fold has no tree);
        - ``gap_mean``, ``gap_max``, ``seconds`` (the sum), ``verified`` (whether all are);
        - for every fold, from ``fold0_`` on: ``validation``, ``train``, ``features``, ``gap``, ``seconds``,
          ``objective``, ``status``, ``verified``, ``start`` (``default`` or ``neighbour``) and
          ``start_objective``.
    chosen
        Number of the chosen row.
    parameters
        Hyperparameters of the chosen setting, those outside the grid included.
    score, rule
        Name of the score, and the rule that chose.
    result
        Outcome of the fit on all samples with the chosen setting.
    """

    table: pd.DataFrame
    chosen: int
    parameters: dict[str, Any]
    score: str
    rule: Rule
    result: Result

    def __repr__(self) -> str:
        axes = self.table.columns[: self.table.columns.get_loc("finished")]
        values = [self.table.loc[self.chosen, axis] for axis in axes]
        shown = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
        chosen = ", ".join(f"{axis}={value}" for axis, value in zip(axes, shown, strict=True))
        return f"{type(self).__name__}({len(self.table)} settings, best {chosen} by {self.score}, {self.result!r})"


@takes_settings(FitKeywords, SETTINGS)
def tune(
    formulation: str | type[Formulation] | Formulation,
    data: Dataset,
    depth: int | Sequence[int],
    *,
    grid: Mapping[str, Sequence[Any]],
    per_level: Collection[str] = (),
    folds: int = 4,
    score: str | None = None,
    rule: Rule = "best",
    solver: str | Solver | TreeSearch | Auto = AUTO,
    settings: SolveSettings | None = None,
    jobs: int = 1,
    dask: str | None = None,
    max_fits: int = MAX_FITS,
    on_fit: OnFit | None = None,
    **keywords: Unpack[FitKeywords],
) -> Tuning:
    """Try settings of hyperparameters by cross-validation, choose one, and fit it on all samples.

    Every fit starts from the better of two trees: the formulation's own start, and the tree that the setting
    before it along the last parameter of the grid found on the same fold. Fits that wait for one another in this way
    are done in turn, all others in any order: ``jobs`` and ``dask`` do not change the result, unless a time limit
    cuts fits short.

    Parameters
    ----------
    formulation
        A formulation, its class, or its name. Hyperparameters outside the grid keep its values.
    data
        Training samples. The scaling is fitted anew on the training samples of every fold.
    depth
        Number of levels of branch nodes; several are tried, each with every setting of the grid.
    grid
        Values of hyperparameters, by name; with several depths, it may be empty.
    per_level
        Names of hyperparameters that take every combination of values over the levels: 3 values at depth 2
        give 9 settings.
    folds
        Number of folds, shuffled, and stratified for a classification; 2 or more.
    score
        ``"accuracy"`` (the default) or ``"balanced_accuracy"`` of a classification, of models that give probabilities
        of two classes also ``"auc"``, ``"log_loss"`` and ``"brier_score"``; ``"r2"`` (the default), ``"mse"`` or
        ``"mae"`` of a regression, of predictions in original units; ``"mean_reward"`` of decisions.
    rule
        ``"best"`` takes the best mean validation score; ``"sparse"`` the fewest features among the settings
        within 2.5% of it (see :func:`mipforest.tuning.plan.choose`).
    solver
        As for :meth:`mipforest.problem.problem.Problem.solve`.
    time_limit, gap, threads, seed, solver_options, bridges
        The attributes of :class:`~mipforest.settings.SolveSettings` of these names. The time limit is for every fit: 60
        seconds unless given. A fit has one thread unless given more. The seed is also that of folds and starts.
    settings
        These at once, as one object; its start does not count, as every fit finds its own.
    jobs
        Number of processes on this machine; with 1, this process does all fits.
    dask
        Address of a Dask scheduler whose workers do the fits instead, such as ``"tcp://127.0.0.1:8786"``.
    max_fits
        Most fits that are accepted.
    on_fit
        Called with every finished :class:`~mipforest.tuning.fit.Fit`, in this process.

    Raises
    ------
    TuningError
        If the grid, folds, score or rule cannot be used, there are too many fits, or no setting has a tree in
        every fold. :class:`~mipforest.errors.ClusterError` if the Dask cluster cannot be used,
        :class:`~mipforest.errors.FitError` if a fit, a process or the cluster failed: it has the table of the
        finished fits.
    ParameterError, DataError, SolverError
        If a value is not allowed, the data do not suffice, or the solver is missing.
    TuningInterrupted
        At Ctrl-C, a KeyboardInterrupt: it has the table of the finished fits.
    """
    plan = Plan.of(
        formulation,
        data,
        depth,
        grid=grid,
        per_level=per_level,
        folds=folds,
        score=score,
        rule=rule,
        max_fits=max_fits,
        solver=solver,
        settings=chosen_settings(settings, keywords, SETTINGS, allowed=FitKeywords),
    )
    records = Records(plan)
    chosen = _search(records, jobs, dask, on_fit)
    return Tuning(
        table=records.table(),
        chosen=chosen,
        parameters=plan.formulations[chosen].parameters(),
        score=plan.score.name,
        rule=plan.rule,
        result=_refitted(plan, chosen),
    )


def _search(
    records: TaskRecords[Plan, Fit] | TaskRecords[BatchPlan, CurveFit],
    jobs: int,
    dask: str | None,
    on_fit: OnFit | None,
) -> int:
    """Do all tasks of a plan; return the chosen row of their table."""
    with executor_for(records.plan, jobs=jobs, dask=dask) as executor:
        try:
            records.do(executor, on_fit)
        except KeyboardInterrupt:
            message = f"stopped with {records.progress} done; the exception's table has them"
            raise TuningInterrupted(message, records.table()) from None
        except Exception as error:
            causes = "; ".join([str(error), *getattr(error, "__notes__", ())])
            raise FitError(f"the {records.name} failed: {causes}", records.table()) from error
    return records.choose()


def _refitted(plan: Plan, chosen: int) -> Result:
    """Fit the chosen setting on all samples."""
    settings = replace(plan.settings, start="default")
    problem = plan.formulations[chosen].build(
        plan.data,
        plan.depths[chosen],
        budget=settings.budget(),
        solver=searching(plan.solver, settings),
        whole=False,
    )
    return problem.solve(plan.solver, settings=settings)


# ---------------------------------------------------------------------- by pruning curves


class CurveRecords(TaskRecords[BatchPlan, CurveFit]):
    """Collects the curves of a batch tuning; its plan grows once the depth is chosen."""

    name = "tuning"

    @property
    def labels(self) -> list[str]:
        """Columns of the table that name a setting."""
        return ["depth", *filter(None, [self.plan.tried]), "alpha"]

    @property
    def progress(self) -> str:
        """How many curves are done, of how many."""
        return f"{len(self)} of {len(self.plan.depths) * len(self.plan.folds)} curves"

    def do(self, executor: Executor, on_fit: OnFit | None = None) -> None:
        """Find all curves of the plan, those at the chosen depth after those of the depths."""
        cross_validate(self.plan, executor, self, on_fit)
        if self.plan.later:
            self.plan = self.plan.with_depth(self.choose())
            cross_validate(self.plan, executor, self, on_fit)

    def choose(self) -> int:
        """Return the finished row of least loss; see :func:`choose_setting`."""
        return choose_setting(self.table())

    def curve(self, setting: int) -> Curve:
        """Return the mean curve of a setting over the folds that are done."""
        return mean_curve([fit.curve for fit in self.of_setting(setting)])

    def formulation(self, setting: int) -> Formulation:
        """Return the formulation of a setting with the cost of a split that its curve takes."""
        best = minimum(self.curve(setting), self.plan.midpoint)
        return with_alpha(self.plan.formulations[setting], best.alpha)

    def table(self) -> pd.DataFrame:
        """Return one row per setting; see :attr:`BatchTuning.table`."""
        import pandas as pd

        return pd.DataFrame([self._row(number) for number in range(len(self.plan.depths))])

    def _row(self, setting: int) -> dict[str, Any]:
        plan, fits = self.plan, self.of_setting(setting)
        best = minimum(self.curve(setting), plan.midpoint) if fits else None
        values = [float(fit.curve.at(np.array(best.alpha))) for fit in fits if best is not None]
        train = [fit.train for fit in fits]
        row: dict[str, Any] = {"depth": plan.depths[setting]}
        if plan.tried:
            row[plan.tried] = getattr(plan.formulations[setting], plan.tried)
        row |= {
            "alpha": np.nan if best is None else best.alpha,
            "finished": self.finished(setting),
            "folds_done": len(fits),
            "validation_mean": np.nan if best is None else best.loss,
            "validation_std": float(np.std(values)) if values else np.nan,
            "train_mean": float(np.mean(train)) if train else np.nan,
            "trees": sum(fit.trees for fit in fits),
            "seconds": sum(fit.seconds for fit in fits),
        }
        by_fold = {fit.fold: value for fit, value in zip(fits, values, strict=True)}
        return row | {f"fold{fold}_validation": by_fold.get(fold) for fold in range(len(self.plan.folds))}


def choose_setting(table: pd.DataFrame) -> int:
    """Return the finished row of least validation loss; of equal ones the first, which has the least depth.

    Raises
    ------
    TuningError
        If no row is finished.
    """
    finished = table["finished"].to_numpy(dtype=bool)
    if not finished.any():
        raise TuningError("no depth has a curve on every fold, so there is nothing to choose from")
    loss = np.where(finished, table["validation_mean"].to_numpy(dtype=float), np.inf)
    return int(np.argmax(loss <= loss.min() + SAME_LOSS * abs(loss.min())))


@dataclass(frozen=True, eq=False, repr=False)
class BatchTuning(Tuning):
    """What a batch tuning found: as :class:`Tuning`, with curves.

    Attributes
    ----------
    table
        One row per depth, and then per value of the parameter tried at the chosen depth:

        - ``depth``, and that parameter where there is one; ``alpha``, the cost of a split that its curve takes;
        - ``finished``, ``folds_done``, ``trees`` (in all curves) and ``seconds``;
        - ``validation_mean`` and ``validation_std``: loss per validation sample (the share of errors, or their mean
          cost; the mean squared or absolute error, in the target's units; of a prescription the objective, with what
          its leaves estimate), mean of the curve at its least value, and deviation over the folds at ``alpha``;
        - ``train_mean``: loss of the best tree without a cost of splits, as a share of that of one leaf, and of a
          prescription the objective (not of CART);
        - ``fold0_validation`` and so on.
    score
        What the validation loss is: ``"error"``, ``"cost"``, ``"mse"``, ``"mae"`` or ``"objective"``; less is better.
    depth, alpha
        Greatest depth of the tree, and its cost of a split.
    curves
        Mean validation curve of every row.
    """

    depth: int
    alpha: float
    curves: tuple[Curve, ...]


@takes_settings(FitKeywords, SETTINGS)
def tune_batch(
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
    settings: SolveSettings | None = None,
    jobs: int = 1,
    dask: str | None = None,
    on_fit: OnFit | None = None,
    on_progress: Progress | None = None,
    **keywords: Unpack[FitKeywords],
) -> BatchTuning:
    """Choose depth and cost of a split by pruning curves, and fit a tree with them on all samples.

    Of all depths from 1 on, the one whose curve has the least value is taken, with the cost at which it has it. For
    linear leaves the cost of their coefficients is then chosen in the same way at this depth, and alpha anew.

    Parameters
    ----------
    formulation
        ``oct``, ``oct-h``, ``ort``, ``ort-h``, ``ort-l``, ``ort-lh``, ``opt``, ``opt-h``, ``opt-l``, ``opt-lh``: an
        object, its class, or its name. Its alpha does not count; the other hyperparameters are kept.
    data
        Training samples. The scaling is fitted anew on the training samples of every fold.
    depth
        Greatest depth that is tried, 1 to 10.
    grid
        Values of one other parameter, tried at the chosen depth apart from the formulation's own; by default some of
        ``lam`` for linear leaves, and none for others.
    folds
        Number of folds, 4 unless given, shuffled, and stratified for a classification; or, for each fold, the positions
        of its training and of its validation samples.
    validation
        In place of folds, the share of samples of one validation part: 1/3, as in the thesis, where they are half as
        many as those to train on.
    trees
        ``"local-search"``, or ``"cart"``: one tree per depth, grown by CART, as a baseline (``oct`` and ``ort``).
    starts
        Starts of the local search for each depth and fold. The best tenth of their trees make the curve, where leaves
        are constant 50 of them at least.
    midpoint
        Which cost stands for those with the least loss; see :func:`~mipforest.tuning.cost_complexity.minimum`.
    solver
        Who finds the tree in the end. ``"auto"``: the local search; up to depth 3, an exact search then proves the tree
        the best one for its depth and cost, or finds that, where it ends within 5 seconds.
    time_limit, gap, threads, seed, solver_options, bridges, settings, jobs, dask, on_fit
        As for :func:`tune`. The time limit is for every local search, and for the last fit; ``on_fit`` gets every
        :class:`~mipforest.tuning.batch_plan.CurveFit`.
    on_progress
        Called with the events of the last fit.

    Raises
    ------
    TuningError
        If the model has other trees than those of the local search, or a value cannot be used.
        :class:`~mipforest.errors.ClusterError`, :class:`~mipforest.errors.FitError` as for
        :func:`tune`.
    ParameterError, DataError, SolverError
        If a value is not allowed, the data do not suffice, or the solver is missing.
    TuningInterrupted
        At Ctrl-C, a KeyboardInterrupt: it has the table of the finished curves.
    """
    plan = BatchPlan.of(
        formulation,
        data,
        depth,
        grid=grid,
        folds=folds,
        validation=validation,
        trees=trees,
        starts=starts,
        midpoint=midpoint,
        solver=solver,
        settings=chosen_settings(settings, keywords, SETTINGS, allowed=FitKeywords),
    )
    records = CurveRecords(plan)
    chosen = _search(records, jobs, dask, on_fit)
    plan, table = records.plan, records.table()
    formulation = records.formulation(chosen)
    return BatchTuning(
        table=table,
        chosen=chosen,
        parameters=formulation.parameters(),
        score=plan.loss,
        rule="best",
        result=refitted(plan, formulation, plan.depths[chosen], on_progress),
        depth=plan.depths[chosen],
        alpha=float(table["alpha"].iloc[chosen]),
        curves=tuple(records.curve(number) for number in range(len(table))),
    )


def refitted(
    plan: BatchPlan, formulation: Formulation, depth: int, on_progress: Progress | None = None
) -> Result:
    """Fit a tree of some depth and cost of a split on all samples, with the plan's solver."""
    settings = replace(plan.settings, start="default")
    solver = solver_or_search(plan.solver) if isinstance(plan.solver, str) else plan.solver
    local = solver_or_search("local-search")
    assert isinstance(local, TreeSearch)
    chooses = isinstance(solver, Auto) and plan.trees != "cart"
    if chooses:
        solver = local
    searched = plan.trees == "cart" or isinstance(solver, TreeSearch)
    prepared = searching(solver, settings)
    if plan.trees == "cart":
        # The tree is CART's own: a search for bounds by its root, without a limit, is for nothing.
        settings, prepared = replace(settings, start="cart", time_limit=0.0), local
    problem = formulation.build(
        plan.data,
        depth,
        budget=settings.budget(),
        solver=prepared,
        whole=False,
        declare=not searched or plan.data.n * 2**depth <= MAX_ASSIGNED,
    )
    result = problem.solve(solver, settings=settings, on_progress=on_progress)
    if not chooses or depth > EXACT_DEPTH or result.status != Status.BEST_FOUND:
        return result
    searches = [solver_or_search(name) for name in EXACT_SEARCHES]
    exact = next((one for one in searches if isinstance(one, TreeSearch) and one.takes(problem)), None)
    if exact is None:
        return result
    limit = EXACT_SECONDS if settings.time_limit is None else min(EXACT_SECONDS, settings.time_limit)
    known = replace(settings, start=result.solved_tree, time_limit=limit)
    proven = problem.solve(exact, settings=known, on_progress=on_progress)
    return proven if proven.status in (Status.OPTIMAL, Status.INTERRUPTED) else result
