r"""S-ORRT: sparse optimal randomised regression trees with linear leaves.

Source: R. Blanquero, E. Carrizosa, C. Molero-Rio, D. Romero Morales, *On sparse optimal regression trees*, EJOR 299,
2022.

Branch nodes send samples left with the probabilities of :mod:`formulations.orct`. Leaf t predicts
:math:`\varphi_{it} = \tilde a_t^\top x_i - \tilde\mu_t`, the tree :math:`\varphi_i = \sum_t P_{it} \varphi_{it}`:

.. math::

    \min\; \tfrac1n \sum_i (\varphi_i - y_i)^2
      + \lambda^L \sum_j \lVert (a_{j\cdot}, \tilde a_{j\cdot}) \rVert_1
      + \lambda^G \sum_j \lVert (a_{j\cdot}, \tilde a_{j\cdot}) \rVert_\infty
      + r \lVert (\tilde a, \tilde\mu) \rVert^2, \qquad a, \mu \in [-1, 1]

The norms of feature j run over its split coefficients and its slopes in the leaves. The ridge r is not in the paper:
it keeps leaves determined that few samples reach. Targets are scaled first, and penalties are relative to that;
predictions are in original units. Of a group S of samples, one of these may be asked:

.. math::

    |\mathrm{mean}_S\, \varphi - \mathrm{mean}\, \varphi| \le C, \qquad
    |\mathrm{MSE}_S - \mathrm{MSE}| \le C, \qquad \mathrm{MSE}_S \le C
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.data import DataError, Dataset
from mipforest.errors import closest
from mipforest.problem.parameters import ParameterError, parameter
from mipforest.smooth.formulation import SmoothFormulation, SmoothInstance
from mipforest.smooth.losses import GroupLimit, SquaredError
from mipforest.smooth.model import Point, RowNorms, SmoothModel, uniform
from mipforest.trees import RandomizedTree, Topology, Tree

_SIGNS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


@dataclass(frozen=True, kw_only=True)
class SOrrt(SmoothFormulation):
    """Sparse optimal randomised regression tree with linear leaves.

    Parameters
    ----------
    lam_local, lam_global
        Penalties of the l1 and l-infinity norms of a feature's coefficients, in splits and leaves, for scaled targets.
    y_scale
        How targets are scaled: to mean 0 and variance 1, to [-1, 1], or not.
    ridge
        Penalty of the squares of slopes and intercepts.
    leaf_bound
        Largest size of a slope or an intercept, for scaled targets; 0 for no bound.
    group
        Samples of whom something is asked, by a feature in original units: ``B>396.2``.
    asked
        What: ``mean`` and ``error`` within ``limit`` of those of all samples, ``cost``: an error of at most ``limit``.
    limit
        In units of the target (``mean``), or their squares.
    """

    name = "s-orrt"
    summary = "sparse randomised regression tree: smooth, oblique splits, linear leaves"
    source = "Blanquero et al. 2022, EJOR 299"
    task = "regression"
    variants = ("paper",)

    lam_local: float = parameter(0.0, "penalty of the l1 norms: features per split and leaf", at_least=0)
    lam_global: float = parameter(0.0, "penalty of the l-infinity norms: features of the tree", at_least=0)
    y_scale: str = parameter("standard", "how targets are scaled", choices=("standard", "minmax", "none"))
    ridge: float = parameter(1e-3, "penalty of the squares of slopes and intercepts", at_least=0)
    leaf_bound: float = parameter(0.0, "largest size of slopes and intercepts; 0 for no bound", at_least=0)
    group: str = parameter("", "samples of whom something is asked: FEATURE>VALUE, or <, >=, <=")
    asked: str = parameter("mean", "what is asked of the group", choices=("mean", "error", "cost"))
    limit: float = parameter(0.0, "largest difference to all samples, or largest error", at_least=0)

    def check_data(self, data: Dataset, topology: Topology) -> None:
        if data.task != "regression":
            raise DataError(
                f"{self.name} predicts a number, but the target of {data.name} has the classes "
                f"{', '.join(data.classes[:8])}; use a classification model (s-orct)"
            )
        if self.group:
            members = self.members(data)
            if members.all() or not members.any():
                raise ParameterError(
                    f"parameter group is {self.group!r}, which holds for {int(members.sum())} of the {data.n} samples "
                    f"of {data.name}; choose a value that parts them"
                )

    def stages_of(self, start: int) -> int:
        # Regressions lose nothing at small gamma, and stall at large ones: every start climbs.
        return self.stages

    def members(self, data: Dataset) -> BoolArray:
        """Return (n,) who is in the group.

        Raises
        ------
        ParameterError
            If ``group`` is no condition on a feature of the data.
        """
        found = re.fullmatch(r"(.+?)(<=|>=|<|>)(.+)", self.group)
        try:
            name, sign, value = found.groups() if found else ("", "", "")
            number = float(value)
        except ValueError:
            raise ParameterError(
                f"parameter group is {self.group!r}; give a feature, one of <, <=, >, >= and a number, such as "
                "'B>396.2'"
            ) from None
        names = data.features.labels
        if name.strip() not in names:
            raise ParameterError(
                f"parameter group names {name.strip()!r}, which is no feature of {data.name}{closest(name, names)}"
            )
        return np.asarray(_SIGNS[sign](data.X_raw[:, names.index(name.strip())], number))

    def target_scale(self, data: Dataset) -> tuple[float, float]:
        """Return what is taken from targets, and what they are then divided by."""
        y = np.asarray(data.y, dtype=np.float64)
        if self.y_scale == "none" or y.min() == y.max():
            return 0.0, 1.0
        if self.y_scale == "minmax":
            return float(y.max() + y.min()) / 2, float(y.max() - y.min()) / 2
        mean = float(np.average(y, weights=data.weights))
        return mean, float(np.sqrt(np.average((y - mean) ** 2, weights=data.weights)))

    def group_limit(self, data: Dataset) -> GroupLimit | None:
        """Return what is asked of the group, for scaled targets; ``None`` without a group."""
        if not self.group:
            return None
        unit = self.target_scale(data)[1]
        limit = self.limit / (unit if self.asked == "mean" else unit**2)
        return GroupLimit(self.asked, self.members(data), limit)

    def _norms(self) -> RowNorms:
        return RowNorms(("a", "at"), self.lam_local, self.lam_global)

    def _loss(self, X: FloatArray, data: Dataset, topology: Topology) -> SquaredError:
        """State the loss of leaves that are linear in X (n, p_leaf)."""
        middle, unit = self.target_scale(data)
        return SquaredError(
            X=X,
            y=(np.asarray(data.y, dtype=np.float64) - middle) / unit,
            weights=uniform(data.weights),
            n_leaves=topology.n_leaves,
            ridge=self.ridge,
            bound=self.leaf_bound or np.inf,
            asked=self.group_limit(data),
        )

    def state(self, data: Dataset, topology: Topology) -> SmoothModel:
        return SmoothModel(
            X=data.X,
            depth=topology.depth,
            gamma=self.gamma,
            loss=self._loss(data.X, data, topology),
            norms=self._norms(),
        )

    def evaluate(self, tree: Tree, instance: SmoothInstance) -> float:
        # Predictions are the tree's own, in original units: they check the model's passes.
        data, norms = instance.data, self._norms()
        point = self.point_of(tree, instance)
        _, unit = self.target_scale(data)
        error = (np.asarray(self.tree_of(point, instance).predict(data.X)) - data.y) / unit
        rows = norms.rows(point)
        norm = norms.lam_local * np.abs(rows).sum() + norms.lam_global * np.abs(rows).max(axis=0).sum()
        ridge = self.ridge * float((point["at"] ** 2).sum() + (point["mut"] ** 2).sum())
        return float(np.average(error**2, weights=data.weights) + norm + ridge)

    def tree_with(self, point: Point, parts: dict[str, Any], instance: SmoothInstance) -> RandomizedTree:
        middle, unit = self.target_scale(instance.data)
        return RandomizedTree(**parts, leaf_value=middle - unit * point["mut"], leaf_w=unit * point["at"])

    def leaves_of(self, tree: RandomizedTree, instance: SmoothInstance) -> Point:
        if tree.is_classifier:
            raise ParameterError(
                f"the start tree predicts the classes {', '.join(tree.classes[:8])}, and {self.name} numbers; give a "
                "regression tree"
            )
        middle, unit = self.target_scale(instance.data)
        slopes: FloatArray = (
            np.zeros((len(tree.leaf_value), tree.n_features)) if tree.leaf_w is None else tree.leaf_w
        )
        return {"at": slopes / unit, "mut": (middle - np.asarray(tree.leaf_value, dtype=np.float64)) / unit}

    def measures(self, tree: Tree, data: Dataset, instance: SmoothInstance) -> dict[str, Any]:
        if not self.group or not (members := self.members(data)).any():
            return {}
        predicted, y = np.asarray(tree.predict(data.X_raw)), np.asarray(data.y)
        error, weights = (predicted - y) ** 2, data.weights
        return {
            "mean_prediction": float(np.average(predicted, weights=weights)),
            "mean_prediction_of_group": float(np.average(predicted[members], weights=weights[members])),
            "mse_of_group": float(np.average(error[members], weights=weights[members])),
        }
