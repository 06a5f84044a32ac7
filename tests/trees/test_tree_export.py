import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_strategies import random_tree, same, trees

from mipforest.trees import (
    Tree,
    TreeFileError,
    from_dict,
    load,
    node_statistics,
    save,
    to_dict,
    to_dot,
    to_python,
)

finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=25)
@given(
    trees(elements=finite)
    | trees(elements=finite, regression=True)
    | trees(elements=finite, linear=True)
    | trees(elements=finite, logistic=True)
)
def test_json_gives_the_same_tree_back_to_the_last_bit(tree):
    assert same(from_dict(to_dict(tree)), tree)
    assert same(from_dict(json.loads(json.dumps(to_dict(tree), allow_nan=False))), tree)


def test_files_give_the_same_tree_back(tmp_path):
    tree = random_tree(3, 4, features=("größe", "b", "c", "d"), offset=[0.1] * 4, scale=[1 / 3] * 4)
    save(tree, tmp_path / "tree.json")
    assert same(load(tmp_path / "tree.json"), tree)
    assert [path.name for path in tmp_path.iterdir()] == ["tree.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "tree.json"
    save(random_tree(1, 2), path)
    before = path.read_bytes()

    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(random_tree(2, 2), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["tree.json"]


GOOD = to_dict(random_tree(1, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "forest"}, "its format is 'forest'"),
        ({"version": 2}, "version 2 .* not known"),
        ({"depth": "1"}, "'depth' must be an integer"),
        ({"depth": True}, "'depth' must be an integer"),
        ({"depth": 99}, "do not fit together: depth must be 1 to 10"),
        ({"w": [1.0, 2.0]}, "'w' must be a list of equally long lists"),
        ({"w": [[1.0], [2.0, 3.0]]}, "'w' must be a list of equally long lists"),
        ({"w": [["1.0", "2.0"]]}, "'w' must be"),
        ({"w": [[True, 2.0]]}, "'w' must be"),
        ({"w": [[[1.0], [2.0]]]}, "'w' must be"),
        ({"w": None}, "'w' must be"),
        ({"b": 1.0}, "'b' must be a list of numbers"),
        ({"b": [10**400]}, "beyond the range"),
        ({"b": [1.0, 2.0]}, r"do not fit together: b must have shape \(1,\)"),
        ({"leaf_value": [0, 5]}, "do not fit together: leaf_value"),
        ({"classes": "no"}, "'classes' must be a list of strings"),
        ({"features": [1, 2]}, "'features' must be a list of strings"),
        ({"offset": [0.0, 0.0]}, "come together"),
        ({"scale": "1"}, "'scale' must be a list of numbers"),
        ({"logistic": 1}, "'logistic' must be true or false, got 1"),
        ({"logistic": None}, "'logistic' must be true or false, got None"),
        ({"logistic": True, "leaf_value": [1, 0]}, "do not fit together: in a logistic tree"),
        ({"logistic": True, "classes": [], "leaf_value": [0.0, 1.0]}, "has no classes"),
        ({"leaf_w": [1.0, 2.0]}, "'leaf_w' must be a list of equally long lists"),
        ({"leaf_w": [[1.0, 2.0], [3.0, 4.0]]}, "do not fit together: leaf_w makes leaves linear"),
        ({"leaf_w": [[1.0], [3.0]], "classes": []}, r"leaf_w must have shape \(2, 2\)"),
    ],
)
def test_malformed_trees_are_refused_with_a_reason(change, message):
    with pytest.raises(TreeFileError, match=message):
        from_dict(GOOD | change)


@pytest.mark.parametrize("key", list(GOOD))
def test_a_missing_key_is_named(key):
    content = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(TreeFileError, match=key):
        from_dict(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a JSON file"),
        (b"{", "not a JSON file"),
        (b"\xff\xfe\x00", "not a JSON file"),
        (b"[1, 2]", "a tree is a JSON object, got list"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"format": "mipforest-tree", "b": [NaN]}', "NaN; every number of a tree is finite"),
        (b'{"b": [' + b"9" * 5000 + b"]}", "not a JSON file"),
        (json.dumps(GOOD).replace("[[", "[[1e999, ").encode(), "finite"),
    ],
)
def test_malformed_files_are_refused_by_name(tmp_path, content, message):
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(TreeFileError, match=message) as error:
        load(path)
    assert "broken.json" in str(error.value)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.json")


def test_python_code_predicts_as_the_tree():
    """Names are hostile on purpose: they stand in code and in comments."""
    names = ('a \'b\' """\n#', "temp\u00e9rature", "x\\y")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    scaling = {"features": names, "offset": [0.5, 0.0, -1.0], "scale": [2.0, 0.1, 3.0]}
    w, b = rng.normal(size=(3, 3)) * [[1, 0, 0], [1, 1, 1], [0, 0, 0]], rng.normal(size=3)
    classifier = Tree(2, w, b, [0, 1, 1, 0], classes=("l'un", "two\n"), **scaling)
    regression = Tree(2, w, b, [0.5, 1, 1, 0], leaf_w=rng.normal(size=(4, 3)), **scaling)
    for tree in (classifier, regression):
        found = {}
        exec(to_python(tree), found)
        predicted = [found["predict"](dict(zip(names, x, strict=True))) for x in X.tolist()]
        if tree.is_classifier:
            assert predicted == tree.predict_labels(X).tolist()
        else:
            np.testing.assert_allclose(predicted, tree.predict(X), rtol=1e-12)


def test_graphviz_text_has_every_node_and_edge():
    tree = Tree(1, [[1.0]], [-2.5], [0, 1], classes=('say "no"', "back\\slash"), features=("age",))
    assert to_dot(tree, node_statistics(tree, [[1.0], [3.0]], [0, 1])).splitlines()[3:-1] == [
        r'  n0 [label="age >= 2.5\n[say \"no\" 1, back\\slash 1]", style="rounded"];',
        '  n0 -> n1 [label="no"];',
        r'  n1 [label="say \"no\"\n[say \"no\" 1]", style="rounded,bold"];',
        '  n0 -> n2 [label="yes"];',
        r'  n2 [label="back\\slash\n[back\\slash 1]", style="rounded,bold"];',
    ]
