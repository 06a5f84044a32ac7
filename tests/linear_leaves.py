"""A small regression model: CART's splits, and linear leaves of least absolute error."""

from dataclasses import dataclass, replace

import numpy as np

from mipforest.heuristics.cart import cart
from mipforest.problem.formulation import Formulation


@dataclass(frozen=True, kw_only=True)
class LinearLeaves(Formulation):
    """A linear programme: the splits are fixed, only the leaves are fitted."""

    name = "linear-leaves"
    summary = "linear leaves below the splits of CART"
    source = "none"
    task = "regression"

    def declare(self, m, instance):
        data, topology = instance.data, instance.topology
        c = m.continuous("c", topology.leaves)
        beta = m.continuous("beta", (topology.leaves, data.features))
        e = m.nonnegative("e", data.samples)
        leaf = cart(data, topology).apply(data.X) - topology.n_branches
        member = np.eye(topology.n_leaves)[leaf]
        products = (member[:, :, None] * data.X[:, None, :]).reshape(data.n, -1)
        predicted = member @ c + products @ beta.reshape(products.shape[1])
        m.add("above", e >= predicted - data.y)
        m.add("below", e >= data.y - predicted)
        m.minimize(e.sum())

    def encode(self, tree, instance):
        data = instance.data
        beta = np.zeros((tree.topology.n_leaves, data.p)) if tree.leaf_w is None else tree.leaf_w
        return {"c": tree.leaf_value, "beta": beta, "e": np.abs(tree.predict(data.X) - data.y)}

    def decode(self, values, instance):
        splits = cart(instance.data, instance.topology)
        return replace(splits, leaf_value=values["c"], leaf_w=values["beta"])

    def evaluate(self, tree, instance):
        return float(np.abs(tree.predict(instance.data.X) - instance.data.y).sum())
