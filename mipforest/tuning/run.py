"""Tune the hyperparameters of a formulation by cross-validation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from mipforest.data import Dataset
from mipforest.errors import FitError, TuningError, TuningInterrupted
from mipforest.problem.formulation import Formulation
from mipforest.problem.problem import TIME_LIMIT
from mipforest.problem.result import Result
from mipforest.problem.tree_search import AUTO, Auto, TreeSearch, searching
from mipforest.settings import DEFAULT_GAP, SolveSettings, one_of
from mipforest.solvers.base import Solver
from mipforest.tuning.cross_validation import OnFit, Records, cross_validate
from mipforest.tuning.executors import Executor, InThisProcess, Processes, Stopping
from mipforest.tuning.fit import Fold
from mipforest.tuning.plan import MAX_FITS, SETTINGS, Plan
from mipforest.tuning.selection import Rule, choose

if TYPE_CHECKING:
    import pandas as pd


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


def tune(
    formulation: str | type[Formulation] | Formulation,
    data: Dataset,
    depth: int,
    *,
    grid: Mapping[str, Sequence[Any]],
    per_level: Collection[str] = (),
    folds: int = 4,
    score: str | None = None,
    rule: Rule = "best",
    solver: str | Solver | TreeSearch | Auto = AUTO,
    time_limit: float | None = TIME_LIMIT,
    gap: float = DEFAULT_GAP,
    threads: int | None = 1,
    seed: int = 0,
    solver_options: Mapping[str, Any] | None = None,
    bridges: str | Iterable[str] = (),
    settings: SolveSettings | None = None,
    jobs: int = 1,
    dask: str | None = None,
    max_fits: int = MAX_FITS,
    on_fit: OnFit | None = None,
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
        Number of levels of branch nodes.
    grid
        Values of hyperparameters, by name.
    per_level
        Names of hyperparameters that take every combination of values over the levels: 3 values at depth 2
        give 9 settings.
    folds
        Number of folds, shuffled, and stratified for a classification; 2 or more.
    score
        ``"accuracy"`` (the default) or ``"balanced_accuracy"`` of a classification, of models that give probabilities
        of two classes also ``"auc"``, ``"log_loss"`` and ``"brier_score"``; ``"r2"`` (the default), ``"mse"`` or
        ``"mae"`` of a regression, of predictions in original units.
    rule
        ``"best"`` takes the best mean validation score; ``"sparse"`` the fewest features among the settings
        within 2.5% of it (see :func:`mipforest.tuning.selection.choose`).
    solver, gap, solver_options, bridges
        As for :meth:`mipforest.problem.problem.Problem.solve`.
    time_limit
        Seconds for every fit; ``None`` for no limit.
    threads
        Threads of the solver in every fit; ``None`` leaves it to the solver.
    seed
        Seed of the folds, the starts and the solver.
    settings
        All of ``time_limit`` to ``bridges`` at once; its start does not count, as every fit finds its own.
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
    given = SolveSettings(
        time_limit=time_limit,
        gap=gap,
        threads=threads,
        seed=seed,
        solver_options=solver_options or {},
        bridges=(bridges,) if isinstance(bridges, str) else tuple(bridges),
    )
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
        settings=one_of(settings, given, SETTINGS),
    )
    records = Records(plan)
    with executor_for(plan, jobs=jobs, dask=dask) as executor:
        try:
            cross_validate(plan, executor, records, on_fit)
        except KeyboardInterrupt:
            message = (
                f"stopped with {len(records)} of {plan.n_fits} fits done; the exception's table has them"
            )
            raise TuningInterrupted(message, records.table()) from None
        except Exception as error:
            message = (
                f"the cross-validation failed: {'; '.join([str(error), *getattr(error, '__notes__', ())])}"
            )
            raise FitError(message, records.table()) from error
    table = records.table()
    chosen = choose(table, plan.rule, sign=plan.score.sign)
    return Tuning(
        table=table,
        chosen=chosen,
        parameters=plan.formulations[chosen].parameters(),
        score=plan.score.name,
        rule=plan.rule,
        result=_refitted(plan, chosen),
    )


class OnFolds(Protocol):
    """A plan, as far as who does its tasks goes."""

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Training and validation samples."""

    @property
    def n_chains(self) -> int:
        """Number of tasks that can be done at a time."""


def executor_for(
    plan: OnFolds, *, jobs: int = 1, dask: str | None = None, stopping: Stopping | None = None
) -> AbstractContextManager[Executor]:
    """Return what does the fits of a plan.

    Parameters
    ----------
    plan
        The plan.
    jobs, dask
        As for :func:`tune`.
    stopping
        Asked during the solves in this process whether to stop.

    Raises
    ------
    TuningError
        If the number of jobs is not 1 or more, or both several jobs and a cluster are asked for.
    ClusterError
        If the cluster cannot be used.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise TuningError(f"jobs is {jobs!r}; give a whole number, 1 or more")
    if dask is not None:
        if jobs != 1:
            raise TuningError(f"jobs={jobs} and a Dask cluster are both given; keep one")
        from mipforest.tuning.executors import DaskCluster

        return DaskCluster(plan.folds, dask)
    return (
        InThisProcess(plan.folds, stopping) if jobs == 1 else Processes(plan.folds, min(jobs, plan.n_chains))
    )


def _refitted(plan: Plan, chosen: int) -> Result:
    """Fit the chosen setting on all samples."""
    settings = replace(plan.settings, start="default")
    problem = plan.formulations[chosen].build(
        plan.data, plan.depth, budget=settings.budget(), solver=searching(plan.solver, settings), whole=False
    )
    return problem.solve(plan.solver, settings=settings)
