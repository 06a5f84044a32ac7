"""Batch cost-complexity tuning: depth and cost of a split, chosen by the pruning curves of many good trees.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, Algorithms 2.6, 2.7. For every
depth and fold a local search makes trees without a cost of splits; the best tenth of them are pruned, and the mean of
their validation curves says which cost suits (:mod:`mipforest.tuning.cost_complexity`). No fit is needed per cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mipforest.data import Dataset
from mipforest.errors import FitError, TuningError, TuningInterrupted
from mipforest.problem.formulation import Formulation
from mipforest.problem.problem import TIME_LIMIT
from mipforest.problem.result import Result
from mipforest.problem.tree_search import AUTO, Auto, TreeSearch, searching, solver_or_search
from mipforest.settings import DEFAULT_GAP, SolveSettings, one_of
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import Progress, Status
from mipforest.tuning.batch_plan import DEPTH, STARTS, BatchPlan, CurveFit, Trees, with_alpha
from mipforest.tuning.cost_complexity import SAME_LOSS, Curve, Midpoint, mean_curve, minimum
from mipforest.tuning.cross_validation import OnFit, cross_validate
from mipforest.tuning.executors import Executor
from mipforest.tuning.fit import Splits
from mipforest.tuning.plan import SETTINGS
from mipforest.tuning.run import Tuning, executor_for

if TYPE_CHECKING:
    import pandas as pd

#: Deepest trees that an exact search is asked for at the end, where one takes the model, and its seconds: on data of
#: some hundred samples it nearly always ends; where it does not, the tree of the local search stays.
EXACT_DEPTH, EXACT_SECONDS = 3, 5.0
EXACT_SEARCHES = ("exact-search", "prescription-search")

#: Pairs of a sample and a leaf up to which the tree in the end is also checked against the model's rows: of more, the
#: model takes longer than the search.
MOST_ASSIGNED = 20_000


class CurveRecords:
    """Collects the curves of a plan, each once, and what they say of every setting."""

    def __init__(self, plan: BatchPlan) -> None:
        self.plan = plan
        self._fits: dict[tuple[int, int], CurveFit] = {}

    def __len__(self) -> int:
        return len(self._fits)

    def add(self, fit: CurveFit) -> None:
        """Take a curve."""
        place = (fit.setting, fit.fold)
        if place in self._fits:
            raise AssertionError(f"setting {fit.setting} has two curves on fold {fit.fold}")
        self._fits[place] = fit

    def of_setting(self, setting: int) -> list[CurveFit]:
        """Return the curves of a setting so far, in the order of the folds."""
        places = ((setting, fold) for fold in range(len(self.plan.folds)))
        return [self._fits[place] for place in places if place in self._fits]

    def finished(self, setting: int) -> bool:
        """Return whether a setting has a curve on every fold."""
        return len(self.of_setting(setting)) == len(self.plan.folds)

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
        return row | {f"fold{fold}_validation": by_fold.get(fold) for fold in range(len(plan.folds))}


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
    """What a batch tuning found: as :class:`~mipforest.tuning.run.Tuning`, with curves.

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
    time_limit: float | None = TIME_LIMIT,
    gap: float = DEFAULT_GAP,
    threads: int | None = 1,
    seed: int = 0,
    solver_options: Mapping[str, Any] | None = None,
    bridges: str | Iterable[str] = (),
    settings: SolveSettings | None = None,
    jobs: int = 1,
    dask: str | None = None,
    on_fit: OnFit | None = None,
    on_progress: Progress | None = None,
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
        Values of one other parameter, tried at the chosen depth beside the formulation's own; by default some of
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
        Starts of the local search for each depth and fold; the best tenth of their trees make the curve.
    midpoint
        Which cost stands for those with the least loss; see :func:`~mipforest.tuning.cost_complexity.minimum`.
    solver
        Who finds the tree in the end. ``"auto"``: the local search; up to depth 3, an exact search then proves the tree
        the best one for its depth and cost, or finds that, where it ends within 5 seconds.
    time_limit
        Seconds for every local search, and for the last fit.
    gap, threads, seed, solver_options, bridges, settings, jobs, dask, on_fit
        As for :func:`~mipforest.tuning.run.tune`; ``on_fit`` gets every
        :class:`~mipforest.tuning.batch_plan.CurveFit`.
    on_progress
        Called with the events of the last fit.

    Raises
    ------
    TuningError
        If the model has other trees than those of the local search, or a value cannot be used.
        :class:`~mipforest.errors.ClusterError`, :class:`~mipforest.errors.FitError` as for
        :func:`~mipforest.tuning.run.tune`.
    ParameterError, DataError, SolverError
        If a value is not allowed, the data do not suffice, or the solver is missing.
    TuningInterrupted
        At Ctrl-C, a KeyboardInterrupt: it has the table of the finished curves.
    """
    given = SolveSettings(
        time_limit=time_limit,
        gap=gap,
        threads=threads,
        seed=seed,
        solver_options=solver_options or {},
        bridges=(bridges,) if isinstance(bridges, str) else tuple(bridges),
    )
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
        settings=one_of(settings, given, SETTINGS),
    )
    records = CurveRecords(plan)
    with executor_for(plan, jobs=jobs, dask=dask) as executor:
        try:
            chosen = find_curves(records, executor, on_fit)
        except KeyboardInterrupt:
            message = f"stopped with {len(records)} curves done; the exception's table has them"
            raise TuningInterrupted(message, records.table()) from None
        except Exception as error:
            told = "; ".join([str(error), *getattr(error, "__notes__", ())])
            raise FitError(f"the tuning failed: {told}", records.table()) from error
    return finished_tuning(records, chosen, on_progress)


def find_curves(records: CurveRecords, executor: Executor, on_fit: OnFit | None = None) -> int:
    """Find all curves of a plan, those at the chosen depth after those of the depths; return the chosen row."""
    cross_validate(records.plan, executor, records, on_fit)
    chosen = choose_setting(records.table())
    if records.plan.later:
        records.plan = records.plan.with_depth(chosen)
        cross_validate(records.plan, executor, records, on_fit)
        chosen = choose_setting(records.table())
    return chosen


def finished_tuning(records: CurveRecords, chosen: int, on_progress: Progress | None = None) -> BatchTuning:
    """Fit a tree with the chosen row's depth and cost on all samples."""
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
    if plan.trees == "cart":
        settings = replace(settings, start="cart", time_limit=0.0)
    solver = solver_or_search(plan.solver) if isinstance(plan.solver, str) else plan.solver
    chooses = isinstance(solver, Auto) and plan.trees != "cart"
    if chooses:
        solver = solver_or_search("local-search")
    searched = chooses or plan.trees == "cart" or isinstance(solver, TreeSearch)
    problem = formulation.build(
        plan.data,
        depth,
        budget=settings.budget(),
        solver=searching(solver, settings),
        whole=False,
        declare=not searched or plan.data.n * 2**depth <= MOST_ASSIGNED,
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
