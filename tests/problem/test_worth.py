"""What a result is worth: errors as counts, beside the majority class or mean and CART; small leaves."""

from dataclasses import replace

import numpy as np
import pytest
from tolerance import same

from mipforest import Dataset, get_formulation
from mipforest.problem.result import proof_in_words, search_in_words, time_in_words
from mipforest.problem.worth import FEW, worth_in_words, worth_of
from mipforest.trees import Tree


def data_of(y, weights=None, **how):
    X = np.arange(len(y), dtype=float)[:, None]
    return Dataset.from_arrays(X, y, weights=weights, target="state", features=["age"], **how)


def tree_at(threshold, classes=("ill", "well"), values=(0, 1)):
    return Tree(1, np.array([[1.0]]), np.array([-threshold]), np.array(values), classes, ("age",))


def test_errors_are_counted_and_compared():
    data = data_of(["ill"] * 4 + ["well"] * 16)
    worth = worth_of(tree_at(3.5), 1, data)
    assert worth["train"] == {"n": 20, "found": 0, "constant": 4, "cart": 0}
    assert worth["constant"] == "well"
    assert worth["leaves"] == {"n1": 4}
    assert worth["remarks"] == [
        "in training the tree is no better in errors than CART of depth 1",
        f"a leaf holds fewer than {FEW} training samples: n1 (4)",
    ]
    said = dict(worth_in_words({"worth": worth, "data": {"target": "state"}}))
    assert said["Wrong"] == "0 of 20 in training (0.00%)"


def test_a_tree_that_is_worse_than_the_majority_in_the_test_is_called_so():
    train, test = (
        data_of(["ill"] * 5 + ["well"] * 15),
        data_of(["ill"] * 5 + ["well"] * 15).take(np.arange(5, 20)),
    )
    worth = worth_of(tree_at(4.5), 1, train, test)
    assert worth["remarks"] == [
        "in the test the tree is no better in errors than always well, nor than CART of depth 1"
    ]


def test_weights_decide_what_is_better():
    weights = np.where(np.arange(20) < 4, 5.0, 1.25)
    worth = worth_of(tree_at(9.5), 1, data_of(["ill"] * 4 + ["well"] * 16, weights))
    assert worth["train"]["found"] == 6
    assert same(worth["train"]["weighted"]["found"], 6 * 1.25 / 40)
    assert worth["constant"] == "well"  # both classes weigh 20: the one of most samples


def test_values_are_compared_in_their_unit():
    tree = tree_at(2.5, classes=(), values=(1.0, 5.0))
    worth = worth_of(tree, 1, data_of([1.0, 1.0, 1.0, 5.0, 5.0, 7.0], task="regression"))
    assert worth["measure"] == "rmse"
    assert same(worth["train"]["found"], np.sqrt(4 / 6))
    assert (
        "in the unit of state" in dict(worth_in_words({"worth": worth, "data": {"target": "state"}}))["RMSE"]
    )


def test_a_notebook_shows_what_a_result_is_worth():
    data = data_of(["ill"] * 6 + ["well"] * 14)
    shown = get_formulation("oct")().build(data, 1).solve()._repr_html_()
    assert "Wrong: 0 of 20 in training" in shown
    assert "Always well: 6 in training" in shown


RESULT = {
    "status": "optimal",
    "depth": 2,
    "objective": 0.5,
    "bound": 0.5,
    "verified": True,
    "warm_start_objective": 0.6,
    "solver": "highs",
    "solver_version": "1",
    "bridges": [],
    "nodes": 3,
    "seconds": 2.0,
    "prepare_seconds": 0.5,
    "build_seconds": 0.25,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "no tree of this model is better"),
        ({"verified": False}, "not verified"),
        ({"bound": None}, "no bound: this tree is the best found"),
        ({"status": "time_limit", "bound": 0.0, "finds": "score card"}, "this score card is the best found"),
        ({"status": "time_limit", "bound": 0.4}, "a tree may be better, by at most 20.0%"),
        ({"status": "limit"}, "not called optimal, for the reason that is noted"),
        ({"status": "infeasible", "objective": None, "bound": None}, "there is no tree"),
        ({"bound_for": "constants"}, "for the paper's constants"),
    ],
)
def test_what_is_proven_is_said_and_no_more(changes, words):
    assert words in proof_in_words(RESULT | changes)


def test_who_searched_what_and_how_long():
    assert search_in_words(RESULT) == (
        "trees of depth 2, by highs 1, 3 nodes; the start had the objective 0.6, improved by 16.7%"
    )
    assert search_in_words(RESULT | {"warm_start_objective": 0.5}).endswith(
        "nothing better than the start was found"
    )
    assert time_in_words(RESULT) == "2.8 s in all, 2.0 s in the search"
    phases = {"load": 1.0, "prepare": 0.5, "compile": 4.0, "solve": 2.0}
    assert time_in_words(RESULT | {"phase_seconds": phases}) == (
        "7.5 s in all, 2.0 s in the search, 4.0 s in compiling"
    )


def test_decisions_that_earn_no_more_than_the_best_single_one_are_called_so():
    X = np.arange(8.0)[:, None]
    rewards = np.column_stack([np.where(X[:, 0] < 4, 1.0, 0.0), np.where(X[:, 0] < 4, 0.0, 3.0)])
    data = Dataset.from_arrays(X, rewards=rewards, classes=["wait", "act"], features=["age"])
    good = tree_at(3.5, ("wait", "act"))
    assert not [remark for remark in worth_of(good, 1, data)["remarks"] if "decision" in remark]
    bad = worth_of(tree_at(3.5, ("wait", "act"), (1, 0)), 1, data)["remarks"]
    assert bad[0] == (
        "in training the tree earns 0 for each sample, no more than 1.5 of the best single decision, always act"
    )
    held_out = worth_of(good, 1, data, data.take(np.arange(4)))["remarks"]
    assert not [remark for remark in held_out if "decision" in remark]


def test_treatments_are_held_against_the_best_single_one():
    X = np.arange(12.0)[:, None]
    treatments, young = np.arange(12) % 2, X[:, 0] < 6
    helps = np.where(young, treatments == 0, treatments == 1)
    data = Dataset.from_arrays(
        X, np.where(helps, 1.0, 4.0), treatments=treatments, classes=["rest", "drug"], features=["age"]
    )
    problem = get_formulation("opt")(n_treatment=1).build(data, 1)
    good = problem.solve(time_limit=20).tree
    worth = worth_of(good, 1, data)
    assert worth["single"]["treatment"] in ("rest", "drug")
    assert worth["single"]["train"] == pytest.approx(2.5)
    assert not [remark for remark in worth["remarks"] if "treatment" in remark]
    words = worth_in_words({"worth": worth, "data": {"target": "y"}})
    assert (
        "Compare",
        f"Always {worth['single']['treatment']}, the best single treatment: outcome 2.5 in training",
    ) in words
    leaf = replace(good, w=np.zeros_like(good.w), b=np.zeros_like(good.b))
    remarks = worth_of(leaf, 1, data)["remarks"]
    assert any("no better than 1.75 of the best single treatment" in remark for remark in remarks), remarks


def test_cart_is_not_grown_for_who_has_stopped_the_solve():
    worth = worth_of(tree_at(3.5), 1, data_of(["ill"] * 4 + ["well"] * 16), grow=False)
    assert worth["train"] == {"n": 20, "found": 0, "constant": 4, "cart": None}
