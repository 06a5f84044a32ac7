"""Routing keeps features that come once on each path, by boxes: the optimum is that of the rows."""

import numpy as np
import pandas as pd
import pytest
from routed_models import MODELS, NAMES, SAME, check_beside, refusal, solved_by_both

import mipforest
from mipforest.data import Dataset
from mipforest.problem.constraints import AtMostFeatures, Forbid, MinLeaf, OncePerPath, Recall, Split


def case(seed, n=10):
    """Return a problem in which one feature alone would do best at every node, and at times with another constraint."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 3)), 2)
    y = (X[:, 0] > 0.3) ^ (X[:, 0] > 0.7) ^ (rng.random(n) < 0.1)
    y[:2] = 0, 1
    data = Dataset.from_arrays(X, y.astype(int), features=NAMES)
    model, parameters = MODELS[seed % len(MODELS)]
    problem = mipforest.get_formulation(model)(**parameters).build(data, 2)
    problem.constrain(OncePerPath() if seed % 2 else OncePerPath(("a", "b")))
    others = [MinLeaf(2), Recall("1", 0.8), Forbid(("b",), (0,)), AtMostFeatures(2), Split("a", 0.5)]
    if seed // 5 % 2:
        problem.constrain(others[int(rng.integers(len(others)))])
    return problem


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("seed", range(60))
def test_the_matrix_solver_finds_the_same_optimum(seed):
    problem = case(seed)
    if why := refusal(problem):
        pytest.skip(why)
    result, other = solved_by_both(problem, case(seed))
    assert result.status == "optimal"
    check_beside(result, other)
    if other.status == "optimal":
        assert result.objective == pytest.approx(other.objective, rel=SAME)


def test_columns_of_several_features_are_left_to_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"site": list("nsew") * 3, "x": rng.random(12), "y": [0, 1] * 6})
    data = Dataset.from_frame(frame, "y")
    problem = mipforest.get_formulation("margot")(C=1.0).build(data, 2)
    problem.constrain(OncePerPath())
    assert "one feature of a column" in refusal(problem)
