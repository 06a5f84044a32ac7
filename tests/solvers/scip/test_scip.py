import pickle
import sys
import threading
from dataclasses import replace
from itertools import product
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from small_models import INF, market_split, model
from strategies_forms import forms, small_integer_forms
from tolerance import same

from mipforest.bridges import indicator_to_big_m
from mipforest.errors import NotAllowed, SolverUnavailable, Unsupported
from mipforest.model.check import violations
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.clarabel import Clarabel
from mipforest.solvers.highs import Highs
from mipforest.solvers.scip import STATUS, Scip
from mipforest.solvers.solution import Solution, Status

pyscipopt = pytest.importorskip("pyscipopt")

#: Moderate numbers, for models that every solver can tell apart.
NUMBERS = st.integers(-12, 12).map(lambda k: k / 4)

UNDECIDED = (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)


def solve(form: MatrixForm, start: np.ndarray | None = None, **options: object) -> Solution:
    return Scip().solve(form, SolveSettings(**options), start=start)  # type: ignore[arg-type]


def best_of_all_points(form: MatrixForm) -> float:
    """Optimal value of a feasible model of a few bounded integers."""
    ranges = [np.arange(low, high + 1) for low, high in zip(form.col_lower, form.col_upper, strict=True)]
    points = [np.array(point) for point in product(*ranges)]
    values = [form.objective(x) for x in points if violations(form, x).max == 0]
    return max(values) if form.maximize else min(values)


# ------------------------------------------------------------------ answers


@given(st.booleans(), st.booleans(), st.data())
@settings(deadline=None, max_examples=15)
def test_integer_optimum_is_the_best_of_all_points(quadratic: bool, indicators: bool, data) -> None:
    form = data.draw(small_integer_forms(quadratic=quadratic, indicators=indicators))
    solution = solve(form, gap=0.0)
    assert solution.status is Status.OPTIMAL
    assert solution.x is not None
    assert violations(form, solution.x).max <= 1e-9
    assert solution.objective == pytest.approx(best_of_all_points(form), abs=1e-9)
    assert same(solution.objective, form.objective(solution.x))
    assert solution.bound == pytest.approx(solution.objective, abs=1e-5)


@given(forms(NUMBERS))
@settings(deadline=None, max_examples=15)
def test_agrees_with_highs(form: MatrixForm) -> None:
    linear = replace(form, Q=None, indicators=IndicatorRows.none(form.n_columns))
    ours, theirs = solve(linear, gap=0.0, time_limit=10.0), Highs().solve(linear, SolveSettings(gap=0.0))
    if Status.INFEASIBLE_OR_UNBOUNDED in (ours.status, theirs.status):
        assert {ours.status, theirs.status} <= set(UNDECIDED)
        return
    assert ours.status is theirs.status
    if ours.found:
        assert ours.objective == pytest.approx(theirs.objective, abs=1e-5, rel=1e-6)
        assert ours.warnings == ()


@st.composite
def mixed_quadratics(draw: st.DrawFn) -> MatrixForm:
    """Feasible convex models with two small integers, continuous columns, and every kind of row."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, m = 2 + int(rng.integers(1, 5)), int(rng.integers(0, 5))
    factor, A = rng.normal(size=(int(rng.integers(1, n + 1)), n)), rng.normal(size=(m, n))
    inside = np.r_[rng.integers(-1, 2, 2), rng.normal(size=n - 2)]
    lower_sides, upper_sides = A @ inside - rng.random(m), A @ inside + rng.random(m)
    lower_sides[rng.random(m) < 0.3] = -INF
    upper_sides[rng.random(m) < 0.3] = INF
    maximize = draw(st.booleans())
    return model(
        rng.normal(size=n),
        A,
        lower_sides,
        upper_sides,
        lower=np.r_[-np.ones(2), inside[2:] - 2],
        upper=np.r_[np.ones(2), inside[2:] + 2],
        integer=np.arange(n) < 2,
        Q=factor.T @ factor * (-1 if maximize else 1) * draw(st.sampled_from([1.0, 1e-2, 1e2])),
        offset=2.0,
        maximize=maximize,
    )


@given(mixed_quadratics())
@settings(deadline=None, max_examples=8)
def test_mixed_quadratic_optimum_is_the_best_of_all_continuous_ones(form: MatrixForm) -> None:
    values = []
    for integers in product((-1.0, 0.0, 1.0), repeat=2):
        fixed = np.r_[integers, np.full(form.n_columns - 2, np.nan)]
        rest = replace(
            form,
            col_lower=np.where(form.integer, fixed, form.col_lower),
            col_upper=np.where(form.integer, fixed, form.col_upper),
            integer=np.zeros(form.n_columns, dtype=bool),
        )
        solved = Clarabel().solve(rest, SolveSettings())
        values += [solved.objective] if solved.found else []
    best = max(values) if form.maximize else min(values)
    solution = solve(form, gap=1e-7)
    # SCIP states a quadratic objective as a row, which it keeps up to 1e-6: the gap that remains may be as large.
    assert solution.status in (Status.OPTIMAL, Status.LIMIT)
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert solution.bound == pytest.approx(best, rel=1e-5, abs=1e-5)
    assert same(form.objective(solution.x), solution.objective)
    assert violations(form, solution.x).max <= 1e-6


@given(small_integer_forms(quadratic=False, indicators=True))
@settings(deadline=None, max_examples=15)
def test_indicator_rows_agree_with_big_m_rows(form: MatrixForm) -> None:
    bridged = indicator_to_big_m.apply(form).form
    assert solve(form, gap=0.0).objective == pytest.approx(solve(bridged, gap=0.0).objective, abs=1e-6)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize(
    ("lower", "upper", "expected"), [(2.0, INF, 2.0), (-INF, -2.0, -3.0), (1.0, 2.5, 1.0), (2.0, 2.0, 2.0)]
)
def test_each_kind_of_indicator_row(value: int, lower: float, upper: float, expected: float) -> None:
    # Minimise x in [-3, 3], with the row on x switched on for good.
    row = IndicatorRows(
        np.zeros(1, int), np.array([value]), sparse.csr_array([[0.0, 1.0]]), *np.array([[lower], [upper]])
    )
    bounds = {"lower": [value, -3.0], "upper": [value, 3.0]}
    form = replace(model([0.0, 1.0], integer=[True, False], **bounds), indicators=row)
    assert solve(form).objective == pytest.approx(expected)


def test_a_quadratic_objective_is_exact_not_up_to_the_tolerance_of_its_row() -> None:
    # By hand: z = 1, w = 1/3 for both w, of value 1/2 * 2/9 * 9 - 2 = -1.
    Q = np.diag([0.0, 9.0, 9.0])
    form = model([0.0, -3.0, -3.0], [[-5.0, 1.0, 1.0]], None, 0.0, upper=[1, 9, 9], integer=[1, 0, 0], Q=Q)
    solution = solve(form)
    assert solution.objective == pytest.approx(-1.0, abs=1e-9)
    np.testing.assert_allclose(solution.x, [1, 1 / 3, 1 / 3], atol=1e-6)


def test_a_gap_that_the_tolerance_hides_leaves_a_warning() -> None:
    form = model([0.0, -1.0], [[-1.0, 1.0]], None, 0.0, upper=1.0, integer=[1, 0], Q=np.diag([0.0, 3.0]))
    small = replace(form, c=1e-5 * form.c, Q=1e-5 * form.Q)
    assert solve(form, gap=1e-4).warnings == ()
    solution = solve(small, gap=1e-9)
    assert solution.objective == pytest.approx(-1e-5 / 6, rel=1e-3)
    assert solution.gap < 1e-3 or "scale the objective up" in solution.warnings[0]


# ------------------------------------------------------------------ statuses and edge cases


@pytest.mark.parametrize(
    ("form", "status", "bound"),
    [
        (model([1.0], [[1.0]], 3.0, upper=1.0), Status.INFEASIBLE, INF),
        (model([1.0], [[1.0]], 3.0, upper=1.0, maximize=True), Status.INFEASIBLE, -INF),
        (model([1.0], lower=2.0, upper=1.0), Status.INFEASIBLE, INF),
        (model([1.0], [[1.0]], 2.0, 1.0), Status.INFEASIBLE, INF),
        (model([1.0], lower=0.2, upper=0.8, integer=True), Status.INFEASIBLE, INF),
        (model([1.0], [[0.0]], 1.0), Status.INFEASIBLE, INF),
        (model([-1.0]), Status.UNBOUNDED, -INF),
        (model([1.0], maximize=True), Status.UNBOUNDED, INF),
        (model([-1.0], integer=True), Status.UNBOUNDED, -INF),
        (model([-1.0, 0.0], integer=[True, False], Q=np.diag([0.0, 1.0])), Status.UNBOUNDED, -INF),
    ],
)
def test_statuses_without_a_point(form: MatrixForm, status: Status, bound: float) -> None:
    solution = solve(form)
    assert solution.status is status
    assert not solution.found
    assert same(solution.bound, bound)
    assert np.isnan(solution.objective)


def test_no_columns() -> None:
    assert solve(model([], offset=3.0)).objective == 3.0
    assert solve(model([], np.zeros((1, 0)), -1.0, 1.0, offset=3.0)).status is Status.OPTIMAL
    assert solve(model([], np.zeros((1, 0)), 1.0, 2.0)).status is Status.INFEASIBLE


def test_free_and_empty_rows_and_free_and_empty_columns() -> None:
    A = [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    form = model(
        [1.0, 1.0, 2.0],
        A,
        [-1.0, 2.0, -INF],
        [1.0, INF, INF],
        lower=[0, 0, -INF],
        upper=[1, INF, INF],
        integer=[True, True, False],
    )
    np.testing.assert_allclose(solve(form).x, [1.0, 0.0, 1.0])


def test_every_status_of_scip_is_known() -> None:
    names = {name.lower() for name in dir(pyscipopt.SCIP_STATUS) if not name.startswith("_")}
    assert names - {"unknown"} == STATUS.keys()


def test_node_limit() -> None:
    solution = solve(market_split(), solver_options={"limits/nodes": 1})
    assert solution.status is Status.LIMIT
    assert solution.found


def test_numbers_arrive_to_the_last_bit() -> None:
    from mipforest.solvers.scip.session import add_columns, add_rows

    A = np.random.default_rng(0).normal(size=(6, 5)) * 1e3 / 3
    form = model(np.arange(5) / 3, A, -1 / 3, 1 / 7, lower=-1 / 3, upper=np.pi)
    scip = pyscipopt.Model()
    variables = add_columns(scip, form)
    add_rows(scip, form, variables)
    names = [variable.name for variable in variables]
    for row, built in zip(A, scip.getConss(), strict=True):
        assert [scip.getValsLinear(built)[name] for name in names] == row.tolist()
        assert (scip.getLhs(built), scip.getRhs(built)) == (-1 / 3, 1 / 7)
    assert [variable.getObj() for variable in variables] == form.c.tolist()
    assert {(v.getLbOriginal(), v.getUbOriginal()) for v in variables} == {(-1 / 3, np.pi)}


def test_ipopt_orders_matrices_of_quadratic_models_without_metis() -> None:
    from mipforest.solvers.scip.session import IPOPT_FILE, IPOPT_OPTIONS, ScipSession
    from mipforest.solvers.worker import Worker

    linear = model([-1.0, -1.0], upper=2.0, integer=[True, False])
    for form, file in ((linear, ""), (replace(linear, Q=sparse.csr_array(np.eye(2))), str(IPOPT_OPTIONS))):
        session = ScipSession(form, Worker(False, None))
        session.set_options(SolveSettings())
        assert session.scip.getParam(IPOPT_FILE) == file
        session.close()
    assert "mumps_pivot_order 0" in IPOPT_OPTIONS.read_text().splitlines()


@pytest.mark.slow
def test_many_solves_with_quadratic_objectives_in_one_process() -> None:
    # The 64th new thread in which SCIP takes derivatives would end the process.
    form = model([-1.0, -1.0], upper=2.0, integer=[True, False], Q=[[3.0, 1.0], [1.0, 3.0]])
    program = (
        "import pickle, sys, threading\n"
        "from mipforest.settings import SolveSettings\n"
        "from mipforest.solvers.scip import Scip\n"
        "form = pickle.load(sys.stdin.buffer)\n"
        "for _ in range(66):\n"
        "    work = threading.Thread(target=lambda: Scip().solve(form, SolveSettings()))\n"
        "    work.start(); work.join()\n"
        "print('alive')\n"
    )
    done = run([sys.executable, "-c", program], input=pickle.dumps(form), capture_output=True, check=False)
    assert done.stdout == b"alive\n", done.stderr.decode()


def test_one_thread_serves_all_solves() -> None:
    solve(model([1.0]))
    before = threading.active_count()
    for _ in range(3):
        solve(market_split(2, 6))
    assert threading.active_count() == before


# ------------------------------------------------------------------ refusals


def test_leaves_continuous_quadratic_models_to_clarabel() -> None:
    with pytest.raises(Unsupported, match="convex quadratic objective without integers"):
        solve(model([1.0], upper=1.0, Q=[[1.0]]))


def test_refuses_a_nonconvex_objective() -> None:
    with pytest.raises(NotAllowed, match="convex objectives only"):
        solve(model([1.0], upper=1.0, integer=True, Q=[[-1.0]]))
    with pytest.raises(NotAllowed, match="convex objectives only"):
        solve(model([1.0], upper=1.0, integer=True, Q=[[1.0]], maximize=True))


@pytest.mark.parametrize(
    ("form", "named"),
    [
        (model([1.0, INF]), r"cost of x\[1\] is inf"),
        (model([1.0, np.nan]), r"cost of x\[1\] is nan"),
        (model([1.0], upper=1e25), r"upper bound of x\[0\] is 1e\+25"),
        (model([1.0], lower=INF), r"lower bound of x\[0\] is inf"),
        (model([1.0], [[1.0], [1.0]], [0.0, np.nan]), r"lower side of row\[1\] is nan"),
        (model([1.0], [[np.inf]], 0.0), "matrix holds 1 entries"),
    ],
)
def test_refuses_numbers_that_are_none(form: MatrixForm, named: str) -> None:
    with pytest.raises(NotAllowed, match=named):
        solve(form)


def test_warns_of_coefficients_that_scip_drops() -> None:
    assert "1 matrix entries" in solve(model([1.0], [[1e-10]], 0.0, 1.0)).warnings[0]


def test_an_old_package_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipforest.solvers.scip.installed_version", lambda _: "5.4.1")
    with pytest.raises(SolverUnavailable, match=r"PySCIPOpt 5\.4\.1 .* pip install --upgrade pyscipopt"):
        solve(model([1.0]))


# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits/gapp": 1}, "no option 'limits/gapp'; did you mean limits/gap"),
        ({"limits/gap": -1}, r"limits/gap = -1: it takes a real in \[0,"),
        ({"limits/gap": "x"}, "limits/gap = 'x': it takes a real"),
        ({"limits/nodes": 1.5}, "limits/nodes = 1.5: it takes a longint"),
        ({"limits/nodes": True}, "limits/nodes = True: it takes a longint"),
        ({"limits/nodes": INF}, "limits/nodes is inf; give a finite number"),
        ({"nodeselection/childsel": "zz"}, "childsel = 'zz': it takes a char in {"),
        ({"conflict/enable": "maybe"}, "conflict/enable = 'maybe': it takes a bool"),
        ({"visual/vbcfilename": 3}, "vbcfilename = 3: it takes a string"),
        ({"misc/catchctrlc": True}, "misc/catchctrlc = True is refused"),
    ],
)
def test_wrong_options_are_named(
    options: dict[str, object], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotAllowed, match=message):
        solve(model([1.0]), solver_options=options)
    assert capfd.readouterr() == ("", "")


def test_takes_options_of_every_type() -> None:
    options = {
        "limits/nodes": np.int64(100),
        "limits/memory": np.float64(1000),
        "limits/solutions": 3.0,
        "conflict/enable": np.bool_(False),
        "nodeselection/childsel": "d",
        "visual/vbcfilename": "-",
    }
    assert solve(model([1.0]), solver_options=options).found


def test_a_seed_that_is_too_large_is_refused() -> None:
    with pytest.raises(NotAllowed, match=r"randomseedshift.*2147483647"):
        solve(model([1.0]), seed=2**31)


def test_more_threads_than_one_leave_a_warning() -> None:
    assert "one thread" in solve(model([1.0]), threads=2).warnings[0]
    assert solve(model([1.0]), threads=1).warnings == ()


def test_writes_its_log_and_nothing_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "solver.log"
    solve(market_split(2, 6), log=log)
    first = log.read_text()
    assert "SCIP Status" in first
    assert capfd.readouterr() == ("", "")
    solve(market_split(2, 6), log=log)
    assert log.read_text().startswith(first)


def test_refuses_a_log_that_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(NotAllowed, match=r"absent.*No such file"):
        solve(model([1.0]), log=tmp_path / "absent" / "solver.log")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run() -> None:
    form = market_split(3, 20)
    runs = [solve(form, seed=3, solver_options={"limits/nodes": 300}) for _ in range(2)]
    assert runs[0].nodes == runs[1].nodes
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


def test_a_looser_gap_stops_earlier() -> None:
    form = market_split(3, 20, offset=1000.0)
    loose = solve(form, gap=0.2)
    assert loose.status is Status.OPTIMAL
    assert loose.gap <= 0.2
    assert loose.nodes < 1000


def test_priorities_decide_where_to_branch() -> None:
    form = market_split(3, 20)
    limit = SolveSettings(solver_options={"limits/nodes": 500, "presolving/maxrounds": 0})
    order = np.arange(form.n_columns)
    runs = [Scip().solve(form, limit, priorities=given) for given in (order, -order)]
    assert runs[0].warnings == runs[1].warnings == ()
    assert runs[0].bound != runs[1].bound or not np.array_equal(runs[0].x, runs[1].x)  # exact: another search


def test_the_registry_does_not_import_scip() -> None:
    program = (
        "import sys\n"
        "from mipforest.solvers.base import get_solver, solver_classes\n"
        "assert get_solver('scip').available()\n"
        "assert 'pyscipopt' not in sys.modules\n"
    )
    run([sys.executable, "-c", program], check=True)
