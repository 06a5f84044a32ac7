"""Write certificates (``docs/certificates.md``) of what the exact search has found.

The proof is made after the search, whichever kernels it used: a second search knows the bound that is to be proven, and
keeps intervals of thresholds instead of trees (:mod:`mipforest.searches.exact.prover`), over rows in the whole numbers
of a grid (:mod:`mipforest.searches.exact.parts`).
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.atomic import atomic_write
from mipforest.certificates import CertificateError
from mipforest.certificates.constraints import Box, Constraints, LabelLimit
from mipforest.certificates.losses import (
    ABSOLUTE,
    ERRORS,
    LEAST_EXPONENT,
    LOSSES,
    MOST,
    MOST_EXPONENT,
    MOST_OF_RATES,
    SQUARED,
    Grid,
    Problem,
    charges,
    factors,
    objective_bound,
    raised,
    rounded,
)
from mipforest.certificates.univariate import UNIVARIATE, Place, values_of
from mipforest.errors import Unsupported
from mipforest.objectives.leaf_losses import (
    ClassLoss,
    LabelsLoss,
    LeafLoss,
    PoissonLoss,
    SquaredLoss,
    TableLoss,
)
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import compile_by
from mipforest.searches.exact.parts import PlainSubset, RowSubset, WalkedSubset, walked_rows
from mipforest.searches.exact.prover import Columns, Interval, Prover, nearest_middle
from mipforest.searches.exact.search import TOLERANCE
from mipforest.time_budget import TimeBudget
from mipforest.trees import Tree

#: Bits of what all rows lose together, of sums of targets, and of weights that are no whole numbers; the check has 52.
LOSS_BITS, TARGET_BITS, WEIGHT_BITS = 50, 51, 47

#: Bits of a weight, and of weight times target, of the absolute loss: their product is a whole number of 62 bits.
ABSOLUTE_WEIGHT_BITS, PRODUCT_BITS = 30, 60

#: Units by which bounds from doubles are lowered: for sums of a few whole numbers with a cost, and, as a share of what
#: all rows lose (2 to the minus this), for losses by sums: walks of squares add up thousands of doubles, and deviances
#: are small differences of logarithms.
ROUNDED_SUMS, SHARE_OF_SUMS = 4, 36

#: Share of the objective below which a bound differs from it by roundings only, by which the search lowers its bounds.
NEAR = 1e-8

#: Rows on which the kernels are tried out.
FEW = 4

#: Share of an error, as a power of two, by which a bound exceeds the number of errors below the one that it proves.
SLACK_BITS = 20


def grid_of(problem: Problem, limits: Sequence[LabelLimit] = ()) -> Grid:
    """Return a grid on which all losses of a problem, with prices of limits, are whole numbers that doubles hold."""
    w, T = problem.weight, problem.n_targets
    whole = bool((w == np.rint(w)).all())
    if problem.loss == ERRORS:
        costs = problem.costs
        # Of each target, what every label costs each sample.
        charged = costs[np.arange(T), problem.y.astype(np.int64)]
        most = float((w * charged.max(axis=2).sum(axis=1)).sum())
        if limits:
            paid = [limit.price * limit.use for limit in limits]
            priced = sum(paid, w[:, None] * charged[:, 0])
            shifted = float((priced - priced.min(axis=1, keepdims=True)).max(axis=1).sum())
            most = max(shifted, *(float(np.abs(one).max()) for one in paid))
            return Grid(_exponent(LOSS_BITS, most, problem.split_cost))
        numbers = np.concatenate([w, costs.ravel(), [problem.split_cost]])
        exact = bool((numbers == np.rint(numbers)).all()) and most < MOST / 2
        return Grid(0 if exact else _exponent(LOSS_BITS, most, problem.split_cost), centre=(0.0,) * T)
    if problem.loss == ABSOLUTE:
        centre, span = np.zeros(T), float(np.ptp(problem.y))
        times = max(factors(problem.level))
        heaviest = times * float(w.max())
        is_whole = whole and times == 1.0 and heaviest < 2**ABSOLUTE_WEIGHT_BITS
        weight = 0 if is_whole else _exponent(ABSOLUTE_WEIGHT_BITS, heaviest)
        bits = PRODUCT_BITS - max(0, math.frexp(heaviest)[1] + weight)
        target = min(_exponent(bits, span), _exponent(TARGET_BITS, float(np.abs(problem.y).max())))
        loss = min(_exponent(LOSS_BITS, times * float(w.sum()) * span, problem.split_cost), weight + target)
    else:
        centre, is_squared = np.average(problem.y, axis=0, weights=w), problem.loss == SQUARED
        own = SquaredLoss() if is_squared else PoissonLoss()
        far = np.abs(problem.y - centre) if is_squared else np.abs(problem.y / centre - 1.0)
        bits = TARGET_BITS if is_squared else WEIGHT_BITS
        weight = 0 if whole and w.sum() < 2**bits else _exponent(WEIGHT_BITS, float(w.sum()))
        target = _exponent(TARGET_BITS, *np.ldexp(w @ far, weight).tolist())
        each = problem.y if is_squared else problem.y[:, 0]
        loss = _exponent(LOSS_BITS, own.total(centre, each, w), problem.split_cost)
        if is_squared:
            loss = min(loss, weight + 2 * target)
        else:
            target = min(target, MOST_OF_RATES)
    grid = Grid(loss, weight, target, tuple(centre.tolist()))
    # One unit more than the check needs: another one may round what it computes.
    return grid._replace(error=rounded(problem, grid).error + 1)


def _exponent(bits: int, *values: float) -> int:
    """Return the exponent of a grid on which values have so many bits; values of 0 have any."""
    exponent = bits - max((math.frexp(value)[1] for value in values if value > 0), default=0)
    return min(max(exponent, LEAST_EXPONENT), MOST_EXPONENT)


def no_certificate(error: CertificateError) -> Unsupported:
    """Return the refusal of a problem that is beyond certificates."""
    return Unsupported(f"no certificate can be written of this problem: {error}; solve it without one")


class Step(NamedTuple):
    """A step of the division of trees into boxes: the words of its line, and the box of a claim."""

    line: str
    box: Box | None = None


class Proof:
    """A proof of a bound on what trees are charged.

    Parameters
    ----------
    charged, depth
        What trees are charged, and their most levels of splits.
    constraints
        What trees have to keep, if anything.
    walks
        Whether to take vector walks where they take the problem.

    Raises
    ------
    Unsupported
        If the problem is larger than certificates are, or its numbers are beyond them.
    """

    def __init__(
        self,
        charged: UnivariateProblem,
        depth: int,
        constraints: Constraints | None = None,
        *,
        walks: bool = True,
    ) -> None:
        self.charged = charged
        thresholds, (loss, costs) = charged.thresholds, loss_in_file(charged.loss, charged.y)
        y = np.asarray(charged.y, dtype=np.float64).reshape(len(charged.y), -1)
        self.problem = Problem(
            loss=loss,
            depth=depth,
            N_min=charged.N_min,
            split_cost=float(charged.split_cost),
            unit=float(charged.unit),
            costs=costs,
            X=thresholds.X[thresholds.group],
            y=y,
            weight=charged.weights,
            level=charged.loss.level,
        )
        try:
            self._values = values_of(self.problem.X)
            self.constraints = constraints or Constraints.none(depth, self._values)
            self.grid = grid_of(self.problem, self.constraints.labels)
            self._losses = rounded(self.problem, self.grid, self.constraints.labels)
            #: (n, K) what each label costs with the prices of limits on labels, in units of the loss.
            self._priced: FloatArray | None = None
            if self.constraints.labels:
                table, _ = charges(self.problem, self.grid.loss, self.constraints.labels)
                self._priced = np.ldexp(table.astype(np.float64), -self.grid.loss)
        except CertificateError as error:
            raise no_certificate(error) from None
        self._least, self._walks = charged.N_min if charged.N_min > 1 else 0, walks
        self._rank = np.array([np.unique(x, return_inverse=True)[1] for x in self.problem.X.T]).reshape(
            -1, len(y)
        )
        #: Boxes whose trees are all that keep the constraints, in the order of the file.
        self.steps = [Step("claim", self.constraints.box())]
        #: What the claims of three levels or more are proven by.
        self._intervals = dict[int, list[Interval]]()
        self._at_hand: tuple[Box, RowSubset, Prover] | None = None
        self.losses = 0

    def _of_box(self, box: Box) -> tuple[RowSubset, Prover]:
        """Return the rows in the columns of a box, and what proves bounds on its trees."""
        if self._at_hand is None or self._at_hand[0] is not box:
            self._at_hand = box, *self._made(Columns.of(self.constraints, box))
        return self._at_hand[1:]

    def _made(self, columns: Columns) -> tuple[RowSubset, Prover]:
        problem = self.problem
        exact = self.grid.loss == 0 and problem.loss == ERRORS and self._priced is None
        own = problem._replace(X=columns.ranks(self._rank).T.astype(np.float64))
        rows = walked_rows(own, self._priced) if self._walks else None
        margin = 0
        part: RowSubset
        if rows is not None:
            tolerance = 0.0 if exact else TOLERANCE * max(problem.unit, rows.leaf())
            margin = 0 if exact else ROUNDED_SUMS
            part = WalkedSubset(rows, problem.split_cost, tolerance, math.ldexp(1.0, self.grid.loss))
        else:
            losses = rounded(own, self.grid, self.constraints.labels)
            rank = np.empty((len(columns.feature), len(losses.size)), np.int32)
            rank[:, losses.group] = own.X.T.astype(np.int32)
            part = PlainSubset(losses, rank, columns.width + 1, empties=columns.empties)
        if self._losses.has_sums:
            margin = ROUNDED_SUMS + (int(self._losses.table[:, -1].sum()) >> SHARE_OF_SUMS)
        return part, Prover(self._losses.split_cost, margin, columns)

    def try_out(self) -> None:
        """Run all that is compiled, on a few rows."""
        box = self.steps[0].box
        assert box is not None
        whole, prover = self._of_box(box)
        members = np.arange(whole.rank.shape[1]) < FEW
        part, few = whole.part(members), members[members]
        for levels in range(1, min(self.problem.depth, 2) + 1):
            prover.bound(part, levels, self._least, 1)
        # Less than any loss, so that nothing fails.
        if self.problem.depth > 1:
            list(prover.covers(part, part.whole, few, self._least, -prover.margin))
        if self.problem.depth > 2:
            nearest_middle(part.tables.weight_below[0], 1, 1)
            side = part.sides(0, 1)[0]
            prover.least_loss(part, side, few, 2, self._least, 1, Place(1))
        if self.problem.depth > 3:
            part.value(3, 1.0)

    @staticmethod
    def wanted(objective: float, bound: float) -> float:
        """Return the bound to prove: the objective, where the search has lowered its bound for its roundings only."""
        near = objective - bound <= NEAR * max(abs(objective), 1.0)
        return objective if near else max(0.0, bound)

    def priced(self, charged: UnivariateProblem, bound: float) -> tuple[UnivariateProblem, float]:
        """Return a problem with the prices of limits on labels, and what a bound on the objective is of its own one."""
        if self._priced is None:
            return charged, bound
        y, moved = self._priced.argmin(axis=1), math.ldexp(self._losses.moved, -self.grid.loss)
        priced = replace(charged, y=y, loss=TableLoss(self._priced), weight=None, offset=0.0)
        return priced, bound - moved / charged.unit

    def prove(self, bound: float) -> float:
        """Prove a bound on the objective, or the best one that is less; return it."""
        wanted = math.ceil(Fraction(bound) * Fraction(self.problem.unit) * Fraction(2) ** self.grid.loss)
        least = wanted + self.grid.error
        if self.constraints.labels:
            # Less will do, where the next number of errors is what is wanted.
            fewer = least - (1 << max(self.grid.loss, 0)) + (1 << max(self.grid.loss - SLACK_BITS, 0))
            least = fewer if raised(self.problem, fewer, self.grid) >= least else least
        self.losses = max(0, min(MOST - 1, least - self._losses.moved))
        for k, (_, box) in enumerate(self.steps):
            if box is not None:
                self.losses = self._proven(k, box)
        units = self.losses + self._losses.moved
        units = raised(self.problem, units, self.grid) if self.constraints.labels else units
        proven = objective_bound(units, self.grid, self.problem.unit)
        below = float(proven)
        return below if Fraction(below) <= proven else math.nextafter(below, 0.0)

    def _proven(self, k: int, box: Box) -> int:
        """Return what is proven of a box, at most the bound on those before it."""
        part, prover = self._of_box(box)
        depth, keep = self.problem.depth, self.losses
        if depth <= 2:
            return prover.bound(part, depth, self._least, keep)
        found, self._intervals[k] = prover.solve(part, depth, self._least, keep)
        return found

    def lines(
        self,
        names: Mapping[str, Any],
        objective: float,
        tree: list[tuple[int, float]],
        bound: float,
        leaves: Sequence[int] = (),
    ) -> Iterator[str]:
        """Yield the lines of the certificate.

        Parameters
        ----------
        names
            What the first line calls the problem.
        objective, tree
            Value of a tree, and feature and threshold of each node in heap order, -1 and 0 for a leaf.
        bound
            What :meth:`prove` returned.
        leaves
            Under limits on labels, the label of each node, of those at the last level too; -1 where it is no leaf.
        """
        problem, grid, constraints = self.problem, self.grid, self.constraints
        n, p = problem.X.shape
        yield json.dumps({"mipforest_certificate": UNIVARIATE, **names, "sha256": problem.digest()})
        sizes = (problem.depth, n, p, problem.n_targets, problem.n_classes, problem.N_min)
        charges = (problem.split_cost.hex(), problem.unit.hex(), problem.level.hex())
        yield " ".join(["problem", problem.loss, *map(str, sizes), *charges])
        for row in problem.costs.reshape(-1, problem.n_classes or 1).tolist():
            yield " ".join(["cost", *map(float.hex, row)])
        for row in np.column_stack([problem.y, problem.weight, problem.X]).tolist():
            yield " ".join(["sample", *map(float.hex, row)])
        yield from constraints.lines(self._values)
        centre = " ".join(map(float.hex, grid.centre))
        yield f"grid {grid.loss} {grid.weight} {grid.target} {centre} {grid.error}"
        yield " ".join(["tree", objective.hex(), *(f"{f} {threshold.hex()}" for f, threshold in tree)])
        if constraints.labels:
            yield " ".join(["leaves", *map(str, leaves)])
        yield f"bound {self.losses} {bound.hex()}"
        for k, (line, box) in enumerate(self.steps):
            if constraints.has_limits:
                yield line
            if box is not None:
                part, prover = self._of_box(box)
                yield from prover.lines(part, problem.depth, self._least, self.losses, self._intervals.get(k))

    def write(
        self,
        path: Path,
        names: Mapping[str, Any],
        objective: float,
        tree: list[tuple[int, float]],
        bound: float,
        leaves: Sequence[int] = (),
    ) -> None:
        """Write the certificate, whole or not at all; parameters as for :meth:`lines`."""
        with atomic_write(path) as raw, gzip.GzipFile("", "wb", 4, raw, mtime=0) as file:
            for line in self.lines(names, objective, tree, bound, leaves):
                file.write(line.encode() + b"\n")

    def write_found(
        self, path: Path, names: Mapping[str, Any], tree: Tree, objective: float, bound: float
    ) -> float:
        """Write a certificate of what a search has found; return the bound that it proves.

        Parameters
        ----------
        path, names
            The file, and what its first line calls the problem.
        tree, objective, bound
            The best tree with its objective, and the bound of the search.
        """
        proven = self.prove(self.wanted(objective, bound))
        leaves = labels_of(tree) if self.constraints.labels else []
        self.write(path, names, objective, splits_of(tree), proven, leaves)
        return min(objective, proven)


def compiled_proof(
    budget: TimeBudget, charged: UnivariateProblem, depth: int, constraints: Constraints | None = None
) -> Proof:
    """Return a proof to be, with what writing it runs loaded or compiled; see :func:`~mipforest.searches.compile_by`.

    Parameters
    ----------
    budget
        What compiling is excluded from.
    charged, depth, constraints
        As for :class:`Proof`.

    Raises
    ------
    Unsupported
        If certificates do not state the loss.
    """
    if isinstance(charged.loss, TableLoss):
        raise Unsupported(
            "no certificate can be written of costs that differ from sample to sample: the file states costs by "
            "class; solve it without one"
        )
    if not isinstance(charged.loss, LabelsLoss) and charged.loss.name not in LOSSES:
        raise Unsupported(
            f"a certificate states one of the losses {', '.join(LOSSES)}, and not the {charged.loss.name} loss; leave "
            "the certificate out"
        )
    made = list[Proof]()

    def run() -> None:
        made.append(Proof(charged, depth, constraints))
        made[0].try_out()

    compile_by(run, budget, "the search for a proof", 5)
    return made[0]


def loss_in_file(loss: LeafLoss, y: FloatArray | IntArray) -> tuple[str, FloatArray]:
    """Return the name that certificates have for a loss of targets (n,) or (n, T), and the costs of classes.

    These are (T, K, K), what predicting each class costs a sample of each class, of T targets; (T, 0, 0) of numbers.
    """
    K = int(y.max()) + 1
    if isinstance(loss, LabelsLoss):
        return ERRORS, np.asarray(loss.target_weight[:, None, None] * (1.0 - np.eye(K)))
    if isinstance(loss, ClassLoss):
        return ERRORS, (1.0 - np.eye(K) if loss.costs is None else loss.costs)[None]
    return loss.name, np.zeros((1 if y.ndim == 1 else y.shape[1], 0, 0))


def splits_of(tree: Tree) -> list[tuple[int, float]]:
    """Return feature and threshold of each node of a univariate tree in heap order, -1 and 0 where it has no split."""
    splits = []
    for w, b in zip(tree.w, tree.b.tolist(), strict=True):
        f = np.flatnonzero(w)
        splits.append((int(f[0]), -b / float(w[f[0]])) if len(f) else (-1, 0.0))
    return splits


def labels_of(tree: Tree) -> list[int]:
    """Return the label of each node in heap order, of those at the last level too; -1 where it is no leaf."""
    splits, B = np.flatnonzero(tree.w.any(axis=1)).tolist(), len(tree.w)
    found, here = [-1] * (2 * B + 1), [0]
    for t in here:
        if t in splits:
            here += [2 * t + 1, 2 * t + 2]
            continue
        leaf = t
        while leaf < B:
            leaf = 2 * leaf + 2  # samples of a node without a split go right
        found[t] = int(tree.leaf_value[leaf - B])
    return found
