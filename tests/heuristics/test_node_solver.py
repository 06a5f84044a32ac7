"""The exact solver of node problems: against Clarabel and libsvm, with bounds by exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.svm import SVC
from tolerance import at_least, at_most, same

from mipforest.heuristics import node_solver
from mipforest.heuristics.node_problems import many_sample_split, margin_split
from mipforest.heuristics.node_solver import Hinges, hinges_of, solve_node
from mipforest.objectives.losses import HINGE, L1, LogisticLoss, tangent_points

#: Gap that is asked of the solver for any C: ten times its accuracy, as feasible multipliers cost some of it.
GAP = 1e-8

#: The same with the l1 norm: the bias is bounded by the value, which multiplies what rounding leaves of the equality.
L1_GAP = 1e-5

#: Clarabel ends at 1e-8 of its own scale, which C spreads over fifteen powers of ten.
CLARABEL = 1e-5


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Draw a problem: more samples than features or fewer, equal samples, C from 1e-6 to 1e9."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 60)), int(rng.integers(1, 80 if seed % 2 else 6))
    X = rng.normal(size=(n, p)) if seed % 3 else rng.integers(0, 3, size=(n, p)).astype(float)
    sign = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 1.0, -1.0)
    return X, sign, rng.uniform(0.1, 3.0, n), 10.0 ** rng.uniform(-6, 9)


@pytest.mark.slow
def test_the_gap_is_closed_on_300_problems_and_no_solution_of_clarabel_is_better():
    compared = 0
    for seed in range(300):
        X, sign, weight, C = drawn(seed)
        found = solve_node(hinges_of(X, sign, C * weight))
        assert found.gap <= GAP, seed
        assert same(hinges_of(X, sign, C * weight).value(found.w, found.b), found.value)
        if seed % 3:
            continue
        other = margin_split(X, sign, C, weight=weight)
        if other is not None:
            compared += 1
            assert at_most(found.value, other.value * (1 + GAP)), seed
            assert at_least(found.value, other.value * (1 - CLARABEL) - CLARABEL), seed
            assert at_most(found.bound, other.value), seed
    assert compared > 80


def test_with_the_l1_norm_the_gap_is_closed_and_highs_finds_the_same_value():
    loss = LogisticLoss(tangent_points("V1"))
    for seed in range(100):
        X, sign, weight, C = drawn(seed)
        C = min(C, 1e5)  # beyond, HiGHS ends with other values
        kinks = (HINGE, loss)[seed % 2].kinks()
        found = solve_node(hinges_of(X, sign, C * weight, kinks, l1=True))
        assert found.gap <= L1_GAP, seed
        if seed % 3:
            continue
        other = margin_split(X, sign, C, weight=weight, loss=(HINGE, loss)[seed % 2], norm=L1)
        assert other is not None
        assert found.value == pytest.approx(other.value, rel=L1_GAP), seed
        assert at_most(found.bound, other.value * (1 + L1_GAP)), seed


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("C", [1e-2, 1.0])
def test_libsvm_finds_the_same_value(C):
    X, sign, weight, _ = drawn(10)
    other = SVC(kernel="linear", C=C, tol=1e-6).fit(X, sign, sample_weight=weight)
    rows = hinges_of(X, sign, C * weight)
    value = rows.value(other.coef_[0], float(other.intercept_[0]))
    assert solve_node(rows).value == pytest.approx(value, rel=1e-4)


def test_the_loss_of_several_kinks_is_that_of_the_model():
    loss = LogisticLoss(tangent_points("V2"))
    X, sign, weight, _ = drawn(7)
    found, bound = many_sample_split(X, sign, 3.0, weight=weight, loss=loss)
    other = margin_split(X, sign, 3.0, weight=weight, loss=loss)
    assert found.value == pytest.approx(other.value, rel=1e-6)
    assert at_most(bound, other.value)
    assert found.value == pytest.approx(bound, rel=GAP)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_one_class_costs_nothing(side):
    rows = hinges_of(np.random.default_rng(0).normal(size=(9, 3)), np.full(9, side), np.ones(9))
    found = solve_node(rows)
    assert not found.w.any()
    assert (found.value, found.bound) == (0.0, 0.0)  # exact: no loss is paid
    assert solve_node(rows.subset(np.zeros(0, int))).value == 0.0  # exact: nothing to pay for


def test_equal_samples_of_both_classes_pay_twice_the_lesser_weight():
    rows = hinges_of(np.ones((7, 2)), np.array([1.0] * 4 + [-1.0] * 3), np.full(7, 10.0))
    found = solve_node(rows)
    assert found.value == pytest.approx(60.0)
    assert found.bound == pytest.approx(60.0)


def many(n: int, seed: int = 0) -> Hinges:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 6))
    sign = np.where((X - 0.5) @ rng.normal(size=6) + 0.2 * rng.normal(size=n) > 0, 1.0, -1.0)
    return hinges_of(X, sign, rng.uniform(0.5, 2.0, n))


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e6])
def test_a_working_set_finds_the_solution_of_all_rows(C, monkeypatch):
    rows = many(9000)
    rows = Hinges(rows.X, rows.direction, rows.margin, C * rows.capacity)
    by_sets = solve_node(rows)
    warm = solve_node(rows, warm=(by_sets.w, by_sets.b))
    bad = solve_node(rows, warm=(np.full(6, 100.0), -3.0))
    monkeypatch.setattr(node_solver, "MAX_HINGES", 10_000)
    whole = solve_node(rows)
    for found in (by_sets, warm, bad):
        assert found.gap <= GAP
        assert found.value == pytest.approx(whole.value, rel=GAP)


def test_a_working_set_copes_where_most_rows_are_alike():
    rng = np.random.default_rng(0)
    sign = np.where(rng.random(9000) < 0.03, 1.0, -1.0)
    found = solve_node(hinges_of(rng.uniform(size=(9000, 4)), sign, np.ones(9000)))
    assert found.gap <= GAP


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_holds_in_exact_arithmetic(seed):
    X, sign, weight, C = drawn(seed)
    rows = hinges_of(X, sign, C * weight)
    found = solve_node(rows)
    a = [Fraction(float(value)) for value in found.multipliers]
    caps = [Fraction(float(cap)) for cap in rows.capacity]
    assert all(0 <= value <= cap for value, cap in zip(a, caps, strict=True))  # exact: fractions
    u = [
        sum(
            value * Fraction(float(d)) * Fraction(float(x))
            for value, d, x in zip(a, sign, column, strict=True)
        )
        for column in X.T
    ]
    rest = abs(sum(value * Fraction(float(d)) for value, d in zip(a, sign, strict=True)))
    dual = sum(a) - sum(value * value for value in u) / 2
    # As in ``certified``: some optimal bias is within 1 + sqrt(2 v) |x| of 0.
    bias = Fraction(1.0 + float(np.sqrt(2.0 * found.value) * np.linalg.norm(X, axis=1).max()))
    assert Fraction(found.bound) <= dual - rest * bias or found.bound == 0.0  # exact: rounded outwards


def test_it_is_deterministic():
    first, second = solve_node(many(6000)), solve_node(many(6000))
    assert np.array_equal(first.w, second.w)
    assert first.b == second.b  # exact: the same computation


def test_a_loss_is_a_sum_of_hinges():
    loss = LogisticLoss(tangent_points("V1"))
    X, sign, weight, _ = drawn(3)
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=X.shape[1]), 0.3
    value = 0.5 * w @ w + weight @ loss.values(X @ w + b, sign)
    assert same(hinges_of(X, sign, weight, loss.kinks()).value(w, b), value)
    hinge = 0.5 * w @ w + weight @ HINGE.values(X @ w + b, sign)
    assert same(hinges_of(X, sign, weight).value(w, b), hinge)


def test_stopped_at_once_its_bound_is_true_and_its_value_that_of_its_hyperplane():
    for seed in range(40):
        X, sign, weight, C = drawn(seed)
        rows = hinges_of(X, sign, C * weight)
        found, best = solve_node(rows, halted=lambda: True), solve_node(rows)
        assert same(rows.value(found.w, found.b), found.value), seed
        assert at_most(found.bound, best.value), seed
        assert at_least(found.value, best.bound), seed
