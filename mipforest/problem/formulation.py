"""What a formulation is: a paper's model with its hyperparameters."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np

from mipforest.data import DataError, Dataset
from mipforest.data.target import SEVERAL
from mipforest.errors import MipforestError, Unsupported
from mipforest.model import Model
from mipforest.problem.operations import Instance, Operations
from mipforest.problem.parameters import ParameterError, parameters_of
from mipforest.problem.part import Part
from mipforest.problem.problem import HAND_OVER, Problem
from mipforest.problem.problem_data import DeferredModel
from mipforest.problem.tree_search import Auto, TreeSearch
from mipforest.settings import one_blas_thread
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree

#: Seconds that a model may take to declare although the time has run out: one that is there at once is kept.
DECLARED_AT_ONCE = 0.5

#: Bytes that a matrix entry takes while a model is declared, copies included, and most entries on any machine.
BYTES_PER_ENTRY, MAX_ENTRIES = 100, 200_000_000

#: Samples times leaves above which no model is declared for a tree search, which reads no rows: its tree is checked by
#: the definition alone.
MAX_ASSIGNED = 50_000

#: Values of features times branch nodes above which none is declared either: as many thresholds may be columns.
MAX_SPLITS = 2_000_000

#: Seconds for the model with one level less, where its solution is a start.
PREVIOUS_DEPTH_TIME_LIMIT = 20.0

#: Share of the time left that such a start may take: the solve itself has the rest.
START_SHARE = 0.5


class _NotBuilt(MipforestError):
    """The time ran out while a model was declared, or the model is too large for what is left of it, or for memory."""

    def __init__(self, entries: int = 0) -> None:
        super().__init__("a model was not declared to its end")
        self.entries = entries


@dataclass(frozen=True, kw_only=True)
class Formulation(Operations):
    """A mixed-integer model of an optimal decision tree.

    A subclass is a frozen dataclass whose fields are made with
    :func:`~mipforest.problem.parameters.parameter`. It states the paper's model in
    :meth:`~mipforest.problem.operations.ModelOperations.declare` and ties it to trees by ``encode``, ``decode`` and
    ``evaluate`` (:class:`~mipforest.problem.operations.Codec`). What these need of a data set is computed once, by
    ``bind``. All other operations have defaults.

    Parameters
    ----------
    variant
        Which of ``variants`` to build; the first when left out.

    Raises
    ------
    ParameterError
        If a hyperparameter is out of range, or the variant is unknown.
    """

    variant: str = ""

    def __post_init__(self) -> None:
        for name, spec in parameters_of(type(self)).items():
            object.__setattr__(self, name, spec.check(getattr(self, name)))
        if not self.variant:
            object.__setattr__(self, "variant", self.variants[0])
        if self.variant not in self.variants:
            raise ParameterError(
                f"{self.name} has no variant {self.variant!r}; choose from: {', '.join(self.variants)}"
            )

    def parameters(self) -> dict[str, Any]:
        """Return the hyperparameters by name, ready for JSON."""
        return {
            name: known.kind.to_json(getattr(self, name)) for name, known in parameters_of(type(self)).items()
        }

    def build(
        self,
        data: Dataset,
        depth: int | None = None,
        *,
        budget: TimeBudget | None = None,
        solver: TreeSearch | Auto | None = None,
        whole: bool = True,
        declare: bool = True,
    ) -> Problem:
        """Build the model for a data set.

        Parameters
        ----------
        data
            Training samples.
        depth
            Number of levels of branch nodes; left out where the model finds score cards, which have none.
        budget
            Time for building and for the first solve together. Where it runs out, the start is a simple tree and
            proven limits are wide; ``None`` for no limit.
        solver
            Who will solve the unchanged model from its default start, where that is known
            (:func:`~mipforest.problem.tree_search.searching`): for a tree search that takes it, the start is a simple
            tree, and limits proven from it are wide. Where a ``whole`` model is not wanted, and samples times leaves
            are more than :data:`MAX_ASSIGNED`, or features and branch nodes many, nothing is declared for it.
        whole
            Whether a model is wanted however long it takes; that of many samples or features is declared when it is
            first read, which a tree search never does. Where it is not, declaring it ends with the budget, and
            the problem is ``unfinished``: its model is empty, and a solve returns the start and what is known of it.
        declare
            Whether to declare the model at all. Without it the problem is ``unfinished`` from the first: a tree search
            solves it, whose tree is checked by the definition alone. Models of deep trees are far larger than the data.

        Returns
        -------
        Problem
            With ``problem.model``, an ordinary :class:`~mipforest.model.model.Model`: add constraints, then
            solve.

        Raises
        ------
        DataError, ParameterError
            If the model does not take the data or depth.
        """
        if depth is None and self.gives.is_tree:
            raise ParameterError(f"{self.name} finds trees: give their depth, such as depth=2")
        depth = 1 if depth is None else depth
        budget = budget or TimeBudget()
        own, notes = self.for_data(data)
        if own is not self:
            problem = own.build(data, depth, budget=budget, solver=solver, whole=whole, declare=declare)
            return replace(
                problem, instance=replace(problem.instance, notes=(*notes, *problem.instance.notes))
            )
        began, topology = monotonic() - budget.excluded_seconds, Topology(depth)
        large = not whole and _is_large(data, topology)
        self.check_treatments(data)
        self.check_columns(data)
        self.check_data(data, topology)
        self.check_weights(data)
        if solver is not None:
            with budget.phase("prepare"):
                quick = self.bind_quickly(data, topology, budget)
            if quick is not None:
                problem = self._declared(quick, began, whole=whole, declare=declare and not large)
                if _takes(solver, problem):
                    return problem
        if declare and whole and solver is None and self.has_rows and _is_large(data, topology):
            return self._deferred(data, topology, budget, began)
        with budget.phase("prepare"), one_blas_thread():
            instance = self.bind(data, topology, budget)
        if solver is not None and large:
            problem = self._declared(instance, began, whole=whole, declare=False)
            if _takes(solver, problem):
                return problem
        return self._declared(instance, began, whole=whole, declare=declare)

    def attach(self, model: Model, data: Dataset, depth: int | None = None, *, prefix: str) -> Part:
        """Declare the model in an existing one, under a prefix: as one of several trees, or beside other rows.

        Parameters
        ----------
        model
            The model; its objective stays as it is.
        data
            Training samples.
        depth
            As for :meth:`build`.
        prefix
            What stands before the names of the blocks: ``"left"`` makes ``left.w``.

        Returns
        -------
        Part
            With its objective as an expression, its blocks, and the tree of a solution.

        Raises
        ------
        DataError, ParameterError
            If the formulation does not take the data or depth.
        Unsupported
            If it has no rows, or its variant leaves out trees that other rows may want.
        """
        if depth is None and self.gives.is_tree:
            raise ParameterError(f"{self.name} finds trees: give their depth, such as depth=2")
        if not self.has_rows:
            raise Unsupported(f"{self.name} is a smooth model without rows, and cannot be a part of another")
        own, _ = self.for_data(data)
        topology = Topology(1 if depth is None else depth)
        own.check_treatments(data)
        own.check_columns(data)
        own.check_data(data, topology)
        own.check_weights(data)
        with one_blas_thread():
            instance = own.with_all_trees(own.bind(data, topology, TimeBudget()))
        if instance is None:
            raise Unsupported(
                f"variant {own.variant} of {own.name} leaves out trees that are no optimum of it alone, and other rows "
                f"of the model may want these; its variants are {', '.join(own.variants)}"
            )
        part = Part(own, instance, model.under(prefix))
        own.declare(part.model, instance)
        return part

    def _deferred(self, data: Dataset, topology: Topology, budget: TimeBudget, began: float) -> Problem:
        """Return a problem whose model is declared when it is first read, with limits that take as long to prove."""
        with budget.phase("prepare"), one_blas_thread():
            quick = self.bind_quickly(data, topology, budget)
            instance = self.bind(data, topology, budget) if quick is None else quick

        def declare(model: Model) -> Instance:
            whole = instance
            if quick is not None:
                with budget.phase("prepare"), one_blas_thread():
                    whole = self.bind(data, topology, budget)
            with budget.phase("build"):
                self.declare(model, whole)
            return whole

        return Problem(
            formulation=self,
            instance=instance,
            model=DeferredModel(self._name(instance), declare),
            prepare_seconds=monotonic() - budget.excluded_seconds - began,
            build_seconds=0.0,
        )

    def _name(self, instance: Instance) -> str:
        """Return the name of a model."""
        return f"{self.name}-{instance.data.name}-d{instance.topology.depth}"

    def _declared(self, instance: Instance, began: float, *, whole: bool, declare: bool) -> Problem:
        """Declare the model of an instance whose preparation began at a time, on a clock that rests while compiling."""
        budget, declared_from = instance.budget, monotonic()
        name, unfinished = self._name(instance), not declare

        most, entries = max_entries(), 0

        def watch(terms: int) -> None:
            left = budget.remaining
            if left == 0.0 and monotonic() - declared_from > DECLARED_AT_ONCE:
                raise _NotBuilt
            # What no solver would be called with any more need not be there.
            if terms > most or HAND_OVER * terms > max(DECLARED_AT_ONCE, left):
                raise _NotBuilt(terms)

        with budget.phase("build"):
            model = Model(name)
            try:
                if declare:
                    model.watch = None if whole else watch
                    self.declare(model, instance)
                model.watch = None
            except _NotBuilt as given_up:
                model, unfinished, entries = Model(name), True, given_up.entries
            now = monotonic()
            return Problem(
                formulation=self,
                instance=instance,
                model=model,
                prepare_seconds=declared_from - budget.excluded_seconds - began,
                build_seconds=now - declared_from,
                unfinished=unfinished,
                entries_given_up=entries,
            )

    def previous_depth(self, instance: Instance) -> Tree:
        """Solve the model with one level less, and return its tree with one more level that does not split.

        A start (Dunn 2018, section 2.2) for formulations whose branch nodes may stay without a split. At depth 1, and
        where no tree is found in time, it is the start ``cart``.

        Returns
        -------
        Tree
            For scaled features.
        """
        depth = instance.topology.depth
        if depth > 1:
            part = instance.budget.part(share=START_SHARE)
            shallow = self.build(instance.data, depth - 1, budget=part, whole=False)
            found = shallow.solve(time_limit=part.at_most(PREVIOUS_DEPTH_TIME_LIMIT)).tree
            if isinstance(found, Tree):
                return deepened(found.unscaled())
        cart: Tree = self.start("cart", instance)
        return cart

    def check_weights(self, data: Dataset) -> None:
        """Refuse weights where the model does not say what they do to its objective: none is ignored.

        Raises
        ------
        DataError
            Saying how to count samples otherwise.
        """
        if data.weighted and not self.takes_weights:
            raise DataError(
                f"{self.name} takes no sample weights, and {data.name} has weights from {data.weights.min():g} to "
                f"{data.weights.max():g}",
                hint="repeat the rows of samples that count more often, or choose another model",
                option="leave --weight out, or choose another model",
            )

    def check_treatments(self, data: Dataset) -> None:
        """Refuse treatments, rewards, times, several targets and samples without a label where these have no use.

        Raises
        ------
        DataError
            Saying which models do.
        """
        if data.treatments is not None and self.task != "prescription":
            raise DataError(
                f"{self.name} prescribes no treatments, and {data.name} has some ({', '.join(data.classes)})",
                hint="use a prescriptive model (opt), or load the data without treatment=",
                option="use a prescriptive model (opt), or leave --treatment out",
            )
        if data.rewards is not None and self.task != "decision":
            raise DataError(
                f"{self.name} predicts a target, and {data.name} has rewards of decisions instead "
                f"({', '.join(data.classes)})",
                hint="use a model that decides (policy), or load the data with a target",
                option="use --model policy, or give --target in place of --rewards",
            )
        if data.targets and self.task != SEVERAL:
            raise DataError(
                f"{self.name} predicts one target, and {data.name} has several ({', '.join(data.targets)})",
                hint="use a model of several targets (multi), or make the data with one of them",
                option="use --model multi, or name one of them with --target",
            )
        if data.followed is not None and not self.takes_times:
            raise DataError(
                f"{self.name} predicts no hazards, and {data.name} has times of which some are censored",
                hint="use the model survival, or make the data without event=",
                option="use --model survival, or leave --event out",
            )
        if data.unlabelled is not None and not self.takes_unlabelled:
            raise DataError(
                f"{self.name} has no use for samples without a label, and {data.name} has {len(data.unlabelled)}",
                hint="use a semi-supervised model (semi-oct), or make the data without unlabelled=",
                option="use a semi-supervised model (semi-oct), or leave these rows out",
            )

    def check_columns(self, data: Dataset) -> None:
        """Refuse columns of several features that a sum of features, or a rule of a card, could not be read of.

        Raises
        ------
        DataError
            Naming one, and saying how to load it otherwise.
        """
        columns = [column for column in data.encoding.columns if not column.plain]
        if not columns or self.takes_sets:
            return
        models = "a model whose splits have one feature and whose leaves are constant (oct, policy, ort, opt)"
        if columns[0].branch:
            raise DataError(
                f"{self.name} sends no missing values to a side, and {data.name} has some in "
                f"{columns[0].name!r}, loaded for that",
                hint=f"load the data with missing='impute', or use {models}",
                option=f"give --missing impute, or use {models}",
            )
        raise DataError(
            f"{self.name} has no splits on sets of levels, and column {columns[0].name!r} is categorical",
            hint=f"leave it out of categorical=, so that each level becomes a feature (one-hot), or use {models}",
            option=f"leave it out of --categorical, so that each level becomes a feature (one-hot), or use {models}",
        )

    def require_unit_box(self, data: Dataset) -> None:
        """Refuse features outside [0, 1].

        Raises
        ------
        DataError
            Saying how to load the data.
        """
        if data.X.min() < 0 or data.X.max() > 1:
            raise DataError(f"{self.name} takes features in [0, 1]; load the data with min-max scaling")


def _takes(solver: TreeSearch | Auto, problem: Problem) -> bool:
    """Return whether a tree search takes a problem; its package is loaded for that."""
    with problem.budget.phase("load"):
        return solver.takes(problem)


def _is_large(data: Dataset, topology: Topology) -> bool:
    """Return whether a model is far larger than what a tree search needs of the data."""
    return data.n * topology.n_leaves > MAX_ASSIGNED or data.X.size * topology.n_branches > MAX_SPLITS


def max_entries() -> int:
    """Return the most matrix entries for which a model is declared: it takes half of the machine's memory then."""
    if not hasattr(os, "sysconf"):
        return MAX_ENTRIES
    return min(
        MAX_ENTRIES, int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (2 * BYTES_PER_ENTRY))
    )


def deepened(tree: Tree) -> Tree:
    """Return the same tree with one more level: former leaves become nodes without a split, which send all right."""
    new = tree.topology.n_leaves
    return replace(
        tree,
        depth=tree.depth + 1,
        w=np.vstack([tree.w, np.zeros((new, tree.n_features))]),
        b=np.concatenate([tree.b, np.zeros(new)]),
        leaf_value=np.repeat(tree.leaf_value, 2, axis=0).astype(float),
        leaf_w=None if tree.leaf_w is None else np.repeat(tree.leaf_w, 2, axis=0),
        outcomes=None if tree.outcomes is None else np.repeat(tree.outcomes, 2, axis=0),
        outcome_w=None if tree.outcome_w is None else np.repeat(tree.outcome_w, 2, axis=0),
    )
