"""Thousands of damaged files: each is read, or refused with an MpsError, and nothing else happens."""

import gzip
import random

import numpy as np
import pytest

from mipforest.files import MpsError, read_mps, write_mps
from mipforest.model.check import violations

BASE = """\
NAME test
OBJSENSE
    MAX
ROWS
 N cost
 L cap
 N free
 E fix
* two sides of one row: low high
 G low
 L high
COLUMNS
 x cost 1 cap 2.5
 x low 3
 x high 3
 MARKER 'MARKER' 'INTORG'
 y cap 1 fix 1
 z free 1e300
 MARKER 'MARKER' 'INTEND'
RHS
 RHS cap 4 cost -1
 RHS low -1 high 1
RANGES
 RNG cap 2
BOUNDS
 MI BND x
 UP BND x 9
 BV BND y
QUADOBJ
 x x 2
 x y 1
INDICATORS
 IF fix y 1
ENDATA
"""
FRAGMENTS = [
    *(
        "",
        " ",
        "\n",
        "\t",
        "*",
        "$",
        "'MARKER'",
        "nan",
        "-inf",
        "1e999",
        "-1",
        "0",
        "1_0",
        "x",
        "cap",
        "cost",
        "é",
        "\0",
    ),
    *(
        "\nENDATA\n",
        "\nRHS\n",
        "\nROWS\n",
        "\nQMATRIX\n",
        " FX BND y 1\n",
        " BV BND\n",
        "9" * 400,
        "١",
        "\x85",
        "\u2028",
    ),
]


def mutate(chance: random.Random, text: str) -> bytes:
    """Damage a text in one to three ways."""
    for _ in range(chance.randint(1, 3)):
        lines = text.split("\n")
        i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
        kind = chance.randrange(6)
        if kind == 0:
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == 1:
            lines.insert(i, lines[j])
        elif kind == 2:
            del lines[i]
        elif kind == 3:
            words = lines[i].split(" ")
            words[chance.randrange(len(words))] = chance.choice(chance.choice(lines).split(" ") + FRAGMENTS)
            lines[i] = " ".join(words)
        text = "\n".join(lines)
        where = chance.randrange(len(text) + 1)
        if kind == 4:
            text = text[:where] + chance.choice(FRAGMENTS) + text[where + chance.randrange(3) :]
        elif kind == 5 and chance.random() < 0.3:
            text = text[:where]
    data = text.encode()
    if chance.random() < 0.1:
        where = chance.randrange(len(data) + 1)
        data = data[:where] + bytes([chance.randrange(256)]) + data[where + 1 :]
    return data


def read_or_line(path):
    """Read a file; else give the line at fault. Every other exception fails the test."""
    try:
        return read_mps(path), 0
    except MpsError as error:
        return None, error.line


def test_mutations(tmp_path):
    chance = random.Random(0)
    path, again = tmp_path / "m.mps", tmp_path / "again.mps"
    outcomes = {"read": 0, "refused": 0}
    for _ in range(1200):
        data = mutate(chance, BASE)
        path.write_bytes(data)
        form, line = read_or_line(path)
        if form is None:
            assert 1 <= line <= len(data.splitlines()) + 1
            outcomes["refused"] += 1
            continue
        violations(form, np.zeros(form.n_columns))
        if outcomes["read"] % 40 == 0:
            write_mps(form, again)
            assert read_mps(again).A.shape == form.A.shape
        outcomes["read"] += 1
    assert min(outcomes.values()) > 120


def test_mutations_of_compressed_files(tmp_path):
    chance = random.Random(1)
    whole = gzip.compress(BASE.encode(), mtime=0)
    path = tmp_path / "m.mps.gz"
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(10, len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])])
        read_or_line(path)


def test_the_undamaged_file_is_read(tmp_path):
    (tmp_path / "m.mps").write_text(BASE)
    form = read_mps(tmp_path / "m.mps")
    assert form.row_names == ["cap", "free", "low"]
    assert form.indicators.n_rows == 1
    assert form.objective(np.array([1.0, 1.0, 0.0])) == pytest.approx(1 + 1 + 1 + 1)
