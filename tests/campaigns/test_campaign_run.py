import json
import math
import sqlite3

import pandas as pd
import pytest
from campaign_suites import PAIR, campaign_of
from dask_processes import Cluster

from mipforest.campaigns import Campaign, CampaignError, Counts, Store, run
from mipforest.campaigns.experiment_result import load_experiment
from mipforest.campaigns.experiments import plan
from mipforest.campaigns.report import results_table
from mipforest.campaigns.run import CampaignProgress
from mipforest.campaigns.suite import parse_suite, read_suite
from mipforest.data import load
from mipforest.trees import from_dict


def results_of(campaign: Campaign) -> list[dict]:
    with Store(campaign.results) as store:
        return store.rows("SELECT cells.*, results.* FROM cells JOIN results ON cell = cells.number")


def test_a_result_is_what_a_solve_by_hand_gives(tmp_path):
    campaign = campaign_of(tmp_path, PAIR)
    assert run(campaign) == Counts(done=2, failed=0, waiting=0)
    for entry, row in zip(plan(read_suite(campaign.suite_path)), results_of(campaign), strict=True):
        experiment = entry.experiment
        data = load("synthetic:tree,depth=1,n=24,p=2", seed=experiment.settings.seed)
        train, test = data.split(0.25, seed=experiment.settings.seed)
        result = (
            experiment.formulation()
            .build(train, 1)
            .solve("highs", time_limit=60, threads=1, seed=experiment.settings.seed)
        )
        assert (row["state"], row["status"], row["verified"]) == ("done", "optimal", 1)
        assert (row["solver"], row["solver_version"].split()[0]) == ("auto", "exact-search")
        assert row["objective"] == pytest.approx(result.objective, abs=1e-9)
        assert row["data_sha256"] == data.sha256
        assert row["train_sha256"] == train.sha256
        assert (row["train_samples"], row["test_samples"]) == (18, 6)
        assert row["features_used"] == len(result.features_used)
        tree = from_dict(json.loads(row["tree"]))
        assert (tree.predict(test.X_raw) == result.tree.predict(test.X_raw)).all()
        with Store(campaign.results) as store:
            measures = {m["name"]: m["value"] for m in store.rows("SELECT * FROM measures")}
            events = store.rows("SELECT * FROM events WHERE cell = ? ORDER BY number", (row["cell"],))
        assert {"train_accuracy", "test_accuracy", "test_balanced_accuracy"} <= measures.keys()
        assert [event["seconds"] for event in events] == sorted(event["seconds"] for event in events)


def test_finished_cells_are_never_run_again(tmp_path):
    campaign = campaign_of(tmp_path, PAIR)
    seen: list[str] = []
    run(campaign, finished=lambda planned, result, standing: seen.append(planned.experiment.key))
    before = results_of(campaign)
    run(campaign, finished=lambda planned, result, standing: seen.append(planned.experiment.key))
    assert len(seen) == len(set(seen)) == 2
    assert results_of(campaign) == before


def test_a_suite_may_grow_and_keeps_its_results(tmp_path):
    campaign = campaign_of(tmp_path, PAIR)
    run(campaign)
    seen: list[int] = []
    campaign_of(tmp_path, PAIR.replace("seeds = [2, 3]", "seeds = [3, 4]"))
    run(campaign, finished=lambda planned, result, standing: seen.append(planned.experiment.settings.seed))
    assert seen == [4]
    with Store(campaign.results) as store:
        assert list(results_table(store)["seed"]) == [3, 4]
        assert len(store.rows("SELECT * FROM results")) == 3
        assert len(store.rows("SELECT * FROM suites")) == 2


def test_failures_are_recorded_and_run_again_on_request_only(tmp_path):
    broken = PAIR + 'parameters = { N_min = 1000 }\n[data.absent]\nload = "synthetic:absent"\n'
    campaign = campaign_of(tmp_path, broken, only=("absent",))
    seen: list[str] = []

    def finished(planned, measured, standing):
        seen.append(measured.values["error"])

    assert run(campaign, finished=finished) == Counts(done=0, failed=2, waiting=0)
    assert all(message.startswith("DataError: ") for message in seen)
    run(campaign, finished=finished)
    assert len(seen) == 2
    run(campaign, retry_failed=True, finished=finished)
    assert len(seen) == 4
    assert [row["state"] for row in results_of(campaign)] == ["failed", "failed"]


def test_only_what_is_chosen_is_run(tmp_path):
    text = PAIR + '[models.other]\nmodel = "oct"\ndepth = 1\n'
    assert run(campaign_of(tmp_path, text, only=("other",))) == Counts(2, 0, 0)
    with Store(tmp_path / "results.sqlite") as store:
        cells = results_table(store)
    assert list(cells["state"]) == ["waiting", "waiting", "done", "done"]
    with pytest.raises(CampaignError, match="did you mean 'other'"):
        run(campaign_of(tmp_path, text, only=("othe",)))


def test_weights_of_samples_are_those_of_a_column(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    text = PAIR.replace("synthetic:tree,depth=1,n=24,p=2", "mine.csv").replace("[2, 3]", "[0]")
    frame = pd.DataFrame({"a": range(20), "times": [1, 2] * 10, "target": [0] * 10 + [1] * 10})
    frame.to_csv(folder / "mine.csv", index=False)
    weighed = text.replace('load = "mine.csv"', 'load = "mine.csv"\nweight = "times"')
    plain, other = (plan(parse_suite(kind))[0].experiment for kind in (text, weighed))
    data, weighted = (load_experiment(experiment, folder).train for experiment in (plain, other))
    assert (data.p, weighted.p) == (2, 1)
    assert set(weighted.weights) == {1.0, 2.0}
    assert '"weight"' not in plain.definition()


def test_data_that_changed_meanwhile_stop_the_campaign(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    text = PAIR.replace("synthetic:tree,depth=1,n=24,p=2", "mine.csv").replace("[2, 3]", "[0]")
    text += "parameters = { alpha = 0.5 }\n"
    frame = pd.DataFrame({"a": range(20), "target": [0] * 10 + [1] * 10})
    frame.to_csv(folder / "mine.csv", index=False)
    campaign = campaign_of(tmp_path, text, folder=folder)
    run(campaign)
    frame["a"] += frame["a"] ** 2
    frame.to_csv(folder / "mine.csv", index=False)
    more = campaign_of(tmp_path, text + '[models.second]\nmodel = "oct"\ndepth = 1\n', folder=folder)
    with pytest.raises(CampaignError, match="'tree' have changed since 1 of the cells"):
        run(more)
    assert len(results_of(more)) == 1


def test_files_of_data_must_be_in_a_folder_that_the_user_names(tmp_path):
    text = PAIR.replace("synthetic:tree,depth=1,n=24,p=2", "mine.csv")
    for folder, told in (
        (None, "--data DIR"),
        (tmp_path / "absent", "no data folder"),
        (tmp_path, "no file mine.csv"),
    ):
        with pytest.raises(CampaignError, match=told):
            run(campaign_of(tmp_path, text, folder=folder))
        assert not (tmp_path / "results.sqlite").exists()


def test_a_solve_that_was_stopped_leaves_nothing(tmp_path, monkeypatch):
    text = PAIR.replace('model = "oct"\ndepth = 1', 'model = "margot"\ndepth = 3')
    # Labels that no hyperplane tells apart, or the root's bound is that of the tree.
    text = text.replace("depth=1,n=24", "depth=2,n=300")
    campaign = campaign_of(tmp_path, text)
    from mipforest.campaigns.run import work

    with Store(campaign.results, create=True) as store:
        suite, planned, _ = campaign.read()
        store.register(suite, planned)
    asked = iter([False])  # before the cell; from then on, stop
    with pytest.raises(KeyboardInterrupt):
        work(campaign, stopping=lambda: next(asked, True), finished=None)
    assert results_of(campaign) == []


def test_labels_or_classes_are_stratified(tmp_path):
    text = """
    name = "split"
    [split]
    test_size = 0.4
    stratify = "classes"
    seed = 7
    [data.iris]
    load = "iris"
    positive = ["virginica"]
    [models.oct]
    model = "oct"
    depth = 1
    """
    counts = {}
    for stratify in ("classes", "labels"):
        suite = read_suite(campaign_of(tmp_path, text.replace("classes", stratify)).suite_path)
        data = load_experiment(plan(suite)[0].experiment, None)
        whole = load("iris")
        names = [whole.classes[int(whole.y[whole.samples.labels.index(s)])] for s in data.test.samples.labels]
        counts[stratify] = pd.Series(names).value_counts()
        assert math.isclose(data.test.y.mean(), 1 / 3, abs_tol=0.01)
    assert set(counts["labels"]) == {20}
    assert counts["classes"]["virginica"] == 20
    assert set(counts["classes"]) != {20}


def test_a_killed_writer_leaves_the_file_whole(tmp_path):
    campaign = campaign_of(tmp_path, PAIR)
    run(campaign)
    with sqlite3.connect(campaign.results) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_it_is_told_how_far_a_campaign_is(tmp_path):
    told: list[CampaignProgress] = []
    run(campaign_of(tmp_path, PAIR), finished=lambda planned, result, standing: told.append(standing))
    assert [standing.counts for standing in told] == [Counts(1, 0, 1), Counts(2, 0, 0)]
    assert told[0].seconds_left > 0
    assert told[1].seconds_left == 0


@pytest.mark.slow  # a cluster of its own
def test_a_cluster_gives_the_results_of_this_machine_and_repeats_none(tmp_path):
    folders = [tmp_path / name for name in ("here", "there", "cluster")]
    for folder in folders:
        folder.mkdir()
    here, there = (campaign_of(folder, PAIR) for folder in folders[:2])
    run(here)
    with Cluster(folders[2]) as cluster:
        cluster.add_worker()
        cluster.wait_for_workers(1)
        seen = []
        counts = run(
            there, dask=cluster.address, finished=lambda planned, *_: seen.append(planned.experiment.key)
        )
        assert counts == Counts(done=2, failed=0, waiting=0)
        run(there, dask=cluster.address, finished=lambda planned, *_: seen.append(planned.experiment.key))
    assert len(seen) == 2
    told = ("state", "status", "objective", "data_sha256", "train_sha256")
    assert [[row[name] for name in told] for row in results_of(there)] == [
        [row[name] for name in told] for row in results_of(here)
    ]
