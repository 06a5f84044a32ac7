"""The contract between mipforest and a tree search: a solver that sees the built problem instead of its matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from numbers import Integral
from typing import Any, ClassVar

from mipforest.errors import NotAllowed, SolverUnavailable, Unsupported
from mipforest.model import Model
from mipforest.problem.built import BuiltProblem, StartError
from mipforest.problem.found import Found
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver, get_solver
from mipforest.solvers.solution import Progress
from mipforest.trees import Predictor

GROUP = "mipforest.searches"

#: Name that leaves the choice to the toolkit, and the matrix solver that it falls back on.
AUTO, MATRIX_SOLVER = "auto", "highs"

#: Share of the time left, and most seconds, for a tree search whose tree is the start of a matrix solver.
START_SHARE, START_SECONDS = 0.1, 10.0

#: Why no tree search takes a problem to whose model something was added.
CHANGED = "the model was changed after it was built, and a tree search sees no rows"


class TreeSearch(ABC):
    """A tree-search plug-in: one subclass each, found through the entry-point group ``mipforest.searches``.

    A search knows the structure of trees and sees no rows: it takes problems as they were built, and refuses those to
    which a user has added constraints. Its tree is encoded into the model and checked as a solver's point is.
    """

    #: Name on the command line, where that of a matrix solver stands.
    name: ClassVar[str]
    #: One line that says what it is.
    summary: ClassVar[str]
    #: Names of the models that it is made for.
    models: ClassVar[tuple[str, ...]]
    #: The same in words, where names do not say it all.
    models_in_words: ClassVar[str] = ""
    #: Top-level module that must be installed, and what ``pip install`` takes to bring it.
    package: ClassVar[str] = "mipforest"
    install: ClassVar[str] = "mipforest"
    #: Whether it proves bounds; a search that does not never says "optimal".
    proves: ClassVar[bool] = True
    #: Whether :class:`Auto` chooses it for every problem that it takes: it proves more than matrix solvers do.
    preferred: ClassVar[bool] = False
    #: Whether it multiplies losses by the samples' weights; problems with other weights than 1 are refused otherwise.
    takes_weights: ClassVar[bool] = False
    #: Whether it writes certificates.
    certifies: ClassVar[bool] = False
    #: What ``solver_options`` may hold, by name with what it means: whole numbers, at least 0, unless a search checks
    #: them itself.
    options: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def available(cls) -> bool:
        """Return whether what it needs is installed (it is not imported)."""
        return find_spec(cls.package) is not None

    def version(self) -> str:
        """Return the version of what does the work."""
        return version(self.package)

    @abstractmethod
    def refusal(self, problem: BuiltProblem) -> str:
        """Say why the search does not take a problem as it was built; empty where it does."""

    @abstractmethod
    def search(
        self,
        problem: BuiltProblem,
        settings: SolveSettings,
        *,
        start: Any,
        on_progress: Progress | None,
    ) -> Found:
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

    def objection(self, problem: BuiltProblem) -> str:
        """Say why the search does not take a problem as it is now, with its changes; empty where it does."""
        if problem.changed():
            return CHANGED
        if problem.data.weighted and not self.takes_weights:
            return "it takes no sample weights"
        return self.refusal(problem)

    def takes(self, problem: BuiltProblem) -> bool:
        """Return whether the search takes a problem as it is now."""
        return not self.objection(problem)

    def start_for(
        self, problem: BuiltProblem, known: Predictor | None, *, seed: int
    ) -> tuple[Predictor | None, float]:
        """Search for a share of the time for a tree that a matrix solver can start from.

        The problem is searched as it was built: a tree that breaks what was added since is repaired as any other start.

        Parameters
        ----------
        problem
            The problem as it is now.
        known
            A tree to begin with.
        seed
            Seed of the search.

        Returns
        -------
        tree, bound
            The best tree, and a lower bound on the value of every tree of the problem as it was built.

        Raises
        ------
        StartError
            If the search does not take the problem as it was built.
        """
        as_built, budget = problem, problem.budget
        if problem.changed():
            model = Model(problem.model.name)
            problem.formulation.declare(model, problem.instance)
            as_built = replace(problem, model=model)
        if reason := self.objection(as_built):
            raise StartError(f"start {self.name!r}: {reason}; take another start")
        limit = budget.at_most(START_SECONDS, share=START_SHARE)
        settings = SolveSettings(time_limit=limit, threads=1, seed=seed)
        found = self.search(as_built, settings, start=known, on_progress=lambda _: budget.stopped)
        return found.tree or known, found.bound

    def check(self, problem: BuiltProblem) -> None:
        """Refuse a problem that the search does not take.

        Raises
        ------
        Unsupported
            Saying why, and who takes it.
        """
        if reason := self.objection(problem):
            way = "use a matrix solver, such as --solver highs"
            if not problem.formulation.has_rows:
                way = "build it anew, and state what you want by its parameters: it has no rows"
            raise Unsupported(f"{self.name} does not take this problem: {reason}; {way}")


def check_settings(solver: Solver | TreeSearch | Auto, settings: SolveSettings) -> None:
    """Refuse options and a certificate that cannot be, before anything is prepared or solved.

    Parameters
    ----------
    solver
        Who is to solve; of ``auto`` the one that it chooses is checked for the certificate then, and its matrix solver
        has the options.
    settings
        What is asked of it.

    Raises
    ------
    Unsupported
        If the solver writes no certificate.
    NotAllowed
        If the solver does not take an option, or a tree search a bridge; if the certificate's name does not end in
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
        matrix_solver = get_solver(MATRIX_SOLVER) if isinstance(solver, Auto) else solver
        matrix_solver.check_options(settings.solver_options)
    certificate = settings.certificate
    if certificate is None:
        return
    if not (isinstance(solver, Auto) or (isinstance(solver, TreeSearch) and solver.certifies)):
        able = ", ".join(name for name, search in search_classes().items() if search.certifies)
        raise Unsupported(
            f"{solver.name} writes no certificate:",
            hint=f"use solver={able!r}",
            option=f"use --solver {able}",
        )
    if certificate.suffix != ".gz":
        raise NotAllowed(
            f"the certificate {str(certificate)!r} is compressed; give it a name that ends in .gz"
        )
    if not certificate.absolute().parent.is_dir():
        raise NotAllowed(f"the certificate {str(certificate)!r} has no folder to be in; make it first")


@cache
def search_classes() -> dict[str, type[TreeSearch]]:
    """Return all registered tree searches by name, installed or not, built in or from another package."""
    return {
        entry.name: entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def search_names() -> list[str]:
    """Return the names of all registered tree searches, without loading them."""
    return sorted(entry_points(group=GROUP).names)


def start_search(name: str, problem: BuiltProblem) -> TreeSearch | None:
    """Return the tree search that a start names; ``None`` where it is the formulation's own, or nothing of that name.

    Raises
    ------
    SolverUnavailable
        If what the search needs is not installed.
    """
    own = name in ("default", "none", *problem.formulation.starts)
    found = None if own or name not in search_names() else solver_or_search(name)
    return found if isinstance(found, TreeSearch) else None


class Auto:
    """The choice of solver that is left to the toolkit: the strongest route that is installed and takes the problem."""

    name = AUTO

    def takes(self, problem: BuiltProblem) -> bool:
        """Return whether a tree search is chosen for a problem as it is now, with default settings."""
        return isinstance(self.choose(problem, SolveSettings())[0], TreeSearch)

    def choose(self, problem: BuiltProblem, settings: SolveSettings) -> tuple[Solver | TreeSearch, str]:
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
        if problem.changed():
            return get_solver(MATRIX_SOLVER), CHANGED
        reasons = []
        with problem.budget.loading():
            searches = search_classes()
        for plugin in searches.values():
            if plugin.preferred and plugin.available():
                search = plugin()
                reason = search.objection(problem)
                if not reason:
                    return search, "an exact tree search takes this problem"
                # Of a search that is made for other models there is no more to say.
                if problem.formulation.name in search.models:
                    reasons.append(f"{search.name} does not take this problem: {reason}")
        return get_solver(MATRIX_SOLVER), "; ".join(reasons) or "no exact tree search takes this problem"


def _smooth_search(problem: BuiltProblem) -> TreeSearch:
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
    """Return a matrix solver or a tree search by name; of ``auto`` the choice, made when a problem is there.

    Raises
    ------
    SolverUnavailable
        If neither has that name, or what it needs is not installed.
    """
    if name == AUTO:
        return Auto()
    searches = search_names()
    if name not in searches:
        return get_solver(name, others=searches)
    plugin = search_classes()[name]
    if not plugin.available():
        raise SolverUnavailable(
            f"tree search {name!r} is not installed (no Python package {plugin.package!r}); "
            f"run: pip install {plugin.install}"
        )
    return plugin()
