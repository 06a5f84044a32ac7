"""Checks of what all estimators take beside a formulation's hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sklearn.utils import check_random_state

from mipforest.problem.parameters import ParameterError, parameter, parameters_of

#: scikit-learn's random states draw seeds below this; every solver takes them.
SEEDS = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """The numbers among the settings, and their ranges."""

    depth: int = parameter(2, "levels of branch nodes", at_least=1)
    time_limit: float = parameter(60.0, "seconds for the solver", at_least=0)
    gap: float = parameter(1e-4, "relative gap that counts as optimal", at_least=0)
    threads: int = parameter(1, "threads of the solver", at_least=1)
    verbose: int = parameter(0, "whether to print progress", at_least=0)


#: Settings that may be left to the solver.
_OPTIONAL = ("time_limit", "threads")


def check_settings(estimator: Any) -> None:
    """Refuse settings that no solver takes, before any work is done.

    Raises
    ------
    ParameterError
        Naming the setting, its value and what it may be.
    """
    for name, spec in parameters_of(_Numbers).items():
        value = getattr(estimator, name)
        # Python's True and False are usual for verbose.
        if name == "verbose" and isinstance(value, bool):
            continue
        if value is not None or name not in _OPTIONAL:
            spec.check(value)
    for name, given in (("constraints", "a built Problem"), ("on_progress", "an Event")):
        value = getattr(estimator, name)
        if value is not None and not callable(value):
            raise ParameterError(
                f"parameter {name} is {value!r}; give a function that takes {given}, or None"
            )


def seed_of(random_state: Any) -> int:
    """Give a seed: a whole number as it is, so that it means the same on the command line; else one drawn.

    Raises
    ------
    ValueError
        If it is no whole number of 0 or more, no ``RandomState`` and not ``None``.
    """
    if isinstance(random_state, Integral) and random_state < 0:
        raise ParameterError(f"parameter random_state is {random_state}; give a whole number, 0 or more")
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(SEEDS))
