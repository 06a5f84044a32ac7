"""What is written is read back to the last bit; the text is as documented."""

import gzip
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies_forms import finite, forms

from mipforest.files import read_mps, write_mps
from mipforest.files.layout import exact_range
from mipforest.files.mps import mps_text
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.testing import assert_same_form

INF = np.inf


def model(**parts):
    """A model of two columns and one row, with some parts changed."""
    n = len(parts.get("c", (1.0, 0.0)))
    standard = {
        "c": np.array([1.0, 0.0]),
        "A": sparse.csr_array(np.array([[2.0, 0.1]])),
        "row_lower": np.array([-INF]),
        "row_upper": np.array([4.0]),
        "col_lower": np.zeros(n),
        "col_upper": np.full(n, INF),
        "integer": np.zeros(n, dtype=bool),
        "indicators": IndicatorRows.none(n),
        "columns": (Block("x", 0, (n,)),),
        "rows": (Block("r", 0, (1,)),),
    }
    return MatrixForm(**(standard | parts))


def text_of(form):
    return b"".join(mps_text(form)).decode()


@settings(max_examples=25, deadline=None)
@given(forms(), st.sampled_from([".mps", ".mps.gz"]))
def test_written_models_are_read_back(tmp_path_factory, form, suffix):
    path = tmp_path_factory.getbasetemp() / f"model{suffix}"
    write_mps(form, path)
    again = read_mps(path)
    assert_same_form(form, again)
    for matrix in (again.A, again.indicators.A, again.Q):
        assert matrix is None or (matrix.has_canonical_format and (matrix.data != 0).all())
    first = path.read_bytes()
    write_mps(again, path)
    assert path.read_bytes() == first


def test_the_text_of_a_model_with_everything():
    form = MatrixForm(
        c=np.array([1.0, 0.0, -0.25, 0.0]),
        A=sparse.csr_array(np.array([[1.0, 0, 1, 0], [0, 50, 0, 0], [0, 0, 0, 0], [0.1, 2, 0, 0]])),
        row_lower=np.array([1.0, -INF, -INF, -1.0]),
        row_upper=np.array([1.0, 7.5, INF, 2.0]),
        col_lower=np.array([0.0, 0.0, -INF, 0.0]),
        col_upper=np.array([INF, 1.0, -2.0, INF]),
        integer=np.array([False, True, False, True]),
        indicators=IndicatorRows(
            np.array([1, 1]),
            np.array([0, 1]),
            sparse.csr_array(np.array([[1.0, 0, 0, 0], [0, 0, 3, 0]])),
            np.array([2.0, 0.0]),
            np.array([INF, 5.0]),
            (Block("if", 0, (2,)),),
        ),
        Q=sparse.csr_array(np.array([[2.0, 0, -1, 0], [0, 0, 0, 0], [-1, 0, 4, 0], [0, 0, 0, 0]])),
        offset=3.5,
        columns=(Block("x", 0, ()), Block("z", 1, (1,), (("n3",),)), Block("w", 2, (1, 2))),
        rows=(Block("cover", 0, (3,)), Block("box", 3, ())),
        maximize=True,
        name="small",
    )
    assert (
        text_of(form)
        == """\
NAME small FREE
OBJSENSE
    MAX
ROWS
 N OBJ
 E cover[0]
 L cover[1]
 N cover[2]
 G box
 G if[0]
* two sides of one row: if[1] if[1]_upper
 G if[1]
 L if[1]_upper
COLUMNS
 x OBJ 1
 x cover[0] 1
 x box 1E-1
 x if[0] 1
 MARKER 'MARKER' 'INTORG'
 z[n3] cover[1] 50
 z[n3] box 2
 MARKER 'MARKER' 'INTEND'
 w[0,0] OBJ -2.5E-1
 w[0,0] cover[0] 1
 w[0,0] if[1] 3
 w[0,0] if[1]_upper 3
 MARKER 'MARKER' 'INTORG'
 w[0,1] OBJ 0
 MARKER 'MARKER' 'INTEND'
RHS
 RHS OBJ -3.5
 RHS cover[0] 1
 RHS cover[1] 7.5
 RHS box -1
 RHS if[0] 2
 RHS if[1]_upper 5
RANGES
 RNG box 3
BOUNDS
 BV BND z[n3]
 MI BND w[0,0]
 UP BND w[0,0] -2
 LO BND w[0,1] 0
 PL BND w[0,1]
QUADOBJ
 x x 2
 x w[0,0] -1
 w[0,0] w[0,0] 4
INDICATORS
 IF if[0] z[n3] 0
 IF if[1] z[n3] 1
 IF if[1]_upper z[n3] 1
ENDATA
"""
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(finite, finite).filter(lambda s: s[0] != s[1]), min_size=1))
def test_ranges_give_the_other_side_exactly(pairs):
    lower, upper = np.sort(np.array(pairs), axis=1).T
    span, below = exact_range(lower, upper)
    for low, high, distance, anchored_below in zip(
        lower.tolist(), upper.tolist(), span.tolist(), below.tolist(), strict=True
    ):
        if not np.isnan(distance):
            assert 0 < distance < INF
            assert (low + distance == high) if anchored_below else (high - distance == low)


def test_sides_that_no_range_tells_become_two_rows():
    lower, upper = -1.0, 1 + 2**-52
    assert np.isnan(exact_range(np.array([lower]), np.array([upper]))[0]).all()
    form = model(row_lower=np.array([lower]), row_upper=np.array([upper]))
    text = text_of(form)
    assert " G r[0]\n L r[0]_upper\n" in text
    assert "RANGES" not in text


def test_two_rows_that_were_changed_by_hand_stay_two(tmp_path):
    form = model(row_lower=np.array([-1.0]), row_upper=np.array([1 + 2**-52]))
    path = tmp_path / "m.mps"
    path.write_text(text_of(form).replace(" x[0] r[0] 2\n", " x[0] r[0] 3\n"))
    assert read_mps(path).n_rows == 2


def test_numbers_keep_all_17_digits(tmp_path):
    highspy = pytest.importorskip("highspy")
    value = 0.1 + 0.2  # 0.30000000000000004
    form = model(A=sparse.csr_array(np.array([[1.0, value]])))
    ours = str(tmp_path / "ours.mps")
    write_mps(form, ours)
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(ours)
    assert value in solver.getLp().a_matrix_.value_
    assert read_mps(ours).A[0, 1] == value  # exact: written to the last digit


def test_names_become_safe_and_unique(tmp_path):
    form = model(
        columns=(Block("x", 0, (2,), flat_names=("my column", "my_column")),),
        rows=(Block("r", 0, (1,), flat_names=("RHS",)),),
        name="two words",
    )
    write_mps(form, tmp_path / "m.mps")
    again = read_mps(tmp_path / "m.mps")
    assert_same_form(form, again, names=False)
    assert (again.column_names, again.row_names) == (["my_column_2", "my_column"], ["_RHS"])
    assert again.name == "two_words"


def test_a_row_may_be_named_as_the_objective_is_by_default(tmp_path):
    form = model(rows=(Block("OBJ", 0, ()),))
    write_mps(form, tmp_path / "m.mps")
    assert_same_form(form, read_mps(tmp_path / "m.mps"))


def test_negative_zero_is_zero(tmp_path):
    form = model(c=np.array([-0.0, 1.0]), offset=-0.0, col_upper=np.array([-0.0, 5.0]))
    assert "-0" not in text_of(form)
    write_mps(form, tmp_path / "m.mps")
    assert_same_form(form, read_mps(tmp_path / "m.mps"))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"c": np.array([np.nan, 1.0])}, r"objective coefficient of column x\[0\] is nan"),
        ({"c": np.array([INF, 1.0])}, r"objective coefficient of column x\[0\] is inf"),
        ({"offset": np.nan}, "objective constant is nan"),
        ({"A": sparse.csr_array(np.array([[0.0, np.nan]]))}, r"coefficient in row r\[0\] is nan"),
        (
            {"Q": sparse.csr_array(np.array([[0.0, 0], [0, INF]]))},
            r"quadratic coefficient of column x\[1\] is inf",
        ),
        ({"Q": sparse.csr_array(np.array([[0.0, 1], [0, 0]]))}, "not symmetric"),
        ({"row_lower": np.array([5.0])}, r"row r\[0\] has the sides \[5.0, 4.0\]"),
        ({"row_upper": np.array([np.nan])}, r"row r\[0\] has the sides"),
        ({"row_upper": np.array([-INF])}, r"row r\[0\] has the sides"),
        ({"col_lower": np.array([0.0, INF])}, r"column x\[1\] has the sides"),
        ({"col_upper": np.array([-1.0, 1.0])}, r"column x\[0\] has the sides \[0.0, -1.0\]"),
    ],
)
def test_what_no_file_can_tell_is_refused_and_leaves_no_file(tmp_path, parts, message):
    path = tmp_path / "m.mps"
    path.write_text("old")
    with pytest.raises(ValueError, match=message):
        write_mps(model(**parts), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["m.mps"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"binary": np.array([0])}, r"column x\[0\] having the value 1; the column must be binary"),
        ({"value": np.array([2])}, r"column x\[1\] having the value 2"),
        ({"lower": np.array([-INF]), "upper": np.array([INF])}, r"indicator row if has no finite side"),
        ({"lower": np.array([3.0])}, r"indicator row if has the sides \[3.0, 1.0\]"),
    ],
)
def test_indicator_rows_that_no_file_can_tell_are_refused(changes, message):
    A = sparse.csr_array(np.array([[1.0, 0.0]]))
    good = IndicatorRows(
        np.array([1]), np.array([1]), A, np.array([-INF]), np.array([1.0]), (Block("if", 0, ()),)
    )
    binary = {"integer": np.array([False, True]), "col_upper": np.array([INF, 1.0])}
    text_of(model(**binary, indicators=good))
    with pytest.raises(ValueError, match=message):
        text_of(model(**binary, indicators=replace(good, **changes)))


@pytest.mark.parametrize("name", ["model.lp", "model", "model.mps.bz2", "mps"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"end the name in \.mps"):
        write_mps(model(), tmp_path / name)
    with pytest.raises(ValueError, match=r"end the name in \.mps"):
        read_mps(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_system_errors_pass_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_mps(model(), tmp_path / "missing" / "m.mps")
    with pytest.raises(FileNotFoundError):
        read_mps(tmp_path / "m.mps")


def test_the_same_model_gives_the_same_bytes_in_another_process(tmp_path):
    names = [f"model.{suffix}" for suffix in ("mps", "mps.gz")]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    source = tmp_path / "source.mps"
    write_mps(model(), source)
    for name in names:
        write_mps(read_mps(source), tmp_path / name)
    program = (
        "import sys, time; time.time = lambda: 1e9\n"
        "from mipforest.files import read_mps, write_mps\n"
        "for path in sys.argv[2:]:\n"
        "    write_mps(read_mps(sys.argv[1]), path)"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    there = [elsewhere / name for name in names]
    subprocess.run([sys.executable, "-c", program, source, *there], check=True, env=environment)
    for name, path in zip(names, there, strict=True):
        assert (tmp_path / name).read_bytes() == path.read_bytes()


def test_the_header_of_a_compressed_file_has_neither_time_nor_name(tmp_path):
    write_mps(model(), tmp_path / "m.mps.gz")
    data = (tmp_path / "m.mps.gz").read_bytes()
    assert data[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"  # gzip, deflate, no flags, time 0
    assert gzip.decompress(data) == text_of(model()).encode()
