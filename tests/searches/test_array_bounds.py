"""Compiled loops read and write inside their arrays: Numba checks every index, in a process of its own."""

import os
import subprocess
import sys

import pytest

SOLVES = """
import numpy as np
from mipforest import get_formulation
from mipforest.data import Dataset

rng = np.random.default_rng(0)
X = rng.uniform(size=(60, 3)).round(2)
label = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(60) > 0.7, "a", "b")
data = Dataset.from_arrays(X, label)
numbers = Dataset.from_arrays(X, X[:, 0] * X[:, 1])
rewards = Dataset.from_arrays(X, rewards=rng.standard_normal((60, 3)))
for name, parameters, samples, depth, search in (
    ("margot", {"C": 10.0}, data, 2, "routing"),
    ("hfs-margot", {"C": 10.0, "B": 1}, data, 2, "routing"),
    ("sfs-margot", {"C": 2.0, "B": 1, "alpha": 0.5}, data, 2, "routing"),
    ("olct", {}, data, 2, "routing"),
    ("oct", {"alpha": 0.01}, data, 3, "exact-search"),
    ("ort", {"alpha": 0.01}, numbers, 2, "exact-search"),
    ("policy", {}, rewards, 2, "exact-search"),
    ("oct-h", {"alpha": 0.01}, data, 2, "oblique-search"),
    ("miret", {"alpha": 0.01, "ensemble": "random-forest:trees=5,seed=0"}, data, 3, "oblique-search"),
    ("oct-h", {"alpha": 0.01}, data, 3, "local-search"),
):
    result = get_formulation(name)(**parameters).build(samples, depth).solve(search, time_limit=3, threads=1)
    assert result.tree is not None, name
    print(name, search, result.status, flush=True)
"""


@pytest.mark.slow
def test_no_index_is_out_of_bounds(tmp_path):
    pytest.importorskip("numba")
    told = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SOLVES],
        env=os.environ | told,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
