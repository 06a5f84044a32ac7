"""Numbers and foreign texts as people read them."""

import sys
import unicodedata

import numpy as np
import pytest

from mipforest.cli.outcome import summary
from mipforest.data import load
from mipforest.formatting import ROUNDING, is_rounding, printable, value_text
from mipforest.problem.registry import get_formulation


@pytest.mark.parametrize(
    ("value", "others", "text"),
    [
        (2.22045e-16, (0.0,), "0"),
        (-4.44e-16, (0.0,), "0"),
        (-4.44e-9, (1e6,), "0"),  # rounding of a sum of millions
        (4.44e-9, (1.0,), "4.44e-09"),
        (1e-9, (), "1e-09"),
        (0.1, (np.inf, None), "0.1"),
        (None, (1.0,), "-"),
        (np.nan, (1.0,), "-"),
        (np.inf, (1.0,), "-"),
    ],
)
def test_what_rounding_leaves_of_zero_is_printed_as_zero(value, others, text):
    assert value_text(value, *others) == text


def test_what_is_rounding_does_not_depend_on_the_unit():
    assert is_rounding(0.5 * ROUNDING * 1e7, 1e7)
    assert not is_rounding(2 * ROUNDING * 1e7, 1e7)


def test_the_summary_of_a_run_has_no_rounding():
    result = get_formulation("oct")().build(load("iris").binarise("setosa"), 1).solve()
    found = result.to_dict() | {"objective": 2.22045e-16, "bound": -4.44e-16, "warm_start_objective": 0.0}
    text = summary(found, None)
    assert "objective 0, bound 0" in text
    assert "e-1" not in text
    assert "nothing better than the start" in text
    text = summary(found | {"warm_start_objective": 0.5}, None)
    assert "the start had the objective 0.5, improved by 100.0%" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b\tc\nd", "a b\tc\nd"),
        ("é 日本 \u00a0 \u3000 €", "é 日本 \u00a0 \u3000 €"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\r\x00\x7f\x9b", "\\x0d\\x00\\x7f\\x9b"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\u2066\u200f\u061c\u200b\ufeff", "\\u2066\\u200f\\u061c\\u200b\\ufeff"),
        ("\u2028\u2029\x85", "\\u2028\\u2029\\x85"),
        ("\U000e0041", "\\U000e0041"),
        ("\udcff\ud800", "\\xff\\ud800"),
    ],
)
def test_what_does_not_print_is_escaped(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown


def test_nothing_of_control_or_direction_is_left():
    left = printable("".join(map(chr, range(sys.maxunicode + 1))))
    assert {unicodedata.category(sign) for sign in left if sign not in "\n\t"}.isdisjoint(
        {"Cc", "Cf", "Cs", "Zl", "Zp"}
    )
