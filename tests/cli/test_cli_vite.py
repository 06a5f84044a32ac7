"""``mipforest vite``: numbers, files, and one clear message for what cannot be done."""

import joblib
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from tolerance import same

from mipforest.data import load
from mipforest.ensembles import ensemble_for

SMALL = ("vite", "random-forest:trees=10", "--depth", "2", "--data", "breast_cancer")


@pytest.fixture(scope="module")
def fitted(people, tmp_path_factory):
    """A forest that a user fitted on the numbers of the people's table."""
    path = tmp_path_factory.mktemp("fitted") / "people.joblib"
    X = people[["age", "height"]]
    joblib.dump(RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, people["answer"]), path)
    return path


@pytest.fixture(scope="module")
def numbers_csv(people, tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / "numbers.csv"
    people[["age", "height", "answer"]].to_csv(path, index=False)
    return path


def test_tells_the_most_used_features(mipforest):
    done = mipforest(*SMALL)
    assert done.code == 0
    assert done.err == ""
    first, *levels = done.out.splitlines()
    assert first.startswith("RandomForestClassifier, 10 trees of depth 2, fitted on breast_cancer, seed 100")
    assert [line.partition(":")[0] for line in levels] == ["level 0", "level 1"]
    ensemble = ensemble_for("random-forest:trees=10", load("breast_cancer"), 2)
    root = [member.feature[0] for member in ensemble.members]
    name = load("breast_cancer").features[max(set(root), key=root.count)]
    assert f"level 0: {name} {10 * max(map(root.count, root))}%" in done.out


def test_writes_picture_and_tables(mipforest, tmp_path):
    picture, tables = tmp_path / "vite.svg", tmp_path / "tables"
    done = mipforest(*SMALL, "-o", picture, "--csv", tables)
    assert done.code == 0
    assert picture.read_text().startswith("<?xml")
    assert str(picture) in done.out
    levels = pd.read_csv(tables / "levels.csv", index_col="feature")
    assert levels.sum().tolist() == pytest.approx([100, 100])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables", "vite.svg"]


@pytest.mark.slow
def test_as_json(mipforest, tmp_path):
    told = mipforest(*SMALL, "--json", "-o", tmp_path / "vite.png").json
    assert told["kind"] == "random-forest"
    assert told["trees"] == 10
    assert told["written"] == [str(tmp_path / "vite.png")]
    assert [sum(level.values()) for level in told["levels"]] == pytest.approx([100, 100])


def test_of_the_training_part(mipforest):
    told = mipforest(*SMALL, "--json", "--test-size", "0.2", "--seed", "10").json
    train = load("breast_cancer").split(0.2, seed=10)[0]
    assert told["samples"] == train.n
    estimator = ensemble_for("random-forest:trees=10", train, 2).adapter.estimator
    assert same(told["accuracy"], estimator.score(train.X_raw, train.y))


def test_a_users_forest(mipforest, fitted, numbers_csv, people):
    data = ("--data", numbers_csv, "--target", "answer")
    told = mipforest("vite", fitted, "--depth", "2", *data, "--json").json
    assert told["ensemble_depth"] == 3
    estimator = joblib.load(fitted)
    assert same(told["accuracy"], estimator.score(people[["age", "height"]], people["answer"]))


#: Ensemble, further options, words of the message.
BAD = [
    ("random-forrest", (), ["'random-forrest'", "'random-forest'"]),
    ("random-forest:trees=no", (), ["trees=no"]),
    ("absent.joblib", (), ["absent.joblib", "No such file"]),
    ("damaged.joblib", (), ["damaged.joblib", "cannot be read"]),
    ("random-forest", ("--data", "iris"), ["3 classes", "--positive"]),
    ("random-forest", ("--data", "diabetes"), ["regression", "--task classification"]),
    ("random-forest", ("--depth", "0"), ["depth", "0"]),
    ("random-forest", ("--depth", "11"), ["1 to 10"]),
    ("random-forest", ("-o", "vite.jpg"), ["vite.jpg", ".svg"]),
    ("random-forest", ("-o", "absent/vite.svg"), ["no folder absent"]),
    ("random-forest", ("--csv", "absent/tables"), ["no folder absent"]),
    ("random-forest", ("--csv", "damaged.joblib"), ["is a file"]),
    ("random-forest:trees=2", ("--depth", "8", "-o", "vite.svg"), ["255 boxes"]),
    ("random-forest", ("--max-features", "0"), ["--max-features"]),
]


@pytest.mark.parametrize(("ensemble", "options", "words"), BAD, ids=[f"{e} {' '.join(o)}" for e, o, _ in BAD])
def test_bad_input_has_one_clear_message(mipforest, tmp_path, monkeypatch, ensemble, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged.joblib").write_bytes(b"no pickle")
    done = mipforest("vite", ensemble, "--depth", "2", "--data", "breast_cancer", *options)
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert all(word in done.err for word in words), done.err
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.joblib"]


def test_a_forest_of_other_data(mipforest, fitted):
    done = mipforest("vite", fitted, "--depth", "2", "--data", "breast_cancer")
    assert done.code == 2
    assert "fitted on 2 features, breast_cancer has 30" in done.err


def test_a_failed_picture_leaves_the_old_one(mipforest, tmp_path):
    path = tmp_path / "vite.svg"
    path.write_text("old")
    assert mipforest(*SMALL[:2], "--depth", "9", *SMALL[4:], "-o", path).code == 2
    assert path.read_text() == "old"


def test_help_warns_of_joblib_files(mipforest):
    told = " ".join(mipforest("vite", "--help").out.split())
    assert "runs code that it contains" in told
