"""Trees that choose their depth and their cost of a split: tuned by cross-validation and fitted in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, cast

import numpy as np
from joblib import effective_n_jobs

from mipforest.data import Dataset
from mipforest.estimators.base import NotTaken, PrintedProgress
from mipforest.estimators.generic import FormulationEstimator, OptimalTreeClassifier, OptimalTreeRegressor
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError
from mipforest.problem.result import Result
from mipforest.settings import SolveSettings
from mipforest.tuning.fit import Splits
from mipforest.tuning.run import tune_batch


@dataclass(eq=False, repr=False)
class TunedTree(FormulationEstimator):
    """What tuned trees share; see :class:`OptimalTreeClassifierCV`."""

    depth: int = 5
    _: KW_ONLY
    grid: Mapping[str, Sequence[Any]] | None = None
    cv: Any = None
    starts: int = 50
    n_jobs: int | None = None

    #: A local search keeps least numbers of samples in leaves, not weights.
    min_weight_fraction_leaf: ClassVar[NotTaken] = NotTaken()  # type: ignore[misc,assignment]

    def _check_settings(self) -> None:
        super()._check_settings()
        unused = {
            "constraints": self.constraints is None,
            "start": isinstance(self.start, str) and self.start == "default",
        }
        for name, default in unused.items():
            if not default:
                raise ParameterError(
                    f"parameter {name} is not for tuning, whose trees come from a local search; fit "
                    f"{type(self).__name__.removesuffix('CV')} with it, the depth_ and alpha_ found without it"
                )

    def _found(self, model: Formulation, data: Dataset, settings: SolveSettings) -> Result:
        """Choose depth and alpha by pruning curves, and fit a tree with them."""
        progress = PrintedProgress(type(self).__name__, self.verbose, self.on_progress)
        tuning = tune_batch(
            model,
            data,
            self.depth,
            grid=self.grid,
            folds=_folds(self.cv, data),
            starts=self.starts,
            solver=self.solver,
            settings=settings,
            jobs=effective_n_jobs(self.n_jobs),
            on_progress=progress,
        )
        progress.ended(tuning.result)
        self.tuning_ = tuning
        self.alpha_, self.depth_ = tuning.alpha, tuning.depth
        self.cv_results_ = tuning.table.to_dict("list")
        return tuning.result

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "tuning_"}


def _folds(cv: Any, data: Dataset) -> int | Splits | None:
    """Return folds of the samples that have a weight; positions are given among all samples of a fit."""
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        return cast("int | None", cv)  # checked with the others
    if hasattr(cv, "split"):
        splits: Splits = cv.split(data.X_raw, data.labels)
        return splits
    place = {int(sample): row for row, sample in enumerate(data.samples)}

    def kept(part: Any) -> list[int]:
        return [place[row] for row in np.asarray(part).tolist() if row in place]

    try:
        return [(kept(train), kept(rest)) for train, rest in cv]
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"parameter cv has no pairs of positions to train on and validate ({error}); give a number, a splitter of "
            "scikit-learn, or such a pair for each fold"
        ) from error


@dataclass(eq=False, repr=False, kw_only=True)
class OptimalTreeClassifierCV(TunedTree, OptimalTreeClassifier):
    """Optimal classification tree that chooses its depth and its cost of a split, and is fitted on all samples.

    Named as scikit-learn's estimators that tune themselves are: ``fit`` makes good trees of every depth in every fold
    by a local search, prunes them, and takes the depth and the cost of a split with the least error on the held-out
    samples (batch cost-complexity tuning, :func:`~mipforest.tuning.run.tune_batch`); then it fits all samples.

    Parameters
    ----------
    depth
        Greatest depth that is tried, from 1 on.
    model
        ``"oct"``, or ``"oct-h"`` for splits with several features.
    parameters
        Hyperparameters of the model by name, such as ``{"N_min": 5}``; ``alpha`` is chosen.
    grid
        Values of one other hyperparameter that are tried at the chosen depth, by name.
    cv
        Folds, as in scikit-learn: their number, shuffled by ``random_state`` and stratified for a classification; a
        splitter, such as ``ShuffleSplit(1, test_size=0.3)`` for one validation part; or, for each fold, the positions
        of its training and of its validation samples. ``None`` for 4, fewer where a class has fewer samples.
    starts
        Starts of the local search for each depth and fold.
    n_jobs
        Processes, as in scikit-learn; ``None`` for this one, -1 for one on each processor. The tree does not depend on
        it.
    solver
        ``"auto"``: a local search finds the tree, and up to depth 3 an exact search proves it, where it ends within 5
        seconds; else as for :class:`~mipforest.estimators.base.TreeEstimator`.
    scaling, class_weight, missing, random_state, and all others
        As for :class:`OptimalTreeClassifier`; ``time_limit`` is for every search. ``constraints`` and ``start`` are
        not for tuning, and there is no ``min_weight_fraction_leaf``.

    Attributes
    ----------
    depth_, alpha_
        Chosen depth, and cost of a split relative to the error of the best single leaf.
    cv_results_
        Table with a row per depth, as a dictionary of columns; see :class:`~mipforest.tuning.run.BatchTuning`.
    tuning_
        The :class:`~mipforest.tuning.run.BatchTuning` itself, with its curves; left out of pickles.
    status_, bound_, gap_
        Of the last fit: ``"optimal"`` where the tree is proven to be the best one for ``depth_`` and ``alpha_``,
        ``"best_found"``, without a bound, where it is the best that the local search has found.
    tree_, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tuned = OptimalTreeClassifierCV(depth=3, starts=20).fit(X, y)
    >>> tuned.depth_, tuned.status_, tuned.get_n_leaves()
    (2, 'optimal', 3)
    """

    model: str | type[Formulation] = "oct"


@dataclass(eq=False, repr=False, kw_only=True)
class OptimalTreeRegressorCV(TunedTree, OptimalTreeRegressor):
    """Optimal regression tree that chooses its depth and its cost of a split, and is fitted on all samples.

    Parameters
    ----------
    model
        ``"ort"``; ``"ort-h"`` for splits with several features; ``"ort-l"``, ``"ort-lh"`` for leaves that predict a
        linear function, whose cost of coefficients ``lam`` is chosen, too.
    depth, grid, cv, starts, n_jobs, solver, and all others
        As for :class:`OptimalTreeClassifierCV`, and so are the attributes.
    """

    model: str | type[Formulation] = "ort"
