"""Data with treatments: read, kept by what selects samples, told apart from regressions; generated experiments."""

import numpy as np
import pandas as pd
import pytest

from mipforest.data import DataError, Dataset, load, treatment_experiment
from mipforest.problem.registry import get_formulation
from mipforest.runs import DataSource


def table():
    return pd.DataFrame(
        {
            "age": [20, 30, 40, 50, 60],
            "care": ["drug", "rest", "drug", "rest", "drug"],
            "days": [3, 7, 4, 6, 9],
        }
    )


def test_a_table_tells_treatments_and_outcomes_from_features():
    data = Dataset.from_frame(table(), "days", treatment="care")
    assert data.task == "prescription"
    assert data.features.labels == ("age",)
    assert (data.classes, data.treatment, data.target) == (("drug", "rest"), "care", "days")
    assert data.treatments.tolist() == [0, 1, 0, 1, 0]
    assert data.y.tolist() == [3.0, 7.0, 4.0, 6.0, 9.0]
    assert data.labels is data.treatments
    assert repr(data) == "Dataset('data': 5 samples, 1 features, 2 treatments)"
    again = Dataset.from_arrays(table()[["age"]], table()["days"], treatments=table()["care"])
    np.testing.assert_array_equal(again.treatments, data.treatments)
    with pytest.raises(ValueError, match="read-only"):
        data.treatments[0] = 1


def test_treatments_go_with_their_samples():
    data = Dataset.from_frame(table(), "days", treatment="care")
    assert data.take([4, 1]).treatments.tolist() == [0, 1]
    train, test = data.split(0.4, seed=1)
    for part in (train, test):
        rows = [int(sample) for sample in part.samples]
        np.testing.assert_array_equal(part.treatments, data.treatments[rows])
    other = table().iloc[[1, 0]].assign(more=1.0)
    np.testing.assert_array_equal(Dataset.from_frame_like(data, other).treatments, [1, 0])
    swapped = table().assign(care=["rest", "drug", "drug", "rest", "drug"])
    assert Dataset.from_frame(swapped, "days", treatment="care").sha256 != data.sha256


@pytest.mark.parametrize(
    ("change", "target", "said"),
    [
        ({}, "care", "both the target and the column of treatments"),
        ({"days": ["a"] * 5}, "days", "a regression needs numbers"),
        ({"care": [None, "drug", "rest", "rest", "drug"]}, "days", "missing values"),
    ],
)
def test_what_is_wrong_with_treatments_is_told(change, target, said):
    with pytest.raises(DataError, match=said):
        Dataset.from_frame(table().assign(**change), target, treatment="care")


def test_a_treatment_that_training_did_not_have_is_refused():
    data = Dataset.from_frame(table(), "days", treatment="care")
    with pytest.raises(DataError, match="has the treatment 'sun' in row 0"):
        Dataset.from_frame_like(data, table().assign(care=["sun", "drug", "drug", "rest", "rest"]))


def test_a_source_with_treatments_survives_its_dictionary(tmp_path):
    table().to_csv(tmp_path / "care.csv", index=False)
    source = DataSource(data=str(tmp_path / "care.csv"), target="days", treatment="care")
    again = DataSource.from_dict(source.to_dict())
    assert again == source
    loaded = again.load()
    assert loaded.labels == {"drug": 0, "rest": 1}
    assert "treatment" not in DataSource(data="iris").to_dict()


@pytest.mark.parametrize("model", ["ort", "oct", "margot"])
def test_models_that_prescribe_nothing_refuse_treatments(model):
    with pytest.raises(DataError, match=r"prescribes no treatments.*drug, rest"):
        get_formulation(model)().build(Dataset.from_frame(table(), "days", treatment="care"), 1)


@pytest.mark.parametrize(("experiment", "negative"), [(1, 0.84), (2, 0.69), (3, 0.57)])
@pytest.mark.parametrize("functions", ["scaled", "centred"])
def test_base_and_effect_of_the_experiments_have_mean_0(experiment, negative, functions):
    known = treatment_experiment(f"synthetic:treatments,experiment={experiment},functions={functions}")
    X, outcomes = known.draw(60_000, seed=3)
    base, effect = outcomes.mean(axis=1), outcomes[:, 1] - outcomes[:, 0]
    assert abs(effect.mean()) < 0.03
    assert abs(base.mean()) < 0.03
    assert (effect < 0).mean() == pytest.approx(negative, abs=0.01)
    if functions == "scaled":
        assert effect.std() == pytest.approx(1, abs=0.02)
        assert base.std() == pytest.approx(0 if experiment == 2 else 1, abs=0.02)
    if experiment == 1:
        assert len(np.unique(np.round(effect, 9))) == 2
        assert ((effect > 0) == (X[:, 0] > 1)).all()


def test_a_generated_experiment_is_what_its_name_says():
    data = load("synthetic:treatments,experiment=3,n=200,seed=5")
    again = load(data.name)
    np.testing.assert_array_equal(data.X_raw, again.X_raw)
    np.testing.assert_array_equal(data.treatments, again.treatments)
    assert (data.n, data.p, data.task) == (200, 20, "prescription")
    truth = treatment_experiment(data.name).outcomes(data.X_raw)
    noise = data.y - truth[np.arange(200), data.treatments]
    assert noise.std() == pytest.approx(0.5, rel=0.2)
    for wrong, said in (
        ("experiment=4", "out of range"),
        ("functions=raw", "scaled or centred"),
        ("depth=2", "cannot read"),
    ):
        with pytest.raises(DataError, match=said):
            load(f"synthetic:treatments,{wrong}")


def test_published_tables_are_read_from_their_files(tmp_path):
    rows = "0.0 23 10 1 0 0 1 0.0 0.0\n0.0 26 12 0 0 0 0 0.0 12383.68\n"
    (tmp_path / "nsw_control.txt").write_text(rows)
    with pytest.raises(
        DataError, match=r"no file .*nsw_treated\.txt; give jobs:FOLDER, with nsw_control\.txt and"
    ):
        load(f"jobs:{tmp_path}")
    (tmp_path / "nsw_treated.txt").write_text("1.0 37 11 1 0 1 1 0.0 9930.05\n")
    jobs = load(f"jobs:{tmp_path}")
    assert (jobs.task, jobs.classes, jobs.p) == ("prescription", ("control", "treated"), 7)
    assert jobs.treatments.tolist() == [0, 0, 1]
    assert jobs.y.tolist() == [0.0, 12383.68, 9930.05]
    (tmp_path / "nsw_treated.txt").write_text("1.0 37 11\n")
    with pytest.raises(DataError, match=r"has 3 columns, the first from 1\.0 to 1\.0; jobs has 9"):
        load(f"jobs:{tmp_path}")
    file = tmp_path / "ihdp_npci_1.csv"
    lines = [",".join(map(str, [t, 2.5 + t, 9.0, 1.0, 4.0, *range(24), t])) for t in (0, 1)]
    file.write_text("\n".join(lines))
    ihdp = load(f"ihdp:{file}")
    assert (ihdp.p, ihdp.y.tolist()) == (25, [2.5, 3.5])
    with pytest.raises(DataError, match=r"give ihdp:FILE, one of ihdp_npci_1\.csv"):
        load("ihdp:")
    with pytest.raises(DataError, match="fixed columns of treatments and outcomes"):
        load(f"ihdp:{file}", target="x1")
