"""The text of LP files, and what cannot be told by one."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mipforest.files import write_lp, write_model
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm

INF = np.inf


def model() -> MatrixForm:
    """Every feature of the format, once."""
    return MatrixForm(
        c=np.array([1.0, 0.0, -2.5, 0.0]),
        A=sparse.csr_array(
            np.array([[1, 0.1, 0, 0], [0, 1, -1, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0.0]])
        ),
        row_lower=np.array([-INF, 2.0, -1.0, -INF, 0.0]),
        row_upper=np.array([4.0, 2.0, 1 / 3, INF, INF]),
        col_lower=np.array([0.0, -INF, -2.0, 0.0]),
        col_upper=np.array([INF, INF, 7.0, 1.0]),
        integer=np.array([False, False, True, True]),
        indicators=IndicatorRows(
            np.array([3]),
            np.array([0]),
            sparse.csr_array(np.array([[1.0, 0, 0, 0]])),
            np.array([1.0]),
            np.array([2.0]),
            (Block("if", 0, (1,)),),
        ),
        Q=sparse.csr_array(np.array([[2.0, 1.5, 0, 0], [1.5, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])),
        offset=0.25,
        columns=(Block("x", 0, (3,)), Block("z", 3, ())),
        rows=(Block("row", 0, (5,)),),
        maximize=True,
        name="small",
    )


TEXT = """\
\\ small
Maximize
 obj:
 + 1 x(0)
 + 0 x(1)
 - 2.5 x(2)
 + 0 z
 + 2.5E-1 Constant
 + [
 + 2 x(0) ^2
 + 3 x(0) * x(1)
 ] / 2
Subject To
\\ 1 rows without sides are left out
 row(0):
 + 1 x(0)
 + 1E-1 x(1)
 <= 4
 row(1):
 + 1 x(1)
 - 1 x(2)
 = 2
 row(2):
 + 1 x(2)
 >= -1
 row(2)_upper:
 + 1 x(2)
 <= 3.333333333333333E-1
 row(4):
 + 0 x(0)
 >= 0
 if(0): z = 0 ->
 + 1 x(0)
 >= 1
 if(0)_upper: z = 0 ->
 + 1 x(0)
 <= 2
Bounds
 x(1) free
 -2 <= x(2) <= 7
 Constant = 1
Generals
 x(2)
Binaries
 z
End
"""


def test_the_whole_text(tmp_path):
    write_lp(model(), tmp_path / "m.lp")
    assert (tmp_path / "m.lp").read_text() == TEXT
    assert float("3.333333333333333E-1") == 1 / 3


def test_compressed_files_hold_the_same(tmp_path):
    write_model(model(), tmp_path / "m.lp")
    write_model(model(), tmp_path / "m.lp.gz")
    assert gzip.decompress((tmp_path / "m.lp.gz").read_bytes()) == (tmp_path / "m.lp").read_bytes()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"offset": np.nan}, "constant"),
        ({"c": np.array([INF, 0, 0, 0])}, "objective coefficient"),
        ({"row_lower": np.full(5, 9.0)}, "sides"),
        ({"Q": sparse.csr_array(np.diag([1.0, 0, 0], 1))}, "symmetric"),
        (
            {"Q": sparse.csr_array(np.array([[0, 1e308, 0, 0], [1e308, 0, 0, 0], [0] * 4, [0] * 4]))},
            "overflows",
        ),
    ],
)
def test_what_the_format_does_not_tell_is_refused_and_nothing_is_left(tmp_path, change, word):
    with pytest.raises(ValueError, match=word):
        write_lp(replace(model(), **change), tmp_path / "m.lp")
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_columns_is_refused(tmp_path):
    none = np.zeros(0)
    form = MatrixForm(
        none, sparse.csr_array((0, 0)), none, none, none, none, none == 1, IndicatorRows.none(0)
    )
    with pytest.raises(ValueError, match="no columns"):
        write_lp(form, tmp_path / "m.lp")


@pytest.mark.parametrize("name", ["m.txt", "m", "m.lp.bz2"])
def test_other_names_are_refused(tmp_path, name):
    for write in (write_lp, write_model):
        with pytest.raises(ValueError, match=r"end the name in .*\.lp"):
            write(model(), tmp_path / name)
