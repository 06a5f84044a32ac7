"""What a constraint of a user breaks, put right: the limits of a model, and the values of a start.

**Limits.** A variant that rests on the value of a known solution leaves out what is worse, and a constraint, or a term
of the objective, may leave nothing else. Then the formulation computes its limits anew, from the value of a solution
that satisfies the constraints (:meth:`~mipforest.problem.operations.ModelOperations.with_cutoff`); here the model is
declared once more with them, and the user's variables, rows, terms, bounds and priorities are put in again. All columns
keep their numbers, so points of the one model are points of the other.

**Starts.** From a start tree to feasible values of the model, whatever was added. **Refined trees** keep it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, takewhile
from typing import TypeVar

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray
from mipforest.conflicts import Conflict, explain_infeasibility
from mipforest.errors import ModelError, SolverError
from mipforest.model import LinearExpr, Model, Values
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.model_changes import add_like
from mipforest.problem.operations import Instance
from mipforest.problem.problem_data import ProblemData
from mipforest.solvers.solution import Status
from mipforest.solving import solve
from mipforest.trees import Predictor, Tree

#: The limits are computed for this multiple of the known tree's value, and so on, while no solution is known.
GROWTH = 10.0

#: Why a refined tree or score card is not taken.
NOT_REFINED = "the {} is not refined: that would break the constraints that were added"

AnyProblem = TypeVar("AnyProblem", bound=ProblemData)


def rebuilt_with_cutoff(problem: AnyProblem, value: float) -> AnyProblem | None:
    """Build a changed model again with a cutoff: limits for its solutions up to a value.

    Parameters
    ----------
    problem
        With a model that a user has changed.
    value
        Value of a solution; infinite if none is known.

    Returns
    -------
    ProblemData
        ``None`` where the model covers them already, or nothing is proven for these changes.
    """
    if problem.valid_below() >= value:
        return None
    changes, added = problem.changes(), problem.least_added()
    if not np.isfinite(added):
        return None
    least = problem.known_value()
    # Limits below those of the built model could leave out a start that is feasible for it.
    value = max(value, least + added) if np.isfinite(least) else value
    instance = problem.formulation.with_cutoff(problem.instance, problem.value_below(value), changes)
    if instance is None:
        return None
    twin = declared_again(problem, instance)
    if twin.model.matrix().columns != problem.model.matrix().columns:
        return None
    twin.declare_valid_below(value)
    return twin


def declared_again(problem: AnyProblem, instance: Instance) -> AnyProblem:
    """Declare the model of an instance, and put in what a user added to that of a problem, whose rows are all there."""
    model = Model(problem.model.name)
    problem.formulation.declare(model, instance)
    twin = replace(problem, instance=instance, model=model)
    _set_bounds(twin, problem)
    _add_variables(twin, problem)
    _add_rows(twin, problem)
    if (added := problem.as_built.added_terms()).any:  # a linear sum, as it has a lower bound
        terms = LinearExpr(sparse.csr_array(added.c[None, :]), np.array([added.offset]), (), model)
        model.minimize(model.objective_expression + terms)
    for name, priority in problem.model.priorities.items():
        model.set_priority(name, priority)
    return twin.at_least(-np.inf, problem.least_within())


def _set_bounds(twin: ProblemData, problem: ProblemData) -> None:
    """Set the bounds that a user changed on variables of the formulation."""
    changes = problem.changes()
    for name in problem.as_built.blocks:
        given, block = problem.model[name], twin.model[name]
        lower, upper = changes.lower[given.columns], changes.upper[given.columns]
        block.set_bounds(
            np.where(np.isfinite(lower), lower, block.lower), np.where(np.isfinite(upper), upper, block.upper)
        )


def _add_variables(twin: ProblemData, problem: ProblemData) -> None:
    """Add the user's blocks, in their order, those of helpers with the rows that rest on limits."""
    expressions: TreeExpressions = twin.formulation.expressions(twin.model, twin.instance)
    for name, given in problem.model.variables.items():
        if name not in twin.model.variables and not expressions.write_again(name):
            add_like(twin.model, name, given)
        if name not in problem.as_built.blocks and name in twin.model.variables:
            twin.model[name].set_bounds(given.lower, given.upper)


def _add_rows(twin: ProblemData, problem: ProblemData) -> None:
    for name, block in problem.model.constraints.items():
        if name not in twin.model.constraints:
            twin.model.add_copy(block)


#: Seconds for completing a start whose integer variables are fixed, and at least, however late it is.
COMPLETION_TIME_LIMIT, LEAST_COMPLETION = 10.0, 1.0

#: Seconds for the search among other trees once a start breaks an added constraint: half to draw them.
SEARCH_TIME_LIMIT = 4.0

#: Seconds for the linear programme that finds constraints contradictory.
CONTRADICTION_TIME_LIMIT = 5.0

#: Seconds for the rows that contradict each other, once a problem is known to be infeasible.
CONFLICT_TIME_LIMIT = 10.0

#: Share of the time left that it may take: where it fails, splits can still be dropped, and the solver has the rest.
SEARCH_SHARE = 0.5

#: Repairs are tried in a model with limits for solutions up to this multiple of the known tree's value.
AMPLE = 100.0

#: Most trees that are drawn for that search.
CANDIDATES = 5000


def feasible_start(problem: ProblemData, tree: Predictor) -> tuple[Values | None, list[str]]:
    """Encode a start tree as values of the model, repaired where it breaks a row.

    The repairs, in turn: the nodes solved anew for the tree's routing; the tree known from building the model;
    splits that constraints fix put in, and the other nodes solved anew; features dropped, those that constraints forbid
    first, and the nodes solved anew with the others; the integer variables kept and the rest solved anew; the best of
    many other trees that is feasible; splits dropped.
    Feasible is a tree that satisfies the rows with limits that hold for its value (:mod:`mipforest.problem.repair`).
    None is tried where the added constraints contradict each other.

    Parameters
    ----------
    problem
        The problem.
    tree
        For scaled features.

    Returns
    -------
    values
        By block, feasible; ``None`` if no repair helps.
    warnings
        What was repaired, or why nothing helped.
    """
    values = feasible_values(problem, tree)
    if values is not None:
        return values, []
    warnings = [f"the start tree violates the model: {why_infeasible(problem, tree)}"]
    if problem.budget.expired:
        return None, [*warnings, "it is dropped: no time is left to repair it"]
    if contradictory(problem):
        return None, [*warnings, "it is dropped: no tree satisfies the constraints"]
    ample = rebuilt_with_cutoff(problem, AMPLE * problem.known_value()) or problem
    for what, repair in _repairs(ample, tree):
        values = repair()
        if values is not None:
            return values, [*warnings, what]
    return None, [*warnings, "it is dropped: the solver starts from nothing"]


def _repairs(problem: ProblemData, tree: Predictor) -> Iterator[tuple[str, Callable[[], Values | None]]]:
    polished = problem.formulation.polish(tree, problem.instance)
    yield (
        "its nodes were solved anew for its routing of the samples",
        lambda: feasible_values(problem, polished),
    )
    known = problem.instance.known
    if known is not None and known is not tree:
        yield (
            "it is replaced by the tree known from building the model",
            lambda: feasible_values(problem, known),
        )
    splits = problem.formulation.expressions(problem.model, problem.instance).fixed_splits()
    fixed = problem.formulation.with_splits(tree, splits, problem.instance) if splits else None
    if fixed is not None:
        yield (
            "the fixed splits were put in, and the other nodes solved anew",
            lambda: _completed(problem, problem.encoded(fixed)),
        )
    yield "features were dropped from it", lambda: _with_fewer_features(problem, tree)
    yield (
        "its integer values were kept and the rest solved anew",
        lambda: _completed(problem, problem.encoded(polished)),
    )
    yield "it is replaced by the best feasible one of many other trees", lambda: _searched(problem)
    if isinstance(tree, Tree):
        yield "splits were dropped from it", lambda: _with_fewer_splits(problem, tree)


def contradictory(problem: ProblemData) -> bool:
    """Say whether no tree at all satisfies the constraints, whatever limits the model is built with.

    By a linear programme over rows that hold for every tree: all, if the model leaves out no solution; else those that
    read no continuous variable of the formulation but those that limits do not touch, and are not said to rest on the
    limits. It is not found out where no time is left.
    """
    rest = _rows_of_every_tree(problem)
    for variables in rest.variables.values():
        variables.relax()
    limit = problem.budget.at_most(CONTRADICTION_TIME_LIMIT)
    return solve(rest, time_limit=limit).status is Status.INFEASIBLE


def _rows_of_every_tree(problem: ProblemData) -> Model:
    """Return the model, without objective, with the rows that hold for every tree whatever the limits are."""
    rest = problem.model.copy()
    rest.minimize(0.0)
    if problem.valid_below() < np.inf:
        limited = np.zeros(rest.n_columns, dtype=bool)
        for name in set(problem.as_built.blocks) - problem.formulation.blocks_of_every_tree:
            limited[rest[name].columns] = ~rest[name].integer
        for name, block in problem.model.constraints.items():
            if limited[block.A.indices].any() or name in problem.formulation.rows_below_cutoff:
                rest.remove(name)
    return rest


def conflict_of(problem: ProblemData, solver: str, seconds: float) -> Conflict | None:
    """Find rows of an infeasible problem that contradict each other; ``None`` where none are found in time.

    Parameters
    ----------
    problem
        A problem that is proven to have no tree.
    solver
        Name of the solver to ask.
    seconds
        For all questions together.
    """
    limit = problem.budget.at_most(seconds)
    try:
        return explain_infeasibility(_rows_of_every_tree(problem), solver, time_limit=limit)
    except (ModelError, SolverError, MemoryError):
        return None


def _with_fewer_features(problem: ProblemData, tree: Predictor) -> Values | None:
    """Drop the features that are forbidden at a node, then the least important ones, half of them at a time."""
    if not isinstance(tree, Tree):
        return None
    time = problem.budget.part(SEARCH_TIME_LIMIT)
    allowed = _allowed_features(problem)
    importance = np.abs(tree.w).sum(axis=0)
    order = np.argsort(-np.where(allowed.any(axis=0), importance, -1.0), kind="stable")
    n_kept = int(allowed.any(axis=0).sum())
    while not time.expired:
        kept = allowed & np.isin(np.arange(len(importance)), order[:n_kept])
        candidate = problem.formulation.restricted(tree, kept, problem.instance)
        if candidate is None:
            return None
        values = feasible_values(problem, candidate)
        if values is not None or n_kept == 0:
            return values
        n_kept //= 2
    return None


def _with_fewer_splits(problem: ProblemData, tree: Tree) -> Values | None:
    """Drop one split with those below it, the one that is missed least first; then all from some node on."""
    time, branches = problem.budget.part(SEARCH_TIME_LIMIT), problem.topology.branches

    def without(nodes: Sequence[int]) -> Tree | None:
        return problem.formulation.without_splits(tree, nodes, problem.instance)

    def value(candidate: Tree) -> float:
        return problem.formulation.evaluate(candidate, problem.instance)

    # Of a deep tree, even telling the splits apart by their value takes longer than there is time.
    ranking = problem.budget.part(SEARCH_TIME_LIMIT / 2)
    single = filter(None, (without([t]) for t in takewhile(lambda _: not ranking.expired, branches)))
    from_one_on = filter(None, (without(branches[t:]) for t in reversed(branches)))
    for candidate in chain(sorted(single, key=value), from_one_on):
        if time.expired:
            break
        values = feasible_values(problem, candidate)
        if values is not None:
            return values
    return None


def _allowed_features(problem: ProblemData) -> BoolArray:
    """Return the (|B|, p) features that the added rows and bounds, each taken alone, let a node use."""
    model, shape = problem.model, (problem.topology.n_branches, problem.data.p)
    allowed = np.ones(shape, dtype=bool)
    form = model.matrix()
    for name in problem.formulation.expressions(model, problem.instance).feature_blocks():
        if name not in model.variables or model[name].shape != shape:
            continue
        columns = model[name].columns
        allowed &= (form.col_lower[columns] != 0) | (form.col_upper[columns] != 0)
        # A row that holds one variable at 0.
        alone = np.diff(form.A.indptr) == 1
        zero = alone & (form.row_upper == 0) & (form.row_lower == 0)
        allowed &= ~np.isin(columns, form.A[np.flatnonzero(zero)].indices)
    return allowed


def feasible_values(problem: ProblemData, tree: Predictor) -> Values | None:
    """Return the values of all blocks for a tree; ``None`` if they break a row, or none are found for added blocks."""
    values = problem.encoded(tree)
    if values.keys() < problem.model.variables.keys():
        return _completed(problem, values)
    return None if problem.worst_violation(values) else values


def why_infeasible(problem: ProblemData, tree: Predictor) -> str:
    """Say which row a tree breaks; empty where it breaks none."""
    values = problem.encoded(tree)
    absent = [name for name in problem.model.variables if name not in values]
    if absent:
        return f"no values of the added {', '.join(absent)} go with it"
    return problem.worst_violation(values)


def _completed(problem: ProblemData, values: Values) -> Values | None:
    """Fix the integer variables at the values given and solve for the rest; ``None`` where that fails."""
    rest = problem.model.copy()
    for name, value in values.items():
        block = rest[name]
        if block.integer.all():
            block.fix(value)
            block.relax()
    # A tree that was found in the last moment counts only with its point.
    limit = problem.budget.at_most(COMPLETION_TIME_LIMIT)
    solution = solve(rest, time_limit=None if limit is None else max(limit, LEAST_COMPLETION))
    if solution.x is None or problem.worst_violation(solution.values):
        return None
    return solution.values


def _searched(problem: ProblemData) -> Values | None:
    """Draw candidates of the formulation, and try them from the best on until one is feasible or time is over."""
    time = problem.budget.part(SEARCH_TIME_LIMIT, share=SEARCH_SHARE)
    drawing = time.part(share=0.5)
    candidates, values = [], []
    for tree in islice(problem.formulation.candidates(problem.instance), CANDIDATES):
        candidates.append(tree)
        values.append(problem.formulation.evaluate(tree, problem.instance))
        if drawing.expired:
            break
    for position in np.argsort(values, kind="stable"):
        if time.expired:
            return None
        found = feasible_values(problem, candidates[position])
        if found is not None:
            return found
    return None


# ---------------------------------------------------------------------- refined trees


def refined_within(problem: ProblemData, tree: Predictor) -> tuple[Predictor, list[str]]:
    """Refine the solved tree, unless that breaks a constraint of the user's, or one cannot tell."""
    refined = problem.formulation.refine(tree, problem.instance)
    if refined is tree or not problem.changed():
        return refined, []
    # A refined tree may be worse for the model's objective: limits for its value have to do.
    ample = rebuilt_with_cutoff(problem, problem.formulation.evaluate(refined, problem.instance)) or problem
    if feasible_values(ample, refined) is not None:
        return refined, []
    if not (isinstance(tree, Tree) and isinstance(refined, Tree)):
        return tree, [NOT_REFINED.format(tree.noun)]
    allowed = tree
    for t in np.flatnonzero((refined.w != tree.w).any(axis=1) | (refined.b != tree.b)):
        w, b = allowed.w.copy(), allowed.b.copy()
        w[t], b[t] = refined.w[t], refined.b[t]
        trial = replace(allowed, w=w, b=b)
        if feasible_values(ample, trial) is not None:
            allowed = trial
    if allowed is not tree:
        return allowed, ["the tree is refined in part: more would break the constraints that were added"]
    return tree, [NOT_REFINED.format(tree.noun)]
