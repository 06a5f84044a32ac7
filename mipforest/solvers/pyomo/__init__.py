"""Any solver of Pyomo: ``pyomo:NAME``; and what is known of the interfaces behind the names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import SolverUnavailable
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import Feature, Solver, installed_version
from mipforest.solvers.bound_check import no_bound
from mipforest.solvers.checks import SMALL_ENTRY, require_plain_numbers, whole_bounds, with_exact_integers
from mipforest.solvers.solution import Progress, Solution, Status
from mipforest.solvers.worker import Worker

#: Interfaces that are suggested, in this order, where they are available.
SUGGESTED = ("highs", "appsi_highs", "gurobi_direct", "scip_direct", "cbc", "glpk", "scip", "cplex", "xpress")


class Pyomo(Solver):
    """A solver reached through Pyomo (Bynum et al., Pyomo - Optimization Modeling in Python, 2021).

    ``pyomo:NAME`` stands for ``pyomo.environ.SolverFactory(NAME)``. It is slower than a plug-in of this
    package, as Pyomo keeps an object per variable and row, and knows less: no starts, no progress, no
    interruption that keeps the incumbent.

    - The features are those that the interface was seen to have; linear ones for an unknown interface.
    - Gap, threads and seed are passed under the solver's own names, where they are known; what is not passed
      leaves a warning.
    - Empty rows and crossed bounds, over which interfaces stumble, are dealt with before.
    """

    name: ClassVar[str] = "pyomo"
    package: ClassVar[str] = "pyomo"
    install: ClassVar[str] = "pyomo"
    features: ClassVar[frozenset[Feature]] = frozenset({Feature.LP, Feature.MIP})

    #: Pyomo's name of the interface.
    interface: ClassVar[str] = ""

    @classmethod
    def named(cls, inner: str) -> Solver:
        """Return the solver for one of Pyomo's interfaces.

        Parameters
        ----------
        inner
            What ``SolverFactory`` takes, such as ``"appsi_highs"``.

        Raises
        ------
        SolverUnavailable
            If Pyomo has no such interface or does not find its solver; those that it finds are named.
        """
        if not inner:
            raise SolverUnavailable(
                f"solver 'pyomo' needs the name of Pyomo's solver: pyomo:NAME; found here: {_found()}"
            )
        from mipforest.solvers.pyomo.session import usable

        if not usable(inner):
            raise SolverUnavailable(
                f"Pyomo has no solver {inner!r}, or does not find its program or Python package; found "
                f"here: {_found()}"
            )
        return _class_of(inner)()

    def version(self) -> str:
        """Return the version of Pyomo; the solvers behind it do not all tell theirs."""
        return installed_version(self.package)

    def solve(
        self,
        form: MatrixForm,
        settings: SolveSettings,
        *,
        start: FloatArray | None = None,
        priorities: IntArray | None = None,
        on_progress: Progress | None = None,
    ) -> Solution:
        """Solve a model; see :meth:`mipforest.solvers.base.Solver.solve`.

        A start and priorities are not taken: they leave a warning. There is one progress event, the last.

        Raises
        ------
        Unsupported
            For what the interface is not known to take.
        NotAllowed
            For numbers that are NaN or 1e20 and above, options that the interface refuses, or a log that
            cannot be written.
        LicenseLimit, SolverError
            If the interface fails, with what it said.
        """
        self.require(form)
        require_plain_numbers(form)
        worker = Worker(form.maximize, on_progress)
        if form.n_columns == 0:
            return self.constant_solution(form, worker)
        native, time_limit, warnings = native_options(self.interface, settings)
        warnings += self.unused(start=start, branching_priorities=priorities)
        if _obviously_infeasible(form):
            status, x, dual, message = Status.INFEASIBLE, None, np.nan, "a bound or an empty row cannot hold"
        elif settings.time_limit == 0:
            # Several interfaces read a limit of 0 as none.
            status, x, dual, message = Status.TIME_LIMIT, None, no_bound(form), "no time was given"
        else:
            from mipforest.solvers.pyomo.session import run

            status, x, dual, message = run(self.interface, form, settings, native, time_limit)
        if status is Status.OPTIMAL and x is not None and np.isinf(dual) and family_of(self.interface).gap:
            # The solver was given the gap, and says that it closed it.
            objective = form.objective(with_exact_integers(form, x))
            dual = objective + (settings.gap if form.maximize else -settings.gap) * abs(objective)
        return self.solution(
            form, worker, settings, status=status, x=x, bound=dual, warnings=warnings, message=message
        )


@cache
def _class_of(interface: str) -> type[Pyomo]:
    """Return the class of one interface: what a solver is and can do belongs to its class."""
    facts = {
        "name": f"pyomo:{interface}",
        "interface": interface,
        "features": features_of(interface),
        "zero": family_of(interface).zero,
        "__doc__": f"Pyomo's interface {interface}.",
    }
    return type("Pyomo", (Pyomo,), facts)


def _found() -> str:
    from mipforest.solvers.pyomo.session import usable

    return ", ".join(name for name in SUGGESTED if usable(name)) or "none"


def _obviously_infeasible(form: MatrixForm) -> bool:
    """Return whether a bound, an integrality or an empty row cannot hold, on its own."""
    lower, upper = whole_bounds(form)
    empty = np.diff(form.A.indptr) == 0
    broken = (form.row_lower > FEASIBILITY_TOLERANCE) | (form.row_upper < -FEASIBILITY_TOLERANCE)
    return bool((lower > upper).any() or (form.row_lower > form.row_upper).any() or (empty & broken).any())


_LINEAR = frozenset({Feature.LP, Feature.MIP})


@dataclass(frozen=True)
class Family:
    """Solvers of one maker, whatever interface reaches them.

    Attributes
    ----------
    gap, threads, seed
        The solver's own names of these options, empty where it has none or it is not known.
    time_limit
        The same; empty for Pyomo's own ``timelimit``.
    whole_seconds
        Whether the time limit is a whole number.
    zero
        Matrix entries of at most this size are taken for zeros.
    known
        Whether anything is known of the solver.
    """

    gap: str = ""
    threads: str = ""
    seed: str = ""
    time_limit: str = ""
    whole_seconds: bool = False
    zero: float = SMALL_ENTRY
    known: bool = True


#: By a part of the interface's name. Pyomo's file-based and direct Gurobi interfaces ignore ``timelimit``.
FAMILIES: Mapping[str, Family] = {
    "highs": Family("mip_rel_gap", "threads", "random_seed"),
    "gurobi": Family("MIPGap", "Threads", "Seed", time_limit="TimeLimit", zero=1e-13),
    "scip": Family("limits/gap", seed="randomization/randomseedshift"),
    "cbc": Family("ratio", "threads", whole_seconds=True),
    "glpk": Family("mipgap", whole_seconds=True),
}

_UNKNOWN = Family(known=False)

#: Interfaces that were seen to pass a quadratic objective on and get it right, and what they take. SCIP now
#: and then takes minutes for a small continuous quadratic model, so these are left to another solver.
_QUADRATIC: Mapping[str, frozenset[Feature]] = {
    **dict.fromkeys(
        ("appsi_gurobi", "gurobi", "gurobi_direct", "gurobi_persistent", "gurobi_persistent_v2"),
        frozenset({Feature.QP, Feature.MIQP}),
    ),
    **dict.fromkeys(("scip_direct", "scip_persistent"), frozenset({Feature.MIQP})),
}


def family_of(interface: str) -> Family:
    """Return the family that an interface's name tells of."""
    return next((family for part, family in FAMILIES.items() if part in interface), _UNKNOWN)


def features_of(interface: str) -> frozenset[Feature]:
    """Return the features that an interface is known to have: linear ones, unless it was tried with more."""
    return _LINEAR | _QUADRATIC.get(interface, frozenset())


def native_options(interface: str, settings: SolveSettings) -> tuple[dict[str, Any], float | None, list[str]]:
    """Translate the common options.

    Parameters
    ----------
    interface
        Pyomo's name of the interface.
    settings
        The options; those under the solver's own names come last and win.

    Returns
    -------
    native
        Options under the solver's own names.
    time_limit
        Seconds to give to Pyomo's own ``timelimit``, ``None`` for none.
    warnings
        What has no translation.
    """
    family = family_of(interface)
    native: dict[str, Any] = {}
    warnings: list[str] = []
    asked = (
        ("gap", family.gap, settings.gap, True),
        ("threads", family.threads, settings.threads, settings.threads is not None),
        ("seed", family.seed, settings.seed, settings.seed != 0),
    )
    for what, name, value, given in asked:
        if given and name:
            native[name] = value
        elif given:
            warnings.append(
                f"{what} = {value} was not passed on: its name in {interface} is not known here; set it "
                "through solver_options"
            )
    seconds = settings.time_limit
    if seconds is not None and family.whole_seconds:
        seconds = max(1, round(seconds))
    if seconds is not None and family.time_limit:
        native[family.time_limit], seconds = seconds, None
    if seconds is not None and not family.known:
        warnings.append(f"the time limit went to Pyomo; whether {interface} keeps to it is not known here")
    return native | dict(settings.solver_options), seconds, warnings
