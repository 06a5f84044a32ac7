"""The tree of fitted hyperplanes that a local search begins with."""

import numpy as np
import pytest
from tolerance import at_least, at_most, same

from formulations.oct_h import OctH
from formulations.ort import OrtH
from mipforest.data import Dataset
from mipforest.searches.local import LocalProblem
from mipforest.searches.local.search import FEW, fitted_tree


def majority(n=160, p=9, seed=0):
    """Samples whose class is the sign of a sum of many features: no few of them say it."""
    X = np.random.default_rng(seed).choice([0.0, 1.0], (n, p))
    return Dataset.from_arrays(X, (X.sum(axis=1) > p / 2).astype(int))


def fitted(problem, depth):
    return fitted_tree(LocalProblem.of(problem.structure, problem.data.X), depth, seed=0, deadline=np.inf)


def test_many_features_are_found_at_once():
    problem = OctH(alpha=0.05).build(majority(), depth=2)
    tree = fitted(problem, 2)
    assert np.count_nonzero(tree.w[0]) == 9
    assert not tree.w[1:].any()
    result = problem.solve("local-search", solver_options={"starts": 1, "kicks": 1})
    assert same(result.objective, 9 * 0.05)  # no errors
    assert result.verified


@pytest.mark.parametrize("seed", range(12))
def test_splits_keep_margin_leaf_sizes_and_features(seed):
    rng = np.random.default_rng(seed)
    X, kind, most = rng.random((60, 4)), (OctH, OrtH)[seed % 2], (0, 2)[seed // 2 % 2]
    score = X @ rng.normal(size=4) + 0.1 * rng.normal(size=60)
    y = score if kind is OrtH else np.digitize(score, np.quantile(score, [0.3, 0.6])[: 1 + seed % 3])
    data = Dataset.from_arrays(X, y, weights=rng.choice([1.0, 2.0], 60), task=kind.task)
    problem = kind(N_min=5, max_features=most, mu=0.01).build(data, depth=2)
    tree, here = fitted(problem, 2), {0: np.arange(60)}
    assert tree.w[0].any()
    for t in range(3):
        members = here.pop(t, np.array([], dtype=int))
        if not tree.w[t].any():
            continue
        scores = problem.data.X[members] @ tree.w[t] + tree.b[t]
        right = scores >= 0
        assert same(np.abs(tree.w[t]).sum(), 1.0)
        assert at_least(scores[right].min() - scores[~right].max(), 0.01)
        assert at_least(np.minimum(right.sum(), (~right).sum()), 5)
        assert at_most(np.count_nonzero(tree.w[t]), most or 4)
        here[2 * t + 1], here[2 * t + 2] = members[~right], members[right]


def test_there_is_none_where_no_split_pays_or_samples_are_few():
    assert fitted(OctH(alpha=0.5).build(majority(), depth=1), 1) is None
    assert fitted(OctH().build(majority(FEW - 1), depth=1), 1) is None
