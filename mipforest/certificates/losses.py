"""What a certificate charges univariate trees: the problem, its losses in whole numbers, and the value of a leaf.

Losses are rounded once, so that no tree loses more than before but for an error that the file states (:class:`Grid`).
``docs/certificates.md`` proves it for every loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.certificates.constraints import LabelLimit
from mipforest.certificates.nodes import require, written

#: Losses that a leaf may be charged.
ERRORS, SQUARED, ABSOLUTE, DEVIANCE = LOSSES = "errors", "squared", "absolute", "deviance"

#: Level of the quantile that is the median.
MEDIAN = 0.5

#: What all rows lose at most, in units of the grid, and sums of weights and targets: whole numbers that doubles hold.
MOST = 1 << 52

#: Most targets, classes, samples times features, and rows times predictions of the table of losses.
MAX_TARGETS, MAX_CLASSES, MAX_CELLS = 1000, 1000, 1 << 27

#: Exponents of grids: powers of two beyond these are no doubles. With the deviance, that of targets is from 0 on.
LEAST_EXPONENT, MOST_EXPONENT, MOST_OF_RATES = -1000, 1000, 200

#: Share, for each target, by which a sum of two quotients of doubles is raised: of T targets T + 3 roundings miss it by
#: less than (T + 4) / 2**53.
RAISED = 2.0**-48

#: Share by which what leaves save of the deviance is raised, and what a sample loses is lowered:
#: :func:`excess` misses it by less than 56 / 2**53.
RAISED_LOGARITHM, LOWERED_LOGARITHM = 1.0 + 2.0**-45, 1.0 - 2.0**-45

#: Terms of the logarithm's series: with a ratio of 1/9 from each to the next, the rest is less than 2**-56 of the sum.
TERMS = 16

#: The double nearest to ln 2.
LN2 = float.fromhex("0x1.62e42fefa39efp-1")

#: Units by which weighted rates miss whole numbers, an upper bound: half a unit, and three roundings below 2**52.
MISSED_RATE = 3.0

#: Digits of logarithms where they are not doubles, and share of its terms by which they may miss a sum.
DIGITS, MISSED_DIGITS = 40, Fraction(1, 10**35)


class Grid(NamedTuple):
    """How numbers are rounded to whole ones.

    Attributes
    ----------
    loss
        Exponent s: losses are whole multiples of ``2**-s``.
    weight, target
        Exponents of weights and targets, of other losses than errors.
    centre
        What each target is reduced by first, of the squared loss and of the deviance.
    error
        Units of the loss by which rounded targets may raise the loss of a tree, an upper bound.
    """

    loss: int
    weight: int = 0
    target: int = 0
    centre: tuple[float, ...] = (0.0,)
    error: int = 0


class Problem(NamedTuple):
    """What trees are charged, in the numbers of a certificate.

    Attributes
    ----------
    loss
        One of :data:`LOSSES`.
    depth, N_min
        Most levels of splits, and least number of samples in a leaf.
    split_cost, unit
        Cost of a split, and what all charges are divided by in the objective.
    costs
        (T, K, K) cost of predicting the class of a column for a sample of the class of a row, of each target; (T, 0, 0)
        of other losses.
    X, y, weight
        (n, p) features, (n, T) classes or targets, and (n,) weights. Other losses than errors and squares have T = 1.
    level
        Of the absolute loss: that of the quantile that a leaf predicts, above 0 and below 1; 1/2 of other losses.
    """

    loss: str
    depth: int
    N_min: int
    split_cost: float
    unit: float
    costs: FloatArray
    X: FloatArray
    y: FloatArray
    weight: FloatArray
    level: float = MEDIAN

    @property
    def n_targets(self) -> int:
        """T, the number of targets that a leaf predicts."""
        return int(self.y.shape[1])

    @property
    def n_classes(self) -> int:
        """K, the number of classes of each target; 0 of losses of numbers."""
        return int(self.costs.shape[1])

    def digest(self) -> str:
        """Return the SHA-256 of the samples, whatever their order.

        It is that of their number n and the number of features (64-bit whole numbers), then of each sample, in the
        order of their numbers, its features, classes or targets, and weight (doubles, 0 without a sign); all
        little-endian.
        """
        table = np.column_stack([self.X, self.y, self.weight]) + 0.0  # -0 becomes 0
        table = table[np.lexsort(table.T[::-1])]
        digest = sha256(np.array(self.X.shape, dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(table, dtype="<f8").tobytes())
        return digest.hexdigest()


class Losses(NamedTuple):
    """Losses of rows in whole numbers: no tree loses more by them than by the problem's, beside ``Grid.error``.

    Attributes
    ----------
    loss
        One of :data:`LOSSES`.
    group
        (n,) the row of each sample: samples that are equal in all features are one.
    size
        (m,) samples of each row.
    table
        (m, T K) loss of each row for each prediction, target by target; with losses by sums (m, T + 2) weight, weighted
        targets, and what it loses beside the centre.
    n_targets
        T.
    unit
        Of losses by sums, units of the loss in one unit of what a leaf saves.
    bits
        Of the deviance, exponent of weighted targets beside weights.
    split_cost
        Cost of a split.
    error
        Units by which rounded targets may raise the loss of a tree, an upper bound.
    moved
        Under limits on labels, units that a tree within them loses at least beside what the table says, which has
        prices; below 0 if the table says too much.
    exact
        Whether what leaves save is computed in whole numbers, instead of doubles that are raised.
    """

    loss: str
    group: IntArray
    size: IntArray
    table: IntArray
    n_targets: int
    unit: float
    bits: int
    split_cost: int
    error: int
    moved: int
    exact: bool = False

    @property
    def has_sums(self) -> bool:
        """Whether the loss of a leaf is a function of sums of weights and targets."""
        return self.loss in (SQUARED, DEVIANCE)

    def leaf(self, totals: IntArray) -> IntArray:
        """Return the losses of leaves (k,) from the sums of their rows (k, M), rounded down."""
        if not self.has_sums:
            by_target = totals.reshape(len(totals), self.n_targets, -1)
            return np.asarray(by_target.min(axis=2).sum(axis=1))
        w, *u = totals[:, :-1].T.astype(np.float64)
        return np.asarray(np.maximum(0, totals[:, -1] - self.saved((w, u))))

    def saved(self, *leaves: tuple[FloatArray, Sequence[FloatArray]]) -> IntArray:
        """Return what predictions of one leaf or of two save beside the centre, rounded up.

        ``leaves`` are sums of weights, and of each weighted target: whole numbers.
        """
        if self.exact:
            of_one = np.frompyfunc(self._saved_exactly, 1 + self.n_targets, 1)
            return np.asarray(sum(of_one(w, *u) for w, u in leaves), dtype=np.int64)
        total: FloatArray | float = 0.0
        for w, u in leaves:
            if self.loss == SQUARED:
                squares = sum(one * one for one in u)
                total = total + np.divide(squares, w, out=np.zeros(w.shape), where=w > 0)
            else:
                total = total + excess(u[0], w, self.bits)
        raised = 1.0 + RAISED * self.n_targets if self.loss == SQUARED else RAISED_LOGARITHM
        return np.ceil(total * raised * self.unit).astype(np.int64) + 1

    def _saved_exactly(self, w: float, *u: float) -> int:
        if w <= 0:
            return 0
        if self.loss == SQUARED:
            return math.ceil(Fraction(sum(int(one) ** 2 for one in u), int(w)) * Fraction(self.unit))
        value, missed = exact_excess(int(u[0]), int(w) << self.bits)
        return math.ceil((value + missed) * Fraction(self.unit))


def rounded(
    problem: Problem, grid: Grid, limits: Sequence[LabelLimit] = (), *, exact: bool = False
) -> Losses:
    r"""Round the losses of a problem to whole numbers, downwards, with the prices of limits on labels.

    Errors and absolute losses are a table over predictions. With losses by sums, the weights w are rounded down, and
    the products of weights and centred targets, u, to whole numbers. The squared loss of a leaf is
    :math:`\sum \|u\|^2 / w - \|\sum u\|^2 / \sum w`; with the deviance, :func:`excess` takes the place of
    :math:`u^2 / w`.

    Raises
    ------
    CertificateError
        If the numbers are beyond the grid.
    """
    (n, p), T, K = problem.X.shape, problem.n_targets, problem.n_classes
    require_size(n, p, T, K)
    require(K <= MAX_CLASSES, f"{K} classes are more than {MAX_CLASSES}")
    require(T <= MAX_TARGETS, f"{T} targets are more than {MAX_TARGETS}")
    _, group = np.unique(problem.X, axis=0, return_inverse=True)
    group = group.ravel().astype(np.int64)
    m, size = int(group.max()) + 1, np.bincount(group)
    split_cost = _floor(problem.split_cost, grid.loss)
    require(split_cost < MOST, "the cost of a split is beyond the grid")
    unit, bits, error, moved = 0.0, 0, 0, 0
    if problem.loss == ERRORS:
        rows, moved = charges(problem, grid.loss, limits)
    elif problem.loss == ABSOLUTE:
        rows, error = _distances(problem, grid)
    elif problem.loss == SQUARED:
        rows, unit, error = _squares(problem, grid)
    else:
        rows, unit, error = _deviances(problem, grid, exact=exact)
        bits = grid.target
    # In doubles first: nothing is added that could overflow.
    most = np.abs(rows.astype(np.float64)).sum(axis=0).max(initial=0.0)
    require(most < MOST, f"the samples lose {most:.3g} units of the grid, and it has {MOST}")
    table = np.zeros((m, rows.shape[1]), np.int64)
    np.add.at(table, group, rows)
    return Losses(
        problem.loss, group, size.astype(np.int64), table, T, unit, bits, split_cost, error, moved, exact
    )


def require_size(n: int, p: int, T: int, K: int) -> None:
    """Refuse more samples, features, targets and classes than the check holds."""
    require(n * (p + T + 1) <= MAX_CELLS, f"{n} samples of {p} features are too many for the check")
    require(max(n, K) * T * K <= MAX_CELLS, f"{n} samples of {T * K} classes are too many for the check")


def _floor(value: float, exponent: int) -> int:
    return math.floor(Fraction(value) * Fraction(2) ** exponent)


def _floors(values: FloatArray, exponent: int, factor: float = 1.0) -> IntArray:
    """Return doubles times a factor, at least 0, in units of ``2**-exponent``, rounded down."""
    if factor == 1.0:  # powers of two scale exactly
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.floor(np.ldexp(values, exponent))
    else:
        kinds, of = np.unique(values, return_inverse=True)
        times = Fraction(factor) * Fraction(2) ** exponent
        scaled = np.array([float(math.floor(Fraction(value) * times)) for value in kinds.tolist()])[of]
    require(bool((scaled < MOST).all()), "a weight is beyond the grid")
    return scaled.astype(np.int64)


def _errors(problem: Problem, exponent: int) -> IntArray:
    """Return (n, T K) what each prediction costs each sample, target by target."""
    return np.hstack(
        [
            _errors_of_target(costs, y, problem.weight, exponent)
            for costs, y in zip(problem.costs, problem.y.T, strict=True)
        ]
    )


def _errors_of_target(costs: FloatArray, y: FloatArray, weight: FloatArray, exponent: int) -> IntArray:
    kinds, of = np.unique(np.column_stack([y, weight]), axis=0, return_inverse=True)
    known = np.zeros((len(kinds), len(costs)), np.int64)
    for i, (k, w) in enumerate(kinds.tolist()):
        for j, cost in enumerate(costs[int(k)].tolist()):
            loss = math.floor(Fraction(w) * Fraction(cost) * Fraction(2) ** exponent)
            require(loss < MOST, f"a sample loses {written(loss)} units of the grid, and it has {MOST}")
            known[i, j] = loss
    rows: IntArray = known[of.ravel()]
    return rows


def charges(problem: Problem, exponent: int, limits: Sequence[LabelLimit]) -> tuple[IntArray, int]:
    r"""Return (n, T K) what each prediction costs each sample with the prices of limits, and :attr:`Losses.moved`.

    Limits are on the labels of one target.

    The price of what a label uses, :math:`\lambda u`, is rounded down, and that of a limit, :math:`\lambda h`, up. A
    tree within the limits uses h at most, so it loses no less than the priced costs of its labels, less all
    :math:`\lambda h`. Of these costs each sample's least one is taken out, which every tree has.
    """
    rows, moved = _errors(problem, exponent), 0
    for limit in limits:
        price = Fraction(limit.price) * Fraction(2) ** exponent
        values, of = np.unique(limit.use, return_inverse=True)
        priced = [math.floor(price * Fraction(value)) for value in values.tolist()]
        whole_limit = math.ceil(price * Fraction(limit.most))
        most = max(abs(whole_limit), *map(abs, priced))
        require(most < MOST, f"a limit on labels has {written(most)} units of the grid, and it has {MOST}")
        rows = rows + np.array(priced, np.int64)[of.reshape(limit.use.shape)]
        moved -= whole_limit
    if limits:
        least = rows.min(axis=1)
        rows, moved = rows - least[:, None], moved + int(least.sum(dtype=object))
    return rows, moved


def _squares(problem: Problem, grid: Grid) -> tuple[IntArray, float, int]:
    """Return (n, T + 2) weights, weighted targets and weighted squares, :attr:`Losses.unit`, and the error."""
    w = _floors(problem.weight, grid.weight)
    # Doubles that are the same wherever IEEE arithmetic is: a difference, a product, a power of two, a rounding.
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        u = np.rint(np.ldexp(w[:, None] * (problem.y - grid.centre), grid.target))
    require(bool((np.abs(u) < MOST).all()), "a target is beyond the grid")
    u = np.where(w[:, None] == 0, 0.0, u).astype(np.int64)
    shift = grid.weight + 2 * grid.target - grid.loss
    require(
        0 <= shift <= 120, f"the grid of targets is {shift} bits finer than that of losses, and not 0 to 120"
    )
    pairs = zip(w.tolist(), u.tolist(), strict=True)
    q = [sum(one * one for one in b) // (a << shift) if a else 0 for a, b in pairs]
    total = sum(q)
    require(total < MOST, f"the samples lose {total:.3g} units of the grid, and it has {MOST}")
    # Each u misses its value by less than 2: half a unit by rounding, and two roundings of numbers below 2**52. By the
    # triangle inequality of the norm whose square the loss is, a tree loses less by at most twice the product of the
    # norms of what is missed, over all targets, and of all targets.
    kinds, counts = np.unique(w[w > 0], return_counts=True)
    missed = problem.n_targets * sum(
        (4 * c << 60) // a + 1 for a, c in zip(kinds.tolist(), counts.tolist(), strict=True)
    )
    error = math.isqrt((4 * missed * (total + len(w))) >> (60 + shift)) + 1
    return np.column_stack([w, u, np.array(q, np.int64)]), math.ldexp(1.0, -shift), error


def _deviances(problem: Problem, grid: Grid, *, exact: bool) -> tuple[IntArray, float, int]:
    """Return (n, 3) weights, weighted targets and what they lose beside the centre, the unit, and the error."""
    w, y, bits = _floors(problem.weight, grid.weight), problem.y[:, 0], grid.target
    centre = grid.centre[0]
    require(bool((y >= 0).all()), "a rate is less than 0")
    require(centre > 0, "the centre of rates is not above 0")
    require(0 <= bits <= MOST_OF_RATES, f"the grid of rates is {bits}, and not 0 to {MOST_OF_RATES}")
    size = math.frexp(centre)[1] + grid.loss - grid.weight - bits
    require(abs(size) <= 300, f"the grid of losses is 2**{size} times that of rates")
    unit = math.ldexp(centre, grid.loss - grid.weight - bits)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        u = np.rint(np.ldexp(w * ((y - centre) / centre), bits))
    whole = np.ldexp(w.astype(np.float64), bits)
    # A rate of 0 stays one, exactly, and no other rate becomes one.
    u = np.where(w == 0, 0.0, np.where(y > 0, np.maximum(u, 1.0 - whole), u))
    require(bool((np.abs(u) < MOST).all()), "a rate is beyond the grid")
    if exact:
        of_one = (exact_excess(int(a), int(b) << bits) for a, b in zip(u.tolist(), w.tolist(), strict=True))
        lost = [max(0, math.floor((value - missed) * Fraction(unit))) for value, missed in of_one]
        require(sum(lost) < MOST, f"the samples lose {sum(lost):.3g} units of the grid, and it has {MOST}")
        q = np.array(lost, np.int64)
    else:
        each = np.floor(excess(u, w.astype(np.float64), bits) * LOWERED_LOGARITHM * unit)
        total = float(each.sum())
        require(total < MOST, f"the samples lose {total:.3g} units of the grid, and it has {MOST}")
        q = each.astype(np.int64)
    some = (y > 0) & (w > 0)
    growth = 0.0
    if some.any():
        # How much larger a rounded rate may be than another one, or than the mean of a leaf with it; ln x <= x - 1.
        rates = (whole[some] + u[some]) / whole[some]
        ratio = float(rates.max() / rates.min())
        if not (y[w > 0] > 0).all():
            ratio = max(ratio, float(w.sum() / w[some].min()))
        growth = min(ratio * (1.0 + RAISED) - 1.0, float(math.frexp(ratio)[1]))
    error = math.ceil(MISSED_RATE * int(some.sum()) * growth * unit * (1.0 + RAISED)) + 1
    return np.column_stack([w, u.astype(np.int64), q]), unit, error


def excess(u: FloatArray, w: FloatArray, bits: int) -> FloatArray:
    r"""Return :math:`(t + u) \ln ((t + u) / t) - u` with :math:`t = 2^b w`, of whole numbers; 0 where w is 0.

    That is :math:`t \varphi(u / t)` of :mod:`mipforest.objectives.leaf_losses`, by basic operations of doubles, which
    miss it by less than 56 / 2**53 of it: ``docs/certificates.md`` adds the roundings up.

    Parameters
    ----------
    u, w
        Whole numbers below :data:`MOST`, :math:`u \ge -t`.
    bits
        The exponent b, 0 to :data:`MOST_OF_RATES`.
    """
    t = w * 2.0**bits
    twice = 2.0 * t + u
    z = np.divide(u, twice, out=np.zeros(twice.shape), where=twice > 0)
    found: FloatArray = u * z * (1.0 + z * (1.0 + z) * _series(z * z))
    far = np.abs(z) > 1.0 / 3.0
    if far.any():
        t, u = t[far], u[far]
        here = t + u
        mantissa, exponent = np.frexp(here / t)
        z = (mantissa - 1.0) / (mantissa + 1.0)
        z_squared = z * z
        logarithm = exponent * LN2 + 2.0 * z * (1.0 + z_squared * _series(z_squared))
        found[far] = here * logarithm - u
    return found


def _series(y: FloatArray) -> FloatArray:
    """Return 1/3 + y/5 + y^2/7 + ..., up to :data:`TERMS` terms, for y from 0 to 1/9."""
    total = np.full(y.shape, 1.0 / (2 * TERMS + 1))
    for k in range(2 * TERMS - 1, 1, -2):
        total *= y
        total += 1.0 / k
    return total


def exact_excess(u: int, t: int) -> tuple[Fraction, Fraction]:
    """Return :func:`excess` of a whole number and t, and by how much it may be missed."""
    with localcontext(Context(prec=DIGITS)):
        here = t + u
        value = Fraction(here * (Decimal(here) / t).ln()) if here else Fraction(0)
    return value - u, MISSED_DIGITS * (here + 1)


def _distances(problem: Problem, grid: Grid) -> tuple[IntArray, int]:
    """Return (n, M) the loss of each sample for each target as the prediction, and the error."""
    above, below = (_floors(problem.weight, grid.weight, factor) for factor in factors(problem.level))
    with np.errstate(over="ignore"):
        scaled = np.rint(np.ldexp(problem.y[:, 0], grid.target))
    require(bool((np.abs(scaled) < MOST).all()), "a target is beyond the grid")
    y = scaled.astype(np.int64)
    values = np.unique(y)
    require(
        len(y) * len(values) <= MAX_CELLS,
        f"{len(y)} samples have {len(values)} targets: too many for the check",
    )
    shift = grid.weight + grid.target - grid.loss
    require(
        0 <= shift <= 60, f"the grid of targets is {shift} bits finer than that of losses, and not 0 to 60"
    )
    far = y[:, None] - values
    weight = np.where(far > 0, above[:, None], below[:, None])
    far = np.abs(far)
    require(bool((far.astype(np.float64) * weight < 2.0**62).all()), "a loss is beyond the grid")
    # A rounded target misses its value by half a unit at most.
    error = (int(np.maximum(above, below).sum(dtype=object)) >> (shift + 1)) + 1
    return (far * weight) >> shift, error


def factors(level: float) -> tuple[float, float]:
    r"""Return what an error is charged of its size where the prediction is too low, and where it is too high.

    These are :math:`2 \tau`, and the greatest double of at most :math:`2 (1 - \tau)`.
    """
    high = 2.0 * (1.0 - level)
    return 2.0 * level, high if Fraction(high) <= 2 * (1 - Fraction(level)) else math.nextafter(high, 0.0)


def raised(problem: Problem, units: int, grid: Grid) -> int:
    """Return the least loss, in units of the grid, that a tree may have from a bound on.

    Whole weights and costs make a whole number of errors beside the costs of at most so many splits.
    """
    numbers = np.concatenate([problem.weight, problem.costs.ravel()])
    if grid.loss < 0 or problem.loss != ERRORS or not (numbers == np.rint(numbers)).all():
        return units
    step, cost = 1 << grid.loss, Fraction(problem.split_cost) * 2**grid.loss
    up, down = math.ceil(cost), math.floor(cost)
    losses = [max(0, -((k * up - units) // step)) * step + k * down for k in range(2**problem.depth)]
    least: int = min(losses)
    return max(units, least)


def objective_bound(losses: int, grid: Grid, unit: float) -> Fraction:
    """Return the bound on the objective that a bound on the rounded losses proves; at least 0, as no loss is less."""
    units = max(0, losses - grid.error)
    return units / Fraction(2) ** grid.loss / Fraction(unit)


def leaf_value(problem: Problem, rows: IntArray, label: int | None = None) -> Fraction:
    """Return the loss of a leaf with its best predictions, or with a label of one target."""
    y, weight = problem.y[rows].T.tolist(), problem.weight[rows].tolist()
    if problem.loss == ERRORS:
        each = zip(problem.costs.tolist(), y, strict=True)
        return sum((_errors_of_leaf(costs, own, weight, label) for costs, own in each), Fraction(0))
    if problem.loss == SQUARED:
        return sum((_squares_of_leaf(own, weight) for own in y), Fraction(0))
    (y,) = y
    of_target = dict.fromkeys(sorted(y), Fraction(0))
    for target, w in zip(y, weight, strict=True):
        of_target[target] += Fraction(w)
    if problem.loss == DEVIANCE:
        return _deviance_of(of_target)
    level = Fraction(problem.level)
    goal, seen, quantile = level * sum(of_target.values()), Fraction(0), Fraction(0)
    for target, w in of_target.items():
        seen += w
        if seen >= goal:
            quantile = Fraction(target)
            break
    away = [(w, Fraction(target) - quantile) for target, w in of_target.items()]
    return sum((2 * w * max(level * error, (level - 1) * error) for w, error in away), Fraction(0))


def _errors_of_leaf(
    costs: list[list[float]], y: list[float], weight: list[float], label: int | None
) -> Fraction:
    of_class = [Fraction(0)] * len(costs)
    for k, w in zip(y, weight, strict=True):
        of_class[int(k)] += Fraction(w)
    exact = [[Fraction(c) for c in row] for row in costs]
    return min(
        sum((w * row[k] for w, row in zip(of_class, exact, strict=True)), Fraction(0))
        for k in (range(len(exact)) if label is None else (label,))
    )


def _squares_of_leaf(y: list[float], weight: list[float]) -> Fraction:
    # Whole multiples of one power of two: sums of fractions would be reduced at every step.
    w, below = _multiples(weight)
    v, under = _multiples(y)
    W, S = sum(w), sum(a * b for a, b in zip(w, v, strict=True))
    Q = sum(a * b * b for a, b in zip(w, v, strict=True))
    return Fraction(Q * W - S * S, W * below * under * under)


def _deviance_of(of_rate: dict[float, Fraction]) -> Fraction:
    """Return half the deviance of rates with their weights, rounded up by less than any digit that is shown."""
    if len(of_rate) == 1:
        return Fraction(0)
    counts = {rate: Fraction(rate) * w for rate, w in of_rate.items() if rate > 0}
    whole = sum(counts.values(), Fraction(0))
    mean = whole / sum(of_rate.values(), Fraction(0))
    with localcontext(Context(prec=DIGITS)):
        total = Fraction(0)
        for rate, count in counts.items():
            ratio = Fraction(rate) / mean
            total += count * Fraction((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())
    return total + whole * MISSED_DIGITS


def _multiples(values: list[float]) -> tuple[list[int], int]:
    """Return doubles as whole multiples of one over a power of two, and that power."""
    ratios = [value.as_integer_ratio() for value in values]
    most = max(below for _, below in ratios)
    return [above * (most // below) for above, below in ratios], most
