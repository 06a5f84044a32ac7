"""What is known of the solvers behind Pyomo's interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mipforest.solvers.base import Feature, SolveOptions

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
    known
        Whether anything is known of the solver.
    """

    gap: str = ""
    threads: str = ""
    seed: str = ""
    time_limit: str = ""
    whole_seconds: bool = False
    known: bool = True


#: By a part of the interface's name. Pyomo's file-based and direct Gurobi interfaces ignore ``timelimit``.
FAMILIES: Mapping[str, Family] = {
    "highs": Family("mip_rel_gap", "threads", "random_seed"),
    "gurobi": Family("MIPGap", "Threads", "Seed", time_limit="TimeLimit"),
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
    """Give the family that an interface's name tells of."""
    return next((family for part, family in FAMILIES.items() if part in interface), _UNKNOWN)


def features_of(interface: str) -> frozenset[Feature]:
    """Features that an interface is known to have: linear ones, unless it was tried with more."""
    return _LINEAR | _QUADRATIC.get(interface, frozenset())


def native_options(interface: str, options: SolveOptions) -> tuple[dict[str, Any], float | None, list[str]]:
    """Translate the common options.

    Parameters
    ----------
    interface
        Pyomo's name of the interface.
    options
        The options; those under the solver's own names come last and win.

    Returns
    -------
    settings
        Options under the solver's own names.
    time_limit
        Seconds to give to Pyomo's own ``timelimit``, ``None`` for none.
    warnings
        What has no translation.
    """
    family = family_of(interface)
    settings: dict[str, Any] = {}
    warnings: list[str] = []
    asked = (
        ("gap", family.gap, options.gap, True),
        ("threads", family.threads, options.threads, options.threads is not None),
        ("seed", family.seed, options.seed, options.seed != 0),
    )
    for what, name, value, given in asked:
        if given and name:
            settings[name] = value
        elif given:
            warnings.append(
                f"{what} = {value} was not passed on: its name in {interface} is not known here; set it "
                "through solver_options"
            )
    seconds = options.time_limit
    if seconds is not None and family.whole_seconds:
        seconds = max(1, round(seconds))
    if seconds is not None and family.time_limit:
        settings[family.time_limit], seconds = seconds, None
    if seconds is not None and not family.known:
        warnings.append(f"the time limit went to Pyomo; whether {interface} keeps to it is not known here")
    return settings | dict(options.solver_options), seconds, warnings
