"""Models from files: read, changed, solved, written again."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies_forms import forms
from tolerance import same

import mipforest
from mipforest.errors import NotAllowed
from mipforest.files import MpsError, read_mps, write_mps
from mipforest.model import Model
from mipforest.testing import assert_same_form

KNAPSACK = """NAME knapsack
OBJSENSE MAX
ROWS
 N value
 L weight
COLUMNS
 M1 'MARKER' 'INTORG'
 lamp value 3 weight 2
 rope value 4 weight 3
 tent value 5 weight 4
 M2 'MARKER' 'INTEND'
RHS
 RHS weight 5
ENDATA
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "knapsack.mps"
    path.write_text(KNAPSACK)
    return path


def test_a_model_is_read_and_solved(path):
    m = Model.read(path)
    assert (m.name, list(m), list(m.constraints)) == ("knapsack", ["columns"], ["rows"])
    solution = mipforest.solve(m, "highs")
    assert (solution.status, solution.objective) == ("optimal", pytest.approx(7.0))
    assert m["columns"]["lamp"].value == pytest.approx(1.0)
    assert m["columns"].value.round().tolist() == [1.0, 1.0, 0.0]
    assert str(m.constraints["rows"]) == "weight: 2 lamp + 3 rope + 4 tent <= 5"


def test_what_was_read_can_be_changed(path, tmp_path):
    m = Model.read(path)
    x = m["columns"]
    m.add("not both", x["lamp"] + x["rope"] <= 1)
    m.constraints["rows"]["weight"].upper = 6.0
    assert mipforest.solve(m).objective == pytest.approx(8.0)
    twin = m.copy()
    assert twin.matrix().row_names == m.matrix().row_names
    m.write(tmp_path / "other.mps")
    again = Model.read(tmp_path / "other.mps")
    assert mipforest.solve(again).objective == pytest.approx(8.0)
    assert again.matrix().row_names[0] == "weight"


def test_flat_arrays_are_solved_as_they_are(path):
    form = read_mps(path)
    solution = mipforest.solve(form, "highs", start={"columns": np.array([1.0, 0.0, 0.0])})
    assert solution.objective == pytest.approx(7.0)
    assert same(solution.start_objective, 3.0)
    with pytest.raises(NotAllowed, match=r"str is no model.*Model\.read"):
        mipforest.solve(str(path))


@settings(max_examples=100, deadline=None)
@given(forms())
def test_a_model_of_flat_arrays_has_the_same_arrays(form):
    if form.Q is not None and np.abs(form.Q.data).min(initial=1.0) < np.finfo(float).tiny:
        return  # half of the least double is 0
    assert_same_form(Model.from_matrix(form).matrix(), form)


@settings(max_examples=50, deadline=None)
@given(forms())
def test_a_model_of_a_file_has_the_arrays_of_the_file(tmp_path_factory, form):
    path = tmp_path_factory.mktemp("mps") / "model.mps"
    write_mps(form, path)
    read = read_mps(path)
    model = Model.read(path).matrix()
    assert_same_form(model, read)
    assert (model.column_names, model.row_names) == (read.column_names, read.row_names)
    assert [block.flat_names for block in model.indicators.rows] == [
        b.flat_names for b in read.indicators.rows
    ]


@pytest.mark.parametrize(
    ("section", "holds"),
    [
        ("QCMATRIX weight", "quadratic rows"),
        ("QSECTION value", "another layout"),
        ("CSECTION k 0 QUAD", "cones"),
        ("SOS", "special ordered sets"),
        ("SOS2", "special ordered sets"),
        ("GENCONS", "general constraints"),
        ("PWLOBJ", "piecewise"),
        ("LAZYCONS", "lazy rows"),
    ],
)
def test_sections_of_other_readers_are_refused_by_what_they_hold(path, section, holds):
    path.write_text(KNAPSACK.replace("ENDATA", f"{section}\n lamp lamp 1\nENDATA"))
    with pytest.raises(
        MpsError, match=f"section {section.split()[0]} is not supported: it holds .*{holds}"
    ) as caught:
        read_mps(path)
    assert "did you mean" not in str(caught.value)
