"""A formulation built for a data set: the model, and how to solve it and check the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.files import write_model
from mipforest.model import Model
from mipforest.model.matrix import Values
from mipforest.problem.model_changes import BuiltModel
from mipforest.problem.result import Result
from mipforest.problem.start_repair import start_values
from mipforest.solvers.base import Progress, Solver
from mipforest.solvers.solution import Solution, Status
from mipforest.solving import solve
from mipforest.trees import Topology, Tree

if TYPE_CHECKING:
    from mipforest.problem.formulation import Formulation

#: Default time limit in seconds: a first run ends soon and says how far it got.
TIME_LIMIT = 60.0

#: A point counts as feasible, and two objective values as equal, up to this (the latter relative):
#: the default feasibility tolerance of the solvers.
TOLERANCE = 1e-6


class StartError(ValueError):
    """A start tree that does not fit the problem."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """What a formulation computed from the data before it declared its model.

    Attributes
    ----------
    known
        A feasible tree (for scaled features) found on the way, or ``None``.
    notes
        What the user should know before all else, in sentences: warnings of every result.
    """

    known: Tree | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Problem:
    """A formulation built for a data set.

    ``problem.model`` is an ordinary model: add constraints or fix variables, then :meth:`solve`.

    Attributes
    ----------
    formulation, data, topology
        What was built, for which training samples and which tree.
    model
        The model.
    prepared
        What the variant computed from the data first.
    prepare_seconds, build_seconds
        Wall time of that, and of building the model.
    """

    formulation: Formulation
    data: Dataset
    topology: Topology
    model: Model
    prepared: Preparation
    prepare_seconds: float
    build_seconds: float
    _built: BuiltModel = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_built", BuiltModel(self.model))

    def write(self, path: str | Path) -> None:
        """Write the model as ``.mps`` or ``.lp``, or either with ``.gz``; see :func:`mipforest.files.write_model`."""
        write_model(self.model.matrix(), Path(path))

    # ------------------------------------------------------------------ start

    def start_tree(self, start: str | Tree | None = "default", *, seed: int = 0) -> Tree | None:
        """Give the tree to start from, for scaled features.

        Parameters
        ----------
        start
            ``"default"``, the name of one of the formulation's starts, a tree (its own scaling, if it has
            one, is taken into account), or ``None`` / ``"none"``.
        seed
            Seed of starts that draw.

        Raises
        ------
        ParameterError
            If the formulation has no start of that name.
        StartError
            If the tree has another depth or number of features.
        """
        if start is None or start == "none":
            return None
        if isinstance(start, Tree):
            return self._fitting(start)
        default = self.formulation.starts[0]
        name = default if start == "default" else start
        if name == default and self.prepared.known is not None:
            return self.prepared.known
        return self.formulation.start(name, self.data, self.topology, seed=seed)

    def _fitting(self, tree: Tree) -> Tree:
        """Turn a tree from elsewhere into one for this problem's scaled features."""
        if tree.depth != self.topology.depth or tree.n_features != self.data.p:
            raise StartError(
                f"the start tree has depth {tree.depth} and {tree.n_features} features; the problem has "
                f"depth {self.topology.depth} and {self.data.p}: give a tree of the same depth and data"
            )
        # A start is splits and leaves: another model may label the leaves of a logistic tree anew.
        tree = replace(tree, logistic=False)
        if tree.offset is None or tree.scale is None:
            return tree
        offset, scale = self.data.encoding.offset, self.data.encoding.scale
        return tree.rescaled(offset, scale).unscaled()

    def start_values(self, tree: Tree) -> tuple[Values | None, list[str]]:
        """Encode a start tree as feasible values; see :func:`mipforest.problem.start_repair.start_values`."""
        return start_values(self, tree)

    def encoded(self, tree: Tree) -> dict[str, FloatArray]:
        """Values of the formulation's blocks for a tree (for scaled features), those for constraints included.

        Blocks that a user added by hand are not among them.
        """
        formulation = self.formulation
        added = formulation.expressions(self.model, self.data, self.topology).encode(tree)
        return {**formulation.encode(tree, self.data), **added}

    def complaint(self, values: Values) -> str:
        """Name the worst violation of the model by values of all its blocks; empty if they are feasible."""
        worst = self.model.violations(values)
        if worst.max <= TOLERANCE:
            return ""
        name, amount = worst.worst(1)[0]
        return f"{name} by {amount:.3g}"

    # ------------------------------------------------------------------ solve and check

    def solve(
        self,
        solver: str | Solver = "highs",
        *,
        start: str | Tree | None = "default",
        time_limit: float | None = TIME_LIMIT,
        gap: float = 1e-4,
        threads: int | None = None,
        seed: int = 0,
        log: Path | None = None,
        on_progress: Progress | None = None,
        solver_options: Mapping[str, Any] | None = None,
        bridges: str | Iterable[str] = (),
    ) -> Result:
        """Solve the model, decode the tree and check it against the definition.

        Parameters
        ----------
        solver, time_limit, gap, threads, seed, log, on_progress, solver_options, bridges
            As for :func:`mipforest.solving.solve`; the time limit is 60 seconds unless given, and the
            formulation's own suggestions for the solver apply where an option is not given.
        start
            As for :meth:`start_tree`.

        Raises
        ------
        SolverError
            If the solver is unknown, not installed, or cannot take the model.
        ParameterError, StartError
            If the start is unknown or does not fit.
        """
        tree = self.start_tree(start, seed=seed)
        values, warnings = (None, []) if tree is None else self.start_values(tree)
        suggested = self.formulation.solver_options.get(
            solver if isinstance(solver, str) else solver.name, {}
        )
        solution = solve(
            self.model,
            solver,
            time_limit=time_limit,
            gap=gap,
            threads=threads,
            seed=seed,
            log=log,
            start=values or {},
            on_progress=on_progress,
            solver_options={**suggested, **(solver_options or {})},
            bridges=bridges,
        )
        solution, doubts = self._with_covered_bound(self._tidied(solution), gap)
        told = (*self.prepared.notes, *warnings, *solution.warnings, *doubts)
        return self._checked(replace(solution, warnings=told))

    def checked(self, solution: Solution) -> Result:
        """Decode and check a solution from elsewhere, as :meth:`solve` does with its solver's."""
        infeasible = solution.x is not None and self.model.violations(solution.x).max > TOLERANCE
        return self._checked(solution if infeasible else self._tidied(solution))

    def _tidied(self, solution: Solution) -> Solution:
        """Replace a solution by that of the tree it stands for, where this is feasible and no worse.

        A solver that stops early may leave slack that the tree does not need: a feature switched on and not
        used, a leaf value off its optimum.
        """
        if solution.x is None:
            return solution
        fitted = self.formulation.decode(solution.values, self.data)
        # Labels that suit the objective may break a constraint that a user added.
        for candidate in (self.formulation.relabelled(fitted, self.data), fitted):
            tidied = self._with_values_of(candidate, solution)
            if tidied is not None:
                return tidied
        return solution

    def _with_values_of(self, fitted: Tree, solution: Solution) -> Solution | None:
        """Put the values of a tree into a solution; ``None`` where they are infeasible or worse."""
        form = self.model.matrix()
        values = {**solution.values, **self.encoded(fitted)}
        x = form.to_point(values)
        objective = form.objective(x)
        worse = objective < solution.objective if form.maximize else objective > solution.objective
        if worse or self.model.violations(x).max > TOLERANCE:
            return None
        bound = max(solution.bound, objective) if form.maximize else min(solution.bound, objective)
        return replace(solution, x=x, values=form.to_values(x), objective=objective, bound=bound)

    def _with_covered_bound(self, solution: Solution, gap: float) -> tuple[Solution, list[str]]:
        """Limit bound and status to what the built model covers, once a user has changed it."""
        blocks, replaced = self._built.touched_blocks(), self._built.objective_replaced()
        if not blocks and not replaced:
            return solution, []
        covered = self.formulation.covered_bound(self.prepared, blocks)
        if np.isinf(covered) and covered > 0:
            return solution, []
        maximize = self.model.matrix().maximize
        if replaced:
            covered = np.inf if maximize else -np.inf
        if (solution.bound >= covered) if maximize else (solution.bound <= covered):
            return solution, []
        known = f"covers solutions up to the value {covered:.6g} only" if np.isfinite(covered) else "is built"
        doubt = (
            f"variant {self.formulation.variant} {known} for the unchanged model, and the model was changed: "
            f"no better bound than {covered:.6g} is proven; build variant 'paper' to search further"
        )
        limited = replace(solution, bound=covered)
        unproven = solution.status is Status.INFEASIBLE or (
            solution.status is Status.OPTIMAL and limited.gap > gap
        )
        return replace(limited, status=Status.LIMIT if unproven else solution.status), [doubt]

    def _checked(self, solution: Solution) -> Result:
        """Decode the tree, route the training samples through it in plain numpy, and compare objectives."""
        if solution.x is None:
            return Result(
                problem=self,
                solution=solution,
                tree=None,
                solved_tree=None,
                evaluated_objective=np.nan,
                max_violation=np.nan,
                doubts=(),
            )
        fitted = self.formulation.decode(solution.values, self.data)
        evaluated = self.formulation.evaluate(fitted, self.data)
        violation = self.model.violations(solution.x).max
        doubts = []
        if violation > TOLERANCE:
            doubts.append(f"the solution violates the model by {violation:.3g}, more than {TOLERANCE:g}")
        different = (
            f"the tree's objective by the definition is {evaluated:.9g}, "
            f"the solver's is {solution.objective:.9g}"
        )
        if self._built.objective_replaced():
            doubts.append(f"the model's objective was replaced: {different}")
        elif not abs(evaluated - solution.objective) <= TOLERANCE * max(1.0, abs(solution.objective)):
            doubts.append(different)
        offset, scale = self.data.encoding.offset, self.data.encoding.scale
        refined, warnings = self._refined(fitted)
        return Result(
            problem=self,
            solution=replace(solution, warnings=(*solution.warnings, *warnings)),
            tree=refined.with_scaling(offset, scale),
            solved_tree=fitted.with_scaling(offset, scale),
            evaluated_objective=evaluated,
            max_violation=violation,
            doubts=tuple(doubts),
        )

    def _refined(self, fitted: Tree) -> tuple[Tree, list[str]]:
        """Refine the solved tree, unless that breaks a constraint of the user's, or one cannot tell."""
        refined = self.formulation.refine(fitted, self.data)
        if refined is fitted or not self._built.touched_blocks():
            return refined, []
        values = self.encoded(refined)
        if values.keys() >= self.model.variables.keys() and not self.complaint(values):
            return refined, []
        return fitted, ["the tree is not refined: that might break the constraints that were added"]
