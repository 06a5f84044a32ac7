"""Margin-optimal trees as a formulation writes them, against the paper's formulas in plain loops."""

from __future__ import annotations

import numpy as np

from mipforest.model import Model, sum_squares

BRANCHES, LAST_BRANCHES, FEATURES = 3, [1, 2], ["age", "bmi"]
REACH = np.array(
    [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
)  # last branch 1 lies on the path 0-1, last branch 2 on 0-2
M_XI, EPSILON = 50.0, 1e-3


def build(X: np.ndarray, y: np.ndarray, C: np.ndarray) -> Model:
    n = len(X)
    m = Model("margot")
    w = m.continuous("w", (BRANCHES, FEATURES))
    b = m.continuous("b", BRANCHES)
    xi = m.nonnegative("xi", (n, BRANCHES))
    z = m.binary("z", (n, [f"n{t}" for t in LAST_BRANCHES]))

    score = X @ w.T + b
    here = z @ REACH
    m.minimize(0.5 * sum_squares(w) + C @ xi.sum(axis=0))
    m.add("assign", z.sum(axis=1) == 1)
    m.add("margin", y[:, None] * score >= 1 - xi - M_XI * (1 - here))
    m.add("right", score[:, 0] >= -M_XI * (1 - z[:, "n2"]))
    m.add("left", score[:, 0] + EPSILON <= M_XI * (1 - z[:, "n1"]))
    return m


def test_objective_and_rows_are_the_papers():
    rng = np.random.default_rng(1)
    X, y, C = rng.random((4, 2)), np.array([1.0, -1.0, -1.0, 1.0]), np.array([1.0, 2.0, 4.0])
    m = build(X, y, C)
    values = {
        "w": rng.normal(size=(3, 2)),
        "b": rng.normal(size=3),
        "xi": rng.random((4, 3)),
        "z": np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]),
    }
    w, b, xi, z = values.values()
    expected = 0.5 * sum(w[t] @ w[t] for t in range(3)) + sum(
        C[t] * xi[i, t] for i in range(4) for t in range(3)
    )
    assert np.isclose(m.objective(values), expected, rtol=1e-14)

    found = m.violations(values)
    for i in range(4):
        for t in range(3):
            reaches = sum(z[i, leaf] * REACH[leaf, t] for leaf in range(2))
            missing = 1 - xi[i, t] - M_XI * (1 - reaches) - y[i] * (w[t] @ X[i] + b[t])
            row = found.form.row_names.index(f"margin[{i},{t}]")
            assert np.isclose(found.rows[row], max(0.0, missing), atol=1e-12)
        off = max(0.0, (w[0] @ X[i] + b[0] + EPSILON) * z[i, 0] - M_XI * (1 - z[i, 0]))
        assert np.isclose(found.rows[m.constraints["left"].rows[i]] * z[i, 0], off * z[i, 0], atol=1e-12)


def test_the_built_model_is_open_to_changes():
    m = build(np.eye(2), np.array([1.0, -1.0]), np.ones(3))
    m.add("no_age", m["w"][:, "age"] == 0)
    m["z"][0, "n1"].fix(1)
    m.constraints["right"].remove()
    assert list(m.constraints) == ["assign", "margin", "left", "no_age"]
    assert m.constraints["no_age"].rows == range(2 + 6 + 2, 2 + 6 + 2 + 3)
    assert m.matrix().column_names[:3] == ["w[0,age]", "w[0,bmi]", "w[1,age]"]
    stats = m.stats()
    assert (stats.columns, stats.binary, stats.quadratic_terms) == (6 + 3 + 6 + 4, 4, 6)
