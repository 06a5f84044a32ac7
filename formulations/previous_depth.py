"""Start from the solution of the same model with one level less (Dunn 2018, section 2.2, on warm starts)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.problem.formulation import Formulation
from mipforest.problem.instance import Instance
from mipforest.trees import Tree

#: Seconds for the model with one level less.
TIME_LIMIT = 20.0


def previous_depth(formulation: Formulation, instance: Instance) -> Tree:
    """Solve the model of depth D - 1 and give its tree (for scaled features) one more level without splits.

    At depth 1 there is no such model: the formulation's CART start is given.
    """
    depth = instance.topology.depth
    if depth == 1:
        return formulation.start("cart", instance)
    result = formulation.build(instance.data, depth - 1).solve(time_limit=TIME_LIMIT)
    if result.tree is None:
        return formulation.start("cart", instance)
    return deepened(result.tree.unscaled())


def deepened(fitted: Tree) -> Tree:
    """Give the same tree one more level: former leaves become nodes without a split, which send all samples right."""
    new = fitted.topology.n_leaves
    leaf_value: FloatArray = np.repeat(fitted.leaf_value, 2).astype(float)
    return replace(
        fitted,
        depth=fitted.depth + 1,
        w=np.vstack([fitted.w, np.zeros((new, fitted.n_features))]),
        b=np.concatenate([fitted.b, np.zeros(new)]),
        leaf_value=leaf_value,
        leaf_w=None if fitted.leaf_w is None else np.repeat(fitted.leaf_w, 2, axis=0),
    )
