"""What every tree search does beside searching: incumbent, clock, stops, progress, and the result with its status.

A search hands over trees and bounds. Of these,

- **a value counts only with its tree.** What comes back of a tree is a number that may prune, so it gets in through one
  gate: :meth:`Incumbent.offer` evaluates it by the definition, and asks
  :meth:`~mipforest.problem.problem_data.ProblemData.outside` whether the definition holds, with its gap, its least leaf
  sizes and its limits, whether or not rows were declared;
- **the clock counts searching alone.** Loading a search, or compiling it, eats nothing of the time limit, whenever it
  happens: the :class:`~mipforest.time_budget.TimeBudget` says how long it took;
- **the status follows from what ended the search** (:meth:`Driver.result`). Whether the tree is optimal follows from
  its value and the bound, which :func:`mipforest.problem.proofs.judged` compares for all searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from math import inf, nan
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from mipforest.problem.problem_data import ProblemData
from mipforest.problem.tree_search import LOCAL_SEARCH, SearchResult, get_search
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Event, Progress, Status, closed

if TYPE_CHECKING:
    from mipforest.problem.tree_search import TreeSearch

#: What a result says of a search that lost its cluster on the way.
LOST = "the search ended before its time, and tree and bound are those of then: {}"

#: Seconds between two events of progress without a better tree.
PROGRESS_INTERVAL = 0.5


class Incumbent:
    """The best tree of a search so far.

    Parameters
    ----------
    problem
        What is solved.

    Attributes
    ----------
    tree
        The best tree, ``None`` while there is none.
    value
        Its objective by the definition, infinite while there is none.
    """

    def __init__(self, problem: ProblemData) -> None:
        self._problem, self._lock = problem, Lock()
        self.tree: Any = None
        self.value = inf

    def offer(self, tree: Any) -> float:
        """Keep a tree (for scaled features) if it is the best one; return a value that may prune.

        Returns
        -------
        float
            The objective of the tree by the definition; infinite where it would be the best one and is none of the
            model. A tree that is no better than the incumbent is not looked at further.
        """
        formulation, instance = self._problem.formulation, self._problem.instance
        value = float(formulation.evaluate(tree, instance))
        if not value < self.value:
            return value
        if self._problem.outside(tree):
            return inf
        with self._lock:  # threads of a search share it
            if value < self.value:
                self.tree, self.value = tree, value
        return value


class Driver:
    """A search under way: its incumbent, its clock, what it has reported, and why it ends.

    Parameters
    ----------
    search
        Whether it proves bounds, and whether it leaves no gap at its end, says what its end means.
    problem
        What is solved.
    settings
        Time limit and gap.
    on_progress
        Called with progress events; returning ``True`` stops the search.
    keeps_constraints
        Whether the search looks at trees within the constraints alone. Of one that looks at all trees, the incumbent is
        the best of all, which prunes, and :attr:`within` has the best one within the constraints.

    Attributes
    ----------
    searched
        The problem whose trees are searched: ``problem``, or that without its constraints.
    incumbent
        The best tree of :attr:`searched`.
    within
        The best tree of ``problem``.
    bound
        Highest lower bound that was reported.
    nodes
        Most nodes that were reported.
    interrupted
        Whether the caller has stopped the search.
    lost
        Why a cluster could not go on; empty where none was asked or it could.
    warnings
        What the user should know, in order.
    """

    def __init__(
        self,
        search: TreeSearch,
        problem: ProblemData,
        settings: SolveSettings | None = None,
        on_progress: Progress | None = None,
        *,
        keeps_constraints: bool = True,
    ) -> None:
        self.problem, self.settings = problem, settings or SolveSettings()
        self.searched = problem if keeps_constraints or not problem.constraints else problem.without_rows()
        self.within = Incumbent(problem)
        self.incumbent = self.within if self.searched is problem else Incumbent(self.searched)
        self.bound, self.nodes = -inf, 0
        self.interrupted, self.lost, self.warnings = False, "", list[str]()
        self._search, self._on_progress = search, on_progress
        self._began, self._excluded = monotonic(), problem.budget.excluded_seconds
        self._events: list[Event] = []
        self._limit, self._ran_out = self.settings.time_limit, False

    # ------------------------------------------------------------------ trees

    @property
    def value(self) -> float:
        """Value of the incumbent, which prunes; infinite while there is none."""
        return self.incumbent.value

    def offer(self, tree: Any) -> float:
        """Offer a tree, unless it is ``None``; see :meth:`Incumbent.offer`."""
        if tree is None:
            return inf
        if self.within is not self.incumbent:
            self.within.offer(tree)
        return self.incumbent.offer(tree)

    def polish_and_offer(self, *trees: Any) -> list[Any]:
        """Offer trees after the formulation has fitted their leaves; return them, without those that are ``None``."""
        formulation, instance = self.problem.formulation, self.problem.instance
        polished = [formulation.polish(tree, instance) for tree in trees if tree is not None]
        for tree in polished:
            self.offer(tree)
        return polished

    def closed(self, bound: float) -> bool:
        """Return whether no tree above a bound is worth more than the incumbent, beside the gap."""
        return bound >= self.value or closed(self.value, bound, self.settings.gap, self._unit)

    @cached_property
    def _unit(self) -> float:
        return self.problem.objective_unit

    # ------------------------------------------------------------------ the clock

    def seconds(self) -> float:
        """Return the seconds of searching so far."""
        return monotonic() - self._start

    @property
    def _start(self) -> float:
        return self._began + self.problem.budget.excluded_seconds - self._excluded

    @property
    def deadline(self) -> float:
        """When the time limit is over, on the clock of :func:`time.monotonic`; infinite without one.

        It is later once something was loaded or compiled.
        """
        return inf if self._limit is None else self._start + self._limit

    @property
    def left(self) -> float:
        """Seconds left, at least 0; infinite without a time limit."""
        return max(0.0, self.deadline - monotonic())

    def over(self, reserved: float = 0.0) -> bool:
        """Return whether to end: the caller has stopped the search, or no more than some seconds are left."""
        out_of_time = self.left <= reserved
        self._ran_out = self._ran_out or out_of_time
        return self.stopped or out_of_time

    @contextmanager
    def without_limit(self) -> Iterator[None]:
        """Let the time limit not hold for what is no part of the search, such as writing its proof."""
        limit, self._limit = self._limit, None
        try:
            yield
        finally:
            self._limit = limit

    # ------------------------------------------------------------------ progress

    @property
    def stopped(self) -> bool:
        """Whether the caller has stopped the search."""
        self.interrupted = self.interrupted or self.problem.budget.stopped
        return self.interrupted

    def report(self, bound: float = -inf, nodes: int = 0, *, value: float = inf) -> bool:
        """Report progress: a better value at once, the rest at most every :data:`PROGRESS_INTERVAL` seconds.

        Parameters
        ----------
        bound
            A lower bound on the value of every tree.
        nodes
            Steps so far.
        value
            Value of a tree that is still to be offered.

        Returns
        -------
        bool
            Whether to stop, as the caller has said.
        """
        value = min(value, self.within.value)
        self.bound, self.nodes = max(self.bound, bound), max(self.nodes, nodes)
        last = self._events[-1] if self._events else None
        if last is None or value < last.objective or self.seconds() - last.seconds >= PROGRESS_INTERVAL:
            self.interrupted |= self._report(value, min(self.bound, value))
        return self.stopped

    def _report(self, value: float, bound: float) -> bool:
        self._events.append(Event(self.seconds(), value, bound, self.nodes))
        return bool(self._on_progress is not None and self._on_progress(self._events[-1]))

    # ------------------------------------------------------------------ the local search

    def improve_locally(
        self, *, share: float, most: float = inf, stop: Callable[[], bool] = lambda: False, **options: int
    ) -> None:
        """Improve the incumbent by the local search, where that takes the problem.

        Parameters
        ----------
        share, most
            Share of the time left, and seconds, that it has at most.
        stop
            Asked now and then whether to end it.
        options
            Its options.
        """
        local = get_search(LOCAL_SEARCH)
        if local.objection(self.searched):
            return
        limit = min(most, share * self.left)
        asked = SolveSettings(
            time_limit=None if limit == inf else limit,
            threads=self.settings.threads,
            seed=self.settings.seed,
            solver_options=options,
        )
        # Constraints that the search does not keep, no tree has to be within.
        offered = self.within is self.incumbent
        found = local.search(
            self.searched,
            asked,
            start=self.incumbent.tree,
            on_progress=lambda event: self.report(value=event.objective if offered else inf) or stop(),
        )
        self.offer(found.tree)

    # ------------------------------------------------------------------ the end

    def result(
        self,
        bound: float,
        *,
        ended: bool,
        nodes: int | None = None,
        message: str = "",
        status: Status | None = None,
        reported: Mapping[str, Any] | None = None,
        otherwise: Any = None,
        objective: float = nan,
    ) -> SearchResult:
        """Return the result, and report it.

        Parameters
        ----------
        bound
            Proven lower bound on the value of every tree; infinite where there is none.
        ended
            Whether nothing is left to search.
        nodes
            Steps of the search; the most that were reported, unless given.
        message
            The search's own last word.
        status
            Why it ended, where something else than the search says so.
        reported
            What else it found out.
        otherwise
            A tree to return where none is within the constraints, for the caller to look for one near it: the
            incumbent of all trees, unless given.
        objective
            Value of the tree by the search, of a model without rows.
        """
        tree, value = self.within.tree, self.within.value
        self.nodes = self.nodes if nodes is None else nodes
        bound = min(bound, self.value)
        if status is None:
            status = self._status(bound, ended=ended)
        self._report(nan if tree is None and bound == inf else value, bound)
        if self.lost:
            self.warnings.append(LOST.format(self.lost))
        fallback = otherwise if self.incumbent.tree is None else self.incumbent.tree
        return SearchResult(
            fallback if tree is None else tree,
            bound,
            status,
            self.nodes,
            tuple(self._events),
            tuple(self.warnings),
            message,
            objective,
            reported or {},
        )

    def _status(self, bound: float, *, ended: bool) -> Status:
        """Return why the search ended."""
        if ended and self.within.tree is None and bound == inf:
            return Status.INFEASIBLE
        if ended:
            at_end = Status.OPTIMAL if self._search.complete else Status.LIMIT
            return at_end if self._search.proves else Status.BEST_FOUND
        if self.lost:
            return Status.LIMIT
        if self.stopped:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self._ran_out or self.over() else Status.LIMIT
