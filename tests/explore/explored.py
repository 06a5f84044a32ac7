"""Small problems to explore, and the state of their pages."""

import time

import numpy as np

import mipforest
from mipforest.data import Dataset

#: Seconds that a search of a small problem may take, compiling included.
PATIENCE = 60


def built(depth=2, n=60, model="oct", names=("a", "b", "c")):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (n, len(names))).astype(float)
    y = X[:, 0] + X[:, 1] + rng.integers(0, 6, n)
    if model == "ort":
        data = Dataset.from_arrays(X, y, features=list(names), task="regression")
    else:
        data = Dataset.from_arrays(X, (y > 9).astype(int), features=list(names))
    return mipforest.get_formulation(model)(alpha=0.01).build(data, depth)


def ended(explorer):
    """The state once nothing is searched for."""
    until = time.monotonic() + PATIENCE
    while (state := explorer.state())["busy"]:
        assert time.monotonic() < until
        time.sleep(0.02)
    return state
