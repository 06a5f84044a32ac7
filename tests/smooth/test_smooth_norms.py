"""The proximal operator of both norms with bounds, against a quadratic programme."""

import numpy as np
import pytest

from mipforest import Model, solve, sum_squares
from mipforest.smooth.model import RowNorms, prox_rows


def charged(v, u, local, glob):
    sizes = np.abs(v)
    return ((v - u) ** 2).sum() / 2 + local * sizes.sum() + glob * sizes.max(axis=0).sum()


def programme(u, local, glob, caps):
    """The same minimum by Clarabel."""
    nodes, p = u.shape
    cap = np.broadcast_to(np.minimum(caps, 100.0)[:, None], u.shape)
    m = Model("prox")
    plus, minus = m.continuous("plus", (nodes, p), lower=0), m.continuous("minus", (nodes, p), lower=0)
    level, v = m.continuous("level", p, lower=0), m.continuous("v", (nodes, p), lower=-cap, upper=cap)
    m.add("parts", plus - minus == v)
    for j in range(p):
        m.add(f"level{j}", (plus + minus)[:, j] <= level[j])
    squares = sum_squares(v) / 2 - (u * v).sum() + float((u**2).sum()) / 2
    m.minimize(squares + local * (plus + minus).sum() + glob * level.sum())
    return solve(m, "clarabel").objective


@pytest.mark.parametrize("seed", range(6))
def test_the_proximal_point_is_that_of_a_quadratic_programme(seed):
    rng = np.random.default_rng(seed)
    u = rng.normal(0, 1.5, (rng.integers(1, 5), 3))
    local, glob = rng.choice([0.0, 0.1, 0.5]), rng.choice([0.0, 0.2, 1.0])
    caps = rng.choice([1.0, 0.4, np.inf], len(u))
    v = prox_rows(u, local, glob, caps)
    assert (np.abs(v) <= caps[:, None]).all()
    # The interior point stops at its tolerance, 1e-8 of the value.
    assert charged(v, u, local, glob) <= programme(u, local, glob, caps) + 1e-7


def test_the_proximal_point_is_the_best_of_all_levels():
    rng = np.random.default_rng(1)
    for _ in range(40):
        u = rng.normal(0, 1.5, (rng.integers(1, 7), 1))
        local, glob, caps = rng.uniform(0, 0.5), rng.uniform(0, 2), rng.choice([1.0, 0.4, np.inf], len(u))
        v = prox_rows(u, local, glob, caps)
        sizes = np.minimum(np.maximum(np.abs(u) - local, 0), caps[:, None])
        for level in np.linspace(0, 4, 801):
            other = np.sign(u) * np.minimum(sizes, level)
            assert charged(v, u, local, glob) <= charged(other, u, local, glob) + 1e-10


def test_what_the_l_infinity_norm_outweighs_is_zero():
    u = np.array([[0.3, 2.0], [-0.2, 1.0]])
    assert (prox_rows(u, 0.0, 0.5, np.full(2, np.inf))[:, 0] == 0).all()
    assert prox_rows(u, 0.0, 0.5, np.full(2, np.inf))[:, 1] == pytest.approx([1.5, 1.0])


def test_a_feature_stays_out_exactly_where_its_gradient_is_below_the_penalties():
    # Optimality of the zero row j with gradient G: sum_t max(|G_tj| - local, 0) <= glob, whatever the step.
    rng = np.random.default_rng(2)
    G = rng.normal(size=(5, 200))
    for local, glob, step in ((0.0, 3.5, 0.1), (0.5, 1.5, 1.0), (0.8, 1.0, 10.0)):
        stays = np.maximum(np.abs(G) - local, 0).sum(axis=0) <= glob
        moved = prox_rows(-step * G, step * local, step * glob, np.ones(5))
        assert (~moved.any(axis=0) == stays).all()
        assert 0 < stays.sum() < 200


def test_norms_run_over_the_rows_of_all_blocks():
    norms = RowNorms(("a", "at"), lam_local=1.0, lam_global=10.0)
    point = {"a": np.array([[1.0, 0.0]]), "at": np.array([[-2.0, 0.5], [0.5, 0.5]])}
    assert norms.value(point) == pytest.approx(4.5 + 10 * 2.5)
    free = norms.prox(point, 1e-3, {"a": 1.0, "at": np.inf})
    assert {name: part.shape for name, part in free.items()} == {"a": (1, 2), "at": (2, 2)}
