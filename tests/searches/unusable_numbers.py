"""Gives a compiled search numbers that it cannot use, one after the other, and prints what comes of each.

A program of its own, run by ``test_unusable_numbers.py``: a crash ends it, and not the tests.
"""

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from time import monotonic

import numpy as np

from mipforest.errors import MipforestError
from mipforest.heuristics.thresholds import Thresholds
from mipforest.objectives.leaf_losses import ClassLoss, PinballLoss, PrescriptionLoss, SquaredLoss, error_loss
from mipforest.problem.structure import TreeCharges, UnivariateProblem
from mipforest.searches.numbers import LARGEST

NAN, INF = float("nan"), float("inf")

#: What a field becomes, or one element of it; two are finite, and what is made of them is not; the last one is the
#: largest that is taken.
NUMBERS = (NAN, INF, -INF, 1e308, -1e200, LARGEST)

#: Settings of a search, by what they may be: it then does as without them.
SETTINGS = (NAN, INF, -INF)

#: Seconds after which a search is to end.
SECONDS = 2.0

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2)).round(1)
SIGN = np.where(X @ [1.0, -1.0] + RNG.normal(size=12) > 0, 1, 0)
Y = X @ [1.0, 0.5] + RNG.normal(size=12)

Run = Callable[[], object]


def broken(value: object, number: float) -> object:
    """Return a number in place of another, or of one within an array."""
    if not isinstance(value, np.ndarray):
        return number
    other = value.astype(np.float64)
    other.flat[other.size // 2] = number
    return other


def cases(problem: object, names: str, run: Callable[[object], object]) -> Iterator[tuple[str, Run]]:
    """Yield runs with each field of a problem, or of its loss, broken."""
    for name in names.split():
        for number in NUMBERS:
            if hasattr(problem, name):
                changed = replace(problem, **{name: broken(getattr(problem, name), number)})
            else:
                loss = copy(problem.loss)
                setattr(loss, name, broken(getattr(loss, name), number))
                changed = replace(problem, loss=loss)
            yield f"{name}={number}", lambda changed=changed: run(changed)


def exact() -> Iterator[tuple[str, Run]]:
    """Exact search, all losses."""
    from mipforest.data import Dataset
    from mipforest.heuristics.thresholds import find_thresholds
    from mipforest.searches.exact.search import exact_search

    data = Dataset.from_arrays(X, SIGN, scaling="none")
    thresholds = find_thresholds(data)

    def run(problem: object, **settings: object) -> float:
        return exact_search(problem, 3, **{"deadline": monotonic() + SECONDS} | settings).value

    weight, costs = np.ones(12), 1.0 - np.eye(2)
    classes = UnivariateProblem(thresholds=thresholds, y=SIGN, loss=ClassLoss(costs), weight=weight)
    yield "", lambda: run(classes)
    yield from cases(classes, "weight costs split_cost unit", run)
    for loss in ("squared", "absolute"):
        values = replace(classes, y=Y, loss=error_loss(loss))
        yield from cases(values, "y weight split_cost unit", run)
    for field in ("X", "value"):
        for name, changed in _each(thresholds, field):
            yield name, lambda changed=changed: run(replace(classes, thresholds=changed))
    for name in ("best", "gap", "deadline"):
        for number in SETTINGS:
            yield f"{name}={number}", lambda name=name, number=number: run(classes, **{name: number})


def _each(thresholds: Thresholds, field: str) -> Iterator[tuple[str, Thresholds]]:
    for number in NUMBERS[:3]:
        yield f"{field}={number}", replace(thresholds, **{field: broken(getattr(thresholds, field), number)})


def local() -> Iterator[tuple[str, Run]]:
    """Local search, with all leaves."""
    from mipforest.searches.local import LocalProblem, LocalTree
    from mipforest.searches.local.search import local_search

    def run(problem: object, **settings: object) -> float:
        given = {"deadline": monotonic() + SECONDS, "starts": 2, "kicks": 3} | settings
        return local_search(problem, 2, **given).value

    weight, costs = np.ones(12), 1.0 - np.eye(2)
    unit_cube = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    classes = LocalProblem(X=unit_cube, y=SIGN, loss=ClassLoss(costs), weight=weight)
    yield "", lambda: run(classes)
    yield from cases(classes, "X weight costs split_cost unit offset", run)
    yield from cases(replace(classes, margin=0.01), "X weight costs split_cost margin", run)
    values = replace(classes, y=Y, loss=SquaredLoss())
    yield from cases(values, "y weight split_cost", run)
    yield from cases(replace(values, loss=PinballLoss()), "y weight split_cost", run)
    yield from cases(replace(values, coefficient_cost=0.1), "X y weight split_cost coefficient_cost", run)
    treated = replace(values, y=np.abs(Y), loss=PrescriptionLoss(np.arange(12) % 2, mu=0.5))
    yield from cases(treated, "y weight split_cost mu", run)
    yield from cases(replace(treated, coefficient_cost=0.1), "X y coefficient_cost mu", run)
    for number in SETTINGS:
        yield f"deadline={number}", lambda number=number: run(classes, deadline=number)
        for field in ("w", "b"):
            tree = LocalTree(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.full(3, -0.5))
            given = replace(tree, **{field: broken(getattr(tree, field), number)})
            for problem in (classes, replace(classes, margin=0.01)):
                yield (
                    f"tree {field}={number}",
                    lambda given=given, problem=problem: run(problem, trees=[given]),
                )


def prescription() -> Iterator[tuple[str, Run]]:
    """Enumeration of prescriptive trees, with constant estimates and with linear ones."""
    from mipforest.searches.prescription.enumeration import enumerate_linear_trees, enumerate_trees

    charges = TreeCharges(y=np.abs(Y), loss=PrescriptionLoss(np.arange(12) % 2, mu=0.5), weight=np.ones(12))
    yield "", lambda: enumerate_trees(X, charges, 2).least
    yield from cases(charges, "y weight split_cost mu", lambda it: enumerate_trees(X, it, 2).least)
    line = replace(charges, coefficient_cost=0.1)
    fields = "y weight split_cost mu coefficient_cost"
    yield from cases(line, fields, lambda it: enumerate_linear_trees(X, it, 1).least)
    for number in NUMBERS[:3]:
        at = broken(X, number)
        yield f"X={number}", lambda at=at: enumerate_trees(at, charges, 2).least
        yield f"X={number}", lambda at=at: enumerate_linear_trees(at, line, 1).least


def tao() -> Iterator[tuple[str, Run]]:
    """Alternating optimisation."""
    from mipforest.searches.memetic import AlternatingOptimization, SplitTree, evolve

    tree = SplitTree(np.array([0, 1, 1]), np.zeros(3))

    def run(charges: object, at: object = X, deadline: float = INF) -> float:
        return evolve(
            AlternatingOptimization(at, charges), [tree], generations=2, seed=0, deadline=deadline
        ).best.value

    classes = TreeCharges(y=SIGN, loss=ClassLoss(1.0 - np.eye(2)), weight=np.ones(12))
    yield "", lambda: run(classes)
    yield from cases(classes, "weight costs split_cost", run)
    for loss in ("squared", "absolute"):
        yield from cases(replace(classes, y=Y, loss=error_loss(loss)), "y weight split_cost", run)
    for number in SETTINGS:
        yield f"X={number}", lambda number=number: run(classes, broken(X, number))
        yield f"deadline={number}", lambda number=number: run(classes, deadline=number)


def cards() -> Iterator[tuple[str, Run]]:
    """Score cards, by cuts and by sets of rules."""
    from mipforest.data import Dataset
    from mipforest.heuristics.score_cards import CardProblem
    from mipforest.searches.cards.plugin import _Best, _Cuts, _Supports

    for search, features in ((_Cuts(), X), (_Supports(), (X > 0).astype(float))):
        data = Dataset.from_arrays(features, SIGN, scaling="none")
        problem = CardProblem.of(data, rules=2, least=-2, most=2)

        def run(problem: object, loss: float | None = None, search: object = search) -> float:
            best = _Best(problem, ())
            best.loss = best.loss if loss is None else loss
            search.run(problem, best, lambda: True)
            return best.loss

        yield "", lambda run=run, problem=problem: run(problem)
        yield from cases(problem, "positive negative", run)
        for number in NUMBERS[:2]:
            yield f"best={number}", lambda run=run, number=number, problem=problem: run(problem, number)
        for number in NUMBERS:
            changed = replace(problem, data=replace(data, weights=broken(np.ones(12), number)))
            yield f"weights={number}", lambda run=run, changed=changed: run(changed)


def routing() -> Iterator[tuple[str, Run]]:
    """All backends of the search over routings."""
    from mipforest.searches.routing.convex_backend import ConvexBackend
    from mipforest.searches.routing.feature_branching import FeatureBackend
    from mipforest.searches.routing.l1_simplex import L1Backend
    from mipforest.searches.routing.plunge import ConvexNodes
    from mipforest.searches.routing.search import RoutingSearch
    from mipforest.searches.routing.svm_backend import SvmBackend

    def run(
        nodes: object, kind: object, best: float = 100.0, gap: float = 1e-4, until: float | None = None
    ) -> float:
        search = RoutingSearch(
            kind(nodes), gap=gap, complete=lambda result: result.bound, propose=lambda _: INF,
        )  # fmt: skip
        return search.run(best, deadline=monotonic() + SECONDS if until is None else until).bound

    def plunged(nodes: object, kind: object, cutoff: float) -> int:
        backend = kind(nodes)
        node, stop = backend.first(), np.zeros(1, np.int64)
        for _ in range(5):
            found = backend.plunge(node, cutoff, 20, stop)
            node = found.open[-1][1] if found.open else node
        return found.end

    at = X[:6]
    two = ConvexNodes(
        at, np.eye(2)[SIGN[:6]], np.ones(3), np.full(3, 10.0), 2, 1e-3, np.ones((1, 2)), False, None, INF
    )  # fmt: skip
    kinds = {
        SvmBackend: two,
        ConvexBackend: two,
        L1Backend: replace(two, l1=True),
        FeatureBackend: replace(two, budget=np.ones(3, np.int64)),
    }
    for kind, nodes in kinds.items():
        yield kind.__name__, lambda nodes=nodes, kind=kind: run(nodes, kind)
        fields = "X weight C bias_limit epsilon" + (" alpha" if nodes.budget is not None else "")
        for name, case in cases(
            nodes, fields + " kinks" * (kind is not SvmBackend), lambda it, k=kind: run(it, k)
        ):
            yield f"{kind.__name__} {name}", case
        for number in (LARGEST, 1e-300):
            least = {
                name: broken(getattr(nodes, name), number) for name in ("X", "weight", "C", "bias_limit")
            }
            yield f"{kind.__name__} all={number}", lambda it=least, n=nodes, k=kind: run(replace(n, **it), k)
        # A plunge takes its cutoff from the search, which has looked at it; it ends with any.
        for number in SETTINGS:
            yield (
                f"{kind.__name__} cutoff={number}",
                lambda n=nodes, k=kind, number=number: plunged(n, k, number),
            )
        for name in ("best", "gap", "until"):
            for number in SETTINGS:
                yield (
                    f"{kind.__name__} {name}={number}",
                    lambda nodes=nodes, kind=kind, name=name, number=number: run(
                        nodes, kind, **{name: number}
                    ),
                )


def main(name: str) -> None:
    """Run the cases of a search; print a line for each before it runs, and one for what came of it."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for case, run in globals()[name]():
        if not case.partition("=")[1]:
            run()  # compiled first: that would eat the deadline
        print(json.dumps({"case": case}), flush=True)
        try:
            print(json.dumps({"value": float(run())}), flush=True)
        except MipforestError as error:
            print(json.dumps({"refused": str(error)}), flush=True)
        except Exception as error:
            print(json.dumps({"failed": f"{type(error).__name__}: {error}"}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
