"""Tree ensembles for two classes as targets: random forests, extra trees, gradient boosting, XGBoost.

Whatever library grew an ensemble, :func:`ensemble_for` gives it as an :class:`Ensemble`: its trees in original
units, the leaf of every sample, the predicted class and its probability. It takes a name such as
``random-forest:trees=100``, a file, or what is fitted already.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mipforest.data import Dataset
from mipforest.ensembles.ensemble import (
    Adapter,
    CloseSamples,
    Ensemble,
    MemberTree,
    close_samples,
    level_frequencies,
    node_uses,
    proximity,
)
from mipforest.errors import EnsembleError, did_you_mean, some_of
from mipforest.time_budget import TimeBudget

__all__ = [
    "CloseSamples",
    "Ensemble",
    "EnsembleError",
    "MemberTree",
    "close_samples",
    "describe_target",
    "ensemble_for",
    "fitted_target",
    "level_frequencies",
    "names_no_file",
    "node_uses",
    "proximity",
]


#: Seed of the MIRET paper (section 8).
DEFAULT_SEED = 100

#: Largest value that scikit-learn and xgboost can compare: they do so in single precision.
LARGEST = float(np.finfo(np.float32).max)

#: A text that can only be the name of an ensemble to fit, with its options.
_NAME = re.compile(r"[a-z0-9-]+(:[a-z0-9=,]+)?")

#: Number of trees if none is given, as in the MIRET paper.
DEFAULT_TREES = 100

#: Kinds that can be fitted anew. What fits and adapts them is imported where it is used: every formulation is found
#: through this module, and scikit-learn takes seconds to import.
KINDS = ("random-forest", "extra-trees", "gradient-boosting", "xgboost")

#: End of the name of a file with a fitted classifier.
SUFFIX = ".joblib"

#: Options that a name may carry, with their least and greatest value; scikit-learn takes no larger seed.
OPTIONS = {"trees": (1, 10_000), "seed": (0, 2**32 - 1)}


def ensemble_for(
    target: Any,
    data: Dataset,
    depth: int,
    *,
    seed: int = DEFAULT_SEED,
    deeper: bool = False,
    constant: bool = False,
    budget: TimeBudget | None = None,
) -> Ensemble:
    """Return the ensemble that a target means.

    Parameters
    ----------
    target
        One of

        - ``"random-forest"``, ``"extra-trees"``, ``"gradient-boosting"`` or ``"xgboost"``, with options behind
          a colon as in ``"random-forest:trees=100,seed=1"``: fitted here on the features of ``data`` in
          original units, with balanced classes and the samples' weights; 100 trees if no number is given.
          Forests try all features at every split, as in the MIRET paper (section 8);
        - the path of a ``.joblib`` file with a fitted classifier. **Loading it runs code that it contains**;
        - a fitted ``RandomForestClassifier``, ``ExtraTreesClassifier``, ``GradientBoostingClassifier`` or
          ``XGBClassifier``;
        - an :class:`Ensemble`, which is returned as it is.

        What was fitted before must have been fitted on the features of ``data`` in original units, in their
        order, and on its labels (or its class numbers 0 and 1).
    data
        A data set of two classes.
    depth
        Depth of the trees to fit, and the most that a fitted one may have.
    seed
        Seed of trees that are fitted here, if the target names none.
    deeper
        Accept trees deeper than ``depth``.
    constant
        Accept trees without any split.
    budget
        Time for trees that are fitted here: fewer of them would be another target.

    Raises
    ------
    EnsembleError
        If the data have not two classes, or the target cannot be used with them; the message says why.
    NoTreeFound
        If the time runs out before the trees are fitted (``xgboost`` fits to the end).
    OSError
        If a file cannot be read.
    """
    _require_two_classes(data)
    if np.abs(data.X_raw).max() > LARGEST:
        raise EnsembleError(
            f"{data.name} has values beyond {LARGEST:.1e}, which tree ensembles cannot compare; divide them "
            "by a constant first"
        )
    ensemble = _ensemble(target, data, depth, seed, budget or TimeBudget())
    if ensemble.n_features != data.p:
        raise EnsembleError(
            f"the ensemble has {ensemble.n_features} features, {data.name} has {data.p}; take the ensemble of "
            "these data"
        )
    if (ensemble.depth == 0 and not constant) or ensemble.total_weight == 0:
        raise EnsembleError(
            f"{ensemble.description}: no tree tells samples apart, so there is nothing to show or to mimic"
        )
    if ensemble.depth > depth and not deeper:
        raise EnsembleError(
            f"the ensemble has trees of depth {ensemble.depth}, deeper than the tree (depth {depth})",
            hint=f"give depth={ensemble.depth} or more, or fit the ensemble with max_depth={depth}",
            option=f"give --depth {ensemble.depth} or more, or fit the ensemble with max_depth={depth}",
        )
    return ensemble


def names_no_file(text: str) -> bool:
    """Return whether a text can only mean an ensemble that is fitted anew, never a file, whose loading runs code."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True)
class Specification:
    """What to fit.

    Attributes
    ----------
    kind
        One of :data:`KINDS`.
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
            If the kind or an option is unknown, or a value is not a number.
        """
        kind, colon, written = text.partition(":")
        if kind not in KINDS:
            raise EnsembleError(
                f"no ensemble is called {text!r}{did_you_mean(kind, KINDS)}; give {', '.join(KINDS)}, "
                f"with options behind a colon as in {KINDS[0]}:trees=100,seed=1, or a .joblib file"
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

    def fit(self, data: Dataset, depth: int, seed: int, budget: TimeBudget) -> Adapter:
        """Fit it on the features of a data set in original units.

        Parameters
        ----------
        data
            A data set of two classes.
        depth
            Greatest depth of a tree.
        seed
            Seed of the trees, used if the specification has none.
        budget
            Time for it.

        Raises
        ------
        EnsembleError
            If all samples are of one class, or a package is not installed.
        NoTreeFound
            If the time runs out.
        """
        from mipforest.ensembles.libraries import FITTED

        present = np.unique(data.y)
        if len(present) == 1:
            raise EnsembleError(
                f"all {data.n} samples of {data.name} are of class {data.classes[int(present[0])]!r}, so that no "
                "ensemble can be fitted on them; take samples of both classes"
            )
        family, fit = FITTED[self.kind]
        seed = seed if self.seed is None else self.seed
        with budget.phase("prepare", f"fitting the {self.kind}"):
            shape = {"trees": self.trees, "depth": depth, "seed": seed, "budget": budget}
            weight = data.weights if data.weighted else None
            estimator = fit(data.X_raw, data.y, **shape, weight=weight)
        return family(estimator, np.array([0, 1]))


def describe_target(target: Any) -> str:
    """Say in a few words what a target is: a name or a path as it is, otherwise what was fitted."""
    if isinstance(target, str | Path):
        return str(target)
    if isinstance(target, Ensemble):
        return target.description
    return f"{type(target).__name__}, fitted before"


def fitted_target(target: Any, data: Dataset) -> Any:
    """Return a target that can be mimicked for an estimator that a user may not have fitted.

    An estimator is taken out of scikit-learn's ``FrozenEstimator``; of one that is not fitted, a clone is fitted on the
    features in original units, with classes 0 and 1. Anything else is given back.
    """
    if type(target).__name__ == "FrozenEstimator":
        return target.estimator
    if isinstance(target, type) or not hasattr(target, "fit"):
        return target
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(target)
    except NotFittedError:
        weight = {"sample_weight": data.weights} if data.weighted else {}
        return clone(target).fit(data.X_raw, data.y, **weight)
    return target


def _require_two_classes(data: Dataset) -> None:
    if data.task != "classification":
        raise EnsembleError(
            f"{data.name} is a regression ({data.target!r} is a number), but the ensemble must tell two classes "
            "apart",
            hint="load it with task='classification' if its values are classes",
            option="load it with --task classification if its values are classes",
        )
    if data.n_classes != 2:
        raise EnsembleError(
            f"{data.name} has {data.n_classes} classes ({some_of(data.classes)}), but the ensemble must tell two "
            "apart",
            hint="merge some with data.binarise(positive=...)",
            option="merge some with --positive CLASS",
        )


def _ensemble(target: Any, data: Dataset, depth: int, seed: int, budget: TimeBudget) -> Ensemble:
    if isinstance(target, Ensemble):
        return target
    with budget.loading():
        from mipforest.ensembles.libraries import adapter_of, load_estimator

    if isinstance(target, Path) or (isinstance(target, str) and target.endswith(SUFFIX)):
        path = Path(target).expanduser()
        return _described(adapter_of(load_estimator(path), data), data, f"from {path.name}")
    if isinstance(target, str):
        adapter = Specification.parse(target).fit(data, depth, seed, budget)
        return _described(adapter, data, f"fitted on {data.name}, seed {adapter.estimator.random_state}")
    return _described(adapter_of(target, data), data, "fitted before")


def _described(adapter: Adapter, data: Dataset, origin: str) -> Ensemble:
    members = adapter.members()
    depth = max((member.depth for member in members), default=0)
    name = type(adapter.estimator).__name__
    trees = f"{len(members)} tree{'s' * (len(members) != 1)}"
    return Ensemble(adapter.kind, f"{name}, {trees} of depth {depth}, {origin}", members, data.p, adapter)
