"""The contract between mipforest and a tree search: a solver that sees the problem instead of its matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from math import inf
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data.target import SEVERAL
from mipforest.errors import NotAllowed, SolverUnavailable, Unsupported, known_name
from mipforest.model import Model
from mipforest.problem.operations import Operations
from mipforest.problem.problem_data import ProblemData, StartError
from mipforest.problem.structure import LabelSums, Structure, TreeCharges
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver, get_solver
from mipforest.solvers.solution import Event, Progress, Status
from mipforest.trees import Predictor

GROUP = "mipforest.searches"

#: Name that leaves the choice to the toolkit, and the matrix solver that it falls back on.
AUTO, MATRIX_SOLVER = "auto", "highs"

#: The search that improves trees of other searches.
LOCAL_SEARCH = "local-search"

#: Share of the time left, and most seconds, for a tree search whose tree is the start of a matrix solver.
START_SHARE, START_SECONDS = 0.1, 10.0

#: Share of the time left for a search that completes trees, before the matrix solver that has the rest.
COMPLETION_SHARE = 0.5

#: Why no tree search takes a problem to whose model something was added.
CHANGED = "the model was changed after it was built, and a tree search sees no rows"

#: Why a matrix solver takes a problem with rows that a search keeps by completing trees.
COMPLETED = "rows on labels of leaves, on where samples go or on thresholds were added"

#: Longest name of data in a certificate.
LONGEST_NAME = 200


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Outcome of a tree search.

    Attributes
    ----------
    tree
        Best tree found, for scaled features; ``None`` if there is none.
    bound
        Proven lower bound on the value of every tree, ``-inf`` of a search that proves nothing.
    status
        Why the search ended. Whether the tree is optimal follows from its value and the bound, and is decided for all
        searches in one place: :func:`mipforest.problem.proofs.judged`.
    nodes
        Steps of the search.
    events
        Progress, in order of time.
    warnings
        What the user should know.
    message
        The search's own last word.
    objective
        Value of the tree by the search, of a model without rows; NaN where the model tells it.
    reported
        What else the search found out, ready for JSON: part of the result.
    """

    tree: Predictor | None
    bound: float
    status: Status
    nodes: int = 0
    events: tuple[Event, ...] = ()
    warnings: tuple[str, ...] = ()
    message: str = ""
    objective: float = float("nan")
    reported: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ListedTrees:
    """The trees that a listing has found, the best first; see :meth:`TreeSearch.list_trees`.

    Attributes
    ----------
    chosen
        (m, |B|) threshold of each branch node among those of the structure, -1 where it does not split.
    label
        (m, |L|) label of each leaf, 0 where leaves predict numbers; leaves below a node that does not split are alike.
    value
        (m,) objectives.
    count
        Trees within the budget that were met.
    ended
        Whether nothing was stopped: no tree that is missing is better than one that is there.
    counted
        Whether those that were met are all.
    whole
        Whether all that were met are here.
    within_limits
        (m,) whether a tree is within the limits that were asked for, beyond doubt of rounding.
    """

    chosen: IntArray
    label: IntArray
    value: FloatArray
    count: int
    ended: bool
    counted: bool
    whole: bool
    within_limits: BoolArray


class SearchStart(NamedTuple):
    """A tree to start from, and what the search for it proves.

    Attributes
    ----------
    tree
        For scaled features; ``None`` without one.
    as_built
        Lower bound on the value of every tree of the problem as it was built.
    within
        The same of every tree within what was added since.
    """

    tree: Predictor | None
    as_built: float = -inf
    within: float = -inf


class TreeSearch(ABC):
    """A tree-search plug-in: one subclass each, found through the entry-point group ``mipforest.searches``.

    A search knows the structure of trees and sees no rows: it takes problems as they were built, and refuses those to
    which a user has added constraints, unless its :meth:`objection` reads them. Its tree is encoded into the model and
    checked as a solver's point is.
    """

    #: Name on the command line, where that of a matrix solver stands.
    name: ClassVar[str]
    #: One line that says what it is.
    summary: ClassVar[str]
    #: Structures that it takes: classes of what :attr:`~mipforest.problem.problem.Problem.structure` is.
    structures: ClassVar[tuple[type[Structure], ...]]
    #: Which of these it takes, in words, where it does not take all.
    limits_in_words: ClassVar[str] = ""
    #: What may stand behind a colon in its name, ``scipy:slsqp``, where it is one of several methods.
    methods: ClassVar[tuple[str, ...]] = ()
    #: Top-level module that must be installed, and what ``pip install`` takes to bring it.
    package: ClassVar[str] = "mipforest"
    install: ClassVar[str] = "mipforest"
    #: Whether it proves bounds; a search that does not never says "optimal".
    proves: ClassVar[bool] = True
    #: Whether nothing but rounding is between value and bound where nothing is left to search.
    complete: ClassVar[bool] = False
    #: Whether :class:`Auto` chooses it for every problem that it takes: it proves more than matrix solvers do.
    preferred: ClassVar[bool] = False
    #: Whether it multiplies losses by the samples' weights; problems with other weights than 1 are refused otherwise.
    takes_weights: ClassVar[bool] = False
    #: Whether it takes trees whose leaves predict several targets at once.
    takes_targets: ClassVar[bool] = False
    #: Whether it writes certificates; if not, why, where there is more to say.
    certifies: ClassVar[bool] = False
    why_no_certificate: ClassVar[str] = ""
    #: Whether it runs on the workers of a Dask cluster.
    takes_dask: ClassVar[bool] = False
    #: What ``solver_options`` may hold, by name with what it means: whole numbers, at least 0, unless a search checks
    #: them itself.
    options: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def available(cls) -> bool:
        """Return whether what it needs is installed (it is not imported)."""
        return find_spec(cls.package) is not None

    @classmethod
    def named(cls, inner: str) -> TreeSearch:
        """Return the search for a name with something behind a colon, empty where there is no colon.

        Raises
        ------
        SolverUnavailable
            If it knows nothing of that name.
        """
        if inner:
            raise SolverUnavailable(f"tree search {cls.name!r} has no methods: leave ':{inner}' out")
        return cls()

    def preferred_for(self, problem: ProblemData) -> bool:  # noqa: ARG002
        """Return whether :class:`Auto` chooses it for a problem that no preferred search takes.

        It takes the problem as it is now, and does better there than a matrix solver.
        """
        return False

    def version(self) -> str:
        """Return the version of what does the work."""
        return version(self.package)

    def names_in_certificate(self, problem: ProblemData) -> dict[str, Any]:
        """Return what the first line of a certificate calls a problem, and what wrote it."""
        formulation, data = problem.formulation, problem.data
        return {
            "model": formulation.name,
            "variant": formulation.variant,
            "parameters": formulation.parameters(),
            "data": data.name[:LONGEST_NAME],
            "rows": data.n,
            "program": f"mipforest {self.version()}",
        } | ({"forbidden": dict(problem.forbidden)} if problem.forbidden else {})

    @classmethod
    def is_made_for(cls, formulation: type[Operations]) -> bool:
        """Return whether it takes problems of a formulation, at least with some hyperparameters: by their structure."""
        kind = formulation.structure_type
        one = cls.takes_targets or formulation.task != SEVERAL
        return one and kind is not None and issubclass(kind, cls.structures)

    def refusal(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem as it was built; empty where it does.

        Here, and before all else that a search refuses: a problem of another structure.
        """
        structure = problem.structure
        if isinstance(structure, self.structures):
            T = len(problem.data.targets)
            one = f"its leaves predict one target, and those of {problem.formulation.name} {T} at once"
            return one if T and not self.takes_targets else ""
        taken = " or ".join(kind.words for kind in self.structures)
        limits = f" ({self.limits_in_words})" if self.limits_in_words else ""
        has = "no structure for searches, with these parameters" if structure is None else structure.words
        return f"it takes {taken}{limits}, and {problem.formulation.name} has {has}"

    @abstractmethod
    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Any,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for the best tree.

        Parameters
        ----------
        problem
            A problem that :meth:`refusal` has nothing against.
        settings
            Time limit, gap, threads and seed mean the same as for a solver.
        start
            A tree to begin with, for scaled features.
        on_progress
            Called with progress events; returning ``True`` ends the search, which keeps its best tree and its bound.
        """

    def refusal_to_list(self, problem: ProblemData) -> str:  # noqa: ARG002
        """Say why the search does not list the trees of a problem as it was built; empty where it does."""
        return "it finds one tree"

    def list_trees(
        self,
        problem: ProblemData,
        *,
        budget: float,
        most: int,
        shrink: bool,
        all_labels: bool,
        limits: LabelSums | None = None,
        columns: IntArray | None = None,
        stopped: Callable[[], bool],
    ) -> ListedTrees:
        """List all trees of a problem, as it was built, up to an objective value.

        Parameters
        ----------
        problem
            A problem that :meth:`refusal_to_list` has nothing against.
        budget
            Greatest objective; infinite for none.
        most
            Most trees, the best ones; at least 1.
        shrink
            Whether trees that are worse than so many others need not be counted.
        all_labels
            Whether leaves may have any label, in place of the best one.
        limits
            Limits on these labels: trees beyond them are left out.
        columns
            (p,) column of the table of each feature: features of one that part the samples of a node alike are one
            split. ``None`` where any two features are two.
        stopped
            Asked now and then whether to stop; what was found is returned then.
        """
        raise NotImplementedError(f"{self.name} lists no trees")

    def check_options(self, settings: SolveSettings) -> None:
        """Refuse options that the search does not take, and bridges.

        Raises
        ------
        NotAllowed
            Saying which it takes.
        """
        given = [*(name for name in settings.solver_options if name not in self.options), *settings.bridges]
        if given:
            own = "; ".join(f"{name}, {meaning}" for name, meaning in self.options.items())
            raise NotAllowed(
                f"{self.name} is a tree search and would not use {', '.join(given)}: "
                f"{f'its options are {own}; others' if own else 'options'} and bridges are for matrix solvers; "
                "leave them out, or choose one, such as highs, for a model that it takes"
            )
        for name, value in settings.solver_options.items():
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
                raise NotAllowed(f"{self.name}: option {name} is {value!r}; give a whole number, 0 or more")

    def objection(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem as it is now, with its changes; empty where it does."""
        if problem.changed() and not (problem.constraints and problem.is_stated):
            return CHANGED
        if problem.data.weighted and not self.takes_weights:
            return "it takes no sample weights"
        return self.refusal(problem) or (self.cannot_keep(problem) if problem.constraints else "")

    def cannot_keep(self, problem: ProblemData) -> str:
        """Say why the search does not keep the constraints of a problem that it takes without; empty where it does.

        Any search keeps features that no node may use, and limits on those that the tree uses (:meth:`reduces`).
        """
        others = [one for one in problem.constraints if not one.is_of_whole_tree]
        if others and not self.finds_within(problem):
            return (
                f"it keeps limits on the features of the whole tree, and not: {'; '.join(map(str, others))}"
            )
        structure = problem.structure
        if isinstance(structure, TreeCharges) and structure.estimates_all_features:
            return (
                "the estimates of its leaves are fitted to all features, and their fit is part of the model; a feature "
                "that is left out of the data is in no fit"
            )
        return ""

    def finds_within(self, problem: ProblemData) -> bool:  # noqa: ARG002
        """Return whether it looks for trees within constraints that it does not keep on its way.

        It has the best one of those that it comes across, and a bound that holds without these constraints, if any.
        """
        return False

    def reduces(self, problem: ProblemData, settings: SolveSettings) -> bool:  # noqa: ARG002
        """Return whether limits on features are kept by searches of problems whose samples are 0 in some of them.

        See :mod:`mipforest.problem.feature_limits`.
        """
        return True

    def takes(self, problem: ProblemData) -> bool:
        """Return whether the search takes a problem as it is now."""
        return not self.objection(problem)

    def start_for(self, problem: ProblemData, known: Predictor | None, *, seed: int) -> SearchStart:
        """Search for a share of the time for a tree that a matrix solver can start from.

        Where the search keeps all that was added, it searches within it. Otherwise the problem is searched as it was
        built: a tree that breaks what was added since is repaired as any other start.

        Parameters
        ----------
        problem
            The problem as it is now.
        known
            A tree to begin with.
        seed
            Seed of the search.

        Raises
        ------
        StartError
            If the search does not take the problem as it was built.
        """
        searched, budget = problem, problem.budget
        keeps = bool(problem.constraints) and self.takes(problem)
        if problem.changed() and not keeps:
            model = Model(problem.model.name)
            problem.formulation.declare(model, problem.instance)
            searched = replace(problem, model=model, constraints=())
        if reason := self.objection(searched):
            raise StartError(f"start {self.name!r}: {reason}; take another start")
        limit = budget.at_most(START_SECONDS, share=START_SHARE)
        if any(one.by_completion for one in searched.constraints):
            limit = budget.at_most(share=COMPLETION_SHARE)
        settings = SolveSettings(time_limit=limit, threads=1, seed=seed)
        found = self.search(searched, settings, start=known, on_progress=lambda _: budget.stopped)
        if keeps:
            return SearchStart(found.tree or known, within=found.bound)
        return SearchStart(found.tree or known, as_built=found.bound)

    def check(self, problem: ProblemData) -> None:
        """Refuse a problem that the search does not take.

        Raises
        ------
        Unsupported
            Saying why, and who takes it.
        """
        if reason := self.objection(problem):
            way = "use a matrix solver, such as {}"
            if not problem.formulation.has_rows:
                way = "build it anew, and state what you want by its parameters: it has no rows"
            raise Unsupported(
                f"{self.name} does not take this problem: {reason}",
                hint=way.format("solver='highs'"),
                option=way.format("--solver highs"),
            )


def check_settings(solver: Solver | TreeSearch | Auto, settings: SolveSettings) -> None:
    """Refuse options, a certificate and a cluster that cannot be, before anything is prepared or solved.

    Parameters
    ----------
    solver
        Who is to solve; of ``auto`` the one that it chooses is checked for the certificate and the cluster then, and
        its matrix solver has the options.
    settings
        What is asked of it.

    Raises
    ------
    Unsupported
        If the solver writes no certificate, or does not run on a cluster.
    NotAllowed
        If both are asked for; if the solver does not take an option, or a tree search a bridge; if the certificate's
        name does not end in
        ``.gz``, or its folder is not there.
    """
    if isinstance(solver, TreeSearch):
        solver.check_options(settings)
        if settings.isolate:
            raise NotAllowed(
                f"{solver.name} is a search of this package, and no solver that could run in a process of its own",
                hint="leave out isolate, or choose a matrix solver: highs, scip, gurobi",
                option="leave out --isolate, or choose a matrix solver: highs, scip, gurobi",
            )
    else:
        if isinstance(solver, Solver) or settings.solver_options:
            matrix_solver = get_solver(MATRIX_SOLVER) if isinstance(solver, Auto) else solver
            matrix_solver.check_options(settings.solver_options)
    certificate = settings.certificate
    if settings.dask is not None:
        _check_dask(solver, settings)
    if certificate is None:
        return
    if not (isinstance(solver, Auto) or (isinstance(solver, TreeSearch) and solver.certifies)):
        able = [name for name, search in search_classes().items() if search.certifies]
        reason = solver.why_no_certificate if isinstance(solver, TreeSearch) else ""
        raise Unsupported(
            f"{solver.name} writes no certificate{reason and f', as {reason}'}:",
            hint=f"use solver={' or '.join(map(repr, able))}",
            option=f"use --solver {' or '.join(able)}",
        )
    if certificate.suffix != ".gz":
        raise NotAllowed(
            f"the certificate {str(certificate)!r} is compressed; give it a name that ends in .gz"
        )
    if not certificate.absolute().parent.is_dir():
        raise NotAllowed(f"the certificate {str(certificate)!r} has no folder to be in; make it first")


def _check_dask(solver: Solver | TreeSearch | Auto, settings: SolveSettings) -> None:
    """Refuse a cluster for a solver that does not run on one, and together with a certificate."""
    if not (isinstance(solver, Auto) or (isinstance(solver, TreeSearch) and solver.takes_dask)):
        able = ", ".join(name for name, search in search_classes().items() if search.takes_dask)
        raise Unsupported(
            f"{solver.name} does not run on a Dask cluster; these do: {able}:",
            hint="leave dask out, or choose one of them that takes the problem",
            option="leave --dask out, or choose one of them that takes the problem",
        )
    if settings.certificate is not None:
        raise NotAllowed(
            "a certificate is written by one process, and the search was to run on a Dask cluster",
            hint="leave out certificate or dask",
            option="leave out --certificate or --dask",
        )


@cache
def search_classes() -> dict[str, type[TreeSearch]]:
    """Return all registered tree searches by name, installed or not, built in or from another package."""
    return {
        entry.name: entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


@cache
def get_search(name: str) -> TreeSearch:
    """Return a tree search by name, without loading the others.

    Raises
    ------
    SolverUnavailable
        If none has that name.
    """
    found = entry_points(group=GROUP, name=name)
    if not found:
        raise SolverUnavailable(f"no tree search named {name!r}; known: {', '.join(search_names())}")
    (entry,) = found
    search: TreeSearch = entry.load()()
    return search


@cache
def search_names() -> tuple[str, ...]:
    """Return the names of all registered tree searches, without loading them."""
    return tuple(sorted(entry_points(group=GROUP).names))


def is_search(name: str) -> bool:
    """Return whether a name is that of a registered tree search, or was once."""
    searches = search_names()
    return known_name(name.partition(":")[0], searches) in searches


def start_search(name: str, problem: ProblemData) -> TreeSearch | None:
    """Return the tree search that a start names; ``None`` where it is the formulation's own, or nothing of that name.

    Raises
    ------
    SolverUnavailable
        If what the search needs is not installed.
    """
    own = name in ("default", "none", *problem.formulation.starts)
    found = None if own or not is_search(name) else solver_or_search(name)
    return found if isinstance(found, TreeSearch) else None


class Auto:
    """The choice of solver that is left to the toolkit: the strongest route that is installed and takes the problem."""

    name = AUTO

    def takes(self, problem: ProblemData) -> bool:
        """Return whether a tree search is chosen for a problem as it is now, with default settings."""
        return isinstance(self.choose(problem, SolveSettings())[0], TreeSearch)

    def choose(self, problem: ProblemData, settings: SolveSettings) -> tuple[Solver | TreeSearch, str]:
        """Return who solves a problem as it is now, and why, in a few words.

        Parameters
        ----------
        problem
            The problem, with what a user has added to its model.
        settings
            Options and bridges are meant for a matrix solver.
        """
        if not problem.formulation.has_rows:
            return _smooth_search(problem), "the model is smooth, without rows"
        if settings.solver_options or settings.bridges:
            return get_solver(MATRIX_SOLVER), "solver options and bridges are for matrix solvers"
        if settings.time_limit == 0:
            return get_solver(MATRIX_SOLVER), "without time there is nothing to search"
        with problem.budget.loading():
            searches = search_classes()
        if problem.changed():
            if any(one.by_completion for one in problem.constraints):
                return get_solver(MATRIX_SOLVER), COMPLETED
            for plugin in searches.values():
                if not plugin.available():
                    continue
                search = plugin()
                if (search.preferred and search.takes(problem)) or search.preferred_for(problem):
                    return search, "the search keeps the constraints"
            return get_solver(MATRIX_SOLVER), CHANGED
        reasons = []
        for plugin in searches.values():
            if plugin.preferred and plugin.available():
                search = plugin()
                reason = search.objection(problem)
                if not reason:
                    return search, "an exact tree search takes this problem"
                # Of a search that is made for other structures there is no more to say.
                if search.is_made_for(type(problem.formulation)):
                    reasons.append(f"{search.name} does not take this problem: {reason}")
        for plugin in searches.values():
            if plugin.available() and (search := plugin()).preferred_for(problem):
                return search, "; ".join(reasons) or "stronger here than a matrix solver"
        return get_solver(MATRIX_SOLVER), "; ".join(reasons) or "no exact tree search takes this problem"

    def prover(self, problem: ProblemData) -> TreeSearch | None:
        """Return a search for the start of a matrix solver, to which more than constraints that it keeps was added.

        What it proves of the problem as it was built holds under what was added: that only leaves trees out.
        """
        if not problem.changed() or problem.as_built.added_terms().any or not problem.formulation.has_rows:
            return None
        for plugin in search_classes().values():
            if plugin.preferred and plugin.proves and plugin.available():
                search = plugin()
                if (search.takes_weights or not problem.data.weighted) and not search.refusal(problem):
                    return search
        return None


def _smooth_search(problem: ProblemData) -> TreeSearch:
    """Return the preferred search of a model without rows."""
    for plugin in search_classes().values():
        if plugin.preferred and plugin.available() and not (search := plugin()).refusal(problem):
            return search
    raise SolverUnavailable(
        f"no search is installed that takes {problem.formulation.name}, a smooth model without rows; install the "
        "package that it came with"
    )


def searching(solver: str | Solver | TreeSearch | Auto, settings: SolveSettings) -> TreeSearch | Auto | None:
    """Return who may search for the tree from the default start, ``None`` where nobody will: what to build for.

    Parameters
    ----------
    solver, settings
        Who is to solve the problem, and how.
    """
    default = isinstance(settings.start, str) and settings.start == "default"
    if not default or settings.solver_options or settings.bridges or settings.time_limit == 0:
        return None
    chosen = solver_or_search(solver) if isinstance(solver, str) else solver
    return None if isinstance(chosen, Solver) else chosen


def solver_or_search(name: str) -> Solver | TreeSearch | Auto:
    """Return a matrix solver or a tree search by name, in upper or lower case.

    Of ``auto`` it is the choice, made when a problem is there.

    Raises
    ------
    SolverUnavailable
        If neither has that name, or what it needs is not installed.
    """
    if name.lower() == AUTO:
        return Auto()
    searches = search_names()
    registered, _, inner = name.partition(":")
    registered = known_name(registered, searches)
    if registered not in searches:
        return get_solver(name, others=searches)
    plugin = search_classes()[registered]
    if not plugin.available():
        raise SolverUnavailable(
            f"tree search {registered!r} is not installed (no Python package {plugin.package!r}); "
            f"run: pip install {plugin.install}"
        )
    return plugin.named(inner)
