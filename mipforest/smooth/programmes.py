"""Smooth models as nonlinear programmes, and general solvers for them: references for the own search."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.errors import SolverUnavailable
from mipforest.smooth.search import SmoothSearch

if TYPE_CHECKING:
    from mipforest.smooth.model import Point, SmoothModel

#: Most iterations, as of the own descent.
ITERATIONS = 200

#: What a general solver leaves of a coefficient that a penalty makes 0: set to 0 where there are penalties.
RESIDUE = 1e-6


class Programme:
    """A smooth model over one flat vector: bounds, a smooth objective, constraints ``values >= 0``.

    With penalties, coefficients are differences of two blocks of at least 0, and each feature has a level above the
    sums of both (the papers' smooth reformulation): ``level_j >= plus_jt + minus_jt``.

    Parameters
    ----------
    model
        The model.

    Attributes
    ----------
    lower, upper
        Bounds of the flat vector.
    """

    def __init__(self, model: SmoothModel) -> None:
        self.model = model
        split = model.norms.blocks if model.penalised else ()
        self._split = split
        shapes: dict[str, tuple[int, ...]] = {}
        lower, upper = [], []
        for block in model.blocks:
            for name in (f"{block.name}+", f"{block.name}-") if block.name in split else (block.name,):
                shapes[name] = block.shape
                size = int(np.prod(block.shape))
                lower.append(np.full(size, 0.0 if block.name in split else block.lower))
                upper.append(np.full(size, block.upper))
        if split:
            shapes["level"] = (model.n_features,)
            lower.append(np.zeros(model.n_features))
            upper.append(np.full(model.n_features, np.inf))
        self._shapes = shapes
        self._ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
        self.lower, self.upper = np.concatenate(lower), np.concatenate(upper)

    def _parts(self, flat: FloatArray) -> Point:
        pieces = np.split(flat, self._ends[:-1])
        return {
            name: piece.reshape(shape)
            for (name, shape), piece in zip(self._shapes.items(), pieces, strict=True)
        }

    def _flat(self, parts: Point) -> FloatArray:
        zero = {name: np.zeros(shape) for name, shape in self._shapes.items()}
        return np.concatenate(
            [np.asarray({**zero, **parts}[name], dtype=np.float64).ravel() for name in self._shapes]
        )

    def flat_of(self, point: Point) -> FloatArray:
        """Return the vector of a point."""
        parts = {name: part for name, part in point.items() if name not in self._split}
        for name in self._split:
            parts |= {f"{name}+": np.maximum(point[name], 0.0), f"{name}-": np.maximum(-point[name], 0.0)}
        if self._split:
            parts["level"] = np.abs(self.model.norms.rows(point)).max(axis=0)
        return self._flat(parts)

    def point_of(self, flat: FloatArray) -> Point:
        """Return the point of a vector."""
        parts = self._parts(np.clip(flat, self.lower, self.upper))
        plain = {
            block.name: parts[block.name] for block in self.model.blocks if block.name not in self._split
        }
        return {**plain, **{name: parts[f"{name}+"] - parts[f"{name}-"] for name in self._split}}

    def _gradient(self, slope: Point) -> FloatArray:
        parts = {name: part for name, part in slope.items() if name not in self._split}
        for name in self._split:
            if name in slope:
                parts |= {f"{name}+": slope[name], f"{name}-": -slope[name]}
        return self._flat(parts)

    def value(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective with penalties, and its gradient."""
        found, slope = self.model.smooth_value(self.point_of(flat))
        gradient = self._gradient(slope)
        if self._split:
            norms, parts = self.model.norms, self._parts(flat)
            ones = {
                f"{name}{sign}": np.ones_like(parts[f"{name}{sign}"]) for name in self._split for sign in "+-"
            }
            charged = self._flat({name: norms.lam_local * part for name, part in ones.items()})
            charged += self._flat({"level": np.full(self.model.n_features, norms.lam_global)})
            found, gradient = found + float(charged @ flat), gradient + charged
        return found, gradient

    def linear(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return matrix, lower and upper sides of the linear constraints."""
        rows, low, high = [], [], []
        for row in self.model.linear:
            rows.append(self._flat({row.block: row.coefficients}))
            low.append(row.lower)
            high.append(row.upper)
        for name in self._split:
            for t, j in np.ndindex(self._shapes[f"{name}+"]):
                unit, level = np.zeros(self._shapes[f"{name}+"]), np.zeros(self.model.n_features)
                unit[t, j], level[j % self.model.n_features] = -1.0, 1.0
                rows.append(self._flat({f"{name}+": unit, f"{name}-": unit, "level": level}))
                low.append(0.0)
                high.append(np.inf)
        return np.array(rows).reshape(len(rows), len(self.lower)), np.array(low), np.array(high)

    def constraints(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values, at least 0 where they hold, and the Jacobian of the smooth constraints."""
        found = self.model.constraint_values(self.point_of(flat))
        jacobian = np.array([self._gradient(slope) for _, slope in found]).reshape(len(found), len(flat))
        return np.array([value for value, _ in found]), jacobian


class ProgrammeSearch(SmoothSearch):
    """A search whose descent is a general solver's, on splits and leaves together."""

    def descend(self, model: SmoothModel, point: Point, stop: Callable[[], bool]) -> Point:
        """Return what the solver finds from a point; of penalties, what it leaves of a zero is cleared."""
        programme = Programme(model)
        found = programme.point_of(self.solve(programme, programme.flat_of(point), stop))
        if model.penalised:
            names = model.norms.blocks
            cleared = {name: np.where(np.abs(found[name]) <= RESIDUE, 0.0, found[name]) for name in names}
            branches = {block.name: found[block.name] for block in model.branches}
            return model.completed({**branches, **cleared})
        mended = model.with_best_leaves(found)
        return mended if model.violation(mended) <= max(model.violation(found), RESIDUE) else found

    @abstractmethod
    def solve(self, programme: Programme, start: FloatArray, stop: Callable[[], bool]) -> FloatArray:
        """Return a local optimum of a programme."""


class Scipy(ProgrammeSearch):
    """A method of ``scipy.optimize.minimize`` that takes constraints: ``scipy:slsqp``, or ``scipy:trust-constr``.

    Sequential least squares is what the thesis used for regression; the other is a trust-region interior point.

    Parameters
    ----------
    method
        One of :attr:`methods`.
    """

    name: ClassVar[str] = "scipy"
    summary: ClassVar[str] = (
        "a method of scipy, scipy:slsqp (least squares) or scipy:trust-constr (trust-region interior point), on splits "
        "and leaves together; small models"
    )
    methods: ClassVar[tuple[str, ...]] = ("slsqp", "trust-constr")
    #: Options of the methods themselves. Rows of the leaves and of the classes may depend on each other; the
    #: factorisation of the second one takes dense rows, and scipy would make those of a model with nothing but bounds
    #: sparse.
    method_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "trust-constr": {"factorization_method": "SVDFactorization", "sparse_jacobian": False}
    }

    def __init__(self, method: str = methods[0]) -> None:
        self.method = method
        self.name = f"scipy:{method}"  # type: ignore[misc]  # what the result calls it

    @classmethod
    def named(cls, inner: str) -> Scipy:
        """Return the search by a method."""
        if inner and inner not in cls.methods:
            raise SolverUnavailable(
                f"no method {inner!r} of scipy takes these models; known: "
                f"{', '.join(f'scipy:{method}' for method in cls.methods)}"
            )
        return cls(inner or cls.methods[0])

    def solve(self, programme: Programme, start: FloatArray, stop: Callable[[], bool]) -> FloatArray:
        """Return a local optimum; see :class:`ProgrammeSearch`."""
        from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, minimize

        matrix, low, high = programme.linear()
        equal = low == high
        asked: list[Any] = [
            LinearConstraint(matrix[rows], low[rows], high[rows]) for rows in (equal, ~equal) if rows.any()
        ]
        if programme.model.loss.constraints:
            values, slopes = (lambda x: programme.constraints(x)[0]), (lambda x: programme.constraints(x)[1])
            asked.append(NonlinearConstraint(values, 0.0, np.inf, jac=slopes))

        latest = start

        def between(x: FloatArray, *_: object) -> None:
            nonlocal latest
            latest = np.array(x, dtype=np.float64)
            if stop():
                raise StopIteration

        with warnings.catch_warnings():
            # Steps along which the gradient stays are warned of each time; the Hessian is approximated all the same.
            warnings.filterwarnings("ignore", "delta_grad == 0.0", UserWarning)
            try:
                found = minimize(
                    programme.value,
                    start,
                    jac=True,
                    method=self.method,
                    bounds=Bounds(programme.lower, programme.upper),
                    constraints=asked,
                    callback=between,
                    options={"maxiter": ITERATIONS, **self.method_options.get(self.method, {})},
                )
            except StopIteration:  # SLSQP of some versions of scipy passes it on
                return latest
        return np.asarray(found.x, dtype=np.float64)


class Ipopt(ProgrammeSearch):
    """IPOPT, as the thesis used it for classification, with the gradients of the model and a limited-memory Hessian."""

    name: ClassVar[str] = "ipopt"
    summary: ClassVar[str] = "the interior-point solver IPOPT on splits and leaves together"
    package: ClassVar[str] = "cyipopt"
    install: ClassVar[str] = "cyipopt-wheels"

    def version(self) -> str:
        """Return the version of IPOPT itself."""
        from cyipopt import IPOPT_VERSION

        return ".".join(map(str, IPOPT_VERSION))

    def solve(self, programme: Programme, start: FloatArray, stop: Callable[[], bool]) -> FloatArray:
        """Return a local optimum; see :class:`ProgrammeSearch`."""
        from cyipopt import Problem

        matrix, low, high = programme.linear()
        n_smooth = len(programme.model.loss.constraints)

        class Callbacks:
            def objective(self, x: FloatArray) -> float:
                return programme.value(x)[0]

            def gradient(self, x: FloatArray) -> FloatArray:
                return programme.value(x)[1]

            def constraints(self, x: FloatArray) -> FloatArray:
                return np.concatenate([matrix @ x, programme.constraints(x)[0]])

            def jacobian(self, x: FloatArray) -> FloatArray:
                return np.vstack([matrix, programme.constraints(x)[1]]).ravel()

            def intermediate(self, *_: object) -> bool:
                return not stop()

        problem = Problem(
            n=len(start),
            m=len(low) + n_smooth,
            problem_obj=Callbacks(),
            lb=programme.lower,
            ub=programme.upper,
            cl=np.concatenate([low, np.zeros(n_smooth)]),
            cu=np.concatenate([high, np.full(n_smooth, np.inf)]),
        )
        quiet = {
            "print_level": 0,
            "sb": "yes",
            "max_iter": ITERATIONS,
            "hessian_approximation": "limited-memory",
        }
        for name, value in quiet.items():
            problem.add_option(name, value)
        found, _ = problem.solve(start)
        return np.asarray(found, dtype=np.float64)
