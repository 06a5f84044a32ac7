"""From one point to a local optimum: quasi-Newton steps on the splits, or proximal steps that leave exact zeros."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from mipforest.arrays import FloatArray
from mipforest.smooth.model import BRANCHES, Block, LinearConstraint, Point, SmoothModel

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
    relaxed = model.with_loss(model.loss.relaxed())
    found = quasi_newton(relaxed, point, stop)
    if relaxed.loss is model.loss or model.violation(found) <= 0:
        return found
    return augmented(model, found, stop)


def quasi_newton(model: SmoothModel, point: Point, stop: Stop) -> Point:
    """Minimise the loss over splits and leaves; penalties do not count."""
    shape, size = point["a"].shape, point["a"].size

    def value(flat: FloatArray) -> tuple[float, FloatArray]:
        found, slope = model.reduced({"a": flat[:size].reshape(shape), "mu": flat[size:]})
        return found, np.concatenate([slope["a"].ravel(), slope["mu"]])

    def between(_: FloatArray) -> None:
        if stop():
            raise StopIteration

    start = np.concatenate([point["a"].ravel(), point["mu"]])
    solved = minimize(
        value,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-1.0, 1.0)] * len(start),
        callback=between,
        options={"maxiter": ITERATIONS},
    )
    flat = np.clip(solved.x, -1.0, 1.0)
    return model.with_best_leaves({"a": flat[:size].reshape(shape), "mu": flat[size:]})


def proximal(model: SmoothModel, point: Point, stop: Stop) -> Point:
    """Minimise the loss with penalties by proximal gradient steps of spectral length (Wright, Nowak, Figueiredo 2009).

    What is in no norm at the leaves is solved exactly at every step.
    """
    norms, blocks = model.norms, {block.name: block for block in model.blocks}
    names = dict.fromkeys((*BRANCHES, *norms.blocks))
    caps = {name: blocks[name].upper for name in norms.blocks}

    def evaluate(at: Point) -> tuple[float, Point]:
        value, slope = model.reduced(at)
        return value + norms.value(at), slope

    def step_from(at: Point, slope: Point, length: float) -> Point:
        moved = {name: at[name] - length * slope[name] for name in names}
        free = {name: np.clip(moved[name], blocks[name].lower, blocks[name].upper) for name in names}
        return {**free, **norms.prox({name: moved[name] for name in norms.blocks}, length, caps)}

    at = {name: point[name] for name in names}
    at = model.loss.penalised(model.route(at), at, norms)
    value, slope = evaluate(at)
    recent, length = deque([value], maxlen=MEMORY), 1.0
    for step in range(PROXIMAL_STEPS):
        if stop():
            break
        if step % BETWEEN == BETWEEN - 1:
            better = model.loss.penalised(model.route(at), at, norms)
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
            if accepted or length < SHORTEST:
                break
            length /= SHRINK
        if not accepted:
            break
        curved = sum(float((change[name] * (new_slope[name] - slope[name])).sum()) for name in names)
        at, value, slope = new, new_value, new_slope
        recent.append(value)
        settled = len(recent) == MEMORY and max(recent) - min(recent) <= STATIONARY * max(
            abs(value), STATIONARY
        )
        if squared == 0 or settled:
            break
        length = min(max(squared / curved, SHORTEST), LONGEST) if curved > 0 else min(2 * length, LONGEST)
    return model.settled(at)


def augmented(model: SmoothModel, point: Point, stop: Stop) -> Point:
    """Minimise the loss under its constraints by multipliers and a growing penalty of what is violated.

    All variables move together, quasi-Newton within their bounds. Rows that sum to 1 are divided by their sum. In the
    end the leaf problem is solved exactly for the splits, so that what is left of a violation is mended where leaves
    can.
    """
    blocks, loss = model.blocks, model.loss
    ends = np.cumsum([int(np.prod(block.shape)) for block in blocks])
    bounds = [pair for block in blocks for pair in [(block.lower, block.upper)] * int(np.prod(block.shape))]
    rows = [row for row in loss.linear if not _is_sum(row, blocks)]
    multipliers, penalty = np.zeros(len(loss.constraints) + len(rows)), PENALTY

    def parts(flat: FloatArray) -> tuple[Point, dict[str, FloatArray]]:
        pieces = np.split(flat, ends[:-1])
        found = {block.name: piece.reshape(block.shape) for block, piece in zip(blocks, pieces, strict=True)}
        sums = {
            block.name: found[block.name].sum(axis=1, keepdims=True) + TINY
            for block in blocks
            if block.simplex
        }
        return {**found, **{name: found[name] / total for name, total in sums.items()}}, sums

    def asked(at: Point) -> list[tuple[float, Point]]:
        linear = [
            (float((row.coefficients * at[row.block]).sum()) - row.lower, {row.block: row.coefficients})
            for row in rows
        ]
        return [*model.constraint_values(at), *linear]

    def value(flat: FloatArray) -> tuple[float, FloatArray]:
        at, sums = parts(flat)
        found, slope = model.smooth_value(at)
        for multiplier, (own, own_slope) in zip(multipliers, asked(at), strict=True):
            charge = max(0.0, multiplier - penalty * (own - MARGIN))
            found += (charge**2 - multiplier**2) / (2 * penalty)
            for name, part in own_slope.items():
                slope[name] = slope[name] - charge * part
        for name, total in sums.items():
            slope[name] = (slope[name] - (slope[name] * at[name]).sum(axis=1, keepdims=True)) / total
        return found, np.concatenate([slope[block.name].ravel() for block in blocks])

    flat = np.concatenate([point[block.name].ravel() for block in blocks])
    worst = np.inf
    for _ in range(OUTER):
        if stop():
            break
        solved = minimize(
            value, flat, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ITERATIONS}
        )
        flat = solved.x
        gaps = np.array([own - MARGIN for own, _ in asked(parts(flat)[0])])
        violated = float(np.maximum(-gaps, 0.0).max(initial=0.0))
        if violated <= MARGIN:
            break
        multipliers = np.maximum(0.0, multipliers - penalty * gaps)
        penalty *= 1.0 if violated <= worst / 4 else GROWTH
        worst = violated
    at = parts(flat)[0]
    mended = model.with_best_leaves(at)
    better = model.violation(mended) <= max(model.violation(at), MARGIN)
    return mended if better else at


def _is_sum(row: LinearConstraint, blocks: tuple[Block, ...]) -> bool:
    """Return whether a linear constraint only says that a row of a simplex sums to 1."""
    return row.lower == row.upper and any(block.simplex and block.name == row.block for block in blocks)


#: Of the augmented method: first penalty and its growth, most rounds, how far inside a constraint the target is, so
#: that rounding breaks none, and what keeps a sum of zeros from dividing.
PENALTY, GROWTH, OUTER, MARGIN, TINY = 10.0, 4.0, 25, 1e-7, 1e-12

#: Steps between two exact solutions of the leaves with penalties.
BETWEEN = 25

#: Lengths of proximal steps, and by what one that is too long is divided.
SHORTEST, LONGEST, SHRINK = 1e-12, 1e6, 4.0
