"""Gurobi's licence: foreseen before a model is built, whatever licence runs the tests."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from small_models import INF, model
from tolerance import at_most

from mipforest.errors import LicenseLimit, SolverError, SolverUnavailable
from mipforest.model import Model, sum_squares
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.gurobi import Gurobi
from mipforest.solvers.solution import Status
from mipforest.solving import solve

gurobipy = pytest.importorskip("gurobipy")
gurobi_license = pytest.importorskip("mipforest.solvers.gurobi.session")
gurobi_session = pytest.importorskip("mipforest.solvers.gurobi.session")


@pytest.fixture
def restricted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The licence inside the gurobipy package; nothing may be built under it that it does not take."""
    load = gurobi_session.load

    def checked_load(gurobi_model: object, form: MatrixForm) -> object:
        assert not gurobi_license.Size.of(form).needs_license
        return load(gurobi_model, form)

    monkeypatch.setattr(gurobi_license, "is_restricted", lambda environment: True)
    monkeypatch.setattr(gurobi_session, "load", checked_load)


@pytest.fixture(scope="module")
def in_the_package() -> bool:
    """Whether the licence inside the package is the one in use."""
    with gurobipy.Env(params={"OutputFlag": 0}) as environment:
        return gurobi_license.is_restricted(environment)


def tall(rows: int, *, two_sided: int = 0, free: int = 0, indicators: int = 0) -> MatrixForm:
    """Two binary columns under trivial rows of several kinds."""
    m = rows + two_sided + free
    lower = np.r_[np.full(rows, -INF), np.full(two_sided, -1.0), np.full(free, -INF)]
    upper = np.r_[np.full(rows + two_sided, 5.0), np.full(free, INF)]
    form = model([1.0, -1.0], np.ones((m, 2)), lower, upper, upper=1.0, integer=True)
    switched = IndicatorRows(
        np.zeros(indicators, int),
        np.ones(indicators, int),
        sparse.csr_array(np.tile([0.0, 1.0], (indicators, 1))),
        np.full(indicators, -INF),
        np.full(indicators, 3.0),
    )
    return replace(form, indicators=switched)


def wide(n: int, *, quadratic: bool = False) -> MatrixForm:
    Q = sparse.diags_array(np.r_[1.0, np.zeros(n - 1)], format="csr") if quadratic else None
    return replace(model(np.ones(n), upper=1.0), Q=Q)


@pytest.mark.parametrize(
    ("form", "too_large"),
    [
        (wide(2000), False),
        (wide(2001), True),
        (wide(200, quadratic=True), False),
        (wide(201, quadratic=True), True),
        (tall(2000), False),
        (tall(2001), True),
        (tall(0, two_sided=1000), False),
        (tall(1, two_sided=1000), True),
        (tall(2000, free=50), False),
        (tall(1990, indicators=10), False),
        (tall(1990, indicators=11), True),
    ],
)
def test_foresees_exactly_what_gurobi_refuses(
    form: MatrixForm, too_large: bool, in_the_package: bool
) -> None:
    assert gurobi_license.Size.of(form).needs_license is too_large
    if not too_large:
        assert Gurobi().solve(form, SolveSettings()).status is Status.OPTIMAL
    elif in_the_package:
        with pytest.raises(LicenseLimit):
            Gurobi().solve(form, SolveSettings())


@pytest.mark.usefixtures("restricted")
def test_a_refusal_leaves_no_log(tmp_path: Path) -> None:
    with pytest.raises(LicenseLimit):
        Gurobi().solve(wide(2001), SolveSettings(log=tmp_path / "solver.log"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("restricted")
def test_the_message_has_numbers_and_ways_out() -> None:
    with pytest.raises(LicenseLimit) as caught:
        Gurobi().solve(tall(1995, indicators=7), SolveSettings())
    message = str(caught.value)
    assert message.startswith("the model has 2 variables and 2002 rows (7 of them indicator rows)")
    for words in ("2000 variables and 2000 rows", "200 variables", "GRB_LICENSE_FILE", 'solver="highs"'):
        assert words in message
    assert "bridges" not in message


@pytest.mark.usefixtures("restricted")
def test_tangents_are_proposed_where_they_may_fit() -> None:
    with pytest.raises(LicenseLimit, match=r'300 variables.*quadratic objective.*bridges="quadratic"'):
        Gurobi().solve(wide(300, quadratic=True), SolveSettings())
    with pytest.raises(LicenseLimit) as caught:
        Gurobi().solve(wide(2000, quadratic=True), SolveSettings())
    assert "bridges" not in str(caught.value)


def test_a_limit_that_was_not_foreseen_is_explained_too(
    monkeypatch: pytest.MonkeyPatch, in_the_package: bool
) -> None:
    if not in_the_package:
        pytest.skip("needs the licence inside the gurobipy package")
    monkeypatch.setattr(gurobi_license, "is_restricted", lambda environment: False)
    with pytest.raises(LicenseLimit, match=r"2001 variables and 0 rows; .*takes less.*error 10010"):
        Gurobi().solve(wide(2001), SolveSettings())


def test_a_model_within_the_limits_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(environment: object) -> bool:
        raise AssertionError

    monkeypatch.setattr(gurobi_license, "is_restricted", probe)
    assert Gurobi().solve(wide(2000), SolveSettings()).found


def test_under_a_licence_without_limits_all_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[MatrixForm] = []

    class Reached(Exception):
        pass

    def load(gurobi_model: object, form: MatrixForm) -> object:
        built.append(form)
        raise Reached

    monkeypatch.setattr(gurobi_license, "is_restricted", lambda environment: False)
    monkeypatch.setattr(gurobi_session, "load", load)
    with pytest.raises(Reached):
        Gurobi().solve(wide(5000), SolveSettings())
    assert len(built) == 1


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (10009, SolverUnavailable, "GRB_LICENSE_FILE"),
        (10022, SolverUnavailable, "gives no licence"),
        (10014, SolverError, "Gurobi failed: no luck"),
    ],
)
def test_errors_of_gurobi_are_explained(number: int, kind: type[SolverError], words: str) -> None:
    explained = gurobi_license.explained(
        gurobipy.GurobiError(number, "no luck."), gurobi_license.Size.of(wide(2))
    )
    assert type(explained) is kind
    assert words in str(explained)
    assert f"no luck (Gurobi error {number})" in str(explained)


def test_no_licence_is_told_when_gurobi_starts(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> object:
        raise gurobipy.GurobiError(10009, "License expired")

    monkeypatch.setattr(gurobipy, "Env", refuse)
    with pytest.raises(
        SolverUnavailable,
        match=r"License expired .*10009.*check the licence file or, without one, run pip install --upgrade gurobipy",
    ):
        Gurobi().solve(wide(2), SolveSettings())
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------ through tangents


def sparse_regression(n: int) -> Model:
    """Fit n numbers by n // 3 of n switched variables: an MIQP with 2n columns."""
    target = np.random.default_rng(0).normal(size=n)
    m = Model("sparse")
    x, z = m.continuous("x", n, lower=-1, upper=1), m.binary("z", n)
    m.minimize(sum_squares(x - target) + 0.05 * z.sum())
    m.add("above", x <= z)
    m.add("below", x >= -1 * z)
    m.add("count", z.sum() <= n // 3)
    return m


@pytest.mark.slow
@pytest.mark.usefixtures("restricted")
def test_tangents_reach_beyond_the_quadratic_limit() -> None:
    m = sparse_regression(110)
    with pytest.raises(LicenseLimit, match="220 variables, 221 rows and a quadratic"):
        solve(m, "gurobi")
    ours, theirs = solve(m, "gurobi", bridges="quadratic", gap=1e-6), solve(m, "highs", gap=1e-6)
    assert ours.status is theirs.status is Status.OPTIMAL
    assert ours.solver == "gurobi"
    assert ours.bridges == ("quadratic_to_tangents",)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)


@pytest.mark.usefixtures("restricted")
def test_tangents_beyond_the_licence_say_their_numbers() -> None:
    with pytest.raises(LicenseLimit, match=r"with tangents .* the model has 1350 variables and \d{4} rows;"):
        solve(sparse_regression(450), "gurobi", bridges="quadratic")


def test_tangents_that_outgrow_the_licence_leave_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []

    def refuse_the_second(size: object, environment: object) -> None:
        rounds.append(1)
        if len(rounds) > 1:
            raise LicenseLimit("the model has 1 row too many")

    monkeypatch.setattr(gurobi_session, "require_license", refuse_the_second)
    m = Model()
    x, z = m.continuous("x", 12, lower=-3, upper=3), m.binary("z", 12)
    rng = np.random.default_rng(1)
    m.minimize(sum_squares(rng.normal(size=(12, 12)) @ x - 1) + 0.1 * z.sum())
    m.add("link", x <= 3 * z)
    solution = solve(m, "gurobi", bridges="quadratic", gap=1e-9)
    assert len(rounds) == 2
    assert solution.status is Status.LIMIT
    assert solution.found
    assert at_most(solution.bound, solution.objective)
    assert any("stopped early: with more tangents, the model has 1 row" in text for text in solution.warnings)
