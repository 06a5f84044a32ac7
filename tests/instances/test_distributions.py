import re

import pytest

from mipforest.data.loading import load
from mipforest.instances import Library, SuiteError, build_problem, read_distribution, shipped
from mipforest.instances.distributions import Measured, read_measured, record_measured, summaries
from mipforest.instances.library import parse_suite, spec_of, suite_text

MINIMAL = """
summary = "oct on small samples"

[draws]
alpha = { from = 0.0, to = 0.1 }
noise = [0.0, 0.1]

[levels.easy]
n = { from = 20, to = 30 }

[levels.hard]
n = { from = 200, to = 300 }

[[instance]]
family = "small"
model = "oct"
depth = 1
data = "synthetic:tree,depth=2,n={n},p=2,label_noise={noise}"
parameters = { alpha = "{alpha}" }
"""


def written(tmp_path, text):
    path = tmp_path / "own.toml"
    path.write_text(text)
    return str(path)


def test_draws_depend_on_level_seed_and_number_alone(tmp_path):
    own = read_distribution(written(tmp_path, MINIMAL))
    table = own.draw("easy", 3, 5)
    assert table == own.draw("easy", 3, 5)
    assert table["name"] == "own-easy-3-00005"
    others = [own.draw(*drawn) for drawn in (("hard", 3, 5), ("easy", 4, 5), ("easy", 3, 6))]
    assert len({other["seed"] for other in others} | {table["seed"]}) == 4


def test_draws_stay_in_their_ranges(tmp_path):
    own = read_distribution(written(tmp_path, MINIMAL))
    tables = [own.draw("easy", 0, number) for number in range(40)]
    sizes = {int(re.search(r"n=(\d+)", table["data"])[1]) for table in tables}
    noises = {re.search(r"label_noise=(.*)", table["data"])[1] for table in tables}
    assert sizes <= set(range(20, 31))
    assert len(sizes) > 5
    assert noises == {"0.0", "0.1"}
    assert all(
        0 <= table["parameters"]["alpha"] <= 0.1 for table in tables
    )  # exact: rounded within its range


def test_a_suite_of_draws_is_read_back(tmp_path):
    own = read_distribution(written(tmp_path, MINIMAL))
    tables = [own.draw("easy", 0, number) for number in range(3)]
    specs = parse_suite(suite_text(tables))
    assert specs == {table["name"]: spec_of("drawn", table) for table in tables}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('summary = "oct on small samples"', ""), "the distribution lacks the key 'summary'"),
        (("from = 0.0, to = 0.1", "from = 0.2, to = 0.1"), "draws: alpha: from is 0.2, to is 0.1"),
        (("from = 20, to = 30", "from = 20"), "levels.easy: n lacks the key 'to'"),
        (("from = 20, to = 30", 'from = 20, to = "x"'), "levels.easy: n: to is 'x'; it must be a number"),
        (("[0.0, 0.1]", "[]"), "draws: noise is an empty list"),
        (("[0.0, 0.1]", "[[1]]"), r"draws: noise: \[1\] is no value"),
        (("n={n}", "n={m}"), "instance 1, level easy: {m} is no draw"),
        (
            ("depth = 1", 'depth = "{noise}"'),
            "instance 1, level easy: depth is 0.*; it must be a whole number",
        ),
        (
            ("depth = 1", "depth = 1\nseed = 3"),
            "instance 1, level easy: seed is 3, and every instance gets its own",
        ),
        (("depth = 1", "depht = 1"), "the key 'depht', which means nothing .did you mean 'depth'"),
        (('"oct"', '"otc"'), "instance 1, level easy: .*otc"),
        (("alpha =", "alhpa ="), "{alpha} is no draw"),
        (('{ alpha = "{alpha}" }', "{ alpha = -1.0 }"), "instance 1, level easy: .*alpha"),
        (("[levels.hard]", '[levels."../x"]'), "a level is '../x'"),
        (("depth = 1", 'depth = 1\nconstraints = { parity = "x1=9" }'), "constraints: parity"),
        (("depth = 1", 'depth = 1\nconstraints = { feature_budget = "cost.toml" }'), "which a suite may not"),
        (
            ('data = "synthetic:tree,depth=2,n={n},p=2,label_noise={noise}"', 'data = "a.csv"'),
            "'a.csv', a file",
        ),
    ],
)
def test_malformed_distributions_say_key_and_value(tmp_path, change, message):
    assert change[0] in MINIMAL
    with pytest.raises(SuiteError, match=message):
        read_distribution(written(tmp_path, MINIMAL.replace(*change)))


def test_an_unknown_name_or_level_is_refused(tmp_path):
    with pytest.raises(SuiteError, match=r"no distribution 'oct-parify' .did you mean 'oct-parity'"):
        read_distribution("oct-parify")
    with pytest.raises(SuiteError, match=r"own has no level 'eazy' .did you mean 'easy'"):
        read_distribution(written(tmp_path, MINIMAL)).draw("eazy", 0, 0)


def test_data_that_cannot_be_loaded_are_drawn_anew_and_end_at_last(tmp_path):
    text = MINIMAL.replace("from = 20, to = 30", "from = 1, to = 1")
    with pytest.raises(SuiteError, match="100 draws gave no data that can be loaded"):
        read_distribution(written(tmp_path, text)).draw("easy", 0, 0)


#: Rewards of these are estimated by forests whenever an instance is drawn.
ESTIMATED = [("policy", "medium"), ("policy", "hard")]

LEVELS = [(name, level) for name in shipped() for level in read_distribution(name).levels]


@pytest.mark.parametrize(
    ("name", "level"),
    [pytest.param(*one, marks=[pytest.mark.slow] if one in ESTIMATED else []) for one in LEVELS],
)
def test_every_level_of_the_shipped_distributions_can_be_drawn(name, level):
    assert read_distribution(name).draw(level, 1, 7)["name"] == f"{name}-{level}-1-00007"


def test_twelve_distributions_are_shipped_and_their_levels_measured():
    assert len(shipped()) >= 12
    measured = {(own.distribution, own.level) for own in read_measured()}
    assert measured == {(name, level) for name in shipped() for level in read_distribution(name).levels}


def test_levels_are_as_hard_as_they_are_called():
    easy = [own for own in summaries(read_measured()) if own.level == "easy"]
    assert easy
    assert not [own for own in easy if own.at_limit or own.median >= 10]  # exact: recorded figures


def run(number, seconds, status):
    return Measured(
        distribution="a",
        level="easy",
        instance=f"a-{number}",
        solver="highs",
        version="1",
        seconds=seconds,
        time_limit=9.0,
        status=status,
    )


def test_measured_runs_are_recorded_and_summed_up(tmp_path):
    path = tmp_path / "measured.csv"
    runs = [run(2, 9.0, "time_limit"), run(1, 8.0, "optimal"), run(0, 1.0, "optimal")]
    for own in runs:
        record_measured(path, own)
    assert read_measured(path) == runs[::-1]
    (found,) = summaries(runs)
    assert (found.runs, found.solved, found.median, found.words) == (3, 2, 8.0, "8")  # exact: a copy
    (found,) = summaries([runs[0], run(3, 7.0, "time_limit"), runs[1]])
    assert found.words == "> 7"


def test_features_of_random_trees_have_so_many_values():
    plain, binned = (load(f"synthetic:tree,depth=2,n=200,p=3{more}", seed=4) for more in ("", ",values=2"))
    assert set(binned.X_raw.ravel()) == {0.0, 1.0}
    assert (binned.X_raw == (plain.X_raw >= 0.5)).all()
    assert (binned.y == plain.y).all()


def test_parity_of_a_suite_is_in_the_model():
    table = read_distribution("oct-parity").draw("easy", 0, 0)
    built = build_problem(Library(shipped()["oct"].parent), spec_of("drawn", table))
    assert [own.kind for own in built.problem.constraints] == ["parity"]
