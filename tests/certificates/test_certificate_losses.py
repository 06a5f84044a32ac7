"""Losses of a certificate are below the true ones for any rows; logarithms of doubles miss as little as is proven."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from mipforest.certificates import CertificateError
from mipforest.certificates.losses import (
    DEVIANCE,
    LOWERED_LOGARITHM,
    MOST,
    RAISED_LOGARITHM,
    Grid,
    Problem,
    exact_excess,
    excess,
    factors,
    leaf_value,
    rounded,
)
from mipforest.searches.exact.certificate_writer import grid_of

#: Roundings of doubles by which a logarithm may be missed, as proven.
PROVEN = 56

#: Share of what one leaf loses that rounding may take where weights, and what errors are charged, are alike: weights
#: have 30 bits of the heaviest one, or 47 of their sum.
LOST = 1e-7


def excesses(chance, count):
    """Draw sums of a leaf: rates near the centre, far from it, at the seams of the two formulas, and of no count."""
    while count:
        bits, w = chance.choice([0, 3, 10, 60, 200]), int(2 ** chance.uniform(0, 52))
        t = w << bits
        size = 10.0 ** chance.uniform(-15, 9)
        away = chance.choice([size, -min(1.0, size), 1.0, 1.0 + size, -0.5, -0.5 - size, -1.0])
        u = max(-t, round(Fraction(away) * t) + chance.choice([-1, 0, 1]))
        if abs(u) < MOST:
            count -= 1
            yield u, w, bits


@pytest.mark.parametrize("n", [1000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_the_excess_of_doubles_misses_no_more_than_is_proven(n):
    for u, w, bits in excesses(Random(n), n):
        value = Fraction(float(excess(np.array([float(u)]), np.array([float(w)]), bits)[0]))
        true, missed = exact_excess(u, w << bits)
        # exact: rational numbers, and the margin is the one that is proven
        assert abs(value - true) <= PROVEN * true / 2**53 + missed, (u, w, bits)
        assert value * Fraction(LOWERED_LOGARITHM) <= true + missed, (u, w, bits)  # exact: rational numbers
        assert value * Fraction(RAISED_LOGARITHM) >= true - missed, (u, w, bits)  # exact: rational numbers


def drawn(seed):
    """Draw a problem of rates or quantiles: equal and nearly equal targets, zeros, and weights of any size."""
    rng = np.random.default_rng(seed)
    n, loss = int(rng.integers(3, 40)), ("deviance", "absolute")[seed % 2]
    y = (
        rng.integers(0, 4, n) / 2.0,
        5.0 * (1.0 + 1e-3 * rng.integers(0, 5, n)),
        np.exp(rng.uniform(-8, 8, n)),
        rng.poisson(0.3, n) * rng.random(n),
    )[seed // 2 % 4]
    y[:2] = y[0], y[0] + 1e-3 * (1.0 + y[0])
    weight = (np.ones(n), rng.random(n) + 0.01, np.exp(rng.uniform(-12, 12, n)), rng.integers(1, 9, n) / 1.0)[
        int(rng.integers(4))
    ]
    level = float(rng.choice([0.5, 0.75, 0.9, 0.1, 0.001])) if loss == "absolute" else 0.5
    X = np.arange(float(n))[:, None]
    return Problem(loss, 2, 1, 0.0, 1.0, np.zeros((1, 0, 0)), X, y[:, None], weight, level)


@pytest.mark.parametrize("n", [40, pytest.param(2000, marks=pytest.mark.slow)])
def test_rounded_losses_of_any_partition_are_below_the_true_ones(n):
    for seed in range(n):
        problem, rng = drawn(seed), np.random.default_rng([seed, 1])
        grid, rows = grid_of(problem), np.arange(len(problem.y))
        whole = float(leaf_value(problem, rows) * Fraction(2) ** grid.loss)
        alike = np.ptp(problem.weight) < 99 * problem.weight.min() and 0.1 <= problem.level <= 0.9
        share = LOST if alike else 1.0
        for exact in (False, True):
            losses = rounded(problem, grid, exact=exact)
            assert losses.error <= grid.error
            for _ in range(5):
                leaf = rng.integers(0, int(rng.integers(1, 5)), len(rows))
                lost, true = 0, Fraction(0)
                for k in np.unique(leaf).tolist():
                    own = np.isin(losses.group, losses.group[leaf == k])
                    lost += int(losses.leaf(losses.table[losses.group[own]].sum(axis=0)[None])[0])
                    true += leaf_value(problem, rows[own]) * Fraction(2) ** grid.loss
                assert lost <= true + losses.error, (seed, exact, lost, float(true))
                # What is lost by rounding is little beside what one leaf loses, and units for each sample and leaf.
                units = len(rows) + 2 * leaf.max() + 2
                # exact: whole numbers, with a margin
                assert lost >= true - share * whole - units, (seed, exact, lost, float(true))


def test_factors_of_a_level_are_never_more_than_it_says():
    for level in (0.5, 0.9, 0.1, 1e-9, 1.0 / 3.0, np.nextafter(1.0, 0.0)):
        low, high = factors(float(level))
        assert Fraction(low) == 2 * Fraction(float(level))
        assert 0 <= 2 * (1 - Fraction(float(level))) - Fraction(high) <= Fraction(1, 2**52)
    assert factors(0.5) == (1.0, 1.0)  # exact: whole weights stay whole around medians


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"centre": (0.0,)}, "the centre of rates is not above 0"),
        ({"target": -1}, "the grid of rates is -1, and not 0 to 200"),
        ({"target": 201}, "the grid of rates is 201, and not 0 to 200"),
        ({"loss": 900}, "the grid of losses is 2"),
        ({"weight": 200}, "a weight is beyond the grid"),
        ({"target": 190}, "a rate is beyond the grid"),
    ],
)
def test_grids_of_rates_that_do_not_fit_are_refused(changed, told):
    problem = drawn(0)
    assert problem.loss == DEVIANCE
    with pytest.raises(CertificateError, match=told):
        rounded(problem, grid_of(problem)._replace(**changed))


def test_rates_below_0_are_refused():
    with pytest.raises(CertificateError, match="a rate is less than 0"):
        rounded(drawn(0)._replace(y=-drawn(0).y), Grid(0, centre=(1.0,)))
