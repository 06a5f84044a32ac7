"""What the page of ``mipforest explore`` shows is what a fresh solve within the same edits finds."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from explored import PATIENCE, built, ended
from tolerance import at_most, same

import mipforest
from mipforest.data import Dataset
from mipforest.edits import EditSession
from mipforest.errors import DataError
from mipforest.explore.explorer import Refused
from mipforest.problem.constraints import Recall
from mipforest.trees import to_text


@pytest.mark.parametrize("model", ["oct", "ort"])
def test_edits_have_the_optimum_and_the_price_of_fresh_solves(explorers, model):
    problem, explorer = built(model=model), explorers(built(model=model))
    free = problem.solve("exact-search", gap=0.0)
    assert same(ended(explorer)["objective"], free.objective)
    steps = [("forbid", {"feature": "a", "node": 0}), ("pin", {"feature": "b", "node": 1, "threshold": 3.5})]
    steps += [("leaf", {"node": 2}), ("undo", {}), ("forbid", {"feature": "c"})]
    session = EditSession(built(model=model), gap=0.0)
    for action, entries in steps:
        explorer.act(action, entries)
        getattr(session, action)(**entries)
        state = ended(explorer)
        fresh = problem.with_only(session.constraints).solve("exact-search", gap=0.0)
        assert fresh.status == "optimal"
        assert state["proven"]
        assert same(state["objective"], fresh.objective)
        assert [one["words"] for one in state["edits"]] == [edit.words for edit in session.edits]
        assert same(state["price"], [fresh.objective - free.objective] * 2)
        assert "<svg" in state["svg"]


def test_what_is_refused_changes_nothing(explorers):
    explorer = explorers(built())
    before = ended(explorer)
    for action, entries, told in (
        ("forbid", {"feature": "nope"}, "has no feature 'nope'"),
        ("pin", {"node": 7, "feature": "a"}, "there is no branch node 7"),
        ("pin", {"node": "0", "feature": "a"}, "the node is '0', and has to be a number"),
        ("pin", {"node": 0, "feature": "a", "threshold": float("nan")}, "has to be a number"),
        ("pin", {"node": 0, "feature": ["a"]}, "has to be a name"),
        ("leaf", {}, "there is no edit 'leaf' of node None"),
        ("undo", {}, "there is no edit to undo"),
        ("label", {"node": 3, "label": "nope"}, "there is no 'nope'"),
        ("label", {"label": "1"}, "there is no edit 'label' of node None"),
        ("limit", {"text": "recall"}, "is no constraint; write one as in"),
        ("limit", {"text": "nope 1"}, "is no constraint; write one as in"),
        ("limit", {"text": "recall 1=200%"}, "no share"),
        ("load", {"number": 0}, "there is no near-optimal tree 0"),
        ("__init__", {"node": 0}, "there is no edit '__init__'"),
    ):
        with pytest.raises((DataError, Refused), match=told.replace("[", r"\[")):
            explorer.act(action, entries)
    assert explorer.state() == before
    assert explorer.state({"version": before["version"]}) == {"version": before["version"], "busy": False}


def test_edits_that_leave_no_tree_are_proven_to(explorers):
    explorer = explorers(built())
    explorer.act("pin", {"node": 0, "feature": "a"})
    explorer.act("forbid", {"feature": "a"})
    state = ended(explorer)
    assert state["status"] == "infeasible"
    assert state["proven"]
    assert state["svg"] is None
    explorer.act("undo", {})
    assert ended(explorer)["status"] == "optimal"


def test_an_edit_stops_the_search_before_it(explorers):
    """The first search would take hours."""
    rng = np.random.default_rng(1)
    X = rng.random((3000, 12))
    data = Dataset.from_arrays(X, (rng.random(3000) < 0.5).astype(int), features=list("abcdefghijkl"))
    explorer = explorers(mipforest.get_formulation("oct")(alpha=0.0).build(data, 3))
    for name in "abcdefghij":
        explorer.act("forbid", {"feature": name})
    for node in (1, 2):
        explorer.act("leaf", {"node": node})
    state = ended(explorer)
    assert state["proven"]
    assert len(state["edits"]) == 12  # exact: a count


def test_a_question_that_an_edit_overtakes_is_refused_or_answered(explorers):
    explorer = explorers(built(depth=3, n=400))
    ended(explorer)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(explorer.alternatives, {"node": node}) for node in (0, 1, 2)]
        explorer.act("forbid", {"feature": "a"})
        for future in asked:
            with suppress(Refused):
                assert all(one["feature"] in "abc" for one in future.result())
    assert ended(explorer)["proven"]


def test_alternatives_and_curves_are_those_of_the_session(explorers):
    explorer, session = explorers(built()), EditSession(built(), gap=0.0)
    ended(explorer)
    found, expected = explorer.alternatives({"node": 1}), session.alternatives(1, 8)
    assert [one["feature"] for one in found] == [one.feature for one in expected]
    assert same([one["objective"] for one in found], [one.objective for one in expected])
    feature = found[0]["feature"]
    points = explorer.curve({"node": 1, "feature": feature})
    assert same(
        [one["objective"] for one in points], [one.objective for one in session.curve(1, feature, 15)]
    )


def test_errors_of_test_samples_are_beside_those_of_training(explorers):
    problem = built()
    state = ended(explorers(problem, test=problem.data))
    (training, seen), (test, other) = state["measures"]
    assert (training, test) == ("training", "test")
    assert seen == other
    wrong = (problem.solve().tree.predict(problem.data.X_raw) != problem.data.y).sum()
    assert seen == f"{wrong} of 60 wrong"


def test_the_tree_is_written_as_text_python_and_sql(explorers):
    problem = built()
    explorer = explorers(problem)
    explorer.act("forbid", {"feature": "a"})
    ended(explorer)
    tree = EditSession(problem, gap=0.0)
    tree.forbid("a")
    tree = tree.best().tree
    assert explorer.written({"form": "text"})["text"] == to_text(tree)
    space = {}
    exec(explorer.written({"form": "python"})["text"], space)
    rows = [dict(zip("abc", row, strict=True)) for row in problem.data.X_raw.tolist()]
    assert list(map(space["predict"], rows)) == list(tree.predict_labels(problem.data.X_raw))
    assert "CASE" in explorer.written({"form": "sql"})["text"]
    assert explorer.written({"form": "edits"})["text"] == "--forbid a"
    with pytest.raises(Refused, match="not as 'exe'"):
        explorer.written({"form": "exe"})


def test_a_search_that_fails_is_told(explorers, monkeypatch):
    explorer = explorers(built())
    ended(explorer)

    def failing(session, on_progress=None):
        raise MemoryError("no room")

    monkeypatch.setattr(EditSession, "best", failing)
    explorer.act("forbid", {"feature": "a"})
    assert ended(explorer)["error"] == "MemoryError: no room"
    monkeypatch.undo()
    explorer.act("undo", {})
    state = ended(explorer)
    assert state["error"] == ""
    assert state["proven"]


def test_columns_of_levels_and_decisions(explorers):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(20, 60, 60).astype(float), "site": rng.choice(["n", "s", "e"], 60)}
    )
    frame.loc[::7, "age"] = np.nan
    frame["y"] = np.where((frame.age.fillna(0) > 40) ^ (frame.site == "n"), "yes", "no")
    data = Dataset.from_frame(frame, "y", missing="branch", categorical=["site"])
    explorer = explorers(mipforest.get_formulation("oct")(alpha=0.01).build(data, 2))
    splits = [node for node in ended(explorer)["nodes"] if not node["leaf"]]
    assert {node["column"] for node in splits} == {"age", "site"}
    explorer.act("forbid", {"feature": splits[0]["column"]})
    assert {node["column"] for node in ended(explorer)["nodes"]} == {"age", "site", None} - {
        splits[0]["column"]
    }

    rewards = rng.random((40, 2))
    decided = Dataset.from_arrays(
        rng.integers(0, 5, (40, 2)).astype(float), rewards=rewards, features=["a", "b"]
    )
    problem = mipforest.get_formulation("policy")().build(decided, 1)
    chosen = problem.solve().tree.predict_labels(decided.X_raw)
    mean = np.mean([rewards[i, decided.classes.index(label)] for i, label in enumerate(chosen)])
    ((_, text),) = ended(explorers(problem))["measures"]
    assert text.startswith("mean reward ")
    assert float(text.split()[2]) == pytest.approx(mean, rel=1e-4)


def test_a_label_a_limit_and_a_near_tree_are_edits(explorers):
    problem, explorer = built(), explorers(built())
    session = EditSession(problem, gap=0.0)
    leaf = next(node for node in ended(explorer)["nodes"] if node["leaf"])
    label = next(one for one in problem.data.classes if one not in leaf["headline"])
    explorer.act("label", {"node": leaf["at"], "label": label})
    session.label(leaf["at"], str(label))
    assert same(ended(explorer)["objective"], session.best().objective)
    explorer.act("limit", {"text": "--recall 1=95%"})
    session.limit(Recall("1", 0.95))
    assert same(ended(explorer)["objective"], session.best().objective)
    explorer.act("undo", {})
    explorer.act("undo", {})
    ended(explorer)
    near = explorer.near({"within": 0.3})
    assert near["trees"][0]["more"] == near["trees"][0]["less"] == []
    last = len(near["trees"]) - 1
    explorer.act("load", {"number": last})
    assert at_most(ended(explorer)["objective"], near["trees"][last]["objective"])
    with pytest.raises(Refused, match="from 0 to 1"):
        explorer.near({"within": 2})


def test_predictions_by_class_and_by_group_are_those_of_the_tree(explorers):
    frame = pd.DataFrame(
        {"site": list("NSE") * 20, "x": np.arange(60) % 7, "y": np.tile(["no", "no", "yes", "no", "yes"], 12)}
    )
    data = Dataset.from_frame(frame, "y", categorical=["site"])
    explorer = explorers(mipforest.get_formulation("oct")(alpha=0.0).build(data, 2), test=data)
    state = ended(explorer)
    assert state["columns"] == ["site", "x"]
    counts = np.array(state["confusion"][0]["counts"])
    assert state["confusion"][1]["counts"] == state["confusion"][0]["counts"]
    assert counts.sum() == 60
    assert f"{60 - np.trace(counts)} of 60 wrong" in state["measures"][0][1]
    groups = explorer.groups({"column": "site"})
    assert sorted(one["group"] for one in groups) == ["E", "N", "S"]
    assert sum(one["wrong"] for one in groups) == 60 - np.trace(counts)
    assert same(sum(one["shares"][1] * one["samples"] for one in groups), counts[:, 1].sum())
    assert [one["samples"] for one in groups] == [20, 20, 20]
    with pytest.raises(Refused, match="no such column"):
        explorer.groups({"column": "y"})


def test_missing_values_are_a_group(explorers):
    frame = pd.DataFrame(
        {"x": [1.0, 2.0, np.nan] * 10, "c": ["r", None, "g"] * 10, "y": ["n", "y", "y"] * 10}
    )
    data = Dataset.from_frame(frame, "y", missing="branch")
    explorer = explorers(mipforest.get_formulation("oct")(alpha=0.0).build(data, 1))
    ended(explorer)
    for column, names in (("x", {"1", "2", "missing"}), ("c", {"r", "g", "missing"})):
        assert {one["group"]: one["samples"] for one in explorer.groups({"column": column})} == dict.fromkeys(
            names, 10
        )


def test_edits_are_kept_in_their_file(explorers, tmp_path):
    explorer = explorers(built(), file=tmp_path / "edits.json")
    explorer.act("forbid", {"feature": "a"})
    explorer.act("leaf", {"node": 1})
    explorer.act("undo", {})
    again = EditSession.load(built(), tmp_path / "edits.json")
    assert [edit.words for edit in again.edits] == ["no node uses a"]
    assert len(again.undone) == 1
    lost = explorers(built(), file=tmp_path / "absent" / "edits.json")
    with pytest.raises(Refused, match="the edit holds, and could not be written"):
        lost.act("forbid", {"feature": "a"})


def test_the_best_tree_without_edits_is_beside_the_edited_one(explorers):
    explorer = explorers(built())
    free = ended(explorer)
    assert free["free"] is None
    explorer.act("forbid", {"feature": free["nodes"][0]["column"]})
    until = time.monotonic() + PATIENCE
    while (state := ended(explorer))["free"] is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert state["free"]["svg"] == free["svg"]
    assert same(state["free"]["objective"], free["objective"])


def test_splits_on_several_features_are_forbidden(explorers):
    rng = np.random.default_rng(0)
    X = rng.random((30, 3))
    data = Dataset.from_arrays(X, (X[:, 0] + X[:, 1] > 1).astype(int), features=["a", "b", "c"])
    explorer = explorers(mipforest.get_formulation("margot")(C=10.0).build(data, 1))
    (root, *_) = ended(explorer)["nodes"]
    assert {one["column"] for one in root["others"]} >= {"a", "b"}
    explorer.act("forbid", {"feature": "a"})
    state = ended(explorer)
    assert "a" not in [one["column"] for one in state["nodes"][0]["others"]]
    assert state["proven"]
