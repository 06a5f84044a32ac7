"""Searches from many starts for local optima of smooth models: they prove nothing, and tell how their starts differ."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import SmoothProblem, Structure
from mipforest.problem.tree_search import SearchEvents, SearchResult, TreeSearch
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.solution import Progress, Status
from mipforest.trees import Tree

if TYPE_CHECKING:
    from mipforest.smooth.model import Point, SmoothModel

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
        events, rng = SearchEvents(on_progress), np.random.default_rng(settings.seed)
        deadline = events.deadline(settings.time_limit)
        model = whole
        if problem.data.n > SCREENED:
            model = whole.take(np.sort(rng.choice(problem.data.n, SCREENED, replace=False)))
        best: tuple[bool, float, Point] | None = None
        values: list[float] = []
        interrupted, longest = False, 0.0
        with problem.budget.loading():
            import mipforest.smooth.descent  # noqa: F401 - loads scipy's optimisers
        last = monotonic()

        def stop() -> bool:
            nonlocal interrupted, longest, last
            now = monotonic()
            longest, last = max(longest, now - last), now
            known = best[1] if best is not None else np.nan
            interrupted = interrupted or events.tell(known, -np.inf, len(values))
            # What has begun is ended, with leaves and value of its own.
            reserved = (
                0.0 if settings.time_limit is None else min(RESERVED * longest, settings.time_limit / 2)
            )
            return interrupted or now + reserved >= deadline

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
        status = Status.INTERRUPTED if interrupted else Status.TIME_LIMIT
        return SearchResult(
            formulation.tree_of(point, instance),
            -np.inf,
            Status.BEST_FOUND if len(values) == formulation.n_starts else status,
            len(values),
            events.end(value := whole.objective(point), -np.inf, len(values)),
            message=f"the best of {len(values)} local optima; none is proven to be the best of all",
            objective=value,
            reported=_spread(values),
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
        from mipforest.smooth.descent import descend  # loads scipy's optimisers

        return descend(model, point, stop)
