import threading

import numpy as np
import pytest
from small_models import market_split, model
from tolerance import same

from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.gurobi import Gurobi
from mipforest.solvers.solution import Event, Solution

pytest.importorskip("gurobipy")


def solve(form: MatrixForm, **options: object) -> Solution:
    return Gurobi().solve(form, SolveSettings(**options))  # type: ignore[arg-type]


def test_an_error_in_progress_reaches_the_caller(capfd: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()

    def fail(event: Event) -> None:
        raise LookupError("display is gone")

    with pytest.raises(LookupError, match="display is gone"):
        Gurobi().solve(market_split(), SolveSettings(), on_progress=fail)
    assert threading.active_count() == before
    assert capfd.readouterr() == ("", "")


def test_an_error_inside_a_callback_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from mipforest.solvers.gurobi.session import GurobiListener

    def fail(listener: GurobiListener, x: np.ndarray) -> None:
        raise ZeroDivisionError("in the callback")

    monkeypatch.setattr(GurobiListener, "_new_incumbent", fail)
    with pytest.raises(ZeroDivisionError, match="in the callback"):
        solve(market_split(), time_limit=20.0)
    assert capfd.readouterr() == ("", "")


def test_a_linear_model_reports_its_outcome() -> None:
    solution = solve(model([1.0, 2.0], [[1.0, 1.0]], 3.0))
    assert same(solution.events[-1].objective, solution.objective)
    assert same(solution.objective, solution.bound)
    assert solution.bound == 3.0
