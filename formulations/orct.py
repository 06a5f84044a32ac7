r"""ORCT and S-ORCT: optimal randomised classification trees, and sparse ones.

Sources: R. Blanquero, E. Carrizosa, C. Molero-Rio, D. Romero Morales, *Optimal randomized classification trees*,
Computers & OR 132, 2021; the same, *Sparsity in optimal randomized classification trees*, EJOR 284, 2020.

Branch node t sends sample i left with the probability
:math:`p_{it} = F(\tfrac1p \sum_j a_{jt} x_{ij} - \mu_t)`, :math:`F(z) = 1 / (1 + e^{-\gamma z})`; :math:`P_{it}` is the
probability of reaching leaf t, the product of these along its path. With :math:`C_{kt}` the probability that leaf t
predicts class k, and costs W,

.. math::

    \min\; & \tfrac1n \sum_i \sum_{t \in L} P_{it} \sum_k W_{y_i k} C_{kt}
      + \lambda^L \sum_j \lVert a_{j\cdot} \rVert_1 + \lambda^G \sum_j \lVert a_{j\cdot} \rVert_\infty \\
    & \sum_k C_{kt} = 1 && t \in L \\
    & \sum_{t \in L} C_{kt} \ge 1 && \text{each class } k \text{ (coverage)} \\
    & \sum_{i: y_i = k} \sum_t P_{it} C_{kt} \ge \rho_k |I_k| && \text{each class with a rate} \\
    & a \in [-1, 1]^{p \times |B|},\; \mu \in [-1, 1]^{|B|},\; C \ge 0

For fixed splits the problem in C is a transportation problem, so that without rates leaves predict one class each
(theorem 2.1). Sample weights take the place of 1/n, divided by their sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.leaves import check_class_data
from mipforest.data import DataError, Dataset
from mipforest.errors import did_you_mean
from mipforest.problem.parameters import CostMatrix, ParameterError, ParameterKind, parameter
from mipforest.smooth.formulation import SmoothFormulation, SmoothInstance
from mipforest.smooth.losses import ExpectedCost
from mipforest.smooth.model import Point, RowNorms, SmoothModel, uniform
from mipforest.trees import RandomizedTree, Topology, Tree

#: Cost of an error unless costs are given: twice the objective is then the expected share of errors.
COST = 0.5

#: The class that stands for every one in ``rates``.
EVERY = "*"


@dataclass(frozen=True, kw_only=True)
class Rates(ParameterKind):
    """Shares of the samples of classes: one for all classes, or by the name of a class."""

    name = "rate per class"

    @property
    def range(self) -> str:
        """The bounds."""
        return "0 to 1"

    def parse(self, parameter: str, text: str) -> Any:
        """Read ``0.8``, or ``sick=0.9,healthy=0.7``."""
        parts = [part.rpartition("=") for part in text.split(",")]
        try:
            return self.check(parameter, {name.strip() or EVERY: float(value) for name, _, value in parts})
        except ValueError as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError(
                f"parameter {parameter}={text!r} is no {self.name}; give one such as 0.8, or several such as "
                "sick=0.9,healthy=0.7"
            ) from None

    def check(self, parameter: str, value: Any) -> dict[str, float] | None:
        """Return the rates by class; one number is that of :data:`EVERY` class, ``None`` is none."""
        given = {} if value is None else value if isinstance(value, Mapping) else {EVERY: value}
        for name, rate in given.items():
            number = isinstance(rate, int | float | np.number) and not isinstance(rate, bool)
            if not number or not 0 <= rate <= 1:
                raise ParameterError(
                    f"parameter {parameter} is {rate!r} for {'every class' if name == EVERY else repr(name)}; "
                    "give a share from 0 to 1"
                )
        return {str(name): float(rate) for name, rate in given.items()} or None


@dataclass(frozen=True, kw_only=True)
class Orct(SmoothFormulation):
    """Optimal randomised classification tree with oblique splits.

    Parameters
    ----------
    costs
        Cost of predicting the class of a column for a sample of the class of a row: K rows, or a .csv file of them;
        0.5 per error unless given.
    coverage
        Whether every class must have leaves whose probabilities of it sum to 1 at least.
    rates
        Share of the training samples that must be expected to be predicted right, by class or for all.
    """

    name = "orct"
    summary = "optimal randomised classification tree: smooth, oblique splits, any number of classes"
    source = "Blanquero et al. 2021, Computers & OR 132"
    task = "classification"
    variants = ("paper",)

    costs: CostMatrix = parameter(
        None, "cost of predicting (column) for a class (row); 0.5 per error if not given"
    )
    coverage: bool = parameter(True, "whether every class must have leaves of its own")
    rates: Mapping[str, float] | None = parameter(
        None, "least expected share of right predictions, one or by class: sick=0.9,healthy=0.7", kind=Rates()
    )

    def check_data(self, data: Dataset, topology: Topology) -> None:
        check_class_data(self.name, data, self.costs)
        if self.coverage and len(data.classes) > topology.n_leaves:
            raise DataError(
                f"{data.name} has {len(data.classes)} classes, and a tree of depth {topology.depth} has "
                f"{topology.n_leaves} leaves: coverage, which gives each class one, is impossible; take a larger "
                "depth, or coverage=no"
            )
        self._class_rates(data)

    def _class_rates(self, data: Dataset) -> dict[int, float]:
        """Return the rates above 0 by the number of the class."""
        given = dict(self.rates or {})
        found = dict.fromkeys(range(len(data.classes)), given.pop(EVERY, 0.0))
        for name, rate in given.items():
            if name not in data.classes:
                hint = did_you_mean(name, data.classes)
                raise ParameterError(
                    f"parameter rates names {name!r}, which is no class of {data.name}{hint}; there are "
                    f"{', '.join(data.classes[:8])}"
                )
            found[data.classes.index(name)] = rate
        return {k: rate for k, rate in found.items() if rate > 0}

    def _norms(self) -> RowNorms:
        return RowNorms(("a",))

    def _costs(self, data: Dataset) -> np.ndarray[Any, np.dtype[np.float64]]:
        K = len(data.classes)
        return COST * (1 - np.eye(K)) if self.costs is None else np.array(self.costs)

    def state(self, data: Dataset, topology: Topology) -> SmoothModel:
        return SmoothModel(
            X=data.X,
            depth=topology.depth,
            gamma=self.gamma,
            loss=ExpectedCost(
                y=data.y.astype(np.int64),
                weights=uniform(data.weights),
                costs=self._costs(data),
                n_leaves=topology.n_leaves,
                coverage=self.coverage,
                rates=self._class_rates(data),
            ),
            norms=self._norms(),
        )

    def evaluate(self, tree: Tree, instance: SmoothInstance) -> float:
        # Leaf probabilities are the tree's own: the sum over samples, leaves and classes checks the model's passes.
        data, norms = instance.data, self._norms()
        point = self.point_of(tree, instance)
        reached = self.tree_of(point, instance).leaf_probabilities(data.X)
        charged = self._costs(data)[data.y.astype(np.int64)]
        paid = np.einsum("it,ik,tk->i", reached, charged, point["C"])
        a = point["a"]
        norm = norms.lam_local * np.abs(a).sum() + norms.lam_global * np.abs(a).max(axis=0).sum()
        return float(np.average(paid, weights=data.weights) + norm)

    def tree_with(self, point: Point, parts: dict[str, Any], instance: SmoothInstance) -> RandomizedTree:
        C = point["C"]
        return RandomizedTree(**parts, leaf_value=C.argmax(axis=1), leaf_proba=C)

    def leaves_of(self, tree: RandomizedTree, instance: SmoothInstance) -> Point:
        if tree.leaf_proba is None or tree.leaf_proba.shape[1] != len(instance.data.classes):
            raise ParameterError(
                f"the start tree predicts {'values' if tree.leaf_proba is None else tree.classes}, and {self.name} on "
                f"{instance.data.name} the classes {', '.join(instance.data.classes[:8])}; give a tree of these classes"
            )
        return {"C": np.array(tree.leaf_proba)}

    def measures(self, tree: Tree, data: Dataset, instance: SmoothInstance) -> dict[str, Any]:
        proba = tree.predict_proba(data.X_raw)
        y = data.y.astype(np.int64)
        right = proba[np.arange(data.n), y]
        found = {"expected_accuracy": float(np.average(right, weights=data.weights))}
        for k, name in enumerate(data.classes):
            if (members := y == k).any():
                found[f"expected_rate_{name}"] = float(
                    np.average(right[members], weights=data.weights[members])
                )
        return found


@dataclass(frozen=True, kw_only=True)
class SOrct(Orct):
    """Sparse optimal randomised classification tree.

    Parameters
    ----------
    lam_local
        Penalty of the l1 norms: fewer features per split.
    lam_global
        Penalty of the l-infinity norms over the nodes: fewer features in the whole tree.
    gamma, and all others
        As for :class:`Orct`.
    """

    name = "s-orct"
    summary = "sparse randomised classification tree: fewer features per split and in the tree"
    source = "Blanquero et al. 2020, EJOR 284"

    lam_local: float = parameter(0.0, "penalty of the l1 norms: features per split", at_least=0)
    lam_global: float = parameter(0.005, "penalty of the l-infinity norms: features of the tree", at_least=0)

    def _norms(self) -> RowNorms:
        return RowNorms(("a",), self.lam_local, self.lam_global)
