"""Formulations as parts of one model: the same rows under a prefix, joined by rows on both."""

from itertools import combinations

import numpy as np
import pytest
from tolerance import same

from formulations.margot import Margot
from formulations.oct import Oct
from formulations.orct import Orct
from mipforest import Dataset, Model, constraints, solve
from mipforest.errors import ModelError, ParameterError, Unsupported

RNG = np.random.default_rng(3)
X = RNG.integers(0, 4, (12, 3)).astype(float)
TARGETS = ((X[:, 0] + X[:, 1] > 3).astype(int), (X[:, 2] + X[:, 1] > 3).astype(int))
DATA = [Dataset.from_arrays(X, y) for y in TARGETS]


def two_trees(formulation, depth=1):
    m = Model("two trees")
    parts = [
        formulation.attach(m, data.with_scaling(formulation.scaling), depth, prefix=name)
        for data, name in zip(DATA, ("first", "second"), strict=True)
    ]
    m.minimize(parts[0].objective + parts[1].objective)
    return m, parts


def alone(formulation, data, allowed, depth=1):
    problem = formulation.build(data.with_scaling(formulation.scaling), depth)
    bound_weights(problem.model)
    constraints.forbid_features(problem, [name for name in data.features.labels if name not in allowed])
    solution = solve(problem.model, gap=1e-9)
    assert solution.status == "optimal"
    return solution.objective


def bound_weights(model):
    """Bound MARGOT's weights, which the helpers of features ask for."""
    for name in {"w", "b"} & set(model):
        model[name].set_bounds(-50, 50)


@pytest.mark.parametrize(
    ("formulation", "budget"),
    [(Oct(), 1), (Oct(), 2), (Margot(C=1, variant="paper"), 1)],
    ids=["oct-1", "oct-2", "margot-1"],
)
def test_two_trees_share_a_feature_budget(formulation, budget):
    m, parts = two_trees(formulation)
    used = m.binary("used", DATA[0].features)
    for part in parts:
        bound_weights(part.model)
        m.add(f"used_by_{part.model.prefix}", used >= constraints.features_used(part))
    m.add("budget", used.sum() <= budget)
    solution = solve(m, gap=1e-9)
    labels = DATA[0].features.labels
    best = min(
        sum(alone(formulation, data, allowed) for data in DATA) for allowed in combinations(labels, budget)
    )
    assert solution.objective == pytest.approx(best, rel=1e-5, abs=1e-6)  # HiGHS' tolerances, times big-Ms
    assert sum(part.evaluate(solution.values) for part in parts) == pytest.approx(best, rel=1e-5, abs=1e-6)
    trees = [part.tree(solution.values) for part in parts]
    assert len({j for tree in trees for node in tree.features_used().per_node for j in node}) <= budget
    assert all(tree.predict(X).shape == (12,) for tree in trees)


def test_a_part_has_the_rows_of_the_formulation():
    _, parts = two_trees(Oct(), 2)
    built = Oct().build(DATA[1], 2).model
    part = parts[1].model
    assert list(part) == list(built)
    assert list(part.constraints) == list(built.constraints)
    for name, block in built.constraints.items():
        own = part.constraints[name]
        assert own.name == f"second.{name}"
        assert same(own.lower, block.lower)
        shift = parts[1].model[next(iter(built))].columns.min()
        assert same(own.A.toarray()[:, shift:], block.A.toarray())
    assert same(
        parts[1].objective.matrix.toarray()[:, -built.n_columns :],
        built.objective_expression.matrix.toarray(),
    )


def test_a_prefix_is_a_view():
    m = Model()
    inner = m.under("a").under("b")
    x = inner.binary("x", 2)
    row = inner.add("r", x.sum() <= 1)
    inner.minimize(x.sum())
    inner.set_start({"x": np.array([1.0, 0.0])})
    inner.set_priority("x", 2)
    assert list(m) == ["a.b.x"]
    assert str(row) == "a.b.r: a.b.x[0] + a.b.x[1] <= 1"
    assert "x" in inner
    assert list(inner.constraints) == ["r"]
    assert inner.constraints["r"] is row
    assert m.start.keys() == {"a.b.x"}
    assert inner.start.keys() == inner.priorities.keys() == {"x"}
    assert same(m.matrix().c, [0, 0])
    m.minimize(inner.objective_expression)
    assert same(m.matrix().c, [1, 1])
    assert same(solve(m)["a.b.x"], [0, 0])
    assert same(inner["x"].value, [0, 0])
    inner.remove("r")
    assert not m.constraints
    with pytest.raises(
        KeyError, match=r"no variable block 'y' under 'a\.b\.'|no variable block 'y' under 'b\.'"
    ):
        inner["y"]
    with pytest.raises(ModelError, match="already has"):
        inner.binary("x")
    with pytest.raises(ModelError, match="copy the whole model"):
        inner.copy()
    with pytest.raises(ModelError, match="name of a prefix"):
        m.under("")


def test_what_cannot_be_a_part_is_refused():
    with pytest.raises(
        Unsupported, match=r"variant valid of margot leaves out trees .* its variants are valid, paper"
    ):
        two_trees(Margot(C=1))
    with pytest.raises(Unsupported, match="smooth model"):
        two_trees(Orct())
    with pytest.raises(ParameterError, match="give their depth"):
        Oct().attach(Model(), DATA[0], prefix="tree")
