"""Write certificates (``docs/certificates.md``) while a search runs: what all have, and those of any convex nodes."""

from __future__ import annotations

import gzip
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.atomic import atomic_write
from mipforest.certificates import digest_of_samples

if TYPE_CHECKING:
    from mipforest.searches.routing.cells import Cell, CellPosition, ConvexNodes, DualPoint

#: Bits of the largest entry of a dual point; the whole numbers of a certificate have at most 53.
BITS = 44

#: Most units of a variable, and the least exponent of a unit that a certificate may have.
MOST, LEAST_UNIT = 1 << 52, -199

#: What a dive of convex nodes has done, for a certificate: a group that it sent to a side (group, side), or a feature
#: that it took or left (node, feature, whether it took it), the other half left open; or, at a leaf, the cells of all
#: nodes.
Decision: TypeAlias = "tuple[int, int] | tuple[int, int, bool] | list[list[Cell]]"


class CertificateFile(ABC):
    """Writes the lines of a certificate.

    Parameters
    ----------
    file
        Where to write.
    nodes
        The problem.
    header
        What else the first line says: the format, names of model and data, parameters, version.

    Attributes
    ----------
    least
        The least bound that a leaf proves so far.
    """

    def __init__(self, file: gzip.GzipFile, nodes: ConvexNodes, **header: Any) -> None:
        self._file, self._X, self._epsilon = file, nodes.X, nodes.epsilon
        self._G, self._n_nodes = len(nodes.X), len(nodes.C)
        self._names = count(1)
        self.least = math.inf
        shape = {"depth": self._n_nodes.bit_length(), "samples": self._G, "features": nodes.X.shape[1]}
        digest = {"sha256": digest_of_samples(nodes.X, nodes.weight)}
        self._write({**header, **shape, **digest, "epsilon": nodes.epsilon, "C": nodes.C.tolist()})
        for x, n in zip(nodes.X.tolist(), nodes.weight.tolist(), strict=True):
            self._write({"x": x, "n": n})

    @abstractmethod
    def dived(self, node: int, reached: Any, log: Any, *, stopped: bool) -> list[int]:
        """Write what a dive has done.

        Parameters
        ----------
        node, reached
            The open node that it started from, and its routing (G,).
        log
            What it has logged.
        stopped
            Whether it left its last routing open.

        Returns
        -------
        The nodes that it left open, in the order in which it did.
        """

    @abstractmethod
    def leaf(self, node: int, position: Any, at_least: float = -math.inf) -> bool:
        """Write an open node as a leaf, if what its position keeps proves a bound; return whether it does."""

    def claim(self, objective: float, bound: float, w: FloatArray, b: FloatArray) -> None:
        """Write the last line: a tree, its value, and the bound that the leaves prove."""
        self._write({"claim": {"objective": objective, "bound": bound, "w": w.tolist(), "b": b.tolist()}})

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


class NodesRecorder(CertificateFile):
    """Follows the dives of any convex nodes; parameters as for :class:`CertificateFile`.

    A dual point gets a name and a line when a leaf rests on it for the first time.
    """

    def __init__(self, file: gzip.GzipFile, nodes: ConvexNodes, **header: Any) -> None:
        self._nodes, hard = nodes, nodes.budget is None or not np.isfinite(nodes.alpha)
        super().__init__(
            file,
            nodes,
            mipforest_certificate=2,
            kinks=nodes.kinks.tolist(),
            norm="l1" if nodes.l1 else "l2",
            free=None if nodes.budget is None else nodes.budget.tolist(),
            alpha=None if hard else nodes.alpha,
            **header,
        )
        K = len(nodes.kinks)
        self._reward = np.tile(nodes.kinks[:, 0], 2 * self._G)
        capacity = np.empty((self._n_nodes, self._G, 2, K))
        for size in np.unique(nodes.weight).tolist():
            for t, penalty in enumerate(nodes.C.tolist()):
                for k, change in enumerate(nodes.kinks[:, 1].tolist()):
                    most = Fraction(penalty) * Fraction(size) * Fraction(change)
                    near = float(most)
                    capacity[t, ..., k][nodes.weight == size] = (
                        math.nextafter(near, 0.0) if Fraction(near) > most else near
                    )
        self._capacity: FloatArray = capacity.reshape(self._n_nodes, -1)

    def dived(self, node: int, reached: Any, log: list[Decision], *, stopped: bool) -> list[int]:  # noqa: ARG002
        """Write what a dive has done; see :class:`CertificateFile`."""
        left_open = list[int]()
        for decision in log:
            if isinstance(decision, list):
                self._leaf(node, *self._proof(decision))
                continue
            first, second = next(self._names), next(self._names)
            if len(decision) == 2:
                g, side = decision
                self._write({"branch": node, "sample": g, "left": first, "right": second})
                taken = side < 0
            else:
                t, j, taken = decision
                self._write({"branch": node, "at": t, "feature": j, "in": first, "out": second})
            node, other = (first, second) if taken else (second, first)
            left_open.append(other)
        if stopped:
            left_open.append(node)
        return left_open

    def leaf(self, node: int, position: CellPosition, at_least: float = -math.inf) -> bool:
        """Write an open node as a leaf; see :class:`CertificateFile`."""
        value, trees = self._proof([[cell for _, _, cell in cells] for cells in position.cells])
        if value < at_least:
            return False
        self._leaf(node, value, trees)
        return True

    def _leaf(self, node: int, value: float, trees: list[Any]) -> None:
        self.least = min(self.least, value)
        self._write({"leaf": node, "nodes": trees})

    def _proof(self, nodes: list[list[Cell]]) -> tuple[float, list[Any]]:
        """Return what the cells of all nodes prove, and their trees of choices."""
        value, trees = 0.0, []
        for t, cells in enumerate(nodes):
            value += min(self._value(t, cell) for cell in cells)
            trees.append(self._tree(cells, _shared([cell.path for cell in cells])))
        return value, trees

    def _tree(self, cells: Sequence[Cell], depth: int) -> Any:
        """Return a tree of choices, below those that cells have in common."""
        if len(cells) == 1:
            point = cells[0].point
            return None if point is None else self._named(point)[0]
        j = cells[0].path[depth][0]
        inside = [cell for cell in cells if cell.path[depth][1]]
        outside = [cell for cell in cells if not cell.path[depth][1]]
        return [j, self._tree(inside, depth + 1), self._tree(outside, depth + 1)]

    def _value(self, t: int, cell: Cell) -> float:
        """Return what the dual point of a cell proves of all its choices."""
        nodes, inside, others = self._nodes, np.arange(self._X.shape[1]), np.zeros(0, np.int64)
        cost, spare, alpha = 0.0, 0, nodes.alpha
        if nodes.budget is not None:
            inside = np.array([j for j, is_in in cell.path if is_in], np.int64)
            spare = int(nodes.budget[t]) - len(inside)
            cost = alpha * max(0, -spare) if np.isfinite(alpha) else 0.0
            if spare > 0 or np.isfinite(alpha):
                others = np.setdiff1d(np.arange(self._X.shape[1]), [j for j, _ in cell.path])
        if cell.point is None:
            return cost
        _, reward, u = self._named(cell.point)
        if nodes.l1:
            used = np.abs(u[np.concatenate([inside, others])])
            return cost + max(reward, 0.0) / max(1.0, float(used.max(initial=0.0)))
        charge = 0.5 * u * u
        of_others = np.sort(charge[others])[::-1]
        free, further = of_others[: max(0, spare)], of_others[max(0, spare) :]
        dear = np.maximum(further - alpha, 0.0) if np.isfinite(alpha) else np.zeros(0)
        return float(cost + reward - charge[inside].sum() - free.sum() - dear.sum())

    def _named(self, point: DualPoint) -> tuple[int, float, FloatArray]:
        """Return a point's name, what it earns, and its sum of samples; write its line where it has none yet."""
        if point.written is not None:
            return point.written
        ks, margins = point.variables, 2 * self._G * len(self._nodes.kinks)
        unit = max(math.frexp(float(point.amounts.max(initial=0.0)))[1] - BITS, LEAST_UNIT)
        margin, left = ks < margins, (ks >= margins) & (ks < margins + self._G)
        group = np.where(margin, ks // (margins // self._G), (ks - margins) % self._G)
        d = np.where(margin, 2 * (ks // len(self._nodes.kinks) % 2) - 1, np.where(left, -1, 1))
        at = np.where(margin, ks, 0)
        capacity = np.where(margin, self._capacity[point.t, at], np.inf)
        most = np.minimum(np.floor(np.ldexp(capacity, -unit)), MOST).astype(np.int64)
        amounts = np.minimum(np.rint(np.ldexp(point.amounts, -unit)).astype(np.int64), most)
        balance(amounts, d, most)
        rewards = np.where(margin, self._reward[at], np.where(left, self._epsilon, 0.0))
        earned = math.ldexp(float(amounts @ rewards), unit)
        u = np.ldexp((amounts * d) @ self._X[group], unit)
        kept = amounts > 0
        dual = np.column_stack([ks[kept], amounts[kept]]).ravel().tolist()
        name = next(self._names)
        self._write({"point": name, "at": point.t, "unit": unit, "dual": dual})
        point.written = name, earned, u
        return point.written


def _shared(paths: Sequence[tuple[tuple[int, bool], ...]]) -> int:
    """Return how many decisions paths have in common, from their beginning."""
    n = 0
    while all(len(path) > n and path[n] == paths[0][n] for path in paths):
        n += 1
    return n


def balance(amounts: IntArray, d: IntArray, most: IntArray) -> None:
    """Change amounts, in place, so that they sum to 0 with their directions: few units, of variables with room."""
    surplus = int(amounts @ d)
    if surplus == 0:
        return
    room = np.minimum(amounts, most - amounts)
    q = int(np.argmax(room))
    if room[q] >= abs(surplus):
        amounts[q] -= surplus * int(d[q])
        return
    sign = 1 if surplus > 0 else -1
    for q in np.argsort(-np.where(d == sign, amounts, 0)).tolist():
        taken = min(abs(surplus), int(amounts[q]))
        amounts[q] -= taken
        surplus -= sign * taken
        if surplus == 0:
            return


_Written = TypeVar("_Written", bound=CertificateFile)


@contextmanager
def recording(path: Path | None, write: Callable[[gzip.GzipFile], _Written]) -> Iterator[_Written | None]:
    """Write a certificate, whole or not at all, and yield what ``write`` makes of its file; without a path, none."""
    if path is None:
        yield None
        return
    with atomic_write(path) as raw, gzip.GzipFile("", "wb", 4, raw, mtime=0) as file:
        yield write(file)
