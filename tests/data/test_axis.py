import pytest

from mipforest.data import Axis, DataError


def test_behaves_like_the_sequence_of_its_labels():
    axis = Axis(("a", "b", "c"), "feature")
    assert len(axis) == 3
    assert list(axis) == ["a", "b", "c"]
    assert axis[1] == "b"
    assert axis[1:] == ("b", "c")
    assert "b" in axis
    assert "d" not in axis
    assert [axis.position(label) for label in axis] == [0, 1, 2]


def test_unknown_label_names_the_nearest():
    with pytest.raises(DataError, match=r"no feature is called 'colur'.*did you mean 'colour'"):
        Axis(("colour", "size"), "feature").position("colur")


def test_repeated_labels_are_refused():
    with pytest.raises(DataError, match=r"feature names must differ.*'a'"):
        Axis(("a", "b", "a"), "feature")
