import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from tolerance import at_least, at_most, same

from mipforest.certificates import certify
from mipforest.data.loading import load
from mipforest.files import read_mps
from mipforest.instances import (
    Generation,
    Library,
    SuiteError,
    build_problem,
    generate,
    read_distribution,
    shipped,
    verify,
)
from mipforest.instances.data_features import DIGITS, data_features
from mipforest.instances.generate import certificate_path, features_path, graph_path, part_of
from mipforest.instances.graph import VARIABLE_FEATURES, graph_of
from mipforest.instances.library import spec_of
from mipforest.model import Model
from mipforest.settings import DEFAULT_GAP, SolveSettings
from mipforest.solving import solve

TINY = """
summary = "oct on tiny samples"

[levels.easy]
n = { from = 12, to = 18 }

[[instance]]
family = "small"
model = "oct"
depth = 1
data = "synthetic:tree,depth=2,n={n},p=2,label_noise=0.2"
test_size = 0.25
"""

SETTINGS = SolveSettings(time_limit=60.0, threads=1)


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return read_distribution(str(path))


def sample(distribution, folder, n, **more):
    return Generation(
        **{"distribution": distribution, "level": "easy", "seed": 0, "n": n, "folder": folder} | more
    )


def files(folder):
    """Every file of a sample by name, but for the one that has seconds."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if not name.endswith("results.csv")}


def test_an_instance_has_all_that_a_learner_reads(tiny, tmp_path):
    assert generate(sample(tiny, tmp_path / "out", 3, test_share=0.4)) == []
    libraries = [Library(tmp_path / "out" / part) for part in ("train", "test")]
    assert [len(library.suite) for library in libraries] == [2, 1]
    for library in libraries:
        for spec in library.suite.values():
            entry = library.entries()[spec.name]
            assert (entry.status, entry.proof) == ("solved", "certificate of exact-search")
            assert verify(library, spec, rebuild=True) == []
            assert same(certify(certificate_path(library, spec)).objective, entry.objective)
            assert json.loads(features_path(library, spec).read_text())["samples"] == entry.samples


def test_graphs_are_the_rows_that_the_file_has(tiny, tmp_path):
    generate(sample(tiny, tmp_path, 1, test_share=0.0, solvers=()))
    library = Library(tmp_path / "train")
    (spec,) = library.suite.values()
    form = read_mps(library.model_path(spec))
    with np.load(graph_path(library, spec)) as graph:
        rows, signs = graph["constraint_row"], graph["constraint_sign"]
        A = sparse.coo_array((graph["edge_values"], graph["edge_indices"]), shape=(len(rows), form.n_columns))
        # exact: the same numbers, with other signs
        assert (A.toarray() == signs[:, None] * form.A.toarray()[rows]).all()
        side = np.where(signs == 1, form.row_upper[rows], -form.row_lower[rows])
        assert (graph["constraint_features"][:, 0] == side).all()
        sides = np.isfinite(form.row_lower).sum() + np.isfinite(form.row_upper).sum()
        assert len(rows) == sides
        columns = dict(zip(VARIABLE_FEATURES, graph["variable_features"].T, strict=True))
    # exact: copies
    np.testing.assert_array_equal(columns["objective"], form.c)
    np.testing.assert_array_equal(columns["is_type_binary"] + columns["is_type_integer"], form.integer)
    for side, bound in (("lower", form.col_lower), ("upper", form.col_upper)):
        np.testing.assert_array_equal(columns[f"has_{side}_bound"], np.isfinite(bound))
        np.testing.assert_array_equal(columns[f"{side}_bound"], np.where(np.isfinite(bound), bound, 0.0))


def test_graphs_have_both_sides_indicators_and_squares():
    model = Model("small")
    x, z = model.continuous("x", lower=0.0, upper=4.0), model.binary("z")
    model.add("both", x + 2.0 * z >= 1.0)
    model.add_indicator("on", z, 1, x <= 3.0)
    model.minimize(x * x - z)
    graph = graph_of(model.matrix())
    assert graph["constraint_sign"].tolist() == [-1, 1]
    assert graph["edge_values"].tolist() == [-1.0, -2.0, 1.0]
    assert graph["constraint_features"].ravel().tolist() == [-1.0, 3.0]
    assert graph["constraint_indicator"].tolist() == [-1, 1]
    assert graph["constraint_indicator_value"][1] == 1
    assert (graph["quadratic_indices"].tolist(), graph["quadratic_values"].tolist()) == ([[0], [0]], [2.0])


def test_the_same_seed_gives_the_same_bytes_whatever_the_workers(tiny, tmp_path):
    for folder, workers in (("one", 1), ("two", 2)):
        generate(sample(tiny, tmp_path / folder, 3, workers=workers))
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert tiny.draw("easy", 0, 0)["seed"] != tiny.draw("easy", 1, 0)["seed"]


def test_a_larger_sample_extends_a_smaller_one(tiny, tmp_path):
    worked_on = []
    generate(sample(tiny, tmp_path / "grown", 2), lambda ended: worked_on.append(ended.name))
    generate(sample(tiny, tmp_path / "grown", 4), lambda ended: worked_on.append(ended.name))
    assert sorted(worked_on) == [f"tiny-easy-0-{number:05d}" for number in range(4)]
    generate(sample(tiny, tmp_path / "whole", 4))
    assert files(tmp_path / "grown") == files(tmp_path / "whole")
    with pytest.raises(
        SuiteError, match="holds another sample than this one of tiny, level easy, seed 1, 4 inst"
    ):
        generate(sample(tiny, tmp_path / "grown", 4, seed=1))
    with pytest.raises(SuiteError, match="holds another sample"):
        generate(sample(tiny, tmp_path / "grown", 2))


def test_a_sample_that_was_interrupted_goes_on(tiny, tmp_path):
    done = []

    def interrupt(ended):
        done.append(ended.name)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(sample(tiny, tmp_path / "cut", 3), interrupt)
    generate(sample(tiny, tmp_path / "cut", 3), lambda ended: done.append(ended.name))
    assert sorted(done) == [f"tiny-easy-0-{number:05d}" for number in range(3)]
    generate(sample(tiny, tmp_path / "whole", 3))
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    command = [sys.executable, "-P", "-m", "mipforest", "instances", "generate", str(tmp_path / "tiny.toml")]
    arguments = [*command, "--n", "8", "--workers", "2", "--out"]
    killed = subprocess.Popen(
        [*arguments, str(tmp_path / "killed")], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert killed.stdout is not None
    done = {killed.stdout.readline().partition(":")[0] for _ in range(2)}
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    again = subprocess.run(
        [*arguments, str(tmp_path / "killed")], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert not {line.partition(":")[0] for line in again[:-1]} & done
    subprocess.run([*arguments, str(tmp_path / "whole")], capture_output=True, check=True)
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_what_cannot_be_built_is_told_and_the_rest_is_there(tmp_path):
    of_two_classes = '[[instance]]\nfamily = "small"\nmodel = "margot"\ndepth = 1\ndata = "iris"\n'
    (tmp_path / "odd.toml").write_text(TINY + of_two_classes)
    failed = generate(sample(read_distribution(str(tmp_path / "odd.toml")), tmp_path / "out", 6, solvers=()))
    libraries = [Library(tmp_path / "out" / part) for part in ("train", "test")]
    models = [entry.model for library in libraries for entry in library.entries().values()]
    assert set(models) == {"oct"}
    assert len(models) + len(failed) == 6
    assert failed
    assert all("classes" in own.message for own in failed)


def test_parts_do_not_depend_on_how_many_there_are():
    parts = [part_of(number, 0.2) for number in range(100)]
    assert parts.count("test") == 20
    assert {part_of(number, 0.0) for number in range(9)} == {"train"}


#: Numbers of features have so many digits.
WRITTEN = 10.0 ** (1 - DIGITS)


def test_features_of_data():
    iris = data_features(load("iris"))
    assert (iris["samples"], iris["features"], iris["classes"]) == (150, 4, 3)
    assert iris["class_entropy"] == pytest.approx(np.log2(3), rel=WRITTEN)
    assert iris["target_correlation_most"] is None
    found = load("diabetes")
    diabetes = data_features(found)
    correlations = np.abs(np.corrcoef(found.X_raw.T, found.y))
    assert diabetes["target_correlation_most"] == pytest.approx(correlations[-1, :-1].max(), rel=WRITTEN)
    assert diabetes["correlation_most"] == pytest.approx(
        correlations[:-1, :-1][np.triu_indices(10, 1)].max(), rel=WRITTEN
    )
    assert diabetes["target_mean"] == pytest.approx(found.y.mean(), rel=WRITTEN)


#: Distributions whose rows charge tangents of the loss, which lie below it: the tree of the rows is no better.
TANGENTS = ("ogrs",)


def confirm(name, number, folder):
    """Draw an instance, solve it by what ``auto`` takes and by HiGHS, and compare the optima."""
    spec = spec_of(name, read_distribution(name).draw("easy", 11, number))
    problem = build_problem(Library(folder), spec).problem
    found = problem.solve("auto", settings=SETTINGS)
    other = solve(problem.model, "highs", settings=SolveSettings(time_limit=600.0, threads=1))
    assert (found.status, other.status) == ("optimal", "optimal")
    # Each is within its gap of the optimum.
    slack = 2 * DEFAULT_GAP * max(1.0, abs(found.objective))
    assert at_most(other.objective, found.objective + slack)
    if name in TANGENTS:
        assert at_least(problem.checked(other).evaluated_objective, found.objective - slack)
    else:
        assert at_least(other.objective, found.objective - slack)


@pytest.mark.parametrize("name", ["oct-parity", "quantile"])
def test_an_optimum_is_that_of_highs(name, tmp_path):
    confirm(name, 0, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("name", shipped())
def test_optima_are_those_of_highs(name, number, tmp_path):
    confirm(name, number, tmp_path)
