"""Random expressions of a model together with the numbers they stand for at a random point."""

# exact throughout: whole numbers, or the same single operation on both sides

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mipforest.model import LinearExpr, Model, QuadraticExpr

quick = settings(deadline=None, max_examples=25)

#: Shapes with zero to three dimensions, empty ones included.
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


class Valued(NamedTuple):
    """An expression, and its values at the point."""

    expr: Any
    value: np.ndarray


class World:
    """A model and a point; whole numbers, so that all sums and products are exact in floating point."""

    def __init__(self, seed: int) -> None:
        self.model = Model("world")
        self.rng = np.random.default_rng(seed)
        self.x = self.rng.integers(-4, 5, size=4000).astype(float)

    def numbers(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.rng.integers(-3, 4, size=shape).astype(float)

    def variables(self, shape: tuple[int, ...], **kind: Any) -> Valued:
        block = self.model.continuous(f"v{len(self.model.variables)}", shape, **kind)
        return Valued(block, self.x[block.columns])

    def linear(self, shape: tuple[int, ...], form: str) -> Valued:
        """Make an expression: variables as they are, shuffled, or with coefficients and constants."""
        if form == "variables":
            return self.variables(shape)
        if form == "repeated":
            pool = self.variables((5,))
            chosen = self.rng.integers(0, 5, size=shape)
            return Valued(pool.expr[chosen], pool.value[chosen])
        v, u = self.variables(shape), self.variables(shape)
        a, b, c = self.numbers(shape), self.numbers(shape), self.numbers(shape)
        return Valued(v.expr * a + b * u.expr + c, v.value * a + b * u.value + c)

    def point(self) -> np.ndarray:
        return self.x[: self.model.n_columns]


worlds = st.builds(World, st.integers(0, 2**32 - 1))
forms = st.sampled_from(["variables", "repeated", "affine"])


def evaluate(expr: LinearExpr | QuadraticExpr, x: np.ndarray) -> np.ndarray:
    """Give an expression's values at a point, from its arrays."""
    if isinstance(expr, QuadraticExpr):
        products = x[expr.pairs[:, 0]] * x[expr.pairs[:, 1]]
        return evaluate(expr.linear, x) + (expr.weights @ products).reshape(expr.shape)
    return (expr.matrix @ x[: expr.matrix.shape[1]] + expr.constant).reshape(expr.shape)


def assert_same(expr: LinearExpr | QuadraticExpr, expected: Any, world: World) -> None:
    """Compare an expression with what numpy gives for its values: the same shape, the same numbers."""
    expected = np.asarray(expected)
    assert isinstance(expr, LinearExpr | QuadraticExpr)
    assert expr.shape == expected.shape
    assert (expr.size, expr.ndim) == (expected.size, expected.ndim)
    np.testing.assert_array_equal(evaluate(expr, world.x), expected)
