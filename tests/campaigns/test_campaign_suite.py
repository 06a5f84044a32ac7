import hashlib
import random
import re
import tomllib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from campaign_suites import PAIR

from mipforest.campaigns import CampaignError, campaigns, included_suites, read_suite
from mipforest.campaigns.experiment_result import data_path, load_experiment
from mipforest.campaigns.experiments import plan
from mipforest.campaigns.suite import parse_suite
from mipforest.errors import SolverUnavailable
from mipforest.problem.registry import UnknownFormulation


def test_lists_are_multiplied_out():
    suite = parse_suite(
        """
        name = "all"
        seeds = [3, 4]
        solvers = ["highs"]
        time_limits = [1, inf]
        [data.iris]
        load = "iris"
        [data.wine]
        load = "wine"
        [models.oct]
        model = "oct"
        depth = [1, 2]
        variant = ["tight", "paper"]
        start = ["cart", "none"]
        grid = { alpha = [0, 0.1, 0.2] }
        """
    )
    cells = plan(suite)
    assert len(cells) == 2 * 2 * 2 * 2 * 2 * 2 * 3
    assert [entry.position for entry in cells] == list(range(len(cells)))
    assert len({entry.experiment.key for entry in cells}) == len(cells)
    assert {entry.experiment.settings.time_limit for entry in cells} == {1.0, None}
    # Settings tell apart all but data and seeds.
    assert len({entry.setting for entry in cells}) == len(cells) / 4  # exact: a count
    assert cells[0].setting == "oct, tight, depth 1, start cart, alpha=0, 1 s"


def test_hyperparameters_of_one_data_set_count_before_those_of_all_and_a_list_is_one_per_level():
    suite = parse_suite(
        """
        name = "own"
        [data.a]
        load = "synthetic:4-partitions"
        [data.b]
        load = "iris"
        positive = ["setosa"]
        [models.m]
        model = "sfs-margot"
        depth = 2
        parameters = { C = 1, alpha = 2 }
        by_data.b = { C = [1, 10] }
        """
    )
    a, b = (entry.experiment for entry in plan(suite))
    assert a.parameters == {"C": 1.0, "alpha": 2.0}
    assert b.parameters == {"C": (1.0, 10.0), "alpha": 2.0}
    assert b.formulation().parameters()["C"] in ((1.0, 10.0), [1.0, 10.0])


def test_a_key_depends_on_what_is_asked_for_not_on_how_it_is_written():
    plain, other = PAIR, PAIR.replace("[60.0]", "60") + "variant = 'tight'\nparameters = {alpha = 0}\n"
    first = [entry.experiment for entry in plan(parse_suite(plain))]
    again = [entry.experiment for entry in plan(parse_suite(f"# a remark\n{plain}"))]
    assert [experiment.key for experiment in first] == [experiment.key for experiment in again]
    explicit = [entry.experiment for entry in plan(parse_suite(other))]
    assert [experiment.variant for experiment in explicit] == [experiment.variant for experiment in first]
    limited = [entry.experiment for entry in plan(parse_suite(plain), time_limit=5.0)]
    assert {experiment.key for experiment in limited}.isdisjoint(experiment.key for experiment in first)
    assert {experiment.settings.time_limit for experiment in limited} == {5.0}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('name = "pair"', "", "lacks the key 'name'"),
        ('name = "pair"', 'name = "../pair"', "letters, digits"),
        ("seeds = [2, 3]", "seeds = [0, 0]", "0 twice"),
        ("seeds = [2, 3]", "seeds = []", "empty"),
        ("seeds = [2, 3]", "seeds = [-1]", "0 or more"),
        ("seeds = [2, 3]", "seeds = [true]", "whole number"),
        ("seeds = [2, 3]", "sedes = [0, 1]", "did you mean 'seeds'"),
        ("threads = 1", "threads = 0", "1 or more"),
        ("threads = 1", "gap = -1", "0 or more"),
        ("[60.0]", "[nan]", "0 or more"),
        ("test_size = 0.25", "test_size = 1", "share between"),
        ("test_size = 0.25", 'test_size = 0.2\nstratify = "label"', "did you mean 'labels'"),
        ('load = "synthetic:tree,depth=1,n=24,p=2"', "", "lacks the key 'load'"),
        ('load = "synthetic:tree,depth=1,n=24,p=2"', 'load = "iris"\npositive = [1]', "must be a text"),
        ('load = "synthetic:tree,depth=1,n=24,p=2"', 'load = "iris"\ntask = "regression"', "two suites"),
        ("depth = 1\n", "depth = 99\n", "depth"),
        ("depth = 1\n", 'depth = 1\nstart = "cat"\n', "did you mean 'cart'"),
        ("depth = 1\n", 'depth = 1\nvariant = "loose"\n', "no variant 'loose'"),
        ("depth = 1\n", "depth = 1\nparameters = { alhpa = 1.0 }\n", "did you mean 'alpha'"),
        ("depth = 1\n", "depth = 1\nparameters = { alpha = -1.0 }\n", "alpha is -1.0"),
        ("depth = 1\n", "depth = 1\nparameters = { alpha = {} }\n", "list of numbers per level"),
        ("depth = 1\n", "depth = 1\ngrid = { alpha = 1.0 }\n", "must be a list"),
        ("depth = 1\n", "depth = 1\nby_data.trees = { alpha = 1.0 }\n", "did you mean 'tree'"),
        ("depth = 1\n", 'depth = 1\nensemble = "random-forest"\n', "mimics no tree ensemble"),
        ("depth = 1\n", "depth = 1\n[published.octt.tree]\ngap = 0.0\n", "did you mean 'oct'"),
        ("threads = 1", "solver_options.scip = { a = 1 }", "no solver of the suite"),
        ("threads = 1", "threads = ", "no TOML"),
    ],
)
def test_a_malformed_suite_is_refused_with_the_place_and_what_to_do(old, new, told):
    assert PAIR.count(old) == 1
    with pytest.raises(CampaignError, match=told):
        plan(parse_suite(PAIR.replace(old, new)))


@pytest.mark.parametrize("file", ["forest.joblib", "/tmp/forest.joblib", "../forest.pkl"])
def test_an_ensemble_is_named_and_never_a_file(file):
    miret = PAIR.replace('model = "oct"', f'model = "miret"\nensemble = "{file}"')
    miret = re.sub(r"^(grid|parameters) = .*\n", "", miret, flags=re.MULTILINE)
    with pytest.raises(CampaignError, match="no file, as loading one can run code"):
        plan(parse_suite(miret))


def test_unknown_models_and_solvers_are_refused_as_everywhere():
    with pytest.raises(UnknownFormulation, match="did you mean 'oct'"):
        plan(parse_suite(PAIR.replace('model = "oct"', 'model = "octt"')))
    with pytest.raises(SolverUnavailable, match="did you mean highs"):
        plan(parse_suite(PAIR.replace("threads = 1", 'solvers = "high"')))


def test_files_that_are_no_suite(tmp_path):
    path = tmp_path / "suite.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CampaignError, match="no TOML"):
        read_suite(path)
    path.write_text("#" * (1 << 21))
    with pytest.raises(CampaignError, match="bytes"):
        read_suite(path)


def test_broken_suites_never_give_another_error():
    rng = random.Random(0)
    for _ in range(300):
        text = list(PAIR)
        for _ in range(rng.randint(1, 4)):
            text[rng.randrange(len(text))] = rng.choice(['"', "[", "]", "{", "=", "\n", "1", "x", "-", "."])
        with suppress(CampaignError, SolverUnavailable, UnknownFormulation):
            plan(parse_suite("".join(text)))


# ---------------------------------------------------------------------- the suites that come with mipforest

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"
INCLUDING = [CAMPAIGNS / "all.toml", CAMPAIGNS / "full.toml"]
SHIPPED = sorted(set(CAMPAIGNS.glob("*.toml")) - set(INCLUDING))


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_suites_can_be_planned(path):
    suite = read_suite(path)
    assert suite.name == path.stem
    assert suite.summary
    assert plan(suite)
    for figures in suite.published.values():
        for measures in figures.values():
            shares = [value for name, value in measures.items() if name not in ("seconds", "objective")]
            assert all(0 <= value <= 1 for value in shares)


@pytest.mark.slow
def test_the_suite_of_what_is_feasible_asks_for_what_is_there():
    for campaign in campaigns([CAMPAIGNS / "all.toml"]):
        assert campaign.results.stem == campaign.suite_path.stem
        # The others are planned above.
        assert not campaign.included or campaign.read()[2]


def test_every_suite_that_reproduces_a_source_is_run_by_the_full_one():
    full = {entry.path for entry in included_suites(CAMPAIGNS / "full.toml")}
    assert full == {path for path in SHIPPED if read_suite(path).source}
    assert not any(entry.only or entry.time_limit for entry in included_suites(CAMPAIGNS / "full.toml"))


def test_the_demonstration_needs_no_files():
    suite = read_suite(next(path for path in SHIPPED if path.stem == "demo"))
    assert not any(entry.load.endswith((".csv", ".parquet")) for entry in suite.data.values())
    assert sum(entry.experiment.settings.time_limit or 0 for entry in plan(suite)) <= 240


def test_cleveland_is_split_by_its_five_labels_and_then_made_binary(papers_data):
    suite = read_suite(next(path for path in SHIPPED if path.stem == "margot-tables-5-6"))
    experiment = next(entry.experiment for entry in plan(suite) if entry.experiment.data_label == "cleveland")
    data = load_experiment(experiment, papers_data)
    assert data.test is not None
    assert (data.train.n, data.test.n) == (237, 60)
    assert data.train.classes == data.test.classes == ("0", "1|2|3|4")

    # As the authors' code splits: the first digits of the MD5 checksum of the training part.
    checksum = hashlib.md5(np.ascontiguousarray(data.train.X_raw).tobytes(), usedforsecurity=False)
    assert checksum.hexdigest()[:10] == "2957f6c82b"


def test_shipped_suites_are_plain_toml():
    for path in (*SHIPPED, *INCLUDING):
        assert tomllib.loads(path.read_text())["name"] == path.stem


def test_the_example_of_the_documentation_is_a_suite():
    page = (SHIPPED[0].parents[1] / "docs" / "campaigns.md").read_text()
    (example,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    cells = plan(parse_suite(example))
    assert len(cells) == (2 + 2 + 1 + 1) * 2 * 2
    assert {entry.experiment.parameters.get("C") for entry in cells} == {1.0, (0.1, 1.0), None}


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ('log_file = "/tmp/stolen"', "names a file, which a suite may not"),
        ("write_solution_to_file = true", "names a file"),
        ('NodefileDir = "x"', "names a file"),
        ('presolve = "../x"', "names a file"),
        ("mip_rel_gap = inf", "mip_rel_gap is inf; give a finite number"),
        ("when = 2020-01-01", "give a number, a text, true or false"),
        ("threads = 100000000", "this machine has"),
    ],
)
def test_solver_options_that_reach_files_or_mean_nothing_are_refused(option, told):
    with pytest.raises(CampaignError, match=told):
        parse_suite(f"{PAIR}\n[solver_options.highs]\n{option}\n")


@pytest.mark.parametrize("load", ["../../x", "../../x.csv", "/etc/x.csv", "~/x.csv", "a/../../x.parquet"])
def test_data_outside_the_folder_are_refused(load):
    text = PAIR.replace('load = "synthetic:tree,depth=1,n=24,p=2"', f'load = "{load}"')
    with pytest.raises(CampaignError, match="leads out of the folder of data"):
        parse_suite(text)


def test_a_link_out_of_the_data_folder_is_refused(tmp_path):
    text = PAIR.replace('load = "synthetic:tree,depth=1,n=24,p=2"', 'load = "x.csv"')
    (tmp_path / "secret.csv").write_text("a,target\n1,x\n2,y\n")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "x.csv").symlink_to(tmp_path / "secret.csv")
    entry = parse_suite(text).data["tree"]
    with pytest.raises(CampaignError, match="leads out of the data folder"):
        data_path(entry, folder)


def test_an_integer_of_thousands_of_digits_is_refused():
    with pytest.raises(CampaignError, match="no TOML"):
        parse_suite(f"{PAIR}\ngap = {'9' * 5000}\n")
