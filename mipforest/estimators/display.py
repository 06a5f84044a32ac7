"""What an estimator shows: its tree as text and picture, and the progress of its fit."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from mipforest.arrays import FloatArray
from mipforest.problem.problem import Problem
from mipforest.problem.result import Result
from mipforest.solvers.solution import Event, Progress, Status, relative_gap
from mipforest.trees import Tree, node_statistics, to_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class TreePictures(ABC):
    """Write and draw the tree of an estimator."""

    tree_: Tree

    @abstractmethod
    def _features(self, X: Any) -> FloatArray:
        """Return the (n, p') encoded features in original units."""

    def _numbers(self, y: Any) -> Any:
        """Turn targets into what trees count: class numbers, or values."""
        return y

    def to_text(self, X: Any = None, y: npt.ArrayLike | None = None, *, max_terms: int = 6) -> str:
        """Write the tree as text, with the samples at each node if some are given.

        Parameters
        ----------
        X, y
            (n, p) samples and (n,) targets to count at the nodes, or ``None``.
        max_terms
            Most terms of a split or a linear leaf to show.
        """
        check_is_fitted(self, "tree_")
        counts = None
        if X is not None:
            counts = node_statistics(self.tree_, self._features(X), None if y is None else self._numbers(y))
        return to_text(self.tree_, counts, max_terms=max_terms)

    def plot(
        self, X: Any = None, y: npt.ArrayLike | None = None, ax: Axes | None = None, *, max_terms: int = 3
    ) -> Figure:
        """Draw the tree; ``figure.savefig(...)`` writes it.

        Parameters
        ----------
        X, y
            (n, p) samples and (n,) targets to count at the nodes, or ``None``.
        ax
            Axes to draw into; ``None`` makes a figure.
        max_terms
            Most terms of a split or a linear leaf to show.

        Raises
        ------
        ValueError
            If X or y do not fit the tree, or y comes without X.
        """
        from mipforest.trees import plot_tree

        check_is_fitted(self, "tree_")
        X_raw = None if X is None else self._features(X)
        return plot_tree(self.tree_, X_raw, None if y is None else self._numbers(y), ax, max_terms=max_terms)


class PrintedProgress:
    """Prints what was built, a line whenever incumbent or bound moved, and the end; passes every event on.

    Parameters
    ----------
    name
        Stands at the beginning of every line.
    verbose
        0 prints nothing.
    then
        Called with every event; what it gives back is given back.
    """

    def __init__(self, name: str, verbose: int, then: Progress | None) -> None:
        self._name = name
        self._verbose = verbose
        self._then = then
        self._printed = ""

    def built(self, problem: Problem) -> None:
        """Say what is solved."""
        if self._verbose:
            seconds = problem.prepare_seconds + problem.build_seconds
            size = ", ".join(f"{count} {name}" for name, count in problem.size().items())
            print(
                f"[{self._name}] {problem.name_in_words}, {problem.data.n} samples: {size}, built in {seconds:.1f} s",
                flush=True,
            )

    def ended(self, result: Result) -> None:
        """Say how the solve ended."""
        if self._verbose:
            print(f"[{self._name}] {result.status} after {result.solution.seconds:.1f} s", flush=True)

    def __call__(self, event: Event) -> bool | None:
        """Take an event; ``True`` asks the solver to stop and keep its incumbent."""
        state = f"incumbent {_written(event.objective)}  bound {_written(event.bound)}"
        if self._verbose and state != self._printed:
            self._printed = state
            gap = relative_gap(event.objective, event.bound)
            share = f"{gap:.2%}" if math.isfinite(gap) else "-"
            print(f"[{self._name}] {event.seconds:7.1f} s  {state}  gap {share}", flush=True)
        return None if self._then is None else self._then(event)


def _written(value: float) -> str:
    """Write a value with six digits, - where there is none."""
    return f"{value:.6g}" if math.isfinite(value) else "-"


def why_no_tree(result: Result) -> str:
    """Say why a fit ended without a tree, and what to do."""
    solution = result.solution
    why = f"{solution.solver} stopped after {solution.seconds:.1f} s without a tree (status {result.status})"
    if solution.status in (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED):
        return (
            f"{why}: no tree satisfies all constraints; relax those that were added, or a limit such as N_min"
        )
    told = f": {solution.message}" if solution.message else ""
    return f"{why}{told}; raise time_limit, or give a start (start='default')"
