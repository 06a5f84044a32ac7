"""Constraints in suites: written as in files of options, part of what an experiment is, kept by its trees."""

import json

import pytest
from campaign_suites import campaign_of

from mipforest.campaigns import CampaignError, Counts, Store, run
from mipforest.campaigns.experiments import plan
from mipforest.campaigns.report import write_report
from mipforest.campaigns.suite import parse_suite
from mipforest.trees import from_dict

SUITE = """
name = "constrained"
time_limits = [20.0]
[data.tree]
load = "synthetic:tree,depth=1,n=24,p=3"
[models.free]
model = "oct"
depth = 1
[models.held]
model = "oct"
depth = 1
constraints = { forbid = ["x1"], min-leaf = "20%" }
"""


def test_trees_keep_the_constraints_of_their_model(tmp_path):
    campaign = campaign_of(tmp_path, SUITE)
    assert run(campaign) == Counts(done=2, failed=0, waiting=0)
    with Store(campaign.results) as store:
        rows = store.rows("SELECT * FROM results")
    used = [from_dict(json.loads(row["tree"])).features_used().overall for row in rows]
    assert len(used) == 2
    assert 0 not in used[1]
    write_report(campaign.results, tmp_path / "report")
    assert "- held: forbid x1, min-leaf 20%" in (tmp_path / "report" / "report.md").read_text()


def test_constraints_are_part_of_what_an_experiment_is():
    free, held = (entry.experiment for entry in plan(parse_suite(SUITE)))
    assert "constraints" not in json.loads(free.definition())
    assert [own["kind"] for own in json.loads(held.definition())["constraints"]] == ["forbid", "min-leaf"]
    assert free.key != held.key


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ('{ forbit = "x1" }', "did you mean 'forbid'?"),
        ('{ recall = "yes" }', "is not NAME=SHARE"),
        ('{ feature-budget = "costs.toml" }', "which a suite may not"),
        ('{ forbid = "x1" }\ntune = { folds = 2 }', "a tuning takes no constraints"),
    ],
)
def test_what_a_suite_may_not_say(constraints, said):
    text = SUITE.replace('{ forbid = ["x1"], min-leaf = "20%" }', constraints)
    with pytest.raises(CampaignError) as refused:
        parse_suite(text)
    assert "[models.held]" in str(refused.value)
    assert said in str(refused.value)
