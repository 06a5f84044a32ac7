"""Searches from many starts for local optima of smooth models: they prove nothing, and tell how their starts differ.

A descent leads from each start to a local optimum: quasi-Newton steps on the splits, or proximal steps that leave
exact zeros.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.problem.driver import Driver
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import SmoothProblem, Structure
from mipforest.problem.tree_search import SearchResult, TreeSearch
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.smooth.model import Block, LinearConstraint, Point, SmoothModel
from mipforest.solvers.solution import Progress
from mipforest.trees import Tree

if TYPE_CHECKING:
    from mipforest.smooth.model import Point, SmoothModel


#: Asked between two steps; ``True`` ends the descent at its present point.
Stop = Callable[[], bool]

#: Most iterations of one descent, and most proximal steps.
ITERATIONS, PROXIMAL_STEPS = 200, 400

#: A proximal descent ends where its last steps changed the objective by no more than this share.
STATIONARY = 1e-8

#: Proximal steps are accepted below the worst of so many values before: spectral steps need not fall each time.
MEMORY = 10

#: Share of the decrease by the model that a proximal step must have.
SUFFICIENT = 1e-4


def descend(model: SmoothModel, point: Point, stop: Stop) -> Point:
    """Return a local optimum near a point, with the leaves that are best for its splits.

    Without penalties, L-BFGS-B on ``(a, mu)`` alone: the leaves are solved exactly at every step, and the gradient of
    the optimal value is that of the loss at these leaves. With penalties, proximal gradient steps follow from there.
    With constraints, what is found is not worse than the point.

    Parameters
    ----------
    model
        What to minimise.
    point
        Where to begin.
    stop
        Asked between two steps.
    """
    if model.penalised:
        return proximal(model, point, stop)
    relaxed = replace(model, loss=model.loss.relaxed())
    found = quasi_newton(relaxed, point, stop)
    if relaxed.loss is model.loss or model.violation(found) <= 0:
        return found

    def rank(at: Point) -> tuple[bool, float]:
        return model.violation(at) > FEASIBILITY_TOLERANCE, model.objective(at)

    found = augmented(model, found, stop)
    if rank(found) <= rank(point):
        return found
    # The optimum without constraints lies in another valley than what is best with them.
    return min(found, point, augmented(model, point, stop), key=rank)


def quasi_newton(model: SmoothModel, point: Point, stop: Stop) -> Point:
    """Minimise the loss over splits and leaves; penalties do not count."""
    vector = FlatPoint(model.branches)

    def value(flat: FloatArray) -> tuple[float, FloatArray]:
        at, sums = vector.parts(flat)
        found, slope = model.reduced(at)
        return found, vector.slope(at, sums, slope)

    found = minimised(value, vector.flat(point), vector.bounds, stop)
    return model.with_best_leaves(vector.parts(np.clip(found, *np.array(vector.bounds).T))[0])


def minimised(
    value: Callable[[FloatArray], tuple[float, FloatArray]],
    flat: FloatArray,
    bounds: list[tuple[float, float]],
    stop: Stop,
) -> FloatArray:
    """Return a local minimiser of a function with its gradient; the best vector that was tried where it is stopped.

    It is asked before every evaluation but the first: one may take a second, and a step many.
    """
    from scipy.optimize import minimize  # late: slow to import, and searches are listed for every solve

    best = (np.inf, flat)
    tried = 0

    def watched(at: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best, tried
        if tried and stop():
            raise StopIteration
        tried += 1
        found, slope = value(at)
        if found < best[0]:
            best = found, at.copy()
        return found, slope

    try:
        solved = minimize(
            watched, flat, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ITERATIONS}
        )
    except StopIteration:
        return best[1]
    found: FloatArray = solved.x
    return found


class FlatPoint:
    """Blocks as one vector with bounds; rows that sum to 1 are divided by their sum.

    Attributes
    ----------
    bounds
        Of each entry.
    """

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        sizes = [int(np.prod(block.shape)) for block in blocks]
        self._blocks, self._ends = blocks, np.cumsum(sizes)[:-1]
        self.bounds = [
            pair
            for block, size in zip(blocks, sizes, strict=True)
            for pair in [(block.lower, block.upper)] * size
        ]

    def flat(self, point: Point) -> FloatArray:
        """Return the vector of a point."""
        return np.concatenate([point[block.name].ravel() for block in self._blocks])

    def parts(self, flat: FloatArray) -> tuple[Point, dict[str, FloatArray]]:
        """Return the point of a vector, and by block the sums that its rows were divided by."""
        pieces = np.split(flat, self._ends)
        found = {
            block.name: piece.reshape(block.shape) for block, piece in zip(self._blocks, pieces, strict=True)
        }
        sums = {
            block.name: found[block.name].sum(axis=1, keepdims=True) + TINY
            for block in self._blocks
            if block.simplex
        }
        return {**found, **{name: found[name] / total for name, total in sums.items()}}, sums

    def slope(self, point: Point, sums: dict[str, FloatArray], slope: Point) -> FloatArray:
        """Return the gradient in the vector, from that in the point."""
        found = dict(slope)
        for name, total in sums.items():
            found[name] = (slope[name] - (slope[name] * point[name]).sum(axis=1, keepdims=True)) / total
        return np.concatenate([found[block.name].ravel() for block in self._blocks])


def proximal(model: SmoothModel, point: Point, stop: Stop) -> Point:
    """Minimise the loss with penalties by proximal gradient steps of spectral length (Wright, Nowak, Figueiredo 2009).

    What is in no norm at the leaves is solved exactly at every step. Splits are scaled down first where that pays: a
    large penalty would otherwise make the first step lead to the empty tree, which is better than large coefficients,
    and stationary, and mostly worse than the same splits with small ones.
    """
    norms, blocks = model.norms, {block.name: block for block in model.blocks}
    names = dict.fromkeys((*(block.name for block in model.branches), *norms.blocks))
    caps = {name: blocks[name].upper for name in norms.blocks}

    def evaluate(at: Point) -> tuple[float, Point]:
        value, slope = model.reduced(at)
        return value + norms.value(at), slope

    def step_from(at: Point, slope: Point, length: float) -> Point:
        moved = {name: at[name] - length * slope[name] for name in names}
        free = {
            name: on_simplex(moved[name])
            if blocks[name].simplex
            else np.clip(moved[name], blocks[name].lower, blocks[name].upper)
            for name in names
        }
        return {**free, **norms.prox({name: moved[name] for name in norms.blocks}, length, caps)}

    at = {name: point[name] for name in names}
    _, at = min(
        ((evaluate(scaled)[0], scaled) for scaled in (_scaled(at, 2.0**-k) for k in range(HALVINGS + 1))),
        key=itemgetter(0),
    )
    at = model.penalised_leaves(at)
    value, slope = evaluate(at)
    recent, length = deque([value], maxlen=MEMORY), 1.0
    for step in range(PROXIMAL_STEPS):
        if stop():
            break
        if step % BETWEEN == BETWEEN - 1:
            better = model.penalised_leaves(at)
            if better is not at:
                at = better
                value, slope = evaluate(at)
                recent.append(value)
        while True:
            new = step_from(at, slope, length)
            change = {name: new[name] - at[name] for name in names}
            squared = sum(float((part**2).sum()) for part in change.values())
            new_value, new_slope = evaluate(new)
            accepted = new_value <= max(recent) - SUFFICIENT / (2 * length) * squared
            if accepted or length < SHORTEST or stop():
                break
            length /= SHRINK
        if not accepted:
            break
        curved = sum(float((change[name] * (new_slope[name] - slope[name])).sum()) for name in names)
        at, value, slope = new, new_value, new_slope
        recent.append(value)
        no_progress = len(recent) == MEMORY and max(recent) - min(recent) <= STATIONARY * max(
            abs(value), STATIONARY
        )
        if squared == 0 or no_progress:
            break
        length = min(max(squared / curved, SHORTEST), LONGEST) if curved > 0 else min(2 * length, LONGEST)
    return model.completed(at)


def _scaled(point: Point, factor: float) -> Point:
    """Return a point with its splits scaled: every sample has the same likelier sides, less surely."""
    return {**point, "a": factor * point["a"], "mu": factor * point["mu"]}


def on_simplex(rows: FloatArray) -> FloatArray:
    """Return the nearest rows of at least 0 that sum to 1."""
    ordered = -np.sort(-rows, axis=1)
    level = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > level).sum(axis=1, keepdims=True) - 1
    return np.maximum(rows - np.take_along_axis(level, last, axis=1), 0.0)


def augmented(model: SmoothModel, point: Point, stop: Stop) -> Point:
    """Minimise the loss under its constraints by multipliers and a growing penalty of what is violated.

    All variables move together, quasi-Newton within their bounds. Rows that sum to 1 are divided by their sum. In the
    end the leaf problem is solved exactly for the splits, so that what is left of a violation is mended where leaves
    can.
    """
    blocks = model.blocks
    vector = FlatPoint(blocks)
    rows = [row for row in model.linear if not _is_sum(row, blocks)]
    multipliers, penalty = np.zeros(len(model.loss.constraints) + len(rows)), PENALTY

    def asked(at: Point) -> list[tuple[float, Point]]:
        linear = [
            (float((row.coefficients * at[row.block]).sum()) - row.lower, {row.block: row.coefficients})
            for row in rows
        ]
        return [*model.constraint_values(at), *linear]

    def value(flat: FloatArray) -> tuple[float, FloatArray]:
        at, sums = vector.parts(flat)
        found, slope = model.smooth_value(at)
        for multiplier, (own, own_slope) in zip(multipliers, asked(at), strict=True):
            charge = max(0.0, multiplier - penalty * (own - MARGIN))
            found += (charge**2 - multiplier**2) / (2 * penalty)
            for name, part in own_slope.items():
                slope[name] = slope[name] - charge * part
        return found, vector.slope(at, sums, slope)

    flat = vector.flat(point)
    worst = np.inf
    for _ in range(OUTER):
        if stop():
            break
        flat = minimised(value, flat, vector.bounds, stop)
        gaps = np.array([own - MARGIN for own, _ in asked(vector.parts(flat)[0])])
        violated = float(np.maximum(-gaps, 0.0).max(initial=0.0))
        if violated <= MARGIN:
            break
        multipliers = np.maximum(0.0, multipliers - penalty * gaps)
        penalty *= 1.0 if violated <= worst / 4 else GROWTH
        worst = violated
    at = vector.parts(flat)[0]
    mended = model.with_best_leaves(at)
    better = model.violation(mended) <= max(model.violation(at), MARGIN)
    return mended if better else at


def _is_sum(row: LinearConstraint, blocks: tuple[Block, ...]) -> bool:
    """Return whether a linear constraint only says that a row of a simplex sums to 1."""
    return row.lower == row.upper and any(block.simplex and block.name == row.block for block in blocks)


#: Of the augmented method: first penalty and its growth, most rounds, how far inside a constraint the target is, so
#: that rounding breaks none, and what keeps a sum of zeros from dividing.
PENALTY, GROWTH, OUTER, MARGIN, TINY = 10.0, 4.0, 25, 1e-7, 1e-12

#: How often splits are halved before a descent with penalties, at most: then the steepest are flat for all samples.
HALVINGS = 12

#: Steps between two exact solutions of the leaves with penalties.
BETWEEN = 25

#: Lengths of proximal steps, and by what one that is too long is divided.
SHORTEST, LONGEST, SHRINK = 1e-12, 1e6, 4.0


#: With more samples, starts descend on so many of them, drawn at random, and the best one then on all.
SCREENED = 20_000

#: The longest step so far, so many times, is kept for what follows the last one; at most half of the time.
RESERVED = 3.0


class SmoothSearch(TreeSearch):
    """A search that descends from many starts of a smooth model, and keeps the best local optimum."""

    structures: ClassVar[tuple[type[Structure], ...]] = (SmoothProblem,)
    proves: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True

    @abstractmethod
    def descend(self, model: SmoothModel, point: Point, stop: Callable[[], bool]) -> Point:
        """Return a local optimum near a point; ``stop`` is asked between steps."""

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Descend from the start and from random points; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        formulation: Any = problem.formulation
        instance: Any = problem.instance
        assert isinstance(problem.structure, SmoothProblem)  # ``refusal`` has seen to it
        whole: SmoothModel = problem.structure.model
        driver, rng = Driver(self, problem, settings, on_progress), np.random.default_rng(settings.seed)
        model = whole
        if problem.data.n > SCREENED:
            model = whole.subset(np.sort(rng.choice(problem.data.n, SCREENED, replace=False)))
        best: tuple[bool, float, Point] | None = None
        values: list[float] = []
        longest = 0.0
        with problem.budget.loading():
            import mipforest.smooth.search  # noqa: F401 - loads scipy's optimisers
        last = monotonic()

        def stop() -> bool:
            nonlocal longest, last
            now = monotonic()
            longest, last = max(longest, now - last), now
            driver.report(nodes=len(values), value=np.inf if best is None else best[1])
            # What has begun is ended, with leaves and value of its own.
            reserved = (
                0.0 if settings.time_limit is None else min(RESERVED * longest, settings.time_limit / 2)
            )
            return driver.over(reserved)

        for k in range(formulation.n_starts):
            given = start is not None and k == 0
            point = model.random_point(rng)
            if given:
                point = formulation.point_of(formulation.fitting(start), instance)
            if settings.time_limit != 0:
                stages = formulation.stages_of(k)
                for level in reversed(range(stages if stages > 1 else 0)):
                    # Penalties on the way lead to sparser trees, or to the empty one: every second start has none.
                    if stop():
                        break
                    gentle = model.balanced().at(model.gamma / 2**level)
                    point = self.descend(gentle.without_penalties() if k % 2 else gentle, point, stop)
                point = model.completed(point) if stop() else self.descend(model, point, stop)
            if k == 0 or not stop():
                # A start that the clock cut short is no local optimum to compare with.
                values.append(model.objective(point))
            rank = (model.violation(point) > FEASIBILITY_TOLERANCE, model.objective(point), point)
            if best is None or rank[:2] < best[:2]:
                best = rank
            if stop():
                break
        assert best is not None
        point = best[2]
        if model is not whole:
            out_of_time = settings.time_limit == 0 or stop()
            point = whole.completed(point) if out_of_time else self.descend(whole, point, stop)
        tree = formulation.tree_of(point, instance)
        driver.offer(tree)
        return driver.result(
            -np.inf,
            ended=len(values) == formulation.n_starts,
            nodes=len(values),
            message=f"the best of {len(values)} local optima; none is proven to be the best of all",
            reported=_spread(values),
            otherwise=tree,
            objective=whole.objective(point),
        )


def _spread(values: list[float]) -> dict[str, Any]:
    """Return how many starts there were, and how their local optima differ."""
    return {
        "starts": len(values),
        "best_start": min(values),
        "median_start": median(values),
        "worst_start": max(values),
        "start_objectives": values,
    }


class LBfgs(SmoothSearch):
    """Quasi-Newton and proximal steps on the splits, the leaves solved exactly at every step."""

    name: ClassVar[str] = "l-bfgs"
    summary: ClassVar[str] = (
        "local optima by quasi-Newton and proximal steps on the splits, with exact leaves"
    )
    preferred: ClassVar[bool] = True

    def descend(self, model: SmoothModel, point: Point, stop: Callable[[], bool]) -> Point:
        """Return a local optimum near a point; see :class:`SmoothSearch`."""
        from mipforest.smooth.search import descend  # loads scipy's optimisers

        return descend(model, point, stop)
