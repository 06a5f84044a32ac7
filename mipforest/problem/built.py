"""A formulation built for a data set: the model, and the points of it that trees stand for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.errors import MipforestError
from mipforest.files import write_model
from mipforest.model import Model
from mipforest.model.matrix import MatrixForm, Values
from mipforest.problem.model_changes import BuiltModel, ModelChanges
from mipforest.problem.operations import Instance, Operations
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.base import Solver
from mipforest.solvers.claims import no_bound
from mipforest.solvers.solution import Event, Solution, Status, closed
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree

#: Matrix entries up to which a solver is called although building has proven the start optimal: a second witness costs
#: seconds there, and minutes beyond.
MOST_WITNESSED = 250_000


class StartError(MipforestError, ValueError):
    """A start tree that does not fit the problem."""


@dataclass(frozen=True, eq=False, repr=False)
class BuiltProblem:
    """A formulation bound to a data set, and its model.

    Attributes
    ----------
    formulation
        What was built.
    instance
        What it knows of the data set.
    model
        The model, an ordinary one: add constraints or fix variables.
    prepare_seconds, build_seconds
        Wall time of binding the formulation to the data, and of building the model.
    as_built
        The model before a user changed it.
    """

    formulation: Operations
    instance: Instance
    model: Model
    prepare_seconds: float
    build_seconds: float
    as_built: BuiltModel = field(init=False, repr=False)
    _covered: tuple[MatrixForm, float] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "as_built", BuiltModel(self.model))

    def __repr__(self) -> str:
        formulation, model = self.formulation, self.model.stats()
        return (
            f"{type(self).__name__}({formulation.name} ({formulation.variant}), depth {self.topology.depth}: "
            f"{model.columns} columns, {model.rows} rows, {self.data!r})"
        )

    def covered_up_to(self) -> float:
        """Return the value up to which the model, as a user has changed it, holds every solution that it should.

        Minus infinity where the objective was replaced; of a model to maximise, solutions above that value are meant.
        """
        form = self.model.matrix()
        if self.as_built.objective_replaced():
            return -np.inf
        if self._covered is not None and self._covered[0] is form:
            return self._covered[1]
        changes = self.changes()
        return self.formulation.proven_up_to(self.instance, changes) if changes.blocks else np.inf

    def declare_covered(self, value: float) -> None:
        """Note that the model as it is now, changes included, holds every solution up to a value."""
        object.__setattr__(self, "_covered", (self.model.matrix(), value))

    def least_objective(self) -> float:
        """Return a lower bound on the objective of every solution that is known without the model.

        What building has proven, and at least what no tree of the formulation falls below: 0 of a sum of losses and
        costs. Minus infinity where a user has replaced the objective, or lets in what is no tree.
        """
        least = max(self.instance.least_objective, self.formulation.least_objective)
        if least > -np.inf and (self.as_built.objective_replaced() or self.changes().loosened):
            return -np.inf
        return least

    def with_least_objective(self, solution: Solution, gap: float) -> Solution:
        """Raise the bound to what is known without the model; the solution may then be proven optimal."""
        least = self.least_objective()
        limited = solution.status in (Status.TIME_LIMIT, Status.INTERRUPTED, Status.LIMIT)
        if solution.status is Status.UNBOUNDED and least > -np.inf:
            # Where penalties are very large, a solver's tolerances on reduced costs outweigh the rest.
            told = f"the solver says unbounded, and no tree has less than {least:g}: scale the penalties down"
            warnings = (*solution.warnings, told)
            known_by = "definition" if least == self.formulation.least_objective else "exact-search"
            return replace(
                solution, status=Status.LIMIT, bound=least, bound_by=(known_by,), warnings=warnings
            )
        if least == -np.inf or not (limited or solution.found):
            return solution
        bound = max(solution.bound, min(least, solution.objective) if solution.found else least)
        events = tuple(at_least(event, least) for event in solution.events)
        optimal = limited and least > solution.bound and closed(solution.objective, bound, gap)
        status = Status.OPTIMAL if optimal else solution.status
        known = {
            "exact-search": self.instance.least_objective,
            "definition": self.formulation.least_objective,
        }
        witnesses = tuple(name for name, value in known.items() if value == least and name != solution.solver)
        if closed(least, solution.bound, gap):
            by: tuple[str, ...] = ("solver", *witnesses)
        else:
            by = ("solver",) if solution.bound > least else witnesses or ("exact-search",)
        return replace(solution, bound=bound, status=status, events=events, bound_by=by)

    def proven_while_built(self, values: Values, gap: float) -> bool:
        """Return whether an exact search has proven a start optimal, so that a solver could but repeat it at length."""
        form, least = self.model.matrix(), self.instance.least_objective
        return (
            form.A.nnz > MOST_WITNESSED
            and -np.inf < least <= self.least_objective()
            and closed(form.objective(form.to_point(values)), least, gap)
        )

    def start_proven(self, solver: Solver, values: Values) -> Solution:
        """Return a start that an exact search has proven optimal, in the place of a solver's outcome.

        The bound is raised to what is proven by :meth:`with_least_objective`, as of any outcome.
        """
        return replace(
            self.start_alone(solver, values),
            solver="exact-search",
            solver_version=version("mipforest"),
            warnings=(),
            message=f"an exact search proved the start optimal while the model was built: {solver.name} was not called",
        )

    def start_alone(self, solver: Solver, values: Values | None) -> Solution:
        """Return the start as the outcome of a solve for which no time is left."""
        form = self.model.matrix()
        x = None if values is None else form.to_point(values)
        objective = np.nan if x is None else form.objective(x)
        return Solution(
            status=Status.INTERRUPTED if self.budget.stopped else Status.TIME_LIMIT,
            x=x,
            values=values or {},
            objective=objective,
            bound=no_bound(form),
            nodes=0,
            seconds=0.0,
            solver=solver.name,
            solver_version=solver.version(),
            start_objective=objective,
            warnings=(f"the preparation left no time for the solve: {solver.name} was not called",),
            stopped=self.budget.stopped,
        )

    def needed_tolerance(self) -> float | None:
        """Return the tolerance of a solver, on rows and integers, up to which no point takes a sample's other side.

        The rows of both sides slip by the tolerance, and by it times their entries at integers, the big-Ms: beyond
        this tolerance both together may be worth the whole gap, and a solver's optimum may be that of no tree. ``None``
        where no row has a gap.
        """
        blocks = self.model.constraints
        if "left" not in blocks or not self.formulation.gap_parameter:
            return None
        gap = float(self.formulation.parameters()[self.formulation.gap_parameter])
        integer, slips = self.model.matrix().integer.astype(float), 0.0
        for rows in (blocks[side].A for side in ("left", "right") if side in blocks):
            slips += 1.0 + float((abs(rows) @ integer[: rows.shape[1]]).max(initial=0.0))
        return gap / slips

    def known_value(self) -> float:
        """Return the objective of the tree known from building the model; infinite without one."""
        known = self.instance.known
        return np.inf if known is None else self.formulation.evaluate(known, self.instance)

    def changed(self) -> bool:
        """Return whether a user has added anything to the model, or replaced its objective."""
        return bool(self.as_built.touched_blocks()) or self.as_built.objective_replaced()

    def changes(self) -> ModelChanges:
        """Return what a user has changed in the model."""
        return self.as_built.changes(self.formulation.expressions(self.model, self.instance).neutral_rows())

    @property
    def data(self) -> Dataset:
        """Training samples."""
        return self.instance.data

    @property
    def budget(self) -> TimeBudget:
        """Time that preparation and solve share, and what each phase took."""
        return self.instance.budget

    @property
    def topology(self) -> Topology:
        """Index sets of the tree."""
        return self.instance.topology

    def write(self, path: str | Path) -> None:
        """Write the model as ``.mps`` or ``.lp``, or either with ``.gz``; see :func:`mipforest.files.write_model`."""
        write_model(self.model.matrix(), Path(path))

    def start_tree(self, start: str | Tree | None = "default", *, seed: int = 0) -> Tree | None:
        """Return the tree to start from, for scaled features.

        Parameters
        ----------
        start
            ``"default"``, the name of one of the formulation's starts or of a tree search, a tree (its own scaling,
            if it has one, is taken into account), or ``None`` / ``"none"``.
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
        if name == default and self.instance.known is not None:
            return self.instance.known
        return self.formulation.start(name, self.instance, seed=seed)

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

    def encoded(self, tree: Tree) -> dict[str, FloatArray]:
        """Return the values of the formulation's blocks for a tree (scaled features), those for constraints included.

        Blocks that a user added by hand are not among them.
        """
        formulation = self.formulation
        added = formulation.expressions(self.model, self.instance).encode(tree)
        values = formulation.encode(tree, self.instance)
        forgotten = [name for name in self.as_built.blocks if name not in values]
        if forgotten:
            raise TypeError(
                f"encode of {formulation.name} gives no values of {', '.join(forgotten)}, which its declare makes; "
                "without them a start is no point of the model, and nothing vouches for them: encode every block"
            )
        return {**values, **added}

    def worst_violation(self, values: Values) -> str:
        """Name the worst violation of the model by values of all its blocks; empty if they are feasible."""
        worst = self.model.violations(values)
        if worst.max <= FEASIBILITY_TOLERANCE:
            return ""
        name, amount = worst.worst(1)[0]
        return f"{name} by {amount:.3g}"


def at_least(event: Event, least: float) -> Event:
    """Return progress with no worse bound than what is known without the model."""
    return event if event.bound >= least else replace(event, bound=least)
