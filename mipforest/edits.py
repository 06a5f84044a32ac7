"""Edits of a tree by hand, each a constraint, and the best tree within them: what experts of a domain ask a tree for.

"This split makes no sense to me; what is the best tree without it, and what does it cost?" A session holds edits in
their order: a split that a node has to have, a feature that it may not use, a node that is to be a leaf, or any other
constraint. :meth:`EditSession.best` is the best tree within all of them, with its bound; :meth:`EditSession.prices`
are differences of proven optima, of each edit alone and of all together; :meth:`EditSession.alternatives` are the
other splits that a node may have, each with the best tree that has it.

Trees of one split per node are searched without rows, so that an edit builds no model; all other models are built with
the rows of the edits. What is proven of fewer edits is a bound within more: a search begins with the best known tree
that satisfies all, and ends where that is as good as such a bound.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np

from mipforest.atomic import atomic_write
from mipforest.data.columns import base_of, features_named
from mipforest.errors import DataError
from mipforest.problem.constraints import (
    Constraint,
    Forbid,
    RegionLabel,
    Split,
    as_options,
    constraint_of,
)
from mipforest.problem.problem import SETTINGS, Problem
from mipforest.problem.result import Price, Result
from mipforest.problem.structure import UnivariateProblem
from mipforest.problem.tree_search import Auto, TreeSearch
from mipforest.settings import SolveKeywords, SolveSettings, chosen_settings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import Event, Progress, Status, closed
from mipforest.trees import Tree, TreeSet
from mipforest.trees.topology import subtree

#: The format of a saved session.
FORMAT = 1

#: Thresholds of a curve, unless asked otherwise.
POINTS = 21


@dataclass(frozen=True)
class Edit:
    """One edit.

    Attributes
    ----------
    words
        What it says, as a sentence without its full stop.
    constraints
        What trees have to satisfy.
    node
        The branch node that it is about; ``None`` for one about the whole tree.
    instead_of
        Edits that it has replaced, which come back when it is taken back.
    """

    words: str
    constraints: tuple[Constraint, ...]
    node: int | None = None
    instead_of: tuple[Edit, ...] = ()

    @property
    def shapes_node(self) -> bool:
        """Whether it says which split its node has, that it has none, or what it predicts."""
        if self.node is None:
            return False
        if any(isinstance(one, RegionLabel) for one in self.constraints):
            return True
        forbidden = [one for one in self.constraints if isinstance(one, Forbid)]
        is_leaf = any(len(one.features) > 1 or len(one.nodes or ()) > 1 for one in forbidden)
        return is_leaf or any(isinstance(one, Split) for one in self.constraints)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {
            "words": self.words,
            "node": self.node,
            "constraints": [one.to_dict() for one in self.constraints],
        }

    @classmethod
    def from_dict(cls, entries: Any) -> Self:
        """Restore it.

        Raises
        ------
        DataError
            If the entries are none of an edit.
        """
        if not isinstance(entries, Mapping) or entries.keys() != {"words", "node", "constraints"}:
            raise DataError(f"{entries!r:.80} is no edit; it has the entries words, node and constraints")
        words, node, own = entries["words"], entries["node"], entries["constraints"]
        is_node = node is None or (isinstance(node, int) and not isinstance(node, bool) and node >= 0)
        if not isinstance(words, str) or not is_node or not isinstance(own, list):
            raise DataError(
                f"{entries!r:.80} is no edit; words are a text, node a number, constraints a list"
            )
        return cls(words, tuple(map(constraint_of, own)), node)


@dataclass(frozen=True, eq=False)
class Alternative:
    """A split that a node may have, and the best tree with it.

    Attributes
    ----------
    feature
        The feature that the node splits on.
    threshold
        In original units; samples with a lower value go left.
    result
        The best tree with that split, with its bound.
    """

    feature: str
    threshold: float
    result: Result

    @property
    def objective(self) -> float:
        """Objective of the best tree with this split that was found."""
        return self.result.objective

    @property
    def bound(self) -> float:
        """Proven bound on the objective of every tree with this split."""
        return self.result.bound

    @property
    def is_proven(self) -> bool:
        """Whether no tree with this split is better, within the gap."""
        return self.result.status == "optimal"


@dataclass(frozen=True, eq=False)
class EditPrices:
    """What edits cost, in units of the objective.

    Attributes
    ----------
    together
        What all edits cost.
    alone
        What each of them costs without the others, in their order.
    """

    together: Price
    alone: tuple[Price, ...]


def split_of(tree: Tree, node: int) -> tuple[str, float]:
    """Return feature and threshold of a node's split, in original units.

    Raises
    ------
    DataError
        If it has none, or one on several features.
    """
    if tree.is_oblique or tree.is_trivial(node):
        raise DataError(f"node {node} of the best tree has no split on one feature")
    j = int(np.flatnonzero(tree.w[node])[0])
    weights, intercepts = tree.original_units()
    return tree.feature_names[j], float(-intercepts[node] / weights[node, j])


class EditSession:
    """Edits of the tree of a problem, and the best tree within them.

    Parameters
    ----------
    problem
        A built problem; its own constraints hold in every tree.
    solver
        Who solves it, as for :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>`.
    settings, keywords
        Of :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>`, for every solve of the session: ``gap``,
        ``threads``, ``time_limit`` and others of :class:`~mipforest.settings.SolveSettings`.
    """

    def __init__(
        self,
        problem: Problem,
        solver: str | Solver | TreeSearch | Auto = "auto",
        *,
        settings: SolveSettings | None = None,
        **keywords: Unpack[SolveKeywords],
    ) -> None:
        problem.read_by_hand()
        if problem.changed() and not problem.is_stated:
            raise DataError(
                f"the model of {problem.name_in_words} has rows or objectives by hand that are no constraint of the "
                "toolkit, and edits would lose them; state them by problem.constrain or problem.require first"
            )
        self.problem, self._solver = problem, solver
        self._settings = chosen_settings(settings, keywords, SETTINGS)
        self._edits: list[Edit] = []
        self._undone: list[Edit] = []
        #: Proven results by their constraints, which may have no hash.
        self._known: list[tuple[tuple[Constraint, ...], Result]] = []

    # ------------------------------------------------------------------ edits

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that hold, in their order."""
        return tuple(self._edits)

    @property
    def undone(self) -> tuple[Edit, ...]:
        """The edits that were taken back, the last one of which :meth:`redo` brings again."""
        return tuple(self._undone)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What trees have to satisfy: the problem's own constraints, then those of the edits."""
        return self._constraints_of(self._edits)

    def pin(
        self,
        node: int,
        feature: str | None = None,
        threshold: float | tuple[float | None, float | None] | None = None,
    ) -> Edit:
        """Have a node split on a feature, at a threshold, at one of a range, or at any.

        Parameters
        ----------
        node
            Branch node in heap order: the root is 0, the nodes below node t are 2t + 1 (left) and 2t + 2.
        feature
            Name of a column or feature; without one, the split that the best tree has at the node.
        threshold
            As of :class:`~mipforest.problem.constraints.Split`, in original units.

        Raises
        ------
        DataError
            If there is no such node or feature, the threshold parts no samples, or the best tree has no split there.
        NotExpressed
            If the model cannot express it.
        """
        self._check(node)
        if feature is None:
            feature, threshold = split_of(self._tree(), node)
        split = Split(feature, threshold, node)
        return self._do(
            Edit(f"node {node} splits on {split.words.removeprefix(f'{node}: ')}", (split,), node)
        )

    def forbid(self, feature: str, node: int | None = None) -> Edit:
        """Have no node, or one of them, split on a column or feature.

        Raises
        ------
        DataError
            If there is no such node or feature.
        """
        if node is None:
            return self._do(Edit(f"no node uses {feature}", (Forbid((feature,)),)))
        self._check(node)
        return self._do(Edit(f"node {node} does not use {feature}", (Forbid((feature,), (node,)),), node))

    def leaf(self, node: int) -> Edit:
        """Have neither a node nor any below it split.

        Raises
        ------
        DataError
            If there is no such node.
        """
        self._check(node)
        columns = tuple(column.name for column in self.problem.data.encoding.columns)
        below = tuple(subtree(node, self.problem.topology.n_branches))
        return self._do(Edit(f"node {node} does not split", (Forbid(columns, below),), node))

    def label(self, node: int, label: str) -> Edit:
        """Have the samples that reach a node of the best tree be predicted a class, or get a decision.

        The splits above it stay, so that these samples come to it; below it nothing is gained by a split.

        Parameters
        ----------
        node
            A branch node, or a leaf: those follow the branch nodes, from left to right.
        label
            The class, the treatment or the decision.

        Raises
        ------
        DataError
            If there is no such node or label, or a node above has no split in the best tree.
        NotExpressed
            If the model predicts numbers.
        """
        self._check(node, 2 * self.problem.topology.n_branches)
        path, where, below = self._path(node), [], node
        for split in path:
            assert isinstance(split.threshold, float)
            sign = "<" if below == 2 * split.node + 1 else ">="
            where.append(f"{split.feature} {sign} {split.threshold!r}")
            below = split.node
        rule = RegionLabel(label, tuple(where))
        return self._do(Edit(f"node {node} predicts {label}", (*path, rule), node))

    def adopt(self, tree: Tree) -> Edit:
        """Have each node split as in a tree of one feature in each split, such as one of :meth:`near`.

        Raises
        ------
        DataError
            If it is none for the problem.
        """
        n, columns = self.problem.topology.n_branches, self.problem.data.encoding.columns
        if len(tree.w) != n:
            raise DataError(f"the tree has depth {tree.depth}, and the problem {self.problem.topology.depth}")
        kept: list[Constraint] = []
        names = []
        for t in range(n):
            if tree.is_trivial(t):
                kept.append(Forbid(tuple(column.name for column in columns), (t,)))
            else:
                kept.append(Split(*split_of(tree, t), t))
                names.append(split_of(tree, t)[0])
        said = (
            f"the splits are those of a tree on {', '.join(dict.fromkeys(names))}"
            if names
            else "no node splits"
        )
        return self._do(Edit(said, tuple(kept)))

    def near(self, within: float, most: int = 20, on_progress: Progress | None = None) -> TreeSet | None:
        """Return the trees within all edits whose objective is near that of the best one.

        Parameters
        ----------
        within
            Relative distance of the objectives, 0.01 for 1 %.
        most
            Trees to return, the best ones.
        on_progress
            May stop the search, as for :meth:`best`.

        Returns
        -------
        TreeSet
            ``None`` where there is no tree.

        Raises
        ------
        Unsupported
            If trees of the problem are not listed: those of one feature in each split to depth 3 are.
        """
        settings = replace(self._settings, within=within, keep_trees=most)
        return (
            self._with(self.constraints).solve(self._solver, on_progress=on_progress, settings=settings).trees
        )

    def limit(self, *constraints: Constraint) -> Edit:
        """Have trees satisfy any constraints of the toolkit.

        Raises
        ------
        DataError
            If none is given, or one names what there is not or cannot hold alone.
        NotExpressed
            If the model cannot express one.
        """
        if not constraints:
            raise DataError(
                "limit: no constraint is given; give one, such as mipforest.problem.constraints.Recall"
            )
        return self._do(Edit("; ".join(map(str, constraints)), constraints))

    def undo(self) -> Edit:
        """Take back the last edit, and return it.

        Raises
        ------
        DataError
            If there is none.
        """
        if not self._edits:
            raise DataError("there is no edit to undo")
        edit = self._edits.pop()
        self._edits += edit.instead_of
        self._undone.append(edit)
        return edit

    def redo(self) -> Edit:
        """Have the edit hold again that was taken back last, and return it.

        Raises
        ------
        DataError
            If there is none.
        """
        if not self._undone:
            raise DataError("there is no edit to redo")
        edit = self._undone.pop()
        self._edits = [*(one for one in self._edits if one not in edit.instead_of), edit]
        return edit

    def copy(self) -> Self:
        """Return a session with the same edits and what is known of them, for another thread."""
        found = copy(self)
        found._edits, found._undone, found._known = list(self._edits), list(self._undone), list(self._known)
        return found

    def learn(self, other: EditSession) -> None:
        """Take over what another session of the same problem has proven."""
        known = {id(result) for _, result in self._known}
        self._known += [one for one in other._known if id(one[1]) not in known]

    def _do(self, edit: Edit) -> Edit:
        if edit.shapes_node:
            replaced = tuple(one for one in self._edits if one.shapes_node and one.node == edit.node)
            edit = replace(edit, instead_of=replaced)
        kept = [one for one in self._edits if one not in edit.instead_of]
        self._with(self._constraints_of([*kept, edit]))  # one that cannot be is refused here
        self._edits = [*kept, edit]
        self._undone.clear()
        return edit

    def _check(self, node: int, last: int | None = None) -> None:
        branches = self.problem.topology.n_branches
        last = branches - 1 if last is None else last
        if isinstance(node, bool) or not isinstance(node, int | np.integer) or not 0 <= node <= last:
            raise DataError(
                f"there is no {'branch ' * (last < branches)}node {node!r}; a tree of depth "
                f"{self.problem.topology.depth} has the nodes 0 to {last}"
            )

    def _constraints_of(self, edits: Sequence[Edit]) -> tuple[Constraint, ...]:
        return (*self.problem.constraints, *(one for edit in edits for one in edit.constraints))

    # ------------------------------------------------------------------ the best tree

    def best(self, on_progress: Progress | None = None) -> Result:
        """Return the best tree within all edits, with its bound; it is kept until edits change.

        Parameters
        ----------
        on_progress
            As for :func:`mipforest.solving.solve`: it sees the best tree so far and the bound, and may stop the search.
        """
        return self._best(self.constraints, on_progress)

    def free(self, on_progress: Progress | None = None) -> Result:
        """Return the best tree without any edit: what prices are differences from; parameters as for :meth:`best`."""
        return self._best(self.problem.constraints, on_progress)

    def prices(self) -> EditPrices:
        """Return what the edits cost: the optimum within them, less that without."""
        free = self.free()
        alone = [Price.of(self._best(self._constraints_of([edit])), free) for edit in self._edits]
        return EditPrices(Price.of(self.best(), free), tuple(alone))

    def _with(self, constraints: Sequence[Constraint]) -> Problem:
        """Return the problem with some constraints, without rows where searches need none."""
        problem = self.problem
        asks_rows = any(one.by_completion for one in constraints)
        if asks_rows or not isinstance(problem.structure, UnivariateProblem) or problem.unfinished:
            return problem.with_only(constraints)
        searched = problem.without_rows().with_only(constraints)
        return searched if Auto().takes(searched) else problem.with_only(constraints)

    def _best(self, constraints: tuple[Constraint, ...], on_progress: Progress | None = None) -> Result:
        for known, result in self._known:
            if known == constraints:
                return result
        settings, bound = self._started(constraints), self._bound(constraints)
        is_near = False

        def told(event: Event) -> bool:
            nonlocal is_near
            is_near = is_near or closed(event.objective, bound, settings.gap)
            return is_near or (on_progress is not None and bool(on_progress(event)))

        result = self._with(constraints).solve(self._solver, on_progress=told, settings=settings)
        if result.tree is not None and bound > result.bound:
            status = result.solution.status
            if closed(result.objective, bound, settings.gap):
                status = Status.OPTIMAL
            result = replace(result, solution=replace(result.solution, bound=bound, status=status))
        if result.solution.status in (Status.OPTIMAL, Status.INFEASIBLE):
            self._known.append((constraints, result))
        return result

    def _bound(self, constraints: tuple[Constraint, ...]) -> float:
        """Return what is proven of all trees that satisfy some of the constraints, and so of those that satisfy all."""
        return max(
            (
                min(known.bound, known.objective)
                for fewer, known in self._known
                if known.tree is not None and all(one in constraints for one in fewer)
            ),
            default=-np.inf,
        )

    def _started(self, constraints: tuple[Constraint, ...]) -> SolveSettings:
        """Return the settings of a solve that begins with the best tree within the constraints of those known."""
        best, value = None, np.inf
        for _, known in self._known:
            tree = known.tree
            if tree is None or known.objective >= value or not isinstance(tree, Tree):
                continue
            if all(one.admits(tree, self.problem.data) for one in constraints):
                best, value = known.solved_tree, known.objective
        return self._settings if best is None else replace(self._settings, start=best)

    def _tree(self) -> Tree:
        tree = self.best().tree
        if not isinstance(tree, Tree):
            raise DataError(
                f"no tree satisfies {'; '.join(edit.words for edit in self._edits)}: undo an edit"
            )
        return tree

    # ------------------------------------------------------------------ alternatives

    def alternatives(self, node: int, k: int = 5, on_progress: Progress | None = None) -> list[Alternative]:
        """Return the k best splits of a node, each on another column, with the best tree of each.

        The nodes above have the splits of the best tree; everything else is free within the edits, but for a pin of
        this node, or its being a leaf. ``on_progress`` may stop the searches, as for :meth:`best`.

        Raises
        ------
        DataError
            If there is no such node, or the best tree has no split above it.
        """
        self._check(node)
        others, path = self._around(node)
        found = []
        for column in self.problem.data.encoding.columns:
            asked = (*others, *path, Split(column.name, None, node))
            try:
                result = self._best(asked, on_progress)
            except DataError:  # a column of one value
                continue
            if isinstance(result.tree, Tree):
                found.append(Alternative(*split_of(result.tree, node), result))
        found.sort(key=lambda one: one.objective)
        return found[:k]

    def curve(
        self, node: int, feature: str, points: int = POINTS, on_progress: Progress | None = None
    ) -> list[Alternative]:
        """Return the best trees by the threshold of a node's split on a feature: how flat the optimum is.

        Parameters
        ----------
        node, feature
            The node, and a column of numbers or a feature.
        points
            Most thresholds: quantiles of those that part the samples that reach the node in the best tree.
        on_progress
            May stop the searches, as for :meth:`best`.

        Raises
        ------
        DataError
            If there is no such node or feature, or the best tree has no split above the node.
        """
        self._check(node)
        others, path = self._around(node)
        own = features_named(self.problem.data, feature)
        if len(own) != 1:
            raise DataError(f"{feature} is several features; name one of {', '.join(map(str, own))}")
        data, tree = self.problem.data, self._tree()
        values = np.unique(data.X_raw[tree.decision_path(data.X_raw)[:, node], own[0]]) + base_of(
            data, feature
        )
        middles = (values[:-1] + values[1:]) / 2
        if len(middles) > points:
            middles = middles[np.unique(np.linspace(0, len(middles) - 1, points).round().astype(int))]
        found = []
        for threshold in middles.tolist():
            result = self._best((*others, *path, Split(feature, threshold, node)), on_progress)
            if result.tree is not None:
                found.append(Alternative(feature, threshold, result))
        return found

    def _around(self, node: int) -> tuple[tuple[Constraint, ...], tuple[Split, ...]]:
        """Return the constraints but of edits at a node, and the splits of the best tree above it."""
        others = self._constraints_of(
            [edit for edit in self._edits if edit.node != node or not edit.shapes_node]
        )
        return others, self._path(node)

    def _path(self, node: int) -> tuple[Split, ...]:
        """Return the splits of the best tree above a node, from the nearest one on."""
        path, above = [], node
        while above:
            above = self.problem.topology.parent(above)
            path.append(Split(*split_of(self._tree(), above), above))
        return tuple(path)

    # ------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the edits as JSON, with those that were taken back.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        content = {
            "format": FORMAT,
            "problem": self.problem.name_in_words,
            "edits": [edit.to_dict() for edit in self._edits],
            "undone": [edit.to_dict() for edit in self._undone],
        }
        with atomic_write(path, "w") as file:
            file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(
        cls,
        problem: Problem,
        path: str | os.PathLike[str],
        solver: str | Solver | TreeSearch | Auto = "auto",
        *,
        settings: SolveSettings | None = None,
        **keywords: Unpack[SolveKeywords],
    ) -> Self:
        """Return a session with the edits of a file; further parameters are those of a new one.

        Raises
        ------
        DataError
            If the file is none of a session, or an edit is none for the problem.
        OSError
            If it cannot be read.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{path} is no session: {error}") from None
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise DataError(f"{path} is no session of edits of format {FORMAT}")
        found = cls(problem, solver, settings=settings, **keywords)
        for name, kept in (("edits", found._edits), ("undone", found._undone)):
            given = content.get(name)
            if not isinstance(given, list):
                raise DataError(f"{path}: {name} is {given!r:.60}, and has to be a list of edits")
            try:
                kept += [Edit.from_dict(one) for one in given]
            except DataError as error:
                raise error.located(str(path)) from None
        found._with(found._constraints_of([*found._edits, *found._undone]))
        return found

    def options(self) -> tuple[list[tuple[str, str]], str]:
        """Return the constraints as options of the command line, and as TOML for ``--constraints`` what has no option.

        See :func:`~mipforest.problem.constraints.as_options`.
        """
        return as_options(self.constraints)
