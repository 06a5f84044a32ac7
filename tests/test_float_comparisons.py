"""That tests compare computed numbers with a tolerance: the tests, what finds others, and the comparisons."""

from pathlib import Path

import numpy as np
import pytest
from float_comparisons import exact_comparisons
from tolerance import ROUNDING, at_least, at_most, in_order, less, same

TESTS = Path(__file__).parent


@pytest.mark.slow
def test_no_test_compares_computed_numbers_exactly():
    found = [
        f"{path.relative_to(TESTS)}:{line}: {text}"
        for path in sorted(TESTS.rglob("*.py"))
        for line, text in exact_comparisons(path.read_text())
    ]
    assert not found, "compare as in tests/tolerance.py, or say why not, as in: # exact: a copy"


def found_in(body):
    return [line for line, _ in exact_comparisons(f"def test():\n    {body}\n")]


@pytest.mark.parametrize(
    "body",
    [
        "assert result.objective == other.objective",
        "assert result.bound <= result.objective",
        "assert bound <= alone.value <= value",
        "assert cart.score(X, y) < tree.score(X, y)",
        "assert result.objective == 0.1",
        "cost = result.objective + 1\n    assert cost != known",
        "one, two = (part.mean() for part in parts)\n    assert one <= two",
        "assert all(event.bound <= best for event in events)",
        "assert (found.values == again.values).all()",
        "assert (a.status, a.objective) == (b.status, b.objective)",
        "np.testing.assert_array_equal(tree.predict_proba(X), proba)",
    ],
)
def test_exact_comparisons_are_found(body):
    assert len(found_in(body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "assert result.objective == pytest.approx(other.objective)",
        "assert result.bound <= result.objective + 1e-9",
        "assert result.objective <= 0.9 * other.objective",
        "assert at_most(result.bound, result.objective)",
        "assert result.objective == 3.0",
        "assert result.bound == -np.inf",
        "assert result.gap <= 1e-6",
        "assert len(result.tree.w) == len(other)",
        "assert result.status == other.status",
        "assert again.objective == result.objective  # exact: a copy",
        "# exact: a copy\n    assert again.objective == result.objective",
    ],
)
def test_what_has_a_tolerance_or_a_reason_is_not(body):
    assert not found_in(body)


def test_rounding_is_no_difference_and_more_is_one():
    for size in (1e-12, 1.0, 1e6):
        step = max(1.0, size) * ROUNDING
        for sign in (1, -1):
            number = sign * size
            assert same(number, number + step / 2)
            assert at_most(number + step / 2, number)
            assert at_least(number - step / 2, number)
            assert not less(number, number + step / 2)
            assert not same(number, number + 2 * step)
            assert not at_most(number + 2 * step, number)
            assert less(number, number + 2 * step)


def test_infinities_are_equal_to_themselves_only_and_nan_to_nothing():
    assert same(np.inf, np.inf)
    assert not same(-np.inf, np.inf)
    assert less(-np.inf, 1.0)
    assert at_most(1.0, np.inf)
    assert not at_most(np.inf, 1e300)
    for compared in (same, at_most, at_least, less):
        assert not compared(np.nan, 1.0)


def test_arrays_are_compared_by_entry_and_have_one_shape():
    assert same([1.0, np.inf], [1.0 + 1e-12, np.inf])
    assert not same([1.0, 2.0], [1.0, 2.1])
    assert not same([1.0, 1.0], [[1.0, 1.0]])
    assert same([0.5, 0.5], 0.5)
    assert not less([1.0, 2.0], [2.0, 2.0])
    assert in_order([1.0, 2.0, 2.0 - 1e-12, 3.0])
    assert not in_order([2.0, 1.0])
