"""The checked outcome of solving a problem."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mipforest.conflicts import Conflict
from mipforest.data import Dataset
from mipforest.formatting import duration, is_rounding, number, percent, value_text
from mipforest.problem.constraints import Constraint
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.worth import worth_in_words, worth_of
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.solution import Solution, Status, closed, gap_in_words, relative_gap
from mipforest.survival import SurvivalMeasures, survival_measures
from mipforest.trees import (
    ClassMeasures,
    LabelMeasures,
    Predictor,
    PrescriptionMeasures,
    RegressionMeasures,
    Reliability,
    RewardMeasures,
    Tree,
    TreeSet,
    calibration_measures,
    class_measures,
    measures_of_targets,
    prescription_measures,
    regression_measures,
    reward_measures,
)

if TYPE_CHECKING:
    from mipforest.trees import Picture

_WITHOUT_GAP = {
    "infeasible": "infeasible: no tree satisfies all constraints, proven",
    "unbounded": "unbounded: the objective improves without end, proven",
    "infeasible_or_unbounded": "infeasible or unbounded",
}
_STOPPED = {
    "time_limit": "stopped at the time limit",
    "interrupted": "stopped by the user",
    "limit": "stopped at a limit of the solver",
    "best_found": "best found",
    "error": "the solver gave up",
    "imported": "read from a file",
}

#: Size of the picture of a solve's progress in inches.
_PROGRESS = (6.4, 3.2)


@dataclass(frozen=True)
class Price:
    """What a constraint costs.

    Attributes
    ----------
    objective, bound
        Of the best tree that was found without the constraint, and the proven bound there; ``None`` where unknown.
    least, most
        What the constraint costs at least and at most, in units of the objective: both the same where the optimum with
        it and that without it are proven. ``most`` is ``None`` without a bound.
    """

    objective: float | None
    bound: float | None
    least: float
    most: float | None

    @classmethod
    def of(cls, result: Result, without: Result) -> Price:
        """Compare a result with that of the same problem without the constraint."""
        sign = -1.0 if result.problem.model.matrix().maximize else 1.0
        least = most = None
        if np.isfinite(without.objective) and np.isfinite(result.bound):
            least = sign * (result.bound - without.objective)
        if np.isfinite(without.bound):
            most = sign * (result.objective - without.bound)
        proven = all(one.solution.status is Status.OPTIMAL for one in (result, without))
        if proven:
            least = most = sign * (result.objective - without.objective)
        objective, bound = (
            float(value) if np.isfinite(value) else None for value in (without.objective, without.bound)
        )
        return cls(objective, bound, max(0.0, least or 0.0), None if most is None else max(0.0, most))


@dataclass(frozen=True)
class Held:
    """A constraint and what it is on the tree that was found.

    Attributes
    ----------
    constraint
        The constraint.
    value, limit, binds
        As for :class:`~mipforest.problem.constraints.Holding`; ``None`` without a tree.
    price
        What it costs, where that was asked for.
    """

    constraint: Constraint
    value: float | None
    limit: float | None
    binds: bool | None
    price: Price | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it, with its words."""
        return {
            **self.constraint.to_dict(),
            "words": str(self.constraint),
            "value": self.value,
            "limit": self.limit,
            "binds": self.binds,
            "share": self.constraint.of_shares,
            **({} if self.price is None else {"price": asdict(self.price)}),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Outcome of :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>`.

    Attributes
    ----------
    problem
        What was solved.
    solution
        What the solver gave, by variable block.
    tree
        The tree to predict with, taking samples in original units; ``None`` if no solution was found.
    solved_tree
        The tree of the solver's solution, whose objective is checked. It differs from ``tree`` where the
        formulation refines it.
    evaluated_objective
        The tree's objective from the definition, without the model (NaN without a tree).
    max_violation
        Largest violation of the model by the solution (NaN without one).
    failed_checks
        Why the answer is not verified; empty when it is.
    phase_seconds
        Seconds of wall time of each phase (preparation, starts, bounds, building, solving, checking); they do not
        overlap. Those of ``compile`` do not count against the time limit. Empty for a solution from elsewhere.
    conflict
        Of an infeasible problem: rows that contradict each other; ``None`` where none were found in time.
    trees
        The trees near the optimum, where they were asked for, with their objectives; ``None`` otherwise.
    prices
        What each constraint costs, of :func:`mipforest.problem.prices.priced`; empty unless asked for.
    """

    problem: ProblemData
    solution: Solution
    tree: Predictor | None
    solved_tree: Predictor | None
    evaluated_objective: float
    max_violation: float
    failed_checks: tuple[str, ...]
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    conflict: Conflict | None = None
    trees: TreeSet | None = None
    prices: tuple[Price | None, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether the tree's objective by the definition equals the solver's, at a feasible point."""
        return self.tree is not None and not self.failed_checks

    @property
    def objective(self) -> float:
        """The solver's objective."""
        return self.solution.objective

    @property
    def bound(self) -> float:
        """Proven bound on the optimal value."""
        return self.solution.bound

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        return self.solution.gap

    @property
    def status(self) -> str:
        """Why the solver stopped."""
        return str(self.solution.status)

    @cached_property
    def bound_for(self) -> str | None:
        """What the bound is proven for; ``None`` where it is infinite.

        ``"definition"``: no tree is better by the definition of the model. ``"constants"``: no tree that the variant's
        constants leave is; they may cut off better ones.
        """
        if not np.isfinite(self.bound):
            return None
        return self._claim()

    @cached_property
    def proven_for(self) -> str | None:
        """What the outcome, an optimum or infeasibility, is proven for, as for :attr:`bound_for`.

        ``None`` where nothing is: the solver stopped before, or the tree is not verified.
        """
        if self.solution.status is Status.INFEASIBLE:
            return self._claim()
        return self._claim() if self.solution.status is Status.OPTIMAL and self.verified else None

    def _claim(self) -> str:
        if self.bound <= self.problem.least_objective():
            return "definition"  # whatever the constants, no tree is better
        problem = self.problem
        value = problem.value_below(self.objective) if self.tree is not None else np.inf
        proven = problem.formulation.constants_proven(problem.instance, value, problem.changes())
        return "definition" if proven else "constants"

    @property
    def features_used(self) -> tuple[str, ...]:
        """Names of the features with a non-zero weight somewhere in the tree, linear leaves included."""
        if self.tree is None:
            return ()
        return tuple(self.tree.feature_names[j] for j in self.tree.features_used().overall)

    @cached_property
    def constraints(self) -> tuple[Held, ...]:
        """Each constraint that ``problem.constrain`` added: its value on the tree, its limit, and whether it binds."""
        data, tree, constraints = self.problem.data, self.tree, self.problem.constraints
        return tuple(
            Held(own, None, None, None) if tree is None else Held(own, *own.holds(tree, data)[:3], price)
            for own, price in zip(constraints, self.prices or [None] * len(constraints), strict=True)
        )

    def __repr__(self) -> str:
        return f"Result({self.problem.name_in_words}: {self._state()})"

    def _state(self) -> str:
        """Return status, objective, bound and gap in words."""
        claim = " for the paper's constants" if self.proven_for == "constants" else ""
        if self.tree is None:
            return f"{self.status}{claim}, no tree"
        numbers = f"objective {value_text(self.objective, self.bound)}, bound {value_text(self.bound, self.objective)}"
        numbers += f", gap {gap_in_words(self.objective, self.bound)}"
        numbers += "" if self.verified else ", not verified"
        if self.problem.as_built.objective_replaced() and not np.isfinite(self.bound):
            variant = self.problem.formulation.variant
            numbers += f"; variant {variant} proves no bound on the objective as it was changed"
        return f"{self.status}{claim}, {numbers}"

    def _repr_html_(self) -> str:
        if self.tree is None:
            return f"<p>{escape(repr(self))}</p>"
        found = {"worth": self._worth, "data": {"target": self.problem.data.target}}
        lines = "<br>".join(escape(f"{name}: {text}") for name, text in worth_in_words(found))
        return f"<p>{escape(repr(self))}</p><p>{lines}</p>{self.plot()._repr_svg_()}"

    @cached_property
    def _worth(self) -> dict[str, Any] | None:
        return self.worth()

    def worth(self, test: Dataset | None = None) -> dict[str, Any] | None:
        """Compare the tree with one prediction for all samples, and with CART of the same depth.

        Parameters
        ----------
        test
            Data not seen in training.

        Returns
        -------
        dict or None
            See :func:`~mipforest.problem.worth.worth_of`; ``None`` without a tree. CART is grown for it. A score card
            is compared with CART of as many levels as the card has rules, at most five.
        """
        if self.tree is None:
            return None
        depth = self.problem.topology.depth
        if not self.tree.is_tree:
            depth = min(max(len(self.tree.features_used().per_node[0]), 1), 5)
        by_errors = self.problem.formulation.tunes_by is None
        grow = not self.problem.budget.stopped  # who stopped it does not wait for more
        found = worth_of(self.tree, depth, self.problem.data, test, grow=grow, by_errors=by_errors)
        return _for_json(found)  # type: ignore[no-any-return]

    def plot(self, *, max_terms: int = 3) -> Picture:
        """Draw the tree with its training samples at each node; see :func:`~mipforest.trees.plot_tree`.

        Raises
        ------
        ValueError
            If the solve ended without a tree.
        """
        if self.tree is None:
            raise ValueError(f"there is no tree to draw: the solve ended with the status {self.status}")
        data = self.problem.data
        if not isinstance(self.tree, Tree):
            return self.tree.plot(data.X_raw, data.labels, max_terms=max_terms, training=True)
        from mipforest.trees import plot_tree  # loads matplotlib

        weights = data.weights if data.weighted else None
        drawn = plot_tree(
            self.tree, data.X_raw, data.labels, max_terms=max_terms, training=True, weights=weights
        )
        return cast("Picture", drawn)

    def plot_progress(self) -> Picture:
        """Draw incumbent and bound over the seconds of the solve; where neither is known it says so."""
        from mipforest.trees.plot import new_figure  # loads matplotlib

        picture = new_figure(*_PROGRESS, layout="constrained")
        axes = picture.subplots()
        events = self.solution.events
        end = max([self.solution.seconds, *(event.seconds for event in events)])
        seconds = [*(event.seconds for event in events), end]
        for name, label, style in (("objective", "incumbent", "-"), ("bound", "bound", "--")):
            values = np.array([getattr(moment, name) for moment in (*events, self.solution)])
            # What is not known yet is infinite, and breaks the line.
            values = np.where(np.isfinite(values), values, np.nan)
            (line,) = axes.step(seconds, values, style, where="post", label=label)
            line.set(marker="o", markevery=[-1], clip_on=False)
        if any(np.isfinite(line.get_ydata()).any() for line in axes.lines):
            axes.legend(frameon=False)
        else:
            axes.text(0.5, 0.5, "no tree and no bound is known", ha="center", transform=axes.transAxes)
        axes.set(xlabel="seconds", ylabel="objective", xlim=(0.0, end or 1.0))
        axes.set_title(self._state(), fontsize=9, loc="left", parse_math=False)
        return picture

    def measures(self, data: Dataset) -> dict[str, Any]:
        """Measure how well the tree predicts a data set; all measures are NaN without a tree.

        Returns
        -------
        dict
            All with the data's weights of samples, as scikit-learn's with ``sample_weight``.

            Of a classification, ``accuracy`` and ``balanced_accuracy``, shares between 0 and 1. The latter is
            the mean, over the classes that occur in the data, of the share of a class's samples that are
            predicted right. What gives probabilities also has ``auc``, ``brier_score``, ``log_loss`` and
            ``reliability``, which compare them with the classes (see :func:`~mipforest.trees.calibration_measures`).

            Of a regression, ``r2``, ``mse`` and ``mae``. Targets of a data set are in original units, and so
            are predictions, however a model scales targets inside: ``mae`` is in units of the target, ``mse``
            in their square. Where the targets are constant, ``r2`` is 1 if all predictions are exact, else 0
            (see :func:`~mipforest.trees.regression_measures`).

            Of several numbers the means of these over the targets; of several labels those of
            :class:`~mipforest.trees.LabelMeasures`.

            Of hazard ratios those of :class:`~mipforest.survival.SurvivalMeasures` in place of these. Of a
            prescription, those of :class:`~mipforest.trees.PrescriptionMeasures`; of a policy, those of
            :class:`~mipforest.trees.RewardMeasures`.
        """
        if data.rewards is not None:
            if self.tree is None:
                return dict.fromkeys(RewardMeasures._fields, np.nan)
            decided = self.tree.predict(data.X_raw).astype(np.int64)
            return reward_measures(data.rewards, decided, data.weights)._asdict()
        if data.targets:
            return self._measures_of_targets(data)
        if data.followed is not None:
            return self._survival_measures(data)
        if data.task == "regression":
            return self._regression_measures(data)
        if data.treatments is not None:
            if self.tree is None:
                return dict.fromkeys(PrescriptionMeasures._fields, np.nan)
            predicted = self.tree.predict(data.X_raw).astype(np.int64), self.tree.predict_outcomes(data.X_raw)
            y = np.asarray(data.y, dtype=np.float64)
            return prescription_measures(y, data.treatments, *predicted, data.weights)._asdict()
        if self.tree is None:
            return dict.fromkeys(ClassMeasures._fields, np.nan)
        weights = data.weights if data.weighted else None
        found = class_measures(data.y, self.tree.predict(data.X_raw), weights)._asdict()
        if self.tree.gives_probabilities and len(self.tree.classes) == 2:
            found |= calibration_measures(data.y, self.tree.predict_proba(data.X_raw), weights)._asdict()
        return found

    def _survival_measures(self, data: Dataset) -> dict[str, float]:
        train = self.problem.data
        if self.tree is None or data.followed is None or train.followed is None:
            return dict.fromkeys(SurvivalMeasures._fields, np.nan)
        assert train.baseline_hazard is not None
        ratio = np.asarray(self.tree.predict(data.X_raw), dtype=np.float64)
        return survival_measures(data.followed, ratio, train.baseline_hazard, train.followed)._asdict()

    def _measures_of_targets(self, data: Dataset) -> dict[str, float]:
        labels = bool(data.target_classes)
        if self.tree is None:
            return dict.fromkeys((LabelMeasures if labels else RegressionMeasures)._fields, np.nan)
        predicted = self.tree.predict(data.X_raw)
        return measures_of_targets(data.y, predicted, data.weights, labels=labels)._asdict()

    def _regression_measures(self, data: Dataset) -> dict[str, float]:
        if self.tree is None:
            return dict.fromkeys(RegressionMeasures._fields, np.nan)
        predicted = np.asarray(self.tree.predict(data.X_raw), dtype=np.float64)
        return regression_measures(np.asarray(data.y, dtype=np.float64), predicted, data.weights)._asdict()

    def to_dict(self, test: Dataset | None = None) -> dict[str, Any]:
        """Return everything worth keeping, ready for JSON (NaN and infinities become ``None``).

        Parameters
        ----------
        test
            Data not seen in training; adds their :meth:`measures`, as ``test_accuracy``, next to those of the
            training samples, ``train_accuracy``.

        Returns
        -------
        dict
            What the formulation measures and reports beyond that is in it too; ``reported`` names these
            entries, measures without ``train_`` and ``test_``.
        """
        problem, solution = self.problem, self.solution
        formulation, data = problem.formulation, problem.data
        found: dict[str, Any] = {
            "model": formulation.name,
            "variant": formulation.variant,
            "depth": problem.topology.depth,
            "parameters": formulation.parameters(),
            **({} if formulation.gives.is_tree else {"finds": formulation.gives.noun}),
            "data": {
                "name": data.name,
                "n": data.n,
                "p": data.p,
                "sha256": data.sha256,
                "scaling": data.encoding.scaling,
            },
            "model_statistics": asdict(problem.model.stats()) if formulation.has_rows else problem.size(),
            "solver": solution.solver,
            "solver_version": solution.solver_version,
            "bridges": list(solution.bridges),
            "status": self.status,
            "outcome": "",
            "objective": self.objective,
            "bound": self.bound,
            "proven_for": self.proven_for,
            "bound_for": self.bound_for,
            "bound_by": list(solution.bound_by) if np.isfinite(self.bound) else [],
            "gap": self.gap,
            "seconds": solution.seconds,
            "build_seconds": problem.build_seconds,
            "prepare_seconds": problem.prepare_seconds,
            "phase_seconds": dict(self.phase_seconds),
            "nodes": solution.nodes,
            "verified": self.verified,
            "doubts": list(self.failed_checks),
            "warnings": list(solution.warnings),
            "evaluated_objective": self.evaluated_objective,
            "max_violation": self.max_violation,
            "warm_start_objective": solution.start_objective,
            "features_used": list(self.features_used),
        }
        if self.constraints:
            found["constraints"] = [held.to_dict() for held in self.constraints]
        if self.conflict is not None:
            found["conflict"] = str(self.conflict)
        if self.trees is not None:
            found["trees"] = {
                "listed": len(self.trees),
                "found": self.trees.found,
                "counted": self.trees.counted,
                "within": self.trees.within,
                "complete": self.trees.complete,
                "in_words": self.trees.in_words(),
            }
        found |= self._all_measures(data, test)
        found["events"] = [
            {
                "seconds": event.seconds,
                "objective": event.objective,
                "bound": event.bound,
                "nodes": event.nodes,
            }
            for event in solution.events
        ]
        ready: dict[str, Any] = _for_json(found)
        ready["outcome"] = status_in_words(ready)
        return ready

    def _all_measures(self, train: Dataset, test: Dataset | None) -> dict[str, Any]:
        """Return the measures of any model, then what this formulation measures and reports, and the names of that."""
        formulation, instance = self.problem.formulation, self.problem.instance
        found: dict[str, Any] = {}
        reported: dict[str, None] = {}
        for part, data in (("train", train), ("test", test)):
            if data is None:
                continue
            own = {} if self.tree is None else formulation.measures(self.tree, data, instance)
            found |= {f"{part}_{name}": value for name, value in (self.measures(data) | own).items()}
            reported |= dict.fromkeys(own)
        if self.solved_tree is not None and self.tree is not None:
            report = formulation.report(self.solved_tree.unscaled(), self.tree.unscaled(), instance)
            found |= report | dict(self.solution.reported)
            reported |= dict.fromkeys((*report, *self.solution.reported))
        return found | {"reported": list(reported)}


def _for_json(value: Any) -> Any:
    """Replace NaN and infinities, which JSON cannot hold, by ``None``, and tables by lists."""
    if isinstance(value, Reliability):
        return _for_json(value.to_list())
    if isinstance(value, dict):
        return {key: _for_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def status_in_words(result: Mapping[str, Any]) -> str:
    """Describe why the solver stopped and what that means.

    Parameters
    ----------
    result
        The content of ``result.json``: ``status``, ``objective``, ``bound``, ``gap`` and ``proven_for`` are read.
    """
    status, gap = result["status"], result["gap"]
    numbers = (gap, result["objective"], result.get("bound"))
    within = "" if None in numbers else gap_in_words(result["objective"], result["bound"])
    proven_for = result["proven_for"]
    if status == "optimal":
        up_to = (
            "" if not within or closed(result["objective"], result["bound"]) else f" up to a gap of {within}"
        )
        if proven_for == "definition":
            return f"optimal, proven{up_to}"
        if proven_for == "constants":
            return f"optimal for the paper's constants{up_to}; not proven for the definition"
        return f"optimal by the solver{up_to}; the {result.get('finds', 'tree')} is not verified"
    if status == "infeasible" and proven_for == "constants":
        return "infeasible for the paper's constants; others may leave a tree"
    if status == "best_found" and result.get("starts"):
        starts = "from one start" if result["starts"] == 1 else f"the best of {result['starts']} starts"
        return f"local optimum, {starts}; without a bound"
    if status in _WITHOUT_GAP:
        return _WITHOUT_GAP[status]
    stopped = _STOPPED.get(status, status)
    if result["objective"] is None:
        return f"{stopped}, without a solution"
    if not within:
        return f"{stopped}, without a bound"
    best = _best_found(result)
    return f"{stopped}; {best}" if best else f"{stopped} with a gap of {within}"


def _best_found(result: Mapping[str, Any]) -> str:
    """Say so where the bound says nothing: it is 0, or farther from the objective than 0 is; else empty."""
    objective, bound = result["objective"], result["bound"]
    if closed(objective, bound) or relative_gap(objective, bound) < 1.0:
        return ""
    which = "no bound yet" if is_rounding(bound, objective) else "no useful bound yet"
    return f"{which}: this {result.get('finds', 'tree')} is the best found"


def search_in_words(result: Mapping[str, Any]) -> str:
    """Say what was searched, by whom, and what came of it beside the start.

    Parameters
    ----------
    result
        The content of ``result.json``.
    """
    if result["status"] == "imported":
        return f"nothing here: the solution is from {result['solver']}"
    found = str(result.get("finds", "tree"))
    what = f"{found}s" if "finds" in result else f"trees of depth {result['depth']}"
    via = f" via {' and '.join(result['bridges'])}" if result["bridges"] else ""
    text = f"{what}, by {result['solver']} {result['solver_version']}{via}, {result['nodes']} nodes"
    objective, start = result["objective"], result["warm_start_objective"]
    if objective is None or start is None:
        return text
    gained = abs(start - objective)
    if is_rounding(gained, objective, start) or gained <= FEASIBILITY_TOLERANCE * abs(start):
        return f"{text}; nothing better than the start was found"
    share = "" if is_rounding(start, objective) else f", improved by {percent(gained / abs(start))}"
    return f"{text}; the start had the objective {value_text(start, objective)}{share}"


def time_in_words(result: Mapping[str, Any]) -> str:
    """Say how long all of a result took, and how much of it the search did.

    Parameters
    ----------
    result
        The content of ``result.json``: the seconds are read.
    """
    phases = result.get("phase_seconds")
    known = phases if isinstance(phases, dict) else {}  # files of strangers may hold anything
    seconds = {name: spent for name, spent in known.items() if isinstance(spent, int | float)}
    whole = sum(seconds.values()) or result["prepare_seconds"] + result["build_seconds"] + result["seconds"]
    if result["status"] == "imported":
        return f"{duration(whole)} in all, to build the model and check the solution"
    compiled = f", {duration(seconds['compile'])} in compiling" if seconds.get("compile") else ""
    return f"{duration(whole)} in all, {duration(result['seconds'])} in the search{compiled}"


def proof_in_words(result: Mapping[str, Any]) -> str:
    """State objective and bound, and what their distance means.

    Parameters
    ----------
    result
        The content of ``result.json``: what :func:`status_in_words` reads, and ``bound_for``.
    """
    objective, bound, found = result["objective"], result["bound"], result.get("finds", "tree")
    if objective is None:
        if bound is not None:
            return f"bound {value_text(bound)}; there is no {found} yet"
        return (
            f"there is no {found}" if result["status"] == "infeasible" else f"nothing: no {found} was found"
        )
    value = value_text(objective, bound)
    if bound is None:
        return f"objective {value}; no bound: this {found} is the best found"
    beside = f"objective {value}, bound {value_text(bound, objective)}"
    constants = " for the paper's constants" if result.get("bound_for") == "constants" else ""
    if best := _best_found(result):
        return f"{beside}; {best}"
    within = gap_in_words(objective, bound)
    if result["status"] == "optimal":
        if not result["verified"]:
            return f"{beside}; nothing of the {found}, which is not verified"
        exactly = closed(objective, bound)
        return f"{beside}: no {found} of this model is better{constants}" + (
            "" if exactly else f" by more than {within.removeprefix('< ')}"
        )
    if closed(objective, bound):
        return f"{beside}; not called optimal, for the reason that is noted"
    return f"{beside}: a {found} may be better{constants}, by at most {within}"


#: Costs up to this are rounding: objectives are sums of losses of samples.
FREE = 1e-9


def held_in_words(held: Mapping[str, Any]) -> tuple[str, str, str]:
    """Say of a constraint what the tree has and what is allowed, whether it binds, and what it costs.

    Parameters
    ----------
    held
        An entry of ``constraints`` in ``result.json``.
    """
    if held["value"] is None:
        return "no tree", "", ""
    numbers = [f"{value:.1%}" if held["share"] else f"{value:g}" for value in (held["value"], held["limit"])]
    said = f"{numbers[0]}, limit {numbers[1]}"
    if (
        held["binds"] is None and held["value"] == held["limit"]
    ):  # a count of what breaks it, or of what it asks for
        said = "holds"
    binds = "" if held["binds"] is None else "binds" if held["binds"] else "does not bind"
    price = held.get("price")
    if price is None:
        return said, binds, ""
    least, most, other = price["least"], price["most"], price["objective"]
    if most is None:
        cost = f"costs at least {number(least)}" if least > 0 else "its cost is not known"
    elif most <= FREE:
        cost = "costs nothing"
    elif most - least <= FREE * max(1.0, most):
        cost = f"costs {number(most)}: without it the optimum is {number(other)}"
    elif least > 0:
        cost = f"costs {number(least)} to {number(most)}"
    else:
        cost = f"costs at most {number(most)}"
    return said, binds, cost


def provers_in_words(result: Mapping[str, Any]) -> str:
    """Say what computed the bound, which no check of the tree covers; empty where there is none.

    Parameters
    ----------
    result
        The content of ``result.json``: ``bound_by``, ``solver`` and ``finds`` are read.
    """
    names = {
        "solver": str(result["solver"]),
        "exact-search": "the search before the solve",
        "definition": f"the definition, by which no {result.get('finds', 'tree')} has less",
    }
    by = [names[name] for name in result.get("bound_by", ()) if name in names]
    agree = ", which agree" if len(by) > 1 else ""
    listed = " and ".join(filter(None, (", ".join(by[:-1]), *by[-1:])))
    return f"bound computed by {listed}{agree}" if by else ""
