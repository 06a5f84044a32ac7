"""Other programs read the library's files: HiGHS the same model to the last digit; SCIP, GLPK, Cbc the same sizes."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mipforest.files import read_mps, write_lp
from mipforest.instances import Library

LIBRARY = Library(Path(__file__).parents[2] / "instances")
#: Those of the repository, and whatever else was built.
MODELS = {name: path for name, spec in LIBRARY.suite.items() if (path := LIBRARY.model_path(spec)).is_file()}

#: One of each kind of rows; the rest is slow.
QUICK = ("oct-tight-iris-d2", "margot-iris-virginica-d2", "univariate-olct-iris-virginica-d2-indicator")


def names(select):
    entries = LIBRARY.entries()
    chosen = [name for name in MODELS if select(entries[name])]
    return [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in chosen]


def linear(entry):
    return not entry.tags


def readable(entry):
    return "indicators" not in entry.tags


def form_of(name):
    return read_mps(MODELS[name])


def in_highs(path, *options):
    highspy = pytest.importorskip("highspy")
    highs = highspy.Highs()
    highs.silent()
    for option in options:
        highs.setOptionValue(*option)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    return highs


def assert_same_rows(highs, form):
    """HiGHS holds the model of a form: names, coefficients, sides and bounds, all as they are."""
    model = highs.getLp()
    matrix = model.a_matrix_
    assert str(matrix.format_).endswith("kColwise")
    A = sparse.csc_array(
        (matrix.value_, matrix.index_, matrix.start_), shape=(model.num_row_, model.num_col_)
    )
    rows = [list(model.row_names_).index(name) for name in form.row_names]
    columns = [list(model.col_names_).index(name) for name in form.column_names]
    assert abs(A.tocsr()[rows][:, columns] - form.A).nnz == 0
    for ours, theirs in (
        (form.row_lower, np.array(model.row_lower_)[rows]),
        (form.row_upper, np.array(model.row_upper_)[rows]),
        (form.col_lower, np.array(model.col_lower_)[columns]),
        (form.col_upper, np.array(model.col_upper_)[columns]),
        (form.c, np.array(model.col_cost_)[columns]),
    ):
        np.testing.assert_array_equal(theirs, ours)


@pytest.mark.parametrize("name", names(readable))
def test_highs_reads_the_model(name):
    assert_same_rows(in_highs(MODELS[name]), form_of(name))


@pytest.mark.parametrize("name", names(readable))
def test_highs_reads_the_same_from_an_lp_file(name, tmp_path):
    """Its LP reader is strict: of names, of signs of bounds, of sections."""
    write_lp(form_of(name), tmp_path / "model.lp")
    highs = in_highs(tmp_path / "model.lp")
    model, form = highs.getLp(), form_of(name)
    columns = form.n_columns + (form.offset != 0)  # a constant is a column that is fixed
    assert (model.num_row_, model.num_col_, len(model.a_matrix_.value_)) == (form.n_rows, columns, form.A.nnz)


@pytest.mark.parametrize("name", names(lambda entry: True))
def test_scip_reads_the_model(name):
    pyscipopt = pytest.importorskip("pyscipopt")
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(MODELS[name]))
    entry = LIBRARY.entries()[name]
    rows = form_of(name).indicators
    sides = rows.n_rows + int((rows.lower == rows.upper).sum())
    # A quadratic objective has a column and a row of its own there; each side of an indicator row a slack, and its row.
    quadratic = int(entry.quadratic_terms > 0)
    assert model.getNVars(transformed=False) == entry.columns + quadratic + sides
    assert model.getNConss(transformed=False) == entry.rows + quadratic + 2 * sides


def output_of(program, *arguments):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=60, check=False
    ).stdout


def unpacked(name, tmp_path):
    path = tmp_path / "model.mps"
    path.write_bytes(gzip.decompress(MODELS[name].read_bytes()))
    return str(path)


@pytest.mark.parametrize("name", names(linear))
def test_glpk_reads_the_model(name, tmp_path):
    said = output_of("glpsol", "--freemps", unpacked(name, tmp_path), "--check")
    rows, columns, nonzeros = map(
        int, re.search(r"(\d+) rows?, (\d+) columns?, (\d+) non-zero", said).groups()
    )
    entry = LIBRARY.entries()[name]
    costs = int(np.count_nonzero(form_of(name).c))  # in a row of its own there
    assert (rows - 1, columns, nonzeros - costs) == (entry.rows, entry.columns, entry.nonzeros)


@pytest.mark.parametrize("name", names(linear))
def test_cbc_reads_the_model(name, tmp_path):
    said = output_of("cbc", unpacked(name, tmp_path), "quit")
    rows, columns, nonzeros = map(
        int, re.search(r"has (\d+) rows, (\d+) columns and (\d+) elements", said).groups()
    )
    entry = LIBRARY.entries()[name]
    assert (rows, columns, nonzeros) == (entry.rows, entry.columns, entry.nonzeros)
