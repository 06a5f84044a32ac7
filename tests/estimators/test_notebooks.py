"""What a notebook shows: short texts, pictures of results and trees, and the notebook of the examples."""

import ast
import json
import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

from mipforest.estimators import ORTRegressor, RiskScoreClassifier
from mipforest.trees import Tree, feature_importances

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))

#: A text that a terminal shows in a few lines.
SHORT = 300


def shown(source, names):
    """Run a cell, and return the value of its last line as a notebook shows it."""
    parsed = ast.parse(source)
    last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
    exec(compile(parsed, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.fixture(scope="module")
def notebook():
    """Names and shown values of the example."""
    (path,) = NOTEBOOKS
    names, values = {}, []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert "outputs" not in cell or cell["outputs"] == []
        if cell["cell_type"] == "code":
            values.append(shown("".join(cell["source"]), names))
    return names, values


def test_the_example_runs_and_proves_its_tree(notebook):
    names, values = notebook
    assert names["flowers"].status_ == "optimal"
    assert "petal width (cm)" not in names["result"].features_used
    (warning,) = values[-1]
    assert "not proven" in warning


def test_texts_are_short(notebook):
    names, _ = notebook
    result = names["flowers"].result_
    things = [result, result.problem, result.tree, result.solution, result.problem.data, result.problem.model]
    assert [len(repr(thing)) < SHORT for thing in things] == [True] * len(things)
    assert "optimal" in repr(result)
    assert "150 samples" in repr(result.problem)


def test_results_and_trees_show_pictures(notebook):
    names, values = notebook
    result = names["flowers"].result_
    page = result._repr_html_()
    assert page.startswith(
        "<p>Result(oct (tight), depth 2: optimal, objective 0.06, bound 0.06, gap 0.00%)</p><p>Wrong: 6 of 150"
    )
    assert "<svg" in page
    assert "50 samples" in page
    assert "samples" not in result.tree._repr_html_()
    assert result.plot_progress()._repr_svg_().count("incumbent") >= 1
    assert isinstance(values[1].axes[0].get_title(loc="left"), str)


def test_a_result_without_a_tree_says_so(notebook):
    result = notebook[0]["problem"].solve("highs", start=None, time_limit=0)
    assert repr(result).endswith("time_limit, no tree)")
    assert "<svg" not in result._repr_html_()
    with pytest.raises(ValueError, match=r"no tree to draw.*time_limit"):
        result.plot()
    unknown = replace(result, solution=replace(result.solution, bound=-np.inf, events=()))
    assert "no tree and no bound" in unknown.plot_progress()._repr_svg_()


def test_a_fitted_estimator_shows_its_tree_beside_its_box(notebook):
    names, _ = notebook
    fitted = names["flowers"]
    for estimator, counted in ((fitted, True), (pickle.loads(pickle.dumps(fitted)), False)):
        page = estimator._repr_mimebundle_()["text/html"]
        assert page.count("<svg") == 1
        assert page.index("sk-estimator") < page.index("<svg") < page.rindex("petal length")
        assert ("50 samples" in page) == counted
    assert "<svg" not in clone(fitted)._repr_mimebundle_()["text/html"]
    assert fitted.plot(names["X"], names["y"])._repr_svg_().startswith("<svg")
    card = RiskScoreClassifier(rules=1).fit(names["X"], names["y"] == 0)
    assert card._repr_mimebundle_()["text/html"].count("<svg") == 1


def test_the_start_alone_is_no_fit_that_failed_to_converge():
    X = pd.DataFrame({"a": np.arange(8.0), "b": np.tile([0.0, 1.0], 4)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        ORTRegressor(depth=1, time_limit=0).fit(X, X["a"])


def test_depth_leaves_and_importances_are_those_of_scikit_learn(notebook):
    flowers, X, y = (notebook[0][name] for name in ("flowers", "X", "y"))
    assert (flowers.get_depth(), flowers.get_n_leaves()) == (2, 3)
    assert flowers.feature_importances_.sum() == pytest.approx(1)
    stump = DecisionTreeClassifier(max_depth=2, max_leaf_nodes=3).fit(X, y)
    low, high = stump.tree_.threshold[[0, 2]]
    first, second = stump.tree_.feature[[0, 2]]
    w = np.zeros((3, 4))
    w[0, first] = w[2, second] = 1.0
    same = Tree(2, w, [-low, -1.0, -high], [0, 0, 1, 2], classes=("0", "1", "2"))
    assert feature_importances(same, X.to_numpy(), y) == pytest.approx(stump.feature_importances_)


def test_importances_belong_to_columns_of_the_table():
    frame = pd.DataFrame({"colour": ["red", "blue", "green"] * 4, "size": np.arange(12.0)})
    fitted = ORTRegressor(depth=1, leaves="linear", time_limit=0).fit(frame, (frame["colour"] == "red") * 5.0)
    assert fitted.feature_importances_.shape == (2,)
    assert fitted.feature_importances_[0] > 0.99
    assert pickle.loads(pickle.dumps(fitted)).get_depth() == fitted.get_depth()
