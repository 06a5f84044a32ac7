"""Certificates that the routing search writes, held to the checker that shares no code with it."""

import gzip
import json
import re

import numpy as np
import pytest
from margin_data import random_data
from tolerance import same
from typer.testing import CliRunner

from formulations.margot import Margot
from mipforest.certificates import CertificateError, certify
from mipforest.cli.main import app
from mipforest.data import Dataset
from mipforest.errors import NotAllowed, Unsupported
from mipforest.searches.routing import svm_backend

#: The bound of a search is lowered by a billionth of the objective, the checker's objective rounded up.
REL = 1e-9


def hard_data(seed):
    """Few different samples, most of them several times and in both classes, and some equal in one feature."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 20))
    X = rng.integers(0, 4, (n, int(rng.integers(1, 4)))) / 3.0
    y = (rng.random(n) < rng.choice([0.2, 0.5])).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, name=f"hard{seed}", scaling="none")


def check(result, path):
    """Hold a result to its certificate in both modes."""
    for exact in (False, True):
        found = certify(path, exact=exact)
        assert same(found.bound, result.bound)
        assert found.objective == pytest.approx(result.objective, rel=REL)
        assert found.gap == pytest.approx(result.gap, abs=REL)
    return found


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("seed", range(6))
def test_what_a_search_claims_is_certified(tmp_path, seed):
    rng = np.random.default_rng(seed)
    depth = seed % 3 + 1
    data = hard_data(seed) if seed % 2 else random_data(seed, n=24 // depth, p=3)
    C = tuple(float(10.0**k) for k in rng.uniform(-3, 4, depth))
    path = tmp_path / "proof.gz"
    problem = Margot(C=C).build(data, depth)
    result = problem.solve("routing", threads=1, time_limit=60, certificate=path)
    assert result.status == "optimal"
    found = check(result, path)
    assert found.weight.sum() == data.n
    assert found.data == data.name
    without = problem.solve("routing", threads=1, time_limit=60)
    assert result.objective == pytest.approx(without.objective, rel=1e-4)


def test_a_stopped_search_certifies_its_bound(tmp_path):
    path = tmp_path / "proof.gz"
    problem = Margot(C=100.0).build(random_data(7, n=45, p=4), 3)
    result = problem.solve("routing", certificate=path, threads=2, on_progress=lambda event: event.nodes > 5)
    assert result.status == "interrupted"
    assert 0 < result.bound < result.objective * (1 - 1e-4)
    assert check(result, path).leaves > 5


@pytest.fixture(scope="module")
def proven(tmp_path_factory):
    """A problem, its result, and its certificate."""
    path = tmp_path_factory.mktemp("proven") / "proof.gz"
    problem = Margot(C=3.0).build(random_data(1, n=28, p=3), 2)
    return problem, problem.solve("routing", certificate=path, threads=1, time_limit=60), path


def test_a_limit_of_no_time_certifies_something(proven, tmp_path):
    path = tmp_path / "proof.gz"
    assert check(proven[0].solve("routing", certificate=path, time_limit=0), path).leaves == 1


def test_a_small_log_ends_plunges_early_and_loses_nothing(proven, tmp_path, monkeypatch):
    ample_log = svm_backend.empty_log

    def little(*size):
        log = ample_log(*size)
        log[1] = 400
        return log

    monkeypatch.setattr(svm_backend, "empty_log", little)
    problem, ample, _ = proven
    path = tmp_path / "proof.gz"
    result = problem.solve("routing", certificate=path, threads=1, time_limit=60)
    check(result, path)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(ample.objective, rel=1e-4)


def test_any_change_of_a_leaf_is_refused_by_its_name(proven, tmp_path):
    _, result, path = proven
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    rng = np.random.default_rng(0)
    leaves = [k for k, line in enumerate(lines) if line.startswith('{"leaf"')]
    screens = [k for k, line in enumerate(lines) if line.startswith('{"screen"')]
    assert len(screens) > 2
    for k in rng.choice(leaves, 6, replace=False):
        leaf = json.loads(lines[k])
        t = next(t for t, entries in enumerate(leaf["dual"]) if entries)
        leaf["dual"][t][1] += 1
        refuse(
            [*lines[:k], json.dumps(leaf), *lines[k + 1 :]], tmp_path, f"line {k + 1}: leaf {leaf['leaf']}: "
        )
        refuse([*lines[:k], *lines[k + 1 :]], tmp_path, f"leaf {leaf['leaf']} is missing")
    for k in rng.choice(screens, 2, replace=False):
        screen = json.loads(lines[k])
        g, _, changes = screen["out"][-1]
        changes[0][1][1] += 1
        told = rf"line {k + 1}: leaf 'sample {g} to the (left|right) at \d' of node {screen['screen']}: "
        refuse([*lines[:k], json.dumps(screen), *lines[k + 1 :]], tmp_path, told)
    claim = json.loads(lines[-1])
    claim["claim"]["bound"] = result.objective * 1.001
    refuse([*lines[:-1], json.dumps(claim)], tmp_path, r"line \d+, leaf .*: proven is .*, claimed")
    first = json.loads(lines[1])
    first["n"].reverse()
    refuse([lines[0], json.dumps(first), *lines[2:]], tmp_path, "leaf|node")


def refuse(lines, folder, told):
    path = folder / "changed.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    with pytest.raises(CertificateError, match=told):
        certify(path)


def test_only_searches_that_prove_write_one(tmp_path):
    problem = Margot().build(random_data(0, n=8, p=2), 2)
    with pytest.raises(
        Unsupported, match=r"highs writes no certificate: use solver='exact-search' or 'routing'"
    ):
        problem.solve("highs", certificate=tmp_path / "proof.gz")
    with pytest.raises(NotAllowed, match=r"ends in \.gz"):
        problem.solve("routing", certificate=tmp_path / "proof")
    with pytest.raises(NotAllowed, match="no folder"):
        problem.solve("routing", certificate=tmp_path / "nowhere" / "proof.gz")
    assert list(tmp_path.iterdir()) == []


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k % 5},{k % 3},{'ab'[k % 4 == 0]}\n" for k in range(20))
    (tmp_path / "few.csv").write_text(f"x,z,target\n{rows}")
    solve = "solve --model margot --depth 2 --data few.csv --threads 1 --certificate proof.gz"
    assert CliRunner().invoke(app, [*solve.split(), "--quiet", "--solver", "routing"]).exit_code == 0
    shown = CliRunner().invoke(app, ["certify", "proof.gz"])
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.output.splitlines()] == [
        "certified",
        "value",
        "bound",
        "proof",
        "model",
        "numbers",
        "data",
        "sha256",
        "compared",
    ]
    told = json.loads(CliRunner().invoke(app, ["certify", "proof.gz", "--exact", "--json"]).output)
    assert told["samples"] == 20
    assert 0 <= told["gap"] <= 1e-4
    refused = CliRunner().invoke(app, [*solve.split(), "--solver", "highs"])
    assert refused.exit_code == 2
    assert "highs writes no certificate: use --solver exact-search or routing" in re.sub(
        r"\s+", " ", refused.output
    )
    damaged = gzip.compress(gzip.decompress((tmp_path / "proof.gz").read_bytes())[:-300])
    (tmp_path / "damaged.gz").write_bytes(damaged)
    assert CliRunner().invoke(app, ["certify", "damaged.gz"]).exit_code == 3
