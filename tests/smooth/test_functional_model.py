"""Curves: which features make one, means over intervals, and the gradient in their ends."""

import numpy as np
import pytest
from test_smooth_models import assert_gradient

from formulations.sorrt_fd import SHORTEST, Curves, SOrrtFd, curves_of, gaps_of, intervals_of
from mipforest.data import DataError, Dataset
from mipforest.errors import ParameterError
from mipforest.smooth.search import on_simplex
from mipforest.trees import Curve, Topology

PLACES = np.linspace(0, 1, 30)


def frame_of(rng, names, n=25, **options):
    X = rng.normal(size=(n, len(names))).cumsum(axis=1)
    return Dataset.from_arrays(X, rng.normal(size=n), features=names, task="regression", **options)


def test_features_are_grouped_by_their_names_in_order_of_the_places():
    rng = np.random.default_rng(0)
    data = frame_of(rng, ["nir@860", "age", "nir@850", "uv@1e2", "uv@99.5", "nir@870"])
    first, second, number = curves_of(data)
    assert (first.name, first.columns, first.at) == ("nir", (2, 0, 5), (850.0, 860.0, 870.0))
    assert (second.name, second.columns, second.at) == ("uv", (4, 3), (99.5, 100.0))
    assert (number.name, number.columns, number.at) == ("age", (1,), ())
    # A curve keeps its shape: one scaling for all of its points.
    assert first.offset == data.X_raw[:, [0, 2, 5]].min()
    assert first.offset + first.scale == pytest.approx(data.X_raw[:, [0, 2, 5]].max())
    assert [curve.name for curve in curves_of(frame_of(rng, ["x0", "x1", "y"]))] == ["x", "y"]
    assert curves_of(frame_of(rng, ["850", "852", "854"]))[0].at == (850.0, 852.0, 854.0)
    assert curves_of(frame_of(rng, ["t1_a", "t2_a", "t3"]), "t{at}_a")[0].columns == (0, 1)


def test_names_of_no_curve_are_refused():
    rng = np.random.default_rng(1)
    with pytest.raises(
        DataError, match=r"no two of the 2 feature\(s\) of data .* age, height do not look like"
    ):
        curves_of(frame_of(rng, ["age", "height"]))
    with pytest.raises(DataError, match="has two features at 1; leave one out"):
        curves_of(frame_of(rng, ["u@1", "u@1.0", "u@2"]))
    with pytest.raises(ParameterError, match=r"\{at\} for the place"):
        curves_of(frame_of(rng, ["u@1", "u@2"]), "u@")


def test_means_of_lines_and_polynomials_are_exact():
    curves = Curves([Curve("x", tuple(range(30)), tuple(10 + 5 * PLACES))])
    X = np.vstack([2 * PLACES - 1, PLACES**3, np.full(30, 4.0)])
    intervals = np.array([[0.1, 0.4], [0.6, 0.6], [0.7, 1.0]])
    means = curves.means(X, intervals)
    low, high = intervals[[0, 2]].T
    assert means[0] == pytest.approx(2 * intervals.mean(axis=1) - 1, abs=1e-12)
    assert means[1, [0, 2]] == pytest.approx((high**4 - low**4) / 4 / (high - low), abs=1e-12)
    assert means[1, 1] == pytest.approx(0.6**3, abs=1e-12)
    assert means[2] == pytest.approx(4.0)


@pytest.mark.parametrize("degree", [1, 3])
def test_the_derivative_in_the_ends_has_no_jump_where_an_interval_becomes_a_point(degree):
    rng = np.random.default_rng(2)
    curves = Curves([Curve("x", tuple(range(30)), tuple(PLACES))], degree)
    X, weights = rng.normal(size=(8, 30)), rng.normal(size=(8, 1))
    for length, tolerance in ((0.2, 1e-6), (SHORTEST, 1e-4)):
        ends = np.array([0.31, 0.31 + length])

        def value(at):
            return float((weights * curves.means(X, at.reshape(1, 2))).sum())

        step = 1e-6 if length > 0.1 else 1e-2 * SHORTEST
        slope = curves.in_ends(X, ends.reshape(1, 2), weights)
        if length > 0.1:
            differences = [
                (value(ends + step * unit) - value(ends - step * unit)) / (2 * step) for unit in np.eye(2)
            ]
            assert slope == pytest.approx(differences, rel=tolerance)
        at_once = curves.in_ends(X, np.array([[0.31, 0.31 + 0.99 * SHORTEST]]), weights)
        just = curves.in_ends(X, np.array([[0.31, 0.31 + 1.01 * SHORTEST]]), weights)
        assert at_once == pytest.approx(just, abs=1e-3 * np.abs(at_once).max() + 1e-6)


@pytest.mark.parametrize(
    ("intervals", "extra"), [(1, {}), (3, {"lam_length": 0.2, "interpolation": "linear"})]
)
def test_gradients_are_central_differences(intervals, extra):
    rng = np.random.default_rng(3)
    names = [f"u@{k}" for k in range(12)] + [f"v@{k}" for k in range(9)] + ["age"]
    data = frame_of(rng, names)
    model = SOrrtFd(gamma=6.0, intervals=intervals, ridge=0.01, group="age>0", **extra).bind(
        data, Topology(2)
    )
    model = model.smooth
    point = {name: part + 0.05 * rng.random(part.shape) for name, part in model.random_point(rng).items()}
    point["gaps"] /= (
        point["gaps"].sum() * 1.05
    )  # central differences leave the simplex; the model is smooth there
    assert_gradient(model.smooth_value, point)
    for k in range(2):
        assert_gradient(lambda at, k=k: model.constraint_values(at)[k], point)
    assert_gradient(model.reduced, {name: point[name] for name in ("a", "mu", "gaps")})


def test_lengths_part_the_domain():
    intervals = np.array([[0.1, 0.3], [0.3, 0.9]])
    gaps = gaps_of(intervals)
    assert gaps[0] == pytest.approx([0.1, 0.2, 0.0, 0.6, 0.1])
    assert intervals_of({"gaps": gaps}) == pytest.approx(intervals)
    rows = np.random.default_rng(4).normal(size=(20, 5))
    nearest = on_simplex(rows)
    assert nearest.sum(axis=1) == pytest.approx(np.ones(20))
    assert (nearest >= 0).all()
    # The nearest point: nothing is gained towards any corner.
    for row, found in zip(rows, nearest, strict=True):
        assert ((np.eye(5) - found) @ (row - found)).max() < 1e-12
