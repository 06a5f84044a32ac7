"""Scores of samples: equal samples diverge by nothing, disjoint ones by all, and chance is measured."""

import json

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from tolerance import same
from typer.testing import CliRunner

from mipforest.cli.main import app
from mipforest.instances import Generation, Library, SuiteError, generate, read_distribution, scores
from mipforest.instances.scores import BINS, STATISTICS, _divergences, statistics_of
from mipforest.model import Model

DRAWN = """
summary = "oct on resampled tables"

[levels.small]
share = { from = 0.85, to = 0.9 }

[levels.large]
share = 0.5

[[instance]]
family = "small"
model = "oct"
depth = 1
data = "iris"
test_size = "{share}"
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A sample of each level: some rows of a bundled table, drawn for each instance."""
    folder = tmp_path_factory.mktemp("scores")
    (folder / "drawn.toml").write_text(DRAWN)
    distribution = read_distribution(str(folder / "drawn.toml"))
    for level in distribution.levels:
        wanted = Generation(
            distribution=distribution, level=level, seed=0, n=4, folder=folder / level, test_share=0.5
        )
        assert generate(wanted) == []
    return folder


def test_rows_of_a_bundled_table_are_drawn_for_each_instance(libraries):
    entries = list(Library(libraries / "large" / "train").entries().values())
    assert [entry.samples for entry in entries] == [75, 75]
    assert len({entry.sha256 for entry in entries}) == 2


def test_the_statistics_of_a_small_model():
    m = Model()
    x, z = m.continuous("x", 2), m.binary("z")
    m.add("a", x[0] + 2 * x[1] <= 3)
    m.add("b", x[0] - z == 1)
    m.add("free", z >= -np.inf)
    found = dict(zip(STATISTICS, statistics_of(m.matrix()), strict=True))
    assert (found["columns"], found["rows"]) == (3, 3)
    expected = {
        "binary": 1 / 3,
        "density": 5 / 9,
        "variable_degree_mean": 5 / 3,
        "row_degree_mean": 5 / 3,
        "coefficient_mean": 4 / 5,
        "side_mean": 2.0,  # of 3 and 1: an equation counts once
        "side_std": 1.0,
    }
    for name, value in expected.items():
        assert same(found[name], value), name


def test_equal_samples_are_alike_and_those_of_two_levels_are_not(libraries):
    train = Library(libraries / "small" / "train")
    own = scores(train, train)
    assert same(own.similarity, 1.0)
    other = scores(train, Library(libraries / "large" / "train"))
    rows = next(each for each in other.divergences if each.statistic == "rows")
    assert same(rows.divergence, 1.0)
    assert rows.by_chance < rows.divergence
    assert other.similarity < other.similarity_by_chance


@pytest.mark.parametrize("seed", range(5))
def test_divergences_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(30, len(STATISTICS))), rng.normal(0.5, 2, size=(20, len(STATISTICS)))
    for k, own in enumerate(_divergences(first, second, rng)):
        both = np.concatenate([first[:, k], second[:, k]])
        edges = np.linspace(both.min(), both.max(), BINS + 1)
        shares = [np.histogram(each, edges)[0] for each in (first[:, k], second[:, k])]
        assert same(own.divergence, jensenshannon(*shares, base=2) ** 2)


def test_chance_is_what_two_halves_of_one_sample_differ_by():
    rng = np.random.default_rng(0)
    alike = [_divergences(*rng.normal(size=(2, 25, len(STATISTICS))), rng) for _ in range(4)]
    own = np.mean([each.divergence for found in alike for each in found])
    chance = np.mean([each.by_chance for found in alike for each in found])
    assert abs(own - chance) < 0.02  # standard error of 48 divergences of about 0.03 each


def test_the_command_says_it_all(libraries):
    folders = [str(libraries / "small" / part) for part in ("train", "test")]
    run = CliRunner().invoke(app, ["instances", "scores", *folders])
    assert run.exit_code == 0, run.output
    assert "2 instances, 2 with a feasible solution, 2 with a bound, 2 with a proven optimum" in run.output
    assert "exact-search" in run.output
    found = json.loads(CliRunner().invoke(app, ["instances", "scores", *folders, "--json"]).output)
    assert [each["statistic"] for each in found["divergences"]] == list(STATISTICS)
    assert [each["solved"] for each in found["validity"]] == [2, 2]
    assert [runs[0]["solver"] for runs in found["hardness"]] == ["exact-search", "exact-search"]


def test_libraries_without_instances_are_refused(libraries, tmp_path):
    (tmp_path / "suite.toml").write_bytes((libraries / "small" / "train" / "suite.toml").read_bytes())
    with pytest.raises(SuiteError, match="no instance that was built"):
        scores(Library(tmp_path), Library(libraries / "small" / "train"))
