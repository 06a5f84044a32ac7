"""MathOptFormat: what is written is read back, the text is the format's, and what a model cannot hold is refused."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse
from strategies_forms import forms
from tolerance import same

import mipforest
from mipforest.files import MofError, read_model, read_mof, write_model, write_mof
from mipforest.model import Model
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.testing import assert_same_form

INF = np.inf


def with_sides(form):
    """The model without the rows that have no side, which no file of this format tells."""
    kept = np.flatnonzero(np.isfinite(form.row_lower) | np.isfinite(form.row_upper))
    names = tuple(form.row_names[row] for row in kept)
    return replace(
        form,
        A=sparse.csr_array(form.A[kept]),
        row_lower=form.row_lower[kept],
        row_upper=form.row_upper[kept],
        rows=(Block("rows", 0, (len(names),), flat_names=names),) if names else (),
    )


@settings(max_examples=50, deadline=None)
@given(forms())
def test_written_models_are_read_back(tmp_path_factory, form):
    path = tmp_path_factory.getbasetemp() / "model.mof.json"
    write_mof(form, path)
    again = read_mof(path)
    assert_same_form(with_sides(form), again)
    first = path.read_bytes()
    write_mof(again, path)
    assert path.read_bytes() == first


def test_the_parts_of_the_text(tmp_path):
    """Each kind of constraint once, by the examples of the format's own pages."""
    m = Model("small")
    x = m.continuous("x", lower=-1, upper=2.5)
    z, k = m.binary("z"), m.integer("k", lower=0)
    m.minimize((x + k) ** 2 + 2 * z + 0.5)
    m.add("cover", x + 0.1 * k >= 1)
    m.add_indicator("if", z, 0, x - k <= 4)
    m.write(tmp_path / "m.mof.json")
    said = json.loads((tmp_path / "m.mof.json").read_text())
    assert said["version"]["major"] == 1
    assert [each["name"] for each in said["variables"]] == ["x", "z", "k"]
    function = said["objective"]["function"]
    assert said["objective"]["sense"] == "min"
    assert function["type"] == "ScalarQuadraticFunction"
    # x^2 + 2 x k + k^2: by the format's convention, terms of the diagonal are halved.
    assert function["quadratic_terms"] == [
        {"coefficient": 2, "variable_1": "x", "variable_2": "x"},
        {"coefficient": 2, "variable_1": "x", "variable_2": "k"},
        {"coefficient": 2, "variable_1": "k", "variable_2": "k"},
    ]
    assert same(function["constant"], 0.5)
    sets = [(each["function"]["type"], each["set"]) for each in said["constraints"]]
    assert sets == [
        ("Variable", {"type": "Interval", "lower": -1, "upper": 2.5}),
        ("Variable", {"type": "ZeroOne"}),
        ("Variable", {"type": "GreaterThan", "lower": 0}),
        ("Variable", {"type": "Integer"}),
        ("ScalarAffineFunction", {"type": "GreaterThan", "lower": 1}),
        (
            "VectorAffineFunction",
            {"type": "Indicator", "set": {"type": "LessThan", "upper": 4}, "activate_on": "zero"},
        ),
    ]
    assert said["constraints"][-1]["function"]["terms"][0] == {
        "output_index": 1,
        "scalar_term": {"coefficient": 1, "variable": "z"},
    }


def test_compressed_files_hold_the_same_and_solve_the_same(tmp_path):
    m = Model("box")
    x = m.integer("x", 3, lower=0, upper=4)
    m.maximize((np.array([2.0, 1.0, 3.0]) * x).sum())
    m.add("weight", x.sum() <= 5)
    for name in ("m.mof.json", "m.mof.json.gz", "m.mps"):
        m.write(tmp_path / name)
    assert (
        gzip.decompress((tmp_path / "m.mof.json.gz").read_bytes()) == (tmp_path / "m.mof.json").read_bytes()
    )
    values = [mipforest.solve(Model.read(tmp_path / name)).objective for name in ("m.mof.json.gz", "m.mps")]
    assert values == [pytest.approx(14.0), pytest.approx(14.0)]


#: A file of another writer: constants in rows, terms that repeat, no names, starts and notes that are not read.
OTHER = {
    "description": "min x + y",
    "version": {"major": 1, "minor": 2},
    "variables": [{"name": "x", "primal_start": 0.0}, {"name": "y"}],
    "objective": {"sense": "min", "function": {"type": "Variable", "name": "x"}},
    "constraints": [
        {
            "function": {
                "type": "ScalarAffineFunction",
                "terms": [
                    {"coefficient": 1, "variable": "x"},
                    {"coefficient": 1, "variable": "x"},
                    {"coefficient": 1.5, "variable": "y"},
                ],
                "constant": 1,
            },
            "set": {"type": "GreaterThan", "lower": 3},
            "dual_start": 0,
        },
        {"function": {"type": "Variable", "name": "y"}, "set": {"type": "GreaterThan", "lower": -1}},
        {"function": {"type": "Variable", "name": "y"}, "set": {"type": "ZeroOne"}},
    ],
}


def read(tmp_path, content):
    path = tmp_path / "other.mof.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_model(path)


def test_files_of_other_writers(tmp_path):
    form = read(tmp_path, OTHER)
    expected = MatrixForm(
        c=np.array([1.0, 0.0]),
        A=sparse.csr_array(np.array([[2.0, 1.5]])),
        row_lower=np.array([2.0]),
        row_upper=np.array([INF]),
        col_lower=np.array([-INF, 0.0]),
        col_upper=np.array([INF, 1.0]),
        integer=np.array([False, True]),
        indicators=IndicatorRows.none(2),
        columns=form.columns,
        rows=form.rows,
    )
    assert_same_form(form, expected)
    assert (form.column_names, form.row_names) == (["x", "y"], ["c0"])


def test_a_model_without_an_objective(tmp_path):
    form = read(tmp_path, OTHER | {"objective": {"sense": "feasibility"}})
    assert not form.c.any()


ROW = OTHER["constraints"][0]


def with_row(**parts):
    return OTHER | {"constraints": [ROW | parts]}


def with_set(**parts):
    return with_row(function={"type": "Variable", "name": "y"}, set=parts)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is this a MathOptFormat file, and whole"),
        ("[" * 100_000, "nested too deeply|is this a MathOptFormat file"),
        ('{"version": {"major": 1}', "whole"),
        ("[]", "no object"),
        ({}, "'version'"),
        (OTHER | {"version": {"major": 2}}, "version is 2"),
        ({"version": {"major": 1}}, "'variables'"),
        (OTHER | {"variables": [{"name": "x"}, {"name": "x"}]}, "'x' comes twice"),
        (OTHER | {"variables": [{"name": ""}]}, "empty"),
        (OTHER | {"variables": [{"name": "x"}]}, "no variable 'y'"),
        (OTHER | {"constraints": [ROW | {"name": "a"}] * 2}, "'a' comes twice"),
        (with_row(set={"type": "PowerCone", "exponent": 2}), "PowerCone"),
        (with_row(set={"type": "LessThan"}), "'upper'"),
        (with_row(set={"type": "LessThan", "upper": "3"}), "no number"),
        (with_row(set={"type": "Interval", "lower": 3, "upper": 2}), "cross: 2 and 1"),
        (with_row(function={"type": "ScalarQuadraticFunction"}), "ScalarQuadraticFunction in GreaterThan"),
        (with_set(type="Semicontinuous", lower=1, upper=2), "'y' is Semicontinuous"),
        (json.dumps(with_set(type="LessThan", upper=1)).replace('"upper": 1', '"upper": NaN'), "NaN"),
        (
            json.dumps(with_set(type="LessThan", upper=1)).replace('"upper": 1', '"upper": 1e999'),
            "finite",
        ),
        (OTHER | {"objective": {"sense": "least", "function": {}}}, "'least'"),
        (OTHER | {"objective": {"sense": "min", "function": {"type": "VectorOfVariables"}}}, "VectorOf"),
        (with_row(set={"type": "Indicator"}, function={"type": "VectorAffineFunction"}), "'terms'"),
    ],
)
def test_what_is_malformed_or_no_model_is_refused(tmp_path, content, said):
    with pytest.raises(MofError, match=said):
        read(tmp_path, content)


def test_damaged_archives_are_refused(tmp_path):
    path = tmp_path / "m.mof.json.gz"
    path.write_bytes(gzip.compress(json.dumps(OTHER).encode())[:-9])
    with pytest.raises(MofError):
        read_mof(path)


def test_what_no_file_tells_is_refused_and_nothing_is_left(tmp_path):
    form = read(tmp_path, OTHER)
    with pytest.raises(ValueError, match="constant"):
        write_model(replace(form, offset=np.nan), tmp_path / "m.mof.json")
    assert not (tmp_path / "m.mof.json").exists()
