"""Solve small random problems with every model, variant and solver: no wrong word about a tree or an optimum.

python tests/fuzz/fuzz_models.py --minutes 30 --seed 0
python tests/fuzz/fuzz_models.py --seed 3 --solves 5000 --log fuzz.jsonl
python tests/fuzz/fuzz_models.py --table fuzz.jsonl

Half of the problems have a constraint of ``mipforest.constraints``, a third have weights of samples. Two matrix solvers
solve each, and all tree searches that take it. What they claim is held against witnesses:

- *definition*: the tree's value by the definition is the solver's, at a feasible point ("verified");
- *literal*: a second model, written from the definition with indicator rows and solved by Gurobi (``literal_trees``);
- *enumeration*: the best of all trees, where there is a route and it is quick, without constraints;
- *other*: no bound exceeds what another variant, or another solver, attains;
- *trees*: no bound exceeds the value of a random tree that satisfies the constraint.

A failure names its seed and case; ``--seed S --case K`` repeats it alone. With ``--log`` each case is a line of a file
that grows: the same command goes on where an earlier one ended, however it ended, and ``--solves`` counts those that
are there. Parts with other ``--seed``, or ``--from`` far apart, may run at the same time, each with its own file;
``--table`` sums up any number of files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

import formulations  # noqa: F401 - before the path below, which has a folder of this name

sys.path.append(str(Path(__file__).parents[1]))  # the independent routes, when run as a command

from cases import Case, Figures, Log, cases_of
from enumerate_trees import best_tree_value
from independent_lp import HINGE, enumerated_errors, enumerated_tree
from literal_trees import literal_optimum
from random_problems import PARAMETERS, Constraint, one_of, random_constraint, random_data
from univariate_cases import cost_of_targets, leaf_cost

from mipforest.cards import ScoreCard
from mipforest.data import DataError, Dataset
from mipforest.errors import EnsembleError, LicenseLimit
from mipforest.problem.expressions import NotExpressed
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError, TargetWeights
from mipforest.problem.problem import Problem
from mipforest.problem.registry import formulation_classes
from mipforest.problem.result import Result
from mipforest.problem.tree_search import Auto, search_classes
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.base import solver_classes
from mipforest.testing.formulation_conformance import random_oblique_tree, random_tree
from mipforest.trees import Tree

#: Seconds for a solve; bounds and values are compared also where it ends the solve.
TIME_LIMIT = 3.0

#: Matrix solvers, where they are installed: the first solves every problem, the others take turns.
SOLVERS = ("highs", "scip", "gurobi")

#: Relative gap that is asked for; a wider one of the routing search, but of models whose nodes it solves that
#: accurately or leaves to other searches.
GAP, WIDER_GAP, ACCURATE = 1e-6, 1e-5, ("margot", "oct", "ort")

#: Share of the problems whose samples have weights, and what these are.
WEIGHTED, WEIGHTS = 1 / 3, (0.4, 1.0, 2.0, 3.5)

#: Relative difference of two values that count as equal: gaps and tolerances of solvers.
EQUAL = 2e-5

#: Helpers under which OCT, ORT and ORT-L have fewer trees in one variant than in the other, and which one that is:
#: those of ``tight`` split between training values only, leaves of ``paper`` predict their most common class.
FEWER_TREES_IN = {
    "forbid_features": "tight",
    "require_features": "tight",
    "fix_split": "tight",
    "monotone": "paper",
    "demographic_parity": "paper",
    "equal_opportunity": "paper",
    "max_false_negatives": "paper",
}


class Drawn(NamedTuple):
    """A random problem, in all variants of its model, and the matrix solvers that are to solve it."""

    model: type[Formulation]
    parameters: dict[str, Any]
    data: Dataset
    depth: int
    solvers: tuple[str, ...]
    constraint: Constraint | None

    def problem(self, variant: str) -> Problem:
        """Build the problem in one variant, without the constraint."""
        return self.model(variant=variant, **self.parameters).build(self.data, self.depth)


def drawn_problem(rng: np.random.Generator, solvers: tuple[str, ...], *, weights: float = WEIGHTED) -> Drawn:
    """Draw a problem; see :func:`check`."""
    models = formulation_classes()
    name = one_of(*PARAMETERS)(rng)
    model = models[name]
    values = {key: draw(rng) for key, draw in PARAMETERS[name].items()}
    data = random_data(rng, model)
    depth = int(rng.choice([1, 2, 3], p=[0.4, 0.45, 0.15]))
    depth = depth if model.gives.is_tree else 1
    if depth == 3:
        data = data.take(np.arange(min(data.n, 6)))
    (apart,) = rng.spawn(1)
    if apart.random() < weights:
        data = data.with_weights(apart.choice(WEIGHTS, data.n))
    taken = (solvers[0], one_of(*solvers[1:])(rng)) if len(solvers) > 1 else solvers
    constraint = random_constraint(rng, data, depth) if rng.random() < 0.5 else None
    return Drawn(model, values, data, depth, taken, constraint)


def check(
    rng: np.random.Generator, solvers: tuple[str, ...], case: Case, *, weights: float = WEIGHTED
) -> Iterator[str]:
    """Draw a problem and check it in all variants; yield what is wrong, and note in the case what was solved.

    With a chance of ``weights`` samples have weights, drawn apart, so that without them a case stays what it was.
    """
    drawn = drawn_problem(rng, solvers, weights=weights)
    model, values, data, depth, taken, constraint = drawn
    what = f"{model.name} depth {depth} n {data.n} p {data.p} {values} {constraint or ''}"
    case.model, case.depth, case.weights = model.name, depth, data.weighted
    case.constraint = None if constraint is None else constraint.name
    optimum = None if constraint is not None else _enumerated(model(**values), data, depth)
    results: dict[tuple[str, str], Result] = {}
    trees: list[Tree] = []
    for variant in model.variants:
        try:
            problem = drawn.problem(variant)
            wrong_trees = [] if trees else list(_trees(problem, rng, trees))
            if constraint is not None:
                constraint.add(problem)
        except (ParameterError, DataError, EnsembleError, NotExpressed):
            case.refused += 1
            continue
        yield from (f"{what} {variant}: {text}" for text in wrong_trees)
        expected = _literal(problem, constraint)
        for solver in (*taken, *_searches(problem)):
            # The other solvers start from nothing: they have to find what they claim.
            start = "default" if solver == taken[0] else "none"
            gap = WIDER_GAP if solver in ("routing", "auto") and model.name not in ACCURATE else GAP
            try:
                result = problem.solve(solver, time_limit=TIME_LIMIT, gap=gap, start=start, threads=1)
            except LicenseLimit:
                case.refused += 1
                continue
            results[variant, solver] = result
            solve = case.add(variant, solver, proven=result.proven_for == "definition")
            solve.witnesses += ["definition"] if result.tree is not None else []
            solve.witnesses += ["trees"] if trees else []
            wrong = list(_own_faults(problem, result, trees, constraint))
            for witness, value in (("literal", expected), ("enumeration", optimum)):
                if value is not None:
                    solve.witnesses.append(witness)
                    wrong += [f"{witness}: {text}" for text in _against(value, result)]
            yield from (f"{what} {variant} {solver}: {text}" for text in wrong)
    for own, result in results.items() if len(results) > 1 else ():
        case.solve(*own).witnesses.append("other")
        yield from (f"{what}: {text}" for text in _claims(own, result, results, constraint))


def _searches(problem: Problem) -> list[str]:
    """Return the tree searches that take a problem, and ``auto`` where it chooses one of them."""
    names = [name for name, search in search_classes().items() if search.available()]
    taking = [name for name in names if search_classes()[name]().takes(problem)]
    return [*taking, "auto"] if Auto().takes(problem) else taking


def random_card(problem: Problem, rng: np.random.Generator) -> ScoreCard:
    """Return a card of random rules and points, with its best intercept."""
    cards = problem.instance.cards
    features = rng.permutation(np.unique(cards.feature))[: int(rng.integers(problem.formulation.rules + 1))]
    rules = [int(rng.choice(np.flatnonzero(cards.feature == j))) for j in features]
    return cards.card([(k, int(rng.choice([0, *cards.points_of(k)]))) for k in rules])


def _trees(problem: Problem, rng: np.random.Generator, kept: list[Tree]) -> Iterator[str]:
    """Compare random trees with their points of the model: objective, and the tree decoded again; keep the trees."""
    formulation, instance = problem.formulation, problem.instance
    for make in (random_tree, random_oblique_tree) if formulation.gives.is_tree else (random_card,) * 3:
        tree = make(problem, rng)
        value = formulation.evaluate(tree, instance)
        try:
            values = problem.encoded(tree)
        except ValueError:
            continue
        if not np.isfinite(value) or problem.worst_violation(values):
            continue  # outside the formulation's limits
        kept.append(tree)
        objective = problem.model.objective(values)
        if not _equal(objective, value):
            yield f"{make.__name__}: the model says {objective!r}, the definition {value!r}"
        decoded = formulation.decode(values, instance)
        again = formulation.evaluate(decoded, instance)
        if again > value and not _equal(again, value):
            yield f"{make.__name__}: decoded, its value is {again!r} in place of {value!r}"
        alone = [int(decoded.apply(x[None])[0]) for x in problem.data.X]
        if alone != decoded.apply(problem.data.X).tolist():
            yield f"{make.__name__}: decoded, samples take other sides one by one than all at once"


def _own_faults(
    problem: Problem, result: Result, trees: list[Tree], constraint: Constraint | None
) -> Iterator[str]:
    """Check the tree by the definition, and that no random tree that satisfies the rows is better than the bound."""
    if result.tree is not None and not result.verified:
        yield f"{result.failed_checks}"
    if result.tree is None and result.status not in ("limit", "time_limit") and constraint is None:
        yield f"{result.status}, no tree"
    for tree in trees:
        values = problem.encoded(tree)
        if values.keys() < problem.model.variables.keys() or problem.worst_violation(values):
            continue
        value = problem.formulation.evaluate(tree, problem.instance)
        if result.bound > value and not _equal(result.bound, value):
            yield f"it proves {result.bound!r}, a random tree has {value!r}"
        if result.status == "infeasible":
            yield f"it says infeasible, a random tree has {value!r}"


def _claims(
    own: tuple[str, str],
    result: Result,
    results: dict[tuple[str, str], Result],
    constraint: Constraint | None,
) -> Iterator[str]:
    """Check that a bound exceeds no value that another variant or solver attains."""
    fewer = None
    if result.problem.formulation.name in ("oct", "ort", "ort-l") and constraint is not None:
        fewer = FEWER_TREES_IN.get(constraint.name)
    for other, attained in results.items():
        # A tree that misses a row is one of other rows: those of ``paper`` may leave out the best one.
        same_rows = own[0] == other[0] and attained.max_violation <= FEASIBILITY_TOLERANCE
        if attained.tree is None or not (same_rows or (result.bound_for == "definition" and own[0] != fewer)):
            continue
        value = attained.evaluated_objective
        if result.bound > value and not _equal(result.bound, value):
            yield f"{own} proves {result.bound!r}, {other} attains {value!r}"
        if result.status == "infeasible":
            yield f"{own} says infeasible, {other} attains {value!r}"


def _literal(problem: Problem, constraint: Constraint | None) -> float | None:
    """Return the optimum of the literal model, ``None`` where there is none, or Gurobi does not finish."""
    formulation, instance, target = problem.formulation, problem.instance, None
    # A search and a model are each other's witnesses.
    no_literal = formulation.name in ("poisson", "survival", "multi", "semi-oct")
    if formulation.task in ("prescription", "decision") or no_literal or not formulation.gives.is_tree:
        return None
    if formulation.name == "miret":
        known = instance.target
        target = (instance.costs, instance.allowed, known.sign, known.weight, known.group)
    asked = None if constraint is None else (constraint.name, *constraint.literal)
    return literal_optimum(
        formulation.name,
        formulation.parameters(),
        problem.data,
        problem.topology.depth,
        target=target,
        constraint=asked,
        majority=constraint is not None and (formulation.name, formulation.variant) != ("oct", "tight"),
        parting=formulation.variant == "tight",
        seconds=TIME_LIMIT,
    )


def _enumerated(formulation: Formulation, data: Dataset, depth: int) -> float | None:
    """Return the optimum by trying all trees, where there is a route and it is quick."""
    X, values = data.X, formulation.parameters()
    if formulation.name == "policy" and depth <= 2:
        table, unit = formulation.leaf_loss(data).statistics(data.y, data.weights), formulation.unit(data)

        def least(rows: tuple[int, ...]) -> float:
            return float(table[list(rows)].sum(axis=0).min())

        return best_tree_value(X, least, depth, values["alpha"] * unit, values["N_min"]) / unit
    if formulation.name == "multi" and depth <= 2:
        cost = cost_of_targets(data, TargetWeights.of(formulation.target_weights, data))
        baseline = cost(tuple(range(data.n)))
        return best_tree_value(X, cost, depth, values["alpha"] * baseline, values["N_min"]) / baseline
    if formulation.name in ("oct", "ort", "quantile", "poisson", "survival") and depth <= 2:
        own = {"quantile": "absolute", "poisson": "deviance", "survival": "deviance"}
        loss = values.get("loss") or own.get(formulation.name, "classes")
        level = values.get("tau", 0.5)
        cost = leaf_cost(loss, data.y, data.weights, 1.0 - np.eye(len(data.classes)), level)
        baseline = cost(np.arange(data.n))
        if baseline <= 1e-9:
            return None
        return best_tree_value(X, cost, depth, values["alpha"] * baseline, values["N_min"]) / baseline
    literal = formulation.name == "loss-optimal" and depth == 2 and data.n <= 5
    if (
        not literal
        or data.weighted
        or values["regulariser"] != "l1"
        or values["selection"] != "none"
        or values["levels"] != "all"
    ):
        return None
    C, epsilon = float(np.ravel(values["C"])[0]), values["epsilon"]
    if values["loss"] == "misclassification":
        return enumerated_errors(X, data.sign, C, epsilon)
    return enumerated_tree(X, data.sign, (C, C), epsilon, HINGE) if values["loss"] == "hinge" else None


def _against(expected: float, result: Result) -> Iterator[str]:
    """Compare a result with the optimum, infinite where there is no tree."""
    better = result.tree is not None and result.verified and result.objective < expected
    if better and not _equal(result.objective, expected):
        yield f"it has {result.objective!r}, the least of all trees is {expected!r}"
    if np.isinf(expected):
        return
    if result.status == "infeasible" and result.proven_for == "definition":
        yield f"it says infeasible, a tree attains {expected!r}"
    proven = result.bound_for == "definition" and result.bound > expected
    if proven and not _equal(result.bound, expected):
        yield f"it proves {result.bound!r}, a tree attains {expected!r}"
    optimal = result.proven_for == "definition" and result.objective > expected and result.tree is not None
    if optimal and not _equal(result.objective, expected):
        yield f"it calls {result.objective!r} optimal, a tree attains {expected!r}"


def _equal(first: float, second: float) -> bool:
    return abs(first - second) <= max(EQUAL * abs(second), FEASIBILITY_TOLERANCE)


def fuzz(
    seed: int,
    *,
    first: int = 0,
    minutes: float = np.inf,
    solves: float = np.inf,
    cases: float = np.inf,
    log: Log | None = None,
    weights: float = WEIGHTED,
) -> Figures:
    """Check problems until the time or their number is over; an exception fails like a wrong answer.

    Parameters
    ----------
    seed, first
        The problems are numbered, from ``first`` on.
    minutes, solves, cases
        When to end; solves and cases that are in the log already count.
    log
        Where cases are kept; those that it has are not done again.
    weights
        Share of the problems whose samples have weights.
    """
    classes = solver_classes()
    solvers = tuple(name for name in SOLVERS if classes[name].available())
    figures, deadline, number = Figures(), monotonic() + 60 * minutes, first
    while monotonic() < deadline and number - first < cases and figures.solves.total() < solves:
        case = None if log is None else log.done(seed, number)
        if case is None:
            case = Case(seed, number)
            try:
                case.failures += check(np.random.default_rng((seed, number)), solvers, case, weights=weights)
            except Exception as error:
                case.failures.append(f"{type(error).__name__}: {error}")
            for text in case.failures:
                print(f"seed {seed} case {number}: {text}", flush=True)
            if log is not None:
                log.append(case)
        figures.count(case)
        number += 1
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--solves", type=float, default=np.inf)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--from", type=int, default=0, dest="first", metavar="CASE", help="number of the first case"
    )
    parser.add_argument("--case", type=int, default=None, help="this case alone")
    parser.add_argument(
        "--weights", type=float, default=WEIGHTED, metavar="SHARE", help="of problems with weights (a third)"
    )
    parser.add_argument("--log", type=Path, default=None, help="file of cases that grows (.jsonl)")
    parser.add_argument("--table", type=Path, nargs="+", default=(), help="sum up such files, solve nothing")
    given = parser.parse_args()
    if given.table:
        figures = Figures()
        for case in cases_of(given.table):
            figures.count(case)
    else:
        figures = fuzz(
            given.seed,
            first=given.first if given.case is None else given.case,
            minutes=given.minutes,
            solves=given.solves,
            cases=np.inf if given.case is None else 1,
            log=None if given.log is None else Log(given.log),
            weights=given.weights,
        )
    print(figures.table())
    print("\n".join(("", *figures.failures)))
    sys.exit(bool(figures.failures))


if __name__ == "__main__":
    main()
