"""A formulation built for a data set: the model, and the points of it that trees stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.errors import MipforestError, NoTreeFound, Unsupported
from mipforest.files import write_model
from mipforest.model import Model
from mipforest.model.matrix import MatrixForm, Values
from mipforest.problem.constraints import Condition, Constraint
from mipforest.problem.constraints.by_hand import read_by_hand
from mipforest.problem.constraints.rows import encode_switches
from mipforest.problem.model_changes import BuiltModel, ModelChanges, free_name
from mipforest.problem.operations import Instance, Operations
from mipforest.problem.restrictions import Restrictions
from mipforest.problem.structure import Structure, UnivariateProblem
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.bound_check import objective_unit
from mipforest.time_budget import TimeBudget
from mipforest.trees import Predictor, Topology, Tree

Computed = TypeVar("Computed")


class StartError(MipforestError, ValueError):
    """A start tree that does not fit the problem."""


class DeferredModel(Model):
    """The model of a large problem, declared when it is first read: tree searches read none.

    Parameters
    ----------
    name
        Name of the model.
    declare
        Declares it, and returns the instance that it is of.
    """

    def __init__(self, name: str, declare: Callable[[Model], Instance]) -> None:
        # What models have besides is there once it is declared.
        self.name, self._declare = name, declare
        self._then: list[Callable[[Instance], None]] = []

    @property
    def waits(self) -> bool:
        """Whether nothing has read it so far."""
        return "_blocks" not in vars(self)

    def then(self, act: Callable[[Instance], None]) -> None:
        """Have something done once it is declared, in the order of these calls."""
        self._then.append(act)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not self.waits:
            raise AttributeError(f"a model has no attribute {name!r}")
        known = dict(vars(self))
        try:
            super().__init__(self.name)
            instance = self._declare(self)
            for act in self._then:
                act(instance)
        except BaseException:  # it waits still, for one who reads it again
            vars(self).clear()
            vars(self).update(known)
            raise
        return getattr(self, name)


@dataclass(frozen=True, eq=False, repr=False)
class ProblemData:
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
    unfinished
        Whether the model was not declared to its end, for want of time or as nobody asked for it: it is empty then, and
        trees alone are known.
    entries_given_up
        Matrix entries at which declaring was given up, as too many for the time left or for memory; 0 otherwise.
    constraints
        The constraints that :meth:`constrain` has added.
    forbidden
        Numbers, by name, of features that are 0 in all samples here, as no node may use them.
    """

    formulation: Operations
    instance: Instance
    model: Model
    prepare_seconds: float
    build_seconds: float
    unfinished: bool = False
    entries_given_up: int = 0
    constraints: tuple[Constraint, ...] = ()
    forbidden: Mapping[str, int] = field(default_factory=dict)
    _as_built: BuiltModel = field(init=False, repr=False)
    _stated: BuiltModel = field(init=False, repr=False)
    _valid: tuple[MatrixForm, float] | None = field(init=False, repr=False, default=None)
    _within: tuple[MatrixForm | None, float] = field(init=False, repr=False, default=(None, -np.inf))
    _computed: dict[str, tuple[tuple[Constraint, ...], Any]] = field(
        init=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        if isinstance(self.model, DeferredModel) and self.model.waits:
            self.model.then(self._begin_with)
        else:
            self._begin_with(self.instance)

    def _begin_with(self, instance: Instance) -> None:
        """Note the model as it was declared, of an instance, to see what a user changes."""
        if instance is not self.instance:
            object.__setattr__(self, "instance", replace(instance, notes=self.instance.notes))
        object.__setattr__(self, "_as_built", BuiltModel(self.model))
        object.__setattr__(self, "_stated", self._as_built)

    @property
    def as_built(self) -> BuiltModel:
        """The model before a user changed it."""
        self.model.variables  # noqa: B018  a model that waits is declared
        return self._as_built

    @property
    def stated(self) -> BuiltModel:
        """The model with the rows of :attr:`constraints`, before a user changed it otherwise."""
        self.model.variables  # noqa: B018
        return self._stated

    @property
    def waits(self) -> bool:
        """Whether the model was not read so far, and is still to be declared."""
        return isinstance(self.model, DeferredModel) and self.model.waits

    def for_searches(self) -> Self:
        """Return the problem without a model, with its constraints: what a tree search keeps of it needs no row."""
        return replace(self, model=Model(self.model.name), unfinished=True)

    def __repr__(self) -> str:
        if self.waits:
            return f"{type(self).__name__}({self.name_in_words}: declared when it is read, {self.data!r})"
        size = ", ".join(f"{count} {name}" for name, count in self.size().items())
        return f"{type(self).__name__}({self.name_in_words}: {size}, {self.data!r})"

    @property
    def name_in_words(self) -> str:
        """Name and variant of the formulation, and the depth of the trees; score cards have none."""
        formulation = self.formulation
        depth = f", depth {self.topology.depth}" if formulation.gives.is_tree else ""
        return f"{formulation.name} ({formulation.variant}){depth}"

    @property
    def has_rows(self) -> bool:
        """Whether there is a model: not of a smooth formulation, nor where time ran out while it was declared."""
        return self.formulation.has_rows and not self.unfinished

    @cached_property
    def structure(self) -> Structure | None:
        """What searches may know of the solutions besides the rows; ``None`` where no search could use it."""
        return self.formulation.structure(self.instance)

    def size(self) -> dict[str, int]:
        """Count columns and rows of the model, or variables and constraints of a smooth one."""
        form = self.model.matrix()
        rows = {"columns": form.n_columns, "rows": form.n_rows}
        return rows if self.formulation.has_rows else self.formulation.size(self.instance)

    def valid_below(self) -> float:
        """Return the cutoff up to which the model, as a user has changed it, holds every solution that it should.

        Minus infinity where the objective was turned; of a model to maximise, solutions above that value are meant.
        """
        form = self.model.matrix()
        if self.as_built.added_terms().turned:
            return -np.inf
        if self._valid is not None and self._valid[0] is form:
            return self._valid[1]
        changes = self.changes()
        below = self.formulation.valid_below(self.instance, changes) if changes.anything else np.inf
        return below + self.least_added() if np.isfinite(below) else below

    def least_added(self) -> float:
        """Return a lower bound on what a user has added to the objective, of every tree: 0 where nothing was added.

        Bounds of the formulation's continuous variables count only where they are the user's, or do not rest on its
        limits: of a variable without an upper bound, 0.
        """
        terms, form = self.as_built.added_terms(), self.model.matrix()
        if not terms.any:
            return 0.0
        lower, upper, changes = form.col_lower.copy(), form.col_upper.copy(), self.changes()
        for name in set(self.as_built.blocks) - self.formulation.blocks_of_every_tree:
            block = self.model[name]
            limited = block.columns[~block.integer & ((block.lower != 0) | np.isfinite(block.upper))]
            lower[limited], upper[limited] = changes.lower[limited], changes.upper[limited]
        return terms.least(lower, upper)

    def value_below(self, value: float) -> float:
        """Return the most that a tree is worth by the definition, of those up to some objective value.

        That is less by what terms that a user has added to the objective are at least.
        """
        least = self.least_added()
        return value - least if np.isfinite(least) else np.inf

    def declare_valid_below(self, value: float) -> None:
        """Note that the model as it is now, changes included, holds every solution up to a value."""
        object.__setattr__(self, "_valid", (self.model.matrix(), value))

    def least_objective(self) -> float:
        """Return a lower bound on the objective of every solution that is known without the model.

        What building has proven, and at least what no tree of the formulation falls below: 0 of a sum of losses and
        costs; with what the terms are at least that a user has added. Minus infinity where the user lets in what is no
        tree.
        """
        now = self.least_within()
        least = max(self.instance.least_objective, self.formulation.least_objective)
        if least > -np.inf and self.changes().loosened:
            return now
        return max(now, least + self.least_added()) if least > -np.inf else now

    def least_within(self) -> float:
        """Return what :meth:`at_least` was told of the model as it is now; minus infinity of any other."""
        form, within = self._within
        return within if form is self.model.matrix() else -np.inf

    def at_least(self, value: float, within: float = -np.inf) -> Self:
        """Return the problem with proven lower bounds on the objective of its trees.

        Parameters
        ----------
        value
            Of every tree of the model as it was built. It bounds every tree that satisfies added constraints, too: they
            only leave trees out.
        within
            Of every tree of the model as it is now.
        """
        least = max(value, self.instance.least_objective)
        if least <= self.instance.least_objective and not np.isfinite(within):
            return self
        twin = copy(self)
        object.__setattr__(twin, "instance", replace(self.instance, least_objective=least))
        object.__setattr__(twin, "_within", (twin.model.matrix(), within))
        return twin

    @property
    def objective_unit(self) -> float:
        """What absolute tolerances on the objective are relative to; 1 unless all costs are small."""
        return objective_unit(self.model.matrix())

    def value_of(self, tree: Predictor, x: FloatArray) -> float:
        """Return the objective of a tree (scaled features) and its point.

        By the definition, where that of the rows is the same up to the rounding of its terms: large ones may cancel.
        """
        form = self.model.matrix()
        own = form.objective(x)
        if self.as_built.added_terms().turned:
            return own
        value = self.evaluated(tree, x)
        return value if abs(value - own) <= form.objective_rounding(x) else own

    def evaluated(self, tree: Predictor, x: FloatArray) -> float:
        """Return the objective of a tree (scaled features): by the definition, with added terms at its point."""
        value = self.formulation.evaluate(tree, self.instance)
        return value + self.as_built.added_terms().value(x) if self.has_rows else value

    def point_of(self, tree: Predictor) -> tuple[FloatArray, Values, float]:
        """Return the point of a tree (scaled features), flat and by block, and its objective.

        Without rows the point is empty, and the objective that by the definition.
        """
        if not self.has_rows:
            return np.zeros(0), {}, self.formulation.evaluate(tree, self.instance)
        form = self.model.matrix()
        x = form.to_point(self.encoded(tree))
        return x, form.to_values(x), self.value_of(tree, x)

    def without_rows(self) -> Self:
        """Return the problem without a model and without constraints: for searches, which read no rows."""
        return replace(self.for_searches(), constraints=())

    def violation(self, x: FloatArray, tree: Predictor) -> float:
        """Return the largest violation of the definition by a tree, and of the rows by its point.

        A constraint that it does not satisfy counts as a violation by 1.
        """
        broken = [*self.formulation.violations(tree, self.instance).values()]
        if self._broken_constraint(tree) is not None:
            broken.append(1.0)
        if self.has_rows:
            return max([*broken, self.model.violations(x).max])
        # What a formulation has stated in rows alone is not known without them.
        return max(broken, default=np.nan if self.formulation.has_rows else 0.0)

    def _broken_constraint(self, tree: Predictor) -> Constraint | None:
        """Return the first constraint that a tree (for scaled features) does not satisfy."""
        encoding = self.data.encoding
        own = tree.with_scaling(encoding.offset, encoding.scale)
        return next((one for one in self.constraints if not one.admits(own, self.data)), None)

    def outside(self, tree: Predictor) -> str:
        """Say why a tree (for scaled features) is none of the model; empty where it is one.

        The definition decides, with one tolerance for searches, starts and rows. Where rows were added, these do too:
        constants of rows that were not are no part of the definition.
        """
        value = self.formulation.evaluate(tree, self.instance)
        for name, amount in self.formulation.violations(tree, self.instance).items():
            if not amount <= FEASIBILITY_TOLERANCE:
                return f"it breaks {name} by {amount:.3g}"
        if not np.isfinite(value):
            return f"its objective by the definition is {value:g}"
        if (constraint := self._broken_constraint(tree)) is not None:
            return f"it breaks {constraint}"
        if self.has_rows and self.changed():
            values = self.encoded(tree)
            # A tree tells no values of variables that a user has added by hand: who takes them completes the point.
            told = values.keys() >= self.model.variables.keys()
            if told and (row := self.worst_violation(values)):
                return f"it breaks {row}"
        return ""

    def known_value(self) -> float:
        """Return the objective of the tree known from building the model; infinite without one."""
        known = self.instance.known
        return np.inf if known is None else self.formulation.evaluate(known, self.instance)

    def changed(self) -> bool:
        """Return whether a user has added anything to the model, or replaced its objective."""
        if self.constraints or self.waits:
            return bool(self.constraints)
        return self.as_built.changes().anything or self.as_built.objective_replaced()

    @property
    def is_stated(self) -> bool:
        """Whether :attr:`constraints` say all that was changed in the model: no row by hand, no other objective."""
        return self.waits or not (self.stated.changes().anything or self.as_built.objective_replaced())

    @property
    def restrictions(self) -> Restrictions:
        """What :attr:`constraints` leave of univariate trees."""
        return self.once("restrictions", self._restricted)

    def _restricted(self) -> Restrictions:
        charged = self.structure
        assert isinstance(charged, UnivariateProblem)
        found = Restrictions.none(self.topology.n_branches, self.data.p, charged.N_min)
        for constraint in self.constraints:
            found = constraint.restrict(found, self, charged.thresholds)
        return found

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

    def once(self, name: str, compute: Callable[[], Computed]) -> Computed:
        """Return what is computed once for the constraints as they are now, by name."""
        known = self._computed.get(name)
        if known is None or known[0] is not self.constraints:
            known = self._computed[name] = self.constraints, compute()
        found: Computed = known[1]
        return found

    def constrain(self, *constraints: Constraint) -> None:
        """Add constraints to the model: their rows, and what :attr:`Result.constraints` says of them.

        Parameters
        ----------
        constraints
            Objects of :mod:`mipforest.problem.constraints`.

        Raises
        ------
        DataError
            If one names what there is not, or cannot hold alone.
        NotExpressed
            If the model cannot express one.
        NoTreeFound
            If the time ran out before there was a model to add them to.
        """
        if not constraints:
            return
        if self.unfinished and not isinstance(self.structure, UnivariateProblem):
            raise NoTreeFound(
                f"the constraints {'; '.join(map(str, constraints))} are rows of the model, and its declaration ended "
                f"before it was complete ({self.data.n} samples, depth {self.topology.depth})",
                hint="give a longer time limit, or fewer samples",
            )
        self.read_by_hand()
        for constraint in constraints:
            charged, model = self.structure, self.model
            if self.unfinished or (self.waits and isinstance(charged, UnivariateProblem)):
                assert isinstance(charged, UnivariateProblem)
                none = Restrictions.none(self.topology.n_branches, self.data.p)
                constraint.restrict(none, self, charged.thresholds)  # names what there is, or an error
                if isinstance(model, DeferredModel):
                    model.then(partial(self._state, constraint))
            else:
                self._state(constraint)
            object.__setattr__(self, "constraints", (*self.constraints, constraint))

    def _state(self, constraint: Constraint, instance: Instance | None = None) -> None:  # noqa: ARG002
        """Add the rows of a constraint to the model."""
        stated = not self.stated.changes().anything if self.constraints else not self.changed()
        constraint.rows(self)
        if stated:
            object.__setattr__(self, "_stated", BuiltModel(self.model))

    def read_by_hand(self) -> None:
        """Have rows that were written by hand on known blocks among :attr:`constraints`, where all of them can be read.

        See :mod:`mipforest.problem.constraints.by_hand`.
        """
        if (
            self.unfinished
            or self.waits
            or not self.has_rows
            or not self.changed()
            or (self.constraints and self.is_stated)
        ):
            return
        if found := read_by_hand(self, self.stated):
            object.__setattr__(self, "constraints", (*self.constraints, *found))
            object.__setattr__(self, "_stated", BuiltModel(self.model))

    def require(self, function: Callable[[Any], bool], words: str) -> None:
        """Add any condition on the tree, as a function of Python.

        ``exact-search`` keeps it, by listing trees up to depth 4 in the order of their objectives; the objective of the
        first one that satisfies it is the optimum. No matrix solver does.

        Parameters
        ----------
        function
            Takes the tree for samples in original units, and returns whether it will do; see
            :class:`~mipforest.problem.constraints.Condition`.
        words
            What it says, for messages and reports.
        """
        self.constrain(Condition(words, function))

    def write(self, path: str | Path) -> None:
        """Write ``.mps``, ``.lp`` or ``.mof.json``, or one with ``.gz``; see :func:`mipforest.files.write_model`.

        Raises
        ------
        Unsupported
            If the formulation is smooth: no such file holds its model.
        """
        self.require_rows("a file of rows")
        write_model(self.model.matrix(), Path(path))

    def require_rows(self, what: str) -> None:
        """Refuse what takes a matrix of rows where the formulation is smooth and has none.

        Raises
        ------
        Unsupported
            Saying what it was.
        """
        if not self.formulation.has_rows:
            raise Unsupported(
                f"{self.formulation.name} is a smooth model without rows, and {what} has no other: leave the solver to "
                "auto, or choose one of those that 'mipforest solvers' lists for it"
            )
        for constraint in self.constraints:
            if not constraint.has_rows:
                raise Unsupported(
                    f"{constraint} is a function of the tree, and {what} holds rows only: exact-search keeps it, for "
                    "univariate trees up to depth 4"
                )

    def start_without_search(
        self, start: str | Predictor | None = "default", *, seed: int = 0
    ) -> Predictor | None:
        """Return the tree to start from, for scaled features, where no tree search is to find it.

        Parameters
        ----------
        start
            ``"default"``, the name of one of the formulation's starts, a tree (its own scaling,
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
        if isinstance(start, Predictor):
            return self._fitting(start)
        default = self.formulation.starts[0]
        name = default if start == "default" else start
        if name == default and self.instance.known is not None:
            known: Predictor = self.instance.known
            return known
        found: Predictor = self.formulation.start(name, self.instance, seed=seed)
        return found

    def _fitting(self, tree: Predictor) -> Predictor:
        """Turn a tree from elsewhere into one for this problem's scaled features."""
        if not isinstance(tree, self.formulation.gives):
            raise StartError(
                f"the start is a {tree.noun}, and {self.formulation.name} finds a "
                f"{self.formulation.gives.noun}: give one"
            )
        if not isinstance(tree, Tree):
            try:
                polished: Predictor = self.formulation.polish(tree, self.instance)
            except ValueError as error:
                raise StartError(
                    f"the start is no {tree.noun} of this problem: {error}; give another one"
                ) from None
            return polished
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

    def encoded(self, tree: Predictor) -> dict[str, FloatArray]:
        """Return the values of the formulation's blocks for a tree (scaled features), those for constraints included.

        Blocks that a user added by hand are not among them.
        """
        formulation = self.formulation
        added = formulation.expressions(self.model, self.instance).encode(tree)
        values = formulation.encode(tree, self.instance)
        added = {**added, **encode_switches(self.model, tree, {**values, **added})}
        forgotten = [name for name in self.as_built.blocks if name not in values]
        if forgotten:
            raise TypeError(
                f"encode of {formulation.name} gives no values of {', '.join(forgotten)}, which its declare makes; "
                "without them a start is no point of the model, and nothing vouches for them: encode every block"
            )
        return {**values, **added}

    def free_name(self, name: str) -> str:
        """Return a name that no constraint or variable block has yet: ``name``, ``name_2``, ..."""
        return free_name(self.model, name)

    def worst_violation(self, values: Values) -> str:
        """Name the worst violation of the model by values of all its blocks; empty if they are feasible."""
        worst = self.model.violations(values)
        if worst.max <= FEASIBILITY_TOLERANCE:
            return ""
        name, amount = worst.worst(1)[0]
        return f"{name} by {amount:.3g}"
