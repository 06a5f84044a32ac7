import hashlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mipforest.data import DataError, Dataset, load

often = settings(deadline=None, max_examples=20)


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "size": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "colour": ["red", "green", "red", "blue", "red", "green"],
            "label": ["no", "yes", "no", "maybe", "yes", "no"],
        }
    )


@pytest.fixture
def data(frame):
    return Dataset.from_frame(frame, "label", name="toy")


def arrays(n_classes=3, n=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), np.arange(n) % n_classes


# -- construction ----------------------------------------------------------------------------------------


def test_shapes_and_names(data):
    assert (data.n, data.p, data.n_classes) == (6, 4, 3)
    assert data.X.shape == data.X_raw.shape == (6, 4)
    assert data.features.labels == ("size", "colour=blue", "colour=green", "colour=red")
    assert data.samples.labels == ("0", "1", "2", "3", "4", "5")
    assert data.classes == data.class_values == ("maybe", "no", "yes")
    np.testing.assert_array_equal(data.y, [1, 2, 1, 0, 2, 1])
    np.testing.assert_array_equal(data.class_counts, [1, 3, 2])
    np.testing.assert_array_equal(data.X_raw[:, 0], [1, 2, 3, 4, 5, 6])
    assert data.y.dtype == np.int64
    assert data.notes == ("column 'colour' one-hot encoded: 3 levels",)


def test_arrays_are_read_only_copies():
    X, y = arrays()
    y = y + 0.5
    data = Dataset.from_arrays(X, y, scaling="none", task="regression")
    for array in (data.X, data.X_raw, data.y):
        with pytest.raises(ValueError, match=r"read-only"):
            array[0] = 1.0
    X[:], y[:] = 99.0, 99.0
    assert data.X_raw.max() < 99.0
    assert data.y.max() < 99.0


@often
@given(st.permutations(["10", "9", "100"]), st.booleans())
def test_classes_are_sorted_by_value_also_as_text(order, as_text):
    y = order if as_text else [int(label) for label in order]
    data = Dataset.from_arrays([[0], [1], [2]], y)
    assert data.classes == ("9", "10", "100")
    assert data.class_values == (("9", "10", "100") if as_text else (9, 10, 100))
    assert [data.class_values[k] for k in data.y] == y


@pytest.mark.parametrize(
    ("labels", "first"),
    [(("M", "B"), "B"), (("R", "M"), "M"), (("g", "b"), "b"), ((1, -1), "-1"), ((True, False), "False")],
)
def test_sign_is_minus_one_for_the_first_class(labels, first):
    data = Dataset.from_arrays([[0], [1], [2]], [labels[0], labels[1], labels[0]])
    assert data.classes[0] == first
    np.testing.assert_array_equal(data.sign, [1.0, -1.0, 1.0])


def test_labels_are_python_values():
    for y in (np.array([1, 2]), np.array([1.0, 2.0]), np.array([True, False]), np.array(["a", "b"])):
        values = Dataset.from_arrays([[0], [1]], y).class_values
        assert {type(value) for value in values} <= {int, float, bool, str}


def test_class_names_are_given_in_label_order():
    data = Dataset.from_arrays([[0], [1]], [7, 3], classes=["three", "seven"])
    assert data.classes == ("three", "seven")
    assert data.class_values == (3, 7)
    with pytest.raises(DataError, match=r"1 names for 2 classes"):
        Dataset.from_arrays([[0], [1]], [7, 3], classes=["three"])


def test_sha256_depends_on_content_only(frame, data):
    assert data.sha256 == Dataset.from_frame(frame, "label", name="other", scaling="none").sha256
    assert len(data.sha256) == 64
    changes = [frame.assign(size=frame["size"] * 2), frame.rename(columns={"size": "length"}), frame[::-1]]
    hashes = {Dataset.from_frame(change, "label").sha256 for change in changes}
    assert len(hashes | {data.sha256}) == 4


def test_sha256_is_the_same_everywhere():
    data = Dataset.from_arrays([[0.5, 1.0], [2.0, 3.0]], [0, 1])
    names = [b"14:classification", b"6:target", b"2:x0", b"2:x1", b"1:0", b"1:1", b"1:0", b"1:1"]
    X, y = np.array([0.5, 1, 2, 3], "<f8").tobytes(), np.array([0, 1], "<i8").tobytes()
    assert data.sha256 == hashlib.sha256(b"".join(names) + b"<f8(2, 2)" + X + b"<i8(2,)" + y).hexdigest()


# -- what a target means ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b"] * 15, "classification"),
        (np.arange(30) % 2 == 0, "classification"),
        (np.arange(30) % 20, "classification"),
        ((np.arange(30) % 3).astype(float), "classification"),
        (np.arange(30) % 21, "regression"),
        (np.arange(30) / 2, "regression"),
        (np.array([0.5, 1.5] * 15), "regression"),
    ],
)
def test_task_is_inferred(y, task):
    assert Dataset.from_arrays(arrays()[0], y).task == task


def test_many_whole_numbers_as_classes_are_remarked():
    (note,) = Dataset.from_arrays(arrays()[0], np.arange(30) % 3).notes
    assert "read as 3 classes; task='regression'" in note
    assert Dataset.from_arrays(arrays()[0], np.arange(30) % 2).notes == ()


def test_task_can_be_chosen():
    X = arrays()[0]
    assert Dataset.from_arrays(X, np.arange(30), task="classification").n_classes == 30
    data = Dataset.from_arrays(X, np.arange(30) % 2, task="regression")
    assert data.y.dtype == np.float64
    assert data.classes == data.class_values == ()
    with pytest.raises(DataError, match=r"did you mean 'regression'"):
        Dataset.from_arrays(X, np.arange(30), task="regresion")
    with pytest.raises(DataError, match=r"regression needs numbers"):
        Dataset.from_arrays(X, ["a", "b"] * 15, task="regression")


def test_categories_that_are_numbers_are_classes():
    frame = pd.DataFrame({"x": range(30), "y": pd.Categorical(np.arange(30))})
    assert Dataset.from_frame(frame, "y").n_classes == 30


def test_regression_has_no_classes_to_ask_for():
    data = Dataset.from_arrays(arrays()[0], np.linspace(0, 1, 30), name="slope")
    for use in (
        lambda: data.sign,
        lambda: data.class_counts,
        lambda: data.require_classes(2),
        lambda: data.binarise(1),
    ):
        with pytest.raises(DataError, match=r"slope is a regression"):
            use()


def test_more_classes_than_a_model_takes(data):
    data.require_classes(3)
    with pytest.raises(
        DataError, match=r"MARGOT takes at most 2 classes, toy has 3 .*maybe, no, yes.*binarise"
    ):
        data.require_classes(2, "MARGOT")
    with pytest.raises(DataError, match=r"toy has 3 classes .*binarise"):
        data.sign  # noqa: B018


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0]], ["a", "a"], "one class only, 'a' in all 2 rows"),
        ([[1.0], [2.0]], [0.5, 0.5], "0.5 in all 2 rows"),
        ([[1.0], [np.nan]], [0, 1], "row 1, column 0"),
        ([[1.0], [np.inf]], [0, 1], "infinite"),
        ([["a"], ["b"]], [0, 1], "from_frame"),
        ([1.0, 2.0], [0, 1], "two-dimensional"),
        (np.zeros((0, 2)), [], "at least one row"),
        (np.zeros((2, 0)), [0, 1], "one column"),
        ([[1.0], [2.0]], [0, 1, 1], r"\(3,\), it must be \(2,\)"),
        ([[1.0], [2.0]], [[0], [1]], r"\(2, 1\), it must be \(2,\)"),
        ([[1.0], [2.0]], [0.5, np.nan], "y lacks 1 of 2"),
        ([[1.0], [2.0]], [0.5, np.inf], "not finite"),
        (sparse.eye_array(2), [0, 1], "toarray"),
    ],
)
def test_arrays_that_cannot_be_used(X, y, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays(X, y)


def test_feature_names_must_fit_and_differ():
    X, y = arrays()
    with pytest.raises(DataError, match=r"3 feature names for the 2 columns"):
        Dataset.from_arrays(X, y, features=["a", "b", "c"])
    with pytest.raises(DataError, match=r"feature names must differ.*'a'"):
        Dataset.from_arrays(X, y, features=["a", "a"])


def test_tables_that_cannot_be_used(frame):
    with pytest.raises(
        DataError, match=r"no column is called 'lable'.*did you mean 'label'.*size, colour, label"
    ):
        Dataset.from_frame(frame, "lable")
    with pytest.raises(DataError, match=r"only column"):
        Dataset.from_frame(frame[["label"]], "label")
    with pytest.raises(DataError, match=r"no rows"):
        Dataset.from_frame(frame[:0], "label")
    with pytest.raises(DataError, match=r"a ndarray is no table.*from_arrays"):
        Dataset.from_frame(frame.to_numpy(), "label")
    with pytest.raises(DataError, match=r"column names must differ.*'size'"):
        Dataset.from_frame(frame.rename(columns={"colour": "size"}), "label")
    with pytest.raises(DataError, match=r"missing='skip'"):
        Dataset.from_frame(frame, "label", missing="skip")


def test_missing_values_are_refused_or_dropped(frame):
    holey = frame.assign(
        size=[1.0, None, 3.0, 4.0, 5.0, 6.0], label=["no", "yes", None, "maybe", "yes", "no"]
    )
    with pytest.raises(DataError, match=r"'size' \(1\), 'label' \(1\).*missing='drop'"):
        Dataset.from_frame(holey, "label")
    data = Dataset.from_frame(holey, "label", missing="drop")
    assert data.samples.labels == ("0", "3", "4", "5")
    assert "2 of 6 rows dropped because a value is missing" in data.notes
    with pytest.raises(DataError, match=r"'empty' has no value in any row"):
        Dataset.from_frame(frame.assign(empty=None), "label", missing="drop")


def test_odd_columns_are_kept_and_remarked():
    frame = pd.DataFrame({"id": range(100, 120), "constant": 4.2, "same": "x", "y": [0, 1] * 10})
    data = Dataset.from_frame(frame, "y")
    assert data.features.labels == ("id", "constant", "same=x")
    np.testing.assert_array_equal(data.X[:, 1:], 0.0)
    assert (
        data.notes[0]
        == "column 'id' counts the rows and is used as a feature; remove it if it is a row number"
    )


def test_row_labels_are_sample_ids_unless_they_repeat(frame):
    assert Dataset.from_frame(frame.set_axis(list("uvwxyz")), "label").samples[2] == "w"
    assert Dataset.from_frame(frame.set_axis(list("uuwxyz")), "label").samples[2] == "2"


# -- a test table ----------------------------------------------------------------------------------------


def test_a_test_table_is_read_like_the_training_table(frame, data):
    rows = pd.DataFrame({"label": ["no"], "extra": [1], "colour": ["blue"], "size": [11]})
    test = Dataset.from_frame_like(data, rows, name="new")
    np.testing.assert_array_equal(test.X, [[2.0, 1, 0, 0]])
    np.testing.assert_array_equal(test.y, [1])
    assert (test.classes, test.name) == (data.classes, "new")
    same = Dataset.from_frame_like(data, frame)
    np.testing.assert_array_equal(same.X, data.X)
    assert same.sha256 == data.sha256


def test_a_test_table_with_something_new(frame, data):
    with pytest.raises(DataError, match=r"class 'never' in row 3.*maybe, no, yes"):
        Dataset.from_frame_like(data, frame.replace({"label": {"maybe": "never"}}))
    with pytest.raises(DataError, match=r"level 'pink' in row 3"):
        Dataset.from_frame_like(data, frame.replace({"colour": {"blue": "pink"}}))
    with pytest.raises(DataError, match=r"no column is called 'label'"):
        Dataset.from_frame_like(data, frame.drop(columns="label"))
    with pytest.raises(DataError, match=r"lacks 1 feature column"):
        Dataset.from_frame_like(data, frame.drop(columns="size"))


def test_a_test_table_of_a_regression(frame):
    train = Dataset.from_frame(frame.assign(label=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), "label")
    test = Dataset.from_frame_like(train, frame.assign(label=7))
    np.testing.assert_array_equal(test.y, 7.0)
    assert test.y.dtype == np.float64


# -- changing --------------------------------------------------------------------------------------------


def test_take_keeps_ids_encoding_and_classes(data):
    part = data.take([4, 0])
    assert part.samples.labels == ("4", "0")
    assert part.encoding is data.encoding
    assert part.classes == data.classes
    np.testing.assert_array_equal(part.X, data.X[[4, 0]])
    np.testing.assert_array_equal(data.take(data.y == 0).samples.labels, ["3"])


def test_with_scaling(data):
    scaled = data.with_scaling("standard")
    np.testing.assert_allclose(scaled.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(scaled.X_raw, data.X_raw)
    np.testing.assert_array_equal(data.with_scaling("none").X, data.X_raw)


def test_binarise_puts_the_positive_class_last(data):
    for positive, classes in (
        (["no"], ("maybe|yes", "no")),
        ("maybe", ("no|yes", "maybe")),
        (("yes", "no"), ("maybe", "no|yes")),
    ):
        binary = data.binarise(positive)
        assert binary.classes == classes
        chosen = [positive] if isinstance(positive, str) else positive
        np.testing.assert_array_equal(
            binary.sign, [1.0 if data.classes[k] in chosen else -1.0 for k in data.y]
        )


def test_binarise_two_classes_chooses_the_sign():
    data = Dataset.from_arrays([[0], [1]], [2, 4], classes=["benign", "malignant"])
    turned = data.binarise("benign")
    assert (turned.classes, turned.class_values) == (("malignant", "benign"), (4, 2))
    np.testing.assert_array_equal(turned.sign, -data.sign)
    assert data.binarise(4).class_values == (2, 4)
    assert data.binarise(np.int64(4)).class_values == (2, 4)


def test_relabel_merges_and_sorts(data):
    merged = data.relabel({"maybe": "z", "yes": "z"})
    assert merged.classes == ("no", "z")
    np.testing.assert_array_equal(merged.y, [0, 1, 0, 1, 1, 0])
    assert data.relabel({}).classes == data.classes
    numbered = data.relabel({"maybe": 2, "no": 1, "yes": 10})
    assert numbered.class_values == (1, 2, 10)


def test_relabel_keeps_the_names_of_other_classes():
    data = load("iris").relabel({"virginica": "versicolor"})
    assert data.classes == ("setosa", "versicolor")


def test_classes_that_cannot_be_changed(data):
    with pytest.raises(DataError, match=r"no class is called 'yess' .*did you mean 'yes'"):
        data.binarise("yess")
    with pytest.raises(DataError, match=r"all of the classes"):
        data.binarise(["yes", "no", "maybe"])
    with pytest.raises(DataError, match=r"none of the classes"):
        data.binarise([])
    with pytest.raises(DataError, match=r"all classes would become '1'"):
        data.relabel({"yes": 1, "no": 1, "maybe": 1})
