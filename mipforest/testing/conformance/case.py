"""A case of the conformance suite, and what it is tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mipforest.arrays import FloatArray, IntArray
from mipforest.model.matrix import MatrixForm
from mipforest.model.model import Model
from mipforest.solvers.base import Feature, Progress, SolveOptions, Solver, needed
from mipforest.solvers.solution import Solution, Status
from mipforest.testing.conformance.consistency import VALUE_TOLERANCE, assert_consistent, assert_value


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
            As in :class:`mipforest.solvers.base.SolveOptions`.
        """
        form = model.matrix() if isinstance(model, Model) else model
        solution = self.solver.solve(
            form,
            SolveOptions(gap=gap, **options),
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
