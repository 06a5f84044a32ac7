"""Cells that are tuned, and trees compared with the one behind generated data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from campaign_suites import PAIR, campaign_of
from tolerance import same

from mipforest import get_formulation, load
from mipforest.campaigns import CampaignError, Counts, Store, run
from mipforest.campaigns.experiment_result import recovery, recovery_measures
from mipforest.campaigns.experiments import plan
from mipforest.campaigns.report import results_table, write_report
from mipforest.campaigns.suite import parse_suite
from mipforest.data.synthetic import GroundTruth, RandomTree, ground_truth, treatment_experiment
from mipforest.data.treatments import policy_measures
from mipforest.trees import Tree
from mipforest.tuning import tune_batch

TUNED = """
name = "tuned"
seeds = [0, 1]
threads = 1

[data.points]
load = "synthetic:tree,depth=2,n=60,p=2"
test_points = 500

[models.cart]
model = "oct"
depth = 2
tune = { trees = "cart", validation = 0.25 }

[models.oct]
model = "oct"
depth = 2
tune = { starts = 10, validation = 0.25 }
"""


def fitted(truth: GroundTruth) -> Tree:
    """Return the truth as a fitted tree, over scaled features."""
    p = truth.w.shape[1]
    plain = Tree(truth.depth, truth.w, truth.b, truth.leaves.astype(float))
    return plain.rescaled(np.full(p, 0.25), np.full(p, 0.5))


@pytest.mark.parametrize("options", [{}, {"density": 3}, {"classes": 5}, {"task": "regression"}])
def test_the_truth_has_found_all_and_nothing_false(options):
    truth = RandomTree(seed=3, **options).ground_truth()
    assert recovery(truth, fitted(truth)) == (1.0, 0.0)
    if options.get("task") != "regression":
        siblings = truth.leaves.reshape(-1, 2)
        assert (siblings[:, 0] != siblings[:, 1]).all()


def one_feature(thresholds, features):
    """Return a chain of splits to the right, one per level."""
    depth = len(thresholds)
    w, b = np.zeros((2**depth - 1, 3)), np.ones(2**depth - 1)
    t = 0
    for threshold, feature in zip(thresholds, features, strict=True):
        w[t, feature], b[t] = 1.0, -threshold
        t = 2 * t + 2
    return w, b


def test_every_split_is_matched_once_and_the_closest_first():
    truth = GroundTruth(*one_feature([0.3, 0.31, 0.7], [0, 0, 1]), np.zeros(8, dtype=np.int64))
    w, b = one_feature([0.315, 0.328, 0.7], [0, 0, 2])
    tree = Tree(3, w, b, np.zeros(8))
    # 0.31 and 0.315 are the closest; 0.3 and 0.328 are too far from each other, and 0.7 is of another feature.
    assert recovery(truth, tree, 0.02) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert recovery(truth, tree, 0.05) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert recovery_measures(truth, tree)["false_discovery_rate_0.05"] == pytest.approx(1 / 3)
    stump = Tree(1, np.zeros((1, 3)), np.ones(1), np.zeros(2))
    assert recovery(truth, stump) == (0.0, 0.0)


def test_hyperplanes_are_the_same_up_to_their_scale_and_no_split_on_one_feature():
    w = np.array([[0.6, -0.8, 0.0]])
    truth = GroundTruth(w, np.array([0.1]), np.array([0.0, 1.0]))
    turned = Tree(1, -3 * w, np.array([-0.3]), np.array([1.0, 0.0]))
    assert recovery(truth, turned) == (1.0, 0.0)
    assert recovery(truth, replace(turned, b=np.array([-0.6]))) == (0.0, 1.0)
    single = Tree(1, np.array([[0.6, 0.0, 0.0]]), np.array([0.1]), np.array([1.0, 0.0]))
    assert recovery(truth, single) == (0.0, 1.0)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    campaign = campaign_of(tmp_path_factory.mktemp("tuned"), TUNED)
    assert run(campaign) == Counts(done=4, failed=0, waiting=0)
    return campaign


def test_a_tuned_cell_is_the_tuning_with_noise_free_test_samples(campaign):
    with Store(campaign.results) as store:
        table = results_table(store)
    cell = table[(table["setting"] == "oct") & (table["seed"] == 1)].iloc[0]
    data = load("synthetic:tree,depth=2,n=60,p=2", seed=1)
    tuned = tune_batch("oct", data, 2, starts=10, validation=0.25, seed=1)
    assert (cell["chosen_depth"], cell["chosen_alpha"]) == (tuned.depth, tuned.alpha)
    assert cell["objective"] == pytest.approx(tuned.result.objective)
    truth = ground_truth(data.name)
    assert cell["test_samples"] == 500
    assert cell["true_discovery_rate"] == recovery(truth, tuned.result.tree).true_discovery
    X, y = truth.draw(20_000, seed=7)
    predicted = np.array(tuned.result.tree.classes)[tuned.result.tree.predict(X)]
    assert cell["test_accuracy"] == pytest.approx((predicted == y.astype(str)).mean(), abs=0.08)


@pytest.mark.slow
def test_the_report_shows_what_was_found_of_the_truth(campaign, tmp_path):
    names = {path.name for path in write_report(campaign.results, tmp_path)}
    assert {"recovery.svg", "recovery.png"} <= names
    page = (tmp_path / "report.md").read_text()
    assert "true discovery rate %" in page
    assert "chosen depth" in page
    means = pd.read_csv(tmp_path / "overall.csv")
    assert means["false_discovery_rate"].notna().all()


@pytest.mark.slow
def test_prescriptions_are_held_against_the_true_outcomes(tmp_path):
    text = TUNED.split("[models.cart]")[0].replace(
        "synthetic:tree,depth=2,n=60,p=2", "synthetic:treatments,experiment=1,n=60"
    )
    text = text.replace("[0, 1]", "[1]") + '[models.opt]\nmodel = "opt"\ndepth = 1\n'
    campaign = campaign_of(tmp_path, text)
    assert run(campaign) == Counts(done=1, failed=0, waiting=0)
    data = load("synthetic:treatments,experiment=1,n=60", seed=1)
    tree = get_formulation("opt")().build(data, 1).solve().tree
    X, outcomes = treatment_experiment(data.name).draw(500, 1)
    told = policy_measures(outcomes, tree.predict(X), tree.predict_outcomes(X))
    with Store(campaign.results) as store:
        cell = results_table(store).iloc[0]
    assert same(cell["test_treatment_accuracy"], told.treatment_accuracy)
    assert cell["test_effect_r2"] == pytest.approx(told.effect_accuracy)
    assert "prescriptions.svg" in {path.name for path in write_report(campaign.results, tmp_path / "report")}


def test_suites_without_tuning_keep_their_keys():
    (pair, _), (tuned, *_) = plan(parse_suite(PAIR)), plan(parse_suite(TUNED))
    assert "tune" not in pair.experiment.definition()
    assert "test_points" not in pair.experiment.definition()
    assert "tune" in tuned.experiment.definition()
    assert replace(tuned.experiment, tune={"starts": 20}).key != tuned.experiment.key


@pytest.mark.parametrize(
    ("part", "other", "message"),
    [
        ('trees = "cart"', 'trees = "forest"', "trees is 'forest'; it is one of local-search, cart"),
        ("starts = 10", "start = 10", "the key 'start', which means nothing"),
        ('"synthetic:tree,depth=2,n=60,p=2"', '"iris"', "test_points are drawn from a known tree"),
        ("test_points = 500", "test_points = 0", "test_points is 0"),
    ],
)
def test_what_means_nothing_is_refused(part, other, message):
    with pytest.raises(CampaignError, match=message):
        parse_suite(TUNED.replace(part, other))
