"""A small regression model: CART's splits, and linear leaves of least absolute error."""

from dataclasses import dataclass, replace

import numpy as np

from mipforest.heuristics.cart import cart
from mipforest.problem.formulation import Formulation
from mipforest.trees import Topology


@dataclass(frozen=True, kw_only=True)
class LinearLeaves(Formulation):
    """A linear programme: the splits are fixed, only the leaves are fitted."""

    name = "linear-leaves"
    summary = "linear leaves below the splits of CART"
    source = "none"
    task = "regression"

    def declare(self, m, data, tree, prepared):
        c = m.continuous("c", tree.leaves)
        beta = m.continuous("beta", (tree.leaves, data.features))
        e = m.nonnegative("e", data.samples)
        member = self._members(data, tree)
        products = (member[:, :, None] * data.X[:, None, :]).reshape(data.n, -1)
        predicted = member @ c + products @ beta.reshape(products.shape[1])
        m.add("above", e >= predicted - data.y)
        m.add("below", e >= data.y - predicted)
        m.minimize(e.sum())

    def encode(self, fitted, data):
        beta = np.zeros((fitted.topology.n_leaves, data.p)) if fitted.leaf_w is None else fitted.leaf_w
        return {"c": fitted.leaf_value, "beta": beta, "e": np.abs(fitted.predict(data.X) - data.y)}

    def decode(self, values, data):
        depth = len(values["c"]).bit_length() - 1
        return replace(self._splits(data, depth), leaf_value=values["c"], leaf_w=values["beta"])

    def evaluate(self, fitted, data):
        return float(np.abs(fitted.predict(data.X) - data.y).sum())

    def _members(self, data, tree):
        leaf = self._splits(data, tree.depth).apply(data.X) - tree.n_branches
        return np.eye(tree.n_leaves)[leaf]

    def _splits(self, data, depth):
        return cart(data, Topology(depth))
