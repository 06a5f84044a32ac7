"""LP files, read by HiGHS: the same model, or a refusal that names what is in the way."""

import gzip
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lp_reader import needs_lp_reader
from scipy import sparse
from strategies_forms import forms

from mipforest.files import LpError, read_lp, read_model, write_lp
from mipforest.files.layout import CONSTANT

pytestmark = needs_lp_reader

#: Numbers that HiGHS takes as they are.
plain = st.one_of(
    st.integers(-5, 5).map(float), st.sampled_from([0.1, -0.3, 1 / 3, 50.0, 1e-3, 123456.789, 1e12])
)

EVERYTHING = """\\ a comment
Maximize
 profit: 2 x + 3.5 y - z + 7 + [ - x ^2 + 2 x * y - 4 y ^2 ] / 2
Subject To
 c1: x + y - 2 z <= 4
 c2: x - y >= -3
 c3: x + z = 2
 c4: 3 x <= 1e30
Bounds
 x <= 10
 -5 <= y <= 5
 z free
 -inf <= w <= 3
General
 y
Binary
 b
End
"""


def written(tmp_path, text, name="model.lp"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["model.lp", "model.lp.gz", "a name with blanks é.LP"])
def test_every_part_is_read(tmp_path, name):
    form = read_model(written(tmp_path, EVERYTHING, name))
    assert form.maximize
    columns = {name: j for j, name in enumerate(form.column_names)}
    assert set(columns) == {"x", "y", "z", "w", "b"}
    order = [columns[name] for name in ("x", "y", "z", "w", "b")]
    assert form.row_names == ["c1", "c2", "c3", "c4"]
    assert form.c[order].tolist() == [2.0, 3.5, -1.0, 0.0, 0.0]
    assert form.offset == 7.0  # exact: read
    assert form.Q is not None
    assert form.Q.toarray()[np.ix_(order[:2], order[:2])].tolist() == [[-1.0, 1.0], [1.0, -4.0]]
    assert form.A.toarray()[:, order[:3]].tolist() == [[1, 1, -2], [1, -1, 0], [1, 0, 1], [3, 0, 0]]
    assert form.row_lower.tolist() == [-np.inf, -3.0, 2.0, -np.inf]
    assert form.row_upper.tolist() == [4.0, np.inf, 2.0, np.inf]
    assert form.col_lower[order].tolist() == [0.0, -5.0, -np.inf, -np.inf, 0.0]
    assert form.col_upper[order].tolist() == [10.0, 5.0, np.inf, 3.0, 1.0]
    assert form.integer[order].tolist() == [False, True, False, False, True]


@settings(max_examples=150, deadline=None)
@given(forms(plain))
def test_what_is_written_is_read(tmp_path_factory, form):
    if form.indicators.n_rows or not form.n_columns:
        return
    path = tmp_path_factory.mktemp("lp") / "model.lp"
    write_lp(form, path)
    read = read_lp(path)
    n, constant = form.n_columns, CONSTANT in read.column_names
    assert read.n_columns == n + constant
    assert read.maximize == form.maximize
    assert np.array_equal(read.c[:n], form.c)
    assert read.offset + (read.c[n] if constant else 0.0) == form.offset
    assert np.array_equal(read.col_lower[:n], form.col_lower)
    assert np.array_equal(read.col_upper[:n], form.col_upper)
    assert np.array_equal(read.integer[:n], form.integer)
    Q, its_Q = (np.zeros((n, n)) if q is None else q.toarray()[:n, :n] for q in (form.Q, read.Q))
    assert np.array_equal(Q, its_Q)
    rows, lower, upper = [], [], []
    for i in range(form.n_rows):
        sides = [(form.row_lower[i], form.row_upper[i])]
        if np.isfinite(sides[0]).all() and sides[0][0] != sides[0][1]:
            sides = [(sides[0][0], np.inf), (-np.inf, sides[0][1])]
        for low, high in sides:
            if np.isfinite(low) or np.isfinite(high):
                rows.append(i)
                lower.append(low)
                upper.append(high)
    assert (sparse.csr_array(read.A[:, :n]) != form.A[rows]).nnz == 0
    assert sorted(zip(read.row_lower, read.row_upper, strict=True)) == sorted(zip(lower, upper, strict=True))


HEAD = "Minimize\n obj: x + y\nSubject To\n c1: x + y >= 1\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (f"{HEAD} q: [ x ^2 ] <= 4\nEnd\n", 5, "quadratic constraints"),
        (f"{HEAD} i: b = 1 -> x >= 1\nBinary\n b\nEnd\n", 5, "indicator constraints"),
        (f"{HEAD}SOS\n s: S1:: x:1 y:2\nEnd\n", 5, "SOS"),
        (f"{HEAD}General Constraints\n g: z = MIN ( x , y )\nEnd\n", 6, "expected a variable"),
        (f"{HEAD} r: -5 <= x - y <= 4\nEnd\n", 5, "expected a number"),
        (f"{HEAD} k: x + 3 >= 1\nEnd\n", 5, "constant .* is ignored"),
        (f"{HEAD} t: x + 1e-12 y >= 1\nEnd\n", 0, "ignored"),
        (f"{HEAD} t: x + 1e16 y >= 1\nEnd\n", 0, "1e.15"),
        (f"{HEAD} c1: x >= 0.5\nEnd\n", 0, "the row 'c1' comes twice"),
        (f"{HEAD}Bounds\n x <= 5\nSemi-Continuous\n x\nEnd\n", 0, "'x' is semi-continuous"),
        (f"{HEAD}Bounds\n x <= -3\nEnd\n", 0, "the bounds of 'x' cross: 0 and -3"),
        (HEAD, 0, "expected `end`"),
        ("", 0, "no column"),
        ("hello", 1, "section keyword"),
        ("\0\0\0", 0, "HiGHS|no column"),
    ],
)
def test_what_a_model_cannot_hold_is_refused_by_name(tmp_path, text, line, reason):
    with pytest.raises(LpError, match=reason) as caught:
        read_lp(written(tmp_path, text))
    assert caught.value.line == line or not line


def test_damaged_and_absent_files(tmp_path):
    with pytest.raises(LpError, match="damaged"):
        read_lp(written(tmp_path, HEAD).rename(tmp_path / "plain.lp.gz"))
    with pytest.raises(FileNotFoundError):
        read_lp(tmp_path / "absent.lp")
    with pytest.raises(ValueError, match="end the name in"):
        read_model(tmp_path / "model.txt")
    (tmp_path / "bytes.lp").write_bytes(HEAD.replace("y", "\xff").encode("latin-1") + b"End\n")
    with pytest.raises(LpError):
        read_lp(tmp_path / "bytes.lp")


def test_nothing_is_printed(tmp_path, capfd):
    read_lp(written(tmp_path, EVERYTHING))
    with pytest.raises(LpError):
        read_lp(written(tmp_path, HEAD))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_mutated_files_are_read_or_refused(tmp_path, count):
    rng, path, refused = random.Random(3), tmp_path / "model.lp", 0
    words = (
        b"[",
        b"->",
        b"<=",
        b"nan",
        b"inf",
        b"1e999",
        b"free",
        b"General\n",
        b"SOS\n",
        b"\0",
        b"\xff",
        b":",
        b"9" * 400,
    )
    for _ in range(count):
        text = bytearray(EVERYTHING.encode())
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(text))
            if rng.random() < 0.5:
                text[place:place] = rng.choice(words)
            else:
                del text[place : place + rng.randint(1, 12)]
        path.write_bytes(text)
        try:
            read_lp(path)
        except LpError:
            refused += 1
    assert refused > count / 2  # exact: a count
