"""Boosted trees of XGBoost; the optional package ``xgboost`` is imported here only."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles.ensemble import Adapter, MemberTree, output_variance
from mipforest.errors import EnsembleError


class XGBoost(Adapter):
    """``XGBClassifier``; after early stopping, its trees up to the best round."""

    kind = "xgboost"

    def members(self) -> tuple[MemberTree, ...]:
        """Return the trees, weighted by :func:`~mipforest.ensembles.ensemble.output_variance`.

        Raises
        ------
        EnsembleError
            If the booster is not of trees in equal standing, or splits on categories.
        """
        booster = self.estimator.get_booster()
        best_round = getattr(self.estimator, "best_iteration", None)
        if best_round is not None:
            booster = booster[: best_round + 1]
        source = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
        if source["name"] != "gbtree":
            raise EnsembleError(
                f"the XGBClassifier has the booster {source['name']!r}; only the trees of 'gbtree' can be read: "
                "fit it again with booster='gbtree'"
            )
        return tuple(map(_member_of, source["model"]["trees"]))

    def leaves(self, X: FloatArray) -> IntArray:
        """Return the (n, T) number of the leaf that each sample reaches in each tree."""
        return np.asarray(self.estimator.apply(self._named(X)), dtype=np.int64)


def _member_of(tree: dict[str, Any]) -> MemberTree:
    """Read a tree of XGBoost's JSON format.

    XGBoost sends a sample left where its single-precision value is below the threshold.
    """
    if any(tree["split_type"]):
        raise EnsembleError(
            "the XGBClassifier splits on categories; turn them into 0/1 columns before it is fitted"
        )
    left = np.array(tree["left_children"], dtype=np.int64)
    is_leaf = left < 0
    # The file writes single-precision numbers in few digits: read as double precision they would be others.
    conditions = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    mass = np.array(tree["sum_hessian"], dtype=np.float64)
    return MemberTree(
        left=left,
        right=np.array(tree["right_children"], dtype=np.int64),
        feature=np.where(is_leaf, -1, np.array(tree["split_indices"], dtype=np.int64)),
        threshold=conditions,
        weight=output_variance(conditions[is_leaf], mass[is_leaf]),
    )


def require_xgboost() -> None:
    """Refuse to go on without the package.

    Raises
    ------
    EnsembleError
        If it is not installed.
    """
    if find_spec("xgboost") is None:
        raise EnsembleError(
            "the ensemble needs the Python package xgboost; run: pip install 'mipforest[xgboost]'"
        )


def fit_xgboost(X: FloatArray, y: IntArray, *, trees: int, depth: int, seed: int) -> Any:
    """Fit with XGBoost's own settings; samples are weighted so that classes are balanced.

    One thread: the outcome then does not depend on the machine.

    Parameters
    ----------
    X, y
        (n, p) features and (n,) class numbers.
    trees, depth, seed
        Number of rounds, greatest depth of a tree, and the seed.

    Raises
    ------
    EnsembleError
        If the package is not installed.
    """
    require_xgboost()
    from xgboost import XGBClassifier

    learner = XGBClassifier(n_estimators=trees, max_depth=depth, random_state=seed, n_jobs=1)
    return learner.fit(X, y, sample_weight=compute_sample_weight("balanced", y))
