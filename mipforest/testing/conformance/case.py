"""A case of the conformance suite, what it is tried on, and what holds for every solution of every solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import SolverError
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.model.model import Model
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import Feature, Solver, needed
from mipforest.solvers.solution import Event, Progress, Solution, Status

#: Relative difference of objective values (absolute below 1) that counts as none. A point within the
#: solvers' feasibility tolerance of 1e-6 can be better than the optimum by a few times that.
VALUE_TOLERANCE = 1e-5

#: Relative difference between the objective that a solution states and that of its point: round-off only.
ROUND_OFF = 1e-9


@dataclass(frozen=True)
class Trial:
    """A solver on trial.

    Attributes
    ----------
    solver
        The solver.
    folder
        An empty folder for files.
    node_limit
        The solver's own option that limits branch and bound to one node; empty if it has none.
    """

    solver: Solver
    folder: Path
    node_limit: Mapping[str, Any] = field(default_factory=dict)

    def solve(
        self,
        model: Model | MatrixForm,
        *,
        start: FloatArray | None = None,
        priorities: IntArray | None = None,
        on_progress: Progress | None = None,
        gap: float = VALUE_TOLERANCE,
        **options: Any,
    ) -> Solution:
        """Solve a model and assert that the solution does not contradict itself.

        Parameters
        ----------
        model
            The model.
        start, priorities, on_progress
            As in :meth:`mipforest.solvers.base.Solver.solve`.
        gap, options
            As in :class:`mipforest.settings.SolveSettings`.
        """
        form = model.matrix() if isinstance(model, Model) else model
        solution = self.solver.solve(
            form,
            SolveSettings(gap=gap, **options),
            start=start,
            priorities=priorities,
            on_progress=on_progress,
        )
        assert_consistent(form, solution, gap)
        return solution


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes
    ----------
    name
        Its name, by which solvers opt out.
    check
        Raises when the solver on trial fails.
    needs
        Features that a solver must have for the case to apply.
    lacks
        Features of which it must lack at least one for the case to apply; empty for no such condition.
    limits_nodes
        Whether the case needs to know how the solver limits nodes.
    """

    name: str
    check: Callable[[Trial], None]
    needs: frozenset[Feature] = frozenset()
    lacks: frozenset[Feature] = frozenset()
    limits_nodes: bool = False

    def why_not(self, trial: Trial) -> str:
        """Say why the case does not apply to the solver; empty if it does."""
        missing = sorted(self.needs - trial.solver.features)
        if missing:
            return f"the solver takes no {' and no '.join(missing)}"
        if self.lacks and self.lacks <= trial.solver.features:
            return f"the solver takes {' and '.join(sorted(self.lacks))}"
        if self.limits_nodes and not trial.node_limit:
            return "no option that limits nodes was named"
        return ""


class Cases(list[Case]):
    """The cases of one topic; its methods decorate the functions that state them."""

    def optimum(self, value: float, **point: Any) -> Callable[[Callable[[], Model]], Callable[[], Model]]:
        """Decorate a function that gives a model with a known optimal value.

        Parameters
        ----------
        value
            The optimal value.
        point
            Values by block of the optimum, where it is unique.
        """

        def check_of(build: Callable[[], Model]) -> Callable[[Trial], None]:
            def check(trial: Trial) -> None:
                form = build().matrix()
                assert_value(form, trial.solve(form), value, point)

            return check

        return self._model(check_of)

    def ends(self, *statuses: Status) -> Callable[[Callable[[], Model]], Callable[[], Model]]:
        """Decorate a function that gives a model without an optimum, and say how a solve may end."""

        def check_of(build: Callable[[], Model]) -> Callable[[Trial], None]:
            def check(trial: Trial) -> None:
                found = trial.solve(build()).status
                if found not in statuses:
                    raise AssertionError(f"status {found} ({' or '.join(statuses)} expected)")

            return check

        return self._model(check_of)

    def _model(
        self, check_of: Callable[[Callable[[], Model]], Callable[[Trial], None]]
    ) -> Callable[[Callable[[], Model]], Callable[[], Model]]:
        def decorate(build: Callable[[], Model]) -> Callable[[], Model]:
            self.append(Case(build.__name__, check_of(build), needed(build().matrix())))
            return build

        return decorate

    def behaviour(
        self,
        *needs: Feature,
        lacks: Feature | None = None,
        limits_nodes: bool = False,
    ) -> Callable[[Callable[[Trial], None]], Callable[[Trial], None]]:
        """Decorate a function that tries a solver; see :class:`Case` for the arguments."""

        def decorate(check: Callable[[Trial], None]) -> Callable[[Trial], None]:
            absent = frozenset() if lacks is None else frozenset({lacks})
            self.append(Case(check.__name__, check, frozenset(needs), absent, limits_nodes))
            return check

        return decorate


def assert_refused(attempt: Callable[[], object], kind: type[SolverError], *, naming: str = "") -> None:
    """Assert that a call raises an error of a kind.

    Parameters
    ----------
    attempt
        The call.
    kind
        The error's class.
    naming
        What its message must contain.

    Raises
    ------
    AssertionError
        If it ends without an error, or the message lacks ``naming``.
    """
    try:
        attempt()
    except kind as error:
        if naming not in str(error):
            raise AssertionError(f"the error does not name {naming!r}: {error}") from error
        return
    raise AssertionError(f"not refused: {kind.__name__} expected")


def assert_consistent(form: MatrixForm, solution: Solution, gap: float) -> None:
    """Assert that a solution does not contradict itself.

    Parameters
    ----------
    form
        The model.
    solution
        Its solution by any solver.
    gap
        The relative gap that was asked for.

    Raises
    ------
    AssertionError
        Saying what contradicts what.
    """
    status, bound = solution.status, solution.bound
    expect(solution.seconds >= 0 and solution.nodes >= 0, "negative seconds or nodes")
    expect(not np.isnan(bound), "the bound is NaN; -inf (inf when maximising) says that there is none")
    expect(status is not Status.ERROR, f"status error: {solution.message}")
    if status is Status.UNBOUNDED:
        expect(np.isinf(bound) and (bound > 0) == form.maximize, f"an unbounded model with bound {bound}")
    if status in (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED):
        expect(solution.x is None, f"status {status} with a point")
    if solution.x is None:
        expect(status is not Status.OPTIMAL, "status optimal without a point")
        expect(np.isnan(solution.objective), f"no point, and yet an objective of {solution.objective}")
        expect(not solution.values, "no point, and yet values by block")
    else:
        _assert_point(form, solution)
        expect(
            not above(form, bound, solution.objective),
            f"the bound {bound} is on the wrong side of the objective {solution.objective}",
        )
    if status is Status.OPTIMAL:
        distance = abs(solution.objective - bound)
        allowed = gap * abs(solution.objective) + _slack(solution.objective)
        expect(distance <= allowed, f"optimal, with objective {solution.objective} and bound {bound}")
    assert_progress(form, solution.events)


def _assert_point(form: MatrixForm, solution: Solution) -> None:
    x = solution.x
    expect(x is not None and x.shape == (form.n_columns,), "the point does not have one value per column")
    assert x is not None
    found = violations(form, x)
    if found.max > FEASIBILITY_TOLERANCE and not solution.warnings:
        name, amount = found.worst(1)[0]
        raise AssertionError(f"the point violates {name} by {amount:.3g}, without a warning")
    own = form.objective(x)
    expect(
        abs(own - solution.objective) <= ROUND_OFF * max(1.0, abs(own)),
        f"the solution's objective is {solution.objective}, that of its point {own}",
    )
    blocks = form.to_values(x)
    same = solution.values.keys() == blocks.keys() and all(
        np.array_equal(solution.values[name], value) for name, value in blocks.items()
    )
    expect(same, "the values by block are not those of the point")


def assert_progress(form: MatrixForm, events: tuple[Event, ...] | list[Event]) -> None:
    """Assert that time goes forward, incumbents improve, bounds tighten, and neither passes the other.

    Raises
    ------
    AssertionError
        Saying which of these fails.
    """
    for before, after in pairwise(events):
        expect(before.seconds <= after.seconds, f"after {before.seconds} s comes {after.seconds} s")
        expect(
            not above(form, after.objective, before.objective),
            f"the incumbent worsens from {before.objective} to {after.objective}",
        )
        expect(
            not above(form, before.bound, after.bound),
            f"the bound loosens from {before.bound} to {after.bound}",
        )
    values = [event.objective for event in events if np.isfinite(event.objective)]
    if values:
        best = max(values) if form.maximize else min(values)
        for event in events:
            expect(
                not above(form, event.bound, best), f"bound {event.bound} passes a known objective of {best}"
            )
    for event in events:
        if event.x is not None:
            own = form.objective(event.x)
            expect(
                abs(own - event.objective) <= _slack(own),
                f"an event states {event.objective} for a point of value {own}",
            )


def assert_value(form: MatrixForm, solution: Solution, value: float, point: Mapping[str, Any]) -> None:
    """Assert that a solution is optimal, with a known value, and at a known point if one is given.

    Raises
    ------
    AssertionError
        With what was found and what is true.
    """
    expect(solution.status is Status.OPTIMAL, f"status {solution.status} instead of optimal")
    expect(
        abs(solution.objective - value) <= _slack(value), f"objective {solution.objective} instead of {value}"
    )
    expect(not above(form, solution.bound, value), f"bound {solution.bound} passes the optimal value {value}")
    for name, expected in point.items():
        found = solution.values[name]
        # A quadratic objective is flat at its optimum: an error of t in its value moves the point by sqrt(t).
        near = np.allclose(found, expected, rtol=0, atol=np.sqrt(VALUE_TOLERANCE))
        expect(near, f"{name} = {found} instead of {expected}")
    for event in solution.events:
        expect(not above(form, event.bound, value), f"an event's bound {event.bound} passes {value}")


def above(form: MatrixForm, first: float, second: float) -> bool:
    """Return whether ``first`` is above ``second`` (below, when maximising) by more than the tolerance.

    Parameters
    ----------
    form
        The model, for its sense.
    first, second
        Bounds or objective values; NaN and equal infinities are never above anything.
    """
    if first == second or np.isnan(first) or np.isnan(second):
        return False
    difference = second - first if form.maximize else first - second
    return bool(difference > _slack(second if np.isfinite(second) else 0.0))


def expect(condition: bool, otherwise: str) -> None:
    """Raise ``AssertionError`` unless a condition holds."""
    if not condition:
        raise AssertionError(otherwise)


def _slack(value: float) -> float:
    return VALUE_TOLERANCE * max(1.0, abs(value))
