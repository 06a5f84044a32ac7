"""Index sets: lengths, labelled sequences, objects with labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipforest.model import DataValueError, ExpressionError, ShapeError
from mipforest.model.blocks import index_sets


class Samples:
    """A duck-typed index set: sized, and named by an attribute."""

    labels = ("s1", "s2")

    def __len__(self):
        return 2

    def __iter__(self):
        return iter(range(2))


dimensions = st.one_of(
    st.integers(0, 5).map(lambda n: (n, (n, None))),
    st.integers(0, 5).map(lambda n: (np.int64(n), (n, None))),
    st.integers(0, 5).map(lambda n: (range(n), (n, tuple(map(str, range(n)))))),
    st.lists(st.text(), unique=True).map(lambda names: (names, (len(names), tuple(names)))),
    st.lists(st.integers(), unique=True).map(lambda keys: (keys, (len(keys), tuple(map(str, keys))))),
    st.just((Samples(), (2, ("s1", "s2")))),
    st.just((pd.Index(["a", "b"]), (2, ("a", "b")))),
    st.just((np.array([3, 5]), (2, ("3", "5")))),
    st.just(({"a": 1, "b": 2}, (2, ("a", "b")))),
)


@settings(deadline=None)
@given(st.lists(dimensions, max_size=4))
def test_shape_and_labels_per_dimension(drawn):
    members, expected = tuple(member for member, _ in drawn), [pair for _, pair in drawn]
    shape, labels = index_sets(members)
    assert list(zip(shape, labels, strict=True)) == expected


@settings(deadline=None)
@given(dimensions)
def test_one_index_set_needs_no_tuple(drawn):
    member, (length, labels) = drawn
    assert index_sets(member) == ((length,), (labels,))


@pytest.mark.parametrize("wrong", ["age", 2.5, None, {"a", "b"}, (n for n in range(3)), True, (2, None)])
def test_what_is_no_index_set(wrong):
    with pytest.raises(ExpressionError, match=r"is no index set; give a length \(5\)"):
        index_sets(wrong)


def test_wrong_lengths_and_labels():
    with pytest.raises(ShapeError, match="length -1"):
        index_sets((2, -1))
    with pytest.raises(DataValueError, match="'a' stands twice"):
        index_sets(["a", "b", "a"])
    broken = Samples()
    broken.labels = ("s1",)
    with pytest.raises(ShapeError, match="2 items has 1 labels"):
        index_sets(broken)
