from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mipforest.bridges import indicator_to_big_m
from mipforest.errors import Unsupported
from mipforest.model.check import violations
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm

INF = float("inf")


def model(
    lower: list[float], upper: list[float], rows: list[tuple[int, int, list[float], float, float]]
) -> MatrixForm:
    """Columns x, and the binary z last; one row x[0] >= 0; indicator rows (binary, value, a, L, U)."""
    n = len(lower) + 1
    binary, value, a, low, high = zip(*rows, strict=True)
    return MatrixForm(
        c=np.ones(n),
        A=sparse.csr_array(np.eye(1, n)),
        row_lower=np.zeros(1),
        row_upper=np.array([INF]),
        col_lower=np.array([*lower, 0.0]),
        col_upper=np.array([*upper, 1.0]),
        integer=np.ones(n, dtype=bool),
        indicators=IndicatorRows(
            np.array(binary), np.array(value), sparse.csr_array(np.array(a, dtype=float)),
            np.array(low, dtype=float), np.array(high, dtype=float), (Block("if", 0, (len(rows),)),),
        ),
        columns=(Block("x", 0, (n - 1,)), Block("z", n - 1, ())),
        rows=(Block("first", 0, (1,)),),
    )  # fmt: skip


def text(form: MatrixForm) -> list[str]:
    """The rows of a model as ``name: low <= 2 x[0] - z <= high``."""
    lines = []
    for k, name in enumerate(form.row_names):
        row = form.A[[k]]
        terms = [f"{a:+g} {form.column_names[j]}" for j, a in zip(row.indices, row.data, strict=True)]
        lines.append(f"{name}: {form.row_lower[k]:g} <= {' '.join(terms)} <= {form.row_upper[k]:g}")
    return lines


def rewritten(form: MatrixForm) -> list[str]:
    return text(indicator_to_big_m.apply(form).form)


# x[0] in [-2, 3], x[1] in [0, 4]: x[0] + 2 x[1] in [-2, 11].
BOX = ([-2.0, 0.0], [3.0, 4.0])
SUM = [1.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((2, 1, SUM, -INF, 5), ["if[0]: -inf <= +1 x[0] +2 x[1] +6 z <= 11"]),
        ((2, 0, SUM, -INF, 5), ["if[0]: -inf <= +1 x[0] +2 x[1] -6 z <= 5"]),
        ((2, 1, SUM, 4, INF), ["if[0]: -2 <= +1 x[0] +2 x[1] -6 z <= inf"]),
        ((2, 0, SUM, 4, INF), ["if[0]: 4 <= +1 x[0] +2 x[1] +6 z <= inf"]),
        (
            (2, 1, SUM, 4, 5),
            ["if[0]: -2 <= +1 x[0] +2 x[1] -6 z <= inf", "if[0]_upper: -inf <= +1 x[0] +2 x[1] +6 z <= 11"],
        ),
        (
            (2, 0, SUM, 4, 4),
            ["if[0]: 4 <= +1 x[0] +2 x[1] +6 z <= inf", "if[0]_upper: -inf <= +1 x[0] +2 x[1] -7 z <= 4"],
        ),
        ((2, 1, SUM, -5, 5), ["if[0]: -inf <= +1 x[0] +2 x[1] +6 z <= 11"]),
        ((2, 1, SUM, -INF, 11), []),
        ((2, 1, [-1.0, 0.0, 0.0], -INF, 1), ["if[0]: -inf <= -1 x[0] +1 z <= 2"]),
        ((2, 1, [0.0, 0.0, 0.0], 1, INF), ["if[0]: 0 <= -1 z <= inf"]),
        ((2, 1, [1.0, 0.0, -6.0], -INF, 0), ["if[0]: -inf <= +1 x[0] -3 z <= 3"]),
    ],
    ids=["on at 1", "on at 0", "lower at 1", "lower at 0", "range", "equality", "half redundant", "redundant",
         "negative", "empty row", "its own binary"],
)  # fmt: skip
def test_text_in_text_out(row: tuple[int, int, list[float], float, float], expected: list[str]) -> None:
    assert rewritten(model(*BOX, [row])) == ["first[0]: 0 <= +1 x[0] <= inf", *expected]


def test_rows_keep_their_order_and_names() -> None:
    rows = [(2, 1, SUM, -INF, 5), (2, 1, SUM, 0, 1), (2, 0, SUM, 4, INF)]
    names = indicator_to_big_m.apply(model(*BOX, rows)).form.row_names
    assert names == ["first[0]", "if[0]", "if[1]", "if[1]_upper", "if[2]"]


def test_everything_else_stays() -> None:
    form = model(*BOX, [(2, 1, SUM, -INF, 5)])
    bridged = indicator_to_big_m.apply(form)
    assert bridged.form.indicators.n_rows == 0
    assert bridged.form.c is form.c
    assert bridged.form.columns == form.columns
    point = np.array([1.0, np.nan, 0.0])
    np.testing.assert_array_equal(bridged.carry(point), point)
    np.testing.assert_array_equal(bridged.undo(point), point)


@pytest.mark.parametrize("side", [(-INF, 5.0), (4.0, INF)])
def test_refuses_an_infinite_big_m(side: tuple[float, float]) -> None:
    form = model([-INF, 0.0], [INF, 4.0], [(2, 1, [0.0, 1.0, 0.0], 0, 1), (2, 1, SUM, *side)])
    with pytest.raises(
        Unsupported, match=r"indicator row if\[1\] has no finite big-M, because column x\[0\] lacks"
    ):
        indicator_to_big_m.apply(form)


def test_needs_only_the_bounds_that_matter() -> None:
    form = model([0.0, 0.0], [INF, 4.0], [(2, 1, [1.0, 0.0, 0.0], 2, INF)])
    assert rewritten(form)[1:] == ["if[0]: 0 <= +1 x[0] -2 z <= inf"]


@st.composite
def models(draw: st.DrawFn) -> MatrixForm:
    numbers = st.integers(-4, 4)
    lower = [float(draw(st.integers(-2, 0))) for _ in range(2)]
    upper = [float(draw(st.integers(0, 2))) for _ in range(2)]
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        low, high = sorted((draw(numbers), draw(numbers)))
        low, high = draw(st.sampled_from([(low, high), (-INF, high), (low, INF), (low, low), (-INF, INF)]))
        rows.append((2, draw(st.integers(0, 1)), [float(draw(numbers)) for _ in range(3)], low, high))
    return model(lower, upper, rows)


@given(models())
@settings(deadline=None, max_examples=15)
def test_the_integer_points_stay_the_same(form: MatrixForm) -> None:
    bridged = indicator_to_big_m.apply(form)
    ranges = [np.arange(a, b + 1) for a, b in zip(form.col_lower, form.col_upper, strict=True)]
    for point in product(*ranges):
        x = np.array(point)
        before, after = violations(form, x).max == 0, violations(bridged.form, bridged.carry(x)).max == 0
        assert before == after


@given(models())
@settings(deadline=None, max_examples=15)
def test_the_big_ms_are_the_least_that_intervals_prove(form: MatrixForm) -> None:
    new = indicator_to_big_m.apply(form).form
    off = 1 - form.indicators.value
    corners = np.array(list(product(*zip(form.col_lower[:2], form.col_upper[:2], strict=True))))
    for k, name in enumerate(new.row_names[1:], start=1):
        r = int(name[3 : name.index("]")])
        coefficients = form.indicators.A.toarray()[r]
        if coefficients[2]:
            continue  # the binary's own coefficient widens the interval
        activity = corners @ new.A.toarray()[k, :2] + off[r] * new.A.toarray()[k, 2]
        extreme = activity.max() if np.isfinite(new.row_upper[k]) else activity.min()
        side = new.row_upper[k] if np.isfinite(new.row_upper[k]) else new.row_lower[k]
        assert extreme == pytest.approx(side)
