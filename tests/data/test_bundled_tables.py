"""Bundled tables are read without scikit-learn, and are those that it gives."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn import datasets

from mipforest.data.bundled import FEATURES, read_bundled


@pytest.mark.parametrize("name", FEATURES)
def test_tables_are_those_of_scikit_learn(name):
    known = getattr(datasets, f"load_{name}")(**({"scaled": False} if name == "diabetes" else {}))
    table = read_bundled(name)
    assert np.array_equal(table.X, known.data)  # exact: the same texts
    assert np.array_equal(table.y, known.target)
    assert list(table.features) == list(known.feature_names)
    assert list(table.classes) == [str(label) for label in getattr(known, "target_names", ())]
    assert table.y.dtype == known.target.dtype


def test_loading_one_imports_no_scikit_learn():
    code = (
        "import sys, mipforest; mipforest.load('breast_cancer'); "
        "print([name for name in ('sklearn', 'pandas', 'numba') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
