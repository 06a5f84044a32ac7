"""A model beyond Gurobi's licence, and bridges on request, on the command line."""

import pytest

pytest.importorskip("gurobipy")
gurobi_license = pytest.importorskip("mipforest.solvers.gurobi.session")

LARGE = (
    *("solve", "--model", "margot", "--variant", "paper", "--depth", "3"),
    *("--data", "breast_cancer", "--start", "none", "--solver", "gurobi"),
)


@pytest.fixture(autouse=True)
def restricted(monkeypatch):
    monkeypatch.setattr(gurobi_license, "is_restricted", lambda environment: True)


@pytest.mark.parametrize("output", [(), ("--out",), ("--json",)])
def test_a_model_beyond_the_licence_is_refused_and_nothing_is_written(
    mipforest, tmp_path, monkeypatch, output
):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    where = ("--out", "run") if "--out" in output else output
    done = mipforest(*LARGE, *where)
    assert done.code == 4
    assert list(here.iterdir()) == []
    message = done.json["error"] if "--json" in output else done.err
    for words in ("6476 variables", "7966 rows", "2000 variables", "GRB_LICENSE_FILE", "--solver highs"):
        assert words in message
    assert "Traceback" not in done.err
    if "--json" in output:
        assert done.json["kind"] == "LicenseLimit"
    else:
        assert done.out == ""


def test_an_earlier_run_survives(mipforest, tmp_path, people_options):
    out = tmp_path / "run"
    assert mipforest(*people_options, "--out", out).code == 0
    before = {entry.name: entry.read_bytes() for entry in out.iterdir()}
    assert mipforest(*LARGE, "--out", out, "--force").code == 4
    assert {entry.name: entry.read_bytes() for entry in out.iterdir()} == before


@pytest.fixture
def small(people_csv):
    """A model of a moment that the licence takes."""
    data = ("--data", people_csv, "--target", "answer")
    return ("solve", "--model", "margot", "--depth", "1", *data, "--solver", "gurobi")


def test_bridges_on_request_are_recorded(mipforest, small):
    native = mipforest(*small, "--json")
    tangents = mipforest(*small, "--json", "--bridge", "quadratic", "--bridge", "indicator")
    assert (native.code, tangents.code) == (0, 0)
    assert native.json["bridges"] == []
    assert tangents.json["bridges"] == ["quadratic_to_tangents"]
    assert tangents.json["options"]["bridges"] == ["quadratic", "indicator"]
    assert tangents.json["objective"] == pytest.approx(native.json["objective"], rel=1e-4)


def test_an_unknown_bridge_is_wrong_usage(mipforest, small):
    done = mipforest(*small, "--bridge", "quadratics")
    assert done.code == 2
    assert "did you mean 'quadratic'" in done.err
