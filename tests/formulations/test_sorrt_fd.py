"""S-ORRT-FD: the interval that tells the target is found, trees and points correspond, and what is refused."""

import numpy as np
import pytest

from formulations.sorrt import SOrrt
from formulations.sorrt_fd import SOrrtFd
from mipforest import FunctionalTreeRegressor, load
from mipforest.data import Dataset
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem_data import StartError
from mipforest.trees import FunctionalTree, Topology, TreeFileError, from_dict, to_dict


@pytest.fixture(scope="module")
def curves():
    return load("synthetic:curves,n=120,points=30,noise=0.05")


@pytest.fixture(scope="module")
def found(curves):
    return SOrrtFd(n_starts=2).build(curves, 1).solve(seed=0)


def test_the_interval_that_tells_the_target_is_found(curves, found):
    assert found.verified
    assert found.status == "best_found"
    told = found.to_dict()
    (low, high) = told["chosen_intervals"]["x"][0]
    assert low == pytest.approx(0.3, abs=0.02)
    assert high == pytest.approx(0.45, abs=0.02)
    assert told["length_sparsity"] == pytest.approx(1 - (high - low))
    assert told["train_r2"] > 0.99
    other = load("synthetic:curves,n=120,points=30,noise=0.05,seed=1")
    assert found.measures(other)["r2"] > 0.99


def test_trees_and_points_correspond_and_the_definition_has_the_models_value(curves):
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(
        np.column_stack([curves.X_raw, rng.normal(5, 2, curves.n)]),
        curves.y,
        features=[*curves.features.labels, "age"],
        task="regression",
    ).with_weights(np.arange(curves.n) % 3 + 1)
    formulation = SOrrtFd(
        gamma=7.0, intervals=3, lam_local=0.1, lam_global=0.2, lam_length=0.3, ridge=0.01, y_scale="minmax"
    )
    instance = formulation.bind(data, Topology(2))
    point = instance.smooth.random_point(rng)
    tree = formulation.tree_of(point, instance)
    again = formulation.point_of(tree, instance)
    for name, values in point.items():
        assert again[name] == pytest.approx(values, abs=1e-9)
    assert formulation.evaluate(tree, instance) == pytest.approx(instance.smooth.objective(point), rel=1e-9)
    # In a file, and for other samples with another scaling of the curves, it stays the same function.
    saved = tree.with_scaling(data.encoding.offset, data.encoding.scale)
    read = from_dict(to_dict(saved))
    assert isinstance(read, FunctionalTree)
    assert (read.predict(data.X_raw) == saved.predict(data.X_raw)).all()
    part = data.take(range(40)).with_scaling("minmax")
    elsewhere = formulation.build(part, 2)
    moved = formulation.point_of(elsewhere.start_tree(read), elsewhere.instance)
    same = formulation.tree_of(moved, elsewhere.instance)
    assert same.predict(part.X) == pytest.approx(saved.predict(part.X_raw), abs=1e-9)


def test_a_tree_of_fewer_intervals_is_a_start(curves, found):
    two = SOrrtFd(n_starts=1, intervals=2, stages=1).build(curves, 1).solve(start=found.tree, time_limit=None)
    assert two.verified
    assert two.objective <= found.objective + 1e-9
    with pytest.raises(ParameterError, match="looks at 2 intervals, and this one may at 1"):
        SOrrtFd(n_starts=1).build(curves, 1).solve(start=two.tree)
    plain = SOrrt(n_starts=1, stages=1).build(curves, 1).solve(time_limit=0)
    with pytest.raises(
        (ParameterError, StartError), match="looks at no intervals of x; give a tree of s-orrt-fd"
    ):
        SOrrtFd(n_starts=1).build(curves, 1).solve(start=plain.tree)


def test_constant_curves_are_the_model_of_vectors():
    rng = np.random.default_rng(2)
    values, y = rng.random((60, 2)), rng.normal(size=60)
    X = np.repeat(values, 5, axis=1)
    names = [f"{curve}@{k}" for curve in "uv" for k in range(5)]
    many = Dataset.from_arrays(X, y, features=names, task="regression")
    few = Dataset.from_arrays(values, y, task="regression")
    functional = SOrrtFd(gamma=20.0, ridge=1e-3).bind(many, Topology(1)).smooth
    vector = SOrrt(gamma=20.0, ridge=1e-3).bind(few, Topology(1)).smooth
    point = functional.random_point(rng)
    plain = {name: part for name, part in point.items() if name != "gaps"}
    assert functional.objective(point) == pytest.approx(vector.objective(plain), rel=1e-9)


def test_long_intervals_and_unused_curves_are_penalised(curves, found):
    short = SOrrtFd(n_starts=1, stages=1, lam_length=1.0).build(curves, 1).solve(start=found.tree)
    assert short.verified
    assert short.to_dict()["length_sparsity"] > found.to_dict()["length_sparsity"]
    sparse = SOrrtFd(n_starts=1, stages=1, lam_global=5.0).build(curves, 1).solve()
    assert sparse.verified
    assert sparse.to_dict()["global_sparsity"] == 1.0


def test_a_regressor_of_curves(curves):
    fitted = FunctionalTreeRegressor(depth=1, n_starts=1, interpolation="linear").fit(curves.X_raw, curves.y)
    assert fitted.verified_
    assert list(fitted.intervals_) == ["x"]
    (low, high) = fitted.intervals_["x"][0]
    assert 0 <= low <= high <= 29
    assert fitted.length_sparsity_ == pytest.approx(1 - (high - low) / 29)


def test_files_of_trees_of_curves_are_checked(found):
    content = to_dict(found.tree)
    for key, value, reason in (
        ("curves", {}, "'curves' must be a list of objects"),
        ("curves", [{"name": "x", "columns": ["a"]}], "needs a 'name' and a list of 'columns'"),
        ("curves", [{**content["curves"][0], "scale": 0}], "a scale above 0"),
        ("intervals", [[0.9, 0.1]], "intervals in order within 0 to 1"),
        ("heights", None, "heights"),
    ):
        with pytest.raises(TreeFileError, match=reason):
            from_dict({**content, key: value})
