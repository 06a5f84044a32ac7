r"""Rewards of decisions, estimated of treatments and outcomes that were observed.

Sample i had treatment :math:`Z_i` and outcome :math:`Y_i`. With estimates :math:`\hat\mu_k(x)` of the outcome under
treatment k and :math:`\hat e_k(x)` of the probability of that treatment, its reward under decision k is

.. math::

    \text{dr:} \quad & \Gamma_{ik} = \hat\mu_k(x_i) + \frac{1\{Z_i = k\}}{\hat e_k(x_i)} (Y_i - \hat\mu_k(x_i)) \\
    \text{ipw:} \quad & \Gamma_{ik} = \frac{1\{Z_i = k\}}{\hat e_k(x_i)} Y_i \\
    \text{direct:} \quad & \Gamma_{ik} = \hat\mu_k(x_i)

where the sign of outcomes is turned if lower ones are better (Athey and Wager, *Policy Learning with Observational
Data*, Econometrica 2021, section 3; Zhou, Athey and Wager, *Offline Multi-Action Policy Learning*, Operations Research
2023). Both estimates are *cross-fitted*: those of a sample come from models that were fitted to the other folds, with
the weights of the samples.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data.dataset import DECISION, Dataset
from mipforest.errors import DataError, did_you_mean

#: Scores that rewards can be.
Scores = Literal["dr", "ipw", "direct"]

#: Estimated probabilities of a treatment are at least this: a single sample counts 50 times at most.
LEAST_PROPENSITY = 0.02

#: How far the sum of stated probabilities may be from 1: they are written as decimals.
SUM_OF_SHARES = 1e-6

#: Trees of the forests that estimate outcomes and probabilities unless others are given, and samples of their leaves.
TREES, LEAF = 200, 5


def reward_scores(
    data: Dataset,
    scores: Scores = "dr",
    *,
    better: str = "lower",
    regressor: Any = None,
    propensity: Any = None,
    folds: int = 5,
    seed: int = 0,
) -> Dataset:
    """Return a data set with estimated rewards of decisions in place of treatments and outcomes.

    Parameters
    ----------
    data
        Samples with treatments and outcomes.
    scores
        ``"dr"`` (doubly robust: right if one of both estimates is), ``"ipw"`` or ``"direct"``.
    better
        Which outcomes are better: ``"lower"``, as for prescriptive trees, or ``"higher"``.
    regressor
        A regressor of scikit-learn's kind for the outcomes under each treatment; a random forest unless given. Where
        samples have weights, its ``fit`` takes ``sample_weight``.
    propensity
        A classifier with ``predict_proba`` for the probabilities of treatments, likewise, or (K,) numbers, the
        probabilities of a randomised experiment; a random forest unless given.
    folds
        Number of parts for cross-fitting, at least 2.
    seed
        Seed of the parts and of the forests.

    Returns
    -------
    Dataset
        Task ``"decision"``, with the same samples, features and weights; its notes say how rewards were estimated.

    Raises
    ------
    DataError
        If there are no treatments, some treatment has fewer samples than there are folds, an argument is unknown, or
        samples have weights that a model does not take.
    """
    if data.treatments is None:
        raise DataError(
            f"{data.name} has no treatments to estimate rewards from",
            hint="load it with treatment= and target=, the column of outcomes",
            option="name the columns with --treatment and --outcome",
        )
    if scores not in get_args(Scores):
        known = get_args(Scores)
        raise DataError(f"unknown scores {scores!r}{did_you_mean(scores, known)}; choose {', '.join(known)}")
    if better not in ("lower", "higher"):
        raise DataError(f"better is {better!r}; choose 'lower' or 'higher'")
    had, K = data.treatments, data.n_classes
    counts = np.bincount(had, minlength=K)
    if folds < 2 or counts.min() < folds:
        k = int(counts.argmin())
        raise DataError(
            f"{folds} folds for {counts[k]} samples of treatment {data.classes[k]!r}; give at least 2 folds, and no "
            "more than samples of each treatment"
        )
    y = np.asarray(data.y, dtype=np.float64) * (1.0 if better == "higher" else -1.0)
    shown = {"dr": "doubly robust", "ipw": "inverse-probability", "direct": "direct"}[scores]
    note = f"rewards: {shown} scores of {data.target!r} ({better} is better), {folds} folds, seed {seed}"
    parts = _parts(had, folds, seed)
    rewards = np.zeros((data.n, K))
    if scores != "ipw":
        rewards = _outcomes(data, y, had, K, parts, _forest(regressor, seed, regression=True))
    if scores != "direct":
        shares, clipped = _propensities(data, had, K, parts, propensity, seed)
        rows = np.arange(data.n)
        rewards[rows, had] += (y - rewards[rows, had]) / shares[rows, had]
        if clipped:
            note += f"; {clipped} probabilities of a treatment raised to {LEAST_PROPENSITY:g}"
    return replace(
        data,
        task="decision",
        y=rewards.argmax(axis=1).astype(np.int64),
        rewards=rewards,
        treatments=None,
        treatment=None,
        target=DECISION,
        class_values=data.classes,
        notes=(*data.notes, note),
    )


def _parts(had: IntArray, folds: int, seed: int) -> list[tuple[IntArray, IntArray]]:
    from sklearn.model_selection import StratifiedKFold

    split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(had[:, None], had)
    return [(np.asarray(fit), np.asarray(held)) for fit, held in split]


def _forest(given: Any, seed: int, *, regression: bool) -> Any:
    if given is not None:
        return given
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if regression else RandomForestClassifier
    return kind(TREES, min_samples_leaf=LEAF, random_state=seed)


def _fitted(model: Any, data: Dataset, rows: IntArray, y: FloatArray | IntArray) -> Any:
    """Return a copy of a model, fitted to some samples with their weights."""
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    if not data.weighted:
        return clone(model).fit(data.X_raw[rows], y[rows])
    if not has_fit_parameter(model, "sample_weight"):
        raise DataError(
            f"the samples of {data.name} have weights ({data.weights.min():g} to {data.weights.max():g}), and fit of "
            f"{type(model).__name__} takes no sample_weight: its estimates would not be theirs",
            hint="give a model that takes sample_weight, or leave it out for a random forest",
        )
    return clone(model).fit(data.X_raw[rows], y[rows], sample_weight=data.weights[rows])


def _outcomes(
    data: Dataset,
    y: FloatArray,
    had: IntArray,
    K: int,
    parts: list[tuple[IntArray, IntArray]],
    regressor: Any,
) -> FloatArray:
    """Return the (n, K) outcomes that are expected under each treatment, by models of the other parts."""
    found = np.empty((len(y), K))
    for fit, held in parts:
        for k in range(K):
            own = fit[had[fit] == k]
            found[held, k] = _fitted(regressor, data, own, y).predict(data.X_raw[held])
    return found


def _propensities(
    data: Dataset, had: IntArray, K: int, parts: list[tuple[IntArray, IntArray]], given: Any, seed: int
) -> tuple[FloatArray, int]:
    """Return the (n, K) probabilities of the treatments, and how many of those that samples had were too small."""
    if given is not None and not hasattr(given, "fit"):
        stated = np.asarray(given, dtype=np.float64)
        if stated.shape != (K,) or not (stated > 0).all() or abs(float(stated.sum()) - 1.0) > SUM_OF_SHARES:
            raise DataError(
                f"propensity is {given!r}; give {K} probabilities above 0 whose sum is 1, or a classifier"
            )
        return np.broadcast_to(stated, (len(had), K)), 0
    found, model = np.empty((len(had), K)), _forest(given, seed, regression=False)
    for fit, held in parts:
        found[held] = _fitted(model, data, fit, had).predict_proba(data.X_raw[held])
    low = found[np.arange(len(had)), had] < LEAST_PROPENSITY
    return np.maximum(found, LEAST_PROPENSITY), int(low.sum())
