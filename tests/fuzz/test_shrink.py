"""Shrinking: what is left is what a solver needs to be wrong, and the point stays feasible all the way."""

import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shrink
from scipy import sparse
from shrink import CHANGES, Alone, Answer, Case, ShrinkError, containing, least_kept
from small_models import INF, model

from mipforest.files.mps import write_mps
from mipforest.model.check import violations
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE


def large_case(seed: int = 0) -> Case:
    """A feasible model with every kind of row and column, and a point of it."""
    rng = np.random.default_rng(seed)
    n, m = 10, 8
    integer = np.arange(n) < 5
    x = np.where(integer, rng.integers(0, 3, n), np.round(rng.random(n), 6))
    x[0] = 1.0
    A = np.where(rng.random((m, n)) < 0.6, rng.normal(size=(m, n)), 0.0)
    lower, upper = A @ x - rng.random(m), A @ x + rng.random(m)
    lower[2] = upper[2] = A[2] @ x
    lower[5], upper[7] = -INF, INF
    factor = rng.normal(size=(n, n))
    form = model(
        rng.normal(size=n), A, lower, upper, lower=-1.0, upper=3.0, integer=integer, Q=factor @ factor.T
    )
    # A row that holds where the first column is at its value.
    switched = IndicatorRows(
        np.array([0]),
        np.array([int(x[0])]),
        sparse.csr_array(np.ones((1, n))),
        np.array([x.sum() - 1.0]),
        np.array([INF]),
        (Block("switched", 0, (1,)),),
    )
    bounds = {"col_lower": np.r_[0.0, form.col_lower[1:]], "col_upper": np.r_[1.0, form.col_upper[1:]]}
    return Case(replace(form, indicators=switched, offset=2.5, **bounds), x)


def rows_named(form: MatrixForm) -> set[str]:
    return set(form.row_names)


def test_few_places_are_kept_and_all_that_are_needed():
    needed = {3, 17, 18, 60}
    asked = []

    def holds(kept: list[int]) -> bool:
        asked.append(kept)
        return needed <= set(kept)

    assert set(least_kept(range(100), holds)) == needed
    assert len(asked) < 100


def test_what_is_left_is_what_the_solver_is_wrong_on():
    case = large_case()
    needed = set(case.form.row_names[3:5])

    def ask(form: MatrixForm) -> Answer:
        return (
            Answer("infeasible") if needed <= rows_named(form) and form.integer.any() else Answer("optimal")
        )

    small = shrink.shrink(case, ask)
    assert rows_named(small.form) == needed
    assert small.form.indicators.n_rows == 0
    assert (small.form.n_columns, int(small.form.integer.sum()), small.form.A.nnz) == (1, 1, 0)
    assert small.form.Q is None or small.form.Q.nnz == 0
    assert not small.form.c.any()


@pytest.mark.parametrize("maximize", [False, True])
def test_a_claim_is_held_against_the_value_at_the_point(maximize: bool):
    case = large_case()
    form = replace(case.form, maximize=maximize)
    worse = -1.0 if maximize else 1.0
    seen = []

    def ask(candidate: MatrixForm) -> Answer:
        # The point of each candidate is feasible, so its value is one that an optimum cannot miss.
        seen.append(candidate)
        wrong = candidate.A.nnz >= 3
        return Answer("optimal", objective=worse * 1e6) if wrong else Answer("optimal", -worse * 1e6)

    small = shrink.shrink(Case(form, case.x), ask)
    assert small.form.A.nnz == 3
    assert set(np.abs(small.form.A.data)) == {1.0}  # numbers are rounded as far as the claim stays
    assert violations(*small).max <= FEASIBILITY_TOLERANCE
    assert len(seen) < 400


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.what)
def test_every_change_keeps_the_point_feasible(change):
    rng = np.random.default_rng(1)
    for seed in range(5):
        case = large_case(seed)
        places = change.places(case)
        assert len(places)
        assert violations(*case).max <= FEASIBILITY_TOLERANCE
        for share in (0.3, 1.0):
            chosen = places[rng.random(len(places)) < share]
            changed = containing(change.make(case, chosen))
            assert violations(*changed).max <= FEASIBILITY_TOLERANCE
            if changed.form.Q is not None and changed.form.n_columns and "round" not in change.what:
                # A convex objective stays one, up to the rounding of eigenvalues.
                assert np.linalg.eigvalsh(changed.form.Q.toarray()).min() >= -1e-9


def test_columns_are_fixed_at_the_point_with_the_same_value():
    case = large_case()
    for delete in (shrink.without_columns, shrink.without_columns_and_rows):
        changed = delete(case, np.array([1, 5, 9]))
        assert changed.form.n_columns == case.form.n_columns - 3
        # Sums in another order: 1e-9 is far above their rounding.
        assert changed.form.objective(changed.x) == pytest.approx(case.form.objective(case.x), abs=1e-9)


def test_an_abort_is_not_shrunk_into_a_wrong_claim():
    case = large_case()

    def ask(form: MatrixForm) -> Answer:
        return Answer(signal="SIGABRT") if form.n_rows >= 2 else Answer("infeasible")

    assert shrink.shrink(case, ask).form.n_rows == 2


def test_a_solver_that_is_right_and_a_point_that_is_not_are_refused():
    case = large_case()
    with pytest.raises(ShrinkError, match="the solver is not wrong: it says optimal, value -1000000"):
        shrink.shrink(case, lambda form: Answer("optimal", objective=-1e6))
    with pytest.raises(ShrinkError, match="the point violates the model by 5"):
        shrink.shrink(Case(case.form, case.x + 100.0), lambda form: Answer("infeasible"))


def test_an_indicator_row_keeps_the_column_that_switches_it():
    def ask(form: MatrixForm) -> Answer:
        return Answer("infeasible") if form.indicators.n_rows else Answer("optimal")

    small = shrink.shrink(large_case(), ask)
    assert (small.form.indicators.n_rows, small.form.n_rows) == (1, 0)
    assert small.form.indicators.binary.tolist() == [0]
    assert small.form.integer.tolist() == [True]


@pytest.mark.parametrize("forks", [False, True])
def test_highs_is_asked_in_a_process_of_its_own(tmp_path: Path, forks: bool):
    form = model([1.0, 2.0], [[1.0, 1.0]], 1.5, upper=2.0, integer=True)
    ask = Alone("highs", tmp_path, options=(("output_flag", False),), forks=forks)
    answer = ask(form)
    assert (answer.status, answer.objective, answer.signal) == ("optimal", pytest.approx(2.0), "")
    assert answer.fault(form, np.array([0.0, 2.0])) == ""
    assert answer.fault(replace(form, c=form.c / 4), np.array([2.0, 0.0])) == "it calls 2.0 optimal"
    assert ask._run("import os; os.abort()")[0] == -signal.SIGABRT
    ask.close()
    impatient = replace(ask, limit=0.3)
    assert impatient._run("import time; time.sleep(60)")[0] is None
    impatient.close()


def test_errors_are_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "m.mps"
    write_mps(model([1.0, 2.0], [[1.0, 1.0]], 1.5, upper=2.0, integer=True), file)
    for arguments, words in (
        ((tmp_path / "absent.mps",), "there is no file"),
        ((), "give either a file or --seed and --case"),
        (
            (file, "--python", tmp_path / "python"),
            "No such file or directory; give another one with --python",
        ),
        ((file,), "the solver is not wrong: it says optimal"),
    ):
        monkeypatch.setattr(sys, "argv", ["shrink.py", *map(str, arguments), "-o", str(tmp_path / "out.mps")])
        with pytest.raises(SystemExit) as ended:
            shrink.main()
        assert words in str(ended.value)
    assert not (tmp_path / "out.mps").exists()
