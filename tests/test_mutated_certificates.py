"""Certificates changed by chance and by intent: refused in words, never a crash, never a bound above the true one."""

import gzip
import json
import warnings
from copy import deepcopy
from random import Random

import numpy as np
import pytest
from test_certificates import CLAIM, LINES, NODES, at, written
from typer.testing import CliRunner

from formulations.margot import HfsMargot, Margot, SfsMargot
from formulations.olct import Olct
from mipforest.certificates import CertificateError, certify, nodes
from mipforest.cli.main import app
from mipforest.data import Dataset

#: What takes the place of an entry.
VALUES = (
    1e308, -1e308, float("nan"), float("inf"), -0.0, 0, 1, -1, 1e-308, 5e-324, 2**53, 2**53 - 1, 2**31, 10**30, "x",
    None, True, [], {}, [[]], 1e154, 0.5, 3, 200, -199,
)  # fmt: skip

#: The numbers of a problem in the first line: of other ones another bound may be true.
NUMBERS = ("sha256", "C", "epsilon", "kinks", "norm", "free", "alpha", "depth")


def changed(change, lines=LINES):
    lines = json.loads(json.dumps(lines))
    change(lines)
    return lines


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [0, value, None]
    return value


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (changed(at(7, "claim", "w", 0, [1e308])), "the claimed tree has the value beyond doubles"),
        (changed(at(7, "claim", "b", 0, 1e308)), "the claimed tree has the value beyond doubles"),
        (changed(at(1, "n", [1e308, 1e308])), "the samples weigh more than a double holds"),
        (changed(at(0, "kinks", [[1e308, 1e308]]), NODES), "the claimed tree has the value beyond doubles"),
        (changed(at(1, "x", [1e308])), "too large for doubles|beyond doubles"),
        (changed(at(0, "depth", nested(500))), "depth is a list"),
        (changed(at(0, "epsilon", nested(500))), "epsilon is a list"),
        (changed(at(5, "nodes", [nested(500), None, None]), NODES), "feature 0 of node 0 was decided before"),
        (changed(at(0, "mipforest_certificate", True)), "no certificate of format"),
        (changed(at(0, "parameters", {"C": nested(500)})), "parameter C is no plain value"),
        (changed(at(0, "parameters", [])), "parameters is no object"),
        (changed(at(0, "model", "m" * 1000)), "model is no text, or a long one"),
        (changed(at(0, "rows", 0)), "rows is 0"),
        (changed(at(0, "sha256", "0" * 64)), "not those of the digest"),
    ],
)
def test_hostile_numbers_and_nesting_are_refused(tmp_path, lines, told, exact):
    with pytest.raises(CertificateError, match=told) as caught:
        certify(written(tmp_path / "proof.gz", lines), exact=exact)
    assert caught.value.exit_code == 3


def test_more_capacities_than_memory_holds_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes, "MAX_CAPACITIES", 24)
    path = written(tmp_path / "proof.gz", changed(at(0, "kinks", [[1.0, 0.5], [1.0, 0.5]]), NODES))
    with pytest.raises(CertificateError, match="line 5"):  # the points are of one kink
        certify(path)
    monkeypatch.setattr(nodes, "MAX_CAPACITIES", 23)
    with pytest.raises(CertificateError, match="line 3: nodes, samples and kinks have 24 capacities"):
        certify(path)


def test_choices_nested_five_hundred_deep_are_followed(tmp_path):
    p, choices = 600, None
    for j in reversed(range(499)):
        choices = [j, choices, None]
    lines = [
        NODES[0] | {"features": p, "depth": 1, "C": [10.0], "free": [1], "alpha": 0.5},
        {"x": [0.0] * p, "n": [1.0, 0.0]},
        {"x": [1.0] * p, "n": [0.0, 1.0]},
        {"leaf": 0, "nodes": [choices]},
        {"claim": {"objective": 20.0, "bound": 0.0, "w": [[0.0] * p], "b": [0.0]}},
    ]
    assert certify(written(tmp_path / "proof.gz", lines)).leaves == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"plain text",
        b"\x1f\x8b",
        gzip.compress(b"{}\n" * 9, mtime=0)[:-12],
        gzip.compress(b" " * 10_000_000, mtime=0),
    ],
)
def test_files_that_cannot_be_unpacked_are_refused(tmp_path, content):
    (tmp_path / "proof.gz").write_bytes(content)
    done = CliRunner().invoke(app, ["certify", str(tmp_path / "proof.gz")])
    assert done.exit_code == 3
    assert done.output.startswith("error: ")


def test_a_bound_below_zero_is_a_gap_of_one(tmp_path):
    claim = {"claim": CLAIM["claim"] | {"bound": -1e308}}
    assert certify(written(tmp_path / "proof.gz", [*LINES[:-1], claim])).gap == pytest.approx(1.0)


@pytest.fixture(scope="module")
def proofs(tmp_path_factory):
    """Lines of certificates, and the values of the optimal trees."""
    rng = np.random.default_rng(5)
    data = Dataset.from_arrays(rng.random((8, 2)), rng.integers(0, 2, 8), name="eight")
    path, found = tmp_path_factory.mktemp("proofs") / "proof.gz", []
    for formulation in (
        Margot(C=1.0), Olct(C=1.0), HfsMargot(C=(20, 2000), B=1), SfsMargot(C=(20, 2000), B=1),
    ):  # fmt: skip
        result = formulation.build(data, 2).solve("routing", threads=1, certificate=path, gap=1e-7)
        found.append((gzip.decompress(path.read_bytes()).decode().splitlines(), result.objective))
    return found


def places(value, way=()):
    """Yield the way to everything inside a value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*way, key)
        yield from places(value[key], (*way, key))


def mutated(lines, chance):
    """Change lines by chance: one is gone, twice there or moved, or entries are others, gone, or nested."""
    lines = [json.loads(line) for line in lines]
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        k, act = chance.choice([0, len(lines) - 1, *[chance.randrange(len(lines))] * 2]), chance.randrange(8)
        if act == 0:
            lines.insert(chance.randrange(len(lines)), lines.pop(k))
        elif act == 1:
            lines.insert(chance.randrange(len(lines)), lines[k])
        elif act == 2 and len(lines) > 1:
            del lines[k]
        elif inside := list(places(lines[k])):
            *way, key = chance.choice(inside)
            part = lines[k]
            for step in way:
                part = part[step]
            if act == 3 and isinstance(part, dict):
                del part[key]
            elif act == 4:
                part[key] = nested(chance.choice([3, 100, 500]))
            elif act == 5 and type(part[key]) in (int, float):
                part[key] *= chance.choice([1.0, 2, 0.5, 1 + 1e-6, -1, 10**9])
            elif act == 6 and type(part[key]) in (int, float):
                part[key] += chance.choice([1, -1, 1e-9])
            else:
                part[key] = deepcopy(chance.choice(VALUES))
    return lines


@pytest.mark.parametrize("n", [100, pytest.param(4000, marks=pytest.mark.slow)])
def test_whatever_is_changed_is_refused_or_true(tmp_path, proofs, n):
    chance, path, codes = Random(n), tmp_path / "proof.gz", set()
    for k in range(n):
        lines, optimum = proofs[k % len(proofs)]
        raw = bytearray(gzip.compress("".join(f"{json.dumps(e)}\n" for e in mutated(lines, chance)).encode()))
        if chance.random() < 0.05:
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        path.write_bytes(raw)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            done = CliRunner().invoke(app, ["certify", str(path), "--json", *["--exact"] * (k % 3 == 0)])
        assert done.exit_code in (0, 3), (k, done.output)
        codes.add(done.exit_code)
        told = json.loads(done.stdout)
        if done.exit_code == 3:
            assert told["error"]
            continue
        header = {"kinks": [[1.0, 1.0]], "norm": "l2", "free": None, "alpha": None} | json.loads(lines[0])
        assert told["bound"] <= told["objective"] * (1 + 1e-9)
        if all(told[name] == header[name] for name in NUMBERS):
            assert told["bound"] <= optimum * (1 + 1e-6)
    assert 3 in codes
