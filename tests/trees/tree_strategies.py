"""Hypothesis strategies for trees and samples; naive routes to the same answers."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mipforest.trees import Tree

#: Doubles of all sizes that stay finite in sums of a few products; zeros, for trivial nodes, come often.
numbers = st.floats(-1e6, 1e6, allow_subnormal=False) | st.sampled_from([0.0, -0.0, 0.1, 1.0, -1.0, 1e-300])


@st.composite
def trees(
    draw,
    min_depth=1,
    max_depth=4,
    n_features=None,
    scaled=None,
    regression=False,
    linear=False,
    logistic=False,
    elements=numbers,
):
    """Trees of classes (``logistic``: of two), of constant leaves (``regression``) or linear ones."""
    regression = regression or linear
    depth = draw(st.integers(min_depth, max_depth))
    p = draw(st.integers(1, 4)) if n_features is None else n_features
    n_branches, n_leaves = 2**depth - 1, 2**depth
    classes = () if regression else ("no", "yes") if logistic else ("no", "maybe", "yes")
    leaf = elements if regression else st.integers(0, 2)
    leaf_values = hnp.arrays(float if regression else np.int64, n_leaves, elements=leaf)
    with_scaling = draw(st.booleans()) if scaled is None else scaled
    return Tree(
        depth=depth,
        w=draw(hnp.arrays(float, (n_branches, p), elements=elements)),
        b=draw(hnp.arrays(float, n_branches, elements=elements)),
        leaf_value=np.arange(n_leaves) % 2 if logistic else draw(leaf_values),
        classes=classes,
        features=tuple(f"feature {j}" for j in range(p)) if draw(st.booleans()) else (),
        offset=draw(hnp.arrays(float, p, elements=elements)) if with_scaling else None,
        scale=draw(hnp.arrays(float, p, elements=st.floats(1e-3, 1e3))) if with_scaling else None,
        leaf_w=draw(hnp.arrays(float, (n_leaves, p), elements=elements)) if linear else None,
        logistic=logistic,
    )


def samples(n_features, max_samples=8):
    """Samples of small integers, so that scores of exactly 0 occur."""
    shape = st.tuples(st.integers(0, max_samples), st.just(n_features))
    return hnp.arrays(float, shape, elements=st.integers(-3, 3).map(float))


def random_tree(depth, n_features, seed=0, **arguments):
    rng = np.random.default_rng(seed)
    n_branches = 2**depth - 1
    w, b = rng.normal(size=(n_branches, n_features)), 0.3 * rng.normal(size=n_branches)
    leaf_value = arguments.pop("leaf_value", [0, 1] * 2 ** (depth - 1))
    return Tree(depth, w, b, leaf_value, **({"classes": ("no", "yes")} | arguments))


def same(first, second):
    """Whether two trees agree in every bit."""

    def bits(x):
        return None if x is None else (x.dtype, x.shape, x.tobytes())

    return (first.depth, first.classes, first.features, first.levels, first.logistic) == (
        second.depth,
        second.classes,
        second.features,
        second.levels,
        second.logistic,
    ) and all(
        bits(getattr(first, name)) == bits(getattr(second, name))
        for name in ("w", "b", "leaf_value", "offset", "scale", "leaf_w")
    )
