"""Ensembles by name, ``random-forest:trees=100``, fitted on the spot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mipforest.data import Dataset
from mipforest.data.errors import did_you_mean
from mipforest.ensembles.adapter import Adapter
from mipforest.ensembles.errors import EnsembleError
from mipforest.ensembles.forests import ExtraTrees, RandomForest, fit_forest
from mipforest.ensembles.gradient_boosting import GradientBoosting, fit_gradient_boosting
from mipforest.ensembles.xgboost import XGBoost, fit_xgboost

#: Number of trees if none is given, as in the MIRET paper.
DEFAULT_TREES = 100

#: Adapter of each kind, and what fits its estimator.
KINDS: dict[str, tuple[type[Adapter], Callable[..., Any]]] = {
    RandomForest.kind: (RandomForest, partial(fit_forest, RandomForest.learner)),
    ExtraTrees.kind: (ExtraTrees, partial(fit_forest, ExtraTrees.learner)),
    GradientBoosting.kind: (GradientBoosting, fit_gradient_boosting),
    XGBoost.kind: (XGBoost, fit_xgboost),
}


#: Options that a name may carry, with their least and greatest value; scikit-learn takes no larger seed.
OPTIONS = {"trees": (1, 10_000), "seed": (0, 2**32 - 1)}


@dataclass(frozen=True)
class Specification:
    """What to fit.

    Attributes
    ----------
    kind
        Key of :data:`KINDS`.
    trees
        Number of trees, at least 1.
    seed
        Seed of the trees, or ``None`` to leave it open.
    """

    kind: str
    trees: int = DEFAULT_TREES
    seed: int | None = None

    @classmethod
    def parse(cls, text: str) -> Specification:
        """Read ``KIND`` or ``KIND:trees=N,seed=N``.

        Raises
        ------
        EnsembleError
            If the kind or an option is unknown, or a value is no number.
        """
        kind, colon, written = text.partition(":")
        if kind not in KINDS:
            raise EnsembleError(
                f"no ensemble is called {text!r}{did_you_mean(kind, KINDS)}; give {', '.join(KINDS)}, "
                f"with options behind a colon as in {RandomForest.kind}:trees=100,seed=1, or a .joblib file"
            )
        options: dict[str, int] = {}
        for part in written.split(",") if colon else ():
            name, _, value = (piece.strip() for piece in part.partition("="))
            if name not in OPTIONS:
                raise EnsembleError(f"{text!r}: cannot read {part!r}; the options are trees=N and seed=N")
            if name in options:
                raise EnsembleError(f"{text!r}: {name} is given twice; keep one")
            least, most = OPTIONS[name]
            if not value.isdecimal() or not least <= int(value) <= most:
                raise EnsembleError(f"{text!r}: {name}={value} is not a whole number from {least} to {most}")
            options[name] = int(value)
        return cls(kind, **options)

    def fit(self, data: Dataset, depth: int, seed: int) -> Adapter:
        """Fit it on the features of a data set in original units.

        Parameters
        ----------
        data
            A data set of two classes.
        depth
            Greatest depth of a tree.
        seed
            Seed of the trees, used if the specification has none.

        Raises
        ------
        EnsembleError
            If all samples are of one class, or a package is not installed.
        """
        present = np.unique(data.y)
        if len(present) == 1:
            raise EnsembleError(
                f"all {data.n} samples of {data.name} are of class {data.classes[int(present[0])]!r}, so that no "
                "ensemble can be fitted on them; take samples of both classes"
            )
        family, fit = KINDS[self.kind]
        seed = seed if self.seed is None else self.seed
        estimator = fit(data.X_raw, data.y, trees=self.trees, depth=depth, seed=seed)
        return family(estimator, np.array([0, 1]))
