"""The exact searches of score cards: all sets of rules, with cuts or without, and models with growing tangents."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import combinations
from typing import Any, ClassVar, cast

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.cards import ScoreCard
from mipforest.heuristics.score_cards import CardProblem, Chosen, saturated
from mipforest.model import Values
from mipforest.problem.driver import Driver
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.repair import feasible_start, feasible_values
from mipforest.problem.structure import Structure
from mipforest.problem.tree_search import MATRIX_SOLVER, SearchResult, TreeSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.solution import Event, Progress, Solution, Status
from mipforest.solving import solve
from mipforest.special import expit, xlogy

#: Steps, one sample moved from a cell to another, beyond which an enumeration does not end: hours at 2 ns each.
MAX_STEPS = 1e13

#: Sweeps of samples between two looks at the clock, as steps.
STEPS_PER_CALL = 3e7

#: Rules of a card that are enumerated: cells double with each. Of cuts, which are many more.
MAX_RULES, MAX_CUTS = 8, 4

#: Weight of all samples up to which there is a table of logarithms: 80 MB.
MAX_WEIGHT = 1e7

#: Share of the gap at which a model of a cut loop counts as solved; the rest is for its tangents.
OWN_GAP = 0.5

#: Tangents that a cut loop adds differ at least this much from those that are there, in the margin that they touch at.
NEW_MARGIN = 1e-6


class CardEnumeration(TreeSearch):
    """All cards of a few rules, by the method that the problem asks for.

    Where every feature has one rule, all sets of rules are tried (:class:`_Supports`); where rules are cuts of
    features, all cuts but one, while the last one is swept (:class:`_Cuts`).
    """

    name: ClassVar[str] = "card-enumeration"
    summary: ClassVar[str] = (
        "exact search of risk scores: all sets of rules over binary features; else cuts tried, the last one swept"
    )
    structures: ClassVar[tuple[type[Structure], ...]] = (CardProblem,)
    limits_in_words: ClassVar[str] = "at most four rules that are cuts, or eight of features of two values"
    preferred: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    def refusal(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem; empty where it does."""
        if reason := super().refusal(problem):
            return reason
        cards = problem.structure
        assert isinstance(cards, CardProblem)
        weights = problem.data.weights
        if (weights != np.rint(weights)).any() or weights.sum() > MAX_WEIGHT:
            return (
                f"it counts samples, so that weights have to be whole numbers of a sum up to {MAX_WEIGHT:.0e}"
            )
        method = _method_for(cards)
        reason = method.why_not(cards)
        if reason:
            return reason
        steps = method.steps(cards)
        return f"about {steps:.1g} steps would not end in hours" if steps > MAX_STEPS else ""

    def search(
        self, problem: ProblemData, settings: SolveSettings, *, start: Any, on_progress: Progress | None
    ) -> SearchResult:
        """Search for the best card; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        from mipforest.searches import compile_by

        cards = problem.structure
        assert isinstance(cards, CardProblem)  # ``refusal`` has seen to it
        method = _method_for(cards)
        tiny = method.tiny()
        compile_by(
            lambda: method.run(tiny, _Incumbent(tiny, ()), lambda: False), problem.budget, self.name, 4
        )
        driver = Driver(self, problem, settings, on_progress)
        best = _Incumbent(cards, () if start is None else cards.chosen(start)[0])
        least = float(saturated(cards.positive, cards.negative).sum())

        def should_stop() -> bool:
            return driver.report(least, best.done, value=best.loss) or driver.over()

        ended = settings.time_limit != 0 and method.run(cards, best, should_stop)
        driver.offer(cards.card(best.chosen) if best.chosen or not cards.exact else None)
        from mipforest.searches.cards.enumeration import CLOSE

        bound = driver.value * (1 - CLOSE) if ended else least
        return driver.result(bound, ended=ended, nodes=best.done, message=best.message(ended=ended))


class _Method(ABC):
    """One method to search all cards."""

    @abstractmethod
    def why_not(self, cards: CardProblem) -> str:
        """Say why the method does not take the rules of a problem; empty where it does."""

    @abstractmethod
    def steps(self, cards: CardProblem) -> float:
        """Return how many steps the method takes at most."""

    @abstractmethod
    def run(self, cards: CardProblem, best: _Incumbent, should_stop: Callable[[], bool]) -> bool:
        """Search all cards, writing better ones; return whether it came to the end."""

    @abstractmethod
    def tiny(self) -> CardProblem:
        """Return a problem on which its kernels compile."""


def _method_for(cards: CardProblem) -> _Method:
    """Return the method that takes the rules of a problem, or the one that would take them if they were fewer."""
    supports, cuts = _Supports(), _Cuts()
    if cards.n_rules > cards.n_features:
        return cuts
    # With features of one value, more rules may be asked for than there are.
    return cuts if cards.n_rules < cards.n_features and supports.why_not(cards) else supports


class _Incumbent:
    """The best card of a search, as kernels read and write it, and what has been done."""

    def __init__(self, cards: CardProblem, chosen: Chosen) -> None:
        self.chosen = chosen
        complete = len(chosen) == cards.rules or not cards.exact
        self.loss = cards.least_loss(chosen) if complete else np.inf
        self.done = self.boxes = 0

    def update(self, loss: float, rules: IntArray, points: IntArray) -> None:
        """Take over what a kernel has found, if it is better."""
        if loss < self.loss:
            self.loss = loss
            self.chosen = tuple((int(k), int(s)) for k, s in zip(rules, points, strict=True) if s and k >= 0)

    def message(self, *, ended: bool) -> str:
        """Say what was done."""
        known = "the bound is of the log-loss itself"
        return f"{known}; {self.boxes} boxes of points were searched" if ended else known


def _arguments(cards: CardProblem, best: _Incumbent) -> tuple[FloatArray, FloatArray, float]:
    """Return x log x up to the weight of all samples, the (K, 2) points of each rule, and the log-odds of all.

    Raises
    ------
    DataValueError
        If a weight is no number of samples that can be counted, or the best loss no number.
    """
    from mipforest.searches.numbers import require

    require("score cards", "the best loss", best.loss, most=math.inf)
    for name, weights in (
        ("positive", cards.positive),
        ("negative", cards.negative),
        ("weights", cards.data.weights),
    ):
        require("score cards", name, weights, least=0.0, most=MAX_WEIGHT)
    of_one, of_zero = cards.total_weights
    counts = np.arange(round(of_one + of_zero) + 1.0)
    table = xlogy(counts, counts)
    ranges = np.column_stack([np.where(cards.down, cards.least, 0), np.where(cards.up, cards.most, 0)])
    return table, ranges.astype(float), math.log(of_one / of_zero)


class _Cuts(_Method):
    """All cards of at most four rules that are cuts of features; the fourth one encloses a search of three."""

    def why_not(self, cards: CardProblem) -> str:
        rules = min(cards.rules, cards.n_features)
        return (
            ""
            if rules <= MAX_CUTS
            else f"it takes at most {MAX_CUTS} rules that are cuts, and these are {rules}"
        )

    def steps(self, cards: CardProblem) -> float:
        """Return the cuts that are tried together, times the samples."""
        rules = min(cards.rules, cards.n_features)
        # Sums of products of the sizes of 0, 1, ... features; the largest one is swept.
        products, total = np.eye(1, rules)[0], 0.0
        for size in np.sort(np.bincount(cards.feature[cards.up | cards.down])):
            total += products[-1]
            products[1:] += size * products[:-1]
        return total * sum(cards.total_weights)

    def run(self, cards: CardProblem, best: _Incumbent, should_stop: Callable[[], bool]) -> bool:
        """Search the sets of features; with fewer rules than three, some of them are no features."""
        from mipforest.searches.cards.enumeration import (
            Cards,
            CardWorkspace,
            Cells,
            Cuts,
            Features,
            search_features,
        )

        table, ranges, log_odds = _arguments(cards, best)
        # Whole weights are repeated samples.
        each = np.repeat(np.arange(cards.data.n), np.rint(cards.data.weights).astype(np.int64))
        ranks, y, n = cards.ranks[cards.of_sample[each]], np.asarray(cards.data.y, np.int64)[each], len(each)
        ranges = np.vstack([ranges, np.zeros((1, 2))])
        needed = cards.up | cards.down
        features = []
        for j in np.unique(cards.feature):
            own = np.flatnonzero((cards.feature == j) & needed)
            if len(own):
                features.append((np.ascontiguousarray(ranks[:, j]), cards.cut[own], own))
        rules = min(cards.rules, len(features))
        T = max(3, rules)
        chosen, points = np.zeros(T, np.int64), np.zeros(T, np.int64)
        numbers = np.concatenate([*(own for _, _, own in features), [cards.n_rules]]).astype(np.int64)
        starts = np.cumsum([0, *(len(own) for _, _, own in features)])
        # A rule that never holds stands for none, behind all others.
        nothing = (np.zeros(n, np.int64), np.zeros(1, np.int64), len(numbers) - 1)
        wanted = Cards(
            ranges[numbers], cards.exact, log_odds, table, np.diff(table), chosen, points, CardWorkspace.of(T)
        )
        cells = Cells.of(n, T, cards.n_rules)
        max_sweeps = max(1, int(STEPS_PER_CALL / n))
        for group in combinations(range(len(features)), rules):
            ordered = sorted(group, key=lambda f: len(features[f][1]))
            parts = [(*features[f][:2], int(starts[f])) for f in ordered]
            parts = [nothing] * (4 - rules) + parts
            order = np.argsort(parts[3][0], kind="stable")
            outer, first, second, third = (Cuts(held[order], above, at) for held, above, at in parts)
            by_second = np.argsort(second.ranks, kind="stable")
            slack, fixed = -np.inf, np.zeros(n, np.int64)
            for k, cut in enumerate(outer.above):
                before, fixed = fixed, 8 * (outer.ranks > cut)
                slack -= (fixed != before).sum() * (math.log(n) + 1.0)
                if k and slack > best.loss:
                    continue
                tried = Features(y[order], first, second, third, by_second, fixed, outer.first + k)
                slack, at = np.inf, 0
                while at < len(first.above):
                    if should_stop():
                        return False
                    loss, at, sat, sweeps, boxes = search_features(
                        tried, wanted, best.loss, at, max_sweeps, cells
                    )
                    slack = min(slack, sat)
                    best.update(loss, np.where(numbers[chosen] < cards.n_rules, numbers[chosen], -1), points)
                    best.done, best.boxes = best.done + sweeps, best.boxes + boxes
        return True

    def tiny(self) -> CardProblem:
        X = _BINARY.copy()
        X[0] = 2.0
        return _tiny(X)


class _Supports(_Method):
    """All sets of rules, where every feature has one rule."""

    def why_not(self, cards: CardProblem) -> str:
        many = f"it takes at most {MAX_RULES} rules, and these are {cards.rules}"
        return "" if cards.rules <= MAX_RULES else many

    def steps(self, cards: CardProblem) -> float:
        """Return the number of sets of rules, times the distinct samples."""
        return float(math.comb(cards.n_rules, min(cards.rules, cards.n_rules))) * len(cards.ranks)

    def run(self, cards: CardProblem, best: _Incumbent, should_stop: Callable[[], bool]) -> bool:
        """Search the sets of rules, by their first two."""
        from mipforest.searches.cards.enumeration import Cards, CardWorkspace, Rules, search_supports

        table, ranges, log_odds = _arguments(cards, best)
        kept = np.flatnonzero(cards.up | cards.down)
        T = min(cards.rules, len(kept))
        if T == 0:
            return True
        holds = np.array([cards.holds(int(k)) for k in kept])
        ones = np.concatenate([np.flatnonzero(row) for row in holds])
        ends = np.cumsum([0, *holds.sum(axis=1)])
        P, Q = cards.positive.astype(np.int64), cards.negative.astype(np.int64)
        chosen, points, rules = np.zeros((3, T), np.int64)
        codes, counts = np.zeros((T, len(P)), np.int64), np.zeros((4, 1 << (T - 1)), np.int64)
        wanted = Cards(
            ranges[kept], cards.exact, log_odds, table, np.diff(table), chosen, points, CardWorkspace.of(T)
        )
        of = Rules(holds, ones, ends, P, Q)
        for begin in combinations(range(len(kept)), min(2, T - 1)):
            if should_stop():
                return False
            loss, supports, boxes = search_supports(
                of, wanted, np.array(begin, np.int64), best.loss, codes, counts, rules
            )
            best.update(loss, kept[chosen], points)
            best.done, best.boxes = best.done + supports, best.boxes + boxes
        return True

    def tiny(self) -> CardProblem:
        return _tiny(_BINARY)


def _tiny(X: FloatArray) -> CardProblem:
    """Return a problem on which kernels compile."""
    from mipforest.data import Dataset

    data = Dataset.from_arrays(X, [0, 1, 1, 0, 1], scaling="none")
    return CardProblem.of(data, rules=2, least=-1, most=1)


#: Samples of features of two values.
_BINARY = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 0]], dtype=float)


class CutLoop(TreeSearch):
    """Models with tangents, solved in turn, with more at the margins of each card until bound and value meet."""

    name: ClassVar[str] = "cut-loop"
    summary: ClassVar[str] = "mixed-integer models with more and more tangents, until the log-loss is proven"
    structures: ClassVar[tuple[type[Structure], ...]] = (CardProblem,)
    limits_in_words: ClassVar[str] = "of variant tight, any number of rules, also with added constraints"
    takes_weights: ClassVar[bool] = True

    def reduces(self, problem: ProblemData, settings: SolveSettings) -> bool:  # noqa: ARG002
        """Return ``False``: it reads the rows of constraints."""
        return False

    def objection(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem as it is now; rows that were added are in its models too."""
        if problem.as_built.objective_replaced():
            return "the objective was replaced, and its bound is that of the log-loss"
        if without_rows := [one for one in problem.constraints if not one.has_rows]:
            return f"it reads rows, and a function of the card has none: {'; '.join(map(str, without_rows))}"
        return self.refusal(problem)

    def refusal(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem; empty where it does."""
        if reason := super().refusal(problem):
            return reason
        if problem.unfinished or "margin" not in problem.model.variables:
            return "it adds tangents to the margins of variant tight"
        return ""

    def search(
        self, problem: ProblemData, settings: SolveSettings, *, start: Any, on_progress: Progress | None
    ) -> SearchResult:
        """Search for the best card; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        driver = Driver(self, problem, settings, on_progress)
        loop, status = _Tangents(driver, start), None

        def report(event: Event) -> bool:
            return driver.report(max(loop.bound, event.bound), loop.rounds)

        while not driver.over():
            found = solve(
                loop.model,
                get_solver(MATRIX_SOLVER),
                time_limit=None if math.isinf(driver.left) else driver.left,
                gap=settings.gap * OWN_GAP,
                threads=settings.threads,
                start=loop.point() or None,
                on_progress=report,
            )
            proven = loop.update(found)
            if found.status is Status.INFEASIBLE or not found.found:
                status = found.status
                break
            if driver.closed(loop.bound):
                break
            if found.status is not Status.OPTIMAL or not proven:
                status = found.status if found.status is not Status.OPTIMAL else Status.LIMIT
                break
        message = f"{loop.rounds} models were solved"
        return driver.result(loop.bound, ended=False, nodes=loop.rounds, status=status, message=message)


class _Tangents:
    """The models of a cut loop: the bound, and the margins that tangents touch at; cards go to the driver."""

    def __init__(self, driver: Driver, start: ScoreCard | None) -> None:
        self._driver, self._problem = driver, driver.problem
        self.model, self.bound = self._problem.model.copy(), self._problem.formulation.least_objective
        self.rounds, self._touched = 0, list[float]()
        values = None if start is None else feasible_start(self._problem, start)[0]
        if values is not None:
            self._offer(cast(ScoreCard, self._problem.formulation.decode(values, self._problem.instance)))

    def _offer(self, card: ScoreCard) -> None:
        """Offer a card that satisfies all rows, also those of variables that were added by hand."""
        value = self._problem.formulation.evaluate(card, self._problem.instance)
        if value < self._driver.value and feasible_values(self._problem, card) is not None:
            self._driver.offer(card)

    def point(self) -> Values:
        """Return the values of the best card, with its log-loss in the place of tangents."""
        best = self._driver.incumbent.tree
        values = None if best is None else feasible_values(self._problem, best)
        return values or {}

    def update(self, found: Solution) -> bool:
        """Take over what a model's solution gives, and add tangents at its margins; return whether some are new."""
        self.rounds += 1
        self.bound = max(self.bound, found.bound)
        if not found.found:
            return False
        formulation, instance = self._problem.formulation, self._problem.instance
        card = formulation.decode(found.values, instance)
        self._offer(formulation.relabel(card, instance))
        self._offer(cast(ScoreCard, card))
        best = self._driver.incumbent.tree
        margins = np.concatenate(
            [formulation.encode(part, instance)["margin"] for part in (card, best) if part is not None]
        )
        new = [m for m in np.unique(margins) if all(abs(m - known) > NEW_MARGIN for known in self._touched)]
        for m in new:
            slope = -expit(-m)
            height = np.logaddexp(0.0, -m) - slope * m
            name = f"tangent_{len(self._touched)}"
            self.model.add(name, self.model["zeta"] >= height + slope * self.model["margin"])
            self._touched.append(float(m))
        return bool(new)
