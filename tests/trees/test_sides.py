"""Intercepts that keep sides however scores are summed: batch or one by one, scaled or in original units."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_strategies import random_tree

from mipforest.data import Dataset
from mipforest.trees.sides import SIDE_TOLERANCE, exact_cuts, keep_sides, midpoint, midpoints

EPSILON = 1e-3


def orders_of_summation(x, w, b, rng):
    """Scores of one sample, summed in many orders; the intercept first, last or between."""
    terms = np.append(x * w, b)
    for _ in range(20):
        total = 0.0
        for term in rng.permutation(terms):
            total += float(term)
        yield total
    yield float(x @ w + b)
    yield float(np.float64(b) + (x[None] @ w[:, None])[0, 0])


@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 30),
    power=st.integers(-9, 9),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    off=st.sampled_from([0.0, 1e-12, 1e-6, -1e-6, 0.3, -0.3]),
)
@settings(max_examples=60)
def test_no_order_of_summation_crosses(seed, p, power, share, off):
    """Samples of both sides, or of one; many of them tie for the threshold, and the wanted intercept is off."""
    rng = np.random.default_rng(seed)
    n = 12
    X, w = rng.random((n, p)) * 10.0**power, rng.normal(size=p) * 10.0**-power
    right = np.arange(n) < round(share * n)
    # The left side keeps a gap, and all scores tie at the edges of their sides, but for rounding.
    j = int(np.abs(w).argmax())
    scores = X @ w
    X[:, j] += (np.where(right, 0.0, -EPSILON) - scores) / w[j]
    b = keep_sides(X, w, right, off)
    for x, goes_right in zip(X, right, strict=True):
        assert all((score >= 0) == goes_right for score in orders_of_summation(x, w, b, rng))


@given(
    seed=st.integers(0, 10**6), depth=st.integers(1, 3), shift=st.integers(-6, 6), spread=st.integers(-9, 9)
)
@settings(max_examples=30)
def test_sides_hold_for_the_tree_in_original_units(seed, depth, shift, spread):
    """Offsets up to a million times the spread of a feature, spreads of 1e-9 to 1e9, nodes with one side only."""
    rng = np.random.default_rng(seed)
    X_raw = (rng.integers(0, 5, (15, 3)) / 4 + 10.0 ** min(shift, 6)) * 10.0**spread
    data = Dataset.from_arrays(X_raw, np.arange(15) % 2)
    tree = random_tree(depth, 3, seed)
    b = np.empty(len(tree.b))
    goes_right = np.empty((15, len(b)), dtype=bool)
    for t, w in enumerate(tree.w):
        scores = data.X @ w
        threshold = (scores.min(), np.sort(scores)[7], np.inf)[rng.integers(3)]
        goes_right[:, t] = scores >= threshold - 1e-4
        b[t] = keep_sides(data.X, w, goes_right[:, t], float(-scores[7]), sizes=data.sizes)
    weights, intercepts = replace(
        tree, b=b, offset=data.encoding.offset, scale=data.encoding.scale
    ).original_units()
    for x, x_raw, right in zip(data.X, data.X_raw, goes_right, strict=True):
        assert ((x[None] @ tree.w.T + b >= 0) == right).all()
        assert ((x_raw @ weights.T + intercepts >= 0) == right).all()


def test_the_wanted_intercept_stays_where_it_keeps_the_sides():
    X, w = np.array([[0.2], [0.8]]), np.ones(1)
    right = np.array([False, True])
    assert keep_sides(X, w, right, -0.4) == -0.4
    assert keep_sides(X, w, right, -0.9) == pytest.approx(-0.8 + SIDE_TOLERANCE, abs=1e-15)
    assert keep_sides(X, w, right, 0.0) == pytest.approx(-0.2 - SIDE_TOLERANCE, abs=1e-15)
    assert keep_sides(X[:0], w, right[:0], 7.0) == 7.0


def test_sides_closer_than_the_margin_meet_midway():
    X, w = np.array([[0.5 - 2e-10], [0.5]]), np.ones(1)
    right = np.array([False, True])
    assert keep_sides(X, w, right, 3.0) == pytest.approx(-0.5 + 1e-10, abs=1e-15)
    assert keep_sides(X, w, ~right, 3.0) == -0.5 + 2e-10  # they overlap: the right side counts


def test_an_intercept_that_costs_moves_little_for_original_units():
    X, w, sizes = np.zeros((2, 1)), np.ones(1), np.full((2, 1), 1e9)
    right = np.ones(2, dtype=bool)
    assert keep_sides(X, w, right, 0.0, sizes=sizes) > 1e-6
    assert keep_sides(X, w, right, 0.0, sizes=sizes, most=1e-8) == 1e-8


def test_thresholds_lie_between_neighbours_or_at_the_higher_one():
    values = np.array([-1.0, 0.0, 5e-324, 0.3, np.nextafter(0.3, 1), 1e300])
    found = midpoints(values)
    assert found[:5].tolist() == [-0.5, 5e-324, 0.15, np.nextafter(0.3, 1), 5e299]
    assert [midpoint(*pair) for pair in pairwise(values)] == found.tolist()


@given(
    w=st.floats(-1e6, 1e6).filter(bool),
    b=st.floats(-1e6, 1e6),
    offset=st.floats(-1e6, 1e6),
    scale=st.floats(1e-6, 1e6),
)
@settings(max_examples=200)
def test_a_cut_is_where_the_rounded_score_changes_its_sign(w, b, offset, scale):
    (cut,) = exact_cuts(*(np.array([value]) for value in (w, b, offset, scale)))
    largest = np.finfo(float).max
    at_cut, below = (cut, np.nextafter(cut, -np.inf)) if np.isfinite(cut) else (largest, -largest)
    for x, upper in ((at_cut, cut < np.inf), (below, not cut > -np.inf)):
        with np.errstate(over="ignore"):
            right = w * ((np.float64(x) - offset) / scale) + b >= 0
        assert (right == (w > 0)) == upper
