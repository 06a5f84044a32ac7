"""Names that every reader takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipforest.files.layout import KEYWORDS, safe_names


@given(
    st.lists(
        st.one_of(
            st.text(max_size=12), st.sampled_from(["RHS", "x", "x_2", "", "1e5", "-inf", "$a", "a b", "a_b"])
        )
    ),
    st.integers(8, 20),
    st.sets(st.sampled_from(["x", "x_2", "a_b"])),
)
def test_result_is_safe_unique_and_stable(names, limit, reserved):
    result = safe_names(names, limit, reserved)
    assert len(result) == len(names) == len(set(result))
    assert not set(result) & (reserved | KEYWORDS)
    for name in result:
        assert 0 < len(name) <= limit
        assert name.isascii()
        assert name.isprintable()
        assert " " not in name
        assert name[0] not in "$*'\""
        with pytest.raises(ValueError):
            float(name)
    assert safe_names(result, limit, reserved) == result
    assert safe_names(names, limit, reserved) == result


def test_good_names_pass_through():
    names = [
        "w[n0,petal length_(cm)]".replace(" ", "."),
        "b=1",
        "x<=3",
        "info",
        "none",
        "e5",
        "n",
        "i",
        "-x",
        "1a",
        "a#b.c;",
    ]
    assert safe_names(names) == names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("w[1, 2]", "w[1,_2]"),
        ("größe", "gr__e"),
        ("RHS", "_RHS"),
        ("12", "_12"),
        ("1d5", "_1d5"),
        ("NaN", "_NaN"),
        ("", "_"),
        ("*a", "_*a"),
    ],
)
def test_what_becomes_of_bad_names(name, expected):
    assert safe_names([name]) == [expected]


def test_a_name_that_needs_no_change_is_kept_even_if_it_comes_last():
    assert safe_names(["a b", "a\tb", "a_b"]) == ["a_b_2", "a_b_3", "a_b"]
    assert safe_names(["x", "x", "x_2"]) == ["x", "x_3", "x_2"]


def test_long_names_are_cut_and_stay_unique():
    result = safe_names(["y" * 300, "y" * 150, "y" * 299])
    assert result == ["y" * 148 + "_2", "y" * 150, "y" * 148 + "_3"]


def test_a_limit_without_room_for_a_suffix_is_refused():
    with pytest.raises(ValueError, match="limit is 7"):
        safe_names(["a"], limit=7)
