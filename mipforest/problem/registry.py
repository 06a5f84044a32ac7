"""Formulations and the losses of their branch nodes by name, from entry points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from mipforest.errors import MipforestError, known_name, suggestion, unknown_formulation
from mipforest.errors import UnknownFormulation as UnknownFormulation
from mipforest.objectives.losses import BranchLoss
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError, check_parameters, ensemble_parameter_of
from mipforest.problem.structure import Structure
from mipforest.problem.tree_search import TreeSearch

#: Groups of entry points.
FORMULATIONS, LOSSES = "mipforest.formulations", "mipforest.losses"

#: Listed first, as the literature does.
FIRST_LOSSES = ("misclassification", "hinge", "squared-hinge", "logistic")


@cache
def formulation_classes() -> dict[str, type[Formulation]]:
    """Return all registered formulations by name, built in or from another package."""
    return {
        entry.name: entry.load()
        for entry in sorted(entry_points(group=FORMULATIONS), key=lambda entry: entry.name)
    }


@cache
def get_formulation(name: str) -> type[Formulation]:
    """Return a formulation's class by name, in upper or lower case, without loading the others.

    Raises
    ------
    UnknownFormulation
        If none has that name; the nearest names are suggested.
    """
    entries = entry_points(group=FORMULATIONS)
    name = known_name(name, entries.names)
    if name not in entries.names:
        raise unknown_formulation(name, entries.names)
    formulation: type[Formulation] = entries[name].load()
    return formulation


def models_of(search: type[TreeSearch]) -> tuple[str, ...]:
    """Return the names of the registered formulations that a search takes, at least with some hyperparameters."""
    return tuple(name for name, cls in formulation_classes().items() if search.is_made_for(cls))


def models_with(structure: type[Structure]) -> tuple[str, ...]:
    """Return the names of the registered formulations of some structure, at least with some hyperparameters."""
    kinds = {name: cls.structure_type for name, cls in formulation_classes().items()}
    return tuple(name for name, kind in kinds.items() if kind is not None and issubclass(kind, structure))


def make_formulation(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    variant: str | None = None,
    *,
    ensemble: Any = None,
) -> Formulation:
    """Make a formulation from what a command, a suite or a file says.

    Parameters
    ----------
    name
        Its name in the registry.
    parameters
        Values of its plain hyperparameters, by name; defaults for the others.
    variant
        Which of its variants; the first if empty or ``None``.
    ensemble
        For a formulation that mimics a tree ensemble: which, as for :func:`mipforest.ensembles.ensemble_for`.
        ``None`` for its default. **A file is loaded when the model is built, which runs code that it contains**:
        callers refuse one that the user did not name.

    Raises
    ------
    UnknownFormulation
        If none has that name.
    ParameterError
        If a parameter or the variant is unknown, a value is not allowed, or the formulation mimics no ensemble.
    """
    cls = get_formulation(name)
    values = check_parameters(cls, parameters or {})
    if ensemble is not None:
        target = ensemble_parameter_of(cls)
        if target is None:
            raise ParameterError(f"{name} mimics no tree ensemble; leave the ensemble out")
        values[target.name] = ensemble
    return cls(variant=variant or "", **values)


# ------------------------------------------------------------------ losses


class UnknownLoss(MipforestError, ValueError):
    """No loss has that name."""


def loss_names() -> tuple[str, ...]:
    """Return the names of all registered losses, without loading them."""
    names = entry_points(group=LOSSES).names
    return (*(name for name in FIRST_LOSSES if name in names), *sorted(names - set(FIRST_LOSSES)))


@cache
def loss_classes() -> dict[str, type[BranchLoss]]:
    """Return all registered losses by name, built in or from another package."""
    return {name: entry_points(group=LOSSES)[name].load() for name in loss_names()}


def get_loss(name: str) -> type[BranchLoss]:
    """Return a loss's class by name; its ``build`` makes the loss.

    Raises
    ------
    UnknownLoss
        If none has that name; the nearest names are suggested.
    """
    classes = loss_classes()
    if name not in classes:
        hint = suggestion(name, classes, 2, otherwise=".")
        raise UnknownLoss(f"no loss named {name!r}{hint} Known: {', '.join(classes)}")
    return classes[name]
