"""The trees near the optimum of a problem: who lists them, which satisfy added constraints, and their check.

A *tree* is its splits and the labels of its leaves. A split is a column and the two sets of training samples that it
parts: thresholds between the same two neighbouring values of the samples at a node are one, in the middle between them,
and so are features of the column that differ in where missing values or levels go that none of these samples has. Every
leaf holds training samples. A leaf predicts what suits its samples best, the first of several classes; where a user has
added constraints, a leaf of a classifier may have any label, as another one may satisfy them. A split between two
leaves that one prediction suits (that have one label) is none: such a node is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data.columns import column_of_features
from mipforest.errors import NotAllowed, Unsupported
from mipforest.heuristics.thresholds import univariate_tree
from mipforest.problem.driver import PROGRESS_INTERVAL
from mipforest.problem.no_good_rows import Key, key_of, list_by_rows, refusal_of_labels, refusal_of_rows
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.proofs import same_value
from mipforest.problem.result import Result
from mipforest.problem.structure import UnivariateProblem
from mipforest.problem.tree_search import (
    MATRIX_SOLVER,
    ListedTrees,
    TreeSearch,
    search_classes,
)
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver, get_solver
from mipforest.solvers.solution import Event, Progress
from mipforest.trees import Tree, TreeSet

#: Most trees that are listed, unless more are asked for.
MOST_TREES = 100_000

#: Trees whose objective is computed by the definition, too.
CHECKED = 100

#: By what share of the way to the objective of a leaf the budget begins where constraints leave trees out, and grows.
FIRST_STEP, GROWTH = 0.01, 4.0

#: Share of an objective within which two are the same: sums of the losses of leaves, in two orders.
SAME = 1e-9


def lister_for(
    problem: ProblemData, settings: SolveSettings, solver: Solver | TreeSearch, *, by_name: bool
) -> TreeSearch | Solver | None:
    """Return who lists the trees of a problem, ``None`` where none are asked for.

    A matrix solver that was asked for by name, by no-good rows; otherwise a search, and such a solver where no search
    does and nobody asked for one.

    Parameters
    ----------
    problem, settings
        The problem, and what is asked for.
    solver, by_name
        Who solves the problem, and whether that was asked for.

    Raises
    ------
    Unsupported, NotAllowed
        If none does: with the reason.
    """
    if settings.keep_trees is None and settings.within is None:
        return None
    if settings.time_limit == 0:
        raise NotAllowed("without time no trees are listed; give a time limit above 0, or ask for one tree")
    reason = by_rows = refusal_of_rows(problem)
    if isinstance(solver, TreeSearch) or not by_name:
        search, reason = _search_for(problem)
        if search is not None:
            return search
        if by_name:
            by_rows = reason
    if not by_rows:
        return solver if isinstance(solver, Solver) else get_solver(MATRIX_SOLVER)
    raise Unsupported(
        f"the trees near the optimum of {problem.formulation.name} cannot be listed: {reason}",
        hint="leave out keep_trees and within",
        option="leave out --keep-trees and --within",
    )


def _search_for(problem: ProblemData) -> tuple[TreeSearch | None, str]:
    """Return the search that lists the trees of a problem, or why none does."""
    reason = "no search is installed that lists trees"
    for plugin in search_classes().values():
        search = plugin()
        if not plugin.available() or plugin.list_trees is TreeSearch.list_trees:
            continue
        reason = search.refusal_to_list(problem)
        if reason and not isinstance(problem.structure, search.structures):
            reason = f"only univariate trees with additive losses are, such as those of oct, ort and policy: {reason}"
        reason = reason or refusal_of_labels(problem)
        if not reason and problem.as_built.objective_replaced():
            reason = "the objective of the model was replaced"
        is_stated = problem.unfinished or (problem.constraints and problem.is_stated)
        if not reason and problem.changed() and not is_stated:
            reason = _own_variables(problem)
        if not reason:
            return search, ""
    return None, reason


def _own_variables(problem: ProblemData) -> str:
    """Say which variables a user has added, whose values a tree does not tell; empty where there are none."""
    added = problem.formulation.expressions(problem.model, problem.instance)
    tree = problem.start_without_search()
    known = {*problem.as_built.blocks, *(() if tree is None else added.encode(tree))}
    own = [name for name in problem.model.variables if name not in known]
    return (
        f"a tree tells no values of the variables {', '.join(own)}, which were added to the model"
        if own
        else ""
    )


def with_trees(
    result: Result,
    lister: TreeSearch | Solver,
    settings: SolveSettings,
    on_progress: Progress | None,
    solve: Callable[[ProblemData, Solver, SolveSettings, Progress], Result],
) -> Result:
    """Add the trees near the optimum to a result, in the time that is left.

    Parameters
    ----------
    result, lister, settings, on_progress
        The solved problem, who lists its trees, and what is asked for.
    solve
        Solves a model with a matrix solver, in the time that is left and without a start.
    """
    problem = result.problem
    if not isinstance(result.solved_tree, Tree):
        return result
    began = last = monotonic()

    def stopped() -> bool:
        nonlocal last
        if on_progress is not None and monotonic() - last >= PROGRESS_INTERVAL:
            last = monotonic()
            event = Event(
                result.solution.seconds + last - began, result.objective, result.bound, result.solution.nodes
            )
            if on_progress(event):
                problem.budget.stop()
        return problem.budget.expired

    with problem.budget.phase("trees", "listing trees near the optimum"):
        if isinstance(lister, TreeSearch):
            trees = _listed(
                problem, lister, result.solved_tree, result.evaluated_objective, settings, stopped
            )
        else:
            alone = replace(settings, gap=0.0, start=None, keep_trees=None, within=None, log=None)
            trees = list_by_rows(
                result,
                keep=settings.keep_trees or MOST_TREES,
                within=settings.within,
                limit=lambda best: np.inf if settings.within is None else limit_within(best, settings.within),
                solve=lambda model: solve(model, lister, alone, lambda _: stopped()),
                stopped=stopped,
            )
    return replace(result, trees=trees, phase_seconds=problem.budget.seconds)


def _listed(
    problem: ProblemData,
    lister: TreeSearch,
    like: Tree,
    known: float,
    settings: SolveSettings,
    stopped: Callable[[], bool],
) -> TreeSet:
    within, keep = settings.within, settings.keep_trees or MOST_TREES
    changed, limits = problem.changed(), None
    if problem.constraints and (problem.unfinished or problem.is_stated):
        # Whether trees are left out after the listing, too.
        limits, filtered = problem.restrictions.sums, not problem.restrictions.is_told
    else:
        if changed:
            limits = problem.formulation.label_sums(problem.model, problem.instance, problem.as_built)
        filtered = changed and (limits is None or limits.rest)

    def listing(budget: float) -> ListedTrees:
        return lister.list_trees(
            problem,
            budget=budget,
            most=max(keep, MOST_TREES) if filtered else keep,
            shrink=within is None and not filtered,
            all_labels=changed,
            limits=limits,
            # Where trees are left out later, another one of the same splits may be one that stays.
            columns=None if filtered else column_of_features(problem.data),
            stopped=stopped,
        )

    best, budget = known, np.inf
    if within is not None:
        budget = limit_within(best, within)
    elif changed:
        budget = best + FIRST_STEP * max(0.0, _leaf_value(problem) - best)
    while True:
        found = listing(budget)
        trees = _as_set(problem, found, like, within, keep, stopped, filtered=filtered)
        enough = within is not None or len(trees) >= keep or not trees.ended or budget == np.inf
        if within is not None and len(trees) and trees.objectives[0] < best - SAME * abs(best):
            best, enough = float(trees.objectives[0]), False  # the solve ended within its gap
            budget = limit_within(best, within)
        if enough or stopped():
            return trees
        if within is None:
            grown = best + GROWTH * (budget - best)
            budget = grown if best < grown < _leaf_value(problem) else np.inf


def limit_within(best: float, within: float) -> float:
    """Return the greatest objective within a relative distance."""
    return best + (within + SAME) * abs(best)


def _leaf_value(problem: ProblemData) -> float:
    """Return the objective of a tree without a split, with its best prediction."""
    none = np.full(problem.topology.n_branches, -1)
    leaf = univariate_tree(problem.data, problem.topology, none, np.zeros(len(none)))
    return problem.formulation.evaluate(problem.formulation.relabel(leaf, problem.instance), problem.instance)


def _as_set(
    problem: ProblemData,
    found: ListedTrees,
    like: Tree,
    within: float | None,
    keep: int,
    stopped: Callable[[], bool],
    *,
    filtered: bool,
) -> TreeSet:
    """Return the listed trees that satisfy added constraints, the best so many, checked against the definition.

    Those of limits that held while they were listed are in doubt only near a limit, unless trees are ``filtered``.
    """
    charged = problem.structure
    assert isinstance(charged, UnivariateProblem)  # what is listed
    changed, predicts_numbers = problem.changed(), not like.is_classifier
    order = _sorted(found)
    split = found.chosen >= 0
    feature: IntArray = np.where(split, charged.thresholds.feature[found.chosen], -1)
    threshold: FloatArray = np.where(split, charged.thresholds.value[found.chosen], 0.0)
    kept, leaves, ended, left_out = list[int](), list[FloatArray | IntArray](), found.ended, 0
    met = set[Key]()
    in_doubt = changed & (filtered | ~found.within_limits)
    for k in order.tolist():
        if len(kept) == keep:
            break
        if (in_doubt[k] or predicts_numbers) and stopped():
            ended = False
            break
        tree = None
        if in_doubt[k] or predicts_numbers or len(kept) < CHECKED:
            labels = None if predicts_numbers else found.label[k]
            tree = univariate_tree(problem.data, problem.topology, feature[k], threshold[k], labels)
            tree = problem.formulation.relabel(tree, problem.instance) if predicts_numbers else tree
        if tree is not None and in_doubt[k] and problem.outside(tree):
            left_out += 1
            continue
        if filtered and tree is not None:
            key = key_of(tree, problem.data, labelled=True)
            if key in met:
                continue
            met.add(key)
        if tree is not None and len(kept) < CHECKED:
            value = problem.formulation.evaluate(tree, problem.instance)
            if not same_value(value, float(found.value[k]), problem.objective_unit):
                raise RuntimeError(
                    f"a listed tree has the objective {value:.9g} by the definition, and {found.value[k]:.9g} by the "
                    "listing: this is a fault of mipforest; please report it with the data"
                )
        kept.append(k)
        leaves.append(found.label[k] if tree is None else tree.leaf_value)
    seen_all = len(kept) < keep or not filtered
    # A doubt that was not looked into may be justified.
    seen_all &= not in_doubt[order[len(kept) + left_out :]].any()
    shape = like.leaf_value.shape
    values: FloatArray | IntArray = np.array(leaves, float if predicts_numbers else int).reshape(-1, *shape)
    return TreeSet(
        like=replace(like, leaf_value=np.zeros(shape)),
        feature=feature[kept],
        threshold=threshold[kept],
        leaf_value=values,
        objectives=found.value[kept],
        within=within,
        found=len(kept) if filtered else found.count - left_out,
        counted=found.counted and seen_all and (found.whole or not (filtered or left_out)),
        ended=ended and (not (filtered or left_out) or found.whole or len(kept) == keep),
    )


def _sorted(found: ListedTrees) -> IntArray:
    """Return the order by objective, of those that are equal up to rounding by number of splits, then by splits."""
    unit = SAME * max(float(np.abs(found.value).max(initial=0.0)), np.finfo(np.float64).tiny)
    splits = (found.chosen >= 0).sum(axis=1)
    return np.lexsort((*found.label.T[::-1], *found.chosen.T[::-1], splits, np.rint(found.value / unit)))
