"""Linear leaves: gradients, exact least squares, limits for a group, and where the mean is stationary."""

from dataclasses import replace

import numpy as np
import pytest
from test_smooth_models import assert_gradient
from tolerance import less

from mipforest.smooth.losses import GroupLimit, SquaredError
from mipforest.smooth.model import RowNorms, SmoothModel, uniform
from mipforest.smooth.search import augmented, quasi_newton

#: Blocks of the branch nodes.
BRANCHES = ("a", "mu")


def never():
    return False


def error_model(rng, *, n=40, p=3, depth=2, gamma=8.0, lam_local=0.0, lam_global=0.0, **loss):
    X = rng.random((n, p))
    given = {"y": rng.normal(size=n), "weights": uniform(rng.uniform(0.5, 2, n)), **loss}
    return SmoothModel(
        X=X,
        depth=depth,
        gamma=gamma,
        loss=SquaredError(X=X, n_leaves=2**depth, **given),
        norms=RowNorms(("a", "at"), lam_local, lam_global),
    )


def any_point(model, rng):
    return {name: part + 0.1 * rng.normal(size=part.shape) for name, part in model.random_point(rng).items()}


@pytest.mark.parametrize("kind", ["mean", "error", "cost"])
def test_gradients_of_the_error_and_of_what_is_asked_of_a_group_are_central_differences(kind):
    rng = np.random.default_rng(0)
    for gamma in (1.0, 16.0):
        model = error_model(
            rng, gamma=gamma, ridge=0.01, asked=GroupLimit(kind, np.arange(40) % 3 == 0, 0.05)
        )
        point = any_point(model, rng)
        assert_gradient(model.smooth_value, point)
        for k in range(len(model.loss.constraints)):
            assert_gradient(lambda at, m=model, k=k: m.constraint_values(at)[k], point)


def test_the_gradient_at_the_best_leaves_is_that_of_the_best_value_also_under_a_limit_of_the_mean():
    rng = np.random.default_rng(1)
    for asked in (None, GroupLimit("mean", np.arange(40) < 10, 0.0)):
        model = error_model(rng, ridge=1e-3, asked=asked)
        point = model.random_point(rng)
        assert_gradient(model.reduced, {name: point[name] for name in BRANCHES})
        assert_gradient(model.reduced, {name: point[name] for name in (*BRANCHES, "at")})
        if asked:
            assert model.violation(model.completed({name: point[name] for name in (*BRANCHES, "at")})) < 1e-9
            assert model.violation(point) < 1e-9


def test_leaves_of_least_squares_have_no_gradient_and_those_of_equal_splits_are_ordinary_least_squares():
    rng = np.random.default_rng(2)
    model = error_model(rng)
    slope = model.smooth_value(model.random_point(rng))[1]
    assert max(np.abs(slope[name]).max() for name in ("at", "mut")) < 1e-8
    even = model.with_best_leaves({"a": np.zeros((3, 3)), "mu": np.zeros(3)})
    root = np.sqrt(model.loss.weights)
    design = np.column_stack([model.X, np.ones(40)]) * root[:, None]
    rest = np.linalg.lstsq(design, root * model.loss.y, rcond=None)[1]
    assert model.objective(even) == pytest.approx(float(rest[0]), rel=1e-9)


def test_bounded_leaves_are_the_best_within_their_bounds():
    rng = np.random.default_rng(3)
    model = error_model(rng, bound=0.3)
    point = model.random_point(rng)
    assert max(np.abs(point[name]).max() for name in ("at", "mut")) <= 0.3
    best = model.objective(point)
    for _ in range(200):
        near = {name: point[name] + 0.02 * rng.normal(size=point[name].shape) for name in ("at", "mut")}
        assert (
            model.objective({**point, **{n: np.clip(v, -0.3, 0.3) for n, v in near.items()}}) >= best - 1e-9
        )


def covariances(model):
    centred = model.loss.y - model.loss.weights @ model.loss.y
    return (model.loss.weights * centred) @ model.X


def mean_tree(model, mu):
    """The empty tree that predicts the mean, whichever leaf a sample comes to."""
    mean = float(model.loss.weights @ model.loss.y)
    return {"a": np.zeros((3, 3)), "mu": mu, "at": np.zeros((4, 3)), "mut": np.full(4, -mean)}


def test_the_gradient_of_the_mean_is_that_of_covariances():
    rng = np.random.default_rng(4)
    model = error_model(rng)
    point = mean_tree(model, rng.uniform(-0.5, 0.5, 3))
    reached = model.route(point).leaves[:, 0]
    slope = model.smooth_value(point)[1]
    assert slope["at"] == pytest.approx(-2 * np.outer(reached, covariances(model)), abs=1e-12)
    assert np.abs(slope["at"]).sum(axis=0) == pytest.approx(2 * np.abs(covariances(model)), abs=1e-12)
    assert max(np.abs(slope[name]).max() for name in ("a", "mu", "mut")) < 1e-12


@pytest.mark.parametrize(("share", "stays"), [(1.01, True), (0.9, False)])
def test_the_mean_is_stationary_from_the_threshold_on(share, stays):
    rng = np.random.default_rng(5)
    model = error_model(rng)
    point = mean_tree(model, rng.uniform(-0.1, 0.1, 3))
    norms = RowNorms(("a", "at"), lam_global=share * 2 * np.abs(covariances(model)).max())
    slope = model.smooth_value(point)[1]
    moved = norms.prox(
        {name: point[name] - 0.1 * slope[name] for name in ("a", "at")}, 0.1, {"a": 1.0, "at": np.inf}
    )
    assert (not moved["a"].any() and not moved["at"].any()) == stays


def test_slopes_with_penalties_are_those_of_a_long_descent():
    rng = np.random.default_rng(6)
    model = error_model(rng, lam_local=0.01, lam_global=0.05, ridge=1e-3)
    point = model.random_point(rng)
    routing = model.route(point)
    better = model.completed(
        {
            name: part
            for name, part in model.loss.penalised(routing, point, model.norms).items()
            if name != "mut"
        }
    )
    assert less(model.objective(better), model.objective(point))
    slope = model.smooth_value(better)[1]["at"]
    for step in (1e-3, 1e-2):
        for _ in range(100):
            near = model.completed(
                {
                    **{n: point[n] for n in BRANCHES},
                    "at": better["at"] - step * slope + step * rng.normal(size=slope.shape),
                }
            )
            assert model.objective(near) >= model.objective(better) - 1e-9


@pytest.mark.parametrize("kind", ["error", "cost"])
def test_limits_of_errors_are_kept(kind):
    rng = np.random.default_rng(7)
    group = np.arange(40) % 4 == 0
    free = error_model(rng, depth=1, gamma=4.0, ridge=1e-3)
    found = quasi_newton(free, free.random_point(rng), never)
    loss = free.loss
    errors = (loss.predictions(free.route(found), found)[1] - loss.y) ** 2
    own = uniform(np.where(group, loss.weights, 0.0)) @ errors
    limit = 0.5 * (own if kind == "cost" else abs(own - loss.weights @ errors))
    held = replace(
        free,
        loss=SquaredError(
            X=loss.X,
            y=loss.y,
            weights=loss.weights,
            n_leaves=2,
            ridge=1e-3,
            asked=GroupLimit(kind, group, limit),
        ),
    )
    assert held.violation(found) > 0
    again = augmented(held, found, never)
    assert held.violation(again) <= 1e-6
    assert held.objective(again) >= free.objective(found) - 1e-9


def test_normal_equations_are_the_same_pair_by_pair_and_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    loss = SquaredError(
        X=rng.random((50, 3)), y=rng.random(50), weights=np.full(50, 0.02), n_leaves=4, ridge=0.0
    )
    P = rng.dirichlet(np.ones(4), 50).T
    at_once = loss._normal_equations(P)
    monkeypatch.setattr("mipforest.smooth.losses.MANY_SHARED", 2.0)
    for whole, paired in zip(at_once, loss._normal_equations(P), strict=True):
        assert whole == pytest.approx(paired)
