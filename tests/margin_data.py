"""Data sets, trees and the paper's splits for tests of the MARGOT family."""

from dataclasses import replace

import numpy as np

from mipforest.data import Dataset, load
from mipforest.trees import Topology, Tree

#: Data set, C by level, value of the paper's local SVM start (its table 11), plain SVM value of the root.
PAPER_STARTS = [
    ("breast_cancer_diagnostic", 1.0, 71.326, 55.504),
    ("breast_cancer_wisconsin", 1e2, 5250.545, 3051.34),
    ("climate_model", 1.0, 94.140, 58.167),
    ("cleveland", 0.1, 18.480, 11.083),
    ("ionosphere", 10.0, 768.962, 493.116),
]


def random_data(seed, n, p, *, name="random"):
    """Two overlapping classes that no hyperplane separates."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = (np.sin(5 * X[:, 0]) + X[:, -1] + 0.3 * rng.standard_normal(n) > 0.7).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, name=name)


def paper_split(folder, name):
    """The training part that the MARGOT paper uses: 80%, stratified, seed 0, scaled to [0, 1]."""
    data = load(str(folder / f"{name}.csv"), target="target", task="classification")
    train, _ = data.split(0.2, seed=0)
    if name == "cleveland":
        train = train.binarise("0")
        # Class "0" is the negative one in the paper.
        train = Dataset.from_arrays(train.X_raw, 1 - train.y, name=name)
    return train


def random_tree(rng, data, depth, *, epsilon, budget=None, bound=2.0):
    """A random tree within the limits of the MARGOT models: small weights, no sample between the sides."""
    from mipforest.trees.sides import into_a_gap

    topology = Topology(depth)
    p = data.X.shape[1]
    w = rng.uniform(-bound, bound, (topology.n_branches, p))
    w[rng.random(topology.n_branches) < 0.2] = 0.0
    if budget is not None:
        for t in range(topology.n_branches):
            w[t, rng.permutation(p)[budget:]] = 0.0
    b = np.where(
        w.any(axis=1), -(w @ data.X[rng.integers(len(data.X))]), rng.choice([-1.0, 1.0], topology.n_branches)
    )
    for t in topology.upper_branches:
        b[t] += into_a_gap(data.X @ w[t] + b[t], epsilon)
    leaves = np.tile([0, 1], topology.n_leaves // 2)
    return Tree(depth, w, b, leaves, tuple(data.classes), tuple(data.features.labels))


def with_gaps_everywhere(tree, data, epsilon):
    """The same tree, no sample between the sides at the last level either: what counting errors needs."""
    from mipforest.trees.sides import into_a_gap

    scores = tree.scores(data.X)
    return replace(tree, b=tree.b + [into_a_gap(scores[:, t], epsilon) for t in range(len(tree.w))])
