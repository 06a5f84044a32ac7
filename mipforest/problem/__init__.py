"""What a formulation is, and its use: bind it to data, build the model, solve it, check the answer.

:mod:`~mipforest.problem.operations` and :mod:`~mipforest.problem.formulation` say what a formulation states and what
it knows of a data set, :mod:`~mipforest.problem.problem` how a built model is solved,
:mod:`~mipforest.problem.proofs` what is proven of the outcome, and :mod:`~mipforest.problem.result` what comes out.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.operations import Instance
    from mipforest.problem.parameters import ParameterError, PerNode, parameter, per_node
    from mipforest.problem.problem import Problem
    from mipforest.problem.result import Result

__all__ = [
    "Formulation",
    "Instance",
    "ParameterError",
    "PerNode",
    "Problem",
    "Result",
    "parameter",
    "per_node",
]

#: Imported on first use: the command line reads parameters without what solving needs.
_HOMES = {
    "Formulation": "formulation",
    "Instance": "operations",
    "ParameterError": "parameters",
    "PerNode": "parameters",
    "Problem": "problem",
    "Result": "result",
    "parameter": "parameters",
    "per_node": "parameters",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
