import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_strategies import random_tree, trees

from mipforest.meanings import LevelSet, MissingEnd
from mipforest.trees import (
    Tree,
    TreeFileError,
    explanations,
    from_dict,
    node_statistics,
    to_dict,
    to_dot,
    to_text,
)
from mipforest.trees.reachable import reachable_tree, shown_tree
from mipforest.trees.text import describe_split, format_number, leaf_text, path_to_text

YES_NO = ("no", "yes")


def test_splits_are_written_in_original_units():
    tree = Tree(
        2,
        [[1, 0], [0.31 * 10, -1.2 * 2], [0, -4]],
        [-0.25, -3.4, 1],
        [0, 1, 1, 0],
        classes=YES_NO,
        features=("age", "chol"),
        offset=[50, 0],
        scale=[10, 2],
    )
    assert to_text(tree).splitlines() == [
        "n0: age >= 52.5",
        "  no:  n1: 0.31 age - 1.2 chol >= 18.9",
        "    no:  n3: no",
        "    yes: n4: yes",
        "  yes: n2: chol <= 0.5",
        "    no:  n5: yes",
        "    yes: n6: no",
    ]


def test_terms_are_ordered_by_scaled_weight_and_the_rest_is_counted():
    tree = Tree(
        1, [[0.5, -3, 2, 1, 0]], [1.0], [0, 1], classes=YES_NO, offset=np.zeros(5), scale=[1, 3, 1e-3, 1, 1]
    )
    assert str(describe_split(tree, 0)) == "-x1 + 2000 x2 + x3 + 0.5 x0 >= -1"
    assert str(describe_split(tree, 0, max_terms=2)) == "-x1 + 2000 x2 + 2 more >= -1"
    assert "+ 3 more" in to_text(tree, max_terms=1)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 4))
def test_the_written_condition_is_the_split(seed, p):
    tree = random_tree(1, p, seed, offset=np.arange(p), scale=1.0 + np.arange(p))
    split = describe_split(tree, 0, digits=12)
    X = np.random.default_rng(seed).normal(size=(50, p))
    value = np.zeros(50)
    for term in split.terms:
        sign, size, feature = re.fullmatch(r"([+-]?) ?(\S+ )?x(\d+)", term).groups()
        value += (-1 if sign == "-" else 1) * float(size or 1) * X[:, int(feature)]
    goes_right = (
        value >= float(split.threshold) if split.relation == ">=" else value <= float(split.threshold)
    )
    np.testing.assert_array_equal(goes_right, tree.apply(X) == 2)


def test_trivial_nodes_pass_all_on_and_dead_branches_are_left_out():
    w = np.zeros((7, 1))
    w[0] = w[4] = 1.0
    tree = Tree(3, w, [0, 1, -1, 9, 0, -1, 9], [0, 0, 0, 1, 1, 0, 0, 0], classes=YES_NO, features=("age",))
    assert to_text(tree).splitlines() == [
        "n0: age >= 0",
        "  no:  n4: age >= 0",
        "    no:  n9: no",
        "    yes: n10: yes",
        "  yes: n11: yes",
    ]
    assert to_text(Tree(1, [[0.0]], [1.0], [0, 1], classes=YES_NO)) == "n2: yes"


def test_splits_without_samples_on_one_side_are_not_shown():
    w, b = np.ones((7, 1)), [0, -9, -5, 1, 9, 1, 1]
    tree = Tree(3, w, b, [0, 1] * 4, classes=YES_NO, features=("age",))
    fitted = node_statistics(tree, [[-1.0], [-2.0], [1.0], [7.0]])
    root = shown_tree(tree, fitted)
    assert to_text(tree, root=root).splitlines() == [
        "n0: age >= 0",
        "  no:  n3: age >= -1",
        "    no:  n7: no",
        "    yes: n8: yes",
        "  yes: n2: age >= 5",
        "    no:  n12: yes",
        "    yes: n14: yes",
        "not shown: n1, n5, n6, where all samples go one way",
    ]
    assert to_dot(tree, root=root).count("->") == 6
    # Samples that are shown, too, bring back the branches that they reach.
    few = node_statistics(tree, [[-1.0], [-2.0]])
    assert shown_tree(tree, few).number == 3
    assert shown_tree(tree, few, node_statistics(tree, [[7.0]])).number == 0
    assert shown_tree(tree, None) == reachable_tree(tree)


def test_a_path_is_written_on_one_line():
    w = [[1.0, 0.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    features, levels = ("age", "chol", "city=Roma"), (None, None, ("city", "Roma"))
    tree = Tree(2, w, [-52.5, 60.0, -0.5], [0, 1, 1, 0], YES_NO, features, levels=levels)
    X = np.array([[31.0, 1.0, 0.0], [60.0, 1.0, 1.0], [60.0, 1.0, 0.0], [52.5, 1.0, 1.0]])
    assert explanations(tree, X) == [
        "age < 52.5 (31), age > 30 (31): no",
        "age >= 52.5 (60), city is Roma: no",
        "age >= 52.5 (60), city is not Roma: yes",
        "age >= 52.5 (52.5), city is Roma: no",
    ]
    oblique = Tree(1, [[1.0, -2.0]], [0.0], [0.5, 1.5])
    assert explanations(oblique, np.array([[3.0, 1.0], [1.0, 1.0]])) == [
        "-2 x1 + x0 >= 0: 1.5",
        "-2 x1 + x0 < 0: 0.5",
    ]
    assert explanations(Tree(1, [[0.0]], [1.0], [0, 1], classes=YES_NO), np.zeros((1, 1))) == ["yes"]


@settings(deadline=None, max_examples=25)
@given(trees(max_depth=4, scaled=False, elements=st.integers(-1, 1).map(float)))
def test_the_view_holds_every_node_that_a_sample_passes(tree):
    def walk(node):
        return {node.number, *node.passed}.union(*(walk(child) for child in node.children))

    X = np.random.default_rng(0).integers(-3, 4, size=(200, tree.n_features)).astype(float)
    passed = set(np.flatnonzero(tree.decision_path(X).any(axis=0)).tolist())
    assert passed <= walk(reachable_tree(tree))


def test_counts_are_written_behind_the_nodes():
    X, y = np.array([[1.0], [2.0], [3.0]]), ["no", "no", "yes"]
    tree = Tree(1, [[1.0]], [-9.0], [0, 1], classes=YES_NO, features=("age",))
    assert to_text(tree, node_statistics(tree, X, y)).splitlines() == [
        "n0: age >= 9  [no 2, yes 1]",
        "  no:  n1: no  [no 2, yes 1]",
        "  yes: n2: yes  [no samples]",
    ]
    assert to_text(tree, node_statistics(tree, X)).splitlines()[0] == "n0: age >= 9  [3]"
    regression = Tree(1, [[1.0]], [-2.0], [0.123456, 2.0])
    assert to_text(regression, node_statistics(regression, X, [1, 2, 4])).splitlines() == [
        "n0: x0 >= 2  [3, mean 2.333]",
        "  no:  n1: 0.1235  [1, mean 1]",
        "  yes: n2: 2  [2, mean 3]",
    ]


def test_linear_leaves_are_written_in_original_units_the_largest_terms_first():
    tree = Tree(
        1,
        [[1, 0, 0]],
        [-0.5],
        [4.41, -2.0],
        features=("rooms", "age", "tax"),
        offset=[2, 1, 0],
        scale=[10, 2, 5],
        leaf_w=[[4.1, -2.4, 0], [0, 0, 0]],
    )
    assert to_text(tree).splitlines() == [
        "n0: rooms >= 7",
        "  no:  n1: y = 4.79 + 0.41 rooms - 1.2 age",
        "  yes: n2: y = -2",
    ]
    assert "n1: y = 4.79 + 0.41 rooms + 1 more" in to_text(tree, max_terms=1)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 4))
def test_the_written_function_is_the_prediction(seed, p):
    rng = np.random.default_rng(seed)
    tree = random_tree(
        1,
        p,
        seed,
        classes=(),
        leaf_value=rng.normal(size=2),
        leaf_w=rng.normal(size=(2, p)),
        offset=np.arange(p),
        scale=1.0 + np.arange(p),
    )
    X = rng.normal(size=(20, p))
    for leaf in (1, 2):
        text = leaf_text(tree, leaf)
        value = np.full(20, float(re.match(r"y = (\S+)", text)[1]))
        for sign, size, feature in re.findall(r"([+-]) (?:(\S+) )?x(\d)", text):
            value += float(sign + (size or "1")) * X[:, int(feature)]
        here = tree.apply(X) == leaf
        np.testing.assert_allclose(value[here], tree.predict(X)[here], rtol=0, atol=0.01 * 4 * p)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (52.5, "52.5"),
        (0.12345, "0.1235"),
        (-12345.6, "-12346"),
        (100.0, "100"),
        (9.99999, "10"),
        (1234567.8, "1234568"),
        (12345678.0, "1.235e7"),
        (0.000012345, "1.234e-5"),
        (0.0001, "0.0001"),
    ],
)
def test_numbers_are_short_and_keep_their_integer_part(value, text):
    assert format_number(value) == text


@settings(deadline=None)
@given(st.floats(-1e300, 1e300), st.integers(2, 6))
def test_formatted_numbers_are_close(value, digits):
    written = float(format_number(value, digits))
    assert abs(written - value) <= 0.51 * 10.0 ** (1 - digits) * abs(value)


def test_counts_of_numbered_classes_are_told_from_their_names():
    tree = Tree(1, [[1.0]], [-0.5], [0, 1], classes=("1", "2"))
    counts = node_statistics(tree, [[0.0], [1.0], [1.0]], [0, 1, 1])
    assert to_text(tree, counts).splitlines()[0] == "n0: x0 >= 0.5  [1: 1, 2: 2]"


def test_a_split_on_a_level_asks_for_it():
    levels = (("city", "Roma"), None)
    shape = {"features": ("city=Roma", "a=b"), "levels": levels, "classes": YES_NO}
    tree = Tree(2, [[1, 0], [-2, 0], [0, 1]], [-0.5, 1, -0.5], [0, 1, 0, 1], **shape)
    assert to_text(tree).splitlines()[::3] == ["n0: city is Roma", "    yes: n4: yes", "    yes: n6: yes"]
    assert "n1: city is not Roma" in to_text(tree)
    assert "n2: a=b >= 0.5" in to_text(tree)
    assert str(describe_split(replace(tree, b=[-1.5, 0, 0]), 0)) == "city=Roma >= 1.5"
    with pytest.raises(ValueError, match="1 levels for w"):
        replace(tree, levels=levels[:1])


def test_the_path_of_a_sample_leaves_out_nodes_without_a_split():
    w = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, -1.0]])
    tree = Tree(2, w, [-2.5, 1.0, 4.0], [0, 1, 0, 1], classes=("low", "high"), features=("age", "dose"))
    assert path_to_text(tree, np.array([[3.0, 5.0]])).splitlines() == [
        "n0: age >= 2.5",
        "  yes: n2: dose <= 4",
        "    no:  n5: low",
    ]
    assert path_to_text(tree, np.array([[1.0, 5.0]])).splitlines() == ["n0: age >= 2.5", "  no:  n4: high"]


AGE = {"features": ("low", "high"), "levels": (MissingEnd("age", True, 20.0), MissingEnd("age", False, 80.0))}


@pytest.mark.parametrize(
    ("w", "b", "right", "left"),
    [
        ([1, 0], -40.0, "age >= 40 (missing goes left)", "age < 40 or missing"),
        ([0, 1], -40.0, "age >= 40 or missing", "age < 40"),
        ([-1, 0], 40.0, "age <= 40 or missing", "age > 40"),
        ([0, -1], 40.0, "age <= 40 (missing goes left)", "age > 40 or missing"),
        ([1, 0], -19.0, "age is not missing", "age is missing"),
        ([0, 1], -81.0, "age is missing", "age is not missing"),
        ([-1, 0], 19.0, "age is missing", "age is not missing"),
        ([1, 0], -20.0, "age is not missing", "age is missing"),
        ([-1, 0], 20.0, "age <= 20 or missing", "age > 20"),
    ],
)
def test_a_split_says_where_missing_values_go(w, b, right, left):
    tree = Tree(1, [w], [b], [0, 1], classes=YES_NO, **AGE)
    split = describe_split(tree, 0)
    assert (str(split), str(split.negated()), str(split.negated().negated())) == (right, left, right)
    assert from_dict(json.loads(json.dumps(to_dict(tree)))).levels == tree.levels


@pytest.mark.parametrize(
    ("meaning", "right", "left"),
    [
        (LevelSet("city", ("Roma",), "Bari"), "city is Roma", "city is Bari"),
        (LevelSet("city", ("a", "b")), "city in {a, b}", "city not in {a, b}"),
        (LevelSet("city", ("a",), None, True), "city is a or missing", "city is not a"),
        (LevelSet("city", ("a",), "b", False), "city is a (missing goes left)", "city is b or missing"),
        (
            LevelSet("city", ("a", "b"), None, False),
            "city in {a, b} (missing goes left)",
            "city not in {a, b} or missing",
        ),
        (LevelSet("city", (), None, True), "city is missing", "city is not missing"),
    ],
)
def test_a_split_on_a_set_of_levels_names_them(meaning, right, left):
    tree = Tree(1, [[1.0]], [-0.5], [0, 1], classes=YES_NO, features=("f",), levels=(meaning,))
    assert (str(describe_split(tree, 0)), str(describe_split(tree, 0).negated())) == (right, left)
    turned = describe_split(replace(tree, w=[[-1.0]], b=[0.5]), 0)
    assert str(turned.negated()) == right.removesuffix(" (missing goes left)")
    assert from_dict(json.loads(json.dumps(to_dict(tree)))).levels == (meaning,)


@pytest.mark.parametrize(
    "wrong", [7, ["a"], {"column": "a"}, {"column": "a", "levels": []}, {"column": "a", "known": "x"}]
)
def test_a_damaged_meaning_is_refused(wrong):
    content = to_dict(Tree(1, [[1.0]], [-0.5], [0, 1], classes=YES_NO)) | {"levels": [wrong]}
    with pytest.raises(TreeFileError, match="'levels'"):
        from_dict(content)
